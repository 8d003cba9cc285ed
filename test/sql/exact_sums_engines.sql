-- Exact aggregates of floats (gpuagg.float_sum = exact): every engine takes them. With
-- gpuagg.engine = cuda (test/gpu_server.sh), the function `engine` demands that the GPU engine does.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET gpuagg.float_sum = exact;

CREATE FUNCTION sums(source text, keys text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT format('SELECT ARRAY[float8send(gpu_sum(x)), float8send(gpu_avg(x)), float4send(gpu_sum(f)), float8send(gpu_avg(f)), float8send(gpu_sum(x) FILTER (WHERE f > 100)),
	float8send(gpu_avg(f) FILTER (WHERE i < 0)), float8send(gpu_sum(x * 3 - f)), float8send(gpu_var_samp(x)), float8send(gpu_stddev_pop(f)),
	float8send(gpu_corr(x, f)), float8send(gpu_regr_intercept(f, x)), float8send(gpu_covar_samp(f, i)), float8send(gpu_regr_sxy(x, x)), float8send(gpu_regr_slope(x, f) FILTER (WHERE f > 100)),
	float8send(gpu_variance(x) FILTER (WHERE mod(i, 3) = 1)), int8send(gpu_regr_count(x, f)), int8send(gpu_count(x)), float4send(gpu_max(f))] AS b FROM %s GROUP BY %s', source, keys) $$;
CREATE FUNCTION bits(source text, keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT md5(string_agg(b::text, '' '' ORDER BY b::text)) FROM (%s) s', sums(source, keys)) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION engine(source text, keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lines text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || sums(source, keys) LOOP
		lines := lines || line || E'\n';
	END LOOP;
	RETURN CASE WHEN current_setting('gpuagg.engine') <> 'cuda' OR lines ~ 'Engine: cuda' THEN 'as set' ELSE lines END;
END $$;

-- few magnitudes, with NULL; many; no values but 0; values that only the CPU takes
CREATE TABLE few AS SELECT i, i % 7 AS k, CASE WHEN i % 11 > 0 THEN hashint8(i) / 3.0::float8 END AS x, (hashint8(-i) / 7.0)::float4 AS f FROM generate_series(1, 20000) i;
CREATE TABLE many AS SELECT i, k, x * 2::float8 ^ (i % 30 - 20) AS x, f * 2::float8 ^ (i % 20) AS f FROM few;
ALTER TABLE many ALTER f TYPE float4;
CREATE TABLE zeros AS SELECT i, k, '-0'::float8 AS x, CASE WHEN k < 3 THEN 0 END::float4 AS f FROM few;
CREATE TABLE odd AS SELECT i, k, CASE i WHEN 7777 THEN 'NaN' WHEN 8888 THEN '-inf' WHEN 9999 THEN 1e-300 WHEN 5555 THEN 1e140 ELSE x END AS x, f FROM few;
INSERT INTO few SELECT 0, 9, NULL, NULL;
VACUUM ANALYZE few, many, zeros, odd;

SET gpuagg.enabled = off;
CREATE TABLE plain AS SELECT source, keys, bits(source, keys) AS answer FROM (VALUES ('few'), ('many'), ('zeros'), ('odd')) s(source), (VALUES ('k'), ('i % 1000'), ('()'), ('ROLLUP (k, i % 3)')) k(keys);
RESET gpuagg.enabled;
CREATE VIEW answers AS SELECT source, string_agg(CASE WHEN bits(source, keys) = answer THEN 'same' ELSE 'differs: ' || keys END, ', ') AS bits, string_agg(DISTINCT engine(source, keys), ', ') AS engine
FROM plain GROUP BY source ORDER BY source COLLATE "C";
SET gpuagg.require = 'require';
TABLE answers;
SET gpuagg.batch_rows = 64;
TABLE answers;
RESET gpuagg.batch_rows;
SET gpuagg.feed = 'tuples';
SET enable_hashagg = off;
TABLE answers;
RESET gpuagg.feed;
RESET enable_hashagg;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.worker_cost = 0;
SET max_parallel_workers_per_gather = 2;
TABLE answers;
SET max_parallel_workers_per_gather = 0;

-- rescans begin anew: their values may have other magnitudes
SELECT n, s FROM generate_series(-300, 300, 150) n, LATERAL (SELECT gpu_sum(i * 10::float8 ^ n) AS s FROM generate_series(1, 10) i) t ORDER BY n;
-- only the result can overflow
SELECT gpu_sum(x) FROM (VALUES (1e308::float8), (1e308), (-1e308)) v(x);
SELECT gpu_sum(x) FROM (VALUES (1e308::float8), (1e308)) v(x);
SELECT gpu_sum(x) FROM (VALUES (3e38::float4), (3e38)) v(x);
SELECT gpu_sum(x), gpu_avg(x) FROM (VALUES (5e-324::float8), (5e-324), (-1.5e-323)) v(x);
-- equal values have no deviation
SELECT gpu_stddev(x), gpu_variance(x), gpu_var_pop(x), gpu_stddev_pop(x), gpu_avg(x) - 0.1 AS mean FROM (SELECT 0.1::float8 AS x FROM generate_series(1, 1000)) s;
DROP VIEW answers;
DROP TABLE few, many, zeros, odd, plain;
DROP FUNCTION sums, bits, engine;
