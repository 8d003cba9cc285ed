-- The heap feed reads bitmap heap scans, and Appends in which the executor must run some subplans.
SET gpuagg.require = 'require';
SET gpuagg.cache = off;
SET enable_indexscan = off;
SET enable_seqscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION feed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, VERBOSE) ' || query LOOP
		IF line ~ '(Feed|Heap Feed|Heap Blocks|Input Rows)' THEN
			RETURN NEXT ltrim(line);
		END IF;
	END LOOP;
END $$;
-- Returns both answers, or an error if they differ.
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	cores text;
BEGIN
	EXECUTE format('SELECT string_agg(s::text, E''\n'' ORDER BY s::text) FROM (%s) s', query) INTO ours;
	PERFORM set_config('gpuagg.enabled', 'off', true), set_config('gpuagg.require', 'allow', true);
	EXECUTE format('SELECT string_agg(s::text, E''\n'' ORDER BY s::text) FROM (%s OFFSET 0) s', query) INTO cores;
	PERFORM set_config('gpuagg.enabled', 'on', true), set_config('gpuagg.require', 'require', true);
	IF ours IS DISTINCT FROM cores THEN
		RAISE 'gpuagg: %, core: %', ours, cores;
	END IF;
	RETURN md5(ours);
END $$;

CREATE TABLE bits (k int, v int, w numeric(8, 2), t text) WITH (autovacuum_enabled = off, fillfactor = 70);
INSERT INTO bits SELECT i % 7, i, i / 4.0, 'text ' || i % 13 FROM generate_series(1, 20000) i;
CREATE INDEX bits_v ON bits (v);
CREATE INDEX bits_k ON bits (k);
CREATE INDEX bits_partial ON bits (w) WHERE k = 3;
CREATE INDEX bits_brin ON bits USING brin (v) WITH (pages_per_range = 8);
VACUUM ANALYZE bits;

SELECT feed('SELECT k, gpu_count(*), gpu_sum(v) FROM bits WHERE v BETWEEN 5000 AND 15000 GROUP BY k');
SELECT same('SELECT k, gpu_count(*), gpu_sum(v) FROM bits WHERE v BETWEEN 5000 AND 15000 GROUP BY k') IS NOT NULL;
-- several indexes, with a filter, columns that no index has, a partial index
SELECT same('SELECT k, gpu_count(*), gpu_sum(w), gpu_max(t) FROM bits WHERE (k = 2 OR v < 3000 OR v > 19000) AND t <> ''text 3'' GROUP BY k') IS NOT NULL;
SELECT feed('SELECT gpu_sum(v) FROM bits WHERE k = 3 AND w < 2000');
SELECT same('SELECT gpu_sum(v) FROM bits WHERE k = 3 AND w < 2000') IS NOT NULL;
-- no rows, all rows, NULL
SELECT same('SELECT gpu_count(*), gpu_sum(v) FROM bits WHERE v < 0') IS NOT NULL,
	same('SELECT gpu_count(*), gpu_sum(v) FROM bits WHERE v > 0') IS NOT NULL,
	same('SELECT gpu_count(*), gpu_sum(v) FROM bits WHERE v > NULL::int') IS NOT NULL;

-- HOT chains, dead tuples, tuples that the snapshot does not see, own changes
UPDATE bits SET t = 'hot' WHERE v % 3 = 0;
UPDATE bits SET v = v + 100000 WHERE v % 5 = 0;
DELETE FROM bits WHERE v % 11 = 0;
SELECT feed('SELECT gpu_count(*), gpu_sum(v) FROM bits WHERE v < 10000');
SELECT same('SELECT t, gpu_count(*), gpu_sum(v), gpu_min(w) FROM bits WHERE v < 10000 GROUP BY t') IS NOT NULL;
VACUUM bits;
SELECT same('SELECT t, gpu_count(*), gpu_sum(v), gpu_min(w) FROM bits WHERE v < 10000 GROUP BY t') IS NOT NULL;
BEGIN;
UPDATE bits SET w = w + 1 WHERE v % 7 = 0;
UPDATE bits SET w = 0;
SELECT same('SELECT t, gpu_sum(w) FROM bits WHERE v < 10000 GROUP BY t') IS NOT NULL;
ROLLBACK;

-- lossy pages because of a small work_mem, and the summary of a BRIN index
SET work_mem = '64kB';
CREATE TABLE many AS SELECT i AS v, i % 10 AS k, repeat('x', 300) AS filler FROM generate_series(1, 60000) i;
CREATE INDEX ON many (v);
VACUUM ANALYZE many;
SELECT feed('SELECT k, gpu_sum(v) FROM many WHERE v > 10 GROUP BY k');
SELECT same('SELECT k, gpu_sum(v) FROM many WHERE v > 10 GROUP BY k') IS NOT NULL;
RESET work_mem;
DROP INDEX bits_v;
SELECT feed('SELECT gpu_count(*) FROM bits WHERE v BETWEEN 3000 AND 3500');
SELECT same('SELECT gpu_count(*), gpu_sum(v) FROM bits WHERE v BETWEEN 3000 AND 3500') IS NOT NULL;

-- rescans with parameters
SELECT same('SELECT g, (SELECT gpu_sum(v) FROM bits WHERE v < g * 1000) FROM generate_series(0, 4) g') IS NOT NULL;
SELECT same('SELECT g, s FROM generate_series(1, 3) g, LATERAL (SELECT k, gpu_count(*) FROM bits WHERE v < g * 500 GROUP BY k) s') IS NOT NULL;

-- conditions that may fail: alternatives are left to the executor, as are serializable transactions
CREATE TABLE quotients AS SELECT i AS v, i % 50 AS d FROM generate_series(1, 5000) i;
CREATE INDEX ON quotients ((100 / d)) WHERE d <> 0;
VACUUM ANALYZE quotients;
SELECT feed('SELECT gpu_count(*) FROM quotients WHERE d <> 0 AND 100 / d = 10');
SELECT same('SELECT gpu_count(*) FROM quotients WHERE d <> 0 AND 100 / d = 10') IS NOT NULL;
CREATE INDEX ON quotients (d);
VACUUM ANALYZE quotients;
SELECT feed('SELECT gpu_count(*) FROM quotients WHERE d <> 0 AND 100 / d = 10 OR d = 0');
SELECT same('SELECT gpu_count(*) FROM quotients WHERE d <> 0 AND 100 / d = 10 OR d = 0') IS NOT NULL;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT feed('SELECT gpu_count(*) FROM bits WHERE k = 3');
ROLLBACK;

-- one partition is read by its index, or is foreign, and the others from pages
RESET enable_seqscan;
RESET enable_indexscan;
CREATE TABLE parts (k int, v int, t text) PARTITION BY RANGE (v);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (20000);
CREATE TABLE parts_3 (t text, k int, dropped int, v int);
ALTER TABLE parts_3 DROP COLUMN dropped;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (20000) TO (30000);
INSERT INTO parts SELECT i % 5, i, 'part ' || i % 3 FROM generate_series(0, 29999) i;
CREATE INDEX ON parts_2 (v);
VACUUM ANALYZE parts;
SET enable_bitmapscan = off;
SELECT feed('SELECT k, gpu_count(*), gpu_sum(v), gpu_max(t) FROM parts WHERE v BETWEEN 9000 AND 10100 OR v > 29000 GROUP BY k');
SELECT feed('SELECT k, gpu_count(*), gpu_sum(v), gpu_max(t) FROM parts WHERE v >= 5000 AND v < 10020 GROUP BY k');
SELECT same('SELECT k, gpu_count(*), gpu_sum(v), gpu_max(t) FROM parts WHERE v >= 5000 AND v < 10020 GROUP BY k') IS NOT NULL;
SELECT same('SELECT t, gpu_sum(v) FROM (SELECT t, v FROM parts UNION ALL SELECT * FROM (SELECT t, v FROM parts_1 ORDER BY v LIMIT 10) l) s GROUP BY t') IS NOT NULL;
SELECT feed('SELECT t, gpu_sum(v) FROM (SELECT t, v FROM parts UNION ALL SELECT * FROM (SELECT t, v FROM parts_1 ORDER BY v LIMIT 10) l) s GROUP BY t');
SELECT same('SELECT g, (SELECT gpu_sum(v) FROM parts WHERE v >= g * 1000 AND v < 10020) FROM generate_series(7, 10) g') IS NOT NULL;
RESET enable_bitmapscan;
-- with the column cache
SET gpuagg.cache = 'eager';
SELECT same('SELECT k, gpu_count(*), gpu_sum(v), gpu_max(t) FROM parts WHERE v >= 5000 AND v < 10020 GROUP BY k') IS NOT NULL;
SELECT same('SELECT t, gpu_count(*) FROM parts WHERE v >= 5000 AND v < 10020 GROUP BY t') IS NOT NULL;
SELECT same('SELECT t, gpu_count(*) FROM parts WHERE v >= 5000 AND v < 10020 GROUP BY t') IS NOT NULL;
DROP TABLE bits, many, quotients, parts;
DROP FUNCTION feed, same;
