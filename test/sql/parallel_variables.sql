-- Variables of PL/pgSQL as arguments that the participants of a parallel plan evaluate before the first row. Workers
-- have only their values, and all participants must create the same states from them.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE variables AS SELECT i, i % 3 AS k, (i % 100)::float8 AS x FROM generate_series(1, 50000) i;
ALTER TABLE variables SET (parallel_workers = 2);
ANALYZE variables;
CREATE TYPE bounds AS (lo float8, hi float8);
CREATE FUNCTION bins(hi float8) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT gpu_histogram(x, 0, hi, 4)::text FROM variables;
	RETURN QUERY SELECT k || ' ' || gpu_histogram(x, 0, hi, 4, i % 7)::text FROM variables GROUP BY k ORDER BY k;
	RETURN QUERY SELECT gpu_histogram(x, ARRAY[0, hi / 2, hi])::text FROM variables;
END $$;
CREATE FUNCTION record_bins(hi float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE b bounds := ROW(0, hi); r text;
BEGIN
	SELECT gpu_histogram(x, b.lo, b.hi, 4) INTO r FROM variables;
	RETURN r;
END $$;
-- a cursor's query has no workers
CREATE FUNCTION cursor_bins(hi float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
	FOR r IN SELECT gpu_histogram(x, 0, hi, 4) AS h FROM variables LOOP
		RETURN r.h;
	END LOOP;
END $$;
CREATE FUNCTION unset_bins() RETURNS text LANGUAGE plpgsql AS $$
DECLARE b record; r text;
BEGIN
	SELECT gpu_histogram(x, 0, b.hi, 4) INTO r FROM variables WHERE i < 0;
	RETURN r;
END $$;
SET gpuagg.require = 'require';
SELECT bins(50);
SELECT record_bins(50), cursor_bins(50);
SELECT unset_bins();
DROP TABLE variables;
DROP FUNCTION bins, record_bins, cursor_bins, unset_bins;
DROP TYPE bounds;
