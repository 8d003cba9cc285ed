-- Fills the table of airports from the flights, with invented regions. Every fifth airport is a hub.
TRUNCATE gpuagg_bench_airports;
INSERT INTO gpuagg_bench_airports
SELECT code, row_number() OVER (ORDER BY code) % 7, (row_number() OVER (ORDER BY code) % 5 = 0)::int
FROM (SELECT origin AS code FROM gpuagg_bench_flights UNION SELECT destination FROM gpuagg_bench_flights) a;
VACUUM (FREEZE, ANALYZE) gpuagg_bench_airports;
