/*
 * value_dictionary.c
 *	  Values to codes; see value_dictionary.h.
 *
 * Strings that are equal if and only if their bytes are equal are hashed and compared here. Values
 * of other types use the hash and equality functions of their type, in a context that is reset
 * after each batch.
 *
 * A lookup takes the first of these ways that applies:
 *
 * - the feed has numbers for the values (Column.codes): feed_codes[] maps a number to its code
 * - short strings: short_cache[], a small direct-mapped cache
 * - the hash table `entries`
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "columns/hash_seed.h"
#include "common/compat.h"
#include "groups/huge_pages.h"
#include "groups/value_dictionary.h"

/* Room for values when the dictionary is created. */
#define FIRST_VALUES 128
#define FIRST_CODES 64
#define FIRST_ENTRIES (2 * FIRST_VALUES) /* by the fill factor */
#define NULL_VALUE_HASH 0x9e3779b9
/*
 * Bytes of a block of values: a quarter of what all values take so far, within these limits.
 */
#define LEAST_BLOCK 512
#define MOST_BLOCK ((size_t) 8 * 1024 * 1024)
/* Dictionaries with fewer values stay in the caches, and need no prefetching. */
#define MANY_VALUES 4096
/* Lookups whose memory is prefetched together; more would displace each other from the caches. */
#define LOOKUP_BLOCK 64
/* Rows in which values that are new in the feed's dictionary are looked up together. */
#define NEW_VALUES 256
/* FeedCode.code while the value waits for its lookup in this batch. */
#define AWAITED_CODE (-2)

/* How values are hashed and compared. */
typedef enum ValueClass
{
	VALUES_BY_FUNCTION,
	VALUES_TEXT,  /* varlena: values are equal if all their bytes are */
	VALUES_BPCHAR /* varlena whose trailing spaces do not count */
} ValueClass;

/*
 * An entry of the hash table. It is small, because lookups miss the cache where there are many
 * values.
 */
typedef struct DictEntry
{
	uint32 hash;
	uint32 code : 31;
	uint32 status : 1; /* simplehash.h uses it */
} DictEntry;

/*
 * A cache entry for a short string: a varlena of at most 8 bytes with its header. Its bytes as one
 * number are the whole value, so a hit needs no comparison. The entry's position is a hash of that
 * number.
 */
#define SHORT_BYTES 8
#define SHORT_BITS 10

typedef struct ShortValue
{
	uint64 image; /* the value's bytes; 0: empty, as no header is 0 */
	int32 code;
	uint32 hash;
} ShortValue;

#define SHORTS_SIZE (sizeof(ShortValue) << SHORT_BITS)
/* The cache is no longer used after this many batches in which most rows missed it. */
#define SHORT_MISSES 4

/*
 * Values that stay in place (Column.lasting) are often met again at the same address. A small cache
 * has the codes of some.
 */
#define PLACE_BITS 9

typedef struct PlacedValue
{
	Datum value; /* 0: empty */
	int32 code;
} PlacedValue;

#define PLACES_SIZE (sizeof(PlacedValue) << PLACE_BITS)

/* What a lookup found for a value that the feed has a number for. */
typedef struct FeedCode
{
	int32 code; /* NO_CODE: not looked up yet, or there was no room */
	uint32 hash;
	bool is_variant; /* the bytes differ from those of the value kept for the code */
} FeedCode;

struct Dictionary
{
	MemoryContext cxt;        /* everything */
	MemoryContext values_cxt; /* the values that are kept */
	MemoryContext temp_cxt;   /* detoasted values of a batch, and what functions allocate */
	ValueClass class;
	FmgrInfo hashfn;
	FmgrInfo eqfn;
	Oid collation;
	int16 typlen;
	bool typbyval;
	uint64 id;             /* changes when all values are forgotten */
	bool watches_variants; /* dictionary_watch_variants was called */
	bool met_variant;      /* the last lookup met a variant */
	HashSeed seed; /* never changes after the first value, because partitions of spilled rows depend
					  on it */
	int n;         /* codes given so far */
	int capacity;  /* allocated entries of values */
	Datum *values; /* [code] the value that is kept */
	uint32 *value_hashes;       /* [code] its hash */
	struct value_hash *entries; /* codes by value; NULL is not among them */
	int32 null_code;            /* NO_CODE: NULL has none yet */
	size_t value_bytes;         /* in values_cxt */
	char *block;                /* memory for the next values, which lie one after another */
	size_t block_left;          /* its bytes */
	Datum *detoasted;           /* [row of a batch] */
	FeedCode *feed_codes;       /* [number in the feed's dictionary (Column.codes)] */
	uint32 feed_codes_size;     /* allocated entries */
	uint32 nfeed_codes;
	uint64 feed_dictionary;  /* the Column.dictionary that feed_codes is for; 0: none */
	ShortValue *short_cache; /* [hash of the image]; NULL: not allocated yet */
	PlacedValue *places;     /* [hash of the address]; NULL: not allocated yet */
	int short_misses;        /* batches in which most rows missed the cache */
};

/* Returns whether strings under this collation are equal only if they have the same bytes. */
static bool
equality_is_bytewise(Oid collation)
{
	return !OidIsValid(collation) || get_collation_isdeterministic(collation);
}

/* Returns how values of a key are hashed and compared. */
static ValueClass
value_class(const KeySpec *key)
{
	if (key->eqfunc == F_TEXTEQ && equality_is_bytewise(key->collation))
		return VALUES_TEXT;
	if (key->eqfunc == F_BYTEAEQ)
		return VALUES_TEXT;
	if (key->eqfunc == F_BPCHAREQ && equality_is_bytewise(key->collation))
		return VALUES_BPCHAR;
	return VALUES_BY_FUNCTION;
}

/* Returns how many of `len` data bytes count for equality: for bpchar, without trailing spaces. */
static inline int
value_length(ValueClass class, const char *data, int len)
{
	if (class == VALUES_BPCHAR)
		while (len > 0 && data[len - 1] == ' ')
			len--;
	return len;
}

/* Returns whether two strings of the same length are equal. Most are short. */
static inline bool
equal_bytes(const char *a, const char *b, int len)
{
	if (len < 8)
		return hash_load_short(a, len) == hash_load_short(b, len);
	if (len <= 16)
		return hash_load(a, 8) == hash_load(b, 8) &&
			hash_load(a + len - 8, 8) == hash_load(b + len - 8, 8);
	return memcmp(a, b, len) == 0;
}

/*
 * Returns the hash of a value. Sets *detoasted to the value, detoasted in the current context where
 * needed; equal_values and same_image compare this form.
 */
static inline uint32
hash_value(Dictionary *dict, ValueClass class, Datum value, Datum *detoasted)
{
	if (class != VALUES_BY_FUNCTION)
	{
		struct varlena *v = (struct varlena *) DatumGetPointer(value);

		if (unlikely(VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v)))
		{
			CHECK_FOR_INTERRUPTS();
			v = pg_detoast_datum_packed(v);
		}
		*detoasted = PointerGetDatum(v);
		return hash_string(dict->seed, VARDATA_ANY(v),
						   value_length(class, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v)));
	}
	CHECK_FOR_INTERRUPTS();
	/* with a full header, so that the hash and equality functions need not copy it again */
	if (dict->typlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	*detoasted = value;
	return hash_finish(hash_fold(
		dict->seed, DatumGetUInt32(FunctionCall1Coll(&dict->hashfn, dict->collation, value))));
}

/*
 * Returns whether two values are equal. Both are detoasted, in the form in which hash_value returns
 * them.
 */
static inline bool
equal_values(Dictionary *dict, ValueClass class, Datum a, Datum b)
{
	if (class != VALUES_BY_FUNCTION)
	{
		const char *va = DatumGetPointer(a);
		const char *vb = DatumGetPointer(b);
		int la = value_length(class, VARDATA_ANY(va), VARSIZE_ANY_EXHDR(va));
		int lb = value_length(class, VARDATA_ANY(vb), VARSIZE_ANY_EXHDR(vb));

		return la == lb && equal_bytes(VARDATA_ANY(va), VARDATA_ANY(vb), la);
	}
	CHECK_FOR_INTERRUPTS();
	return DatumGetBool(FunctionCall2Coll(&dict->eqfn, dict->collation, a, b));
}

/* A value that is being looked up. */
typedef struct Sought
{
	Dictionary *dict;
	ValueClass class;
	bool lasting; /* Column.lasting */
	Datum value;
} Sought;

/* Returns whether the value sought equals the one kept for a code. */
static inline bool
equals_sought(const Sought *sought, uint32 code)
{
	return equal_values(sought->dict, sought->class, sought->dict->values[code], sought->value);
}

struct value_hash;
static inline void *value_allocate(struct value_hash *entries, Size size);
static inline void value_free(struct value_hash *entries, void *memory);

/* The keys of the table are codes, but a lookup compares the value that private_data points to. */
#define SH_PREFIX value
#define SH_ELEMENT_TYPE DictEntry
#define SH_KEY_TYPE uint32
#define SH_KEY code
#define SH_HASH_KEY(entries, code) (((Sought *) (entries)->private_data)->dict->value_hashes[code])
#define SH_EQUAL(entries, code, key) equals_sought((entries)->private_data, code)
/* With the default of 0.9, queries with text keys take up to a quarter longer. */
#define SH_FILLFACTOR 0.5
#define SH_USE_NONDEFAULT_ALLOCATOR
#define SH_STORE_HASH
#define SH_GET_HASH(entries, entry) (entry)->hash
#define SH_SCOPE pg_attribute_unused() static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static inline void *
value_allocate(struct value_hash *entries, Size size)
{
	void *memory = huge_pages_alloc(entries->ctx, size);

	memset(memory, 0, size);
	return memory;
}

static inline void
value_free(struct value_hash *entries, void *memory)
{
	huge_pages_free(memory);
}

/* ---- life --------------------------------------------------------------- */

/* Returns a new id.  The highest bit distinguishes it from those of the feed's dictionaries. */
static uint64
new_id(void)
{
	static uint64 ids;

	return ++ids | UINT64CONST(1) << 63;
}

Dictionary *
dictionary_create(MemoryContext parent, const KeySpec *key, const ColumnSpec *col, int batch_rows)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg dictionary", ALLOCSET_DEFAULT_SIZES);
	Dictionary *dict = MemoryContextAllocZero(cxt, sizeof(Dictionary));

	dict->cxt = cxt;
	dict->values_cxt =
		AllocSetContextCreate(cxt, "gpuagg dictionary values", ALLOCSET_DEFAULT_SIZES);
	dict->temp_cxt =
		AllocSetContextCreate(cxt, "gpuagg dictionary temporary", ALLOCSET_DEFAULT_SIZES);
	dict->class = value_class(key);
	dict->collation = key->collation;
	dict->typlen = col->typlen;
	dict->typbyval = col->typbyval;
	dict->null_code = NO_CODE;
	dict->id = new_id();
	dict->seed = hash_seed_random();
	fmgr_info_cxt(key->eqfunc, &dict->eqfn, cxt);
	if (OidIsValid(key->hashfunc))
		fmgr_info_cxt(key->hashfunc, &dict->hashfn, cxt);
	dict->detoasted = MemoryContextAlloc(cxt, batch_rows * sizeof(Datum));
	return dict;
}

void
dictionary_set_seed(Dictionary *dict, HashSeed seed)
{
	dict->seed = seed;
}

void
dictionary_reset(Dictionary *dict)
{
	if (dict->values)
		pfree(dict->values);
	if (dict->value_hashes)
		pfree(dict->value_hashes);
	if (dict->entries)
		value_destroy(dict->entries);
	dict->id = new_id();
	dict->values = NULL;
	dict->value_hashes = NULL;
	dict->entries = NULL;
	dict->n = dict->capacity = 0;
	dict->null_code = NO_CODE;
	dict->value_bytes = 0;
	dict->block = NULL;
	dict->block_left = 0;
	dict->feed_dictionary = 0;
	dict->short_misses = 0;
	if (dict->short_cache)
		memset(dict->short_cache, 0, SHORTS_SIZE);
	if (dict->places)
		memset(dict->places, 0, PLACES_SIZE);
	MemoryContextReset(dict->values_cxt);
	MemoryContextReset(dict->temp_cxt);
}

/* Makes room for so many codes. */
static void
set_capacity(Dictionary *dict, int capacity)
{
	if (dict->values)
	{
		dict->values = repalloc_huge(dict->values, capacity * sizeof(Datum));
		dict->value_hashes = repalloc_huge(dict->value_hashes, capacity * sizeof(uint32));
	}
	else
	{
		dict->values = MemoryContextAllocHuge(dict->cxt, capacity * sizeof(Datum));
		dict->value_hashes = MemoryContextAllocHuge(dict->cxt, capacity * sizeof(uint32));
	}
	dict->capacity = capacity;
}

void
dictionary_reserve(Dictionary *dict, uint32 values)
{
	if (dict->entries == NULL)
		dict->entries = value_create(dict->cxt, Max(values, FIRST_VALUES), NULL);
	if (dict->capacity < Min(values, PG_INT32_MAX))
		set_capacity(dict, (int) Min(values, PG_INT32_MAX));
}

/* ---- comparisons --------------------------------------------------------- */

bool
dictionary_equal(Dictionary *dict, Datum a, Datum b)
{
	MemoryContext old = MemoryContextSwitchTo(dict->temp_cxt);
	bool equal;

	if (dict->class != VALUES_BY_FUNCTION)
	{
		a = PointerGetDatum(PG_DETOAST_DATUM_PACKED(a));
		b = PointerGetDatum(PG_DETOAST_DATUM_PACKED(b));
	}
	equal = equal_values(dict, dict->class, a, b);
	MemoryContextSwitchTo(old);
	MemoryContextReset(dict->temp_cxt);
	return equal;
}

/*
 * Returns whether two values have the same bytes. Both are detoasted, in the form in which
 * hash_value returns them.
 */
static inline bool
same_image(const Dictionary *dict, Datum a, Datum b)
{
	const char *va = DatumGetPointer(a);
	const char *vb = DatumGetPointer(b);

	if (dict->typbyval)
		return a == b;
	if (dict->typlen == -1)
		return VARSIZE_ANY_EXHDR(va) == VARSIZE_ANY_EXHDR(vb) &&
			memcmp(VARDATA_ANY(va), VARDATA_ANY(vb), VARSIZE_ANY_EXHDR(va)) == 0;
	if (dict->typlen == -2)
		return strcmp(va, vb) == 0;
	return memcmp(va, vb, dict->typlen) == 0;
}

bool
dictionary_has_image(const Dictionary *dict, int32 code, Datum value)
{
	return dict->values[code] == value ||
		datum_image_eq(dict->values[code], value, dict->typbyval, dict->typlen);
}

void
dictionary_watch_variants(Dictionary *dict)
{
	dict->watches_variants = true;
}

bool
dictionary_met_variant(const Dictionary *dict)
{
	return dict->met_variant;
}

/* ---- codes -------------------------------------------------------------- */

/* Gives the next code to a value that has none, and keeps the value. Returns the code. */
static int32
add_code(Dictionary *dict, Datum value, uint32 hash)
{
	if (dict->n == dict->capacity)
		set_capacity(dict, (int) Min(Max((int64) dict->capacity * 2, FIRST_CODES), PG_INT32_MAX));
	dict->values[dict->n] = value;
	dict->value_hashes[dict->n] = hash;
	return dict->n++;
}

/*
 * Returns the value sought, or a copy that lasts as long as the dictionary.  Copies lie densely, as
 * lookups miss the caches where there are many.
 */
static Datum
keep_value(const Sought *sought)
{
	Dictionary *dict = sought->dict;
	size_t size, pad;
	char *to;

	if (dict->typbyval || sought->lasting)
		return sought->value;
	size = datumGetSize(sought->value, false, dict->typlen);
	pad = dict->typlen == -1 && VARATT_IS_SHORT(DatumGetPointer(sought->value)) ?
		0 :
		MAXALIGN((uintptr_t) dict->block) - (uintptr_t) dict->block;
	if (pad + size > dict->block_left)
	{
		dict->block_left = Max(LEAST_BLOCK, Min(dict->value_bytes / 4, MOST_BLOCK));
		dict->block_left = Max(dict->block_left, size);
		dict->block = huge_pages_alloc(dict->values_cxt, dict->block_left);
		pad = 0;
	}
	to = dict->block + pad;
	memcpy(to, DatumGetPointer(sought->value), size);
	dict->block = to + size;
	dict->block_left -= pad + size;
	dict->value_bytes += pad + size;
	return PointerGetDatum(to);
}

/* Returns whether another code may be given; the limits are those of dictionary_lookup. */
static inline bool
has_room(const Dictionary *dict, int64 max_codes, size_t max_bytes)
{
	return dict->n == 0 ||
		(dict->n < Min(max_codes, PG_INT32_MAX) && dictionary_memory(dict) < max_bytes);
}

/* Gives a code to the value sought, which has none yet. Returns NO_CODE if there is no room. */
static pg_noinline int32
add_value(Sought sought, uint32 hash, int64 max_codes, size_t max_bytes)
{
	Dictionary *dict = sought.dict;
	bool found;
	int32 code;

	if (!has_room(dict, max_codes, max_bytes))
		return NO_CODE;
	code = add_code(dict, keep_value(&sought), hash);
	dict->entries->private_data = &sought;
	value_insert_hash(dict->entries, code, hash, &found);
	return code;
}

/*
 * Prefetches what lookups of at most LOOKUP_BLOCK values with these hashes read: their entries of
 * the hash table, and the values kept for those with equal hashes.
 */
static void
prefetch_lookups(const Dictionary *dict, const uint32 *hashes, int n)
{
	const value_hash *entries = dict->entries;
	uint32 codes[LOOKUP_BLOCK];
	int found = 0;

	Assert(n <= LOOKUP_BLOCK);
	if (dict->n < MANY_VALUES)
		return;
	for (int i = 0; i < n; i++)
		__builtin_prefetch(&entries->data[hashes[i] & entries->sizemask]);
	for (int i = 0; i < n; i++)
	{
		uint32 at = hashes[i] & entries->sizemask;

		while (entries->data[at].status == value_SH_IN_USE && entries->data[at].hash != hashes[i])
			at = (at + 1) & entries->sizemask;
		if (entries->data[at].status != value_SH_IN_USE)
			continue;
		codes[found++] = entries->data[at].code;
		__builtin_prefetch(&dict->values[entries->data[at].code]);
	}
	for (int i = 0; i < found && !dict->typbyval; i++)
		__builtin_prefetch(DatumGetPointer(dict->values[codes[i]]));
}

/* Returns the cache of values by address, or NULL if it cannot be used. */
static PlacedValue *
use_places(Dictionary *dict)
{
	if (dict->typbyval || dict->watches_variants)
		return NULL;
	if (dict->places == NULL)
		dict->places = MemoryContextAllocZero(dict->cxt, PLACES_SIZE);
	return dict->places;
}

/* Returns the entry of that cache where a value may be. */
static inline PlacedValue *
find_place(PlacedValue *places, Datum value)
{
	return &places[((uint64) value * UINT64CONST(0x9e3779b97f4a7c15)) >> (64 - PLACE_BITS)];
}

/*
 * Finds or adds the codes of rows that hash_rows has hashed. The hash table's fields are copied to
 * local variables, so that they stay in registers.
 */
static inline void
lookup_hashed_rows(Dictionary *dict, ValueClass class, const Column *col, int nrows,
				   int64 max_codes, size_t max_bytes, int32 *codes, const uint32 *hashes)
{
	Sought sought = {dict, class, col->lasting};
	value_hash entries = *dict->entries;
	PlacedValue *places = col->lasting ? use_places(dict) : NULL;
	PlacedValue none = {0};

	entries.private_data = &sought;
	for (int i = 0; i < nrows; i++)
	{
		DictEntry *entry;
		PlacedValue *place;

		if (i % LOOKUP_BLOCK == 0)
			prefetch_lookups(dict, hashes + i, Min(nrows - i, LOOKUP_BLOCK));

		if (unlikely(column_is_null(col, i)))
		{
			if (dict->null_code == NO_CODE && has_room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, NULL_VALUE_HASH);
			codes[i] = dict->null_code;
			continue;
		}
		sought.value = dict->detoasted[i];
		place = places ? find_place(places, sought.value) : &none;
		if (places && place->value == sought.value)
		{
			codes[i] = place->code;
			continue;
		}
		entry = value_lookup_hash(&entries, 0, hashes[i]);
		if (likely(entry))
		{
			codes[i] = entry->code;
			*place = (PlacedValue){sought.value, codes[i]};
			if (class != VALUES_TEXT && unlikely(dict->watches_variants) &&
				!same_image(dict, dict->values[entry->code], sought.value))
				dict->met_variant = true;
			continue;
		}
		codes[i] = add_value(sought, hashes[i], max_codes, max_bytes);
		entries.data = dict->entries->data;
		entries.sizemask = dict->entries->sizemask;
	}
}

/*
 * Fills detoasted[] and hashes[]. With a constant class, the compiler inlines only what that class
 * needs.
 */
static inline void
hash_rows(Dictionary *dict, ValueClass class, const Column *col, int nrows, uint32 *hashes)
{
	const Datum *values = col->values;
	Datum *detoasted = dict->detoasted;

	for (int i = 0; i < nrows; i++)
	{
		/* the first bytes are read here for the first time, if lengths have decided the filter */
		if (!dict->typbyval)
			column_prefetch_value(values, i, nrows);
		hashes[i] = column_is_null(col, i) ? NULL_VALUE_HASH :
											 hash_value(dict, class, values[i], &detoasted[i]);
	}
}

/* Does the same where the column comes with the hashes. */
static void
copy_hashes(Dictionary *dict, const Column *col, int nrows, uint32 *hashes)
{
	const Datum *values = col->values;

	for (int i = 0; i < nrows; i++)
	{
		bool isnull = column_is_null(col, i);

		hashes[i] = isnull ? NULL_VALUE_HASH : col->hashes[i];
		dict->detoasted[i] = isnull ? (Datum) 0 : values[i];
	}
}

/* Fills hashes[], and dict->detoasted[] with values in temp_cxt, for all rows of a column. */
static void
hash_column(Dictionary *dict, const Column *col, int nrows, uint32 *hashes)
{
	MemoryContext old = MemoryContextSwitchTo(dict->temp_cxt);

	if (col->hashes)
		copy_hashes(dict, col, nrows, hashes);
	else if (dict->class == VALUES_TEXT)
		hash_rows(dict, VALUES_TEXT, col, nrows, hashes);
	else
		hash_rows(dict, dict->class, col, nrows, hashes);
	MemoryContextSwitchTo(old);
}

void
dictionary_hash_column(Dictionary *dict, const Column *col, int nrows, uint32 *hashes)
{
	hash_column(dict, col, nrows, hashes);
	MemoryContextReset(dict->temp_cxt);
}

/* ---- short strings ------------------------------------------------------- */

/*
 * Returns the bytes of a short varlena with its header as a number, or 0 if it is too long. The
 * header has the length, so that different values have different numbers.
 */
static inline uint64
short_image(Datum value)
{
	const char *v = DatumGetPointer(value);
	int size;

	if (!VARATT_IS_1B(v) || VARATT_IS_1B_E(v))
		return 0;
	size = VARSIZE_1B(v);
	if (likely(size >= 4))
		return size <= SHORT_BYTES ? hash_load(v, 4) | hash_load(v + size - 4, 4) << 32 : 0;
	return hash_load_short(v, size);
}

/*
 * Finds or adds a value that is not in the cache of short strings. Sets *code, or NO_CODE if there
 * is no room, and *hash. If the value is short (image is not 0), stores it in the cache at *cached.
 */
static pg_noinline void
lookup_or_add(Sought sought, uint64 image, ShortValue *cached, int64 max_codes, size_t max_bytes,
			  int32 *code, uint32 *hash)
{
	Dictionary *dict = sought.dict;
	DictEntry *entry;

	*hash = hash_value(dict, VALUES_TEXT, sought.value, &sought.value);
	dict->entries->private_data = &sought;
	entry = value_lookup_hash(dict->entries, 0, *hash);
	*code = entry ? entry->code : add_value(sought, *hash, max_codes, max_bytes);
	if (image != 0 && *code != NO_CODE)
		*cached = (ShortValue){image, *code, *hash};
}

/* Looks up all rows, with the cache of short strings in front of the hash table. */
static void
lookup_in_short_cache(Dictionary *dict, const Column *col, int nrows, int64 max_codes,
					  size_t max_bytes, int32 *codes, uint32 *hashes)
{
	const Datum *values = col->values;
	ShortValue *short_cache = dict->short_cache;
	HashSeed seed = dict->seed;
	Sought sought = {dict, VALUES_TEXT, false};
	int others = 0;

	for (int i = 0; i < nrows; i++)
	{
		uint64 image;
		ShortValue *cached;

		if (unlikely(column_is_null(col, i)))
		{
			if (dict->null_code == NO_CODE && has_room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, NULL_VALUE_HASH);
			codes[i] = dict->null_code;
			hashes[i] = NULL_VALUE_HASH;
			continue;
		}
		image = short_image(values[i]);
		cached = &short_cache[((image ^ seed.mask) * seed.multiplier) >> (64 - SHORT_BITS)];
		if (likely(image != 0 && cached->image == image))
		{
			codes[i] = cached->code;
			hashes[i] = cached->hash;
			continue;
		}
		others++;
		sought.value = values[i];
		lookup_or_add(sought, image, cached, max_codes, max_bytes, &codes[i], &hashes[i]);
	}
	dict->short_misses += others > nrows / 2;
}

/*
 * Returns whether the cache of short strings should be used. It is allocated for the second batch,
 * if it takes only a small part of max_bytes.
 */
static bool
can_use_short_cache(Dictionary *dict, const Column *col, size_t max_bytes)
{
	if (dict->class != VALUES_TEXT || col->codes || col->hashes ||
		dict->short_misses >= SHORT_MISSES || dict->n == 0)
		return false;
	if (dict->short_cache == NULL && max_bytes / 16 > SHORTS_SIZE)
		dict->short_cache = MemoryContextAllocZero(dict->cxt, SHORTS_SIZE);
	return dict->short_cache != NULL;
}

/* ---- values that the feed has numbers for --------------------------------- */

/*
 * Prepares feed_codes for the feed's dictionary of this column, which may have grown since the last
 * batch.
 */
static void
prepare_feed_codes(Dictionary *dict, const Column *col)
{
	if (dict->feed_dictionary != col->dictionary)
		dict->nfeed_codes = 0;
	dict->feed_dictionary = col->dictionary;
	if (dict->nfeed_codes >= col->ncodes)
		return;
	if (dict->feed_codes_size < col->ncodes)
	{
		dict->feed_codes_size =
			Max(col->ncodes, (uint32) Min((uint64) dict->nfeed_codes * 2, PG_UINT32_MAX));
		dict->feed_codes = dict->feed_codes ?
			repalloc_huge(dict->feed_codes, dict->feed_codes_size * sizeof(FeedCode)) :
			MemoryContextAllocHuge(dict->cxt, dict->feed_codes_size * sizeof(FeedCode));
	}
	for (uint32 i = dict->nfeed_codes; i < col->ncodes; i++)
		dict->feed_codes[i] = (FeedCode){.code = NO_CODE};
	dict->nfeed_codes = col->ncodes;
}

/* Finds or adds a value of the feed's dictionary, which has been hashed; sets *known. */
static inline void
lookup_feed_value(Dictionary *dict, ValueClass class, Datum value, int64 max_codes,
				  size_t max_bytes, FeedCode *known)
{
	Sought sought = {dict, class, false, value};
	DictEntry *entry;

	dict->entries->private_data = &sought;
	entry = value_lookup_hash(dict->entries, 0, known->hash);
	if (entry == NULL)
	{
		known->code = add_value(sought, known->hash, max_codes, max_bytes);
		known->is_variant = false;
		return;
	}
	known->code = entry->code;
	known->is_variant = class != VALUES_TEXT && dict->watches_variants &&
		!same_image(dict, dict->values[entry->code], value);
}

/*
 * Looks up the values of rows from .. end - 1 that have not been looked up yet, or for which there
 * was no room.  All are hashed first, so that what the lookups need can be prefetched.  Codes are
 * given in the order of rows, also to NULL.
 */
static inline void
lookup_new_feed_values(Dictionary *dict, ValueClass class, const Column *col, int from, int end,
					   int64 max_codes, size_t max_bytes)
{
	const Datum *values = col->values;
	uint32 rows[NEW_VALUES];
	uint32 hashes[NEW_VALUES];
	bool seeks_null = dict->null_code == NO_CODE;
	int n = 0;

	for (int i = from; i < end; i++)
	{
		FeedCode *known;

		if (column_is_null(col, i))
		{
			if (seeks_null)
				rows[n++] = i;
			seeks_null = false;
			continue;
		}
		known = &dict->feed_codes[col->codes[i]];
		if (known->code != NO_CODE)
			continue;
		known->code = AWAITED_CODE;
		rows[n++] = i;
	}
	for (int j = 0; j < n; j++)
	{
		hashes[j] = NULL_VALUE_HASH;
		if (column_is_null(col, rows[j]))
			continue;
		hashes[j] = hash_value(dict, class, values[rows[j]], &dict->detoasted[j]);
		dict->feed_codes[col->codes[rows[j]]].hash = hashes[j];
	}
	for (int j = 0; j < n; j++)
	{
		FeedCode *known = &dict->feed_codes[col->codes[rows[j]]];

		if (j % LOOKUP_BLOCK == 0)
			prefetch_lookups(dict, hashes + j, Min(n - j, LOOKUP_BLOCK));
		if (column_is_null(col, rows[j]))
		{
			if (has_room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, NULL_VALUE_HASH);
			continue;
		}
		lookup_feed_value(dict, class, dict->detoasted[j], max_codes, max_bytes, known);
	}
}

/*
 * Fills codes[] and hashes[] for a column whose values have numbers in a dictionary of the feed:
 * looks up a value when the first row has its number, together with new values of the next rows.
 */
static void
lookup_feed_codes(Dictionary *dict, const Column *col, int nrows, int64 max_codes, size_t max_bytes,
				  int32 *codes, uint32 *hashes)
{
	const uint64 *validity = col->validity;
	const uint32 *numbers = col->codes;
	bool variant = false;
	int sought = 0; /* values of the rows before have been looked up */

	prepare_feed_codes(dict, col);
	for (int i = 0; i < nrows; i++)
	{
		FeedCode *known;

		if (unlikely(validity && !bitmap_get(validity, i)))
		{
			if (dict->null_code == NO_CODE && has_room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, NULL_VALUE_HASH);
			codes[i] = dict->null_code;
			hashes[i] = NULL_VALUE_HASH;
			continue;
		}
		known = &dict->feed_codes[numbers[i]];
		if (unlikely(known->code == NO_CODE) && i >= sought)
		{
			sought = Min(nrows, i + NEW_VALUES);
			if (dict->class == VALUES_TEXT)
				lookup_new_feed_values(dict, VALUES_TEXT, col, i, sought, max_codes, max_bytes);
			else
				lookup_new_feed_values(dict, dict->class, col, i, sought, max_codes, max_bytes);
		}
		codes[i] = known->code;
		hashes[i] = known->hash;
		variant |= known->is_variant;
	}
	dict->met_variant |= variant;
}

void
dictionary_lookup(Dictionary *dict, const Column *col, int nrows, int64 max_codes, size_t max_bytes,
				  int32 *codes, uint32 *hashes)
{
	MemoryContext old;
	bool short_cache = can_use_short_cache(dict, col, max_bytes);

	if (!dict->entries)
		dict->entries = value_create(dict->cxt, FIRST_VALUES, NULL);
	dict->met_variant = false;
	if (!col->codes && !short_cache)
		hash_column(dict, col, nrows, hashes);
	old = MemoryContextSwitchTo(dict->temp_cxt);
	if (short_cache)
		lookup_in_short_cache(dict, col, nrows, max_codes, max_bytes, codes, hashes);
	else if (col->codes)
		lookup_feed_codes(dict, col, nrows, max_codes, max_bytes, codes, hashes);
	else if (dict->class == VALUES_TEXT)
		lookup_hashed_rows(dict, VALUES_TEXT, col, nrows, max_codes, max_bytes, codes, hashes);
	else
		lookup_hashed_rows(dict, dict->class, col, nrows, max_codes, max_bytes, codes, hashes);
	MemoryContextSwitchTo(old);
	MemoryContextReset(dict->temp_cxt);
}

Datum
dictionary_value(const Dictionary *dict, int32 code, bool *isnull)
{
	*isnull = code == dict->null_code;
	return dict->values[code];
}

DictionaryView
dictionary_view(const Dictionary *dict)
{
	return (DictionaryView){dict->n, dict->values, dict->value_hashes, dict->null_code};
}

uint32
dictionary_hash(const Dictionary *dict, int32 code)
{
	return dict->value_hashes[code];
}

uint64
dictionary_id(const Dictionary *dict)
{
	return dict->id;
}

int
dictionary_size(const Dictionary *dict)
{
	return dict->n;
}

size_t
dictionary_memory(const Dictionary *dict)
{
	size_t bytes = dict->value_bytes + dict->capacity * (sizeof(Datum) + sizeof(uint32));

	bytes += dict->feed_codes_size * sizeof(FeedCode);
	return bytes + (dict->entries ? dict->entries->size * sizeof(DictEntry) : 0);
}

size_t
dictionary_empty_memory(const Dictionary *dict)
{
	return dict->feed_codes_size * sizeof(FeedCode) +
		FIRST_CODES * (sizeof(Datum) + sizeof(uint32)) + FIRST_ENTRIES * sizeof(DictEntry);
}
