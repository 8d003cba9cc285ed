/* gpuagg 1.1: all objects, for a new installation.  gpuagg--1.0--1.1.sql makes the same of the objects of version 1.0. */
\echo Use "CREATE EXTENSION gpuagg" to load this file. \quit

/*
 * Names.  The script runs with the extension's schema in the search_path, behind pg_catalog.  The names of its own objects
 * are bare, as the extension can be moved to another schema.  They cannot be captured: each one names an object that was
 * created above, with exactly these argument types.  Functions of PostgreSQL in bodies have their schema, and so have
 * operators whose operands do not have exactly the types of the operator.
 */

/*
 * The planner asks the support function of an aggregate's transition function for its cost. That loads the library in
 * time for the same query.
 */
CREATE FUNCTION gpuagg_planner_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_planner_support(internal) IS 'support function that makes the planner load the library; never null';

/*
 * Functions of the twins below. Each one is a function of the library that calls the function of PostgreSQL
 * with the same name. No object of the extension names an internal function, or a function of pg_catalog:
 * such a function may be gone in the next release, in which pg_upgrade creates these objects.
 */
CREATE FUNCTION gpuagg_array_larger(anyarray, anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_array_larger(anyarray, anyarray) IS 'array_larger(anyarray,anyarray) for the extension''s aggregates';
CREATE FUNCTION gpuagg_array_smaller(anyarray, anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_array_smaller(anyarray, anyarray) IS 'array_smaller(anyarray,anyarray) for the extension''s aggregates';
CREATE FUNCTION gpuagg_bool_accum(internal, bool) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_bool_accum(internal, bool) IS 'bool_accum(internal,boolean) for the extension''s aggregates';
CREATE FUNCTION gpuagg_bool_accum_inv(internal, bool) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_bool_accum_inv(internal, bool) IS 'bool_accum_inv(internal,boolean) for the extension''s aggregates';
CREATE FUNCTION gpuagg_bool_alltrue(internal) RETURNS bool AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_bool_alltrue(internal) IS 'bool_alltrue(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_bool_anytrue(internal) RETURNS bool AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_bool_anytrue(internal) IS 'bool_anytrue(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_booland_statefunc(bool, bool) RETURNS bool
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_booland_statefunc(bool, bool) IS 'booland_statefunc(boolean,boolean) for the extension''s aggregates';
CREATE FUNCTION gpuagg_boolor_statefunc(bool, bool) RETURNS bool
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_boolor_statefunc(bool, bool) IS 'boolor_statefunc(boolean,boolean) for the extension''s aggregates';
CREATE FUNCTION gpuagg_bpchar_larger(bpchar, bpchar) RETURNS bpchar
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_bpchar_larger(bpchar, bpchar) IS 'bpchar_larger(character,character) for the extension''s aggregates';
CREATE FUNCTION gpuagg_bpchar_smaller(bpchar, bpchar) RETURNS bpchar
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_bpchar_smaller(bpchar, bpchar) IS 'bpchar_smaller(character,character) for the extension''s aggregates';
CREATE FUNCTION gpuagg_cash_mi(money, money) RETURNS money AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_cash_mi(money, money) IS 'cash_mi(money,money) for the extension''s aggregates';
CREATE FUNCTION gpuagg_cash_pl(money, money) RETURNS money
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_cash_pl(money, money) IS 'cash_pl(money,money) for the extension''s aggregates';
CREATE FUNCTION gpuagg_cashlarger(money, money) RETURNS money
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_cashlarger(money, money) IS 'cashlarger(money,money) for the extension''s aggregates';
CREATE FUNCTION gpuagg_cashsmaller(money, money) RETURNS money
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_cashsmaller(money, money) IS 'cashsmaller(money,money) for the extension''s aggregates';
CREATE FUNCTION gpuagg_date_larger(date, date) RETURNS date
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_date_larger(date, date) IS 'date_larger(date,date) for the extension''s aggregates';
CREATE FUNCTION gpuagg_date_smaller(date, date) RETURNS date
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_date_smaller(date, date) IS 'date_smaller(date,date) for the extension''s aggregates';
CREATE FUNCTION gpuagg_enum_larger(anyelement, anyelement) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_enum_larger(anyelement, anyelement) IS 'enum_larger(anyenum,anyenum) for the extension''s aggregates';
CREATE FUNCTION gpuagg_enum_larger(anyelement, anyenum) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_enum_larger(anyelement, anyenum) IS 'enum_larger(anyenum,anyenum) for the extension''s aggregates';
CREATE FUNCTION gpuagg_enum_smaller(anyelement, anyelement) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_enum_smaller(anyelement, anyelement) IS 'enum_smaller(anyenum,anyenum) for the extension''s aggregates';
CREATE FUNCTION gpuagg_enum_smaller(anyelement, anyenum) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_enum_smaller(anyelement, anyenum) IS 'enum_smaller(anyenum,anyenum) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float4_accum(float8[], float4) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float4_accum(float8[], float4) IS 'float4_accum(double precision[],real) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float4larger(float4, float4) RETURNS float4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float4larger(float4, float4) IS 'float4larger(real,real) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float4pl(float4, float4) RETURNS float4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float4pl(float4, float4) IS 'float4pl(real,real) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float4smaller(float4, float4) RETURNS float4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float4smaller(float4, float4) IS 'float4smaller(real,real) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_accum(float8[], float8) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float8_accum(float8[], float8) IS
'float8_accum(double precision[],double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_avg(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_avg(float8[]) IS 'float8_avg(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_combine(float8[], float8[]) RETURNS float8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_combine(float8[], float8[]) IS
'float8_combine(double precision[],double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_corr(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_corr(float8[]) IS 'float8_corr(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_covar_pop(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_covar_pop(float8[]) IS 'float8_covar_pop(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_covar_samp(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_covar_samp(float8[]) IS 'float8_covar_samp(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_accum(float8[], float8, float8) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float8_regr_accum(float8[], float8, float8) IS
'float8_regr_accum(double precision[],double precision,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_avgx(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_avgx(float8[]) IS 'float8_regr_avgx(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_avgy(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_avgy(float8[]) IS 'float8_regr_avgy(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_combine(float8[], float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_combine(float8[], float8[]) IS
'float8_regr_combine(double precision[],double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_intercept(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_intercept(float8[]) IS 'float8_regr_intercept(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_r2(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_r2(float8[]) IS 'float8_regr_r2(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_slope(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_slope(float8[]) IS 'float8_regr_slope(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_sxx(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_sxx(float8[]) IS 'float8_regr_sxx(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_sxy(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_sxy(float8[]) IS 'float8_regr_sxy(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_regr_syy(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_regr_syy(float8[]) IS 'float8_regr_syy(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_stddev_pop(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_stddev_pop(float8[]) IS 'float8_stddev_pop(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_stddev_samp(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_stddev_samp(float8[]) IS 'float8_stddev_samp(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_var_pop(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_var_pop(float8[]) IS 'float8_var_pop(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8_var_samp(float8[]) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_float8_var_samp(float8[]) IS 'float8_var_samp(double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8larger(float8, float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float8larger(float8, float8) IS
'float8larger(double precision,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8mul(float8, float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float8mul(float8, float8) IS 'float8mul(double precision,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8pl(float8, float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float8pl(float8, float8) IS 'float8pl(double precision,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_float8smaller(float8, float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_float8smaller(float8, float8) IS
'float8smaller(double precision,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2_accum(internal, int2) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2_accum(internal, int2) IS 'int2_accum(internal,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2_accum_inv(internal, int2) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int2_accum_inv(internal, int2) IS 'int2_accum_inv(internal,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2_avg_accum(int8[], int2) RETURNS int8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2_avg_accum(int8[], int2) IS 'int2_avg_accum(bigint[],smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2_avg_accum_inv(int8[], int2) RETURNS int8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int2_avg_accum_inv(int8[], int2) IS 'int2_avg_accum_inv(bigint[],smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2_sum(int8, int2) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2_sum(int8, int2) IS 'int2_sum(bigint,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2and(int2, int2) RETURNS int2
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2and(int2, int2) IS 'int2and(smallint,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2int4_sum(int8[]) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int2int4_sum(int8[]) IS 'int2int4_sum(bigint[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2larger(int2, int2) RETURNS int2
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2larger(int2, int2) IS 'int2larger(smallint,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2or(int2, int2) RETURNS int2
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2or(int2, int2) IS 'int2or(smallint,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2smaller(int2, int2) RETURNS int2
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2smaller(int2, int2) IS 'int2smaller(smallint,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int2xor(int2, int2) RETURNS int2
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int2xor(int2, int2) IS 'int2xor(smallint,smallint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4_accum(internal, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4_accum(internal, int4) IS 'int4_accum(internal,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4_accum_inv(internal, int4) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int4_accum_inv(internal, int4) IS 'int4_accum_inv(internal,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4_avg_accum(int8[], int4) RETURNS int8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4_avg_accum(int8[], int4) IS 'int4_avg_accum(bigint[],integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4_avg_accum_inv(int8[], int4) RETURNS int8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int4_avg_accum_inv(int8[], int4) IS 'int4_avg_accum_inv(bigint[],integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4_avg_combine(int8[], int8[]) RETURNS int8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int4_avg_combine(int8[], int8[]) IS 'int4_avg_combine(bigint[],bigint[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4_sum(int8, int4) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4_sum(int8, int4) IS 'int4_sum(bigint,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4and(int4, int4) RETURNS int4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4and(int4, int4) IS 'int4and(integer,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4larger(int4, int4) RETURNS int4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4larger(int4, int4) IS 'int4larger(integer,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4or(int4, int4) RETURNS int4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4or(int4, int4) IS 'int4or(integer,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4smaller(int4, int4) RETURNS int4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4smaller(int4, int4) IS 'int4smaller(integer,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int4xor(int4, int4) RETURNS int4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int4xor(int4, int4) IS 'int4xor(integer,integer) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_accum(internal, int8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8_accum(internal, int8) IS 'int8_accum(internal,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_accum_inv(internal, int8) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8_accum_inv(internal, int8) IS 'int8_accum_inv(internal,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_avg(int8[]) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8_avg(int8[]) IS 'int8_avg(bigint[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_avg_accum(internal, int8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8_avg_accum(internal, int8) IS 'int8_avg_accum(internal,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_avg_accum_inv(internal, int8) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8_avg_accum_inv(internal, int8) IS 'int8_avg_accum_inv(internal,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_avg_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8_avg_combine(internal, internal) IS 'int8_avg_combine(internal,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_avg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8_avg_deserialize(bytea, internal) IS 'int8_avg_deserialize(bytea,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8_avg_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8_avg_serialize(internal) IS 'int8_avg_serialize(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8and(int8, int8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8and(int8, int8) IS 'int8and(bigint,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8dec(int8) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8dec(int8) IS 'int8dec(bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8dec_any(int8, "any") RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8dec_any(int8, "any") IS 'int8dec_any(bigint,"any") for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8inc(int8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8inc(int8) IS 'int8inc(bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8inc_any(int8, "any") RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8inc_any(int8, "any") IS 'int8inc_any(bigint,"any") for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8inc_float8_float8(int8, float8, float8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8inc_float8_float8(int8, float8, float8) IS
'int8inc_float8_float8(bigint,double precision,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8larger(int8, int8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8larger(int8, int8) IS 'int8larger(bigint,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8or(int8, int8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8or(int8, int8) IS 'int8or(bigint,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8pl(int8, int8) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_int8pl(int8, int8) IS 'int8pl(bigint,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8smaller(int8, int8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8smaller(int8, int8) IS 'int8smaller(bigint,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_int8xor(int8, int8) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_int8xor(int8, int8) IS 'int8xor(bigint,bigint) for the extension''s aggregates';
CREATE FUNCTION gpuagg_interval_avg(internal) RETURNS interval AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg(internal) IS 'final function of gpu_avg of intervals; null for null';
CREATE FUNCTION gpuagg_interval_avg_accum(internal, interval) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_interval_avg_accum(internal, interval) IS
'transition function of gpu_sum and gpu_avg of intervals; null values change nothing';
CREATE FUNCTION gpuagg_interval_avg_accum_inv(internal, interval) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_accum_inv(internal, interval) IS
'inverse transition function of gpu_sum and gpu_avg of intervals; null values change nothing';
CREATE FUNCTION gpuagg_interval_avg_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_combine(internal, internal) IS
'combine function of gpu_sum and gpu_avg of intervals; a null state is an empty one';
CREATE FUNCTION gpuagg_interval_avg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_deserialize(bytea, internal) IS
'deserialisation function of gpu_sum and gpu_avg of intervals; null for null';
CREATE FUNCTION gpuagg_interval_avg_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_avg_serialize(internal) IS 'serialisation function of gpu_sum and gpu_avg of intervals; null for null';
CREATE FUNCTION gpuagg_interval_larger(interval, interval) RETURNS interval
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_interval_larger(interval, interval) IS 'interval_larger(interval,interval) for the extension''s aggregates';
CREATE FUNCTION gpuagg_interval_smaller(interval, interval) RETURNS interval
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_interval_smaller(interval, interval) IS 'interval_smaller(interval,interval) for the extension''s aggregates';
CREATE FUNCTION gpuagg_interval_sum(internal) RETURNS interval AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_interval_sum(internal) IS 'final function of gpu_sum of intervals; null for null';
CREATE FUNCTION gpuagg_network_larger(inet, inet) RETURNS inet
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_network_larger(inet, inet) IS 'network_larger(inet,inet) for the extension''s aggregates';
CREATE FUNCTION gpuagg_network_smaller(inet, inet) RETURNS inet
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_network_smaller(inet, inet) IS 'network_smaller(inet,inet) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_accum(internal, numeric) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_numeric_accum(internal, numeric) IS 'numeric_accum(internal,numeric) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_accum_inv(internal, numeric) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_accum_inv(internal, numeric) IS 'numeric_accum_inv(internal,numeric) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_avg(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_avg(internal) IS 'numeric_avg(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_avg_accum(internal, numeric) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_numeric_avg_accum(internal, numeric) IS 'numeric_avg_accum(internal,numeric) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_avg_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_avg_combine(internal, internal) IS
'numeric_avg_combine(internal,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_avg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_avg_deserialize(bytea, internal) IS
'numeric_avg_deserialize(bytea,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_avg_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_avg_serialize(internal) IS 'numeric_avg_serialize(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_combine(internal, internal) IS 'numeric_combine(internal,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_deserialize(bytea, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_deserialize(bytea, internal) IS 'numeric_deserialize(bytea,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_larger(numeric, numeric) RETURNS numeric
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_numeric_larger(numeric, numeric) IS 'numeric_larger(numeric,numeric) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_mul(numeric, numeric) RETURNS numeric
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_numeric_mul(numeric, numeric) IS 'numeric_mul(numeric,numeric) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_avg(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_avg(internal) IS 'numeric_poly_avg(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_combine(internal, internal) IS
'numeric_poly_combine(internal,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_deserialize(bytea, internal) IS
'numeric_poly_deserialize(bytea,internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_serialize(internal) IS 'numeric_poly_serialize(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_stddev_pop(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_stddev_pop(internal) IS 'numeric_poly_stddev_pop(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_stddev_samp(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_stddev_samp(internal) IS 'numeric_poly_stddev_samp(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_sum(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_sum(internal) IS 'numeric_poly_sum(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_var_pop(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_var_pop(internal) IS 'numeric_poly_var_pop(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_poly_var_samp(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_poly_var_samp(internal) IS 'numeric_poly_var_samp(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_serialize(internal) IS 'numeric_serialize(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_smaller(numeric, numeric) RETURNS numeric
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_numeric_smaller(numeric, numeric) IS 'numeric_smaller(numeric,numeric) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_stddev_pop(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_stddev_pop(internal) IS 'numeric_stddev_pop(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_stddev_samp(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_stddev_samp(internal) IS 'numeric_stddev_samp(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_sum(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_sum(internal) IS 'numeric_sum(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_var_pop(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_var_pop(internal) IS 'numeric_var_pop(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_numeric_var_samp(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_numeric_var_samp(internal) IS 'numeric_var_samp(internal) for the extension''s aggregates';
CREATE FUNCTION gpuagg_oidlarger(oid, oid) RETURNS oid
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_oidlarger(oid, oid) IS 'oidlarger(oid,oid) for the extension''s aggregates';
CREATE FUNCTION gpuagg_oidsmaller(oid, oid) RETURNS oid
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_oidsmaller(oid, oid) IS 'oidsmaller(oid,oid) for the extension''s aggregates';
CREATE FUNCTION gpuagg_pg_lsn_larger(pg_lsn, pg_lsn) RETURNS pg_lsn
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_pg_lsn_larger(pg_lsn, pg_lsn) IS 'pg_lsn_larger(pg_lsn,pg_lsn) for the extension''s aggregates';
CREATE FUNCTION gpuagg_pg_lsn_smaller(pg_lsn, pg_lsn) RETURNS pg_lsn
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_pg_lsn_smaller(pg_lsn, pg_lsn) IS 'pg_lsn_smaller(pg_lsn,pg_lsn) for the extension''s aggregates';
CREATE FUNCTION gpuagg_text_larger(text, text) RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_text_larger(text, text) IS 'text_larger(text,text) for the extension''s aggregates';
CREATE FUNCTION gpuagg_text_smaller(text, text) RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_text_smaller(text, text) IS 'text_smaller(text,text) for the extension''s aggregates';
CREATE FUNCTION gpuagg_tidlarger(tid, tid) RETURNS tid
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_tidlarger(tid, tid) IS 'tidlarger(tid,tid) for the extension''s aggregates';
CREATE FUNCTION gpuagg_tidsmaller(tid, tid) RETURNS tid
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_tidsmaller(tid, tid) IS 'tidsmaller(tid,tid) for the extension''s aggregates';
CREATE FUNCTION gpuagg_time_larger(time, time) RETURNS time
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_time_larger(time, time) IS
'time_larger(time without time zone,time without time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_time_smaller(time, time) RETURNS time
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_time_smaller(time, time) IS
'time_smaller(time without time zone,time without time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_timestamp_larger(timestamp, timestamp) RETURNS timestamp
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_timestamp_larger(timestamp, timestamp) IS
'timestamp_larger(timestamp without time zone,timestamp without time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_timestamp_smaller(timestamp, timestamp) RETURNS timestamp
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_timestamp_smaller(timestamp, timestamp) IS
'timestamp_smaller(timestamp without time zone,timestamp without time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_timestamptz_larger(timestamptz, timestamptz) RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'gpuagg_timestamp_larger' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_timestamptz_larger(timestamptz, timestamptz) IS
'timestamptz_larger(timestamp with time zone,timestamp with time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_timestamptz_smaller(timestamptz, timestamptz) RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'gpuagg_timestamp_smaller' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_timestamptz_smaller(timestamptz, timestamptz) IS
'timestamptz_smaller(timestamp with time zone,timestamp with time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_timetz_larger(timetz, timetz) RETURNS timetz
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_timetz_larger(timetz, timetz) IS
'timetz_larger(time with time zone,time with time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_timetz_smaller(timetz, timetz) RETURNS timetz
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_timetz_smaller(timetz, timetz) IS
'timetz_smaller(time with time zone,time with time zone) for the extension''s aggregates';
CREATE FUNCTION gpuagg_xid8_larger(xid8, xid8) RETURNS xid8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_xid8_larger(xid8, xid8) IS 'xid8_larger(xid8,xid8) for the extension''s aggregates';
CREATE FUNCTION gpuagg_xid8_smaller(xid8, xid8) RETURNS xid8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_xid8_smaller(xid8, xid8) IS 'xid8_smaller(xid8,xid8) for the extension''s aggregates';

/*
 * Twins of PostgreSQL's aggregates: gpu_sum(int4) is sum(int4) under another name. It has the same state type, initial
 * values and sort operator. The library recognises an aggregate by its transition function.
 */
CREATE AGGREGATE gpu_count(*) (
    SFUNC = gpuagg_int8inc, STYPE = int8, INITCOND = '0', COMBINEFUNC = gpuagg_int8pl, MSFUNC = gpuagg_int8inc,
    MINVFUNC = gpuagg_int8dec, MSTYPE = int8, MINITCOND = '0', PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_count(*) IS 'number of rows, or of rows where the argument is not null; 0 without one; as core''s count';
CREATE AGGREGATE gpu_count("any") (
    SFUNC = gpuagg_int8inc_any, STYPE = int8, INITCOND = '0', COMBINEFUNC = gpuagg_int8pl, MSFUNC = gpuagg_int8inc_any,
    MINVFUNC = gpuagg_int8dec_any, MSTYPE = int8, MINITCOND = '0', PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_count("any") IS 'number of rows, or of rows where the argument is not null; 0 without one; as core''s count';
CREATE AGGREGATE gpu_sum(int2) (
    SFUNC = gpuagg_int2_sum, STYPE = int8, COMBINEFUNC = gpuagg_int8pl, MSFUNC = gpuagg_int2_avg_accum,
    MINVFUNC = gpuagg_int2_avg_accum_inv, MSTYPE = int8[], MINITCOND = '{0,0}', MFINALFUNC = gpuagg_int2int4_sum, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(int2) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(int4) (
    SFUNC = gpuagg_int4_sum, STYPE = int8, COMBINEFUNC = gpuagg_int8pl, MSFUNC = gpuagg_int4_avg_accum,
    MINVFUNC = gpuagg_int4_avg_accum_inv, MSTYPE = int8[], MINITCOND = '{0,0}', MFINALFUNC = gpuagg_int2int4_sum, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(int4) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(int8) (
    SFUNC = gpuagg_int8_avg_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_sum,
    COMBINEFUNC = gpuagg_int8_avg_combine, SERIALFUNC = gpuagg_int8_avg_serialize, DESERIALFUNC = gpuagg_int8_avg_deserialize,
    MSFUNC = gpuagg_int8_avg_accum, MINVFUNC = gpuagg_int8_avg_accum_inv, MSTYPE = internal, MSSPACE = 48,
    MFINALFUNC = gpuagg_numeric_poly_sum, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(int8) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(float4) (SFUNC = gpuagg_float4pl, STYPE = float4, COMBINEFUNC = gpuagg_float4pl, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(float4) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(float8) (SFUNC = gpuagg_float8pl, STYPE = float8, COMBINEFUNC = gpuagg_float8pl, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(float8) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(numeric) (
    SFUNC = gpuagg_numeric_avg_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_sum,
    COMBINEFUNC = gpuagg_numeric_avg_combine, SERIALFUNC = gpuagg_numeric_avg_serialize, DESERIALFUNC = gpuagg_numeric_avg_deserialize,
    MSFUNC = gpuagg_numeric_avg_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_sum, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(numeric) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(interval) (
    SFUNC = gpuagg_interval_avg_accum, STYPE = internal, SSPACE = 40, FINALFUNC = gpuagg_interval_sum,
    COMBINEFUNC = gpuagg_interval_avg_combine, SERIALFUNC = gpuagg_interval_avg_serialize,
    DESERIALFUNC = gpuagg_interval_avg_deserialize, MSFUNC = gpuagg_interval_avg_accum, MINVFUNC = gpuagg_interval_avg_accum_inv,
    MSTYPE = internal, MSSPACE = 40, MFINALFUNC = gpuagg_interval_sum, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(interval) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_sum(money) (
    SFUNC = gpuagg_cash_pl, STYPE = money, COMBINEFUNC = gpuagg_cash_pl, MSFUNC = gpuagg_cash_pl, MINVFUNC = gpuagg_cash_mi,
    MSTYPE = money, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_sum(money) IS 'sum of the non-null values; null without one; as core''s sum';
CREATE AGGREGATE gpu_avg(int2) (
    SFUNC = gpuagg_int2_avg_accum, STYPE = int8[], INITCOND = '{0,0}', FINALFUNC = gpuagg_int8_avg,
    COMBINEFUNC = gpuagg_int4_avg_combine, MSFUNC = gpuagg_int2_avg_accum, MINVFUNC = gpuagg_int2_avg_accum_inv, MSTYPE = int8[],
    MINITCOND = '{0,0}', MFINALFUNC = gpuagg_int8_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(int2) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_avg(int4) (
    SFUNC = gpuagg_int4_avg_accum, STYPE = int8[], INITCOND = '{0,0}', FINALFUNC = gpuagg_int8_avg,
    COMBINEFUNC = gpuagg_int4_avg_combine, MSFUNC = gpuagg_int4_avg_accum, MINVFUNC = gpuagg_int4_avg_accum_inv, MSTYPE = int8[],
    MINITCOND = '{0,0}', MFINALFUNC = gpuagg_int8_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(int4) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_avg(int8) (
    SFUNC = gpuagg_int8_avg_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_avg,
    COMBINEFUNC = gpuagg_int8_avg_combine, SERIALFUNC = gpuagg_int8_avg_serialize, DESERIALFUNC = gpuagg_int8_avg_deserialize,
    MSFUNC = gpuagg_int8_avg_accum, MINVFUNC = gpuagg_int8_avg_accum_inv, MSTYPE = internal, MSSPACE = 48,
    MFINALFUNC = gpuagg_numeric_poly_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(int8) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_avg(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_avg,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(float4) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_avg(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_avg,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(float8) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_avg(numeric) (
    SFUNC = gpuagg_numeric_avg_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_avg,
    COMBINEFUNC = gpuagg_numeric_avg_combine, SERIALFUNC = gpuagg_numeric_avg_serialize, DESERIALFUNC = gpuagg_numeric_avg_deserialize,
    MSFUNC = gpuagg_numeric_avg_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(numeric) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_avg(interval) (
    SFUNC = gpuagg_interval_avg_accum, STYPE = internal, SSPACE = 40, FINALFUNC = gpuagg_interval_avg,
    COMBINEFUNC = gpuagg_interval_avg_combine, SERIALFUNC = gpuagg_interval_avg_serialize,
    DESERIALFUNC = gpuagg_interval_avg_deserialize, MSFUNC = gpuagg_interval_avg_accum, MINVFUNC = gpuagg_interval_avg_accum_inv,
    MSTYPE = internal, MSSPACE = 40, MFINALFUNC = gpuagg_interval_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_avg(interval) IS 'arithmetic mean of the non-null values; null without one; as core''s avg';
CREATE AGGREGATE gpu_min(int2) (
    SFUNC = gpuagg_int2smaller, STYPE = int2, COMBINEFUNC = gpuagg_int2smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(int2) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(int4) (
    SFUNC = gpuagg_int4smaller, STYPE = int4, COMBINEFUNC = gpuagg_int4smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(int4) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(int8) (
    SFUNC = gpuagg_int8smaller, STYPE = int8, COMBINEFUNC = gpuagg_int8smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(int8) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(float4) (
    SFUNC = gpuagg_float4smaller, STYPE = float4, COMBINEFUNC = gpuagg_float4smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(float4) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(float8) (
    SFUNC = gpuagg_float8smaller, STYPE = float8, COMBINEFUNC = gpuagg_float8smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(float8) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(numeric) (
    SFUNC = gpuagg_numeric_smaller, STYPE = numeric, COMBINEFUNC = gpuagg_numeric_smaller, SORTOP = OPERATOR(pg_catalog.<),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(numeric) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(date) (
    SFUNC = gpuagg_date_smaller, STYPE = date, COMBINEFUNC = gpuagg_date_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(date) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(time) (
    SFUNC = gpuagg_time_smaller, STYPE = time, COMBINEFUNC = gpuagg_time_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(time) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(timestamp) (
    SFUNC = gpuagg_timestamp_smaller, STYPE = timestamp, COMBINEFUNC = gpuagg_timestamp_smaller, SORTOP = OPERATOR(pg_catalog.<),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(timestamp) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(timestamptz) (
    SFUNC = gpuagg_timestamptz_smaller, STYPE = timestamptz, COMBINEFUNC = gpuagg_timestamptz_smaller, SORTOP = OPERATOR(pg_catalog.<),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(timestamptz) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(interval) (
    SFUNC = gpuagg_interval_smaller, STYPE = interval, COMBINEFUNC = gpuagg_interval_smaller, SORTOP = OPERATOR(pg_catalog.<),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(interval) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(money) (
    SFUNC = gpuagg_cashsmaller, STYPE = money, COMBINEFUNC = gpuagg_cashsmaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(money) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(oid) (
    SFUNC = gpuagg_oidsmaller, STYPE = oid, COMBINEFUNC = gpuagg_oidsmaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(oid) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(text) (
    SFUNC = gpuagg_text_smaller, STYPE = text, COMBINEFUNC = gpuagg_text_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(text) IS 'smallest non-null value (NaN is the greatest number); null without one; as core''s min';
CREATE AGGREGATE gpu_min(anyarray) (
    SFUNC = gpuagg_array_smaller, STYPE = anyarray, COMBINEFUNC = gpuagg_array_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(anyarray) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(anyenum) (
    SFUNC = gpuagg_enum_smaller, STYPE = anyelement, COMBINEFUNC = gpuagg_enum_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(anyenum) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(bpchar) (
    SFUNC = gpuagg_bpchar_smaller, STYPE = bpchar, COMBINEFUNC = gpuagg_bpchar_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(bpchar) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(inet) (
    SFUNC = gpuagg_network_smaller, STYPE = inet, COMBINEFUNC = gpuagg_network_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(inet) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(pg_lsn) (
    SFUNC = gpuagg_pg_lsn_smaller, STYPE = pg_lsn, COMBINEFUNC = gpuagg_pg_lsn_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(pg_lsn) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(tid) (
    SFUNC = gpuagg_tidsmaller, STYPE = tid, COMBINEFUNC = gpuagg_tidsmaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(tid) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(timetz) (
    SFUNC = gpuagg_timetz_smaller, STYPE = timetz, COMBINEFUNC = gpuagg_timetz_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(timetz) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_min(xid8) (
    SFUNC = gpuagg_xid8_smaller, STYPE = xid8, COMBINEFUNC = gpuagg_xid8_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min(xid8) IS 'smallest non-null value; null without one; as core''s min';
CREATE AGGREGATE gpu_max(int2) (
    SFUNC = gpuagg_int2larger, STYPE = int2, COMBINEFUNC = gpuagg_int2larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(int2) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(int4) (
    SFUNC = gpuagg_int4larger, STYPE = int4, COMBINEFUNC = gpuagg_int4larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(int4) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(int8) (
    SFUNC = gpuagg_int8larger, STYPE = int8, COMBINEFUNC = gpuagg_int8larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(int8) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(float4) (
    SFUNC = gpuagg_float4larger, STYPE = float4, COMBINEFUNC = gpuagg_float4larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(float4) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(float8) (
    SFUNC = gpuagg_float8larger, STYPE = float8, COMBINEFUNC = gpuagg_float8larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(float8) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(numeric) (
    SFUNC = gpuagg_numeric_larger, STYPE = numeric, COMBINEFUNC = gpuagg_numeric_larger, SORTOP = OPERATOR(pg_catalog.>),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(numeric) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(date) (
    SFUNC = gpuagg_date_larger, STYPE = date, COMBINEFUNC = gpuagg_date_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(date) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(time) (
    SFUNC = gpuagg_time_larger, STYPE = time, COMBINEFUNC = gpuagg_time_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(time) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(timestamp) (
    SFUNC = gpuagg_timestamp_larger, STYPE = timestamp, COMBINEFUNC = gpuagg_timestamp_larger, SORTOP = OPERATOR(pg_catalog.>),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(timestamp) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(timestamptz) (
    SFUNC = gpuagg_timestamptz_larger, STYPE = timestamptz, COMBINEFUNC = gpuagg_timestamptz_larger, SORTOP = OPERATOR(pg_catalog.>),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(timestamptz) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(interval) (
    SFUNC = gpuagg_interval_larger, STYPE = interval, COMBINEFUNC = gpuagg_interval_larger, SORTOP = OPERATOR(pg_catalog.>),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(interval) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(money) (
    SFUNC = gpuagg_cashlarger, STYPE = money, COMBINEFUNC = gpuagg_cashlarger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(money) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(oid) (
    SFUNC = gpuagg_oidlarger, STYPE = oid, COMBINEFUNC = gpuagg_oidlarger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(oid) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(text) (
    SFUNC = gpuagg_text_larger, STYPE = text, COMBINEFUNC = gpuagg_text_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(text) IS 'greatest non-null value (NaN is the greatest number); null without one; as core''s max';
CREATE AGGREGATE gpu_max(anyarray) (
    SFUNC = gpuagg_array_larger, STYPE = anyarray, COMBINEFUNC = gpuagg_array_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(anyarray) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(anyenum) (
    SFUNC = gpuagg_enum_larger, STYPE = anyelement, COMBINEFUNC = gpuagg_enum_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(anyenum) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(bpchar) (
    SFUNC = gpuagg_bpchar_larger, STYPE = bpchar, COMBINEFUNC = gpuagg_bpchar_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(bpchar) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(inet) (
    SFUNC = gpuagg_network_larger, STYPE = inet, COMBINEFUNC = gpuagg_network_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(inet) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(pg_lsn) (
    SFUNC = gpuagg_pg_lsn_larger, STYPE = pg_lsn, COMBINEFUNC = gpuagg_pg_lsn_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(pg_lsn) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(tid) (
    SFUNC = gpuagg_tidlarger, STYPE = tid, COMBINEFUNC = gpuagg_tidlarger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(tid) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(timetz) (
    SFUNC = gpuagg_timetz_larger, STYPE = timetz, COMBINEFUNC = gpuagg_timetz_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(timetz) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_max(xid8) (
    SFUNC = gpuagg_xid8_larger, STYPE = xid8, COMBINEFUNC = gpuagg_xid8_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max(xid8) IS 'greatest non-null value; null without one; as core''s max';
CREATE AGGREGATE gpu_stddev(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int2_accum, MINVFUNC = gpuagg_int2_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev(int2) IS 'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev';
CREATE AGGREGATE gpu_stddev(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int4_accum, MINVFUNC = gpuagg_int4_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev(int4) IS 'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev';
CREATE AGGREGATE gpu_stddev(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_int8_accum, MINVFUNC = gpuagg_int8_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev(int8) IS 'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev';
CREATE AGGREGATE gpu_stddev(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_stddev_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev(float4) IS 'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev';
CREATE AGGREGATE gpu_stddev(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_stddev_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev(float8) IS 'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev';
CREATE AGGREGATE gpu_stddev(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_numeric_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev(numeric) IS 'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev';
CREATE AGGREGATE gpu_stddev_samp(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int2_accum, MINVFUNC = gpuagg_int2_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_samp(int2) IS
'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev_samp';
CREATE AGGREGATE gpu_stddev_samp(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int4_accum, MINVFUNC = gpuagg_int4_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_samp(int4) IS
'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev_samp';
CREATE AGGREGATE gpu_stddev_samp(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_int8_accum, MINVFUNC = gpuagg_int8_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_samp(int8) IS
'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev_samp';
CREATE AGGREGATE gpu_stddev_samp(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_stddev_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_samp(float4) IS
'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev_samp';
CREATE AGGREGATE gpu_stddev_samp(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_stddev_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_samp(float8) IS
'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev_samp';
CREATE AGGREGATE gpu_stddev_samp(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_stddev_samp,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_numeric_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_samp(numeric) IS
'sample standard deviation of the non-null values; null for fewer than two; as core''s stddev_samp';
CREATE AGGREGATE gpu_stddev_pop(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_stddev_pop,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int2_accum, MINVFUNC = gpuagg_int2_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_stddev_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_pop(int2) IS
'population standard deviation of the non-null values; null without one; as core''s stddev_pop';
CREATE AGGREGATE gpu_stddev_pop(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_stddev_pop,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int4_accum, MINVFUNC = gpuagg_int4_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_stddev_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_pop(int4) IS
'population standard deviation of the non-null values; null without one; as core''s stddev_pop';
CREATE AGGREGATE gpu_stddev_pop(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_stddev_pop,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_int8_accum, MINVFUNC = gpuagg_int8_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_stddev_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_pop(int8) IS
'population standard deviation of the non-null values; null without one; as core''s stddev_pop';
CREATE AGGREGATE gpu_stddev_pop(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_stddev_pop,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_pop(float4) IS
'population standard deviation of the non-null values; null without one; as core''s stddev_pop';
CREATE AGGREGATE gpu_stddev_pop(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_stddev_pop,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_pop(float8) IS
'population standard deviation of the non-null values; null without one; as core''s stddev_pop';
CREATE AGGREGATE gpu_stddev_pop(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_stddev_pop,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_numeric_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_stddev_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_stddev_pop(numeric) IS
'population standard deviation of the non-null values; null without one; as core''s stddev_pop';
CREATE AGGREGATE gpu_variance(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_var_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int2_accum, MINVFUNC = gpuagg_int2_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_variance(int2) IS 'sample variance of the non-null values; null for fewer than two; as core''s variance';
CREATE AGGREGATE gpu_variance(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_var_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int4_accum, MINVFUNC = gpuagg_int4_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_variance(int4) IS 'sample variance of the non-null values; null for fewer than two; as core''s variance';
CREATE AGGREGATE gpu_variance(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_var_samp, COMBINEFUNC = gpuagg_numeric_combine,
    SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize, MSFUNC = gpuagg_int8_accum,
    MINVFUNC = gpuagg_int8_accum_inv, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_numeric_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_variance(int8) IS 'sample variance of the non-null values; null for fewer than two; as core''s variance';
CREATE AGGREGATE gpu_variance(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_var_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_variance(float4) IS 'sample variance of the non-null values; null for fewer than two; as core''s variance';
CREATE AGGREGATE gpu_variance(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_var_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_variance(float8) IS 'sample variance of the non-null values; null for fewer than two; as core''s variance';
CREATE AGGREGATE gpu_variance(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_var_samp,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_numeric_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_variance(numeric) IS 'sample variance of the non-null values; null for fewer than two; as core''s variance';
CREATE AGGREGATE gpu_var_samp(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_var_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int2_accum, MINVFUNC = gpuagg_int2_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_samp(int2) IS 'sample variance of the non-null values; null for fewer than two; as core''s var_samp';
CREATE AGGREGATE gpu_var_samp(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_var_samp,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int4_accum, MINVFUNC = gpuagg_int4_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_samp(int4) IS 'sample variance of the non-null values; null for fewer than two; as core''s var_samp';
CREATE AGGREGATE gpu_var_samp(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_var_samp, COMBINEFUNC = gpuagg_numeric_combine,
    SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize, MSFUNC = gpuagg_int8_accum,
    MINVFUNC = gpuagg_int8_accum_inv, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_numeric_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_samp(int8) IS 'sample variance of the non-null values; null for fewer than two; as core''s var_samp';
CREATE AGGREGATE gpu_var_samp(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_var_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_samp(float4) IS 'sample variance of the non-null values; null for fewer than two; as core''s var_samp';
CREATE AGGREGATE gpu_var_samp(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_var_samp,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_samp(float8) IS 'sample variance of the non-null values; null for fewer than two; as core''s var_samp';
CREATE AGGREGATE gpu_var_samp(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_var_samp,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_numeric_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_samp(numeric) IS 'sample variance of the non-null values; null for fewer than two; as core''s var_samp';
CREATE AGGREGATE gpu_var_pop(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_var_pop,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int2_accum, MINVFUNC = gpuagg_int2_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_var_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_pop(int2) IS 'population variance of the non-null values; null without one; as core''s var_pop';
CREATE AGGREGATE gpu_var_pop(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_var_pop,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, MSFUNC = gpuagg_int4_accum, MINVFUNC = gpuagg_int4_accum_inv, MSTYPE = internal,
    MSSPACE = 48, MFINALFUNC = gpuagg_numeric_poly_var_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_pop(int4) IS 'population variance of the non-null values; null without one; as core''s var_pop';
CREATE AGGREGATE gpu_var_pop(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_var_pop, COMBINEFUNC = gpuagg_numeric_combine,
    SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize, MSFUNC = gpuagg_int8_accum,
    MINVFUNC = gpuagg_int8_accum_inv, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_numeric_var_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_pop(int8) IS 'population variance of the non-null values; null without one; as core''s var_pop';
CREATE AGGREGATE gpu_var_pop(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_var_pop,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_pop(float4) IS 'population variance of the non-null values; null without one; as core''s var_pop';
CREATE AGGREGATE gpu_var_pop(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', FINALFUNC = gpuagg_float8_var_pop,
    COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_pop(float8) IS 'population variance of the non-null values; null without one; as core''s var_pop';
CREATE AGGREGATE gpu_var_pop(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_var_pop,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    MSFUNC = gpuagg_numeric_accum, MINVFUNC = gpuagg_numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
    MFINALFUNC = gpuagg_numeric_var_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_var_pop(numeric) IS 'population variance of the non-null values; null without one; as core''s var_pop';
CREATE AGGREGATE gpu_corr(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_corr,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_corr(float8, float8) IS
'correlation coefficient of the pairs (Y, X) without nulls; null without one; as core''s corr';
CREATE AGGREGATE gpu_covar_pop(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_covar_pop,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_covar_pop(float8, float8) IS
'population covariance of the pairs (Y, X) without nulls; null without one; as core''s covar_pop';
CREATE AGGREGATE gpu_covar_samp(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_covar_samp,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_covar_samp(float8, float8) IS
'sample covariance of the pairs (Y, X) without nulls; null for fewer than two; as core''s covar_samp';
CREATE AGGREGATE gpu_regr_avgx(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_avgx,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_avgx(float8, float8) IS
'mean of X over the pairs (Y, X) without nulls; null without one; as core''s regr_avgx';
CREATE AGGREGATE gpu_regr_avgy(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_avgy,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_avgy(float8, float8) IS
'mean of Y over the pairs (Y, X) without nulls; null without one; as core''s regr_avgy';
CREATE AGGREGATE gpu_regr_count(float8, float8) (
    SFUNC = gpuagg_int8inc_float8_float8, STYPE = int8, INITCOND = '0', COMBINEFUNC = gpuagg_int8pl, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_count(float8, float8) IS 'number of pairs (Y, X) without nulls; 0 without one; as core''s regr_count';
CREATE AGGREGATE gpu_regr_intercept(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_intercept,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_intercept(float8, float8) IS
'Y intercept of the least-squares line through the pairs (Y, X) without nulls; null without one; as core''s regr_intercept';
CREATE AGGREGATE gpu_regr_r2(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_r2,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_r2(float8, float8) IS
'square of the correlation coefficient of the pairs (Y, X) without nulls; null without one; as core''s regr_r2';
CREATE AGGREGATE gpu_regr_slope(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_slope,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_slope(float8, float8) IS
'slope of the least-squares line through the pairs (Y, X) without nulls; null without one; as core''s regr_slope';
CREATE AGGREGATE gpu_regr_sxx(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_sxx,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_sxx(float8, float8) IS
'sum of squared deviations of X over the pairs (Y, X) without nulls; null without one; as core''s regr_sxx';
CREATE AGGREGATE gpu_regr_sxy(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_sxy,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_sxy(float8, float8) IS
'sum of products of deviations of the pairs (Y, X) without nulls; null without one; as core''s regr_sxy';
CREATE AGGREGATE gpu_regr_syy(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', FINALFUNC = gpuagg_float8_regr_syy,
    COMBINEFUNC = gpuagg_float8_regr_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_regr_syy(float8, float8) IS
'sum of squared deviations of Y over the pairs (Y, X) without nulls; null without one; as core''s regr_syy';
CREATE AGGREGATE gpu_bit_and(int2) (SFUNC = gpuagg_int2and, STYPE = int2, COMBINEFUNC = gpuagg_int2and, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_and(int2) IS 'bitwise and of the non-null values; null without one; as core''s bit_and';
CREATE AGGREGATE gpu_bit_and(int4) (SFUNC = gpuagg_int4and, STYPE = int4, COMBINEFUNC = gpuagg_int4and, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_and(int4) IS 'bitwise and of the non-null values; null without one; as core''s bit_and';
CREATE AGGREGATE gpu_bit_and(int8) (SFUNC = gpuagg_int8and, STYPE = int8, COMBINEFUNC = gpuagg_int8and, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_and(int8) IS 'bitwise and of the non-null values; null without one; as core''s bit_and';
CREATE AGGREGATE gpu_bit_or(int2) (SFUNC = gpuagg_int2or, STYPE = int2, COMBINEFUNC = gpuagg_int2or, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_or(int2) IS 'bitwise or of the non-null values; null without one; as core''s bit_or';
CREATE AGGREGATE gpu_bit_or(int4) (SFUNC = gpuagg_int4or, STYPE = int4, COMBINEFUNC = gpuagg_int4or, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_or(int4) IS 'bitwise or of the non-null values; null without one; as core''s bit_or';
CREATE AGGREGATE gpu_bit_or(int8) (SFUNC = gpuagg_int8or, STYPE = int8, COMBINEFUNC = gpuagg_int8or, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_or(int8) IS 'bitwise or of the non-null values; null without one; as core''s bit_or';
CREATE AGGREGATE gpu_bit_xor(int2) (SFUNC = gpuagg_int2xor, STYPE = int2, COMBINEFUNC = gpuagg_int2xor, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_xor(int2) IS 'bitwise exclusive or of the non-null values; null without one; as core''s bit_xor';
CREATE AGGREGATE gpu_bit_xor(int4) (SFUNC = gpuagg_int4xor, STYPE = int4, COMBINEFUNC = gpuagg_int4xor, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_xor(int4) IS 'bitwise exclusive or of the non-null values; null without one; as core''s bit_xor';
CREATE AGGREGATE gpu_bit_xor(int8) (SFUNC = gpuagg_int8xor, STYPE = int8, COMBINEFUNC = gpuagg_int8xor, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bit_xor(int8) IS 'bitwise exclusive or of the non-null values; null without one; as core''s bit_xor';
CREATE AGGREGATE gpu_bool_and(bool) (
    SFUNC = gpuagg_booland_statefunc, STYPE = bool, COMBINEFUNC = gpuagg_booland_statefunc, MSFUNC = gpuagg_bool_accum,
    MINVFUNC = gpuagg_bool_accum_inv, MSTYPE = internal, MSSPACE = 16, MFINALFUNC = gpuagg_bool_alltrue, SORTOP = OPERATOR(pg_catalog.<),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bool_and(bool) IS 'true if every non-null value is true; null without one; as core''s bool_and';
CREATE AGGREGATE gpu_bool_or(bool) (
    SFUNC = gpuagg_boolor_statefunc, STYPE = bool, COMBINEFUNC = gpuagg_boolor_statefunc, MSFUNC = gpuagg_bool_accum,
    MINVFUNC = gpuagg_bool_accum_inv, MSTYPE = internal, MSSPACE = 16, MFINALFUNC = gpuagg_bool_anytrue, SORTOP = OPERATOR(pg_catalog.>),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_bool_or(bool) IS 'true if some non-null value is true; null without one; as core''s bool_or';
CREATE AGGREGATE gpu_every(bool) (
    SFUNC = gpuagg_booland_statefunc, STYPE = bool, COMBINEFUNC = gpuagg_booland_statefunc, MSFUNC = gpuagg_bool_accum,
    MINVFUNC = gpuagg_bool_accum_inv, MSTYPE = internal, MSSPACE = 16, MFINALFUNC = gpuagg_bool_alltrue, SORTOP = OPERATOR(pg_catalog.<),
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_every(bool) IS 'true if every non-null value is true; null without one; as core''s every';
CREATE AGGREGATE gpu_product(float8) (SFUNC = gpuagg_float8mul, STYPE = float8, COMBINEFUNC = gpuagg_float8mul, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_product(float8) IS 'product of the non-null values; null without one; overflow and underflow are errors';
CREATE AGGREGATE gpu_product(numeric) (SFUNC = gpuagg_numeric_mul, STYPE = numeric, COMBINEFUNC = gpuagg_numeric_mul, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_product(numeric) IS
'product of the non-null values, exactly up to 16383 digits after the decimal point; null without one; "value overflows numeric format" beyond the range of numeric';

-- PostgreSQL 18 has min and max of bytea.
DO $bytea$
BEGIN
    IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 < 180000 THEN
        RETURN;
    END IF;
    CREATE FUNCTION gpuagg_bytea_larger(bytea, bytea) RETURNS bytea
        AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
    COMMENT ON FUNCTION gpuagg_bytea_larger(bytea, bytea) IS
    'bytea_larger(bytea,bytea) for the extension''s aggregates';
    CREATE FUNCTION gpuagg_bytea_smaller(bytea, bytea) RETURNS bytea
        AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
    COMMENT ON FUNCTION gpuagg_bytea_smaller(bytea, bytea) IS
    'bytea_smaller(bytea,bytea) for the extension''s aggregates';
    CREATE AGGREGATE gpu_max(bytea) (
        SFUNC = gpuagg_bytea_larger, STYPE = bytea, COMBINEFUNC = gpuagg_bytea_larger, SORTOP = OPERATOR(pg_catalog.>),
        PARALLEL = SAFE);
    COMMENT ON AGGREGATE gpu_max(bytea) IS
    'greatest non-null value; null without one; as core''s max';
    CREATE AGGREGATE gpu_min(bytea) (
        SFUNC = gpuagg_bytea_smaller, STYPE = bytea, COMBINEFUNC = gpuagg_bytea_smaller, SORTOP = OPERATOR(pg_catalog.<),
        PARALLEL = SAFE);
    COMMENT ON AGGREGATE gpu_min(bytea) IS
    'smallest non-null value; null without one; as core''s min';
END
$bytea$;

/*
 * Histograms. The state is the library's own: one array, whatever the number of rows.
 */
CREATE FUNCTION gpuagg_histogram_accum(internal, float8, float8, float8, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_accum(internal, float8, float8, float8, int4) IS
'transition function of gpu_histogram; null values change nothing';
CREATE FUNCTION gpuagg_histogram_accum_weighted(internal, float8, float8, float8, int4, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_accum_weighted(internal, float8, float8, float8, int4, float8) IS
'transition function of weighted gpu_histogram; null values and null weights change nothing';
CREATE FUNCTION gpuagg_histogram_accum_thresholds(internal, float8, float8[]) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_accum_thresholds(internal, float8, float8[]) IS
'transition function of gpu_histogram over thresholds; null values change nothing';
CREATE FUNCTION gpuagg_histogram_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_combine(internal, internal) IS 'combine function of gpu_histogram; a null state is an empty one';
CREATE FUNCTION gpuagg_histogram_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_serialize(internal) IS 'serialisation function of gpu_histogram; null for null';
CREATE FUNCTION gpuagg_histogram_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_deserialize(bytea, internal) IS 'deserialisation function of gpu_histogram; null for null';
CREATE FUNCTION gpuagg_histogram_counts(internal) RETURNS int8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_counts(internal) IS 'final function of gpu_histogram: one count a bin; null for null';
CREATE FUNCTION gpuagg_histogram_weights(internal) RETURNS float8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_weights(internal) IS 'final function of weighted gpu_histogram: one sum a bin; null for null';
CREATE FUNCTION gpuagg_histogram_accum_log(internal, float8, float8, float8, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_accum_log(internal, float8, float8, float8, int4) IS
'transition function of gpu_histogram_log; null values change nothing';
CREATE AGGREGATE gpu_histogram(value float8, lo float8, hi float8, nbins int4) (
    SFUNC = gpuagg_histogram_accum, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_counts,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram(float8, float8, float8, int4) IS
'histogram of nbins equal bins in [lo, hi): nbins + 2 counts, the first of values before lo, the last of values at or past hi and of NaN; lo > hi counts downwards; nulls are skipped; null without a value';
CREATE AGGREGATE gpu_histogram(value float8, lo float8, hi float8, nbins int4, weight float8) (
    SFUNC = gpuagg_histogram_accum_weighted, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_weights,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram(float8, float8, float8, int4, float8) IS
'histogram of nbins equal bins in [lo, hi): nbins + 2 sums of weight, the first of values before lo, the last of values at or past hi and of NaN; rows with a null value or weight are skipped; null without a row';
CREATE AGGREGATE gpu_histogram(value float8, thresholds float8[]) (
    SFUNC = gpuagg_histogram_accum_thresholds, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_counts,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram(float8, float8[]) IS
'histogram over ascending thresholds: one count more than thresholds, of the values for which width_bucket(value, thresholds) is 0, 1, ...; nulls are skipped; null without a value';
CREATE AGGREGATE gpu_histogram_log(value float8, lo float8, hi float8, nbins int4) (
    SFUNC = gpuagg_histogram_accum_log, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_counts,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram_log(float8, float8, float8, int4) IS
'histogram of nbins bins in [lo, hi), each as many times as wide as the one before, 0 < lo < hi and nbins at most 999999: nbins + 2 counts, the first of values before lo, the last of values at or past hi and of NaN; the same as gpu_histogram(value, gpu_histogram_log_thresholds(lo, hi, nbins)); nulls are skipped; null without a value';

/*
 * Histograms of two dimensions. The cost of a transition is that of the operators which find the bin in a custom scan.
 */
CREATE FUNCTION gpuagg_histogram2d_accum(internal, float8, float8, float8, int4, float8, float8, float8, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 7 SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram2d_accum(internal, float8, float8, float8, int4, float8, float8, float8, int4) IS
'transition function of gpu_histogram2d; rows with a null x or y change nothing';
CREATE FUNCTION gpuagg_histogram2d_accum_weighted(internal, float8, float8, float8, int4, float8, float8, float8, int4,
    float8) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 7 SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram2d_accum_weighted(internal, float8, float8, float8, int4, float8, float8, float8, int4, float8) IS
'transition function of weighted gpu_histogram2d; rows with a null x, y or weight change nothing';
CREATE FUNCTION gpuagg_histogram2d_counts(internal) RETURNS int8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram2d_counts(internal) IS 'final function of gpu_histogram2d: one count a bin; null for null';
CREATE FUNCTION gpuagg_histogram2d_weights(internal) RETURNS float8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram2d_weights(internal) IS
'final function of weighted gpu_histogram2d: one sum a bin; null for null';
CREATE AGGREGATE gpu_histogram2d(x float8, xlo float8, xhi float8, nx int4, y float8, ylo float8, yhi float8, ny int4) (
    SFUNC = gpuagg_histogram2d_accum, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_histogram2d_counts,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram2d(float8, float8, float8, int4, float8, float8, float8, int4) IS
'histogram of pairs (x, y): nx + 2 rows of ny + 2 counts, each dimension as in gpu_histogram(value, lo, hi, nbins); (nx + 2) * (ny + 2) is at most 1000000; rows with a null x or y are skipped; null without a row';
CREATE AGGREGATE gpu_histogram2d(x float8, xlo float8, xhi float8, nx int4, y float8, ylo float8, yhi float8, ny int4, weight float8) (
    SFUNC = gpuagg_histogram2d_accum_weighted, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_histogram2d_weights,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram2d(float8, float8, float8, int4, float8, float8, float8, int4, float8) IS
'the same with sums of weight instead of counts; rows with a null x, y or weight are skipped';
CREATE FUNCTION gpu_histogram2d_bins(xlo float8, xhi float8, ylo float8, yhi float8, counts anyarray, OUT xbin int4, OUT
    xlower float8, OUT xupper float8, OUT ybin int4, OUT ylower float8, OUT yupper float8, OUT count anyelement) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 1000;
COMMENT ON FUNCTION gpu_histogram2d_bins(float8, float8, float8, float8, anyarray) IS
'a row for each bin of gpu_histogram2d(x, xlo, xhi, nx, y, ylo, yhi, ny[, weight]): the numbers of the bins of x and y, their bounds as in gpu_histogram_bins, and the count (bigint) or weight (double precision); no row for null';
CREATE FUNCTION gpu_heatmap(xlo float8, xhi float8, ylo float8, yhi float8, counts anyarray) RETURNS SETOF text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 30;
COMMENT ON FUNCTION gpu_heatmap(float8, float8, float8, float8, anyarray) IS
'lines of a drawing of gpu_histogram2d(x, xlo, xhi, nx, y, ylo, yhi, ny[, weight]): x to the right, y upwards, a shade for each quarter of the largest number, and the sum of all bins outside of the bounds; no row for null';

/*
 * Merging histograms. The transition function is the combine function as well.
 */
CREATE FUNCTION gpuagg_histogram_merge_int8(int8[], int8[]) RETURNS int8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_merge_int8(int8[], int8[]) IS
'transition and combine function of gpu_histogram_merge over bigint[]; null arrays change nothing';
CREATE AGGREGATE gpu_histogram_merge(counts int8[]) (
    SFUNC = gpuagg_histogram_merge_int8, STYPE = int8[], SSPACE = 1024, COMBINEFUNC = gpuagg_histogram_merge_int8, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram_merge(int8[]) IS
'sum of histograms, element by element: the histogram of all their values; null arrays are skipped, null without one; an error for arrays of different lengths, "bigint out of range" on overflow';
CREATE FUNCTION gpuagg_histogram_merge_float8(float8[], float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_merge_float8(float8[], float8[]) IS
'transition and combine function of gpu_histogram_merge over double precision[]; null arrays change nothing';
CREATE AGGREGATE gpu_histogram_merge(counts float8[]) (
    SFUNC = gpuagg_histogram_merge_float8, STYPE = float8[], SSPACE = 1024, COMBINEFUNC = gpuagg_histogram_merge_float8, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram_merge(float8[]) IS
'sum of weighted histograms, element by element; null arrays are skipped, null without one; an error for arrays of different lengths';
CREATE FUNCTION gpuagg_histogram_merge_numeric(numeric[], numeric[]) RETURNS numeric[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_merge_numeric(numeric[], numeric[]) IS
'transition and combine function of gpu_histogram_merge over numeric[]; null arrays change nothing';
CREATE AGGREGATE gpu_histogram_merge(counts numeric[]) (
    SFUNC = gpuagg_histogram_merge_numeric, STYPE = numeric[], SSPACE = 1024, COMBINEFUNC = gpuagg_histogram_merge_numeric,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram_merge(numeric[]) IS
'sum of arrays of numerics, element by element and exactly; null arrays are skipped, null without one; an error for arrays of different lengths';

/*
 * Reading histograms.
 */
CREATE FUNCTION gpu_histogram_bins(lo float8, hi float8, counts anyarray, OUT bin int4, OUT lower float8, OUT upper
    float8, OUT count anyelement, OUT bar text) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 50;
COMMENT ON FUNCTION gpu_histogram_bins(float8, float8, anyarray) IS
'a row for each bin of gpu_histogram(value, lo, hi, nbins[, weight]), where counts has nbins + 2 elements: its number, its bounds, its count (bigint) or weight (double precision), and a bar of up to 40 characters scaled to the largest; a bin contains the values from lower up to but not including upper (above lower and up to upper if lo > hi), exactly as width_bucket rounds; for a histogram over thresholds use gpu_histogram_bins(thresholds, counts); no row for null';
CREATE FUNCTION gpu_histogram_log_thresholds(lo float8, hi float8, nbins int4) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_log_thresholds(float8, float8, int4) IS
'the nbins + 1 edges of the bins of gpu_histogram_log(value, lo, hi, nbins), ascending: edge i is lo * (hi / lo)^(i / nbins), correctly rounded and the same on every machine; null for null';
CREATE FUNCTION gpu_histogram_bins(lo float8, hi float8, nbins int4, counts anyarray, OUT bin int4, OUT lower float8,
    OUT upper float8, OUT count anyelement, OUT bar text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpu_histogram_bins_checked' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 50;
COMMENT ON FUNCTION gpu_histogram_bins(float8, float8, int4, anyarray) IS
'as gpu_histogram_bins(lo, hi, counts), with an error if counts is not an array of nbins + 2 elements';
CREATE FUNCTION gpu_histogram_bins(thresholds float8[], counts anyarray, OUT bin int4, OUT lower float8, OUT upper
    float8, OUT count anyelement, OUT bar text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpu_histogram_bins_thresholds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 50;
COMMENT ON FUNCTION gpu_histogram_bins(float8[], anyarray) IS
'a row for each bin of gpu_histogram(value, thresholds): its number, its bounds, its count (bigint) or weight (double precision), and a bar of up to 40 characters scaled to the largest; an error if counts does not have one element more than thresholds; no row for null';
CREATE FUNCTION gpu_histogram_log_bins(lo float8, hi float8, counts anyarray, OUT bin int4, OUT lower float8, OUT upper
    float8, OUT count anyelement, OUT bar text) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 50;
COMMENT ON FUNCTION gpu_histogram_log_bins(float8, float8, anyarray) IS
'a row for each bin of gpu_histogram_log(value, lo, hi, nbins): its number, its bounds, exactly the thresholds of the count, its count, and a bar of up to 40 characters scaled to the largest; no row for null';
CREATE FUNCTION gpu_histogram_quantile(lo float8, hi float8, counts anyarray, fraction float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_quantile(float8, float8, anyarray, float8) IS
'about the value below which a fraction (0 to 1) of the values of gpu_histogram(value, lo, hi, nbins[, weight]) lies, by linear interpolation within its bin, the median for 0.5; -Infinity or Infinity if it is outside of the bins; null for null, and if nothing was counted';
CREATE FUNCTION gpu_histogram_quantile(lo float8, hi float8, counts anyarray, fractions float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME', 'gpu_histogram_quantiles' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_quantile(float8, float8, anyarray, float8[]) IS
'as gpu_histogram_quantile with one fraction, for each of an array: an array of the same shape, with null for null';
CREATE FUNCTION gpu_histogram_quantile(thresholds float8[], counts anyarray, fraction float8) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpu_histogram_quantile_thresholds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_quantile(float8[], anyarray, float8) IS
'about the value below which a fraction (0 to 1) of the values of gpu_histogram(value, thresholds) lies, by linear interpolation within its bin; -Infinity or Infinity if it is before the first or past the last threshold; null for null, and if nothing was counted';
CREATE FUNCTION gpu_histogram_quantile(thresholds float8[], counts anyarray, fractions float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME', 'gpu_histogram_quantiles_thresholds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_quantile(float8[], anyarray, float8[]) IS
'as gpu_histogram_quantile with one fraction, for each of an array: an array of the same shape, with null for null';

/*
 * A value of the row with the largest or smallest key.
 */
CREATE FUNCTION gpuagg_argmax_transfn(internal, anyelement, anycompatible) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_argmax_transfn(internal, anyelement, anycompatible) IS
'transition function of gpu_argmax and gpu_last; rows with a null key change nothing';
CREATE FUNCTION gpuagg_argmin_transfn(internal, anyelement, anycompatible) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_argmin_transfn(internal, anyelement, anycompatible) IS
'transition function of gpu_argmin and gpu_first; rows with a null key change nothing';
CREATE FUNCTION gpuagg_argmax_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmax_combine(internal, internal) IS
'combine function of gpu_argmax and gpu_last; a null state is an empty one';
CREATE FUNCTION gpuagg_argmin_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmin_combine(internal, internal) IS
'combine function of gpu_argmin and gpu_first; a null state is an empty one';
CREATE FUNCTION gpuagg_arg_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_arg_serialize(internal) IS
'serialisation function of gpu_argmax, gpu_argmin, gpu_first and gpu_last; null for null';
CREATE FUNCTION gpuagg_arg_deserialize(bytea, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_arg_deserialize(bytea, internal) IS
'deserialisation function of gpu_argmax, gpu_argmin, gpu_first and gpu_last; null for null';
CREATE FUNCTION gpuagg_arg_final(internal, anyelement, anycompatible) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_arg_final(internal, anyelement, anycompatible) IS
'final function of gpu_argmax, gpu_argmin, gpu_first and gpu_last; null for null';
CREATE AGGREGATE gpu_argmax(value anyelement, key anycompatible) (
    SFUNC = gpuagg_argmax_transfn, STYPE = internal, FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_argmax_combine,
    SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_argmax(anyelement, anycompatible) IS
'value in the row whose key is largest; NULL keys are skipped, ties go to the smallest value (NULL last), NULL without input';
CREATE AGGREGATE gpu_argmin(value anyelement, key anycompatible) (
    SFUNC = gpuagg_argmin_transfn, STYPE = internal, FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_argmin_combine,
    SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_argmin(anyelement, anycompatible) IS
'value in the row whose key is smallest; NULL keys are skipped, ties go to the smallest value (NULL last), NULL without input';
CREATE AGGREGATE gpu_first(value anyelement, key anycompatible) (
    SFUNC = gpuagg_argmin_transfn, STYPE = internal, FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_argmin_combine,
    SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_first(anyelement, anycompatible) IS
'value in the earliest row by key (a time, or anything sortable); otherwise as gpu_argmin';
CREATE AGGREGATE gpu_last(value anyelement, key anycompatible) (
    SFUNC = gpuagg_argmax_transfn, STYPE = internal, FINALFUNC = gpuagg_arg_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_argmax_combine,
    SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_last(anyelement, anycompatible) IS
'value in the latest row by key (a time, or anything sortable); otherwise as gpu_argmax';

/*
 * The n largest or smallest values, and values of the rows with the n largest or smallest keys.
 */
CREATE FUNCTION gpuagg_max_n_transfn(internal, anyelement, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_max_n_transfn(internal, anyelement, int4) IS
'transition function of gpu_max_n; null values change nothing';
CREATE FUNCTION gpuagg_max_n_final(internal, anyelement, int4) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_max_n_final(internal, anyelement, int4) IS 'final function of gpu_max_n; null for null';
CREATE FUNCTION gpuagg_min_n_transfn(internal, anyelement, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_min_n_transfn(internal, anyelement, int4) IS
'transition function of gpu_min_n; null values change nothing';
CREATE FUNCTION gpuagg_min_n_final(internal, anyelement, int4) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_min_n_final(internal, anyelement, int4) IS 'final function of gpu_min_n; null for null';
CREATE FUNCTION gpuagg_argmax_n_transfn(internal, anyelement, anycompatible, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_argmax_n_transfn(internal, anyelement, anycompatible, int4) IS
'transition function of gpu_argmax_n; rows with a null key change nothing';
CREATE FUNCTION gpuagg_argmax_n_final(internal, anyelement, anycompatible, int4) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmax_n_final(internal, anyelement, anycompatible, int4) IS 'final function of gpu_argmax_n; null for null';
CREATE FUNCTION gpuagg_argmin_n_transfn(internal, anyelement, anycompatible, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_argmin_n_transfn(internal, anyelement, anycompatible, int4) IS
'transition function of gpu_argmin_n; rows with a null key change nothing';
CREATE FUNCTION gpuagg_argmin_n_final(internal, anyelement, anycompatible, int4) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_argmin_n_final(internal, anyelement, anycompatible, int4) IS 'final function of gpu_argmin_n; null for null';
CREATE FUNCTION gpuagg_top_n_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_top_n_combine(internal, internal) IS
'combine function of gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n; a null state is an empty one';
CREATE FUNCTION gpuagg_top_n_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_top_n_serialize(internal) IS
'serialization function of gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n; null for null';
CREATE FUNCTION gpuagg_top_n_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_top_n_deserialize(bytea, internal) IS
'deserialization function of gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n; null for null';
CREATE AGGREGATE gpu_max_n(x anyelement, n int4) (
    SFUNC = gpuagg_max_n_transfn, STYPE = internal, FINALFUNC = gpuagg_max_n_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max_n(anyelement, int4) IS
'the n largest values in descending order, as an array; NULLs are skipped, NULL without input; n is between 1 and 1000, and the same in all rows of a group';
CREATE AGGREGATE gpu_min_n(x anyelement, n int4) (
    SFUNC = gpuagg_min_n_transfn, STYPE = internal, FINALFUNC = gpuagg_min_n_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_min_n(anyelement, int4) IS
'the n smallest values in ascending order; otherwise as gpu_max_n';
CREATE AGGREGATE gpu_argmax_n(value anyelement, key anycompatible, n int4) (
    SFUNC = gpuagg_argmax_n_transfn, STYPE = internal, FINALFUNC = gpuagg_argmax_n_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_argmax_n(anyelement, anycompatible, int4) IS
'values in the n rows whose keys are largest, in descending order of the keys; NULL keys are skipped, ties are in ascending order of the values (NULL last), NULL without input; n is between 1 and 1000, and the same in all rows of a group';
CREATE AGGREGATE gpu_argmin_n(value anyelement, key anycompatible, n int4) (
    SFUNC = gpuagg_argmin_n_transfn, STYPE = internal, FINALFUNC = gpuagg_argmin_n_final, FINALFUNC_EXTRA, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_argmin_n(anyelement, anycompatible, int4) IS
'values in the n rows whose keys are smallest, in ascending order of the keys; otherwise as gpu_argmax_n';

/*
 * The most frequent values.
 */
CREATE FUNCTION gpuagg_value_counts_transfn(internal, anyelement) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_value_counts_transfn(internal, anyelement) IS 'transition function of gpu_value_counts';
CREATE FUNCTION gpuagg_value_counts_transfn(internal, anyelement, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_value_counts_transfn(internal, anyelement, int4) IS 'transition function of gpu_value_counts';
CREATE FUNCTION gpuagg_top_k_transfn(internal, anyelement, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_top_k_transfn(internal, anyelement, int4) IS 'transition function of gpu_top_k';
CREATE FUNCTION gpuagg_entropy_transfn(internal, anyelement) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_entropy_transfn(internal, anyelement) IS
'transition function of gpu_entropy; null values change nothing';
CREATE FUNCTION gpuagg_value_counts_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_value_counts_combine(internal, internal) IS
'combine function of gpu_value_counts, gpu_top_k and gpu_entropy; a null state is an empty one';
CREATE FUNCTION gpuagg_value_counts_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_value_counts_serialize(internal) IS
'serialization function of gpu_value_counts, gpu_top_k and gpu_entropy; null for null';
CREATE FUNCTION gpuagg_value_counts_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_value_counts_deserialize(bytea, internal) IS
'deserialization function of gpu_value_counts, gpu_top_k and gpu_entropy; null for null';
-- STABLE: values become JSON as to_jsonb makes it
CREATE FUNCTION gpuagg_value_counts_final(internal) RETURNS jsonb
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_value_counts_final(internal) IS 'final function of gpu_value_counts; null for null';
CREATE FUNCTION gpuagg_top_k_final(internal) RETURNS jsonb
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_top_k_final(internal) IS 'final function of gpu_top_k; null for null';
CREATE FUNCTION gpuagg_entropy_final(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_entropy_final(internal) IS 'final function of gpu_entropy; null for null';
CREATE AGGREGATE gpu_value_counts(x anyelement) (
    SFUNC = gpuagg_value_counts_transfn, STYPE = internal, FINALFUNC = gpuagg_value_counts_final, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_value_counts(anyelement) IS
'the distinct values and how often each occurs, as a JSON array of objects {"value": ..., "count": ...}: the most frequent first, equally frequent ones in ascending order; NULL is a value like others, and comes last among equally frequent ones; NULL without rows';
CREATE AGGREGATE gpu_value_counts(x anyelement, k int4) (
    SFUNC = gpuagg_value_counts_transfn, STYPE = internal, FINALFUNC = gpuagg_value_counts_final, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_value_counts(anyelement, int4) IS
'the same of the k most frequent values; k is at least 1, and the same in all rows of a group';
CREATE AGGREGATE gpu_top_k(x anyelement, k int4) (
    SFUNC = gpuagg_top_k_transfn, STYPE = internal, FINALFUNC = gpuagg_top_k_final, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_top_k(anyelement, int4) IS
'approximately the k most frequent values in bounded memory, as a JSON array of objects {"value": ..., "count": ..., "error": ...}: a value occurs between count - error and count times; k is between 1 and 1000, and the same in all rows of a group; otherwise as gpu_value_counts';
CREATE AGGREGATE gpu_entropy(x anyelement) (
    SFUNC = gpuagg_entropy_transfn, STYPE = internal, FINALFUNC = gpuagg_entropy_final, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_entropy(anyelement) IS
'Shannon entropy of the distribution of the distinct values, in bits; NULLs are skipped, NULL without input';
CREATE FUNCTION gpu_value_counts_rows(counts jsonb, OUT value text, OUT count int8, OUT error int8, OUT bar text) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION gpu_value_counts_rows(jsonb) IS
'the values that gpu_value_counts or gpu_top_k returned, a row for each: the value as text, its count, its error (null in the result of gpu_value_counts) and a bar; no rows for null';

/*
 * What one wants to know first of a column of numbers.
 */
CREATE TYPE gpuagg_summary AS (
    count int8, nulls int8, distinct_values int8, min float8, max float8, mean float8, deviation float8, skewness float8,
    kurtosis float8, q1 float8, median float8, q3 float8, histogram text);
COMMENT ON TYPE gpuagg_summary IS
'result of gpu_summary: numbers of values and of nulls, approximate number of distinct values, least and greatest value, mean, standard deviation, skewness and kurtosis of the sample, approximate quartiles, and a histogram of ten bars between the least and the greatest finite value';
CREATE FUNCTION gpuagg_summary_transfn(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_summary_transfn(internal, float8) IS 'transition function of gpu_summary';
CREATE FUNCTION gpuagg_summary_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_summary_combine(internal, internal) IS 'combine function of gpu_summary; a null state is an empty one';
CREATE FUNCTION gpuagg_summary_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_summary_serialize(internal) IS 'serialization function of gpu_summary; null for null';
CREATE FUNCTION gpuagg_summary_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_summary_deserialize(bytea, internal) IS 'deserialization function of gpu_summary; null for null';
CREATE FUNCTION gpuagg_summary_final(internal) RETURNS gpuagg_summary
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_summary_final(internal) IS 'final function of gpu_summary; numbers of rows are 0 for null';
CREATE AGGREGATE gpu_summary(x float8) (
    SFUNC = gpuagg_summary_transfn, STYPE = internal, FINALFUNC = gpuagg_summary_final, COMBINEFUNC = gpuagg_summary_combine,
    SERIALFUNC = gpuagg_summary_serialize, DESERIALFUNC = gpuagg_summary_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_summary(float8) IS
'numbers of values, nulls and distinct values, extremes, mean, deviation, skewness, kurtosis, quartiles and a drawn histogram of a column of numbers, in one pass and bounded memory: a row of type gpuagg_summary, also without input; NaN is the greatest value';
CREATE FUNCTION gpuagg_describe(relation regclass, OUT name text, OUT type text, OUT count int8, OUT nulls int8, OUT distinct_values int8,
    OUT min text, OUT max text, OUT mean text, OUT deviation text, OUT q1 text, OUT median text, OUT q3 text, OUT most_frequent text,
    OUT frequency int8, OUT histogram text) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED ROWS 20;
COMMENT ON FUNCTION gpuagg_describe(regclass) IS
'a row about each column of a table or view, by one query with the privileges of the user: numbers of values, of nulls and of distinct values (approximate), extremes, mean, deviation, approximate quartiles and a drawn histogram of numbers and times, and the most frequent value with the number of its rows at least; null what the type does not have, and all but name and type of columns that the user may not read';

/*
 * Aggregates over order. They take rows in the order in which they arrive: call them with ORDER BY.
 */
CREATE FUNCTION gpuagg_maxsub_int8_transfn(internal, int8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_maxsub_int8_transfn(internal, int8) IS
'transition function of gpu_max_subarray_sum over bigint; null values change nothing';
CREATE FUNCTION gpuagg_maxsub_int8_final(internal) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_int8_final(internal) IS 'final function of gpu_max_subarray_sum over bigint; null for null';
CREATE AGGREGATE gpu_max_subarray_sum(x int8) (
    SFUNC = gpuagg_maxsub_int8_transfn, STYPE = internal, FINALFUNC = gpuagg_maxsub_int8_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max_subarray_sum(int8) IS
'largest sum of consecutive x in ORDER BY order, the empty part counting as 0; NULLs are skipped, NULL without input, "bigint out of range" on overflow';
CREATE FUNCTION gpuagg_maxsub_float8_transfn(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_maxsub_float8_transfn(internal, float8) IS
'transition function of gpu_max_subarray_sum over double precision; null values change nothing';
CREATE FUNCTION gpuagg_maxsub_float8_final(internal) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_float8_final(internal) IS 'final function of gpu_max_subarray_sum over double precision; null for null';
CREATE AGGREGATE gpu_max_subarray_sum(x float8) (
    SFUNC = gpuagg_maxsub_float8_transfn, STYPE = internal, FINALFUNC = gpuagg_maxsub_float8_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max_subarray_sum(float8) IS
'largest sum of consecutive x in ORDER BY order, the empty part counting as 0; NULLs are skipped, NaN is the largest sum, NULL without input';
CREATE FUNCTION gpuagg_maxsub_numeric_transfn(internal, numeric) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_maxsub_numeric_transfn(internal, numeric) IS
'transition function of gpu_max_subarray_sum over numeric; null values change nothing';
CREATE FUNCTION gpuagg_maxsub_numeric_final(internal) RETURNS numeric AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_maxsub_numeric_final(internal) IS 'final function of gpu_max_subarray_sum over numeric; null for null';
CREATE AGGREGATE gpu_max_subarray_sum(x numeric) (
    SFUNC = gpuagg_maxsub_numeric_transfn, STYPE = internal, FINALFUNC = gpuagg_maxsub_numeric_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_max_subarray_sum(numeric) IS
'largest sum of consecutive x in ORDER BY order, exactly, the empty part counting as 0; NULLs are skipped, NaN is the largest sum, NULL without input';
CREATE FUNCTION gpuagg_longest_run_transfn(internal, bool) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_longest_run_transfn(internal, bool) IS 'transition function of gpu_longest_run; null counts as false';
CREATE FUNCTION gpuagg_longest_run_final(internal) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_longest_run_final(internal) IS 'final function of gpu_longest_run; null for null';
CREATE AGGREGATE gpu_longest_run(cond bool) (
    SFUNC = gpuagg_longest_run_transfn, STYPE = internal, FINALFUNC = gpuagg_longest_run_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_longest_run(bool) IS
'most consecutive rows, in ORDER BY order, for which cond is true; NULL is not true and ends a run, NULL without input';
CREATE FUNCTION gpuagg_longest_ascending_transfn(internal, anyelement) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_longest_ascending_transfn(internal, anyelement) IS
'transition function of gpu_longest_ascending_run; null ends a run';
CREATE FUNCTION gpuagg_longest_ascending_final(internal) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_longest_ascending_final(internal) IS 'final function of gpu_longest_ascending_run; null for null';
CREATE AGGREGATE gpu_longest_ascending_run(x anyelement) (
    SFUNC = gpuagg_longest_ascending_transfn, STYPE = internal, FINALFUNC = gpuagg_longest_ascending_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_longest_ascending_run(anyelement) IS
'most consecutive rows, in ORDER BY order, in which x strictly ascends; NULL is in no run and ends one, NULL without input';
CREATE FUNCTION gpuagg_compose_linear_transfn(internal, float8, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_compose_linear_transfn(internal, float8, float8) IS
'transition function of gpu_compose_linear; rows with a null change nothing';
CREATE FUNCTION gpuagg_compose_linear_final(internal) RETURNS float8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_compose_linear_final(internal) IS 'final function of gpu_compose_linear; null for null';
CREATE AGGREGATE gpu_compose_linear(a float8, b float8) (
    SFUNC = gpuagg_compose_linear_transfn, STYPE = internal, FINALFUNC = gpuagg_compose_linear_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_compose_linear(float8, float8) IS
'composition of x -> a x + b, first row innermost, as {a, b}; rows with a NULL are skipped, NULL without input';
CREATE FUNCTION gpuagg_matrix_product_transfn(internal, float8[]) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_matrix_product_transfn(internal, float8[]) IS
'transition function of gpu_matrix_product; null matrices change nothing';
CREATE FUNCTION gpuagg_matrix_product_final(internal) RETURNS float8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_matrix_product_final(internal) IS 'final function of gpu_matrix_product; null for null';
CREATE AGGREGATE gpu_matrix_product(m float8[]) (
    SFUNC = gpuagg_matrix_product_transfn, STYPE = internal, FINALFUNC = gpuagg_matrix_product_final, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_matrix_product(float8[]) IS
'product of square matrices of one size, at most 5 by 5, left to right in ORDER BY order; NULL matrices are skipped, NULL without input';

/*
 * Percentiles and modes, with PostgreSQL's own transition and final functions.
 */
CREATE FUNCTION gpuagg_ordered_set_transition(internal, "any") RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_ordered_set_transition(internal, "any") IS
'ordered_set_transition(internal,"any") for the extension''s aggregates';
CREATE FUNCTION gpuagg_percentile_disc_final(internal, float8, anyelement) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_percentile_disc_final(internal, float8, anyelement) IS
'percentile_disc_final(internal,double precision,anyelement) for the extension''s aggregates';
CREATE FUNCTION gpuagg_percentile_disc_multi_final(internal, float8[], anyelement) RETURNS anyarray
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_percentile_disc_multi_final(internal, float8[], anyelement) IS
'percentile_disc_multi_final(internal,double precision[],anyelement) for the extension''s aggregates';
CREATE FUNCTION gpuagg_percentile_cont_float8_final(internal, float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_percentile_cont_float8_final(internal, float8) IS
'percentile_cont_float8_final(internal,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_percentile_cont_float8_multi_final(internal, float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_percentile_cont_float8_multi_final(internal, float8[]) IS
'percentile_cont_float8_multi_final(internal,double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_percentile_cont_interval_final(internal, float8) RETURNS interval
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_percentile_cont_interval_final(internal, float8) IS
'percentile_cont_interval_final(internal,double precision) for the extension''s aggregates';
CREATE FUNCTION gpuagg_percentile_cont_interval_multi_final(internal, float8[]) RETURNS interval[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_percentile_cont_interval_multi_final(internal, float8[]) IS
'percentile_cont_interval_multi_final(internal,double precision[]) for the extension''s aggregates';
CREATE FUNCTION gpuagg_mode_final(internal, anyelement) RETURNS anyelement AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_mode_final(internal, anyelement) IS 'mode_final(internal,anyelement) for the extension''s aggregates';
CREATE AGGREGATE gpu_percentile_cont(fraction float8 ORDER BY x float8) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_percentile_cont_float8_final,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_percentile_cont(float8, float8) IS
'value at a fraction between 0 and 1 of the non-null values in order, interpolated between two of them; null without one or for a null fraction; as core''s percentile_cont';
CREATE AGGREGATE gpu_percentile_cont(fraction float8 ORDER BY x interval) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_percentile_cont_interval_final,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_percentile_cont(float8, interval) IS
'value at a fraction between 0 and 1 of the non-null values in order, interpolated between two of them; null without one or for a null fraction; as core''s percentile_cont';
CREATE AGGREGATE gpu_percentile_cont(fractions float8[] ORDER BY x float8) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_percentile_cont_float8_multi_final,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_percentile_cont(float8[], float8) IS
'array of the shape of fractions with the interpolated value at each, null elements for null ones; null without a non-null value; as core''s percentile_cont';
CREATE AGGREGATE gpu_percentile_cont(fractions float8[] ORDER BY x interval) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_percentile_cont_interval_multi_final,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_percentile_cont(float8[], interval) IS
'array of the shape of fractions with the interpolated value at each, null elements for null ones; null without a non-null value; as core''s percentile_cont';
CREATE AGGREGATE gpu_percentile_disc(fraction float8 ORDER BY x anyelement) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_percentile_disc_final, FINALFUNC_EXTRA,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_percentile_disc(float8, anyelement) IS
'first of the non-null values in order whose place is at or past a fraction between 0 and 1, of any type that can be sorted; null without one or for a null fraction; as core''s percentile_disc';
CREATE AGGREGATE gpu_percentile_disc(fractions float8[] ORDER BY x anyelement) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_percentile_disc_multi_final, FINALFUNC_EXTRA,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_percentile_disc(float8[], anyelement) IS
'array of the shape of fractions with the value at each, null elements for null ones; null without a non-null value; as core''s percentile_disc';
CREATE AGGREGATE gpu_mode(ORDER BY x anyelement) (
    SFUNC = gpuagg_ordered_set_transition, STYPE = internal, FINALFUNC = gpuagg_mode_final, FINALFUNC_EXTRA,
    FINALFUNC_MODIFY = SHAREABLE, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_mode(anyelement) IS
'most frequent non-null value, of several the first in the order, of any type that can be sorted; null without one; as core''s mode';

/*
 * The median without WITHIN GROUP.
 */
CREATE FUNCTION gpuagg_median_transfn(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_median_transfn(internal, float8) IS 'transition function of gpu_median; null values change nothing';
CREATE FUNCTION gpuagg_median_final(internal) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_median_final(internal) IS 'final function of gpu_median; null for null';
CREATE FUNCTION gpuagg_median_interval_transfn(internal, interval) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_median_interval_transfn(internal, interval) IS
'transition function of gpu_median over interval; null values change nothing';
CREATE FUNCTION gpuagg_median_interval_final(internal) RETURNS interval AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_median_interval_final(internal) IS 'final function of gpu_median over interval; null for null';
CREATE FUNCTION gpuagg_median_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_median_combine(internal, internal) IS 'combine function of gpu_median; null for two nulls';
CREATE FUNCTION gpuagg_median_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_median_serialize(internal) IS 'serialization function of gpu_median; null for null';
CREATE FUNCTION gpuagg_median_deserialize(bytea, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_median_deserialize(bytea, internal) IS 'deserialization function of gpu_median; null for null';
CREATE AGGREGATE gpu_median(x float8) (
    SFUNC = gpuagg_median_transfn, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_median_final, COMBINEFUNC = gpuagg_median_combine,
    SERIALFUNC = gpuagg_median_serialize, DESERIALFUNC = gpuagg_median_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_median(float8) IS
'median of the non-null values, the mean of the two in the middle where their number is even; null without one; the answer of percentile_cont(0.5)';
CREATE AGGREGATE gpu_median(x interval) (
    SFUNC = gpuagg_median_interval_transfn, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_median_interval_final,
    COMBINEFUNC = gpuagg_median_combine, SERIALFUNC = gpuagg_median_serialize, DESERIALFUNC = gpuagg_median_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_median(interval) IS
'median of the non-null values, the mean of the two in the middle where their number is even; null without one; the answer of percentile_cont(0.5)';
CREATE FUNCTION gpuagg_median_deviation_transfn(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_median_deviation_transfn(internal, float8) IS 'transition function of gpu_mad; null values change nothing';
CREATE FUNCTION gpuagg_median_deviation_final(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_median_deviation_final(internal) IS 'final function of gpu_mad; null for null';
CREATE AGGREGATE gpu_mad(x float8) (
    SFUNC = gpuagg_median_deviation_transfn, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_median_deviation_final,
    COMBINEFUNC = gpuagg_median_combine, SERIALFUNC = gpuagg_median_serialize, DESERIALFUNC = gpuagg_median_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_mad(float8) IS
'median absolute deviation: the median of the distances between the non-null values and their median, with medians as of gpu_median; null without one';

/*
 * Skewness and kurtosis.
 */
CREATE FUNCTION gpuagg_moments_accum(float8[], float8) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_moments_accum(float8[], float8) IS
'transition function of gpu_skewness and gpu_kurtosis: number, mean and sums of the second to fourth powers of deviations; null values change nothing';
CREATE FUNCTION gpuagg_moments_combine(float8[], float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_moments_combine(float8[], float8[]) IS
'combine function of gpu_skewness and gpu_kurtosis; null for null';
CREATE FUNCTION gpuagg_skewness_samp(float8[]) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_skewness_samp(float8[]) IS 'final function of gpu_skewness; null for null';
CREATE FUNCTION gpuagg_skewness_pop(float8[]) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_skewness_pop(float8[]) IS 'final function of gpu_skewness_pop; null for null';
CREATE FUNCTION gpuagg_kurtosis_samp(float8[]) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_kurtosis_samp(float8[]) IS 'final function of gpu_kurtosis; null for null';
CREATE FUNCTION gpuagg_kurtosis_pop(float8[]) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_kurtosis_pop(float8[]) IS 'final function of gpu_kurtosis_pop; null for null';
CREATE AGGREGATE gpu_skewness(x float8) (
    SFUNC = gpuagg_moments_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0}', FINALFUNC = gpuagg_skewness_samp,
    COMBINEFUNC = gpuagg_moments_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_skewness(float8) IS
'skewness of the population that the non-null values are a sample of (adjusted Fisher-Pearson, G1); null for less than three values, and if all are equal; NaN if one is NaN or infinite';
CREATE AGGREGATE gpu_skewness_pop(x float8) (
    SFUNC = gpuagg_moments_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0}', FINALFUNC = gpuagg_skewness_pop,
    COMBINEFUNC = gpuagg_moments_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_skewness_pop(float8) IS
'skewness of the non-null values themselves (g1); null if all are equal or there is none; NaN if one of several is NaN or infinite';
CREATE AGGREGATE gpu_kurtosis(x float8) (
    SFUNC = gpuagg_moments_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0}', FINALFUNC = gpuagg_kurtosis_samp,
    COMBINEFUNC = gpuagg_moments_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_kurtosis(float8) IS
'excess kurtosis (0 for a normal distribution) of the population that the non-null values are a sample of (G2); null for less than four values, and if all are equal; NaN if one is NaN or infinite';
CREATE AGGREGATE gpu_kurtosis_pop(x float8) (
    SFUNC = gpuagg_moments_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0}', FINALFUNC = gpuagg_kurtosis_pop,
    COMBINEFUNC = gpuagg_moments_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_kurtosis_pop(float8) IS
'excess kurtosis (0 for a normal distribution) of the non-null values themselves (g2); null if all are equal or there is none; NaN if one of several is NaN or infinite';

/*
 * Exact aggregates of floats: gpuagg.float_sum = exact puts them in place of gpu_sum and others.
 */
CREATE FUNCTION gpuagg_exact_accum_sum(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exact_accum_sum(internal, float8) IS 'transition function of gpuagg_exact_sum and gpuagg_exact_avg; null values change nothing';
CREATE FUNCTION gpuagg_exact_remove_sum(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_remove_sum(internal, float8) IS 'inverse transition function of gpuagg_exact_sum and gpuagg_exact_avg; null values change nothing';
CREATE FUNCTION gpuagg_exact_accum_sum4(internal, float4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exact_accum_sum4(internal, float4) IS 'transition function of gpuagg_exact_sum and gpuagg_exact_avg; null values change nothing';
CREATE FUNCTION gpuagg_exact_remove_sum4(internal, float4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_remove_sum4(internal, float4) IS 'inverse transition function of gpuagg_exact_sum and gpuagg_exact_avg; null values change nothing';
CREATE FUNCTION gpuagg_exact_accum_squares(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exact_accum_squares(internal, float8) IS 'transition function of gpuagg_exact_stddev_samp and similar aggregates; null values change nothing';
CREATE FUNCTION gpuagg_exact_remove_squares(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_remove_squares(internal, float8) IS 'inverse transition function of gpuagg_exact_stddev_samp and similar aggregates; null values change nothing';
CREATE FUNCTION gpuagg_exact_accum_squares4(internal, float4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exact_accum_squares4(internal, float4) IS 'transition function of gpuagg_exact_stddev_samp and similar aggregates; null values change nothing';
CREATE FUNCTION gpuagg_exact_remove_squares4(internal, float4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_remove_squares4(internal, float4) IS 'inverse transition function of gpuagg_exact_stddev_samp and similar aggregates; null values change nothing';
CREATE FUNCTION gpuagg_exact_accum_pairs(internal, float8, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exact_accum_pairs(internal, float8, float8) IS 'transition function of gpuagg_exact_corr and similar aggregates; null values change nothing';
CREATE FUNCTION gpuagg_exact_remove_pairs(internal, float8, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_remove_pairs(internal, float8, float8) IS 'inverse transition function of gpuagg_exact_corr and similar aggregates; null values change nothing';
CREATE FUNCTION gpuagg_exact_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_combine(internal, internal) IS 'combine function of the gpuagg_exact aggregates; a null state is an empty one';
CREATE FUNCTION gpuagg_exact_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_serialize(internal) IS 'serialisation function of the gpuagg_exact aggregates; null for null';
CREATE FUNCTION gpuagg_exact_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_deserialize(bytea, internal) IS 'deserialisation function of the gpuagg_exact aggregates; null for null';
CREATE FUNCTION gpuagg_exact_sum(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_sum(internal) IS 'final function of gpuagg_exact_sum; null for null';
CREATE FUNCTION gpuagg_exact_sum4(internal) RETURNS float4
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_sum4(internal) IS 'final function of gpuagg_exact_sum; null for null';
CREATE FUNCTION gpuagg_exact_avg(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_avg(internal) IS 'final function of gpuagg_exact_avg; null for null';
CREATE FUNCTION gpuagg_exact_var_pop(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_var_pop(internal) IS 'final function of gpuagg_exact_var_pop; null for null';
CREATE FUNCTION gpuagg_exact_var_samp(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_var_samp(internal) IS 'final function of gpuagg_exact_var_samp; null for null';
CREATE FUNCTION gpuagg_exact_stddev_pop(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_stddev_pop(internal) IS 'final function of gpuagg_exact_stddev_pop; null for null';
CREATE FUNCTION gpuagg_exact_stddev_samp(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_stddev_samp(internal) IS 'final function of gpuagg_exact_stddev_samp; null for null';
CREATE FUNCTION gpuagg_exact_regr_sxx(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_sxx(internal) IS 'final function of gpuagg_exact_regr_sxx; null for null';
CREATE FUNCTION gpuagg_exact_regr_syy(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_syy(internal) IS 'final function of gpuagg_exact_regr_syy; null for null';
CREATE FUNCTION gpuagg_exact_regr_sxy(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_sxy(internal) IS 'final function of gpuagg_exact_regr_sxy; null for null';
CREATE FUNCTION gpuagg_exact_regr_avgx(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_avgx(internal) IS 'final function of gpuagg_exact_regr_avgx; null for null';
CREATE FUNCTION gpuagg_exact_regr_avgy(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_avgy(internal) IS 'final function of gpuagg_exact_regr_avgy; null for null';
CREATE FUNCTION gpuagg_exact_regr_r2(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_r2(internal) IS 'final function of gpuagg_exact_regr_r2; null for null';
CREATE FUNCTION gpuagg_exact_regr_slope(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_slope(internal) IS 'final function of gpuagg_exact_regr_slope; null for null';
CREATE FUNCTION gpuagg_exact_regr_intercept(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_regr_intercept(internal) IS 'final function of gpuagg_exact_regr_intercept; null for null';
CREATE FUNCTION gpuagg_exact_covar_pop(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_covar_pop(internal) IS 'final function of gpuagg_exact_covar_pop; null for null';
CREATE FUNCTION gpuagg_exact_covar_samp(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_covar_samp(internal) IS 'final function of gpuagg_exact_covar_samp; null for null';
CREATE FUNCTION gpuagg_exact_corr(internal) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exact_corr(internal) IS 'final function of gpuagg_exact_corr; null for null';
CREATE AGGREGATE gpuagg_exact_sum(x float4) (
    SFUNC = gpuagg_exact_accum_sum4, STYPE = internal, SSPACE = 64, FINALFUNC = gpuagg_exact_sum4, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_sum4,
    MINVFUNC = gpuagg_exact_remove_sum4, MSTYPE = internal, MSSPACE = 64, MFINALFUNC = gpuagg_exact_sum4, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_sum(float4) IS
'sum of the non-null values, computed exactly and rounded once; otherwise as core''s sum';
CREATE AGGREGATE gpuagg_exact_sum(x float8) (
    SFUNC = gpuagg_exact_accum_sum, STYPE = internal, SSPACE = 64, FINALFUNC = gpuagg_exact_sum, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_sum,
    MINVFUNC = gpuagg_exact_remove_sum, MSTYPE = internal, MSSPACE = 64, MFINALFUNC = gpuagg_exact_sum, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_sum(float8) IS
'sum of the non-null values, computed exactly and rounded once; otherwise as core''s sum';
CREATE AGGREGATE gpuagg_exact_avg(x float4) (
    SFUNC = gpuagg_exact_accum_sum4, STYPE = internal, SSPACE = 64, FINALFUNC = gpuagg_exact_avg, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_sum4,
    MINVFUNC = gpuagg_exact_remove_sum4, MSTYPE = internal, MSSPACE = 64, MFINALFUNC = gpuagg_exact_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_avg(float4) IS
'mean of the non-null values, computed exactly and rounded once; otherwise as core''s avg';
CREATE AGGREGATE gpuagg_exact_avg(x float8) (
    SFUNC = gpuagg_exact_accum_sum, STYPE = internal, SSPACE = 64, FINALFUNC = gpuagg_exact_avg, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_sum,
    MINVFUNC = gpuagg_exact_remove_sum, MSTYPE = internal, MSSPACE = 64, MFINALFUNC = gpuagg_exact_avg, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_avg(float8) IS
'mean of the non-null values, computed exactly and rounded once; otherwise as core''s avg';
CREATE AGGREGATE gpuagg_exact_var_pop(x float4) (
    SFUNC = gpuagg_exact_accum_squares4, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_var_pop, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares4,
    MINVFUNC = gpuagg_exact_remove_squares4, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_var_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_var_pop(float4) IS
'population variance of the non-null values, computed exactly and rounded once; otherwise as core''s var_pop';
CREATE AGGREGATE gpuagg_exact_var_pop(x float8) (
    SFUNC = gpuagg_exact_accum_squares, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_var_pop, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares,
    MINVFUNC = gpuagg_exact_remove_squares, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_var_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_var_pop(float8) IS
'population variance of the non-null values, computed exactly and rounded once; otherwise as core''s var_pop';
CREATE AGGREGATE gpuagg_exact_var_samp(x float4) (
    SFUNC = gpuagg_exact_accum_squares4, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_var_samp, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares4,
    MINVFUNC = gpuagg_exact_remove_squares4, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_var_samp(float4) IS
'sample variance of the non-null values, computed exactly and rounded once; otherwise as core''s var_samp';
CREATE AGGREGATE gpuagg_exact_var_samp(x float8) (
    SFUNC = gpuagg_exact_accum_squares, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_var_samp, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares,
    MINVFUNC = gpuagg_exact_remove_squares, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_var_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_var_samp(float8) IS
'sample variance of the non-null values, computed exactly and rounded once; otherwise as core''s var_samp';
CREATE AGGREGATE gpuagg_exact_stddev_pop(x float4) (
    SFUNC = gpuagg_exact_accum_squares4, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_stddev_pop, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares4,
    MINVFUNC = gpuagg_exact_remove_squares4, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_stddev_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_stddev_pop(float4) IS
'population standard deviation of the non-null values, computed exactly and rounded once; otherwise as core''s stddev_pop';
CREATE AGGREGATE gpuagg_exact_stddev_pop(x float8) (
    SFUNC = gpuagg_exact_accum_squares, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_stddev_pop, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares,
    MINVFUNC = gpuagg_exact_remove_squares, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_stddev_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_stddev_pop(float8) IS
'population standard deviation of the non-null values, computed exactly and rounded once; otherwise as core''s stddev_pop';
CREATE AGGREGATE gpuagg_exact_stddev_samp(x float4) (
    SFUNC = gpuagg_exact_accum_squares4, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_stddev_samp, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares4,
    MINVFUNC = gpuagg_exact_remove_squares4, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_stddev_samp(float4) IS
'sample standard deviation of the non-null values, computed exactly and rounded once; otherwise as core''s stddev_samp';
CREATE AGGREGATE gpuagg_exact_stddev_samp(x float8) (
    SFUNC = gpuagg_exact_accum_squares, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_stddev_samp, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_squares,
    MINVFUNC = gpuagg_exact_remove_squares, MSTYPE = internal, MSSPACE = 128, MFINALFUNC = gpuagg_exact_stddev_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_stddev_samp(float8) IS
'sample standard deviation of the non-null values, computed exactly and rounded once; otherwise as core''s stddev_samp';
CREATE AGGREGATE gpuagg_exact_regr_sxx(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_sxx, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_sxx, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_sxx(float8, float8) IS
'sum of the squared deviations of x of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_sxx';
CREATE AGGREGATE gpuagg_exact_regr_syy(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_syy, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_syy, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_syy(float8, float8) IS
'sum of the squared deviations of y of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_syy';
CREATE AGGREGATE gpuagg_exact_regr_sxy(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_sxy, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_sxy, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_sxy(float8, float8) IS
'sum of the products of deviations of x and y of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_sxy';
CREATE AGGREGATE gpuagg_exact_regr_avgx(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_avgx, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_avgx, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_avgx(float8, float8) IS
'mean of x of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_avgx';
CREATE AGGREGATE gpuagg_exact_regr_avgy(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_avgy, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_avgy, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_avgy(float8, float8) IS
'mean of y of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_avgy';
CREATE AGGREGATE gpuagg_exact_regr_r2(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_r2, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_r2, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_r2(float8, float8) IS
'square of the correlation coefficient of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_r2';
CREATE AGGREGATE gpuagg_exact_regr_slope(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_slope, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_slope, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_slope(float8, float8) IS
'slope of the least-squares line of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_slope';
CREATE AGGREGATE gpuagg_exact_regr_intercept(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_regr_intercept, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_regr_intercept, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_regr_intercept(float8, float8) IS
'y-intercept of the least-squares line of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s regr_intercept';
CREATE AGGREGATE gpuagg_exact_covar_pop(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_covar_pop, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_covar_pop, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_covar_pop(float8, float8) IS
'population covariance of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s covar_pop';
CREATE AGGREGATE gpuagg_exact_covar_samp(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_covar_samp, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_covar_samp, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_covar_samp(float8, float8) IS
'sample covariance of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s covar_samp';
CREATE AGGREGATE gpuagg_exact_corr(y float8, x float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_corr, COMBINEFUNC = gpuagg_exact_combine,
    SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, MSFUNC = gpuagg_exact_accum_pairs,
    MINVFUNC = gpuagg_exact_remove_pairs, MSTYPE = internal, MSSPACE = 256, MFINALFUNC = gpuagg_exact_corr, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_corr(float8, float8) IS
'correlation coefficient of the rows in which y and x are not null, computed exactly and rounded once; otherwise as core''s corr';

/*
 * Sketches of bounded size: percentiles, and the number of distinct values.
 */
CREATE FUNCTION gpuagg_hll_transfn(internal, "any") RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_hll_transfn(internal, "any") IS 'transition function of gpu_approx_count_distinct; null values change nothing';
CREATE FUNCTION gpuagg_hll_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_combine(internal, internal) IS 'combine function of gpu_approx_count_distinct; a null state is an empty one';
CREATE FUNCTION gpuagg_hll_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_serialize(internal) IS 'serialisation function of gpu_approx_count_distinct; null for null';
CREATE FUNCTION gpuagg_hll_deserialize(bytea, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_deserialize(bytea, internal) IS 'deserialisation function of gpu_approx_count_distinct; null for null';
CREATE FUNCTION gpuagg_hll_final(internal) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_final(internal) IS 'final function of gpu_approx_count_distinct; 0 for null';
CREATE FUNCTION gpuagg_sketch_transfn(internal, float8, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_sketch_transfn(internal, float8, float8) IS
'transition function of gpu_approx_percentile; null values change nothing';
CREATE FUNCTION gpuagg_sketch_transfn(internal, float8, float8[]) RETURNS internal
    AS 'MODULE_PATHNAME', 'gpuagg_sketch_multi_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_sketch_transfn(internal, float8, float8[]) IS
'transition function of gpu_approx_percentile; null values change nothing';
CREATE FUNCTION gpuagg_sketch_combine(internal, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_sketch_combine(internal, internal) IS 'combine function of gpu_approx_percentile; null for two nulls';
CREATE FUNCTION gpuagg_sketch_serialize(internal) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_sketch_serialize(internal) IS 'serialization function of gpu_approx_percentile; null for null';
CREATE FUNCTION gpuagg_sketch_deserialize(bytea, internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_sketch_deserialize(bytea, internal) IS 'deserialization function of gpu_approx_percentile; null for null';
CREATE FUNCTION gpuagg_sketch_final(internal) RETURNS float8 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_sketch_final(internal) IS 'final function of gpu_approx_percentile; null for null';
CREATE FUNCTION gpuagg_sketch_multi_final(internal) RETURNS float8[] AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_sketch_multi_final(internal) IS 'final function of gpu_approx_percentile; null for null';
CREATE AGGREGATE gpu_approx_count_distinct("any") (
    SFUNC = gpuagg_hll_transfn, STYPE = internal, FINALFUNC = gpuagg_hll_final, COMBINEFUNC = gpuagg_hll_combine,
    SERIALFUNC = gpuagg_hll_serialize, DESERIALFUNC = gpuagg_hll_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_count_distinct("any") IS
'number of distinct non-NULL values, estimated by HyperLogLog with 2^14 registers (standard error 0.81 %); 0 without input';
CREATE AGGREGATE gpu_approx_percentile(x float8, fraction float8) (
    SFUNC = gpuagg_sketch_transfn, STYPE = internal, SSPACE = 32768, FINALFUNC = gpuagg_sketch_final,
    COMBINEFUNC = gpuagg_sketch_combine, SERIALFUNC = gpuagg_sketch_serialize, DESERIALFUNC = gpuagg_sketch_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_percentile(float8, float8) IS
'percentile_disc(fraction) of the non-null values about: exactly if at most 2048 of them differ, and else with a relative error of less than n / 2048 where they are of n orders of magnitude (powers of two, each sign for itself); the same whatever the order of rows and the number of workers; null without a value or for a null fraction; the fraction must be the same in all rows of a group, and between 0 and 1';
CREATE AGGREGATE gpu_approx_percentile(x float8, fractions float8[]) (
    SFUNC = gpuagg_sketch_transfn, STYPE = internal, SSPACE = 32768, FINALFUNC = gpuagg_sketch_multi_final,
    COMBINEFUNC = gpuagg_sketch_combine, SERIALFUNC = gpuagg_sketch_serialize, DESERIALFUNC = gpuagg_sketch_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_percentile(float8, float8[]) IS
'the same for several fractions: an array of one dimension, with null elements for null fractions';

/*
 * Aggregates in parts. An aggregate with an internal state, or with arguments of any type, becomes one whose types
 * are declared, and whose state can be sent to another server: gpuagg_finish(gpuagg_merge(gpuagg_pack(...))).
 */
CREATE TYPE gpuagg_state;
CREATE FUNCTION gpuagg_state_in(cstring) RETURNS gpuagg_state AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_state_in(cstring) IS 'I/O';
CREATE FUNCTION gpuagg_state_out(gpuagg_state) RETURNS cstring AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_state_out(gpuagg_state) IS 'I/O';
CREATE FUNCTION gpuagg_state_recv(internal) RETURNS gpuagg_state AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_state_recv(internal) IS 'I/O';
CREATE FUNCTION gpuagg_state_send(gpuagg_state) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_state_send(gpuagg_state) IS 'I/O';
CREATE TYPE gpuagg_state (INPUT = gpuagg_state_in, OUTPUT = gpuagg_state_out, RECEIVE = gpuagg_state_recv, SEND = gpuagg_state_send,
    STORAGE = extended);
COMMENT ON TYPE gpuagg_state IS
'the state of an aggregate over some of its rows, as it travels between servers: hexadecimal text, or the same bytes in binary; other input is an error';
CREATE TYPE gpuagg_row;
CREATE FUNCTION gpuagg_row_in(cstring) RETURNS gpuagg_row AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_row_in(cstring) IS 'I/O';
CREATE FUNCTION gpuagg_row_out(gpuagg_row) RETURNS cstring AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_row_out(gpuagg_row) IS 'I/O';
CREATE FUNCTION gpuagg_row_recv(internal) RETURNS gpuagg_row AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_row_recv(internal) IS 'I/O';
CREATE FUNCTION gpuagg_row_send(gpuagg_row) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_row_send(gpuagg_row) IS 'I/O';
CREATE TYPE gpuagg_row (INPUT = gpuagg_row_in, OUTPUT = gpuagg_row_out, RECEIVE = gpuagg_row_recv, SEND = gpuagg_row_send,
    STORAGE = extended);
COMMENT ON TYPE gpuagg_row IS
'an aggregate and its arguments in one row, see gpuagg_pack: hexadecimal text, or the same bytes in binary, with names instead of object identifiers';

-- STABLE: a constant would hide the aggregate and its arguments from the custom scan
CREATE FUNCTION gpuagg_pack(aggregate regprocedure, VARIADIC arguments "any") RETURNS gpuagg_row
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_pack(regprocedure, "any") IS
'an aggregate and its arguments in one row, of exactly the types that it is declared for, as a value for gpuagg_merge; null without an aggregate';
CREATE FUNCTION gpuagg_merge_accum(gpuagg_state, gpuagg_row) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_merge_accum(gpuagg_state, gpuagg_row) IS 'transition function of gpuagg_merge; null rows change nothing';
CREATE FUNCTION gpuagg_merge_combine(gpuagg_state, gpuagg_state) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_merge_combine(gpuagg_state, gpuagg_state) IS 'combine function of gpuagg_merge; a null state is an empty one';
CREATE AGGREGATE gpuagg_merge(gpuagg_row) (
    SFUNC = gpuagg_merge_accum, STYPE = gpuagg_state, COMBINEFUNC = gpuagg_merge_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_merge(gpuagg_row) IS
'state of the aggregate that gpuagg_pack names, over all rows: of sum and avg of bigint and numeric, variances and standard deviations of integers and numeric, histograms, gpu_approx_count_distinct, gpu_approx_percentile, gpu_argmax, gpu_argmin, gpu_first, gpu_last, gpu_max_n, gpu_min_n, gpu_argmax_n, gpu_argmin_n, gpu_value_counts, gpu_top_k, gpu_entropy and gpu_summary; null without one';
CREATE AGGREGATE gpuagg_merge(gpuagg_state) (
    SFUNC = gpuagg_merge_combine, STYPE = gpuagg_state, COMBINEFUNC = gpuagg_merge_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_merge(gpuagg_state) IS
'combination of states: the state over the rows of all of them; null states are skipped, null without one; an error for states of different aggregates';
CREATE FUNCTION gpuagg_finish(state gpuagg_state, aggregate regprocedure, result anyelement) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_finish(gpuagg_state, regprocedure, anyelement) IS
'result of an aggregate of this state; the third argument is a null of the result''s type; for a null state, the result without rows';

/*
 * Sketches that are kept in tables, under plain names. Their states are those of gpuagg_merge, too.
 */
CREATE FUNCTION gpuagg_hll_state(internal) RETURNS gpuagg_state AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_hll_state(internal) IS 'final function of gpu_approx_count_distinct_state; null for null';
CREATE FUNCTION gpuagg_hll_merge(gpuagg_state, gpuagg_state) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_hll_merge(gpuagg_state, gpuagg_state) IS
'transition function of gpu_approx_count_distinct_merge; a null state is an empty one';
CREATE FUNCTION gpuagg_sketch_accum(internal, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_sketch_accum(internal, float8) IS
'transition function of gpu_approx_percentile_state; null values change nothing';
CREATE FUNCTION gpuagg_sketch_state(internal) RETURNS gpuagg_state AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_sketch_state(internal) IS 'final function of gpu_approx_percentile_state; null for null';
CREATE FUNCTION gpuagg_sketch_merge(gpuagg_state, gpuagg_state) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_sketch_merge(gpuagg_state, gpuagg_state) IS
'transition function of gpu_approx_percentile_merge; a null state is an empty one';
CREATE AGGREGATE gpu_approx_count_distinct_state("any") (
    SFUNC = gpuagg_hll_transfn, STYPE = internal, FINALFUNC = gpuagg_hll_state, COMBINEFUNC = gpuagg_hll_combine,
    SERIALFUNC = gpuagg_hll_serialize, DESERIALFUNC = gpuagg_hll_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_count_distinct_state("any") IS
'sketch of the distinct non-null values, as a state for tables, of at most 16 kB: gpu_approx_count_distinct_merge combines such states, and gpu_approx_count_distinct_estimate reads them; null without rows';
CREATE AGGREGATE gpu_approx_count_distinct_merge(state gpuagg_state) (
    SFUNC = gpuagg_hll_merge, STYPE = gpuagg_state, COMBINEFUNC = gpuagg_hll_merge, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_count_distinct_merge(gpuagg_state) IS
'the state over the rows of all states; null states are skipped, null without one; an error for a state of another aggregate';
CREATE FUNCTION gpu_approx_count_distinct_estimate(state gpuagg_state) RETURNS int8
    AS 'MODULE_PATHNAME', 'gpuagg_hll_read' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpu_approx_count_distinct_estimate(gpuagg_state) IS
'what gpu_approx_count_distinct returns for the rows of the state; 0 for null; an error for a state of another aggregate';
CREATE AGGREGATE gpu_approx_percentile_state(x float8) (
    SFUNC = gpuagg_sketch_accum, STYPE = internal, SSPACE = 32768, FINALFUNC = gpuagg_sketch_state,
    COMBINEFUNC = gpuagg_sketch_combine, SERIALFUNC = gpuagg_sketch_serialize, DESERIALFUNC = gpuagg_sketch_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_percentile_state(float8) IS
'sketch of the non-null values, as a state for tables, of at most 33 kB: gpu_approx_percentile_merge combines such states, and gpu_approx_percentile_estimate reads them; null without a value';
CREATE AGGREGATE gpu_approx_percentile_merge(state gpuagg_state) (
    SFUNC = gpuagg_sketch_merge, STYPE = gpuagg_state, COMBINEFUNC = gpuagg_sketch_merge, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_approx_percentile_merge(gpuagg_state) IS
'the state over the rows of all states; null states are skipped, null without one; an error for a state of another aggregate';
CREATE FUNCTION gpu_approx_percentile_estimate(state gpuagg_state, fraction float8) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpuagg_sketch_read' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_approx_percentile_estimate(gpuagg_state, float8) IS
'what gpu_approx_percentile returns for the rows of the state and this fraction, which is between 0 and 1; null for null; an error for a state of another aggregate';
CREATE FUNCTION gpu_approx_percentile_estimate(state gpuagg_state, fractions float8[]) RETURNS float8[]
    AS 'MODULE_PATHNAME', 'gpuagg_sketch_multi_read' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_approx_percentile_estimate(gpuagg_state, float8[]) IS
'what gpu_approx_percentile returns for the rows of the state and these fractions, which are between 0 and 1: an array like theirs, with null for null; null for null; an error for a state of another aggregate';

/*
 * Histograms whose results can be combined: of values whose range is not known before, and exponential ones. Both are states
 * (gpuagg_state), so gpuagg_merge combines them, too.
 */
CREATE FUNCTION gpuagg_histogram_auto_transfn(internal, float8, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_histogram_auto_transfn(internal, float8, int4) IS 'transition function of gpu_histogram_auto';
CREATE FUNCTION gpuagg_histogram_auto_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_auto_combine(internal, internal) IS 'combine function of gpu_histogram_auto; a null state is an empty one';
CREATE FUNCTION gpuagg_histogram_auto_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_auto_serialize(internal) IS 'serialization function of gpu_histogram_auto; null for null';
CREATE FUNCTION gpuagg_histogram_auto_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_auto_deserialize(bytea, internal) IS 'deserialization function of gpu_histogram_auto; null for null';
CREATE FUNCTION gpuagg_histogram_auto_final(internal) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_histogram_auto_final(internal) IS 'final function of gpu_histogram_auto; null for null';
CREATE AGGREGATE gpu_histogram_auto(x float8, nbins int4) (
    SFUNC = gpuagg_histogram_auto_transfn, STYPE = internal, SSPACE = 4096, FINALFUNC = gpuagg_histogram_auto_final,
    COMBINEFUNC = gpuagg_histogram_auto_combine, SERIALFUNC = gpuagg_histogram_auto_serialize,
    DESERIALFUNC = gpuagg_histogram_auto_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram_auto(float8, int4) IS
'numbers of values in equal bins from the least to the greatest one, at most nbins (2 or more): the width of bins is the least power of two for which these are enough, and bounds are its multiples; nulls, infinities and NaN are counted apart; null without rows';
CREATE FUNCTION gpu_histogram_auto_bins(histogram gpuagg_state, OUT bin int4, OUT lower float8, OUT upper float8, OUT count int8, OUT bar text) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 50;
COMMENT ON FUNCTION gpu_histogram_auto_bins(gpuagg_state) IS
'bins of a histogram of gpu_histogram_auto in ascending order, with the values from lower up to, not including, upper; infinities and NaN have rows without a number, if there are some; no rows for null';
CREATE FUNCTION gpu_histogram_auto_info(histogram gpuagg_state, OUT nbins int4, OUT width float8, OUT count int8, OUT nulls int8, OUT min float8, OUT max float8)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_auto_info(gpuagg_state) IS
'about a histogram of gpu_histogram_auto: largest number of bins, width of a bin, numbers of values and of nulls, least and greatest finite value; null for null';
CREATE FUNCTION gpu_histogram_auto_quantile(histogram gpuagg_state, fraction float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_histogram_auto_quantile(gpuagg_state, float8) IS
'value at a fraction (0 to 1) of the values of a histogram of gpu_histogram_auto, interpolated within its bin, in which percentile_disc would find it; infinities and NaN are values; null without values, and for null';

CREATE FUNCTION gpuagg_exp_histogram_transfn(internal, float8, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exp_histogram_transfn(internal, float8, int4) IS
'transition function of gpu_exp_histogram; null values change nothing';
CREATE FUNCTION gpuagg_exp_histogram_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exp_histogram_combine(internal, internal) IS
'combine function of gpu_exp_histogram; a null state is an empty one';
CREATE FUNCTION gpuagg_exp_histogram_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exp_histogram_serialize(internal) IS
'serialization function of gpu_exp_histogram; null for null';
CREATE FUNCTION gpuagg_exp_histogram_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exp_histogram_deserialize(bytea, internal) IS
'deserialization function of gpu_exp_histogram; null for null';
CREATE FUNCTION gpuagg_exp_histogram_final(internal) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_exp_histogram_final(internal) IS
'final function of gpu_exp_histogram; null for null';
CREATE AGGREGATE gpu_exp_histogram(x float8, scale int4) (
    SFUNC = gpuagg_exp_histogram_transfn, STYPE = internal, SSPACE = 4096, FINALFUNC = gpuagg_exp_histogram_final,
    COMBINEFUNC = gpuagg_exp_histogram_combine, SERIALFUNC = gpuagg_exp_histogram_serialize,
    DESERIALFUNC = gpuagg_exp_histogram_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_exp_histogram(float8, int4) IS
'exponential histogram as of OpenTelemetry and Prometheus: numbers of values in buckets, each wider than the one before by the factor 2^(2^-scale), and of zeros; the scale, between -10 and 20, is lowered until 160 buckets are enough for each sign; nulls are skipped, null without input';
CREATE FUNCTION gpuagg_exp_histogram_merge(gpuagg_state, gpuagg_state) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_exp_histogram_merge(gpuagg_state, gpuagg_state) IS
'transition function of gpu_exp_histogram_merge; a null histogram is an empty one';
CREATE AGGREGATE gpu_exp_histogram_merge(histogram gpuagg_state) (
    SFUNC = gpuagg_exp_histogram_merge, STYPE = gpuagg_state, COMBINEFUNC = gpuagg_exp_histogram_merge, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_exp_histogram_merge(gpuagg_state) IS
'sum of exponential histograms, whose scales may differ: the result has the lowest of them, or a lower one if its buckets are too many; null histograms are skipped, null without one';
CREATE FUNCTION gpu_exp_histogram_of(scale int4, zero_count int8, positive_offset int4, positive_counts int8[], negative_offset int4 DEFAULT 0,
    negative_counts int8[] DEFAULT NULL) RETURNS gpuagg_state
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpu_exp_histogram_of(int4, int8, int4, int8[], int4, int8[]) IS
'exponential histogram from the numbers that exporters store: the scale, the number of zeros, and the first bucket and the counts of positive and of negative values; null for a null scale, other nulls stand for no values';
CREATE FUNCTION gpu_exp_histogram_info(histogram gpuagg_state, OUT scale int4, OUT zero_count int8, OUT positive_offset int4, OUT positive_counts int8[],
    OUT negative_offset int4, OUT negative_counts int8[], OUT negative_infinities int8, OUT infinities int8, OUT nans int8, OUT count int8)
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_exp_histogram_info(gpuagg_state) IS
'the numbers of an exponential histogram, from which gpu_exp_histogram_of makes it; numbers of infinities and NaN, which it cannot have, and of all values; null for null';
CREATE FUNCTION gpu_exp_histogram_buckets(histogram gpuagg_state, OUT bucket int4, OUT lower float8, OUT upper float8, OUT count int8, OUT bar text) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION gpu_exp_histogram_buckets(gpuagg_state) IS
'buckets of an exponential histogram in ascending order: positive ones with the values above lower up to upper, negative ones from lower up to before upper; zeros, infinities and NaN have rows without a number, if there are some; no rows for null';
CREATE FUNCTION gpu_exp_histogram_quantile(histogram gpuagg_state, fraction float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_exp_histogram_quantile(gpuagg_state, float8) IS
'value at a fraction (0 to 1) of the values of an exponential histogram, interpolated on a logarithmic scale within its bucket, in which percentile_disc would find it; infinities and NaN are values; null without values, and for null';
CREATE FUNCTION gpu_le_histogram_quantile(bounds float8[], counts anyarray, fraction float8) RETURNS float8
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_le_histogram_quantile(float8[], anyarray, float8) IS
'histogram_quantile of Prometheus: value at a fraction (0 to 1) of a histogram of upper bounds, the last one infinity, and cumulative counts; null without values, and for null';

/*
 * Bins with equal numbers of rows.
 */
CREATE TYPE gpuagg_equidepth AS (lower float8[], upper float8[], counts int8[]);
COMMENT ON TYPE gpuagg_equidepth IS
'result of gpu_histogram_equidepth: the least and the greatest value of each bin, and its number of rows';
CREATE FUNCTION gpuagg_equidepth_transfn(internal, float8, int4) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_planner_support;
COMMENT ON FUNCTION gpuagg_equidepth_transfn(internal, float8, int4) IS
'transition function of gpu_histogram_equidepth; null values change nothing';
CREATE FUNCTION gpuagg_equidepth_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_equidepth_combine(internal, internal) IS 'combine function of gpu_histogram_equidepth; a null state is an empty one';
CREATE FUNCTION gpuagg_equidepth_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_equidepth_serialize(internal) IS 'serialization function of gpu_histogram_equidepth; null for null';
CREATE FUNCTION gpuagg_equidepth_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_equidepth_deserialize(bytea, internal) IS 'deserialization function of gpu_histogram_equidepth; null for null';
CREATE FUNCTION gpuagg_equidepth_final(internal) RETURNS gpuagg_equidepth
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_equidepth_final(internal) IS 'final function of gpu_histogram_equidepth; null for null';
CREATE AGGREGATE gpu_histogram_equidepth(x float8, nbins int4) (
    SFUNC = gpuagg_equidepth_transfn, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_equidepth_final, COMBINEFUNC = gpuagg_equidepth_combine,
    SERIALFUNC = gpuagg_equidepth_serialize, DESERIALFUNC = gpuagg_equidepth_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpu_histogram_equidepth(float8, int4) IS
'nbins bins (1 to 10000) with equal numbers of rows, as far as equal values allow, which are in one bin: the least and the greatest value of each and its number of rows; fewer bins if values are frequent; nulls are skipped, null without input';
CREATE FUNCTION gpu_histogram_equidepth_bins(histogram gpuagg_equidepth, OUT bin int4, OUT lower float8, OUT upper float8, OUT count int8, OUT bar text) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 20;
COMMENT ON FUNCTION gpu_histogram_equidepth_bins(gpuagg_equidepth) IS
'bins of a histogram of gpu_histogram_equidepth, a row for each; no rows for null';

/*
 * Columns as the asking server declares them, in the arguments and keys of these states. gpuagg_as_type is immutable for
 * postgres_fdw, which sends it: the settings that it depends on are an argument.
 */
CREATE FUNCTION gpuagg_as_type_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_as_type_support(internal) IS
'planner support function of gpuagg_as_type: removes the call if the value has that type already';
CREATE FUNCTION gpuagg_as_type(value "any", type anyelement, typmod int4 DEFAULT -1, settings text[] DEFAULT NULL) RETURNS anyelement
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT gpuagg_as_type_support;
COMMENT ON FUNCTION gpuagg_as_type("any", anyelement, int4, text[]) IS
'the value, read from its text as a value of another type with a type modifier: the type is that of the second argument, which is null, and the settings are TimeZone, DateStyle and IntervalStyle; null for null. Servers send calls of it to each other for columns that they declare differently; not meant for users';

/*
 * States for other servers. For each transition function whose aggregates have a final function there is an aggregate
 * that returns the transition value, serialized if it is internal. Servers of foreign partitions run these, and the asking
 * server merges the states (src/plan/foreign.c).
 */
CREATE AGGREGATE gpuagg_argmax_transfn_state(anyelement, anycompatible) (
    SFUNC = gpuagg_argmax_transfn, STYPE = internal, FINALFUNC = gpuagg_arg_serialize, COMBINEFUNC = gpuagg_argmax_combine,
    SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_argmax_transfn_state(anyelement, anycompatible) IS
'transition value of gpu_argmax(anyelement, anycompatible) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_argmin_transfn_state(anyelement, anycompatible) (
    SFUNC = gpuagg_argmin_transfn, STYPE = internal, FINALFUNC = gpuagg_arg_serialize, COMBINEFUNC = gpuagg_argmin_combine,
    SERIALFUNC = gpuagg_arg_serialize, DESERIALFUNC = gpuagg_arg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_argmin_transfn_state(anyelement, anycompatible) IS
'transition value of gpu_argmin(anyelement, anycompatible) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_float4_accum_state(float4) (
    SFUNC = gpuagg_float4_accum, STYPE = float8[], INITCOND = '{0,0,0}', COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_float4_accum_state(float4) IS
'transition value of gpu_avg(real) and of the other aggregates with this transition function, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_float8_accum_state(float8) (
    SFUNC = gpuagg_float8_accum, STYPE = float8[], INITCOND = '{0,0,0}', COMBINEFUNC = gpuagg_float8_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_float8_accum_state(float8) IS
'transition value of gpu_avg(double precision) and of the other aggregates with this transition function, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_float8_regr_accum_state(float8, float8) (
    SFUNC = gpuagg_float8_regr_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0,0}', COMBINEFUNC = gpuagg_float8_regr_combine,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_float8_regr_accum_state(float8, float8) IS
'transition value of gpu_corr(double precision, double precision) and of the other aggregates with this transition function, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram2d_accum_state(float8, float8, float8, int4, float8, float8, float8, int4) (
    SFUNC = gpuagg_histogram2d_accum, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_histogram_serialize,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram2d_accum_state(float8, float8, float8, int4, float8, float8, float8, int4) IS
'transition value of gpu_histogram2d(double precision, double precision, double precision, integer, double precision, double precision, double precision, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram2d_accum_weighted_state(float8, float8, float8, int4, float8, float8, float8, int4, float8) (
    SFUNC = gpuagg_histogram2d_accum_weighted, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_histogram_serialize,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram2d_accum_weighted_state(float8, float8, float8, int4, float8, float8, float8, int4, float8) IS
'transition value of gpu_histogram2d(double precision, double precision, double precision, integer, double precision, double precision, double precision, integer, double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram_accum_log_state(float8, float8, float8, int4) (
    SFUNC = gpuagg_histogram_accum_log, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_serialize,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram_accum_log_state(float8, float8, float8, int4) IS
'transition value of gpu_histogram_log(double precision, double precision, double precision, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram_accum_state(float8, float8, float8, int4) (
    SFUNC = gpuagg_histogram_accum, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_serialize,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram_accum_state(float8, float8, float8, int4) IS
'transition value of gpu_histogram(double precision, double precision, double precision, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram_accum_thresholds_state(float8, float8[]) (
    SFUNC = gpuagg_histogram_accum_thresholds, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_serialize,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram_accum_thresholds_state(float8, float8[]) IS
'transition value of gpu_histogram(double precision, double precision[]) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram_accum_weighted_state(float8, float8, float8, int4, float8) (
    SFUNC = gpuagg_histogram_accum_weighted, STYPE = internal, SSPACE = 1024, FINALFUNC = gpuagg_histogram_serialize,
    COMBINEFUNC = gpuagg_histogram_combine, SERIALFUNC = gpuagg_histogram_serialize, DESERIALFUNC = gpuagg_histogram_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram_accum_weighted_state(float8, float8, float8, int4, float8) IS
'transition value of gpu_histogram(double precision, double precision, double precision, integer, double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_hll_transfn_state("any") (
    SFUNC = gpuagg_hll_transfn, STYPE = internal, FINALFUNC = gpuagg_hll_serialize, COMBINEFUNC = gpuagg_hll_combine,
    SERIALFUNC = gpuagg_hll_serialize, DESERIALFUNC = gpuagg_hll_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_hll_transfn_state("any") IS
'transition value of gpu_approx_count_distinct("any") and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_int2_accum_state(int2) (
    SFUNC = gpuagg_int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_serialize,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_int2_accum_state(int2) IS
'transition value of gpu_stddev(smallint) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_int2_avg_accum_state(int2) (
    SFUNC = gpuagg_int2_avg_accum, STYPE = int8[], INITCOND = '{0,0}', COMBINEFUNC = gpuagg_int4_avg_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_int2_avg_accum_state(int2) IS
'transition value of gpu_avg(smallint) and of the other aggregates with this transition function, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_int4_accum_state(int4) (
    SFUNC = gpuagg_int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_numeric_poly_serialize,
    COMBINEFUNC = gpuagg_numeric_poly_combine, SERIALFUNC = gpuagg_numeric_poly_serialize,
    DESERIALFUNC = gpuagg_numeric_poly_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_int4_accum_state(int4) IS
'transition value of gpu_stddev(integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_int4_avg_accum_state(int4) (
    SFUNC = gpuagg_int4_avg_accum, STYPE = int8[], INITCOND = '{0,0}', COMBINEFUNC = gpuagg_int4_avg_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_int4_avg_accum_state(int4) IS
'transition value of gpu_avg(integer) and of the other aggregates with this transition function, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_int8_accum_state(int8) (
    SFUNC = gpuagg_int8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_serialize,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_int8_accum_state(int8) IS
'transition value of gpu_stddev(bigint) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_int8_avg_accum_state(int8) (
    SFUNC = gpuagg_int8_avg_accum, STYPE = internal, SSPACE = 48, FINALFUNC = gpuagg_int8_avg_serialize,
    COMBINEFUNC = gpuagg_int8_avg_combine, SERIALFUNC = gpuagg_int8_avg_serialize, DESERIALFUNC = gpuagg_int8_avg_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_int8_avg_accum_state(int8) IS
'transition value of gpu_avg(bigint) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_interval_avg_accum_state(interval) (
    SFUNC = gpuagg_interval_avg_accum, STYPE = internal, SSPACE = 40, FINALFUNC = gpuagg_interval_avg_serialize,
    COMBINEFUNC = gpuagg_interval_avg_combine, SERIALFUNC = gpuagg_interval_avg_serialize,
    DESERIALFUNC = gpuagg_interval_avg_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_interval_avg_accum_state(interval) IS
'transition value of gpu_avg(interval) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_numeric_accum_state(numeric) (
    SFUNC = gpuagg_numeric_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_serialize,
    COMBINEFUNC = gpuagg_numeric_combine, SERIALFUNC = gpuagg_numeric_serialize, DESERIALFUNC = gpuagg_numeric_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_numeric_accum_state(numeric) IS
'transition value of gpu_stddev(numeric) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_numeric_avg_accum_state(numeric) (
    SFUNC = gpuagg_numeric_avg_accum, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_numeric_avg_serialize,
    COMBINEFUNC = gpuagg_numeric_avg_combine, SERIALFUNC = gpuagg_numeric_avg_serialize, DESERIALFUNC = gpuagg_numeric_avg_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_numeric_avg_accum_state(numeric) IS
'transition value of gpu_avg(numeric) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_argmax_n_transfn_state(anyelement, anycompatible, int4) (
    SFUNC = gpuagg_argmax_n_transfn, STYPE = internal, FINALFUNC = gpuagg_top_n_serialize, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_argmax_n_transfn_state(anyelement, anycompatible, int4) IS
'transition value of gpu_argmax_n(anyelement, anycompatible, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_argmin_n_transfn_state(anyelement, anycompatible, int4) (
    SFUNC = gpuagg_argmin_n_transfn, STYPE = internal, FINALFUNC = gpuagg_top_n_serialize, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_argmin_n_transfn_state(anyelement, anycompatible, int4) IS
'transition value of gpu_argmin_n(anyelement, anycompatible, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_max_n_transfn_state(anyelement, int4) (
    SFUNC = gpuagg_max_n_transfn, STYPE = internal, FINALFUNC = gpuagg_top_n_serialize, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_max_n_transfn_state(anyelement, int4) IS
'transition value of gpu_max_n(anyelement, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_min_n_transfn_state(anyelement, int4) (
    SFUNC = gpuagg_min_n_transfn, STYPE = internal, FINALFUNC = gpuagg_top_n_serialize, COMBINEFUNC = gpuagg_top_n_combine,
    SERIALFUNC = gpuagg_top_n_serialize, DESERIALFUNC = gpuagg_top_n_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_min_n_transfn_state(anyelement, int4) IS
'transition value of gpu_min_n(anyelement, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_entropy_transfn_state(anyelement) (
    SFUNC = gpuagg_entropy_transfn, STYPE = internal, FINALFUNC = gpuagg_value_counts_serialize, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_entropy_transfn_state(anyelement) IS
'transition value of gpu_entropy(anyelement) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_top_k_transfn_state(anyelement, int4) (
    SFUNC = gpuagg_top_k_transfn, STYPE = internal, FINALFUNC = gpuagg_value_counts_serialize, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_top_k_transfn_state(anyelement, int4) IS
'transition value of gpu_top_k(anyelement, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_value_counts_transfn_state(anyelement) (
    SFUNC = gpuagg_value_counts_transfn, STYPE = internal, FINALFUNC = gpuagg_value_counts_serialize, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_value_counts_transfn_state(anyelement) IS
'transition value of gpu_value_counts(anyelement) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_value_counts_transfn_state(anyelement, int4) (
    SFUNC = gpuagg_value_counts_transfn, STYPE = internal, FINALFUNC = gpuagg_value_counts_serialize, COMBINEFUNC = gpuagg_value_counts_combine,
    SERIALFUNC = gpuagg_value_counts_serialize, DESERIALFUNC = gpuagg_value_counts_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_value_counts_transfn_state(anyelement, int4) IS
'transition value of gpu_value_counts(anyelement, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_summary_transfn_state(float8) (
    SFUNC = gpuagg_summary_transfn, STYPE = internal, FINALFUNC = gpuagg_summary_serialize, COMBINEFUNC = gpuagg_summary_combine,
    SERIALFUNC = gpuagg_summary_serialize, DESERIALFUNC = gpuagg_summary_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_summary_transfn_state(float8) IS
'transition value of gpu_summary(double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_histogram_auto_transfn_state(float8, int4) (
    SFUNC = gpuagg_histogram_auto_transfn, STYPE = internal, SSPACE = 4096, FINALFUNC = gpuagg_histogram_auto_serialize,
    COMBINEFUNC = gpuagg_histogram_auto_combine, SERIALFUNC = gpuagg_histogram_auto_serialize,
    DESERIALFUNC = gpuagg_histogram_auto_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_histogram_auto_transfn_state(float8, int4) IS
'transition value of gpu_histogram_auto(double precision, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_equidepth_transfn_state(float8, int4) (
    SFUNC = gpuagg_equidepth_transfn, STYPE = internal, SSPACE = 8192, FINALFUNC = gpuagg_equidepth_serialize,
    COMBINEFUNC = gpuagg_equidepth_combine, SERIALFUNC = gpuagg_equidepth_serialize, DESERIALFUNC = gpuagg_equidepth_deserialize,
    PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_equidepth_transfn_state(float8, int4) IS
'transition value of gpu_histogram_equidepth(double precision, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_exp_histogram_transfn_state(float8, int4) (
    SFUNC = gpuagg_exp_histogram_transfn, STYPE = internal, SSPACE = 4096, FINALFUNC = gpuagg_exp_histogram_serialize,
    COMBINEFUNC = gpuagg_exp_histogram_combine, SERIALFUNC = gpuagg_exp_histogram_serialize,
    DESERIALFUNC = gpuagg_exp_histogram_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exp_histogram_transfn_state(float8, int4) IS
'transition value of gpu_exp_histogram(double precision, integer) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_moments_accum_state(float8) (
    SFUNC = gpuagg_moments_accum, STYPE = float8[], INITCOND = '{0,0,0,0,0}', COMBINEFUNC = gpuagg_moments_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_moments_accum_state(float8) IS
'transition value of gpu_kurtosis(double precision) and of the other aggregates with this transition function, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_sketch_accum_state(float8) (
    SFUNC = gpuagg_sketch_accum, STYPE = internal, SSPACE = 32768, FINALFUNC = gpuagg_sketch_serialize,
    COMBINEFUNC = gpuagg_sketch_combine, SERIALFUNC = gpuagg_sketch_serialize, DESERIALFUNC = gpuagg_sketch_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_sketch_accum_state(float8) IS
'transition value of gpu_approx_percentile_state(double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_exact_accum_sum_state(float8) (
    SFUNC = gpuagg_exact_accum_sum, STYPE = internal, SSPACE = 64, FINALFUNC = gpuagg_exact_serialize,
    COMBINEFUNC = gpuagg_exact_combine, SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_accum_sum_state(float8) IS
'transition value of gpuagg_exact_avg(double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_exact_accum_sum4_state(float4) (
    SFUNC = gpuagg_exact_accum_sum4, STYPE = internal, SSPACE = 64, FINALFUNC = gpuagg_exact_serialize,
    COMBINEFUNC = gpuagg_exact_combine, SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_accum_sum4_state(float4) IS
'transition value of gpuagg_exact_avg(real) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_exact_accum_squares_state(float8) (
    SFUNC = gpuagg_exact_accum_squares, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_serialize,
    COMBINEFUNC = gpuagg_exact_combine, SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_accum_squares_state(float8) IS
'transition value of gpuagg_exact_stddev_pop(double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_exact_accum_squares4_state(float4) (
    SFUNC = gpuagg_exact_accum_squares4, STYPE = internal, SSPACE = 128, FINALFUNC = gpuagg_exact_serialize,
    COMBINEFUNC = gpuagg_exact_combine, SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_accum_squares4_state(float4) IS
'transition value of gpuagg_exact_stddev_pop(real) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_exact_accum_pairs_state(float8, float8) (
    SFUNC = gpuagg_exact_accum_pairs, STYPE = internal, SSPACE = 256, FINALFUNC = gpuagg_exact_serialize,
    COMBINEFUNC = gpuagg_exact_combine, SERIALFUNC = gpuagg_exact_serialize, DESERIALFUNC = gpuagg_exact_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_exact_accum_pairs_state(float8, float8) IS
'transition value of gpuagg_exact_corr(double precision, double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_sketch_transfn_state(float8, float8) (
    SFUNC = gpuagg_sketch_transfn, STYPE = internal, SSPACE = 32768, FINALFUNC = gpuagg_sketch_serialize,
    COMBINEFUNC = gpuagg_sketch_combine, SERIALFUNC = gpuagg_sketch_serialize, DESERIALFUNC = gpuagg_sketch_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_sketch_transfn_state(float8, float8) IS
'transition value of gpu_approx_percentile(double precision, double precision) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';
CREATE AGGREGATE gpuagg_sketch_transfn_state(float8, float8[]) (
    SFUNC = gpuagg_sketch_transfn, STYPE = internal, SSPACE = 32768, FINALFUNC = gpuagg_sketch_serialize,
    COMBINEFUNC = gpuagg_sketch_combine, SERIALFUNC = gpuagg_sketch_serialize, DESERIALFUNC = gpuagg_sketch_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE gpuagg_sketch_transfn_state(float8, float8[]) IS
'transition value of gpu_approx_percentile(double precision, double precision[]) and of the other aggregates with this transition function, serialized, for another server that merges it; not meant for users';

/*
 * A sample for the examples. Every value is computed from the number of the row, with PostgreSQL's hash function for
 * partitions, which is the same in every release.
 */
CREATE FUNCTION gpuagg_demo_flights(rows int8, OUT date timestamp, OUT carrier text, OUT origin text, OUT destination text,
    OUT distance int4, OUT delay int4)
    RETURNS SETOF record LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 100000
BEGIN ATOMIC
    SELECT timestamp '2026-01-01' + pg_catalog.make_interval(days => at / 1140, mins => 300 + at % 1140),
        (ARRAY['Aster', 'Birch', 'Cedar', 'Dahlia', 'Elder', 'Fern', 'Gorse', 'Heath'])[line + 1],
        names[a + 1], names[b + 1],
        greatest(60, pg_catalog.sqrt(((xs[a + 1] - xs[b + 1]) OPERATOR(pg_catalog.^) 2) + ((ys[a + 1] - ys[b + 1]) OPERATOR(pg_catalog.^) 2))::int4),
        CASE WHEN (late OPERATOR(pg_catalog.&) 63) > 0 THEN
            -- a little early, later in the course of the day, worse with some carriers, airports and days
            ((late >> 6) OPERATOR(pg_catalog.&) 15)::int4 + ((late >> 10) OPERATOR(pg_catalog.&) 15)::int4 - 22
            + at % 1140 / 90 + line * 5 % 7 + a * 7 % 5
            + CASE WHEN at / 1140 * 5 % 17 < 2 THEN 9 ELSE 0 END
            -- one in four is late, one in a thousand very late
            + CASE WHEN ((late >> 14) OPERATOR(pg_catalog.&) 3) = 0 THEN (((late >> 16) OPERATOR(pg_catalog.&) 63) * ((late >> 22) OPERATOR(pg_catalog.&) 63) / 20)::int4
                ELSE 0 END
            + CASE WHEN ((late >> 28) OPERATOR(pg_catalog.&) 1023) = 0 THEN ((late >> 38) OPERATOR(pg_catalog.&) 1023)::int4 ELSE 0 END
        END
    FROM pg_catalog.generate_series(1, gpuagg_demo_flights.rows) i,
        -- minutes from 5:00 on of 181 days
        LATERAL (SELECT ((i - 1) * (181 * 1140) / gpuagg_demo_flights.rows)::int4 AS at, pg_catalog.hashint8extended(i, 1) AS place,
            pg_catalog.hashint8extended(i, 2) AS late) h,
        -- small numbers are more frequent
        LATERAL (SELECT ((place OPERATOR(pg_catalog.&) 1023) * (place OPERATOR(pg_catalog.&) 1023) * 24 >> 20)::int4 AS a,
            (((place >> 10) OPERATOR(pg_catalog.&) 1023) * ((place >> 10) OPERATOR(pg_catalog.&) 1023) * 23 >> 20)::int4 AS other,
            (((place >> 20) OPERATOR(pg_catalog.&) 1023) * ((place >> 20) OPERATOR(pg_catalog.&) 1023) * 8 >> 20)::int4 AS line) p,
        LATERAL (SELECT CASE WHEN other < a THEN other ELSE other + 1 END AS b) q,
        -- airports, and where they lie, in miles
        (SELECT '{ORD,ATL,DFW,LAX,PHX,DEN,STL,DTW,LAS,MSP,SFO,EWR,IAH,PHL,CLT,SEA,LGA,BOS,MCO,SLC,PIT,SAN,MIA,PDX}'::text[] AS names,
            '{2022,2211,1524,359,708,1108,1887,2270,537,1732,143,2770,1616,2712,2401,147,2787,2942,2381,710,2440,426,2437,131}'::int4[] AS xs,
            '{1172,596,545,617,582,1025,949,1187,765,1372,871,1083,344,1026,704,1549,1089,1198,237,1090,1069,533,55,1421}'::int4[] AS ys) w;
END;
COMMENT ON FUNCTION gpuagg_demo_flights(int8) IS
'a made-up sample of as many flights in the first 181 days of 2026, in order of departure: carrier, airports, miles, and minutes of delay, negative if early and null if cancelled; the same on every server, nothing for null';

/*
 * About the extension, the GPUs, and what runs now.
 */
CREATE FUNCTION gpuagg_version() RETURNS text
    AS $$ SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'gpuagg' $$
    LANGUAGE sql STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_version() IS
'version of the installed extension, as text';
CREATE FUNCTION gpuagg_devices(OUT device int4, OUT name text, OUT memory int8, OUT memory_used int8, OUT driver text,
    OUT sessions int4, OUT queries int8, OUT failures int8, OUT out_of_memory int8, OUT restarts int4, OUT state text, OUT
    last_error text, OUT host_memory int8, OUT pinned_memory int8) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 4;
COMMENT ON FUNCTION gpuagg_devices() IS
'a row for each GPU in use: its number and name, its memory and the part of it that the extension holds in bytes, the driver, the sessions now served. Of the whole server: queries since its start, those that failed there or had no room for all rows, those of them that ran out of device memory or bins, how often the server was restarted, its state, and its last error (null if none) or a note on this GPU. host_memory: bytes of host memory that describe its stored columns, with their dictionaries, each of which counts at every GPU that uses it. pinned_memory: bytes of host memory of the whole server through which sessions send rows. A GPU that cannot be used has a row with the state "not used" and the reason as its last error. No row without a GPU';
CREATE FUNCTION gpuagg_progress(OUT pid int4, OUT datid oid, OUT relid oid, OUT blocks_done int8, OUT blocks_total int8,
    OUT rows int8, OUT groups int8, OUT phase text) RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpuagg_progress() IS 'rows of the view gpuagg_progress, by OIDs; relid is 0 if no table is known; no nulls';
CREATE VIEW gpuagg_progress AS
SELECT p.pid, d.datname, p.relid, CASE WHEN d.datname = pg_catalog.current_database() THEN p.relid::pg_catalog.regclass END AS relation,
    p.blocks_done, p.blocks_total, p.rows, p.groups, p.phase
FROM gpuagg_progress() p LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid;
COMMENT ON VIEW gpuagg_progress IS
'custom scans that run now, a row for each process: the table that it reads (relid 0: the rows are of no single table), the blocks of that table and those that this process has read (0 if the child plan reads them), rows and groups so far (groups on a GPU are counted at the end of the scan, groups in temporary files when they are merged), and the phase: initializing, scanning, sorting, merging groups, returning groups, or caching columns of gpuagg_cache_prewarm(); before PostgreSQL 17 empty, with a notice, unless gpuagg is in shared_preload_libraries';
GRANT SELECT ON gpuagg_progress TO PUBLIC;
CREATE FUNCTION gpuagg_stats(OUT event text, OUT engine text, OUT feed text, OUT strategy text, OUT reason text, OUT
    calls int8, OUT rows int8, OUT groups int8, OUT total_time float8, OUT last_time timestamptz, OUT last_queryid int8, OUT
    since timestamptz, OUT dbid oid, OUT userid oid) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE ROWS 30;
COMMENT ON FUNCTION gpuagg_stats() IS 'rows of the view gpuagg_stats';
CREATE VIEW gpuagg_stats AS SELECT * FROM gpuagg_stats();
COMMENT ON VIEW gpuagg_stats IS
'counters of all databases since the start of the server or gpuagg_stats_reset() (since), a row for each event, database (dbid), role (userid) and what distinguishes the event. taken: custom scans that ran, by engine, feed (heap: pages or the column cache; tuples: rows of the child plan) and strategy. engine: those of them that ran on the CPU engine, by reason. feed: those that took rows of the child plan, by reason. refused: plans without a custom scan of queries with gpu_* aggregates, or with PostgreSQL''s own under gpuagg.replace_builtin, by reason. calls: scans (each rescan is one) or plans. rows read, groups returned and total_time (ms of the process that returned groups, with its waits): null for refused. last_queryid: of the last such query, as in pg_stat_statements; null without compute_query_id, and for roles that are not members of pg_read_all_stats. reason: visible to roles with the privileges of userid and to members of pg_read_all_stats. When the table is full, rows of the role with the most rows are added up as other reasons, of no database and role. Scans that failed are not counted. Before PostgreSQL 17 empty, with a notice, unless gpuagg is in shared_preload_libraries';
GRANT SELECT ON gpuagg_stats TO PUBLIC;
CREATE FUNCTION gpuagg_stats_reset() RETURNS timestamptz AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION gpuagg_stats_reset() IS
'empties gpuagg_stats, and returns the time; for superusers, until EXECUTE is granted to others';
REVOKE ALL ON FUNCTION gpuagg_stats_reset() FROM PUBLIC;

/*
 * The column cache.
 */
CREATE FUNCTION gpuagg_cache_columns(OUT datid oid, OUT tablespace oid, OUT relfilenode oid, OUT relid oid, OUT attnum
    int2, OUT tier text, OUT blocks int8, OUT rows int8, OUT bytes int8, OUT hits int8, OUT valid float8, OUT last_use
    timestamptz) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION gpuagg_cache_columns() IS
'rows of the view gpuagg_cache for the tiers ram and lookup, by OIDs: attnum is 0 for the descriptors of a table''s blocks and for lookups; blocks and valid are null for lookups, last_use is null before the first use, and nothing else is; columns that the user may select from, lookups made from tables that the user may select from, and all for members of pg_read_all_stats';
CREATE FUNCTION gpuagg_device_columns(OUT datid oid, OUT tablespace oid, OUT relfilenode oid, OUT relid oid, OUT attnum
    int2, OUT tier text, OUT blocks int8, OUT rows int8, OUT bytes int8, OUT hits int8, OUT valid float8, OUT last_use
    timestamptz) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100;
COMMENT ON FUNCTION gpuagg_device_columns() IS
'rows of the view gpuagg_cache for the tier gpu, by OIDs: blocks, hits, valid and last_use are null, and nothing else is; no rows without a GPU server that is ready; columns that the user may select from, and all for members of pg_read_all_stats';
CREATE VIEW gpuagg_cache AS
SELECT d.datname, r.oid::pg_catalog.regclass AS relation, c.relfilenode, a.attname AS "column", c.tier, c.blocks, c."rows", c.bytes, c.hits,
    c.valid, c.last_use
FROM (SELECT * FROM gpuagg_cache_columns() UNION ALL SELECT * FROM gpuagg_device_columns()) c
    LEFT JOIN pg_catalog.pg_database d ON d.oid = c.datid
    LEFT JOIN pg_catalog.pg_class r ON r.oid = c.relid AND d.datname = pg_catalog.current_database()
        AND pg_catalog.pg_relation_filenode(r.oid) = c.relfilenode
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = c.attnum AND a.attnum > 0;
COMMENT ON VIEW gpuagg_cache IS
'cached columns, a row for each column and tier, and lookups of joins, of this database those that the user may select from, and of all databases for members of pg_read_all_stats: the relation (null if it is of another database, or was dropped; of a lookup, the first of its tables) and the number of its file, the column (null for a lookup, and for the descriptors of a table''s blocks, which say what proves them), the tier (ram, lookup, or gpu for copies in the memory of a GPU; a column that is kept both as numbers and as values has two rows), the blocks, rows and bytes that are cached, how often a range of it was read from the cache or a query used the lookup, the share of its blocks that had not changed when they were last read, and its last use by a query (blocks and these three are null for the tier gpu, blocks and the share for the tier lookup); empty unless gpuagg is in shared_preload_libraries';
GRANT SELECT ON gpuagg_cache TO PUBLIC;
CREATE FUNCTION gpuagg_cache_prewarm(relation regclass, columns text[] DEFAULT NULL) RETURNS int8
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION gpuagg_cache_prewarm(regclass, text[]) IS
'reads columns of a table and its partitions into the column cache, all columns without the second argument, and reads again what has changed; they count as read by two queries; for users who may select from these columns; returns the number of blocks of which all of them are cached now, which is less than the table has if memory is short (with a notice) or if transactions that changed blocks may still be running; null if the relation is null';
CREATE FUNCTION gpuagg_cache_evict(relation regclass) RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpuagg_cache_evict(regclass) IS
'removes a table and its partitions, and lookups made from them, from the column cache; for its owner and superusers; returns the bytes that are freed, at once or by the last query that reads them; 0 if nothing was cached';

/*
 * What is loaded, and the state of the GPU server.
 */
CREATE FUNCTION gpuagg_status(OUT library_version text, OUT loaded_by text, OUT server text, OUT reason text, OUT
    last_error text, OUT server_pid int4, OUT supervisor_pid int4, OUT restarts int4, OUT devices int4, OUT driver text, OUT
    build text, OUT cache_memory int8) RETURNS record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpuagg_status() IS 'the row of the view gpuagg_status, without its first column and its last two';
CREATE VIEW gpuagg_status AS
SELECT gpuagg_version() AS extension_version, s.*,
    (SELECT coalesce(pg_catalog.sum(c.bytes), 0)::pg_catalog.int8 FROM gpuagg_cache_columns() c) AS cache_used,
    (SELECT coalesce(pg_catalog.sum(c.bytes), 0)::pg_catalog.int8 FROM gpuagg_device_columns() c) AS gpu_cache_used
FROM gpuagg_status() s;
COMMENT ON VIEW gpuagg_status IS
'one row: the versions of the SQL objects of this database and of the library; what has loaded the library (shared_preload_libraries, session_preload_libraries, local_preload_libraries or first use); the state of the GPU server (absent, off, starting, ready, unavailable or restarting), the reason why it is not ready (null if it is) and its last error (null if none); the processes of the server and of its supervisor (null: none); how often the server was restarted; the number of GPUs in use; the CUDA version that the driver supports (null before the server was ready); the CUDA version and compute capabilities that the server was built with, or that it was built without (null before its first start); bytes of shared memory for the column cache (0: none) and bytes of it in use; bytes of GPU memory in use for copies of cached columns';
GRANT SELECT ON gpuagg_status TO PUBLIC;

/*
 * The operators that aggregates are made of.
 */
CREATE FUNCTION gpuagg_operators(OUT operator text, OUT input text, OUT state_bytes int4, OUT commutative bool, OUT
    atomic text, OUT description text) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 40;
COMMENT ON FUNCTION gpuagg_operators() IS 'rows of the view gpuagg_operators; no nulls';
CREATE VIEW gpuagg_operators AS SELECT * FROM gpuagg_operators();
COMMENT ON VIEW gpuagg_operators IS
'the operators that aggregates are made of: input type, bytes of a state, whether the order of rows does not matter, and how a GPU updates a state (HDW: native instruction, CAS: compare-and-swap, XCG: lock)';
GRANT SELECT ON gpuagg_operators TO PUBLIC;
