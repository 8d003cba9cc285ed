-- Queries of many shapes over the tables of tables.sql. For the reference answer, gpu_X is replaced by PostgreSQL's X, and dist_ and ref_
-- tables by local ones. `place` is where the query must be aggregated (place_of()), or NULL if it may be anywhere.
CREATE TABLE shapes (n serial, name text, query text, place text, settings text DEFAULT '', exact bool DEFAULT true);
INSERT INTO shapes (name, query, place) VALUES
('several aggregates', 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_avg(n) AS a, gpu_min(t) AS mn, gpu_max(ts) AS mx FROM dist_rows GROUP BY g', 'workers'),
('two keys, one of them the distribution column', 'SELECT g, k, gpu_count(*) AS c, gpu_sum(i8) AS s FROM dist_rows GROUP BY g, k', 'workers'),
('an expression as key', 'SELECT i4 % 10 AS e, gpu_count(*) AS c, gpu_sum(n) AS s FROM dist_rows GROUP BY 1', 'workers'),
('expressions of aggregates', 'SELECT g, gpu_sum(i4)::numeric / nullif(gpu_count(*), 0) AS e, CASE WHEN gpu_max(i4) > 5 THEN gpu_min(d) END AS m FROM dist_rows GROUP BY g', 'workers'),
('join with a reference table', 'SELECT label, gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_avg(n) AS a FROM dist_rows JOIN ref_g USING (g) GROUP BY label', 'workers'),
('left join with a reference table, HAVING', 'SELECT label, gpu_count(*) AS c, gpu_max(t) AS m FROM dist_rows LEFT JOIN ref_g USING (g) GROUP BY label HAVING gpu_count(*) > 10 AND gpu_avg(i4) < 1000', 'workers'),
('join of distributed tables', 'SELECT label, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows JOIN dist_k USING (k) GROUP BY label', 'workers'),
('FILTER', 'SELECT g, gpu_count(*) FILTER (WHERE b) AS c, gpu_sum(i4) FILTER (WHERE i4 > 0 OR t IS NULL) AS s, gpu_avg(i8) FILTER (WHERE h = ''h1'' AND b) AS a, gpu_count(t) AS ct FROM dist_rows GROUP BY g', 'workers'),
('FILTER by the distribution column', 'SELECT k, gpu_count(*) FILTER (WHERE b) AS c, gpu_sum(i4) FILTER (WHERE i4 > 0 OR t IS NULL) AS s FROM dist_rows GROUP BY k', 'workers'),
('HAVING without key', 'SELECT gpu_count(*) AS c FROM dist_rows HAVING gpu_sum(i4) > 10000000000', 'workers'),
('ORDER BY, LIMIT', 'SELECT h, gpu_sum(n) AS s FROM dist_rows GROUP BY h ORDER BY gpu_sum(n) DESC, h LIMIT 3', 'workers'),
('ORDER BY, LIMIT by the distribution column', 'SELECT k, gpu_sum(n) AS s FROM dist_rows GROUP BY k ORDER BY gpu_sum(n) DESC, k LIMIT 3 OFFSET 2', 'workers'),
('count DISTINCT', 'SELECT gpu_count(DISTINCT h) AS c, gpu_count(DISTINCT i2) AS d FROM dist_rows', NULL),
('count DISTINCT by a key', 'SELECT g, gpu_count(DISTINCT h) AS c, gpu_count(*) AS n FROM dist_rows GROUP BY g', NULL),
('DISTINCT by the distribution column', 'SELECT k, gpu_count(DISTINCT h) AS c, gpu_sum(DISTINCT i2) AS s, gpu_avg(DISTINCT i4) AS a FROM dist_rows GROUP BY k', 'workers'),
('sum of DISTINCT values', 'SELECT g, gpu_sum(DISTINCT i2) AS s, gpu_count(*) AS c FROM dist_rows GROUP BY g', NULL),
('DISTINCT with FILTER', 'SELECT g, gpu_count(DISTINCT h) FILTER (WHERE b) AS s FROM dist_rows GROUP BY g', NULL),
('SELECT DISTINCT of aggregates', 'SELECT DISTINCT gpu_count(*) AS c FROM dist_rows GROUP BY k', NULL),
('a subquery grouped by the distribution column', 'SELECT gpu_max(c) AS m, gpu_sum(s) AS s FROM (SELECT k, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY k) q', 'workers'),
('a subquery grouped by another column', 'SELECT gpu_max(c) AS m, gpu_sum(s) AS s FROM (SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY g) q', NULL),
('a join with a subquery', 'SELECT h, gpu_count(*) AS c, gpu_sum(s) AS s FROM dist_rows JOIN (SELECT k, gpu_sum(i4) AS s FROM dist_rows GROUP BY k) q USING (k) GROUP BY h', 'workers'),
('CTE', 'WITH q AS (SELECT g, gpu_count(*) AS c, gpu_avg(n) AS a FROM dist_rows GROUP BY g) SELECT c, a, label FROM q JOIN ref_g USING (g)', NULL),
('CTE, materialized', 'WITH q AS MATERIALIZED (SELECT g, gpu_count(*) AS c FROM dist_rows GROUP BY g) SELECT gpu_sum(c) AS s, gpu_count(*) AS n FROM q', NULL),
('CTE of rows, materialized', 'WITH q AS MATERIALIZED (SELECT g, i4 FROM dist_rows WHERE i4 > 400) SELECT g, gpu_sum(i4) AS s, gpu_count(*) AS n FROM q GROUP BY g', NULL),
('aggregates with other state types', 'SELECT g, gpu_stddev(i4) AS d, gpu_avg(i8) AS a, gpu_histogram(f8, -250, 250, 20) AS hist, gpu_argmax(t, i8) AS t, gpu_count(*) AS c FROM dist_rows GROUP BY g', 'workers'),
('aggregates with other state types in expressions, FILTER and HAVING', 'SELECT h, round(gpu_variance(i8) FILTER (WHERE b), 3) AS v FROM dist_rows GROUP BY h HAVING gpu_approx_count_distinct(i4) > 10 AND gpu_stddev(n) > 1', 'workers'),
('distributions of values', 'SELECT h, gpu_max_n(i8, 3) AS m, gpu_top_k(b, 2) AS k, gpu_entropy(b) AS e, gpu_histogram_auto(f8, 5) AS a, (gpu_summary(f8)).nulls AS n FROM dist_rows GROUP BY h', 'workers'),
('estimates from merged states', 'SELECT h, gpu_approx_percentile_estimate(gpu_approx_percentile_merge(percs::gpuagg_state), 0.5) AS p, gpu_approx_count_distinct_estimate(gpu_approx_count_distinct_merge(dists::gpuagg_state)) AS d FROM dist_rows GROUP BY h', 'workers'),
('a view', 'SELECT * FROM dist_view', 'workers'),
('a join with a view', 'SELECT v.c, label FROM dist_view v JOIN ref_g USING (g)', NULL),
('a scalar subquery', 'SELECT gpu_count(*) AS c FROM dist_rows WHERE i4 > (SELECT gpu_avg(i4) FROM dist_rows)', NULL),
('IN with a subquery', 'SELECT g, gpu_count(*) AS c FROM dist_rows WHERE k IN (SELECT k FROM dist_k GROUP BY k HAVING gpu_count(*) = 1) GROUP BY g', NULL),
('a correlated subquery', 'SELECT k, (SELECT gpu_count(*) FROM dist_rows d WHERE d.k = o.k AND d.b) AS c FROM dist_k o WHERE k < 5', NULL),
('UNION ALL', 'SELECT g, gpu_count(*) AS c FROM dist_rows WHERE b GROUP BY g UNION ALL SELECT g, gpu_sum(i4) FROM dist_rows GROUP BY g', NULL),
('UNION', 'SELECT h, gpu_count(*) AS c FROM dist_rows GROUP BY h UNION SELECT h, gpu_count(*) FROM dist_rows GROUP BY h', NULL),
('window over aggregates', 'SELECT g, gpu_sum(i4) AS s, rank() OVER (ORDER BY gpu_sum(i4), g) AS r FROM dist_rows GROUP BY g', NULL),
('one shard', 'SELECT gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_avg(n) AS a, gpu_stddev(i4) AS d FROM dist_rows WHERE k = 7', 'workers'),
('one shard, in groups', 'SELECT g, gpu_count(*) AS c, gpu_histogram(f8, -250, 250, 10) AS s FROM dist_rows WHERE k = 7 GROUP BY g', 'workers'),
('no row', 'SELECT gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_avg(n) AS a, gpu_min(t) AS m FROM dist_rows WHERE i4 > 1000000', 'workers'),
('a condition that is always false', 'SELECT gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows WHERE false', NULL),
('a reference table', 'SELECT g, gpu_count(*) AS c, gpu_avg(n) AS a, gpu_max(t) AS m FROM ref_rows GROUP BY g', NULL),
('a reference table and a local one', 'SELECT label, gpu_count(*) AS c, gpu_avg(n) AS a FROM ref_rows JOIN local_g USING (g) GROUP BY label', NULL),
('a distributed table and a local one', 'SELECT label, gpu_count(*) AS c, gpu_avg(n) AS a FROM dist_rows JOIN local_g USING (g) GROUP BY label', NULL),
('next to an aggregate that gathers rows', 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s, gpu_longest_run(b ORDER BY id) AS r FROM dist_rows GROUP BY g', 'rows'),
('rows of the table as values', 'SELECT h, (gpu_argmax(dist_rows, id)).i8 AS v, gpu_count(*) AS c FROM dist_rows GROUP BY h', 'rows'),
('rows of the table as values by the distribution column', 'SELECT k, (gpu_argmax(dist_rows, id)).i8 AS v, gpu_count(*) AS c FROM dist_rows GROUP BY k', 'workers'),
('types without a name as values', 'SELECT g, gpu_argmax(ROW(id, k), id)::text AS v, gpu_count(*) AS c FROM dist_rows GROUP BY g', 'rows'),
('ordered aggregates of core''s names', 'SELECT g, gpu_sum(i4 ORDER BY id) AS s, gpu_count(*) AS c FROM dist_rows GROUP BY g', NULL),
('a histogram''s rows', 'SELECT b.* FROM (SELECT gpu_histogram(f8, -250, 250, 10) AS counts FROM dist_rows) h, gpu_histogram_bins(-250, 250, h.counts) b', NULL),
('quantiles of a histogram', 'SELECT h, gpu_histogram(f8, -250, 250, 10) AS c, gpu_count(*) AS n FROM dist_rows GROUP BY h', NULL),
('grouping sets', 'SELECT g, h, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY ROLLUP (g, h)', NULL),
('grouping sets by the distribution column', 'SELECT k, h, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY GROUPING SETS ((k, h), (k))', NULL),
('partitions', 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_parts GROUP BY g', NULL),
('a local table in the metadata of Citus', 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s FROM known_rows GROUP BY g', NULL);
INSERT INTO shapes (name, query, place, settings) SELECT name || ', required', query, place, 'gpuagg.require = require' FROM shapes
WHERE place = 'workers' AND n % 3 = 1 OR name IN ('one shard', 'FILTER', 'a view', 'IN with a subquery', 'partitions') ORDER BY n;
INSERT INTO shapes (name, query, place, settings) VALUES
('a repartition join', 'SELECT a.h, gpu_count(*) AS c, gpu_sum(a.i4) AS s FROM dist_rows a JOIN dist_k b ON a.i4 = b.k WHERE a.id % 7 = 0 GROUP BY a.h', NULL,
	'citus.enable_repartition_joins = on'),
-- PostgreSQL's own aggregates
('core''s', 'SELECT g, count(*) AS c, sum(i4) AS s, avg(n) AS a, min(t) AS mn, max(ts) AS mx, bool_or(b) AS o FROM dist_rows GROUP BY g', 'workers', 'gpuagg.replace_builtin = on'),
('core''s with other state types', 'SELECT g, stddev(i4) AS d, variance(n) AS v, avg(i8) AS a, count(*) AS c FROM dist_rows GROUP BY g', 'workers', 'gpuagg.replace_builtin = on'),
('core''s by the distribution column', 'SELECT k, count(*) AS c, sum(i4) AS s, stddev(i4) AS d FROM dist_rows GROUP BY k', 'workers', 'gpuagg.replace_builtin = on'),
('core''s without key', 'SELECT count(*) AS c, sum(i4) FILTER (WHERE b) AS s, avg(n) AS a FROM dist_rows', 'workers', 'gpuagg.replace_builtin = on'),
('core''s that gather rows', 'SELECT h, string_agg(t, '','' ORDER BY id) AS t, count(*) AS c FROM dist_rows WHERE id < 1000 GROUP BY h', NULL, 'gpuagg.replace_builtin = on'),
('core''s, DISTINCT', 'SELECT g, count(DISTINCT h) AS c FROM dist_rows GROUP BY g', NULL, 'gpuagg.replace_builtin = on'),
('core''s, SELECT DISTINCT', 'SELECT DISTINCT g, h FROM dist_rows', NULL, 'gpuagg.replace_builtin = on'),
('core''s, UNION', 'SELECT g FROM dist_rows UNION SELECT i4 FROM dist_rows', NULL, 'gpuagg.replace_builtin = on'),
('core''s, UNION by the distribution column', 'SELECT k FROM dist_rows UNION SELECT k FROM dist_k', NULL, 'gpuagg.replace_builtin = on'),
('core''s that are not replaced', 'SELECT g, count(*) AS c, sum(i4) AS s FROM dist_rows GROUP BY g', 'core on workers', 'gpuagg.replace_builtin = off'),
('without the custom scan', 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY g', 'core on workers', 'gpuagg.enabled = off'),
('custom scan forbidden', 'SELECT g, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY g', 'core on workers', 'gpuagg.require = forbid');

CREATE TABLE dist_parts (LIKE local_rows) PARTITION BY RANGE (d);
CREATE TABLE dist_parts_1 PARTITION OF dist_parts FOR VALUES FROM (MINVALUE) TO ('2022-01-01');
CREATE TABLE dist_parts_2 PARTITION OF dist_parts FOR VALUES FROM ('2022-01-01') TO (MAXVALUE);
SELECT create_distributed_table('dist_parts', 'k');
INSERT INTO dist_parts SELECT * FROM dist_rows;
CREATE VIEW local_parts AS TABLE local_rows;
CREATE TABLE known_rows AS SELECT * FROM local_rows WHERE id <= 20000;
SELECT citus_add_local_table_to_metadata('known_rows');

-- Returns the same query over local tables.
CREATE FUNCTION local_query(query text) RETURNS text LANGUAGE sql AS $$
	SELECT replace(replace(replace(replace(query, 'ref_rows', 'local_ref'), 'ref_g', 'local_g'), 'dist_', 'local_'), 'known_rows', 'local_ref')
$$;

CREATE FUNCTION core_query(query text) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(query, 'gpu_(count|sum|avg|min|max|stddev|variance)\M', '\1', 'g')
$$;

-- Returns '' if the answer and the place of a shape are right, else the error. If Citus itself rejects the query, the result is "# SKIP ...".
CREATE FUNCTION wrong_with(shape shapes) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	want text[];
	got text[];
	place text;
	citus_error text;
BEGIN
	SET LOCAL gpuagg.enabled = off;
	want := rows_of(core_query(local_query(shape.query)));
	SET LOCAL gpuagg.enabled = on;
	IF shape.settings <> '' THEN
		EXECUTE 'SET LOCAL ' || shape.settings;
	END IF;
	BEGIN
		got := rows_of(shape.query);
		place := place_of(plan_of(shape.query));
	EXCEPTION WHEN OTHERS THEN
		citus_error := SQLERRM;
		SET LOCAL gpuagg.enabled = off;
		BEGIN
			got := rows_of(core_query(shape.query));
		EXCEPTION WHEN OTHERS THEN
			IF SQLERRM = citus_error THEN
				RETURN '# SKIP Citus: ' || citus_error;
			END IF;
		END;
		RETURN 'error: ' || citus_error;
	END;
	IF got IS DISTINCT FROM want THEN
		RETURN format('%s rows and %s of core; first: %s', cardinality(got), cardinality(want),
			(SELECT format('%s, core %s', g, w) FROM unnest(got, want) u(g, w) WHERE g IS DISTINCT FROM w LIMIT 1));
	ELSIF shape.place <> place THEN
		RETURN format('aggregated as %s, not %s', place, shape.place);
	END IF;
	RETURN '';
END
$$;

CREATE FUNCTION compare_shape(shape shapes) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN wrong = '' THEN 'ok - ' || shape.name WHEN starts_with(wrong, '#') THEN format('ok - %s %s', shape.name, wrong)
		ELSE format('not ok - %s: %s', shape.name, wrong) END
	FROM wrong_with(shape) wrong
$$;
