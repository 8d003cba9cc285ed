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

#include "protocol_status.h"

/* Starts the accounting with the devices that were opened, and their limits. */
extern void budget_start(const WireStatus *devices);
/* Sets gpuagg.device_memory_limit; 0: none. May be called before budget_start(). */
extern void budget_set_limit(uint64_t bytes);
/* Sets the bytes of the device's memory that other processes leave to this one. */
extern void budget_set_available(int device, uint64_t bytes);
/* Counts a session at this device (-1: the device with the fewest sessions). Returns the device. */
extern int budget_attach(int device);
extern void budget_detach(int device);
/* Accounts for device memory. Returns false if the device's limit would be exceeded. */
extern bool budget_take(int device, uint64_t bytes);
extern void budget_give(int device, uint64_t bytes);
/* Sets how many of the device's used bytes are stored columns. */
extern void budget_set_stored(int device, uint64_t bytes);
extern const WireDevice *budget_device(int device);
/* Returns the bytes that queries and stored columns may still take. */
extern uint64_t budget_room(int device);
/* Count a query, and a failure with its text. budget_status() copies all counters. */
extern void budget_count_query(void);
extern void budget_count_failure(WireFailure failure, const char *text);
extern void budget_status(WireStatus *status);

#endif /* GPUAGG_SERVER_BUDGET_H */
