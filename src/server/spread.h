/*
 * spread.h
 *	  Queries over stored columns that are distributed over several devices.
 *
 * A query is on one device, its own, which gets all batches. If RESIDENT names rows that are stored
 * on other devices, each of these devices reduces its rows in a query of its own, a peer query. At
 * the end the peers' groups are moved to the query's own device and combined there.
 *
 * All functions are called with the SharedQuery locked.
 */
#ifndef GPUAGG_SERVER_SPREAD_H
#define GPUAGG_SERVER_SPREAD_H

#include "server/server.h"

/* A query on another device than its SharedQuery's own, for the rows stored there. */
typedef struct PeerQuery
{
	DeviceQuery *query;
	Lane *lane;
	bool reduces;                   /* it has rows, and the bounds below are valid */
	int64_t key_min[WIRE_MAX_KEYS]; /* bounds of the keys of all rows, as in RESIDENT */
	int64_t key_max[WIRE_MAX_KEYS];
} PeerQuery;

/* Returns a device that has rows of the message; -1 if the message reads no columns. */
extern int spread_device(const WireResident *in, const WireRowRange *row_ranges);
/* Stores a column of a range on the range's device; see store_put(). */
extern DeviceStatus spread_store(SharedQuery *query, Lane *lane, const WireStore *in,
								 struct Dictionary *dict, bool *kept, DeviceError *error);
/*
 * Reduces the rows if all of them are stored, and all cells of lookup tables that are not sent, and
 * sets resided->taken. Else fills in lacking[] and resided->lacking_cells. After DEVICE_FULL no row
 * counts that came with this RESIDENT or an earlier one of the query.
 */
extern DeviceStatus spread_resident(SharedQuery *query, Lane *lane, const WireResident *in,
									const WireRowRange *row_ranges, uint64_t *lacking,
									WireResided *resided, DeviceError *error);
/*
 * Moves the groups of all peers to the query's own device. Adds the peers' counts and times to
 * *result.
 */
extern DeviceStatus spread_finish(SharedQuery *query, WireFinished *result, DeviceError *error);
/* Closes all peers. */
extern void spread_close(SharedQuery *query);

#endif /* GPUAGG_SERVER_SPREAD_H */
