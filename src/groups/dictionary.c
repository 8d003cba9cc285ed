/*
 * dictionary.c
 *	  Values to codes; see dictionary.h.
 *
 * Strings whose equality is that of their bytes are hashed and compared here;
 * values of other types by the hash and equality functions of their type, which
 * run in a context that is reset after each batch.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "columns/hash_seed.h"
#include "common/compat.h"
#include "groups/dictionary.h"

/* Values that there is room for at first. */
#define FIRST_VALUES 128
#define NULL_VALUE_HASH 0x9e3779b9

/* How values are hashed and compared. */
typedef enum ValueClass
{
	VALUES_BY_FUNCTION,
	VALUES_TEXT,  /* varlena, all bytes count */
	VALUES_BPCHAR /* varlena, trailing spaces do not count */
} ValueClass;

/* An entry of the hash table: small, as lookups miss the cache where there are many values. */
typedef struct DictEntry
{
	uint32 hash;
	uint32 code : 31;
	uint32 status : 1; /* of simplehash.h */
} DictEntry;

/*
 * Short strings that were looked up lately: a varlena of at most 8 bytes, header and all, as a
 * number, in a place that a hash of it says.  No value is compared for these, as the number is all
 * of it.
 */
#define SHORT_BYTES 8
#define SHORT_BITS 10

typedef struct ShortValue
{
	uint64 image; /* 0: none, as headers are not 0 */
	int32 code;
	uint32 hash;
} ShortValue;

#define SHORTS_SIZE (sizeof(ShortValue) << SHORT_BITS)
/* After so many batches without use there are none any more. */
#define SHORT_MISSES 4

/* What is known of a value that the feed has a number for. */
typedef struct Known
{
	int32 code; /* NO_CODE: nothing */
	uint32 hash;
	bool variant; /* it looks different from the value of its code */
} Known;

struct Dictionary
{
	MemoryContext cxt;
	MemoryContext values_cxt;
	MemoryContext temp_cxt;
	ValueClass class;
	FmgrInfo hashfn;
	FmgrInfo eqfn;
	Oid collation;
	int16 typlen;
	bool typbyval;
	bool watches;  /* for variants */
	bool variant;  /* the last lookup met one */
	HashSeed seed; /* stays: partitions of spilled rows depend on it */
	int n;
	int capacity;
	Datum *values;              /* [code] */
	struct value_hash *entries; /* codes by value; NULL's is not among them */
	int32 null_code;
	size_t value_bytes;
	Datum *detoasted;  /* [row] of a batch */
	Known *known;      /* [number] of the feed's dictionary (Column.codes) */
	uint32 known_size; /* there is room for */
	uint32 known_n;
	uint64 known_of;    /* Column.dictionary that these are for; 0: none */
	ShortValue *shorts; /* [hash of the image]; NULL: not in use yet */
	int short_misses;   /* batches of which most rows were not among them */
};

static bool
bytes_decide(Oid collation)
{
	return !OidIsValid(collation) || get_collation_isdeterministic(collation);
}

static ValueClass
value_class(const KeySpec *key)
{
	if (key->eqfunc == F_TEXTEQ && bytes_decide(key->collation))
		return VALUES_TEXT;
	if (key->eqfunc == F_BYTEAEQ)
		return VALUES_TEXT;
	if (key->eqfunc == F_BPCHAREQ && bytes_decide(key->collation))
		return VALUES_BPCHAR;
	return VALUES_BY_FUNCTION;
}

/* Bytes of a varlena that take part in equality. */
static inline int
value_length(ValueClass class, const char *data, int len)
{
	if (class == VALUES_BPCHAR)
		while (len > 0 && data[len - 1] == ' ')
			len--;
	return len;
}

/* Are two strings of one length equal?  Most are short. */
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

/* Detoasts a row's value where needed and hashes it. */
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
	/* with a full header, so that neither function has to copy it again */
	if (dict->typlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	*detoasted = value;
	return hash_finish(hash_fold(
		dict->seed, DatumGetUInt32(FunctionCall1Coll(&dict->hashfn, dict->collation, value))));
}

/* Both are as hash_value leaves them. */
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

/* The value of a code as dictionary_lookup hashed it before it was kept. */
static uint32
code_hash(Dictionary *dict, uint32 code)
{
	Datum detoasted;

	return hash_value(dict, dict->class, dict->values[code], &detoasted);
}

/* A value that is looked up. */
typedef struct Sought
{
	Dictionary *dict;
	ValueClass class;
	Datum value;
} Sought;

static inline bool
equals_sought(const Sought *sought, uint32 code)
{
	return equal_values(sought->dict, sought->class, sought->dict->values[code], sought->value);
}

/* The keys are codes, but lookups are for the value that private_data points to. */
#define SH_PREFIX value
#define SH_ELEMENT_TYPE DictEntry
#define SH_KEY_TYPE uint32
#define SH_KEY code
#define SH_HASH_KEY(entries, code) code_hash(((Sought *) (entries)->private_data)->dict, code)
#define SH_EQUAL(entries, code, key) equals_sought((entries)->private_data, code)
/* At its default, 0.9, queries on text keys take up to a quarter longer. */
#define SH_FILLFACTOR 0.5
#define SH_STORE_HASH
#define SH_GET_HASH(entries, entry) (entry)->hash
#define SH_SCOPE static inline pg_attribute_unused()
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* ---- life --------------------------------------------------------------- */

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
	if (dict->entries)
		value_destroy(dict->entries);
	dict->values = NULL;
	dict->entries = NULL;
	dict->n = dict->capacity = 0;
	dict->null_code = NO_CODE;
	dict->value_bytes = 0;
	dict->known_of = 0;
	dict->short_misses = 0;
	if (dict->shorts)
		memset(dict->shorts, 0, SHORTS_SIZE);
	MemoryContextReset(dict->values_cxt);
	MemoryContextReset(dict->temp_cxt);
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

/* Are two values the same byte by byte?  Both are as hash_value leaves them. */
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
dictionary_shows(const Dictionary *dict, int32 code, Datum value)
{
	return datum_image_eq(dict->values[code], value, dict->typbyval, dict->typlen);
}

void
dictionary_watch_variants(Dictionary *dict)
{
	dict->watches = true;
}

bool
dictionary_met_variant(const Dictionary *dict)
{
	return dict->variant;
}

/* ---- codes -------------------------------------------------------------- */

/* The next code, for a value (or NULL) that has none yet. */
static int32
add_code(Dictionary *dict, Datum value, bool isnull)
{
	if (dict->n == dict->capacity)
	{
		int capacity = (int) Min(Max((int64) dict->capacity * 2, 64), PG_INT32_MAX);

		if (dict->values)
			dict->values = repalloc_huge(dict->values, capacity * sizeof(Datum));
		else
			dict->values = MemoryContextAlloc(dict->cxt, capacity * sizeof(Datum));
		dict->capacity = capacity;
	}
	if (!isnull && !dict->typbyval)
	{
		MemoryContext old = MemoryContextSwitchTo(dict->values_cxt);

		value = datumCopy(value, false, dict->typlen);
		MemoryContextSwitchTo(old);
		dict->value_bytes += 16 + datumGetSize(value, false, dict->typlen);
	}
	dict->values[dict->n] = value;
	return dict->n++;
}

static inline bool
room(const Dictionary *dict, int64 max_codes, size_t max_bytes)
{
	return dict->n == 0 ||
		(dict->n < Min(max_codes, PG_INT32_MAX) && dictionary_memory(dict) < max_bytes);
}

/* A code for the value sought, which has none, if there is room. */
static pg_noinline int32
add_value(Sought sought, uint32 hash, int64 max_codes, size_t max_bytes)
{
	Dictionary *dict = sought.dict;
	bool found;
	int32 code;

	if (!room(dict, max_codes, max_bytes))
		return NO_CODE;
	code = add_code(dict, sought.value, false);
	dict->entries->private_data = &sought;
	value_insert_hash(dict->entries, code, hash, &found);
	return code;
}

/*
 * The codes of rows that hash_rows has hashed.  What lookups need is in local
 * variables, so that it stays in registers.
 */
static inline void
find_rows(Dictionary *dict, ValueClass class, const Column *col, int nrows, int64 max_codes,
		  size_t max_bytes, int32 *codes, const uint32 *hashes)
{
	Sought sought = {dict, class};
	value_hash entries = *dict->entries;

	entries.private_data = &sought;
	for (int i = 0; i < nrows; i++)
	{
		DictEntry *entry;

		if (unlikely(column_is_null(col, i)))
		{
			if (dict->null_code == NO_CODE && room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, true);
			codes[i] = dict->null_code;
			continue;
		}
		sought.value = dict->detoasted[i];
		entry = value_lookup_hash(&entries, 0, hashes[i]);
		if (likely(entry))
		{
			codes[i] = entry->code;
			if (class != VALUES_TEXT && unlikely(dict->watches) &&
				!same_image(dict, dict->values[entry->code], sought.value))
				dict->variant = true;
			continue;
		}
		codes[i] = add_value(sought, hashes[i], max_codes, max_bytes);
		entries.data = dict->entries->data;
		entries.sizemask = dict->entries->sizemask;
	}
}

/* Fills detoasted and hashes.  A constant class decides once what is inlined. */
static inline void
hash_rows(Dictionary *dict, ValueClass class, const Column *col, int nrows, uint32 *hashes)
{
	const Datum *values = col->values;
	Datum *detoasted = dict->detoasted;
	const value_hash *entries = dict->entries;

	for (int i = 0; i < nrows; i++)
	{
		if (column_is_null(col, i))
		{
			hashes[i] = NULL_VALUE_HASH;
			continue;
		}
		hashes[i] = hash_value(dict, class, values[i], &detoasted[i]);
		if (entries)
			__builtin_prefetch(&entries->data[hashes[i] & entries->sizemask]);
	}
}

static void
hash_column(Dictionary *dict, const Column *col, int nrows, uint32 *hashes)
{
	MemoryContext old = MemoryContextSwitchTo(dict->temp_cxt);

	if (dict->class == VALUES_TEXT)
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

/* The bytes of a varlena that is short enough, of which the first says how many; or 0. */
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

/* Looks up a value that is not among the short ones there, and puts it there if it is short. */
static pg_noinline void
lookup_or_add(Sought sought, uint64 image, ShortValue *shown, int64 max_codes, size_t max_bytes,
			  int32 *code, uint32 *hash)
{
	Dictionary *dict = sought.dict;
	DictEntry *entry;

	*hash = hash_value(dict, VALUES_TEXT, sought.value, &sought.value);
	dict->entries->private_data = &sought;
	entry = value_lookup_hash(dict->entries, 0, *hash);
	*code = entry ? entry->code : add_value(sought, *hash, max_codes, max_bytes);
	if (image != 0 && *code != NO_CODE)
		*shown = (ShortValue){image, *code, *hash};
}

static void
lookup_short(Dictionary *dict, const Column *col, int nrows, int64 max_codes, size_t max_bytes,
			 int32 *codes, uint32 *hashes)
{
	const Datum *values = col->values;
	ShortValue *shorts = dict->shorts;
	HashSeed seed = dict->seed;
	Sought sought = {dict, VALUES_TEXT};
	int others = 0;

	for (int i = 0; i < nrows; i++)
	{
		uint64 image;
		ShortValue *shown;

		if (unlikely(column_is_null(col, i)))
		{
			if (dict->null_code == NO_CODE && room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, true);
			codes[i] = dict->null_code;
			hashes[i] = NULL_VALUE_HASH;
			continue;
		}
		image = short_image(values[i]);
		shown = &shorts[((image ^ seed.mask) * seed.multiplier) >> (64 - SHORT_BITS)];
		if (likely(image != 0 && shown->image == image))
		{
			codes[i] = shown->code;
			hashes[i] = shown->hash;
			continue;
		}
		others++;
		sought.value = values[i];
		lookup_or_add(sought, image, shown, max_codes, max_bytes, &codes[i], &hashes[i]);
	}
	dict->short_misses += others > nrows / 2;
}

/*
 * May the short values be of use?  They are made when a second batch comes, where they are a small
 * part of the memory.
 */
static bool
uses_shorts(Dictionary *dict, const Column *col, size_t max_bytes)
{
	if (dict->class != VALUES_TEXT || col->codes || dict->short_misses >= SHORT_MISSES ||
		dict->n == 0)
		return false;
	if (dict->shorts == NULL && max_bytes / 16 > SHORTS_SIZE)
		dict->shorts = MemoryContextAllocZero(dict->cxt, SHORTS_SIZE);
	return dict->shorts != NULL;
}

/* ---- values that the feed has numbers for --------------------------------- */

/* Makes `known` that of the column's dictionary, which may have got more values since. */
static void
prepare_known(Dictionary *dict, const Column *col)
{
	if (dict->known_of != col->dictionary)
		dict->known_n = 0;
	dict->known_of = col->dictionary;
	if (dict->known_n >= col->ncodes)
		return;
	if (dict->known_size < col->ncodes)
	{
		dict->known_size =
			Max(col->ncodes, (uint32) Min((uint64) dict->known_n * 2, PG_UINT32_MAX));
		dict->known = dict->known ?
			repalloc_huge(dict->known, dict->known_size * sizeof(Known)) :
			MemoryContextAllocHuge(dict->cxt, dict->known_size * sizeof(Known));
	}
	for (uint32 i = dict->known_n; i < col->ncodes; i++)
		dict->known[i] = (Known){.code = NO_CODE};
	dict->known_n = col->ncodes;
}

/* Looks up a value that is not known yet, or had no room. */
static pg_noinline void
learn_value(Dictionary *dict, Datum value, int64 max_codes, size_t max_bytes, Known *known)
{
	Sought sought = {dict, dict->class};
	DictEntry *entry;

	known->hash = hash_value(dict, dict->class, value, &sought.value);
	dict->entries->private_data = &sought;
	entry = value_lookup_hash(dict->entries, 0, known->hash);
	if (entry == NULL)
	{
		known->code = add_value(sought, known->hash, max_codes, max_bytes);
		known->variant = false;
		return;
	}
	known->code = entry->code;
	known->variant = dict->class != VALUES_TEXT && dict->watches &&
		!same_image(dict, dict->values[entry->code], sought.value);
}

static void
lookup_coded(Dictionary *dict, const Column *col, int nrows, int64 max_codes, size_t max_bytes,
			 int32 *codes, uint32 *hashes)
{
	const Datum *values = col->values;
	const uint64 *validity = col->validity;
	const uint32 *numbers = col->codes;
	bool variant = false;

	prepare_known(dict, col);
	for (int i = 0; i < nrows; i++)
	{
		Known *known;

		if (unlikely(validity && !bitmap_get(validity, i)))
		{
			if (dict->null_code == NO_CODE && room(dict, max_codes, max_bytes))
				dict->null_code = add_code(dict, (Datum) 0, true);
			codes[i] = dict->null_code;
			hashes[i] = NULL_VALUE_HASH;
			continue;
		}
		known = &dict->known[numbers[i]];
		if (unlikely(known->code == NO_CODE))
			learn_value(dict, values[i], max_codes, max_bytes, known);
		codes[i] = known->code;
		hashes[i] = known->hash;
		variant |= known->variant;
	}
	dict->variant |= variant;
}

void
dictionary_lookup(Dictionary *dict, const Column *col, int nrows, int64 max_codes, size_t max_bytes,
				  int32 *codes, uint32 *hashes)
{
	MemoryContext old;
	bool shorts = uses_shorts(dict, col, max_bytes);

	if (!dict->entries)
		dict->entries = value_create(dict->cxt, FIRST_VALUES, NULL);
	dict->variant = false;
	if (!col->codes && !shorts)
		hash_column(dict, col, nrows, hashes);
	old = MemoryContextSwitchTo(dict->temp_cxt);
	if (shorts)
		lookup_short(dict, col, nrows, max_codes, max_bytes, codes, hashes);
	else if (col->codes)
		lookup_coded(dict, col, nrows, max_codes, max_bytes, codes, hashes);
	else if (dict->class == VALUES_TEXT)
		find_rows(dict, VALUES_TEXT, col, nrows, max_codes, max_bytes, codes, hashes);
	else
		find_rows(dict, dict->class, col, nrows, max_codes, max_bytes, codes, hashes);
	MemoryContextSwitchTo(old);
	MemoryContextReset(dict->temp_cxt);
}

Datum
dictionary_value(const Dictionary *dict, int32 code, bool *isnull)
{
	*isnull = code == dict->null_code;
	return dict->values[code];
}

uint32
dictionary_hash(Dictionary *dict, int32 code)
{
	MemoryContext old;
	uint32 hash;

	if (code == dict->null_code)
		return NULL_VALUE_HASH;
	old = MemoryContextSwitchTo(dict->temp_cxt);
	hash = code_hash(dict, code);
	MemoryContextSwitchTo(old);
	MemoryContextReset(dict->temp_cxt);
	return hash;
}

int
dictionary_size(const Dictionary *dict)
{
	return dict->n;
}

size_t
dictionary_memory(const Dictionary *dict)
{
	size_t bytes = dict->value_bytes + dict->capacity * sizeof(Datum);

	return bytes + (dict->entries ? dict->entries->size * sizeof(DictEntry) : 0);
}
