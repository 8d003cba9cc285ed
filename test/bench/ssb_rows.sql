-- Inserts rows :from to :to of lineorder, which refer to :customers, :suppliers and :parts rows. Seven orders have 28 lines: from one line to
-- seven. Values depend only on hashes of the row number, or of the order's number where they are the order's.
INSERT INTO lineorder
SELECT orderkey, linenumber, custkey, partkey, suppkey, to_char(orderdate, 'YYYYMMDD')::int,
       (ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECI', '5-LOW'])[1 + priority], '0', quantity, quantity * price,
       totalprice, discount, (quantity::bigint * price * (100 - discount) / 100)::int, price * 6 / 10, tax,
       to_char(orderdate + 30 + commit, 'YYYYMMDD')::int, (ARRAY['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'])[1 + mode]
FROM (SELECT orderno / 8 * 32 + orderno % 8 AS orderkey, linenumber, 1 + (ho & 1073741823) % :customers AS custkey, partkey,
             1 + (h >> 30 & 1048575) % :suppliers AS suppkey, date '1992-01-01' + (ho >> 30 & 1048575)::int % 2406 AS orderdate,
             (ho >> 50 & 1023)::int % 5 AS priority, (1000000 + (ho >> 40 & 8388607) * 5)::int AS totalprice,
             1 + (h >> 50 & 8191)::int % 50 AS quantity, 90000 + (partkey / 10) % 20001 + 100 * (partkey % 1000) AS price,
             (h2 & 65535)::int % 11 AS discount, (h2 >> 16 & 65535)::int % 9 AS tax, (h2 >> 32 & 65535)::int % 61 AS commit,
             (h2 >> 48 & 16383)::int % 7 AS mode
      FROM (SELECT orderno, linenumber, h, h2, (1 + (h & 1073741823) % :parts)::int AS partkey,
                   hashint8extended(orderno, 3) & 9223372036854775807 AS ho
            FROM (SELECT (i - 1) / 28 * 7 + ('{1,1,1,1,2,2,2,2,2,2,2,3,4,4,4,4,4,5,5,6,6,6,6,6,6,7,7,7}'::int[])[1 + (i - 1) % 28] AS orderno,
                         ('{1,2,3,4,1,2,3,4,5,6,7,1,1,2,3,4,5,1,2,1,2,3,4,5,6,1,2,3}'::int[])[1 + (i - 1) % 28] AS linenumber,
                         hashint8extended(i, 1) & 9223372036854775807 AS h, hashint8extended(i, 2) & 9223372036854775807 AS h2
                  FROM generate_series(:from::bigint, :to::bigint) i OFFSET 0) s OFFSET 0) s OFFSET 0) s;
