/*
 * cache.h
 *
 * What the column cache holds: columns of ranges of heap blocks.
 *
 * A range is CACHE_RANGE_BLOCKS consecutive blocks of a table. A chunk is one column of a range,
 * decoded and compressed (chunk.h). The range's descriptor (CacheRange) says which blocks it has,
 * how many rows each block has, and what proves that a block is unchanged. Both are in shared
 * memory (store.h). Once they are published they do not change, except for the atomics.
 */
#ifndef GPUAGG_CACHE_H
#define GPUAGG_CACHE_H

#include "postgres.h"

#include "access/attnum.h"
#include "access/transam.h"
#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/block.h"

/* The range of a block is block / CACHE_RANGE_BLOCKS. */
#define CACHE_RANGE_BLOCKS 256

/* Identifies a table's main fork. The tablespace is the actual one, never 0. */
typedef struct CacheTableKey
{
	Oid tablespace;
	Oid database;
	Oid relnumber;
} CacheTableKey;

/*
 * Identifies the contents of a chunk: the column, and how its values are stored. Chunks of one
 * range with equal keys have the same contents.
 */
typedef struct CacheColumnKey
{
	AttrNumber attno;
	Oid typid;
	int32 typmod;
	int16
		scale; /* numeric without a declared scale that is kept as decimals: their scale; else -1 */
	uint32 missing; /* hash of the attribute's missing value; 0: older rows have NULL */
} CacheColumnKey;

/* Returns whether chunks with the two keys have the same contents. */
static inline bool
cache_column_equal(const CacheColumnKey *a, const CacheColumnKey *b)
{
	return a->attno == b->attno && a->typid == b->typid && a->typmod == b->typmod &&
		a->missing == b->missing && a->scale == b->scale;
}

/* A set of a range's blocks. */
#define CACHE_BLOCK_WORDS (CACHE_RANGE_BLOCKS / 64) /* 4, see cache_blocks_any() */

typedef struct CacheBlocks
{
	uint64 word[CACHE_BLOCK_WORDS];
} CacheBlocks;

/* Returns whether the set has block i of the range. */
static inline bool
cache_blocks_has(const CacheBlocks *blocks, int i)
{
	return (blocks->word[i >> 6] >> (i & 63)) & 1;
}

/* Returns a word whose bits below bit n are set: no bits if n <= 0, all bits if n >= 64. */
static inline uint64
cache_blocks_below(int n)
{
	return n <= 0 ? 0 : n >= 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << n) - 1;
}

/* Returns whether the set contains the first n blocks of a range. */
static inline bool
cache_blocks_all(const CacheBlocks *blocks, int n)
{
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		if (~blocks->word[w] & cache_blocks_below(n - w * 64))
			return false;
	return true;
}

/* Returns whether the set has any block. */
static inline bool
cache_blocks_any(const CacheBlocks *blocks)
{
	return (blocks->word[0] | blocks->word[1] | blocks->word[2] | blocks->word[3]) != 0;
}

/* Returns the first block from block `from` on that is not in the set; CACHE_RANGE_BLOCKS: none. */
static inline int
cache_blocks_first_missing(const CacheBlocks *blocks, int from)
{
	for (int w = from / 64; w < CACHE_BLOCK_WORDS; w++)
	{
		uint64 missing = ~blocks->word[w] & ~cache_blocks_below(from - w * 64);

		if (missing != 0)
			return w * 64 + pg_rightmost_one_pos64(missing);
	}
	return CACHE_RANGE_BLOCKS;
}

/* Adds block i of the range to the set. */
static inline void
cache_blocks_add(CacheBlocks *blocks, int i)
{
	blocks->word[i >> 6] |= UINT64CONST(1) << (i & 63);
}

typedef struct CacheRange
{
	uint64 stamp; /* set by publication; never used for another descriptor */
	BlockNumber first;
	int nblocks; /* the range has blocks first .. first + nblocks - 1 */
	uint32 nrows;

	/*
	 * All transactions that wrote these pages have ended, and none is newer than this. Only
	 * snapshots with a newer xmin may use the range.
	 */
	FullTransactionId newest;
	uint32 rows[CACHE_RANGE_BLOCKS + 1]; /* first row of each block; rows[nblocks] = nrows */
	XLogRecPtr lsn[CACHE_RANGE_BLOCKS];  /* LSN of each page when it was read */

	/* The fields below change after publication. */
	pg_atomic_uint64 map_lsn[2]; /* LSNs of the visibility map's pages for these blocks, when proved
									last; 0: unknown */
	pg_atomic_uint64 visible[CACHE_BLOCK_WORDS]; /* blocks that were all-visible then */
	pg_atomic_uint32 buffer[CACHE_RANGE_BLOCKS]; /* hints: the buffer where a page was found last */

	/*
	 * Blocks that must not be used: not settled when the range was built, or changed since. Set
	 * before publication, with their number in ndead; later only by cache_mark_dead().
	 */
	pg_atomic_uint64 dead[CACHE_BLOCK_WORDS];
	pg_atomic_uint32 ndead;
} CacheRange;

/* Returns whether block first + i must not be used. */
static inline bool
cache_block_dead(CacheRange *range, int i)
{
	return (pg_atomic_read_u64(&range->dead[i / 64]) >> (i % 64)) & 1;
}

#endif /* GPUAGG_CACHE_H */
