-- Sums and averages of numerics of several display scales, of CASE and similar expressions, and of quotients. The
-- result of each group has the largest display scale of its values.
SET client_min_messages = warning;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include
SET max_parallel_workers_per_gather = 0;
SET gpuagg.engine = 'cpu';
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;

CREATE TABLE scale_sales (id int, k int, g text, n0 numeric(12, 0), n2 numeric(12, 2), n3 numeric(14, 3), wide numeric(38, 6), q int, z numeric(8, 1));
INSERT INTO scale_sales SELECT i, i % 7, chr(97 + i % 5), CASE WHEN i % 11 > 0 THEN i % 300 END, CASE WHEN i % 13 > 0 THEN (i * 37 % 10007) / 100.0 - 30 END, i * 7919 % 100003 / 1000.0,
    CASE WHEN i % 50 = 0 THEN 1e31 * (i % 9 - 4) ELSE i * 1.000001 END, i % 20 - 10, CASE WHEN i % 17 > 0 THEN (i % 97) / 10.0 END FROM generate_series(1, 3000) i;
INSERT INTO scale_sales VALUES (0, 100, 'x', 'NaN', 'NaN', 1, 1, 1, 1), (0, 101, 'x', 1, 1, 'NaN', 1, 1, 'NaN'), (0, 102, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, 103, 'y', 0, 0, 0, 0, 1, 0);
ANALYZE scale_sales;
SET gpuagg.require = 'require';

CREATE TABLE scale_numbers (x text);
INSERT INTO scale_numbers VALUES ('CASE WHEN k < 3 THEN 0 ELSE n2 * 1.25 END'), ('CASE WHEN q > 0 THEN n2 WHEN q < -5 THEN n3 END'), ('CASE WHEN q > 3 THEN n2 ELSE 0 END * n3'),
    ('CASE k WHEN 1 THEN n0 WHEN 2 THEN n2 WHEN 3 THEN n3 WHEN 4 THEN NULL ELSE 1.5 END'), ('CASE WHEN g = ''a'' THEN NULL WHEN g = ''b'' THEN -n3 ELSE abs(n2) + 1 END'),
    ('coalesce(n2, n0, 0.1234)'), ('coalesce(n2, 0)'), ('nullif(n3, n2)'), ('nullif(CASE WHEN q > 0 THEN n2 ELSE n0 END, 5)'), ('greatest(n2, n3, 0)'), ('least(n0, n2, 50.000)'),
    ('CASE WHEN q > 0 THEN n2 ELSE 0 END + CASE WHEN q > 3 THEN n3 ELSE 1 END'), ('CASE WHEN q > 0 THEN n2 ELSE 0 END - n3'), ('CASE WHEN q > 0 THEN n2 ELSE 0 END + 1.00001'),
    ('CASE WHEN q > 0 THEN CASE WHEN k > 3 THEN n0 ELSE n2 END ELSE coalesce(n3, 0) END'), ('n2 / (q + 100.0)'), ('n2 / (n3 + 1)'), ('n0 / nullif(q, 0)'), ('n2 / nullif(n3, 0) / 7.5'), ('n0 / 3 * n2'),
    ('CASE WHEN q <> 0 THEN n2 / q ELSE 0 END'), ('coalesce(n2 / nullif(z, 0), n0)'), ('n0 / 1000000007'), ('n0 / 3000000000000.0'), ('wide / 3'), ('wide * CASE WHEN q > 0 THEN 1.5 ELSE 2 END'),
    ('CASE WHEN q > 0 THEN wide ELSE n2 END'), ('wide * wide / 7.0'), ('n3 / (CASE WHEN q > 0 THEN 3 ELSE 0.70 END)'), ('(CASE WHEN q > 0 THEN n2 ELSE n0 END) / 7.00'), ('round(n2 / 7, 1 + 2)'),
    ('n2 / 7 * (n3 / 9)'), ('(n2 / 7)::numeric(12, 5) + CASE WHEN q > 0 THEN 1 ELSE 2.123456 END'), ('n2 * q / 1e10'), ('1e20 * n0 / 7'), ('n3 % CASE WHEN q > 0 THEN 3 ELSE 0.70 END');
CREATE TABLE scale_shapes (q text);
INSERT INTO scale_shapes SELECT replace(t, '$', '(' || x || ')') FROM scale_numbers, unnest(ARRAY[
    'SELECT @sum($), @avg($), @count($), @min($), @max($) FROM scale_sales',
    'SELECT k, @sum($), @avg($), @count($) FROM scale_sales GROUP BY k',
    'SELECT id % 900 AS i, @avg($), @sum($) FILTER (WHERE q > 2), @sum(n2), @count(*) FROM scale_sales GROUP BY 1',
    'SELECT g, @stddev($), @var_pop($), @sum(-$), @avg(($) * 2), @sum(scale($)), @bit_xor(hashtext(($)::text)) FROM scale_sales GROUP BY g',
    'SELECT k, @sum($) FROM scale_sales GROUP BY k HAVING @sum($) > 100.5 OR @avg($) < 1',
    'SELECT k, g, @sum($), grouping(k, g) FROM scale_sales GROUP BY GROUPING SETS ((k, g), (g), ())',
    'SELECT k, @sum(DISTINCT n0), @avg($) FROM scale_sales GROUP BY k',
    'SELECT @count(*), @sum(n2) FROM scale_sales WHERE $ > 1.5', 'SELECT @sum($) FROM scale_sales WHERE id < 0']) t;
SELECT agrees(q) AS verdict, count(*) FROM scale_shapes GROUP BY 1;
-- the largest scale of a group may come from one row, which a filter may remove
SELECT gpu_sum(CASE WHEN id = 2000 THEN n3 ELSE q END) AS one, gpu_sum(CASE WHEN id = 2000 THEN n3 ELSE q END) FILTER (WHERE id <> 2000) AS none,
    gpu_avg(CASE WHEN id = 2000 THEN n3 END) AS alone FROM scale_sales WHERE id > 0;
-- groups that are spilled
SET work_mem = '64kB';
SELECT agrees(replace(q, '% 900', '% 5000')) AS verdict, count(*) FROM scale_shapes WHERE q LIKE '%900%' GROUP BY 1;
RESET work_mem;
-- rows from the child plan
SET gpuagg.feed = 'tuples';
CREATE FUNCTION same_scale_rows(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text[] = '{}';
    line text;
BEGIN
    FOR i IN 1..2 LOOP
        PERFORM set_config('gpuagg.require', CASE i WHEN 1 THEN 'forbid' ELSE 'require' END, true);
        EXECUTE 'SELECT string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C") FROM (' || replace(q, '@', CASE i WHEN 1 THEN '' ELSE 'gpu_' END) || ') s' INTO line;
        answer[i] := coalesce(line, 'nothing');
    END LOOP;
    RETURN CASE WHEN answer[1] = answer[2] THEN 'ok' ELSE format(E'%s\n core: %s\n ours: %s', q, left(answer[1], 200), left(answer[2], 200)) END;
END $$;
SELECT same_scale_rows(q) AS verdict, count(*) FROM scale_shapes GROUP BY 1;
RESET gpuagg.feed;
SELECT same_scale_rows(replace(q, 'FROM scale_sales', 'FROM scale_sales JOIN (SELECT generate_series(1, 3000, 7) AS other) o ON o.other = id')) AS verdict, count(*) FROM scale_shapes WHERE q LIKE 'SELECT k, @sum($)%' OR q LIKE '%stddev%' GROUP BY 1;
-- states that participants export
SET max_parallel_workers_per_gather = 2;
SELECT same_scale_rows(q) AS verdict, count(*) FROM scale_shapes WHERE q NOT LIKE '%DISTINCT%' AND q NOT LIKE '%max%' AND length(q) % 3 = 0 GROUP BY 1;
SET parallel_leader_participation = off;
SELECT same_scale_rows(q) AS verdict, count(*) FROM scale_shapes WHERE q LIKE '%900%' GROUP BY 1;
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 0;
-- partitions with other orders of columns; expressions without a column; parameters
CREATE TABLE scale_parts (k int, n2 numeric(9, 2), n3 numeric(9, 3)) PARTITION BY RANGE (k);
CREATE TABLE scale_part1 PARTITION OF scale_parts FOR VALUES FROM (0) TO (100);
CREATE TABLE scale_part2 (n3 numeric(9, 3), k int, n2 numeric(9, 2));
ALTER TABLE scale_parts ATTACH PARTITION scale_part2 FOR VALUES FROM (100) TO (200);
INSERT INTO scale_parts SELECT i % 200, i / 7.0, i / 9.0 FROM generate_series(1, 3000) i;
SELECT agrees('SELECT k % 9, @sum(CASE WHEN k > 100 THEN n2 ELSE n3 END), @avg(n3 / (k + 1)), @sum(coalesce(n2, 0)) FROM scale_parts GROUP BY 1');
PREPARE choice(int) AS SELECT gpu_sum(CASE WHEN $1 > 1 THEN 1.5 ELSE 2.250 END), gpu_avg(CASE WHEN $1 > k THEN 1.5 ELSE 2.250 END), gpu_sum(CASE WHEN $1 = 0 THEN 'NaN' ELSE 1.5 END) FROM scale_sales WHERE k < 3;
SET plan_cache_mode = 'force_generic_plan';
EXECUTE choice(0);
EXECUTE choice(1);
EXECUTE choice(2);
PREPARE choice_of_core(int) AS SELECT sum(CASE WHEN $1 > 1 THEN 1.5 ELSE 2.250 END), avg(CASE WHEN $1 > k THEN 1.5 ELSE 2.250 END), sum(CASE WHEN $1 = 0 THEN 'NaN' ELSE 1.5 END) FROM scale_sales WHERE k < 3;
SET gpuagg.require = 'forbid';
EXECUTE choice_of_core(0);
EXECUTE choice_of_core(1);
EXECUTE choice_of_core(2);
SET gpuagg.require = 'require';
RESET plan_cache_mode;
-- partial states for foreign servers
SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('sum(numeric)', CASE WHEN k < 3 THEN 0 ELSE n2 * 1.25 END)), 'sum(numeric)', NULL::numeric) AS sum,
    gpuagg_finish(gpuagg_merge(gpuagg_pack('avg(numeric)', n2 / 7)), 'avg(numeric)', NULL::numeric) AS avg FROM scale_sales WHERE k < 7;
SELECT sum(CASE WHEN k < 3 THEN 0 ELSE n2 * 1.25 END), avg(n2 / 7) FROM scale_sales WHERE k < 7;
-- errors are raised only for rows for which core divides
SELECT gpu_sum(n2 / z) FROM scale_sales;
SELECT gpu_sum(n2 / z) = sum(n2 / z) AS same FROM scale_sales WHERE z <> 0 AND k < 100;
SELECT gpu_sum(CASE WHEN k = 3 THEN n2 / (k - 2) ELSE 0 END) = sum(CASE WHEN k = 3 THEN n2 / (k - 2) ELSE 0 END) AS same FROM scale_sales WHERE k < 100;
DROP TABLE scale_sales, scale_numbers, scale_shapes, scale_parts;
DROP FUNCTION agrees, same_scale_rows;
