/*
 * chunk.h
 *	  Chunks: a column of a range of heap blocks, compressed.
 *
 * A chunk is one piece of memory, aligned as palloc aligns, that holds offsets from
 * its start and no pointers, so it may lie at any address and be shared by
 * processes.  It never changes once it is written, but for the hint `no_numbers`.
 *
 * Rows are numbered from 0 in the order in which they were added.  A row has a
 * value, or is NULL, or is an exception: a numeric that a decimal of the chunk's
 * scale cannot represent (see column_store_decimal), which is kept as it was in its
 * tuple.  In the chunk's own type a row without a value reads as that of another row,
 * within the bounds, or as zero if no row has one.  Every form is exact: floats come back bit for
 * bit, by-reference values with the header that they had in their tuples, be they short, compressed
 * or toast pointers.
 */
#ifndef GPUAGG_CHUNK_H
#define GPUAGG_CHUNK_H

#include "postgres.h"

#include "batch.h"

typedef enum ChunkForm
{
	CHUNK_CONSTANT,   /* all rows have `base`; nothing is stored for each row */
	CHUNK_RAW,        /* the layout of the column type */
	CHUNK_NARROW,     /* `base` and an unsigned integer of `width` bytes */
	CHUNK_BITS,       /* COLUMN_I8: least, or, where a bit is set, greatest */
	CHUNK_DICTIONARY, /* by-reference values: codes of `width` bytes; 0: one entry */
	CHUNK_IDENTITY    /* by-reference values: a row's code is its number */
} ChunkForm;

/* Readers may look at any field up to `base`; what is behind are offsets from the start. */
typedef struct CacheChunk
{
	size_t size; /* of all of it, a multiple of 8 */
	uint32 nrows;
	uint32 nnulls;
	uint32 nexceptions;
	uint32 nentries; /* of the dictionary */
	uint8 type;      /* ColumnType */
	uint8 form;      /* ChunkForm */
	uint8 width;     /* bytes stored for each row; 0 with CHUNK_BITS, too */
	bool has_bounds;
	int16 scale;              /* COLUMN_DEC */
	int16 typlen;             /* COLUMN_DATUM by reference; else 0 */
	volatile bool no_numbers; /* hint: its values were found to have no form that a GPU can keep;
								 set by any reader */

	/*
	 * The least and greatest value of the rows that have one: NULLs and exceptions
	 * are not counted, so a chunk with exceptions may hold numerics beyond.  Floats as
	 * PostgreSQL orders them, NaN above all.  Not set (has_bounds is false) if no row
	 * has a value, for COLUMN_DATUM, and for decimals that 64 bits do not hold.
	 */
	ColumnBound least;
	ColumnBound greatest;

	gpuagg_i128 base;
	size_t values;     /* an array by form; codes of a dictionary */
	size_t validity;   /* bitmap, bit set = not NULL; 0: no NULLs */
	size_t exceptions; /* ChunkException[nexceptions], by row */
	size_t entries;    /* if stride is 0: uint32[nentries], offsets in images */
	size_t images;     /* of dictionary entries and exceptions */
	uint32 stride;     /* entry i begins at i * stride; 0: see entries */
} CacheChunk;

typedef struct ChunkException
{
	uint32 row;
	uint32 image; /* offset in images */
} ChunkException;

/* ---- reading ------------------------------------------------------------------- */

/*
 * Rows [from, from + n) as a vector (see Vec in expr/expr.h) of the chunk's own type
 * and scale, or of COLUMN_DATUM.  Values are set for all rows, whatever their state.
 * Returns true if all rows have a value; state[] is undefined then.
 * Numerics that are read as COLUMN_DATUM are made in the current memory context, but
 * for exceptions, which then are values; other by-reference Datums point into the
 * chunk.
 */
extern bool chunk_read(const CacheChunk *chunk, uint32 from, int n, ColumnType type, int16 scale,
					   void *values, uint8 *state);

/* The same for rows from + rows[0 .. n-1], ascending. */
extern bool chunk_gather(const CacheChunk *chunk, const uint16 *rows, uint32 from, int n,
						 ColumnType type, int16 scale, void *values, uint8 *state);

/*
 * The array of all values where the chunk has the layout of this type (then values +
 * from * width may be used in place), else NULL.  NULLs and exceptions have some
 * value.
 */
extern const void *chunk_in_place(const CacheChunk *chunk, ColumnType type, int16 scale);

/*
 * The array of unsigned integers of chunk->width bytes, 1, 2 or 4, to which `base`, of 64 bits, is
 * to be added for values of this type, or NULL where that is not the form.
 */
extern const void *chunk_narrow(const CacheChunk *chunk, ColumnType type, int16 scale);

/* The bitmap of all rows (bit set = not NULL), or NULL: there are no NULLs. */
static inline const uint64 *
chunk_validity(const CacheChunk *chunk)
{
	return chunk->validity ? (const uint64 *) ((const char *) chunk + chunk->validity) : NULL;
}

/* One row as a Datum, as chunk_read gives it. */
extern Datum chunk_datum(const CacheChunk *chunk, uint32 row, bool *isnull);

/*
 * By-reference values have a dictionary, whose entries differ from each other as
 * bytes; equal values may well have several, with different headers, say.  Returns
 * how many entries there are; 0 if that is not so, or all rows are NULL.
 */
static inline uint32
chunk_dictionary_size(const CacheChunk *chunk)
{
	return chunk->nentries;
}

/*
 * Does each value of the dictionary occur often enough, on average, for work that is done once a
 * value to pay?
 */
static inline bool
chunk_repeats(const CacheChunk *chunk)
{
	return chunk->nentries > 0 && chunk->nentries <= chunk->nrows / 2;
}

/* Codes of rows [from, from + n) of a dictionary; those of NULLs are codes of some entry. */
extern void chunk_codes(const CacheChunk *chunk, uint32 from, int n, uint32 *codes);

/* An entry of the dictionary; points into the chunk. */
static inline Datum
chunk_entry(const CacheChunk *chunk, uint32 code)
{
	const char *start = (const char *) chunk;
	size_t at = chunk->stride ? (size_t) code * chunk->stride :
								((const uint32 *) (start + chunk->entries))[code];

	return PointerGetDatum(start + chunk->images + at);
}

/* ---- building ------------------------------------------------------------------ */

/* Collects the rows of one chunk after the other; keeps its memory from one to the next. */
typedef struct ChunkBuilder ChunkBuilder;

/*
 * A builder in the given context, which frees it.  typlen, typbyval and typalign are
 * those of the SQL type and count for COLUMN_DATUM alone.  NULL if chunks cannot hold
 * such values: by-reference ones of typlen -2.
 */
extern ChunkBuilder *chunk_builder_create(ColumnType type, int16 scale, int16 typlen, bool typbyval,
										  char typalign, MemoryContext cxt);

/* Forgets all rows. */
extern void chunk_builder_reset(ChunkBuilder *builder);

/*
 * Appends n rows, with values and states as in a Vec of the builder's type and scale;
 * state NULL: all have a value.  By-reference values are copied at once.  Not after
 * chunk_builder_size.
 */
extern void chunk_builder_add(ChunkBuilder *builder, const void *values, const uint8 *state, int n);

/* The numeric of a row that was added as VEC_FALLBACK; each such row, in ascending order. */
extern void chunk_builder_exception(ChunkBuilder *builder, uint32 row, Datum numeric);

/* Ends the rows: the bytes that the chunk takes. */
extern size_t chunk_builder_size(ChunkBuilder *builder);

/* Writes the chunk, after chunk_builder_size; dst is aligned as palloc aligns. */
extern void chunk_builder_write(ChunkBuilder *builder, CacheChunk *dst);

#endif /* GPUAGG_CHUNK_H */
