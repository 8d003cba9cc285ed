-- The heap feed reads index scans whose pages have many of their tuples. The executor reads the others.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE ix (k int, v int, r int, w numeric(8, 2), t text) WITH (autovacuum_enabled = off, fillfactor = 70);
INSERT INTO ix SELECT i % 7, i, i * 7919::bigint % 20011, i / 4.0, 'text ' || i % 13 FROM generate_series(1, 20000) i;
CREATE INDEX ix_v ON ix (v);
CREATE INDEX ix_r ON ix (r);
CREATE INDEX ix_kv ON ix (k, v);
CREATE INDEX ix_half ON ix (w) WHERE v % 2 = 0;
CREATE INDEX ix_expr ON ix ((v % 1000), t);
CREATE INDEX ix_point ON ix USING gist (point(v, r));
CREATE INDEX ix_hash ON ix USING hash (t);
VACUUM ANALYZE ix;
-- Returns whether the answer is core's, and where the rows came from.
\set shown 'Feed: .*|Index Scan.*using \\w+|Rows Removed by.*'
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_from.sql'
\i :include
SELECT same('SELECT k, count(*), sum(v), sum(w), max(t) FROM ix WHERE v BETWEEN 5000 AND 15000 GROUP BY k');
-- with another condition, columns that the index does not have, no columns at all
SELECT same('SELECT k, count(*), sum(w), min(t) FROM ix WHERE v BETWEEN 5000 AND 15000 AND t <> ''text 3'' GROUP BY k');
SELECT same('SELECT count(*) FROM ix WHERE v < 9000');
-- rows scattered over all pages; and several rows in each page
SELECT same('SELECT k, count(*), sum(v), max(t) FROM ix WHERE r BETWEEN 5000 AND 6000 GROUP BY k');
SELECT same('SELECT k, count(*), sum(v), max(t) FROM ix WHERE r BETWEEN 5000 AND 5002 GROUP BY k');
SELECT same('SELECT k, count(*), sum(v), max(t) FROM ix WHERE r > 3 AND t = ''text 5'' GROUP BY k');
SELECT same('SELECT k, count(*), sum(v), max(t) FROM ix WHERE r BETWEEN 3 AND 9000 GROUP BY k');
SELECT same('SELECT t, count(*), sum(v) FROM ix WHERE k = 3 AND v > 100 GROUP BY t');
-- lists, conditions on expressions, a partial index, other access methods, one whose matches are rechecked
SELECT same('SELECT k, count(*), sum(r) FROM ix WHERE v IN (3, 9, 14, 1000, 1001, 19999, 30000) GROUP BY k');
SELECT same('SELECT k, count(*), sum(r) FROM ix WHERE v % 1000 = 7 AND t > ''text 2'' GROUP BY k');
SELECT same('SELECT count(*), sum(v) FROM ix WHERE v % 2 = 0 AND w < 2000');
SELECT same('SELECT count(*), sum(v) FROM ix WHERE t = ''text 7'' AND r >= 0 AND v >= 0');
SELECT same('SELECT k, count(*), sum(v) FROM ix WHERE circle ''((100, 100), 5000)'' @> point(v, r) GROUP BY k');
-- no rows, NULL
SELECT same('SELECT count(*), sum(v) FROM ix WHERE v < 0'), same('SELECT count(*), sum(v) FROM ix WHERE v > NULL::int');
-- the order of the index, forward and backward, which sorted groups and aggregates need
SELECT same('SELECT v / 10, count(*), sum(r) FROM ix WHERE v BETWEEN 5000 AND 5500 GROUP BY 1');
SELECT same('SELECT string_agg(t, '','' ORDER BY -v) FROM ix WHERE v BETWEEN 5000 AND 5200');
SELECT same('SELECT string_agg(t, '','' ORDER BY r) FROM ix WHERE r BETWEEN 5000 AND 5200');
SELECT same('SELECT k, array_agg(v ORDER BY v) FROM ix WHERE k = 2 AND v < 300 GROUP BY k');
-- HOT chains, dead tuples, own changes, tuples that the snapshot does not see
UPDATE ix SET t = 'hot' WHERE v % 3 = 0;
UPDATE ix SET v = v + 100000 WHERE v % 5 = 0;
DELETE FROM ix WHERE v % 11 = 0;
SELECT same('SELECT t, count(*), sum(v), min(w) FROM ix WHERE v < 10000 GROUP BY t');
VACUUM ix;
SELECT same('SELECT t, count(*), sum(v), min(w) FROM ix WHERE v < 10000 GROUP BY t');
BEGIN;
INSERT INTO ix SELECT 1, i, i, 0, 'own' FROM generate_series(1, 300) i;
DELETE FROM ix WHERE v BETWEEN 400 AND 500;
SELECT same('SELECT t, count(*), sum(v), min(w) FROM ix WHERE v < 2000 GROUP BY t');
ROLLBACK;
-- keys that are known when the scan begins, and change with each rescan
PREPARE p (int, int) AS SELECT k, count(*), sum(v) FROM ix WHERE v BETWEEN $1 AND $2 GROUP BY k ORDER BY k;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(100, 900);
EXECUTE p(900, 100);
RESET plan_cache_mode;
SELECT same('SELECT count(*), sum(v) FROM ix WHERE v > (SELECT 15000)');
SET enable_memoize = off;
SET enable_material = off;
SELECT same('SELECT x.g, s.c, s.v FROM generate_series(1, 5) x(g), LATERAL (SELECT count(*) AS c, sum(v) AS v FROM ix WHERE v BETWEEN x.g * 1000 AND x.g * 1000 + 700) s');
SELECT same('SELECT x.g, s.c, s.v FROM generate_series(1, 5) x(g), LATERAL (SELECT count(*) AS c, sum(v) AS v FROM ix WHERE r BETWEEN x.g * 1000 AND x.g * 1000 + 700) s');
-- rescans with another constant open the scan again and keep no memory
CREATE FUNCTION query_memory() RETURNS numeric LANGUAGE sql VOLATILE AS $$SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'$$;
SET gpuagg.require = 'require';
SELECT sum(a) AS sum, max(bytes) - min(bytes) < 20000 AS none_kept FROM (SELECT g, (SELECT gpu_regr_avgx(g, v) FROM ix WHERE v BETWEEN g AND g + 3) AS a,
	CASE WHEN g % 999 = 1 THEN query_memory() END AS bytes FROM generate_series(1, 1000) g OFFSET 0) x;
RESET gpuagg.require;
DROP FUNCTION query_memory;
-- partitions with different plans
CREATE TABLE parts (v int, k int, w int) PARTITION BY RANGE (v);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (10000) TO (20000);
INSERT INTO parts SELECT i, i % 3, i * 7919::bigint % 20011 FROM generate_series(0, 19999) i;
CREATE INDEX ON parts1 (v);
CREATE INDEX ON parts2 (w);
VACUUM ANALYZE parts;
SELECT same('SELECT k, count(*), sum(v), sum(w) FROM parts WHERE v BETWEEN 4000 AND 14000 AND w < 9000 GROUP BY k');
SELECT same('SELECT k + 1, count(*), sum(v + w) FROM (SELECT * FROM parts WHERE v BETWEEN 4000 AND 14000 AND w < 9000 OFFSET 0) s GROUP BY 1');
-- an index scan in a cursor that is closed before its end
BEGIN;
DECLARE c CURSOR FOR SELECT v / 2, count(*) FROM ix WHERE v BETWEEN 1000 AND 9000 GROUP BY 1 ORDER BY 1;
FETCH 2 FROM c;
CLOSE c;
COMMIT;
-- not read from pages: the order of distances, serializable transactions
SELECT same('SELECT string_agg(t, '','' ORDER BY point(v, r) <-> ''(0, 0)'') FROM ix WHERE v < 30');
SELECT same('SELECT count(*), sum(v) FROM (SELECT v FROM ix ORDER BY point(v, r) <-> ''(0, 0)'' LIMIT 100) s');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT same('SELECT count(*), sum(v) FROM ix WHERE v < 300');
COMMIT;
-- tuples are counted as tuples of the index
SELECT pg_stat_force_next_flush();
BEGIN;
SELECT count(*), sum(r) FROM ix WHERE v BETWEEN 5000 AND 6000;
SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'ix'::regclass;
COMMIT;
-- participants of a parallel plan share the scan
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
ALTER TABLE ix SET (parallel_workers = 3);
SELECT same('SELECT k, count(*), sum(v), sum(w), max(t) FROM ix WHERE v BETWEEN 1000 AND 19000 GROUP BY k');
SELECT same('SELECT k, count(*), sum(v), sum(w), max(t) FROM ix WHERE r BETWEEN 1000 AND 19000 GROUP BY k');
SELECT same('SELECT count(*), sum(v) FROM ix WHERE v > (SELECT 3000)');
SET parallel_leader_participation = off;
SELECT same('SELECT k, count(*), sum(v), sum(w), max(t) FROM ix WHERE v BETWEEN 1000 AND 19000 GROUP BY k');
DROP FUNCTION same;
DROP TABLE ix, parts;
