/*
 * value_store.c
 *	  Values of groups, in memory and in files; see value_store.h.
 *
 * A group's codes are in a linked list of nodes, each twice as long as the one before. So a code is
 * written once and never moves, and each word of memory is touched once. For output the codes are
 * copied to one array, where the wanted ranks are selected (operators/select.h). A file has arrays
 * of codes, each of one group; value_large.c selects in files.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "common/interruptible.h"
#include "groups/huge_pages.h"
#include "groups/table.h"
#include "groups/spill.h"
#include "groups/value_store_internal.h"
#include "operators/select.h"

/* Words of a slab. */
#define FIRST_SLAB 1024
#define LAST_SLAB (2 * 1024 * 1024)
/*
 * After this many values, and at least 1/CHECK_SHARE of the expected number, the store checks
 * whether values repeat. With a dictionary, 300,000 numerics of 40,000 different values take as
 * long as with tuplesort; there, half of the values are new at this point.
 */
#define FIRST_CHECK 16384
#define CHECK_SHARE 8
/* Rows ahead for which a group's list is prefetched. */
#define PREFETCH_ROWS 12

/* ---- life ------------------------------------------------------------------ */

/* Creates the contexts of an empty store, and its dictionary. */
static void
init_empty_store(ValueStore *store)
{
	MemoryContext old;

	store->cxt = AllocSetContextCreate(store->parent, "gpuagg values", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(store->cxt);
	store->value_cxt =
		AllocSetContextCreate(store->cxt, "gpuagg values of a group", ALLOCSET_DEFAULT_SIZES);
	if (!store->spec->coded)
	{
		KeySpec image = {.kind = KEY_DATUM, .eqfunc = F_BYTEAEQ};
		ColumnSpec col = {.type = COLUMN_DATUM, .typid = BYTEAOID, .typlen = -1};

		store->dict = dictionary_create(store->cxt, &image, &col, store->batch_rows);
	}
	MemoryContextSwitchTo(old);
}

ValueStore *
value_store_create(MemoryContext parent, const ValuesSpec *spec, const ColumnSpec *col,
				   int batch_rows, size_t mem_limit, uint32 max_own_sorts, double est_values,
				   bool exported, bool percentiles)
{
	MemoryContext old = MemoryContextSwitchTo(parent);
	ValueStore *store = palloc0(sizeof(ValueStore));

	store->parent = parent;
	store->spec = spec;
	store->col = *col;
	store->batch_rows = batch_rows;
	store->mem_limit = mem_limit;
	store->max_own_sorts = max_own_sorts;
	store->exported = exported;
	store->percentiles = store->by_chunks = exported && percentiles && spec->coded;
	store->first_check = Max(FIRST_CHECK, est_values / CHECK_SHARE);
	store->ssup.ssup_cxt = parent;
	store->ssup.ssup_collation = spec->collation;
	PrepareSortSupportFromOrderingOp(spec->ltop, &store->ssup);
	if (!spec->coded)
	{
		store->wraps = col->typlen != -1;
		store->dict_codes = palloc(batch_rows * sizeof(int32));
		store->dict_hashes = palloc(batch_rows * sizeof(uint32));
		store->wrapped.type = COLUMN_DATUM;
		store->wrapped.values = palloc0(batch_rows * sizeof(Datum));
	}
	MemoryContextSwitchTo(old);
	init_empty_store(store);
	return store;
}

void
values_close_files(ValueStore *store)
{
	for (int p = 0; p < store->nall_partitions; p++)
		if (store->partitions[p].file)
			BufFileClose(store->partitions[p].file);
	store->npartitions = store->nall_partitions = 0;
}

void
values_free_chunks(ValueChunks *chunks)
{
	if (chunks->own)
		BufFileClose(chunks->own);
	pfree(chunks->heads);
	pfree(chunks->blocks);
	pfree(chunks);
}

void
value_store_reset(ValueStore *store)
{
	values_close_files(store);
	values_end_sorts(store);
	if (store->chunks)
		values_free_chunks(store->chunks);
	store->chunks = NULL;
	store->in_chunks = false;
	store->by_chunks = store->percentiles;
	MemoryContextDelete(store->cxt);
	store->groups = NULL;
	store->ngroups = store->max_groups = 0;
	store->slabs = NULL;
	store->nslabs = store->slab = 0;
	store->slab_used = store->used = 0;
	store->dict = NULL;
	store->rank_of = store->class_of = NULL;
	store->by_rank = NULL;
	store->sort_counts = NULL;
	store->sort_groups = 0;
	store->sorted = 0;
	store->codes = store->spare = NULL;
	store->codes_size = 0;
	store->in_sorts = store->large = false;
	store->looked_up = store->next_check = 0;
	init_empty_store(store);
}

size_t
value_store_memory(const ValueStore *store)
{
	return store->used * sizeof(uint64) + store->max_groups * sizeof(GroupCodes) +
		(store->dict ? dictionary_memory(store->dict) : 0) + store->sort_groups * sizeof(int64);
}

uint64
value_store_count(const ValueStore *store)
{
	uint64 n = store->used + store->sorted + (store->chunks ? store->chunks->codes : 0);

	for (int p = 0; p < store->npartitions; p++)
		n += store->partitions[p].codes;
	return n;
}

bool
value_store_divided(const ValueStore *store)
{
	return store->divided;
}

uint64
value_store_spilled(const ValueStore *store)
{
	return store->spilled;
}

/* ---- lists of codes ------------------------------------------------------------ */

void
values_reserve_groups(ValueStore *store, uint32 n)
{
	if (n > store->max_groups)
	{
		uint32 size = Max(store->max_groups, 256);

		while (size < n)
			size = (uint32) Min((uint64) size * 2, PG_UINT32_MAX);
		if (store->groups)
			store->groups = repalloc_huge(store->groups, size * sizeof(GroupCodes));
		else
			store->groups = MemoryContextAllocHuge(store->cxt, size * sizeof(GroupCodes));
		huge_pages_advise((char *) store->groups, size * sizeof(GroupCodes));
		store->max_groups = size;
	}
	if (n > store->ngroups)
	{
		memset(store->groups + store->ngroups, 0, (n - store->ngroups) * sizeof(GroupCodes));
		store->ngroups = n;
	}
}

/* Returns memory for this many words, at most LAST_NODE, which lasts until values_clear. */
static uint64 *
allocate_words(ValueStore *store, uint32 words)
{
	uint64 *result;

	while (store->slab < store->nslabs && store->slab_used + words > store->slabs[store->slab].size)
	{
		store->slab++;
		store->slab_used = 0;
	}
	if (store->slab == store->nslabs)
	{
		size_t size = Max(FIRST_SLAB,
						  Min(LAST_SLAB, Min(store->used, store->mem_limit / 8 / sizeof(uint64))));
		size_t bytes = size * sizeof(uint64);

		if ((store->nslabs & (store->nslabs - 1)) == 0)
			store->slabs = store->nslabs > 0 ?
				repalloc(store->slabs, 2 * store->nslabs * sizeof(Slab)) :
				MemoryContextAlloc(store->cxt, sizeof(Slab));
		store->slabs[store->nslabs].words = MemoryContextAllocHuge(store->cxt, bytes);
		store->slabs[store->nslabs++].size = size;
		huge_pages_advise((char *) store->slabs[store->slab].words, bytes);
		store->slab_used = 0;
	}
	result = store->slabs[store->slab].words + store->slab_used;
	store->slab_used += words;
	store->used += words;
	return result;
}

void
values_extend_list(ValueStore *store, GroupCodes *group)
{
	uint32 words = group->words == 0 ? FIRST_NODE : Min(group->words * 2, LAST_NODE);
	uint64 *node = allocate_words(store, words);

	if (group->words == 0)
		group->first = node;
	else
	{
		*(group->end - group->words) = (uint64) (uintptr_t) node;
		group->before += group->words - 1;
	}
	group->words = words;
	group->at = node + 1;
	group->end = node + words;
}

void
values_clear(ValueStore *store)
{
	store->ngroups = 0;
	store->slab = 0;
	store->slab_used = store->used = 0;
}

void
values_free(ValueStore *store)
{
	for (int s = 0; s < store->nslabs; s++)
		pfree(store->slabs[s].words);
	if (store->slabs)
		pfree(store->slabs);
	store->slabs = NULL;
	store->nslabs = 0;
	values_clear(store);
}

void
values_reserve_codes(ValueStore *store, int64 n)
{
	if (n <= store->codes_size)
		return;
	if (store->codes)
	{
		pfree(store->codes);
		pfree(store->spare);
	}
	store->codes_size = Max(n + n / 8, 1024);
	store->codes = MemoryContextAllocHuge(store->cxt, store->codes_size * sizeof(uint64));
	store->spare = MemoryContextAllocHuge(store->cxt, store->codes_size * sizeof(uint64));
}

/* ---- values and codes --------------------------------------------------------- */

Datum
value_of_code(ColumnType type, uint64 code)
{
	switch (type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		return to_datum((value_t) select_i64_of(code));
		COLUMN_INTEGERS(X)
#undef X
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		return to_datum((value_t) select_f64_of(code));
		COLUMN_FLOATS(X)
#undef X
		default:
			elog(ERROR, "column type %d has no 64-bit codes", (int) type);
	}
}

Datum
values_decode(const ValueStore *store, uint64 code)
{
	return store->spec->coded ? value_of_code(store->col.type, code) : store->by_rank[code];
}

size_t
values_wrapped_length(const ValueStore *store, Datum value)
{
	return store->col.typbyval ? sizeof(Datum) : datumGetSize(value, false, store->col.typlen);
}

Datum
values_wrap(const ValueStore *store, char *to, Datum value)
{
	size_t len = values_wrapped_length(store, value);

	memset(to, 0, WRAPPER_BYTES);
	SET_VARSIZE(to, WRAPPER_BYTES + len);
	memcpy(to + WRAPPER_BYTES, store->col.typbyval ? (void *) &value : DatumGetPointer(value), len);
	return PointerGetDatum(to);
}

Datum
values_unwrap(const ValueStore *store, Datum wrapped)
{
	const char *data = (const char *) DatumGetPointer(wrapped) + WRAPPER_BYTES;
	Datum value;

	if (!store->wraps)
		return wrapped;
	if (!store->col.typbyval)
		return PointerGetDatum(data);
	memcpy(&value, data, sizeof(value));
	return value;
}

Datum
values_of_dict_code(const ValueStore *store, int32 code)
{
	bool isnull;

	return values_unwrap(store, dictionary_value(store->dict, code, &isnull));
}

/* ---- files ------------------------------------------------------------------------- */

void
values_write_codes(ValueStore *store, BufFile **file, uint32 group, const uint64 *codes, uint32 n)
{
	uint32 head[2] = {group, n};

	if (*file == NULL)
		*file = BufFileCreateTemp(false);
	BufFileWrite(*file, head, sizeof(head));
	BufFileWrite(*file, unconstify(uint64 *, codes), n * sizeof(uint64));
	store->spilled += sizeof(head) + n * sizeof(uint64);
}

bool
values_read_codes(BufFile *file, uint32 *group, uint64 *codes, uint32 *n)
{
	uint32 head[2];

	if (file == NULL || !compat_read_file(file, head, sizeof(head), true))
		return false;
	*group = head[0];
	*n = head[1];
	compat_read_file(file, codes, *n * sizeof(uint64), false);
	return true;
}

void
values_flush(ValueStore *store)
{
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	if (store->npartitions == 0)
	{
		store->npartitions = store->nall_partitions =
			(int) Max(2, Min(64, store->mem_limit / 4 / BLCKSZ));
		store->partitions = palloc0(store->npartitions * sizeof(ValuePartition));
		for (int p = 0; p < store->npartitions; p++)
		{
			store->partitions[p].stride = store->npartitions;
			store->partitions[p].first = p;
		}
	}
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		ValuePartition *partition = &store->partitions[g % store->npartitions];
		NodeScan scan = scan_nodes(&store->groups[g]);
		const uint64 *codes;
		uint32 n;

		if (g % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		partition->codes += scan.left;
		while ((n = next_node(&scan, &codes)) > 0)
			values_write_codes(store, &partition->file, g, codes, n);
	}
	MemoryContextSwitchTo(old);
	values_clear(store);
}

/* ---- values in ------------------------------------------------------------------------ */

/*
 * Puts the values of all codes, in memory and in files, into sorts, and forgets the codes, which
 * are dictionary codes. All further values go to sorts, too.
 */
static void
move_codes_to_sorts(ValueStore *store)
{
	uint64 codes[LAST_NODE];
	uint32 group, n;

	values_begin_sorts(store, store->ngroups);
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		NodeScan scan = scan_nodes(&store->groups[g]);
		const uint64 *node;

		while ((n = next_node(&scan, &node)) > 0)
		{
			for (uint32 i = 0; i < n; i++)
				values_sort(store, g, values_of_dict_code(store, (int32) node[i]));
			CHECK_FOR_INTERRUPTS();
		}
	}
	values_clear(store);
	for (int p = 0; p < store->npartitions; p++)
	{
		partition_rewind(store->partitions[p].file);
		while (values_read_codes(store->partitions[p].file, &group, codes, &n))
		{
			for (uint32 i = 0; i < n; i++)
				values_sort(store, group, values_of_dict_code(store, (int32) codes[i]));
			CHECK_FOR_INTERRUPTS();
		}
	}
	values_close_files(store);
}

#define APPEND_LOOP(value_t, CODE) \
	do \
	{ \
		const value_t *values = (const value_t *) col->values; \
		for (int i = 0; i < nrows; i++) \
		{ \
			if (ahead && i + PREFETCH_ROWS < nrows && groups[i + PREFETCH_ROWS] != NO_VALUE_GROUP) \
				__builtin_prefetch(&store->groups[groups[i + PREFETCH_ROWS]], 1); \
			if (unlikely(groups[i] == NO_VALUE_GROUP) || \
				(col->validity && !bitmap_get(col->validity, i))) \
				continue; \
			{ \
				value_t x = values[i]; \
				append_code(store, groups[i], (CODE)); \
			} \
		} \
	} while (0)

/* Appends the codes of a column's values to the lists of their groups. */
static void
append_codes(ValueStore *store, const Column *col, const uint32 *groups, int nrows)
{
	/* the lists are not in the cache */
	bool ahead = store->ngroups > 4096;

	switch (col->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		APPEND_LOOP(value_t, select_code_i64(x)); \
		break;
		COLUMN_INTEGERS(X)
#undef X
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		APPEND_LOOP(value_t, select_code_f64(x)); \
		break;
		COLUMN_FLOATS(X)
#undef X
		default:
			elog(ERROR, "column type %d has no 64-bit codes", (int) col->type);
	}
}

/* Returns store->wrapped: the column's values wrapped into varlenas, valid until the next call. */
static const Column *
wrap_column(ValueStore *store, const Column *col, int nrows)
{
	Datum *to = store->wrapped.values;
	size_t bytes = 0;
	char *at;

	for (int i = 0; i < nrows; i++)
		if (!column_is_null(col, i))
			bytes +=
				MAXALIGN(WRAPPER_BYTES + values_wrapped_length(store, ((Datum *) col->values)[i]));
	if (store->wrappers)
		pfree(store->wrappers);
	at = store->wrappers = MemoryContextAllocHuge(store->parent, bytes + 1);
	for (int i = 0; i < nrows; i++)
		if (!column_is_null(col, i))
		{
			to[i] = values_wrap(store, at, ((Datum *) col->values)[i]);
			at += MAXALIGN(VARSIZE(at));
		}
	store->wrapped.validity = col->validity;
	return &store->wrapped;
}

/*
 * Sets dict_codes[]: finds or adds a column's values in the dictionary. Returns false if it has no
 * room for some of them.
 */
static bool
lookup_or_add_values(ValueStore *store, const Column *col, int nrows)
{
	bool complete = true;

	dictionary_lookup(store->dict, store->wraps ? wrap_column(store, col, nrows) : col, nrows,
					  PG_INT32_MAX, store->mem_limit / 2, store->dict_codes, store->dict_hashes);
	for (int i = 0; i < nrows; i++)
		complete &= store->dict_codes[i] != NO_CODE || column_is_null(col, i);
	return complete;
}

/*
 * Counts nrows more values, and returns whether the values so far are nearly unique. Then each
 * takes an entry of the dictionary, which is sorted without abbreviated keys, and core's sort is
 * faster. Returns false if other participants import the values: they import dictionaries only.
 */
static bool
dictionary_is_useless(ValueStore *store, int nrows)
{
	bool useless;

	store->looked_up += nrows;
	if (store->exported || store->looked_up < store->first_check / 2)
		return false;
	if (store->next_check == 0)
	{
		store->next_check = 2 * store->looked_up;
		store->check_from = dictionary_size(store->dict);
	}
	if (store->looked_up < store->next_check)
		return false;
	useless = dictionary_size(store->dict) - store->check_from > store->next_check / 4;
	store->next_check = 2 * store->looked_up;
	store->check_from = dictionary_size(store->dict);
	return useless;
}

/* Appends values of a type without codes, to the dictionary or to sorts. */
static void
append_datums(ValueStore *store, const Column *col, const uint32 *groups, int nrows)
{
	if (!store->sorting &&
		(!lookup_or_add_values(store, col, nrows) || dictionary_is_useless(store, nrows)))
		move_codes_to_sorts(store);
	for (int i = 0; i < nrows; i++)
	{
		if (column_is_null(col, i) || groups[i] == NO_VALUE_GROUP)
			continue;
		if (store->sorting)
			values_sort(store, groups[i], ((Datum *) col->values)[i]);
		else
			append_code(store, groups[i], (uint32) store->dict_codes[i]);
	}
}

void
values_make_room(ValueStore *store, uint32 ngroups)
{
	if (value_store_memory(store) > store->mem_limit && store->used > 0)
		values_flush(store);
	values_reserve_groups(store, ngroups);
}

void
value_store_append(ValueStore *store, const Column *col, const uint32 *groups, int nrows,
				   uint32 ngroups)
{
	values_make_room(store, ngroups);
	if (store->spec->coded)
		append_codes(store, col, groups, nrows);
	else
		append_datums(store, col, groups, nrows);
}
