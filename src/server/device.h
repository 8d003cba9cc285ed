/*
 * device.h
 *	  What the server asks of a GPU.
 *
 * Sessions know this table of functions alone.  The server links device_cuda.c;
 * its tests link a stand-in that computes on the host.
 *
 * A lane belongs to a connection: a copy stream and one device buffer for each
 * buffer of the arena.  Several lanes may feed one query.  Calls on different
 * lanes and queries come from different threads, one at a time on each.
 *
 * Every function that can fail returns a DeviceStatus and, unless it is
 * DEVICE_OK, leaves a text in *error.  DEVICE_LOST means that the device or its
 * driver is in no state to go on: the server ends, and its supervisor starts
 * another.
 *
 * Device memory is taken from and given back to the budget of server.h.
 */
#ifndef GPUAGG_DEVICE_H
#define GPUAGG_DEVICE_H

#include <stdbool.h>
#include <stdio.h>

#include "protocol.h"

typedef enum DeviceStatus
{
	DEVICE_OK,
	DEVICE_UNSUPPORTED,
	DEVICE_NO_MEMORY,
	DEVICE_FULL,				/* of reduce alone: see there */
	DEVICE_LOST
} DeviceStatus;

typedef struct DeviceError
{
	char		text[256];
} DeviceError;

/* Leaves the text, and returns the status. */
static inline DeviceStatus
device_say(DeviceError *error, DeviceStatus status, const char *text)
{
	snprintf(error->text, sizeof(error->text), "%s", text);
	return status;
}

typedef struct Lane Lane;
typedef struct Query Query;

typedef struct DeviceOps
{
	/*
	 * Opens the devices named in `list` ("all", or ordinals with commas) and
	 * fills ndevices, devices, nskipped and skipped of *status, with notes for the log.
	 * DEVICE_UNSUPPORTED: there are none.
	 */
	DeviceStatus (*start) (const char *list, WireStatus *status, DeviceError *error);

	/* Makes host memory fit for asynchronous copies. */
	DeviceStatus (*pin) (void *memory, size_t bytes, DeviceError *error);
	void		(*unpin) (void *memory);

	DeviceStatus (*lane_open) (Lane **lane, int device, char *arena, size_t buffer_bytes,
							   int buffers, DeviceError *error);
	void		(*lane_close) (Lane *lane);
	/* Starts copying a batch's arrays to the device; *bytes says how much. */
	DeviceStatus (*copy) (Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error);
	/* Waits until the arena's buffer may be written again. */
	DeviceStatus (*copy_wait) (Lane *lane, int buffer, double *ms, DeviceError *error);

	/* Waits for the lane's batches to be reduced; the time it took, since the last call. */
	DeviceStatus (*lane_settle) (Lane *lane, double *kernel_ms, DeviceError *error);

	/* `q` and `thresholds` outlive the query. */
	DeviceStatus (*query_open) (Query **query, int device, const WireQuery *q,
								const double *thresholds, DeviceError *error);
	void		(*query_close) (Query *query);
	/*
	 * Reduces a batch whose copy was started; the lane's buffer may be reused after.
	 * DEVICE_FULL: there is no room for its groups or rows; none of its rows was
	 * counted, and the query has the groups of the batches before.  Any other
	 * failure leaves a query that can only be closed.
	 */
	DeviceStatus (*reduce) (Query *query, Lane *lane, const WireBatch *batch,
							DeviceError *error);
	/* Waits for all batches; fills all but bytes_in and copy_ms; kernel_ms less that of the lanes. */
	DeviceStatus (*finish) (Query *query, WireFinished *result, DeviceError *error);
	/* Brings groups to a buffer of the arena, laid out as *out says. */
	DeviceStatus (*fetch) (Query *query, Lane *lane, const WireGroups *out, DeviceError *error);
	/* Back to the state after query_open. */
	DeviceStatus (*reset) (Query *query, DeviceError *error);
} DeviceOps;

/* Of the device layer that this program was linked with. */
extern const DeviceOps device_ops;

#endif							/* GPUAGG_DEVICE_H */
