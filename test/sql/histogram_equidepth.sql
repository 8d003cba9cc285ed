-- gpu_histogram_equidepth: compared with its definition by row_number, as a plain aggregate, in the custom scan, in parallel and from merged
-- states; states and results made by hand.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;

-- the upper bounds are the values with the numbers ceil(i * n / nbins); a value belongs to the first bin whose bound it does not exceed
CREATE FUNCTION depth_expected(x float8[], nbins int) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT v + 0.0 AS v, row_number() OVER (ORDER BY v) AS r, count(*) OVER () AS n FROM unnest(x) v WHERE v IS NOT NULL),
		bounds AS MATERIALIZED (SELECT DISTINCT v AS upper FROM v JOIN generate_series(1, nbins) i ON r = (i * n + nbins - 1) / nbins)
	SELECT nullif(string_agg(format('%s..%s:%s', least_v, upper, c), ' ' ORDER BY upper), '')
	FROM (SELECT upper, min(v) AS least_v, count(*) AS c FROM (SELECT v, (SELECT min(upper) FROM bounds WHERE upper >= v) AS upper FROM v) s GROUP BY 1) b $$;
CREATE FUNCTION depth_actual(h gpuagg_equidepth) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT string_agg(format('%s..%s:%s', lower, upper, count), ' ' ORDER BY bin) FROM gpu_histogram_equidepth_bins(h) $$;
SELECT x, nbins, depth_expected(x, nbins) IS NOT DISTINCT FROM depth_actual(h) AS same, depth_actual(h)
FROM unnest(ARRAY['1,2,3,4,5,6,7', '1,1,1,1,1,2,3', '5', '0,-0', 'nan,1,inf,-inf,NULL,NULL,nan', '3,3,3', '-5e-324,5e-324,1.7976931348623157e308']) t,
	unnest(ARRAY[1, 3, 10]) nbins, LATERAL (SELECT ('{' || t || '}')::float8[] AS x) a, LATERAL (SELECT gpu_histogram_equidepth(v, nbins) AS h FROM unnest(x) v) b;

-- Random values, half of them with many ties: how many arrays give another histogram, also in another order or merged of parts.
CREATE FUNCTION depth_random(cases int, seed float8) RETURNS TABLE (cases_tried bigint, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	values float8[];
	nbins int;
	expected text;
	few float8;
BEGIN
	PERFORM setseed(seed);
	cases_tried := cases;
	wrong := 0;
	FOR i IN 1 .. cases LOOP
		nbins := 1 + floor(random() * random() * 40);
		few := power(10::float8, floor(random() * 5)::float8);
		values := ARRAY(SELECT CASE floor(random() * 30) WHEN 0 THEN NULL WHEN 1 THEN (ARRAY['inf', '-inf', 'nan', '-0', '5e-324', '1.7976931348623157e308'])[1 + floor(random() * 6)]::float8
				ELSE floor((random() - 0.3) * few) / CASE WHEN few > 100 THEN 7 ELSE 1 END END
			FROM generate_series(1, 1 + floor(random() * random() * 120)::int + i * 0));
		expected := depth_expected(values, nbins);
		IF expected IS DISTINCT FROM (SELECT depth_actual(gpu_histogram_equidepth(v, nbins)) FROM unnest(values) v)
			OR (SELECT gpu_histogram_equidepth(v, nbins)::text IS DISTINCT FROM gpu_histogram_equidepth(v, nbins ORDER BY v DESC)::text
				OR gpu_histogram_equidepth(v, nbins)::text IS DISTINCT FROM (SELECT gpuagg_finish(gpuagg_merge(s), 'gpu_histogram_equidepth(float8, int4)', NULL::gpuagg_equidepth)::text
					FROM (SELECT gpuagg_merge(gpuagg_pack('gpu_histogram_equidepth(float8, int4)', v, nbins))::text::gpuagg_state AS s
						FROM unnest(values) WITH ORDINALITY u(v, n) GROUP BY n % 3) s) FROM unnest(values) v) THEN
			wrong := wrong + 1;
		END IF;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM depth_random(100, 0.5);

-- groups of a table: custom scan, plain aggregates, in parallel
CREATE TABLE depth_rows AS SELECT i, i % 5 AS g, CASE WHEN i % 97 = 0 THEN NULL WHEN i % 101 = 0 THEN 'nan' WHEN i % 103 = 0 THEN '-inf'
	ELSE (i * 7919::int8 % CASE i % 5 WHEN 0 THEN 10007 WHEN 1 THEN 11 ELSE 400 END) / 64.0 - 30 END::float8 AS x FROM generate_series(1, 30000) i;
ANALYZE depth_rows;
CREATE TABLE depth_answers AS SELECT g, depth_expected(array_agg(x), 12) AS expected FROM depth_rows GROUP BY g;
CREATE VIEW depth_wrong AS SELECT g FROM (SELECT g, gpu_histogram_equidepth(x, 12) AS h FROM depth_rows GROUP BY g) s FULL JOIN depth_answers a USING (g)
WHERE depth_actual(h) IS DISTINCT FROM expected;
SET gpuagg.require = forbid;
SELECT * FROM depth_wrong;
CREATE TEMP TABLE depth_plain AS SELECT g, i % 2 AS odd, gpu_histogram_equidepth(x, 12)::text AS h FROM depth_rows GROUP BY GROUPING SETS ((g, i % 2), (g), ());
SET gpuagg.require = require;
CREATE TEMP TABLE depth_custom AS SELECT g, gpu_histogram_equidepth(x, 12) AS h FROM depth_rows GROUP BY g;
CREATE TEMP TABLE depth_sets AS SELECT g, i % 2 AS odd, gpu_histogram_equidepth(x, 12)::text AS h FROM depth_rows GROUP BY GROUPING SETS ((g, i % 2), (g), ());
RESET gpuagg.require;
SELECT g FROM depth_custom FULL JOIN depth_answers a USING (g) WHERE depth_actual(h) IS DISTINCT FROM expected;
SELECT count(*) AS same FROM (TABLE depth_sets INTERSECT TABLE depth_plain) s;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM depth_wrong;
SET gpuagg.enabled = off;
SELECT * FROM depth_wrong;
RESET gpuagg.enabled;
RESET max_parallel_workers_per_gather;
SELECT x, gpu_histogram_equidepth(x, 2) OVER (ORDER BY x ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM unnest('{1,2,2,3,50,NULL,inf}'::float8[]) x;
SELECT bin, lower, upper, count, rtrim(bar) AS bar FROM gpu_histogram_equidepth_bins((SELECT gpu_histogram_equidepth(x, 3) FROM depth_rows WHERE g = 0));
SELECT gpu_histogram_equidepth(x, 3) IS NULL AS none FROM depth_rows WHERE x IS NULL;
SELECT count(*) FROM gpu_histogram_equidepth_bins(NULL);

-- errors
-- a worker's errors have a context more than the leader's
\set SHOW_CONTEXT never
SELECT gpu_histogram_equidepth(x, 0) FROM depth_rows;
SELECT gpu_histogram_equidepth(x, 10001) FROM depth_rows;
SELECT gpu_histogram_equidepth(x, NULL) FROM depth_rows;
SELECT gpu_histogram_equidepth(x, 2 + g) FROM depth_rows;

-- results and states made by hand
CREATE FUNCTION pg_temp.try_depth(h text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	RETURN depth_actual(h::gpuagg_equidepth);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(': ', sqlerrm, nullif(detail, ''));
END $$;
SELECT h, pg_temp.try_depth(h) FROM unnest(ARRAY['("{1,2}","{1,3}","{5,6}")', '("{1}","{nan}",{0})', '("{1}","{1,3}","{5,6}")', '(,"{1,3}","{5,6}")', '("{1,NULL}","{1,3}","{5,6}")',
	'("{1,2}","{1,3}","{5,-6}")', '("{1,1}","{1,3}","{5,6}")', '("{1,4}","{1,3}","{5,6}")', '("{{1,2}}","{1,3}","{5,6}")', '("{}","{}","{}")', '("{nan}","{1}",{5})', '(,,)']) h;
CREATE FUNCTION pg_temp.try_state(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN depth_actual(gpuagg_finish(replace(state, ' ', '')::gpuagg_state, 'gpu_histogram_equidepth(float8, int4)', NULL::gpuagg_equidepth));
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT gpuagg_merge(gpuagg_pack('gpu_histogram_equidepth(float8, int4)', x, 3)) FROM unnest('{1,NULL,nan}'::float8[]) x;
SELECT what, pg_temp.try_state('\x010e ' || state) FROM (VALUES ('valid', '00000002 3ff0000000000000 7ff8000000000001 8000000000000000 fff0000000000000'), ('no values', '00000002'),
	('no bins', '00000000 3ff0000000000000'), ('negative bins', '80000000 3ff0000000000000'), ('many bins', '00002711 3ff0000000000000'), ('half a value', '00000002 3ff0000000000000 3ff00000'),
	('short', '0000')) v(what, state);
DROP VIEW depth_wrong;
DROP TABLE depth_rows, depth_answers;
