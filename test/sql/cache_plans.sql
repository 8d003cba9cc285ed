-- The planner takes into account which columns the column cache has.
SET client_min_messages = warning;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = eager;
SET max_parallel_workers_per_gather = 0;

-- the cost of the custom scan
CREATE FUNCTION cost(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN jsonb_path_query_first(plan, '$.** ? (@."Custom Plan Provider" == "GpuAgg")') -> 'Total Cost';
END $$;
-- the nodes of a plan, from top to bottom
CREATE FUNCTION nodes(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    nodes text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '^( *->|\w)' THEN
            nodes := concat_ws(' > ', nodes, regexp_replace(line, '^ *->  ', ''));
        END IF;
    END LOOP;
    RETURN nodes;
END $$;

CREATE TABLE plans (k int, i int, v int, w numeric(10,2), pad text) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO plans SELECT g % 10, g, g % 1000, g / 4.0, repeat('x', 300) FROM generate_series(1, 20000) g;
CREATE INDEX ON plans (i);
VACUUM ANALYZE plans;

-- a scan of cached columns is cheaper; not if one of the columns is not cached
CREATE TABLE before AS SELECT cost('SELECT k, gpu_sum(v) FROM plans GROUP BY k') AS kv,
    cost('SELECT k, gpu_sum(w) FROM plans GROUP BY k') AS kw, cost('SELECT gpu_count(*) FROM plans WHERE v > 0') AS v;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 40;
SELECT nodes('SELECT k, gpu_sum(v) FROM plans GROUP BY k');
SET max_parallel_workers_per_gather = 0;
SELECT count(s) FROM (SELECT k, gpu_sum(v) FROM plans GROUP BY k OFFSET 0) s;
SELECT kv > 2 * cost('SELECT k, gpu_sum(v) FROM plans GROUP BY k') AS cached, kw = cost('SELECT k, gpu_sum(w) FROM plans GROUP BY k') AS lacks_w,
    v > cost('SELECT gpu_count(*) FROM plans WHERE v > 0') AS condition FROM before;
-- below lookups, vectors need less for conditions of cached columns than the executor, but not for a user's function
CREATE TABLE few AS SELECT g AS k FROM generate_series(0, 9) g;
ANALYZE few;
CREATE FUNCTION even(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT COST 1 AS 'BEGIN RETURN $1 % 2 = 0; END';
CREATE FUNCTION of_conditions(condition text) RETURNS float8 LANGUAGE sql AS
$$SELECT cost('SELECT gpu_sum(v) FROM plans JOIN few USING (k) WHERE v > -1 AND ' || condition) - cost('SELECT gpu_sum(v) FROM plans JOIN few USING (k) WHERE v > -1')$$;
CREATE TABLE cached AS SELECT of_conditions('v <> -1 AND v <> -2 AND v <> -3 AND v <> -4') AS core, of_conditions('even(v) IS NOT NULL AND even(v + 1) IS NOT NULL') AS users;
SET gpuagg.cache = off;
SELECT core < 0.2 * of_conditions('v <> -1 AND v <> -2 AND v <> -3 AND v <> -4') AS less,
    users > 0.7 * of_conditions('even(v) IS NOT NULL AND even(v + 1) IS NOT NULL') AS same FROM cached;
SET gpuagg.cache = eager;
-- the scan is too short for workers
SET max_parallel_workers_per_gather = 2;
SELECT nodes('SELECT k, gpu_sum(v) FROM plans GROUP BY k');
SELECT nodes('SELECT k, gpu_sum(w) FROM plans GROUP BY k');
SET max_parallel_workers_per_gather = 0;
-- not if the cache is not read
SET gpuagg.cache = off;
SELECT kv = cost('SELECT k, gpu_sum(v) FROM plans GROUP BY k') AS uncached FROM before;
SET gpuagg.cache = eager;
-- a column of another type must be cached again
BEGIN;
ALTER TABLE plans ALTER v TYPE bigint;
ANALYZE plans;
SELECT abs(kv / cost('SELECT k, gpu_sum(v) FROM plans GROUP BY k') - 1) < 0.1 AS uncached FROM before;
ROLLBACK;

-- an index scan of a part of the pages costs more than cached columns of all pages
SELECT nodes('SELECT k, gpu_sum(i) FROM plans WHERE i < 3000 GROUP BY k');
SELECT count(s) FROM (SELECT k, gpu_sum(i) FROM plans GROUP BY k OFFSET 0) s;
SELECT nodes('SELECT k, gpu_sum(i) FROM plans WHERE i < 3000 GROUP BY k');
SELECT k, gpu_sum(i) FROM plans WHERE i < 3000 GROUP BY k ORDER BY k LIMIT 2;
-- not if it reads few pages, nor if columns are missing
SELECT nodes('SELECT k, gpu_sum(i) FROM plans WHERE i < 30 GROUP BY k');
SELECT nodes('SELECT k, gpu_sum(w) FROM plans WHERE i < 3000 GROUP BY k');
-- expressions above the scan, and conditions without columns
SELECT nodes('SELECT k + 1, gpu_sum(i * 2) FROM plans WHERE i < 3000 AND now() IS NOT NULL GROUP BY k + 1');
SELECT k + 1 AS k1, gpu_sum(i * 2) FROM plans WHERE i < 3000 AND now() IS NOT NULL GROUP BY k + 1 ORDER BY k1 LIMIT 2;
-- also with workers
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT nodes('SELECT k, gpu_sum(i) FROM plans WHERE i < 3000 GROUP BY k');
SELECT k, gpu_sum(i) FROM plans WHERE i < 3000 GROUP BY k ORDER BY k LIMIT 2;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;

-- after blocks were found to have changed, the cost rises again
CREATE TABLE warm AS SELECT cost('SELECT k, gpu_sum(v) FROM plans GROUP BY k') AS kv;
UPDATE plans SET v = v;
SELECT count(s) FROM (SELECT k, gpu_sum(v) FROM plans GROUP BY k OFFSET 0) s;
SELECT cost('SELECT k, gpu_sum(v) FROM plans GROUP BY k') > 2 * kv AS dearer FROM warm;

-- each partition separately
CREATE TABLE parts (k int, v int, pad text) PARTITION BY LIST (k);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT 1 + g % 2, g, repeat('x', 300) FROM generate_series(1, 20000) g;
VACUUM ANALYZE parts;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE stages (n int, cost float8);
INSERT INTO stages SELECT 1, cost('SELECT k, gpu_sum(v) FROM parts GROUP BY k');
SELECT count(s) FROM (SELECT k, gpu_sum(v) FROM parts1 GROUP BY k OFFSET 0) s;
INSERT INTO stages SELECT 2, cost('SELECT k, gpu_sum(v) FROM parts GROUP BY k');
SELECT count(s) FROM (SELECT k, gpu_sum(v) FROM parts2 GROUP BY k OFFSET 0) s;
INSERT INTO stages SELECT 3, cost('SELECT k, gpu_sum(v) FROM parts GROUP BY k');
SELECT n, lag(cost) OVER (ORDER BY n) - cost > 100 AS less FROM stages ORDER BY n;

DROP TABLE plans, before, warm, parts, stages, cached, few;
DROP FUNCTION cost, even, of_conditions;
DROP FUNCTION nodes;
