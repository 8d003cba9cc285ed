/*
 * server.h
 *	  The GPU server: its parts and what they share.
 *
 *	main.c		start, supervisor's pipe, accepting connections
 *	session.c	a thread for each connection: messages to device calls
 *	queries.c	queries, which connections may share
 *	check.c		whether a message makes sense
 *	arena.c		memory shared with clients
 *	budget.c	devices: load, memory accounting, counters
 *	watchdog.c	ends the server when a device call does not return
 *	wire.c		sending and receiving
 *	device.h	the GPU
 *
 * No PostgreSQL here.  Threads share nothing but queries, budget.c's counters,
 * arena.c's free list, watchdog.c's list and the number of sessions, each behind its own lock.
 */
#ifndef GPUAGG_SERVER_H
#define GPUAGG_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "device.h"
#include "protocol.h"

/* ---- wire.c: whole messages over blocking sockets ---- */

extern bool wire_send(int sock, MessageType type, const void *body, size_t length);
extern bool wire_send_fd(int sock, MessageType type, const void *body, size_t length, int fd);
/*
 * Receives a message of at most `size` bytes of body into `body`.  False: end of
 * file or an error, or, with *garbage set, something that is no message.
 */
extern bool wire_receive(int sock, MessageHeader *header, void *body, size_t size,
						 bool *garbage);

/* ---- check.c ---- */

/* NULL if the message is sound, else what is wrong with it. */
extern const char *check_query(const WireQuery *q, size_t length);
extern const char *check_batch(const WireBatch *b, const WireQuery *q, size_t length,
							   size_t buffer_bytes, int buffers);

/* ---- arena.c ---- */

typedef struct Arena
{
	struct Arena *next;
	int			fd;
	char	   *memory;
	size_t		bytes;
	time_t		idle_since;		/* of the monotonic clock */
} Arena;

#define ARENA_BUFFERS WIRE_BUFFERS
#define ARENA_BUFFER_BYTES WIRE_BUFFER_BYTES
#define ARENA_BYTES ((size_t) ARENA_BUFFERS * ARENA_BUFFER_BYTES)
#define ARENAS_AHEAD 4			/* made before the first session, and never given back */

/* Makes `count` arenas ahead, so that first queries need not wait for pinning. */
extern bool arena_prepare(int count, DeviceError *error);
extern Arena *arena_take(DeviceError *error);
extern void arena_give(Arena *arena);
/* Gives back arenas that were idle for arena_idle_seconds, which tests may shorten. */
extern void arena_trim(void);
extern int	arena_idle_seconds;

/* ---- budget.c ---- */

extern void budget_start(const WireStatus *devices);
extern void budget_set_limit(uint64_t bytes);
/* This device, or with -1 the one with the fewest sessions, gets one more. */
extern int	budget_attach(int device);
extern void budget_detach(int device);
/* False if the device's limit would be passed. */
extern bool budget_take(int device, uint64_t bytes);
extern void budget_give(int device, uint64_t bytes);
extern const WireDevice *budget_device(int device);
extern void budget_count_query(void);
extern void budget_count_failure(WireFailure failure, const char *text);
extern void budget_status(WireStatus *status);

/* ---- queries.c ---- */

typedef struct OpenQuery
{
	struct OpenQuery *next;
	int			users;			/* connections */
	int			device;
	WireQuery	wire;			/* what it was opened with */
	double	   *thresholds;

	atomic_bool full;			/* no batch is taken any more */

	pthread_mutex_t lock;		/* of what follows; held in every device call on `query` */
	Query	   *query;
	bool		finished;		/* groups may be fetched, and no batch come */
	DeviceStatus failed;		/* DEVICE_OK, or what every further call returns ... */
	DeviceError failure;		/* ... and its text */
} OpenQuery;

/*
 * Opens a query on this device, or joins the one with the same `share` on
 * whichever device it is.  `thresholds` is copied.
 */
extern DeviceStatus query_enter(OpenQuery **query, int device, const WireQuery *wire,
								const double *thresholds, DeviceError *error);
/* The last one to leave closes it. */
extern void query_leave(OpenQuery *query);

/*
 * As device_ops' functions, one call at a time.  A query that failed stays failed,
 * for all who share it.  A message out of order is DEVICE_UNSUPPORTED and harms nobody.
 */
extern DeviceStatus query_reduce(OpenQuery *query, Lane *lane, const WireBatch *batch,
								 DeviceError *error);
extern DeviceStatus query_finish(OpenQuery *query, WireFinished *result, DeviceError *error);
extern DeviceStatus query_fetch(OpenQuery *query, Lane *lane, const WireGroups *out,
								DeviceError *error);
extern DeviceStatus query_reset(OpenQuery *query, DeviceError *error);
/* What it failed with, or DEVICE_OK. */
extern DeviceStatus query_failure(OpenQuery *query, DeviceError *error);

/* ---- watchdog.c ---- */

/*
 * Device calls of threads that asked to be watched stand between watch_begin and
 * watch_end, which returns its argument.  One that takes watchdog_seconds, which
 * tests may shorten, has lost the device: the server ends.
 */
extern int	watchdog_seconds;
extern bool watchdog_start(void);
/* Of the calling thread; false: out of memory. */
extern bool watch_thread(void);
extern void unwatch_thread(void);
extern void watch_begin(void);
extern DeviceStatus watch_end(DeviceStatus status);

#define WATCHED(call) (watch_begin(), watch_end(call))

/* ---- session.c ---- */

/* Starts the thread of a connection; closes the socket in the end. */
extern void session_start(int sock);

/* ---- main.c ---- */

extern void server_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* After DEVICE_LOST: says why and ends the process. */
extern void server_abandon(const char *reason) __attribute__((noreturn));

#endif							/* GPUAGG_SERVER_H */
