/*
 * heap.h
 *	  The feed over a query's child plan; declarations that the heap*.c files share.
 *
 * The child plan is one scan of a heap table, perhaps below a LIMIT or below joins, or an Append,
 * perhaps below a projection or below joins.  Its subplans are read one after the other.  The rows
 * of a subplan come from one of four sources (HeapSource): the pages of its table, the column
 * cache, the groups of another custom scan, or the executor.  A child plan of any other kind is one
 * subplan, whose rows come from the executor.
 *
 * The files, from bottom to top:
 *	  heap_bitmap.c, heap_index.c	blocks and tuples that bitmap and index scans select
 *	  heap_shared.c		bitmaps and lookups that participants of a parallel plan share
 *	  heap_page.c		reads pages and finds the visible tuples
 *	  heap_columns.c	decodes columns of a page's tuples
 *	  heap_build.c		adds ranges of blocks to the column cache
 *	  heap_skip.c		conditions that a range's bounds decide for all of its rows
 *	  heap_cached.c		reads a table by way of the column cache
 *	  heap_memo.c, heap_bounds.c, heap_direct.c	shortcuts for cached rows: one evaluation per
 *						distinct value, bounds in place of rows, columns without vectors
 *	  heap_output.c		writes rows into the batch
 *	  heap_table.c		compiles the quals and outputs of one table
 *	  heap_rows.c		runs quals and outputs for the rows of a page
 *	  heap_groups.c		groups of another custom scan as rows
 *	  lookup_rows.c, lookup.c	store rows of a join's inner side, and find them by their key
 *	  heap_joins.c, heap_join_table.c, heap_join_many.c, heap_join_order.c	joins between the
 *						feed's child and the scan
 *	  heap_source.c		the four sources
 *	  heap_resident.c	offers cached rows to an engine that has copies of them
 *	  heap_explain.c	what EXPLAIN shows
 *	  heap.c			the feed: its phases, its subplans, its batches
 */
#ifndef GPUAGG_FEED_HEAP_H
#define GPUAGG_FEED_HEAP_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "expr/expr.h"
#include "feed.h"
#include "feed/heap_bitmap.h"
#include "feed/heap_cached.h"
#include "feed/heap_columns.h"
#include "feed/heap_joins.h"
#include "feed/heap_page.h"

/* One column of the batch. */
typedef struct HeapOutput
{
	ColumnWriter writer;
	ExprState *constant; /* the column has one value in all batches; NULL: a column of the child */
	int resno;           /* number of the child's column, from 1; 0: a constant */
	bool wants_codes;    /* batches should have dictionary codes; see spec_ignores_repeats */
	int previous;        /* an earlier output of the same resno in another form, or -1 */

	/* State of the batch that is being filled. */
	const void *borrowed; /* array of the cache that the column points to, or NULL */
	uint64 dictionary;    /* codes[] has all rows so far, in this dictionary; 0: it does not */
	uint32 ncodes;        /* entries of that dictionary */
	uint32 *codes;        /* [row]; NULL before the first use */
} HeapOutput;

/* Copies an attribute of the executor's rows to an output. */
typedef struct HeapCopy
{
	int att; /* index into the slot's values */
	ColumnWriter *writer;
} HeapCopy;

/* How one table computes an output. */
typedef struct HeapRoot
{
	ExprRoot *root;        /* NULL: a constant */
	bool in_place;         /* the vector's values are computed in the batch's array */
	bool joined;           /* stored together with another output, whose HeapRoot.next leads here */
	int next;              /* the output that is stored together with this one, or -1 */
	struct HeapMemo *memo; /* NULL: evaluated for each row */
} HeapRoot;

/* Results of a condition or an output, one for each value of a cached column; see heap_memo.c. */
typedef struct HeapMemo HeapMemo;

/* Where the rows of a subplan come from. */
typedef enum HeapSource
{
	HEAP_PAGES,   /* the pages of its table (heap_page.h) */
	HEAP_CACHE,   /* the column cache, and pages for blocks that it does not have (heap_cached.h) */
	HEAP_GROUPS,  /* another custom scan, which returns its groups as arrays (heap_groups.c) */
	HEAP_EXECUTOR /* ExecProcNode: the plan is not readable by pages, or an index scan goes on */
} HeapSource;

/*
 * One subplan.  The source is chosen when reading begins (heap_source_begin); an index scan may
 * change from HEAP_PAGES to HEAP_EXECUTOR once, see heap_index.c.
 */
typedef struct HeapTable
{
	PlanState *node; /* the subplan */
	int which;       /* its index in HeapFeed.subplans */
	HeapSource source;
	bool executor_ended;       /* HEAP_EXECUTOR: the node has returned its last row */
	struct HeapGroups *groups; /* HEAP_GROUPS; else NULL */
	HeapTableJoins *joins;     /* the feed has joins; else NULL */
	MemoryContext cxt;         /* owns all of this; NULL: the feed's context does */

	/*
	 * The fields below describe a scan; scan is NULL for a subplan that is always executed, and for
	 * HEAP_GROUPS, which has set, quals, outputs and checks.
	 */
	HeapScan *scan;
	ExprSet *set;
	int nquals;       /* number of conditions and of probes of lookups */
	int nscan_quals;  /* number of conditions of the scan, which come first */
	ExprRoot **quals; /* NULL for a probe, and for checks of groups */
	bool *together;   /* [qual] evaluated together with the one before, in its stage */
	HeapMemo **memos; /* [qual]; NULL: evaluated for each row */
	bool *closed;     /* [qual] expr_stage_is_closed() */
	bool *rechecks;   /* [qual] a condition of the index */
	bool *indexed;    /* [qual] closed and a condition of the index: holds unless recheck is set */
	int noutputs;
	HeapRoot *outputs; /* [column of the batch] */
	bool has_memos;    /* outputs with memos exist; the last stage computes them without memos */
	bool by_memos;     /* the rows at hand take these outputs from the memos */
	size_t memo_bytes; /* of all memos' values */
	List *checks;      /* ExprRoots that are evaluated for the errors that core would raise */
	HeapDecoder *decoder;
	int nstages;          /* one per qual, then outputs, then outputs with memos */
	int nscanned;         /* rows of the last step that passed the conditions of the scan */
	HeapColumns *columns; /* [stage] */
	HeapCached *cached;   /* NULL: the column cache cannot serve this table */
	bool direct;          /* cached rows that need no qual are added without vectors */
	bool bounded;         /* a range's bounds may stand for its rows (heap_bounds.c) */
} HeapTable;

/* How much of a subplan an engine has taken by reference (heap_resident.h). */
typedef enum HeapTaken
{
	HEAP_TAKEN_NONE, /* or not offered */
	HEAP_TAKEN_PARTLY,
	HEAP_TAKEN_ALL
} HeapTaken;

typedef struct HeapSubplan
{
	HeapTable *table; /* NULL: not compiled */
	HeapTaken taken;
} HeapSubplan;

/*
 * The phases of a feed:
 *	  START -> OFFER		FeedOps.resident: cached rows are offered to the engine
 *	  START -> READ			the first FeedOps.next
 *	  OFFER -> READ			without Append: the scan that was offered goes on, and passes over the
 *							blocks that the engine has taken
 *	  OFFER -> READ_REST	below an Append: subplans are begun again, but those with HEAP_TAKEN_ALL
 *	  READ, READ_REST -> DONE	after the last row, or the last one that the LIMIT lets pass
 *	  any -> START			FeedOps.rescan
 */
typedef enum HeapPhase
{
	HEAP_START,
	HEAP_OFFER,
	HEAP_READ,
	HEAP_READ_REST,
	HEAP_DONE
} HeapPhase;

typedef struct HeapFeed
{
	Feed base;
	bool executes_child; /* the child is one subplan of source HEAP_EXECUTOR, whatever it is */
	LimitState *limit;   /* above child, or NULL */
	uint64 left;         /* rows that the LIMIT still lets pass */
	PlanState *child;
	HeapJoins *joins;       /* child is a tree of joins above the scan or Append; or NULL */
	const char *no_lookups; /* why the executor runs the joins although they were to be lookups */
	ResultState *result;    /* child, if it is a projection of an Append; or NULL */
	AppendState *append;    /* below result, or child; or NULL */

	HeapPhase phase;
	HeapSubplan *subplans; /* [subplan of append]; [0] without Append */
	HeapTable *table;      /* the subplan that is being read; NULL: none has been begun */
	int nkept;             /* tables whose compiled expressions are kept for rescans */
	bool offer_left_rows;  /* the engine has not taken all rows of the subplans before this one */
	bool volatile_query;   /* as passed to feed_open() */
	bool extremes;         /* no keys, and no aggregates but min(), max() and count(*) */

	HeapPage page;     /* rows at hand of HEAP_PAGES and HEAP_CACHE */
	int next_tuple;    /* the first of them that is not in a batch yet */
	int rows_per_step; /* most tuples that are decoded at a time: fewer where values are long */
	HeapRows rows;
	HeapTupleData tuple; /* for core's evaluator */

	ExprContext *econtext;
	Batch batch;
	HeapOutput *outputs; /* [column of the batch] */
	int natts;           /* attributes that the outputs read of the executor's rows */
	int ncopies;         /* one for each output that is not a constant */
	HeapCopy *copies;
	bool constants_done; /* the columns of constants are filled */
	bool borrows;        /* the batch refers to the range that is pinned, */
	bool borrows_arrays; /* and so do its columns, to which nothing can be added */
	uint8 *state;        /* [row of a batch]; NULL before the first use */
	Arena arena;         /* by-reference values of the batch */
	MemoryContext cxt;
} HeapFeed;

/* Returns whether the batch has as many bytes of by-reference values as it may have. */
static inline bool
heap_batch_is_full(const HeapFeed *feed)
{
	return feed->arena.bytes >= BATCH_BYTES;
}

/*
 * Returns whether the batch must end before the next page: its columns are arrays of the cache, or
 * it refers to a range that the next page may unpin.
 */
static inline bool
heap_batch_must_end(const HeapFeed *feed)
{
	return feed->borrows_arrays ||
		(feed->borrows && feed->next_tuple >= feed->page.ntuples &&
		 heap_cached_leaves_range(feed->table->cached));
}

/* ---- heap_unsupported.c ------------------------------------------------------------ */

/* Returns why the scan node cannot be read by pages; NULL if it can. */
extern const char *heap_subplan_unsupported_reason(PlanState *node, bool volatile_query);

/* Returns the scan below a LIMIT, or the node itself. */
static inline PlanState *
heap_below_limit(PlanState *child)
{
	return IsA(child, LimitState) ? outerPlanState(child) : child;
}

/* Returns the Append that is the child or below its projection; NULL if there is none. */
extern AppendState *heap_find_append(PlanState *child);

/* ---- heap_groups.c ----------------------------------------------------------------- */

typedef struct HeapGroups HeapGroups;

/* Returns the custom scan whose groups are the rows of the node; NULL for other nodes. */
extern PlanState *heap_groups_scan(PlanState *node);
/* Returns why the groups cannot be read as arrays, if there is such a scan; NULL if they can. */
extern const char *heap_groups_unsupported_reason(PlanState *node, bool volatile_query);
/*
 * Begin and end to compile quals and outputs of a node over groups, in the current memory context;
 * heap_table.c adds the outputs in between.
 */
extern HeapTable *heap_groups_begin_table(HeapFeed *feed, PlanState *node);
extern void heap_groups_end_table(HeapFeed *feed, HeapTable *table);
/* Returns the target entries of the node as expressions over the columns of the groups. */
extern List *heap_groups_targets(const HeapTable *table);
/* Replaces the rows at hand by the next groups; false at the end. */
extern bool heap_groups_next(HeapFeed *feed, HeapTable *table);
/* Adds up to `room` rows to the batch: those that pass the quals.  Others stay at hand. */
extern void heap_groups_add(HeapFeed *feed, HeapTable *table, int room);

/* ---- heap_table.c ------------------------------------------------------------------ */

/* Compiles quals and outputs of a scan node, in the current memory context. */
extern HeapTable *heap_table_create(HeapFeed *feed, ScanState *node);
/*
 * Compiles a table again, between steps, in the order of probes that the feed has now.  The scan
 * goes on.  Returns NULL if that is not possible.
 */
extern HeapTable *heap_table_compile_again(HeapFeed *feed, const HeapTable *from);
/* Compiles quals and outputs of a node over groups. */
extern HeapTable *heap_table_create_groups(HeapFeed *feed, PlanState *node);

/* ---- heap_output.c ----------------------------------------------------------------- */

/*
 * Appends the outputs of feed->rows to the batch's arrays.  Returns for how many rows there was
 * room; does not change Batch.nrows.
 */
extern int heap_store_outputs(HeapFeed *feed, HeapTable *table);

/*
 * Makes n by-reference values of output c last as long as the batch; they are in its rows `at` to
 * at + n - 1.  state[i]: the state of value i, as in Vec.state; NULL: all have values.  chunk: the
 * cached column that has value i in row from + rows[i], or in row from + i if rows is NULL.  A NULL
 * chunk: the values do not come from the cache.  Returns for how many rows it was done: fewer than
 * n if the batch became full.
 */
extern int heap_store_references(HeapFeed *feed, int c, int at, int n, const uint8 *state,
								 const CacheChunk *chunk, uint32 from, const uint16 *rows);

/* Fills the columns of constants, once for all batches. */
extern void heap_store_constants(HeapFeed *feed);

/* ---- heap_memo.c ------------------------------------------------------------------- */

/* Returns a memo for a qual of a table that the cache serves; NULL if a memo does not help. */
extern HeapMemo *heap_memo_create(const HeapTable *table, int q);
/*
 * Decides qual q for the feed's rows, which are cached.  Sets sel to the indexes of those that pass
 * and returns their number; returns -1 if the qual must be evaluated for each row.
 */
extern int heap_memo_select(HeapMemo *memo, HeapFeed *feed, HeapTable *table, int q, uint16 *sel);

/* Frees the values of all memos.  No batch may refer to them. */
extern void heap_memo_forget(HeapTable *table);

/* Returns whether an output may be computed once for each value of a cached column. */
extern bool heap_memo_serves(const HeapTable *table, Expr *expr);
/* Returns a memo for an output of which heap_memo_serves() is true. */
extern HeapMemo *heap_memo_create_output(const HeapTable *table, ExprRoot *root);
/* Prepares the memos of all outputs for the pinned range; false if values repeat too little. */
extern bool heap_memo_prepare(HeapTable *table);
/*
 * Stores output c, and the outputs joined to it, for the feed's first n rows, which are cached.
 * They become rows of the batch from `at` on.  Returns for how many rows: fewer than n if the batch
 * became full.
 */
extern int heap_memo_store(HeapFeed *feed, HeapTable *table, int c, int at, int n);

/* ---- heap_bounds.c, heap_direct.c -------------------------------------------------- */

/* Returns whether the outputs of a table allow bounds to stand for rows; see heap_bounds.c. */
extern bool heap_bounds_possible(const HeapFeed *feed, const HeapTable *table);
/*
 * Returns whether bounds may stand for the rows of the pinned range, if heap_bounds_possible().
 */
extern bool heap_bounds_serve(const HeapFeed *feed, const HeapTable *table);
/* Adds up to `room` rows made of bounds to the batch. */
extern void heap_bounds_add(HeapFeed *feed, HeapTable *table, int room);

/* Returns whether cached rows can be added to the batch without vectors. */
extern bool heap_direct_possible(const HeapFeed *feed, const HeapTable *table);
/* Adds up to `room` rows of the page, which are cached, to the batch. */
extern void heap_direct_add(HeapFeed *feed, HeapTable *table, int room);

/* ---- heap_rows.c ------------------------------------------------------------------- */

/*
 * Adds up to `room` rows of the page to the batch: those that pass the quals.  Rows for which the
 * batch has no room stay at hand.
 */
extern void heap_add_rows(HeapFeed *feed, HeapTable *table, int room);
/*
 * Ends a step over n rows at hand: adds the outputs of those that are left to the batch, and sets
 * *added to their number.  Returns how many of the n rows have been taken, fewer if the batch is
 * full, and adapts the number of rows of the next step.
 */
extern int heap_add_step(HeapFeed *feed, HeapTable *table, int n, int *added);
/*
 * Sets sel to the indexes of the rows that pass a qual whose stage has run; returns their
 * number.
 */
extern int heap_select_rows(HeapFeed *feed, HeapTable *table, int q, uint16 *sel);
/*
 * Makes the vectors of in-place outputs write to the batch's arrays, from its next free row on.
 */
extern void heap_point_outputs(HeapFeed *feed, HeapTable *table);

/* ---- heap_source.c ----------------------------------------------------------------- */

/* Chooses the source of a subplan, whose node has been rescanned if need be, and begins it. */
extern void heap_source_begin(HeapFeed *feed, HeapTable *table);
/* Returns whether the current subplan has rows at hand, or may have them (HEAP_EXECUTOR). */
extern bool heap_source_has_rows(const HeapFeed *feed);
/* Replaces the rows at hand by the next ones; false at the end of the subplan. */
extern bool heap_source_next(HeapFeed *feed);
/* Adds rows at hand, or rows that the executor returns, to the batch. */
extern void heap_source_add(HeapFeed *feed);
/* Releases the rows at hand, and pins on their page. */
extern void heap_source_leave_rows(HeapFeed *feed);
/* Releases all pins of the current subplan: it will not be read further. */
extern void heap_source_end(HeapFeed *feed);
/* Returns why the rows of the current subplan cannot be offered to an engine; NULL if they can. */
extern const char *heap_source_unoffered_reason(const HeapFeed *feed);

/* ---- heap_resident.c --------------------------------------------------------------- */

/*
 * Returns an offer of the rows of the current subplan, whose source is HEAP_CACHE, or NULL, with
 * *why set, if its joins cannot be offered.  feed_resident_free() frees it.
 */
extern struct FeedResident *heap_resident_create(HeapFeed *feed, const char **why);
/* Returns whether an engine has taken all blocks of a table. */
extern bool heap_resident_complete(const HeapCached *cached);

/* ---- heap_explain.c ---------------------------------------------------------------- */

/* FeedOps.explain: prints how the feed reads its rows, and what it has read. */
extern void heap_explain(Feed *base, const FeedStats *stats, ExplainState *es);

#endif /* GPUAGG_FEED_HEAP_H */
