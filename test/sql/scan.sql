--
-- The custom scan over every kind of child plan.  same() runs a query twice, with
-- core's aggregates and with gpu_* aggregates by the custom scan alone, and compares.
--
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
    differ bigint;
BEGIN
    DROP TABLE IF EXISTS pg_temp.by_core, pg_temp.by_scan;
    SET LOCAL gpuagg.require = 'forbid';
    EXECUTE 'CREATE TEMP TABLE by_core AS ' || replace(query, '@', '');
    SET LOCAL gpuagg.require = 'require';
    EXECUTE 'CREATE TEMP TABLE by_scan AS ' || replace(query, '@', 'gpu_');
    SET LOCAL gpuagg.require = 'allow';
    SELECT count(*) INTO n FROM by_core;
    SELECT count(*) INTO differ FROM
        ((TABLE by_core EXCEPT ALL TABLE by_scan) UNION ALL (TABLE by_scan EXCEPT ALL TABLE by_core)) d;
    RETURN CASE differ WHEN 0 THEN 'same' ELSE 'DIFFERENT' END || ', ' || n || ' rows';
END $$;
CREATE TABLE s (id int PRIMARY KEY, a int, b bigint, f float8, n numeric(12,2), t text, d date);
INSERT INTO s SELECT i, nullif(i % 7, 3), i * 1000000007::bigint, i * 0.5, i / 100.0, 'k' || i % 11, date '2024-01-01' + i % 40
    FROM generate_series(1, 5000) i;
ANALYZE s;

-- keys: none, one, several, NULL, expressions, columns that depend on the key
SELECT same('SELECT @count(*) c, @sum(a) s FROM s');
SELECT same('SELECT @count(*) c, @sum(a) s FROM s WHERE false');
SELECT same('SELECT a, @count(*) c FROM s WHERE false GROUP BY a');
SELECT same('SELECT a, @count(*) c, @count(a) ca, @sum(b) s FROM s GROUP BY a');
SELECT same('SELECT a, t, d, @count(*) c, @avg(n) n, @min(t) m FROM s GROUP BY a, t, d');
SELECT same('SELECT a + 1 AS x, t || a AS y, @max(f) m FROM s GROUP BY a + 1, t || a');
SELECT same('SELECT (a + 1) * 2 AS x, @max(f) * 2 + @min(f) AS y FROM s GROUP BY a + 1');
SELECT same('SELECT id, t, f, @count(*) c FROM s WHERE id < 100 GROUP BY id');
SELECT same('SELECT a = 3 AS x, a, @count(*) c FROM s WHERE a = 4 GROUP BY a = 3, a');
SELECT same('SELECT ''x''::text AS k, @count(*) c FROM s GROUP BY 1');
SELECT same('SELECT ''x''::text AS k, @count(*) c FROM s WHERE id < 0 GROUP BY 1');
SELECT same('SELECT a, t, @count(*) c FROM s WHERE a = 4 AND t = ''none'' GROUP BY a, t');
-- WHERE, HAVING, FILTER; a filter prevents errors of its argument
SELECT same('SELECT t, @sum(a) FILTER (WHERE f > 100) x, @sum(a) y FROM s WHERE b % 3 = 0 GROUP BY t');
SELECT same('SELECT t, @count(*) c FROM s GROUP BY t HAVING @max(f) > 2497 AND t <> ''k4''');
SELECT same('SELECT @count(*) c FROM s HAVING @count(*) > 1000000');
SELECT same('SELECT t, @sum(100 / a) FILTER (WHERE a <> 0) x FROM s GROUP BY t');
SELECT gpu_sum(100 / a) FROM s;
-- constants and parameters as arguments
SELECT same('SELECT t, @sum(1) x, @sum(2.50) y, @count(NULL) z, @min(''c''::text) m, @max(NULL::int) o FROM s GROUP BY t');
PREPARE p(int, numeric) AS SELECT gpu_count(*), gpu_sum(a + $1), gpu_sum($2), gpu_max($1) FROM s WHERE id > $1;
SET gpuagg.require = 'require';
SET plan_cache_mode = force_generic_plan;
EXECUTE p(1, 2.5);
EXECUTE p(4000, 'NaN');
EXECUTE p(5000, NULL);
EXECUTE p(NULL, 1);
RESET plan_cache_mode;
RESET gpuagg.require;
-- joins, subqueries, CTEs, VALUES, functions, partitions, set operations, views
SELECT same('SELECT x.t, @sum(y.b) s, @count(y.id) c FROM s x LEFT JOIN s y ON x.id = y.id * 2 GROUP BY x.t');
SELECT same('SELECT m, @count(*) c FROM (SELECT a, max(b) m FROM s GROUP BY a) q GROUP BY m');
SELECT same('WITH q AS MATERIALIZED (SELECT * FROM s WHERE a = 1) SELECT t, @sum(f) f FROM q GROUP BY t');
SELECT same('SELECT k, @sum(v) s FROM (VALUES (1, 2.5), (1, 3.5), (NULL, 1)) q(k, v) GROUP BY k');
SELECT same('SELECT i % 3 AS k, @sum(i) s FROM generate_series(1, 100) i GROUP BY 1');
SELECT same('SELECT u, @count(*) c FROM s, unnest(ARRAY[a, a + 1]) u GROUP BY u');
SELECT same('SELECT k, @count(*) c FROM (SELECT a k FROM s UNION ALL SELECT id % 5 FROM s) q GROUP BY k');
CREATE TABLE sp (LIKE s) PARTITION BY RANGE (id);
CREATE TABLE sp1 PARTITION OF sp FOR VALUES FROM (0) TO (2000);
CREATE TABLE sp2 PARTITION OF sp DEFAULT;
INSERT INTO sp TABLE s;
ANALYZE sp;
SELECT same('SELECT a, @avg(f) f FROM sp GROUP BY a');
SET enable_partitionwise_aggregate = on;
SELECT same('SELECT a, @avg(f) f FROM sp GROUP BY a');
RESET enable_partitionwise_aggregate;
CREATE VIEW sv AS SELECT t, gpu_sum(a) AS sum FROM s GROUP BY t;
SELECT same('SELECT t, sum FROM sv WHERE t > ''k4''') = 'same, 5 rows' AS view;
-- sorts, LIMIT, DISTINCT, window functions and set-returning functions above the scan
SELECT same('SELECT t, @sum(a) s FROM s GROUP BY t ORDER BY s DESC, t LIMIT 3');
SELECT same('SELECT DISTINCT @count(*) c FROM s GROUP BY a');
SELECT same('SELECT t, @sum(a) s, rank() OVER (ORDER BY @sum(a), t) r FROM s GROUP BY t');
SELECT same('SELECT a, generate_series(1, @count(*) % 3) g FROM s GROUP BY a');
-- sublinks in arguments, filters, HAVING and above the scan
SELECT same('SELECT t, @sum((SELECT max(a) FROM s y WHERE y.id = x.id)) m FROM s x WHERE id < 200 GROUP BY t');
SELECT same('SELECT t, @count(*) FILTER (WHERE a IN (SELECT id FROM s WHERE id < 3)) c FROM s GROUP BY t');
SELECT same('SELECT t, @count(*) c FROM s GROUP BY t HAVING @count(*) > (SELECT 454)');
SELECT same('SELECT t, @sum(a) - (SELECT sum(a) FROM s) x FROM s GROUP BY t');
SELECT same('SELECT t, @sum(a + (SELECT 1)) x, @sum((SELECT 2)) y FROM s GROUP BY t');
-- an aggregate of an outer query
SELECT same('SELECT a, (SELECT @sum(s.b) FROM (SELECT 1) q) x FROM s GROUP BY a');

-- INSERT, UPDATE and other statements
SET gpuagg.require = 'require';
CREATE TABLE target AS SELECT t, gpu_sum(b) AS sum FROM s GROUP BY t;
INSERT INTO target SELECT 'all', gpu_sum(b) FROM s;
UPDATE target SET sum = q.c FROM (SELECT t, gpu_count(*) AS c FROM s GROUP BY t) q WHERE q.t = target.t;
SELECT t, sum FROM target ORDER BY t COLLATE "C" LIMIT 4;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT t, gpu_sum(a) FROM s GROUP BY t ORDER BY t COLLATE "C";
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
MOVE 5 IN c;
FETCH 1 FROM c;
DECLARE d NO SCROLL CURSOR FOR SELECT gpu_count(*) FROM s;
FETCH ALL FROM d;
ROLLBACK;
-- row security filters below the scan
CREATE ROLE regress_gpuagg_reader;
GRANT SELECT ON s TO regress_gpuagg_reader;
ALTER TABLE s ENABLE ROW LEVEL SECURITY;
CREATE POLICY first_ten ON s TO regress_gpuagg_reader USING (id <= 10);
SET ROLE regress_gpuagg_reader;
SELECT gpu_count(*), gpu_max(id) FROM s;
RESET ROLE;
ALTER TABLE s DISABLE ROW LEVEL SECURITY;
DROP POLICY first_ten ON s;
REVOKE ALL ON s FROM regress_gpuagg_reader;
DROP ROLE regress_gpuagg_reader;

-- other forms of queries are left to core, and gpuagg.require reports the reason
SELECT gpu_count(DISTINCT a::numeric::money) FROM s;
SELECT 1 AS one, gpu_count(*) FROM s GROUP BY ROLLUP (one);
SELECT gpu_count(*) OVER () FROM s;
SELECT gpu_sum(a + (random() * 0)::int) FROM s;
SELECT gpu_count(*), string_agg(t, ',' ORDER BY t) = (SELECT array_to_string(array_agg(t), ',') FROM (SELECT t FROM s ORDER BY t) x) AS same FROM s;
SELECT gpu_count(*) FROM s GROUP BY id::bit(8)::varbit;
RESET gpuagg.require;
SELECT gpu_count(DISTINCT a::numeric::money), gpu_sum(a + (random() * 0)::int) FROM s;

DROP VIEW sv;
DROP TABLE target, sp, s;
DROP FUNCTION same;

-- Strings of every short length that differ in one byte, or by a zero byte at their ends.
CREATE TABLE strings AS
SELECT overlay(repeat('a', len) PLACING 'b' FROM at FOR 1) AS t, overlay(repeat('a', len) PLACING ' ' FROM at FOR 1)::char(40) AS c,
    decode(overlay(repeat('00', len) PLACING '01' FROM at * 2 - 1 FOR 2), 'hex') AS b
FROM generate_series(1, 35) len, generate_series(1, len + 1) at, generate_series(1, 2);
INSERT INTO strings VALUES ('', '', ''), (repeat('x', 3000), repeat('x', 40), decode(repeat('00', 3000), 'hex')), (NULL, NULL, NULL);
CREATE FUNCTION same_groups(key text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    ours text;
    core text;
BEGIN
    SET LOCAL gpuagg.require = 'require';
    EXECUTE format('SELECT md5(string_agg(s::text, '','' ORDER BY s::text COLLATE "C")) FROM (SELECT %1$s, gpu_count(*) FROM strings GROUP BY %1$s) s', key) INTO ours;
    SET LOCAL gpuagg.require = 'forbid';
    EXECUTE format('SELECT md5(string_agg(s::text, '','' ORDER BY s::text COLLATE "C")) FROM (SELECT %1$s, count(*) FROM strings GROUP BY %1$s) s', key) INTO core;
    RETURN ours = core;
END $$;
SELECT key, same_groups(key) FROM unnest(ARRAY['t', 'c', 'b', 't, b', 't COLLATE "C"']) key;
DROP FUNCTION same_groups;
DROP TABLE strings;
