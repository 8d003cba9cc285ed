/*
 * bits.c
 *	  Groups without states as a bitmap; see bits.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "groups/huge_pages.h"
#include "groups/bits.h"
#include "groups/table.h"

/*
 * Bitmaps up to this size stay in the first-level cache. They are tested before anything is
 * written.
 */
#define SMALL_BITS ((uint64) 32 * 1024 * 8)
/* In larger bitmaps, words are prefetched this many rows ahead. */
#define FETCH_ROWS 256
/* Bit positions have 32 bits. */
#define MAX_BITS ((uint64) PG_UINT32_MAX)
/* Ranges are rounded to multiples of a power of two that is at most 1/ROUND_PART of the range. */
#define ROUND_PART 16

/*
 * How a key contributes to a bit position: NULL is digit 0, value v is digit v - min + 1. The digit
 * is multiplied by factor.
 */
typedef struct KeyBits
{
	int64 min;
	uint64 span; /* largest value - min */
	uint32 factor;
} KeyBits;

struct GroupBits
{
	MemoryContext cxt;
	const AggSpec *spec;
	KeyBits *keys; /* [key] */
	uint64 nbits;
	uint64 *words;     /* the bitmap */
	uint64 count;      /* bits that are set */
	uint32 *at;        /* [row of a batch] bit position */
	uint32 *digits;    /* [row of a batch] digits of one key */
	uint64 next;       /* first bit position that group_bits_next has not read yet */
	Batch batch;       /* the batch that group_bits_next returns */
	uint64 **validity; /* [key] memory for Column.validity, or NULL */
};

bool
group_bits_possible(const AggSpec *spec)
{
	if (spec->nslots > 0 || spec->nfallbacks > 0 || spec->norder > 0 || spec->nkeys == 0)
		return false;
	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].kind != KEY_RAW)
			return false;
	for (int c = 0; c < spec->ncols; c++)
	{
		int k = 0;

		while (k < spec->nkeys && spec->keys[k].col != c)
			k++;
		if (k == spec->nkeys)
			return false;
	}
	return true;
}

/* ---- ranges ------------------------------------------------------------- */

/*
 * Sets keys[] for these ranges, rounded outwards if `round`. Returns how many bits they need, or 0
 * if more than max_bits.
 */
static uint64
layout_bits(KeyBits *keys, int nkeys, const KeyRange *ranges, bool round, uint64 max_bits)
{
	uint64 nbits = 1;

	for (int k = nkeys - 1; k >= 0; k--)
	{
		KeyBits *key = &keys[k];
		uint64 values = 1;

		*key = (KeyBits){.factor = (uint32) nbits};
		if (ranges[k].any)
		{
			int64 min = ranges[k].min;
			int64 max = ranges[k].max;
			uint64 span = (uint64) max - (uint64) min;

			if (span >= MAX_BITS)
				return 0;
			if (round && span >= ROUND_PART && min > PG_INT64_MIN / 2 && max < PG_INT64_MAX / 2)
			{
				int64 step = (int64) 1 << pg_leftmost_one_pos64(span / ROUND_PART);

				min &= ~(step - 1);
				max |= step - 1;
			}
			key->min = min;
			key->span = (uint64) max - (uint64) min;
			values = key->span + 2;
		}
		else
			key->span = 0;
		if (!ranges[k].any)
			values = 2;
		if (values > MAX_BITS / nbits || nbits * values > max_bits)
			return 0;
		nbits *= values;
	}
	return nbits;
}

GroupBits *
group_bits_create(MemoryContext parent, const AggSpec *spec, const KeyRange *ranges,
				  uint64 max_bits, int batch_rows)
{
	KeyBits *keys = palloc0(sizeof(KeyBits) * spec->nkeys);
	uint64 nbits = layout_bits(keys, spec->nkeys, ranges, true, max_bits);
	size_t bytes;
	MemoryContext cxt, old;
	GroupBits *bits;

	if (nbits == 0)
		nbits = layout_bits(keys, spec->nkeys, ranges, false, max_bits);
	if (nbits == 0)
	{
		pfree(keys);
		return NULL;
	}
	cxt = AllocSetContextCreate(parent, "gpuagg groups as bits", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	bits = palloc0(sizeof(GroupBits));
	bits->cxt = cxt;
	bits->spec = spec;
	bits->keys = palloc(sizeof(KeyBits) * spec->nkeys);
	memcpy(bits->keys, keys, sizeof(KeyBits) * spec->nkeys);
	bits->nbits = nbits;
	bytes = BITMAP_WORDS(nbits) * sizeof(uint64);
	bits->words = MemoryContextAllocHuge(cxt, bytes);
	huge_pages_advise((char *) bits->words, bytes);
	memset(bits->words, 0, bytes);
	bits->at = palloc(sizeof(uint32) * batch_rows);
	bits->digits = palloc(sizeof(uint32) * batch_rows);
	bits->batch.capacity = batch_rows;
	bits->batch.ncols = spec->ncols;
	bits->batch.cols = palloc0(sizeof(Column) * spec->ncols);
	bits->validity = palloc0(sizeof(uint64 *) * spec->nkeys);
	for (int c = 0; c < spec->ncols; c++)
	{
		bits->batch.cols[c].type = spec->cols[c].type;
		bits->batch.cols[c].values = palloc((size_t) batch_rows * column_width(spec->cols[c].type));
	}
	MemoryContextSwitchTo(old);
	pfree(keys);
	return bits;
}

void
group_bits_free(GroupBits *bits)
{
	MemoryContextDelete(bits->cxt);
}

size_t
group_bits_memory(const GroupBits *bits)
{
	return BITMAP_WORDS(bits->nbits) * sizeof(uint64);
}

uint64
group_bits_count(const GroupBits *bits)
{
	return bits->count;
}

uint64
group_bits_possible_groups(const GroupBits *bits)
{
	return bits->nbits;
}

/* ---- groups in ----------------------------------------------------------- */

/* U is an unsigned type that can hold the difference of two values. */
#define ADD_LOOP(T, U) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		const U from = (U) min; \
		const U most = (U) span; \
		if (first) \
			for (int i = 0; i < n; i++) \
			{ \
				U value = (U) v[i] - from; \
				bad |= value > most; \
				at[i] = ((uint32) value + 1) * factor; \
			} \
		else \
			for (int i = 0; i < n; i++) \
			{ \
				U value = (U) v[i] - from; \
				bad |= value > most; \
				at[i] += ((uint32) value + 1) * factor; \
			} \
	} while (0)

#define ADD_LOOP_NULLS(T) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		for (int i = 0; i < n; i++) \
		{ \
			uint64 value = (uint64) (int64) v[i] - min; \
			bool valid = bitmap_get(col->validity, i); \
			bad |= valid && value > span; \
			at[i] = (first ? 0 : at[i]) + (valid ? ((uint32) value + 1) * factor : 0); \
		} \
	} while (0)

#define ADD_CASE(T, U) \
	do \
	{ \
		if (col->validity) \
			ADD_LOOP_NULLS(T); \
		else if (sizeof(T) < sizeof(uint64) && sizeof(U) < sizeof(uint64)) \
			ADD_LOOP(T, uint32); \
		else \
			ADD_LOOP(T, uint64); \
	} while (0)

/*
 * Adds one key's digit, times its factor, to the bit positions at[] of n rows; if `first`, replaces
 * them. Returns false if a value is out of the key's range; at[] is undefined then.
 */
static bool
add_key_positions(const KeyBits *key, const Column *col, int n, uint32 *at, bool first)
{
	uint64 min = (uint64) key->min - (uint64) col->base;
	uint64 span = key->span;
	uint32 factor = key->factor;
	uint32 bad = 0;

	switch (column_form(col))
	{
#define X(width, from_t) \
	case FORM_NARROW + width: \
		ADD_CASE(from_t, uint64); \
		break;
		COLUMN_NARROWS(X)
#undef X
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
		ADD_CASE(value_t, bits_t); \
		break;
		COLUMN_INTEGERS(X)
#undef X
		default:
			return false;
	}
	return bad == 0;
}

/* Sets the bits at n positions, and adds the number of those that were clear to bits->count. */
static void
set_bits(GroupBits *bits, const uint32 *at, int n)
{
	uint64 *words = bits->words;
	uint64 added = 0;

	for (int i = 0; i < n; i++)
	{
		uint64 bit = UINT64CONST(1) << (at[i] % 64);
		uint64 word = words[at[i] / 64];

		added += (word & bit) == 0;
		words[at[i] / 64] = word | bit;
	}
	bits->count += added;
}

/* Returns whether the bits at all n positions are set already. */
static bool
all_bits_set(const GroupBits *bits, const uint32 *at, int n)
{
	uint64 set = 1;

	for (int i = 0; i < n; i++)
		set &= bits->words[at[i] / 64] >> (at[i] % 64);
	return set & 1;
}

bool
group_bits_add(GroupBits *bits, const Batch *batch)
{
	const AggSpec *spec = bits->spec;
	uint32 *at = bits->at;
	int n = batch->nrows;

	for (int k = 0; k < spec->nkeys; k++)
		if (!add_key_positions(&bits->keys[k], &batch->cols[spec->keys[k].col], n, at, k == 0))
			return false;
	if (bits->nbits <= SMALL_BITS)
	{
		if (!all_bits_set(bits, at, n))
			set_bits(bits, at, n);
		return true;
	}
	for (int from = 0; from < n; from += FETCH_ROWS)
	{
		int end = Min(from + FETCH_ROWS, n);

		for (int i = from; i < end; i++)
			__builtin_prefetch(&bits->words[at[i] / 64], 1);
		set_bits(bits, at + from, end - from);
	}
	return true;
}

/* Returns the union of two ranges, with slack on the sides where `more` exceeds `old`. */
static KeyRange
widen_range(const KeyRange *old, const KeyRange *more)
{
	KeyRange range = *old;
	uint64 slack;

	if (!old->any || !more->any)
		return old->any ? *old : *more;
	range.min = Min(old->min, more->min);
	range.max = Max(old->max, more->max);
	slack = ((uint64) range.max - (uint64) range.min) / 2;
	key_range_widen(old, &range, slack);
	return range;
}

GroupBits *
group_bits_widen(GroupBits *bits, const GroupKeys *keys, const Batch *batch, uint64 max_bits)
{
	const AggSpec *spec = bits->spec;
	KeyRange *old = palloc0(sizeof(KeyRange) * spec->nkeys);
	KeyRange *more = palloc0(sizeof(KeyRange) * spec->nkeys);
	GroupBits *wide;
	const Batch *groups;

	group_keys_ranges(keys, batch, more);
	for (int k = 0; k < spec->nkeys; k++)
	{
		old[k].min = bits->keys[k].min;
		old[k].max = (int64) ((uint64) bits->keys[k].min + bits->keys[k].span);
		old[k].any = true;
		more[k] = widen_range(&old[k], &more[k]);
	}
	wide = group_bits_create(MemoryContextGetParent(bits->cxt), spec, more, max_bits,
							 bits->batch.capacity);
	pfree(old);
	pfree(more);
	if (wide == NULL)
		return NULL;
	while ((groups = group_bits_next(bits)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		group_bits_add(wide, groups);
	}
	group_bits_free(bits);
	return wide;
}

/* ---- groups out ---------------------------------------------------------- */

#define GET_LOOP(T) \
	do \
	{ \
		T *v = (T *) col->values; \
		for (int i = 0; i < n; i++) \
			v[i] = (T) (min + digits[i] - 1); \
	} while (0)

/*
 * Writes key k of n groups to its column of bits->batch. The key's digit is the last one of each
 * position in at[]. Removes that digit from at[], so that the next call reads key k - 1.
 */
static void
extract_key(GroupBits *bits, int k, int n)
{
	uint32 *at = bits->at;
	uint32 *digits = bits->digits;
	Column *col = &bits->batch.cols[bits->spec->keys[k].col];
	uint64 min = (uint64) bits->keys[k].min;
	uint32 base = (uint32) (bits->keys[k].span + 2);
	uint32 rest = at[0] / base;
	uint32 start = rest * base;
	bool nulls = false;

	for (int i = 0; i < n; i++)
	{
		/* positions ascend, and neighbours often have the same quotient */
		if (at[i] - start >= base)
		{
			rest = at[i] / base;
			start = rest * base;
		}
		digits[i] = at[i] - start;
		nulls |= digits[i] == 0;
		at[i] = rest;
	}
	switch (col->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		GET_LOOP(value_t); \
		break;
		COLUMN_INTEGERS(X)
#undef X
		default:
			break;
	}
	col->validity = NULL;
	if (!nulls)
		return;
	if (bits->validity[k] == NULL)
		bits->validity[k] =
			MemoryContextAlloc(bits->cxt, BITMAP_WORDS(bits->batch.capacity) * sizeof(uint64));
	col->validity = bits->validity[k];
	memset(col->validity, 0xff, BITMAP_WORDS(bits->batch.capacity) * sizeof(uint64));
	for (int i = 0; i < n; i++)
		if (digits[i] == 0)
			bitmap_clear(col->validity, i);
}

/* Fills at[] with the next positions whose bits are set. Returns their number. */
static int
collect_set_bits(GroupBits *bits)
{
	int n = 0;
	uint64 w = bits->next / 64;
	uint64 end = BITMAP_WORDS(bits->nbits);
	uint64 word = w < end ? bits->words[w] & (~UINT64CONST(0) << (bits->next % 64)) : 0;

	while (w < end && n < bits->batch.capacity)
	{
		if (word == 0)
		{
			word = ++w < end ? bits->words[w] : 0;
			continue;
		}
		bits->at[n++] = (uint32) (w * 64 + pg_rightmost_one_pos64(word));
		word &= word - 1;
	}
	bits->next = n > 0 ? (uint64) bits->at[n - 1] + 1 : 0;
	return n;
}

const Batch *
group_bits_next(GroupBits *bits)
{
	int n = collect_set_bits(bits);

	if (n == 0)
		return NULL;
	bits->batch.nrows = n;
	for (int k = bits->spec->nkeys - 1; k >= 0; k--)
		extract_key(bits, k, n);
	return &bits->batch;
}
