-- Minima, maxima and count(*) without keys are taken from the bounds of cached columns.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = eager;
SET gpuagg.require = 'require';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

CREATE TABLE extremes (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n2 numeric(10,2), n numeric, d date, t time, ts timestamp, tz timestamptz,
    o oid, m money, x text, b bool, none int, part int) WITH (autovacuum_enabled = off);
INSERT INTO extremes SELECT i % 300 - 150, (i * 7919) % 100003 - 50000, i::int8 * 1000000007, i / 7.0::float4 + 1, -i / 3.0 - 1, (i % 5000) / 100.0 - 20, i / 8.0,
    '2020-01-01'::date + i % 4000, '00:00'::time + i % 80000 * interval '1 second', '2020-01-01'::timestamp + i * interval '1 minute', '2021-01-01'::timestamptz + i * interval '1 hour',
    4294967295 - i, i::money, 'x' || i % 10, i % 2 = 0, NULL, CASE WHEN i % 3 = 0 THEN i END FROM generate_series(1, 80000) i;
VACUUM extremes;
CREATE VIEW queries AS SELECT q FROM unnest(ARRAY[
    'SELECT @min(i2), @max(i2), @count(*) FROM extremes', 'SELECT @min(i4), @max(i8), @count(*) FROM extremes', 'SELECT @min(f4), @max(f4), @min(f8), @max(f8) FROM extremes', 'SELECT @min(n2), @max(n2) FROM extremes',
    'SELECT @min(n), @max(n), @count(*) FROM extremes', 'SELECT @min(d), @max(d), @min(t), @max(t), @min(ts), @max(ts), @min(tz), @max(tz) FROM extremes', 'SELECT @min(o), @max(o), @min(m), @max(m) FROM extremes',
    'SELECT @min(x), @max(i4), @count(*) FROM extremes', 'SELECT @min(none), @max(none), @count(*) FROM extremes', 'SELECT @min(part), @max(part), @count(*) FROM extremes', 'SELECT @min(part), @count(part), @count(*) FROM extremes',
    'SELECT @min(i4), @sum(i4) FROM extremes', 'SELECT @min(i4) FILTER (WHERE b), @max(i4) FROM extremes', 'SELECT @min(i4 + 1), @max(-i4) FROM extremes', 'SELECT b, @min(i4), @max(i4) FROM extremes GROUP BY b',
    'SELECT @min(i4), @max(i4), @count(*) FROM extremes WHERE i8 > 0', 'SELECT @min(i4), @max(i4), @count(*) FROM extremes WHERE i8 > 30000000000000', 'SELECT @min(i4), @max(i4), @count(*) FROM extremes WHERE part > 0',
    'SELECT @max(i4) - @min(i4), @min(i4) IS NULL FROM extremes HAVING @count(*) > 5',
    'SELECT @min(1), @max(i4), @count(*) FROM extremes', 'SELECT @bool_and(b), @max(i4) FROM extremes', 'SELECT @min(ts), @max(ts) FROM extremes WHERE ts >= ''2020-02-01'' AND ts < ''2020-02-20 01:00''']) q;
SELECT q, agrees(q) FROM queries;
SELECT agrees(q) FROM queries GROUP BY 1;
SELECT gpu_count(*), gpu_min(i4), gpu_max(i4), gpu_min(ts), gpu_max(part) FROM extremes;
-- changed blocks, whose bounds are no longer valid
BEGIN;
DELETE FROM extremes WHERE i4 = (SELECT max(i4) FROM extremes) OR n2 = (SELECT min(n2) FROM extremes) OR part = 79998;
UPDATE extremes SET i2 = 32000, f8 = 'NaN', n = 'NaN' WHERE i8 = 40000::int8 * 1000000007;
SELECT q, agrees(q) FROM queries WHERE agrees(q) <> 'ok';
ROLLBACK;
SELECT q, agrees(q) FROM queries WHERE agrees(q) <> 'ok';
DELETE FROM extremes WHERE i4 > 40000;
SELECT q, agrees(q) FROM queries WHERE agrees(q) <> 'ok';
-- zeros of both signs, NaN, numerics that are no decimals, scales
CREATE TABLE odd (f4 float4, f8 float8, n numeric, n2 numeric(6,2)) WITH (autovacuum_enabled = off);
INSERT INTO odd SELECT CASE WHEN i % 2 = 0 THEN '-0'::float4 ELSE 0 END, CASE WHEN i % 2 = 0 THEN 'NaN'::float8 ELSE 5 END,
    CASE WHEN i % 7 = 0 THEN 'NaN'::numeric WHEN i % 2 = 0 THEN 1.0 ELSE 1.00 END, CASE WHEN i % 5 = 0 THEN NULL ELSE 1 END FROM generate_series(1, 5000) i;
SELECT agrees(q) FROM unnest(ARRAY['SELECT @min(f4), @max(f4) FROM odd', 'SELECT @min(f8), @max(f8) FROM odd', 'SELECT @min(n), @max(n) FROM odd', 'SELECT @min(n2), @max(n2), @count(*) FROM odd']) q, generate_series(1, 2);
TRUNCATE odd;
INSERT INTO odd VALUES (1, 2, 3, 4);
SELECT agrees('SELECT @min(f4), @max(f4), @max(f8), @max(n), @min(n2), @count(*) FROM odd') FROM generate_series(1, 2);
DELETE FROM odd;
VACUUM odd;
SELECT agrees('SELECT @min(f4), @max(f4), @max(f8), @max(n), @min(n2), @count(*) FROM odd') FROM generate_series(1, 2);
-- other batch sizes, and participants of a parallel scan
SET gpuagg.batch_rows = 64;
SELECT agrees(q) FROM queries GROUP BY 1;
SET gpuagg.batch_rows = 1048576;
SELECT agrees(q) FROM queries GROUP BY 1;
RESET gpuagg.batch_rows;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT agrees(q) FROM queries GROUP BY 1;

DROP VIEW queries;
DROP TABLE extremes, odd;
DROP FUNCTION agrees;
