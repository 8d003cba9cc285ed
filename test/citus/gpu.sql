-- Tests with a GPU server on each node: columns that the workers' GPUs cache, and settings. Prints TAP.
\set by_k 'SELECT k, gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_min(f8) AS m FROM dist_rows GROUP BY k'
\set by_g 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_min(f8) AS m FROM dist_rows GROUP BY g'

CREATE FUNCTION analyzed(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END
$$;

-- Checks that a query over dist_rows has the same answer as PostgreSQL's aggregates over local_rows. Returns a line of TAP.
CREATE FUNCTION answers(query text, name text) RETURNS text LANGUAGE sql AS $$
	SELECT tap(wrong = '', name, wrong)
	FROM difference(query, regexp_replace(replace(query, 'dist_', 'local_'), 'gpu_(count|sum|avg|min|max)\M', '\1', 'g'), true) wrong
$$;

-- all workers have a server; the coordinator's is not used by their tasks
SELECT tap(bool_and(success AND result = 'ready'), 'the servers of the workers are ready', string_agg(result, ', '))
FROM run_command_on_workers('SELECT server FROM gpuagg_status');

SELECT unnest(ARRAY[answers(:'by_k', 'by the distribution column'), answers(:'by_g', 'by another')]);
SELECT tap(p ~ 'Engine: cuda' AND p ~ 'Resident Rows: [1-9]', 'grouping by the distribution column reads GPU memory', p) FROM analyzed(:'by_k') p;
SELECT tap(p ~ 'Engine: cuda' AND p ~ 'Resident Rows: [1-9]', 'grouping by another column reads GPU memory', p) FROM analyzed(:'by_g') p;
SELECT tap(count(*) = 2 AND bool_and(success AND result::int > 0), 'columns of shards are cached in both tiers', string_agg(result, ', '))
FROM run_command_on_workers($$SELECT count(*) FROM (SELECT FROM gpuagg_cache WHERE relation::text ~ '^dist_rows_\d+$' AND "column" = 'i4'
	GROUP BY relation HAVING count(DISTINCT tier) = 2) r$$);

-- rows that the transaction has changed, before and after its rollback
BEGIN;
UPDATE dist_rows SET i4 = i4 + 1, g = 3 WHERE id % 50 = 0;
UPDATE local_rows SET i4 = i4 + 1, g = 3 WHERE id % 50 = 0;
DELETE FROM dist_rows WHERE id BETWEEN 100 AND 900;
DELETE FROM local_rows WHERE id BETWEEN 100 AND 900;
SELECT unnest(ARRAY[answers(:'by_k', 'changed rows by the distribution column'), answers(:'by_g', 'changed rows by another')]);
ROLLBACK;
SELECT unnest(ARRAY[answers(:'by_k', 'rolled back, by the distribution column'), answers(:'by_g', 'rolled back, by another')]);

-- settings apply to the session's node ...
SET gpuagg.engine = cpu;
SELECT tap(engine_of(plan_of(:'by_g')) ~ '^cuda' AND engine_of(plan_of('SELECT g, gpu_count(*) FROM local_rows GROUP BY g')) ~ '^cpu', 'SET applies to the session''s node', plan_of(:'by_g'));
RESET gpuagg.engine;
-- ... except for those that a transaction propagates
BEGIN;
SET LOCAL citus.propagate_set_commands = 'local';
SET LOCAL gpuagg.engine = cpu;
SELECT tap(engine_of(plan_of(:'by_g')) ~ '^cpu', 'SET LOCAL is propagated', plan_of(:'by_g'));
SELECT queries_at_servers() AS before \gset
SELECT answers(:'by_g', 'SET LOCAL is propagated: the answer is right');
SELECT tap(queries_at_servers() = :before, 'SET LOCAL is propagated: no query at the servers');
COMMIT;
SELECT tap(engine_of(plan_of(:'by_g')) ~ '^cuda', 'SET LOCAL ends with the transaction', plan_of(:'by_g'));

-- settings of roles and databases apply to new sessions, on all nodes
ALTER ROLE postgres SET gpuagg.engine = cpu;
\c
SELECT tap(engine_of(plan_of(:'by_g')) ~ '^cpu', 'ALTER ROLE ... SET applies to all nodes', plan_of(:'by_g'));
ALTER ROLE postgres RESET gpuagg.engine;
ALTER DATABASE postgres SET gpuagg.engine = cpu;
\c
SELECT tap(engine_of(plan_of(:'by_g')) ~ '^cpu', 'ALTER DATABASE ... SET applies to all nodes', plan_of(:'by_g'));
ALTER DATABASE postgres RESET gpuagg.engine;
\c
SELECT tap(engine_of(plan_of(:'by_g')) ~ '^cuda', 'RESET applies to all nodes', plan_of(:'by_g'));

-- the workers' scans by engine: where the GPU engine failed, the data were the reason
CREATE VIEW scans AS
SELECT r->>'event' AS event, r->>'engine' AS engine, r->>'reason' AS reason, sum((r->>'calls')::bigint) AS calls
FROM run_command_on_workers($$SELECT json_agg(s) FROM gpuagg_stats s WHERE event IN ('taken', 'engine')$$), json_array_elements(result::json) r
GROUP BY r->>'event', r->>'engine', r->>'reason';
SELECT tap(count(*) FILTER (WHERE reason ~ 'failed' AND reason !~ '-0') = 0, 'no GPU server failed', string_agg(reason, '; ')) FROM scans;
SELECT format('# workers: %s scans on the engine %s', sum(calls), engine) FROM scans WHERE event = 'taken' GROUP BY engine ORDER BY engine;
SELECT format('# %s of them, as %s', calls, reason) FROM scans WHERE event = 'engine' ORDER BY calls DESC;
