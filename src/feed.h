/*
 * feed.h
 *	  Where batches come from.
 *
 * A feed fills the columns of AggSpec.cols with rows that passed the query's
 * WHERE clause.  It knows nothing of engines.
 */
#ifndef GPUAGG_FEED_H
#define GPUAGG_FEED_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "batch.h"
#include "common/compat.h"
#include "spec.h"

typedef struct Feed Feed;

/*
 * What a feed has read of heap tables by way of the column cache, for EXPLAIN ANALYZE; in blocks.
 */
typedef struct FeedStats
{
	uint64 blocks;          /* of tables that were read so */
	uint64 cached;          /* whose rows came from the cache; proved by: */
	uint64 by_map;          /* the visibility map */
	uint64 by_lsn;          /* the page's LSN */
	uint64 skipped;         /* of the cached ones: the bounds of a column refute a condition */
	uint64 stale;           /* are in the cache, but have changed since */
	uint64 built;           /* were put into the cache */
	uint64 resident;        /* of the cached ones: whose rows the engine took by name */
	uint64 resident_tables; /* of which there were such rows */
} FeedStats;

typedef struct FeedOps
{
	/* Fills *batch (owned by the feed) and returns it; NULL at the end. */
	Batch *(*next)(Feed *feed);
	/*
	 * May be NULL.  Before the first batch, table by table: what an engine needs to take rows of
	 * the column cache by name (feed/heap_resident.h), which the feed does not deliver then; NULL
	 * if there are no more, with the last reason against a table, if there was one.
	 */
	struct FeedResident *(*resident)(Feed *feed, const char **why);
	/* Starts over. */
	void (*rescan)(Feed *feed);
	/* Releases pins, slots and memory; errors skip it, so nothing may depend on it alone. */
	void (*end)(Feed *feed);
	/* Adds the "Feed" line(s); stats are those of all participants, or NULL. */
	void (*explain)(Feed *feed, const FeedStats *stats, ExplainState *es);
} FeedOps;

struct Feed
{
	const FeedOps *ops;
	Batch *batch; /* that next() fills, for EngineOps.bind_buffers; or NULL */
	uint64 rows;  /* delivered since the last rescan */
	uint64 batches;
	FeedStats stats;               /* since it was opened */
	struct ExprSubplans *subplans; /* set by the owner after opening; outlives the feed */
	bool guarded;                  /* set by the owner too: some rows may be hidden from the user */
};

/*
 * Opens the feed over a child plan, in the current memory context.  Input i of ColumnSpec is column
 * resnos[i] of the child, or, where that is 0, constants[i], which is evaluated in econtext before
 * the first row.
 * pages: tables are read by their pages and from the column cache, without the executor, which
 * feed_pages_unsupported_reason() must allow; false: rows come from ExecProcNode(child).
 * volatile_query: the query calls a volatile function somewhere, maybe in a subplan.
 */
extern Feed *feed_open(PlanState *child, bool pages, bool volatile_query, const AggSpec *spec,
					   const int *resnos, ExprState **constants, ExprContext *econtext,
					   int batch_rows);
/* Returns why the tables of a child plan cannot be read by their pages; NULL if they can. */
extern const char *feed_pages_unsupported_reason(PlanState *child, bool volatile_query);
/*
 * Prints the "Feed" lines of EXPLAIN, for a feed that need not be open.  pages: as in feed_open();
 * stats: of all participants; NULL if nothing has been read.
 */
extern void feed_describe(PlanState *child, bool pages, const FeedStats *stats, ExplainState *es);

#endif /* GPUAGG_FEED_H */
