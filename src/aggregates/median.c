/*
 * median.c
 *	  gpu_median as an ordinary aggregate, of double precision and interval, and gpu_mad.
 *
 * The state is an array of all values in the aggregate's context. The final function selects the
 * middle of a copy. In the custom scan, composite/ordered_engine.c computes the median instead. The
 * result equals that of percentile_cont(0.5).
 *
 * gpu_mad is the median of the distances from the median. It has the same state. As it needs two
 * selections over the same values, it has no place in that engine: it is a fallback aggregate. An
 * engine that counts values (agg_tally.h) makes a state that has each value once, with its number
 * of rows.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "aggregates/aggcall.h"
#include "aggregates/counted_codes.h"
#include "aggregates/median.h"
#include "common/compat.h"
#include "common/interruptible.h"
#include "operators/select.h"

PG_FUNCTION_INFO_V1(gpuagg_median_transfn);
PG_FUNCTION_INFO_V1(gpuagg_median_final);
PG_FUNCTION_INFO_V1(gpuagg_median_interval_transfn);
PG_FUNCTION_INFO_V1(gpuagg_median_interval_final);
PG_FUNCTION_INFO_V1(gpuagg_median_deviation_transfn);
PG_FUNCTION_INFO_V1(gpuagg_median_deviation_final);
PG_FUNCTION_INFO_V1(gpuagg_median_combine);
PG_FUNCTION_INFO_V1(gpuagg_median_serialize);
PG_FUNCTION_INFO_V1(gpuagg_median_deserialize);

#define FIRST_VALUES 64

/* The transition state: n values, in the order in which they came. */
typedef struct MedianState
{
	int64 n;
	int64 capacity;
	int width; /* bytes of a value */
	char *values;
	CountedCodes *counted; /* has all values if it is not NULL */
} MedianState;

/* Returns a new, empty state with room for at least `capacity` values of `width` bytes. */
static MedianState *
create_state(MemoryContext cxt, int width, int64 capacity)
{
	MedianState *state = MemoryContextAlloc(cxt, sizeof(MedianState));

	state->n = 0;
	state->width = width;
	state->capacity = Max(capacity, FIRST_VALUES);
	state->values = MemoryContextAllocHuge(cxt, state->capacity * width);
	state->counted = NULL;
	return state;
}

/* Appends n values to the state; enlarges its array if they do not fit. */
static void
append_values(MedianState *state, const void *values, int64 n)
{
	if (state->n + n > state->capacity)
	{
		state->capacity = Max(state->capacity * 2, state->n + n);
		state->values = repalloc_huge(state->values, state->capacity * state->width);
	}
	memcpy(state->values + state->n * state->width, values, n * state->width);
	state->n += n;
}

/* Transition function of gpu_median of double precision. Skips NULLs. */
Datum
gpuagg_median_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	MedianState *state = aggregate_state(fcinfo, 0);
	float8 x;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (state == NULL)
		state = create_state(cxt, sizeof(float8), 0);
	x = PG_GETARG_FLOAT8(1);
	append_values(state, &x, 1);
	PG_RETURN_POINTER(state);
}

/* Transition function of gpu_median of interval. Skips NULLs. */
Datum
gpuagg_median_interval_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	MedianState *state = aggregate_state(fcinfo, 0);

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (state == NULL)
		state = create_state(cxt, sizeof(Interval), 0);
	append_values(state, PG_GETARG_INTERVAL_P(1), 1);
	PG_RETURN_POINTER(state);
}

/* Transition function of gpu_mad. Its own name keeps it from the engines' medians. */
Datum
gpuagg_median_deviation_transfn(PG_FUNCTION_ARGS)
{
	return gpuagg_median_transfn(fcinfo);
}

/* Returns the number between these two that is the median if they are the values in the middle. */
static double
middle(double low, double high, int64 n)
{
	return n % 2 == 1 ? low : low + (0.5 * (high - low));
}

/* Returns the median of n values. Their codes and spare have room for n numbers each. */
static double
median_of_values(const double *values, int64 n, uint64 *codes, uint64 *spare)
{
	int64 ranks[2] = {(n - 1) / 2, n / 2};
	uint64 found[2];

	CHECK_FOR_INTERRUPTS();
	INTERRUPTIBLE_FOR (i, 0, n)
		codes[i] = select_code_f64(values[i]);
	select_ranks(codes, spare, n, ranks, 0, 2, found);
	return middle(select_f64_of(found[0]), select_f64_of(found[1]), n);
}

/* Returns a new array of numbers, one for each value. */
static void *
allocate_numbers(const MedianState *state)
{
	return palloc_extended(state->n * sizeof(uint64), MCXT_ALLOC_HUGE);
}

/* Final function of gpu_median of double precision. NULL if no row counts. */
Datum
gpuagg_median_final(PG_FUNCTION_ARGS)
{
	MedianState *state = aggregate_state(fcinfo, 0);
	uint64 *codes, *spare;
	double median;

	if (state == NULL)
		PG_RETURN_NULL();
	codes = allocate_numbers(state);
	spare = allocate_numbers(state);
	median = median_of_values((double *) state->values, state->n, codes, spare);
	pfree(codes);
	pfree(spare);
	PG_RETURN_FLOAT8(median);
}

/* ---- counted values ------------------------------------------------------------- */

static void *
create_counted(MemoryContext cxt, Oid type, Oid collation, Datum unused)
{
	MedianState *state = create_state(cxt, sizeof(float8), 0);

	state->counted = counted_codes_create(cxt);
	return state;
}

static void
add_counted(void *state, Datum value, int64 count)
{
	counted_codes_add(((MedianState *) state)->counted, select_code_f64(DatumGetFloat8(value)),
					  count);
}

static size_t
counted_bytes(Datum unused, int64 values)
{
	return sizeof(MedianState) + FIRST_VALUES * sizeof(float8) + counted_codes_bytes(values);
}

const AggTally *
median_deviation_tally(const FmgrInfo *transfn)
{
	static const AggTally tally = {NULL, create_counted, add_counted, NULL, counted_bytes};

	return transfn->fn_addr == gpuagg_median_deviation_transfn ? &tally : NULL;
}

/* Makes an array of all values of a state that has them counted. */
static void
expand(MedianState *state)
{
	const CountedCodes *counted = state->counted;

	if (counted == NULL)
		return;
	state->counted = NULL;
	for (int64 i = 0; i < counted->n; i++)
	{
		double value = select_f64_of(counted->codes[i].code);

		INTERRUPTIBLE_FOR (row, 0, counted->codes[i].count)
			append_values(state, &value, 1);
	}
}

static double
median_of_counted(CountedCodes *counted)
{
	int64 ranks[2] = {(counted->rows - 1) / 2, counted->rows / 2};
	uint64 found[2];

	counted_codes_select(counted, ranks, 2, found);
	return middle(select_f64_of(found[0]), select_f64_of(found[1]), counted->rows);
}

/* Returns the median of the distances from the median. */
static double
deviation_of_counted(CountedCodes *counted)
{
	double median = median_of_counted(counted);
	CountedCodes *distances = counted_codes_create(CurrentMemoryContext);

	INTERRUPTIBLE_FOR (i, 0, counted->n)
		counted_codes_add(
			distances,
			select_code_f64(fabs(float8_mi(select_f64_of(counted->codes[i].code), median))),
			counted->codes[i].count);
	median = median_of_counted(distances);
	pfree(distances->codes);
	pfree(distances);
	return median;
}

/* ---- gpu_mad, medians of intervals, and states ------------------------------------- */

/*
 * Final function of gpu_mad. NULL if no row counts. Raises core's error if the distance of a finite
 * value overflows.
 */
Datum
gpuagg_median_deviation_final(PG_FUNCTION_ARGS)
{
	MedianState *state = aggregate_state(fcinfo, 0);
	const double *values;
	double *distances;
	uint64 *codes, *spare;
	double median;

	if (state == NULL)
		PG_RETURN_NULL();
	if (state->counted)
		PG_RETURN_FLOAT8(deviation_of_counted(state->counted));
	values = (double *) state->values;
	codes = allocate_numbers(state);
	spare = allocate_numbers(state);
	distances = allocate_numbers(state);
	median = median_of_values(values, state->n, codes, spare);
	INTERRUPTIBLE_FOR (i, 0, state->n)
		distances[i] = fabs(float8_mi(values[i], median));
	median = median_of_values(distances, state->n, codes, spare);
	pfree(codes);
	pfree(spare);
	pfree(distances);
	PG_RETURN_FLOAT8(median);
}

/* Comparator of qsort_interruptible */
static int
compare_intervals(const void *a, const void *b, void *arg)
{
	return DatumGetInt32(DirectFunctionCall2(interval_cmp, PointerGetDatum(a), PointerGetDatum(b)));
}

/* Final function of gpu_median of interval. NULL if no row counts. */
Datum
gpuagg_median_interval_final(PG_FUNCTION_ARGS)
{
	MedianState *state = aggregate_state(fcinfo, 0);
	Interval *values;
	Datum low, high, half;

	if (state == NULL)
		PG_RETURN_NULL();
	values = palloc_extended(state->n * sizeof(Interval), MCXT_ALLOC_HUGE);
	memcpy(values, state->values, state->n * sizeof(Interval));
	qsort_interruptible(values, state->n, sizeof(Interval), compare_intervals, NULL);
	low = PointerGetDatum(&values[(state->n - 1) / 2]);
	high = PointerGetDatum(&values[state->n / 2]);
	if (state->n % 2 == 1)
		PG_RETURN_DATUM(low);
	half = DirectFunctionCall2(interval_mul, DirectFunctionCall2(interval_mi, high, low),
							   Float8GetDatum(0.5));
	PG_RETURN_DATUM(DirectFunctionCall2(interval_pl, half, low));
}

/* Combine function of gpu_median of both types and of gpu_mad. */
Datum
gpuagg_median_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	MedianState *a = aggregate_state(fcinfo, 0);
	MedianState *b = aggregate_state(fcinfo, 1);

	if (b == NULL)
		RETURN_STATE_UNCHANGED();
	if (a == NULL)
		a = create_state(cxt, b->width, b->n);
	expand(a);
	expand(b);
	append_values(a, b->values, b->n);
	PG_RETURN_POINTER(a);
}

/*
 * Serialization function of gpu_median of both types and of gpu_mad. Raises an error if the values
 * do not fit into a bytea.
 */
Datum
gpuagg_median_serialize(PG_FUNCTION_ARGS)
{
	MedianState *state = (MedianState *) PG_GETARG_POINTER(0);
	Size size;
	bytea *result;

	aggregate_context(fcinfo);
	expand(state);
	size = VARHDRSZ + sizeof(MedianState) + state->n * state->width;
	if (!AllocSizeIsValid(size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many values for a partial state of a median"),
				 errhint("Set \"%s\" to 0 for this query.", "max_parallel_workers_per_gather")));
	result = palloc(size);
	SET_VARSIZE(result, size);
	memcpy(VARDATA(result), state, sizeof(MedianState));
	memcpy(VARDATA(result) + sizeof(MedianState), state->values, state->n * state->width);
	PG_RETURN_BYTEA_P(result);
}

/* Deserialization function of gpu_median of both types and of gpu_mad. */
Datum
gpuagg_median_deserialize(PG_FUNCTION_ARGS)
{
	bytea *data = PG_GETARG_BYTEA_PP(0);
	MedianState head;
	MedianState *state;

	aggregate_context(fcinfo);
	memcpy(&head, VARDATA_ANY(data), sizeof(head));
	state = create_state(CurrentMemoryContext, head.width, head.n);
	append_values(state, VARDATA_ANY(data) + sizeof(head), head.n);
	PG_RETURN_POINTER(state);
}
