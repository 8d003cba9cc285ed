-- No rows, only NULLs, single rows.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

CREATE TEMP TABLE t (k int, s int2, n int, b int8, r float4, d float8, m numeric, c numeric(10, 2), iv interval,
	mo money, da date, ts timestamp, o oid, tx text, bo bool);

CREATE FUNCTION pg_temp.every_aggregate(tail text) RETURNS TABLE (what text, result text) LANGUAGE sql AS $$
	SELECT what, pg_temp.same('SELECT ' || CASE WHEN tail LIKE '%GROUP%' THEN 'k, ' ELSE '' END || list || ' FROM t ' || tail)
	FROM (VALUES
		('count', '@count(*), @count(s), @count(tx), @count(bo), @regr_count(d, d)'),
		('sum', '@sum(s), @sum(n), @sum(b), @sum(r), @sum(d), @sum(m), @sum(c), @sum(iv), @sum(mo)'),
		('avg', '@avg(s), @avg(n), @avg(b), @avg(r), @avg(d), @avg(m), @avg(c), @avg(iv)'),
		('min', '@min(s), @min(n), @min(b), @min(r), @min(d), @min(m), @min(c), @min(iv), @min(mo), @min(da), @min(ts), @min(o), @min(tx)'),
		('max', '@max(s), @max(n), @max(b), @max(r), @max(d), @max(m), @max(c), @max(iv), @max(mo), @max(da), @max(ts), @max(o), @max(tx)'),
		('variance', '@variance(s), @variance(n), @variance(b), @variance(r), @variance(d), @variance(m), @variance(c)'),
		('stddev_pop', '@stddev_pop(s), @stddev_pop(n), @stddev_pop(b), @stddev_pop(r), @stddev_pop(d), @stddev_pop(m), @stddev_pop(c)'),
		('regr', '@corr(d, r), @covar_pop(d, r), @covar_samp(d, r), @regr_slope(d, r), @regr_avgx(d, r), @regr_avgy(d, r), @regr_r2(d, r), @regr_syy(d, r)'),
		('bits', '@bit_and(s), @bit_or(n), @bit_xor(b), @bit_and(b), @bool_and(bo), @bool_or(bo), @every(bo)')
	) AS lists(what, list)
$$;

-- no rows
SELECT * FROM pg_temp.every_aggregate('');
SELECT * FROM pg_temp.every_aggregate('GROUP BY k');

-- one row of NULLs, ungrouped and as a group
INSERT INTO t (k) VALUES (1);
SELECT * FROM pg_temp.every_aggregate('');
SELECT * FROM pg_temp.every_aggregate('GROUP BY k');

-- one value, then one value and a NULL, then the group of NULLs
INSERT INTO t VALUES (2, -1, -1, -1, -1.5, -1.5, -1.50, -1.50, '-1 day', -1, '2000-01-01', '2000-01-01', 1, '', false);
SELECT * FROM pg_temp.every_aggregate('');
SELECT * FROM pg_temp.every_aggregate('GROUP BY k');
INSERT INTO t SELECT 1, s, n, b, r, d, m, c, iv, mo, da, ts, o, tx, bo FROM t WHERE k = 2;
INSERT INTO t SELECT NULL, s, n, b, r, d, m, c, iv, mo, da, ts, o, tx, bo FROM t WHERE k = 2;
SELECT * FROM pg_temp.every_aggregate('GROUP BY k');
SELECT * FROM pg_temp.every_aggregate('WHERE k = 3');

-- a pair counts only if neither side is NULL
SELECT pg_temp.same('SELECT @regr_count(y, x), @regr_avgx(y, x), @regr_avgy(y, x), @covar_pop(y, x)
	FROM (VALUES (1.0::float8, NULL::float8), (NULL, 2), (3, 4), (5, 7), (NULL, NULL)) AS v(y, x)');
-- filters that are never true, or always NULL
SELECT pg_temp.same('SELECT @count(*) FILTER (WHERE false), @sum(n) FILTER (WHERE NULL), @max(tx) FILTER (WHERE n > 5), @avg(c) FILTER (WHERE n > 5) FROM t');
