-- Casts that change no bits, only what they mean: the vector forms of operators
-- must not take a value for what it was before.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET gpuagg.engine = cpu;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
SET TimeZone = 'UTC';

CREATE DOMAIN relabel_oid AS oid;
CREATE DOMAIN relabel_num AS numeric(10,2);
CREATE TYPE relabel_mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN relabel_dmood AS relabel_mood;
CREATE TABLE relabels (id int, o oid, dop relabel_oid, a int, rc regclass, rp regproc, x xid, c "char", b bool, m relabel_mood, dm relabel_dmood,
    f4 float4, f8 float8, d date, t time, ts timestamp, tz timestamptz, mo money, i8 int8, i2 int2,
    tx text, vc varchar(8), bp char(6), nm name, bi bit(5), vb varbit(8), dn relabel_num, n numeric(10,2));
INSERT INTO relabels
SELECT i, v.o, v.o, v.a, v.o::regclass, v.o::regproc, v.o::text::xid, v.c, i % 2 = 0, v.m, v.m, i / 4.0, v.f8, date '2000-01-01' + i * 100, time '01:00' * (i % 3 + 1) / 1 + time '00:00',
    timestamp '2020-01-01' + i * interval '31 days', timestamptz '2020-01-01 00:00+00' + i * interval '31 days', i::money, i * 1000000007::int8, i,
    v.tx, v.tx, v.tx, v.tx, v.bi, v.bi, i / 8.0, i / 8.0
FROM generate_series(1, 12) i, LATERAL (SELECT
    (ARRAY[4294967295, 5, 3000000000, 1259, NULL]::oid[])[1 + i % 5] AS o, (ARRAY[-1, 5, -1294967296, 1259, NULL])[1 + i % 5] AS a,
    (ARRAY['a', E'\\377', E'\\002', '']::"char"[])[1 + i % 4] AS c, (enum_range(NULL::relabel_mood))[1 + i % 3] AS m,
    (ARRAY[0, 1.5, -2.5, 'NaN', 1e300, NULL]::float8[])[1 + i % 6] AS f8, (ARRAY['a', 'a ', 'ab', '', NULL])[1 + i % 5] AS tx,
    (ARRAY[B'10101', B'00000', NULL])[1 + i % 3] AS bi) v;
-- casts that only a superuser can make
CREATE CAST (float8 AS timestamp) WITHOUT FUNCTION;
CREATE CAST (float8 AS timestamptz) WITHOUT FUNCTION;
CREATE CAST (float8 AS int8) WITHOUT FUNCTION;
CREATE CAST (timestamp AS int8) WITHOUT FUNCTION;
CREATE CAST (int8 AS timestamp) WITHOUT FUNCTION;
CREATE CAST (float4 AS date) WITHOUT FUNCTION;
CREATE CAST (date AS int4) WITHOUT FUNCTION;
CREATE CAST (int4 AS date) WITHOUT FUNCTION;
CREATE CAST (xid AS int4) WITHOUT FUNCTION;
CREATE CAST (int4 AS float4) WITHOUT FUNCTION AS ASSIGNMENT;
