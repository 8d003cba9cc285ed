-- Participants of a parallel plan merge many distinct values in partitions, and then the groups.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE pd_rows AS SELECT i AS id, i % 3 AS few, i * 7919::bigint % 12007 AS many, i % 24000 AS v, nullif(i * 31 % 20000, 7)::int8 AS w,
	(i % 28000)::text AS t, (i % 32000)::numeric / 8 AS n, i % 5 = 0 AS b FROM generate_series(1, 32000) i;
INSERT INTO pd_rows VALUES (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, NULL, NULL, 1, 1, '1', '1.0', true), (0, NULL, NULL, 1, 1, '1', '1.00', false);
ALTER TABLE pd_rows SET (parallel_workers = 3);
VACUUM ANALYZE pd_rows;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/merges_parts.sql'
\i :include
CREATE VIEW pd AS SELECT * FROM pd_rows WHERE id % 2000 <> 3 OR wait_for_others();
\set include :srcdir '/include/same_as_core.sql'
\i :include

CREATE TABLE queries (q text);
INSERT INTO queries VALUES
	('SELECT count(DISTINCT id) FROM pd'),
	('SELECT count(DISTINCT v), count(DISTINCT t), count(DISTINCT n), count(*), sum(id) FROM pd'),
	('SELECT count(DISTINCT v) FILTER (WHERE b), sum(DISTINCT v), sum(v) FILTER (WHERE NOT b) FROM pd'),
	('SELECT few, count(DISTINCT v), count(DISTINCT w), avg(id) FROM pd GROUP BY few'),
	('SELECT few, b, count(DISTINCT t), max(t) FROM pd GROUP BY few, b'),
	('SELECT many, count(DISTINCT v), sum(DISTINCT w), min(t), count(*) FROM pd GROUP BY many'),
	('SELECT many, count(DISTINCT t) FILTER (WHERE b) FROM pd GROUP BY many'),
	('SELECT t, count(DISTINCT w), count(DISTINCT few) FROM pd GROUP BY t'),
	('SELECT v, count(DISTINCT v), count(DISTINCT v % 2) FROM pd GROUP BY v HAVING count(DISTINCT v) = 1 AND sum(id) > 100'),
	('SELECT count(DISTINCT n), sum(DISTINCT n), gpu_histogram(DISTINCT v, 0, 24000, 3) FROM pd'),
	('SELECT few, bool_or(DISTINCT b), variance(DISTINCT v), count(DISTINCT t) FROM pd GROUP BY few');
SELECT pg_temp.same_as_core(q), q FROM queries;
SELECT count(*) AS merge_parts FROM (SELECT FROM queries WHERE pg_temp.merges_parts(q) LIMIT 4) x;
-- values that must be sorted, and few values, are merged by one participant
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT few, md5(array_agg(DISTINCT v)::text), count(DISTINCT w) FROM pd GROUP BY few',
	'SELECT few, count(DISTINCT v % 100) FROM pd GROUP BY few']) q;
SELECT pg_temp.merges_parts('SELECT few, count(DISTINCT v % 100) FROM pd GROUP BY few', 2);
-- those of many sets are, but not of very many: participants would need too many files
SELECT 'SELECT ' || string_agg(format('count(DISTINCT v + %s)', i), ', ') || ' FROM pd' AS many_sets FROM generate_series(1, 12) i \gset
SELECT pg_temp.merges_parts(:'many_sets'), pg_temp.same_as_core(:'many_sets');
SELECT 'SELECT ' || string_agg(format('count(DISTINCT v + %s)', i), ', ') || ' FROM pd' AS many_sets FROM generate_series(1, 33) i \gset
SET gpuagg.require = 'require';
SELECT pg_temp.merges_parts(:'many_sets', 2), pg_temp.same_as_core(:'many_sets');
RESET gpuagg.require;
-- with little memory values spill before and after they are merged
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q) FROM queries WHERE q ~ 'few|FROM pd$';
SELECT count(*) AS merge_parts FROM (SELECT FROM queries WHERE q ~ 'few|FROM pd$' AND pg_temp.merges_parts(q) LIMIT 3) x;
RESET work_mem;
RESET hash_mem_multiplier;
-- the leader alone, and workers alone
SET max_parallel_workers = 0;
SELECT pg_temp.merges_parts(q, 2), pg_temp.same_as_core(q) FROM queries LIMIT 2;
RESET max_parallel_workers;
SET parallel_leader_participation = off;
SELECT pg_temp.same_as_core(q) FROM queries WHERE q ~ 'w\)';
RESET parallel_leader_participation;
-- a Gather that is executed three times; the first result exchanges values, the others may not
SET enable_material = off;
SET gpuagg.require = 'require';
SELECT g, (SELECT sum(d) FROM (SELECT few, count(DISTINCT v) AS d FROM pd WHERE id % g = 0 GROUP BY few OFFSET 0) x WHERE d >= g) AS n
FROM unnest(ARRAY[1, 1000, 2, 100000, 1]) g;
-- a cursor that ends in the middle
BEGIN;
DECLARE c CURSOR FOR SELECT many, count(DISTINCT v) FROM pd GROUP BY many;
MOVE 10 FROM c;
CLOSE c;
COMMIT;
\set SHOW_CONTEXT never
-- an error in a value, and one in the sum of distinct values
SELECT count(DISTINCT 1000 / (id - 28000)) FROM pd;
SELECT sum(DISTINCT id + 9223372036854775000) FROM pd;
RESET gpuagg.require;
DROP TABLE queries;
DROP VIEW pd;
DROP TABLE pd_rows;
DROP FUNCTION wait_for_others;
