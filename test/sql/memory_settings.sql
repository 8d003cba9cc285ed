-- The smallest to the largest memory that settings allow: the same answer in every strategy.
SET gpuagg.cache = off;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;
CREATE TABLE bounds AS
SELECT i, i % 5 AS g, i * 7919::int8 % 3001 AS k, 'text ' || i % 700 AS t, round(i % 40, 1) AS n, i % 1000 AS v, i % 3 > 0 AS b
FROM generate_series(1, 4000) i;
CREATE INDEX ON bounds (k, t);
CREATE INDEX ON bounds (g);
VACUUM ANALYZE bounds;

-- Core's rows, and the number of settings with which the answer differs.
CREATE FUNCTION differ(query text, scan text, strategies text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	core text;
	ours text;
	line text;
	wrapped text := 'SELECT md5(string_agg(r::text, '' '' ORDER BY r::text)) || '' '' || count(*) FROM (%s) r';
	strategy text;
	mem text;
	multiplier text;
	multipliers text[] := '{1,2.5,1000}';
	rows text;
	n int := 0;
	bad text[];
	planned text;
BEGIN
	PERFORM set_config('gpuagg.require', 'forbid', true);
	EXECUTE format(wrapped, replace(query, '@', '')) INTO core;
	PERFORM set_config('gpuagg.require', 'require', true), set_config('enable_seqscan', scan, true);
	FOREACH strategy IN ARRAY strategies LOOP
		PERFORM set_config('gpuagg.strategy', strategy, true);
		FOREACH mem IN ARRAY ARRAY['64kB', '1MB', '128MB', '16GB', '200GB', '256GB', '2047GB', '2147483647kB'] LOOP
			-- the smallest and the largest memory with all multipliers, others with one of them
			FOREACH multiplier IN ARRAY CASE WHEN mem IN ('64kB', '2147483647kB') THEN multipliers ELSE multipliers[1 + n % 3:1 + n % 3] END LOOP
				PERFORM set_config('work_mem', mem, true), set_config('hash_mem_multiplier', multiplier, true),
						set_config('gpuagg.batch_rows', CASE WHEN n % 7 = 0 THEN '64' WHEN n % 9 = 1 THEN '1048576' ELSE '4096' END, true);
				n := n + 1;
				EXECUTE format(wrapped, replace(query, '@', 'gpu_')) INTO ours;
				IF ours IS DISTINCT FROM core THEN
					bad := bad || format('%s %s * %s', strategy, mem, multiplier);
				END IF;
			END LOOP;
		END LOOP;
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || replace(query, '@', 'gpu_') LOOP
			planned := coalesce(substring(line FROM 'Strategy: (\w+)'), planned);
		END LOOP;
		RETURN NEXT format('%s: %s', strategy, planned);
	END LOOP;
	PERFORM set_config('gpuagg.require', 'allow', true), set_config('gpuagg.strategy', 'auto', true),
			set_config('work_mem', '4MB', true), set_config('hash_mem_multiplier', '2', true),
			set_config('gpuagg.batch_rows', '4096', true), set_config('enable_seqscan', 'on', true);
	RETURN NEXT format('%s answers, that differ: %s', n, coalesce(bad::text, 'none'));
END $$;
SET gpuagg.engine TO cpu;
SELECT * FROM differ('SELECT @count(*), @sum(v), @max(t) FROM bounds', 'on', '{auto,hash}');
SELECT * FROM differ('SELECT g, @count(*), @sum(v), @avg(n) FROM bounds GROUP BY g', 'on', '{auto,direct,hash,sort}');
SELECT * FROM differ('SELECT k, t, @count(*), @sum(n), @max(v) FROM bounds GROUP BY k, t', 'on', '{auto,hash,sort}');
SELECT * FROM differ('SELECT t, @count(*), @min(t) FROM bounds GROUP BY t', 'on', '{auto,hash,sort}');
-- Sorted by an index: each group is returned when it ends.
SELECT * FROM differ('SELECT g, @count(*), @sum(v) FROM bounds GROUP BY g', 'off', '{segmented}');
SELECT * FROM differ('SELECT k, t, @count(*), @sum(n), @max(t) FROM bounds GROUP BY k, t', 'off', '{segmented}');
SELECT * FROM differ('SELECT k, gpu_histogram(v, 0, 1000, 200) FROM bounds GROUP BY k', 'off', '{segmented}');
-- Sorted by the feed, or by keys below it.
SELECT * FROM differ('SELECT k % 50, gpu_longest_run(b ORDER BY i), gpu_first(v, i) FROM bounds GROUP BY 1', 'on', '{auto}');
SELECT * FROM differ('SELECT gpu_longest_run(b ORDER BY i), @count(*) FROM bounds', 'on', '{auto}');
SELECT * FROM differ('SELECT t, gpu_longest_run(b ORDER BY i) FROM bounds GROUP BY t', 'on', '{auto,segmented}');
-- Participants of a parallel plan.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM differ('SELECT k, t, @count(*), @sum(n) FROM bounds GROUP BY k, t', 'on', '{auto}');
DROP FUNCTION differ;
DROP TABLE bounds;
