-- aggregates of DISTINCT values
SET gpuagg.replace_builtin = on;
CREATE TABLE d AS SELECT i % 7 AS k, (i % 13)::text AS s, i % 5 AS v, ((i % 110)::numeric / 2)::numeric(10,2) AS n,
	(i % 17)::numeric / 4 AS u, CASE WHEN i % 3 = 0 THEN NULL ELSE i % 40 END AS z, (i % 1000) / 7.0::float8 AS f, i AS id
	FROM generate_series(1, 6000) i;
INSERT INTO d VALUES (1, 'x', 1, 1, '1.0', 1, 'NaN', 0), (1, 'x', 1, 1, '1.00', 1, 'NaN', 0), (1, NULL, NULL, NULL, 'NaN', NULL, '-0', 0),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0), (2, 'X', 1, 'NaN', 1e30, 1, 'Infinity', 0);
VACUUM ANALYZE d;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT count(DISTINCT z) FROM d',
	'SELECT k, count(DISTINCT z) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT z), count(*), sum(v) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT z), sum(DISTINCT z), count(DISTINCT s), avg(DISTINCT n), sum(DISTINCT u), sum(n) FROM d GROUP BY k',
	'SELECT k, gpu_count(DISTINCT z), gpu_sum(DISTINCT n), gpu_avg(DISTINCT f), gpu_count(*) FROM d GROUP BY k',
	'SELECT k, array_agg(DISTINCT z), string_agg(DISTINCT s, '','') FROM d GROUP BY k',
	'SELECT k, array_agg(DISTINCT z ORDER BY z DESC NULLS LAST), string_agg(DISTINCT s, '','' ORDER BY s DESC) FROM d GROUP BY k',
	'SELECT k, sum(DISTINCT f), avg(DISTINCT f), stddev(DISTINCT f) FROM d WHERE f < 100 GROUP BY k',
	'SELECT k, sum(DISTINCT f), max(DISTINCT f) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT z) FILTER (WHERE v > 2), count(DISTINCT z), sum(z) FILTER (WHERE v < 1) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT z) FILTER (WHERE id < 3) FROM d GROUP BY k',
	'SELECT k, array_agg(DISTINCT z) FILTER (WHERE v = 1 OR v IS NULL) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT z) FILTER (WHERE v > 2), count(*) FILTER (WHERE v > 2), sum(id) FILTER (WHERE v > 2) FROM d GROUP BY k',
	'SELECT v > 2 AS b, count(DISTINCT z), count(*) FILTER (WHERE v > 2), sum(id) FILTER (WHERE k = 1) FROM d GROUP BY v > 2',
	'SELECT k, count(DISTINCT v > 2), count(*) FILTER (WHERE v > 2), max(s) FILTER (WHERE v > 2) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT 1 / v) FILTER (WHERE v <> 0) FROM d GROUP BY k',
	'SELECT k, min(DISTINCT z), max(DISTINCT f), min(DISTINCT s) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT k), count(DISTINCT k + 1) FROM d GROUP BY k',
	'SELECT s, count(DISTINCT s), count(DISTINCT s || k) FROM d GROUP BY s',
	'SELECT corr(DISTINCT id, z) FROM d',
	'SELECT k, v, count(DISTINCT f) FROM d GROUP BY k, v HAVING count(DISTINCT f) > 100',
	'SELECT k, count(DISTINCT z) + sum(v) AS t FROM d WHERE false GROUP BY k',
	'SELECT count(DISTINCT z), sum(DISTINCT u), array_agg(DISTINCT z) FROM d WHERE false',
	'SELECT k, jsonb_agg(DISTINCT s) FROM d GROUP BY k',
	'SELECT k, array_agg(DISTINCT ARRAY[v]) FROM d GROUP BY k',
	'SELECT sum(DISTINCT 1) FROM d',
	'SELECT k, string_agg(DISTINCT s, k::text) FROM d GROUP BY k',
	'SELECT k, gpu_histogram(DISTINCT f, 0, 200, 4), gpu_argmax(DISTINCT z, id) FROM d WHERE f < 200 GROUP BY k',
	'SELECT k, bool_or(DISTINCT v > 3), bit_and(DISTINCT v), variance(DISTINCT v), count(DISTINCT u) FROM d GROUP BY k',
	'SELECT x.k, (SELECT count(DISTINCT y.v + x.k) FROM d y WHERE y.k = x.k AND y.id < 100) FROM (VALUES (1), (2), (1)) x(k)',
	'SELECT count(DISTINCT a.k), sum(DISTINCT b.v) FROM d a JOIN d b ON a.id = b.id']) q;

-- more values than memory, and in parallel
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT k, count(DISTINCT id), sum(DISTINCT id), sum(v), array_agg(DISTINCT id) FROM d GROUP BY k',
	'SELECT f + 0 AS g, count(DISTINCT s), sum(DISTINCT n), string_agg(DISTINCT s, '','') FROM d GROUP BY f + 0',
	'SELECT s, f + 0 AS g, count(DISTINCT id), count(*) FROM d GROUP BY s, f + 0']) q;
-- several sets share the memory, and do not spill nearly every row
CREATE FUNCTION distinct_spills(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Spill Partitions';
END $$;
SET gpuagg.require = 'require';
SELECT distinct_spills('SELECT count(DISTINCT id || repeat(''x'', 100)), count(DISTINCT id), count(DISTINCT id + 1) FROM d')
	BETWEEN 10 AND 1000 AS few;
RESET gpuagg.require;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT k, count(DISTINCT id), sum(DISTINCT id), sum(v) FROM d GROUP BY k',
	'SELECT f + 0 AS g, count(DISTINCT s), sum(DISTINCT n), array_agg(DISTINCT s) FROM d GROUP BY f + 0']) q;
RESET work_mem;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT k, count(DISTINCT id), sum(DISTINCT id), count(*) FROM d GROUP BY k',
	'SELECT count(DISTINCT id) FILTER (WHERE v = 1), sum(DISTINCT n) FROM d']) q;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- queries that are not taken
SET client_min_messages = error;
CREATE FUNCTION distinct_reason(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	SET LOCAL gpuagg.require = 'allow';
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE) ' || query LOOP
		IF line LIKE '%not used%' THEN
			RETURN line;
		END IF;
	END LOOP;
	RETURN 'taken';
END $$;
SELECT distinct_reason(q), q FROM unnest(ARRAY[
	'SELECT k, count(DISTINCT id::text::money) FROM d GROUP BY k',
	'SELECT k, count(DISTINCT point(k, v)::text::tsvector) FROM d GROUP BY k',
	'SELECT k, gpu_max_subarray_sum(v ORDER BY id), count(DISTINCT v) FROM d GROUP BY k']) q;

-- an error in a value; parameters
SET gpuagg.require = 'require';
SELECT k, count(DISTINCT 1 / v) FROM d GROUP BY k;
PREPARE distinct_statement(int) AS SELECT count(DISTINCT z) AS n, sum(DISTINCT v * $1) AS s FROM d WHERE k < $1;
EXECUTE distinct_statement(2);
EXECUTE distinct_statement(5);
DROP TABLE d;
DROP FUNCTION distinct_reason, distinct_spills;
RESET ALL;
