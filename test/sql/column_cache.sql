-- The column cache: what fills it, what proves that it is valid, and that answers are those of the tables.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.require = 'require';
SET gpuagg.engine = 'cpu';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- what EXPLAIN ANALYZE prints about a query's feed, without numbers that depend on the layout of pages
CREATE FUNCTION feed(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
    scan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
    scan := jsonb_path_query_first(plan, '$.** ? (exists (@."Feed"))');
    IF NOT scan ? 'Cached Blocks' THEN
        RETURN scan ->> 'Feed';
    END IF;
    RETURN concat_ws(', ', 'cache',
        CASE WHEN scan ->> 'Cached Blocks' = '0' THEN 'nothing read'
             WHEN scan ->> 'Feed' ~ '\((\d+) of \1 blocks\)' THEN 'all read' ELSE 'some read' END,
        CASE WHEN scan ->> 'Cached Blocks Proved by Visibility Map' <> '0' THEN 'by map' END,
        CASE WHEN scan ->> 'Cached Blocks Proved by LSN' <> '0' THEN 'by LSN' END,
        CASE WHEN scan ->> 'Cached Blocks Skipped' <> '0' THEN CASE WHEN scan -> 'Cached Blocks Skipped' = scan -> 'Cached Blocks' THEN 'all skipped' ELSE 'some skipped' END END,
        CASE WHEN scan ->> 'Cached Blocks Changed' <> '0' THEN 'some changed' END,
        CASE WHEN scan ->> 'Cached Blocks Built' <> '0' THEN 'built' END);
END $$;

CREATE TABLE col (id int, k int, t text, d numeric(10,2), n numeric, f float8, b bool, ts timestamp) WITH (autovacuum_enabled = off, fillfactor = 80);
INSERT INTO col SELECT i, i % 7, 'key ' || i % 5, i / 100.0, CASE WHEN i % 100 = 0 THEN 'NaN' ELSE i / 8.0 END, i / 3.0,
    CASE WHEN i % 3 > 0 THEN i % 2 = 0 END, '2024-01-01'::timestamp + i * interval '1 minute' FROM generate_series(1, 60000) i;
-- from 19 on, a scan sets bits of the visibility map for pages that are nearly full
ALTER TABLE col RESET (fillfactor);

-- the first query ignores the cache, the second one fills it, the third one reads it
SET gpuagg.cache = on;
SELECT feed('SELECT k, gpu_sum(id) FROM col GROUP BY k') FROM generate_series(1, 3);
-- without bits in the visibility map the LSN proves pages; with bits first the LSN does, and then the map
VACUUM col;
SELECT feed('SELECT k, gpu_sum(id) FROM col GROUP BY k') FROM generate_series(1, 2);
-- other columns of the same ranges, together
SET gpuagg.cache = eager;
SELECT feed('SELECT t, gpu_count(*), gpu_sum(d), gpu_sum(n), gpu_avg(f), gpu_count(b), gpu_max(ts) FROM col GROUP BY t') FROM generate_series(1, 2);
SELECT feed('SELECT gpu_count(*) FROM col');
-- without the cache
SET gpuagg.cache = off;
SELECT feed('SELECT k, gpu_sum(id) FROM col GROUP BY k');
SET gpuagg.cache = eager;

CREATE FUNCTION all_agree() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT agrees(q) FROM unnest(ARRAY[
    'SELECT k, @count(*), @sum(id), @sum(d), @min(d), @max(ts) FROM col GROUP BY k',
    'SELECT t, @count(*), @sum(n), @max(n), @count(b), @bool_or(b) FROM col GROUP BY t',
    'SELECT b, t, @count(*), @sum(id * 2), @min(t) FROM col WHERE d > 30 AND k <> 3 GROUP BY b, t',
    'SELECT k % 3, @count(*) FROM col WHERE t LIKE ''%3'' OR t = ''key 4'' GROUP BY 1',
    'SELECT @count(*), @sum(id) FROM col WHERE t IN (''key 1'', ''key 2'') AND upper(t) <> ''KEY 2''',
    'SELECT upper(t), @count(*), @max(length(t)) FROM col WHERE n <> ''NaN'' GROUP BY 1',
    'SELECT n, @count(*) FROM col WHERE id > 59000 GROUP BY n',
    'SELECT @count(*), @max(f), @min(id) FROM col']) q $$;
SELECT * FROM all_agree();

-- ranges are skipped if their bounds exclude a condition, unless that would hide an error
SELECT q, feed(q) FROM unnest(ARRAY['SELECT gpu_sum(k) FROM col WHERE id > 50000', 'SELECT gpu_sum(k) FROM col WHERE 50000 < id AND k = 1', 'SELECT gpu_sum(k) FROM col WHERE id = 70000::int8',
    'SELECT gpu_sum(k) FROM col WHERE d < 0', 'SELECT gpu_sum(k) FROM col WHERE ts >= ''2024-02-05''::date', 'SELECT gpu_sum(k) FROM col WHERE f > 1e10', 'SELECT gpu_sum(k) FROM col WHERE id IS NULL',
    'SELECT gpu_sum(k) FROM col WHERE b IS NULL', 'SELECT gpu_sum(k) FROM col WHERE b IS NOT NULL', 'SELECT gpu_sum(k) FROM col WHERE n = 5', 'SELECT gpu_sum(k) FROM col WHERE id < (SELECT 10)',
    'SELECT gpu_sum(k) FROM col WHERE id BETWEEN 10 AND 5', 'SELECT gpu_sum(k) FROM col WHERE id < NULL::int', 'SELECT gpu_sum(k) FROM col WHERE 10 / (k + 1) > 0 AND id < 0']) q;
SELECT agrees('SELECT @count(*), @sum(k) FROM col WHERE 10 / (k - 6) > 0 AND id < 0');
SELECT agrees(q) FROM unnest(ARRAY['SELECT @count(*) FROM col WHERE id > 50000 AND id <= 50001', 'SELECT k, @sum(d) FROM col WHERE ts >= ''2024-02-05''::date GROUP BY k', 'SELECT @count(*) FROM col WHERE d = 20000 OR id = 1']) q;
PREPARE before(int) AS SELECT gpu_count(*) FROM col WHERE id < $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE before(10);
EXECUTE before(-5);
EXECUTE before(NULL);
RESET plan_cache_mode;
DEALLOCATE before;
SELECT g, (SELECT gpu_count(*) FROM col WHERE id < g) FROM unnest(ARRAY[1, 5, 59999, NULL]) g;

-- types whose order differs from the order of the bounds: "char" is unsigned, enum labels, local times
CREATE TYPE label AS ENUM ('b', 'd');
ALTER TYPE label ADD VALUE 'a' BEFORE 'b';
CREATE TABLE orders AS SELECT CASE WHEN i % 2 = 0 THEN 'a'::"char" ELSE (-100)::int::"char" END AS c,
    CASE WHEN i % 2 = 0 THEN '2024-03-10 02:30'::timestamp ELSE '2024-03-10 03:00' END AS ts FROM generate_series(1, 1000) i;
ALTER TABLE orders ADD e label;
UPDATE orders SET e = CASE WHEN c = 'a' THEN 'a'::label ELSE 'b' END;
SET timezone = 'America/New_York';
SELECT agrees(q) FROM unnest(ARRAY['SELECT @count(*) FROM orders WHERE c > ''z''', 'SELECT @count(*) FROM orders WHERE c < ''B''', 'SELECT @count(*) FROM orders WHERE e < ''b''',
    'SELECT @count(*) FROM orders WHERE e >= ''d''', 'SELECT @count(*) FROM orders WHERE ts > ''2024-03-10 07:15+00''::timestamptz']) q;
RESET timezone;
-- if no rows are left, nothing is computed that may fail
PREPARE above(int) AS SELECT gpu_count(*) FROM orders WHERE ts > '2024-01-01'::timestamp + 10 / $1 * interval '1 day';
SET plan_cache_mode = force_generic_plan;
EXECUTE above(1);
DELETE FROM orders;
EXECUTE above(0);
RESET plan_cache_mode;
DEALLOCATE above;
DROP TABLE orders;
DROP TYPE label;

-- pages at the end of a range that have no rows: the values of the rows before them are kept while they are read
CREATE TABLE parts (p int, t text, k int) PARTITION BY LIST (p);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE UNLOGGED TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT p, 'key ' || k % 5, k FROM generate_series(1, 2) p, generate_series(1, 1000) k;
VACUUM parts;
SELECT agrees('SELECT t, @count(*) FROM parts GROUP BY t') FROM generate_series(1, 2);
DELETE FROM parts_1 WHERE k > 500;
SELECT agrees('SELECT t, @count(*) FROM parts GROUP BY t');
DROP TABLE parts;

-- evaluation row by row keeps no memory: compares the memory of the process at the first and at the last rows
CREATE FUNCTION memory_at(numeric) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(total_bytes) FROM pg_backend_memory_contexts); END $$;
SELECT gpu_max(memory_at(d)) - gpu_min(memory_at(d)) < 500000 AS little FROM col WHERE right(d::text, 6) IN ('100.00', '600.00');
DROP FUNCTION memory_at;

-- after changes, rows of other pages still come from the cache
UPDATE col SET d = d + 1 WHERE id BETWEEN 100 AND 200;
SELECT regexp_replace(feed('SELECT k, gpu_sum(d) FROM col GROUP BY k'), 'by map, by LSN|by map|by LSN', 'proved') FROM generate_series(1, 2);
DELETE FROM col WHERE id % 10000 = 5;
INSERT INTO col SELECT i, i % 7, 'new ' || i % 5, i, i, i, true, '2025-01-01' FROM generate_series(60001, 61000) i;
SELECT * FROM all_agree();
VACUUM col;
SELECT * FROM all_agree();

-- a transaction's own changes, and what remains of them
BEGIN;
UPDATE col SET k = 100 WHERE id % 1000 = 0;
SELECT * FROM all_agree();
SAVEPOINT s;
DELETE FROM col WHERE id > 30000;
SELECT * FROM all_agree();
ROLLBACK TO s;
SELECT * FROM all_agree();
ROLLBACK;
SELECT * FROM all_agree();

-- attributes that rows do not have yet: their value is not in the page, and it may differ after a rollback
BEGIN;
ALTER TABLE col ADD late int DEFAULT 5;
SELECT gpu_sum(late) FROM col;
SELECT gpu_sum(late) FROM col;
ROLLBACK;
ALTER TABLE col ADD late int DEFAULT 7;
SELECT gpu_sum(late), gpu_count(late) FROM col;
ALTER TABLE col DROP late;
ALTER TABLE col ADD late int;
SELECT gpu_sum(late), gpu_count(late) FROM col;
-- two default values with the same hash: the bytes of '00062477' and '00131396'
BEGIN;
ALTER TABLE col ADD equal_hash bigint DEFAULT 3978706186067259440;
SELECT gpu_max(equal_hash) FROM col;
ROLLBACK;
ALTER TABLE col ADD equal_hash bigint DEFAULT 3907210438125891632;
SELECT gpu_max(equal_hash) FROM col;
-- a default value of a gigabyte, which is needed once for each row of a range
CREATE TABLE long WITH (autovacuum_enabled = off) AS SELECT i FROM generate_series(1, 60000) i;
ALTER TABLE long ADD n numeric DEFAULT repeat('123456789', 2500)::numeric;
INSERT INTO long SELECT i, (i / 100.0)::numeric(10,2) FROM generate_series(1, 240000) i;
ANALYZE long;
SELECT gpu_sum(n) = 60000 * repeat('123456789', 2500)::numeric + 288001200 FROM long WHERE i > 0;
DROP TABLE long;
-- types that change without a rewrite
ALTER TABLE col ALTER d TYPE numeric(12,2);
SELECT * FROM all_agree();

-- tables that are truncated, rewritten, and created in this transaction
BEGIN;
TRUNCATE col;
INSERT INTO col (id, k, t) VALUES (1, 1, 'one');
SELECT feed('SELECT gpu_sum(id) FROM col');
SELECT gpu_sum(id) FROM col;
ROLLBACK;
SELECT * FROM all_agree();
VACUUM FULL col;
SELECT * FROM all_agree();
CREATE UNLOGGED TABLE unlogged_col AS SELECT * FROM col;
SELECT feed('SELECT gpu_sum(id) FROM unlogged_col') FROM generate_series(1, 2);
DROP TABLE unlogged_col;

-- pages that are not settled are rarely read twice: buffers that a query reads, divided by those without the cache
CREATE FUNCTION buffers(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
    RETURN (plan #>> '{0,Plan,Shared Hit Blocks}')::numeric + (plan #>> '{0,Plan,Shared Read Blocks}')::numeric;
END $$;
CREATE TABLE unsettled (id int) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO unsettled SELECT generate_series(1, 60000);
BEGIN;
UPDATE unsettled SET id = id + 1;
SELECT buffers('SELECT gpu_sum(id) FROM unsettled WHERE id > 5') > 0;
SET LOCAL gpuagg.cache = off;
SELECT buffers('SELECT gpu_sum(id) FROM unsettled WHERE id > 5') AS without \gset
SET LOCAL gpuagg.cache = eager;
SELECT buffers('SELECT gpu_sum(id) FROM unsettled WHERE id > 5') / :without < 1.4 AS few;
ROLLBACK;
DROP TABLE unsettled;
DROP FUNCTION buffers;

-- a sequence changes in place, without a new LSN
CREATE SEQUENCE numbers;
SELECT nextval('numbers'), nextval('numbers');
SELECT gpu_max(last_value) FROM numbers;
SELECT nextval('numbers');
SELECT gpu_max(last_value) FROM numbers;
SELECT feed('SELECT gpu_max(last_value) FROM numbers');
DROP SEQUENCE numbers;

-- errors that core would raise, and errors that it would not
SELECT gpu_sum(id) FROM col WHERE t::int > 3;
UPDATE col SET t = 'x' WHERE k = 3;
UPDATE col SET t = id % 9 WHERE k <> 3;
SELECT agrees('SELECT @count(*), @sum(id) FROM col WHERE k <> 3 AND t::int > 3');
SELECT gpu_count(*) FROM col WHERE t::int > 3;

-- a cursor continues as it began
BEGIN;
DECLARE c CURSOR FOR SELECT k, gpu_sum(id) FROM col GROUP BY k ORDER BY k;
FETCH 2 FROM c;
UPDATE col SET id = 0;
FETCH 2 FROM c;
ROLLBACK;

-- many columns of many types, in parallel
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM all_agree();
-- without the leader
CREATE TABLE workers WITH (autovacuum_enabled = off, parallel_workers = 2) AS SELECT i, i % 7 AS k FROM generate_series(1, 60000) i;
-- from PostgreSQL 16 on, the table was extended in advance by blocks that VACUUM removes
VACUUM workers;
SET parallel_leader_participation = off;
SET gpuagg.cache = on;
SELECT (array_agg(feed('SELECT k, gpu_sum(i) FROM workers GROUP BY k')))[5] FROM generate_series(1, 5);
RESET parallel_leader_participation;
SET gpuagg.cache = eager;
DROP TABLE workers;

DROP TABLE col;
DROP FUNCTION feed, all_agree, agrees;
