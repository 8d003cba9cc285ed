/*
 * top_n.c
 *	  States of gpu_max_n and gpu_min_n for groups that were fetched: picks the first or last n
 *	  values of each group at the server, which has sorted them.
 */
#include "postgres.h"

#include "aggregates/top_n.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/value_store.h"
#include "operators/select.h"

/* Entries whose values are picked together. */
typedef struct TopPicks
{
	int set;
	ColumnType type;
	uint32 n;
	int32 *places;
	int64 *values;
	Datum **keys; /* where the entries are */
} TopPicks;

/* Returns the numbers of the groups' keys for a fallback aggregate, or the first positions. */
static const int64 *
group_slot(const WireGroups *groups, const char *buffer, int slot)
{
	return (const int64 *) (buffer + groups->slots[slot]);
}

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
						entries_of(&spec->fallbacks[f],
								   group_slot(groups, buffer, cuda->query->top_n[f].number)[n]);
	return bytes > room && n > 1 ? n - 1 : n;
}

/* Picks the values of the collected entries, and writes them. */
static bool
flush_picks(CudaEngine *cuda, TopPicks *picks)
{
	if (!cuda_pick(cuda, picks->set, picks->places, picks->n, picks->values))
		return false;
	for (uint32 i = 0; i < picks->n; i++)
		*picks->keys[i] = value_of_code(picks->type, select_code_i64(picks->values[i]));
	picks->n = 0;
	return true;
}

/* Makes the states of one aggregate. */
static bool
pick_states(CudaEngine *cuda, int f, const WireGroups *groups, const char *buffer, GroupBatch *out,
			TopPicks *picks)
{
	const FallbackAgg *fallback = &cuda->spec->fallbacks[f];
	const CudaTopN *top = &cuda->query->top_n[f];
	const int64 *numbers = group_slot(groups, buffer, top->number);
	const int64 *firsts = group_slot(groups, buffer, top->first);
	TopCall call = top_n_call(&fallback->transfn, top_n_form_of(&fallback->transfn),
							  fallback->collation, fallback->top_n);

	picks->set = top->set;
	picks->type = cuda->spec->cols[fallback->argcol[fallback->nargs - 1]].type;
	for (int g = 0; g < out->ngroups; g++)
	{
		int n = entries_of(fallback, numbers[g]);
		TopState *state;

		if (n == 0)
			continue;
		state = top_n_make(&call, n, CurrentMemoryContext);
		out->fallbacks[f][g] = PointerGetDatum(state);
		out->fallback_nulls[f][g] = false;
		for (int i = 0; i < n; i++)
		{
			int64 rank = call.form & TOP_SMALLEST ? i : numbers[g] - 1 - i;

			picks->places[picks->n] = (int32) (firsts[g] + rank);
			picks->keys[picks->n++] = &state->keys[i];
			if (picks->n == PICK_PLACES && !flush_picks(cuda, picks))
				return false;
		}
	}
	return flush_picks(cuda, picks);
}

bool
cuda_pick_top_n(CudaEngine *cuda, const WireGroups *groups, const char *buffer, GroupBatch *out)
{
	instr_time since = cuda_clock();
	TopPicks picks = {0};
	bool ok = true;

	if (!spec_has_top_n(cuda->spec))
		return true;
	picks.places = palloc(sizeof(int32) * PICK_PLACES);
	picks.values = palloc(sizeof(int64) * PICK_PLACES);
	picks.keys = palloc(sizeof(Datum *) * PICK_PLACES);
	for (int f = 0; f < cuda->spec->nfallbacks && ok; f++)
		if (cuda->spec->fallbacks[f].top_n > 0)
			ok = pick_states(cuda, f, groups, buffer, out, &picks);
	pfree(picks.places);
	pfree(picks.values);
	pfree(picks.keys);
	cuda_add_time(&cuda->times.fetch_ms, since);
	return ok;
}
