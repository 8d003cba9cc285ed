/*
 * aggcall.h
 *	  Helpers of transition and combine functions.
 */
#ifndef GPUAGG_AGGCALL_H
#define GPUAGG_AGGCALL_H

#include "postgres.h"

#include "fmgr.h"

/*
 * Returns the memory context of the aggregate's states. Raises an error if the caller is no
 * aggregate.
 */
static inline MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext cxt;

	if (!AggCheckCallContext(fcinfo, &cxt))
		elog(ERROR, "aggregate function called in non-aggregate context");
	return cxt;
}

/* Returns argument i, an aggregate's state; NULL if it is NULL. */
static inline void *
aggregate_state(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : PG_GETARG_POINTER(i);
}

/* Returns the state in argument 0 unchanged, for rows that do not count. */
#define RETURN_STATE_UNCHANGED() \
	do \
	{ \
		if (PG_ARGISNULL(0)) \
			PG_RETURN_NULL(); \
		PG_RETURN_DATUM(PG_GETARG_DATUM(0)); \
	} while (0)

/*
 * Does what a transition function does for a state that is not NULL, and owned by the caller, and
 * the arguments after the state. Returns false, and changes nothing, if the function itself must
 * be called. Leaves no memory in the current context.
 */
typedef bool (*AggStep)(Datum state, const NullableDatum *args);

/* Does the same for n rows of an aggregate with one argument, whose values are not NULL. */
typedef bool (*AggSteps)(Datum state, const Datum *values, int n);

#endif /* GPUAGG_AGGCALL_H */
