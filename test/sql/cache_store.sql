-- The column cache as users see it: settings, the view gpuagg_cache, gpuagg_cache_evict().
SET client_min_messages = warning;
DROP ROLE IF EXISTS gpuagg_nobody;
RESET client_min_messages;

SELECT name, unit, context, boot_val, enumvals FROM pg_settings WHERE name LIKE 'gpuagg.cache%' AND name <> 'gpuagg.cache_memory' ORDER BY name;
-- the default memory depends on the machine, and the setting shows the resulting value
SELECT unit, context, boot_val, setting::int BETWEEN 1 AND 1024 AS chosen FROM pg_settings WHERE name = 'gpuagg.cache_memory';
SET gpuagg.cache_memory = 1;
SET gpuagg.cache = off;
SET gpuagg.cache = maybe;
RESET gpuagg.cache;
-- the cache is in shared memory, with its locks
SELECT allocated_size >= setting::int8 * 1024 * 1024 AS there FROM pg_shmem_allocations, pg_settings
WHERE pg_shmem_allocations.name = 'gpuagg cache' AND pg_settings.name = 'gpuagg.cache_memory';

\d gpuagg_cache

-- what may be evicted, and by whom
CREATE ROLE gpuagg_nobody;
CREATE TABLE cached (k int, n int);
CREATE INDEX cached_k ON cached (k);
CREATE VIEW cached_view AS SELECT * FROM cached;
CREATE MATERIALIZED VIEW cached_rows AS SELECT * FROM cached;
CREATE SEQUENCE cached_numbers;
CREATE TEMP TABLE cached_here (k int);
CREATE TABLE parted (k int) PARTITION BY LIST (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES IN (1) PARTITION BY LIST (k);
CREATE TABLE parted2 PARTITION OF parted1 FOR VALUES IN (1);
SELECT gpuagg_cache_evict('cached'), gpuagg_cache_evict('cached_rows'), gpuagg_cache_evict('cached_here'), gpuagg_cache_evict('parted'),
    gpuagg_cache_evict('pg_class'), gpuagg_cache_evict('pg_database'), gpuagg_cache_evict(NULL);
SELECT gpuagg_cache_evict('cached_k');
SELECT gpuagg_cache_evict('cached_view');
SELECT gpuagg_cache_evict('cached_numbers');
SELECT gpuagg_cache_evict('no_such_table');
SELECT gpuagg_cache_evict(1);
SET ROLE gpuagg_nobody;
SELECT gpuagg_cache_evict('cached');
SELECT gpuagg_cache_evict('cached_rows');
SELECT gpuagg_cache_evict('cached_view');
SELECT gpuagg_cache_evict('parted');
SELECT gpuagg_cache_evict('pg_class');
SELECT count(*) >= 0 FROM gpuagg_cache;
RESET ROLE;
ALTER TABLE cached OWNER TO gpuagg_nobody;
ALTER TABLE parted OWNER TO gpuagg_nobody;
SET ROLE gpuagg_nobody;
SELECT gpuagg_cache_evict('cached'), gpuagg_cache_evict('parted');
SELECT gpuagg_cache_evict('parted2');
RESET ROLE;

-- dropped tables, in transactions that end in every way
BEGIN;
TRUNCATE cached;
SAVEPOINT a;
DROP TABLE parted;
ROLLBACK TO a;
ALTER TABLE cached ADD x float8 DEFAULT random();
COMMIT;
BEGIN;
DROP TABLE parted;
ROLLBACK;
SELECT count(*) FROM gpuagg_cache c JOIN pg_class r ON c.relation = r.oid WHERE r.relname IN ('cached', 'parted2');

DROP TABLE parted, cached CASCADE;
DROP TABLE cached_here;
DROP SEQUENCE cached_numbers;
DROP ROLE gpuagg_nobody;

-- the bounds of cached columns do not follow the order of "char" or of enums
SET gpuagg.cache = eager;
SET gpuagg.require = require;
CREATE TYPE cached_order AS ENUM ('b', 'c');
ALTER TYPE cached_order ADD VALUE 'a' BEFORE 'b';
CREATE TABLE cached (c "char", e cached_order);
INSERT INTO cached VALUES ('a', 'a'), ('\377', 'b'), ('b', 'c');
VACUUM cached;
SELECT gpu_count(*) FROM cached WHERE c = 'a';
SELECT gpu_count(*) FROM cached WHERE c = 'a';
SELECT gpu_count(*) FROM cached WHERE e < 'b';
SELECT gpu_count(*) FROM cached WHERE e < 'b';
DROP TABLE cached;
DROP TYPE cached_order;
RESET gpuagg.require;
RESET gpuagg.cache;
