--
-- Settings: defaults, invalid values, and what each one does.
--
SELECT name, setting, context, enumvals FROM pg_settings
    WHERE name IN ('gpuagg.enabled', 'gpuagg.engine', 'gpuagg.require', 'gpuagg.strategy', 'gpuagg.batch_rows', 'gpuagg.replace_builtin',
        'gpuagg.startup_cost', 'gpuagg.row_cost', 'gpuagg.slot_cost', 'gpuagg.page_row_cost')
    ORDER BY name COLLATE "C";
SET gpuagg.engine = 'vulkan';
SET gpuagg.require = 'maybe';
SET gpuagg.strategy = 'magic';
SET gpuagg.feed = 'pipe';
SET gpuagg.batch_rows = 0;
SET gpuagg.batch_rows = 'many';
SET gpuagg.enabled = 'perhaps';
SET gpuagg.row_cost = -1;
SET gpuagg.no_such_setting = 1;

SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE c AS SELECT i % 5 AS k, i AS v FROM generate_series(1, 20000) i;
CREATE TABLE small AS SELECT i % 5 AS k, i AS v FROM generate_series(1, 20) i;
ANALYZE c, small;
CREATE FUNCTION taken(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        IF line ~ 'GpuAgg' THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;
-- the planner decides by costs: a query of many rows is taken, one of few rows is not
SELECT taken('SELECT k, gpu_sum(v) FROM c GROUP BY k') AS many, taken('SELECT k, gpu_sum(v) FROM small GROUP BY k') AS few;
SET gpuagg.startup_cost = 1e9;
SELECT taken('SELECT k, gpu_sum(v) FROM c GROUP BY k') AS many;
SET gpuagg.startup_cost = 0;
SELECT taken('SELECT k, gpu_sum(v) FROM small GROUP BY k') AS few;
RESET gpuagg.startup_cost;
SET gpuagg.row_cost = 1;
SELECT taken('SELECT k, gpu_sum(v) FROM c GROUP BY k') AS many;
RESET gpuagg.row_cost;
-- reading pages costs less than getting rows from the executor, but only if pages can be read
CREATE FUNCTION cost(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
CREATE TABLE kinds (k int, v int) PARTITION BY LIST (k);
CREATE TABLE kinds0 PARTITION OF kinds FOR VALUES IN (0, 1);
CREATE TABLE kinds1 PARTITION OF kinds FOR VALUES IN (2, 3, 4);
INSERT INTO kinds SELECT * FROM c;
ANALYZE kinds;
CREATE TABLE costs AS
SELECT query, pages, cost('SELECT k, gpu_sum(v) FROM ' || query || ' GROUP BY k') AS cost
FROM unnest(ARRAY['c', 'c WHERE v % 2 = 0', 'kinds', 'c JOIN small s USING (k, v)', 'generate_series(1, 9999) AS g(v), LATERAL (SELECT v % 2 AS k OFFSET 0) s']) query,
    unnest(ARRAY[true, false]) pages
WHERE set_config('gpuagg.feed', CASE WHEN pages THEN 'auto' ELSE 'tuples' END, false) <> '';
RESET gpuagg.feed;
SELECT query, sign(max(cost) FILTER (WHERE NOT pages) - max(cost) FILTER (WHERE pages)) AS saved FROM costs GROUP BY query ORDER BY query COLLATE "C";
SET gpuagg.page_row_cost = 1;
SELECT cost('SELECT k, gpu_sum(v) FROM c GROUP BY k') - cost AS saved FROM costs WHERE query = 'c' AND NOT pages;
RESET gpuagg.page_row_cost;
DROP TABLE kinds, costs;
DROP FUNCTION cost;
-- require and forbid
SET gpuagg.require = 'require';
SELECT taken('SELECT k, gpu_sum(v) FROM small GROUP BY k') AS few;
SELECT gpu_count(DISTINCT v::numeric::money) FROM c;
SELECT count(DISTINCT v::numeric::money) FROM c;
SET gpuagg.enabled = off;
SELECT gpu_count(*) FROM c;
SELECT count(*) FROM c;
RESET gpuagg.enabled;
SET gpuagg.require = 'forbid';
SELECT taken('SELECT k, gpu_sum(v) FROM c GROUP BY k') AS many;
SELECT gpu_count(*) FROM c;
RESET gpuagg.require;
SET gpuagg.enabled = off;
SELECT taken('SELECT k, gpu_sum(v) FROM c GROUP BY k') AS many;
RESET gpuagg.enabled;
-- replace_builtin
SELECT taken('SELECT k, sum(v) FROM c GROUP BY k') AS off, taken('SELECT k, sum(v), gpu_sum(v) FROM c GROUP BY k') AS beside;
SET gpuagg.replace_builtin = on;
SELECT taken('SELECT k, sum(v), avg(v), count(*) FROM c GROUP BY k') AS "on", taken('SELECT string_agg(v::text, '','') FROM c') AS other;
SELECT k, sum(v), avg(v), count(*), stddev(v) FROM c GROUP BY k ORDER BY k;
RESET gpuagg.replace_builtin;
-- batch_rows and strategies change no answers
CREATE TABLE answers (q text);
DO $$
DECLARE
    strategy text;
    rows int;
BEGIN
    SET LOCAL gpuagg.require = 'require';
    FOREACH strategy IN ARRAY '{auto,single,segmented,direct,hash,sort}'::text[] LOOP
        FOREACH rows IN ARRAY '{64,100,4096,1048576}'::int[] LOOP
            PERFORM set_config('gpuagg.strategy', strategy, true), set_config('gpuagg.batch_rows', rows::text, true);
            INSERT INTO answers SELECT string_agg(q::text, ' ' ORDER BY k) FROM (SELECT k, gpu_count(*), gpu_sum(v), gpu_max(v) FROM c GROUP BY k) q;
            INSERT INTO answers SELECT 'all' || (gpu_count(*), gpu_sum(v), gpu_max(v))::text FROM c;
        END LOOP;
    END LOOP;
END $$;
SELECT DISTINCT q FROM answers;
-- a prepared plan obeys settings that are read at execution
SET gpuagg.require = 'require';
PREPARE p AS SELECT gpu_sum(v) FROM c;
EXECUTE p;
SET gpuagg.batch_rows = 64;
SET gpuagg.strategy = 'hash';
EXECUTE p;

DROP FUNCTION taken;
DROP TABLE answers, small, c;
