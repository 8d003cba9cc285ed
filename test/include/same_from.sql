-- Compares a query's answer with core's, and returns the lines of its plan that match `shown`: where rows came from.
CREATE FUNCTION same(query text, shown text DEFAULT :'shown') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	cores text;
	line text;
	words text := '';
BEGIN
	SET LOCAL gpuagg.require = 'require';
	EXECUTE format('SELECT string_agg(s::text, '';'' ORDER BY s::text) FROM (%s) s', query) INTO ours;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		words := words || coalesce(' ' || substring(line FROM shown), '');
	END LOOP;
	SET LOCAL gpuagg.require = 'allow';
	SET LOCAL gpuagg.enabled = off;
	EXECUTE format('SELECT string_agg(s::text, '';'' ORDER BY s::text) FROM (%s) s', query) INTO cores;
	SET LOCAL gpuagg.enabled = on;
	RETURN CASE WHEN ours = cores THEN 'same' WHEN coalesce(ours, cores) IS NULL THEN 'same, no rows' ELSE format('%s, core: %s', ours, cores) END || words;
END $$;
