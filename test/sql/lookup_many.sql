-- Lookups that find several rows for a key, and ON conditions of outer, semi and anti joins: core's rows and core's errors
SET gpuagg.cache = off;
SET gpuagg.replace_builtin = on;
-- the setting of gpuagg.require for the queries that are compared with core's answers
\set require allow
SET client_min_messages = warning;
SET timezone = 'UTC';
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 0;
SET extra_float_digits = 0;
SELECT count(set_config(name, 'off', false)) < 2 AS above FROM pg_settings WHERE name = 'enable_eager_aggregate' \gset
-- keys with 0, 1, 2, 7 and 5,000 matches, and NULLs
CREATE TABLE lm_fact AS SELECT i, CASE WHEN i % 19 > 0 THEN i * 7919 % 60 END AS k, CASE WHEN i % 23 > 0 THEN 't' || i % 50 END AS t, (i % 40)::int8 * 100000007 AS big,
	i % 101 - 50 AS v, CASE WHEN i % 13 > 0 THEN i % 4 END AS z, (i % 1009)::numeric(12, 2) / 4 AS w, (i % 31)::float4 / 4 AS f, CASE WHEN i % 700 = 0 THEN 'NaN' ELSE (i % 25)::numeric / 2 END AS n,
	repeat('x', i % 50) || i % 9 AS pad FROM generate_series(1, 6000) i;
CREATE TABLE lm_many AS SELECT CASE WHEN j % 37 > 0 THEN k END AS k, 't' || k AS t, k::int8 * 100000007 AS big, j, 'm' || (j + k) % 9 AS name, (j + k) % 11 AS val, CASE WHEN j % 5 > 0 THEN j % 6 END AS q,
	(k % 31)::float8 / 4 AS f, k % 25 / 2.0 AS n FROM generate_series(0, 59) k, generate_series(1, 7) j WHERE j <= CASE k % 4 WHEN 0 THEN 0 WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 7 END;
-- the key 3 has 5,000 matches, the key 100 a match but no row
CREATE TABLE lm_skew AS SELECT CASE WHEN j <= 5000 THEN 3 ELSE j % 100 + 1 END AS k, j, 's' || j % 7 AS name, j % 13 AS val FROM generate_series(1, 5200) j;
CREATE TABLE lm_dim AS SELECT k, 'd' || k % 5 AS dname, k % 7 - 3 AS x FROM generate_series(0, 80) k WHERE k % 9 <> 4;
ALTER TABLE lm_dim ADD PRIMARY KEY (k);
CREATE TABLE lm_parts (LIKE lm_fact) PARTITION BY RANGE (i);
CREATE TABLE lm_parts1 PARTITION OF lm_parts FOR VALUES FROM (MINVALUE) TO (2000);
CREATE TABLE lm_parts2 PARTITION OF lm_parts DEFAULT;
INSERT INTO lm_parts SELECT * FROM lm_fact WHERE i % 3 > 0;
VACUUM ANALYZE lm_fact, lm_many, lm_skew, lm_dim, lm_parts;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\i :include

CREATE TABLE lm_queries (id int GENERATED ALWAYS AS IDENTITY, q text);
-- several matches: keys and arguments of either side, aggregates of all kinds
INSERT INTO lm_queries (q) VALUES
	('SELECT count(*) FROM lm_fact f JOIN lm_many m ON m.k = f.k'),
	('SELECT count(*), sum(v), sum(val), sum(v * val) FROM lm_fact f JOIN lm_many m ON m.k = f.k'),
	('SELECT name, z, count(*), sum(v), avg(w), min(pad), max(t.t) FROM lm_fact t JOIN lm_many m ON m.k = t.k GROUP BY name, z'),
	('SELECT z, count(*), count(m.k), count(q), sum(val) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k GROUP BY z'),
	('SELECT z, count(DISTINCT name), array_agg(DISTINCT val ORDER BY val), string_agg(DISTINCT name, '','' ORDER BY name DESC) FROM lm_fact f JOIN lm_many m ON m.k = f.k GROUP BY z'),
	('SELECT name, percentile_disc(0.3) WITHIN GROUP (ORDER BY v + val), mode() WITHIN GROUP (ORDER BY z), array_agg(v ORDER BY v, i, j) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE f.i < 400 GROUP BY name'),
	('SELECT name, count(*) FILTER (WHERE v > val), bit_xor(val), bool_or(q > 3), regr_slope(v, val)::numeric(12, 6) FROM lm_fact f JOIN lm_many m ON m.k = f.k GROUP BY name'),
	('SELECT name, z, GROUPING(name, z), count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.k = f.k GROUP BY CUBE (name, z)'),
	('SELECT pad, name, sum(length(pad)) FROM lm_fact f JOIN lm_many m ON m.k = f.k GROUP BY pad, name HAVING count(*) > 2 ORDER BY 3 DESC, 1, 2 LIMIT 20'),
	('SELECT DISTINCT upper(name), q FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k WHERE v > 20'),
	('SELECT upper(pad || name) AS e, val % 3 AS m, count(*) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE v BETWEEN -5 AND 5 GROUP BY 1, 2'),
	('SELECT z, count(*), sum(m.n + f.n) FROM lm_fact f JOIN lm_many m ON m.k = f.k GROUP BY z'),
	('SELECT f.n, count(*), count(DISTINCT m.n) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k GROUP BY f.n'),
	('SELECT name, count(*), sum(v) FROM lm_parts f JOIN lm_many m ON m.k = f.k GROUP BY name'),
	('SELECT f.tableoid::regclass::text AS e, count(*), sum(val) FROM lm_parts f LEFT JOIN lm_many m ON m.k = f.k GROUP BY 1');
-- skew; keys of other types, two keys
INSERT INTO lm_queries (q) VALUES
	('SELECT s.name, count(*), sum(v), sum(s.val) FROM lm_fact f JOIN lm_skew s ON s.k = f.k GROUP BY s.name'),
	('SELECT z, count(*), sum(j) FROM lm_fact f LEFT JOIN lm_skew s ON s.k = f.k WHERE v > 40 GROUP BY z'),
	('SELECT count(*), sum(s.j), sum(i) FROM lm_fact f JOIN lm_skew s ON s.k = f.k WHERE i IN (57, 60, 597, 3000)'),
	('SELECT m.name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.t = f.t GROUP BY m.name'),
	('SELECT z, count(*), count(m.t), sum(val) FROM lm_fact f LEFT JOIN lm_many m ON m.t = f.t || '''' GROUP BY z'),
	('SELECT m.name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.big = f.big GROUP BY m.name'),
	('SELECT m.name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.k = f.k AND m.q = f.z GROUP BY m.name'),
	('SELECT m.name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.t = f.t AND m.q = f.z GROUP BY m.name'),
	('SELECT m.name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.f = f.f GROUP BY m.name'),
	('SELECT m.name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.n = f.n GROUP BY m.name');
-- conditions and joins above
INSERT INTO lm_queries (q) VALUES
	('SELECT name, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.k = f.k AND m.val < f.v GROUP BY name'),
	('SELECT name, count(*), sum(v) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k WHERE m.val IS NULL OR m.val > f.z GROUP BY name'),
	('SELECT dname, name, count(*), sum(x * v) FROM lm_fact f JOIN lm_many m ON m.k = f.k JOIN lm_dim d ON d.k = m.val GROUP BY dname, name'),
	('SELECT dname, name, count(*), sum(x * v) FROM lm_fact f JOIN lm_dim d ON d.k = f.k JOIN lm_many m ON m.k = d.k WHERE x > 0 GROUP BY dname, name'),
	('SELECT dname, count(*), sum(v) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k LEFT JOIN lm_dim d ON d.k = m.val + f.z GROUP BY dname'),
	('SELECT m.name, o.name AS other, count(*), sum(v) FROM lm_fact f JOIN lm_many m ON m.k = f.k JOIN lm_many o ON o.k = f.z GROUP BY 1, 2'),
	('SELECT m.name, o.name AS other, count(*), sum(o.val) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k LEFT JOIN lm_many o ON o.k = m.val GROUP BY 1, 2'),
	('SELECT m.name, s.name AS other, count(*), sum(s.j) FROM lm_fact f JOIN lm_many m ON m.k = f.k JOIN lm_skew s ON s.k = m.q WHERE f.i < 300 AND s.j % 3 > 0 GROUP BY 1, 2'),
	('SELECT m.name, s.name AS other, count(*), sum(s.j) FROM lm_fact f JOIN lm_skew s ON s.k = f.k JOIN lm_many m ON m.k = s.val WHERE f.i < 300 GROUP BY 1, 2'),
	('SELECT name, count(*) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE EXISTS (SELECT FROM lm_skew s WHERE s.k = m.val) AND NOT EXISTS (SELECT FROM lm_dim d WHERE d.k = f.z AND d.x = 0) GROUP BY name'),
	('SELECT sum(100 / (val - 4)) FROM lm_fact f JOIN lm_many m ON m.k = f.k'),
	('SELECT sum(100 / (val - 40)) FROM lm_fact f JOIN lm_many m ON m.k = f.k AND 10 / (val - 20) < 5'),
	('SELECT sum(v) FROM lm_fact f JOIN lm_many m ON m.k = f.k AND 10 / (v - val) > 0');
-- ON conditions of left joins: true, false, NULL, with errors
INSERT INTO lm_queries (q) VALUES
	('SELECT dname, count(*), count(d.k), sum(x), sum(v) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x > f.z GROUP BY dname'),
	('SELECT dname, count(*), sum(d.x + f.v) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x + f.v > 5 GROUP BY dname'),
	('SELECT d.x + f.v AS e, count(*) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x + f.v > 5 AND f.z IS NOT NULL GROUP BY 1'),
	('SELECT dname || ''!'' AS e, count(*), count(dname) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND upper(dname) || pad > ''D2x'' GROUP BY 1'),
	('SELECT z, count(*), count(d.k) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND NULL::bool GROUP BY z'),
	('SELECT z, count(*), count(d.k) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND f.v > 0 GROUP BY z'),
	('SELECT dname, count(*) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x <> f.z WHERE d.k IS NULL OR v > 10 GROUP BY dname'),
	('SELECT d.dname, e.dname AS other, count(*) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x > f.z LEFT JOIN lm_dim e ON e.k = d.x AND e.x < f.v GROUP BY 1, 2'),
	('SELECT dname, count(*) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND 10 / d.x > f.z GROUP BY dname'),
	('SELECT dname, count(*) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x <> 0 AND 10 / d.x > f.z GROUP BY dname'),
	('SELECT dname, count(*) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND 10 / (f.k - 4) > f.z GROUP BY dname'),
	('SELECT name, count(*), count(m.k), sum(val), sum(v) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k AND m.val > f.z * 3 GROUP BY name'),
	('SELECT name, dname, count(*), sum(v) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k AND m.q <> f.z LEFT JOIN lm_dim d ON d.k = m.val AND d.x < f.v GROUP BY 1, 2'),
	('SELECT s.name, count(*), count(s.k), sum(j) FROM lm_fact f LEFT JOIN lm_skew s ON s.k = f.k AND s.j % 50 = f.v GROUP BY s.name'),
	('SELECT s.name, count(*), count(s.k), sum(j) FROM lm_fact f LEFT JOIN lm_skew s ON s.k = f.k AND s.j > 4990 + f.v GROUP BY s.name'),
	('SELECT z, count(*), count(s.k) FROM lm_fact f LEFT JOIN lm_skew s ON s.k = f.k AND s.j + f.v < 0 GROUP BY z'),
	('SELECT m.name, s.name AS other, count(*), sum(s.j) FROM lm_fact f JOIN lm_many m ON m.k = f.k LEFT JOIN lm_skew s ON s.k = m.q AND s.j % 1000 = f.v WHERE f.i < 600 GROUP BY 1, 2'),
	('SELECT m.name, s.name AS other, count(*), sum(s.j) FROM lm_fact f LEFT JOIN lm_skew s ON s.k = f.k AND s.j % 1000 = f.v LEFT JOIN lm_many m ON m.k = s.val WHERE f.i < 600 GROUP BY 1, 2');
-- conditions of semi joins and anti joins
INSERT INTO lm_queries (q) VALUES
	('SELECT z, count(*), sum(v) FROM lm_fact f WHERE EXISTS (SELECT FROM lm_many m WHERE m.k = f.k AND m.val > f.v) GROUP BY z'),
	('SELECT z, count(*), sum(v) FROM lm_fact f WHERE NOT EXISTS (SELECT FROM lm_many m WHERE m.k = f.k AND m.val > f.v) GROUP BY z'),
	('SELECT z, count(*), sum(v) FROM lm_fact f WHERE EXISTS (SELECT FROM lm_skew s WHERE s.k = f.k AND s.j <> f.i) GROUP BY z'),
	('SELECT z, count(*), sum(v) FROM lm_fact f WHERE EXISTS (SELECT FROM lm_skew s WHERE s.k = f.k AND s.j > 4900 AND s.j < f.i) GROUP BY z'),
	('SELECT z, count(*), sum(v) FROM lm_fact f WHERE NOT EXISTS (SELECT FROM lm_skew s WHERE s.k = f.k AND s.j = f.i) GROUP BY z'),
	('SELECT name, count(*) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE NOT EXISTS (SELECT FROM lm_skew s WHERE s.k = m.val AND s.j < f.i AND s.name <> m.name) GROUP BY name'),
	('SELECT dname, count(*) FROM lm_fact f JOIN lm_dim d ON d.k = f.k WHERE EXISTS (SELECT FROM lm_many m WHERE m.k = f.k AND m.q <> d.x) GROUP BY dname'),
	('SELECT z, count(*) FROM lm_fact f WHERE EXISTS (SELECT FROM lm_many m WHERE m.k = f.k AND 10 / (m.val + 1) > f.z) GROUP BY z');

CREATE TABLE lm_answers AS SELECT id, q, pg_temp.core_answer(q) AS core FROM lm_queries;
SET gpuagg.require = :require;
SELECT id, pg_temp.compared(core, pg_temp.answer(q)), q FROM lm_answers ORDER BY id;
-- the same from cached columns; a third of them while columns are cached, another with small batches, another in parallel, another with little memory
CREATE VIEW lm_differing AS SELECT id, pg_temp.compared(core, pg_temp.answer(q)) AS how FROM lm_answers;
SET gpuagg.cache = eager;
SELECT * FROM lm_differing WHERE how LIKE 'DIFF%' AND id % 3 = 0;
SELECT * FROM lm_differing WHERE how LIKE 'DIFF%';
SET gpuagg.batch_rows = 64;
SELECT * FROM lm_differing WHERE how LIKE 'DIFF%' AND id % 3 = 1;
RESET gpuagg.batch_rows;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT * FROM lm_differing WHERE how LIKE 'DIFF%' AND id % 3 = 2;
SET gpuagg.cache = off;
SET work_mem = '64kB';
SELECT * FROM lm_differing WHERE how LIKE 'DIFF%' AND id % 3 = 0;
RESET work_mem;
SET max_parallel_workers_per_gather = 0;
-- which of them have lookups with several rows for a key, and which joins have none
CREATE FUNCTION pg_temp.lm_lookups(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lookups text[] := '{}';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF) ' || query LOOP
		IF line ~ 'Lookup:' THEN
			lookups := lookups || regexp_replace(line, '.*Lookup: (\w+) join, .*, (array|bitmap|hash table of integers|hash table) of (\d+) rows( with equal keys)?.*found (\d+) of (\d+).*', '\1: \2\4, \5 of \6');
		END IF;
	END LOOP;
	RETURN array_to_string(lookups, '; ');
END $$;
\if :above
SELECT id, pg_temp.lm_lookups(q) FROM lm_answers WHERE core[1] NOT LIKE 'error%' AND id IN (1, 2, 4, 14, 16, 17, 19, 20, 21, 22, 23, 26, 27, 30, 39, 40, 50, 51, 53, 57, 58, 63) ORDER BY id;
\endif

-- EXPLAIN ANALYZE counts the rows of joins as core does, although steps end between the matches of a row
CREATE FUNCTION pg_temp.lm_counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Append|Scan on lm_(fact|parts)|Join|Removed' THEN
			RETURN NEXT regexp_replace(line, '\(.*(rows=\d+).*', '\1');
		END IF;
	END LOOP;
END $$;
CREATE FUNCTION pg_temp.lm_core_counts(query text) RETURNS SETOF text LANGUAGE plpgsql SET gpuagg.enabled = off AS $$
BEGIN
	RETURN QUERY SELECT regexp_replace(l, '^ +', '') FROM pg_temp.lm_counts(query) l;
END $$;
SELECT (SELECT array_agg(regexp_replace(l, '^ +', '')) FROM pg_temp.lm_counts(q) l) = (SELECT array_agg(l) FROM pg_temp.lm_core_counts(q) l) AS same, q FROM unnest(ARRAY[
	'SELECT count(*), sum(val) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE f.v > 0',
	'SELECT count(*), sum(val) FROM lm_fact f JOIN lm_many m ON m.k = f.k AND m.val < f.v',
	'SELECT count(*), sum(val) FROM lm_parts f JOIN lm_many m ON m.k = f.k AND m.val < f.v',
	'SELECT count(*), sum(x) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND d.x > f.v']) q;
\if :above
SELECT pg_temp.lm_counts('SELECT count(*), sum(s.val) FROM lm_fact f LEFT JOIN lm_skew s ON s.k = f.k AND s.j <> f.v');
\endif

-- rescans with parameters in each place, LATERAL, cursors that stop between the matches of a row, LIMIT
SELECT p, (SELECT count(*) || '/' || sum(val) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE m.val % 5 = p) AS e FROM generate_series(0, 5) p;
SELECT p, (SELECT count(*) || '/' || sum(val) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k AND m.val > f.v * p) AS e FROM generate_series(0, 2) p;
SELECT p, (SELECT sum(n) FROM (SELECT name, count(*) AS n FROM lm_fact f JOIN lm_skew s ON s.k = f.k WHERE f.v = p GROUP BY name LIMIT 3) x) > 0 AS e FROM generate_series(0, 2) p;
SELECT p, e FROM generate_series(1, 3) p, LATERAL (SELECT name || p AS e FROM (SELECT name, count(*) AS n FROM lm_fact f JOIN lm_many m ON m.k = f.k + p GROUP BY name OFFSET 0) x WHERE n > 1300) y ORDER BY 1, 2;
SELECT count(*), sum(c) FROM (SELECT name, j, count(*) AS c FROM lm_fact f JOIN lm_skew s ON s.k = f.k GROUP BY name, j) x;
BEGIN;
DECLARE lm_cursor CURSOR FOR SELECT k, (SELECT sum(s.val + d.k) FROM lm_fact f JOIN lm_skew s ON s.k = f.k WHERE f.i < 100) AS e FROM lm_dim d ORDER BY k;
FETCH 3 FROM lm_cursor;
CLOSE lm_cursor;
COMMIT;
-- values so long that a batch ends between the matches of a row, of either side
CREATE TABLE lm_long AS SELECT k, repeat(md5(k::text || j), 100 * j) AS name FROM generate_series(1, 9) k, generate_series(1, 40) j;
CREATE TABLE lm_texts AS SELECT i, i % 9 + 1 AS k, i % 3 AS h, repeat(md5(i::text), 60) AS t FROM generate_series(1, 12) i;
ANALYZE lm_long, lm_texts;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT h, count(*), sum(length(t)), min(t || name) < ''5'' AS m FROM lm_texts f JOIN lm_long l ON l.k = f.k GROUP BY h',
	'SELECT md5(t || name) AS e, count(*) FROM lm_texts f JOIN lm_long l ON l.k = f.k GROUP BY 1',
	'SELECT t, h, count(name), max(length(name)) FROM lm_texts f LEFT JOIN lm_long l ON l.k = f.k AND length(name) % 7 > h GROUP BY t, h',
	'SELECT md5(f.t || coalesce(l.name, ''-'')) AS e, count(*), sum(m.val) FROM lm_texts f JOIN lm_many m ON m.k = f.k LEFT JOIN lm_long l ON l.k = m.val AND length(l.name) % 7 > h GROUP BY 1']) q;
-- keys that cannot be compared with each other: equal ones that look different leave the join to the executor
CREATE TABLE lm_floats AS SELECT f, j FROM unnest('{0,-0,0,1.5,1.5,NaN,NaN,2.25}'::float8[]) WITH ORDINALITY x(f, j);
CREATE TABLE lm_zeros AS SELECT (ARRAY[0, '-0', 1.5, 'NaN', 2.25, 7])[1 + i % 6]::float4 AS f, i FROM generate_series(1, 600) i;
ANALYZE lm_floats, lm_zeros;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT x.j, count(*), sum(i) FROM lm_zeros z JOIN lm_floats x ON x.f = z.f GROUP BY x.j',
	'SELECT x.j, count(*), sum(i) FROM lm_zeros z LEFT JOIN lm_floats x ON x.f = z.f AND x.j < z.i GROUP BY x.j',
	'SELECT x.j, count(*), sum(i) FROM lm_zeros z JOIN (SELECT * FROM lm_floats WHERE f > 0) x ON x.f = z.f GROUP BY x.j',
	'SELECT count(*), sum(i) FROM lm_zeros z WHERE EXISTS (SELECT FROM lm_floats x WHERE x.f = z.f AND x.j <> z.i)']) q;
-- functions of users in conditions are called for the same pairs
CREATE FUNCTION lm_refuse(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
	IF a + b = 57 THEN RAISE EXCEPTION '% and % are refused', a, b; END IF; RETURN a + b > 5; END $$;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT count(*), sum(d.x) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND lm_refuse(f.v, f.k)',
	'SELECT count(*), sum(d.x) FROM lm_fact f LEFT JOIN lm_dim d ON d.k = f.k AND f.v + f.k <> 57 AND lm_refuse(f.v, f.k)',
	'SELECT count(*), sum(m.val) FROM lm_fact f LEFT JOIN lm_many m ON m.k = f.k AND m.val < 7 AND lm_refuse(f.v, m.val)',
	'SELECT count(*), sum(m.val) FROM lm_fact f JOIN lm_many m ON m.k = f.k AND f.v < 40 AND lm_refuse(f.v, m.val)',
	'SELECT count(*) FROM lm_fact f WHERE f.v < 40 AND EXISTS (SELECT FROM lm_many m WHERE m.k = f.k AND lm_refuse(f.v, m.val))']) q;
DROP FUNCTION lm_refuse;
-- computed text keys, whose numbers begin anew in each rescan, with the same lookup
CREATE TABLE lm_keys AS SELECT 't' || i % 50 || '-' || i / 50 AS t, i AS v FROM generate_series(0, 199) i;
ANALYZE lm_keys;
SELECT pg_temp.compared('SELECT p, (SELECT count(*) || ''/'' || sum(m.v) FROM lm_fact f JOIN lm_keys m ON m.t = f.t || ''-'' || p) AS e FROM generate_series(0, 4) p'),
	pg_temp.compared('SELECT p, (SELECT count(*) || ''/'' || sum(m.v) FROM lm_fact f JOIN lm_keys m ON m.t = f.t || ''-'' || p % 4 WHERE f.i % 7 > p) AS e FROM generate_series(0, 6) p');
DROP TABLE lm_keys;
-- matches that do not fit into a step repeat few conditions of the scan
CREATE SEQUENCE lm_calls;
CREATE FUNCTION lm_noted(i int) RETURNS bool LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM nextval('lm_calls'); RETURN true; END $$;
SET gpuagg.batch_rows = 64;
SELECT setval('lm_calls', 1);
SELECT count(*), sum(m.val) FROM lm_fact f JOIN lm_many m ON m.k = f.k WHERE lm_noted(i);
SELECT nextval('lm_calls') BETWEEN 6000 AND 7800 AS few;
RESET gpuagg.batch_rows;
DROP FUNCTION lm_noted;
DROP SEQUENCE lm_calls;
-- text keys that repeat are searched once for each value: more values than are numbered, long values, NULLs, rescans with other rows
CREATE TABLE lm_words AS SELECT i, CASE WHEN i % 41 = 0 THEN NULL WHEN i % 3 = 0 THEN 'w' || i * 7919 % 20011 WHEN i % 3 = 1 THEN repeat('long', 30) || i % 100 ELSE 's' || i % 10 END AS t,
	(i % 12)::numeric / 4 AS n FROM generate_series(1, 60000) i;
CREATE TABLE lm_meanings AS SELECT DISTINCT ON (t) t, n, i % 7 AS v FROM lm_words WHERE i % 5 > 0 AND t IS NOT NULL ORDER BY t, i;
INSERT INTO lm_meanings SELECT t, n, v + 1 FROM lm_meanings WHERE v = 3 AND t < 't';
VACUUM ANALYZE lm_words, lm_meanings;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT m.v, count(*), sum(i) FROM lm_words w JOIN lm_meanings m ON m.t = w.t GROUP BY m.v',
	'SELECT m.v, count(*), sum(i) FROM lm_words w LEFT JOIN lm_meanings m ON m.t = w.t GROUP BY m.v',
	'SELECT left(w.t, 2) AS e, count(*), sum(i) FROM lm_words w WHERE NOT EXISTS (SELECT FROM lm_meanings m WHERE m.t = w.t AND m.v > 2) GROUP BY 1',
	'SELECT w.t, count(*) FROM lm_words w JOIN lm_meanings m ON m.t = w.t WHERE w.t < ''t'' GROUP BY w.t',
	'SELECT m.v, count(*), sum(i) FROM lm_words w JOIN (SELECT n, max(v) AS v FROM lm_meanings GROUP BY n) m ON m.n = w.n GROUP BY m.v']) q;
SELECT p, (SELECT count(*) || '/' || sum(m.v) FROM lm_words w JOIN lm_meanings m ON m.t = w.t WHERE m.v = p) AS e FROM generate_series(0, 7) p;
SET gpuagg.cache = eager;
SELECT p, (SELECT count(*) || '/' || sum(m.v) FROM lm_words w JOIN lm_meanings m ON m.t = w.t WHERE m.v = p) AS e FROM generate_series(0, 7) p;
SET gpuagg.enabled = off;
SELECT p, (SELECT count(*) || '/' || sum(m.v) FROM lm_words w JOIN lm_meanings m ON m.t = w.t WHERE m.v = p) AS e FROM generate_series(0, 7) p;
RESET gpuagg.enabled;
SET gpuagg.cache = off;
DROP TABLE lm_words, lm_meanings;
DROP VIEW lm_differing;
DROP TABLE lm_fact, lm_many, lm_skew, lm_dim, lm_parts, lm_queries, lm_answers, lm_long, lm_texts, lm_floats, lm_zeros;
