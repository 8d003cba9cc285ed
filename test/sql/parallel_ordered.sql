-- Participants of a parallel plan merge the values of ordered sets, grouping sets, and states of fallback aggregates in partitions.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION pg_temp.rows_of(n int) RETURNS TABLE (id int, few int, many int8, w int8, f float8, t text, n numeric, b bool, iv interval) LANGUAGE sql AS $$
	SELECT i, i % 3, i * 7919::bigint % (n / 3 + 1), nullif(i * 31 % 50000, 7)::int8, (i * 37 % 1009)::float8 / 8, ('text ' || i * 7 % (n / 2))::text,
		round((i % 9000)::numeric / 8, 1 + i % 3), i % 5 = 0, make_interval(secs => i % 1000)
	FROM generate_series(1, n) i;
$$;
CREATE TABLE few_rows AS SELECT * FROM pg_temp.rows_of(4000);
INSERT INTO few_rows VALUES (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, NULL, NULL, 1, 'NaN', '1', '1.0', true, '1 day'),
	(0, NULL, NULL, 1, '-0', '1', 'NaN', false, '-1 day');
CREATE TABLE many_rows AS SELECT * FROM pg_temp.rows_of(30000);
ALTER TABLE few_rows SET (parallel_workers = 3);
ALTER TABLE many_rows SET (parallel_workers = 3);
VACUUM ANALYZE few_rows;
VACUUM ANALYZE many_rows;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/merges_parts.sql'
\i :include
CREATE VIEW po AS SELECT * FROM few_rows WHERE id % 400 <> 3 OR wait_for_others();
CREATE VIEW pl AS SELECT * FROM many_rows WHERE id % 2000 <> 3 OR wait_for_others();
\set include :srcdir '/include/same_as_core.sql'
\i :include

CREATE TABLE ordered_queries (q text);
INSERT INTO ordered_queries VALUES
	('SELECT few, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM po GROUP BY few'),
	('SELECT many, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), stddev(id), count(*) FROM po GROUP BY many'),
	('SELECT few, b, percentile_disc(ARRAY[0, 0.25, NULL, 1]) WITHIN GROUP (ORDER BY w DESC), percentile_cont(0.9) WITHIN GROUP (ORDER BY f) FROM po GROUP BY few, b'),
	('SELECT many, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM po GROUP BY many'),
	('SELECT few, percentile_disc(0.3) WITHIN GROUP (ORDER BY t), mode() WITHIN GROUP (ORDER BY w) FROM po GROUP BY few'),
	('SELECT t, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FILTER (WHERE b), max(t) FROM po GROUP BY t'),
	('SELECT t, few, mode() WITHIN GROUP (ORDER BY many), sum(id) FROM po GROUP BY t, few'),
	('SELECT round(n, 3), mode() WITHIN GROUP (ORDER BY t) FROM po GROUP BY n'),
	('SELECT many, percentile_cont(many % 11 / 10.0) WITHIN GROUP (ORDER BY f) FROM po GROUP BY many HAVING count(*) > 1');
INSERT INTO ordered_queries VALUES
	('SELECT many, few, count(*), sum(id), grouping(many, few) FROM po GROUP BY ROLLUP (many, few)'),
	('SELECT t, few, b, count(*), avg(id), max(t) FROM po GROUP BY CUBE (t, few, b)'),
	('SELECT t, many, sum(n), count(*) FROM po GROUP BY GROUPING SETS ((t), (many), (t, many), (), (t))'),
	('SELECT many, w, stddev(id), min(t) FROM po GROUP BY GROUPING SETS ((many), (w), (few)) HAVING count(*) > 2'),
	('SELECT t, b, percentile_disc(0.5) WITHIN GROUP (ORDER BY w), count(*) FROM po GROUP BY ROLLUP (t, b)'),
	('SELECT many, few, b, sum(iv) FROM po GROUP BY ROLLUP (many, few, b)'),
	('SELECT t, few, count(DISTINCT w), sum(id) FROM po GROUP BY ROLLUP (t, few)'),
	('SELECT many, few, count(DISTINCT t), sum(DISTINCT n), percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM po GROUP BY GROUPING SETS ((many), (few), ())'),
	('SELECT many, count(DISTINCT f), mode() WITHIN GROUP (ORDER BY few) FROM po GROUP BY many'),
	('SELECT t, many, sum(iv), avg(iv), sum(n) FROM po GROUP BY t, many');
-- groups and values are in shared memory
CREATE TABLE large_queries (q text);
INSERT INTO large_queries VALUES
	('SELECT many, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), stddev(id), count(*) FROM pl GROUP BY many'),
	('SELECT many, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM pl GROUP BY many'),
	('SELECT id, count(*), max(t) FROM pl GROUP BY ROLLUP (id)');
SELECT pg_temp.same_as_core(q), q FROM large_queries;
SELECT count(*) AS merge_parts FROM (SELECT FROM large_queries WHERE pg_temp.merges_parts(q) LIMIT 2) x;
-- more than eight sections of groups and values
SELECT pg_temp.merges_parts(q), pg_temp.same_as_core(q) FROM unnest(ARRAY['SELECT few, b, w % 3 AS c, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), count(*) FROM pl GROUP BY CUBE (few, b, c)']) q;
SET gpuagg.batch_rows = 256;
-- with little memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q), q FROM ordered_queries WHERE q ~ 't, few|BY few|few, b\)|count\(DISTINCT f|GROUPING|BY n\)';
SELECT EXISTS (SELECT FROM ordered_queries WHERE q ~ 't, few\)?$' AND pg_temp.merges_parts(q)) AS merge_parts;
RESET work_mem;
RESET hash_mem_multiplier;
-- the leader alone, and workers alone
SET max_parallel_workers = 0;
SELECT pg_temp.merges_parts(q, 1), pg_temp.same_as_core(q) FROM ordered_queries WHERE q ~ 'ROLLUP \(many, few\)|mode.*t, few';
RESET max_parallel_workers;
SET parallel_leader_participation = off;
SELECT pg_temp.same_as_core(q) FROM ordered_queries WHERE q ~ 'ROLLUP \(t, few|mode';
RESET parallel_leader_participation;
-- one group has all values, and one participant merges them; so does that of few groups
SELECT pg_temp.same_as_core(q), pg_temp.merges_parts(q, 1) FROM unnest(ARRAY[
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY t) FROM po',
	'SELECT few, b, count(*) FROM po GROUP BY CUBE (few, b)']) q;
-- a Gather that is executed three times
SET enable_material = off;
SET gpuagg.require = 'require';
SELECT g, (SELECT count(m) FROM (SELECT many, few, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) AS m FROM po WHERE id % g = 0
	GROUP BY ROLLUP (many, few) OFFSET 0) x WHERE m >= g) AS n
FROM unnest(ARRAY[1, 1000, 2]) g;
-- a cursor that ends in the middle, and a LIMIT
BEGIN;
DECLARE c CURSOR FOR SELECT many, few, count(*), mode() WITHIN GROUP (ORDER BY w) FROM po GROUP BY ROLLUP (many, few);
MOVE 10 FROM c;
CLOSE c;
COMMIT;
SELECT count(*) FROM (SELECT many, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM po GROUP BY many LIMIT 3) x;
\set SHOW_CONTEXT never
-- an error in a value
SELECT many, percentile_disc(0.5) WITHIN GROUP (ORDER BY 1000 / (id - 4000)) FROM po GROUP BY many;
RESET gpuagg.require;
DROP TABLE ordered_queries, large_queries;
DROP VIEW po, pl;
DROP TABLE few_rows, many_rows;
DROP FUNCTION wait_for_others;
