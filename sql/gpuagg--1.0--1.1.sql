/* gpuagg--1.0--1.1.sql */
\echo Use "ALTER EXTENSION gpuagg UPDATE TO '1.1'" to load this file. \quit

/*
 * Sums and averages of intervals have the same definition in every release of
 * core's: that of 17, which knows infinite intervals.
 */
CREATE OR REPLACE FUNCTION gpuagg_interval_avg_accum(internal, interval) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_interval_avg_accum(internal, interval) IS
'transition function of gpu_sum and gpu_avg of intervals; null values change nothing';
CREATE FUNCTION gpuagg_interval_avg_accum_inv(internal, interval) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_accum_inv(internal, interval) IS
'inverse transition function of gpu_sum and gpu_avg of intervals; null values change nothing';
CREATE FUNCTION gpuagg_interval_avg_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_combine(internal, internal) IS
'combine function of gpu_sum and gpu_avg of intervals; a null state is an empty one';
CREATE FUNCTION gpuagg_interval_avg_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_serialize(internal) IS
'serialisation function of gpu_sum and gpu_avg of intervals; null for null';
CREATE FUNCTION gpuagg_interval_avg_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_deserialize(bytea, internal) IS
'deserialisation function of gpu_sum and gpu_avg of intervals; null for null';
CREATE FUNCTION gpuagg_interval_avg(internal) RETURNS interval
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg(internal) IS
'final function of gpu_avg of intervals; null for null';
CREATE FUNCTION gpuagg_interval_sum(internal) RETURNS interval
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_sum(internal) IS
'final function of gpu_sum of intervals; null for null';

CREATE OR REPLACE AGGREGATE gpu_sum(interval) (
	SFUNC = gpuagg_interval_avg_accum, STYPE = internal, SSPACE = 40, FINALFUNC = gpuagg_interval_sum,
	COMBINEFUNC = gpuagg_interval_avg_combine,
	SERIALFUNC = gpuagg_interval_avg_serialize, DESERIALFUNC = gpuagg_interval_avg_deserialize,
	MSFUNC = gpuagg_interval_avg_accum, MINVFUNC = gpuagg_interval_avg_accum_inv, MSTYPE = internal, MSSPACE = 40,
	MFINALFUNC = gpuagg_interval_sum, PARALLEL = SAFE
);
CREATE OR REPLACE AGGREGATE gpu_avg(interval) (
	SFUNC = gpuagg_interval_avg_accum, STYPE = internal, SSPACE = 40, FINALFUNC = gpuagg_interval_avg,
	COMBINEFUNC = gpuagg_interval_avg_combine,
	SERIALFUNC = gpuagg_interval_avg_serialize, DESERIALFUNC = gpuagg_interval_avg_deserialize,
	MSFUNC = gpuagg_interval_avg_accum, MINVFUNC = gpuagg_interval_avg_accum_inv, MSTYPE = internal, MSSPACE = 40,
	MFINALFUNC = gpuagg_interval_avg, PARALLEL = SAFE
);
-- their transition functions before 17
DROP FUNCTION IF EXISTS gpuagg_interval_pl(interval, interval);
DROP FUNCTION IF EXISTS gpuagg_interval_accum(interval[], interval);

/*
 * Every function of the twins is the library's, LANGUAGE C, which calls core's: a
 * name of an internal function, or a function of pg_catalog, need not exist in the
 * next release, where pg_upgrade creates these objects.  Functions and aggregates
 * keep their identities, so that views and indexes stay.  This comes last, after
 * all aggregates.
 *
 * With nothing but pg_catalog in the search path, no function or operator that somebody
 * put into the extension's schema is called.
 */
DO $own_functions$
DECLARE
	path text := pg_catalog.current_setting('search_path');
	home text;
	item record;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	SELECT quote_ident(nspname) INTO home
	FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'gpuagg';

	-- functions of core's, and what version 1.0 made of them, that aggregates of the extension use
	FOR item IN
		SELECT format('%s.%I(%s)', home, CASE WHEN p.oid < 16384 THEN 'gpuagg_' ELSE '' END || proname,
				pg_get_function_identity_arguments(p.oid)) AS signature,
			'gpuagg_' || prosrc AS symbol, prorettype::regtype AS result, proisstrict AS is_strict,
			bool_or(option = 'SFUNC') AS transition, min(p.oid::regprocedure::text) FILTER (WHERE p.oid < 16384) AS core
		FROM pg_aggregate JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = aggfnoid AND d.deptype = 'e'
			JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid AND extname = 'gpuagg'
			CROSS JOIN (VALUES ('SFUNC'), ('FINALFUNC'), ('COMBINEFUNC'), ('SERIALFUNC'), ('DESERIALFUNC'),
				('MSFUNC'), ('MINVFUNC'), ('MFINALFUNC')) o(option)
			JOIN pg_proc p ON p.oid = CASE option WHEN 'SFUNC' THEN aggtransfn WHEN 'FINALFUNC' THEN aggfinalfn
				WHEN 'COMBINEFUNC' THEN aggcombinefn WHEN 'SERIALFUNC' THEN aggserialfn
				WHEN 'DESERIALFUNC' THEN aggdeserialfn WHEN 'MSFUNC' THEN aggmtransfn
				WHEN 'MINVFUNC' THEN aggminvtransfn ELSE aggmfinalfn END
			JOIN pg_language l ON l.oid = prolang AND lanname = 'internal'
		GROUP BY 1, 2, 3, 4 ORDER BY 1
	LOOP
		EXECUTE format('CREATE OR REPLACE FUNCTION %s RETURNS %s AS ''MODULE_PATHNAME'', %L LANGUAGE C IMMUTABLE %s PARALLEL SAFE %s',
			item.signature, item.result, item.symbol, CASE WHEN item.is_strict THEN 'STRICT' END,
			CASE WHEN item.transition THEN 'SUPPORT ' || home || '.gpuagg_planner_support' END);
		IF item.core IS NOT NULL THEN
			EXECUTE format('COMMENT ON FUNCTION %s IS %L', item.signature, item.core || ' for the extension''s aggregates');
		END IF;
	END LOOP;

	-- aggregates with functions of pg_catalog
	FOR item IN
		SELECT format('%s.%I(%s)', home, proname, CASE pronargs WHEN 0 THEN '*'
				ELSE pg_get_function_identity_arguments(p.oid) END) AS signature,
			concat_ws(', ', f.functions, 'STYPE = ' || aggtranstype::regtype, 'SSPACE = ' || aggtransspace,
				'INITCOND = ' || quote_literal(agginitval), CASE WHEN aggfinalextra THEN 'FINALFUNC_EXTRA' END,
				'MSTYPE = ' || nullif(aggmtranstype, 0)::regtype, 'MSSPACE = ' || nullif(aggmtransspace, 0),
				'MINITCOND = ' || quote_literal(aggminitval), CASE WHEN aggmfinalextra THEN 'MFINALFUNC_EXTRA' END,
				(SELECT 'SORTOP = OPERATOR(pg_catalog.' || oprname || ')' FROM pg_operator WHERE oid = aggsortop),
				CASE proparallel WHEN 's' THEN 'PARALLEL = SAFE' END) AS definition
		FROM pg_aggregate JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = aggfnoid AND d.deptype = 'e'
			JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid AND extname = 'gpuagg'
			JOIN pg_proc p ON p.oid = aggfnoid
			CROSS JOIN LATERAL (
				SELECT string_agg(format('%s = %s.%I', option, home,
						CASE WHEN fn < 16384 THEN 'gpuagg_' ELSE '' END || f.proname), ', ') AS functions,
					bool_or(fn < 16384) AS of_core
				FROM (VALUES ('SFUNC', aggtransfn::oid), ('FINALFUNC', aggfinalfn), ('COMBINEFUNC', aggcombinefn),
					('SERIALFUNC', aggserialfn), ('DESERIALFUNC', aggdeserialfn), ('MSFUNC', aggmtransfn),
					('MINVFUNC', aggminvtransfn), ('MFINALFUNC', aggmfinalfn)) o(option, fn)
					JOIN pg_proc f ON f.oid = fn) f
		WHERE of_core ORDER BY 1
	LOOP
		EXECUTE format('CREATE OR REPLACE AGGREGATE %s (%s)', item.signature, item.definition);
	END LOOP;
	PERFORM pg_catalog.set_config('search_path', path, true);
END
$own_functions$;
