-- Integer results have core's wider types, and overflows are errors as in core.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

CREATE TEMP TABLE t AS SELECT i % 2 AS k, 32767::int2 AS s, 2147483647 AS n, 9223372036854775807 AS b,
	-9223372036854775808 AS lo, 3e38::float4 AS r, 1.7e308::float8 AS d, 99999999999999999999.99999999::numeric(28, 8) AS c
FROM generate_series(1, 1001) i;

SELECT pg_temp.same('SELECT k, @sum(s), @sum(n), @sum(b), @sum(lo), @avg(b), @avg(lo), @avg(n) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT k, @variance(s), @stddev(n), @var_pop(b), @stddev_pop(lo), @var_samp(lo) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT @var_pop(x), @variance(x), @sum(x), @avg(x) FROM (SELECT b FROM t UNION ALL SELECT lo FROM t) AS u(x)');
SELECT pg_temp.same('SELECT k, @min(lo), @max(b), @bit_and(lo), @bit_or(b), @bit_xor(lo) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT k, @sum(c), @avg(c), @min(c), @max(c) FROM t GROUP BY k');

SELECT pg_temp.same('SELECT @sum(r) FROM t');
SELECT pg_temp.same('SELECT k, @sum(d) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT @avg(d) FROM t');
SELECT pg_temp.same('SELECT k, @stddev(CASE n WHEN 0 THEN 0 ELSE d * (1 - 2 * k) END) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT @variance(d * (1 - 2 * k)) FROM t');
SELECT pg_temp.same('SELECT @regr_sxx(1, d), @corr(d, d) FROM (SELECT d * (1 - 2 * k) AS d FROM t LIMIT 2) u');
-- sums of floats have the width of the floats
SELECT pg_temp.same('SELECT @sum(r) FROM (SELECT 16777216::float4 AS r UNION ALL SELECT 1::float4 FROM generate_series(1, 10)) u');
SELECT pg_temp.same('SELECT @sum(money ''92233720368547758.07'') FROM generate_series(1, 1)');

SELECT gpu_product(1e200::float8) FROM generate_series(1, 2);
SELECT gpu_product(1e-200::float8) FROM generate_series(1, 2);
SELECT gpu_product(x) FROM unnest(ARRAY[0, 1e-300]::float8[]) x;

-- errors in arguments and filters are raised
SELECT pg_temp.same('SELECT k, @sum(1 / k) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT k, @count(*) FILTER (WHERE 1 / k = 1) FROM t GROUP BY k');
