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
	Batch	   *batch;			/* that next() fills where Column.values says, or NULL */
	uint64		rows;			/* delivered since the last rescan */
	uint64		batches;
	struct ExprSubplans *subplans;	/* set by the owner after opening; outlives the feed */
};

/*
 * Rows from any child plan.  resnos[input] is the child's column of an input;
 * 0 where it is constants[input], evaluated in econtext once there is a row.  Everything lives in the current memory context.
 */
extern Feed *feed_tuples_open(PlanState *child, const AggSpec *spec, const int *resnos,
							  ExprState **constants, ExprContext *econtext, int batch_rows);

/*
 * Rows straight from heap pages, without the executor; arguments as above.
 * Only where feed_heap_refusal, which says why not otherwise, returns NULL;
 * volatile_query: something in the query is volatile, be it in a subplan.
 */
extern Feed *feed_heap_open(PlanState *child, const AggSpec *spec, const int *resnos,
							ExprState **constants, ExprContext *econtext, int batch_rows);
extern const char *feed_heap_refusal(PlanState *child, bool volatile_query);
/* The "Feed" line, for EXPLAIN before anything is opened. */
extern void feed_heap_describe(PlanState *child, ExplainState *es);

#endif							/* GPUAGG_FEED_H */
