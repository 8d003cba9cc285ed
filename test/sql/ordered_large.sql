-- percentiles and modes of groups that are larger than the memory
SET gpuagg.cache = off;
SET gpuagg.replace_builtin = on;
SET gpuagg.require = 'require';
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
CREATE TABLE large AS SELECT i, i * 7919::int8 % 100003 AS many, i % 3 AS few, CASE WHEN i % 10 < 7 THEN 5 ELSE i % 1000 END AS skewed,
	CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN 'Infinity' WHEN 4 THEN '-Infinity' WHEN 5 THEN NULL
		ELSE (i * 613 % 10007) * 10.0 ^ (i % 40 - 20) END::float8 AS f,
	(i * 31 % 700)::text || 'x' AS s, (i * 7 % 500)::numeric / 4 AS n, make_interval(secs => i * 17 % 2003) AS t,
	i * 1000000007::int8 AS wide, 0 AS zero, nullif(i % 2, 0) AS half,
	CASE WHEN i % 4 < 3 THEN 0 WHEN i % 200 = 3 THEN 1 ELSE i % 400 END AS g, i % 150 AS h FROM generate_series(1, 40000) i;
VACUUM ANALYZE large;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TABLE queries AS SELECT row_number() OVER () AS id, q FROM unnest(ARRAY[
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY many), percentile_disc(''{0, 0.001, 0.3, 0.31, 0.999, 1, NULL}''::float8[]) WITHIN GROUP (ORDER BY many DESC), mode() WITHIN GROUP (ORDER BY many) FROM large',
	'SELECT percentile_disc(''{0, 0.5, 0.5, 1}''::float8[]) WITHIN GROUP (ORDER BY zero), mode() WITHIN GROUP (ORDER BY zero DESC), percentile_cont(0.1) WITHIN GROUP (ORDER BY zero) FROM large',
	'SELECT percentile_disc(''{0.3, 0.4, 0.9}''::float8[]) WITHIN GROUP (ORDER BY few), mode() WITHIN GROUP (ORDER BY few), mode() WITHIN GROUP (ORDER BY few DESC) FROM large',
	'SELECT percentile_disc(''{0.01, 0.4, 0.71, 0.9}''::float8[]) WITHIN GROUP (ORDER BY skewed), mode() WITHIN GROUP (ORDER BY skewed), mode() WITHIN GROUP (ORDER BY skewed DESC), percentile_cont(0.99) WITHIN GROUP (ORDER BY skewed) FILTER (WHERE skewed <> 5) FROM large',
	'SELECT percentile_disc(''{0, 0.01, 0.03, 0.05, 0.5, 0.97, 0.99}''::float8[]) WITHIN GROUP (ORDER BY f + 0), percentile_cont(0.6) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY f) FROM large',
	'SELECT mode() WITHIN GROUP (ORDER BY f) + 0, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) + 0 FROM large WHERE f = 0 OR i % 50 = 9',
	'SELECT percentile_disc(''{0.1, 0.5}''::float8[]) WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY s DESC), percentile_disc(0.77) WITHIN GROUP (ORDER BY n), percentile_cont(0.77) WITHIN GROUP (ORDER BY t) FROM large',
	'SELECT percentile_cont(''{0.25, 0.5, 0.75}''::float8[]) WITHIN GROUP (ORDER BY wide), mode() WITHIN GROUP (ORDER BY wide DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY half), mode() WITHIN GROUP (ORDER BY wide / 1000000000000) FROM large',
	'SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY many), mode() WITHIN GROUP (ORDER BY skewed), percentile_disc(''{0.1, 0.9}''::float8[]) WITHIN GROUP (ORDER BY s), count(*) FROM large GROUP BY g',
	'SELECT h, percentile_cont(0.5) WITHIN GROUP (ORDER BY many), mode() WITHIN GROUP (ORDER BY skewed DESC), percentile_disc(0.2) WITHIN GROUP (ORDER BY f) FROM large GROUP BY h',
	'SELECT few, g, percentile_cont(0.5) WITHIN GROUP (ORDER BY many), mode() WITHIN GROUP (ORDER BY s), percentile_disc(0.9) WITHIN GROUP (ORDER BY f), count(DISTINCT skewed) FROM large GROUP BY CUBE (few, g)',
	'SELECT few, gpu_median(wide), array_length(array_agg(i ORDER BY many), 1), percentile_disc(few / 2.0) WITHIN GROUP (ORDER BY n) FROM large GROUP BY ROLLUP (few)']) q;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;
SET work_mem = '300kB';
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;

-- spilled values are counted once each: first all values, then half of them, and so on
SET work_mem = '64kB';
CREATE FUNCTION pg_temp.spilled(query text) RETURNS int LANGUAGE plpgsql SET gpuagg.engine TO cpu AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF) ' || query LOOP
		IF line ~ 'Spilled' THEN RETURN substring(line FROM 'Spilled: (\d+) kB'); END IF;
	END LOOP;
END $$;
SELECT pg_temp.spilled('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i) FROM large') BETWEEN 40000 * 8 / 1024 AND 40000 * 20 / 1024 AS once;

-- in parallel
SET work_mem = '64kB';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;
DROP TABLE large, queries;
