/*
 * grouping_internal.h
 *	  What grouping_sets.c, grouping_children.c and grouping_exchange.c share.
 */
#ifndef GPUAGG_GROUPING_INTERNAL_H
#define GPUAGG_GROUPING_INTERNAL_H

#include "postgres.h"

#include "composite/grouping_sets.h"

/* The engine of one set, or of several equal sets. */
typedef struct SetEngine
{
	struct GroupingEngine *grouping;
	int number; /* in AggSpec.sets: the first of equal ones */
	int times;  /* how often its groups are returned */
	int parent; /* index in GroupingEngine.sets of the set whose groups it is made from; -1: rows */
	AggSpec spec;
	int *key_of; /* [key of the query] key of this set, or -1 */
	/* With a parent: open only from the parent's groups to the end of its own, or in parts. */
	Engine *engine;
	int first_section; /* where its groups begin in partitioned exports (EngineOps.sections) */
	EngineStats stats; /* valid if done */
	bool done;         /* its groups were returned */
	bool absent;       /* it has no group in this part */
} SetEngine;

typedef struct GroupingEngine
{
	CompositeEngine composite; /* must be first; its engines are those that get rows */
	OpenEngine open;
	int nsets;
	SetEngine *sets;       /* each after its parent */
	SetEngine *row_engine; /* one that gets rows */
	int nsections;
	bool in_parts; /* merges parts of the groups of all participants */

	/* Groups out. */
	bool finished;       /* the input has ended */
	int current;         /* set whose groups are returned */
	bool begun;          /* its engine is finished */
	int repeats;         /* how often `groups` are to be returned again */
	GroupBatch groups;   /* groups of the current set with all keys of the query */
	GroupBatch combined; /* the same groups with the keys of a subset */
	Datum *absent;       /* values and null flags of keys that are not in the set */
	bool *absent_nulls;
	int absent_capacity; /* groups */
} GroupingEngine;

/* ---- grouping_children.c --------------------------------------------------------------- */

/*
 * Opens the engine of a set, whose memory limits and estimates depend on the set.  `parts`: its
 * groups are exchanged with other participants.
 */
extern void grouping_open_set(GroupingEngine *grouping, const EngineOps *ops, SetEngine *set,
							  bool parts);
/* Opens the engines of the current set's children.  Returns whether there are any. */
extern bool grouping_open_children(GroupingEngine *grouping, bool parts);
/* Adds groups of the current set to the engines of its children. */
extern void grouping_combine(GroupingEngine *grouping, const GroupBatch *groups);
/* Closes the engine of a set with a parent, if it is open. */
extern void grouping_close_child(SetEngine *set);

/* ---- grouping_exchange.c ------------------------------------------------------------ */

/* Sets the callbacks for parallel plans. */
extern void grouping_set_parallel_callbacks(GroupingEngine *grouping);
/* Numbers the sections, and offers to merge parts if the engines that get rows do. */
extern void grouping_offer_parts(GroupingEngine *grouping);

#endif /* GPUAGG_GROUPING_INTERNAL_H */
