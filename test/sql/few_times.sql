-- Expressions with date_trunc and extract are computed once for each result of these, and functions of numerics once for each value.
SET client_min_messages = warning;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = off;
SET gpuagg.require = 'require';
SET enable_sort = off;
SET timezone = 'Europe/Berlin';

CREATE TABLE moments (id int, t timestamp, z timestamptz, n int, m numeric(10,2));
INSERT INTO moments SELECT i, CASE WHEN i % 97 > 0 THEN timestamp '2020-01-01' + i * interval '31 minutes 7 seconds' END, timestamptz '2020-03-20' + i * interval '17 minutes 3 seconds',
    i % 40 - 20, i % 50 / 4.0 FROM generate_series(1, 20000) i;
INSERT INTO moments VALUES (0, 'infinity', '-infinity', 0, 'NaN'), (0, '0044-03-15 BC', '294276-01-01', NULL, NULL);
VACUUM ANALYZE moments;

CREATE SEQUENCE time_calls;
CREATE FUNCTION noted(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('time_calls'); RETURN t || '!'; END $$;
CREATE FUNCTION noted(n numeric) RETURNS numeric IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('time_calls'); RETURN n + 1; END $$;
CREATE FUNCTION time_calls_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM setval('time_calls', 1);
    EXECUTE 'SELECT count(s) FROM (' || query || ' OFFSET 0) s';
    RETURN nextval('time_calls') - 2;
END $$;
SELECT q, time_calls_of(q) <= 1000 AS few FROM unnest(ARRAY['SELECT noted(to_char(date_trunc(''month'', t), ''YYYY-MM'')), gpu_count(*) FROM moments GROUP BY 1',
    'SELECT gpu_max(noted(date_trunc(''week'', z)::text)) FROM moments', 'SELECT gpu_max(noted(extract(dow FROM t)::text || extract(hour FROM z))) FROM moments',
    'SELECT gpu_sum(noted(n / 4.0)) FROM moments', 'SELECT gpu_count(*) FROM moments WHERE noted(date_trunc(''year'', z)::text) LIKE ''2020%''',
    'SELECT gpu_sum(noted(extract(isodow FROM t) + n)) FROM moments']) q;
-- a time that is needed itself has many values
SELECT time_calls_of('SELECT gpu_max(noted(to_char(t, ''HH24:MI'') || extract(dow FROM t))) FROM moments') > 10000 AS many;

CREATE VIEW time_queries AS SELECT q FROM unnest(ARRAY[
    'SELECT to_char(date_trunc(''month'', t), ''YYYY-MM''), @count(*) FROM moments GROUP BY 1', 'SELECT date_trunc(''day'', z)::text, @count(*), @sum(n) FROM moments GROUP BY 1',
    'SELECT to_char(date_trunc(''hour'', z), ''HH24 TZ''), @count(*) FROM moments GROUP BY 1', 'SELECT extract(dow FROM t)::text || ''-'' || extract(hour FROM t), @count(*) FROM moments GROUP BY 1',
    'SELECT floor(n / 7.0), ceil(m), @count(*), @avg(n) FROM moments GROUP BY 1, 2', 'SELECT round(m, 1), trunc(m), sign(n::numeric), @count(*) FROM moments GROUP BY 1, 2, 3',
    'SELECT @sum(floor(n / 3.0)), @avg(mod(m, 3)), @max(power(n::numeric, 2)) FROM moments', 'SELECT floor(extract(epoch FROM t) / 86400), @count(*) FROM moments WHERE t < ''infinity'' GROUP BY 1',
    'SELECT CASE WHEN n > 0 THEN to_char(date_trunc(''month'', t), ''Mon'') ELSE to_char(date_trunc(''year'', z), ''YYYY'') END, @count(*) FROM moments GROUP BY 1',
    'SELECT floor(date_part(''minute'', t) / 7)::text, @count(*) FROM moments GROUP BY 1', 'SELECT to_char(date_trunc(''month'', t) + interval ''1 month'', ''YYYY-MM''), @count(*) FROM moments GROUP BY 1',
    'SELECT @count(*) FROM moments WHERE to_char(date_trunc(''month'', t), ''MM'') = ''02'' AND floor(m) > 3']) q;
SELECT q, agrees(q) FROM time_queries;
SET work_mem = '64kB';
SELECT agrees(q), count(*) FROM time_queries GROUP BY 1;
RESET work_mem;
-- errors are raised for rows that core would compute, and for no others
SELECT agrees('SELECT @sum(floor(100 / (n + 21.0))) FROM moments'), agrees('SELECT @sum(CASE WHEN n <> 0 THEN floor(1.0 / n) END) FROM moments');
SELECT gpu_sum(floor(1.0 / n)) FROM moments;
SELECT gpu_count(date_trunc('fortnight', t)::text) FROM moments;
DROP VIEW time_queries;
DROP TABLE moments;
DROP FUNCTION agrees, noted(text), noted(numeric), time_calls_of;
DROP SEQUENCE time_calls;
