/*
 * heap_joins_internal.h
 *	  What the files of joins share (heap_join*.c, heap_explain.c).
 */
#ifndef GPUAGG_FEED_HEAP_JOINS_INTERNAL_H
#define GPUAGG_FEED_HEAP_JOINS_INTERNAL_H

#include "portability/instr_time.h"

#include "analysis/analysis.h"
#include "feed/heap_joins.h"

/* What EXPLAIN ANALYZE counts of a join. */
typedef struct HeapJoinCounts
{
	int probed;
	int found;
	int returned; /* not of the topmost join */
	int removed;  /* by conditions of the ON clause, */
	int filtered; /* and of the WHERE clause */
} HeapJoinCounts;

/* One join. */
typedef struct HeapJoin
{
	HashJoinState *node;
	HashState *hash; /* its inner side */
	JoinType type;
	Lookup lookup;
	bool executed;      /* the inner plan may have run since it was rescanned last */
	bool built;         /* the lookup is valid unless the inner plan must be rescanned */
	bool noticed;       /* somebody may notice whether the inner plan runs */
	bool outer_noticed; /* somebody may notice whether the outer side is read */
	/*
	 * Somebody may notice whether core runs a changed inner plan first, as it does if the outer
	 * side had a row with a key when it was last read (hj_OuterNotEmpty of its hash join).
	 */
	bool watched;
	bool outer_not_empty;

	/*
	 * Expressions over targets of the scan (Vars of OUTER_VAR) and columns of lookups (Vars of
	 * HeapJoins.varno, whose numbers are those of HeapJoins.columns, from 1).
	 */
	List *targets;
	List *keys;
	List *quals; /* conditions beyond the keys, in core's order */

	/* For the order of probes; see heap_join_order.c. */
	Bitmapset *reads; /* joins whose columns the keys and quals read */
	bool quiet;       /* nobody can notice for which rows keys and quals are evaluated */
	uint64 reached;   /* rows that have come to the probe since the last decision, */
	uint64 passed;    /* and how many of them have passed it and the quals */

	/*
	 * A condition of the ON clause of an outer, semi or anti join says which matches count.  It is
	 * the first of `quals`; see heap_join_many.c.
	 */
	bool settles;
	int nconditions; /* how many of `quals` are conditions of the ON clause */

	uint32 rows[EXPR_ROWS];   /* rows of the lookup that the rows at hand have found */
	bool probed_now;          /* the rows at hand have been looked up: `rows` is valid */
	uint16 source[EXPR_ROWS]; /* after expansion: [row at hand] the row that was repeated */
	bool continued;           /* the first of these rows has matches in an earlier step, */
	bool open;                /* and the last one in a later step */
	uint32 resume_row;        /* the row of the lookup with which this step goes on */
	uint32 cut_row;           /* and the next one */
	HeapJoinCounts step;      /* what the step at hand has counted */
	int left;                 /* rows below this join that a cut here has left to the next step */

	/* for EXPLAIN ANALYZE */
	uint64 builds; /* how often this process has built the lookup, */
	instr_time build_time;
	uint64 probed; /* rows that were looked up, */
	uint64 found;  /* and how many of them have found a row of the lookup */
	LookupCells cells;
} HeapJoin;

/* A column of a lookup. */
typedef struct HeapJoinColumn
{
	int join;
	int column; /* index into Lookup.columns; -1: whether a row of the lookup was found */
	bool on;    /* as the ON clause of a join that settles reads it, for each match */
	Oid typid;
	int32 typmod;
	Oid collation;
} HeapJoinColumn;

struct HeapJoins
{
	int n;
	HeapJoin *joins; /* from the scan upwards */
	PlanState *scan;
	int varno; /* see HeapJoin */
	int ncolumns;
	HeapJoinColumn *columns;
	int nprobed;  /* number of joins that the rows at hand have passed through */
	bool watched; /* some join is */

	int *order;    /* [position] joins in the order in which tables are to probe them */
	uint64 window; /* rows of the scan until the next decision about the order */
	int nchanges;  /* how often the order has changed */

	/* see heap_join_many.c */
	int tuples_per_step; /* tuples whose matches are likely to be at most EXPR_ROWS */
	int room;            /* rows that fit into the step at hand */
	bool cut;            /* the step ends before its last row, at cut_tuple and HeapJoin.cut_row */
	int cut_tuple;
	bool cut_matched; /* a match before the cut has passed the condition of a join that settles */
	bool resumes;     /* the step goes on at a cut */
	int resume_tuple;
	bool matched;
};

/* Returns whether a join returns outer rows only if they have a match. */
static inline bool
heap_join_needs_match(const HeapJoin *join)
{
	return join->type == JOIN_INNER || join->type == JOIN_SEMI;
}

/* Returns whether the rows that a join has found are needed after its probe. */
static inline bool
heap_join_keeps_rows(const HeapJoin *join)
{
	return join->lookup.ncolumns > 0 || join->lookup.next != NULL || join->settles;
}

/* ---- heap_join_inner.c --------------------------------------------------------------- */

/* Returns what can be noticed of the inner side of a join. */
extern Notice heap_join_inner_notice(const HashJoinState *node);
/* Sets noticed, outer_noticed and watched of all joins, and of HeapJoins. */
extern void heap_joins_init_notices(HeapJoins *joins);
/* Returns whether, for a watched join, no outer row has come in this scan yet. */
extern bool heap_joins_await_outer_rows(const HeapJoins *joins);
/*
 * Returns whether core, which hashes join j, runs its inner side before it fetches an outer row.
 * core_joins: Feed.core_joins, not NIL
 */
extern bool heap_join_runs_inner_first(const HeapJoins *joins, int j, const List *core_joins);
/* Rescans the inner side of a join if its plan has run before. */
extern void heap_join_rescan_inner(HeapJoin *join);
/* Makes the inner side of a join ready to run again in the same scan, by the executor. */
extern void heap_join_repeat_inner(HeapJoin *join);
/* Returns whether heap_join_has_outer_row() can be called for joins above a scan. */
extern bool heap_join_can_look_ahead(PlanState *scan);
/*
 * Returns whether the outer side of join j has a row, and sets outer_not_empty of the joins up to
 * it.  The executor looks for the row, and the lookups below are valid.
 */
extern bool heap_join_has_outer_row(HeapJoins *joins, int j);

#endif /* GPUAGG_FEED_HEAP_JOINS_INTERNAL_H */
