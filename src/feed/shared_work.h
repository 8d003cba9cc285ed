/*
 * shared_work.h
 *
 * Work that one participant of a parallel plan does for all: the first one that comes to it. The
 * others wait until it is done.
 *
 * If the one that does it fails, so does the query, and all that wait are interrupted.
 */
#ifndef GPUAGG_FEED_SHARED_WORK_H
#define GPUAGG_FEED_SHARED_WORK_H

#include "postgres.h"

#include "storage/condition_variable.h"
#include "storage/spin.h"

typedef enum SharedWorkPhase
{
	SHARED_WORK_INITIAL, /* no participant has begun */
	SHARED_WORK_BEGUN,   /* one does it, and the others wait */
	SHARED_WORK_DONE
} SharedWorkPhase;

/* Is in shared memory. */
typedef struct SharedWork
{
	slock_t mutex; /* protects phase */
	SharedWorkPhase phase;
	ConditionVariable done;
} SharedWork;

extern void shared_work_init(SharedWork *work);
/* The work is to be done again. No participant does it or waits for it. */
extern void shared_work_reset(SharedWork *work);
/*
 * Returns whether this participant does the work, and must call shared_work_end() then. If not,
 * waits until it is done.
 */
extern bool shared_work_begin(SharedWork *work, uint32 wait_event);
extern void shared_work_end(SharedWork *work);

#endif /* GPUAGG_FEED_SHARED_WORK_H */
