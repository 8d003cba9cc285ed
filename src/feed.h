/*
 * feed.h
 *	  Feeds: they read rows and fill batches.
 *
 * A feed fills the columns of AggSpec.cols with rows that passed the query's WHERE clause.  It is
 * independent of the engine that reduces the batches.
 */
#ifndef GPUAGG_FEED_H
#define GPUAGG_FEED_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "batch.h"
#include "common/compat.h"
#include "spec.h"

typedef struct Feed Feed;

/* How a feed used the column cache, for EXPLAIN ANALYZE.  Numbers of blocks, but for the last. */
typedef struct FeedStats
{
	uint64 blocks;          /* blocks of tables that were read with the cache */
	uint64 cached;          /* whose rows came from the cache, which was proved current by */
	uint64 by_map;          /* - the visibility map */
	uint64 by_lsn;          /* - the page's LSN */
	uint64 skipped;         /* cached ones in which a column's bounds refute a condition */
	uint64 stale;           /* in the cache, but changed since */
	uint64 built;           /* put into the cache */
	uint64 resident;        /* cached ones whose rows are cached on the engine's device, too */
	uint64 resident_tables; /* tables with such blocks */
} FeedStats;

typedef struct FeedOps
{
	const char *name; /* as in gpuagg.feed */

	/* Returns the next batch, which the feed owns; NULL at the end. */
	Batch *(*next)(Feed *feed);
	/*
	 * May be NULL.  Called before the first batch, once for each table.  Returns what an engine
	 * needs to reduce rows that are cached on its device (feed/heap_resident.h).  The feed does not
	 * deliver the rows that the engine takes.  Returns NULL after the last table; *why is then the
	 * last reason against a table, if there was one.
	 */
	struct FeedResident *(*resident)(Feed *feed, const char **why);
	/* Reads all rows again. */
	void (*rescan)(Feed *feed);
	/* Releases pins, slots and memory.  Errors skip it, so reset callbacks must do the same. */
	void (*end)(Feed *feed);
	/* Prints the "Feed" lines; stats are those of all participants, or NULL. */
	void (*explain)(Feed *feed, const FeedStats *stats, ExplainState *es);
} FeedOps;

struct Feed
{
	const FeedOps *ops;
	Batch *batch; /* the one that next() fills, for EngineOps.bind_buffers; may be NULL */
	uint64 rows;  /* delivered since the last rescan */
	uint64 batches;
	FeedStats stats;               /* since it was opened */
	struct ExprSubplans *subplans; /* set by the owner after opening; outlives the feed */
	bool guarded;                  /* set by the owner: some rows may be hidden from the user */
};

/*
 * Opens a feed of rows from any child plan.  Input i of ColumnSpec is column resnos[i] of the
 * child. If resnos[i] is 0, it is constants[i], which is evaluated in econtext before the first
 * row. Everything is allocated in the current memory context.
 */
extern Feed *feed_tuples_open(PlanState *child, const AggSpec *spec, const int *resnos,
							  ExprState **constants, ExprContext *econtext, int batch_rows);

/*
 * Opens a feed that reads the pages of tables without the executor.  feed_heap_unsupported_reason()
 * must have returned NULL.  volatile_query: something in the query is volatile, perhaps in a
 * subplan. Other arguments are as above.
 */
extern Feed *feed_heap_open(PlanState *child, bool volatile_query, const AggSpec *spec,
							const int *resnos, ExprState **constants, ExprContext *econtext,
							int batch_rows);
/* Returns why the pages under this plan cannot be read without the executor, or NULL. */
extern const char *feed_heap_unsupported_reason(PlanState *child, bool volatile_query);
/* Prints the "Feed" lines of such a feed that is not open; stats may be NULL. */
extern void feed_heap_describe(PlanState *child, const FeedStats *stats, ExplainState *es);

#endif /* GPUAGG_FEED_H */
