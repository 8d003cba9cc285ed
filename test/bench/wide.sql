-- Tables of 100 columns, c0 to c99. Their types are int, float8, text, numeric and timestamp in turn, so the column number modulo 5
-- determines the type. In gpuagg_wide, texts are NULL in one of eight rows; in gpuagg_wide_nulls all columns are, in gpuagg_wide_filled
-- none.
CREATE FUNCTION pg_temp.make(name text, nulls int[], nrows int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	types text[] := '{int,float8,text,numeric,timestamp}';
	exprs text[] := '{(#%7919)::int,(#%7919)::float8/8,''value ''||#%97,(#%997)::numeric/100,timestamp ''2001-01-01''+#%1000*interval ''1 hour''}';
BEGIN
	EXECUTE format('CREATE TABLE %I (%s)', name,
		(SELECT string_agg(format('c%s %s', c, types[c % 5 + 1]), ', ' ORDER BY c) FROM generate_series(0, 99) c));
	EXECUTE format('INSERT INTO %I SELECT %s FROM generate_series(1, %s) i', name,
		(SELECT string_agg(format(CASE WHEN c % 5 = ANY (nulls) THEN 'CASE WHEN (i * 7 + %s * 5) %% 8 <> 0 THEN %s END' ELSE '%2$s' END,
				c, replace(exprs[c % 5 + 1], '#', format('(i::int8 * 40503 %% 65521 + %s)', c))), ', ' ORDER BY c)
		 FROM generate_series(0, 99) c), nrows);
END $$;
SELECT pg_temp.make('gpuagg_wide', '{2}', :rows);
SELECT pg_temp.make('gpuagg_wide_nulls', '{0,1,2,3,4}', :rows);
SELECT pg_temp.make('gpuagg_wide_filled', '{}', :rows);
VACUUM (FREEZE, ANALYZE) gpuagg_wide, gpuagg_wide_nulls, gpuagg_wide_filled;
