-- Aggregates whose states are made of counted values, compared with plain aggregates. With a GPU server the GPU must take them,
-- unless the comment says that it does not.
SET gpuagg.cache = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE counted AS SELECT i % 97 AS k, 'g' || i % 11 AS name, i % 2 = 0 AS even, (i * 7919 % 1009 - 500)::int2 AS i2,
	CASE WHEN i % 7 = 0 THEN NULL ELSE i * 31 % 40 END AS i4, (ARRAY[9223372036854775807, -9223372036854775808, NULL, i % 5])[1 + i * 13 % 4]::int8 AS i8,
	(i * 37 % 1001 - 500)::float4 / 4 + 0.1::float4 AS f4, (ARRAY['-0', '0', 'NaN', 'infinity', '-infinity', '1e-310', NULL])[1 + i * 3 % 7]::float8 AS odd,
	CASE WHEN i % 9 = 0 THEN NULL WHEN i % 500 = 1 THEN 'NaN' WHEN i % 500 = 2 THEN 'infinity' ELSE (i * 101 % 733 - 300) * exp(i % 13) END::float8 AS f8,
	(i * 7 % 30 - 10)::numeric / 4 AS n, (i * 7 % 30 - 10 + 0.25)::numeric(8, 2) AS n2, date '2026-01-01' + i * 17 % 300 AS d, i::oid AS o,
	CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN 'infinity' ELSE timestamptz '2026-01-01 UTC' + i % 50 * interval '1 h' END AS tz
FROM generate_series(1, 6000) i;
INSERT INTO counted (k, name) VALUES (1000, 'none'), (NULL, NULL);
INSERT INTO counted (k, odd, n2) VALUES (1001, '-0', 5), (1001, '-0', 5.00);
VACUUM ANALYZE counted;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
\set include :srcdir '/include/on_engine.sql'
\i :include
SELECT pg_temp.compared('SELECT k, ' || calls || ' FROM counted GROUP BY k') AS by_key, calls FROM (VALUES ('gpu_value_counts(i4), gpu_value_counts(i2, 3)'),
	('gpu_value_counts(i8), gpu_value_counts(even), gpu_value_counts(f8, 5)'), ('gpu_value_counts(odd), gpu_entropy(odd), gpu_top_k(odd, 3)'),
	('gpu_value_counts(d, 2), gpu_value_counts(tz), gpu_value_counts(o, 1), gpu_value_counts(f4, 1)'), ('gpu_value_counts(n2, 20), gpu_entropy(n2), gpu_top_k(n2, 5)'),
	('gpu_entropy(i4), gpu_entropy(f8), gpu_entropy(k)'), ('gpu_top_k(i4, 3), gpu_top_k(i8, 1000)'),
	('gpu_histogram_equidepth(i4, 5), gpu_histogram_equidepth(f8, 1), gpu_histogram_equidepth(odd, 10000)'), ('gpu_mad(i4), gpu_mad(f4), gpu_mad(odd)'),
	('(gpu_summary(f8)).histogram, (gpu_summary(odd)).q1, (gpu_summary(i4)).distinct_values, (gpu_summary(f4)).count, (gpu_summary(odd)).nulls, (gpu_summary(i8)).max'),
	('gpu_exp_histogram(f8, 20), gpu_exp_histogram(f8, -10), gpu_exp_histogram(odd, 3), gpu_exp_histogram(i4, 0)'),
	('gpu_histogram_auto(f8, 2), gpu_histogram_auto(f4, 50), gpu_histogram_auto(odd, 1000), gpu_histogram_auto(i4, 7)'),
	('gpu_value_counts(i4, 3) FILTER (WHERE even), gpu_entropy(i2) FILTER (WHERE i4 > 20), gpu_mad(i4) FILTER (WHERE false), gpu_histogram_auto(f8, 9) FILTER (WHERE even)'),
	('gpu_value_counts(i4 + 1, 2), gpu_histogram_equidepth(f8 * 2, 4)'), ('gpu_value_counts(i4, 2), count(*), sum(i4), max(f8), count(DISTINCT i4), gpu_median(f8), gpu_max_n(i2, 3)')) c (calls);
SELECT pg_temp.compared(q) AS taken, q FROM (VALUES ('SELECT gpu_value_counts(i2), gpu_entropy(f8), gpu_mad(f8), gpu_histogram_equidepth(i2, 77) FROM counted'),
	('SELECT gpu_value_counts(f8, 3), gpu_entropy(f8), gpu_mad(f8), gpu_histogram_auto(f8, 5) FROM counted WHERE k > 5000'),
	('SELECT name, even, gpu_value_counts(i2, 3), gpu_exp_histogram(i4, 2) FROM counted GROUP BY name, even'), ('SELECT i2, d, gpu_entropy(i4) FROM counted GROUP BY i2, d'),
	('SELECT k, gpu_value_counts(i4, 2) FROM counted GROUP BY k HAVING count(*) > 61'), ('SELECT k, sum(i4), gpu_mad(f4) FROM counted GROUP BY k ORDER BY sum(i4) DESC NULLS LAST, k LIMIT 5'),
	('SELECT k, even, gpu_value_counts(i4, 2), gpu_histogram_equidepth(i2, 3) FROM counted GROUP BY GROUPING SETS ((k, even), (even), ())'),
	('SELECT b.k, gpu_value_counts(b.i4 + x, 2) FROM counted b JOIN (VALUES (1, 5), (2, 6)) v (k, x) ON b.k = v.k GROUP BY b.k')) q (q);
-- the k most frequent of more values than gpu_top_k keeps on the CPU; the GPU counts all of them
SELECT jsonb_path_query_array(gpu_top_k(x, 2), '$[*].value') AS top FROM (SELECT CASE WHEN i % 4 = 0 THEN 7 WHEN i % 4 = 1 THEN -3 ELSE i END AS x FROM generate_series(1, 4001) i) s;
-- types without 64-bit codes
CREATE TYPE size AS ENUM ('small', 'large', 'tiny');
ALTER TABLE counted ADD t text, ADD e size, ADD u uuid, ADD j jsonb;
UPDATE counted SET t = CASE WHEN i2 % 5 <> 0 THEN repeat('value ', i2 % 4 * 700) || i2 % 17 END, e = (ARRAY['small', 'large', 'tiny', NULL])[1 + abs(i2) % 4]::size,
	u = md5((i2 % 9)::text)::uuid, j = CASE WHEN even THEN to_jsonb(i2 % 3) ELSE jsonb_build_array(i2 % 4, name) END WHERE k IS DISTINCT FROM 1000;
VACUUM ANALYZE counted;
SELECT pg_temp.compared('SELECT k, ' || calls || ' FROM counted GROUP BY k') AS by_key, calls FROM (VALUES ('gpu_value_counts(name, 2), gpu_entropy(name), gpu_top_k(name, 3)'), ('gpu_value_counts(t), gpu_entropy(t)'),
	('gpu_value_counts(e), gpu_top_k(e, 2), gpu_entropy(e)'), ('gpu_value_counts(u, 3), gpu_value_counts(j, 4), gpu_value_counts(n, 7)'), ('gpu_value_counts(name) FILTER (WHERE even), gpu_entropy(t) FILTER (WHERE e = ''tiny''), gpu_entropy(t) FILTER (WHERE t IS NULL)'),
	('gpu_value_counts(upper(name)), gpu_entropy(t || name), gpu_value_counts(d - timestamp ''2026-02-01'', 3)')) c (calls);
SELECT pg_temp.compared(q) AS taken, q FROM (VALUES ('SELECT gpu_value_counts(t), gpu_entropy(u), gpu_top_k(e, 1) FROM counted'), ('SELECT gpu_value_counts(t), gpu_entropy(t) FROM counted WHERE k > 5000'),
	('SELECT name, gpu_value_counts(name), gpu_value_counts(e), count(DISTINCT i4) FROM counted GROUP BY name'), ('SELECT t, e, gpu_value_counts(u, 1) FROM counted GROUP BY ROLLUP (t, e)')) q (q);
-- the CPU engine takes these: DISTINCT, ORDER BY, arguments that are no constants, numerics that no decimal can represent
SELECT pg_temp.compared('SELECT k, ' || calls || ' FROM counted GROUP BY k', 'cpu') AS by_key, calls FROM (VALUES ('gpu_value_counts(DISTINCT i4)'), ('gpu_entropy(i4 ORDER BY i2)'),
	('gpu_value_counts(i4, 2 + k * 0) FILTER (WHERE k > 0)'), ('gpu_value_counts(CASE WHEN even THEN 1.0 ELSE 1.00 END)'), ('gpu_value_counts(CASE WHEN i4 = 3 THEN ''NaN'' ELSE n2 END::numeric(8, 2))')) c (calls);

-- errors
SELECT gpu_value_counts(i4, NULL) FROM counted;
SELECT gpu_histogram_equidepth(i4, 0) FROM counted;
SELECT gpu_exp_histogram(i4, 21) FROM counted;
SELECT gpu_mad(x) FROM (VALUES (-1.7e308), (1.7e308), (1.7e308), (1.7e308)) v (x);
-- states, a cursor, a plan that is executed again, and rescans
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_value_counts(anyelement, int4)', i4, 3)), 'gpu_value_counts(anyelement, int4)', NULL::jsonb) FROM counted WHERE k = 3;
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_entropy(anyelement)', i4)), 'gpu_entropy(anyelement)', NULL::float8) FROM counted WHERE k = 3;
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_value_counts(i4, 3), gpu_mad(f8) FROM counted WHERE k < 3 GROUP BY k ORDER BY k;
FETCH 1 FROM c;
SELECT gpu_value_counts(i2, 2) FROM counted;
FETCH 2 FROM c;
COMMIT;
PREPARE counts(int) AS SELECT gpu_value_counts(i2, $1), gpu_histogram_equidepth(i4, $1) FROM counted;
EXECUTE counts(2);
SET plan_cache_mode = force_generic_plan;
EXECUTE counts(3);
EXECUTE counts(0);
RESET plan_cache_mode;
SELECT x, (SELECT gpu_value_counts(i4 + x, 3) FROM counted WHERE k = x) FROM generate_series(1, 3) x;
-- many groups, and many values in little memory; parallel plans
SELECT pg_temp.compared('SELECT o, gpu_value_counts(i2), gpu_histogram_auto(i4, 100000), gpu_mad(f8) FROM counted GROUP BY o') AS many_groups;
SET work_mem = '64kB';
SELECT pg_temp.compared('SELECT k, gpu_value_counts(i2), gpu_exp_histogram(f8, 20), gpu_histogram_equidepth(f8, 100) FROM counted GROUP BY k') AS many_values;
RESET work_mem;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.compared('SELECT k, gpu_value_counts(i4), gpu_mad(f8) FROM counted GROUP BY k', '.') AS parallel;
SET max_parallel_workers_per_gather = 0;

-- columns that are cached, on the GPU if there is one: the second and third query read them
SET gpuagg.cache = eager;
CREATE VIEW cached_counts AS SELECT k, gpu_value_counts(i2, 3) AS a, gpu_entropy(i4) AS b, gpu_histogram_equidepth(f4, 3) FILTER (WHERE i4 > 3) AS c, gpu_mad(f4 * 2) AS d,
	gpu_exp_histogram(odd, 4) AS e, gpu_value_counts(n2) AS f, gpu_value_counts(odd) AS g, gpu_value_counts(name) AS h, gpu_entropy(t) AS i, gpu_value_counts(e) AS j FROM counted WHERE i2 > -400 GROUP BY k;
SELECT pg_temp.compared('SELECT * FROM cached_counts') AS first, pg_temp.compared('SELECT * FROM cached_counts') AS second, pg_temp.compared('SELECT * FROM cached_counts') AS third;
SELECT pg_temp.compared('SELECT name, gpu_value_counts(t, 3), gpu_value_counts(name) FROM counted GROUP BY name') AS with_text_keys;
DROP VIEW cached_counts;
-- sketches of percentiles, and groups of so many values that the GPU engine reads only some of each bin
CREATE TABLE many_values AS SELECT i % 8 = 0 AS k, CASE WHEN i % 1001 = 0 THEN NULL WHEN i % 5000 = 7 THEN 'nan' WHEN i % 5003 = 9 THEN 'inf' WHEN i % 7001 = 0 THEN '-inf' ELSE (hashint4(i) / 1e9) ^ 3 END::float8 AS x,
	exp(hashint4(i + 1) / 1e8::float8) * (-1) ^ i AS y, i / 1000.0::float8 AS z, -0.0::float8 AS zero FROM generate_series(1, 60000) i;
VACUUM ANALYZE many_values;
SELECT pg_temp.compared(replace(q, 'aggregates', calls)) AS taken, calls FROM (VALUES ('gpu_histogram_auto(x, 50), gpu_histogram_equidepth(x, 20), gpu_exp_histogram(x, 20), gpu_approx_percentile(x, 0.3)'),
	('gpu_approx_percentile(y, ''{0,0.1,NULL,0.99,1}''::float8[]), gpu_approx_percentile_state(y), gpu_exp_histogram(y, 3) FILTER (WHERE z > 3), gpu_histogram_auto(y, 2)'), ('gpu_histogram_equidepth(z, 7), gpu_approx_percentile_state(z), gpu_histogram_auto(z, 50000), gpu_histogram_equidepth(y, 9000)'),
	('gpu_mad(x), gpu_approx_percentile_state(zero), gpu_approx_percentile(x, ''{}''::float8[])')) c (calls), (VALUES ('SELECT k, aggregates FROM many_values GROUP BY k'), ('SELECT aggregates FROM many_values')) q (q);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_histogram_equidepth(float8, int4)', z, 4)), 'gpu_histogram_equidepth(float8, int4)', NULL::gpuagg_equidepth)::text = gpu_histogram_equidepth(z, 4)::text AS state_has_all_values
FROM many_values;
SELECT pg_temp.compared('SELECT k, gpu_approx_percentile(f8, 0.4), gpu_approx_percentile_state(i4), gpu_approx_percentile(odd, ''{0.1,0.9}''::float8[]) FILTER (WHERE even) FROM counted GROUP BY k') AS percentiles;
SELECT pg_temp.compared('SELECT k, gpu_approx_percentile(f8, NULL) FROM counted GROUP BY k', 'cpu') AS no_fraction;
SELECT gpu_approx_percentile(f8, '{0.1,2}'::float8[]) FROM counted;
DROP TABLE counted, many_values;
DROP TYPE size;
