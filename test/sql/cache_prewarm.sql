-- gpuagg_cache_prewarm(): who may call it, what can be cached, and what is cached afterwards.
SET client_min_messages = warning;
DROP ROLE IF EXISTS gpuagg_reader, gpuagg_nobody;
RESET client_min_messages;
CREATE ROLE gpuagg_reader;
CREATE ROLE gpuagg_nobody;
CREATE TABLE warm (id int, gone text, k int, v numeric(10,2), s text, f float8, wide text, twice int GENERATED ALWAYS AS (k * 2) STORED);
ALTER TABLE warm ALTER wide SET STORAGE EXTERNAL;
INSERT INTO warm SELECT i, 'x', i % 7, i / 100.0, 's' || i % 5, sqrt(i), CASE WHEN i % 1000 = 0 THEN repeat('wide', 1000) END
FROM generate_series(1, 40000) i;
ALTER TABLE warm DROP gone;
ALTER TABLE warm ADD late int DEFAULT 7;
VACUUM (FREEZE, ANALYZE) warm;
CREATE FUNCTION blocks(regclass) RETURNS int8 LANGUAGE sql RETURN pg_relation_size($1) / current_setting('block_size')::int;

-- the cached columns: none, one, all
SELECT "column" FROM gpuagg_cache WHERE relation = 'warm'::regclass;
SELECT gpuagg_cache_prewarm('warm', '{k}') = blocks('warm') AS whole;
SELECT "column", blocks = blocks('warm') AS whole, rows, valid FROM gpuagg_cache WHERE relation = 'warm'::regclass ORDER BY 1;
SELECT gpuagg_cache_prewarm('warm') = blocks('warm') AS whole;
SELECT "column", blocks = blocks('warm') AS whole, rows, valid FROM gpuagg_cache WHERE relation = 'warm'::regclass ORDER BY 1;
SELECT gpuagg_cache_prewarm('warm', '{k,k,f}') = blocks('warm') AS whole;
SELECT gpuagg_cache_prewarm('warm', '{}');
SELECT gpuagg_cache_prewarm(NULL), gpuagg_cache_prewarm(NULL, '{k}');
SET gpuagg.require = 'require';
SELECT k, gpu_count(*), gpu_sum(v), gpu_min(s), gpu_max(f), gpu_sum(length(wide)), gpu_sum(twice), gpu_sum(late) FROM warm GROUP BY k
EXCEPT SELECT k, count(*), sum(v), min(s), max(f), sum(length(wide)), sum(twice), sum(late) FROM warm GROUP BY k;
RESET gpuagg.require;

-- changed blocks are read again, for the other columns too
UPDATE warm SET v = v + 1 WHERE id % 3 = 0;
VACUUM (FREEZE) warm;
SELECT gpuagg_cache_prewarm('warm', '{v}') = blocks('warm') AS whole;
SELECT "column", blocks = blocks('warm') AS whole, rows, valid FROM gpuagg_cache WHERE relation = 'warm'::regclass
    AND "column" IN ('v', 'late') ORDER BY 1;
SELECT gpuagg_cache_prewarm('warm') = blocks('warm') AS whole;
SELECT "column", blocks = blocks('warm') AS whole, rows, valid FROM gpuagg_cache WHERE relation = 'warm'::regclass ORDER BY 1;
SET gpuagg.require = 'require';
SELECT k, gpu_count(*), gpu_sum(v), gpu_min(s), gpu_max(f), gpu_sum(length(wide)), gpu_sum(twice), gpu_sum(late) FROM warm GROUP BY k
EXCEPT SELECT k, count(*), sum(v), min(s), max(f), sum(length(wide)), sum(twice), sum(late) FROM warm GROUP BY k;
RESET gpuagg.require;

-- in a transaction that has changed the table, its own rows must not be cached for others
BEGIN;
INSERT INTO warm (id, k) VALUES (0, 0);
SELECT gpuagg_cache_prewarm('warm') < blocks('warm') AS fewer;
SELECT gpu_count(*) = count(*) AS same FROM warm;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT gpuagg_cache_prewarm('warm', '{k}') > 0 AS cached;
COMMIT;
-- nor in the transaction that has created the table
BEGIN;
CREATE TABLE fresh AS SELECT 1 AS k;
SAVEPOINT s;
SELECT gpuagg_cache_prewarm('fresh');
ROLLBACK TO s;
TRUNCATE warm;
SELECT gpuagg_cache_prewarm('warm');
ROLLBACK;

-- partitions whose columns have another order
CREATE TABLE parts (k int, v int) PARTITION BY LIST (k);
CREATE TABLE part1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE part2 (v int, gone int, k int);
ALTER TABLE part2 DROP gone;
ALTER TABLE parts ATTACH PARTITION part2 FOR VALUES IN (2);
CREATE UNLOGGED TABLE part3 PARTITION OF parts FOR VALUES IN (3);
CREATE TABLE part4 PARTITION OF parts FOR VALUES IN (4) PARTITION BY LIST (v);
INSERT INTO parts SELECT 1 + i % 3, i FROM generate_series(1, 3000) i;
VACUUM (FREEZE) parts;
SELECT gpuagg_cache_prewarm('parts', '{v}') = blocks('part1') + blocks('part2') AS whole;
SELECT relation, "column", rows FROM gpuagg_cache WHERE relation IN ('part1'::regclass, 'part2'::regclass) ORDER BY 1, 2;
SELECT k, gpu_sum(v) FROM parts GROUP BY k EXCEPT SELECT k, sum(v) FROM parts GROUP BY k;

-- tables without rows or columns, materialized views
CREATE TABLE void ();
CREATE TABLE empty (k int);
CREATE MATERIALIZED VIEW seen AS SELECT k, sum(v) FROM warm GROUP BY k;
SELECT gpuagg_cache_prewarm('void'), gpuagg_cache_prewarm('empty'), gpuagg_cache_prewarm('seen'), gpuagg_cache_prewarm('part4');

-- relations that cannot be cached
CREATE VIEW warm_view AS SELECT * FROM warm;
CREATE INDEX warm_k ON warm (k);
CREATE SEQUENCE warm_numbers;
CREATE UNLOGGED TABLE unlogged_rows (k int);
CREATE TEMP TABLE temp_rows (k int);
CREATE TYPE warm_row AS (k int);
SELECT gpuagg_cache_prewarm('warm_view');
SELECT gpuagg_cache_prewarm('warm_k');
SELECT gpuagg_cache_prewarm('warm_numbers');
SELECT gpuagg_cache_prewarm('warm_row');
SELECT gpuagg_cache_prewarm('unlogged_rows');
SELECT gpuagg_cache_prewarm('temp_rows');
SELECT gpuagg_cache_prewarm('pg_class');
SELECT gpuagg_cache_prewarm('part3');
SELECT gpuagg_cache_prewarm('no_such_table');
SELECT gpuagg_cache_prewarm('warm', '{k,no_such_column}');
SELECT gpuagg_cache_prewarm('warm', '{gone}');
SELECT gpuagg_cache_prewarm('warm', '{ctid}');
SELECT gpuagg_cache_prewarm('warm', '{k,NULL}');
SELECT gpuagg_cache_prewarm('parts', '{w}');

-- privileges
GRANT SELECT (id, k) ON warm TO gpuagg_reader;
ALTER TABLE warm ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON parts TO gpuagg_reader;
SET ROLE gpuagg_reader;
SELECT gpuagg_cache_prewarm('warm', '{id,k}') > 0 AS cached;
SELECT gpuagg_cache_prewarm('warm', '{k,v}');
SELECT gpuagg_cache_prewarm('warm', '{no_such_column}');
SELECT gpuagg_cache_prewarm('warm');
SELECT gpuagg_cache_prewarm('warm', '{}');
SELECT count(*), gpu_count(*) FROM warm;
SELECT gpuagg_cache_prewarm('parts') > 0 AS cached;
SELECT gpuagg_cache_prewarm('part1');
SET ROLE gpuagg_nobody;
SELECT gpuagg_cache_prewarm('warm', '{k}');
SELECT gpuagg_cache_prewarm('warm_view');
SELECT gpuagg_cache_prewarm('seen');
RESET ROLE;

-- a session with gpuagg.cache = off may fill the cache
SET gpuagg.cache = off;
SELECT gpuagg_cache_evict('warm') > 0 AS evicted;
SELECT gpuagg_cache_prewarm('warm', '{k}') = blocks('warm') AS whole;
RESET gpuagg.cache;

DROP TABLE warm, parts, empty, void, unlogged_rows, temp_rows CASCADE;
DROP SEQUENCE warm_numbers;
DROP TYPE warm_row;
DROP FUNCTION blocks;
DROP ROLE gpuagg_reader, gpuagg_nobody;
