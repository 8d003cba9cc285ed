-- Expressions of one cached column with few distinct values are computed once for each value.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET gpuagg.cache = eager;
SET gpuagg.require = 'require';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

CREATE TABLE words (id int, t text, u uuid, v varchar(20), j jsonb, n numeric, long text) WITH (autovacuum_enabled = off);
INSERT INTO words SELECT i, CASE WHEN i % 11 > 0 THEN repeat(chr(65 + i % 7), i % 7) || i % 3 END, ('00000000-0000-0000-0000-00000000000' || i % 5)::uuid,
    CASE WHEN i % 4 > 0 THEN i % 20 ELSE NULL END, jsonb_build_object('a', i % 3, 'b', repeat('y', i % 4)), i % 10, repeat('long ' || i % 3, 500)
    FROM generate_series(1, 20000) i;
VACUUM ANALYZE words;
SELECT count(s) FROM (SELECT gpu_count(t), gpu_count(u), gpu_count(v), gpu_count(j), gpu_sum(n), gpu_count(long), gpu_sum(id) FROM words OFFSET 0) s;

-- counts the calls of a function that is declared immutable
CREATE SEQUENCE calls;
CREATE FUNCTION noted(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('calls'); RETURN t || '!'; END $$;
CREATE FUNCTION calls_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM setval('calls', 1);
    EXECUTE 'SELECT count(s) FROM (' || query || ' OFFSET 0) s';
    RETURN nextval('calls') - 2;
END $$;
SELECT q, calls_of(q) BETWEEN 1 AND 200 AS once FROM unnest(ARRAY['SELECT noted(t), gpu_count(*) FROM words GROUP BY 1', 'SELECT gpu_max(noted(t)) FROM words', 'SELECT gpu_count(noted(v)) FROM words WHERE id > 5',
    'SELECT noted(t), gpu_max(noted(t)), gpu_count(noted(t)) FROM words GROUP BY 1', 'SELECT length(noted(t)), gpu_sum(length(noted(v))) FROM words WHERE id % 2 = 0 GROUP BY 1']) q;
-- with two columns, or a column whose values do not repeat, they are computed for each row
SELECT calls_of('SELECT gpu_count(noted(t || v)) FROM words') BETWEEN 1 AND 5000 AS two, calls_of('SELECT gpu_count(noted(id::text)) FROM words') AS ids;

CREATE VIEW queries AS SELECT q FROM unnest(ARRAY[
    'SELECT lower(t), @count(*), @sum(id) FROM words GROUP BY 1', 'SELECT left(t, 1), @count(*) FROM words GROUP BY 1', 'SELECT length(t), @sum(id), @max(length(t)) FROM words GROUP BY 1',
    'SELECT t || ''a'', @min(t || ''b''), @max(t) FROM words GROUP BY 1', 'SELECT CASE WHEN t LIKE ''A%'' THEN ''a'' WHEN t IS NULL THEN ''none'' END, @count(*) FROM words GROUP BY 1',
    'SELECT coalesce(t, ''none''), @count(*), @sum(id) FROM words GROUP BY 1', 'SELECT coalesce(t, ''none''), lower(t), @count(*) FROM words GROUP BY 1, 2', 'SELECT u::text, @count(*) FROM words GROUP BY 1',
    'SELECT v::int + 1, @sum(v::int), @avg(v::numeric) FROM words GROUP BY 1', 'SELECT j ->> ''a'', @max(j ->> ''b''), @sum((j -> ''a'')::int) FROM words GROUP BY 1', 'SELECT t = ''A1'', @count(*) FROM words GROUP BY 1',
    'SELECT @count(lower(t)), @count(nullif(t, ''A1'')), @max(lower(t)), @sum(length(t)), @min(v::float8) FROM words', 'SELECT @sum(v::numeric), @max(v::numeric(10, 3)), @sum(v::float8) FROM words WHERE t IS NOT NULL',
    'SELECT upper(long), @count(*) FROM words GROUP BY 1', 'SELECT left(long, 5), @max(upper(long)) FROM words GROUP BY 1', 'SELECT repeat(t, 20000) IS NULL, @max(repeat(t, 20000)) FROM words WHERE id % 50 = 0 GROUP BY 1',
    'SELECT nullif(t, ''A1''), @count(nullif(t, ''A1'')), @count(*) FROM words WHERE id > 3000 GROUP BY 1', 'SELECT id % 3, @max(upper(t)), @min(lower(t)) FROM words GROUP BY 1',
    'SELECT lower(t), @count(*) FILTER (WHERE v::int > 5), @sum(id) FILTER (WHERE upper(t) = ''AA2'') FROM words GROUP BY 1', 'SELECT n * 2, @sum(n + 1) FROM words GROUP BY 1',
    'SELECT lower(w.t), upper(w.t), @count(*) FROM words w GROUP BY 1, 2', 'SELECT 1, @max(lower(t)) FROM words WHERE lower(t) > ''b'' AND t <> ''x''']) q;
SELECT q, agrees(q) FROM queries;
-- errors are raised for rows that core would compute, and for no others
SELECT agrees('SELECT @sum(10 / (length(t) - 3)) FROM words WHERE length(t) <> 3'), agrees('SELECT @sum(10 / (length(t) - 3)) FROM words WHERE id % 7 IN (0, 1)'),
    agrees('SELECT @count(v::int) FROM words WHERE id < 0'), agrees('SELECT @count(CASE WHEN length(t) > 3 THEN 1 / (length(t) - 3) END) FROM words');
SELECT gpu_sum(10 / (length(t) - 3)) FROM words;
SELECT gpu_max(t::int) FROM words WHERE id % 7 = 1;
-- heap pages and cached blocks in one batch; rows of one code with other values outside the cache
BEGIN;
UPDATE words SET t = CASE WHEN t IS NULL THEN 'new' WHEN id % 2 = 0 THEN lower(t) END WHERE id % 700 < 30;
SELECT agrees(q) FROM queries GROUP BY 1;
ROLLBACK;
SELECT agrees(q) FROM queries GROUP BY 1;
-- other parameters, and rescans
PREPARE starting(int) AS SELECT left(t, $1), gpu_count(*) FROM words GROUP BY 1 ORDER BY 1 LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE starting(1);
EXECUTE starting(2);
RESET plan_cache_mode;
SELECT g, (SELECT gpu_max(left(t, g)) FROM words) FROM generate_series(0, 3) g;
-- partitions, and participants of a parallel scan
CREATE TABLE parts (id int, t text) PARTITION BY LIST (id);
CREATE TABLE parts0 PARTITION OF parts FOR VALUES IN (0) WITH (autovacuum_enabled = off);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT id % 2, t FROM words;
SELECT agrees('SELECT lower(t), @count(*), @max(upper(t)) FROM parts GROUP BY 1') FROM generate_series(1, 2);
-- tables that have been read leave no values in memory, however many there are
CREATE TABLE lists (p int, t text) PARTITION BY LIST (p);
SELECT format('CREATE TABLE lists%s PARTITION OF lists FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p) FROM generate_series(1, 20) p \gexec
INSERT INTO lists SELECT p, 'x' || p || ' ' || i % 400 FROM generate_series(1, 20) p, generate_series(1, 1600) i;
VACUUM lists;
SELECT gpu_count(*), gpu_max(t) FROM (SELECT t FROM lists OFFSET 0) l;
SELECT gpu_count(s) FROM (SELECT gpu_max(lower(t)) AS s FROM lists) l;
BEGIN;
DECLARE of_lists CURSOR FOR SELECT p, gpu_max(repeat(t, 300)), gpu_max(repeat(t, 301)), gpu_count(*) FROM lists GROUP BY p;
FETCH 1 FROM of_lists \gset
SELECT sum(total_bytes) < 10000000 AS few FROM pg_backend_memory_contexts WHERE name = 'gpuagg values of expressions';
COMMIT;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT agrees(replace(q, 'words', 'parts')) FROM queries WHERE q ~ '^SELECT (lower\(t\), @count\(\*\), @sum|left\(t, 1|coalesce)' GROUP BY 1;
SELECT agrees(q) FROM queries WHERE q !~ 'repeat' GROUP BY 1;

DROP VIEW queries;
DROP TABLE words, parts, lists;
DROP FUNCTION agrees;
DROP FUNCTION calls_of;
DROP FUNCTION noted;
DROP SEQUENCE calls;
