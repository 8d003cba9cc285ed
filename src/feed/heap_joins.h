/*
 * heap_joins.h
 *	  Joins between the feed's child and the scan below: lookups in place of core's hash joins.
 *
 * The child is a HashJoin, whose outer side is another HashJoin or the scan.  These nodes are not
 * executed.  The plan of each inner side is run once, and its rows become a lookup (lookup.h).
 * Then each row of the scan finds its rows in the first lookup, in the second one, and so on.  It
 * is repeated if there are several (heap_join_many.c).
 *
 * The quals of a table (HeapTable.quals) are those of its scan, and then, for each join from the
 * scan upwards, a probe followed by the conditions of the join.  The condition in the ON clause of
 * an outer, semi or anti join is one of them, although it decides which matches count.  Targets of
 * the joins and of the scan are merged, so that all expressions are over columns of the table and
 * of lookups.  In an ExprSet, columns of lookups have the numbers after those of the table.
 */
#ifndef GPUAGG_FEED_HEAP_JOINS_H
#define GPUAGG_FEED_HEAP_JOINS_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "expr/expr.h"
#include "feed.h"
#include "feed/lookup.h"

struct HeapFeed;
struct HeapTable;

/* The joins of a feed. */
typedef struct HeapJoins HeapJoins;
/* How one table is joined. */
typedef struct HeapTableJoins HeapTableJoins;

/* ---- heap_joins.c ------------------------------------------------------------------ */

/* Returns the scan below the joins, or the node itself if it is no join. */
extern PlanState *heap_below_joins(PlanState *child);
/*
 * Returns why the joins down to the scan cannot be lookups; NULL if they can.  volatile_query: as
 * passed to feed_open()
 */
extern const char *heap_joins_unsupported_reason(PlanState *child, bool volatile_query);

/* Prepares the joins of a feed, in the current memory context; NULL if the child is no join. */
extern HeapJoins *heap_joins_create(PlanState *child);

/*
 * Returns whether the keys of a join are columns of its inner side, so that a feed of its own can
 * deliver them.
 */
extern bool heap_joins_has_column_keys(const HashJoinState *node);
/* Returns the plan of the inner side of join j; NULL if there are fewer joins. */
extern PlanState *heap_joins_inner_plan(const HeapJoins *joins, int j);
/*
 * Returns the columns that a feed over the inner side of join j must deliver, and sets *resnos as
 * for feed_open().  Returns NULL if the keys are not columns.
 */
extern AggSpec *heap_joins_inner_spec(HeapJoins *joins, int j, int **resnos);
/* Makes a feed the source of the rows of the inner side of join j. */
extern void heap_joins_set_feed(HeapJoins *joins, int j, Feed *feed);
/* Releases the pins of the feeds of inner sides. */
extern void heap_joins_end(HeapJoins *joins);

/* What heap_joins_begin() returns. */
typedef enum HeapJoinsResult
{
	HEAP_JOINS_READY,
	HEAP_JOINS_EMPTY,  /* there are no rows */
	HEAP_JOINS_EXECUTE /* the lookups cannot be built: the executor must run the joins */
} HeapJoinsResult;

/*
 * Rescans what must be rescanned, and builds the lookups unless they are still valid.  feed: the
 * feed of the joins.  Sets *why, a phrase for EXPLAIN, if the executor must run the joins
 */
extern HeapJoinsResult heap_joins_begin(HeapJoins *joins, const Feed *feed, const char **why);

/* ---- heap_join_inner.c ------------------------------------------------------------- */

/*
 * Makes the joins down to the scan, and the joins of their inner sides, ready for the executor: an
 * earlier feed over the same plan may have run their inner plans.
 */
extern void heap_joins_leave(PlanState *child);

/* ---- heap_join_table.c ------------------------------------------------------------- */

/* Returns the number of the joins' quals: probes and conditions. */
extern int heap_joins_count_quals(const HeapJoins *joins);
/* Returns a row descriptor with the table's columns and those of the lookups. */
extern TupleDesc heap_joins_desc(const HeapJoins *joins, TupleDesc table);
/*
 * Compiles probes and conditions into stages, from table->nscan_quals on.  targets: the target
 * list of the table's scan.
 */
extern void heap_joins_add_quals(struct HeapFeed *feed, struct HeapTable *table, List *targets);
/* Returns column resno of the topmost join as an expression over columns of the ExprSet. */
extern Expr *heap_joins_output(const struct HeapFeed *feed, const struct HeapTable *table,
							   int resno);
/* Returns whether an expression reads columns of lookups. */
extern bool heap_joins_reads_lookups(const struct HeapFeed *feed, Node *expr);
/* Ends the preparation of a table, after its outputs have been compiled. */
extern void heap_joins_end_table(struct HeapFeed *feed, struct HeapTable *table);
/* Adds the columns of the table that the keys of probes read to *attnos. */
extern void heap_joins_add_attnos(const struct HeapTable *table, Bitmapset **attnos);

/* Fills the columns of lookups that a stage is the first to read. */
extern void heap_joins_fill(struct HeapFeed *feed, struct HeapTable *table, int stage);
/*
 * Probes the lookup of a stage, which has run, for the rows at hand.  Sets sel to the indexes of
 * the rows that remain and returns their number.
 */
extern int heap_joins_probe(struct HeapFeed *feed, struct HeapTable *table, int stage, uint16 *sel);
/* Returns whether a stage evaluates the condition of a join that settles. */
extern bool heap_joins_stage_settles(const struct HeapFeed *feed, const struct HeapTable *table,
									 int stage);
/*
 * Settles the join of such a stage.  sel: the indexes of the npassed rows that pass its condition.
 * Sets sel to the indexes of the rows that remain and returns their number.
 */
extern int heap_joins_settle_stage(struct HeapFeed *feed, const struct HeapTable *table, int stage,
								   uint16 *sel, int npassed);
/*
 * Counts the rows that a stage has removed, if it is a condition of a join, for EXPLAIN ANALYZE.
 * If the stage is the last one of a join below the topmost one, the rows that the join has returned
 * are counted, too.
 */
extern void heap_joins_count_rows(struct HeapFeed *feed, const struct HeapTable *table, int stage,
								  int removed);
/* Keeps what has been found for the rows with the indexes sel[0 .. n - 1]. */
extern void heap_joins_keep(struct HeapFeed *feed, const uint16 *sel, int n);
/*
 * Repeats rows after the probe of a stage if they have several matches.  Sets sel to the index of
 * the row that each row was, and returns their number, or -1 if no row has several matches.
 */
extern int heap_joins_expand_stage(struct HeapFeed *feed, const struct HeapTable *table, int stage,
								   uint16 *sel);
/*
 * Makes the joined row the scan tuple of core's evaluator: columns of lookups, and the table's
 * columns that `from` has.  Before the first probe the scan tuple remains as it is.
 */
extern void heap_joins_load_row(struct HeapFeed *feed, struct HeapTable *table,
								TupleTableSlot *from, int row);
/* Returns whether a vector is a column of a lookup. */
extern bool heap_joins_is_column(const struct HeapTable *table, const Vec *vec);
/*
 * Sets the codes of n rows of output c, from row `at` of the batch on, whose values are those of a
 * lookup's by-reference column.  Returns false if the values are long, so that they must be copied.
 */
extern bool heap_joins_store_codes(struct HeapFeed *feed, int c, const Vec *vec, int at, int n);

/*
 * Adds what the step has counted to the counters of EXPLAIN ANALYZE.  n: tuples that the step has
 * completed.  Returns the number of rows that have passed the conditions of the scan.
 */
extern int heap_joins_count_step(struct HeapFeed *feed, const struct HeapTable *table, int n);
/* Returns the joins in the order in which a table probes them. */
extern const int *heap_joins_table_order(const struct HeapTable *table);
/*
 * Describes the joins of a table in the offer of its rows, whose memory context is the current one.
 * Returns NULL, or why they cannot be offered.
 */
extern const char *heap_joins_offer(const struct HeapFeed *feed, const struct HeapTable *table,
									struct FeedResident *resident);
/*
 * Makes the joins whose lookups the cached rows of a table must be found in known to the cache
 * (HeapCached.probes).
 */
extern void heap_joins_set_cached_probes(const struct HeapFeed *feed, struct HeapTable *table);

/* ---- heap_join_order.c --------------------------------------------------------------- */

/* Begins with the plan's order. */
extern void heap_joins_init_order(HeapJoins *joins);
/*
 * Restores the plan's order if the lookups that have been built need it.  Returns whether the order
 * has changed, so that tables must be compiled again.
 */
extern bool heap_joins_restore_order(HeapJoins *joins);
/*
 * Called between steps: returns whether another order of probes is clearly cheaper, and sets it.
 * Tables that are compiled from now on have it.
 */
extern bool heap_joins_change_order(struct HeapFeed *feed);
/* Takes the change back, because the table cannot be compiled again. */
extern void heap_joins_keep_order(struct HeapFeed *feed);

/* Counts rows that a node has returned, for EXPLAIN ANALYZE. */
extern void heap_joins_count(PlanState *node, int rows);

/* ---- heap_join_many.c -------------------------------------------------------------- */

/* Returns whether steps can be cut whatever the chains of the lookups, which are built. */
extern bool heap_joins_can_be_cut(const HeapJoins *joins);
/* Begins a scan: no step has been cut. */
extern void heap_joins_reset_cut(HeapJoins *joins);
/* Returns how many tuples are likely to become at most `room` rows. */
extern int heap_joins_step_tuples(const struct HeapFeed *feed, int room);
/*
 * Begins a step, or begins it again: no lookup has been probed for the rows at hand.  room: rows
 * for which the batch has room
 */
extern void heap_joins_begin_step(struct HeapFeed *feed, int room);
/* Returns how many of the n tuples of a step it has completed. */
extern int heap_joins_cut_tuples(const struct HeapFeed *feed, int n);
/* Cuts the step after row i at hand. */
extern void heap_joins_cut_after(struct HeapFeed *feed, int i);
/* Ends a step that has completed n tuples. */
extern void heap_joins_end_step(struct HeapFeed *feed, int n);
/* Finds all matches of the rows at hand, see heap_joins_expand_stage(). */
extern int heap_joins_find_matches(struct HeapFeed *feed, int j, uint16 *sel);
/* Repeats what joins below join j have found for the rows at hand. */
extern void heap_joins_expand(struct HeapFeed *feed, int j, const uint16 *sel, int n);
/* Settles join j, see heap_joins_settle_stage(). */
extern int heap_joins_settle(struct HeapFeed *feed, int j, uint16 *sel, int npassed);

#endif /* GPUAGG_FEED_HEAP_JOINS_H */
