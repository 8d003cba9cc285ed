-- States in another database, with another encoding and other object identifiers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE TABLE located ();
INSERT INTO located DEFAULT VALUES;
CREATE TYPE opinion AS ENUM ('well', 'badly');
CREATE AGGREGATE all_together(gpuagg_state) (SFUNC = gpuagg_merge_combine, STYPE = gpuagg_state);
-- Values with object identifiers, or with a hash that differs between databases, are rejected in states that depend on them.
SELECT gpuagg_pack('gpu_approx_count_distinct("any")', 'well'::opinion);
SELECT gpuagg_pack('gpu_approx_count_distinct("any")', '{"a": 1}'::jsonb);
SELECT gpuagg_merge(gpuagg_pack('gpu_approx_count_distinct("any")'::regprocedure, 'located'::regclass)) FROM located;
SELECT gpuagg_pack('gpu_argmax(anyelement, anycompatible)', 1, ARRAY['located'::regclass]);
CREATE TYPE named AS (relation regclass, n int);
SELECT gpuagg_pack('gpu_argmax(anyelement, anycompatible)', 1, ROW('located', 2)::named);
-- elsewhere identifiers are sent as names with schemas
SET search_path = pg_catalog;
SELECT convert_from(substr(decode(substr(s::text, 3), 'hex'), 3 + 4 + 4 + 1 + 4 + 1 + 1 + 4 + 4 + 1 + 4, 50), 'UTF8') AS name,
	public.gpuagg_finish(s::text::public.gpuagg_state, 'public.gpu_argmax(anyelement, anycompatible)', NULL::regclass)
FROM (SELECT public.gpuagg_merge(public.gpuagg_pack('public.gpu_argmax(anyelement, anycompatible)', 'public.located'::regclass, 1)) s) q;
RESET search_path;
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', ARRAY[ROW('located', 2)::named], 1))::text::gpuagg_state,
	'gpu_argmax(anyelement, anycompatible)', NULL::named[]);
-- A database in another encoding: the same names of columns, texts and sketches. States contain their encoding.
CREATE DATABASE gpuagg_latin1 ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';
SELECT current_database() AS here \gset
\c gpuagg_latin1
CREATE EXTENSION gpuagg;
SET client_encoding = 'UTF8';
SELECT gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', txt, n))::text AS text, gpuagg_merge(gpuagg_pack('gpu_approx_count_distinct("any")', txt))::text AS sketch,
	gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', r, n))::text AS record,
	gpuagg_pack('gpu_first(anyelement, anycompatible)', min(txt), max(txt))::text AS row
FROM (SELECT *, s AS r FROM (VALUES ('große'::text, 1), ('Ähre', 2), ('x', 0)) s("größe", n)) q(txt, n, r) \gset
\c :here
SET client_encoding = 'UTF8';
SELECT gpuagg_finish(:'text'::gpuagg_state, 'gpu_argmax(anyelement, anycompatible)', NULL::text),
	gpuagg_finish(all_together(s), 'gpu_approx_count_distinct("any")', NULL::int8),
	row_to_json(gpuagg_finish(:'record'::gpuagg_state, 'gpu_argmax(anyelement, anycompatible)', NULL::record)),
	gpuagg_finish(gpuagg_merge(:'row'::gpuagg_row), 'gpu_first(anyelement, anycompatible)', NULL::text)
FROM (SELECT gpuagg_merge(gpuagg_pack('gpu_approx_count_distinct("any")', txt)) FROM (VALUES ('große'::text), ('Ähre'), ('more')) v(txt) UNION ALL SELECT :'sketch'::gpuagg_state) q(s);
-- characters that LATIN1 does not have, and a database without an encoding
SELECT gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', '日本'::text, 1))::text AS text \gset
\c gpuagg_latin1
SELECT :'text'::gpuagg_state;
SELECT '\x010800000019000000170000000064010000000004000000016400000001414141'::gpuagg_state;
\c :here
DROP DATABASE gpuagg_latin1;
DROP TYPE named;
DROP TYPE opinion;
DROP TABLE located;
DROP AGGREGATE all_together(gpuagg_state);

-- gpuagg_as_type: converts a value through its text
SELECT gpuagg_as_type('x'::char(3), NULL::text) || '|', gpuagg_as_type(0.1::float4, NULL::float8), gpuagg_as_type(2.5, NULL::numeric, (4 << 16) + 1 + 4), gpuagg_as_type(NULL::int, NULL::date),
	gpuagg_as_type('01/02/2024'::text, NULL::date, -1, '{UTC,"ISO, DMY",postgres}'), gpuagg_as_type('2024-02-01'::date, NULL::timestamptz, -1, '{Asia/Tokyo,NULL,NULL}') AT TIME ZONE 'UTC',
	current_setting('TimeZone') <> 'Asia/Tokyo' AS restored;
SELECT gpuagg_as_type('x'::text, NULL::int);
SELECT gpuagg_as_type('abc'::text, NULL::varchar, 2 + 4);
SELECT gpuagg_as_type(now(), NULL::date, -1, '{UTC}');
CREATE TABLE as_types AS SELECT i, i::int2 AS i2, i::varchar(5) AS vc, i::numeric(6, 2) AS n FROM generate_series(1, 5) i;
-- the planner removes it, or replaces it by a cast
EXPLAIN (VERBOSE, COSTS OFF) SELECT gpuagg_as_type(i, NULL::int), gpuagg_as_type(i2, NULL::int8), gpuagg_as_type(i, NULL::numeric), gpuagg_as_type(vc, NULL::text),
	gpuagg_as_type(vc, NULL::varchar), gpuagg_as_type(vc, NULL::varchar, 9), gpuagg_as_type(vc, NULL::varchar, 10), gpuagg_as_type(n, NULL::numeric), gpuagg_as_type(n, NULL::int) FROM as_types;
DROP TABLE as_types;
