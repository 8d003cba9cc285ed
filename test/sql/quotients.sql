-- Quotients of numerics and integers have core's scales and digits for all values.
SET client_min_messages = warning;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET enable_sort = off;

-- equal leading digits, zeros, halves, small and large values, scales that are no multiples of four
CREATE TABLE pairs AS
SELECT row_number() OVER () AS id, (a.v % 2147483647)::int AS i, a.v::numeric(18, 0) AS a0, (a.v / 100)::numeric(20, 2) AS a2, (a.v / 1e6)::numeric(24, 7) AS a7, nullif(b.v, 0)::int8 AS j,
    nullif(b.v / 10, 0)::numeric(20, 1) AS b1, nullif((b.v / 1000)::numeric(20, 3), 0) AS b3, nullif((b.v / 1e9)::numeric(28, 9), 0) AS b9, b.v::numeric(24, 0) AS zero
FROM unnest('{0,1,-1,2,3,7,-9,10,99,100,123,999,1000,5000,9999,10000,-10001,12345,99999999,100000000,123456789,-987654321,99999999999,123456789012345678,999999999999999999}'::numeric[]) a(v),
    unnest('{0,1,-1,2,3,6,7,8,-11,99,100,128,-1000,1001,9999,10000,10001,19999,65536,99999999,100000001,-123456789,77777777777}'::numeric[]) b(v);
INSERT INTO pairs (id, a2, b1) VALUES (0, NULL, 2), (0, 2, NULL), (0, 'NaN', 2), (0, 3, 'NaN');
ANALYZE pairs;
SET gpuagg.require = 'require';
SELECT a, b, agrees(replace(replace('SELECT @count(*), @sum($a / $b), @bit_xor(hashtext(($a / $b)::text)), @min(($a / $b)::text), @max(scale($a / $b)) FROM pairs', '$a', a), '$b', b)) AS verdict
    FROM unnest('{i,a0,a2,a7,-a7,123456.789}'::text[]) a, unnest('{j::numeric,b1,b3,b9,b3 + 0.5,7.0}'::text[]) b WHERE a <> '123456.789' OR b <> '7.0';
SELECT agrees('SELECT id % 3, @avg(i / 100.0), @avg(a2 / (i + 10000000000.0)), @sum(a7 / b9 * 2 + 1) FROM pairs GROUP BY 1'),
    agrees('SELECT @count(*) FROM pairs WHERE a2 / b1 > 0.5'), agrees('SELECT @sum(CASE WHEN zero <> 0 THEN a2 / zero END), @sum(a2 / nullif(zero, 0)) FROM pairs');
SELECT gpu_sum(a2 / zero) FROM pairs;
DROP TABLE pairs;
DROP FUNCTION agrees;
