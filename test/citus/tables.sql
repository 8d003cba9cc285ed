-- A distributed, a reference and a local table with the same rows, :rows of them. Run on the coordinator.
-- Sums of the floats are exact in any order, except those of f8x, which has NaN, infinity and -0. The states in exps, dists and percs are
-- text, because rows with a column of the type gpuagg_state cannot be compared.
SET citus.shard_count = 8;
SET client_min_messages = warning;
CREATE TYPE kind AS ENUM ('low', 'middle', 'high');
CREATE TABLE local_rows AS
SELECT i AS id, i % 499 AS k, CASE WHEN i % 97 = 0 THEN NULL ELSE (i * 7919::bigint % 53)::int END AS g,
	'h' || i * 31 % 5 AS h, (i % 201 - 100)::int2 AS i2, nullif(i % 1009 - 500, 7) AS i4,
	nullif(i::int8 * 1000003 % 100000007, 5) AS i8, (i % 8)::float4 AS f4, nullif(i % 4001 / 8.0::float8 - 250, 1) AS f8,
	CASE WHEN i % 5003 = 0 THEN 'NaN'::float8 WHEN i % 5003 = 1 THEN 'Infinity' WHEN i % 3 = 0 THEN '-0' ELSE 0 END AS f8x,
	CASE i % 1000 WHEN 1 THEN 2 WHEN 2 THEN 0.5 WHEN 3 THEN NULL ELSE 1 END::float8 AS p8,
	((i % 10007) / 100.0)::numeric(12,2) AS n, CASE WHEN i % 7001 = 0 THEN 'NaN'::numeric WHEN i % 11 = 0 THEN NULL ELSE i % 977 / 1000.0 END AS nn,
	CASE i % 1000 WHEN 1 THEN 2 WHEN 2 THEN 0.5 ELSE 1 END::numeric AS pn,
	CASE WHEN i % 13 = 0 THEN NULL ELSE 'text ' || i % 701 END AS t, ('b' || i % 9)::char(4) AS bp,
	DATE '2020-01-01' + i % 1500 AS d, TIME '00:00' + i % 86400 * interval '1 second' AS tm,
	(TIME '00:00' + i % 86400 * interval '1 second')::timetz AS tmz, TIMESTAMP '2020-01-01' + i % 5000 * interval '1 minute' AS ts,
	TIMESTAMPTZ '2020-01-01 00:00+00' + i % 5000 * interval '1 minute' AS tz, i % 777 * interval '1 hour' AS iv,
	(i % 1000)::numeric::money AS m, (i % 5000)::oid AS o, i % 3 = 0 AS b, (i % 256)::bit(8) AS bi, (i % 256)::bit(8)::varbit AS vb,
	'10.0.0.0'::inet + i % 999 AS ip, '0/0'::pg_lsn + i % 4000 AS lsn, format('(%s,1)', i % 100)::tid AS tid, (i % 5000)::text::xid8 AS x8,
	ARRAY[i % 10, 3, i % 7]::int8[] AS ia, ARRAY[i % 10, 0.5, i % 7]::float8[] AS fa, ARRAY[i % 10, 0.5, i % 7]::numeric[] AS na,
	(enum_range(NULL::kind))[1 + i * 7 % 3] AS en, ARRAY[[1, i % 2], [0, 1]]::float8[] AS mat,
	CASE WHEN i % 100 = 0 THEN (SELECT gpu_exp_histogram(x, 3)::text FROM (VALUES (i::float8), (-i * 3), (0)) v(x)) END AS exps,
	CASE WHEN i % 100 = 1 THEN (SELECT gpu_approx_count_distinct_state(x)::text FROM (VALUES (i), (i % 77)) v(x)) END AS dists,
	CASE WHEN i % 100 = 2 THEN (SELECT gpu_approx_percentile_state(x)::text FROM (VALUES (i::float8), (-i * 3)) v(x)) END AS percs
FROM generate_series(1, :rows) i;
CREATE TABLE dist_rows (LIKE local_rows);
SELECT create_distributed_table('dist_rows', 'k');
CREATE TABLE ref_rows (LIKE local_rows);
SELECT create_reference_table('ref_rows');
CREATE TABLE dist_k (k int, label text);
SELECT create_distributed_table('dist_k', 'k', colocate_with => 'dist_rows');
CREATE TABLE local_k (k int, label text);
CREATE TABLE ref_g (g int, label text);
SELECT create_reference_table('ref_g');
CREATE TABLE local_g (g int, label text);
INSERT INTO dist_rows SELECT * FROM local_rows;
INSERT INTO ref_rows SELECT * FROM local_rows WHERE id <= 20000;
CREATE TABLE local_ref AS SELECT * FROM local_rows WHERE id <= 20000;
INSERT INTO local_k SELECT k, 'label ' || k % 7 FROM generate_series(0, 498) k;
INSERT INTO dist_k SELECT * FROM local_k;
INSERT INTO local_g SELECT g, 'group ' || g % 6 FROM generate_series(0, 52) g;
INSERT INTO ref_g SELECT * FROM local_g;
CREATE TABLE dist_out (k int, c bigint, s numeric, a numeric);
SELECT create_distributed_table('dist_out', 'k', colocate_with => 'dist_rows');
CREATE TABLE local_out (LIKE dist_out);
CREATE VIEW dist_view AS SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_avg(n) AS a FROM dist_rows GROUP BY g;
CREATE VIEW local_view AS SELECT g, count(*) AS c, sum(i4) AS s, avg(n) AS a FROM local_rows GROUP BY g;
VACUUM ANALYZE dist_rows, ref_rows, local_rows, local_ref, dist_k, ref_g;
