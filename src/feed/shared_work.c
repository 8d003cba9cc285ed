/*
 * shared_work.c
 *
 * Work that one participant of a parallel plan does for all; see shared_work.h.
 */
#include "postgres.h"

#include "feed/shared_work.h"

void
shared_work_init(SharedWork *work)
{
	SpinLockInit(&work->mutex);
	work->phase = SHARED_WORK_INITIAL;
	ConditionVariableInit(&work->done);
}

void
shared_work_reset(SharedWork *work)
{
	work->phase = SHARED_WORK_INITIAL;
}

bool
shared_work_begin(SharedWork *work, uint32 wait_event)
{
	SharedWorkPhase phase;

	for (;;)
	{
		SpinLockAcquire(&work->mutex);
		phase = work->phase;
		if (phase == SHARED_WORK_INITIAL)
			work->phase = SHARED_WORK_BEGUN;
		SpinLockRelease(&work->mutex);
		if (phase != SHARED_WORK_BEGUN)
			break;
		ConditionVariableSleep(&work->done, wait_event);
	}
	ConditionVariableCancelSleep();
	return phase == SHARED_WORK_INITIAL;
}

void
shared_work_end(SharedWork *work)
{
	SpinLockAcquire(&work->mutex);
	work->phase = SHARED_WORK_DONE;
	SpinLockRelease(&work->mutex);
	ConditionVariableBroadcast(&work->done);
}
