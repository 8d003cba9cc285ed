-- parallel plans in which a participant without rows merges the groups of all participants
SET gpuagg.cache = off;
SET gpuagg.replace_builtin = on;
CREATE TABLE rp AS SELECT i % 5000 AS id, i % 7 AS k, (i % 1000)::float8 AS f, (i % 13)::text AS s FROM generate_series(1, 10000) i;
CREATE TABLE rp_slow AS SELECT * FROM rp LIMIT 1;
VACUUM ANALYZE rp, rp_slow;
-- one participant reads it, and meanwhile no other rows
ALTER TABLE rp_slow SET (parallel_workers = 0);
-- true for no row, and slow
CREATE FUNCTION rp_late(id int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 AS $$
BEGIN
	PERFORM pg_sleep(0.3);
	RETURN id < 0;
END $$;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same_as_core(format(q, '(SELECT * FROM rp UNION ALL SELECT * FROM rp_slow WHERE rp_late(id)) x')), q FROM unnest(ARRAY[
	'SELECT id, count(DISTINCT k), sum(k) FROM %s GROUP BY id',
	'SELECT id, percentile_cont(0.2) WITHIN GROUP (ORDER BY f), count(DISTINCT k) FROM %s GROUP BY id',
	'SELECT id, percentile_disc(0.2) WITHIN GROUP (ORDER BY s), count(*) FROM %s GROUP BY id',
	'SELECT id, k, count(*), sum(f::int) FROM %s GROUP BY CUBE (id, k)',
	'SELECT id, k, count(DISTINCT s) FROM %s GROUP BY ROLLUP (id, k)']) q;

-- all participants have rows, and export groups of several engines
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT sum(c), sum(s) FROM (SELECT k, count(DISTINCT id) AS c, sum(id) AS s FROM rp GROUP BY k) x',
	'SELECT s, count(DISTINCT id), sum(id), percentile_cont(0.2) WITHIN GROUP (ORDER BY f) FROM rp GROUP BY s',
	'SELECT k, s, count(*) FROM rp GROUP BY GROUPING SETS ((k), (s))']) q;

DROP TABLE rp, rp_slow;
DROP FUNCTION rp_late;
