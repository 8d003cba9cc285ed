-- Fallback aggregates whose states have memory contexts. Measuring these must not become slower with the number of
-- contexts when the memory is used up.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine TO cpu;
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
CREATE AGGREGATE collect(int) (SFUNC = array_append, STYPE = int[]);
SET work_mem = '32MB';
SET hash_mem_multiplier = 1;
-- a second is usual, and a slow machine needs several
SET statement_timeout = '60s';
SELECT gpu_count(*), gpu_sum(c), gpu_sum(n) FROM (
	SELECT k, gpu_count(*) AS c, cardinality(collect(i)) AS n
	FROM (SELECT (i * 7919 % 100000) AS k, i::int FROM generate_series(1::bigint, 600000) i) q GROUP BY k) q;
RESET statement_timeout;
DROP AGGREGATE collect(int);
