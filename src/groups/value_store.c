/*
 * value_store.c
 *	  Values of groups: in arrays, in files, and in a sort; see value_store.h.
 *
 * To hand out groups, the pairs in memory, or those of one partition, are brought into the order of their groups by
 * counting, and the wanted ranks are selected (select.h).
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

/* Bytes of a pair in memory: itself, and where it goes when pairs are ordered by their groups. */
#define PAIR_BYTES (2 * (sizeof(uint32) + sizeof(uint64)))
#define FIRST_PAIRS 8192
/* Pairs of a block that is exported. */
#define EXPORT_PAIRS 16384
/* Of values whose range is no larger, in relation to their number, the mode is found by counting. */
#define COUNTED_RANGE 4

/* Pairs in one array each. */
typedef struct Pairs
{
	uint32	   *groups;
	uint64	   *codes;
	int64		n;
	int64		capacity;
} Pairs;

struct ValueStore
{
	const ValuesSpec *spec;
	ColumnSpec	col;
	MemoryContext parent;
	MemoryContext cxt;			/* all that value_store_reset frees */
	size_t		mem_limit;
	int			batch_rows;
	Pairs		pairs;

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

	/* beyond memory: pairs by group */
	int			nparts;			/* 0: none */
	BufFile   **files;
	int64	   *file_pairs;
	/* the dictionary is full: all values by group and value */
	Tuplesortstate *sort;
	TupleDesc	desc;
	TupleTableSlot *in;
	TupleTableSlot *out;
	int64	   *sort_counts;	/* [group] */
	uint32		sort_groups;	/* it has room for */
	uint64		spilled;

	/* groups out */
	uint32		ngroups;
	int			part;			/* that is being read */
	uint32		next_local;		/* its next group, by number / nparts */
	uint32		nlocal;
	Pairs		ordered;
	int64	   *starts;			/* [local group], and the end */
	uint64	   *spare;
	int64		spare_size;
	uint32	   *counts;			/* for the mode */
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
	memset(&store->pairs, 0, sizeof(Pairs));
	memset(&store->ordered, 0, sizeof(Pairs));
	store->dict = NULL;
	store->rank_of = store->class_of = NULL;
	store->by_rank = NULL;
	store->sort_counts = NULL;
	store->sort_groups = 0;
	store->starts = NULL;
	store->spare = NULL;
	store->spare_size = 0;
	store->counts = NULL;
	store->streams = false;
	begin_empty(store);
}

size_t
value_store_memory(const ValueStore *store)
{
	return store->pairs.capacity * PAIR_BYTES + (store->dict ? dictionary_memory(store->dict) : 0) +
		store->sort_groups * sizeof(int64);
}

uint64
value_store_spilled(const ValueStore *store)
{
	return store->spilled;
}

static void *
grow_array(ValueStore *store, void *array, size_t bytes)
{
	array = array ? repalloc_huge(array, bytes) : MemoryContextAllocHuge(store->cxt, bytes);
	group_table_advise_huge(array, bytes);
	return array;
}

static void
reserve_pairs(ValueStore *store, Pairs *pairs, int64 n)
{
	int64		capacity = Max(pairs->capacity, FIRST_PAIRS);

	if (n <= pairs->capacity)
		return;
	while (capacity < n)
		capacity *= 2;
	pairs->groups = grow_array(store, pairs->groups, capacity * sizeof(uint32));
	pairs->codes = grow_array(store, pairs->codes, capacity * sizeof(uint64));
	pairs->capacity = capacity;
}

/* ---- values and codes --------------------------------------------------------- */

static Datum
code_value(const ValueStore *store, uint64 code)
{
	if (!store->spec->coded)
		return store->by_rank[code];
	switch (store->col.type)
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
			elog(ERROR, "column type %d has no 64-bit codes", (int) store->col.type);
	}
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

static void
flush_pairs(ValueStore *store)
{
	Pairs	   *pairs = &store->pairs;
	Pairs		out = {0};
	int64		at[65] = {0};

	if (store->nparts == 0)
	{
		store->nparts = (int) Max(2, Min(64, store->mem_limit / 4 / BLCKSZ));
		store->files = MemoryContextAllocZero(store->cxt, store->nparts * sizeof(BufFile *));
		store->file_pairs = MemoryContextAllocZero(store->cxt, store->nparts * sizeof(int64));
	}
	out.groups = MemoryContextAllocHuge(store->cxt, (pairs->n + 1) * sizeof(uint32));
	out.codes = MemoryContextAllocHuge(store->cxt, (pairs->n + 1) * sizeof(uint64));
	for (int64 i = 0; i < pairs->n; i++)
		at[pairs->groups[i] % store->nparts + 1]++;
	for (int p = 0; p < store->nparts; p++)
		at[p + 1] += at[p];
	for (int64 i = 0; i < pairs->n; i++)
	{
		int64	   *to = &at[pairs->groups[i] % store->nparts];

		out.groups[*to] = pairs->groups[i];
		out.codes[(*to)++] = pairs->codes[i];
	}
	for (int p = 0; p < store->nparts; p++)
	{
		int64		from = p == 0 ? 0 : at[p - 1];
		int64		n = at[p] - from;
		MemoryContext old;

		CHECK_FOR_INTERRUPTS();
		if (n == 0)
			continue;
		old = MemoryContextSwitchTo(store->cxt);
		if (store->files[p] == NULL)
			store->files[p] = BufFileCreateTemp(false);
		BufFileWrite(store->files[p], &n, sizeof(n));
		BufFileWrite(store->files[p], out.groups + from, n * sizeof(uint32));
		BufFileWrite(store->files[p], out.codes + from, n * sizeof(uint64));
		MemoryContextSwitchTo(old);
		store->file_pairs[p] += n;
		store->spilled += sizeof(n) + n * (sizeof(uint32) + sizeof(uint64));
	}
	pfree(out.groups);
	pfree(out.codes);
	pairs->n = 0;
}

/* Reads the next block of a file; false at its end. */
static bool
read_block(ValueStore *store, BufFile *file, Pairs *pairs)
{
	int64		n;

	if (file == NULL || !compat_read_file(file, &n, sizeof(n), true))
		return false;
	CHECK_FOR_INTERRUPTS();
	reserve_pairs(store, pairs, pairs->n + n);
	compat_read_file(file, pairs->groups + pairs->n, n * sizeof(uint32), false);
	compat_read_file(file, pairs->codes + pairs->n, n * sizeof(uint64), false);
	pairs->n += n;
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

static void
sort_pairs(ValueStore *store)
{
	Pairs	   *pairs = &store->pairs;

	for (int64 i = 0; i < pairs->n; i++)
		sort_counted(store, pairs->groups[i], dict_value(store, (int32) pairs->codes[i]));
	pairs->n = 0;
}

/* Moves all pairs, whose codes are the dictionary's, to a sort, where all further values go. */
static void
pairs_to_sort(ValueStore *store)
{
	begin_sort(store);
	sort_pairs(store);
	for (int p = 0; p < store->nparts; p++)
	{
		rewind_file(store->files[p]);
		while (read_block(store, store->files[p], &store->pairs))
			sort_pairs(store);
	}
	close_files(store);
}

/* Appends n values of codes that some expression gives, without a branch for rows that have none. */
#define APPEND_LOOP(value_t, CODE) \
	do { \
		const value_t *values = (const value_t *) col->values; \
		if (col->validity) \
			for (int i = 0; i < nrows; i++) \
			{ \
				value_t		x = values[i]; \
				to_groups[n] = groups[i]; \
				to_codes[n] = (CODE); \
				n += bitmap_get(col->validity, i) & (groups[i] != NO_VALUE_GROUP); \
			} \
		else \
			for (int i = 0; i < nrows; i++) \
			{ \
				value_t		x = values[i]; \
				to_groups[n] = groups[i]; \
				to_codes[n] = (CODE); \
				n += groups[i] != NO_VALUE_GROUP; \
			} \
	} while (0)

static void
append_codes(ValueStore *store, const Column *col, const uint32 *groups, int nrows)
{
	uint32	   *to_groups = store->pairs.groups + store->pairs.n;
	uint64	   *to_codes = store->pairs.codes + store->pairs.n;
	int			n = 0;

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
	store->pairs.n += n;
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
	Pairs	   *pairs = &store->pairs;

	if (!store->sort && !look_up(store, col, nrows))
		pairs_to_sort(store);
	for (int i = 0; i < nrows; i++)
	{
		if (column_is_null(col, i) || groups[i] == NO_VALUE_GROUP)
			continue;
		if (store->sort)
			sort_counted(store, groups[i], ((Datum *) col->values)[i]);
		else
		{
			pairs->groups[pairs->n] = groups[i];
			pairs->codes[pairs->n++] = (uint32) store->dict_codes[i];
		}
	}
}

/* Makes room for n pairs, in memory or by writing what is there to files. */
static void
make_room(ValueStore *store, int n)
{
	Pairs	   *pairs = &store->pairs;
	size_t		dict = store->dict ? dictionary_memory(store->dict) : 0;
	int64		most = store->mem_limit > dict ? (store->mem_limit - dict) / PAIR_BYTES : 0;

	if (pairs->n + n > pairs->capacity && Max(pairs->capacity, FIRST_PAIRS / 2) * 2 > Max(most, FIRST_PAIRS) && pairs->n > 0)
		flush_pairs(store);
	reserve_pairs(store, pairs, pairs->n + n);
}

void
value_store_append(ValueStore *store, const Column *col, const uint32 *groups, int nrows)
{
	make_room(store, nrows);
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

	return store->ngroups > (uint32) part ? (store->ngroups - part - 1) / parts + 1 : 0;
}

/* Brings the pairs into the order of their groups. */
static void
order_pairs(ValueStore *store, Pairs *pairs)
{
	uint32		parts = Max(store->nparts, 1);
	int64	   *at;
	int64		most = 0;

	store->starts = grow_array(store, store->starts, (store->nlocal + 2) * sizeof(int64));
	at = store->starts;
	memset(at, 0, (store->nlocal + 2) * sizeof(int64));
	if (store->rank_of)
		for (int64 i = 0; i < pairs->n; i++)
			pairs->codes[i] = store->rank_of[pairs->codes[i]];
	if (store->nlocal <= 1)
	{
		/* there is nothing to be ordered */
		at[1] = pairs->n;
		store->ordered.codes = pairs->codes;
		most = pairs->n;
	}
	else
	{
		if (parts > 1)
			for (int64 i = 0; i < pairs->n; i++)
				pairs->groups[i] /= parts;
		if (store->ordered.capacity < pairs->n)
		{
			store->ordered.codes = grow_array(store, store->ordered.capacity > 0 ? store->ordered.codes : NULL,
											  pairs->n * sizeof(uint64));
			store->ordered.capacity = pairs->n;
		}
		for (int64 i = 0; i < pairs->n; i++)
			at[pairs->groups[i] + 2]++;
		for (uint32 g = 2; g <= store->nlocal; g++)
		{
			most = Max(most, at[g]);
			at[g] += at[g - 1];
		}
		most = Max(most, at[store->nlocal + 1]);
		for (int64 i = 0; i < pairs->n; i++)
			store->ordered.codes[at[pairs->groups[i] + 1]++] = pairs->codes[i];
	}
	if (store->spare_size < most)
	{
		store->spare = grow_array(store, store->spare, most * sizeof(uint64));
		store->spare_size = most;
	}
}

/* Sorts a partition that is too large. */
static void
sort_part(ValueStore *store, BufFile *file)
{
	begin_sort(store);
	reserve_counts(store, store->nlocal);
	memset(store->sort_counts, 0, store->nlocal * sizeof(int64));
	while (read_block(store, file, &store->pairs))
	{
		for (int64 i = 0; i < store->pairs.n; i++)
		{
			uint64		code = store->pairs.codes[i];

			sort_counted(store, store->pairs.groups[i] / store->nparts,
						 store->spec->coded ? code_value(store, code) : dict_value(store, (int32) code));
		}
		store->pairs.n = 0;
	}
	tuplesort_performsort(store->sort);
}

/* Prepares the next partition; false if there is none. */
static bool
next_part(ValueStore *store)
{
	if (store->streams)
		end_sort(store);
	store->streams = false;
	store->pairs.n = store->part < 0 && store->nparts == 0 ? store->pairs.n : 0;
	if (++store->part >= Max(store->nparts, 1))
		return false;
	store->nlocal = local_groups(store, store->part);
	store->next_local = 0;
	store->group_n = store->group_read = 0;
	if (store->nparts > 0)
	{
		BufFile    *file = store->files[store->part];

		rewind_file(file);
		store->streams = store->file_pairs[store->part] * PAIR_BYTES > Max(store->mem_limit, 2 * FIRST_PAIRS * PAIR_BYTES);
		if (store->streams)
		{
			sort_part(store, file);
			return true;
		}
		while (read_block(store, file, &store->pairs))
			;
	}
	order_pairs(store, &store->pairs);
	return true;
}

void
value_store_begin(ValueStore *store, uint32 ngroups)
{
	store->ngroups = ngroups;
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
	if (store->nparts > 0 && store->pairs.n > 0)
		flush_pairs(store);
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
		store->starts[store->local + 1] - store->starts[store->local];
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

void
value_store_fetch(ValueStore *store, const int64 *ranks, int m, Datum *values, Datum *mode)
{
	uint64	   *codes;
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
	codes = store->ordered.codes + store->starts[store->local];
	if (mode)
		find_mode(store, codes, store->group_n, mode);
	if (m == 0)
		return;
	found = MemoryContextAlloc(store->value_cxt, m * sizeof(uint64));
	select_ranks(codes, store->spare, store->group_n, ranks, 0, m, found);
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
write_blocks(const Pairs *pairs, GroupSink *sink)
{
	for (int64 i = 0; i < pairs->n; i += EXPORT_PAIRS)
	{
		uint32		n = (uint32) Min(pairs->n - i, EXPORT_PAIRS);

		CHECK_FOR_INTERRUPTS();
		sink->write(sink, &n, sizeof(n));
		sink->write(sink, pairs->groups + i, n * sizeof(uint32));
		sink->write(sink, pairs->codes + i, n * sizeof(uint64));
	}
}

/* The dictionary's values, pairs, and at last what is in a sort, by group. */
void
value_store_export(ValueStore *store, GroupSink *sink)
{
	uint32		n = store->dict && !store->sort ? dictionary_size(store->dict) : 0;
	uint32		none = NO_VALUE_GROUP;
	uint32		zero = 0;
	uint32		group;
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
	write_blocks(&store->pairs, sink);
	store->pairs.n = 0;
	for (int p = 0; p < store->nparts; p++)
	{
		rewind_file(store->files[p]);
		while (read_block(store, store->files[p], &store->pairs))
		{
			write_blocks(&store->pairs, sink);
			store->pairs.n = 0;
		}
	}
	sink->write(sink, &zero, sizeof(zero));
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
	uint32		ndict,
				n;
	Datum	   *values = import_dictionary(store, source, &ndict, &codes);
	uint32	   *from_groups = palloc(EXPORT_PAIRS * sizeof(uint32));
	uint64	   *from_codes = palloc(EXPORT_PAIRS * sizeof(uint64));
	uint32		group;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		read_bytes(source, &n, sizeof(n));
		if (n == 0)
			break;
		read_bytes(source, from_groups, n * sizeof(uint32));
		read_bytes(source, from_codes, n * sizeof(uint64));
		for (uint32 i = 0; i < n; i++)
		{
			uint32		to = groups[from_groups[i]];
			uint64		code = from_codes[i];
			bool		datum = !store->spec->coded;

			if (to == NO_VALUE_GROUP || (datum && (store->sort || codes[code] == NO_CODE)))
				refused(arg, from_groups[i], datum ? unwrap_value(store, values[code]) : code_value(store, code));
			else
			{
				make_room(store, 1);
				store->pairs.groups[store->pairs.n] = to;
				store->pairs.codes[store->pairs.n++] = datum ? (uint64) codes[code] : code;
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
