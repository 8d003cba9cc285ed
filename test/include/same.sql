-- same(query): runs a query in four ways, and compares rows or errors. In the query, @ stands before each aggregate's name. It runs with
-- PostgreSQL's aggregates, with gpu_* aggregates without the custom scan, with them in the custom scan, and with PostgreSQL's names in
-- the custom scan. Returns the number of rows or the error if all are equal, else all answers. The order of rows does not matter.
SET client_min_messages = warning;
CREATE OR REPLACE FUNCTION pg_temp.answer(query text, require text, builtin bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('gpuagg.require', require, false),
			set_config('gpuagg.replace_builtin', builtin::text, false);
	BEGIN
		EXECUTE format('SELECT count(*) || E'' rows\n'' || coalesce(string_agg(r::text, E''\n'' ORDER BY r::text), '''') FROM (%s) r',
					   query) INTO result;
	EXCEPTION WHEN OTHERS THEN
		result := format('error: %s (%s)', sqlerrm, sqlstate);
	END;
	PERFORM set_config('gpuagg.require', 'allow', false), set_config('gpuagg.replace_builtin', 'off', false);
	RETURN result;
END $$;
CREATE OR REPLACE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	core text := pg_temp.answer(replace(query, '@', ''), 'allow', false);
	plain text := pg_temp.answer(replace(query, '@', 'gpu_'), 'forbid', false);
	custom text := pg_temp.answer(replace(query, '@', 'gpu_'), 'require', false);
	builtin text := pg_temp.answer(replace(query, '@', ''), 'allow', true);
BEGIN
	IF core = plain AND core = custom AND core = builtin THEN
		RETURN CASE WHEN core LIKE 'error%' THEN core ELSE 'same: ' || split_part(core, E'\n', 1) END;
	END IF;
	RETURN format(E'DIFFERENT\ncore %s\nplain %s\ncustom scan %s\ncustom scan, core names %s', core, plain, custom, builtin);
END $$;
RESET client_min_messages;
-- the last digits of sums of floats depend on the order of rows
SET extra_float_digits = -3;
-- the custom scan costs nothing, so that it is chosen for inputs of any size
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
