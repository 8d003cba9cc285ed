/*
 * tallies.c
 *	  States of aggregates of counted values (aggregates/agg_tally.h) for groups that were fetched:
 *	  picks the distinct values of each group, and the number of rows of each, at the server.
 *
 * Nothing that the server says is believed: values must ascend, and the numbers of rows must add up
 * to that of the group.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregates/agg_tally.h"
#include "columns/decimal.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/value_store.h"
#include "operators/select.h"

/* Reads the values of a counted set in the order of the groups, PICK_PLACES at a time. */
typedef struct ValueReader
{
	CudaEngine *cuda;
	int set;
	const int64 *firsts;   /* [group] position of its first value */
	const int64 *distinct; /* [group] number of its values */
	int ngroups;
	int group;  /* of the next value that will be picked */
	int64 next; /* its number in the group */
	uint32 n;   /* values that are picked */
	uint32 at;  /* of these, were read */
	int32 *places;
	Picked picked;
} ValueReader;

/* Returns what a slot has for each group. */
static const int64 *
slot_of(const WireGroups *groups, const char *buffer, int slot)
{
	return (const int64 *) (buffer + groups->slots[slot]);
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
			const int64 *distinct;

			if (fallback->tally == NULL)
				continue;
			distinct = slot_of(groups, buffer, cuda->query->tallies[f].distinct);
			bytes += fallback->tally->bytes(fallback->constant,
											Min(Max(distinct[n], 0), PG_INT32_MAX));
		}
	return bytes > room && n > 1 ? n - 1 : n;
}

/* Records that the server's answer is wrong, and returns false. */
static bool
fail_invalid(CudaEngine *cuda)
{
	strlcpy(cuda->client->failure, "the GPU server sent invalid counts of values",
			sizeof(cuda->client->failure));
	return false;
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

		if (left <= 0)
		{
			reader->group++;
			reader->next = 0;
			continue;
		}
		if (first < 0 || first >= PG_INT32_MAX)
			return fail_invalid(reader->cuda);
		reader->places[reader->n++] = (int32) first;
		reader->next++;
	}
	return cuda_pick_pairs(reader->cuda, reader->set, reader->places, reader->n, &reader->picked);
}

/* Reads the next value and its number of rows. Returns false if the session is lost. */
static inline bool
read_value(ValueReader *reader, int64 *code, int64 *count)
{
	if (reader->at == reader->n && !pick_more(reader))
		return false;
	*code = reader->picked.values[reader->at];
	*count = reader->picked.counts[reader->at++];
	return true;
}

/* Returns the value with this code in a column. */
static Datum
value_of(const ColumnSpec *col, int64 code)
{
	return col->type == COLUMN_DEC ? decimal_to_numeric(code, col->scale) :
									 value_of_code(col->type, select_code_i64(code));
}

/* Adds the n distinct values of a group, which have so many rows, to its state. */
static bool
add_values(CudaEngine *cuda, const FallbackAgg *fallback, void *state, int64 n, int64 rows,
		   ValueReader *reader, MemoryContext conversions)
{
	const ColumnSpec *col = &cuda->spec->cols[fallback->argcol[0]];
	bool decimals = col->type == COLUMN_DEC;
	MemoryContext old = MemoryContextSwitchTo(conversions);
	bool ok = true;
	int64 code, count, before = 0;

	for (int64 i = 0; i < n && ok; i++)
	{
		ok = read_value(reader, &code, &count);
		if (ok && (count < 1 || count > rows || (i > 0 && code <= before)))
			ok = fail_invalid(cuda);
		if (!ok)
			break;
		rows -= count;
		before = code;
		fallback->tally->add(state, value_of(col, code), count);
		if (decimals)
			MemoryContextReset(conversions);
	}
	MemoryContextSwitchTo(old);
	return ok && (rows == 0 || fail_invalid(cuda));
}

/* Makes the states of one aggregate. */
static bool
make_states(CudaEngine *cuda, int f, const WireGroups *groups, const char *buffer, GroupBatch *out,
			MemoryContext conversions)
{
	FallbackAgg *fallback = &cuda->spec->fallbacks[f];
	const CudaTally *slots = &cuda->query->tallies[f];
	const int64 *numbers = slot_of(groups, buffer, slots->number);
	const int64 *rows = slot_of(groups, buffer, slots->rows >= 0 ? slots->rows : slots->number);
	Oid type = get_fn_expr_argtype(&fallback->transfn, 1);
	ValueReader reader = {.cuda = cuda,
						  .set = slots->set,
						  .firsts = slot_of(groups, buffer, slots->first),
						  .distinct = slot_of(groups, buffer, slots->distinct),
						  .ngroups = out->ngroups,
						  .places = palloc(sizeof(int32) * PICK_PLACES),
						  .picked.values = palloc(sizeof(int64) * PICK_PLACES),
						  .picked.counts = palloc(sizeof(int32) * PICK_PLACES)};
	bool ok = true;

	for (int g = 0; g < out->ngroups && ok; g++)
	{
		void *state;

		CHECK_FOR_INTERRUPTS();
		if (numbers[g] < 0 || rows[g] < numbers[g] || reader.distinct[g] < 0 ||
			reader.distinct[g] > numbers[g])
			ok = fail_invalid(cuda);
		/* without rows there is no state */
		if (!ok || rows[g] == 0)
			continue;
		state = fallback->tally->create(CurrentMemoryContext, type, fallback->collation,
										fallback->constant);
		out->fallbacks[f][g] = PointerGetDatum(state);
		out->fallback_nulls[f][g] = false;
		if (rows[g] > numbers[g])
			fallback->tally->add_nulls(state, rows[g] - numbers[g]);
		ok = add_values(cuda, fallback, state, reader.distinct[g], numbers[g], &reader, conversions);
	}
	pfree(reader.places);
	pfree(reader.picked.values);
	pfree(reader.picked.counts);
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
