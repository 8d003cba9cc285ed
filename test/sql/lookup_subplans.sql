-- Subplans in conditions of a fact table and of joins above it: lookups are used, with core's rows and core's errors.
SET client_min_messages = warning;
SET gpuagg.replace_builtin = on;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET jit = off;
CREATE TABLE ls_fact AS SELECT i, CASE WHEN i % 19 > 0 THEN i * 37 % 400 END AS k, CASE WHEN i % 23 > 0 THEN i % 60 END AS s, i % 101 AS v, 't' || i % 30 AS t
	FROM generate_series(1, 6000) i;
CREATE TABLE ls_dim AS SELECT k, 'd' || k % 9 AS name, k % 50 AS x FROM generate_series(0, 299) k;
ALTER TABLE ls_dim ADD PRIMARY KEY (k);
CREATE TABLE ls_other AS SELECT k, 'o' || k % 4 AS label FROM generate_series(0, 59, 2) k;
ALTER TABLE ls_other ADD PRIMARY KEY (k);
CREATE TABLE ls_list AS SELECT s, 't' || s AS t, s - 7 AS z FROM generate_series(0, 20) s;
CREATE TABLE ls_nulls AS SELECT nullif(s, 5) AS s FROM ls_list;
CREATE TABLE ls_parts (LIKE ls_fact, dropped int) PARTITION BY RANGE (i);
CREATE TABLE ls_parts1 PARTITION OF ls_parts FOR VALUES FROM (MINVALUE) TO (2500);
CREATE TABLE ls_parts2 (dropped int, LIKE ls_fact);
ALTER TABLE ls_parts DROP dropped;
ALTER TABLE ls_parts2 DROP dropped;
ALTER TABLE ls_parts ATTACH PARTITION ls_parts2 FOR VALUES FROM (2500) TO (MAXVALUE);
INSERT INTO ls_parts SELECT * FROM ls_fact;
VACUUM ANALYZE ls_fact, ls_dim, ls_other, ls_list, ls_nulls, ls_parts;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\i :include
-- the number of lookups, and of rows, or the error, or how the rows differ
CREATE FUNCTION pg_temp.lookups_compared(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lookups int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		lookups := lookups + (line ~ '^ *Lookup:')::int;
	END LOOP;
	RETURN format('%s lookups, %s', lookups, pg_temp.compared(query));
END $$;
CREATE TABLE ls_queries (id int GENERATED ALWAYS AS IDENTITY, q text);
-- subplans in conditions of the fact table: hashed, with NULLs on either side, of several columns, correlated, below other expressions
INSERT INTO ls_queries (q) VALUES
	('SELECT name, count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list) GROUP BY name'),
	('SELECT name, count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_nulls) GROUP BY name'),
	('SELECT name, count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_nulls WHERE s > 100) GROUP BY name'),
	('SELECT name, count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE (f.s, f.t) NOT IN (SELECT s, t FROM ls_list WHERE s > 3) GROUP BY name'),
	('SELECT name, label, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k JOIN ls_other o ON o.k = f.s WHERE f.s::int8 NOT IN (SELECT s FROM ls_list WHERE z > 0) AND v > 20 GROUP BY 1, 2'),
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.v > (SELECT max(z) FROM ls_list) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i % 40 = 3 AND f.v > (SELECT max(z) FROM ls_list l WHERE l.s > f.s) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i % 40 = 3 AND (EXISTS (SELECT FROM ls_list l WHERE l.s = f.s) OR f.v < 5) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f LEFT JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list) OR f.t IN (SELECT t FROM ls_list) GROUP BY name'),
	('SELECT count(*), sum(v) FROM FACT f WHERE f.s NOT IN (SELECT s FROM ls_list) AND EXISTS (SELECT FROM ls_dim d WHERE d.k = f.k)'),
	('SELECT count(*), sum(v) FROM FACT f WHERE f.s NOT IN (SELECT s FROM ls_list) AND NOT EXISTS (SELECT FROM ls_dim d WHERE d.k = f.k AND x > 3)'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f IS NOT NULL AND f.ctid > ''(1,2)'' AND f.s NOT IN (SELECT s FROM ls_list)'),
	('SELECT f.tableoid::regclass::text AS e, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE 3 NOT IN (SELECT s FROM ls_list WHERE z > 0) GROUP BY 1'),
	('SELECT count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list) AND f.s NOT IN (SELECT z FROM ls_list) AND f.i > 100'),
	('SELECT p, (SELECT count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list WHERE s % 7 <> p)) AS e FROM generate_series(0, 4) p'),
	('SELECT p, (SELECT count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k AND d.x > p WHERE f.s NOT IN (SELECT s FROM ls_list)) AS e FROM generate_series(0, 4) p'),
	('SELECT p, (SELECT sum(v + p) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i % 20 = 1 AND f.v > (SELECT max(z) + p FROM ls_list l WHERE l.s > f.s)) AS e FROM generate_series(0, 4) p');
-- errors: of subplans, of conditions before and after them, also where no row has a partner; no row reaches the last one
INSERT INTO ls_queries (q) VALUES
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT 10 / z FROM ls_list)'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k + 1000 WHERE f.s NOT IN (SELECT 10 / z FROM ls_list)'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i % 100 = 1 AND f.v > (SELECT max(100 / (l.s - f.s)) FROM ls_list l)'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list) AND 100 / (f.s - 20) < 50'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list) AND 100 / (f.s - 21) < 50'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.v > 200 AND f.s NOT IN (SELECT 10 / z FROM ls_list)'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.k < 0 AND f.s NOT IN (SELECT 10 / z FROM ls_list)');
-- subplans in conditions of joins
INSERT INTO ls_queries (q) VALUES
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE d.x + f.v NOT IN (SELECT s FROM ls_list) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k JOIN ls_other o ON o.k = f.s WHERE d.x + f.v NOT IN (SELECT s FROM ls_nulls) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f LEFT JOIN ls_dim d ON d.k = f.k WHERE coalesce(d.x, 3) NOT IN (SELECT s FROM ls_list) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i % 20 = 0 AND f.v < (SELECT max(l.z) FROM ls_list l WHERE l.s < d.x AND l.s <> f.s) GROUP BY name'),
	('SELECT name, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k JOIN ls_other o ON o.k = f.s WHERE f.i % 20 = 0 AND (o.label = ''o2'' OR EXISTS (SELECT FROM ls_list l WHERE l.s = d.x)) GROUP BY name'),
	('SELECT p, (SELECT count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE d.x + f.v NOT IN (SELECT s FROM ls_list WHERE s <> p)) AS e FROM generate_series(0, 4) p'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i % 10 = 0 AND f.v < (SELECT max(100 / (l.s - d.x)) FROM ls_list l)'),
	('SELECT (SELECT max(z) FROM ls_list l WHERE l.s = d.x) AS m, count(*) FROM FACT f JOIN ls_dim d ON d.k = f.k WHERE f.i < 500 GROUP BY 1'),
	('SELECT count(*), sum(v) FROM FACT f JOIN ls_dim d ON d.k = (SELECT max(s) FROM ls_list l WHERE l.s <= f.s) WHERE f.i < 500');
CREATE VIEW ls_all AS SELECT id, replace(q, 'FACT', t) AS q, t FROM ls_queries, unnest(ARRAY['ls_fact', 'ls_parts']) t;
SET gpuagg.cache = off;
SELECT id, pg_temp.lookups_compared(q), CASE t WHEN 'ls_fact' THEN q END AS q FROM ls_all ORDER BY t, id;
CREATE TABLE ls_answers AS SELECT id, t, q, pg_temp.core_answer(q) AS core FROM ls_all;
CREATE VIEW ls_differing AS SELECT id, t, q, pg_temp.compared(core, pg_temp.answer(q)) AS how FROM ls_answers;
-- from cached columns; thirds of them while columns are cached, with small batches, by tuples, in parallel
SET gpuagg.cache = eager;
SELECT * FROM ls_differing WHERE how ~ 'DIFF' AND id % 3 = 0;
SELECT * FROM ls_differing WHERE how ~ 'DIFF';
SET gpuagg.batch_rows = 64;
SELECT * FROM ls_differing WHERE how ~ 'DIFF' AND id % 3 = 1;
RESET gpuagg.batch_rows;
SET gpuagg.feed = 'tuples';
SELECT * FROM ls_differing WHERE how ~ 'DIFF' AND id % 3 = 2;
RESET gpuagg.feed;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT * FROM ls_differing WHERE how ~ 'DIFF' AND id % 3 = 0;
SET max_parallel_workers_per_gather = 0;
-- a lookup that does not fit: the executor runs the joins and the subplan
SET work_mem = '64kB';
SELECT pg_temp.lookups_compared('SELECT p, (SELECT count(*) FROM ls_fact f JOIN (SELECT k FROM generate_series(1, p) k GROUP BY k) d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list)) AS e
	FROM unnest(ARRAY[10, 50000, 20]) p');
RESET work_mem;
-- functions of users see no row that a policy hides, and volatile ones are called as often as by core
CREATE SEQUENCE ls_numbers;
SELECT count(*) FROM ls_fact f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list WHERE nextval('ls_numbers') > 0);
SELECT last_value FROM ls_numbers;
CREATE ROLE ls_reader;
CREATE FUNCTION ls_looks(v int) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS $$ BEGIN
	IF v % 5 = 0 THEN RAISE EXCEPTION 'value % is hidden', v; END IF; RETURN true; END $$;
CREATE TABLE ls_hidden AS SELECT v FROM generate_series(0, 100, 5) v;
ALTER TABLE ls_fact ENABLE ROW LEVEL SECURITY;
CREATE POLICY ls_policy ON ls_fact USING (v NOT IN (SELECT v FROM ls_hidden));
GRANT SELECT ON ls_fact, ls_dim, ls_other, ls_hidden TO ls_reader;
SET ROLE ls_reader;
SELECT name, count(*), sum(v) FROM ls_fact f JOIN ls_dim d ON d.k = f.k WHERE ls_looks(f.v) GROUP BY name ORDER BY name;
SELECT name, count(*), sum(v) FROM ls_fact f JOIN ls_dim d ON d.k = f.k JOIN ls_other o ON o.k = f.s AND ls_looks(f.v + (o.k = -1)::int) GROUP BY name ORDER BY name;
RESET ROLE;
-- EXPLAIN shows the subplan once, below the scan
CREATE FUNCTION pg_temp.plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Scan on|Join|Lookup|SubPlan [0-9]$|Removed' THEN
			RETURN NEXT regexp_replace(regexp_replace(line, '\(actual.*(rows=\d+).*', '\1'), '\d+ kB', 'n kB');
		END IF;
	END LOOP;
END $$;
SELECT pg_temp.plan('SELECT count(*), sum(v) FROM ls_fact f JOIN ls_dim d ON d.k = f.k WHERE f.s NOT IN (SELECT s FROM ls_list)');
DROP TABLE ls_fact, ls_dim, ls_other, ls_list, ls_nulls, ls_parts, ls_queries, ls_answers, ls_hidden CASCADE;
DROP FUNCTION ls_looks;
DROP SEQUENCE ls_numbers;
DROP ROLE ls_reader;
-- subplans above partitions, with parameters that change
CREATE TABLE la (x int) PARTITION BY RANGE (x);
CREATE TABLE la1 PARTITION OF la FOR VALUES FROM (0) TO (100);
CREATE TABLE la2 PARTITION OF la FOR VALUES FROM (100) TO (1000);
INSERT INTO la SELECT i % 10 + 100 * (i % 2) FROM generate_series(1, 600) i;
CREATE TABLE la_list AS SELECT i AS k, 2 * i AS z FROM generate_series(0, 2) i;
SELECT k, n FROM generate_series(1, 3) g(k), LATERAL (SELECT gpu_count(*) FILTER (WHERE x IN (SELECT z FROM la_list l WHERE l.k < g.k)) AS n FROM la) l;
DROP TABLE la, la_list;
