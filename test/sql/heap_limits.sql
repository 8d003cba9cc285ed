-- LIMIT without ORDER BY between a scan and the aggregates: the first rows in the table's order, as in core.
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET synchronize_seqscans = off;
CREATE TABLE limited AS SELECT i, nullif(i % 7, 3) AS k, i % 1000 AS v, repeat('x', i % 40) || i AS t, (i % 50)::numeric / 4 AS n FROM generate_series(1, 20000) i;
DELETE FROM limited WHERE i % 11 = 0;
VACUUM ANALYZE limited;
-- the answers of core and of the custom scan, and where the latter reads its rows
CREATE FUNCTION both_ways(query text, OUT same text, OUT feed text) LANGUAGE plpgsql AS $$
DECLARE
	core text;
	line text;
BEGIN
	SET LOCAL gpuagg.enabled = off;
	EXECUTE format('SELECT string_agg(s::text, '';'' ORDER BY s::text) FROM (%s) s', query) INTO core;
	SET LOCAL gpuagg.enabled = on;
	SET LOCAL gpuagg.require = 'require';
	EXECUTE format('SELECT string_agg(s::text, '';'' ORDER BY s::text) FROM (%s) s', query) INTO same;
	same := CASE WHEN same = core THEN 'same: ' || left(core, 40) ELSE core || ' <> ' || same END;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Feed:' THEN
			feed := trim(line);
			RETURN;
		END IF;
	END LOOP;
END $$;
SELECT n, (both_ways(format('SELECT count(*), sum(v), min(i), max(i), count(k), max(t), sum(n) FROM (SELECT * FROM limited LIMIT %s) s', n))).*
FROM unnest('{0,1,63,64,65,1000,4095,4096,4097,18000,18181,18182,1000000}'::int[]) n;
SELECT n, (both_ways(format('SELECT k, count(*), sum(v), max(t) FROM (SELECT * FROM limited WHERE v > 500 LIMIT %s) s GROUP BY k', n))).*
FROM unnest('{1,100,5000,100000}'::int[]) n;
SELECT (both_ways('SELECT count(*) FROM (SELECT i FROM limited LIMIT 777) s')).*;
SELECT (both_ways('SELECT min(i), max(i), count(*) FROM (SELECT i FROM limited LIMIT 10000) s')).*;
SELECT (both_ways('SELECT count(*), sum(v) FROM (SELECT * FROM limited LIMIT NULL) s')).*;
SELECT (both_ways('SELECT count(*), sum(v) FROM (SELECT * FROM limited LIMIT (SELECT 500)) s')).*;
SELECT (both_ways('SELECT count(*), sum(v) FROM (SELECT * FROM limited LIMIT 500 OFFSET 0) s')).*;
-- limits that the executor must apply
SELECT (both_ways('SELECT count(*), sum(v) FROM (SELECT * FROM limited LIMIT 500 OFFSET 5) s')).*;
SELECT (both_ways('SELECT count(*), sum(w) FROM (SELECT 100 / (v - 600) AS w FROM limited LIMIT 500) s')).*;
SELECT (both_ways('SELECT count(*), sum(v) FROM (SELECT * FROM limited WHERE 1000 / (i - 900) < 5 LIMIT 500) s')).*;
-- from the column cache
SELECT gpuagg_cache_prewarm('limited') > 0 AS cached;
SELECT n, (both_ways(format('SELECT count(*), sum(v), min(i), max(i), count(k), max(t), sum(n) FROM (SELECT * FROM limited LIMIT %s) s', n))).*
FROM unnest('{0,1,64,1000,4097,18181,1000000}'::int[]) n;
SELECT (both_ways('SELECT min(i), max(i), count(*) FROM (SELECT i FROM limited LIMIT 10000) s')).*;
SELECT (both_ways('SELECT min(i), max(v), count(*) FROM (SELECT i, v FROM limited WHERE v >= 0 LIMIT 9999) s')).*;
-- rescans with other limits
SET gpuagg.require = 'require';
SELECT l, (SELECT sum(v) FROM (SELECT v FROM limited LIMIT l) s) FROM unnest('{3,0,5000,NULL,3}'::int[]) l;
SELECT l, (SELECT sum(v) FROM (SELECT v FROM limited WHERE v > l LIMIT 5000) s) FROM unnest('{3,900,5000,3}'::int[]) l;
PREPARE limits(int) AS SELECT count(*), sum(v) FROM (SELECT v FROM limited LIMIT $1) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE limits(100);
EXECUTE limits(0);
EXECUTE limits(-1);
EXECUTE limits(NULL);
SELECT l, s FROM (VALUES (1), (2)) x (l), LATERAL (SELECT sum(v) AS s FROM (SELECT v FROM limited LIMIT -l) s) y;
DROP FUNCTION both_ways;
DROP TABLE limited;
