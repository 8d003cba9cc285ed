-- Queries that are prepared before an update of the extension, and executed before and after it, in the form of queries.sql.

-- name: twins
SELECT carrier, gpu_count(*), gpu_sum(delay), sum(delay), gpu_avg(distance), avg(distance), gpu_max(date)
FROM flights GROUP BY carrier ORDER BY carrier

-- name: spread
SELECT gpu_stddev(delay), stddev(delay), round(gpu_corr(distance, delay)::numeric, 9), gpu_avg(date - timestamp '2026-01-01') FROM flights

-- name: sets
SELECT origin, percentile_cont(0.5) WITHIN GROUP (ORDER BY delay), mode() WITHIN GROUP (ORDER BY carrier), gpu_count(DISTINCT carrier)
FROM flights GROUP BY origin ORDER BY origin

-- name: histogram
SELECT carrier, gpu_histogram(delay, 0, 128, 4), gpu_approx_count_distinct(origin) FROM flights GROUP BY carrier ORDER BY carrier

-- name: parameter
-- with: ATL
SELECT destination, gpu_sum(distance::bigint), gpu_argmax(carrier, delay) FROM flights WHERE origin = $1 GROUP BY destination ORDER BY destination

-- name: builtin
SELECT date_trunc('month', date), count(*), avg(delay) FROM flights GROUP BY 1 ORDER BY 1
