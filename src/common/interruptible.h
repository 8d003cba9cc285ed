/*
 * interruptible.h
 *	  Loops over so many elements that they must look for interrupts, but do too little with each to
 * look every time.
 */
#ifndef GPUAGG_INTERRUPTIBLE_H
#define GPUAGG_INTERRUPTIBLE_H

#include "postgres.h"

#include "miscadmin.h"

/* Steps of some nanoseconds each, between two checks. */
#define INTERRUPTIBLE_STEPS ((int64) 1 << 20)

static inline void
check_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

/*
 * operators/select.h, which knows nothing of PostgreSQL, looks as well where this file is included
 * before.
 */
#define SELECT_CHECK() check_interrupts()

/*
 * for (int64 i = from; i < n; i++), of which the inner loop is as simple as without checks; `break`
 * leaves that one alone.
 */
#define INTERRUPTIBLE_FOR(i, from, n) \
	for (int64 i = (from), i##_end = 0; i < (n);) \
		for (check_interrupts(), i##_end = Min(i + INTERRUPTIBLE_STEPS, (n)); i < i##_end; i++)

#endif /* GPUAGG_INTERRUPTIBLE_H */
