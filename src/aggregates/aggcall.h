/*
 * aggcall.h
 *	  What transition and combine functions of aggregates have in common.
 */
#ifndef GPUAGG_AGGCALL_H
#define GPUAGG_AGGCALL_H

#include "postgres.h"

#include "fmgr.h"

/* The memory context of the aggregate's states; an error if no aggregate calls the function. */
static inline MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext cxt;

	if (!AggCheckCallContext(fcinfo, &cxt))
		elog(ERROR, "aggregate function called in non-aggregate context");
	return cxt;
}

/* Returns the state in argument 0 unchanged, for rows that do not count. */
#define RETURN_STATE_UNCHANGED() \
	do \
	{ \
		if (PG_ARGISNULL(0)) \
			PG_RETURN_NULL(); \
		PG_RETURN_DATUM(PG_GETARG_DATUM(0)); \
	} while (0)

#endif /* GPUAGG_AGGCALL_H */
