-- Fields and truncation of dates and timestamps around the year 1, at the ends of their ranges, and in time zones on
-- both sides of UTC, where the local year matters.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/differs.sql'
\i :include
SET gpuagg.engine = cpu;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;

CREATE TABLE times (id int, ts timestamp, tz timestamptz, d date);
INSERT INTO times
SELECT i, v::timestamp, v::timestamptz, v::date FROM generate_series(1, 4) i, (SELECT (v || ' UTC') FROM unnest(ARRAY[
    '0001-01-01 00:00', '0001-01-01 07:59:59.999999', '0001-01-01 08:00', '0001-12-31 BC 23:59:59.999999', '0001-12-31 BC 13:00', '0001-01-02', '0001-06-15 12:34:56.789',
    '0002-01-01', '0044-03-15 12:00:00.5 BC', '0100-12-31 23:30 BC', '0101-01-01', '0100-12-31 23:59', '1000-12-31 20:00', '1001-01-01 04:00', '1900-02-28 23:59:59', '1969-12-31 23:59:59.999999',
    '1970-01-01', '1999-12-31 16:00', '2000-01-01', '2000-02-29 12:00', '2004-12-31', '2005-01-02 23:00', '2009-12-28', '2010-01-03 20:00', '9999-12-31 23:59', '199000-01-01']) v) s(v);
-- where core raises errors, the custom scan does too
INSERT INTO times SELECT 8, v::timestamp, v::timestamptz, v::date FROM unnest('{4712-01-01 BC UTC,4713-11-24 BC UTC,294276-12-31 23:59:59.999999 UTC}'::text[]) v;
INSERT INTO times VALUES (5, 'infinity', 'infinity', 'infinity'), (6, '-infinity', '-infinity', '-infinity'), (7, NULL, NULL, NULL);
INSERT INTO times (d) VALUES ('4713-01-01 BC'), ('5874897-12-31'), ('0001-12-31 BC'), ('0001-01-01');
ANALYZE times;
CREATE TABLE fields AS
SELECT f FROM unnest('{microseconds,milliseconds,second,minute,hour,day,week,month,quarter,year,decade,century,millennium,isoyear,julian,doy,dow,isodow,epoch,timezone,YEAR,years}'::text[]) f;

-- as a key, an argument and in a condition
CREATE FUNCTION pg_temp.queries() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT replace(replace(q, '$f', f), '$c', c) FROM fields, unnest('{ts,tz,d}'::text[]) c, unnest(ARRAY[
        'SELECT id, extract($f FROM $c), @count(*) FROM times GROUP BY 1, 2', 'SELECT date_part(''$f'', $c), @count(*) FROM times GROUP BY 1',
        'SELECT date_trunc(''$f'', $c), @count(*) FROM times WHERE id < 8 GROUP BY 1', 'SELECT id, @min(extract($f FROM $c)), @max(extract($f FROM $c)) FROM times WHERE id < 5 GROUP BY 1',
        'SELECT @count(*) FROM times WHERE extract($f FROM $c) <= 0', 'SELECT @sum(extract($f FROM $c + interval ''1 day'')) FROM times WHERE id < 4',
        'SELECT @sum(extract($f FROM $c)) FROM times WHERE $c < ''0001-01-01''']) q
$$;
SET timezone = 'UTC';
SELECT pg_temp.differs(q) FROM pg_temp.queries() q WHERE pg_temp.differs(q) IS NOT NULL;
SET timezone = 'Etc/GMT+8';
SELECT pg_temp.differs(q) FROM pg_temp.queries() q WHERE pg_temp.differs(q) IS NOT NULL;
SET timezone = 'Etc/GMT-14';
SELECT pg_temp.differs(q) FROM pg_temp.queries() q WHERE q ~ 'tz' AND pg_temp.differs(q) IS NOT NULL;
SET timezone = '<odd>+03:17';
SELECT pg_temp.differs(q) FROM pg_temp.queries() q WHERE q ~ 'tz' AND pg_temp.differs(q) IS NOT NULL;
SET timezone = 'America/Los_Angeles';
SELECT pg_temp.differs(q) FROM pg_temp.queries() q WHERE q ~ 'tz' AND pg_temp.differs(q) IS NOT NULL;

SET gpuagg.require = require;
SET timezone = 'Etc/GMT+8';
SELECT gpu_min(extract(year FROM tz)), gpu_min(date_part('month', tz)), gpu_min(date_trunc('year', tz)) FROM times WHERE tz = '0001-01-01 00:00+00';

DROP TABLE times, fields;
