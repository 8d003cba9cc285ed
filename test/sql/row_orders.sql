-- aggregates with their own ORDER BY: one for all, several, together with DISTINCT, FILTER and other aggregates
SET gpuagg.replace_builtin = on;
CREATE TABLE o AS SELECT i % 7 AS k, (i * 7919 % 5003) AS a, CASE WHEN i % 11 = 0 THEN NULL ELSE i * 104729 % 5009 END AS b,
	((i * 31 % 997) || 'x')::text AS s, (i % 100)::numeric(10,2) / 4 AS n, (i % 50) / 7.0::float8 AS f, i % 5 AS v, i AS id,
	point(i % 9, i) AS p
	FROM generate_series(1, 5000) i;
INSERT INTO o VALUES (NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL), (1, NULL, 2, 'y', 'NaN', 'NaN', NULL, -1, NULL);
VACUUM ANALYZE o;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TEMPORARY TABLE q (n int GENERATED ALWAYS AS IDENTITY, q text);
INSERT INTO q (q) VALUES
	('SELECT k, array_agg(a ORDER BY id) FROM o GROUP BY k'),
	('SELECT k, array_agg(a ORDER BY id DESC), count(*), sum(v) FROM o GROUP BY k'),
	('SELECT string_agg(s, '','' ORDER BY id) FROM o'),
	('SELECT k, array_agg(a ORDER BY id), array_agg(a ORDER BY id DESC), string_agg(s, '','' ORDER BY a, id) FROM o GROUP BY k'),
	('SELECT k, string_agg(s, '';'' ORDER BY b DESC NULLS LAST, id), array_agg(b ORDER BY b NULLS FIRST, id), count(*) FROM o GROUP BY k'),
	('SELECT k, string_agg(s, k::text ORDER BY s COLLATE "C" DESC, id), array_agg(id ORDER BY -id) FROM o GROUP BY k'),
	('SELECT k, array_agg(b ORDER BY id DESC), count(DISTINCT b), sum(DISTINCT n), sum(a) FROM o GROUP BY k'),
	('SELECT k, array_agg(DISTINCT b), string_agg(DISTINCT s, '','' ORDER BY s DESC), array_agg(b ORDER BY id) FROM o GROUP BY k'),
	('SELECT k, array_agg(a ORDER BY id) FILTER (WHERE v = 1), array_agg(a ORDER BY id DESC) FILTER (WHERE v > 2), count(*) FILTER (WHERE v = 0) FROM o GROUP BY k'),
	('SELECT k, array_agg(1 / v ORDER BY 1 / v, id) FILTER (WHERE v <> 0), array_agg(v ORDER BY id) FROM o GROUP BY k'),
	('SELECT array_agg(n ORDER BY id DESC), array_agg(f ORDER BY id), max(s) FROM o'),
	('SELECT k, sum(n ORDER BY id), sum(f ORDER BY id DESC), avg(f ORDER BY f, id), sum(f ORDER BY id) FROM o GROUP BY k'),
	('SELECT k, jsonb_agg(a ORDER BY id), json_object_agg(id, s ORDER BY id DESC), xmlagg(s::xml ORDER BY id) IS NULL FROM o GROUP BY k'),
	('SELECT k, gpu_max_subarray_sum(a ORDER BY id), gpu_max_subarray_sum(a ORDER BY id DESC), count(DISTINCT v) FROM o GROUP BY k'),
	('SELECT k, array_agg(a ORDER BY k, id), array_agg(k ORDER BY id) FROM o GROUP BY k'),
	('SELECT k, array_agg(a ORDER BY b, id), sum(id) FROM (SELECT * FROM o ORDER BY id DESC LIMIT 500) x GROUP BY k'),
	('SELECT array_agg(a ORDER BY id), array_agg(a ORDER BY id DESC) FROM o WHERE false'),
	('SELECT k, array_agg(a ORDER BY id), array_agg(a ORDER BY id DESC) FROM o WHERE false GROUP BY k'),
	('SELECT k, array_agg(p::text ORDER BY id), array_agg(ROW(a, s) ORDER BY id DESC) FROM o WHERE id < 400 GROUP BY k'),
	('SELECT x.k, (SELECT string_agg(y.s, '','' ORDER BY y.id * x.k) || array_agg(y.a ORDER BY y.id)::text FROM o y WHERE y.k = x.k AND y.id < 100) FROM (VALUES (1), (2), (1)) x(k)'),
	('SELECT k, array_agg(b ORDER BY id) FILTER (WHERE false), array_agg(DISTINCT b) FILTER (WHERE id < 3) FROM o GROUP BY k'),
	('SELECT k, v > 2 AS t, count(DISTINCT v > 2) FILTER (WHERE v > 2), count(DISTINCT k) FILTER (WHERE v > 2), array_agg(DISTINCT b) FILTER (WHERE v > 2) FROM o GROUP BY k, v > 2'),
	-- whether an argument is NULL, and its value; its display scale, and its value
	('SELECT k, count(s ORDER BY id), max(s) FROM o GROUP BY k'),
	('SELECT k, count(s ORDER BY id), string_agg(s, '','' ORDER BY id), min(s ORDER BY s) FROM o GROUP BY k'),
	('SELECT k, string_agg(v::text, '','' ORDER BY s DESC, id), count(s ORDER BY id DESC), count(s) FROM o GROUP BY k'),
	('SELECT k, count(s ORDER BY id), string_agg(DISTINCT s, '',''), count(DISTINCT s) FROM o GROUP BY k'),
	('SELECT k, count(p ORDER BY id), array_agg(p::text ORDER BY id DESC), array_agg(p ORDER BY id)::text FROM o GROUP BY k'),
	('SELECT k, v, sum(CASE v WHEN 1 THEN n::numeric(12,2) WHEN 2 THEN 1.5 ELSE n::numeric(12,4) END ORDER BY id) FROM o GROUP BY k, v'),
	('SELECT k, v, sum(CASE v WHEN 1 THEN n::numeric(12,2) WHEN 2 THEN 1.5 ELSE n::numeric(12,4) END ORDER BY id), array_agg(CASE v WHEN 1 THEN n::numeric(12,2) WHEN 2 THEN 1.5 ELSE n::numeric(12,4) END ORDER BY id) FROM o GROUP BY k, v'),
	('SELECT k, v, avg(CASE v WHEN 1 THEN n::numeric(12,2) WHEN 2 THEN 1.5 ELSE n::numeric(12,4) END ORDER BY id), max(CASE v WHEN 1 THEN n::numeric(12,2) WHEN 2 THEN 1.5 ELSE n::numeric(12,4) END), sum(v ORDER BY CASE v WHEN 1 THEN n::numeric(12,2) WHEN 2 THEN 1.5 ELSE n::numeric(12,4) END, id) FROM o GROUP BY k, v'),
	('SELECT k, count(DISTINCT s) FILTER (WHERE b > 2500), count(DISTINCT b) FILTER (WHERE b > 2500), count(DISTINCT s) FROM o GROUP BY k');
SELECT pg_temp.same_as_core(q), q FROM q ORDER BY n;
-- more rows than memory
SET work_mem = '64kB';
SELECT n, pg_temp.same_as_core(q) FROM q ORDER BY n;
RESET work_mem;
-- rows below a Gather
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT n, pg_temp.same_as_core(q) FROM q ORDER BY n;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

SET gpuagg.require = 'require';
SELECT k, array_agg(1 / v ORDER BY id), array_agg(v ORDER BY 1 / v) FROM o GROUP BY k;
-- a cursor that is closed in the middle, a savepoint
BEGIN;
DECLARE c CURSOR FOR SELECT k, array_agg(a ORDER BY id), string_agg(s, ',' ORDER BY a, id) FROM o GROUP BY k;
MOVE 2 FROM c;
SAVEPOINT p;
MOVE 1 FROM c;
ROLLBACK TO p;
COMMIT;
PREPARE orders(int) AS SELECT array_agg(a ORDER BY a * $1) AS x, array_agg(a ORDER BY id * $1) AS y FROM o WHERE id BETWEEN 1 AND 9;
EXECUTE orders(1);
EXECUTE orders(-1);
-- more arguments than a tuple can have columns
RESET gpuagg.require;
SELECT 'SELECT md5(ARRAY[' || string_agg(format('sum(a + %s ORDER BY %s)', i, CASE i WHEN 1 THEN 'b' ELSE 'id' END), ', ') || ']::text) FROM o WHERE id < 300' AS q
	FROM generate_series(1, 1800) i \gset
CREATE FUNCTION is_ours(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan::text ~ 'GpuAgg';
END $$;
SELECT is_ours(:'q'), is_ours(replace(:'q', 'BY id)', 'BY b)'));
DROP FUNCTION is_ours;
:q;
DROP TABLE o;
RESET ALL;
