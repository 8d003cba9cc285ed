-- Operators over order, extremes with a payload, sketches: each compared with plain SQL, as plain aggregates and
-- in the custom scan.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;

-- Random rows: NULLs, ties, a single row (g = 1), a group of NULLs only (g = 2).
SELECT setseed(0.5);
CREATE TABLE ord AS
SELECT g, i AS ts,
       CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 20 - 10)::int END AS x,
       CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 8)::int END AS k,
       CASE WHEN random() < 0.1 THEN NULL ELSE chr(97 + (random() * 10)::int) END AS s,
       CASE WHEN random() < 0.1 THEN NULL ELSE random() < 0.7 END AS c
FROM generate_series(1, 12) g, generate_series(1, 40) i
WHERE g > 1 OR i = 1
ORDER BY random();
UPDATE ord SET x = NULL, k = NULL, s = NULL, c = NULL WHERE g = 2;
ANALYZE ord;

CREATE VIEW expect_maxsub AS
WITH p AS (SELECT g, ts, sum(x) OVER (PARTITION BY g ORDER BY ts) AS p FROM ord WHERE x IS NOT NULL),
     q AS (SELECT g, p, least(0, min(p) OVER (PARTITION BY g ORDER BY ts
                                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS low
           FROM p)
SELECT g, greatest(0, max(p - low)) AS r FROM q GROUP BY g;

CREATE VIEW expect_run AS
WITH m AS (SELECT g, coalesce(c, false) AS c,
                  row_number() OVER (PARTITION BY g ORDER BY ts)
                - row_number() OVER (PARTITION BY g, coalesce(c, false) ORDER BY ts) AS island
           FROM ord),
     n AS (SELECT g, c, island, count(*) FILTER (WHERE c) AS n FROM m GROUP BY g, c, island)
SELECT g, max(n) AS r FROM n GROUP BY g;

CREATE VIEW expect_ascending AS
WITH m AS (SELECT g, ts, x, lag(x) OVER (PARTITION BY g ORDER BY ts) < x AS up FROM ord),
     n AS (SELECT g, x, count(*) FILTER (WHERE up IS NOT TRUE) OVER (PARTITION BY g ORDER BY ts) AS part
           FROM m),
     o AS (SELECT g, part, count(x) AS n FROM n GROUP BY g, part)
SELECT g, max(n) AS r FROM o GROUP BY g;

CREATE VIEW expect_argmax AS
SELECT DISTINCT ON (g) g, s AS r FROM ord WHERE k IS NOT NULL ORDER BY g, k DESC, s;
CREATE VIEW expect_argmin AS
SELECT DISTINCT ON (g) g, s AS r FROM ord WHERE k IS NOT NULL ORDER BY g, k, s;

CREATE VIEW expect_linear AS
WITH RECURSIVE n AS (SELECT g, x / 10.0::float8 AS a, k::float8 AS b,
                            row_number() OVER (PARTITION BY g ORDER BY ts) AS i
                     FROM ord WHERE x IS NOT NULL AND k IS NOT NULL),
     f AS (SELECT g, a, b, i FROM n WHERE i = 1
           UNION ALL
           SELECT n.g, n.a * f.a, n.a * f.b + n.b, n.i FROM f JOIN n ON n.g = f.g AND n.i = f.i + 1)
SELECT DISTINCT ON (g) g, ARRAY[a, b] AS r FROM f ORDER BY g, i DESC;

CREATE VIEW actual AS
SELECT g,
       gpu_max_subarray_sum(x::int8 ORDER BY ts) AS maxsub,
       gpu_max_subarray_sum(x::float8 ORDER BY ts) AS maxsubf,
       gpu_longest_run(c ORDER BY ts) AS run,
       gpu_longest_ascending_run(x ORDER BY ts) AS ascending,
       gpu_longest_ascending_run(x::numeric ORDER BY ts) AS ascending_numeric,
       gpu_compose_linear(x / 10.0::float8, k::float8 ORDER BY ts) AS linear,
       gpu_argmax(s, k) AS argmax, gpu_argmin(s, k) AS argmin,
       gpu_last(s, k) AS last, gpu_first(s, k) AS first
FROM ord GROUP BY g;

CREATE FUNCTION wrong() RETURNS TABLE (g int, what text) LANGUAGE sql AS $$
    SELECT a.g, v.what
    FROM actual a
    LEFT JOIN expect_maxsub m USING (g) LEFT JOIN expect_run r USING (g)
    LEFT JOIN expect_ascending c USING (g) LEFT JOIN expect_argmax x USING (g)
    LEFT JOIN expect_argmin n USING (g) LEFT JOIN expect_linear l USING (g),
    LATERAL (VALUES ('maxsub', maxsub IS NOT DISTINCT FROM m.r),
                    ('maxsub float8', maxsubf IS NOT DISTINCT FROM m.r::float8),
                    ('run', run IS NOT DISTINCT FROM r.r),
                    ('ascending', ascending IS NOT DISTINCT FROM c.r),
                    ('ascending numeric', ascending_numeric IS NOT DISTINCT FROM c.r),
                    ('argmax', argmax IS NOT DISTINCT FROM x.r), ('argmin', argmin IS NOT DISTINCT FROM n.r),
                    ('last', last IS NOT DISTINCT FROM x.r), ('first', first IS NOT DISTINCT FROM n.r),
                    ('linear', linear IS NOT DISTINCT FROM l.r)) v (what, ok)
    WHERE NOT v.ok
$$;

SET gpuagg.require = 'forbid';
SELECT * FROM wrong();
SELECT count(*), count(maxsub), count(run), count(argmax), count(linear) FROM actual;

-- EXPLAIN without the line of the engine, which depends on the machine.
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'Engine:';
        RETURN NEXT line;
    END LOOP;
END $$;

-- The same in the custom scan: over a sort, over a sorted index, and with little memory.
SET gpuagg.require = 'require';
SELECT * FROM plan_of('SELECT * FROM actual');
SELECT * FROM wrong();
CREATE INDEX ord_idx ON ord (g, ts);
SET enable_seqscan = off; SET enable_sort = off;
-- since PostgreSQL 16 the index gives the order inside groups too
SELECT bool_or(line ~ 'Index Scan using ord_idx') AS index, bool_or(line ~ 'Strategy: segmented') AS segmented,
       bool_or(line ~ 'Incremental Sort') = (current_setting('server_version_num')::int < 160000) AS right_sort
FROM plan_of('SELECT g, gpu_longest_run(c ORDER BY ts) FROM ord GROUP BY g ORDER BY g') line;
SELECT * FROM wrong();
RESET enable_seqscan; RESET enable_sort;
DROP INDEX ord_idx;
SET work_mem = '64kB';
SELECT * FROM wrong();
RESET work_mem;
-- without GROUP BY; orders that share a sort; descending, NULLS FIRST, an expression
SELECT gpu_longest_run(c ORDER BY g, ts), gpu_longest_run(c ORDER BY g), gpu_count(*) FROM (SELECT * FROM ord WHERE g = 3) q;
SELECT gpu_compose_linear(2, i ORDER BY i DESC NULLS LAST) AS down, gpu_count(*) FROM (VALUES (1), (2), (NULL), (3)) v (i);
SELECT gpu_compose_linear(2, coalesce(i, 10) ORDER BY -i NULLS FIRST) FROM (VALUES (1), (2), (NULL), (3)) v (i);
SELECT g % 2 AS odd, gpu_compose_linear(2, i ORDER BY g + i) AS r FROM (VALUES (1, 1), (2, 2), (3, 3), (1, 5), (4, 1)) v (g, i) GROUP BY g % 2 ORDER BY 1;
-- an order without codes is sorted below the scan
SELECT * FROM plan_of('SELECT gpu_longest_run(c ORDER BY s, ts) FROM ord');
-- more rows than memory: partitions, a tuplesort of one partition and of all rows
CREATE TABLE big AS SELECT i % 50 AS g, i / 10000 AS h, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 11 END AS x,
       i AS ts, (i * 7919) % 20011 AS shuffled, 't' || i % 3 AS s FROM generate_series(1, 20000) i;
SET work_mem = '64kB';
SET gpuagg.batch_rows = 100;
CREATE VIEW sorts AS
SELECT 1 AS n, sum(a) AS a, sum(b) AS b FROM (SELECT gpu_longest_ascending_run(x ORDER BY shuffled, ts DESC) AS a, gpu_max_subarray_sum(5 - x ORDER BY shuffled, ts DESC) AS b FROM big GROUP BY g) q
UNION ALL SELECT 2, sum(a), sum(b) FROM (SELECT gpu_longest_ascending_run(x ORDER BY shuffled, ts) AS a, gpu_max_subarray_sum(5 - x ORDER BY shuffled) AS b FROM big GROUP BY h, s, g % 2) q
UNION ALL SELECT 3, gpu_longest_ascending_run(ts ORDER BY x NULLS FIRST, shuffled), gpu_max_subarray_sum(5 - ts % 10 ORDER BY x NULLS FIRST, shuffled) FROM big;
SET gpuagg.require = 'require';
CREATE TABLE here AS SELECT * FROM sorts;
SET gpuagg.require = 'forbid';
SELECT * FROM sorts ORDER BY n;
SELECT count(*) AS same FROM here NATURAL JOIN sorts;
SET gpuagg.require = 'require';
-- sorted again for other rows, and kept for the same rows
CREATE VIEW again AS
SELECT p, (SELECT gpu_longest_ascending_run(x ORDER BY shuffled) FROM big WHERE ts % 4 < p) AS best,
       (SELECT gpu_max_subarray_sum(5 - x ORDER BY shuffled, h) FROM big WHERE g > p + 45) AS few FROM generate_series(0, 3) p
UNION ALL SELECT p, r, NULL FROM generate_series(0, 3) p LEFT JOIN (SELECT g, gpu_longest_run(x > 3 ORDER BY ts) AS r FROM big GROUP BY g OFFSET 0) q ON g = p;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
CREATE TABLE anew AS SELECT * FROM again;
SET gpuagg.require = 'forbid';
SELECT * FROM again ORDER BY p, best;
TABLE anew EXCEPT ALL TABLE again;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material;
SET gpuagg.require = 'require';
RESET work_mem;
RESET gpuagg.batch_rows;
-- two orders: the rows are sorted for each
SELECT gpu_longest_run(c ORDER BY ts, g), gpu_longest_run(c ORDER BY x, g, ts) FROM ord;
-- sums of floats in their order are core's to the last digit: no row differs
SELECT gpu_sum(x::float8 / 3 ORDER BY x) AS here FROM ord WHERE x > 0
EXCEPT SELECT sum(x::float8 / 3) FROM (SELECT x FROM ord WHERE x > 0 ORDER BY x) q;
SET gpuagg.require = 'forbid';

-- No rows, and the ends of value ranges.
SELECT gpu_max_subarray_sum(x::int8 ORDER BY ts), gpu_longest_run(c ORDER BY ts),
       gpu_longest_ascending_run(x ORDER BY ts), gpu_compose_linear(x, x ORDER BY ts),
       gpu_matrix_product(ARRAY[[x]] ORDER BY ts), gpu_argmax(s, k), gpu_approx_count_distinct(x)
FROM ord WHERE g = 0;
SELECT gpu_max_subarray_sum(x ORDER BY i)
FROM (VALUES (1, -9223372036854775808), (2, -9223372036854775808), (3, 5), (4, -1), (5, 7)) v (i, x);
SELECT gpu_max_subarray_sum(x ORDER BY i) FROM (VALUES (1, 9223372036854775807), (2, 1)) v (i, x);
SELECT gpu_max_subarray_sum(x ORDER BY i) FROM (VALUES (1, -1.5::float8), (2, 'NaN'), (3, 7)) v (i, x);
SELECT gpu_max_subarray_sum(x ORDER BY i) FROM (VALUES (1, '-Infinity'::float8), (2, 2), (3, 7)) v (i, x);
SELECT gpu_max_subarray_sum(x ORDER BY i) FROM (VALUES (1, 'Infinity'::float8), (2, -2), (3, 7)) v (i, x);
SELECT gpu_max_subarray_sum(x ORDER BY i) FROM (VALUES (1, 1e308::float8), (2, 1e308)) v (i, x);

-- Extremes with a payload of every supported type; ties and NULL values.
SELECT gpu_argmax(v, k) FROM (VALUES ('b', 1.0), ('a', 1.00), (NULL, 1), ('z', 0), ('0', NULL)) t (v, k);
SELECT gpu_argmax(v, k) FROM (VALUES (NULL::text, 2), ('a', 1)) t (v, k);
SELECT gpu_argmax(i, f) AS "NaN is greatest", gpu_argmin(i, f) FROM (VALUES (1, 'NaN'::float8), (2, 'Infinity'), (3, '-Infinity')) t (i, f);
SELECT gpu_argmax(v::int4, k), gpu_argmax(v::int8, k), gpu_argmax(v::float8, k), gpu_argmax(v::numeric, k),
       gpu_argmax(date '2020-01-01' + v, k), gpu_argmax(timestamp '2020-01-01' + v * interval '1 day', k),
       gpu_argmax(v::text, k)
FROM (SELECT v, 100 - v AS k FROM generate_series(1, 10) v) t;
SELECT gpu_argmin(v, k::int8), gpu_argmin(v, k::float8), gpu_argmin(v, k::numeric), gpu_argmin(v, date '2020-01-01' + k),
       gpu_argmin(v, timestamp '2020-01-01' + k * interval '1 day'), gpu_argmin(v, k::text COLLATE "C")
FROM (SELECT v, 99 - v AS k FROM generate_series(1, 10) v) t;

-- Matrices.
SELECT gpu_matrix_product(m ORDER BY i) FROM (VALUES (1, ARRAY[[1,2],[3,4]]::float8[]), (2, NULL), (3, ARRAY[[0,1],[1,0]])) v (i, m);
SELECT gpu_matrix_product(m ORDER BY i DESC) FROM (VALUES (1, ARRAY[[1,2],[3,4]]::float8[]), (3, ARRAY[[0,1],[1,1]])) v (i, m);
SELECT gpu_matrix_product(m ORDER BY i) FROM (VALUES (1, ARRAY[[1,2],[3,4]]::float8[]), (2, ARRAY[[1]])) v (i, m);
SELECT gpu_matrix_product(ARRAY[1,2]::float8[]);
SELECT gpu_matrix_product(ARRAY[[1,NULL],[2,3]]::float8[]);
SELECT gpu_matrix_product((SELECT array_agg(r) FROM (SELECT array_agg(1.0::float8) AS r FROM generate_series(1, 6) a, generate_series(1, 6) b GROUP BY a) q));
-- powers of permutations of size 3, 4 and 5 give the identity
SELECT k, gpu_matrix_product(p ORDER BY i) =
          (SELECT array_agg(r ORDER BY a) FROM (SELECT a, array_agg((a = b)::int::float8 ORDER BY b) AS r
                                                FROM generate_series(1, k) a, generate_series(1, k) b GROUP BY a) e) AS identity
FROM generate_series(3, 5) k, generate_series(1, k) i,
     LATERAL (SELECT array_agg(r ORDER BY a) AS p
              FROM (SELECT a, array_agg((a % k + 1 = b)::int::float8 ORDER BY b) AS r
                    FROM generate_series(1, k) a, generate_series(1, k) b GROUP BY a) e) m
GROUP BY k ORDER BY k;

-- In windows and with FILTER.
SELECT ts, gpu_max_subarray_sum(v) OVER (ORDER BY ts), gpu_longest_run(v > 0) OVER (ORDER BY ts), gpu_argmax(ts, v) OVER (ORDER BY ts)
FROM (VALUES (1, 2::int8), (2, -1), (3, 4), (4, -9), (5, 1)) t (ts, v);
SELECT gpu_argmax(ts, v) FILTER (WHERE v < 4), gpu_longest_run(v > 0 ORDER BY ts) FILTER (WHERE ts <> 2)
FROM (VALUES (1, 2::int8), (2, -1), (3, 4), (4, -9), (5, 1)) t (ts, v);

-- Sketches: exact if small, within 3 % (more than three standard errors) if large, the same if merged.
SELECT gpu_approx_count_distinct(x) - count(DISTINCT x), gpu_approx_count_distinct(s) - count(DISTINCT s) FROM ord;
SELECT gpu_approx_count_distinct(k::numeric) FROM generate_series(0, 8) k;
SELECT n, abs(gpu_approx_count_distinct(i % n) - n) <= 0.03 * n AS close
FROM (VALUES (100), (1000), (10000), (40000), (100000)) s (n), generate_series(1, 100000) i GROUP BY n ORDER BY n;
SELECT gpu_approx_count_distinct(ARRAY[i % 3]), gpu_approx_count_distinct(i % 3) FROM generate_series(1, 10) i;
SELECT gpu_approx_count_distinct(point(1, 2));

SET client_min_messages = warning;
DROP TABLE ord, big, here CASCADE;
DROP FUNCTION plan_of;
DROP FUNCTION wrong;
