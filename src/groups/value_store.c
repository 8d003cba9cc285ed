/*
 * value_store.c
 *	  Values of groups: in arrays, in files, and in a sort; see value_store.h.
 *
 * A group's codes are in a chain of chunks, each twice as long as the one before, so that a value is written once where
 * it stays, and memory is touched once.  To hand out a group they are copied to one place, and the wanted ranks are
 * selected there (select.h).  Codes in files are runs of one group each.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "common/compat.h"
#include "groups/dictionary.h"
#include "groups/table.h"
#include "groups/value_store.h"
#include "operators/select.h"

/* Words of a group's first chunk and of its largest ones; the first word is the address of the next chunk. */
#define FIRST_CHUNK 8
#define LAST_CHUNK 512
/* Words of what is allocated at once. */
#define FIRST_SLAB 1024
#define LAST_SLAB (2 * 1024 * 1024)
/* How many rows ahead the place of a group is fetched. */
#define AHEAD 12
/* Of values whose range is no larger, in relation to their number, the mode is found by counting. */
#define COUNTED_RANGE 4

/* The codes of a group. */
typedef struct GroupCodes
{
	uint64	   *at;				/* where the next one goes */
	uint64	   *end;			/* of the last chunk */
	uint64	   *first;			/* chunk */
	int64		before;			/* codes in chunks before the last */
	uint32		words;			/* of the last chunk; 0: none */
} GroupCodes;

/* Memory of chunks. */
typedef struct Slab
{
	uint64	   *words;
	size_t		size;
} Slab;

struct ValueStore
{
	const ValuesSpec *spec;
	ColumnSpec	col;
	MemoryContext parent;
	MemoryContext cxt;			/* all that value_store_reset frees */
	size_t		mem_limit;
	int			batch_rows;
	GroupCodes *groups;
	uint32		ngroups;		/* that there are chains for */
	uint32		max_groups;		/* that there is room for */
	Slab	   *slabs;
	int			nslabs;
	int			slab;			/* from which chunks are taken */
	size_t		slab_used;		/* words of it */
	size_t		used;			/* words of all */

	/* values without codes; those that are not varlenas are wrapped into one (wrap_value) */
	Dictionary *dict;
	bool		wraps;
	int32	   *dict_codes;		/* of a batch */
	uint32	   *dict_hashes;
	Column		wrapped;
	char	   *wrappers;
	uint32	   *rank_of;		/* [code]: place in the order */
	Datum	   *by_rank;
	uint32	   *class_of;		/* [rank]: the first rank of an equal value */

	/* beyond memory: codes by group */
	int			nparts;			/* 0: none */
	BufFile   **files;
	int64	   *file_codes;
	/* the dictionary is full: all values by group and value */
	Tuplesortstate *sort;
	TupleDesc	desc;
	TupleTableSlot *in;
	TupleTableSlot *out;
	int64	   *sort_counts;	/* [group] */
	uint32		sort_groups;	/* it has room for */
	uint64		spilled;

	/* groups out */
	uint32		nall;
	int			part;			/* that is being read */
	uint32		next_local;		/* its next group, by number / nparts */
	uint32		nlocal;
	uint64	   *codes;			/* of the group, in one place, and as many more */
	uint64	   *spare;
	int64		codes_size;
	bool		streams;		/* the part is in `sort` */
	int64		group_n;		/* of the group at hand, */
	int64		group_read;		/* and how many were read from `sort` */
	uint32		local;
	SortSupportData ssup;
	MemoryContext value_cxt;	/* values of the group, and what comparisons leave */
};

/* ---- life ------------------------------------------------------------------ */

static void
begin_empty(ValueStore *store)
{
	MemoryContext old;

	store->cxt = AllocSetContextCreate(store->parent, "gpuagg values", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(store->cxt);
	store->value_cxt = AllocSetContextCreate(store->cxt, "gpuagg values of a group", ALLOCSET_DEFAULT_SIZES);
	if (!store->spec->coded)
	{
		KeySpec		image = {.kind = KEY_DATUM, .eqfunc = F_BYTEAEQ};
		ColumnSpec	col = {.type = COLUMN_DATUM, .typid = BYTEAOID, .typlen = -1};

		store->dict = dictionary_create(store->cxt, &image, &col, store->batch_rows);
	}
	MemoryContextSwitchTo(old);
}

ValueStore *
value_store_create(MemoryContext parent, const ValuesSpec *spec, const ColumnSpec *col, int batch_rows, size_t mem_limit)
{
	MemoryContext old = MemoryContextSwitchTo(parent);
	ValueStore *store = palloc0(sizeof(ValueStore));

	store->parent = parent;
	store->spec = spec;
	store->col = *col;
	store->batch_rows = batch_rows;
	store->mem_limit = mem_limit;
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
	begin_empty(store);
	return store;
}

static void
close_files(ValueStore *store)
{
	for (int p = 0; p < store->nparts; p++)
		if (store->files[p])
			BufFileClose(store->files[p]);
	store->nparts = 0;
}

static void
end_sort(ValueStore *store)
{
	if (store->sort)
		tuplesort_end(store->sort);
	store->sort = NULL;
	if (store->in)
		ExecDropSingleTupleTableSlot(store->in);
	if (store->out)
		ExecDropSingleTupleTableSlot(store->out);
	store->in = store->out = NULL;
}

void
value_store_reset(ValueStore *store)
{
	close_files(store);
	end_sort(store);
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
	store->codes = store->spare = NULL;
	store->codes_size = 0;
	store->streams = false;
	begin_empty(store);
}

size_t
value_store_memory(const ValueStore *store)
{
	return store->used * sizeof(uint64) + store->max_groups * sizeof(GroupCodes) + (store->dict ? dictionary_memory(store->dict) : 0) +
		store->sort_groups * sizeof(int64);
}

uint64
value_store_spilled(const ValueStore *store)
{
	return store->spilled;
}

/* ---- chains of codes ------------------------------------------------------------ */

/* Makes chains for groups below n. */
static void
reserve_groups(ValueStore *store, uint32 n)
{
	if (n > store->max_groups)
	{
		uint32		size = Max(store->max_groups, 256);

		while (size < n)
			size = (uint32) Min((uint64) size * 2, PG_UINT32_MAX);
		if (store->groups)
			store->groups = repalloc_huge(store->groups, size * sizeof(GroupCodes));
		else
			store->groups = MemoryContextAllocHuge(store->cxt, size * sizeof(GroupCodes));
		group_table_advise_huge((char *) store->groups, size * sizeof(GroupCodes));
		store->max_groups = size;
	}
	if (n > store->ngroups)
	{
		memset(store->groups + store->ngroups, 0, (n - store->ngroups) * sizeof(GroupCodes));
		store->ngroups = n;
	}
}

/* So many words, at most LAST_CHUNK, until clear_groups. */
static uint64 *
take_words(ValueStore *store, uint32 words)
{
	uint64	   *result;

	while (store->slab < store->nslabs && store->slab_used + words > store->slabs[store->slab].size)
	{
		store->slab++;
		store->slab_used = 0;
	}
	if (store->slab == store->nslabs)
	{
		size_t		size = Max(FIRST_SLAB, Min(LAST_SLAB, Min(store->used, store->mem_limit / 8 / sizeof(uint64))));
		size_t		bytes = size * sizeof(uint64);

		if ((store->nslabs & (store->nslabs - 1)) == 0)
			store->slabs = store->nslabs > 0 ? repalloc(store->slabs, 2 * store->nslabs * sizeof(Slab)) :
				MemoryContextAlloc(store->cxt, sizeof(Slab));
		store->slabs[store->nslabs].words = MemoryContextAllocHuge(store->cxt, bytes);
		store->slabs[store->nslabs++].size = size;
		group_table_advise_huge((char *) store->slabs[store->slab].words, bytes);
		store->slab_used = 0;
	}
	result = store->slabs[store->slab].words + store->slab_used;
	store->slab_used += words;
	store->used += words;
	return result;
}

/* Adds a chunk. */
static pg_noinline void
extend_chain(ValueStore *store, GroupCodes *group)
{
	uint32		words = group->words == 0 ? FIRST_CHUNK : Min(group->words * 2, LAST_CHUNK);
	uint64	   *chunk = take_words(store, words);

	if (group->words == 0)
		group->first = chunk;
	else
	{
		*(group->end - group->words) = (uint64) (uintptr_t) chunk;
		group->before += group->words - 1;
	}
	group->words = words;
	group->at = chunk + 1;
	group->end = chunk + words;
}

static inline void
append_code(ValueStore *store, uint32 g, uint64 code)
{
	GroupCodes *group = &store->groups[g];

	if (unlikely(group->at == group->end))
		extend_chain(store, group);
	*group->at++ = code;
}

static int64
count_codes(const GroupCodes *group)
{
	return group->words == 0 ? 0 : group->before + (group->at - (group->end - group->words) - 1);
}

/* Visits the chunks of a group. */
typedef struct ChunkScan
{
	const uint64 *chunk;
	uint32		words;
	int64		left;			/* codes */
} ChunkScan;

static ChunkScan
scan_chunks(const GroupCodes *group)
{
	ChunkScan	scan = {group->first, FIRST_CHUNK, count_codes(group)};

	return scan;
}

/* The next codes; 0 at the end. */
static uint32
next_chunk(ChunkScan *scan, const uint64 **codes)
{
	uint32		n = (uint32) Min(scan->left, scan->words - 1);

	if (n == 0)
		return 0;
	*codes = scan->chunk + 1;
	scan->left -= n;
	if (scan->left > 0)
		scan->chunk = (const uint64 *) (uintptr_t) scan->chunk[0];
	scan->words = Min(scan->words * 2, LAST_CHUNK);
	return n;
}

/* Forgets all codes, and keeps the memory. */
static void
clear_groups(ValueStore *store)
{
	store->ngroups = 0;
	store->slab = 0;
	store->slab_used = store->used = 0;
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

static Datum
code_value(const ValueStore *store, uint64 code)
{
	return store->spec->coded ? value_of_code(store->col.type, code) : store->by_rank[code];
}

/* The code of a value that is equal to this one's, and the same for all that are equal. */
static inline uint64
code_class(const ValueStore *store, uint64 code)
{
	if (!store->spec->coded)
		return store->class_of[code];
	/* -0 = 0 */
	return column_is_float(store->col.type) && code == select_code_f64(-0.0) ? select_code_f64(0.0) : code;
}

/* A value that is no varlena, as one whose data are aligned. */
#define WRAPPER_BYTES 8

static size_t
wrapped_length(const ValueStore *store, Datum value)
{
	return store->col.typbyval ? sizeof(Datum) : datumGetSize(value, false, store->col.typlen);
}

static Datum
wrap_value(const ValueStore *store, char *to, Datum value)
{
	size_t		len = wrapped_length(store, value);

	memset(to, 0, WRAPPER_BYTES);
	SET_VARSIZE(to, WRAPPER_BYTES + len);
	memcpy(to + WRAPPER_BYTES, store->col.typbyval ? (char *) &value : DatumGetPointer(value), len);
	return PointerGetDatum(to);
}

static Datum
unwrap_value(const ValueStore *store, Datum wrapped)
{
	const char *data = DatumGetPointer(wrapped) + WRAPPER_BYTES;
	Datum		value;

	if (!store->wraps)
		return wrapped;
	if (!store->col.typbyval)
		return PointerGetDatum(data);
	memcpy(&value, data, sizeof(value));
	return value;
}

/* A value of the dictionary. */
static Datum
dict_value(const ValueStore *store, int32 code)
{
	bool		isnull;

	return unwrap_value(store, dictionary_value(store->dict, code, &isnull));
}

/* ---- the sort -------------------------------------------------------------------- */

static void
begin_sort(ValueStore *store)
{
	AttrNumber	atts[2] = {1, 2};
	Oid			ops[2] = {Int8LessOperator, store->spec->ltop};
	Oid			collations[2] = {InvalidOid, store->spec->collation};
	bool		nulls_first[2] = {false, false};
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	store->desc = CreateTemplateTupleDesc(2);
	TupleDescInitEntry(store->desc, 1, "group", INT8OID, -1, 0);
	TupleDescInitEntry(store->desc, 2, "value", store->col.typid, store->col.typmod, 0);
	store->in = MakeSingleTupleTableSlot(store->desc, &TTSOpsVirtual);
	store->out = MakeSingleTupleTableSlot(store->desc, &TTSOpsMinimalTuple);
	store->sort = tuplesort_begin_heap(store->desc, 2, atts, ops, collations, nulls_first,
									   (int) Min(Max(store->mem_limit / 1024, 64), MAX_KILOBYTES), NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
}

static void
sort_value(ValueStore *store, uint32 group, Datum value)
{
	ExecClearTuple(store->in);
	store->in->tts_values[0] = Int64GetDatum(group);
	store->in->tts_values[1] = value;
	store->in->tts_isnull[0] = store->in->tts_isnull[1] = false;
	ExecStoreVirtualTuple(store->in);
	tuplesort_puttupleslot(store->sort, store->in);
}

/* Makes room for the numbers of values of groups below n. */
static void
reserve_counts(ValueStore *store, uint32 n)
{
	uint32		size = Max(store->sort_groups, 1024);

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

static void
sort_counted(ValueStore *store, uint32 group, Datum value)
{
	reserve_counts(store, group + 1);
	store->sort_counts[group]++;
	sort_value(store, group, value);
}

/* ---- files ------------------------------------------------------------------------- */

/* Moves all codes to files. */
static void
flush_codes(ValueStore *store)
{
	MemoryContext old = MemoryContextSwitchTo(store->cxt);

	if (store->nparts == 0)
	{
		store->nparts = (int) Max(2, Min(64, store->mem_limit / 4 / BLCKSZ));
		store->files = palloc0(store->nparts * sizeof(BufFile *));
		store->file_codes = palloc0(store->nparts * sizeof(int64));
	}
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		int			p = g % store->nparts;
		ChunkScan	scan = scan_chunks(&store->groups[g]);
		const uint64 *codes;
		uint32		run[2] = {g};

		if (scan.left > 0 && store->files[p] == NULL)
			store->files[p] = BufFileCreateTemp(false);
		if (g % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		store->file_codes[p] += scan.left;
		while ((run[1] = next_chunk(&scan, &codes)) > 0)
		{
			BufFileWrite(store->files[p], run, sizeof(run));
			BufFileWrite(store->files[p], unconstify(uint64 *, codes), run[1] * sizeof(uint64));
			store->spilled += sizeof(run) + run[1] * sizeof(uint64);
		}
	}
	MemoryContextSwitchTo(old);
	clear_groups(store);
}

/* Reads the next run of a file; false at its end. */
static bool
read_run(BufFile *file, uint32 *group, uint64 *codes, uint32 *n)
{
	uint32		run[2];

	if (file == NULL || !compat_read_file(file, run, sizeof(run), true))
		return false;
	*group = run[0];
	*n = run[1];
	compat_read_file(file, codes, run[1] * sizeof(uint64), false);
	return true;
}

static void
rewind_file(BufFile *file)
{
	if (file && BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of aggregation")));
}

/* ---- values in ------------------------------------------------------------------------ */

/* Moves all codes, which are the dictionary's, to a sort, where all further values go. */
static void
codes_to_sort(ValueStore *store)
{
	uint64		codes[LAST_CHUNK];
	uint32		group,
				n;

	begin_sort(store);
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		ChunkScan	scan = scan_chunks(&store->groups[g]);
		const uint64 *chunk;

		while ((n = next_chunk(&scan, &chunk)) > 0)
			for (uint32 i = 0; i < n; i++)
				sort_counted(store, g, dict_value(store, (int32) chunk[i]));
		CHECK_FOR_INTERRUPTS();
	}
	clear_groups(store);
	for (int p = 0; p < store->nparts; p++)
	{
		rewind_file(store->files[p]);
		while (read_run(store->files[p], &group, codes, &n))
		{
			for (uint32 i = 0; i < n; i++)
				sort_counted(store, group, dict_value(store, (int32) codes[i]));
			CHECK_FOR_INTERRUPTS();
		}
	}
	close_files(store);
}

#define APPEND_LOOP(value_t, CODE) \
	do { \
		const value_t *values = (const value_t *) col->values; \
		for (int i = 0; i < nrows; i++) \
		{ \
			if (ahead && i + AHEAD < nrows && groups[i + AHEAD] != NO_VALUE_GROUP) \
				__builtin_prefetch(&store->groups[groups[i + AHEAD]], 1); \
			if (unlikely(groups[i] == NO_VALUE_GROUP) || (col->validity && !bitmap_get(col->validity, i))) \
				continue; \
			{ \
				value_t		x = values[i]; \
				append_code(store, groups[i], (CODE)); \
			} \
		} \
	} while (0)

static void
append_codes(ValueStore *store, const Column *col, const uint32 *groups, int nrows)
{
	/* their chains are not in the cache */
	bool		ahead = store->ngroups > 4096;

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

/* The values of a column, not varlenas, as such. */
static const Column *
wrap_column(ValueStore *store, const Column *col, int nrows)
{
	Datum	   *to = store->wrapped.values;
	size_t		bytes = 0;
	char	   *at;

	for (int i = 0; i < nrows; i++)
		if (!column_is_null(col, i))
			bytes += MAXALIGN(WRAPPER_BYTES + wrapped_length(store, ((Datum *) col->values)[i]));
	if (store->wrappers)
		pfree(store->wrappers);
	at = store->wrappers = MemoryContextAllocHuge(store->parent, bytes + 1);
	for (int i = 0; i < nrows; i++)
		if (!column_is_null(col, i))
		{
			to[i] = wrap_value(store, at, ((Datum *) col->values)[i]);
			at += MAXALIGN(VARSIZE(at));
		}
	store->wrapped.validity = col->validity;
	return &store->wrapped;
}

/* Looks up the values of rows; false if the dictionary has no room for some of them. */
static bool
look_up(ValueStore *store, const Column *col, int nrows)
{
	bool		complete = true;

	dictionary_lookup(store->dict, store->wraps ? wrap_column(store, col, nrows) : col, nrows, PG_INT32_MAX,
					  store->mem_limit / 2, store->dict_codes, store->dict_hashes);
	for (int i = 0; i < nrows; i++)
		complete &= store->dict_codes[i] != NO_CODE || column_is_null(col, i);
	return complete;
}

static void
append_datums(ValueStore *store, const Column *col, const uint32 *groups, int nrows)
{
	if (!store->sort && !look_up(store, col, nrows))
		codes_to_sort(store);
	for (int i = 0; i < nrows; i++)
	{
		if (column_is_null(col, i) || groups[i] == NO_VALUE_GROUP)
			continue;
		if (store->sort)
			sort_counted(store, groups[i], ((Datum *) col->values)[i]);
		else
			append_code(store, groups[i], (uint32) store->dict_codes[i]);
	}
}

/* Before some values: moves those that are there to files if memory is used up. */
static void
make_room(ValueStore *store, uint32 ngroups)
{
	if (value_store_memory(store) > store->mem_limit && store->used > 0)
		flush_codes(store);
	reserve_groups(store, ngroups);
}

void
value_store_append(ValueStore *store, const Column *col, const uint32 *groups, int nrows, uint32 ngroups)
{
	make_room(store, ngroups);
	if (store->spec->coded)
		append_codes(store, col, groups, nrows);
	else
		append_datums(store, col, groups, nrows);
}

/* ---- groups out ---------------------------------------------------------------------------- */

typedef struct OrderedCode
{
	int32		code;
	Datum		value;
} OrderedCode;

static int
compare_codes(const void *a, const void *b, void *arg)
{
	const OrderedCode *x = a;
	const OrderedCode *y = b;
	ValueStore *store = arg;
	int			order = ApplySortComparator(x->value, false, y->value, false, &store->ssup);

	/* equal values that look different in the order in which they came */
	return order != 0 ? order : x->code - y->code;
}

/* The order of the dictionary's values. */
static void
order_dictionary(ValueStore *store)
{
	int			n = dictionary_size(store->dict);
	OrderedCode *order = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(OrderedCode));
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);
	int			ranks = 0;

	store->rank_of = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(uint32));
	store->by_rank = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(Datum));
	store->class_of = MemoryContextAllocHuge(store->cxt, (n + 1) * sizeof(uint32));
	for (int32 c = 0; c < n; c++)
	{
		bool		isnull;

		(void) dictionary_value(store->dict, c, &isnull);
		if (isnull)
			continue;
		order[ranks].code = c;
		order[ranks++].value = dict_value(store, c);
	}
	qsort_interruptible(order, ranks, sizeof(OrderedCode), compare_codes, store);
	for (int r = 0; r < ranks; r++)
	{
		bool		equal = r > 0 && ApplySortComparator(order[r - 1].value, false, order[r].value, false, &store->ssup) == 0;

		store->rank_of[order[r].code] = r;
		store->by_rank[r] = order[r].value;
		store->class_of[r] = equal ? store->class_of[r - 1] : r;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(store->value_cxt);
	pfree(order);
}

static uint32
local_groups(const ValueStore *store, int part)
{
	uint32		parts = Max(store->nparts, 1);

	return store->nall > (uint32) part ? (store->nall - part - 1) / parts + 1 : 0;
}

/* Sorts a partition that is too large. */
static void
sort_part(ValueStore *store, BufFile *file)
{
	uint64		codes[LAST_CHUNK];
	uint32		group,
				n;

	begin_sort(store);
	reserve_counts(store, store->nlocal);
	memset(store->sort_counts, 0, store->nlocal * sizeof(int64));
	while (read_run(file, &group, codes, &n))
	{
		for (uint32 i = 0; i < n; i++)
			sort_counted(store, group / store->nparts,
						 store->spec->coded ? code_value(store, codes[i]) : dict_value(store, (int32) codes[i]));
		CHECK_FOR_INTERRUPTS();
	}
	tuplesort_performsort(store->sort);
}

/* Reads a partition; its groups are numbered anew. */
static void
load_part(ValueStore *store, BufFile *file)
{
	uint64		codes[LAST_CHUNK];
	uint32		group,
				n;

	clear_groups(store);
	reserve_groups(store, store->nlocal);
	while (read_run(file, &group, codes, &n))
	{
		for (uint32 i = 0; i < n; i++)
			append_code(store, group / store->nparts, codes[i]);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Prepares the next partition; false if there is none. */
static bool
next_part(ValueStore *store)
{
	if (store->streams)
		end_sort(store);
	store->streams = false;
	if (++store->part >= Max(store->nparts, 1))
		return false;
	store->nlocal = local_groups(store, store->part);
	store->next_local = 0;
	store->group_n = store->group_read = 0;
	if (store->nparts > 0)
	{
		BufFile    *file = store->files[store->part];

		rewind_file(file);
		store->streams = store->file_codes[store->part] * (int64) (2 * sizeof(uint64)) > (int64) store->mem_limit;
		if (store->streams)
			sort_part(store, file);
		else
			load_part(store, file);
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
	if (store->sort)
	{
		/* all in one */
		reserve_counts(store, ngroups);
		tuplesort_performsort(store->sort);
		store->streams = true;
		store->part = 0;
		store->nlocal = ngroups;
		return;
	}
	if (store->dict)
		order_dictionary(store);
	reserve_groups(store, ngroups);
	if (store->nparts > 0)
		flush_codes(store);
}

/* The next value of the group in the sort, valid until the one after; false at its end. */
static bool
read_sorted(ValueStore *store, Datum *value)
{
	bool		isnull;

	if (store->group_read == store->group_n)
		return false;
	if (!tuplesort_gettupleslot(store->sort, true, false, store->out, NULL))
		elog(ERROR, "sorted values end early");
	store->group_read++;
	*value = slot_getattr(store->out, 2, &isnull);
	return true;
}

bool
value_store_next(ValueStore *store, uint32 *group, int64 *n)
{
	Datum		value;

	MemoryContextReset(store->value_cxt);
	/* what was not asked for */
	while (store->streams && read_sorted(store, &value))
		if (store->group_read % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
	while (store->next_local >= store->nlocal)
		if (!next_part(store))
			return false;
	store->local = store->next_local++;
	*group = store->local * Max(store->nparts, 1) + store->part;
	store->group_n = store->streams ? store->sort_counts[store->local] :
		count_codes(&store->groups[store->local]);
	store->group_read = 0;
	*n = store->group_n;
	return true;
}

/* ---- the mode ------------------------------------------------------------------------------------ */

#define ST_SORT sort_codes
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Runs of equal values, in their order. */
typedef struct Runs
{
	uint64		code;			/* the first of the run */
	int64		n;
	int64		best[2];		/* the longest; of several the first and the last one */
	uint64		mode[2];
} Runs;

static inline void
end_run(Runs *runs)
{
	if (runs->n > runs->best[0])
	{
		runs->best[0] = runs->n;
		runs->mode[0] = runs->code;
	}
	if (runs->n > 0 && runs->n >= runs->best[1])
	{
		runs->best[1] = runs->n;
		runs->mode[1] = runs->code;
	}
}

static inline void
add_to_run(const ValueStore *store, Runs *runs, uint64 code, int64 n)
{
	if (runs->n > 0 && code_class(store, runs->code) == code_class(store, code))
	{
		runs->n += n;
		return;
	}
	end_run(runs);
	runs->code = code;
	runs->n = n;
}

/* Codes may be sorted by it. */
static void
find_mode(ValueStore *store, uint64 *codes, int64 n, Datum *mode)
{
	Runs		runs = {0};
	uint64		min = codes[0],
				max = codes[0];

	for (int64 i = 1; i < n; i++)
	{
		min = Min(min, codes[i]);
		max = Max(max, codes[i]);
	}
	if (n < PG_UINT32_MAX && max - min < (uint64) n * COUNTED_RANGE)
	{
		uint32	   *counts = MemoryContextAllocExtended(store->value_cxt, (max - min + 1) * sizeof(uint32),
														MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

		for (int64 i = 0; i < n; i++)
			counts[codes[i] - min]++;
		for (uint64 c = 0; c <= max - min; c++)
			if (counts[c] > 0)
				add_to_run(store, &runs, min + c, counts[c]);
		pfree(counts);
	}
	else
	{
		sort_codes(codes, n);
		for (int64 i = 0; i < n; i++)
			add_to_run(store, &runs, codes[i], 1);
	}
	end_run(&runs);
	mode[0] = code_value(store, runs.mode[0]);
	mode[1] = code_value(store, runs.mode[1]);
}

/* ---- values of ranks -------------------------------------------------------------------------------- */

static Datum
copy_value(ValueStore *store, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);

	value = datumCopy(value, store->col.typbyval, store->col.typlen);
	MemoryContextSwitchTo(old);
	return value;
}

/* The same from the sort. */
static void
fetch_sorted(ValueStore *store, const int64 *ranks, int m, Datum *values, Datum *mode)
{
	MemoryContext scratch = AllocSetContextCreate(store->value_cxt, "gpuagg comparison", ALLOCSET_SMALL_SIZES);
	Datum		value,
				first = (Datum) 0;
	int64		run = 0,
				best[2] = {0, 0};
	int			i = 0;

	while ((mode || i < m) && read_sorted(store, &value))
	{
		if (i < m && ranks[i] == store->group_read - 1)
			values[i++] = copy_value(store, value);
		if (store->group_read % 1024 == 0)
		{
			CHECK_FOR_INTERRUPTS();
			MemoryContextReset(scratch);
		}
		if (mode)
		{
			MemoryContext old = MemoryContextSwitchTo(scratch);
			bool		same = run > 0 && ApplySortComparator(first, false, value, false, &store->ssup) == 0;

			MemoryContextSwitchTo(old);
			if (!same)
			{
				/* the value before is no longer needed, unless it is a mode */
				if (run > 0 && !store->col.typbyval && mode[0] != first && mode[1] != first)
					pfree(DatumGetPointer(first));
				first = copy_value(store, value);
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
		}
	}
	MemoryContextDelete(scratch);
}

/* Copies the group's codes to one place; of a dictionary's values they become their ranks. */
static void
collect_codes(ValueStore *store)
{
	ChunkScan	scan = scan_chunks(&store->groups[store->local]);
	const uint64 *chunk;
	uint64	   *to;
	uint32		n;

	if (scan.left > store->codes_size)
	{
		if (store->codes)
		{
			pfree(store->codes);
			pfree(store->spare);
		}
		store->codes_size = Max(scan.left + scan.left / 8, 1024);
		store->codes = MemoryContextAllocHuge(store->cxt, store->codes_size * sizeof(uint64));
		store->spare = MemoryContextAllocHuge(store->cxt, store->codes_size * sizeof(uint64));
	}
	to = store->codes;
	while ((n = next_chunk(&scan, &chunk)) > 0)
	{
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
	uint64	   *found;

	if (mode)
		mode[0] = mode[1] = (Datum) 0;
	if (store->group_n == 0)
		return;
	if (store->streams)
	{
		fetch_sorted(store, ranks, m, values, mode);
		return;
	}
	CHECK_FOR_INTERRUPTS();
	collect_codes(store);
	if (mode)
		find_mode(store, store->codes, store->group_n, mode);
	if (m == 0)
		return;
	found = MemoryContextAlloc(store->value_cxt, m * sizeof(uint64));
	select_ranks(store->codes, store->spare, store->group_n, ranks, 0, m, found);
	for (int i = 0; i < m; i++)
		values[i] = code_value(store, found[i]);
}

/* ---- to other stores --------------------------------------------------------------------------------- */

static void
write_value(GroupSink *sink, Datum varlena)
{
	uint32		len = VARSIZE_ANY(DatumGetPointer(varlena));

	sink->write(sink, &len, sizeof(len));
	sink->write(sink, DatumGetPointer(varlena), len);
}

static void
write_run(GroupSink *sink, uint32 group, const uint64 *codes, uint32 n)
{
	uint32		run[2] = {group, n};

	sink->write(sink, run, sizeof(run));
	sink->write(sink, codes, n * sizeof(uint64));
}

/* The dictionary's values, runs of codes, and at last what is in a sort, by group. */
void
value_store_export(ValueStore *store, GroupSink *sink)
{
	uint32		n = store->dict && !store->sort ? dictionary_size(store->dict) : 0;
	uint32		none = NO_VALUE_GROUP;
	uint32		zero = 0;
	uint32		group;
	uint64		codes[LAST_CHUNK];
	int64		count;
	Datum		value;

	sink->write(sink, &n, sizeof(n));
	for (uint32 c = 0; c < n; c++)
	{
		bool		isnull;
		Datum		stored = dictionary_value(store->dict, c, &isnull);

		if (isnull)
			sink->write(sink, &zero, sizeof(zero));
		else
			write_value(sink, stored);
	}
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		ChunkScan	scan = scan_chunks(&store->groups[g]);
		const uint64 *chunk;

		while ((n = next_chunk(&scan, &chunk)) > 0)
			write_run(sink, g, chunk, n);
		CHECK_FOR_INTERRUPTS();
	}
	for (int p = 0; p < store->nparts; p++)
	{
		rewind_file(store->files[p]);
		while (read_run(store->files[p], &group, codes, &n))
			write_run(sink, group, codes, n);
		CHECK_FOR_INTERRUPTS();
	}
	write_run(sink, NO_VALUE_GROUP, codes, 0);
	if (store->sort)
	{
		value_store_begin(store, store->sort_groups);
		while (value_store_next(store, &group, &count))
			while (read_sorted(store, &value))
			{
				char	   *wrapped = NULL;

				sink->write(sink, &group, sizeof(group));
				if (store->wraps)
				{
					wrapped = palloc(WRAPPER_BYTES + wrapped_length(store, value));
					value = wrap_value(store, wrapped, value);
				}
				write_value(sink, value);
				if (wrapped)
					pfree(wrapped);
			}
	}
	sink->write(sink, &none, sizeof(none));
}

static void
read_bytes(GroupSource *source, void *data, size_t len)
{
	if (len > 0 && !source->read(source, data, len))
		elog(ERROR, "values of another participant end early");
}

/* NULL where none was written. */
static Datum
read_value(GroupSource *source)
{
	uint32		len;
	char	   *value;

	read_bytes(source, &len, sizeof(len));
	if (len == 0)
		return (Datum) 0;
	value = palloc(len);
	read_bytes(source, value, len);
	return PointerGetDatum(value);
}

/* Reads a dictionary: its values, and their codes in this one, or NO_CODE. */
static Datum *
import_dictionary(ValueStore *store, GroupSource *source, uint32 *n, int32 **codes)
{
	Datum	   *values;

	read_bytes(source, n, sizeof(*n));
	values = palloc_extended((*n + 1) * sizeof(Datum), MCXT_ALLOC_HUGE);
	*codes = palloc_extended((*n + 1) * sizeof(int32), MCXT_ALLOC_HUGE);
	for (uint32 c = 0; c < *n; c++)
		values[c] = read_value(source);
	for (uint32 c = 0; c < *n; c += store->batch_rows)
	{
		int			rows = (int) Min((uint32) store->batch_rows, *n - c);
		Column		col = {.type = COLUMN_DATUM, .values = values + c};

		CHECK_FOR_INTERRUPTS();
		col.validity = palloc0(BITMAP_WORDS(rows) * sizeof(uint64));
		for (int i = 0; i < rows; i++)
			if (DatumGetPointer(values[c + i]) != NULL)
				bitmap_set(col.validity, i);
		dictionary_lookup(store->dict, &col, rows, PG_INT32_MAX, store->mem_limit / 2, *codes + c, store->dict_hashes);
	}
	return values;
}

void
value_store_import(ValueStore *store, GroupSource *source, const uint32 *groups, uint32 ngroups, ValueRefused refused,
				   void *arg)
{
	MemoryContext cxt = AllocSetContextCreate(store->parent, "gpuagg imported values", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	int32	   *codes = NULL;
	uint32		ndict;
	Datum	   *values = import_dictionary(store, source, &ndict, &codes);
	uint64		from[LAST_CHUNK];
	uint32		run[2];
	uint32		group;

	for (;;)
	{
		uint32		to;

		CHECK_FOR_INTERRUPTS();
		read_bytes(source, run, sizeof(run));
		if (run[0] == NO_VALUE_GROUP)
			break;
		read_bytes(source, from, run[1] * sizeof(uint64));
		to = groups[run[0]];
		if (to != NO_VALUE_GROUP)
			make_room(store, to + 1);
		for (uint32 i = 0; i < run[1]; i++)
		{
			bool		datum = !store->spec->coded;

			if (to == NO_VALUE_GROUP || (datum && (store->sort || codes[from[i]] == NO_CODE)))
				refused(arg, run[0], datum ? unwrap_value(store, values[from[i]]) : code_value(store, from[i]));
			else
			{
				/* what was refused may have gone to files */
				reserve_groups(store, to + 1);
				append_code(store, to, datum ? (uint64) codes[from[i]] : from[i]);
			}
		}
	}
	for (;;)
	{
		Datum		value;

		read_bytes(source, &group, sizeof(group));
		if (group == NO_VALUE_GROUP)
			break;
		value = read_value(source);
		refused(arg, group, unwrap_value(store, value));
		pfree(DatumGetPointer(value));
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}
