/*
 * dictionary.c
 *	  Values to codes; see dictionary.h.
 *
 * Strings whose equality is that of their bytes are hashed and compared here;
 * other types go through their own hash and equality functions, run in a
 * context that is reset after each batch.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "groups/dictionary.h"

#define MIN_SLOTS 256
#define NULL_VALUE_HASH 0x9e3779b9

/* How values are hashed and compared. */
typedef enum ValueClass
{
	VALUES_BY_FUNCTION,
	VALUES_TEXT,				/* varlena, all bytes count */
	VALUES_BPCHAR				/* varlena, trailing spaces do not count */
} ValueClass;

typedef struct Entry
{
	Datum		value;
	uint32		hash;
	bool		isnull;
} Entry;

struct Dictionary
{
	MemoryContext cxt;
	MemoryContext values_cxt;
	MemoryContext temp_cxt;
	ValueClass	class;
	FmgrInfo	hashfn;
	FmgrInfo	eqfn;
	Oid			collation;
	int16		typlen;
	bool		typbyval;
	bool		watches;		/* look out for variants */
	bool		variant;		/* the last lookup met one */
	HashSeed	seed;			/* stays: partitions of spilled rows depend on it */
	int			n;
	int			capacity;
	Entry	   *entries;
	uint64	   *slots;			/* hash << 32 | code; all ones where free */
	uint32		mask;
	int32		null_code;
	size_t		value_bytes;
	Datum	   *detoasted;		/* [row] of a batch */
};

HashSeed
hash_seed_random(void)
{
	uint64		mask = pg_prng_uint64(&pg_global_prng_state);

	return hash_seed(mask, pg_prng_uint64(&pg_global_prng_state));
}

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

Dictionary *
dictionary_create(MemoryContext parent, const KeySpec *key, const ColumnSpec *col, int batch_rows)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg dictionary", ALLOCSET_DEFAULT_SIZES);
	Dictionary *dict = MemoryContextAllocZero(cxt, sizeof(Dictionary));

	dict->cxt = cxt;
	dict->values_cxt = AllocSetContextCreate(cxt, "gpuagg dictionary values",
											 ALLOCSET_DEFAULT_SIZES);
	dict->temp_cxt = AllocSetContextCreate(cxt, "gpuagg dictionary temporary",
										   ALLOCSET_DEFAULT_SIZES);
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
dictionary_reset(Dictionary *dict)
{
	if (dict->entries)
		pfree(dict->entries);
	if (dict->slots)
		pfree(dict->slots);
	dict->entries = NULL;
	dict->slots = NULL;
	dict->n = dict->capacity = 0;
	dict->mask = 0;
	dict->null_code = NO_CODE;
	dict->value_bytes = 0;
	MemoryContextReset(dict->values_cxt);
	MemoryContextReset(dict->temp_cxt);
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
			v = pg_detoast_datum_packed(v);
		*detoasted = PointerGetDatum(v);
		return hash_string(dict->seed, VARDATA_ANY(v), value_length(class, VARDATA_ANY(v),
																	VARSIZE_ANY_EXHDR(v)));
	}
	/* with a full header, so that neither function has to copy it again */
	if (dict->typlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	*detoasted = value;
	return hash_finish(hash_fold(dict->seed, DatumGetUInt32(FunctionCall1Coll(&dict->hashfn,
																			  dict->collation, value))));
}

/* Both are as hash_value leaves them. */
static inline bool
equal_values(Dictionary *dict, ValueClass class, Datum a, Datum b)
{
	if (class != VALUES_BY_FUNCTION)
	{
		const char *va = DatumGetPointer(a);
		const char *vb = DatumGetPointer(b);
		int			la = value_length(class, VARDATA_ANY(va), VARSIZE_ANY_EXHDR(va));
		int			lb = value_length(class, VARDATA_ANY(vb), VARSIZE_ANY_EXHDR(vb));

		return la == lb && equal_bytes(VARDATA_ANY(va), VARDATA_ANY(vb), la);
	}
	return DatumGetBool(FunctionCall2Coll(&dict->eqfn, dict->collation, a, b));
}

/* Are two values equal by the type's own equality? */
bool
dictionary_equal(Dictionary *dict, Datum a, Datum b)
{
	MemoryContext old = MemoryContextSwitchTo(dict->temp_cxt);
	bool		equal;

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

/* Do two values look alike?  Both are as hash_value leaves them. */
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
	return datum_image_eq(dict->entries[code].value, value, dict->typbyval, dict->typlen);
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

static void
insert_slot(Dictionary *dict, uint32 hash, int32 code)
{
	uint32		pos = hash & dict->mask;

	while (dict->slots[pos] != PG_UINT64_MAX)
		pos = (pos + 1) & dict->mask;
	dict->slots[pos] = ((uint64) hash << 32) | (uint32) code;
}

static void
make_slots(Dictionary *dict, size_t size)
{
	if (dict->slots)
		pfree(dict->slots);
	dict->slots = MemoryContextAllocHuge(dict->cxt, size * sizeof(uint64));
	memset(dict->slots, 0xff, size * sizeof(uint64));
	dict->mask = size - 1;
	for (int code = 0; code < dict->n; code++)
		if (!dict->entries[code].isnull)
			insert_slot(dict, dict->entries[code].hash, code);
}

/* The next code, for a value (or NULL) that has none yet. */
static int32
add_entry(Dictionary *dict, Datum value, bool isnull, uint32 hash)
{
	Entry	   *entry;

	if (dict->n == dict->capacity)
	{
		int			capacity = (int) Min(Max((int64) dict->capacity * 2, 64), PG_INT32_MAX);

		if (dict->entries)
			dict->entries = repalloc_huge(dict->entries, capacity * sizeof(Entry));
		else
			dict->entries = MemoryContextAlloc(dict->cxt, capacity * sizeof(Entry));
		dict->capacity = capacity;
	}
	entry = &dict->entries[dict->n];
	entry->isnull = isnull;
	entry->hash = hash;
	entry->value = (Datum) 0;
	if (!isnull)
	{
		MemoryContext old = MemoryContextSwitchTo(dict->values_cxt);

		entry->value = datumCopy(value, dict->typbyval, dict->typlen);
		MemoryContextSwitchTo(old);
		if (!dict->typbyval)
			dict->value_bytes += 16 + datumGetSize(entry->value, false, dict->typlen);
	}
	return dict->n++;
}

static inline bool
room(const Dictionary *dict, int64 max_codes, size_t max_bytes)
{
	return dict->n == 0 ||
		(dict->n < Min(max_codes, PG_INT32_MAX) && dictionary_memory(dict) < max_bytes);
}

/* Looks one value up, or gives it a code if there is room. */
static inline int32
find_value(Dictionary *dict, ValueClass class, Datum value, uint32 hash, int64 max_codes,
		   size_t max_bytes)
{
	uint32		pos = hash & dict->mask;
	int32		code;

	for (;;)
	{
		uint64		slot = dict->slots[pos];

		if (slot == PG_UINT64_MAX)
			break;
		code = (int32) (uint32) slot;
		if ((uint32) (slot >> 32) == hash &&
			equal_values(dict, class, dict->entries[code].value, value))
		{
			if (class != VALUES_TEXT && unlikely(dict->watches) &&
				!same_image(dict, dict->entries[code].value, value))
				dict->variant = true;
			return code;
		}
		pos = (pos + 1) & dict->mask;
	}
	if (!room(dict, max_codes, max_bytes))
		return NO_CODE;
	code = add_entry(dict, value, false, hash);
	if ((uint64) dict->n * 4 > ((uint64) dict->mask + 1) * 3)
		make_slots(dict, ((size_t) dict->mask + 1) * 2);
	else
		dict->slots[pos] = ((uint64) hash << 32) | (uint32) code;
	return code;
}

/* Fills detoasted and hashes.  With a constant class there is nothing to decide for each row. */
static inline void
hash_rows(Dictionary *dict, ValueClass class, const Column *col, int nrows, uint32 *hashes)
{
	const Datum *values = col->values;
	Datum	   *detoasted = dict->detoasted;
	const uint64 *slots = dict->slots;
	uint32		mask = dict->mask;

	for (int i = 0; i < nrows; i++)
	{
		if (column_is_null(col, i))
		{
			hashes[i] = NULL_VALUE_HASH;
			continue;
		}
		hashes[i] = hash_value(dict, class, values[i], &detoasted[i]);
		if (slots)
			__builtin_prefetch(&slots[hashes[i] & mask]);
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

static inline void
find_rows(Dictionary *dict, ValueClass class, const Column *col, int nrows, int64 max_codes,
		  size_t max_bytes, int32 *codes, const uint32 *hashes)
{
	for (int i = 0; i < nrows; i++)
	{
		if (unlikely(column_is_null(col, i)))
		{
			if (dict->null_code == NO_CODE && room(dict, max_codes, max_bytes))
				dict->null_code = add_entry(dict, (Datum) 0, true, NULL_VALUE_HASH);
			codes[i] = dict->null_code;
		}
		else
			codes[i] = find_value(dict, class, dict->detoasted[i], hashes[i], max_codes, max_bytes);
	}
}

void
dictionary_lookup(Dictionary *dict, const Column *col, int nrows, int64 max_codes,
				  size_t max_bytes, int32 *codes, uint32 *hashes)
{
	MemoryContext old;

	if (!dict->slots)
		make_slots(dict, MIN_SLOTS);
	dict->variant = false;
	hash_column(dict, col, nrows, hashes);
	old = MemoryContextSwitchTo(dict->temp_cxt);
	if (dict->class == VALUES_TEXT)
		find_rows(dict, VALUES_TEXT, col, nrows, max_codes, max_bytes, codes, hashes);
	else
		find_rows(dict, dict->class, col, nrows, max_codes, max_bytes, codes, hashes);
	MemoryContextSwitchTo(old);
	MemoryContextReset(dict->temp_cxt);
}

Datum
dictionary_value(const Dictionary *dict, int32 code, bool *isnull)
{
	*isnull = dict->entries[code].isnull;
	return dict->entries[code].value;
}

uint32
dictionary_hash(const Dictionary *dict, int32 code)
{
	return dict->entries[code].hash;
}

int
dictionary_size(const Dictionary *dict)
{
	return dict->n;
}

size_t
dictionary_memory(const Dictionary *dict)
{
	size_t		bytes = dict->value_bytes + dict->capacity * sizeof(Entry);

	return bytes + (dict->slots ? ((size_t) dict->mask + 1) * sizeof(uint64) : 0);
}
