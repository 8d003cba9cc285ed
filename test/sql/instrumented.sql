-- Rescans of queries whose nodes are timed, by EXPLAIN ANALYZE or auto_explain: a node must not be rescanned
-- while its timer is running.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
-- rows from a GPU's memory are not counted by the node if a condition removes some
SET gpuagg.cache = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE timed (k int, v int);
INSERT INTO timed SELECT i % 10, i FROM generate_series(1, 1000) i;
CREATE TABLE timed_parts (k int, v int) PARTITION BY RANGE (v);
CREATE TABLE timed_parts1 PARTITION OF timed_parts FOR VALUES FROM (0) TO (300);
CREATE TABLE timed_parts2 PARTITION OF timed_parts FOR VALUES FROM (300) TO (2000);
INSERT INTO timed_parts SELECT * FROM timed;
ANALYZE timed, timed_parts;
-- The rows and loops of each node.
CREATE FUNCTION counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING ON, FORMAT JSON) ' || query INTO plan;
	RETURN QUERY SELECT format('%s: %s * %s', n ->> 'Node Type', (n ->> 'Actual Rows')::numeric::int, n ->> 'Actual Loops')
	FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (exists (@."Node Type"))', '{}', true) n;
END $$;
SET gpuagg.require = 'require';
SELECT counts('SELECT g, (SELECT gpu_sum(v) FROM timed WHERE k < g) FROM generate_series(0, 3) g');
SELECT counts('SELECT g, (SELECT gpu_sum(v) FROM timed_parts WHERE k < g) FROM generate_series(0, 3) g');
SELECT counts('SELECT g, (SELECT gpu_sum(v) FROM timed_parts WHERE v < 400 * g) FROM generate_series(0, 2) g');
SELECT counts('SELECT g, x.c FROM generate_series(1, 2) g, LATERAL (SELECT k + g AS kg, gpu_count(*) AS c FROM timed GROUP BY k + g ORDER BY 1 LIMIT 2) x');
SET gpuagg.feed = 'tuples';
SELECT counts('SELECT g, (SELECT gpu_sum(v + g) FROM timed WHERE k < g) FROM generate_series(0, 3) g');
RESET gpuagg.feed;
RESET gpuagg.require;
DROP FUNCTION counts;
DROP TABLE timed, timed_parts;
