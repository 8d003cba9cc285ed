-- Keys that are functions of other keys: the scan groups by the others, and computes them for each group.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

SET client_min_messages = warning;
CREATE COLLATION same_letters (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
RESET client_min_messages;
CREATE TABLE dependent_keys AS
SELECT i AS id, CASE WHEN i % 11 > 0 THEN i % 7 END AS a, i % 3 AS b, 't' || i % 5 AS t,
       CASE i % 4 WHEN 0 THEN '1.0' WHEN 1 THEN '1.00' ELSE '2' END::numeric AS n,
       CASE WHEN i % 2 = 0 THEN '-0' ELSE '0' END::float8 AS f,
       CASE i % 3 WHEN 0 THEN 'key' WHEN 1 THEN 'KEY' ELSE 'other' END COLLATE same_letters AS nc,
       CASE WHEN i % 2 = 0 THEN '24:00' ELSE '1 day' END::interval AS iv,
       ('b' || repeat(' ', i % 3))::bpchar AS bp, timestamptz '2026-01-01 12:00+00' + i % 5 * interval '6 h' AS at
FROM generate_series(1, 600) i;
ANALYZE dependent_keys;

-- The keys by which a query is grouped.
CREATE FUNCTION group_key(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('gpuagg.require', 'require', true);
	EXECUTE 'EXPLAIN (FORMAT json, COSTS off) ' || query INTO plan;
	PERFORM set_config('gpuagg.require', 'allow', true);
	RETURN jsonb_path_query_first(plan::jsonb, '$.**."Group Key"');
END $$;

-- independent keys alone are left
SELECT group_key('SELECT a, a - 1, a - 2, gpu_count(*) FROM dependent_keys GROUP BY a, a - 1, a - 2');
SELECT group_key('SELECT a, b, a + b, gpu_count(*) FROM dependent_keys GROUP BY a + b, a, b');
SELECT group_key('SELECT t, t = ''t1'', t IS NULL, gpu_count(*) FROM dependent_keys GROUP BY 1, 2, 3');
SELECT group_key('SELECT upper(t), upper(t) > ''T'', gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT a % 2, a % 2 IS NULL, gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT n, a, n > 1, a::float8, a::float8 + 1, gpu_count(*) FROM dependent_keys GROUP BY 1, 2, 3, 4, 5');
SELECT group_key('SELECT t, length(t), octet_length(t::varchar) + 1, gpu_count(*) FROM dependent_keys GROUP BY 1, 2, 3');
SET gpuagg.replace_builtin = on;
SELECT group_key('SELECT DISTINCT a + 1, a, 5 FROM dependent_keys');
SELECT group_key('SELECT DISTINCT count(*) > 1, count(*) FROM dependent_keys GROUP BY a');
RESET gpuagg.replace_builtin;
-- Not dropped: functions that tell equal values apart, of other columns, that are not immutable, of users, and that can fail and are no
-- arithmetic; keys that a LIMIT compares; keys of grouping sets. (PostgreSQL inlines users_key.)
CREATE FUNCTION users_key(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
CREATE FUNCTION own_key(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + 1; END';
SELECT group_key('SELECT n, n::text, gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT f, f::text, gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT nc, lower(nc COLLATE "C"), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT iv, extract(day FROM iv), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT bp, octet_length(bp), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT a, a + b, gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT at, date_trunc(''day'', at), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT a, own_key(a), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT (random() * 9)::int, (random() * 9)::int > 1, gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT t, upper(t), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT t, length(upper(t)), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT a, users_key(a), gpu_count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT group_key('SELECT a, a + 1, gpu_count(*) FROM dependent_keys GROUP BY a, a + 1 ORDER BY a + 1 LIMIT 3');
SELECT group_key('SELECT a, a + 1, gpu_count(*) FROM dependent_keys GROUP BY ROLLUP (a, a + 1)') IS NULL AS sets;

-- answers
SELECT pg_temp.same('SELECT a, a - 1, a - 2, @count(*), @sum(b) FROM dependent_keys GROUP BY a, a - 1, a - 2');
SELECT pg_temp.same('SELECT a + b, a, b, @count(*) FROM dependent_keys GROUP BY 1, 2, 3 HAVING a + b > 2 AND @count(*) > 1');
SELECT pg_temp.same('SELECT t, upper(t) AS u, @sum(a) FILTER (WHERE upper(t) <> ''T3'') FROM dependent_keys GROUP BY 1, 2 HAVING @count(*) > 10 AND upper(t) <> ''T1'' ORDER BY upper(t)');
SELECT pg_temp.same('SELECT t, length(t), octet_length(t) + 1 AS o, @count(*) FROM dependent_keys GROUP BY 1, 2, 3 HAVING length(t) > 1');
SELECT pg_temp.same('SELECT octet_length(nc), length(nc), @count(*) FROM dependent_keys GROUP BY nc, 1, 2');
SELECT pg_temp.same('SELECT n::text, @count(*) FROM dependent_keys GROUP BY n, n::text');
SELECT pg_temp.same('SELECT f::text, @count(*) FROM dependent_keys GROUP BY f, f::text');
SELECT pg_temp.same('SELECT lower(nc COLLATE "C"), octet_length(nc), @count(*) FROM dependent_keys GROUP BY nc, 1, 2');
SELECT pg_temp.same('SELECT extract(day FROM iv), @count(*) FROM dependent_keys GROUP BY iv, 1');
SELECT pg_temp.same('SELECT octet_length(bp), @count(*) FROM dependent_keys GROUP BY bp, 1');
SELECT pg_temp.same('SELECT a, -a, @count(*) FROM dependent_keys GROUP BY a, -a ORDER BY -a DESC LIMIT 3');
SELECT pg_temp.same('SELECT a, -a, @count(*) AS c FROM dependent_keys GROUP BY a, -a ORDER BY c, -a LIMIT 3');
SELECT pg_temp.same('SELECT a, a + 1, @count(*), grouping(a, a + 1) FROM dependent_keys GROUP BY CUBE (a, a + 1)');
SELECT pg_temp.same('SELECT a, a + 1, @count(DISTINCT b), @percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM dependent_keys GROUP BY 1, 2');
SELECT pg_temp.same('SELECT a + 1, @count(*), sum(@count(*)) OVER (ORDER BY a + 1) FROM dependent_keys GROUP BY a, a + 1');
SELECT pg_temp.same('SELECT o, x.* FROM generate_series(1, 3) o, LATERAL (SELECT a, a + 1, @count(*) FROM dependent_keys WHERE b < o GROUP BY 1, 2) x');
SELECT pg_temp.same('SELECT k, @sum(c) FROM (SELECT a, a * 2 AS k, @count(*) AS c FROM dependent_keys GROUP BY a, a * 2 OFFSET 0) s GROUP BY k');
PREPARE by_parameter(int) AS SELECT $1 AS p, $1 + a AS q, a, gpu_count(*) FROM dependent_keys GROUP BY $1, $1 + a, a ORDER BY a LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_parameter(3);
RESET plan_cache_mode;

-- without rows there are no groups
SELECT pg_temp.same('SELECT 1, a, a + 1, @count(*) FROM dependent_keys WHERE id < 0 GROUP BY 1, 2, 3');

-- errors come from all rows, as in core, whichever groups are returned
SELECT pg_temp.same('SELECT a, 10 / a, @count(*) FROM dependent_keys GROUP BY 1, 2');
SELECT pg_temp.same('SELECT a, 10 / a, @count(*) FROM dependent_keys GROUP BY a, 10 / a HAVING @min(a) > 0');
SELECT pg_temp.same('SELECT a, 10 / a, @count(*) AS c FROM dependent_keys GROUP BY a, 10 / a ORDER BY c DESC LIMIT 1');
SELECT pg_temp.same('SELECT a, @count(*) FROM dependent_keys GROUP BY a, 10 / a');
SELECT pg_temp.same('SELECT a, 10 / a, @count(*) FROM dependent_keys WHERE a > 0 GROUP BY 1, 2');
SET gpuagg.feed = 'tuples';
SELECT pg_temp.same('SELECT a, @count(*) FROM dependent_keys GROUP BY a, 10 / a');
RESET gpuagg.feed;

-- spilled groups, sorted input, participants
CREATE TABLE dependent_many AS SELECT i % 20000 AS k FROM generate_series(1, 60000) i;
ANALYZE dependent_many;
SET work_mem = '64kB';
SELECT pg_temp.same('SELECT k, k + 1, -k, @count(*) FROM dependent_many GROUP BY 1, 2, 3');
RESET work_mem;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.same('SELECT k, k + 1, -k, @count(*) FROM dependent_many GROUP BY 1, 2, 3 HAVING -k < -10');
SELECT pg_temp.same('SELECT a, a - 1, @count(*) AS c FROM dependent_keys GROUP BY a, a - 1 ORDER BY c, a LIMIT 3');
RESET max_parallel_workers_per_gather;
CREATE INDEX ON dependent_many (k);
SET enable_hashagg = off;
SELECT pg_temp.same('SELECT k, k + 1, @count(*) FROM dependent_many GROUP BY k, k + 1 ORDER BY k, k + 1 LIMIT 5');
SELECT pg_temp.same('SELECT k + 1, @count(*) FROM dependent_many WHERE k < 100 GROUP BY k + 1, k');
-- sorted by a dropped key that reads a key which is no column
SELECT pg_temp.same('SELECT k % 7000, k % 7000 > 50, @count(*) FROM dependent_many GROUP BY 1, 2 ORDER BY 2, 1');

-- the number of groups is estimated by all keys of the query, which statistics may know
CREATE FUNCTION estimated_groups(query text, enabled text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('gpuagg.enabled', enabled, true), set_config('gpuagg.require', CASE enabled WHEN 'on' THEN 'require' ELSE 'allow' END, true);
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	PERFORM set_config('gpuagg.enabled', 'on', true), set_config('gpuagg.require', 'allow', true);
	RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
CREATE TABLE dependent_statistics AS SELECT i % 13 AS a, i % 17 AS b FROM generate_series(1, 1000) i;
CREATE STATISTICS dependent_ndistinct (ndistinct) ON (a + 1), (b + 100) FROM dependent_statistics;
ANALYZE dependent_statistics;
SET gpuagg.replace_builtin = on;
SELECT keys, estimated_groups(q, 'off') AS core, estimated_groups(q, 'on') AS scan
FROM unnest(ARRAY['a, a + 1, b + 100', 'a + 1, b + 100', 'b, a + 1, b + 100']) keys, format('SELECT count(*) FROM dependent_statistics GROUP BY %s', keys) q;
RESET gpuagg.replace_builtin;
DROP TABLE dependent_statistics;
DROP FUNCTION estimated_groups;
DROP TABLE dependent_keys, dependent_many;
DROP FUNCTION group_key, users_key, own_key;
DROP COLLATION same_letters;
