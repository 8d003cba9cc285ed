-- The view gpuagg_cache shows only tables and columns that the user may select from.
SET client_min_messages = warning;
DROP ROLE IF EXISTS gpuagg_reader;
CREATE ROLE gpuagg_reader;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = eager;
SET gpuagg.require = 'require';
CREATE TABLE shown (k int, v int) WITH (autovacuum_enabled = off);
CREATE TABLE hidden (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO shown SELECT i, i FROM generate_series(1, 5000) i;
INSERT INTO hidden SELECT * FROM shown;
SELECT count(s) FROM (SELECT gpu_sum(k), gpu_sum(v) FROM shown UNION ALL SELECT gpu_sum(k), gpu_sum(v) FROM hidden OFFSET 0) s;
SELECT relation, "column" FROM gpuagg_cache WHERE relation IN ('shown'::regclass, 'hidden') ORDER BY relation::text, "column";

SET ROLE gpuagg_reader;
SELECT relation, "column" FROM gpuagg_cache;
SELECT * FROM gpuagg_cache_columns();
RESET ROLE;
GRANT SELECT (v) ON shown TO gpuagg_reader;
SET ROLE gpuagg_reader;
SELECT relation, "column" FROM gpuagg_cache ORDER BY relation::text, "column";
RESET ROLE;
GRANT SELECT ON shown TO gpuagg_reader;
SET ROLE gpuagg_reader;
SELECT relation, "column" FROM gpuagg_cache ORDER BY relation::text, "column";
RESET ROLE;
GRANT pg_read_all_stats TO gpuagg_reader;
SET ROLE gpuagg_reader;
SELECT count(*) FROM gpuagg_cache WHERE relation::text IN ('shown', 'hidden');
RESET ROLE;

DROP TABLE shown, hidden;
DROP ROLE gpuagg_reader;
