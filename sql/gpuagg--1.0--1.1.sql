/* gpuagg--1.0--1.1.sql */
\echo Use "ALTER EXTENSION gpuagg UPDATE TO '1.1'" to load this file. \quit

/*
 * Progress in phases, of every scan.  The view gets a column at its end, so that views of users upon it stay.
 */
ALTER FUNCTION gpuagg_progress() RENAME TO gpuagg_progress_1_0;
CREATE FUNCTION gpuagg_progress(OUT pid int4, OUT datid oid, OUT relid oid, OUT blocks_done int8, OUT blocks_total int8,
	OUT rows int8, OUT groups int8, OUT phase text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpuagg_progress() IS
'rows of the view gpuagg_progress; relid is 0 where no table is known; no nulls';
CREATE OR REPLACE VIEW gpuagg_progress AS
SELECT p.pid, d.datname, p.relid, CASE WHEN d.datname = current_database() THEN p.relid::regclass END AS relation,
	p.blocks_done, p.blocks_total, p.rows, p.groups, p.phase
FROM gpuagg_progress() p LEFT JOIN pg_database d ON d.oid = p.datid;
COMMENT ON VIEW gpuagg_progress IS
'custom scans that run now, one row a process: the table being read (relid 0: the child plan''s rows are of no single table), its blocks and those that this process has read (0 where the child plan reads them), rows and groups so far (groups on a GPU are known at the end of the scan, those in temporary files when they are merged), and the phase: initializing, scanning, sorting, merging groups, returning groups, or caching columns of gpuagg_cache_prewarm(); up to PostgreSQL 16 empty, with a notice, unless gpuagg is in shared_preload_libraries';
DROP FUNCTION gpuagg_progress_1_0();

/*
 * What is loaded, and how the GPU server does.
 */
CREATE FUNCTION gpuagg_status(OUT library_version text, OUT loaded_by text, OUT server text, OUT reason text, OUT last_error text,
	OUT server_pid int4, OUT supervisor_pid int4, OUT restarts int4, OUT devices int4, OUT driver text, OUT build text,
	OUT cache_memory int8)
	RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpuagg_status() IS 'the row of the view gpuagg_status, but for its first and last columns';
CREATE VIEW gpuagg_status AS
SELECT gpuagg_version() AS extension_version, s.*,
	(SELECT coalesce(sum(c.bytes), 0)::int8 FROM gpuagg_cache_columns() c) AS cache_used
FROM gpuagg_status() s;
COMMENT ON VIEW gpuagg_status IS
'one row: the version of the SQL objects of this database and of the library; what has loaded the library (shared_preload_libraries, session_preload_libraries, local_preload_libraries or first use); the state of the GPU server (absent, off, starting, ready, unavailable or restarting), the reason why it is not ready (null if it is) and what went wrong last (null if nothing); its process and its supervisor''s (null: none); how often it was started again; the GPUs in use; the CUDA version that the driver supports (null before the server was ready); the CUDA version and compute capabilities that the server was built with, or that there is none (null before its first start); bytes of shared memory for the column cache (0: none) and bytes of it in use';
GRANT SELECT ON gpuagg_status TO PUBLIC;
