/*
 * agg_tally.h
 *	  Aggregates whose states can be made of the distinct values of a group and the number of rows
 *	  of each.
 *
 * An engine that has sorted and counted the values calls these functions in place of a transition
 * function for each row.  The state is the one that the transition function would have made, or
 * one with the same result.
 */
#ifndef GPUAGG_AGG_TALLY_H
#define GPUAGG_AGG_TALLY_H

#include "postgres.h"

#include "fmgr.h"

typedef struct AggTally
{
	/*
	 * Returns whether states can be made with this value of the last argument, which is a constant.
	 * NULL: the aggregate has no argument but the values.
	 */
	bool (*takes)(Datum constant);
	/* Returns a new state in cxt, without rows. type, collation: of the values */
	void *(*create)(MemoryContext cxt, Oid type, Oid collation, Datum constant);
	/*
	 * Adds so many rows with a value, which is copied.  Values come once each, in ascending order.
	 */
	void (*add)(void *state, Datum value, int64 count);
	/* Adds so many rows with NULL.  NULL: the aggregate skips them. */
	void (*add_nulls)(void *state, int64 count);
	/*
	 * Returns the bytes that a state with so many distinct values takes at most, without values by
	 * reference.
	 */
	size_t (*bytes)(Datum constant, int64 values);
	/* Values may be of types without 64-bit codes. They then come in any order. */
	bool any_type;
	/*
	 * For states that do not tell all values apart, of doubles; else NULL. narrow() is called with
	 * some of the values of a group of so many rows, all of whose values will be added: bins become
	 * as wide as these need. It may be called again with more. Then all rows from a value, which
	 * `from` rows come before, to another one, which `to` rows come before, may be added as rows
	 * with the first value, if in_one_bin(); the last one is not among them.
	 */
	void (*narrow)(void *state, const double *values, int64 n, int64 rows);
	bool (*in_one_bin)(void *state, double first, int64 from, double last, int64 to);
	/* States that are made so have the right result, but cannot be combined with others. */
	bool only_results;
} AggTally;

/* Returns how states of the transition function's aggregate are made of counts, or NULL. */
extern const AggTally *agg_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_AGG_TALLY_H */
