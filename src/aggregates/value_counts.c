/*
 * value_counts.c
 *	  gpu_value_counts, gpu_top_k and gpu_entropy: how often each value of a group occurs.
 *
 * gpu_value_counts(x [, k]) returns the values with their numbers of rows, the most frequent ones
 * first, equally frequent ones in the order of the values. NULL is a value with rows like others,
 * as in GROUP BY, and comes last among equally frequent ones. gpu_entropy(x) is the entropy of the
 * distribution of the values that are not NULL, in bits. Both keep all values of a group, so they
 * are exact, and do not depend on the order of rows.
 *
 * gpu_top_k(x, k) keeps COUNTERS_PER_VALUE values for each of k, and at least LEAST_COUNTERS, by
 * the algorithm space saving (Metwally, Agrawal, El Abbadi 2005). A value that is not there takes
 * the place of one with the fewest rows, and its count begins with theirs, which is its error. Here
 * places are freed many at a time: the table has room for twice as many values, and when it is
 * full, the more frequent half stays. `floor` is the largest count among those that went: no value
 * that is not in the table has more rows. A new value's count begins with it. For every value in
 * the table, the number of its rows is at most its count, and at least count - error. With m
 * counters and n rows, floor <= n / m, since the counts above the floor sum up to at most n - m *
 * floor, and m + 1 of them are at least as large as the next floor. The same holds for combined
 * states (Agarwal et al., Mergeable Summaries, 2012): a value that is missing in one of them may
 * have as many rows there as its floor says. The numbers of rows that are NULL are exact.
 *
 * Long values also free places: a state's values take MOST_BYTES at most, unless there is only one.
 * Then floor may exceed n / m, but errors are right.
 *
 * An engine that counts values (agg_tally.h) passes each value once. Then the table keeps those
 * with the most rows, whose counts are exact: values with no more rows than the floor are skipped.
 *
 * value_counts_result.c makes results of states.
 *
 * The engines have no monoid for it: these are fallback aggregates.
 */
#include "postgres.h"

#include "common/int.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "aggregates/aggcall.h"
#include "aggregates/portable.h"
#include "aggregates/value_counts.h"
#include "common/interruptible.h"
#include "operators/select.h"

/* The largest k of gpu_top_k. */
#define MAX_K 1000
#define COUNTERS_PER_VALUE 10
#define LEAST_COUNTERS 256
#define MOST_BYTES ((Size) 4 * 1024 * 1024)

/* With fewer entries, all of them are in the CPU's caches anyway. */
#define LEAST_ENTRIES_TO_WAIT 64

static const char *const form_names[] = {"gpu_value_counts", "gpu_top_k", "gpu_entropy"};

PG_FUNCTION_INFO_V1(gpuagg_value_counts_transfn);
PG_FUNCTION_INFO_V1(gpuagg_top_k_transfn);
PG_FUNCTION_INFO_V1(gpuagg_entropy_transfn);
PG_FUNCTION_INFO_V1(gpuagg_value_counts_combine);
PG_FUNCTION_INFO_V1(gpuagg_value_counts_serialize);
PG_FUNCTION_INFO_V1(gpuagg_value_counts_deserialize);

/* Returns an empty state in cxt. */
static ValueCounts *
create_state(MemoryContext cxt, CountsForm form, Oid type, Oid collation, int k)
{
	ValueCounts *state = MemoryContextAllocZero(cxt, sizeof(ValueCounts));

	state->form = form;
	state->k = k;
	state->table = value_table_create(cxt, type, collation, form == FORM_TOP_K);
	return state;
}

/* Adds a number of rows to *count. Raises an error if it overflows, as forged states may. */
static void
add_rows(int64 *count, int64 rows)
{
	if (pg_add_s64_overflow(*count, rows, count))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
}

/* ---- space saving ---------------------------------------------------------------- */

/* Returns the number of values that gpu_top_k keeps when it frees places. */
static int64
counters_of(int k)
{
	return Max(k * COUNTERS_PER_VALUE, LEAST_COUNTERS);
}

/* The number of an entry, and its count. */
typedef struct Counter
{
	int64 count;
	int64 number;
} Counter;

/* Comparator: more rows first, then the older ones. */
static inline int
compare_counters(const Counter *a, const Counter *b)
{
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

#define ST_SORT sort_counters
#define ST_ELEMENT_TYPE Counter
#define ST_COMPARE(a, b) compare_counters(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Lists the numbers of the n entries with the most rows, and of the older ones among the last equal
 * ones, n at least 1. Returns the largest count of the other entries, of which there must be one.
 */
static int64
select_entries(const ValueTable *table, int64 n, int64 *numbers)
{
	uint64 *codes = palloc(table->n * sizeof(uint64));
	uint64 *spare = palloc(table->n * sizeof(uint64));
	int64 rank = table->n - n;
	int64 listed = 0, equal = n, largest = 0;
	uint64 least;

	for (int64 i = 0; i < table->n; i++)
		codes[i] = table->entries[i].count;
	select_ranks(codes, spare, table->n, &rank, 0, 1, &least);
	pfree(codes);
	pfree(spare);
	for (int64 i = 0; i < table->n; i++)
		equal -= table->entries[i].count > (int64) least;
	for (int64 i = 0; i < table->n; i++)
	{
		int64 count = table->entries[i].count;

		if (count > (int64) least || (count == (int64) least && equal-- > 0))
			numbers[listed++] = i;
		else
			largest = Max(largest, count);
	}
	return largest;
}

/*
 * Lists the numbers of n entries as select_entries() does, but fewer of them if their values take
 * too many bytes. Sets n to how many these are. Returns the largest count of the others, or 0.
 */
static int64
select_bytes(const ValueTable *table, int64 *n, int64 *numbers)
{
	Counter *sorted = palloc(table->n * sizeof(Counter));
	Size bytes = 0;
	int64 listed;
	int64 largest;

	for (int64 i = 0; i < table->n; i++)
		sorted[i] = (Counter){table->entries[i].count, i};
	sort_counters(sorted, table->n);
	for (listed = 0; listed < *n; listed++)
	{
		numbers[listed] = sorted[listed].number;
		bytes += datumGetSize(table->entries[numbers[listed]].value, false, table->type->typlen);
		if (listed > 0 && bytes > MOST_BYTES / 2)
			break;
	}
	largest = listed < table->n ? sorted[listed].count : 0;
	pfree(sorted);
	*n = listed;
	return largest;
}

/* Removes the values with the fewest rows if there are too many, or they take too many bytes. */
static void
free_places(ValueCounts *state)
{
	ValueTable *table = state->table;
	int64 n = counters_of(state->k);
	int64 *numbers;
	int64 largest;

	if (table->n < 2 * n && (table->bytes <= MOST_BYTES || table->n == 1))
		return;
	n = Min(n, table->n);
	numbers = palloc(n * sizeof(int64));
	if (table->bytes > MOST_BYTES / 2)
		largest = select_bytes(table, &n, numbers);
	else
		largest = select_entries(table, n, numbers);
	state->floor = Max(state->floor, largest);
	value_table_keep(table, numbers, n);
	pfree(numbers);
}

/* ---- transition functions ------------------------------------------------------------ */

/* Raises an error: rows of one group have different k. */
static void
report_changed_k(CountsForm form)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("k of %s must be the same in all rows of a group", form_names[form])));
}

/*
 * Returns argument 2 as the number of values to return, 0 if there is no such argument. Raises an
 * error if it is NULL or out of range.
 */
static int
k_argument(FunctionCallInfo fcinfo, CountsForm form)
{
	int most = form == FORM_TOP_K ? MAX_K : PG_INT32_MAX;

	if (PG_NARGS() < 3)
		return 0;
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("k of %s must not be null", form_names[form]),
				 errhint("Pass the number of values to return, 1 or more.")));
	if (PG_GETARG_INT32(2) < 1 || PG_GETARG_INT32(2) > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("k of %s must be between 1 and %d", form_names[form], most),
				 errdetail("It is %d.", PG_GETARG_INT32(2)),
				 form == FORM_TOP_K ? errhint("\"%s\" has no such limit.", "gpu_value_counts") :
									  errhint("Without k, all values are returned.")));
	return PG_GETARG_INT32(2);
}

/* Counts a row with a value that is not NULL. */
static inline void
add_value(ValueCounts *state, Datum value)
{
	bool found;
	int64 number = value_table_enter(state->table, value, &found);

	state->rows++;
	state->table->entries[number].count++;
	if (state->form == FORM_TOP_K && !found)
	{
		state->table->entries[number].count += state->floor;
		state->table->errors[number] = state->floor;
		free_places(state);
	}
}

void
value_counts_flush(ValueCounts *state)
{
	if (state->nwaiting == 0)
		return;
	value_table_count(state->table, state->waiting, state->nwaiting);
	state->rows += state->nwaiting;
	state->nwaiting = 0;
}

/* Counts a row as add_value() does, now or later. The table must be simple. */
static inline void
add_value_later(ValueCounts *state, Datum value)
{
	/* in gpu_top_k, each new value may free places */
	if (state->form == FORM_TOP_K || state->table->n < LEAST_ENTRIES_TO_WAIT)
	{
		add_value(state, value);
		return;
	}
	if (state->waiting == NULL)
		state->waiting = MemoryContextAlloc(state->table->cxt, VALUE_TABLE_COUNTED * sizeof(Datum));
	state->waiting[state->nwaiting++] = value;
	if (state->nwaiting == VALUE_TABLE_COUNTED)
		value_counts_flush(state);
}

/* Transition function of the aggregates: (state, x) or (state, x, k). */
static Datum
count_value(FunctionCallInfo fcinfo, CountsForm form)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	int k = k_argument(fcinfo, form);
	ValueCounts *state;

	if (PG_ARGISNULL(1) && form == FORM_ENTROPY)
		RETURN_STATE_UNCHANGED();
	if (PG_ARGISNULL(0))
		state =
			create_state(cxt, form, get_fn_expr_argtype(fcinfo->flinfo, 1), PG_GET_COLLATION(), k);
	else
		state = (ValueCounts *) PG_GETARG_POINTER(0);
	if (state->k != k)
		report_changed_k(form);
	if (PG_ARGISNULL(1))
	{
		state->nulls++;
		PG_RETURN_POINTER(state);
	}
	value_counts_flush(state);
	add_value(state, PG_GETARG_DATUM(1));
	PG_RETURN_POINTER(state);
}

/* Transition function of gpu_value_counts. */
Datum
gpuagg_value_counts_transfn(PG_FUNCTION_ARGS)
{
	return count_value(fcinfo, FORM_VALUE_COUNTS);
}

/* Transition function of gpu_top_k. */
Datum
gpuagg_top_k_transfn(PG_FUNCTION_ARGS)
{
	return count_value(fcinfo, FORM_TOP_K);
}

/* Transition function of gpu_entropy. Skips NULLs. */
Datum
gpuagg_entropy_transfn(PG_FUNCTION_ARGS)
{
	return count_value(fcinfo, FORM_ENTROPY);
}

/* Step of the aggregates without k. */
static bool
step(Datum value, const NullableDatum *args)
{
	ValueCounts *state = (ValueCounts *) DatumGetPointer(value);

	if (args[0].isnull || state->k != 0 || !value_table_is_simple(state->table))
		return false;
	add_value_later(state, args[0].value);
	return true;
}

/* Step of the aggregates with k. */
static bool
step_with_k(Datum value, const NullableDatum *args)
{
	ValueCounts *state = (ValueCounts *) DatumGetPointer(value);

	if (args[0].isnull || args[1].isnull || state->k != DatumGetInt32(args[1].value) ||
		!value_table_is_simple(state->table))
		return false;
	add_value_later(state, args[0].value);
	return true;
}

AggStep
value_counts_step(const FmgrInfo *transfn)
{
	if (transfn->fn_addr != gpuagg_value_counts_transfn &&
		transfn->fn_addr != gpuagg_top_k_transfn && transfn->fn_addr != gpuagg_entropy_transfn)
		return NULL;
	return transfn->fn_nargs == 2 ? step : step_with_k;
}

/* Steps of the aggregates without k. */
static bool
steps(Datum value, const Datum *values, int n)
{
	ValueCounts *state = (ValueCounts *) DatumGetPointer(value);

	if (state->k != 0 || !value_table_is_simple(state->table))
		return false;
	for (int i = 0; i < n; i++)
		add_value_later(state, values[i]);
	return true;
}

AggSteps
value_counts_steps(const FmgrInfo *transfn)
{
	return value_counts_step(transfn) == step ? steps : NULL;
}

/* ---- counted values -------------------------------------------------------------------- */

/* Adds a value that comes once, with all of its rows. */
static void
add_counted(void *arg, Datum value, int64 count)
{
	ValueCounts *state = arg;
	bool found;
	int64 number;

	value_counts_flush(state);
	add_rows(&state->rows, count);
	if (state->form == FORM_TOP_K && count <= state->floor)
		return;
	number = value_table_enter(state->table, value, &found);
	add_rows(&state->table->entries[number].count, count);
	if (state->form == FORM_TOP_K)
		free_places(state);
}

static void
add_nulls(void *state, int64 count)
{
	add_rows(&((ValueCounts *) state)->nulls, count);
}

static bool
takes_any_k(Datum k)
{
	return DatumGetInt32(k) >= 1;
}

static bool
takes_top_k(Datum k)
{
	return DatumGetInt32(k) >= 1 && DatumGetInt32(k) <= MAX_K;
}

static void *
create_value_counts(MemoryContext cxt, Oid type, Oid collation, Datum k)
{
	return create_state(cxt, FORM_VALUE_COUNTS, type, collation, DatumGetInt32(k));
}

static void *
create_top_k(MemoryContext cxt, Oid type, Oid collation, Datum k)
{
	return create_state(cxt, FORM_TOP_K, type, collation, DatumGetInt32(k));
}

static void *
create_entropy(MemoryContext cxt, Oid type, Oid collation, Datum k)
{
	return create_state(cxt, FORM_ENTROPY, type, collation, 0);
}

static size_t
all_values_bytes(Datum k, int64 values)
{
	return sizeof(ValueCounts) + value_table_most_bytes(values, false);
}

static size_t
top_k_bytes(Datum k, int64 values)
{
	return sizeof(ValueCounts) +
		value_table_most_bytes(Min(values, 2 * counters_of(DatumGetInt32(k))), true);
}

const AggTally *
value_counts_tally(const FmgrInfo *transfn)
{
	static const AggTally all = {NULL,      create_value_counts, add_counted,
								 add_nulls, all_values_bytes,    true};
	static const AggTally largest = {takes_any_k, create_value_counts, add_counted,
									 add_nulls,   all_values_bytes,    true};
	static const AggTally top = {takes_top_k, create_top_k, add_counted,
								 add_nulls,   top_k_bytes,  true};
	static const AggTally entropy = {NULL, create_entropy,   add_counted,
									 NULL, all_values_bytes, true};

	if (transfn->fn_addr == gpuagg_value_counts_transfn)
		return transfn->fn_nargs == 2 ? &all : &largest;
	return transfn->fn_addr == gpuagg_top_k_transfn ? &top :
		transfn->fn_addr == gpuagg_entropy_transfn  ? &entropy :
													  NULL;
}

/* ---- states ---------------------------------------------------------------------------- */

/* Adds to the count of an entry, and to its error if it has one. */
static void
add_entry(ValueTable *table, int64 number, int64 count, int64 error)
{
	add_rows(&table->entries[number].count, count);
	if (table->errors)
		add_rows(&table->errors[number], error);
}

/*
 * Adds the values of *from to *to. In gpu_top_k's, a value that is missing may have floor rows.
 * Several values of *from may be equal in *to, whose collation may be another one.
 */
static void
merge_values(ValueCounts *to, ValueCounts *from)
{
	ValueTable *table = to->table;
	int64 before;
	bool *missing = NULL; /* [entry] whether it is not in *from; NULL: that does not matter */

	value_counts_flush(to);
	value_counts_flush(from);
	before = table->n;
	add_rows(&to->rows, from->rows);
	add_rows(&to->nulls, from->nulls);
	if (from->floor > 0)
	{
		missing = palloc_extended(before + 1, MCXT_ALLOC_HUGE);
		memset(missing, true, before);
	}
	INTERRUPTIBLE_FOR (i, 0, from->table->n)
	{
		bool found;
		int64 number = value_table_enter(table, from->table->entries[i].value, &found);

		if (missing && number < before)
			missing[number] = false;
		add_entry(table, number, found ? 0 : to->floor, found ? 0 : to->floor);
		add_entry(table, number, from->table->entries[i].count,
				  value_table_error(from->table, &from->table->entries[i]));
	}
	for (int64 i = 0; missing && i < before; i++)
		if (missing[i])
			add_entry(table, i, from->floor, from->floor);
	if (missing)
		pfree(missing);
	add_rows(&to->floor, from->floor);
	if (to->form == FORM_TOP_K)
		free_places(to);
}

/* Combine function of all aggregates of this file. */
Datum
gpuagg_value_counts_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	ValueCounts *from;
	ValueCounts *into = PG_ARGISNULL(0) ? NULL : (ValueCounts *) PG_GETARG_POINTER(0);
	Oid collation;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	from = (ValueCounts *) PG_GETARG_POINTER(1);
	/*
	 * the query's collation, if it has one; like postgres_fdw, we assume that the other server's
	 * column has it, too
	 */
	collation = OidIsValid(PG_GET_COLLATION()) ? PG_GET_COLLATION() : from->table->collation;
	if (into == NULL)
		into = create_state(cxt, from->form, from->table->type->type_id, collation, from->k);
	else if (into->form != from->form)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial states of different aggregates cannot be combined")));
	else if (into->table->type != from->table->type || into->table->collation != collation)
		portable_invalid("type");
	else if (into->k != from->k)
		report_changed_k(into->form);
	merge_values(into, from);
	PG_RETURN_POINTER(into);
}

MemoryContext
value_counts_conversions(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "gpuagg values of a state",
								 ALLOCSET_DEFAULT_SIZES);
}

/*
 * Serialization function of all aggregates of this file. States may come from another process or
 * another server (partial_state.c), so gpuagg_value_counts_deserialize() checks everything.
 */
Datum
gpuagg_value_counts_serialize(PG_FUNCTION_ARGS)
{
	ValueCounts *state = (ValueCounts *) PG_GETARG_POINTER(0);
	const ValueTable *table = state->table;
	MemoryContext conversions = value_counts_conversions();
	MemoryContext old;
	StringInfoData buf;

	aggregate_context(fcinfo);
	value_counts_flush(state);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, state->form);
	portable_put_type(&buf, table->type->type_id);
	portable_put_collation(&buf, table->collation);
	pq_sendint32(&buf, state->k);
	pq_sendint64(&buf, state->nulls);
	pq_sendint64(&buf, state->floor);
	pq_sendint32(&buf, table->n);
	old = MemoryContextSwitchTo(conversions);
	for (int64 i = 0; i < table->n; i++)
	{
		MemoryContextReset(conversions);
		portable_put_value(&buf, table->type->type_id, table->entries[i].value, false);
		pq_sendint64(&buf, table->entries[i].count);
		if (table->errors)
			pq_sendint64(&buf, table->errors[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(conversions);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* Reads all of a serialized state before the values. */
static ValueCounts *
get_head(StringInfo buf)
{
	int form = pq_getmsgbyte(buf);
	Oid type;
	Oid collation;
	int k;
	ValueCounts *state;

	if (form < 0 || form >= lengthof(form_names))
		portable_invalid("kind");
	type = portable_get_type(buf);
	collation = portable_get_collation(buf);
	k = (int) pq_getmsgint(buf, 4);
	if (form == FORM_TOP_K ? k < 1 || k > MAX_K : form == FORM_ENTROPY ? k != 0 : k < 0)
		portable_invalid("number of values");
	state = create_state(CurrentMemoryContext, form, type, collation, k);
	state->nulls = portable_get_rows(buf, 0);
	state->floor = portable_get_rows(buf, 0);
	if ((form == FORM_ENTROPY && state->nulls > 0) || (form != FORM_TOP_K && state->floor > 0))
		portable_invalid("count");
	return state;
}

/*
 * Reads a value with its count, and its error if it has one, and adds them to the state. nulls: as
 * for portable_get_value(). Equal values are added up, because other servers may distinguish them.
 */
static void
get_entry(StringInfo buf, ValueCounts *state, PortableNulls nulls)
{
	ValueTable *table = state->table;
	bool isnull, found;
	Datum value = portable_get_value(buf, table->type->type_id, nulls, &isnull);
	int64 count = portable_get_rows(buf, 1);
	int64 error = table->errors ? portable_get_rows(buf, 0) : 0;
	int64 number;

	if (isnull)
		portable_invalid("value");
	/* errors of values that this server does not distinguish add up, and may exceed the floor */
	if (error >= count || count < state->floor)
		portable_invalid("count");
	number = value_table_enter(table, value, &found);
	add_rows(&table->entries[number].count, count);
	if (table->errors)
		add_rows(&table->errors[number], error);
	add_rows(&state->rows, count);
}

/* Deserialization function of all aggregates of this file; see portable_nulls_argument(). */
Datum
gpuagg_value_counts_deserialize(PG_FUNCTION_ARGS)
{
	PortableNulls nulls = portable_nulls_argument(fcinfo);
	StringInfoData buf;
	ValueCounts *state;
	MemoryContext conversions, old;
	int n;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	state = get_head(&buf);
	/* a value has at least one byte and its count */
	n = portable_get_count(&buf, 1 + 8,
						   state->form == FORM_TOP_K ? 2 * counters_of(state->k) : PG_INT32_MAX,
						   "number of values");
	if (n == 0 && state->nulls == 0)
		portable_invalid("number of values");
	value_table_reserve(state->table, n);
	conversions = value_counts_conversions();
	old = MemoryContextSwitchTo(conversions);
	for (int i = 0; i < n; i++)
	{
		MemoryContextReset(conversions);
		get_entry(&buf, state, nulls);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(conversions);
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}
