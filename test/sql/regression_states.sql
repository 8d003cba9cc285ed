-- States of regression have six values up to PostgreSQL 18, and eight from 19 on. The extension's functions accept both.
CREATE TABLE pairs AS SELECT i, (i * 7 % 11 / 3.0)::float8 AS y, (i * 5 % 13 / 7.0)::float8 AS x, (i % 4) AS k FROM generate_series(1, 40) i;
CREATE TABLE finals AS SELECT oid::regprocedure AS final, 'gpu_' || replace(replace(proname, 'gpuagg_', ''), 'float8_', '') AS aggregate FROM pg_proc
WHERE proname ~ '^gpuagg_float8_(corr|covar_|regr_)' AND proname !~ '(accum|combine)' AND pronargs = 1;
-- a state as a server with an older release has it, and as one with a newer release has it
CREATE FUNCTION six(states float8[]) RETURNS float8[] LANGUAGE sql AS 'SELECT $1[1:6]';
CREATE FUNCTION eight(states float8[]) RETURNS float8[] LANGUAGE sql AS $$
	SELECT CASE WHEN $1[1] = 0 THEN $1[1:6] || '{0,0}'::float8[] WHEN cardinality($1) = 6 THEN $1 || '{NaN,NaN}'::float8[] ELSE $1 END $$;
CREATE FUNCTION answers(condition text, form text) RETURNS TABLE (final regprocedure, same boolean) LANGUAGE plpgsql AS $$
DECLARE
	f record;
BEGIN
	FOR f IN SELECT * FROM finals ORDER BY finals.final::text COLLATE "C" LOOP
		final := f.final;
		EXECUTE format('WITH states AS (SELECT k, %3$s(gpuagg_float8_regr_accum_state(y, x)) AS s FROM pairs WHERE %4$s GROUP BY k)
			SELECT (SELECT %1$s(y, x) FROM pairs WHERE %4$s) IS NOT DISTINCT FROM
				(SELECT %2$s(%3$s(gpuagg_float8_regr_combine_state(s))) FROM states)', f.aggregate, f.final::regproc, form, condition) INTO same;
		RETURN NEXT;
	END LOOP;
END $$;
