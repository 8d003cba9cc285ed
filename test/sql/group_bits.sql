-- groups without aggregates as bits: ranges that grow, and become too large; NULLs, every integer type, spilling, workers
SET gpuagg.replace_builtin = on;
CREATE TABLE b AS SELECT i AS id, i % 10 AS k, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 100 - 50 END AS z,
	(i * 7919 % 30011)::int8 AS w, (i % 300)::int2 AS s, i % 2 = 0 AS t, date '2000-01-01' + (i % 1000)::int AS d,
	(i % 50)::oid AS o, 'a'::"char" AS c, CASE WHEN i > 15000 THEN i * 1000000000 ELSE i END::int8 AS far,
	CASE WHEN i > 6000 THEN NULL ELSE 1 END AS ends, CASE WHEN i > 6000 THEN i END AS begins,
	CASE WHEN i = 12000 THEN 9223372036854775807 WHEN i = 12001 THEN -9223372036854775807 - 1 ELSE i % 5 END AS limits
	FROM generate_series(1::int8, 20000) i;
ALTER TABLE b ALTER id TYPE int, ALTER k TYPE int, ALTER z TYPE int;
VACUUM ANALYZE b;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TEMPORARY TABLE q (n int GENERATED ALWAYS AS IDENTITY, q text);
INSERT INTO q (q) VALUES
	('SELECT DISTINCT k FROM b'), ('SELECT DISTINCT k, z FROM b'), ('SELECT DISTINCT z, t, s FROM b'),
	('SELECT k, z FROM b GROUP BY k, z'), ('SELECT DISTINCT id FROM b'), ('SELECT DISTINCT -id FROM b'), ('SELECT DISTINCT w, k FROM b'),
	('SELECT DISTINCT d, t FROM b'), ('SELECT DISTINCT o, c FROM b'), ('SELECT DISTINCT far FROM b'), ('SELECT DISTINCT far, k FROM b'),
	('SELECT DISTINCT ends, k FROM b'), ('SELECT DISTINCT begins, t FROM b'), ('SELECT DISTINCT limits FROM b'),
	('SELECT DISTINCT k, k + 0, z FROM b'), ('SELECT DISTINCT id, id FROM b'), ('SELECT DISTINCT NULLIF(k, k), t FROM b'),
	('SELECT k, count(DISTINCT id), count(DISTINCT z), sum(DISTINCT w) FROM b GROUP BY k'),
	('SELECT t, count(DISTINCT far), count(*), count(DISTINCT z) FILTER (WHERE k > 5) FROM b GROUP BY t'),
	('SELECT count(DISTINCT d), count(DISTINCT o), count(DISTINCT t), count(DISTINCT c) FROM b'),
	('SELECT count(DISTINCT limits), count(DISTINCT begins) FROM b'),
	('SELECT k FROM b WHERE id < 10 UNION SELECT z FROM b'),
	('SELECT x.k, (SELECT count(DISTINCT y.w % x.k) FROM b y WHERE y.id < x.k * 3000) FROM (VALUES (1), (6), (2)) x(k)'),
	('SELECT DISTINCT k FROM b WHERE false');
SELECT pg_temp.same_as_core(q), q FROM q ORDER BY n;
-- each query runs in every second setting
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT n, pg_temp.same_as_core(q) FROM q WHERE n % 2 = 0 ORDER BY n;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT n, pg_temp.same_as_core(q) FROM q WHERE n % 2 = 1 ORDER BY n;
RESET work_mem;
SELECT n, pg_temp.same_as_core(q) FROM q WHERE n % 2 = 0 ORDER BY n;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET gpuagg.batch_rows = 256;
SELECT n, pg_temp.same_as_core(q) FROM q WHERE n % 2 = 1 ORDER BY n;
RESET gpuagg.batch_rows;

-- the strategy that was used
CREATE FUNCTION bits_strategy(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Strategy';
END $$;
SET gpuagg.require = 'require';
SET gpuagg.engine = 'cpu';
SELECT bits_strategy('SELECT DISTINCT k FROM b'), bits_strategy('SELECT DISTINCT far FROM b'), bits_strategy('SELECT DISTINCT d::text FROM b') LIKE 'hash%' AS text;
SET gpuagg.strategy = 'hash';
SELECT bits_strategy('SELECT DISTINCT k FROM b') LIKE 'hash%' AS hash;

-- strings that are identified by their bytes: every length, empty, with equal ends, and longer than a short string
CREATE TABLE t AS SELECT left('abcdefghij' || i % 3, 1 + i % 11) AS s, repeat(chr(97 + i % 3), i % 10) AS r, (i % 3000)::text AS m,
	CASE WHEN i % 5 = 0 THEN NULL ELSE i % 7 || '' END AS z, i % 3 AS k FROM generate_series(1, 20000) i;
INSERT INTO t VALUES ('', '', '', '', 0), ('aXa', 'aYa', 'aXXXa', 'aYYYa', 0);
VACUUM ANALYZE t;
RESET gpuagg.strategy;
RESET gpuagg.engine;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY['SELECT DISTINCT s FROM t', 'SELECT DISTINCT s, r FROM t', 'SELECT DISTINCT m FROM t',
	'SELECT r, count(*), count(DISTINCT m), count(DISTINCT z) FROM t GROUP BY r', 'SELECT DISTINCT upper(r), z FROM t',
	'SELECT z, string_agg(DISTINCT s, '','') FROM t GROUP BY z', 'SELECT DISTINCT m::bytea FROM t', 'SELECT DISTINCT r::char(9) FROM t']) q;
DROP TABLE b, t;
DROP FUNCTION bits_strategy;
RESET ALL;
