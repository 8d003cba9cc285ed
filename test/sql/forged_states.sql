-- Forged states and rows: their contents are checked like input of the types, and none may contain another state.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN never_null AS int NOT NULL;
CREATE DOMAIN short_text AS varchar(3);
CREATE DOMAIN tenth AS numeric(4, 1);
CREATE DOMAIN digits AS text CHECK (value ~ '^[0-9]+$');
CREATE TYPE pair AS (a positive, b digits);
CREATE DOMAIN good_pair AS pair CHECK ((value).a > 1);
CREATE TYPE span AS RANGE (subtype = positive);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE FUNCTION counted(bytes text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT lpad(to_hex(octet_length(bytes) / 2), 8, '0') || bytes $$;
CREATE FUNCTION hex(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT encode(convert_to(t, 'UTF8'), 'hex') $$;
CREATE FUNCTION type_hex(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN t::regtype::oid < 10000 THEN lpad(to_hex(t::regtype::oid::int), 8, '0') ELSE '00000000' || counted(hex(t)) END $$;
-- The state of gpu_argmax of one row, from the bytes of the value (NULL: a NULL), with 1 as the key.
CREATE FUNCTION forged(t text, bytes text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT '\x0108' || type_hex(t) || type_hex('int4') || '0000000000' || '01' || '00' || counted('00000001') ||
		coalesce('00' || counted(bytes), '01') $$;
-- The same as a row.
CREATE FUNCTION forged_row(t text, bytes text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT '\x' || counted(hex('public.gpu_argmax(anyelement,anycompatible)')) || '0000000000' || '00000002' ||
		type_hex(t) || coalesce('00' || counted(bytes), '01') || type_hex('int4') || '00' || counted('00000001') $$;
-- A record of one column.
CREATE FUNCTION forged_record(t text, bytes text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT '\x0108' || type_hex('record') || type_hex('int4') || '0000000000' || '01' || '00' || counted('00000001') ||
		'00' || type_hex('record') || '00000001' || counted(hex('a')) || type_hex(t) || '0000000000' || coalesce('00' || counted(bytes), '01') $$;
CREATE FUNCTION try(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE query INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
-- The result of each value as input of its type, in a state, in a row, and in a record.
CREATE TABLE trials (n int, t text, input text, bytes text);
INSERT INTO trials VALUES (1, 'public.positive', '5', '00000005'), (2, 'public.positive', '-5', 'fffffffb'), (3, 'public.never_null', '7', '00000007'),
(4, 'public.never_null', NULL, NULL), (5, 'public.short_text', 'abc', hex('abc')), (6, 'public.short_text', 'abcd', hex('abcd')),
(7, 'public.tenth', '1.25', '00020000000000020001' || '09c4'), (8, 'public.digits', '12', hex('12')), (9, 'public.digits', 'x', hex('x')),
(10, 'public.positive[]', '{1,2}', hex('{1,2}')), (11, 'public.positive[]', '{1,-2}', hex('{1,-2}')),
(12, 'public.never_null[]', '{NULL}', hex('{NULL}')), (13, 'public.pair', '(1,1)', hex('(1,1)')), (14, 'public.pair', '(0,1)', hex('(0,1)')),
(15, 'public.good_pair', '(1,1)', hex('(1,1)')), (16, 'public.good_pair', '(2,2)', hex('(2,2)')), (17, 'public.pair[]', '{"(1,x)"}', hex('{"(1,x)"}')),
(18, 'public.span', '[1,3]', hex('[1,3]')), (19, 'public.span', '[-1,3]', hex('[-1,3]')), (20, 'public.mood', 'glad', hex('glad')),
(21, 'public.mood', 'mad', hex('mad')), (22, 'public.span_multirange', NULL, hex('{[-1,3]}'));
SELECT n, t, input, try(format('SELECT %L::%s', input, t)) AS typed,
	try(format('SELECT gpuagg_finish(%L::gpuagg_state, ''gpu_argmax(anyelement, anycompatible)'', NULL::%s)', forged(t, bytes), t)) AS of_state,
	try(format('SELECT gpuagg_finish(gpuagg_merge(%L::gpuagg_row), ''gpu_argmax(anyelement, anycompatible)'', NULL::%s)', forged_row(t, bytes), t)) AS of_row,
	try(format('SELECT gpuagg_finish(%L::gpuagg_state, ''gpu_argmax(anyelement, anycompatible)'', NULL::record)', forged_record(t, bytes))) AS of_record
FROM trials ORDER BY n;
-- a constraint that was added later
CREATE TABLE kept AS SELECT forged('public.positive', '00000005')::gpuagg_state AS state;
ALTER DOMAIN positive ADD CHECK (value <> 5);
SELECT gpuagg_finish(state, 'gpu_argmax(anyelement, anycompatible)', NULL::positive) FROM kept;
-- outer joins make NULLs of a domain with NOT NULL, also in parallel plans
CREATE TABLE outer_rows AS SELECT i, i % 3 AS g FROM generate_series(1, 1000) i;
CREATE TABLE inner_rows (i int, d never_null);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.enabled = off;
SELECT gpu_argmax(d, o.i) IS NULL AS none, gpu_argmax(ROW(d), o.i) AS record FROM outer_rows o LEFT JOIN inner_rows USING (i);
RESET gpuagg.enabled;

-- states and rows inside states and rows
SELECT try(format('SELECT %L::gpuagg_state', forged(t, hex('x')))) AS state, try(format('SELECT %L::gpuagg_row', forged_row(t, hex('x')))) AS row,
	try(format('SELECT %L::gpuagg_state', forged_record(t, hex('x')))) AS record
FROM unnest(ARRAY['public.gpuagg_state', 'public.gpuagg_row', 'public.gpuagg_state[]']) t;
CREATE DOMAIN state_domain AS gpuagg_state;
CREATE TYPE state_pair AS (a int, b state_domain[]);
SELECT try(format('SELECT %L::gpuagg_state', forged(t, hex('x')))) FROM unnest(ARRAY['public.state_domain', 'public.state_pair', 'public.state_pair[]']) t;
DO $$
DECLARE
	s text := forged('int4', '00000001');
	r text := forged_row('int4', '00000001');
BEGIN
	FOR i IN 1 .. 3000 LOOP
		s := forged('public.gpuagg_state', right(s, -2));
		r := forged_row('public.gpuagg_row', right(r, -2));
	END LOOP;
	BEGIN
		PERFORM s::gpuagg_state;
	EXCEPTION WHEN feature_not_supported THEN
		RAISE NOTICE '% bytes: %', length(s) / 2, SQLERRM;
	END;
	PERFORM r::gpuagg_row;
EXCEPTION WHEN feature_not_supported THEN
	RAISE NOTICE '% bytes: %', length(r) / 2, SQLERRM;
END $$;
-- a domain whose constraint reads a state, which contains the domain, and so on
CREATE FUNCTION is_state(text) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN $1::gpuagg_state IS NOT NULL; END';
CREATE DOMAIN state_text AS text CHECK (is_state(value));
DO $$
DECLARE
	s text := forged('int4', '00000001');
BEGIN
	FOR i IN 1 .. 12 LOOP
		s := forged('public.state_text', hex(s));
	END LOOP;
	RAISE NOTICE '%', length(s::gpuagg_state::text);
END $$;
-- records in records
DO $$
DECLARE
	s text;
BEGIN
	FOR i IN 1 .. 3 LOOP
		s := '\x0108' || type_hex('record') || type_hex('int4') || '0000000000' || '01' || '00' || counted('00000001') || '00' ||
			repeat('000008c9' || '00000001' || '0000000161' || '000008c9' || '0000000000' || '00', 20000 * i) || '000008c9' || '00000000';
		BEGIN
			PERFORM s::gpuagg_state;
			RAISE NOTICE 'a record';
		EXCEPTION WHEN statement_too_complex THEN
			RAISE NOTICE '%', SQLERRM;
		END;
	END LOOP;
END $$;
-- the values that an aggregate would put there
SET gpuagg.require = 'allow';
CREATE TABLE stated AS SELECT i, forged('int4', '00000001')::gpuagg_state AS state FROM generate_series(1, 1000) i;
SET max_parallel_workers_per_gather = 0;
SELECT gpu_argmax(state, i) FROM stated;
SELECT gpu_argmax(ROW(state), i) IS NOT NULL AS record FROM stated;
SET max_parallel_workers_per_gather = 2;
\set VERBOSITY terse
SELECT gpu_argmax(state, i) FROM stated;
\set VERBOSITY default
-- raised by the leader or by a worker; only the context would show which
\set SHOW_CONTEXT never
SET gpuagg.enabled = off;
SELECT gpu_argmax(ROW(state), i) IS NOT NULL AS record FROM stated;
\set SHOW_CONTEXT errors
RESET gpuagg.enabled;
SELECT gpuagg_pack('gpu_argmax(anyelement, anycompatible)', state, i) FROM stated LIMIT 1;
SELECT gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', ROW(state), i)) FROM stated LIMIT 1;

-- the number of rows is limited
SELECT try(format('SELECT gpuagg_finish(%L::gpuagg_state, ''gpu_avg(int8)'', NULL::numeric)', '\x0101' || n || '00000001' || repeat('00', 12) || '0001'))
FROM unnest(ARRAY['0000000000000002', '00ffffffffffffff', '0100000000000000', '7fffffffffffffff', '8000000000000000']) n;
-- bins are checked before memory is allocated: 29 bytes of a histogram of 999,998 bins
SELECT try(format('SELECT %L::gpuagg_state', '\x0105' || flags || n || '3ff0000000000000' || '4024000000000000'))
FROM unnest(ARRAY['00', '06']) flags, unnest(ARRAY['000f423f', '7fffffff', '80000000', '00000000']) n;
-- collations by number
SELECT try(format('SELECT %L::gpuagg_state', '\x0108' || type_hex('text') || type_hex('int4') || '01' || counted(hex(name)) || '00'))
FROM unnest(ARRAY['4294967295', '123456789', '-', '"pg_catalog"."C"', 'pg_catalog.nowhere']) name;
-- words
SELECT 'abc'::gpuagg_state;
SELECT 'abc'::gpuagg_row;
SELECT '\x0g'::gpuagg_state;
SELECT gpuagg_pack('gpu_stddev(int4)', 1.5, 'text'::text);
-- types that were dropped
CREATE TABLE kept_rows AS SELECT gpuagg_pack('gpu_argmax(anyelement, anycompatible)', 'glad'::mood, 1) AS row;
DROP TYPE mood;
\set VERBOSITY sqlstate
SELECT row FROM kept_rows;
SELECT gpuagg_merge(row) FROM kept_rows;
\set VERBOSITY default
RESET ALL;
SET client_min_messages = warning;
DROP TABLE trials, kept, kept_rows, stated, outer_rows, inner_rows;
DROP DOMAIN positive, never_null, short_text, tenth, digits, good_pair, state_domain, state_text CASCADE;
DROP TYPE pair, state_pair CASCADE;
DROP FUNCTION try, forged, forged_row, forged_record, type_hex, hex, counted, is_state;

-- a row in a table whose aggregate has another OID, as after pg_upgrade
CREATE CAST (gpuagg_row AS bytea) WITHOUT FUNCTION;
CREATE CAST (bytea AS gpuagg_row) WITHOUT FUNCTION;
SELECT gpuagg_merge(overlay(gpuagg_pack('gpu_sum(int8)', 7::int8)::bytea PLACING substr(gpuagg_pack('gpu_sum(numeric)', 7::numeric)::bytea, 1, 4)
	FROM 1 FOR 4)::gpuagg_row);
DROP CAST (gpuagg_row AS bytea);
DROP CAST (bytea AS gpuagg_row);

-- constraints of domains inside a value see the settings of the session
CREATE DOMAIN slashed AS date CHECK (value::text ~ '/');
CREATE DOMAIN of_latin_client AS int CHECK (pg_client_encoding() = 'LATIN1');
CREATE TYPE slashed_pair AS (a slashed, b of_latin_client, c interval);
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
SET client_encoding = 'LATIN1';
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', p, 1)), 'gpu_argmax(anyelement, anycompatible)', NULL::slashed_pair)
FROM (SELECT ROW('31/01/2020', 2, '-1 02:00')::slashed_pair AS p) s;
RESET client_encoding;
RESET intervalstyle;
RESET datestyle;
