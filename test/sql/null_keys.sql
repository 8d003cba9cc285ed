--
-- Integer keys with and without NULLs, which a GPU gets packed together: NULLs in the first row, in the last rows, in
-- one participant's rows only; widths that leave a byte for NULLs, and
-- widths that do not.
--
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

-- 9,000 rows; columns with an n have NULLs in the last 10 rows, columns with an f in the first 10
CREATE TABLE nk AS SELECT i, (i % 7)::int2 AS s, i % 11 AS a, i % 13 - 5 AS b, i % 3 AS c, i % 2 AS d, i % 5 AS e,
    (i % 17) * 10000000000 AS l, i::int8 % 19 AS m,
    CASE WHEN i <= 8990 THEN i % 11 END AS an, CASE WHEN i <= 8990 THEN i % 4000 * 7919 END AS hn,
    CASE WHEN i <= 8990 THEN (i % 17) * 10000000000 END AS ln, CASE WHEN i > 10 THEN i % 11 END AS af,
    CASE WHEN i > 10 THEN i % 4000 * 7919 END AS hf, CASE WHEN i <= 8990 THEN i % 3 END AS cn
    FROM generate_series(1, 9000) i ORDER BY i;
ANALYZE nk;

CREATE FUNCTION answers(which text DEFAULT '') RETURNS TABLE (keys text, result text) LANGUAGE sql AS $$
    SELECT keys, pg_temp.same('SELECT ' || keys || ', @count(*), @sum(i), @max(i) FROM nk GROUP BY ' || keys)
    FROM (VALUES
        -- up to 4 bytes, and more with NULLs
        ('a'), ('an'), ('af'), ('hn'), ('hf'), ('s, s + 1::int2'),
        -- 8
        ('l'), ('ln'), ('a, b'), ('an, b'), ('hn, a'), ('hf, an'), ('s, a, s - 1::int2'),
        -- 16
        ('l, m'), ('ln, m'), ('a, b, c, d'), ('an, b, c, d'), ('af, b, c, d'), ('an, af, c, cn'), ('l, a, b'), ('ln, hn, af'),
        -- 18 to 20
        ('l, m, a'), ('ln, m, an'), ('a, b, c, d, e'), ('s, l, m, an')
    ) AS k(keys)
    WHERE keys ~ which
$$;
SELECT * FROM answers();

-- without count(*), without aggregates, with a filter
SELECT pg_temp.same('SELECT an, @sum(i), @count(af) FROM nk GROUP BY an'),
    pg_temp.same('SELECT an, cn, @count(*) FILTER (WHERE i % 2 = 0) FROM nk GROUP BY an, cn'),
    pg_temp.same('SELECT an, @count(*), @count(*) FILTER (WHERE i > 8900), @avg(hn) FROM nk GROUP BY an');
-- in order
SELECT keys, pg_temp.answer(query, 'require', false) = pg_temp.answer(query, 'forbid', false) AS same
    FROM (VALUES ('an'), ('l, m'), ('ln, m'), ('a, b, c, d'), ('an, b, c, d')) AS k(keys),
        format('SELECT %s, gpu_max_subarray_sum(m - 9 ORDER BY i) FROM nk GROUP BY %1$s', keys) AS query;
-- in small batches, and rescanned
SET gpuagg.batch_rows = 1024;
SELECT count(*), bool_and(result LIKE 'same%') FROM answers();
SET gpuagg.require = 'require';
PREPARE again (int) AS SELECT count(*), sum(n), sum(s) FROM
    (SELECT an, b, c, d, gpu_count(*) AS n, gpu_sum(i) AS s FROM nk WHERE i > $1 GROUP BY an, b, c, d) g;
EXECUTE again (0);
EXECUTE again (8985);
-- several participants, of which some see NULLs and others do not
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT count(*), bool_and(result LIKE 'same%') FROM answers('an|f');
DROP TABLE nk;
DROP FUNCTION answers;

-- NULL among new values of a cached column: each group shows its own key
CREATE TABLE null_texts AS SELECT nullif('n' || i % 60, 'n9') AS t, i AS v FROM generate_series(1, 6000) i;
VACUUM (FREEZE, ANALYZE) null_texts;
SET gpuagg.cache = eager;
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM (SELECT t, gpu_count(*) FROM null_texts GROUP BY t) s;
SELECT t, gpu_count(*), gpu_sum(v), gpu_min(v) FROM null_texts GROUP BY t HAVING gpu_min(v) BETWEEN 7 AND 11 ORDER BY 4;
RESET gpuagg.cache;
RESET max_parallel_workers_per_gather;
DROP TABLE null_texts;
