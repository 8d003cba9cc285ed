-- gpu_value_counts, gpu_top_k, gpu_entropy and gpu_mad: compared with core's GROUP BY and percentile_cont, in the custom scan, as plain
-- aggregates and in parallel, over all types; NULLs, ties, errors, states made by hand.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE TYPE taste AS ENUM ('sour', 'sweet', 'bitter');
CREATE DOMAIN grade AS int CHECK (value < 1000);
CREATE TABLE value_counted AS
SELECT i % 13 AS g,
	CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 7919 % 11) - 5 END::int2 AS i2,
	CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 104729 % 97) - 40 END::int4 AS i4,
	CASE i % 50 WHEN 0 THEN NULL WHEN 1 THEN 9223372036854775807 WHEN 2 THEN -9223372036854775808 ELSE i * 7919 % 211 END::int8 AS i8,
	(ARRAY['-0', '0', 'nan', '-inf', 'inf', '1.5', NULL, (i % 9)::text])[1 + i * 37 % 8]::float4 AS f4,
	(ARRAY['0', '-0', 'nan', 'inf', '-1e300', NULL, (i % 9)::text])[1 + i * 41 % 7]::float8 AS f8,
	(i * 7919 % 1009 / 8.0)::float8 AS x,
	(ARRAY['infinity', '-infinity', (date '2026-01-01' + i % 9)::text, NULL])[1 + i * 43 % 4]::date AS d,
	(ARRAY['infinity', '-infinity', (timestamp '2026-01-01' + i % 9 * interval '1 s')::text, NULL])[1 + i * 47 % 4]::timestamp AS ts,
	make_time(i % 24, i % 60, 0) AS tm,
	(ARRAY[i % 50 / 4.0, 'NaN', 1e30, NULL])[1 + i * 59 % 4]::numeric(40, 2) AS n,
	(ARRAY['a' || i % 30, 'B', NULL, repeat('b', 3000) || i % 5])[1 + i * 61 % 4] AS s,
	(ARRAY['a' || i % 30, 'B', '"', NULL])[1 + i * 61 % 4] COLLATE "C" AS c,
	(ARRAY[true, false, NULL])[1 + i * 67 % 3] AS b,
	(ARRAY['sour', 'sweet', 'bitter'])[1 + i * 7 % 3]::taste AS e,
	(i * 31 % 70)::grade AS gr, make_interval(hours => i % 9) AS iv, md5((i % 9)::text)::uuid AS u, (i % 9)::oid AS o, ARRAY[i % 3, NULL] AS arr,
	jsonb_build_object('k', i % 4) AS j, int4range(i % 3, 9) AS r, (i % 5)::text::xid AS xid
FROM generate_series(1, 500) i;
INSERT INTO value_counted (g) SELECT 100 + i FROM generate_series(1, 2) i;
ANALYZE value_counted;

-- The calls whose answers differ from those of plain SQL, as text: of 0 and -0, which are equal, both show -0.
CREATE FUNCTION wrong_counts(names text[]) RETURNS TABLE (call text, groups bigint) LANGUAGE plpgsql AS $$
DECLARE
	value text;
	k int;
BEGIN
	FOREACH value IN ARRAY names LOOP
		FOREACH k IN ARRAY ARRAY[0, 1, 4] LOOP
			call := CASE k WHEN 0 THEN format('gpu_value_counts(%I)', value) ELSE format('gpu_value_counts(%I, %s)', value, k) END;
			EXECUTE format($q$
				WITH ours AS (SELECT g, %1$s AS r, %1$s FILTER (WHERE i2 > 0) AS f, gpu_top_k(%2$I, 300) AS top, gpu_entropy(%2$I) AS h FROM value_counted GROUP BY g),
					counts AS (SELECT g, count(*) AS c, count(*) FILTER (WHERE i2 > 0) AS fc,
							coalesce(mode() WITHIN GROUP (ORDER BY %2$I) FILTER (WHERE %2$I::text = '-0'), mode() WITHIN GROUP (ORDER BY %2$I)) AS v
						FROM value_counted GROUP BY g, %2$I),
					numbered AS (SELECT *, row_number() OVER (PARTITION BY g ORDER BY c DESC, v) AS n, row_number() OVER (PARTITION BY g ORDER BY fc DESC, v) AS fn,
						c::float8 / sum(c) FILTER (WHERE v IS NOT NULL) OVER (PARTITION BY g) AS share FROM counts),
					theirs AS (SELECT g, jsonb_agg(jsonb_build_object('value', v, 'count', c) ORDER BY n) FILTER (WHERE n <= %3$s) AS r,
						jsonb_agg(jsonb_build_object('value', v, 'count', fc) ORDER BY fn) FILTER (WHERE fn <= %3$s AND fc > 0) AS f,
						jsonb_agg(jsonb_build_object('value', v, 'count', c, 'error', 0) ORDER BY n) AS top,
						-sum(share * ln(share) / ln(2)) FILTER (WHERE v IS NOT NULL) AS h
						FROM numbered GROUP BY g)
				SELECT count(*) FROM ours FULL JOIN theirs USING (g)
				WHERE ours.r::text IS DISTINCT FROM theirs.r::text OR ours.f::text IS DISTINCT FROM theirs.f::text
					OR ours.top::text IS DISTINCT FROM theirs.top::text OR round(ours.h::numeric, 9) IS DISTINCT FROM round(theirs.h::numeric, 9) $q$,
				call, value, CASE k WHEN 0 THEN 1000000 ELSE k END) INTO groups;
			IF groups > 0 THEN
				RETURN NEXT;
			END IF;
		END LOOP;
	END LOOP;
END $$;
-- ... and those of gpu_mad
CREATE FUNCTION wrong_distances(names text[]) RETURNS TABLE (call text, groups bigint) LANGUAGE plpgsql AS $$
DECLARE
	value text;
BEGIN
	FOREACH value IN ARRAY names LOOP
		call := format('gpu_mad(%s)', value);
		EXECUTE format($q$
			WITH ours AS (SELECT g, %1$s::text AS r, %1$s FILTER (WHERE i2 > 0)::text AS f FROM value_counted GROUP BY g),
				medians AS (SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY %2$s) AS m,
					percentile_cont(0.5) WITHIN GROUP (ORDER BY %2$s) FILTER (WHERE i2 > 0) AS fm FROM value_counted GROUP BY g),
				theirs AS (SELECT g, (percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(%2$s - m)))::text AS r,
					(percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(%2$s - fm)) FILTER (WHERE i2 > 0))::text AS f FROM value_counted JOIN medians USING (g) GROUP BY g)
			SELECT count(*) FROM ours FULL JOIN theirs USING (g) WHERE ours.r IS DISTINCT FROM theirs.r OR ours.f IS DISTINCT FROM theirs.f $q$,
			call, value) INTO groups;
		IF groups > 0 THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;
SET gpuagg.require = 'require';
SELECT * FROM wrong_counts('{i2,i4,i8,f4,f8,x,d,ts,tm,n,s,c,b,e,gr,iv,u,o,arr,j,r}');
SELECT * FROM wrong_distances('{x,f8,i4,i8,n,x+1}');
SET work_mem = '64kB';
SELECT * FROM wrong_counts('{i2,f8,n,s}');
SELECT * FROM wrong_distances('{x,i8}');
RESET work_mem;
-- the same as plain aggregates
RESET gpuagg.require;
SET gpuagg.enabled = off;
SELECT * FROM wrong_counts('{i2,i4,i8,f4,f8,x,d,ts,tm,n,s,c,b,e,gr,iv,u,o,arr,j,r}');
SELECT * FROM wrong_distances('{x,f8,i4,i8,n,x+1}');
-- ... whose states core's parallel plans combine, and those of the custom scan
ALTER TABLE value_counted SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT g, gpu_value_counts(s, 3), gpu_top_k(s, 3), gpu_entropy(s), gpu_mad(x) FROM value_counted GROUP BY g;
SELECT * FROM wrong_counts('{i2,f8,n,s,c,e,gr,arr}');
SELECT * FROM wrong_distances('{x,f8}');
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SELECT * FROM wrong_counts('{i2,f8,n,s,c,e,gr,arr}');
SELECT * FROM wrong_distances('{x,f8}');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- many values, many groups
CREATE TABLE many_counted AS SELECT i % 20000 AS k, (i * 7919::bigint % 50021)::int AS v, 't' || i * 31 % 977 AS t FROM generate_series(1, 120000) i;
ANALYZE many_counted;
SELECT gpu_value_counts(v, 1000)::text = (SELECT jsonb_agg(jsonb_build_object('value', v, 'count', c) ORDER BY c DESC, v)::text
	FROM (SELECT v, count(*) AS c FROM many_counted GROUP BY v ORDER BY c DESC, v LIMIT 1000) x) AS first, jsonb_array_length(gpu_value_counts(v)) AS all,
	abs(gpu_entropy(v) - (SELECT -sum(c / 120000.0 * ln(c / 120000.0) / ln(2.0)) FROM (SELECT count(*) AS c FROM many_counted GROUP BY v) x)::float8) < 1e-9 AS entropy FROM many_counted;
SET work_mem = '256kB';
SELECT count(*), count(*) FILTER (WHERE ours::text <> theirs::text OR h::numeric(12, 9) <> (-e)::numeric(12, 9)) AS differ
FROM (SELECT k, gpu_value_counts(t) AS ours, gpu_entropy(t) AS h FROM many_counted GROUP BY k) o
	JOIN (SELECT k, jsonb_agg(jsonb_build_object('value', t, 'count', c) ORDER BY c DESC, t) AS theirs, sum(c / 6.0 * ln(c / 6.0) / ln(2.0)) AS e
		FROM (SELECT k, t, count(*) AS c FROM many_counted GROUP BY k, t) x GROUP BY k) y USING (k);
RESET work_mem;
SELECT gpu_entropy(t), gpu_entropy(1), round(gpu_entropy(k % 8)::numeric, 9) FROM many_counted WHERE k < 16000 AND t = 't7';

-- gpu_top_k frees places: in any order of rows and in parts, counts and errors are right, and frequent values are there
CREATE TABLE skewed AS SELECT i, CASE WHEN i % 3 = 0 THEN 'often' WHEN i % 10 = 1 THEN 'less often' WHEN i % 50 = 2 THEN NULL ELSE 'once ' || i END AS s, i % 7 AS part
FROM generate_series(1, 60000) i;
CREATE FUNCTION check_top(top jsonb, k int) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s values, %s wrong, error at most n / m: %s, missing %s', count(*), count(*) FILTER (WHERE real NOT BETWEEN count - error AND count),
		max(error) <= 60000 / greatest(10 * k, 256), (SELECT count(*) FROM (VALUES ('often'), ('less often'), (NULL)) v(s)
			WHERE NOT EXISTS (SELECT FROM gpu_value_counts_rows(top) t WHERE t.value IS NOT DISTINCT FROM s)))
	FROM gpu_value_counts_rows(top) t CROSS JOIN LATERAL (SELECT count(*) AS real FROM skewed WHERE s IS NOT DISTINCT FROM t.value) x $$;
SELECT check_top((SELECT gpu_top_k(s, 5) FROM skewed), 5) AS plain, check_top((SELECT gpu_top_k(s, 5 ORDER BY s) FROM skewed), 5) AS by_value,
	check_top((SELECT gpu_top_k(s, 40 ORDER BY i DESC) FROM skewed), 40) AS backwards, check_top((SELECT gpu_top_k(s, 3 ORDER BY md5(s)) FROM skewed), 3) AS mixed;
SELECT (gpu_top_k(s, 3)::text LIKE '[{"count": 20000, "error": 0, "value": "often"}, {"count": 4000, "error": 0, "value": "less often"}, %null}]') AS first FROM skewed;
CREATE TABLE skewed_states AS SELECT part, gpuagg_merge(gpuagg_pack('gpu_top_k(anyelement, int4)', s, 5)) AS state FROM skewed GROUP BY part;
SELECT check_top(gpuagg_finish(gpuagg_merge(state), 'gpu_top_k(anyelement, int4)', NULL::jsonb), 5) AS merged,
	check_top(gpuagg_finish(gpuagg_merge(state::text::gpuagg_state ORDER BY part DESC), 'gpu_top_k(anyelement, int4)', NULL::jsonb), 5) AS sent FROM skewed_states;
SELECT max(octet_length(state::text)) < 80000 AS bounded FROM skewed_states;
-- long values take 4 MB at most
SELECT (t).value = repeat('x', 300000) AS longest, (t).count, (t).error FROM (
	SELECT gpu_value_counts_rows(gpu_top_k(CASE WHEN i % 3 = 0 THEN repeat('x', 300000) ELSE i || repeat('y', 300000) END, 2)) AS t FROM generate_series(1, 30) i) q LIMIT 1;

-- DISTINCT, ORDER BY, grouping sets, HAVING, windows, no rows
SELECT gpu_value_counts(DISTINCT i2), gpu_value_counts(i2, 2 ORDER BY i8), gpu_mad(DISTINCT i2), round(gpu_entropy(DISTINCT i2)::numeric, 9) FROM value_counted;
SELECT g, gpu_value_counts(i2, 2), gpu_top_k(b, 1), round(gpu_entropy(e)::numeric, 6), gpu_mad(i4) FROM value_counted WHERE g < 2 GROUP BY ROLLUP (g) ORDER BY g;
SELECT g, gpu_value_counts(b) FROM value_counted WHERE g < 4 GROUP BY g HAVING gpu_value_counts(b) -> 0 -> 'count' >= '13' ORDER BY g;
SELECT gpu_value_counts(i4), gpu_top_k(i4, 2), gpu_entropy(i4), gpu_mad(i4), gpu_value_counts(i4, 2) FILTER (WHERE false) IS NULL AS none FROM value_counted WHERE g > 1000;
SELECT g, gpu_value_counts(i4), gpu_top_k(i4, 2), gpu_entropy(i4), gpu_mad(i4) FROM value_counted WHERE g > 100 GROUP BY g ORDER BY g;
RESET gpuagg.require;
SELECT i8, gpu_value_counts(b) OVER w, gpu_top_k(b, 1) OVER (w ROWS 1 PRECEDING), gpu_mad(i8) OVER w FROM value_counted WHERE g = 3 AND i8 < 30 WINDOW w AS (ORDER BY i8 DESC);

-- equal values that look different are one, whose bytes are the least, whatever the order of rows
SELECT count(DISTINCT r) AS answers, min(r) FROM (
	SELECT gpu_value_counts(v ORDER BY o)::text AS r
	FROM (VALUES (1.0, 1), (1.00, 2), (1, 3), (1.000, 4)) t (v, i), LATERAL (VALUES ('up', i), ('down', -i), ('mixed', i * 3 % 4)) x (way, o) GROUP BY way) q;
-- a type with hashes, but without an order; records, domains, values out of line
SELECT gpu_value_counts(xid) FROM value_counted;
CREATE TYPE spot AS (x int, y text);
SELECT gpu_value_counts(ROW(g % 2, c)::spot, 2) FROM value_counted WHERE g < 5;
CREATE TABLE large_counted AS SELECT i % 3 AS i, repeat(md5((i % 3)::text), 4000) AS s FROM generate_series(1, 7) i;
SELECT md5(value) = md5(repeat(md5((count % 2)::text), 4000)) AS same, count FROM gpu_value_counts_rows((SELECT gpu_value_counts(s, 1) FROM large_counted));
-- NaN and infinities
SELECT gpu_mad(x) FROM (VALUES ('nan'::float8), (1), (2), (3)) v(x);
SELECT gpu_mad(x), gpu_mad(-x), gpu_mad(abs(x)) FROM (VALUES ('inf'::float8), ('-inf'), (2)) v(x);
SELECT gpu_mad(x) FROM (VALUES (1.7e308::float8), (-1.7e308), (-1.7e308)) v(x);

-- errors
SELECT gpu_value_counts(i4, NULL) FROM value_counted;
SELECT gpu_value_counts(i4, 0) FROM value_counted;
SELECT gpu_top_k(i4, 1001) FROM value_counted;
SELECT gpu_top_k(i4, NULL) FROM value_counted;
SELECT gpu_value_counts(i4, i4 + 50) FROM value_counted;
SELECT gpu_value_counts('{}'::json);
SELECT gpu_entropy(point '(1,1)');

-- rows
SELECT value, count, error, rtrim(bar) AS bar FROM gpu_value_counts_rows((SELECT gpu_value_counts(i2) FROM value_counted));
SELECT value, count, error FROM gpu_value_counts_rows('[{"value": {"a": [1]}, "count": 3, "error": 1}, {"value": "x", "count": 4}, {"value": null, "count": 0}]');
SELECT * FROM gpu_value_counts_rows(NULL);
SELECT * FROM gpu_value_counts_rows('[]');
-- results are what core makes of their text
SELECT count(*) AS groups, bool_and(r = r::text::jsonb AND jsonb_hash(r) = jsonb_hash(r::text::jsonb)) AS same
FROM (SELECT n, gpu_value_counts(CASE i % 5 WHEN 1 THEN repeat('x"\', i % 7) || i WHEN 2 THEN NULL ELSE i::text END) AS r FROM generate_series(0, 130) n, generate_series(0, n) i GROUP BY n
	UNION ALL SELECT n, gpu_top_k(jsonb_build_object('a', i, 'b', ARRAY[n]), 100) FROM generate_series(0, 130) n, generate_series(0, n) i GROUP BY n) s;
SELECT count(*) AS elements, bool_and((r -> (n - 1)) ->> 'value' = n::text) AS found FROM (SELECT gpu_value_counts(i) AS r FROM generate_series(1, 1000) i) s, generate_series(1, 1000) n;
CREATE FUNCTION pg_temp.try_rows(list jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	RETURN (SELECT count(*) FROM gpu_value_counts_rows(list));
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(': ', sqlerrm, nullif(detail, ''));
END $$;
SELECT list, pg_temp.try_rows(list::jsonb) FROM unnest(ARRAY['1', '{}', '[1]', '[[]]', '[{}]', '[{"value": 1}]', '[{"count": 1}]', '[{"value": 1, "count": "1"}]',
	'[{"value": 1, "count": -1}]', '[{"value": 1, "count": 1e30}]', '[{"value": 1, "count": 1, "error": []}]']) list;

-- an equality, an order and hashes that lie, and one that fails
CREATE TYPE fickle_value AS (a int);
CREATE FUNCTION fickle_eq(fickle_value, fickle_value) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN RETURN CASE WHEN $1.a + $2.a > 150 THEN 1 / ($2.a - $2.a) = 1 ELSE ($1.a + $2.a) % 3 = 0 END; END';
CREATE FUNCTION fickle_hash(fickle_value) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1.a % 2';
CREATE OPERATOR = (LEFTARG = fickle_value, RIGHTARG = fickle_value, FUNCTION = fickle_eq);
CREATE FUNCTION fickle_less(fickle_value, fickle_value) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1.a < $2.a';
CREATE FUNCTION fickle_compare(fickle_value, fickle_value) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT ($1.a * 7 + $2.a) % 3 - 1';
CREATE OPERATOR < (LEFTARG = fickle_value, RIGHTARG = fickle_value, FUNCTION = fickle_less);
CREATE OPERATOR CLASS fickle_order DEFAULT FOR TYPE fickle_value USING btree AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 fickle_compare(fickle_value, fickle_value);
CREATE OPERATOR CLASS fickle_hashes DEFAULT FOR TYPE fickle_value USING hash AS OPERATOR 1 =, FUNCTION 1 fickle_hash(fickle_value);
SELECT (SELECT sum(count) FROM gpu_value_counts_rows(c)) FROM (SELECT gpu_value_counts(ROW(i)::fickle_value) AS c FROM generate_series(1, 70) i) q;
SELECT gpu_entropy(ROW(i)::fickle_value) FROM generate_series(1, 100) i;

-- partial states: sent as text, combined in any order, finished
CREATE TABLE counted_states AS SELECT i4 % 5 AS part, gpuagg_merge(gpuagg_pack('gpu_value_counts(anyelement)', f8)) AS f8,
	gpuagg_merge(gpuagg_pack('gpu_value_counts(anyelement, int4)', e, 2)) AS e, gpuagg_merge(gpuagg_pack('gpu_entropy(anyelement)', s)) AS s,
	gpuagg_merge(gpuagg_pack('gpu_value_counts(anyelement)', 'value_counted'::regclass)) AS names FROM value_counted GROUP BY 1;
SELECT gpuagg_finish(gpuagg_merge(f8::text::gpuagg_state ORDER BY part), 'gpu_value_counts(anyelement)', NULL::jsonb)::text = (SELECT gpu_value_counts(f8)::text FROM value_counted) AS f8,
	gpuagg_finish(gpuagg_merge(e::text::gpuagg_state ORDER BY part DESC), 'gpu_value_counts(anyelement, int4)', NULL::jsonb)::text = (SELECT gpu_value_counts(e, 2)::text FROM value_counted) AS e,
	gpuagg_finish(gpuagg_merge(s::text::gpuagg_state), 'gpu_entropy(anyelement)', NULL::float8) = (SELECT gpu_entropy(s) FROM value_counted) AS s,
	gpuagg_finish(gpuagg_merge(names::text::gpuagg_state), 'gpu_value_counts(anyelement)', NULL::jsonb) AS names
FROM counted_states;
-- the form of a state, and states made by hand
SELECT gpuagg_merge(gpuagg_pack('gpu_value_counts(anyelement)', nullif(i % 2, 0))) AS counts, gpuagg_merge(gpuagg_pack('gpu_top_k(anyelement, int4)', i % 2, 3)) AS top
FROM generate_series(1, 3) i;
CREATE FUNCTION pg_temp.try_counts(state text, agg regprocedure, result anyelement) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN gpuagg_finish(state::gpuagg_state, agg, result)::text;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT what, pg_temp.try_counts(replace(state, ' ', ''), 'gpu_value_counts(anyelement)', NULL::jsonb) FROM (VALUES
	('a value and NULL', '\x010b 00 00000017 0000000000 00000000 0000000000000005 0000000000000000 00000001 00 00000004 00000003 0000000000000007'),
	('equal values', '\x010b 00 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000002 00 00000004 00000003 0000000000000007 00 00000004 00000003 0000000000000001'),
	('nothing', '\x010b 00 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000000'),
	('a floor', '\x010b 00 00000017 0000000000 00000000 0000000000000005 0000000000000001 00000000'),
	('negative k', '\x010b 00 00000017 0000000000 ffffffff 0000000000000005 0000000000000000 00000000'),
	('no rows', '\x010b 00 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000001 00 00000004 00000003 0000000000000000'),
	('too many rows', '\x010b 00 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000001 00 00000004 00000003 7fffffffffffffff'),
	('a NULL', '\x010b 00 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000001 01 0000000000000001'),
	('too short', '\x010b 00 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000002 00 00000004 00000003 0000000000000001'),
	('too long', '\x010b 00 00000017 0000000000 00000000 0000000000000005 0000000000000000 00000000 00'),
	('another aggregate', '\x010b 02 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000001 00 00000004 00000003 0000000000000001'),
	('an unknown aggregate', '\x010b 03 00000017 0000000000 00000000 0000000000000000 0000000000000000 00000001 00 00000004 00000003 0000000000000001'),
	('a type without hashes', '\x010b 00 00000072 0000000000 00000000 0000000000000005 0000000000000000 00000000'),
	('a pseudo-type', '\x010b 00 000008d9 0000000000 00000000 0000000000000005 0000000000000000 00000000')) v (what, state);
SELECT what, pg_temp.try_counts(replace(state, ' ', ''), 'gpu_top_k(anyelement, int4)', NULL::jsonb) FROM (VALUES
	('a value', '\x010b 01 00000017 0000000000 00000002 0000000000000000 0000000000000004 00000001 00 00000004 00000003 0000000000000007 0000000000000004'),
	('an error above the floor', '\x010b 01 00000017 0000000000 00000002 0000000000000000 0000000000000003 00000001 00 00000004 00000003 0000000000000007 0000000000000004'),
	('an error of all rows', '\x010b 01 00000017 0000000000 00000002 0000000000000000 0000000000000007 00000001 00 00000004 00000003 0000000000000007 0000000000000007'),
	('fewer rows than the floor', '\x010b 01 00000017 0000000000 00000002 0000000000000000 0000000000000008 00000001 00 00000004 00000003 0000000000000007 0000000000000004'),
	('k is 0', '\x010b 01 00000017 0000000000 00000000 0000000000000005 0000000000000000 00000000'),
	('k is large', '\x010b 01 00000017 0000000000 000003e9 0000000000000005 0000000000000000 00000000'),
	('too many values', '\x010b 01 00000017 0000000000 00000001 0000000000000005 0000000000000000 00000201' || repeat('00 00000004 00000003 0000000000000001 0000000000000000', 513))) v (what, state);
SELECT pg_temp.try_counts(replace('\x010b 02 00000017 0000000000 00000000 0000000000000001 0000000000000000 00000000', ' ', ''), 'gpu_entropy(anyelement)', NULL::float8);
-- errors of values that are equal here add up, in states that are merged again, too
SELECT gpuagg_finish(gpuagg_merge(replace('\x010b 01 00000017 0000000000 00000002 0000000000000000 0000000000000004 00000002 00 00000004 00000003 0000000000000007 0000000000000004 00 00000004 00000003 0000000000000007 0000000000000004', ' ', '')::gpuagg_state), 'gpu_top_k(anyelement, int4)', NULL::jsonb);
SELECT gpuagg_finish(NULL, 'gpu_value_counts(anyelement)', NULL::jsonb) IS NULL AS none;
SELECT gpuagg_merge(gpuagg_pack('gpu_top_k(anyelement, int4)', i, i)) FROM generate_series(1, 2) i;
SELECT gpuagg_merge(gpuagg_pack(CASE i WHEN 1 THEN 'gpu_value_counts(anyelement)' ELSE 'gpu_entropy(anyelement)' END::regprocedure, i)) FROM generate_series(1, 2) i;

-- objects have the binary form that core gives them
SELECT name, core = ours AS equal, pg_column_size(core) = pg_column_size(ours) AS "same size", core2 = ours2 AND pg_column_size(core2) = pg_column_size(ours2) AS top_k FROM (
	SELECT 'int2' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', -5::int2, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', -5::int2, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (-5::int2), (-5::int2)) v(x) UNION ALL
	SELECT 'int4' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', 2147483647, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', 2147483647, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (2147483647), (2147483647)) v(x) UNION ALL
	SELECT 'int8' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', -4000000000000000000, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', -4000000000000000000, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (-4000000000000000000), (-4000000000000000000)) v(x) UNION ALL
	SELECT 'text' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', 'quote "\', 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', 'quote "\', 'count', count(*), 'error', 0)) AS core2 FROM (VALUES ('quote "\'), ('quote "\')) v(x) UNION ALL
	SELECT 'empty text' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', ''::text, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', ''::text, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (''::text), (''::text)) v(x) UNION ALL
	SELECT 'numeric' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', 1.50, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', 1.50, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (1.50), (1.50)) v(x) UNION ALL
	SELECT 'float8' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', 0.1::float8, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', 0.1::float8, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (0.1::float8), (0.1::float8)) v(x) UNION ALL
	SELECT 'NaN' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', 'nan'::float8, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', 'nan'::float8, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES ('nan'::float8), ('nan'::float8)) v(x) UNION ALL
	SELECT 'bool' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', true, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', true, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (true), (true)) v(x) UNION ALL
	SELECT 'date' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', date '2026-01-01', 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', date '2026-01-01', 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (date '2026-01-01'), (date '2026-01-01')) v(x) UNION ALL
	SELECT 'array' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', ARRAY[1, NULL], 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', ARRAY[1, NULL], 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (ARRAY[1, NULL]), (ARRAY[1, NULL])) v(x) UNION ALL
	SELECT 'jsonb' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', '{"k": [1, {}], "a": null}'::jsonb, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', '{"k": [1, {}], "a": null}'::jsonb, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES ('{"k": [1, {}], "a": null}'::jsonb), ('{"k": [1, {}], "a": null}'::jsonb)) v(x) UNION ALL
	SELECT 'scalar jsonb' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', '"text"'::jsonb, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', '"text"'::jsonb, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES ('"text"'::jsonb), ('"text"'::jsonb)) v(x) UNION ALL
	SELECT 'jsonb null' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', 'null'::jsonb, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', 'null'::jsonb, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES ('null'::jsonb), ('null'::jsonb)) v(x) UNION ALL
	SELECT 'NULL' AS name, gpu_value_counts(x) AS ours, jsonb_build_array(jsonb_build_object('value', NULL::int, 'count', count(*))) AS core, gpu_top_k(x, 2) AS ours2, jsonb_build_array(jsonb_build_object('value', NULL::int, 'count', count(*), 'error', 0)) AS core2 FROM (VALUES (NULL::int), (NULL::int)) v(x)
) s;

-- With many values, some rows of a state wait to be counted, 24 together: also when it is merged, spilled, serialized or read, and when a NULL comes.
CREATE TABLE waiting AS SELECT i % 3 AS g, i % 2 AS h, i::bigint * 7919 % 1009 % (700 - i % 3 * 300) AS v, nullif(i % 500, 7) AS w FROM generate_series(1, 10007) i;
ALTER TABLE waiting SET (parallel_workers = 2);
ANALYZE waiting;
CREATE TEMP TABLE counted_by_core AS WITH
	v AS (SELECT g, h, v, count(*) AS c FROM waiting GROUP BY GROUPING SETS ((g, h, v), (g, v), (v))), w AS (SELECT g, h, w, count(*) AS c FROM waiting GROUP BY GROUPING SETS ((g, h, w), (g, w), (w)))
SELECT g, h, jsonb_agg(jsonb_build_object('value', v, 'count', c) ORDER BY c DESC, v) AS v,
	(SELECT jsonb_agg(jsonb_build_object('value', w, 'count', c) ORDER BY c DESC, w) FROM w WHERE (w.g, w.h) IS NOT DISTINCT FROM (v.g, v.h)) AS w FROM v GROUP BY g, h;
-- how many groups of a query have the same answers
CREATE FUNCTION pg_temp.same_counts(query text, settings text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
	EXECUTE 'SET LOCAL work_mem = ''4MB''; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0;
		SET LOCAL enable_hashagg = on; SET LOCAL max_parallel_workers_per_gather = 0; ' || settings;
	EXECUTE format('SELECT count(*) FROM (%s) a JOIN counted_by_core e ON (a.g, a.h) IS NOT DISTINCT FROM (e.g, e.h) AND a.v = e.v AND a.w = e.w', query) INTO n;
	RETURN n;
END $$;
SET gpuagg.require = 'require';
SELECT settings, pg_temp.same_counts('SELECT g, h, gpu_value_counts(v) AS v, gpu_value_counts(w) AS w FROM waiting GROUP BY GROUPING SETS ((g, h), (g), ())', settings) AS "10",
	pg_temp.same_counts('SELECT g, h, gpu_value_counts(v) AS v, gpu_value_counts(w) AS w FROM waiting GROUP BY g, h', settings) AS "6",
	pg_temp.same_counts('SELECT NULL::int AS g, NULL::int AS h, gpu_value_counts(v) AS v, gpu_value_counts(w) AS w FROM waiting', settings) AS "1",
	pg_temp.same_counts('SELECT g, h, gpuagg_finish(v, ''gpu_value_counts(anyelement)'', NULL::jsonb) AS v, gpuagg_finish(w, ''gpu_value_counts(anyelement)'', NULL::jsonb) AS w
		FROM (SELECT g, h, gpuagg_merge(gpuagg_pack(''gpu_value_counts(anyelement)'', v)) AS v, gpuagg_merge(gpuagg_pack(''gpu_value_counts(anyelement)'', w)) AS w FROM waiting GROUP BY g, h OFFSET 0) s', settings) AS "6 states"
FROM unnest('{"", SET LOCAL work_mem = ''64kB'', SET LOCAL enable_hashagg = off, SET LOCAL max_parallel_workers_per_gather = 2, SET LOCAL gpuagg.require = ''forbid''}'::text[]) settings;
RESET gpuagg.require;
DROP TABLE waiting;
