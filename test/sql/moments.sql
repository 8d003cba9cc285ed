-- gpu_skewness, gpu_kurtosis and their forms of the population: against two passes in plain SQL, as ordinary aggregates
-- and in the custom scan, serial and parallel
SET extra_float_digits = -3;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
CREATE TABLE moments AS
SELECT i, i % 5 AS k, i % 1000 AS many, CASE WHEN i % 11 > 0 THEN (i * 7919 % 1009) ^ 1.5 + 1000000 * (i % 5) END AS x, i % 7 AS n
FROM generate_series(1, 20000) i;
ANALYZE moments;

-- two passes over the rows of a query (k, x): k, skewness, its population form, kurtosis, its population form
CREATE FUNCTION pg_temp.two_passes(source text) RETURNS TABLE (k int, answer float8[]) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL gpuagg.enabled = off;
	RETURN QUERY EXECUTE format($q$
		SELECT k, ARRAY[CASE WHEN n > 2 THEN g1 * sqrt(n * (n - 1)) / (n - 2) END, g1,
			CASE WHEN n > 3 THEN (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * g2 + 6) END, g2]
		FROM (SELECT k, n, m3 / v ^ 1.5 AS g1, m4 / v ^ 2 - 3 AS g2
			FROM (SELECT k, count(x)::float8 AS n, nullif(avg((x - mean) ^ 2), 0) AS v, avg((x - mean) ^ 3) AS m3, avg((x - mean) ^ 4) AS m4
				FROM (SELECT k, x, avg(x) OVER (PARTITION BY k) AS mean FROM (%s) a) b GROUP BY k) c) d$q$, source);
	SET LOCAL gpuagg.enabled = on;
END $$;
CREATE FUNCTION pg_temp.ours(source text, require text) RETURNS TABLE (k int, answer float8[]) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuagg.require', require, true);
	RETURN QUERY EXECUTE format('SELECT k, ARRAY[gpu_skewness(x), gpu_skewness_pop(x), gpu_kurtosis(x), gpu_kurtosis_pop(x)] FROM (%s) a GROUP BY k', source);
	PERFORM set_config('gpuagg.require', 'allow', true);
END $$;
-- groups, and those whose numbers differ by more than a rounding error
CREATE FUNCTION pg_temp.compare(source text, OUT plain text, OUT custom text) LANGUAGE plpgsql AS $$
DECLARE
	outcome text;
BEGIN
	FOR i IN 1 .. 2 LOOP
		SELECT format('%s groups, %s numbers, %s differ', count(DISTINCT a.k), count(v), count(*) FILTER (WHERE
			CASE WHEN v IS NULL OR w IS NULL THEN v IS DISTINCT FROM w ELSE NOT (v = w OR abs(v - w) <= 1e-7 * (1 + abs(v))) END))
		INTO outcome
		FROM pg_temp.two_passes(source) a FULL JOIN pg_temp.ours(source, CASE i WHEN 1 THEN 'forbid' ELSE 'require' END) b USING (k),
			unnest(a.answer, b.answer) u(v, w);
		plain := coalesce(plain, outcome);
		custom := outcome;
	END LOOP;
END $$;
SELECT * FROM pg_temp.compare('SELECT k, x FROM moments');
SELECT * FROM pg_temp.compare('SELECT many AS k, x FROM moments');
SELECT * FROM pg_temp.compare('SELECT 1 AS k, x FROM moments');
SELECT * FROM pg_temp.compare('SELECT k, n::float8 AS x FROM moments');
-- groups of one to six values, some of them equal
SELECT * FROM pg_temp.compare('SELECT i % 9 AS k, n::float8 AS x FROM moments WHERE i < 30');
SELECT * FROM pg_temp.compare('SELECT k, CASE WHEN k < 2 THEN 0.25 ELSE n / 10.0 END::float8 AS x FROM moments');
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE moments SET (parallel_workers = 2);
SELECT * FROM pg_temp.compare('SELECT k, x FROM moments');
SELECT * FROM pg_temp.compare('SELECT 1 AS k, x FROM moments');
SET max_parallel_workers_per_gather = 0;

-- known answers
SELECT round(gpu_skewness(x)::numeric, 6) AS skewness, round(gpu_skewness_pop(x)::numeric, 6) AS skewness_pop,
	round(gpu_kurtosis(x)::numeric, 6) AS kurtosis, round(gpu_kurtosis_pop(x)::numeric, 6) AS kurtosis_pop
FROM unnest('{2,8,0,4,1,9,9,0}'::float8[]) x;
-- no values, few values, equal values
SELECT a, gpu_skewness(x), gpu_skewness_pop(x), gpu_kurtosis(x), gpu_kurtosis_pop(x)
FROM (VALUES ('{}'), ('{NULL}'), ('{3}'), ('{1,2}'), ('{1,2,4}'), ('{0.1,0.1,0.1,0.1,0.1}'), ('{NaN}'), ('{1,NaN,2,3}'), ('{Infinity,1,2,3}'),
	('{1,2,-Infinity,Infinity}')) v(a) LEFT JOIN LATERAL unnest(a::float8[]) x ON true GROUP BY a ORDER BY a COLLATE "C";
-- values far apart are an error, in both ways to compute it
CREATE TABLE far AS SELECT i % 2 AS k, CASE WHEN i % 3 = 0 THEN 1e80 ELSE -1e80 END AS x FROM generate_series(1, 100) i;
SET gpuagg.require = 'forbid';
SELECT gpu_kurtosis(x) FROM far;
SET gpuagg.require = 'require';
SELECT gpu_kurtosis(x) FROM far;
SELECT k, gpu_skewness(x) FROM far GROUP BY k;
-- FILTER, DISTINCT and grouping sets
SELECT gpu_skewness(n) FILTER (WHERE n > 6), round(gpu_kurtosis(DISTINCT n)::numeric, 9) AS of_seven, round(gpu_skewness(DISTINCT n)::numeric, 9) AS even FROM moments;
SELECT k, round(gpu_skewness(i)::numeric, 9) AS skewness, round(gpu_kurtosis_pop(i)::numeric, 3) AS kurtosis FROM moments GROUP BY ROLLUP (k) ORDER BY k;
RESET gpuagg.require;
SELECT i, round(gpu_kurtosis(i) OVER (ORDER BY i)::numeric, 3) AS running FROM moments WHERE i < 7 ORDER BY i;
-- states that are none
SELECT gpuagg_moments_combine('{0,0,0,0,0}', '{1,2}');
SELECT gpuagg_moments_accum('{{0,0,0,0,0}}', 1);
SELECT gpuagg_kurtosis_samp('{1,2,NULL,3,4}');
SELECT gpuagg_kurtosis_samp('{NaN,2,1,3,4}'), gpuagg_skewness_samp('{-5,2,1,3,4}'), gpuagg_skewness_pop('{5,0,-4,1,1}');
DROP TABLE moments, far;
