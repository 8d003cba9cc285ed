/*
 * kept_sketches.c
 *	  Sketches that are kept in tables: gpu_approx_count_distinct_state,
 *	  gpu_approx_percentile_state, and what merges and reads such states.
 *
 * A state is a gpuagg_state (partial_state.c): the one that gpuagg_merge(gpuagg_pack(...)) makes of
 * gpu_approx_count_distinct(x) and of gpu_approx_percentile(x, 0.5). So both kinds of calls
 * exchange states.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "aggregates/aggcall.h"
#include "aggregates/hll.h"
#include "aggregates/ordered_set.h"
#include "aggregates/partial_state.h"
#include "aggregates/sketch.h"

PG_FUNCTION_INFO_V1(gpuagg_hll_state);
PG_FUNCTION_INFO_V1(gpuagg_hll_merge);
PG_FUNCTION_INFO_V1(gpuagg_hll_read);
PG_FUNCTION_INFO_V1(gpuagg_sketch_state);
PG_FUNCTION_INFO_V1(gpuagg_sketch_merge);
PG_FUNCTION_INFO_V1(gpuagg_sketch_read);
PG_FUNCTION_INFO_V1(gpuagg_sketch_multi_read);

/* Raises an error if a state is of another aggregate. */
static void
check_kind(const bytea *state, PartialKind kind, const char *aggregate)
{
	if (partial_state_kind(state) != kind)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("state does not belong to aggregate %s", aggregate)));
}

static Datum
merge_states(FunctionCallInfo fcinfo, PartialKind kind, const char *aggregate)
{
	bytea *into = PG_ARGISNULL(0) ? NULL : PG_GETARG_BYTEA_PP(0);
	bytea *state = PG_ARGISNULL(1) ? NULL : PG_GETARG_BYTEA_PP(1);

	/* any user may call the function with any states */
	if (into)
		check_kind(into, kind, aggregate);
	if (state)
		check_kind(state, kind, aggregate);
	if (into == NULL && state == NULL)
		PG_RETURN_NULL();
	if (into == NULL || state == NULL)
		PG_RETURN_POINTER(into ? into : state);
	PG_RETURN_DATUM(partial_combine(into, partial_load(state)));
}

/* ---- distinct values ------------------------------------------------------------- */

/* Final function of gpu_approx_count_distinct_state. */
Datum
gpuagg_hll_state(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(partial_store(PARTIAL_HLL, PG_GETARG_DATUM(0)));
}

/* Transition and combine function of gpu_approx_count_distinct_merge. */
Datum
gpuagg_hll_merge(PG_FUNCTION_ARGS)
{
	return merge_states(fcinfo, PARTIAL_HLL, "gpu_approx_count_distinct");
}

/* gpu_approx_count_distinct_estimate(gpuagg_state): 0 for NULL, as without rows */
Datum
gpuagg_hll_read(PG_FUNCTION_ARGS)
{
	bytea *state = PG_ARGISNULL(0) ? NULL : PG_GETARG_BYTEA_PP(0);

	if (state == NULL)
		PG_RETURN_INT64(0);
	check_kind(state, PARTIAL_HLL, "gpu_approx_count_distinct");
	PG_RETURN_INT64(hll_estimate((HllState *) DatumGetPointer(partial_load(state))));
}

/* ---- percentiles ----------------------------------------------------------------- */

/* Final function of gpu_approx_percentile_state. */
Datum
gpuagg_sketch_state(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(partial_store(PARTIAL_SKETCH, PG_GETARG_DATUM(0)));
}

/* Transition and combine function of gpu_approx_percentile_merge. */
Datum
gpuagg_sketch_merge(PG_FUNCTION_ARGS)
{
	return merge_states(fcinfo, PARTIAL_SKETCH, "gpu_approx_percentile");
}

/* Returns the sketch in a state; NULL if it has no value. */
static Sketch *
load_sketch(bytea *state)
{
	Sketch *sketch;

	check_kind(state, PARTIAL_SKETCH, "gpu_approx_percentile");
	sketch = (Sketch *) DatumGetPointer(partial_load(state));
	return sketch_count(sketch) > 0 ? sketch : NULL;
}

/* gpu_approx_percentile_estimate(gpuagg_state, float8), strict: NULL if the state has no value */
Datum
gpuagg_sketch_read(PG_FUNCTION_ARGS)
{
	double fraction = ordered_set_check_fraction(PG_GETARG_FLOAT8(1));
	Sketch *sketch = load_sketch(PG_GETARG_BYTEA_PP(0));
	double result;

	if (sketch == NULL)
		PG_RETURN_NULL();
	sketch_percentiles(sketch, &fraction, 1, &result);
	PG_RETURN_FLOAT8(result);
}

/*
 * gpu_approx_percentile_estimate(gpuagg_state, float8[]), strict: an array like that of the
 * fractions, with NULL for NULL; NULL if the state has no value
 */
Datum
gpuagg_sketch_multi_read(PG_FUNCTION_ARGS)
{
	int n;
	double *fractions = sketch_read_fractions(PG_GETARG_ARRAYTYPE_P(1), &n);
	Sketch *sketch = load_sketch(PG_GETARG_BYTEA_PP(0));

	if (sketch == NULL)
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(sketch_percentile_array(sketch, fractions, n));
}
