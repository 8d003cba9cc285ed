-- Results that are computed from states without core's final functions, or for many groups together: digits and stored form are core's.
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE final_values AS
SELECT g, i2, i4, i8, n0, n1, n2, n3, n5, n9, n12, f4, f8, nn
FROM generate_series(1, 2000) g, LATERAL (SELECT count(*) AS rows FROM generate_series(1, 1 + g * 7919 % 23)) c, generate_series(1, c.rows) r,
	LATERAL (SELECT (CASE WHEN g % 50 = 0 THEN 0 WHEN g % 2 = 0 THEN 1 ELSE (-1) ^ r END * (((g * 15485863::int8 + r * 32452843::int8) % 1000003) / 1000003.0) *
		10.0 ^ (g % 27))::numeric(40, 14) AS v) w,
	LATERAL (SELECT (v % 32000)::int2 AS i2, (v % 2000000000)::int AS i4, (v % 9000000000000000000)::int8 AS i8, v::numeric(28, 0) AS n0,
		CASE WHEN abs(v) < 1e25 THEN v END::numeric(27, 1) AS n1, CASE WHEN r % 3 > 0 AND abs(v) < 1e24 THEN v END::numeric(27, 2) AS n2,
		CASE WHEN abs(v) < 1e20 THEN v END::numeric(24, 3) AS n3, CASE WHEN abs(v) < 1e20 THEN v END::numeric(26, 5) AS n5,
		CASE WHEN abs(v) < 1e15 THEN v END::numeric(25, 9) AS n9, CASE WHEN abs(v) < 1e12 THEN v END::numeric(25, 12) AS n12,
		(v % 1e6)::float4 AS f4, CASE WHEN r % 4 > 0 THEN v END::float8 AS f8,
		CASE WHEN g % 400 = 1 AND r = 2 THEN 'NaN' ELSE v % 1e9 END::numeric(12, 2) AS nn) x;
ANALYZE final_values;
-- Returns the rows that differ. It compares columns with their types and sizes in bytes.
CREATE FUNCTION differing(aggregates text, tail text DEFAULT '') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE query text := format('SELECT g, %s FROM final_values GROUP BY g %s', aggregates, tail);
	n bigint;
BEGIN
	PERFORM set_config('gpuagg.require', 'require', true);
	EXECUTE 'CREATE TEMP TABLE ours AS ' || query;
	PERFORM set_config('gpuagg.require', 'allow', true), set_config('gpuagg.enabled', 'off', true);
	EXECUTE 'CREATE TEMP TABLE core AS ' || replace(query, 'gpu_', '');
	SELECT count(*) INTO n FROM (SELECT ours::text, pg_column_size(ours.*) FROM ours) o FULL JOIN (SELECT core::text, pg_column_size(core.*) FROM core) c
		ON o.ours = c.core AND o.pg_column_size = c.pg_column_size WHERE o.ours IS NULL OR c.core IS NULL;
	DROP TABLE ours, core;
	PERFORM set_config('gpuagg.enabled', 'on', true);
	RETURN n;
END $$;
SELECT c, differing(format('gpu_sum(%1$s) AS a, gpu_avg(%1$s) AS b, gpu_min(%1$s) AS c, gpu_max(%1$s) AS d, gpu_count(%1$s) AS e', c))
FROM unnest('{i2,i4,i8,n0,n1,n2,n3,n5,n9,n12,nn}'::text[]) c;
SELECT c, differing(format('gpu_stddev(%1$s) AS a, gpu_stddev_pop(%1$s) AS b, gpu_variance(%1$s) AS c, gpu_var_pop(%1$s) AS d, gpu_avg(%1$s) FILTER (WHERE i4 > 0) AS e', c))
FROM unnest('{i2,i4,i8,n2,nn}'::text[]) c;
-- floats: the GPU adds them exactly; with few groups the CPU engine adds them as core does
SELECT set_config('gpuagg.engine', 'cpu', false);
SELECT c, differing(format('gpu_sum(%1$s) AS a, gpu_avg(%1$s) AS b, gpu_min(%1$s) AS c, gpu_max(%1$s) AS d, gpu_count(%1$s) AS e, '
	'gpu_stddev(%1$s) AS f, gpu_stddev_pop(%1$s) AS g2, gpu_variance(%1$s) AS h, gpu_var_pop(%1$s) AS i, gpu_avg(%1$s) FILTER (WHERE i4 > 0) AS j', c))
FROM unnest('{f4,f8}'::text[]) c;
SELECT differing('gpu_corr(f8, f4) AS a, gpu_covar_pop(f8, f4) AS b, gpu_covar_samp(f8, f4) AS c, gpu_regr_slope(f8, f4) AS d, gpu_regr_intercept(f8, f4) AS e, gpu_regr_r2(f8, f4) AS f, '
	'gpu_regr_sxx(f8, f4) AS h, gpu_regr_syy(f8, f4) AS i, gpu_regr_sxy(f8, f4) AS j, gpu_regr_avgx(f8, f4) AS k, gpu_regr_avgy(f8, f4) AS l, gpu_regr_count(f8, f4) AS m');
RESET gpuagg.engine;
-- groups that HAVING removes, and groups in order
SELECT differing('gpu_avg(n2) AS a, gpu_sum(i8) AS b', 'HAVING gpu_sum(i4) > 0'), differing('gpu_avg(n2) AS a, gpu_bool_and(i4 > 0) AS b, gpu_stddev(i4) AS c'),
	differing('gpu_avg(i4) AS a', 'HAVING gpu_avg(i4) IS NULL OR g % 3 = 0'), differing('gpu_avg(i4) AS a, gpu_sum(n5) AS b', 'ORDER BY gpu_sum(n5) DESC, g LIMIT 700');
-- results that are used after the tuple they came with
SELECT gpu_count(*), gpu_min(a), gpu_max(b) FROM (SELECT g, gpu_avg(n2) AS a, gpu_sum(i8) AS b FROM final_values GROUP BY g OFFSET 0) q;
SELECT array_agg(a) FROM (SELECT gpu_sum(n2) AS a FROM final_values WHERE g < 20 GROUP BY g ORDER BY g) q;
SELECT x, a FROM generate_series(1, 3) x, LATERAL (SELECT g, gpu_avg(n2) AS a FROM final_values WHERE g % 3 = x % 3 GROUP BY g ORDER BY g OFFSET 300 LIMIT 2) q;
SELECT GROUPING(g), g, gpu_avg(n2), gpu_sum(i4) FROM final_values WHERE g < 4 GROUP BY GROUPING SETS ((g), ()) ORDER BY 1, 2;
-- variances of integers: few and many rows, small and large values, equal values, both signs, more digits than 128 bits have
DROP TABLE final_values;
CREATE TABLE final_values AS
SELECT g, CASE WHEN g % 9 = 4 THEN v > 0 WHEN r > 1 THEN r % 2 = 0 END AS b, (v % 32767)::int2 AS i2, (v % 2147483647)::int AS i4,
	(v % 9223372036854775807)::int8 AS i8, (v % 3)::int AS few, (100000 + r * g % 7 % 2)::int8 AS near, CASE WHEN g % 3 = 0 THEN v::float8 / 7 END AS f8,
	CASE WHEN g % 10 = 3 AND r = 1 THEN 'NaN' WHEN g % 10 = 5 THEN '-Infinity' WHEN g % 10 = 7 THEN 1e100 ELSE v::float8 END AS odd
FROM generate_series(1, 1200) g, LATERAL generate_series(1, CASE WHEN g % 100 = 0 THEN 700 ELSE 1 + g * 7919 % 5 END) r,
	LATERAL (SELECT trunc((((g * 15485863::int8 + r * 32452843::int8) % 1000003) / 1000003.0 - CASE WHEN g % 2 = 0 THEN 0.5 ELSE 0 END) * 10.0 ^ (g % 20)) AS v) w;
INSERT INTO final_values (g, i4, i8, few) SELECT 2000 + g % 7, g, 9223372036854775807 - g, NULLIF(g % 7, 3) FROM generate_series(0, 99) g;
ANALYZE final_values;
SELECT c, differing(format('gpu_stddev(%1$s) AS a, gpu_stddev_pop(%1$s) AS b, gpu_variance(%1$s) AS c, gpu_var_pop(%1$s) AS d, gpu_stddev_samp(%1$s) FILTER (WHERE i4 %% 2 = 0) AS e', c))
FROM unnest('{i2,i4,i8,few,near}'::text[]) c;
SELECT set_config('gpuagg.engine', 'cpu', false);
SELECT c, differing(format('gpu_stddev(%1$s) AS a, gpu_stddev_pop(%1$s) AS b, gpu_variance(%1$s) AS c, gpu_var_pop(%1$s) AS d, gpu_stddev_samp(%1$s) FILTER (WHERE i4 %% 2 = 0) AS e', c))
FROM unnest('{f8,odd}'::text[]) c;
RESET gpuagg.engine;
-- keys of every kind
SELECT differing('i2, f8, gpu_count(*) AS n', ', i2, f8'), differing('b, i8, few, gpu_sum(i4) AS n', ', b, i8, few'),
	differing('i4::oid AS o, i2::text AS t, date ''2000-01-01'' + i2 AS d, gpu_max(i8) AS n', ', i4::oid, i2::text, date ''2000-01-01'' + i2'),
	differing('f8::float4 AS f, f8::numeric(30, 3) AS x, gpu_avg(i8) AS n', ', f8::float4, f8::numeric(30, 3)');
-- scales without digits before the point; an aggregate that would fail for a group that nobody reads
CREATE TABLE scales AS SELECT g % 300 AS g, (g * 7919 % 2003 * 100)::numeric(6, -2) AS s2, (g / 5000.0)::numeric(3, 3) AS s3, (g * 1e-20)::numeric(20, 30) AS s30
FROM generate_series(1, 2000) g;
SELECT gpu_count(*) FROM (SELECT g, gpu_sum(s2) AS a, gpu_avg(s2) AS b, gpu_sum(s3) AS c, gpu_avg(s3) AS d, gpu_avg(s30) AS e FROM scales GROUP BY g) ours;
CREATE TEMP TABLE ours AS SELECT g, gpu_sum(s2) AS a, gpu_avg(s2) AS b, gpu_sum(s3) AS c, gpu_avg(s3) AS d, gpu_avg(s30) AS e, gpu_min(s30) AS f FROM scales GROUP BY g;
SET gpuagg.require = 'allow';
CREATE FUNCTION ninth(a bigint[]) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / (a[2] - 9); END $$;
CREATE AGGREGATE but_nine(int) (SFUNC = int4_avg_accum, STYPE = bigint[], INITCOND = '{0,0}', FINALFUNC = ninth);
SELECT gpu_count(*) FROM (SELECT ours::text, pg_column_size(ours.*) FROM ours EXCEPT
	SELECT core::text, pg_column_size(core.*) FROM (SELECT g, sum(s2) AS a, avg(s2) AS b, sum(s3) AS c, avg(s3) AS d, avg(s30) AS e, min(s30) AS f FROM scales GROUP BY g) core) differ;
SELECT g, gpu_avg(g) AS a, but_nine(g) FROM generate_series(1, 20) g GROUP BY g ORDER BY g LIMIT 3;
SELECT g, gpu_avg(g) AS a, but_nine(g) FROM generate_series(1, 20) g GROUP BY g ORDER BY g LIMIT 10;
-- a cursor WITH HOLD that is read backwards
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT g, gpu_sum(s3) AS a, gpu_avg(s30) AS b FROM scales GROUP BY g ORDER BY g;
FETCH 2 FROM c;
FETCH ABSOLUTE 290 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
FETCH ABSOLUTE 3 FROM c;
CLOSE c;
DROP AGGREGATE but_nine(int);
DROP FUNCTION ninth, differing;
DROP TABLE final_values, scales, ours;
