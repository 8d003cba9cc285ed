/*
 * protocol_status.h
 *	  Messages about the GPU server itself: its devices, what they store, its limits.
 *
 * They are messages of protocol.h.  The supervisor and gpuagg_devices() send them, no query does.
 */
#ifndef GPUAGG_PROTOCOL_STATUS_H
#define GPUAGG_PROTOCOL_STATUS_H

#include "protocol.h"

/* A device, in WireStatus. */
typedef struct WireDevice
{
	int32_t ordinal;
	int32_t major, minor; /* compute capability */
	int32_t processors;
	int32_t threads; /* that can be resident on the whole device at a time */
	uint32_t sessions;
	uint64_t memory;
	uint64_t limit;  /* bytes that queries and stored columns may use */
	uint64_t used;   /* bytes that queries and stored columns use */
	uint64_t stored; /* bytes that stored columns use */
	uint64_t host;   /* host memory of their lists and dictionaries; only in answers to STATUS */
	uint64_t peak;   /* greatest value of `used` */
	uint64_t l2_bytes;
	uint64_t shared_bytes;
	char name[128];
	char note[200]; /* why the device is not used, or what could be better; may be empty */
} WireDevice;

/* The body of STATUS_REPLY and of READY. */
typedef struct WireStatus
{
	int32_t pid;
	int32_t driver; /* version of the CUDA driver; 13000 is 13.0 */
	uint32_t ndevices;
	uint32_t sessions; /* connections after HELLO, without those that are kept after CLOSE */
	uint64_t queries;  /* queries opened since the start */
	uint64_t pinned;   /* bytes of all arenas; only in answers to STATUS */
	uint64_t failures; /* failed queries, and how many of them failed for lack of memory */
	uint64_t memory_failures;
	char last_error[256];
	uint32_t nskipped;
	uint32_t version; /* GPUAGG_PROTOCOL_VERSION of the server; only in READY */
	WireDevice devices[WIRE_MAX_DEVICES];
	/* Devices that cannot be used. Only ordinal, name, memory and note are filled in. */
	WireDevice skipped[WIRE_MAX_DEVICES];
} WireStatus;

/*
 * The body of LIST: asks for the columns that are stored on `device`, of tables with an id greater
 * than `after`, and then for those of the following devices.
 */
typedef struct WireList
{
	uint64_t after; /* 0 at first */
	uint64_t device;
} WireList;

typedef struct WireListedColumn
{
	WireTableKey table;
	WireColumnKey column;
	uint64_t rows;
	uint64_t ranges;
	uint64_t bytes; /* device memory that the column takes */
} WireListedColumn;

#define WIRE_MAX_LISTED 256

/*
 * The body of LISTED: columns of some tables, all columns of each. n = 0 ends the list; else `next`
 * is the body of the next LIST.
 */
typedef struct WireListed
{
	WireList next;
	uint64_t n;
	WireListedColumn columns[WIRE_MAX_LISTED];
} WireListed;

/* The body of SETTINGS. */
typedef struct WireSettings
{
	uint64_t memory_limit; /* bytes per device; 0: four fifths of what is free at start */
	uint64_t pinned_limit; /* bytes of all arenas */
	/* Bytes of stored columns per device; UINT64_MAX: half of the device's memory. */
	uint64_t cache_limit;
} WireSettings;

/* The body of PONG. */
typedef struct WirePong
{
	uint64_t stalled_ms; /* the longest time that a device has had work and completed none of it */
} WirePong;

#endif /* GPUAGG_PROTOCOL_STATUS_H */
