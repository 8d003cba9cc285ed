/*
 * batch.h
 *	  A batch: up to `capacity` input rows, column by column.
 *
 * The layout is Arrow's: fixed-width values in one array, validity as an
 * LSB-first bitmap (bit set = not NULL), absent where a column has no NULL in
 * this batch.  A batch holds only rows that passed WHERE; FILTER clauses are
 * columns of their own.  Arrays belong to the feed that fills them and are
 * valid until its next call; engines copy what they keep.
 */
#ifndef GPUAGG_BATCH_H
#define GPUAGG_BATCH_H

#include "postgres.h"

#include "access/detoast.h"

#include "column_types.h"
#include "common/compat.h"

/*
 * A feed ends a batch after the row with which its by-reference values, detoasted,
 * reach so many bytes, because an engine may detoast all values of a batch at once.
 */
#define BATCH_BYTES (1024 * 1024)

/* A bound of integers and decimals (times 10^scale) or of floats. */
typedef union ColumnBound
{
	int64 integer;
	double number;
} ColumnBound;

typedef struct Column
{
	ColumnType type;
	int16 scale;      /* COLUMN_DEC: digits right of the point */
	void *values;     /* nrows values; undefined where NULL or unrepresentable */
	void *memory;     /* the feed's array for them; NULL: EngineOps.bind_buffers may not
					   * point `values` elsewhere */
	uint64 *validity; /* or NULL: no NULLs in this batch */

	/*
	 * Integers and decimals, where the engine has set takes_narrow (EngineOps.bind_buffers): not
	 * NULL says that `values` is undefined, and a value is base plus an unsigned integer of
	 * narrow_width bytes: 1, 2 or 4.
	 */
	const void *narrow;
	int64 base; /* 0 where the column is not narrow */
	uint8 narrow_width;
	bool takes_narrow;

	/*
	 * COLUMN_DEC: numerics that a decimal of this scale cannot represent (NaN,
	 * infinities, too large ones, another display scale, but see NumericForm).  A bitmap like
	 * validity, or NULL for none.  Such rows are not NULL, but have no value in `values`;
	 * unrepresentable_values[row] is their Datum.
	 */
	uint64 *unrepresentable;
	Datum *unrepresentable_values;

	/*
	 * If has_bounds: all values are within these, numbers of floats as PostgreSQL orders them, NaN
	 * above all.
	 */
	ColumnBound least;
	ColumnBound greatest;
	bool has_bounds;

	/*
	 * COLUMN_DATUM: numbers, below ncodes, of the values in a dictionary that the feed
	 * has; rows with one number have one value, byte by byte.  Rows that are NULL have any
	 * number.  Batches with the same `dictionary`, which is not 0, have the same
	 * numbers.  NULL: the feed has none for this batch.
	 */
	const uint32 *codes;
	uint32 ncodes;
	uint64 dictionary;
} Column;

typedef struct Batch
{
	int nrows;
	int capacity;
	int ncols;
	Column *cols; /* in AggSpec.cols order */
} Batch;

static inline bool
bitmap_get(const uint64 *bits, int i)
{
	return (bits[i >> 6] >> (i & 63)) & 1;
}

static inline void
bitmap_set(uint64 *bits, int i)
{
	bits[i >> 6] |= UINT64CONST(1) << (i & 63);
}

static inline void
bitmap_clear(uint64 *bits, int i)
{
	bits[i >> 6] &= ~(UINT64CONST(1) << (i & 63));
}

#define BITMAP_WORDS(n) (((n) + 63) / 64)

static inline bool
column_is_null(const Column *col, int i)
{
	return col->validity && !bitmap_get(col->validity, i);
}

static inline bool
column_is_unrepresentable(const Column *col, int i)
{
	return col->unrepresentable && bitmap_get(col->unrepresentable, i);
}

/*
 * The array of a column, and which form its values have: a ColumnType, or FORM_NARROW plus the
 * width, for which a loop has a case for each row of COLUMN_NARROWS.
 */
#define COLUMN_NARROWS(X) X(1, uint8) X(2, uint16) X(4, uint32)
#define FORM_NARROW 100

static inline const void *
column_array(const Column *col)
{
	return col->narrow ? col->narrow : col->values;
}

static inline int
column_form(const Column *col)
{
	return col->narrow ? FORM_NARROW + col->narrow_width : (int) col->type;
}

/* Of a filter: do its bounds say that no row passes? */
static inline bool
column_is_false(const Column *col)
{
	return col->has_bounds && col->least.integer == 0 && col->greatest.integer == 0;
}

/* A value of a column that is narrow. */
static inline int64
column_narrow_value(const Column *col, int i)
{
	if (col->narrow_width == 1)
		return col->base + ((const uint8 *) col->narrow)[i];
	if (col->narrow_width == 2)
		return col->base + ((const uint16 *) col->narrow)[i];
	return col->base + ((const uint32 *) col->narrow)[i];
}

/* Bytes of a by-reference value once it is detoasted. */
static inline size_t
datum_bytes(Datum value, int16 typlen)
{
	const char *pointer = DatumGetPointer(value);

	if (typlen == -1)
	{
		if (likely(VARATT_IS_4B_U(pointer)))
			return VARSIZE_4B(pointer);
		if (likely(!VARATT_IS_1B_E(pointer) && VARATT_IS_1B(pointer)))
			return VARSIZE_1B(pointer);
		return toast_raw_datum_size(value);
	}
	return typlen == -2 ? strlen(pointer) + 1 : (size_t) typlen;
}

#endif /* GPUAGG_BATCH_H */
