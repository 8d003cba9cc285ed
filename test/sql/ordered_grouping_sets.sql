-- percentiles, modes and medians with grouping sets, together with ORDER BY and DISTINCT, and with subqueries as fractions
SET gpuagg.replace_builtin = on;
SET gpuagg.require = 'require';
CREATE TABLE g AS SELECT i % 4 AS a, i % 7 AS b, (i % 3)::text AS s, i * 7919 % 1000 AS v, (i * 7919 % 1000) / 8.0::float8 AS f,
	CASE WHEN i % 3 = 0 THEN NULL ELSE i * 7 % 40 END AS z, (i * 37 % 110)::numeric / 2 AS n, (i % 100 / 4)::numeric(10,2) AS d,
	make_interval(secs => i % 977) AS t, (i % 5) / 4.0::float8 AS p, i % 2 = 0 AS o, i AS id FROM generate_series(1, 6000) i;
INSERT INTO g (id) VALUES (0), (0), (0);
INSERT INTO g VALUES (1, NULL, 'x', NULL, 'NaN', NULL, 'NaN', NULL, NULL, NULL, true, 0), (9, 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0);
VACUUM ANALYZE g;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TABLE queries AS SELECT row_number() OVER () AS id, q FROM unnest(ARRAY[
	-- grouping sets
	'SELECT a, b, GROUPING(a, b), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), percentile_disc(''{0.1, 0.9}''::float8[]) WITHIN GROUP (ORDER BY s DESC), mode() WITHIN GROUP (ORDER BY v) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, s, GROUPING(b, s), gpu_median(f), gpu_percentile_cont(0.9) WITHIN GROUP (ORDER BY f), gpu_percentile_disc(0.1) WITHIN GROUP (ORDER BY v DESC), gpu_mode() WITHIN GROUP (ORDER BY z), count(*) FROM g GROUP BY CUBE (a, b, s)',
	'SELECT a, b, gpu_median(t), percentile_cont(0.3) WITHIN GROUP (ORDER BY t), percentile_disc(0.3) WITHIN GROUP (ORDER BY n), gpu_approx_percentile(v, 0.5) FROM g GROUP BY GROUPING SETS ((a), (b), (a, b), (), ())',
	'SELECT a, b, percentile_disc(0.5) WITHIN GROUP (ORDER BY z) FILTER (WHERE o), percentile_disc(0.5) WITHIN GROUP (ORDER BY z), sum(d), avg(f) FILTER (WHERE o) FROM g GROUP BY a, GROUPING SETS ((b), (), (b))',
	'SELECT a, b, mode() WITHIN GROUP (ORDER BY v) AS m FROM g GROUP BY CUBE (a, b) HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY v) > 495 AND GROUPING(a) = 0',
	'SELECT a, b, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY s) FROM g WHERE false GROUP BY GROUPING SETS ((a, b), (a), (), ())',
	'SELECT o, percentile_disc(0.5) WITHIN GROUP (ORDER BY z) FILTER (WHERE o), count(*) FILTER (WHERE o) FROM g GROUP BY ROLLUP (o)',
	'SELECT id / 4, a, percentile_disc(0.5) WITHIN GROUP (ORDER BY v), count(*) FROM g GROUP BY ROLLUP (id / 4, a)',
	'SELECT s, b, percentile_disc(0.5) WITHIN GROUP (ORDER BY s), percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM g GROUP BY CUBE (s, b)',
	-- keys as fractions: NULL in sets without the key
	'SELECT p, b, percentile_cont(p) WITHIN GROUP (ORDER BY f), percentile_disc(ARRAY[p / 2, 0.5]) WITHIN GROUP (ORDER BY v) FROM g GROUP BY CUBE (p, b)',
	'SELECT p / 2 AS q, b, percentile_disc(coalesce(p / 2, 1)) WITHIN GROUP (ORDER BY v) FROM g GROUP BY ROLLUP (p / 2, b)',
	-- together with DISTINCT and ORDER BY
	'SELECT a, b, count(DISTINCT z), string_agg(DISTINCT s, '',''), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), sum(DISTINCT d) FILTER (WHERE o), count(*) FROM g GROUP BY ROLLUP (a, b)',
	'SELECT a, b, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), string_agg(s, '','' ORDER BY v, id) FILTER (WHERE v < 40), array_agg(v ORDER BY id DESC) FILTER (WHERE o AND v > 990) FROM g GROUP BY CUBE (a, b)',
	'SELECT a, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), string_agg(s, '','' ORDER BY v, id), count(DISTINCT z), sum(f ORDER BY id), gpu_longest_run(o ORDER BY id), min(n), count(*) FROM g GROUP BY a',
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), string_agg(s, '','' ORDER BY v, id), gpu_median(f ORDER BY id), mode() WITHIN GROUP (ORDER BY s) FROM g',
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), string_agg(s, '','' ORDER BY v, id), count(DISTINCT s) FROM g WHERE false',
	'SELECT z, percentile_disc(0.5) WITHIN GROUP (ORDER BY z), array_agg(z ORDER BY z), string_agg(DISTINCT s, ''-'' ORDER BY s DESC), array_agg(1000 / v ORDER BY id) FILTER (WHERE v <> 0 AND id % 50 = 0) FROM g GROUP BY z',
	-- subqueries as fractions
	'SELECT a, percentile_cont((SELECT avg(x) FROM (VALUES (0.2), (0.3)) y(x))) WITHIN GROUP (ORDER BY f) FROM g GROUP BY a',
	'SELECT a, b, percentile_cont((SELECT max(x) / 10.0 FROM generate_series(1, a) x)) WITHIN GROUP (ORDER BY f) FROM g GROUP BY CUBE (a, b)',
	'SELECT a, percentile_cont((SELECT array_agg(x / 10.0 ORDER BY x) FROM generate_series(1, a) x)) WITHIN GROUP (ORDER BY t), gpu_percentile_disc((SELECT max(p) FROM g h WHERE h.id = g.a)) WITHIN GROUP (ORDER BY v) FROM g GROUP BY a',
	'SELECT x.k, (SELECT percentile_cont(x.k) WITHIN GROUP (ORDER BY f) FROM g WHERE a = x.i), (SELECT percentile_disc((SELECT x.k)) WITHIN GROUP (ORDER BY v + x.i) FROM g) FROM (VALUES (0.1, 1), (0.5, 2), (NULL, 3)) x(k, i)',
	'SELECT x.i, y.* FROM (VALUES (1), (2), (3)) x(i), LATERAL (SELECT a, percentile_disc((SELECT max(p) FROM g h WHERE h.a = g.a AND h.id < 20 * x.i)) WITHIN GROUP (ORDER BY v) FROM g GROUP BY ROLLUP (a)) y']) q;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;

-- more values than memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;
RESET work_mem;
RESET hash_mem_multiplier;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- parameters, one and several, in custom and generic plans; a plan that is executed again
PREPARE quantiles(float8, float8[]) AS SELECT a, b, percentile_disc($1) WITHIN GROUP (ORDER BY v) AS x,
	percentile_disc($2) WITHIN GROUP (ORDER BY v) AS y, percentile_disc((SELECT $1 / 2)) WITHIN GROUP (ORDER BY v) AS z
	FROM g WHERE a = 1 AND b < 2 GROUP BY ROLLUP (a, b) ORDER BY a, b;
EXECUTE quantiles(0.5, '{0,1}');
SET plan_cache_mode = force_generic_plan;
EXECUTE quantiles(0.5, '{0,1}');
EXECUTE quantiles(0.1, '{{0.2,NULL}}');
EXECUTE quantiles(NULL, NULL);
EXECUTE quantiles(0.1, '{0.2,1.5}');
RESET plan_cache_mode;
DEALLOCATE quantiles;
BEGIN;
DECLARE c CURSOR FOR SELECT a, b, mode() WITHIN GROUP (ORDER BY v), percentile_disc((SELECT 0.5)) WITHIN GROUP (ORDER BY v) FROM g
	WHERE a = 1 AND b = 1 GROUP BY ROLLUP (a, b);
FETCH 1 FROM c;
FETCH ALL FROM c;
COMMIT;

-- a fraction that depends on a key and is no key; constants, and a key that all sets have twice
CREATE TABLE fractions AS SELECT i AS id, i / 10.0::float8 AS frac, i % 3 AS c FROM generate_series(0, 9) i;
ALTER TABLE fractions ADD PRIMARY KEY (id);
SELECT u.id, percentile_disc(frac) WITHIN GROUP (ORDER BY v) FROM fractions u JOIN g ON g.b = u.id GROUP BY GROUPING SETS ((u.id), (u.id)) ORDER BY 1;
SELECT u.id, a, percentile_disc(frac) WITHIN GROUP (ORDER BY v) FROM fractions u JOIN g ON g.b = u.id WHERE a < 2 AND u.id < 3
	GROUP BY u.id, ROLLUP (a) ORDER BY 1, 2;
SELECT 1 AS one, c, GROUPING(c), gpu_count(*) FROM fractions GROUP BY GROUPING SETS ((1, 2), (1)) ORDER BY 1, 2;
SELECT c AS x, c AS y, GROUPING(c), gpu_count(*) FROM fractions GROUP BY CUBE ((1, 2)) ORDER BY 1, 2;

-- variadic arguments
CREATE FUNCTION tally_add(int, VARIADIC int[]) RETURNS int LANGUAGE sql AS 'SELECT coalesce($1, 0) + cardinality($2) + $2[1]';
CREATE FUNCTION last_type(text, VARIADIC "any") RETURNS text LANGUAGE internal IMMUTABLE AS 'text_concat_ws';
CREATE AGGREGATE tally(VARIADIC int[]) (SFUNC = tally_add, STYPE = int, INITCOND = '0');
CREATE AGGREGATE joined(VARIADIC "any") (SFUNC = last_type, STYPE = text, INITCOND = '-');
SELECT c, tally(id, id, id), tally(VARIADIC ARRAY[c]), gpu_median(id) FROM fractions GROUP BY c ORDER BY 1;
SELECT c, tally(id, id ORDER BY id), joined(id, frac ORDER BY id), joined(VARIADIC ARRAY[id, 7] ORDER BY id), gpu_count(*)
	FROM fractions WHERE id < 5 GROUP BY ROLLUP (c) ORDER BY 1;
DROP AGGREGATE tally(VARIADIC int[]);
DROP AGGREGATE joined(VARIADIC "any");
DROP FUNCTION tally_add, last_type;
DROP TABLE fractions;

-- errors are core's
SELECT b, percentile_cont(b / 2.0) WITHIN GROUP (ORDER BY f) FROM g WHERE b IN (0, 3) GROUP BY ROLLUP (b);
SELECT a, percentile_cont((SELECT count(*) FROM generate_series(0, a))) WITHIN GROUP (ORDER BY f) FROM g WHERE a < 2 GROUP BY a;

SET gpuagg.engine = 'cpu';
-- releases name the SubPlan differently
CREATE FUNCTION pg_temp.explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		RETURN NEXT regexp_replace(line, 'SubPlan .*1', 'SubPlan');
	END LOOP;
END $$;
SELECT pg_temp.explained('SELECT a, b, percentile_cont((SELECT max(x) / 10.0 FROM generate_series(1, a) x)) WITHIN GROUP (ORDER BY f)
	FROM g GROUP BY CUBE (a, b)');

DROP TABLE g, queries;
