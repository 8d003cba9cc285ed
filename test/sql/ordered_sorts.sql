-- The sorts below ordered aggregates, with enough rows for each kind of sort: directions, NULLs, expressions,
-- several codes in a word, with much and with little memory.
CREATE TABLE sorts AS SELECT i * 7919 % 6 AS g, CASE WHEN i % 11 = 0 THEN NULL WHEN i % 2 = 0 THEN i * 104729::int8 % 41 - 20
	ELSE (i * 104729::int8 % 40000003 - 20000000) * 1000000007 END AS o1, i * 31 % 4 AS o2, i * 104729::int8 % 21 - 10 AS x, i * 7907 % 10 < 7 AS c, i
FROM generate_series(1, 30000) i;
ANALYZE sorts;
CREATE FUNCTION pg_temp.sorted(list text, require text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('gpuagg.require', require, false);
	EXECUTE format('SELECT string_agg(r::text, '' '' ORDER BY g) FROM (SELECT g, gpu_max_subarray_sum(x ORDER BY %1$s), gpu_longest_run(c ORDER BY %1$s),
		gpu_longest_ascending_run(x ORDER BY %1$s), gpu_compose_linear(1 - i %% 2 * 2, x ORDER BY %1$s) FROM sorts GROUP BY g) r', list) INTO answer;
	RESET gpuagg.require;
	RETURN answer;
END $$;
CREATE FUNCTION pg_temp.compare() RETURNS TABLE (list text, same bool) LANGUAGE sql AS $$
	SELECT list, pg_temp.sorted(list, 'forbid') = pg_temp.sorted(list, 'require')
	FROM unnest(ARRAY['i', 'i DESC', 'o1, i', 'o1 DESC, i', 'o1 NULLS FIRST, i', 'o1 DESC NULLS LAST, i DESC', 'o2, i',
					  'o2 DESC, o1, i', '-o2, o1 DESC NULLS LAST, i', 'o1::float8, i', 'c, i',
					  '(i / 7 % 3 - 1) * 9000000000000000000, i / 5 % 2 * 9000000000000000000 DESC, o1 NULLS FIRST, i']) list
$$;
SET work_mem = '64MB';
SELECT * FROM pg_temp.compare();
SET work_mem = '64kB';
SELECT * FROM pg_temp.compare();
DROP TABLE sorts;
