-- A subquery's expressions are computed once for each row, whether they are used once, often or never: volatile
-- functions in its target list and conditions, and errors of columns that nobody uses.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE volatile_rows AS SELECT i, i % 5 AS g FROM generate_series(1, 2000) i;
CREATE SEQUENCE volatile_seq;

-- used more than once
SELECT gpu_sum(x - x) FROM (SELECT random() AS x FROM volatile_rows UNION ALL SELECT random() FROM volatile_rows) s;
SELECT gpu_sum((x <> y)::int) FROM (SELECT x, x + 1 - 1 AS y FROM (SELECT (random() * 1000)::int AS x FROM volatile_rows OFFSET 0) q) s;
SELECT sum((x <> s)::int) FROM (SELECT x, gpu_min(x) AS s FROM (SELECT (random() * 1000)::numeric(10,2) AS x FROM volatile_rows) q GROUP BY x) z;
-- in a subplan
SELECT gpu_sum(x - x), gpu_count(*)
FROM (SELECT (SELECT random() + r.i) AS x FROM volatile_rows r UNION ALL SELECT random() FROM volatile_rows) s;
-- never used
SELECT gpu_count(*) FROM (SELECT nextval('volatile_seq') FROM volatile_rows OFFSET 0) s;
SELECT currval('volatile_seq');
SELECT gpu_count(g) FROM (SELECT g, nextval('volatile_seq') FROM volatile_rows UNION ALL SELECT g, 1 FROM volatile_rows) s;
SELECT currval('volatile_seq');
-- a condition sees the effects of the conditions before it on the same row
SELECT gpu_count(*) FROM volatile_rows WHERE nextval('volatile_seq') > 0 AND currval('volatile_seq') = 4000 + i;
SELECT gpu_count(*) FROM volatile_rows r
WHERE nextval('volatile_seq') > 0 AND (SELECT currval('volatile_seq') = 6000 + r.i OFFSET 0);
-- a set-returning function in the target list
SELECT gpu_count(*), gpu_sum(n), gpu_sum(x - x) FROM (SELECT generate_series(1, 3) AS n, random() AS x FROM volatile_rows) s;
-- in a parallel plan nothing is computed twice either
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT gpu_sum(x - x) FROM (SELECT random() AS x FROM volatile_rows UNION ALL SELECT random() FROM volatile_rows) s;
SET max_parallel_workers_per_gather = 0;

-- as keys: one alone, and two equal expressions, which are different keys
SELECT count(*), sum(c), bool_or(a IS DISTINCT FROM b) FROM (SELECT random() < 0.5 AS a, random() + 0 < 0.5 AS b, gpu_count(*) AS c FROM volatile_rows GROUP BY 1, 2) s;
SELECT random() < 0.5 AS a, random() < 0.5 AS b, gpu_count(*) FROM volatile_rows GROUP BY 1, 2;
SET gpuagg.require = 'allow';
SELECT count(*), sum(c), bool_or(a IS DISTINCT FROM b) FROM (SELECT random() < 0.5 AS a, random() < 0.5 AS b, gpu_count(*) AS c FROM volatile_rows GROUP BY 1, 2) s;
SET gpuagg.require = 'require';

-- EXPLAIN shows the reason; volatile functions above the aggregation are allowed
CREATE FUNCTION pg_temp.feed(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || q LOOP
		IF line ~ 'Feed' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
SELECT pg_temp.feed($$SELECT gpu_count(*) FROM (SELECT nextval('volatile_seq') FROM volatile_rows OFFSET 0) s$$);
SELECT pg_temp.feed($$SELECT gpu_count(*) FROM volatile_rows WHERE random() < 2$$);
SELECT pg_temp.feed($$SELECT gpu_sum(x - x) FROM (SELECT random() + i AS x FROM volatile_rows UNION ALL SELECT i FROM volatile_rows) s$$);
SELECT pg_temp.feed($$SELECT gpu_count(*) FROM (SELECT i FROM volatile_rows UNION ALL SELECT i FROM volatile_rows) s GROUP BY random() < 0.5$$);
SELECT pg_temp.feed($$SELECT gpu_count(*) FROM volatile_rows r WHERE (SELECT random() > r.i OFFSET 0)$$);
SELECT pg_temp.feed($$SELECT g, gpu_sum(i), random() FROM volatile_rows GROUP BY g$$);
SELECT pg_temp.feed($$SELECT gpu_count(*) FROM volatile_rows r WHERE (SELECT r.i > count(*) FROM volatile_rows OFFSET 0)$$);

-- errors of columns that no aggregate uses, or only for some rows
CREATE FUNCTION pg_temp.outcome(q text, require text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('gpuagg.require', require, true);
	EXECUTE q INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT pg_temp.outcome(q, 'forbid'), pg_temp.outcome(q, 'require') FROM unnest(ARRAY[
	$$SELECT gpu_count(*) FROM (SELECT 1 / (i - 1000) AS q, g FROM volatile_rows UNION ALL SELECT 2, 3 FROM volatile_rows) s$$,
	$$SELECT gpu_sum(q) FILTER (WHERE g > 7) FROM (SELECT 1 / (i - 1000) AS q, g FROM volatile_rows UNION ALL SELECT 2, 3 FROM volatile_rows) s$$,
	$$SELECT gpu_sum(CASE WHEN g > 7 THEN q END) FROM (SELECT 1 / (i - 1000) AS q, g FROM volatile_rows UNION ALL SELECT 2, 3 FROM volatile_rows) s$$,
	$$SELECT gpu_sum(CASE WHEN g > 7 THEN q END) FROM (SELECT 1 / (i - 1000) AS q, g FROM volatile_rows OFFSET 0) s$$,
	$$SELECT gpu_sum(CASE WHEN g > 7 THEN q END) FROM ((SELECT 1 / (i - 1000) AS q, g FROM volatile_rows OFFSET 0) UNION ALL (SELECT 2, 3 FROM volatile_rows OFFSET 0)) s$$,
	$$SELECT gpu_count(g) FROM ((SELECT 1 / (i - 1000) AS q, g FROM volatile_rows OFFSET 0) UNION ALL (SELECT 2, 3 FROM volatile_rows OFFSET 0)) s$$,
	$$SELECT gpu_count(g) FROM ((SELECT 1 / (i - 1000) AS q, g FROM volatile_rows WHERE i < 1000 OFFSET 0) UNION ALL (SELECT 2, 3 FROM volatile_rows OFFSET 0)) s$$]) q;
DROP TABLE volatile_rows;
DROP SEQUENCE volatile_seq;
