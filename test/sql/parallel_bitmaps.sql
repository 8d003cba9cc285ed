-- Participants of a parallel bitmap heap scan share a bitmap, and read its tuples from heap pages.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_seqscan = off;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0.1;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
CREATE TABLE pbits (k int, v int, w numeric(8, 2), t text) WITH (autovacuum_enabled = off, fillfactor = 50, parallel_workers = 3);
INSERT INTO pbits SELECT i % 7, i, i / 4.0, 'text ' || i % 13 FROM generate_series(1, 60000) i;
CREATE INDEX pbits_v ON pbits (v);
CREATE INDEX pbits_k ON pbits (k);
CREATE INDEX pbits_brin ON pbits USING brin (w) WITH (pages_per_range = 8);
UPDATE pbits SET t = 'hot' WHERE v % 3 = 0;
DELETE FROM pbits WHERE v % 11 = 0;
VACUUM ANALYZE pbits;
-- Returns whether the answer is core's, and where the rows came from.
\set shown 'Feed: .*|Parallel Bitmap Heap Scan|Rows Removed by Index Recheck'
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_from.sql'
\i :include
SELECT same('SELECT k, count(*), sum(v), max(t) FROM pbits WHERE v BETWEEN 5000 AND 45000 GROUP BY k');
SELECT same('SELECT t, count(*), sum(w) FROM pbits WHERE (k = 2 OR v < 9000 OR v > 50000) AND t <> ''text 3'' GROUP BY t');
SELECT same('SELECT v, count(*) FROM pbits WHERE v > 100 GROUP BY v');
SELECT same('SELECT count(*), sum(v) FROM pbits WHERE w BETWEEN 500 AND 9000');
SELECT same('SELECT count(*), sum(v) FROM pbits WHERE v < 0');
-- workers without the leader, and the leader without workers
SET parallel_leader_participation = off;
SELECT same('SELECT k, count(*), sum(v), max(t) FROM pbits WHERE v BETWEEN 5000 AND 45000 GROUP BY k');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT same('SELECT k, count(*), sum(v), max(t) FROM pbits WHERE v BETWEEN 5000 AND 45000 GROUP BY k');
RESET max_parallel_workers;
-- a bitmap of pages
SET work_mem = '64kB';
SELECT same('SELECT k, count(*), sum(v), max(t) FROM pbits WHERE v % 2 >= 0 AND v > 50 AND k IN (1, 2, 3) GROUP BY k');
RESET work_mem;
-- rescanned
SET enable_material = off;
SET enable_memoize = off;
SELECT same('SELECT x.g, s.k, s.c FROM generate_series(1, 3) x(g) LEFT JOIN (SELECT k, count(*) AS c FROM pbits WHERE v BETWEEN 5000 AND 45000 GROUP BY k) s ON s.c > x.g * 1000');
RESET enable_material;
RESET enable_memoize;
-- the leader alone, without dynamic shared memory: the query's other plans keep a segment each, and there are 64 and 5 for each process
CREATE TABLE pfew (v int) WITH (autovacuum_enabled = off, parallel_workers = 1);
INSERT INTO pfew SELECT i FROM generate_series(1, 2000) i;
ANALYZE pfew;
SET max_parallel_workers = 0;
SET enable_parallel_append = off;
SET enable_seqscan = on;
SET gpuagg.startup_cost = 0;
SELECT format('SELECT sum(c) FROM (%s UNION ALL SELECT sum(v) FROM pbits WHERE v BETWEEN 5000 AND 9000) x',
	string_agg('SELECT count(*) AS c FROM pfew WHERE v < 0', ' UNION ALL ')) AS query
FROM generate_series(1, 64 + 5 * (SELECT sum(setting::int) + 40 FROM pg_settings
	WHERE name IN ('max_connections', 'autovacuum_max_workers', 'max_worker_processes', 'max_wal_senders'))) \gset
:query;
SELECT sum(v) FROM pbits WHERE v BETWEEN 5000 AND 9000;
RESET max_parallel_workers;
RESET enable_parallel_append;
RESET gpuagg.startup_cost;
DROP TABLE pfew;
DROP FUNCTION same;
DROP TABLE pbits;
