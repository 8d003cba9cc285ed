/*
 * heap_index.c
 *	  Which tuples an index scan wants.
 *
 * The index's access method names them, in its order, to the scan that core's node would have
 * begun, which participants of a parallel scan share.  Those that it names one after another on one
 * page are read together: many where the table lies nearly in the order of the index.  Where there
 * are one or a few on a page, the executor is faster: the scan ends, and the node goes on from its
 * descriptor, after the last tuple that was read here.
 *
 * Tuples are read after the index has been left, as a bitmap scan's are: an MVCC snapshot sees
 * nothing of what has taken the place of a tuple meanwhile.  But of a tuple that looks dead it is
 * found out before the index goes on whether it is so to all, and then the index marks its entry,
 * for later scans to skip, as in core.  Where a page is not known to have deleted tuples only its
 * line pointers are looked at, so that entries of aborted insertions wait for VACUUM.
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
 * Of so many pages one after another, those that have fewer tuples on average are left to the
 * executor.
 */
#define WINDOW_PAGES 64
#define FEW_TUPLES 8

struct HeapIndex
{
	IndexScanState *node;
	bool may_end_early;
	bool ended_early;
	bool scattered; /* the scan, or those before it, had few tuples on a page */
	int npages;     /* of the window, which short scans share */
	int ntuples;    /* on these */
	bool begun;
	bool ended;
	bool held; /* there is a tuple of the next page: */
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
 * As nodeIndexscan.c does: evaluates the keys that are no constants, and begins the scan unless it
 * has a descriptor.
 */
static void
begin(HeapIndex *index)
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

/* Holds the next tuple that the index names; false if there is none. */
static bool
hold_next(HeapIndex *index)
{
	IndexScanDesc scan = index->node->iss_ScanDesc;
	/* that of an index without an order is none */
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

/* Counts the page that was read last; decides whether the scan goes on. */
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
		begin(index);
	}
	if (!index->held && !hold_next(index))
		return InvalidBlockNumber;
	return ItemPointerGetBlockNumber(&index->tid);
}

/*
 * May the tuple of a line pointer be dead, with all of the chain of updated ones that begins there?
 * It only says where to look properly; deleted: the page has some that are.  The page is pinned,
 * but not locked: until the pin goes no line pointer of a tuple changes, and others have an offset
 * within the page or none.  A chain that is being updated may have any next member.
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
 * Is the tuple held dead to all, with all of the chain?  The page is not locked when the index goes
 * on: for a unique index pages are locked while one of its own is.
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
	heap_page_prune_opt(scan->heapRelation, buffer);
	/*
	 * as index_fetch_heap does: what is dead on a standby need not be so to the primary's snapshots
	 */
	marks = !scan->xactStartedInRecovery && !PageIsAllVisible(page);
	deleted = TransactionIdIsValid(((PageHeader) page)->pd_prune_xid);
	*n = 0;
	*recheck = false;
	do
	{
		OffsetNumber line = ItemPointerGetOffsetNumber(&index->tid);

		/* for the access method, when it is asked for the next one */
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
heap_index_stop(HeapIndex *index)
{
	index->begun = index->ended = index->held = index->ended_early = false;
}
