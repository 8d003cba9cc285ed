-- Casts that change only the type of a value, not its bits: vector forms of operators must use the new
-- type.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/differs.sql'
\i :include
SET gpuagg.engine = cpu;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
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
-- casts that only a superuser can create
CREATE CAST (float8 AS timestamp) WITHOUT FUNCTION;
CREATE CAST (float8 AS timestamptz) WITHOUT FUNCTION;
CREATE CAST (timestamp AS int8) WITHOUT FUNCTION;
CREATE CAST (timestamp AS float8) WITHOUT FUNCTION;
CREATE CAST (int8 AS timestamp) WITHOUT FUNCTION;
CREATE CAST (float4 AS date) WITHOUT FUNCTION;
CREATE CAST (date AS int4) WITHOUT FUNCTION;
CREATE CAST (date AS float4) WITHOUT FUNCTION;
CREATE CAST (xid AS int4) WITHOUT FUNCTION;
CREATE CAST (int4 AS xid) WITHOUT FUNCTION;
CREATE CAST ("char" AS bool) WITHOUT FUNCTION;
CREATE CAST (bool AS "char") WITHOUT FUNCTION;
CREATE CAST (bpchar AS bytea) WITHOUT FUNCTION;
ANALYZE relabels;

-- expressions of every type with several names, and operands for comparisons
CREATE TABLE relabel_exprs (e text, typ text, list text);
INSERT INTO relabel_exprs VALUES
    ('o::int4', 'int4', '-1, 5'), ('dop::int4', 'int4', '-1, 1259'), ('o::oid::int4', 'int4', '-1294967296, NULL'), ('x::int4', 'int4', '-1, 5'),
    ('a::oid', 'oid', '4294967295, 5'), ('dop::oid', 'oid', '3000000000'), ('rc::oid', 'oid', '4294967295, 1259'), ('rp::oid', 'oid', '3000000000, NULL'),
    ('rc::int4', 'int4', '-1'), ('o::regclass', 'oid', '1259, 4294967295'), ('a::regproc', 'oid', '4294967295'), ('o::regtype', 'oid', '5'),
    ('dm::relabel_mood', 'relabel_mood', '''sad'', ''ok'''), ('dm', 'relabel_mood', '''happy''::relabel_mood'),
    ('f8::timestamp', 'timestamp', '''2000-01-01'', ''2020-01-01'''), ('f8::timestamptz', 'timestamptz', '''2000-01-01'''),
    ('ts::int8', 'int8', '5, 631152000000000'), ('ts::float8::timestamp', 'timestamp', '''2020-02-01'''), ('i8::timestamp', 'timestamp', '''2000-01-01 00:16:40.000007'', NULL'),
    ('f4::date', 'date', '''2000-01-01'''), ('d::int4', 'int4', '100, 200'), ('d::float4::date', 'date', '''2000-04-10'''), ('a::xid::int4', 'int4', '5'),
    ('i2::int8', 'int8', '1, 2'), ('tx::varchar', 'text', '''a'', ''ab'''), ('vc::text', 'text', '''a '', NULL'), ('vc::bpchar', 'bpchar', '''a'''), ('bp::bytea', 'bytea', '''a'''),
    ('bp::text', 'text', '''a'''), ('nm::text', 'text', '''ab'''), ('bi::varbit', 'varbit', 'B''10101'''), ('vb::bit(5)', 'bit', 'B''00000'''),
    ('dn::numeric', 'numeric', '0.25, 1.5'), ('mo::money', 'money', '1::money, 2::money'), ('dn', 'numeric', '0.5');
SELECT pg_temp.differs(q) FROM (SELECT format('SELECT id, @count(*) FROM relabels WHERE %s IN (%s) GROUP BY 1', e, list) q FROM relabel_exprs
    UNION ALL SELECT format('SELECT id, @count(*) FROM relabels WHERE %s NOT IN (%s) GROUP BY 1', e, list) FROM relabel_exprs
    UNION ALL SELECT format('SELECT %s IN (%s), @count(*) FROM relabels GROUP BY 1', e, list) FROM relabel_exprs
    UNION ALL SELECT format('SELECT @count(*) FROM relabels WHERE %s = (ARRAY[%s]::%s[])[1]', e, list, typ) FROM relabel_exprs
    UNION ALL SELECT format('SELECT %s AS k, @count(*) FROM relabels GROUP BY 1', e) FROM relabel_exprs WHERE typ !~ 'bit|money'
    UNION ALL SELECT format('SELECT coalesce(%s, NULL), nullif(%1$s, NULL) IS NULL, @count(%1$s) FROM relabels GROUP BY 1, 2', e) FROM relabel_exprs WHERE typ !~ 'bit|money'
    UNION ALL SELECT format('SELECT id %% 2, @min(%s), @max(%1$s) FROM relabels GROUP BY 1', e) FROM relabel_exprs WHERE typ !~ 'bit|bytea|mood|bpchar' AND e !~ '::reg'
    UNION ALL SELECT format('SELECT CASE WHEN b THEN %s END, @count(*) FROM relabels GROUP BY 1', e) FROM relabel_exprs WHERE typ !~ 'bit|money'
    UNION ALL SELECT format('SELECT @sum(abs(hashtext((%s)::text))) FROM relabels', e) FROM relabel_exprs) s WHERE pg_temp.differs(q) IS NOT NULL;

-- arithmetic, arguments of aggregates, and comparisons with the new type
SELECT pg_temp.differs(q) FROM (VALUES ('SELECT @sum(o::int4::numeric), @sum(o::int4::numeric(12,2)), @sum(o::int4) FROM relabels'),
    ('SELECT @sum(o::int4::int8), @sum(o::int4::float8), @sum(-(o::int4)::numeric * 1.5), @avg(o::int4), @bit_and(o::int4), @bit_or(rc::oid::int4) FROM relabels'),
    ('SELECT @count(*) FROM relabels WHERE o::int4 < 0 AND a::oid > 5'), ('SELECT @count(*) FROM relabels WHERE o::int4 < i8'),
    ('SELECT greatest(o::int4, a, 0), least(a::oid, o), @count(*) FROM relabels GROUP BY 1, 2'), ('SELECT @count(*) FROM relabels WHERE o::int4 IS DISTINCT FROM a'),
    ('SELECT CASE o::int4 WHEN -1 THEN 1 WHEN 5 THEN 2 ELSE 3 END, @count(*) FROM relabels GROUP BY 1'),
    ('SELECT extract(year FROM f8::timestamp), date_trunc(''month'', f8::timestamp), @count(*) FROM relabels WHERE f8::timestamp < ''3000-01-01'' GROUP BY 1, 2'),
    ('SELECT extract(year FROM f8::timestamptz), date_trunc(''hour'', f8::timestamptz), @count(*) FROM relabels WHERE f8::timestamp < ''3000-01-01'' GROUP BY 1, 2'),
    ('SELECT extract(doy FROM f4::date), @count(*) FROM relabels GROUP BY 1'), ('SELECT @sum(ts::int8::numeric), @min(ts::int8), @max(f8::timestamp) FROM relabels'),
    ('SELECT width_bucket(ts::float8, 0, 1, 4), @count(*) FROM relabels GROUP BY 1'),
    ('SELECT @sum(c::int), @count(*) FILTER (WHERE c = ''a'') FROM relabels'), ('SELECT c = ''a'' OR (c = E''\\377''), @count(*) FROM relabels GROUP BY 1'),
    ('SELECT @count(*) FROM relabels WHERE c::bool'), ('SELECT @count(*) FROM relabels WHERE c::bool AND (c = ''a'')::"char"::bool'), ('SELECT @count(*) FROM relabels WHERE c::bool AND b::"char"::bool'),
    ('SELECT @bool_and(c::bool), @bool_or(c::bool) FROM relabels WHERE c <> '''''), ('SELECT @count(*) FILTER (WHERE c::bool) FROM relabels'),
    ('SELECT c::bool = b, NOT c::bool, @count(*) FROM relabels GROUP BY 1, 2'),
    ('SELECT @sum(dn), @sum(dn::numeric), @sum(dn::numeric * n), @sum(n::relabel_num) FROM relabels'), ('SELECT dn::numeric + n = 1, @count(*) FROM relabels GROUP BY 1'),
    ('SELECT vc LIKE ''a%'', vc::text || ''x'', @count(*) FROM relabels GROUP BY 1, 2'), ('SELECT bp = ''a'', bp = tx, vc::bpchar = bp, @count(*) FROM relabels GROUP BY 1, 2, 3'),
    ('SELECT mo::numeric, @sum(mo) FROM relabels GROUP BY 1'), ('SELECT @max(o::int4) FILTER (WHERE o::int4 < 0), @min(a::oid) FILTER (WHERE a::oid > 5) FROM relabels')) q(q)
WHERE pg_temp.differs(q) IS NOT NULL;
SET gpuagg.require = require;
SELECT gpu_sum(o::int4::numeric), gpu_min(o::int4), gpu_max(o::int4), gpu_min(a::oid), gpu_max(a::oid) FROM relabels;
SELECT gpu_count(*) FILTER (WHERE a::oid IN (4294967295, 5)), gpu_count(*) FILTER (WHERE o::int4 IN (-1, 5)) FROM relabels;
-- these casts cause no evaluation row by row
CREATE FUNCTION pg_temp.uncompiled(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, SUMMARY OFF, TIMING OFF) ' || q LOOP
        IF line ~ 'Row by Row' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
SELECT pg_temp.uncompiled('SELECT o::int4 + 1, gpu_count(*) FROM relabels WHERE a::oid IN (1, 2, 5) AND f8::timestamp <> ''2020-01-01'' AND rc::oid > 0 GROUP BY 1');
SELECT pg_temp.uncompiled('SELECT gpu_sum((ARRAY[id, 1])[1]) FROM relabels');

DROP TABLE relabels, relabel_exprs;
DROP DOMAIN relabel_oid, relabel_num, relabel_dmood;
DROP TYPE relabel_mood;
DROP CAST (float8 AS timestamp);
DROP CAST (float8 AS timestamptz);
DROP CAST (timestamp AS int8);
DROP CAST (timestamp AS float8);
DROP CAST (int8 AS timestamp);
DROP CAST (float4 AS date);
DROP CAST (date AS int4);
DROP CAST (date AS float4);
DROP CAST (xid AS int4);
DROP CAST (int4 AS xid);
DROP CAST ("char" AS bool);
DROP CAST (bool AS "char");
DROP CAST (bpchar AS bytea);
