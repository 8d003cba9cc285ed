-- A query of which wait_for_others() is a condition of some rows has each participant read rows.
CREATE FUNCTION wait_for_others() RETURNS bool STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(coalesce(nullif(current_setting('test.wait', true), '')::float8, 0.005));
	RETURN true;
END $$;
-- Whether the participants of a query have merged partitions, in one of some runs. They do not if one of them has read nearly all rows,
-- as on a busy machine; so participants wait longer in each further run.
CREATE FUNCTION pg_temp.merges_parts(query text, runs int DEFAULT 10) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	scan jsonb;
BEGIN
	FOR try IN 1 .. runs LOOP
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT json, TIMING off) ' || query INTO plan;
		scan := jsonb_path_query_first(plan, '$.** ? (@."Custom Plan Provider" == "GpuAgg")');
		EXIT WHEN scan ? 'Merged Parts';
		PERFORM set_config('test.wait', least(0.005 * 2 ^ try, 0.1)::text, false);
	END LOOP;
	PERFORM set_config('test.wait', '', false);
	RETURN coalesce(scan ? 'Merged Parts', false);
END $$;
