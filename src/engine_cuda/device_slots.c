/*
 * device_slots.c
 *	  Joins whose inner rows are found by hash tables on the devices (VECTOR_FIND).
 *
 * The keys of an inner row have a number: the key, if there is one, or a combination of all keys.
 * Equal keys, and no others, have equal numbers.  If the numbers are dense, the cells of a join's
 * tables are found by them.  Else a hash table has the inner row of each number, and the cells of
 * the other tables are found by the row.
 */
#include "postgres.h"

#include "common/int.h"

#include "columns/hash_seed.h"
#include "common/interruptible.h"
#include "engine_cuda/device_rows.h"
#include "operators/vector_run.h"

/* The most bytes of a hash table.  A message must have room for the row ranges, too. */
#define MOST_BYTES (WIRE_BUFFER_BYTES - WIRE_BUFFER_BYTES / 16)
#define LEAST_SLOTS 16
/* Cells of columns for more numbers are not found by the number if a hash table can be smaller. */
#define MOST_DENSE (WIRE_BUFFER_BYTES / 2)
/*
 * One load of a cell takes less time than a search.  So a few inner rows among so many numbers,
 * which the CPU searches in a hash table, are found by the number, too.  The widest cells of each
 * number, or a bit that says whether it has an inner row, fit into a message.
 */
#define MOST_SPARSE (MOST_BYTES / 9)
#define MOST_BITS ((uint64) MOST_BYTES * 8)

/* ---- numbers of keys --------------------------------------------------------------- */

/* Returns key k of an inner row. */
static inline int64
row_key(const Lookup *inner, uint32 row, int k)
{
	return lookup_integer(inner->values[(Size) row * inner->nkeys + k], inner->keys[k].inner_width);
}

/*
 * Sets the parts of numbers to those of keys between the least and the greatest of each column.
 * Returns false if the numbers may exceed 63 bits.
 */
static bool
pack_keys(const Lookup *inner, ExprKeyPart *parts)
{
	int64 factor = 1;

	for (int k = inner->nkeys - 1; k >= 0; k--)
	{
		int64 least = PG_INT64_MAX;
		int64 greatest = PG_INT64_MIN;
		int64 span;

		INTERRUPTIBLE_FOR (row, 0, inner->form == LOOKUP_EMPTY ? 0 : inner->nrows)
		{
			least = Min(least, row_key(inner, row, k));
			greatest = Max(greatest, row_key(inner, row, k));
		}
		parts[k] =
			(ExprKeyPart){.least = least, .greatest = greatest, .origin = least, .factor = factor};
		if (least > greatest)
			continue;
		if (pg_sub_s64_overflow(greatest, least, &span) || pg_add_s64_overflow(span, 1, &span) ||
			pg_mul_s64_overflow(factor, span, &factor))
			return false;
	}
	return true;
}

ExprKeyPart *
resident_key_parts(const Lookup *inner, bool *possible)
{
	ExprKeyPart *parts;

	*possible = true;
	if (inner->nkeys == 1)
		return NULL;
	parts = palloc(sizeof(ExprKeyPart) * inner->nkeys);
	if (!lookup_has_integer_key(inner))
		*possible = pack_keys(inner, parts);
	else
	{
		/* the halves of an integer of 64 bits; the lower one is from 0 on */
		parts[0] = (ExprKeyPart){PG_INT32_MIN, PG_INT32_MAX, 0, INT64CONST(1) << 32};
		parts[1] = (ExprKeyPart){PG_INT32_MIN, PG_INT32_MAX, PG_INT32_MIN, 1};
	}
	return parts;
}

/* Returns the number of an inner row's keys. */
static inline int64
row_number(const Lookup *inner, const ExprKeyPart *parts, uint32 row)
{
	int64 number = 0;

	if (parts == NULL)
		return inner->integers[row];
	if (inner->integers)
		return inner->integers[row] ^ (INT64CONST(1) << 31);
	for (int k = 0; k < inner->nkeys; k++)
		number += (row_key(inner, row, k) - parts[k].origin) * parts[k].factor;
	return number;
}

/* ---- hash tables --------------------------------------------------------------------- */

bool
resident_is_hashed(const Lookup *inner)
{
	uint64 span = (uint64) inner->greatest - (uint64) inner->least;

	switch (inner->form)
	{
		case LOOKUP_VALUES:
			return true;
		case LOOKUP_INTEGERS:
			/* the server keeps cells of kept lookups alone; else few cells are to be sent */
			return inner->nkeys > 1 || inner->serial == 0 ||
				span >= (inner->ncolumns > 0 ? MOST_SPARSE : MOST_BITS);
		case LOOKUP_ARRAY:
			return inner->ncolumns > 0 && span >= MOST_DENSE;
		default:
			return false;
	}
}

/*
 * Sets the ends of all numbers, if they are a range of 32 bits.  Else returns false.  It need not
 * find the range of all.
 */
static bool
is_narrow(const Lookup *inner, const ExprKeyPart *parts, int64 *least)
{
	uint64 span;

	if (parts == NULL)
	{
		*least = inner->least;
		return (uint64) inner->greatest - (uint64) inner->least <= PG_UINT32_MAX;
	}
	if (inner->integers)
		return false;
	*least = 0;
	span = (uint64) (parts[0].greatest - parts[0].origin + 1) * (uint64) parts[0].factor;
	return span <= PG_UINT32_MAX;
}

bool
resident_describe_slots(const Lookup *inner, const ExprKeyPart *parts, VectorTable *table)
{
	int64 least = 0;
	bool narrow = is_narrow(inner, parts, &least);
	uint64 most = MOST_BYTES / (narrow ? 8 : 16);

	if (inner->nrows > most / 3 * 2)
		return false;
	*table = (VectorTable){
		.base = least,
		.n = Min(Max((uint64) inner->nrows * 2, LEAST_SLOTS), most) - 1,
		.form = narrow ? VECTOR_SLOTS_NARROW : VECTOR_SLOTS_WIDE,
		/* all processes must write the same cells for a name */
		.least = inner->serial != 0 ? inner->serial : hash_seed_random().mask,
	};
	return true;
}

bool
resident_write_slots(const Lookup *inner, const ExprKeyPart *parts, const ResidentMatch *match,
					 const VectorTable *table, uint8 *to)
{
	uint64 *words = (uint64 *) to;

	INTERRUPTIBLE_FOR (row, 0, inner->nrows)
	{
		uint64 key;
		uint32 at;
		VectorSlot slot;

		if (!resident_is_match(match, row))
			continue;
		key = vector_slot_key(table, row_number(inner, parts, row));
		at = vector_first_slot(table, key);
		slot = vector_slot(table, to, at);
		for (int probes = 1; slot.entry != 0 && slot.key != key; probes++)
		{
			if (probes == VECTOR_MOST_PROBES)
				return false;
			at = vector_next_slot(table, at);
			slot = vector_slot(table, to, at);
		}
		if (slot.entry != 0)
			continue; /* one row is enough */
		if (table->form == VECTOR_SLOTS_NARROW)
			words[at] = key | ((uint64) row + 1) << 32;
		else
		{
			words[2 * (Size) at] = key;
			words[2 * (Size) at + 1] = (uint64) row + 1;
		}
	}
	return true;
}
