-- The plans that are chosen at default costs, for queries of many shapes: the custom scan or not, and what it, or
-- core's aggregate, reads. test/bench/shapes.sh compares times.
SET client_min_messages = warning;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '16MB';

-- the aggregation, its sorts, and the scans, from top to bottom
CREATE FUNCTION shape(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    shape text;
    ours boolean := false;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        line := regexp_replace(line, '^ *(->  )?', '');
        ours := ours OR line ~ 'Custom Scan';
        IF line ~ '^(Custom Scan|Gather|Parallel|Seq Scan|Index.* Scan|Bitmap Heap Scan)' OR ours AND line ~ '^Sort Key' THEN
            shape := concat_ws(' > ', shape, regexp_replace(line, ' on \w+(?: \w+)?| using \w+|Custom Scan \((\w+)\)', '\1', 'g'));
        END IF;
    END LOOP;
    RETURN CASE WHEN ours THEN '' ELSE 'core > ' END || shape;
END $$;

-- 20,000 rows, of which ANALYZE reads all
CREATE TABLE shapes (id int PRIMARY KEY, k int, h int, region text, flag bool, price numeric(10,2), ts int, s text, u text, pad text)
WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO shapes SELECT g, g * 7919 % 200, g * 7919 % 20011, 'region ' || g % 5, g % 2 = 0, g * 7919 % 20011 / 100.0, g * 6101 % 20021,
    'customer ' || g * 31 % 500, md5(g::text), repeat('x', 300) FROM generate_series(1, 20000) g;
CREATE INDEX ON shapes (k);
CREATE INDEX ON shapes (h);
VACUUM ANALYZE shapes;
CREATE TABLE dim (k int PRIMARY KEY, grp int);
INSERT INTO dim SELECT g, g % 10 FROM generate_series(0, 199) g;
VACUUM ANALYZE dim;

CREATE TABLE queries (n int, query text);
INSERT INTO queries VALUES
(1, 'SELECT count(DISTINCT s) FROM shapes WHERE k = 5'),
(2, 'SELECT gpu_count(DISTINCT s) FROM shapes WHERE k = 5'),
(3, 'SELECT min(s), max(s) FROM shapes WHERE h BETWEEN 500 AND 600'),
(4, 'SELECT region, sum(price) FROM shapes WHERE k IN (3, 77, 100) GROUP BY region'),
(5, 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY h) FROM shapes WHERE k = 9'),
(6, 'SELECT sum(price) FROM shapes WHERE k = 5000'),
(7, 'SELECT d.k, (SELECT count(DISTINCT s) FROM shapes f WHERE f.k = d.k) FROM dim d'),
(8, 'SELECT d.k, l.* FROM dim d, LATERAL (SELECT sum(h), max(s) FROM shapes f WHERE f.k = d.k) l'),
(9, 'SELECT count(*) FROM dim d WHERE EXISTS (SELECT 1 FROM shapes f WHERE f.k = d.k GROUP BY region HAVING count(*) > 10)'),
-- a large part of the table: reading all of it is faster if its columns are cached
(10, 'SELECT region, sum(price) FROM shapes WHERE h < 2500 GROUP BY region'),
(11, 'SELECT count(*), sum(h) FROM shapes WHERE k < 40'),
-- no scan of many rows
(12, 'SELECT min(id), max(h) FROM shapes'),
(13, 'SELECT id, sum(h) FROM shapes GROUP BY id ORDER BY id LIMIT 5'),
(14, 'SELECT grp, count(*) FROM dim GROUP BY grp'),
(15, 'SELECT d.k, (SELECT sum(e.k) FROM dim e WHERE e.grp = d.grp) FROM dim d');

-- without cached columns, and with all of them
SET gpuagg.cache = off;
CREATE TABLE uncached AS SELECT n, query, shape(query) FROM queries;
SET gpuagg.cache = on;
SELECT gpuagg_cache_prewarm('shapes') > 0 AS cached;
SELECT n, shape AS uncached FROM uncached WHERE n <> 7 ORDER BY n;
SELECT n, shape(query) AS cached FROM queries WHERE n <> 7 ORDER BY n;
-- since release 16 core sorts values of DISTINCT below the aggregate, which its cost includes
SELECT u.shape = x AS uncached, shape(q.query) = x AS cached
FROM uncached u JOIN queries q USING (n), (SELECT CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'core > Seq Scan' ELSE 'Seq Scan > GpuAgg' END || ' > Bitmap Heap Scan' AS x) v
WHERE n = 7;
-- also with workers
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT n, shape(query) AS parallel FROM queries WHERE n IN (1, 4, 10) ORDER BY n;
-- there is no parallel plan for nearly unique values
SELECT shape('SELECT flag, percentile_disc(0.9) WITHIN GROUP (ORDER BY price) FROM shapes GROUP BY flag') !~ 'Parallel GpuAgg' AS serial;
-- with a column of an outer query, where core's plan is parallel, because a rescan starts workers anyway
SET gpuagg.cache = off;
SELECT shape('SELECT d.k, (SELECT count(*) FROM shapes f WHERE f.k = d.k AND f.id IN (SELECT max(id) FROM shapes WHERE h % 3 = 1 GROUP BY k)) FROM dim d') ~
    'Gather > Parallel GpuAgg' AS as_core;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
SET max_parallel_workers_per_gather = 0;
SET gpuagg.cache = off;

-- ordered sets of few values and of nearly unique ones, with few groups and with many, each of which core sorts
SELECT shape('SELECT region, mode() WITHIN GROUP (ORDER BY s) FROM shapes GROUP BY region') AS few_values,
    shape('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY u) FROM shapes') AS unique_values,
    shape('SELECT region, percentile_disc(0.5) WITHIN GROUP (ORDER BY u) FROM shapes GROUP BY region') AS few_groups;

-- an aggregate for which the custom scan computes expressions that core's plan does not have
SELECT shape('SELECT gpu_histogram2d(ts, 0, 20000, 10, h, 0, 20000, 10) FROM shapes') AS counts,
    shape('SELECT gpu_histogram2d(ts, 0, 20000, 10, h, 0, 20000, 10, id) FROM shapes') AS weights;

-- aggregates with an order: the custom scan sorts by that order only, and hashes groups
SET gpuagg.require = 'require';
SELECT shape('SELECT region, (array_agg(price ORDER BY ts, price))[1], count(*) FROM shapes GROUP BY region') AS few_groups;
SELECT shape('SELECT flag, array_agg(price ORDER BY price) FROM shapes GROUP BY flag') AS numerics;
SELECT shape('SELECT k, string_agg(s, '','' ORDER BY s) FROM shapes GROUP BY k') AS more_groups;
SELECT shape('SELECT array_agg(u ORDER BY u) FROM shapes') AS one_group;
-- unless the states of all groups need more memory than allowed; then core's plan is faster
SET work_mem = '64kB';
SELECT shape('SELECT region, (array_agg(price ORDER BY ts, price))[1], count(*) FROM shapes GROUP BY region') AS required;
SET gpuagg.require = 'allow';
SELECT shape('SELECT region, (array_agg(price ORDER BY ts, price))[1], count(*) FROM shapes GROUP BY region') ~ '^core' AS left_to_core;
SET work_mem = '16MB';

-- ordered sets of nearly unique values are sorted: each group that exists when sorting begins on its own, later ones together
CREATE TABLE values_of_sets AS
SELECT g, CASE WHEN g < 30000 THEN g % 3 ELSE g % 211 END AS few, g % 2000 AS many, md5(g::text) AS u, nullif(g * 7919 % 70001, 5) / 100.0 AS x,
    (g * 7919 % 70001 % 60000)::text::varchar AS r
FROM generate_series(1, 70000) g;
VACUUM ANALYZE values_of_sets;
SET gpuagg.require = 'require';
-- rows of hashed groups are in order, also of groups that were spilled
PREPARE ordered AS SELECT many, string_agg(u, ',' ORDER BY x, u) AS list FROM values_of_sets GROUP BY many;
SELECT shape('EXECUTE ordered') AS hashed;
SET work_mem = '64kB';
CREATE TABLE hashed AS EXECUTE ordered;
DEALLOCATE ordered;
SET gpuagg.enabled = off;
SET gpuagg.require = 'allow';
SELECT count(*) AS groups, count(*) FILTER (WHERE h.list <> c.list) AS differ
FROM hashed h FULL JOIN (SELECT many, string_agg(u, ',' ORDER BY x, u) AS list FROM values_of_sets GROUP BY many) c USING (many);
RESET gpuagg.enabled;
SET gpuagg.require = 'require';
SET work_mem = '16MB';
CREATE TABLE ours AS
SELECT 'few' AS which, few AS grp, percentile_disc(ARRAY[0, 0.3, 0.999, 1, 0.5]) WITHIN GROUP (ORDER BY u) AS p, mode() WITHIN GROUP (ORDER BY r) AS m,
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x) AS q, mode() WITHIN GROUP (ORDER BY u DESC) AS d FROM values_of_sets GROUP BY few
UNION ALL
SELECT 'many', many, percentile_disc(ARRAY[0, 0.3, 0.999, 1, 0.5]) WITHIN GROUP (ORDER BY u), mode() WITHIN GROUP (ORDER BY r),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY u DESC) FROM values_of_sets GROUP BY many
UNION ALL
SELECT 'one', NULL, percentile_disc(ARRAY[0, 0.3, 0.999, 1, 0.5]) WITHIN GROUP (ORDER BY u), mode() WITHIN GROUP (ORDER BY r),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY u DESC) FROM values_of_sets;
SET gpuagg.require = 'allow';
SET gpuagg.enabled = off;
CREATE TABLE cores AS
SELECT 'few' AS which, few AS grp, percentile_disc(ARRAY[0, 0.3, 0.999, 1, 0.5]) WITHIN GROUP (ORDER BY u) AS p, mode() WITHIN GROUP (ORDER BY r) AS m,
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x) AS q, mode() WITHIN GROUP (ORDER BY u DESC) AS d FROM values_of_sets GROUP BY few
UNION ALL
SELECT 'many', many, percentile_disc(ARRAY[0, 0.3, 0.999, 1, 0.5]) WITHIN GROUP (ORDER BY u), mode() WITHIN GROUP (ORDER BY r),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY u DESC) FROM values_of_sets GROUP BY many
UNION ALL
SELECT 'one', NULL, percentile_disc(ARRAY[0, 0.3, 0.999, 1, 0.5]) WITHIN GROUP (ORDER BY u), mode() WITHIN GROUP (ORDER BY r),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY u DESC) FROM values_of_sets;
SELECT count(*) AS groups, count(*) FILTER (WHERE o IS DISTINCT FROM c) AS differ
FROM ours o FULL JOIN cores c ON (o.which, coalesce(o.grp, -1)) = (c.which, coalesce(c.grp, -1));

DROP TABLE shapes, dim, queries, uncached, values_of_sets, hashed, ours, cores;
DROP FUNCTION shape;
