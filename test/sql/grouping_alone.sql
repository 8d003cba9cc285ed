-- grouping without aggregates: GROUP BY, SELECT DISTINCT, UNION
SET gpuagg.replace_builtin = on;
CREATE TABLE alone AS SELECT i % 7 AS k, (i % 13)::text AS s, i % 5 AS v, (i % 11)::numeric / 2 AS n,
	CASE WHEN i % 3 = 0 THEN NULL ELSE i % 4 END AS z, i::float8 AS f FROM generate_series(1, 5000) i;
INSERT INTO alone VALUES (1, 'x', 1, '1.0', 1, 'NaN'), (1, 'x', 1, '1.00', 1, 'NaN'), (1, 'x', 1, 'NaN', 1, '-0');
VACUUM ANALYZE alone;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT k FROM alone GROUP BY k',
	'SELECT k + 1 AS a, s FROM alone GROUP BY k + 1, s',
	'SELECT k FROM alone GROUP BY k HAVING k > 3',
	'SELECT z FROM alone GROUP BY z ORDER BY z DESC NULLS FIRST',
	'SELECT k FROM alone WHERE false GROUP BY k',
	'SELECT DISTINCT k FROM alone',
	'SELECT DISTINCT k, s FROM alone ORDER BY s, k',
	'SELECT DISTINCT n::text, z FROM alone WHERE v > 2',
	'SELECT DISTINCT n FROM alone WHERE n > 1',
	'SELECT DISTINCT f FROM alone',
	'SELECT DISTINCT 1 AS one, k FROM alone',
	'SELECT DISTINCT k AS a, k AS b FROM alone',
	'SELECT DISTINCT * FROM alone',
	'SELECT DISTINCT lower(s) AS l, v FROM alone',
	'SELECT DISTINCT ARRAY[k] AS a FROM alone',
	'SELECT DISTINCT k, count(*) AS c FROM alone GROUP BY k',
	'SELECT DISTINCT count(*) AS c FROM alone GROUP BY k',
	'SELECT DISTINCT unnest(ARRAY[1, 2, k]) AS u FROM alone',
	'SELECT DISTINCT a.k, b.v FROM alone a JOIN alone b ON a.f = b.f',
	'SELECT DISTINCT k FROM alone WHERE false',
	'SELECT count(*) FROM (SELECT DISTINCT k, s FROM alone) x',
	'SELECT DISTINCT k, x FROM alone, LATERAL (SELECT DISTINCT v + k AS x FROM alone b WHERE b.f = alone.f) y',
	'SELECT k, s FROM alone UNION SELECT v, ''a'' FROM alone ORDER BY 1 DESC, 2',
	'SELECT k FROM alone UNION (SELECT v FROM alone EXCEPT SELECT 2)',
	'SELECT k FROM alone UNION ALL SELECT 1 FROM alone WHERE k = 9 UNION SELECT 99',
	'(SELECT k FROM alone UNION SELECT 50) UNION ALL SELECT 1',
	'SELECT k FROM alone UNION SELECT n FROM alone UNION SELECT NULL',
	'SELECT k FROM alone WHERE v = 1 UNION ALL (SELECT v FROM alone UNION SELECT k FROM alone)',
	'(SELECT k AS x, s FROM alone UNION SELECT v, ''a'' FROM alone) EXCEPT (SELECT 1, ''a'' UNION SELECT 2, ''b'') ORDER BY x, s',
	'(SELECT k FROM alone UNION SELECT v FROM alone) INTERSECT ALL (SELECT v + 1 FROM alone UNION ALL (SELECT 1 UNION SELECT 3))',
	'WITH c AS (SELECT 7 AS q) SELECT q FROM c UNION ALL (SELECT q + 0.5 FROM c UNION SELECT k FROM alone) UNION ALL (SELECT 1 UNION SELECT q FROM c)',
	'SELECT x, (SELECT sum(y) FROM (SELECT x AS y UNION ALL (SELECT x + 1 UNION SELECT v FROM alone WHERE k = x)) z) FROM (VALUES (1), (2)) a(x)',
	'SELECT 1 UNION (SELECT 2 UNION ALL (SELECT 2 UNION SELECT 3))',
	'WITH c AS (SELECT 7 AS q) SELECT q FROM c UNION (WITH d AS (SELECT q + 2 AS z FROM c) SELECT z FROM d)',
	'WITH c AS (SELECT 2 AS q) SELECT k FROM alone UNION SELECT q FROM c ORDER BY 1 LIMIT (SELECT q FROM c)',
	'WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n % 5 + 1 FROM (SELECT n FROM r UNION SELECT 3) x) SELECT * FROM r',
	'SELECT * FROM (VALUES (1), (2)) a(x), LATERAL (SELECT a.x UNION SELECT 5 UNION SELECT a.x + 1) b(y)',
	'SELECT (SELECT sum(x) FROM (SELECT o.v AS x UNION SELECT i.v FROM alone i WHERE i.k = o.k UNION SELECT 1) y) AS t
		FROM (SELECT DISTINCT v, k FROM alone WHERE k < 2 AND v < 2) o']) q;

-- values that are equal in the type or collation of an inner UNION, and different in that of the outer one
CREATE COLLATION alone_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT count(*) FROM (SELECT lower(s COLLATE alone_case) FROM alone UNION SELECT upper(s COLLATE alone_case) FROM alone
	UNION SELECT 'y' COLLATE "C") x;

-- queries that are not taken
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT DISTINCT count(*) OVER (PARTITION BY k) AS c FROM alone',
	'SELECT 1 AS one HAVING true',
	'SELECT k, grouping(k) AS g FROM alone GROUP BY k',
	'SELECT k, count(*) AS n, (SELECT grouping(k)) AS g FROM alone GROUP BY k',
	'SELECT k FROM alone GROUP BY k HAVING grouping(k) = 0',
	'SELECT k FROM alone UNION ALL SELECT v FROM alone']) q;

-- plans: sorted input, in parallel, and off by default
SET enable_hashagg = off;
SET enable_seqscan = off;
CREATE INDEX alone_k ON alone (k);
SET gpuagg.require = 'require';
SELECT DISTINCT k FROM alone ORDER BY k LIMIT 3;
RESET enable_seqscan;
RESET enable_hashagg;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same_as_core('SELECT DISTINCT k, s FROM alone'), pg_temp.same_as_core('SELECT k, s FROM alone UNION SELECT v, ''u'' FROM alone');
SET work_mem = '64kB';
SELECT pg_temp.same_as_core('SELECT DISTINCT f, s FROM alone');
RESET work_mem;
RESET gpuagg.require;
SET gpuagg.replace_builtin = off;
CREATE FUNCTION alone_scans(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	scans int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		scans := scans + (line LIKE '%(GpuAgg)%')::int;
	END LOOP;
	RETURN scans;
END $$;
SELECT alone_scans('SELECT DISTINCT k FROM alone'), alone_scans('SELECT k FROM alone UNION SELECT v FROM alone');
SET gpuagg.replace_builtin = on;
SET enable_hashagg = off;
SET enable_sort = off;
SELECT alone_scans('SELECT DISTINCT k FROM alone');
SET gpuagg.require = 'forbid';
SELECT alone_scans('SELECT DISTINCT k FROM alone'), alone_scans('SELECT k FROM alone UNION SELECT v FROM alone');
RESET gpuagg.require;
RESET enable_hashagg;
RESET enable_sort;

-- at most as many arms of UNION as the planner can process in a short time
SET gpuagg.replace_builtin = on;
SET gpuagg.require = 'require';
SELECT n, alone_scans(string_agg('SELECT ' || i || ', ''a''', ' UNION ')) FROM unnest(ARRAY[300, 301]) n, generate_series(1, n) i
	GROUP BY n ORDER BY n;
RESET gpuagg.require;

-- views, prepared statements, cursors
CREATE VIEW alone_view AS SELECT k FROM alone UNION SELECT v + 100 FROM alone;
SELECT sum(k) FROM alone_view;
PREPARE alone_statement(int) AS SELECT k FROM alone WHERE k < $1 UNION SELECT $1 ORDER BY 1;
EXECUTE alone_statement(1);
EXECUTE alone_statement(2);
BEGIN;
DECLARE alone_cursor SCROLL CURSOR FOR SELECT k FROM alone UNION SELECT 9 ORDER BY k;
FETCH 3 FROM alone_cursor;
FETCH BACKWARD 2 FROM alone_cursor;
MOVE LAST IN alone_cursor;
FETCH ALL FROM alone_cursor;
COMMIT;
DROP TABLE alone CASCADE;
DROP FUNCTION alone_scans;
DROP COLLATION alone_case;
RESET ALL;
