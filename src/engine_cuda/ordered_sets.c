/*
 * ordered_sets.c
 *	  Results of ordered sets for groups that were fetched: picks the values of the needed ranks
 *	  at the server.
 *
 * aggregates/ordered_set.c computes ranks and results. Groups are processed in portions whose
 * positions fit into a buffer of the arena.
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/memutils.h"

#include "aggregates/ordered_set.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/value_store.h"
#include "operators/select.h"

/* The calls of aggregates, except for modes, of one group and one set of values. */
typedef struct GroupCalls
{
	OrderedSetCall *calls;
	int64 n; /* number of the group's values */
	int64 *ranks;
	int m;
} GroupCalls;

static void
begin_group(CudaEngine *cuda, int v, const GroupBatch *out, int g, GroupCalls *group)
{
	const AggSpec *spec = cuda->spec;
	Datum *keys = palloc(sizeof(Datum) * (spec->nkeys + 1));
	bool *nulls = palloc(sizeof(bool) * (spec->nkeys + 1));
	int ncalls = 0;

	group->calls = palloc(sizeof(OrderedSetCall) * spec->nordered_sets);
	for (int k = 0; k < spec->nkeys; k++)
	{
		keys[k] = out->keys[k][g];
		nulls[k] = out->keynulls[k][g];
	}
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];
		Datum fraction = Float8GetDatum(0.5);
		bool isnull = false;

		if (set->values != v || set->kind == ORDERED_SET_MODE)
			continue;
		if (!set->median)
			fraction = cuda->env.fraction(cuda->env.fraction_arg, o, keys, nulls, &isnull);
		ordered_set_begin(&group->calls[ncalls++], set, fraction, isnull, group->n);
	}
	group->m = ordered_set_ranks(group->calls, ncalls, &group->ranks);
}

/*
 * Computes the results of a group from the picked values. Results are allocated in the context
 * `results`.
 */
static void
end_group(CudaEngine *cuda, int v, const GroupBatch *out, int g, const GroupCalls *group,
		  const int64 *picked, MemoryContext results)
{
	const AggSpec *spec = cuda->spec;
	const ColumnSpec *col = &spec->cols[spec->values[v].col];
	Datum *values = palloc(sizeof(Datum) * (group->m + 1));
	int ncalls = 0;

	for (int i = 0; i < group->m; i++)
		values[i] = value_of_code(col->type, select_code_i64(picked[i]));
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];
		const FallbackAgg *fallback = &spec->fallbacks[set->fallback];
		bool *isnull = &out->fallback_nulls[set->fallback][g];
		Datum result;
		MemoryContext old;

		if (set->values != v || set->kind == ORDERED_SET_MODE)
			continue;
		result = ordered_set_result(&group->calls[ncalls++], group->n, group->ranks, values,
									group->m, (Datum) 0, col->typid, isnull);
		old = MemoryContextSwitchTo(results);
		out->fallbacks[set->fallback][g] =
			*isnull ? (Datum) 0 : datumCopy(result, fallback->transbyval, fallback->translen);
		MemoryContextSwitchTo(old);
	}
}

/*
 * Computes the results of groups from `from` on, as many as one list of positions can serve. *next
 * is set to the first group left.
 */
static bool
pick_some(CudaEngine *cuda, int v, const int64 *numbers, const int64 *firsts, const GroupBatch *out,
		  int from, int *next, MemoryContext results)
{
	GroupCalls *groups = palloc(sizeof(GroupCalls) * (out->ngroups - from));
	Size room = PICK_PLACES, n = 0, at = 0;
	int32 *places = palloc(sizeof(int32) * room);
	int64 *values;
	int g = from;

	for (; g < out->ngroups && n < PICK_PLACES; g++)
	{
		GroupCalls *group = &groups[g - from];

		group->n = numbers[g];
		begin_group(cuda, v, out, g, group);
		if (n + group->m > room)
		{
			room = n + group->m;
			places = repalloc_huge(places, sizeof(int32) * room);
		}
		for (int i = 0; i < group->m; i++)
			places[n++] = (int32) (firsts[g] + group->ranks[i]);
	}
	*next = g;
	values = palloc_extended(sizeof(int64) * (n + 1), MCXT_ALLOC_HUGE);
	if (!cuda_pick(cuda, cuda->query->values[v], places, n, values))
		return false;
	for (g = from; g < *next; g++)
	{
		end_group(cuda, v, out, g, &groups[g - from], values + at, results);
		at += groups[g - from].m;
	}
	return true;
}

void
cuda_check_fractions(CudaEngine *cuda)
{
	const AggSpec *spec = cuda->spec;
	bool none = false;

	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];
		OrderedSetCall call;
		bool isnull = false;
		Datum fraction;

		if (set->kind == ORDERED_SET_MODE || set->median)
			continue;
		fraction = cuda->env.fraction(cuda->env.fraction_arg, o, NULL, &none, &isnull);
		ordered_set_begin(&call, set, fraction, isnull, 0);
	}
}

/* Computes the percentiles over this set of values, for all groups. */
static bool
pick_percentiles(CudaEngine *cuda, int v, const WireGroups *groups, const char *buffer,
				 GroupBatch *out, MemoryContext cxt)
{
	const int64 *numbers = cuda_slot_numbers(groups, buffer, cuda->query->number[v]);
	const int64 *firsts = cuda_slot_numbers(groups, buffer, cuda->query->first[v]);
	bool ok = true;

	for (int g = 0; g < out->ngroups && ok;)
	{
		MemoryContext results = MemoryContextSwitchTo(cxt);

		ok = pick_some(cuda, v, numbers, firsts, out, g, &g, results);
		MemoryContextSwitchTo(results);
		MemoryContextReset(cxt);
	}
	return ok;
}

/* Computes the modes over this set of values, for one sort order. */
static bool
pick_modes(CudaEngine *cuda, int v, const int64 *modes, bool desc, GroupBatch *out)
{
	const AggSpec *spec = cuda->spec;
	int32 *places = palloc(sizeof(int32) * (out->ngroups + 1));
	int64 *values = palloc(sizeof(int64) * (out->ngroups + 1));
	ColumnType type = spec->cols[spec->values[v].col].type;
	int n = 0;

	for (int g = 0; g < out->ngroups; g++)
		if (modes[g] > 0)
			places[n++] = (int32) wire_mode_place(modes[g], desc);
	if (!cuda_pick(cuda, cuda->query->mode_set[v], places, n, values))
		return false;
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];

		if (set->values != v || set->kind != ORDERED_SET_MODE || set->desc != desc)
			continue;
		n = 0;
		for (int g = 0; g < out->ngroups; g++)
		{
			bool isnull = modes[g] <= 0;

			out->fallback_nulls[set->fallback][g] = isnull;
			out->fallbacks[set->fallback][g] =
				isnull ? (Datum) 0 : value_of_code(type, select_code_i64(values[n++]));
		}
	}
	pfree(places);
	pfree(values);
	return true;
}

static bool
pick_values(CudaEngine *cuda, int v, const WireGroups *groups, const char *buffer, GroupBatch *out,
			MemoryContext cxt)
{
	const CudaQuery *query = cuda->query;

	if (query->values[v] >= 0 && !pick_percentiles(cuda, v, groups, buffer, out, cxt))
		return false;
	for (int desc = 0; desc < 2; desc++)
		if (query->mode[desc][v] >= 0 &&
			!pick_modes(cuda, v, cuda_slot_numbers(groups, buffer, query->mode[desc][v]), desc,
						out))
			return false;
	return true;
}

bool
cuda_pick_ordered_sets(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
					   GroupBatch *out)
{
	MemoryContext cxt;
	instr_time since = cuda_clock();
	bool ok = true;

	if (cuda->spec->nvalues == 0)
		return true;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "GPU ordered sets", ALLOCSET_DEFAULT_SIZES);
	for (int v = 0; v < cuda->spec->nvalues && ok; v++)
		ok = pick_values(cuda, v, groups, buffer, out, cxt);
	MemoryContextDelete(cxt);
	cuda_add_time(&cuda->times.fetch_ms, since);
	return ok;
}
