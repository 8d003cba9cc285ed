-- Many groups leave the tables of the participants of a parallel plan before the end of their input: groups with few rows, distinct
-- values, frequent keys among rare ones, little memory, a rescan, and participants that end before others decide.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
-- a multiplication by an odd number modulo 2^40 permutes
CREATE TABLE rare AS SELECT CASE WHEN i % 4 = 0 THEN 7 WHEN i % 50021 = 1 THEN NULL ELSE (i * 668265263::bigint) % (1::bigint << 40) END AS k,
	(i * 7919 % 60013) * 1000003::bigint AS u, (i % 3)::int2 AS s, i AS v, i / 4.0::float8 AS f
FROM generate_series(1, 240000) i;
ALTER TABLE rare SET (parallel_workers = 2);
VACUUM ANALYZE rare;
CREATE VIEW groups AS SELECT k, count(*) AS c, sum(v) AS sv, min(v) AS mi, max(f) AS ma, avg(v) AS av FROM rare GROUP BY k;
CREATE VIEW pairs AS SELECT k, s, count(*) AS c, bool_or(v > 100) AS b, stddev(v) AS dv FROM rare GROUP BY k, s;
CREATE VIEW distincts AS SELECT count(DISTINCT k) AS dk, count(DISTINCT u) AS du, sum(DISTINCT u) AS su, count(*) AS c FROM rare;
CREATE VIEW by_s AS SELECT s, count(DISTINCT k) AS dk, count(DISTINCT u) AS du, count(DISTINCT k) FILTER (WHERE v % 2 = 0) AS df, sum(v) AS sv FROM rare GROUP BY s;
CREATE FUNCTION sums() RETURNS TABLE (name text, n bigint, sum text) LANGUAGE plpgsql AS $$
DECLARE v text;
BEGIN
	FOREACH v IN ARRAY ARRAY['groups', 'pairs', 'distincts', 'by_s'] LOOP
		RETURN QUERY EXECUTE format('SELECT %L, count(*), sum(hashtextextended(x::text, 0)::numeric)::text FROM %I x', v, v);
	END LOOP;
END $$;
-- whether groups leave early, in one of several executions: they do not if a participant ends before another begins
CREATE FUNCTION leave_early(query text, tries int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR t IN 1..tries LOOP
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
			IF line ~ 'Groups Exchanged Early' THEN
				RETURN true;
			END IF;
		END LOOP;
	END LOOP;
	RETURN false;
END $$;
SET gpuagg.enabled = off;
CREATE TABLE wanted AS SELECT * FROM sums();
SET gpuagg.enabled = on;
SET gpuagg.require = 'require';
SET work_mem = '64MB';
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '4MB';
SELECT leave_early('SELECT * FROM groups', 30), leave_early('SELECT * FROM pairs', 30), leave_early('SELECT * FROM distincts', 30),
	leave_early('SELECT * FROM by_s', 30);
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '1MB';
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '64kB';
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
SET work_mem = '4MB';
-- neither groups with many rows each, nor few groups, leave; nor those of which each participant has several rows that are far apart
SELECT leave_early('SELECT u % 1000, count(*) FROM rare GROUP BY 1', 2), leave_early('SELECT s, count(*) FROM rare GROUP BY s', 2),
	leave_early('SELECT hashint4(v) % 30000 * 1000003::bigint, count(*) FROM rare GROUP BY 1', 8);
SET parallel_leader_participation = off;
SELECT name, n FROM (SELECT * FROM sums() INTERSECT SELECT * FROM wanted) s ORDER BY 1;
RESET parallel_leader_participation;
-- a Gather that is executed three times
SET enable_material = off;
SET gpuagg.require = 'allow';
SELECT g, (SELECT count(*) FROM (SELECT k, count(*) AS c FROM rare GROUP BY k OFFSET 0) x WHERE c >= g) AS n FROM generate_series(1, 3) g;
SELECT g, (SELECT count(DISTINCT k) + g - g FROM rare) AS n FROM generate_series(1, 2) g;
DROP VIEW groups, pairs, distincts, by_s;
DROP FUNCTION sums, leave_early;
DROP TABLE rare, wanted;
