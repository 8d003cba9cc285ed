-- Vector expressions of the heap feed against core: every operator and cast over the scalar types, and all other
-- kinds of expressions, as keys, arguments and conditions, over usual and over extreme values. Errors must be
-- core's.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/differs.sql'
\i :include
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET extra_float_digits = 3;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE mild (id int, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n2 numeric(12,2), n0 numeric(8,0),
    n6 numeric(20,6), nn numeric, b bool, o oid, ch "char", m mood, d date, ts timestamp, tz timestamptz, t time,
    iv interval, tx text, vc varchar(20), bp char(6), u uuid, mo money);
CREATE TABLE extreme (LIKE mild);
SELECT FROM setseed(0.5);
INSERT INTO mild
SELECT i, CASE WHEN i % 11 > 0 THEN i % 7 - 3 END, CASE WHEN i % 13 > 0 THEN (random() * 40)::int - 20 END,
    CASE WHEN i % 12 > 0 THEN (random() * 60)::int - 30 END, CASE WHEN i % 9 > 0 THEN (random() * 10)::int / 4.0 END,
    CASE WHEN i % 10 > 0 THEN (random() * 30)::int / 8.0 - 1 END, CASE WHEN i % 8 > 0 THEN (random() * 1000)::int / 100.0 END,
    CASE WHEN i % 7 > 0 THEN i % 9 - 4 END, CASE WHEN i % 15 > 0 THEN (random() * 100)::int / 7.0 END,
    CASE WHEN i % 14 > 0 THEN (i % 5) * 1.0 / (i % 3 + 1) END, CASE WHEN i % 5 > 0 THEN i % 2 = 0 END, i % 6,
    chr(97 + i % 4)::"char", (enum_range(NULL::mood))[1 + i % 4], date '2020-02-26' + i % 9,
    timestamp '2019-12-30 23:59:58.5' + i % 10 * interval '7 hours 13 minutes 0.25 seconds',
    timestamptz '2021-03-27 22:00:00+00' + i % 10 * interval '3 hours 1 second', time '10:00' + i % 5 * interval '1 minute 1 microsecond',
    i % 4 * interval '1 day', CASE WHEN i % 6 > 0 THEN 'k' || i % 8 END, 'k' || i % 5, 'k' || i % 3, NULL, CASE WHEN i % 5 > 0 THEN (i % 9 - 4)::money END
FROM generate_series(1, 500) i;
INSERT INTO extreme
SELECT i, (ARRAY[-32768, -1, 0, 1, 2, 32767, NULL])[1 + i % 7], (ARRAY[-2147483648, -1, 0, 1, 65536, 2147483647, NULL])[1 + i / 7 % 7],
    (ARRAY[-9223372036854775808, -1, 0, 1, 4294967296, 9223372036854775807, NULL])[1 + i / 49 % 7],
    (ARRAY['-Infinity', -0.0, 0, 1e-40, 3e38, 'NaN', 'Infinity', NULL]::float4[])[1 + i % 8],
    (ARRAY['-Infinity', -0.0, 0, 1e-308, 1.7e308, 'NaN', 'Infinity', 2147483647.5, NULL]::float8[])[1 + i / 8 % 9],
    (ARRAY[0, 0.01, -9999999999.99, 9999999999.99, 'NaN', NULL]::numeric[])[1 + i % 6],
    (ARRAY[0, 1, -99999999, 99999999, 'NaN', NULL]::numeric[])[1 + i / 6 % 6],
    (ARRAY[0, 0.000001, -99999999999999.999999, 99999999999999, NULL]::numeric[])[1 + i / 36 % 5],
    (ARRAY[0, 1e-20, 1e40, '-Infinity', 'NaN', 1.000, NULL]::numeric[])[1 + i % 7], NULL, (ARRAY[0, 1, 4294967295]::oid[])[1 + i % 3],
    (ARRAY['', 'a', E'\\377']::"char"[])[1 + i % 3], NULL,
    (ARRAY['-infinity', '4713-01-01 BC', '0001-12-31 BC', '0001-01-01', '2000-02-29', '5874897-12-31', 'infinity', NULL]::date[])[1 + i % 8],
    (ARRAY['-infinity', '4713-01-01 BC', '0044-03-15 12:00 BC', '0001-01-01', '1999-12-31 23:59:59.999999', '294276-12-31', 'infinity', NULL]::timestamp[])[1 + i / 8 % 8],
    (ARRAY['-infinity', '4713-01-01 BC', '1969-12-31', '2000-02-29', '294276-12-31', 'infinity', NULL]::timestamptz[])[1 + i / 64 % 7],
    (ARRAY['00:00', '24:00', '23:59:59.999999']::time[])[1 + i % 3], (ARRAY['178000000 years', '-1 month 1 day', '1 microsecond']::interval[])[1 + i % 3],
    (ARRAY['', ' ', 'a', 'ä', repeat('x', 3000), NULL])[1 + i % 6], (ARRAY['', ' ', 'a '])[1 + i % 3], (ARRAY['', ' ', 'a '])[1 + i / 3 % 3],
    (ARRAY['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']::uuid[])[1 + i % 2],
    (ARRAY['-92233720368547758.08', '0.01', '92233720368547758.07']::money[])[1 + i % 3]
FROM generate_series(0, 1100) i;
VACUUM ANALYZE mild, extreme;

CREATE TABLE columns AS
SELECT attname::text AS col, atttypid AS typ FROM pg_attribute WHERE attrelid = 'mild'::regclass AND attnum > 1;

-- Every operator between two columns, as a key over usual values (most have a result), and as a condition or an
-- argument over extreme values (many raise errors).
CREATE TABLE expressions AS
SELECT format('%s %s %s', a.col, op.oprname, b.col) AS e, op.oprresult AS typ
FROM pg_operator op JOIN columns a ON a.typ = op.oprleft JOIN columns b ON b.typ = op.oprright
WHERE op.oprcode::oid IN (SELECT oid FROM pg_proc WHERE provolatile <> 'v')
    AND op.oprname !~ '[~@?#&|]' AND op.oprname NOT IN ('^', '%', '<->') AND (a.col <> b.col OR op.oprname IN ('=', '+', '*', '/'))
UNION ALL
-- ... and between two values of one type
SELECT format('%s %s %L::%s', col, op.oprname, c.value, format_type(c.typ, NULL)), op.oprresult
FROM (VALUES ('2', 'int2'::regtype), ('-1', 'int2'), ('-3', 'int4'), ('5', 'int8'), ('0.5', 'float4'), ('NaN', 'float4'), ('-0.25', 'float8'), ('Infinity', 'float8'),
    ('t', 'bool'), ('3', 'oid'), ('b', '"char"'), ('ok', 'mood'), ('2020-02-29', 'date'), ('2019-12-31 23:59:59', 'timestamp'), ('2021-03-28 01:00:02+00', 'timestamptz'),
    ('10:02:00.000002', 'time'), ('2.00', 'money'), ('1.5', 'numeric')) c(value, typ)
    JOIN columns a ON a.typ = c.typ JOIN pg_operator op ON op.oprleft = c.typ AND op.oprright = c.typ
WHERE op.oprname IN ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', '&', '|', '#', '^')
UNION ALL
SELECT format('%s %s', op.oprname, a.col), op.oprresult
FROM pg_operator op JOIN columns a ON a.typ = op.oprright WHERE op.oprleft = 0 AND op.oprname IN ('-', '+', '~', '|/')
UNION ALL
SELECT format('%s::%s', a.col, format_type(c.casttarget, NULL)), c.casttarget
FROM pg_cast c JOIN columns a ON a.typ = c.castsource WHERE c.casttarget IN (SELECT typ FROM columns)
UNION ALL
SELECT format('%s(%s)', f, a.col), 'float8'::regtype
FROM columns a, unnest(ARRAY['sqrt', 'exp', 'ln', 'log', 'floor', 'ceil', 'round', 'trunc', 'sign', 'abs']) f
WHERE a.typ IN ('float8'::regtype, 'numeric'::regtype) OR (f = 'abs' AND a.typ IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'float4'::regtype))
UNION ALL
-- functions that have several names
SELECT replace(f, '$c', a.col), 'float8'::regtype
FROM columns a, unnest(ARRAY['ceiling($c)', 'dround($c)', 'dtrunc($c)', 'dsqrt($c)', 'dexp($c)', 'dlog1($c)', 'dlog10($c)', 'float8abs($c)',
    'pow($c, 2)', 'dpow($c, 0.5)']) f WHERE a.typ = 'float8'::regtype
UNION ALL
SELECT format(f, a.col, (SELECT typname FROM pg_type WHERE oid = a.typ)), a.typ
FROM columns a, unnest(ARRAY['%2$smod(%1$s, 3::%2$s)', 'mod(%1$s, -2::%2$s)', '%2$sabs(%1$s)', '%2$sum(%1$s)', '%2$sup(%1$s)']) f
WHERE a.typ IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
UNION ALL
SELECT format('%s(''%s'', %s)', f, field, a.col), 'float8'::regtype
FROM columns a, unnest(ARRAY['date_trunc', 'date_part']) f,
    unnest(ARRAY['second', 'MINUTE', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'dow', 'isodow', 'doy', 'epoch', 'century', 'nonsense']) field
WHERE a.col IN ('d', 'ts', 'tz')
UNION ALL
SELECT format('extract(%s FROM %s)', field, a.col), 'float8'::regtype
FROM columns a,
    unnest(ARRAY['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'dow', 'isodow', 'doy', 'epoch', 'millennium']) field
WHERE a.col IN ('d', 'ts', 'tz');

CREATE FUNCTION differences(template text, expressions text[]) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT d FROM (SELECT pg_temp.differs(replace(template, '$e', e)) AS d FROM unnest(expressions) e OFFSET 0) s WHERE d IS NOT NULL
$$;
SELECT count(*) > 400 AS plenty FROM expressions;
SELECT differences('SELECT $e AS k, @count(*) FROM mild GROUP BY 1', array_agg(e)) FROM expressions
-- a type without a hash function
WHERE typ <> 'money'::regtype;
SELECT differences('SELECT id % 5, @count($e), @count(*) FROM extreme WHERE $e IS NOT NULL GROUP BY 1', array_agg(e)) FROM expressions
-- if several rows raise different errors, the first one may differ
WHERE e !~ 'date_trunc.* d\)';
SELECT differences('SELECT id % 5, @sum($e), @min($e) FROM mild WHERE i4 <> 0 AND id > 9 GROUP BY 1', array_agg(e)) FROM expressions
WHERE typ = 'numeric'::regtype;

-- Expressions that are not calls: each line is one over the columns of mild or extreme.
CREATE TABLE others (e text);
INSERT INTO others VALUES
('i4 > 0 AND i8 < 5'), ('i4 > 0 OR i8 < 5'), ('NOT (b OR i4 > 2)'), ('b AND NULL'), ('b OR NULL'), ('b IS TRUE'), ('b IS NOT TRUE'), ('b IS FALSE'),
('b IS NOT FALSE'), ('b IS UNKNOWN'), ('b IS NOT UNKNOWN'), ('i4 IS NULL'), ('tx IS NOT NULL'), ('i4 IS DISTINCT FROM i8'), ('tx IS NOT DISTINCT FROM vc'),
('f8 IS DISTINCT FROM NULL'), ('i4 <> 0 AND 10 / i4 > 2'), ('i4 = 0 OR 10 / i4 > 2'), ('10 / i4 > 2 AND i4 <> 0'), ('10 / i4 > 2 OR i4 = 0'),
('CASE WHEN i4 <> 0 THEN 10 / i4 END'), ('CASE WHEN i4 = 0 THEN -1 ELSE 10 / i4 END'), ('CASE i2 WHEN 0 THEN 1 WHEN 1 THEN i4 ELSE i2 * 2 END'),
('CASE i4 % 3 WHEN 0 THEN ''x'' WHEN 1 THEN tx END'), ('CASE WHEN b THEN n2 ELSE n2 * 2 END'), ('CASE WHEN b THEN n2 ELSE 0 END'), ('CASE WHEN b THEN n2 END'),
('CASE WHEN b THEN n2 WHEN i4 > 0 THEN n6 END'), ('CASE WHEN i2 > 0 THEN CASE i2 WHEN 1 THEN 10 WHEN 2 THEN CASE i4 WHEN 3 THEN 3 ELSE 4 END END ELSE -1 END'),
('coalesce(i4, i2, 7)'), ('coalesce(i4, 10 / i2)'), ('coalesce(tx, vc)'), ('coalesce(n2, 0)'), ('coalesce(n2, 0.00)'), ('nullif(i4, i2)'), ('nullif(i4, 3)'), ('nullif(tx, ''k1'')'),
('nullif(n2, 0)'), ('greatest(i4, i8::int, i2)'), ('least(i4, i8::int, NULL)'), ('greatest(f8, f4)'), ('least(f8, -f8)'), ('least(d, ts::date)'), ('greatest(tx, vc)'), ('greatest(n2, n6)'),
('i4 IN (1, 2, 3)'), ('i4 NOT IN (1, 2, 3)'), ('i4 IN (1, NULL, 3)'), ('i4 NOT IN (1, NULL)'), ('i8 IN (1, 2, 3)'), ('i2 IN (1, 100000)'), ('tx IN (''k1'', ''k2'', '''')'), ('tx NOT IN (''k1'', NULL)'),
('d IN (''2020-02-28'', ''2020-02-29'')'), ('ts IN (''2019-12-30 23:59:58.5'')'), ('o IN (1, 4294967295)'), ('f8 IN (1, 2, ''NaN'')'), ('n2 IN (1, 0.01, ''NaN'')'), ('bp IN (''k1'', ''a'')'), ('vc IN (''k1'', ''a '')'),
('i4 BETWEEN -3 AND 5'), ('i4 BETWEEN SYMMETRIC 5 AND -3'), ('tx LIKE ''k%'''), ('tx LIKE ''%1'''), ('tx NOT LIKE ''k1%'''), ('tx ~ ''^k[12]$'''),
('tx LIKE ''k1'''), ('tx LIKE '''''), ('tx LIKE ''%'''), ('tx NOT LIKE ''k%'''), ('tx LIKE ''k_%'''), ('tx LIKE ''k\%'''), ('tx LIKE ''k%1'''), ('tx LIKE ''ä%'''), ('tx NOT LIKE ''xx%'''), ('tx LIKE NULL'), ('tx LIKE vc'),
('bp LIKE ''k1%'''), ('bp LIKE ''k1'''), ('bp NOT LIKE '' %'''), ('vc LIKE ''a %'''), ('CASE WHEN tx LIKE ''k1%'' THEN 1 WHEN tx LIKE ''k2%'' THEN 2 ELSE 0 END'), ('tx LIKE ''k1%'' OR vc NOT LIKE ''k2%'''),
('CASE WHEN tx ~ ''^k'' THEN 1 ELSE 0 END'), ('CASE WHEN i4 <> 0 THEN div(10, i4::numeric) END'), ('i4 = 0 OR div(10, i4::numeric) > 2'), ('i4 <> 0 AND div(10, i4::numeric) > 2'), ('div(10, i4::numeric) > 2 OR i4 = 0'),
('i4 <> 0 AND i2 <> 0 AND div(10, i4::numeric) > div(10, i2::numeric)'), ('coalesce(length(tx), length(vc), div(1, i2::numeric)::int)'), ('CASE WHEN length(tx) > 1 THEN left(tx, 1) WHEN upper(vc) = ''K1'' THEN vc ELSE lower(tx) END'),
('CASE WHEN i2 > 0 THEN CASE WHEN i4 <> 0 AND div(20, i4::numeric) > 1 THEN upper(tx) ELSE lower(vc) END WHEN b THEN left(vc, -1) END'), ('upper(tx) || coalesce(upper(tx), lower(vc))'),
('b OR tz > now() - interval ''7 days'''), ('b AND d < current_date'), ('coalesce(d, current_date)'),
('u IN (''00000000-0000-0000-0000-000000000000'', ''ffffffff-ffff-ffff-ffff-ffffffffffff'')'), ('m IN (''ok'', ''sad'')'), ('ch NOT IN (''a'', ''b'')'), ('t IN (''10:00'', ''24:00'')'), ('f4 NOT IN (1, NULL)'), ('mo IN (''1'', ''-92233720368547758.08'')'),
('i4 = 1 OR n2 NOT IN (1, 2)'), ('CASE WHEN i4 > 0 THEN upper(bp) IN (''K1'', ''K2'', '''') ELSE b END'), ('extract(year FROM ts) IN (2019, 2020)'), ('i4::numeric / 3 IN (1, 2, 3)'),
('CASE WHEN b THEN NULL ELSE n2 END'), ('CASE WHEN b THEN NULL WHEN i4 > 0 THEN n2 WHEN i4 < 0 THEN NULL ELSE 1.50 END'), ('coalesce(n2, n2 + 1.00, 7.25)'), ('greatest(n2, n2 * 2, 1.00)'), ('least(n6, -n6)'), ('nullif(n2, n0)'), ('CASE WHEN b THEN NULL WHEN i4 > 0 THEN NULL END'),
('i2 IN (2::int2, 1::int2)'), ('i4 IN (3, 1, 2, 1)'), ('tx >= ''k3'''), ('tx || vc'), ('upper(tx)'), ('length(tx)'), ('substr(tx, 2)'), ('left(tx, 1)'),
('bp = ''k1'''), ('bp || ''x'''), ('length(bp)'), ('tx COLLATE "C" < ''k4'''), ('i4 + i8 * 2 - i2'), ('(i4 + 1) * (i4 - 1)'), ('i4 % 5'), ('mod(i8, 7)'), ('i2 & 3 | 4'), ('i4 # 5'), ('i4 << 2'), ('i8 >> 1'), ('~i4'),
('n2 * (1 - n2)'), ('n2 * (1 - n2) * (1 + n6)'), ('-n2 + n6'), ('n2 / 3'), ('round(n6, 2)'), ('round(n6)'), ('trunc(n6, 1)'), ('ceil(n6)'), ('floor(n2)'), ('n2::numeric(6,1)'), ('n2::int'), ('n2::float8'), ('n6::float4'), ('i4::numeric'), ('i4 * n2'),
('i8::numeric(20,4)'), ('nn * 2'), ('nn + n2'), ('n2 > n6'), ('n2 = 1.5'), ('n2 >= nn'), ('abs(n2 - 5)'), ('power(f8, 2)'), ('power(2, i4)'), ('f8 ^ 0.5'), ('width_bucket(f8, 0, 3, 10)'), ('width_bucket(f8, 3, 0, 7)'), ('width_bucket(n2, 0, 9, 5)'), ('width_bucket(f8, ARRAY[0, 1, 2]::float8[])'), ('pi() * f8'),
('d + 1'), ('d - 3'), ('d - date ''2020-01-01'''), ('d > ts'), ('ts <= d'), ('d = tz'), ('ts - ts'), ('ts + interval ''1 month'''), ('ts - interval ''36 hours'''), ('tz + interval ''1 day'''), ('d + interval ''1 hour'''), ('ts::date'), ('d::timestamp'), ('ts > now()'), ('ts < date_trunc(''year'', timestamp ''2020-05-05'')'),
('date_trunc(''day'', d)'), ('extract(hour FROM ts) * 60 + extract(minute FROM ts)'), ('to_char(ts, ''YYYY'')'), ('m = ''ok'''), ('m > ''sad'''), ('m'), ('ch = ''a'''), ('ch'), ('u'), ('iv'), ('ctid = ''(0,1)'''), ('tableoid::regclass'), ('mild IS NULL'), ('id IN (SELECT x.i4 FROM extreme x)');
SELECT differences('SELECT $e AS k, @count(*), @sum(i4) FROM mild GROUP BY 1', array_agg(e)) FROM others;
SELECT differences('SELECT id % 5, @sum($e), @avg($e), @min($e), @max($e) FROM extreme GROUP BY 1', array_agg(e)) FROM others WHERE e ~ 'n2|n6' AND e !~ '[<>=]|IN|::(int|float)';
SELECT differences('SELECT @count(*), @count($e), @count(*) FILTER (WHERE ($e) IS NULL) FROM mild WHERE ($e) IS NOT NULL OR id > 400', array_agg(e)) FROM others;
SELECT differences('SELECT id % 5, @count($e) FROM extreme GROUP BY 1', array_agg(e)) FROM others WHERE e !~ 'mild';

-- Conditions are reordered only if that neither causes nor hides an error.
SELECT differences('SELECT @count(*), @sum(id) FROM extreme WHERE $e', ARRAY['tx LIKE ''%a%'' AND i4 < 5', 'tx LIKE ''a\'' AND i4 = 77', 'i4 = 77 AND tx LIKE ''a\''',
    '10 / i4 > 2 AND tx LIKE ''%a%'' AND i2 > 0', 'tx LIKE ''%a%'' AND i4 <> 0 AND 10 / i4 > 2 AND i2 > 0', 'i4 <> 0 AND tx LIKE ''%a%'' AND 10 / i4 > 2',
    'tx ~ ''a'' AND i2 > 0 AND u = ''ffffffff-ffff-ffff-ffff-ffffffffffff'' AND vc IN (''a '', '''') AND f8 > 0', 'upper(tx) <> ''A'' AND b IS NULL AND i8 IN (1, -1)']);

-- Expressions without a vector form, which core evaluates row by row; EXPLAIN says so.
CREATE FUNCTION row_by_row(e text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE format('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT gpu_count(%s) FROM mild', e) INTO plan;
    RETURN jsonb_path_query_first(plan::jsonb, 'strict $.**."Row by Row"[0]', '{}', true) #>> '{}';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END $$;
SET gpuagg.require = 'require';
SELECT row_by_row(e) FROM others WHERE row_by_row(e) <> '' AND e !~ 'now|current|SELECT' ORDER BY e COLLATE "C";
SELECT count(row_by_row(e)) < count(*) / 4 AS few FROM expressions;
RESET gpuagg.require;

-- A constant that only some rows need, or none.
SET gpuagg.require = 'require';
SELECT gpu_sum(CASE WHEN id < -5 THEN 1 / (pg_backend_pid() * 0) ELSE id END) FROM mild;
SELECT gpu_sum(CASE WHEN id > 490 THEN 1 / (pg_backend_pid() * 0) ELSE id END) FROM mild;
SELECT g, (SELECT gpu_sum(CASE WHEN id % 2 = 0 THEN 1 + g + pg_backend_pid() * 0 ELSE 0 END) FROM mild WHERE id < 100 + g) FROM generate_series(1, 2) g;
RESET gpuagg.require;

-- Other time zones; parameters.
SET TimeZone = 'America/New_York';
SELECT differences('SELECT $e AS k, @count(*) FROM mild GROUP BY 1', array_agg(e)) FROM expressions WHERE e ~ '\mtz\M';
SET gpuagg.require = 'require';
PREPARE p(int, text, numeric) AS
SELECT i4 % $1 AS k, gpu_count(*), gpu_sum(i8 + $1), gpu_sum(n2 * $3) FROM mild WHERE tx <> $2 AND i4 > $1 - 5 GROUP BY 1 ORDER BY 1;
EXECUTE p(3, 'k1', 1.5);
EXECUTE p(4, 'k2', NULL);
SET plan_cache_mode = 'force_generic_plan';
EXECUTE p(3, 'k1', 1.5);
EXECUTE p(0, 'k1', 1);
-- A correlated subquery scans again with other parameters.
SELECT g, (SELECT gpu_sum(i4 * g) FROM mild WHERE i2 = g AND f8 > g / 2.0) FROM generate_series(-3, 4) g;
RESET gpuagg.require;

-- width_bucket at the bounds of buckets, and for the nearest values around them
CREATE TABLE borders AS
SELECT lo + (hi - lo) * (i::float8 / n) * (1 + ulps * 1.1e-16) AS x
FROM (VALUES (0.0::float8, 1.0::float8, 1), (0, 1, 100), (0, 10, 7), (-3, 9, 11), (0.1, 0.7, 30), (-1e300, 1e300, 9)) b(lo, hi, n),
    generate_series(0, n) i, generate_series(-4, 4) ulps;
INSERT INTO borders VALUES ('-Infinity'), ('Infinity'), (NULL), (-5e-324), (1e308);
ANALYZE borders;
SELECT differences('SELECT $e AS k, @count(*), @min(x), @max(x) FROM borders GROUP BY 1',
    ARRAY['width_bucket(x, 0, 1, 1)', 'width_bucket(x, 0, 1, 100)', 'width_bucket(x, 0, 10, 7)', 'width_bucket(x, -3, 9, 11)',
    'width_bucket(x, 0.1, 0.7, 30)', 'width_bucket(x, -1e300, 1e300, 9)', 'width_bucket(x, 0, 1, 2147483647)', 'width_bucket(x, 0, 1, 1000003)']);
INSERT INTO borders VALUES ('NaN');
SELECT differences('SELECT $e AS k, @count(*) FROM borders GROUP BY 1', ARRAY['width_bucket(x, 0, 1, 100)']);
