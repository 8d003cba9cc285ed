-- gpu_min and gpu_max of the types that only core's functions can compare: core's answers, with the custom scan and without.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
CREATE TYPE extreme_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE extreme_mood ADD VALUE 'grim' BEFORE 'ok';
-- a row of NULLs, a group of such rows, equal values that print differently
CREATE TABLE extremes AS SELECT i % 4 AS k, i, CASE WHEN live THEN ('10.' || i * 7 % 5 || '.0.' || i * 11 % 200 || CASE WHEN i % 3 = 0 THEN '/16' ELSE '' END)::inet END AS inet,
	CASE WHEN live THEN ('10.' || i * 7 % 5 || '.0.0/16')::cidr END AS cidr,
	CASE WHEN live THEN ARRAY[i * 7 % 3, nullif(i * 11 % 7, 0)] END AS array,
	CASE WHEN live THEN ARRAY[(i * 7 % 3)::text, 'x'] END AS texts,
	CASE WHEN live THEN ARRAY[(i * 7 % 3)::numeric(5, 1), i % 2] END AS numbers,
	CASE WHEN live THEN rpad('b' || i * 7 % 30, 2 + i % 5)::bpchar END AS bpchar, CASE WHEN live THEN rpad('b' || i * 7 % 30, 4)::char(6) END AS char,
	CASE WHEN live THEN ('v' || i * 7 % 30)::varchar END AS varchar,
	CASE WHEN live THEN (enum_range(NULL::extreme_mood))[1 + i * 7 % 4] END AS mood,
	CASE WHEN live THEN ('0/' || 10000000 + i * 7919 % 1000)::pg_lsn END AS pg_lsn, CASE WHEN live THEN format('(%s,%s)', i * 7 % 30, i % 3 + 1)::tid END AS tid,
	CASE WHEN live THEN (time '10:00' + i % 40 * interval '1 min' || format('+%s', i % 3))::timetz END AS timetz,
	CASE WHEN live THEN (i * 7919 % 1000)::text::xid8 END AS xid8
FROM generate_series(1, 400) i, LATERAL (SELECT i % 4 > 0 AND i % 9 > 0 AS live) l;
ANALYZE extremes;
SELECT string_agg(format('gpu_min(%1$I), gpu_max(%1$I)', attname), ', ' ORDER BY attnum) AS ours, string_agg(format('min(%1$I), max(%1$I)', attname), ', ' ORDER BY attnum) AS core
FROM pg_attribute WHERE attrelid = 'extremes'::regclass AND attnum > 2 \gset
CREATE FUNCTION pg_temp.answers(how text, workers int, calls text, keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('gpuagg.require', how, true), set_config('max_parallel_workers_per_gather', workers::text, true),
		set_config('parallel_setup_cost', '0', true), set_config('parallel_tuple_cost', '0', true), set_config('min_parallel_table_scan_size', '0', true);
	EXECUTE format('SELECT string_agg(s::text, E''\n'' ORDER BY s::text COLLATE "C") FROM (SELECT %s FROM extremes %s) s', calls, keys) INTO answer;
	RETURN answer;
END $$;
SELECT pg_temp.answers('allow', 0, :'core', '') AS core \gset whole_
SELECT pg_temp.answers('allow', 0, 'k, ' || :'core', 'GROUP BY k') AS core \gset grouped_
\t on
\a
SELECT :'whole_core';
SELECT :'grouped_core';
\a
\t off
SELECT how, workers, pg_temp.answers(how, workers, :'ours', '') = :'whole_core' AS whole, pg_temp.answers(how, workers, 'k, ' || :'ours', 'GROUP BY k') = :'grouped_core' AS grouped
FROM unnest('{forbid, require}'::text[]) how, generate_series(0, 2, 2) workers;
-- one aggregate alone, which runs where core's functions run, and over no rows
SET gpuagg.require = require;
SELECT gpu_min(inet), gpu_max(mood), gpu_max("array") FROM extremes WHERE k = 1;
SELECT gpu_min(inet), gpu_max(mood), gpu_max("array"), gpu_min(timetz) FROM extremes WHERE i < 0;
SELECT pg_typeof(gpu_max(mood)), pg_typeof(gpu_min(texts)), pg_typeof(gpu_max("char")), pg_typeof(gpu_max(varchar)), pg_typeof(gpu_max(cidr)) FROM extremes;
RESET gpuagg.require;
-- other types are not taken
SELECT gpu_max(ARRAY[point(1, 2)]);
\set VERBOSITY sqlstate
SELECT gpu_max(true);
\set VERBOSITY default
SELECT gpuagg_enum_larger('a'::text, 'a'::text);
SELECT gpuagg_enum_smaller(1, 2);
-- the minimum by an index, as in core
CREATE INDEX ON extremes (inet);
SET enable_seqscan = off;
SET gpuagg.enabled = off;
CREATE FUNCTION pg_temp.scans(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		RETURN QUERY SELECT trim(line) WHERE line LIKE '%Scan%';
	END LOOP;
END $$;
SELECT pg_temp.scans('SELECT gpu_max(inet) FROM extremes');
RESET gpuagg.enabled;
RESET enable_seqscan;
-- every type for which core has min and max, except record, for which CREATE AGGREGATE rejects such states, and oid8,
-- which older releases lack
SELECT proname, proargtypes[0]::regtype FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ('min', 'max') AND prokind = 'a'
	AND proargtypes[0] NOT IN ('record'::regtype, coalesce(to_regtype('oid8'), 0))
	AND NOT EXISTS (SELECT FROM pg_proc o WHERE o.proname = 'gpu_' || p.proname AND o.proargtypes = p.proargtypes);
DROP TABLE extremes;
DROP TYPE extreme_mood;
