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

#include "cache/chunk.h"
#include "columns/hash_seed.h"
#include "common/interruptible.h"
#include "feed/lookup_internal.h"
#include "feed/text_range.h"

/* An array or bitmap of a range of keys may have this many entries for each row. */
#define ARRAY_SPREAD 8
#define BITS_SPREAD 128
/* Ranges up to this length always get an array or a bitmap. */
#define SMALL_RANGE 65536
/* An array or hash table of more bytes, which a CPU's cache may not hold, is behind a bitmap. */
#define CACHED_BYTES (256 * 1024)
/* A bitmap has at most so many bytes in front of a hash table or an array. */
#define FILTER_BYTES (1024 * 1024)
/* Most words of a bitmap, or entries of an array, that are searched for some key of a range. */
#define SEARCHED_ENTRIES 16384
/* Keys whose slots are fetched together. */
#define FETCHED_KEYS 64

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

/* Fills the bitmap of keys; returns whether all keys differ. */
static bool
fill_bits(Lookup *lookup, uint64 range)
{
	size_t bytes = (range / 64 + 1) * sizeof(uint64);
	bool unique = true;

	lookup->bits =
		MemoryContextAllocExtended(lookup->cxt, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	lookup->bytes += bytes;
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		uint64 at = (uint64) lookup->integers[row] - (uint64) lookup->least;

		unique &= (lookup->bits[at / 64] >> (at % 64) & 1) == 0;
		lookup->bits[at / 64] |= UINT64CONST(1) << (at % 64);
	}
	return unique;
}

/* Frees the bitmap of keys. */
static void
drop_bits(Lookup *lookup, uint64 range)
{
	pfree(lookup->bits);
	lookup->bits = NULL;
	lookup->bytes -= (range / 64 + 1) * sizeof(uint64);
}

/* Makes room for chains; returns false if that exceeds the memory. */
static bool
allocate_chains(Lookup *lookup, size_t memory)
{
	size_t bytes = (size_t) lookup->nrows * sizeof(uint32);

	if (lookup->bytes + bytes > memory)
		return false;
	lookup->next = MemoryContextAllocHuge(lookup->cxt, bytes);
	memset(lookup->next, 0xff, bytes); /* LOOKUP_NONE */
	lookup->bytes += bytes;
	return true;
}

/*
 * Makes a row the first one of a chain.  *first: the one before, or LOOKUP_NONE.  Returns false if
 * that exceeds the memory.
 */
static inline bool
push_row(Lookup *lookup, uint32 *first, uint32 row, size_t memory)
{
	if (*first != LOOKUP_NONE && !lookup->exists_only)
	{
		if (lookup->next == NULL && !allocate_chains(lookup, memory))
			return false;
		lookup->next[row] = *first;
	}
	*first = row;
	return true;
}

/* The rows in the order in which they are pushed, so that they ascend in each chain. */
#define LAST_TO_FIRST(lookup, i) ((lookup)->nrows - 1 - (uint32) (i))

/* Fills the array of row numbers; returns false if that exceeds the memory. */
static bool
fill_array(Lookup *lookup, uint64 range, size_t memory)
{
	size_t bytes = (range + 1) * sizeof(uint32);

	lookup->form = LOOKUP_ARRAY;
	lookup->array = MemoryContextAllocHuge(lookup->cxt, bytes);
	memset(lookup->array, 0xff, bytes); /* LOOKUP_NONE */
	lookup->bytes += bytes;
	INTERRUPTIBLE_FOR (i, 0, lookup->nrows)
	{
		uint32 row = LAST_TO_FIRST(lookup, i);
		uint64 at = (uint64) lookup->integers[row] - (uint64) lookup->least;

		if (!push_row(lookup, &lookup->array[at], row, memory))
			return false;
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

/* Fills the hash table of integers; returns false if that exceeds the memory. */
static bool
fill_integers(Lookup *lookup, size_t memory)
{
	lookup->form = LOOKUP_INTEGERS;
	lookup->seed = hash_seed_random();
	INTERRUPTIBLE_FOR (i, 0, lookup->nrows)
	{
		uint32 row = LAST_TO_FIRST(lookup, i);
		int64 key = lookup->integers[row];
		uint64 slot = integer_slot(lookup, key);

		while (lookup->slots[slot] != LOOKUP_NONE && lookup->integers[lookup->slots[slot]] != key)
			slot = (slot + 1) & lookup->mask;
		if (!push_row(lookup, &lookup->slots[slot], row, memory))
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
 * Fills the hash table of values.  Rows cannot be compared with each other if the types of both
 * sides of the operator differ.  Then identical keys are equal.  Keys with the same hash that are
 * not identical could be equal to the same outer key, which leads to one of them only: that is
 * enough if only existence matters.
 */
static LookupResult
fill_values(Lookup *lookup, bool comparable, size_t memory)
{
	lookup->form = LOOKUP_VALUES;
	for (uint32 i = 0; i < lookup->nrows; i++)
	{
		uint32 row = LAST_TO_FIRST(lookup, i);
		uint32 hash = lookup->hashes[row];
		uint64 slot = value_slot(lookup, hash);

		CHECK_FOR_INTERRUPTS();
		for (; lookup->slots[slot] != LOOKUP_NONE; slot = (slot + 1) & lookup->mask)
		{
			uint32 other = lookup->slots[slot];

			if (lookup->hashes[other] != hash)
				continue;
			if (comparable ?
					values_are_equal(lookup, &lookup->values[(size_t) row * lookup->nkeys], other) :
					keys_are_identical(lookup, row, other))
				break;
			if (!comparable && !lookup->exists_only)
				return LOOKUP_AMBIGUOUS;
		}
		ResetExprContext(lookup->econtext);
		if (!push_row(lookup, &lookup->slots[slot], row, memory))
			return LOOKUP_TOO_LARGE;
	}
	return LOOKUP_BUILT;
}

/* Sets least_prefix and greatest_prefix. */
static void
find_prefixes(Lookup *lookup)
{
	lookup->least_prefix = PG_UINT64_MAX;
	lookup->greatest_prefix = 0;
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		const void *value = DatumGetPointer(lookup->values[row]);
		uint64 prefix;

		/* not worth fetching its bytes */
		if (VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value))
		{
			lookup->least_prefix = 0;
			lookup->greatest_prefix = PG_UINT64_MAX;
			return;
		}
		prefix = chunk_prefix(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
		lookup->least_prefix = Min(lookup->least_prefix, prefix);
		lookup->greatest_prefix = Max(lookup->greatest_prefix, prefix);
	}
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
	LookupResult result;

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
		result = fill_values(lookup, rows_are_comparable(lookup), memory);
		MemoryContextSwitchTo(old);
		if (lookup_has_text_key(lookup))
			find_prefixes(lookup);
		return result;
	}
	find_bounds(lookup);
	range = (uint64) lookup->greatest - (uint64) lookup->least;
	if (lookup->ncolumns == 0 && (range < SMALL_RANGE || range / BITS_SPREAD < lookup->nrows) &&
		lookup->bytes + range / 8 < memory)
	{
		lookup->form = LOOKUP_BITS;
		if (fill_bits(lookup, range) || lookup->exists_only)
			return LOOKUP_BUILT;
		drop_bits(lookup, range);
	}
	if (wants_filter(lookup, range) && lookup->bytes + range / 8 < memory)
		fill_bits(lookup, range);
	if ((range < SMALL_RANGE || range / ARRAY_SPREAD < lookup->nrows) &&
		lookup->bytes + (range + 1) * sizeof(uint32) < memory)
		return fill_array(lookup, range, memory) ? LOOKUP_BUILT : LOOKUP_TOO_LARGE;
	if (!allocate_slots(lookup, memory))
		return LOOKUP_TOO_LARGE;
	return fill_integers(lookup, memory) ? LOOKUP_BUILT : LOOKUP_TOO_LARGE;
}

LookupResult
lookup_build(Lookup *lookup, size_t memory)
{
	LookupResult result = LOOKUP_TOO_LARGE;

	lookup_free(lookup);
	lookup->builds++;
	lookup->cxt = AllocSetContextCreate(lookup->parent, "gpuagg lookup", ALLOCSET_DEFAULT_SIZES);
	if (lookup_store_rows(lookup, memory))
		result = fill_table(lookup, memory);
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
	lookup->next = lookup->array = lookup->slots = lookup->hashes = NULL;
	lookup->integers = NULL;
	memset(&lookup->filter, 0, sizeof(LookupFilter));
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
	static int pass_filter_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
								  uint16 *sel) \
	{ \
		HashSeed seed = lookup->seed; \
		const uint64 *words = lookup->filter.words; \
		int passed = 0; \
\
		for (int i = 0; i < n; i++) \
		{ \
			uint64 hash = hash_fold(seed, (uint64) (int64) keys[i]); \
			uint64 bits = lookup_filter_bits(hash); \
\
			rows[i] = LOOKUP_NONE; \
			sel[passed] = i; \
			passed += (words[lookup_filter_word(&lookup->filter, hash)] & bits) == bits; \
		} \
		return passed; \
	} \
	static int find_filtered_##NAME(const Lookup *lookup, int n, const key_t *keys, uint32 *rows, \
									uint16 *sel) \
	{ \
		int passed = lookup->bits ? find_bits_##NAME(lookup, n, keys, rows, sel) : \
									pass_filter_##NAME(lookup, n, keys, rows, sel); \
		int found = 0; \
\
		for (int from = 0; from < passed; from += FETCHED_KEYS) \
		{ \
			int m = Min(passed - from, FETCHED_KEYS); \
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
			{ \
				uint16 at = sel[from + i]; \
\
				rows[at] = hashed[i]; \
				sel[found] = at; \
				found += hashed[i] != LOOKUP_NONE; \
			} \
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
				return lookup->bits || lookup->filter.used ? \
					find_filtered_##NAME(lookup, n, keys, rows, sel) : \
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

/* Returns whether a bit from `from` to `to` is set. */
static bool
any_bit(const uint64 *bits, uint64 from, uint64 to)
{
	uint64 first = PG_UINT64_MAX << (from % 64);
	uint64 last = PG_UINT64_MAX >> (63 - to % 64);

	if (from / 64 == to / 64)
		return (bits[from / 64] & first & last) != 0;
	if ((bits[from / 64] & first) != 0 || (bits[to / 64] & last) != 0)
		return true;
	for (uint64 word = from / 64 + 1; word < to / 64; word++)
		if (bits[word] != 0)
			return true;
	return false;
}

bool
lookup_may_have_integers(const Lookup *lookup, int64 least, int64 greatest)
{
	uint64 from, to;

	if (lookup->form == LOOKUP_EMPTY || least > lookup->greatest || greatest < lookup->least)
		return false;
	from = (uint64) Max(least, lookup->least) - (uint64) lookup->least;
	to = (uint64) Min(greatest, lookup->greatest) - (uint64) lookup->least;
	if (lookup->bits && (to - from) / 64 < SEARCHED_ENTRIES)
		return any_bit(lookup->bits, from, to);
	if (lookup->bits || lookup->array == NULL || to - from >= SEARCHED_ENTRIES)
		return true;
	for (uint64 at = from; at <= to; at++)
		if (lookup->array[at] != LOOKUP_NONE)
			return true;
	return false;
}

bool
lookup_has_text_key(const Lookup *lookup)
{
	return lookup->nkeys == 1 &&
		text_condition(lookup->keys[0].equal.fn_oid, lookup->keys[0].collation) == TEXT_EQUAL;
}

bool
lookup_may_have_texts(const Lookup *lookup, uint64 least, uint64 greatest)
{
	return lookup->form != LOOKUP_EMPTY && least <= lookup->greatest_prefix &&
		greatest >= lookup->least_prefix;
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
