--
-- Plans above the scan that read its groups repeatedly: correlated, LATERAL and EXISTS subqueries, cursors and
-- rescans. Answers are core's. If nothing changes on which the groups depend, the input is read once.
--
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET enable_material = off;
SET enable_memoize = off;
CREATE TABLE f AS SELECT i % 20 AS k, i AS v, i * 0.5::float8 AS d, (i % 7)::text AS t, i % 5 AS b FROM generate_series(1, 1000) i;
CREATE TABLE e AS SELECT i AS x, i % 4 AS c FROM generate_series(0, 19) i;
CREATE TABLE o AS SELECT i AS x, i * 2000 AS y FROM generate_series(1, 10) i;
CREATE TABLE wide AS SELECT i AS k, i % 100 AS v FROM generate_series(1, 20000) i;
CREATE TABLE none (k int, v int);
CREATE TABLE zero AS SELECT 0 AS v;
ANALYZE;
CREATE FUNCTION answer(q text, setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text;
BEGIN
    PERFORM set_config('gpuagg.require', setting, true);
    EXECUTE 'SELECT string_agg(answer::text, chr(10) ORDER BY answer::text COLLATE "C") FROM (' || q || ') answer' INTO r;
    RETURN coalesce(r, 'nothing');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
-- returns whether both feeds give core's answer, and how many rows were read; @ is the prefix of aggregates
CREATE FUNCTION shape(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    core text := answer(replace(q, '@', ''), 'forbid');
    ours text;
    said text;
    result text;
    plan json;
    feed text;
BEGIN
    FOREACH feed IN ARRAY '{auto,tuples}'::text[] LOOP
        said := NULL;
        PERFORM set_config('gpuagg.feed', feed, true);
        ours := answer(replace(q, '@', 'gpu_'), 'require');
        IF ours <> core THEN
            RETURN format(E'%s\n core: %s\n ours: %s', q, left(core, 300), left(ours, 300));
        END IF;
        PERFORM set_config('gpuagg.require', 'require', true);
        IF core !~ '^[0-9A-Z]{5} ' THEN
            EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || replace(q, '@', 'gpu_') INTO plan;
            SELECT string_agg(n::text, ', ') INTO said FROM jsonb_path_query(plan::jsonb, 'strict $.**."Input Rows"', '{}', true) n;
        END IF;
        said := coalesce(said, 'error after no') || ' rows';
        result := CASE WHEN result IS NULL OR result = said THEN said ELSE result || ' or ' || said END;
    END LOOP;
    RETURN result;
END $$;

-- HAVING: a correlated subquery, over one table and over a join, with keys of several kinds and without
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k) z WHERE z.s > o.y) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT e.c, @sum(f.v) s FROM f JOIN e ON e.x = f.k GROUP BY 1) z WHERE z.s > o.y) FROM o');
SELECT shape('SELECT x, (SELECT string_agg(t, '','' ORDER BY t) FROM (SELECT t, @max(v) s, @min(t) m FROM f GROUP BY t) z WHERE z.s % 10 = o.x) FROM o');
SELECT shape('SELECT x, (SELECT max(s) FROM (SELECT @sum(v) s FROM f) z WHERE z.s > o.y * 100) FROM o');
SELECT shape('SELECT x, (SELECT count(s) FROM (SELECT k, t, @sum(d) s FROM f GROUP BY k, t) z WHERE z.s > o.y / 10) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM none GROUP BY k) z WHERE z.s > o.y) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @count(*) c FROM f GROUP BY k HAVING @sum(v) > o.y ORDER BY @sum(v) DESC, k LIMIT 3) z) FROM o');
-- the same with an error for a group that is read again
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k) z WHERE z.s / (o.x - 5) > 0) FROM o');
-- the target list
SELECT shape('SELECT x, (SELECT max(s) FROM (SELECT k, @sum(v) + o.x s FROM f GROUP BY k OFFSET 0) z) FROM o');
SELECT shape('SELECT x, z.* FROM o, LATERAL (SELECT k, @sum(v) + o.x s, @avg(d) FROM f GROUP BY k) z');
-- LATERAL, with and without LIMIT, and expressions over the groups
SELECT shape('SELECT x, z.* FROM o, LATERAL (SELECT k, @sum(v) s FROM f GROUP BY k HAVING @sum(v) > o.y) z');
SELECT shape('SELECT x, z.* FROM o, LATERAL (SELECT k, @sum(v) s FROM f GROUP BY k HAVING @sum(v) > o.y ORDER BY @sum(v), k LIMIT 2) z');
SELECT shape('SELECT x, z.* FROM o, LATERAL (SELECT k, @sum(v) s FROM f GROUP BY k ORDER BY 2, 1 LIMIT 2) z WHERE z.s > o.y');
SELECT shape('SELECT x, z.* FROM o LEFT JOIN LATERAL (SELECT t, @count(*) c FROM f GROUP BY t OFFSET 0) z ON z.c = 140 + o.x');
-- EXISTS and similar subqueries do not read all groups
SELECT shape('SELECT x FROM o WHERE EXISTS (SELECT FROM (SELECT k, @sum(v) s FROM f GROUP BY k OFFSET 0) z WHERE z.k = o.x + 14 AND s > 0)');
SELECT shape('SELECT x FROM o WHERE NOT EXISTS (SELECT FROM (SELECT k, @sum(v) s FROM f GROUP BY k OFFSET 0) z WHERE z.k = o.x + 14 AND s > 0 OFFSET 0)');
SELECT shape('SELECT x, (SELECT s FROM (SELECT k, @sum(v) s FROM f GROUP BY k OFFSET 0) z WHERE k >= o.x AND k % 7 = 3 ORDER BY k LIMIT 1) FROM o');
SELECT shape('SELECT x FROM o WHERE (x = ANY (SELECT k + o.x - o.x FROM (SELECT k, @sum(v) s FROM f GROUP BY k OFFSET 0) z WHERE s > 0)) IS TRUE');
-- grouping sets, DISTINCT, ordered sets, aggregates with ORDER BY, fallback aggregates
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, b, @sum(v) s, GROUPING(k, b) g FROM f GROUP BY ROLLUP (k, b)) z WHERE z.s > o.y) FROM o');
SELECT shape('SELECT x, (SELECT sum(g) FROM (SELECT k, b, @count(DISTINCT v) s, GROUPING(k, b) g FROM f GROUP BY GROUPING SETS (k, b, ())) z WHERE z.s > o.x * 20) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @count(DISTINCT t) s, @sum(DISTINCT b) FROM f GROUP BY k) z WHERE z.s > o.x) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @percentile_disc(0.3) WITHIN GROUP (ORDER BY v) s, @mode() WITHIN GROUP (ORDER BY t) m FROM f GROUP BY k) z WHERE z.s > o.y / 20) FROM o');
SELECT shape('SELECT x, (SELECT sum(a[o.x] * c) FROM (SELECT k, array_agg(v ORDER BY t, v) a, @count(*) c FROM f GROUP BY k OFFSET 0) z) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, string_agg(t, '''') s, @min(t) m FROM f GROUP BY k) z WHERE length(z.s || m) > o.x * 8) FROM o');
-- HAVING depends on an initplan of the outer row, on a subplan, on volatile functions
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k HAVING @sum(v) > (SELECT max(y) FROM o p WHERE p.x <= o.x)) z) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k HAVING @sum(v) > (SELECT max(y) FROM o p WHERE p.x < o.x + k - 10)) z) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k HAVING @sum(v) > o.y AND random() < 2) z) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f WHERE random() < 2 GROUP BY k) z WHERE z.s > o.y) FROM o');
-- more groups than memory
SET work_mem = '64kB';
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM wide GROUP BY k) z WHERE z.s > o.x * 9) FROM o');
SELECT shape('SELECT x, (SELECT s FROM (SELECT k, @sum(v) s FROM wide GROUP BY k OFFSET 0) z WHERE z.k = o.y LIMIT 1) FROM o');
RESET work_mem;
-- changes below the scan: its input is read again (a GPU counts rows that WHERE removes, too); if only parameters of aggregates change, the rows of the previous scan are counted
SELECT shape('SELECT x, (SELECT @sum(v) FROM f WHERE k < o.x) FROM o') ~ '^\d+ rows( or \d+ rows)?$' AS agrees;
SELECT shape('SELECT x, (SELECT @sum(v * o.x) FROM f) FROM o');
SELECT shape('SELECT x, (SELECT @count(*) FILTER (WHERE k = o.x) FROM f) FROM o');
SELECT shape('SELECT x, (SELECT @regr_avgx(o.x, d) FROM f) FROM o');
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k % o.x, @sum(v) s FROM f GROUP BY 1) z WHERE z.s > o.y) FROM o');
SELECT shape('SELECT x, (SELECT @percentile_disc(o.x / 10.0) WITHIN GROUP (ORDER BY v) FROM f) FROM o');
SELECT shape('SELECT x, z.k FROM o, LATERAL (SELECT k FROM f GROUP BY k HAVING @sum(v) > 0 ORDER BY @sum(v), k LIMIT o.x) z');
SELECT shape('SELECT x, (SELECT gpu_histogram(d, 0, o.y, 4) FROM f) FROM o');
-- changes below and above in turn: read once for each outermost row
SELECT shape('SELECT x, (SELECT sum((SELECT count(*) FROM (SELECT k, @sum(v) s FROM f WHERE v <= 100 * o.x GROUP BY k) z WHERE z.s > p.y)) FROM o p) FROM o WHERE x > 7') ~ '^\d+ rows( or \d+ rows)?$' AS agrees;
-- nothing changes: the groups are kept from the second rescan on
SELECT shape('SELECT x, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k OFFSET 0) z WHERE z.s > o.y) FROM o');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT shape('SELECT x, z.s FROM o LEFT JOIN (SELECT k, @sum(v) s FROM f GROUP BY k OFFSET 0) z ON z.k = o.x');
SELECT shape('WITH RECURSIVE w(n, c) AS (SELECT 1, 0::bigint UNION ALL SELECT n + 1, (SELECT count(*) FROM (SELECT k, @sum(v) s FROM f GROUP BY k) z WHERE z.s > w.n * 5000) FROM w WHERE n < 8) SELECT * FROM w');
RESET enable_hashjoin;
RESET enable_mergejoin;

-- cursors that are closed and continued, forward and backward
SET gpuagg.require = 'require';
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT x, (SELECT count(*) FROM (SELECT k, gpu_sum(v) s FROM f GROUP BY k) z WHERE z.s > o.y * 1.2) FROM o ORDER BY x;
DECLARE d CURSOR FOR SELECT x, z.k FROM o, LATERAL (SELECT k, gpu_sum(v) s FROM f GROUP BY k HAVING gpu_sum(v) > o.y * 1.2) z WHERE x > 9;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 9 FROM c;
MOVE 5 FROM d;
UPDATE f SET v = 0 WHERE v > 900;
FETCH BACKWARD 3 FROM c;
MOVE FORWARD ALL FROM d;
SELECT count(*) FROM o, LATERAL (SELECT k, gpu_sum(v) s FROM f GROUP BY k HAVING gpu_sum(v) > o.y * 1.2) z WHERE x > 9;
ROLLBACK;
-- each execution of a prepared statement reads its input
PREPARE p(int) AS SELECT x, (SELECT count(*) FROM (SELECT k, gpu_sum(v) s FROM f WHERE v < $1 GROUP BY k) z WHERE z.s > o.y) FROM o WHERE x < 4;
EXECUTE p(1000);
EXECUTE p(500);
-- kept groups leave no memory or files when a query fails
SELECT x, (SELECT count(*) FROM (SELECT k, gpu_sum(v) s FROM wide GROUP BY k) z WHERE z.s / (o.x - 5) > 3) FROM o;
-- a scan of few rows is worth its startup if there are many rescans
RESET gpuagg.require;
SET gpuagg.engine = 'cpu';
EXPLAIN (COSTS OFF) SELECT count(s) FROM generate_series(1, 3000) g, LATERAL (SELECT gpu_sum(v) AS s FROM f WHERE k < g % 10) z;
EXPLAIN (COSTS OFF) SELECT gpu_sum(v) AS s FROM f WHERE k < 10;

DROP TABLE f, e, o, wide, none, zero;
DROP FUNCTION answer, shape;
