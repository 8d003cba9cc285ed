-- gpu_percentile_cont, gpu_percentile_disc, gpu_mode, gpu_median, gpu_approx_percentile
CREATE TABLE q AS SELECT i % 5 AS k, (i * 7919 % 10007) / 16.0::float8 AS f, make_interval(secs => i * 31 % 997) AS t,
	CASE WHEN i % 4 > 0 THEN i % 90 END AS z, md5((i % 77)::text) AS s, i % 2 = 0 AS b, i AS id FROM generate_series(1, 20000) i;
INSERT INTO q VALUES (7, NULL), (8, '-0'), (9, 'NaN', '1 mon'), (9, 'Infinity', '30 days'), (9, '-Infinity');
VACUUM ANALYZE q;

-- with the custom scan, without it, and in core
CREATE FUNCTION pg_temp.three_ways(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	answer text;
	way text;
BEGIN
	FOREACH way IN ARRAY ARRAY['SET LOCAL gpuagg.require = ''require''', 'SET LOCAL gpuagg.require = ''allow''; SET LOCAL gpuagg.enabled = off',
		'SET LOCAL max_parallel_workers_per_gather = 0'] LOOP
		EXECUTE way;
		EXECUTE format('SELECT string_agg(x::text, E''\n'' ORDER BY x::text) FROM (%s) x', query) INTO answer;
		answers := answers || answer;
		-- the last variant is core's
		query := replace(replace(query, 'gpu_median(f)', 'percentile_cont(0.5) WITHIN GROUP (ORDER BY f)'), 'gpu_median(t)',
			'percentile_cont(0.5) WITHIN GROUP (ORDER BY t)');
		query := CASE WHEN cardinality(answers) = 2 THEN regexp_replace(query, 'gpu_(percentile|mode|count)', '\1', 'g') ELSE query END;
	END LOOP;
	SET LOCAL gpuagg.enabled = on;
	RETURN CASE WHEN answers[1] = ALL (answers) THEN 'equal' ELSE array_to_string(answers, E'\n--\n') END;
END $$;
CREATE TABLE queries AS SELECT row_number() OVER () AS id, query FROM unnest(ARRAY[
	'SELECT k, gpu_median(f), gpu_median(t), gpu_count(*) FROM q GROUP BY k',
	'SELECT gpu_median(f), gpu_median(f) FILTER (WHERE b), gpu_median(t) FROM q WHERE k < 5',
	'SELECT k, gpu_percentile_cont(0.1) WITHIN GROUP (ORDER BY f), gpu_percentile_cont(0.9) WITHIN GROUP (ORDER BY f), gpu_median(f) FROM q GROUP BY k',
	'SELECT k, gpu_percentile_cont(''{0.1,NULL,0.7}''::float8[]) WITHIN GROUP (ORDER BY f DESC) FROM q GROUP BY k',
	'SELECT k, gpu_percentile_cont(''{0.1,NULL,0.7}''::float8[]) WITHIN GROUP (ORDER BY t), gpu_percentile_cont(0.2) WITHIN GROUP (ORDER BY t) FROM q GROUP BY k',
	'SELECT k, gpu_percentile_disc(0.1) WITHIN GROUP (ORDER BY s), gpu_percentile_disc(''{0.1,0.6}''::float8[]) WITHIN GROUP (ORDER BY z) FROM q GROUP BY k',
	'SELECT k, gpu_mode() WITHIN GROUP (ORDER BY s), gpu_mode() WITHIN GROUP (ORDER BY z DESC) FROM q GROUP BY k',
	'SELECT gpu_median(f), gpu_median(t), gpu_mode() WITHIN GROUP (ORDER BY s) FROM q WHERE false']) query;
SELECT id, pg_temp.three_ways(query) FROM queries ORDER BY id;
SET work_mem = '64kB';
SELECT id, pg_temp.three_ways(query) FROM queries ORDER BY id;
RESET work_mem;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT id, pg_temp.three_ways(query) FROM queries ORDER BY id;

-- gpu_median is an ordinary aggregate, not an ordered-set one
SET gpuagg.require = 'require';
SELECT gpu_median(DISTINCT z), gpu_median(DISTINCT z) FILTER (WHERE b) FROM q;
SELECT gpu_median(z ORDER BY id) FROM q;
RESET gpuagg.require;
SELECT id, gpu_median(f) OVER (ORDER BY id ROWS 2 PRECEDING) FROM q WHERE id < 6;

-- sketches: the same with any order and plan, within the error bound
CREATE TABLE hard AS
SELECT 'uniform' AS data, x AS id, (x * 7919::int8 % 1000003) / 1000003.0::float8 AS v FROM generate_series(1, 10000) x UNION ALL
SELECT 'powers', x, (1 + x % 7 / 8.0) * 2.0::float8 ^ (x % 2000 - 1000) FROM generate_series(1, 10000) x UNION ALL
SELECT 'one day', x, 1.7e9 + x * 86400.0 / 10000 FROM generate_series(1, 10000) x UNION ALL
SELECT 'outliers', x, CASE WHEN x % 1000 = 0 THEN 1e300 ELSE 100 + x / 10000.0 END FROM generate_series(1, 10000) x UNION ALL
SELECT 'both signs', x, (x % 2 * 2 - 1) * exp(x / 700.0) FROM generate_series(1, 10000) x UNION ALL
SELECT 'few', x, x % 2000 - 1000 FROM generate_series(1, 10000) x UNION ALL
SELECT 'skew', x, (1e9 / x) ^ 2 FROM generate_series(1, 10000) x UNION ALL
SELECT 'all orders', x, CASE WHEN x % 2 = 0 THEN -1 ELSE 1 END * 1.5 * 2.0::float8 ^ (x % 2045 - 1022) FROM generate_series(1, 10000) x UNION ALL
SELECT 'special', x, CASE x % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN -0.0 ELSE x END FROM generate_series(1, 10000) x;
VACUUM ANALYZE hard;
-- powers of two around the values, separately for each sign
CREATE TABLE orders AS SELECT data, count(DISTINCT get_byte(float8send(v), 0) * 16 + get_byte(float8send(v), 1) / 16) AS n FROM hard
	WHERE v NOT IN ('NaN', 'Infinity', '-Infinity', 0) GROUP BY data;
CREATE TABLE answers AS
WITH f AS (SELECT array_agg(i / 200.0::float8) AS fractions FROM generate_series(0, 200) i)
SELECT data, p, about, exactly FROM
	(SELECT data, gpu_approx_percentile(v, (SELECT fractions FROM f)) AS a, gpu_percentile_disc((SELECT fractions FROM f)) WITHIN GROUP (ORDER BY v) AS b
	 FROM hard GROUP BY data) q,
	unnest(a, b) WITH ORDINALITY u(about, exactly, p);
SELECT data, n, count(*) FILTER (WHERE about = exactly) = 201 AS exact,
	count(*) FILTER (WHERE NOT (about = exactly OR abs(about - exactly) < abs(exactly) * least(n / 2048.0, 1.0001))) AS beyond_the_bound
FROM answers LEFT JOIN orders USING (data) GROUP BY data, n ORDER BY data;
-- with any order of rows, in parallel or not, in the custom scan or not
CREATE TABLE shuffled AS SELECT * FROM hard ORDER BY md5(id::text), data;
VACUUM ANALYZE shuffled;
CREATE TABLE sketches AS
SELECT data, gpu_approx_percentile(v, '{0,0.01,0.25,0.5,0.75,0.99,1}'::float8[])::text AS a, gpu_approx_percentile(v, 0.5) AS b FROM shuffled GROUP BY data;
SET max_parallel_workers_per_gather = 0;
INSERT INTO sketches SELECT data, gpu_approx_percentile(v, '{0,0.01,0.25,0.5,0.75,0.99,1}'::float8[])::text, gpu_approx_percentile(v, 0.5) FROM hard GROUP BY data;
SET work_mem = '64kB';
INSERT INTO sketches SELECT data, gpu_approx_percentile(v, '{0,0.01,0.25,0.5,0.75,0.99,1}'::float8[])::text, gpu_approx_percentile(v, 0.5) FROM hard GROUP BY data;
RESET work_mem;
SET gpuagg.enabled = off;
INSERT INTO sketches SELECT data, gpu_approx_percentile(v, '{0,0.01,0.25,0.5,0.75,0.99,1}'::float8[])::text, gpu_approx_percentile(v, 0.5) FROM hard GROUP BY data;
RESET max_parallel_workers_per_gather;
INSERT INTO sketches SELECT data, gpu_approx_percentile(v, '{0,0.01,0.25,0.5,0.75,0.99,1}'::float8[])::text, gpu_approx_percentile(v, 0.5) FROM shuffled GROUP BY data;
RESET gpuagg.enabled;
SELECT data, count(*), count(DISTINCT a), count(DISTINCT b) FROM sketches GROUP BY data ORDER BY data;

-- NULLs and errors
SELECT gpu_approx_percentile(NULL::float8, 0.5), gpu_approx_percentile(1::float8, NULL::float8), gpu_approx_percentile(1::float8, NULL::float8[]),
	gpu_approx_percentile(1::float8, '{}'::float8[]), gpu_approx_percentile(NULL::float8, 7);
SELECT gpu_approx_percentile(x, 1.01) FROM generate_series(1, 3) x;
SELECT gpu_approx_percentile(x, '{0.1,NaN}'::float8[]) FROM generate_series(1, 3) x;
SELECT gpu_approx_percentile(x, '{{0.1}}'::float8[]) FROM generate_series(1, 3) x;
SELECT gpu_approx_percentile(x, x / 10.0) FROM generate_series(1, 3) x;
SELECT gpu_approx_percentile(x, ARRAY[x / 10.0]::float8[]) FROM generate_series(1, 3) x;
\set VERBOSITY sqlstate
SELECT gpu_median(x) FROM (VALUES (date '2020-01-01')) v(x);
\set VERBOSITY default

DROP TABLE q, queries, hard, orders, answers, shuffled, sketches;
