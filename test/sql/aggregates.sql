-- Every family of aggregates, over every type for which core has it.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

CREATE TEMP TABLE t AS
SELECT i, i % 7 AS k,
	nullif(i * 7919 % 2003, 5)::int2 AS s, nullif(i * 7919 % 2000003, 5) - 1000000 AS n,
	(nullif(i % 11, 0) * 1234567890123456 - 5000000000000000)::int8 AS b,
	(nullif(i % 13, 0) / 4.0)::float4 AS r, (nullif(i % 17, 0) / 8.0 - 1)::float8 AS d,
	nullif(i % 19, 0)::float8 AS e,
	nullif(i * 7919 % 100003, 7)::numeric / 7 AS m, (nullif(i % 23, 0) * 12345.678)::numeric(14, 3) AS c,
	(nullif(i % 29, 0) * 123456789012345.5)::numeric(20, 1) AS wide,
	nullif(i % 31, 0) * interval '1 day 2 hours' AS iv, (nullif(i % 37, 0) * 1.5)::numeric::money AS mo,
	date '2000-01-01' + nullif(i % 41, 0) AS da, time '00:00' + nullif(i % 43, 0) * interval '1 minute' AS ti,
	timestamp '2000-01-01' + nullif(i % 47, 0) * interval '1 hour' AS ts,
	timestamptz '2000-01-01 00:00+00' - nullif(i % 53, 0) * interval '1 hour' AS tz,
	(nullif(i % 59, 0) + 4294960000)::oid AS o,
	'x' || nullif(i % 61, 0) AS tx, nullif(i % 3, 0) = 1 AS bo
FROM generate_series(1, 3000) i;
ANALYZE t;

SELECT pg_temp.same('SELECT @count(*) FROM t');
SELECT pg_temp.same('SELECT k, @count(*), @count(s), @count(tx), @count(m), @count(iv) FROM t GROUP BY k');

SELECT agg, type, pg_temp.same(format('SELECT @%s(%s) FROM t', agg, type)) AS ungrouped,
	pg_temp.same(format('SELECT k, @%s(%s) FROM t GROUP BY k', agg, type)) AS grouped
FROM unnest(ARRAY['sum', 'avg', 'min', 'max']) agg, unnest(ARRAY['s', 'n', 'b', 'r', 'd', 'm', 'c', 'wide']) type;

SELECT agg, type, pg_temp.same(format('SELECT @%s(%s) FROM t', agg, type)) AS ungrouped,
	pg_temp.same(format('SELECT k, @%s(%s) FROM t GROUP BY k', agg, type)) AS grouped
FROM unnest(ARRAY['stddev', 'stddev_pop', 'stddev_samp', 'variance', 'var_pop', 'var_samp']) agg,
	unnest(ARRAY['s', 'n', 'b', 'r', 'd', 'm', 'c']) type;

SELECT agg, type, pg_temp.same(format('SELECT k, @%s(%s) FROM t GROUP BY k', agg, type))
FROM unnest(ARRAY['min', 'max']) agg, unnest(ARRAY['iv', 'mo', 'da', 'ti', 'ts', 'tz', 'o', 'tx', 'tx COLLATE "C"']) type;
SELECT pg_temp.same('SELECT k, @sum(iv), @avg(iv), @sum(mo) FROM t GROUP BY k');

SELECT agg, pg_temp.same(format('SELECT @%s(d, e) FROM t', agg)) AS ungrouped,
	pg_temp.same(format('SELECT k, @%s(d, e) FROM t GROUP BY k', agg)) AS grouped
FROM unnest(ARRAY['corr', 'covar_pop', 'covar_samp', 'regr_avgx', 'regr_avgy', 'regr_count', 'regr_intercept',
	'regr_r2', 'regr_slope', 'regr_sxx', 'regr_sxy', 'regr_syy']) agg;

SELECT agg, type, pg_temp.same(format('SELECT k, @%s(%s) FROM t GROUP BY k', agg, type))
FROM unnest(ARRAY['bit_and', 'bit_or', 'bit_xor']) agg, unnest(ARRAY['s', 'n', 'b']) type;
SELECT pg_temp.same('SELECT k, @bool_and(bo), @bool_or(bo), @every(bo), @bool_and(i > 0), @bool_or(i < 0) FROM t GROUP BY k');

-- several aggregates of one argument share states
SELECT pg_temp.same('SELECT k, @count(n), @sum(n), @avg(n), @stddev(n), @var_pop(n), @min(n), @max(n) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT k, @sum(b), @avg(b), @variance(b), @sum(c), @avg(c), @min(c), @count(c) FROM t GROUP BY k');
SELECT pg_temp.same('SELECT k, @sum(m), @avg(m), @stddev(m), @variance(m) FROM t GROUP BY k');
-- aggregates with different filters do not
SELECT pg_temp.same('SELECT k, @sum(n), @sum(n) FILTER (WHERE i % 2 = 0), @avg(c) FILTER (WHERE d > 0), @avg(c), @count(*) FILTER (WHERE bo), @max(tx) FILTER (WHERE bo) FROM t GROUP BY k');

-- gpu_product, which core does not have
SELECT gpu_product(x) FROM generate_series(1, 20) x;
SELECT gpu_product(x), gpu_product(x) FILTER (WHERE x IS NULL) FROM unnest(ARRAY[2, NULL, -0.5, 8]::float8[]) x;

-- result types are core's; for enums the result type is anyelement instead of anyenum
SELECT p.proname, pg_get_function_identity_arguments(p.oid), p.prorettype::regtype, q.prorettype::regtype
FROM pg_proc p JOIN pg_proc q ON q.proname = substr(p.proname, 5) AND q.proargtypes = p.proargtypes
	AND q.pronamespace = 'pg_catalog'::regnamespace
WHERE p.proname LIKE 'gpu\_%' AND p.prokind = 'a' AND p.prorettype <> q.prorettype AND q.prorettype <> 'anyenum'::regtype;
-- no aggregate of core is missing
SELECT q.oid::regprocedure FROM pg_proc q
WHERE q.pronamespace = 'pg_catalog'::regnamespace AND q.prokind = 'a'
	AND q.proname ~ '^(count|sum|avg|stddev.*|var.*|corr|covar_.*|regr_.*|bool_.*|every|bit_(and|or|xor)|min|max)$'
	AND NOT EXISTS (SELECT FROM pg_proc p WHERE p.proname = 'gpu_' || q.proname AND p.proargtypes = q.proargtypes)
	-- oid8 is a type from 19 on
	AND NOT pg_get_function_identity_arguments(q.oid) ~ 'bit|record|oid8'
ORDER BY 1;
-- all are parallel safe and have a comment
SELECT p.oid::regprocedure FROM pg_proc p
WHERE p.proname LIKE 'gpu%' AND p.pronamespace = (SELECT extnamespace FROM pg_extension WHERE extname = 'gpuagg')
	AND (obj_description(p.oid, 'pg_proc') IS NULL OR (p.prokind = 'a' AND p.proparallel <> 's'))
ORDER BY 1;

-- the greatest key together with a value of its row: on a GPU one of them is derived from the other's state
CREATE TABLE greatest_beside AS SELECT i % 3 AS k, i::int8 AS v, (i * 7 % 1000)::int8 AS x FROM generate_series(1, 300) i;
ALTER TABLE greatest_beside ALTER v SET NOT NULL, ALTER x SET NOT NULL;
SET gpuagg.require = 'require';
SELECT k, gpu_max(v), gpu_argmax(x, v) FROM greatest_beside GROUP BY k ORDER BY k;
RESET gpuagg.require;
DROP TABLE greatest_beside;
