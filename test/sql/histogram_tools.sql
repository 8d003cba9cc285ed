-- Functions that read and merge histograms, and logarithmic bins.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;

-- the bounds of bins from thresholds
SELECT * FROM gpu_histogram_bins(ARRAY[0, 1.5, 1.5, 10], ARRAY[1, 2, 0, 4, 8]::int8[]);
SELECT * FROM gpu_histogram_bins('{-Infinity, 3, Infinity, NaN}'::float8[], '{0, 1, 2.5, NULL, NaN}'::float8[]);
SELECT * FROM gpu_histogram_bins('{1}'::float8[], (SELECT gpu_histogram(x, '{1}'::float8[]) FROM generate_series(0, 3) x));
SELECT * FROM gpu_histogram_bins('{1}'::float8[], NULL::int8[]);
-- the bounds of bins from their number
SELECT bin, round(lower::numeric, 12) AS lower, round(upper::numeric, 12) AS upper, count FROM gpu_histogram_bins(0, 10, 2, ARRAY[1, 2, 3, 4]::int8[]);
SELECT bin, round(lower::numeric, 12) AS lower, round(upper::numeric, 12) AS upper, count FROM gpu_histogram_bins(10, 0, 2, ARRAY[1, 2, 3, 4]::float8[]);

-- every value is within the bounds of its bin
SELECT count(*), count(*) FILTER (WHERE h.count = 1 AND x >= lower AND x < upper) AS right
FROM unnest(gpu_histogram_log_thresholds(0.001, 1e6, 30)) x, gpu_histogram_log_bins(0.001, 1e6, (SELECT gpu_histogram_log(y, 0.001, 1e6, 30) FROM (VALUES (x)) v(y))) h WHERE h.count > 0;

-- edges of logarithmic bins: exact if they are short decimal numbers
SELECT gpu_histogram_log_thresholds(1, 1000000, 6), gpu_histogram_log_thresholds(0.001, 1000, 6), gpu_histogram_log_thresholds(1, 1024, 10),
	gpu_histogram_log_thresholds(5e-324, 1.7976931348623157e308, 1), gpu_histogram_log_thresholds(1, 4, 4);
-- other edges are the doubles nearest to the exact values, which numeric computes
CREATE FUNCTION pg_temp.wrong_edges(lo float8, hi float8, n int) RETURNS int8 LANGUAGE sql AS $$
	SELECT count(*) FROM unnest(gpu_histogram_log_thresholds(lo, hi, n)) WITH ORDINALITY t(edge, i)
	WHERE edge <> (lo::numeric * power(hi::numeric(1000, 60) / lo::numeric(1000, 60), (i - 1)::numeric(1000, 60) / n))::float8
$$;
SELECT lo, hi, n, pg_temp.wrong_edges(lo, hi, n) FROM (VALUES (0.5, 1e6, 13), (0.125, 8, 100), (3, 1e9, 77), (1, 2, 12), (2, 3, 300), (1e-3::float8, 1, 1)) v(lo, hi, n);
-- edges are ascending, with any number of bins
SELECT count(*), count(DISTINCT edge), bool_and(edge >= before) FROM (
	SELECT edge, lag(edge, 1, edge) OVER (ORDER BY i) AS before FROM unnest(gpu_histogram_log_thresholds(1, 1.000000000000001, 100)) WITH ORDINALITY t(edge, i)) e;
SELECT count(*), bool_and(edge > before) FROM (
	SELECT edge, lag(edge, 1, 0) OVER (ORDER BY i) AS before FROM unnest(gpu_histogram_log_thresholds(1e-300, 1e300, 99999)) WITH ORDINALITY t(edge, i)) e;

-- gpu_histogram_log equals gpu_histogram over these thresholds
SELECT gpu_histogram_log(x, 1, 1000, 3) FROM unnest(ARRAY['-Infinity', -1, 0, 0.5, 1, 9.99, 10, 99, 100, 999, 1000, 'Infinity', 'NaN', NULL]::float8[]) x;
SELECT gpu_histogram_log(x, 1, 1000, 3) FROM (VALUES (NULL::float8)) v(x);
SELECT gpu_histogram_log(x, NULL, 1000, 3) FROM (VALUES (NULL::float8)) v(x);
SELECT gpu_histogram_log(1.0, 1, 1000, 3) FROM (VALUES (1)) v(x) WHERE x > 1;
CREATE TEMP TABLE h AS SELECT i % 7 AS k, i % 60 AS day, CASE WHEN i % 11 > 0 THEN exp((i * 7919::int8 % 100003) / 5000.0 - 8) END::float8 AS x, (i % 10) / 4.0::float8 AS w
FROM generate_series(1, 20000) i;
INSERT INTO h SELECT k, k, v, 1 FROM generate_series(0, 6) k, unnest('{0, -1, NaN, Infinity, -Infinity, 1e-3, 1e5}'::float8[]) v;
ANALYZE h;
SET gpuagg.require = forbid;
CREATE TEMP TABLE plain AS SELECT k, gpu_histogram_log(x, 0.001, 1e5, 40) AS logs, gpu_histogram_log(x, 0.001, 1e5, 40) FILTER (WHERE w > 1) AS late FROM h GROUP BY k;
SET gpuagg.require = require;
CREATE TEMP TABLE custom AS SELECT k, gpu_histogram_log(x, 0.001, 1e5, 40) AS logs, gpu_histogram_log(x, 0.001, 1e5, 40) FILTER (WHERE w > 1) AS late FROM h GROUP BY k;
SELECT count(*) AS same FROM plain JOIN custom USING (k, logs, late);
SELECT count(*) AS same FROM custom JOIN (
	SELECT k, array_agg(c ORDER BY bin) AS logs FROM (SELECT g.k, g.bin, count(h.x) AS c
		FROM (SELECT k, bin FROM generate_series(0, 6) k, generate_series(0, 41) bin) g
			LEFT JOIN h ON h.k = g.k AND width_bucket(h.x, gpu_histogram_log_thresholds(0.001, 1e5, 40)) = g.bin GROUP BY 1, 2) b GROUP BY 1) e USING (k, logs);
-- equal bins are shared; bounds as parameters, bounds by group, and too many bins for slots
SELECT gpu_histogram_log(x, 1, 1000, 3), gpu_histogram(x, '{1, 10, 100, 1000}'::float8[]), gpu_count(x) FROM h;
PREPARE logs(float8, int) AS SELECT gpu_histogram_log(x, $1, $1 * 100, $2) FROM h;
EXECUTE logs(0.5, 4);
SELECT k, gpu_histogram_log(x, 1 + k, 100 + k, 2) FROM h WHERE k < 2 GROUP BY k ORDER BY k;
SELECT k, array_length(gpu_histogram_log(x, 1, 10, 9000), 1) FROM h WHERE k < 2 GROUP BY k ORDER BY k;
SELECT array_length(gpu_histogram_log(x, 1e-9, 1e9, 199999), 1) FROM h;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE histograms AS SELECT * FROM h;
ANALYZE histograms;
SELECT count(*) AS same FROM plain JOIN (SELECT k, gpu_histogram_log(x, 0.001, 1e5, 40) AS logs FROM histograms GROUP BY k) p USING (k, logs);
SET gpuagg.require = forbid;
SELECT count(*) AS same FROM plain JOIN (SELECT k, gpu_histogram_log(x, 0.001, 1e5, 40) AS logs FROM histograms GROUP BY k) p USING (k, logs);
RESET gpuagg.require;

-- merged histograms of days, and of parallel workers
CREATE TABLE daily AS SELECT k, day, gpu_histogram(x, 0, 100, 8) AS counts, gpu_histogram(x, 0, 100, 8, w) AS weights,
	gpu_histogram(x, 0, 100, 8)::numeric[] AS numbers, gpu_histogram_log(x, 1, 100, 8) AS logs FROM histograms GROUP BY k, day ORDER BY k, day;
INSERT INTO daily VALUES (0, NULL, NULL, NULL, NULL, NULL), (99, NULL, NULL, NULL, NULL, NULL);
ANALYZE daily;
CREATE TEMP TABLE whole AS SELECT k, gpu_histogram(x, 0, 100, 8) AS counts, gpu_histogram(x, 0, 100, 8, w) AS weights,
	gpu_histogram(x, 0, 100, 8)::numeric[] AS numbers, gpu_histogram_log(x, 1, 100, 8) AS logs FROM histograms GROUP BY k;
INSERT INTO whole VALUES (99, NULL, NULL, NULL, NULL);
CREATE FUNCTION pg_temp.merged(how text, workers int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	same int8;
	total int8[];
BEGIN
	PERFORM set_config('gpuagg.require', how, true), set_config('max_parallel_workers_per_gather', workers::text, true);
	SELECT count(*) INTO same FROM whole w JOIN (SELECT k, gpu_histogram_merge(counts) AS counts, gpu_histogram_merge(weights) AS weights,
		gpu_histogram_merge(numbers) AS numbers, gpu_histogram_merge(logs) AS logs FROM daily GROUP BY k) m
		ON (w.k, w.counts, w.weights, w.numbers, w.logs) IS NOT DISTINCT FROM (m.k, m.counts, m.weights, m.numbers, m.logs);
	SELECT gpu_histogram_merge(counts) INTO total FROM daily;
	RETURN same || ' ' || (total = (SELECT gpu_histogram(x, 0, 100, 8) FROM histograms));
END $$;
SELECT how, workers, pg_temp.merged(how, workers) FROM unnest('{forbid, require}'::text[]) how, generate_series(0, 2, 2) workers;
SET gpuagg.require = require;
SET max_parallel_workers_per_gather = 0;
-- short and long arrays, toasted and not; no rows
SELECT gpu_histogram_merge(c), gpu_histogram_merge(c) FILTER (WHERE false), gpu_histogram_merge(c::float8[]), gpu_histogram_merge(c::numeric[]) FROM (VALUES ('{1, 2, 3}'::int8[]), ('[0:2]={10, 20, 30}'), (NULL)) v(c);
SELECT gpu_histogram_merge(c) FROM (VALUES (NULL::int8[])) v(c);
SELECT gpu_histogram_merge(c) FROM (SELECT '{1}'::int8[]) v(c) WHERE false;
CREATE TEMP TABLE long AS SELECT i % 2 AS k, array_fill(i, ARRAY[100000])::int8[] AS c FROM generate_series(1, 6) i;
SELECT k, m[1], m[100000], array_length(m, 1) FROM (SELECT k, gpu_histogram_merge(c) AS m FROM long GROUP BY k) s ORDER BY k;
-- numerics are added exactly, floats as core adds them
SELECT gpu_histogram_merge(c) FROM (VALUES ('{0.1, NaN, Infinity}'::numeric[]), ('{0.2, 1, -Infinity}')) v(c);
SELECT gpu_histogram_merge(c) FROM (VALUES ('{0.1, NaN, Infinity, -0}'::float8[]), ('{0.2, 1, -Infinity, -0}')) v(c);
-- together with other aggregates, ordered, in windows
SELECT k, gpu_count(*), gpu_sum(day), gpu_histogram_merge(counts ORDER BY day) = gpu_histogram_merge(counts) AS same FROM daily WHERE k < 2 GROUP BY k ORDER BY k;
RESET gpuagg.require;
SELECT i, gpu_histogram_merge(ARRAY[i, 1]::int8[]) OVER (ORDER BY i), gpu_histogram_merge(ARRAY[i]::float8[]) OVER (ORDER BY i ROWS 1 PRECEDING) FROM generate_series(1, 4) i;

-- quantiles, compared with a formulation in SQL: linear within the bin
SELECT gpu_histogram_quantile(0, 10, ARRAY[0, 4, 0, 4, 0]::int8[], f), gpu_histogram_quantile(10, 0, ARRAY[0, 4, 0, 4, 0]::int8[], f),
	gpu_histogram_quantile(0, 10, ARRAY[2, 4, 0, 4, 2]::float8[], f), gpu_histogram_quantile('{0, 5, 5, 20}'::float8[], ARRAY[0, 1, 0, 3, 0]::int8[], f)
FROM unnest(ARRAY[0, 0.125, 0.25, 0.5, 0.75, 0.9, 1]) f;
SELECT gpu_histogram_quantile(0, 10, ARRAY[1, 4, 4, 1]::int8[], ARRAY[0, 0.1, 0.5, 0.9, 1, NULL]),
	gpu_histogram_quantile(10, 0, ARRAY[1, 4, 4, 1]::int8[], ARRAY[0, 0.1, 0.5, 0.9, 1]),
	gpu_histogram_quantile(0, 10, ARRAY[1, 4, 4, 1]::int8[], '{{0.25, 0.5}, {0.75, NULL}}'::float8[]), gpu_histogram_quantile(0, 10, ARRAY[1, 4, 4, 1]::int8[], '{}'::float8[]);
SELECT gpu_histogram_quantile('{1, 10, 100}'::float8[], ARRAY[0, 2, 2, 0]::int8[], ARRAY[0.25, 0.5, 0.75]);
-- empty histograms, NULLs
SELECT gpu_histogram_quantile(0, 10, ARRAY[0, 0, 0]::int8[], 0.5), gpu_histogram_quantile(0, 10, ARRAY[0, 0, 0]::int8[], '{0.5}'::float8[]), gpu_histogram_quantile(0, 10, NULL::int8[], 0.5),
	gpu_histogram_quantile(0, 10, ARRAY[0, 1, 0]::int8[], NULL::float8), gpu_histogram_quantile('{1}'::float8[], '{0, 0}'::float8[], 0.5);
-- infinite and NaN bounds; the range of all doubles; many fractions
SELECT f, gpu_histogram_quantile('{-Infinity, 0, Infinity, NaN}'::float8[], ARRAY[0, 2, 2, 2, 2]::int8[], f) FROM unnest(ARRAY[0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.8]) f;
SELECT gpu_histogram_quantile(-1.7e308, 1.7e308, ARRAY[0, 1, 0]::int8[], ARRAY[0, 0.25, 0.5, 1]);
SELECT gpu_histogram_quantile(0, 1000000, gpu_histogram(x, 0, 1000000, 1000000), ARRAY[0.5, 0.999]) FROM generate_series(0, 199999) x;
-- the difference to core's percentile is at most a bin
SELECT k, bool_and(abs(gpu_histogram_quantile(0, 20, counts, f) - exact) <= 0.1) FROM (
	SELECT k, f, gpu_histogram(x, 0, 20, 200) AS counts, percentile_disc(f) WITHIN GROUP (ORDER BY x) AS exact
	FROM h, unnest(ARRAY[0.1, 0.5, 0.9]) f WHERE x >= 0 AND x < 20 GROUP BY k, f) s GROUP BY k ORDER BY k;

-- errors name the function and the argument
CREATE FUNCTION pg_temp.fails(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE sql;
	RETURN 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', sqlstate || ' ' || sqlerrm, nullif(detail, ''), nullif(hint, ''));
END $$;
\x on
\t on
SELECT call, pg_temp.fails('SELECT ' || call) FROM unnest(ARRAY[
	'gpu_histogram(1, 0, 1, 0)', 'gpu_histogram(1, 0, 0, 5)', 'gpu_histogram(1, 0, ''NaN'', 5)', 'gpu_histogram(1, 0, 1, NULL)', 'gpu_histogram(1, ARRAY[2, 1])',
	'gpu_histogram_log(1, 0, 1, 5)', 'gpu_histogram_log(1, -1, 1, 5)', 'gpu_histogram_log(1, 1, 1, 5)', 'gpu_histogram_log(1, 2, 1, 5)',
	'gpu_histogram_log(1, 1, ''Infinity'', 5)', 'gpu_histogram_log(1, ''NaN'', 2, 5)', 'gpu_histogram_log(1, 1, 2, 0)', 'gpu_histogram_log(1, 1, 2, 1000000)',
	'gpu_histogram_log(1, 1, NULL, 5)', 'gpu_histogram_log(1, 1, x, 5) FROM generate_series(2, 3) x', 'gpu_histogram(1, 1, x, 5) FROM generate_series(2, 3) x',
	'gpu_histogram(1, ARRAY[x]) FROM generate_series(2, 3) x', 'gpu_histogram_log_thresholds(0, 1, 5)', 'gpu_histogram_log_thresholds(1, 2, 2147483647)',
	'gpu_histogram_bins(0, 1, 5, ARRAY[1, 2, 3]::int8[])', 'gpu_histogram_bins(0, 1, 0, ARRAY[1, 2]::int8[])', 'gpu_histogram_bins(ARRAY[1, 2], ARRAY[1, 2]::int8[])',
	'gpu_histogram_bins(ARRAY[1, 2], ARRAY[1, 2, 3, 4]::int8[])', 'gpu_histogram_bins(ARRAY[2, 1], ARRAY[1, 2, 3]::int8[])', 'gpu_histogram_bins(ARRAY[1, NULL], ARRAY[1, 2, 3]::int8[])',
	'gpu_histogram_bins(''{}''::float8[], ARRAY[1]::int8[])', 'gpu_histogram_bins(ARRAY[1, 2], ARRAY[1, 2, 3])', 'gpu_histogram_bins(ARRAY[1, 2], ''{}''::int8[])',
	'gpu_histogram_bins(0, 1, ARRAY[1, 2]::int8[])', 'gpu_histogram_log_bins(0, 1, ARRAY[1, 2, 3]::int8[])', 'gpu_histogram_log_bins(1, 2, ARRAY[1, 2]::int8[])',
	'gpu_histogram_quantile(0, 1, ARRAY[1, 2, 3]::int8[], 1.5)', 'gpu_histogram_quantile(0, 1, ARRAY[1, 2, 3]::int8[], ''NaN''::float8)', 'gpu_histogram_quantile(0, 1, ARRAY[1, 2, 3]::int8[], ARRAY[0.5, -1])',
	'gpu_histogram_quantile(0, 1, ARRAY[1, 2, -3]::int8[], 0.5)', 'gpu_histogram_quantile(0, 1, ''{1, Infinity, 3}''::float8[], 0.5)', 'gpu_histogram_quantile(0, 1, ''{1, NaN, 3}''::float8[], 0.5)',
	'gpu_histogram_quantile(0, 1, ''{1, NULL, 3}''::float8[], 0.5)', 'gpu_histogram_quantile(0, 1, ''{1, 1e308, 1e308}''::float8[], 0.5)', 'gpu_histogram_quantile(0, 0, ARRAY[1, 2, 3]::int8[], 0.5)', 'gpu_histogram_quantile(ARRAY[1, 2], ARRAY[1, 2]::int8[], 0.5)',
	'gpu_histogram_merge(c) FROM (VALUES (''{1, 2}''::int8[]), (''{1, 2, 3}'')) v(c)', 'gpu_histogram_merge(''{{1}}''::int8[])', 'gpu_histogram_merge(''{}''::int8[])', 'gpu_histogram_merge(''{1, NULL}''::float8[])',
	'gpu_histogram_merge(c) FROM (VALUES (''{9223372036854775807}''::int8[]), (''{1}'')) v(c)', 'gpu_histogram_merge(c) FROM (VALUES (''{1.5e308}''::float8[]), (''{1.5e308}'')) v(c)',
	'gpuagg_histogram_merge_int8(''{1}'', ''{1}'')']) call;
\t off
\x off
-- the same errors in the custom scan
SET gpuagg.require = require;
SELECT call, pg_temp.fails('SELECT ' || call) FROM unnest(ARRAY['gpu_histogram_log(x, 0, 1, 5) FROM h', 'gpu_histogram_log(x, 1, 1 + k, 5) FROM h', 'gpu_histogram_log(x, 1, NULL, 5) FROM h',
	'gpu_histogram_merge(ARRAY[9223372036854775807, k]) FROM h', 'gpu_histogram_merge(CASE k WHEN 1 THEN counts ELSE logs[:3] END) FROM daily']) call;
RESET gpuagg.require;
-- a user's aggregate may have any array as its initial state
CREATE AGGREGATE pg_temp.from_empty(int8[]) (SFUNC = gpuagg_histogram_merge_int8, STYPE = int8[], INITCOND = '{}');
CREATE AGGREGATE pg_temp.from_nulls(int8[]) (SFUNC = gpuagg_histogram_merge_int8, STYPE = int8[], INITCOND = '{NULL,NULL}');
CREATE AGGREGATE pg_temp.from_nulls(float8[]) (SFUNC = gpuagg_histogram_merge_float8, STYPE = float8[], INITCOND = '{NULL,NULL}');
CREATE AGGREGATE pg_temp.from_rows(numeric[]) (SFUNC = gpuagg_histogram_merge_numeric, STYPE = numeric[], INITCOND = '{{1,2,3},{4,5,6}}');
CREATE AGGREGATE pg_temp.from_two(int8[]) (SFUNC = gpuagg_histogram_merge_int8, STYPE = int8[], INITCOND = '[0:1]={1,2}');
SELECT call, pg_temp.fails('SELECT pg_temp.' || call) FROM unnest(ARRAY['from_empty(ARRAY[1, 2]::int8[])', 'from_nulls(ARRAY[1, 2]::int8[])', 'from_nulls(ARRAY[1, 2]::float8[])',
	'from_rows(ARRAY[1, 2]::numeric[])']) call;
SELECT pg_temp.from_two(ARRAY[i, 1]::int8[]) FROM generate_series(1, 3) i;
DROP TABLE histograms, daily;
