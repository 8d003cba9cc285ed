/*
 * lookup_rows.c
 *	  Runs the inner plan of a lookup and stores its rows column by column; see lookup.h.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "batch.h"
#include "columns/column_value.h"
#include "expr/expr.h"
#include "feed/lookup_internal.h"

#define FIRST_ROWS 256

/* ---- distinct values of a column --------------------------------------------------- */

/* A distinct by-reference value of a column. */
typedef struct Distinct
{
	Datum value;
	uint32 code;
	uint32 hash;
	char status;
} Distinct;

/* Returns the hash of a value's bytes. */
static uint32
hash_image(Datum value, int16 typlen)
{
	return hash_bytes((const unsigned char *) DatumGetPointer(value),
					  (int) datumGetSize(value, false, typlen));
}

#define SH_PREFIX distinct
#define SH_ELEMENT_TYPE Distinct
#define SH_KEY_TYPE Datum
#define SH_KEY value
#define SH_HASH_KEY(tb, key) hash_image(key, *(const int16 *) (tb)->private_data)
#define SH_EQUAL(tb, a, b) datumIsEqual(a, b, false, *(const int16 *) (tb)->private_data)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a) (a)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* ---- building ---------------------------------------------------------------------- */

/* What only the build needs. */
typedef struct Builder
{
	Lookup *lookup;
	size_t memory;
	distinct_hash **distinct; /* [column] NULL for by-value columns */
	uint32 *distinct_room;    /* [column] */
	bool *has_nulls;          /* [column] */
	struct CodeMap *maps;     /* [column] */
	size_t row_bytes;         /* of a row in the lookup's arrays */
	MemoryContext cxt;
} Builder;

/* Enlarges an array from `from` to `to` elements, or allocates it. */
static void *
resize(Lookup *lookup, void *array, uint32 from, uint32 to, size_t width)
{
	lookup->bytes += (to - from) * width;
	if (array == NULL)
		return MemoryContextAllocHuge(lookup->cxt, to * width);
	return repalloc_huge(array, to * width);
}

/* Returns the bytes of a row in the lookup's arrays. */
static size_t
row_bytes(const Lookup *lookup)
{
	size_t bytes = lookup_has_integer_key(lookup) ? sizeof(int64) :
													sizeof(uint32) + sizeof(Datum) * lookup->nkeys;

	for (int c = 0; c < lookup->ncolumns; c++)
		bytes += sizeof(bool) + (lookup->columns[c].byval ? sizeof(Datum) : sizeof(uint32));
	return bytes;
}

/* Makes room for more rows; returns false if that exceeds the memory. */
static bool
grow(Builder *builder)
{
	Lookup *lookup = builder->lookup;
	uint32 from = lookup->capacity;
	uint32 to = from == 0 ? FIRST_ROWS : from * 2;

	if (lookup->bytes + (to - from) * builder->row_bytes > builder->memory ||
		to > (uint32) PG_INT32_MAX)
		return false;
	if (lookup_has_integer_key(lookup))
		lookup->integers = resize(lookup, lookup->integers, from, to, sizeof(int64));
	else
	{
		lookup->hashes = resize(lookup, lookup->hashes, from, to, sizeof(uint32));
		lookup->values = resize(lookup, lookup->values, from, to, sizeof(Datum) * lookup->nkeys);
	}
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		LookupColumn *column = &lookup->columns[c];

		column->nulls = resize(lookup, column->nulls, from, to, sizeof(bool));
		if (column->byval)
			column->values = resize(lookup, column->values, from, to, sizeof(Datum));
		else
			column->codes = resize(lookup, column->codes, from, to, sizeof(uint32));
	}
	lookup->capacity = to;
	return true;
}

/* Copies a by-reference value into the lookup's memory. */
static Datum
copy_value(Lookup *lookup, Datum value, int16 typlen)
{
	MemoryContext old = MemoryContextSwitchTo(lookup->cxt);
	Datum copy = datumCopy(value, false, typlen);

	MemoryContextSwitchTo(old);
	lookup->bytes += GetMemoryChunkSpace(DatumGetPointer(copy));
	return copy;
}

/* Returns the code of a by-reference value, which is added to the distinct ones if it is new. */
static uint32
find_code(Builder *builder, int c, Datum value)
{
	Lookup *lookup = builder->lookup;
	LookupColumn *column = &lookup->columns[c];
	distinct_hash *table = builder->distinct[c];
	Distinct *entry;
	Datum flat = value;
	bool found;

	/* a value that points to memory of another owner */
	if (column->typlen == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(value)) &&
		!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
		flat = PointerGetDatum(PG_DETOAST_DATUM(value));
	entry = distinct_insert(table, flat, &found);
	if (!found)
	{
		if (column->ncodes == builder->distinct_room[c])
		{
			uint32 room = column->ncodes == 0 ? FIRST_ROWS : column->ncodes * 2;

			column->values = resize(lookup, column->values, column->ncodes, room, sizeof(Datum));
			builder->distinct_room[c] = room;
		}
		/* the copy has the same bytes, so it has the same place in the table */
		entry->value = copy_value(lookup, flat, column->typlen);
		entry->code = column->ncodes++;
		column->values[entry->code] = entry->value;
		column->longest = Max(column->longest, datum_bytes(entry->value, column->typlen));
	}
	return entry->code;
}

/* Stores that a column is NULL in the row that is being added. */
static void
store_null(Builder *builder, int c)
{
	Lookup *lookup = builder->lookup;
	LookupColumn *column = &lookup->columns[c];

	column->nulls[lookup->nrows] = true;
	builder->has_nulls[c] = true;
	if (column->byval)
		column->values[lookup->nrows] = (Datum) 0;
	else
		column->codes[lookup->nrows] = 0;
}

/* Stores a value of the row that is being added. */
static void
store_value(Builder *builder, int c, Datum value)
{
	Lookup *lookup = builder->lookup;
	LookupColumn *column = &lookup->columns[c];

	column->nulls[lookup->nrows] = false;
	if (column->byval)
		column->values[lookup->nrows] = value;
	else
		column->codes[lookup->nrows] = find_code(builder, c, value);
}

/* Stores column k of the key of the row that is being added; columns come in their order. */
static void
store_key(Builder *builder, int k, Datum value)
{
	Lookup *lookup = builder->lookup;
	LookupKey *key = &lookup->keys[k];
	uint32 row = lookup->nrows;
	uint32 hash;

	if (lookup->integers)
	{
		int64 integer = lookup_integer(value, key->inner_width);

		lookup->integers[row] =
			k == 0 ? integer : lookup_join_halves(lookup->integers[row], integer);
		return;
	}
	hash = DatumGetUInt32(FunctionCall1Coll(&key->inner_hash, key->collation, value));
	lookup->hashes[row] = combine_hashes(k == 0 ? 0 : lookup->hashes[row], hash);
	lookup->values[(size_t) row * lookup->nkeys + k] = value;
}

/* Completes the row that is being added.  Its key has no NULL. */
static void
end_row(Builder *builder)
{
	Lookup *lookup = builder->lookup;
	Datum *values = lookup->values + (size_t) lookup->nrows * lookup->nkeys;

	for (int k = 0; lookup->integers == NULL && k < lookup->nkeys; k++)
		if (!lookup->keys[k].inner_byval)
			values[k] = copy_value(lookup, values[k], lookup->keys[k].inner_typlen);
	lookup->nrows++;
}

/* Returns the bytes of all tables that find distinct values. */
static size_t
distinct_bytes(const Builder *builder)
{
	size_t bytes = 0;

	for (int c = 0; c < builder->lookup->ncolumns; c++)
		if (builder->distinct[c])
			bytes += builder->distinct[c]->size * sizeof(Distinct);
	return bytes;
}

/* Ends the wait of others if the rows have become too large to be kept for them. */
static void
end_vain_wait(Builder *builder)
{
	Lookup *lookup = builder->lookup;
	size_t unused = (lookup->capacity - lookup->nrows) * builder->row_bytes;

	if (lookup->bytes - unused <= lookup->most_kept)
		return;
	ereport(DEBUG1,
			(errmsg_internal("gpuagg: the lookup is too large to be kept for other participants")));
	lookup_end_wait(lookup);
}

/* Returns whether there is room for another row, and the memory is not exceeded. */
static bool
has_room(Builder *builder)
{
	Lookup *lookup = builder->lookup;

	if (lookup->awaited)
		end_vain_wait(builder);
	return lookup->bytes + distinct_bytes(builder) <= builder->memory &&
		(lookup->nrows < lookup->capacity || grow(builder));
}

/* Stores a row of the executor, if no column of its key is NULL: it could not match. */
static void
store_slot(Builder *builder, TupleTableSlot *slot)
{
	Lookup *lookup = builder->lookup;
	ExprContext *econtext = lookup->econtext;

	econtext->ecxt_outertuple = slot;
	for (int k = 0; k < lookup->nkeys; k++)
	{
		bool isnull;
		LookupKey *key = &lookup->keys[k];
		Datum value = key->attno > 0 ? slot_getattr(slot, key->attno, &isnull) :
									   ExecEvalExpr(key->inner, econtext, &isnull);

		if (isnull)
			return;
		store_key(builder, k, value);
	}
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		bool isnull;
		Datum value = slot_getattr(slot, lookup->columns[c].resno, &isnull);

		if (isnull)
			store_null(builder, c);
		else
			store_value(builder, c, value);
	}
	end_row(builder);
}

/* Runs the plan and stores its rows; returns false if they exceed the memory. */
static bool
store_executed(Builder *builder)
{
	Lookup *lookup = builder->lookup;
	MemoryContext row_cxt = lookup->econtext->ecxt_per_tuple_memory;

	for (;;)
	{
		TupleTableSlot *slot;
		MemoryContext old;

		CHECK_FOR_INTERRUPTS();
		slot = ExecProcNode(lookup->inner);
		if (TupIsNull(slot))
			return true;
		lookup->ninner++;
		if (!has_room(builder))
			return false;
		ResetExprContext(lookup->econtext);
		old = MemoryContextSwitchTo(row_cxt);
		store_slot(builder, slot);
		MemoryContextSwitchTo(old);
	}
}

/* Returns a value of a batch, which is not NULL. */
static Datum
batch_value(const Column *col, int i)
{
	if (column_is_unrepresentable(col, i))
		return col->unrepresentable_values[i];
	return column_datum(col->type, col->scale, col->values, i);
}

/* The codes in the lookup that codes of a batch's dictionary have. */
typedef struct CodeMap
{
	uint64 dictionary; /* 0: none */
	uint32 room;
	uint32 known;  /* codes that the dictionary had so far: the dictionary of a memo grows */
	uint32 *codes; /* LOOKUP_NONE: not known yet */
} CodeMap;

/* Makes a map cover n codes of its dictionary. */
static inline void
extend_map(Builder *builder, CodeMap *map, uint32 n)
{
	if (likely(map->known >= n))
		return;
	if (map->room < n)
	{
		map->room = Max(n, map->room * 2);
		map->codes = map->codes ? repalloc_huge(map->codes, sizeof(uint32) * map->room) :
								  MemoryContextAllocHuge(builder->cxt, sizeof(uint32) * map->room);
	}
	memset(map->codes + map->known, 0xff, sizeof(uint32) * (n - map->known)); /* LOOKUP_NONE */
	map->known = n;
}

/*
 * Stores a by-reference value of row i of a batch.  If the batch has codes, the value is searched
 * once for each code.
 */
static void
store_coded(Builder *builder, int c, const Column *col, int i)
{
	Lookup *lookup = builder->lookup;
	LookupColumn *column = &lookup->columns[c];
	CodeMap *map = &builder->maps[c];
	uint32 *code;

	if (col->codes == NULL || col->dictionary == 0 || (map->dictionary != col->dictionary && i > 0))
	{
		store_value(builder, c, batch_value(col, i));
		return;
	}
	if (map->dictionary != col->dictionary)
		map->known = 0;
	map->dictionary = col->dictionary;
	extend_map(builder, map, col->ncodes);
	column->nulls[lookup->nrows] = false;
	code = &map->codes[col->codes[i]];
	if (*code == LOOKUP_NONE)
		*code = find_code(builder, c, batch_value(col, i));
	column->codes[lookup->nrows] = *code;
}

/* Stores row i of a batch, if no column of its key is NULL. */
static void
store_batch_row(Builder *builder, const Batch *batch, int i)
{
	Lookup *lookup = builder->lookup;

	for (int k = 0; k < lookup->nkeys; k++)
	{
		const Column *col = &batch->cols[lookup->keys[k].batch_column];

		if (column_is_null(col, i))
			return;
		store_key(builder, k, batch_value(col, i));
	}
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		const Column *col = &batch->cols[lookup->columns[c].batch_column];

		if (column_is_null(col, i))
			store_null(builder, c);
		else if (lookup->columns[c].byval)
			store_value(builder, c, batch_value(col, i));
		else
			store_coded(builder, c, col, i);
	}
	end_row(builder);
}

/* Reads the plan's rows by the feed, and stores them; returns false if they exceed the memory. */
static bool
store_batches(Builder *builder)
{
	Lookup *lookup = builder->lookup;
	MemoryContext row_cxt = lookup->econtext->ecxt_per_tuple_memory;
	Batch *batch;

	while ((batch = lookup->feed->ops->next(lookup->feed)) != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(row_cxt);

		for (int i = 0; i < batch->nrows; i++)
		{
			CHECK_FOR_INTERRUPTS();
			lookup->ninner++;
			if (!has_room(builder))
			{
				MemoryContextSwitchTo(old);
				return false;
			}
			store_batch_row(builder, batch, i);
			if (!lookup_has_integer_key(lookup))
				ResetExprContext(lookup->econtext);
		}
		MemoryContextSwitchTo(old);
		ResetExprContext(lookup->econtext);
	}
	return true;
}

bool
lookup_store_rows(Lookup *lookup, size_t memory)
{
	MemoryContext build_cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg lookup build", ALLOCSET_DEFAULT_SIZES);
	Builder builder = {
		.lookup = lookup, .memory = memory, .row_bytes = row_bytes(lookup), .cxt = build_cxt};
	MemoryContext old = MemoryContextSwitchTo(build_cxt);
	bool fits;

	builder.distinct = palloc0(sizeof(distinct_hash *) * (lookup->ncolumns + 1));
	builder.distinct_room = palloc0(sizeof(uint32) * (lookup->ncolumns + 1));
	builder.has_nulls = palloc0(sizeof(bool) * (lookup->ncolumns + 1));
	builder.maps = palloc0(sizeof(CodeMap) * (lookup->ncolumns + 1));
	for (int c = 0; c < lookup->ncolumns; c++)
		if (!lookup->columns[c].byval)
			builder.distinct[c] =
				distinct_create(build_cxt, FIRST_ROWS, &lookup->columns[c].typlen);
	MemoryContextSwitchTo(old);
	fits = lookup->feed ? store_batches(&builder) : store_executed(&builder);
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		if (!builder.has_nulls[c])
			lookup->columns[c].nulls = NULL;
		lookup->columns[c].dictionary = expr_new_dictionary();
	}
	MemoryContextDelete(build_cxt);
	return fits;
}
