-- Every family of aggregates with every way in which the custom scan may run: strategies, small batches,
-- spilling, sorted input, parallel workers.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include

CREATE TABLE agg_rows AS
SELECT i, i % 7 AS k,
	nullif(i * 7919 % 2003, 5)::int2 AS s, nullif(i * 7919 % 2000003, 5) - 1000000 AS n,
	(nullif(i % 11, 0) * 1234567890123456 - 5000000000000000)::int8 AS b,
	(nullif(i % 13, 0) / 4.0)::float4 AS r, (nullif(i % 17, 0) / 8.0 - 1)::float8 AS d,
	nullif(i % 19, 0)::float8 AS e,
	nullif(i * 7919 % 100003, 7)::numeric / 7 AS m, (nullif(i % 23, 0) * 12345.678)::numeric(14, 3) AS c,
	(nullif(i % 29, 0) * 123456789012345.5)::numeric(20, 1) AS wide,
	nullif(i % 31, 0) * interval '1 day 2 hours' AS iv, (nullif(i % 37, 0) * 1.5)::numeric::money AS mo,
	date '2000-01-01' + nullif(i % 41, 0) AS da, time '00:00' + nullif(i % 43, 0) * interval '1 minute' AS ti,
	timestamp '2000-01-01' + nullif(i % 47, 0) * interval '1 hour' AS ts,
	timestamptz '2000-01-01 00:00+00' - nullif(i % 53, 0) * interval '1 hour' AS tz,
	(nullif(i % 59, 0) + 4294960000)::oid AS o,
	'x' || nullif(i % 61, 0) AS tx, nullif(i % 3, 0) = 1 AS bo
FROM generate_series(1, 2500) i;
ANALYZE agg_rows;
CREATE INDEX ON agg_rows (k);

CREATE TEMP TABLE lists AS SELECT * FROM (VALUES
	('@count(*), @count(s), @count(tx), @count(c), @sum(s), @sum(n), @sum(b), @sum(r), @sum(d), @sum(m), @sum(c), @sum(wide), @sum(iv), @sum(mo)'),
	('@avg(s), @avg(n), @avg(b), @avg(r), @avg(d), @avg(m), @avg(c), @avg(wide), @avg(iv)'),
	('@min(s), @min(n), @min(b), @min(r), @min(d), @min(m), @min(c), @min(iv), @min(mo), @min(da), @min(ti), @min(ts), @min(tz), @min(o), @min(tx)'),
	('@max(s), @max(n), @max(b), @max(r), @max(d), @max(m), @max(c), @max(iv), @max(mo), @max(da), @max(ti), @max(ts), @max(tz), @max(o), @max(tx)'),
	('@variance(s), @variance(n), @variance(b), round(@variance(r)::numeric, 7), round(@variance(d)::numeric, 7), @variance(m), @variance(c)'),
	('@stddev_pop(s), @stddev_pop(n), @stddev_pop(b), round(@stddev_pop(d)::numeric, 7), @stddev_pop(m), @stddev_pop(c)'),
	('round(@corr(d, e)::numeric, 7), round(@covar_pop(d, e)::numeric, 7), round(@regr_slope(d, e)::numeric, 7), @regr_avgx(d, e), @regr_avgy(d, e), @regr_count(d, e), round(@regr_sxx(d, e)::numeric, 5)'),
	('@bit_and(s), @bit_or(n), @bit_xor(b), @bool_and(bo), @bool_or(bo), @every(bo), @sum(n) FILTER (WHERE bo), @avg(c) FILTER (WHERE i % 2 = 0), @max(tx) FILTER (WHERE d > 0)')
) AS v(list);
-- some rows have numerics that decimals cannot represent
UPDATE agg_rows SET c = 'NaN' WHERE i % 1009 = 0 AND k = 1;

-- all lists of aggregates, without keys and with every kind of keys, with core's answers
CREATE TEMP TABLE queries AS
SELECT keys, query, pg_temp.answer(replace(query, '@', ''), 'allow', false) AS core
FROM (VALUES (''), ('k'), ('i % 601'), ('tx, bo'), ('c')) AS g(keys), lists l,
	format(CASE keys WHEN '' THEN 'SELECT %2$s FROM agg_rows' ELSE 'SELECT %1$s, %2$s FROM agg_rows GROUP BY %1$s' END, keys, l.list) AS query;

-- sweep(settings): runs all of them in the custom scan with these settings
CREATE FUNCTION pg_temp.sweep(settings text[]) RETURNS TABLE (keys text, result text, lists bigint) LANGUAGE plpgsql AS $$
DECLARE
	setting text;
BEGIN
	FOREACH setting IN ARRAY settings LOOP
		PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), false);
	END LOOP;
	RETURN QUERY
		SELECT q.keys, CASE WHEN q.core = custom THEN split_part(q.core, E'\n', 1)
			ELSE format(E'DIFFERENT\ncore %s\ncustom scan %s', q.core, custom) END, count(*)
		FROM queries q, pg_temp.answer(replace(q.query, '@', 'gpu_'), 'require', false) AS custom
		GROUP BY 1, 2 ORDER BY 1, 2;
	FOREACH setting IN ARRAY settings LOOP
		EXECUTE format('RESET %s', split_part(setting, '=', 1));
	END LOOP;
END $$;

SELECT * FROM pg_temp.sweep('{gpuagg.feed=tuples,gpuagg.batch_rows=64}');
SELECT * FROM pg_temp.sweep('{gpuagg.strategy=segmented}');
SELECT * FROM pg_temp.sweep('{gpuagg.strategy=direct}');
SELECT * FROM pg_temp.sweep('{gpuagg.strategy=hash,gpuagg.batch_rows=1000}');
-- spilling
SELECT * FROM pg_temp.sweep('{work_mem=64kB,hash_mem_multiplier=1,gpuagg.strategy=hash}');
SELECT * FROM pg_temp.sweep('{work_mem=64kB,hash_mem_multiplier=1,gpuagg.strategy=sort}');
-- sorted input
SELECT * FROM pg_temp.sweep('{enable_seqscan=off,enable_bitmapscan=off,gpuagg.strategy=segmented}');

-- parallel workers
ALTER TABLE agg_rows SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM pg_temp.sweep('{}');
SELECT * FROM pg_temp.sweep('{work_mem=64kB,hash_mem_multiplier=1}');
SELECT * FROM pg_temp.sweep('{max_parallel_workers=0}');
DROP TABLE agg_rows;
