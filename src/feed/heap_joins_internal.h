/*
 * heap_joins_internal.h
 *	  What heap_joins.c and heap_join_table.c share.
 */
#ifndef GPUAGG_FEED_HEAP_JOINS_INTERNAL_H
#define GPUAGG_FEED_HEAP_JOINS_INTERNAL_H

#include "feed/heap_joins.h"

/* One join. */
typedef struct HeapJoin
{
	HashJoinState *node;
	HashState *hash; /* its inner side */
	JoinType type;
	Lookup lookup;
	bool executed; /* the inner plan may have run since it was rescanned last */
	bool built;    /* the lookup is valid unless the inner plan must be rescanned */

	/*
	 * Expressions over targets of the scan (Vars of OUTER_VAR) and columns of lookups (Vars of
	 * HeapJoins.varno, whose numbers are those of HeapJoins.columns, from 1).
	 */
	List *targets;
	List *keys;
	List *quals; /* conditions beyond the keys, in core's order */

	uint32 rows[EXPR_ROWS]; /* rows of the lookup that the rows at hand have found */
	uint64 probed;          /* rows that were looked up, */
	uint64 found;           /* and how many of them have found a row of the lookup */
} HeapJoin;

/* A column of a lookup. */
typedef struct HeapJoinColumn
{
	int join;
	int column; /* index into Lookup.columns */
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
	int nprobed; /* number of joins whose `rows` are valid */
};

#endif /* GPUAGG_FEED_HEAP_JOINS_INTERNAL_H */
