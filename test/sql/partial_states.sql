-- Partial aggregation: gpuagg_finish(gpuagg_merge(gpuagg_pack(...))) equals the aggregate, in the custom scan and
-- without it, in parallel, and with states that were converted to text or binary.
SET gpuagg.cache = off;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE TYPE feeling AS ENUM ('sad', 'well', 'glad');
CREATE TABLE parts AS
SELECT i, i % 3 AS part, i % 50 AS k, nullif(i % 1000, 7) AS i4, i * 37::int8 % 1000003 * 1000003 AS i8, (i % 991)::numeric(10, 2) / 7 AS n,
	CASE WHEN i % 5003 = 0 THEN 'NaN' ELSE i % 7 * 1000.001 END::numeric AS nn, (i % 97)::float8 / 4 - 3 AS f, md5((i % 500)::text) AS t,
	(ARRAY['sad', 'well', 'glad'])[1 + i * 7 % 3]::feeling AS e, DATE '2020-01-01' + i % 300 AS d, ARRAY[i % 7, 3] AS a
FROM generate_series(1, 20000) i;
INSERT INTO parts (part, k) VALUES (0, 99), (1, 99);
ANALYZE parts;

CREATE TABLE calls (n int, agg regprocedure, args text, result text);
INSERT INTO calls VALUES
(1, 'gpu_stddev(int4)', 'i4', 'numeric'), (2, 'gpu_variance(int8)', 'i8', 'numeric'), (3, 'gpu_var_pop(numeric)', 'n', 'numeric'),
(4, 'gpu_stddev_samp(numeric)', 'nn', 'numeric'), (5, 'gpu_sum(int8)', 'i8', 'numeric'), (6, 'gpu_avg(int8)', 'i8', 'numeric'),
(7, 'gpu_sum(numeric)', 'n', 'numeric'), (8, 'gpu_avg(numeric)', 'nn', 'numeric'), (9, 'stddev(int2)', 'k::int2', 'numeric'),
(10, 'gpu_histogram(float8, float8, float8, int4)', 'f, 0::float8, 20::float8, 4', 'int8[]'),
(11, 'gpu_histogram(float8, float8, float8, int4, float8)', 'f, 20::float8, 0::float8, 4, i4::float8', 'float8[]'),
(12, 'gpu_histogram(float8, float8[])', 'f, ''{-1, 5, 9}''::float8[]', 'int8[]'),
(13, 'gpu_histogram_log(float8, float8, float8, int4)', 'f, 1::float8, 20::float8, 4', 'int8[]'),
(14, 'gpu_approx_count_distinct("any")', 't', 'int8'), (15, 'gpu_approx_count_distinct("any")', 'i', 'int8'),
(16, 'gpu_approx_percentile(float8, float8)', 'f, 0.3::float8', 'float8'),
(17, 'gpu_approx_percentile(float8, float8[])', 'i::float8, ''{0.1, NULL, 0.9}''::float8[]', 'float8[]'),
(18, 'gpu_argmax(anyelement, anycompatible)', 'i4, d', 'int4'), (19, 'gpu_argmin(anyelement, anycompatible)', 't, e', 'text'),
(20, 'gpu_first(anyelement, anycompatible)', 'e, t', 'feeling'), (21, 'gpu_last(anyelement, anycompatible)', 'f, i8', 'float8'),
(22, 'gpu_argmax(anyelement, anycompatible)', 'a, t COLLATE "C"', 'int4[]');
CREATE FUNCTION partly(c calls) RETURNS text LANGUAGE sql AS $$
	SELECT format('gpuagg_finish(gpuagg_merge(gpuagg_pack(%L::regprocedure, %s)), %L::regprocedure, NULL::%s)', c.agg, c.args, c.agg, c.result) $$;
CREATE FUNCTION wholly(c calls) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s(%s)', split_part(c.agg::text, '(', 1), c.args) $$;
-- the number of groups, and of groups that differ
CREATE FUNCTION compare_parts(c calls, what text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT format(''%%s groups, %%s differ'', count(*), count(*) FILTER (WHERE b.x IS DISTINCT FROM a.x))
		FROM (%s) b FULL JOIN (SELECT k, %s AS x FROM parts GROUP BY k) a USING (k)', what, wholly(c)) INTO result;
	RETURN result;
END $$;
-- in the custom scan
SET gpuagg.require = 'require';
SELECT n, agg, args, compare_parts(c, format('SELECT k, %s AS x FROM parts GROUP BY k', partly(c))) FROM calls c WHERE n <> 9 ORDER BY n;
-- without it, where each row reads a state and makes a new one
SET gpuagg.require = 'allow';
SET gpuagg.enabled = off;
SELECT n, compare_parts(c, format('SELECT k, %s AS x FROM parts GROUP BY k', partly(c))) FROM calls c ORDER BY n;
-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, i4)) FROM parts;
SELECT n, compare_parts(c, format('SELECT k, %s AS x FROM parts GROUP BY k', partly(c))) FROM calls c WHERE n IN (1, 10, 14, 16, 19) ORDER BY n;
SET max_parallel_workers_per_gather = 0;

-- states of three parts of the rows, made by the custom scan, sent as text and as bytes, combined without it
CREATE TABLE states (n int, k int, part int, state gpuagg_state);
SET gpuagg.enabled = on;
SET gpuagg.require = 'require';
DO $$
DECLARE
	c calls;
BEGIN
	FOR c IN SELECT * FROM calls LOOP
		IF c.n <> 9 THEN
			EXECUTE format('INSERT INTO states SELECT %s, k, part, gpuagg_merge(gpuagg_pack(%L::regprocedure, %s)) FROM parts GROUP BY k, part',
				c.n, c.agg, c.args);
		END IF;
	END LOOP;
END $$;
RESET gpuagg.require;
CREATE TABLE travelled (LIKE states);
COPY states TO PROGRAM 'cat >gpuagg_partial_states' (FORMAT binary);
COPY travelled FROM PROGRAM 'cat gpuagg_partial_states; rm gpuagg_partial_states' (FORMAT binary);
SELECT count(*), count(*) FILTER (WHERE s.state::text <> t.state::text) AS binary_differs,
	count(*) FILTER (WHERE s.state::text::gpuagg_state::text <> s.state::text) AS text_differs
FROM states s JOIN travelled t USING (n, k, part);
-- SQL can call the combine function of gpuagg_merge through an aggregate
CREATE AGGREGATE together(gpuagg_state) (SFUNC = gpuagg_merge_combine, STYPE = gpuagg_state);
SELECT n, compare_parts(c, format('SELECT k, gpuagg_finish(together(state), %L::regprocedure, NULL::%s) AS x FROM travelled WHERE n = %s GROUP BY k',
	agg, result, n)) FROM calls c WHERE n <> 9 ORDER BY n;
-- states of rows
SELECT gpuagg_finish(gpuagg_merge(row::text::gpuagg_row), 'gpu_last(anyelement, anycompatible)', NULL::feeling) = gpu_last(e, t)
FROM (SELECT gpuagg_pack('gpu_last(anyelement, anycompatible)'::regprocedure, e, t) AS row, e, t FROM parts WHERE i <= 100) q;
-- documented forms
SELECT gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, i)) FROM generate_series(1, 5) i;
SELECT gpuagg_merge(gpuagg_pack('gpu_histogram(float8, float8, float8, int4)'::regprocedure, i::float8, 0::float8, 8::float8, 2)) FROM generate_series(1, 5) i;
SELECT gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)'::regprocedure, e, i)) FROM parts WHERE i < 5;
-- no rows, and NULL rows
SELECT gpuagg_finish(NULL, 'gpu_approx_count_distinct("any")', NULL::int8), gpuagg_finish(NULL, 'gpu_stddev(int4)', NULL::numeric),
	gpuagg_finish(NULL, NULL, NULL::int);
SELECT gpuagg_merge(NULL::gpuagg_row) IS NULL FROM parts;
SELECT gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, i4)) FILTER (WHERE i < 0) IS NULL AS none FROM parts;

-- errors
SELECT gpuagg_pack('gpu_stddev(int4)', 'text'::text);
SELECT gpuagg_pack('gpu_stddev(int4)', 1, 2);
SELECT gpuagg_pack('gpu_stddev(int4)', VARIADIC ARRAY[1]);
SELECT gpuagg_merge(gpuagg_pack('gpu_sum(int4)'::regprocedure, 1));
SELECT gpuagg_merge(gpuagg_pack('int4pl(int4, int4)'::regprocedure, 1, 1));
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, 1)), 'gpu_sum(int8)', NULL::numeric);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, 1)), 'gpu_stddev(int4)', NULL::int);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)'::regprocedure, 1, 1)), 'gpu_argmax(anyelement, anycompatible)', NULL::text);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_histogram(float8, float8, float8, int4, float8)'::regprocedure, 1::float8, 0::float8, 2::float8, 2, 1::float8)),
	'gpu_histogram(float8, float8, float8, int4)', NULL::int8[]);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_histogram(float8, float8, float8, int4)'::regprocedure, 1::float8, 0::float8, 2::float8, 2)),
	'gpu_histogram(float8, float8, float8, int4, float8)', NULL::float8[]);
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_approx_percentile(float8, float8[])'::regprocedure, 1::float8, '{}'::float8[])),
	'gpu_approx_percentile(float8, float8)', NULL::float8);
SELECT gpuagg_pack('gpu_argmax(anyelement, anycompatible)', 'a literal without a type', 1);
SELECT together(state) FROM states WHERE n IN (1, 2) AND k = 1;
SELECT together(state) FROM states WHERE n IN (10, 12) AND k = 1;
SELECT together(state) FROM states WHERE n IN (18, 22) AND k = 1;
SELECT ''::gpuagg_state;
SELECT '\x0201'::gpuagg_state;
SELECT '\x01ff'::gpuagg_state;
SELECT 'x'::gpuagg_row;
CREATE ROLE gpuagg_nobody;
REVOKE EXECUTE ON FUNCTION gpu_stddev(int4) FROM PUBLIC;
GRANT SELECT ON parts TO gpuagg_nobody;
SET ROLE gpuagg_nobody;
SELECT gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, i4)) FROM parts;
SET gpuagg.enabled = off;
SELECT gpuagg_merge(gpuagg_pack('gpu_stddev(int4)'::regprocedure, i4)) FROM parts;
RESET gpuagg.enabled;
RESET ROLE;
GRANT EXECUTE ON FUNCTION gpu_stddev(int4) TO PUBLIC;
REVOKE SELECT ON parts FROM gpuagg_nobody;
DROP ROLE gpuagg_nobody;

-- Bytes that are no valid state are an error, and valid ones can be used.
CREATE FUNCTION tampered(c calls, state text, rounds int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	bytes bytea;
	accepted int := 0;
BEGIN
	FOR i IN 1 .. rounds LOOP
		bytes := state::bytea;
		FOR j IN 0 .. i % 3 LOOP
			bytes := set_byte(bytes, (2 + abs(hashint8(i * 1000 + j) % (length(bytes) - 2)))::int,
				CASE i % 5 WHEN 0 THEN 255 WHEN 1 THEN 0 WHEN 2 THEN 127 WHEN 3 THEN 128 ELSE abs(hashint8(j * 1000 + i) % 256) END::int);
		END LOOP;
		IF i % 7 = 0 THEN
			bytes := substr(bytes, 1, abs(hashint8(i) % (length(bytes) + 1))::int);
		END IF;
		BEGIN
			EXECUTE format('SELECT gpuagg_finish(together(s), %L::regprocedure, NULL::%s) FROM (VALUES (%L::gpuagg_state), (%L)) v(s)',
				c.agg, c.result, bytes, state);
			accepted := accepted + 1;
		EXCEPTION WHEN OTHERS THEN
			IF SQLSTATE LIKE 'XX%' AND SQLERRM !~ 'invalid memory alloc|cache lookup failed for type' THEN
				RAISE NOTICE '% %: % %', c.agg, bytes, SQLSTATE, SQLERRM;
			END IF;
		END;
	END LOOP;
	RETURN accepted;
END $$;
SELECT n, tampered(c, (SELECT state::text FROM states s WHERE s.n = c.n AND k = 1 AND part = 1), 250) BETWEEN 0 AND 249 FROM calls c WHERE n <> 9 ORDER BY n;
-- the same for rows
CREATE FUNCTION tampered_row(r text, rounds int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	bytes bytea;
	accepted int := 0;
	state gpuagg_state;
BEGIN
	FOR i IN 1 .. rounds LOOP
		bytes := r::bytea;
		FOR j IN 0 .. i % 3 LOOP
			bytes := set_byte(bytes, abs(hashint8(i * 1000 + j) % length(bytes))::int,
				CASE i % 4 WHEN 0 THEN 255 WHEN 1 THEN 0 WHEN 2 THEN 23 ELSE abs(hashint8(j * 1000 + i) % 256) END::int);
		END LOOP;
		IF i % 7 = 0 THEN
			bytes := substr(bytes, 1, abs(hashint8(i) % (length(bytes) + 1))::int);
		END IF;
		BEGIN
			EXECUTE format('SELECT gpuagg_merge(s) FROM (VALUES (%L::gpuagg_row), (%L)) v(s)', bytes, r) INTO state;
			accepted := accepted + 1;
		EXCEPTION WHEN OTHERS THEN
			IF SQLSTATE LIKE 'XX%' AND SQLERRM !~ 'invalid memory alloc|cache lookup failed for type' THEN
				RAISE NOTICE '%: % %', bytes, SQLSTATE, SQLERRM;
			END IF;
		END;
	END LOOP;
	RETURN accepted;
END $$;
SELECT tampered_row(gpuagg_pack('gpu_last(anyelement, anycompatible)'::regprocedure, 3.5::numeric, 'x'::text)::text, 300) < 300,
	tampered_row(gpuagg_pack('gpu_stddev(numeric)'::regprocedure, 3.5::numeric)::text, 300) < 300,
	tampered_row(gpuagg_pack('gpu_histogram(float8, float8[])'::regprocedure, 3::float8, '{1, 2}'::float8[])::text, 300) < 300;
-- records
SELECT gpuagg_finish(gpuagg_merge(r), 'gpu_last(anyelement, anycompatible)', NULL::record) AS record,
	gpuagg_finish(gpuagg_merge(rs), 'gpu_argmin(anyelement, anycompatible)', NULL::record[]) AS records
	FROM (SELECT gpuagg_pack('gpu_last(anyelement, anycompatible)'::regprocedure, ROW(i, 'x', NULL, ROW(i % 3, 1.50)), i),
			gpuagg_pack('gpu_argmin(anyelement, anycompatible)'::regprocedure, ARRAY[ROW(i, ARRAY[i]), NULL], ROW(i % 7, -i))
		FROM generate_series(1, 100) i) v(r, rs);
SELECT tampered_row(gpuagg_pack('gpu_last(anyelement, anycompatible)'::regprocedure, ROW(3, ARRAY['t'], ROW(now(), 1.5)), ROW('x'::text, 1))::text, 500) < 500,
	tampered_row(gpuagg_pack('gpu_last(anyelement, anycompatible)'::regprocedure, ARRAY[ROW(3), ROW('u'::text)], ROW(1, NULL::int))::text, 500) < 500;
-- rows in tables, read where record types have other numbers and types other columns
CREATE TYPE altered AS (a int, b int);
CREATE TABLE kept AS
SELECT gpuagg_pack(agg, ROW(1, 2), 5) AS record, gpuagg_pack(agg, ARRAY[ROW(3, 4)], ROW(6)) AS records,
	gpuagg_pack(agg, ROW(1, 2)::altered, 5) AS composite, gpuagg_pack(agg, ARRAY[ROW(3, 4)::altered], 5) AS composites
FROM (SELECT 'gpu_argmax(anyelement, anycompatible)'::regprocedure AS agg) a;
ALTER TYPE altered ALTER ATTRIBUTE b TYPE text;
\c
SELECT ROW('a'::text, 'b'::text, i), ROW('c'::text, i) FROM generate_series(1, 1) i;
SELECT gpuagg_finish(gpuagg_merge(record), 'gpu_argmax(anyelement, anycompatible)', NULL::record) AS record,
	gpuagg_finish(gpuagg_merge(records), 'gpu_argmax(anyelement, anycompatible)', NULL::record[]) AS records,
	gpuagg_finish(gpuagg_merge(composite), 'gpu_argmax(anyelement, anycompatible)', NULL::altered) AS composite,
	gpuagg_finish(gpuagg_merge(composites), 'gpu_argmax(anyelement, anycompatible)', NULL::altered[]) AS composites FROM kept;
SELECT record::text::gpuagg_row::text = record::text AS same FROM kept;
-- a column's name must consist of whole characters
SELECT replace(gpuagg_pack('gpu_argmax(anyelement, anycompatible)'::regprocedure, ROW(1), 5)::text,
	'000000026631', '00000041' || repeat('61', 62) || 'e282ac')::gpuagg_row;
DROP TABLE kept;
DROP TYPE altered;
DROP TABLE parts, calls, states, travelled CASCADE;
DROP FUNCTION tampered_row;
DROP TYPE feeling;
