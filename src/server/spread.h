/*
 * spread.h
 *	  Queries over stored columns that are spread over several devices.
 *
 * A query is on one device, which gets its batches.  Of rows of RESIDENT that other devices have,
 * each reduces its own, in a query of its own there; at the end the groups of these are moved to
 * the device of the query, and combined.  All of this is called with the query locked.
 */
#ifndef GPUAGG_SERVER_SPREAD_H
#define GPUAGG_SERVER_SPREAD_H

#include "server/server.h"

/* A query's part on another device than its own. */
typedef struct PeerQuery
{
	DeviceQuery *query;
	Lane *lane;
	bool reduces;                   /* it has rows: */
	int64_t key_min[WIRE_MAX_KEYS]; /* as in RESIDENT, over all of them */
	int64_t key_max[WIRE_MAX_KEYS];
} PeerQuery;

/* A device that has rows of the message; -1: it reads none. */
extern int spread_device(const WireResident *in, const WireRowRange *row_ranges);
extern DeviceStatus spread_store(SharedQuery *query, Lane *lane, const WireStore *in, bool *kept,
								 DeviceError *error);
/*
 * Reduces the rows if all of them are there: then *taken is set.  Else lacking[] is what RESIDED
 * says.  DEVICE_FULL: none of the query's rows counts any more that came with a message of this
 * kind, this one or an earlier one.
 */
extern DeviceStatus spread_resident(SharedQuery *query, Lane *lane, const WireResident *in,
									const WireRowRange *row_ranges, uint64_t *lacking, bool *taken,
									DeviceError *error);
/* Moves the groups of all parts to the query, and adds their part of the result. */
extern DeviceStatus spread_finish(SharedQuery *query, WireFinished *result, DeviceError *error);
/* Closes all parts. */
extern void spread_close(SharedQuery *query);

#endif /* GPUAGG_SERVER_SPREAD_H */
