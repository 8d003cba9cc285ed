/*
 * compat.h
 *	  Differences between PostgreSQL 15, 16, 17, 18 and 19.
 *
 * No other file tests PG_VERSION_NUM.
 */
#ifndef GPUAGG_COMPAT_H
#define GPUAGG_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "gpuagg supports PostgreSQL 15 to 19"
#endif

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/storage.h"
#include "commands/explain.h"
#include "common/relpath.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "varatt.h"
#endif
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/pathnodes.h"
#include "nodes/tidbitmap.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "parser/parse_agg.h"
#include "pgstat.h"
#include "postmaster/bgworker_internals.h"
#include "rewrite/rewriteManip.h"
#include "storage/buf_internals.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#include "storage/read_stream.h"
#endif
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

/* Ends a case of a switch that goes on with the next one. */
#if PG_VERSION_NUM >= 190000
#define compat_fallthrough pg_fallthrough
#else
#define compat_fallthrough __attribute__((fallthrough))
#endif

/*
 * Gets the next value of a sort, as a copy in the current memory context, and its abbreviated key.
 * Returns false at the end.
 */
static inline bool
compat_tuplesort_getdatum(Tuplesortstate *sort, Datum *value, bool *isnull, Datum *abbreviated)
{
#if PG_VERSION_NUM >= 160000
	return tuplesort_getdatum(sort, true, true, value, isnull, abbreviated);
#else
	return tuplesort_getdatum(sort, true, value, isnull, abbreviated);
#endif
}

/*
 * Returns whether a background worker with this function is registered, and so has a slot.  For the
 * postmaster only.
 */
static inline bool
compat_worker_is_registered(const char *function)
{
#if PG_VERSION_NUM >= 180000
	dlist_iter iter;

	dlist_foreach(iter, &BackgroundWorkerList)
	{
		RegisteredBgWorker *rw = dlist_container(RegisteredBgWorker, rw_lnode, iter.cur);
#else
	slist_iter iter;

	slist_foreach(iter, &BackgroundWorkerList)
	{
		RegisteredBgWorker *rw = slist_container(RegisteredBgWorker, rw_lnode, iter.cur);
#endif

		if (strcmp(rw->rw_worker.bgw_function_name, function) == 0)
			return true;
	}
	return false;
}

#if PG_VERSION_NUM >= 190000
/* Calls the function that argument points to, for GetNamedDSMSegment(). */
static inline void
compat_call_init(void *memory, void *argument)
{
	(*(void (**)(void *)) argument)(memory);
}
#endif

/*
 * Returns shared memory that any process may request by its name, and the first one initializes.
 * NULL before 17: there, shared memory must be requested at server start.
 */
static inline void *
compat_named_segment(const char *name, size_t size, void (*init)(void *memory))
{
#if PG_VERSION_NUM >= 190000
	bool found;

	return GetNamedDSMSegment(name, size, compat_call_init, &found, &init);
#elif PG_VERSION_NUM >= 170000
	bool found;

	return GetNamedDSMSegment(name, size, init, &found);
#else
	return NULL;
#endif
}

/* Creates or attaches to a hash table of fixed size in shared memory. */
static inline HTAB *
compat_shared_hash(const char *name, int64 size, HASHCTL *control, int flags)
{
#if PG_VERSION_NUM >= 190000
	return ShmemInitHash(name, size, control, flags);
#else
	return ShmemInitHash(name, size, size, control, flags);
#endif
}

/* Returns the open relation of a range table entry of the query, which it only reads. */
static inline Relation
compat_range_table_relation(EState *estate, Index rti)
{
#if PG_VERSION_NUM >= 180000
	return ExecGetRangeTableRelation(estate, rti, false);
#else
	return ExecGetRangeTableRelation(estate, rti);
#endif
}

/* Returns whether a collation orders texts by their bytes, as "C" does. */
static inline bool
compat_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/* Returns a new tranche of lightweight locks, which has this name from 19 on. */
static inline int
compat_new_tranche(const char *name)
{
#if PG_VERSION_NUM >= 190000
	return LWLockNewTrancheId(name);
#else
	return LWLockNewTrancheId();
#endif
}

/* Up to 18, gives a tranche a name in this process. */
static inline void
compat_register_tranche(int tranche, const char *name)
{
#if PG_VERSION_NUM < 190000
	LWLockRegisterTranche(tranche, name);
#endif
}

/*
 * Returns whether 17 or later may treat the interval as infinite: month and day are both the least
 * or the largest int32.
 */
static inline bool
compat_interval_may_be_infinite(const Interval *i)
{
	return (i->month == PG_INT32_MAX || i->month == PG_INT32_MIN) &&
		(i->day == PG_INT32_MAX || i->day == PG_INT32_MIN);
}

/* Returns ACLCHECK_OK if the role may execute the function. */
static inline AclResult
compat_proc_aclcheck(Oid function, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE);
#else
	return pg_proc_aclcheck(function, role, ACL_EXECUTE);
#endif
}

/* Returns whether the role owns the relation. */
static inline bool
compat_owns_relation(Oid relation, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, relation, role);
#else
	return pg_class_ownercheck(relation, role);
#endif
}

/* Identifies a relation's files. */
#if PG_VERSION_NUM >= 160000
typedef RelFileLocator CompatLocator;
#define compat_locator_tablespace(l) ((l).spcOid)
#define compat_locator_database(l) ((l).dbOid)
#define compat_locator_number(l) ((l).relNumber)
#define compat_relation_locator(rel) ((rel)->rd_locator)
#else
typedef RelFileNode CompatLocator;
#define compat_locator_tablespace(l) ((l).spcNode)
#define compat_locator_database(l) ((l).dbNode)
#define compat_locator_number(l) ((l).relNode)
#define compat_relation_locator(rel) ((rel)->rd_node)
#endif

/*
 * Returns the operator < for sortop, which is < or > of a btree operator family.  Sets *desc to
 * whether sortop is >.
 */
static inline Oid
compat_ascending_operator(Oid sortop, bool *desc)
{
	Oid opfamily, opcintype, ltop;
#if PG_VERSION_NUM >= 180000
	CompareType order;
#else
	int16 order;
#endif

	if (!get_ordering_op_properties(sortop, &opfamily, &opcintype, &order))
		elog(ERROR, "operator %u is not a valid ordering operator", sortop);
#if PG_VERSION_NUM >= 180000
	*desc = order == COMPARE_GT;
	ltop = *desc ? get_opfamily_member_for_cmptype(opfamily, opcintype, opcintype, COMPARE_LT) :
				   sortop;
#else
	*desc = order == BTGreaterStrategyNumber;
	ltop =
		*desc ? get_opfamily_member(opfamily, opcintype, opcintype, BTLessStrategyNumber) : sortop;
#endif
	if (!OidIsValid(ltop))
		elog(ERROR, "missing operator of family %u", opfamily);
	return ltop;
}

/* Writes to *path the file name of the main fork of a relation that is not temporary. */
static inline void
compat_main_fork_path(Oid database, Oid tablespace, Oid number, char *path, size_t size)
{
#if PG_VERSION_NUM >= 180000
	RelPathStr found =
		GetRelationPath(database, tablespace, number, INVALID_PROC_NUMBER, MAIN_FORKNUM);

	strlcpy(path, found.str, size);
#else
	char *found = GetRelationPath(database, tablespace, number, -1, MAIN_FORKNUM);

	strlcpy(path, found, size);
	pfree(found);
#endif
}

/*
 * Returns whether the types of an aggregate's arguments have the functions that its serialized
 * states need.  Before 16, these functions do not depend on the types.
 */
static inline bool
compat_agg_args_can_travel(Aggref *aggref)
{
#if PG_VERSION_NUM >= 160000
	return agg_args_support_sendreceive(aggref);
#else
	return true;
#endif
}

/*
 * Returns the GROUP BY clauses that are left after the planner has dropped redundant ones.  Returns
 * all clauses if it has dropped all: without rows there must be no group.
 */
static inline List *
compat_group_clause(PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	if (root->processed_groupClause != NIL)
		return root->processed_groupClause;
#endif
	return root->parse->groupClause;
}

/*
 * Returns a key as it is below the grouping.  From 18 on, columns that sets of GROUPING SETS may
 * leave out are marked above it.
 */
static inline Node *
compat_below_grouping(PlannerInfo *root, Node *key)
{
#if PG_VERSION_NUM >= 180000
	if (root->parse->hasGroupRTE && root->parse->groupingSets != NIL)
		return remove_nulling_relids(key, bms_make_singleton(root->group_rtindex), NULL);
#endif
	return key;
}

/* Returns the pathkeys of GROUP BY alone, without those of ordered aggregates. */
static inline List *
compat_group_pathkeys(PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	if (list_length(root->group_pathkeys) > root->num_groupby_pathkeys)
		return list_truncate(list_copy(root->group_pathkeys), root->num_groupby_pathkeys);
#endif
	return root->group_pathkeys;
}

/*
 * Returns whether this is a grouped relation: its paths return partial aggregates of the rows of a
 * table or join.  From 19 on, the planner makes such relations for eager aggregation.
 */
static inline bool
compat_is_grouped_rel(const RelOptInfo *rel)
{
#if PG_VERSION_NUM >= 190000
	return IS_GROUPED_REL(rel);
#else
	return false;
#endif
}

/* The partial aggregates that the planner may compute of a relation before it is joined. */
typedef struct CompatEagerGroups
{
	RelOptInfo *rel;        /* the grouped relation, which gets the paths */
	PathTarget *target;     /* keys, columns that depend on them, and partial aggregates */
	PathTarget *top_target; /* the same of the topmost parent, if the relation is a partition */
	List *clauses;          /* a SortGroupClause for each key; refers to columns of top_target */
	List *keys;             /* the keys' expressions */
} CompatEagerGroups;

/*
 * Sets *groups.  Returns false if the planner makes no partial aggregates of this relation, or does
 * not expect them to pay.
 */
static inline bool
compat_eager_groups(RelOptInfo *rel, CompatEagerGroups *groups)
{
#if PG_VERSION_NUM >= 190000
	const RelAggInfo *info;

	if (IS_GROUPED_REL(rel) || rel->grouped_rel == NULL || IS_DUMMY_REL(rel))
		return false;
	info = rel->grouped_rel->agg_info;
	if (!info->agg_useful || !bms_equal(info->apply_agg_at, rel->relids))
		return false;
	groups->rel = rel->grouped_rel;
	groups->target = info->target;
	groups->top_target =
		(IS_OTHER_REL(rel) ? rel->top_parent->grouped_rel : rel->grouped_rel)->agg_info->target;
	groups->clauses = info->group_clauses;
	groups->keys = info->group_exprs;
	return true;
#else
	return false;
#endif
}

/*
 * Copies the child's number of disabled nodes to the path.  From 18 on, paths count disabled nodes;
 * before, these are part of the cost.
 */
static inline void
compat_copy_disabled_nodes(Path *path, const Path *child)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = child->disabled_nodes;
#endif
}

/* Returns whether the settings allow hash joins for this join. */
static inline bool
compat_may_hash_join(const JoinPathExtraData *extra)
{
#if PG_VERSION_NUM >= 190000
	return (extra->pgs_mask & PGS_HASHJOIN) != 0;
#else
	return enable_hashjoin;
#endif
}

/* Returns whether a path has no more disabled nodes than another one. */
static inline bool
compat_is_as_enabled(const Path *path, const Path *other)
{
#if PG_VERSION_NUM >= 180000
	return path->disabled_nodes <= other->disabled_nodes;
#else
	return true;
#endif
}

/* Up to 16: raises an error if old_snapshot_threshold has pruned tuples that the snapshot sees. */
static inline void
compat_test_old_snapshot(Snapshot snapshot, Relation rel, Page page)
{
#if PG_VERSION_NUM < 170000
	TestForOldSnapshot(snapshot, rel, page);
#endif
}

/* Up to 16: returns whether snapshots expire because of old_snapshot_threshold. */
static inline bool
compat_old_snapshots_expire(void)
{
#if PG_VERSION_NUM < 170000
	return OldSnapshotThresholdActive();
#else
	return false;
#endif
}

/* Returns whether the table got new storage in the current transaction. */
static inline bool
compat_is_new_storage(Relation rel)
{
#if PG_VERSION_NUM >= 160000
	return rel->rd_newRelfilelocatorSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
	return rel->rd_newRelfilenodeSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

/*
 * Reads the LSN of a page in a shared buffer, which need not be pinned.  Returns false if the
 * buffer does not hold the block.  The buffer's header lock keeps the page there meanwhile.
 */
static inline bool
compat_buffer_lsn(Relation rel, BlockNumber block, Buffer buffer, XLogRecPtr *lsn)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	BufferTag tag;
#if PG_VERSION_NUM >= 190000
	uint64 state;
#else
	uint32 state;
#endif
	bool found;

#if PG_VERSION_NUM >= 160000
	InitBufferTag(&tag, &rel->rd_locator, MAIN_FORKNUM, block);
	if (!BufferTagsEqual(&desc->tag, &tag))
		return false;
	state = LockBufHdr(desc);
	found = (state & BM_VALID) && BufferTagsEqual(&desc->tag, &tag);
#else
	INIT_BUFFERTAG(tag, rel->rd_node, MAIN_FORKNUM, block);
	if (!BUFFERTAGS_EQUAL(desc->tag, tag))
		return false;
	state = LockBufHdr(desc);
	found = (state & BM_VALID) && BUFFERTAGS_EQUAL(desc->tag, tag);
#endif
	if (found)
		*lsn = PageGetLSN(BufferGetPage(buffer));
#if PG_VERSION_NUM >= 190000
	UnlockBufHdr(desc);
#else
	UnlockBufHdr(desc, state);
#endif
	return found;
}

/* Returns the usage count of a shared buffer, which need not be pinned. */
static inline uint32
compat_usage_count(Buffer buffer)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);

#if PG_VERSION_NUM >= 190000
	return BUF_STATE_GET_USAGECOUNT(pg_atomic_read_u64(&desc->state));
#else
	return BUF_STATE_GET_USAGECOUNT(pg_atomic_read_u32(&desc->state));
#endif
}

/* Chooses the first block of a participant of a parallel scan of a whole table. */
static inline void
compat_parallel_scan_start(Relation rel, ParallelBlockTableScanWorker worker,
						   ParallelBlockTableScanDesc shared)
{
#if PG_VERSION_NUM >= 190000
	table_block_parallelscan_startblock_init(rel, worker, shared, InvalidBlockNumber,
											 InvalidBlockNumber);
#else
	table_block_parallelscan_startblock_init(rel, worker, shared);
#endif
}

/* Completes a row descriptor whose columns have been set one by one.  From 19 on, slots need it. */
static inline void
compat_finalize_tuple_desc(TupleDesc desc)
{
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
}

/* What EXPLAIN ANALYZE counts for a plan node. */
#if PG_VERSION_NUM >= 190000
typedef NodeInstrumentation CompatInstrumentation;
#else
typedef Instrumentation CompatInstrumentation;
#endif

/* Sets the counts of a plan node to zero. */
static inline void
compat_reset_instrumentation(CompatInstrumentation *instrument)
{
#if PG_VERSION_NUM >= 190000
	InstrInitNode(instrument, instrument->instr.need_timer ? INSTRUMENT_TIMER : 0,
				  instrument->async_mode);
#else
	InstrInit(instrument, instrument->need_timer ? INSTRUMENT_TIMER : 0);
#endif
}

/* Counts tuples that a table scan has returned. */
static inline void
compat_count_tuples(Relation rel, int64 n)
{
	if (pgstat_should_count_relation(rel))
#if PG_VERSION_NUM >= 160000
		rel->pgstat_info->counts.tuples_returned += n;
#else
		rel->pgstat_info->t_counts.t_tuples_returned += n;
#endif
}

/* Counts tuples that an index scan has fetched. */
static inline void
compat_count_fetches(Relation rel, int64 n)
{
	if (pgstat_should_count_relation(rel))
#if PG_VERSION_NUM >= 160000
		rel->pgstat_info->counts.tuples_fetched += n;
#else
		rel->pgstat_info->t_counts.t_tuples_fetched += n;
#endif
}

/*
 * Pins the given shared buffer if it has this block; returns whether it does.  Counts a hit in the
 * relation's statistics, but does not raise the buffer's usage count.
 */
static inline bool
compat_read_recent_buffer(Relation rel, BlockNumber block, Buffer buffer)
{
#if PG_VERSION_NUM >= 160000
	if (!ReadRecentBuffer(rel->rd_locator, MAIN_FORKNUM, block, buffer))
#else
	if (!ReadRecentBuffer(rel->rd_node, MAIN_FORKNUM, block, buffer))
#endif
		return false;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	return true;
}

/*
 * From 17 on, a heap scan has a read stream, which chooses blocks as the scan does and reads
 * several at once.
 */
#define COMPAT_READ_STREAM (PG_VERSION_NUM >= 170000)

/* Makes the stream, which must not have been used yet, continue after a block. */
static inline void
compat_read_stream_start(HeapScanDesc scan, BlockNumber block)
{
#if COMPAT_READ_STREAM
	scan->rs_inited = true;
	scan->rs_prefetch_block = block;
#endif
}

/* Returns the next buffer of the stream, pinned; InvalidBuffer at the end. */
static inline Buffer
compat_read_stream_next(HeapScanDesc scan)
{
#if COMPAT_READ_STREAM
	return read_stream_next_buffer(scan->rs_read_stream, NULL);
#else
	return InvalidBuffer;
#endif
}

/*
 * Flags of the scan of a node.  From 19 on, a scan that is known not to write its table may set
 * bits of the visibility map when it prunes a page.
 */
#if PG_VERSION_NUM >= 190000
static inline uint32
compat_scan_flags(ScanState *node)
{
	return ScanRelIsReadOnly(node) ? SO_HINT_REL_READ_ONLY : SO_NONE;
}
#endif

/* Begins a sequential scan of the node's table. */
static inline TableScanDesc
compat_begin_scan(ScanState *node, Relation rel, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(rel, snapshot, 0, NULL, compat_scan_flags(node));
#else
	return table_beginscan(rel, snapshot, 0, NULL);
#endif
}

/*
 * Begins a scan of the node's table for a bitmap.  From 18 on, the executor sets its iterator,
 * which must be unset.
 */
static inline TableScanDesc
compat_begin_bitmap_scan(ScanState *node, Relation rel, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	TableScanDesc scan = table_beginscan_bm(rel, snapshot, 0, NULL, compat_scan_flags(node));

	memset(&scan->st, 0, sizeof(scan->st));
	return scan;
#elif PG_VERSION_NUM >= 180000
	TableScanDesc scan = table_beginscan_bm(rel, snapshot, 0, NULL);

	memset(&scan->st, 0, sizeof(scan->st));
	return scan;
#elif PG_VERSION_NUM >= 170000
	return table_beginscan_bm(rel, snapshot, 0, NULL, true);
#else
	return table_beginscan_bm(rel, snapshot, 0, NULL);
#endif
}

/* Begins the scan of an index scan node without ORDER BY operators. From 18 on, it is counted. */
static inline struct IndexScanDescData *
compat_begin_index_scan(IndexScanState *node)
{
	return index_beginscan(node->ss.ss_currentRelation, node->iss_RelationDesc,
						   node->ss.ps.state->es_snapshot,
#if PG_VERSION_NUM >= 190000
						   node->iss_Instrument,
#elif PG_VERSION_NUM >= 180000
						   &node->iss_Instrument,
#endif
						   node->iss_NumScanKeys, 0
#if PG_VERSION_NUM >= 190000
						   ,
						   compat_scan_flags(&node->ss)
#endif
	);
}

/* Prunes a page of a heap scan if that may be useful. */
static inline void
compat_prune_page(HeapScanDesc scan, Relation rel, Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
	heap_page_prune_opt(rel, buffer, &scan->rs_vmbuffer,
						scan->rs_base.rs_flags & SO_HINT_REL_READ_ONLY);
#else
	heap_page_prune_opt(rel, buffer);
#endif
}

/* Prunes a page of the heap that an index scan reads if that may be useful. */
static inline void
compat_prune_index_page(IndexScanDesc scan, Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) scan->xs_heapfetch;

	heap_page_prune_opt(scan->heapRelation, buffer, &fetch->xs_vmbuffer,
						fetch->xs_base.flags & SO_HINT_REL_READ_ONLY);
#else
	heap_page_prune_opt(scan->heapRelation, buffer);
#endif
}

/* EXPLAIN's counters of a bitmap heap scan. */
#if PG_VERSION_NUM >= 180000
#define compat_exact_pages(node) ((node)->stats.exact_pages)
#define compat_lossy_pages(node) ((node)->stats.lossy_pages)
#else
#define compat_exact_pages(node) ((node)->exact_pages)
#define compat_lossy_pages(node) ((node)->lossy_pages)
#endif

/*
 * Iterates over a bitmap of this process, or over one that participants of a parallel plan share.
 */
typedef struct CompatBitmapIterator
{
#if PG_VERSION_NUM >= 180000
	TBMPrivateIterator *own;
#else
	TBMIterator *own;
#endif
	TBMSharedIterator *shared;
} CompatBitmapIterator;

/* Begins to iterate over a bitmap of this process. */
static inline void
compat_bitmap_begin(CompatBitmapIterator *iterator, TIDBitmap *bitmap)
{
	iterator->shared = NULL;
#if PG_VERSION_NUM >= 180000
	iterator->own = tbm_begin_private_iterate(bitmap);
#else
	iterator->own = tbm_begin_iterate(bitmap);
#endif
}

/* Ends the iteration. */
static inline void
compat_bitmap_end(CompatBitmapIterator *iterator)
{
	if (iterator->shared)
		tbm_end_shared_iterate(iterator->shared);
	else
#if PG_VERSION_NUM >= 180000
		tbm_end_private_iterate(iterator->own);
#else
		tbm_end_iterate(iterator->own);
#endif
}

/*
 * Gets the next page of the bitmap; returns false at the end.  Sets offsets[] and *n to the line
 * pointers of its tuples and their number, at most MaxHeapTuplesPerPage; *n is -1 if the bitmap
 * has the page as a whole.  *recheck: tuples may fail the index conditions.
 */
static inline bool
compat_bitmap_next(CompatBitmapIterator *iterator, BlockNumber *block, OffsetNumber *offsets,
				   int *n, bool *recheck)
{
#if PG_VERSION_NUM >= 180000
	TBMIterateResult page;

	if (!(iterator->shared ? tbm_shared_iterate(iterator->shared, &page) :
							 tbm_private_iterate(iterator->own, &page)))
		return false;
	*block = page.blockno;
	*recheck = page.recheck;
	*n = page.lossy ? -1 : tbm_extract_page_tuple(&page, offsets, MaxHeapTuplesPerPage);
#else
	TBMIterateResult *page =
		iterator->shared ? tbm_shared_iterate(iterator->shared) : tbm_iterate(iterator->own);

	if (page == NULL)
		return false;
	*block = page->blockno;
	*recheck = page->recheck;
	*n = page->ntuples;
	memcpy(offsets, page->offsets, Max(page->ntuples, 0) * sizeof(OffsetNumber));
#endif
	return true;
}

/* Begins to read a bitmap that participants of a parallel plan share. */
static inline void
compat_bitmap_attach(CompatBitmapIterator *iterator, dsa_area *area, dsa_pointer shared)
{
	iterator->shared = tbm_attach_shared_iterate(area, shared);
}

/* Returns the number of relations in a query. With more than one, EXPLAIN prefixes columns. */
static inline int
compat_explain_rtable_size(ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return es->rtable_size; /* without the entry that represents GROUP BY */
#else
	return list_length(es->rtable);
#endif
}

/* Plans and explains a query, as core does if there is no ExplainOneQuery_hook. */
static inline void
compat_explain_one_query(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
						 const char *source, ParamListInfo params, QueryEnvironment *env)
{
#if PG_VERSION_NUM >= 170000
	standard_ExplainOneQuery(query, cursor_options, into, es, source, params, env);
#else
	BufferUsage before = pgBufferUsage;
	BufferUsage used = {0};
	instr_time start, duration;
	PlannedStmt *plan;

	INSTR_TIME_SET_CURRENT(start);
	plan = pg_plan_query(query, source, cursor_options, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, source, params, env, &duration, es->buffers ? &used : NULL);
#endif
}

/*
 * Reads `size` bytes and returns true.  At the end of the file, returns false if eof_ok, else
 * raises an error.
 */
static inline bool
compat_read_file(BufFile *file, void *data, size_t size, bool eof_ok)
{
#if PG_VERSION_NUM >= 160000
	return BufFileReadMaybeEOF(file, data, size, eof_ok) == size;
#else
	size_t n = BufFileRead(file, data, size);

	if (n != size && !(eof_ok && n == 0))
		ereport(
			ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read from temporary file: read only %zu of %zu bytes", n, size)));
	return n == size;
#endif
}

/*
 * Creates a wait event set that belongs to the process, not to a resource owner.  The caller
 * includes the header that declares it.
 */
#if PG_VERSION_NUM >= 170000
#define compat_create_wait_event_set(n) CreateWaitEventSet(NULL, n)
#else
#define compat_create_wait_event_set(n) CreateWaitEventSet(TopMemoryContext, n)
#endif

/* From 17 on, core's sum and avg of intervals have an internal state. */
#define COMPAT_INTERVAL_STATES (PG_VERSION_NUM >= 170000)

/*
 * The number of values in the transition value of corr() and the like.  Up to 18, it is six sums,
 * as REGR_F64 has them.  From 19 on, it also says whether all X, and all Y, are equal, which
 * changes how the sums are added up.
 */
#if PG_VERSION_NUM >= 190000
#define COMPAT_REGR_VALUES 8
#else
#define COMPAT_REGR_VALUES 6
#endif

/* From 19 on, core serializes states that consist of 128-bit integers as such, not as numerics. */
#define COMPAT_POLY_STATES_HAVE_INTEGERS (PG_VERSION_NUM >= 190000)

/* Parameters of ExecutorRun and its hook. Up to 17, execute_once is one of them. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_EXECUTOR_RUN_PARAMS QueryDesc *query, ScanDirection direction, uint64 count
#define COMPAT_EXECUTOR_RUN_ARGS query, direction, count
#else
#define COMPAT_EXECUTOR_RUN_PARAMS \
	QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define COMPAT_EXECUTOR_RUN_ARGS query, direction, count, once
#endif

/* Parameters of planner_hook.  From 19 on, the state of EXPLAIN is one of them. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_PLANNER_PARAMS \
	Query *query, const char *query_string, int cursor_options, ParamListInfo params, \
		ExplainState *es
#define COMPAT_PLANNER_ARGS query, query_string, cursor_options, params, es
#else
#define COMPAT_PLANNER_PARAMS \
	Query *query, const char *query_string, int cursor_options, ParamListInfo params
#define COMPAT_PLANNER_ARGS query, query_string, cursor_options, params
#endif

/* The hook that is called when the planner has read the catalogs for a base relation. */
#if PG_VERSION_NUM >= 190000
#define compat_relation_hook build_simple_rel_hook
#define compat_relation_hook_type build_simple_rel_hook_type
#define COMPAT_RELATION_PARAMS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define COMPAT_RELATION_ARGS root, rel, rte
#else
#define compat_relation_hook get_relation_info_hook
#define compat_relation_hook_type get_relation_info_hook_type
#define COMPAT_RELATION_PARAMS PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel
#define COMPAT_RELATION_ARGS root, relation, inhparent, rel
#endif

/* The path that removes equal adjacent rows.  Up to 18, UniquePath is another one. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_UNIQUE_PATH_TAG T_UniquePath
typedef UniquePath CompatUniquePath;
#else
#define COMPAT_UNIQUE_PATH_TAG T_UpperUniquePath
typedef UpperUniquePath CompatUniquePath;
#endif

/*
 * Returns the conditions with which a path of window functions stops: comparisons of a window
 * function with an expression that is the same for all rows.
 */
static inline List *
compat_run_condition(const WindowAggPath *path)
{
#if PG_VERSION_NUM >= 170000
	return path->runCondition;
#else
	return path->winclause->runCondition;
#endif
}

/* SIG_DFL for pqsignal(). */
#if PG_VERSION_NUM >= 190000
#define COMPAT_SIG_DFL PG_SIG_DFL
#else
#define COMPAT_SIG_DFL SIG_DFL
#endif

#endif /* GPUAGG_COMPAT_H */
