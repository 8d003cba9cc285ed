/*
 * server.h
 *	  The GPU server: its files and their interfaces.
 *
 *	main.c		start, accepting connections
 *	control.c	the pipe to the supervisor
 *	watch.c		detects devices that complete nothing any more
 *	session.c	a thread for each connection: messages to device calls
 *	shared_query.c	queries, which connections may share
 *	spread.c	queries over stored columns of several devices (spread.h)
 *	store.c		columns of tables that stay on the devices (store.h)
 *	resident.c	from the rows and the program of RESIDENT to what a device has to do (resident.h)
 *	check.c		validation of messages
 *	arena.c		memory shared with clients
 *	budget.c	devices: load, memory accounting, counters (budget.h)
 *	wire.c		sending and receiving
 *	stream.c	the same for sessions: reads ahead, and sends answers together
 *	spin.c		looks for a moment before it sleeps (spin.h)
 *	../device_cuda/device.h	the GPU
 *
 * No PostgreSQL here.  Threads share queries, budget.c's counters, arena.c's free list,
 * watch.c's list and the number of sessions, each protected by a lock of its own, and
 * nothing else.
 */
#ifndef GPUAGG_SERVER_H
#define GPUAGG_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "device_cuda/device.h"
#include "protocol.h"
#include "server/budget.h"
#include "server/spin.h"

/* ---- wire.c: whole messages over blocking sockets ---- */

/* False if the connection is lost, or the peer does not read within the socket's SO_SNDTIMEO. */
extern bool wire_send(int sock, MessageType type, const void *body, size_t length);
extern bool wire_send_bytes(int sock, const void *data, size_t length);
extern bool wire_send_fd(int sock, MessageType type, const void *body, size_t length, int fd);
/*
 * Receives a message with at most `size` bytes of body.  Waits wait_ms for its first byte
 * (-1: without end), and WIRE_REST_MS for each further piece.  False at end of file, after
 * a timeout or an error, and, with *garbage set, if the bytes are no message.
 */
extern bool wire_receive(int sock, MessageHeader *header, void *body, size_t size, int wait_ms,
						 bool *garbage);
#define WIRE_REST_MS 30000
/* Is it a header, of a message with at most `size` bytes of body? */
extern bool wire_header_fits(const MessageHeader *header, size_t size);

/* ---- stream.c: the same for sessions ---- */

/* A socket with what was read ahead, and answers that are held back. */
typedef struct Stream
{
	int sock;
	bool spins;  /* looks for the next message before it sleeps: spin_until() */
	size_t from, /* of in[] */
		to;
	size_t held; /* of out[] */
	char in[8192];
	char out[2048];
} Stream;

/* As wire_receive; sends what was held back before it sleeps. */
extern bool stream_receive(Stream *stream, MessageHeader *header, void *body, size_t size,
						   int wait_ms, bool *garbage);
/* Has another message come, or the beginning of one? */
extern bool stream_waits(const Stream *stream);
/* Sends what was held back, and this. */
extern bool stream_send(Stream *stream, MessageType type, const void *body, size_t length);
extern bool stream_send_fd(Stream *stream, MessageType type, const void *body, size_t length,
						   int fd);
/* Holds a short message back: it goes with the next one, or when the next message is waited for. */
extern bool stream_hold(Stream *stream, MessageType type, const void *body, size_t length);

/* ---- check.c ---- */

/* NULL if the message is valid, else what is wrong with it. */
extern const char *check_query(const WireQuery *q, size_t length);
extern const char *check_batch(const WireBatch *b, const WireQuery *q, size_t length,
							   size_t buffer_bytes, int buffers);

extern const char *check_store(const WireStore *in, size_t length, size_t buffer_bytes,
							   int buffers);
extern const char *check_dictionary(const WireDictionary *in, size_t length, int buffers);
/* Of a copy of the buffer, once the message is known to make sense. */
extern const char *check_cells(const WireResident *in, const char *buffer);
extern const char *check_resident(const WireResident *in, const WireQuery *q, size_t length,
								  size_t buffer_bytes, int buffers);
extern const char *check_row_ranges(const WireRowRange *row_ranges, uint32_t n,
									const WireSpan *spans, uint32_t nspans);
extern const char *check_pick(const WirePick *in, const WireQuery *q, size_t length,
							  size_t buffer_bytes, int buffers);
extern const char *check_finish(const WireFinish *in, const WireQuery *q, size_t length,
								int buffers);

/* ---- arena.c ---- */

typedef struct Arena
{
	struct Arena *next;
	int fd;
	char *memory;
	size_t bytes;
	time_t idle_since; /* of the monotonic clock */
	uint64_t owner;    /* the kept connection whose client has it mapped, while it is idle; or 0 */
} Arena;

#define ARENA_BUFFERS WIRE_BUFFERS
#define ARENA_BUFFER_BYTES WIRE_BUFFER_BYTES
#define ARENA_BYTES ((size_t) ARENA_BUFFERS * ARENA_BUFFER_BYTES)
#define ARENAS_AHEAD 4 /* made before the first session, and kept however long they are idle */

/* Makes `count` arenas in advance, so that the first queries need not wait for pinning. */
extern bool arena_prepare(int count, DeviceError *error);
/*
 * NULL if there is no memory, or the limit would be passed.  The one that this owner has given back
 * last, if nobody has had it since: its `owner` says so.
 */
extern Arena *arena_take(uint64_t owner, DeviceError *error);
/* The owner, a number that is not 0, may ask for it again. */
extern void arena_give(Arena *arena, uint64_t owner);
/* This owner will not. */
extern void arena_disown(uint64_t owner);
/* Frees an arena into which a client may still write, instead of keeping it for the next one. */
extern void arena_discard(Arena *arena);
/* Limits the bytes of all arenas; those beyond a lower limit are freed when sessions end. */
extern void arena_set_limit(uint64_t bytes);
/* Bytes of all arenas, idle or not. */
extern uint64_t arena_bytes(void);
/* Frees arenas that were idle for arena_idle_seconds, which tests may lower. */
extern void arena_trim(void);
extern int arena_idle_seconds;

/* ---- queries.c ---- */

typedef struct SharedQuery
{
	struct SharedQuery *next;
	int users;      /* connections */
	int device;     /* where it is, or may be opened */
	WireQuery wire; /* what it was opened with */
	double *thresholds;

	char *arena; /* of the connection that has it for itself; NULL: it is shared */

	atomic_bool full; /* the device had no room for rows: no others are taken */

	pthread_mutex_t lock; /* of what follows; held in every device call on `query` */
	DeviceQuery *query;   /* NULL: it is not open yet, and not shared */
	bool rows;            /* some have been reduced */
	uint64_t use;         /* its number among the uses of stored columns; 0: none yet */
	struct PeerQuery *parts[WIRE_MAX_DEVICES]; /* on other devices; or NULL */
	bool finished;                             /* groups may be fetched; batches are refused */
	bool limited;                              /* not all groups are wanted: */
	WireLimit limit;
	DeviceStatus failed; /* DEVICE_OK, or the status of the call that failed ... */
	DeviceError failure; /* ... and its text: every further call returns them */
} SharedQuery;

/*
 * Makes a query, which shared_query_place opens, or joins the one with the same `share` on
 * whichever device it is; the first one of these opens it on this device.  `thresholds` is copied;
 * the arena stays until shared_query_leave.
 */
extern DeviceStatus shared_query_enter(SharedQuery **query, int device, char *arena,
									   const WireQuery *wire, const double *thresholds,
									   DeviceError *error);
/* Opens the query on this device, unless it is open. */
extern DeviceStatus shared_query_place(SharedQuery *query, int device, DeviceError *error);
/* Closes the query if no other connection uses it. */
extern void shared_query_leave(SharedQuery *query);

/*
 * The functions of device_ops, with the query locked.  After a failure every call fails
 * alike, for all connections that share the query.  A call out of order returns
 * DEVICE_UNSUPPORTED and leaves the query as it was.
 */
/*
 * Without a lock.  DEVICE_FULL: the device has no memory for copies, or the query takes no more
 * batches.
 */
extern DeviceStatus shared_query_copy(SharedQuery *query, Lane *lane, const WireBatch *batch,
									  size_t *bytes, DeviceError *error);
extern DeviceStatus shared_query_reduce(SharedQuery *query, Lane *lane, const WireBatch *batch,
										DeviceError *error);
/* The next two as in spread.h. */
extern DeviceStatus shared_query_store(SharedQuery *query, Lane *lane, const WireStore *in,
									   bool *kept, DeviceError *error);
extern DeviceStatus shared_query_resident(SharedQuery *query, Lane *lane, const WireResident *in,
										  const WireRowRange *row_ranges, uint64_t *lacking,
										  bool *taken, DeviceError *error);
extern DeviceStatus shared_query_finish(SharedQuery *query, WireFinished *result,
										DeviceError *error);
extern DeviceStatus shared_query_pick(SharedQuery *query, Lane *lane, const WirePick *in,
									  const int32_t *places, DeviceError *error);
extern DeviceStatus shared_query_fetch(SharedQuery *query, Lane *lane, const WireGroups *out,
									   DeviceError *error);
extern DeviceStatus shared_query_reset(SharedQuery *query, DeviceError *error);
/* The status and text of the call that failed, or DEVICE_OK. */
extern DeviceStatus shared_query_failure(SharedQuery *query, DeviceError *error);

/* ---- watch.c ---- */

/* A message that a session is handling. */
typedef struct Watch
{
	struct Watch *next;
	int place; /* the device, or WIRE_MAX_DEVICES */
	int64_t since;
} Watch;

/* device -1: the session has none yet */
extern void watch_begin(Watch *watch, int device);
extern void watch_end(Watch *watch);
/* The longest time that a device has had work and completed none of it; 0 if all are idle. */
extern uint64_t watch_stalled_ms(void);

/* ---- session.c ---- */

/*
 * Connections that may be kept between queries at once, and how long each; tests may lower them
 * before there is a session.
 */
extern int session_most_kept;
extern int session_keep_ms;

/* Starts the thread of a connection, which will close the socket. */
extern void session_start(int sock);
/* Starts a detached thread; false, with errno set, if that fails. */
extern bool thread_start(void *(*main)(void *), void *arg);

/* ---- control.c ---- */

/* The pipe to the supervisor (-1: there is none), and the socket that server_end removes. */
extern void control_init(int fd, const char *socket);
/* Main function of the thread that reads the pipe; ends the process when the supervisor is gone. */
extern void *control_main(void *arg);
extern void control_tell(MessageType type, const void *body, size_t length);
extern void server_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the socket and ends the process. */
extern void server_end(int status) __attribute__((noreturn));
/* After DEVICE_LOST: logs the reason and ends the process. */
extern void server_abandon(const char *reason) __attribute__((noreturn));

#endif /* GPUAGG_SERVER_H */
