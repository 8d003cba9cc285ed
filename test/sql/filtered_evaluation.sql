-- Expressions that core does not evaluate for rows which a FILTER removes, or without rows: arguments, ORDER BY
-- inside aggregates, bounds of histograms, subqueries.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
-- since release 16 a sort below core's aggregation may evaluate expressions before the filters
SELECT count(set_config(name, 'off', false)) < 2 AS set FROM pg_settings WHERE name = 'enable_presorted_aggregate';
CREATE TABLE filtered AS
SELECT i, i * 7 % 101 AS a, i % 4 AS y, (i % 4)::float8 AS x, i % 2 AS g, i * 37 % 101 - 50 AS n FROM generate_series(1, 100) i;
-- Returns the answer or error of the plain aggregates, if both feeds of the custom scan and a sort below it agree.
CREATE FUNCTION pg_temp.answer(q text, require text, feed text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('gpuagg.require', require, true), set_config('gpuagg.feed', feed, true);
	EXECUTE 'SELECT string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C") FROM (' || q || ') s' INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
CREATE FUNCTION pg_temp.agrees(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plain text := pg_temp.answer(q, 'forbid', 'auto');
	heap text := pg_temp.answer(q, 'require', 'auto');
	tuples text := pg_temp.answer(q, 'require', 'tuples');
BEGIN
	IF heap IS DISTINCT FROM plain OR tuples IS DISTINCT FROM plain THEN
		RETURN format(E'%s\nplain: %s\nheap: %s\ntuples: %s', q, plain, heap, tuples);
	END IF;
	RETURN plain;
END $$;

-- arguments
SELECT pg_temp.agrees(q) FROM unnest(ARRAY[
	'SELECT gpu_sum(12 / y) FILTER (WHERE y <> 0), gpu_sum(12 / y) FILTER (WHERE y > 1) FROM filtered',
	'SELECT g, gpu_argmax(12 / y, a) FILTER (WHERE y <> 0), gpu_count(12 / y) FILTER (WHERE y > 1) FROM filtered GROUP BY g',
	'SELECT gpu_sum((SELECT 1 / (count(*) - 100) FROM filtered)) FILTER (WHERE y > 3) FROM filtered',
	'SELECT gpu_sum((SELECT 1 / (count(*) - 100) FROM filtered)::int4) FILTER (WHERE y > 3), gpu_count(*) FROM filtered',
	'SELECT gpu_sum((SELECT 1 / (count(*) - 100) FROM filtered)) FILTER (WHERE y > 2) FROM filtered',
	'SELECT gpu_sum((SELECT 1 / (count(*) - 100) FROM filtered)) FROM filtered WHERE y > 3',
	'SELECT gpu_sum((SELECT count(*) FROM filtered)) FILTER (WHERE y > 2), gpu_max((SELECT max(a) FROM filtered)) FROM filtered']) q;

-- leakproof functions that fail because they need a collation
CREATE COLLATION filtered_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE collated (i int, a text COLLATE "C", b text COLLATE "POSIX", n text COLLATE filtered_nocase);
INSERT INTO collated SELECT i, 'a' || i, 'b' || i, 'c' || i FROM generate_series(1, 10) i;
SELECT pg_temp.agrees(replace('SELECT gpu_bool_or(X) FILTER (WHERE i < 0), gpu_bool_or(X) FILTER (WHERE i > 9) FROM collated', 'X', x))
FROM unnest('{a = b,a < b,"starts_with(n, i::text)","starts_with(n, ''c'')","greatest(a, b) IS NULL","a = ANY (ARRAY[''x'', b])","n = ''C10''"}'::text[]) x;
SELECT pg_temp.agrees(replace('SELECT gpu_bool_or(X) FILTER (WHERE i < 0) FROM collated', 'X', x))
FROM unnest('{a = b,a < b,"starts_with(n, ''c'')","greatest(a, b) IS NULL","a = ANY (ARRAY[''x'', b])","n = ''C10''"}'::text[]) x;
SELECT pg_temp.agrees('SELECT gpu_count(*) FROM collated WHERE ' || x)
FROM unnest('{a = b,a <> b,a IS DISTINCT FROM b,"nullif(a, b) IS NULL","a IN (''x'', b)","starts_with(a, ''q'') AND a = b"}'::text[]) x;
DROP TABLE collated;
DROP COLLATION filtered_nocase;

-- ORDER BY: one filter, the same filter, several filters, one aggregate without a filter
SELECT pg_temp.agrees(q) FROM unnest(ARRAY[
	'SELECT gpu_longest_run(a % 2 = 0 ORDER BY 12 / y, i) FILTER (WHERE y <> 0) FROM filtered',
	'SELECT gpu_longest_run(a % 2 = 0 ORDER BY (12 / y)::numeric DESC, i) FILTER (WHERE y <> 0) FROM filtered',
	'SELECT g, gpu_longest_run(12 / y > 4 ORDER BY 12 / y, i) FILTER (WHERE y <> 0) FROM filtered GROUP BY g',
	'SELECT g, gpu_longest_run(a > 40 ORDER BY 100 / n, i) FILTER (WHERE n <> 0),
		gpu_longest_run(a > 20 ORDER BY 100 / n, i) FILTER (WHERE n > 0),
		gpu_longest_run(a > 30 ORDER BY 100 / n, i) FILTER (WHERE n < 0) FROM filtered GROUP BY g',
	'SELECT gpu_longest_run(a > 40 ORDER BY 100 / n, i) FILTER (WHERE n > 0), gpu_longest_run(a > 20 ORDER BY 100 / n, i) FILTER (WHERE n < 0),
		gpu_longest_run(a > 30 ORDER BY 100 / n, i) FILTER (WHERE NULL) FROM filtered',
	'SELECT gpu_longest_run(a > 40 ORDER BY 100 / n, i) FILTER (WHERE n > 0), gpu_longest_run(a > 20 ORDER BY 100 / n, i) FROM filtered',
	'SELECT gpu_longest_run(a > 40 ORDER BY 100 / n, i) FILTER (WHERE n > 0), gpu_longest_run(a > 20 ORDER BY 100 / n, i) FILTER (WHERE n < 1) FROM filtered',
	'SELECT gpu_longest_ascending_run(a ORDER BY i, 12 / y) FILTER (WHERE y <> 0), gpu_longest_run(a > 20 ORDER BY i) FROM filtered',
	'SELECT gpu_max_subarray_sum(n ORDER BY i, 12 / y) FILTER (WHERE y <> 0), gpu_max_subarray_sum(n ORDER BY i) FILTER (WHERE 12 / (y + 1) > 3) FROM filtered',
	'SELECT g, gpu_longest_run(a > 40 ORDER BY (SELECT 1 / (count(*) - 100) FROM filtered), i) FILTER (WHERE y > 3) FROM filtered GROUP BY g']) q;
-- each aggregate has its own sort, because it must not evaluate another's expressions; the condition fails, in core too
SET gpuagg.require = 'require';
SELECT gpu_longest_run(a > 40 ORDER BY 12 / y) FILTER (WHERE y > 0), gpu_longest_run(a > 40 ORDER BY 12 / g) FILTER (WHERE g > 0)
FROM filtered WHERE 12 / y = 12 / g;
RESET gpuagg.require;

-- the bounds of histograms, evaluated in core's order
SELECT pg_temp.agrees(q) FROM unnest(ARRAY[
	$$SELECT gpu_histogram(x, 0, current_setting('nope.nope')::float8, 10) FROM filtered WHERE false$$,
	$$SELECT g, gpu_histogram(x, 0, current_setting('nope.nope')::float8, 10) FROM filtered WHERE i > 100 GROUP BY g$$,
	$$SELECT gpu_histogram(x, 0, current_setting('nope.nope')::float8, 10) FILTER (WHERE x > 3) FROM filtered$$,
	$$SELECT gpu_histogram(x, 0, current_setting('nope.nope')::float8, 10) FILTER (WHERE x > 2) FROM filtered$$,
	$$SELECT gpu_histogram(x, 0, current_setting('work_mem')::float8, 10) FROM filtered WHERE x > 3$$,
	$$SELECT gpu_histogram(x, string_to_array(current_setting('nope.nope'), ',')::float8[]) FROM filtered WHERE x > 3$$,
	$$SELECT gpu_histogram(x, 0, current_setting('nope.nope')::float8, 10, x) FROM filtered WHERE x > 3$$,
	$$SELECT gpu_histogram(x, 0, 4 + length(current_setting('gpuagg.engine')), 3) FROM filtered$$]) q;
PREPARE bounds(float8, int, numeric) AS
SELECT gpu_histogram(x, 0, $1, $2), gpu_histogram(x, ARRAY[$1, $1 + 1]), gpu_histogram(x, 0, $3::float8, 2) FROM filtered WHERE x < $1;
SET gpuagg.require = 'require';
EXECUTE bounds(4, 2, 4);
SET plan_cache_mode = force_generic_plan;
EXECUTE bounds(4, 2, 4);
-- without rows, bounds that are out of range are no error
EXECUTE bounds(0, 0, 1e400);
EXECUTE bounds(1, 1, 1e400);
RESET plan_cache_mode;
RESET gpuagg.require;
DROP TABLE filtered;
