--
-- Parallel plans: each participant aggregates on its own, and the last one returns the groups.
--
SET gpuagg.engine = 'cpu';
SET gpuagg.require = 'require';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
CREATE TABLE pt AS SELECT i % 100 AS k, i AS v, i * 0.5::float8 AS f, (i % 50)::numeric(8,2) AS n, 'k' || i % 30 AS t
    FROM generate_series(1, 60000) i;
ANALYZE pt;
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'Engine|Strategy|Feed';
        RETURN NEXT line;
    END LOOP;
END $$;
SELECT plan_of('SELECT k, gpu_count(*) FROM pt GROUP BY k');
SELECT plan_of('SELECT gpu_sum(v) FROM pt HAVING gpu_count(*) > 3');

CREATE FUNCTION answers() RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
    SELECT 'one group: ' || q::text FROM (SELECT gpu_count(*), gpu_sum(v), gpu_avg(n), gpu_max(t), gpu_min(t::varchar) FROM pt) q
    UNION ALL SELECT 'no row: ' || q::text FROM (SELECT gpu_count(*), gpu_sum(v) FROM pt WHERE v < 0) q
    UNION ALL SELECT 'no group: ' || count(*) FROM (SELECT k, gpu_count(*) FROM pt WHERE v < 0 GROUP BY k) q
    UNION ALL SELECT 'groups: ' || (count(*), sum(c), sum(s))::text FROM (SELECT k, gpu_count(*) c, gpu_sum(v) s FROM pt GROUP BY k) q
    UNION ALL SELECT 'text keys: ' || (count(*), sum(c), min(t), max(m))::text FROM (SELECT t, gpu_count(*) c, gpu_max(t) m FROM pt GROUP BY t) q
    UNION ALL SELECT 'a group a row: ' || (count(*), sum(c), sum(s), max(t))::text
        FROM (SELECT v, t, gpu_count(*) c, gpu_sum(n) s FROM pt GROUP BY v, t) q
    UNION ALL SELECT 'having: ' || count(*) FROM (SELECT k FROM pt GROUP BY k HAVING gpu_sum(v) > 18000000) q
    UNION ALL SELECT 'histogram: ' || gpu_histogram(f, 0, 30000, 4)::text FROM pt
    UNION ALL SELECT 'numeric: ' || (gpu_sum(n * n), gpu_stddev(v), gpu_variance(n))::text FROM pt
$$;
SELECT answers();
-- a few workers, no workers, and workers without the leader
SET max_parallel_workers_per_gather = 1;
SELECT md5(string_agg(a, '|')) FROM answers() a \gset one_
SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = 4;
SELECT md5(string_agg(a, '|')) = :'one_md5' AS workers_alone FROM answers() a;
SET max_parallel_workers = 0;
SELECT md5(string_agg(a, '|')) = :'one_md5' AS leader_in_place_of_workers FROM answers() a;
SET parallel_leader_participation = on;
SELECT md5(string_agg(a, '|')) = :'one_md5' AS no_worker FROM answers() a;
RESET max_parallel_workers;
SET max_parallel_workers_per_gather = 0;
SELECT md5(string_agg(a, '|')) = :'one_md5' AS serial FROM answers() a;
-- with little memory groups are spilled before they are merged
SET max_parallel_workers_per_gather = 3;
SET work_mem = '64kB';
SELECT md5(string_agg(a, '|')) = :'one_md5' AS little_memory FROM answers() a;
RESET work_mem;
-- without shared memory: a cursor's plan runs where workers are not allowed
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT k, gpu_sum(v) FROM pt GROUP BY k ORDER BY k LIMIT 2;
FETCH 1 FROM c;
COMMIT;
FETCH 1 FROM c;
CLOSE c;
-- LIMIT ends the query before the participants have finished
SELECT count(*) FROM (SELECT k, gpu_count(*) FROM pt GROUP BY k LIMIT 3) q;
-- errors of participants are raised, with a context if a worker raised them
\set VERBOSITY terse
SELECT gpu_sum(1 / (v - 30000)) FROM pt;
\set VERBOSITY default
SELECT gpu_sum(9223372036854775807), gpu_count(*) FROM pt;
-- a join below
SET enable_nestloop = off;
SELECT gpu_count(*), gpu_sum(x.v) FROM pt x JOIN pt y ON x.v = y.v + 1;
-- partitions: a parallel append
CREATE TABLE pp (k int, v int) PARTITION BY LIST (k);
CREATE TABLE pp1 PARTITION OF pp FOR VALUES IN (1);
CREATE TABLE pp2 PARTITION OF pp FOR VALUES IN (2);
CREATE TABLE pp3 PARTITION OF pp DEFAULT;
INSERT INTO pp SELECT i % 4, i FROM generate_series(1, 4000) i;
ANALYZE pp;
SELECT k, gpu_count(*), gpu_sum(v) FROM pp GROUP BY k ORDER BY k;

DROP FUNCTION answers;
DROP FUNCTION plan_of;
DROP TABLE pp, pt;
