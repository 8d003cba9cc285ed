/*
 * proof.h
 *	  When what was read from a heap page once may stand for the page again.
 *
 * The argument is at the head of proof.c.
 */
#ifndef GPUAGG_CACHE_PROOF_H
#define GPUAGG_CACHE_PROOF_H

#include "postgres.h"

#include "access/heapam.h"
#include "storage/buf.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "cache/span.h"
#include "cache/store.h"

/* What a scan of one table proves, for EXPLAIN. */
typedef struct ProofCounts
{
	uint64 by_map;  /* blocks proved by the visibility map */
	uint64 by_lsn;  /* by the page's LSN */
	uint64 changed; /* found changed, now or before */
} ProofCounts;

/* One scan of one table. */
typedef struct Proof
{
	Relation rel;
	Snapshot snapshot;
	FullTransactionId xmin;        /* of the snapshot */
	BufferAccessStrategy strategy; /* the scan's, for pages that are not in memory */
	bool serializable;             /* each page is looked at, under its lock */
	Buffer map;                    /* page of the visibility map, pinned, or InvalidBuffer */
	ProofCounts counts;
} Proof;

/* The parts of a range that lie on different pages of the visibility map: at most two. */
typedef struct MapView
{
	XLogRecPtr lsn[2];   /* of the map's page; InvalidXLogRecPtr: proves nothing */
	int split;           /* first block of the range on the second page */
	CacheBlocks visible; /* blocks whose bit is set */
} MapView;

/* Why the table's pages may not be cached in this transaction; NULL: they may. */
extern const char *proof_unsupported_reason(Relation rel);

extern void proof_begin(Proof *proof, HeapScanDesc scan);
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
 * Which blocks [from, to) of a pinned range are what they were when the
 * range was read, and show the snapshot what they showed then.
 */
extern void proof_range(Proof *proof, CachePin *pin, int from, int to, CacheBlocks *proved);

/*
 * For a summary: notes the LSNs as of which the map proves all blocks of a pinned range; false: it
 * does not, or not as of those that were noted for the span's ranges before it.
 */
extern bool proof_note_span(CacheSpan *span, CacheRange *range);

/*
 * Are all blocks of the span what they were, and show the snapshot what they showed?  By the map
 * alone.
 */
extern bool proof_span(Proof *proof, const CacheSpan *span);

#endif /* GPUAGG_CACHE_PROOF_H */
