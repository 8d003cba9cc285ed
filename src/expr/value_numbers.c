/*
 * value_numbers.c
 *	  Numbers the by-reference values of a vector, or its decimals as numerics, in a dictionary.
 *
 * Equal numbers mean equal bytes.  The following have no number: values that are long, out of line
 * or compressed, decimals beyond 64 bits, and new values once the dictionary is full.  If many rows
 * have values that are not in the dictionary, lookups pause for a while (ExprWindow).
 *
 * Memory: the dictionary lives as long as the root that it was made for.  Its values stay where
 * they are.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "columns/decimal.h"
#include "common/interruptible.h"
#include "expr/expr_internal.h"
#include "operators/cpu_hash.h"

/* Limits of a dictionary: number of values, its initial size, bytes of a value. */
#define MOST_CODES 16384
#define FIRST_CODES 256
#define LONGEST_VALUE 64
/* The limits for values of a costly expression; memory ends the dictionary earlier. */
#define MOST_CODES_COSTLY (16 * 1024 * 1024)
#define LONGEST_VALUE_COSTLY 2048
/* Codes of decimals below this, such as fields of times, are found without a hash. */
#define SMALL_DECIMALS 4096
/*
 * A pause begins if more than this part of a window's rows were not found.  Its length in rows
 * grows from FIRST_PAUSE.
 */
#define MOST_MISSED(rows) ((rows) / 4)
#define MOST_MISSED_COSTLY(rows) ((rows) - (rows) / 16)
/* Windows and pauses are longer by this factor, because values may repeat late. */
#define COSTLY_WINDOWS 16
#define FIRST_PAUSE (4 * EXPR_WINDOW)
#define LONGEST_PAUSE (1024 * EXPR_WINDOW)

#define NO_ENTRY PG_UINT32_MAX

/* An entry of the dictionary's hash table. */
typedef struct CodeEntry
{
	uint64 word; /* up to 8 bytes, or a decimal; else a hash of the bytes */
	uint32 len;  /* number of bytes; 0 for a decimal */
	uint32 code; /* NO_ENTRY: the entry is free */
} CodeEntry;

/* A dictionary that numbers the values of one vector; its numbers are also called codes. */
typedef struct Codes
{
	ExprDictionary dictionary;
	MemoryContext cxt;
	HashSeed seed;
	uint32 mask;
	CodeEntry *table;
	uint32 capacity; /* allocated size of dictionary.values */
	int16 typlen;
	int16 scale;    /* scale of the decimals */
	uint32 *small;  /* [decimal] its code, or NO_ENTRY: not looked up yet; NULL: values are not
					  decimals */
	uint32 most;    /* maximum number of values */
	uint32 longest; /* maximum length of a value in bytes */
	ExprWindow window;
} Codes;

/* ---- whether it pays ---------------------------------------------------------- */

bool
expr_window_open(ExprWindow *window, int n)
{
	if (window->pause <= 0)
		return true;
	window->pause -= n;
	return false;
}

void
expr_window_note(ExprWindow *window, int n, int missed)
{
	int scale = window->costly ? COSTLY_WINDOWS : 1;
	int most;

	window->rows += n;
	window->missed += missed;
	if (window->rows < EXPR_WINDOW * scale)
		return;
	most = window->costly ? MOST_MISSED_COSTLY(window->rows) : MOST_MISSED(window->rows);
	if (window->missed > most)
		window->pauses = Min(Max(window->pauses * 2, FIRST_PAUSE * scale), LONGEST_PAUSE * scale);
	else
		window->pauses = 0;
	window->pause = window->pauses;
	window->rows = window->missed = 0;
}

/* ---- the dictionary ----------------------------------------------------------- */

uint64
expr_new_dictionary(void)
{
	static uint64 dictionaries;

	return ++dictionaries;
}

/* Returns the place in the hash table where the search for a value starts. */
static inline uint32
hash_position(const Codes *codes, uint64 word, uint32 len)
{
	return hash_finish(hash_fold(codes->seed, word ^ (uint64) len << 56)) & codes->mask;
}

/* Replaces the hash table by one of `size` places, a power of two, and enters all entries. */
static void
resize_table(Codes *codes, uint32 size)
{
	CodeEntry *old = codes->table;
	uint32 old_size = old ? codes->mask + 1 : 0;

	codes->table = MemoryContextAllocHuge(codes->cxt, size * sizeof(CodeEntry));
	codes->mask = size - 1;
	INTERRUPTIBLE_FOR (i, 0, size)
		codes->table[i].code = NO_ENTRY;
	INTERRUPTIBLE_FOR (i, 0, old_size)
		if (old[i].code != NO_ENTRY)
		{
			uint32 at = hash_position(codes, old[i].word, old[i].len);

			while (codes->table[at].code != NO_ENTRY)
				at = (at + 1) & codes->mask;
			codes->table[at] = old[i];
		}
	if (old)
		pfree(old);
}

/*
 * Returns a copy of a value in the dictionary's memory: len bytes at data as a value of the type,
 * or for data NULL the numeric of decimal `word`.
 */
static Datum
make_value(Codes *codes, const char *data, uint32 len, uint64 word)
{
	ExprDictionary *dict = &codes->dictionary;
	MemoryContext old = MemoryContextSwitchTo(codes->cxt);
	char *value;

	if (data == NULL)
	{
		value = DatumGetPointer(decimal_to_numeric((int64) word, codes->scale));
		len = VARSIZE(value);
	}
	else if (codes->typlen == -1)
	{
		value = palloc(len + VARHDRSZ);
		SET_VARSIZE(value, len + VARHDRSZ);
		memcpy(VARDATA(value), data, len);
		len += VARHDRSZ;
	}
	else
	{
		value = palloc(len);
		memcpy(value, data, len);
	}
	MemoryContextSwitchTo(old);
	dict->longest = Max(dict->longest, len);
	return PointerGetDatum(value);
}

/*
 * Adds a value to the dictionary, and its entry at the free place `at` of the hash table.  Returns
 * its number; NO_ENTRY: there is no room.
 */
static pg_noinline uint32
add_code(Codes *codes, const char *data, uint32 len, uint64 word, uint32 at)
{
	ExprDictionary *dict = &codes->dictionary;
	uint32 code = dict->n;

	if (dict->n >= codes->most ||
		(dict->n > 0 && MemoryContextMemAllocated(codes->cxt, false) > work_mem * (Size) 1024 / 4))
		return NO_ENTRY;
	if (dict->n == codes->capacity)
	{
		codes->capacity *= 2;
		dict->values = repalloc_huge(dict->values, codes->capacity * sizeof(Datum));
	}
	dict->values[code] = make_value(codes, data, len, word);
	codes->table[at] = (CodeEntry){word, len, code};
	dict->n++;
	if (dict->n * 2 > codes->mask)
		resize_table(codes, (codes->mask + 1) * 2);
	return code;
}

/*
 * Returns whether the dictionary's value with this number has these bytes.  Their lengths are
 * equal.
 */
static inline bool
has_bytes(const Codes *codes, uint32 code, const char *data, uint32 len)
{
	const char *value = DatumGetPointer(codes->dictionary.values[code]);

	return memcmp(codes->typlen == -1 ? VARDATA(value) : value, data, len) == 0;
}

/*
 * Returns the number of a value, which is added if it is new; NO_ENTRY: there is no room.
 * Increments *missed if the value was not in the dictionary. data NULL: a decimal; word: see
 * CodeEntry.
 */
static inline uint32
lookup_or_add_code(Codes *codes, const char *data, uint32 len, uint64 word, int *missed)
{
	uint32 at = hash_position(codes, word, len);

	for (;; at = (at + 1) & codes->mask)
	{
		const CodeEntry *entry = &codes->table[at];

		if (entry->code == NO_ENTRY)
			break;
		if (entry->word == word && entry->len == len &&
			(len <= 8 || has_bytes(codes, entry->code, data, len)))
			return entry->code;
	}
	(*missed)++;
	return add_code(codes, data, len, word, at);
}

/*
 * Returns the number of a by-reference value; NO_ENTRY if it has none: it is too long, out of line
 * or compressed, or there is no room.  Increments *missed if it was not in the dictionary.
 */
static inline uint32
code_of_bytes(Codes *codes, Datum value, int *missed)
{
	const char *data = DatumGetPointer(value);
	uint32 len = codes->typlen;

	if (codes->typlen == -1)
	{
		bool flat = expr_text_inline(value);

		len = flat ? VARSIZE_ANY_EXHDR(data) : codes->longest + 1;
		data = flat ? VARDATA_ANY(data) : data;
	}
	if (len <= codes->longest)
		return lookup_or_add_code(codes, data, len,
								  len < 8      ? hash_load_short(data, len) :
									  len == 8 ? hash_load(data, 8) :
												 hash_string(codes->seed, data, len),
								  missed);
	(*missed)++;
	return NO_ENTRY;
}

/*
 * Returns the number of a decimal; NO_ENTRY if it has none.  Increments *missed if it was not in
 * the dictionary.
 */
static inline uint32
code_of_decimal(Codes *codes, gpuagg_i128 value, int *missed)
{
	if ((gpuagg_u128) value < SMALL_DECIMALS)
	{
		uint32 *code = &codes->small[value];

		if (unlikely(*code == NO_ENTRY))
			*code = lookup_or_add_code(codes, NULL, 0, (uint64) value, missed);
		return *code;
	}
	if (value == (int64) value)
		return lookup_or_add_code(codes, NULL, 0, (uint64) value, missed);
	(*missed)++;
	return NO_ENTRY;
}

/*
 * Fast path: sets r to the numbers of n decimals.  Returns false, with r unusable, unless all of
 * them are below SMALL_DECIMALS and have been looked up before.
 */
static bool
small_codes(const Codes *codes, const gpuagg_i128 *values, int n, int32 *r)
{
	bool all = true;

	for (int i = 0; i < n; i++)
	{
		bool small = (gpuagg_u128) values[i] < SMALL_DECIMALS;
		uint32 code = codes->small[small ? (int) values[i] : 0];

		r[i] = code;
		all &= small && code != NO_ENTRY;
	}
	return all;
}

/* r: the numbers of a's values; data: Codes */
static void
run_codes(const ExprOp *op, int n)
{
	Codes *codes = op->data;
	bool decimals = op->a->type == COLUMN_DEC;
	int32 *r = op->r->values;
	uint8 *state = op->r->state;
	uint8 all = VEC_VALUE;
	int missed = 0;

	op->r->all_values = false;
	if (!expr_window_open(&codes->window, n))
	{
		memset(state, VEC_FALLBACK, n);
		return;
	}
	if (decimals && op->a->all_values && small_codes(codes, op->a->values, n, r))
	{
		memset(state, VEC_VALUE, n);
		op->r->all_values = true;
		expr_window_note(&codes->window, n, 0);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		uint32 code = 0;

		state[i] = expr_state(op->a, i);
		if (state[i] == VEC_VALUE)
			code = decimals ?
				code_of_decimal(codes, ((const gpuagg_i128 *) op->a->values)[i], &missed) :
				code_of_bytes(codes, ((const Datum *) op->a->values)[i], &missed);
		if (code == NO_ENTRY)
			state[i] = VEC_FALLBACK;
		r[i] = code == NO_ENTRY ? 0 : code;
		all |= state[i];
	}
	op->r->all_values = all == VEC_VALUE;
	expr_window_note(&codes->window, n, missed);
}

/* Raises the limits of a dictionary for values of a costly expression. */
static void
raise_limits(Codes *codes)
{
	codes->most = MOST_CODES_COSTLY;
	codes->longest = LONGEST_VALUE_COSTLY;
	codes->window.costly = true;
}

Vec *
expr_codes_vec(ExprSet *set, Vec *vec, bool costly, int stage)
{
	int16 typlen;
	bool typbyval;
	Codes *codes;
	Vec *r;

	if (vec->codes)
	{
		if (costly && vec->codes->owner)
			raise_limits(vec->codes->owner);
		expr_use(vec->codes, stage);
		return vec->codes;
	}
	/* numbers stand for integers, which do not show display scales */
	if (vec->constant || vec->scales ||
		(vec->type == COLUMN_DATUM ? vec->attno == 0 : vec->type != COLUMN_DEC))
		return NULL;
	get_typlenbyval(vec->type == COLUMN_DEC ? NUMERICOID : vec->typid, &typlen, &typbyval);
	if (typbyval || typlen < -1 || typlen > LONGEST_VALUE)
		return NULL;
	codes = palloc0(sizeof(Codes));
	codes->cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg values of a column",
									   ALLOCSET_DEFAULT_SIZES);
	codes->seed =
		hash_seed(pg_prng_uint64(&pg_global_prng_state), pg_prng_uint64(&pg_global_prng_state));
	codes->typlen = typlen;
	codes->scale = vec->scale;
	codes->capacity = FIRST_CODES;
	codes->most = MOST_CODES;
	codes->longest = LONGEST_VALUE;
	codes->dictionary.id = expr_new_dictionary();
	codes->dictionary.values = MemoryContextAlloc(codes->cxt, codes->capacity * sizeof(Datum));
	resize_table(codes, 4 * FIRST_CODES);
	if (vec->type == COLUMN_DEC)
	{
		codes->small = palloc(SMALL_DECIMALS * sizeof(uint32));
		memset(codes->small, 0xff, SMALL_DECIMALS * sizeof(uint32));
	}
	r = expr_new_vec(set, COLUMN_I32, 0, InvalidOid, NULL, stage);
	/* numbers all rows, whatever the mask is */
	r->mask = NULL;
	r->codes_of = vec;
	r->owner = codes;
	if (costly)
		raise_limits(codes);
	vec->codes = r;
	vec->dictionary = &codes->dictionary;
	return expr_emit(set, stage, run_codes, r, vec, NULL, NULL, codes);
}

void
expr_add_codes(ExprSet *set, ExprRoot *root)
{
	if (root->vec)
		expr_codes_vec(set, root->vec, false, root->stage);
}
