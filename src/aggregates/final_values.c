/*
 * final_values.c
 *	  Values of many groups at once, for the most frequent aggregates.
 *
 * Sums, means and variances of numbers are computed here from states, without a call for each
 * group, digit by digit as core's functions do (columns/decimal.c). Only final functions of
 * regression are called, with an array that is allocated once. None of this raises errors or has
 * side effects, so values may be made for groups that nobody will read.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/fmgroids.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/state_forms.h"
#include "columns/decimal.h"

/* How the results of core's final functions are computed from a kind of states. */
static const struct
{
	FinalizeKind kind;
	Oid finalfn;
	ValuesForm form;
} forms[] = {{FINALIZE_INT_AVG, F_INT8_AVG, VALUES_MEAN},
			 {FINALIZE_INT8_AVG, F_NUMERIC_POLY_SUM, VALUES_SUM},
			 {FINALIZE_INT8_AVG, F_NUMERIC_POLY_AVG, VALUES_MEAN},
			 {FINALIZE_DEC_AVG, F_NUMERIC_SUM, VALUES_SUM},
			 {FINALIZE_DEC_AVG, F_NUMERIC_AVG, VALUES_MEAN},
			 {FINALIZE_ACCUM, F_FLOAT8_VAR_POP, VALUES_VAR_POP},
			 {FINALIZE_ACCUM, F_FLOAT8_VAR_SAMP, VALUES_VAR_SAMP},
			 {FINALIZE_ACCUM, F_FLOAT8_STDDEV_POP, VALUES_STDDEV_POP},
			 {FINALIZE_ACCUM, F_FLOAT8_STDDEV_SAMP, VALUES_STDDEV_SAMP},
			 {FINALIZE_POLY_VAR, F_NUMERIC_POLY_VAR_POP, VALUES_VAR_POP},
			 {FINALIZE_POLY_VAR, F_NUMERIC_POLY_VAR_SAMP, VALUES_VAR_SAMP},
			 {FINALIZE_POLY_VAR, F_NUMERIC_POLY_STDDEV_POP, VALUES_STDDEV_POP},
			 {FINALIZE_POLY_VAR, F_NUMERIC_POLY_STDDEV_SAMP, VALUES_STDDEV_SAMP},
			 {FINALIZE_NUMERIC_VAR, F_NUMERIC_VAR_POP, VALUES_VAR_POP},
			 {FINALIZE_NUMERIC_VAR, F_NUMERIC_VAR_SAMP, VALUES_VAR_SAMP},
			 {FINALIZE_NUMERIC_VAR, F_NUMERIC_STDDEV_POP, VALUES_STDDEV_POP},
			 {FINALIZE_NUMERIC_VAR, F_NUMERIC_STDDEV_SAMP, VALUES_STDDEV_SAMP},
			 {FINALIZE_REGR, F_FLOAT8_REGR_SXX, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_SYY, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_SXY, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_AVGX, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_AVGY, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_R2, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_SLOPE, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_REGR_INTERCEPT, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_COVAR_POP, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_COVAR_SAMP, VALUES_REGRESSION},
			 {FINALIZE_REGR, F_FLOAT8_CORR, VALUES_REGRESSION}};

/*
 * Returns the form of the states of an aggregate without a final function, whose states are its
 * values; VALUES_NONE: not supported.
 */
static ValuesForm
form_of_states(const AggOutput *out)
{
	switch (out->kind)
	{
		case FINALIZE_INT:
		case FINALIZE_COUNTED_INT:
			return out->agg.translen == sizeof(int64) ? VALUES_I64 :
				out->agg.translen == sizeof(int32)    ? VALUES_LOW32 :
														VALUES_NONE;
		case FINALIZE_COUNTED_I32:
			return VALUES_I32;
		case FINALIZE_COUNTED_F32:
			return VALUES_F32;
		case FINALIZE_COUNTED_F64:
			return VALUES_F64;
		case FINALIZE_DEC:
			return VALUES_SUM;
		default:
			return VALUES_NONE;
	}
}

void
final_values_init(AggOutput *out, Oid finalfn)
{
	out->values = VALUES_NONE;
	if (out->form == PARTIAL_RESULT && out->kind == FINALIZE_FALLBACK && out->agg.exact)
	{
		/* the aggregates that make states for other servers have no such result */
		out->exact = exact_result_of(&out->finalfn);
		if (out->exact != EXACT_NO_RESULT)
			out->values = VALUES_EXACT;
		return;
	}
	if ((out->form != PARTIAL_RESULT && out->form != PARTIAL_TRANS) ||
		out->kind == FINALIZE_FALLBACK)
		return;
	if (out->float8_mean)
		out->values = VALUES_F64_MEAN;
	else if (!OidIsValid(out->finalfn.fn_oid))
		out->values = form_of_states(out);
	for (int i = 0; i < lengthof(forms) && out->values == VALUES_NONE && OidIsValid(finalfn); i++)
		if (forms[i].kind == out->kind && forms[i].finalfn == finalfn)
			out->values = forms[i].form;
	/* an empty group has the initial value, which must be NULL, or 0 for counts and means */
	if (out->counted && out->kind != FINALIZE_INT && out->values != VALUES_MEAN &&
		!out->agg.initnull)
		out->values = VALUES_NONE;
	if (out->values == VALUES_REGRESSION)
	{
		static const double none[6];

		Assert(out->nfinalargs == 1);
		out->floats = DatumGetPointer(form_array(FLOAT8OID, none, lengthof(none)));
	}
}

/* Returns whether the form is the variance or deviation of a sample, not of all rows. */
static inline bool
values_are_of_sample(ValuesForm form)
{
	return form == VALUES_VAR_SAMP || form == VALUES_STDDEV_SAMP;
}

/* Returns whether the form is a standard deviation, the root of a variance. */
static inline bool
values_take_root(ValuesForm form)
{
	return form == VALUES_STDDEV_POP || form == VALUES_STDDEV_SAMP;
}

/*
 * Sets the variances or standard deviations of floats, as float8_var_samp() and similar functions
 * compute them.
 */
static void
float_variances(const AggOutput *out, const gpuagg_accum *states, const int *which, int n,
				Datum *values, bool *nulls, int stride)
{
	double fewer = values_are_of_sample(out->values) ? 1.0 : 0.0;
	bool root = values_take_root(out->values);

	for (int i = 0; i < n; i++)
	{
		const gpuagg_accum *state = &states[which[i]];
		double variance = state->sxx / (state->n - fewer);

		nulls[(Size) i * stride] = state->n <= fewer;
		values[(Size) i * stride] =
			state->n <= fewer ? (Datum) 0 : Float8GetDatum(root ? sqrt(variance) : variance);
	}
}

/*
 * Sets the variances or standard deviations of integers. Where a group's value needs too many
 * digits, calls the aggregate's own functions.
 */
static void
integer_variances(AggOutput *out, const GroupBatch *groups, const int *which, int n, Datum *values,
				  bool *nulls, int stride)
{
	const int64 *counts = groups->slots[out->slots[0]];
	const gpuagg_i128 *sums = groups->slots[out->slots[1]];
	bool sample = values_are_of_sample(out->values);

	for (int i = 0; i < n; i++)
	{
		int g = which[i];
		gpuagg_i192 sumsq = {0};
		Datum *value = &values[(Size) i * stride];
		bool *isnull = &nulls[(Size) i * stride];

		*value = (Datum) 0;
		*isnull = counts[g] <= (sample ? 1 : 0);
		if (*isnull)
			continue;
		if (out->kind == FINALIZE_NUMERIC_VAR)
			sumsq = ((const gpuagg_i192 *) groups->slots[out->slots[2]])[g];
		else
			sumsq.lo = ((const gpuagg_i128 *) groups->slots[out->slots[2]])[g];
		if (sumsq.hi != 0 ||
			!decimal_variance(counts[g], sums[g], sumsq.lo, sample, values_take_root(out->values),
							  value))
			*value = aggmap_finalize(out, groups, g, isnull);
	}
}

/*
 * Sets the values of regression aggregates by their final function. All calls use the same array,
 * which is overwritten for each group.
 */
static void
regression_values(AggOutput *out, const gpuagg_regr *states, const int *which, int n, Datum *values,
				  bool *nulls, int stride)
{
	LOCAL_FCINFO(fcinfo, 1);
	ArrayType *array = out->floats;

	InitFunctionCallInfoData(*fcinfo, &out->finalfn, 1, out->agg.collation, (Node *) out->aggstate,
							 NULL);
	fcinfo->args[0].isnull = false;
	out->aggstate->curaggcontext->ecxt_per_tuple_memory = CurrentMemoryContext;
	for (int i = 0; i < n; i++)
	{
		memcpy(ARR_DATA_PTR(array), &states[which[i]], sizeof(gpuagg_regr));
		fcinfo->args[0].value = PointerGetDatum(array);
		fcinfo->isnull = false;
		values[(Size) i * stride] = FunctionCallInvoke(fcinfo);
		nulls[(Size) i * stride] = fcinfo->isnull;
	}
}

/* Sets the results of an exact aggregate. Returns false if one overflows. */
static bool
exact_values(const AggOutput *out, const GroupBatch *groups, const int *which, int n, Datum *values,
			 bool *nulls, int stride)
{
	const Datum *states = groups->fallbacks[out->fallback];
	const bool *empty = groups->fallback_nulls[out->fallback];

	for (int i = 0; i < n; i++)
	{
		bool *isnull = &nulls[(Size) i * stride];
		bool overflow = false;
		double x = 0;

		*isnull = empty[which[i]];
		if (!*isnull)
			x = exact_result((const ExactState *) DatumGetPointer(states[which[i]]), out->exact,
							 isnull, &overflow);
		if (overflow)
			return false;
		values[(Size) i * stride] = *isnull ? (Datum) 0 :
			out->exact == EXACT_RESULT_SUM4 ? Float4GetDatum((float4) x) :
											  Float8GetDatum(x);
	}
	return true;
}

/* Returns whether a fallback aggregate has rows in any of these groups. */
static bool
has_fallbacks(const AggOutput *out, const GroupBatch *groups, const int *which, int n)
{
	const bool *nulls;

	if (out->fallback < 0)
		return false;
	nulls = groups->fallback_nulls[out->fallback];
	for (int i = 0; i < n; i++)
		if (!nulls[which[i]])
			return true;
	return false;
}

/* Sets `value` for each group g; NULL for groups without rows. */
#define FOR_GROUPS(value) \
	for (int i = 0; i < n; i++) \
	{ \
		int g = which[i]; \
		bool empty = counts && counts[g] == 0; \
\
		nulls[(Size) i * stride] = empty; \
		values[(Size) i * stride] = empty ? (Datum) 0 : (value); \
	} \
	return true

bool
aggmap_finalize_many(AggOutput *out, const GroupBatch *groups, const int *which, int n,
					 Datum *values, bool *nulls, int stride)
{
	const int64 *counts = out->counted ? groups->slots[out->slots[0]] : NULL;
	const void *states;

	if (out->values == VALUES_EXACT)
		return exact_values(out, groups, which, n, values, nulls, stride);
	if (out->values == VALUES_NONE || has_fallbacks(out, groups, which, n))
		return false;
	states = groups->slots[out->slots[out->counted && out->kind != FINALIZE_INT ? 1 : 0]];
	switch (out->values)
	{
		case VALUES_NONE:
		case VALUES_EXACT:
			return false;
		case VALUES_I64:
			if (out->kind == FINALIZE_INT)
			{
				counts = NULL;
				FOR_GROUPS(Int64GetDatum(((const int64 *) states)[g]));
			}
			FOR_GROUPS(Int64GetDatum(linear_sum64(out, counts[g], ((const int64 *) states)[g])));
		case VALUES_LOW32:
			if (out->agg.transtype == OIDOID)
			{
				FOR_GROUPS(ObjectIdGetDatum((Oid) ((const int64 *) states)[g]));
			}
			FOR_GROUPS(Int32GetDatum((int32) ((const int64 *) states)[g]));
		case VALUES_I32:
			FOR_GROUPS(Int32GetDatum(((const int32 *) states)[g]));
		case VALUES_F32:
			FOR_GROUPS(Float4GetDatum(((const float *) states)[g]));
		case VALUES_F64:
			FOR_GROUPS(Float8GetDatum(((const double *) states)[g]));
		case VALUES_F64_MEAN:
			for (int i = 0; i < n; i++)
			{
				const gpuagg_accum *state = (const gpuagg_accum *) states + which[i];

				nulls[(Size) i * stride] = state->n == 0;
				values[(Size) i * stride] =
					state->n == 0 ? (Datum) 0 : Float8GetDatum(state->sx / state->n);
			}
			return true;
		case VALUES_REGRESSION:
			regression_values(out, states, which, n, values, nulls, stride);
			return true;
		case VALUES_SUM:
			if (out->kind == FINALIZE_DEC)
			{
				FOR_GROUPS(decimal_to_numeric(((const gpuagg_i128 *) states)[g], out->scale));
			}
			FOR_GROUPS(decimal_to_numeric_shown(
				linear_sum128(out, counts[g], ((const gpuagg_i128 *) states)[g]), out->scale,
				aggmap_shown_scale(out, groups, g, out->scale)));
		case VALUES_MEAN:
			if (out->kind == FINALIZE_INT_AVG)
			{
				FOR_GROUPS(decimal_mean(linear_sum64(out, counts[g], ((const int64 *) states)[g]),
										counts[g], 0, 0));
			}
			FOR_GROUPS(decimal_mean(
				linear_sum128(out, counts[g], ((const gpuagg_i128 *) states)[g]), counts[g],
				out->scale, aggmap_shown_scale(out, groups, g, out->scale)));
		case VALUES_VAR_POP:
		case VALUES_VAR_SAMP:
		case VALUES_STDDEV_POP:
		case VALUES_STDDEV_SAMP:
			if (out->kind == FINALIZE_ACCUM)
				float_variances(out, states, which, n, values, nulls, stride);
			else
				integer_variances(out, groups, which, n, values, nulls, stride);
			return true;
	}
	return false;
}
