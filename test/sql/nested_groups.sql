-- groups of groups: the outer scan reads the inner one's groups by columns
SET gpuagg.replace_builtin = on;
CREATE TABLE nested AS SELECT i, i % 1000 AS k, (i % 7)::smallint AS v, 't' || i % 300 AS s, (i % 11)::numeric / 4 AS n,
	CASE WHEN i % 3 = 0 THEN NULL ELSE i % 50 END AS z, (i % 17)::float8 / 8 AS f, date '2020-01-01' + i % 400 AS d
	FROM generate_series(1, 20000) i;
INSERT INTO nested VALUES (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, -1, -1, '', 'NaN', 1, 'NaN', 'infinity'), (0, -1, 3, '', '1.000', 1, '-0', '-infinity');
VACUUM ANALYZE nested;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include

-- how the plan reads groups: how many feeds by columns, and how many by tuples
CREATE FUNCTION nested_feeds(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	columns int := 0;
	tuples int := 0;
BEGIN
	SET LOCAL gpuagg.require = 'require';
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		columns := columns + (line LIKE '%groups of%')::int;
		tuples := tuples + (line LIKE '%tuples from%')::int;
	END LOOP;
	RETURN format('%s by columns, %s by tuples', columns, tuples);
END $$;
CREATE TABLE nested_queries (q text);
INSERT INTO nested_queries VALUES
	('SELECT c, count(*) AS m FROM (SELECT k, count(*) AS c FROM nested GROUP BY k) x GROUP BY c'),
	('SELECT avg(t) AS a, sum(t) AS b, min(k), max(t) FROM (SELECT k, sum(v) AS t FROM nested GROUP BY k) x'),
	('SELECT avg(t) AS a, sum(t) AS b, min(t), max(t), count(t) FROM (SELECT k, sum(i::int8) AS t FROM nested GROUP BY k) x'),
	('SELECT avg(t) AS a, sum(t) AS b, max(u), stddev(w) FROM (SELECT s, sum(n) AS t, avg(n) AS u, avg(v) AS w FROM nested GROUP BY s) x'),
	('SELECT count(*) AS c FROM (SELECT k, sum(v), max(s) FROM nested GROUP BY k) x'),
	('SELECT count(*) AS c FROM (SELECT DISTINCT s, z FROM nested) x'),
	('SELECT count(*) AS c, count(z) AS e, count(s) AS g FROM (SELECT DISTINCT s, z, f FROM nested) x'),
	('SELECT c + 1 AS e, count(*) AS m, sum(k + c) AS t FROM (SELECT k, count(*) * 2 AS c FROM nested GROUP BY k OFFSET 0) x WHERE c > 39 GROUP BY c + 1'),
	('SELECT c, count(*) AS m, sum(k * 2 + c) AS t FROM (SELECT k, count(*) * 2 AS c FROM nested GROUP BY k) x WHERE c > k GROUP BY c'),
	('SELECT c, count(*) AS m FROM (SELECT k, count(*) AS c FROM nested GROUP BY k HAVING count(*) > 1 AND sum(v) % 3 <> 1) x GROUP BY c'),
	('SELECT c, count(*) AS m FROM (SELECT z, k, sum(v) AS c FROM nested GROUP BY z, k HAVING sum(v) > 30 AND count(*) <> 7) x GROUP BY c'),
	('SELECT count(*) AS m, sum(c) AS t FROM (SELECT f, k, sum(v) AS c, max(n) AS e FROM nested GROUP BY f, k HAVING max(f) > 1 AND min(n) < 2) x'),
	('SELECT left(s, 2) AS l, count(*) AS m, sum(c) AS t, max(s) AS g FROM (SELECT s, count(*) AS c FROM nested GROUP BY s) x GROUP BY 1'),
	('SELECT upper(s) AS l, sum(c) AS t FROM (SELECT s, k, count(*) AS c FROM nested GROUP BY s, k) x WHERE s LIKE ''t1%'' AND k > 10 GROUP BY 1'),
	('SELECT d, f, count(*) AS m, min(e), max(e) FROM (SELECT d, f, z, max(v) - min(v) AS e FROM nested GROUP BY d, f, z) x GROUP BY d, f'),
	('SELECT z IS NULL AS e, b, sum(c) AS t FROM (SELECT z, bool_or(v > 5) AS b, count(*) AS c FROM nested GROUP BY z) x GROUP BY 1, 2'),
	('SELECT t, count(*) AS m FROM (SELECT f, sum(c) AS t FROM (SELECT f, k, count(*) AS c FROM nested GROUP BY f, k) x GROUP BY f) y GROUP BY t'),
	('SELECT g, count(*) AS m, sum(h) AS t FROM (SELECT t % 5 AS g, count(*) AS h FROM (SELECT k, sum(v) AS t FROM nested GROUP BY k) x WHERE t > 3 GROUP BY 1) y GROUP BY g'),
	('SELECT h, count(*) AS m, sum(u) AS w FROM (SELECT t, count(*) AS h, max(k) AS u FROM (SELECT k, z, sum(v) AS t FROM nested GROUP BY k, z HAVING count(*) > 3 OFFSET 0) x WHERE t > 3 AND k > 2 GROUP BY t HAVING sum(k) > 100 OFFSET 0) y WHERE u < 990 GROUP BY h HAVING max(t) > 5'),
	('SELECT a, count(*) AS m FROM (SELECT k, array_agg(v ORDER BY i) AS a FROM nested WHERE i < 300 GROUP BY k) x GROUP BY a'),
	('SELECT length(a) AS l, count(*) AS m FROM (SELECT k, string_agg(s, '','' ORDER BY i) AS a, sum(v) AS t FROM nested GROUP BY k) x GROUP BY 1'),
	('SELECT sum(c) AS t, count(DISTINCT c) AS e, percentile_cont(0.5) WITHIN GROUP (ORDER BY c) AS p FROM (SELECT k, count(*) AS c FROM nested GROUP BY k) x'),
	('SELECT string_agg(s, ''-'' ORDER BY s) AS l, sum(c) AS t FROM (SELECT s, count(*) AS c FROM nested WHERE k < 20 GROUP BY s) x'),
	('SELECT g, sum(c) AS t FROM (SELECT k, z, GROUPING(k) AS g, count(*) AS c FROM nested GROUP BY CUBE (k, z)) x GROUP BY g'),
	('SELECT k % 3 AS e, c, count(*) FILTER (WHERE t > 60) AS m FROM (SELECT k, count(*) AS c, sum(v) AS t FROM nested GROUP BY k) x GROUP BY ROLLUP (1, 2)'),
	('SELECT count(*) AS m, sum(c) AS t FROM (SELECT k, count(*) AS c FROM nested GROUP BY k ORDER BY c DESC, k LIMIT 10) x'),
	('SELECT c, count(*) AS m FROM (SELECT k, count(*) AS c FROM nested GROUP BY k UNION ALL SELECT v, count(*) FROM nested GROUP BY v UNION ALL SELECT z, 1 FROM nested) x GROUP BY c'),
	('SELECT c + 0 AS e, count(*) AS m FROM (SELECT k, count(*) AS c FROM nested GROUP BY k UNION ALL SELECT v, count(*) FROM nested WHERE i > 7 GROUP BY v) x GROUP BY 1'),
	('SELECT s, sum(c) AS m FROM (SELECT s, 1 AS c FROM nested UNION ALL SELECT s, count(*) FROM nested GROUP BY s UNION ALL SELECT ''q'', k FROM nested) x GROUP BY s'),
	('SELECT DISTINCT c FROM (SELECT k, count(*) AS c FROM nested GROUP BY k) x'),
	('SELECT count(*) AS m FROM (SELECT k, s FROM nested INTERSECT SELECT k + 1, s FROM nested) x'),
	('SELECT count(*) AS m FROM (SELECT k FROM nested UNION SELECT z FROM nested) x WHERE k > 3'),
	('SELECT o.k, (SELECT sum(t) FROM (SELECT v, sum(z) + o.k AS t FROM nested n WHERE n.k = o.k GROUP BY v) x WHERE t > o.k) AS e FROM nested o WHERE i BETWEEN 1 AND 30'),
	('SELECT o.k, (SELECT sum(t) FROM (SELECT v, count(*) + o.k AS t FROM nested n GROUP BY v HAVING sum(z) > o.k * 100) x WHERE t > o.k) AS e FROM nested o WHERE i BETWEEN 1 AND 5'),
	('SELECT sum(t) AS t FROM (SELECT k, (SELECT max(z) FROM nested n WHERE n.i = k) AS t FROM nested GROUP BY k) x'),
	('SELECT count(*) AS m, count(x.*) AS e FROM (SELECT k, sum(v) FROM nested GROUP BY k) x'),
	('SELECT CASE WHEN c > 20 THEN NULL ELSE c END AS e, coalesce(t, -1) AS t, count(*) AS m FROM (SELECT z, count(*) AS c, sum(v) FILTER (WHERE v > 5) AS t FROM nested GROUP BY z, k) x GROUP BY 1, 2'),
	('SELECT count(*) AS m FROM (SELECT k FROM nested WHERE false GROUP BY k) x'),
	('SELECT sum(c) AS m FROM (SELECT count(*) AS c FROM nested) x'),
	('SELECT sum(c) AS m FROM (SELECT count(*) + 1 AS c FROM nested HAVING count(*) > 5 OFFSET 0) x WHERE c > 2');
SET gpuagg.require = 'require';
SELECT nested_feeds(q), pg_temp.same_as_core(q), q FROM nested_queries;
-- the same with the tuple feed, cached columns, one row in a batch, little memory
SET gpuagg.feed = 'tuples';
SELECT DISTINCT nested_feeds(q) LIKE '0 by columns%' AS by_tuples, pg_temp.same_as_core(q) ~ 'missing' AS differs FROM nested_queries;
RESET gpuagg.feed;
SELECT DISTINCT pg_temp.same_as_core(q) ~ 'missing' AS differs FROM nested_queries;
SET gpuagg.batch_rows = 1024;
SET work_mem = '64kB';
SELECT DISTINCT pg_temp.same_as_core(q) ~ 'missing' AS differs FROM nested_queries;
RESET gpuagg.batch_rows;
RESET work_mem;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
SELECT DISTINCT pg_temp.same_as_core(q) ~ 'missing' AS differs FROM nested_queries;
SET max_parallel_workers = 0;
SELECT DISTINCT pg_temp.same_as_core(q) ~ 'missing' AS differs FROM nested_queries;
RESET max_parallel_workers;
SET max_parallel_workers_per_gather = 0;

-- what EXPLAIN shows, and how many rows each node had
SET gpuagg.engine = 'cpu';
CREATE FUNCTION nested_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
		IF line ~ 'GpuAgg|Scan on|Append|Feed|Removed|Filter|Input Rows|Groups' THEN
			line := regexp_replace(regexp_replace(line, 'rows=(\d+)\.00', 'rows=\1'), '(column cache|GPU memory) \(.*\), ', '');
			RETURN NEXT regexp_replace(line, '"[*]SELECT[*] 2"|unnamed_subquery_1', 'arm');
		END IF;
	END LOOP;
END $$;
SELECT nested_plan('SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM nested GROUP BY k) x GROUP BY c');
SELECT nested_plan('SELECT sum(c) FROM (SELECT k, count(*) AS c FROM nested GROUP BY k HAVING sum(v) > 60 OFFSET 0) x WHERE k > 500');
SELECT nested_plan('SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM nested GROUP BY k OFFSET 0) x WHERE k > 500 GROUP BY c');
SELECT nested_plan('SELECT c, count(*) FROM (SELECT * FROM (SELECT k, count(*) * 2 AS c FROM nested GROUP BY k) y WHERE c > k UNION ALL SELECT v, count(*) FROM nested GROUP BY v) x GROUP BY c');
SELECT nested_plan('SELECT count(*) FROM (SELECT DISTINCT s FROM nested) x');
RESET gpuagg.engine;

-- errors that core raises, also in values that are not used
SELECT sum(c) FROM (SELECT k, 1 / (count(*) - 20) AS c, sum(v) AS t FROM nested GROUP BY k OFFSET 0) x WHERE t > 1000000;
SELECT sum(t) FROM (SELECT k, 1 / (count(*) - 20) AS c, sum(v) AS t FROM nested GROUP BY k OFFSET 0) x;
SELECT sum(t) FROM (SELECT k, sum(v) AS t, count(*) AS c FROM nested GROUP BY k OFFSET 0) x WHERE 1 / (c - 20) > 0;
SELECT sum(c * 1000000000) FROM (SELECT k, count(*) * 5000000000 AS c FROM nested GROUP BY k) x;
SELECT sum(q) FROM (SELECT k, 100 / k AS q FROM nested GROUP BY k HAVING k > 0) x;
SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM nested GROUP BY k OFFSET 0) x WHERE k <> 0 AND 100 / k > 3;

-- functions of users, volatile functions and subplans are called as core calls them
CREATE FUNCTION nested_noise(x int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'called with %', x; RETURN x; END $$;
SELECT sum(e), max(e + 1) FROM (SELECT v, nested_noise(count(*)) AS e FROM nested WHERE v = 3 GROUP BY v) x;
CREATE SEQUENCE nested_numbers;
SELECT count(*), max(e) FROM (SELECT k, nextval('nested_numbers') AS e FROM nested GROUP BY k) x;
SELECT last_value FROM nested_numbers;

-- rescans that keep groups, a LIMIT above, cursors, parameters
SELECT a, (SELECT sum(t) FROM (SELECT v, count(*) AS t FROM nested GROUP BY v) x WHERE t > a OR v > 2) FROM generate_series(1, 6000, 2500) a;
SELECT a, (SELECT sum(t) FROM (SELECT v, count(*) AS t FROM nested GROUP BY v HAVING count(*) > a) x) FROM generate_series(1, 6000, 2500) a;
SELECT * FROM (SELECT c, count(*) AS m FROM (SELECT k, count(*) AS c FROM nested GROUP BY k) x GROUP BY c) y ORDER BY c LIMIT 1;
PREPARE nested_statement(int) AS SELECT c + $1 AS e, count(*) FROM (SELECT k, count(*) + $1 AS c FROM nested GROUP BY k OFFSET 0) x WHERE k > $1 GROUP BY 1 ORDER BY 1;
SET plan_cache_mode = force_generic_plan;
EXECUTE nested_statement(1);
EXECUTE nested_statement(900);
RESET plan_cache_mode;
BEGIN;
DECLARE nested_cursor NO SCROLL CURSOR FOR SELECT c, count(*) FROM (SELECT k, v, count(*) AS c FROM nested GROUP BY k, v) x GROUP BY c ORDER BY c;
FETCH 2 FROM nested_cursor;
FETCH ALL FROM nested_cursor;
COMMIT;
-- columns that were dropped, and rows that were updated, below the groups
ALTER TABLE nested DROP COLUMN d;
UPDATE nested SET v = v + 1 WHERE k = 5;
SELECT pg_temp.same_as_core('SELECT v, c, count(*) AS m FROM (SELECT k, v, count(*) AS c FROM nested GROUP BY k, v) x GROUP BY v, c');
DROP TABLE nested, nested_queries;
DROP SEQUENCE nested_numbers;
DROP FUNCTION nested_noise, nested_plan, nested_feeds;
RESET ALL;
