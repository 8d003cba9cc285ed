-- The database of test/sqlsmith.sh. Tables have a column of each common type, with NULLs and special values, and many, few or no rows.
-- There are also a partitioned table, a parent with a child, and a view.
\set ON_ERROR_STOP on
CREATE ROLE smith LOGIN;
CREATE DATABASE smith;
\c smith
CREATE EXTENSION gpuagg;
GRANT CREATE, USAGE ON SCHEMA public TO smith;

-- Functions that must not be called at random, as they harm other sessions or change the state of the server.
DO $$
DECLARE f regprocedure;
BEGIN
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND
		(proname ~ '^(pg_terminate|pg_cancel|pg_sleep|pg_advisory|pg_try_advisory|pg_log_|pg_notify|set_config|lo_|pg_reload|pg_rotate|pg_promote|pg_replication|pg_logical|pg_create|pg_drop|pg_switch|pg_export|pg_stat_reset|pg_stat_clear|pg_wal|currval|setval|nextval|txid_|pg_current_xact|ts_stat|ts_rewrite)'
		 OR proname ~ '_to_xml')
	LOOP
		EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f);
	END LOOP;
END $$;

SET ROLE smith;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text);

CREATE FUNCTION some_rows(n int) RETURNS TABLE (
	id int, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, n2 numeric(10,2), o oid, t text, v varchar(20),
	c char(5), nm name, by bytea, d date, ts timestamp, tz timestamptz, tm time, tmz timetz, iv interval, u uuid, m money,
	ip inet, j jsonb, bi bit(8), vb varbit, ia int[], ta text[], p point, ir int4range, e mood, dom positive, r pair)
LANGUAGE sql AS $$
SELECT i, CASE WHEN i % 13 > 0 THEN i % 3 = 0 END, (i % 300)::int2 - 150::int2,
	CASE WHEN i % 11 > 0 THEN CASE i % 997 WHEN 1 THEN 2147483647 WHEN 2 THEN -2147483648 ELSE i % 1000 - 500 END END,
	CASE i % 991 WHEN 1 THEN 9223372036854775807 WHEN 2 THEN -9223372036854775808 ELSE i::int8 * 1000003 END,
	CASE i % 97 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN -0.0 ELSE i / 7.0 END::float4,
	CASE WHEN i % 7 > 0 THEN CASE i % 101 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' WHEN 3 THEN 1e308 ELSE i / 3.0 END::float8 END,
	CASE i % 89 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN 1e40 WHEN 3 THEN 1e-30 ELSE i / 4.0 END::numeric,
	CASE WHEN i % 5 > 0 THEN CASE i % 500 WHEN 1 THEN 'NaN' ELSE (i % 700) / 100.0 END::numeric(10,2) END,
	(i % 50)::oid, CASE WHEN i % 9 > 0 THEN repeat(chr(97 + i % 26), i % 40) END, 'v' || i % 17, chr(97 + i % 5), ('n' || i % 23)::name,
	decode(md5((i % 31)::text), 'hex'), CASE i % 333 WHEN 1 THEN 'infinity' WHEN 2 THEN '0044-03-15 BC' ELSE date '2000-01-01' + i % 400 END::date,
	CASE WHEN i % 6 > 0 THEN timestamp '2001-02-03 04:05:06' + i * interval '1 hour' END,
	CASE i % 444 WHEN 1 THEN '-infinity' ELSE timestamptz '1999-12-31 23:00+00' + i * interval '37 minutes' END,
	time '00:00' + i % 86400 * interval '1 second', timetz '12:00+02', CASE WHEN i % 4 > 0 THEN i % 40 * interval '1 day' ELSE i % 9 * interval '24 hours' END,
	md5((i % 19)::text)::uuid, (i % 77)::money, ('10.0.' || i % 5 || '.' || i % 200)::inet, jsonb_build_object('k', i % 6),
	(i % 256)::bit(8), (i % 8)::bit(3)::varbit, ARRAY[i % 3, NULL, i % 5], ARRAY['x' || i % 4], point(i % 10, i % 7),
	CASE WHEN i % 3 > 0 THEN int4range(i % 10, i % 10 + 5) END, (ARRAY['sad', 'ok', 'happy', NULL]::mood[])[1 + i % 4],
	CASE WHEN i % 2 > 0 THEN 1 + i % 12 END, ROW(i % 4, 'r' || i % 3)::pair
FROM generate_series(1, n) i $$;

CREATE TABLE many AS SELECT * FROM some_rows(5000);
CREATE TABLE few AS SELECT * FROM some_rows(40);
CREATE TABLE none AS SELECT * FROM some_rows(0);
CREATE TABLE narrow (k int, s text, x float8, n numeric(12,3));
INSERT INTO narrow SELECT i % 41, (i % 12)::text, i, i / 8.0 FROM generate_series(1, 20000) i;
CREATE INDEX ON narrow (k, s);
CREATE INDEX ON many (i4);
-- an added column, a dropped column, values out of line, dead rows
ALTER TABLE many ADD COLUMN late int DEFAULT 7, ADD COLUMN long text;
UPDATE many SET long = (SELECT string_agg(md5(id::text || g), '') FROM generate_series(1, 100) g) WHERE id % 100 = 0;
ALTER TABLE few DROP COLUMN nm;
CREATE TABLE parts (k int NOT NULL, g int, x float8, t text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50);
CREATE TABLE parts_2 (t text, x float8, g int, k int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (50) TO (100);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT i % 120, i % 6, i / 2.0, 't' || i % 8 FROM generate_series(1, 6000) i;
CREATE TABLE parent (a int, w int8);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent SELECT i % 9, i FROM generate_series(1, 500) i;
INSERT INTO child SELECT i % 9, i, 'c' FROM generate_series(1, 500) i;
CREATE VIEW grouped WITH (security_barrier) AS SELECT i4 % 10 AS g, count(*) AS c, sum(f8) AS s, max(t) AS t FROM many GROUP BY 1;
ALTER TABLE parent ENABLE ROW LEVEL SECURITY;
ALTER TABLE parent FORCE ROW LEVEL SECURITY;
CREATE POLICY odd ON parent USING (w % 2 = 1);
DROP FUNCTION some_rows;
RESET ROLE;
VACUUM ANALYZE;
-- the tables have the expected rows
SELECT 1 / (SELECT (count(*) = 5000 AND count(long) = 50 AND count(i4) > 4000 AND count(*) FILTER (WHERE f8 = 'NaN') > 10)::int FROM many);
SELECT 1 / ((SELECT count(*) FROM parts) = 6000 AND (SELECT count(*) FROM narrow) = 20000)::int;
