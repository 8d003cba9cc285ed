-- ordered-set aggregates: percentiles and modes
SET gpuagg.cache = off;
SET gpuagg.replace_builtin = on;
CREATE TYPE os_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE o AS SELECT i % 7 AS k, (i % 13)::text AS s, i % 5 AS v, ((i * 37 % 110)::numeric / 2)::numeric(10,2) AS n,
	(i % 17)::numeric / 4 AS u, CASE WHEN i % 3 = 0 THEN NULL ELSE i * 7 % 40 END AS z, (i * 613 % 1000) / 7.0::float8 AS f,
	make_interval(days => i * 31 % 50, secs => i % 11) AS t, date '2020-01-01' + i * 17 % 300 AS d,
	(ARRAY['sad', 'ok', 'happy'])[i % 3 + 1]::os_mood AS m, (i % 5) / 4.0::float8 AS p, (i % 100)::float4 / 8 AS r, i % 2 = 0 AS b, i AS id
	FROM generate_series(1, 6000) i;
INSERT INTO o VALUES (1, 'x', 1, 1, 1, 1, 'NaN', '1 mon', '2020-01-01', 'ok', 0.5, 'NaN', true, 0),
	(1, NULL, NULL, NULL, 'NaN', NULL, '0.1', NULL, 'infinity', NULL, NULL, '-1', NULL, 0),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0),
	(2, 'X', 1, 'NaN', 1e30, 1, 'Infinity', '-1 day', '-infinity', 'sad', 1, '-Infinity', false, 0),
	(8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0),
	(9, NULL, NULL, NULL, NULL, NULL, '-0', NULL, NULL, NULL, NULL, NULL, NULL, 0),
	(10, NULL, NULL, NULL, NULL, NULL, '-Infinity', NULL, NULL, NULL, NULL, NULL, NULL, 0),
	(10, NULL, NULL, NULL, NULL, NULL, 'Infinity', NULL, NULL, NULL, NULL, NULL, NULL, 0);
VACUUM ANALYZE o;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same_as_core.sql'
\i :include
CREATE TABLE queries AS SELECT row_number() OVER () AS id, q FROM unnest(ARRAY[
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM o',
	'SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM o GROUP BY k',
	'SELECT k, percentile_cont(0.25) WITHIN GROUP (ORDER BY f), percentile_cont(0.75) WITHIN GROUP (ORDER BY f), percentile_disc(0.9) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY f) FROM o GROUP BY k',
	'SELECT k, percentile_cont(''{0, 0.1, NULL, 1, 0.5}''::float8[]) WITHIN GROUP (ORDER BY f) FROM o GROUP BY k',
	'SELECT k, percentile_disc(''{{0, 0.1}, {1, 0.5}}''::float8[]) WITHIN GROUP (ORDER BY z) FROM o GROUP BY k',
	'SELECT k, percentile_disc(''{}''::float8[]) WITHIN GROUP (ORDER BY z), percentile_disc(NULL::float8[]) WITHIN GROUP (ORDER BY z), percentile_disc(NULL::float8) WITHIN GROUP (ORDER BY z) FROM o GROUP BY k',
	'SELECT k, percentile_cont(0.3) WITHIN GROUP (ORDER BY v), percentile_cont(0.3) WITHIN GROUP (ORDER BY n), percentile_cont(0.99) WITHIN GROUP (ORDER BY r), percentile_cont(0.3) WITHIN GROUP (ORDER BY u) FROM o GROUP BY k',
	'SELECT k, percentile_cont(0.3) WITHIN GROUP (ORDER BY t), percentile_cont(''{0.1,0.9}''::float8[]) WITHIN GROUP (ORDER BY t DESC), percentile_disc(0.7) WITHIN GROUP (ORDER BY t) FROM o GROUP BY k',
	'SELECT k, percentile_disc(0.3) WITHIN GROUP (ORDER BY s), percentile_disc(0.3) WITHIN GROUP (ORDER BY s COLLATE "C" DESC), mode() WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY s DESC) FROM o GROUP BY k',
	'SELECT k, percentile_disc(0.3) WITHIN GROUP (ORDER BY d), percentile_disc(0.6) WITHIN GROUP (ORDER BY m), percentile_disc(0.2) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY b), percentile_disc(0.5) WITHIN GROUP (ORDER BY u) FROM o GROUP BY k',
	'SELECT k, mode() WITHIN GROUP (ORDER BY d), mode() WITHIN GROUP (ORDER BY m DESC), mode() WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY b), mode() WITHIN GROUP (ORDER BY z), mode() WITHIN GROUP (ORDER BY z DESC NULLS FIRST), mode() WITHIN GROUP (ORDER BY z NULLS FIRST) FROM o GROUP BY k',
	'SELECT k, percentile_disc(0.4) WITHIN GROUP (ORDER BY s::char(3)), percentile_disc(0.4) WITHIN GROUP (ORDER BY ARRAY[v, z]), percentile_disc(0.4) WITHIN GROUP (ORDER BY s::"char"), percentile_disc(0.4) WITHIN GROUP (ORDER BY ROW(v, id)), percentile_disc(0.4) WITHIN GROUP (ORDER BY s::name), mode() WITHIN GROUP (ORDER BY id USING >) FROM o GROUP BY k',
	'SELECT k, percentile_disc(0.4) WITHIN GROUP (ORDER BY v USING <), percentile_disc(0.4) WITHIN GROUP (ORDER BY s USING ~<~), percentile_disc(0.4) WITHIN GROUP (ORDER BY s USING ~>~) FROM o GROUP BY k',
	'SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY f DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY f) FROM o GROUP BY k',
	'SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FILTER (WHERE v > 2), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), count(*) FILTER (WHERE v > 2), mode() WITHIN GROUP (ORDER BY v) FILTER (WHERE false) FROM o GROUP BY k',
	'SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY 1.0 / v) FILTER (WHERE v <> 0) FROM o GROUP BY k',
	'SELECT p, percentile_cont(p) WITHIN GROUP (ORDER BY f), percentile_disc(1 - p) WITHIN GROUP (ORDER BY z) FROM o GROUP BY p',
	'SELECT p / 2, percentile_cont(ARRAY[p / 2, 0.5]) WITHIN GROUP (ORDER BY f) FROM o GROUP BY p / 2',
	'SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM o GROUP BY k HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY v) >= 2 AND count(*) > 10',
	'SELECT k, count(*), sum(v), avg(n), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), max(s) FROM o GROUP BY k',
	'SELECT k, count(DISTINCT z), array_agg(DISTINCT v), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), count(DISTINCT z) FILTER (WHERE v > 2), count(*), string_agg(DISTINCT s, '','') FROM o GROUP BY k',
	'SELECT k, array_length(array_agg(z), 1), percentile_disc(0.5) WITHIN GROUP (ORDER BY z), bool_or(b) FILTER (WHERE b) FROM o GROUP BY k',
	'SELECT b, percentile_disc(0.5) WITHIN GROUP (ORDER BY z) FILTER (WHERE b), count(*) FILTER (WHERE b), count(DISTINCT v) FILTER (WHERE b) FROM o GROUP BY b',
	'SELECT k, s, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY v) FROM o GROUP BY k, s',
	'SELECT s, percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM o GROUP BY s',
	'SELECT f + 0 AS f, percentile_cont(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM o GROUP BY f',
	'SELECT id, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM o GROUP BY id',
	'SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY k), mode() WITHIN GROUP (ORDER BY 7) FROM o GROUP BY k',
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY s), count(*) FROM o WHERE false',
	'SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM o WHERE false GROUP BY k',
	'SELECT mode() WITHIN GROUP (ORDER BY x) + 0, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) + 0 FROM (VALUES (0.0::float8), (1), (''-0''), (1), (0)) v(x)',
	'SELECT percentile_cont((SELECT 0.25)) WITHIN GROUP (ORDER BY f) FROM o',
	'SELECT x.p, (SELECT percentile_disc(x.p) WITHIN GROUP (ORDER BY y.v + x.i) FROM o y WHERE y.k = x.i) FROM (VALUES (1, 0.1), (2, 0.5), (1, 0.9)) x(i, p)',
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a.f) FROM o a JOIN o b ON a.id = b.id',
	'SELECT k, count(DISTINCT z), string_agg(DISTINCT s, '','') FILTER (WHERE b), percentile_disc(''{0.5}''::float8[]) WITHIN GROUP (ORDER BY s), avg(v) FILTER (WHERE b) FROM o GROUP BY k']) q;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;

-- more values than memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT pg_temp.same_as_core(q), id FROM queries ORDER BY id;
SELECT pg_temp.same_as_core(q), q FROM unnest(ARRAY[
	'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY i % 100), percentile_disc(''{0.1, 0.2}''::float8[]) WITHIN GROUP (ORDER BY i::text) FROM generate_series(1, 60000) i',
	'SELECT i % 3, percentile_cont(0.5) WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY (i % 100)::text), percentile_disc(''{0.1, 0.2}''::float8[]) WITHIN GROUP (ORDER BY i::text DESC) FROM generate_series(1, 60000) i GROUP BY 1',
	'SELECT i % 7000, percentile_disc(0.5) WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY i % 11), count(*) FROM generate_series(1, 60000) i GROUP BY 1',
	'SELECT (i % 5000)::text || ''key'', percentile_disc(0.5) WITHIN GROUP (ORDER BY md5(i::text)), count(*) FROM generate_series(1, 20000) i GROUP BY 1']) q;

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

-- errors are core's: also for groups without values, and for groups that HAVING removes
SET gpuagg.require = 'require';
SELECT k, percentile_cont(1.5) WITHIN GROUP (ORDER BY f) FROM o GROUP BY k;
SELECT percentile_cont('NaN') WITHIN GROUP (ORDER BY f) FROM o WHERE false;
SELECT percentile_disc('{0.5,-1}'::float8[]) WITHIN GROUP (ORDER BY z) FROM o;
SELECT percentile_disc('{0.5,-1}'::float8[]) WITHIN GROUP (ORDER BY z) FROM o WHERE false;
SELECT v, percentile_cont(v / 3.0) WITHIN GROUP (ORDER BY f) FROM o GROUP BY v HAVING count(*) < 0;

-- parameters, a plan that is executed again, a cursor
PREPARE quantile(float8, float8[]) AS SELECT k, percentile_disc($1) WITHIN GROUP (ORDER BY z) AS a,
	percentile_disc($2) WITHIN GROUP (ORDER BY z) AS b FROM o WHERE k < 3 GROUP BY k ORDER BY k;
EXECUTE quantile(0.5, '{0,1}');
SET plan_cache_mode = force_generic_plan;
EXECUTE quantile(0.1, '{0.2,NULL}');
EXECUTE quantile(NULL, NULL);
SELECT x, m FROM (VALUES (0.1), (0.5), (0.9)) v(x), LATERAL (SELECT percentile_disc(x) WITHIN GROUP (ORDER BY z) AS m FROM o WHERE k = 3) q;
BEGIN;
DECLARE c CURSOR FOR SELECT k, mode() WITHIN GROUP (ORDER BY v) FROM o WHERE k = 2 GROUP BY k;
FETCH 1 FROM c;
COMMIT;

-- aggregates that core runs
CREATE AGGREGATE own_percentile(float8 ORDER BY float8) (SFUNC = ordered_set_transition, STYPE = internal,
	FINALFUNC = percentile_cont_float8_final);
SELECT rank(3) WITHIN GROUP (ORDER BY v) FROM o;
SELECT count(*), dense_rank(3) WITHIN GROUP (ORDER BY v) FROM o;
SELECT count(*), own_percentile(0.5) WITHIN GROUP (ORDER BY v) FROM o;

DROP TABLE o, queries;
DROP TYPE os_mood;
DROP AGGREGATE own_percentile(float8 ORDER BY float8);
