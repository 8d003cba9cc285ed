-- The oldest version of the SQL objects, brought to the newest; from here on the custom scan must take every query.
CREATE EXTENSION gpuagg VERSION '1.0';
ALTER EXTENSION gpuagg UPDATE;
SELECT extversion AS "SQL objects", gpuagg_version() AS library FROM pg_extension WHERE extname = 'gpuagg';
LOAD 'gpuagg';
SET gpuagg.require = 'require';
CREATE TABLE t AS SELECT i % 7 AS k, i AS v, i / 8.0 AS n, i * 0.5::float8 AS f FROM generate_series(1, 20000) i;
ANALYZE t;

DO $$
DECLARE
    plan text := '';
    line text;
    differing bigint;
BEGIN
    FOR line IN EXPLAIN SELECT k, gpu_sum(v) FROM t GROUP BY k LOOP
        plan := plan || line || E'\n';
    END LOOP;
    RAISE NOTICE E'%', plan;
    IF plan NOT LIKE '%Custom Scan (GpuAgg)%' THEN
        RAISE EXCEPTION 'the custom scan is not used';
    END IF;

    SELECT count(*) INTO differing
    FROM (SELECT k, gpu_count(*) AS a, gpu_sum(v) AS b, gpu_avg(n) AS c, gpu_min(f) AS d, gpu_stddev(v) AS e FROM t GROUP BY k) ours
        FULL JOIN (SELECT k, count(*) AS a, sum(v) AS b, avg(n) AS c, min(f) AS d, stddev(v) AS e FROM t GROUP BY k) core
        USING (k, a, b, c, d, e)
    WHERE ours IS NULL OR core IS NULL;
    IF differing <> 0 THEN
        RAISE EXCEPTION '% rows differ from those of core', differing;
    END IF;
    IF (SELECT gpu_histogram(v, 0, 20000, 4) FROM t) <> '{0,4999,5000,5000,5000,1}' THEN
        RAISE EXCEPTION 'wrong histogram';
    END IF;
END
$$;

DROP EXTENSION gpuagg;
DROP TABLE t;
