-- Inserts rows :from to :to of the standard table. Each column is computed from a 64-bit hash of the row number, so rows are in random
-- order.
INSERT INTO gpuagg_bench
SELECT (h & 3)::int,
       ((h >> 2) & 1048575)::int % 1000,
       ((h >> 22) & 1073741823)::int % 1000000,
       (h2 & 1048575)::int - 524288,
       ((h2 >> 20) & 4294967295)::float8 / 4294967296,
       ((h >> 8) & 1073741823)::numeric(12) / 100
FROM (SELECT hashint8extended(i, 1) AS h, hashint8extended(i, 2) AS h2
      FROM generate_series(:from, :to) i OFFSET 0) s;
