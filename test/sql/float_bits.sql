-- Floats are exact to the bit: in a serial plan with the CPU engine the custom scan adds the rows of a group in their
-- order, so all aggregates of floats give core's bits. They are compared by float8send and float4send, which
-- distinguish zeros. All NaNs count as equal, because their sign depends on the compiler.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;	-- core's sort would change the order of equal keys

-- Values of all magnitudes and both signs in random order, so that sums round and depend on the order; NULLs. Groups
-- with small % 9 from 3 to 6 have special values, in one column each.
SELECT FROM setseed(0.25);
CREATE TABLE bits AS
SELECT i, g AS small, g * 1000003::int8 * 1000003 AS sparse, 'key ' || g AS name, (random() * 1500)::int AS many,
	CASE WHEN g % 9 = 3 AND i % 40 < 9 THEN special WHEN random() > 0.05 THEN sign * 10 ^ (random() * (g % 15) - 5) END AS x,
	CASE WHEN g % 9 = 4 AND i % 50 < 9 THEN special WHEN random() > 0.05 THEN 1e6 + sign * 10 ^ (random() * 8) END AS y,
	CASE WHEN g % 9 = 5 AND i % 60 < 9 THEN special WHEN random() > 0.05 THEN sign * 10 ^ (random() * (g % 7) - 2) END::float4 AS r,
	CASE WHEN g % 9 = 6 AND i % 70 < 9 THEN special WHEN random() > 0.05 THEN 100 + sign * 1000 END::float4 AS s
FROM (SELECT i, (random() * 66)::int AS g, random() - 0.4 AS sign,
		  (ARRAY['NaN', 'Infinity', '-Infinity', '-0']::float8[])[1 + (random() * 3)::int] AS special
	  FROM generate_series(1, 6000) i OFFSET 0) v;
CREATE INDEX bits_sorted ON bits (small, i);
VACUUM ANALYZE bits;

-- Core's aggregates of floats over these columns, with "@" before their names, and a SELECT list of their bits.
CREATE TABLE calls AS
SELECT row_number() OVER (ORDER BY proname, args) AS n, format('@%s(%s)', proname, args) AS call,
	CASE prorettype WHEN 700 THEN 'float4' ELSE 'float8' END AS type
FROM pg_proc JOIN pg_aggregate ON aggfnoid = pg_proc.oid,
	(VALUES ('x', '701'), ('y', '701'), ('r', '700'), ('s', '700'), ('x, y', '701 701'), ('y, x', '701 701'),
			('r, s', '701 701'), ('y, s', '701 701'), ('y, 1', '701 701')) v (args, types)
WHERE aggkind = 'n' AND pronamespace = 'pg_catalog'::regnamespace AND proargtypes::text = types AND prorettype IN (700, 701);
SELECT count(*) AS calls, string_agg(DISTINCT substring(call, '\w+'), ' ' ORDER BY substring(call, '\w+')) AS aggregates FROM calls;

-- ours(keys), core(keys): a row for each group with the bits of all results.
CREATE FUNCTION pg_temp.query(prefix text, keys text) RETURNS text LANGUAGE sql AS $$
	SELECT replace(format('SELECT %s AS key, ARRAY[%s] AS bits FROM bits %s', CASE keys WHEN '' THEN '''''' ELSE format('concat_ws('','', %s)', keys) END,
						  string_agg(format('%1$ssend(CASE WHEN %2$s = ''NaN'' THEN ''NaN'' ELSE %2$s END)', type, call), ', ' ORDER BY n),
						  CASE keys WHEN '' THEN '' ELSE 'GROUP BY ' || keys END), '@', prefix)
	FROM calls
$$;
CREATE TABLE core (keys text, key text, bits bytea[]);
CREATE FUNCTION pg_temp.keys() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	keys text;
BEGIN
	FOREACH keys IN ARRAY ARRAY['', 'small', 'sparse', 'name', 'name, many % 2', 'many'] LOOP
		EXECUTE format('INSERT INTO core SELECT %L, * FROM (%s) q', keys, pg_temp.query('', keys));
		RETURN NEXT keys;
	END LOOP;
END $$;
CREATE TABLE keys AS SELECT keys FROM pg_temp.keys() keys;
SELECT keys, count(*) AS groups FROM core GROUP BY keys ORDER BY 2, 1;
-- Another order of the same rows gives other bits.
SELECT count(*) FILTER (WHERE a[1] <> b[1]) > 30 AS x, count(*) FILTER (WHERE a[2] <> b[2]) > 30 AS y, count(*) FILTER (WHERE a[3] <> b[3]) > 30 AS r
FROM (SELECT ARRAY[sum(x ORDER BY i), sum(y ORDER BY i), sum(r ORDER BY i)] AS a,
		  ARRAY[sum(x ORDER BY i DESC), sum(y ORDER BY i DESC), sum(r ORDER BY i DESC)] AS b FROM bits GROUP BY small) s;

-- Returns the differences from core with some settings, and how the plan ran.
CREATE FUNCTION pg_temp.compare(keys text, settings text[], OUT differing text, OUT strategy text, OUT feed text, OUT spilled bool)
LANGUAGE plpgsql AS $$
DECLARE
	setting text;
	plan jsonb;
BEGIN
	PERFORM set_config('gpuagg.require', 'require', false);
	FOREACH setting IN ARRAY settings LOOP
		PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), false);
	END LOOP;
	EXECUTE 'CREATE TEMP TABLE ours AS ' || pg_temp.query('gpu_', keys);
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || pg_temp.query('gpu_', keys) INTO plan;
	FOREACH setting IN ARRAY settings || '{gpuagg.require}' LOOP
		EXECUTE format('RESET %s', split_part(setting, '=', 1));
	END LOOP;
	plan := jsonb_path_query_first(plan, '$.**."Plan"');
	strategy := substring(jsonb_path_query_first(plan, '$.**."Strategy"')::text, '\w+');
	feed := substring(jsonb_path_query_first(plan, '$.**."Feed"')::text, 'heap|tuples');
	spilled := coalesce(jsonb_path_query_first(plan, '$.**."Spilled"')::float8 > 0, false);
	SELECT string_agg(format('%s in %s groups', call, groups), ', ' ORDER BY call) INTO differing
	FROM (SELECT call, count(*) AS groups
		  FROM (SELECT * FROM core WHERE core.keys = compare.keys) c FULL JOIN ours USING (key), calls
		  WHERE c.bits[n] IS DISTINCT FROM ours.bits[n] GROUP BY call) d;
	DROP TABLE ours;
END $$;
CREATE TABLE modes (mode text, settings text[]);
INSERT INTO modes VALUES
	('as planned', '{}'), ('small batches', '{gpuagg.batch_rows=64}'), ('direct', '{gpuagg.strategy=direct}'),
	('hash', '{gpuagg.strategy=hash}'), ('sort', '{gpuagg.strategy=sort}'), ('segmented', '{gpuagg.strategy=segmented,gpuagg.batch_rows=64}'),
	('64 kB', '{work_mem=64kB,hash_mem_multiplier=1}'), ('64 kB, hash', '{work_mem=64kB,hash_mem_multiplier=1,gpuagg.strategy=hash,gpuagg.batch_rows=64}'),
	('64 kB, sort', '{work_mem=64kB,hash_mem_multiplier=1,gpuagg.strategy=sort}');
CREATE TABLE results AS
SELECT mode, keys, c.*
FROM modes, keys, unnest(ARRAY['heap', 'tuples']) feed, pg_temp.compare(keys, settings || ('gpuagg.feed=' || feed)) c;
SELECT differing, count(*), min(mode), min(keys), min(feed) FROM results GROUP BY differing;
-- all participants took part
SELECT mode, string_agg(DISTINCT feed, ', ' ORDER BY feed) AS feeds, string_agg(DISTINCT strategy, ', ' ORDER BY strategy) AS strategies, bool_or(spilled) AS spilled
FROM results GROUP BY mode ORDER BY mode COLLATE "C";

-- Sorted input, from an index.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT (pg_temp.compare('small', settings)).* FROM (VALUES ('{enable_hashagg=off}'::text[]), ('{enable_hashagg=off,gpuagg.batch_rows=64}')) v (settings);
DROP TABLE bits, calls, core, keys, modes, results;
