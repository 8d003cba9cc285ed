-- gpu_exp_histogram: its bounds compared with powers of 2 in numeric, its buckets with the rows between these bounds, its scale with its
-- definition; merging of histograms, as a plain aggregate, in the custom scan, in parallel; input as exporters store it, and hostile input;
-- quantiles, also of Prometheus' classic histograms.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;

-- bounds are the doubles nearest to 2 ^ (i / 2 ^ scale), at which the bucket changes
SELECT scale, count(*), count(*) FILTER (WHERE upper <> power(2::numeric(80, 60), (bucket + 1)::numeric(80, 60) / (2 ^ scale)::numeric)::float8) AS wrong
FROM generate_series(1, 20) scale, generate_series(1, 7) i, LATERAL gpu_exp_histogram_buckets(gpu_exp_histogram_of(scale, 0, (i * 7919 * 104729::int8 % (1 << (scale + 1)))::int4 - (1 << scale), '{1}'))
GROUP BY scale ORDER BY scale;
CREATE FUNCTION exp_bucket_of(x float8, scale int) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT positive_offset FROM gpu_exp_histogram_info((SELECT gpu_exp_histogram(x, scale))) $$;
SELECT count(*), count(*) FILTER (WHERE exp_bucket_of(upper, scale) <> bucket OR exp_bucket_of(lower, scale) <> bucket - 1) AS wrong_at_bounds,
	count(*) FILTER (WHERE exp_bucket_of((upper::numeric + lower::numeric)::float8 / 2, scale) <> bucket) AS wrong_between
FROM generate_series(-3, 20) scale, generate_series(-4, 4) i, LATERAL gpu_exp_histogram_buckets(gpu_exp_histogram_of(scale, 0, (i * 37 * power(2, scale))::int4, '{1}'));
-- all bounds from 1 to 2 at the scales whose buckets are looked up in tables, and one more, with the doubles one bit above
SELECT count(*), count(*) FILTER (WHERE exp_bucket_of(upper, scale) <> i OR exp_bucket_of(lower, scale) <> i - 1 OR exp_bucket_of(lower + 2 ^ (-52)::float8, scale) <> i) AS wrong
FROM generate_series(1, 9) scale, generate_series(0, (1 << scale) - 1) i, LATERAL gpu_exp_histogram_buckets(gpu_exp_histogram_of(scale, 0, i, '{1}'));
-- next to a bound are the doubles one bit away
SELECT exp_bucket_of(1, 3), exp_bucket_of(1.0000000000000002, 3), exp_bucket_of(0.9999999999999999, 3), exp_bucket_of(1.4142135623730951, 1), exp_bucket_of(1.4142135623730954, 1),
	exp_bucket_of(1, 20), exp_bucket_of(1.0000000000000002, 20), exp_bucket_of(1.7976931348623157e308, 20), exp_bucket_of(5e-324, 20);
SELECT scale, bucket, lower, upper FROM generate_series(-10, 20, 5) scale, unnest('{5e-324,3e-323,2.2250738585072014e-308,1.7976931348623157e308,1}'::float8[]) x,
	LATERAL gpu_exp_histogram_buckets((SELECT gpu_exp_histogram(v, scale) FROM unnest(ARRAY[x]) v)) WHERE x <= lower OR x > upper;
SELECT scale, bucket, lower, upper FROM unnest('{-10,-1,2}'::int[]) scale, unnest('{5e-324,1e-323,1.7976931348623157e308}'::float8[]) x, LATERAL gpu_exp_histogram_buckets((SELECT gpu_exp_histogram(v, scale) FROM unnest(ARRAY[x]) v));

-- The histogram by definition: the largest scale, up to the wanted one, at which 160 buckets are enough for each sign, and the values of each
-- bucket at scale 20, shifted.
CREATE FUNCTION exp_expected(x float8[], wanted int[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	WITH v AS MATERIALIZED (SELECT v, CASE WHEN v NOT IN (0, 'nan', 'inf', '-inf') THEN exp_bucket_of(abs(v), 20) END AS i FROM unnest(x) v WHERE v IS NOT NULL),
		s AS MATERIALIZED (SELECT max(scale) AS scale FROM generate_series(-10, (SELECT min(w) FROM unnest(x, wanted) u(v, w) WHERE v IS NOT NULL)) scale
			WHERE NOT EXISTS (SELECT FROM v WHERE i IS NOT NULL GROUP BY v > 0 HAVING (max(i) >> (20 - scale))::int8 - (min(i) >> (20 - scale)) >= 160))
	SELECT concat_ws(' ', (SELECT scale FROM s), count(*) FILTER (WHERE v = 0), count(*) FILTER (WHERE v = '-inf'), count(*) FILTER (WHERE v = 'inf'), count(*) FILTER (WHERE v = 'nan'),
		(SELECT string_agg(format('%s%s:%s', sign, b, c), ' ' ORDER BY sign COLLATE "C", b) FROM (SELECT CASE WHEN v < 0 THEN '-' ELSE '+' END AS sign, i >> (20 - scale) AS b, count(*) AS c
			FROM v, s WHERE i IS NOT NULL GROUP BY 1, 2) q))
	FROM v HAVING count(*) > 0 $$;
CREATE FUNCTION exp_actual(h gpuagg_state) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT concat_ws(' ', scale, zero_count, negative_infinities, infinities, nans, (SELECT string_agg(format('%s%s:%s', sign, b, c), ' ' ORDER BY sign COLLATE "C", b) FROM (
			SELECT '+' AS sign, positive_offset + n - 1 AS b, c FROM unnest(positive_counts) WITH ORDINALITY u(c, n)
			UNION ALL SELECT '-', negative_offset + n - 1, c FROM unnest(negative_counts) WITH ORDINALITY u(c, n)) q WHERE c > 0))
	FROM gpu_exp_histogram_info(h) WHERE scale IS NOT NULL $$;
SELECT x, scale, exp_actual(h) AS histogram, exp_actual(h) IS NOT DISTINCT FROM exp_expected(x, array_fill(scale, ARRAY[cardinality(x)])) AS same
FROM unnest(ARRAY['1', '0,-0', '1,2,3,4', '-1,-2,1', 'nan,inf,-inf,NULL,1', '1e-300,1e300', '5e-324,1.7976931348623157e308,-5e-324,-1.7976931348623157e308']) t, unnest('{-10,0,20}'::int[]) scale,
	LATERAL (SELECT ('{' || t || '}')::float8[] AS x) a, LATERAL (SELECT gpu_exp_histogram(v, scale) AS h FROM unnest(x) v) b;

-- Random values: how many arrays give another histogram, also in another order, with scales that differ, or merged of parts.
CREATE FUNCTION exp_random(cases int, seed float8) RETURNS TABLE (cases_tried bigint, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	values float8[];
	scales int[];
	expected text;
	range float8;
	scale int;
BEGIN
	PERFORM setseed(seed);
	cases_tried := cases;
	wrong := 0;
	FOR i IN 1 .. cases LOOP
		range := 600 * power(random(), 4);
		scale := floor(random() * 31) - 10;
		values := ARRAY(SELECT CASE floor(random() * 25) WHEN 0 THEN NULL WHEN 1 THEN (ARRAY['inf', '-inf', 'nan', '-0', '5e-324', '-1.7976931348623157e308', '1'])[1 + floor(random() * 7)]::float8
				WHEN 2 THEN 0 WHEN 3 THEN power(2::float8, floor(random() * 20)) WHEN 4 THEN power(2::float8, (floor(random() * 20) / 8)::float8)
				ELSE power(10::float8, (random() - 0.5) * range) * CASE WHEN random() < 0.3 THEN -1 ELSE 1 END END
			FROM generate_series(1, 1 + floor(random() * random() * 60)::int + i * 0));
		scales := ARRAY(SELECT scale + CASE WHEN i % 3 = 0 AND scale < 20 THEN floor(random() * 2)::int ELSE 0 END FROM generate_subscripts(values, 1));
		expected := exp_expected(values, scales);
		IF expected IS DISTINCT FROM (SELECT exp_actual(gpu_exp_histogram(v, w)) FROM unnest(values, scales) u(v, w))
			OR (SELECT gpu_exp_histogram(v, w)::text IS DISTINCT FROM gpu_exp_histogram(v, w ORDER BY abs(v) DESC, w)::text
				OR gpu_exp_histogram(v, w)::text IS DISTINCT FROM (SELECT gpu_exp_histogram_merge(h)::text FROM (SELECT gpu_exp_histogram(v, w)::text::gpuagg_state AS h
					FROM unnest(values, scales) WITH ORDINALITY u(v, w, n) GROUP BY n % 3) s) FROM unnest(values, scales) u(v, w))
			-- every finite value is in its bucket, also where a bound is infinite
			OR EXISTS (SELECT FROM gpu_exp_histogram_buckets((SELECT gpu_exp_histogram(v, w) FROM unnest(values, scales) u(v, w))) b
				WHERE count <> (SELECT count(*) FROM unnest(values) v WHERE CASE WHEN bucket IS NULL THEN v = lower WHEN abs(v) = 'inf' THEN false WHEN lower < 0 THEN v >= lower AND v < upper ELSE v > lower AND v <= upper END))
			-- a quantile is in the bucket of percentile_disc
			OR EXISTS (SELECT FROM unnest('{0,0.1,0.5,0.9,1}'::float8[]) f,
					(SELECT gpu_exp_histogram(v, w) AS h, percentile_disc('{0,0.1,0.5,0.9,1}'::float8[]) WITHIN GROUP (ORDER BY v) AS p FROM unnest(values, scales) u(v, w)) s,
					LATERAL (SELECT p[array_position('{0,0.1,0.5,0.9,1}'::float8[], f)] AS p, gpu_exp_histogram_quantile(h, f) AS q) e
				WHERE (e.p IS NULL) <> (e.q IS NULL) OR e.q IS NOT NULL AND NOT EXISTS (SELECT FROM gpu_exp_histogram_buckets(h) b
					WHERE e.q BETWEEN b.lower AND b.upper AND e.p BETWEEN b.lower AND b.upper)) THEN
			wrong := wrong + 1;
		END IF;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM exp_random(40, 0.5);

-- groups of a table: custom scan, plain aggregates, in parallel
CREATE TABLE exp_rows AS SELECT i, i % 7 AS g, CASE WHEN i % 97 = 0 THEN NULL WHEN i % 101 = 0 THEN 'nan' WHEN i % 103 = 0 THEN '-inf' WHEN i % 107 = 0 THEN 'inf'
	ELSE ((i * 7919::int8 % 1009) / 64.0 - 3) * power(10, i % 7 * 2 - 9) END::float8 AS x FROM generate_series(1, 3000) i;
ANALYZE exp_rows;
CREATE TABLE exp_answers AS SELECT g, exp_expected(array_agg(x), array_agg(5)) AS expected FROM exp_rows GROUP BY g;
CREATE VIEW exp_wrong AS SELECT g FROM (SELECT g, gpu_exp_histogram(x, 5) AS h FROM exp_rows GROUP BY g) s FULL JOIN exp_answers a USING (g)
WHERE exp_actual(h) IS DISTINCT FROM expected;
SET gpuagg.require = forbid;
SELECT * FROM exp_wrong;
CREATE TEMP TABLE exp_plain AS SELECT g, i % 2 AS odd, gpu_exp_histogram(x, 5)::text AS h FROM exp_rows GROUP BY GROUPING SETS ((g, i % 2), (g), ());
SET gpuagg.require = require;
CREATE TEMP TABLE exp_custom AS SELECT g, gpu_exp_histogram(x, 5) AS h FROM exp_rows GROUP BY g;
CREATE TEMP TABLE exp_sets AS SELECT g, i % 2 AS odd, gpu_exp_histogram(x, 5)::text AS h FROM exp_rows GROUP BY GROUPING SETS ((g, i % 2), (g), ());
CREATE TABLE exp_parts AS SELECT g, i % 4 AS part, gpu_exp_histogram(x, i % 4 + 5) AS h FROM exp_rows GROUP BY g, i % 4;
CREATE TEMP TABLE exp_merged AS SELECT g, gpu_exp_histogram_merge(h) AS h FROM exp_parts GROUP BY g;
RESET gpuagg.require;
SELECT g FROM exp_custom FULL JOIN exp_answers a USING (g) WHERE exp_actual(h) IS DISTINCT FROM expected;
SELECT count(*) AS same FROM (TABLE exp_sets INTERSECT TABLE exp_plain) s;
SELECT g FROM exp_merged FULL JOIN exp_answers a USING (g) WHERE exp_actual(h) IS DISTINCT FROM expected;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM exp_wrong;
SELECT (SELECT gpu_exp_histogram_merge(h)::text FROM exp_parts) = (SELECT gpu_exp_histogram(x, 5)::text FROM exp_rows) AS merged;
SET gpuagg.enabled = off;
SELECT * FROM exp_wrong;
SELECT (SELECT gpu_exp_histogram_merge(h)::text FROM exp_parts) = (SELECT gpu_exp_histogram(x, 5)::text FROM exp_rows) AS merged;
RESET gpuagg.enabled;
RESET max_parallel_workers_per_gather;
SELECT x, exp_actual(gpu_exp_histogram(x, 0) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)) FROM unnest('{1,2,3,50,NULL,inf}'::float8[]) x;

-- as exporters store it, and back; more buckets than a histogram may have
SELECT bucket, lower, upper, count, rtrim(bar) AS bar FROM gpu_exp_histogram_buckets(gpu_exp_histogram_of(0, 3, -1, '{1,0,4}', 2, '{2,1}'));
SELECT i.* FROM (VALUES (gpu_exp_histogram_of(3, 7, -5, '{0,0,2,0,1,0}', -1, '{}')), (gpu_exp_histogram_of(20, NULL, NULL, '{1}')), (gpu_exp_histogram_of(0, 1, 0, NULL, 1, '{5}')),
	(gpu_exp_histogram_of(-10, 0, -2, '{1,1,1}', -2, '{1,1,1}')), (gpu_exp_histogram_of(0, 0, 0, '{}'))) v(h), gpu_exp_histogram_info(h) i;
SELECT scale, positive_offset, cardinality(positive_counts), negative_counts FROM gpu_exp_histogram_info(gpu_exp_histogram_of(5, 0, -100, array_fill(1::int8, ARRAY[1000]), 64, '{3,4,0,5}'));
SELECT gpu_exp_histogram_of(NULL, 1, 0, '{1}') IS NULL AS none, gpu_exp_histogram_quantile(gpu_exp_histogram_of(0, 0, 0, '{}'), 0.5) AS no_values, gpu_exp_histogram_merge(NULL) IS NULL AS no_histograms,
	gpu_exp_histogram(NULL, 99) IS NULL AS no_rows;
CREATE FUNCTION pg_temp.try_exp(arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	answer text;
BEGIN
	EXECUTE format('SELECT exp_actual(gpu_exp_histogram_of(%s))', arguments) INTO answer;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(': ', sqlerrm, nullif(detail, ''));
END $$;
SELECT arguments, pg_temp.try_exp(arguments) FROM unnest(ARRAY['21, 0, 0, NULL', '-11, 0, 0, NULL', '-2147483648, 0, 0, NULL', '0, -1, 0, NULL', '0, 0, 0, ''{1,-1}''', '0, 0, 0, ''{1,NULL}''', '0, 0, 0, ''{{1}}''',
	'0, 0, 1023, ''{1}''', '0, 0, 1023, ''{1,0}''', '0, 0, 1023, ''{0,1}''', '0, 0, 2147483647, ''{1}''', '0, 0, 2147483647, ''{0,0,1}''', '0, 0, 0, NULL, -2147483648, ''{1}''', '0, 0, -1075, ''{1}''', '0, 0, -1076, ''{1}''',
	'20, 0, 1073741823, ''{1}''', '20, 0, 1073741824, ''{1}''', '0, 9223372036854775807, 0, ''{1}''', '0, 0, 0, ''{9223372036854775807}'', 0, ''{1}''']) arguments;
-- a worker's errors have a context more than the leader's
\set SHOW_CONTEXT never
SELECT gpu_exp_histogram(x, 21) FROM exp_rows;
SELECT gpu_exp_histogram(x, NULL) FROM exp_rows;
SELECT gpu_exp_histogram_merge(h) FROM (VALUES (gpu_exp_histogram_of(0, 1, 0, '{}')), ((SELECT gpu_histogram_auto(1, 3)))) v(h);
SELECT gpu_exp_histogram_merge(gpu_exp_histogram_of(i, 9223372036854775807, 0, '{}')) FROM generate_series(1, 2) i;
SELECT gpu_exp_histogram_quantile(gpu_exp_histogram(x, 3), -0.1) FROM exp_rows;
SELECT f, gpu_exp_histogram_quantile(gpu_exp_histogram_of(0, 2, 0, '{2,4}', 0, '{2}'), f)::numeric(20, 12) FROM unnest('{0,0.1,0.2,0.3,0.4,0.5,0.7,0.8,1}'::float8[]) f;

-- states made by hand
SELECT gpu_exp_histogram(x, 1) FROM unnest('{1,3,0,-5,nan,inf,-inf}'::float8[]) x;
CREATE FUNCTION pg_temp.try_state(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN exp_actual(replace(state, ' ', '')::gpuagg_state);
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT what, left(pg_temp.try_state('\x010f ' || coalesce(head, '00000000 0000000000000001 0000000000000000 0000000000000000 0000000000000000') || ' ' || coalesce(negative, '00000000 00000000') || ' ' || positive), 60) AS try_state FROM (VALUES
	('valid', NULL, NULL, '00000005 00000003 0000000000000001 0000000000000000 0000000000000001'),
	('no values', '00000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '00000000 00000000'),
	('scale 21', '00000015 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '00000000 00000000'),
	('scale -11', 'fffffff5 0000000000000000 0000000000000000 0000000000000000 0000000000000000', NULL, '00000000 00000000'),
	('negative zeros', '00000000 ffffffffffffffff 0000000000000000 0000000000000000 0000000000000000', NULL, '00000000 00000000'),
	('sum overflows', '00000000 7fffffffffffffff 0000000000000000 0000000000000000 0000000000000001', NULL, '00000000 00000000'),
	('no counts', NULL, NULL, '00000005 00000000'), ('no count at the end', NULL, NULL, '00000005 00000002 0000000000000001 0000000000000000'),
	('negative count', NULL, NULL, '00000005 00000001 ffffffffffffffff'), ('negative number', NULL, NULL, '00000005 ffffffff'), ('short', NULL, NULL, '00000005 00000002 0000000000000001'),
	('long', NULL, NULL, '00000005 00000001 0000000000000001 00'), ('beyond all values', NULL, NULL, '00000400 00000001 0000000000000001'), ('below all values', NULL, 'fffffbcc 00000001 0000000000000001', '00000000 00000000'),
	('160 buckets', NULL, NULL, '00000005 000000a0 ' || repeat('0000000000000001', 160)), ('161 buckets', NULL, NULL, '00000005 000000a1 ' || repeat('0000000000000001', 161))) v(what, head, negative, positive);

-- bounds of 0 have no sign; no quantile of finite values is infinite
SELECT b.* FROM gpu_exp_histogram_buckets((SELECT gpu_exp_histogram(x, 0) FROM (VALUES (-5e-324::float8), (5e-324)) v(x))) b;
SELECT f, gpu_exp_histogram_quantile(h, f) FROM (SELECT gpu_exp_histogram(x, 0) AS h FROM (VALUES (-5e-324::float8), (1.7e308)) v(x)) q, unnest('{0,0.5,1}'::float8[]) f;

-- Prometheus' classic histograms: histogram_quantile in SQL
CREATE FUNCTION le_expected(bounds float8[], counts float8[], f float8) RETURNS float8 LANGUAGE sql AS $$
	SELECT CASE WHEN b = n THEN bounds[n - 1] WHEN b = 1 AND bounds[1] <= 0 THEN bounds[1]
		ELSE start + (bounds[b] - start) * ((f * counts[n] - before) / (counts[b] - before)) END
	FROM (SELECT n, b, CASE b WHEN 1 THEN 0 ELSE counts[b - 1] END AS before, CASE b WHEN 1 THEN 0 ELSE bounds[b - 1] END AS start
		FROM (SELECT cardinality(bounds) AS n, min(i) AS b FROM generate_subscripts(bounds, 1) i WHERE counts[i] > 0 AND counts[i] >= f * counts[cardinality(bounds)] OR i = cardinality(bounds)) s) q
	WHERE counts[n] > 0 $$;
SELECT count(*), count(*) FILTER (WHERE ours IS DISTINCT FROM le_expected(bounds, counts, f)) AS wrong, count(ours) AS answers FROM (SELECT *, gpu_le_histogram_quantile(bounds, counts, f) AS ours
	FROM (VALUES ('{0.1,0.5,1,inf}'::float8[], '{2,5,9,10}'::float8[]), ('{0.1,inf}', '{0,3}'), ('{0.1,inf}', '{3,3}'), ('{-5,-1,2,inf}', '{0,4,4,8}'), ('{-5,-1,2,inf}', '{4,4,4,8}'), ('{1,2,4,inf}', '{0,0,0,0}'),
		('{1,2,4,8,inf}', '{0,0.5,0.5,1.25,1.25}'), ('{1e-320,1e300,inf}', '{1,1e300,1e301}')) v(bounds, counts), unnest('{0,0.1,0.25,0.5,0.75,0.9,0.99,1}'::float8[]) f) q;
SELECT gpu_le_histogram_quantile('{0.1,0.5,1,inf}', '{2,5,9,10}'::int8[], 0.5), gpu_le_histogram_quantile(NULL, '{1}'::int8[], 0.5);
CREATE FUNCTION pg_temp.try_le(arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	answer text;
BEGIN
	EXECUTE format('SELECT gpu_le_histogram_quantile(%s)', arguments) INTO answer;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(': ', sqlerrm, nullif(detail, ''));
END $$;
SELECT arguments, pg_temp.try_le(arguments) FROM unnest(ARRAY['''{}'', ''{}''::int8[], 0.5', '''{inf}'', ''{1}''::int8[], 0.5', '''{1,2}'', ''{1,2}''::int8[], 0.5', '''{1,nan}'', ''{1,2}''::int8[], 0.5', '''{nan,inf}'', ''{1,2}''::int8[], 0.5',
	'''{2,1,inf}'', ''{1,2,3}''::int8[], 0.5', '''{1,1,inf}'', ''{1,2,3}''::int8[], 0.5', '''{1,inf}'', ''{1,2,3}''::int8[], 0.5', '''{1,inf}'', ''{2,1}''::int8[], 0.5', '''{1,inf}'', ''{-1,1}''::int8[], 0.5',
	'''{1,inf}'', ''{1,nan}''::float8[], 0.5', '''{1,inf}'', ''{1,inf}''::float8[], 0.5', '''{1,inf}'', ''{1,NULL}''::int8[], 0.5', '''{NULL,inf}'', ''{1,2}''::int8[], 0.5', '''{{1,inf}}'', ''{1,2}''::int8[], 0.5',
	'''{1,inf}'', ''{{1,2}}''::int8[], 0.5', '''{1,inf}'', ''{1,2}''::int4[], 0.5', '''{1,inf}'', ''{1,2}''::int8[], 1.5', '''{1,inf}'', ''{1,2}''::int8[], ''nan''']) arguments;
DROP VIEW exp_wrong;
DROP TABLE exp_rows, exp_answers, exp_parts;
