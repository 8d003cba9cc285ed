-- Exports of composite engines in parallel plans: grouping sets, DISTINCT values and ordered sets.
SET gpuagg.replace_builtin = on;
SET gpuagg.engine = 'cpu';
SET gpuagg.require = 'require';
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE pieces AS SELECT i, i % 5000 AS k, (i % 97)::numeric AS n, (i % 31)::float8 AS f FROM generate_series(1, 60000) i;
ALTER TABLE pieces SET (parallel_workers = 3);
VACUUM ANALYZE pieces;
CREATE FUNCTION same_always(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	core text;
BEGIN
	SET LOCAL gpuagg.require = 'allow';
	SET LOCAL gpuagg.enabled = off;
	EXECUTE 'SELECT md5(string_agg(x::text, chr(10))) FROM (' || query || ') x' INTO core;
	SET LOCAL gpuagg.enabled = on;
	SET LOCAL gpuagg.require = 'require';
	FOR i IN 1 .. 12 LOOP
		EXECUTE 'SELECT md5(string_agg(x::text, chr(10))) FROM (' || query || ') x' INTO answer;
		IF answer <> core THEN
			RETURN 'another answer';
		END IF;
	END LOOP;
	RETURN 'the same';
END $$;
SELECT same_always('SELECT k % 3, k, count(*), sum(n) FROM pieces WHERE n < 10 GROUP BY ROLLUP (k % 3, k) HAVING count(*) < 30 ORDER BY 1, 2');
SELECT same_always('SELECT k, count(DISTINCT n), sum(DISTINCT i % 7), sum(i) FROM pieces GROUP BY k ORDER BY k');
SELECT same_always('SELECT k % 3, f, count(*), max(i) FROM pieces GROUP BY CUBE (k % 3, f) ORDER BY 1, 2');
SELECT same_always('SELECT k % 300 AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), max(i) FROM pieces GROUP BY a ORDER BY a');
DROP TABLE pieces;
DROP FUNCTION same_always;
