-- States of regression have six values up to PostgreSQL 18, and eight from 19 on. The extension's functions accept both.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
CREATE TABLE pairs AS SELECT i % 4 AS k, i % 11 / 4.0::float8 AS y, i % 13 / 8.0::float8 AS x, 0.5::float8 AS same FROM generate_series(1, 40) i;
CREATE TABLE finals AS SELECT oid::regproc::text AS final, 'gpu_' || regexp_replace(proname, '^gpuagg_float8_', '') AS aggregate FROM pg_proc
WHERE proname ~ '^gpuagg_float8_(corr|covar_|regr_)' AND proname !~ '(accum|combine)';
CREATE AGGREGATE merged(float8[]) (SFUNC = gpuagg_float8_regr_combine, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}');
-- a state as an older release and as a newer release makes it
CREATE FUNCTION six(states float8[]) RETURNS float8[] LANGUAGE sql AS 'SELECT $1[1:6]';
CREATE FUNCTION eight(states float8[]) RETURNS float8[] LANGUAGE sql AS $$
	SELECT CASE WHEN cardinality($1) = 8 THEN $1 WHEN $1[1] = 0 THEN $1 || '{0,0}' ELSE $1 || '{NaN,NaN}' END $$;
-- parts that are merged give the aggregate's answer
CREATE FUNCTION wrong(x text, condition text) RETURNS TABLE (tests bigint, wrong text) LANGUAGE plpgsql AS $$
DECLARE
	f record;
	whole text;
	parts text;
BEGIN
	tests := 0;
	FOR f IN SELECT * FROM finals, unnest('{six, eight}'::text[]) form ORDER BY 1, 3 LOOP
		EXECUTE format('SELECT round(%s(y, %s)::numeric, 9) FROM pairs WHERE %s', f.aggregate, x, condition) INTO whole;
		EXECUTE format('SELECT round(%s(merged(s))::numeric, 9) FROM (SELECT %s(gpuagg_float8_regr_accum_state(y, %s)) AS s FROM pairs WHERE %s GROUP BY k) parts',
			f.final, f.form, x, condition) INTO parts;
		tests := tests + 1;
		IF whole IS DISTINCT FROM parts THEN
			wrong := concat_ws(E'\n', wrong, format('%s of %s values: %s, not %s', f.final, f.form, parts, whole));
		END IF;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM wrong('x', 'true');
SELECT * FROM wrong('same', 'true');
SELECT * FROM wrong('x', 'k = 1');
SELECT * FROM wrong('x', 'false');
-- pairs are added to states of both forms
SELECT six(gpuagg_float8_regr_accum('{0,0,0,0,0,0}', 1, 2)), six(gpuagg_float8_regr_accum('{0,0,0,0,0,0,0,0}', 1, 2)), six(gpuagg_float8_regr_accum('{1,2,0,1,0,0}', 4, 3)),
	six(gpuagg_float8_regr_accum('{1,2,0,1,0,0,2,1}', 4, 3));
-- all others are errors
\set VERBOSITY sqlstate
SELECT gpuagg_float8_corr('{}');
SELECT gpuagg_float8_corr('{1,2,3,4,5,6,7}');
SELECT gpuagg_float8_corr('{1,2,3,4,5,6,7,8,9}');
SELECT gpuagg_float8_corr('{{1,2,3,4,5,6}}');
SELECT gpuagg_float8_corr('{{1,2,3,4,5,6,7,8}}');
SELECT gpuagg_float8_corr('{1,2,3,4,5,NULL}');
SELECT gpuagg_float8_corr('{1,2,3,4,5,6,7,NULL}');
SELECT gpuagg_float8_regr_accum('{1,2,3,4,5}', 1, 2);
SELECT gpuagg_float8_regr_combine('{1,2,3,4,5,6}', '{1,2,3,4,5,6,7}');
\set VERBOSITY default
SELECT gpuagg_float8_corr(NULL) IS NULL AS is_null;
DROP AGGREGATE merged(float8[]);
DROP FUNCTION six, eight, wrong;
DROP TABLE pairs, finals;
