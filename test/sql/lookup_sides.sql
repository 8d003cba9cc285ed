-- Which side of a join runs first, and whether the other one runs at all: core's errors, also in rescans and inside inner sides
SET client_min_messages = warning;
SET gpuagg.replace_builtin = on;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET jit = off;
-- the order of joins is that of the query
SET join_collapse_limit = 1;
SET from_collapse_limit = 1;
-- from PostgreSQL 19 on, tables may be aggregated in part below a join
SELECT count(set_config(name, 'off', false)) < 2 AS above FROM pg_settings WHERE name = 'enable_eager_aggregate' \gset
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\set require require
\i :include
-- v is 0 in the last rows only; k is NULL where i is divisible by 50
CREATE TABLE ls_fact AS SELECT i, CASE WHEN i % 50 > 0 THEN i % 20 END AS k, i % 10 AS l, CASE WHEN i > 2995 THEN 0 ELSE i % 90 + 1 END AS v FROM generate_series(1, 3000) i;
CREATE TABLE ls_dim AS SELECT k, k % 4 AS r, k - 7 AS x FROM generate_series(0, 19) k;
ALTER TABLE ls_dim ADD PRIMARY KEY (k);
CREATE TABLE ls_region AS SELECT r, r - 2 AS y FROM generate_series(0, 3) r;
ALTER TABLE ls_region ADD PRIMARY KEY (r);
VACUUM (ANALYZE) ls_fact, ls_dim, ls_region;
CREATE TABLE ls_queries (id int GENERATED ALWAYS AS IDENTITY, q text);
-- an inner side that fails in a later scan, whose outer side is empty: core runs it if the outer side had a row with a key before
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) || ''/'' || sum(e) FROM ls_fact f JOIN (SELECT k, 100 / (x - p) AS e FROM ls_dim OFFSET 0) d ON d.k = f.k'
	' WHERE f.v + 0 > p * 10 %s) AS n FROM unnest(ARRAY[%s]) p', v, p) FROM unnest(ARRAY['', 'AND f.k IS NULL']) v, unnest(ARRAY['-8, 12', '12, -8', '15, 12', '15, -8, 12', '-8, 20, 12', '3']) p;
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f WHERE f.v + 0 > p * 10 AND f.k %s IN (SELECT k FROM ls_dim WHERE 100 / (x - p) > -200 OFFSET 0)) AS n'
	' FROM unnest(ARRAY[%s]) p', i, p) FROM unnest(ARRAY['', 'NOT']) i, unnest(ARRAY['-8, 12', '-8, 10', '15, 12']) p;
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f LEFT JOIN (SELECT k, 100 / (x - p) AS e FROM ls_dim OFFSET 0) d ON d.k = f.k WHERE f.v + 0 > p * 10 AND (e IS NULL OR e <> 5)) AS n'
	' FROM unnest(ARRAY[%s]) p', p) FROM unnest(ARRAY['-8, 12', '-8, 10', '15, 12']) p;
-- the same of the upper one of two joins, whose outer side is empty because of the lower one
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f JOIN ls_dim d ON d.k = f.k AND d.x > p JOIN (SELECT r FROM ls_region WHERE 100 / (y + p - 12) > -200 OFFSET 0) r ON r.r = f.l) AS n'
	' FROM unnest(ARRAY[%s]) p', p) FROM unnest(ARRAY['5, 12', '12, 5', '5, 11', '11, 12, 20']) p;
-- an inner side without rows: a first outer row may fail, further ones do not, unless the inner side has not changed since an earlier scan
INSERT INTO ls_queries (q) SELECT 'SELECT count(*) FROM ls_fact f JOIN (SELECT k FROM ls_dim WHERE x > 100 OFFSET 0) d ON d.k = f.k WHERE 100 / ' || v || ' >= 0'
	FROM unnest(ARRAY['(f.i - 1)', '(f.i - 2)', 'f.v']) v;
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f JOIN (SELECT k FROM ls_dim WHERE %s OFFSET 0) d ON d.k = f.k WHERE 100 / (f.i - p) <> 3) AS n'
	' FROM unnest(ARRAY[%s]) p', w, p) FROM unnest(ARRAY['x > 100', 'x > 100 - p', 'x + 10 < p']) w, unnest(ARRAY['0, -1', '-1, 2', '-100, 2000', '5000, 1', '5000, 2', '5000, -9, 1', '-9, 1', '5000, -9, 5']) p;
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f JOIN ls_dim d ON d.k = f.k JOIN (SELECT r FROM ls_region WHERE y > %s OFFSET 0) r ON r.r = f.l AND 100 / (f.i - p) <> 3) AS n'
	' FROM unnest(ARRAY[%s]) p', y, p) FROM unnest(ARRAY['9', '9 - p']) y, unnest(ARRAY['0, -1', '-1, 2', '5000, 2']) p;
-- a join above one whose inner side has no rows and has not changed: the outer side is read
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f WHERE 100 / (f.i - p) <> 3 AND EXISTS (SELECT FROM (SELECT * FROM ls_region WHERE y > 9 OFFSET 0) r WHERE r.r = f.l)'
	' AND %s EXISTS (SELECT FROM (SELECT * FROM ls_dim WHERE 100 / (x - p) < 99 OFFSET 0) d WHERE d.k = f.k)) AS n FROM unnest(ARRAY[%s]) p', n, p)
	FROM unnest(ARRAY['', 'NOT']) n, unnest(ARRAY['50, 20', '20, 5000', '-20, 5000', '-20, -30, 30']) p;
-- an inner side that is a join itself
INSERT INTO ls_queries (q) SELECT format('SELECT count(*) FROM ls_fact f JOIN (SELECT d.k FROM ls_dim d JOIN (SELECT r FROM ls_region WHERE 100 / y > -200 OFFSET 0) r ON r.r = d.r WHERE d.x + 0 > %s OFFSET 0) s ON s.k = f.k WHERE f.v > 3', x)
	FROM unnest(ARRAY[100, 0]) x;
INSERT INTO ls_queries (q) SELECT format('SELECT count(*) FROM ls_region f JOIN (SELECT d.r FROM (%s) d JOIN (SELECT r FROM ls_region WHERE 100 / y > -200 OFFSET 0) r ON r.r = d.r OFFSET 0) s ON s.r = f.r', d)
	FROM unnest(ARRAY['SELECT g.k, g.r FROM ls_dim g JOIN ls_fact h ON h.k = g.k WHERE h.i < 0', 'SELECT k, r FROM ls_dim WHERE x > 100', 'SELECT g.k, g.r FROM ls_fact h JOIN ls_dim g ON h.k = g.k WHERE h.i < 0']) d;
INSERT INTO ls_queries (q) SELECT format('SELECT p, (SELECT count(*) FROM ls_fact f JOIN (SELECT d.k FROM ls_dim d JOIN (SELECT r FROM ls_region WHERE 100 / (y + p - 12) > -200 OFFSET 0) r ON r.r = d.r WHERE d.x + 0 > p OFFSET 0) s ON s.k = f.k) AS n'
	' FROM unnest(ARRAY[%s]) p', p) FROM unnest(ARRAY['5, 12', '12, 5', '5, 11', '11, 12, 20']) p;
-- joins of a subquery that the plan has no node for
INSERT INTO ls_queries (q) SELECT format('SELECT count(*) FROM (SELECT f.l, f.k FROM ls_fact f JOIN (SELECT k FROM ls_dim WHERE %s OFFSET 0) d ON d.k = f.k OFFSET 0) s'
	' JOIN (SELECT r.r FROM ls_region r JOIN (SELECT k FROM ls_dim WHERE %s OFFSET 0) e ON e.k = r.r OFFSET 0) t ON t.r = s.l', a, b)
	FROM unnest(ARRAY['100 / x > -200', 'x > 100', 'true']) a, unnest(ARRAY['100 / x > -200', 'x > 100']) b;
-- an inner side with a join of core's whose hash table has no rows runs again, for a row of the outer side of the join above
INSERT INTO ls_queries (q) SELECT format('SELECT count(*) FROM ls_fact f %s JOIN (SELECT d.k, d.x FROM ls_dim d JOIN ls_region r ON r.r = d.r AND r.y + 0 > 9 WHERE 100 / d.x > -200 OFFSET 0) s ON s.k = f.k'
	' LEFT JOIN (SELECT r FROM ls_region WHERE 100 / (y + 7) > 0 OFFSET 0) t ON t.r = f.l', j) FROM unnest(ARRAY['', 'LEFT']) j;
-- core's answers, and those of lookups; a sort by the wrapper's aggregate must not evaluate the columns again
CREATE TABLE ls_answers AS SELECT id, q, NULL::text[] AS core FROM ls_queries;
SET gpuagg.enabled = off;
SET gpuagg.require = allow;
UPDATE ls_answers SET core = pg_temp.answer(q || ' OFFSET 0');
SET gpuagg.enabled = on;
SET gpuagg.require = :require;
SELECT id, pg_temp.compared(core, pg_temp.answer(q || ' OFFSET 0')) AS how, q FROM ls_answers ORDER BY id;
-- a key whose collation is not known cannot be hashed
CREATE TABLE ls_texts AS SELECT i, i::text COLLATE "C" AS t, i::text COLLATE "POSIX" AS u FROM ls_fact;
SELECT pg_temp.compared(format('SELECT count(*) FROM ls_texts f %s (SELECT u FROM ls_texts WHERE i < 0) d ON d.u = f.t WHERE f.i < %s OFFSET 0', j, i)) AS how
FROM unnest(ARRAY[0, 10]) i, unnest(ARRAY['JOIN', 'LEFT JOIN']) j;
DROP TABLE ls_texts;
-- the same from cached columns
SELECT gpuagg_cache_prewarm('ls_fact') > 0 AS cached, gpuagg_cache_prewarm('ls_dim') > 0 AS also;
SET gpuagg.cache = eager;
SELECT id, how, q FROM (SELECT id, pg_temp.compared(core, pg_temp.answer(q || ' OFFSET 0')) AS how, q FROM ls_answers OFFSET 0) a WHERE how LIKE 'DIFF%' ORDER BY id;
-- participants: a hash table that they share is built first; all rows of the outer side fail, or none
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
TRUNCATE ls_queries;
INSERT INTO ls_queries (q) SELECT format('SELECT count(*), count(d.k) FROM ls_fact f %s JOIN (SELECT k FROM ls_dim WHERE %s) d ON d.k = f.k WHERE 100 / (f.i - f.i + %s) > 0', j, x, v)
	FROM unnest(ARRAY['', 'LEFT']) j, unnest(ARRAY['x + 0 > 100', '100 / (x - x) > 0', 'x + 0 > 3']) x, unnest(ARRAY[0, 1]) v;
INSERT INTO ls_queries (q) SELECT format('SELECT count(*), count(d.k) FROM ls_fact f %s JOIN (SELECT k FROM ls_dim WHERE 100 / (x - x) > 0) d ON d.k = f.k WHERE f.i + 0 < 0', j) FROM unnest(ARRAY['', 'LEFT']) j;
SET enable_parallel_hash = on;
SELECT pg_temp.compared(q) AS how, q FROM ls_queries ORDER BY id;
SET enable_parallel_hash = off;
SELECT pg_temp.compared(q) AS how, q FROM ls_queries ORDER BY id;
DROP TABLE ls_fact, ls_dim, ls_region, ls_queries, ls_answers;
RESET ALL;
