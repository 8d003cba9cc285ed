-- NaN, infinities and signed zeros, in floats and numerics.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

CREATE TEMP TABLE t AS
SELECT k, x::float8 AS d, x::float4 AS r, x::numeric AS m
FROM (VALUES (1, 'NaN'), (1, '1'), (1, '2'), (2, 'Infinity'), (2, '1'), (3, '-Infinity'), (3, '1'), (3, '2'),
	(4, 'Infinity'), (4, '-Infinity'), (4, '0'), (5, '-0'), (6, '-0'), (6, '0'), (7, '0'), (7, '-0'), (8, 'NaN'),
	(9, 'Infinity'), (10, 'NaN'), (10, 'Infinity'), (11, NULL), (11, 'NaN'), (12, '-Infinity'), (13, '5'), (13, '5')) AS v(k, x);

SELECT type, pg_temp.same(format('SELECT k, @min(%1$s), @max(%1$s), @sum(%1$s), @avg(%1$s), @count(%1$s) FROM t GROUP BY k', type))
FROM unnest(ARRAY['d', 'r', 'm']) type;
SELECT type, pg_temp.same(format('SELECT k, @variance(%1$s), @stddev_pop(%1$s), @var_pop(%1$s), @stddev(%1$s) FROM t GROUP BY k', type))
FROM unnest(ARRAY['d', 'r', 'm']) type;
SELECT pg_temp.same('SELECT k, @regr_sxx(d, r), @regr_syy(d, 1), @regr_sxy(1, d), @corr(d, d), @covar_samp(d, 2), @regr_avgy(d, 1) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT @min(d), @max(d), @sum(d), @avg(d), @variance(d), @corr(d, r) FROM t');

-- the sign of a zero sum
SELECT pg_temp.same('SELECT k, @sum(d), @sum(r) FROM t WHERE d = 0 GROUP BY k');
SELECT gpu_sum('-0'::float8), gpu_sum('-0'::float4) FROM generate_series(1, 3);
-- the last of equal values is the result, as in core
SELECT pg_temp.same('SELECT k, @min(d), @max(d), @min(r), @max(r) FROM t WHERE d = 0 GROUP BY k');

-- a declared scale allows NaN and no other special value
CREATE TEMP TABLE n (k int, c numeric(10, 3));
INSERT INTO n SELECT i % 5, CASE WHEN i % 5 = 0 AND i % 7 = 0 THEN 'NaN' WHEN i % 11 = 0 THEN NULL ELSE (i * 7919 % 10007) / 1000.0 - 5 END
FROM generate_series(1, 500) i;
SELECT pg_temp.same('SELECT k, @sum(c), @avg(c), @min(c), @max(c), @count(c), @stddev(c) FROM n GROUP BY k');
SELECT pg_temp.same('SELECT @sum(c), @avg(c), @min(c), @max(c) FROM n');
SELECT pg_temp.same('SELECT k, @sum(c) FILTER (WHERE c = ''NaN''), @min(c) FILTER (WHERE c = ''NaN''), @max(c) FILTER (WHERE c < 0) FROM n GROUP BY k');

-- numerics of any scale and size have core's digits
CREATE TEMP TABLE w AS SELECT i % 3 AS k, (i || '.' || repeat('9', i % 20 + 1))::numeric AS m,
	(i * 1.5)::numeric(1000, 2) AS c1000, (i * 100)::numeric(6, -2) AS neg, (i / 10 ^ 12)::numeric(15, 14) AS small
FROM generate_series(1, 200) i;
SELECT type, pg_temp.same(format('SELECT k, @sum(%1$s), @avg(%1$s), @min(%1$s), @max(%1$s) FROM w GROUP BY k', type))
FROM unnest(ARRAY['m', 'c1000', 'neg', 'small', 'm * c1000', 'c1000::numeric(12, 4)']) type;
