/*
 * chunk.h
 *
 * Chunks: a column of a range of heap blocks, compressed.
 *
 * A chunk is one piece of memory, aligned as palloc aligns. It has offsets from its start and no
 * pointers, so it may lie at any address and be shared by processes. It does not change once it is
 * written, except for the hint `no_numbers`.
 *
 * Rows are numbered from 0 in the order in which they were added. A row has a value, or is NULL,
 * or is an exception: a numeric that a decimal of the chunk's scale cannot represent (see
 * column_store_decimal()), stored as in its tuple. In the chunk's own type, a row without a value
 * reads as the value of another row, within the bounds, or as zero if no row has a value. Every
 * form is exact: floats keep their bits, and by-reference values keep the header that they have in
 * their tuples, whether short, compressed or toast pointer.
 */
#ifndef GPUAGG_CHUNK_H
#define GPUAGG_CHUNK_H

#include "postgres.h"

#include "port/pg_bswap.h"

#include "batch.h"

typedef enum ChunkForm
{
	CHUNK_CONSTANT,   /* all rows have the value `base`; nothing is stored per row */
	CHUNK_RAW,        /* an array with the layout of the column type */
	CHUNK_NARROW,     /* the value is `base` plus an unsigned integer of `width` bytes */
	CHUNK_BITS,       /* COLUMN_I8 with two values: a set bit means the greatest, else the least */
	CHUNK_DICTIONARY, /* by-reference values: codes of `width` bytes; width 0: one entry */
	CHUNK_IDENTITY    /* by-reference values that all differ: a row's code is its number */
} ChunkForm;

/*
 * Readers may use the fields up to `base`. The fields after it are offsets from the start of the
 * chunk.
 */
typedef struct CacheChunk
{
	size_t size; /* bytes of the chunk, a multiple of 8 */
	uint32 nrows;
	uint32 nnulls;
	uint32 nexceptions;
	uint32 nentries; /* entries of the dictionary */
	uint8 type;      /* ColumnType */
	uint8 form;      /* ChunkForm */
	uint8 width;     /* bytes stored per row; 0 with CHUNK_BITS */
	bool has_bounds;
	bool has_prefixes;
	int16 scale;  /* COLUMN_DEC */
	int16 typlen; /* by-reference values: as in pg_type; else 0 */
	volatile bool
		no_numbers; /* hint, set by any reader: the values have no form that a GPU can store */

	/*
	 * Least and greatest value of the rows with a value. NULLs and exceptions are not included, so
	 * exceptions may be outside the bounds. Floats are ordered as PostgreSQL orders them, NaN
	 * above all. Not set (has_bounds is false) if no row has a value, for COLUMN_DATUM, and for
	 * decimals that do not fit 64 bits.
	 */
	ColumnBound least;
	ColumnBound greatest;

	/*
	 * Varlena values: the least and greatest chunk_prefix(). Not set (has_prefixes is false) if no
	 * row has a value, or some value is compressed or out of line.
	 */
	uint64 least_prefix;
	uint64 greatest_prefix;

	gpuagg_i128 base;
	size_t values;     /* the array of values, bits or codes */
	size_t validity;   /* bitmap, bit set = not NULL; 0: the column has no NULLs */
	size_t exceptions; /* ChunkException[nexceptions], ordered by row */
	size_t entries;    /* if stride is 0: uint32[nentries], the entries' offsets in images */
	size_t images;     /* values of dictionary entries and exceptions */
	uint32 stride;     /* entry i begins at offset i * stride; 0: see entries */
	uint32 longest;    /* bytes of the longest entry, detoasted */
} CacheChunk;

typedef struct ChunkException
{
	uint32 row;
	uint32 image; /* offset of the numeric in images */
} ChunkException;

/*
 * Returns the first 8 of n bytes as a number, as if zeros followed. So the numbers of two values
 * compare as their bytes do, or are equal.
 */
static inline uint64
chunk_prefix(const char *bytes, size_t n)
{
	uint64 prefix = 0;

	memcpy(&prefix, bytes, Min(n, sizeof(prefix)));
	return pg_ntoh64(prefix);
}

/* ---- reading ------------------------------------------------------------------- */

/*
 * Reads rows [from, from + n) into a vector (see Vec in expr/expr.h) of the chunk's own type and
 * scale, or of COLUMN_DATUM. Sets values[] for all rows, whatever their state. Returns true if all
 * rows have a value; state[] is undefined then. Numerics that are read as COLUMN_DATUM are
 * allocated in the current memory context; an exception is a value there. Other by-reference
 * Datums point into the chunk.
 */
extern bool chunk_read(const CacheChunk *chunk, uint32 from, int n, ColumnType type, int16 scale,
					   void *values, uint8 *state);

/* Reads rows from + rows[0 .. n-1], ascending, like chunk_read(). */
extern bool chunk_gather(const CacheChunk *chunk, const uint16 *rows, uint32 from, int n,
						 ColumnType type, int16 scale, void *values, uint8 *state);

/*
 * Returns the chunk's array of values if it is stored as an array of this type, so that element r
 * is the value of row r; else NULL, and the values must be decoded. NULLs and exceptions have any
 * value.
 */
extern const void *chunk_in_place(const CacheChunk *chunk, ColumnType type, int16 scale);

/*
 * Returns the array of unsigned integers of chunk->width bytes (1, 2 or 4); a value of this type
 * is the integer plus the 64-bit `base`. Returns NULL if the chunk has another form.
 */
extern const void *chunk_narrow(const CacheChunk *chunk, ColumnType type, int16 scale);

/* Returns the bitmap of all rows (bit set = not NULL); NULL: there are no NULLs. */
static inline const uint64 *
chunk_validity(const CacheChunk *chunk)
{
	return chunk->validity ? (const uint64 *) ((const char *) chunk + chunk->validity) : NULL;
}

/* Returns one row as a Datum, as chunk_read() gives it. */
extern Datum chunk_datum(const CacheChunk *chunk, uint32 row, bool *isnull);

/*
 * Returns the number of entries of the dictionary; 0 if the values are not by-reference, or all
 * rows are NULL. Entries differ as bytes; equal values may have several entries, for example with
 * different headers.
 */
static inline uint32
chunk_dictionary_size(const CacheChunk *chunk)
{
	return chunk->nentries;
}

/*
 * Returns whether the values of the dictionary repeat enough, on average, that work done once per
 * value pays.
 */
static inline bool
chunk_repeats(const CacheChunk *chunk)
{
	return chunk->nentries > 0 && chunk->nentries <= chunk->nrows / 2;
}

/* Reads the dictionary codes of rows [from, from + n). NULLs have the code of any entry. */
extern void chunk_codes(const CacheChunk *chunk, uint32 from, int n, uint32 *codes);

/* Returns an entry of the dictionary; it points into the chunk. */
static inline Datum
chunk_entry(const CacheChunk *chunk, uint32 code)
{
	const char *start = (const char *) chunk;
	size_t at = chunk->stride ? (size_t) code * chunk->stride :
								((const uint32 *) (start + chunk->entries))[code];

	return PointerGetDatum(start + chunk->images + at);
}

/*
 * Returns whether an entry of the dictionary of a varlena column has no bytes. Reads only entries
 * whose distance to the next one is short.
 */
static inline bool
chunk_entry_is_empty(const CacheChunk *chunk, uint32 code)
{
	const uint32 *entries = (const uint32 *) ((const char *) chunk + chunk->entries);

	return (code + 1 == chunk->nentries || entries[code + 1] - entries[code] <= MAXIMUM_ALIGNOF) &&
		VARSIZE_ANY_EXHDR(DatumGetPointer(chunk_entry(chunk, code))) == 0;
}

/* ---- building ------------------------------------------------------------------ */

/* Collects the rows of one chunk after the other, and keeps its memory between chunks. */
typedef struct ChunkBuilder ChunkBuilder;

/*
 * Creates a builder in cxt, with which it is freed. typlen, typbyval and typalign are those of the
 * SQL type, and matter for COLUMN_DATUM only. Returns NULL if chunks cannot hold such values:
 * cstrings (typlen -2).
 */
extern ChunkBuilder *chunk_builder_create(ColumnType type, int16 scale, int16 typlen, bool typbyval,
										  char typalign, MemoryContext cxt);

/* Removes all rows, so that another chunk can be built. */
extern void chunk_builder_reset(ChunkBuilder *builder);

/*
 * Appends n rows, with values and states as in a Vec of the builder's type and scale; state NULL:
 * all have a value. By-reference values are copied at once. Must not be called after
 * chunk_builder_size().
 */
extern void chunk_builder_add(ChunkBuilder *builder, const void *values, const uint8 *state, int n);

/*
 * Adds the numeric of a row that was appended as VEC_FALLBACK. Must be called for each such row,
 * in ascending order.
 */
extern void chunk_builder_exception(ChunkBuilder *builder, uint32 row, Datum numeric);

/* Ends the rows; returns the size of the chunk in bytes. */
extern size_t chunk_builder_size(ChunkBuilder *builder);

/* Writes the chunk, after chunk_builder_size(); dst must be aligned as palloc aligns. */
extern void chunk_builder_write(ChunkBuilder *builder, CacheChunk *dst);

#endif /* GPUAGG_CHUNK_H */
