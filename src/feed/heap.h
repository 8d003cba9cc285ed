/*
 * heap.h
 *	  The heap feed: what its files share.
 *
 * From bottom to top: heap_bitmap.c and heap_index.c know the tuples that bitmap and index scans
 * want, heap_page.c reads pages, heap_columns.c their columns, heap_build.c puts them into the
 * column cache, heap_cached.c reads from that, heap_table.c compiles what the query wants of one
 * table, heap_output.c writes a table's rows into the batch, heap_resident.c leaves rows of the
 * cache to an engine, heap.c is the feed.  What the cache spares is in heap_skip.c (whole ranges,
 * and conditions), heap_memo.c (values that come again), heap_bounds.c (values within bounds) and
 * heap_direct.c (copies).
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
#include "feed/heap_page.h"

/* One column of the batch. */
typedef struct HeapOutput
{
	ColumnWriter writer;
	ExprState *constant; /* or NULL: a column of the scan */
	int resno;
	bool wants_codes; /* values are better numbered; see spec_ignores_repeats */
	int previous;     /* output of the same resno in another form, or -1 */

	/* of the batch */
	const void *borrowed; /* rows of the cache that the column points to, or NULL */
	uint64 dictionary;    /* codes[] are of all rows so far, in this dictionary; 0: they are not */
	uint32 ncodes;
	uint32 *codes; /* [row], once there are any */
} HeapOutput;

/* How one table yields an output. */
typedef struct HeapRoot
{
	ExprRoot *root;
	bool in_place;         /* it is computed into the batch */
	bool follows;          /* stored with another output, whose HeapRoot.next leads here */
	int next;              /* output stored together with this one, or -1 */
	struct HeapMemo *memo; /* or NULL: it is evaluated for each row */
} HeapRoot;

/* What is known of a condition on one column of the cache, or of an output; see heap_memo.c. */
typedef struct HeapMemo HeapMemo;

/* One table, or a subplan of an Append that must be executed. */
typedef struct HeapTable
{
	PlanState *tuples; /* that subplan; NULL: a table, whose fields follow */
	bool ended;        /* it has no more rows */
	HeapScan *scan;
	ExprSet *set;
	int nquals;
	ExprRoot **quals;
	HeapMemo **memos; /* [qual]; NULL: it is evaluated for each row */
	bool *closed;     /* [qual] expr_stage_is_closed */
	bool *rechecks;   /* [qual] a condition of the indexes */
	bool *indexed;    /* [qual] such a one, and nothing else */
	int noutputs;
	HeapRoot *outputs; /* [column of the batch] */
	bool has_memos;    /* there are outputs with memos, computed in stages of their own */
	bool by_memos;     /* those of the slice of rows at hand come from them */
	size_t memo_bytes; /* of their values */
	List *checks;      /* ExprRoots that core would evaluate as well, for their errors */
	HeapDecoder *decoder;
	int nstages;          /* quals, outputs, and outputs with memos */
	HeapColumns *columns; /* [stage] */
	HeapCached *cached;   /* or NULL: the column cache does not serve it */
	bool by_cache;        /* this time it does */
	bool direct;          /* rows of the cache need no vectors, but for quals */
	bool bounded;         /* nor values, but for the bounds of each range */
	int which;            /* of the Append's subplans */
	bool partly;          /* an engine has some of its rows, and is to get the others */
	MemoryContext cxt;    /* of all this; NULL: kept until the feed ends */
} HeapTable;

typedef struct HeapFeed
{
	Feed base;
	LimitState *limit; /* above child; or NULL */
	uint64 left;       /* rows that it still lets pass */
	PlanState *child;
	ResultState *result; /* child, if it only projects an Append */
	AppendState *append; /* that, or child; or NULL */
	HeapTable **tables;  /* [subplan of append]; [0] without */
	HeapTable *table;    /* being read */
	int nkept;
	ExprContext *econtext;
	bool extremes; /* there are no keys, and only aggregates min(), max() and count(*) */
	Batch batch;
	HeapOutput *outputs;
	bool constants_done;
	bool begun;
	bool done;
	bool offering;       /* tables are visited for rows that an engine takes by name */
	bool passed;         /* that for some it does not */
	bool second;         /* and then for all others */
	Bitmapset *complete; /* subplans of the Append all of whose rows an engine has */
	bool volatile_query; /* as feed_heap_open() was told */
	HeapPage page;
	int next_tuple; /* of the page */
	int slice;      /* most tuples that are decoded at a time: few where values are long */
	HeapRows rows;
	bool borrows;        /* the batch refers to the range of the cache that is pinned, */
	bool borrows_arrays; /* and so do its columns, to which nothing can be added */
	uint8 *state;        /* [row of a batch], once it is needed */
	HeapTupleData tuple; /* for core's evaluator */
	Arena arena;
	MemoryContext cxt;
} HeapFeed;

/* Has the batch as many bytes of by-reference values as it may have? */
static inline bool
heap_batch_is_full(const HeapFeed *feed)
{
	return feed->arena.bytes >= BATCH_BYTES;
}

/*
 * Why the subplan of an Append cannot be read from pages; NULL if it can.  Those that cannot are
 * executed, where the Append is not projected.
 */
extern const char *heap_subplan_unsupported_reason(PlanState *node, bool volatile_query);

/* The scan below a LIMIT, or else the node itself. */
static inline PlanState *
heap_below_limit(PlanState *child)
{
	return IsA(child, LimitState) ? outerPlanState(child) : child;
}

/* The Append that the feed reads, below a projection if there is one; or NULL. */
extern AppendState *heap_find_append(PlanState *child);

/* Compiles everything for the table of a plan node; it lives in the current memory context. */
extern HeapTable *heap_table_create(HeapFeed *feed, ScanState *node);

/*
 * Stores the outputs of feed->rows behind the batch's rows; returns for how many rows there was
 * room.
 */
extern int heap_store_outputs(HeapFeed *feed, HeapTable *table);

/*
 * Makes by-reference values last as long as the batch: n rows that were stored from row `at` on;
 * state: as in a vector, NULL: all are values.  Returns how many rows that was done for: fewer than
 * n if the batch became full.  chunk: they are rows from + rows[i] of it (rows NULL: from + i), or
 * NULL.
 */
extern int heap_store_references(HeapFeed *feed, int c, int at, int n, const uint8 *state,
								 const CacheChunk *chunk, uint32 from, const uint16 *rows);

/* For a qual of a table that is read by way of the cache; NULL: nothing to be remembered. */
extern HeapMemo *heap_memo_create(const HeapTable *table, int q);
/*
 * Which of the feed's rows, all cached, pass a qual: sets sel, returns how many; -1: it must be
 * evaluated.
 */
extern int heap_memo_select(HeapMemo *memo, HeapFeed *feed, HeapTable *table, int q, uint16 *sel);

/* Frees what memos remember, to which no batch may refer. */
extern void heap_memo_forget(HeapTable *table);

/* May an output be computed once for each value of a column of the cache? */
extern bool heap_memo_serves(const HeapTable *table, Expr *expr);
extern HeapMemo *heap_memo_create_output(const HeapTable *table, ExprRoot *root);
/* Prepares all outputs' memos for the range at hand; false: values repeat too little. */
extern bool heap_memo_prepare(HeapTable *table);
/*
 * Stores output c, and those joined to it, of the feed's first n rows, all cached; returns how
 * many, as heap_store_references.
 */
extern int heap_memo_store(HeapFeed *feed, HeapTable *table, int c, int at, int n);

/*
 * May bounds stand for the rows of a range?  For those of the range at hand?  Then adds up to
 * `room` of them.
 */
extern bool heap_bounds_possible(const HeapFeed *feed, const HeapTable *table);
extern bool heap_bounds_serve(const HeapFeed *feed, const HeapTable *table);
extern void heap_bounds_add(HeapFeed *feed, HeapTable *table, int room);

/*
 * Can rows of the cache be added without vectors?  And does so, for up to `room` rows of the page.
 */
extern bool heap_direct_possible(const HeapFeed *feed, const HeapTable *table);
extern void heap_direct_add(HeapFeed *feed, HeapTable *table, int room);

/* For FeedOps.resident, once the feed's table is being read by way of the cache. */
extern struct FeedResident *heap_resident_create(HeapFeed *feed);
/* Has an engine taken all blocks of a table? */
extern bool heap_resident_complete(const HeapCached *cached);

/* Fills the columns of constants, once for all batches. */
extern void heap_store_constants(HeapFeed *feed);

#endif /* GPUAGG_FEED_HEAP_H */
