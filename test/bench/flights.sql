-- Inserts :to flights: those of test/data, from standard input, repeated with later dates.
CREATE TEMPORARY TABLE loaded (LIKE gpuagg_bench_flights);
\copy loaded FROM pstdin (FORMAT csv, HEADER)
INSERT INTO gpuagg_bench_flights
SELECT date + copy * interval '181 days' AS date, delay, distance, origin, destination
FROM generate_series(0, :to / 230770) copy, loaded LIMIT :to;
