-- Participants of a parallel plan merge the values of ordered sets, grouping sets, and states of fallback aggregates in partitions.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE po AS SELECT i AS id, i % 3 AS few, i * 7919::bigint % 20011 AS many, nullif(i * 31 % 50000, 7)::int8 AS w, (i * 37 % 1009)::float8 / 8 AS f,
	('text ' || i % 30000)::text AS t, round((i % 9000)::numeric / 8, 1 + i % 3) AS n, i % 5 = 0 AS b, make_interval(secs => i % 1000) AS iv
FROM generate_series(1, 90000) i;
INSERT INTO po VALUES (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, NULL, NULL, 1, 'NaN', '1', '1.0', true, '1 day'),
	(0, NULL, NULL, 1, '-0', '1', 'NaN', false, '-1 day');
ALTER TABLE po SET (parallel_workers = 3);
VACUUM ANALYZE po;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
-- Whether the participants of a query have merged partitions, in one of ten runs. They do not if one of them has read nearly all rows.
CREATE FUNCTION pg_temp.merges_parts(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	scan jsonb;
BEGIN
	FOR try IN 1 .. 10 LOOP
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT json, TIMING off) ' || query INTO plan;
		scan := jsonb_path_query_first(plan, '$.** ? (@."Custom Plan Provider" == "GpuAgg")');
		IF scan ? 'Merged Parts' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;

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
	('SELECT t, many, sum(iv), avg(iv), sum(n) FROM po GROUP BY t, many');
SELECT pg_temp.same_as_core(q), q FROM ordered_queries;
SELECT count(*) > 8 AS merge_parts FROM ordered_queries WHERE pg_temp.merges_parts(q);
-- with little memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q), q FROM ordered_queries WHERE q ~ 'BY few$|t, few$|ROLLUP \(many, few\)$|ROLLUP \(t, b\)$';
SELECT bool_or(pg_temp.merges_parts(q)) AS merge_parts FROM ordered_queries WHERE q ~ 't, few$|ROLLUP \(many, few\)$';
RESET work_mem;
RESET hash_mem_multiplier;
-- the leader alone, and workers alone
SET max_parallel_workers = 0;
SELECT pg_temp.merges_parts(q), pg_temp.same_as_core(q) FROM ordered_queries WHERE q ~ 'ROLLUP \(many, few\)|mode.*t, few';
RESET max_parallel_workers;
SET parallel_leader_participation = off;
SELECT pg_temp.same_as_core(q) FROM ordered_queries WHERE q ~ 'ROLLUP|mode';
RESET parallel_leader_participation;
-- one group has all values, and one participant merges them; so does that of few groups
SELECT pg_temp.same_as_core(q), pg_temp.merges_parts(q) FROM unnest(ARRAY[
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
SELECT many, percentile_disc(0.5) WITHIN GROUP (ORDER BY 1000 / (id - 70000)) FROM po GROUP BY many;
RESET gpuagg.require;
DROP TABLE ordered_queries, po;
