-- Random cases of each aggregate against its definition (definitions.sql). A case is a group of random rows. Groups are computed in batches;
-- for each batch and aggregate, random() chooses the columns, the arguments and the way in which the query runs.

CREATE TABLE sample (g int, i int, h int, f bool, n int, k int, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, num numeric(14, 2), s text, d date, b bool,
	x float8, y float8, w float8, m float8);
CREATE TABLE differences (name text, call text, way text, settings text, seed float8, key text, actual text, expected text);
CREATE TABLE tried (name text, way text, cases bigint, on_gpu bool);
CREATE TABLE actual (key text, answer text);
CREATE TABLE expected (key text, answer text);

-- One of some texts.
CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION int_between(least_n int, most int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT least_n + floor(random() * (most - least_n + 1))::int $$;

-- Fills the table with this number of groups of up to so many rows. Groups differ in the share of NULLs, in how many values there are,
-- in their magnitude, and in how many of them are special floats.
CREATE PROCEDURE fill_sample(groups int, most_rows int) LANGUAGE sql AS $$
	TRUNCATE sample;
	INSERT INTO sample
	WITH g AS MATERIALIZED (
		SELECT g, 1 + floor(random() ^ 3 * most_rows)::int AS size, (ARRAY[0, 0, 0.1, 0.5, 1])[1 + floor(random() * 5)::int] AS nulls, 1 + floor(random() ^ 3 * 400)::int AS spread,
			(ARRAY[0, 0, 0.1, 0.8])[1 + floor(random() * 4)::int] AS special, power(10::float8, floor(random() * 24 - 12)) AS scale, power(10::float8, floor(random() * 290 - 145)) AS wild,
			CASE WHEN random() < 0.3 THEN floor(random() * 1000) ELSE 0 END AS shift, 1 + floor(random() ^ 3 * 30)::int AS n, 1 + floor(random() ^ 2 * 12)::int AS k
		FROM generate_series(1, groups) g),
	r AS MATERIALIZED (
		SELECT *, floor(random() * spread)::int AS v, floor(random() * 24)::int AS odd, random() < special AS is_special, random() < nulls AS n1, random() < nulls AS n2, random() < nulls AS n3
		FROM g, generate_series(1, size) i)
	SELECT g, i, floor(random() * 3)::int, random() < 0.7, n, k,
		CASE WHEN n1 THEN NULL WHEN is_special AND odd < 3 THEN (ARRAY[-32768, 32767, 0])[1 + odd] ELSE v - spread / 2 END,
		CASE WHEN n2 THEN NULL WHEN is_special AND odd < 3 THEN (ARRAY[-2147483648, 2147483647, 0])[1 + odd] ELSE v - spread / 2 END,
		CASE WHEN n3 THEN NULL WHEN is_special AND odd < 3 THEN (ARRAY[-9223372036854775808, 9223372036854775807, 9007199254740993])[1 + odd] ELSE v * 1000000007::int8 END,
		CASE WHEN n2 THEN NULL WHEN is_special THEN (ARRAY['nan', 'inf', '-inf', '-0', '0', '1e-45', '3.4e38', '1'])[1 + odd % 8]::float4 ELSE v / 8.0 - shift END,
		CASE WHEN n1 THEN NULL WHEN is_special THEN (ARRAY['nan', 'inf', '-inf', '-0', '0', '5e-324', '1.7976931348623157e308', '2.2250738585072014e-308'])[1 + odd % 8]::float8 ELSE (v - spread / 3) * wild END,
		CASE WHEN n3 THEN NULL WHEN is_special AND odd < 6 THEN 'NaN' WHEN is_special AND odd < 9 THEN 99999999999.99 * (odd - 7) ELSE (v - spread / 2) / 4.0 END,
		CASE WHEN n1 THEN NULL WHEN is_special AND odd < 9 THEN (ARRAY['', 'ä', repeat('long ', 600)])[1 + odd % 3] ELSE chr(97 + v % 26) || v END,
		CASE WHEN n2 THEN NULL WHEN is_special AND odd < 4 THEN (ARRAY['infinity', '-infinity'])[1 + odd % 2]::date ELSE date '2026-01-01' + v END,
		CASE WHEN n3 THEN NULL ELSE v % 3 = 0 END,
		CASE WHEN n1 THEN NULL WHEN is_special THEN (ARRAY['nan', 'inf', '-inf', '-0', '0', '1', '10', '5e-324'])[1 + odd % 8]::float8 ELSE (random() - 0.3) * 20 END,
		CASE WHEN n2 THEN NULL WHEN is_special AND odd < 4 THEN (ARRAY['nan', 'inf', '-inf', '-0'])[1 + odd]::float8 ELSE v - 5 END,
		CASE WHEN n3 THEN NULL WHEN is_special AND odd < 4 THEN (ARRAY['nan', 'inf', '-inf', '-0'])[1 + odd]::float8 ELSE v / 8.0 - 2 END,
		CASE WHEN n1 THEN NULL WHEN is_special AND odd < 3 THEN (ARRAY['nan', 'inf', '-inf'])[1 + odd]::float8 ELSE (shift + v + floor(random() * 8) / 8) * scale END
	FROM r;
	ANALYZE sample;
$$;

-- Sets how queries over the sample run, and returns the settings.
CREATE FUNCTION choose_settings(way text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	settings text[] := CASE way WHEN 'core' THEN '{gpuagg.enabled=off}' WHEN 'scan' THEN '{gpuagg.require=require,gpuagg.feed=heap}' WHEN 'rows' THEN '{gpuagg.require=require,gpuagg.feed=tuples}'
		WHEN 'cached' THEN '{gpuagg.require=require,gpuagg.cache=eager}' WHEN 'parallel' THEN '{gpuagg.require=require,max_parallel_workers_per_gather=2}'
		WHEN 'core parallel' THEN '{gpuagg.enabled=off,max_parallel_workers_per_gather=2}' WHEN 'expected' THEN '{gpuagg.enabled=off}' ELSE '{}' END;
	setting text;
BEGIN
	IF random() < 0.25 AND way <> 'expected' THEN
		settings := settings || '{work_mem=64kB}'::text[];
	END IF;
	settings := settings || ('gpuagg.engine=' || pick(VARIADIC string_to_array(current_setting('cases.engines'), ',')));
	FOREACH setting IN ARRAY '{gpuagg.enabled=on,gpuagg.require=allow,gpuagg.feed=auto,gpuagg.cache=off,max_parallel_workers_per_gather=0,work_mem=4MB}' || settings LOOP
		PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), false);
	END LOOP;
	RETURN array_to_string(settings, ' ');
END $$;

-- The query of a call, or of its definition, as (key, answer), unless it is a query already. [column] is the array of the group's values, {over} follows aggregates.
CREATE FUNCTION query_of(expression text, way text, frame text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE
		WHEN e ~ '^SELECT' THEN e
		WHEN way = 'window' THEN format('SELECT g || '' '' || i, %s FROM sample WINDOW w AS (PARTITION BY g ORDER BY i ROWS %s)', e, frame)
		WHEN way = 'sets' THEN format('SELECT concat_ws('' '', g, h, grouping(g, h)), %s FROM sample GROUP BY GROUPING SETS ((g), (g, h), (h), ())', e)
		WHEN way = 'nested' THEN format('SELECT g, (SELECT %s FROM sample WHERE g = o.g) FROM (SELECT DISTINCT g FROM sample) o', e)
		ELSE format('SELECT g, %s FROM sample GROUP BY g', e) END
	FROM (SELECT replace(regexp_replace(expression, '\[([a-z]\w*)\]', 'array_agg(\1){over}', 'g'), '{over}',
		CASE way WHEN 'filter' THEN ' FILTER (WHERE f)' WHEN 'window' THEN ' OVER w' ELSE '' END)) s(e) $$;

-- The number of custom scans of this database on the GPU engine.
CREATE FUNCTION gpu_scans() RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT coalesce(sum(calls), 0) FROM gpuagg_stats WHERE event = 'taken' AND engine = 'cuda' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) $$;

-- Compares a call with its definition for all groups of the sample.
CREATE PROCEDURE compare(name text, kind text, call text, definition text, seed float8, ways text DEFAULT 'core,scan,rows,cached,parallel,core parallel,filter,window,nested,sets') LANGUAGE plpgsql AS $$
DECLARE
	way text := pick(VARIADIC string_to_array(ways, ','));
	frame text := pick('BETWEEN 3 PRECEDING AND CURRENT ROW', 'BETWEEN 2 PRECEDING AND 2 FOLLOWING', 'BETWEEN 1 FOLLOWING AND 4 FOLLOWING', 'UNBOUNDED PRECEDING');
	settings text := choose_settings(way);
	scans numeric := gpu_scans();
BEGIN
	TRUNCATE actual, expected;
	BEGIN
		EXECUTE 'INSERT INTO actual SELECT * FROM (' || query_of(call, way, frame) || ') s';
	EXCEPTION WHEN OTHERS THEN
		INSERT INTO differences VALUES (name, call, way, settings, seed, '', sqlerrm);
	END;
	PERFORM choose_settings('expected');
	EXECUTE 'INSERT INTO expected SELECT * FROM (' || query_of(definition, way, frame) || ') s';
	INSERT INTO tried SELECT name, way, count(*), gpu_scans() > scans FROM expected;
	INSERT INTO differences SELECT name, call, way, settings, seed, e.key, a.answer, e.answer FROM actual a FULL JOIN expected e USING (key)
	WHERE a.key IS NULL OR e.key IS NULL OR NOT coalesce(agrees(kind, a.answer, e.answer), false) LIMIT 5;
END $$;

-- The query of an aggregate that is computed in parts, by states that are written and read as text.
CREATE FUNCTION merged(shown text, aggregate text, arguments text, result text) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT g, %s FROM (SELECT g, gpuagg_merge(state) AS state FROM (SELECT g, h, gpuagg_merge(gpuagg_pack(%L, %s))::text::gpuagg_state AS state FROM sample GROUP BY g, h) p GROUP BY g) s',
		format(shown, format('gpuagg_finish(state, %L, NULL::%s)', aggregate, result)), aggregate, arguments) $$;
-- ... and of a sketch, which has its own aggregates
CREATE FUNCTION merged_sketch(shown text, aggregate text, argument text) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT g, %s FROM (SELECT g, h, %s_state(%s)::text::gpuagg_state AS state FROM sample GROUP BY g, h) s GROUP BY g',
		format(shown, aggregate || '_merge(state)'), aggregate, argument) $$;

-- The type of arrays of a column of the sample.
CREATE FUNCTION array_of(value text) RETURNS text LANGUAGE sql AS $$ SELECT atttypid::regtype || '[]' FROM pg_attribute WHERE attrelid = 'sample'::regclass AND attname = value $$;

-- One batch: each aggregate over all groups of the sample.
CREATE PROCEDURE batch(seed float8) LANGUAGE plpgsql AS $$
DECLARE
	value text;
	other text;
	parts text[];
	grid text;
	places text;
	scales text;
	-- without sets, in whose groups k and n differ
	by_group constant text := 'core,scan,rows,cached,parallel,core parallel,filter,window,nested';
	by_query constant text := 'core,scan,rows,cached,parallel,core parallel';
	constant_k text := int_between(1, 12);
	nbins text := int_between(2, 40);
	scale text := int_between(-10, 20);
	largest text := pick('true', 'false');
	smallest text := CASE largest WHEN 'true' THEN 'false' ELSE 'true' END;
	suffix text;
BEGIN
	-- most frequent values, entropy
	value := pick('i2', 'i4', 'i8', 'f4', 'f8', 'num', 's', 'd', 'b', 'x');
	CALL compare('value_counts', 'same', format('gpu_value_counts(%s){over}::text', value), format('d_counts([%s], 1000000)', value), seed);
	CALL compare('value_counts k', 'same', format('gpu_value_counts(%s, k){over}::text', value), format('d_counts([%s], ([k])[1])', value), seed, by_group);
	CALL compare('value_counts rows', 'same', format('shown_counts(gpu_value_counts(%s, %s){over})', value, constant_k),
		format('d_count_rows(d_counts([%s], %s)::jsonb)', value, constant_k), seed);
	CALL compare('top_k', 'same', format('gpu_top_k(%s, k){over}::text', value), format('d_counts([%s], ([k])[1], true)', value), seed, by_group);
	CALL compare('top_k of a constant', 'same', format('gpu_top_k(%s, %s){over}::text', value, constant_k), format('d_counts([%s], %s, true)', value, constant_k), seed,
		-- all groups together have more values than are counted
		CASE value WHEN 'b' THEN by_group || ',sets' ELSE by_group END);
	CALL compare('value_counts merged', 'same', merged('%s::text', 'gpu_value_counts(anyelement, int4)', value || ', k', 'jsonb'), format('d_counts([%s], ([k])[1])', value), seed, by_query);
	CALL compare('entropy merged', 'near', merged('%s::text', 'gpu_entropy(anyelement)', value, 'float8'), format('d_entropy([%s])', value), seed, by_query);
	CALL compare('entropy', 'near', format('gpu_entropy(%s){over}::text', value), format('d_entropy([%s])', value), seed);
	-- the n largest
	value := pick('i2', 'i4', 'i8', 'f4', 'f8', 'num', 's', 'd', 'b', 'x');
	other := pick('i2', 'i4', 'i8', 'f4', 'f8', 'num', 's', 'd', 'b', 'x');
	suffix := CASE largest WHEN 'true' THEN 'max_n' ELSE 'min_n' END;
	CALL compare(suffix, 'same', format('gpu_%s(%s, n){over}::text', suffix, value), format('d_extremes([%s], ([n])[1], %s)', value, largest), seed, by_group);
	CALL compare('arg' || suffix, 'same', format('gpu_arg%s(%s, %s, n){over}::text', suffix, value, other), format('d_best([%s], [%s], ([n])[1], %s)', value, other, largest), seed, by_group);
	CALL compare('arg' || suffix || ' merged', 'same', merged('%s::text', format('gpu_arg%s(anyelement, anycompatible, int4)', suffix), format('%s, %s, n', value, other),
			array_of(value)),
		format('d_best([%s], [%s], ([n])[1], %s)', value, other, largest), seed, by_query);
	suffix := CASE largest WHEN 'true' THEN 'min_n' ELSE 'max_n' END;
	CALL compare(suffix, 'same', format('gpu_%s(%s, %s){over}::text', suffix, other, constant_k), format('d_extremes([%s], %s, %s)', other, constant_k, smallest), seed);
	CALL compare('arg' || suffix, 'same', format('gpu_arg%s(%s, %s, %s){over}::text', suffix, value, other, constant_k), format('d_best([%s], [%s], %s, %s)', value, other, constant_k, smallest), seed);
	-- shapes
	CALL compare('skewness, kurtosis', 'near', 'format(''0 0 %s %s %s %s'', gpu_skewness(m){over}, gpu_kurtosis(m){over}, gpu_skewness_pop(m){over}, gpu_kurtosis_pop(m){over})',
		'''0 0 '' || substring(d_moments([m]), ''^[^ ]* [^ ]* (.*)$'')', seed);
	-- exact sums
	value := pick('x', 'y', 'm', 'w', 'f8');
	other := pick('x', 'y', 'm', 'w', 'f8');
	CALL compare('exact sums', 'same', format('format(''%%s %%s %%s %%s'', gpuagg_exact_sum(small(%s)){over}, gpuagg_exact_avg(small(%1$s)){over}, gpuagg_exact_var_samp(small(%1$s)){over}, gpuagg_exact_stddev_pop(small(%1$s)){over})', value),
		format('d_exact([%s])', value), seed);
	CALL compare('exact pairs', 'same', format('format(''%%s %%s %%s'', gpuagg_exact_covar_pop(small(%s), small(%s)){over}, gpuagg_exact_corr(small(%1$s), small(%2$s)){over}, gpuagg_exact_regr_r2(small(%1$s), small(%2$s)){over})', value, other),
		format('d_exact_pairs([%s], [%s])', value, other), seed);
	CALL compare('exact sums merged', 'same', merged('coalesce((%s)::text, '''')', 'gpuagg_exact_stddev_pop(float8)', format('small(%s)', value), 'float8'), format('split_part(d_exact([%s]), '' '', 4)', value), seed, by_query);
	value := pick('x', 'i2', 'i4', 'num', 'd - date ''2026-01-01''', 'f4');
	value := CASE WHEN value ~ 'date' THEN 'y' ELSE value END;
	CALL compare('mad', 'same', format('gpu_mad(%s){over}::text', value), format('d_mad([%s]::float8[])', value), seed);
	value := pick('x', 'i4', 'i8', 'f4', 'f8', 'num', 'm');
	CALL compare('summary', 'same', format('shown_summary(gpu_summary(%s){over})', value), format('d_summary([%s]::float8[])', value), seed);
	CALL compare('summary merged', 'same', merged('shown_summary(%s)', 'gpu_summary(float8)', value || '::float8', 'gpuagg_summary'), format('d_summary([%s]::float8[])', value), seed, by_query);
	CALL compare('approx_percentile merged', 'same', merged_sketch('positive_zeros(gpu_approx_percentile_estimate(%s, ''{0,0.3,1}''::float8[]))', 'gpu_approx_percentile', value),
		format('d_percentiles([%s]::float8[], ''{0,0.3,1}'')', value), seed, by_query);
	CALL compare('summary moments', 'near', 'shown_moments(gpu_summary(m){over})', 'substring(d_moments([m]), ''^[^ ]* [^ ]* [^ ]* [^ ]*'')', seed);
	-- sketches
	CALL compare('approx_percentile state', 'same', format('positive_zeros(gpu_approx_percentile_estimate(gpu_approx_percentile_state(%s){over}, ''{0,0.1,0.5,0.9,1}''::float8[]))', value),
		format('d_percentiles([%s]::float8[], ''{0,0.1,0.5,0.9,1}'')', value), seed);
	CALL compare('approx_percentile', 'same', format('positive_zeros(gpu_approx_percentile(%s, ''{0.25,0.99}''::float8[]){over})', value), format('d_percentiles([%s]::float8[], ''{0.25,0.99}'')', value), seed);
	value := pick('i2', 'i4', 'i8', 'f4', 'f8', 'num', 's', 'd', 'b', 'x');
	CALL compare('approx_count_distinct state', 'sketch', format('coalesce(gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(%s){over}), 0)::text', value), format('d_distinct([%s])', value), seed);
	CALL compare('approx_count_distinct merged', 'same', merged_sketch('(%s)::text', 'gpu_approx_count_distinct', value), format('SELECT g, gpu_approx_count_distinct_state(%s)::text FROM sample GROUP BY g', value), seed, by_query);
	CALL compare('approx_count_distinct', 'same', format('(coalesce(gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(%s){over}), 0) = gpu_approx_count_distinct(%1$s){over})::text', value), '(coalesce([i], ''{}'') IS NOT NULL)::text', seed);
	-- histograms of unknown range, equal depth and exponential buckets
	value := pick('x', 'i4', 'i8', 'f4', 'f8', 'm', 'w');
	CALL compare('histogram_auto', 'same', format('auto_actual(gpu_histogram_auto(%s, %s))', value, nbins), format('auto_expected([%s]::float8[], %s)', value, nbins), seed,
		'core,scan,rows,cached,parallel,core parallel,nested,sets');
	value := pick('x', 'i4', 'i8', 'f4', 'f8', 'm', 'w');
	CALL compare('histogram_equidepth', 'same', format('depth_actual(gpu_histogram_equidepth(%s, %s){over})', value, nbins), format('depth_expected([%s]::float8[], %s)', value, nbins), seed);
	value := pick('x', 'i4', 'i8', 'f4', 'f8', 'm', 'w');
	CALL compare('exp_histogram', 'same', format('exp_actual(gpu_exp_histogram(%s, %s){over})', value, scale),
		format('exp_expected([%s]::float8[], array_fill(%s, ARRAY[greatest(cardinality([i]), 0)]))', value, scale), seed, by_query || ',nested,sets');
	-- two dimensions
	parts := string_to_array(pick('x|0::float8, 10::float8|5|y|-5::float8, 20::float8|4', 'x|3::float8, -3::float8|3|y|0::float8, 1::float8|1', 'y|-2e307::float8, 2e307::float8|3|x|10::float8, 0::float8|2', 'f8|-1e10::float8, 1e10::float8|4|num|0::float8, 50::float8|3', 'i4|-7::float8, 93::float8|10|f4|100::float8, -100::float8|2',
		'x|-0.5::float8, 12.5::float8|2|y|0::float8, 3::float8|2'), '|');
	grid := format('%s::float8, %s, %s, %s::float8, %s, %s', VARIADIC parts);
	places := format('[%s]::float8[], %s, %s, [%s]::float8[], %s, %s', VARIADIC parts);
	scales := parts[2] || ', ' || parts[5];
	CALL compare('histogram2d', 'same', format('gpu_histogram2d(%s){over}::text', grid), format('d_grid(%s, [i]::float8[], false)::int8[]::text', places), seed);
	CALL compare('histogram2d weights', 'same', format('gpu_histogram2d(%s, w){over}::text', grid), format('d_grid(%s, [w], true)::text', places), seed);
	CALL compare('histogram2d merged', 'same', merged('%s::text', 'gpu_histogram2d(float8, float8, float8, int4, float8, float8, float8, int4)', grid, 'int8[]'),
		format('d_grid(%s, [i]::float8[], false)::int8[]::text', places), seed, by_query);
	CALL compare('histogram2d_bins', 'same', format('coalesce(wrong_bins(gpu_histogram2d(%s){over}, %s), 1)::text', grid, scales), format('(d_grid(%s, [i]::float8[], false) IS NULL)::int::text', places), seed, 'scan,core');
	CALL compare('heatmap', 'same', format('shown_map(gpu_histogram2d(%s, w){over}, %s)', grid, scales),
		format('d_map(d_grid(%s, [w], true))', places), seed, 'scan,core,filter');
	CALL compare('le_histogram_quantile', 'near', 'gpu_le_histogram_quantile(le_bounds(max(k)), le_counts(array_agg(x), le_bounds(max(k))), max(n) / 30.0)::text',
		'd_le_quantile(le_bounds(max(k)), le_counts(array_agg(x), le_bounds(max(k))), max(n) / 30.0)', seed, 'core,scan');
END $$;

-- Fills the table with groups of so many rows, most with more values than sketches keep.
CREATE PROCEDURE fill_large(groups int, size int) LANGUAGE sql AS $$
	TRUNCATE sample;
	INSERT INTO sample (g, i, h, n, k, i4, x)
	SELECT g, i, i % 3, 1, k, floor(random() ^ skew * values)::int, CASE WHEN random() < negative THEN -1 ELSE 1 END * (near + scale * exp(random() * span))
	FROM (SELECT g, 1 + floor(random() * 300)::int AS k, 1 + random() * 5 AS skew, 200 + random() * 9000 AS values, (ARRAY[0, 0.5])[1 + floor(random() * 2)::int] AS negative, random() * 40 AS span,
			power(10::float8, floor(random() * 20 - 10)) AS scale, (ARRAY[0, 0, 1e6])[1 + floor(random() * 3)::int] AS near FROM generate_series(1, groups) g) s, generate_series(1, size) i;
	ANALYZE sample;
$$;
CREATE PROCEDURE large_batch(seed float8) LANGUAGE plpgsql AS $$
DECLARE
	by_group constant text := 'core,scan,rows,cached,parallel,core parallel';
	-- not array_agg in the same query, which would keep it from the GPU
	all_values constant text := '(SELECT array_agg(%s) FROM sample o WHERE o.g = sample.g)';
	constant_k text := int_between(1, 40);
BEGIN
	CALL compare('top_k of many', 'same', 'd_wrong_tops(gpu_top_k(i4, k), array_agg(i4), max(k))::text', '''0''', seed, by_group);
	CALL compare('top_k of a constant of many', 'same', format('d_wrong_tops(gpu_top_k(i4, %s), %s, %1$s)::text', constant_k, format(all_values, 'i4')), '''0''', seed, by_group);
	CALL compare('approx_percentile of many', 'same', format('d_wrong_percentiles(gpu_approx_percentile(x, %L::float8[]), %s, %1$L)::text', '{0,0.01,0.3,0.5,0.99,1}', format(all_values, 'x')),
		'''0''', seed, by_group);
	CALL compare('approx_percentile merged of many', 'same', merged_sketch('%s::text', 'gpu_approx_percentile', 'x'), 'gpu_approx_percentile_state(x)::text', seed, by_group);
	CALL compare('approx_count_distinct of many', 'sketch', 'gpu_approx_count_distinct(x)::text', 'count(DISTINCT x)::text', seed, by_group);
	CALL compare('approx_count_distinct merged of many', 'same', merged_sketch('%s::text', 'gpu_approx_count_distinct', 'i4'), 'gpu_approx_count_distinct_state(i4)::text', seed, by_group);
	CALL compare('value_counts of many', 'same', 'gpu_value_counts(i4)::text', 'd_counts([i4], 1000000)', seed, by_group);
	CALL compare('value_counts merged of many', 'same', merged('%s::text', 'gpu_value_counts(anyelement, int4)', 'i4, k', 'jsonb'), 'd_counts([i4], ([k])[1])', seed, by_group);
	CALL compare('entropy of many', 'near', 'gpu_entropy(i4)::text', 'd_entropy([i4])', seed, by_group);
	CALL compare('mad of many', 'same', 'gpu_mad(x)::text', 'd_mad([x])', seed, by_group);
	CALL compare('max_n of many', 'same', 'gpu_max_n(x, k)::text', 'd_extremes([x], ([k])[1], true)', seed, by_group);
END $$;

-- gpuagg_describe of views over some groups; a case is a column.
CREATE PROCEDURE describe_batch(groups int, seed float8) LANGUAGE plpgsql AS $$
DECLARE
	columns constant text[] := '{i2,i4,i8,f4,f8,num,s,d,b,x,m}';
	way text := pick('core', 'scan', 'cached', 'parallel');
	settings text;
	name text;
BEGIN
	TRUNCATE actual, expected;
	FOR one IN 1 .. groups LOOP
		PERFORM choose_settings('expected');
		EXECUTE format('CREATE OR REPLACE VIEW described AS SELECT %s FROM sample WHERE g = %s', array_to_string(columns, ', '), one);
		FOREACH name IN ARRAY columns LOOP
			EXECUTE format('INSERT INTO expected SELECT %L, d_column(array_agg(%s)) || '' '' || %s FROM sample WHERE g = %s', one || ' ' || name, name,
				CASE WHEN name ~ '^[sdb]$' THEN 'count(NULL)' ELSE format('coalesce(d_percentiles(array_agg(%s::float8), ''{0.25,0.5,0.75}'') || d_bars(array_agg(%1$s::float8)), d_percentiles(array_agg(%1$s::float8), ''{0.25,0.5,0.75}''), '''')', name) END, one);
		END LOOP;
		settings := choose_settings(way);
		INSERT INTO actual SELECT one || ' ' || d.name, format('%s %s %s %s %s', d.count, d.nulls, regexp_replace(d.min, '^-0$', '0'), regexp_replace(d.max, '^-0$', '0'), d.most_frequent || ' ' || d.frequency) || ' '
			|| CASE WHEN d.name ~ '^[sdb]$' THEN '0' ELSE coalesce(positive_zeros(CASE WHEN d.count > 0 THEN ARRAY[d.q1, d.median, d.q3] END::float8[]), '') || coalesce(d.histogram, '') END
		FROM gpuagg_describe('described') d;
	END LOOP;
	INSERT INTO tried SELECT 'describe', way, count(*), false FROM expected;
	INSERT INTO differences SELECT 'describe', 'gpuagg_describe', way, settings, seed, e.key, a.answer, e.answer FROM actual a FULL JOIN expected e USING (key) WHERE a.answer IS DISTINCT FROM e.answer LIMIT 5;
END $$;
