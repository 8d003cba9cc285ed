-- Equal keys may print differently. Each group prints the keys of its first row: in every strategy, from files, and
-- between participants.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
RESET client_min_messages;
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

-- How a value prints depends on its group.
CREATE DOMAIN price AS numeric;
CREATE TYPE pair AS (n numeric, t text);
CREATE TABLE looks AS
SELECT g, g % 3 AS m, CASE g % 7 WHEN 6 THEN NULL ELSE (1.5::numeric(30, 10))::text::numeric END AS zeros, s.i,
       round(1.5, (g % 5 + 1)::int) AS num,
       round(2, (g % 4)::int)::price AS dom,
       CASE g % 3 WHEN 0 THEN '1 day' WHEN 1 THEN '24:00:00' ELSE '23:59:60' END::interval AS iv,
       CASE WHEN g % 2 = 0 THEN '-0' ELSE '0' END::float8 AS f8,
       CASE WHEN g % 3 = 0 THEN '-0' ELSE '0' END::float4 AS f4,
       CASE g % 4 WHEN 0 THEN 'key' WHEN 1 THEN 'KEY' WHEN 2 THEN 'Key' ELSE 'kEy' END COLLATE nocase AS nc,
       ('b' || repeat(' ', (g % 5)::int))::bpchar AS bp,
       jsonb_build_object('a', round(1, (g % 3)::int)) AS js,
       ARRAY[round(1, (g % 3)::int), NULL, round(0, (g % 2)::int)] AS arr,
       ROW(round(7, (g % 4)::int), 'x')::pair AS rec,
       numrange(round(1, (g % 2)::int), round(2, (g % 3)::int)) AS ran,
       repeat('9', 3000)::numeric + round(3, (g % 1000)::int) AS wide,
       -- values that print in one way only, so that rows keep no keys
       'text ' || g % 2 AS t, (g % 2)::int2 AS small, g % 11 = 0 AS b
FROM generate_series(0, 399) g, generate_series(1, 4) s(i);
ANALYZE looks;

-- The rows of each answer that are not in the other one.
CREATE FUNCTION differ(keys text, VARIADIC conf text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	segmented bool := 'gpuagg.strategy=segmented' = ANY (conf);
	query text := format('AS SELECT ROW(%s)::text AS keys, @count(*) AS c, @sum(i) AS s, @max(i) AS m FROM %s GROUP BY %1$s', keys,
						 CASE WHEN segmented THEN format('(SELECT * FROM looks ORDER BY %s OFFSET 0) q', keys) ELSE 'looks' END);
	setting text;
	line text;
	result text;
BEGIN
	PERFORM set_config('gpuagg.enabled', 'off', true);
	EXECUTE 'CREATE TEMP TABLE core ON COMMIT DROP ' || replace(query, '@', '');
	PERFORM set_config('gpuagg.enabled', 'on', true);
	FOREACH setting IN ARRAY conf LOOP
		PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true);
	END LOOP;
	PERFORM set_config('gpuagg.require', 'require', true);
	EXECUTE 'CREATE TEMP TABLE ours ON COMMIT DROP ' || replace(query, '@', 'gpu_');
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) CREATE TEMP TABLE ours2 ' || replace(query, '@', 'gpu_') LOOP
		segmented := segmented AND line !~ 'Strategy: segmented';
	END LOOP;
	IF segmented THEN
		RETURN 'not segmented';
	END IF;
	PERFORM set_config('gpuagg.require', 'allow', true);
	SELECT (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) d) || ' of ' || count(*) INTO result FROM core;
	DROP TABLE ours, core;
	FOREACH setting IN ARRAY conf LOOP
		EXECUTE format('RESET %s', split_part(setting, '=', 1));
	END LOOP;
	RETURN result;
END $$;

-- Two keys: the group, and a key whose printed form depends on the group.
SELECT key, differ('g, ' || key) AS hash,
       differ(key || ', g', 'gpuagg.strategy=sort') AS sort,
       differ('g, ' || key, 'gpuagg.batch_rows=64', 'work_mem=64kB', 'hash_mem_multiplier=1') AS spilled,
       differ('g, ' || key, 'gpuagg.strategy=segmented', 'gpuagg.batch_rows=64') AS segmented,
       differ('m, ' || key || ', g, small, b, zeros', 'gpuagg.batch_rows=256') AS several
FROM unnest(ARRAY['num', 'dom', 'iv', 'f8', 'f4', 'nc', 'bp', 'js', 'arr', 'rec', 'ran', 'wide', 't', 'num, iv, f8, nc, js']) key;
-- One key, and a key that prints in several ways within a group: the first row's way.
SELECT key, differ(key) AS alone, differ('m, ' || key) AS first,
       differ('m, ' || key, 'gpuagg.strategy=sort', 'gpuagg.batch_rows=64') AS sort,
       differ('m, ' || key, 'gpuagg.batch_rows=64', 'work_mem=64kB', 'hash_mem_multiplier=1') AS spilled
FROM unnest(ARRAY['num', 'dom', 'iv', 'f8', 'f4', 'nc', 'bp', 'js', 'arr', 'rec', 'ran', 't']) key;

-- More groups than memory, also with states in files, and keys that print in their own way: a few thousand groups
-- for each value.
CREATE TABLE looks_many AS
SELECT g, round(g % 10, (g % 7)::int) AS num, CASE WHEN g % 2 = 0 THEN '-0' ELSE '0' END::float8 AS f8, g * 3 AS v
FROM generate_series(1, 60000) g, generate_series(1, 2);
ANALYZE looks_many;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SET gpuagg.require = 'require';
CREATE TEMP TABLE ours AS SELECT g, num::text AS num, f8::text AS f8, gpu_sum(v) AS s FROM (SELECT g, num, f8, gpu_sum(v) AS v FROM looks_many GROUP BY g, num, f8) q GROUP BY 1, 2, 3;
RESET gpuagg.require;
RESET work_mem;
RESET hash_mem_multiplier;
SET gpuagg.enabled = off;
CREATE TEMP TABLE core AS SELECT g, num::text AS num, f8::text AS f8, sum(v) AS s FROM looks_many GROUP BY 1, 2, 3;
SELECT count(*), (SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) d) AS differ FROM ours;
RESET gpuagg.enabled;
DROP TABLE ours, core;

-- The keys kept with groups count as memory: 6,000 groups, one value that prints in 600 ways of 1.5 kB each.
CREATE FUNCTION spilled(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN coalesce(jsonb_path_query_first(plan::jsonb, '$.**."Spilled"')::float8 > 0, false);
END $$;
SET gpuagg.require = 'require';
SET work_mem = '1MB';
SET hash_mem_multiplier = 1;
SELECT key, spilled(format('SELECT k, %s, gpu_count(*) FROM (SELECT g * 10 + j AS k, looks.* FROM looks, generate_series(0, 9) j WHERE i = 1 OFFSET 0) q GROUP BY k, %1$s', key))
FROM unnest(ARRAY['t', 'num', 'wide']) key;
RESET hash_mem_multiplier;
RESET work_mem;
RESET gpuagg.require;
DROP FUNCTION spilled;

-- Participants pass on the printed keys of their groups.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpuagg.require = 'require';
SELECT gpu_count(*), gpu_count(*) FILTER (WHERE scale(num) <> g % 7 OR (f8::text = '-0') <> (g % 2 = 0)) AS differ, gpu_sum(s)
FROM (SELECT g, num, f8, gpu_sum(v) AS s FROM looks_many GROUP BY g, num, f8) q;
SET work_mem = '64kB';
SELECT gpu_count(*), gpu_count(*) FILTER (WHERE scale(num) <> g % 7 OR (f8::text = '-0') <> (g % 2 = 0)) AS differ, gpu_sum(s)
FROM (SELECT g, num, f8, gpu_sum(v) AS s FROM looks_many GROUP BY g, num, f8) q;
RESET work_mem;
SET max_parallel_workers_per_gather = 0;

-- Columns that depend on a primary key, and redundant columns in GROUP BY.
CREATE TABLE looks_goods (id int PRIMARY KEY, price numeric, since interval, weight float8, name text COLLATE nocase);
INSERT INTO looks_goods VALUES (1, 1.0, '1 day', '-0', 'Tea'), (2, 1.00, '24:00:00', '0', 'tea'), (3, 1.000, '1 day', '0', 'TEA'),
	(4, NULL, NULL, NULL, NULL);
CREATE TABLE looks_sales AS SELECT i % 5 AS id, i AS n FROM generate_series(1, 40) i;
ANALYZE looks_goods, looks_sales;
SELECT id, price, since, weight, name, gpu_count(*), gpu_sum(n) FROM looks_goods JOIN looks_sales USING (id) GROUP BY looks_goods.id ORDER BY id;
SELECT id, price, since, weight, name, gpu_count(*) FROM looks_goods JOIN looks_sales USING (id) GROUP BY name, weight, since, price, looks_goods.id
ORDER BY id;
SELECT looks_goods.id, price, since, weight, name, gpu_sum(n) FROM looks_sales LEFT JOIN looks_goods USING (id) GROUP BY looks_goods.id ORDER BY 1;
SET enable_hashagg = off;
SELECT id, price, since, weight, name, gpu_count(*) FROM looks_goods JOIN looks_sales USING (id) GROUP BY looks_goods.id ORDER BY id;
RESET enable_hashagg;

-- A regression query.
SELECT a, i, n, gpu_count(*) FROM (VALUES (1, '1 day'::interval, 1.0), (2, '24:00:00', 1.00), (3, '1 day', 1.000)) v(a, i, n)
GROUP BY a, i, n ORDER BY a;
RESET gpuagg.require;
DROP FUNCTION differ;
DROP TABLE looks, looks_many, looks_goods, looks_sales;
DROP DOMAIN price;
DROP TYPE pair;
DROP COLLATION nocase;

-- constants among the keys distinguish no groups; if all keys are constant, there is no group without rows
CREATE TABLE constant_keys AS SELECT i % 3 AS k, i AS v FROM generate_series(1, 10) i;
CREATE FUNCTION group_key(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line LIKE '%Group Key:%' THEN RETURN trim(line); END IF;
	END LOOP;
END $$;
SET gpuagg.replace_builtin = on;
SET gpuagg.require = 'require';
SELECT group_key('SELECT 1, k, ''b'', sum(v) FROM constant_keys GROUP BY 1, k, 3');
SELECT 1 AS one, k, NULL AS nothing, sum(v) FROM constant_keys GROUP BY 1, k, 3 ORDER BY 1, 2, 3;
SELECT 'a' AS a, 1 AS one, sum(v) FROM constant_keys GROUP BY 1, 2;
SELECT 'a' AS a, 1 AS one, sum(v) FROM constant_keys WHERE v < 0 GROUP BY 1, 2;
SELECT 'a' AS a, k, sum(v) FROM constant_keys GROUP BY GROUPING SETS ((1, k), (1)) ORDER BY 2;
RESET gpuagg.require;
RESET gpuagg.replace_builtin;
DROP TABLE constant_keys;
DROP FUNCTION group_key;
