-- Functions that run a query over the distributed table and the same query over a local table, and compare the answers.

-- Returns the rows of a query as a sorted array of lines with names and values. -0 becomes 0, as the first of equal values depends on
-- the order of rows.
CREATE FUNCTION rows_of(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	found text[] := '{}';
BEGIN
	FOR r IN EXECUTE query LOOP
		found := found || regexp_replace(row_to_json(r)::text, '-0(?![.\d])', '0', 'g');
	END LOOP;
	RETURN ARRAY(SELECT unnest(found) COLLATE "C" ORDER BY 1);
END
$$;

-- Returns whether two lines are equal. If not exact, the last digits of floats may differ, as they are sums of partial sums.
CREATE FUNCTION alike(a text, b text, exact bool) RETURNS bool LANGUAGE sql AS $$
	SELECT a = b OR (NOT exact AND (SELECT count(*) > 0 AND bool_and(coalesce(v = w OR
			(v || w ~ '^[-+0-9.e]+$' AND abs(v::numeric - w::numeric) <= 1e-9 * greatest(abs(v::numeric), abs(w::numeric), 1e-3)), false))
		FROM unnest(regexp_split_to_array(a, '[\[\]{}:,]'), regexp_split_to_array(b, '[\[\]{}:,]')) u(v, w)))
$$;

CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END
$$;

-- Returns where a query is aggregated: 'workers' (by the custom scan on the workers), 'core on workers' (by PostgreSQL's plan on the
-- workers), 'rows' (the coordinator aggregates rows that workers send).
CREATE FUNCTION place_of(plan text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN tasks ~ 'Custom Scan \(GpuAgg\)' THEN 'workers' WHEN tasks ~ 'Aggregate' THEN 'core on workers'
		WHEN tasks <> '' THEN 'rows' ELSE 'no task' END
	FROM (SELECT coalesce(string_agg(t, E'\n'), '') AS tasks FROM regexp_split_to_table(plan, 'Tasks Shown') WITH ORDINALITY s(t, n) WHERE n > 1) s
$$;

-- Returns the engine of a plan's first custom scan, with the reason or the device. With Citus it is the scan of a task.
CREATE FUNCTION engine_of(plan text) RETURNS text LANGUAGE sql AS $$
	SELECT substring(plan, 'Engine: ([^\n]*)')
$$;

-- Return how many queries the GPU servers of the workers, or of the coordinator, got; 0 without servers.
CREATE FUNCTION queries_at_servers() RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce(sum(nullif(result, '')::bigint) FILTER (WHERE success), 0)
	FROM run_command_on_workers('SELECT sum(queries) FROM gpuagg_devices()')
$$;

CREATE FUNCTION queries_here() RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce(sum(queries), 0)::bigint FROM gpuagg_devices()
$$;

-- Compares the answers of two queries, the second one without the custom scan. Returns '' or the difference.
CREATE FUNCTION difference(ours text, cores text, exact bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	got text[];
	want text[];
BEGIN
	SET LOCAL gpuagg.enabled = off;
	want := rows_of(cores);
	SET LOCAL gpuagg.enabled = on;
	got := rows_of(ours);
	IF got = want OR (SELECT bool_and(coalesce(alike(g, w, exact), false)) FROM unnest(got, want) u(g, w)) THEN
		RETURN '';
	END IF;
	RETURN format('%s rows and %s of core; first: %s', cardinality(got), cardinality(want),
		(SELECT format('%s, core %s', g, w) FROM unnest(got, want) u(g, w) WHERE alike(g, w, exact) IS NOT TRUE LIMIT 1));
EXCEPTION WHEN OTHERS THEN
	RETURN 'error: ' || SQLERRM;
END
$$;

-- The results of pairs of an aggregate and its argument types, one row per grouping.
CREATE TABLE result (call text, grouping_of text, wrong text, place text, gpu bool);

-- Returns whether rows may be gathered if the grouping is not by the distribution column: the aggregate needs all rows of a group.
CREATE FUNCTION may_gather(call text) RETURNS bool LANGUAGE sql AS $$
	SELECT call ~ 'ORDER BY' OR call ~ '^gpu_(median|mad)'
$$;

CREATE VIEW report AS
SELECT line FROM (
	SELECT 1 AS part, call, CASE WHEN bool_and(wrong = '' AND (place = 'workers' OR (place = 'rows' AND grouping_of <> 'k' AND may_gather(call)))) THEN 'ok - ' ELSE 'not ok - ' END ||
		call || ': ' || string_agg(CASE grouping_of WHEN '' THEN 'all' ELSE grouping_of END || ' ' || place || CASE WHEN wrong <> '' THEN format(' (%s)', wrong) ELSE '' END, '; '
			ORDER BY grouping_of) AS line
	FROM result GROUP BY call
	UNION ALL
	SELECT 2, grouping_of, format('# grouped by %s: %s of %s pairs by the custom scan on the workers, %s gather rows: %s', CASE grouping_of WHEN '' THEN 'nothing' ELSE grouping_of END,
		count(*) FILTER (WHERE place = 'workers'), count(*), count(*) FILTER (WHERE place = 'rows'),
		coalesce((SELECT string_agg(DISTINCT name, ', ') FROM (SELECT substring(call, '\w+') AS name FROM result r WHERE r.grouping_of = result.grouping_of AND place = 'rows') n), 'none'))
	FROM result GROUP BY grouping_of
	UNION ALL
	SELECT 3, grouping_of, format('# grouped by %s: %s of %s pairs on the workers by the GPU engine, %s by the other one%s', CASE grouping_of WHEN '' THEN 'nothing' ELSE grouping_of END,
		count(*) FILTER (WHERE gpu), count(*), count(*) FILTER (WHERE NOT gpu), CASE grouping_of WHEN 'k' THEN ': ' || string_agg(call, ', ' ORDER BY call) FILTER (WHERE NOT gpu) END)
	FROM result WHERE place = 'workers' AND gpu IS NOT NULL GROUP BY grouping_of) l
ORDER BY part, call;

CREATE PROCEDURE compare_pair(call text, core text, exact bool) LANGUAGE plpgsql AS $$
DECLARE
	keys text;
	ours text;
	cores text;
	wrong text;
	place text;
	before bigint;
	on_workers bigint;
	before_here bigint;
	on_coordinator bigint;
BEGIN
	FOREACH keys IN ARRAY ARRAY['k', 'g', '', 'g, h'] LOOP
		ours := format('SELECT %s %s AS a FROM dist_rows %s', keys || CASE WHEN keys <> '' THEN ',' END, call,
			CASE WHEN keys <> '' THEN 'GROUP BY ' || keys END);
		cores := format('SELECT %s %s AS a FROM local_rows %s', keys || CASE WHEN keys <> '' THEN ',' END, core,
			CASE WHEN keys <> '' THEN 'GROUP BY ' || keys END);
		before := queries_at_servers();
		wrong := difference(ours, cores, exact);
		on_workers := queries_at_servers() - before;
		BEGIN
			place := place_of(plan_of(ours));
			-- if the query over the local table goes to the server, so do the queries of the 8 tasks
			IF place = 'workers' AND current_setting('gpuagg.server')::bool THEN
				before_here := queries_here();
				PERFORM rows_of(replace(ours, 'dist_rows', 'local_rows'));
				on_coordinator := queries_here() - before_here;
				IF (CASE WHEN on_coordinator > 0 THEN on_workers < 8 OR engine_of(plan_of(ours)) !~ '^cuda' ELSE on_workers > 0 END) THEN
					wrong := wrong || format('%s queries at the GPU servers of workers, %s at that of the coordinator for a local table', on_workers, on_coordinator);
				END IF;
			END IF;
		EXCEPTION WHEN OTHERS THEN
			place := 'error';
		END;
		INSERT INTO result VALUES (call, keys, wrong, place, CASE WHEN on_coordinator IS NOT NULL THEN on_workers > 0 END);
	END LOOP;
END
$$;

-- Calls of each aggregate of the extension with columns of its argument types, and the calls to compare them with: PostgreSQL's
-- aggregate of that name, or the same aggregate without the custom scan.
CREATE VIEW pairs AS
WITH columns(type, name) AS (VALUES ('smallint', 'i2'), ('integer', 'i4'), ('bigint', 'i8'), ('real', 'f4'), ('double precision', 'f8'),
		('numeric', 'n'), ('numeric', 'nn'), ('text', 't'), ('character', 'bp'), ('date', 'd'), ('time without time zone', 'tm'),
		('time with time zone', 'tmz'), ('timestamp without time zone', 'ts'), ('timestamp with time zone', 'tz'),
		('interval', 'iv'), ('money', 'm'), ('oid', 'o'), ('boolean', 'b'), ('bit', 'bi'), ('bit varying', 'vb'), ('inet', 'ip'), ('pg_lsn', 'lsn'),
		('tid', 'tid'), ('xid8', 'x8'), ('bigint[]', 'ia'), ('double precision[]', 'fa'), ('numeric[]', 'na'), ('anyarray', 'ia'), ('anyenum', 'en'),
		('"any"', 'i4'), ('"any"', 'i8'), ('"any"', 'f8'), ('"any"', 'n'), ('"any"', 't'), ('"any"', 'd'), ('"any"', 'ts'), ('"any"', 'b'),
		('anyelement', 'i4'), ('anyelement', 'i8'), ('anyelement', 'f8'), ('anyelement', 'n'), ('anyelement', 't'), ('anyelement', 'd'),
		('double precision', 'f8x')),
	ours AS (
		SELECT p.oid, proname, aggkind, p.proargtypes::oid[] AS types, pronargs, prorettype::regtype::text AS result
		FROM pg_aggregate a JOIN pg_proc p ON p.oid = aggfnoid JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
			JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid AND extname = 'gpuagg'
		-- those with other names, but the exact ones, are only called by foreign servers
		WHERE proname ~ '^gpu_|^gpuagg_exact_(?!.*_state$)'),
	calls AS (
		SELECT proname, 'gpu_count(*)' AS call, result FROM ours WHERE pronargs = 0 AND aggkind = 'n'
		UNION ALL
		-- aggregates that depend on the order of rows
		SELECT proname, format('%s(%s ORDER BY id)', proname, CASE WHEN proname = 'gpu_compose_linear' THEN 'p8, 1' ELSE
			CASE proname WHEN 'gpu_matrix_product' THEN 'mat' ELSE c.name END END), result
		FROM ours JOIN columns c ON c.type = format_type(types[0], NULL)
		WHERE proname IN ('gpu_max_subarray_sum', 'gpu_longest_run', 'gpu_longest_ascending_run', 'gpu_compose_linear', 'gpu_matrix_product')
			AND name <> 'f8x'
		UNION ALL
		SELECT proname, format('%s(%s) WITHIN GROUP (ORDER BY %s)', proname,
			CASE pronargs WHEN 1 THEN '' ELSE CASE WHEN types[0] = 'float8'::regtype THEN '0.3' ELSE '''{0.1, 0.5}''::float8[]' END END, c.name), result
		FROM ours JOIN columns c ON c.type = format_type(types[pronargs - 1], NULL)
		WHERE aggkind = 'o' AND name <> 'f8x'
		UNION ALL
		SELECT proname, CASE WHEN format_type(types[1], NULL) = 'double precision[]' THEN 'gpu_histogram(f8, ''{-100, 0, 100}''::float8[])'
			WHEN proname = 'gpu_histogram_log' THEN 'gpu_histogram_log(f8, 0.1, 100, 6)'
			WHEN pronargs = 5 THEN 'gpu_histogram(f8, -250, 250, 20, f4)' ELSE 'gpu_histogram(f8, -250, 250, 20)' END, result
		FROM ours WHERE proname IN ('gpu_histogram', 'gpu_histogram_log')
		UNION ALL
		SELECT proname, format('%s(%s, %s)', proname, 'f8', CASE WHEN types[1] = 'float8'::regtype THEN '0.3' ELSE '''{0.1, 0.5}''::float8[]' END), result
		FROM ours WHERE proname = 'gpu_approx_percentile'
		UNION ALL
		SELECT proname, format('%s(%s)', proname, CASE WHEN types[0] = 'float8'::regtype THEN 'p8' ELSE 'pn' END), result
		FROM ours WHERE proname = 'gpu_product'
		UNION ALL
		SELECT proname, format('%s(%s, %s)', proname, v.name, v.key), result
		FROM ours JOIN (VALUES ('i4', 'f8'), ('i4', 'i8'), ('f8', 'ts'), ('n', 'n'), ('t', 'i8'), ('ts', 'd'), ('i8', 't')) v(name, key) ON true
		WHERE proname IN ('gpu_argmax', 'gpu_argmin', 'gpu_first', 'gpu_last') AND types[0] = 'anyelement'::regtype
		UNION ALL
		SELECT proname, CASE pronargs WHEN 2 THEN format('%s(%s, 3)', proname, v.name) ELSE format('%s(%s, %s, 3)', proname, v.name, v.key) END, result
		FROM ours JOIN (VALUES ('i4', 'f8'), ('i4', 'i8'), ('f8', 'ts'), ('n', 'n'), ('t', 'i8'), ('ts', 'd'), ('i8', 't')) v(name, key) ON true
		WHERE proname ~ '^gpu_(arg)?(max|min)_n$'
		UNION ALL
		SELECT proname, format('%s(%s%s)', proname, v.name, CASE pronargs WHEN 2 THEN ', 3' END), result
		FROM ours JOIN (VALUES ('i4 % 50'), ('n % 2'), ('left(t, 1)'), ('d - d')) v(name) ON true
		WHERE proname IN ('gpu_value_counts', 'gpu_top_k', 'gpu_entropy')
		UNION ALL
		SELECT proname, format('%s(%s, 5)', proname, v.name), result
		FROM ours JOIN (VALUES ('f8'), ('i4::float8'), ('f8 * 1e100')) v(name) ON true
		WHERE proname IN ('gpu_histogram_auto', 'gpu_histogram_equidepth', 'gpu_exp_histogram')
		UNION ALL
		SELECT proname, format('gpu_histogram2d(f8, -250, 250, 5, i4::float8, -500, 500, 4%s)', CASE pronargs WHEN 9 THEN ', f4' END), result
		FROM ours WHERE proname = 'gpu_histogram2d'
		UNION ALL
		SELECT proname, format('%s(%s::gpuagg_state)', proname, m.name), result
		FROM ours JOIN (VALUES ('gpu_exp_histogram_merge', 'exps'), ('gpu_approx_count_distinct_merge', 'dists'), ('gpu_approx_percentile_merge', 'percs')) m(merge, name)
			ON proname = merge
		UNION ALL
		SELECT proname, format('%s(%s%s)', proname, c.name, CASE pronargs WHEN 2 THEN ', ' || coalesce(nullif(second.name, 'f8'), 'i4::float8') END), result
		FROM ours JOIN columns c ON c.type = format_type(types[0], NULL)
			LEFT JOIN columns second ON pronargs = 2 AND second.type = format_type(types[1], NULL) AND second.name NOT IN ('f8x', 'nn')
		WHERE aggkind = 'n' AND pronargs BETWEEN 1 AND 2 AND (pronargs = 1 OR second.name IS NOT NULL)
			AND NOT (pronargs = 2 AND c.name IN ('f8x', 'nn'))
			AND proname !~ '^gpu_(max_n|min_n|value_counts|top_k)$' AND proname NOT IN ('gpu_max_subarray_sum', 'gpu_longest_run', 'gpu_longest_ascending_run', 'gpu_compose_linear', 'gpu_matrix_product',
				'gpu_histogram', 'gpu_histogram_log', 'gpu_histogram_auto', 'gpu_histogram_equidepth', 'gpu_exp_histogram', 'gpu_approx_percentile', 'gpu_product')
			AND NOT (proname IN ('gpu_argmax', 'gpu_argmin', 'gpu_first', 'gpu_last') AND types[0] = 'anyelement'::regtype))
SELECT DISTINCT ON (call) call,
	CASE WHEN EXISTS (SELECT FROM pg_proc c WHERE c.pronamespace = 'pg_catalog'::regnamespace AND c.proname = substr(calls.proname, 5) AND c.prokind = 'a')
		THEN regexp_replace(call, '^gpu_', '') ELSE call END AS core,
	result !~ '^(double precision|real|gpuagg_summary)' OR proname LIKE 'gpuagg\_exact\_%' AS exact
FROM calls ORDER BY call;
