-- gpu_summary and gpuagg_describe: compared with the aggregates that they combine and with core's, in the custom scan, as plain aggregates
-- and in parallel; NULL, NaN and infinities; privileges, row security, names and types of all kinds; states made by hand.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE TABLE summed AS
SELECT i % 7 AS g, CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 7919 % 1009) - 500 END::int2 AS i2, i * 104729 % 99991 AS i4, i * 1000003::bigint AS i8,
	(i * 37 % 64 / 8.0)::float4 AS f4, (ARRAY['0', '-0', 'nan', 'inf', '-inf', NULL, (i % 90)::text])[1 + i * 41 % 7]::float8 AS f8,
	(i * i % 1009 / 8.0)::float8 AS x, (ARRAY[i % 50 / 4.0, 'NaN', 1e30, NULL])[1 + i * 59 % 4]::numeric AS n
FROM generate_series(1, 4000) i;
INSERT INTO summed (g) SELECT 100 FROM generate_series(1, 3);
ANALYZE summed;

-- The columns whose summaries differ from the answers of other aggregates, in groups and with FILTER.
CREATE FUNCTION wrong_summaries(names text[]) RETURNS TABLE (name text, groups bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOREACH name IN ARRAY names LOOP
		EXECUTE format($q$
			WITH ours AS (SELECT g, gpu_summary(%1$I) AS s, gpu_summary(%1$I) FILTER (WHERE i4 %% 3 = 0) AS f FROM summed GROUP BY g),
				rows AS (SELECT g, i4, %1$I::float8 AS x, isfinite(%1$I::float8) AS fine FROM (SELECT * FROM summed) s),
				theirs AS (SELECT g, count(x) AS count, count(*) - count(x) AS nulls, gpu_approx_count_distinct(x) AS d, min(x) AS min, max(x) AS max, avg(x) AS mean,
						CASE WHEN bool_and(fine) THEN stddev(x) WHEN count(x) > 1 THEN 'NaN' END AS deviation, gpu_approx_percentile(x, ARRAY[0.25, 0.5, 0.75]) AS q,
						CASE WHEN bool_and(fine) THEN gpu_skewness(x) END AS skewness, CASE WHEN bool_and(fine) THEN gpu_kurtosis(x) END AS kurtosis,
						count(x) FILTER (WHERE i4 %% 3 = 0) AS fcount, min(x) FILTER (WHERE i4 %% 3 = 0) AS fmin
					FROM rows GROUP BY g)
			SELECT count(*) FROM ours FULL JOIN theirs t USING (g)
			WHERE ((s).count, (s).nulls, (s).distinct_values, (s).min, (s).max, (s).q1, (s).median, (s).q3)
					IS DISTINCT FROM (t.count, t.nulls, t.d, t.min, t.max, t.q[1], t.q[2], t.q[3])
				OR ((f).count, (f).min) IS DISTINCT FROM (t.fcount, t.fmin)
				OR round((s).mean::numeric, 3) IS DISTINCT FROM round(t.mean::numeric, 3)
				OR round((s).deviation::numeric, 3) IS DISTINCT FROM round(t.deviation::numeric, 3)
				OR skewness IS NOT NULL AND round((s).skewness::numeric, 6) IS DISTINCT FROM round(t.skewness::numeric, 6)
				OR kurtosis IS NOT NULL AND round((s).kurtosis::numeric, 6) IS DISTINCT FROM round(t.kurtosis::numeric, 6) $q$, name) INTO groups;
		IF groups > 0 THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;
CREATE FUNCTION isfinite(float8) RETURNS bool IMMUTABLE LANGUAGE sql AS $$ SELECT $1 <> 'NaN' AND abs($1) <> 'Infinity' $$;
SET gpuagg.require = 'require';
SELECT * FROM wrong_summaries('{i2,i4,i8,f4,f8,x,n}');
SET work_mem = '64kB';
SELECT * FROM wrong_summaries('{i2,f8}');
RESET work_mem;
RESET gpuagg.require;
SET gpuagg.enabled = off;
SELECT * FROM wrong_summaries('{i2,i4,i8,f4,f8,x,n}');
ALTER TABLE summed SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT g, gpu_summary(x) FROM summed GROUP BY g;
SELECT * FROM wrong_summaries('{i2,f8,x,n}');
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SELECT * FROM wrong_summaries('{i2,f8,x,n}');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- histograms: bars between the least and the greatest finite value
SELECT (gpu_summary(x)).histogram FROM summed;
SELECT what, (gpu_summary(x)).histogram || '|' AS histogram FROM (VALUES ('rising', ARRAY[1, 2, 2, 3, 3, 3, 4, 4, 4, 4]::float8[]), ('equal', '{5,5,5}'), ('two', '{-1,1}'),
	('infinities do not count', '{-inf,0,1,2,nan,inf}'), ('the largest', '{-1.7e308,0,1.7e308}'), ('the least', '{0,5e-324,5e-324}'), ('none finite', '{nan,inf}')) v (what, xs), unnest(xs) x GROUP BY what ORDER BY what;
-- no rows, one row, values that are not finite or whose powers overflow
RESET gpuagg.require;
\x
SELECT what, (gpu_summary(x)).* FROM (VALUES ('one', ARRAY[2]::float8[]), ('nulls', '{NULL,NULL}'), ('infinity', '{1,2,inf}'), ('both', '{-inf,inf}'), ('nan', '{nan,1}'), ('large', '{1e200,-1e200,0}')) v (what, xs),
	unnest(xs) x GROUP BY what ORDER BY what;
SELECT (gpu_summary(x)).* FROM summed WHERE g > 1000;
\x
-- DISTINCT, grouping sets, HAVING, windows, errors
SELECT (gpu_summary(DISTINCT g)).count, (gpu_summary(DISTINCT g)).mean FROM summed WHERE g < 100;
SELECT g, (gpu_summary(i2)).nulls, (gpu_summary(x)).median FROM summed WHERE g < 2 GROUP BY ROLLUP (g) ORDER BY g;
SELECT g, (gpu_summary(i2)).count FROM summed GROUP BY g HAVING (gpu_summary(i2)).nulls < 114 ORDER BY g;
SELECT i4, (gpu_summary(i4) OVER (ORDER BY i4 ROWS 2 PRECEDING)).median FROM summed ORDER BY i4 LIMIT 4;
SELECT gpu_summary('x');
-- partial states: sent as text, combined in any order, finished; and made by hand
SELECT g = 100 AS nulls, gpuagg_merge(gpuagg_pack('gpu_summary(float8)', f8)) AS state INTO summary_states FROM summed GROUP BY g;
SELECT gpuagg_finish(gpuagg_merge(state::text::gpuagg_state), 'gpu_summary(float8)', NULL::gpuagg_summary)::text = (SELECT gpu_summary(f8)::text FROM summed) AS same,
	gpuagg_finish(gpuagg_merge(state) FILTER (WHERE nulls), 'gpu_summary(float8)', NULL::gpuagg_summary) AS nulls FROM summary_states;
SELECT gpuagg_merge(gpuagg_pack('gpu_summary(float8)', x)) FROM (VALUES (1::float8), (2), (NULL)) v(x);
SELECT gpuagg_finish(NULL, 'gpu_summary(float8)', NULL::gpuagg_summary);
CREATE FUNCTION pg_temp.try_summary(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN gpuagg_finish(replace(state, ' ', '')::gpuagg_state, 'gpu_summary(float8)', NULL::gpuagg_summary)::text;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT what, pg_temp.try_summary(state) FROM (VALUES
	('three zeros', '\x010c 0000000000000001 00000000 00000000 0000000000000003 0000000000000000 0000000000000000 0000000000000000 7ff0000000000000 fff0000000000000 00000000 00000000 4008000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000'),
	('another number of values', '\x010c 0000000000000001 00000000 00000000 0000000000000003 0000000000000000 0000000000000000 0000000000000000 7ff0000000000000 fff0000000000000 00000000 00000000 4000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000'),
	('negative NULLs', '\x010c ffffffffffffffff 00000000 00000000 0000000000000003 0000000000000000 0000000000000000 0000000000000000 7ff0000000000000 fff0000000000000 00000000 00000000 4008000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000'),
	('NaN as number of values', '\x010c 0000000000000001 00000000 00000000 0000000000000003 0000000000000000 0000000000000000 0000000000000000 7ff0000000000000 fff0000000000000 00000000 00000000 7ff8000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000'),
	('too short', '\x010c 0000000000000001 00000000'),
	('too long', '\x010c 0000000000000001 00000000 00000000 0000000000000003 0000000000000000 0000000000000000 0000000000000000 7ff0000000000000 fff0000000000000 00000000 00000000 4008000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00')) v (what, state);

-- gpuagg_describe: names that need quotes, dropped and generated columns, types without an order or hashes
SET timezone = 'UTC';
CREATE SCHEMA "Odd ""schema";
CREATE TYPE "Odd ""schema".hue AS ENUM ('red', 'blue');
CREATE DOMAIN "Odd ""schema".positive AS int CHECK (value > 0);
CREATE TABLE "Odd ""schema"."a ""table" (a int, gone int, "B ""col" numeric(8, 2), d text, "order" json, p point, tz timestamptz, ts timestamp, day date, b bool, arr int[],
	m money, j jsonb, hue "Odd ""schema".hue, pos "Odd ""schema".positive, u uuid, iv interval, v varchar(9), bits bit(3), f float8, twice int GENERATED ALWAYS AS (a * 2) STORED);
ALTER TABLE "Odd ""schema"."a ""table" DROP COLUMN gone;
INSERT INTO "Odd ""schema"."a ""table"
SELECT i, i / 4.0, CASE WHEN i % 10 > 0 THEN 'x' || i % 7 * (i % 3) END, '{}', '(1,1)', '2026-01-01 00:00+00'::timestamptz + i * interval '1 h', '2026-01-01'::timestamp + i * interval '1 min',
	'2026-01-01'::date + i % 30, i % 3 = 0, ARRAY[i % 4], i::money, jsonb_build_object('k', i % 2), CASE WHEN i % 4 = 0 THEN 'red' ELSE 'blue' END::"Odd ""schema".hue, i % 3 + 1,
	md5((i % 5)::text)::uuid, i % 10 * interval '1 h', repeat('v', i % 9), (i % 8)::bit(3), (CASE i % 5 WHEN 0 THEN 'nan' WHEN 1 THEN 'inf' ELSE i::text END)::float8
FROM generate_series(1, 120) i;
CREATE FUNCTION described(regclass) RETURNS TABLE (line text) LANGUAGE sql AS
	$$ SELECT concat_ws(' | ', name, type, count, nulls, distinct_values, min, max) FROM gpuagg_describe($1) $$;
SELECT * FROM described('"Odd ""schema"."a ""table"');
SELECT name, left(mean, 12) AS mean, left(deviation, 6) AS deviation, q1, median, q3, histogram FROM gpuagg_describe('"Odd ""schema"."a ""table"') WHERE median IS NOT NULL;
SELECT name, most_frequent, frequency FROM gpuagg_describe('"Odd ""schema"."a ""table"') WHERE frequency > 0;
-- values as psql shows them; times that are sentinels or no timestamps, numerics beyond float8
CREATE TABLE summary_extreme (b bool, c char(5), ip inet, d date, t timestamp, tz timestamptz, n numeric);
INSERT INTO summary_extreme VALUES (true, 'a', '1.2.3.4', '5874897-12-31', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', 1e400),
	(true, 'a', '1.2.3.4', '4714-11-24 BC', '4714-11-24 00:00:00 BC', '4714-11-24 00:00:00+00 BC', 1e-400);
SELECT name, left(min, 30) AS min, left(max, 31) AS max, mean, deviation, left(q1, 25) AS q1, median, q3 FROM gpuagg_describe('summary_extreme');
INSERT INTO summary_extreme (d, t, tz, n) VALUES ('infinity', '-infinity', 'infinity', -1e400);
SELECT name, mean, deviation, q1, median, q3 FROM gpuagg_describe('summary_extreme') WHERE median IS NOT NULL;
-- empty tables, views, partitions, children, materialized views, catalogs, tables without columns
CREATE TABLE nothing (a int, b text);
SELECT * FROM described('nothing');
CREATE VIEW glance_view AS SELECT g, x FROM summed WHERE g < 3;
SELECT * FROM described('glance_view');
CREATE TABLE parted (k int, v text) PARTITION BY LIST (k);
CREATE TABLE parted1 (v text, k int);
ALTER TABLE parted ATTACH PARTITION parted1 FOR VALUES IN (1);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted SELECT 1 + i % 2, 'v' || i % 3 FROM generate_series(1, 90) i;
SELECT name, count, min, max, most_frequent, frequency FROM gpuagg_describe('parted');
CREATE TABLE kids () INHERITS (nothing);
INSERT INTO kids VALUES (1, 'child');
SELECT * FROM described('nothing');
CREATE MATERIALIZED VIEW kept_view AS SELECT 1 AS one;
SELECT * FROM described('kept_view');
CREATE TABLE columnless ();
SELECT count(*) FROM gpuagg_describe('columnless');
-- the estimate of 1,000 such numbers is 1,009: there are no more distinct values than values
CREATE TEMP TABLE all_different AS SELECT i FROM generate_series(1, 1000) i;
SELECT count, distinct_values FROM gpuagg_describe('all_different');
SELECT count(*) > 20 AS columns, bool_and(count + nulls = (SELECT count(*) FROM pg_class)) AS complete FROM gpuagg_describe('pg_class');
-- values that all occur once are not frequent
SELECT name, most_frequent, frequency FROM gpuagg_describe('kids');
-- a table of 1,600 columns
SELECT format('CREATE TABLE widest (%s)', string_agg('c' || i || ' int', ', ')) FROM generate_series(1, 1600) i \gexec
INSERT INTO widest (c1, c1600) VALUES (1, 2);
SELECT count(*), sum(count) AS values, max(max) FROM gpuagg_describe('widest');
-- it reads the table once
CREATE SEQUENCE passes;
CREATE VIEW counted_rows AS SELECT i, nextval('passes') AS row, 't' || i AS t FROM generate_series(1, 5) i;
SELECT name, max FROM gpuagg_describe('counted_rows');
-- errors
SELECT * FROM gpuagg_describe('pg_class_oid_index');
SELECT * FROM gpuagg_describe(0);
SELECT count(*) FROM gpuagg_describe(NULL);

-- privileges of columns and tables, row security, functions of the owner
CREATE ROLE regress_gpuagg_reader;
CREATE TABLE secrets (owner text, amount int, note text);
INSERT INTO secrets VALUES ('regress_gpuagg_reader', 1, 'a'), ('regress_gpuagg_reader', 2, 'b'), ('other', 3, 'c');
SET ROLE regress_gpuagg_reader;
SELECT * FROM gpuagg_describe('secrets');
RESET ROLE;
GRANT SELECT (amount, owner) ON secrets TO regress_gpuagg_reader;
SET ROLE regress_gpuagg_reader;
SELECT name, type, count, max FROM gpuagg_describe('secrets');
RESET ROLE;
GRANT SELECT ON secrets TO regress_gpuagg_reader;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secrets USING (owner = current_user);
SET ROLE regress_gpuagg_reader;
SELECT name, type, count, max FROM gpuagg_describe('secrets');
RESET ROLE;
SELECT name, type, count, max FROM gpuagg_describe('secrets');
CREATE SCHEMA closed_schema;
CREATE TABLE closed_schema.t (a int);
GRANT SELECT ON closed_schema.t TO regress_gpuagg_reader;
SELECT 'closed_schema.t'::regclass::oid AS closed \gset
SET ROLE regress_gpuagg_reader;
\set VERBOSITY terse
SELECT * FROM gpuagg_describe(:closed);
\set VERBOSITY default
RESET ROLE;
DROP TABLE secrets, closed_schema.t;
DROP ROLE regress_gpuagg_reader;
-- casts of types that users define are not called
CREATE TYPE cast_enum AS ENUM ('a', 'b');
CREATE TYPE cast_row AS (e cast_enum, n int);
CREATE FUNCTION cast_enum_text(cast_enum) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'cast to text is called'; END $$;
CREATE FUNCTION cast_enum_json(cast_enum) RETURNS json LANGUAGE plpgsql AS $$ BEGIN RAISE 'cast to json is called'; END $$;
CREATE FUNCTION cast_row_text(cast_row) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'cast to text is called'; END $$;
CREATE CAST (cast_enum AS text) WITH FUNCTION cast_enum_text(cast_enum);
CREATE CAST (cast_enum AS json) WITH FUNCTION cast_enum_json(cast_enum);
CREATE CAST (cast_row AS text) WITH FUNCTION cast_row_text(cast_row);
CREATE TABLE with_casts AS SELECT 'b'::cast_enum AS e, '{a,b}'::cast_enum[] AS es, '(b,1)'::cast_row AS r FROM generate_series(1, 3);
SELECT name, count, min, max, most_frequent, frequency FROM gpuagg_describe('with_casts');
-- names in front of pg_catalog are not called, whatever the search_path
CREATE SCHEMA trap;
CREATE FUNCTION trap.count(int) RETURNS int LANGUAGE sql AS 'SELECT 1 / 0';
CREATE FUNCTION trap.min(int) RETURNS int LANGUAGE sql AS 'SELECT 1 / 0';
CREATE TYPE trap.text AS (x int);
CREATE FUNCTION trap.lower_int(int8, int8) RETURNS int8 LANGUAGE sql AS 'SELECT 1 / 0';
CREATE OPERATOR trap.- (LEFTARG = int8, RIGHTARG = int8, FUNCTION = trap.lower_int);
SELECT x.extnamespace::regnamespace AS home FROM pg_extension x WHERE extname = 'gpuagg' \gset
-- overloads in the extension's schema are not called either
CREATE FUNCTION :home.gpu_approx_count_distinct(int) RETURNS int LANGUAGE sql AS 'SELECT 1 / 0';
CREATE FUNCTION :home.gpu_top_k(int, int) RETURNS jsonb LANGUAGE sql AS 'SELECT jsonb_build_array(1 / 0)';
CREATE FUNCTION :home.gpu_max_n(bool, int) RETURNS bool[] LANGUAGE sql AS 'SELECT ARRAY[1 / 0 > 0]';
CREATE FUNCTION :home.gpu_min_n(x bool, n int) RETURNS bool[] LANGUAGE sql AS 'SELECT ARRAY[1 / 0 > 0]';
CREATE FUNCTION :home.gpu_summary(int) RETURNS gpuagg_summary LANGUAGE sql AS 'SELECT (1 / 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)';
CREATE VIEW flags AS SELECT i, i > 1 AS flag FROM generate_series(1, 3) i;
SELECT gpu_max_n(flag, 1) FROM flags;
SELECT name, count, distinct_values, min, max, median, most_frequent, frequency FROM gpuagg_describe('flags');
DROP VIEW flags;
DROP FUNCTION :home.gpu_approx_count_distinct(int), :home.gpu_top_k(int, int), :home.gpu_max_n(bool, int), :home.gpu_min_n(bool, int), :home.gpu_summary(int);
SET search_path = trap, pg_catalog, public;
SELECT name, count, min, most_frequent FROM :home.gpuagg_describe('public.kids');
SET search_path = '';
SELECT name, count, min FROM :home.gpuagg_describe('public.kids');
RESET search_path;
-- long values: extremes of more than 4 MB are not shown, and values of more than 64 kB are not counted to find the most frequent one
CREATE TABLE long_values (t text, b bytea, v varchar(10));
ALTER TABLE long_values ALTER t SET STORAGE external;
INSERT INTO long_values VALUES (repeat('x', 5000000), convert_to(repeat('x', 5000000), 'UTF8'), 'x'), ('y', 'y', 'x'), ('y', 'y', 'y');
INSERT INTO long_values SELECT repeat('l', 70000), NULL, NULL FROM generate_series(1, 3);
SELECT name, count, distinct_values, length(min), length(max), most_frequent, frequency FROM gpuagg_describe('long_values');
-- so that their records fit into memory as one row
CREATE TABLE long_extremes (c char(5000000), a text[], n int[], j jsonb, short int[]);
INSERT INTO long_extremes SELECT 'x', array_agg(repeat('x', 1000000)), (SELECT array_agg(0) FROM generate_series(1, 1100000)), jsonb_build_array(repeat('x', 5000000)),
	'[2:3][4:5]={{1,2},{3,4}}' FROM generate_series(1, 5);
SELECT name, count, distinct_values, length(min), max FROM gpuagg_describe('long_extremes');
DROP TABLE long_values, long_extremes;
