-- gpuagg_merge(gpuagg_state): states of days, kept in a table, combined to those of months
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
CREATE TABLE rows_of_days AS SELECT i % 40 AS day, i * 7919 % 3001 AS visitor, (i * 31 % 6007) / 8.0::float8 AS seconds, (i % 90)::int8 AS n
FROM generate_series(1, 40000) i;
CREATE TABLE days AS SELECT day, gpuagg_merge(gpuagg_pack('gpu_approx_count_distinct("any")', visitor)) AS visitors,
	gpuagg_merge(gpuagg_pack('gpu_approx_percentile(float8, float8)', seconds, 0.3::float8)) AS stay,
	gpuagg_merge(gpuagg_pack('gpu_sum(int8)', n)) AS sum
FROM rows_of_days GROUP BY day;
-- a day without rows
INSERT INTO days VALUES (40, NULL, NULL, NULL);
ANALYZE rows_of_days, days;
CREATE FUNCTION pg_temp.from_days(require text) RETURNS TABLE (month int, answer text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuagg.require', require, true);
	RETURN QUERY SELECT day / 15, concat_ws(' ', gpuagg_finish(gpuagg_merge(visitors), 'gpu_approx_count_distinct("any")', NULL::int8),
		gpuagg_finish(gpuagg_merge(stay), 'gpu_approx_percentile(float8, float8)', NULL::float8), gpuagg_finish(gpuagg_merge(sum), 'gpu_sum(int8)', NULL::numeric))
	FROM days GROUP BY 1;
	PERFORM set_config('gpuagg.require', 'allow', true);
END $$;
CREATE TABLE months AS SELECT day / 15 AS month, concat_ws(' ', gpu_approx_count_distinct(visitor), gpu_approx_percentile(seconds, 0.3), gpu_sum(n)) AS answer
FROM rows_of_days GROUP BY 1;
SELECT month, m.answer = p.answer AS plain, m.answer = c.answer AS custom
FROM months m FULL JOIN pg_temp.from_days('forbid') p USING (month) FULL JOIN pg_temp.from_days('require') c USING (month) ORDER BY month;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE days SET (parallel_workers = 2);
SELECT month, m.answer = p.answer AS plain, m.answer = c.answer AS custom
FROM months m FULL JOIN pg_temp.from_days('forbid') p USING (month) FULL JOIN pg_temp.from_days('require') c USING (month) ORDER BY month;
SET max_parallel_workers_per_gather = 0;
-- the image: format 1, kinds 6 (distinct values) and 7 (percentiles), and no more bytes than documented
SELECT left(visitors::text, 6) AS visitors, left(stay::text, 6) AS stay, max(length(visitors::text)) <= 2 * 16400 AS small, max(length(stay::text)) <= 2 * 33000 AS small
FROM days WHERE day < 40 GROUP BY 1, 2;
-- nothing to combine; states of several aggregates, and of other fractions
SELECT gpuagg_merge(visitors) IS NULL AS nothing FROM days WHERE day = 40;
SELECT gpuagg_merge(s) FROM (SELECT visitors FROM days UNION ALL SELECT stay FROM days) x(s);
SELECT gpuagg_merge(s) FROM (SELECT stay FROM days UNION ALL SELECT gpuagg_merge(gpuagg_pack('gpu_approx_percentile(float8, float8)', seconds, 0.4::float8)) FROM rows_of_days) x(s);
SELECT gpuagg_merge('\x0106ffffffff'::gpuagg_state);
SELECT gpuagg_merge('\x0206'::gpuagg_state);
DROP TABLE rows_of_days, days, months;
