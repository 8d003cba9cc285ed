-- Joins below an aggregation: stars, snowflakes, chains, semi joins and anti joins give core's rows and core's errors
SET gpuagg.cache = off;
SET gpuagg.replace_builtin = on;
-- the setting of gpuagg.require for the queries that are compared with core's answers
\set require allow
SET client_min_messages = warning;
SET timezone = 'UTC';
SET extra_float_digits = 0;
-- so that the extension is chosen whatever the size of the input
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE lj_fact AS SELECT i, CASE WHEN i % 17 = 0 OR i * 7919 % 230 = 77 THEN NULL ELSE i * 7919 % 230 END AS k,
	(i % 150) * 1000003::int8 - 50000000 AS big, (i % 40)::int2 AS sm, CASE WHEN i % 29 > 0 THEN 't' || i % 60 END AS t,
	CASE WHEN i % 2 = 0 THEN round((i % 25)::numeric / 2, 2) ELSE round((i % 25)::numeric / 2, 1) END AS n, (i % 31)::float8 / 4 AS f,
	date '2020-01-01' + i % 500 AS d, timestamp '2020-01-01' + i % 300 * interval '12 hours' AS ts, (chr(97 + i % 7) || i % 3)::char(4) AS c,
	i % 101 - 50 AS v, (i % 1009)::numeric(12, 2) / 4 AS w, i % 5 < 2 AS h FROM generate_series(1, 8000) i;
INSERT INTO lj_fact VALUES (-1, 1, 9223372036854775807, 32767, '', 'NaN', 'NaN', 'infinity', 'infinity', '', 1, 1, NULL),
	(-2, 2147483647, -9223372036854775808, -32768, 'T1', 1.000, '-0', '-infinity', '-infinity', 'A0', NULL, NULL, true),
	(-3, -2147483648, 0, 0, 't1 ', '-0.0', 'infinity', NULL, NULL, NULL, -1, 0.25, false),
	(-4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- a dimension with a dense key; x is 0 only in row 77, which no row of the fact table refers to
CREATE TABLE lj_dim AS SELECT k, 'd' || k % 50 AS name, CASE WHEN k % 19 > 0 THEN 'g' || k % 7 END AS grp, k - 77 AS x, k % 3 <> 0 AS active,
	(k % 9)::numeric / 4 AS n, CASE WHEN k % 13 > 0 THEN k % 12 END AS r FROM generate_series(1, 200) k;
ALTER TABLE lj_dim ADD PRIMARY KEY (k);
CREATE TABLE lj_region AS SELECT r, 'r' || r AS rname, r % 4 AS cont FROM generate_series(0, 10) r;
ALTER TABLE lj_region ADD PRIMARY KEY (r);
CREATE TABLE lj_cont AS SELECT c, 'c' || c AS cname FROM generate_series(0, 2) c;
ALTER TABLE lj_cont ADD PRIMARY KEY (c);
-- sparse keys; the unique index allows several NULLs
CREATE TABLE lj_sparse AS SELECT (k * 1000003 - 50000000)::int8 AS big, 's' || k % 9 AS label, k % 11 AS val FROM generate_series(0, 119) k;
INSERT INTO lj_sparse VALUES (NULL, 'none', 1), (NULL, 'none', 2), (9223372036854775807, 'high', 3), (-9223372036854775808, 'low', 4);
CREATE UNIQUE INDEX ON lj_sparse (big);
CREATE TABLE lj_two AS SELECT a, 't' || b AS b, a * 100 + b AS c FROM generate_series(0, 29) a, generate_series(0, 44) b WHERE (a + b) % 3 > 0;
ALTER TABLE lj_two ADD PRIMARY KEY (a, b);
-- several rows for a key, with NULLs, and nothing that says so
CREATE TABLE lj_many AS SELECT nullif(k % 60, 0) AS k, 'm' || k % 8 AS name, k % 5 AS val FROM generate_series(1, 150) k;
CREATE TABLE lj_empty (k int PRIMARY KEY, name text, val int);
CREATE TABLE lj_days AS SELECT date '2020-01-01' + i + time '00:00' AS ts, i / 30 AS month, 'q' || i / 90 % 4 AS quarter FROM generate_series(0, 399) i;
ALTER TABLE lj_days ADD PRIMARY KEY (ts);
CREATE TABLE lj_num AS SELECT i::numeric / 2 AS n, 'n' || i % 5 AS s FROM generate_series(0, 20) i UNION ALL SELECT 'NaN', 'nan';
ALTER TABLE lj_num ADD PRIMARY KEY (n);
CREATE TABLE lj_float AS SELECT i::float8 / 4 AS f, 'f' || i % 5 AS s FROM generate_series(1, 20) i
	UNION ALL VALUES ('NaN'::float8, 'nan'), ('-0', 'zero'), ('infinity', 'inf');
ALTER TABLE lj_float ADD PRIMARY KEY (f);
CREATE TABLE lj_text AS SELECT 't' || i AS t, 'x' || i % 4 AS s FROM generate_series(0, 40) i UNION ALL VALUES ('', 'e'), ('t1 ', 'b'), ('T1', 'u');
ALTER TABLE lj_text ADD PRIMARY KEY (t);
CREATE TABLE lj_char AS SELECT (chr(97 + i % 5) || i / 5)::char(6) AS c, i % 4 AS s FROM generate_series(0, 14) i UNION ALL VALUES ('', 9);
ALTER TABLE lj_char ADD PRIMARY KEY (c);
CREATE TABLE lj_parts (LIKE lj_fact) PARTITION BY RANGE (i);
CREATE TABLE lj_parts1 PARTITION OF lj_parts FOR VALUES FROM (MINVALUE) TO (3000);
CREATE TABLE lj_parts2 PARTITION OF lj_parts FOR VALUES FROM (3000) TO (6000);
CREATE TABLE lj_parts3 PARTITION OF lj_parts DEFAULT;
INSERT INTO lj_parts SELECT * FROM lj_fact WHERE i % 4 <> 0;
VACUUM ANALYZE lj_fact, lj_dim, lj_region, lj_cont, lj_sparse, lj_two, lj_many, lj_empty, lj_days, lj_num, lj_float, lj_text, lj_char, lj_parts;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\i :include

CREATE TABLE lj_queries (id int GENERATED ALWAYS AS IDENTITY, q text);
-- stars
INSERT INTO lj_queries (q) VALUES
	('SELECT count(*), sum(v), sum(x) FROM lj_fact JOIN lj_dim USING (k)'),
	('SELECT grp, count(*), sum(v), avg(w), min(d), max(t) FROM lj_fact f JOIN lj_dim d ON f.k = d.k GROUP BY grp'),
	('SELECT name, grp, active, count(*), sum(v * x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.active AND f.v > 0 GROUP BY name, grp, active'),
	('SELECT upper(name) AS u, x % 5 AS m, count(v), sum(v + x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY 1, 2'),
	('SELECT d.k, d.name, count(*), max(w) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.k'),
	('SELECT sm, grp, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.name LIKE ''d1%'' GROUP BY sm, grp'),
	('SELECT grp, label, count(*), sum(val), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k JOIN lj_sparse s ON s.big = f.big GROUP BY grp, label'),
	('SELECT grp, label, month, sum(w) FROM lj_fact f, lj_dim d, lj_sparse s, lj_days t WHERE d.k = f.k AND s.big = f.big AND t.ts = f.ts AND d.active AND t.quarter = ''q1'' GROUP BY 1, 2, 3'),
	('SELECT sum(w) FROM lj_fact f, lj_days t WHERE t.ts = f.d AND month = 3 AND v BETWEEN 1 AND 30'),
	('SELECT quarter, count(*), count(DISTINCT t.ts), min(f.d) FROM lj_fact f JOIN lj_days t ON f.d = t.ts GROUP BY quarter'),
	('SELECT d1.grp, d2.grp AS other, count(*) FROM lj_fact f JOIN lj_dim d1 ON d1.k = f.k JOIN lj_dim d2 ON d2.k = f.sm GROUP BY 1, 2'),
	('SELECT grp, count(*) FILTER (WHERE v > x), sum(v) FILTER (WHERE h), bool_or(active AND h), bit_xor(x), array_agg(DISTINCT x ORDER BY x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY grp'),
	('SELECT grp, percentile_disc(0.5) WITHIN GROUP (ORDER BY v + x), count(DISTINCT name), string_agg(DISTINCT name, '','' ORDER BY name) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY grp'),
	('SELECT grp, active, GROUPING(grp, active), count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY CUBE (grp, active)'),
	('SELECT grp, sum(v) AS t FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY grp HAVING sum(x) > 0 AND count(*) > 100 ORDER BY t DESC LIMIT 3'),
	('SELECT DISTINCT grp, active FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE v = 7'),
	('SELECT count(*), sum(e) FROM (SELECT grp, count(*) AS e FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY grp) x'),
	('SELECT g.m, sum(v), count(g.c) FROM lj_fact f JOIN (SELECT k, count(*) AS c, max(val) AS m FROM lj_many GROUP BY k) g ON g.k = f.k GROUP BY g.m'),
	('SELECT g.k % 4 AS e, count(*) FROM lj_fact f JOIN (SELECT DISTINCT k FROM lj_many) g ON g.k = f.k GROUP BY 1'),
	('SELECT grp, sum(v) FROM lj_parts f JOIN lj_dim d ON d.k = f.k GROUP BY grp'),
	('SELECT f.tableoid::regclass::text AS e, f.h, sum(x) FROM lj_parts f JOIN lj_dim d ON d.k = f.k WHERE f.i > 5000 GROUP BY f.tableoid, f.h');
-- snowflakes and chains
INSERT INTO lj_queries (q) VALUES
	('SELECT rname, cname, count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k JOIN lj_region r ON r.r = d.r JOIN lj_cont c ON c.c = r.cont GROUP BY rname, cname'),
	('SELECT cname, grp, sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k LEFT JOIN lj_region r ON r.r = d.r LEFT JOIN lj_cont c ON c.c = r.cont GROUP BY cname, grp'),
	('SELECT cname, count(*), count(d.k), count(rname) FROM lj_fact f LEFT JOIN (lj_dim d JOIN lj_region r ON r.r = d.r JOIN lj_cont c ON c.c = r.cont) ON d.k = f.k AND d.active GROUP BY cname'),
	('SELECT rname, label, sum(w) FROM lj_fact f JOIN (SELECT d.k, d.x, r.* FROM lj_dim d JOIN lj_region r ON r.r = d.r) s ON s.k = f.k JOIN lj_sparse USING (big) WHERE s.x > 0 GROUP BY rname, label'),
	('SELECT r.rname, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k JOIN lj_region r ON r.r = d.r AND r.cont = f.sm % 4 GROUP BY 1');
-- outer joins, empty dimensions
INSERT INTO lj_queries (q) VALUES
	('SELECT grp, count(*), count(d.k), sum(x), sum(v) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k GROUP BY grp'),
	('SELECT coalesce(name, ''none'') AS e, d.k IS NULL AS m, count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k AND d.x > 20 GROUP BY 1, 2'),
	('SELECT grp, count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k WHERE d.k IS NULL OR d.active GROUP BY grp'),
	('SELECT f.h, count(*), count(e.k), max(e.name) FROM lj_fact f LEFT JOIN lj_empty e ON e.k = f.k GROUP BY f.h'),
	('SELECT e.name, count(*) FROM lj_fact f JOIN lj_empty e ON e.k = f.k GROUP BY e.name'),
	('SELECT count(*), sum(e.val) FROM lj_fact f JOIN lj_empty e ON e.k = f.k'),
	('SELECT d.grp, count(f.i), count(*), sum(v) FROM lj_fact f RIGHT JOIN lj_dim d ON d.k = f.k GROUP BY d.grp'),
	('SELECT d.k, count(f.i) FROM lj_dim d LEFT JOIN lj_fact f ON d.k = f.k AND f.v > 48 GROUP BY d.k'),
	('SELECT d.grp, f.sm, count(*), sum(v), sum(x) FROM lj_fact f FULL JOIN lj_dim d ON d.k = f.k WHERE f.v > 40 OR f.v IS NULL GROUP BY 1, 2'),
	('SELECT e.name, count(*), count(f.i) FROM lj_fact f FULL JOIN lj_empty e ON e.k = f.k GROUP BY e.name'),
	('SELECT grp, label, count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k AND f.h LEFT JOIN lj_sparse s ON s.big = f.big AND d.active GROUP BY 1, 2'),
	('SELECT label, count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k LEFT JOIN lj_sparse s ON s.val = d.x AND s.big = f.big GROUP BY 1');
-- semi joins and anti joins, NULLs on either side
INSERT INTO lj_queries (q) VALUES
	('SELECT sm, count(*), sum(v) FROM lj_fact WHERE k IN (SELECT k FROM lj_dim WHERE active) GROUP BY sm'),
	('SELECT count(*), sum(v) FROM lj_fact WHERE big IN (SELECT big FROM lj_sparse WHERE val < 4)'),
	('SELECT sm, count(*) FROM lj_fact f WHERE EXISTS (SELECT FROM lj_many m WHERE m.k = f.k AND m.val > 1) GROUP BY sm'),
	('SELECT sm, count(*) FROM lj_fact f WHERE EXISTS (SELECT FROM lj_many m WHERE m.k = f.k AND m.val < f.v) GROUP BY sm'),
	('SELECT sm, count(*) FROM lj_fact f WHERE NOT EXISTS (SELECT FROM lj_many m WHERE m.k = f.k) GROUP BY sm'),
	('SELECT count(*), count(k) FROM lj_fact f WHERE NOT EXISTS (SELECT FROM lj_dim d WHERE d.k = f.k AND d.active AND d.x <> f.v)'),
	('SELECT count(*), sum(v) FROM lj_fact WHERE k NOT IN (SELECT k FROM lj_dim WHERE active)'),
	('SELECT count(*), sum(v) FROM lj_fact WHERE k NOT IN (SELECT k FROM lj_many)'),
	('SELECT count(*), sum(v) FROM lj_fact WHERE k NOT IN (SELECT k FROM lj_many WHERE k IS NOT NULL)'),
	('SELECT count(*), sum(v) FROM lj_fact WHERE k NOT IN (SELECT k FROM lj_empty)'),
	('SELECT count(*), sum(v) FROM lj_fact WHERE (sm, t) IN (SELECT a, b FROM lj_two WHERE c % 2 = 0)'),
	('SELECT count(*) FROM lj_fact WHERE (sm, t) NOT IN (SELECT a, b FROM lj_two WHERE c % 2 = 0)'),
	('SELECT h, count(*) FROM lj_fact f WHERE EXISTS (SELECT FROM lj_empty e WHERE e.k = f.k) OR v > 40 GROUP BY h'),
	('SELECT count(*) FROM lj_fact f WHERE k IN (SELECT k FROM lj_dim) AND big IN (SELECT big FROM lj_sparse) AND NOT EXISTS (SELECT FROM lj_text t WHERE t.t = f.t)'),
	('SELECT grp, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.r IN (SELECT r FROM lj_region WHERE cont = 1) GROUP BY grp'),
	('SELECT count(*) FROM lj_fact f WHERE f.sm = ANY (ARRAY(SELECT a FROM lj_two WHERE c > 2000)) AND f.k = (SELECT max(k) FROM lj_dim WHERE active)');
-- several keys, joins that multiply rows, conditions beyond equality
INSERT INTO lj_queries (q) VALUES
	('SELECT a, count(*), sum(t.c), sum(v) FROM lj_fact f JOIN lj_two t ON t.a = f.sm AND t.b = f.t GROUP BY a'),
	('SELECT t.c % 10 AS e, count(*) FROM lj_fact f LEFT JOIN lj_two t ON t.a = f.sm AND t.b = f.t AND t.c > f.v * 50 GROUP BY 1'),
	('SELECT m.name, count(*), sum(v), avg(m.val), min(v), max(w), bool_and(h), count(DISTINCT v) FROM lj_fact f JOIN lj_many m ON m.k = f.k GROUP BY m.name'),
	('SELECT count(*), sum(v), sum(val), sum(v * val), stddev_pop(v) FROM lj_fact f JOIN lj_many m ON m.k = f.k'),
	('SELECT f.sm, count(*), count(m.k), sum(v) FROM lj_fact f LEFT JOIN lj_many m ON m.k = f.k GROUP BY f.sm'),
	('SELECT grp, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND d.x < f.v GROUP BY grp'),
	('SELECT grp, count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k AND (d.active OR f.h) AND d.n + f.w > 20 GROUP BY grp'),
	('SELECT r.rname, count(*) FROM lj_fact f JOIN lj_region r ON f.sm BETWEEN r.r AND r.r + 1 GROUP BY r.rname'),
	('SELECT cname, count(*), sum(v) FROM lj_fact f CROSS JOIN lj_cont GROUP BY cname'),
	('SELECT a.h, count(*), sum(b.v) FROM lj_fact a JOIN lj_fact b ON b.i = a.i + 1 GROUP BY a.h'),
	('SELECT name, sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k % 1000 + 1 AND d.r = f.sm % 12 GROUP BY name'),
	('SELECT count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND d.k = f.sm');
-- types of keys: other types on either side, equal values that look different, the limits of integers
INSERT INTO lj_queries (q) VALUES
	('SELECT d.name, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.sm GROUP BY d.name'),
	('SELECT s.label, count(*), min(f.big), max(s.big) FROM lj_fact f JOIN lj_sparse s ON s.big = f.big GROUP BY s.label'),
	('SELECT label, count(*) FROM lj_fact f JOIN lj_sparse s ON s.big = f.k GROUP BY label'),
	('SELECT s.s, count(*) FROM lj_fact f LEFT JOIN lj_sparse p ON p.big = f.big LEFT JOIN lj_num s ON s.n = p.val GROUP BY s.s'),
	('SELECT s.n, s.s, count(*), count(DISTINCT f.n), sum(v) FROM lj_fact f JOIN lj_num s ON s.n = f.n GROUP BY s.n, s.s'),
	('SELECT trim_scale(f.n) AS e, count(*), max(s) FROM lj_fact f LEFT JOIN lj_num s ON s.n = f.n GROUP BY 1'),
	('SELECT s.s, count(*) FROM lj_fact f JOIN lj_num s ON s.n = f.sm GROUP BY s.s'),
	('SELECT l.f, l.s, count(*), sum(v) FROM lj_fact f JOIN lj_float l ON l.f = f.f GROUP BY l.f, l.s'),
	('SELECT l.s, count(*), count(l.f) FROM lj_fact f LEFT JOIN lj_float l ON l.f = f.sm GROUP BY l.s'),
	('SELECT l.s, count(*) FROM lj_fact f JOIN lj_float l ON l.f = f.n GROUP BY l.s'),
	('SELECT l.t, l.s, count(*) FROM lj_fact f JOIN lj_text l ON l.t = f.t GROUP BY l.t, l.s'),
	('SELECT l.s, count(*) FROM lj_fact f LEFT JOIN lj_text l ON l.t = f.t || '' '' GROUP BY l.s'),
	('SELECT l.c, l.s, count(*), count(DISTINCT f.c) FROM lj_fact f JOIN lj_char l ON l.c = f.c GROUP BY l.c, l.s'),
	('SELECT l.s, count(*) FROM lj_fact f JOIN lj_text l ON l.t = f.c GROUP BY l.s'),
	('SELECT month, count(*) FROM lj_fact f LEFT JOIN lj_days t ON t.ts = f.d GROUP BY month'),
	('SELECT x.b, count(*) FROM lj_fact f JOIN (VALUES (true, ''yes''), (false, ''no'')) x(h, b) ON x.h = f.h GROUP BY x.b'),
	('SELECT r.rname, count(*) FROM lj_fact f JOIN lj_region r ON (r.r, r.cont) = (f.sm, f.i % 4) GROUP BY r.rname');
-- rows as values, system columns, volatile functions that do not change the answer, LATERAL, subqueries
INSERT INTO lj_queries (q) VALUES
	('SELECT x, count(*) FROM lj_fact f JOIN lj_region x ON x.r = f.sm WHERE f.v > 45 GROUP BY x'),
	('SELECT count(x), count(x.*), count(*), sum((x.*).cont) FROM lj_fact f LEFT JOIN lj_region x ON x.r = f.sm'),
	('SELECT max(length((d.*)::text)) AS e, count(y) FROM lj_fact y LEFT JOIN lj_dim d ON d.k = y.k AND d.active'),
	('SELECT d.tableoid::regclass::text AS e, d.ctid IS NULL AS m, count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k GROUP BY 1, 2'),
	('SELECT count(DISTINCT d.ctid), min(f.ctid), max(d.ctid) FROM lj_fact f JOIN lj_dim d ON d.k = f.k'),
	('SELECT grp, count(*) FROM lj_fact f JOIN (SELECT * FROM lj_dim WHERE random() >= 0) d ON d.k = f.k GROUP BY grp'),
	('SELECT grp, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND random() >= 0 WHERE f.v + random() * 0 > 3 GROUP BY grp'),
	('SELECT grp, count(*), sum(l.e) FROM lj_fact f JOIN lj_dim d ON d.k = f.k, LATERAL (SELECT d.x + f.v AS e) l GROUP BY grp'),
	('SELECT d.k, l.c, l.s FROM lj_dim d, LATERAL (SELECT count(*) AS c, sum(r.cont) AS s FROM lj_fact f JOIN lj_region r ON r.r = f.sm AND r.r <> d.r WHERE f.k = d.k) l WHERE d.k < 9'),
	('SELECT d.k, (SELECT sum(f.v) FROM lj_fact f JOIN lj_sparse s ON s.big = f.big AND s.val = d.k % 11 WHERE f.sm = d.r) AS e FROM lj_dim d WHERE d.k BETWEEN 70 AND 82'),
	('SELECT d.k, ARRAY(SELECT m.name || count(*) FROM lj_fact f JOIN lj_many m ON m.k = f.sm WHERE m.val <> d.k GROUP BY m.name ORDER BY 1) AS e FROM lj_dim d WHERE d.k < 4'),
	('SELECT grp, sum(v + (SELECT max(r.cont) FROM lj_region r WHERE r.r = d.r)) AS e FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.i < 3000 GROUP BY grp'),
	('WITH s AS MATERIALIZED (SELECT k, name FROM lj_dim WHERE active) SELECT s.name, count(*) FROM lj_fact f JOIN s ON s.k = f.k GROUP BY s.name'),
	('SELECT name, count(*) FROM lj_fact f JOIN (SELECT k, name FROM lj_dim WHERE k < 100 UNION ALL SELECT k + 100, name FROM lj_dim WHERE k <= 50) u ON u.k = f.k GROUP BY name'),
	('SELECT name, count(*) FROM lj_fact f JOIN (SELECT * FROM lj_dim ORDER BY x DESC LIMIT 20) u ON u.k = f.k GROUP BY name');
-- errors: of rows that join, of rows that do not, of conditions
INSERT INTO lj_queries (q) VALUES
	('SELECT sum(100 / d.x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k'),
	('SELECT 100 / d.x AS e, count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY 1'),
	('SELECT max(100 / d.x), count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k'),
	('SELECT sum(1000 / (d.x + 1)) FROM lj_fact f JOIN lj_dim d ON d.k = f.k'),
	('SELECT sum(f.v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND 100 / (d.x - f.v) > 0'),
	('SELECT sum(f.v), count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE 100 / (f.v + 100000) = 0 AND 100 / (d.x + 1000) < 5'),
	('SELECT sum(d.x::int2 * 30000::int2) FROM lj_fact f JOIN lj_dim d ON d.k = f.k'),
	('SELECT sum((d.x + 32600)::int2) FROM lj_fact f JOIN lj_dim d ON d.k = f.k'),
	('SELECT e.name, 1 / count(f.i) AS e FROM lj_fact f JOIN lj_empty e ON e.k = f.k GROUP BY e.name'),
	('SELECT sum(f.v) FROM lj_fact f JOIN (SELECT k, 100 / x AS y FROM lj_dim OFFSET 0) d ON d.k = f.k'),
	('SELECT sum(f.v + y) FROM lj_fact f JOIN (SELECT k, 100 / x AS y FROM lj_dim OFFSET 0) d ON d.k = f.k');

CREATE TABLE lj_answers AS SELECT id, q, pg_temp.core_answer(q) AS core FROM lj_queries;
SET gpuagg.require = :require;
SELECT id, pg_temp.compared(core, pg_temp.answer(q)), q FROM lj_answers ORDER BY id;
-- the same from cached columns; a third of them with small batches and little memory, another by tuples, another in parallel, without workers
CREATE VIEW lj_differing AS SELECT id, pg_temp.compared(core, pg_temp.answer(q)) AS how FROM lj_answers;
SET gpuagg.cache = eager;
SELECT * FROM lj_differing WHERE how LIKE 'DIFF%';
SET gpuagg.batch_rows = 64;
SET work_mem = '64kB';
SELECT * FROM lj_differing WHERE how LIKE 'DIFF%' AND id % 3 = 0;
RESET gpuagg.batch_rows;
RESET work_mem;
RESET gpuagg.cache;
SET gpuagg.feed = 'tuples';
SELECT * FROM lj_differing WHERE how LIKE 'DIFF%' AND id % 3 = 1;
RESET gpuagg.feed;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT * FROM lj_differing WHERE how LIKE 'DIFF%' AND id % 3 = 2;
SET max_parallel_workers = 0;
SELECT * FROM lj_differing WHERE how LIKE 'DIFF%' AND id % 3 = 0;
RESET max_parallel_workers;
SET max_parallel_workers_per_gather = 0;
-- joins of other kinds
SET enable_hashjoin = off;
SELECT * FROM lj_differing WHERE how LIKE 'DIFF%' AND id % 3 = 1;
RESET enable_hashjoin;
-- a collation under which different texts are equal, if there is ICU: otherwise the same rows are compared under another one
SELECT count(*) > 0 AS icu FROM pg_collation WHERE collprovider = 'i' \gset
\if :icu
CREATE COLLATION lj_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
\else
CREATE COLLATION lj_case FROM "C";
\endif
CREATE TABLE lj_cased (t text COLLATE lj_case PRIMARY KEY, s int);
INSERT INTO lj_cased SELECT CASE i % 2 WHEN 0 THEN 'T' ELSE 't' END || i, i % 4 FROM generate_series(0, 40) i;
SELECT pg_temp.compared(q) !~ 'DIFF|error' AS same, q FROM unnest(ARRAY[
	'SELECT l.t, l.s, count(*) FROM lj_fact f JOIN lj_cased l ON l.t = f.t GROUP BY l.t, l.s',
	'SELECT l.s, count(*) FROM lj_fact f LEFT JOIN lj_cased l ON l.t = upper(f.t) GROUP BY l.s',
	'SELECT l.s, count(*) FROM lj_fact f JOIN lj_cased l ON l.t = f.t COLLATE "C" GROUP BY l.s',
	'SELECT l.s, count(*) FROM lj_cased l JOIN lj_text f ON l.t = f.t COLLATE lj_case GROUP BY l.s',
	'SELECT count(*) FROM lj_fact f WHERE f.t IN (SELECT l.t FROM lj_cased l WHERE s > 1)',
	'SELECT count(*) FROM lj_fact f WHERE NOT EXISTS (SELECT FROM lj_cased l WHERE l.t = f.t AND s > 1)']) q;

-- what says that keys are unique, and what does not: constraints that are checked later, partial indexes, indexes on expressions
CREATE TABLE lj_later (k int UNIQUE DEFERRABLE INITIALLY DEFERRED, name text);
INSERT INTO lj_later SELECT k, 'l' || k % 3 FROM generate_series(1, 50) k;
CREATE TABLE lj_partly (k int, name text, active bool);
CREATE UNIQUE INDEX ON lj_partly (k) WHERE active;
INSERT INTO lj_partly SELECT k % 60, 'p' || k % 7, k <= 60 FROM generate_series(1, 140) k;
CREATE TABLE lj_lower (t text, s int);
CREATE UNIQUE INDEX ON lj_lower (lower(t));
INSERT INTO lj_lower SELECT CASE i % 2 WHEN 0 THEN 'T' ELSE 't' END || i, i % 4 FROM generate_series(0, 40) i;
ANALYZE lj_later, lj_partly, lj_lower;
BEGIN;
INSERT INTO lj_later SELECT k, 'again' FROM generate_series(1, 9) k;
SELECT l.name, count(*), sum(v) FROM lj_fact f JOIN lj_later l ON l.k = f.k GROUP BY l.name ORDER BY 1;
SELECT count(*) FROM lj_fact f WHERE f.k IN (SELECT k FROM lj_later WHERE name = 'again');
ROLLBACK;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT p.name, count(*), sum(v) FROM lj_fact f JOIN lj_partly p ON p.k = f.k GROUP BY p.name',
	'SELECT p.name, count(*), sum(v) FROM lj_fact f JOIN lj_partly p ON p.k = f.k AND p.active GROUP BY p.name',
	'SELECT p.name, count(*), sum(v) FROM lj_fact f LEFT JOIN lj_partly p ON p.k = f.k AND f.h GROUP BY p.name',
	'SELECT l.s, count(*), sum(v) FROM lj_fact f JOIN lj_lower l ON lower(l.t) = f.t GROUP BY l.s',
	'SELECT l.s, count(*), sum(v) FROM lj_fact f LEFT JOIN lj_lower l ON lower(l.t) = lower(f.t) GROUP BY l.s',
	'SELECT l.s, count(*), sum(v) FROM lj_fact f JOIN lj_lower l ON l.t = f.t GROUP BY l.s',
	'SELECT t.c % 7 AS e, count(*) FROM lj_fact f JOIN lj_two t ON t.a = f.sm GROUP BY 1',
	'SELECT t.c % 7 AS e, count(*) FROM lj_fact f JOIN lj_two t ON t.a = f.sm AND t.b = ''t4'' GROUP BY 1',
	'SELECT count(*) FROM lj_fact f JOIN lj_dim d ON d.k IS NOT DISTINCT FROM f.k',
	'SELECT s.label, count(*) FROM lj_fact f LEFT JOIN lj_sparse s ON s.big = f.big OR (s.big IS NULL AND f.big IS NULL AND s.val = 1) GROUP BY s.label']) q;

-- keys of other types, dimensions that are partitions, children, values and functions
CREATE TYPE lj_mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN lj_small AS int CHECK (VALUE < 1000);
CREATE TABLE lj_moods (m lj_mood PRIMARY KEY, u uuid UNIQUE, s lj_small, b bytea, a int[], name text);
INSERT INTO lj_moods SELECT m, ('00000000-0000-0000-0000-00000000000' || n)::uuid, n, decode('0' || n, 'hex'), ARRAY[n::int], 'name' || n
	FROM unnest(enum_range(NULL::lj_mood)) WITH ORDINALITY x(m, n);
CREATE TABLE lj_areas (k int, name text, PRIMARY KEY (k)) PARTITION BY HASH (k);
CREATE TABLE lj_areas0 PARTITION OF lj_areas FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE lj_areas1 PARTITION OF lj_areas FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO lj_areas SELECT k, 'a' || k % 6 FROM generate_series(1, 150) k;
CREATE TABLE lj_base (k int PRIMARY KEY, name text);
CREATE TABLE lj_child (PRIMARY KEY (k)) INHERITS (lj_base);
INSERT INTO lj_base SELECT k, 'b' || k % 4 FROM generate_series(1, 60) k;
INSERT INTO lj_child SELECT k, 'c' || k % 4 FROM generate_series(50, 90) k;
ANALYZE lj_moods, lj_areas, lj_base, lj_child;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT m.name, count(*) FROM lj_fact f JOIN lj_moods m ON m.m = (CASE f.sm % 4 WHEN 0 THEN ''sad'' WHEN 1 THEN ''happy'' END)::lj_mood GROUP BY m.name',
	'SELECT m.name, count(*) FROM lj_fact f JOIN lj_moods m ON m.u = (''00000000-0000-0000-0000-00000000000'' || abs(f.sm::int) % 6)::uuid GROUP BY m.name',
	'SELECT m.name, count(*) FROM lj_fact f LEFT JOIN lj_moods m ON m.s = f.sm GROUP BY m.name',
	'SELECT m.name, count(*) FROM lj_fact f JOIN lj_moods m ON m.b = decode(''0'' || abs(f.sm::int) % 6, ''hex'') AND m.a = ARRAY[abs(f.sm::int) % 6] GROUP BY m.name',
	'SELECT a.name, count(*), sum(v) FROM lj_fact f LEFT JOIN lj_areas a ON a.k = f.k GROUP BY a.name',
	'SELECT a.name, count(*), sum(v) FROM lj_parts f JOIN lj_areas a ON a.k = f.k GROUP BY a.name',
	'SELECT b.name, count(*), sum(v) FROM lj_fact f JOIN lj_base b ON b.k = f.k GROUP BY b.name',
	'SELECT b.name, count(*), sum(v) FROM lj_fact f JOIN ONLY lj_base b ON b.k = f.k GROUP BY b.name',
	'SELECT g % 5 AS e, count(*) FROM lj_fact f JOIN generate_series(1, 100, 3) g ON g = f.k GROUP BY 1',
	'SELECT x.k, x.s, count(*) FROM lj_fact f JOIN (VALUES (1, ''a''), (2, ''b''), (NULL, ''c''), (1, ''d'')) x(k, s) ON x.k = f.k GROUP BY 1, 2',
	'SELECT place, count(*) FROM lj_fact f JOIN unnest(ARRAY[3, 5, 5, NULL]) WITH ORDINALITY u(k, place) ON u.k = f.k GROUP BY place']) q;

-- long values, dropped columns, rows that were updated; the table's own indexes
CREATE TABLE lj_long (gone int, k int PRIMARY KEY, name text);
INSERT INTO lj_long SELECT 1, k, repeat(md5((k % 5)::text), 200) FROM generate_series(1, 100) k;
ALTER TABLE lj_long DROP COLUMN gone, ADD COLUMN late int DEFAULT 7;
UPDATE lj_long SET late = k, name = repeat(md5('x'), 300) WHERE k % 10 = 0;
CREATE INDEX lj_fact_i ON lj_fact (i);
CREATE INDEX lj_fact_k ON lj_fact (k);
ANALYZE lj_long, lj_fact;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT md5(l.name) AS m, length(l.name) AS n, late % 3 AS e, count(*), sum(v) FROM lj_fact f JOIN lj_long l ON l.k = f.k GROUP BY l.name, 3',
	'SELECT count(*), sum(length(l.name)) FROM lj_fact f LEFT JOIN lj_long l ON l.k = f.k AND l.name > ''6''',
	'SELECT d.grp, count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.i BETWEEN 3000 AND 3900 GROUP BY d.grp',
	'SELECT d.grp, count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.k = 5 GROUP BY d.grp',
	'SELECT d.grp, count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.k IN (5, 6, 7) AND f.k > 5 GROUP BY d.grp']) q;

-- functions of users: volatile ones are called as often as by core, errors come through, a function may run such a query itself
CREATE SEQUENCE lj_numbers;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT count(*), sum(v) FROM lj_fact f JOIN (SELECT k FROM lj_dim WHERE nextval('lj_numbers') > 0 AND active) d ON d.k = f.k;
SELECT last_value, setval('lj_numbers', 1, false) FROM lj_numbers;
SELECT count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND nextval('lj_numbers') > 0;
SELECT last_value, setval('lj_numbers', 1, false) FROM lj_numbers;
SELECT count(*), sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.v > 40 AND nextval('lj_numbers') > 0;
SELECT last_value, setval('lj_numbers', 1, false) FROM lj_numbers;
SELECT count(*), sum(n) FROM (SELECT d.grp, count(*) AS n, max(nextval('lj_numbers')) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.grp) x;
SELECT last_value, setval('lj_numbers', 1, false) FROM lj_numbers;
RESET enable_nestloop;
RESET enable_mergejoin;
CREATE FUNCTION lj_refuse(k int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	IF k = 150 THEN RAISE EXCEPTION 'key % is refused', k; END IF; RETURN k; END $$;
SELECT sum(v) FROM lj_fact f JOIN (SELECT k FROM lj_dim WHERE lj_refuse(k) > 0) d ON d.k = f.k;
SELECT d.grp, sum(lj_refuse(d.k)) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.grp;
SELECT sum(v) FROM lj_fact f JOIN (SELECT k FROM lj_dim WHERE k < 150 AND lj_refuse(k) > 0) d ON d.k = f.k;
CREATE FUNCTION lj_inner(g text) RETURNS bigint LANGUAGE sql STABLE AS $$
	SELECT count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.grp = g AND f.i < 2000 $$;
SELECT r.rname, count(*), max(lj_inner('g' || r.cont)) FROM lj_fact f JOIN lj_region r ON r.r = f.sm WHERE f.i % 51 = 0 AND lj_inner('g' || r.r) > 0 GROUP BY r.rname ORDER BY 1;

-- rescans: the parameter is in the dimension's filter, in the fact table's, in the join's condition, in none
SELECT p, (SELECT count(*) || '/' || sum(v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE abs(d.x) % 5 = p) AS e FROM generate_series(0, 5) p;
SELECT p, (SELECT count(*) || '/' || sum(d.x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.v % 5 = p AND d.active) AS e FROM generate_series(0, 5) p;
SELECT p, (SELECT count(*) || '/' || sum(d.x) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k AND d.x > f.v * p) AS e FROM generate_series(0, 2) p;
SELECT p, e FROM generate_series(1, 3) p, LATERAL (SELECT grp || p AS e FROM (SELECT grp, count(*) AS n FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY grp OFFSET 0) x WHERE n > p * 440) y ORDER BY 1, 2;
SELECT p, e FROM generate_series(1, 4) p LEFT JOIN LATERAL (SELECT count(*) AS e FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE d.k = p * 60 HAVING count(*) > 0) y ON true ORDER BY 1;

-- EXPLAIN ANALYZE counts the rows of each partition, and those that conditions of joins remove, if no GPU joins them
SET gpuagg.cache = off;
SET enable_nestloop = off;
CREATE FUNCTION pg_temp.lj_counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Append|Scan on|Join|Removed' THEN
			RETURN NEXT regexp_replace(line, '\(.*(rows=\d+).*', '\1');
		END IF;
	END LOOP;
END $$;
SELECT pg_temp.lj_counts('SELECT count(*), sum(x) FROM lj_parts f JOIN lj_dim d ON d.k = f.k WHERE f.i < 6000 AND f.v > 0');
SELECT pg_temp.lj_counts('SELECT count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND d.x > f.v');
SELECT pg_temp.lj_counts('SELECT count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k WHERE d.k IS NULL OR d.x > 30');
SET gpuagg.enabled = off;
SELECT l FROM pg_temp.lj_counts('SELECT count(*) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND d.x > f.v') l WHERE l ~ 'Join rows|Removed';
SELECT l FROM pg_temp.lj_counts('SELECT count(*) FROM lj_fact f LEFT JOIN lj_dim d ON d.k = f.k WHERE d.k IS NULL OR d.x > 30') l WHERE l ~ 'Join rows|Removed';
RESET gpuagg.enabled;
RESET enable_nestloop;
RESET gpuagg.cache;
-- conditions of the fact table over its system columns and whole rows
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT count(*), sum(x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.tableoid = ''lj_fact''::regclass',
	'SELECT count(*), sum(x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.ctid > ''(1,5)'' AND f.xmin::text <> ''0''',
	'SELECT count(*), sum(x) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f IS NOT NULL AND f::text LIKE ''%5%''',
	'SELECT count(*), sum(x) FROM lj_parts f JOIN lj_dim d ON d.k = f.k WHERE f.tableoid = ''lj_parts2''::regclass AND f IS NOT NULL']) q;
-- rescans that change parameters of the aggregates run the inner plans again
SELECT pg_temp.compared('SELECT p, (SELECT count(*) || ''/'' || sum(v + p) FROM lj_fact f JOIN (SELECT DISTINCT k FROM lj_dim WHERE k > 3 OFFSET 0) d ON d.k = f.k) AS e
	FROM generate_series(0, 3) p');
-- also if the executor runs the joins from then on
SELECT p, set_config('gpuagg.feed', CASE WHEN p % 2 = 1 THEN 'tuples' ELSE 'auto' END, false),
	(SELECT count(*) || '/' || sum(v + p) FROM lj_fact f JOIN (SELECT DISTINCT k FROM lj_dim WHERE k > 3 OFFSET 0) d ON d.k = f.k) AS e FROM generate_series(0, 3) p;
RESET gpuagg.feed;
-- and free the lookups
BEGIN;
DECLARE lj_cursor CURSOR FOR SELECT p, (SELECT sum(v + p) FROM lj_fact f JOIN lj_dim d ON d.k = f.k WHERE f.i < 10) AS e FROM generate_series(0, 100) p;
MOVE 50 FROM lj_cursor;
SELECT count(*) < 5 AS few FROM pg_backend_memory_contexts WHERE name = 'gpuagg lookup';
ROLLBACK;
-- a lookup that is too large only after a rescan
SET work_mem = '64kB';
SELECT pg_temp.compared('SELECT p, (SELECT count(*) || ''/'' || sum(x) FROM ' || t || ' f JOIN (SELECT k, k % 9 AS x FROM generate_series(1, p) k GROUP BY k) d ON d.k = f.k) AS e
	FROM unnest(ARRAY[10, 50000, 20, 5]) p') FROM unnest(ARRAY['lj_fact', 'lj_parts']) t;
RESET work_mem;
-- equality that is NULL, and equality of any type
CREATE TYPE lj_pair AS (a int, b int);
CREATE FUNCTION lj_pair_eq(lj_pair, lj_pair) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT CASE WHEN $1.a <> 3 THEN $1.a = $2.a END';
CREATE FUNCTION lj_pair_hash(lj_pair) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT 1';
CREATE OPERATOR === (LEFTARG = lj_pair, RIGHTARG = lj_pair, FUNCTION = lj_pair_eq, HASHES, COMMUTATOR = ===);
CREATE OPERATOR CLASS lj_pair_ops DEFAULT FOR TYPE lj_pair USING hash AS OPERATOR 1 ===, FUNCTION 1 lj_pair_hash(lj_pair);
CREATE FUNCTION lj_enum_eq(anyenum, anyenum) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1::text = $2::text; END';
CREATE OPERATOR === (LEFTARG = anyenum, RIGHTARG = anyenum, FUNCTION = lj_enum_eq, HASHES, COMMUTATOR = ===);
CREATE OPERATOR CLASS lj_enum_ops FOR TYPE anyenum USING hash AS OPERATOR 1 ===, FUNCTION 1 hashenum(anyenum);
CREATE TABLE lj_pairs AS SELECT (k, 0)::lj_pair AS p, (ARRAY['sad', 'ok']::lj_mood[])[1 + k % 2] AS m FROM generate_series(1, 5) k;
CREATE TABLE lj_paired AS SELECT (i % 7, i)::lj_pair AS p, (ARRAY['sad', 'ok', 'happy']::lj_mood[])[1 + i % 3] AS m FROM generate_series(1, 1000) i;
ANALYZE lj_pairs, lj_paired;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT count(*), sum((p).b) FROM lj_paired f WHERE NOT EXISTS (SELECT FROM lj_pairs d WHERE f.p === d.p)',
	'SELECT count(*), sum((p).b) FROM lj_paired f WHERE NOT EXISTS (SELECT FROM lj_pairs d WHERE f.m === d.m)']) q;
DROP TABLE lj_pairs, lj_paired;
DROP FUNCTION lj_pair_hash, lj_pair_eq, lj_enum_eq CASCADE;
DROP OPERATOR FAMILY lj_enum_ops USING hash;
DROP TYPE lj_pair;
-- many equal keys of types that cannot be compared with each other: the time does not grow with their square
CREATE TABLE lj_same_keys AS SELECT 1.5::float8 AS f FROM generate_series(1, 150000);
CREATE TABLE lj_singles AS SELECT (i % 4 * 0.5)::float4 AS f FROM generate_series(1, 200000) i;
ANALYZE lj_same_keys, lj_singles;
SET work_mem = '64MB';
SET statement_timeout = '15s';
SELECT count(*) FROM lj_singles s WHERE NOT EXISTS (SELECT FROM lj_same_keys k WHERE k.f = s.f);
RESET statement_timeout;
RESET work_mem;
DROP TABLE lj_same_keys, lj_singles;
-- a lookup is too large after the joins of its inner side have run a plan that is no scan: they are executed again
SET work_mem = '64kB';
CREATE TABLE lj_grown (k int PRIMARY KEY, r int, name text) WITH (autovacuum_enabled = off);
INSERT INTO lj_grown SELECT k, k % 10, 'a' || k % 5 FROM generate_series(0, 20) k;
ANALYZE lj_grown;
INSERT INTO lj_grown SELECT k, k % 10, 'a' || k % 5 FROM generate_series(21, 4999) k;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET from_collapse_limit = 1;
SELECT pg_temp.compared('SELECT g.name, count(*) FROM lj_fact f JOIN (SELECT * FROM lj_grown g WHERE EXISTS (SELECT FROM generate_series(0, 9) s WHERE s = g.r)) g
	ON g.k = f.k GROUP BY g.name');
RESET from_collapse_limit;
-- an inner plan that calls volatile functions runs once, also if its rows do not fit into a lookup
CREATE SEQUENCE lj_once;
CREATE TABLE lj_zeros AS SELECT unnest(ARRAY['0', '-0', '0.25']::float4[]) AS f;
ANALYZE lj_zeros;
CREATE FUNCTION lj_counts(k int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('lj_once'); END $$;
CREATE FUNCTION lj_counted_max(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN greatest(a, b, nextval('lj_once')::int); END $$;
CREATE AGGREGATE lj_volatile_max(int) (SFUNC = lj_counted_max, STYPE = int);
SELECT count(*), min(nth), max(nth) FROM lj_fact f JOIN (SELECT k, nextval('lj_once') AS nth FROM lj_grown OFFSET 0) g ON g.k = f.k;
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
SELECT count(*), min(nth), max(nth) FROM lj_fact f LEFT JOIN (SELECT k, nth FROM lj_grown, lj_counts(r) nth WHERE nth % 2 = 0) g ON g.k = f.k;
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
SELECT count(*) FROM lj_fact f JOIN (SELECT k, name, nextval('lj_once') > 0 AS e FROM lj_grown OFFSET 0) g ON g.k = f.k AND g.e;
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
SELECT count(*), min(nth), max(nth) FROM lj_fact f JOIN (SELECT k, lj_volatile_max(r) AS nth FROM lj_grown GROUP BY k) g ON g.k = f.k;
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
SELECT count(*), min(nth), max(nth) FROM lj_fact f JOIN (SELECT k, (SELECT nextval('lj_once') + k * 0) AS nth FROM lj_grown OFFSET 0) g ON g.k = f.k;
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
-- if its keys cannot be compared with each other
SELECT count(*), min(nth), max(nth) FROM lj_fact f JOIN (SELECT f, nextval('lj_once') AS nth FROM lj_zeros OFFSET 0) z ON z.f = f.f;
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
-- and if several rows have equal keys above a join whose condition says which partners count
SELECT count(*), min(nth), max(nth) FROM lj_fact f LEFT JOIN lj_many m ON m.k = f.sm AND m.val <> f.v % 3
	JOIN (SELECT k, nextval('lj_once') AS nth FROM lj_many OFFSET 0) x ON x.k = coalesce(m.val, f.k);
SELECT last_value, setval('lj_once', 1, false) FROM lj_once;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET work_mem;
DROP TABLE lj_grown, lj_zeros;
-- core runs an inner plan only if the join has an outer row: the plan raises errors, and has effects, only then
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT count(*) FROM lj_fact f JOIN (SELECT * FROM lj_dim WHERE 1 / x > -5 OFFSET 0) d ON d.k = f.k WHERE f.v = -1000;
SELECT count(*) FROM lj_fact f JOIN (SELECT * FROM lj_dim WHERE 1 / x > -5 OFFSET 0) d ON d.k = f.k WHERE f.v = -1;
SELECT count(*) FROM lj_fact f LEFT JOIN (SELECT k, 1 / x AS e FROM lj_dim) d ON d.k = f.k WHERE f.v = -1000 AND e > 0 OR f.v = 1000;
SELECT count(*), sum(nth) FROM lj_fact f JOIN (SELECT k, nextval('lj_once') AS nth FROM lj_dim OFFSET 0) d ON d.k = f.k WHERE f.v = -1000;
SELECT last_value, is_called FROM lj_once;
-- ... unless that costs less than to look for an outer row, as where the outer side is a join that begins with a larger table; then
-- errors come, or an empty side ends the join, in core's order
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT count(*) FROM lj_fact f JOIN lj_dim g ON g.k = f.k JOIN (SELECT * FROM lj_region WHERE 1 / r > -5 OFFSET 0) r ON r.r = g.r + f.sm - f.sm WHERE f.v = -1000',
	'SELECT count(*) FROM lj_fact f JOIN lj_dim g ON g.k = f.k WHERE g.r + f.sm - f.sm IN (SELECT r FROM lj_region WHERE 1 / r > -5 OFFSET 0) AND f.v = -1000',
	'SELECT count(*) FROM lj_fact f JOIN lj_dim g ON g.k = f.k LEFT JOIN (SELECT r, 1 / r AS e FROM lj_region OFFSET 0) r ON r.r = g.r + f.sm - f.sm WHERE f.v = -1000 AND (e IS NULL OR e > 0)',
	'SELECT count(*) FROM lj_fact f JOIN (SELECT k, r FROM lj_dim WHERE 1 / x > -5 OFFSET 0) g ON g.k = f.k JOIN (SELECT r FROM lj_region WHERE r < 0 OFFSET 0) r ON r.r = g.r + f.sm - f.sm',
	'SELECT count(*) FROM lj_fact f JOIN (SELECT k, r FROM lj_dim WHERE 1 / x > -5 OFFSET 0) g ON g.k = f.k JOIN (SELECT r FROM lj_region WHERE rname::int > 0 OFFSET 0) r ON r.r = g.r + f.sm - f.sm',
	'SELECT count(*) FROM lj_fact f JOIN (SELECT * FROM lj_region WHERE 1 / r > -5 OFFSET 0) r ON r.r = f.sm WHERE f.v = -1000']) q;
-- the outer side is a join, or a table with partitions, or read by participants
SELECT count(*) FROM lj_fact f JOIN lj_region r ON r.r = f.sm AND r.cont > 8 JOIN (SELECT * FROM lj_dim WHERE 1 / x > -5 OFFSET 0) d ON d.k = f.k;
SELECT p, (SELECT count(*) || '/' || sum(e) FROM lj_fact f JOIN lj_region r ON r.r = f.sm JOIN (SELECT k, 100 / (x + 500 - p) AS e FROM lj_dim OFFSET 0) d
	ON d.k = f.k WHERE f.v < p) AS e FROM generate_series(-100, 100, 50) p;
SELECT count(*) FROM lj_parts f JOIN (SELECT * FROM lj_dim WHERE 1 / x > -5 OFFSET 0) d ON d.k = f.k WHERE f.v = -1000;
SELECT count(*), sum(e) FROM lj_parts f JOIN (SELECT k, 100 / (x - 1000) AS e FROM lj_dim OFFSET 0) d ON d.k = f.k WHERE f.v = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT count(*) FROM lj_fact f JOIN (SELECT * FROM lj_dim WHERE 1 / x > -5 OFFSET 0) d ON d.k = f.k WHERE f.v = -1000;
SELECT count(*), sum(e) FROM lj_fact f JOIN (SELECT k, 100 / (x - 1000) AS e FROM lj_dim OFFSET 0) d ON d.k = f.k WHERE f.v = 3;
SELECT count(*), sum(e), sum(cont) FROM lj_fact f JOIN lj_region r ON r.r = f.sm JOIN (SELECT k, 100 / (x - 1000) AS e FROM lj_dim OFFSET 0) d ON d.k = f.k;
SELECT count(*), sum(e) FROM lj_parts f JOIN (SELECT k, 100 / (x - 1000) AS e FROM lj_dim OFFSET 0) d ON d.k = f.k WHERE f.v = 3;
-- a function that is parallel restricted, in a dimension
CREATE FUNCTION lj_restricted(k int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$ BEGIN RETURN k % 7; END $$;
SELECT count(*), sum(e) FROM lj_fact f JOIN (SELECT k, lj_restricted(x) AS e FROM lj_dim OFFSET 0) d ON d.k = f.k;
SELECT e, count(*) FROM lj_fact f JOIN (SELECT k, x AS e FROM lj_dim WHERE lj_restricted(x) = 3) d ON d.k = f.k GROUP BY e ORDER BY e LIMIT 3;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
RESET enable_nestloop;
RESET enable_mergejoin;
-- keys of citext; of text in upper case where it is not installed
DO $$ BEGIN
	IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext') THEN
		CREATE EXTENSION IF NOT EXISTS citext;
		CREATE TABLE lj_folded AS SELECT t::citext AS t, v FROM lj_fact;
		CREATE TABLE lj_folds AS SELECT upper(t)::citext AS t, s FROM lj_text WHERE t = lower(t);
	ELSE
		CREATE TABLE lj_folded AS SELECT upper(t) AS t, v FROM lj_fact;
		CREATE TABLE lj_folds AS SELECT upper(t) AS t, s FROM lj_text WHERE t = lower(t);
	END IF;
END $$;
ANALYZE lj_folded, lj_folds;
SELECT pg_temp.compared(q), q FROM unnest(ARRAY[
	'SELECT l.s, count(*), sum(v) FROM lj_folded f JOIN lj_folds l ON l.t = f.t GROUP BY l.s',
	'SELECT count(*), sum(v) FROM lj_folded f WHERE NOT EXISTS (SELECT FROM lj_folds l WHERE l.t = f.t)']) q;
SELECT l.s, count(*), sum(v) FROM lj_folded f JOIN lj_folds l ON l.t = f.t GROUP BY l.s ORDER BY l.s;
DROP TABLE lj_folded, lj_folds;
DROP EXTENSION IF EXISTS citext;
DROP SEQUENCE lj_once CASCADE;
DROP FUNCTION lj_counts, lj_restricted, lj_counted_max CASCADE;
-- results of an expression are numbered as they appear: the inner side's first batches have fewer of them
CREATE TABLE lj_worded AS SELECT k FROM generate_series(1, 5000) k;
ALTER TABLE lj_worded ADD PRIMARY KEY (k);
ANALYZE lj_worded;
SET gpuagg.batch_rows = 1024;
SELECT pg_temp.compared('SELECT u, count(*) FROM lj_fact f LEFT JOIN (SELECT k, coalesce(to_char(k, ''FM9999''), '''') AS u FROM lj_worded) d ON d.k = f.i GROUP BY u');
RESET gpuagg.batch_rows;
DROP TABLE lj_worded;
-- a lookup that is too large only in some participants of a parallel plan: the leader's dimension has more rows, without partners
CREATE FUNCTION lj_leader_rows(leader int) RETURNS SETOF int LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 AS $$ BEGIN
	RETURN QUERY SELECT g FROM generate_series(1, 100) g;
	RETURN QUERY SELECT g + 1000000 FROM generate_series(1, 50000) g WHERE pg_backend_pid() = leader;
END $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET work_mem = '64kB';
SELECT pg_temp.compared(format('SELECT count(*), sum(v) FROM lj_fact f JOIN (SELECT k FROM lj_leader_rows(%s) k GROUP BY k) d ON d.k = f.k WHERE f.i < 7000', pg_backend_pid()));
-- a Gather in the inner plan, for joins that the executor runs
SELECT pg_temp.compared('SELECT p, (SELECT count(*) FROM lj_fact f JOIN (SELECT k FROM generate_series(1, p) k GROUP BY k UNION ALL SELECT -1) d ON d.k = f.k) AS e
	FROM unnest(ARRAY[1, 20000, 500]) p');
SET enable_seqscan = off;
SET enable_indexscan = off;
SELECT pg_temp.compared(format('SELECT count(*), sum(v) FROM lj_fact f JOIN (SELECT k FROM lj_leader_rows(%s) k GROUP BY k) d ON d.k = f.k WHERE f.i < 7000', pg_backend_pid()));
RESET enable_seqscan;
RESET enable_indexscan;
RESET work_mem;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
DROP FUNCTION lj_leader_rows;

-- prepared statements, with changes between executions
PREPARE lj_statement(int, text) AS SELECT d.grp, count(*), sum(f.v + $1) FROM lj_fact f JOIN lj_dim d ON d.k = f.k AND d.x > $1 WHERE d.name <> $2 GROUP BY d.grp ORDER BY 1;
SET plan_cache_mode = force_generic_plan;
EXECUTE lj_statement(110, 'd1');
EXECUTE lj_statement(NULL, 'd1');
BEGIN;
UPDATE lj_dim SET grp = 'changed' WHERE k > 190;
DELETE FROM lj_dim WHERE k = 195;
INSERT INTO lj_dim VALUES (210, 'new', 'new', 200, true, 1, 1);
EXECUTE lj_statement(110, 'd1');
SAVEPOINT s;
DELETE FROM lj_dim;
EXECUTE lj_statement(110, 'd1');
ROLLBACK TO s;
EXECUTE lj_statement(117, '');
ROLLBACK;
EXECUTE lj_statement(110, 'd1');
DEALLOCATE lj_statement;
RESET plan_cache_mode;
-- cursors see the rows of their start
BEGIN;
DECLARE lj_cursor CURSOR FOR SELECT d.grp, count(*), sum(f.v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.grp ORDER BY 1;
DELETE FROM lj_dim WHERE k % 2 = 0;
UPDATE lj_fact SET v = 0 WHERE i % 3 = 0;
FETCH 3 FROM lj_cursor;
INSERT INTO lj_dim SELECT k, 'more', 'more', 0, true, 0, 0 FROM generate_series(202, 230, 2) k;
FETCH ALL FROM lj_cursor;
SELECT d.grp, count(*), sum(f.v) FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.grp ORDER BY 1;
ROLLBACK;
BEGIN;
DECLARE lj_cursor SCROLL CURSOR WITH HOLD FOR SELECT r.rname, count(*) FROM lj_fact f JOIN lj_region r ON r.r = f.sm GROUP BY r.rname ORDER BY 1;
FETCH 1 FROM lj_cursor;
COMMIT;
FETCH BACKWARD 1 FROM lj_cursor;
FETCH 2 FROM lj_cursor;
CLOSE lj_cursor;
-- answers that go into tables
CREATE TABLE lj_made AS SELECT d.grp, count(*) AS n, sum(f.v) AS s FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.grp;
INSERT INTO lj_made SELECT m.grp || '+', count(*), sum(m.s) FROM lj_fact f JOIN lj_made m ON m.n - 800 = f.k GROUP BY 1;
UPDATE lj_made m SET s = x.s FROM (SELECT d.grp, max(d.x) AS s FROM lj_fact f JOIN lj_dim d ON d.k = f.k GROUP BY d.grp) x WHERE x.grp = m.grp;
SELECT * FROM lj_made ORDER BY grp;

-- row security and security barriers: a condition that may leak sees no hidden rows
CREATE ROLE lj_reader;
CREATE TABLE lj_secret AS SELECT k, 'd' || k % 10 AS name, k % 5 = 0 AS hidden FROM generate_series(1, 200) k;
ALTER TABLE lj_secret ADD PRIMARY KEY (k);
ALTER TABLE lj_secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY lj_policy ON lj_secret USING (NOT hidden);
CREATE TABLE lj_private AS SELECT i, k, v, i % 2 = 0 AS hidden FROM lj_fact WHERE i % 3 = 0;
ALTER TABLE lj_private ENABLE ROW LEVEL SECURITY;
CREATE POLICY lj_policy ON lj_private USING (NOT hidden);
CREATE VIEW lj_barrier WITH (security_barrier) AS SELECT k, name FROM lj_secret WHERE NOT hidden;
CREATE FUNCTION lj_looks(k int) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS $$ BEGIN
	IF k % 5 = 0 THEN RAISE EXCEPTION 'row % is hidden', k; END IF; RETURN true; END $$;
GRANT SELECT ON lj_fact, lj_dim, lj_secret, lj_private, lj_barrier, lj_region TO lj_reader;
ANALYZE lj_secret, lj_private;
SELECT count(*) FROM lj_fact f JOIN lj_secret s ON s.k = f.k;
SET ROLE lj_reader;
SELECT count(*), sum(f.v) FROM lj_fact f JOIN lj_secret s ON s.k = f.k;
SELECT s.name, count(*), sum(f.v) FROM lj_fact f JOIN lj_secret s ON s.k = f.k WHERE lj_looks(s.k) GROUP BY s.name ORDER BY 1;
SELECT s.name, count(*) FROM lj_fact f LEFT JOIN lj_secret s ON s.k = f.k AND lj_looks(s.k) GROUP BY s.name ORDER BY 1;
SELECT s.name, count(*) FROM lj_fact f JOIN lj_barrier s ON s.k = f.k WHERE lj_looks(s.k) GROUP BY s.name ORDER BY 1;
SELECT d.grp, count(*), sum(lj_looks(s.k)::int) FROM lj_private p JOIN lj_secret s ON s.k = p.k JOIN lj_dim d ON d.k = p.k GROUP BY d.grp ORDER BY 1;
SELECT count(*) FROM lj_fact f WHERE NOT EXISTS (SELECT FROM lj_secret s WHERE s.k = f.k);
SELECT count(*) FROM lj_fact f WHERE f.k IN (SELECT s.k FROM lj_secret s WHERE lj_looks(s.k));
SELECT count(*) FROM lj_fact f JOIN lj_areas a ON a.k = f.k;
RESET ROLE;

-- one outer row, of a join, before inner plans that may fail
SET gpuagg.require = require;
SET enable_nestloop = off;
SET enable_mergejoin = off;
CREATE TABLE one_fact AS SELECT i AS id, i % 10 AS a, i % 7 AS b, i % 3 AS c FROM generate_series(1, 2000) i;
CREATE TABLE one_dim AS SELECT i AS k, i AS v FROM generate_series(0, 9) i;
ANALYZE one_fact, one_dim;
SELECT sum(f.id), gpu_count(*) FROM one_fact f JOIN (SELECT * FROM one_dim WHERE 10 / (v + 1) >= 0) d1 ON d1.k = f.a JOIN (SELECT * FROM one_dim WHERE 10 / (v + 2) >= 0) d2 ON d2.k = f.b
	JOIN (SELECT * FROM one_dim WHERE 10 / (v + 3) >= 0) d3 ON d3.k = f.c WHERE (f.id + 0) * 2 > 3999;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET gpuagg.require;
DROP TABLE one_fact, one_dim;
DROP TABLE lj_fact, lj_dim, lj_region, lj_cont, lj_sparse, lj_two, lj_many, lj_empty, lj_days, lj_num, lj_float, lj_text, lj_char, lj_parts, lj_queries,
	lj_answers, lj_cased, lj_later, lj_partly, lj_lower, lj_moods, lj_areas, lj_base, lj_child, lj_long, lj_made, lj_secret, lj_private CASCADE;
DROP TYPE lj_mood;
DROP DOMAIN lj_small;
DROP COLLATION lj_case;
DROP SEQUENCE lj_numbers;
DROP FUNCTION lj_refuse, lj_inner, lj_looks;
DROP ROLE lj_reader;
RESET ALL;
