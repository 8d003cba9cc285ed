-- Tests on the coordinator of test/fdw.sh, which has the partitioned table "t" with foreign partitions, and "flat", a local copy.
-- Compares all aggregates for several groupings, and checks where they ran.

\ir fdw_functions.sql

-- Calls of each aggregate of the extension with columns of its argument types, and of PostgreSQL's aggregate of the same name.
CREATE TABLE calls AS
WITH columns(type, name) AS (
	SELECT DISTINCT ON (atttypid) atttypid, attname::text FROM pg_attribute
	WHERE attrelid = 'flat'::regclass AND attnum > 0 AND attname NOT IN ('region', 'k') ORDER BY atttypid, attnum)
SELECT p.oid, p.proname::text AS name, p.proname || args.list AS call, c.call AS core, aggcombinefn <> 0 AS merged,
	aggtranstype = 'internal'::regtype AS internal
FROM pg_aggregate JOIN pg_proc p ON p.oid = aggfnoid
	CROSS JOIN LATERAL (
		SELECT CASE
			WHEN p.proname = 'gpu_count' AND pronargs = 0 THEN '(*)'
			WHEN p.proname = 'gpu_histogram' AND pronargs = 2 THEN '(f8, ''{-10,0,5,50}''::float8[])'
			WHEN p.proname = 'gpu_histogram' AND pronargs = 4 THEN '(f8, -50, 50, 7)'
			WHEN p.proname = 'gpu_histogram' THEN '(f8, -50, 50, 7, f8)'
			WHEN p.proname IN ('gpu_histogram_auto', 'gpu_histogram_equidepth', 'gpu_exp_histogram') THEN '(f8, 7)'
			WHEN p.proname = 'gpu_exp_histogram_merge' THEN '(gpu_exp_histogram_of(3, 1, i4 % 50, ''{2}''))'
			WHEN p.proname = 'gpu_histogram2d' THEN '(f8, -50, 50, 3, i4, -500, 500, 2' || CASE pronargs WHEN 9 THEN ', 0.5)' ELSE ')' END
			WHEN p.proname = 'gpu_histogram_log' THEN '(f8, 0.5, 50, 7)'
			WHEN p.proname = 'gpu_approx_percentile' AND proargtypes[1] = 'float8'::regtype THEN '(f8, 0.9)'
			WHEN p.proname = 'gpu_approx_percentile' THEN '(f8, ''{0.1,0.5}''::float8[])'
			WHEN p.proname ~ '^gpu_arg.*_n$' THEN '(txt, n, 3)'
			WHEN p.proname ~ '_n$' THEN '(f8, 3)'
			WHEN p.proname = 'gpu_top_k' OR p.proname = 'gpu_value_counts' AND pronargs = 2 THEN '(k, 3)'
			WHEN p.proname IN ('gpu_value_counts', 'gpu_entropy') THEN '(txt)'
			WHEN p.proname ~ 'arg|first|last' AND p.proname !~ 'longest' THEN '(txt, n)'
			WHEN p.proname = 'gpu_product' THEN format('(1 + %s %% 2)', n1.name)
			WHEN p.proname ~ 'run|subarray' THEN format('(%s ORDER BY n)', coalesce(n1.name, 'i4'))
			WHEN p.proname = 'gpu_compose_linear' THEN '(f8 / 1e9, 1 ORDER BY n)'
			WHEN pronargs = 2 THEN '(f8, f8 * f8 - i4)'
			WHEN pronargs = 1 AND proargtypes[0] IN ('"any"'::regtype, 'anyelement'::regtype) THEN '(txt)'
			WHEN pronargs = 1 THEN '(' || n1.name || ')' END AS list
		FROM (VALUES (1)) one(x) LEFT JOIN columns n1 ON n1.type = proargtypes[0]
			OR (proargtypes[0] = 'anyarray'::regtype AND n1.name = 'arr')) args
	LEFT JOIN LATERAL (
		SELECT f.proname || args.list AS call FROM pg_proc f
		WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.prokind = 'a' AND f.proname = substr(p.proname, 5)
			AND f.proargtypes = p.proargtypes) c ON true
WHERE p.proname ~ '^gpu_|^gpuagg_exact_' AND p.proname !~ 'exact_accum' AND aggkind = 'n' AND args.list IS NOT NULL
	AND p.proname !~ 'matrix|histogram_merge' AND args.list !~ '\(\(';
UPDATE calls SET call = replace(call, 'f8 % 2', 'f8::numeric % 2') WHERE call ~ 'product';


/*
 * All pairs of aggregate and grouping. Rows are fetched for aggregates that depend on their order, and for those without portable states.
 * For extremes without keys, the planner may sort rows, and for large states it may fetch rows.
 */
CREATE TEMP TABLE pairs AS
SELECT same(format('%s by %s', call, coalesce(nullif(keys, ''), 'nothing')), query,
		CASE WHEN keys = 'region' THEN CASE WHEN call ~ 'ORDER BY' THEN 'whole|rows' ELSE 'whole' END
			WHEN NOT merged OR call ~ 'median|mad' THEN 'rows'
			WHEN keys = '' AND call ~ 'min|max|bool|every' OR call ~ 'approx_percentile|summary' THEN 'rows|partial'
			ELSE 'partial' END,
		replace(query, call, coalesce(core, call))) AS line
FROM calls, (VALUES ('region'), ('k'), (''), ('lower(txt), k % 3')) g(keys),
	-- skewness may be zero but for errors of rounding
	LATERAL (SELECT CASE WHEN call ~ 'skewness|kurtosis' THEN format('round(%s::numeric, 9)', call) ELSE call END AS value) v,
	LATERAL (SELECT format('SELECT %s shown(%s) FROM t %s', keys || nullif(', ', keys || ', '), value, 'GROUP BY ' || nullif(keys, '')) AS query) q
ORDER BY call, keys;
SELECT line FROM pairs WHERE line ~ '^not';
SELECT format('%s %s pairs of aggregate and keys, of which %s whole, %s in part, %s from rows',
	CASE WHEN bool_or(line ~ '^not') THEN 'not ok' ELSE 'ok' END, count(*), count(*) FILTER (WHERE line ~ ': whole$'),
	count(*) FILTER (WHERE line ~ ': partial$'), count(*) FILTER (WHERE line ~ ': rows$')) FROM pairs;

-- Queries of many shapes.
SELECT same('FILTER', 'SELECT k, gpu_sum(i4) FILTER (WHERE i8 > 0), gpu_count(*) FILTER (WHERE b) FROM t GROUP BY k', 'partial');
SELECT same('HAVING', 'SELECT k, gpu_avg(num) FROM t GROUP BY k HAVING gpu_sum(i4) > 500 AND gpu_count(x) > 100', 'partial');
SELECT same('HAVING without keys', 'SELECT gpu_avg(num) FROM t HAVING gpu_count(*) > 30000', 'partial');
SELECT same('ORDER BY and LIMIT', 'SELECT k, gpu_sum(i8) FROM t GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 7', 'partial');
SELECT same('expressions of keys and aggregates', 'SELECT k % 5 + 1, gpu_sum(i4) * 2 + gpu_count(*), length(lower(txt)) FROM t GROUP BY k % 5, lower(txt) HAVING length(lower(txt)) + gpu_count(*) > 3 ORDER BY k % 5, upper(lower(txt))', 'partial');
SELECT same('expression of a key', 'SELECT (k + 1) * 2, gpu_count(*) FROM t GROUP BY k + 1', 'partial');
SELECT same('one state for several aggregates', 'SELECT k, shown(gpu_avg(f8)), shown(gpu_stddev(f8)), shown(gpu_var_pop(f8)), gpu_avg(i8), gpu_sum(i8), gpu_sum(i8) FROM t GROUP BY k', 'partial');
SELECT same('the same key twice', 'SELECT k, k AS again, gpu_count(*) FROM t GROUP BY k, again', 'partial');
SELECT same('constant among keys', 'SELECT ''x''::text AS c, k, gpu_count(*) FROM t GROUP BY c, k', 'partial');
SELECT same('constant as the only key', 'SELECT ''total'' AS label, gpu_sum(i4) FROM t GROUP BY 1', 'partial');
SELECT same('constant as the only key, no row', 'SELECT ''total'' AS label, gpu_sum(i4) FROM t WHERE n * 1 < 0 GROUP BY 1', 'partial');
SELECT same('constant as the only key, HAVING', 'SELECT 7 AS label, gpu_avg(num) FROM t GROUP BY 1 HAVING gpu_count(*) > 30000', 'partial');
SELECT same('today as a key', 'SELECT current_date, gpu_sum(i4) FROM t GROUP BY 1', 'partial');
SELECT same('today among keys', 'SELECT k, current_date, gpu_sum(i4) FROM t GROUP BY k, current_date', 'partial');
SELECT same('subquery as a key', 'SELECT (SELECT max(name) FROM names) AS s, gpu_sum(i4), gpu_avg(i8) FROM t GROUP BY 1', 'partial');
SELECT same('subquery among keys', 'SELECT (SELECT max(name) FROM names) AS s, k, gpu_avg(i8) FROM t GROUP BY 1, 2', 'partial');
SELECT same('parameter as a key', 'SELECT g, s FROM generate_series(1, 3) g, LATERAL (SELECT g + 1, gpu_sum(i4) AS s FROM t GROUP BY 1) q', 'partial|rows');
-- few rows: a higher cost of their transfer prevents that they are fetched
ALTER SERVER s0 OPTIONS (ADD fdw_tuple_cost '1000');
ALTER SERVER s1 OPTIONS (ADD fdw_tuple_cost '1000');
SELECT same('key that a condition makes constant', 'SELECT k, gpu_sum(i4) FROM t WHERE k = 3 GROUP BY k', 'partial');
SELECT same('keys of which a condition makes one constant', 'SELECT k, b, gpu_sum(i4) FROM t WHERE k = 3 GROUP BY b, k',
	CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'partial|rows' ELSE 'partial' END);
SELECT same('constant key of text', 'SELECT txt, gpu_avg(i8), gpu_count(*) FROM t WHERE txt = ''B0'' GROUP BY txt', 'partial');
SELECT same('expression that a condition makes constant', 'SELECT k % 2, gpu_sum(i4) FROM t WHERE k % 2 = 1 GROUP BY k % 2', 'partial|rows');
SELECT same('constant key, no row', 'SELECT k, gpu_sum(i4) FROM t WHERE k = -3 GROUP BY k', 'partial|rows');
ALTER SERVER s0 OPTIONS (DROP fdw_tuple_cost);
ALTER SERVER s1 OPTIONS (DROP fdw_tuple_cost);
SELECT same('key of several rows', 'SELECT generate_series(1, 3), gpu_sum(i4) FROM t GROUP BY 1', 'partial|rows');
SELECT same('condition that is shipped', 'SELECT k, gpu_avg(i4) FROM t WHERE i8 > 1000 AND txt > ''B'' AND d < ''2021-01-01'' GROUP BY k', 'partial');
SELECT same('condition that is not shipped', 'SELECT k, gpu_avg(i4) FROM t WHERE upper_here(txt) > ''B'' GROUP BY k', 'rows');
SELECT same('argument that is not shipped', 'SELECT k, gpu_max(upper_here(txt)) FROM t GROUP BY k', 'rows');
SELECT same('some partitions pruned', 'SELECT k, gpu_avg(i4) FROM t WHERE region IN (1, 2) GROUP BY k', 'partial');
SELECT same('all partitions but one pruned', 'SELECT k, gpu_avg(i4) FROM t WHERE region = 3 GROUP BY k', 'partial|whole');
SELECT same('no row', 'SELECT gpu_avg(i4), gpu_sum(num), gpu_stddev(i8), gpu_count(*), gpu_max(txt), gpu_approx_count_distinct(txt) FROM t WHERE n * 1 < 0', 'partial');
SELECT same('no row, with keys', 'SELECT k, gpu_avg(i4) FROM t WHERE n * 1 < 0 GROUP BY k', 'partial');
SELECT same('DISTINCT', 'SELECT k, gpu_count(DISTINCT i2), gpu_sum(i4) FROM t GROUP BY k', 'rows');
SELECT same('DISTINCT by region', 'SELECT region, gpu_count(DISTINCT i2), gpu_sum(i4) FROM t GROUP BY region', 'whole');
SELECT same('percentiles', 'SELECT k, gpu_percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM t GROUP BY k', 'rows');
SELECT same('grouping sets', 'SELECT k, gpu_sum(i4) FROM t GROUP BY ROLLUP (k)', 'rows');
SELECT same('window function over aggregates', 'SELECT k, gpu_sum(i4) AS s, rank() OVER (ORDER BY gpu_sum(i4) DESC NULLS LAST) FROM t GROUP BY k', 'partial');
SELECT same('subquery', 'SELECT gpu_max(s) FROM (SELECT k, gpu_sum(i4) AS s FROM t GROUP BY k) q', 'partial');
SELECT same('CTE', 'WITH q AS MATERIALIZED (SELECT k, gpu_sum(i4) AS s FROM t GROUP BY k) SELECT a.k, a.s FROM q a JOIN q b ON a.k = b.k + 1', 'partial');
SELECT same('scalar subquery', 'SELECT k, (SELECT gpu_avg(i4) FROM t WHERE t.k = g) FROM generate_series(0, 3) g(g), (VALUES (1)) v(k)', 'partial|rows');
SELECT same('lateral parameter in an argument', 'SELECT g, s FROM generate_series(1, 3) g, LATERAL (SELECT gpu_sum(i4 * g) AS s, g + gpu_count(*) FROM t) q', 'partial|rows');
SELECT same('view', 'SELECT k, total FROM t_by_k', 'partial', 'SELECT k, gpu_sum(i4) AS total FROM t GROUP BY k');
SELECT same('UNION ALL', 'SELECT k, gpu_sum(i4) FROM t GROUP BY k UNION ALL SELECT NULL, gpu_sum(i4) FROM t', 'partial');
SELECT same('join with a local table', 'SELECT name, gpu_sum(i4) FROM t JOIN names USING (k) GROUP BY name', 'rows');
SELECT same('join of partitions', 'SELECT a.k, gpu_count(*), gpu_sum(b.i4) FROM t a JOIN t b ON a.region = b.region AND a.n = b.n GROUP BY a.k', 'partial|rows');
-- the servers estimate costs
ALTER SERVER s0 OPTIONS (ADD use_remote_estimate 'true');
ALTER SERVER s1 OPTIONS (ADD use_remote_estimate 'true');
SELECT same('remote estimates', 'SELECT k, gpu_avg(num), gpu_count(*) FROM t GROUP BY k HAVING gpu_count(*) > 10', 'partial');
SET enable_partitionwise_join = on;
SELECT same('partitionwise join', 'SELECT a.k, gpu_count(*), gpu_sum(b.i4) FROM t a JOIN t b ON a.region = b.region AND a.k = b.k WHERE a.n < 500 GROUP BY a.k', 'partial');
RESET enable_partitionwise_join;
ALTER SERVER s0 OPTIONS (DROP use_remote_estimate);
ALTER SERVER s1 OPTIONS (DROP use_remote_estimate);
SELECT same('the extension''s and PostgreSQL''s aggregates', 'SELECT k, gpu_sum(i4), avg(i4), max(txt), count(*) FROM t GROUP BY k', 'partial');
SELECT same('only PostgreSQL''s aggregates', 'SELECT k, avg(i8), max(txt), count(*) FROM t GROUP BY k', 'rows');
SET gpuagg.replace_builtin = on;
SELECT same('PostgreSQL''s aggregates, replaced', 'SELECT k, avg(i4), max(txt), count(*), shown(stddev(f8)), shown(regr_slope(f8, i4)), bool_or(b) FROM t GROUP BY k', 'partial');
SELECT same('PostgreSQL''s aggregates with internal states', 'SELECT k, avg(i8), sum(num), stddev(i4) FROM t GROUP BY k', 'rows');
SELECT same('aggregates that the extension does not replace', 'SELECT k, string_agg(txt, '','' ORDER BY n), count(*) FROM t GROUP BY k', 'rows');
SELECT same('states that only this server could merge', 'SELECT k, array_length(array_agg(n), 1), count(*) FROM t GROUP BY k', 'rows');
RESET gpuagg.replace_builtin;
SET gpuagg.foreign_partial = off;
SELECT same('gpuagg.foreign_partial off', 'SELECT k, gpu_sum(i4) FROM t GROUP BY k', 'rows');
RESET gpuagg.foreign_partial;
SET enable_hashagg = off;
SELECT same('hash aggregation off', 'SELECT k, gpu_sum(i4) FROM t GROUP BY k', 'partial');
RESET enable_hashagg;
SELECT same('enums', 'SELECT k, gpu_approx_count_distinct(mood_of(b)), gpu_max(mood_of(b)) FROM t GROUP BY k', 'rows');
SELECT same('values of another type that travel', 'SELECT k, gpu_max(d), gpu_min(tz), gpu_sum(iv), gpu_avg(iv) FROM t GROUP BY k', 'partial');

-- a generic plan with a parameter; INSERT ... SELECT
SET plan_cache_mode = force_generic_plan;
PREPARE by_k(int) AS SELECT gpu_sum(i4 + $1) AS s, gpu_count(*) AS c FROM t WHERE i8 > $1 GROUP BY k HAVING gpu_count(*) > $1;
CREATE TEMP TABLE prepared AS EXECUTE by_k(10);
INSERT INTO prepared SELECT gpu_sum(i4), k FROM t GROUP BY k;
SELECT CASE WHEN NOT EXISTS (TABLE prepared EXCEPT ALL (SELECT sum(i4 + 10), count(*) FROM flat WHERE i8 > 10 GROUP BY k HAVING count(*) > 10
		UNION ALL SELECT sum(i4), k FROM flat GROUP BY k)) AND (SELECT count(*) FROM prepared) = 108 THEN 'ok' ELSE 'not ok' END || ' prepared, and INSERT';
RESET plan_cache_mode;

-- a role that sees only some of the rows, and one without privileges
SET ROLE reader;
SELECT CASE WHEN answer('SELECT k, gpu_sum(i4) FROM t GROUP BY k') = answer('SELECT k, sum(i4) FROM flat WHERE region <> 2 GROUP BY k')
	THEN 'ok' ELSE 'not ok' END || ' row security';
SET ROLE stranger;
SELECT same('permission', 'SELECT k, gpu_sum(i4) FROM t GROUP BY k', 'partial');
RESET ROLE;
