/*
 * proof.c
 *	  Decides when cached rows of a heap page may be used in place of the page.
 *
 * The rows that a snapshot sees on a page depend on three things: the page's bytes, the states of
 * the transactions whose ids are on the page, and the snapshot.  A page is taken into a range
 * descriptor only if it is *settled*: every xmin and xmax that decides a row's visibility precedes
 * the builder's snapshot->xmin, so that its transaction had committed or aborted, finally, when
 * that snapshot was taken.  Let `newest` be the newest of these ids.  A snapshot whose xmin is
 * newer than `newest` also treats all of them as finished, and reads their outcomes from the same
 * commit log.  So it sees the same rows as the builder, as long as the page's bytes are the same.
 * Two checks remain when cached rows are used: is the snapshot's xmin newer than `newest` (compared
 * as FullTransactionIds, so wraparound does not matter), and is the page unchanged?
 *
 * The second check compares the state at the moment of the check.  A change that is made later, or
 * is being made at that moment, belongs to a transaction that was running at the check, and so also
 * when the query's snapshot was taken earlier: the snapshot does not see it.  A change by an
 * earlier command of the own transaction is complete.
 *
 * 1. The visibility map.  Claim: if a block's all-visible bit is set, and the LSN of the map's page
 *	  is L, at two times, then between them the block has not changed, except in ways that no
 *	  snapshot can see.  Code that changes an all-visible page clears the bit first, or in the same
 *	  critical section (heap_insert, heap_update, heap_delete, and their redo functions, which clear
 *	  the bit first).  Code that does not clear it leaves visible rows alone: freezing, hint bits,
 *	  line pointers of dead rows, row locks.  If the bit was cleared, it must have been set again to
 *	  be set at the second time.  The code that sets a bit puts a new LSN on the map's page under
 *	  the same exclusive lock, in redo as well.  Up to 18 only vacuum sets bits; from 19 on, a scan
 *	  that prunes a page does, too.
 *	  Clearing a bit changes the LSN in the newest minor releases only (17.11, 18.6), so the bit
 *	  itself is always read too, with the LSN, under the map page's share lock.  (Core reads the map
 *	  without a lock; there the argument above about running transactions is needed.)  Therefore the
 *	  builder reads the map *before* the pages.  The bit must be set at the first time, too: if a
 *	  database is dropped and created again with the same OID, as a copy of its template's files,
 *	  the map goes back in time.  A different LSN of the map's page proves nothing about a block,
 *	  as one page of the map has the bits of 32,672 blocks.  Then the second check is used.
 * 2. The page's LSN.  Every change of a permanent table that a snapshot can see is WAL-logged, and
 *	  puts its record's LSN on the page, which no other record has.  So equal LSNs mean an unchanged
 *	  page, except for hint bits and PD_ALL_VISIBLE.  If all blocks of a range pass this check, the
 *	  map's LSN that was read before them is recorded, so that the next query can use the map.
 * 3. If neither check succeeds, the block is marked as changed, permanently, and the heap is read.
 *
 * For a span of ranges (span.h) the recorded LSNs of all of its ranges are recorded together.  A
 * span is made only of ranges without blocks that are marked as changed, as the recorded LSN does
 * not prove these.  The marks are read after the recorded LSN: if there are none, all blocks had
 * been proved when it was recorded.  Later changes of the descriptors do not make the span's record
 * wrong.  It says that the blocks had the contents of the ranges with these stamps when the map's
 * pages had these LSNs.  By 1., they still have them if the map's pages still have these LSNs and
 * all bits are set.
 *
 * An LSN of zero proves nothing, for a page or the map.  Pages that are written without WAL
 * (wal_level = minimal, in the transaction that creates or rewrites the table) have it, and it is
 * not unique to one state.  Other cases that could break the proof, and why they do not:
 *
 * - Tables without WAL: unlogged and temporary tables, and others for which RelationNeedsWAL is
 *	 false, are not cached.  Neither are tables created, truncated or rewritten in the current
 *	 transaction, whose relfilenumber would be reused after an abort; catalogs, which have in-place
 *	 updates; and sequences, which are changed in place and mostly without WAL.
 * - COPY FREEZE writes frozen rows only into a table that was created or truncated in the same
 *	 transaction.  Others cannot read it before the commit, and the same transaction does not cache
 *	 it.  Older snapshots see such rows; that is core's own behaviour.
 * - A block that is truncated away and added again is initialized by a WAL record, with another
 *	 LSN.  Its bit was cleared, and is set again with another LSN of the map's page (or on a new map
 *	 page, if the map was truncated as well).
 * - Relfilenumbers can be reused after a drop, in theory: pages and map of the new table have LSNs
 *	 of later records, or zero.
 * - Pruning and freezing between build and use remove or freeze what is the same for all live
 *	 snapshots; a standby cancels older ones first.  Both change the page's LSN, and keep the bit of
 *	 an all-visible page.
 * - old_snapshot_threshold (up to 16) prunes rows that snapshots still need, and makes reading such
 *	 a page an error, which a cached page would miss.  Nothing is cached where it is on.
 * - Recovery: the proof holds during redo, where changes are made under the same locks in the order
 *	 of the primary.  Core does not trust PD_ALL_VISIBLE there, as the primary may have set it by a
 *	 horizon that the standby's snapshots have not reached; nor does proof_page_is_settled().  The
 *	 map is used only to detect changes, not for visibility.  LSNs continue after a promotion.  A
 *	 crash or restart ends the cache.
 * - SERIALIZABLE: the scan has taken the relation's predicate lock before the first block, as
 *	 core's sequential scan does.  Settled rows cause no conflicts out, as their transactions had
 *	 ended before the snapshot.  A writer checks predicate locks after it has locked the page, and
 *	 changes the page without unlocking it in between.  A reader that does not wait for that lock
 *	 may take its predicate lock too late for the writer, and still miss the writer's change.
 *	 Therefore each page's LSN is compared under the page's lock, and the map proves nothing.
 * - Pages with a multixact as xmax that is more than row locks, or with rows moved by releases
 *	 before 9.0, are not settled: they are read from the heap until vacuum has cleaned them.
 * - Attributes added after a row was written: their value is in the catalog, not on the page.  The
 *	 column's key has a hash of it (CacheColumnKey.missing).
 * - pg_surgery changes pages arbitrarily, but logs the changes and clears the bits.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/proof.h"
#include "common/compat.h"

/* Blocks that one page of the visibility map covers, as in visibilitymap.c. */
#define MAP_BYTES (BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define MAP_BLOCKS_PER_BYTE (BITS_PER_BYTE / BITS_PER_HEAPBLOCK)
#define MAP_BLOCKS (MAP_BYTES * MAP_BLOCKS_PER_BYTE)

const char *
proof_unsupported_reason(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_MATVIEW)
		return "it is neither a table nor a materialized view";
	if (!RelationNeedsWAL(rel) || RelationUsesLocalBuffers(rel))
		return "the table is not WAL-logged";
	if (rel->rd_createSubid != InvalidSubTransactionId || compat_is_new_storage(rel))
		return "the table was created or rewritten in this transaction";
	if (IsCatalogRelation(rel) || RelationIsMapped(rel))
		return "the table is a system catalog";
	if (compat_old_snapshots_expire())
		return "old_snapshot_threshold is set";
	return NULL;
}

/* Returns the 64-bit id of a transaction that is not in the future and at most 2^31 ids old. */
static FullTransactionId
full_xid(FullTransactionId next, TransactionId xid)
{
	uint32 epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return FullTransactionIdFromEpochAndXid(epoch, xid);
}

void
proof_begin(Proof *proof, HeapScanDesc scan)
{
	Relation rel = scan->rs_base.rs_rd;
	Snapshot snapshot = scan->rs_base.rs_snapshot;

	memset(proof, 0, sizeof(*proof));
	proof->rel = rel;
	proof->snapshot = snapshot;
	proof->strategy = scan->rs_strategy;
	proof->xmin = full_xid(ReadNextFullTransactionId(), snapshot->xmin);
	proof->serializable = CheckForSerializableConflictOutNeeded(rel, snapshot);
	proof->map = InvalidBuffer;
}

void
proof_end(Proof *proof)
{
	if (BufferIsValid(proof->map))
		ReleaseBuffer(proof->map);
	proof->map = InvalidBuffer;
}

/* ---- the visibility map --------------------------------------------------- */

/* Returns the lower bits of 32 pairs of bits, which are 8 bytes of the map. */
static inline uint64
visible_bits(const uint8 *bytes)
{
	uint64 b;

	memcpy(&b, bytes, sizeof(b));
#ifdef WORDS_BIGENDIAN
	b = pg_bswap64(b);
#endif
	b &= UINT64CONST(0x5555555555555555);
	b = (b | b >> 1) & UINT64CONST(0x3333333333333333);
	b = (b | b >> 2) & UINT64CONST(0x0f0f0f0f0f0f0f0f);
	b = (b | b >> 4) & UINT64CONST(0x00ff00ff00ff00ff);
	b = (b | b >> 8) & UINT64CONST(0x0000ffff0000ffff);
	return (b | b >> 16) & UINT64CONST(0xffffffff);
}

/*
 * Copies the all-visible bits of blocks [from, to) of a range from one page of the map; returns
 * that page's LSN.
 */
static XLogRecPtr
read_map_page(Proof *proof, BlockNumber first, int from, int to, CacheBlocks *visible)
{
	const uint8 *bits;
	XLogRecPtr lsn;
	uint32 at = (first + from) % MAP_BLOCKS;

	/* pins the map's page, if it exists */
	visibilitymap_get_status(proof->rel, first + from, &proof->map);
	if (!BufferIsValid(proof->map))
		return InvalidXLogRecPtr;
	LockBuffer(proof->map, BUFFER_LOCK_SHARE);
	lsn = PageGetLSN(BufferGetPage(proof->map));
	bits = (const uint8 *) PageGetContents(BufferGetPage(proof->map));
	/* 32 blocks at a time: ranges and pages of the map begin at such boundaries. */
	StaticAssertStmt(MAP_BLOCKS_PER_BYTE == 4 && MAP_BLOCKS % 32 == 0 &&
						 VISIBILITYMAP_ALL_VISIBLE == 1,
					 "two bits a block, the lower one counts");
	for (; from + 32 <= to; from += 32, at += 32)
		visible->word[from / 64] |= visible_bits(bits + at / MAP_BLOCKS_PER_BYTE) << (from % 64);
	for (int i = from; i < to; i++, at++)
		if (bits[at / MAP_BLOCKS_PER_BYTE] >> (at % MAP_BLOCKS_PER_BYTE * BITS_PER_HEAPBLOCK) &
			VISIBILITYMAP_ALL_VISIBLE)
			cache_blocks_add(visible, i);
	LockBuffer(proof->map, BUFFER_LOCK_UNLOCK);
	return lsn;
}

void
proof_read_map(Proof *proof, BlockNumber first, int nblocks, MapView *view)
{
	memset(view, 0, sizeof(*view));
	view->split = Min(nblocks, (int) (MAP_BLOCKS - first % MAP_BLOCKS));
	view->lsn[0] = read_map_page(proof, first, 0, view->split, &view->visible);
	if (view->split < nblocks)
		view->lsn[1] = read_map_page(proof, first, view->split, nblocks, &view->visible);
}

/* ---- settled pages ---------------------------------------------------------- */

/*
 * Returns whether the transaction had ended when the snapshot was taken. Raises *newest to its id
 * if need be.
 */
static inline bool
xid_is_settled(const Proof *proof, TransactionId xid, TransactionId *newest)
{
	if (!TransactionIdIsNormal(xid))
		return true;
	if (!TransactionIdPrecedes(xid, proof->snapshot->xmin))
		return false;
	if (!TransactionIdIsValid(*newest) || TransactionIdPrecedes(*newest, xid))
		*newest = xid;
	return true;
}

/*
 * Returns whether the transactions that decide the tuple's visibility had all ended when the
 * snapshot was taken. Raises *newest to their ids if need be.
 */
static bool
tuple_is_settled(const Proof *proof, HeapTupleHeader tuple, TransactionId *newest)
{
	uint16 mask = tuple->t_infomask;

	if (mask & HEAP_MOVED)
		return false;
	if (!HeapTupleHeaderXminFrozen(tuple) &&
		!xid_is_settled(proof, HeapTupleHeaderGetRawXmin(tuple), newest))
		return false;
	if ((mask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(mask))
		return true;
	return !(mask & HEAP_XMAX_IS_MULTI) &&
		xid_is_settled(proof, HeapTupleHeaderGetRawXmax(tuple), newest);
}

bool
proof_page_is_settled(const Proof *proof, Page page, FullTransactionId *newest)
{
	TransactionId xid = InvalidTransactionId;
	int lines = PageGetMaxOffsetNumber(page);

	if (XLogRecPtrIsInvalid(PageGetLSN(page)))
		return false;
	if (PageIsAllVisible(page) && !proof->snapshot->takenDuringRecovery)
		return true;
	for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
	{
		ItemId item = PageGetItemId(page, line);

		if (ItemIdIsNormal(item) &&
			!tuple_is_settled(proof, (HeapTupleHeader) PageGetItem(page, item), &xid))
			return false;
	}
	if (TransactionIdIsValid(xid))
	{
		/* It precedes the snapshot's xmin, by less than 2^31. */
		FullTransactionId full = full_xid(proof->xmin, xid);

		if (FullTransactionIdPrecedes(*newest, full))
			*newest = full;
	}
	return true;
}

/* ---- proofs ------------------------------------------------------------------ */

/*
 * Returns whether the page of block range->first + i still has the LSN that it had when the range
 * was read.
 */
static bool
page_is_unchanged(Proof *proof, CacheRange *range, int i)
{
	Buffer buffer = (Buffer) pg_atomic_read_u32(&range->buffer[i]);
	BlockNumber block = range->first + i;
	XLogRecPtr lsn;

	if (!proof->serializable && buffer > 0 && buffer <= NBuffers &&
		compat_buffer_lsn(proof->rel, block, buffer, &lsn))
		return lsn == range->lsn[i];
	CHECK_FOR_INTERRUPTS();
	buffer = ReadBufferExtended(proof->rel, MAIN_FORKNUM, block, RBM_NORMAL, proof->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	lsn = PageGetLSN(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	pg_atomic_write_u32(&range->buffer[i], (uint32) buffer);
	return lsn == range->lsn[i];
}

/*
 * Sets *by_map to the blocks on map page `part` (0 or 1) that the map proves: their bit is set in
 * `view`, and was set when the LSN was recorded that the map's page still has.
 */
static void
read_recorded_map(const Proof *proof, CacheRange *range, const MapView *view, int part,
				  CacheBlocks *by_map)
{
	XLogRecPtr lsn = view->lsn[part];

	memset(by_map, 0, sizeof(*by_map));
	if (proof->serializable || XLogRecPtrIsInvalid(lsn) ||
		pg_atomic_read_u64(&range->map_lsn[part]) != lsn)
		return;
	pg_read_barrier();
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		by_map->word[w] = view->visible.word[w] & pg_atomic_read_u64(&range->visible[w]);
	/* Another process may be recording another LSN. */
	pg_read_barrier();
	if (pg_atomic_read_u64(&range->map_lsn[part]) != lsn)
		memset(by_map, 0, sizeof(*by_map));
}

/*
 * Records the state of the map in the descriptor. It was read before all blocks of the range were
 * proved.
 */
static void
record_map(CacheRange *range, const MapView *view)
{
	if (pg_atomic_read_u64(&range->map_lsn[0]) == view->lsn[0] &&
		pg_atomic_read_u64(&range->map_lsn[1]) == view->lsn[1])
		return;
	for (int i = 0; i < 2; i++)
		pg_atomic_write_u64(&range->map_lsn[i], InvalidXLogRecPtr);
	pg_write_barrier();
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		pg_atomic_write_u64(&range->visible[w], view->visible.word[w]);
	pg_write_barrier();
	for (int i = 0; i < 2; i++)
		pg_atomic_write_u64(&range->map_lsn[i], view->lsn[i]);
}

/*
 * Buffer descriptors and pages that are checked one after the other are rarely in the CPU cache,
 * and hardware does not prefetch them.
 */
#define PREFETCH_BLOCKS 16

/* Prefetches the page of block range->first + i, if it is in the buffer where it was found last. */
static inline void
prefetch_page(CacheRange *range, int i)
{
	Buffer buffer = (Buffer) pg_atomic_read_u32(&range->buffer[i]);

	if (buffer <= 0 || buffer > NBuffers)
		return;
	__builtin_prefetch(GetBufferDescriptor(buffer - 1), 1);
	__builtin_prefetch(BufferGetPage(buffer));
}

/*
 * Proves blocks [from, to), whose bits are on page `part` of the map, as read into `view`. Adds
 * the proved blocks to *proved, and the changed ones to *changed.
 */
static void
prove_blocks(Proof *proof, CacheRange *range, int from, int to, const MapView *view, int part,
			 CacheBlocks *proved, CacheBlocks *changed)
{
	CacheBlocks by_map;
	int unproved[CACHE_RANGE_BLOCKS]; /* blocks whose pages are checked */
	int n = 0;

	read_recorded_map(proof, range, view, part, &by_map);
	for (int w = from / 64; w * 64 < to; w++)
	{
		uint64 selected = cache_blocks_below(to - w * 64) & ~cache_blocks_below(from - w * 64);
		uint64 dead = pg_atomic_read_u64(&range->dead[w]) & selected;
		uint64 mapped = by_map.word[w] & selected & ~dead;

		proof->counts.changed += pg_popcount64(dead);
		proof->counts.by_map += pg_popcount64(mapped);
		proved->word[w] |= mapped;
		for (uint64 rest = selected & ~dead & ~mapped; rest != 0; rest &= rest - 1)
			unproved[n++] = w * 64 + pg_rightmost_one_pos64(rest);
	}
	for (int k = 0; k < Min(n, PREFETCH_BLOCKS); k++)
		prefetch_page(range, unproved[k]);
	for (int k = 0; k < n; k++)
	{
		int i = unproved[k];

		if (k + PREFETCH_BLOCKS < n)
			prefetch_page(range, unproved[k + PREFETCH_BLOCKS]);
		if (page_is_unchanged(proof, range, i))
		{
			cache_blocks_add(proved, i);
			proof->counts.by_lsn++;
		}
		else
		{
			cache_blocks_add(changed, i);
			proof->counts.changed++;
		}
	}
}

void
proof_range(Proof *proof, CachePin *pin, int from, int to, CacheBlocks *proved)
{
	CacheRange *range = pin->range;
	MapView view;
	CacheBlocks changed = {0};
	int n = Min(to, range->nblocks);

	memset(proved, 0, sizeof(*proved));
	if (!FullTransactionIdPrecedes(range->newest, proof->xmin))
		return;
	proof_read_map(proof, range->first, n, &view);
	prove_blocks(proof, range, from, view.split, &view, 0, proved, &changed);
	if (view.split < n)
		prove_blocks(proof, range, Max(from, view.split), n, &view, 1, proved, &changed);
	cache_mark_dead(pin, &changed);
	/*
	 * Every block of the range that is not marked as changed has been proved after the map was
	 * read. So from now on the map proves it by this LSN. This does not hold if only a part of the
	 * range was checked.
	 */
	if (from == 0 && n == range->nblocks)
		record_map(range, &view);
}

/* ---- spans of ranges ----------------------------------------------------------- */

bool
proof_record_span(CacheSpan *span, CacheRange *range)
{
	int split = Min(range->nblocks, (int) (MAP_BLOCKS - range->first % MAP_BLOCKS));
	int page = range->first / MAP_BLOCKS - span->first / MAP_BLOCKS;
	XLogRecPtr lsn[2];

	for (int i = 0; i < 2; i++)
		lsn[i] = pg_atomic_read_u64(&range->map_lsn[i]);
	pg_read_barrier();
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		if (~pg_atomic_read_u64(&range->visible[w]) & cache_blocks_below(range->nblocks - w * 64))
			return false;
	pg_read_barrier();
	for (int i = 0; i < 2; i++)
		if (pg_atomic_read_u64(&range->map_lsn[i]) != lsn[i])
			return false;
	pg_read_barrier();
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		if (pg_atomic_read_u64(&range->dead[w]) != 0)
			return false;
	for (int i = 0; i < (split < range->nblocks ? 2 : 1); i++)
	{
		XLogRecPtr *recorded = &span->map_lsn[page + i];

		if (XLogRecPtrIsInvalid(lsn[i]) || (!XLogRecPtrIsInvalid(*recorded) && *recorded != lsn[i]))
			return false;
		*recorded = lsn[i];
	}
	return true;
}

/*
 * Returns whether the all-visible bits of n blocks are set. bits: contents of the map's page; at:
 * the first block's number on that page, at a byte boundary.
 */
static bool
all_visible(const uint8 *bits, uint32 at, uint32 n)
{
	const uint8 *b = bits + at / MAP_BLOCKS_PER_BYTE;
	uint32 whole = n / MAP_BLOCKS_PER_BYTE;
	uint8 all = 0x55;

	for (uint32 i = 0; i < whole; i++)
		all &= b[i];
	for (uint32 i = 0; i < n % MAP_BLOCKS_PER_BYTE; i++)
		if (!(b[whole] >> (i * BITS_PER_HEAPBLOCK) & VISIBILITYMAP_ALL_VISIBLE))
			return false;
	return all == 0x55;
}

/*
 * Returns the LSN of the map's page for `block` if the all-visible bits of n blocks from `block` on
 * are set; else InvalidXLogRecPtr.  *map: the page that is pinned, or InvalidBuffer
 */
static XLogRecPtr
read_all_visible(Relation rel, Buffer *map, BlockNumber block, uint32 n)
{
	XLogRecPtr lsn = InvalidXLogRecPtr;

	/* pins the map's page, if it exists */
	visibilitymap_get_status(rel, block, map);
	if (!BufferIsValid(*map))
		return InvalidXLogRecPtr;
	LockBuffer(*map, BUFFER_LOCK_SHARE);
	if (all_visible((const uint8 *) PageGetContents(BufferGetPage(*map)), block % MAP_BLOCKS, n))
		lsn = PageGetLSN(BufferGetPage(*map));
	LockBuffer(*map, BUFFER_LOCK_UNLOCK);
	return lsn;
}

bool
proof_span(Proof *proof, const CacheSpan *span)
{
	BlockNumber end = span->first + span->nblocks;
	int page = 0;

	if (proof->serializable || !FullTransactionIdPrecedes(span->newest, proof->xmin))
		return false;
	for (BlockNumber block = span->first; block < end; page++)
	{
		uint32 n = Min(end - block, MAP_BLOCKS - block % MAP_BLOCKS);

		if (XLogRecPtrIsInvalid(span->map_lsn[page]) ||
			read_all_visible(proof->rel, &proof->map, block, n) != span->map_lsn[page])
			return false;
		block += n;
	}
	proof->counts.by_map += span->nblocks;
	return true;
}

/* ---- whole tables ---------------------------------------------------------------- */

/*
 * By claim 1 at the head of this file, a block whose bit is set at two times, with the same LSN of
 * the map's page, has the same rows.  As all bits are set, every snapshot sees these rows, as in
 * core's index-only scans.  A later row is in a block whose bit is not set, or beyond nblocks; if
 * that happens after this function has read the map, the snapshot does not see the row.
 */
bool
proof_table(Relation rel, Snapshot snapshot, ProofTable *table)
{
	Buffer map = InvalidBuffer;
	BlockNumber n;
	bool proved = true;

	memset(table, 0, sizeof(*table));
	if (snapshot->snapshot_type != SNAPSHOT_MVCC || snapshot->takenDuringRecovery ||
		CheckForSerializableConflictOutNeeded(rel, snapshot) || proof_unsupported_reason(rel))
		return false;
	table->key = cache_table_key(rel);
	table->relid = RelationGetRelid(rel);
	table->nblocks = RelationGetNumberOfBlocks(rel);
	if (table->nblocks > PROOF_TABLE_PAGES * MAP_BLOCKS)
		return false;
	for (BlockNumber block = 0; proved && block < table->nblocks; block += n)
	{
		XLogRecPtr lsn;

		n = Min(table->nblocks - block, MAP_BLOCKS);
		lsn = read_all_visible(rel, &map, block, n);
		table->map_lsn[block / MAP_BLOCKS] = lsn;
		proved = !XLogRecPtrIsInvalid(lsn);
	}
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	return proved;
}
