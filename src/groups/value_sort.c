/*
 * value_sort.c
 *	  Values of groups in core's tuplesort, when a dictionary is full or of no use.
 *
 * Where there are few groups, each has a sort of its own, which compares abbreviated keys. All
 * other groups share one sort by group and value. It is slower: it compares whole tuples where the
 * groups are equal.
 */
#include "postgres.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "groups/value_store_internal.h"

/*
 * Limits of the number of groups with their own sorts. LEAST_OWN are always allowed; each further
 * one needs SORT_KILOBYTES, the least memory that core gives a sort.
 */
#define LEAST_OWN 16
#define MOST_OWN 1024
#define SORT_KILOBYTES 64

uint32
value_store_max_own_sorts(size_t memory)
{
	return (uint32) Max(LEAST_OWN, Min(MOST_OWN, memory / 1024 / SORT_KILOBYTES));
}

/* Returns the memory limit of one sort, in kilobytes: a `share`-th of the store's limit. */
static int
sort_kilobytes(const ValueStore *store, uint32 share)
{
	return (int) Min(Max(store->mem_limit / share / 1024, SORT_KILOBYTES), MAX_KILOBYTES);
}

void
values_begin_sorts(ValueStore *store, uint32 ngroups)
{
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->sorting = true;
	store->nown_sorts = ngroups <= store->max_own_sorts ? ngroups : 0;
	store->own_sorts = palloc0(sizeof(Tuplesortstate *) * (store->nown_sorts + 1));
	for (uint32 g = 0; g < store->nown_sorts; g++)
		store->own_sorts[g] = tuplesort_begin_datum(
			store->col.typid, store->spec->ltop, store->spec->collation, false,
			sort_kilobytes(store, store->nown_sorts), NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
}

/* Creates the shared sort, for the values of all groups that have no sort of their own. */
static void
begin_shared_sort(ValueStore *store)
{
	AttrNumber atts[2] = {1, 2};
	Oid ops[2] = {Int8LessOperator, store->spec->ltop};
	Oid collations[2] = {InvalidOid, store->spec->collation};
	bool nulls_first[2] = {false, false};
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->desc = CreateTemplateTupleDesc(2);
	TupleDescInitEntry(store->desc, 1, "group", INT8OID, -1, 0);
	TupleDescInitEntry(store->desc, 2, "value", store->col.typid, store->col.typmod, 0);
	compat_finalize_tuple_desc(store->desc);
	store->sort_in = MakeSingleTupleTableSlot(store->desc, &TTSOpsVirtual);
	store->sort_out = MakeSingleTupleTableSlot(store->desc, &TTSOpsMinimalTuple);
	store->shared_sort = tuplesort_begin_heap(store->desc, 2, atts, ops, collations, nulls_first,
											  sort_kilobytes(store, store->nown_sorts > 0 ? 8 : 1),
											  NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
}

static void
end_own_sort(ValueStore *store, uint32 group)
{
	if (store->own_sorts[group])
		tuplesort_end(store->own_sorts[group]);
	store->own_sorts[group] = NULL;
}

void
values_end_sorts(ValueStore *store)
{
	for (uint32 g = 0; g < store->nown_sorts; g++)
		end_own_sort(store, g);
	store->nown_sorts = 0;
	if (store->shared_sort)
	{
		tuplesort_end(store->shared_sort);
		ExecDropSingleTupleTableSlot(store->sort_in);
		ExecDropSingleTupleTableSlot(store->sort_out);
	}
	store->shared_sort = NULL;
	store->sort_in = store->sort_out = NULL;
	store->sorting = false;
}

/* Makes room for the counts of groups below n. */
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
	store->sorted++;
	if (group < store->nown_sorts)
	{
		tuplesort_putdatum(store->own_sorts[group], value, false);
		return;
	}
	if (store->shared_sort == NULL)
		begin_shared_sort(store);
	ExecClearTuple(store->sort_in);
	store->sort_in->tts_values[0] = Int64GetDatum(group);
	store->sort_in->tts_values[1] = value;
	store->sort_in->tts_isnull[0] = store->sort_in->tts_isnull[1] = false;
	ExecStoreVirtualTuple(store->sort_in);
	tuplesort_puttupleslot(store->shared_sort, store->sort_in);
}

/* ---- groups out ------------------------------------------------------------------ */

void
values_finish_sorts(ValueStore *store, uint32 ngroups)
{
	reserve_counts(store, ngroups);
	for (uint32 g = 0; g < store->nown_sorts; g++)
		tuplesort_performsort(store->own_sorts[g]);
	if (store->shared_sort)
		tuplesort_performsort(store->shared_sort);
}

void
values_skip_remaining(ValueStore *store)
{
	if (store->group_n == 0)
		return;
	if (store->local < store->nown_sorts)
		end_own_sort(store, store->local);
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
	if (store->local < store->nown_sorts)
		found =
			compat_tuplesort_getdatum(store->own_sorts[store->local], value, &isnull, abbreviated);
	else if ((found =
				  tuplesort_gettupleslot(store->shared_sort, true, false, store->sort_out, NULL)))
		*value = slot_getattr(store->sort_out, 2, &isnull);
	if (!found)
		elog(ERROR, "sorted values end early");
	store->group_read++;
	return true;
}

void
values_skip_sorted(ValueStore *store, int64 n)
{
	Tuplesortstate *sort =
		store->local < store->nown_sorts ? store->own_sorts[store->local] : store->shared_sort;

	if (n > 0 && !tuplesort_skiptuples(sort, n, true))
		elog(ERROR, "sorted values end early");
	store->group_read += n;
}
