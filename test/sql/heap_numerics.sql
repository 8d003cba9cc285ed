-- Numerics of every scale, as decimals, from heap pages and from tuples. The position of the base 10000 digits
-- depends on the scale, and zeros at their ends are not stored.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include
SET max_parallel_workers_per_gather = 0;

DO $$
DECLARE
	columns text := '';
	small text := '';
	nines text := '';
	one text := '';
BEGIN
	FOR s IN 0 .. 24 LOOP
		columns := columns || format(', d%1$s numeric(%2$s, %1$s)', s, s + 11);
		-- numbers of digits before and after the point: none, one, several, all
		small := small || format(', CASE WHEN i %% 19 = 0 THEN NULL WHEN i %% 97 = 0 THEN ''NaN'' ELSE (1 - i %% 3)
			* trunc((i * 7919::int8 %% 1000003)::numeric ^ (i %% 2 + 1) / 10::numeric ^ (i %% 12) %% 1e11::numeric, i %% %s) END', s + 1);
		nines := nines || ', ' || repeat('9', 11) || '.' || repeat('9', s);
		one := one || ', -0.' || repeat('0', greatest(s - 1, 0)) || '1';
	END LOOP;
	EXECUTE format('CREATE TABLE decimals (k int%s)', columns);
	EXECUTE format('INSERT INTO decimals SELECT i %% 7%s FROM generate_series(1, 3000) i UNION ALL VALUES (8%s), (8%s), (9%s)', small, nines, nines, one);
END $$;
VACUUM ANALYZE decimals;
SELECT d1, d2, d7, d11 FROM decimals WHERE k = 5 AND d1 <> 'NaN' ORDER BY d24 DESC NULLS LAST LIMIT 8;
CREATE FUNCTION pg_temp.differences(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT answer FROM generate_series(0, 24) s, pg_temp.same(replace(query, '$', s::text)) answer WHERE answer !~ '^same: \d{1,4} rows$'
$$;
SET gpuagg.feed = 'heap';
SELECT pg_temp.differences('SELECT k, @count(d$), @sum(d$), @avg(d$), @min(d$), @max(d$), @variance(d$), @sum(d$ * 3 - 1) FROM decimals GROUP BY k');
SELECT pg_temp.differences('SELECT d$, @count(*) FROM decimals GROUP BY 1');
SET gpuagg.feed = 'tuples';
SELECT pg_temp.differences('SELECT k, @count(d$), @sum(d$), @avg(d$), @min(d$), @max(d$), @variance(d$), @sum(d$ * 3 - 1) FROM decimals GROUP BY k');
RESET gpuagg.feed;

DROP TABLE decimals;
