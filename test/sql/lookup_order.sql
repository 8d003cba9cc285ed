-- The order of probes follows the rows that were found, and ranges of cached columns without partners are skipped: core's rows and errors
SET client_min_messages = warning;
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET jit = off;
-- the order of joins is that of the query
SET join_collapse_limit = 1;
SET from_collapse_limit = 1;
-- from PostgreSQL 19 on, tables may be aggregated in part below a join
SELECT count(set_config(name, 'off', false)) < 2 AS above FROM pg_settings WHERE name = 'enable_eager_aggregate' \gset
CREATE TABLE lo_fact (a int, b int, c int8, d date, e smallint, v int, pad text);
INSERT INTO lo_fact SELECT i % 1000, CASE WHEN i % 11 > 0 THEN i / 7 % 500 END, i, date '2020-01-01' + i / 400, i % 30, i % 100 - 50, repeat('x', 100)
	FROM generate_series(1, 60000) i;
-- all rows, every second one, one in fifty; by date and number
CREATE TABLE lo_all AS SELECT a, a % 7 AS x, 'all ' || a % 5 AS name FROM generate_series(0, 999) a;
ALTER TABLE lo_all ADD PRIMARY KEY (a);
CREATE TABLE lo_half AS SELECT b, b % 9 AS y, b % 3 AS z FROM generate_series(0, 499, 2) b;
ALTER TABLE lo_half ADD PRIMARY KEY (b);
CREATE TABLE lo_few AS SELECT e::smallint AS e, 'few ' || e AS label, 100 / (e + 1) AS w FROM generate_series(0, 29, 15) e;
ALTER TABLE lo_few ADD PRIMARY KEY (e);
CREATE TABLE lo_days AS SELECT date '2020-01-01' + i AS d, i / 7 AS week, 'day ' || i AS t FROM generate_series(0, 199) i;
ALTER TABLE lo_days ADD PRIMARY KEY (d);
CREATE TABLE lo_numbers AS SELECT c::int8 AS c, c % 3 AS m FROM generate_series(30000, 31000) c;
ALTER TABLE lo_numbers ADD PRIMARY KEY (c);
CREATE TABLE lo_texts AS SELECT 'all ' || i AS name, i AS n FROM generate_series(0, 1) i;
ALTER TABLE lo_texts ADD PRIMARY KEY (name);
CREATE TABLE lo_parts (LIKE lo_fact) PARTITION BY RANGE (c);
CREATE TABLE lo_parts1 PARTITION OF lo_parts FOR VALUES FROM (MINVALUE) TO (20000);
CREATE TABLE lo_parts2 PARTITION OF lo_parts FOR VALUES FROM (20000) TO (MAXVALUE);
INSERT INTO lo_parts SELECT * FROM lo_fact;
VACUUM ANALYZE lo_fact, lo_all, lo_half, lo_few, lo_days, lo_numbers, lo_texts, lo_parts;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\i :include
-- the lookups as they were probed last, with what they found, and the rows of the joins and of the scan
CREATE FUNCTION pg_temp.probes(query text, what text = 'Lookup:|Hash .*Join|Scan on lo_fact') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ what THEN
			RETURN NEXT regexp_replace(regexp_replace(line, '\(actual.*(rows=\d+).*', '\1'), ' of \d+ rows, \d+ kB', '');
		END IF;
	END LOOP;
END $$;

CREATE TABLE lo_queries (id int GENERATED ALWAYS AS IDENTITY, q text);
INSERT INTO lo_queries (q) VALUES
	('SELECT al.name, f.label, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = t.b JOIN lo_few f ON f.e = t.e GROUP BY 1, 2'),
	('SELECT al.name, f.label, h.y, count(*), sum(v) FROM FACT t LEFT JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = t.b JOIN lo_few f ON f.e = t.e GROUP BY 1, 2, 3'),
	('SELECT al.name, count(*), sum(v) FROM FACT t LEFT JOIN lo_half h ON h.b = t.b JOIN lo_all al ON al.a = t.a JOIN lo_few f ON f.e = t.e WHERE h.y > 3 OR h.b IS NULL GROUP BY 1'),
	('SELECT al.name, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a WHERE EXISTS (SELECT FROM lo_half h WHERE h.b = t.b) AND NOT EXISTS (SELECT FROM lo_few f WHERE f.e = t.e) GROUP BY 1'),
	-- a condition of both sides; keys that are columns of other lookups
	('SELECT al.name, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = t.b AND h.y > t.v JOIN lo_few f ON f.e = t.e GROUP BY 1'),
	('SELECT te.n, count(*), sum(v) FROM FACT t JOIN lo_half h ON h.b = t.b JOIN lo_all al ON al.a = t.a JOIN lo_texts te ON te.name = al.name JOIN lo_few f ON f.e = t.e GROUP BY 1'),
	('SELECT f.label, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = al.a JOIN lo_few f ON f.e = h.y GROUP BY 1'),
	('SELECT da.week, f.label, count(*) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_days da ON da.d = t.d JOIN lo_few f ON f.e = t.e WHERE v > 0 GROUP BY 1, 2'),
	-- joins that keep their places: their conditions or keys may raise errors
	('SELECT al.name, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a AND 100 / (al.x + 1) > t.v JOIN lo_few f ON f.e = t.e GROUP BY 1'),
	('SELECT al.name, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a AND 100 / (t.v - al.x) < 100 JOIN lo_few f ON f.e = t.e GROUP BY 1'),
	('SELECT al.name, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a AND 100 / (t.v + 50) < 100 JOIN lo_few f ON f.e = t.e GROUP BY 1'),
	('SELECT al.name, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a + 2147482647 JOIN lo_few f ON f.e = t.e + 100 GROUP BY 1'),
	('SELECT al.name, count(*), sum(100 / (f.w + v)) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = t.b JOIN lo_few f ON f.e = t.e GROUP BY 1'),
	-- ranges to skip: by the bounds of the keys, by gaps between them; no partner anywhere
	('SELECT m, count(*), sum(v), max(pad) FROM FACT t JOIN lo_numbers n ON n.c = t.c GROUP BY m'),
	('SELECT count(*), sum(v) FROM FACT t WHERE c IN (SELECT c FROM lo_numbers WHERE m = 1)'),
	('SELECT count(*), sum(v) FROM FACT t WHERE NOT EXISTS (SELECT FROM lo_numbers n WHERE n.c = t.c)'),
	('SELECT m, count(*), count(n.c) FROM FACT t LEFT JOIN lo_numbers n ON n.c = t.c GROUP BY m'),
	('SELECT week, count(*), sum(v) FROM FACT t JOIN lo_days da ON da.d = t.d WHERE week IN (1, 19) GROUP BY week'),
	('SELECT week, count(*), sum(v) FROM FACT t JOIN (SELECT * FROM lo_days WHERE week = 19 AND t > '''') da ON da.d = t.d AND da.week = t.e GROUP BY week'),
	('SELECT count(*), sum(v) FROM FACT t JOIN (SELECT c + 100000 AS c FROM lo_numbers GROUP BY 1) n ON n.c = t.c'),
	('SELECT m, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_numbers n ON n.c = t.c GROUP BY m'),
	-- errors in ranges that would be skipped: of the scan's condition, of an earlier join's, of the join's own
	('SELECT m, count(*), sum(v) FROM FACT t JOIN lo_numbers n ON n.c = t.c WHERE 10 / (t.c - 50000) < 5 GROUP BY m'),
	('SELECT m, count(*), sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a AND 10 / (t.c - 50000 + al.x - 6) < 5 JOIN lo_numbers n ON n.c = t.c GROUP BY m'),
	('SELECT m, count(*), sum(v) FROM FACT t JOIN lo_numbers n ON n.c = t.c AND 10 / (t.c - 50000 + n.m) < 5 GROUP BY m'),
	('SELECT m, count(*), sum(v) FROM FACT t JOIN lo_numbers n ON n.c = t.c WHERE v NOT IN (SELECT 10 / (y - 5) FROM lo_half) GROUP BY m'),
	-- rescans
	('SELECT p, (SELECT count(*) || ''/'' || sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = t.b JOIN lo_few f ON f.e = t.e WHERE h.y <> p) AS e FROM generate_series(0, 3) p'),
	('SELECT p, (SELECT count(*) || ''/'' || sum(v) FROM FACT t JOIN lo_all al ON al.a = t.a JOIN lo_numbers n ON n.c = t.c AND n.c / 500 = 60 + p) AS e FROM generate_series(0, 3) p');
CREATE VIEW lo_all_queries AS SELECT id, replace(q, 'FACT', t) AS q, t FROM lo_queries, unnest(ARRAY['lo_fact', 'lo_parts']) t;
-- core's answers, which are the same with all settings
CREATE TABLE lo_answers AS SELECT *, pg_temp.core_answer(q) AS core FROM lo_all_queries;
SET gpuagg.cache = off;
SELECT id, pg_temp.compared(core, pg_temp.answer(q)), q FROM lo_answers WHERE t = 'lo_fact' ORDER BY id;
SELECT id, q, how FROM lo_answers, pg_temp.compared(core, pg_temp.answer(q)) how WHERE t = 'lo_parts' AND how ~ 'DIFF';
-- the most selective lookup becomes the first one, the outer join the last one, and a join follows those whose columns it reads
SELECT pg_temp.probes(replace(q, 'FACT', 'lo_fact')) FROM lo_queries WHERE id IN (1, 2, 6, 9) ORDER BY id;
SELECT pg_temp.probes(replace(q, 'FACT', 'lo_parts'), 'Lookup:|Hash .*Join|Append|Scan on lo_parts') FROM lo_queries WHERE id = 1;
-- a table that cannot be compiled again, as the first compilation had no cache, keeps its order, and EXPLAIN shows that
CREATE FUNCTION lo_switches(i int) RETURNS bool LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM set_config('gpuagg.cache', 'eager', false); RETURN true; END $$;
SELECT pg_temp.probes('SELECT al.name, f.label, count(*), sum(v) FROM lo_fact t JOIN lo_all al ON al.a = t.a JOIN lo_half h ON h.b = t.b JOIN lo_few f ON f.e = t.e WHERE lo_switches(v) GROUP BY 1, 2', 'Lookup:');
DROP FUNCTION lo_switches;
-- from cached columns
SET gpuagg.cache = eager;
SELECT id, q, how FROM lo_answers, pg_temp.compared(core, pg_temp.answer(q)) how WHERE how ~ 'DIFF';
SELECT id, q, how FROM lo_answers, pg_temp.compared(core, pg_temp.answer(q)) how WHERE how ~ 'DIFF';
SELECT id, regexp_replace(p, '.*(skipped=\d+).*', '\1') FROM lo_queries, pg_temp.probes(replace(q, 'FACT', 'lo_fact'), 'Cached Blocks:') p WHERE id BETWEEN 14 AND 21 ORDER BY id;
-- with small batches, in parallel
SET gpuagg.batch_rows = 64;
SELECT id, q, how FROM lo_answers, pg_temp.compared(core, pg_temp.answer(q)) how WHERE how ~ 'DIFF';
RESET gpuagg.batch_rows;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT id, q, how FROM lo_answers, pg_temp.compared(core, pg_temp.answer(q)) how WHERE how ~ 'DIFF';
SET gpuagg.cache = off;
SELECT id, q, how FROM lo_answers, pg_temp.compared(core, pg_temp.answer(q)) how WHERE how ~ 'DIFF';
-- sparse keys of which few are found: a filter comes before the hash table, after some vain searches, and only as long as they are vain
SET max_parallel_workers_per_gather = 0;
SET gpuagg.cache = off;
CREATE TABLE lo_sparse AS SELECT i, CASE WHEN i % 97 > 0 THEN (i * 7919::int8 % 200000 - 100000) * 1000000007 END AS k, (i * 7919::int8 % 200000)::int * 9973 AS m,
	CASE WHEN i > 150000 THEN (i % 2000 * 100 - 100000) * 1000000007::int8 ELSE i * 1000000007::int8 END AS late FROM generate_series(1, 300000) i;
CREATE TABLE lo_keys AS SELECT (i * 100 - 100000) * 1000000007::int8 AS k, i * 100 * 9973 AS m, i % 5 AS g, i / 20 AS r FROM generate_series(0, 1999) i;
INSERT INTO lo_keys VALUES (-9223372036854775808, -2147483648, 7, 7), (9223372036854775807, 2147483647, 7, 7);
ALTER TABLE lo_keys ADD PRIMARY KEY (k), ADD UNIQUE (m);
INSERT INTO lo_sparse SELECT 0, k, m, k FROM lo_keys;
VACUUM ANALYZE lo_sparse, lo_keys;
CREATE TABLE lo_filtered (id int, filter bool, q text);
INSERT INTO lo_filtered VALUES
	(1, true, 'SELECT g, count(*), sum(i) FROM lo_sparse s JOIN lo_keys d ON d.k = s.k GROUP BY g'),
	(2, true, 'SELECT g, count(*), sum(i) FROM lo_sparse s JOIN lo_keys d ON d.m = s.m GROUP BY g'),
	(3, true, 'SELECT g, count(*), sum(i) FROM lo_sparse s LEFT JOIN lo_keys d ON d.k = s.k AND d.g < 3 GROUP BY g'),
	(4, true, 'SELECT i % 3, count(*) FROM lo_sparse s WHERE EXISTS (SELECT FROM lo_keys d WHERE d.k = s.k) GROUP BY 1'),
	(5, true, 'SELECT i % 3, count(*) FROM lo_sparse s WHERE NOT EXISTS (SELECT FROM lo_keys d WHERE d.m = s.m AND g <> 1) GROUP BY 1'),
	(6, true, 'SELECT g, count(*), sum(i) FROM lo_sparse s JOIN (SELECT k % 1000 AS kk, g, max(k) AS k FROM lo_keys GROUP BY 1, 2, k) d ON d.k = s.k GROUP BY g'),
	(7, false, 'SELECT g, count(*), sum(i) FROM lo_sparse s JOIN lo_keys d ON d.k = s.late GROUP BY g'),
	(8, true, 'SELECT d.g, e.g, count(*) FROM lo_sparse s JOIN lo_keys d ON d.k = s.late JOIN lo_keys e ON e.m = s.m GROUP BY 1, 2'),
	(9, false, 'SELECT g, count(*) FROM lo_sparse s JOIN lo_keys d ON d.k = s.k WHERE s.i = 0 GROUP BY g');
SELECT id, pg_temp.compared(q) AS how FROM lo_filtered ORDER BY id;
SELECT f.id, filter, bool_or(p LIKE '%behind a filter%') AS is_filtered FROM lo_filtered f, pg_temp.probes(q, 'Lookup:') p GROUP BY 1, 2 ORDER BY 1;
SET gpuagg.cache = eager;
SELECT id, pg_temp.compared(q) AS how FROM lo_filtered WHERE pg_temp.compared(q) ~ 'DIFF' ORDER BY id;
DROP TABLE lo_sparse, lo_keys, lo_filtered;
-- ranges of texts: the first bytes of a filtered dimension's keys say which ranges have no partner
CREATE TABLE lo_words AS SELECT i, to_char(i / 500, 'FM00000000') || CASE WHEN i % 7 = 0 THEN ' long' ELSE '' END AS w, i % 100 AS v, repeat('x', 100) AS pad FROM generate_series(1, 60000) i;
CREATE TABLE lo_wide AS SELECT to_char(i, 'FM00000000') || s AS w, i AS n, CASE WHEN i % 40 = 0 THEN repeat('y', 100) END AS y FROM generate_series(0, 120) i, (VALUES (''), (' long')) v(s);
INSERT INTO lo_wide SELECT to_char(i, 'FM000000') || repeat(md5(i::text), 300), i, NULL FROM generate_series(900, 901) i;
CREATE COLLATION lo_nocase (provider = icu, locale = '@colStrength=secondary', deterministic = false);
CREATE TABLE lo_cased AS SELECT 'W' || i AS w FROM generate_series(20, 30) i;
ALTER TABLE lo_words ADD u text;
UPDATE lo_words SET u = 'w' || i / 500;
ALTER TABLE lo_wide ADD UNIQUE (w);
VACUUM (FREEZE, ANALYZE) lo_words;
VACUUM ANALYZE lo_wide;
SELECT gpuagg_cache_prewarm('lo_words') > 0 AS cached;
CREATE TABLE lo_worded (id int, q text);
INSERT INTO lo_worded VALUES
	(1, 'SELECT n, count(*), sum(v) FROM lo_words t JOIN lo_wide d ON d.w = t.w WHERE n BETWEEN 100 AND 110 GROUP BY n'),
	(2, 'SELECT count(*), sum(v) FROM lo_words t WHERE EXISTS (SELECT FROM lo_wide d WHERE d.w = t.w AND n < 10)'),
	(3, 'SELECT n, count(*), sum(v) FROM lo_words t LEFT JOIN lo_wide d ON d.w = t.w AND n < 10 GROUP BY n'),
	(4, 'SELECT count(*), sum(v) FROM lo_words t WHERE NOT EXISTS (SELECT FROM lo_wide d WHERE d.w = t.w AND n < 10)'),
	(5, 'SELECT n, count(*), sum(v) FROM lo_words t JOIN lo_wide d ON d.w = t.w WHERE n BETWEEN 100 AND 901 GROUP BY n'),
	(6, 'SELECT c.w, count(*), sum(v) FROM lo_words t JOIN lo_cased c ON c.w = t.u COLLATE lo_nocase GROUP BY c.w'),
	(7, 'SELECT n, count(*), sum(v) FROM lo_words t JOIN lo_wide d ON d.w = t.w AND 100 / (t.v - 99) < 1000 WHERE n < 5 GROUP BY n'),
	(8, 'SELECT n, count(*) FROM lo_words t JOIN lo_wide d ON d.w = t.w WHERE n < 5 AND 100 / (t.i - 60000) < 1 GROUP BY n');
SELECT id, pg_temp.compared(q) AS how FROM lo_worded ORDER BY id;
SELECT id, regexp_replace(p, '.*(skipped=\d+).*', '\1') FROM lo_worded, pg_temp.probes(q, 'Cached Blocks:') p WHERE id < 7 ORDER BY id;
DROP TABLE lo_words, lo_wide, lo_cased, lo_worded;
DROP COLLATION lo_nocase;
DROP TABLE lo_fact, lo_all, lo_half, lo_few, lo_days, lo_numbers, lo_texts, lo_parts, lo_queries, lo_answers CASCADE;
