-- Bounds of a range are evaluated together: core's rows, and core's errors, with NULLs, NaN, bounds that imply one of the two, parameters
SET client_min_messages = warning;
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/answers.sql'
\i :include
CREATE TABLE rq (i int, s smallint, b bigint, f float8, r real, d date, ts timestamptz, n numeric(8, 2), t text, o bool);
INSERT INTO rq SELECT i, i % 100, nullif(i % 7, 3), CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN NULL ELSE i / 8.0 END, i % 9 / 2.0,
	date '2024-01-01' + i / 100, timestamptz '2024-01-01 00:00+00' + i * interval '1 min', i % 777 / 4.0, 'text ' || i % 30, nullif(i % 3, 2) = 1
FROM generate_series(1, 20000) i;
CREATE INDEX ON rq (i);
VACUUM ANALYZE rq;
CREATE TABLE rq_conditions (c text);
INSERT INTO rq_conditions VALUES
	('i BETWEEN 500 AND 15000'), ('i >= 500 AND i < 15000 AND i <> 700'), ('i > 5 AND i < 20000 AND s BETWEEN 3 AND 9'), ('b BETWEEN 1 AND 4'),
	('b >= 2 AND b IS NOT NULL AND b <= 5'), ('f BETWEEN 100 AND 900'), ('f > 100 AND f <= ''NaN'''), ('f < ''NaN'' AND f > ''-Infinity'''), ('r >= 1 AND r < 3.5'),
	('d BETWEEN ''2024-02-01'' AND ''2024-03-31'''), ('d >= ''2024-02-01'' AND d < ''2024-05-01'' AND d <> ''2024-02-29'' AND d <> ''2024-03-01'''),
	('ts >= ''2024-01-03 00:00+00'' AND ts < ''2024-01-09 00:00+00'''), ('ts::date >= ''2024-01-03'' AND ts < ''2024-01-09 00:00+00'''),
	('n BETWEEN 10 AND 90'), ('t BETWEEN ''text 1'' AND ''text 3'''), ('s BETWEEN 20 AND 10'), ('i > 0 AND i < 30000'), ('o AND o IS NOT NULL'), ('o IS NULL AND i BETWEEN 7 AND 9000'),
	-- conditions that fail for rows that another one excludes, in either order
	('i >= 500 AND 1000 / (i - 400) < 9'), ('i > 19000 AND 100 / (i - 300) >= 0 AND i < 19500'), ('100 / (i - 300) >= 0 AND i > 19000'),
	('i + 2147470000 > 0 AND i < 10000'), ('i < 10000 AND i + 2147470000 > 0 AND i > 20'),
	('CASE WHEN i > 10 THEN i END BETWEEN 5 AND 15'), ('i BETWEEN s AND b + 19000'), ('(i, s) > (100, 5) AND i < 9000'), ('i BETWEEN (SELECT 100) AND (SELECT max(s) * 90 FROM rq)'),
	('i BETWEEN 3 AND 4000 AND random() >= 0'), ('b BETWEEN NULL AND 4');
CREATE FUNCTION pg_temp.all_compared(cache text) RETURNS TABLE (c text, compared text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuagg.cache', cache, false);
	RETURN QUERY SELECT q.c, pg_temp.compared(format('SELECT s / 40, count(*), sum(i), count(b), min(d), max(t) FROM rq WHERE %s GROUP BY 1', q.c)) FROM rq_conditions q;
END $$;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET gpuagg.require = 'require';
SELECT * FROM pg_temp.all_compared('off');
SELECT * FROM pg_temp.all_compared('eager') EXCEPT SELECT * FROM pg_temp.all_compared('off');
SELECT * FROM pg_temp.all_compared('eager') EXCEPT SELECT * FROM pg_temp.all_compared('off');
-- the second bound is a condition of an index, and the first one is not
SET enable_seqscan = off;
RESET enable_indexscan;
SELECT * FROM pg_temp.all_compared('off') EXCEPT SELECT * FROM pg_temp.all_compared('eager');
RESET enable_bitmapscan;
SELECT * FROM pg_temp.all_compared('off') EXCEPT SELECT * FROM pg_temp.all_compared('eager');
RESET enable_seqscan;
PREPARE within AS SELECT count(*), sum(s) FROM rq WHERE i BETWEEN $1 AND $2 AND b >= $3;
SET plan_cache_mode = force_generic_plan;
EXECUTE within (10, 5000, 2);
EXECUTE within (10, 50, NULL);
EXECUTE within (NULL, 5000, 2);
RESET gpuagg.require;
DROP TABLE rq, rq_conditions;
