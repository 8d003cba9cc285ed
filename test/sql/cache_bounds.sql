-- What the bounds of cached columns save: ranges in which no row passes a condition, conditions that all rows
-- pass, dates and times across types and time zones, and counts of values that are not NULL.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = eager;
SET timezone = 'America/New_York';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- the share of blocks that a query skips, in percent
CREATE FUNCTION skips(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
    plan := jsonb_path_query_first(plan, '$.** ? (exists (@."Feed"))');
    RETURN round(100 * (plan -> 'Cached Blocks Skipped')::int / (plan -> 'Cached Blocks')::int::numeric);
END $$;

-- 4 rows a block and 1,024 a range; some years of times in order, four hours apart
CREATE TABLE times (id int, ts timestamp, tz timestamptz, d date, f float8, n numeric, t text, pad text)
    WITH (autovacuum_enabled = off);
ALTER TABLE times ALTER pad SET STORAGE PLAIN;
INSERT INTO times SELECT i, '2018-01-01'::timestamp + i * interval '4 hours', '2018-01-01'::timestamp + i * interval '4 hours',
    '2018-01-01'::date + i / 6, i / 3.0, CASE WHEN i % 5 > 0 THEN i / 4.0 END, CASE WHEN i % 4 > 0 THEN 'x' || i % 7 END, repeat('x', 1900)
    FROM generate_series(1, 20000) i;
VACUUM ANALYZE times;
SELECT count(s) FROM (SELECT gpu_sum(id), gpu_max(ts), gpu_max(tz), gpu_max(d), gpu_sum(f), gpu_max(n), gpu_count(t) FROM times OFFSET 0) s;

-- comparisons across types and with casts: core's answer, and most of the table is skipped
SET gpuagg.require = 'require';
SELECT c, skips('SELECT gpu_count(*), gpu_sum(id) FROM times WHERE ' || c) > 70 AS skips,
    agrees('SELECT @count(*), @sum(id), @min(id), @max(id) FROM times WHERE ' || c)
FROM unnest(ARRAY[
    'ts >= ''2026-01-01''::timestamptz', 'ts < ''2018-06-01 12:00''::timestamptz', 'ts = ''2020-03-08 04:00''::timestamptz',
    'd >= ''2026-01-01 12:00''::timestamptz', 'd = ''2020-03-08''::timestamptz', 'd > ''2026-01-01 12:00''::timestamp',
    'tz >= ''2026-01-01''::date', 'tz < ''2018-06-01 12:00''::timestamp', 'tz = ''2020-03-08 04:00''::timestamp',
    'ts::date = ''2020-03-08''', 'tz::date = ''2020-03-08''', 'ts::date >= ''2026-01-01''', 'tz::date < ''2018-02-01''',
    'ts::timestamptz > ''2026-01-01''', 'tz::timestamp > ''2026-01-01''', 'd::timestamp > ''2026-01-01''', 'd::timestamptz < ''2018-02-01''',
    '''2026-01-01''::timestamptz < ts', '''2020-03-08'' = tz::date', 'tz::date > ''2026-01-01 10:00''::timestamptz', 'ts::date > ''2026-01-01 10:00''::timestamptz',
    'id > 0 AND ts < now() - interval ''100 years''', 'id > 0 AND tz < now() - interval ''100 years''', 'id > 0 AND d < current_date - 36500',
    'id > 0 AND ts < localtimestamp - interval ''100 years''', 'ts > make_timestamptz(2026, 1, 1, 0, 0, 0)']) c;
-- each hour around the changes to and from summer time
CREATE TABLE clocks (ts timestamp, d date, tz timestamptz, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE clocks ALTER pad SET STORAGE PLAIN;
INSERT INTO clocks SELECT ts, ts::date, ts::timestamptz, repeat('x', 1900)
    FROM generate_series('2024-03-05', '2024-03-15', interval '20 minutes') ts, generate_series(1, 3);
INSERT INTO clocks SELECT ts, ts::date, ts::timestamptz, repeat('x', 1900)
    FROM generate_series('2024-10-30', '2024-11-08', interval '20 minutes') ts, generate_series(1, 3);
VACUUM clocks;
CREATE FUNCTION disagreements(column_list text[], operators text[], timezones text[]) RETURNS TABLE (zone text, query text, verdict text)
LANGUAGE plpgsql AS $$
BEGIN
    FOREACH zone IN ARRAY timezones LOOP
        PERFORM set_config('timezone', zone, false);
        RETURN QUERY SELECT disagreements.zone, q, agrees(q)
            FROM (SELECT format('SELECT @count(*) FROM clocks WHERE %s %s %L::%s', c, o, v + h * interval '1 hour', type) AS q
                  FROM unnest(column_list) WITH ORDINALITY c(c, n), unnest(operators) o,
                      unnest(ARRAY['2024-03-10 00:00'::timestamp, '2024-11-03 00:00']) v, generate_series(-6, 12, 6) h, unnest(ARRAY['timestamptz', 'timestamp', 'date']) type
                  -- half of them, others in the next time zone
                  WHERE (n + length(zone) + h / 6 + length(type) + length(o)) % 2 = 0) queries
            WHERE agrees(q) <> 'ok';
    END LOOP;
END $$;
SELECT * FROM disagreements('{ts,d,tz,ts::date,tz::date,ts::timestamptz,tz::timestamp,d::timestamptz}', '{<,>=,=}',
    '{America/New_York,UTC,Pacific/Apia,AAA+160BBB-160}');
SET timezone = 'America/New_York';
-- the same table in another time zone, within the plan of one statement
PREPARE since(timestamptz) AS SELECT gpu_count(*) FROM clocks WHERE ts > $1;
EXECUTE since('2024-03-10 06:30+00');
SET timezone = 'Pacific/Kiritimati';
EXECUTE since('2024-03-10 06:30+00');
SELECT count(*) FROM clocks WHERE ts > '2024-03-10 06:30+00'::timestamptz;
RESET timezone;
SET timezone = 'America/New_York';
-- infinities, and values that are out of range for the cast
CREATE TABLE far (d date, ts timestamp, tz timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO far VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity'), ('2024-01-01', '2024-01-01', '2024-01-01'),
    (NULL, NULL, NULL), ('4714-11-24 BC', '4714-11-24 BC', '4714-11-25 BC'), ('5874897-01-01', '294276-12-31 23:00', '294276-12-31 12:00');
SELECT agrees(format('SELECT @count(*) FROM far WHERE %s %s %s', c, o, v))
FROM unnest('{d,ts,tz,ts::date,tz::timestamp}'::text[]) c, unnest('{<,>,=}'::text[]) o,
    unnest(ARRAY['''infinity''::timestamptz', '''2024-01-01''::timestamptz', '''-infinity''::date', '''2024-01-01''::timestamp']) v
GROUP BY 1;
SELECT gpu_count(*) FROM far WHERE d::timestamp > '2024-01-01';
-- a cast that fails for one row of a range must fail, whatever the bounds say about the other rows
CREATE TABLE beyond (id int, d date, ts timestamp) WITH (autovacuum_enabled = off);
INSERT INTO beyond SELECT i, CASE i WHEN 50 THEN '5000000-01-01' WHEN 60 THEN 'infinity' ELSE '2024-01-01' END::date,
    CASE i WHEN 50 THEN '294276-12-31 23:00' WHEN 60 THEN 'infinity' ELSE '2024-01-01' END::timestamp FROM generate_series(1, 100) i;
SELECT count(s) FROM (SELECT gpu_sum(id), gpu_max(d), gpu_max(ts) FROM beyond OFFSET 0) s;
SELECT gpu_count(*) FROM beyond WHERE d::timestamp < '2000-01-01';
SELECT gpu_count(*), gpu_sum(id) FROM beyond WHERE d::timestamp > '2000-01-01';
SELECT gpu_count(*) FROM beyond WHERE d::timestamptz < '2000-01-01';
SELECT gpu_sum(id) FROM beyond WHERE ts::timestamptz > '2000-01-01';
SELECT gpu_count(*) FROM beyond WHERE id > 60 AND d::timestamp > '2000-01-01';

-- conditions that all rows of a range pass: with other conditions, on columns that are read anyway, with NULLs, with errors
SELECT q, agrees(q) FROM unnest(ARRAY[
    'SELECT @count(*) FROM times WHERE id > 0', 'SELECT @sum(id), @sum(f) FROM times WHERE id > 500 AND f >= 0', 'SELECT @sum(f) FROM times WHERE id BETWEEN 3000 AND 17000',
    'SELECT t, @count(*), @sum(id) FROM times WHERE ts >= ''2019-01-01'' AND t <> ''x3'' GROUP BY t', 'SELECT @sum(id) FROM times WHERE n > 0', 'SELECT @sum(id) FROM times WHERE n IS NULL',
    'SELECT @count(n), @count(t), @count(*) FROM times WHERE id IS NOT NULL', 'SELECT @sum(id + 1), @max(id) FROM times WHERE id + 1 > 0 AND id > 0',
    'SELECT d, @max(id) FROM times WHERE d > ''2025-01-01'' AND tz::date > ''2025-01-01'' GROUP BY d', 'SELECT @sum(id) FROM times WHERE id = id AND id <= 20000',
    'SELECT @sum(id / (id - 30)) FROM times WHERE id > 30']) q;
SELECT gpu_sum(id / (id - 7000)) FROM times WHERE id > 0;
SELECT gpu_sum(id / (id - 7000)) FROM times WHERE id > 7000;
-- after changes, and in a query that reads heap pages and cached blocks
BEGIN;
UPDATE times SET id = -id WHERE id % 1000 = 7;
SELECT q, agrees(q) FROM unnest(ARRAY['SELECT @count(*), @sum(id) FROM times WHERE id > 0', 'SELECT @count(*), @sum(id) FROM times WHERE id < 1',
    'SELECT @count(t), @count(n), @count(*) FROM times']) q;
ROLLBACK;

-- a parameter that cannot be computed is not computed if no row needs it
SET plan_cache_mode = force_generic_plan;
DO $$
DECLARE
    r record;
    n bigint;
BEGIN
    FOR i IN 1..4 LOOP
        IF i < 3 THEN SELECT 5 AS x INTO r; ELSE SELECT 'five'::text AS x INTO r; END IF;
        SELECT gpu_count(*) INTO n FROM times WHERE t = 'none' AND id = r.x;
        RAISE WARNING '%', n;
    END LOOP;
END $$;
RESET plan_cache_mode;

-- counts of values that are not NULL read no values: of text, of numerics of any scale, of columns without a value
CREATE TABLE sparse (k int, t text, n numeric, j jsonb, b bool, none text) WITH (autovacuum_enabled = off);
INSERT INTO sparse SELECT i % 3, CASE WHEN i % 5 > 1 THEN repeat('t', i % 100) END, CASE WHEN i % 7 > 1 THEN i / 7.0 END,
    CASE WHEN i % 2 > 0 THEN jsonb_build_object('a', i) END, CASE WHEN i % 3 > 0 THEN i % 2 = 0 END FROM generate_series(1, 9000) i;
SELECT count(s) FROM (SELECT gpu_count(t), gpu_count(n), gpu_count(j), gpu_count(b), gpu_count(none) FROM sparse OFFSET 0) s;
SELECT q, agrees(q) FROM unnest(ARRAY['SELECT @count(t), @count(n), @count(j), @count(b), @count(none), @count(*) FROM sparse',
    'SELECT k, @count(t), @count(n), @count(j), @count(b), @count(none) FROM sparse GROUP BY k', 'SELECT @count(t), @sum(n), @max(t), @count(none) FROM sparse WHERE k = 1',
    'SELECT t, @count(n), @count(t) FROM sparse GROUP BY t', 'SELECT @count(t) FILTER (WHERE b), @count(n) FILTER (WHERE k > 0) FROM sparse']) q;

-- texts, by their first 8 bytes: ranges without a text that begins so are skipped, whatever the collation; less and greater under "C" alone
CREATE TABLE words (id int, t text, c text COLLATE "C", v varchar(40), i text COLLATE "en-x-icu", b char(12), long text, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE words ALTER pad SET STORAGE PLAIN;
INSERT INTO words SELECT i, w, CASE WHEN i % 9 > 0 THEN w END, CASE WHEN i % 4 > 0 THEN w END, w, w, CASE WHEN i < 15000 THEN w ELSE w || repeat('x', 3000) END, repeat('x', 1800)
    FROM (SELECT i, left(chr(97 + i / 800) || '_' || lpad((i % 800 / 4)::text, 3, '0') || repeat('y', i / 40 % 20), 12) w FROM generate_series(1, 20000) i) x;
VACUUM ANALYZE words;
SELECT count(s) FROM (SELECT gpu_sum(id), gpu_max(t), gpu_max(c), gpu_max(v), gpu_max(i), gpu_count(b), gpu_count(long) FROM words OFFSET 0) s;
SELECT c, skips('SELECT gpu_count(*), gpu_sum(id) FROM words WHERE ' || c) > 70 AS skips, agrees('SELECT @count(*), @sum(id), @min(id), @max(id) FROM words WHERE ' || c)
FROM unnest(ARRAY[
    't LIKE ''c\_%''', 't LIKE ''c%''', 't LIKE ''c%y''', 't LIKE ''c__12%''', 't LIKE ''c\_012yyyyyyyy%''', 't LIKE ''c\_012''', 't LIKE ''''', 't LIKE ''C%''', 'v LIKE ''x%''',
    'i LIKE ''f%''', 'c LIKE ''f%''', 't LIKE ''c|_%'' ESCAPE ''|''', 't LIKE ''\%''', 'starts_with(t, ''c_'')', 't = ''c_012''', '''d_012yyyyy'' = v', 'i = ''d_012yyyyyyy''',
    'v = ''none''', 'c < ''b''', 'c <= ''b_''', 'c >= ''x''', 'c > ''y_012''', '''x_'' < c', 't LIKE ''b%'' AND id > 100',
    't LIKE concat(''c'', ''%'')']) c;
-- these bounds decide nothing: other orders, other types, patterns that begin with a wildcard, NOT LIKE, values out of line
SELECT c, skips('SELECT gpu_count(*), gpu_sum(id) FROM words WHERE ' || c) = 0 AS reads_all, agrees('SELECT @count(*), @sum(id), @min(id), @max(id) FROM words WHERE ' || c)
FROM unnest(ARRAY['i < ''b''', 'i > ''x_''', 'b = ''c_012''', 'b LIKE ''c%''', 't LIKE ''%c''', 't LIKE ''_c%''', 't NOT LIKE ''c%''', 't <> ''c''', 't LIKE ''%''', 'starts_with(t, '''')', 't || '''' LIKE ''c%''',
    't ILIKE ''c%''']) c;
SELECT c, agrees('SELECT @count(*), @sum(id), @min(id), @max(id) FROM words WHERE ' || c) FROM unnest(ARRAY['long LIKE ''x%''', 'long LIKE ''a%''', 'long = ''y_000''', 'starts_with(long, ''w_'')']) c;
SELECT skips('SELECT gpu_count(*), gpu_sum(id) FROM words WHERE t ^@ ''c_012y''') > 70 AS skips;
SELECT gpu_count(*), gpu_sum(id) FROM words WHERE t ^@ 'c_012y';
SELECT count(*), sum(id) FROM words WHERE t ^@ 'c_012y';
-- conditions that all rows of a range pass
SELECT q, agrees(q) FROM unnest(ARRAY['SELECT @count(*), @sum(id) FROM words WHERE t LIKE ''%''', 'SELECT @count(*), @sum(id) FROM words WHERE starts_with(v, '''')',
    'SELECT @sum(id) FROM words WHERE c > ''a'' AND c < ''n''', 'SELECT @count(*) FROM words WHERE starts_with(t, ''a'') OR starts_with(t, ''b'')', 'SELECT @count(*) FROM words WHERE i LIKE ''b%'' AND c LIKE ''b%''',
    'SELECT @count(*), @sum(id) FROM words WHERE t >= ''a'' AND i >= ''A''', 'SELECT @count(*), @sum(id) FROM words WHERE t LIKE ''a\_%'' AND t LIKE ''a\_000%''']) q;
-- a pattern that is an error, also where no row needs it; patterns of parameters
SELECT gpu_count(*) FROM words WHERE t LIKE 'c\';
SELECT gpu_count(*) FROM words WHERE t LIKE 'zz\';
SET plan_cache_mode = force_generic_plan;
PREPARE begins(text) AS SELECT gpu_count(*), gpu_sum(id) FROM words WHERE t LIKE $1;
EXECUTE begins('c%');
EXECUTE begins('d\_01%');
EXECUTE begins(NULL);
EXECUTE begins('C%');
DEALLOCATE begins;
RESET plan_cache_mode;
DROP TABLE words;

DROP TABLE times, clocks, far, beyond, sparse;
DROP FUNCTION disagreements;
DROP FUNCTION skips;
DROP FUNCTION agrees;
