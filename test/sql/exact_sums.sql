-- gpuagg.float_sum = exact: sums, averages, variances and regression of floats are exact and rounded once, so that every
-- plan gives the same bits. Answers are compared with exact arithmetic by numerics.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET extra_float_digits = 3;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
SHOW gpuagg.float_sum;

-- cancellation, values of all magnitudes, subnormal numbers; core's sums follow
CREATE TABLE cancel AS SELECT * FROM (VALUES (1, 1e308::float8, 1), (1, 1, 2), (1, -1e308, 3), (2, 1e308, 4), (2, 1e308, 5), (2, -1e308, 6), (2, -1e308, 7),
	(2, 0.5, 8), (3, 5e-324, 9), (3, 1e-310, 10), (3, -1e-310, 11), (4, '-0', 12), (4, '-0', 13), (5, 0.1, 14), (5, 0.1, 15), (5, 0.1, 16),
	(6, 1e200, 17), (6, 1e-200, 18), (6, -1e200, 19), (6, 1e-200, 20)) v(k, x, i);
ANALYZE cancel;
SET gpuagg.float_sum = exact;
SELECT k, gpu_sum(x), gpu_avg(x), gpu_stddev(x) FROM cancel WHERE k NOT IN (1, 2) GROUP BY k ORDER BY k;
SELECT gpu_sum(x) FROM cancel;
SELECT k, gpu_sum(x), gpu_sum(x ORDER BY i DESC) FROM cancel WHERE k <= 2 GROUP BY k ORDER BY k;
SELECT k, gpu_sum(x), gpu_avg(x), gpu_stddev_pop(x) FROM (VALUES (1, 'NaN'::float8), (1, 3), (2, 'inf'), (2, 3), (3, 'inf'), (3, '-inf'), (4, NULL), (5, '-inf'), (6, NULL), (6, 3)) v(k, x)
GROUP BY k ORDER BY k;
-- only the result can overflow
SELECT gpu_sum(x) FROM (VALUES (1e308::float8), (1e308)) v(x);
SELECT gpu_var_pop(x) FROM (VALUES (1e308::float8), (-1e308)) v(x);
SELECT gpu_sum(x) FROM (VALUES (3e38::float4), (3e38)) v(x);
SELECT gpu_sum(x), gpu_avg(x) FROM (VALUES (3e38::float4), (3e38), (-3e38)) v(x);
-- the setting applies to core's aggregates with gpuagg.replace_builtin
SELECT sum(x) FROM cancel WHERE k = 1;
SET gpuagg.replace_builtin = on;
SELECT sum(x), avg(x) FROM cancel WHERE k = 1;
RESET gpuagg.replace_builtin;
SET gpuagg.engine = 'cpu';
EXPLAIN (VERBOSE, COSTS OFF) SELECT sum(x), gpu_count(x) FROM cancel;
RESET gpuagg.engine;

-- x and y are integers xn and yn times 2^-60
CREATE TABLE exact AS
SELECT i, i % 7 AS k, xn, yn, (xn * 0.5 ^ 60)::float8 AS x, (yn * 0.5 ^ 60)::float8 AS y, ((i * 7919 % 100003) / 64.0)::float4 AS f
FROM (SELECT i, hashint8(i)::numeric * CASE WHEN i % 7 = 0 THEN 2 ^ (i % 90)::numeric WHEN i % 7 = 1 THEN 0 ELSE 2 ^ (20 + i % 7)::numeric END AS xn,
		hashint8(i + 1000000)::numeric * 2 ^ (30 + i % 3)::numeric AS yn
	FROM (SELECT generate_series(1, 5000) AS i) g) n;
UPDATE exact SET x = xn::float8 * 2::float8 ^ -60, y = yn::float8 * 2::float8 ^ -60;
INSERT INTO exact (i, k, x, y) VALUES (0, 3, NULL, 1), (0, 4, 1, NULL);
UPDATE exact SET xn = 2 ^ 60::numeric WHERE i = 0 AND k = 4;
VACUUM ANALYZE exact;

-- the same with numerics of many digits, converted at the end
CREATE FUNCTION rounded(numerator numeric, denominator numeric, exponent int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
$$ SELECT (round(numerator, 400) / nullif(denominator, 0))::float8 * 2::float8 ^ exponent $$;
CREATE TABLE oracle AS
SELECT k, rounded(sx, 1, -60) AS sum, rounded(sx, n, -60) AS avg, rounded(n * sxx - sx * sx, n * (n - 1), -120) AS var,
	sqrt(round(n * sxx - sx * sx, 400) / (n * n))::float8 * 2::float8 ^ -60 AS stddev
FROM (SELECT k, count(xn)::numeric AS n, sum(xn) AS sx, sum(xn * xn) AS sxx FROM exact GROUP BY k) s;
SELECT count(*), count(*) FILTER (WHERE (o.sum, o.avg, o.var, o.stddev) IS DISTINCT FROM (a.sum, a.avg, a.var, a.stddev)) AS differ
FROM oracle o JOIN (SELECT k, gpu_sum(x) AS sum, gpu_avg(x) AS avg, gpu_variance(x) AS var, gpu_stddev_pop(x) AS stddev FROM exact GROUP BY k) a USING (k);
SELECT count(*), count(*) FILTER (WHERE (o.slope, o.cov, o.corr) IS DISTINCT FROM (a.slope, a.cov, a.corr)) AS differ
FROM (SELECT k, rounded(sxy, sxx, 0) AS slope, rounded(sxy, n * n, -120) AS cov, (sign(sxy) * sqrt(round(sxy * sxy, 400) / nullif(sxx * syy, 0)))::float8 AS corr
	FROM (SELECT k, n, n * sxy - sx * sy AS sxy, n * sxx - sx * sx AS sxx, n * syy - sy * sy AS syy
		FROM (SELECT k, count(*)::numeric AS n, sum(xn) AS sx, sum(yn) AS sy, sum(xn * xn) AS sxx, sum(yn * yn) AS syy, sum(xn * yn) AS sxy FROM exact WHERE i > 0 GROUP BY k) s) c) o
	JOIN (SELECT k, gpu_regr_slope(y, x) AS slope, gpu_covar_pop(y, x) AS cov, gpu_corr(y, x) AS corr FROM exact WHERE i > 0 GROUP BY k) a USING (k);

-- the bits of all aggregates: of one plan, and of others
CREATE FUNCTION bits(source text, keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format($q$SELECT md5(string_agg(b::text, ' ' ORDER BY b::text)) FROM (SELECT ARRAY[float8send(gpu_sum(x)), float8send(gpu_avg(x)), float8send(gpu_variance(x)),
		float8send(gpu_stddev(x)), float8send(gpu_var_pop(x)), float8send(gpu_stddev_pop(x)), float4send(gpu_sum(f)), float8send(gpu_avg(f)), float8send(gpu_stddev(f)),
		float8send(gpu_regr_sxx(y, x)), float8send(gpu_regr_syy(y, x)), float8send(gpu_regr_sxy(y, x)), float8send(gpu_regr_avgx(y, x)), float8send(gpu_regr_avgy(y, x)),
		float8send(gpu_regr_r2(y, x)), float8send(gpu_regr_slope(y, x)), float8send(gpu_regr_intercept(y, x)), float8send(gpu_covar_pop(y, x)),
		float8send(gpu_covar_samp(y, x)), float8send(gpu_corr(y, x)), float8send(gpu_sum(x) FILTER (WHERE f > 100))] AS b FROM %s GROUP BY %s) s$q$, source, keys) INTO result;
	RETURN result;
END $$;
CREATE TABLE plain AS SELECT keys, bits('exact', keys) AS answer FROM (VALUES ('k'), ('i % 1000'), ('()'), ('ROLLUP (k, i % 3)')) v(keys);
CREATE FUNCTION same(source text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(CASE WHEN bits(source, keys) = answer THEN 'same' ELSE 'differs: ' || keys END, ', ') FROM plain $$;
SELECT same('(SELECT * FROM exact ORDER BY x DESC, i) s') AS sorted, same('(SELECT * FROM exact ORDER BY hashint8(i)) s') AS shuffled;
SET gpuagg.enabled = off;
SELECT same('exact') AS row_by_row;
SET enable_hashagg = off;
SELECT same('exact') AS sorted_groups;
RESET enable_hashagg;
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SET gpuagg.feed = 'tuples';
SELECT same('exact') AS tuples;
RESET gpuagg.feed;
SET gpuagg.batch_rows = 64;
SELECT same('exact') AS small_batches;
RESET gpuagg.batch_rows;
SET gpuagg.strategy = 'sort';
SELECT same('exact') AS sort;
RESET gpuagg.strategy;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT same('exact') AS spilled;
RESET work_mem;
RESET hash_mem_multiplier;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.worker_cost = 0;
SET max_parallel_workers_per_gather = 2;
SELECT same('exact') AS parallel;
RESET gpuagg.require;
SET gpuagg.enabled = off;
SELECT same('exact') AS parallel_of_core;
RESET gpuagg.enabled;
SET max_parallel_workers_per_gather = 0;

-- magnitudes that change within a column, with few values of others, and groups that come later
CREATE TABLE scales AS SELECT i, i % 4 + i / 8000 * 20 AS k, v * CASE WHEN i BETWEEN 5000 AND 7000 THEN 1e25 WHEN i % 300 = 7 THEN 1e-40 WHEN i % 700 = 9 THEN 1e40 ELSE 0.01 END AS x,
	v * v AS y, v::float4 AS f FROM (SELECT i, hashint4(i)::float8 / 4096 AS v FROM generate_series(1, 9000) i) s;
INSERT INTO scales VALUES (9001, 3, 'NaN', 1, 1), (9002, 2, '-0', '-0', '-0'), (9003, 1, 3, 'inf', 2);
SET gpuagg.enabled = off;
CREATE TABLE plain_scales AS SELECT keys, bits('scales', keys) AS answer FROM (VALUES ('k'), ('()'), ('i % 300')) v(keys);
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SELECT keys, bits('scales', keys) = answer AS same, bits('(SELECT * FROM scales ORDER BY i % 50, i) s', keys) = answer AS other_order FROM plain_scales;
SET gpuagg.batch_rows = 512;
SELECT keys, bits('scales', keys) = answer AS same FROM plain_scales;
RESET gpuagg.batch_rows;
RESET gpuagg.require;
DROP TABLE scales, plain_scales;

-- windows: rows are removed from a state as exactly as they were added
CREATE FUNCTION frames() RETURNS TABLE (i bigint, b bytea[]) LANGUAGE sql AS $$
	SELECT i, ARRAY[float8send(gpu_sum(x) OVER w), float8send(gpu_stddev_pop(x) OVER w), float8send(gpu_corr(y, x) OVER w)] FROM
	(SELECT i, y, CASE i % 50 WHEN 7 THEN 'inf' WHEN 9 THEN 'NaN' WHEN 11 THEN 1e-300 ELSE x END AS x FROM exact WHERE i BETWEEN 1 AND 300) s
	WINDOW w AS (ORDER BY i ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) $$;
SELECT count(*), count(*) FILTER (WHERE f.b IS DISTINCT FROM (SELECT ARRAY[float8send(gpu_sum(x)), float8send(gpu_stddev_pop(x)), float8send(gpu_corr(y, x))] FROM
	(SELECT i, y, CASE i % 50 WHEN 7 THEN 'inf' WHEN 9 THEN 'NaN' WHEN 11 THEN 1e-300 ELSE x END AS x FROM exact) s WHERE s.i BETWEEN greatest(f.i - 3, 1) AND f.i)) AS differ FROM frames() f;

-- frames that begin with NULL
SELECT i, gpu_sum(x) OVER w, gpu_stddev(x) OVER w, gpu_corr(x, x) OVER w FROM (VALUES (1, NULL::float8), (2, NULL), (3, 1), (4, 5), (5, NULL), (6, NULL)) v(i, x)
WINDOW w AS (ORDER BY i ROWS 1 PRECEDING);

-- states of parts, as text and back
CREATE TABLE states (k int, s text);
INSERT INTO states SELECT k, gpuagg_merge(gpuagg_pack('gpuagg_exact_corr(float8, float8)'::regprocedure, y, x))::text FROM exact GROUP BY k, i % 5;
SELECT count(*), count(*) FILTER (WHERE a.r IS DISTINCT FROM gpuagg_finish(m, 'gpuagg_exact_corr(float8, float8)'::regprocedure, NULL::float8)) AS differ
FROM (SELECT k, gpuagg_merge(s::gpuagg_state) AS m FROM states GROUP BY k) p JOIN (SELECT k, gpu_corr(y, x) AS r FROM exact GROUP BY k) a USING (k);
SELECT gpuagg_merge(s) FROM (SELECT gpuagg_merge(gpuagg_pack('gpuagg_exact_sum(float8)'::regprocedure, x)) AS s FROM exact UNION ALL
	SELECT gpuagg_merge(gpuagg_pack('gpuagg_exact_stddev_pop(float8)'::regprocedure, x)) FROM exact) t;
SELECT gpuagg_merge(s) FROM (SELECT gpuagg_merge(gpuagg_pack('gpuagg_exact_sum(float8)'::regprocedure, x)) AS s FROM exact UNION ALL
	SELECT gpuagg_merge(gpuagg_pack('gpu_sum(numeric)'::regprocedure, xn)) FROM exact) t;
-- rows with NULL have a state, too, but no rows have none
SELECT gpuagg_merge(gpuagg_pack('gpuagg_exact_sum(float8)'::regprocedure, nullif(x, x))) FILTER (WHERE i > 4500) IS NULL AS no_state,
	gpuagg_merge(gpuagg_pack('gpuagg_exact_corr(float8, float8)'::regprocedure, nullif(y, y), x)) FILTER (WHERE i > 5000) IS NULL AS no_rows FROM exact;
-- invalid states
SELECT '\x0110'::gpuagg_state;
SELECT '\x0110010100000000000000000005'::gpuagg_state;
SELECT '\x01100104000000000000000000057fff'::gpuagg_state;
SELECT '\x011001010000000000000000057ffe0000000000000001'::gpuagg_state;

-- of another aggregate: it has no squares
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpuagg_exact_sum(float8)'::regprocedure, x)), 'gpuagg_exact_var_pop(float8)'::regprocedure, NULL::float8) FROM cancel;
-- windows that are almost full have no room for their sum
SELECT gpuagg_finish(gpuagg_merge(s), 'gpuagg_exact_var_pop(float8)'::regprocedure, NULL::float8) FROM (SELECT '\x0110010200000000000000000203e80000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000004000000000000000'::gpuagg_state AS s FROM generate_series(1, 2)) t;

-- a plan keeps the setting with which it was made, and prepared statements are planned anew
PREPARE one_sum AS SELECT gpu_sum(x) FROM cancel WHERE k = 6;
EXECUTE one_sum;
SET plan_cache_mode = force_generic_plan;
EXECUTE one_sum;
SET gpuagg.float_sum = core;
EXECUTE one_sum;
SET gpuagg.float_sum = exact;
EXECUTE one_sum;
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_sum(x) FROM cancel WHERE k >= 5 GROUP BY k ORDER BY k;
SET LOCAL gpuagg.float_sum = core;
FETCH ALL FROM c;
COMMIT;
CREATE FUNCTION exact_here() RETURNS float8 LANGUAGE sql SET gpuagg.float_sum = exact AS 'SELECT gpu_sum(x) FROM cancel WHERE k = 6';
SET gpuagg.float_sum = core;
-- the GPU's sum may be exact without the setting, too
SET gpuagg.engine = cpu;
SELECT exact_here(), gpu_sum(x) FROM cancel WHERE k = 6;
RESET gpuagg.engine;
-- the setting applies to functions that are inlined, also in each other
CREATE FUNCTION inlined(others int) RETURNS SETOF float8 LANGUAGE sql STABLE AS 'SELECT gpu_sum(x) FROM cancel WHERE k = 6 HAVING count(*) > others';
CREATE FUNCTION outer_inlined() RETURNS SETOF float8 LANGUAGE sql STABLE AS 'SELECT * FROM inlined(1)';
SELECT * FROM inlined(1), outer_inlined();
SET gpuagg.float_sum = exact;
SELECT a.*, b.*, (SELECT c FROM inlined(v.i) c) FROM inlined(1) a, outer_inlined() b, (VALUES (1), (9)) v(i);
PREPARE of_core AS SELECT sum(x) FROM cancel WHERE k = 6;
EXECUTE of_core;
SET gpuagg.replace_builtin = on;
EXECUTE of_core;

-- rights to call the aggregate of the query, and the replacement
CREATE ROLE regress_gpuagg_adds;
GRANT SELECT ON cancel TO regress_gpuagg_adds;
EXECUTE one_sum;
REVOKE EXECUTE ON FUNCTION gpu_sum(float8) FROM public;
SET ROLE regress_gpuagg_adds;
EXECUTE one_sum;
SELECT gpu_sum(x) OVER () FROM cancel;
RESET ROLE;
EXECUTE one_sum;
GRANT EXECUTE ON FUNCTION gpu_sum(float8) TO public;
REVOKE EXECUTE ON FUNCTION gpuagg_exact_sum(float8) FROM public;
SET ROLE regress_gpuagg_adds;
EXECUTE one_sum;
RESET ROLE;
GRANT EXECUTE ON FUNCTION gpuagg_exact_sum(float8) TO public;
SET ROLE regress_gpuagg_adds;
EXECUTE one_sum;
RESET ROLE;
RESET gpuagg.replace_builtin;
DROP OWNED BY regress_gpuagg_adds;
DROP ROLE regress_gpuagg_adds;
SET gpuagg.float_sum = core;
-- equal values have no deviation
SELECT gpu_stddev(x) = 0 AS core, gpuagg_exact_stddev_samp(x) = 0 AS exact FROM (SELECT 0.1::float8 AS x FROM generate_series(1, 1000)) s;
-- so many groups that their sums have as much memory as there is: groups without values, with values of one magnitude, with others, and
-- with both; the scale of the column changes while groups come, or groups exceed the memory
SET gpuagg.float_sum = exact;
CREATE TABLE many_sums AS
SELECT (i * 7919) % 30011 AS k, i % 11 AS f, CASE WHEN (i * 7919) % 30011 % 13 = 0 THEN NULL WHEN i % 997 = 0 THEN 1e200 * (i % 5 - 2) ELSE (i * 31 % 10007 - 5000) / 8.0 END::float8 AS x,
	CASE WHEN (i * 7919) % 30011 % 17 <> 0 THEN i * 0.37 END::float8 AS y, (i * 31 % 10007 / 8.0)::float8 AS z
FROM generate_series(1, 120000) i;
ANALYZE many_sums;
CREATE FUNCTION pg_temp.many(memory text, feed text) RETURNS TABLE (groups bigint, sums bigint, filtered bigint, variances bigint, regressions bigint, differences bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('work_mem', memory, true), set_config('gpuagg.feed', feed, true), set_config('gpuagg.require', 'require', true);
	CREATE TEMP TABLE taken AS
	SELECT k, gpu_sum(x) AS s, gpu_sum(y) FILTER (WHERE f = 3) AS t, gpu_avg(y) AS a, gpu_var_pop(y) AS v, gpu_regr_sxy(x, y) AS r FROM many_sums GROUP BY k;
	PERFORM set_config('gpuagg.require', 'forbid', true), set_config('gpuagg.enabled', 'off', true), set_config('work_mem', '64MB', true);
	RETURN QUERY SELECT count(*), count(t.s), count(t.t), count(t.v), count(t.r), count(*) FILTER (WHERE (t.s, t.t, t.a, t.v, t.r) IS DISTINCT FROM (p.s, p.t, p.a, p.v, p.r))
	FROM taken t FULL JOIN (SELECT k, gpuagg_exact_sum(x) AS s, gpuagg_exact_sum(y) FILTER (WHERE f = 3) AS t, gpuagg_exact_avg(y) AS a, gpuagg_exact_var_pop(y) AS v, gpuagg_exact_regr_sxy(x, y) AS r
		FROM many_sums GROUP BY k) p USING (k);
	PERFORM set_config('gpuagg.enabled', 'on', true);
	DROP TABLE taken;
END $$;
SELECT * FROM pg_temp.many('64kB', 'heap');
SELECT * FROM pg_temp.many('1MB', 'heap');
SELECT * FROM pg_temp.many('4MB', 'heap');
SELECT * FROM pg_temp.many('64MB', 'tuples');
-- sums of values of one magnitude take little memory
CREATE FUNCTION pg_temp.spills(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Spill' THEN RETURN NEXT substring(line, '\w+'); END IF;
	END LOOP;
END $$;
SET gpuagg.require = require;
SET work_mem = '1500kB';
SELECT pg_temp.spills('SELECT k, gpu_sum(z) FROM many_sums GROUP BY k');
RESET work_mem;
RESET gpuagg.require;
SELECT k, gpu_sum(x), gpu_sum(y) FROM many_sums WHERE k IN (13, 14, 17, 26) GROUP BY k ORDER BY k;
DROP TABLE many_sums;
SET gpuagg.float_sum = core;
DROP TABLE cancel, exact, oracle, plain, states;
DROP FUNCTION rounded, bits, same, frames, exact_here, inlined, outer_inlined;
