-- The CPU engine stays within work_mem: groups that do not fit go to temporary files and are read again. Answers are
-- exact.
SET gpuagg.cache = off;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;

CREATE TABLE big AS
SELECT (i * 7919::int8 % 300000) AS k, i % 1000 AS v, (i % 97)::float8 / 7 AS x
FROM generate_series(1, 300000) i;
ANALYZE big;

-- One number of the custom scan in a JSON plan.
CREATE FUNCTION explain_number(query text, field text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan::jsonb, format('$.**."%s"', field)::jsonpath)::float8;
END $$;

-- 300,000 groups in 64 kB.
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SET gpuagg.require = 'require';
CREATE TEMP TABLE ours AS
SELECT k, gpu_count(*) AS c, gpu_sum(v) AS s, gpu_avg(x) AS a, gpu_max(v) AS m FROM big GROUP BY k;
RESET gpuagg.require;
RESET work_mem;
CREATE TEMP TABLE core AS SELECT k, count(*) AS c, sum(v) AS s, avg(x) AS a, max(v) AS m FROM big GROUP BY k;
SELECT count(*), (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) d) AS differ FROM ours;
DROP TABLE ours, core;
SET gpuagg.require = 'require';
SET work_mem = '1MB';
SELECT explain_number('SELECT k, gpu_count(*), gpu_sum(v) FROM big GROUP BY k', 'Memory') <= 1024 AS within_memory,
       explain_number('SELECT k, gpu_count(*), gpu_sum(v) FROM big GROUP BY k', 'Spilled') > 0 AS spilled;
-- A few groups never spill, however many rows.
SELECT explain_number('SELECT v, gpu_count(*), gpu_sum(k) FROM big GROUP BY v', 'Spilled') AS spilled;
-- States by reference, whose memory is estimated while they grow; groups whose rows were spilled do not
-- come back into memory.
RESET gpuagg.require;
CREATE TABLE long AS
SELECT repeat('long', 25) || i % 500 AS s, i * 7919::int8 % 61 AS k
FROM generate_series(1, 100000) i;
SET work_mem = '512kB';
SET gpuagg.strategy = 'hash';
SET gpuagg.batch_rows = 64;
SET gpuagg.require = 'require';
CREATE TEMP TABLE ours AS SELECT s, k, gpu_count(*) AS c, gpu_max(s) AS m FROM long GROUP BY s, k;
RESET gpuagg.require;
CREATE TEMP TABLE core AS SELECT s, k, count(*) AS c, max(s) AS m FROM long GROUP BY s, k;
SELECT count(*), (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) d) AS differ FROM ours;
DROP TABLE ours, core, long;
RESET gpuagg.batch_rows;
RESET gpuagg.strategy;

-- Partitioned from the start.
SET gpuagg.require = 'require';
SET gpuagg.strategy = 'sort';
SELECT gpu_count(*), gpu_sum(c), gpu_sum(s), gpu_min(k), gpu_max(k)
FROM (SELECT k, gpu_count(*) AS c, gpu_sum(v) AS s FROM big WHERE k < 100000 GROUP BY k) g;
RESET gpuagg.strategy;

-- One giant group among many: the partition of a single group ends.
SELECT gpu_count(*), gpu_sum(c), gpu_max(c), gpu_sum(s)
FROM (SELECT CASE WHEN v < 900 THEN -1 ELSE k END AS kk, gpu_count(*) AS c, gpu_sum(v) AS s
      FROM big WHERE k < 100000 GROUP BY 1) g;

-- Strings and numerics as keys, own transition states, several keys.
SET work_mem = '256kB';
CREATE TEMP TABLE ours AS
SELECT md5((k % 20000)::text) AS s, k % 3 AS k3, gpu_count(*) AS c, gpu_max(v::text) AS t,
       gpu_sum(v::numeric) AS n, gpu_min(x) AS x
FROM big WHERE k < 80000 GROUP BY 1, 2;
RESET gpuagg.require;
CREATE TEMP TABLE core AS
SELECT md5((k % 20000)::text) AS s, k % 3 AS k3, count(*) AS c, max(v::text) AS t,
       sum(v::numeric) AS n, min(x) AS x
FROM big WHERE k < 80000 GROUP BY 1, 2;
SELECT count(*), (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) d) AS differ FROM ours;
DROP TABLE ours, core;

-- Large states: a histogram for each of many groups.
SET gpuagg.require = 'require';
SET work_mem = '64kB';
CREATE TEMP TABLE ours AS
SELECT k % 2000 AS k, gpu_histogram(v, 0, 1000, 100) AS h FROM big WHERE k < 80000 GROUP BY 1;
SET gpuagg.require = 'forbid';
CREATE TEMP TABLE plain AS
SELECT k % 2000 AS k, gpu_histogram(v, 0, 1000, 100) AS h FROM big WHERE k < 80000 GROUP BY 1;
SELECT count(*), (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE plain) d) AS differ FROM ours;
DROP TABLE ours, plain;

-- An open cursor, rescans: files are closed with the scan.
SET gpuagg.require = 'require';
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_count(*) FROM big GROUP BY k;
FETCH 0 FROM c;
SELECT count(*) FROM (SELECT k, gpu_count(*) FROM big GROUP BY k LIMIT 10) s;
CLOSE c;
COMMIT;
SELECT g, (SELECT gpu_count(*) FROM (SELECT k, gpu_sum(v) FROM big WHERE k % 10 = g GROUP BY k) s)
FROM generate_series(1, 3) g;

-- Participants of a parallel plan export more groups than fit into memory.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT gpu_count(*), gpu_sum(c), gpu_sum(s), gpu_sum(n), gpu_min(k), gpu_max(k)
FROM (SELECT k, gpu_count(*) AS c, gpu_sum(v) AS s, gpu_sum(v::numeric) AS n FROM big WHERE k < 30000 GROUP BY k) g;
DROP TABLE big;

-- a scan that is opened again for each rescan leaves no files
BEGIN;
DECLARE c CURSOR FOR SELECT x.i, y.s FROM generate_series(1, 10000) x(i),
	LATERAL (SELECT gpu_sum(g + x.i) AS s, count(7) FROM generate_series(1, 5) g) y;
MOVE 100 IN c;
SELECT max(total_bytes - free_bytes) AS used FROM pg_backend_memory_contexts WHERE name = 'ExecutorState' \gset
MOVE 3000 IN c;
SELECT max(total_bytes - free_bytes) - :used < 10000 AS stays FROM pg_backend_memory_contexts WHERE name = 'ExecutorState';
COMMIT;

-- However small the memory, a pass over a partition completes groups of many bytes: there are few partitions, also where engines
-- divide the memory, and where keys, values and states take memory before the first group.
RESET ALL;
SET gpuagg.engine = 'cpu';
SET gpuagg.require = 'require';
SET gpuagg.replace_builtin = on;
SET gpuagg.cache = eager;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64kB';
CREATE TABLE parts AS
SELECT i * 7919 % 12000 AS a, i % 100 AS b, i * 31 % 5000 AS c, i * 17 % 3000::bigint AS d, md5((i % 4000)::text) AS s,
	(i * 13 % 1000)::float8 AS f
FROM generate_series(1, 12000) i;
VACUUM ANALYZE parts;
SELECT count(DISTINCT s) FROM parts;
SELECT q, CASE WHEN n < 1000 THEN 'few' ELSE n::text END AS partitions
FROM (SELECT q, explain_number(q || ' ORDER BY a', 'Spill Partitions') AS n FROM unnest(ARRAY[
	'SELECT a, b, s, count(DISTINCT c) FROM parts GROUP BY a, b, s',
	'SELECT a, b, c, count(DISTINCT s), count(DISTINCT c), count(DISTINCT s || a) FROM parts GROUP BY a, b, c',
	'SELECT a, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM parts GROUP BY a',
	'SELECT a, s, mode() WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY s) FROM parts GROUP BY a, s',
	'SELECT a, s, md5(s), f::numeric, max(s), min(c::numeric) FROM parts GROUP BY a, s, md5(s), f::numeric',
	'SELECT a, b, c, count(DISTINCT c), sum(d) FROM parts GROUP BY CUBE (a, b, c)']) q) p;
SELECT explain_number('SELECT a, b, c, s, count(DISTINCT c), count(DISTINCT s), sum(d) FROM parts GROUP BY CUBE (a, b, c, s)',
	'Spill Partitions') < 5000 AS few_of_sixteen_sets;
DROP TABLE parts;
DROP FUNCTION explain_number;
