--
-- Sorted input: groups are returned in order as they complete, and the plan has no Sort above.
--
SET gpuagg.engine = 'cpu';
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE o AS SELECT i / 20 AS k, i % 3 AS j, i AS v, 'n' || lpad((i / 50)::text, 5, '0') AS t FROM generate_series(1, 10000) i;
CREATE INDEX ON o (k, j);
CREATE INDEX ON o (t);
VACUUM ANALYZE o;
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'Engine|Feed';
        RETURN NEXT line;
    END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SELECT plan_of('SELECT k, gpu_sum(v) FROM o GROUP BY k ORDER BY k');
SELECT plan_of('SELECT k, j, gpu_sum(v) FROM o GROUP BY k, j ORDER BY k, j');
SELECT plan_of('SELECT k, gpu_sum(v) FROM o GROUP BY k ORDER BY k DESC LIMIT 2');
SELECT plan_of('SELECT t, gpu_sum(v) FROM o GROUP BY t ORDER BY t');
SELECT k, gpu_sum(v) FROM o GROUP BY k ORDER BY k LIMIT 3;
SELECT k, gpu_sum(v) FROM o GROUP BY k ORDER BY k DESC LIMIT 3;
SELECT t, gpu_sum(v), gpu_count(*) FROM o GROUP BY t ORDER BY t OFFSET 198;
SELECT k, j, gpu_sum(v) FROM o GROUP BY k, j ORDER BY k, j LIMIT 4;
-- batches that end within groups
SET gpuagg.batch_rows = 64;
SELECT count(*), sum(k), sum(s), sum(c), bool_and(k > before) AS in_order FROM (
    SELECT k, s, c, lag(k, 1, -1) OVER () AS before FROM
        (SELECT k, gpu_sum(v) s, gpu_count(*) c FROM o GROUP BY k ORDER BY k) q) q;
SELECT count(*), bool_and(t > before) AS in_order, sum(c) FROM (
    SELECT t, c, lag(t, 1, '') OVER () AS before FROM (SELECT t, gpu_count(*) c FROM o GROUP BY t ORDER BY t) q) q;
-- every strategy keeps the order
SET gpuagg.strategy = 'hash';
SELECT count(*), bool_and(k > before) AS in_order FROM (
    SELECT k, lag(k, 1, -1) OVER () AS before FROM (SELECT k, gpu_sum(v) s FROM o GROUP BY k ORDER BY k) q) q;
SET gpuagg.strategy = 'sort';
SELECT count(*), bool_and(k > before) AS in_order FROM (
    SELECT k, lag(k, 1, -1) OVER () AS before FROM (SELECT k, gpu_sum(v) s FROM o GROUP BY k ORDER BY k) q) q;
RESET gpuagg.strategy;
-- NULLs, first or last, are one group
INSERT INTO o SELECT NULL, 1, i, NULL FROM generate_series(1, 5) i;
SELECT k, gpu_sum(v), gpu_count(*) FROM o GROUP BY k ORDER BY k OFFSET 500;
SELECT k, gpu_sum(v), gpu_count(*) FROM o GROUP BY k ORDER BY k DESC LIMIT 2;
-- a Sort below, if the query needs the order anyway
RESET enable_sort;
DROP INDEX o_k_j_idx;
RESET enable_seqscan;
SELECT j, gpu_sum(v) FROM o GROUP BY j ORDER BY j;
-- a merge join below
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT x.k, gpu_count(*) FROM o x JOIN o y ON x.k = y.k AND x.k < 3 GROUP BY x.k ORDER BY x.k;
-- equality is that of the sort operator, not of bytes
CREATE TABLE oq (n numeric, f float8);
INSERT INTO oq VALUES (1.0, 0), (1.00, '-0'), (2, 'NaN'), (2.0, 'NaN'), ('NaN', 1), ('NaN', 1);
CREATE INDEX ON oq (n);
CREATE INDEX ON oq (f);
SET enable_seqscan = off;
SELECT n = 1 AS one, gpu_count(*) FROM oq GROUP BY n ORDER BY n;
SELECT f = 0 AS zero, gpu_count(*) FROM oq GROUP BY f ORDER BY f;

DROP FUNCTION plan_of;
DROP TABLE oq, o;
