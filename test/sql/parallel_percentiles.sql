-- Percentiles without GROUP BY in parallel plans: participants divide their values into chunks, and the one that merges them reads few.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE chunks AS
SELECT i AS id, i * 7919::int8 % 500009 AS w, (CASE WHEN i % 2 = 0 THEN 0 ELSE i * 104729::int8 % 1000003 END)::float8 AS half,
	(i % 7)::int2 AS few, (i::float8 ^ 5) * (i % 3 - 1)::float8 AS skew, i AS sorted,
	CASE i % 1000 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' ELSE (i % 5003)::float8 END AS odd,
	CASE WHEN i % 3 = 0 THEN 9223372036854775807 WHEN i % 3 = 1 THEN -9223372036854775807 - 1 ELSE i END AS far
FROM generate_series(1, 450000) i;
ALTER TABLE chunks SET (parallel_workers = 2);
VACUUM ANALYZE chunks;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/merges_parts.sql'
\i :include
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE VIEW pc AS SELECT * FROM chunks WHERE id % 20000 <> 3 OR wait_for_others();
-- Whether values were exchanged in chunks, in one of some runs. They are not if one participant has read nearly all rows.
CREATE FUNCTION pg_temp.by_chunks(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found bool := false;
BEGIN
	FOR try IN 1 .. 10 LOOP
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
			found := found OR line ~ 'values of ordered sets: in chunks';
		END LOOP;
		EXIT WHEN found;
		PERFORM set_config('test.wait', least(0.005 * 2 ^ try, 0.1)::text, false);
	END LOOP;
	PERFORM set_config('test.wait', '', false);
	RETURN found;
END $$;
CREATE TABLE chunk_queries (q text);
INSERT INTO chunk_queries VALUES
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY w) FROM pc'),
	('SELECT percentile_disc(ARRAY[0, 0.001, 0.25, 0.5, NULL, 0.99, 1]) WITHIN GROUP (ORDER BY w DESC), count(*), sum(w) FROM pc'),
	('SELECT percentile_cont(ARRAY[0.4999, 0.5, 0.7]) WITHIN GROUP (ORDER BY half), percentile_disc(0.1) WITHIN GROUP (ORDER BY half) FROM pc'),
	('SELECT percentile_disc(ARRAY[0, 0.3, 0.5, 1]) WITHIN GROUP (ORDER BY few) FROM pc'),
	('SELECT percentile_disc(ARRAY[0, 0.1, 0.4, 0.9, 1]) WITHIN GROUP (ORDER BY skew), percentile_cont(0.5) WITHIN GROUP (ORDER BY sorted) FROM pc'),
	('SELECT percentile_disc(ARRAY[0, 0.0005, 0.0015, 0.5, 0.9995, 1]) WITHIN GROUP (ORDER BY odd) FROM pc'),
	('SELECT percentile_disc(ARRAY[0, 0.33, 0.34, 0.5, 0.67, 1]) WITHIN GROUP (ORDER BY far) FROM pc'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FILTER (WHERE few <> 3), mode() WITHIN GROUP (ORDER BY few) FROM pc'),
	('SELECT mode() WITHIN GROUP (ORDER BY w % 150001 * 1000000007 - 99999999999), mode() WITHIN GROUP (ORDER BY sqrt(w) - 300 DESC) FROM pc'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w), count(DISTINCT half), count(DISTINCT w) FROM pc'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM pc WHERE id < 100000'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM pc WHERE id < 0'),
	('SELECT few, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM pc GROUP BY ROLLUP (few)');
SELECT pg_temp.by_chunks(q) FROM chunk_queries LIMIT 1;
SELECT pg_temp.same_as_core(q), q FROM chunk_queries;
-- more chunks than there is memory for, and ranks whose chunks exceed it
SET hash_mem_multiplier = 1;
SET work_mem = '64kB';
SELECT pg_temp.same_as_core(q), q FROM chunk_queries WHERE q !~ 'ROLLUP';
SET work_mem = '512kB';
SELECT pg_temp.by_chunks(q) FROM chunk_queries LIMIT 1;
SELECT pg_temp.same_as_core(q), q FROM chunk_queries WHERE q !~ 'ROLLUP|DISTINCT';
SET work_mem = '64kB';
SELECT pg_temp.same_as_core('SELECT percentile_disc(ARRAY[0, 0.3, 0.5, 1]) WITHIN GROUP (ORDER BY w + g) FROM pc, generate_series(1, 5) g');
RESET work_mem;
RESET hash_mem_multiplier;
-- the leader alone, and workers alone
SET max_parallel_workers = 0;
SELECT pg_temp.same_as_core(q) FROM chunk_queries LIMIT 1;
RESET max_parallel_workers;
SET parallel_leader_participation = off;
SELECT pg_temp.same_as_core(q) FROM chunk_queries LIMIT 1;
RESET parallel_leader_participation;
-- a Gather that is executed several times, and a cursor that stops
SET enable_material = off;
SET gpuagg.require = 'require';
SELECT g, (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM pc WHERE id % g = 0) AS median FROM unnest(ARRAY[1, 2, 1]) g;
BEGIN;
DECLARE c CURSOR FOR SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM pc;
FETCH c;
CLOSE c;
COMMIT;
\set SHOW_CONTEXT never
-- an error in a value
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY 1000 / (id - 440000)) FROM pc;
DROP TABLE chunk_queries;
DROP VIEW pc;
DROP TABLE chunks;
DROP FUNCTION wait_for_others;
