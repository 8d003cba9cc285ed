-- Columns in the forms that the cache has: integers and decimals as narrow offsets, counts that are equal, floats
-- with known bounds. Also tables in which these forms end in the middle.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.require = 'require';
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = eager;
SET extra_float_digits = 1;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- does each query agree with core, with a cold and a warm cache, in small and in large batches?
CREATE FUNCTION agree_all(VARIADIC queries text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    query text;
    rows text;
    answer text;
BEGIN
    FOREACH query IN ARRAY queries LOOP
        FOREACH rows IN ARRAY ARRAY['4096', '4096', '64', '100000'] LOOP
            PERFORM set_config('gpuagg.batch_rows', rows, true);
            answer := agrees(query);
            IF answer <> 'ok' THEN
                RETURN NEXT rows || ' rows: ' || answer;
            END IF;
        END LOOP;
    END LOOP;
    RETURN NEXT 'done';
END $$;

-- each width, with bases of both signs and at the ends of the types; NULLs only in the last rows
CREATE TABLE forms (id int, k1 int, k2 smallint, k8 bigint, ko oid, s2 smallint, s4 int, b1 bigint, b2 bigint, b4 bigint, top bigint, bottom bigint,
    d1 numeric(10,2), d2 numeric(12,3), d4 numeric(16,4), dbig numeric(19,0), dhuge numeric(28,2), f float8) WITH (autovacuum_enabled = off);
INSERT INTO forms SELECT i, i % 5 - 2, i % 300 - 150, -9223372036854775808 + i % 4, 4294967295 - i % 3, 32767 - i % 200, -2147483648 + i * 13 % 70000,
    -10 - i % 250, 1000000000000 + i % 60000, -5000000000 + i * 98765::bigint % 4000000000, 9223372036854775807 - i % 90, -9223372036854775808 + i % 900,
    -1 - i % 200 / 100.0, i % 50000 / 1000.0, -100000 + i * 7919::bigint % 4000000000 / 10000.0, 9223372036854775807 - i % 90, i % 7 * 12345678901234567890.25,
    i / 7.0 FROM generate_series(1, 17000) i;
SELECT agree_all(
    'SELECT @sum(s2), @sum(s4), @sum(b1), @sum(b2), @sum(b4), @sum(top), @sum(bottom) FROM forms',
    'SELECT @sum(d1), @sum(d2), @sum(d4), @sum(dbig), @sum(dhuge), @avg(d1), @avg(dbig) FROM forms',
    'SELECT k1, @count(*), @sum(s2), @sum(s4), @sum(b1), @sum(b2), @sum(b4), @sum(top), @sum(bottom) FROM forms GROUP BY k1',
    'SELECT k1, @sum(d1), @sum(d2), @avg(d4), @sum(dbig), @sum(dhuge), @count(d1) FROM forms GROUP BY k1',
    'SELECT k2, @sum(d1), @avg(f), @count(f), @count(*), @min(s4), @max(b4) FROM forms GROUP BY k2',
    'SELECT k8, @sum(b1), @sum(k8) FROM forms GROUP BY k8', 'SELECT ko, @count(*), @sum(d2) FROM forms GROUP BY ko',
    'SELECT k1, k2, @count(*), @sum(d2) FROM forms GROUP BY k1, k2', 'SELECT k8, ko, k1, @count(*), @avg(f) FROM forms GROUP BY k8, ko, k1',
    'SELECT k1, @sum(d1) FILTER (WHERE s4 % 2 = 0), @count(*) FILTER (WHERE k2 > 0), @sum(b1), @count(*) FROM forms GROUP BY k1',
    'SELECT k1, @sum(d1), @min(d1), @avg(s4), @stddev(s4), @stddev(f), @count(f) FROM forms GROUP BY k1',
    'SELECT b1, @count(*), @sum(d1) FROM forms GROUP BY b1');
-- rows in runs of equal keys
CREATE TABLE runs WITH (autovacuum_enabled = off) AS SELECT i / 500 AS k, -7 - i % 100 AS a, (i % 1000 / 10.0)::numeric(8,1) AS d, i / 3.0::float8 AS f FROM generate_series(1, 40000) i;
SELECT agree_all('SELECT k, @count(*), @sum(a), @sum(d), @avg(f), @count(f) FROM runs GROUP BY k', 'SELECT @count(*), @count(a), @sum(a), @avg(f), @sum(f) FROM runs');
-- sums that exceed 64 bits in the middle
SELECT agree_all('SELECT k1 % 2, @sum(b), @avg(b) FROM (SELECT k1, b2 * 1000000 AS b FROM forms) f GROUP BY 1');
CREATE TABLE large WITH (autovacuum_enabled = off) AS SELECT i % 3 AS k, 1000000000000000 + i % 100 AS b, (-7000000000000000 - i % 9)::numeric(18,1) AS d FROM generate_series(1, 30000) i;
SELECT agree_all('SELECT k, @sum(b), @sum(d) FROM large GROUP BY k', 'SELECT @sum(b), @sum(d), @count(*) FROM large');

-- NULLs, floats that are not overflow-safe, new keys and other scales, late in the table, so that earlier assumptions fail
INSERT INTO forms SELECT 17000 + i, CASE WHEN i % 9 > 0 THEN i % 7 - 3 END, i % 400 - 200, CASE WHEN i % 5 > 0 THEN 5 - i END, 7, NULL, i, NULL, NULL, i, 0, 0,
    CASE WHEN i % 4 > 0 THEN i END, NULL, i, i, i, CASE i WHEN 400 THEN 'NaN' WHEN 500 THEN 1e100 WHEN 600 THEN 'Infinity' ELSE NULLIF(i % 3, 0) END FROM generate_series(1, 3000) i;
SELECT agree_all(
    'SELECT @sum(s2), @sum(s4), @sum(b1), @sum(b2), @sum(b4), @sum(top), @sum(bottom) FROM forms',
    'SELECT k1, @count(*), @count(s2), @sum(s2), @sum(s4), @sum(b1), @sum(b2), @sum(d1), @sum(dbig) FROM forms GROUP BY k1',
    'SELECT k1, @count(*), @count(f), @avg(f) FROM forms GROUP BY k1', 'SELECT k1, @avg(s4), @count(b4), @avg(f) FROM forms WHERE id < 17300 GROUP BY k1',
    'SELECT k1, @avg(s4::float8), @avg(f), @count(f) FROM forms GROUP BY k1', 'SELECT @avg(f), @avg(s4::float8), @count(*) FROM forms',
    'SELECT k2, @sum(d1), @count(d1), @count(*), @avg(f) FROM forms GROUP BY k2', 'SELECT k8, @sum(d1) FROM forms GROUP BY k8',
    'SELECT k1, k2, @count(*), @sum(d2) FROM forms GROUP BY k1, k2', 'SELECT @count(*), @sum(d1), @sum(f) FROM forms WHERE id < 17390');
-- more groups than memory: rows go to files and are read again
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT agree_all('SELECT id, @count(*), @count(d1), @sum(d1), @sum(b1), @avg(f) FROM forms WHERE id % 5 < 1 GROUP BY id', 'SELECT id % 9000 AS g, k2, @sum(d1), @count(*), @sum(s4) FROM forms WHERE id % 5 > 3 GROUP BY 1, 2');
RESET work_mem;
RESET hash_mem_multiplier;

-- sums of floats without groups: larger than the largest float, and with infinities
CREATE TABLE sums (id int, x float8) WITH (autovacuum_enabled = off);
INSERT INTO sums SELECT i, CASE i WHEN 20000 THEN 1.7e308 WHEN 20001 THEN 1.6e308 WHEN 20002 THEN -1.7e308 ELSE 0.1 END FROM generate_series(1, 30000) i;
SELECT gpu_sum(x) FROM sums;
SELECT gpu_sum(x) FROM sums;
SELECT agree_all('SELECT @sum(x) FROM sums WHERE id <> 20001', 'SELECT @sum(x) FROM sums WHERE id NOT BETWEEN 20000 AND 20002');
UPDATE sums SET x = CASE id WHEN 20000 THEN 'Infinity'::float8 ELSE 1 END WHERE id IN (20000, 20001, 20002);
SELECT agree_all('SELECT @sum(x), @avg(x) FROM sums');
INSERT INTO sums VALUES (30001, '-Infinity');
SELECT agree_all('SELECT @sum(x) FROM sums');

-- comparisons of floats with constants, with NaN and with columns
CREATE TABLE compared WITH (autovacuum_enabled = off) AS SELECT i AS id, x, x::float4 AS r, y FROM generate_series(1, 5000) i,
    LATERAL (SELECT (ARRAY[-1.5, 0, '-0', 0.25, 1e30, 'NaN', 'Infinity', '-Infinity', NULL]::float8[])[1 + i % 9] AS x, (ARRAY[0.25, 'NaN', NULL, '-Infinity', 0]::float8[])[1 + i / 9 % 5] AS y) v;
SELECT agree_all(VARIADIC array_agg('SELECT @count(*), @sum(id) FROM compared WHERE ' || l || ' ' || o || ' ' || r))
    FROM unnest(ARRAY['x', 'r']) l, unnest(ARRAY['=', '<>', '<', '<=', '>', '>=']) o, unnest(ARRAY['0.25', '''NaN''::float8', '0::float4', '''-Infinity''::float8', 'y']) r;
SELECT agree_all('SELECT @count(*), @sum(x) FROM compared WHERE x < 1 AND y >= 0', 'SELECT id % 3, @count(*), @sum(x) FROM compared WHERE id > 5 AND x > y GROUP BY 1');
DROP TABLE forms, runs, large, sums, compared;
DROP FUNCTION agree_all(text[]), agrees(text);
