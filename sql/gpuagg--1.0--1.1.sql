/* gpuagg--1.0--1.1.sql */
\echo Use "ALTER EXTENSION gpuagg UPDATE TO '1.1'" to load this file. \quit

/* The column cache: who may see what */
COMMENT ON FUNCTION gpuagg_cache_columns() IS
'rows of the view gpuagg_cache, by OIDs: attnum is 0 for what stands beside all columns of a table; last_use is null before the first use, nothing else is; of columns that the user may select from, and of all for members of pg_read_all_stats';
COMMENT ON VIEW gpuagg_cache IS
'columns of tables that are cached, a row a column, of this database those that the user may select from, and of all databases for members of pg_read_all_stats: the relation (null for one of another database, or that is not there any more) and its file''s number, the column (null for what stands beside all columns of a table: which blocks they are of and what proves them), the tier (ram), the blocks and rows that there are of it, its bytes, how often a range of it was taken from the cache, the share of its blocks that had not changed when last looked at, and when a query last asked for it; empty unless gpuagg is in shared_preload_libraries';
