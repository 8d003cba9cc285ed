/*
 * summary.c
 *	  gpu_summary: what one wants to know first of a column of numbers, in one pass.
 *
 * The state consists of those of other aggregates: the sketch of gpu_approx_percentile, which also
 * knows the extremes, that of gpu_approx_count_distinct, and the central moments of gpu_skewness.
 * It takes less than 100 kB, however many rows there are. Counts and extremes are exact, quartiles
 * and the number of distinct values as approximate as those aggregates are. All but the moments do
 * not depend on the order of rows.
 *
 * It raises no error for values whose powers overflow: what depends on them is then infinite or
 * NaN.
 *
 * The engines have no monoid for it: it is a fallback aggregate. An engine that counts values
 * (agg_tally.h) adds each value once, with its number of rows.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"

#include "aggregates/aggcall.h"
#include "aggregates/hll.h"
#include "aggregates/moments.h"
#include "aggregates/portable.h"
#include "aggregates/sketch.h"
#include "aggregates/summary.h"
#include "common/compat.h"
#include "operators/monoid.h"

PG_FUNCTION_INFO_V1(gpuagg_summary_transfn);
PG_FUNCTION_INFO_V1(gpuagg_summary_combine);
PG_FUNCTION_INFO_V1(gpuagg_summary_serialize);
PG_FUNCTION_INFO_V1(gpuagg_summary_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_summary_final);

/* The transition state. */
typedef struct SummaryState
{
	int64 nulls;
	Sketch *sketch;
	HllState *distinct;
	gpuagg_moments moments;
} SummaryState;

/* The columns of the type gpuagg_summary. */
typedef enum SummaryColumn
{
	SUMMARY_COUNT,
	SUMMARY_NULLS,
	SUMMARY_DISTINCT_VALUES,
	SUMMARY_MIN,
	SUMMARY_MAX,
	SUMMARY_MEAN,
	SUMMARY_DEVIATION,
	SUMMARY_SKEWNESS,
	SUMMARY_KURTOSIS,
	SUMMARY_Q1,
	SUMMARY_MEDIAN,
	SUMMARY_Q3,
	SUMMARY_HISTOGRAM,
	SUMMARY_COLUMNS
} SummaryColumn;

static const double quartiles[] = {0.25, 0.5, 0.75};

/*
 * The bytes of a state, and an upper bound for one with few values: tables of sketch and distinct
 * values double, and are there twice for a moment.
 */
#define MOST_BYTES (100 * 1024)
#define FEW_BYTES 4096
#define VALUE_BYTES 256

#define BARS 10
#define HEIGHTS 8

/* Returns an empty state in cxt. */
static SummaryState *
create_state(MemoryContext cxt)
{
	SummaryState *state = MemoryContextAllocZero(cxt, sizeof(SummaryState));

	state->sketch = sketch_create(cxt, NULL, 0);
	state->distinct = hll_create(cxt);
	return state;
}

/* Adds a value to the distinct ones. */
static inline void
add_distinct(SummaryState *state, double x)
{
	hll_add_hash(state->distinct,
				 DatumGetUInt64(
					 DirectFunctionCall2(hashfloat8extended, Float8GetDatum(x), Int64GetDatum(0))));
}

/* Adds a row. This is also the step of the aggregate. */
static bool
add_row(Datum value, const NullableDatum *args)
{
	SummaryState *state = (SummaryState *) DatumGetPointer(value);

	if (args[0].isnull)
		state->nulls++;
	else
	{
		double x = DatumGetFloat8(args[0].value);

		sketch_add(state->sketch, x);
		add_distinct(state, x);
		state->moments = moments_f64_step(state->moments, x);
	}
	return true;
}

/* Transition function of gpu_summary. Counts NULLs. */
Datum
gpuagg_summary_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Datum state = PG_ARGISNULL(0) ? PointerGetDatum(create_state(cxt)) : PG_GETARG_DATUM(0);

	add_row(state, &fcinfo->args[1]);
	PG_RETURN_DATUM(state);
}

AggStep
summary_step(const FmgrInfo *transfn)
{
	return transfn->fn_addr == gpuagg_summary_transfn ? add_row : NULL;
}

static void *
create_for_tally(MemoryContext cxt, Oid type, Oid collation, Datum unused)
{
	return create_state(cxt);
}

static void
add_counted(void *arg, Datum value, int64 count)
{
	SummaryState *state = arg;
	double x = DatumGetFloat8(value);
	gpuagg_moments equal = moments_f64_lift(x);

	sketch_add_rows(state->sketch, x, count);
	add_distinct(state, x);
	equal.n = (double) count;
	state->moments = moments_f64_combine(state->moments, equal);
}

static void
add_nulls(void *state, int64 count)
{
	((SummaryState *) state)->nulls += count;
}

static size_t
state_bytes(Datum unused, int64 values)
{
	return Min(FEW_BYTES + values * VALUE_BYTES, MOST_BYTES);
}

const AggTally *
summary_tally(const FmgrInfo *transfn)
{
	static const AggTally tally = {NULL, create_for_tally, add_counted, add_nulls, state_bytes};

	return transfn->fn_addr == gpuagg_summary_transfn ? &tally : NULL;
}

/* Combine function of gpu_summary. */
Datum
gpuagg_summary_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	SummaryState *into = PG_ARGISNULL(0) ? NULL : (SummaryState *) PG_GETARG_POINTER(0);
	SummaryState *from;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	from = (SummaryState *) PG_GETARG_POINTER(1);
	if (into == NULL)
		into = create_state(cxt);
	if (pg_add_s64_overflow(into->nulls, from->nulls, &into->nulls))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	sketch_merge(into->sketch, from->sketch);
	hll_merge(into->distinct, from->distinct);
	into->moments = moments_f64_combine(into->moments, from->moments);
	PG_RETURN_POINTER(into);
}

/* Serialization function of gpu_summary. */
Datum
gpuagg_summary_serialize(PG_FUNCTION_ARGS)
{
	SummaryState *state = (SummaryState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendint64(&buf, state->nulls);
	sketch_put(&buf, state->sketch);
	hll_put(&buf, state->distinct);
	pq_sendfloat8(&buf, state->moments.n);
	pq_sendfloat8(&buf, state->moments.mean);
	pq_sendfloat8(&buf, state->moments.m2);
	pq_sendfloat8(&buf, state->moments.m3);
	pq_sendfloat8(&buf, state->moments.m4);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/*
 * Deserialization function of gpu_summary. States may come from other servers (partial_state.c), so
 * everything that is read is checked. Any moments are harmless.
 */
Datum
gpuagg_summary_deserialize(PG_FUNCTION_ARGS)
{
	SummaryState *state;
	StringInfoData buf;

	aggregate_context(fcinfo);
	state = create_state(CurrentMemoryContext);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	state->nulls = pq_getmsgint64(&buf);
	if (state->nulls < 0)
		portable_invalid("count");
	state->sketch = sketch_get(&buf);
	state->distinct = hll_get(&buf);
	state->moments.n = pq_getmsgfloat8(&buf);
	state->moments.mean = pq_getmsgfloat8(&buf);
	state->moments.m2 = pq_getmsgfloat8(&buf);
	state->moments.m3 = pq_getmsgfloat8(&buf);
	state->moments.m4 = pq_getmsgfloat8(&buf);
	if (state->moments.n != (double) sketch_count(state->sketch))
		portable_invalid("count");
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

/*
 * Draws a histogram of BARS bars next to each other, between the least and the greatest finite
 * value. A bar that stands for a value has a height of 1 at least.
 */
static text *
draw_histogram(const int64 *counts)
{
	static const char *const characters[HEIGHTS] = {".", ":", "-", "=", "+", "*", "#", "@"};
	bool blocks = GetDatabaseEncoding() == PG_UTF8;
	int64 most = 0;
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < BARS; i++)
		most = Max(most, counts[i]);
	for (int i = 0; i < BARS; i++)
	{
		int height = Max((int) rint((double) counts[i] / most * HEIGHTS), 1);

		if (counts[i] == 0)
			appendStringInfoChar(&buf, ' ');
		else if (!blocks)
			appendStringInfoString(&buf, characters[height - 1]);
		else
		{
			/* U+2581 is one eighth, U+2588 a full block */
			appendStringInfoString(&buf, "\342\226");
			appendStringInfoChar(&buf, (char) (0x80 + height));
		}
	}
	return cstring_to_text_with_len(buf.data, buf.len);
}

/* Sets the columns that need at least one value. */
static void
fill_columns(const SummaryState *state, Datum *values, bool *nulls)
{
	const gpuagg_moments *moments = &state->moments;
	double min, max, infinite, x;
	double q[lengthof(quartiles)];
	int64 counts[BARS];

	sketch_range(state->sketch, &min, &max, &infinite);
	sketch_percentiles(state->sketch, quartiles, lengthof(quartiles), q);
	values[SUMMARY_MIN] = Float8GetDatum(min);
	values[SUMMARY_MAX] = Float8GetDatum(max);
	values[SUMMARY_MEAN] = Float8GetDatum(infinite != 0 ? infinite : moments->mean);
	values[SUMMARY_DEVIATION] = Float8GetDatum(sqrt(moments->m2 / (moments->n - 1)));
	values[SUMMARY_Q1] = Float8GetDatum(q[0]);
	values[SUMMARY_MEDIAN] = Float8GetDatum(q[1]);
	values[SUMMARY_Q3] = Float8GetDatum(q[2]);
	nulls[SUMMARY_MIN] = nulls[SUMMARY_MAX] = nulls[SUMMARY_MEAN] = false;
	nulls[SUMMARY_Q1] = nulls[SUMMARY_MEDIAN] = nulls[SUMMARY_Q3] = false;
	nulls[SUMMARY_DEVIATION] = moments->n < 2;
	nulls[SUMMARY_SKEWNESS] = !moments_skewness(moments, &x);
	if (!nulls[SUMMARY_SKEWNESS])
		values[SUMMARY_SKEWNESS] = Float8GetDatum(x);
	nulls[SUMMARY_KURTOSIS] = !moments_kurtosis(moments, &x);
	if (!nulls[SUMMARY_KURTOSIS])
		values[SUMMARY_KURTOSIS] = Float8GetDatum(x);
	nulls[SUMMARY_HISTOGRAM] = !sketch_bins(state->sketch, BARS, counts);
	if (!nulls[SUMMARY_HISTOGRAM])
		values[SUMMARY_HISTOGRAM] = PointerGetDatum(draw_histogram(counts));
}

/* Final function of gpu_summary: a gpuagg_summary, also without rows. */
Datum
gpuagg_summary_final(PG_FUNCTION_ARGS)
{
	SummaryState *state = PG_ARGISNULL(0) ? NULL : (SummaryState *) PG_GETARG_POINTER(0);
	TupleDesc desc;
	Datum values[SUMMARY_COLUMNS] = {0};
	bool nulls[SUMMARY_COLUMNS];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != SUMMARY_COLUMNS)
		elog(ERROR, "result type of gpu_summary does not have its columns");
	memset(nulls, true, sizeof(nulls));
	values[SUMMARY_COUNT] = Int64GetDatum(state ? sketch_count(state->sketch) : 0);
	values[SUMMARY_NULLS] = Int64GetDatum(state ? state->nulls : 0);
	values[SUMMARY_DISTINCT_VALUES] = Int64GetDatum(state ? hll_estimate(state->distinct) : 0);
	nulls[SUMMARY_COUNT] = nulls[SUMMARY_NULLS] = nulls[SUMMARY_DISTINCT_VALUES] = false;
	if (state && sketch_count(state->sketch) > 0)
		fill_columns(state, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
