-- Initplans, parameters and functions of constants in branches: they are evaluated only for the rows for which core
-- evaluates them, and so are their errors.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/differs.sql'
\i :include
SET gpuagg.engine = cpu;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;

CREATE TABLE lazy AS SELECT i AS id, i % 10 AS a, CASE WHEN i % 7 > 0 THEN i % 4 END AS y, i % 3 = 0 AS b, 'x' || i AS x FROM generate_series(1, 2000) i;
CREATE TABLE lazy_parts (id int, a int, y int, b bool, x text) PARTITION BY RANGE (id);
CREATE TABLE lazy_parts1 PARTITION OF lazy_parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE lazy_parts2 PARTITION OF lazy_parts FOR VALUES FROM (1000) TO (3000);
INSERT INTO lazy_parts SELECT * FROM lazy;
CREATE TABLE two AS SELECT i AS v FROM generate_series(1, 2) i;
CREATE TABLE zero AS SELECT 0 AS v;
CREATE TABLE none (v int, a int);
ANALYZE;
-- counts its calls
CREATE FUNCTION counted(int) RETURNS int LANGUAGE plpgsql STABLE COST 1 AS $$
BEGIN
    PERFORM set_config('lazy.calls', (current_setting('lazy.calls')::int + 1)::text, false);
    RETURN $1;
END $$;
SET lazy.calls = 0;

-- $s fails if it is executed
CREATE TABLE failing AS SELECT * FROM unnest(ARRAY['(SELECT v FROM two)', '(SELECT 1 / v FROM zero)', '((SELECT 1 / v FROM zero) + 1)', '(1 / current_setting(''lazy.zero'')::int)',
    'current_setting(''lazy.nope'')::int', '(1 / ((SELECT v FROM zero) + 0))']) s;
SET lazy.zero = 0;
CREATE TABLE lazy_queries AS SELECT * FROM unnest(ARRAY[
    'SELECT @sum(CASE WHEN a > 1000000 THEN $s ELSE a END) FROM $t', 'SELECT @sum(CASE WHEN a > 8 THEN $s ELSE a END) FROM $t',
    'SELECT a, @sum(CASE y WHEN 10 THEN $s WHEN 11 THEN $s + 1 ELSE a END) FROM $t GROUP BY a', 'SELECT CASE WHEN a < 100 THEN a ELSE $s END, @count(*) FROM $t GROUP BY 1',
    'SELECT @sum(coalesce(a, $s)) FROM $t', 'SELECT @sum(coalesce(y, $s)) FROM $t', 'SELECT @count(*) FROM $t WHERE a >= 0 OR a = $s', 'SELECT @count(*) FROM $t WHERE a > 0 OR a = $s',
    'SELECT @count(*) FROM $t WHERE a < 0 AND a = $s', 'SELECT @count(*) FROM $t WHERE a < 1 AND b AND a = $s', 'SELECT @count(*) FROM $t WHERE NOT (a < 0 AND a = $s)',
    'SELECT @sum(a) FILTER (WHERE a > 100 AND a > $s) FROM $t', 'SELECT @sum($s) FILTER (WHERE a > 100) FROM $t', 'SELECT @sum(a + $s) FILTER (WHERE a > 100), @count(*) FROM $t',
    'SELECT @sum($s) FILTER (WHERE a > 8) FROM $t', 'SELECT @corr($s, a) FILTER (WHERE a > 100) FROM $t', 'SELECT @sum($s) FROM $t WHERE a > 100', 'SELECT $s, @count(*) FROM $t WHERE a > 100 GROUP BY 1',
    'SELECT @sum($s) FROM none', 'SELECT @sum(v + $s), @count(*) FROM none', 'SELECT @count(*) FROM none WHERE v > $s', 'SELECT @sum(a + $s) FROM $t',
    'SELECT @count(*) FROM $t WHERE a > 100 AND (a + $s) > 0', 'SELECT @count(*) FROM $t WHERE (b OR b IS NOT NULL) IS TRUE OR $s > 0', 'SELECT @sum(CASE WHEN a = 9 AND y IS NULL AND id > 5000 THEN $s END) FROM $t',
    'SELECT @sum(nullif(a, CASE WHEN a < 0 THEN $s END)) FROM $t', 'SELECT @sum(greatest(a, CASE WHEN a < 0 THEN $s END)) FROM $t', 'SELECT @sum(a::numeric(10,2) + CASE WHEN a < 0 THEN $s::numeric(10,2) ELSE 0.00 END) FROM $t',
    'SELECT @sum(CASE WHEN a IN (1, 2, 3) OR a > 3 OR a = 0 THEN 1 ELSE $s END) FROM $t',
    'SELECT @count(*) FROM $t WHERE x LIKE ''%z%'' AND a > $s', 'SELECT @count(*) FROM $t WHERE greatest(a, $s) < 0 AND x = ''z''',
    'SELECT a, @count(*) FROM $t GROUP BY a HAVING @sum(id) < 0 AND @count(*) > $s', 'SELECT a, @count(*) FROM $t GROUP BY a HAVING @count(*) > $s AND @sum(id) < 0',
    'SELECT a, @count(*) FROM $t GROUP BY a HAVING @max(x) > ''zzz'' AND @count(*) > $s', 'SELECT a, @count(*) FROM $t GROUP BY a HAVING @max(x) > ''zzz'' AND @sum(id) > 5 AND @count(*) > $s ORDER BY 2, 1 LIMIT 2',
    'SELECT a, @count(*) FROM $t GROUP BY a HAVING @count(*) < 0 AND @min(a) = $s AND @max(a) = $s', 'SELECT a, @count(*) FROM $t GROUP BY a HAVING @sum(a) FILTER (WHERE a > 100) > 0 AND @count(*) > $s',
    'SELECT a, @count(*) FROM $t GROUP BY a HAVING @min(y) > 2.5 AND @count(*) > $s', 'SELECT a, @count(*) FROM $t GROUP BY a HAVING @count(*) > $s', 'SELECT a FROM $t WHERE a > 100 GROUP BY a HAVING @count(*) > $s',
    'SELECT @count(*) FROM $t HAVING @count(*) < 0 AND @sum(a) > $s', 'SELECT a, y, @count(*) FROM $t GROUP BY ROLLUP(a, y) HAVING @count(*) < 0 AND @sum(a) > $s', 'SELECT a, @count(DISTINCT y) FROM $t GROUP BY a HAVING @count(*) < 0 AND @sum(a) > $s',
    'SELECT a, @count(*) FROM $t GROUP BY a ORDER BY 2, 1 LIMIT $s', 'SELECT a, @count(*) FROM $t WHERE a > 100 GROUP BY a ORDER BY 2, 1 LIMIT $s OFFSET $s', 'SELECT a, @count(*) FROM $t GROUP BY a HAVING @count(*) < 0 ORDER BY 2, 1 LIMIT $s',
    'SELECT gpu_histogram(v, 0, $s, 4) FROM none', 'SELECT gpu_histogram(id, 0, $s, 4) FROM $t WHERE a > 100', 'SELECT gpu_histogram(id, 0, $s, 4) FILTER (WHERE a > 100) FROM $t', 'SELECT gpu_histogram(id, ARRAY[0.0, $s]::float8[]) FROM $t WHERE a > 100',
    'SELECT a, @percentile_disc(1.0 / nullif($s, 0)) WITHIN GROUP (ORDER BY id) FROM $t WHERE a > 100 GROUP BY a', 'SELECT @percentile_disc(1.0 / nullif($s, 0)) WITHIN GROUP (ORDER BY id) FROM $t WHERE a > 100']) q;
SELECT pg_temp.differs(q) FROM (SELECT replace(replace(l.q, '$s', s), '$t', t) q FROM lazy_queries l, failing, unnest('{lazy,lazy_parts}'::text[]) t) x WHERE pg_temp.differs(q) IS NOT NULL;
-- also if the initplan has a value, needed at the first row or later, or is NULL
SELECT pg_temp.differs(q) FROM (SELECT replace(replace(l.q, '$s', s), '$t', t) q FROM lazy_queries l, unnest('{(SELECT max(v) FROM two),(SELECT v FROM none)}'::text[]) s,
    unnest('{lazy,lazy_parts}'::text[]) t) x WHERE pg_temp.differs(q) IS NOT NULL;
-- the number of these queries, and how many of them fail in core
SELECT count(*), count(*) FILTER (WHERE pg_temp.result_of(replace(replace(l.q, '$s', s), '$t', 'lazy'), '', 'forbid') ~ '^22|^21|^42') FROM lazy_queries l, failing;

-- how often it is executed: never, once
SET gpuagg.require = require;
SELECT gpu_sum(CASE WHEN a > 100 THEN (SELECT counted(1) FROM zero) ELSE a END) FROM lazy;
SELECT gpu_sum(CASE WHEN a > 100 THEN counted(1) ELSE a END) FROM lazy;
SELECT gpu_count(*) FROM lazy WHERE a > 100 AND id > counted(5);
SHOW lazy.calls;
SELECT gpu_sum(CASE WHEN a > 8 THEN (SELECT counted(1) FROM zero) ELSE a END), gpu_count(*) FILTER (WHERE id > 1500 AND a > (SELECT counted(2) FROM zero)) FROM lazy;
SHOW lazy.calls;

-- conditions of HAVING in the order of their costs
CREATE FUNCTION called(bigint) RETURNS bool LANGUAGE plpgsql STABLE COST 100 AS $$
BEGIN
    PERFORM set_config('lazy.calls', (current_setting('lazy.calls')::int + 1)::text, false);
    RETURN true;
END $$;
SET lazy.calls = 0;
SELECT a FROM lazy GROUP BY a HAVING called(gpu_sum(id)) AND gpu_max(x) > 'zzz';
SELECT a FROM lazy GROUP BY a HAVING called(gpu_sum(id)) AND gpu_max(id) > 100000;
SHOW lazy.calls;
SELECT a FROM lazy GROUP BY a HAVING called(gpu_sum(id)) AND gpu_max(id) > 1999 AND gpu_max(x) > 'x';
SHOW lazy.calls;
-- a cheap condition that may fail is evaluated before a dear one that would remove the group
SELECT a FROM lazy GROUP BY a HAVING gpu_count(*) > (SELECT 1 / v FROM zero) AND gpu_sum(id) < 0;
-- an initplan in HAVING is executed when the first group needs it
SET lazy.calls = 0;
SELECT a FROM lazy GROUP BY a HAVING gpu_sum(id) < 0 AND gpu_count(*) > (SELECT counted(1) FROM zero) ORDER BY a LIMIT 3;
SHOW lazy.calls;
SELECT a FROM lazy GROUP BY a HAVING gpu_sum(id) > 0 AND gpu_count(*) > (SELECT counted(1) FROM zero) ORDER BY gpu_max(id) LIMIT 3;
SHOW lazy.calls;
SELECT a FROM lazy GROUP BY a HAVING gpu_count(*) > (SELECT counted(1) FROM zero) AND gpu_max(x) > 'x' ORDER BY gpu_count(*), a LIMIT 3;
SHOW lazy.calls;

-- rescans: with the changed parameter, and executed only by some of them
SELECT g, (SELECT gpu_sum(CASE WHEN l.a > 12 - g THEN (SELECT 10 / (g - 5) FROM zero) ELSE l.a END) FROM lazy l) FROM generate_series(1, 4) g;
SELECT g, (SELECT gpu_sum(CASE WHEN l.a > 12 - g THEN (SELECT 10 / (g - 5) FROM zero) ELSE l.a END) FROM lazy l) FROM generate_series(1, 2) g;
SELECT g, (SELECT gpu_sum(CASE WHEN l.a > g THEN 10 / (g - 5) ELSE l.a END) FROM lazy l) FROM generate_series(6, 12) g;
SELECT g, (SELECT gpu_sum(CASE WHEN l.a > g THEN 10 / (g - 20) ELSE l.a END) FROM lazy l WHERE l.a < g + (SELECT max(v) FROM two)) FROM generate_series(18, 20) g;

-- generic plans and variables of PL/pgSQL
SET plan_cache_mode = force_generic_plan;
PREPARE lazy_query(int) AS SELECT gpu_sum(CASE WHEN a > 100 THEN a / $1 ELSE a END), gpu_count(*) FILTER (WHERE a > 100 AND 1 / $1 > 0) FROM lazy;
EXECUTE lazy_query(0);
EXECUTE lazy_query(1);
PREPARE lazy_order(int) AS SELECT gpu_count(*) FROM lazy WHERE x LIKE '%z%' AND a > 1 / $1;
EXECUTE lazy_order(0);
PREPARE lazy_constant(int) AS SELECT gpu_sum(CASE WHEN a > 8 THEN 1 / $1 ELSE a END) FROM lazy;
EXECUTE lazy_constant(1);
EXECUTE lazy_constant(0);
DO $$
DECLARE
    z int := 0;
    r record;
BEGIN
    SELECT gpu_sum(CASE WHEN a > 100 THEN 1 / z ELSE a END), gpu_count(*) FILTER (WHERE a > 100 OR a < z) INTO r FROM lazy;
    RAISE NOTICE '%', r;
END $$;

DROP TABLE lazy, lazy_parts, two, zero, none, failing, lazy_queries;
DROP FUNCTION counted, called;
