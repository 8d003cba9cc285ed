-- States that servers exchange are the same bytes in all releases of PostgreSQL: results of the aggregates for foreign
-- servers, and gpuagg_state. A change here would break the exchange with other servers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET timezone = 'UTC';
SET intervalstyle = 'postgres';
CREATE TABLE release_rows AS
SELECT i, (i * 7 % 11 - 5)::int2 AS i2, i * 31 % 97 - 40 AS i4, i * 1000003::int8 * 1000003 AS i8, i * 1.25 - 3 AS num, ((i - 2) / 4.0)::float4 AS f4,
	(i / 8.0 - 0.5)::float8 AS f8, i * interval '1 month -2 days 3.5 s' AS iv, repeat('x', i % 3) || i % 4 AS txt, i % 2 = 0 AS b,
	date '2024-02-28' + i AS d, timestamp '2024-02-28 12:00' + i * interval '1 h' AS ts
FROM generate_series(1, 9) i;

-- each aggregate for foreign servers
CREATE FUNCTION release_state(signature text, types text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text;
BEGIN
	EXECUTE format('SELECT %s(%s)::text FROM release_rows', split_part(signature, '(', 1),
		CASE WHEN signature ~ 'histogram_accum_thresholds' THEN 'f8, ''{-1,0,0.25}''' WHEN signature ~ 'histogram_accum_weighted' THEN 'f8, -1, 1, 3, f4'
			WHEN signature ~ 'histogram2d_accum_weighted' THEN 'f8, -1, 1, 2, i2, 0, 10, 1, f4'
			WHEN signature ~ 'histogram2d' THEN 'f8, -1, 1, 2, i2, 0, 10, 1'
			WHEN signature ~ 'histogram_auto|equidepth|exp_histogram_transfn' THEN 'f8, 3'
			WHEN signature ~ 'histogram_accum_log' THEN 'f8, 0.1, 10, 3' WHEN signature ~ 'histogram' THEN 'f8, -1, 1, 3'
			WHEN signature ~ 'sketch_transfn' THEN format('f8, %s', CASE WHEN types ~ '\[' THEN '''{0.1,0.5}''::float8[]' ELSE '0.5' END)
			WHEN signature ~ 'arg.*_n_' THEN 'txt, d, 2' WHEN signature ~ '_n_transfn|top_k|value_counts.*int' THEN 'num, 2' WHEN signature ~ 'value_counts|entropy' THEN 'txt'
			WHEN signature ~ 'arg' THEN 'txt, d' WHEN signature ~ 'hll' THEN 'txt'
			WHEN types = 'double precision, double precision' THEN 'f8, f8 * i4'
			ELSE (SELECT attname FROM pg_attribute WHERE attrelid = 'release_rows'::regclass AND attnum > 1 AND atttypid = to_regtype(types)) END)
	INTO state;
	-- from 19 on, states of regression have two more values
	RETURN CASE WHEN signature ~ 'regr_accum' THEN ((state::float8[])[1:6])::text ELSE state END;
END $$;
SELECT p.oid::regprocedure AS aggregate, release_state(p.oid::regprocedure::text, oidvectortypes(proargtypes)) AS state
FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND deptype = 'e'
	JOIN pg_extension x ON x.oid = refobjid AND extname = 'gpuagg'
WHERE prokind = 'a' AND proname ~ '^gpuagg_.*_state$'
ORDER BY p.oid::regprocedure::text COLLATE "C";
-- hashes of all types whose values foreign servers count
SELECT expr, md5(release_hash) FROM unnest(ARRAY['b', 'i2', 'i4', 'i8', 'i::oid', 'i::text::xid', 'i::text::xid8', 'i::text::cid', 'format(''(%s,%s)'', i, i)::tid', 'f4', 'f8',
		'num', 'd', 'ts::time', 'ts::time::timetz', 'ts', 'ts AT TIME ZONE ''UTC''', 'iv', 'txt', 'txt::varchar', 'txt::char(5)', 'txt::name', 'txt::bytea',
		'md5(txt)::uuid', '(''10.0.0.'' || i)::inet', '(''10.0.0.'' || i)::cidr', '(''00:00:00:00:00:0'' || i)::macaddr', '(''00:00:00:00:00:00:00:0'' || i)::macaddr8',
		'(''0/'' || i)::pg_lsn', 'ARRAY[i, NULL]', 'ARRAY[[num], [1]]', 'int4range(i, 9)', 'tsrange(ts, NULL)', 'int8multirange(int8range(i, 9))']) expr,
	LATERAL (SELECT (xpath('//s/text()', query_to_xml(format('SELECT gpuagg_hll_transfn_state(%s)::text AS s FROM release_rows', expr), false, false, '')))[1]::text) h(release_hash);

-- gpuagg_state of each kind
SELECT gpuagg_merge(gpuagg_pack('gpu_sum(int8)', i8)) AS sum, gpuagg_merge(gpuagg_pack('gpu_avg(numeric)', num)) AS avg,
	gpuagg_merge(gpuagg_pack('gpu_stddev(int4)', i4)) AS stddev, gpuagg_merge(gpuagg_pack('gpu_variance(numeric)', num)) AS variance,
	gpuagg_merge(gpuagg_pack('gpu_approx_count_distinct("any")', iv)) AS distinct,
	gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', iv, num)) AS argmax,
	gpuagg_merge(gpuagg_pack('gpu_argmin(anyelement, anycompatible)', ARRAY['pg_class'::regclass], txt)) AS argmin,
	gpuagg_merge(gpuagg_pack('gpu_min_n(anyelement, int4)', ts, 2)) AS min_n,
	gpuagg_merge(gpuagg_pack('gpu_argmax_n(anyelement, anycompatible, int4)', nullif(i2, 5), num, 3)) AS argmax_n,
	gpuagg_merge(gpuagg_pack('gpu_value_counts(anyelement)', nullif(i2, 5))) AS value_counts, gpuagg_merge(gpuagg_pack('gpu_top_k(anyelement, int4)', txt, 3)) AS top_k,
	gpu_histogram_auto(f8, 4) AS histogram_auto, gpu_exp_histogram(f8, 2) AS exp_histogram, gpuagg_merge(gpuagg_pack('gpu_histogram_equidepth(float8, int4)', f8, 2)) AS equidepth
FROM release_rows \gx
DROP TABLE release_rows;
DROP FUNCTION release_state;
