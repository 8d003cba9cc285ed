-- Objects of a user that depend on the extension: two views of every aggregate (g_… with GROUP BY, w_… as a window function), a
-- materialized view, indexes, functions, a default, a generated column, a constraint, a policy. From version 1.1 on also tables of states,
-- and views (s_…) of what these give. answers() returns their contents. The script works with every version of the extension, in whatever
-- schema of the search_path it is.
CREATE SCHEMA kept;
CREATE TABLE kept.everything AS
SELECT id, id % 7 AS k, id::int2 AS c_int2, id * 37 % 101 AS c_int4, id::int8 * 1000003 AS c_int8, (id % 13 / 4.0)::float4 AS c_float4,
	(id * 7 % 31 / 8.0)::float8 AS c_float8, CASE id % 3 WHEN 0 THEN id / 100.0 WHEN 1 THEN id / 3.0 ELSE id END AS c_numeric,
	id * interval '1 day 3:00:01' AS c_interval, (id / 7.0)::numeric(10, 2)::money AS c_money, date '2026-01-01' + id * 3 % 50 AS c_date,
	time '00:00' + id * interval '7 min' AS c_time, timestamp '2026-01-01' + id * interval '1 hour' AS c_timestamp,
	timestamptz '2026-01-01 00:00+00' - id * interval '1 hour' AS c_timestamptz, (id * 11 % 97)::oid AS c_oid,
	'text ' || id * 5 % 37 AS c_text, id % 5 < 3 AS c_bool, ARRAY[[1, id % 3], [0, 1]]::float8[] AS c_float8s,
	('10.0.0.' || id % 200)::inet AS c_inet, ARRAY[id % 3, id]::int8[] AS c_int8s
FROM generate_series(1, 500) id;
UPDATE kept.everything SET c_int4 = NULL, c_int8 = NULL, c_float8 = NULL, c_numeric = NULL, c_interval = NULL, c_text = NULL, c_bool = NULL
WHERE id % 17 = 0;
ALTER TABLE kept.everything ADD PRIMARY KEY (id);
ANALYZE kept.everything;

DO $$
DECLARE
	f record;
	call text;
BEGIN
	FOR f IN
		SELECT p.oid, p.pronamespace::regnamespace AS home, proname AS name, row_number() OVER (ORDER BY proname, oidvectortypes(proargtypes)) AS n,
			(SELECT string_agg(CASE WHEN t = '"any"'::regtype OR t = 'anycompatible'::regtype THEN 'c_int4'
					WHEN t = 'anyelement'::regtype THEN 'c_text' ELSE 'c_' || replace(typname, '_', '') || CASE typcategory WHEN 'A' THEN 's' ELSE '' END
				END, ', ' ORDER BY i)
			FROM unnest(proargtypes::oid[]) WITH ORDINALITY u(t, i) JOIN pg_type ON pg_type.oid = t WHERE i > aggnumdirectargs) AS columns,
			aggkind = 'o' AS is_ordered_set,
			CASE WHEN aggnumdirectargs = 1 THEN CASE proargtypes[0] WHEN 'float8'::regtype THEN '0.5' ELSE '''{0.25,0.75}''::float8[]' END ELSE '' END AS direct
		FROM pg_proc p JOIN pg_aggregate ON aggfnoid = p.oid JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
			JOIN pg_extension x ON x.oid = d.refobjid AND extname = 'gpuagg'
		WHERE prokind = 'a' AND proname !~ '_state$'	-- not these, which are for foreign servers
	LOOP
		call := CASE WHEN f.is_ordered_set THEN format('%s) WITHIN GROUP (ORDER BY %s', f.direct, f.columns)
			WHEN f.name = 'gpu_approx_percentile' THEN replace(replace(f.columns, ', c_float8s', ', ''{0.25,0.75}''::float8[]'), ', c_float8', ', 0.5')
			WHEN f.name ~ '(min|max)_n$|top_k$|value_counts$' THEN regexp_replace(f.columns, ', c_int4$', ', 3')
			WHEN f.name ~ '^gpu_(histogram_auto|histogram_equidepth|exp_histogram)$' THEN regexp_replace(f.columns, ', c_int4$', ', 3')
			WHEN f.name = 'gpu_exp_histogram_merge' THEN 'gpu_exp_histogram_of(3, 1, 0, NULL)'
			WHEN f.name LIKE '%merge' THEN replace(f.columns, 'c_float8s', 'c_int8s::float8[]')
			WHEN f.name LIKE 'gpu\_histogram%' AND f.columns = 'c_float8, c_float8s' THEN 'c_float8, ''{1,2,3}''::float8[]'
			WHEN f.name LIKE 'gpu\_histogram%' THEN replace(f.columns, 'c_float8, c_float8, c_float8, c_int4', 'c_float8, 0.5, 3.5, 6')
			ELSE coalesce(f.columns, '*') END;
		IF f.name ~ '_(max_subarray_sum|longest_run|longest_ascending_run|compose_linear|matrix_product)$' THEN
			call := call || ' ORDER BY id';
		END IF;
		BEGIN
			EXECUTE format('CREATE VIEW kept.%I AS SELECT k, %s.%s(%s) FROM kept.everything GROUP BY k',
				format('g_%s_%s', f.name, f.n), f.home, f.name, call);
			IF call !~ 'ORDER BY' THEN
				EXECUTE format('CREATE VIEW kept.%I AS SELECT id, %s.%s(%s) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) '
					'FROM kept.everything', format('w_%s_%s', f.name, f.n), f.home, f.name, call);
			END IF;
		EXCEPTION WHEN undefined_column OR undefined_function OR datatype_mismatch OR syntax_error THEN
			NULL;				-- there is no column of the argument's type
		END;
	END LOOP;
END $$;

-- stored states of the even and of the odd rows, which the views combine
DO $$
DECLARE
	a record;
BEGIN
	FOR a IN
		SELECT row_number() OVER () AS n, v.*
		FROM (VALUES ('gpu_sum(int8)', 'c_int8', 'numeric'), ('gpu_avg(int8)', 'c_int8', 'numeric'), ('gpu_sum(numeric)', 'c_numeric', 'numeric'),
				('gpu_avg(numeric)', 'c_numeric', 'numeric'), ('gpu_stddev(int4)', 'c_int4', 'numeric'), ('gpu_var_pop(int8)', 'c_int8', 'numeric'),
				('gpu_variance(numeric)', 'c_numeric', 'numeric'), ('gpu_histogram(float8,float8,float8,int4)', 'c_float8, 0.5::float8, 3.5::float8, 6', 'int8[]'),
				('gpu_approx_count_distinct("any")', 'c_text', 'int8'), ('gpu_approx_percentile(float8,float8)', 'c_float8, 0.5::float8', 'float8'),
				('gpu_argmax(anyelement,anycompatible)', 'c_text, c_int4', 'text'), ('gpu_argmin(anyelement,anycompatible)', 'c_interval, c_numeric', 'interval'))
			v (aggregate, arguments, result)
		WHERE to_regtype('gpuagg_state') IS NOT NULL
	LOOP
		EXECUTE format('CREATE TABLE kept.states_%s AS SELECT k, id %% 2 = 0 AS even, gpuagg_merge(gpuagg_pack(%L::regprocedure, %s)) AS state
			FROM kept.everything GROUP BY 1, 2', a.n, a.aggregate, a.arguments);
		EXECUTE format('CREATE VIEW kept.s_%1$s AS SELECT k, gpuagg_finish(gpuagg_merge_combine(e.state, o.state), %2$L::regprocedure, NULL::%3$s)
			FROM kept.states_%1$s e JOIN kept.states_%1$s o USING (k) WHERE e.even AND NOT o.even', a.n, a.aggregate, a.result);
	END LOOP;
END $$;

CREATE MATERIALIZED VIEW kept.stored AS
SELECT k, gpu_sum(c_int4) AS ints, gpu_avg(c_interval) AS intervals, gpu_stddev(c_numeric) AS deviation, gpu_histogram(c_float8, 0, 4, 8) AS histogram
FROM kept.everything GROUP BY k;
CREATE UNIQUE INDEX ON kept.stored (k, ints);
CREATE FUNCTION kept.total(int[]) RETURNS int8 LANGUAGE sql IMMUTABLE BEGIN ATOMIC SELECT gpu_sum(x) FROM unnest($1) x; END;
CREATE FUNCTION kept.longest(interval[]) RETURNS interval LANGUAGE sql IMMUTABLE BEGIN ATOMIC SELECT gpu_avg(x) FROM unnest($1) x; END;
CREATE INDEX by_total ON kept.everything (kept.total(ARRAY[c_int4, id]));
CREATE INDEX by_product ON kept.everything (gpuagg_float8mul(c_float8, 2));
CREATE VIEW kept.with_total AS SELECT id FROM kept.everything WHERE kept.total(ARRAY[c_int4, id]) = 300;
CREATE VIEW kept.with_product AS SELECT id FROM kept.everything WHERE gpuagg_float8mul(c_float8, 2) = 2;
CREATE TABLE kept.defaults (id int, total int8 DEFAULT kept.total(ARRAY[1, 2, 3]),
	mean interval GENERATED ALWAYS AS (kept.longest(ARRAY[id * interval '1 hour', '3 hours'])) STORED, CHECK (kept.total(ARRAY[id, 1]) > 0));
INSERT INTO kept.defaults (id) VALUES (1), (2);
CREATE TABLE kept.bounds AS SELECT 1 AS id UNION ALL SELECT 120;
DO $$ BEGIN CREATE ROLE reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT USAGE ON SCHEMA kept TO reader;
GRANT SELECT ON kept.everything, kept.bounds TO reader;
CREATE POLICY some_rows ON kept.everything FOR SELECT TO reader USING (id <= (SELECT gpu_max(b.id) FROM kept.bounds b));
ALTER TABLE kept.everything ENABLE ROW LEVEL SECURITY;
CREATE VIEW kept.operators AS SELECT operator FROM gpuagg_operators WHERE operator LIKE 'sum%';

-- Returns the contents of the views, of the materialized view and of table defaults: a row for each whose name is LIKE the pattern.
CREATE FUNCTION kept.answers(pattern text) RETURNS TABLE (name name, rows int8, answer text) LANGUAGE plpgsql AS $$
DECLARE
	query text;
BEGIN
	FOR name, query IN
		SELECT relname, format('SELECT * FROM kept.%I', relname) FROM pg_class
		WHERE relnamespace = 'kept'::regnamespace AND (relkind IN ('v', 'm') OR relname = 'defaults') AND relname LIKE pattern
		ORDER BY 1
	LOOP
		EXECUTE format('SELECT count(*), string_agg(q::text, E''\n'' ORDER BY q::text COLLATE "C") FROM (%s) q', query) INTO rows, answer;
		RETURN NEXT;
	END LOOP;
END $$;
