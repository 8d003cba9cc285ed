/*
 * heap_index.c
 *
 * Tuples that an index scan selects.
 *
 * The index's access method returns TIDs in its order, for the scan that core's node would begin;
 * participants of a parallel scan share it. Consecutive TIDs on the same page are read together.
 * That is many where the table lies nearly in the order of the index. Where a page has one or few
 * of them, the executor is faster: the scan ends, and the node goes on from its scan descriptor,
 * after the last tuple that was read here.
 *
 * Tuples are read after the index page has been unlocked, as in a bitmap scan. An MVCC snapshot
 * does not see a tuple that has taken the place of another one meanwhile. A tuple that looks dead
 * is checked before the index returns the next TID. If it is dead to all, the index marks its
 * entry so that later scans skip it, as core does. On a page without known deleted tuples only the
 * line pointers are checked, so entries of aborted insertions wait for VACUUM.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "executor/nodeIndexscan.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "common/compat.h"
#include "feed/heap_index.h"

/*
 * The scan ends early if WINDOW_PAGES consecutive pages have fewer than FEW_TUPLES of its tuples
 * on average.
 */
#define WINDOW_PAGES 64
#define FEW_TUPLES 8

struct HeapIndex
{
	IndexScanState *node;
	bool may_end_early;
	bool ended_early;
	bool scattered; /* this scan or an earlier one had few tuples per page */
	int npages;     /* pages of the current window; short scans share a window */
	int ntuples;    /* tuples on these pages */
	bool begun;
	bool ended;
	bool held; /* tid is a tuple of the next page */
	ItemPointerData tid;
	bool recheck;
};

HeapIndex *
heap_index_create(IndexScanState *node, bool may_end_early)
{
	HeapIndex *index = palloc0(sizeof(HeapIndex));

	index->node = node;
	index->may_end_early = may_end_early;
	return index;
}

/*
 * Evaluates scan keys that are not constants, and begins the scan unless it has a descriptor; as
 * nodeIndexscan.c does.
 */
static void
begin_index_scan(HeapIndex *index)
{
	IndexScanState *node = index->node;
	bool evaluate = node->iss_NumRuntimeKeys != 0 && !node->iss_RuntimeKeysReady;
	bool fresh = node->iss_ScanDesc == NULL;

	if (evaluate)
	{
		ResetExprContext(node->iss_RuntimeContext);
		ExecIndexEvalRuntimeKeys(node->iss_RuntimeContext, node->iss_RuntimeKeys,
								 node->iss_NumRuntimeKeys);
		node->iss_RuntimeKeysReady = true;
	}
	if (fresh)
	{
		MemoryContext old = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);

		node->iss_ScanDesc = compat_begin_index_scan(node);
		MemoryContextSwitchTo(old);
	}
	if (fresh || evaluate)
		index_rescan(node->iss_ScanDesc, node->iss_ScanKeys, node->iss_NumScanKeys, NULL, 0);
	index->begun = true;
}

/* Fetches the next TID of the index into index->tid; returns false if there is none. */
static bool
hold_next(HeapIndex *index)
{
	IndexScanDesc scan = index->node->iss_ScanDesc;
	/* an index without an order has no direction */
	bool backward = ScanDirectionIsBackward(((IndexScan *) index->node->ss.ps.plan)->indexorderdir);
	ItemPointer tid = index->ended || index->ended_early ?
		NULL :
		index_getnext_tid(scan, backward ? BackwardScanDirection : ForwardScanDirection);

	index->held = tid != NULL;
	index->ended |= tid == NULL;
	if (tid)
	{
		index->tid = *tid;
		index->recheck = scan->xs_recheck;
	}
	return index->held;
}

/* Counts the page that was read last; ends the scan early if its tuples are too scattered. */
static void
watch_density(HeapIndex *index, int ntuples)
{
	index->ntuples += ntuples;
	if (++index->npages < WINDOW_PAGES)
		return;
	index->scattered = index->may_end_early && index->ntuples < WINDOW_PAGES * FEW_TUPLES;
	index->ended_early = index->scattered && !index->ended;
	index->npages = index->ntuples = 0;
}

BlockNumber
heap_index_next(HeapIndex *index)
{
	if (!index->begun)
	{
		index->ended_early = index->scattered;
		if (index->ended_early)
			return InvalidBlockNumber;
		begin_index_scan(index);
	}
	if (!index->held && !hold_next(index))
		return InvalidBlockNumber;
	return ItemPointerGetBlockNumber(&index->tid);
}

/*
 * Returns whether the tuple of a line pointer may be dead, with its whole HOT chain. This only
 * decides whether to check properly. deleted: the page has deleted tuples. The page is pinned, but
 * not locked. Until it is unpinned no line pointer of a tuple changes, and the others have an
 * offset within the page or none. A chain that is being updated may have any next member.
 */
static bool
may_be_dead(Page page, OffsetNumber line, bool deleted)
{
	for (int i = 0; i < MaxHeapTuplesPerPage && line >= FirstOffsetNumber &&
		 line <= PageGetMaxOffsetNumber(page);
		 i++)
	{
		ItemIdData item = *PageGetItemId(page, line);
		HeapTupleHeader tuple = (HeapTupleHeader) (page + ItemIdGetOffset(&item));

		if (ItemIdIsRedirected(&item))
		{
			line = ItemIdGetRedirect(&item);
			continue;
		}
		if (!ItemIdIsNormal(&item))
			return true;
		if (!deleted || (tuple->t_infomask & HEAP_XMAX_INVALID) ||
			HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask))
			return false;
		if (!HeapTupleHeaderIsHotUpdated(tuple))
			return true;
		line = ItemPointerGetOffsetNumberNoCheck(&tuple->t_ctid);
	}
	return true;
}

/*
 * Returns whether index->tid is dead to all transactions, with its whole HOT chain. The page is
 * unlocked before the index goes on: a unique index locks heap pages while it holds a lock on one
 * of its own pages.
 */
static bool
is_dead_to_all(HeapIndex *index, Buffer buffer)
{
	IndexScanDesc scan = index->node->iss_ScanDesc;
	ItemPointerData tid = index->tid;
	HeapTupleData tuple;
	bool all_dead;
	bool found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = heap_hot_search_buffer(&tid, scan->heapRelation, buffer, scan->xs_snapshot, &tuple,
								   &all_dead, true);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return !found && all_dead;
}

void
heap_index_take(HeapIndex *index, Buffer buffer, OffsetNumber *wanted, int *n, bool *recheck)
{
	IndexScanDesc scan = index->node->iss_ScanDesc;
	Page page = BufferGetPage(buffer);
	BlockNumber block = ItemPointerGetBlockNumber(&index->tid);
	bool marks;
	bool deleted;
	int nnamed = 0;

	Assert(index->held);
	compat_prune_index_page(scan, buffer);
	/*
	 * As in index_fetch_heap(): what is dead on a standby may be visible to snapshots of the
	 * primary.
	 */
	marks = !scan->xactStartedInRecovery && !PageIsAllVisible(page);
	deleted = TransactionIdIsValid(((PageHeader) page)->pd_prune_xid);
	*n = 0;
	*recheck = false;
	do
	{
		OffsetNumber line = ItemPointerGetOffsetNumber(&index->tid);

		/* the access method reads this flag at the next call */
		scan->kill_prior_tuple =
			marks && may_be_dead(page, line, deleted) && is_dead_to_all(index, buffer);
		if (!scan->kill_prior_tuple)
			wanted[(*n)++] = line;
		*recheck |= index->recheck;
		nnamed++;
	} while (hold_next(index) && ItemPointerGetBlockNumber(&index->tid) == block &&
			 nnamed < MaxHeapTuplesPerPage);
	watch_density(index, nnamed);
}

bool
heap_index_ended_early(const HeapIndex *index)
{
	return index->ended_early;
}

void
heap_index_reset(HeapIndex *index)
{
	index->begun = index->ended = index->held = index->ended_early = false;
}
