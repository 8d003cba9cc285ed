-- Groups that leave the tables of participants before the end of the input, because they have outgrown the processor's cache.
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET work_mem = '64MB';
SET max_parallel_workers_per_gather = 1;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE moving (a int, b bigint, t text) WITH (autovacuum_enabled = off, parallel_workers = 1);
INSERT INTO moving
    SELECT nullif(i % 70001, 7), i * 10000019::bigint % 90001, CASE WHEN i % 5 > 0 THEN 'text ' || i % 60013 END FROM generate_series(1, 100000) i;
VACUUM ANALYZE moving;
CREATE TABLE forms (n serial, q text);
-- each group has sixteen states, so that few groups fill the cache
INSERT INTO forms (q) SELECT format('SELECT %1$s, count(*), %2$s FROM moving GROUP BY %1$s', keys, sums)
    FROM (SELECT string_agg(format('sum(a # %s), max(b # %s)', i, i), ', ') AS sums FROM generate_series(1, 8) i) s,
        unnest(ARRAY['a, b', 'b, t, a % 3']) WITH ORDINALITY k (keys, o) ORDER BY o;
INSERT INTO forms (q) VALUES
    ('SELECT count(DISTINCT a * 100000::bigint + b), sum(DISTINCT b * 100000 + a) FROM moving'),
    ('SELECT a % 5, count(DISTINCT (b * 70001 + a)), count(DISTINCT t) FROM moving GROUP BY 1');

-- The memory of all participants, in kB; the least of some executions: participants may start so late that one has all rows.
CREATE FUNCTION least_memory(query text, enough int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan json;
    found int;
    least int;
BEGIN
    FOR i IN 1..30 LOOP
        EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
        found := substring(plan::text FROM '"Memory": ([0-9]+)');
        least := least(least, found);
        EXIT WHEN least <= enough;
    END LOOP;
    RETURN least;
END $$;
CREATE FUNCTION digest(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('SELECT concat_ws('' '', count(*), sum(hashtextextended(s::text, 0))) FROM (%s) s', query) INTO result;
    RETURN result;
END $$;
SET gpuagg.enabled = off;
CREATE TABLE expected AS SELECT n, digest(q) AS core FROM forms;
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SELECT n, digest(q) = core AS same FROM forms JOIN expected USING (n) ORDER BY n;
-- where the strategy is set, groups stay
SET gpuagg.strategy = 'hash';
CREATE TABLE memory AS SELECT n, least_memory(q, 1000000) AS all_groups FROM forms WHERE n = 1;
RESET gpuagg.strategy;
SELECT n, least_memory(q, all_groups * 2 / 3) <= all_groups * 2 / 3 AS less FROM forms JOIN memory USING (n) ORDER BY n;
-- memory is used up
SET work_mem = '1MB';
SELECT n, digest(q) = core AS same FROM forms JOIN expected USING (n) ORDER BY n;
RESET work_mem;
DROP TABLE moving, forms, expected, memory;
DROP FUNCTION digest, least_memory;
