-- The tables of the benchmark.

-- The standard table: :rows rows, every column from a 64-bit hash of the row
-- number, so that no order in the heap helps anyone.
DROP TABLE IF EXISTS gpuagg_bench;
CREATE UNLOGGED TABLE gpuagg_bench (k4 int, k1k int, k1m int, v1 int, v2 float8, v3 numeric(12,2));
INSERT INTO gpuagg_bench
SELECT (h & 3)::int,
       ((h >> 2) & 1048575)::int % 1000,
       ((h >> 22) & 1073741823)::int % 1000000,
       (h2 & 1048575)::int - 524288,
       ((h2 >> 20) & 4294967295)::float8 / 4294967296,
       ((h >> 8) & 1073741823)::numeric(12) / 100
FROM (SELECT hashint8extended(i, 1) AS h, hashint8extended(i, 2) AS h2
      FROM generate_series(1, :rows) i OFFSET 0) s;
VACUUM (FREEZE, ANALYZE) gpuagg_bench;

-- TPC-H's lineitem, :rows / 4 rows: column types, value ranges and dependencies
-- between dates, flags and prices as in the specification, 4.2.3, at scale
-- factor 1; comments are words of random length.
DROP TABLE IF EXISTS gpuagg_bench_lineitem;
CREATE UNLOGGED TABLE gpuagg_bench_lineitem (l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL,
    l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL,
    l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
    l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL,
    l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL);
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
                  FROM generate_series(0, :rows / 4 - 1) i OFFSET 0) s OFFSET 0) s) s;
VACUUM (FREEZE, ANALYZE) gpuagg_bench_lineitem;

-- The flights of test/data, on stdin, repeated to :rows / 4.
DROP TABLE IF EXISTS gpuagg_bench_flights;
CREATE TEMPORARY TABLE loaded (date timestamp, delay int, distance int, origin text, destination text);
\copy loaded FROM pstdin (FORMAT csv, HEADER)
CREATE UNLOGGED TABLE gpuagg_bench_flights AS
SELECT date + copy * interval '181 days' AS date, delay, distance, origin, destination
FROM generate_series(0, :rows / 4 / 230770) copy, loaded LIMIT :rows / 4;
VACUUM (FREEZE, ANALYZE) gpuagg_bench_flights;
