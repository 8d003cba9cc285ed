-- Definitions of aggregates in plain SQL, over the array of a group's values. They call no function of gpuagg.

-- how often each value occurs, the most frequent first; with_error: as gpu_top_k counts few values
CREATE FUNCTION d_counts(x anyarray, k int, with_error bool DEFAULT false) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT jsonb_agg(jsonb_build_object('value', v, 'count', c) || CASE WHEN with_error THEN '{"error": 0}'::jsonb ELSE '{}' END ORDER BY c DESC, v)::text
	FROM (SELECT v, count(*) AS c FROM unnest(x) v GROUP BY v ORDER BY c DESC, v LIMIT k) s $$;
CREATE FUNCTION d_count_rows(counts jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT string_agg(coalesce(e ->> 'value', 'NULL') || ' ' || (e ->> 'count'), ',') FROM jsonb_array_elements(counts) e $$;
CREATE FUNCTION d_entropy(x anyarray) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT (-sum(c / n * ln(c / n) / ln(2::float8)))::text
	FROM (SELECT count(*)::float8 AS c, (sum(count(*)) OVER ())::float8 AS n FROM unnest(x) v WHERE v IS NOT NULL GROUP BY v) s $$;
-- the n largest or smallest values; of equal floats, -0 comes first
CREATE FUNCTION d_extremes(x anyarray, n int, largest bool) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN largest THEN array_agg(v ORDER BY v DESC, v::text <> '-0') ELSE array_agg(v ORDER BY v, v::text <> '-0') END::text
	FROM (SELECT v, row_number() OVER (ORDER BY v, v::text <> '-0') AS up, row_number() OVER (ORDER BY v DESC, v::text <> '-0') AS down
		FROM unnest(x) v WHERE v IS NOT NULL) s
	WHERE CASE WHEN largest THEN down ELSE up END <= n $$;
-- the values beside the n largest or smallest keys
CREATE FUNCTION d_best(x anyarray, keys anycompatiblearray, n int, largest bool) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT array_agg(v ORDER BY CASE WHEN largest THEN down ELSE up END)::text
	FROM (SELECT v, row_number() OVER (ORDER BY k, v, v::text <> '-0') AS up, row_number() OVER (ORDER BY k DESC, v, v::text <> '-0') AS down
		FROM unnest(x, keys) u(v, k) WHERE k IS NOT NULL) s
	WHERE CASE WHEN largest THEN down ELSE up END <= n $$;
CREATE FUNCTION d_mad(x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT (percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(v - m)))::text
	FROM unnest(x) v, (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS m FROM unnest(x) v) s WHERE v IS NOT NULL $$;
-- exact percentiles, with 0 for -0
CREATE FUNCTION d_percentiles(x float8[], fractions float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT (SELECT array_agg(q + 0) FROM unnest(p) q)::text FROM (SELECT percentile_disc(fractions) WITHIN GROUP (ORDER BY v) AS p FROM unnest(x) v) s $$;
CREATE FUNCTION d_distinct(x anyarray) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT count(DISTINCT v)::text FROM unnest(x) v $$;
CREATE FUNCTION is_finite(x float8) RETURNS bool IMMUTABLE LANGUAGE sql AS $$ SELECT x <> 'NaN' AND abs(x) <> 'Infinity' $$;
-- mean, deviation, skewness and kurtosis of a sample, then both of a population: two passes over numerics
CREATE FUNCTION d_moments(x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT v FROM unnest(x) v WHERE v IS NOT NULL),
		d AS MATERIALIZED (SELECT v::text::numeric - avg(v::text::numeric) OVER () AS d FROM v WHERE is_finite(v)),
		m AS (SELECT count(*)::float8 AS n, avg(d * d)::float8 AS m2, avg(d * d * d)::float8 AS m3, avg(d * d * d * d)::float8 AS m4 FROM d),
		g AS (SELECT n, m2, m3 / nullif(m2, 0) ^ 1.5 AS g1, m4 / nullif(m2, 0) ^ 2 - 3 AS g2 FROM m)
	SELECT CASE WHEN (SELECT bool_and(is_finite(v)) FROM v) THEN
			format('%s %s %s %s %s %s', (SELECT avg(v::text::numeric) FROM v), CASE WHEN n > 1 THEN sqrt(m2 * n / (n - 1)) END,
				CASE WHEN n > 2 THEN g1 * sqrt(n * (n - 1)) / (n - 2) END, CASE WHEN n > 3 THEN (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * g2 + 6) END,
				CASE WHEN n > 1 THEN g1 END, CASE WHEN n > 1 THEN g2 END)
		WHEN (SELECT count(*) FROM v) > 0 THEN (SELECT format('%s %s %s %s %s %s', sum(v) FILTER (WHERE NOT is_finite(v)), CASE WHEN count(*) > 1 THEN 'NaN' END,
				CASE WHEN count(*) > 2 THEN 'NaN' END, CASE WHEN count(*) > 3 THEN 'NaN' END, CASE WHEN count(*) > 1 THEN 'NaN' END,
				CASE WHEN count(*) > 1 THEN 'NaN' END) FROM v)
		ELSE '     ' END
	FROM g $$;
-- where x is between bounds, from 0 to 1; halves, if the distance of the bounds could exceed float8
CREATE FUNCTION share(x float8, lo float8, hi float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN x <= lo THEN 0 WHEN x >= hi THEN 1
		WHEN greatest(-lo, hi) > 8e307 THEN share(CASE WHEN abs(x) < 1 THEN 0 ELSE x / 2 END, CASE WHEN abs(lo) < 1 THEN 0 ELSE lo / 2 END, CASE WHEN abs(hi) < 1 THEN 0 ELSE hi / 2 END)
		WHEN hi - lo > 1 AND x - lo < 1e-10 THEN 0 ELSE (x - lo) / (hi - lo) END $$;
-- ten bars between the least and the greatest finite value
CREATE FUNCTION d_bars(x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH r AS (SELECT min(v) AS lo, max(v) AS hi FROM unnest(x) v WHERE is_finite(v)),
		c AS (SELECT least(floor(share(v, lo, hi) * 10), 9) AS bar, count(*) AS c FROM unnest(x) v, r WHERE is_finite(v) GROUP BY 1)
	SELECT string_agg(CASE WHEN c IS NULL THEN ' ' ELSE chr(9600 + greatest(1, round(c::float8 / most * 8)::int)) END, '' ORDER BY n)
	FROM generate_series(0, 9) n LEFT JOIN c ON bar = n, (SELECT max(c) AS most FROM c) m WHERE most IS NOT NULL $$;
-- counts, extremes, quartiles and bars of gpu_summary
CREATE FUNCTION d_summary(x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT ROW(count(v), count(*) - count(v), min(v) + 0, max(v) + 0, d_percentiles(x, '{0.25,0.5,0.75}'), d_bars(x))::text FROM unnest(x) v $$;
-- the bin of width_bucket(); NaN is above all numbers, and not allowed before PostgreSQL 19
CREATE FUNCTION d_bin(x float8, lo float8, hi float8, n int) RETURNS int IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN x = 'NaN' THEN CASE WHEN lo < hi THEN n + 1 ELSE 0 END ELSE width_bucket(x, lo, hi, n) END $$;
-- NULL without rows. weights: NULL counts pairs
CREATE FUNCTION d_grid(xs float8[], xlo float8, xhi float8, nx int, ys float8[], ylo float8, yhi float8, ny int, weights float8[], weighted bool)
RETURNS float8[] IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT d_bin(x, xlo, xhi, nx) AS i, d_bin(y, ylo, yhi, ny) AS j, sum(CASE WHEN weighted THEN w ELSE 1 END) + 0 AS c
			FROM unnest(xs, ys, weights) u(x, y, w) WHERE x IS NOT NULL AND y IS NOT NULL AND (w IS NOT NULL OR NOT weighted) GROUP BY 1, 2)
	SELECT array_agg(line ORDER BY i)
	FROM (SELECT i, array_agg(coalesce(c, 0) ORDER BY j) AS line FROM generate_series(0, nx + 1) i CROSS JOIN generate_series(0, ny + 1) j LEFT JOIN v USING (i, j) GROUP BY i) s
	WHERE EXISTS (SELECT FROM v) $$;
-- what is drawn of counts, and their sum outside
CREATE FUNCTION d_map(counts float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH n AS (SELECT array_length(counts, 1) - 2 AS nx, array_length(counts, 2) - 2 AS ny),
		c AS (SELECT i, j, CASE WHEN c = 'NaN' OR c IS NULL THEN 0 ELSE c END AS c, i BETWEEN 1 AND nx AND j BETWEEN 1 AND ny AS inside
			FROM n, generate_series(0, nx + 1) i, generate_series(0, ny + 1) j, LATERAL (SELECT counts[i + 1][j + 1] AS c) l),
		most AS (SELECT max(c) AS m FROM c WHERE inside),
		lines AS (SELECT j, rtrim('│' || string_agg(repeat(CASE WHEN c <= 0 THEN ' ' WHEN c = m THEN '█' ELSE (ARRAY['░', '▒', '▓', '█'])[greatest(1, ceil(c / m * 4)::int)] END, 2), '' ORDER BY i)) AS line
			FROM c, most WHERE inside GROUP BY j)
	SELECT string_agg(line, E'\n' ORDER BY j DESC) || (SELECT CASE WHEN sum(c) <> 0 THEN ' outside: ' || sum(c) ELSE '' END FROM c WHERE NOT inside) FROM lines $$;
-- histogram_quantile() of Prometheus: cumulative counts over bounds that end with Infinity
CREATE FUNCTION d_le_quantile(bounds float8[], counts float8[], fraction float8) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH b AS (SELECT b, lag(b) OVER (ORDER BY n) AS lower, c, coalesce(lag(c) OVER (ORDER BY n), 0) AS before, n FROM unnest(bounds, counts) WITH ORDINALITY u(b, c, n))
	SELECT CASE WHEN b = 'Infinity' THEN lower WHEN lower IS NULL AND b <= 0 THEN b
		ELSE coalesce(lower, 0) + (b - coalesce(lower, 0)) * greatest(0, fraction * total - before) / (c - before) END::text
	FROM b, (SELECT max(c) AS total FROM b) t WHERE c > 0 AND c >= fraction * total ORDER BY n LIMIT 1 $$;

-- Answers about more values than a sketch keeps: how many of gpu_top_k's rows break its promise ...
CREATE FUNCTION d_wrong_tops(top jsonb, x int4[], k int) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT v, count(*) AS c FROM unnest(x) v GROUP BY v),
		e AS (SELECT n, (e ->> 'value')::int AS v, (e ->> 'count')::int8 AS most, (e ->> 'error')::int8 AS error FROM jsonb_array_elements(top) WITH ORDINALITY u(e, n))
	SELECT count(*) FILTER (WHERE c IS NULL OR c > most OR c < most - error OR error > cardinality(x) / greatest(256, 10 * k)) + abs(count(*) - least(k, (SELECT count(*) FROM v)))
		+ count(*) FILTER (WHERE before < most - error)
	FROM (SELECT *, lag(most - error) OVER (ORDER BY n) AS before FROM e) o LEFT JOIN v ON v.v IS NOT DISTINCT FROM o.v $$;
-- ... and of percentiles. A sign's powers of two count as far as it has values.
CREATE FUNCTION d_wrong_percentiles(answers float8[], x float8[], fractions float8[]) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
	WITH r AS (SELECT sum(powers) AS powers, max(most) - min(least) AS range FROM (
			SELECT floor(log(2, max(abs(v))::numeric)) - floor(log(2, min(abs(v))::numeric)) + 1 AS powers, max(v) AS most, min(v) AS least FROM unnest(x) v WHERE v <> 0 GROUP BY sign(v)) s),
		p AS (SELECT percentile_disc(fractions) WITHIN GROUP (ORDER BY v) AS p FROM unnest(x) v)
	SELECT count(*) FROM r, p, unnest(answers, p.p) u(a, e) WHERE a IS NULL OR abs(a - e) > greatest(abs(e) * powers / 2048, range / 1024) $$;

-- Returns whether two texts are the same. kind 'near': both are numbers between spaces, and may differ by errors of rounding;
-- 'sketch': both are numbers of distinct values, and may differ by five times the standard error.
CREATE FUNCTION agrees(kind text, actual text, expected text) RETURNS bool IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE kind
		WHEN 'near' THEN CASE WHEN actual IS NULL OR expected IS NULL THEN actual IS NOT DISTINCT FROM expected
			ELSE (SELECT bool_and(CASE WHEN a = '' OR e = '' OR a ~ 'N|I' OR e ~ 'N|I' THEN a IS NOT DISTINCT FROM e
					ELSE abs(a::float8 - e::float8) <= 1e-7 * (1e-300 + abs(e::float8)) + 1e-9 * shift END)
				FROM unnest(string_to_array(actual, ' '), string_to_array(expected, ' ')) WITH ORDINALITY u(a, e, n), LATERAL (SELECT CASE WHEN n <= 2 THEN 0 ELSE 100 END AS shift) s) END
		WHEN 'sketch' THEN abs(actual::float8 - expected::float8) <= 2 + 0.04 * expected::float8
		ELSE actual IS NOT DISTINCT FROM expected END $$;

-- What gpuagg_describe shows of a column: the least and the greatest value, the most frequent one and its rows.
CREATE FUNCTION d_column(x anyarray) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS (SELECT v FROM unnest(x) v WHERE v IS NOT NULL),
		f AS (SELECT e ->> 'value' AS value, (e ->> 'count')::int8 AS c FROM jsonb_array_elements(d_counts(ARRAY(SELECT v FROM v), 1)::jsonb) e)
	SELECT format('%s %s %s %s %s', count(v), cardinality(x) - count(v), regexp_replace(format('%s', (SELECT v FROM v ORDER BY v LIMIT 1)), '^-0$', '0'),
		regexp_replace(format('%s', (SELECT v FROM v ORDER BY v DESC LIMIT 1)), '^-0$', '0'), (SELECT value || ' ' || c FROM f WHERE c > 1)) FROM v $$;

-- What is compared of results.
CREATE FUNCTION positive_zeros(x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT (SELECT array_agg(v + 0) FROM unnest(x) v)::text $$;
CREATE FUNCTION shown_counts(counts jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT string_agg(coalesce(value, 'NULL') || ' ' || count, ',') FROM gpu_value_counts_rows(counts) $$;
CREATE FUNCTION shown_summary(s gpuagg_summary) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT ROW(s.count, s.nulls, s.min, s.max, positive_zeros(CASE WHEN s.count > 0 THEN ARRAY[s.q1, s.median, s.q3] END), s.histogram)::text $$;
CREATE FUNCTION shown_moments(s gpuagg_summary) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT format('%s %s %s %s', s.mean, s.deviation, s.skewness, s.kurtosis) $$;
CREATE FUNCTION shown_map(h anyarray, xlo float8, xhi float8, ylo float8, yhi float8) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT string_agg(CASE WHEN l ~ '^ *outside' THEN ltrim(l) ELSE regexp_replace(l, '^[^│]*', '') END, CASE WHEN l ~ '^ *outside' THEN ' ' ELSE E'\n' END ORDER BY n)
	FROM gpu_heatmap(xlo, xhi, ylo, yhi, h) WITH ORDINALITY m(l, n) WHERE l ~ '│|outside' $$;
-- one or two units in the last place
CREATE FUNCTION step(x float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN abs(x) < 1e-290 THEN 5e-324 ELSE abs(x) * 2.3e-16 END $$;
-- Whether the bin of width_bucket() changes at the bounds of a bin.
CREATE FUNCTION bounds_fit(bin int, lower float8, upper float8, lo float8, hi float8, n int) RETURNS bool IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN bin = CASE WHEN lo < hi THEN 0 ELSE n + 1 END THEN lower = '-Infinity' WHEN lo < hi THEN d_bin(lower, lo, hi, n) = bin AND d_bin(lower - step(lower), lo, hi, n) < bin
			ELSE d_bin(lower, lo, hi, n) > bin AND d_bin(lower + step(lower), lo, hi, n) = bin END
		AND CASE WHEN bin = CASE WHEN lo < hi THEN n + 1 ELSE 0 END THEN upper = 'Infinity' WHEN lo < hi THEN d_bin(upper, lo, hi, n) > bin AND d_bin(upper - step(upper), lo, hi, n) = bin
			ELSE d_bin(upper, lo, hi, n) = bin AND d_bin(upper + step(upper), lo, hi, n) < bin END $$;
-- How many rows of gpu_histogram2d_bins have another count than the array, or bounds at which the bin of width_bucket() does not change.
CREATE FUNCTION wrong_bins(h int8[], xlo float8, xhi float8, ylo float8, yhi float8) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE b.count IS DISTINCT FROM h[xbin + 1][ybin + 1] OR NOT bounds_fit(xbin, xlower, xupper, xlo, xhi, nx) OR NOT bounds_fit(ybin, ylower, yupper, ylo, yhi, ny))
		+ abs(count(*) - (nx + 2) * (ny + 2))
	FROM gpu_histogram2d_bins(xlo, xhi, ylo, yhi, h) b, (SELECT array_length(h, 1) - 2 AS nx, array_length(h, 2) - 2 AS ny) n WHERE h IS NOT NULL GROUP BY nx, ny $$;
-- Bounds and cumulative counts as Prometheus has them.
CREATE FUNCTION le_bounds(k int) RETURNS float8[] IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN k % 3 = 0 THEN '{-5}'::float8[] ELSE '{}' END || ARRAY(SELECT (v * (1 + k % 4)) / 4.0 FROM generate_series(CASE WHEN k % 2 = 0 THEN 0 ELSE 1 END, k) v) || '{inf}'::float8[] $$;
CREATE FUNCTION le_counts(x float8[], bounds float8[]) RETURNS int8[] IMMUTABLE LANGUAGE sql AS $$
	SELECT array_agg((SELECT count(*) FROM unnest(x) v WHERE v <= b) ORDER BY b) FROM unnest(bounds) b $$;
-- exact sums: numerics of all digits, converted at the end. A float8 is an integer times 2^-1074.
CREATE TABLE powers AS SELECT k, trim_scale(2::numeric ^ k) AS power FROM generate_series(0, 2148) k;
ALTER TABLE powers ADD PRIMARY KEY (k);
CREATE FUNCTION d_integer(x float8) RETURNS numeric IMMUTABLE LANGUAGE sql AS $$
	SELECT sign(x)::numeric * ((bits & 4503599627370495) + CASE WHEN e > 0 THEN 4503599627370496 ELSE 0 END) * (SELECT power FROM powers WHERE k = greatest(e, 1) - 1)
	FROM (SELECT bits, (bits >> 52 & 2047)::int AS e FROM (SELECT ('x' || encode(float8send(x), 'hex'))::bit(64)::int8 AS bits) b) s $$;
-- numerator / denominator / 2^shift, or the root of that; all digits of numbers in the middle of two float8 are needed
CREATE FUNCTION d_rounded(numerator numeric, denominator numeric, shift int, root bool DEFAULT false) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN abs(q) > 2.4703282292062328e-324 * 1e1200 THEN (q || 'e-1200')::float8 WHEN numerator < 0 THEN '-0' ELSE 0 END
	FROM (SELECT CASE WHEN root THEN round(sqrt(round(numerator * 1e2400 / (denominator * power), 0)), 0) ELSE round(numerator * 1e1200 / (denominator * power), 0) END AS q
		FROM powers WHERE k = shift AND denominator <> 0 AND numerator IS NOT NULL) s $$;
-- values of which no variance overflows, and those that are not finite
CREATE FUNCTION small(x float8) RETURNS float8 IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$ SELECT CASE WHEN abs(x) < 1e150 OR NOT abs(x) < 'inf' THEN x END $$;
-- sum, mean, variance of a sample, deviation of a population
CREATE FUNCTION d_exact(x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT v, CASE WHEN is_finite(v) THEN d_integer(v) END AS i FROM (SELECT small(v) AS v FROM unnest(x) v) s WHERE v IS NOT NULL),
		s AS (SELECT count(*)::numeric AS n, sum(i) AS sx, sum(i * i) AS sxx, sum(v) FILTER (WHERE i IS NULL) AS special FROM v)
	SELECT format('%s %s %s %s', coalesce(special, d_rounded(sx, 1, 1074)), coalesce(special, d_rounded(sx, n, 1074)),
		CASE WHEN n > 1 THEN CASE WHEN special IS NULL THEN d_rounded(n * sxx - sx * sx, n * (n - 1), 2148) ELSE 'NaN' END END,
		CASE WHEN special IS NULL THEN d_rounded(n * sxx - sx * sx, n * n, 2148, true) WHEN n > 0 THEN 'NaN' END)
	FROM s $$;
-- covariance of a population, correlation and its square, of y and x
CREATE FUNCTION d_exact_pairs(y float8[], x float8[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT CASE WHEN is_finite(y) THEN d_integer(y) END AS iy, CASE WHEN is_finite(x) THEN d_integer(x) END AS ix
			FROM (SELECT small(y) AS y, small(x) AS x FROM unnest(y, x) u(y, x)) s WHERE y IS NOT NULL AND x IS NOT NULL),
		s AS (SELECT count(*)::numeric AS n, sum(ix) AS sx, sum(iy) AS sy, sum(ix * ix) AS sxx, sum(ix * iy) AS sxy, sum(iy * iy) AS syy, bool_and(ix IS NOT NULL) AS fx, bool_and(iy IS NOT NULL) AS fy FROM v),
		c AS (SELECT n, fx, fy, fx AND n * sxx = sx * sx AS same_x, fy AND n * syy = sy * sy AS same_y, n * sxx - sx * sx AS xx, n * sxy - sx * sy AS xy, n * syy - sy * sy AS yy FROM s)
	SELECT format('%s %s %s', CASE WHEN fx AND fy THEN d_rounded(xy, n * n, 2148) WHEN n > 0 THEN 'NaN' END,
		CASE WHEN same_x OR same_y OR n = 0 THEN NULL WHEN fx AND fy THEN sign(xy)::float8 * d_rounded(xy * xy, xx * yy, 0, true) ELSE 'NaN' END,
		CASE WHEN same_x OR n = 0 THEN NULL WHEN same_y THEN 1 WHEN fx AND fy THEN d_rounded(xy * xy, xx * yy, 0) ELSE 'NaN' END)
	FROM c $$;
