-- same(query): the query has "@" before the name of every aggregate. It runs with core's aggregates, with plain
-- gpu_* aggregates, in the custom scan, and in the custom scan with core's names. Returns that all rows (or errors)
-- are equal, or the difference. The order of rows
-- does not matter.
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
	memory text := current_setting('work_mem');
	workers text := current_setting('max_parallel_workers_per_gather');
	core text;
	plain text := pg_temp.answer(replace(query, '@', 'gpu_'), 'forbid', false);
	custom text := pg_temp.answer(replace(query, '@', 'gpu_'), 'require', false);
	builtin text := pg_temp.answer(replace(query, '@', ''), 'allow', true);
BEGIN
	-- core needs neither files nor workers
	PERFORM set_config('work_mem', '64MB', false), set_config('max_parallel_workers_per_gather', '0', false);
	core := pg_temp.answer(replace(query, '@', ''), 'allow', false);
	PERFORM set_config('work_mem', memory, false), set_config('max_parallel_workers_per_gather', workers, false);
	IF core = plain AND core = custom AND core = builtin THEN
		RETURN CASE WHEN core LIKE 'error%' THEN core ELSE 'same: ' || split_part(core, E'\n', 1) END;
	END IF;
	RETURN format(E'DIFFERENT\ncore %s\nplain %s\ncustom scan %s\ncustom scan, core names %s', core, plain, custom, builtin);
END $$;
RESET client_min_messages;
-- sums of floats in another order may differ in their last digits
SET extra_float_digits = -3;
-- so that core's aggregates are taken whatever the size of the input
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
