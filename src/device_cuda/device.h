/*
 * device.h
 *	  The server's interface to its GPUs.
 *
 * Sessions call devices through this table of functions only.  The server links
 * device.c; tests link it over a stub of the CUDA run time.
 *
 * A lane belongs to a connection: a copy stream and one device buffer for each
 * buffer of the arena.  Several lanes may feed one query.  Calls on different
 * lanes and queries come from different threads, one at a time on each.
 *
 * Every function that can fail returns a DeviceStatus and, unless it is
 * DEVICE_OK, leaves a text in *error.  DEVICE_LOST means that no further call can
 * succeed: the server exits, and its supervisor starts another.
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
	DEVICE_FULL, /* of reduce and resident only: see there */
	DEVICE_LOST
} DeviceStatus;

typedef struct DeviceError
{
	char text[256];
} DeviceError;

/* Stores the text, and returns the status. */
static inline DeviceStatus
device_say(DeviceError *error, DeviceStatus status, const char *text)
{
	snprintf(error->text, sizeof(error->text), "%s", text);
	return status;
}

struct StoreHold;
typedef struct Lane Lane;
typedef struct Query Query;

typedef struct DeviceOps
{
	/* What this layer was built with, for people. */
	void (*build)(char *text, size_t size);

	/*
	 * Opens the devices named in `list` (device_list.h) and fills ndevices, devices, nskipped and
	 * skipped of *status, with notes for the log. DEVICE_UNSUPPORTED: there are none.
	 */
	DeviceStatus (*start)(const char *list, WireStatus *status, DeviceError *error);

	/*
	 * How much of the device's memory this process may have: what it has, and what nobody has.
	 * Gives memory that it keeps for later back, for other processes, but for a little, if it is
	 * more than the limit or no query uses the device
	 * (`idle`).  False if that is not known.
	 */
	bool (*available)(int device, bool idle, uint64_t *bytes);

	/* Page-locks host memory, so that copies from it are asynchronous. */
	DeviceStatus (*pin)(void *memory, size_t bytes, DeviceError *error);
	void (*unpin)(void *memory);

	DeviceStatus (*lane_open)(Lane **lane, int device, char *arena, size_t buffer_bytes,
							  int buffers, DeviceError *error);
	void (*lane_close)(Lane *lane);
	/*
	 * Starts copying a batch's arrays to the device; *bytes is set to their size. DEVICE_NO_MEMORY:
	 * nothing has happened.
	 */
	DeviceStatus (*copy)(Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error);
	/* Waits until the arena's buffer may be written again. */
	DeviceStatus (*copy_wait)(Lane *lane, int buffer, double *ms, DeviceError *error);

	/*
	 * Waits until the lane's rows are reduced; *kernel_ms: the time of those since the last call.
	 */
	DeviceStatus (*lane_settle)(Lane *lane, double *kernel_ms, DeviceError *error);

	/* `q` and `thresholds` must stay until query_close. */
	DeviceStatus (*query_open)(Query **query, int device, const WireQuery *q,
							   const double *thresholds, DeviceError *error);
	void (*query_close)(Query *query);
	/*
	 * Reduces a batch whose copy was started; the lane's buffer may be reused after.
	 * DEVICE_FULL: there is no room for its groups or rows; none of its rows was
	 * counted, and the query has the groups of the batches before.  Any other
	 * failure leaves a query that can only be closed.
	 */
	DeviceStatus (*reduce)(Query *query, Lane *lane, const WireBatch *batch, DeviceError *error);
	/*
	 * Reduces stored rows, of columns that it releases when they are not needed any more, at the
	 * latest by finish.  Behind the runs are the cells of tables, as RESIDENT has them, but in
	 * memory that the client cannot change; the arena's buffer may be reused at once.  DEVICE_FULL
	 * as of reduce, but that groups of rows that did not come may be left: no rows may come after
	 * it.
	 */
	DeviceStatus (*resident)(Query *query, Lane *lane, const WireResident *in, const WireRun *runs,
							 struct StoreHold *hold, DeviceError *error);
	/*
	 * Adds all groups and values of sets of `part`, the same query without WIRE_ORDERED on another
	 * device, which is finished as a part and has keys within key_min and key_max, to this one,
	 * which is not.  Any failure leaves a query that can only be closed.  `part` is closed after
	 * this one is finished or closed.
	 */
	DeviceStatus (*absorb)(Query *query, Query *part, const int64_t *key_min,
						   const int64_t *key_max, DeviceError *error);
	/*
	 * Waits for all batches.  Fills *result except for bytes_in and copy_ms; kernel_ms
	 * is without the time that lane_settle reports.  limit: or NULL.  part: the query is for absorb
	 * alone, so that values of sets stay as they are, and slots of them have no states.
	 */
	DeviceStatus (*finish)(Query *query, const WireLimit *limit, bool part, WireFinished *result,
						   DeviceError *error);
	/* Copies groups to a buffer of the arena, with the arrays at the offsets in *out. */
	DeviceStatus (*fetch)(Query *query, Lane *lane, const WireGroups *out, DeviceError *error);
	/*
	 * After finish: copies values of a set to a buffer of the arena, where WirePick has them, by
	 * their places, which are in memory that the client cannot change.  DEVICE_UNSUPPORTED: there
	 * is no such place.
	 */
	DeviceStatus (*pick)(Query *query, Lane *lane, const WirePick *in, const int32_t *places,
						 DeviceError *error);
	/* Returns the query to its state after query_open. */
	DeviceStatus (*reset)(Query *query, DeviceError *error);
} DeviceOps;

/* Defined by the device layer that the program is linked with. */
extern const DeviceOps device_ops;

#endif /* GPUAGG_DEVICE_H */
