--
-- Keys of more than 16 bytes together, which the GPU shortens: integers of all widths, texts and numerics beside them, up
-- to eight keys, NULLs in any of them, from batches and from cached columns; HAVING, and ORDER BY ... LIMIT by keys and states.
--
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include
SET max_parallel_workers_per_gather = 0;

-- Keys ending in 1 have few values, those in 2 many. f: NULLs from the first row on; e: NULLs in the last rows only.
CREATE TABLE wk AS SELECT i, i % 3 AS a1, i % 5 AS b1, i % 7 - 3 AS c1, i % 2 AS d1, i % 11 AS e1, (i % 4)::int2 AS s1,
    i % 2000 * 7919 AS a2, (i % 300) * 100000000007 AS l2, (i % 17) * -10000000000 AS l1, (i % 13)::int8 - 6 AS m1,
    (i * 31 % 4000) * 1000000007::int8 AS m2, CASE WHEN i % 6 > 0 THEN i % 5 END AS af, CASE WHEN i % 5 > 0 THEN i % 19 END::int8 AS lf,
    CASE WHEN i < 5900 THEN i % 5 END AS ae, CASE WHEN i < 5950 THEN (i % 19)::int8 << 33 END AS le,
    CASE WHEN i % 50 > 0 THEN 'text ' || i % 31 END AS t, (i % 23)::numeric(9, 2) / 4 AS n, date '2020-01-01' + i % 40 AS d,
    timestamp '2020-01-01' + i % 300 * interval '1 hour' AS ts, (i % 9) / 4.0::float8 AS f8, i % 3 = 0 AS b
    FROM generate_series(1, 6000) i ORDER BY i;
VACUUM (FREEZE, ANALYZE) wk;

-- answers(parts): these thirds of the queries
CREATE FUNCTION answers(parts bigint[] DEFAULT '{0,1,2}') RETURNS TABLE (keys text, result text) LANGUAGE sql AS $$
    SELECT keys, pg_temp.same('SELECT ' || keys || ', @count(*), @sum(i), @max(i), @avg(f8) FROM wk GROUP BY ' || keys)
    FROM (SELECT keys, row_number() OVER () AS id FROM (VALUES
        ('a1, b1, c1, d1, e1'), ('a2, b1, c1, d1, e1'), ('a2, af, c1, d1, ae'), ('l2, m2, l1'), ('l2, lf, le'), ('l2, le'), ('le, lf'),
        ('s1, l2, a1, m1, b1, lf'), ('t, l2, n'), ('t, n, lf, ae'), ('d, ts, t, af'), ('ts, lf, l1, m1'), ('af, ae, lf, le, t, n, d, ts'),
        ('l2, m2, l1, m1, lf, le, l2 + 1, m2 - 1'), ('b, l2, b1, lf, af IS NULL'), ('f8, l1, m1, t'),
        ('af + 1, ae * 2, coalesce(lf, -1), l1 / 3, l2 % 100'), ('af, ae, af, ae, c1, d1')
    ) AS v(keys)) AS k WHERE id % 3 = ANY (parts)
$$;
SELECT * FROM answers();

-- without count(*), without aggregates, with filters
SELECT pg_temp.same('SELECT l2, le, lf, @sum(i), @count(af) FROM wk GROUP BY 1, 2, 3'),
    pg_temp.same('SELECT l2, le, lf FROM wk GROUP BY 1, 2, 3 HAVING @count(*) > 0'),
    pg_temp.same('SELECT l1, le, lf, @count(*) FILTER (WHERE i % 2 = 0), @min(i) FILTER (WHERE i > 5500) FROM wk GROUP BY 1, 2, 3'),
    pg_temp.same('SELECT l1, le, lf, @sum(i) FROM wk WHERE i % 3 = 1 AND le IS NOT NULL GROUP BY 1, 2, 3'),
    pg_temp.same('SELECT l1, le, lf, @sum(i) FROM wk WHERE i < 0 GROUP BY 1, 2, 3');
-- DISTINCT, order, sketches, histograms
SELECT pg_temp.same('SELECT l1, a1, af, le, @count(DISTINCT b1), @sum(i) FROM wk GROUP BY 1, 2, 3, 4'),
    pg_temp.same('SELECT a1, af, le, b1, @sum(DISTINCT c1), @max(DISTINCT m1) FROM wk WHERE i % 7 < 5 GROUP BY 1, 2, 3, 4');
SELECT pg_temp.answer(query, 'require', false) = pg_temp.answer(query, 'forbid', false) AS same
    FROM (VALUES ('gpu_max_subarray_sum(m1 - 3 ORDER BY i)'), ('gpu_histogram(f8, 0, 2, 4)'), ('gpu_approx_count_distinct(m2)'),
        ('gpu_argmax(i, m1)')) AS a(agg), format('SELECT l1, a1, af, le, %s FROM wk GROUP BY 1, 2, 3, 4', agg) AS query;

-- the first groups, by keys and states
CREATE FUNCTION first_groups() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.same(format('SELECT l2, af, le, a1, @count(*), @sum(i), @min(b1) FROM wk GROUP BY 1, 2, 3, 4 %s', tail))
    FROM (VALUES ('ORDER BY l2 DESC, af NULLS FIRST, le, a1 LIMIT 7'), ('ORDER BY le DESC NULLS FIRST, l2, a1, af LIMIT 30'),
        ('ORDER BY le NULLS LAST, a1 DESC, l2 DESC, af LIMIT 3 OFFSET 40'), ('ORDER BY 6 DESC, 1, 2, 3, 4 LIMIT 5'), ('ORDER BY 5, af, le, l2, a1 LIMIT 9'),
        ('HAVING @count(*) > 1'), ('HAVING @sum(i) BETWEEN 3000 AND 4000'), ('HAVING le < 9000000000 ORDER BY 6, 1, 2, 3, 4 LIMIT 11'),
        ('HAVING @min(b1) = 4 ORDER BY 4 DESC, 2 NULLS FIRST, 3 DESC, 1 LIMIT 12')) AS t(tail)
$$;
SELECT * FROM first_groups();

-- from cached columns, which a GPU server stores
SET gpuagg.cache = eager;
SELECT count(*), bool_and(result LIKE 'same%') FROM answers();
SELECT count(*), bool_and(r LIKE 'same%') FROM first_groups() r;
-- some rows from the cache, others in batches, where the first NULLs may come
UPDATE wk SET l2 = -l2, le = NULL, a1 = NULL WHERE i > 5800;
SELECT count(*), bool_and(result LIKE 'same%') FROM answers('{0,1}');
RESET gpuagg.cache;
-- few groups are expected, and in small batches
ALTER TABLE wk ALTER l2 SET (n_distinct = 2), ALTER m2 SET (n_distinct = 2), ALTER a2 SET (n_distinct = 2);
ANALYZE wk;
SET gpuagg.batch_rows = 1024;
SELECT count(*), bool_and(result LIKE 'same%') FROM answers('{1,2}');
-- rescanned
SET gpuagg.require = 'require';
PREPARE again (int) AS SELECT count(*), sum(n), sum(s) FROM
    (SELECT l2, af, le, a1, gpu_count(*) AS n, gpu_sum(i) AS s FROM wk WHERE i > $1 GROUP BY 1, 2, 3, 4) g;
EXECUTE again (0);
EXECUTE again (5700);
EXECUTE again (6000);
-- several participants
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT count(*), bool_and(result LIKE 'same%') FROM answers('{0,2}');
SELECT count(*), bool_and(r LIKE 'same%') FROM first_groups() r;
-- rows in the order of their keys
SET enable_hashagg = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE wk_ordered AS SELECT * FROM wk ORDER BY l2, le, af, c1;
VACUUM (FREEZE, ANALYZE) wk_ordered;
SET gpuagg.cache = eager;
SELECT pg_temp.same(q), pg_temp.same(q)
    FROM (VALUES ('SELECT l2, le, af, c1, @count(*), @sum(i) FROM wk_ordered GROUP BY l2, le, af, c1')) AS v(q);
DROP TABLE wk, wk_ordered;
DROP FUNCTION answers, first_groups;
