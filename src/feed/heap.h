/*
 * heap.h
 *	  The heap feed: what its files share.
 *
 * From bottom to top: heap_page.c reads pages, heap_columns.c their columns,
 * heap_table.c compiles what the query wants of one table, heap_output.c writes
 * a table's rows into the batch, heap.c is the feed.
 */
#ifndef GPUAGG_FEED_HEAP_H
#define GPUAGG_FEED_HEAP_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "expr/expr.h"
#include "feed.h"
#include "feed/heap_columns.h"
#include "feed/heap_page.h"

/* One column of the batch. */
typedef struct HeapOutput
{
	ColumnWriter writer;
	ExprState  *constant;		/* or NULL: a column of the scan */
	int			resno;
	int			previous;		/* output of the same resno in another form, or -1 */
} HeapOutput;

/* How one table yields an output. */
typedef struct HeapRoot
{
	ExprRoot   *root;
	bool		in_place;		/* it is computed into the batch */
	bool		follows;		/* written with the output before, as core computes it once for all */
	int			next;			/* output that follows this one, or -1 */
} HeapRoot;

/* One table. */
typedef struct HeapTable
{
	HeapScan   *scan;
	ExprSet    *set;
	int			nquals;
	ExprRoot  **quals;
	HeapRoot   *outputs;		/* [column of the batch] */
	List	   *checks;			/* ExprRoots that core would evaluate as well, for their errors */
	HeapDecoder *decoder;
	HeapColumns *columns;		/* [stage] */
	int			which;			/* of the Append's subplans */
	MemoryContext cxt;			/* of all this; NULL: kept until the feed ends */
} HeapTable;

typedef struct HeapFeed
{
	Feed		base;
	PlanState  *child;
	ResultState *result;		/* child, if it only projects an Append */
	AppendState *append;		/* that, or child; or NULL */
	HeapTable **tables;			/* [subplan of append]; [0] without */
	HeapTable  *table;			/* being read */
	int			nkept;
	ExprContext *econtext;
	Batch		batch;
	HeapOutput *outputs;
	bool		constants_done;
	bool		begun;
	bool		done;
	HeapPage	page;
	int			next_tuple;		/* of the page */
	int			slice;			/* tuples to take at a time: few where values are long */
	HeapRows	rows;
	HeapTupleData tuple;		/* for core's evaluator */
	Arena		arena;
	MemoryContext cxt;
} HeapFeed;

/* Has the batch as many bytes as it may? */
static inline bool
heap_batch_is_full(const HeapFeed *feed)
{
	return feed->arena.bytes >= BATCH_BYTES;
}

/* heap_refusal.c: the Append, under the projection if there is one; or NULL. */
extern AppendState *heap_find_append(PlanState *child);

extern HeapTable *heap_table_create(HeapFeed *feed, SeqScanState *node);

extern int	heap_store_outputs(HeapFeed *feed, HeapTable *table);
extern void heap_store_constants(HeapFeed *feed);

#endif							/* GPUAGG_FEED_HEAP_H */
