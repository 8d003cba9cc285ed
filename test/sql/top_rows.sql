-- the best rows of groups: row_number, rank and dense_rank with a bound, DISTINCT ON
SET gpuagg.replace_builtin = on;
CREATE TABLE best AS SELECT i AS id, i % 17 AS k, 'k' || i % 23 AS t, hashint4(i) % 40 AS v, timestamp '2024-01-01' + i * interval '1 min' AS ts,
	CASE WHEN i % 5 = 0 THEN NULL ELSE hashint4(i + 1) % 100 END AS z, (hashint4(i + 2) % 30)::float8 / 4 AS f, (hashint4(i + 3) % 50)::numeric / 10 AS n,
	CASE WHEN i % 7 > 0 THEN 'text ' || hashint4(i + 4) % 60 END AS s, hashint4(i + 5) % 1500 AS many FROM generate_series(1, 6000) i;
INSERT INTO best SELECT 6000 + i, i % 3, 'k1', 1, 'infinity', i % 2, ('{NaN,-0,0,Infinity,-Infinity}'::float8[])[1 + i % 5], ('{NaN,1.0,1.00,0}'::numeric[])[1 + i % 4],
	repeat('long ', 3000) || i % 4, -1 FROM generate_series(1, 40) i;
INSERT INTO best (id, k, t) VALUES (6041, NULL, NULL), (6042, NULL, NULL), (6043, 1, NULL), (6044, NULL, 'k1');
VACUUM ANALYZE best;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TABLE best_queries (nr int GENERATED ALWAYS AS IDENTITY, q text);
INSERT INTO best_queries (q) VALUES
	('SELECT k, id, ts, row_number() OVER (PARTITION BY k ORDER BY ts DESC, id) r FROM best'),
	('SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best'),
	('SELECT t, id, s, row_number() OVER (PARTITION BY t ORDER BY v DESC, id) r FROM best'),
	('SELECT k, t, z, id, row_number() OVER (PARTITION BY k, t ORDER BY z NULLS FIRST, id DESC) r FROM best'),
	('SELECT k, z, id, row_number() OVER (PARTITION BY k ORDER BY z DESC NULLS LAST, id) r FROM best'),
	('SELECT k, z, id, rank() OVER (PARTITION BY k ORDER BY z DESC) r FROM best'),
	('SELECT k, z, id, dense_rank() OVER (PARTITION BY k ORDER BY z) r FROM best'),
	('SELECT k, f, id, rank() OVER (PARTITION BY k ORDER BY f) r FROM best'),
	('SELECT k, f, id, dense_rank() OVER (PARTITION BY k ORDER BY f DESC) r FROM best'),
	('SELECT f, id, row_number() OVER (PARTITION BY f ORDER BY id DESC) r FROM best'),
	('SELECT k, n, id, rank() OVER (PARTITION BY k ORDER BY n DESC NULLS LAST) r FROM best'),
	('SELECT n, id, dense_rank() OVER (PARTITION BY n ORDER BY s, v) r FROM best'),
	('SELECT k, s, id, rank() OVER (PARTITION BY k ORDER BY s DESC, t) r FROM best'),
	('SELECT k, s, id, dense_rank() OVER (PARTITION BY k ORDER BY s COLLATE "C") r FROM best'),
	('SELECT many, id, row_number() OVER (PARTITION BY many ORDER BY ts DESC, id) r FROM best'),
	('SELECT many, ts, s, dense_rank() OVER (PARTITION BY many ORDER BY v) r FROM best'),
	('SELECT k + 1 AS k, v * 2 AS v, id, row_number() OVER (PARTITION BY k + 1 ORDER BY v * 2, -id) r FROM best WHERE v > 3'),
	('SELECT k, count(*) c, row_number() OVER (PARTITION BY k ORDER BY v) r FROM best GROUP BY k, v'),
	('SELECT b.k, a.id, row_number() OVER (PARTITION BY b.k ORDER BY a.id DESC) r FROM best a JOIN best b ON a.id = b.id + 1'),
	('SELECT k, id, rank() OVER w r, row_number() OVER w r2, dense_rank() OVER w r3 FROM best WINDOW w AS (PARTITION BY k ORDER BY v, id)'),
	('SELECT k, v, rank() OVER (PARTITION BY k ORDER BY k DESC, v) r FROM best'),
	('SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best WHERE false'),
	('SELECT x.k, y.id, row_number() OVER (PARTITION BY x.k ORDER BY y.id) r FROM (VALUES (1), (2), (NULL)) x(k) LEFT JOIN best y ON y.k = x.k'),
	('SELECT ARRAY[k] AS a, id, row_number() OVER (PARTITION BY ARRAY[k] ORDER BY ROW(z, id)) r FROM best');
SELECT nr, bound, pg_temp.same_as_core(format('SELECT * FROM (%s) x WHERE r %s', q, bound)) FROM best_queries, unnest(ARRAY['= 1', '<= 3', '< 40']) bound ORDER BY nr, bound;
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, ts DESC, id',
	'SELECT DISTINCT ON (k) * FROM best ORDER BY k DESC, ts, id DESC',
	'SELECT DISTINCT ON (t, k) id, t, k, v FROM best ORDER BY k, t, v DESC NULLS LAST, id',
	'SELECT DISTINCT ON (k) k FROM best',
	'SELECT DISTINCT ON (k) k, t FROM best WHERE t = ''k1''',
	'SELECT DISTINCT ON (f) abs(f) FROM best',
	'SELECT DISTINCT ON (many) many, s, n FROM best ORDER BY many, s NULLS FIRST, n, id',
	'SELECT DISTINCT ON (v % 3) v % 3 AS m, id FROM best ORDER BY v % 3, -id',
	'SELECT DISTINCT ON (k) k, sum(v) AS s FROM best GROUP BY k, t ORDER BY k, sum(v) DESC, t',
	'SELECT DISTINCT ON (k) k, x FROM (SELECT k, row_number() OVER (ORDER BY id) AS x FROM best) y ORDER BY k, x DESC',
	'SELECT DISTINCT ON (k) k, x.v FROM best, LATERAL (SELECT best.v + 1 AS v) x ORDER BY k, x.v',
	'SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, id LIMIT 3',
	'SELECT sum(id) FROM (SELECT DISTINCT ON (k, v) id FROM best ORDER BY k, v, id) x']) q;

-- bounds: of other types, on the other side, as parameters, useless ones
SELECT c, pg_temp.same_as_core(format('SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best) x WHERE %s', c))
	FROM unnest(ARRAY['r <= 2::int2', 'r < 3::int8', '3 > r', '2::int2 >= r', '2::int8 >= r', 'r <= 0', 'r < -5', 'r <= NULL::int', 'r <= 5 AND r > 2', 'r = 4',
	'r <= 1000', 'r <= (SELECT 2)', 'r <= (SELECT max(v) - 37 FROM best)', 'r <= (SELECT NULL::int8)', 'r < (SELECT 100000)']) c;
-- a bound that raises an error: core does not evaluate it if there are no rows
SELECT pg_temp.same_as_core('SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best WHERE id < 0) x WHERE r <= (SELECT 1 / (max(v) - max(v)) FROM best)');
PREPARE best_number(int) AS SELECT count(*), sum(id) FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY v) r FROM best) x WHERE r <= $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE best_number(1);
EXECUTE best_number(20);
EXECUTE best_number(5000);
EXECUTE best_number(NULL);
SET gpuagg.enabled = off;
DEALLOCATE best_number;
PREPARE best_number(int) AS SELECT count(*), sum(id) FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY v) r FROM best) x WHERE r <= $1;
EXECUTE best_number(1);
EXECUTE best_number(20);
EXECUTE best_number(5000);
EXECUTE best_number(NULL);
RESET gpuagg.enabled;
RESET plan_cache_mode;

-- queries that are not taken, and why
CREATE FUNCTION pg_temp.best_refused(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 ->> 'GpuAgg Not Used';
END $$;
SELECT q, pg_temp.best_refused(q) FROM unnest(ARRAY[
	'SELECT * FROM (SELECT k, sum(v) OVER w s, row_number() OVER w r FROM best WINDOW w AS (PARTITION BY k ORDER BY id)) x WHERE r <= 2',
	'SELECT * FROM (SELECT k, lead(v) OVER w s, row_number() OVER w r FROM best WINDOW w AS (PARTITION BY k ORDER BY id)) x WHERE r <= 2',
	'SELECT * FROM (SELECT k, rank() OVER (PARTITION BY k) r FROM best) x WHERE r <= 2',
	'SELECT * FROM (SELECT k, random() s, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best) x WHERE r <= 2',
	'SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best) x WHERE r <= 2000',
	'SELECT DISTINCT ON (k) k, generate_series(1, 2) FROM best',
	'SELECT DISTINCT ON (k) k FROM best ORDER BY k, random()',
	'SELECT DISTINCT ON (p) p FROM (SELECT point(k, v)::text::money AS p FROM best WHERE false) x']) q;
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT * FROM (SELECT k, id, row_number() OVER (ORDER BY id) r FROM best) x WHERE r <= 2',
	'SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r, rank() OVER (PARTITION BY t ORDER BY id) r2 FROM best) x WHERE r <= 2 AND r2 <= 2',
	'SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best) x WHERE r >= 350']) q;

-- plans: lines that do not depend on the release
CREATE FUNCTION pg_temp.best_plan(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		IF line ~ 'Custom Scan|Group Key|Top-N|Input Rows|Rows Dropped|Counts|Participants|Gather|Unique|Sort$|Sort  ' THEN
			RETURN NEXT regexp_replace(line, ' \(actual.*', '');
		END IF;
	END LOOP;
END $$;
SELECT pg_temp.best_plan('SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY ts DESC, z NULLS FIRST) r FROM best) x WHERE r < 4');
SELECT pg_temp.best_plan('SELECT * FROM (SELECT k, rank() OVER (PARTITION BY v + 1 ORDER BY t) r FROM best) x WHERE 3 > r');
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k, t) k, t, v FROM best ORDER BY k, t, v DESC NULLS LAST');
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k) k, v FROM best WHERE id <= 1000 ORDER BY k, id DESC', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SET gpuagg.enabled = off;
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k) k, v FROM best ORDER BY k, id DESC');
RESET gpuagg.enabled;
SET gpuagg.replace_builtin = off;
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k) k, v FROM best ORDER BY k, id DESC');
SET gpuagg.replace_builtin = on;
-- an index that has the order already is better for the first rows
CREATE INDEX best_index ON best (k, id);
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, id LIMIT 1');
DROP INDEX best_index;

-- little memory: rows are passed on, and nothing is written to files
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT nr, bound, pg_temp.same_as_core(format('SELECT * FROM (%s) x WHERE r %s', q, bound)) FROM best_queries, unnest(ARRAY['= 1', '<= 3', '< 40']) bound ORDER BY nr, bound;
SELECT pg_temp.same_as_core('SELECT DISTINCT ON (many) many, s, n FROM best ORDER BY many, s NULLS FIRST, n, id');
RESET work_mem;
RESET hash_mem_multiplier;

-- batches of a few rows, tuples of the executor
SET gpuagg.batch_rows = 64;
SET gpuagg.feed = 'tuples';
SELECT nr, pg_temp.same_as_core(format('SELECT * FROM (%s) x WHERE r <= 3', q)) FROM best_queries ORDER BY nr;
RESET gpuagg.feed;
RESET gpuagg.batch_rows;

-- parallel plans
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.worker_cost = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, ts DESC');
SELECT nr, pg_temp.same_as_core(format('SELECT * FROM (%s) x WHERE r <= 3', q)) FROM best_queries ORDER BY nr;
SELECT pg_temp.same_as_core('SELECT x, y.* FROM generate_series(1, 3) x, LATERAL (SELECT DISTINCT ON (k) k, id FROM best WHERE v > x ORDER BY k, id LIMIT 4) y');
SET parallel_leader_participation = off;
SELECT nr, pg_temp.same_as_core(format('SELECT * FROM (%s) x WHERE r <= 3', q)) FROM best_queries WHERE nr < 5 ORDER BY nr;
SET max_parallel_workers = 0;
SELECT nr, pg_temp.same_as_core(format('SELECT * FROM (%s) x WHERE r <= 3', q)) FROM best_queries WHERE nr < 5 ORDER BY nr;
RESET max_parallel_workers;
RESET parallel_leader_participation;
-- a Gather above the scan would evaluate a subquery before the first row, if there is one
SET gpuagg.slot_cost = 1;
SELECT pg_temp.same_as_core('SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM best WHERE id + 0 < 0) x WHERE r <= (SELECT 1 / (max(v) - max(v)) FROM best)');
RESET gpuagg.slot_cost;
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET gpuagg.worker_cost;

-- rescans, cursors, LIMIT
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT x, y.* FROM generate_series(0, 30, 10) x, LATERAL (SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id DESC) r FROM best WHERE v > x) z WHERE r <= 2) y',
	'SELECT x, y.* FROM generate_series(0, 3) x, LATERAL (SELECT * FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY v) r FROM best) z WHERE r <= x) y',
	'SELECT x, (SELECT sum(id) FROM (SELECT DISTINCT ON (k) id FROM best WHERE v <> x OR v IS NULL ORDER BY k, id) y) FROM generate_series(1, 5) x',
	'SELECT x, y.* FROM generate_series(0, 3) x, LATERAL (SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, (id + x) % 100, id) y']) q;
BEGIN;
DECLARE best_cursor SCROLL CURSOR FOR SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, id DESC;
FETCH 3 FROM best_cursor;
FETCH BACKWARD 2 FROM best_cursor;
MOVE LAST IN best_cursor;
FETCH PRIOR FROM best_cursor;
COMMIT;

-- errors of the query's functions; row security with a function that shows its arguments
SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY 1 / (id - 500)) r FROM best) x WHERE r <= 2;
CREATE FUNCTION best_leak(int) RETURNS int LANGUAGE plpgsql STABLE COST 0.0001 AS $$ BEGIN IF $1 <= 5990 THEN RAISE NOTICE 'saw %', $1; END IF; RETURN $1; END $$;
CREATE ROLE regress_best;
DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %s TO regress_best', (SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema())); END $$;
GRANT SELECT ON best TO regress_best;
ALTER TABLE best ENABLE ROW LEVEL SECURITY;
CREATE POLICY best_visible ON best USING (id > 5990);
SET ROLE regress_best;
SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY best_leak(id) DESC) r FROM best WHERE best_leak(id) > 0) x WHERE r <= 1 ORDER BY k, id;
SELECT DISTINCT ON (best_leak(id) % 3) k, id FROM best ORDER BY best_leak(id) % 3, best_leak(id) DESC;
SELECT pg_temp.best_plan('SELECT DISTINCT ON (k) k, id FROM best ORDER BY k, best_leak(id)', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
RESET ROLE;
ALTER TABLE best DISABLE ROW LEVEL SECURITY;

-- operators of the user: an order that raises errors, one that is not an order, an equality that lies
CREATE TYPE best_pair AS (a int, b int);
CREATE FUNCTION best_compare(best_pair, best_pair) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN
	IF $1.b = 13 AND current_setting('best.error', true) = 'on' THEN RAISE 'unlucky'; END IF; RETURN CASE WHEN current_setting('best.lie', true) = 'on' THEN 1 ELSE sign($1.a - $2.a) END; END $$;
CREATE FUNCTION best_lt(best_pair, best_pair) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT best_compare($1, $2) < 0';
CREATE FUNCTION best_le(best_pair, best_pair) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT best_compare($1, $2) <= 0';
CREATE FUNCTION best_eq(best_pair, best_pair) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT best_compare($1, $2) = 0';
CREATE FUNCTION best_ge(best_pair, best_pair) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT best_compare($1, $2) >= 0';
CREATE FUNCTION best_gt(best_pair, best_pair) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT best_compare($1, $2) > 0';
CREATE OPERATOR <<< (LEFTARG = best_pair, RIGHTARG = best_pair, FUNCTION = best_lt);
CREATE OPERATOR <<<= (LEFTARG = best_pair, RIGHTARG = best_pair, FUNCTION = best_le);
CREATE OPERATOR === (LEFTARG = best_pair, RIGHTARG = best_pair, FUNCTION = best_eq, MERGES);
CREATE OPERATOR >>>= (LEFTARG = best_pair, RIGHTARG = best_pair, FUNCTION = best_ge);
CREATE OPERATOR >>> (LEFTARG = best_pair, RIGHTARG = best_pair, FUNCTION = best_gt);
CREATE OPERATOR CLASS best_ops FOR TYPE best_pair USING btree AS OPERATOR 1 <<<, OPERATOR 2 <<<=, OPERATOR 3 ===, OPERATOR 4 >>>=, OPERATOR 5 >>>, FUNCTION 1 best_compare(best_pair, best_pair);
SELECT q, pg_temp.same_as_core(q) FROM unnest(ARRAY[
	'SELECT * FROM (SELECT k, (v, z)::best_pair p, id, rank() OVER (PARTITION BY k ORDER BY (v, z)::best_pair USING >>>) r FROM best WHERE id <= 500) x WHERE r <= 2',
	'SELECT * FROM (SELECT k, id, dense_rank() OVER (PARTITION BY k ORDER BY (v, z)::best_pair USING <<<) r FROM best WHERE id <= 500) x WHERE r <= 3']) q;
SET best.lie = on;
SELECT count(*) FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY (v, z)::best_pair USING <<<) r FROM best WHERE id <= 500) x WHERE r <= 3;
SELECT count(*) > 0 FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY (v, z)::best_pair USING >>>) r FROM best WHERE id <= 500) x WHERE r <= 3;
SET best.lie = off;
SET best.error = on;
SELECT count(*) FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY (v, z)::best_pair USING <<<) r FROM best WHERE id <= 500) x WHERE r <= 3;
SET client_min_messages = warning;
DROP TABLE best, best_queries;
DROP FUNCTION best_leak;
DROP OPERATOR FAMILY best_ops USING btree;
DROP TYPE best_pair CASCADE;
DROP OWNED BY regress_best;
DROP ROLE regress_best;
RESET ALL;
