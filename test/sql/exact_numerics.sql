-- gpu_product and gpu_max_subarray_sum of numeric are exact.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
CREATE AGGREGATE pg_temp.product(numeric) (SFUNC = numeric_mul, STYPE = numeric);
-- every sum of consecutive values, computed by brute force
CREATE FUNCTION pg_temp.best(v numeric[]) RETURNS numeric LANGUAGE sql AS $$
	SELECT greatest(max(s), CASE WHEN cardinality(v) > 0 THEN 0 END) FROM (
		SELECT (SELECT sum(x) FROM unnest(v[i:j]) x) AS s FROM generate_series(1, cardinality(v)) i, generate_series(i, cardinality(v)) j) t
$$;
CREATE TEMP TABLE n AS SELECT i, i % 5 AS k, CASE WHEN i % 13 > 0 THEN ((i * 7919 % 1000) - 500) / 1000.0 + 1 END AS x,
	CASE WHEN i % 17 > 0 THEN ((i * 7919 % 1003) - 500)::numeric(6, 1) / 10 END AS y FROM generate_series(1, 300) i;
ANALYZE n;

-- the result types; those of integers and floats are unchanged
SELECT pg_typeof(gpu_product(x)), pg_typeof(gpu_product(i)), pg_typeof(gpu_product(x::float4)), pg_typeof(gpu_max_subarray_sum(x)),
	pg_typeof(gpu_max_subarray_sum(i)), pg_typeof(gpu_max_subarray_sum(i::int8)), pg_typeof(gpu_max_subarray_sum(x::float4)) FROM n WHERE i < 5;
SELECT gpu_max_subarray_sum(x), gpu_product(x) FROM (VALUES (0.1), (0.2)) v(x);
SELECT gpu_max_subarray_sum(x), gpu_product(x) FROM (VALUES (0.1::float8), (0.2)) v(x);
-- a view that was created for double precision keeps its type
CREATE TEMP VIEW of_floats AS SELECT gpu_product(x::float8), gpu_max_subarray_sum(x::float8 ORDER BY i) FROM n;
SELECT pg_get_viewdef('of_floats'::regclass) LIKE '%gpu_product((%)::double precision)%' AS cast, pg_typeof(gpu_product) FROM of_floats;

CREATE FUNCTION pg_temp.answers(how text) RETURNS TABLE (k int, product numeric, best numeric, late numeric) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuagg.require', how, true);
	RETURN QUERY EXECUTE 'SELECT k, gpu_product(x), gpu_max_subarray_sum(y ORDER BY i), gpu_product(x) FILTER (WHERE i > 295) FROM n GROUP BY k';
END $$;
SELECT how, a.k, a.product = e.product AS product, a.best = e.best AS best, a.late IS NOT DISTINCT FROM e.late AS late, scale(a.product), a.best
FROM unnest('{forbid, require}'::text[]) how, LATERAL (SELECT * FROM pg_temp.answers(how) OFFSET 0) a JOIN (
	SELECT k, pg_temp.product(x) AS product, pg_temp.best(array_agg(y ORDER BY i) FILTER (WHERE y IS NOT NULL)) AS best,
		pg_temp.product(x) FILTER (WHERE i > 295) AS late FROM n GROUP BY k) e USING (k) ORDER BY how, k;

-- in another order it is the sum of all positive values
SET gpuagg.require = require;
SELECT k, gpu_max_subarray_sum(y ORDER BY y DESC) = sum(y) FILTER (WHERE y > 0) AS same FROM n GROUP BY k ORDER BY k;
RESET gpuagg.require;

-- NULLs, no rows, infinities and NaN, in both ways
CREATE TEMP TABLE special AS SELECT * FROM (VALUES (1, '{}'::numeric[]), (2, '{NULL}'), (3, '{-1, -2.50}'), (4, '{1, NaN, 2}'), (5, '{1, Infinity, -5}'), (6, '{1, -Infinity, 5.0, 2}'),
	(7, '{Infinity, -Infinity}'), (8, '{-Infinity, 3, Infinity}'), (9, '{0, 0.00}'), (10, '{1.0, -0.5, 0.5, 1.00}'), (11, '{1e131071, 1e-16383}'), (12, '{3, NULL, 4}'), (13, '{-Infinity}')) v(id, a);
CREATE TEMP TABLE spread AS SELECT id, ord, x FROM special LEFT JOIN LATERAL unnest(a) WITH ORDINALITY u(x, ord) ON true;
SET gpuagg.require = forbid;
CREATE TEMP TABLE plain AS SELECT id, gpu_max_subarray_sum(x ORDER BY ord) AS best, gpu_product(x) AS product FROM spread GROUP BY id;
SET gpuagg.require = require;
CREATE TEMP TABLE custom AS SELECT id, gpu_max_subarray_sum(x ORDER BY ord) AS best, gpu_product(x) AS product FROM spread GROUP BY id;
RESET gpuagg.require;
SELECT id, left(c.best::text, 20) AS best, scale(c.best), left(c.product::text, 20) AS product, scale(c.product),
	(c.best::text, c.product::text) IS NOT DISTINCT FROM (p.best::text, p.product::text) AS same,
	c.best IS NOT DISTINCT FROM pg_temp.best(array_remove(a, NULL)) AS forced, c.product IS NOT DISTINCT FROM (SELECT pg_temp.product(x) FROM unnest(a) x) AS multiplied
FROM custom c JOIN plain p USING (id) JOIN special USING (id) ORDER BY id;
SELECT gpu_product(x), gpu_max_subarray_sum(x) FROM (SELECT 1.5 AS x) v WHERE x > 2;

-- core's errors
SET gpuagg.require = require;
SELECT gpu_product(x) FROM (VALUES (1e131071), (10)) v(x);
SELECT gpu_max_subarray_sum(x) FROM (VALUES (9e131071), (9e131071)) v(x);
-- core rounds after 16383 digits
SELECT gpu_product(x) = 0, scale(gpu_product(x)) FROM (VALUES (1e-10000), (1e-10000)) v(x);

-- parallel plans and windows
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE numbers AS SELECT * FROM n;
ANALYZE numbers;
SELECT count(*) AS same FROM (SELECT k, gpu_product(x) AS p FROM numbers GROUP BY k) a JOIN (SELECT k, pg_temp.product(x) AS p FROM n GROUP BY k) e USING (k, p);
SELECT gpu_max_subarray_sum(y ORDER BY i) FROM numbers;
RESET gpuagg.require;
SELECT i, gpu_product(x) OVER (ORDER BY i ROWS 1 PRECEDING), gpu_max_subarray_sum(y) OVER (ORDER BY i) FROM n WHERE i < 5;
DROP TABLE numbers;

-- views of version 1.0 keep their types after an update, also after dump and restore; new calls have the new type
\set regress :DBNAME
CREATE DATABASE gpuagg_exact_numerics;
\c gpuagg_exact_numerics
CREATE EXTENSION gpuagg VERSION '1.0';
CREATE VIEW made_before AS SELECT gpu_product(x), gpu_max_subarray_sum(x ORDER BY x) FROM (VALUES (0.1), (0.2)) v(x);
ALTER EXTENSION gpuagg UPDATE TO '1.1';
DO $$ BEGIN EXECUTE 'CREATE VIEW restored AS ' || pg_get_viewdef('made_before'::regclass); END $$;
CREATE VIEW made_after AS SELECT gpu_product(x), gpu_max_subarray_sum(x ORDER BY x) FROM (VALUES (0.1), (0.2)) v(x);
SELECT a.*, pg_typeof(a.gpu_product), r.*, pg_typeof(r.gpu_product), b.*, pg_typeof(b.gpu_product) FROM made_before a, restored r, made_after b;
-- the update adds new argument types
SELECT gpu_max('10.0.0.1'::inet), gpu_histogram_merge('{1}'::int8[]);
\c :regress
DROP DATABASE gpuagg_exact_numerics;
