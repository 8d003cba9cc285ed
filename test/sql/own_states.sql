-- Fallback aggregates together with others. Their states are combined only where core would combine them, and
-- in the same way.
SET gpuagg.cache = off;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
-- Group 0 exists and its state is NULL when memory is used up. More of its rows follow.
CREATE TABLE states AS SELECT i, CASE WHEN i < 16 THEN 0 ELSE i % 5000 END AS g,
                              CASE WHEN i = 3 OR i > 5000 AND i % 7 = 0 THEN -1 ELSE i % 100 END AS v
FROM generate_series(0, 14999) i;
ANALYZE states;

-- A strict function that returns NULL once: the state stays NULL for all later rows.
CREATE FUNCTION once_null(s int, v int) RETURNS int STRICT IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
$$ BEGIN RETURN CASE WHEN v < 0 THEN NULL ELSE s + v END; END $$;
CREATE AGGREGATE stays_null(int) (sfunc = once_null, stype = int, combinefunc = int4pl, parallel = safe);
-- The combine function raises an error. A serial plan does not call it.
CREATE FUNCTION must_not(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'combined'; END $$;
CREATE AGGREGATE alone(int) (sfunc = once_null, stype = int, initcond = 0, combinefunc = must_not);
-- States that depend on an order, which combining would not keep.
CREATE FUNCTION chain(s text, v int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT md5(coalesce(s, '') || v) $$;
CREATE AGGREGATE chained(int) (sfunc = chain, stype = text, combinefunc = textcat);

CREATE FUNCTION spilled(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan::jsonb, '$.**."Spilled"')::float8 > 0;
END $$;
SET hash_mem_multiplier = 1;
CREATE FUNCTION differ(agg text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT g, @count(*) AS c, %s AS a, @max(v::text) AS m FROM states GROUP BY g', agg);
	result text;
BEGIN
	PERFORM set_config('gpuagg.require', 'require', true), set_config('work_mem', '64kB', true);
	IF NOT spilled(replace(query, '@', 'gpu_')) THEN
		RETURN 'nothing spilled';
	END IF;
	EXECUTE 'CREATE TEMP TABLE ours ON COMMIT DROP AS ' || replace(query, '@', 'gpu_');
	PERFORM set_config('gpuagg.require', 'allow', true), set_config('work_mem', '64MB', true);
	EXECUTE 'CREATE TEMP TABLE core ON COMMIT DROP AS ' || replace(query, '@', '');
	SELECT format('%s groups, %s NULL, %s differ', count(*), count(*) FILTER (WHERE a IS NULL),
				  (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) d)) INTO result FROM core;
	DROP TABLE ours, core;
	RETURN result;
END $$;
SELECT differ('stays_null(v)');
SELECT differ('alone(v)');
SELECT differ('chained(v)');
SELECT differ('sum(v::numeric)');
SELECT differ('alone(v)::text || stays_null(v) || chained(v) || bit_and(v)');
RESET work_mem;
RESET gpuagg.require;
RESET hash_mem_multiplier;

-- In a parallel plan a strict combine function gets states of functions that are not strict, and ignores states
-- that stayed NULL.
CREATE FUNCTION add_slowly(s int8, v int) RETURNS int8 IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
$$ BEGIN RETURN CASE WHEN v IS NULL THEN s ELSE coalesce(s, 0) + v END; END $$;
CREATE AGGREGATE own_sum(int) (sfunc = add_slowly, stype = int8, combinefunc = int8pl, parallel = safe);
CREATE AGGREGATE own_sum0(int) (sfunc = int4_sum, stype = int8, combinefunc = int8pl, initcond = 0, parallel = safe);
CREATE FUNCTION never(s int8, v int) RETURNS int8 IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$ SELECT NULL::int8 $$;
CREATE AGGREGATE null_sum(int) (sfunc = never, stype = int8, combinefunc = int8pl, parallel = safe);
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.require = 'require';
EXPLAIN (COSTS OFF) SELECT g % 3, own_sum(v), gpu_sum(v) FROM states GROUP BY 1;
SELECT g % 3 AS g, own_sum(v) = gpu_sum(v) AS sum, own_sum0(v) = gpu_sum(v) AS sum0, null_sum(v), gpu_sum(v) FROM states GROUP BY 1 ORDER BY 1;
SELECT own_sum(v) = gpu_sum(v) AS sum, own_sum0(v) = gpu_sum(v) AS sum0, null_sum(v), own_sum(NULL) IS NULL AS none FROM states;
RESET gpuagg.require;
DROP FUNCTION spilled, differ;
DROP AGGREGATE stays_null(int), alone(int), chained(int), own_sum(int), own_sum0(int), null_sum(int);
DROP FUNCTION once_null, must_not, chain, add_slowly, never;
DROP TABLE states;
