-- Expressions over columns with few values, from heap pages: computed once for each combination of values.
SET client_min_messages = warning;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = off;
SET gpuagg.require = 'require';
SET enable_sort = off;

CREATE TABLE words (id int, a text, b varchar(20), c char(5), n int, m numeric, d timestamp, f float8, u uuid);
INSERT INTO words SELECT i, CASE WHEN i % 11 > 0 THEN repeat(chr(65 + i % 7), i % 7) || i % 3 END, CASE i % 5 WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN 'äö€' ELSE 'v' || i % 4 END,
    'c' || i % 3, i % 9, i % 6, timestamp '2020-01-31 23:00' + i % 13 * interval '9 days', CASE i % 4 WHEN 0 THEN 0 WHEN 1 THEN '-0'::float8 WHEN 2 THEN 'NaN' ELSE i % 8 END,
    ('00000000-0000-0000-0000-00000000000' || i % 5)::uuid
    FROM generate_series(1, 20000) i;
-- long values, compressed and out of line, and values that occur once
ALTER TABLE words ADD w text;
UPDATE words SET w = CASE id % 4 WHEN 0 THEN 'w' || id WHEN 1 THEN repeat('long ' || id % 3, 30) WHEN 2 THEN repeat('wide ' || id % 3, 600) ELSE 'x' END WHERE id % 50 < 30;
VACUUM ANALYZE words;

-- counts the calls of a function that is declared immutable
CREATE SEQUENCE calls;
CREATE FUNCTION noted(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('calls'); RETURN t || '!'; END $$;
CREATE FUNCTION noted_stable(t text) RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('calls'); RETURN t || '!'; END $$;
CREATE FUNCTION calls_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM setval('calls', 1);
    EXECUTE 'SELECT count(s) FROM (' || query || ' OFFSET 0) s';
    RETURN nextval('calls') - 2;
END $$;
SELECT q, calls_of(q) <= 400 AS few FROM unnest(ARRAY['SELECT noted(a), gpu_count(*) FROM words GROUP BY 1', 'SELECT gpu_max(noted(a)), gpu_min(length(noted(b))) FROM words',
    'SELECT noted(a || b), gpu_count(*) FROM words GROUP BY 1', 'SELECT gpu_count(*) FROM words WHERE noted(a) LIKE ''%1!''', 'SELECT gpu_count(*) FILTER (WHERE noted(b) > ''v'') FROM words',
    'SELECT gpu_count(CASE WHEN n > 3 THEN noted(a) END) FROM words', 'SELECT gpu_count(noted(n::text)), gpu_count(noted(a) || n) FROM words']) q;
SELECT calls_of('SELECT gpu_count(noted(w)) FROM words') > 5000 AS many, calls_of('SELECT gpu_count(noted(id::text)) FROM words') AS ids, calls_of('SELECT gpu_count(noted_stable(a)) FROM words') > 10000 AS stable;
-- a memo over many values contains a memo over few
SELECT calls_of('SELECT gpu_count(noted(a) || id::text) FROM words') <= 150 AS few;

-- costly functions: once for each of many long values, which repeat rarely within a range of blocks; memory is bounded
CREATE TABLE addresses AS SELECT 'https://' || CASE i % 4 WHEN 0 THEN 'www.' ELSE '' END || 'site' || i * 7919 % 500 || '.example/' || repeat('path/', 12) || i * 7919 % 3000 AS url, i % 1000 AS n
    FROM generate_series(1, 9000) i;
INSERT INTO addresses VALUES (NULL, 0), ('', 0), (repeat('https://long.example/', 300), 0), ('http://', 0);
VACUUM ANALYZE addresses;
SET work_mem = '64MB';
SELECT calls_of('SELECT gpu_count(noted(url)) FROM addresses'), calls_of('SELECT gpu_count(*) FROM addresses WHERE noted(url) > ''https://site3''');
SET gpuagg.cache = on;
SELECT gpuagg_cache_prewarm('addresses') > 0 AS cached;
SELECT calls_of('SELECT gpu_count(noted(url)) FROM addresses'), calls_of('SELECT noted(url), gpu_count(*) FROM addresses WHERE n < 5 GROUP BY 1') AS of_rows_that_pass;
SELECT m AS work_mem, c AS cache, set_config('work_mem', m, false) = m AND set_config('gpuagg.cache', c, false) = c AS set, agrees('SELECT regexp_replace(url, ''^https?://(?:www\.)?([^/]+)/.*$'', ''\1'') AS host, @count(*), @max(length(url)), @min(url) FROM addresses GROUP BY 1'),
    agrees('SELECT @count(*), @sum(n) FROM addresses WHERE url ~ ''site1[0-9]?\.'''), agrees('SELECT substring(url FROM ''site([0-9]+)''), @count(*) FROM addresses WHERE url !~* ''SITE3'' GROUP BY 1')
FROM unnest('{64kB,64MB}'::text[]) m, unnest('{on,off}'::text[]) c;
SET gpuagg.cache = off;
RESET work_mem;
DROP TABLE addresses;

CREATE VIEW queries AS SELECT q FROM unnest(ARRAY[
    'SELECT lower(left(a, 1)), @sum(length(b)), @count(*) FROM words GROUP BY 1', 'SELECT a || ''-'' || b, @count(*) FROM words GROUP BY 1', 'SELECT @min(a), @max(a), @min(b), @max(w) FROM words',
    'SELECT n, @min(a), @max(a), @max(b::text) FILTER (WHERE m > 2) FROM words GROUP BY 1', 'SELECT upper(b), replace(a, ''A'', ''äA''), @count(*) FROM words WHERE a ~ ''[A-D]'' OR b LIKE ''%v%'' GROUP BY 1, 2',
    'SELECT concat(a, b, n), @count(*) FROM words GROUP BY 1', 'SELECT to_char(d, ''Dy DD''), @sum(length(to_char(d, ''Month''))) FROM words GROUP BY 1', 'SELECT n::text, m::text, @count(*) FROM words GROUP BY 1, 2',
    'SELECT f::text, @count(*) FROM words GROUP BY 1', 'SELECT left(u::text, 36), @count(*) FROM words GROUP BY 1', 'SELECT c || ''x'', c::text || b, @count(*) FROM words GROUP BY 1, 2',
    'SELECT md5(w), @count(*) FROM words GROUP BY 1', 'SELECT repeat(a, 100), @count(*) FROM words GROUP BY 1', 'SELECT split_part(w, '' '', 1), @max(length(w)) FROM words GROUP BY 1',
    'SELECT coalesce(lower(a), ''none''), nullif(upper(b), ''V2''), @count(*) FROM words GROUP BY 1, 2', 'SELECT CASE WHEN lower(a) LIKE ''a%'' THEN upper(b) ELSE lower(b) END, @count(*) FROM words GROUP BY 1',
    'SELECT extract(hour FROM d), extract(dow FROM d), @count(*), @sum(extract(epoch FROM d)) FROM words GROUP BY 1, 2', 'SELECT round(m / 3, 1), @count(*) FROM words GROUP BY 1', 'SELECT a IS NULL, lower(a) IS NULL, @count(*) FROM words GROUP BY 1, 2',
    'SELECT a, lower(a), @count(*), @max(a) FROM words WHERE upper(a) <> ''B2'' GROUP BY 1, 2', 'SELECT string_to_array(a, ''1''), @count(*) FROM words GROUP BY 1', 'SELECT lower(a COLLATE "C"), @max(b COLLATE "C") FROM words GROUP BY 1']) q;
SELECT q, agrees(q) FROM queries;
SET work_mem = '64kB';
SELECT agrees(q), count(*) FROM queries GROUP BY 1;
RESET work_mem;
-- errors are raised for rows that core would compute, and for no others
SELECT agrees('SELECT @sum(10 / (length(a) - 3)) FROM words WHERE length(a) <> 3'), agrees('SELECT @count(b::int) FROM words WHERE id < 0'),
    agrees('SELECT @count(CASE WHEN length(a) > 3 THEN 1 / (length(a) - 3) END) FROM words'), agrees('SELECT @count(CASE WHEN n > 0 THEN to_char(1 / n, ''9'') END) FROM words');
SELECT gpu_sum(10 / (length(a) - 3)) FROM words;
SELECT gpu_max(a::int) FROM words WHERE id % 7 = 1;
SELECT gpu_count(to_char(1 / n, '9')) FROM words;
-- parameters, rescans, partitions
PREPARE starting(int) AS SELECT left(a, $1), gpu_count(*) FROM words GROUP BY 1 ORDER BY 1 LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE starting(1);
EXECUTE starting(2);
RESET plan_cache_mode;
SELECT g, (SELECT gpu_max(left(a, g)) FROM words) FROM generate_series(0, 3) g;
CREATE TABLE parts (id int, a text) PARTITION BY LIST (id);
CREATE TABLE parts0 PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE parts1 (a text, id int);
ALTER TABLE parts ATTACH PARTITION parts1 FOR VALUES IN (1);
INSERT INTO parts SELECT id % 2, CASE WHEN id % 2 = 0 THEN lower(a) ELSE a END FROM words;
SELECT agrees('SELECT upper(a), @count(*), @min(a) FROM parts GROUP BY 1');
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT agrees('SELECT upper(a), @count(*), @min(a), @max(b) FROM words GROUP BY 1'), agrees('SELECT upper(a), @count(*), @min(a) FROM parts GROUP BY 1');
RESET max_parallel_workers_per_gather;

-- intervals: arithmetic, sums, averages and extremes, and core's errors
CREATE TABLE spans (id int, a timestamp, b timestamptz, i interval);
INSERT INTO spans SELECT g, timestamp '2020-01-01' + g * interval '7 hours 13 minutes', timestamptz '2020-03-29 00:00 Europe/Berlin' + g % 500 * interval '17 minutes',
    CASE g % 9 WHEN 0 THEN NULL WHEN 1 THEN interval '24 hours' WHEN 2 THEN interval '1 day' WHEN 3 THEN interval '30 days' WHEN 4 THEN interval '1 mon' ELSE g % 50 * interval '-1 hour 1 second' END
    FROM generate_series(1, 5000) g;
ANALYZE spans;
-- in a parallel plan any of equal intervals that print differently may be the result
SELECT q, agrees(q) FROM unnest(ARRAY['SELECT id % 3, @avg(a - date_trunc(''day'', a)), @sum(a - ''2020-06-01''), @min(b - ''2021-01-01''), @max(b - date_trunc(''day'', b)) FROM spans GROUP BY 1',
    'SELECT @sum(i), @avg(i), extract(epoch FROM @min(i)), extract(epoch FROM @max(i)), @sum(i + i), extract(epoch FROM @max(i - interval ''1 day'')) FROM spans', 'SELECT id % 7, extract(epoch FROM @min(i)), extract(epoch FROM @max(i)) FROM spans GROUP BY 1', 'SELECT extract(epoch FROM i), @count(*) FROM spans GROUP BY i',
    'SELECT @sum(extract(epoch FROM i)), @avg(extract(epoch FROM a - ''2019-01-01'')), @max(extract(epoch FROM i + interval ''3 years 5 mons'')) FROM spans',
    'SELECT @count(*) FILTER (WHERE i > interval ''23 hours''), @count(*) FILTER (WHERE i <= interval ''1 day''), @count(*) FILTER (WHERE i = interval ''24 hours'') FROM spans',
    'SELECT @max(a + i), @min(a - i), @max(b + i), @min(b - i), @max(a + interval ''1 mon''), @max(b + interval ''3 hours'') FROM spans']) q;
-- the same query without workers
SET max_parallel_workers_per_gather = 0;
SELECT agrees('SELECT @min(i), @max(i), @max(i - interval ''1 day'') FROM spans'), agrees('SELECT id % 7, @min(i), @max(i) FROM spans GROUP BY 1'), agrees('SELECT i, @count(*) FROM spans GROUP BY 1');
RESET max_parallel_workers_per_gather;
SET timezone = 'Europe/Berlin';
SELECT agrees('SELECT @max(b + i), @min(b - i), @sum(b - date_trunc(''day'', b)) FROM spans'), agrees('SELECT date_trunc(''hour'', b), extract(hour FROM b), @count(*) FROM spans GROUP BY 1, 2');
RESET timezone;
-- an error has no context of a worker
SET max_parallel_workers_per_gather = 0;
SELECT gpu_sum(i * 1000000) FROM spans, generate_series(1, 3);
INSERT INTO spans VALUES (1, '2020-01-01', NULL, '178000000 years'), (1, '294276-01-01', NULL, '178000000 years'), (2, '4713-01-01 BC', NULL, '-178000000 years');
SELECT gpu_sum(i) FROM spans;
SELECT gpu_sum(i + i) FROM spans;
RESET max_parallel_workers_per_gather;
SELECT agrees('SELECT @max(a - ''2100-01-01''), @min(a - ''2100-01-01'') FROM spans'), agrees('SELECT @max(extract(epoch FROM i)) FROM spans');
-- the range of all timestamps is longer than microseconds can represent: an error since PostgreSQL 17
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE query INTO answer;
    RETURN answer;
EXCEPTION WHEN datetime_field_overflow THEN
    RETURN SQLERRM;
END $$;
SELECT outcome('SELECT (max(a - ''4713-01-01 BC''), min(a - ''294276-01-01'')) FROM spans') = outcome('SELECT (gpu_max(a - ''4713-01-01 BC''), gpu_min(a - ''294276-01-01'')) FROM spans') AS same;

-- time zones with summer time: the hours around each transition of 2018, zones that changed their offset, and rules
CREATE TABLE zoned (t timestamptz);
INSERT INTO zoned SELECT timestamptz '2018-01-01 00:00 UTC' + (transition - date '2018-01-01' + d) * interval '1 day' + h * interval '30 minutes' + s * interval '1 second'
    FROM unnest('{2018-02-18,2018-03-11,2018-03-22,2018-03-25,2018-04-01,2018-09-22,2018-09-30,2018-10-07,2018-10-28,2018-11-04}'::date[]) transition, generate_series(-1, 0) d, generate_series(0, 47, 3) h, generate_series(-1, 0) s;
INSERT INTO zoned SELECT x FROM generate_series(timestamptz '1890-01-01 00:00 UTC', '2060-01-01', '997 hours') x;
INSERT INTO zoned VALUES ('infinity'), ('-infinity'), (NULL), ('0044-03-15 BC'), ('0001-01-01 00:00 UTC'), ('100000-07-01');
ANALYZE zoned;
CREATE FUNCTION in_zone(zone text) RETURNS TABLE (verdict text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('timezone', zone, true);
    RETURN QUERY SELECT agrees(replace(q, '$f', f)) FROM unnest('{second,minute,hour,day,week,month,quarter,year}'::text[]) f,
        unnest(ARRAY['SELECT @sum(extract(epoch FROM date_trunc(''$f'', t)) * (1 + extract($f FROM t))), @count(*) FROM zoned WHERE isfinite(t)', 'SELECT extract($f FROM t), @count(*) FROM zoned GROUP BY 1', 'SELECT @max(date_part(''$f'', t)), @count(*) FROM zoned WHERE date_trunc(''$f'', t) < t']) q
        WHERE f NOT IN ('second', 'year') OR q !~ 'GROUP';
    RETURN QUERY SELECT agrees('SELECT extract(dow FROM t), date_part(''doy'', t), extract(isodow FROM t), @sum(extract(epoch FROM t)) FROM zoned WHERE isfinite(t) GROUP BY 1, 2, 3');
END $$;
SET max_parallel_workers_per_gather = 0;
SELECT zone, verdict, count(*) FROM unnest('{Europe/Berlin,America/New_York,America/Sao_Paulo,Australia/Lord_Howe,Pacific/Apia,Asia/Tehran,"EST5EDT,M3.2.0,M11.1.0",<odd>+03:17}'::text[]) zone, in_zone(zone) GROUP BY 1, 2 ORDER BY 1;
RESET max_parallel_workers_per_gather;
SELECT verdict, count(*) FROM in_zone('Europe/Berlin') GROUP BY 1;
-- another time zone with the same plan
PREPARE days AS SELECT gpu_max(date_trunc('day', t)) AT TIME ZONE 'UTC' AS day FROM zoned WHERE t < '2018-07-01';
SET timezone = 'Europe/Berlin';
EXECUTE days;
SET timezone = 'America/New_York';
EXECUTE days;
RESET timezone;

-- the field of a record without that field is not accessed if LIKE, which comes first, removes the row
CREATE FUNCTION of_record() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    rows bigint;
BEGIN
    FOR k IN 1..2 LOOP
        IF k = 1 THEN
            SELECT 1 AS x INTO r;
        ELSE
            SELECT 1 AS y INTO r;
        END IF;
        rows := (SELECT gpu_count(*) FROM words WHERE a LIKE 'no such%' AND n = r.x AND id > 0);
    END LOOP;
    RETURN rows;
END $$;
SELECT of_record();

DROP VIEW queries;
DROP TABLE words, parts, spans, zoned CASCADE;
DROP FUNCTION agrees, noted, noted_stable, calls_of, in_zone, of_record;
DROP SEQUENCE calls;
