/*
 * Compares the rows of a query with those without the extension, in any order. Returns how many custom scans its plan has, and how many
 * rows it returns, are missing or are surplus.
 */
CREATE FUNCTION pg_temp.same_as_core(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	memory text := current_setting('work_mem');
	workers text := current_setting('max_parallel_workers_per_gather');
	scans int := 0;
	n bigint;
	missing bigint;
	surplus bigint;
BEGIN
	SET LOCAL gpuagg.require = 'require';
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		scans := scans + (line ~ '\((GpuAgg|GpuAggTopRows)\)')::int;
	END LOOP;
	EXECUTE format('CREATE TEMP TABLE ours AS SELECT x::text AS r FROM (%s) x', query);
	SET LOCAL gpuagg.require = 'allow';
	SET LOCAL gpuagg.enabled = off;
	-- core, and the comparison, need neither files nor workers
	SET LOCAL work_mem = '64MB';
	SET LOCAL max_parallel_workers_per_gather = 0;
	EXECUTE format('CREATE TEMP TABLE theirs AS SELECT x::text AS r FROM (%s) x', query);
	SELECT count(*) INTO n FROM ours;
	SELECT coalesce(sum(d) FILTER (WHERE d > 0), 0), coalesce(-sum(d) FILTER (WHERE d < 0), 0) INTO missing, surplus
	FROM (SELECT sum(d) AS d FROM (SELECT r COLLATE "C" AS r, 1 AS d FROM theirs UNION ALL SELECT r, -1 FROM ours) x GROUP BY r) y;
	DROP TABLE ours, theirs;
	PERFORM set_config('work_mem', memory, true), set_config('max_parallel_workers_per_gather', workers, true);
	SET LOCAL gpuagg.enabled = on;
	RETURN format('%s taken, %s rows%s', scans, n, CASE WHEN missing + surplus > 0 THEN format(', %s missing, %s surplus',
		missing, surplus) END);
END $$;
