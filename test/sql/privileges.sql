-- Privileges to execute functions. Privileges of relations, and row security, are core's.
SET client_min_messages = warning;
DROP ROLE IF EXISTS gpuagg_reader;
RESET client_min_messages;
CREATE ROLE gpuagg_reader;
CREATE TABLE secrets (k int, n int);
INSERT INTO secrets SELECT i % 2, i FROM generate_series(1, 100) i;
SET gpuagg.require = require;

SET ROLE gpuagg_reader;
SELECT k, gpu_sum(n) FROM secrets GROUP BY k;
RESET ROLE;
GRANT SELECT ON secrets TO gpuagg_reader;
SET ROLE gpuagg_reader;
SELECT k, gpu_sum(n) FROM secrets GROUP BY k ORDER BY k;
SELECT count(*) > 30 FROM gpuagg_operators;
SELECT gpuagg_version() IS NOT NULL;
RESET ROLE;

-- an aggregate that the role may not execute, in the custom scan and as a plain aggregate
REVOKE EXECUTE ON FUNCTION gpu_sum(int) FROM PUBLIC;
SET ROLE gpuagg_reader;
SELECT k, gpu_sum(n) FROM secrets GROUP BY k;
SELECT k, gpu_avg(n) FROM secrets GROUP BY k ORDER BY k;
SET gpuagg.require = forbid;
SELECT k, gpu_sum(n) FROM secrets GROUP BY k;
RESET ROLE;
GRANT EXECUTE ON FUNCTION gpu_sum(int) TO PUBLIC;

-- row security
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY half ON secrets TO gpuagg_reader USING (n <= 50);
SET gpuagg.require = require;
SET ROLE gpuagg_reader;
SELECT k, gpu_sum(n), gpu_count(*) FROM secrets GROUP BY k ORDER BY k;
-- a leaky function sees only rows that the policy allows
CREATE FUNCTION pg_temp.leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
	IF $1 > 50 THEN RAISE NOTICE 'saw %', $1; END IF;
	RETURN true;
END $$;
SELECT gpu_count(*) FROM secrets WHERE pg_temp.leak(n);
RESET ROLE;
SELECT gpu_count(*) FROM secrets;

-- only a superuser may create the extension
RESET gpuagg.require;
SELECT rolsuper FROM pg_roles WHERE rolname = 'gpuagg_reader';
SELECT superuser, relocatable, trusted FROM pg_available_extension_versions WHERE name = 'gpuagg' AND version = '1.0';
DROP TABLE secrets;
DROP FUNCTION pg_temp.leak(int);
DROP ROLE gpuagg_reader;
