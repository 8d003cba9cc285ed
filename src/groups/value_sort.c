/*
 * value_sort.c
 *	  Values of groups in core's tuplesort: too many different ones for a dictionary, or so nearly
 * unique that it is no use.
 *
 * Where groups are few, each has a sort of its own, as in core, which compares abbreviated values.
 * One sort by group and value takes those of all others: it compares whole tuples where the groups
 * are equal, as often as each is large.
 */
#include "postgres.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "groups/value_store_internal.h"

/*
 * Groups with sorts of their own: always as many as LEAST_OWN, and if there is memory, more.  The
 * least that core gives a sort, in kB.
 */
#define LEAST_OWN 16
#define MOST_OWN 1024
#define SORT_KILOBYTES 64

uint32
value_store_own_sorts(size_t memory)
{
	return (uint32) Max(LEAST_OWN, Min(MOST_OWN, memory / 1024 / SORT_KILOBYTES));
}

static int
kilobytes(const ValueStore *store, uint32 share)
{
	return (int) Min(Max(store->mem_limit / share / 1024, SORT_KILOBYTES), MAX_KILOBYTES);
}

void
values_begin_sorts(ValueStore *store, uint32 ngroups)
{
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->sorting = true;
	store->nown = ngroups <= store->most_own ? ngroups : 0;
	store->own = palloc0(sizeof(Tuplesortstate *) * (store->nown + 1));
	for (uint32 g = 0; g < store->nown; g++)
		store->own[g] =
			tuplesort_begin_datum(store->col.typid, store->spec->ltop, store->spec->collation,
								  false, kilobytes(store, store->nown), NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
}

static void
begin_common(ValueStore *store)
{
	AttrNumber atts[2] = {1, 2};
	Oid ops[2] = {Int8LessOperator, store->spec->ltop};
	Oid collations[2] = {InvalidOid, store->spec->collation};
	bool nulls_first[2] = {false, false};
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->desc = CreateTemplateTupleDesc(2);
	TupleDescInitEntry(store->desc, 1, "group", INT8OID, -1, 0);
	TupleDescInitEntry(store->desc, 2, "value", store->col.typid, store->col.typmod, 0);
	store->in = MakeSingleTupleTableSlot(store->desc, &TTSOpsVirtual);
	store->out = MakeSingleTupleTableSlot(store->desc, &TTSOpsMinimalTuple);
	store->sort =
		tuplesort_begin_heap(store->desc, 2, atts, ops, collations, nulls_first,
							 kilobytes(store, store->nown > 0 ? 8 : 1), NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
}

static void
end_own(ValueStore *store, uint32 group)
{
	if (store->own[group])
		tuplesort_end(store->own[group]);
	store->own[group] = NULL;
}

void
values_end_sorts(ValueStore *store)
{
	for (uint32 g = 0; g < store->nown; g++)
		end_own(store, g);
	store->nown = 0;
	if (store->sort)
	{
		tuplesort_end(store->sort);
		ExecDropSingleTupleTableSlot(store->in);
		ExecDropSingleTupleTableSlot(store->out);
	}
	store->sort = NULL;
	store->in = store->out = NULL;
	store->sorting = false;
}

/* Makes room for the numbers of values of groups below n. */
static void
reserve_counts(ValueStore *store, uint32 n)
{
	uint32 size = Max(store->sort_groups, 1024);

	if (n <= store->sort_groups)
		return;
	while (size < n)
		size = (uint32) Min((uint64) size * 2, PG_UINT32_MAX);
	if (store->sort_counts)
		store->sort_counts = repalloc_huge(store->sort_counts, size * sizeof(int64));
	else
		store->sort_counts = MemoryContextAllocHuge(store->cxt, size * sizeof(int64));
	memset(store->sort_counts + store->sort_groups, 0, (size - store->sort_groups) * sizeof(int64));
	store->sort_groups = size;
}

void
values_sort(ValueStore *store, uint32 group, Datum value)
{
	reserve_counts(store, group + 1);
	store->sort_counts[group]++;
	if (group < store->nown)
	{
		tuplesort_putdatum(store->own[group], value, false);
		return;
	}
	if (store->sort == NULL)
		begin_common(store);
	ExecClearTuple(store->in);
	store->in->tts_values[0] = Int64GetDatum(group);
	store->in->tts_values[1] = value;
	store->in->tts_isnull[0] = store->in->tts_isnull[1] = false;
	ExecStoreVirtualTuple(store->in);
	tuplesort_puttupleslot(store->sort, store->in);
}

/* ---- groups out ------------------------------------------------------------------ */

void
values_finish_sorts(ValueStore *store, uint32 ngroups)
{
	reserve_counts(store, ngroups);
	for (uint32 g = 0; g < store->nown; g++)
		tuplesort_performsort(store->own[g]);
	if (store->sort)
		tuplesort_performsort(store->sort);
}

/* Passes over what is left of the group. */
void
values_end_sorted(ValueStore *store)
{
	if (store->group_n == 0)
		return;
	if (store->local < store->nown)
		end_own(store, store->local);
	else
		values_skip_sorted(store, store->group_n - store->group_read);
	store->group_read = store->group_n;
}

bool
values_read_sorted(ValueStore *store, Datum *value, Datum *abbreviated)
{
	bool isnull;
	bool found;

	if (store->group_read == store->group_n)
		return false;
	*abbreviated = (Datum) 0;
	if (store->local < store->nown)
		found = compat_tuplesort_getdatum(store->own[store->local], value, &isnull, abbreviated);
	else if ((found = tuplesort_gettupleslot(store->sort, true, false, store->out, NULL)))
		*value = slot_getattr(store->out, 2, &isnull);
	if (!found)
		elog(ERROR, "sorted values end early");
	store->group_read++;
	return true;
}

void
values_skip_sorted(ValueStore *store, int64 n)
{
	Tuplesortstate *sort = store->local < store->nown ? store->own[store->local] : store->sort;

	if (n > 0 && !tuplesort_skiptuples(sort, n, true))
		elog(ERROR, "sorted values end early");
	store->group_read += n;
}
