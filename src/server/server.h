/*
 * server.h
 *	  The GPU server: its parts and what they share.
 *
 *	main.c		start, accepting connections
 *	control.c	the pipe to the supervisor
 *	watch.c		how long devices have ended nothing
 *	session.c	a thread for each connection: messages to device calls
 *	queries.c	queries, which connections may share
 *	check.c		whether a message makes sense
 *	arena.c		memory shared with clients
 *	budget.c	devices: load, memory accounting, counters
 *	wire.c		sending and receiving
 *	device.h	the GPU
 *
 * No PostgreSQL here.  Threads share nothing but queries, budget.c's counters,
 * arena.c's free list, watch.c's list and the number of sessions, each behind its
 * own lock.
 */
#ifndef GPUAGG_SERVER_H
#define GPUAGG_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "server/device.h"
#include "protocol.h"

/* ---- wire.c: whole messages over blocking sockets ---- */

/* Also false where the peer does not read (SO_SNDTIMEO of the socket). */
extern bool wire_send(int sock, MessageType type, const void *body, size_t length);
extern bool wire_send_fd(int sock, MessageType type, const void *body, size_t length, int fd);
/*
 * Receives a message of at most `size` bytes of body into `body`; waits so long
 * for its first byte (-1: for ever), and WIRE_REST_MS at a time for the others.
 * False: end of file, nothing came or an error, or, with *garbage set, something
 * that is no message.
 */
extern bool wire_receive(int sock, MessageHeader *header, void *body, size_t size, int wait_ms,
						 bool *garbage);
#define WIRE_REST_MS 30000

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
/* NULL if there is no memory, or the limit would be passed. */
extern Arena *arena_take(DeviceError *error);
extern void arena_give(Arena *arena);
/* Instead of arena_give, where a client may still write into it. */
extern void arena_discard(Arena *arena);
/* The most bytes of all arenas; those above it go when sessions end. */
extern void arena_set_limit(uint64_t bytes);
/* Gives back arenas that were idle for arena_idle_seconds, which tests may shorten. */
extern void arena_trim(void);
extern int	arena_idle_seconds;

/* ---- budget.c ---- */

extern void budget_start(const WireStatus *devices);
/* May come before the start. */
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

/* ---- watch.c ---- */

/* Something that a session does for a message. */
typedef struct Watch
{
	struct Watch *next;
	int			place;
	int64_t		since;
} Watch;

/* device -1: none yet */
extern void watch_begin(Watch *watch, int device);
extern void watch_end(Watch *watch);
/* How long the worst device has been at work without ending anything; 0 where none is. */
extern uint64_t watch_stalled_ms(void);

/* ---- session.c ---- */

/* Starts the thread of a connection; closes the socket in the end. */
extern void session_start(int sock);
/* A detached thread; false, and errno, if there is none to be had. */
extern bool thread_start(void *(*main) (void *), void *arg);

/* ---- control.c ---- */

/* The pipe to the supervisor (-1: there is none), and the socket that server_end removes. */
extern void control_init(int fd, const char *socket);
/* Main function of the thread that reads the pipe; ends the process when the supervisor is gone. */
extern void *control_main(void *arg);
extern void control_tell(MessageType type, const void *body, size_t length);
extern void server_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the socket and ends the process. */
extern void server_end(int status) __attribute__((noreturn));
/* After DEVICE_LOST: says why and ends the process. */
extern void server_abandon(const char *reason) __attribute__((noreturn));

#endif							/* GPUAGG_SERVER_H */
