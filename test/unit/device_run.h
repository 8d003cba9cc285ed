/*
 * device_run.h
 *	  A query of cases.h by three participants through the device layer, for tests of it over the
 * stub.
 */
#ifndef GPUAGG_UNIT_DEVICE_RUN_H
#define GPUAGG_UNIT_DEVICE_RUN_H

#include "cuda/cases.h"
#include "device_cuda/device_internal.h"

#define PARTICIPANTS 3
#define BUFFER_BYTES (1 << 20)

typedef struct Run
{
	const Case *c;
	SharedQuery *query[PARTICIPANTS];
	Lane *lane[PARTICIPANTS];
	char *arena[PARTICIPANTS];
	bool opened;
	uint32_t taken; /* batches, a bit each */
	DeviceStatus status;
	DeviceError error;
	WireFinished finished;
	char *groups; /* key and states of each, by key */
	size_t group_bytes;
} Run;

/* Runs the batches of `wanted`; those taken are in run->taken.  The groups are malloc'ed. */
extern void run_query(Run *run, const Case *c, uint32_t wanted);
/* Bytes in the device's budget. */
extern uint64_t run_used(void);
/* The first two slots of the groups are those of the batches taken. */
extern void run_check_sums(const Run *run, const char *what);
/* A run that ended well: its groups are those of a run without faults over the batches taken. */
extern void run_check_right(const Run *run, const Run *whole, const char *what);

#endif /* GPUAGG_UNIT_DEVICE_RUN_H */
