/*
 * keys.c
 *	  Key columns to packed words, bins and hashes; rows back to key values.
 *
 * Each key gets a field of a 64-bit word: its bits (floats normalised, so that
 * equal values have equal bits), or the dictionary's code.  A NULL has zero in
 * its field and a bit of its own.  Rows with equal words are one group, and
 * what they do not tell of its first row's values is kept beside them.
 */
#include "postgres.h"

#include "utils/datum.h"

#include "columns/column_value.h"
#include "groups/table.h"

#define NULL_HASH UINT64CONST(0x9e3779b97f4a7c15)

static inline uint32
float_bits(float v)
{
	uint32		bits;

	if (isnan(v))
		return 0x7fc00000;
	if (v == 0)
		return 0;
	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline uint64
double_bits(double v)
{
	uint64		bits;

	if (isnan(v))
		return UINT64CONST(0x7ff8000000000000);
	if (v == 0)
		return 0;
	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* The bits of an integer or float, which show it as it was seen. */
static uint64
column_raw_bits(const Column *col, int i)
{
	switch (col->type)
	{
#define X(NAME, value_t, bits_t, ...) \
		case COLUMN_##NAME: \
			return ((const bits_t *) col->values)[i];
		COLUMN_SCALARS(X)
#undef X
		default:
			elog(ERROR, "column type %d is no packed key", (int) col->type);
	}
}

/* Value of row i as it is packed, unless it is NULL or a dictionary's. */
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

/* First word from *used with `bits` free; adds a word if there is none. */
static int
take_bits(int *used, int *nwords, int bits, int *shift)
{
	int			w = 0;

	while (w < *nwords && used[w] + bits > 64)
		w++;
	if (w == *nwords)
		used[(*nwords)++] = 0;
	*shift = used[w];
	used[w] += bits;
	return w;
}

/* Does a row keep the value to show apart?  Of one Datum key the dictionary has it. */
static bool
keeps_value(const AggSpec *spec, const KeySpec *key, bool segmented)
{
	if (key->kind == KEY_DATUM)
		return segmented || (key->varies && spec->nkeys > 1);
	return key->kind == KEY_FLOAT;
}

/*
 * Decides where keys are in a row.  With `segmented`, Datum keys are kept as
 * they are, as nothing needs their codes.
 */
void
group_keys_layout(GroupTable *table, bool segmented)
{
	const AggSpec *spec = table->spec;
	int		   *used = palloc0((spec->nkeys * 2 + 1) * sizeof(int));
	int			shift;

	table->keys = palloc0(Max(spec->nkeys, 1) * sizeof(KeyLayout));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeySpec *key = &spec->keys[k];
		KeyLayout  *layout = &table->keys[k];
		int			bits = column_width(spec->cols[key->col].type) * 8;

		layout->word = layout->null_word = layout->shown = -1;
		if (key->kind == KEY_DATUM)
		{
			if (segmented)
				continue;
			bits = 32;
		}
		layout->word = take_bits(used, &table->nwords, bits, &layout->shift);
		layout->mask = bits == 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << bits) - 1;
	}
	for (int k = 0; k < spec->nkeys; k++)
	{
		if (spec->keys[k].kind == KEY_DATUM && !segmented)
			continue;
		table->keys[k].null_word = take_bits(used, &table->nwords, 1, &shift);
		table->keys[k].null_bit = UINT64CONST(1) << shift;
	}
	table->nhead = table->nwords;
	for (int k = 0; k < spec->nkeys; k++)
		if (keeps_value(spec, &spec->keys[k], segmented))
			table->keys[k].shown = table->nhead++;
	pfree(used);
}

#define PACK_LOOP(T, EXPR) \
	do { \
		const T    *v = (const T *) col->values; \
		if (first) \
			for (int i = 0; i < n; i++) \
				out[i] = (uint64) (EXPR) << shift; \
		else \
			for (int i = 0; i < n; i++) \
				out[i] |= (uint64) (EXPR) << shift; \
	} while (0)

static void
pack_column(const Column *col, int n, uint64 *out, int shift, bool first)
{
	switch (col->type)
	{
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

static void
pack_nulls(GroupTable *table, const KeyLayout *key, const Column *col, int n)
{
	uint64	   *out = key->word >= 0 ? table->words[key->word] : NULL;
	uint64	   *nulls = table->words[key->null_word];

	for (int i = 0; i < n; i++)
	{
		if (bitmap_get(col->validity, i))
			continue;
		if (out)
			out[i] &= ~(key->mask << key->shift);
		nulls[i] |= key->null_bit;
	}
}

/* Fills table->words, and codes and hashes of Datum keys. */
void
group_keys_pack(GroupTable *table, const Batch *batch)
{
	const AggSpec *spec = table->spec;
	int			n = batch->nrows;
	bool	   *started = table->started;

	memset(started, 0, table->nwords * sizeof(bool));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &table->keys[k];
		const Column *col = &batch->cols[spec->keys[k].col];
		Column		codes = {COLUMN_I32};

		if (key->word < 0)
			continue;
		if (spec->keys[k].kind == KEY_DATUM)
		{
			dictionary_lookup(table->dicts[k], col, n, table->frozen ? 0 : PG_INT32_MAX,
							  table->max_dict_bytes, table->codes[k], table->hashes[k]);
			codes.values = table->codes[k];
			col = &codes;
		}
		pack_column(col, n, table->words[key->word], key->shift, !started[key->word]);
		started[key->word] = true;
	}
	for (int w = 0; w < table->nwords; w++)
		if (!started[w])
			memset(table->words[w], 0, n * sizeof(uint64));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];

		if (col->validity && table->keys[k].null_word >= 0)
			pack_nulls(table, &table->keys[k], col, n);
	}
}

#define RANGE_LOOP(T) \
	do { \
		const T    *v = (const T *) col->values; \
		T			lo, hi; \
		int			i = 0; \
		while (col->validity && i < n && !bitmap_get(col->validity, i)) \
			i++; \
		if (i == n) \
			return; \
		lo = hi = v[i]; \
		if (col->validity) \
			for (; i < n; i++) \
			{ \
				T			x = bitmap_get(col->validity, i) ? v[i] : lo; \
				lo = Min(lo, x); \
				hi = Max(hi, x); \
			} \
		else \
			for (; i < n; i++) \
			{ \
				lo = Min(lo, v[i]); \
				hi = Max(hi, v[i]); \
			} \
		min = (int64) lo; \
		max = (int64) hi; \
	} while (0)

/* Widens *range by a column's values. */
static void
column_range(const Column *col, int n, KeyRange *range)
{
	int64		min,
				max;

	switch (col->type)
	{
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

/* Widens ranges[] by the keys of a batch; every key is KEY_RAW. */
void
group_keys_ranges(const GroupTable *table, const Batch *batch, KeyRange *ranges)
{
	for (int k = 0; k < table->spec->nkeys; k++)
		column_range(&batch->cols[table->spec->keys[k].col], batch->nrows, &ranges[k]);
}

#define BIN_LOOP(T) \
	do { \
		const T    *v = (const T *) col->values; \
		if (first) \
			for (int i = 0; i < n; i++) \
				out[i] = ((uint64) (int64) v[i] - base) * factor; \
		else \
			for (int i = 0; i < n; i++) \
				out[i] += ((uint64) (int64) v[i] - base) * factor; \
	} while (0)

#define BIN_LOOP_NULLS(T) \
	do { \
		const T    *v = (const T *) col->values; \
		for (int i = 0; i < n; i++) \
			out[i] = (first ? 0 : out[i]) + \
				(bitmap_get(col->validity, i) ? ((uint64) (int64) v[i] - base) * factor : 0); \
	} while (0)

#define BIN_CASE(T) \
	do { \
		if (col->validity) \
			BIN_LOOP_NULLS(T); \
		else \
			BIN_LOOP(T); \
	} while (0)

/* Fills table->words[0] with bin numbers; all keys are within table->ranges. */
void
group_keys_bins(GroupTable *table, const Batch *batch)
{
	uint64	   *out = table->words[0];
	int			n = batch->nrows;

	for (int k = 0; k < table->spec->nkeys; k++)
	{
		const Column *col = &batch->cols[table->spec->keys[k].col];
		/* bin 0 is NULL's */
		uint64		base = (uint64) table->ranges[k].min - 1;
		uint64		factor = table->ranges[k].factor;
		bool		first = k == 0;

		switch (col->type)
		{
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

/* A value to show for its code: the dictionary's own where that looks alike. */
static Datum
value_to_show(GroupTable *table, int k, int32 code, Datum value)
{
	const ColumnSpec *col = &table->spec->cols[table->spec->keys[k].col];
	MemoryContext old;
	bool		isnull;

	if (dictionary_shows(table->dicts[k], code, value))
		return dictionary_value(table->dicts[k], code, &isnull);
	old = MemoryContextSwitchTo(table->key_cxt);
	if (col->typlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, col->typbyval, col->typlen);
	MemoryContextSwitchTo(old);
	if (!col->typbyval)
		table->shown_bytes += 16 + datumGetSize(value, false, col->typlen);
	return value;
}

/* Writes the keys of batch row i to a blank row. */
void
group_keys_store(GroupTable *table, char *row, const Batch *batch, int i)
{
	const AggSpec *spec = table->spec;
	uint64	   *words = (uint64 *) row;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &table->keys[k];
		const Column *col = &batch->cols[spec->keys[k].col];

		if (spec->keys[k].kind == KEY_DATUM && key->word >= 0)
		{
			words[key->word] |= (uint64) (uint32) table->codes[k][i] << key->shift;
			if (key->shown >= 0 && !column_is_null(col, i))
				words[key->shown] = value_to_show(table, k, table->codes[k][i],
												  ((Datum *) col->values)[i]);
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
			MemoryContext old = MemoryContextSwitchTo(table->key_cxt);

			words[key->shown] = datumCopy(((Datum *) col->values)[i], colspec->typbyval,
										  colspec->typlen);
			MemoryContextSwitchTo(old);
			continue;
		}
		words[key->word] |= column_key_bits(col, i) << key->shift;
		if (key->shown >= 0)
			words[key->shown] = column_raw_bits(col, i);
	}
}

/* Are the keys that are kept as Datums equal in rows i and j?  Their NULLs are. */
bool
group_keys_same_datums(const GroupTable *table, const Batch *batch, int i, int j)
{
	const AggSpec *spec = table->spec;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];
		const Datum *values = col->values;

		if (table->keys[k].word >= 0 || column_is_null(col, i))
			continue;
		if (!dictionary_equal(table->dicts[k], values[i], values[j]))
			return false;
	}
	return true;
}

/* Is a row's key that of batch row i?  table->words are filled. */
bool
group_keys_row_matches(const GroupTable *table, const char *row, const Batch *batch, int i)
{
	const AggSpec *spec = table->spec;
	const uint64 *words = (const uint64 *) row;

	for (int w = 0; w < table->nwords; w++)
		if (words[w] != table->words[w][i])
			return false;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];

		if (table->keys[k].word >= 0 || column_is_null(col, i))
			continue;
		if (!dictionary_equal(table->dicts[k], words[table->keys[k].shown],
							  ((Datum *) col->values)[i]))
			return false;
	}
	return true;
}

/* A key's packed field, or a Datum kept as it is; not for dictionary codes. */
uint64
group_key_value(const GroupTable *table, const char *row, int key, bool *isnull)
{
	const KeyLayout *layout = &table->keys[key];
	const uint64 *words = (const uint64 *) row;

	*isnull = (words[layout->null_word] & layout->null_bit) != 0;
	if (*isnull)
		return 0;
	if (layout->shown >= 0)
		return words[layout->shown];
	return (words[layout->word] >> layout->shift) & layout->mask;
}

/* A key's SQL value.  By-reference values stay the table's. */
Datum
group_key_datum(const GroupTable *table, const char *row, int key, bool *isnull)
{
	const KeySpec *spec = &table->spec->keys[key];
	const KeyLayout *layout = &table->keys[key];
	uint64		bits;

	if (spec->kind == KEY_DATUM && layout->word >= 0)
	{
		const uint64 *words = (const uint64 *) row;
		Datum		value;

		bits = (words[layout->word] >> layout->shift) & layout->mask;
		value = dictionary_value(table->dicts[key], (int32) bits, isnull);
		return layout->shown >= 0 && !*isnull ? (Datum) words[layout->shown] : value;
	}
	bits = group_key_value(table, row, key, isnull);
	if (*isnull)
		return (Datum) 0;
	return column_bits_datum(table->spec->cols[spec->col].type, bits);
}

/*
 * A hash of a key that depends neither on codes nor on the table's present seed,
 * so that all rows and groups of one key go to the same partition.
 */
uint64
group_keys_spill_hash(const GroupTable *table, const Batch *batch, int i)
{
	const AggSpec *spec = table->spec;
	uint64		hash = 0;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];
		uint64		h;

		if (column_is_null(col, i))
			h = NULL_HASH;
		else if (spec->keys[k].kind == KEY_DATUM)
			h = table->hashes[k][i];
		else
			h = column_key_bits(col, i);
		hash = hash_fold(table->spill_seed, hash ^ h);
	}
	return hash;
}

/* The same of a row. */
uint64
group_keys_row_hash(const GroupTable *table, const char *row)
{
	const AggSpec *spec = table->spec;
	const uint64 *words = (const uint64 *) row;
	uint64		hash = 0;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &table->keys[k];
		uint64		bits = (words[key->word] >> key->shift) & key->mask;
		uint64		h = bits;

		if (spec->keys[k].kind == KEY_DATUM)
		{
			bool		isnull;

			dictionary_value(table->dicts[k], (int32) bits, &isnull);
			h = isnull ? NULL_HASH : dictionary_hash(table->dicts[k], (int32) bits);
		}
		else if (words[key->null_word] & key->null_bit)
			h = NULL_HASH;
		hash = hash_fold(table->spill_seed, hash ^ h);
	}
	return hash;
}
