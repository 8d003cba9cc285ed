-- Inserts rows :from to :to of TPC-H's lineitem. Column types, ranges of values, and the dependencies among dates, flags and prices are
-- those of the specification, section 4.2.3, at scale factor 1. Comments are text of random length.
INSERT INTO gpuagg_bench_lineitem
SELECT orderkey, partkey, suppkey, linenumber, quantity,
       quantity * (90000 + (partkey / 10) % 20001 + 100 * (partkey % 1000)) / 100.0, discount / 100.0, tax / 100.0,
       CASE WHEN receiptdate > date '1995-06-17' THEN 'N' WHEN flag = 0 THEN 'R' ELSE 'A' END,
       CASE WHEN shipdate > date '1995-06-17' THEN 'O' ELSE 'F' END, shipdate, orderdate + 30 + commit, receiptdate,
       (ARRAY['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[1 + instruct],
       (ARRAY['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'])[1 + mode],
       left(repeat('carefully final deposits ', 2), 10 + comment)
FROM (SELECT *, orderdate + 1 + ship AS shipdate, orderdate + 1 + ship + 1 + receipt AS receiptdate
      FROM (SELECT i / 4 + 1 AS orderkey, i % 4 + 1 AS linenumber, 1 + (h & 1048575)::int % 200000 AS partkey,
                   1 + ((h >> 20) & 65535)::int % 10000 AS suppkey, 1 + ((h >> 36) & 65535)::int % 50 AS quantity,
                   ((h >> 52) & 1023)::int % 11 AS discount, (h2 & 1023)::int % 9 AS tax, (h2 >> 10) & 1 AS flag,
                   date '1992-01-01' + (hashint8extended(i / 4, 3) & 1048575)::int % 2406 AS orderdate,
                   ((h2 >> 11) & 4095)::int % 121 AS ship, ((h2 >> 23) & 4095)::int % 61 AS commit,
                   ((h2 >> 35) & 1023)::int % 30 AS receipt, ((h2 >> 45) & 3)::int AS instruct,
                   ((h2 >> 47) & 255)::int % 7 AS mode, ((h2 >> 55) & 255)::int % 34 AS comment
            FROM (SELECT i, hashint8extended(i, 1) AS h, hashint8extended(i, 2) AS h2
                  FROM generate_series(:from, :to) i OFFSET 0) s OFFSET 0) s) s;
