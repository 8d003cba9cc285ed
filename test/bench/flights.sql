-- The flights of test/data, on stdin, repeated over later years to :to rows.
CREATE TEMPORARY TABLE loaded (LIKE gpuagg_bench_flights);
\copy loaded FROM pstdin (FORMAT csv, HEADER)
INSERT INTO gpuagg_bench_flights
SELECT date + copy * interval '181 days' AS date, delay, distance, origin, destination
FROM generate_series(0, :to / 230770) copy, loaded LIMIT :to;
