-- IN lists and conditions of any length: right answers, time that grows with the length, and memory that does
-- not.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/differs.sql'
\i :include
SET gpuagg.cache = off;
SET gpuagg.engine = cpu;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
SET jit = off;

CREATE TYPE list_mood AS ENUM ('sad', 'ok', 'happy');
CREATE COLLATION list_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE lists AS
SELECT i, CASE WHEN i % 17 > 0 THEN i * 7919 % 600 END AS i4, (i * 7919 % 600)::int2 AS i2, (i * 7919 % 600)::int8 AS i8, (i * 7919 % 600)::oid AS o,
    CASE WHEN i % 13 > 0 THEN 'k' || i * 7919 % 600 END AS t, ('k' || i * 7919 % 600)::char(8) AS c, ('k' || i * 7919 % 600)::varchar AS vc,
    date '2000-01-01' + i % 600 AS d, timestamp '2000-01-01' + i % 600 * interval '1 day' AS ts, timestamptz '2000-01-01 00:00+00' + i % 600 * interval '1 day' AS tz,
    time '00:00' + i % 600 * interval '1 second' AS ti, (enum_range(NULL::list_mood))[1 + i % 3] AS m, (i % 600)::numeric(10,2) AS n, (i % 600)::float8 AS f,
    (i % 600)::money AS mo, chr(97 + i % 26)::"char" AS ch, i % 2 = 0 AS b, i % 100 AS x, i % 90 AS y
FROM generate_series(1, 600) i;
INSERT INTO lists (i, t, c) VALUES (4001, repeat('long', 3000), 'k'), (4002, 'k1 ', 'k1 '), (4003, '', '');
ALTER TABLE lists ALTER t SET STORAGE EXTERNAL;
INSERT INTO lists (i, t) SELECT 4004, repeat('long', 3000);
ANALYZE lists;

-- every type, lists of 1 to 1,000 elements, unsorted, with NULLs and duplicates
CREATE TABLE list_elements (col text, typ text, element text);
INSERT INTO list_elements VALUES ('i4', 'int4', 'e * 37 % 600'), ('i4', 'int8', 'e * 37 % 600'), ('i4', 'int2', 'e * 37 % 600'), ('i2', 'int8', 'e * 37 % 600'), ('i2', 'int4', '-e'), ('i8', 'int2', 'e'),
    ('i8', 'int4', '600 - e'), ('o', 'oid', 'e * 4'), ('t', 'text', '''k'' || e * 37 % 600'), ('vc', 'varchar', '''k'' || e * 37 % 600'), ('c', 'bpchar', '''k'' || e * 37 % 600 || repeat('' '', e % 3)'),
    ('t', 'text', 'CASE e % 3 WHEN 0 THEN ''k1 '' WHEN 1 THEN '''' ELSE repeat(''long'', 3000) END'), ('d', 'date', 'date ''2000-01-01'' + e'), ('ts', 'timestamp', 'timestamp ''2000-01-01'' + e * interval ''12 hours'''),
    ('tz', 'timestamptz', 'timestamptz ''2000-01-01 00:00+00'' + e * interval ''12 hours'''), ('ti', 'time', 'time ''00:00'' + e * interval ''2 seconds'''), ('m', 'list_mood', '(enum_range(NULL::list_mood))[1 + e % 2]'),
    ('n', 'numeric', 'e * 37 % 600 / 2.0'), ('f', 'float8', 'e * 37 % 600 / 2.0'), ('mo', 'money', '(e * 37 % 600)::money'), ('ch', '"char"', 'chr(97 + e % 5)::"char"'), ('b', 'bool', 'e % 2 = 0'),
    ('t COLLATE list_nocase', 'text', '''K'' || e * 37 % 600'), ('t COLLATE "C"', 'text', '''k'' || e');
CREATE FUNCTION pg_temp.queries() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    r record;
    q text;
    list text;
BEGIN
    FOR r IN SELECT * FROM list_elements, (VALUES (1, 'true'), (12, 'false'), (17, 'true'), (300, 'false'), (300, 'true')) n(n, nulls) LOOP
        EXECUTE format('SELECT array_agg(CASE WHEN %s AND e = %s / 2 THEN NULL ELSE (%s)::%s END ORDER BY e %% 7, e DESC) FROM generate_series(0, %2$s - 1) e',
                       r.nulls, r.n, r.element, r.typ) INTO list;
        FOREACH q IN ARRAY ARRAY['$c = ANY ($l)', '$c <> ALL ($l)', '$c = ALL ($l)', '$c <> ANY ($l)', '($c = ANY ($l)) IS NULL'] LOOP
            RETURN NEXT format('SELECT @count(*), @sum(i) FROM lists WHERE %s', replace(replace(q, '$c', r.col), '$l', quote_literal(list) || '::' || r.typ || '[]'));
        END LOOP;
    END LOOP;
END $$;
CREATE TABLE list_queries AS SELECT q, pg_temp.result_of(q, '', 'forbid') AS core FROM pg_temp.queries() q;
SELECT count(*) FROM list_queries;
SELECT count(DISTINCT core) > 60 AS various, count(*) FILTER (WHERE core ~ '^[24]') AS failing FROM list_queries;
SELECT left(pg_temp.differs(q, core), 200) FROM list_queries WHERE pg_temp.differs(q, core) IS NOT NULL;

-- conditions with many terms, deeply nested, many together, long CASEs
CREATE FUNCTION pg_temp.of_many(element text, delimiter text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text;
BEGIN
    SELECT string_agg(replace(element, '$', e::text), delimiter) INTO r FROM generate_series(1, n) e;
    RETURN r;
END $$;
CREATE TABLE of_many AS
SELECT n, replace(replace(q, '$e', pg_temp.of_many(e, d, n)), '$$', '') AS q FROM (VALUES (3), (100), (800)) n(n), (VALUES
    ('SELECT @count(*), @sum(i) FROM lists WHERE $e', '(x = $ AND y = $)', ' OR '), ('SELECT @count(*) FROM lists WHERE $e', '(x <> $ OR i4 > $)', ' AND '),
    ('SELECT @sum(CASE $e ELSE 0 END) FROM lists', 'WHEN x = $ AND y > 1 THEN $', ' '), ('SELECT CASE x $e END, @count(*) FROM lists GROUP BY 1', 'WHEN $ THEN $ % 10', ' '),
    ('SELECT @sum(coalesce($e)) FROM lists', 'nullif(i4, $)', ', '), ('SELECT @sum(greatest($e)) FROM lists', 'x * $', ', '), ('SELECT @count(*) FROM lists WHERE n IN ($e)', '$ / 2.0', ', ')) v(q, e, d)
UNION ALL
SELECT n, replace(q, '$e', pg_temp.of_many(e, ' + ', n)) FROM (VALUES (3), (100), (400)) n(n), (VALUES ('SELECT @sum($e) FROM lists', 'x + i8 % $'), ('SELECT @sum($e) FROM lists', 'n * $'),
    ('SELECT @sum($e) FROM lists', '(CASE WHEN x = ANY (ARRAY[y, i4]) THEN 1.00 ELSE 2.5 END) + n'), ('SELECT @sum($e) FROM lists', 'n / $')) v(q, e)
UNION ALL
SELECT n, 'SELECT ' || pg_temp.of_many('@sum(x + $)', ', ', n) || ' FROM lists' FROM (VALUES (200), (700)) n(n);
SELECT left(pg_temp.differs(q), 200) FROM of_many WHERE pg_temp.differs(q) IS NOT NULL;

-- memory of the scan and its expressions, measured from inside the query
CREATE FUNCTION pg_temp.megabytes(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT (sum(total_bytes) / 1e6)::int FROM pg_backend_memory_contexts WHERE name ~* ''gpuagg''';
CREATE FUNCTION pg_temp.within(q text, seconds int, most int DEFAULT 32) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
    mb int;
BEGIN
    PERFORM set_config('gpuagg.require', 'require', true);
    EXECUTE q INTO mb;
    RETURN CASE WHEN clock_timestamp() - began > seconds * interval '1 second' THEN 'too slow' WHEN mb > most THEN mb || ' MB' ELSE 'fine' END;
END $$;
SELECT pg_temp.within('SELECT gpu_max(pg_temp.megabytes(i)) FROM lists WHERE i < 3 AND i4 <> ALL (ARRAY[' || pg_temp.of_many('-$', ', ', 200000) || '])', 10) AS ints;
SELECT pg_temp.within('SELECT gpu_max(pg_temp.megabytes(i)) FROM lists WHERE i < 3 AND (i > 0 OR ' || pg_temp.of_many('(x = $ AND y = $)', ' OR ', 12000) || ')', 20) AS terms;
SELECT pg_temp.within('SELECT gpu_count(*) FROM lists WHERE ' || pg_temp.of_many('(x <> $ OR i4 > $)', ' AND ', 4000), 20, 200000) AS conditions;
-- texts are looked up by hash; comparisons one by one would be 2 * 10^10
CREATE TABLE list_texts AS SELECT i, 'text ' || lpad(i::text, 8, '0') AS t FROM generate_series(1, 100000) i;
SELECT pg_temp.within('SELECT gpu_count(*) FROM list_texts WHERE t <> ALL (''{' || (SELECT string_agg('none ' || lpad(i::text, 8, '0'), ',') FROM generate_series(1, 200000) i) || '}'')', 10, 200000) AS texts;
DROP TABLE list_texts;
-- many expressions, each too large, which discard what was compiled for their parts
SELECT pg_temp.within(replace('SELECT gpu_max(pg_temp.megabytes(i)), $ FROM lists WHERE i < 3', '$',
    pg_temp.of_many('gpu_sum(CASE ' || pg_temp.of_many('WHEN x = $ OR y = 1 + $ THEN $', ' ', 1000) || ' ELSE 1 END)', ', ', 40)), 20) AS roots;

-- many tables, of which only one is read at a time
CREATE TABLE list_parts (i int, a int, t text) PARTITION BY RANGE (i);
DO $$
BEGIN
    FOR g IN 0 .. 149 LOOP
        EXECUTE format('CREATE TABLE list_part%s PARTITION OF list_parts FOR VALUES FROM (%1$s) TO (%1$s + 1)', g);
    END LOOP;
END $$;
INSERT INTO list_parts SELECT i % 150, i, 'k' || i FROM generate_series(1, 450) i;
ANALYZE list_parts;
SELECT pg_temp.differs(q) FROM unnest(ARRAY['SELECT @count(*), @sum(a), @max(t) FROM list_parts WHERE a % 7 < 5', 'SELECT i % 5, @count(*), @sum(a + 1) FROM list_parts WHERE t <> ''k5'' GROUP BY 1',
    'SELECT (SELECT @sum(a + g) FROM list_parts WHERE a % 7 < g AND i NOT IN (SELECT 5 + g)) FROM generate_series(1, 4) g', 'SELECT (SELECT @sum(a) FROM list_parts WHERE i > g) FROM generate_series(50, 150, 25) g']) q;
SELECT pg_temp.within('SELECT gpu_max(pg_temp.megabytes(a)) FROM list_parts WHERE i > 145 OR (i + a * 2 > a - 7 AND a + 5 < 0 AND t LIKE ''k%'' AND a * 3 > i * 7 AND a + i > a + 3)', 20, 16) AS parts;
DROP TABLE list_parts;

DROP TABLE lists, list_elements, list_queries, of_many;
DROP COLLATION list_nocase;
DROP TYPE list_mood;
