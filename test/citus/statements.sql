-- Statements that are not single queries, and so not in shapes.sql. Each function statement_*() returns lines of TAP.

CREATE FUNCTION tap(ok bool, name text, detail text DEFAULT '') RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN ok THEN 'ok - ' ELSE 'not ok - ' END || name || CASE WHEN ok THEN '' ELSE ': ' || coalesce(detail, '') END
$$;

CREATE FUNCTION statement_insert_select() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	wrong text;
	plan text := plan_of('INSERT INTO dist_out SELECT k, gpu_count(*), gpu_sum(i4) FROM dist_rows GROUP BY k');
BEGIN
	SET LOCAL gpuagg.require = require;
	INSERT INTO dist_out SELECT k, gpu_count(*), gpu_sum(i4), gpu_avg(n) FROM dist_rows GROUP BY k;
	INSERT INTO local_out SELECT k, count(*), sum(i4), avg(n) FROM local_rows GROUP BY k;
	RETURN NEXT tap(place_of(plan) = 'workers', 'plan of INSERT ... SELECT', plan);
	wrong := difference('SELECT * FROM dist_out', 'SELECT * FROM local_out', true);
	RETURN NEXT tap(wrong = '', 'INSERT ... SELECT grouped by the distribution column', wrong);
	INSERT INTO dist_out SELECT g, gpu_count(*) FILTER (WHERE b), gpu_sum(i4), gpu_avg(n) FROM dist_rows WHERE g IS NOT NULL GROUP BY g;
	INSERT INTO local_out SELECT g, count(*) FILTER (WHERE b), sum(i4), avg(n) FROM local_rows WHERE g IS NOT NULL GROUP BY g;
	wrong := difference('SELECT * FROM dist_out', 'SELECT * FROM local_out', true);
	RETURN NEXT tap(wrong = '', 'INSERT ... SELECT grouped by another column', wrong);
	CREATE TEMP TABLE made AS SELECT h, gpu_count(*) AS c FROM dist_rows GROUP BY h;
	wrong := difference('SELECT * FROM made', 'SELECT h, count(*) AS c FROM local_rows GROUP BY h', true);
	RETURN NEXT tap(wrong = '', 'CREATE TABLE AS', wrong);
	DROP TABLE made;
END
$$;

-- Runs queries with parameters in plpgsql. Citus makes no generic plan for them.
CREATE FUNCTION counted(bound int, tenant int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	many text;
	few text;
BEGIN
	SELECT format('%s %s', gpu_count(*), gpu_sum(i4)) INTO many FROM dist_rows WHERE i4 > bound;
	SELECT format(' %s %s', gpu_count(*) FILTER (WHERE b AND i2 > bound), gpu_sum(i4)) INTO few FROM dist_rows WHERE k = tenant;
	RETURN many || few;
END
$$;

CREATE FUNCTION statement_parameters() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	got text;
	want text;
BEGIN
	SET LOCAL gpuagg.require = require;
	FOR i IN 1..9 LOOP
		got := counted(i, i * 3);
		want := (SELECT format('%s %s', count(*), sum(i4)) FROM local_rows WHERE i4 > i) ||
			(SELECT format(' %s %s', count(*) FILTER (WHERE b AND i2 > i), sum(i4)) FROM local_rows WHERE k = i * 3);
		IF got IS DISTINCT FROM want THEN
			RETURN NEXT tap(false, 'parameters', format('%s: %s, core %s', i, got, want));
			RETURN;
		END IF;
	END LOOP;
	RETURN NEXT tap(true, 'parameters');
END
$$;

CREATE FUNCTION statement_prepared() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	got text[];
	want text[];
BEGIN
	SET LOCAL gpuagg.require = require;
	PREPARE counts (int, int) AS SELECT g, gpu_count(*) AS c, gpu_avg(n) AS a FROM dist_rows WHERE i4 > $1 GROUP BY g HAVING gpu_count(*) > $2;
	FOR i IN 1..7 LOOP
		got := rows_of(format('EXECUTE counts (%s, 10)', i * 10));
		want := rows_of(format('SELECT g, count(*) AS c, avg(n) AS a FROM local_rows WHERE i4 > %s GROUP BY g HAVING count(*) > 10', i * 10));
		IF got IS DISTINCT FROM want THEN
			RETURN NEXT tap(false, 'EXECUTE', i::text);
			RETURN;
		END IF;
	END LOOP;
	RETURN NEXT tap(place_of(plan_of('EXECUTE counts (1, 10)')) = 'workers', 'EXECUTE', plan_of('EXECUTE counts (1, 10)'));
	DEALLOCATE counts;
END
$$;

CREATE FUNCTION statement_cursor() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT h, gpu_count(*) AS n, gpu_sum(i4) AS s FROM dist_rows GROUP BY h ORDER BY h;
	found record;
	got text := '';
BEGIN
	FOR found IN c LOOP
		got := got || found::text;
	END LOOP;
	RETURN NEXT tap(got = (SELECT string_agg((h, n, s)::text, '' ORDER BY h) FROM (SELECT h, count(*) AS n, sum(i4) AS s FROM local_rows GROUP BY h) l), 'a cursor', got);
END
$$;

-- Names and types of columns are the same as without Citus.
CREATE FUNCTION statement_columns() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	columns text := 'gpu_count(*), gpu_sum(i2), gpu_avg(i4), gpu_min(d), gpu_max(f4), gpu_stddev(i4), gpu_variance(f8), gpu_bit_and(i2), gpu_every(b)';
	got text;
	want text;
BEGIN
	EXECUTE format('CREATE TEMP TABLE got AS SELECT %s FROM dist_rows', columns);
	EXECUTE format('CREATE TEMP TABLE want AS SELECT %s FROM local_rows', columns);
	SELECT string_agg(format('%s %s', attname, atttypid::regtype), ', ' ORDER BY attnum) FILTER (WHERE attrelid = 'got'::regclass),
		string_agg(format('%s %s', attname, atttypid::regtype), ', ' ORDER BY attnum) FILTER (WHERE attrelid = 'want'::regclass)
		INTO got, want FROM pg_attribute WHERE attnum > 0;
	RETURN NEXT tap(got = want, 'names and types of columns', format('%s, not %s', got, want));
	DROP TABLE got, want;
END
$$;

-- The type bit has no hash function, so the custom scan cannot group by it. If the custom scan is required, the workers raise an error.
CREATE FUNCTION statement_required() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT bi, gpu_count(*) AS c, gpu_sum(i4) AS s FROM dist_rows GROUP BY bi';
	wrong text := difference(query, 'SELECT bi, count(*) AS c, sum(i4) AS s FROM local_rows GROUP BY bi', true);
BEGIN
	RETURN NEXT tap(wrong = '', 'a query that workers cannot execute by the custom scan', wrong);
	SET LOCAL gpuagg.require = require;
	EXECUTE query;
	PERFORM * FROM rows_of(query);
	RETURN NEXT tap(false, 'it is an error if the custom scan is required', 'no error');
EXCEPTION WHEN OTHERS THEN
	RETURN NEXT tap(SQLERRM LIKE '%cannot be executed by the custom scan%', 'it is an error if the custom scan is required', SQLERRM);
END
$$;

-- Tables that are not in the metadata of Citus.
CREATE FUNCTION statement_local() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan text := plan_of('SELECT g, gpu_count(*) FROM local_rows GROUP BY g');
BEGIN
	RETURN NEXT tap(plan ~ '^Custom Scan \(GpuAgg\)', 'local tables', plan);
	plan := plan_of('SELECT g, count(*) FROM local_rows GROUP BY g');
	RETURN NEXT tap(plan !~ 'GpuAgg', 'PostgreSQL''s aggregates over local tables', plan);
END
$$;

-- A call that is replaced by PostgreSQL's aggregate still needs the privilege EXECUTE on the aggregate that was called.
CREATE FUNCTION statement_privileges() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	CREATE ROLE citus_nobody LOGIN;
	GRANT SELECT ON dist_rows TO citus_nobody;
	REVOKE EXECUTE ON FUNCTION gpu_sum(int4) FROM PUBLIC;
	SET LOCAL ROLE citus_nobody;
	PERFORM gpu_sum(i4) FROM dist_rows;
	RETURN NEXT tap(false, 'EXECUTE', 'no error');
EXCEPTION WHEN OTHERS THEN
	RETURN NEXT tap(SQLERRM = 'permission denied for aggregate gpu_sum', 'EXECUTE', SQLERRM);
END
$$;

-- Volatile arguments are evaluated for each row: the least and the greatest of many random numbers are near the bounds.
CREATE FUNCTION statement_volatile() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	least float8;
	greatest float8;
BEGIN
	SELECT (gpu_min(ARRAY[random() + i4 * 0]))[1], (gpu_max(ARRAY[random() + i4 * 0]))[1] INTO least, greatest FROM dist_rows WHERE i4 IS NOT NULL;
	RETURN NEXT tap(least < 0.01 AND greatest > 0.99, 'volatile arguments', format('%s .. %s', least, greatest));
END
$$;

-- Citus does not distribute aggregates in such statements.
CREATE FUNCTION statement_returning() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	got text;
BEGIN
	WITH made AS (INSERT INTO dist_out SELECT k, gpu_count(*), gpu_sum(i4), gpu_avg(n) FROM dist_rows GROUP BY k RETURNING c, s)
		SELECT format('%s %s', gpu_sum(c), gpu_sum(s)) INTO got FROM made;
	RETURN NEXT tap(got = (SELECT format('%s %s', count(*), sum(i4)) FROM local_rows), 'INSERT ... RETURNING', got);
	SET LOCAL gpuagg.require = require;
	INSERT INTO dist_out SELECT k, gpu_count(*) FROM dist_rows WHERE k = 3 GROUP BY k RETURNING c INTO got;
	RETURN NEXT tap(false, 'INSERT ... RETURNING is an error if the custom scan is required', 'no error');
EXCEPTION WHEN OTHERS THEN
	RETURN NEXT tap(SQLERRM LIKE '%cannot be executed by the custom scan%', 'INSERT ... RETURNING is an error if the custom scan is required', SQLERRM);
END
$$;

-- The setting is the coordinator's: it chooses the aggregates in the queries that the workers get.
CREATE FUNCTION statement_float_sum() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT %s gpu_sum(f8 / 7) AS s, gpu_avg(f8 / 7) AS a, gpu_stddev(f4 / 7) AS d, gpu_corr(f8 / 7, i4 / 7.0::float8) AS c FROM dist_rows %s';
	ours text;
	wrong text;
BEGIN
	SET LOCAL gpuagg.float_sum = exact;
	FOREACH ours IN ARRAY ARRAY[format(query, 'k,', 'GROUP BY k'), format(query, 'g,', 'GROUP BY g'), format(query, '', '')] LOOP
		wrong := difference(ours, replace(ours, 'dist_rows', 'local_rows'), true);
		RETURN NEXT tap(wrong = '', 'exact sums', wrong);
		RETURN NEXT tap(place_of(plan_of(ours)) = 'workers', 'exact sums are computed by the workers', plan_of(ours));
	END LOOP;
END
$$;
