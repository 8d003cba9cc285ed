/*
 * Compares the rows of a query with those without the extension, in any order. Returns how many custom scans its plan has, and how many
 * rows it returns, are missing or are surplus.
 */
CREATE FUNCTION pg_temp.same_as_core(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
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
	EXECUTE format('CREATE TEMP TABLE theirs AS SELECT x::text AS r FROM (%s) x', query);
	SELECT count(*) INTO n FROM ours;
	SELECT count(*) INTO missing FROM (SELECT r FROM theirs EXCEPT ALL SELECT r FROM ours) x;
	SELECT count(*) INTO surplus FROM (SELECT r FROM ours EXCEPT ALL SELECT r FROM theirs) x;
	DROP TABLE ours, theirs;
	SET LOCAL gpuagg.enabled = on;
	RETURN format('%s taken, %s rows%s', scans, n, CASE WHEN missing + surplus > 0 THEN format(', %s missing, %s surplus',
		missing, surplus) END);
END $$;
