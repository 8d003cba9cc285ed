/*
 * lookup.c
 *	  Builds lookups and finds rows in them; see lookup.h.
 *
 * Dense integer keys are the numbers of rows that data warehouses give to dimensions (surrogate
 * keys).  Then a lookup is one load from an array: the "array-based join" of E. Schuh et al., "An
 * Experimental Comparison of Thirteen Relational Equi-Joins in Main Memory", SIGMOD 2016.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "batch.h"
#include "columns/column_value.h"
#include "columns/hash_seed.h"
#include "common/interruptible.h"
#include "expr/expr.h"
#include "feed/lookup.h"

#define FIRST_ROWS 256
/* An array or bitmap of a range of keys may have this many entries for each row. */
#define ARRAY_SPREAD 8
#define BITS_SPREAD 128
/* Ranges up to this length always get an array or a bitmap. */
#define SMALL_RANGE 65536
/* An array or hash table of more bytes, which a CPU's cache may not hold, is behind a bitmap. */
#define CACHED_BYTES (256 * 1024)
/* A bitmap has at most so many bytes in front of a hash table or an array. */
#define FILTER_BYTES (1024 * 1024)
/* Keys whose slots are fetched together. */
#define FETCHED_KEYS 64

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

	if (lookup->bytes + (to - from) * row_bytes(lookup) > builder->memory ||
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

/* Adds the hash of one column to that of the columns before. */
static uint32
combine_hashes(uint32 hash, uint32 column)
{
	return pg_rotate_left32(hash, 1) ^ column;
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

/* Returns whether there is room for another row, and the memory is not exceeded. */
static bool
has_room(Builder *builder)
{
	Lookup *lookup = builder->lookup;

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

/* ---- tables ------------------------------------------------------------------------ */

/* Sets the bounds of integer keys. */
static void
find_bounds(Lookup *lookup)
{
	lookup->least = PG_INT64_MAX;
	lookup->greatest = PG_INT64_MIN;
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		lookup->least = Min(lookup->least, lookup->integers[row]);
		lookup->greatest = Max(lookup->greatest, lookup->integers[row]);
	}
}

/* Fills the bitmap of keys; returns false if two rows have the same key. */
static bool
fill_bits(Lookup *lookup, uint64 range)
{
	size_t bytes = (range / 64 + 1) * sizeof(uint64);

	lookup->bits =
		MemoryContextAllocExtended(lookup->cxt, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	lookup->bytes += bytes;
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		uint64 at = (uint64) lookup->integers[row] - (uint64) lookup->least;

		if ((lookup->bits[at / 64] >> (at % 64) & 1) != 0 && !lookup->exists_only)
			return false;
		lookup->bits[at / 64] |= UINT64CONST(1) << (at % 64);
	}
	return true;
}

/* Fills the array of row numbers; returns false if two rows have the same key. */
static bool
fill_array(Lookup *lookup, uint64 range)
{
	size_t bytes = (range + 1) * sizeof(uint32);

	lookup->form = LOOKUP_ARRAY;
	lookup->array = MemoryContextAllocHuge(lookup->cxt, bytes);
	memset(lookup->array, 0xff, bytes); /* LOOKUP_NONE */
	lookup->bytes += bytes;
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		uint32 *entry = &lookup->array[(uint64) lookup->integers[row] - (uint64) lookup->least];

		if (*entry != LOOKUP_NONE && !lookup->exists_only)
			return false;
		*entry = row;
	}
	return true;
}

/* Allocates the slots of a hash table, of which at most half will be in use. */
static bool
allocate_slots(Lookup *lookup, size_t memory)
{
	size_t n = pg_nextpower2_64(Max((uint64) lookup->nrows * 2, 16));

	if (lookup->bytes + n * sizeof(uint32) > memory)
		return false;
	lookup->slots = MemoryContextAllocHuge(lookup->cxt, n * sizeof(uint32));
	memset(lookup->slots, 0xff, n * sizeof(uint32)); /* LOOKUP_NONE */
	lookup->bytes += n * sizeof(uint32);
	lookup->mask = n - 1;
	return true;
}

/* Returns the first slot of an integer key. */
static inline uint64
integer_slot(const Lookup *lookup, int64 key)
{
	return hash_fold(lookup->seed, (uint64) key) & lookup->mask;
}

/* Fills the hash table of integers; returns false if two rows have the same key. */
static bool
fill_integers(Lookup *lookup)
{
	lookup->form = LOOKUP_INTEGERS;
	lookup->seed = hash_seed_random();
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		int64 key = lookup->integers[row];
		uint64 slot = integer_slot(lookup, key);

		while (lookup->slots[slot] != LOOKUP_NONE && lookup->integers[lookup->slots[slot]] != key)
			slot = (slot + 1) & lookup->mask;
		if (lookup->slots[slot] == LOOKUP_NONE)
			lookup->slots[slot] = row;
		else if (!lookup->exists_only)
			return false;
	}
	return true;
}

/* Returns the first slot of a hash of the types' hash functions, which need not be good. */
static inline uint64
value_slot(const Lookup *lookup, uint32 hash)
{
	return murmurhash32(hash) & lookup->mask;
}

/* Returns whether two columns of keys are equal; a result that is NULL is none. */
static bool
columns_are_equal(LookupKey *key, Datum outer, Datum inner)
{
	LOCAL_FCINFO(fcinfo, 2);
	Datum result;

	InitFunctionCallInfoData(*fcinfo, &key->equal, 2, key->collation, NULL, NULL);
	fcinfo->args[0].value = outer;
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = inner;
	fcinfo->args[1].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	return !fcinfo->isnull && DatumGetBool(result);
}

/* Returns whether a key equals that of a row. */
static bool
values_are_equal(Lookup *lookup, const Datum *key, uint32 row)
{
	const Datum *values = &lookup->values[(size_t) row * lookup->nkeys];

	for (int k = 0; k < lookup->nkeys; k++)
		if (!columns_are_equal(&lookup->keys[k], key[k], values[k]))
			return false;
	return true;
}

/* Returns whether the keys of two rows have the same bytes. */
static bool
keys_are_identical(const Lookup *lookup, uint32 a, uint32 b)
{
	for (int k = 0; k < lookup->nkeys; k++)
		if (!datum_image_eq(lookup->values[(size_t) a * lookup->nkeys + k],
							lookup->values[(size_t) b * lookup->nkeys + k],
							lookup->keys[k].inner_byval, lookup->keys[k].inner_typlen))
			return false;
	return true;
}

/*
 * Fills the hash table of values.  Returns false if two rows may have the same key.  They cannot be
 * compared with each other if the types of both sides of the operator differ.  Then equal hashes
 * count as equal keys.  Or, if only existence matters, identical keys are equal, and others not.
 */
static bool
fill_values(Lookup *lookup, bool comparable)
{
	lookup->form = LOOKUP_VALUES;
	for (uint32 row = 0; row < lookup->nrows; row++)
	{
		uint32 hash = lookup->hashes[row];
		uint64 slot = value_slot(lookup, hash);
		bool duplicate = false;

		CHECK_FOR_INTERRUPTS();
		while (lookup->slots[slot] != LOOKUP_NONE)
		{
			uint32 other = lookup->slots[slot];

			if (lookup->hashes[other] == hash &&
				(comparable ? values_are_equal(
								  lookup, &lookup->values[(size_t) row * lookup->nkeys], other) :
							  !lookup->exists_only || keys_are_identical(lookup, row, other)))
			{
				duplicate = true;
				break;
			}
			slot = (slot + 1) & lookup->mask;
		}
		ResetExprContext(lookup->econtext);
		if (duplicate && !lookup->exists_only)
			return false;
		if (!duplicate)
			lookup->slots[slot] = row;
	}
	return true;
}

/* Returns whether rows of the inner side can be compared with each other. */
static bool
rows_are_comparable(const Lookup *lookup)
{
	for (int k = 0; k < lookup->nkeys; k++)
		if (!lookup->keys[k].comparable)
			return false;
	return true;
}

/*
 * Returns whether a bitmap in front of an array or a hash table pays: they are large, and few of
 * the keys in the range exist.
 */
static bool
wants_filter(const Lookup *lookup, uint64 range)
{
	bool dense = range < SMALL_RANGE || range / ARRAY_SPREAD < lookup->nrows;
	size_t bytes = dense ? (range + 1) * sizeof(uint32) :
						   (size_t) lookup->nrows * (2 * sizeof(uint32) + sizeof(int64));

	if (range / 8 > FILTER_BYTES || lookup->nrows > range / 2)
		return false;
	return bytes > CACHED_BYTES || !dense;
}

/* Makes what finds the rows by their keys. */
static LookupResult
fill_table(Lookup *lookup, size_t memory)
{
	uint64 range;
	bool unique;

	if (lookup->nrows == 0)
	{
		lookup->form = LOOKUP_EMPTY;
		return LOOKUP_BUILT;
	}
	if (!lookup_has_integer_key(lookup))
	{
		MemoryContext old;

		if (!allocate_slots(lookup, memory))
			return LOOKUP_TOO_LARGE;
		old = MemoryContextSwitchTo(lookup->econtext->ecxt_per_tuple_memory);
		unique = fill_values(lookup, rows_are_comparable(lookup));
		MemoryContextSwitchTo(old);
		return unique ? LOOKUP_BUILT : LOOKUP_DUPLICATE;
	}
	find_bounds(lookup);
	range = (uint64) lookup->greatest - (uint64) lookup->least;
	if (lookup->ncolumns == 0 && (range < SMALL_RANGE || range / BITS_SPREAD < lookup->nrows) &&
		lookup->bytes + range / 8 < memory)
	{
		lookup->form = LOOKUP_BITS;
		return fill_bits(lookup, range) ? LOOKUP_BUILT : LOOKUP_DUPLICATE;
	}
	if (wants_filter(lookup, range) && lookup->bytes + range / 8 < memory &&
		!fill_bits(lookup, range))
		return LOOKUP_DUPLICATE;
	if ((range < SMALL_RANGE || range / ARRAY_SPREAD < lookup->nrows) &&
		lookup->bytes + (range + 1) * sizeof(uint32) < memory)
		return fill_array(lookup, range) ? LOOKUP_BUILT : LOOKUP_DUPLICATE;
	if (!allocate_slots(lookup, memory))
		return LOOKUP_TOO_LARGE;
	return fill_integers(lookup) ? LOOKUP_BUILT : LOOKUP_DUPLICATE;
}

LookupResult
lookup_build(Lookup *lookup, size_t memory)
{
	MemoryContext build_cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg lookup build", ALLOCSET_DEFAULT_SIZES);
	Builder builder = {.lookup = lookup, .memory = memory};
	MemoryContext old;
	LookupResult result = LOOKUP_TOO_LARGE;

	lookup_free(lookup);
	lookup->cxt = AllocSetContextCreate(lookup->parent, "gpuagg lookup", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(build_cxt);
	builder.distinct = palloc0(sizeof(distinct_hash *) * (lookup->ncolumns + 1));
	builder.distinct_room = palloc0(sizeof(uint32) * (lookup->ncolumns + 1));
	builder.has_nulls = palloc0(sizeof(bool) * (lookup->ncolumns + 1));
	builder.maps = palloc0(sizeof(CodeMap) * (lookup->ncolumns + 1));
	builder.cxt = build_cxt;
	for (int c = 0; c < lookup->ncolumns; c++)
		if (!lookup->columns[c].byval)
			builder.distinct[c] =
				distinct_create(build_cxt, FIRST_ROWS, &lookup->columns[c].typlen);
	MemoryContextSwitchTo(old);
	if (lookup->feed ? store_batches(&builder) : store_executed(&builder))
		result = fill_table(lookup, memory);
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		if (!builder.has_nulls[c])
			lookup->columns[c].nulls = NULL;
		lookup->columns[c].dictionary = expr_new_dictionary();
	}
	MemoryContextDelete(build_cxt);
	if (result != LOOKUP_BUILT)
		lookup_free(lookup);
	return result;
}

void
lookup_free(Lookup *lookup)
{
	if (lookup->cxt)
		MemoryContextDelete(lookup->cxt);
	lookup->cxt = NULL;
	lookup->form = LOOKUP_EMPTY;
	lookup->nrows = lookup->capacity = 0;
	lookup->ninner = 0;
	lookup->bytes = 0;
	lookup->bits = NULL;
	lookup->array = lookup->slots = lookup->hashes = NULL;
	lookup->integers = NULL;
	lookup->values = NULL;
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		LookupColumn *column = &lookup->columns[c];

		column->nulls = NULL;
		column->values = NULL;
		column->codes = NULL;
		column->ncodes = 0;
		column->longest = 0;
	}
}

/* ---- finding ----------------------------------------------------------------------- */

/* Finds keys in a hash table of integers, up to FETCHED_KEYS. */
static void
find_hashed(const Lookup *lookup, int n, const int64 *keys, uint32 *rows)
{
	uint64 slot[FETCHED_KEYS];

	for (int i = 0; i < n; i++)
	{
		slot[i] = integer_slot(lookup, keys[i]);
		__builtin_prefetch(&lookup->slots[slot[i]]);
	}
	for (int i = 0; i < n; i++)
		if (lookup->slots[slot[i]] != LOOKUP_NONE)
			__builtin_prefetch(&lookup->integers[lookup->slots[slot[i]]]);
	for (int i = 0; i < n; i++)
	{
		uint64 at = slot[i];

		while (lookup->slots[at] != LOOKUP_NONE && lookup->integers[lookup->slots[at]] != keys[i])
			at = (at + 1) & lookup->mask;
		rows[i] = lookup->slots[at];
	}
}

/*
 * The loops of lookup_find_integers(), for one type of keys.  The row of a key is stored without a
 * branch, as the next key overwrites the index of one that was not found.
 */
#define DEFINE_FIND(NAME, key_t) \
	static int find_bits_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
								uint16 *sel) \
	{ \
		uint64 least = (uint64) lookup->least; \
		uint64 range = (uint64) lookup->greatest - least; \
		const uint64 *bits = lookup->bits; \
		int found = 0; \
\
		for (int i = 0; i < n; i++) \
		{ \
			uint64 at = (uint64) (int64) keys[i] - least; \
			uint64 inside = at <= range; \
			uint64 bit; \
\
			at = inside ? at : 0; \
			bit = (bits[at / 64] >> (at % 64)) & inside; \
			rows[i] = bit ? 0 : LOOKUP_NONE; \
			sel[found] = i; \
			found += (int) bit; \
		} \
		return found; \
	} \
	static int find_array_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
								 uint16 *sel) \
	{ \
		uint64 least = (uint64) lookup->least; \
		uint64 range = (uint64) lookup->greatest - least; \
		const uint32 *array = lookup->array; \
		int found = 0; \
\
		for (int i = 0; i < n; i++) \
		{ \
			uint64 at = (uint64) (int64) keys[i] - least; \
			uint32 row = at <= range ? array[at] : LOOKUP_NONE; \
\
			rows[i] = row; \
			sel[found] = i; \
			found += row != LOOKUP_NONE; \
		} \
		return found; \
	} \
	static int find_hash_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
								uint16 *sel) \
	{ \
		int found = 0; \
\
		for (int from = 0; from < n; from += FETCHED_KEYS) \
		{ \
			int m = Min(n - from, FETCHED_KEYS); \
			int64 wide[FETCHED_KEYS]; \
\
			for (int i = 0; i < m; i++) \
				wide[i] = keys[from + i]; \
			find_hashed(lookup, m, wide, rows + from); \
		} \
		for (int i = 0; i < n; i++) \
		{ \
			sel[found] = i; \
			found += rows[i] != LOOKUP_NONE; \
		} \
		return found; \
	} \
	static int find_filtered_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
									uint16 *sel) \
	{ \
		int found = find_bits_##NAME(lookup, n, keys, rows, sel); \
\
		for (int from = 0; from < found; from += FETCHED_KEYS) \
		{ \
			int m = Min(found - from, FETCHED_KEYS); \
			int64 wide[FETCHED_KEYS]; \
			uint32 hashed[FETCHED_KEYS]; \
\
			for (int i = 0; i < m; i++) \
				wide[i] = keys[sel[from + i]]; \
			if (lookup->form == LOOKUP_ARRAY) \
				for (int i = 0; i < m; i++) \
					hashed[i] = lookup->array[(uint64) wide[i] - (uint64) lookup->least]; \
			else \
				find_hashed(lookup, m, wide, hashed); \
			for (int i = 0; i < m; i++) \
				rows[sel[from + i]] = hashed[i]; \
		} \
		return found; \
	} \
	static int find_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
						   uint16 *sel) \
	{ \
		switch (lookup->form) \
		{ \
			case LOOKUP_BITS: \
				return find_bits_##NAME(lookup, n, keys, rows, sel); \
			case LOOKUP_ARRAY: \
				return lookup->bits ? find_filtered_##NAME(lookup, n, keys, rows, sel) : \
									  find_array_##NAME(lookup, n, keys, rows, sel); \
			case LOOKUP_INTEGERS: \
				return lookup->bits ? find_filtered_##NAME(lookup, n, keys, rows, sel) : \
									  find_hash_##NAME(lookup, n, keys, rows, sel); \
			case LOOKUP_EMPTY: \
			case LOOKUP_VALUES: \
				break; \
		} \
		for (int i = 0; i < n; i++) \
			rows[i] = LOOKUP_NONE; \
		return 0; \
	}

DEFINE_FIND(int32, int32)
DEFINE_FIND(int64, int64)

int
lookup_find_integers(const Lookup *lookup, int n, LookupKeyType type, const void *keys,
					 uint32 *rows, uint16 *sel)
{
	return type == LOOKUP_INT32 ? find_int32(lookup, n, keys, rows, sel) :
								  find_int64(lookup, n, keys, rows, sel);
}

uint32
lookup_find_values(Lookup *lookup, const Datum *key)
{
	uint32 hash = 0;
	uint64 slot;

	if (lookup->form == LOOKUP_EMPTY)
		return LOOKUP_NONE;
	for (int k = 0; k < lookup->nkeys; k++)
		hash = combine_hashes(hash,
							  DatumGetUInt32(FunctionCall1Coll(&lookup->keys[k].outer_hash,
															   lookup->keys[k].collation, key[k])));
	for (slot = value_slot(lookup, hash); lookup->slots[slot] != LOOKUP_NONE;
		 slot = (slot + 1) & lookup->mask)
	{
		uint32 row = lookup->slots[slot];

		if (lookup->hashes[row] == hash && values_are_equal(lookup, key, row))
			return row;
	}
	return LOOKUP_NONE;
}

const char *
lookup_form_name(LookupForm form)
{
	switch (form)
	{
		case LOOKUP_BITS:
			return "bitmap";
		case LOOKUP_ARRAY:
			return "array";
		case LOOKUP_INTEGERS:
			return "hash table of integers";
		case LOOKUP_VALUES:
			return "hash table";
		case LOOKUP_EMPTY:
			break;
	}
	return "empty";
}
