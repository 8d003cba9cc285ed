/*
 * device.h
 *	  The server's interface to its GPUs: a table of functions.
 *
 * Sessions call devices only through device_ops, which device.c defines.
 *
 * A lane belongs to a connection.  It is a copy stream, and one device buffer for each buffer of
 * the connection's arena.  Several lanes may feed one query.
 *
 * Threads: calls on different lanes and different queries may run at the same time.  The caller
 * serializes the calls on one lane and the calls on one query.
 *
 * Errors: every function that can fail returns a DeviceStatus.  If it is not DEVICE_OK, *error has
 * a text.  After DEVICE_LOST no further call can succeed: the server exits, and its supervisor
 * starts another one.
 *
 * Memory: device memory is accounted for in the server's budget (server/budget.h).
 */
#ifndef GPUAGG_DEVICE_H
#define GPUAGG_DEVICE_H

#include <stdbool.h>
#include <stdio.h>

#include "protocol_status.h"

typedef enum DeviceStatus
{
	DEVICE_OK,
	DEVICE_UNSUPPORTED, /* the device cannot do this; another attempt will not help */
	DEVICE_NO_MEMORY,
	DEVICE_FULL, /* only from reduce and resident; see there */
	DEVICE_LOST  /* the process cannot use its devices any more */
} DeviceStatus;

typedef struct DeviceError
{
	char text[256];
} DeviceError;

/* Stores the text in *error, and returns the status. */
static inline DeviceStatus
device_fail(DeviceError *error, DeviceStatus status, const char *text)
{
	snprintf(error->text, sizeof(error->text), "%s", text);
	return status;
}

struct StoreHold;
typedef struct Lane Lane;
typedef struct DeviceQuery DeviceQuery;

typedef struct DeviceOps
{
	/* Writes the CUDA version and the architectures that the layer was built for, as text. */
	void (*build)(char *text, size_t size);

	/*
	 * Opens the devices named in `list` (device_list.h).  Fills ndevices, devices, nskipped and
	 * skipped of *status, with notes for the log.  DEVICE_UNSUPPORTED: there is no device.
	 */
	DeviceStatus (*start)(const char *list, WireStatus *status, DeviceError *error);

	/*
	 * Sets *bytes to the device memory that this process may have: what it has, and what is free.
	 * Returns false if that cannot be determined.  Gives reserved memory back to other processes,
	 * except for a small rest, if `idle` (no query uses the device), or if more is reserved than
	 * the budget's limit.
	 */
	bool (*available)(int device, bool idle, uint64_t *bytes);

	/* Page-locks host memory, so that copies from it are asynchronous. */
	DeviceStatus (*pin)(void *memory, size_t bytes, DeviceError *error);
	void (*unpin)(void *memory);

	DeviceStatus (*lane_open)(Lane **lane, int device, char *arena, size_t buffer_bytes,
							  int buffers, DeviceError *error);
	void (*lane_close)(Lane *lane);
	/*
	 * Starts copying the arrays of a batch to the device, and sets *bytes to their size.
	 * DEVICE_NO_MEMORY: nothing has happened.
	 */
	DeviceStatus (*copy)(Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error);
	/* Waits until the arena's buffer may be written again; *ms is the time of the copy. */
	DeviceStatus (*copy_wait)(Lane *lane, int buffer, double *ms, DeviceError *error);

	/*
	 * Waits until the lane's rows are reduced.  Sets *kernel_ms to the time of the reductions
	 * since the last call.
	 */
	DeviceStatus (*lane_settle)(Lane *lane, double *kernel_ms, DeviceError *error);

	/* The caller keeps `q` and `thresholds` until query_close. */
	DeviceStatus (*query_open)(DeviceQuery **query, int device, const WireQuery *q,
							   const double *thresholds, DeviceError *error);
	void (*query_close)(DeviceQuery *query);
	/*
	 * Reduces a batch whose copy was started.  The lane's buffer may be reused afterwards.
	 * DEVICE_FULL: there is no room for the groups or the rows of the batch.  None of its rows was
	 * counted, and the query has the groups of the earlier batches.  After any other failure the
	 * query can only be closed.
	 */
	DeviceStatus (*reduce)(DeviceQuery *query, Lane *lane, const WireBatch *batch,
						   DeviceError *error);
	/*
	 * Reduces rows of stored columns.  The query owns `hold` from now on.  It releases the hold
	 * when it does not need the columns any more, at the latest in finish.
	 *
	 * `row_ranges` is followed by the cells of the program's tables that were sent, laid out as in
	 * the message RESIDENT, but in memory that the client cannot change.  The arena's buffer may be
	 * reused at once.  Cells that the hold has are read there.
	 *
	 * DEVICE_FULL: none of the rows was counted, but groups without rows may be left.  No rows may
	 * be reduced after it.
	 */
	DeviceStatus (*resident)(DeviceQuery *query, Lane *lane, const WireResident *in,
							 const WireRowRange *row_ranges, struct StoreHold *hold,
							 DeviceError *error);
	/*
	 * Adds all groups and set values of `other` to the query.  `other` is the same query on another
	 * device, without WIRE_ORDERED; finish was called for it with for_absorb, and its keys are
	 * within key_min and key_max.  The query itself is not finished yet.  After any failure it can
	 * only be closed.  The caller closes `other` after the query is finished or closed.
	 */
	DeviceStatus (*absorb)(DeviceQuery *query, DeviceQuery *other, const int64_t *key_min,
						   const int64_t *key_max, DeviceError *error);
	/*
	 * Waits for all rows.  Fills *result except for bytes_in and copy_ms; kernel_ms does not
	 * contain the time that lane_settle reports.  `limit` may be NULL.  for_absorb: another query
	 * will absorb this one, so that the values of sets stay unsorted, and the slots computed from
	 * them have no states.
	 */
	DeviceStatus (*finish)(DeviceQuery *query, const WireLimit *limit, bool for_absorb,
						   WireFinished *result, DeviceError *error);
	/* Copies groups to a buffer of the arena, with the arrays at the offsets in *out. */
	DeviceStatus (*fetch)(DeviceQuery *query, Lane *lane, const WireGroups *out,
						  DeviceError *error);
	/*
	 * After finish: copies the values at these places of a sorted set to a buffer of the arena,
	 * laid out as in WirePick.  `places` is in memory that the client cannot change.
	 * DEVICE_UNSUPPORTED: a place is outside of the set.
	 */
	DeviceStatus (*pick)(DeviceQuery *query, Lane *lane, const WirePick *in, const int32_t *places,
						 DeviceError *error);
	/* Returns the query to its state after query_open. */
	DeviceStatus (*reset)(DeviceQuery *query, DeviceError *error);
} DeviceOps;

extern const DeviceOps device_ops;

#endif /* GPUAGG_DEVICE_H */
