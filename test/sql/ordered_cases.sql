-- Two thousand random cases of every operator over order, one for each group, compared with plain SQL: NULLs, ties,
-- NaN, single rows, groups of only NULLs.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;

SELECT setseed(0.25);
CREATE TABLE cases AS
WITH groups AS MATERIALIZED (
    SELECT g, 1 + (random() ^ 2 * 60)::int AS n, (ARRAY[0, 0.05, 0.3, 1])[1 + (random() * 3.2)::int] AS nulls,
           1 + (random() * 40)::int AS spread, random() < 0.1 AS nans
    FROM generate_series(1, 2000) g)
SELECT g, i AS ts,
       CASE WHEN random() >= nulls THEN (random() * spread * 2)::int - spread END::int8 AS x,
       CASE WHEN nans AND random() < 0.1 THEN 'NaN' WHEN random() >= nulls THEN ((random() * spread * 16)::int - spread * 8) / 8.0 END::float8 AS f,
       CASE WHEN random() >= nulls THEN random() < 0.7 END AS c,
       CASE WHEN random() >= nulls THEN 0.5 + random() END AS a,
       CASE WHEN random() >= nulls THEN random() * 10 END AS b,
       CASE WHEN random() >= nulls THEN (random() * spread / 3)::int END AS k,
       CASE WHEN random() >= nulls THEN timestamp '2026-01-01' + (random() * spread)::int * interval '1 hour' END AS at,
       CASE WHEN random() >= nulls THEN chr(97 + (random() * 25)::int) END AS s
FROM groups, generate_series(1, n) i
ORDER BY random();
ANALYZE cases;

-- the order of rows within each group: by k descending, NULLs last, then by ts
CREATE TABLE numbered AS SELECT *, row_number() OVER (PARTITION BY g ORDER BY k DESC NULLS LAST, ts) AS i FROM cases;
ANALYZE numbered;
CREATE TABLE expected AS
WITH RECURSIVE
sums AS (SELECT g, i, sum(x) OVER w AS p, x FROM numbered WHERE x IS NOT NULL WINDOW w AS (PARTITION BY g ORDER BY i)),
lows AS (SELECT g, p, least(0, min(p) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS low FROM sums),
best AS (SELECT g, greatest(0, max(p - low)) AS subarray FROM lows GROUP BY g),
fsums AS (SELECT g, i, sum(f) OVER w AS p FROM numbered WHERE f IS NOT NULL WINDOW w AS (PARTITION BY g ORDER BY i)),
flows AS (SELECT g, p, least(0, min(p) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS low FROM fsums),
fbest AS (SELECT g, greatest(0, max(p - low)) AS fsubarray FROM flows GROUP BY g),
islands AS (SELECT g, i - row_number() OVER (PARTITION BY g, coalesce(c, false) ORDER BY i) AS island, coalesce(c, false) AS c FROM numbered),
runs AS (SELECT g, max(n) AS run FROM (SELECT g, count(*) FILTER (WHERE c) AS n FROM islands GROUP BY g, c, island) q GROUP BY g),
steps AS (SELECT g, i, x, lag(x) OVER (PARTITION BY g ORDER BY i) < x AS up, f, lag(f) OVER (PARTITION BY g ORDER BY i) < f AS fup FROM numbered),
parts AS (SELECT g, x, f, count(*) FILTER (WHERE up IS NOT TRUE) OVER w AS part, count(*) FILTER (WHERE fup IS NOT TRUE) OVER w AS fpart
          FROM steps WINDOW w AS (PARTITION BY g ORDER BY i)),
ups AS (SELECT g, max(n) AS up FROM (SELECT g, count(x) AS n FROM parts GROUP BY g, part) q GROUP BY g),
fups AS (SELECT g, max(n) AS fup FROM (SELECT g, count(f) AS n FROM parts GROUP BY g, fpart) q GROUP BY g),
maps AS (SELECT g, a, b, row_number() OVER (PARTITION BY g ORDER BY i) AS i FROM numbered WHERE a IS NOT NULL AND b IS NOT NULL),
composed AS (SELECT g, a, b, i FROM maps WHERE i = 1
             UNION ALL SELECT m.g, m.a * c.a, m.a * c.b + m.b, m.i FROM composed c JOIN maps m ON m.g = c.g AND m.i = c.i + 1),
linear AS (SELECT DISTINCT ON (g) g, a AS factor, b AS term FROM composed ORDER BY g, i DESC),
product AS (SELECT g, a AS m11, b AS m12, 1::float8 AS m21, a AS m22, i FROM maps WHERE i = 1
            UNION ALL SELECT m.g, p.m11 * m.a + p.m12, p.m11 * m.b + p.m12 * m.a, p.m21 * m.a + p.m22, p.m21 * m.b + p.m22 * m.a, m.i
            FROM product p JOIN maps m ON m.g = p.g AND m.i = p.i + 1),
matrix AS (SELECT DISTINCT ON (g) g, ARRAY[m11, m12, m21, m22] AS matrix FROM product ORDER BY g, i DESC),
argmax AS (SELECT DISTINCT ON (g) g, x AS argmax FROM numbered WHERE f IS NOT NULL ORDER BY g, f DESC, x),
argmin AS (SELECT DISTINCT ON (g) g, s AS argmin FROM numbered WHERE at IS NOT NULL ORDER BY g, at, s),
last AS (SELECT DISTINCT ON (g) g, f AS last FROM numbered WHERE at IS NOT NULL ORDER BY g, at DESC, f),
first AS (SELECT DISTINCT ON (g) g, at AS first FROM numbered WHERE k IS NOT NULL ORDER BY g, k, at),
visitors AS (SELECT g, count(DISTINCT x) AS visitors FROM cases GROUP BY g)
SELECT * FROM visitors LEFT JOIN best USING (g) LEFT JOIN fbest USING (g) LEFT JOIN runs USING (g) LEFT JOIN ups USING (g)
    LEFT JOIN fups USING (g) LEFT JOIN linear USING (g) LEFT JOIN matrix USING (g) LEFT JOIN argmax USING (g)
    LEFT JOIN argmin USING (g) LEFT JOIN last USING (g) LEFT JOIN first USING (g);

CREATE VIEW actual AS
SELECT g, gpu_max_subarray_sum(x ORDER BY k DESC NULLS LAST, ts) AS subarray,
       gpu_max_subarray_sum(f ORDER BY k DESC NULLS LAST, ts) AS fsubarray,
       gpu_longest_run(c ORDER BY k DESC NULLS LAST, ts) AS run,
       gpu_longest_ascending_run(x ORDER BY k DESC NULLS LAST, ts) AS up,
       gpu_longest_ascending_run(f ORDER BY k DESC NULLS LAST, ts) AS fup,
       gpu_compose_linear(a, b ORDER BY k DESC NULLS LAST, ts) AS linear
FROM cases GROUP BY g;
CREATE VIEW products AS
SELECT g, gpu_matrix_product(CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN ARRAY[[a, b], [1, a]] END ORDER BY k DESC NULLS LAST, ts) AS matrix
FROM cases GROUP BY g;
CREATE VIEW extremes AS
SELECT g, gpu_argmax(x, f) AS argmax, gpu_last(f, at) AS last, gpu_first(at, k) AS first, gpu_approx_count_distinct(x) AS visitors
FROM cases GROUP BY g;
CREATE VIEW texts AS SELECT g, gpu_argmin(s, at) AS argmin FROM cases GROUP BY g;

CREATE FUNCTION far(a float8, b float8) RETURNS bool LANGUAGE sql AS
    'SELECT CASE WHEN a IS NULL OR b IS NULL THEN a IS DISTINCT FROM b ELSE abs(a - b) > 1e-12 * abs(b) END';
CREATE VIEW wrong AS
SELECT count(*) AS cases, count(*) FILTER (WHERE a.subarray IS DISTINCT FROM e.subarray) AS subarray,
       count(*) FILTER (WHERE a.fsubarray IS DISTINCT FROM e.fsubarray) AS fsubarray,
       count(*) FILTER (WHERE a.run IS DISTINCT FROM e.run) AS run,
       count(*) FILTER (WHERE a.up IS DISTINCT FROM e.up) AS up, count(*) FILTER (WHERE a.fup IS DISTINCT FROM e.fup) AS fup,
       count(*) FILTER (WHERE far(linear[1], factor) OR far(linear[2], term)) AS linear,
       count(*) FILTER (WHERE (p.matrix IS NULL) <> (e.matrix IS NULL) OR far(p.matrix[1][1], e.matrix[1]) OR far(p.matrix[1][2], e.matrix[2])
                              OR far(p.matrix[2][1], e.matrix[3]) OR far(p.matrix[2][2], e.matrix[4])) AS matrix,
       count(*) FILTER (WHERE x.argmax IS DISTINCT FROM e.argmax) AS argmax, count(*) FILTER (WHERE t.argmin IS DISTINCT FROM e.argmin) AS argmin,
       count(*) FILTER (WHERE x.last IS DISTINCT FROM e.last) AS last, count(*) FILTER (WHERE x.first IS DISTINCT FROM e.first) AS first,
       count(*) FILTER (WHERE abs(x.visitors - e.visitors) > 1) AS visitors
FROM expected e LEFT JOIN actual a USING (g) LEFT JOIN products p USING (g) LEFT JOIN extremes x USING (g) LEFT JOIN texts t USING (g);

-- in the custom scan, with much and with little memory, and as plain aggregates
SET gpuagg.require = 'require';
SELECT * FROM wrong;
SET work_mem = '64kB';
SELECT * FROM wrong;
RESET work_mem;
SET gpuagg.require = 'forbid';
SELECT * FROM wrong;
RESET gpuagg.require;
-- the cases differ
SELECT count(subarray) > 1500 AS subarray, count(DISTINCT run) > 20 AS run, count(*) FILTER (WHERE fsubarray = 'NaN') > 50 AS nan,
       count(*) FILTER (WHERE last IS NULL) > 50 AS null_wins, count(matrix) > 1000 AS matrix FROM expected;
DROP VIEW wrong, actual, products, extremes, texts;
DROP FUNCTION far;
DROP TABLE cases, numbered, expected;
