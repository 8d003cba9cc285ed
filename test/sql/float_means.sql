-- avg() of floats keeps no sum of squares. Core's squares may overflow, and then core raises an error.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET extra_float_digits = 1;
SET gpuagg.engine = 'cpu';

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/agrees.sql'
\i :include

-- the same error as core, or the same answer to the last digit
CREATE FUNCTION same(list text, rest text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text[] := '{}';
    answer text;
BEGIN
    FOREACH answer IN ARRAY ARRAY['core', 'gpuagg'] LOOP
        PERFORM set_config('gpuagg.require', CASE WHEN answer = 'core' THEN 'forbid' ELSE 'require' END, true);
        BEGIN
            EXECUTE format('SELECT string_agg(r::text, '' '' ORDER BY r::text) FROM (SELECT %s %s) r', replace(list, '@', CASE WHEN answer = 'core' THEN '' ELSE 'gpu_' END), rest) INTO answer;
        EXCEPTION WHEN numeric_value_out_of_range THEN
            answer := SQLERRM;
        END;
        answers := answers || coalesce(answer, 'null');
    END LOOP;
    PERFORM set_config('gpuagg.require', 'allow', true);
    RETURN CASE WHEN answers[1] = answers[2] THEN 'same: ' || left(answers[1], 60) ELSE 'core ' || answers[1] || ', gpuagg ' || answers[2] END;
END $$;

CREATE TABLE means (id int, g int, x float8, r float4);
INSERT INTO means SELECT i, i % 3, i / 7.0, i / 3.0 FROM generate_series(1, 10000) i;
SELECT same('g, @avg(x), @avg(r), @count(x)', 'FROM means GROUP BY g');
SELECT same('@avg(x)', 'FROM means');
-- together with aggregates that need the squares
SELECT same('g, @avg(x), @stddev(x), @avg(r)', 'FROM means GROUP BY g');
SELECT same('g, @stddev(x), @avg(x)', 'FROM means WHERE id > 20000 GROUP BY g');
-- NaN and infinities, early and late
INSERT INTO means VALUES (20001, 0, 'NaN', 'NaN'), (20002, 1, 'Infinity', '-Infinity'), (20003, 2, NULL, NULL);
SELECT same('g, @avg(x), @avg(r)', 'FROM means GROUP BY g');
SELECT same('g, @avg(x)', 'FROM (SELECT * FROM means ORDER BY id DESC OFFSET 0) m GROUP BY g');
DELETE FROM means WHERE id > 20000;
-- squares overflow and the sum does not, in the first and in a later batch
INSERT INTO means VALUES (20001, 0, 1e160, 0), (20002, 0, -1e160, 0);
SELECT same('g, @avg(x)', 'FROM means WHERE id > 20000 GROUP BY g');
SELECT same('g, @avg(x)', 'FROM means GROUP BY g');
SELECT same('@avg(x)', 'FROM means WHERE g = 0');
SELECT same('g, @avg(x)', 'FROM means WHERE id <> 20002 GROUP BY g');
UPDATE means SET x = sign(x) * 1e100 WHERE id > 20000;
SELECT same('g, @avg(x)', 'FROM means GROUP BY g');
UPDATE means SET x = 1e308 WHERE id > 20000;
SELECT same('g, @avg(x)', 'FROM means GROUP BY g');
DELETE FROM means WHERE id > 20000;
-- spilled, in small batches, and in parallel, where sums differ in their last digits
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT agrees('SELECT id % 5000, @avg(x)::numeric(20,6), @count(*) FROM means GROUP BY 1');
SET gpuagg.batch_rows = 64;
SELECT same('g, @avg(x), @avg(r)', 'FROM means GROUP BY g');
RESET work_mem;
RESET gpuagg.batch_rows;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT agrees('SELECT g, @avg(x)::numeric(20,6), @avg(r)::numeric(20,3) FROM means GROUP BY g');
INSERT INTO means VALUES (20001, 0, 1e160, 0), (20002, 0, -1e160, 0);
SELECT same('@avg(x)', 'FROM means WHERE g = 0');

DROP TABLE means;
DROP FUNCTION same, agrees;
