/*
 * sketch.c
 *	  gpu_approx_percentile: a sketch whose resolution adapts to the values.
 *
 * A sketch counts values in buckets of a level (operators/quantiles.h). It starts at level 0, where
 * each different value has its own bucket. Whenever more than 2048 buckets are in use, it goes to
 * the next level. Zeros, infinities and NaN are counted separately, and the minimum and maximum are
 * kept. This has the following properties:
 *
 * - The state is bounded: at most 64 kB.
 * - The state depends only on the multiset of values. The level is the lowest one at which they
 *   take at most 2048 buckets, in whatever order they came or were combined in other sketches. So
 *   results do not depend on the order of rows, the plan, the number of workers or the machine. A
 *   t-digest or KLL sketch does not have this property.
 * - The error is bounded. The result is in the same bucket as the exact result of percentile_disc.
 *   Let the values span n powers of two, counted for each sign. At the previous level they took
 *   more than 2048 buckets, of 2^(53 - level) to each power. So half of a bucket's width is less
 *   than n / 2048 of any of its values: 0.5 % for values between 1 and 1000, less than 1 % between
 *   1 and a million. Values that are close together, such as times of one day, have buckets as
 *   narrow as 2048 buckets allow. Up to 2048 different values have their own buckets, and results
 *   are exact. DDSketch, whose buckets are the same for all data, bounds the error relative to the
 *   size of values, not to their range. (Below 2.2e-308 doubles have fewer digits; there the bound
 *   is n / 2048 of that number.)
 *
 * The engines have no monoid for a sketch, because its states do not have a fixed number of bins:
 * it is a fallback aggregate.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "common/int.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"
#include "utils/float.h"

#include "aggregates/aggcall.h"
#include "aggregates/ordered_set.h"
#include "aggregates/portable.h"
#include "aggregates/sketch.h"
#include "operators/quantiles.h"

PG_FUNCTION_INFO_V1(gpuagg_sketch_transfn);
PG_FUNCTION_INFO_V1(gpuagg_sketch_multi_transfn);
PG_FUNCTION_INFO_V1(gpuagg_sketch_accum);
PG_FUNCTION_INFO_V1(gpuagg_sketch_combine);
PG_FUNCTION_INFO_V1(gpuagg_sketch_serialize);
PG_FUNCTION_INFO_V1(gpuagg_sketch_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_sketch_final);
PG_FUNCTION_INFO_V1(gpuagg_sketch_multi_final);

#define FIRST_TABLE_SIZE 16

/*
 * So many values are counted at a time. With many groups, tables are not in the CPU's caches, and
 * misses that do not depend on each other overlap.
 */
#define PENDING 24

/* The number of values in a bucket. */
typedef struct Bucket
{
	uint64 number;
	int64 count; /* 0: the entry is free */
} Bucket;

/*
 * The serialized part of a sketch, except nbuckets, which comes before the buckets, and n, which is
 * the sum of the counts.
 */
typedef struct SketchHead
{
	int level;
	int nfractions;
	int nbuckets; /* in use */
	int64 n;
	int64 zeros;
	int64 infinite[2]; /* [0]: -infinity, [1]: infinity */
	int64 nans;
	double min, /* range of the values in buckets */
		max;
} SketchHead;

/* The transition state. */
struct Sketch
{
	int npending;
	double pending[PENDING]; /* values that are not counted yet */
	SketchHead head;
	double *fractions; /* NaN: the fraction is NULL */
	MemoryContext cxt;
	Bucket *table;  /* hash table with open addressing; at most half of it is used */
	int table_size; /* a power of two */
	bytea *array;   /* the argument from which fractions were read, or NULL */
};

/* ---- buckets ---------------------------------------------------------------- */

/* Returns where the search for a bucket with this number begins in the table. */
static inline uint32
first_place(const Sketch *sketch, uint64 number)
{
	return (uint32) (number * UINT64CONST(0x9e3779b97f4a7c15) >> 32) & (sketch->table_size - 1);
}

/*
 * Adds `count` to the bucket with this number, which is created if it is new. The table must have
 * room for it.
 */
static void
add_bucket(Sketch *sketch, uint64 number, int64 count)
{
	uint32 mask = sketch->table_size - 1;
	uint32 pos = first_place(sketch, number);

	while (sketch->table[pos].count != 0 && sketch->table[pos].number != number)
		pos = (pos + 1) & mask;
	if (sketch->table[pos].count == 0)
	{
		sketch->table[pos].number = number;
		sketch->head.nbuckets++;
	}
	sketch->table[pos].count += count;
}

/*
 * Replaces the hash table by one with `table_size` entries. Each bucket gets the number (old
 * number >> shift); buckets that get the same number are added up.
 */
static void
rebuild_table(Sketch *sketch, int table_size, int shift)
{
	Bucket *old = sketch->table;
	int n = sketch->table_size;

	sketch->table = MemoryContextAllocZero(sketch->cxt, table_size * sizeof(Bucket));
	sketch->table_size = table_size;
	sketch->head.nbuckets = 0;
	for (int i = 0; i < n; i++)
		if (old[i].count != 0)
			add_bucket(sketch, old[i].number >> shift, old[i].count);
	if (old)
		pfree(old);
}

/* Goes to a level at which 2^levels adjacent buckets are one. */
static void
coarsen(Sketch *sketch, int levels)
{
	sketch->head.level += levels;
	rebuild_table(sketch, sketch->table_size, levels);
}

#define ST_SORT sort_numbers
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Returns by how many levels buckets with these numbers, which ascend, must become coarser, so that
 * there are no more than a sketch may have. Two buckets become one at the level at which their
 * numbers do not differ any more.
 */
static int
missing_levels(const uint64 *numbers, int64 n)
{
	int64 merged[64 + 1] = {
		0}; /* [l]: neighbours that become one at level l from the current one */
	int64 nbuckets = Min(n, 1);
	int levels = 0;

	for (int64 i = 1; i < n; i++)
		if (numbers[i - 1] != numbers[i])
		{
			merged[pg_leftmost_one_pos64(numbers[i - 1] ^ numbers[i]) + 1]++;
			nbuckets++;
		}
	while (nbuckets > QUANTILES_BUCKETS)
		nbuckets -= merged[++levels];
	return levels;
}

/*
 * Goes to the first level at which there are not too many buckets. Mostly it is the next one, but
 * from level 0 it may be far.
 */
static pg_noinline void
fit_buckets(Sketch *sketch)
{
	uint64 *numbers;
	int n = 0;

	coarsen(sketch, 1);
	if (sketch->head.nbuckets <= QUANTILES_BUCKETS)
		return;
	numbers = palloc(sketch->head.nbuckets * sizeof(uint64));
	for (int i = 0; i < sketch->table_size; i++)
		if (sketch->table[i].count != 0)
			numbers[n++] = sketch->table[i].number;
	sort_numbers(numbers, n);
	coarsen(sketch, missing_levels(numbers, n));
	pfree(numbers);
}

/*
 * Adds `count` to the bucket with this number at the current level. Then goes to a coarser level if
 * there are too many buckets, and enlarges the table if it is half full.
 */
static void
count_bucket(Sketch *sketch, uint64 number, int64 count)
{
	add_bucket(sketch, number, count);
	if (unlikely(sketch->head.nbuckets > QUANTILES_BUCKETS))
		fit_buckets(sketch);
	if (sketch->head.nbuckets * 2 >= sketch->table_size &&
		sketch->table_size < 2 * QUANTILES_BUCKETS)
		rebuild_table(sketch, sketch->table_size * 2, 0);
}

/* Counts so many rows with a value. */
static inline void
count_value(Sketch *sketch, double x, int64 count)
{
	SketchHead *head = &sketch->head;

	head->n += count;
	if (isnan(x))
		head->nans += count;
	else if (isinf(x))
		head->infinite[x > 0] += count;
	else if (x == 0)
		head->zeros += count;
	else
	{
		head->min = Min(head->min, x);
		head->max = Max(head->max, x);
		count_bucket(sketch, quantiles_bucket(x, head->level), count);
	}
}

/* Counts the pending values. Must be called before anything else is done with a sketch. */
static void
count_pending(Sketch *sketch)
{
	for (int i = 0; i < sketch->npending; i++)
	{
		uint64 number = quantiles_bucket(sketch->pending[i], sketch->head.level);

		__builtin_prefetch(&sketch->table[first_place(sketch, number)], 1);
	}
	for (int i = 0; i < sketch->npending; i++)
		count_value(sketch, sketch->pending[i], 1);
	sketch->npending = 0;
}

void
sketch_add(Sketch *sketch, double x)
{
	if (sketch->npending == PENDING)
		count_pending(sketch);
	sketch->pending[sketch->npending++] = x;
}

void
sketch_add_rows(Sketch *sketch, double x, int64 count)
{
	count_pending(sketch);
	count_value(sketch, x, count);
}

Sketch *
sketch_create(MemoryContext cxt, const double *fractions, int n)
{
	Sketch *sketch = MemoryContextAllocZero(cxt, sizeof(Sketch));

	sketch->cxt = cxt;
	sketch->head.nfractions = n;
	sketch->head.min = get_float8_infinity();
	sketch->head.max = -get_float8_infinity();
	sketch->fractions = MemoryContextAlloc(cxt, (Max(n, 0) + 1) * sizeof(double));
	if (n > 0)
		memcpy(sketch->fractions, fractions, n * sizeof(double));
	rebuild_table(sketch, FIRST_TABLE_SIZE, 0);
	return sketch;
}

void
sketch_merge(Sketch *to, Sketch *from)
{
	count_pending(to);
	count_pending(from);
	if (pg_add_s64_overflow(to->head.n, from->head.n, &to->head.n))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	if (to->head.level < from->head.level)
		coarsen(to, from->head.level - to->head.level);
	for (int i = 0; i < from->table_size; i++)
		if (from->table[i].count != 0)
			count_bucket(to, from->table[i].number >> (to->head.level - from->head.level),
						 from->table[i].count);
	to->head.zeros += from->head.zeros;
	to->head.infinite[0] += from->head.infinite[0];
	to->head.infinite[1] += from->head.infinite[1];
	to->head.nans += from->head.nans;
	to->head.min = Min(to->head.min, from->head.min);
	to->head.max = Max(to->head.max, from->head.max);
}

/* ---- fractions ------------------------------------------------------------------ */

/* Raises an error: rows of one group have different fractions. */
static void
report_changed_fraction(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("fraction of %s must be the same in all rows of a group",
					"gpu_approx_percentile")));
}

/*
 * Returns whether two lists of n fractions are equal. NaN stands for NULL, since it is no valid
 * fraction.
 */
static bool
same_fractions(const double *a, const double *b, int n)
{
	for (int i = 0; i < n; i++)
		if (!float8_eq(a[i], b[i]))
			return false;
	return true;
}

/*
 * Transition function of gpu_approx_percentile with one fraction. Skips NULL values. Raises an
 * error if the fraction changes within a group.
 */
Datum
gpuagg_sketch_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Sketch *sketch = aggregate_state(fcinfo, 0);
	double fraction;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	fraction = PG_ARGISNULL(2) ? get_float8_nan() : ordered_set_check_fraction(PG_GETARG_FLOAT8(2));
	if (sketch == NULL)
		sketch = sketch_create(cxt, &fraction, 1);
	else if (!same_fractions(sketch->fractions, &fraction, 1))
		report_changed_fraction();
	sketch_add(sketch, PG_GETARG_FLOAT8(1));
	PG_RETURN_POINTER(sketch);
}

double *
sketch_read_fractions(ArrayType *array, int *n)
{
	Datum *elements;
	bool *nulls;
	double *fractions;

	if (ARR_NDIM(array) > 1)
		ereport(
			ERROR,
			(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
			 errmsg("fractions of %s must be a one-dimensional array", "gpu_approx_percentile")));
	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements,
					  &nulls, n);
	fractions = palloc((*n + 1) * sizeof(double));
	for (int i = 0; i < *n; i++)
		fractions[i] =
			nulls[i] ? get_float8_nan() : ordered_set_check_fraction(DatumGetFloat8(elements[i]));
	return fractions;
}

/*
 * Transition function of gpu_approx_percentile with an array of fractions. Skips NULL values.
 * Raises an error if the fractions change within a group.
 */
Datum
gpuagg_sketch_multi_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Sketch *sketch = aggregate_state(fcinfo, 0);
	bytea *array;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (PG_ARGISNULL(2))
	{
		/* a sketch without fractions has the result NULL */
		if (sketch == NULL)
			sketch = sketch_create(cxt, NULL, -1);
		else if (sketch->head.nfractions != -1)
			report_changed_fraction();
		sketch_add(sketch, PG_GETARG_FLOAT8(1));
		PG_RETURN_POINTER(sketch);
	}
	array = (bytea *) PG_GETARG_ARRAYTYPE_P(2);
	if (sketch == NULL || sketch->array == NULL || VARSIZE(array) != VARSIZE(sketch->array) ||
		memcmp(array, sketch->array, VARSIZE(array)) != 0)
	{
		int n;
		double *fractions = sketch_read_fractions((ArrayType *) array, &n);

		if (sketch == NULL)
			sketch = sketch_create(cxt, fractions, n);
		else if (sketch->head.nfractions != n || !same_fractions(sketch->fractions, fractions, n))
			report_changed_fraction();
		if (sketch->array == NULL)
		{
			sketch->array = MemoryContextAlloc(sketch->cxt, VARSIZE(array));
			memcpy(sketch->array, array, VARSIZE(array));
		}
	}
	sketch_add(sketch, PG_GETARG_FLOAT8(1));
	PG_RETURN_POINTER(sketch);
}

/* Transition function of gpu_approx_percentile_state. Skips NULLs. */
Datum
gpuagg_sketch_accum(PG_FUNCTION_ARGS)
{
	const double median = 0.5;
	MemoryContext cxt = aggregate_context(fcinfo);
	Sketch *sketch = aggregate_state(fcinfo, 0);

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (sketch == NULL)
		sketch = sketch_create(cxt, &median, 1);
	sketch_add(sketch, PG_GETARG_FLOAT8(1));
	PG_RETURN_POINTER(sketch);
}

/* Step of gpu_approx_percentile_state. */
static bool
step(Datum state, const NullableDatum *args)
{
	if (!args[0].isnull)
		sketch_add((Sketch *) DatumGetPointer(state), DatumGetFloat8(args[0].value));
	return true;
}

/* Step of gpu_approx_percentile with one fraction. */
static bool
step_with_fraction(Datum state, const NullableDatum *args)
{
	const Sketch *sketch = (Sketch *) DatumGetPointer(state);

	if (!args[0].isnull &&
		(args[1].isnull || sketch->fractions[0] != DatumGetFloat8(args[1].value)))
		return false;
	return step(state, args);
}

AggStep
sketch_step(const FmgrInfo *transfn)
{
	if (transfn->fn_addr == gpuagg_sketch_accum)
		return step;
	return transfn->fn_addr == gpuagg_sketch_transfn ? step_with_fraction : NULL;
}

/* Steps of gpu_approx_percentile_state. */
static bool
steps(Datum state, const Datum *values, int n)
{
	for (int i = 0; i < n; i++)
		sketch_add((Sketch *) DatumGetPointer(state), DatumGetFloat8(values[i]));
	return true;
}

AggSteps
sketch_steps(const FmgrInfo *transfn)
{
	return sketch_step(transfn) == step ? steps : NULL;
}

/* ---- counted values ----------------------------------------------------------------- */

static bool
takes_fraction(Datum fraction)
{
	return DatumGetFloat8(fraction) >= 0 && DatumGetFloat8(fraction) <= 1;
}

static void *
create_with_fraction(MemoryContext cxt, Oid type, Oid collation, Datum fraction)
{
	const double value = DatumGetFloat8(fraction);

	return sketch_create(cxt, &value, 1);
}

/* Returns whether sketch_read_fractions() raises no error. */
static bool
takes_fractions(Datum array)
{
	ArrayType *fractions = DatumGetArrayTypeP(array);
	Datum *elements;
	bool *nulls;
	int n;

	if (ARR_NDIM(fractions) > 1)
		return false;
	deconstruct_array(fractions, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
		if (!nulls[i] && !takes_fraction(elements[i]))
			return false;
	return true;
}

static void *
create_with_fractions(MemoryContext cxt, Oid type, Oid collation, Datum array)
{
	int n;
	double *fractions = sketch_read_fractions(DatumGetArrayTypeP(array), &n);
	Sketch *sketch = sketch_create(cxt, fractions, n);

	pfree(fractions);
	return sketch;
}

static void *
create_for_median(MemoryContext cxt, Oid type, Oid collation, Datum unused)
{
	return create_with_fraction(cxt, type, collation, Float8GetDatum(0.5));
}

static void
add_counted(void *state, Datum value, int64 count)
{
	count_value(state, DatumGetFloat8(value), count);
}

/* Tables are there twice while they are enlarged. */
static size_t
table_bytes(int64 values)
{
	int64 places = Max(4 * Min(values, QUANTILES_BUCKETS), FIRST_TABLE_SIZE);

	return sizeof(Sketch) + 2 * sizeof(double) + 3 * places * sizeof(Bucket) / 2;
}

static size_t
bytes_with_fraction(Datum fraction, int64 values)
{
	return table_bytes(values);
}

static size_t
bytes_with_fractions(Datum array, int64 values)
{
	/* the fractions, and what is left of reading them */
	return table_bytes(values) + 3 * VARSIZE_ANY(DatumGetPointer(array));
}

/* Goes to a level that values need, which ascend. The sketch is empty. */
static void
narrow(void *state, const double *values, int64 n, int64 rows)
{
	Sketch *sketch = state;
	uint64 *numbers = palloc_extended((n + 1) * sizeof(uint64), MCXT_ALLOC_HUGE);
	int64 found = 0;

	for (int64 i = 0; i < n; i++)
		if (isfinite(values[i]) && values[i] != 0)
			numbers[found++] = quantiles_bucket(values[i], sketch->head.level);
	coarsen(sketch, missing_levels(numbers, found));
	pfree(numbers);
}

static bool
in_one_bin(void *state, double first, int64 from, double last, int64 to)
{
	const Sketch *sketch = state;

	return isfinite(first) && isfinite(last) && first != 0 && last != 0 &&
		quantiles_bucket(first, sketch->head.level) == quantiles_bucket(last, sketch->head.level);
}

const AggTally *
sketch_tally(const FmgrInfo *transfn)
{
	static const AggTally one = {
		takes_fraction,   create_with_fraction,    add_counted, NULL, bytes_with_fraction,
		.narrow = narrow, .in_one_bin = in_one_bin};
	static const AggTally several = {
		takes_fractions,  create_with_fractions,   add_counted, NULL, bytes_with_fractions,
		.narrow = narrow, .in_one_bin = in_one_bin};
	static const AggTally kept = {NULL,
								  create_for_median,
								  add_counted,
								  NULL,
								  bytes_with_fraction,
								  .narrow = narrow,
								  .in_one_bin = in_one_bin};

	if (transfn->fn_addr == gpuagg_sketch_transfn)
		return &one;
	if (transfn->fn_addr == gpuagg_sketch_multi_transfn)
		return &several;
	return transfn->fn_addr == gpuagg_sketch_accum ? &kept : NULL;
}

/* ---- states ------------------------------------------------------------------------ */

/* Combine function of gpu_approx_percentile. */
Datum
gpuagg_sketch_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Sketch *a = aggregate_state(fcinfo, 0);
	Sketch *b = aggregate_state(fcinfo, 1);

	if (b == NULL)
		RETURN_STATE_UNCHANGED();
	if (a == NULL)
		a = sketch_create(cxt, b->fractions, b->head.nfractions);
	else if (a->head.nfractions != b->head.nfractions ||
			 !same_fractions(a->fractions, b->fractions, a->head.nfractions))
		report_changed_fraction();
	sketch_merge(a, b);
	PG_RETURN_POINTER(a);
}

/* sort_buckets(buckets, n): sorts buckets by their numbers; no two are equal */
#define ST_SORT sort_buckets
#define ST_ELEMENT_TYPE Bucket
#define ST_COMPARE(a, b) (((a)->number > (b)->number) - ((a)->number < (b)->number))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Counts the pending values. Returns a copy of the buckets in use, in the order of their numbers.
 */
static Bucket *
ordered_buckets(Sketch *sketch)
{
	Bucket *buckets;
	int n = 0;

	count_pending(sketch);
	buckets = palloc((sketch->head.nbuckets + 1) * sizeof(Bucket));
	for (int i = 0; i < sketch->table_size; i++)
		if (sketch->table[i].count != 0)
			buckets[n++] = sketch->table[i];
	sort_buckets(buckets, n);
	return buckets;
}

/*
 * Numbers are in network order, because states are also exchanged with other servers. Equal
 * sketches have equal bytes.
 */
void
sketch_put(StringInfo buf, Sketch *sketch)
{
	const SketchHead *head = &sketch->head;
	Bucket *buckets = ordered_buckets(sketch);

	pq_sendint32(buf, head->nfractions);
	for (int i = 0; i < head->nfractions; i++)
		pq_sendfloat8(buf, sketch->fractions[i]);
	pq_sendint32(buf, head->level);
	pq_sendint64(buf, head->zeros);
	pq_sendint64(buf, head->infinite[0]);
	pq_sendint64(buf, head->infinite[1]);
	pq_sendint64(buf, head->nans);
	pq_sendfloat8(buf, head->min);
	pq_sendfloat8(buf, head->max);
	pq_sendint32(buf, head->nbuckets);
	for (int i = 0; i < head->nbuckets; i++)
	{
		pq_sendint64(buf, buckets[i].number);
		pq_sendint64(buf, buckets[i].count);
	}
	pfree(buckets);
}

/* Serialization function of gpu_approx_percentile. */
Datum
gpuagg_sketch_serialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	sketch_put(&buf, (Sketch *) PG_GETARG_POINTER(0));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* Reads the fractions of a serialized sketch; returns an empty sketch with them. */
static Sketch *
get_fractions(StringInfo buf)
{
	int n = (int) pq_getmsgint(buf, 4);
	double *fractions;

	if (n < -1 || n > (buf->len - buf->cursor) / (int) sizeof(float8))
		portable_invalid("number of fractions");
	fractions = palloc((Max(n, 0) + 1) * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		fractions[i] = pq_getmsgfloat8(buf);
		if (!isnan(fractions[i]))
			ordered_set_check_fraction(fractions[i]);
	}
	return sketch_create(CurrentMemoryContext, fractions, n);
}

/* Checks everything, because states may come from other servers. */
Sketch *
sketch_get(StringInfo buf)
{
	Sketch *sketch = get_fractions(buf);
	SketchHead *head = &sketch->head;
	int nbuckets;

	head->level = (int) pq_getmsgint(buf, 4);
	if (head->level < 0 || head->level > QUANTILES_MAX_LEVEL)
		portable_invalid("level");
	head->zeros = portable_add_rows(buf, &head->n);
	head->infinite[0] = portable_add_rows(buf, &head->n);
	head->infinite[1] = portable_add_rows(buf, &head->n);
	head->nans = portable_add_rows(buf, &head->n);
	head->min = pq_getmsgfloat8(buf);
	head->max = pq_getmsgfloat8(buf);
	nbuckets = portable_get_count(buf, sizeof(int64) * 2, QUANTILES_BUCKETS, "number of buckets");
	/* without buckets these are infinities, which any value replaces */
	if (nbuckets > 0 ? !isfinite(head->min) || !isfinite(head->max) || head->min > head->max :
					   head->min != get_float8_infinity() || head->max != -get_float8_infinity())
		portable_invalid("range");
	if (nbuckets * 2 >= FIRST_TABLE_SIZE)
		rebuild_table(sketch, pg_nextpower2_32(nbuckets * 2 + 1), 0);
	for (int i = 0; i < nbuckets; i++)
	{
		uint64 number = pq_getmsgint64(buf);
		int64 count = portable_add_rows(buf, &head->n);

		if (count == 0 || (head->level > 0 && number >> (64 - head->level) != 0))
			portable_invalid("bucket");
		count_bucket(sketch, number, count);
	}
	return sketch;
}

/* Deserialization function of gpu_approx_percentile. */
Datum
gpuagg_sketch_deserialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;
	Sketch *sketch;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	sketch = sketch_get(&buf);
	if (sketch->head.n == 0)
		portable_invalid("count");
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(sketch);
}

/* ---- results ------------------------------------------------------------------------- */

/*
 * Returns the approximate value of a rank, counted from 0 in ascending order. buckets:
 * ordered_buckets().
 */
static double
value_of_rank(const Sketch *sketch, const Bucket *buckets, int64 rank)
{
	const SketchHead *head = &sketch->head;
	uint64 zero = select_code_f64(0.0) >> head->level;
	int64 left = rank - head->infinite[0];
	bool zeros = false;

	if (left < 0)
		return -get_float8_infinity();
	for (int i = 0; i <= head->nbuckets; i++)
	{
		if (!zeros && (i == head->nbuckets || buckets[i].number >= zero))
		{
			zeros = true;
			left -= head->zeros;
			if (left < 0)
				return 0;
		}
		if (i == head->nbuckets)
			break;
		left -= buckets[i].count;
		if (left < 0)
			return Max(Min(quantiles_value(buckets[i].number, head->level), head->max), head->min);
	}
	return left < head->infinite[1] ? get_float8_infinity() : get_float8_nan();
}

/* Returns the approximate percentile for a fraction. buckets: ordered_buckets(). */
static double
fraction_value(const Sketch *sketch, const Bucket *buckets, double fraction)
{
	int64 n = sketch->head.n;
	double rank = Max(ceil(fraction * n), 1);

	/* n may be too large for a double */
	return value_of_rank(sketch, buckets, (rank < (double) n ? (int64) rank : n) - 1);
}

void
sketch_percentiles(Sketch *sketch, const double *fractions, int n, double *results)
{
	Bucket *buckets = ordered_buckets(sketch);

	for (int i = 0; i < n; i++)
		results[i] = fraction_value(sketch, buckets, fractions[i]);
	pfree(buckets);
}

int64
sketch_count(Sketch *sketch)
{
	count_pending(sketch);
	return sketch->head.n;
}

/* Sets the range of the finite values; least > greatest if there is none. */
static void
finite_range(const SketchHead *head, double *min, double *max)
{
	*min = head->zeros > 0 ? Min(head->min, 0) : head->min;
	*max = head->zeros > 0 ? Max(head->max, 0) : head->max;
}

void
sketch_range(Sketch *sketch, double *min, double *max, double *infinite)
{
	const SketchHead *head = &sketch->head;
	bool finite;

	count_pending(sketch);
	finite_range(head, min, max);
	finite = *min <= *max;
	*infinite = 0;
	if (head->infinite[0] > 0)
		*infinite = -get_float8_infinity();
	if (head->infinite[1] > 0)
		*infinite = *infinite == 0 ? get_float8_infinity() : get_float8_nan();
	if (head->nans > 0)
		*infinite = get_float8_nan();
	if (head->infinite[0] > 0)
		*min = -get_float8_infinity();
	else if (!finite)
		*min = head->infinite[1] > 0 ? get_float8_infinity() : get_float8_nan();
	if (head->nans > 0)
		*max = get_float8_nan();
	else if (head->infinite[1] > 0)
		*max = get_float8_infinity();
	else if (!finite)
		*max = -get_float8_infinity();
}

bool
sketch_bins(Sketch *sketch, int n, int64 *counts)
{
	const SketchHead *head = &sketch->head;
	double min, max;

	count_pending(sketch);
	memset(counts, 0, n * sizeof(int64));
	finite_range(head, &min, &max);
	if (min > max)
		return false;
	for (int i = -1; i < sketch->table_size; i++)
	{
		/* entry -1 stands for zeros */
		int64 count = i < 0 ? head->zeros : sketch->table[i].count;
		double x = i < 0 ? 0 : quantiles_value(sketch->table[i].number, head->level);
		double share;

		if (count == 0)
			continue;
		x = Max(Min(x, max), min);
		/* the difference of great bounds overflows, and the halves of the least ones are 0 */
		if (min == max)
			share = 0;
		else if (isfinite(max - min))
			share = (x - min) / (max - min);
		else
			share = (x / 2 - min / 2) / (max / 2 - min / 2);
		counts[Min((int) (share * n), n - 1)] += count;
	}
	return true;
}

/*
 * Final function of gpu_approx_percentile with one fraction. NULL if no row counts, or the
 * fraction is NULL.
 */
Datum
gpuagg_sketch_final(PG_FUNCTION_ARGS)
{
	Sketch *sketch = aggregate_state(fcinfo, 0);

	/* gpuagg_finish() may pass a state of the other aggregate */
	if (sketch && sketch->head.nfractions != 1)
		portable_invalid("number of fractions");
	if (sketch == NULL || isnan(sketch->fractions[0]))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(fraction_value(sketch, ordered_buckets(sketch), sketch->fractions[0]));
}

ArrayType *
sketch_percentile_array(Sketch *sketch, const double *fractions, int n)
{
	Bucket *buckets;
	Datum *elements;
	bool *nulls;
	int lower = 1;

	if (n == 0)
		return construct_empty_array(FLOAT8OID);
	buckets = ordered_buckets(sketch);
	elements = palloc(n * sizeof(Datum));
	nulls = palloc(n * sizeof(bool));
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		nulls[i] = isnan(fractions[i]);
		elements[i] =
			nulls[i] ? (Datum) 0 : Float8GetDatum(fraction_value(sketch, buckets, fractions[i]));
	}
	return construct_md_array(elements, nulls, 1, &n, &lower, FLOAT8OID, sizeof(float8),
							  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

/*
 * Final function of gpu_approx_percentile with an array of fractions. NULL if no row counts, or
 * the array is NULL.
 */
Datum
gpuagg_sketch_multi_final(PG_FUNCTION_ARGS)
{
	Sketch *sketch = aggregate_state(fcinfo, 0);

	if (sketch == NULL || sketch->head.nfractions < 0)
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(
		sketch_percentile_array(sketch, sketch->fractions, sketch->head.nfractions));
}
