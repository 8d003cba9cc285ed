-- Participants of a parallel plan exchange many groups whose keys are Datums: as rows and values in shared memory, without
-- temporary files, and as records in files if one participant's memory is exceeded.
SET gpuagg.cache = eager;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET jit = off;
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_gathermerge = off;
CREATE COLLATION gpuagg_caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
-- a key of each kind: short and long text, with trailing spaces, of fixed length, by value, numerics that look different, arrays
CREATE TABLE valued AS SELECT i AS v, nullif(i % 90011, 7)::text AS t, repeat(chr(97 + i % 26), 150 + i % 3) || i % 30011 AS long,
	(i % 90001)::text::char(10) AS padded, ('n' || i % 40009)::name AS named, md5((i % 80021)::text)::uuid AS u,
	round((i % 70001)::numeric / 7, 1 + i % 3) AS n, ARRAY[i % 60013, NULL, i % 3] AS a, ('0/' || to_hex(i % 70001))::pg_lsn AS lsn,
	chr(65 + i % 2 * 32) || i % 80021 AS caseless, make_interval(days => i % 70001 / 24, hours => i % 70001 % 24) AS span, (i % 5)::int2 AS s,
	('-0'::float8 * (i % 2) + i % 11) AS f, nullif(repeat('x', i % 6), 'xxx') AS few, round((i % 7)::numeric, i % 3) AS fewn
FROM generate_series(1, 150000) i;
ALTER TABLE valued ALTER caseless TYPE text COLLATE gpuagg_caseless;
ALTER TABLE valued SET (parallel_workers = 3);
VACUUM ANALYZE valued;
CREATE AGGREGATE own_sum(bigint) (sfunc = int8pl, stype = bigint, combinefunc = int8pl, initcond = 0, parallel = safe);
CREATE TABLE shared_queries (name text, query text);
INSERT INTO shared_queries VALUES
	('text', 'SELECT t, count(*), sum(v), min(v) FROM valued GROUP BY t'),
	('long text', 'SELECT long, max(v) FROM valued GROUP BY long'),
	('text and numbers', 'SELECT t, s, f = 0, f, count(*), avg(v) FROM valued GROUP BY t, s, f'),
	('bpchar', 'SELECT padded, count(*) FROM valued GROUP BY padded'),
	('name and uuid', 'SELECT named, u, count(*) FROM valued GROUP BY named, u'),
	('numeric', 'SELECT round(n, 3), count(*), sum(v) FROM valued GROUP BY n'),
	('numeric and text', 'SELECT round(n, 3), t, count(*) FROM valued GROUP BY n, t'),
	('array', 'SELECT a, count(*) FROM valued GROUP BY a'),
	('caseless', 'SELECT lower(caseless), count(*), sum(v) FROM valued GROUP BY caseless'),
	('interval and lsn', 'SELECT span, lsn, count(*), stddev(v) FROM valued GROUP BY span, lsn'),
	('distinct text', 'SELECT s, count(DISTINCT t), count(DISTINCT long) FROM valued GROUP BY s'),
	('few values', 'SELECT v % 90007, few, round(fewn, 2), count(*), sum(v) FROM valued GROUP BY v % 90007, few, fewn'),
	('sets', 'SELECT t, s, count(*) FROM valued GROUP BY GROUPING SETS ((t, s), (t), (s))'),
	('percentile', 'SELECT t, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM valued GROUP BY t'),
	('own aggregate', 'SELECT t, s, own_sum(v), gpu_histogram(v, 0, 150000, 2) FROM valued GROUP BY t, s'),
	('histogram', 'SELECT t, gpu_histogram(v, 0, 150000, 4) FROM valued GROUP BY t');
CREATE FUNCTION results(names text DEFAULT '') RETURNS TABLE (name text, n bigint, sum text) LANGUAGE plpgsql AS $$
DECLARE q record;
BEGIN
	FOR q IN SELECT * FROM shared_queries s WHERE s.name ~ names LOOP
		RETURN QUERY EXECUTE format('SELECT %L, count(*), sum(hashtextextended(x::text, 0)::numeric)::text FROM (%s) x', q.name, q.query);
	END LOOP;
END $$;
SET gpuagg.enabled = off;
CREATE TABLE shared_wanted AS SELECT * FROM results();
SET gpuagg.enabled = on;
SET gpuagg.require = 'require';
SET work_mem = '64MB';
SELECT name, n FROM (SELECT * FROM results() INTERSECT SELECT * FROM shared_wanted) s ORDER BY 1;
SET work_mem = '1MB';
SELECT name, n FROM (SELECT * FROM results() EXCEPT SELECT * FROM shared_wanted) s ORDER BY 1;
SET work_mem = '64kB';
SELECT name, n FROM (SELECT * FROM results('text|array') EXCEPT SELECT * FROM shared_wanted) s ORDER BY 1;
-- with memory enough, no temporary file is written
SET work_mem = '64MB';
-- waits, so that other participants start before one has read all rows
CREATE FUNCTION pause(v int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	PERFORM pg_sleep(current_setting('test.wait')::float8);
	RETURN v > 0;
END $$;
CREATE FUNCTION merged(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	parts bool := false;
	files bool := false;
BEGIN
	FOR try IN 0 .. 5 LOOP
		PERFORM set_config('test.wait', (0.03 * 2 ^ try)::text, false);
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ' ||
			replace(query, 'FROM valued', 'FROM valued WHERE CASE WHEN v % 10000 = 0 THEN pause(v) ELSE true END') LOOP
			parts := parts OR line LIKE '%Merged Parts:%';
			files := files OR line LIKE '%temp written%';
		END LOOP;
		EXIT WHEN parts;
	END LOOP;
	RETURN CASE WHEN parts THEN 'in partitions' ELSE 'by one' END || CASE WHEN files THEN ', with files' ELSE '' END;
END $$;
SELECT name, merged(query) FROM shared_queries ORDER BY 1;
-- a LIMIT ends the scan in the middle of a partition
SELECT count(*) FROM (SELECT t, long, count(*) FROM valued GROUP BY t, long LIMIT 3) x;
SELECT g, (SELECT count(*) FROM (SELECT t, count(*) AS c FROM valued WHERE v % 9 <> g GROUP BY t LIMIT 1000) x WHERE c >= 0) AS n
FROM generate_series(1, 3) g;
DROP FUNCTION merged, pause, results;
DROP AGGREGATE own_sum(bigint);
DROP TABLE valued, shared_queries, shared_wanted;
DROP COLLATION gpuagg_caseless;
