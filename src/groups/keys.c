/*
 * keys.c
 *	  Key columns to packed words, bins and hashes; rows back to key values.
 *
 * Each key gets a field in a 64-bit word. The field has the key's bits (floats are normalised, so
 * that equal values have equal bits) or its dictionary code. For NULL the field is zero, and a bit
 * elsewhere is set. Input rows belong to the same group if and only if their words are equal.
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "columns/hash_seed.h"
#include "groups/keys.h"

#define NULL_HASH UINT64CONST(0x9e3779b97f4a7c15)

/* Returns the bits of a float, normalised so that equal values have equal bits: -0, all NaNs. */
static inline uint32
float_bits(float v)
{
	uint32 bits;

	if (isnan(v))
		return 0x7fc00000;
	if (v == 0)
		return 0;
	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* Returns the bits of a double, normalised so that equal values have equal bits: -0, all NaNs. */
static inline uint64
double_bits(double v)
{
	uint64 bits;

	if (isnan(v))
		return UINT64CONST(0x7ff8000000000000);
	if (v == 0)
		return 0;
	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/*
 * Returns the bits of row i's integer or float, which is not NULL. Floats are not normalised.
 * Raises an error for columns of other types.
 */
static uint64
column_raw_bits(const Column *col, int i)
{
	switch (col->type)
	{
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
		return col->narrow ? (bits_t) column_narrow_value(col, i) : \
							 ((const bits_t *) col->values)[i];
		COLUMN_SCALARS(X)
#undef X
		default:
			elog(ERROR, "column type %d is no packed key", (int) col->type);
	}
}

/*
 * Returns the bits of row i's integer or float, which is not NULL, as they are in packed words:
 * floats are normalised, so that equal values have equal bits.
 */
static uint64
column_key_bits(const Column *col, int i)
{
	switch (col->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		return value_t##_bits(((const value_t *) col->values)[i]);
		COLUMN_FLOATS(X)
#undef X
		default:
			return column_raw_bits(col, i);
	}
}

/*
 * Allocates `bits` bits in the first word that has them free, or in a new word. Returns the word
 * and sets *shift.
 */
static int
allocate_bits(int *used, int *nwords, int bits, int *shift)
{
	int w = 0;

	while (w < *nwords && used[w] + bits > 64)
		w++;
	if (w == *nwords)
		used[(*nwords)++] = 0;
	*shift = used[w];
	used[w] += bits;
	return w;
}

/*
 * Returns whether a key needs a shown word (keys.h), because its packed bits do not determine how
 * its value is shown.
 */
static bool
needs_shown(const AggSpec *spec, const KeySpec *key, bool segmented)
{
	/* for a single key, the dictionary has the value of the first row */
	if (key->kind == KEY_DATUM)
		return segmented || (key->varies && spec->nkeys > 1);
	return key->kind == KEY_FLOAT;
}

/* Sets keys->layout, nwords and nhead: which word and which bits of a table row each key takes. */
static void
layout_keys(GroupKeys *keys, bool segmented)
{
	const AggSpec *spec = keys->spec;
	int *used = palloc0((spec->nkeys * 2 + 1) * sizeof(int));
	int shift;

	keys->layout = palloc0(Max(spec->nkeys, 1) * sizeof(KeyLayout));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeySpec *key = &spec->keys[k];
		KeyLayout *layout = &keys->layout[k];
		int bits = column_width(spec->cols[key->col].type) * 8;

		layout->word = layout->null_word = layout->shown = -1;
		if (key->kind == KEY_DATUM)
		{
			if (segmented)
				continue;
			bits = 32;
		}
		layout->word = allocate_bits(used, &keys->nwords, bits, &layout->shift);
		layout->mask = bits == 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << bits) - 1;
	}
	for (int k = 0; k < spec->nkeys; k++)
	{
		if (spec->keys[k].kind == KEY_DATUM && !segmented)
			continue;
		keys->layout[k].null_word = allocate_bits(used, &keys->nwords, 1, &shift);
		keys->layout[k].null_bit = UINT64CONST(1) << shift;
	}
	keys->nhead = keys->nwords;
	for (int k = 0; k < spec->nkeys; k++)
		if (needs_shown(spec, &spec->keys[k], segmented))
			keys->layout[k].shown = keys->nhead++;
	pfree(used);
}

void
group_keys_init(GroupKeys *keys, const AggSpec *spec, bool segmented, int batch_rows)
{
	keys->spec = spec;
	keys->spill_seed = hash_seed_random();
	keys->value_cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg keys", ALLOCSET_SMALL_SIZES);
	keys->spare_cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg keys", ALLOCSET_SMALL_SIZES);
	layout_keys(keys, segmented);
	keys->ranges = palloc0(Max(spec->nkeys, 1) * sizeof(KeyRange));
	keys->dicts = palloc0(Max(spec->nkeys, 1) * sizeof(Dictionary *));
	keys->codes = palloc0(Max(spec->nkeys, 1) * sizeof(int32 *));
	keys->hashes = palloc0(Max(spec->nkeys, 1) * sizeof(uint32 *));
	for (int k = 0; k < spec->nkeys; k++)
	{
		if (spec->keys[k].kind != KEY_DATUM)
			continue;
		keys->dicts[k] = dictionary_create(CurrentMemoryContext, &spec->keys[k],
										   &spec->cols[spec->keys[k].col], batch_rows);
		keys->codes[k] = palloc(batch_rows * sizeof(int32));
		keys->hashes[k] = palloc(batch_rows * sizeof(uint32));
	}
	keys->words = palloc0((keys->nwords + 1) * sizeof(uint64 *));
	keys->started = palloc0(keys->nwords + 1);
	for (int w = 0; w < keys->nwords; w++)
		keys->words[w] = palloc(batch_rows * sizeof(uint64));
}

void
group_keys_set_seed(GroupKeys *keys, HashSeed seed)
{
	keys->spill_seed = seed;
	for (int k = 0; k < keys->spec->nkeys; k++)
		if (keys->dicts[k])
			dictionary_set_seed(keys->dicts[k], seed);
}

void
group_keys_reset(GroupKeys *keys)
{
	for (int k = 0; k < keys->spec->nkeys; k++)
	{
		keys->ranges[k].any = false;
		if (keys->dicts[k])
			dictionary_reset(keys->dicts[k]);
	}
	MemoryContextReset(keys->value_cxt);
	MemoryContextReset(keys->spare_cxt);
	keys->shown_bytes = 0;
}

size_t
group_keys_memory(const GroupKeys *keys)
{
	size_t bytes = keys->shown_bytes;

	for (int k = 0; k < keys->spec->nkeys; k++)
		if (keys->dicts[k])
			bytes += dictionary_memory(keys->dicts[k]);
	return bytes;
}

size_t
group_keys_empty_memory(const GroupKeys *keys)
{
	size_t bytes = 0;

	for (int k = 0; k < keys->spec->nkeys; k++)
		if (keys->dicts[k])
			bytes += dictionary_empty_memory(keys->dicts[k]);
	return bytes;
}

/* ---- a batch ------------------------------------------------------------ */

#define PACK_LOOP(T, EXPR) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		if (first) \
			for (int i = 0; i < n; i++) \
				out[i] = (uint64) (EXPR) << shift; \
		else \
			for (int i = 0; i < n; i++) \
				out[i] |= (uint64) (EXPR) << shift; \
	} while (0)

/*
 * Puts the bits of each row's value, shifted left, into the word out[row]. If `first`, replaces the
 * words; else adds the bits to those that are there.
 */
static void
pack_column(const Column *col, int n, uint64 *out, int shift, bool first)
{
	int bits = column_width(col->type) * 8;
	uint64 mask = PG_UINT64_MAX >> (64 - bits);

	switch (column_form(col))
	{
#define X(width, from_t) \
	case FORM_NARROW + width: \
		PACK_LOOP(from_t, (uint64) (col->base + v[i]) & mask); \
		break;
		COLUMN_NARROWS(X)
#undef X
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
		PACK_LOOP(bits_t, v[i]); \
		break;
		COLUMN_INTEGERS(X)
#undef X
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		PACK_LOOP(value_t, value_t##_bits(v[i])); \
		break;
		COLUMN_FLOATS(X)
#undef X
		default:
			elog(ERROR, "column type %d is no packed key", (int) col->type);
	}
}

/* In the packed words of rows whose key is NULL: clears the key's field and sets its NULL bit. */
static void
pack_nulls(GroupKeys *keys, const KeyLayout *key, const Column *col, int n)
{
	uint64 *out = key->word >= 0 ? keys->words[key->word] : NULL;
	uint64 *nulls = keys->words[key->null_word];

	for (int i = 0; i < n; i++)
	{
		if (bitmap_get(col->validity, i))
			continue;
		if (out)
			out[i] &= ~(key->mask << key->shift);
		nulls[i] |= key->null_bit;
	}
}

void
group_keys_pack(GroupKeys *keys, const Batch *batch, int64 max_codes, size_t max_bytes)
{
	const AggSpec *spec = keys->spec;
	int n = batch->nrows;
	bool *started = keys->started;

	memset(started, 0, keys->nwords * sizeof(bool));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &keys->layout[k];
		const Column *col = &batch->cols[spec->keys[k].col];
		Column codes = {COLUMN_I32};

		if (key->word < 0)
			continue;
		if (spec->keys[k].kind == KEY_DATUM)
		{
			dictionary_lookup(keys->dicts[k], col, n, max_codes, max_bytes, keys->codes[k],
							  keys->hashes[k]);
			codes.values = keys->codes[k];
			col = &codes;
		}
		pack_column(col, n, keys->words[key->word], key->shift, !started[key->word]);
		started[key->word] = true;
	}
	for (int w = 0; w < keys->nwords; w++)
		if (!started[w])
			memset(keys->words[w], 0, n * sizeof(uint64));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];

		if (col->validity && keys->layout[k].null_word >= 0)
			pack_nulls(keys, &keys->layout[k], col, n);
	}
}

bool
group_keys_lacks_code(const GroupKeys *keys, int i)
{
	for (int k = 0; k < keys->spec->nkeys; k++)
		if (keys->dicts[k] && keys->codes[k][i] == NO_CODE)
			return true;
	return false;
}

#define RANGE_LOOP(T) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		T lo, hi; \
		int i = 0; \
		while (col->validity && i < n && !bitmap_get(col->validity, i)) \
			i++; \
		if (i == n) \
			return; \
		lo = hi = v[i]; \
		if (col->validity) \
			for (; i < n; i++) \
			{ \
				T x = bitmap_get(col->validity, i) ? v[i] : lo; \
				lo = Min(lo, x); \
				hi = Max(hi, x); \
			} \
		else \
			for (; i < n; i++) \
			{ \
				lo = Min(lo, v[i]); \
				hi = Max(hi, v[i]); \
			} \
		min = col->base + (int64) lo; \
		max = col->base + (int64) hi; \
	} while (0)

/* Widens *range so that it includes n values of a column; NULLs do not count. */
static void
column_range(const Column *col, int n, KeyRange *range)
{
	int64 min, max;

	switch (column_form(col))
	{
#define X(width, from_t) \
	case FORM_NARROW + width: \
		RANGE_LOOP(from_t); \
		break;
		COLUMN_NARROWS(X)
#undef X
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		RANGE_LOOP(value_t); \
		break;
		COLUMN_INTEGERS(X)
#undef X
		default:
			elog(ERROR, "column type %d has no range", (int) col->type);
	}
	range->min = range->any ? Min(range->min, min) : min;
	range->max = range->any ? Max(range->max, max) : max;
	range->any = true;
}

void
key_range_widen(const KeyRange *old, KeyRange *range, uint64 slack)
{
	if (range->max > old->max)
		range->max =
			range->max > (int64) (PG_INT64_MAX - slack) ? PG_INT64_MAX : range->max + (int64) slack;
	if (range->min < old->min)
		range->min =
			range->min < (int64) (PG_INT64_MIN + slack) ? PG_INT64_MIN : range->min - (int64) slack;
}

void
group_keys_ranges(const GroupKeys *keys, const Batch *batch, KeyRange *ranges)
{
	for (int k = 0; k < keys->spec->nkeys; k++)
		column_range(&batch->cols[keys->spec->keys[k].col], batch->nrows, &ranges[k]);
}

#define BIN_LOOP(T) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		if (first) \
			for (int i = 0; i < n; i++) \
				out[i] = ((uint64) (int64) v[i] - base) * factor; \
		else \
			for (int i = 0; i < n; i++) \
				out[i] += ((uint64) (int64) v[i] - base) * factor; \
	} while (0)

#define BIN_LOOP_NULLS(T) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		for (int i = 0; i < n; i++) \
			out[i] = (first ? 0 : out[i]) + \
				(bitmap_get(col->validity, i) ? ((uint64) (int64) v[i] - base) * factor : 0); \
	} while (0)

#define BIN_CASE(T) \
	do \
	{ \
		if (col->validity) \
			BIN_LOOP_NULLS(T); \
		else \
			BIN_LOOP(T); \
	} while (0)

void
group_keys_bins(GroupKeys *keys, const Batch *batch)
{
	uint64 *out = keys->words[0];
	int n = batch->nrows;

	for (int k = 0; k < keys->spec->nkeys; k++)
	{
		const Column *col = &batch->cols[keys->spec->keys[k].col];
		/* NULL is digit 0, the least value is digit 1 */
		uint64 base = (uint64) keys->ranges[k].min - 1 - (uint64) col->base;
		uint64 factor = keys->ranges[k].factor;
		bool first = k == 0;

		switch (column_form(col))
		{
#define X(width, from_t) \
	case FORM_NARROW + width: \
		BIN_CASE(from_t); \
		break;
			COLUMN_NARROWS(X)
#undef X
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		BIN_CASE(value_t); \
		break;
			COLUMN_INTEGERS(X)
#undef X
			default:
				elog(ERROR, "column type %d has no range", (int) col->type);
		}
	}
}

void
group_keys_hash_datums(GroupKeys *keys, const Batch *batch)
{
	for (int k = 0; k < keys->spec->nkeys; k++)
		if (keys->dicts[k])
			dictionary_hash_column(keys->dicts[k], &batch->cols[keys->spec->keys[k].col],
								   batch->nrows, keys->hashes[k]);
}

uint64
group_keys_spill_hash(const GroupKeys *keys, const Batch *batch, int i)
{
	const AggSpec *spec = keys->spec;
	uint64 hash = 0;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];
		uint64 h;

		if (column_is_null(col, i))
			h = NULL_HASH;
		else if (spec->keys[k].kind == KEY_DATUM)
			h = keys->hashes[k][i];
		else
			h = column_key_bits(col, i);
		hash = hash_fold(keys->spill_seed, hash ^ h);
	}
	return hash;
}

bool
group_keys_same_datums(const GroupKeys *keys, const Batch *batch, int i, int j)
{
	const AggSpec *spec = keys->spec;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];
		const Datum *values = col->values;

		if (keys->layout[k].word >= 0 || column_is_null(col, i))
			continue;
		if (!dictionary_equal(keys->dicts[k], values[i], values[j]))
			return false;
	}
	return true;
}

/* ---- a row of the table ------------------------------------------------- */

/*
 * Returns the value that a group shows for a key, whose code is `code` and whose value in the
 * group's first row is `value`. It is the dictionary's value if that has the same bytes, else a
 * copy in value_cxt.
 */
static Datum
shown_value(GroupKeys *keys, int k, int32 code, Datum value)
{
	const ColumnSpec *col = &keys->spec->cols[keys->spec->keys[k].col];
	MemoryContext old;
	bool isnull;

	if (dictionary_has_image(keys->dicts[k], code, value))
		return dictionary_value(keys->dicts[k], code, &isnull);
	old = MemoryContextSwitchTo(keys->value_cxt);
	if (col->typlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, col->typbyval, col->typlen);
	MemoryContextSwitchTo(old);
	if (!col->typbyval)
		keys->shown_bytes += 16 + datumGetSize(value, false, col->typlen);
	return value;
}

void
group_keys_store(GroupKeys *keys, char *row, const Batch *batch, int i)
{
	const AggSpec *spec = keys->spec;
	uint64 *words = (uint64 *) row;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &keys->layout[k];
		const Column *col = &batch->cols[spec->keys[k].col];

		if (spec->keys[k].kind == KEY_DATUM && key->word >= 0)
		{
			words[key->word] |= (uint64) (uint32) keys->codes[k][i] << key->shift;
			if (key->shown >= 0 && !column_is_null(col, i))
				words[key->shown] =
					shown_value(keys, k, keys->codes[k][i], ((Datum *) col->values)[i]);
			continue;
		}
		if (column_is_null(col, i))
		{
			words[key->null_word] |= key->null_bit;
			continue;
		}
		if (spec->keys[k].kind == KEY_DATUM)
		{
			const ColumnSpec *colspec = &spec->cols[spec->keys[k].col];
			MemoryContext old = MemoryContextSwitchTo(keys->value_cxt);

			words[key->shown] =
				datumCopy(((Datum *) col->values)[i], colspec->typbyval, colspec->typlen);
			MemoryContextSwitchTo(old);
			continue;
		}
		words[key->word] |= column_key_bits(col, i) << key->shift;
		if (key->shown >= 0)
			words[key->shown] = column_raw_bits(col, i);
	}
}

bool
group_keys_row_matches(const GroupKeys *keys, const char *row, const Batch *batch, int i)
{
	const AggSpec *spec = keys->spec;
	const uint64 *words = (const uint64 *) row;

	for (int w = 0; w < keys->nwords; w++)
		if (words[w] != keys->words[w][i])
			return false;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];

		if (keys->layout[k].word >= 0 || column_is_null(col, i))
			continue;
		if (!dictionary_equal(keys->dicts[k], words[keys->layout[k].shown],
							  ((Datum *) col->values)[i]))
			return false;
	}
	return true;
}

void
group_keys_carry_last(GroupKeys *keys, char *row)
{
	MemoryContext emitted = keys->value_cxt;
	MemoryContext old = MemoryContextSwitchTo(keys->spare_cxt);
	uint64 *words = (uint64 *) row;

	for (int k = 0; k < keys->spec->nkeys; k++)
	{
		const KeyLayout *layout = &keys->layout[k];
		const ColumnSpec *col = &keys->spec->cols[keys->spec->keys[k].col];

		if (layout->word < 0 && !(words[layout->null_word] & layout->null_bit))
			words[layout->shown] = datumCopy(words[layout->shown], col->typbyval, col->typlen);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(emitted);
	keys->value_cxt = keys->spare_cxt;
	keys->spare_cxt = emitted;
}

/* Returns the bits of a key in its packed word of a row. */
static inline uint64
packed_bits(const KeyLayout *layout, const char *row)
{
	return (((const uint64 *) row)[layout->word] >> layout->shift) & layout->mask;
}

/*
 * Returns the bits of the key's value that the group shows; in a segmented table the Datum, for a
 * KEY_DATUM. Returns 0 and sets *isnull if it is NULL. Not for keys that are dictionary codes.
 */
static uint64
key_bits(const GroupKeys *keys, const char *row, int key, bool *isnull)
{
	const KeyLayout *layout = &keys->layout[key];
	const uint64 *words = (const uint64 *) row;

	*isnull = (words[layout->null_word] & layout->null_bit) != 0;
	if (*isnull)
		return 0;
	if (layout->shown >= 0)
		return words[layout->shown];
	return packed_bits(layout, row);
}

Datum
group_key_datum(const GroupKeys *keys, const char *row, int key, bool *isnull)
{
	const KeySpec *spec = &keys->spec->keys[key];
	const KeyLayout *layout = &keys->layout[key];
	uint64 bits;

	if (spec->kind == KEY_DATUM && layout->word >= 0)
	{
		Datum value;

		bits = packed_bits(layout, row);
		value = dictionary_value(keys->dicts[key], (int32) bits, isnull);
		return layout->shown >= 0 && !*isnull ? (Datum) ((const uint64 *) row)[layout->shown] :
												value;
	}
	bits = key_bits(keys, row, key, isnull);
	if (*isnull)
		return (Datum) 0;
	return column_bits_datum(keys->spec->cols[spec->col].type, bits);
}

uint32
group_key_hash(const GroupKeys *keys, const char *row, int key)
{
	return dictionary_hash(keys->dicts[key], (int32) packed_bits(&keys->layout[key], row));
}

void
group_key_datums(const GroupKeys *keys, const char *row, Size row_size, int n, int key,
				 Datum *values, bool *nulls)
{
	const KeySpec *spec = &keys->spec->keys[key];

	if (spec->kind == KEY_DATUM)
	{
		for (int i = 0; i < n; i++, row += row_size)
			values[i] = group_key_datum(keys, row, key, &nulls[i]);
		return;
	}
	switch (keys->spec->cols[spec->col].type)
	{
#define X(NAME, ...) \
	case COLUMN_##NAME: \
		for (int i = 0; i < n; i++, row += row_size) \
		{ \
			uint64 bits = key_bits(keys, row, key, &nulls[i]); \
\
			values[i] = nulls[i] ? (Datum) 0 : column_bits_datum(COLUMN_##NAME, bits); \
		} \
		break;
		COLUMN_SCALARS(X)
#undef X
		default:
			for (int i = 0; i < n; i++, row += row_size)
				values[i] = group_key_datum(keys, row, key, &nulls[i]);
	}
}

void
group_keys_load(const GroupKeys *keys, const char *rows, Size stride, Batch *batch)
{
	const AggSpec *spec = keys->spec;

	for (int k = 0; k < spec->nkeys; k++)
	{
		Column *col = &batch->cols[spec->keys[k].col];
		const char *row = rows;

		if (spec->keys[k].kind == KEY_DATUM)
			continue;
		for (int i = 0; i < batch->nrows; i++, row += stride)
		{
			bool isnull;
			uint64 bits = key_bits(keys, row, k, &isnull);

			column_store_bits(col, i, bits);
			if (isnull)
				bitmap_clear(col->validity, i);
			else
				bitmap_set(col->validity, i);
		}
	}
}

bool
group_key_codes(const GroupKeys *keys, const char *row, Size row_size, int n, int key,
				uint32 *codes, uint32 *ncodes, uint64 *dictionary)
{
	const KeyLayout *layout = &keys->layout[key];

	if (keys->dicts[key] == NULL || layout->word < 0 || layout->shown >= 0)
		return false;
	for (int i = 0; i < n; i++, row += row_size)
		codes[i] = (uint32) packed_bits(layout, row);
	*ncodes = dictionary_size(keys->dicts[key]);
	*dictionary = dictionary_id(keys->dicts[key]);
	return true;
}

void
group_keys_reserve(GroupKeys *keys, uint32 values)
{
	for (int k = 0; k < keys->spec->nkeys; k++)
		if (keys->dicts[k])
			dictionary_reserve(keys->dicts[k], values);
}

int64
group_key_integer(const GroupKeys *keys, const char *row, int key, bool *isnull)
{
	uint64 bits = key_bits(keys, row, key, isnull);

	switch (keys->spec->cols[keys->spec->keys[key].col].type)
	{
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
		return (value_t) (bits_t) bits;
		COLUMN_INTEGERS(X)
#undef X
		default:
			return (int64) bits;
	}
}

uint64
group_keys_row_hash(const GroupKeys *keys, const char *row)
{
	const AggSpec *spec = keys->spec;
	const uint64 *words = (const uint64 *) row;
	uint64 hash = 0;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &keys->layout[k];
		uint64 bits = packed_bits(key, row);
		uint64 h = bits;

		if (spec->keys[k].kind == KEY_DATUM)
		{
			bool isnull;

			dictionary_value(keys->dicts[k], (int32) bits, &isnull);
			h = isnull ? NULL_HASH : dictionary_hash(keys->dicts[k], (int32) bits);
		}
		else if (words[key->null_word] & key->null_bit)
			h = NULL_HASH;
		hash = hash_fold(keys->spill_seed, hash ^ h);
	}
	return hash;
}
