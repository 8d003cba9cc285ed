-- Functions for tests with foreign partitions: they compare a partitioned table "t" with "flat", a local copy.

-- Returns a value as text. Floats are rounded, as sums of floats depend on the order of rows.
CREATE FUNCTION shown(float8) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN $1 IN ('NaN', 'Infinity', '-Infinity', 0) THEN $1::text
	ELSE trim_scale(round($1::numeric, 9 - greatest(floor(log(abs($1)))::int, -9)))::text END $$;
-- Its moments may be zero but for errors of rounding, so they have 9 decimals and not 10 digits.
CREATE FUNCTION shown(gpuagg_summary) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT ROW($1.count, $1.nulls, $1.distinct_values, $1.min, $1.max, round($1.mean::numeric, 9), round($1.deviation::numeric, 9),
	round($1.skewness::numeric, 9), round($1.kurtosis::numeric, 9), $1.q1, $1.median, $1.q3, $1.histogram)::text $$;
CREATE FUNCTION shown(anyelement) RETURNS text LANGUAGE sql STABLE AS $$ SELECT $1::text $$;

-- Returns all rows of a query, sorted.
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(s::text, E''\n'' ORDER BY s::text COLLATE "C") FROM (%s) s', query) INTO result;
	RETURN result;
END $$;

-- Returns where a query is aggregated: 'whole' or 'partial' on the servers, 'rows' locally from fetched rows, or 'local'.
CREATE FUNCTION place(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN CASE WHEN plan !~ 'Foreign Scan' THEN 'local' WHEN plan !~ 'Relations: Aggregate on' THEN 'rows'
		WHEN plan ~ 'PARTIAL' AND plan ~ 'Finalize ' THEN 'partial' ELSE 'whole' END;
END $$;

-- Compares the answer over "t" with PostgreSQL's own over "flat", and where the query is aggregated. Returns a line of TAP.
CREATE FUNCTION same(name text, query text, wanted_place text, reference text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	wanted text;
	found text;
	found_place text;
BEGIN
	PERFORM set_config('gpuagg.enabled', 'off', true);
	wanted := answer(regexp_replace(coalesce(reference, query), '\mt\M', 'flat', 'g'));
	PERFORM set_config('gpuagg.enabled', 'on', true);
	found_place := place(query);
	found := answer(query);
	RETURN CASE WHEN found IS DISTINCT FROM wanted THEN format('not ok %s: another answer', name)
		WHEN found_place !~ ('^(' || wanted_place || ')$') THEN format('not ok %s: %s, not %s', name, found_place, wanted_place)
		ELSE format('ok %s: %s', name, found_place) END;
EXCEPTION WHEN OTHERS THEN
	RETURN format('not ok %s: %s', name, sqlerrm);
END $$;
