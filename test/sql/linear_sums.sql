-- Sums, means and counts of x + c, x - c, c - x and c * x come from those of x; core's values and errors stay.
SET client_min_messages = warning;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;

CREATE TABLE numbers AS SELECT g % 7 AS k, nullif(g % 65536 - 32768, 5)::int2 AS s, nullif((g * 123457 % 2000000011), 123457) - 1000000000 AS i,
    nullif(g * 98765432109876, 98765432109876) - 4000000000000000000 AS b FROM generate_series(1::int8, 70000) g;
ALTER TABLE numbers ALTER i TYPE int4;
INSERT INTO numbers VALUES (7, NULL, NULL, NULL), (8, NULL, 3, NULL), (9, 32767, 2147483647, 9223372036854775807), (9, 0, 0, 0),
    (10, -32768, -2147483648, -9223372036854775808), (10, 0, 0, 0);
VACUUM (FREEZE, ANALYZE) numbers;
SET gpuagg.require = 'require';

-- the columns of the scan below these aggregates
CREATE FUNCTION inputs(aggs text, of text DEFAULT 'numbers') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    found text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) SELECT ' || replace(aggs, '@', 'gpu_') || ' FROM ' || of LOOP
        IF line ~ '^ +Output: ' THEN
            found := substring(line FROM 'Output: (.*)');
        END IF;
    END LOOP;
    RETURN found;
END $$;

SELECT q, agrees('SELECT k, ' || q || ' FROM numbers GROUP BY k'), inputs(q)
FROM unnest(ARRAY['@sum(s + 1)', '@avg(s + 1), @sum(2 - s), @count(s * 3), @sum(-7 * s)', '@sum(s % 100::int2 + 1::int2)', '@sum(s + 1::int8), @avg(s - 3000000000)',
    '@sum((s + 1) * 3 - 5)', '@sum((s - 1)::int8), @sum(s::int4), @avg(i::int8)', '@sum(i + 1::int8), @avg(3::int8 - i)', '@sum(i::int8 * 5), @sum(i * 4000000000)',
    '@sum(s * 65535)', '@sum(s % 100::int2 * 65536)', '@sum(i * 0), @sum(b * 0), @avg(0 * i)',
    '@sum(s + 1) FILTER (WHERE s > 7), @avg(s + 2) FILTER (WHERE s > 7), @sum(s) FILTER (WHERE s > 7), @sum(s)']) q;

-- arguments that may overflow: those with the largest and the smallest constant are computed
SELECT q, agrees('SELECT k, ' || q || ' FROM numbers WHERE k < 9 GROUP BY k'), inputs(q)
FROM unnest(ARRAY['@sum(i + 1), @sum(i + 3), @avg(i + 2)', '@sum(i + 1), @sum(i - 1), @sum(i + 3), @sum(i - 3)', '@sum(i + 1), @sum(i + -5), @sum(i + 3), @sum(i + -1), @count(i + 2)',
    '@sum(1 - i), @sum(2 - i), @sum(-4 - i), @avg(0 - i)', '@sum(i * 2), @sum(2 * i), @sum(i - 1)', '@sum(b + 1), @avg(b + 5), @sum(b - 9), @sum(b + 2::int2)', '@sum(b * 2), @avg(b * 2)',
    '@sum(i + 1), @sum(i + 3) FILTER (WHERE k > 1), @sum(i + 2), @sum(i + 1) FILTER (WHERE k > 1)', '@sum(DISTINCT i + 1), @sum(i + 2), @sum(i + 4), @sum(DISTINCT i + 9)']) q;
SELECT q, agrees('SELECT k, ' || q || ' FROM (SELECT k, i % 1000 AS i, b % 100000007 AS b FROM numbers) n GROUP BY k'), inputs(q)
FROM unnest(ARRAY['@sum(i * 2), @sum(i * 3), @sum(i * 4)', '@sum(i * 2), @avg(i * 3), @sum(i * -2), @avg(i * 5), @sum(i * -7)', '@sum(b * 2), @avg(b * 3), @sum(b * 70000)']) q;

-- other shapes
SELECT agrees('SELECT k, s % 3, @sum(i + 3), @sum(i + 2), @avg(s - 4) FROM numbers WHERE k < 9 GROUP BY ROLLUP (k, s % 3)'), agrees('SELECT @sum(s + 1), @sum(s + 2), @count(s + 1) FROM numbers WHERE k > 20'),
    agrees('SELECT k, @sum(s + 3) FROM numbers GROUP BY k HAVING @sum(s + 3) > -1000000 AND @avg(s + 2) < 5'), agrees('SELECT k, @sum(s + 3), @avg(s) FROM numbers GROUP BY k ORDER BY @sum(s + 3) DESC, @avg(s - 1) LIMIT 3'),
    agrees('SELECT (SELECT @sum(s + d.k) FROM numbers WHERE k = d.k) FROM (VALUES (1), (2)) d(k)');
PREPARE shifted(int, int) AS SELECT gpu_sum(i + $1), gpu_sum(i + $2) FROM numbers WHERE k = 9;
EXECUTE shifted(-1, -2);
EXECUTE shifted(-1, 1);
SET plan_cache_mode = force_generic_plan;
EXECUTE shifted(-1, -2);
EXECUTE shifted(-1, 1);
RESET plan_cache_mode;

-- numerics of a declared precision, with NaN
CREATE TABLE decimals (k int, p numeric(12, 2), q numeric(5, 0), r numeric(9, 4), u numeric, w numeric(30, 2));
INSERT INTO decimals SELECT g % 5, CASE WHEN g % 7 > 0 THEN g * 7919 % 1000003 / 100.0 - 3000 END, g % 90000 - 40000, g * 31 % 100000 / 10000.0, g / 8.0, g * 1e20 FROM generate_series(1, 20000) g;
INSERT INTO decimals VALUES (6, 'NaN', 'NaN', 1, 1, 1), (6, 1, 2, 3, 4, 5), (7, 'NaN', NULL, NULL, NULL, NULL), (8, NULL, NULL, NULL, NULL, NULL), (9, 0, 0, 0, 0, 0), (10, 9999999999.99, -99999, 99999.9999, 1e30, 1e27);
VACUUM (FREEZE, ANALYZE) decimals;
SELECT q, agrees('SELECT k, ' || q || ' FROM decimals GROUP BY ROLLUP (k)'), inputs(q, 'decimals')
FROM unnest(ARRAY['@sum(p + 1), @sum(p - 0.125), @avg(2.5 - p), @avg(p)', '@sum(p * 1.1), @avg(p * (-0.90)), @sum(1.10 * p), @count(p * 2)', '@sum((1 - p) * 1.175 + 3)', '@sum(q * 0.5), @avg(q + 1), @avg(0 * r), @sum(0.00 * r)',
    '@sum(p + 1e3), @sum(p * 123456.789)', '@sum(p * 1.1) FILTER (WHERE q > 0), @sum(p) FILTER (WHERE q > 0)', '@sum(u + 1)', '@sum(w + 1), @sum(w * 2)', '@sum(1e20 * p)', '@sum(p * r), @sum(p + r)', '@sum(p + NULL)', '@sum(p * ''NaN'')']) q;
SELECT agrees('SELECT k, @sum(p * 2) FROM decimals GROUP BY k HAVING @sum(p * 2) > 0 AND @avg(p + 1) < 5'), agrees('SELECT k, @sum(1 - p) FROM decimals GROUP BY k ORDER BY @sum(1 - p) DESC LIMIT 3');

-- core's errors
\set VERBOSITY terse
SELECT k, gpu_sum(i + 0) FROM numbers WHERE k > 8 GROUP BY k ORDER BY k;
SELECT gpu_sum(i + 1), gpu_sum(i + 2) FROM numbers;
SELECT gpu_sum(i - 1), gpu_sum(i - 2) FROM numbers WHERE k = 9;
SELECT gpu_sum(i - 1), gpu_sum(i - 2) FROM numbers WHERE k = 10;
SELECT gpu_sum(-1 - i), gpu_sum(-2 - i) FROM numbers WHERE k = 9;
SELECT gpu_sum(-1 - i), gpu_sum(0 - i) FROM numbers WHERE k = 10;
SELECT gpu_sum(-1 - i), gpu_sum(-2 - i), gpu_sum(-3 - i) FROM numbers WHERE k = 9;
SELECT gpu_sum(i * 2), gpu_sum(i * 3), gpu_sum(i * 4) FROM numbers WHERE k = 9;
SELECT gpu_sum(i * 1), gpu_sum(i * 2) FILTER (WHERE i < 9), gpu_sum(i * 3) FILTER (WHERE i < 9) FROM numbers WHERE k = 9;
SELECT gpu_sum(b + 1), gpu_sum(b + 0) FROM numbers;
SELECT gpu_sum(b * 2), gpu_sum(b * 3), gpu_sum(b * 4) FROM numbers;
SELECT gpu_sum(s + 32767::int2), gpu_sum(s + 1::int2) FROM numbers;

-- partial aggregates of a parallel plan
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT agrees('SELECT k, @sum(s + 3), @avg(s + 2), @sum(i + 1::int8), @sum(i - 1), @sum(i - 2) FROM numbers WHERE k < 9 GROUP BY k'), agrees('SELECT k, @sum(p + 3), @avg(p * 0.2) FROM decimals GROUP BY k');
DROP TABLE numbers, decimals;
DROP FUNCTION agrees, inputs;
