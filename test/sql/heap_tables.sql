-- The heap feed after changes by the session: HOT chains, rewrites and truncations in its own transaction, SET
-- LOCAL, held cursors, scans that start in the middle of a table, long values as keys, visibility of the commands
-- of a transaction.
CREATE SCHEMA heap_tables;
SET search_path = heap_tables, public;
SET client_min_messages = warning;
SET enable_sort = off;
SET gpuagg.feed = 'heap';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- HOT chains: only the visible version counts, before and after pruning.
CREATE TABLE hot (id int PRIMARY KEY, k int, v int) WITH (fillfactor = 40, autovacuum_enabled = off);
INSERT INTO hot SELECT i, i % 5, i FROM generate_series(1, 3000) i;
BEGIN;
UPDATE hot SET v = v + 1 WHERE id % 2 = 0;
SELECT pg_stat_get_xact_tuples_hot_updated('hot'::regclass) > 1000 AS chains;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');
COMMIT;
UPDATE hot SET v = v + 1 WHERE id % 2 = 0;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');
UPDATE hot SET v = v + 1, k = k + 1 WHERE id % 4 = 0;
DELETE FROM hot WHERE id % 8 = 0;
SELECT count(*) FROM hot WHERE id < 0;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');
VACUUM hot;
UPDATE hot SET v = -v WHERE id % 12 = 4;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');

-- A table, a column, a truncation and a rewrite by the own transaction, committed and rolled back.
BEGIN;
CREATE TABLE own (k int, v int);
SELECT agrees('SELECT @count(*), @sum(v) FROM own');
COPY own FROM stdin (FREEZE);
1	10
1	20
2	30
\.
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k');
SAVEPOINT a;
INSERT INTO own SELECT i % 4, i FROM generate_series(1, 1000) i;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k');
SAVEPOINT b;
ALTER TABLE own ADD extra int DEFAULT 4, ALTER v TYPE numeric(10,1);
DELETE FROM own WHERE k = 2;
SELECT agrees('SELECT k, @count(*), @sum(v), @sum(extra) FROM own GROUP BY k');
TRUNCATE own;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k');
INSERT INTO own VALUES (7, 7, 7);
SELECT agrees('SELECT k, @count(*), @sum(v), @sum(extra) FROM own GROUP BY k');
ROLLBACK TO b;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k');
RELEASE a;
COMMIT;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k'), (SELECT count(*) FROM own);
CREATE INDEX own_k ON own (k);
CLUSTER own USING own_k;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k');
VACUUM FULL own;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k');
-- errors in subtransactions that are caught
DO $$
BEGIN
    FOR i IN 1..5 LOOP
        BEGIN
            DELETE FROM own WHERE k = i;
            PERFORM gpu_sum(1 / (v - 500)) FROM own;
        EXCEPTION WHEN division_by_zero THEN
        END;
    END LOOP;
END $$;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM own GROUP BY k'), (SELECT count(*) FROM own);

-- A query inside a command sees the table as it was at the command's start.
SET gpuagg.require = 'require';
INSERT INTO own SELECT 100 + k, gpu_count(*) FROM own GROUP BY k;
SELECT k, v FROM own WHERE k >= 100 ORDER BY k;
WITH gone AS (DELETE FROM own WHERE k >= 100 RETURNING v)
SELECT (SELECT sum(v) FROM gone) AS gone, gpu_count(*) AS seen FROM own;
UPDATE own SET v = (SELECT gpu_max(v) FROM own) WHERE k = 1 AND v < 100;
SELECT k, gpu_sum(v) FROM own GROUP BY k ORDER BY k;
CREATE FUNCTION total() RETURNS numeric LANGUAGE sql VOLATILE AS 'SELECT gpu_sum(v) FROM own';
CREATE FUNCTION stable_total() RETURNS numeric LANGUAGE sql STABLE AS 'SELECT gpu_sum(v) FROM own';
BEGIN;
-- a volatile function sees what the command has changed so far, a stable one the table at its start
WITH changed AS (UPDATE own SET v = 0 WHERE k = 3 RETURNING total() AS now, stable_total() AS start)
SELECT count(DISTINCT now) > 1 AS changes, count(DISTINCT start) AS starts FROM changed;
ROLLBACK;

-- SET LOCAL ends with its transaction or savepoint.
CREATE FUNCTION feed() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT k, gpu_sum(v) FROM hot GROUP BY k' LOOP
        IF line ~ 'Feed|Aggregate' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
BEGIN;
SET LOCAL gpuagg.feed = 'tuples';
SELECT feed();
SAVEPOINT s;
SET LOCAL gpuagg.feed = 'heap';
SET LOCAL gpuagg.batch_rows = 64;
SELECT feed();
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');
ROLLBACK TO s;
SELECT feed();
SET LOCAL gpuagg.require = 'forbid';
SELECT feed();
COMMIT;
SELECT feed();
SHOW gpuagg.batch_rows;

-- Cursors: held, scrolled, closed early, left open at the end; rows change meanwhile.
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT k, gpu_count(*), gpu_sum(v) FROM hot GROUP BY k ORDER BY k;
DECLARE begun SCROLL CURSOR WITH HOLD FOR SELECT k, gpu_count(*) FROM hot GROUP BY k ORDER BY k;
DECLARE early CURSOR FOR SELECT k, gpu_count(*) FROM hot GROUP BY k;
DECLARE left_open CURSOR FOR SELECT k, gpu_count(*) FROM hot GROUP BY k;
FETCH 1 FROM begun;
MOVE 1 IN early;
MOVE 1 IN left_open;
CLOSE early;
UPDATE hot SET v = 0;
DELETE FROM hot WHERE k = 1;
COMMIT;
TRUNCATE own;
FETCH ALL FROM held;
FETCH ALL FROM begun;
FETCH BACKWARD 2 FROM begun;
CLOSE ALL;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');

-- Rows with every kind of lock, of this transaction and of earlier ones.
BEGIN;
SELECT count(*) FROM (SELECT FROM hot WHERE k = 2 FOR UPDATE) l;
SELECT count(*) FROM (SELECT FROM hot WHERE k = 3 FOR NO KEY UPDATE) l;
SAVEPOINT s;
SELECT count(*) FROM (SELECT FROM hot WHERE k IN (3, 4) FOR SHARE) l;
UPDATE hot SET v = 1 WHERE k = 4;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');
ROLLBACK TO s;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');
COMMIT;
SELECT agrees('SELECT k, @count(*), @sum(v) FROM hot GROUP BY k');

-- A scan of a large table may start in its middle, and wrap around: a table of more than a quarter of
-- shared_buffers, of which an earlier scan read a part.
SHOW synchronize_seqscans;
CREATE TABLE large (id int, k int, filler text);
ALTER TABLE large ALTER filler SET STORAGE PLAIN;
DO $$
BEGIN
    EXECUTE format('INSERT INTO large SELECT i, i %% 3, repeat(''x'', 3900) FROM generate_series(1, %s) i',
        (SELECT setting::int / 2 + 200 FROM pg_settings WHERE name = 'shared_buffers'));
END $$;
SELECT pg_relation_size('large') / 8192 > setting::int / 4 AS large FROM pg_settings WHERE name = 'shared_buffers';
BEGIN;
DECLARE part CURSOR FOR SELECT id FROM large;
MOVE 1500 IN part;
SELECT id > 1 AS elsewhere FROM large LIMIT 1;
SELECT agrees('SELECT k, @count(*), @sum(id), @min(id), @max(id) FROM large GROUP BY k');
SELECT n = total AS once FROM (SELECT gpu_count(*) AS n FROM large) a, (SELECT count(DISTINCT id) AS total FROM large) b;
COMMIT;
DROP TABLE large;
