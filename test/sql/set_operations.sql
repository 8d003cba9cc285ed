-- INTERSECT and EXCEPT as groupings
SET gpuagg.replace_builtin = on;
CREATE TABLE setop_a AS SELECT i % 70 AS k, 't' || i % 13 AS s, i % 5 AS v, (i % 11)::numeric / 2 AS n,
	CASE WHEN i % 3 = 0 THEN NULL ELSE i % 4 END AS z, (i % 17)::float8 AS f FROM generate_series(1, 3000) i;
CREATE TABLE setop_b AS SELECT i % 90 AS k, 't' || i % 17 AS s, i % 7 AS v, (i % 13)::numeric / 2 AS n,
	CASE WHEN i % 5 = 0 THEN NULL ELSE i % 6 END AS z, (i % 23)::float8 AS f FROM generate_series(1, 2000) i;
INSERT INTO setop_b VALUES (1, 'x', 1, 'NaN', NULL, 'NaN'), (NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO setop_a VALUES (1, 'x', 1, 'NaN', NULL, 'NaN'), (NULL, NULL, NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL, NULL, NULL);
VACUUM ANALYZE setop_a, setop_b;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
SET gpuagg.require = 'require';
SELECT op, columns, pg_temp.same_as_core(format('SELECT %1$s FROM setop_a %2$s SELECT %1$s FROM setop_b', columns, op))
	FROM unnest(ARRAY['INTERSECT', 'INTERSECT ALL', 'EXCEPT', 'EXCEPT ALL']) op, unnest(ARRAY['k', 'k, s', 'z', 'f', 'k, s, v, n, z, f',
		'n', 's, z, 1 AS one', 'count(*) AS c', 'k, sum(v) AS t', 'DISTINCT z', 'lower(s) AS l, v + 1 AS w']) columns
	WHERE columns NOT LIKE '%sum%' ORDER BY 1, 2;
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT k, sum(v) AS t FROM setop_a GROUP BY k EXCEPT ALL SELECT k, sum(v) FROM setop_b GROUP BY k',
	'SELECT k FROM setop_a WHERE false INTERSECT SELECT k FROM setop_b',
	'SELECT k FROM setop_a EXCEPT SELECT k FROM setop_b WHERE false',
	'SELECT k FROM setop_a WHERE false EXCEPT ALL SELECT k FROM setop_b',
	'SELECT k FROM setop_a INTERSECT ALL SELECT k FROM setop_b ORDER BY k DESC NULLS LAST LIMIT 7 OFFSET 3',
	'SELECT k + v AS x, s FROM setop_a EXCEPT SELECT k, s FROM setop_b ORDER BY s, x',
	'SELECT v FROM setop_a INTERSECT SELECT n FROM setop_b',
	'SELECT v FROM setop_a EXCEPT ALL SELECT f FROM setop_b',
	'SELECT k FROM setop_a INTERSECT SELECT NULL',
	'SELECT k FROM setop_a INTERSECT ALL SELECT k FROM setop_b INTERSECT SELECT v FROM setop_a',
	'SELECT k FROM setop_a EXCEPT SELECT k FROM setop_b WHERE k > 20 EXCEPT SELECT v FROM setop_a',
	'SELECT k FROM setop_a EXCEPT (SELECT k FROM setop_b WHERE k > 20 EXCEPT SELECT v + 30 FROM setop_a)',
	'(SELECT k FROM setop_a UNION SELECT v FROM setop_a) INTERSECT ALL (SELECT v + 1 FROM setop_a UNION ALL (SELECT 1 UNION SELECT 3))',
	'SELECT k FROM setop_a UNION (SELECT v FROM setop_a EXCEPT SELECT 2)',
	'SELECT k FROM setop_a UNION ALL (SELECT v FROM setop_a INTERSECT ALL SELECT v FROM setop_b) UNION ALL SELECT 1',
	'(SELECT k FROM setop_a UNION ALL SELECT k FROM setop_a) EXCEPT ALL (SELECT k FROM setop_b UNION ALL SELECT k FROM setop_b)',
	'(SELECT k, s FROM setop_a ORDER BY k, s, v LIMIT 50) EXCEPT ALL (SELECT k, s FROM setop_b ORDER BY k, s, v LIMIT 30)',
	'WITH c AS (SELECT 7 AS q) SELECT k FROM setop_a INTERSECT (WITH d AS (SELECT q + 2 AS z FROM c) SELECT z FROM d UNION SELECT q FROM c)',
	'WITH c AS (SELECT k FROM setop_a INTERSECT SELECT k FROM setop_b) SELECT count(*) AS n, sum(a.k) AS t FROM c a JOIN c b ON a.k = b.k + 1',
	'SELECT x, (SELECT sum(y) FROM (SELECT v AS y FROM setop_a WHERE k = x EXCEPT ALL SELECT v FROM setop_b WHERE k > x + 80) z) FROM (VALUES (1), (2)) a(x)',
	'SELECT * FROM (VALUES (1), (2)) a(x), LATERAL (SELECT a.x UNION ALL SELECT 5 EXCEPT ALL SELECT a.x + 4) b(y)',
	'SELECT count(*) AS n FROM setop_a WHERE k IN (SELECT k FROM setop_a EXCEPT SELECT k FROM setop_b WHERE k < 30)',
	'SELECT count(*) AS n FROM (SELECT k, s FROM setop_a INTERSECT SELECT k, s FROM setop_b) x',
	'SELECT v, count(*) AS n FROM (SELECT k, v FROM setop_a EXCEPT ALL SELECT k, v FROM setop_b) x GROUP BY v',
	'SELECT generate_series(1, 3) AS g INTERSECT ALL SELECT generate_series(2, 5)']) q;
-- the types and collations of the operation decide, not those of its queries
CREATE COLLATION setop_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT lower(x) FROM (SELECT upper(s) COLLATE setop_case AS x FROM setop_a INTERSECT SELECT s FROM setop_b) y ORDER BY 1 LIMIT 3;
SELECT count(*) FROM (SELECT upper(s) FROM setop_a INTERSECT SELECT s FROM setop_b) y;
SELECT pg_typeof(x), count(*) FROM (SELECT v AS x FROM setop_a EXCEPT ALL SELECT 1.5) y GROUP BY 1;
SELECT pg_typeof(x), x FROM (SELECT 'abc'::varchar(2) AS x INTERSECT SELECT 'ab') y;
SELECT pg_typeof(x), x FROM (SELECT 'ab'::char(4) AS x INTERSECT ALL SELECT 'ab'::char(4)) y;
-- as many equal rows as core has
SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 100000) EXCEPT ALL SELECT 1 FROM generate_series(1, 300)) x;
SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 100000) INTERSECT ALL SELECT 1 FROM generate_series(1, 300)) x;

-- little memory, and in parallel
SET work_mem = '64kB';
CREATE TABLE setop_many AS SELECT i AS k, i % 3 AS v, 'text ' || i AS s FROM generate_series(1, 30000) i;
ANALYZE setop_many;
SELECT pg_temp.same_as_core(format('SELECT k, s FROM setop_many %s SELECT k * 2, ''text '' || k * 2 FROM setop_many', op))
	FROM unnest(ARRAY['INTERSECT', 'INTERSECT ALL', 'EXCEPT', 'EXCEPT ALL']) op;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
SELECT pg_temp.same_as_core(format('SELECT k, s FROM setop_many %s SELECT k * 2, ''text '' || k * 2 FROM setop_many', op))
	FROM unnest(ARRAY['INTERSECT', 'INTERSECT ALL', 'EXCEPT', 'EXCEPT ALL']) op;
RESET work_mem;
SET gpuagg.engine = 'cpu';
EXPLAIN (COSTS OFF) SELECT v FROM setop_many INTERSECT SELECT v FROM setop_a;
RESET max_parallel_workers_per_gather;
SET max_parallel_workers_per_gather = 0;

-- plans; the planner expects one row of each group
EXPLAIN (VERBOSE, COSTS OFF) SELECT k, v FROM setop_a EXCEPT SELECT k, v FROM setop_b;
EXPLAIN (COSTS OFF) SELECT k, v FROM setop_a INTERSECT ALL SELECT k, v FROM setop_b ORDER BY 2, 1 LIMIT 3;
RESET gpuagg.engine;
CREATE FUNCTION setop_plan(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	RETURN plan -> 0;
END $$;
SELECT (setop_plan('SELECT k FROM setop_many EXCEPT ALL SELECT k FROM setop_a') -> 'Plan' ->> 'Plan Rows')::float8 <= 60000 AS few;

-- without the requirement the cheaper plan is taken
RESET gpuagg.require;
SELECT p -> 'GpuAgg Not Used' AS not_used, p::text LIKE '%(GpuAgg)%' OR p::text LIKE '%"GpuAgg"%' AS taken FROM unnest(ARRAY[
	'SELECT k FROM setop_a WHERE k = -1 INTERSECT SELECT k FROM setop_b WHERE k = -2',
	'SELECT k, s FROM setop_many INTERSECT SELECT k, s FROM setop_many',
	'SELECT k, s FROM setop_many EXCEPT ALL SELECT k, s FROM setop_many']) q, setop_plan(q) p;
-- not taken: off, types that cannot be hashed, too many operations
SELECT p -> 'GpuAgg Not Used' AS not_used FROM setop_plan('SELECT ARRAY[k::money] FROM setop_a EXCEPT SELECT NULL') p;
SELECT n, p -> 'GpuAgg Not Used' AS not_used FROM (SELECT n, setop_plan(string_agg('SELECT k FROM setop_many', ' INTERSECT ')) FROM unnest(ARRAY[33, 34]) n,
	generate_series(1, n) GROUP BY n) x(n, p) ORDER BY n;
SET gpuagg.replace_builtin = off;
SELECT setop_plan('SELECT k, s FROM setop_many INTERSECT SELECT k, s FROM setop_many')::text LIKE '%GpuAgg%' AS taken;
SET gpuagg.replace_builtin = on;
SET gpuagg.enabled = off;
SELECT setop_plan('SELECT k, s FROM setop_many INTERSECT SELECT k, s FROM setop_many')::text LIKE '%GpuAgg%' AS taken;
RESET gpuagg.enabled;

-- conditions of an outer query stay above EXCEPT, and above columns that are converted
SET gpuagg.require = 'require';
CREATE TABLE setop_scale AS SELECT 1.0 AS x, '-0'::float8 AS f, i FROM generate_series(1, 3) i;
SELECT op, condition, pg_temp.same_as_core(format('SELECT x FROM (SELECT x, f FROM setop_scale %s SELECT 1.00, 0) q WHERE %s', op, condition))
	FROM unnest(ARRAY['EXCEPT', 'EXCEPT ALL']) op, unnest(ARRAY['x::text = ''1.0''', 'f::text = ''-0''', 'x::text = ''1.00''']) condition;
SELECT op, pg_temp.same_as_core(format('SELECT i FROM (SELECT i FROM setop_scale %s SELECT 1) q WHERE 1 / (i - 1) > -1', op))
	FROM unnest(ARRAY['EXCEPT', 'EXCEPT ALL']) op;
SELECT op, pg_temp.same_as_core(format('SELECT i FROM (SELECT i::numeric FROM setop_scale %s SELECT 3) q WHERE 1 / (i - 1) > 0', op))
	FROM unnest(ARRAY['INTERSECT', 'INTERSECT ALL']) op;
DROP TABLE setop_scale;
RESET gpuagg.require;

-- views, recursion, prepared statements, cursors, row security
SET gpuagg.require = 'require';
CREATE VIEW setop_view AS SELECT k FROM setop_a EXCEPT SELECT v + 60 FROM setop_b;
SELECT sum(k) FROM setop_view;
WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM (SELECT n FROM r EXCEPT SELECT k FROM setop_a WHERE k = 7) x WHERE n < 20) SELECT max(n) FROM r;
PREPARE setop_statement(int) AS SELECT k FROM setop_a WHERE k < $1 EXCEPT ALL SELECT 1 ORDER BY 1 LIMIT 3;
EXECUTE setop_statement(1);
EXECUTE setop_statement(2);
BEGIN;
DECLARE setop_cursor SCROLL CURSOR FOR SELECT k FROM setop_a INTERSECT SELECT k FROM setop_b ORDER BY k;
FETCH 3 FROM setop_cursor;
FETCH BACKWARD 2 FROM setop_cursor;
COMMIT;
CREATE ROLE setop_reader;
GRANT SELECT ON setop_a, setop_view TO setop_reader;
ALTER TABLE setop_a ENABLE ROW LEVEL SECURITY;
CREATE POLICY setop_policy ON setop_a USING (k < 5);
SET ROLE setop_reader;
SELECT k FROM setop_a INTERSECT SELECT k + 1 FROM setop_a ORDER BY 1;
SELECT k FROM setop_a EXCEPT SELECT k FROM setop_b;
RESET ROLE;
DROP VIEW setop_view;
DROP TABLE setop_a, setop_b, setop_many;
DROP FUNCTION setop_plan;
DROP COLLATION setop_case;
DROP ROLE setop_reader;
RESET ALL;
