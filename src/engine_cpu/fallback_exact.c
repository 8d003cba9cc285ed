/*
 * fallback_exact.c
 *	  Fallback aggregates that are exact aggregates of floats (aggregates/exact.c).
 *
 * Most values are integers of a column's unit (exact_grid.h).  Their sums by group are beside the
 * table; a group has a state only if it has other values, or if the sums have no room.  When groups
 * are read, states are made of the sums for a batch of groups, in memory that is used again.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "engine_cpu/fallback_internal.h"

/* States of more groups are prefetched. */
#define EXACT_CACHED_GROUPS 2048

/*
 * Integers are added by group in memory for at least so many groups, and at most so many, in this
 * share of the memory for all aggregates.
 */
#define LEAST_BY_GROUP 16
#define MOST_BY_GROUP (1 << 30)
#define BY_GROUP_SHARE 2

/* Bytes from one state of an array to the next. */
#define EXACT_STATE_STRIDE(kind) TYPEALIGN(16, exact_state_size(kind))

void
fallback_exact_prepare(FallbackCall *call, const FallbackAgg *fallback, int batch_rows)
{
	call->exact = call->by_group.kind = exact_kind_of(&fallback->transfn);
	for (int a = 0; a < fallback->nargs; a++)
	{
		call->buffer[a] = palloc(batch_rows * sizeof(double));
		call->grid[a] = palloc(sizeof(ExactGrid));
		exact_grid_init(call->grid[a]);
	}
}

/* Where exact aggregate o finds states that it must create. */
typedef struct ExactPlace
{
	FallbackWork *work;
	GroupTable *table;
	int o;
} ExactPlace;

/* Creates the state of an exact aggregate in the group at this offset, which has none. */
static ExactState *
create_exact_state(void *arg, uint32 at)
{
	ExactPlace *place = arg;
	FallbackState *state = &group_fallbacks(place->table, group_row_at(place->table, at))[place->o];
	MemoryContext cxt = fallback_context(place->work, place->table, at)->ecxt_per_tuple_memory;
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ExactState *created = exact_create(place->work->calls[place->o].exact);

	MemoryContextSwitchTo(old);
	state->value = PointerGetDatum(created);
	state->isnull = state->notrans = state->fresh = false;
	return created;
}

/* Returns where the states of exact aggregate o are. *place must stay as long as the result. */
static ExactSums
exact_sums_of(FallbackWork *work, int o, GroupTable *table, ExactPlace *place)
{
	FallbackCall *call = &work->calls[o];
	ExactSums sums = {
		.kind = call->exact,
		.states = (char *) &group_fallbacks(table, table->rows)[o],
		.one_group = table->ngroups == 1,
		.prefetch = table->ngroups > EXACT_CACHED_GROUPS,
		.by_group = &call->by_group,
		.row_cells = table->row_cells,
		.numbers = group_numbers(table->row_cells),
		.create = create_exact_state,
		.arg = place,
	};

	*place = (ExactPlace){work, table, o};
	memcpy(sums.buffer, call->buffer, sizeof(sums.buffer));
	memcpy(sums.grid, call->grid, sizeof(sums.grid));
	return sums;
}

/*
 * Makes room for sums of integers by group, or frees it, as the groups became too many.  With
 * grouped input there is none: groups move to other rows.
 */
static void
room_by_group(FallbackWork *work, const ExactSums *sums, const GroupTable *table)
{
	GridSums *by_group = sums->by_group;
	Size width = grid_sums_words(sums->kind) * sizeof(uint64);
	size_t room = Max(pg_nextpower2_64(table->ngroups), LEAST_BY_GROUP);
	uint64 *old = by_group->sums;

	if (table->mode == TABLE_SEGMENTED || (old != NULL && table->ngroups <= by_group->ngroups))
		return;
	if (room > MOST_BY_GROUP ||
		room * width > work->mem_limit / BY_GROUP_SHARE / work->spec->nfallbacks)
	{
		if (old == NULL)
			return;
		exact_sums_complete(sums);
		by_group->sums = NULL;
	}
	else
	{
		by_group->sums = MemoryContextAllocExtended(
			work->states->ecxt_per_tuple_memory, room * width, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		if (old != NULL)
			memcpy(by_group->sums, old, by_group->ngroups * width);
		by_group->ngroups = room;
	}
	if (old != NULL)
		pfree(old);
}

void
fallback_exact_advance(FallbackWork *work, int o, GroupTable *table, const Batch *batch)
{
	const FallbackAgg *fallback = &work->spec->fallbacks[o];
	bool all = !table->denied && fallback->filter < 0;
	ExactPlace place;
	ExactSums sums = exact_sums_of(work, o, table, &place);

	for (int a = 0; a < fallback->nargs; a++)
		all &= batch->cols[fallback->argcol[a]].validity == NULL;
	room_by_group(work, &sums, table);
	if (all)
		exact_sums_add_batch(&sums, table, batch, fallback);
	else
		exact_sums_add_counted(&sums, table, batch, fallback);
}

void
fallback_exact_advance_row(FallbackWork *work, int o, GroupTable *table, const Batch *batch,
						   uint32 at, int i)
{
	const FallbackState *state = &group_fallbacks(table, group_row_at(table, at))[o];
	ExactPlace place = {work, table, o};

	exact_sums_add_row(state->value == (Datum) 0 ? create_exact_state(&place, at) :
												   (ExactState *) DatumGetPointer(state->value),
					   batch, &work->spec->fallbacks[o], i);
}

size_t
fallback_exact_bytes(const FallbackCall *call)
{
	return exact_state_size(call->exact) + 2 * sizeof(void *);
}

size_t
fallback_exact_growth(const FallbackCall *call, uint32 known, uint32 ngroups)
{
	const GridSums *by_group = &call->by_group;

	if (by_group->sums == NULL)
		return (ngroups - known) * fallback_exact_bytes(call);
	/* the old sums are there until they are copied */
	return ngroups <= by_group->ngroups ?
		0 :
		pg_nextpower2_64(ngroups) * grid_sums_words(call->exact) * sizeof(uint64);
}

/* Returns memory for n states of a call, which lasts as long as the call. */
static char *
read_states(FallbackCall *call, FallbackWork *work, int n)
{
	if (n > call->nread)
	{
		if (call->read)
			pfree(call->read);
		call->read = MemoryContextAlloc(GetMemoryChunkContext(work->calls),
										n * EXACT_STATE_STRIDE(call->exact));
		call->nread = n;
	}
	return call->read;
}

void
fallback_exact_read(FallbackWork *work, int o, GroupTable *table, uint32 from, int n, Datum *values,
					bool *isnull)
{
	FallbackCall *call = &work->calls[o];
	GridSums *by_group = &call->by_group;
	bool sums = by_group->rows > 0;
	char *read = sums ? read_states(call, work, n) : NULL;

	for (int g = 0; g < n; g++)
	{
		const FallbackState *state = &group_fallbacks(table, group_row(table, from + g))[o];

		values[g] = state->value;
		/* the combine function returns a null pointer for two states that are NULL */
		isnull[g] = state->value == (Datum) 0;
		if (!sums || !grid_sums_any(by_group, from + g))
			continue;
		if (isnull[g])
		{
			ExactState *made = (ExactState *) (read + g * EXACT_STATE_STRIDE(call->exact));

			grid_sums_read(by_group, from + g, made);
			values[g] = PointerGetDatum(made);
			isnull[g] = false;
		}
		else
			grid_sums_move(by_group, from + g, (ExactState *) DatumGetPointer(state->value));
	}
}
