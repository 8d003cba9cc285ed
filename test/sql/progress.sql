-- The view gpuagg_progress for every feed and phase. A query looks at itself.
CREATE TABLE work AS SELECT i % 1000 AS k, i AS v, i % 7 AS w FROM generate_series(1, 200000) i;
ANALYZE work;
-- declared stable, so that aggregates may use it
CREATE FUNCTION seen(anyelement) RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (
	SELECT format('%s%s, blocks %s, rows %s, groups %s', phase, ' of ' || relation,
		CASE WHEN blocks_total = 0 THEN 'unknown' WHEN blocks_done > blocks_total / 2 AND blocks_done <= blocks_total THEN 'most' ELSE 'few' END,
		CASE WHEN rows = 0 THEN 'none' WHEN rows < 100000 THEN 'few' ELSE 'most' END,
		CASE WHEN groups < 1000 THEN groups::text WHEN groups < 150000 THEN 'thousands' ELSE 'most' END)
	FROM gpuagg_progress WHERE pid = pg_backend_pid()); END $$;
CREATE FUNCTION seen_late(i int) RETURNS text STABLE LANGUAGE plpgsql AS
	$$ BEGIN RETURN CASE WHEN i = 180000 THEN seen(i) END; END $$;
SET gpuagg.require = 'require';
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;

-- tuples: while rows are read, and while groups are returned
SET gpuagg.feed = 'tuples';
SELECT gpu_max(seen_late(v)) FROM (SELECT v FROM work ORDER BY v OFFSET 0) s;
SELECT max(s) FROM (SELECT gpu_max(seen_late(v)) AS s FROM work GROUP BY k) g;
SELECT DISTINCT seen(k) FROM (SELECT k, gpu_sum(v) AS s FROM work GROUP BY k OFFSET 0) g WHERE s IS NOT NULL;

-- pages
SET gpuagg.feed = 'heap';
SET gpuagg.cache = off;
SELECT max(s) FROM (SELECT gpu_max(seen_late(v)) AS s FROM work GROUP BY k) g;
SELECT DISTINCT seen(k) FROM (SELECT k, gpu_sum(v) AS s FROM work GROUP BY k OFFSET 0) g WHERE s IS NOT NULL;
-- an index scan returns to pages, so only rows show its progress
CREATE TABLE back WITH (fillfactor = 50) AS SELECT i * 7919::bigint % 20011 AS r, i AS v FROM generate_series(1, 20000) i;
CREATE INDEX ON back (r);
ANALYZE back;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT max(s) FROM (SELECT gpu_max(CASE WHEN v = 17 THEN seen(v) END) AS s FROM back WHERE r BETWEEN 0 AND 20010 GROUP BY v % 3) g;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE back;
RESET gpuagg.cache;

-- groups in files: all rows are read, and not all groups merged
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT count(*), count(DISTINCT s) > 1 AS growing, max(s) FILTER (WHERE n = 200000) AS last
FROM (SELECT CASE WHEN n % 10000 = 0 THEN seen(v) END AS s, n
	FROM (SELECT v, row_number() OVER () AS n FROM (SELECT v, gpu_sum(k) AS s FROM work GROUP BY v OFFSET 0) g WHERE s IS NOT NULL OFFSET 0) g) g;
RESET work_mem;
RESET hash_mem_multiplier;

-- sorted rows
SELECT DISTINCT split_part(seen(w), ',', 1) AS seen FROM (SELECT w, gpu_max_subarray_sum(v::int8 ORDER BY v) AS s FROM work GROUP BY w OFFSET 0) g WHERE s > 0 ORDER BY 1;

-- merging: in the combine function of a fallback aggregate, with states of several participants
CREATE FUNCTION noted_step(text, int) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$ SELECT coalesce($1, '') $$;
CREATE FUNCTION noted_combine(text, text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
	$$ BEGIN RETURN (SELECT phase FROM gpuagg_progress() WHERE pid = pg_backend_pid()); END $$;
CREATE AGGREGATE noted(int) (sfunc = noted_step, stype = text, combinefunc = noted_combine, parallel = safe);
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), bool_and(noted IN ('', 'merging groups')) AS merging
FROM (SELECT k, noted(w) FROM work GROUP BY k HAVING gpu_sum(v) > 0) g;
SET max_parallel_workers_per_gather = 0;

-- nested queries: the inner query is shown, and then the outer one again
CREATE FUNCTION inner_query(i int) RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN
	RETURN (SELECT gpu_max(seen(v)) FROM work WHERE v < 10);
END $$;
CREATE FUNCTION failing_query(i int) RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN
	RETURN (SELECT gpu_sum(1 / (v - v)) FROM work);
EXCEPTION WHEN division_by_zero THEN RETURN seen(i);
END $$;
CREATE TABLE outer_work AS SELECT g AS k FROM generate_series(1, 20) g;
SET gpuagg.feed = 'auto';
SET gpuagg.startup_cost = 0;
SELECT gpu_max(inner_query(k)) AS inner, gpu_max(seen(k)) AS outer, gpu_max(failing_query(k)) AS after_error FROM outer_work;
RESET gpuagg.startup_cost;

-- no query is left
SELECT count(*) FROM gpuagg_progress;
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM work GROUP BY k;
FETCH 1 FROM c \gset
SELECT relation, phase, groups FROM gpuagg_progress;
CLOSE c;
SELECT count(*) FROM gpuagg_progress;
DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM work GROUP BY k;
FETCH 1 FROM c \gset
ROLLBACK;
SELECT count(*) FROM gpuagg_progress;

-- a changed strategy is shown with its reason
CREATE TABLE grows AS SELECT i AS k FROM generate_series(1, 100000) i;
CREATE FUNCTION strategy_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Strategy:' THEN
			RETURN NEXT regexp_replace(trim(line), '\d{5,} bins', 'many bins');
		END IF;
	END LOOP;
END $$;
SELECT strategy_of('SELECT k, gpu_count(*) FROM grows GROUP BY k');
SELECT strategy_of('SELECT k % 10, gpu_count(*) FROM grows GROUP BY 1');
DROP TABLE work, outer_work, grows;
DROP AGGREGATE noted(int);
DROP FUNCTION seen, seen_late, inner_query, failing_query, strategy_of, noted_step, noted_combine;
