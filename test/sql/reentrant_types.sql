-- Types whose comparison and hash functions run queries with the extension's aggregates, as keys, distinct values,
-- orders and conditions. An inner query must not change or free data of the outer one.
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
CREATE TABLE inner_rows AS SELECT i % 5 AS k, i AS v, 't' || i % 7 AS s FROM generate_series(1, 300) i;
CREATE FUNCTION ask() RETURNS int8 LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = public AS $$ DECLARE n int8; BEGIN
 SELECT sum(c) INTO n FROM (SELECT k, gpu_count(DISTINCT s) + gpu_sum(v) % 1 AS c, gpu_max(s) FROM inner_rows WHERE s LIKE 't%' GROUP BY k) q; RETURN n; END $$;
CREATE TYPE num AS (a int);
CREATE FUNCTION num_cmp(x num, y num) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN PERFORM public.ask(); RETURN CASE WHEN x.a < y.a THEN -1 WHEN x.a > y.a THEN 1 ELSE 0 END; END $$;
CREATE FUNCTION num_hash(x num) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN PERFORM public.ask(); RETURN hashint4(x.a); END $$;
DO $$ DECLARE o text; f text; BEGIN
 FOR o, f IN VALUES ('<','lt'),('<=','le'),('=','eq'),('>=','ge'),('>','gt') LOOP
  EXECUTE format('CREATE FUNCTION num_%s(x num, y num) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $f$ BEGIN RETURN num_cmp(x, y) %s 0; END $f$', f, o);
  EXECUTE format('CREATE OPERATOR %s (LEFTARG = num, RIGHTARG = num, FUNCTION = num_%s, RESTRICT = %s%s)', o, f, CASE o WHEN '=' THEN 'eqsel' ELSE 'scalarltsel' END, CASE o WHEN '=' THEN ', HASHES, MERGES, COMMUTATOR = =' ELSE '' END);
 END LOOP; END $$;
CREATE OPERATOR CLASS num_btree DEFAULT FOR TYPE num USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 num_cmp(num, num);
CREATE OPERATOR CLASS num_hash DEFAULT FOR TYPE num USING hash AS OPERATOR 1 =, FUNCTION 1 num_hash(num);
CREATE TABLE outer_rows AS SELECT ROW(i % 6)::num AS n, i % 3 AS k, 'x' || i % 4 AS s, i AS v FROM generate_series(1, 400) i;
VACUUM FREEZE ANALYZE;
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows text;
BEGIN
	EXECUTE format('SELECT string_agg(x::text, %L) FROM (%s) x', ' ', query) INTO rows;
	RETURN rows;
END $$;
CREATE TABLE queries AS SELECT row_number() OVER () AS i, query FROM unnest(ARRAY[
	$$SELECT n, gpu_count(*), gpu_sum(v) FROM outer_rows GROUP BY n ORDER BY (n).a$$,
	$$SELECT k, gpu_count(DISTINCT n), gpu_sum(v) FROM outer_rows GROUP BY k ORDER BY k$$,
	$$SELECT k, array_agg(v ORDER BY n, v) FROM outer_rows GROUP BY k ORDER BY k$$,
	$$SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY n), gpu_sum(v) FROM outer_rows GROUP BY k ORDER BY k$$,
	$$SELECT k, mode() WITHIN GROUP (ORDER BY n), gpu_sum(v) FROM outer_rows GROUP BY k ORDER BY k$$,
	$$SELECT k, gpu_argmax(v, n), gpu_sum(v) FROM outer_rows WHERE v < 7 GROUP BY k ORDER BY k$$,
	$$SELECT s, k, n, gpu_count(*) FROM outer_rows GROUP BY ROLLUP (s, k, n) ORDER BY s, k, (n).a$$,
	$$SELECT s, gpu_count(*) FROM outer_rows WHERE n > ROW(2)::num GROUP BY s ORDER BY s$$,
	$$SELECT s, gpu_sum(v) FILTER (WHERE n = ROW(3)::num) FROM outer_rows GROUP BY s ORDER BY s$$
]) query;
SET gpuagg.enabled = off;
ALTER TABLE queries ADD expected text;
UPDATE queries SET expected = answer(query);
RESET gpuagg.enabled;
SELECT i, answer(query) = expected AS same FROM queries ORDER BY i;
SET gpuagg.require = 'require';
SELECT i, answer(query) = expected AS same FROM queries ORDER BY i;
RESET gpuagg.require;
SET work_mem = '64kB';
SELECT i, answer(query) = expected AS same FROM queries ORDER BY i;
RESET work_mem;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT i, answer(query) = expected AS same FROM queries ORDER BY i;
DROP TABLE queries;
