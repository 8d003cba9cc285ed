/* gpuagg 1.0 */

-- complain if the script is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION gpuagg" to load this file. \quit

/* Queries of this script are core's to run: settings may demand an engine that is not there, or not yet. */
SET LOCAL gpuagg.replace_builtin = off;

/*
 * The planner asks the support function of an aggregate's transition function
 * for its cost, and by that loads the library in time for the same query.
 */
CREATE FUNCTION gpuagg_planner_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_planner_support(internal) IS
'support function that makes the planner load the library; never null';

/*
 * Twins of core's aggregates.
 *
 * gpu_sum(integer) is sum(integer) under another name: the same transition,
 * final, combine, (de)serialisation and moving-aggregate functions, the same
 * initial values and sort operator, read from the catalog because they differ
 * between server versions.  The library recognises an aggregate by its
 * transition function and runs it in batches where it can.  The transition
 * function has a name of its own, so that it can have the support function.
 */
DO $twins$
DECLARE
	twin record;
	fn text;
	clauses text;
BEGIN
	FOR twin IN
		WITH family(core, argtypes, comment) AS (VALUES
			('count', E'{"", "\\"any\\""}', 'number of rows, or of rows where the argument is not null; 0 without one'),
			('sum', '{int2, int4, int8, float4, float8, numeric, interval, money}',
			 'sum of the non-null values; null without one'),
			('avg', '{int2, int4, int8, float4, float8, numeric, interval}',
			 'arithmetic mean of the non-null values; null without one'),
			('min', '{int2, int4, int8, float4, float8, numeric, date, time, timestamp, timestamptz, interval, money, oid, text}',
			 'smallest non-null value (NaN is the greatest number); null without one'),
			('max', '{int2, int4, int8, float4, float8, numeric, date, time, timestamp, timestamptz, interval, money, oid, text}',
			 'greatest non-null value (NaN is the greatest number); null without one'),
			('stddev', '{int2, int4, int8, float4, float8, numeric}',
			 'sample standard deviation of the non-null values; null for fewer than two'),
			('stddev_samp', '{int2, int4, int8, float4, float8, numeric}',
			 'sample standard deviation of the non-null values; null for fewer than two'),
			('stddev_pop', '{int2, int4, int8, float4, float8, numeric}',
			 'population standard deviation of the non-null values; null without one'),
			('variance', '{int2, int4, int8, float4, float8, numeric}',
			 'sample variance of the non-null values; null for fewer than two'),
			('var_samp', '{int2, int4, int8, float4, float8, numeric}',
			 'sample variance of the non-null values; null for fewer than two'),
			('var_pop', '{int2, int4, int8, float4, float8, numeric}',
			 'population variance of the non-null values; null without one'),
			('corr', '{"float8, float8"}', 'correlation coefficient of the pairs (Y, X) without nulls; null without one'),
			('covar_pop', '{"float8, float8"}', 'population covariance of the pairs (Y, X) without nulls; null without one'),
			('covar_samp', '{"float8, float8"}', 'sample covariance of the pairs (Y, X) without nulls; null for fewer than two'),
			('regr_avgx', '{"float8, float8"}', 'mean of X over the pairs (Y, X) without nulls; null without one'),
			('regr_avgy', '{"float8, float8"}', 'mean of Y over the pairs (Y, X) without nulls; null without one'),
			('regr_count', '{"float8, float8"}', 'number of pairs (Y, X) without nulls; 0 without one'),
			('regr_intercept', '{"float8, float8"}', 'Y intercept of the least-squares line through the pairs (Y, X) without nulls; null without one'),
			('regr_r2', '{"float8, float8"}', 'square of the correlation coefficient of the pairs (Y, X) without nulls; null without one'),
			('regr_slope', '{"float8, float8"}', 'slope of the least-squares line through the pairs (Y, X) without nulls; null without one'),
			('regr_sxx', '{"float8, float8"}', 'sum of squared deviations of X over the pairs (Y, X) without nulls; null without one'),
			('regr_sxy', '{"float8, float8"}', 'sum of products of deviations of the pairs (Y, X) without nulls; null without one'),
			('regr_syy', '{"float8, float8"}', 'sum of squared deviations of Y over the pairs (Y, X) without nulls; null without one'),
			('bit_and', '{int2, int4, int8}', 'bitwise and of the non-null values; null without one'),
			('bit_or', '{int2, int4, int8}', 'bitwise or of the non-null values; null without one'),
			('bit_xor', '{int2, int4, int8}', 'bitwise exclusive or of the non-null values; null without one'),
			('bool_and', '{bool}', 'true if every non-null value is true; null without one'),
			('bool_or', '{bool}', 'true if some non-null value is true; null without one'),
			('every', '{bool}', 'true if every non-null value is true; null without one')
		)
		SELECT format('gpu_%s(%s)', core, CASE args WHEN '' THEN '*' ELSE args END) AS signature,
			family.comment || '; as core''s ' || core AS comment,
			aggtransfn,
			concat_ws(', ', 'SFUNC = gpuagg_' || proname, 'STYPE = ' || aggtranstype::regtype,
				'SSPACE = ' || aggtransspace,
				'INITCOND = ' || quote_literal(agginitval),
				'FINALFUNC = ' || nullif(aggfinalfn::oid, 0)::regproc,
				'COMBINEFUNC = ' || nullif(aggcombinefn::oid, 0)::regproc,
				'SERIALFUNC = ' || nullif(aggserialfn::oid, 0)::regproc,
				'DESERIALFUNC = ' || nullif(aggdeserialfn::oid, 0)::regproc,
				'MSFUNC = ' || nullif(aggmtransfn::oid, 0)::regproc,
				'MINVFUNC = ' || nullif(aggminvtransfn::oid, 0)::regproc,
				'MSTYPE = ' || nullif(aggmtranstype, 0)::regtype,
				'MSSPACE = ' || nullif(aggmtransspace, 0),
				'MFINALFUNC = ' || nullif(aggmfinalfn::oid, 0)::regproc,
				'MINITCOND = ' || quote_literal(aggminitval),
				(SELECT format('SORTOP = OPERATOR(pg_catalog.%s)', oprname) FROM pg_operator WHERE oid = aggsortop),
				'PARALLEL = SAFE') AS definition,
			format('%I(%s)', 'gpuagg_' || proname, pg_get_function_identity_arguments(aggtransfn)) AS transition,
			format('RETURNS %s AS %L LANGUAGE internal %s IMMUTABLE PARALLEL SAFE', prorettype::regtype, prosrc,
				CASE WHEN proisstrict THEN 'STRICT' END) AS body
		FROM family, unnest(family.argtypes::text[]) AS args,
			pg_aggregate JOIN pg_proc ON pg_proc.oid = aggtransfn
		WHERE aggfnoid = to_regprocedure(format('pg_catalog.%I(%s)', core, args))
	LOOP
		IF to_regprocedure(twin.transition) IS NULL THEN
			EXECUTE format('CREATE FUNCTION %s %s', twin.transition, twin.body);
			EXECUTE format('COMMENT ON FUNCTION %s IS %L', twin.transition,
				twin.aggtransfn::regprocedure || ' for the extension''s aggregates');
		END IF;
		EXECUTE format('CREATE AGGREGATE %s (%s)', twin.signature, twin.definition);
		EXECUTE format('COMMENT ON AGGREGATE %s IS %L', twin.signature, twin.comment);
	END LOOP;
END
$twins$;

CREATE FUNCTION gpuagg_float8mul(float8, float8) RETURNS float8
	AS 'float8mul' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8mul(float8, float8) IS
'float8mul(double precision,double precision) for the extension''s aggregates';
CREATE AGGREGATE gpu_product(float8) (
	SFUNC = gpuagg_float8mul, STYPE = float8, COMBINEFUNC = float8mul, PARALLEL = SAFE
);
COMMENT ON AGGREGATE gpu_product(float8) IS
'product of the non-null values; null without one; overflow and underflow are errors';

/*
 * Histograms: the state is the library's own, so that it is one array whatever
 * the number of rows.
 */
CREATE FUNCTION gpuagg_histogram_accum(internal, float8, float8, float8, int4) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_accum(internal, float8, float8, float8, int4) IS
'transition function of gpu_histogram; null values change nothing';

CREATE FUNCTION gpuagg_histogram_accum_weighted(internal, float8, float8, float8, int4, float8) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_accum_weighted(internal, float8, float8, float8, int4, float8) IS
'transition function of weighted gpu_histogram; null values and null weights change nothing';

CREATE FUNCTION gpuagg_histogram_accum_thresholds(internal, float8, float8[]) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_accum_thresholds(internal, float8, float8[]) IS
'transition function of gpu_histogram over thresholds; null values change nothing';

CREATE FUNCTION gpuagg_histogram_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_combine(internal, internal) IS
'combine function of gpu_histogram; a null state is an empty one';

CREATE FUNCTION gpuagg_histogram_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_serialize(internal) IS
'serialisation function of gpu_histogram; null for null';

CREATE FUNCTION gpuagg_histogram_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_deserialize(bytea, internal) IS
'deserialisation function of gpu_histogram; null for null';

CREATE FUNCTION gpuagg_histogram_counts(internal) RETURNS int8[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_counts(internal) IS
'final function of gpu_histogram: one count a bin; null for null';

CREATE FUNCTION gpuagg_histogram_weights(internal) RETURNS float8[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_weights(internal) IS
'final function of weighted gpu_histogram: one sum a bin; null for null';

CREATE AGGREGATE gpu_histogram(value float8, lo float8, hi float8, nbins int4) (
	SFUNC = gpuagg_histogram_accum, STYPE = internal, SSPACE = 1024,
	FINALFUNC = gpuagg_histogram_counts, COMBINEFUNC = gpuagg_histogram_combine,
	SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE gpu_histogram(float8, float8, float8, int4) IS
'histogram of nbins equal bins in [lo, hi): nbins + 2 counts, the first of values before lo, the last of values at or past hi and of NaN; lo > hi counts downwards; nulls are skipped; null without a value';

CREATE AGGREGATE gpu_histogram(value float8, lo float8, hi float8, nbins int4, weight float8) (
	SFUNC = gpuagg_histogram_accum_weighted, STYPE = internal, SSPACE = 1024,
	FINALFUNC = gpuagg_histogram_weights, COMBINEFUNC = gpuagg_histogram_combine,
	SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE gpu_histogram(float8, float8, float8, int4, float8) IS
'histogram of nbins equal bins in [lo, hi): nbins + 2 sums of weight, the first of values before lo, the last of values at or past hi and of NaN; rows with a null value or weight are skipped; null without a row';

CREATE AGGREGATE gpu_histogram(value float8, thresholds float8[]) (
	SFUNC = gpuagg_histogram_accum_thresholds, STYPE = internal, SSPACE = 1024,
	FINALFUNC = gpuagg_histogram_counts, COMBINEFUNC = gpuagg_histogram_combine,
	SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE gpu_histogram(float8, float8[]) IS
'histogram over ascending thresholds: one count more than thresholds, of the values for which width_bucket(value, thresholds) is 0, 1, ...; nulls are skipped; null without a value';

CREATE FUNCTION gpu_histogram_bins(lo float8, hi float8, counts anyarray,
	OUT bin int4, OUT lower float8, OUT upper float8, OUT count anyelement, OUT bar text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 50;
COMMENT ON FUNCTION gpu_histogram_bins(float8, float8, anyarray) IS
'a row a bin of gpu_histogram(value, lo, hi, nbins[, weight]): its number, its bounds, its count (bigint) or weight (double precision), and a bar of up to 40 characters scaled to the largest; no row for null';

/*
 * Extremes with a payload, operators over order, sketches.
 */
CREATE FUNCTION gpuagg_argmax_transfn(internal, anyelement, anycompatible) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmax_transfn(internal, anyelement, anycompatible) IS 'transition function of gpu_argmax and gpu_last; rows with a null key change nothing';
CREATE FUNCTION gpuagg_argmin_transfn(internal, anyelement, anycompatible) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmin_transfn(internal, anyelement, anycompatible) IS 'transition function of gpu_argmin and gpu_first; rows with a null key change nothing';
CREATE FUNCTION gpuagg_argmax_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmax_combine(internal, internal) IS 'combine function of gpu_argmax and gpu_last; a null state is an empty one';
CREATE FUNCTION gpuagg_argmin_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmin_combine(internal, internal) IS 'combine function of gpu_argmin and gpu_first; a null state is an empty one';
CREATE FUNCTION gpuagg_arg_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_arg_serialize(internal) IS 'serialisation function of gpu_argmax, gpu_argmin, gpu_first and gpu_last; null for null';
CREATE FUNCTION gpuagg_arg_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_arg_deserialize(bytea, internal) IS 'deserialisation function of gpu_argmax, gpu_argmin, gpu_first and gpu_last; null for null';
CREATE FUNCTION gpuagg_arg_final(internal, anyelement, anycompatible) RETURNS anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_arg_final(internal, anyelement, anycompatible) IS 'final function of gpu_argmax, gpu_argmin, gpu_first and gpu_last; null for null';

CREATE AGGREGATE gpu_argmax(value anyelement, key anycompatible) (
	SFUNC = gpuagg_argmax_transfn, STYPE = internal,
	FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA,
	COMBINEFUNC = gpuagg_argmax_combine,
	SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize,
	PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_argmax(anyelement, anycompatible) IS
	'value in the row whose key is largest; NULL keys are skipped, ties go to the smallest value (NULL last), NULL without input';
CREATE AGGREGATE gpu_argmin(value anyelement, key anycompatible) (
	SFUNC = gpuagg_argmin_transfn, STYPE = internal,
	FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA,
	COMBINEFUNC = gpuagg_argmin_combine,
	SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize,
	PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_argmin(anyelement, anycompatible) IS
	'value in the row whose key is smallest; NULL keys are skipped, ties go to the smallest value (NULL last), NULL without input';
CREATE AGGREGATE gpu_first(value anyelement, key anycompatible) (
	SFUNC = gpuagg_argmin_transfn, STYPE = internal,
	FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA,
	COMBINEFUNC = gpuagg_argmin_combine,
	SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize,
	PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_first(anyelement, anycompatible) IS
	'value in the earliest row by key (a time, or anything sortable); otherwise as gpu_argmin';
CREATE AGGREGATE gpu_last(value anyelement, key anycompatible) (
	SFUNC = gpuagg_argmax_transfn, STYPE = internal,
	FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA,
	COMBINEFUNC = gpuagg_argmax_combine,
	SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize,
	PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_last(anyelement, anycompatible) IS
	'value in the latest row by key (a time, or anything sortable); otherwise as gpu_argmax';

/* The following fold rows in the order they arrive: call them with ORDER BY. */
CREATE FUNCTION gpuagg_maxsub_int8_transfn(internal, int8) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_int8_transfn(internal, int8) IS 'transition function of gpu_max_subarray_sum over bigint; null values change nothing';
CREATE FUNCTION gpuagg_maxsub_int8_final(internal) RETURNS int8
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_int8_final(internal) IS 'final function of gpu_max_subarray_sum over bigint; null for null';
CREATE AGGREGATE gpu_max_subarray_sum(x int8) (
	SFUNC = gpuagg_maxsub_int8_transfn, STYPE = internal,
	FINALFUNC = gpuagg_maxsub_int8_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max_subarray_sum(int8) IS
	'largest sum of consecutive x in ORDER BY order, the empty part counting as 0; NULLs are skipped, NULL without input, "bigint out of range" on overflow';

CREATE FUNCTION gpuagg_maxsub_float8_transfn(internal, float8) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_float8_transfn(internal, float8) IS 'transition function of gpu_max_subarray_sum over double precision; null values change nothing';
CREATE FUNCTION gpuagg_maxsub_float8_final(internal) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_float8_final(internal) IS 'final function of gpu_max_subarray_sum over double precision; null for null';
CREATE AGGREGATE gpu_max_subarray_sum(x float8) (
	SFUNC = gpuagg_maxsub_float8_transfn, STYPE = internal,
	FINALFUNC = gpuagg_maxsub_float8_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max_subarray_sum(float8) IS
	'largest sum of consecutive x in ORDER BY order, the empty part counting as 0; NULLs are skipped, NaN is the largest sum, NULL without input';

CREATE FUNCTION gpuagg_longest_run_transfn(internal, bool) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_longest_run_transfn(internal, bool) IS 'transition function of gpu_longest_run; null counts as false';
CREATE FUNCTION gpuagg_longest_run_final(internal) RETURNS int8
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_longest_run_final(internal) IS 'final function of gpu_longest_run; null for null';
CREATE AGGREGATE gpu_longest_run(cond bool) (
	SFUNC = gpuagg_longest_run_transfn, STYPE = internal,
	FINALFUNC = gpuagg_longest_run_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_longest_run(bool) IS
	'most consecutive rows, in ORDER BY order, for which cond is true; NULL is not true and ends a run, NULL without input';

CREATE FUNCTION gpuagg_longest_ascending_transfn(internal, anyelement) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_longest_ascending_transfn(internal, anyelement) IS 'transition function of gpu_longest_ascending_run; null ends a run';
CREATE FUNCTION gpuagg_longest_ascending_final(internal) RETURNS int8
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_longest_ascending_final(internal) IS 'final function of gpu_longest_ascending_run; null for null';
CREATE AGGREGATE gpu_longest_ascending_run(x anyelement) (
	SFUNC = gpuagg_longest_ascending_transfn, STYPE = internal,
	FINALFUNC = gpuagg_longest_ascending_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_longest_ascending_run(anyelement) IS
	'most consecutive rows, in ORDER BY order, in which x strictly ascends; NULL is in no run and ends one, NULL without input';

CREATE FUNCTION gpuagg_compose_linear_transfn(internal, float8, float8) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_compose_linear_transfn(internal, float8, float8) IS 'transition function of gpu_compose_linear; rows with a null change nothing';
CREATE FUNCTION gpuagg_compose_linear_final(internal) RETURNS float8[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_compose_linear_final(internal) IS 'final function of gpu_compose_linear; null for null';
CREATE AGGREGATE gpu_compose_linear(a float8, b float8) (
	SFUNC = gpuagg_compose_linear_transfn, STYPE = internal,
	FINALFUNC = gpuagg_compose_linear_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_compose_linear(float8, float8) IS
	'composition of x -> a x + b, first row innermost, as {a, b}; rows with a NULL are skipped, NULL without input';

CREATE FUNCTION gpuagg_matrix_product_transfn(internal, float8[]) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_matrix_product_transfn(internal, float8[]) IS 'transition function of gpu_matrix_product; null matrices change nothing';
CREATE FUNCTION gpuagg_matrix_product_final(internal) RETURNS float8[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_matrix_product_final(internal) IS 'final function of gpu_matrix_product; null for null';
CREATE AGGREGATE gpu_matrix_product(m float8[]) (
	SFUNC = gpuagg_matrix_product_transfn, STYPE = internal,
	FINALFUNC = gpuagg_matrix_product_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_matrix_product(float8[]) IS
	'product of square matrices of one size, at most 5 by 5, left to right in ORDER BY order; NULL matrices are skipped, NULL without input';

CREATE FUNCTION gpuagg_hll_transfn(internal, "any") RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_transfn(internal, "any") IS 'transition function of gpu_approx_count_distinct; null values change nothing';
CREATE FUNCTION gpuagg_hll_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_combine(internal, internal) IS 'combine function of gpu_approx_count_distinct; a null state is an empty one';
CREATE FUNCTION gpuagg_hll_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_serialize(internal) IS 'serialisation function of gpu_approx_count_distinct; null for null';
CREATE FUNCTION gpuagg_hll_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_deserialize(bytea, internal) IS 'deserialisation function of gpu_approx_count_distinct; null for null';
CREATE FUNCTION gpuagg_hll_final(internal) RETURNS int8
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_final(internal) IS 'final function of gpu_approx_count_distinct; 0 for null';
CREATE AGGREGATE gpu_approx_count_distinct("any") (
	SFUNC = gpuagg_hll_transfn, STYPE = internal,
	FINALFUNC = gpuagg_hll_final, COMBINEFUNC = gpuagg_hll_combine,
	SERIALFUNC = gpuagg_hll_serialize, DESERIALFUNC = gpuagg_hll_deserialize,
	PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_count_distinct("any") IS
	'number of distinct non-NULL values, estimated by HyperLogLog with 2^14 registers (standard error 0.81 %); 0 without input';

/*
 * About the extension.
 */
CREATE FUNCTION gpuagg_version() RETURNS text
	AS $$ SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'gpuagg' $$
	LANGUAGE sql STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_version() IS 'version of the installed extension, as text';

CREATE FUNCTION gpuagg_devices(OUT device int4, OUT name text, OUT memory int8, OUT memory_used int8,
	OUT driver text, OUT sessions int4, OUT queries int8, OUT failures int8, OUT out_of_memory int8, OUT restarts int4,
	OUT state text, OUT last_error text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 4;
COMMENT ON FUNCTION gpuagg_devices() IS
'a row a GPU in use: its number and name, its memory and what the extension holds of it in bytes, the driver, the sessions now served; of the whole server: queries since its start, those that failed there or had no room for all rows, those of them that ran out of device memory or bins, how often it was started again, its state and its last error (null if none), or a note on this GPU; a row as well for a GPU that cannot be used, with the state "not used" and the reason as its last error; no row without a GPU';

CREATE FUNCTION gpuagg_progress(OUT pid int4, OUT datid oid, OUT relid oid, OUT blocks_done int8, OUT blocks_total int8,
	OUT rows int8, OUT groups int8)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpuagg_progress() IS 'rows of the view gpuagg_progress; relid is 0 before the first table; no nulls';

CREATE VIEW gpuagg_progress AS
SELECT p.pid, d.datname, p.relid, CASE WHEN d.datname = current_database() THEN p.relid::regclass END AS relation,
	p.blocks_done, p.blocks_total, p.rows, p.groups
FROM gpuagg_progress() p LEFT JOIN pg_database d ON d.oid = p.datid;
COMMENT ON VIEW gpuagg_progress IS
'scans of tables by the heap feed that run now, one row a process: blocks of the table being read, those this process has read, and rows and groups so far; empty unless gpuagg is in shared_preload_libraries';
GRANT SELECT ON gpuagg_progress TO PUBLIC;

CREATE FUNCTION gpuagg_cache_columns(OUT datid oid, OUT tablespace oid, OUT relfilenode oid, OUT relid oid, OUT attnum int2,
	OUT tier text, OUT blocks int8, OUT "rows" int8, OUT bytes int8, OUT hits int8, OUT valid float8, OUT last_use timestamptz)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION gpuagg_cache_columns() IS
'rows of the view gpuagg_cache, by OIDs: attnum is 0 for what stands beside all columns of a table; last_use is null before the first use, nothing else is';

CREATE VIEW gpuagg_cache AS
SELECT d.datname, r.oid::regclass AS relation, c.relfilenode, a.attname AS "column", c.tier, c.blocks, c."rows", c.bytes, c.hits,
	c.valid, c.last_use
FROM gpuagg_cache_columns() c LEFT JOIN pg_database d ON d.oid = c.datid
	LEFT JOIN pg_class r ON r.oid = c.relid AND d.datname = current_database() AND pg_relation_filenode(r.oid) = c.relfilenode
	LEFT JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = c.attnum AND a.attnum > 0;
COMMENT ON VIEW gpuagg_cache IS
'columns of tables that are cached, of all databases, a row a column: the relation (null for one of another database, or that is not there any more) and its file''s number, the column (null for what stands beside all columns of a table: which blocks they are of and what proves them), the tier (ram), the blocks and rows that there are of it, its bytes, how often a range of it was taken from the cache, the share of its blocks that had not changed when last looked at, and when a query last asked for it; empty unless gpuagg is in shared_preload_libraries';
GRANT SELECT ON gpuagg_cache TO PUBLIC;

CREATE FUNCTION gpuagg_cache_prewarm(relation regclass, columns text[] DEFAULT NULL) RETURNS int8
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION gpuagg_cache_prewarm(regclass, text[]) IS
'reads columns of a table, all of them without the second argument, and of its partitions, into the column cache, and anew what has changed, as if two queries had read them; for who may select from these columns; returns of how many blocks all of them are cached now, which are fewer than the table has if memory is short (with a notice) or transactions that changed them may still be running; null if the relation is null';

CREATE FUNCTION gpuagg_cache_evict(relation regclass) RETURNS int8
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpuagg_cache_evict(regclass) IS
'takes a table, with its partitions, out of the column cache; for its owner and superusers; returns the bytes that are given back, at once or by the last query that reads them; 0 if nothing was cached';

CREATE FUNCTION gpuagg_operators(OUT operator text, OUT input text, OUT state_bytes int4, OUT commutative bool,
	OUT atomic text, OUT description text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 40;
COMMENT ON FUNCTION gpuagg_operators() IS 'rows of the view gpuagg_operators; no nulls';

CREATE VIEW gpuagg_operators AS SELECT * FROM gpuagg_operators();
COMMENT ON VIEW gpuagg_operators IS
'every operator that aggregates are made of: its input type, the bytes of a state, whether the order of rows does not matter, and how a GPU updates a state (HDW native instruction, CAS compare-and-swap, XCG lock)';
GRANT SELECT ON gpuagg_operators TO PUBLIC;

DO $support$
DECLARE
	transition regprocedure;
BEGIN
	FOR transition IN
		SELECT DISTINCT aggtransfn::oid
		FROM pg_aggregate JOIN pg_depend ON objid = aggfnoid AND classid = 'pg_proc'::regclass AND deptype = 'e'
			JOIN pg_extension x ON x.oid = refobjid AND extname = 'gpuagg'
		WHERE aggtransfn::oid IN (SELECT objid FROM pg_depend WHERE refobjid = x.oid AND deptype = 'e')
	LOOP
		EXECUTE format('ALTER FUNCTION %s SUPPORT gpuagg_planner_support', transition);
	END LOOP;
END
$support$;
