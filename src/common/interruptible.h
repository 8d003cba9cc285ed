/*
 * interruptible.h
 *	  Loops over many elements that must check for interrupts, but do too little work for each
 *	  element to check every time.
 */
#ifndef GPUAGG_INTERRUPTIBLE_H
#define GPUAGG_INTERRUPTIBLE_H

#include "postgres.h"

#include "miscadmin.h"

/* Steps, of some nanoseconds each, between two checks. */
#define INTERRUPTIBLE_STEPS ((int64) 1 << 20)

/* CHECK_FOR_INTERRUPTS as a function, for use in expressions. */
static inline void
check_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

/*
 * Makes operators/select.h, which does not use PostgreSQL, check as well.  Include this file
 * before.
 */
#define SELECT_CHECK() check_interrupts()

/*
 * for (int64 i = from; i < n; i++) with checks.  The inner loop is as simple as a loop without
 * checks. `break` leaves only the inner loop.
 */
#define INTERRUPTIBLE_FOR(i, from, n) \
	for (int64 i = (from), i##_end = 0; i < (n);) \
		for (check_interrupts(), i##_end = Min(i + INTERRUPTIBLE_STEPS, (n)); i < i##_end; i++)

#endif /* GPUAGG_INTERRUPTIBLE_H */
