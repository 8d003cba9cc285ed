/*
 * column_types.h
 *	  The list of column types.
 *
 * Conversions, and loops that are compiled once for each type, are expanded from these lists.  A
 * table in spec.c says which SQL types a column type holds.
 *
 * X(NAME, value_t, bits_t, WIRE, from_datum, to_datum)
 *
 *	NAME		the type is COLUMN_NAME
 *	value_t		C type of a value
 *	bits_t		unsigned integer of the same width
 *	WIRE		WireType (protocol.h) of values that are sent to the GPU server;
 *				-1: they are sent as dictionary codes
 *	from_datum, to_datum
 *				macros of postgres.h; empty for decimals and Datums, which need other code
 */
#ifndef GPUAGG_COLUMN_TYPES_H
#define GPUAGG_COLUMN_TYPES_H

#include "postgres.h"

#include "operators/monoid.h"

/*
 * I8: bool (0 or 1) and "char".  I32: int4, date.  U32: oid, enum.  I64: int8, time,
 * timestamp(tz), money.
 */
#define COLUMN_INTEGERS(X) \
	X(I8, int8, uint8, WIRE_I8, DatumGetChar, CharGetDatum) \
	X(I16, int16, uint16, WIRE_I16, DatumGetInt16, Int16GetDatum) \
	X(I32, int32, uint32, WIRE_I32, DatumGetInt32, Int32GetDatum) \
	X(U32, uint32, uint32, WIRE_I32, DatumGetUInt32, UInt32GetDatum) \
	X(I64, int64, uint64, WIRE_I64, DatumGetInt64, Int64GetDatum)

#define COLUMN_FLOATS(X) \
	X(F32, float, uint32, WIRE_F32, DatumGetFloat4, Float4GetDatum) \
	X(F64, double, uint64, WIRE_F64, DatumGetFloat8, Float8GetDatum)

#define COLUMN_SCALARS(X) COLUMN_INTEGERS(X) COLUMN_FLOATS(X)

/*
 * DEC: a numeric, as an integer times 10^-scale.  DATUM: any type, as Datum; by-reference values
 * may be toasted.
 */
#define COLUMN_TYPES(X) \
	COLUMN_SCALARS(X) \
	X(DEC, gpuagg_i128, , WIRE_I128, , ) \
	X(DATUM, Datum, , -1, , )

typedef enum ColumnType
{
#define X(NAME, ...) COLUMN_##NAME,
	COLUMN_TYPES(X)
#undef X
} ColumnType;

/* Returns the bytes of a value. */
static inline int
column_width(ColumnType type)
{
#define X(NAME, value_t, ...) sizeof(value_t),
	static const int8 width[] = {COLUMN_TYPES(X)};
#undef X

	return width[type];
}

static inline bool
column_is_integer(ColumnType type)
{
	switch (type)
	{
#define X(NAME, ...) case COLUMN_##NAME:
		COLUMN_INTEGERS(X)
#undef X
		return true;
		default:
			return false;
	}
}

static inline bool
column_is_float(ColumnType type)
{
	switch (type)
	{
#define X(NAME, ...) case COLUMN_##NAME:
		COLUMN_FLOATS(X)
#undef X
		return true;
		default:
			return false;
	}
}

/*
 * State of a row of a vector: an array of values, with an array of states (uint8) next to it.
 * expr/expr.h computes vectors; cache/chunk.h reads and writes them.
 */
typedef enum VecState
{
	VEC_VALUE = 0,
	VEC_NULL = 1,
	VEC_FALLBACK = 2 /* the vector's type cannot represent the value; only core's code can */
} VecState;

#endif /* GPUAGG_COLUMN_TYPES_H */
