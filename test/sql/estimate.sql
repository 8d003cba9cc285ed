-- The planner's estimate of the number of groups: at most the number of values that an expression can have.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';

CREATE TABLE estimates AS
SELECT i, i::float8 / 20000 AS x, (i / 7)::numeric AS n, timestamp '2000-01-01' + i * interval '1 hour' AS ts, i % 10 AS few
FROM generate_series(1, 20000) i;
ANALYZE estimates;

-- The number of rows that GpuAgg is expected to return.
CREATE FUNCTION expected_groups(keys text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT json) SELECT %s, gpu_count(*) FROM estimates GROUP BY %1$s', keys) INTO plan;
	ASSERT plan -> 0 -> 'Plan' ->> 'Custom Plan Provider' = 'GpuAgg';
	RETURN plan -> 0 -> 'Plan' -> 'Plan Rows';
END $$;

SET gpuagg.require = 'require';
SELECT keys, expected_groups(keys) FROM unnest(ARRAY[
	'width_bucket(x, 0, 1, 100)', 'width_bucket(n, 0, 3000, 10)', 'width_bucket(x, ARRAY[0.1, 0.2, 0.7]::float8[])',
	'extract(month FROM ts)', 'extract(hour FROM ts)::int', 'date_part(''DOW'', ts)', 'extract(epoch FROM ts)',
	'i % 8', 'i % 3 - i % 5', 'i % few', 'x > 0.5', 'i IS NULL',
	'CASE WHEN x > 0.5 THEN ''high'' WHEN x > 0.1 THEN ''low'' END', 'CASE WHEN x > 0.5 THEN i END',
	'coalesce(i % 2, 7)', 'few, width_bucket(x, 0, 1, 5)', 'i, x > 0.5', 'random()', 'i + 1']) keys;

-- So histograms can use parallel workers.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT width_bucket(x, 0, 1, 100), gpu_count(*) FROM estimates GROUP BY 1;
SELECT sum(c), count(*) FROM (SELECT width_bucket(x, 0, 1, 100), gpu_count(*) c FROM estimates GROUP BY 1) g;

DROP TABLE estimates;
DROP FUNCTION expected_groups(text);
