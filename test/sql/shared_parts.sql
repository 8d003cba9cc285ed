-- Participants of a parallel plan exchange many groups: as rows in shared memory, in files if one participant's memory
-- is exceeded, and again after a rescan.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE parts AS SELECT nullif(i * 7919::bigint % 90021, 5)::int AS k, (i % 3)::int2 AS s, i AS v, (i % 1000)::numeric / 100 AS n, i::text AS t
FROM generate_series(1, 200000) i;
ALTER TABLE parts SET (parallel_workers = 3);
VACUUM ANALYZE parts;
CREATE VIEW few AS SELECT k, count(*) AS c, sum(v) AS sv, min(v) AS mi, max(n) AS ma, avg(v) AS av, sum(n) AS sn FROM parts GROUP BY k;
CREATE VIEW two AS SELECT k, s, count(*) AS c, stddev(v) AS dv FROM parts GROUP BY k, s;
CREATE VIEW texts AS SELECT t, k, count(*) AS c FROM parts GROUP BY t, k;
CREATE FUNCTION sums() RETURNS TABLE (name text, n bigint, sum text) LANGUAGE plpgsql AS $$
DECLARE v text;
BEGIN
	FOREACH v IN ARRAY ARRAY['few', 'two', 'texts'] LOOP
		RETURN QUERY EXECUTE format('SELECT %L, count(*), sum(hashtextextended(x::text, 0)::numeric)::text FROM %I x', v, v);
	END LOOP;
END $$;
SET gpuagg.enabled = off;
CREATE TABLE wanted AS SELECT * FROM sums();
SET gpuagg.enabled = on;
SET gpuagg.require = 'require';
EXPLAIN (COSTS OFF) SELECT count(*), sum(hashtextextended(x::text, 0)::numeric)::text FROM few x;
SET work_mem = '64MB';
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '1MB';
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '64kB';
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '64MB';
-- a Gather that is executed three times
SET enable_material = off;
SET gpuagg.require = 'allow';
SELECT g, (SELECT count(*) FROM (SELECT k, count(*) AS c FROM parts GROUP BY k OFFSET 0) x WHERE c >= g) AS n FROM generate_series(1, 3) g;
DROP VIEW few, two, texts;
DROP FUNCTION sums;
DROP TABLE parts, wanted;
