/*
 * equidepth.c
 *	  gpu_histogram_equidepth: bins with as many rows each as possible.
 *
 * With n values in ascending order, counted from 1, the upper bound of bin i of nbins is value
 * ceil(i * n / nbins): the result of percentile_disc(i / nbins), were this fraction exact. A value
 * belongs to one bin, the first one whose upper bound it does not exceed. So all rows of a value
 * are in the same bin, and of bins with equal upper bounds only the first one is there. The lower
 * bound is the least value of the bin. Every bin has rows, and there are at most nbins.
 *
 * NULLs do not count. NaN is the greatest value, and -0 is 0, as in PostgreSQL's order.
 *
 * The state is an array of all values, so the result is exact and does not depend on the order of
 * rows. As the values are counted again when the bounds are known, it has no place in the engine
 * of ordered sets: it is a fallback aggregate. An engine that counts values (agg_tally.h) makes a
 * state that has each value once, with its number of rows.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "aggregates/aggcall.h"
#include "aggregates/bin_rows.h"
#include "aggregates/counted_codes.h"
#include "aggregates/equidepth.h"
#include "aggregates/histogram.h"
#include "aggregates/portable.h"
#include "aggregates/state_forms.h"
#include "common/compat.h"
#include "common/interruptible.h"
#include "operators/select.h"

PG_FUNCTION_INFO_V1(gpuagg_equidepth_transfn);
PG_FUNCTION_INFO_V1(gpuagg_equidepth_combine);
PG_FUNCTION_INFO_V1(gpuagg_equidepth_serialize);
PG_FUNCTION_INFO_V1(gpuagg_equidepth_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_equidepth_final);
PG_FUNCTION_INFO_V1(gpu_histogram_equidepth_bins);

#define FIRST_VALUES 64
#define MAX_BINS 10000

/* The transition state: codes (select.h) of n values, in the order in which they came. */
typedef struct Equidepth
{
	int nbins;
	int64 n;
	int64 room;
	uint64 *codes;
	CountedCodes *counted; /* has all values if it is not NULL */
	int64 expected;        /* the number of rows that will be counted */
} Equidepth;

/* The columns of the type gpuagg_equidepth. */
enum
{
	COLUMN_LOWER,
	COLUMN_UPPER,
	COLUMN_COUNTS,
	COLUMNS
};

/* Returns an empty state with room for so many values. */
static Equidepth *
create_state(MemoryContext cxt, int nbins, int64 room)
{
	Equidepth *state = MemoryContextAlloc(cxt, sizeof(Equidepth));

	state->nbins = nbins;
	state->n = 0;
	state->room = Max(room, FIRST_VALUES);
	state->codes = MemoryContextAllocHuge(cxt, state->room * sizeof(uint64));
	state->counted = NULL;
	state->expected = 0;
	return state;
}

/* Makes room for n more values. */
static void
reserve(Equidepth *state, int64 n)
{
	if (state->n + n <= state->room)
		return;
	state->room = Max(state->room * 2, state->n + n);
	state->codes = repalloc_huge(state->codes, state->room * sizeof(uint64));
}

/* Raises an error: rows of one group have different nbins. */
static void
report_changed_nbins(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		 errmsg("nbins of %s must be the same in all rows of a group", "gpu_histogram_equidepth")));
}

/* Returns argument 2, the number of bins. Raises an error if it is NULL or out of range. */
static int
nbins_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("nbins of %s must not be null", "gpu_histogram_equidepth")));
	if (PG_GETARG_INT32(2) < 1 || PG_GETARG_INT32(2) > MAX_BINS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("nbins of %s must be between %d and %d", "gpu_histogram_equidepth", 1,
						MAX_BINS),
				 errdetail("It is %d.", PG_GETARG_INT32(2))));
	return PG_GETARG_INT32(2);
}

/* Returns the code of a value.  Adding 0 removes the sign of zero. */
static inline uint64
code_of(double x)
{
	return select_code_f64(x + 0.0);
}

/* Transition function of gpu_histogram_equidepth: (state, x, nbins). Skips NULLs. */
Datum
gpuagg_equidepth_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Equidepth *state = aggregate_state(fcinfo, 0);
	int nbins;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	nbins = nbins_argument(fcinfo);
	if (state == NULL)
		state = create_state(cxt, nbins, 0);
	else if (state->nbins != nbins)
		report_changed_nbins();
	reserve(state, 1);
	state->codes[state->n++] = code_of(PG_GETARG_FLOAT8(1));
	PG_RETURN_POINTER(state);
}

/* ---- counted values -------------------------------------------------------------- */

static bool
takes_nbins(Datum nbins)
{
	return DatumGetInt32(nbins) >= 1 && DatumGetInt32(nbins) <= MAX_BINS;
}

static void *
create_counted(MemoryContext cxt, Oid type, Oid collation, Datum nbins)
{
	Equidepth *state = create_state(cxt, DatumGetInt32(nbins), 0);

	state->counted = counted_codes_create(cxt);
	return state;
}

static void
add_counted(void *state, Datum value, int64 count)
{
	counted_codes_add(((Equidepth *) state)->counted, code_of(DatumGetFloat8(value)), count);
}

static void
narrow(void *state, const double *values, int64 n, int64 rows)
{
	((Equidepth *) state)->expected = rows;
}

/* Returns whether no row from the first value on is the last one of a bin. */
static bool
in_one_bin(void *state, double first, int64 from, double last, int64 to)
{
	const Equidepth *e = state;

	return from * e->nbins / e->expected == to * e->nbins / e->expected;
}

static size_t
counted_bytes(Datum nbins, int64 values)
{
	return sizeof(Equidepth) + FIRST_VALUES * sizeof(uint64) + counted_codes_bytes(values);
}

const AggTally *
equidepth_tally(const FmgrInfo *transfn)
{
	static const AggTally tally = {
		takes_nbins,      create_counted,           add_counted,         NULL, counted_bytes,
		.narrow = narrow, .in_one_bin = in_one_bin, .only_results = true};

	return transfn->fn_addr == gpuagg_equidepth_transfn ? &tally : NULL;
}

/* Makes an array of all values of a state that has them counted. */
static void
expand(Equidepth *state)
{
	const CountedCodes *counted = state->counted;

	if (counted == NULL)
		return;
	state->counted = NULL;
	reserve(state, counted->rows);
	for (int64 i = 0; i < counted->n; i++)
		INTERRUPTIBLE_FOR (row, 0, counted->codes[i].count)
			state->codes[state->n++] = counted->codes[i].code;
}

/* ---- states ---------------------------------------------------------------------- */

/* Combine function of gpu_histogram_equidepth. */
Datum
gpuagg_equidepth_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Equidepth *to = aggregate_state(fcinfo, 0);
	Equidepth *from = aggregate_state(fcinfo, 1);

	if (from == NULL)
		RETURN_STATE_UNCHANGED();
	if (to == NULL)
		to = create_state(cxt, from->nbins, 0);
	else if (to->nbins != from->nbins)
		report_changed_nbins();
	expand(to);
	expand(from);
	reserve(to, from->n);
	memcpy(to->codes + to->n, from->codes, from->n * sizeof(uint64));
	to->n += from->n;
	PG_RETURN_POINTER(to);
}

/*
 * Serialization function of gpu_histogram_equidepth: nbins, and the values. Raises an error if they
 * do not fit into a bytea.
 */
Datum
gpuagg_equidepth_serialize(PG_FUNCTION_ARGS)
{
	Equidepth *state = (Equidepth *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	expand(state);
	if (state->n > (int64) (MaxAllocSize / sizeof(uint64)) - 8)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many values for a partial state of %s", "gpu_histogram_equidepth"),
				 errhint("Set \"%s\" to 0 for this query.", "max_parallel_workers_per_gather")));
	pq_begintypsend(&buf);
	pq_sendint32(&buf, state->nbins);
	enlargeStringInfo(&buf, state->n * sizeof(uint64));
	INTERRUPTIBLE_FOR (i, 0, state->n)
		pq_sendfloat8(&buf, select_f64_of(state->codes[i]));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/*
 * Deserialization function of gpu_histogram_equidepth. States may come from anywhere
 * (partial_state.c), so everything that is read is checked.
 */
Datum
gpuagg_equidepth_deserialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;
	Equidepth *state;
	int nbins;
	int64 n;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	nbins = (int) pq_getmsgint(&buf, 4);
	if (nbins < 1 || nbins > MAX_BINS)
		portable_invalid("number of bins");
	n = (buf.len - buf.cursor) / sizeof(uint64);
	if (n == 0)
		portable_invalid("count");
	state = create_state(CurrentMemoryContext, nbins, n);
	INTERRUPTIBLE_FOR (i, 0, n)
		state->codes[state->n++] = select_code_f64(pq_getmsgfloat8(&buf) + 0.0);
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

/* ---- results ---------------------------------------------------------------------- */

/* The bins of a result. */
typedef struct Bins
{
	int n;
	uint64 *lower, *upper; /* codes */
	int64 *counts;
} Bins;

/* Sets found[i] to the value of rank ranks[i]. Overwrites copies of the codes. */
static void
select_values(const Equidepth *state, const int64 *ranks, uint64 *found)
{
	uint64 *codes, *spare;

	if (state->counted)
	{
		counted_codes_select(state->counted, ranks, state->nbins, found);
		return;
	}
	codes = palloc_extended(state->n * sizeof(uint64), MCXT_ALLOC_HUGE);
	spare = palloc_extended(state->n * sizeof(uint64), MCXT_ALLOC_HUGE);
	CHECK_FOR_INTERRUPTS();
	memcpy(codes, state->codes, state->n * sizeof(uint64));
	select_ranks(codes, spare, state->n, ranks, 0, state->nbins, found);
	pfree(codes);
	pfree(spare);
}

/* Returns the bins with their upper bounds, empty. */
static Bins
upper_bounds(const Equidepth *state)
{
	int64 n = state->counted ? state->counted->rows : state->n;
	int64 *ranks = palloc(state->nbins * sizeof(int64));
	Bins bins = {0};

	bins.lower = palloc(state->nbins * sizeof(uint64));
	bins.upper = palloc(state->nbins * sizeof(uint64));
	bins.counts = palloc0(state->nbins * sizeof(int64));
	/* ceil(i * n / nbins) - 1, without an overflow */
	for (int64 i = 1; i <= state->nbins; i++)
		ranks[i - 1] =
			n / state->nbins * i + (n % state->nbins * i + state->nbins - 1) / state->nbins - 1;
	select_values(state, ranks, bins.upper);
	for (int i = 0; i < state->nbins; i++)
		if (bins.n == 0 || bins.upper[i] > bins.upper[bins.n - 1])
		{
			bins.lower[bins.n] = bins.upper[i];
			bins.upper[bins.n++] = bins.upper[i];
		}
	pfree(ranks);
	return bins;
}

/* Returns the first bin whose upper bound is not below the code. */
static inline int
bin_of_code(const Bins *bins, uint64 code)
{
	int left = 0, n = bins->n;

	while (n > 1)
	{
		int half = n / 2;

		left += bins->upper[left + half - 1] < code ? half : 0;
		n -= half;
	}
	return left;
}

/* Counts so many rows with a value. */
static inline void
count_code(Bins *bins, uint64 code, int64 count)
{
	int bin = bin_of_code(bins, code);

	bins->counts[bin] += count;
	bins->lower[bin] = Min(bins->lower[bin], code);
}

/* Returns an array of the doubles of so many codes. */
static Datum
double_array(const uint64 *codes, int n)
{
	double *values = palloc(n * sizeof(double));

	for (int i = 0; i < n; i++)
		values[i] = select_f64_of(codes[i]);
	return form_array(FLOAT8OID, values, n);
}

/* Final function of gpu_histogram_equidepth: a gpuagg_equidepth. NULL without values. */
Datum
gpuagg_equidepth_final(PG_FUNCTION_ARGS)
{
	Equidepth *state = aggregate_state(fcinfo, 0);
	TupleDesc desc;
	Bins bins;
	Datum values[COLUMNS];
	bool nulls[COLUMNS] = {false};

	if (state == NULL)
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != COLUMNS)
		elog(ERROR, "result type of gpu_histogram_equidepth does not have its columns");
	bins = upper_bounds(state);
	INTERRUPTIBLE_FOR (i, 0, state->n)
		count_code(&bins, state->codes[i], 1);
	INTERRUPTIBLE_FOR (i, 0, state->counted ? state->counted->n : 0)
		count_code(&bins, state->counted->codes[i].code, state->counted->codes[i].count);
	values[COLUMN_LOWER] = double_array(bins.lower, bins.n);
	values[COLUMN_UPPER] = double_array(bins.upper, bins.n);
	values[COLUMN_COUNTS] = form_array(INT8OID, bins.counts, bins.n);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* ---- reader ------------------------------------------------------------------------- */

/* Raises an error: the argument is not what the aggregate returns. */
static void
report_invalid(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("argument of %s is not a valid histogram", "gpu_histogram_equidepth_bins"),
			 errdetail_internal("%s", detail),
			 errhint("Pass the result of %s.", "gpu_histogram_equidepth")));
}

/* Returns the elements of a column, and their number in *n. */
static Datum *
column_of(HeapTupleHeader tuple, int column, Oid type, int *n)
{
	bool isnull;
	Datum array = GetAttributeByNum(tuple, column + 1, &isnull);
	Datum *elements;
	bool *nulls;

	if (isnull)
		report_invalid("An array is null.");
	if (ARR_NDIM(DatumGetArrayTypeP(array)) != 1)
		report_invalid("An array does not have one dimension.");
	deconstruct_array(DatumGetArrayTypeP(array), type, 8, true, TYPALIGN_DOUBLE, &elements, &nulls,
					  n);
	for (int i = 0; i < *n; i++)
		if (nulls[i])
			report_invalid("An element is null.");
	return elements;
}

/* (gpuagg_equidepth): a row for each bin */
Datum
gpu_histogram_equidepth_bins(PG_FUNCTION_ARGS)
{
	HeapTupleHeader tuple = PG_GETARG_HEAPTUPLEHEADER(0);
	int n[COLUMNS];
	Datum *lower = column_of(tuple, COLUMN_LOWER, FLOAT8OID, &n[COLUMN_LOWER]);
	Datum *upper = column_of(tuple, COLUMN_UPPER, FLOAT8OID, &n[COLUMN_UPPER]);
	Datum *counts = column_of(tuple, COLUMN_COUNTS, INT8OID, &n[COLUMN_COUNTS]);
	BinRows rows;

	if (n[COLUMN_LOWER] != n[COLUMN_UPPER] || n[COLUMN_LOWER] != n[COLUMN_COUNTS])
		report_invalid("Its arrays have different lengths.");
	bin_rows_begin(&rows, fcinfo);
	for (int i = 0; i < n[COLUMN_COUNTS]; i++)
	{
		if (DatumGetInt64(counts[i]) < 0)
			report_invalid("A count is negative.");
		if (float8_gt(DatumGetFloat8(lower[i]), DatumGetFloat8(upper[i])) ||
			(i > 0 && float8_le(DatumGetFloat8(lower[i]), DatumGetFloat8(upper[i - 1]))))
			report_invalid("Its bounds are not in ascending order.");
		bin_rows_measure(&rows, DatumGetInt64(counts[i]));
	}
	for (int i = 0; i < n[COLUMN_COUNTS]; i++)
		bin_rows_put(&rows, Int32GetDatum(i + 1), DatumGetFloat8(lower[i]),
					 DatumGetFloat8(upper[i]), DatumGetInt64(counts[i]));
	return (Datum) 0;
}
