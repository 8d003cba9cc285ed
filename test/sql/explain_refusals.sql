-- EXPLAIN (VERBOSE) prints in every format why a query is not taken.
CREATE TABLE refused AS SELECT i % 3 AS k, i AS v FROM generate_series(1, 1000) i;
ANALYZE refused;

-- the output of EXPLAIN as a value, and a property of it
CREATE FUNCTION explained(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	RETURN plan;
END $$;
CREATE FUNCTION explained_xml(query text) RETURNS xml LANGUAGE plpgsql AS $$
DECLARE
	plan xml;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT xml) ' || query INTO plan;
	RETURN plan;
END $$;
SELECT jsonb_array_length(p) AS queries, p -> 0 ->> 'GpuAgg Not Used' AS not_used, p -> 0 ? 'Plan' AS plan
FROM explained('SELECT k, gpu_count(DISTINCT v::numeric::money) FROM refused GROUP BY k') p;
SELECT xpath('/e:explain/e:Query/e:GpuAgg-Not-Used/text()', p, '{{e,http://www.postgresql.org/2009/explain}}') AS not_used
FROM explained_xml('SELECT k, gpu_count(DISTINCT v::numeric::money) FROM refused GROUP BY k') p;

-- the last lines of the text format
CREATE FUNCTION explained_end(format text, query text, lines int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	line text[];
BEGIN
	EXECUTE format('EXPLAIN (VERBOSE, COSTS OFF, FORMAT %s) ', format) || query INTO plan;
	line := string_to_array(rtrim(plan, E'\n'), E'\n');
	RETURN QUERY SELECT l FROM unnest(line[cardinality(line) - lines + 1 :]) l;
END $$;
SELECT * FROM explained_end('yaml', 'SELECT gpu_count(DISTINCT v::numeric::money) FROM refused', 1);
SELECT * FROM explained_end('json', 'SELECT gpu_count(DISTINCT v::numeric::money) FROM refused', 4);
SELECT * FROM explained_end('xml', 'SELECT gpu_count(DISTINCT v::numeric::money) FROM refused', 4);

-- a window function
SELECT p -> 0 ->> 'GpuAgg Not Used' AS not_used FROM explained('SELECT gpu_sum(v) OVER () FROM refused') p;

-- several queries in one EXPLAIN: each has its own reason
CREATE VIEW two AS SELECT 1 AS x;
CREATE RULE two AS ON INSERT TO two DO INSTEAD (
	UPDATE refused SET v = 1 WHERE v = (SELECT gpu_count(DISTINCT v::numeric::money) FROM refused);
	DELETE FROM refused WHERE v < 0);
SELECT jsonb_array_length(p) AS queries, p -> 0 ->> 'GpuAgg Not Used' AS first, p -> 1 ->> 'GpuAgg Not Used' AS second,
	p -> 1 ? 'Plan' AS plan
FROM explained('INSERT INTO two VALUES (1)') p;

-- the level of the query is identified by what it selects from
SELECT p -> 0 ->> 'GpuAgg Not Used' AS not_used FROM explained('SELECT sum(c) FROM (SELECT k, gpu_sum(v) OVER () c FROM refused, pg_class, pg_type t, pg_proc OFFSET 0) x') p;
SET gpuagg.replace_builtin = on;
SELECT p -> 0 ->> 'GpuAgg Not Used' AS not_used FROM unnest(ARRAY['SELECT DISTINCT ON (k) k, random() FROM refused', 'SELECT k FROM refused INTERSECT SELECT v FROM refused',
    'SELECT k FROM refused EXCEPT SELECT v FROM refused UNION ALL SELECT 1', 'SELECT * FROM (SELECT k FROM refused EXCEPT ALL SELECT v FROM refused) x',
    'SELECT DISTINCT k, sum(v) OVER (PARTITION BY k) AS s FROM refused ORDER BY k']) q, explained(q) p;
-- an outer count over few groups is not reported if the groups are taken
SET gpuagg.row_cost = 0;
SET gpuagg.startup_cost = 1;
SELECT p -> 0 -> 'GpuAgg Not Used' AS not_used, p::text LIKE '%GpuAgg%' AS taken, p::text LIKE '%"Aggregate"%' AS core FROM explained('SELECT count(*), sum(s) FROM (SELECT k, sum(v) s FROM refused GROUP BY k OFFSET 0) x') p;
RESET gpuagg.row_cost;
RESET gpuagg.startup_cost;
RESET gpuagg.replace_builtin;

-- another plan is cheaper
SELECT p -> 0 ->> 'GpuAgg Not Used' AS why FROM explained('SELECT gpu_sum(v) FROM refused') p;
-- without a reason there is no property
SET gpuagg.require = 'require';
SELECT p -> 0 ? 'GpuAgg Not Used' AS not_used FROM explained('SELECT gpu_sum(v) FROM refused') p;
RESET gpuagg.require;

-- reasons of the query itself, not of queries in its functions
CREATE FUNCTION asks() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT gpu_count(DISTINCT v::numeric::money) FROM refused);
END $$;
CREATE FUNCTION asks_explained() RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, FORMAT json) SELECT asks()' INTO plan;
	RETURN plan;
END $$;
SELECT asks_explained() -> 0 ? 'GpuAgg Not Used' AS not_used;

-- forbidden
SET gpuagg.require = 'forbid';
SELECT p -> 0 ->> 'GpuAgg Not Used' AS not_used FROM explained('SELECT k, gpu_sum(v) FROM refused GROUP BY k') p;
EXPLAIN (VERBOSE, COSTS OFF) SELECT gpu_sum(v) FROM refused;
SELECT p -> 0 ? 'GpuAgg Not Used' AS not_used FROM explained('SELECT k, sum(v) FROM refused GROUP BY k') p;
RESET gpuagg.require;
DROP VIEW two;
DROP TABLE refused;
DROP FUNCTION asks, asks_explained;
DROP FUNCTION explained, explained_xml, explained_end;
