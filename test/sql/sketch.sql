-- gpu_approx_count_distinct: the same sketch as a plain aggregate, in the custom scan, by groups, and merged from
-- workers; for types whose value is the hash, and for others.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
CREATE TABLE sketch AS SELECT i, i % 7 AS k, (i * 7919::int8 % 5003)::int4 AS n, (i % 300)::int2 AS s, nullif(i % 100, 0) * 10000000019 AS b,
	(i % 777 + 4000000000)::oid AS o, date '2000-01-01' + i % 999 AS d, timestamptz '2000-01-01 00:00+00' + i * interval '1 second' AS ts, i % 2 = 0 AS bo,
	(i % 100) / 4.0::float8 AS f, 'x' || i % 4000 AS tx, (i % 50) / 10.0 AS m
FROM generate_series(1, 30000) i;
ANALYZE sketch;
CREATE FUNCTION pg_temp.sketches(require text) RETURNS TABLE (grouped bool, answers text) LANGUAGE plpgsql AS $$
DECLARE
	list text := 'gpu_approx_count_distinct(n), gpu_approx_count_distinct(s), gpu_approx_count_distinct(b), gpu_approx_count_distinct(o),
		gpu_approx_count_distinct(d), gpu_approx_count_distinct(ts), gpu_approx_count_distinct(bo), gpu_approx_count_distinct(f),
		gpu_approx_count_distinct(tx), gpu_approx_count_distinct(m), gpu_approx_count_distinct(i) FILTER (WHERE i <= 1000),
		gpu_approx_count_distinct(i) FILTER (WHERE i < 0)';
BEGIN
	PERFORM set_config('gpuagg.require', require, false);
	RETURN QUERY EXECUTE format('SELECT false, r::text FROM (SELECT %s FROM sketch) r', list);
	RETURN QUERY EXECUTE format('SELECT true, string_agg(r::text, '' '' ORDER BY r.k) FROM (SELECT k, %s FROM sketch GROUP BY k) r', list);
	RESET gpuagg.require;
END $$;
SELECT answers FROM pg_temp.sketches('forbid') WHERE NOT grouped;
SELECT count(DISTINCT n), count(DISTINCT s), count(DISTINCT b), count(DISTINCT o), count(DISTINCT d), count(DISTINCT ts), count(DISTINCT bo),
	count(DISTINCT f), count(DISTINCT tx), count(DISTINCT m) FROM sketch;
SELECT plain.grouped, plain.answers = custom.answers AS same FROM pg_temp.sketches('forbid') plain JOIN pg_temp.sketches('require') custom USING (grouped);
ALTER TABLE sketch SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plain.grouped, plain.answers = custom.answers AS same FROM pg_temp.sketches('forbid') plain JOIN pg_temp.sketches('require') custom USING (grouped);
-- types whose value is the hash, of all widths, alone, because other types keep a query from the GPU
CREATE FUNCTION pg_temp.own_hashes(require text) RETURNS TABLE (grouped bool, answers text) LANGUAGE plpgsql AS $$
DECLARE
	list text := 'gpu_approx_count_distinct(n), gpu_approx_count_distinct(s), gpu_approx_count_distinct(b), gpu_approx_count_distinct(o),
		gpu_approx_count_distinct(d), gpu_approx_count_distinct(ts), gpu_approx_count_distinct(bo)';
BEGIN
	PERFORM set_config('gpuagg.require', require, false);
	RETURN QUERY EXECUTE format('SELECT false, r::text FROM (SELECT %s FROM sketch) r', list);
	RETURN QUERY EXECUTE format('SELECT true, string_agg(r::text, '' '' ORDER BY r.k) FROM (SELECT k, %s FROM sketch GROUP BY k) r', list);
	RESET gpuagg.require;
END $$;
SELECT plain.grouped, plain.answers = custom.answers AS same FROM pg_temp.own_hashes('forbid') plain JOIN pg_temp.own_hashes('require') custom USING (grouped);
-- zeros of both signs are one value, and so are NaNs
SELECT gpu_approx_count_distinct(x) FROM unnest(ARRAY['0', '-0', 'NaN', 'NaN', '1']::float8[]) x;
-- no values
SELECT gpu_approx_count_distinct(x) FROM unnest(ARRAY[NULL, NULL]::int[]) x;
DROP TABLE sketch;
-- numerics of both signs, and those that are no numbers, are different values; also in a domain
CREATE DOMAIN amount AS numeric;
SELECT gpu_approx_count_distinct(i / 4.0) AS signs, gpu_approx_count_distinct((i / 4.0)::amount) AS "of a domain", gpu_approx_count_distinct(1e-30 * i) AS small FROM generate_series(-20, 20) i;
SELECT gpu_approx_count_distinct(x) FROM unnest('{NaN,NaN,Infinity,-Infinity,0,0.00,1,-1,1.0,1e50,-1e50}'::numeric[]) x;
DROP DOMAIN amount;
