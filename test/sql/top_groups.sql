-- HAVING and ORDER BY ... LIMIT on the states of groups: the scan returns only the groups that Sort and Limit need.
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE tops AS
SELECT i, (i * 7919::bigint % 1301)::int AS k, CASE WHEN i % 7 > 0 THEN i % 101 END AS v, (i * 31 % 1000)::int8 AS b,
	(i % 1300)::numeric(10, 2) / 10 AS n, CASE i % 401 WHEN 0 THEN float8 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' ELSE i % 400 END AS f,
	CASE WHEN i % 1301 < 700 THEN i END AS rare, date '2020-01-01' + i % 500 AS d, 'text' || i % 50 AS t,
	(CASE WHEN i % 500 = 17 THEN 'NaN' ELSE (i % 77)::text || '.25' END)::numeric(12, 2) AS odd
FROM generate_series(1, 8000) i;
ALTER TABLE tops ALTER n TYPE numeric(12, 3);
VACUUM ANALYZE tops;

-- the number of rows that the scan returns, and the lines of EXPLAIN about that
CREATE FUNCTION returned(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Top-N|Groups|Filter' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
-- checks that answers are core's; orders by all columns make them unique
CREATE FUNCTION agrees(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	core text;
BEGIN
	SET LOCAL gpuagg.require = 'require';
	EXECUTE 'SELECT string_agg(x::text, chr(10)) FROM (' || query || ') x' INTO ours;
	SET LOCAL gpuagg.require = 'allow';
	SET LOCAL gpuagg.enabled = off;
	EXECUTE 'SELECT string_agg(x::text, chr(10)) FROM (' || query || ') x' INTO core;
	SET LOCAL gpuagg.enabled = on;
	RETURN CASE WHEN ours IS NOT DISTINCT FROM core THEN 'agrees' ELSE format('ours %s core %s', ours, core) END;
END $$;

SET gpuagg.require = 'require';
SELECT returned('SELECT k, count(*) FROM tops GROUP BY k ORDER BY count(*) DESC, k LIMIT 10');
-- constants order nothing
SELECT returned('SELECT 1, ''c'', k, count(*) FROM tops GROUP BY 1, 2, k ORDER BY 1, count(*) DESC, 2, k LIMIT 10');
SELECT returned('SELECT k, count(*) FROM tops GROUP BY k HAVING count(*) > 5 AND max(v) >= 99 ORDER BY sum(b) DESC NULLS LAST, k DESC LIMIT 3 OFFSET 2');
SELECT returned('SELECT k, max(i) FROM tops GROUP BY k ORDER BY max(i) DESC FETCH FIRST 4 ROWS WITH TIES');
-- text has no codes, so groups that tie with the last one are returned too
SELECT returned('SELECT t, d, count(*) FROM tops GROUP BY t, d ORDER BY count(*), t LIMIT 2') LIMIT 1;
SELECT returned('SELECT t, max(i) FROM tops GROUP BY t ORDER BY t, max(i) LIMIT 2');
-- the limit is known only when the query runs
PREPARE limited(int, bigint) AS SELECT k, sum(v) FROM tops GROUP BY k ORDER BY sum(v) NULLS FIRST, k LIMIT $1 OFFSET $2;
SET plan_cache_mode = 'force_generic_plan';
SELECT returned('EXECUTE limited(3, 4)');
SELECT returned('EXECUTE limited(NULL, 4)');
EXECUTE limited(3, NULL);
EXECUTE limited(0, 0);
EXECUTE limited(-1, 0);
EXECUTE limited(1, -1);
EXECUTE limited(2, 9223372036854775807);
RESET plan_cache_mode;
SELECT returned('SELECT DISTINCT d, v FROM tops ORDER BY d DESC, v LIMIT 5');
-- not if the plan has another node between the scan and the Limit
SELECT returned('SELECT k, count(*), row_number() OVER (ORDER BY k) FROM tops GROUP BY k ORDER BY count(*), k LIMIT 2');
SELECT returned('SELECT DISTINCT count(*) FROM tops GROUP BY k ORDER BY count(*) LIMIT 1');
SELECT returned('SELECT k, generate_series(1, 2) FROM tops GROUP BY k ORDER BY count(*), k LIMIT 2');
SELECT returned('SELECT k, count(*), random() < 2 FROM tops GROUP BY k ORDER BY count(*), k LIMIT 2');
RESET gpuagg.require;

-- values of every kind, both orders, NULLs on both sides, ties, offsets; HAVING that needs tuples
SELECT query, agrees(query)
FROM (
	SELECT format('SELECT k, %s AS a FROM tops GROUP BY k %s ORDER BY %s %s NULLS %s, k %s', agg, condition, agg, way, nulls, rest) AS query
	FROM unnest(ARRAY['count(*)', 'count(v)', 'sum(v)', 'sum(b)', 'sum(n)', 'sum(f)', 'avg(f)', 'min(v)', 'max(d)', 'min(f)', 'max(f)',
			'max(n)', 'sum(rare)', 'avg(v)', 'min(t)', 'stddev(f)', 'max(f::float4)', 'sum(odd)', 'min(odd)', 'bit_and(v)',
			'max(timestamp ''2020-01-01'' + i * interval ''1 s'')', 'sum(distinct v)', 'count(*) FILTER (WHERE v > 90)']) agg,
		unnest(ARRAY['', 'HAVING count(v) > 4 AND 3 < sum(v)', 'HAVING count(*) <> 6 AND sum(v) % 2 = 0 AND sum(n) >= 30.5'],
			ARRAY['LIMIT 7', 'DESC LIMIT 20 OFFSET 13', 'FETCH FIRST 3 ROWS WITH TIES']) o(condition, rest),
		unnest(ARRAY['ASC', 'DESC']) way, unnest(ARRAY['FIRST', 'LAST']) nulls
	WHERE (way = 'ASC') = (nulls = 'FIRST') OR rest LIKE 'DESC%') q
WHERE agrees(query) <> 'agrees';
SELECT query, agrees(query)
FROM (
	SELECT format('SELECT d, count(*) FROM tops GROUP BY d HAVING %s %s %s ORDER BY d', agg, op, value) AS query
	FROM unnest(ARRAY['<', '<=', '=', '>=', '>', '<>']) op,
		(VALUES ('count(*)', '16'), ('count(*)', '16::int8'), ('count(*)', '16::int2'), ('count(*)', '16.0'), ('sum(v)', '742'),
			('sum(v)', 'NULL'), ('sum(b)', '8000'), ('sum(b)', '8000.5'), ('sum(n)', '992.0'), ('sum(n)', '992'), ('sum(n)', '''NaN'''),
			('max(f)', '''NaN'''), ('min(f)', '0'), ('min(f)', '''-0'''), ('max(f)', '399.0::float4'), ('max(d)', 'date ''2020-06-01'''),
			('max(d)', 'timestamp ''2020-06-01 12:00'''), ('max(rare)', '7900'), ('sum(odd)', '600'), ('avg(f)', '200.5'),
			('min(i)', '(SELECT 250)'), ('sum(odd)', '''NaN''')) v(agg, value)) q
WHERE agrees(query) <> 'agrees';

-- memory that is used up, cursors, and rescans that change limit and condition
SET work_mem = '64kB';
SELECT agrees('SELECT k, sum(v) AS a FROM tops GROUP BY k ORDER BY a DESC NULLS LAST, k LIMIT 12');
SELECT agrees('SELECT k, i FROM tops GROUP BY k, i ORDER BY i % 2, count(*), i DESC LIMIT 12');
RESET work_mem;
SELECT agrees($$SELECT q, x.* FROM generate_series(0, 6) q, LATERAL (SELECT k, sum(v) AS a FROM tops GROUP BY k
	HAVING count(*) > q ORDER BY sum(v), k LIMIT (SELECT q)) x$$);
SELECT agrees($$SELECT q, x.* FROM generate_series(0, 3) q, LATERAL (SELECT d, sum(v + q) AS a FROM tops GROUP BY d
	ORDER BY sum(v + q) DESC, d LIMIT 3 OFFSET (SELECT q)) x$$);
BEGIN;
SET LOCAL gpuagg.require = 'require';
DECLARE c SCROLL CURSOR FOR SELECT k, max(i) FROM tops GROUP BY k ORDER BY max(i) DESC LIMIT 4;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
COMMIT;

-- many groups in parallel: each participant returns its own groups
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE crowd AS
SELECT i, (i * 7919::bigint % 120011)::int AS k, i % 1000 AS v, (i % 77)::numeric(8, 2) AS n, CASE WHEN i % 9 > 0 THEN i % 110017 / 3.0::float8 END AS f,
	'key ' || i % 105019 AS t
FROM generate_series(1, 300000) i;
ALTER TABLE crowd SET (parallel_workers = 3);
VACUUM ANALYZE crowd;
SET work_mem = '64MB';
-- if one participant has reduced all rows before another one starts, it merges alone; the query is then repeated
CREATE FUNCTION parts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	said text;
BEGIN
	FOR i IN 1 .. 50 LOOP
		said := '';
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
			IF line ~ 'Merged Parts|Groups:|Gather' THEN
				said := said || regexp_replace(trim(line), ' \(.*', '') || '; ';
			END IF;
		END LOOP;
		EXIT WHEN said ~ 'Merged Parts';
	END LOOP;
	RETURN said;
END $$;
SET parallel_leader_participation = off;
SELECT parts('SELECT k, count(*), sum(n), avg(f) FROM crowd GROUP BY k');
SELECT parts('SELECT k, count(*) FROM crowd GROUP BY k ORDER BY count(*) DESC, k LIMIT 10');
RESET parallel_leader_participation;
SELECT agrees(query)
FROM unnest(ARRAY[
	'SELECT k, count(*), sum(v), avg(n), min(f), max(v) FROM crowd GROUP BY k ORDER BY k',
	'SELECT f, count(*), sum(v) FROM crowd GROUP BY f ORDER BY f',
	'SELECT t, k % 2, count(*), max(t), sum(n) FROM crowd GROUP BY t, k % 2 ORDER BY t, 2',
	'SELECT t, string_agg(k::text, '','' ORDER BY k) FROM crowd WHERE k < 50000 GROUP BY t ORDER BY t',
	'SELECT k, count(*) FROM crowd GROUP BY k ORDER BY count(*) DESC, k LIMIT 10',
	'SELECT t, sum(v) FROM crowd GROUP BY t HAVING sum(v) > 3000 ORDER BY sum(v) DESC, t LIMIT 10 OFFSET 3',
	'SELECT count(*), sum(c), max(s) FROM (SELECT k, count(*) c, sum(v) s FROM crowd GROUP BY k) x',
	'SELECT DISTINCT k, v FROM crowd ORDER BY k, v LIMIT 1000',
	'SELECT k, c FROM (SELECT k, count(*) c FROM crowd GROUP BY k) x JOIN (SELECT i FROM crowd WHERE v = 7) y ON k = i ORDER BY k',
	'SELECT k, sum(v) FROM crowd GROUP BY k UNION ALL SELECT length(t), count(*) FROM crowd GROUP BY t ORDER BY 1, 2 LIMIT 5000']) query;
SET work_mem = '64kB';
SELECT agrees(query)
FROM unnest(ARRAY[
	'SELECT k, count(*), sum(v), avg(n), min(f), max(v) FROM crowd GROUP BY k ORDER BY k',
	'SELECT t, k % 2, count(*), max(t), sum(n) FROM crowd GROUP BY t, k % 2 ORDER BY t, 2',
	'SELECT k, count(*) FROM crowd GROUP BY k ORDER BY count(*) DESC, k LIMIT 10']) query;
SET gpuagg.strategy = 'sort';
SELECT agrees('SELECT k, count(*), sum(v), avg(n), min(f), max(v) FROM crowd GROUP BY k ORDER BY k');
RESET gpuagg.strategy;
SET work_mem = '64MB';
-- a LIMIT that stops the participants, and rescans under a nested loop
SELECT count(*) FROM (SELECT k, count(*) FROM crowd GROUP BY k LIMIT 100) x;
SELECT agrees('SELECT q, (SELECT count(*) FROM (SELECT k, sum(v + q) FROM crowd GROUP BY k OFFSET 0) x) FROM generate_series(1, 3) q');
DROP TABLE tops, crowd;
DROP FUNCTION returned, agrees, parts;
