-- Functions in conditions and arguments: privileges to execute them, and the numbers of calls in
-- pg_stat_user_functions.
SET client_min_messages = warning;
DROP ROLE IF EXISTS gpuagg_caller;
RESET client_min_messages;
CREATE ROLE gpuagg_caller;
SET gpuagg.engine = cpu;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE calls AS SELECT i AS id, i % 5 AS a, CASE WHEN i % 4 > 0 THEN i % 3 END AS y FROM generate_series(1, 1000) i;
ANALYZE calls;
GRANT SELECT ON calls TO gpuagg_caller;
CREATE FUNCTION call_pl(int) RETURNS int LANGUAGE plpgsql STRICT IMMUTABLE AS 'BEGIN RETURN $1 + 1; END';
CREATE FUNCTION call_null(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN coalesce($1, 0); END';
CREATE FUNCTION call_sql(int) RETURNS int LANGUAGE sql STRICT STABLE AS 'SELECT max(v) FROM (VALUES ($1), (7)) x(v)';
CREATE FUNCTION call_definer(int) RETURNS int LANGUAGE plpgsql STRICT STABLE SECURITY DEFINER SET search_path = pg_catalog AS 'BEGIN RETURN $1 * 2; END';
CREATE FUNCTION call_abs(int) RETURNS int LANGUAGE internal STRICT IMMUTABLE AS 'int4abs';
CREATE FUNCTION call_equal(int, int) RETURNS bool LANGUAGE plpgsql STRICT IMMUTABLE AS 'BEGIN RETURN $1 = $2; END';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = call_equal);

-- calls are counted as in core: in branches, for NULLs, with other functions, and not at all
CREATE TABLE call_queries AS SELECT row_number() OVER () AS n, q FROM unnest(ARRAY[
    'SELECT @sum(call_pl(a)) FROM calls', 'SELECT @sum(call_pl(y)) FROM calls', 'SELECT call_pl(a), @count(*) FROM calls GROUP BY 1', 'SELECT @count(*) FROM calls WHERE call_pl(a) > 2 AND call_pl(id) > 500',
    'SELECT @sum(CASE WHEN a = 1 THEN call_pl(a) ELSE call_sql(a) END) FROM calls', 'SELECT @sum(coalesce(y, call_pl(a))) FROM calls', 'SELECT @count(*) FROM calls WHERE a = 1 OR call_pl(y) = 2',
    'SELECT @sum(call_pl(call_definer(a))) FROM calls', 'SELECT @sum(call_null(y)) FROM calls', 'SELECT @sum(call_sql(y)) FROM calls', 'SELECT @sum(call_abs(a)) FROM calls', 'SELECT @count(*) FROM calls WHERE a === y',
    'SELECT @count(*) FROM calls WHERE a === ANY (ARRAY[1, 2])', 'SELECT @sum(call_pl(a)) FILTER (WHERE a > 3) FROM calls', 'SELECT @sum(call_pl(a)) FROM calls WHERE id > 5000', 'SELECT @sum(CASE WHEN a > 10 THEN call_pl(a) END) FROM calls',
    'SELECT call_null(y)::numeric(10,2), @sum(call_null(y)::numeric(10,2)) FROM calls GROUP BY 1',
    'SELECT @sum(x * 2), @max(x + 1) FROM (SELECT call_null(y) AS x FROM calls UNION ALL SELECT call_null(a) FROM calls) s', 'SELECT @sum(x * 2), @max(x + 1) FROM (SELECT (SELECT max(call_pl(v)) FROM (VALUES (1), (a)) w(v)) AS x FROM calls UNION ALL SELECT a FROM calls) s']) q;
CREATE FUNCTION pg_temp.counts(q text, prefix text, setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before text;
BEGIN
    PERFORM set_config('gpuagg.require', setting, true), pg_stat_force_next_flush();
    DROP TABLE IF EXISTS counted;
    CREATE TEMP TABLE counted AS SELECT funcname, pg_stat_get_xact_function_calls(funcid) AS calls FROM pg_stat_xact_user_functions WHERE funcname ~ '^call_';
    EXECUTE 'SELECT count(s::text) FROM (' || replace(q, '@', prefix) || ') s';
    RETURN (SELECT string_agg(format('%s %s', s.funcname, s.calls - coalesce(c.calls, 0)), ', ' ORDER BY s.funcname) FROM pg_stat_xact_user_functions s LEFT JOIN counted c USING (funcname)
        WHERE s.funcname ~ '^call_' AND s.calls <> coalesce(c.calls, 0));
END $$;
SET client_min_messages = warning;
SET track_functions = 'all';
BEGIN;
SELECT q, pg_temp.counts(q, '', 'forbid') AS core, pg_temp.counts(q, 'gpu_', 'require') AS ours INTO TEMP answers FROM call_queries ORDER BY n;
COMMIT;
SELECT q, core FROM answers;
SELECT * FROM answers WHERE core IS DISTINCT FROM ours;
SET track_functions = 'pl';
BEGIN;
SELECT q, pg_temp.counts(q, '', 'forbid') AS core, pg_temp.counts(q, 'gpu_', 'require') AS ours INTO TEMP answers_pl FROM call_queries ORDER BY n;
COMMIT;
SELECT * FROM answers_pl WHERE core IS DISTINCT FROM ours;
SET track_functions = 'none';
BEGIN;
SELECT count(pg_temp.counts(q, 'gpu_', 'require')) FROM call_queries;
COMMIT;
RESET client_min_messages;

-- functions that the role may not execute, in every form in which they run, and also if no row reaches them
REVOKE EXECUTE ON FUNCTION call_pl(int), call_equal(int, int) FROM PUBLIC;
CREATE FUNCTION pg_temp.outcome(q text, prefix text, setting text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('gpuagg.require', setting, true);
    EXECUTE 'SELECT count(s::text) FROM (' || replace(q, '@', prefix) || ') s';
    RETURN 'runs';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END $$;
GRANT SELECT ON call_queries TO gpuagg_caller;
SET ROLE gpuagg_caller;
SELECT n, pg_temp.outcome(q, '', 'forbid') AS core, pg_temp.outcome(q, '', 'forbid') = pg_temp.outcome(q, 'gpu_', 'require') AS agrees FROM call_queries ORDER BY n;
RESET ROLE;
-- the same for built-in functions with a vector form
REVOKE EXECUTE ON FUNCTION int4pl(int, int), date_part(text, timestamp), int4eq(int, int), pg_catalog."numeric"(int), textlike(text, text) FROM PUBLIC;
SET ROLE gpuagg_caller;
SELECT q, pg_temp.outcome(q, '', 'forbid') AS core, pg_temp.outcome(q, '', 'forbid') = pg_temp.outcome(q, 'gpu_', 'require') AS agrees FROM unnest(ARRAY['SELECT @sum(a + id) FROM calls', 'SELECT @count(*) FROM calls WHERE a = 1',
    'SELECT @count(*) FROM calls WHERE a IN (1, 2)', 'SELECT @sum(a::numeric) FROM calls', 'SELECT @count(*) FROM calls WHERE a::text LIKE ''1%''', 'SELECT @sum(a - id) FROM calls', 'SELECT @sum(nullif(a, id)) FROM calls',
    'SELECT date_part(''year'', timestamp ''2000-01-01'' + a * interval ''1 year''), @count(*) FROM calls GROUP BY 1', 'SELECT @sum(CASE WHEN id > 5000 THEN a + id END) FROM calls']) q;
RESET ROLE;
GRANT EXECUTE ON FUNCTION int4pl(int, int), date_part(text, timestamp), int4eq(int, int), pg_catalog."numeric"(int), textlike(text, text) TO PUBLIC;

DROP TABLE calls, call_queries;
DROP OPERATOR === (int, int);
DROP FUNCTION call_pl, call_null, call_sql, call_definer, call_abs, call_equal;
DROP ROLE gpuagg_caller;
