-- gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n over integers and floats, compared with plain aggregates. With a GPU
-- server the GPU must take them, unless the comment says that it does not.
SET gpuagg.cache = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE best AS SELECT i % 97 AS k, 'g' || i % 11 AS name, i % 2 = 0 AS even, (i * 7919 % 1009 - 500)::int2 AS i2,
	CASE WHEN i % 7 = 0 THEN NULL ELSE i * 31 % 40 END AS i4,
	(ARRAY[9223372036854775807, -9223372036854775808, NULL, i % 5])[1 + i * 13 % 4]::int8 AS i8, (i * 37 % 1001 - 500)::float4 / 4 + 0.1::float4 AS f4,
	(CASE WHEN i % 9 = 0 THEN NULL WHEN i % 500 = 1 THEN 'NaN' WHEN i % 500 = 2 THEN 'infinity' WHEN i % 500 = 3 THEN '-infinity' ELSE (i * 101 % 733 + 1)::text END)::float8 AS f8,
	date '2026-01-01' + i * 17 % 300 AS d, i::oid AS o, CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN 'infinity' ELSE timestamptz '2026-01-01 UTC' + i % 50 * interval '1 h' END AS tz
FROM generate_series(1, 6000) i;
INSERT INTO best (k, name) VALUES (1000, 'none'), (NULL, NULL);
-- floats that the GPU does not return: -0, and NaN with other bits than usual
CREATE TABLE odd_floats AS SELECT i % 5 AS k, (ARRAY['-0', '0', '1', '-1', NULL])[1 + i * 7 % 5]::float8 AS zero, i AS v,
	CASE i % 3 WHEN 0 THEN x - x ELSE 'NaN' END AS nan FROM generate_series(1, 60) i, (VALUES (float8 'infinity')) t (x);
VACUUM ANALYZE best, odd_floats;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
\set include :srcdir '/include/on_engine.sql'
\i :include
SELECT pg_temp.compared('SELECT k, ' || calls || ' FROM best GROUP BY k') AS by_key, calls FROM (VALUES ('gpu_max_n(i4, 2)'), ('gpu_min_n(i4, 2)'),
	('gpu_max_n(i2, 1), gpu_min_n(i2, 1000), gpu_max_n(i2, 2)'), ('gpu_max_n(f8, 3), gpu_min_n(f8, 3), gpu_max_n(f4, 2)'), ('gpu_max_n(i8, 40), gpu_min_n(i8, 40), gpu_max_n(even, 3)'),
	('gpu_max_n(d, 2), gpu_min_n(o, 2), gpu_max_n(tz, 20)'), ('gpu_argmax_n(i8, i4, 5), gpu_argmin_n(i8, i4, 5)'), ('gpu_argmax_n(i8, even, 60), gpu_argmin_n(i8, even, 60)'),
	('gpu_argmax_n(tz, i4, 1000), gpu_argmin_n(f8, i4, 1000)'), ('gpu_argmax_n(even, f8, 5), gpu_argmin_n(o, f4, 2)'), ('gpu_argmax_n(i4, i4, 5), gpu_argmax_n(i4, 7, 3)'),
	('gpu_max_n(i4, 3) FILTER (WHERE even), gpu_argmin_n(f8, i2, 2) FILTER (WHERE i4 > 20), gpu_max_n(i4, 3) FILTER (WHERE false)'),
	('gpu_max_n(i4 + 1, 2), gpu_argmax_n(f8 * 2, i4 % 5, 3)'), ('gpu_max_n(i4, 2), count(*), sum(i4), max(f8), count(DISTINCT i4), gpu_median(f8)'),
	('gpu_max_n(i4, 3 ORDER BY i2)')) c (calls);
SELECT pg_temp.compared(q) AS taken, q FROM (VALUES ('SELECT gpu_max_n(f8, 1000), gpu_argmin_n(i4, i2, 7) FROM best'), ('SELECT gpu_max_n(f8, 3) FROM best WHERE k > 5000'),
	('SELECT name, even, gpu_max_n(i2, 3), gpu_argmax_n(i4, i2, 2) FROM best GROUP BY name, even'), ('SELECT i2, d, gpu_min_n(f8, 2) FROM best GROUP BY i2, d'),
	('SELECT k, gpu_max_n(i4, 2) FROM best GROUP BY k HAVING count(*) > 61'), ('SELECT k, sum(i4), gpu_argmax_n(o, f4, 2) FROM best GROUP BY k ORDER BY sum(i4) DESC NULLS LAST, k LIMIT 5'),
	('SELECT k, even, gpu_max_n(i4, 2), gpu_argmin_n(i2, i4, 3) FROM best GROUP BY GROUPING SETS ((k, even), (even), ())'),
	('SELECT b.k, gpu_max_n(b.i4 + x, 2) FROM best b JOIN (VALUES (1, 5), (2, 6)) v (k, x) ON b.k = v.k GROUP BY b.k')) q (q);
-- numerics that no decimal can represent: their batches are the CPU fallback's, where groups of both are combined
CREATE TABLE some_odd AS SELECT i % 50 AS k, i * 31 % 1003 AS v, nullif(i % 97, 3)::float8 / 3 + 1 AS f, CASE WHEN i BETWEEN 9000 AND 9010 THEN 'NaN' ELSE i % 10 / 4.0 END::numeric(10, 2) AS n
FROM generate_series(1, 12000) i;
VACUUM ANALYZE some_odd;
SELECT pg_temp.compared('SELECT k, gpu_max_n(v, 20), gpu_argmin_n(v, f, 20), gpu_argmax_n(f, v, 7), gpu_max_n(v, 2) FILTER (WHERE v < 0), gpu_sum(n), gpu_avg(n) FROM some_odd GROUP BY k') AS combined;
-- the CPU engine takes these: -0 and NaNs, values without codes, DISTINCT, n that is no constant
SELECT pg_temp.compared('SELECT k, ' || calls || ' FROM odd_floats GROUP BY k', 'cpu') AS by_key, calls FROM (VALUES ('gpu_max_n(zero, 7), gpu_min_n(zero, 7)'), ('gpu_argmax_n(v, zero, 9), gpu_argmin_n(zero, v, 9)'),
	('(SELECT array_agg(float8send(x)) FROM unnest(gpu_max_n(nan, 9)) x)'), ('(SELECT array_agg(float8send(x)) FROM unnest(gpu_argmin_n(nan, v, 9)) x)')) c (calls);
SELECT pg_temp.compared('SELECT k, ' || calls || ' FROM best GROUP BY k', 'cpu') AS by_key, calls FROM (VALUES ('gpu_argmax_n(name, i4, 2)'), ('gpu_max_n(DISTINCT i4, 2)'), ('gpu_max_n(i4, 2 + i2 * 0)'), ('gpu_max_n(name, 2)'), ('gpu_argmax_n(i4, i2::numeric(10,2), 2), gpu_max_n(i2::numeric(10,2), 2)')) c (calls);

-- errors
SELECT gpu_max_n(i4, NULL) FROM best;
SELECT gpu_argmax_n(i4, i2, 1001) FROM best;
-- states, a cursor, a plan that is executed again, and rescans
SELECT gpuagg_merge(gpuagg_pack('gpu_argmax_n(anyelement, anycompatible, int4)', i4, i2, 3)) FROM best WHERE k = 3;
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_max_n(i4, 3), gpu_argmin_n(i2, f8, 2) FROM best WHERE k < 3 GROUP BY k ORDER BY k;
FETCH 1 FROM c;
SELECT gpu_max_n(i2, 2) FROM best;
FETCH 2 FROM c;
COMMIT;
PREPARE tops(int) AS SELECT gpu_max_n(i2, $1), gpu_argmin_n(i4, d, $1) FROM best;
EXECUTE tops(2);
SET plan_cache_mode = force_generic_plan;
EXECUTE tops(3);
EXECUTE tops(0);
RESET plan_cache_mode;
SELECT x, (SELECT gpu_max_n(i4 + x, 3) FROM best WHERE k = x) FROM generate_series(1, 3) x;
-- many groups with many entries, which leave in portions
SELECT pg_temp.compared('SELECT o, gpu_max_n(i2, 1000), gpu_argmin_n(i4, d, 2) FROM best GROUP BY o') AS many_groups;
SET work_mem = '64kB';
SELECT pg_temp.compared('SELECT k, gpu_argmax_n(i2, i2, 1000), gpu_min_n(i2, 1000) FROM best GROUP BY k') AS many_entries;
RESET work_mem;

-- columns that are cached, on the GPU if there is one: the second and third query read them; also with -0
SET gpuagg.cache = eager;
UPDATE odd_floats SET zero = zero + 0.5 WHERE zero = 0 AND v > 30;
VACUUM ANALYZE odd_floats;
CREATE VIEW cached_tops AS SELECT k, gpu_max_n(i2, 3) AS a, gpu_argmax_n(i8, i4, 9) AS b, gpu_argmin_n(f4, d, 2) FILTER (WHERE i4 > 3) AS c, gpu_min_n(f4 * 2, 3) AS d FROM best WHERE i2 > -400 GROUP BY k;
SELECT pg_temp.compared('SELECT * FROM cached_tops') AS first, pg_temp.compared('SELECT * FROM cached_tops') AS second, pg_temp.compared('SELECT * FROM cached_tops') AS third;
SELECT pg_temp.compared('SELECT k, gpu_max_n(zero, 9), gpu_argmin_n(v, zero, 9) FROM odd_floats GROUP BY k', 'cpu') AS first, pg_temp.compared('SELECT k, gpu_max_n(zero, 9), gpu_argmin_n(v, zero, 9) FROM odd_floats GROUP BY k', 'cpu') AS second;
DROP VIEW cached_tops;
DROP TABLE best, odd_floats, some_odd;
