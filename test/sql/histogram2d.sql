-- gpu_histogram2d, its bins as rows, and heat maps.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;

-- rows of x, columns of y, each with a bin before and one after the bounds
SELECT gpu_histogram2d(x, 0, 2, 2, y, 0, 3, 3)
FROM (VALUES (-1.0, 0.0), (0, 0), (0.5, 2.9), (1, 1), (1.9, 3), (2, -1), (NULL, 1), (1, NULL)) v(x, y);
-- descending bounds
SELECT gpu_histogram2d(x, 2, 0, 2, y, 0, 1, 1), gpu_histogram2d(y, 0, 1, 1, x, 2, 0, 2) FROM (VALUES (-1.0, 0.5), (0, 0.5), (2, 0.5), (3, 0.5)) v(x, y);
-- infinities, and NaN, which is greater
SELECT gpu_histogram2d(x, 0, 1, 1, y, 1, 0, 1) FROM (VALUES ('NaN'::float8, 'NaN'::float8), ('Infinity', 'Infinity'), ('-Infinity', '-Infinity')) v(x, y);
-- weights
SELECT gpu_histogram2d(x, 0, 1, 1, y, 0, 1, 1, w) FROM (VALUES (0.5, 0.5, 2.5), (0.5, 0.5, -1), (2, 0.5, 'NaN'::float8), (0.5, 0.5, NULL)) v(x, y, w);
-- no rows, and NULLs
SELECT gpu_histogram2d(x, 0, 1, 1, x, 0, 1, 1), gpu_histogram2d(x, NULL, 1, 1, x, 0, 0, -1), gpu_histogram2d(x, 0, 1, 1, x, 0, 1, 1, x)
FROM (VALUES (NULL::float8)) v(x);

-- compared with width_bucket, as a plain aggregate and in the custom scan
CREATE TABLE pairs AS SELECT i % 7 AS k, nullif((i * 7919::int8 % 100003) / 1000.0 - 10, 0)::float8 AS x, ((i * 31) % 1000)::int4 AS y,
	((i * 17) % 500)::numeric(6, 2) / 4 AS n, (i % 10) / 4.0::float8 AS w, (i % 997)::float4 AS r
FROM generate_series(1, 20000) i;
INSERT INTO pairs SELECT k, CASE k WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' END::float8, CASE WHEN k < 5 THEN k END, k, 1, 'NaN'
FROM generate_series(0, 6) k;
ANALYZE pairs;
-- the array of a group's counts, and that of its weights
CREATE FUNCTION pg_temp.grid(query text, nx int, ny int) RETURNS TABLE (k int, counts int8[], weights float8[]) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format('
		SELECT k, array_agg(counts ORDER BY bx), array_agg(weights ORDER BY bx)
		FROM (SELECT g.k, bx, array_agg(coalesce(c, 0) ORDER BY by) AS counts, array_agg(coalesce(s, 0) ORDER BY by) AS weights
			FROM (SELECT k, bx, by FROM generate_series(0, 6) k, generate_series(0, %s) bx, generate_series(0, %s) by) g
				LEFT JOIN (SELECT k, bx, by, count(*) AS c, sum(w) AS s FROM (%s) b GROUP BY 1, 2, 3) b USING (k, bx, by)
			GROUP BY 1, 2) r
		GROUP BY 1', nx + 1, ny + 1, query);
END $$;
CREATE TEMP TABLE expected AS SELECT e.k, e.counts, e.weights, d.counts AS down FROM
	pg_temp.grid('SELECT k, CASE WHEN x = ''NaN'' THEN 6 ELSE width_bucket(x, -5, 80, 5) END AS bx, width_bucket(y, 0::float8, 900, 3) AS by, w
		FROM pairs WHERE x IS NOT NULL AND y IS NOT NULL', 5, 3) e,
	pg_temp.grid('SELECT k, width_bucket(n::float8, 100, 10, 4) AS bx, CASE WHEN r = ''NaN'' THEN 3 ELSE width_bucket(r, 0::float8, 500, 2) END AS by, w
		FROM pairs', 4, 2) d WHERE e.k = d.k;
CREATE VIEW grids AS SELECT k, gpu_histogram2d(x, -5, 80, 5, y, 0, 900, 3) AS counts, gpu_histogram2d(x, -5, 80, 5, y, 0, 900, 3, w) AS weights,
	gpu_histogram2d(n, 100, 10, 4, r, 0, 500, 2) AS down FROM pairs GROUP BY k;
SET gpuagg.require = forbid;
SELECT count(*) AS same FROM (TABLE grids INTERSECT TABLE expected) s;
SET gpuagg.require = require;
CREATE TEMP TABLE custom AS TABLE grids;
RESET gpuagg.require;
SELECT count(*) AS same FROM (TABLE custom INTERSECT TABLE expected) s;
-- other forms of queries, against the plain aggregate
CREATE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	answer text;
	mode text;
BEGIN
	FOREACH mode IN ARRAY ARRAY['forbid', 'require'] LOOP
		PERFORM set_config('gpuagg.require', mode, true);
		BEGIN
			EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s OFFSET 0) q', query) INTO answer;
		EXCEPTION WHEN OTHERS THEN
			answer := sqlerrm || ' ' || sqlstate;
		END;
		answers := answers || coalesce(answer, 'none');
	END LOOP;
	RETURN CASE WHEN answers[1] <> answers[2] THEN left(answers[1], 200) || ' but ' || left(answers[2], 200)
		WHEN length(answers[1]) < 200 THEN answers[1] ELSE 'same' END;
END $$;
SELECT call, pg_temp.same(format('SELECT %s AS h FROM pairs', call)) FROM unnest(ARRAY[
	'gpu_histogram2d(x, 0, 80, 2, y, 0, 900, 2) FILTER (WHERE k = 3)', 'gpu_histogram2d(x, 0, 80, 2, y, 0, 900, 2, w) FILTER (WHERE k > 3)',
	'gpu_histogram2d(100 / (k - 3), -20, 40, 2, y, 0, 900, 2) FILTER (WHERE k <> 3)', 'gpu_histogram2d(100 / (k - 3), -20, 40, 2, y, 0, 900, 2)',
	'gpu_histogram2d(DISTINCT k, 0, 6, 3, y % 10, 0, 10, 2)', 'gpu_histogram2d(k, 0, 6, 3, y, 0, 900, 2, w ORDER BY x)',
	'gpu_histogram2d(x, 0, 80, 2, y, 0, 900, 2) FILTER (WHERE false)', 'gpu_histogram2d(x, 0, 80, 998, y, 0, 900, 998)',
	'gpu_histogram2d(x, 0, (SELECT max(y) FROM pairs), 2, y, 0, 900, 2)',
	-- hostile bounds
	'gpu_histogram2d(x, 0, 0, 2, y, 0, 900, 2)', 'gpu_histogram2d(x, 0, 1, 2, y, 7, 7, 2)', 'gpu_histogram2d(x, ''NaN'', 1, 2, y, 0, 900, 2)',
	'gpu_histogram2d(x, 0, 1, 2, y, 0, ''Infinity'', 2)', 'gpu_histogram2d(x, 0, 1, 0, y, 0, 1, 2)', 'gpu_histogram2d(x, 0, 1, 1, y, 0, 1, -2147483648)',
	'gpu_histogram2d(x, 0, 1, 999, y, 0, 1, 999)', 'gpu_histogram2d(x, 0, 1, 1000000, y, 0, 1, 1000000)', 'gpu_histogram2d(x, 0, 1, 1000001, y, 0, 1, 1)',
	'gpu_histogram2d(x, 0, NULL, 1, y, 0, 1, 1)', 'gpu_histogram2d(x, 0, 1, 1, y, 0, 1, NULL, w)', 'gpu_histogram2d(x, 0, 1, 1, y, k, 10, 1)',
	'gpu_histogram2d(x, -1e308, 1e308, 3, y, 0, 1.7e308, 3)', 'gpu_histogram2d(x, 0, 1, 1, y, 0, 1, 1, 1e308)',
	'gpu_histogram2d(x, 0, 1, 1, y, 0, 0, 1) FILTER (WHERE false)', 'gpu_histogram2d(NULL::float8, 0, 1, 1, y, 0, 0, 1)']) call;
SELECT pg_temp.same('SELECT k, gpu_histogram2d(x, -10, 90, 100, y, 0, 900, 100) FROM pairs GROUP BY k');
SELECT pg_temp.same('SELECT k, y % 3, gpu_histogram2d(x, -10, 90, 2, y, 0, 900, 1) FROM pairs GROUP BY CUBE (1, 2)');
SELECT pg_temp.same('SELECT k, gpu_histogram2d(x, k, k + 10, 2, y, 0, 900, 2) FROM pairs GROUP BY k');
SET gpuagg.require = require;
PREPARE bounds(float8, int) AS SELECT gpu_histogram2d(x, -$1, $1, $2, y, 0, 900, 1) FROM pairs;
EXECUTE bounds(20, 2);
SET plan_cache_mode = force_generic_plan;
EXECUTE bounds(20, 2);
RESET plan_cache_mode;
RESET gpuagg.require;
-- in windows
SELECT x, gpu_histogram2d(x, 0, 2, 1, -x, -2, 0, 1) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM generate_series(0.0, 3) AS g, float8(g) AS x;

-- in parallel
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*) AS same FROM (TABLE grids INTERSECT TABLE expected) s;
SET gpuagg.enabled = off;
SELECT count(*) AS same FROM (TABLE grids INTERSECT TABLE expected) s;
RESET gpuagg.enabled;
RESET max_parallel_workers_per_gather;

-- states for other servers: merged, and hand-made ones
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('gpu_histogram2d(float8, float8, float8, int4, float8, float8, float8, int4)', x, 0::float8, 80::float8, 2, y::float8, 0::float8,
	900::float8, 1)), 'gpu_histogram2d(float8, float8, float8, int4, float8, float8, float8, int4)', NULL::int8[]) = gpu_histogram2d(x, 0, 80, 2, y, 0, 900, 1) AS same FROM pairs;
CREATE FUNCTION pg_temp.state(flags text, x text, y text, n int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN gpuagg_finish(('\x0105' || flags || x || y || repeat('0000000000000001', n))::gpuagg_state,
		'gpu_histogram2d(float8, float8, float8, int4, float8, float8, float8, int4)', NULL::int8[]);
EXCEPTION WHEN OTHERS THEN RETURN sqlerrm;
END $$;
SELECT what, pg_temp.state(flags, x, y, n) FROM (VALUES ('valid', '08', '00000001' || '0000000000000000' || '3ff0000000000000', '00000001' || '0000000000000000' || '3ff0000000000000', 9),
	('too short', '08', '00000001' || '0000000000000000' || '3ff0000000000000', '00000001' || '0000000000000000' || '3ff0000000000000', 8),
	('no y', '08', '00000001' || '0000000000000000' || '3ff0000000000000', '', 0),
	('one dimension', '00', '00000001' || '0000000000000000' || '3ff0000000000000', '', 3),
	('weights', '09', '00000001' || '0000000000000000' || '3ff0000000000000', '00000001' || '0000000000000000' || '3ff0000000000000', 9),
	('thresholds', '0a', '00000001' || '0000000000000000', '00000001' || '0000000000000000' || '3ff0000000000000', 6),
	('too many', '08', '000f4240' || '0000000000000000' || '3ff0000000000000', '000f4240' || '0000000000000000' || '3ff0000000000000', 9),
	('no bins', '08', '00000001' || '0000000000000000' || '3ff0000000000000', 'ffffffff' || '0000000000000000' || '3ff0000000000000', 0),
	('equal bounds', '08', '00000001' || '0000000000000000' || '3ff0000000000000', '00000001' || '0000000000000000' || '0000000000000000', 9)) v(what, flags, x, y, n);

-- bins as rows
SELECT xbin, round(xlower::numeric, 12) AS xlower, round(xupper::numeric, 12) AS xupper, ybin, round(ylower::numeric, 12) AS ylower,
	round(yupper::numeric, 12) AS yupper, count
FROM gpu_histogram2d_bins(0, 2, 10, 0, '{{1,2,3},{4,5,6},{7,8,9},{10,NULL,12}}'::int8[]);
SELECT pg_typeof(count), count(*) FROM gpu_histogram2d_bins(0, 1, 0, 1, '{{1,2,3},{4,5,6},{7,8,9}}'::float8[]) GROUP BY 1;
SELECT sum(count) = (SELECT count(*) FROM pairs) AS all_rows FROM gpu_histogram2d_bins(0, 9, 0, 9, (SELECT gpu_histogram2d(k, 0, 9, 9, k, 0, 9, 9) FROM pairs));
SELECT * FROM gpu_histogram2d_bins(0, 1, 0, 1, NULL::int8[]);
SELECT * FROM gpu_histogram2d_bins(0, 1, 0, 1, '{1,2,3}'::int8[]);
SELECT * FROM gpu_histogram2d_bins(0, 1, 0, 1, '{{1,2},{3,4}}'::int8[]);
SELECT * FROM gpu_histogram2d_bins(0, 1, 0, 1, '{{1,2,3},{4,5,6},{7,8,9}}'::int4[]);
SELECT * FROM gpu_histogram2d_bins(0, 1, 1, 1, '{{1,2,3},{4,5,6},{7,8,9}}'::int8[]);
SELECT * FROM gpu_histogram2d_bins(0, 1, 0, 'NaN', '{{1,2,3},{4,5,6},{7,8,9}}'::int8[]);

-- drawings
SELECT * FROM gpu_heatmap(0, 6, 0, 4, (SELECT gpu_histogram2d(x, 0, 6, 6, x * x / 6, 0, 4, 4) FROM generate_series(0.02, 5.9, 0.05) x));
SELECT * FROM gpu_heatmap(1, 0, 2, -1.5, '{{5,0,0,0,0},{0,1,2,3,4},{0,NULL,-1,0,1000},{0,0,0,0,0}}'::int8[]);
SELECT * FROM gpu_heatmap(0, 1, 0, 1, '{{0,0,0},{0,Infinity,0},{0,0,0}}'::float8[]);
SELECT * FROM gpu_heatmap(0, 1, 0, 1, '{{0,0,0},{0,NaN,0},{0,0,0}}'::float8[]);
SELECT count(*) FROM gpu_heatmap(0, 1, 0, 1, NULL::int8[]);
SELECT * FROM gpu_heatmap(0, 1, 0, 1, '{}'::int8[]);
SELECT gpu_heatmap(0, 1, 0, 1, '{{0,0,0},{0,1,0},{0,0,0}}'::int8[]);
SELECT max(length(line)) FROM gpu_heatmap(0, 1, 0, 1, array_fill(1::int8, ARRAY[1000, 1000])) line;
DROP VIEW grids;
DROP TABLE pairs;
