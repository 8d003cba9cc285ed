-- Creates the tables of the benchmark if they do not exist.
CREATE TABLE IF NOT EXISTS gpuagg_bench (k4 int, k1k int, k1m int, v1 int, v2 float8, v3 numeric(12,2));
CREATE TABLE IF NOT EXISTS gpuagg_bench_lineitem (l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL,
    l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL,
    l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
    l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL,
    l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL);
CREATE TABLE IF NOT EXISTS gpuagg_bench_flights (date timestamp, delay int, distance int, origin text, destination text);
CREATE TABLE IF NOT EXISTS gpuagg_bench_airports (code text, region int, hub int);
