-- Volatile functions in HAVING are called for as many groups as in core, whatever LIMIT and other conditions allow.
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE hv AS SELECT i % 10000 AS k, i AS v FROM generate_series(1, 20000) i;
VACUUM ANALYZE hv;
CREATE SEQUENCE called;
CREATE FUNCTION counts(bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE COST 0.0001 AS 'BEGIN RETURN nextval(''called'') > 0; END';
CREATE FUNCTION calls(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('called', 1, false);
	EXECUTE 'SELECT count(*) FROM (' || query || ') x';
	RETURN nextval('called') - 1;
END $$;
CREATE FUNCTION both_call(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours bigint;
BEGIN
	SET LOCAL gpuagg.require = 'require';
	ours := calls(query);
	SET LOCAL gpuagg.require = 'allow';
	SET LOCAL gpuagg.enabled = off;
	RETURN format('%s, core %s', ours, calls(query));
END $$;
SELECT both_call('SELECT k FROM hv GROUP BY k HAVING counts(k) ORDER BY max(v) DESC LIMIT 1');
SELECT both_call('SELECT k FROM hv GROUP BY k HAVING counts(count(*)) AND max(v) > 19900');
SELECT both_call('SELECT k FROM hv GROUP BY k HAVING max(v) > 19900 AND nextval(''called'') > 0');
SELECT both_call('SELECT k FROM hv GROUP BY k HAVING counts(count(*)) AND max(v) > 19900 AND sum(v) > 0 ORDER BY max(v) LIMIT 3');
DROP TABLE hv;
DROP SEQUENCE called;
DROP FUNCTION counts, calls, both_call;
