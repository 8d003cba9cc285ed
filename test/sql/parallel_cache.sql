-- The column cache in parallel: parallel plans alone fill it, and scans of cached columns start few workers.
SET client_min_messages = warning;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = on;
SET gpuagg.replace_builtin = on;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;

-- the scan's nodes, its workers, and whether its blocks came from pages, from the cache, or were added to the cache
CREATE FUNCTION scan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
    scan jsonb;
    blocks text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
    scan := jsonb_path_query_first(plan, '$.** ? (@."Custom Plan Provider" == "GpuAgg")');
    IF scan IS NULL THEN
        RETURN 'core';
    END IF;
    blocks := CASE WHEN COALESCE(scan ->> 'Cached Blocks', '0') = '0' THEN 'pages'
        WHEN scan ->> 'Feed' !~ '\((\d+) of \1 blocks\)' THEN 'some cached'
        WHEN scan ->> 'Cached Blocks Built' = '0' THEN 'all cached' ELSE 'all built' END;
    RETURN concat_ws(', ', CASE WHEN scan -> 'Parallel Aware' = 'true' THEN 'parallel scan of ' ELSE 'scan of ' END ||
        (scan #>> '{Plans,0,Node Type}'), blocks);
END $$;
CREATE FUNCTION workers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN COALESCE((jsonb_path_query_first(plan, '$.**."Workers Planned"'))::int, 0);
END $$;

-- Few rows pass, and nearly all costs are those of pages, which a custom scan cannot lower before they are cached. PostgreSQL's plan that
-- sorts these rows early costs less than one percent more.
CREATE TABLE wide (a int, b int, c int, d int, e date, pad text) WITH (autovacuum_enabled = off, parallel_workers = 3);
ALTER TABLE wide ALTER pad SET STORAGE plain;
INSERT INTO wide SELECT i, i % 100, i % 50, i % 3, date '2024-01-01' + i % 40, repeat('x', 1500) FROM generate_series(1, 12000) i;
VACUUM ANALYZE wide;
CREATE TABLE queries (n serial, q text);
INSERT INTO queries (q) VALUES
    ('SELECT c, e, count(*) FROM wide WHERE b = 62 AND d IN (1, 2) AND e >= ''2024-01-05'' AND e < ''2024-02-05'' AND a > 100 GROUP BY c, e'),
    ('SELECT c, e, count(*) AS n FROM wide WHERE b = 62 AND d IN (1, 2) AND e >= ''2024-01-05'' GROUP BY c, e ORDER BY n DESC, c, e LIMIT 5'),
    ('SELECT c, count(*) FROM wide WHERE b = 62 AND d IN (1, 2) AND e >= ''2024-01-05'' GROUP BY c ORDER BY c'),
    ('SELECT DISTINCT c, d FROM wide WHERE b = 62 AND e >= ''2024-01-05'''),
    ('SELECT count(*), max(e) FROM wide WHERE b = 62 AND d IN (1, 2)'),
    ('SELECT n, count(*) FROM (SELECT c, e, count(*) AS n FROM wide WHERE b = 62 AND e >= ''2024-01-05'' GROUP BY c, e) s GROUP BY n');
-- the first query only counts the columns' use, and at the second one participants may begin before it is counted
CREATE FUNCTION scans(query text) RETURNS TABLE (first text, fourth text) LANGUAGE sql AS $$
    SELECT s[1], s[4] FROM (SELECT array_agg(scan(query)) AS s FROM generate_series(1, 4)) x $$;
SELECT n, first, fourth FROM queries, scans(q) WHERE n = 1;
SELECT gpuagg_cache_evict('wide') > 0 AS evicted;
SELECT n, first, fourth FROM queries, scans(q) WHERE n = 2;
SELECT gpuagg_cache_evict('wide') > 0 AS evicted;
SELECT n, first, fourth FROM queries, scans(q) WHERE n = 3;
-- without PostgreSQL's plans: not over rows that PostgreSQL has sorted
SELECT gpuagg_cache_evict('wide') > 0 AS evicted;
SET gpuagg.require = 'require';
SET seq_page_cost = 10;
SELECT first, fourth FROM scans('SELECT c, e, gpu_count(*) FROM wide WHERE b = 62 AND d IN (1, 2) AND e >= ''2024-01-05'' AND a > 100 GROUP BY c, e');
RESET seq_page_cost;
RESET gpuagg.require;
-- ranges that have other columns already
SELECT n, fourth FROM queries, scans(q) ORDER BY n;
SELECT "column", blocks = pg_relation_size('wide') / 8192 AS all_blocks FROM gpuagg_cache WHERE relation = 'wide'::regclass ORDER BY 1;
-- one process
SELECT gpuagg_cache_evict('wide') > 0 AS evicted;
SET max_parallel_workers_per_gather = 0;
SELECT n, scan(q), scan(q), scan(q) FROM queries WHERE n IN (1, 3) ORDER BY n;
SET max_parallel_workers_per_gather = 3;

-- Participants that read pages only claim parts of ranges: in the transaction that makes a table only workers use the cache.
SET gpuagg.cache = eager;
BEGIN;
CREATE TABLE frozen (a int) WITH (autovacuum_enabled = off, fillfactor = 10, parallel_workers = 3);
COPY frozen FROM PROGRAM 'seq 1 60000' WITH (FREEZE);
SELECT count(*), sum(a), min(a), max(a) FROM frozen WHERE a <> 0;
SELECT count(*), sum(a), min(a), max(a) FROM frozen WHERE a <> 0;
COMMIT;
-- some releases leave pages that are not all-visible
VACUUM frozen;
SET gpuagg.require = 'require';
SELECT count(*), sum(a), min(a), max(a) FROM frozen WHERE a <> 0;
SELECT scan('SELECT count(*), sum(a), min(a), max(a) FROM frozen WHERE a <> 0') ~ 'all cached' AS all_cached;
RESET gpuagg.require;
DROP TABLE frozen, queries, wide;

-- The number of workers: PostgreSQL's own for pages; for cached columns the more the more work there is, or none.
SET gpuagg.cache = on;
SET max_parallel_workers_per_gather = 6;
SET parallel_setup_cost = 3;
CREATE TABLE narrow (a int, b int, c int, d date, f float8, pad text) WITH (autovacuum_enabled = off);
INSERT INTO narrow SELECT i, i % 10, i % 1000, date '2024-01-01' + i % 40, i / 7.0, repeat('x', 400) FROM generate_series(1, 60000) i;
VACUUM ANALYZE narrow;
CREATE TABLE cheap (n serial, q text);
INSERT INTO cheap (q) VALUES
    ('SELECT count(*) FROM narrow'),
    ('SELECT min(d), max(a), count(*) FROM narrow'),
    ('SELECT avg(f) FROM narrow'),
    ('SELECT sum(a), avg(c), min(d), count(*) FROM narrow'),
    ('SELECT count(*) FROM narrow WHERE c < 500'),
    ('SELECT b, sum(a), avg(f), max(d), stddev(f), sum(c), count(*) FROM narrow WHERE c <> 3 AND a <> 5 GROUP BY b'),
    -- a few ranges have such values of a, and all have such values of c
    ('SELECT b, sum(f) FROM narrow WHERE a > 59000 GROUP BY b'),
    ('SELECT b, sum(f) FROM narrow WHERE c > 983 GROUP BY b'),
    ('SELECT b, count(*) FROM (SELECT * FROM narrow UNION ALL SELECT * FROM narrow) s GROUP BY b'),
    -- many groups, or distinct values
    ('SELECT a, count(*) FROM narrow GROUP BY a ORDER BY 2 DESC LIMIT 10'),
    ('SELECT count(DISTINCT a) FROM narrow');
SELECT n, workers(q) FROM cheap ORDER BY n;
SELECT gpuagg_cache_prewarm('narrow') > 0 AS prewarmed;
SELECT n, workers(q) FROM cheap ORDER BY n;
-- with more processes allowed, and fewer
SET max_parallel_workers_per_gather = 1;
SELECT n, workers(q) FROM cheap ORDER BY n;
SET max_parallel_workers_per_gather = 64;
SELECT n, workers(q) FROM cheap ORDER BY n;
-- without the leader
SET parallel_leader_participation = off;
SELECT n, workers(q) FROM cheap ORDER BY n;
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 6;
-- workers that cost nothing, or much
SET gpuagg.worker_cost = 0;
SELECT n, workers(q) FROM cheap ORDER BY n;
RESET gpuagg.worker_cost;
SET parallel_setup_cost = 1000;
SELECT n, workers(q) FROM cheap ORDER BY n;
SET parallel_setup_cost = 0;
SELECT n, workers(q) FROM cheap ORDER BY n;
SET parallel_setup_cost = 3;
-- a table's own number
ALTER TABLE narrow SET (parallel_workers = 5);
VACUUM ANALYZE narrow;
SELECT gpuagg_cache_prewarm('narrow') > 0 AS prewarmed;
SELECT n, workers(q) FROM cheap ORDER BY n;
DROP TABLE narrow, cheap;

-- Participants read parts of a single range, if it is cached. One that is not cached is read as a whole, and added to the cache.
RESET gpuagg.require;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 3;
CREATE TABLE one_range WITH (autovacuum_enabled = off, parallel_workers = 3) AS SELECT i FROM generate_series(1, 20000) i;
VACUUM ANALYZE one_range;
SELECT relpages < 256 AS one_range FROM pg_class WHERE relname = 'one_range';
CREATE FUNCTION reading_process(i int) RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	IF i % 1000 = 1 THEN
		PERFORM pg_sleep(coalesce(nullif(current_setting('test.wait', true), '')::float8, 0.005));
	END IF;
	RETURN pg_backend_pid();
END $$;
SELECT count(*) AS runs FROM (SELECT scan('SELECT sum(i) FROM one_range') AS s FROM generate_series(1, 3) OFFSET 0) x WHERE s <> '';
SELECT scan('SELECT sum(i) FROM one_range');
CREATE FUNCTION several_read(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	processes int := 0;
BEGIN
	FOR try IN 0 .. 6 LOOP
		PERFORM set_config('test.wait', (0.005 * 2 ^ try)::text, false);
		EXECUTE query INTO processes;
		EXIT WHEN processes > 1;
	END LOOP;
	RETURN processes > 1;
END $$;
SELECT several_read('SELECT count(*) FROM (SELECT reading_process(i) AS p, count(*) FROM one_range GROUP BY 1) x');
SELECT count(*), sum(i) FROM one_range WHERE reading_process(i) > 0;
DROP TABLE one_range;
DROP FUNCTION reading_process, several_read;
DROP FUNCTION scan, scans, workers;
