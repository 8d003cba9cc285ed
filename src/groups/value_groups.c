/*
 * value_groups.c
 *	  Groups of a store of values, on their way out: values of ranks, and modes; see value_store.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "common/interruptible.h"
#include "groups/value_store_internal.h"
#include "operators/select.h"

/* Most parts that one is divided into. */
#define SUBPARTS 32

/* ---- groups out ---------------------------------------------------------------------------- */

typedef struct OrderedCode
{
	int32 code;
	Datum value;
} OrderedCode;

static int
compare_codes(const void *a, const void *b, void *arg)
{
	const OrderedCode *x = a;
	const OrderedCode *y = b;
	ValueStore *store = arg;
	int order = ApplySortComparator(x->value, false, y->value, false, &store->ssup);

	/* equal values that look different in the order in which they came */
	return order != 0 ? order : x->code - y->code;
}

/* The order of the dictionary's values. */
static void
order_dictionary(ValueStore *store)
{
	int n = dictionary_size(store->dict);
	OrderedCode *order = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(OrderedCode));
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);
	int ranks = 0;

	store->rank_of = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(uint32));
	store->by_rank = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(Datum));
	store->class_of = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(uint32));
	for (int32 c = 0; c < n; c++)
	{
		bool isnull;

		CHECK_FOR_INTERRUPTS();
		(void) dictionary_value(store->dict, c, &isnull);
		if (isnull)
			continue;
		order[ranks].code = c;
		order[ranks++].value = values_of_dictionary(store, c);
	}
	qsort_interruptible(order, ranks, sizeof(OrderedCode), compare_codes, store);
	for (int r = 0; r < ranks; r++)
	{
		bool equal = r > 0 &&
			ApplySortComparator(order[r - 1].value, false, order[r].value, false, &store->ssup) ==
				0;

		CHECK_FOR_INTERRUPTS();
		store->rank_of[order[r].code] = r;
		store->by_rank[r] = order[r].value;
		store->class_of[r] = equal ? store->class_of[r - 1] : r;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(store->value_cxt);
	pfree(order);
}

/* The number of the part's groups. */
static uint32
local_groups(const ValueStore *store, const ValuePart *part)
{
	return store->nall > part->first ? (store->nall - part->first - 1) / part->stride + 1 : 0;
}

static void
close_part(ValuePart *part)
{
	if (part->file)
		BufFileClose(part->file);
	part->file = NULL;
}

/*
 * Divides a part of several groups, that is too large, into others by group, which come after all
 * that there are.
 */
static void
divide_part(ValueStore *store, int p)
{
	uint64 codes[LAST_CHUNK];
	uint32 run[2];
	int n = (int) Min(store->nlocal, SUBPARTS);
	int at = store->nall_parts;
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->parts = repalloc_huge(store->parts, (at + n) * sizeof(ValuePart));
	for (int i = 0; i < n; i++)
		store->parts[at + i] =
			(ValuePart){.stride = store->parts[p].stride * n,
						.first = store->parts[p].first + store->parts[p].stride * i};
	store->nall_parts += n;
	while (values_read_run(store->parts[p].file, &run[0], codes, &run[1]))
	{
		ValuePart *to =
			&store->parts[at + (run[0] - store->parts[p].first) / store->parts[p].stride % n];

		CHECK_FOR_INTERRUPTS();
		if (to->file == NULL)
			to->file = BufFileCreateTemp(false);
		BufFileWrite(to->file, run, sizeof(run));
		BufFileWrite(to->file, codes, run[1] * sizeof(uint64));
		store->spilled += sizeof(run) + run[1] * sizeof(uint64);
		to->codes += run[1];
	}
	close_part(&store->parts[p]);
	MemoryContextSwitchTo(old);
}

/* Reads a part; its groups are numbered anew. */
static void
load_part(ValueStore *store, ValuePart *part)
{
	uint64 codes[LAST_CHUNK];
	uint32 group, n;

	values_clear(store);
	values_reserve_groups(store, store->nlocal);
	while (values_read_run(part->file, &group, codes, &n))
	{
		for (uint32 i = 0; i < n; i++)
			append_code(store, (group - part->first) / part->stride, codes[i]);
		CHECK_FOR_INTERRUPTS();
	}
	close_part(part);
}

/* Prepares the next part; false if there is none. */
static bool
next_part(ValueStore *store)
{
	ValuePart whole = {.stride = 1};
	ValuePart *part = &whole;

	if (store->streams)
		values_end_sorts(store);
	if (store->large)
		close_part(&store->parts[store->part]);
	store->streams = store->large = false;
	if (++store->part >= Max(store->nall_parts, 1))
		return false;
	if (store->nparts > 0)
		part = &store->parts[store->part];
	store->stride = part->stride;
	store->first = part->first;
	store->nlocal = local_groups(store, part);
	store->next_local = 0;
	store->group_n = store->group_read = 0;
	if (store->nparts == 0)
		return true;
	values_rewind(part->file);
	if (part->codes * (int64) (2 * sizeof(uint64)) <= (int64) store->mem_limit)
		load_part(store, part);
	else if (store->nlocal > 1)
	{
		divide_part(store, store->part);
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
	store->part = -1;
	store->nlocal = store->next_local = 0;
	store->group_n = store->group_read = 0;
	store->stride = 1;
	store->first = 0;
	if (store->sorting)
	{
		/* all in one part */
		values_finish_sorts(store, ngroups);
		store->streams = true;
		store->part = 0;
		store->nlocal = ngroups;
		return;
	}
	if (store->dict)
		order_dictionary(store);
	values_reserve_groups(store, ngroups);
	if (store->nparts > 0)
		values_flush(store);
}

bool
value_store_next(ValueStore *store, uint32 *group, int64 *n)
{
	MemoryContextReset(store->value_cxt);
	/* what was not asked for */
	if (store->streams)
		values_end_sorted(store);
	while (store->next_local >= store->nlocal)
		if (!next_part(store))
			return false;
	store->local = store->next_local++;
	*group = (uint32) (store->first + store->local * store->stride);
	store->group_n = store->streams ? store->sort_counts[store->local] :
		store->large                ? store->parts[store->part].codes :
									  count_codes(&store->groups[store->local]);
	store->group_read = 0;
	*n = store->group_n;
	return true;
}

/*
 * ---- values of ranks
 * --------------------------------------------------------------------------------
 */

static Datum
copy_value(ValueStore *store, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);

	value = datumCopy(value, store->col.typbyval, store->col.typlen);
	MemoryContextSwitchTo(old);
	return value;
}

/* Values of ranks, from the sort. */
static void
fetch_sorted_ranks(ValueStore *store, const int64 *ranks, int m, Datum *values)
{
	Datum value, abbreviated;

	for (int i = 0; i < m; i++)
	{
		values_skip_sorted(store, ranks[i] - store->group_read);
		if (values_read_sorted(store, &value, &abbreviated))
			values[i] = copy_value(store, value);
	}
}

/* Values of ranks and the most frequent ones, from the sort. */
static void
fetch_sorted(ValueStore *store, const int64 *ranks, int m, Datum *values, Datum *mode)
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
			/* the value before is no longer needed, unless it is a mode */
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

/* Copies the group's codes to one place; of a dictionary's values they become their ranks. */
static void
collect_codes(ValueStore *store)
{
	ChunkScan scan = scan_chunks(&store->groups[store->local]);
	const uint64 *chunk;
	uint64 *to;
	uint32 n;

	values_reserve_codes(store, scan.left);
	to = store->codes;
	while ((n = next_chunk(&scan, &chunk)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (store->rank_of == NULL)
			memcpy(to, chunk, n * sizeof(uint64));
		else
			for (uint32 i = 0; i < n; i++)
				to[i] = store->rank_of[chunk[i]];
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
	if (store->streams)
	{
		if (mode)
			fetch_sorted(store, ranks, m, values, mode);
		else
			fetch_sorted_ranks(store, ranks, m, values);
		return;
	}
	if (m == 0 && mode == NULL)
		return;
	CHECK_FOR_INTERRUPTS();
	found = MemoryContextAlloc(store->value_cxt, (m + 1) * sizeof(uint64));
	if (store->large)
	{
		ValueRuns runs = {0};

		values_fetch_large(store, store->parts[store->part].file, store->group_n, ranks, m, found,
						   mode ? &runs : NULL);
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
		values[i] = values_of_code(store, found[i]);
}
