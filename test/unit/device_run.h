/*
 * device_run.h
 *	  Runs a query of cases.h through the device layer over the CUDA stub, and checks its groups.
 *	  Three participants share the query, as parallel workers do.
 */
#ifndef GPUAGG_UNIT_DEVICE_RUN_H
#define GPUAGG_UNIT_DEVICE_RUN_H

#include "cuda/cases.h"
#include "device_cuda/device_internal.h"

#define PARTICIPANTS 3
#define BUFFER_BYTES (1 << 19)

typedef struct QueryRun
{
	const Case *c;
	SharedQuery *query[PARTICIPANTS];
	Lane *lane[PARTICIPANTS];
	char *arena[PARTICIPANTS];
	bool opened;
	uint32_t taken; /* a bit for each batch that was reduced */
	DeviceStatus status;
	DeviceError error;
	WireFinished finished;
	char *groups; /* key and states of each group, sorted by key */
	size_t group_bytes;
} QueryRun;

/* Runs the query with the batches whose bits are set in `wanted`. The caller frees run->groups. */
extern void run_query(QueryRun *run, const Case *c, uint32_t wanted);
/* Returns the bytes that are taken from the device's budget. */
extern uint64_t run_used(void);
/* Checks the first two slots of all groups against the rows of the batches that were reduced. */
extern void run_check_sums(const QueryRun *run, const char *what);
/*
 * Checks a run without failure. Its groups must equal those of a run without faults over the same
 * batches. `whole` is a run without faults over all batches.
 */
extern void run_check_groups(const QueryRun *run, const QueryRun *whole, const char *what);

#endif /* GPUAGG_UNIT_DEVICE_RUN_H */
