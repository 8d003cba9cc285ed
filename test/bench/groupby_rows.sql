-- Inserts rows :from to :to of a table of :rows rows. id1, id2, id4 and id5 have :groups values, id3 and id6 one for each :groups rows. All
-- columns are computed from hashes of the row number, so the rows are always the same.
INSERT INTO gpuagg_bench_groupby
SELECT 'id' || lpad((1 + (h1 & 2147483647) % :groups)::text, 3, '0'),
       'id' || lpad((1 + (h1 >> 31 & 2147483647) % :groups)::text, 3, '0'),
       'id' || lpad((1 + (h2 & 4294967295) % (:rows / :groups))::text, 10, '0'),
       1 + (h3 & 2147483647) % :groups,
       1 + (h3 >> 31 & 2147483647) % :groups,
       1 + (h4 & 4294967295) % (:rows / :groups),
       1 + (h2 >> 32 & 65535) % 5,
       1 + (h2 >> 48 & 32767) % 15,
       (h4 >> 32 & 1073741823) % 100000000 / 1000000.0::float8
FROM (SELECT hashint8extended(i, 1) AS h1, hashint8extended(i, 2) AS h2, hashint8extended(i, 3) AS h3, hashint8extended(i, 4) AS h4
      FROM generate_series(:from::bigint, :to::bigint) i OFFSET 0) s;
