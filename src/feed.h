/*
 * feed.h
 *	  Feeds: they make batches of the rows of a plan.
 *
 * A feed fills the columns of AggSpec.cols with rows that pass the query's WHERE clause. It does
 * not depend on engines. Functions raise errors with ereport; pins and files are released by the
 * resource owner then.
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
 * What a feed has read of tables by way of the column cache, for EXPLAIN ANALYZE. All numbers are
 * blocks, except resident_tables.
 */
typedef struct FeedStats
{
	uint64 blocks;          /* blocks of these tables */
	uint64 cached;          /* rows came from the cache, or were taken by the engine */
	uint64 by_map;          /* cached, and proved by the visibility map */
	uint64 by_lsn;          /* cached, and proved by the page's LSN */
	uint64 skipped;         /* cached, and skipped, as a column's bounds refute a condition */
	uint64 stale;           /* cached, but changed since */
	uint64 built;           /* added to the cache */
	uint64 resident;        /* cached, and taken by the engine by reference */
	uint64 resident_tables; /* number of tables of which the engine has taken rows */
} FeedStats;

typedef struct FeedOps
{
	/*
	 * Returns the next batch, which the feed owns and overwrites with the next call; NULL at the
	 * end.
	 */
	Batch *(*next)(Feed *feed);
	/*
	 * Called before the first batch, repeatedly: offers the cached rows of the next table to an
	 * engine that has copies of their columns (feed/heap_resident.h). Rows that the engine takes
	 * are not in any batch. Returns NULL if there are no more tables; *why is then the last reason
	 * against a table, if there was one. The member is NULL for feeds that offer nothing.
	 */
	struct FeedResident *(*resident)(Feed *feed, const char **why);
	/* Starts again with the first row. */
	void (*rescan)(Feed *feed);
	/* Releases pins, slots and memory. Errors skip this call, so nothing may depend on it alone. */
	void (*end)(Feed *feed);
	/* Prints the "Feed" lines of EXPLAIN. stats: sum over all participants, or NULL. */
	void (*explain)(Feed *feed, const FeedStats *stats, ExplainState *es);
} FeedOps;

/*
 * The order in which core runs the inner sides of the joins below a feed: a list of lists.  Joins
 * have numbers, from 0 at the scan upwards.
 */
typedef enum CoreJoins
{
	CORE_HASH_JOINS,  /* joins that core hashes, from the topmost one of core's plan down, */
	CORE_INNER_FIRST, /* and those of them whose inner side runs before an outer row is fetched */
	CORE_INNER_SIDES  /* [join] the same of its inner side, or NIL */
} CoreJoins;

struct Feed
{
	const FeedOps *ops;
	Batch *batch; /* the batch that next() fills, for EngineOps.bind_buffers; or NULL */
	uint64 rows;  /* rows delivered since the last rescan */
	uint64 batches;
	FeedStats stats; /* counts since the feed was opened */
	/*
	 * Set by the owner after opening: where it has the FeedShared, which a rescan may replace, or
	 * NULL.
	 */
	struct FeedShared **shared;
	struct ExprSubplans *subplans; /* set by the owner after opening; outlives the feed */
	/* Set by the owner after opening: by CoreJoins; NIL if nothing is known. */
	const List *core_joins;
	bool guarded; /* set by the owner after opening: some rows may be hidden from the user */
};

/*
 * Opens the feed over a child plan, in the current memory context.  The plan's input i
 * (ColumnSpec.input) is column resnos[i] of the child.  If that is 0, it is constants[i], which is
 * evaluated in econtext before the first row.
 * pages: tables are read by their pages and from the column cache, and groups of other scans as
 * arrays, without the executor, which feed_pages_unsupported_reason() must allow; false: rows come
 * from ExecProcNode(child).
 * volatile_query: the query calls a volatile function somewhere, maybe in a subplan.
 */
extern Feed *feed_open(PlanState *child, bool pages, bool volatile_query, const AggSpec *spec,
					   const int *resnos, ExprState **constants, ExprContext *econtext,
					   int batch_rows);
/* Returns why the tables of a child plan cannot be read by their pages; NULL if they can. */
extern const char *feed_pages_unsupported_reason(PlanState *child, bool volatile_query);
/* Returns whether the rows of a child plan are groups of another scan, if pages can be read. */
extern bool feed_reads_groups(PlanState *child);
/*
 * Prints the "Feed" lines of EXPLAIN, for a feed that need not be open.  pages, volatile_query: as
 * in feed_open(); stats: sum over all participants; NULL if nothing has been read.
 */
extern void feed_describe(PlanState *child, bool pages, bool volatile_query, const FeedStats *stats,
						  ExplainState *es);

/*
 * Groups of a custom scan, which are rows of the feed above it.  Row i is at which[i] in the
 * arrays: its column c is values[which[i] * ncols + c].  Columns are those of the scan's tuples,
 * before its projection.  All is valid until the next call for the same scan.
 */
#define GROUP_ROWS 256

typedef struct GroupRows
{
	int n; /* 0: there are no more */
	int ncols;
	const Datum *values;
	const bool *nulls;
	uint16 which[GROUP_ROWS];
} GroupRows;

/* What the owner of such scans lets feeds do with them. */
typedef struct GroupScanOps
{
	/* Returns whether a node is such a scan. */
	bool (*is_scan)(PlanState *node);
	/* Returns the next groups that pass HAVING, in place of ExecProcNode(). */
	void (*next)(PlanState *node, GroupRows *rows);
} GroupScanOps;

/* Feeds read groups by these functions from now on.  The struct must stay in place. */
extern void feed_set_group_scans(const GroupScanOps *ops);

/*
 * What participants of a parallel plan share about the feed, in shared memory.  The leader
 * initializes it, and decides for all: pages as in feed_open().  It resets it for a rescan, when
 * all others have ended; area: es_query_dsa.
 */
typedef struct FeedShared FeedShared;

extern Size feed_shared_size(PlanState *child);
extern void feed_shared_init(FeedShared *shared, PlanState *child, bool pages, bool volatile_query);
extern void feed_shared_reset(FeedShared *shared, struct dsa_area *area);
/*
 * Makes the leader's choices those of an earlier FeedShared for the same plan: a feed that is open
 * stays as it is.
 */
extern void feed_shared_copy_choices(FeedShared *shared, const FeedShared *from);
/* Returns whether the participants read tables by their pages. */
extern bool feed_shared_pages(const FeedShared *shared);

#endif /* GPUAGG_FEED_H */
