/*
 * top_n.c
 *	  States of gpu_max_n and its like for groups that were fetched: picks the first or last n
 *	  keys of each group at the server, which has sorted them, and the values beside them.
 */
#include "postgres.h"

#include "aggregates/top_n.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/value_store.h"
#include "operators/select.h"

/* Entries that are picked together. */
typedef struct TopPicks
{
	int set;
	ColumnType key;
	ColumnType value;
	bool descending; /* as in WireSet */
	uint32 n;
	int32 *places;
	Picked picked;
	Datum **keys;           /* where the entries are */
	NullableDatum **values; /* NULL: the aggregate has no values beside its keys */
} TopPicks;

/* Returns the number of entries of a group that has so many keys. */
static int
entries_of(const FallbackAgg *fallback, int64 keys)
{
	return (int) Min(Max(keys, 0), fallback->top_n);
}

uint32
cuda_top_n_fitting(const CudaEngine *cuda, const WireGroups *groups, const char *buffer,
				   size_t room)
{
	const AggSpec *spec = cuda->spec;
	size_t bytes = 0;
	uint32 n = 0;

	if (!spec_has_top_n(spec))
		return groups->n;
	for (; n < groups->n && bytes <= room; n++)
		for (int f = 0; f < spec->nfallbacks; f++)
			if (spec->fallbacks[f].top_n > 0)
				bytes += sizeof(TopState) +
					(sizeof(Datum) + sizeof(NullableDatum)) *
						entries_of(
							&spec->fallbacks[f],
							cuda_slot_numbers(groups, buffer, cuda->query->top_n[f].number)[n]);
	return bytes > room && n > 1 ? n - 1 : n;
}

/* Picks the collected entries, and writes them. */
static bool
flush_picks(CudaEngine *cuda, TopPicks *picks)
{
	const Picked *picked = &picks->picked;

	if (picks->n > 0 && !cuda_pick_pairs(cuda, picks->set, picks->places, picks->n, picked))
		return false;
	for (uint32 i = 0; i < picks->n; i++)
		*picks->keys[i] = value_of_code(picks->key, select_code_i64(picked->values[i]));
	for (uint32 i = 0; picked->beside && i < picks->n; i++)
	{
		NullableDatum *value = picks->values[i];
		int64 code = picked->beside[i];

		value->isnull = picked->order[i] == wire_beside_order(true, picks->descending);
		value->value = value->isnull ?
			(Datum) 0 :
			value_of_code(picks->value, select_code_i64(picks->descending ? ~code : code));
	}
	picks->n = 0;
	return true;
}

/* Adds the entries of a state, whose first key has this position. */
static bool
pick_state(CudaEngine *cuda, TopState *state, int64 number, int64 first, TopPicks *picks)
{
	for (int i = 0; i < state->count; i++)
	{
		int64 rank = state->form & TOP_SMALLEST ? i : number - 1 - i;

		picks->places[picks->n] = (int32) (first + rank);
		picks->keys[picks->n] = &state->keys[i];
		if (state->form & TOP_OF_KEYS)
			picks->values[picks->n] = &top_n_values(state)[i];
		if (++picks->n == PICK_PLACES && !flush_picks(cuda, picks))
			return false;
	}
	return true;
}

/* Returns an empty list of entries of an aggregate. */
static TopPicks
begin_picks(const CudaEngine *cuda, int f)
{
	const FallbackAgg *fallback = &cuda->spec->fallbacks[f];
	int set = cuda->query->top_n[f].set;
	TopPicks picks = {.set = set,
					  .key = cuda->spec->cols[fallback->argcol[fallback->nargs - 1]].type,
					  .value = cuda->spec->cols[fallback->argcol[0]].type,
					  .descending = cuda->query->wire->sets[set].descending != 0,
					  .places = palloc(sizeof(int32) * PICK_PLACES),
					  .picked.values = palloc(sizeof(int64) * PICK_PLACES),
					  .keys = palloc(sizeof(Datum *) * PICK_PLACES)};

	if (fallback->nargs > 1)
	{
		picks.picked.beside = palloc(sizeof(int64) * PICK_PLACES);
		picks.picked.order = palloc(sizeof(int32) * PICK_PLACES);
		picks.values = palloc(sizeof(NullableDatum *) * PICK_PLACES);
	}
	return picks;
}

static void
end_picks(TopPicks *picks)
{
	pfree(picks->places);
	pfree(picks->picked.values);
	pfree(picks->keys);
	if (picks->values)
	{
		pfree(picks->picked.beside);
		pfree(picks->picked.order);
		pfree(picks->values);
	}
}

/* Makes the states of one aggregate. */
static bool
pick_states(CudaEngine *cuda, int f, const WireGroups *groups, const char *buffer, GroupBatch *out)
{
	const FallbackAgg *fallback = &cuda->spec->fallbacks[f];
	const CudaTopN *top = &cuda->query->top_n[f];
	const int64 *numbers = cuda_slot_numbers(groups, buffer, top->number);
	const int64 *firsts = cuda_slot_numbers(groups, buffer, top->first);
	TopCall call = top_n_call(&fallback->transfn, top_n_form_of(&fallback->transfn),
							  fallback->collation, fallback->top_n);
	TopPicks picks = begin_picks(cuda, f);
	bool ok = true;

	for (int g = 0; g < out->ngroups && ok; g++)
	{
		int n = entries_of(fallback, numbers[g]);
		TopState *state;

		if (n == 0)
			continue;
		state = top_n_make(&call, n, CurrentMemoryContext);
		out->fallbacks[f][g] = PointerGetDatum(state);
		out->fallback_nulls[f][g] = false;
		ok = pick_state(cuda, state, numbers[g], firsts[g], &picks);
	}
	ok = ok && flush_picks(cuda, &picks);
	end_picks(&picks);
	return ok;
}

bool
cuda_pick_top_n(CudaEngine *cuda, const WireGroups *groups, const char *buffer, GroupBatch *out)
{
	instr_time since = cuda_clock();
	bool ok = true;

	for (int f = 0; f < cuda->spec->nfallbacks && ok; f++)
		if (cuda->spec->fallbacks[f].top_n > 0)
			ok = pick_states(cuda, f, groups, buffer, out);
	cuda_add_time(&cuda->times.fetch_ms, since);
	return ok;
}
