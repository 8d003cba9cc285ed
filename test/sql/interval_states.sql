-- Sums and averages of intervals, whose states are the extension's own before PostgreSQL 17: answers are core's.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include
SET gpuagg.engine = 'cpu';

CREATE TABLE spans AS
SELECT i, i % 50 AS k, CASE WHEN i % 7 > 0 THEN make_interval(months => i % 13 - 6, days => i % 37, secs => i * 1.7) END AS iv
FROM generate_series(1, 20000) i;
INSERT INTO spans SELECT i, 50, NULL FROM generate_series(1, 3) i;
ANALYZE spans;

SET max_parallel_workers_per_gather = 0;
SELECT pg_temp.same('SELECT k, @sum(iv), @avg(iv), @count(iv) FROM spans GROUP BY k');
SELECT pg_temp.same('SELECT @sum(iv), @avg(iv) FROM spans');
SELECT pg_temp.same('SELECT @sum(iv), @avg(iv) FROM spans WHERE k = 50');
SELECT pg_temp.same('SELECT @sum(iv) FILTER (WHERE i % 3 = 0), @avg(iv) FILTER (WHERE i % 5 = 0) FROM spans WHERE i < 1000');
SET work_mem = '64kB';
SELECT pg_temp.same('SELECT i / 2, @sum(iv), @avg(iv) FROM spans GROUP BY i / 2');
RESET work_mem;
-- moving frames; some are empty or have no values
SELECT count(*) FROM (
	SELECT i, gpu_sum(iv) OVER w, gpu_avg(iv) OVER w FROM spans WINDOW w AS (PARTITION BY k ORDER BY i ROWS BETWEEN 5 PRECEDING AND 3 PRECEDING)
	EXCEPT ALL
	SELECT i, sum(iv) OVER w, avg(iv) OVER w FROM spans WINDOW w AS (PARTITION BY k ORDER BY i ROWS BETWEEN 5 PRECEDING AND 3 PRECEDING)) d;
-- partial states of several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same('SELECT k, @sum(iv), @avg(iv) FROM spans GROUP BY k');
SET gpuagg.enabled = off;
EXPLAIN (COSTS OFF) SELECT gpu_sum(iv), gpu_avg(iv) FROM spans;
SELECT gpu_sum(iv) = sum(iv) AND gpu_avg(iv) = avg(iv) AS same FROM spans;
RESET gpuagg.enabled;
RESET max_parallel_workers_per_gather;
-- an overflow is an error as in core
SELECT gpu_sum(iv) FROM (VALUES (interval '178000000 years'), ('178000000 years')) v(iv);
SELECT gpu_avg(iv) OVER (ORDER BY iv ROWS 1 PRECEDING) FROM (VALUES (interval '178000000 years'), ('178000000 years')) v(iv);
DROP TABLE spans;
