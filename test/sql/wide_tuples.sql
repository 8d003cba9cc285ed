-- Late attributes of wide tuples: decoding them for all rows of a page gives the same values as core.
SET client_min_messages = warning;
SET enable_sort = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- The types in turn, with values from the row's number i and the column's number @.
CREATE TABLE kinds (kind text, types text[], vals text[]);
INSERT INTO kinds VALUES
    ('mixed', '{int2,text,float8,"numeric(10,2)",char(3),int4,date,int8,uuid,name}',
        ARRAY['(i+@)::int2', 'repeat(''x'',(i*@)%130)', 'i/8.0+@', 'i/100.0+@', 'left((i+@)::text,3)', 'i*@',
            'date ''2000-01-01''+i%97+@', 'i*10000000000+@', 'md5((i%9)::text)::uuid', '(''n''||i%11)::name']),
    ('fixed', '{int2,"\"char\"",int4,int8,float4,date}',
        ARRAY['(i+@)::int2', '(64+(i+@)%26)::"char"', 'i+@', '(i*@)::int8', 'i/4.0+@', 'date ''2000-01-01''+i%50']),
    ('varying', '{text,numeric,interval,varchar}',
        ARRAY['repeat(chr(97+@%26),i%140)', 'i*1.25+@', 'i*interval ''1 min''', '''v''||i%(@+3)']),
    ('int', '{int}', ARRAY['i']);
-- A table of n columns. Columns whose number modulo `every` is one of `remainders` are NULL in some rows. Checks each
-- of the last columns, alone and with early ones, as argument, as key and in conditions.
CREATE FUNCTION wide(of_kind text, n int, every int, VARIADIC remainders int[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    verdict text;
    types text[] := (SELECT k.types FROM kinds k WHERE kind = of_kind);
    vals text[] := (SELECT k.vals FROM kinds k WHERE kind = of_kind);
    m int := cardinality(types);
BEGIN
    EXECUTE (SELECT format('CREATE TEMP TABLE t (%s)', string_agg(format('c%s %s', c, types[c % m + 1]), ',' ORDER BY c))
        FROM generate_series(0, n - 1) c);
    EXECUTE (SELECT format('INSERT INTO t SELECT %s FROM generate_series(1, 300) i',
            string_agg(format('CASE WHEN %s OR (i * 5 + %s) %% 7 > 1 AND i %% 10 > 0 THEN %s END', (c % every <> ALL (remainders))::text, c,
                    replace(vals[c % m + 1], '@', c::text)), ',' ORDER BY c))
        FROM generate_series(0, n - 1) c);
    ANALYZE t;
    FOR c IN greatest(0, n - m)..n - 1 LOOP
        FOREACH verdict IN ARRAY ARRAY[
            agrees(format('SELECT @count(c%1$s), c%1$s::text FROM t GROUP BY 2', c)),
            agrees(format('SELECT c%s k, @count(*), @count(c%s), @count(c%s), @count(c0) FROM t GROUP BY 1', c, (c + 1) % n, c / 2)),
            agrees(format('SELECT @count(*), @count(c%3$s), c%2$s::text FROM t WHERE c%1$s IS NOT NULL AND c%2$s::text > ''2'' GROUP BY 3', c, (c + 2) % n, c / 3)),
            -- the decoding for a condition continues where the one before ended, or starts again
            agrees(format('SELECT @count(*), @count(c%s), @count(c%s) FROM t WHERE %s', c, c / 2, (
                SELECT string_agg(format('(c%1$s IS NULL OR c%1$s::text <> ''%2$s'')', x, x % 4), ' AND ' ORDER BY x * (c % 2 * 2 - 1))
                FROM generate_series(greatest(0, n - m), c) x)))] LOOP
            IF verdict <> 'ok' THEN RETURN NEXT verdict; END IF;
        END LOOP;
    END LOOP;
    DROP TABLE t;
END $$;
-- NULLs in no column, in a few columns, in all columns, in one column only
SELECT wide('mixed', 43, 1, 1), wide('mixed', 43, 7, 3), wide('mixed', 43, 1, 0);
SELECT wide('mixed', 75, 75, 2), wide('mixed', 75, 75, 63), wide('mixed', 75, 75, 64), wide('mixed', 75, 75, 74);
SELECT wide('fixed', 70, 1, 1), wide('fixed', 70, 5, 1, 2), wide('fixed', 70, 1, 0), wide('fixed', 140, 130, 0), wide('fixed', 140, 11, 7);
SELECT wide('varying', 30, 1, 1), wide('varying', 30, 3, 2), wide('varying', 30, 1, 0);
-- null bitmaps of whole words and bytes, and rows of only NULLs
SELECT wide('int', n, 1, 0) FROM unnest('{7,8,9,40,63,64,65,72}'::int[]) n;

CREATE FUNCTION run(sql text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE sql; END $$;
-- Columns added and dropped before and after the 64th; tuples with fewer attributes.
SELECT run(format('CREATE TABLE old (%s)', string_agg(format('c%s %s', c, CASE c % 3 WHEN 0 THEN 'text' WHEN 1 THEN 'int2' ELSE 'float8' END), ',' ORDER BY c))) FROM generate_series(1, 60) c;
INSERT INTO old (c1, c3, c60) SELECT i, 'x' || i, repeat('y', i % 200) FROM generate_series(1, 200) i;
SELECT count(run(format('ALTER TABLE old ADD d%s %s', c, CASE c % 4 WHEN 0 THEN 'int DEFAULT 5' WHEN 1 THEN 'text DEFAULT ''added''' WHEN 2 THEN 'numeric(9,3)' ELSE 'float8 DEFAULT 1.5' END))) FROM generate_series(1, 12) c;
INSERT INTO old (c1, c2, c60, d1, d4, d12) SELECT i, i / 8.0, NULL, NULLIF(i % 3, 0)::text, i, i FROM generate_series(1, 200) i;
ALTER TABLE old DROP c30, DROP c57, DROP d2, DROP d7;
INSERT INTO old (c1, c58, c60, d5, d11) SELECT i, i, 'z', 'last', i FROM generate_series(1, 200) i;
ALTER TABLE old ADD e1 int8 DEFAULT 77, ADD e2 text, ADD e3 bool DEFAULT true;
INSERT INTO old (c59, e1, e2) SELECT i, i, 'e' FROM generate_series(1, 100) i;
SELECT agrees(q) FROM (VALUES
    ('SELECT @count(*), @sum(c1), @count(c3), @count(c60), @sum(d4), @max(d1), @count(d6), @sum(d11), @sum(e1) FROM old'),
    ('SELECT d1, d4 % 3, @count(*), @sum(c1), @sum(e1), @count(e2) FROM old GROUP BY 1, 2'),
    ('SELECT e3, d12, @count(*), @max(c60) FROM old GROUP BY 1, 2'),
    ('SELECT e2, c58, @count(*) FROM old WHERE c1 > 5 AND d8 = 5 AND e1 <> 3 GROUP BY 1, 2'),
    ('SELECT d9, @sum(c2), @sum(c59), @count(c1) FROM old GROUP BY 1')) AS v(q);

-- 1,600 columns: most bits of the null bitmap are clear, or none.
SELECT run(format('CREATE TABLE most (%s)', string_agg(format('c%s %s', c, CASE WHEN c % 200 = 0 THEN 'text' ELSE 'int2' END), ',' ORDER BY c))) FROM generate_series(1, 1600) c;
INSERT INTO most (c1, c64, c65, c200, c1599, c1600) SELECT i, i % 3, NULLIF(i % 4, 1), 't' || i % 5, i, 'u' || i % 7 FROM generate_series(1, 300) i;
SELECT run(format('INSERT INTO most SELECT %s FROM generate_series(1, 20) i', string_agg(CASE WHEN c % 200 = 0 THEN '''x''' ELSE 'i + ' || c END, ',' ORDER BY c))) FROM generate_series(1, 1600) c;
SELECT agrees('SELECT c1600, c65, @count(*), @sum(c1), @sum(c64), @sum(c1599), @count(c200), @count(c800) FROM most GROUP BY 1, 2'),
    agrees('SELECT c200, @sum(c1599), @max(c1400), @count(c1598) FROM most WHERE c64 > 0 GROUP BY 1');

-- count(*) reads only the line pointers of all-visible pages, including dead and redirected ones.
CREATE TABLE counted (id int, v text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO counted SELECT i, repeat('v', i % 100) FROM generate_series(1, 3000) i;
CREATE INDEX ON counted (id);
VACUUM (FREEZE) counted;
CREATE FUNCTION counts() RETURNS SETOF text LANGUAGE sql AS $$
    VALUES (agrees('SELECT @count(*) FROM counted')), (agrees('SELECT @count(*), @count(1), @sum(2) FROM counted')),
        (agrees('SELECT 1, @count(*) FROM counted GROUP BY 1')), (agrees('SELECT @count(*) FROM counted WHERE id > 5')),
        (agrees('SELECT @count(*) FROM counted WHERE length(v) > 50')) $$;
SELECT counts();
UPDATE counted SET v = v || 'w' WHERE id % 5 = 0;
DELETE FROM counted WHERE id % 7 = 0;
SELECT counts();
VACUUM (INDEX_CLEANUP off) counted;
SELECT counts();
VACUUM counted;
SELECT counts();
BEGIN;
DELETE FROM counted WHERE id % 3 = 0;
SELECT counts();
ROLLBACK;
SELECT counts();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT counts();
COMMIT;
-- A thousand conditions, each decoded in its own stage: the steps over attributes are shared.
CREATE FUNCTION many_stages(n int) RETURNS TABLE (rows int8, megabytes numeric) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE (SELECT format('SELECT (SELECT gpu_count(*) FROM most WHERE c1 > 280 AND %s), (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) / 1048576',
        string_agg(format('(c%1$s IS NULL OR c%1$s <> 0)', c), ' AND ')) FROM generate_series(201, 200 + n) c WHERE c % 200 > 0);
END $$;
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
SELECT a.rows, b.rows, b.megabytes - a.megabytes < 64 AS little FROM many_stages(10) a, many_stages(1000) b;
RESET gpuagg.require;
RESET max_parallel_workers_per_gather;
DROP FUNCTION agrees;
DROP TABLE old, most, counted, kinds;
