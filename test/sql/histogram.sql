-- gpu_histogram in all its forms, and drawings of histograms.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;

-- one bin per unit, with the bounds of width_bucket
SELECT gpu_histogram(x, 0, 4, 4) FROM unnest(ARRAY[-0.5, 0, 0.5, 1, 3.999, 4, 5, NULL]) x;
-- with descending bounds
SELECT gpu_histogram(x, 4, 0, 4) FROM unnest(ARRAY[-0.5, 0, 0.5, 1, 3.999, 4, 5, NULL]) x;
-- infinities, and NaN, which is greater
SELECT gpu_histogram(x, 0, 1, 2), gpu_histogram(x, 1, 0, 2) FROM unnest(ARRAY['-Infinity', 'Infinity', 'NaN', 'NaN', '0.5']::float8[]) x;
-- the range of all doubles
SELECT gpu_histogram(x, -1e308, 1e308, 4) FROM unnest(ARRAY[-1.5e308, -1e308, -1, 0, 1, 9.9e307, 1e308]) x;
-- weights
SELECT gpu_histogram(x, 0, 2, 2, w) FROM (VALUES (0.5, 1.25), (0.5, -1), (1.5, NULL), (NULL, 7), (9, 3)) v(x, w);
SELECT gpu_histogram(x, 0, 2, 2, '-0') FROM (VALUES (0.5)) v(x);
SELECT gpu_histogram(x, 0, 2, 2, w) FROM (VALUES (0.5, 'Infinity'::float8), (1.5, 'NaN'), (-1, '-Infinity')) v(x, w);
-- thresholds
SELECT gpu_histogram(x, ARRAY[1, 2, 2, 5]) FROM unnest(ARRAY[0, 1, 1.5, 2, 4.9, 5, 'NaN', NULL]::float8[]) x;
SELECT gpu_histogram(x, ARRAY['-Infinity', 0, 'Infinity', 'NaN']::float8[]) FROM unnest(ARRAY['-Infinity', -1, 0, 1, 'Infinity', 'NaN']::float8[]) x;
-- no rows, and NULLs
SELECT gpu_histogram(x, 0, 1, 2), gpu_histogram(x, 0, 1, 2, 1), gpu_histogram(x, ARRAY[0.5]) FROM (VALUES (NULL::float8), (NULL)) v(x);
SELECT gpu_histogram(x, 0, 1, 2), gpu_histogram(x, ARRAY[0.5]) FROM (VALUES (1.0::float8)) v(x) WHERE x > 1;
SELECT gpu_histogram(x, NULL, 1, 2) FROM (VALUES (NULL::float8)) v(x);

-- compared with width_bucket, as a plain aggregate and in the custom scan
CREATE TEMP TABLE h AS SELECT i % 7 AS k, nullif((i * 7919::int8 % 100003) / 1000.0 - 10, 0)::float8 AS x, (i % 10) / 4.0::float8 AS w
FROM generate_series(1, 20000) i;
INSERT INTO h SELECT k, NULL, 1 FROM generate_series(0, 6) k;
ANALYZE h;
CREATE FUNCTION pg_temp.expected(lo float8, hi float8, n int) RETURNS TABLE (k int, counts int8[], weights float8[]) LANGUAGE sql AS $$
	SELECT k, array_agg(c ORDER BY bin), array_agg(s ORDER BY bin)
	FROM (SELECT g.k, g.bin, count(h.x) AS c, coalesce(sum(h.w), 0) AS s
		  FROM (SELECT k, bin FROM generate_series(0, 6) k, generate_series(0, n + 1) bin) g
			LEFT JOIN h ON h.k = g.k AND width_bucket(h.x, lo, hi, n) = g.bin
		  GROUP BY g.k, g.bin) b
	GROUP BY k
$$;
SET gpuagg.require = forbid;
CREATE TEMP TABLE plain AS SELECT k, gpu_histogram(x, -5, 80, 13) AS up, gpu_histogram(x, 80, -5, 13) AS down, gpu_histogram(x, -5, 80, 13, w) AS weighted,
	gpu_histogram(x, ARRAY[-5, 0, 0.5, 20, 80]) AS steps FROM h GROUP BY k;
SET gpuagg.require = require;
CREATE TEMP TABLE custom AS SELECT k, gpu_histogram(x, -5, 80, 13) AS up, gpu_histogram(x, 80, -5, 13) AS down, gpu_histogram(x, -5, 80, 13, w) AS weighted,
	gpu_histogram(x, ARRAY[-5, 0, 0.5, 20, 80]) AS steps FROM h GROUP BY k;
RESET gpuagg.require;
SELECT count(*) AS same FROM plain JOIN custom USING (k, up, down, weighted, steps);
SELECT count(*) AS same FROM plain JOIN pg_temp.expected(-5, 80, 13) e ON e.k = plain.k AND e.counts = up AND e.weights = weighted;
SELECT count(*) AS same FROM plain JOIN pg_temp.expected(80, -5, 13) e ON e.k = plain.k AND e.counts = down;
SELECT count(*) AS same FROM plain JOIN (
	SELECT k, array_agg(c ORDER BY bin) AS c FROM (SELECT k, width_bucket(x, ARRAY[-5, 0, 0.5, 20, 80]::float8[]) AS bin, count(*) AS c
		FROM h WHERE x IS NOT NULL GROUP BY 1, 2) b GROUP BY k) e ON e.k = plain.k AND e.c = steps;

-- without keys, with a filter, many bins; parameters that are expressions and parameters of the query
SET gpuagg.require = require;
SELECT (SELECT sum(c) FROM unnest(gpu_histogram(x, -10, 90, 100000)) c) = count(x), array_length(gpu_histogram(x, -10, 90, 1000000), 1) FROM h;
SELECT gpu_histogram(x, 0, 100, 4) FILTER (WHERE w > 1), gpu_histogram(x, 0, 100, 4, w) FILTER (WHERE false) FROM h;
SELECT k, array_length(gpu_histogram(x, -10, 90, 10000), 1) FROM h GROUP BY k ORDER BY k LIMIT 2;
-- equal thresholds that are written twice share their bins, different ones do not
SELECT gpu_histogram(x, ARRAY[0, 50]), gpu_histogram(x, '{0,50}'::float8[]), gpu_histogram(x, ARRAY[0, 51]), gpu_histogram(x, ARRAY[50]), gpu_count(*) FROM h;
PREPARE hist(float8, int) AS SELECT gpu_histogram(x, -$1, $1 * 2, $2) FROM h;
EXECUTE hist(10, 3);
SET plan_cache_mode = force_generic_plan;
EXECUTE hist(20, 3);
RESET plan_cache_mode;
-- bounds may depend on the group, but are fixed within it
SELECT k, gpu_histogram(x, k, k + 10, 2) FROM h WHERE k < 2 GROUP BY k ORDER BY k;
-- bounds from a subquery and from an outer query
SELECT gpu_histogram(x, (SELECT min(x) FROM h), (SELECT max(x) FROM h), 3) FROM h;
SELECT b, (SELECT gpu_histogram(x, b, b + 50, 2) FROM h) FROM generate_series(0, 1) b;
RESET gpuagg.require;

-- in windows
SELECT x, gpu_histogram(x, 0, 4, 2) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), gpu_histogram(x, ARRAY[2]) OVER (ORDER BY x)
FROM generate_series(0.0, 5) AS g, float8(g) AS x;

-- errors, as a plain aggregate and in the custom scan
CREATE FUNCTION pg_temp.fails(args text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text := 'none';
	mode text;
BEGIN
	FOREACH mode IN ARRAY ARRAY['forbid', 'require'] LOOP
		PERFORM set_config('gpuagg.require', mode, true);
		BEGIN
			EXECUTE format('SELECT gpu_histogram(%s) FROM h', args);
			RETURN mode || ' gives an answer';
		EXCEPTION WHEN OTHERS THEN
			IF message <> 'none' AND message <> sqlerrm || ' ' || sqlstate THEN
				RETURN message || ' but ' || sqlerrm;
			END IF;
			message := sqlerrm || ' ' || sqlstate;
		END;
	END LOOP;
	RETURN message;
END $$;
SELECT args, pg_temp.fails(args) FROM unnest(ARRAY['x, 0, 0, 5', 'x, 0, 1, 0', 'x, 0, 1, -1', 'x, 0, 1, 1000001', 'x, ''NaN'', 1, 5', 'x, 0, ''NaN'', 5',
	'x, 0, ''Infinity'', 5', 'x, ''-Infinity'', 0, 5', 'x, NULL, 1, 5', 'x, 0, NULL, 5', 'x, 0, 1, NULL', 'x, 0, 1, NULL, 1', 'x, w, 10, 5', 'x, 0, w + 1, 5',
	'x, -1, 10, 1 + k', 'x, w, 10, 5, 1', 'x, NULL::float8[]', 'x, ''{}''::float8[]', 'x, ARRAY[1, NULL]', 'x, ARRAY[2, 1]', 'x, ''{NaN, 1}''::float8[]',
	'x, ARRAY[[1, 2], [3, 4]]', 'x, ARRAY[w, 10]', 'x, array_fill(1.0::float8, ARRAY[1000001])', 'x, 0, 100, 1, 1e308']) args;
-- core's own functions of these names
SELECT width_bucket(1::float8, 0, 0, 5);
SELECT width_bucket(1::float8, 0, 1, 0);
SELECT width_bucket(1::float8, 0, 'Infinity', 5);

-- drawings
SELECT bin, round(lower::numeric, 12) AS lower, round(upper::numeric, 12) AS upper, count, bar FROM gpu_histogram_bins(-5, 80, (SELECT up FROM plain WHERE k = 0));
SELECT * FROM gpu_histogram_bins(3, 0, ARRAY[1, 2, 4, 8, 0]);
SELECT bin, round(lower::numeric, 12) AS lower, round(upper::numeric, 12) AS upper, count, bar FROM gpu_histogram_bins(0, 1, ARRAY[0, -1.5, 'NaN', 'Infinity', NULL, 2.5]::float8[]);
SELECT bin, count, length(bar) FROM gpu_histogram_bins(0, 1, ARRAY[0, 1, 1000000, 500000, 0]::int8[]);
SELECT bin, round((lower / 1e307)::numeric, 12) AS lower, round((upper / 1e307)::numeric, 12) AS upper, count FROM gpu_histogram_bins(-1.7e308, 1.7e308, ARRAY[0, 1, 1, 1, 0]::int8[]);
SELECT * FROM gpu_histogram_bins(0, 1, NULL::int8[]);
SELECT pg_typeof(count) FROM gpu_histogram_bins(0, 1, ARRAY[0, 1, 0]::float8[]) LIMIT 1;
SELECT * FROM gpu_histogram_bins(0, 1, ARRAY[1, 2]::int8[]);
SELECT * FROM gpu_histogram_bins(0, 1, ARRAY[1, 2, 3]::int4[]);
SELECT * FROM gpu_histogram_bins(1, 1, ARRAY[1, 2, 3]::int8[]);
SELECT * FROM gpu_histogram_bins(0, 1, ARRAY[[1, 2, 3]]::int8[]);
