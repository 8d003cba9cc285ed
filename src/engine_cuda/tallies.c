/*
 * tallies.c
 *	  States of aggregates of counted values (aggregates/agg_tally.h) for groups that were fetched:
 *	  picks the distinct values of each group, and the number of rows of each, at the server.
 *
 * Values of types without codes are numbers in a dictionary, in which NULL has one, too.
 *
 * Nothing that the server says is believed: values must ascend, and so must the places of their
 * first rows, and codes must be those of values.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregates/agg_tally.h"
#include "columns/decimal.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/value_store.h"
#include "operators/select.h"

/*
 * Groups with more values are added bin by bin where this changes nothing. A search takes some ten
 * picks, and a value that is read some ten ns.
 */
#define BINNED_VALUES 32768

/* Bytes of a numeric of 64 bits in memory, at most. */
#define NUMERIC_BYTES 48

/* Reads the values of a counted set in the order of the groups, PICK_PLACES at a time. */
typedef struct ValueReader
{
	CudaEngine *cuda;
	int set;
	const int64 *firsts;   /* [group] position of its first value */
	const int64 *distinct; /* [group] number of its values */
	int64 most;            /* groups with more values are skipped */
	int ngroups;
	int group;  /* the next value that will be picked is one of this group */
	int64 next; /* the number of that value in the group */
	uint32 n;   /* number of values that are picked */
	uint32 at;  /* number of these that were read */
	int32 *places;
	Picked picked;
} ValueReader;

/* The state of an aggregate in a group, which is made when the first row counts. */
typedef struct StateMaker
{
	const FallbackAgg *fallback;
	const CudaColumn *col;
	const ColumnSpec *spec; /* the same column in the engine's spec */
	Oid type;               /* type of the aggregate's argument */
	MemoryContext cxt;      /* for states */
	MemoryContext conversions;
	void *state; /* NULL: there is none */
} StateMaker;

/* Returns the bytes that a value by reference takes on average, 0 for others. */
static size_t
value_bytes(const CudaEngine *cuda, int f)
{
	const CudaQuery *query = cuda->query;
	const CudaColumn *col = &query->cols[query->wire->sets[query->tallies[f].set].col];

	if (cuda->spec->cols[col->col].type == COLUMN_DEC)
		return NUMERIC_BYTES;
	return col->travel == TRAVEL_NUMBERS ?
		dictionary_memory(col->dict) / Max(dictionary_size(col->dict), 1) :
		0;
}

uint32
cuda_tallies_fitting(const CudaEngine *cuda, const WireGroups *groups, const char *buffer,
					 size_t room)
{
	const AggSpec *spec = cuda->spec;
	size_t bytes = 0;
	uint32 n = 0;

	if (!spec_has_tallies(spec))
		return groups->n;
	for (; n < groups->n && bytes <= room; n++)
		for (int f = 0; f < spec->nfallbacks; f++)
		{
			const FallbackAgg *fallback = &spec->fallbacks[f];
			int64 distinct;

			if (fallback->tally == NULL)
				continue;
			distinct = cuda_slot_numbers(groups, buffer, cuda->query->tallies[f].distinct)[n];
			distinct = Min(Max(distinct, 0), PG_INT32_MAX);
			bytes += fallback->tally->bytes(fallback->constant, distinct) +
				distinct * value_bytes(cuda, f);
		}
	return bytes > room && n > 1 ? n - 1 : n;
}

/* Picks the next values. Returns false if the session is lost. */
static bool
pick_more(ValueReader *reader)
{
	reader->n = reader->at = 0;
	while (reader->group < reader->ngroups && reader->n < PICK_PLACES)
	{
		int64 left = reader->distinct[reader->group] - reader->next;
		int64 first = reader->firsts[reader->group] + reader->next;

		if (left <= 0 || reader->distinct[reader->group] > reader->most)
		{
			reader->group++;
			reader->next = 0;
			continue;
		}
		if (first < 0 || first >= PG_INT32_MAX)
			return cuda_invalid_counts(reader->cuda);
		reader->places[reader->n++] = (int32) first;
		reader->next++;
	}
	return cuda_pick_pairs(reader->cuda, reader->set, reader->places, reader->n, &reader->picked);
}

/* Reads the next value, and the place of its first row. Returns false if the session is lost. */
static inline bool
read_value(ValueReader *reader, int64 *code, int64 *row)
{
	if (reader->at == reader->n && !pick_more(reader))
		return false;
	*code = reader->picked.values[reader->at];
	*row = reader->picked.ranks[reader->at++];
	return true;
}

/* Returns the group's state. */
static void *
state_of(StateMaker *maker)
{
	const FallbackAgg *fallback = maker->fallback;

	if (maker->state == NULL)
		maker->state = fallback->tally->create(maker->cxt, maker->type, fallback->collation,
											   fallback->constant);
	return maker->state;
}

/* Adds so many rows with NULL. */
static void
add_nulls(StateMaker *maker, int64 count)
{
	if (maker->fallback->tally->add_nulls)
		maker->fallback->tally->add_nulls(state_of(maker), count);
}

/* Adds so many rows with a code. Returns false if there is no such code. */
static bool
add_code(StateMaker *maker, int64 code, int64 count)
{
	const ColumnSpec *spec = maker->spec;
	bool isnull = false;
	Datum value;

	if (maker->col->travel == TRAVEL_NUMBERS)
	{
		if (code < 0 || code >= dictionary_size(maker->col->dict))
			return false;
		value = dictionary_value(maker->col->dict, (int32) code, &isnull);
	}
	else if (spec->type == COLUMN_DEC)
		value = decimal_to_numeric(code, spec->scale);
	else
		value = value_of_code(spec->type, select_code_i64(code));
	if (isnull)
		add_nulls(maker, count);
	else
		maker->fallback->tally->add(state_of(maker), value, count);
	if (!spec->typbyval)
		MemoryContextReset(maker->conversions);
	return true;
}

/* Adds the n distinct values of a group, which have so many rows. */
static bool
add_values(StateMaker *maker, int64 n, int64 rows, ValueReader *reader)
{
	MemoryContext old = MemoryContextSwitchTo(maker->conversions);
	int64 code = 0, row = 0;
	bool ok = n == 0 || read_value(reader, &code, &row);
	int64 end = row + rows;

	for (int64 i = 0; i < n && ok; i++)
	{
		int64 before = code, from = row;

		row = end;
		if (i + 1 < n)
			ok = read_value(reader, &code, &row);
		if (!ok)
			break;
		/* rows are left for all values, and each has some */
		ok = row > from && row <= end && (i + 1 == n || code > before) &&
			add_code(maker, before, row - from);
		if (!ok)
			cuda_invalid_counts(reader->cuda);
	}
	MemoryContextSwitchTo(old);
	return ok && (n > 0 || rows == 0 || cuda_invalid_counts(reader->cuda));
}

/* Returns the number of values from which on those of a bin are added together. */
static int64
most_single_values(const FallbackAgg *fallback, const ColumnSpec *spec)
{
	const AggTally *tally = fallback->tally;

	return spec->type == COLUMN_F64 && tally->narrow &&
			(!tally->only_results || fallback->only_result) ?
		BINNED_VALUES :
		PG_INT32_MAX;
}

/*
 * Adds the values of a group with many values, bin by bin. Where these bins are too many, all
 * values are read.
 */
static bool
add_binned(StateMaker *maker, int g, int64 rows, const ValueReader *groups)
{
	int64 first = groups->firsts[g], n = groups->distinct[g];
	bool too_many;
	ValueReader reader = *groups;
	bool ok;

	if (!cuda_tally_bins(groups->cuda, groups->set, first, n, rows, maker->fallback->tally,
						 state_of(maker), &too_many))
		return false;
	if (!too_many)
		return true;
	reader.firsts += g;
	reader.distinct += g;
	reader.most = PG_INT32_MAX;
	reader.ngroups = 1;
	reader.group = reader.next = reader.n = reader.at = 0;
	reader.places = palloc(sizeof(int32) * PICK_PLACES);
	reader.picked.values = palloc(sizeof(int64) * PICK_PLACES);
	reader.picked.ranks = palloc(sizeof(int32) * PICK_PLACES);
	ok = add_values(maker, n, rows, &reader);
	pfree(reader.places);
	pfree(reader.picked.values);
	pfree(reader.picked.ranks);
	return ok;
}

/* Makes the states of one aggregate. */
static bool
make_states(CudaEngine *cuda, int f, const WireGroups *groups, const char *buffer, GroupBatch *out,
			MemoryContext conversions)
{
	FallbackAgg *fallback = &cuda->spec->fallbacks[f];
	const CudaTally *slots = &cuda->query->tallies[f];
	const int64 *numbers = cuda_slot_numbers(groups, buffer, slots->number);
	const int64 *rows =
		cuda_slot_numbers(groups, buffer, slots->rows >= 0 ? slots->rows : slots->number);
	StateMaker maker = {.fallback = fallback,
						.col = &cuda->query->cols[cuda->query->wire->sets[slots->set].col],
						.spec = &cuda->spec->cols[fallback->argcol[0]],
						.type = get_fn_expr_argtype(&fallback->transfn, 1),
						.cxt = CurrentMemoryContext,
						.conversions = conversions};
	ValueReader reader = {.cuda = cuda,
						  .set = slots->set,
						  .firsts = cuda_slot_numbers(groups, buffer, slots->first),
						  .distinct = cuda_slot_numbers(groups, buffer, slots->distinct),
						  .most = most_single_values(fallback, maker.spec),
						  .ngroups = out->ngroups,
						  .places = palloc(sizeof(int32) * PICK_PLACES),
						  .picked.values = palloc(sizeof(int64) * PICK_PLACES),
						  .picked.ranks = palloc(sizeof(int32) * PICK_PLACES)};
	bool ok = true;

	for (int g = 0; g < out->ngroups && ok; g++)
	{
		CHECK_FOR_INTERRUPTS();
		/* so a wrong answer takes no more memory than one of the query's rows might */
		if (numbers[g] < 0 || rows[g] < numbers[g] || (uint64) rows[g] > cuda->rows_given ||
			reader.distinct[g] < 0 || reader.distinct[g] > Min(numbers[g], PG_INT32_MAX))
		{
			ok = cuda_invalid_counts(cuda);
			break;
		}
		maker.state = NULL;
		if (rows[g] > numbers[g])
			add_nulls(&maker, rows[g] - numbers[g]);
		ok = reader.distinct[g] > reader.most ?
			add_binned(&maker, g, numbers[g], &reader) :
			add_values(&maker, reader.distinct[g], numbers[g], &reader);
		out->fallbacks[f][g] = PointerGetDatum(maker.state);
		out->fallback_nulls[f][g] = maker.state == NULL;
	}
	pfree(reader.places);
	pfree(reader.picked.values);
	pfree(reader.picked.ranks);
	return ok;
}

bool
cuda_make_tallies(CudaEngine *cuda, const WireGroups *groups, const char *buffer, GroupBatch *out)
{
	instr_time since = cuda_clock();
	MemoryContext conversions;
	bool ok = true;

	if (!spec_has_tallies(cuda->spec))
		return true;
	conversions =
		AllocSetContextCreate(CurrentMemoryContext, "GPU counted values", ALLOCSET_DEFAULT_SIZES);
	for (int f = 0; f < cuda->spec->nfallbacks && ok; f++)
		if (cuda->spec->fallbacks[f].tally)
			ok = make_states(cuda, f, groups, buffer, out, conversions);
	MemoryContextDelete(conversions);
	cuda_add_time(&cuda->times.fetch_ms, since);
	return ok;
}
