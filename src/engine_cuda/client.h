/*
 * client.h
 *	  A backend's connection to the GPU server.
 */
#ifndef GPUAGG_CUDA_CLIENT_H
#define GPUAGG_CUDA_CLIENT_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "portability/instr_time.h"
#include "utils/palloc.h"

#include "protocol.h"

/*
 * Allocated in the memory context given to client_connect; reset or deletion of
 * that context closes the connection, so errors leave nothing behind.
 */
typedef struct Client
{
	int sock;                   /* -1: closed */
	char *arena;                /* from OPENED on */
	char *mapped;               /* the same, or the one of an earlier query */
	int arena_fd;               /* until it is mapped; else -1 */
	struct WaitEventSet *waits; /* the latch and the socket; NULL: nothing was waited for yet */
	uint32 waits_for;           /* of the socket */
	bool reused;                /* OPEN was sent over a connection of an earlier query */
	bool opening;               /* ... and is not answered */
	bool greeting; /* nor is HELLO, which was sent with it: nothing of `welcome` is known */
	bool midway;   /* something was sent since client_settle() */
	StringInfoData
		out;     /* what was queued, also what was sent since OPEN while that is not answered */
	size_t sent; /* of it */
	int from,    /* of in[]: what has come ahead */
		to;
	char in[2048];
	int patience; /* ms to wait for each answer; 0: no limit */
	WireWelcome welcome;
	instr_time since;  /* when the wait for the answer began */
	bool waiting;      /* ... if one is waited for */
	char failure[256]; /* why the last call returned false */
	/*
	 * May be NULL: called before a connection that failed is closed, after which the arena may be
	 * another session's.
	 */
	void (*failing)(void *arg);
	void *failing_arg;
	MemoryContextCallback callback;
} Client;

/* Not connected yet. */
extern Client *client_create(MemoryContext cxt);
/*
 * Connects a client that is closed, and sends OPEN with this body, whose answer is still to come:
 * until client_opened() the arena and the welcome are not there.  client->sock is -1 if there is no
 * server, or this process has as many sessions as it may have.  A server that does not answer
 * within gpuagg.server_timeout is treated like one that ended.
 */
extern void client_connect(Client *client, const void *open, size_t length);
/* Has this process as many sessions as it may have? */
extern bool client_full(void);
/* Waits for the answer to OPEN, unless that was done; false as of client_send(). */
extern bool client_opened(Client *client);
extern void client_close(Client *client);
/*
 * All answers have come; only then client_end() keeps the connection for the next query of this
 * process.
 */
static inline void
client_settle(Client *client)
{
	client->midway = false;
}
extern void client_end(Client *client);

/* False, with client->failure: the connection was lost or given up, and is closed. */
extern bool client_send(Client *client, MessageType type, const void *body, size_t length);
/* The same, but it is sent with the next one. */
extern bool client_queue(Client *client, MessageType type, const void *body, size_t length);
/* Receives one message of this type and length. */
extern bool client_receive(Client *client, MessageType type, void *body, size_t length);

/* Closes the connection for this reason; returns false. */
extern bool client_fail(Client *client, const char *failure);

/* Populates the page table for the first `bytes` of so many buffers. */
extern void client_prepare(Client *client, size_t bytes, double buffers);

/* Asks the server for its devices and counters. */
extern bool client_status(WireStatus *status);

/*
 * Asks it for the columns that it keeps, in the current memory context; *n is how many there are.
 * NULL: no answer.
 */
extern WireListedColumn *client_list(int *n);

#endif /* GPUAGG_CUDA_CLIENT_H */
