-- Lookups of joins are kept in the cache while their tables do not change
SET client_min_messages = warning;
SET gpuagg.cache = eager;
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET jit = off;
-- from PostgreSQL 19 on, tables may be aggregated in part below a join
SELECT count(set_config(name, 'off', false)) < 2 AS above FROM pg_settings WHERE name = 'enable_eager_aggregate' \gset
CREATE TABLE kl_fact (a int, b int, d date, v int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO kl_fact SELECT i % 1100, nullif(i % 37, 5) * 1000003, date '2020-01-01' + i % 60, i, repeat('x', 50) FROM generate_series(1, 20000) i;
CREATE TABLE kl_dim (a int PRIMARY KEY, name text, class int, u uuid, weight float8) WITH (autovacuum_enabled = off);
INSERT INTO kl_dim SELECT i, 'name ' || i % 7, nullif(i % 5, 3), md5((i % 3)::text)::uuid, i / 8.0 FROM generate_series(0, 999) i;
CREATE TABLE kl_sparse (b int, label text) WITH (autovacuum_enabled = off);
INSERT INTO kl_sparse SELECT i % 40 * 1000003, 'label ' || i FROM generate_series(1, 60) i;
CREATE TABLE kl_class (class int PRIMARY KEY, title name, d date) WITH (autovacuum_enabled = off);
INSERT INTO kl_class SELECT i, 'class ' || i, date '2020-01-01' + i * 9 FROM generate_series(0, 4) i;
VACUUM ANALYZE kl_fact, kl_dim, kl_sparse, kl_class;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\i :include
-- the forms of the lookups of a query, and which of them were kept
CREATE FUNCTION pg_temp.forms(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	forms text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		forms := forms || substring(line FROM 'Lookup: .*, ((?:kept )?[a-z ]+) of \d+ rows');
	END LOOP;
	RETURN array_to_string(forms, ', ');
END $$;
-- a query's answer compared with core's, and its lookups
CREATE FUNCTION pg_temp.kept(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	compared text := pg_temp.compared(query);
BEGIN
	RETURN compared || ': ' || coalesce(pg_temp.forms(query), 'no lookup');
END $$;
CREATE TABLE kl_queries (id int GENERATED ALWAYS AS IDENTITY, q text);
INSERT INTO kl_queries (q) VALUES
	('SELECT m.name, m.class, count(*), sum(v), max(m.weight), min(m.u::text) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1, 2'),
	('SELECT m.name, count(*), count(m.class) FROM kl_fact f LEFT JOIN kl_dim m ON m.a = f.a AND m.class > 1 GROUP BY 1'),
	('SELECT count(*), sum(v) FROM kl_fact f WHERE EXISTS (SELECT FROM kl_dim m WHERE m.a = f.a AND m.name LIKE ''name 3%'')'),
	('SELECT count(*), sum(v) FROM kl_fact f WHERE NOT EXISTS (SELECT FROM kl_sparse s WHERE s.b = f.b)'),
	('SELECT s.label, count(*), sum(v) FROM kl_fact f JOIN kl_sparse s ON s.b = f.b GROUP BY 1'),
	('SELECT c.title, count(*), sum(v) FROM kl_fact f JOIN (kl_dim m JOIN kl_class c ON c.class = m.class) ON m.a = f.a AND c.d = f.d GROUP BY 1'),
	('SELECT c.title, m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a JOIN kl_class c ON c.class = m.class GROUP BY 1, 2'),
	('SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.a < 0 GROUP BY 1');
SET gpuagg.require = 'require';
SELECT id, pg_temp.kept(q) FROM kl_queries ORDER BY id;
SELECT id, pg_temp.kept(q) FROM kl_queries ORDER BY id;
SELECT q AS dim FROM kl_queries WHERE id = 1 \gset
SELECT q AS sparse FROM kl_queries WHERE id = 5 \gset
-- changes: in an open transaction, undone, and committed; the vacuum makes a state that can be proved
BEGIN;
UPDATE kl_dim SET name = 'changed' WHERE a = 500;
SELECT pg_temp.kept(:'dim');
ROLLBACK;
SELECT pg_temp.kept(:'dim');
VACUUM kl_dim;
SELECT pg_temp.kept(:'dim') FROM generate_series(1, 2);
DELETE FROM kl_dim WHERE a = 700;
SELECT pg_temp.kept(:'dim');
VACUUM kl_dim;
SELECT pg_temp.kept(:'dim') FROM generate_series(1, 2);
INSERT INTO kl_dim SELECT i, 'more', i, NULL, 0 FROM generate_series(1000, 3000) i;
SELECT pg_temp.kept(:'dim');
VACUUM kl_dim;
SELECT pg_temp.kept(:'dim') FROM generate_series(1, 2);
-- estimates do not matter, other tables do not matter
ANALYZE kl_dim;
DELETE FROM kl_sparse WHERE label = 'label 7';
SELECT pg_temp.kept(:'dim'), pg_temp.kept(:'sparse');
TRUNCATE kl_sparse;
SELECT pg_temp.kept(:'sparse');
INSERT INTO kl_sparse SELECT i % 50 * 1000003, 'new ' || i FROM generate_series(1, 60) i;
VACUUM kl_sparse;
SELECT pg_temp.kept(:'sparse') FROM generate_series(1, 2);
VACUUM FULL kl_sparse;
SELECT pg_temp.kept(:'sparse');
VACUUM kl_sparse;
SELECT pg_temp.kept(:'sparse') FROM generate_series(1, 2);
-- columns that older rows lack: the same number and type, another value
BEGIN;
ALTER TABLE kl_dim ADD COLUMN extra int DEFAULT 1;
SELECT pg_temp.kept('SELECT m.extra, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1') FROM generate_series(1, 2);
SELECT m.extra, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1;
ROLLBACK;
ALTER TABLE kl_dim ADD COLUMN other int DEFAULT 2;
SELECT pg_temp.kept('SELECT m.other, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1') FROM generate_series(1, 2);
SELECT m.other, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1;
-- what is not kept: parameters, functions of settings and of users, system columns, whole rows, SERIALIZABLE
SET plan_cache_mode = force_generic_plan;
PREPARE by_class AS SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.class = $1 GROUP BY 1 ORDER BY 1;
EXECUTE by_class (1);
EXECUTE by_class (2);
SELECT pg_temp.forms('EXECUTE by_class (2)');
RESET plan_cache_mode;
CREATE FUNCTION kl_twice(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 * 2; END $$;
SELECT pg_temp.kept(q) FROM generate_series(1, 2), unnest(ARRAY[
	'SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE kl_twice(m.class) = 2 GROUP BY 1',
	'SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.class < length(now()::text) GROUP BY 1',
	'SELECT m.ctid, count(*) FROM kl_fact f JOIN kl_class m ON m.class = f.a GROUP BY 1']) q;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pg_temp.kept(:'dim');
COMMIT;
SET gpuagg.cache = off;
SELECT pg_temp.kept(:'dim');
SET gpuagg.cache = eager;
-- functions that are called immutable, but use settings; dictionaries; partial indexes; large constants
CREATE TEXT SEARCH CONFIGURATION kl_words (COPY = simple);
SELECT ARRAY[
	'SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE length((m.weight / 3)::text) < 9 GROUP BY 1',
	'SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE length(m.name::bytea::text) > 8 GROUP BY 1',
	'SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE quote_ident(left(m.name, 4)) = left(m.name, 4) GROUP BY 1',
	'SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE to_timestamp(m.weight) AT TIME ZONE ''EST'' > ''1970-01-01'' GROUP BY 1',
	'SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE to_tsvector(''kl_words'', m.name) @@ ''more'' GROUP BY 1',
	'SELECT m.class, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.name <> repeat(''x'', 20000) GROUP BY 1'] AS queries \gset
SELECT n, pg_temp.kept(q) FROM unnest(:'queries'::text[]) WITH ORDINALITY u (q, n);
SET extra_float_digits = -10;
SET bytea_output = escape;
SET quote_all_identifiers = on;
SET timezone_abbreviations = 'Australia';
ALTER TEXT SEARCH CONFIGURATION kl_words ALTER MAPPING FOR asciiword WITH english_stem;
SELECT n, pg_temp.kept(q) FROM unnest(:'queries'::text[]) WITH ORDINALITY u (q, n);
RESET extra_float_digits;
RESET bytea_output;
RESET quote_all_identifiers;
RESET timezone_abbreviations;
DROP TEXT SEARCH CONFIGURATION kl_words;
CREATE FUNCTION kl_chosen(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 < 50; END $$;
CREATE INDEX kl_part ON kl_dim (a) WHERE kl_chosen(a);
SET enable_seqscan = off;
SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE kl_chosen(m.a) AND m.a > 40 GROUP BY 1 ORDER BY 1;
CREATE OR REPLACE FUNCTION kl_chosen(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 < 44; END $$;
REINDEX INDEX kl_part;
SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE kl_chosen(m.a) AND m.a > 40 GROUP BY 1 ORDER BY 1;
RESET enable_seqscan;
DROP INDEX kl_part;
-- row security: each role has its rows
CREATE ROLE kl_one;
CREATE ROLE kl_two;
GRANT SELECT ON kl_fact, kl_dim TO kl_one, kl_two;
ALTER TABLE kl_dim ENABLE ROW LEVEL SECURITY;
CREATE POLICY kl_first ON kl_dim TO kl_one USING (class = 1);
CREATE POLICY kl_second ON kl_dim TO kl_two USING (class = 2);
SET ROLE kl_one;
SELECT m.class, count(*) FROM kl_fact f LEFT JOIN kl_dim m ON m.a = f.a GROUP BY 1 ORDER BY 1;
SET ROLE kl_two;
SELECT m.class, count(*) FROM kl_fact f LEFT JOIN kl_dim m ON m.a = f.a GROUP BY 1 ORDER BY 1;
RESET ROLE;
REVOKE SELECT ON kl_dim FROM kl_two;
SET ROLE kl_two;
SELECT m.class, count(*) FROM kl_fact f LEFT JOIN kl_dim m ON m.a = f.a GROUP BY 1 ORDER BY 1;
RESET ROLE;
ALTER TABLE kl_dim DISABLE ROW LEVEL SECURITY;
-- a lookup is kept from its second use on, and until its table is evicted
SET gpuagg.cache = on;
SELECT pg_temp.forms('SELECT m.name || 1, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.weight < 99 GROUP BY 1') FROM generate_series(1, 3);
SELECT gpuagg_cache_evict('kl_dim') > 0;
SELECT pg_temp.forms('SELECT m.name || 1, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.weight < 99 GROUP BY 1') FROM generate_series(1, 2);
SET gpuagg.cache = eager;
-- gpuagg_cache has a row for each lookup, under its first table, and gpuagg_cache_evict() frees it and its bytes, whichever table it was made from
CREATE TABLE kl_left (a int, c int) WITH (autovacuum_enabled = off);
CREATE TABLE kl_right (c int, s text) WITH (autovacuum_enabled = off);
INSERT INTO kl_left SELECT i, i % 9 FROM generate_series(1, 90) i;
INSERT INTO kl_right SELECT i, 'right ' || i FROM generate_series(0, 7) i;
VACUUM ANALYZE kl_left, kl_right;
CREATE VIEW pg_temp.lookups AS SELECT DISTINCT relation, "column", tier, blocks, rows, bytes > 1000 AS large, hits, valid, last_use > now() - interval '1 hour' AS used
FROM gpuagg_cache WHERE tier = 'lookup' AND relation::text IN ('kl_left', 'kl_right');
SELECT 'SELECT r.s, count(*) FROM kl_fact f JOIN (kl_left l JOIN kl_right r ON r.c = l.c) ON l.a = f.a GROUP BY 1' AS two \gset
SELECT pg_temp.kept(:'two') FROM generate_series(1, 2);
SELECT * FROM pg_temp.lookups ORDER BY relation::text, rows;
SELECT cache_used AS used FROM gpuagg_status \gset
SELECT sum(bytes) AS bytes FROM gpuagg_cache WHERE relation = 'kl_left'::regclass AND tier = 'lookup' \gset
SELECT sum(bytes) AS right FROM gpuagg_cache WHERE relation = 'kl_right'::regclass \gset
SELECT gpuagg_cache_evict('kl_right') = :bytes + :right AS all_bytes;
SELECT cache_used = :used - :bytes - :right AS freed FROM gpuagg_status;
SELECT * FROM pg_temp.lookups ORDER BY relation::text, rows;
-- so does dropping a table that has nothing else in the cache, and emptying it
SELECT 'SELECT r.s, count(*) FROM kl_fact f JOIN kl_right r ON r.c + 1 = f.a GROUP BY 1' AS only \gset
SELECT pg_temp.kept(:'only') FROM generate_series(1, 2);
SELECT gpuagg_cache_evict('kl_left') > 0;
SELECT DISTINCT tier FROM gpuagg_cache WHERE relation = 'kl_right'::regclass;
SELECT DISTINCT relfilenode AS file FROM gpuagg_cache WHERE relation = 'kl_right'::regclass \gset
BEGIN;
TRUNCATE kl_right;
ROLLBACK;
SELECT pg_temp.forms(:'only');
BEGIN;
TRUNCATE kl_right;
COMMIT;
SELECT count(*) FROM gpuagg_cache WHERE relfilenode = :file;
INSERT INTO kl_right SELECT i, 'right ' || i FROM generate_series(0, 7) i;
VACUUM kl_right;
SELECT pg_temp.kept(:'only') FROM generate_series(1, 2);
SELECT DISTINCT relfilenode AS file FROM gpuagg_cache WHERE relation = 'kl_right'::regclass \gset
DROP TABLE kl_right;
SELECT count(*) FROM gpuagg_cache WHERE relfilenode = :file;
DROP TABLE kl_left;
-- who may not read all of its tables, or has rights on some columns only, does not see a lookup
SELECT pg_temp.kept('SELECT c.title, count(*) FROM kl_fact f JOIN (kl_class c JOIN kl_dim m ON m.a = c.class) ON m.a = f.a GROUP BY 1') FROM generate_series(1, 2);
CREATE FUNCTION pg_temp.seen(OUT of_dim bigint, OUT of_class bigint) LANGUAGE sql AS $$
SELECT count(*) FILTER (WHERE relation = 'kl_dim'::regclass), count(*) FILTER (WHERE relation = 'kl_class'::regclass) FROM gpuagg_cache WHERE tier = 'lookup' $$;
SET ROLE kl_one;
SELECT * FROM pg_temp.seen() \gset
RESET ROLE;
GRANT SELECT ON kl_class TO kl_one;
SET ROLE kl_one;
SELECT :of_class AS before, of_class > 0 AS class_seen, :of_dim > 0 AS dim_seen, of_dim > :of_dim AS joins_seen FROM pg_temp.seen();
RESET ROLE;
ALTER TABLE kl_dim ENABLE ROW LEVEL SECURITY;
SET ROLE kl_one;
SELECT of_dim FROM pg_temp.seen();
RESET ROLE;
ALTER TABLE kl_dim DISABLE ROW LEVEL SECURITY;
REVOKE SELECT ON kl_dim FROM kl_one;
GRANT SELECT (a, name) ON kl_dim TO kl_one;
SET ROLE kl_one;
SELECT of_dim FROM pg_temp.seen();
RESET ROLE;
-- participants of a parallel plan, rescans, and a cursor that holds a lookup whose table changes
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.kept(:'dim') FROM generate_series(1, 2);
-- one of them builds a lookup for all, at its first use, too; each its own if it cannot be kept
CREATE FUNCTION pg_temp.builds(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	builds text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		builds := builds || substring(line FROM '->  Hash \((?:actual .* loops=)?(\d+|never executed)\)');
	END LOOP;
	RETURN array_to_string(builds, ', ');
END $$;
SET gpuagg.cache = on;
SELECT 'SELECT m.name || 2, c.title, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a JOIN kl_class c ON c.class = m.class AND c.class < 77 GROUP BY 1, 2' AS shared \gset
SELECT pg_temp.builds(:'shared') FROM generate_series(1, 2);
SELECT pg_temp.kept(:'shared');
SET gpuagg.cache = off;
SELECT pg_temp.compared(:'shared');
SET gpuagg.cache = eager;
SELECT pg_temp.kept('SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE kl_twice(m.class) = 2 GROUP BY 1');
-- a worker's errors have a context more than the leader's
\set SHOW_CONTEXT never
-- an error while others wait
SELECT m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a AND 1 / (m.class - 2) < 5 GROUP BY 1;
SELECT m.name, count(*) FROM kl_fact f JOIN (SELECT * FROM kl_dim WHERE 1 / (class - 2) < 5) m ON m.a = f.a GROUP BY 1;
RESET max_parallel_workers_per_gather;
SELECT g, (SELECT sum(v) FROM kl_fact f JOIN kl_dim m ON m.a = f.a WHERE m.class = 1 AND f.v > g) FROM generate_series(1, 20000, 9999) g;
BEGIN;
DECLARE c CURSOR FOR SELECT m.a, m.name, count(*) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1, 2 ORDER BY 1;
FETCH 1 FROM c;
UPDATE kl_dim SET name = 'later';
SELECT pg_temp.kept(:'dim');
FETCH 1 FROM c;
COMMIT;
-- an error after a lookup has been found
SELECT m.name, sum(1 / (v - 19999)) FROM kl_fact f JOIN kl_dim m ON m.a = f.a GROUP BY 1;
-- more names than there is room for, each used twice; new ones are kept nevertheless, from the third or fourth use on
CREATE FUNCTION pg_temp.many(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 2 .. 2 * n + 1 LOOP
		EXECUTE format('SELECT count(*) FROM kl_class f JOIN kl_class m ON m.class = f.class WHERE m.class <> %s', i / 2);
	END LOOP;
END $$;
SELECT pg_temp.many(1030);
SELECT pg_temp.forms('SELECT count(*) FROM kl_fact f JOIN kl_class m ON m.d = f.d WHERE m.class <> 7'),
	pg_temp.forms('SELECT count(*) FROM kl_fact f JOIN kl_class m ON m.d = f.d WHERE m.class <> 8') FROM generate_series(1, 4) OFFSET 3;
RESET gpuagg.require;
DROP TABLE kl_fact, kl_dim, kl_sparse, kl_class, kl_queries;
DROP FUNCTION kl_twice, kl_chosen;
DROP ROLE kl_one, kl_two;
