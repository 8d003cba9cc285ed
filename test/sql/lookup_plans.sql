-- Joins that the heap feed can execute as lookups: the planner makes a tree of hash joins with the fact table outermost, also
-- where core prefers other joins, and none where a join is not a lookup.
SET client_min_messages = warning;
SET gpuagg.engine = 'cpu';
SET gpuagg.replace_builtin = on;
SET gpuagg.startup_cost = 0;
SET gpuagg.cache = off;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
-- from PostgreSQL 19 on, tables may be aggregated in part below a join
SELECT count(set_config(name, 'off', false)) < 2 AS above FROM pg_settings WHERE name = 'enable_eager_aggregate';

-- The nodes of a query's plan from top to bottom, with their depth below joins.
CREATE FUNCTION pg_temp.tree(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ '->|^[A-Z]' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END $$;
-- Compares the rows of a query with core's; 'same' if they are equal in any order.
CREATE FUNCTION pg_temp.compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	differ bigint;
BEGIN
	EXECUTE format('CREATE TEMP TABLE ours AS SELECT answer_row::text AS r FROM (%s) answer_row', query);
	SET LOCAL gpuagg.enabled = off;
	EXECUTE format('CREATE TEMP TABLE theirs AS SELECT answer_row::text AS r FROM (%s) answer_row', query);
	SELECT count(*) INTO differ FROM ((TABLE ours EXCEPT ALL TABLE theirs) UNION ALL (TABLE theirs EXCEPT ALL TABLE ours)) d;
	DROP TABLE ours, theirs;
	SET LOCAL gpuagg.enabled = on;
	RETURN CASE differ WHEN 0 THEN 'same' ELSE differ || ' rows differ' END;
END $$;
-- The number of joins that are lookups of the feed.
CREATE FUNCTION pg_temp.lookups(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n bigint := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		n := n + (line ~ '^ *Lookup:')::int;
	END LOOP;
	RETURN n;
END $$;

CREATE TABLE lf (id int, cust int, part int, day date, city text, amount int, note text);
INSERT INTO lf SELECT g, CASE WHEN g % 50 > 0 THEN g * 7 % 300 END, g * 11 % 210, date '2024-01-01' + g % 100, 'city ' || g % 13, g % 1000, 'n' || g % 5
FROM generate_series(1, 20000) g;
CREATE INDEX lf_cust ON lf (cust);
CREATE TABLE ld_cust (id int PRIMARY KEY, nation int, name text);
INSERT INTO ld_cust SELECT g, g % 25, 'customer ' || g FROM generate_series(0, 289) g;
CREATE TABLE ld_nation (id int PRIMARY KEY, region int, name text);
INSERT INTO ld_nation SELECT g, g % 5, 'nation ' || g FROM generate_series(0, 23) g;
CREATE TABLE ld_part (id int PRIMARY KEY, brand text, size int);
INSERT INTO ld_part SELECT g, 'brand ' || g % 7, g % 20 FROM generate_series(0, 199) g;
CREATE TABLE ld_day (day date PRIMARY KEY, week int);
INSERT INTO ld_day SELECT date '2024-01-01' + g, g / 7 FROM generate_series(0, 89) g;
CREATE TABLE ld_sale (cust int, part int, price int);
INSERT INTO ld_sale SELECT g % 100, g % 60, g % 9 FROM generate_series(1, 300) g;
CREATE TABLE ld_both (cust int, part int, factor int, PRIMARY KEY (cust, part));
INSERT INTO ld_both SELECT c, p, c + p FROM generate_series(0, 199) c, generate_series(0, 20) p;
VACUUM ANALYZE lf, ld_cust, ld_nation, ld_part, ld_day, ld_sale, ld_both;

-- a star, the most selective dimension first
SELECT * FROM pg_temp.tree('SELECT c.nation, count(*), sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_part p ON f.part = p.id JOIN ld_day d USING (day)
WHERE p.size = 3 AND d.week < 9 GROUP BY c.nation');
-- a snowflake: a dimension has a dimension
SELECT * FROM pg_temp.tree('SELECT n.name, sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_nation n ON c.nation = n.id WHERE n.region = 2 GROUP BY n.name');
-- columns of both sides, several keys, further conditions
SELECT * FROM pg_temp.tree('SELECT note, sum(amount * factor) FROM lf f JOIN ld_both b ON f.cust = b.cust AND f.part = b.part AND f.amount > b.factor GROUP BY note');
-- semi joins, anti joins, outer joins
SELECT * FROM pg_temp.tree('SELECT note, count(*) FROM lf f WHERE cust IN (SELECT cust FROM ld_sale WHERE price > 3) AND NOT EXISTS (SELECT FROM ld_sale s WHERE s.part = f.part AND price < 2)
GROUP BY note');
SELECT * FROM pg_temp.tree('SELECT brand, count(*) FROM lf f LEFT JOIN ld_part p ON f.part = p.id AND p.size > 5 WHERE coalesce(size, 0) < 11 GROUP BY brand');
-- without keys, DISTINCT, grouping sets
SELECT * FROM pg_temp.tree('SELECT count(*), max(c.name) FROM lf f JOIN ld_cust c ON f.cust = c.id');
SELECT * FROM pg_temp.tree('SELECT DISTINCT brand, note || size FROM lf f JOIN ld_part p ON f.part = p.id');
SELECT * FROM pg_temp.tree('SELECT brand, note, count(*) FROM lf f JOIN ld_part p ON f.part = p.id GROUP BY GROUPING SETS ((brand), (note))');

-- lookups of a lookup's inner side; all formats, with times and without
CREATE FUNCTION pg_temp.explained(options text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	output text := '';
	query text := ' SELECT n.name, c.id % 3 AS x, count(*) FROM lf f JOIN (ld_cust c LEFT JOIN ld_nation n ON c.nation = n.id) ON f.cust = c.id JOIN ld_part p ON f.part = p.id GROUP BY 1, 2';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF, ' || options || ')' || query LOOP
		output := output || regexp_replace(line, '\d+(?= kB)|(?<=Memory"?[:>] ?)\d+|\d+\.\d\d\d', '0', 'g') || E'\n';
	END LOOP;
	IF options ~ 'TEXT' THEN
		RETURN QUERY SELECT shown FROM string_to_table(output, E'\n') shown WHERE shown ~ 'Lookup:';
	ELSIF options ~ 'JSON' THEN
		RETURN NEXT output::json #> '{0,Plan,Lookups}';
	ELSIF options ~ 'YAML' THEN
		RETURN NEXT rtrim(substring(output FROM '(Lookups:.*?)\s+Strategy:'), E'\n');
	ELSE
		RETURN NEXT rtrim(substring(output FROM ' *<Lookups>.*</Lookups>'));
	END IF;
END $$;
SELECT * FROM pg_temp.explained('FORMAT TEXT') UNION ALL SELECT * FROM pg_temp.explained('ANALYZE, SUMMARY OFF, FORMAT TEXT')
UNION ALL SELECT * FROM pg_temp.explained('ANALYZE, SUMMARY OFF, TIMING OFF, FORMAT TEXT');
SELECT pg_temp.explained('ANALYZE, SUMMARY OFF, TIMING OFF, FORMAT JSON')::jsonb = pg_temp.explained('ANALYZE, SUMMARY OFF, FORMAT JSON')::jsonb AS without_times;
SELECT pg_temp.explained('ANALYZE, SUMMARY OFF, FORMAT JSON');
SELECT pg_temp.explained('ANALYZE, SUMMARY OFF, FORMAT YAML');
SELECT pg_temp.explained('FORMAT XML');

CREATE TEMP TABLE queries (n int GENERATED ALWAYS AS IDENTITY, taken bool, query text);
INSERT INTO queries (taken, query) VALUES
(true, 'SELECT c.nation, count(*), sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id GROUP BY 1'),
(true, 'SELECT c.nation, p.brand, d.week, count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_part p ON f.part = p.id JOIN ld_day d USING (day) GROUP BY 1, 2, 3'),
(true, 'SELECT n.name, n.region + c.id % 3 AS x, sum(amount) FROM lf f JOIN (ld_cust c JOIN ld_nation n ON c.nation = n.id) ON f.cust = c.id GROUP BY 1, 2'),
(true, 'SELECT count(*) FROM lf f LEFT JOIN (ld_cust c JOIN ld_nation n ON c.nation = n.id AND n.region = 1) ON f.cust = c.id WHERE n.name IS NULL OR n.id < 7'),
(true, 'SELECT count(c.name) FROM lf f LEFT JOIN ld_cust c ON f.cust = c.id LEFT JOIN ld_nation n ON c.nation = n.id WHERE n.name IS NOT NULL'),
(true, 'SELECT note, max(t) FROM lf f JOIN (SELECT part, max(price) AS t FROM ld_sale GROUP BY part) s USING (part) GROUP BY note'),
(true, 'SELECT note, count(*) FROM lf f WHERE (cust, part) IN (SELECT cust, part FROM ld_sale) GROUP BY note'),
(true, 'SELECT note, count(*) FROM lf f WHERE EXISTS (SELECT FROM ld_sale s WHERE s.cust = f.cust) GROUP BY note'),
(true, 'SELECT note, count(*) FROM lf f WHERE NOT EXISTS (SELECT FROM ld_sale s WHERE s.cust = f.cust) GROUP BY note'),
(true, 'SELECT note, count(*) FROM lf f JOIN ld_part p ON f.part::bigint + 1 = p.id GROUP BY note'),
(true, 'SELECT c.name, count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id WHERE f.id < 300 GROUP BY c.name HAVING count(*) > 1'),
(true, 'SELECT a.name, b.name, count(*) FROM lf f JOIN ld_nation a ON f.part % 24 = a.id JOIN ld_nation b ON f.amount % 24 = b.id GROUP BY 1, 2'),
(true, 'SELECT note, c.nation / 10.0 AS x, count(*), avg(amount + c.nation) FROM lf f JOIN ld_cust c ON f.cust = c.id GROUP BY 1, 2'),
(true, 'SELECT count(*) FROM lf f RIGHT JOIN ld_cust c ON f.cust = c.id WHERE f.amount > 3'),
-- several inner rows for an outer one
(true, 'SELECT count(*), sum(price) FROM lf f JOIN ld_sale s ON f.cust = s.cust'),
(true, 'SELECT note, count(*) FROM lf f JOIN ld_part p ON f.part + 1 = p.id::bigint GROUP BY note'),
-- the keys that can be hashed do not suffice
(true, 'SELECT count(*) FROM lf f JOIN ld_both b ON f.cust = b.cust AND f.part < b.part'),
-- conditions of outer, semi and anti joins that are no keys
(true, 'SELECT count(*), sum(p.size) FROM lf f LEFT JOIN ld_part p ON f.part = p.id AND f.amount < p.size'),
(true, 'SELECT count(*) FROM lf f WHERE EXISTS (SELECT FROM ld_sale s WHERE s.cust = f.cust AND s.part > f.part)'),
(true, 'SELECT count(*) FROM lf f WHERE NOT EXISTS (SELECT FROM ld_sale s WHERE s.cust = f.cust AND s.part > f.part)'),
-- rows of the inner side without a match
(false, 'SELECT count(*), count(c.id) FROM lf f FULL JOIN ld_cust c ON f.cust = c.id'),
(false, 'SELECT count(*), count(c.id) FROM lf f RIGHT JOIN ld_cust c ON f.cust = c.id'),
-- keys after others must not fail: integers are divided by constants
(true, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust % 150 AND b.part = f.part / 10'),
(true, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust % -1 AND b.part = f.part::bigint / -2'),
(true, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust % 7::bigint AND b.part = f.part / 20::smallint'),
(false, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust AND b.part = f.part / -1'),
(false, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust AND b.part = f.amount / 0'),
(false, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust AND b.part = f.amount % 0'),
(false, 'SELECT count(*), sum(factor) FROM lf f JOIN ld_both b ON b.cust = f.cust AND b.part = f.amount % (f.id + 1)'),
-- inner sides that would run twice if their rows do not fit
(false, 'SELECT count(*), sum(x) FROM lf f JOIN (SELECT id, random() AS x FROM ld_cust OFFSET 0) c ON f.cust = c.id'),
(false, 'SELECT count(*), sum(nation) FROM lf f JOIN (SELECT * FROM ld_cust WHERE random() < 2) c ON f.cust = c.id'),
(false, 'SELECT count(*), sum(x) FROM lf f JOIN (ld_cust c JOIN (SELECT id, random() AS x FROM ld_nation OFFSET 0) n ON n.id = c.nation) ON f.cust = c.id'),
(false, 'SELECT count(*), sum(nation) FROM lf f JOIN (SELECT * FROM ld_cust FOR SHARE) c ON f.cust = c.id'),
(true, 'SELECT count(*), sum(x) FROM lf f JOIN (SELECT id, 100 / (nation + 1) AS x FROM ld_cust OFFSET 0) c ON f.cust = c.id'),
-- volatile functions, subplans
(false, 'SELECT count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id AND f.amount > random() * c.id - 1000'),
(false, 'SELECT count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id WHERE random() < 2'),
(false, 'SELECT count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id AND f.amount > (SELECT min(price) + c.nation FROM ld_sale s WHERE s.cust = f.part % 3) - 100'),
-- lateral references
(false, 'SELECT count(*), sum(l.x) FROM lf f JOIN LATERAL (SELECT p.id, p.size + f.amount AS x FROM ld_part p WHERE f.part = p.id OFFSET 0) l ON true'),
-- no joins, cross joins
(false, 'SELECT count(*) FROM lf f'),
(false, 'SELECT count(*) FROM lf f, (SELECT max(id) AS m FROM ld_cust) c WHERE f.part < c.m');
SELECT n, taken AS wanted, query FROM queries WHERE (pg_temp.lookups(query) > 0) <> taken ORDER BY n;
SELECT n, pg_temp.compare(query) FROM queries WHERE query !~ 'random|[/%] 0' ORDER BY n;

-- forms: a bitmap, a hash table, a bitmap before a hash table
CREATE FUNCTION pg_temp.form(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Lookup:' THEN
			RETURN NEXT regexp_replace(line, '^.*Lookup: |, \d+ kB', '', 'g');
		END IF;
	END LOOP;
END $$;
CREATE TABLE ld_far (id bigint, x int);
INSERT INTO ld_far SELECT g * 90000, g FROM generate_series(1, 300) g;
ANALYZE ld_far;
SELECT * FROM pg_temp.form('SELECT count(*) FROM lf f WHERE f.id IN (SELECT x FROM ld_far)');
SELECT * FROM pg_temp.form('SELECT count(*) FROM lf f WHERE NOT EXISTS (SELECT FROM ld_far d WHERE d.id = f.id * 900)');
SELECT * FROM pg_temp.form('SELECT sum(x) FROM lf f JOIN ld_far d ON d.id = f.id * 90000');
SELECT * FROM pg_temp.form('SELECT sum(x) FROM lf f JOIN ld_far d ON d.id = f.id * 90000 AND d.id < 1000000');
DROP TABLE ld_far;
-- an inner side that the feed reads faster by a scan of its own than core by an index
CREATE TABLE ld_order (id int PRIMARY KEY, cust int, note text);
INSERT INTO ld_order SELECT g, g % 2000, repeat('o', 60) FROM generate_series(1, 20000) g;
CREATE INDEX ld_order_cust ON ld_order (cust);
CREATE TABLE ld_buyer (id int PRIMARY KEY, nation int);
INSERT INTO ld_buyer SELECT g, g % 25 FROM generate_series(0, 1999) g;
VACUUM ANALYZE ld_order, ld_buyer;
SELECT * FROM pg_temp.tree('SELECT nation, count(*) FROM lf f JOIN (ld_order o JOIN ld_buyer b ON o.cust = b.id) ON f.id = o.id WHERE b.id < 14 GROUP BY nation');
SELECT pg_temp.compare('SELECT nation, count(*) FROM lf f JOIN (ld_order o JOIN ld_buyer b ON o.cust = b.id) ON f.id = o.id WHERE b.id < 14 GROUP BY nation');
DROP TABLE ld_order, ld_buyer;
-- core's join of few rows by an index costs more than lookups, but not if its pages are in memory
SET gpuagg.page_row_cost = 0.01;
SELECT pg_temp.lookups('SELECT nation, sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id WHERE c.id < 4 GROUP BY nation');
SET enable_nestloop = off;
SELECT pg_temp.lookups('SELECT nation, sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id WHERE c.id < 4 GROUP BY nation');
RESET enable_nestloop;
RESET gpuagg.page_row_cost;
-- an index scan in a nested loop costs more than core expects if another join leaves few of the rows that its parameters come from
SELECT pg_temp.lookups('SELECT n.name, sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_nation n ON c.nation = n.id WHERE n.name = ''nation 3'' GROUP BY n.name');
SELECT pg_temp.compare('SELECT n.name, sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_nation n ON c.nation = n.id WHERE n.name = ''nation 3'' GROUP BY n.name');
-- ... and is still cheaper for a single row
SELECT pg_temp.lookups('SELECT n.name, sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_nation n ON c.nation = n.id WHERE n.name = ''nation 3'' AND c.id = 3 GROUP BY n.name');

-- the settings that forbid it
SET enable_hashjoin = off;
SELECT count(*) FROM queries WHERE pg_temp.lookups(query) > 0;
RESET enable_hashjoin;
SET gpuagg.enabled = off;
SELECT count(*) FROM queries WHERE pg_temp.lookups(query) > 0;
RESET gpuagg.enabled;
SET gpuagg.feed = 'tuples';
SELECT count(*) FROM queries WHERE pg_temp.lookups(query) > 0;
RESET gpuagg.feed;
-- GEQO frees the relations of joins that it tries; the joins of the one that it chooses are lookups as without it
CREATE TEMP TABLE exhaustive AS SELECT n, query, pg_temp.lookups(query) AS lookups FROM queries
UNION ALL SELECT 100, q, pg_temp.lookups(q) FROM (VALUES ('SELECT n.name, p.brand, d.week, max(b.factor), max(c2.name), count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id
JOIN ld_nation n ON c.nation = n.id JOIN ld_part p ON f.part = p.id JOIN ld_day d USING (day) LEFT JOIN ld_both b ON b.cust = f.cust AND b.part = f.part
JOIN ld_cust c2 ON c2.id = c.id WHERE c.id IN (SELECT cust FROM ld_sale) AND NOT EXISTS (SELECT FROM ld_nation x WHERE x.id = f.part) GROUP BY 1, 2, 3')) v (q);
SELECT sum(lookups) FROM exhaustive;
SET geqo_threshold = 2;
SET geqo_seed = 0.3;
SELECT n, lookups, pg_temp.lookups(query) FROM exhaustive WHERE pg_temp.lookups(query) <> lookups ORDER BY n;
SET geqo_seed = 0.7;
SELECT n, lookups, pg_temp.lookups(query) FROM exhaustive WHERE pg_temp.lookups(query) <> lookups ORDER BY n;
SELECT n, pg_temp.compare(query) FROM exhaustive WHERE query !~ 'random' AND lookups > 1 ORDER BY n;
RESET geqo_seed;
RESET geqo_threshold;
DROP TABLE exhaustive;
-- an inner side that does not fit into memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
CREATE TABLE ld_wide AS SELECT g AS id, repeat('x', 100) AS x FROM generate_series(0, 999) g;
ALTER TABLE ld_wide ADD PRIMARY KEY (id);
VACUUM ANALYZE ld_wide;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT pg_temp.compare('SELECT max(x), count(*) FROM lf f JOIN ld_wide w ON f.part = w.id');
RESET enable_mergejoin;
RESET enable_nestloop;
RESET work_mem;
RESET hash_mem_multiplier;

-- EXPLAIN (VERBOSE) shows why joins are not lookups
CREATE FUNCTION pg_temp.why_not(query text, options text = 'VERBOSE, COSTS OFF') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	why text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		IF line ~ '^ *Lookup: ' THEN
			why := 'lookups';
		ELSIF line ~ '^ *(Join Not a Lookup|GpuAgg): ' THEN
			why := ltrim(line);
		END IF;
	END LOOP;
	RETURN why;
END $$;
CREATE FUNCTION pg_temp.json_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN QUERY SELECT ltrim(line) FROM string_to_table(plan, E'\n') line;
END $$;
SET gpuagg.require = 'require';
SELECT pg_temp.why_not(q), q FROM unnest(ARRAY[
	'SELECT note, count(*) FROM lf f JOIN ld_part p ON f.part = p.id GROUP BY note',
	'SELECT note, count(*) FROM lf GROUP BY note',
	'SELECT note, count(*) FROM lf f FULL JOIN ld_part p ON f.part = p.id GROUP BY note',
	'SELECT note, count(*) FROM lf f JOIN ld_part p ON f.part < p.id GROUP BY note',
	'SELECT note, count(*) FROM lf f JOIN ld_part p ON f.part = p.id AND f.amount + p.size > random() GROUP BY note',
	'SELECT note, count(*) FROM lf f WHERE EXISTS (SELECT FROM ld_sale s WHERE s.part = f.part AND 100 / (s.price + f.amount) < 50) GROUP BY note',
	'SELECT note, count(*) FROM lf f FULL JOIN ld_part p ON f.part = p.id LEFT JOIN ld_cust c ON c.id = f.cust GROUP BY note',
	'SELECT note, count(*) FROM lf f LEFT JOIN (SELECT id, 10 / (size + 1) AS x FROM ld_part) p ON f.part = p.id LEFT JOIN ld_day d ON d.week = p.x GROUP BY note',
	'SELECT count(*) FROM generate_series(1, 100000) f JOIN ld_part p ON f = p.id',
	'SELECT note, count(*) FROM lf f, LATERAL (SELECT id + f.part AS id FROM ld_part OFFSET 0) p WHERE f.part = p.id GROUP BY note']) q;
-- lookups that cannot be executed: only ANALYZE shows that
SELECT pg_temp.why_not(q, o || 'VERBOSE, COSTS OFF'), q FROM unnest(ARRAY['', 'ANALYZE, TIMING OFF, SUMMARY OFF, ']) o, unnest(ARRAY[
	'SELECT note, count(*) FROM lf f WHERE EXISTS (SELECT FROM ld_sale s WHERE s.part = f.part AND s.price < f.amount) AND NOT EXISTS (SELECT FROM ld_sale s WHERE s.cust = f.cust AND s.price > f.amount) GROUP BY note']) q;
SET work_mem = '64kB';
SELECT pg_temp.why_not(q, o || 'VERBOSE, COSTS OFF'), q FROM unnest(ARRAY['', 'ANALYZE, TIMING OFF, SUMMARY OFF, ']) o, unnest(ARRAY[
	'SELECT count(*), min(a.note || b.note) FROM lf a JOIN lf b ON a.id = b.id']) q;
RESET work_mem;
SELECT pg_temp.why_not('SELECT count(*) FROM lf f JOIN ld_cust c ON f.cust = c.id WHERE c.id = 7');
-- not without VERBOSE; in JSON
SELECT pg_temp.why_not('SELECT count(*) FROM ld_part p FULL JOIN ld_sale s ON s.part = p.id', 'COSTS OFF');
SELECT line FROM pg_temp.json_lines('SELECT count(*) FROM ld_part p FULL JOIN ld_sale s ON s.part = p.id') line WHERE line ~ 'Not a Lookup';
SET enable_hashjoin = off;
SELECT pg_temp.why_not('SELECT note, count(*) FROM lf f JOIN ld_part p ON f.part = p.id GROUP BY note');
RESET enable_hashjoin;
SET geqo_threshold = 2;
SELECT pg_temp.why_not('SELECT note, count(*) FROM lf f FULL JOIN ld_part p ON f.part = p.id GROUP BY note');
RESET geqo_threshold;
RESET gpuagg.require;

-- a LIMIT below a join
SELECT * FROM pg_temp.tree('SELECT count(*) FROM (SELECT cust FROM lf LIMIT 10000) f WHERE cust % 30 IN (SELECT id FROM ld_cust WHERE id < 20)');
SELECT pg_temp.compare('SELECT count(*) FROM (SELECT cust FROM lf LIMIT 10000) f WHERE cust % 30 IN (SELECT id FROM ld_cust WHERE id < 20)');

-- a partitioned fact table
CREATE TABLE lfp (LIKE lf) PARTITION BY RANGE (id);
CREATE TABLE lfp_1 PARTITION OF lfp FOR VALUES FROM (MINVALUE) TO (10000);
CREATE TABLE lfp_2 PARTITION OF lfp FOR VALUES FROM (10000) TO (MAXVALUE);
INSERT INTO lfp SELECT * FROM lf;
VACUUM ANALYZE lfp;
SELECT * FROM pg_temp.tree('SELECT nation, brand, count(*) FROM lfp f JOIN ld_cust c ON f.cust = c.id JOIN ld_part p ON f.part = p.id WHERE size = 1 GROUP BY 1, 2');
SELECT pg_temp.compare('SELECT nation, brand, count(*) FROM lfp f JOIN ld_cust c ON f.cust = c.id JOIN ld_part p ON f.part = p.id WHERE size = 1 GROUP BY 1, 2');
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT pg_temp.compare('SELECT f.id, count(*) FROM lfp f JOIN lfp g USING (id) JOIN ld_cust c ON f.cust = c.id WHERE f.id % 100 = 1 GROUP BY 1');
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;

-- workers share the rows of the fact table, and each makes its own lookups
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE lf SET (parallel_workers = 2);
SELECT * FROM pg_temp.tree('SELECT c.nation, count(*), sum(amount) FROM lf f JOIN ld_cust c ON f.cust = c.id JOIN ld_part p ON f.part = p.id WHERE p.size = 3 GROUP BY c.nation');
SELECT n, taken AS wanted, query FROM queries WHERE (pg_temp.lookups(query) > 0) <> taken ORDER BY n;
SELECT n, pg_temp.compare(query) FROM queries WHERE query !~ 'random' AND n % 3 = 1 AND query !~ '[/%] 0' ORDER BY n;
-- in parallel
SET work_mem = '64kB';
SELECT pg_temp.why_not('SELECT count(*), min(a.note || b.note) FROM lf a JOIN lf b ON a.id = b.id');
RESET work_mem;
DROP TABLE lf, lfp, ld_cust, ld_nation, ld_part, ld_day, ld_sale, ld_both, ld_wide;
-- a repeated subquery of few rows: core's joins by indexes take less time than to make lookups again for each outer row
RESET ALL;
SET client_min_messages = warning;
SET gpuagg.replace_builtin = on;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE lp_suppliers AS SELECT s, s % 25 AS n, repeat('x', 100) AS pad FROM generate_series(1, 5000) s;
ALTER TABLE lp_suppliers ADD PRIMARY KEY (s);
CREATE TABLE lp_offers AS SELECT p, (p * 7 + i * 1250) % 5000 + 1 AS s, (p * i % 97)::numeric AS c, repeat('x', 60) AS pad FROM generate_series(1, 10000) p, generate_series(0, 3) i;
ALTER TABLE lp_offers ADD PRIMARY KEY (p, s);
CREATE TABLE lp_nations AS SELECT n, n % 5 AS r FROM generate_series(0, 24) n;
ALTER TABLE lp_nations ADD PRIMARY KEY (n);
CREATE TABLE lp_regions AS SELECT r, 'r' || r AS name FROM generate_series(0, 4) r;
ALTER TABLE lp_regions ADD PRIMARY KEY (r);
VACUUM ANALYZE lp_suppliers, lp_offers, lp_nations, lp_regions;
SELECT gpuagg_cache_prewarm('lp_suppliers') > 0 AS cached;
CREATE FUNCTION pg_temp.has_lookups(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line LIKE '%Lookup:%' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT pg_temp.has_lookups('SELECT p, (SELECT min(c) FROM lp_offers o JOIN lp_suppliers s ON s.s = o.s JOIN lp_nations n ON n.n = s.n JOIN lp_regions r ON r.r = n.r WHERE o.p = x.p AND r.name = ''r3'')
	FROM generate_series(1, 600) x(p)') AS few,
	pg_temp.has_lookups('SELECT p, (SELECT min(c) FROM lp_offers o JOIN lp_suppliers s ON s.s = o.s JOIN lp_nations n ON n.n = s.n WHERE o.p % 600 > x.p) FROM generate_series(1, 600) x(p)') AS many;
DROP TABLE lp_suppliers, lp_offers, lp_nations, lp_regions;
