-- The aggregates work as ordinary ones: windows, DISTINCT, ORDER BY, grouping sets, core's parallel plans, views and
-- prepared statements.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

-- plainly(query): compares core's answer with that of the plain aggregates
CREATE FUNCTION pg_temp.plainly(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	core text := pg_temp.answer(replace(query, '@', ''), 'allow', false);
	ours text := pg_temp.answer(replace(query, '@', 'gpu_'), 'allow', false);
BEGIN
	RETURN CASE WHEN core = ours THEN 'same: ' || split_part(core, E'\n', 1)
		ELSE format(E'DIFFERENT\ncore %s\nplain %s', core, ours) END;
END $$;

CREATE TEMP TABLE t AS
SELECT i, i % 5 AS k, nullif(i * 7919 % 211, 3)::int2 AS s, nullif(i * 7919 % 2003, 5) AS n, nullif(i % 17, 0)::int8 AS b,
	(i % 16) / 4.0::float8 AS d, nullif(i % 23, 0)::numeric(10, 2) AS c, (i % 7) * interval '1 hour' AS iv,
	(i % 9)::numeric::money AS mo, 'x' || i % 13 AS tx, i % 3 = 0 AS bo
FROM generate_series(1, 400) i;

-- growing frames, and moving frames, for which inverse transition functions are used
SELECT frame, list, pg_temp.plainly(format('SELECT i, %s FROM t WINDOW w AS (PARTITION BY k ORDER BY i %s)', list, frame))
FROM (VALUES ('ROWS UNBOUNDED PRECEDING'), ('ROWS BETWEEN 7 PRECEDING AND 3 FOLLOWING'),
		('ROWS BETWEEN 7 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW'), ('RANGE BETWEEN 20 PRECEDING AND CURRENT ROW')) f(frame),
	(VALUES ('@count(*) OVER w, @count(n) OVER w'), ('@sum(s) OVER w, @sum(n) OVER w, @sum(b) OVER w, @sum(c) OVER w, @sum(d) OVER w, @sum(iv) OVER w, @sum(mo) OVER w'),
		('@avg(s) OVER w, @avg(n) OVER w, @avg(b) OVER w, @avg(c) OVER w, @avg(iv) OVER w'),
		('@min(n) OVER w, @max(tx) OVER w, @bool_and(bo) OVER w, @bool_or(bo) OVER w, @every(bo) OVER w'),
		('@stddev(n) OVER w, @variance(s) OVER w, @var_pop(b) OVER w, @stddev_pop(c) OVER w'),
		('@regr_slope(d, n) OVER w, @corr(d, n) OVER w, @bit_or(n) OVER w')) l(list);
-- a window over groups
SELECT pg_temp.plainly('SELECT k, @sum(@sum(n)) OVER (ORDER BY k), @count(*) FROM t GROUP BY k');

SELECT pg_temp.plainly('SELECT k, @count(DISTINCT n), @sum(DISTINCT b), @avg(DISTINCT c), @max(DISTINCT tx) FROM t GROUP BY k');
SELECT pg_temp.plainly('SELECT k, @sum(n ORDER BY i DESC), @min(tx ORDER BY tx) FROM t GROUP BY k');
SELECT pg_temp.plainly('SELECT k, bo, @sum(n), @count(*), grouping(k, bo) FROM t GROUP BY ROLLUP (k, bo)');
SELECT pg_temp.plainly('SELECT k, bo, @avg(c), @max(tx) FROM t GROUP BY CUBE (k, bo)');
SELECT pg_temp.plainly('SELECT k, bo, @avg(d) FROM t GROUP BY GROUPING SETS ((k), (bo), ())');

-- min and max use an index as in core
CREATE INDEX ON t (n);
SET enable_seqscan = off;
SET gpuagg.require = forbid;
CREATE FUNCTION pg_temp.plan_has(query text, what text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line LIKE '%' || what || '%' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT pg_temp.plan_has('SELECT gpu_min(n), gpu_max(n) FROM t', 'Index Only Scan Backward');
SELECT gpu_min(n) = min(n), gpu_max(n) = max(n) FROM t;
RESET enable_seqscan;
RESET gpuagg.require;

-- partial aggregation by core
CREATE TABLE par AS SELECT t.* FROM t, generate_series(1, 50);
ANALYZE par;
ALTER TABLE par SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0.1;
SET min_parallel_table_scan_size = 0;
SET gpuagg.enabled = off;
SELECT pg_temp.plan_has('SELECT k, gpu_sum(b), gpu_histogram(d, 0, 4, 8) FROM par GROUP BY k', 'Partial');
SELECT list, pg_temp.plainly(format('SELECT k, %s FROM par GROUP BY k', list))
FROM (VALUES ('@count(*), @sum(s), @sum(n), @sum(b), @sum(c), @sum(iv), @sum(mo)'), ('@avg(s), @avg(n), @avg(b), @avg(c), @avg(d), @avg(iv)'),
	('@stddev(n), @variance(b), @var_pop(c), @stddev_pop(d)'), ('@regr_count(d, n), @bit_xor(n), @bool_or(bo), @min(tx), @max(iv)')) l(list);
SELECT k, gpu_histogram(d, 0, 4, 4), gpu_histogram(d, 0, 4, 4, 0.5), gpu_histogram(d, ARRAY[1, 2, 3.5]) FROM par GROUP BY k ORDER BY k;
RESET gpuagg.enabled;
RESET parallel_setup_cost;
DROP TABLE par;

-- views and prepared statements
CREATE TEMP VIEW v AS SELECT k, gpu_sum(n) AS total FROM t GROUP BY k;
SELECT count(*) FROM v JOIN (SELECT k, sum(n) AS total FROM t GROUP BY k) c USING (k, total);
PREPARE p(int) AS SELECT gpu_sum(n) = (SELECT sum(n) FROM t WHERE i > $1) FROM t WHERE i > $1;
EXECUTE p(0);
EXECUTE p(300);
