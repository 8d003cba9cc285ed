-- Aggregates without an operator of the extension, together with others. Their own transition functions run in the
-- custom scan: states by value, by reference, expanded, internal; strict functions, NULL states, final
-- functions.
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/include/same.sql'
\i :include
SET gpuagg.cache = off;
SET gpuagg.engine = 'cpu';

CREATE TABLE own AS
SELECT i % 1000 AS k, i AS v, CASE WHEN i % 7 > 0 THEN 'v' || i % 100 END AS s, nullif(i % 13, 0)::float8 AS x, i * interval '1 minute' AS iv,
	'g' || i % 37 AS t, nullif(i % 11, 0)::numeric AS n
FROM generate_series(1, 6000) i;
CREATE INDEX ON own (k);
VACUUM ANALYZE own;
CREATE FUNCTION longer(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
CREATE FUNCTION last_not_null(text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT coalesce($2, $1) $$;
CREATE FUNCTION sorted(int[]) RETURNS int[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT array_agg(e ORDER BY e) FROM unnest($1) e $$;
CREATE FUNCTION refuse(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN
	IF $2 = 5000 THEN RAISE EXCEPTION 'not this one'; END IF;
	RETURN $1 + $2 % 10;
END $$;
CREATE AGGREGATE collect(int) (SFUNC = array_append, STYPE = int[], COMBINEFUNC = array_cat, FINALFUNC = sorted, PARALLEL = SAFE);
CREATE AGGREGATE collect_from(int) (SFUNC = array_append, STYPE = int[], INITCOND = '{-1}', FINALFUNC = sorted);
CREATE AGGREGATE total(float8) (SFUNC = float8pl, STYPE = float8, INITCOND = '0', COMBINEFUNC = float8pl, PARALLEL = SAFE);
CREATE AGGREGATE longest(text) (SFUNC = longer, STYPE = text, COMBINEFUNC = longer, PARALLEL = SAFE);
CREATE AGGREGATE last_seen(text) (SFUNC = last_not_null, STYPE = text, INITCOND = 'none');
CREATE FUNCTION first_of(anyelement, anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT $1 $$;
CREATE FUNCTION mixed(float8, int, text, float8, interval) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN $2 % 5 = 0 THEN NULL ELSE coalesce($1, -1) + $2 + coalesce(length($3), 100) + coalesce($4, 7) END $$;
CREATE FUNCTION with_types(float8, int, text, float8, interval) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT format('%s of %s', $1, $2) $$;
CREATE AGGREGATE raw(int) (SFUNC = array_append, STYPE = int[]);
CREATE AGGREGATE first_any(anyelement) (SFUNC = first_of, STYPE = anyelement);
CREATE AGGREGATE seen(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '0', COMBINEFUNC = int8pl, PARALLEL = SAFE);
CREATE AGGREGATE mix(int, text, float8, interval) (SFUNC = mixed, STYPE = float8, FINALFUNC = with_types, FINALFUNC_EXTRA);
CREATE AGGREGATE refusing(int) (SFUNC = refuse, STYPE = int, INITCOND = '0');

CREATE TABLE lists (list text);
INSERT INTO lists VALUES ('collect(v), collect_from(v)'), ('total(x), longest(s), last_seen(s)'), ('collect(v) FILTER (WHERE x > 3), longest(s) FILTER (WHERE false)'),
	('array_append(raw(v), -1), array_append(raw(v), -2), cardinality(raw(v))'), ('first_any(s), first_any(n), first_any(v), seen(*)'), ('mix(v, s, x, iv), seen(*)'),
	('array_agg(ARRAY[v, k]), jsonb_object_agg(v, t)'), ('json_agg(own) FILTER (WHERE v < 37), count(*), sum(v)'),
	('string_agg(s, ''+''), string_agg(t, s)'), ('array_agg(s), json_agg(v)'), ('max(t), min(s), max(iv), min(iv)'), ('@sum(n), @avg(n), collect(v / 2)'), ('@max(v), total(x), @avg(x), total(x * 2)');
SET max_parallel_workers_per_gather = 0;
-- core does not change the order of rows either
SET enable_sort = off;
SELECT list, pg_temp.same(format('SELECT k, @count(*), %s FROM own GROUP BY k', list)) FROM lists;
SELECT list, pg_temp.same(format('SELECT t, s, @count(*), %s FROM own WHERE v %% 3 > 0 GROUP BY t, s', list)) FROM lists;
SELECT list, pg_temp.same(format('SELECT @count(*), %s FROM own', list)) FROM lists;
SELECT list, pg_temp.same(format('SELECT @count(*), %s FROM own WHERE v < 0', list)) FROM lists;
-- through files, with core's answers from memory
CREATE TEMP TABLE answers AS SELECT list, query, pg_temp.answer(replace(query, '@', ''), 'allow', false) AS core
FROM lists, format('SELECT k, @count(*), %s FROM own GROUP BY k', list) AS query;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT list, pg_temp.answer(replace(query, '@', 'gpu_'), 'require', false) = core AS same FROM answers;
RESET work_mem;
RESET hash_mem_multiplier;
RESET enable_sort;
-- groups that come in order, and groups whose rows are in several batches
SET enable_seqscan = off;
SET enable_hashagg = off;
SET gpuagg.batch_rows = 77;
SELECT list, pg_temp.same(format('SELECT k, @count(*), %s FROM own GROUP BY k ORDER BY k', list)) FROM lists WHERE list !~ '_agg|last|raw|first|mix';
SELECT list, pg_temp.same(format('SELECT k / 300, @count(*), %s FROM own GROUP BY k / 300 ORDER BY 1', list)) FROM lists WHERE list !~ '_agg|last|raw|first|mix';
RESET enable_seqscan;
RESET enable_hashagg;
RESET gpuagg.batch_rows;
-- several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT list, pg_temp.same(format('SELECT k, @count(*), %s FROM own GROUP BY k', list)) FROM lists WHERE list !~ '_agg|_from|last|raw|first|mix';
EXPLAIN (COSTS OFF) SELECT k, gpu_count(*), collect(v) FROM own GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k, gpu_count(*), collect_from(v) FROM own GROUP BY k;
SET work_mem = '64kB';
SELECT list, pg_temp.answer(replace(query, '@', 'gpu_'), 'require', false) = core AS same FROM answers WHERE list !~ '_agg|_from|last|raw|first|mix';
RESET work_mem;
-- alone they are left to core
SET max_parallel_workers_per_gather = 0;
SET gpuagg.replace_builtin = on;
EXPLAIN (VERBOSE, COSTS OFF) SELECT k, array_agg(v) FROM own GROUP BY k;
RESET gpuagg.replace_builtin;
-- an error in the middle
SELECT pg_temp.same('SELECT k, @count(*), refusing(v) FROM own GROUP BY k');

DROP TABLE own, lists, answers;
DROP AGGREGATE collect(int), collect_from(int), total(float8), longest(text), last_seen(text), raw(int), first_any(anyelement), seen(*), mix(int, text, float8, interval), refusing(int);
DROP FUNCTION longer, last_not_null, sorted, refuse, first_of, mixed, with_types;
