-- The life of the extension: update, another schema, drop and create in one session, in its own database.
\set regress :DBNAME
CREATE DATABASE gpuagg_extension;
\c gpuagg_extension
CREATE EXTENSION gpuagg;
CREATE TEMP TABLE t AS SELECT i % 3 AS k, i FROM generate_series(1, 300) i;
CREATE FUNCTION public.total() RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	total int8;
BEGIN
	PERFORM set_config('gpuagg.require', 'require', true);
	EXECUTE 'SELECT sum(s) FROM (SELECT k, gpu_sum(i) AS s FROM t GROUP BY k) q' INTO total;
	RETURN total;
END $$;
SELECT public.total();

-- an update to the current version, and to one that does not exist
ALTER EXTENSION gpuagg UPDATE;
ALTER EXTENSION gpuagg UPDATE TO '9.9';

-- relocatable
CREATE SCHEMA elsewhere;
ALTER EXTENSION gpuagg SET SCHEMA elsewhere;
SELECT k, elsewhere.gpu_sum(i), elsewhere.gpu_histogram(i, 0, 300, 3) FROM t GROUP BY k ORDER BY k;
SELECT count(*) > 30 FROM elsewhere.gpuagg_operators;
\set VERBOSITY sqlstate
SELECT gpu_sum(i) FROM t;
\set VERBOSITY default
SET search_path = elsewhere, public;
SELECT public.total();
RESET search_path;
ALTER EXTENSION gpuagg SET SCHEMA public;
SELECT public.total();

-- it cannot be dropped while other objects depend on it
CREATE VIEW sums AS SELECT gpu_sum(k) FROM (VALUES (1)) v(k);
DROP EXTENSION gpuagg;
DROP VIEW sums;

-- drop and create: the new functions are used immediately
DROP EXTENSION gpuagg;
\set VERBOSITY sqlstate
SELECT public.total();
\set VERBOSITY default
-- also with settings that require an engine and replace core's aggregates: core runs the queries of its script
SET gpuagg.engine = 'cuda';
SET gpuagg.require = 'require';
SET gpuagg.replace_builtin = on;
CREATE EXTENSION gpuagg WITH SCHEMA elsewhere;
SHOW gpuagg.replace_builtin;
RESET gpuagg.engine;
RESET gpuagg.require;
RESET gpuagg.replace_builtin;
SET search_path = elsewhere, public;
SELECT public.total();
RESET search_path;
ALTER EXTENSION gpuagg SET SCHEMA public;
DROP SCHEMA elsewhere;
SELECT public.total();

-- a user's aggregate with a name of the extension is not the extension's
CREATE AGGREGATE gpu_mine(int) (SFUNC = int4_sum, STYPE = int8);
SELECT gpu_mine(i) FROM t;
SET gpuagg.replace_builtin = on;
SELECT gpu_mine(i), sum(i) FROM t;
RESET gpuagg.replace_builtin;
DROP AGGREGATE gpu_mine(int);
-- all objects of the extension are members of it, so that pg_dump omits them
SELECT p.oid::regprocedure FROM pg_proc p
WHERE (proname LIKE 'gpu\_%' OR proname LIKE 'gpuagg\_%') AND pronamespace = 'public'::regnamespace
	AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e');
\c :regress
DROP DATABASE gpuagg_extension;
