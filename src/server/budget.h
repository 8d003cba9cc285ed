/*
 * budget.h
 *	  Devices: the sessions of each one, accounting of its memory, counters.
 *
 * All functions may be called from any thread.
 */
#ifndef GPUAGG_SERVER_BUDGET_H
#define GPUAGG_SERVER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

extern void budget_start(const WireStatus *devices);
/* May be called before budget_start. */
extern void budget_set_limit(uint64_t bytes);
/* What of the device's memory other processes have left to this one. */
extern void budget_set_available(int device, uint64_t bytes);
/* Counts a session at this device, or with -1 at the one with the fewest; returns the device. */
extern int budget_attach(int device);
extern void budget_detach(int device);
/* Accounts for device memory; false if the device's limit would be exceeded. */
extern bool budget_take(int device, uint64_t bytes);
extern void budget_give(int device, uint64_t bytes);
/* How much of the memory taken is the store's. */
extern void budget_set_stored(int device, uint64_t bytes);
extern const WireDevice *budget_device(int device);
/* Bytes that queries and stored columns may still take. */
extern uint64_t budget_room(int device);
extern void budget_count_query(void);
extern void budget_count_failure(WireFailure failure, const char *text);
extern void budget_status(WireStatus *status);

#endif /* GPUAGG_SERVER_BUDGET_H */
