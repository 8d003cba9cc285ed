-- Strategies of the CPU engine: each gives core's answer, whatever strategy is set, and whatever the
-- data are.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine = 'cpu';

-- Keys of all kinds: small, wide, sparse, in runs of equal keys, NULL, -0 and NaN, strings.
CREATE TABLE strat AS
SELECT i,
       CASE WHEN i % 11 = 0 THEN NULL ELSE i * 7919 % 23 END AS small,
       ((i * 7919 % 23) - 11)::int2 AS small2,
       CASE WHEN i % 13 = 0 THEN NULL ELSE (i * 7919::int8 % 4001) * 1000003 END AS sparse,
       (i / 100)::int AS run,
       i::int8 AS uniq,
       CASE i % 5 WHEN 0 THEN '-0'::float8 WHEN 1 THEN '0'::float8 WHEN 2 THEN 'NaN'::float8
           WHEN 3 THEN NULL ELSE i % 7 END AS f,
       CASE WHEN i % 17 = 0 THEN NULL ELSE 'key ' || i * 7919 % 97 END AS s,
       (i * 7919 % 31)::numeric / 10 AS num,
       i % 3 = 0 AS b,
       CASE WHEN i % 9 = 0 THEN NULL ELSE (i * 104729 % 100003)::int END AS v,
       sin(i) AS x,
       (i * 104729 % 1009)::numeric / 100 AS n,
       'text ' || i * 104729 % 1013 AS t
FROM generate_series(1, 5000) i;
ANALYZE strat;

-- Core's answers, by keys and with or without sums of floats.
CREATE TABLE core_rows (keys text, floats bool, answer text);
CREATE INDEX ON core_rows (keys, floats);

-- The rows of core's answer that the custom scan does not return, and the difference of the numbers of rows.
CREATE FUNCTION differ(keys text, floats bool, VARIADIC conf text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	aggs text := '@count(*), @count(v), @sum(v), @avg(v), @min(v), @max(v), @min(x), @max(x), @stddev(v), @sum(n),'
		' @avg(n), @max(t), @count(*) FILTER (WHERE b), @sum(v) FILTER (WHERE x > 0), @bit_xor(v), @bool_or(b)';
	query text;
	setting text;
	result bigint;
BEGIN
	IF floats THEN
		aggs := aggs || ', @sum(x), @avg(x), @stddev(x), @corr(x, v), @covar_pop(v, x)';
	END IF;
	query := format('SELECT ROW(%s, %s)::text FROM strat GROUP BY %s', keys, aggs, keys);
	IF NOT EXISTS (SELECT FROM core_rows c WHERE c.keys = differ.keys AND c.floats = differ.floats) THEN
		PERFORM set_config('work_mem', '64MB', true);
		EXECUTE format('INSERT INTO core_rows SELECT %L, %L, r FROM (%s) q (r)', keys, floats, replace(query, '@', ''));
	END IF;
	FOREACH setting IN ARRAY conf LOOP
		PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true);
	END LOOP;
	PERFORM set_config('gpuagg.require', 'require', true);
	EXECUTE 'CREATE TEMP TABLE ours ON COMMIT DROP AS ' || replace(query, '@', 'gpu_');
	PERFORM set_config('gpuagg.require', 'allow', true);
	PERFORM set_config('work_mem', '64MB', true);
	SELECT count(*) INTO result FROM core_rows c WHERE c.keys = differ.keys AND c.floats = differ.floats;
	IF result = 0 THEN
		RAISE EXCEPTION 'no groups for %', keys;
	END IF;
	SELECT abs(result - (SELECT count(*) FROM ours)) + (SELECT count(*) FROM
		(SELECT c.answer FROM core_rows c WHERE c.keys = differ.keys AND c.floats = differ.floats EXCEPT ALL TABLE ours) d) INTO result;
	DROP TABLE ours;
	RETURN result;
END $$;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
SELECT *
FROM (SELECT keys, strategy, rows, mem,
             differ(keys, true, 'gpuagg.strategy=' || strategy, 'gpuagg.batch_rows=' || rows,
                    'work_mem=' || mem) AS differ
      FROM unnest(ARRAY['small', 'small, small2', 'sparse', 'run', 'uniq', 'f', 's', 'num', 's, small', 'b, f, num',
                        'run, s', 'uniq, sparse', 'small2, b', 'i % 2, s, num']) keys,
           unnest(ARRAY['auto', 'segmented', 'direct', 'hash', 'sort']) strategy,
           unnest(ARRAY['64', '4096']) rows,
           unnest(ARRAY['64kB', '64MB']) mem
      WHERE ((rows = '64') = (mem = '64kB')) = (strategy IN ('auto', 'direct', 'sort')) OFFSET 0) d
WHERE differ <> 0;

-- Sorted below: groups are returned as they complete.
RESET enable_sort;
SET enable_hashagg = off;
SELECT keys, differ(keys, false, 'gpuagg.batch_rows=64') AS differ
FROM unnest(ARRAY['small', 'small, small2', 'run', 'uniq', 'f + 0', 's', 'num', 's, small', 'b, f + 0, num']) keys;
RESET enable_hashagg;

-- The strategy that was chosen.
CREATE FUNCTION strategy_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Strategy' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
SET gpuagg.require = 'require';
SELECT strategy_of('SELECT gpu_count(*) FROM strat');
SELECT strategy_of('SELECT small, gpu_count(*) FROM strat GROUP BY small');
SELECT strategy_of('SELECT small, small2, gpu_count(*) FROM strat GROUP BY small, small2');
SELECT strategy_of('SELECT s, gpu_count(*) FROM strat GROUP BY s');
SELECT strategy_of('SELECT f, gpu_count(*) FROM strat GROUP BY f');
SELECT strategy_of('SELECT uniq, gpu_count(*) FROM strat GROUP BY uniq');
SET gpuagg.strategy = 'hash';
SELECT strategy_of('SELECT small, gpu_count(*) FROM strat GROUP BY small');
SET gpuagg.strategy = 'sort';
SELECT strategy_of('SELECT small, gpu_count(*) FROM strat GROUP BY small');
RESET gpuagg.strategy;

-- Keys that leave the range of the first batches: the range of "direct" grows, then "hash" is used.
SET gpuagg.batch_rows = 64;
SELECT strategy_of('SELECT k, gpu_count(*) FROM (SELECT CASE WHEN i < 500 THEN i % 10 WHEN i < 1000 THEN i
    ELSE i * 1000000007::int8 END AS k FROM strat ORDER BY i OFFSET 0) s GROUP BY k');
SELECT gpu_sum(c), gpu_count(*) FROM (SELECT k, gpu_count(*) AS c
    FROM (SELECT CASE WHEN i < 500 THEN i % 10 WHEN i < 1000 THEN i
          ELSE i * 1000000007::int8 END AS k FROM strat ORDER BY i OFFSET 0) s GROUP BY k) g;
-- The limits of int8.
SELECT k, gpu_count(*) FROM (SELECT CASE WHEN i < 100 THEN 9223372036854775807 - i % 2
    WHEN i < 200 THEN -9223372036854775808 + i % 2 END AS k FROM strat ORDER BY i OFFSET 0) s GROUP BY k ORDER BY k;
SELECT k, gpu_count(*) FROM (SELECT 9223372036854775807 - i % 5 AS k FROM strat) s GROUP BY k ORDER BY k;
DROP FUNCTION strategy_of;
DROP FUNCTION differ;
DROP TABLE strat, core_rows;
