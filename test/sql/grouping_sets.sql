-- GROUPING SETS, ROLLUP and CUBE
SET gpuagg.replace_builtin = on;
CREATE TABLE g AS SELECT i % 3 AS a, nullif((i % 7)::text, '3') AS b, nullif(i % 5, 0)::int2 AS c, i AS v, ((i % 110)::numeric / 2)::numeric(10,2) AS n,
	(i % 17)::numeric / 4 AS u, (i % 1000) / 7.0::float8 AS f, i % 40 AS z FROM generate_series(1, 6000) i;
INSERT INTO g VALUES (1, 'x', 1, 1, '1.0', 1, 'NaN', 0), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(2, 'X', 1, 1, 'NaN', '1.00', '-0', 0), (2, 'X', 1, 1, 1, 'NaN', 0, 0), (2, 'X', 2, 1, 1, 1e30, 0, 0);
VACUUM ANALYZE g;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TEMP TABLE queries (number serial, q text);
INSERT INTO queries (q) VALUES
	('SELECT a, b, count(*), sum(v) FROM g GROUP BY ROLLUP (a, b)'),
	('SELECT a, b, c, count(*), sum(v), avg(n), min(v), max(n), sum(u) FROM g GROUP BY CUBE (a, b, c)'),
	('SELECT a, b, c, count(*), sum(v) FROM g GROUP BY GROUPING SETS ((a), (b), (a, c), ())'),
	('SELECT a, b, c, grouping(a), grouping(c, b, a), count(*) FROM g GROUP BY ROLLUP (a, b), CUBE (c)'),
	('SELECT a, b, count(*) FROM g GROUP BY ROLLUP (a, b), ROLLUP (a)'),
	('SELECT a, b, count(*) FROM g GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a)'),
	('SELECT a, b, count(*) FROM g GROUP BY GROUPING SETS ((a), (a), (b), ROLLUP ((a, b), c), ())'),
	('SELECT a, sum(n), array_agg(v ORDER BY v) IS NULL AS x, grouping(a) + 1 AS h FROM (SELECT a, n, v FROM g WHERE false) s GROUP BY GROUPING SETS ((a), (), ()) HAVING false'),
	('SELECT count(*), sum(v), max(b) FROM g WHERE a > 7 GROUP BY GROUPING SETS ((), (a), ())'),
	('SELECT count(*), sum(v) FROM g GROUP BY GROUPING SETS ((), ())'),
	('SELECT a, b FROM g GROUP BY ROLLUP (a, b)'),
	('SELECT a, b, sum(v) FROM g GROUP BY CUBE (a, b) HAVING grouping(a, b) = 1 OR sum(v) > 1000000'),
	('SELECT a + c AS k, length(b) AS l, a + c + 1 AS m, sum(v) AS s FROM g GROUP BY ROLLUP (a + c, length(b))'),
	('SELECT a, a + c AS k, sum(v) FROM g GROUP BY GROUPING SETS ((a), (a + c), (a, a + c))'),
	('SELECT coalesce(a, -1) AS k, b IS NULL AS m, count(*) FROM g GROUP BY CUBE (a, b)'),
	('SELECT CASE WHEN grouping(a) = 1 THEN ''all'' ELSE a::text END AS k, count(*), rank() OVER (PARTITION BY grouping(a) ORDER BY count(*)) FROM g GROUP BY ROLLUP (a)'),
	('SELECT a, b, count(*) FILTER (WHERE c = 1), sum(v) FILTER (WHERE v > 3000), count(*) FILTER (WHERE a = 1) FROM g GROUP BY CUBE (a, b)'),
	('SELECT a, b, count(DISTINCT z), sum(DISTINCT z), sum(v) FROM g GROUP BY ROLLUP (a, b)'),
	('SELECT a, c, count(DISTINCT z) FILTER (WHERE v > 100), string_agg(DISTINCT b, '','') FROM g GROUP BY CUBE (a, c)'),
	('SELECT a, c, length(string_agg(b, '','')) AS l, array_length(array_agg(v), 1) AS n, count(*), jsonb_array_length(jsonb_agg(v)) AS j FROM g GROUP BY GROUPING SETS ((a, c), (a), (a), ())'),
	('SELECT a, b, gpu_count(*), gpu_histogram(v, 0, 6000, 3), gpu_argmax(b, v), gpu_approx_count_distinct(v) FROM g GROUP BY ROLLUP (a, b)'),
	('SELECT a, c, gpu_max_subarray_sum((v % 20 - 10)::int8 ORDER BY v, f), gpu_sum(v ORDER BY v, f) FROM g GROUP BY CUBE (a, c)'),
	('SELECT a, c, gpu_longest_ascending_run(v ORDER BY n, v, f) FROM g GROUP BY ROLLUP (a, c)'),
	('SELECT a, c, gpu_histogram(f, 0, 200, 4, z), gpu_product(CASE WHEN z = 1 THEN 2.0 ELSE 1.0 END) FROM g GROUP BY ROLLUP (c, a)'),
	('SELECT a, c, bit_xor(v), bool_or(v > 5), stddev(v), variance(n), var_pop(u), max(b), min(b) FROM g GROUP BY CUBE (a, c)'),
	('SELECT x.k, (SELECT sum(s) FROM (SELECT y.a, sum(y.v + x.k) AS s, grouping(y.a) AS h FROM g y WHERE y.a <> x.k GROUP BY ROLLUP (y.a)) s WHERE h = 1) FROM (VALUES (1), (2), (1), (NULL)) x(k)'),
	('SELECT * FROM (VALUES (1), (2), (5)) x(k), LATERAL (SELECT a, count(*), grouping(a) AS h FROM g WHERE v % 7 = x.k GROUP BY CUBE (a)) y'),
	('SELECT a, (SELECT grouping(a)) AS h, count(*) FROM g GROUP BY ROLLUP (a)'),
	('SELECT a, grouping(a) AS h, count(*) FROM g GROUP BY a'),
	('SELECT DISTINCT grouping(a, b) AS h, count(*) > 1 AS m FROM g GROUP BY CUBE (a, b)'),
	('SELECT a, count(*), sum(count(*)) OVER (ORDER BY grouping(a), a) AS running FROM g GROUP BY ROLLUP (a)'),
	('SELECT b, a, count(*) FROM (SELECT a, b FROM g UNION ALL SELECT c, b FROM g) s GROUP BY CUBE (a, b)'),
	('SELECT l.a, r.a AS ra, count(*), sum(l.v) FROM g l JOIN g r USING (v) WHERE v < 500 GROUP BY GROUPING SETS ((l.a), (r.a), (l.a, r.a))'),
	('SELECT f > 50 AS k, a, sum(n), count(u) FROM g GROUP BY ROLLUP (1, 2)'),
	('SELECT n * 2 AS k, count(*) FROM g GROUP BY GROUPING SETS ((n * 2), ())'),
	('SELECT a, b, c, v % 2 AS d, z % 2 AS e, count(*), sum(v) FROM g GROUP BY CUBE (a, b, c, 4, 5)'),
	('SELECT count(*), sum(v) FROM (SELECT a, count(*) AS v, generate_series(1, 2) AS s FROM g GROUP BY ROLLUP (a)) x GROUP BY s');
SELECT pg_temp.same_as_core(q), q FROM queries ORDER BY number;

-- columns that are determined by keys of all sets
CREATE TABLE gk (id int PRIMARY KEY, name text, k int);
INSERT INTO gk SELECT i, 'n' || i % 5, i % 3 FROM generate_series(1, 20) i;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT id, name, k, count(*) FROM gk GROUP BY GROUPING SETS ((id), (id, k))',
	'SELECT id, name, k, length(name) AS l, count(*) FROM gk GROUP BY id, ROLLUP (k)',
	'SELECT id, name, count(*) FROM gk GROUP BY GROUPING SETS ((id), (id, name))',
	'SELECT a, (SELECT name FROM gk WHERE id = g.a) AS name, count(*) FROM g GROUP BY ROLLUP (a)',
	'SELECT r > 2 AS k, a, count(*) FROM (SELECT random() AS r, a FROM g) s GROUP BY ROLLUP (a, r > 2)']) q;

-- with the CPU engine, sums and extremes of floats are core's to the last bit if core hashes all sets, because both add rows in their order
CREATE FUNCTION pg_temp.bits(f float8) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT encode(float8send(f), 'hex') $$;
CREATE TABLE gf AS SELECT i % 3 AS a, i % 5 AS b, CASE WHEN i % 11 = 0 THEN -0.0 ELSE sin(i) END::float8 AS x, (i % 7 * 0.1 * i)::float4 AS y,
	CASE WHEN i % 2 = 0 THEN -0.0 ELSE 0 END::float8 AS o FROM generate_series(1, 5000) i;
VACUUM ANALYZE gf;
SET gpuagg.engine = 'cpu';
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT a, b, pg_temp.bits(sum(x)), pg_temp.bits(sum(y)), pg_temp.bits(avg(x)), pg_temp.bits(stddev(x)), pg_temp.bits(corr(x, y)) FROM gf GROUP BY GROUPING SETS ((a), (b), (a, b))',
	'SELECT a, b, pg_temp.bits(max(o)), pg_temp.bits(min(o)), pg_temp.bits(max(o::float4)) FROM gf GROUP BY GROUPING SETS ((a), (b), (a, b))']) q;

RESET gpuagg.engine;

-- more groups than memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT v, z, a, count(*), sum(n), sum(u), max(b) FROM g GROUP BY ROLLUP (a, z, v)',
	'SELECT v, z, a, count(*), sum(v) FROM g GROUP BY CUBE (a, z, v)',
	'SELECT v, f + 0 AS h, b, count(*), sum(n), sum(u), stddev(v) FROM g GROUP BY CUBE (f + 0, v, b)',
	'SELECT v, b, count(DISTINCT z), count(*) FROM g GROUP BY ROLLUP (b, v)',
	'SELECT v, b, gpu_max_subarray_sum((v % 20 - 10)::int8 ORDER BY v, f) FROM g GROUP BY CUBE (b, v)',
	'SELECT v, b, count(*), array_length(array_agg(v), 1), gpu_approx_count_distinct(v) FROM g GROUP BY GROUPING SETS ((v), (b))']) q;
RESET work_mem;
RESET hash_mem_multiplier;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.same_as_core(q), number FROM queries WHERE q !~ 'ORDER BY' ORDER BY number;
SET work_mem = '64kB';
SELECT pg_temp.same_as_core('SELECT v, z, a, count(*), sum(n), sum(u), max(b) FROM g GROUP BY CUBE (a, z, v)');
SELECT pg_temp.same_as_core('SELECT v, z, a, count(*), sum(n) FROM g GROUP BY GROUPING SETS ((a), (z), (v))');
RESET work_mem;
SET gpuagg.engine = 'cpu';
EXPLAIN (COSTS OFF) SELECT a, b, count(*), sum(v) FROM g GROUP BY ROLLUP (a, b);
SET max_parallel_workers_per_gather = 0;

-- sets that are computed from others
CREATE FUNCTION made_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Grouping Sets';
END $$;
SELECT made_of(q), q FROM unnest(ARRAY[
	'SELECT a, b, count(*), sum(v) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, c, count(*), sum(n), sum(u) FROM g GROUP BY CUBE (a, b, c)',
	'SELECT a, z, c, count(*) FROM g GROUP BY GROUPING SETS ((a, c), (c, z), (c), (c), ())',
	'SELECT a, b, count(*), sum(f) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, count(*), max(f) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, count(DISTINCT v) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, count(*), array_agg(v) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, gpu_longest_run(v > 3 ORDER BY v) FROM g GROUP BY ROLLUP (a, b)']) q;
-- the arguments of GROUPING() pass through each node above
EXPLAIN (COSTS OFF, VERBOSE) SELECT a, b, grouping(a, b), count(*), sum(v) FROM g GROUP BY GROUPING SETS ((a), (a, b), ())
HAVING grouping(a) = 0 ORDER BY grouping(a, b), a, b;

RESET gpuagg.engine;

-- queries that core runs
SET gpuagg.require = 'require';
SELECT 1 AS one, gpu_count(*) FROM g GROUP BY ROLLUP (one);
SELECT a AS x, a AS y, gpu_count(*) FROM g GROUP BY ROLLUP (x, y);
SELECT gpu_count(*) FROM g GROUP BY CUBE (a, b, c, v, n, u, f, z, a + 1);
-- a parameter as a key
PREPARE p AS SELECT * FROM (SELECT $1::int AS k, a, gpu_count(*) AS n FROM g GROUP BY ROLLUP (k, a)) s ORDER BY k, a, n;
SET plan_cache_mode = 'force_generic_plan';
EXECUTE p (7);
-- a cursor that is read in steps
BEGIN;
DECLARE k CURSOR FOR SELECT grouping(a) AS h, gpu_count(*) > 0 AS some FROM g WHERE v < 20 GROUP BY ROLLUP (a);
FETCH 5 FROM k;
MOVE ALL FROM k;
COMMIT;
RESET gpuagg.require;
DROP FUNCTION made_of;
DROP TABLE g, gk, gf;
