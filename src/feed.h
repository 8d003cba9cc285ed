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

typedef struct FeedOps
{
	const char *name;			/* as in gpuagg.feed */

	/* Fills *batch (owned by the feed) and returns it; NULL at the end. */
	Batch	   *(*next) (Feed *feed);
	/* Starts over. */
	void		(*rescan) (Feed *feed);
	/* Releases pins, slots and memory; errors skip it, so nothing may depend on it alone. */
	void		(*end) (Feed *feed);
	/* Adds the "Feed" line(s). */
	void		(*explain) (Feed *feed, ExplainState *es);
} FeedOps;

struct Feed
{
	const FeedOps *ops;
	Batch	   *batch;			/* that next() fills, for EngineOps.bind_buffers; or NULL */
	uint64		rows;			/* delivered since the last rescan */
	uint64		batches;
	struct ExprSubplans *subplans;	/* set by the owner after opening; outlives the feed */
};

/*
 * Rows from any child plan.  Input i of ColumnSpec is column resnos[i] of the child, or,
 * where that is 0, constants[i], which is evaluated in econtext before the first row.
 * Everything is allocated in the current memory context.
 */
extern Feed *feed_tuples_open(PlanState *child, const AggSpec *spec, const int *resnos,
							  ExprState **constants, ExprContext *econtext, int batch_rows);

/*
 * Rows from the pages of tables, without the executor; arguments as above.  The
 * caller has checked that feed_heap_refusal returns NULL, not a reason against it;
 * volatile_query: something in the query is volatile, maybe in a subplan.
 */
extern Feed *feed_heap_open(PlanState *child, const AggSpec *spec, const int *resnos,
							ExprState **constants, ExprContext *econtext, int batch_rows);
extern const char *feed_heap_refusal(PlanState *child, bool volatile_query);
/* The "Feed" line, for EXPLAIN before anything is opened. */
extern void feed_heap_describe(PlanState *child, ExplainState *es);

#endif							/* GPUAGG_FEED_H */
