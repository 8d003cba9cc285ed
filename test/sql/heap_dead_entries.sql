-- Index scans of the heap feed mark index entries of dead tuples, so that later scans do not visit their pages.
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
-- temporary tables, whose dead tuples no other session can see
CREATE TEMP TABLE dx (v int, w int, t text);
INSERT INTO dx SELECT i, i % 7, 'text ' || i FROM generate_series(1, 20000) i;
CREATE INDEX dx_v ON dx (v);
CREATE UNIQUE INDEX dx_t ON dx (t);
VACUUM ANALYZE dx;
CREATE FUNCTION pages_visited(query text, by_gpuagg bool) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('gpuagg.enabled', by_gpuagg::text, true), set_config('gpuagg.require', CASE WHEN by_gpuagg THEN 'require' ELSE 'allow' END, true);
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	IF by_gpuagg AND plan::text !~ '"Feed": "heap pages of' THEN
		RAISE 'not read from pages: %', plan;
	END IF;
	RETURN (plan->0->'Plan'->>'Local Hit Blocks')::int + (plan->0->'Plan'->>'Local Read Blocks')::int;
END
$$;
-- buffers of repeated scans, by the custom scan and then by core
CREATE FUNCTION visits(query text) RETURNS text LANGUAGE sql VOLATILE AS $$
	WITH n AS MATERIALIZED (SELECT pages_visited(query, true) AS first, pages_visited(query, true) AS second, pages_visited(query, true) AS third, pages_visited(query, false) AS core)
	SELECT format('fewer: %s, no fewer then: %s, as many as core''s: %s', second < first - 60, abs(second - third) <= 3, abs(third - core) <= 3) FROM n
$$;
SET gpuagg.require = 'require';
-- deleted tuples, which the scan prunes, because their pages are full
DELETE FROM dx WHERE v BETWEEN 1000 AND 15000;
SELECT visits('SELECT w, count(*), sum(length(t)) FROM dx WHERE v BETWEEN 800 AND 15200 GROUP BY w');
SELECT w, count(*), sum(length(t)) FROM dx WHERE v BETWEEN 800 AND 15200 GROUP BY w ORDER BY w;
-- pages with free space are not pruned: dead tuples, and dead chains of updated tuples
TRUNCATE dx;
ALTER TABLE dx SET (fillfactor = 40);
INSERT INTO dx SELECT i, i % 7, 'text ' || i FROM generate_series(1, 20000) i;
VACUUM ANALYZE dx;
UPDATE dx SET w = w + 1 WHERE v % 3 = 0;
DELETE FROM dx WHERE v BETWEEN 1000 AND 15000;
SELECT visits('SELECT w, count(*), sum(length(t)) FROM dx WHERE v BETWEEN 800 AND 15200 GROUP BY w');
SELECT w, count(*), sum(length(t)) FROM dx WHERE v BETWEEN 800 AND 15200 GROUP BY w ORDER BY w;
-- not marked: tuples that a snapshot still sees, locked tuples, and tuples whose deletion was rolled back
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 16000 AND 18000;
SAVEPOINT s;
DELETE FROM dx WHERE v BETWEEN 16000 AND 18000;
SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 16000 AND 18000;
SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 16000 AND 18000;
FETCH c;
ROLLBACK TO s;
SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 16000 AND 18000;
SET LOCAL gpuagg.require = 'allow';
SELECT count(*) FROM (SELECT FROM dx WHERE v BETWEEN 16000 AND 18000 FOR UPDATE) x;
COMMIT;
SET gpuagg.require = 'require';
SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 16000 AND 18000;
SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 16000 AND 18000;
-- rows that reuse the places of dead ones, found by both indexes
VACUUM dx;
INSERT INTO dx SELECT i, i % 7, 'text ' || i FROM generate_series(1000, 15000) i;
SELECT w, count(*), sum(length(t)) FROM dx WHERE v BETWEEN 800 AND 15200 GROUP BY w ORDER BY w;
SELECT count(*), sum(v) FROM dx WHERE t > 'text 5' AND v % 3 = 0;
SELECT count(*), sum(v) FROM dx WHERE v BETWEEN 1 AND 20000;
RESET gpuagg.require;
DROP FUNCTION visits, pages_visited;
DROP TABLE dx;
