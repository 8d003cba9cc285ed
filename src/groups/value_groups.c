/*
 * value_groups.c
 *	  Output of a store of values: groups, and their values of given ranks; see value_store.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "common/interruptible.h"
#include "groups/spill.h"
#include "groups/value_store_internal.h"
#include "operators/select.h"

/* Most partitions that a partition is divided into. */
#define MAX_SUBPARTITIONS 32

/* ---- groups out ---------------------------------------------------------------------------- */

typedef struct OrderedCode
{
	int32 code;
	Datum value;
	Datum abbreviated; /* 0 if the type has no abbreviated keys */
} OrderedCode;

/* Compares dictionary values; `abbreviated` is NULL if the type has no abbreviated keys. */
typedef struct ValueOrder
{
	SortSupport values;
	SortSupport abbreviated;
} ValueOrder;

/* Compares dictionary values in the order of the aggregate. */
static int
compare_by_value(const void *a, const void *b, void *arg)
{
	const OrderedCode *x = a;
	const OrderedCode *y = b;
	const ValueOrder *by = arg;
	int order = 0;

	if (by->abbreviated)
		order = ApplySortComparator(x->abbreviated, false, y->abbreviated, false, by->abbreviated);
	if (order == 0)
		order = ApplySortComparator(x->value, false, y->value, false, by->values);
	/* equal values with different bytes stay in the order in which they came */
	return order != 0 ? order : x->code - y->code;
}

/* Returns the dictionary's values, in their order; sets *n. Allocates in the current context. */
static OrderedCode *
sort_dictionary(ValueStore *store, int *n)
{
	int size = dictionary_size(store->dict);
	OrderedCode *order = palloc_extended((size + 1) * sizeof(OrderedCode), MCXT_ALLOC_HUGE);
	SortSupportData abbreviated = {.ssup_cxt = CurrentMemoryContext,
								   .ssup_collation = store->spec->collation,
								   .abbreviate = true};
	ValueOrder by = {.values = &store->ssup};

	PrepareSortSupportFromOrderingOp(store->spec->ltop, &abbreviated);
	if (abbreviated.abbrev_converter)
		by.abbreviated = &abbreviated;
	*n = 0;
	for (int32 c = 0; c < size; c++)
	{
		OrderedCode *value = &order[*n];
		bool isnull;

		CHECK_FOR_INTERRUPTS();
		(void) dictionary_value(store->dict, c, &isnull);
		if (isnull)
			continue;
		value->code = c;
		value->value = values_of_dict_code(store, c);
		value->abbreviated =
			by.abbreviated ? abbreviated.abbrev_converter(value->value, &abbreviated) : (Datum) 0;
		(*n)++;
	}
	qsort_interruptible(order, *n, sizeof(OrderedCode), compare_by_value, &by);
	return order;
}

/* Sets rank_of, by_rank and class_of: the ranks of the dictionary's values in their order. */
static void
order_dictionary(ValueStore *store)
{
	int n = dictionary_size(store->dict);
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);
	OrderedCode *order;
	int ranks;

	store->rank_of = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(uint32));
	store->by_rank = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(Datum));
	store->class_of = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(uint32));
	order = sort_dictionary(store, &ranks);
	for (int r = 0; r < ranks; r++)
	{
		bool equal = r > 0 && order[r - 1].abbreviated == order[r].abbreviated &&
			ApplySortComparator(order[r - 1].value, false, order[r].value, false, &store->ssup) ==
				0;

		CHECK_FOR_INTERRUPTS();
		store->rank_of[order[r].code] = r;
		store->by_rank[r] = order[r].value;
		store->class_of[r] = equal ? store->class_of[r - 1] : r;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(store->value_cxt);
}

/* Returns how many groups the partition has. */
static uint32
partition_groups(const ValueStore *store, const ValuePartition *partition)
{
	return store->nall > partition->first ?
		(store->nall - partition->first - 1) / partition->stride + 1 :
		0;
}

static void
close_partition(ValuePartition *partition)
{
	if (partition->file)
		BufFileClose(partition->file);
	partition->file = NULL;
}

/*
 * Divides a partition of several groups that is too large into partitions by group, which are added
 * at the end.
 */
static void
divide_partition(ValueStore *store, int p)
{
	uint64 codes[LAST_NODE];
	uint32 group, n;
	int nparts = (int) Min(store->nlocal, MAX_SUBPARTITIONS);
	int at = store->nall_partitions;
	ValuePartition *from;
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->partitions = repalloc_huge(store->partitions, (at + nparts) * sizeof(ValuePartition));
	from = &store->partitions[p];
	for (int i = 0; i < nparts; i++)
		store->partitions[at + i] = (ValuePartition){.stride = from->stride * nparts,
													 .first = from->first + from->stride * i};
	store->nall_partitions += nparts;
	while (values_read_codes(from->file, &group, codes, &n))
	{
		ValuePartition *to = &store->partitions[at + (group - from->first) / from->stride % nparts];

		CHECK_FOR_INTERRUPTS();
		values_write_codes(store, &to->file, group, codes, n);
		to->codes += n;
	}
	close_partition(from);
	MemoryContextSwitchTo(old);
}

/* Reads a partition's file into lists in memory, one for each of its groups; closes the file. */
static void
load_partition(ValueStore *store, ValuePartition *partition)
{
	uint64 codes[LAST_NODE];
	uint32 group, n;

	values_clear(store);
	values_reserve_groups(store, store->nlocal);
	while (values_read_codes(partition->file, &group, codes, &n))
	{
		for (uint32 i = 0; i < n; i++)
			append_code(store, (group - partition->first) / partition->stride, codes[i]);
		CHECK_FOR_INTERRUPTS();
	}
	close_partition(partition);
}

/*
 * Moves on to the next partition, and loads it if it fits into memory; returns false if there is
 * none. A partition that is too large is divided, and then has no groups itself, or has only one
 * group and stays in its file.
 */
static bool
next_partition(ValueStore *store)
{
	ValuePartition whole = {.stride = 1};
	ValuePartition *partition = &whole;

	if (store->in_sorts)
		values_end_sorts(store);
	if (store->large)
		close_partition(&store->partitions[store->partition]);
	store->in_sorts = store->large = false;
	if (++store->partition >= Max(store->nall_partitions, 1))
		return false;
	if (store->npartitions > 0)
		partition = &store->partitions[store->partition];
	store->stride = partition->stride;
	store->first = partition->first;
	store->nlocal = partition_groups(store, partition);
	store->next_local = 0;
	store->group_n = store->group_read = 0;
	if (store->npartitions == 0)
		return true;
	partition_rewind(partition->file);
	if (partition->codes * (int64) (2 * sizeof(uint64)) <= (int64) store->mem_limit)
		load_partition(store, partition);
	else if (store->nlocal > 1)
	{
		divide_partition(store, store->partition);
		store->nlocal = 0;
	}
	else
	{
		store->large = true;
		values_free(store);
	}
	return true;
}

void
value_store_begin(ValueStore *store, uint32 ngroups)
{
	store->nall = ngroups;
	store->partition = -1;
	store->nlocal = store->next_local = 0;
	store->group_n = store->group_read = 0;
	store->stride = 1;
	store->first = 0;
	if (store->sorting)
	{
		/* all groups in one partition */
		values_finish_sorts(store, ngroups);
		store->in_sorts = true;
		store->partition = 0;
		store->nlocal = ngroups;
		return;
	}
	if (values_begin_chunks(store))
	{
		values_free(store);
		values_close_files(store);
		store->in_chunks = true;
		store->partition = 0;
		store->nlocal = ngroups;
		return;
	}
	if (store->dict)
		order_dictionary(store);
	values_reserve_groups(store, ngroups);
	if (store->npartitions > 0)
		values_flush(store);
}

bool
value_store_next(ValueStore *store, uint32 *group, int64 *n)
{
	MemoryContextReset(store->value_cxt);
	/* skip values that the caller has not fetched */
	if (store->in_sorts)
		values_skip_remaining(store);
	while (store->next_local >= store->nlocal)
		if (!next_partition(store))
			return false;
	store->local = store->next_local++;
	*group = (uint32) (store->first + store->local * store->stride);
	store->group_n = store->in_sorts ? store->sort_counts[store->local] :
		store->in_chunks             ? store->chunks->codes :
		store->large                 ? store->partitions[store->partition].codes :
									   count_codes(&store->groups[store->local]);
	store->group_read = 0;
	*n = store->group_n;
	return true;
}

/* ---- values of ranks ---------------------------------------------------------------- */

/* Returns a copy of a value in value_cxt. */
static Datum
copy_value(ValueStore *store, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);

	value = datumCopy(value, store->col.typbyval, store->col.typlen);
	MemoryContextSwitchTo(old);
	return value;
}

/* Sets values[i] to the value of rank ranks[i] of the current group, which is in a sort. */
static void
fetch_ranks_from_sort(ValueStore *store, const int64 *ranks, int m, Datum *values)
{
	Datum value, abbreviated;

	for (int i = 0; i < m; i++)
	{
		values_skip_sorted(store, ranks[i] - store->group_read);
		if (values_read_sorted(store, &value, &abbreviated))
			values[i] = copy_value(store, value);
	}
}

/*
 * Reads all values of the current group from a sort. Sets values[i] to the value of rank ranks[i],
 * and mode[0] and mode[1] to the most frequent value, see value_store_fetch.
 */
static void
fetch_ranks_and_modes_from_sort(ValueStore *store, const int64 *ranks, int m, Datum *values,
								Datum *mode)
{
	MemoryContext scratch =
		AllocSetContextCreate(store->value_cxt, "gpuagg comparison", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(scratch);
	Datum value, abbreviated, first = (Datum) 0, first_abbreviated = (Datum) 0;
	int64 run = 0, best[2] = {0, 0};
	int i = 0;

	while (values_read_sorted(store, &value, &abbreviated))
	{
		if (i < m && ranks[i] == store->group_read - 1)
			values[i++] = copy_value(store, value);
		if (run == 0 || abbreviated != first_abbreviated ||
			ApplySortComparator(first, false, value, false, &store->ssup) != 0)
		{
			/* the value of the last run is not needed any more, unless it is a mode */
			if (run > 0 && !store->col.typbyval && mode[0] != first && mode[1] != first)
				pfree(DatumGetPointer(first));
			first = copy_value(store, value);
			first_abbreviated = abbreviated;
			run = 0;
		}
		run++;
		if (run > best[0])
		{
			best[0] = run;
			mode[0] = first;
		}
		if (run >= best[1])
		{
			best[1] = run;
			mode[1] = first;
		}
		if (store->group_read % 256 == 0)
		{
			CHECK_FOR_INTERRUPTS();
			MemoryContextReset(scratch);
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
}

/* Copies the current group's codes to store->codes; replaces dictionary codes by ranks. */
static void
collect_codes(ValueStore *store)
{
	NodeScan scan = scan_nodes(&store->groups[store->local]);
	const uint64 *node;
	uint64 *to;
	uint32 n;

	values_reserve_codes(store, scan.left);
	to = store->codes;
	while ((n = next_node(&scan, &node)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (store->rank_of == NULL)
			memcpy(to, node, n * sizeof(uint64));
		else
			for (uint32 i = 0; i < n; i++)
				to[i] = store->rank_of[node[i]];
		to += n;
	}
}

void
value_store_fetch(ValueStore *store, const int64 *ranks, int m, Datum *values, Datum *mode)
{
	uint64 *found;

	if (mode)
		mode[0] = mode[1] = (Datum) 0;
	if (store->group_n == 0)
		return;
	if (store->in_sorts)
	{
		if (mode)
			fetch_ranks_and_modes_from_sort(store, ranks, m, values, mode);
		else
			fetch_ranks_from_sort(store, ranks, m, values);
		return;
	}
	if (m == 0 && mode == NULL)
		return;
	CHECK_FOR_INTERRUPTS();
	found = MemoryContextAlloc(store->value_cxt, (m + 1) * sizeof(uint64));
	if (store->in_chunks)
		values_fetch_chunks(store, ranks, m, found);
	else if (store->large)
	{
		ValueRuns runs = {0};

		values_fetch_large(store, store->partitions[store->partition].file, store->group_n, ranks,
						   m, found, mode ? &runs : NULL);
		if (mode)
			values_end_runs(store, &runs, mode);
	}
	else
	{
		collect_codes(store);
		if (mode)
			values_find_mode(store, store->codes, store->group_n, mode);
		if (m > 0)
			select_ranks(store->codes, store->spare, store->group_n, ranks, 0, m, found);
	}
	for (int i = 0; i < m; i++)
		values[i] = values_decode(store, found[i]);
}
