--
-- EXPLAIN in all formats.
--
SET gpuagg.engine = 'cpu';
SET gpuagg.feed = 'tuples';
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE e AS SELECT i % 5 AS k, i AS v, 'k' || i % 3 AS t FROM generate_series(1, 1000) i;
ANALYZE e;
-- numbers that depend on the machine or the release become N
CREATE FUNCTION explained(options text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (COSTS OFF, %s) %s', options, query) LOOP
        CONTINUE WHEN line ~ '(Disabled|Index Searches|Async Capable|Storage)';
        line := regexp_replace(line, '(Memory: |<Memory>|"Memory": )\d+', '\1N');
        line := regexp_replace(line, '(rows=\d+)\.\d+', '\1');
        RETURN NEXT line;
    END LOOP;
END $$;
SELECT explained('SUMMARY OFF', 'SELECT k, gpu_sum(v) FROM e GROUP BY k');
SELECT explained('VERBOSE, SUMMARY OFF', 'SELECT k + 1, t, gpu_sum(v) + 1, gpu_count(*) FILTER (WHERE v > 1) FROM e GROUP BY k + 1, t HAVING gpu_max(v) > 3');
SELECT explained('SUMMARY OFF', 'SELECT gpu_count(*) FROM e x JOIN e y USING (k) GROUP BY x.k, y.t');
SELECT explained('ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF', 'SELECT k, gpu_sum(v) FROM e GROUP BY k HAVING k > 1');
SELECT explained('ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF', 'SELECT gpu_sum(v) FROM e WHERE v > 500');
SELECT explained('ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF', 'SELECT gpu_count(*) FROM e LIMIT 0');
-- without ANALYZE nothing is executed and no parameter is evaluated
SELECT * FROM explained('SUMMARY OFF', 'SELECT gpu_histogram(v, 0, (SELECT 1 / (count(*) - 1000) FROM e), 4) FROM e') e WHERE e ~ 'GpuAgg';
-- all formats are well-formed and have the same properties
CREATE FUNCTION properties(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j json;
    x xml;
    y text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO j;
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT XML) ' || query INTO x;
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT YAML) ' || query INTO y;
    j := j -> 0 -> 'Plan';
    RETURN (SELECT string_agg(format('%s=%s', p, j ->> p), E'\n') FROM unnest('{Custom Plan Provider,Group Key,Engine,Feed,Strategy,Strategy Changes,Input Rows,Batches,Groups,Spilled,Spill Partitions}'::text[]) p)
        || E'\n' || xpath_exists('//e:Input-Rows[text() = "1000"]', x, '{{e,http://www.postgresql.org/2009/explain}}')
        || E'\n' || (y ~ 'Input Rows: 1000');
END $$;
SELECT properties('SELECT k, gpu_sum(v) FROM e GROUP BY k');
-- the reason for which a query is not taken
RESET gpuagg.require;
SELECT * FROM explained('VERBOSE, SUMMARY OFF', 'SELECT k, gpu_count(DISTINCT v::numeric::money) FROM e GROUP BY k') e WHERE e ~ 'GpuAgg';
SET gpuagg.enabled = off;
SELECT explained('VERBOSE, SUMMARY OFF', 'SELECT gpu_count(*) FROM e');
RESET gpuagg.enabled;
SELECT explained('VERBOSE, SUMMARY OFF', 'SELECT count(*) FROM e');
SET client_min_messages = debug1;
SELECT k, gpu_count(DISTINCT v::numeric::money) FROM e GROUP BY k LIMIT 0;
RESET client_min_messages;

DROP FUNCTION explained, properties;
DROP TABLE e;
