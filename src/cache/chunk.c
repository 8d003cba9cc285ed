/*
 * chunk.c
 *
 * Reads chunks; see chunk.h.
 *
 * Loops over rows have no branches. They are compiled once for consecutive rows and once for
 * listed rows, for each pair of a stored width and a value width. Signs do not matter: a base and
 * an offset are added modulo the width.
 */
#include "postgres.h"

#include "batch.h"
#include "cache/chunk.h"
#include "columns/column_value.h"

/* Number of values that are converted to Datums at a time. */
#define BLOCK_ROWS 256

/* The rows to read: [from, from + n), or from + list[0 .. n-1]. */
typedef struct ChunkRows
{
	uint32 from;
	const uint16 *list;
	int n;
} ChunkRows;

/* If `consecutive`, the compiler can assume that rows.list is NULL. */
#define ROW(i) (consecutive ? (i) : rows.list[i])

/* Returns the chunk's array of values, bits or codes. */
static inline const void *
stored_values(const CacheChunk *chunk)
{
	return (const char *) chunk + chunk->values;
}

/* ---- values -------------------------------------------------------------------- */

/* to[i] = expr for all rows */
#define EACH_ROW(to_t, expr) \
	do \
	{ \
		to_t *restrict to = values; \
		const int n = rows.n; \
		for (int i = 0; i < n; i++) \
			to[i] = (expr); \
	} while (0)

/* to[i] = base + stored integer, added as bits_t, which is as wide as value_t */
#define EACH_NARROW(to_t, value_t, bits_t, from_t) \
	do \
	{ \
		const from_t *restrict stored = (const from_t *) stored_values(chunk) + rows.from; \
		const bits_t base = (bits_t) chunk->base; \
		EACH_ROW(to_t, (value_t) (base + stored[ROW(i)])); \
	} while (0)

#define EACH_RAW(bits_t) \
	do \
	{ \
		const bits_t *restrict stored = (const bits_t *) stored_values(chunk) + rows.from; \
		if (consecutive) \
			memcpy(values, stored, sizeof(bits_t) * rows.n); \
		else \
			EACH_ROW(bits_t, stored[ROW(i)]); \
	} while (0)

/*
 * Expands bits [from, from + n) to bytes with the value `zero` or `one`. The array has one word
 * more than the bits need. Each bit is moved to a byte of its own (little-endian).
 */
static void
unpack_bits(const uint64 *bits, size_t from, int n, uint8 zero, uint8 one, uint8 *restrict to)
{
	const uint64 each = UINT64CONST(0x0101010101010101);
	const uint64 zeros = each * zero;
	const uint64 change = zero ^ one;
	const int shift = from & 63;

	bits += from >> 6;
	for (int i = 0; i < n; i += 64, bits++)
	{
		uint64 word = bits[0] >> shift | bits[1] << 1 << (63 - shift);
		uint64 bytes[8];

		for (int k = 0; k < 8; k++)
		{
			uint64 spread = (word >> 8 * k & 0xff) * each & UINT64CONST(0x8040201008040201);

			spread = (spread + UINT64CONST(0x7f7f7f7f7f7f7f7f)) >> 7 & each;
			bytes[k] = zeros ^ spread * change;
		}
		memcpy(to + i, bytes, Min(n - i, 64));
	}
}

/* Reads a CHUNK_BITS chunk: a set bit becomes the greatest value, an unset one the least. */
static pg_attribute_always_inline void
read_bits(const CacheChunk *chunk, ChunkRows rows, bool consecutive, void *values)
{
	const uint64 *bits = stored_values(chunk);
	uint8 least = (uint8) chunk->least.integer;
	uint8 change = least ^ (uint8) chunk->greatest.integer;

	if (consecutive)
		unpack_bits(bits, rows.from, rows.n, least, least ^ change, values);
	else
		EACH_ROW(uint8, least ^ (change & -(uint8) bitmap_get(bits, rows.from + ROW(i))));
}

/* Reads integers, floats and by-value Datums of 1, 2, 4 or 8 bytes. */
static pg_attribute_always_inline void
read_scalars(const CacheChunk *chunk, int width, ChunkRows rows, bool consecutive, void *values)
{
	/* pairs of value width and stored width */
#define CASE(to_width, from_width) case (to_width) *16 + (from_width)
	switch (width * 16 + chunk->width)
	{
		CASE(1, 0) : if (chunk->form == CHUNK_BITS) read_bits(chunk, rows, consecutive, values);
		else EACH_ROW(uint8, (uint8) chunk->base);
		break;
		CASE(1, 1) : EACH_RAW(uint8);
		break;
		CASE(2, 0) : EACH_ROW(uint16, (uint16) chunk->base);
		break;
		CASE(2, 1) : EACH_NARROW(uint16, uint16, uint16, uint8);
		break;
		CASE(2, 2) : EACH_RAW(uint16);
		break;
		CASE(4, 0) : EACH_ROW(uint32, (uint32) chunk->base);
		break;
		CASE(4, 1) : EACH_NARROW(uint32, uint32, uint32, uint8);
		break;
		CASE(4, 2) : EACH_NARROW(uint32, uint32, uint32, uint16);
		break;
		CASE(4, 4) : EACH_RAW(uint32);
		break;
		CASE(8, 0) : EACH_ROW(uint64, (uint64) chunk->base);
		break;
		CASE(8, 1) : EACH_NARROW(uint64, uint64, uint64, uint8);
		break;
		CASE(8, 2) : EACH_NARROW(uint64, uint64, uint64, uint16);
		break;
		CASE(8, 4) : EACH_NARROW(uint64, uint64, uint64, uint32);
		break;
		CASE(8, 8) : EACH_RAW(uint64);
		break;
		default:
			elog(ERROR, "gpuagg: chunk of width %d, read as %d", chunk->width, width);
	}
#undef CASE
}

/*
 * Decimals with bounds, whose values fit 64 bits, take one 64-bit addition, and sign extension if
 * one may be negative.
 */
#define EACH_DECIMAL(from_t) \
	do \
	{ \
		if (chunk->has_bounds && chunk->least.integer >= 0) \
			EACH_NARROW(gpuagg_i128, uint64, uint64, from_t); \
		else if (chunk->has_bounds) \
			EACH_NARROW(gpuagg_i128, int64, uint64, from_t); \
		else \
			EACH_NARROW(gpuagg_i128, gpuagg_i128, gpuagg_u128, from_t); \
	} while (0)

/* Reads decimals into an array of gpuagg_i128. */
static pg_attribute_always_inline void
read_decimals(const CacheChunk *chunk, ChunkRows rows, bool consecutive, void *values)
{
	switch (chunk->width)
	{
		case 0:
		{
			const gpuagg_i128 base = chunk->base;

			EACH_ROW(gpuagg_i128, base);
			break;
		}
		case 1:
			EACH_DECIMAL(uint8);
			break;
		case 2:
			EACH_DECIMAL(uint16);
			break;
		case 4:
			EACH_DECIMAL(uint32);
			break;
		case 8:
			EACH_DECIMAL(uint64);
			break;
		default:
			EACH_RAW(gpuagg_i128);
			break;
	}
}

/* Sets pointers to the dictionary entries. */
#define EACH_ENTRY(code) \
	do \
	{ \
		const char *images = (const char *) chunk + chunk->images; \
		if (chunk->stride) \
		{ \
			const size_t stride = chunk->stride; \
			EACH_ROW(Datum, PointerGetDatum(images + (code) *stride)); \
		} \
		else \
		{ \
			const uint32 *entries = (const uint32 *) ((const char *) chunk + chunk->entries); \
			EACH_ROW(Datum, PointerGetDatum(images + entries[code])); \
		} \
	} while (0)

#define EACH_CODE(code_t) \
	do \
	{ \
		const code_t *restrict stored = (const code_t *) stored_values(chunk) + rows.from; \
		EACH_ENTRY(stored[ROW(i)]); \
	} while (0)

/* Sets values[] to pointers to the rows' dictionary entries; to 0 if the dictionary is empty. */
static pg_attribute_always_inline void
read_references(const CacheChunk *chunk, ChunkRows rows, bool consecutive, void *values)
{
	if (chunk->nentries == 0)
		EACH_ROW(Datum, (Datum) 0);
	else if (chunk->form == CHUNK_IDENTITY)
		EACH_ENTRY(rows.from + ROW(i));
	else if (chunk->width == 0)
	{
		Datum entry = chunk_entry(chunk, 0);

		EACH_ROW(Datum, entry);
	}
	else if (chunk->width == 1)
		EACH_CODE(uint8);
	else if (chunk->width == 2)
		EACH_CODE(uint16);
	else
		EACH_CODE(uint32);
}

/* Reads values of the chunk's own type. */
static pg_attribute_always_inline void
read_values(const CacheChunk *chunk, ChunkRows rows, bool consecutive, void *values)
{
	if (chunk->type == COLUMN_DEC)
		read_decimals(chunk, rows, consecutive, values);
	else if (chunk->typlen != 0)
		read_references(chunk, rows, consecutive, values);
	else
		read_scalars(chunk, column_width(chunk->type), rows, consecutive, values);
}

/* Not inlined, so that read_values() has exactly two instances. */
static pg_noinline void
read_consecutive(const CacheChunk *chunk, ChunkRows rows, void *values)
{
	read_values(chunk, rows, true, values);
}

/* Not inlined, like read_consecutive(). */
static pg_noinline void
read_listed(const CacheChunk *chunk, ChunkRows rows, void *values)
{
	read_values(chunk, rows, false, values);
}

/* Reads values of the chunk's own type and scale. */
static inline void
read_own(const CacheChunk *chunk, ChunkRows rows, void *values)
{
	if (rows.list)
		read_listed(chunk, rows, values);
	else
		read_consecutive(chunk, rows, values);
}

/* ---- states -------------------------------------------------------------------- */

/* Returns whether bits [from, from + n) are all set. */
static bool
all_bits_set(const uint64 *bits, size_t from, int n)
{
	size_t last;
	uint64 unset;

	if (n == 0)
		return true;
	last = (from + n - 1) >> 6;
	unset = ~bits[from >> 6] & ~UINT64CONST(0) << (from & 63);
	for (size_t w = from >> 6; w < last; w++)
	{
		if (unset)
			return false;
		unset = ~bits[w + 1];
	}
	return (unset & ~UINT64CONST(0) >> (63 - ((from + n - 1) & 63))) == 0;
}

/* Returns true if there are no NULLs; otherwise sets state[] to VEC_VALUE or VEC_NULL. */
static bool
read_nulls(const CacheChunk *chunk, ChunkRows rows, uint8 *state)
{
	const uint64 *validity = chunk_validity(chunk);
	uint8 any = 0;

	if (validity == NULL)
		return true;
	if (rows.list == NULL)
	{
		if (all_bits_set(validity, rows.from, rows.n))
			return true;
		unpack_bits(validity, rows.from, rows.n, VEC_NULL, VEC_VALUE, state);
		return false;
	}
	for (int i = 0; i < rows.n; i++)
	{
		state[i] = bitmap_get(validity, rows.from + rows.list[i]) ? VEC_VALUE : VEC_NULL;
		any |= state[i];
	}
	return any == 0;
}

/* Returns the chunk's exceptions, ordered by row. */
static inline const ChunkException *
chunk_exceptions(const CacheChunk *chunk)
{
	return (const ChunkException *) ((const char *) chunk + chunk->exceptions);
}

/* Returns the index of the first exception at `row` or a later row. */
static uint32
find_exception(const CacheChunk *chunk, uint32 row)
{
	const ChunkException *exceptions = chunk_exceptions(chunk);
	uint32 low = 0;
	uint32 high = chunk->nexceptions;

	while (low < high)
	{
		uint32 middle = low + (high - low) / 2;

		if (exceptions[middle].row < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the numeric of an exception; it points into the chunk. */
static inline Datum
exception_datum(const CacheChunk *chunk, const ChunkException *exception)
{
	return PointerGetDatum((const char *) chunk + chunk->images + exception->image);
}

/*
 * Sets datums[i] for each row i that is an exception, or, if datums is NULL, its state to
 * VEC_FALLBACK. all_values: state[] has not been set yet, as all rows have a value; it is set for
 * all rows if there is an exception. Returns whether all rows still have a value.
 */
static bool
read_exceptions(const CacheChunk *chunk, ChunkRows rows, Datum *datums, uint8 *state,
				bool all_values)
{
	const ChunkException *exceptions = chunk_exceptions(chunk);
	int i = 0;

	for (uint32 k = find_exception(chunk, rows.from); k < chunk->nexceptions; k++)
	{
		uint32 row = exceptions[k].row - rows.from;

		if (rows.list)
			while (i < rows.n && rows.list[i] < row)
				i++;
		else
			i = Min(row, rows.n);
		if (i == rows.n)
			break;
		/* a list may have a row several times */
		for (; i < rows.n && (rows.list ? rows.list[i] : (uint32) i) == row; i++)
		{
			if (datums)
			{
				datums[i] = exception_datum(chunk, &exceptions[k]);
				continue;
			}
			if (all_values)
				memset(state, VEC_VALUE, rows.n);
			all_values = false;
			state[i] = VEC_FALLBACK;
		}
	}
	return all_values;
}

/* ---- Datums -------------------------------------------------------------------- */

/*
 * Converts n values of the chunk's own type to Datums. Numerics of rows without a value are not
 * made.
 */
static void
block_datums(const CacheChunk *chunk, const void *block, const uint8 *state, int n, Datum *datums)
{
	switch ((ColumnType) chunk->type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		for (int i = 0; i < n; i++) \
			datums[i] = to_datum(((const value_t *) block)[i]); \
		break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			for (int i = 0; i < n; i++)
				datums[i] = state[i] == VEC_VALUE ?
					decimal_to_numeric(((const gpuagg_i128 *) block)[i], chunk->scale) :
					(Datum) 0;
			break;
		case COLUMN_DATUM:
			break;
	}
}

/* Reads the values of a chunk whose type is not COLUMN_DATUM as Datums. */
static void
read_datums(const CacheChunk *chunk, ChunkRows rows, Datum *datums)
{
	gpuagg_i128 block[BLOCK_ROWS];
	uint8 state[BLOCK_ROWS];

	for (int done = 0; done < rows.n; done += BLOCK_ROWS)
	{
		ChunkRows part = rows;

		part.n = Min(rows.n - done, BLOCK_ROWS);
		if (rows.list)
			part.list += done;
		else
			part.from += done;
		read_own(chunk, part, block);
		if (chunk->type == COLUMN_DEC)
		{
			bool all_values = read_nulls(chunk, part, state);

			if (all_values)
				memset(state, VEC_VALUE, part.n);
			if (chunk->nexceptions > 0)
				read_exceptions(chunk, part, NULL, state, false);
		}
		block_datums(chunk, block, state, part.n, datums + done);
	}
	if (chunk->nexceptions > 0)
		read_exceptions(chunk, rows, datums, NULL, false);
}

/* ---- public functions ---------------------------------------------------------- */

/* Returns whether this type and scale are the chunk's own. */
static inline bool
is_own(const CacheChunk *chunk, ColumnType type, int16 scale)
{
	return type == chunk->type && (type != COLUMN_DEC || scale == chunk->scale);
}

/* Reads the given rows; see chunk_read(). */
static bool
read_rows(const CacheChunk *chunk, ChunkRows rows, ColumnType type, int16 scale, void *values,
		  uint8 *state)
{
	bool all_values;

	if (is_own(chunk, type, scale))
		read_own(chunk, rows, values);
	else if (type == COLUMN_DATUM)
		read_datums(chunk, rows, values);
	else
		elog(ERROR, "gpuagg: chunk of column type %d, read as %d", chunk->type, type);
	all_values = read_nulls(chunk, rows, state);
	if (chunk->nexceptions > 0 && type == COLUMN_DEC)
		all_values = read_exceptions(chunk, rows, NULL, state, all_values);
	return all_values;
}

bool
chunk_read(const CacheChunk *chunk, uint32 from, int n, ColumnType type, int16 scale, void *values,
		   uint8 *state)
{
	ChunkRows rows = {.from = from, .n = n};

	Assert(n >= 0 && from <= chunk->nrows && n <= chunk->nrows - from);
	return read_rows(chunk, rows, type, scale, values, state);
}

bool
chunk_gather(const CacheChunk *chunk, const uint16 *list, uint32 from, int n, ColumnType type,
			 int16 scale, void *values, uint8 *state)
{
	ChunkRows rows = {.from = from, .list = list, .n = n};

	Assert(n == 0 || from + list[n - 1] < chunk->nrows);
	return read_rows(chunk, rows, type, scale, values, state);
}

const void *
chunk_in_place(const CacheChunk *chunk, ColumnType type, int16 scale)
{
	if (chunk->form != CHUNK_RAW || !is_own(chunk, type, scale))
		return NULL;
	return stored_values(chunk);
}

const void *
chunk_narrow(const CacheChunk *chunk, ColumnType type, int16 scale)
{
	if (chunk->form != CHUNK_NARROW || !chunk->has_bounds || chunk->width > 4 ||
		!is_own(chunk, type, scale))
		return NULL;
	return stored_values(chunk);
}

Datum
chunk_datum(const CacheChunk *chunk, uint32 row, bool *isnull)
{
	const uint64 *validity = chunk_validity(chunk);
	ChunkRows rows = {.from = row, .n = 1};
	gpuagg_i128 value;

	Assert(row < chunk->nrows);
	*isnull = validity && !bitmap_get(validity, row);
	if (*isnull)
		return (Datum) 0;
	if (chunk->nexceptions > 0)
	{
		uint32 k = find_exception(chunk, row);

		if (k < chunk->nexceptions && chunk_exceptions(chunk)[k].row == row)
			return exception_datum(chunk, &chunk_exceptions(chunk)[k]);
	}
	read_consecutive(chunk, rows, &value);
	return column_datum(chunk->type, chunk->scale, &value, 0);
}

void
chunk_codes(const CacheChunk *chunk, uint32 from, int n, uint32 *values)
{
	const bool consecutive = true;
	ChunkRows rows = {.from = from, .n = n};

	Assert(chunk->nentries > 0 && from <= chunk->nrows && n <= chunk->nrows - from);
	if (chunk->form == CHUNK_IDENTITY)
		EACH_ROW(uint32, from + i);
	else if (chunk->width == 0)
		memset(values, 0, sizeof(uint32) * n);
	else if (chunk->width == 1)
	{
		const uint8 *restrict stored = (const uint8 *) stored_values(chunk) + from;

		EACH_ROW(uint32, stored[ROW(i)]);
	}
	else if (chunk->width == 2)
	{
		const uint16 *restrict stored = (const uint16 *) stored_values(chunk) + from;

		EACH_ROW(uint32, stored[ROW(i)]);
	}
	else
		memcpy(values, (const uint32 *) stored_values(chunk) + from, sizeof(uint32) * n);
}
