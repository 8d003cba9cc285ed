-- With a LIMIT and without ORDER BY, a query that has only keys reads rows until it has enough groups.
SET gpuagg.require = 'require';
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET gpuagg.batch_rows = 64;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE firsts AS SELECT i % 1000 AS k, 'text ' || i % 7 AS t, i AS v FROM generate_series(1, 50000) i;
VACUUM ANALYZE firsts;
-- the number of rows that were read
CREATE FUNCTION read(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	rows int;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		rows := coalesce(rows, substring(line FROM 'Input Rows: (\d+)')::int);
	END LOOP;
	RETURN CASE WHEN rows IS NULL THEN 'not taken' WHEN rows < 5000 THEN 'few' WHEN rows < 50000 THEN rows::text ELSE 'all' END;
END $$;
SELECT read('SELECT DISTINCT k FROM firsts LIMIT 10'), read('SELECT k FROM firsts GROUP BY k LIMIT 10'), read('SELECT DISTINCT t, k FROM firsts LIMIT 20 OFFSET 30');
SELECT count(*), count(DISTINCT k) FROM (SELECT DISTINCT k FROM firsts LIMIT 10) s;
SELECT count(*), count(DISTINCT k) FROM (SELECT DISTINCT k FROM firsts LIMIT 10 OFFSET 995) s;
SELECT count(*) FROM (SELECT DISTINCT t FROM firsts LIMIT 10) s;
SELECT count(*) FROM (SELECT DISTINCT k FROM firsts LIMIT 0) s;
-- all rows are read: more groups wanted than exist, no LIMIT, an order, aggregates, HAVING, window functions, functions with effects
SELECT read('SELECT DISTINCT t FROM firsts LIMIT 10'), read('SELECT DISTINCT k FROM firsts LIMIT NULL'), read('SELECT DISTINCT k FROM firsts ORDER BY k LIMIT 10'),
	read('SELECT k, count(*) FROM firsts GROUP BY k LIMIT 10'), read('SELECT k FROM firsts GROUP BY k HAVING sum(v) > 0 LIMIT 10'),
	read('SELECT DISTINCT k FROM firsts WHERE random() >= 0 LIMIT 10');
-- rows that a subquery locks
BEGIN;
SELECT read('SELECT DISTINCT k FROM (SELECT k FROM firsts FOR UPDATE) s LIMIT 10'), read('WITH w AS MATERIALIZED (SELECT k FROM firsts FOR SHARE) SELECT DISTINCT k FROM w LIMIT 10');
ROLLBACK;
-- parameters, and rescans with others
PREPARE p(int) AS SELECT count(*) FROM (SELECT DISTINCT k FROM firsts LIMIT $1) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(3);
EXECUTE p(2000);
RESET plan_cache_mode;
SET enable_material = off;
SET enable_memoize = off;
SELECT g, (SELECT count(*) FROM (SELECT DISTINCT k FROM firsts WHERE v > g LIMIT g * 100) s) FROM generate_series(0, 12, 4) g;
-- a parallel plan reads all rows
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), count(DISTINCT k) FROM (SELECT DISTINCT k FROM firsts LIMIT 10) s;
DROP FUNCTION read;
DROP TABLE firsts;
