-- Tests in a database of test/fdw.sh with foreign tables in another database, "far". Columns of foreign tables have other types than the
-- columns of the remote tables, and identifiers of objects have other OIDs.
\ir fdw_functions.sql
SET client_min_messages = warning;
SET timezone = 'America/New_York';
SET datestyle = 'SQL, DMY';

-- Results of pairs of types. One partition is foreign, with a column of the table "far_rows", and one is local.
CREATE TABLE pairs (far_column text, type text, tried bool, line text);
-- Returns calls of the aggregates that accept the type, for aggregates that postgres_fdw can ship.
CREATE FUNCTION calls(type text) RETURNS text[] LANGUAGE sql AS $$
	SELECT array_agg(DISTINCT call) FROM (
		SELECT unnest(ARRAY['gpu_count(x)', 'gpu_approx_count_distinct(x)', 'gpu_argmax(x, x)', 'gpu_argmin(x, n)', 'gpu_last(n, x)']) AS call
		UNION ALL
		SELECT format('shown(%s(x))', p.proname) FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND deptype = 'e'
			JOIN pg_aggregate a ON a.aggfnoid = p.oid
		WHERE pronargs = 1 AND proargtypes[0] = type::regtype AND aggkind = 'n' AND aggcombinefn <> 0
			AND p.proname ~ '^gpu_' AND p.proname !~ 'median|mad|subarray|run|product|any') s $$;
CREATE FUNCTION try(far_column text, type text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	least text;
BEGIN
	EXECUTE format('CREATE TABLE t (part int, n int, h int, x %s) PARTITION BY LIST (part)', type);
	CREATE FOREIGN TABLE t1 PARTITION OF t FOR VALUES IN (1) SERVER far OPTIONS (table_name 'far_rows');
	EXECUTE format('ALTER FOREIGN TABLE t1 ALTER x OPTIONS (column_name %L)', far_column);
	CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
	PERFORM set_config('gpuagg.enabled', 'off', true);
	BEGIN
		-- fetched rows, some of which go to the local partition
		CREATE TABLE flat AS SELECT * FROM t;
		INSERT INTO t2 SELECT 2, n, h, x FROM flat WHERE n % 3 = 0;
		INSERT INTO flat TABLE t2;
		SELECT x::text INTO least FROM flat ORDER BY x LIMIT 1;
		PERFORM set_config('gpuagg.enabled', 'on', true);
		INSERT INTO pairs SELECT far_column, type, true,
				same(format('%s over %s: %s by %s', type, far_column, call, key), format('SELECT %s, %s FROM t GROUP BY 1', key, call), 'partial')
			FROM unnest(calls(type) || format('gpu_count(*) FILTER (WHERE x > %L::%s)', least, type)) call, unnest(ARRAY['h', 'x']) key
			WHERE (key = 'h' OR call ~ 'count|argmax')
				-- money has no hash, and postgres_fdw sends no constants of type name
				AND NOT (type = 'money' AND call ~ 'distinct') AND NOT (type = 'name' AND call ~ 'FILTER');
	EXCEPTION WHEN OTHERS THEN
		INSERT INTO pairs VALUES (far_column, type, false, sqlerrm);
	END;
	DROP TABLE IF EXISTS flat;
	DROP TABLE t;
END $$;
SELECT try(c, t)
FROM unnest(ARRAY['i2', 'i4', 'i8', 'num', 'short', 'f4', 'f8', 'txt', 'vc', 'ch', 'en', 'dom', 'b', 'd', 'day_text', 'ts', 'tz', 'tm', 'iv', 'm', 'ip', 'nm']) c,
	unnest(ARRAY['int2', 'int4', 'int8', 'numeric', 'numeric(6, 1)', 'float4', 'float8', 'text', 'varchar', 'varchar(40)', 'char(30)', 'bool', 'date',
		'timestamp', 'timestamp(0)', 'timestamptz', 'time', 'interval', 'money', 'inet', 'name']) t;
SELECT line FROM pairs WHERE line ~ '^not' LIMIT 40;
SELECT format('%s %s pairs of types, %s aggregates', CASE WHEN bool_or(line ~ '^not') OR count(*) < 2000 THEN 'not ok' ELSE 'ok' END,
	count(DISTINCT far_column || type), count(*)) FROM pairs WHERE tried;

-- Identifiers of objects with the same names and other OIDs.
CREATE TABLE t (part int, n int, h int, c regclass, cs regclass[], ty regtype, o oid) PARTITION BY LIST (part);
CREATE FOREIGN TABLE t1 PARTITION OF t FOR VALUES IN (1) SERVER far OPTIONS (table_name 'far_names');
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
CREATE TABLE names_first (); CREATE TABLE omega (); CREATE TABLE alpha (); CREATE TYPE feeling AS ENUM ('sad', 'glad');
INSERT INTO t2 SELECT 2, i, i % 3, r, ARRAY[r, 'omega'], CASE WHEN i % 2 = 0 THEN 'feeling'::regtype ELSE 'int' END, i
FROM (SELECT i, (ARRAY['alpha', 'omega', 'pg_class'])[1 + i % 3]::regclass r FROM generate_series(1, 20) i) s;
SET gpuagg.enabled = off;
CREATE TABLE flat AS TABLE t;
RESET gpuagg.enabled;
SELECT same('identifiers: ' || call, format('SELECT h, %s FROM t GROUP BY 1', call), 'rows')
FROM unnest(ARRAY['gpu_approx_count_distinct(c)', 'gpu_approx_count_distinct(cs)', 'gpu_approx_count_distinct(ty)', 'gpu_argmax(c, n)', 'gpu_argmax(cs, n)',
	'gpu_argmin(n, c)', 'gpu_max(c::oid)', 'gpu_max(cs)', 'gpu_count(*) FILTER (WHERE c = ''alpha''::regclass)', 'gpu_argmax(o::regclass, n)']) call;
SELECT same('identifiers as keys: ' || key, format('SELECT %s, gpu_max(o), gpu_avg(n) FROM t GROUP BY 1', key), 'partial') FROM unnest(ARRAY['c', 'ty']) key;
-- postgres_fdw assumes that these have the same order on all servers, so only the place is checked
SELECT CASE place(query) WHEN 'rows' THEN 'ok' ELSE 'not ok' END || ' ' || query
FROM unnest(ARRAY['SELECT c::oid, gpu_max(n) FROM t GROUP BY 1', 'SELECT o::regclass, gpu_max(n) FROM t GROUP BY 1']) query;

-- States of another database.
CREATE FOREIGN TABLE far_states (agg text, state gpuagg_state) SERVER far;
SELECT CASE WHEN gpuagg_finish(state, 'gpu_argmax(anyelement, anycompatible)', NULL::regclass) = 'alpha'::regclass THEN 'ok' ELSE 'not ok' END
	|| ' identifier in a state of ' || agg FROM far_states WHERE agg = 'one';
SELECT CASE WHEN gpuagg_finish(state, 'gpu_argmax(anyelement, anycompatible)', NULL::regclass[]) = ARRAY['alpha', 'omega']::regclass[] THEN 'ok' ELSE 'not ok' END
	|| ' identifiers in a state of ' || agg FROM far_states WHERE agg = 'array';
SET search_path = pg_catalog;
SELECT CASE WHEN public.gpuagg_finish(state, 'public.gpu_argmax(anyelement, anycompatible)', NULL::regclass) = 'public.alpha'::regclass THEN 'ok' ELSE 'not ok' END
	|| ' identifier in a state, with another search_path' FROM public.far_states WHERE agg = 'one';
RESET search_path;

-- Values that only the far database distinguishes, in states that do not have all values.
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE words (part int, word text COLLATE any_case) PARTITION BY LIST (part);
CREATE FOREIGN TABLE words1 PARTITION OF words FOR VALUES IN (1) SERVER far OPTIONS (table_name 'far_words');
CREATE TABLE words2 PARTITION OF words FOR VALUES IN (2);
INSERT INTO words2 SELECT 2, 'Often' FROM generate_series(1, 10);
SELECT CASE WHEN place(query) = 'partial' AND top -> 0 = '{"value": "OFTEN", "count": 2010, "error": 0}' THEN 'ok' ELSE 'not ok ' || (top ->> 0) END || ' equal values of another collation'
FROM (SELECT gpu_top_k(word, 2) AS top, 'SELECT gpu_top_k(word, 2) FROM words' AS query FROM words) s;
