-- partial aggregates below joins: from PostgreSQL 19 on, the planner may aggregate a table in part before it joins it, and a custom scan
-- may do that part. Before, all is aggregated above the join, with the same answers
SET gpuagg.replace_builtin = on;
SET gpuagg.startup_cost = 0;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION pg_temp.set_if_exists(which text, wanted text) RETURNS bool LANGUAGE sql AS $$
	SELECT bool_and(set_config(name, wanted, false) = current_setting(name)) IS NOT false FROM pg_settings WHERE name = which
$$;
SELECT pg_temp.set_if_exists('min_eager_agg_group_size', '1');

-- What the plan of a query does with its aggregation: 'below a join', 'above', or 'not taken'. Before 19: `expected`.
CREATE FUNCTION pg_temp.where_taken(query text, expected text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	joined bool := false;
	result text := 'not taken';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		joined := joined OR line ~ '(Join|Nested Loop)';
		IF line ~ 'GpuAgg' THEN
			result := CASE WHEN joined THEN 'below a join' ELSE 'above' END;
			EXIT;
		END IF;
	END LOOP;
	RETURN CASE WHEN EXISTS (SELECT FROM pg_settings WHERE name = 'enable_eager_aggregate') THEN result ELSE expected END;
END $$;

-- Compares the rows of a query with core's without eager aggregation, in any order.
CREATE FUNCTION pg_temp.compare(query text, expected text DEFAULT 'below a join') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	place text := pg_temp.where_taken(query, expected);
	n bigint;
	missing bigint;
	surplus bigint;
BEGIN
	EXECUTE format('CREATE TEMP TABLE ours AS SELECT x::text AS r FROM (%s) x', query);
	PERFORM set_config('gpuagg.require', 'allow', true);
	SET LOCAL gpuagg.enabled = off;
	PERFORM pg_temp.set_if_exists('enable_eager_aggregate', 'off');
	EXECUTE format('CREATE TEMP TABLE theirs AS SELECT x::text AS r FROM (%s) x', query);
	PERFORM pg_temp.set_if_exists('enable_eager_aggregate', 'on');
	SET LOCAL gpuagg.enabled = on;
	SELECT count(*) INTO n FROM ours;
	SELECT count(*) INTO missing FROM (SELECT r FROM theirs EXCEPT ALL SELECT r FROM ours) x;
	SELECT count(*) INTO surplus FROM (SELECT r FROM ours EXCEPT ALL SELECT r FROM theirs) x;
	DROP TABLE ours, theirs;
	RETURN format('%s, %s rows%s', place, n, CASE WHEN missing + surplus > 0 THEN format(', %s missing, %s surplus',
		missing, surplus) END);
END $$;

CREATE TABLE eager_sales AS
	SELECT i AS id, nullif(i % 40, 7) AS shop, i % 9 AS article, i % 1000 AS amount, i::bigint * 1000003 AS big, (i % 800)::numeric / 8 AS price,
		CASE WHEN i % 50 = 3 THEN 'NaN'::numeric WHEN i % 11 = 0 THEN NULL ELSE i::numeric * 1e30 END AS wild, (i % 64) / 4.0::float8 AS weight,
		(i % 32) / 2.0::float4 AS light, 'text ' || i % 77 AS label, i % 3 = 0 AS paid, date '2024-01-01' + i % 366 AS day,
		make_interval(days => i % 20) AS span, (i % 7)::int2 AS small
	FROM generate_series(1, 30000) i;
CREATE TABLE eager_shops AS
	SELECT i AS shop, i % 5 AS region, 'town ' || i % 8 AS town FROM generate_series(0, 39) i UNION ALL SELECT NULL, 1, 'nowhere' UNION ALL
	SELECT 3, 2, 'town 3';
CREATE TABLE eager_articles AS SELECT i AS article, 'kind ' || i % 2 AS kind FROM generate_series(0, 8) i;
ANALYZE eager_sales, eager_shops, eager_articles;

-- aggregates of all kinds of states
SELECT pg_temp.compare('SELECT region, count(*), count(wild), sum(amount), sum(big), sum(price), sum(wild), sum(weight), sum(light), sum(span)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
SELECT pg_temp.compare('SELECT region, avg(small), avg(amount), avg(big), avg(price), avg(wild), round(avg(weight)::numeric, 6), avg(span)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
SELECT pg_temp.compare('SELECT town, min(label), max(label), min(wild), max(price), min(day), max(span), min(weight), max(light), min(big)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town');
SELECT pg_temp.compare('SELECT town, variance(small), var_pop(amount), stddev(big), stddev_pop(price), variance(wild),
	round(variance(weight)::numeric, 6), round(corr(weight, amount)::numeric, 6), regr_count(weight, light)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town');
SELECT pg_temp.compare('SELECT town, bool_and(paid), bool_or(paid), every(amount >= 0), bit_and(amount), bit_or(big), bit_xor(small)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town');
SELECT pg_temp.compare('SELECT town, range_intersect_agg(int4range(0, amount + 1000)), any_of, sum(amount)
	FROM eager_sales JOIN (SELECT shop, town, region AS any_of FROM eager_shops) s USING (shop) GROUP BY town, any_of');
SELECT pg_temp.compare('SELECT region, sum(amount) FILTER (WHERE paid), count(*) FILTER (WHERE amount > 2000), avg(price) FILTER (WHERE small = 3),
	max(label) FILTER (WHERE weight < 0), sum(1000 / amount) FILTER (WHERE amount > 0)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
-- the extension's own aggregates, whose states are others
SET gpuagg.replace_builtin = off;
SELECT pg_temp.compare('SELECT region, gpu_count(*), gpu_sum(big), gpu_avg(price), gpu_sum(wild), gpu_variance(amount), gpu_max(label), gpu_min(day)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
SELECT pg_temp.compare('SELECT region, gpu_histogram(weight, 0, 16, 8), gpu_histogram(weight, ''{1,4,9}''),
	gpu_histogram_log(weight + 1, 1, 16, 4), gpu_approx_count_distinct(id), gpu_argmax(amount, id), gpu_stddev(big),
	gpu_bit_or(amount), gpu_bool_and(paid) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
SELECT pg_temp.compare('SELECT region, sum(amount), gpu_avg(span), gpu_sum(span) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
-- core's aggregates alone are not taken
SELECT pg_temp.compare('SELECT region, sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region', 'not taken');
SET gpuagg.replace_builtin = on;

-- not below a join: DISTINCT and ORDER BY inside an aggregate, states that grow, volatile functions, numerics as keys
SELECT pg_temp.compare('SELECT region, count(DISTINCT amount), sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region', 'above');
SELECT pg_temp.compare('SELECT region, string_agg(label, '','' ORDER BY id) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region', 'above');
SELECT pg_temp.compare('SELECT region, max(array_length(ids, 1)) FROM (SELECT region, array_agg(id) AS ids FROM eager_sales
	JOIN eager_shops USING (shop) GROUP BY region) x GROUP BY region', 'above');
SELECT pg_temp.compare('SELECT price, sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY price', 'above');

-- shapes of joins
SELECT pg_temp.compare('SELECT town, kind, sum(amount), count(*) FROM eager_sales JOIN eager_shops USING (shop) JOIN eager_articles USING (article)
	GROUP BY town, kind');
SELECT pg_temp.compare('SELECT town, sum(amount), avg(price) FROM eager_sales LEFT JOIN eager_shops USING (shop) GROUP BY town');
SELECT pg_temp.compare('SELECT eager_sales.shop, sum(amount) FROM eager_sales LEFT JOIN eager_shops USING (shop) GROUP BY eager_sales.shop');
SELECT pg_temp.compare('SELECT town, sum(amount), count(*) FROM eager_shops LEFT JOIN eager_sales USING (shop) GROUP BY town', 'above');
SELECT pg_temp.compare('SELECT town, sum(amount) FROM eager_sales FULL JOIN eager_shops USING (shop) GROUP BY town', 'above');
SELECT pg_temp.compare('SELECT b.article, sum(a.amount), avg(a.big) FROM eager_sales a JOIN (SELECT DISTINCT article FROM eager_sales) b USING (article)
	GROUP BY b.article');
SELECT pg_temp.compare('SELECT shop, sum(amount) FROM eager_sales s WHERE EXISTS (SELECT FROM eager_shops WHERE shop = s.shop AND region < 3)
	GROUP BY shop');
-- a lookup join below the aggregation is cheaper
SELECT pg_temp.compare('SELECT shop, sum(amount) FROM eager_sales s WHERE NOT EXISTS (SELECT FROM eager_shops WHERE shop = s.shop AND region < 3)
	GROUP BY shop', 'above');
SELECT pg_temp.compare('SELECT x.region, count(*), sum(amount) FROM eager_sales s JOIN eager_shops x ON x.shop = s.shop AND x.region < s.small
	GROUP BY x.region');
SELECT pg_temp.compare('SELECT town, sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town
	HAVING sum(amount) > 1000000 AND max(label) > ''a'' ORDER BY 2 DESC LIMIT 3');
SELECT pg_temp.compare('SELECT town, region, avg(amount) + max(weight) FROM eager_sales JOIN eager_shops USING (shop) WHERE price > 20
	GROUP BY town, region');
SELECT pg_temp.compare('SELECT town, sum(amount) OVER (ORDER BY town), s FROM (SELECT town, sum(amount) AS amount, sum(big) AS s FROM eager_sales
	JOIN eager_shops USING (shop) GROUP BY town) x', 'below a join');
-- functions are left to core
SELECT pg_temp.compare('SELECT town, count(*), sum(i) FROM generate_series(0, 5000) i JOIN eager_shops ON shop = i GROUP BY town', 'above');
-- no rows
SELECT pg_temp.compare('SELECT town, sum(amount) FROM eager_sales JOIN eager_shops USING (shop) WHERE amount < 0 AND paid GROUP BY town');
-- an error in an argument is raised
SELECT town, sum(1000 / (amount - 5)) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town;

-- sorted input, whose order a merge join needs
CREATE INDEX ON eager_sales (shop);
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT pg_temp.compare('SELECT region, sum(amount), avg(big) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
RESET enable_hashjoin;
RESET enable_nestloop;
DROP INDEX eager_sales_shop_idx;

-- keys of collations that are not deterministic are compared as they are
CREATE COLLATION eager_nocase (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false);
CREATE TABLE eager_words AS SELECT CASE i % 2 WHEN 0 THEN 'Abc' ELSE 'aBC' END COLLATE eager_nocase AS word, 'w' || i % 5 AS plain, i AS n
	FROM generate_series(1, 5000) i;
CREATE TABLE eager_names AS SELECT 'ABC'::text COLLATE eager_nocase AS word, 'w' || i AS plain FROM generate_series(0, 3) i;
ANALYZE eager_words, eager_names;
SELECT pg_temp.compare('SELECT a.plain, sum(n), count(*) FROM eager_words a JOIN eager_names b ON a.word = b.word GROUP BY a.plain', 'above');
SELECT pg_temp.compare('SELECT b.plain, sum(n), count(*) FROM eager_words a JOIN eager_names b USING (plain) GROUP BY b.plain');

-- partitions
CREATE TABLE eager_parts (shop int, amount int, price numeric, label text) PARTITION BY RANGE (shop);
CREATE TABLE eager_parts_low PARTITION OF eager_parts FOR VALUES FROM (MINVALUE) TO (20);
CREATE TABLE eager_parts_high (label text, price numeric, shop int, amount int);
ALTER TABLE eager_parts ATTACH PARTITION eager_parts_high FOR VALUES FROM (20) TO (MAXVALUE);
INSERT INTO eager_parts SELECT shop, amount, price, label FROM eager_sales WHERE shop IS NOT NULL;
CREATE TABLE eager_keys (shop int, region int) PARTITION BY RANGE (shop);
CREATE TABLE eager_keys_low PARTITION OF eager_keys FOR VALUES FROM (MINVALUE) TO (20);
CREATE TABLE eager_keys_high PARTITION OF eager_keys FOR VALUES FROM (20) TO (MAXVALUE);
INSERT INTO eager_keys SELECT shop, region FROM eager_shops WHERE shop IS NOT NULL;
ANALYZE eager_parts, eager_keys;
SELECT pg_temp.compare('SELECT region, sum(amount), avg(price), max(label) FROM eager_parts JOIN eager_shops USING (shop) GROUP BY region');
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT pg_temp.compare('SELECT region, sum(amount), avg(price), max(label) FROM eager_parts JOIN eager_keys USING (shop) GROUP BY region');
SELECT pg_temp.compare('SELECT eager_parts.shop, sum(amount), avg(price) FROM eager_parts JOIN eager_keys USING (shop) GROUP BY eager_parts.shop');
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;

-- parallel plans: few groups, which one participant returns, and many, which all return
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.compare('SELECT region, sum(amount), avg(big), variance(price), max(label)
	FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
CREATE TABLE eager_many AS SELECT i % 110000 AS k, i AS n FROM generate_series(1, 550000) i;
CREATE TABLE eager_groups AS SELECT i AS k, i % 10 AS g FROM generate_series(0, 109999) i;
ANALYZE eager_many, eager_groups;
SET enable_hashjoin = off;
SELECT pg_temp.compare('SELECT g, sum(n), count(*), avg(n::bigint) FROM eager_many JOIN eager_groups USING (k) GROUP BY g');
RESET enable_hashjoin;
SET max_parallel_workers_per_gather = 0;

-- rescans with parameters
SELECT pg_temp.compare('SELECT r, x.* FROM generate_series(0, 4) r, LATERAL (SELECT town, sum(amount) AS s, count(*) FROM eager_sales
	JOIN eager_shops USING (shop) WHERE small > r GROUP BY town) x');
SELECT pg_temp.compare('SELECT r, x.* FROM generate_series(0, 4) r, LATERAL (SELECT town, sum(amount + r) AS s FROM eager_sales
	JOIN eager_shops USING (shop) GROUP BY town) x');
SELECT pg_temp.compare('SELECT r, (SELECT max(s) FROM (SELECT sum(amount) AS s FROM eager_sales JOIN eager_shops USING (shop) WHERE region <> r
	GROUP BY town) x) FROM generate_series(0, 4) r', 'above');

-- prepared statements with generic plans
SET plan_cache_mode = force_generic_plan;
PREPARE eager_statement(int) AS SELECT region, sum(amount), avg(price) FROM eager_sales JOIN eager_shops USING (shop) WHERE article < $1
	GROUP BY region ORDER BY region;
SELECT pg_temp.where_taken('EXECUTE eager_statement(4)', 'below a join');
EXECUTE eager_statement(4);
EXECUTE eager_statement(1);
DEALLOCATE eager_statement;
RESET plan_cache_mode;

-- cursors
BEGIN;
DECLARE eager_cursor SCROLL CURSOR FOR SELECT town, sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town ORDER BY town;
FETCH 2 FROM eager_cursor;
FETCH BACKWARD 1 FROM eager_cursor;
FETCH ALL FROM eager_cursor;
COMMIT;

-- row-level security
CREATE ROLE regress_eager_reader;
GRANT SELECT ON eager_sales, eager_shops TO regress_eager_reader;
ALTER TABLE eager_sales ENABLE ROW LEVEL SECURITY;
CREATE POLICY eager_policy ON eager_sales USING (amount < 500);
SET ROLE regress_eager_reader;
SELECT town, sum(amount), max(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY town ORDER BY town LIMIT 3;
RESET ROLE;
ALTER TABLE eager_sales DISABLE ROW LEVEL SECURITY;
REVOKE SELECT ON eager_sales, eager_shops FROM regress_eager_reader;
DROP ROLE regress_eager_reader;

-- a query whose partial aggregates are taken satisfies gpuagg.require, and EXPLAIN gives no reason
SET gpuagg.require = 'require';
SET gpuagg.replace_builtin = off;
SELECT pg_temp.compare('SELECT region, gpu_sum(amount), gpu_avg(price) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
CREATE FUNCTION pg_temp.reasons(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		IF line ~ 'GpuAgg: ' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END $$;
SELECT pg_temp.reasons('SELECT region, gpu_sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
SET gpuagg.require = 'allow';
SELECT pg_temp.reasons('SELECT region, gpu_sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region');
SET gpuagg.require = 'forbid';
SELECT pg_temp.compare('SELECT region, gpu_sum(amount) FROM eager_sales JOIN eager_shops USING (shop) GROUP BY region', 'not taken');
RESET gpuagg.require;
SET gpuagg.replace_builtin = on;
-- a key that the custom scan does not support: no part of the query is taken
CREATE TABLE eager_bits AS SELECT i AS shop, (i % 4)::bit(4) AS bits FROM generate_series(0, 39) i;
ANALYZE eager_bits;
SELECT pg_temp.compare('SELECT bits, sum(amount) FROM eager_sales JOIN eager_bits USING (shop) GROUP BY bits', 'not taken');
SELECT pg_temp.reasons('SELECT bits, sum(amount) FROM eager_sales JOIN eager_bits USING (shop) GROUP BY bits');

DROP TABLE eager_sales, eager_shops, eager_articles, eager_words, eager_names, eager_parts, eager_keys, eager_many, eager_groups, eager_bits;
DROP COLLATION eager_nocase;
