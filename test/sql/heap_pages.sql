-- The heap feed on pages in every state: layouts, histories of ALTER TABLE, TOAST, dead, aborted and half-visible
-- tuples, partitions, kinds of tables, cursors.
SET client_min_messages = warning;
SET enable_sort = off;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- Every order of columns with fixed and with variable length, with all patterns of NULLs.
CREATE FUNCTION layouts() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    types text[] := '{int2,text,float8,bool,"numeric(10,2)",int4,char(3),int8}';
    vals text[] := '{i::int2,repeat(''x''\,i % 140),i / 8.0,i % 3 = 0,i / 100.0,i,left(i::text\,3),i * 10000000000}';
    n int := 8;
    cols text;
    exprs text;
    c int;
    verdict text;
BEGIN
    FOR turn IN 0..7 LOOP
        cols := '';
        exprs := '';
        FOR k IN 0..n - 1 LOOP
            c := (turn + k * (CASE WHEN turn % 2 = 0 THEN 1 ELSE 3 END)) % n;
            cols := cols || format(',c%s %s', c, types[c + 1]);
            exprs := exprs || format(',CASE WHEN i >> %s & 1 = 0 OR i > 600 THEN %s END', k, vals[c + 1]);
        END LOOP;
        EXECUTE format('CREATE TEMP TABLE l (%s)', substr(cols, 2));
        EXECUTE format('INSERT INTO l SELECT %s FROM generate_series(1, 900) i', substr(exprs, 2));
        ANALYZE l;
        FOR k IN 0..n - 1 LOOP
            verdict := agrees(format('SELECT c%s k, @count(*), @sum(c5), @max(c2), @sum(c4), @count(c6), @bool_and(c3), @sum(c7), @min(c0) FROM l GROUP BY 1', k));
            IF verdict <> 'ok' THEN RETURN NEXT verdict; END IF;
            verdict := agrees(format('SELECT @count(c%s), @count(*), @sum(c0) FROM l WHERE c%s IS NOT NULL AND c5 > 20', k, (k + 3) % n));
            IF verdict <> 'ok' THEN RETURN NEXT verdict; END IF;
        END LOOP;
        DROP TABLE l;
    END LOOP;
END $$;
SELECT layouts();

-- Columns are added, dropped and changed after rows were written.
CREATE TABLE h (a int, b text, c int8);
INSERT INTO h SELECT i % 5, 'x' || i, i FROM generate_series(1, 300) i;
ALTER TABLE h ADD d int DEFAULT 7, ADD e text DEFAULT 'added', ADD f numeric(8,3) DEFAULT 1.5, ADD g float8;
INSERT INTO h SELECT i % 5, NULL, i, i % 3, 'later', i / 8.0, i FROM generate_series(1, 300) i;
SELECT agrees('SELECT a, @sum(d), @sum(f), @count(g), @sum(g), @count(e) FROM h GROUP BY a');
SELECT agrees('SELECT e, d, @count(*), @sum(f * 2), @max(c) FROM h WHERE d > 0 GROUP BY e, d');
ALTER TABLE h DROP b;
INSERT INTO h SELECT i % 5, i, i, 'last', 2, i FROM generate_series(1, 100) i;
SELECT agrees('SELECT e, @sum(a), @sum(c), @sum(d), @sum(f), @sum(g) FROM h GROUP BY e');
ALTER TABLE h ADD i int, ADD j bool DEFAULT true, ADD k date DEFAULT '2020-01-01';
SELECT agrees('SELECT j, k, i, @count(*), @count(i), @max(k) FROM h GROUP BY 1, 2, 3');
ALTER TABLE h ALTER c TYPE int4, ALTER d TYPE text, DROP e;
SELECT agrees('SELECT d, @sum(c), @count(d), @sum(f) FROM h GROUP BY d');

-- Short, long, compressed and external values, as keys and arguments.
CREATE TABLE toasted (id int, k text, v text, n numeric);
ALTER TABLE toasted ALTER v SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, repeat(chr(97 + i % 5), 10 + i % 4 * 3000), (SELECT string_agg(md5((i % 3 * 1000 + j)::text), '') FROM generate_series(1, i % 3 * 150) j),
    CASE i % 4 WHEN 0 THEN ('1' || repeat('0', 5000))::numeric WHEN 1 THEN 'NaN' ELSE i END FROM generate_series(1, 60) i;
SELECT agrees('SELECT k, @count(*), @max(v), @max(n) FROM toasted GROUP BY k');
SELECT agrees('SELECT md5(v), @count(*), @sum(length(k)) FROM toasted WHERE v <> '''' AND k > ''a'' GROUP BY 1');
SELECT agrees('SELECT n, @count(*), @min(k) FROM toasted WHERE k = repeat(''b'', 3010) OR k IN (''x'', repeat(''c'', 6010)) GROUP BY n');
-- equal values out of line, each stored separately; v of length 4800 and 9600 is external
SELECT count(DISTINCT v) AS external_values FROM toasted WHERE length(v) > 4000 AND pg_column_size(v) = length(v);
SELECT agrees('SELECT v, @count(*), @sum(id) FROM toasted GROUP BY v'), agrees('SELECT v, k, @count(*) FROM toasted GROUP BY v, k'),
    agrees('SELECT v::varchar AS c, left(v, 5) AS l, @count(*) FROM toasted GROUP BY 1, 2');
SELECT agrees(format('SELECT @count(*), @sum(id), @count(*) FILTER (WHERE v <> %1$L), @count(*) FILTER (WHERE v IN (%1$L, ''y'')) FROM toasted WHERE v = %1$L OR v LIKE %2$L', v, left(v, 20) || '%'))
FROM toasted WHERE id = 4;

-- Dead, aborted, updated and locked tuples; a transaction's own changes; subtransactions.
CREATE TABLE w (id int, k int, v int) WITH (fillfactor = 70, autovacuum_enabled = off);
INSERT INTO w SELECT i, i % 7, i FROM generate_series(1, 5000) i;
CREATE INDEX ON w (id);
DELETE FROM w WHERE id % 10 = 0;
UPDATE w SET v = v + 1 WHERE id % 4 = 1;
BEGIN;
INSERT INTO w SELECT i, 1, 1000000 FROM generate_series(1, 500) i;
UPDATE w SET v = -1;
ROLLBACK;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k');
BEGIN;
UPDATE w SET v = v + 10 WHERE k = 2;
DELETE FROM w WHERE k = 3;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k');
SAVEPOINT s;
INSERT INTO w SELECT i, 8, i FROM generate_series(1, 100) i;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k');
ROLLBACK TO s;
SELECT count(*) FROM (SELECT FROM w WHERE k = 5 FOR UPDATE) l;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k');
COMMIT;
VACUUM w;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k');
UPDATE w SET v = 0 WHERE id BETWEEN 100 AND 110;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k');
VACUUM FREEZE w;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM w WHERE v <> 5 GROUP BY k');

-- A cursor sees the table as it was at its start, also WITH HOLD. No pins are left.
SET gpuagg.require = 'require';
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_count(*), gpu_sum(v) FROM w WHERE k < 3 GROUP BY k ORDER BY k;
DECLARE hold CURSOR WITH HOLD FOR SELECT k, gpu_sum(v) FROM w GROUP BY k ORDER BY k;
FETCH 1 FROM c;
UPDATE w SET v = 0;
FETCH ALL FROM c;
COMMIT;
FETCH 2 FROM hold;
CLOSE hold;
RESET gpuagg.require;

-- Kinds of tables; no rows; no columns; many columns; wide rows.
CREATE UNLOGGED TABLE ul AS SELECT i % 3 AS k, i AS v FROM generate_series(1, 1000) i;
CREATE TEMP TABLE tt AS SELECT i % 3 AS k, i AS v FROM generate_series(1, 1000) i;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM ul;
CREATE TABLE empty (k int, v int);
CREATE TABLE nothing ();
INSERT INTO nothing SELECT FROM generate_series(1, 10);
SELECT agrees('SELECT k, @sum(v) FROM ul GROUP BY k'), agrees('SELECT k, @sum(v) FROM tt GROUP BY k'), agrees('SELECT k, @sum(v) FROM mv GROUP BY k'),
    agrees('SELECT k, @sum(v) FROM empty GROUP BY k'), agrees('SELECT @count(*), @sum(v) FROM empty'), agrees('SELECT @count(*) FROM nothing');
SELECT agrees('SELECT relkind, @count(*), @sum(relpages) FROM pg_class GROUP BY relkind');
DO $$
BEGIN
    EXECUTE 'CREATE TABLE many (' || (SELECT string_agg(format('c%s %s', i, (ARRAY['int2', 'bool', 'int4'])[1 + i % 3]), ', ') FROM generate_series(1, 1600) i) || ')';
    EXECUTE 'INSERT INTO many (c1, c3, c4, c799, c1200, c1599, c1600) SELECT i % 4 = 0, i, i % 2 = 0, i % 3 = 0, i % 9, NULLIF(i % 5, 0), i % 2 = 1 FROM generate_series(1, 200) i';
END $$;
SELECT agrees('SELECT c1599, c1600, @count(*), @sum(c3), @bool_or(c799), @sum(c1200), @count(c800) FROM many GROUP BY 1, 2');
CREATE TABLE wide (k int, a text, b text, v int);
ALTER TABLE wide ALTER a SET STORAGE PLAIN, ALTER b SET STORAGE PLAIN;
INSERT INTO wide SELECT i % 3, repeat('a', i % 4000), repeat('b', 4000), i FROM generate_series(1, 300) i;
SELECT agrees('SELECT k, @sum(v), @max(a), @count(b) FROM wide WHERE length(a) > 10 GROUP BY k');

-- Partitions with other column orders, pruned and not; inheritance; UNION ALL.
CREATE TABLE part (id int, k int, v float8, n numeric(10,2), t text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (1000);
CREATE TABLE part2 (t text, n numeric(10,2), junk int, v float8, k int, id int NOT NULL);
ALTER TABLE part2 DROP junk;
ALTER TABLE part ATTACH PARTITION part2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE part3 PARTITION OF part FOR VALUES FROM (2000) TO (3000) PARTITION BY LIST (k);
CREATE TABLE part31 PARTITION OF part3 FOR VALUES IN (0, 1, 2);
CREATE TABLE part32 PARTITION OF part3 DEFAULT;
INSERT INTO part SELECT i, i % 5, i / 4.0, i / 100.0, 't' || i % 3 FROM generate_series(0, 2999) i;
ANALYZE part;
SELECT agrees('SELECT k, @count(*), @sum(v), @sum(n), @max(t) FROM part GROUP BY k'),
    agrees('SELECT k + 1, @sum(v * 2), @sum(n * n), @min(upper(t)) FROM part WHERE id % 2 = 0 GROUP BY 1'),
    agrees('SELECT t, @count(*), @sum(k) FROM part WHERE id BETWEEN 900 AND 1100 AND k <> 2 GROUP BY t'),
    agrees('SELECT tableoid::regclass, @count(*) FROM part GROUP BY 1');
CREATE TABLE child (extra int) INHERITS (h);
INSERT INTO child (a, c, g, extra) SELECT i % 5, i, i, i FROM generate_series(1, 100) i;
SELECT agrees('SELECT a, @count(*), @sum(g) FROM h GROUP BY a'), agrees('SELECT a, @count(*), @sum(g) FROM ONLY h GROUP BY a');
SELECT agrees('SELECT k, @sum(v) FROM (SELECT k, v FROM ul UNION ALL SELECT k, id FROM w) s GROUP BY k');
SET plan_cache_mode = 'force_generic_plan';
SET gpuagg.require = 'require';
PREPARE pruned(int, int) AS SELECT k, gpu_count(*), gpu_sum(n) FROM part WHERE id >= $1 AND id < $2 GROUP BY k ORDER BY k LIMIT 2;
EXECUTE pruned(0, 1500);
EXECUTE pruned(2500, 2600);
EXECUTE pruned(5000, 6000);
SELECT lo, (SELECT gpu_sum(n) FROM part WHERE id >= lo AND id < lo + 700) FROM generate_series(-500, 3000, 700) lo;

-- In parallel, with small batches; a sequence that may not be read twice.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.batch_rows = 64;
SELECT agrees('SELECT k, @count(*), @sum(v), @sum(n), @max(t) FROM part GROUP BY k'),
    agrees('SELECT k, @count(*), @sum(v) FROM w GROUP BY k'), agrees('SELECT @count(*), @sum(v), @max(a) FROM wide WHERE k > 0');
SELECT lo, (SELECT gpu_count(*) FROM w WHERE id >= lo AND id < lo + 2000) FROM generate_series(0, 5000, 2000) lo;

-- Tables that cannot be read as pages; EXPLAIN shows the reason.
CREATE FUNCTION feed_of(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || q LOOP
        IF line ~ 'Feed' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
SELECT feed_of('SELECT gpu_count(*) FROM generate_series(1, 3)');
SELECT feed_of('SELECT gpu_count(*) FROM part');
SELECT feed_of('SELECT gpu_count(*) FROM w WHERE id = 1');
SET gpuagg.feed = 'tuples';
SELECT feed_of('SELECT gpu_count(*) FROM empty');
SET gpuagg.feed = 'heap';
SELECT feed_of('SELECT gpu_count(*) FROM empty');
DROP FUNCTION agrees, layouts, feed_of;
DROP MATERIALIZED VIEW mv;
DROP TABLE child, h, toasted, w, ul, tt, empty, nothing, many, wide, part;
