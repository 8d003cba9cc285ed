/*
 * column_value.h
 *	  Converts between a column's values and Datums.
 */
#ifndef GPUAGG_COLUMN_VALUE_H
#define GPUAGG_COLUMN_VALUE_H

#include "postgres.h"

#include "batch.h"
#include "column_types.h"
#include "columns/decimal.h"
#include "common/compat.h"
#include "operators/decode_numeric.h"

/* Sets *to to the numeric `value` as a decimal of this scale; false if no such decimal exists. */
static inline bool
column_store_decimal(int16 scale, gpuagg_i128 *to, Datum value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	struct varlena *numeric = stored;
	bool fits;

	if (unlikely(VARATT_IS_EXTERNAL(stored) || VARATT_IS_COMPRESSED(stored)))
		numeric = pg_detoast_datum_packed(stored);
	fits = decode_numeric((const uint8_t *) VARDATA_ANY(numeric), VARSIZE_ANY_EXHDR(numeric), scale,
						  to);
	if (unlikely(numeric != stored))
		pfree(numeric);
	return fits;
}

/*
 * Stores a Datum that is not NULL as values[row]; a by-reference one is stored as its pointer.
 * Returns false if the type cannot represent it, which happens only for decimals.
 */
static inline bool
column_store(ColumnType type, int16 scale, void *values, int row, Datum value)
{
	switch (type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		((value_t *) values)[row] = from_datum(value); \
		break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			return column_store_decimal(scale, (gpuagg_i128 *) values + row, value);
		case COLUMN_DATUM:
			((Datum *) values)[row] = value;
			break;
	}
	return true;
}

/* Returns values[row], which is not NULL, as a Datum. Numerics are made in the current context. */
static inline Datum
column_datum(ColumnType type, int16 scale, const void *values, int row)
{
	switch (type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		return to_datum(((const value_t *) values)[row]);
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			return decimal_to_numeric(((const gpuagg_i128 *) values)[row], scale);
		case COLUMN_DATUM:
			return ((const Datum *) values)[row];
	}
	return (Datum) 0;
}

/* Writes the low bits of `bits` to row i of a column of integers, floats or Datums. */
static inline void
column_store_bits(const Column *col, int i, uint64 bits)
{
	switch (column_width(col->type))
	{
		case 1:
			((uint8 *) col->values)[i] = (uint8) bits;
			break;
		case 2:
			((uint16 *) col->values)[i] = (uint16) bits;
			break;
		case 4:
			((uint32 *) col->values)[i] = (uint32) bits;
			break;
		default:
			((uint64 *) col->values)[i] = bits;
	}
}

/* Returns the Datum of an integer or float whose bits are the low bits of `word`. */
static inline Datum
column_bits_datum(ColumnType type, uint64 word)
{
	switch (type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
	{ \
		bits_t bits = (bits_t) word; \
		value_t value; \
\
		memcpy(&value, &bits, sizeof(value)); \
		return to_datum(value); \
	}
		COLUMN_SCALARS(X)
#undef X
		default:
			return (Datum) word;
	}
}

/* Values are prefetched so many rows ahead, unless they lie within so many bytes of this row's. */
#define VALUE_AHEAD 16
#define NEAR_VALUES 4096

/*
 * Prefetches a by-reference value that is needed some rows after row i of n.  Values that lie near
 * each other are left to the processor, which finds them itself.
 */
static inline void
column_prefetch_value(const Datum *values, int i, int n)
{
	if (i + VALUE_AHEAD < n && values[i + VALUE_AHEAD] - values[i] > NEAR_VALUES)
	{
		__builtin_prefetch(DatumGetPointer(values[i + VALUE_AHEAD]));
		__builtin_prefetch(DatumGetPointer(values[i + VALUE_AHEAD]) + 64);
	}
}

#endif /* GPUAGG_COLUMN_VALUE_H */
