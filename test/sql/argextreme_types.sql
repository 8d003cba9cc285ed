-- gpu_argmax and gpu_argmin over every pair of types. The custom scan is compared with plain SQL: extreme keys
-- and values, ties, NULLs as results, -0, NaN.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;

CREATE TABLE extremes AS
SELECT i % 13 AS g,
       CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 7919 % 11) - 5 END::int2 AS i2,
       CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 104729 % 9) - 4 END::int4 AS i4,
       (ARRAY[9223372036854775807, -9223372036854775808, 0, NULL, 7])[1 + i * 31 % 5] AS i8,
       (ARRAY['-0', '0', 'nan', '-inf', 'inf', '1.5', NULL])[1 + i * 37 % 7]::float4 AS f4,
       (ARRAY['0', '-0', 'nan', 'inf', '-1e308', NULL])[1 + i * 41 % 6]::float8 AS f8,
       (ARRAY['infinity', '-infinity', '2026-01-01', NULL])[1 + i * 43 % 4]::date AS d,
       (ARRAY['infinity', '-infinity', '2026-01-01', NULL])[1 + i * 47 % 4]::timestamp AS ts,
       (ARRAY['infinity', '-infinity', '2026-01-01', NULL])[1 + i * 53 % 4]::timestamptz AS tz,
       (ARRAY[1.5, 1.25, NULL])[1 + i * 59 % 3]::numeric(6, 2) AS n,
       (ARRAY['a', 'B', NULL])[1 + i * 61 % 3] AS s,
       (ARRAY[true, false, NULL])[1 + i * 67 % 3] AS b
FROM generate_series(1, 400) i;
INSERT INTO extremes SELECT 100 + i FROM generate_series(1, 2) i;
ANALYZE extremes;

-- the pairs of types whose answers differ; compared as text, which distinguishes -0 from 0
CREATE FUNCTION wrong_extremes(names text[]) RETURNS TABLE (value text, key text, aggregate text)
LANGUAGE plpgsql AS $$
DECLARE
    bad bool;
BEGIN
    FOREACH value IN ARRAY names LOOP
        FOREACH key IN ARRAY names LOOP
            FOREACH aggregate IN ARRAY ARRAY['max', 'min'] LOOP
                EXECUTE format($q$
                    WITH ours AS (SELECT g, gpu_arg%3$s(%1$I, %2$I)::text AS r,
                                         gpu_arg%3$s(%1$I, %2$I) FILTER (WHERE i2 > 0)::text AS f
                                  FROM extremes GROUP BY g),
                         ranked AS (SELECT g, i2, %1$I::text AS r,
                                           rank() OVER (PARTITION BY g ORDER BY %2$I %4$s NULLS LAST, %1$I, (%1$I::text = '-0') DESC) AS n,
                                           rank() OVER (PARTITION BY g, i2 > 0 ORDER BY %2$I %4$s NULLS LAST, %1$I, (%1$I::text = '-0') DESC) AS m
                                    FROM extremes WHERE %2$I IS NOT NULL)
                    SELECT EXISTS (SELECT FROM ours o
                                   WHERE r IS DISTINCT FROM (SELECT min(r) FROM ranked x WHERE x.g = o.g AND n = 1)
                                      OR f IS DISTINCT FROM (SELECT min(r) FROM ranked x WHERE x.g = o.g AND m = 1 AND i2 > 0))
                    $q$, value, key, aggregate, CASE aggregate WHEN 'max' THEN 'DESC' ELSE 'ASC' END) INTO bad;
                IF bad THEN
                    RETURN NEXT;
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

SET gpuagg.require = 'require';
SELECT * FROM wrong_extremes(ARRAY['i2', 'i4', 'i8', 'f4', 'f8', 'd', 'ts', 'tz', 'n', 's', 'b']);
-- the same as plain aggregates
RESET gpuagg.require;
SET gpuagg.enabled = off;
SELECT * FROM wrong_extremes(ARRAY['i2', 'i4', 'i8', 'f4', 'f8', 'd', 'ts', 'tz', 'n', 's', 'b']);
-- ... whose states core's parallel plans combine
ALTER TABLE extremes SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT g, gpu_argmax(s, i2) FROM extremes GROUP BY g;
SELECT * FROM wrong_extremes(ARRAY['i2', 'f8', 'n', 's', 'b']);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET gpuagg.enabled;

-- records; their states contain the types of the columns
CREATE TABLE recorded WITH (parallel_workers = 2) AS SELECT i, i % 3 AS g, CASE WHEN i % 5 = 0 THEN NULL ELSE 's' || i % 70 END AS s, (i % 7)::numeric(6, 2) AS n
	FROM generate_series(1, 20000) i;
ANALYZE recorded;
CREATE TYPE twosome AS (a int, b text);
CREATE FUNCTION pg_temp.of_records() RETURNS TABLE (g int, v text) LANGUAGE SQL AS $$
	SELECT g, concat_ws(' | ', gpu_last(ROW(i, s, n), i), gpu_last(ROW(ROW(i, 'x'), ARRAY[s, NULL]), -i), gpu_first(ROW(NULL, s), i), gpu_argmax(i, ROW(n, s, i)),
		gpu_last(ARRAY[ROW(i, s), NULL], i), gpu_last(ARRAY[[ROW(i, s)], [ROW(n)]], i), gpu_last(ROW(), i), gpu_last(NULL::record, i),
		gpu_argmin(ROW(i, s)::twosome::record, ROW(n, i)), gpu_last('{}'::record[], i), gpu_argmax(ROW(i), ROW(s COLLATE "POSIX", i)),
		gpu_last(ROW(s COLLATE "POSIX"), i) = ROW('s48'::text COLLATE "POSIX"))
	FROM recorded r GROUP BY g $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SET gpuagg.require = 'require';
SELECT * FROM pg_temp.of_records() ORDER BY g;
RESET gpuagg.require;
SET gpuagg.enabled = off;
EXPLAIN (COSTS OFF) SELECT * FROM pg_temp.of_records();
SELECT * FROM pg_temp.of_records() ORDER BY g;
-- states keep all digits, and values without a binary form
CREATE TYPE digits AS (f float8);
SET extra_float_digits = -5;
SELECT (gpu_last(ROW(i / 3.0::float8)::digits, i)).f = 20000 / 3.0::float8 AS same FROM recorded;
RESET extra_float_digits;
SELECT gpu_last(ROW(i, ARRAY[makeaclitem(10, 10, 'SELECT', i > 5)], int4out(i)), i)::text LIKE '(20000,{%=r*/%},20000)' AS same FROM recorded;
DROP TYPE digits;
SET max_parallel_workers_per_gather = 0;
SELECT * FROM pg_temp.of_records() ORDER BY g;
RESET max_parallel_workers_per_gather;
RESET gpuagg.enabled;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET parallel_leader_participation;

-- a tie between -0 and 0 does not depend on the order of rows or on participants
SELECT gpu_argmax(v::float8, 1) AS f8, gpu_argmin(v::float4, 1) AS f4 FROM (VALUES (1, '0'), (2, '-0')) r(i, v);
SELECT gpu_argmax(v::float8, 1) AS f8, gpu_argmin(v::float4, 1) AS f4 FROM (VALUES (1, '-0'), (2, '0')) r(i, v);

-- without an ORDER BY, gpu_longest_run takes rows in their order, in one process
SET work_mem = '64kB';
CREATE TABLE runs AS SELECT i * 7919 % 5000 AS g, CASE WHEN i % 9 > 0 THEN i % 10 < 7 END AS c, i % 17 AS x FROM generate_series(1, 60000) i;
ANALYZE runs;
SET gpuagg.require = 'require';
CREATE TEMP TABLE ours AS SELECT g, gpu_longest_run(c) AS run, gpu_longest_ascending_run(x) AS up, gpu_max_subarray_sum(x - 8::int8) AS best FROM runs GROUP BY g;
RESET gpuagg.require;
RESET work_mem;
SET gpuagg.enabled = off;
SET enable_sort = off; -- a sort would not keep the order of equal keys
CREATE TEMP TABLE plain AS SELECT g, gpu_longest_run(c) AS run, gpu_longest_ascending_run(x) AS up, gpu_max_subarray_sum(x - 8::int8) AS best FROM runs GROUP BY g;
RESET gpuagg.enabled;
RESET enable_sort;
SELECT count(*), sum(run) > 0 AS some FROM ours JOIN plain USING (g, run, up, best);

DROP TABLE extremes, runs, ours, plain;
DROP FUNCTION wrong_extremes;
