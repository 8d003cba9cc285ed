/*
 * support.c
 *	  gpuagg_operators() and the planner support function.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "operators/monoid.h"

PG_FUNCTION_INFO_V1(gpuagg_planner_support);
PG_FUNCTION_INFO_V1(gpuagg_operators);

/*
 * Handles no support request. Calling it loads the library, whose planner hook then sees the query.
 */
Datum
gpuagg_planner_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}

/* SQL types of the input types in monoid_list.h. */
#define SQL_int8_t "boolean"
#define SQL_int32_t "integer"
#define SQL_int64_t "bigint"
#define SQL_gpuagg_i128 "numeric"
#define SQL_float "real"
#define SQL_double "double precision"
#define SQL_gpuagg_f64x2 "double precision, double precision"
#define SQL_gpuagg_kv "bigint, bigint"
#define SQL_gpuagg_mat2 "double precision[2][2]"
#define SQL_gpuagg_mat3 "double precision[3][3]"
#define SQL_gpuagg_mat4 "double precision[4][4]"
#define SQL_gpuagg_mat5 "double precision[5][5]"

static const char *const operator_input[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) SQL_##input_t,
#include "operators/monoid_list.h"
#undef MONOID
};

static const char *const atomic_class[] = {"HDW", "CAS", "XCG"};

/* Returns one row for each operator in monoid_list.h. */
Datum
gpuagg_operators(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < MONOID_COUNT_OF_IDS; i++)
	{
		const MonoidInfo *info = &gpuagg_monoids[i];
		bool nulls[6] = {false};
		char *name = pstrdup(info->name);
		Datum row[6];

		for (char *c = name; *c; c++)
			*c = pg_tolower((unsigned char) *c);
		row[0] = CStringGetTextDatum(name);
		row[1] = CStringGetTextDatum(operator_input[i]);
		row[2] = Int32GetDatum(info->state_size);
		row[3] = BoolGetDatum(info->commutative != 0);
		row[4] = CStringGetTextDatum(atomic_class[info->atomic]);
		row[5] = CStringGetTextDatum(info->text);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, nulls);
	}
	return (Datum) 0;
}
