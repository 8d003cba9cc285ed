-- Decimals with fewer digits, remainders and signs: round and trunc to a constant number of digits, ceil, floor, mod, sign.
SET client_min_messages = warning;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';

CREATE TABLE rounding_rows (id int, k int, q int, n0 numeric(12, 0), n2 numeric(12, 2), n3 numeric(14, 3), hundreds numeric(5, -2), wide numeric(38, 6), z numeric(8, 1), fine numeric(24, 20), u numeric);
INSERT INTO rounding_rows SELECT i, i % 7, i % 20 - 10, CASE WHEN i % 11 > 0 THEN i % 300 - 100 END, CASE WHEN i % 13 > 0 THEN (i * 37 % 10007) / 100.0 - 30 END, i * 7919 % 100003 / 1000.0 - 50,
    (i % 97 - 48) * 100, CASE WHEN i % 50 = 0 THEN 9.9e31 * (i % 3 - 1) ELSE i * 1.000001 END, CASE WHEN i % 17 > 0 THEN (i % 97) / 10.0 - 2 END, (i % 100 - 50) / 1e19,
    (ARRAY['NaN', 'Infinity', '-Infinity', '0.5', '-1.50', '2.5', '1e40', '1e-30', NULL])[1 + i % 9]::numeric FROM generate_series(1, 3000) i;
INSERT INTO rounding_rows VALUES (0, 100, 1, 'NaN', 'NaN', 1, 100, 1, 1, 1, 1), (0, 101, 1, 1, 1, 'NaN', 'NaN', 1, 'NaN', 'NaN', 'NaN'), (0, 102, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, 103, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    (0, 104, 1, 5, 0.5, 0.5, 5, 5, 0.5, 0.5, 0.5), (0, 104, 1, -5, -0.5, -0.5, -5, -5, -0.5, -0.5, -0.5), (0, 105, 1, 999999999999, 9999999999.99, 99999999999.999, 99999, 99999999999999999999999999999999.999999, 9999999.9, 9999, -0.00);
ANALYZE rounding_rows;
SET gpuagg.require = 'require';

CREATE TABLE rounding_numbers (x text);
INSERT INTO rounding_numbers SELECT replace(f, '$', v) FROM unnest(ARRAY['n0', 'n2', 'n3', 'hundreds', 'wide', 'z', 'fine', 'u', 'n2 * n3', 'n2 / 7', 'n2 / nullif(z, 0)', 'wide / 3', 'n0 / 1e-12', 'CASE WHEN q > 0 THEN n2 ELSE n0 END', 'coalesce(n3, 0) + 1.00005']) v,
    unnest(ARRAY['round($)', 'round($, 1)', 'round($, 2)', 'round($, 5)', 'round($, 24)', 'round($, 25)', 'round($, -1)', 'round($, -3)', 'round($, -30)', 'round($, -38)', 'round($, -39)', 'round($, -2147483648)', 'trunc($)', 'trunc($, 1)', 'trunc($, 6)',
        'trunc($, -2)', 'ceil($)', 'ceiling(- ($))', 'floor($)', 'floor(-($))', 'sign($)', 'mod($, 7)', '($) % 0.30', '($) % nullif(n2, 0)', 'n3 % nullif($, 0)', 'round($, q)', 'CASE WHEN q > 0 THEN round($, 1) ELSE $ END', 'round(round($, 2) / 3, 1)', 'round(mod($, -2.5), 0)']) f;
CREATE TABLE rounding_shapes (q text);
INSERT INTO rounding_shapes SELECT replace(t, '$', '(' || x || ')') FROM rounding_numbers, unnest(ARRAY['SELECT k, @sum($), @avg($), @min($), @max($) FROM rounding_rows GROUP BY k',
    'SELECT @count(*), @sum(scale($)), @bit_xor(hashtext(($)::text)) FROM rounding_rows WHERE $ <> 1.5']) t;
SELECT agrees(q) AS verdict, count(*) FROM rounding_shapes GROUP BY 1;
-- as keys, and with DISTINCT
SELECT agrees('SELECT round(n2, -1), @count(*), @sum(DISTINCT trunc(n3)) FROM rounding_rows GROUP BY 1'), agrees('SELECT mod(n3, 3), @count(*) FROM rounding_rows GROUP BY 1');
-- a parameter is not a constant of the plan
PREPARE digits(int) AS SELECT gpu_sum(round(n3, $1)), sum(round(n3, $1)) FROM rounding_rows WHERE k < 100;
SET plan_cache_mode = 'force_generic_plan';
EXECUTE digits(1);
EXECUTE digits(-1);
RESET plan_cache_mode;
-- errors are core's, only for rows for which core divides
SELECT gpu_sum(n3 % n2) FROM rounding_rows;
SELECT agrees('SELECT @sum(CASE WHEN n2 <> 0 THEN n3 % n2 ELSE 0.5 END), @sum(mod(n3, z)) FILTER (WHERE z <> 0) FROM rounding_rows WHERE k < 100');
DROP TABLE rounding_rows, rounding_numbers, rounding_shapes;
DROP FUNCTION agrees;
