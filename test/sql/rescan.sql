--
-- Rescans: lateral and correlated subqueries, with and without changed parameters.
--
SET gpuagg.engine = 'cpu';
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
SET enable_material = off;
SET enable_memoize = off;
CREATE TABLE r AS SELECT i % 10 AS k, i AS v, i * 0.25::float8 AS f FROM generate_series(1, 1000) i;
ANALYZE r;

-- the child plan depends on the parameter
SELECT g, (SELECT gpu_sum(v) FROM r WHERE k < g) FROM generate_series(0, 3) g;
-- the argument, the filter, a constant argument and the key depend on it
SELECT g, (SELECT gpu_sum(v * g) FROM r) FROM generate_series(1, 3) g;
SELECT g, (SELECT gpu_count(*) FILTER (WHERE k = g) FROM r) FROM generate_series(1, 3) g;
SELECT g, (SELECT gpu_sum(g + 0 * v) FROM r) FROM generate_series(1, 3) g;
SELECT g, x.* FROM generate_series(1, 2) g, LATERAL (SELECT k + g AS kg, gpu_count(*) AS c FROM r GROUP BY k + g ORDER BY 1 LIMIT 2) x;
-- HAVING and the target list depend on it
SELECT g, x.* FROM generate_series(7, 9) g, LATERAL (SELECT k, gpu_count(*) + g AS c FROM r GROUP BY k HAVING k > g) x;
-- the bounds of a histogram depend on it
SELECT g, (SELECT gpu_histogram(f, 0, 100 * g, 4) FROM r) FROM generate_series(1, 3) g;
SELECT g, (SELECT gpu_histogram(f, ARRAY[g, 100.0]::float8[]) FROM r) FROM generate_series(1, 3) g;
-- nothing depends on it: the inner side of a nested loop is scanned again
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT g, x.c FROM generate_series(1, 3) g LEFT JOIN (SELECT k, gpu_count(*) AS c FROM r GROUP BY k OFFSET 0) x ON x.k = g;
-- a scan that was not read to its end is started again
SELECT g, (SELECT k FROM (SELECT k, gpu_count(*) FROM r GROUP BY k OFFSET 0) x WHERE k >= g ORDER BY k LIMIT 1) FROM generate_series(1, 3) g;
SELECT g FROM generate_series(1, 3) g WHERE EXISTS (SELECT FROM (SELECT k, gpu_sum(v) AS s FROM r GROUP BY k) x WHERE x.k = g AND s > 0);
-- partitions, each with its own number of rows
CREATE TABLE rp (k int, v int) PARTITION BY RANGE (v);
CREATE TABLE rp1 PARTITION OF rp FOR VALUES FROM (0) TO (300);
CREATE TABLE rp2 PARTITION OF rp FOR VALUES FROM (300) TO (2000);
INSERT INTO rp SELECT k, v FROM r;
ANALYZE rp;
SELECT g, (SELECT gpu_sum(v) FROM rp WHERE k < g) FROM generate_series(0, 3) g;
SELECT g, (SELECT gpu_count(*) FROM rp WHERE v < 150 * g) FROM generate_series(0, 3) g;
CREATE FUNCTION rows_of(query text) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
    RETURN QUERY SELECT n::text::numeric::int FROM jsonb_path_query(plan::jsonb, 'strict $.**."Actual Rows"', '{}', true) n;
END $$;
SELECT rows_of('SELECT k, gpu_count(*) FROM rp WHERE k < 5 GROUP BY k');
-- a parallel plan below the nested loop
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT g, x.c FROM generate_series(1, 3) g LEFT JOIN (SELECT k, gpu_count(*) AS c FROM r GROUP BY k OFFSET 0) x ON x.k = g;
SELECT g, (SELECT sum(c) FROM (SELECT k, gpu_count(*) AS c FROM r GROUP BY k) x WHERE k < g) FROM generate_series(1, 3) g;
-- recursion
WITH RECURSIVE w(n, c) AS (
    SELECT 1, 0::bigint
    UNION ALL
    SELECT n + 1, (SELECT gpu_count(*) FROM r WHERE v <= w.n * 100) FROM w WHERE n < 4)
SELECT * FROM w;
RESET parallel_setup_cost;
-- many executions in one session leave no memory
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION run_many(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    c bigint;
BEGIN
    FOR i IN 1 .. n LOOP
        SELECT gpu_count(*) INTO c FROM (SELECT k, gpu_sum(v), gpu_avg(f), gpu_min(k::text) FROM r WHERE v <= 20 + i % 2 GROUP BY k) q;
    END LOOP;
END $$;
SELECT run_many(200);
SELECT sum(total_bytes) AS before FROM pg_backend_memory_contexts \gset
SELECT run_many(2000);
SELECT sum(total_bytes) - :before < 300000 AS kept FROM pg_backend_memory_contexts;

DROP FUNCTION run_many, rows_of;
DROP TABLE rp;
DROP TABLE r;
