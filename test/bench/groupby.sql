-- Creates the table of db-benchmark's questions about grouping if it does not exist.
CREATE TABLE IF NOT EXISTS gpuagg_bench_groupby (id1 text, id2 text, id3 text, id4 int, id5 int, id6 int, v1 int, v2 int, v3 float8);
