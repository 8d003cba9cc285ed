/*
 * proof.h
 *	  When what was read from a heap page once may stand for the page again.
 *
 * The argument is at the head of proof.c.
 */
#ifndef GPUAGG_CACHE_PROOF_H
#define GPUAGG_CACHE_PROOF_H

#include "postgres.h"

#include "access/htup_details.h"
#include "storage/buf.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "cache/store.h"

/* A set of a range's blocks. */
#define CACHE_BLOCK_WORDS (CACHE_RANGE_BLOCKS / 64)	/* 4, see cache_blocks_any() */

typedef struct CacheBlocks
{
	uint64		word[CACHE_BLOCK_WORDS];
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

/* What a scan of one table proves, for EXPLAIN. */
typedef struct ProofCounts
{
	uint64		by_map;			/* blocks proved by the visibility map */
	uint64		by_lsn;			/* by the page's LSN */
	uint64		changed;		/* found changed, now or before */
} ProofCounts;

/* One scan of one table with one snapshot. */
typedef struct Proof
{
	Relation	rel;
	Snapshot	snapshot;
	FullTransactionId xmin;		/* of the snapshot */
	bool		serializable;	/* each page is looked at, under its lock */
	Buffer		map;			/* page of the visibility map, pinned, or InvalidBuffer */
	ProofCounts counts;
} Proof;

/* The parts of a range that lie on different pages of the visibility map: at most two. */
typedef struct MapView
{
	XLogRecPtr	lsn[2];			/* of the map's page; InvalidXLogRecPtr: proves nothing */
	int			split;			/* first block of the range on the second page */
	CacheBlocks visible;		/* blocks whose bit is set */
} MapView;

/* Why the table's pages may not be cached in this transaction; NULL: they may. */
extern const char *proof_refusal(Relation rel);

extern void proof_begin(Proof *proof, Relation rel, Snapshot snapshot);
/* Releases what is pinned; errors leave that to the resource owner. */
extern void proof_end(Proof *proof);

/* What the visibility map says of a range now: to be read before the pages themselves. */
extern void proof_read_map(Proof *proof, BlockNumber first, int nblocks, MapView *view);

/*
 * Is every transaction on a page, which is share-locked, settled for all snapshots
 * whose xmin is newer than *newest?  That is raised where need be.
 */
extern bool proof_page_is_settled(const Proof *proof, Page page, FullTransactionId *newest);

/*
 * Which blocks of a pinned range, up to nblocks, are what they were when the
 * range was read, and show the snapshot what they showed then.
 */
extern void proof_range(Proof *proof, CachePin *pin, int nblocks, CacheBlocks *proved);

#endif							/* GPUAGG_CACHE_PROOF_H */
