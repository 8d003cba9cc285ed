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

-- the same by plain names: in the custom scan, as plain aggregates, and in parallel
CREATE FUNCTION pg_temp.sketches(require text) RETURNS TABLE (day int, visitors gpuagg_state, stay gpuagg_state) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuagg.require', require, true);
	RETURN QUERY SELECT r.day, gpu_approx_count_distinct_state(visitor), gpu_approx_percentile_state(seconds) FROM rows_of_days r GROUP BY 1;
	PERFORM set_config('gpuagg.require', 'allow', true);
END $$;
SELECT how, count(*), bool_and(d.visitors::text = s.visitors::text) AS visitors, bool_and(gpu_approx_percentile_estimate(d.stay, 0.9) = gpu_approx_percentile_estimate(s.stay, 0.9)) AS stay
FROM (VALUES ('require'), ('forbid')) h(how), pg_temp.sketches(how) s JOIN days d USING (day) GROUP BY 1 ORDER BY 1;
-- without grouping, with NULLs, over other types, with DISTINCT and FILTER
SELECT gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(nullif(visitor, 3))) = gpu_approx_count_distinct(nullif(visitor, 3)) AS integers,
	gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(visitor::text)) = gpu_approx_count_distinct(visitor::text) AS text,
	gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(ARRAY[day, visitor])) = gpu_approx_count_distinct(ARRAY[day, visitor]) AS arrays,
	gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(DISTINCT visitor)) = gpu_approx_count_distinct(visitor) AS distincts,
	gpu_approx_percentile_estimate(gpu_approx_percentile_state(seconds) FILTER (WHERE n < 9), 0.3) = gpu_approx_percentile(seconds, 0.3) FILTER (WHERE n < 9) AS filtered
FROM rows_of_days;
SELECT month, m.answer = concat_ws(' ', gpu_approx_count_distinct_estimate(v), gpu_approx_percentile_estimate(s, 0.3), gpuagg_finish(n, 'gpu_sum(int8)', NULL::numeric)) AS same,
	gpu_approx_percentile_estimate(s, '{0.3,NULL,0.9}'::float8[]) = gpu_approx_percentile_estimate(s, ARRAY[0.3, NULL, 0.9]) AS fractions
FROM months m JOIN (SELECT day / 15 AS month, gpu_approx_count_distinct_merge(visitors) AS v, gpu_approx_percentile_merge(stay) AS s, gpuagg_merge(sum) AS n FROM days GROUP BY 1) d USING (month) ORDER BY 1;
SET gpuagg.require = 'require';
SELECT month, m.answer = concat_ws(' ', gpu_approx_count_distinct_estimate(v), gpu_approx_percentile_estimate(s, 0.3), n) AS same
FROM months m JOIN (SELECT day / 15 AS month, gpu_approx_count_distinct_state(visitor) AS v, gpu_approx_percentile_state(seconds) AS s, gpu_sum(n) AS n FROM rows_of_days GROUP BY 1) d USING (month) ORDER BY 1;
RESET gpuagg.require;
SELECT count(*) AS running, count(DISTINCT e) AS various FROM (SELECT gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_merge(visitors) OVER (ORDER BY day)) FROM days) w(e);
SELECT (SELECT gpu_approx_count_distinct_state(visitor) FROM rows_of_days WHERE false) IS NULL AS no_rows, gpu_approx_count_distinct_estimate(NULL) AS none, (SELECT gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_state(NULL::int))) AS nulls,
	(SELECT gpu_approx_percentile_state(NULL)) IS NULL AS no_value, gpu_approx_percentile_estimate(NULL::gpuagg_state, 0.5) IS NULL AS null_state, gpu_approx_percentile_estimate(stay, NULL::float8) IS NULL AS null_fraction,
	gpu_approx_percentile_estimate(stay, '{}'::float8[]) AS empty
FROM days WHERE day = 0;
-- states of other aggregates, fractions out of range
SELECT gpu_approx_count_distinct_merge(stay) FROM days;
SELECT gpu_approx_percentile_merge(s) FROM (SELECT stay FROM days UNION ALL SELECT visitors FROM days) x(s);
SELECT gpu_approx_count_distinct_estimate(sum) FROM days;
SELECT gpu_approx_percentile_estimate(visitors, 0.5) FROM days;
SELECT gpu_approx_percentile_estimate(stay, 1.5) FROM days;
SELECT gpu_approx_percentile_estimate(stay, '{{0.1},{0.5}}'::float8[]) FROM days;
-- the functions of merges, called with states of two aggregates in either order
SELECT gpuagg_hll_merge(stay, visitors) FROM days;
SELECT gpuagg_hll_merge(visitors, stay) FROM days;
SELECT gpuagg_sketch_merge(visitors, stay) FROM days;
-- images are as the reference describes them, since tables keep them
SELECT gpu_approx_count_distinct_state(v) FROM generate_series(1, 2) v;
SELECT gpu_approx_percentile_state(v) FROM unnest('{1.5, -2, 0, inf, nan, 1.5}'::float8[]) v;
SELECT gpu_approx_percentile_state(v) FROM unnest('{0}'::float8[]) v;
SELECT gpu_histogram_auto(v, 2) FROM unnest('{1.5, -2, NULL}'::float8[]) v;
SELECT gpu_exp_histogram(v, 3) FROM unnest('{1.5, -2, 0}'::float8[]) v;
-- equal sketches have equal bytes: in the order of rows and in another one, in the custom scan and elsewhere, merged from parts
CREATE FUNCTION pg_temp.images(require text) RETURNS TABLE (n int, visitors text, stay text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuagg.require', require, true);
	RETURN QUERY SELECT i.n, (SELECT gpu_approx_count_distinct_state(v)::text FROM several_values r WHERE r.v <= i.n),
		(SELECT gpu_approx_percentile_state(v)::text FROM several_values r WHERE r.v <= i.n) FROM unnest('{1500,1700,3000}'::int[]) i(n);
	PERFORM set_config('gpuagg.require', 'allow', true);
END $$;
CREATE TABLE several_values AS SELECT i AS v FROM generate_series(1, 3000) i ORDER BY hashint4(i);
SELECT n, left(s.visitors, 14) <> '\x0106ffffffff' AS pairs, s.visitors = f.visitors AS visitors, s.stay = f.stay AS stay, s.visitors = m.visitors AND s.stay = m.stay AS merged, s.visitors = o.visitors AND s.stay = o.stay AS ordered
FROM pg_temp.images('require') s JOIN pg_temp.images('forbid') f USING (n),
	LATERAL (SELECT gpu_approx_count_distinct_merge(visitors)::text AS visitors, gpu_approx_percentile_merge(stay)::text AS stay
		FROM (SELECT gpu_approx_count_distinct_state(v) AS visitors, gpu_approx_percentile_state(v) AS stay FROM several_values WHERE v <= n GROUP BY v % 5) p) m,
	LATERAL (SELECT gpu_approx_count_distinct_state(v ORDER BY v DESC)::text AS visitors, gpu_approx_percentile_state(v ORDER BY v DESC)::text AS stay FROM several_values WHERE v <= n) o ORDER BY n;
-- the custom scan needs no other privileges than the aggregates of the query
CREATE ROLE regress_gpuagg_reader;
GRANT SELECT ON several_values TO regress_gpuagg_reader;
REVOKE EXECUTE ON FUNCTION gpu_approx_count_distinct("any"), gpu_approx_percentile(float8, float8) FROM PUBLIC;
SET ROLE regress_gpuagg_reader;
SET gpuagg.require = 'require';
SELECT gpu_approx_count_distinct_state(v) IS NOT NULL AS visitors, gpu_approx_percentile_state(v) IS NOT NULL AS stay FROM several_values;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION gpu_approx_count_distinct_state("any") FROM PUBLIC;
SET ROLE regress_gpuagg_reader;
SELECT gpu_approx_count_distinct_state(v) FROM several_values;
RESET gpuagg.require;
RESET ROLE;
GRANT EXECUTE ON FUNCTION gpu_approx_count_distinct("any"), gpu_approx_percentile(float8, float8), gpu_approx_count_distinct_state("any") TO PUBLIC;
DROP TABLE rows_of_days, days, months, several_values;
DROP ROLE regress_gpuagg_reader;
