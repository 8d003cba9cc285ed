/*
 * server.h
 *	  The GPU server: its files and their interfaces.
 *
 * 	main.c			start; accepts connections
 * 	control.c		the pipe to the supervisor
 * 	watch.c			detects devices that hang
 * 	session.c		a thread for each connection: messages to device calls
 * 	shared_query.c	queries, which sessions may share
 * 	spread.c		queries over stored columns of several devices (spread.h)
 * 	device_store.c			columns of tables that are cached on the devices (device_store.h)
 * 	column_dictionary.c		dictionaries of coded columns
 * 	store_entries.c	entries that STORE brings for them
 * 	resident_plan.c	how rows of RESIDENT are read from these columns (resident_plan.h)
 * 	check.c			validation of messages
 * 	arena.c			memory shared with clients
 * 	budget.c		devices: number of sessions, memory accounting, counters
 * 	wire.c			sends and receives messages
 * 	stream.c		the same for sessions: reads ahead, and sends answers together
 * 	spin.c			polls for a short time before a thread sleeps
 * 	../device_cuda/device.h	the interface to the GPUs
 *
 * No PostgreSQL here. Threads share only the queries (each has a lock), the stores, and the state
 * of budget.c, arena.c, watch.c and session.c, each with a lock or atomics of its own.
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

struct Dictionary;

/* ---- wire.c: whole messages over blocking sockets ---- */

/*
 * Send a whole message, or some bytes. Return false if the connection is lost, or if the peer does
 * not read within the socket's SO_SNDTIMEO.
 */
extern bool wire_send(int sock, MessageType type, const void *body, size_t length);
extern bool wire_send_bytes(int sock, const void *data, size_t length);
extern bool wire_send_fd(int sock, MessageType type, const void *body, size_t length, int fd);
/*
 * Receives a message with at most `size` bytes of body. Waits wait_ms for its first byte (-1:
 * without limit), and WIRE_REST_MS each time for more. Returns false at end of file, after a
 * timeout or an error. Also sets *garbage if the bytes are not a message.
 */
extern bool wire_receive(int sock, MessageHeader *header, void *body, size_t size, int wait_ms,
						 bool *garbage);
#define WIRE_REST_MS 30000
/* Returns whether this is the header of a message with at most `size` bytes of body. */
extern bool wire_header_fits(const MessageHeader *header, size_t size);

/* ---- stream.c: the same for sessions ---- */

/* A socket with its buffers: bytes that were read ahead, and answers that are held back. */
typedef struct Stream
{
	int sock;
	bool spins;  /* polls for the next message before it sleeps: spin_until() */
	size_t from, /* the bytes read ahead: in[from .. to - 1] */
		to;
	size_t held; /* bytes in out[] */
	char in[8192];
	char out[2048];
} Stream;

/* Like wire_receive(). Sends held-back answers before it sleeps. */
extern bool stream_receive(Stream *stream, MessageHeader *header, void *body, size_t size,
						   int wait_ms, bool *garbage);
/* Returns whether another message has come, or a part of one. */
extern bool stream_waits(const Stream *stream);
/* Sends held-back answers, and then this message. */
extern bool stream_send(Stream *stream, MessageType type, const void *body, size_t length);
extern bool stream_send_fd(Stream *stream, MessageType type, const void *body, size_t length,
						   int fd);
/*
 * Holds a short message back. It is sent with the next one, or before the session waits for a
 * message.
 */
extern bool stream_hold(Stream *stream, MessageType type, const void *body, size_t length);

/* ---- check.c ---- */

/* Each returns NULL if the message is valid, else a text that says what is wrong. */
extern const char *check_query(const WireQuery *q, size_t length);
extern const char *check_batch(const WireBatch *b, const WireQuery *q, size_t length,
							   size_t buffer_bytes, int buffers);

extern const char *check_store(const WireStore *in, size_t length, size_t buffer_bytes,
							   int buffers);
extern const char *check_dictionary(const WireDictionary *in, size_t length, int buffers);
extern const char *check_values(const WireValues *in, size_t length, size_t buffer_bytes,
								int buffers);
/* Checks the cells in a copy of the buffer, after check_resident(). */
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

/* Memory that is shared with a client: a memfd, mapped and pinned here. */
typedef struct Arena
{
	struct Arena *next; /* in the list of idle arenas */
	int fd;
	char *memory;
	size_t bytes;
	time_t idle_since; /* seconds of the monotonic clock */
	/* number of the kept connection whose client has it mapped, while it is idle; else 0 */
	uint64_t owner;
} Arena;

#define ARENA_BUFFERS WIRE_BUFFERS
/* Tests make it smaller. */
#ifndef ARENA_BUFFER_BYTES
#define ARENA_BUFFER_BYTES WIRE_BUFFER_BYTES
#endif
#define ARENA_BYTES ((size_t) ARENA_BUFFERS * ARENA_BUFFER_BYTES)
/* Number of arenas that are made before the first session. So many stay, even if they are idle. */
#define ARENAS_AHEAD 4

/*
 * Makes `count` arenas in advance, so that the first queries need not wait for pinning. Makes fewer
 * if the limit is reached.
 */
extern bool arena_prepare(int count, DeviceError *error);
/*
 * Returns an arena; NULL if there is no memory or the limit is reached. If the arena that this
 * owner has given back last is still unused, returns that one; its `owner` is then this owner.
 */
extern Arena *arena_take(uint64_t owner, DeviceError *error);
/*
 * Gives an arena back. The owner, a session's number, may take the same arena again; 0: no owner.
 */
extern void arena_give(Arena *arena, uint64_t owner);
/* Forgets this owner, which will take no arena again. */
extern void arena_disown(uint64_t owner);
/* Frees an arena into which a client may still write, instead of keeping it for the next one. */
extern void arena_discard(Arena *arena);
/*
 * Limits the bytes of all arenas. If the limit becomes lower, arenas beyond it are freed when
 * sessions end.
 */
extern void arena_set_limit(uint64_t bytes);
/* Returns the bytes of all arenas, idle or not. */
extern uint64_t arena_bytes(void);
/* Frees arenas that were idle for arena_idle_seconds, which tests may lower. */
extern void arena_trim(void);
extern int arena_idle_seconds;

/* ---- shared_query.c ---- */

/*
 * A query of a session, or of several sessions that share it. It wraps the device layer's
 * DeviceQuery (device.h) with a lock and a status.
 */
typedef struct SharedQuery
{
	struct SharedQuery *next;
	int users;      /* number of sessions */
	int device;     /* on which the query is open, or will be opened */
	WireQuery wire; /* what it was opened with */
	double *thresholds;

	char *arena; /* of the session, if the query is not shared; else NULL */

	atomic_bool full; /* the device had no room for some rows: no more rows are taken */

	pthread_mutex_t lock; /* protects all that follows; held during each device call on `query` */
	DeviceQuery *query;   /* NULL: not open yet; only if not shared */
	bool rows;            /* some rows have been reduced */
	uint64_t use;         /* number of its use of stored columns (store_use); 0: none yet */
	struct PeerQuery *peers[WIRE_MAX_DEVICES]; /* on other devices (spread.h); or NULL */
	bool finished;                             /* groups may be fetched, and rows are errors */
	bool limited;                              /* `limit` restricts the groups */
	WireLimit limit;
	/*
	 * Status and text of the device call that failed, or DEVICE_OK. Every further call returns
	 * them.
	 */
	DeviceStatus failed;
	DeviceError failure;
} SharedQuery;

/*
 * Returns in *query a query that this session belongs to. Joins the query with the same shared_id,
 * on the device where it is. Else creates the query: a shared one is opened on `device` at once,
 * another one by shared_query_place(). Copies `thresholds`. The arena must stay until
 * shared_query_leave().
 */
extern DeviceStatus shared_query_enter(SharedQuery **query, int device, char *arena,
									   const WireQuery *wire, const double *thresholds,
									   DeviceError *error);
/* Opens the query on this device, unless it is open. */
extern DeviceStatus shared_query_place(SharedQuery *query, int device, DeviceError *error);
/* Removes this session from the query. The last one closes the query. */
extern void shared_query_leave(SharedQuery *query);

/*
 * Functions of device_ops, called with the query locked, except for shared_query_copy(). After a
 * failure every call fails with the same status and text, for all sessions of the query. A call out
 * of order returns DEVICE_UNSUPPORTED.
 */
/*
 * Called without the lock. Returns DEVICE_FULL if the device has no memory for copies, or if the
 * query takes no more rows.
 */
extern DeviceStatus shared_query_copy(SharedQuery *query, Lane *lane, const WireBatch *batch,
									  size_t *bytes, DeviceError *error);
extern DeviceStatus shared_query_reduce(SharedQuery *query, Lane *lane, const WireBatch *batch,
										DeviceError *error);
/* See spread_store() and spread_resident() in spread.h. */
extern DeviceStatus shared_query_store(SharedQuery *query, Lane *lane, const WireStore *in,
									   struct Dictionary *dict, bool *kept, DeviceError *error);
extern DeviceStatus shared_query_resident(SharedQuery *query, Lane *lane, const WireResident *in,
										  const WireRowRange *row_ranges, uint64_t *lacking,
										  WireResided *resided, DeviceError *error);
extern DeviceStatus shared_query_finish(SharedQuery *query, WireFinished *result,
										DeviceError *error);
extern DeviceStatus shared_query_pick(SharedQuery *query, Lane *lane, const WirePick *in,
									  const int32_t *places, DeviceError *error);
extern DeviceStatus shared_query_fetch(SharedQuery *query, Lane *lane, const WireGroups *out,
									   DeviceError *error);
extern DeviceStatus shared_query_reset(SharedQuery *query, DeviceError *error);
/* Returns the status and text of the device call that failed, or DEVICE_OK. */
extern DeviceStatus shared_query_failure(SharedQuery *query, DeviceError *error);

/* ---- watch.c ---- */

/* A message that a session is handling. The session owns it. */
typedef struct Watch
{
	struct Watch *next;
	int place;     /* the device; WIRE_MAX_DEVICES: the session has none yet */
	int64_t since; /* ms of the monotonic clock */
} Watch;

/* Register a message, and end it. device = -1: the session has none yet. */
extern void watch_begin(Watch *watch, int device);
extern void watch_end(Watch *watch);
/*
 * Returns the longest time, in ms, that a device has had work and completed none of it; 0 if all
 * are idle.
 */
extern uint64_t watch_stalled_ms(void);

/* ---- session.c ---- */

/*
 * Most connections that are kept between queries at a time, and for how long each, in ms. Tests may
 * lower them before the first session.
 */
extern int session_most_kept;
extern int session_keep_ms;

/* Starts the thread of a connection, which closes the socket at its end. */
extern void session_start(int sock);
/* Starts a detached thread. Returns false, with errno, if that fails. */
extern bool thread_start(void *(*main)(void *), void *arg);

/* ---- control.c ---- */

/* Sets the pipe to the supervisor (-1: none), and the socket that server_end() removes. */
extern void control_init(int fd, const char *socket);
/*
 * Main function of the thread that reads the pipe. It ends the process when the supervisor is gone.
 */
extern void *control_main(void *arg);
/* Sends a message to the supervisor. Without a pipe, writes logs to standard error. */
extern void control_tell(MessageType type, const void *body, size_t length);
extern void server_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the socket, and ends the process. */
extern void server_end(int status) __attribute__((noreturn));
/* Logs the reason and ends the process, after DEVICE_LOST. */
extern void server_abandon(const char *reason) __attribute__((noreturn));

#endif /* GPUAGG_SERVER_H */
