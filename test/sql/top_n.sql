-- gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n: compared with array_agg over row_number(), in the custom scan, as
-- plain aggregates and in parallel, over all types; NULLs, ties, errors, and states made by hand.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE TYPE felt AS ENUM ('sad', 'well', 'glad');
CREATE DOMAIN score AS int CHECK (value < 1000);
CREATE TABLE tops AS
SELECT i % 13 AS g,
	CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 7919 % 1001) - 500 END::int2 AS i2,
	CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 104729 % 97) - 40 END::int4 AS i4,
	CASE i % 50 WHEN 0 THEN NULL WHEN 1 THEN 9223372036854775807 WHEN 2 THEN -9223372036854775808 ELSE i * 7919 % 20011 END::int8 AS i8,
	(ARRAY['-0', '0', 'nan', '-inf', 'inf', '1.5', NULL, i::text])[1 + i * 37 % 8]::float4 AS f4,
	(ARRAY['0', '-0', 'nan', 'inf', '-1e308', NULL, i::text])[1 + i * 41 % 7]::float8 AS f8,
	(ARRAY['infinity', '-infinity', (date '2026-01-01' + i)::text, NULL])[1 + i * 43 % 4]::date AS d,
	(ARRAY['infinity', '-infinity', (timestamp '2026-01-01' + i * interval '1 s')::text, NULL])[1 + i * 47 % 4]::timestamp AS ts,
	(ARRAY['infinity', '-infinity', '2026-01-01', NULL])[1 + i * 53 % 4]::timestamptz AS tz,
	make_time(i % 24, i % 60, 0) AS tm,
	(ARRAY[i % 50 / 4.0, 'NaN', 1e30, NULL])[1 + i * 59 % 4]::numeric(40, 2) AS n,
	(ARRAY['a' || i % 30, 'B', NULL, repeat('b', 3000) || i])[1 + i * 61 % 4] AS s,
	(ARRAY['a' || i % 30, 'B', NULL])[1 + i * 61 % 3] COLLATE "C" AS c,
	(ARRAY[true, false, NULL])[1 + i * 67 % 3] AS b,
	(ARRAY['sad', 'well', 'glad'])[1 + i * 7 % 3]::felt AS e,
	(i * 31 % 700)::score AS sc, make_interval(hours => i % 90) AS iv, md5((i % 99)::text)::uuid AS u, i::oid AS o, i::bit(9) AS bt
FROM generate_series(1, 500) i;
INSERT INTO tops (g) SELECT 100 + i FROM generate_series(1, 2) i;
ANALYZE tops;

-- The calls whose answers differ from those of plain SQL, compared as text, which distinguishes -0 from 0. Equal keys are in
-- the order of their values, and -0 comes before 0.
CREATE FUNCTION wrong_tops(names text[], keys text[]) RETURNS TABLE (call text, groups bigint) LANGUAGE plpgsql AS $$
DECLARE
	value text;
	key text;
	way text;
	n int;
	ordered text;
BEGIN
	FOREACH value IN ARRAY names LOOP
		FOREACH key IN ARRAY array_append(keys, '') LOOP
			FOREACH way IN ARRAY ARRAY['max', 'min'] LOOP
				n := CASE length(value || key) % 4 WHEN 0 THEN 1 WHEN 1 THEN 2 WHEN 2 THEN 9 ELSE 1000 END;
				call := CASE key WHEN '' THEN format('gpu_%s_n(%I, %s)', way, value, n) ELSE format('gpu_arg%s_n(%I, %I, %s)', way, value, key, n) END;
				ordered := format('ORDER BY %I %s, %I, (%3$I::text = ''-0'') DESC', coalesce(nullif(key, ''), value), CASE way WHEN 'max' THEN 'DESC' END, value);
				EXECUTE format($q$
					WITH ours AS (SELECT g, %1$s::text AS r, %1$s FILTER (WHERE i2 > 0)::text AS f FROM tops GROUP BY g),
						numbered AS (SELECT *, row_number() OVER (PARTITION BY g %2$s) AS rn, row_number() OVER (PARTITION BY g, i2 > 0 %2$s) AS fn
							FROM tops WHERE %3$I IS NOT NULL),
						theirs AS (SELECT g, array_agg(%4$I ORDER BY rn) FILTER (WHERE rn <= %5$s)::text AS r,
							array_agg(%4$I ORDER BY fn) FILTER (WHERE fn <= %5$s AND i2 > 0)::text AS f FROM numbered GROUP BY g)
					SELECT count(*) FROM ours FULL JOIN theirs USING (g)
					WHERE ours.r IS DISTINCT FROM theirs.r OR ours.f IS DISTINCT FROM theirs.f $q$,
					call, ordered, coalesce(nullif(key, ''), value), value, n) INTO groups;
				IF groups > 0 THEN
					RETURN NEXT;
				END IF;
			END LOOP;
		END LOOP;
	END LOOP;
END $$;
SET gpuagg.require = 'require';
SELECT * FROM wrong_tops('{i2,i4,i8,f4,f8,d,ts,tz,tm,n,s,c,b,e,sc,iv,u,o,bt}', '{i2,i4,i8,f4,f8,d,ts,tz,n,s,c,b,e,iv}');
SET work_mem = '64kB';
SELECT * FROM wrong_tops('{i2,f8,n,s}', '{i4,s}');
RESET work_mem;
-- the same as plain aggregates
RESET gpuagg.require;
SET gpuagg.enabled = off;
SELECT * FROM wrong_tops('{i2,i4,i8,f4,f8,d,ts,tz,tm,n,s,c,b,e,sc,iv,u,o,bt}', '{i2,f8,n,c}');
-- ... whose states core's parallel plans combine, and those of the custom scan
ALTER TABLE tops SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT g, gpu_argmax_n(s, i2, 3) FROM tops GROUP BY g;
SELECT * FROM wrong_tops('{i2,f8,n,s,c,e,sc}', '{i4,f8,s}');
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SELECT * FROM wrong_tops('{i2,f8,n,s,c,e,sc}', '{i4,f8,s}');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- many groups, in files
CREATE TABLE many_tops AS SELECT i % 20000 AS k, i * 7919 % 100003 AS v, 't' || i * 31 % 977 AS t FROM generate_series(1, 60000) i;
ANALYZE many_tops;
SET work_mem = '256kB';
SELECT count(*), count(*) FILTER (WHERE m <> array[a[1], a[2]] OR ts <> tt) AS differ
FROM (SELECT k, gpu_max_n(v, 2) AS m, gpu_argmin_n(t, v, 3) AS ts FROM many_tops GROUP BY k) o
	JOIN (SELECT k, array_agg(v ORDER BY v DESC) AS a, array_agg(t ORDER BY v, t) AS tt FROM many_tops GROUP BY k) x USING (k);
RESET work_mem;

-- keys are read as columns, without calls for each row, if n is a constant and they are numbers, times, booleans or identifiers
CREATE FUNCTION top_calls_by_row(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT g, %s FROM tops GROUP BY g', call) LOOP
		IF line ~ 'Row by Row' THEN
			RETURN NEXT btrim(line);
		END IF;
	END LOOP;
END $$;
SELECT c AS columns, top_calls_by_row(format('gpu_max_n(%I, 2), gpu_min_n(%1$I, 1000), gpu_argmax_n(s, %1$I, 2) FILTER (WHERE b)', c)) AS row_by_row FROM unnest('{i2,i4,i8,f4,f8,d,ts,tz,tm,sc,o,b}'::text[]) c;
SELECT call, top_calls_by_row(call) AS row_by_row FROM (VALUES ('gpu_max_n(i4, 2 + i4 * 0)'), ('gpu_max_n(i4, i4 - i4 + 2) FILTER (WHERE false)'), ('gpu_max_n(n, 2)'), ('gpu_argmin_n(i4, s, 2)'),
	('gpu_max_n(e, 2)'), ('gpu_max_n(DISTINCT i4, 2)'), ('gpu_argmax_n(s, i4, 2 ORDER BY i8)'), ('string_agg(s, s), gpu_max_n(i4, 2)')) x (call);
-- as many entries as are searched here, and one more; many of them equal, or -0 and 0; in sorted input, and once for each row of another table
CREATE FUNCTION wrong_lists(n int, filter text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE format($q$ WITH ours AS (SELECT g, gpu_max_n(f8, %1$s)::text || gpu_min_n(i4, %1$s)::text || gpu_argmax_n(i8, i4, %1$s)::text || gpu_argmin_n(i4, f4, %1$s)::text AS r FROM tops WHERE %2$s GROUP BY g),
		lists AS (SELECT g, array_agg(f8 ORDER BY f8 DESC, (f8::text = '-0') DESC) FILTER (WHERE f8 IS NOT NULL) AS a, array_agg(i4 ORDER BY i4) FILTER (WHERE i4 IS NOT NULL) AS b,
			array_agg(i8 ORDER BY i4 DESC, i8) FILTER (WHERE i4 IS NOT NULL) AS c, array_agg(i4 ORDER BY f4, i4) FILTER (WHERE f4 IS NOT NULL) AS d FROM tops WHERE %2$s GROUP BY g),
		theirs AS (SELECT g, a[:%1$s]::text || b[:%1$s]::text || c[:%1$s]::text || d[:%1$s]::text AS r FROM lists)
		SELECT count(*) FROM ours FULL JOIN theirs USING (g) WHERE ours.r IS DISTINCT FROM theirs.r $q$, n, filter) INTO result;
	RETURN result;
END $$;
SELECT n, wrong_lists(n, 'g < 100'), wrong_lists(n, 'g < 5') FROM (VALUES (1), (4), (5), (32), (33), (999)) x (n);
SET enable_hashagg = off;
SELECT n, wrong_lists(n, 'g < 100') FROM (VALUES (2), (32)) x (n);
RESET enable_hashagg;
SELECT x, (SELECT gpu_max_n(i4 + x, 3) FROM tops WHERE g = x), (SELECT gpu_argmin_n(i8, i2, 2) FROM tops WHERE i2 > x) FROM generate_series(1, 3) x;

-- DISTINCT, ORDER BY, grouping sets, HAVING, no rows
SELECT gpu_max_n(DISTINCT i4, 3), gpu_min_n(DISTINCT i4, 3), gpu_max_n(i4, 3 ORDER BY i8), gpu_argmax_n(DISTINCT i4 / 10, i4 / 20, 4) FROM tops;
SELECT g, gpu_max_n(i2, 2), gpu_argmin_n(c, i8, 2) FROM tops WHERE g < 2 GROUP BY ROLLUP (g) ORDER BY g;
SELECT g, gpu_max_n(i4, 2) FROM tops GROUP BY g HAVING (gpu_max_n(i4, 2))[2] < 54 ORDER BY g;
SELECT gpu_max_n(i4, 2), gpu_argmax_n(i4, i4, 2), gpu_max_n(i4, 2) FILTER (WHERE false) IS NULL AS none FROM tops WHERE g > 1000;
SELECT g, gpu_max_n(i4, 2), gpu_argmin_n(i4, i8, 2) FROM tops WHERE g > 100 GROUP BY g ORDER BY g;
RESET gpuagg.require;
SELECT i8, gpu_max_n(i8, 2) OVER w, gpu_argmin_n(i4, i8, 2) OVER (w ROWS 1 PRECEDING) FROM tops WHERE g = 3 AND i8 < 3000 WINDOW w AS (ORDER BY i8 DESC);

-- ties: values beside equal keys ascend, NULL last; equal values are ordered by their bytes, whatever the order of rows
SELECT gpu_argmax_n(v, k, 9), gpu_argmin_n(v, k, 9), gpu_argmax_n(v, k, 2)
FROM (VALUES ('b', 1.0), ('a', 1.00), (NULL, 1), ('z', 0), ('0', NULL), ('a', 1)) t (v, k);
SELECT count(DISTINCT r) AS answers, min(r) FROM (
	SELECT gpu_max_n(v, 3 ORDER BY o)::text || gpu_min_n(v, 2 ORDER BY o)::text || gpu_argmax_n(v, 1, 2 ORDER BY o)::text AS r
	FROM (VALUES (1.0, 1), (1.00, 2), (1, 3), (1.000, 4)) t (v, i), LATERAL (VALUES ('up', i), ('down', -i), ('mixed', i * 3 % 4)) x (way, o) GROUP BY way) q;

-- records, domains, values out of line, expanded arrays as keys
SELECT gpu_max_n(ROW(g, c), 2), gpu_argmin_n(ROW(i4), i8, 2), pg_typeof(gpu_max_n(sc, 2)), gpu_max_n(sc, 2) FROM tops WHERE g < 5;
SELECT gpu_argmax_n(i, ARRAY[i % 3, -i], 4) FROM generate_series(1, 20) i;
CREATE TABLE large_tops AS SELECT i, repeat(md5(i::text), 4000) || i AS s FROM generate_series(1, 60) i;
ALTER TABLE large_tops ALTER s SET STORAGE EXTERNAL;
INSERT INTO large_tops SELECT i + 100, s FROM large_tops;
SELECT gpu_max_n(s, 70) = (SELECT array_agg(s) FROM (SELECT s FROM large_tops ORDER BY s DESC LIMIT 70) x) AS values,
	gpu_argmax_n(s, i, 3) = (SELECT array_agg(s) FROM (SELECT s FROM large_tops ORDER BY i DESC LIMIT 3) x) AS beside_keys FROM large_tops;

-- errors
SELECT gpu_max_n(i4, NULL) FROM tops;
SELECT gpu_min_n(i4, 0) FROM tops;
SELECT gpu_argmax_n(i4, i4, 1001) FROM tops;
\set VERBOSITY sqlstate
SELECT gpu_max_n(i4, NULL) FROM tops;
SELECT gpu_max_n(i4, -1) FROM tops;
\set VERBOSITY default
SELECT gpu_argmin_n(i4, i4, i4 + 50) FROM tops;
SELECT gpu_max_n(NULL::int, 0), gpu_argmax_n(1, NULL::int, 0);
SELECT gpu_max_n('{}'::json, 1);
SELECT gpu_max_n(ARRAY[1], 1);
SELECT gpu_argmin_n(1, '{}'::json, 1);

-- a comparison function that lies, and one that fails
CREATE TYPE fickle AS (a int);
CREATE FUNCTION fickle_cmp(fickle, fickle) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN RETURN CASE WHEN $1.a = 77 THEN 1 / ($2.a - $2.a) WHEN ($1.a + $2.a) % 3 = 0 THEN -1 ELSE 1 END; END';
CREATE FUNCTION fickle_lt(fickle, fickle) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT fickle_cmp($1, $2) < 0';
CREATE OPERATOR < (LEFTARG = fickle, RIGHTARG = fickle, FUNCTION = fickle_lt);
CREATE OPERATOR CLASS fickle_ops DEFAULT FOR TYPE fickle USING btree AS OPERATOR 1 <, FUNCTION 1 fickle_cmp(fickle, fickle);
SELECT cardinality(gpu_max_n(ROW(i)::fickle, 5)), cardinality(gpu_argmin_n(ROW(i)::fickle, 1, 20)) FROM generate_series(1, 70) i;
SELECT gpu_max_n(ROW(i)::fickle, 5) FROM generate_series(1, 100) i;

-- partial states: sent as text, combined in any order, finished
CREATE TABLE top_states AS SELECT i4 % 5 AS part, a.agg::regprocedure AS agg, a.result,
	CASE a.agg WHEN 'gpu_max_n(anyelement, int4)' THEN gpuagg_merge(gpuagg_pack('gpu_max_n(anyelement, int4)', f8, 4))
		WHEN 'gpu_min_n(anyelement, int4)' THEN gpuagg_merge(gpuagg_pack('gpu_min_n(anyelement, int4)', n, 4))
		WHEN 'gpu_argmax_n(anyelement, anycompatible, int4)' THEN gpuagg_merge(gpuagg_pack('gpu_argmax_n(anyelement, anycompatible, int4)', c, i2, 4))
		ELSE gpuagg_merge(gpuagg_pack('gpu_argmin_n(anyelement, anycompatible, int4)', e, s, 4)) END AS state
FROM tops, (VALUES ('gpu_max_n(anyelement, int4)', 'float8[]'), ('gpu_min_n(anyelement, int4)', 'numeric[]'),
	('gpu_argmax_n(anyelement, anycompatible, int4)', 'text[]'), ('gpu_argmin_n(anyelement, anycompatible, int4)', 'felt[]')) a (agg, result)
GROUP BY 1, 2, 3, a.agg;
CREATE AGGREGATE top_together(gpuagg_state) (SFUNC = gpuagg_merge_combine, STYPE = gpuagg_state);
SELECT (gpuagg_finish(top_together(state::text::gpuagg_state ORDER BY part) FILTER (WHERE agg::text LIKE 'gpu_max_n%'), 'gpu_max_n(anyelement, int4)', NULL::float8[]))::text
		= (SELECT gpu_max_n(f8, 4)::text FROM tops) AS max,
	gpuagg_finish(top_together(state::text::gpuagg_state ORDER BY part DESC) FILTER (WHERE agg::text LIKE 'gpu_min_n%'), 'gpu_min_n(anyelement, int4)', NULL::numeric[])
		= (SELECT gpu_min_n(n, 4) FROM tops) AS min,
	gpuagg_finish(top_together(state::text::gpuagg_state ORDER BY part) FILTER (WHERE agg::text LIKE 'gpu_argmax_n%'), 'gpu_argmax_n(anyelement, anycompatible, int4)', NULL::text[])
		= (SELECT gpu_argmax_n(c, i2, 4) FROM tops) AS argmax,
	gpuagg_finish(top_together(state::text::gpuagg_state ORDER BY part) FILTER (WHERE agg::text LIKE 'gpu_argmin_n%'), 'gpu_argmin_n(anyelement, anycompatible, int4)', NULL::felt[])
		= (SELECT gpu_argmin_n(e, s, 4) FROM tops) AS argmin
FROM top_states;
-- the form of a state, and states made by hand
SELECT gpuagg_merge(gpuagg_pack('gpu_max_n(anyelement, int4)', i, 2)) AS max, gpuagg_merge(gpuagg_pack('gpu_argmin_n(anyelement, anycompatible, int4)', nullif(i, 1), i, 2)) AS argmin
FROM generate_series(1, 3) i;
CREATE FUNCTION pg_temp.try_top(state text, agg regprocedure, result anyelement) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN gpuagg_finish(state::gpuagg_state, agg, result)::text;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT what, pg_temp.try_top(replace(state, ' ', ''), 'gpu_max_n(anyelement, int4)', NULL::int[]) FROM (VALUES
	('two values', '\x010a 00 00000017 0000000000 00000002 00000002 00 00000004 00000003 00 00000004 00000002'),
	('not in order', '\x010a 00 00000017 0000000000 00000002 00000002 00 00000004 00000002 00 00000004 00000003'),
	('more than n', '\x010a 00 00000017 0000000000 00000001 00000002 00 00000004 00000003 00 00000004 00000002'),
	('n is 0', '\x010a 00 00000017 0000000000 00000000 00000000'),
	('n is large', '\x010a 00 00000017 0000000000 000003e9 00000001 00 00000004 00000003'),
	('no values', '\x010a 00 00000017 0000000000 00000002 00000000'),
	('too short', '\x010a 00 00000017 0000000000 00000002 00000002 00 00000004 00000003'),
	('too long', '\x010a 00 00000017 0000000000 00000002 00000001 00 00000004 00000003 00'),
	('NULL', '\x010a 00 00000017 0000000000 00000002 00000001 01'),
	('another aggregate', '\x010a 01 00000017 0000000000 00000002 00000001 00 00000004 00000003'),
	('an unknown aggregate', '\x010a 04 00000017 0000000000 00000002 00000001 00 00000004 00000003'),
	('another type', '\x010a 00 00000015 0000000000 00000002 00000001 00 00000002 0003'),
	('a type without an order', '\x010a 00 00000072 0000000000 00000002 00000001 00 00000002 7b7d'),
	('an array', '\x010a 00 000003ef 0000000000 00000002 00000001 00 0000000c 00000000 00000000 00000017'),
	('a pseudo-type', '\x010a 00 000008d9 0000000000 00000002 00000001 00 00000004 00000003')) v (what, state);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_max_n(anyelement, int4)', 1, 2)), 'gpu_max_n(anyelement, int4)', NULL::int);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_max_n(anyelement, int4)', 1, 2)), 'gpu_max_n(anyelement, int4)', NULL::text[]);
SELECT gpuagg_finish(NULL, 'gpu_max_n(anyelement, int4)', NULL::text[]) IS NULL AS none;
SELECT gpuagg_merge(gpuagg_pack('gpu_max_n(anyelement, int4)', i, i)) FROM generate_series(1, 2) i;
SELECT gpuagg_merge(gpuagg_pack(CASE i WHEN 1 THEN 'gpu_max_n(anyelement, int4)' ELSE 'gpu_min_n(anyelement, int4)' END::regprocedure, i, 1)) FROM generate_series(1, 2) i;
SELECT gpuagg_pack('gpu_max_n(anyelement, int4)', 'tops'::regclass, 1);
SELECT gpuagg_pack('gpu_argmax_n(anyelement, anycompatible, int4)', 1, 'tops'::regclass, 1);
SELECT gpuagg_merge(gpuagg_pack('gpu_argmax_n(anyelement, anycompatible, int4)', 'tops'::regclass, 1, 1)) IS NOT NULL AS value_by_name;

-- Numerics of several display scales, NaN and infinities: how many groups differ between the plain aggregate and the custom scan, which
-- reads decimals of one scale as integers. Equal keys that look different are in the order of their bytes.
CREATE TABLE top_numerics AS SELECT i % 4 AS g, i * 37 % 300 AS many, i % 7 AS v, (i * 31 % 400 / 100.0)::numeric(6, 2) AS declared,
	CASE WHEN i > 3000 THEN NULL WHEN i % 101 = 0 THEN 'NaN' WHEN i % 103 = 0 THEN '-Infinity' WHEN i % 107 = 0 THEN 1e30 * (i % 2 * 2 - 1)
		WHEN i % 5 = 0 THEN round(i % 40 / 10.0, 1 + i % 3) ELSE (i * 31 % 400 - 200) / 100.0 END::numeric AS free
FROM generate_series(1, 3010) i;
ANALYZE top_numerics;
CREATE VIEW numeric_tops AS SELECT g, NULL::int AS many, gpu_max_n(free, 9)::text AS a, gpu_min_n(free, 30)::text AS b, gpu_argmax_n(v, free, 5)::text AS c,
	gpu_argmin_n(free, declared, 50)::text AS d, gpu_max_n(declared, 2) FILTER (WHERE v > 2)::text AS e, gpu_sum(free) FILTER (WHERE abs(free) < 100)::text AS f
FROM top_numerics GROUP BY g
UNION ALL
SELECT NULL, many, gpu_max_n(free, 3)::text, gpu_min_n(declared, 1)::text, gpu_argmax_n(free, free, 4)::text, gpu_argmin_n(v, free, 2)::text, gpu_max_n(-declared, 2)::text, NULL
FROM top_numerics GROUP BY many;
SET gpuagg.require = forbid;
CREATE TEMP TABLE plain_tops AS TABLE numeric_tops;
SET gpuagg.require = require;
CREATE TEMP TABLE custom_tops AS TABLE numeric_tops;
RESET gpuagg.require;
SELECT count(*) AS groups, count(*) - (SELECT count(*) FROM (TABLE plain_tops INTERSECT TABLE custom_tops) s) AS different FROM plain_tops;
SELECT a, c, e FROM custom_tops WHERE g = 1;
DROP VIEW numeric_tops;
DROP TABLE top_numerics;

-- decimals that are tied, in batches without new groups: later rows replace earlier ones
CREATE TABLE top_decimals AS SELECT i % 37 AS g, -i AS v, CASE WHEN i % 8 = 0 THEN round(i % 40 / 100.0, 1) ELSE (i * 31 % 40) / 100.0 END::numeric AS k FROM generate_series(1, 20000) i;
ANALYZE top_decimals;
CREATE VIEW decimal_tops AS SELECT g, gpu_argmax_n(v, k, 3)::text AS a, gpu_argmin_n(v, k, 3)::text AS b, gpu_max_n(k, 4)::text AS c, gpu_min_n(k, 4)::text AS d FROM top_decimals GROUP BY g;
SET gpuagg.require = forbid;
CREATE TEMP TABLE plain_decimals AS TABLE decimal_tops;
SET gpuagg.require = require;
CREATE TEMP TABLE custom_decimals AS TABLE decimal_tops;
RESET gpuagg.require;
SELECT count(*) AS groups, count(*) - (SELECT count(*) FROM (TABLE plain_decimals INTERSECT TABLE custom_decimals) s) AS different FROM plain_decimals;
SELECT * FROM custom_decimals WHERE g < 2 ORDER BY g;
DROP VIEW decimal_tops;
DROP TABLE top_decimals;
