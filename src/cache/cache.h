/*
 * cache.h
 *	  What is cached: columns of ranges of heap blocks.
 *
 * A chunk is one column of a range of CACHE_RANGE_BLOCKS blocks, decoded and compressed
 * (chunk.h).  A range's descriptor says which blocks are in it, how many rows each gave, and
 * what proves that each is unchanged.  Both are in shared memory (store.h), and nobody changes
 * them once they are published, but for the atomics.
 */
#ifndef GPUAGG_CACHE_H
#define GPUAGG_CACHE_H

#include "postgres.h"

#include "access/attnum.h"
#include "access/transam.h"
#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "storage/block.h"

/* The range of a block is block / CACHE_RANGE_BLOCKS. */
#define CACHE_RANGE_BLOCKS 256

/* A table's main fork.  The tablespace is the one it lies in: never 0. */
typedef struct CacheTableKey
{
	Oid tablespace;
	Oid database;
	Oid relnumber;
} CacheTableKey;

/*
 * What the chunk of a column holds: its canonical column type.  Chunks of one range with
 * equal keys hold the same.
 */
typedef struct CacheColumnKey
{
	AttrNumber attno;
	Oid typid;
	int32 typmod;
	int16 scale;    /* of a numeric without a declared scale that is kept as decimals; else -1 */
	uint32 missing; /* hash of the value that rows older than the attribute have; 0: NULL */
} CacheColumnKey;

/* Have chunks of the two the same contents? */
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

static inline bool
cache_blocks_has(const CacheBlocks *blocks, int i)
{
	return (blocks->word[i >> 6] >> (i & 63)) & 1;
}

/* The bits of a word below bit n; none if n is not above 0, all from 64 on. */
static inline uint64
cache_blocks_below(int n)
{
	return n <= 0 ? 0 : n >= 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << n) - 1;
}

/* Has the set the first n blocks of a range? */
static inline bool
cache_blocks_all(const CacheBlocks *blocks, int n)
{
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		if (~blocks->word[w] & cache_blocks_below(n - w * 64))
			return false;
	return true;
}

static inline bool
cache_blocks_any(const CacheBlocks *blocks)
{
	return (blocks->word[0] | blocks->word[1] | blocks->word[2] | blocks->word[3]) != 0;
}

static inline void
cache_blocks_add(CacheBlocks *blocks, int i)
{
	blocks->word[i >> 6] |= UINT64CONST(1) << (i & 63);
}

typedef struct CacheRange
{
	uint64 stamp; /* set by publication: no other descriptor has had it, or will */
	BlockNumber first;
	int nblocks; /* blocks first .. first + nblocks - 1 are in it */
	uint32 nrows;

	/*
	 * Every transaction on these pages has ended and is not newer than this; a snapshot may
	 * use the range whose xmin is newer.
	 */
	FullTransactionId newest;
	uint32 rows[CACHE_RANGE_BLOCKS + 1]; /* first row of each block; rows[nblocks] = nrows */
	XLogRecPtr lsn[CACHE_RANGE_BLOCKS];  /* of each page when it was read */

	/* What follows changes. */
	pg_atomic_uint64
		map_lsn[2]; /* of the visibility map's pages over it, when last proved; 0: unknown */
	pg_atomic_uint64 visible[CACHE_BLOCK_WORDS]; /* blocks whose bit was set then */
	pg_atomic_uint32 buffer[CACHE_RANGE_BLOCKS]; /* hints: where a page was last found */

	/*
	 * Blocks that are not to be used: not settled when it was built, or changed since.  Set before
	 * publication, with ndead their number; from then on by cache_mark_dead() alone.
	 */
	pg_atomic_uint64 dead[CACHE_BLOCK_WORDS];
	pg_atomic_uint32 ndead;
} CacheRange;

/* Is block number first + i not to be used? */
static inline bool
cache_block_dead(CacheRange *range, int i)
{
	return (pg_atomic_read_u64(&range->dead[i / 64]) >> (i % 64)) & 1;
}

#endif /* GPUAGG_CACHE_H */
