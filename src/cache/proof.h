/*
 * proof.h
 *
 * Decides when cached rows of a heap page may be used in place of the page.
 *
 * The head of proof.c gives the proof.
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

/* Results of one scan of a table, for EXPLAIN. */
typedef struct ProofCounts
{
	uint64 by_map;  /* blocks proved by the visibility map */
	uint64 by_lsn;  /* blocks proved by the page's LSN */
	uint64 changed; /* blocks found changed, by this scan or an earlier one */
} ProofCounts;

/* State for one scan of one table. */
typedef struct Proof
{
	Relation rel;
	Snapshot snapshot;
	FullTransactionId xmin;        /* the snapshot's xmin */
	BufferAccessStrategy strategy; /* the scan's, for pages that are not in shared buffers */
	bool serializable;             /* SERIALIZABLE: each page is checked under its lock */
	Buffer map;                    /* pinned page of the visibility map, or InvalidBuffer */
	ProofCounts counts;
} Proof;

/*
 * The visibility map's state for a range. The range's bits may be on two pages of the map: blocks
 * before `split` are on page 0, the others on page 1.
 */
typedef struct MapView
{
	XLogRecPtr lsn[2];   /* LSN of the map's page; InvalidXLogRecPtr: proves nothing */
	int split;           /* first block of the range on the second page */
	CacheBlocks visible; /* blocks whose all-visible bit is set */
} MapView;

/* Returns why the table must not be cached in this transaction; NULL if it may be. */
extern const char *proof_unsupported_reason(Relation rel);

/* Prepares to prove blocks for the snapshot of a scan, which has begun. */
extern void proof_begin(Proof *proof, HeapScanDesc scan);
/* Releases the pin of the visibility map. After an error the resource owner releases it. */
extern void proof_end(Proof *proof);

/* Reads the visibility map for a range. Must be called before the pages themselves are read. */
extern void proof_read_map(Proof *proof, BlockNumber first, int nblocks, MapView *view);

/*
 * Returns whether a share-locked page is settled: every transaction on it has ended, for all
 * snapshots with xmin newer than *newest. Raises *newest if need be.
 */
extern bool proof_page_is_settled(const Proof *proof, Page page, FullTransactionId *newest);

/*
 * Sets *proved to the blocks in [from, to) of a pinned range that are unchanged since the range
 * was read, and show the snapshot the same rows.
 */
extern void proof_range(Proof *proof, CachePin *pin, int from, int to, CacheBlocks *proved);

/*
 * Records in a span's summary the LSNs by which the map proves all blocks of a pinned range.
 * Returns false if the map does not prove them, or not by the LSNs recorded for earlier ranges.
 */
extern bool proof_record_span(CacheSpan *span, CacheRange *range);

/*
 * Returns whether all blocks of the span are unchanged and show the snapshot the same rows, by the
 * map alone.
 */
extern bool proof_span(Proof *proof, const CacheSpan *span);

/* Most pages of the visibility map of a table that is proved as a whole. */
#define PROOF_TABLE_PAGES 4

/* A state of a table in which every snapshot sees all rows. */
typedef struct ProofTable
{
	CacheTableKey key;
	Oid relid;
	BlockNumber nblocks;
	XLogRecPtr map_lsn[PROOF_TABLE_PAGES]; /* LSNs of the visibility map's pages */
} ProofTable;

/*
 * Sets *table to the table's state, if the visibility map shows that the snapshot, which has been
 * taken before, sees all rows. If the state is equal later, byte by byte, for another snapshot, the
 * table has the same rows.
 */
extern bool proof_table(Relation rel, Snapshot snapshot, ProofTable *table);

#endif /* GPUAGG_CACHE_PROOF_H */
