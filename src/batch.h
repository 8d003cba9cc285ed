/*
 * batch.h
 *	  A batch: up to `capacity` input rows, column by column.
 *
 * The layout is Arrow's: fixed-width values in one array, and validity as an LSB-first bitmap (a
 * set bit means not NULL), which is absent if the column has no NULL in this batch.  A batch has
 * only rows that passed WHERE.  The condition of a FILTER clause is a column of its own.  The
 * feed that fills a batch owns its arrays.  They are valid until the feed's next call, so engines
 * copy what they keep.
 */
#ifndef GPUAGG_BATCH_H
#define GPUAGG_BATCH_H

#include "postgres.h"

#include "access/detoast.h"

#include "column_types.h"
#include "common/compat.h"

/*
 * A feed ends a batch after the row with which its detoasted by-reference values reach this many
 * bytes.  An engine may detoast all values of a batch at once.
 */
#define BATCH_BYTES (1024 * 1024)

/* A bound of the values of a column. */
typedef union ColumnBound
{
	int64 integer; /* for integers, and for decimals times 10^scale */
	double number; /* for floats */
} ColumnBound;

typedef struct Column
{
	ColumnType type;
	int16 scale;      /* COLUMN_DEC: digits behind the point */
	void *values;     /* nrows values; undefined where NULL or unrepresentable */
	void *memory;     /* the feed's own array of values.  EngineOps.bind_buffers may point `values`
						 elsewhere, unless this is NULL */
	uint64 *validity; /* NULL: no NULLs in this batch */

	/*
	 * The narrow form of integers and decimals.  If `narrow` is not NULL, `values` is undefined,
	 * and a value is `base` plus an unsigned integer of narrow_width bytes (1, 2 or 4).  A feed
	 * uses it only if the engine has set takes_narrow (EngineOps.bind_buffers).
	 */
	const void *narrow;
	int64 base; /* 0 if the column is not narrow */
	uint8 narrow_width;
	bool takes_narrow;

	/*
	 * COLUMN_DEC: rows whose numeric the column cannot represent: NaN, infinities, numbers that are
	 * too large, other display scales (see NumericForm).  A bitmap, or NULL for none.  Such a row
	 * is not NULL, but has no value in `values`; unrepresentable_values[row] is its Datum.
	 */
	uint64 *unrepresentable;
	Datum *unrepresentable_values;

	/*
	 * If has_bounds, all values are within these bounds.  Floats compare as in PostgreSQL: NaN is
	 * greater than all numbers.
	 */
	ColumnBound least;
	ColumnBound greatest;
	bool has_bounds;

	/*
	 * COLUMN_DATUM: numbers of the values in a dictionary of the feed, or NULL if the feed has none
	 * for this batch.  Numbers are less than ncodes.  Rows with equal numbers have identical bytes.
	 * The number of a NULL is undefined.  Batches with the same `dictionary`, which is not 0, share
	 * numbers.
	 */
	const uint32 *codes;
	uint32 ncodes;
	uint64 dictionary;

	/*
	 * COLUMN_DATUM: hashes of the values, as a dictionary of groups with the seed of this query
	 * computes them; NULL as a rule.  Then values are not toasted, and `lasting` says that they
	 * stay in place as long as the groups that are made of them.
	 */
	const uint32 *hashes;
	bool lasting;
} Column;

typedef struct Batch
{
	int nrows;
	int capacity;
	int ncols;
	Column *cols; /* in AggSpec.cols order */
} Batch;

/* Returns bit i of a bitmap. */
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

/* Number of 64-bit words of a bitmap of n bits. */
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
 * The form of a column's values: its ColumnType, or FORM_NARROW plus narrow_width.  Loops over
 * values have a case for each column type and for each row of COLUMN_NARROWS, X(width, type).
 */
#define COLUMN_NARROWS(X) X(1, uint8) X(2, uint16) X(4, uint32)
#define FORM_NARROW 100

/* Returns the array that has the column's values in the form that column_form returns. */
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

/* True if the bounds of a filter column prove that it is false in all rows. */
static inline bool
column_is_false(const Column *col)
{
	return col->has_bounds && col->least.integer == 0 && col->greatest.integer == 0;
}

/* Returns the value in row i of a narrow column. */
static inline int64
column_narrow_value(const Column *col, int i)
{
	if (col->narrow_width == 1)
		return col->base + ((const uint8 *) col->narrow)[i];
	if (col->narrow_width == 2)
		return col->base + ((const uint16 *) col->narrow)[i];
	return col->base + ((const uint32 *) col->narrow)[i];
}

/* Returns the size of a by-reference value after detoasting. */
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
