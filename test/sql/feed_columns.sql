-- Values that a decimal column cannot represent, as constants and in rows, together with long values that fill a
-- batch's memory many times. Both feeds must store them correctly.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE columns_input AS
SELECT i, i % 5 AS g, repeat('d', 8 + (i / 4096) * 6 % 60) AS txt,
       CASE WHEN i % 1000 = 7 THEN 'NaN' ELSE i::numeric(10, 2) END::numeric(10, 2) AS d
FROM generate_series(1, 40000) i;
CREATE FUNCTION pg_temp.agrees(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	core text;
	feed text;
BEGIN
	SET LOCAL gpuagg.require = 'forbid';
	EXECUTE 'SELECT string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C") FROM (' || replace(q, '@', '') || ') s' INTO core;
	SET LOCAL gpuagg.require = 'require';
	FOREACH feed IN ARRAY ARRAY['auto', 'tuples'] LOOP
		PERFORM set_config('gpuagg.feed', feed, true);
		EXECUTE 'SELECT string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C") FROM (' || replace(q, '@', 'gpu_') || ') s' INTO answer;
		IF answer IS DISTINCT FROM core THEN
			RETURN format(E'%s\n%s: %s\ncore: %s', q, feed, answer, core);
		END IF;
	END LOOP;
	RETURN split_part(core, chr(10), 1);
END $$;
SELECT pg_temp.agrees(q) FROM unnest(ARRAY[
	$$SELECT g, @sum('NaN'::numeric(10,2)), left(@max(txt), 3) FROM columns_input GROUP BY g$$,
	$$SELECT g, @sum(123456789012345678901234567890.25::numeric(40,2)), left(@max(txt), 3) FROM columns_input GROUP BY g$$,
	$$SELECT g, @avg((SELECT 'NaN'::numeric(10,2))), left(@max(txt), 3) FROM columns_input GROUP BY g$$,
	$$SELECT g, @sum((SELECT max(d) FROM columns_input)::numeric(10,2)), left(@max(txt), 3) FROM columns_input GROUP BY g$$,
	$$SELECT g, @min(NULL::numeric(10,2)), @count(NULL::numeric(10,2)), left(@max(txt), 3) FROM columns_input GROUP BY g$$,
	$$SELECT g, @sum(d), @avg(d), @count(d), left(@max(txt), 3) FROM columns_input GROUP BY g$$,
	$$SELECT 'NaN'::numeric(10,2) AS k, @sum(2.50::numeric(10,2)), @max('constant'::text), left(@max(txt), 3) FROM columns_input GROUP BY 1$$,
	$$SELECT b.i, (SELECT @sum(v) FROM (SELECT b.d AS v FROM columns_input c WHERE c.i < 100 + b.i) s) FROM columns_input b WHERE i IN (6, 7, 8)$$]) q;
-- variables of PL/pgSQL, in custom and generic plans
CREATE FUNCTION pg_temp.variable(v numeric(10,2)) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	SELECT string_agg(s::text, ' ' ORDER BY s.g) INTO result
	FROM (SELECT g, gpu_sum(v::numeric(10,2)) AS v, left(gpu_max(txt), 1) AS t FROM columns_input GROUP BY g) s;
	RETURN result;
END $$;
SET gpuagg.require = 'require';
SET plan_cache_mode = force_generic_plan;
SELECT pg_temp.variable('NaN'), pg_temp.variable(0.25);
SET gpuagg.feed = 'tuples';
SELECT pg_temp.variable('NaN'), pg_temp.variable(0.25);
RESET gpuagg.feed;
RESET plan_cache_mode;

-- Batches that end by bytes, in the middle of pages and columns.
RESET gpuagg.require;
CREATE TABLE columns_wide AS
SELECT i % 11 AS g, i AS v,
       CASE WHEN i % 13 > 0 THEN repeat(md5((i % 50)::text), 1 + i % 40 * (i % 40) * 2) END AS a,
       CASE WHEN i % 7 > 0 THEN repeat(md5((i % 30)::text), 1 + i % 9 * 500) END AS b
FROM generate_series(1, 900) i;
SELECT pg_temp.agrees(q) FROM unnest(ARRAY[
	$$SELECT md5(a) AS a, @count(*), @sum(v), md5(@max(b)), @count(b) FROM columns_wide GROUP BY columns_wide.a$$,
	$$SELECT g, md5(@max(a || 'x')), md5(@min(b || g)), @sum(length(a || b)), @count(a || b) FROM columns_wide GROUP BY g$$,
	$$SELECT md5(a) AS a, @count(*), @sum(v) FROM columns_wide WHERE upper(b) LIKE 'A%' OR v % 3 = 0 GROUP BY columns_wide.a$$,
	$$SELECT md5(u) AS a, @count(*), @sum(v) FROM (SELECT a || b AS u, v FROM columns_wide WHERE md5(a) > 'c' OFFSET 0) s GROUP BY u$$,
	$$SELECT g, md5(@max(CASE WHEN v % 2 = 0 THEN upper(a) ELSE repeat(b, 3) END)) FROM columns_wide GROUP BY g$$]) q;
SET work_mem = '64kB';
SELECT pg_temp.agrees($$SELECT md5(a) AS a, g, @count(*), @sum(v), md5(@max(b)) FROM columns_wide GROUP BY columns_wide.a, g$$);
RESET work_mem;
-- rows removed by a filter are counted once, even if some are evaluated again
CREATE FUNCTION pg_temp.removed() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT g, gpu_max(a || b) FROM columns_wide WHERE v % 3 > 0 GROUP BY g' LOOP
		IF line ~ 'Removed' THEN
			RETURN line;
		END IF;
	END LOOP;
END $$;
SET gpuagg.require = 'require';
SELECT pg_temp.removed();
RESET gpuagg.require;
DROP TABLE columns_input, columns_wide;
