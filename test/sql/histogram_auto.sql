-- gpu_histogram_auto: compared with its definition in integer arithmetic over the bits of the values, as a plain aggregate, in the custom
-- scan, in parallel and from merged states; values of all sizes; states made by hand.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET extra_float_digits = 1;

-- A finite value is mantissa * 2^exponent.
CREATE FUNCTION auto_exponent(x float8) RETURNS int IMMUTABLE LANGUAGE sql AS $$
	SELECT greatest(((get_byte(float8send(x), 0) & 127) << 4) | (get_byte(float8send(x), 1) >> 4), 1) - 1075 $$;
CREATE FUNCTION auto_mantissa(x float8) RETURNS int8 IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN get_byte(float8send(x), 0) > 127 THEN -m ELSE m END
	FROM (SELECT (('x' || encode(float8send(x), 'hex'))::bit(64)::int8 & 4503599627370495)
		+ CASE WHEN (get_byte(float8send(x), 0) & 127) + (get_byte(float8send(x), 1) >> 4) > 0 THEN 4503599627370496 ELSE 0 END AS m) s $$;
-- floor(x / 2^e)
CREATE FUNCTION auto_bin(x float8, e int) RETURNS int8 IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN auto_mantissa(x) = 0 THEN 0 WHEN auto_exponent(x) >= e THEN auto_mantissa(x) << (auto_exponent(x) - e)
		ELSE auto_mantissa(x) >> least(e - auto_exponent(x), 62) END $$;
-- the least exponent that is not below that of the greatest absolute value, and for which nbins bins are enough
CREATE FUNCTION auto_width(least_x float8, most_x float8, nbins int) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$
DECLARE
	e int := auto_exponent(greatest(-least_x, most_x));
BEGIN
	WHILE auto_bin(most_x, e) - auto_bin(least_x, e) >= nbins LOOP
		e := e + 1;
	END LOOP;
	RETURN e;
END $$;
-- The histogram of a column of a table, as text: what is counted apart, the exponent, and the bins that are not empty.
CREATE FUNCTION auto_expected(x float8[], nbins int) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT v FROM unnest(x) v),
		range AS MATERIALIZED (SELECT min(v), max(v), auto_width(min(v), max(v), nbins) AS e FROM v WHERE v NOT IN ('nan', 'inf', '-inf'))
	SELECT concat_ws(' ', count(*) FILTER (WHERE v IS NULL), count(*) FILTER (WHERE v = '-inf'), count(*) FILTER (WHERE v = 'inf'),
		count(*) FILTER (WHERE v = 'nan'), (SELECT e FROM range),
		(SELECT string_agg(format('%s:%s', bin, n), ' ' ORDER BY bin) FROM (
			SELECT auto_bin(v, e) AS bin, count(*) AS n FROM v, range WHERE v NOT IN ('nan', 'inf', '-inf') GROUP BY 1) b))
	FROM v $$;
-- the same of a histogram, by its functions
CREATE FUNCTION auto_actual(h gpuagg_state) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT concat_ws(' ', i.nulls, coalesce(max(b.count) FILTER (WHERE b.lower = '-inf' AND bin IS NULL), 0), coalesce(max(b.count) FILTER (WHERE b.lower = 'inf'), 0),
		coalesce(max(b.count) FILTER (WHERE b.lower = 'nan'), 0),
		max(CASE WHEN i.width = 'inf' THEN 1024 ELSE auto_exponent(i.width) + length(ltrim(auto_mantissa(i.width)::bit(53)::text, '0')) - 1 END),
		string_agg(format('%s:%s', CASE WHEN i.width = 'inf' THEN CASE WHEN b.lower < 0 THEN -1 ELSE 0 END WHEN b.lower = -1.7976931348623157e308 THEN (b.upper / i.width)::int8 - 1
			ELSE (b.lower / i.width)::int8 END, b.count), ' ' ORDER BY bin) FILTER (WHERE bin > 0 AND b.count > 0))
	FROM gpu_histogram_auto_info(h) i LEFT JOIN gpu_histogram_auto_bins(h) b ON true GROUP BY i.nulls $$;
SELECT x, auto_exponent(x), auto_mantissa(x), auto_bin(x, -1), auto_bin(x, 3) FROM unnest('{0,1,-1,-0.25,17,5e-324,-1e300}'::float8[]) x;

-- values of all sizes
CREATE TABLE auto_cases (n serial, x float8[]);
INSERT INTO auto_cases (x) VALUES ('{1}'), ('{0}'), ('{-0}'), ('{0,-0}'), ('{1,2}'), ('{1,2,3,4,5,6,7,8,9,10}'), ('{-1,1}'), ('{-3,0,5}'),
	('{5e-324}'), ('{0,5e-324}'), ('{5e-324,-5e-324}'), ('{0,1e-320,1}'), ('{-5e-324,1.7976931348623157e308}'), ('{1.7976931348623157e308}'),
	('{-1.7976931348623157e308,1.7976931348623157e308}'), ('{1.7976931348623157e308,1.7976931348623155e308}'), ('{-1,-0.9999999999999999}'),
	('{1,1.0000000000000002}'), ('{1e300,-1e-300,0,1e-300}'), ('{nan}'), ('{inf,-inf}'), ('{nan,inf,inf,-inf,NULL,1.5,NULL}'), ('{NULL}'),
	('{2.2250738585072014e-308,2.225073858507201e-308}'), ('{1024,1023.9999999999999}'), ('{-1024,-1024.0000000000002,3}');
SELECT n, x, nbins FROM auto_cases, unnest(ARRAY[2, 3, 10, 1000]) nbins
WHERE auto_expected(x, nbins) IS DISTINCT FROM auto_actual((SELECT gpu_histogram_auto(v, nbins) FROM unnest(x) v));
SELECT auto_expected(x, 3), auto_actual((SELECT gpu_histogram_auto(v, 3) FROM unnest(x) v)) FROM auto_cases WHERE n IN (8, 13, 22);

-- Random values: how many of so many arrays give another histogram, in their order, in another order, or merged of two parts.
CREATE FUNCTION auto_random(cases int, seed float8) RETURNS TABLE (cases_tried bigint, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	values float8[];
	nbins int;
	scale float8;
	expected text;
BEGIN
	PERFORM setseed(seed);
	cases_tried := cases;
	wrong := 0;
	FOR i IN 1 .. cases LOOP
		nbins := CASE WHEN random() < 0.3 THEN 2 + floor(random() * 3) ELSE 2 + floor(random() * random() * 200) END;
		scale := power(10::float8, floor(random() * 600 - 300)::float8);
		values := ARRAY(SELECT CASE floor(random() * 14) WHEN 0 THEN 0 WHEN 1 THEN NULL WHEN 2 THEN (ARRAY['inf', '-inf', 'nan', '-0', '5e-324', '1.7976931348623157e308'])[1 + floor(random() * 6)]::float8
				WHEN 3 THEN scale * power(10::float8, floor(random() * 8)::float8) WHEN 4 THEN floor(random() * 20) - 10 WHEN 5 THEN (1 + floor(random() * 4) * 2.220446049250313e-16) * scale
				WHEN 6 THEN -scale ELSE (random() - 0.3) * scale END
			FROM generate_series(1, 1 + floor(random() * random() * 40)::int + i * 0));
		expected := auto_expected(values, nbins);
		IF expected IS DISTINCT FROM (SELECT auto_actual(gpu_histogram_auto(v, nbins)) FROM unnest(values) v)
			OR (SELECT gpu_histogram_auto(v, nbins)::text <> gpu_histogram_auto(v, nbins ORDER BY v)::text OR gpu_histogram_auto(v, nbins)::text <> gpu_histogram_auto(v, nbins ORDER BY abs(v) DESC)::text
				OR gpu_histogram_auto(v, nbins)::text <> (SELECT gpuagg_merge(h ORDER BY part)::text
					FROM (SELECT n % 3 AS part, gpu_histogram_auto(v, nbins)::text::gpuagg_state AS h FROM unnest(values) WITH ORDINALITY u(v, n) GROUP BY 1) s) FROM unnest(values) v)
			-- a quantile is in the bin of percentile_disc, within the range
			OR EXISTS (SELECT FROM unnest('{0,0.1,0.25,0.5,0.9,1}'::float8[]) f,
					(SELECT gpu_histogram_auto(v, nbins) AS h, percentile_disc('{0,0.1,0.25,0.5,0.9,1}'::float8[]) WITHIN GROUP (ORDER BY v) AS p FROM unnest(values) v) s,
					LATERAL (SELECT p[array_position('{0,0.1,0.25,0.5,0.9,1}'::float8[], f)] AS p, gpu_histogram_auto_quantile(h, f) AS q) e
				WHERE (e.p IS NULL) <> (e.q IS NULL) OR e.q IS NOT NULL AND NOT EXISTS (SELECT FROM gpu_histogram_auto_bins(h) b
					WHERE CASE WHEN bin IS NULL THEN e.q = b.lower AND e.p = b.lower ELSE e.p >= b.lower AND e.p < b.upper AND e.q BETWEEN b.lower AND b.upper END)) THEN
			wrong := wrong + 1;
		END IF;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM auto_random(100, 0.5);

-- groups of a table: custom scan, plain aggregates, in parallel
CREATE TABLE auto_rows AS SELECT i, i % 7 AS g, CASE WHEN i % 97 = 0 THEN NULL WHEN i % 101 = 0 THEN 'nan' WHEN i % 103 = 0 THEN '-inf' WHEN i % 107 = 0 THEN 'inf'
	ELSE ((i * 7919::int8 % 10007) / 64.0 - 30) * power(10, i % 7 * 3 - 9) END::float8 AS x FROM generate_series(1, 6000) i;
INSERT INTO auto_rows SELECT i, 7, 12345.678 FROM generate_series(1, 50) i;
ANALYZE auto_rows;
CREATE TABLE auto_answers AS SELECT g, auto_expected(array_agg(x), 20) AS expected FROM auto_rows GROUP BY g;
CREATE VIEW auto_wrong AS SELECT g FROM (SELECT g, gpu_histogram_auto(x, 20) AS h FROM auto_rows GROUP BY g) s FULL JOIN auto_answers a USING (g)
WHERE auto_actual(h) IS DISTINCT FROM expected;
SET gpuagg.require = forbid;
SELECT * FROM auto_wrong;
SET gpuagg.require = require;
CREATE TEMP TABLE auto_custom AS SELECT g, gpu_histogram_auto(x, 20) AS h FROM auto_rows GROUP BY g;
SELECT count(*) AS sets FROM (SELECT g, i % 2, gpu_histogram_auto(x, 20) AS h FROM auto_rows GROUP BY GROUPING SETS ((g, i % 2), (g), ())) s;
CREATE TEMP TABLE auto_sets AS SELECT g, i % 2 AS odd, gpu_histogram_auto(x, 20) AS h FROM auto_rows GROUP BY GROUPING SETS ((g, i % 2), (g), ());
SELECT gpu_histogram_auto(x, 20)::text = gpu_histogram_auto(x, 20 ORDER BY x)::text AS ordered, gpu_histogram_auto(DISTINCT x, 20)::text = (SELECT gpu_histogram_auto(x, 20)::text FROM (SELECT DISTINCT x FROM auto_rows WHERE i <= 300) d) AS "distinct" FROM auto_rows WHERE i <= 300;
RESET gpuagg.require;
SELECT g FROM auto_custom FULL JOIN auto_answers a USING (g) WHERE auto_actual(h) IS DISTINCT FROM expected;
SELECT count(*), count(*) FILTER (WHERE h::text IS DISTINCT FROM p) AS wrong FROM (SELECT h, (SELECT gpu_histogram_auto(x, 20)::text FROM auto_rows r
	WHERE (r.g = s.g OR s.g IS NULL) AND (i % 2 = odd OR odd IS NULL)) AS p FROM auto_sets s) q;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM auto_wrong;
SET gpuagg.enabled = off;
EXPLAIN (COSTS OFF) SELECT g, gpu_histogram_auto(x, 20) FROM auto_rows GROUP BY g;
SELECT * FROM auto_wrong;
RESET gpuagg.enabled;
RESET max_parallel_workers_per_gather;
-- states in parts, as other servers exchange them
SELECT count(*), count(*) FILTER (WHERE auto_actual(gpuagg_finish(state, 'gpu_histogram_auto(float8, int4)', NULL::gpuagg_state)) IS DISTINCT FROM expected) AS wrong
FROM (SELECT g, gpuagg_merge(state) AS state FROM (SELECT g, gpuagg_merge(gpuagg_pack('gpu_histogram_auto(float8, int4)', x, 20))::text::gpuagg_state AS state
	FROM auto_rows GROUP BY g, i % 5) p GROUP BY g) s JOIN auto_answers USING (g);
-- in windows
SELECT x, auto_actual(gpu_histogram_auto(x, 2) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)) FROM unnest('{1,2,3,50,NULL,inf}'::float8[]) x;

-- bins, information, quantiles
SELECT * FROM gpu_histogram_auto_bins((SELECT gpu_histogram_auto(x, 6) FROM unnest('{0.5,1,1,2,2.5,inf,nan,nan,-inf,NULL}'::float8[]) x));
-- bounds beyond the greatest float8: one bin's bounds hold each finite value, and no bin's bounds hold an infinity
SELECT nbins, b.bin, b.lower, b.upper, b.count FROM unnest(ARRAY[2, 4, 10]) nbins,
	LATERAL gpu_histogram_auto_bins((SELECT gpu_histogram_auto(x, nbins) FROM unnest('{-1.7976931348623157e308,0,1.7976931348623157e308,inf,-inf}'::float8[]) x)) b;
SELECT n, nbins, v, holding FROM auto_cases, unnest(ARRAY[2, 3, 10, 1000]) nbins, LATERAL unnest(x) v,
	LATERAL (SELECT count(*) AS holding FROM gpu_histogram_auto_bins((SELECT gpu_histogram_auto(w, nbins) FROM unnest(x) w)) b
		WHERE bin IS NOT NULL AND v >= lower AND v < upper) h
WHERE v IS NOT NULL AND holding <> CASE WHEN v IN ('inf', '-inf', 'nan') THEN 0 ELSE 1 END;
SELECT i.* FROM auto_cases, LATERAL gpu_histogram_auto_info((SELECT gpu_histogram_auto(v, 10) FROM unnest(x) v)) i ORDER BY n;
SELECT f, gpu_histogram_auto_quantile((SELECT gpu_histogram_auto(x, 6) FROM unnest('{0.5,1,1,2,2.5}'::float8[]) x), f) FROM unnest('{0,0.2,0.5,0.9,1}'::float8[]) f;
SELECT gpu_histogram_auto(x, 3) IS NULL AS none, gpu_histogram_auto_quantile(gpu_histogram_auto(NULL, 3), 0.5), gpu_histogram_auto_quantile(NULL, 0.5) FROM auto_rows WHERE false;
SELECT gpu_histogram_auto_quantile(gpu_histogram_auto(NULL, 3), 0.5) AS no_values, count(b) FROM (VALUES (1)) v LEFT JOIN gpu_histogram_auto_bins(NULL) b ON true GROUP BY ();

-- errors
-- a worker's errors have a context more than the leader's
\set SHOW_CONTEXT never
SELECT gpu_histogram_auto(x, 1) FROM auto_rows;
SELECT gpu_histogram_auto(x, 1000001) FROM auto_rows;
SELECT gpu_histogram_auto(x, NULL) FROM auto_rows;
SELECT gpu_histogram_auto(x, 2 + g) FROM auto_rows;
SELECT gpu_histogram_auto_quantile(gpu_histogram_auto(x, 3), 1.5) FROM auto_rows;
SELECT gpu_histogram_auto_quantile(gpu_histogram_auto(x, 3), 'nan') FROM auto_rows;
SELECT gpu_histogram_auto_bins(gpuagg_merge(gpuagg_pack('gpu_sum(int8)', 1::int8)));
SELECT gpuagg_merge(gpu_histogram_auto) FROM (SELECT gpu_histogram_auto(x, g + 2) FROM auto_rows GROUP BY g) s;

-- the form of a state, and states made by hand
SELECT gpu_histogram_auto(x, 3) FROM unnest('{1,2,NULL,inf,-inf,-inf,nan}'::float8[]) x;
CREATE FUNCTION pg_temp.try_auto(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN auto_actual(gpuagg_merge(h)) FROM (SELECT replace(state, ' ', '')::gpuagg_state AS h) s;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT what, pg_temp.try_auto('\x010d ' || head || ' ' || coalesce(range, '3ff0000000000000 4000000000000000') || ' ' || bins) FROM (VALUES
	('valid', '00000003 0000000000000001 0000000000000002 0000000000000001 0000000000000001', NULL, '0000000000000001 0000000000000000 0000000000000001'),
	('no values', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', '7ff0000000000000 fff0000000000000', ''),
	('only NULL', '00000003 0000000000000007 0000000000000000 0000000000000000 0000000000000000', '7ff0000000000000 fff0000000000000', ''),
	('bins without a range', '00000003 0000000000000007 0000000000000000 0000000000000000 0000000000000000', '7ff0000000000000 fff0000000000000', '0000000000000001'),
	('one bin', '00000001 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000002'),
	('negative bins', 'ffffffff 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000002'),
	('many bins', '000f4241 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000002'),
	('too few bins', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000001 0000000000000001'),
	('too many bins', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000001 0000000000000000 0000000000000001 0000000000000001'),
	('nothing at the least', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000000 0000000000000000 0000000000000001'),
	('nothing at the greatest', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000001 0000000000000000 0000000000000000'),
	('negative count', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000001 ffffffffffffffff 0000000000000001'),
	('negative NULLs', '00000003 ffffffffffffffff 0000000000000000 0000000000000000 0000000000000000', NULL, '0000000000000001 0000000000000000 0000000000000001'),
	('sum overflows', '00000003 0000000000000000 7fffffffffffffff 0000000000000000 0000000000000000', NULL, '0000000000000001 0000000000000000 0000000000000001'),
	('range backwards', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', '4000000000000000 3ff0000000000000', '0000000000000001 0000000000000000 0000000000000001'),
	('range with NaN', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', '3ff0000000000000 7ff8000000000000', '0000000000000001 0000000000000000 0000000000000001'),
	('infinite range', '00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000', '3ff0000000000000 7ff0000000000000', '0000000000000001 0000000000000000 0000000000000001'),
	('one value is two', '00000002 0000000000000000 0000000000000000 0000000000000000 0000000000000000', 'bff0000000000000 bfefffffffffffff', '0000000000000001'),
	('short', '00000003 0000000000000000', '', '')) v(what, head, range, bins);
-- sums that overflow
SELECT gpuagg_merge(replace('\x010d 00000003 0000000000000000 0000000000000000 0000000000000000 0000000000000000 3ff0000000000000 3ff0000000000000 7fffffffffffffff', ' ', '')::gpuagg_state)
FROM generate_series(1, 2);
DROP VIEW auto_wrong;
DROP TABLE auto_rows, auto_answers, auto_cases;
