-- Numerics without a declared scale are added as decimals of their most common scale, according to statistics.
-- Values of columns that are only counted are not copied.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- A number that EXPLAIN ANALYZE prints for the scan.
CREATE FUNCTION shown(property text, q text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    PERFORM set_config('gpuagg.require', 'require', true);
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF, FORMAT JSON) ' || q INTO plan;
    RETURN (regexp_match(plan::text, format('"%s": ([0-9.]+)', property)))[1];
END $$;

CREATE TABLE prices (i int, k int, same numeric, most numeric, mixed numeric, odd numeric, none numeric, declared numeric(9,2));
ALTER TABLE prices SET (autovacuum_enabled = off);
INSERT INTO prices SELECT i, i % 5000, round(i * 1.01, 2), CASE WHEN i % 9 = 0 THEN i / 8.0 WHEN i % 10 > 0 THEN round(i * 0.37 - 900, 2) END,
    round(i * 1.37, i % 6),
    CASE i % 50 WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN 1e30 * i WHEN 5 THEN 1e-25 * i
        WHEN 6 THEN ('1.' || repeat('123456789', 50 + i % 400))::numeric ELSE round(i * -1.37, 3) END,
    NULL, i / 7.0
FROM generate_series(1, 20000) i;
CREATE TEMP TABLE memory AS SELECT shown('Memory', 'SELECT k, gpu_sum(same) FROM prices GROUP BY k') AS kb;
ANALYZE prices;
-- no transition function is needed any more
SELECT shown('Memory', 'SELECT k, gpu_sum(same) FROM prices GROUP BY k') < kb / 2 AS smaller FROM memory;

CREATE TABLE scale_queries (q text);
INSERT INTO scale_queries
SELECT replace(t, 'X', x) FROM unnest('{same,most,mixed,odd,none,declared}'::text[]) x, unnest(ARRAY[
    'SELECT @sum(X), @avg(X), @min(X), @max(X), @count(X), @count(*) FROM prices',
    'SELECT i % 700 k, @sum(X), @avg(X), @count(X) FROM prices GROUP BY 1',
    'SELECT i % 700 k, @min(X), @max(X) FROM prices GROUP BY 1',
    'SELECT X, @sum(X), @max(X), @count(X) FROM prices WHERE i < 3000 GROUP BY X',
    'SELECT k % 7 k, @sum(X) FILTER (WHERE i % 3 = 0), @avg(X) FILTER (WHERE X > 5), @count(X) FILTER (WHERE i > 900) FROM prices GROUP BY 1',
    'SELECT @sum(X), @sum(X + 1), @sum(-X), @stddev(X) FROM prices WHERE X < 1000',
    'SELECT @sum(X) FROM prices WHERE i < 0']) t;
SELECT agrees(q) verdict, count(*) FROM scale_queries GROUP BY 1;
SET work_mem = '64kB';
SELECT agrees(replace(q, '% 700', '% 7000')) verdict, count(*) FROM scale_queries GROUP BY 1;
RESET work_mem;
-- rows with another scale than the statistics predict
INSERT INTO prices SELECT i, i, i * 0.001, i * 0.1, i, i, i, i FROM generate_series(1, 3000) i;
SELECT agrees(q) verdict, count(*) FROM scale_queries GROUP BY 1;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT agrees(q) verdict, count(*) FROM scale_queries WHERE q LIKE '%@sum%' AND q NOT LIKE '%@max%' GROUP BY 1;
SET max_parallel_workers_per_gather = 0;
-- the last one of equal extremes is the result
CREATE TABLE equal_extremes (i int, x numeric);
INSERT INTO equal_extremes SELECT i, CASE i % 10 WHEN 3 THEN 1.0 WHEN 4 THEN 1.000 ELSE 1.00 END FROM generate_series(1, 1000) i;
ANALYZE equal_extremes;
SELECT agrees('SELECT i / 7, @min(x), @max(x), @sum(x), @avg(x) FROM equal_extremes GROUP BY 1');
-- partitions; a domain; rows from the child plan
CREATE DOMAIN amount AS numeric CHECK (VALUE IS NULL OR VALUE <> -7);
CREATE TABLE scales_parts (k int, x numeric, y amount) PARTITION BY RANGE (k);
CREATE TABLE scales_part1 PARTITION OF scales_parts FOR VALUES FROM (0) TO (100);
CREATE TABLE scales_part2 (y amount, x numeric, k int);
ALTER TABLE scales_parts ATTACH PARTITION scales_part2 FOR VALUES FROM (100) TO (200);
INSERT INTO scales_parts SELECT i % 200, round(i / 7.0, 2 + (i % 20 = 0)::int), i / 4.0 FROM generate_series(1, 5000) i;
ANALYZE scales_parts;
SELECT agrees('SELECT k % 3, @sum(x), @avg(x), @max(x), @sum(y), @count(y) FROM scales_parts GROUP BY 1');
SET gpuagg.feed = 'tuples';
SET gpuagg.require = 'require';
CREATE TEMP TABLE ours AS SELECT k % 9 k, gpu_sum(most) s, gpu_avg(odd) a, gpu_max(mixed) m, gpu_count(same) c FROM prices GROUP BY 1;
SET gpuagg.require = 'forbid';
SELECT count(*) FROM (SELECT k % 9 k, sum(most) s, avg(odd) a, max(mixed) m, count(same) c FROM prices GROUP BY 1) core JOIN ours USING (k)
    WHERE (core.s::text, core.a::text, core.m::text, core.c) = (ours.s::text, ours.a::text, ours.m::text, ours.c);
RESET gpuagg.require;
RESET gpuagg.feed;

-- long values that are only counted do not fill a batch
CREATE TABLE long_values (t text, b bytea, a int[], n name, u uuid, iv interval, r int4range, c xid);
INSERT INTO long_values SELECT CASE WHEN i % 3 > 0 THEN repeat('x', 1500) || i END, CASE WHEN i % 4 > 0 THEN decode(repeat('ab', i), 'hex') END,
    CASE WHEN i % 5 > 0 THEN array_fill(i, ARRAY[i % 400]) END, CASE WHEN i % 6 > 0 THEN i::text END,
    CASE WHEN i % 7 > 0 THEN md5(i::text)::uuid END, CASE WHEN i % 8 > 0 THEN i * interval '1 s' END,
    CASE WHEN i % 9 > 0 THEN int4range(i, i + 5) END, CASE WHEN i % 10 > 0 THEN i::text::xid END
FROM generate_series(1, 2000) i;
ANALYZE long_values;
SELECT shown('Batches', 'SELECT gpu_count(t), gpu_count(b) FROM long_values') AS batches;
SELECT agrees(q) FROM (VALUES
    ('SELECT @count(t), @count(b), @count(a), @count(n), @count(u), @count(iv), @count(r), @count(c) FROM long_values'),
    ('SELECT @max(t), @count(t), @count(t) FILTER (WHERE n > ''5''), @min(iv), @count(iv), @count(b) FROM long_values'),
    ('SELECT n, @count(n), @count(t), @count(a) FROM long_values GROUP BY n'),
    ('SELECT t IS NULL, @count(t), @count(t || n::text), @count(nullif(t, '''')), @count(NULL::text), @count(''x''::text) FROM long_values GROUP BY 1'),
    ('SELECT length(t), @count(t), @count(r) FROM long_values WHERE t > ''x'' AND b IS NOT NULL GROUP BY 1')) q (q);
SET work_mem = '64kB';
SELECT agrees('SELECT u, @count(t), @count(n), @count(b) FROM long_values GROUP BY u');
RESET work_mem;
DROP TABLE prices, scale_queries, scales_parts, equal_extremes, long_values, memory, ours;
DROP DOMAIN amount;
DROP FUNCTION agrees, shown;
