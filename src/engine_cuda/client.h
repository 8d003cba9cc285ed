/*
 * client.h
 *	  A backend's connection to the GPU server: sends and receives the messages of protocol.h.
 */
#ifndef GPUAGG_CUDA_CLIENT_H
#define GPUAGG_CUDA_CLIENT_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "portability/instr_time.h"
#include "utils/palloc.h"

#include "protocol_status.h"

/*
 * A connection. It belongs to the memory context given to client_create(). Reset or deletion of
 * that context closes the connection, so errors leave nothing behind.
 */
typedef struct Client
{
	int sock;     /* -1: closed */
	char *arena;  /* the session's arena; NULL until OPENED */
	char *mapped; /* the arena, or that of an earlier query over the same connection */
	int arena_fd; /* received, but not mapped; else -1 */
	struct WaitEventSet *waits; /* the latch and the socket; NULL: no wait so far */
	uint32 waits_for;           /* the socket's event in `waits` */
	bool reused;                /* OPEN was sent over a connection of an earlier query */
	bool opening;               /* OPEN is not answered yet */
	bool greeting;              /* HELLO is not answered yet: `welcome` is not valid */
	bool midway;                /* something was sent since client_settle() */
	/*
	 * Queued messages, and, while OPEN is not answered, also those that were sent since then: they
	 * may have to be sent again.
	 */
	StringInfoData out;
	size_t sent; /* bytes of `out` that were sent */
	int from,    /* the bytes read ahead: in[from .. to - 1] */
		to;
	char in[2048];
	int patience; /* time limit for each answer in ms; 0: none */
	WireWelcome welcome;
	instr_time since;  /* when the wait for the current answer began */
	bool waiting;      /* `since` is valid */
	char failure[256]; /* why the last call returned false */
	/*
	 * Optional callback. It is called before a failed connection is closed; afterwards the arena
	 * may belong to another session.
	 */
	void (*failing)(void *arg);
	void *failing_arg;
	MemoryContextCallback callback;
} Client;

/* Returns a client that is not connected. */
extern Client *client_create(MemoryContext cxt);
/*
 * Connects a closed client, and sends OPEN with this body. Does not wait for the answer: until
 * client_opened() there is neither an arena nor a welcome. client->sock is -1 if there is no
 * server, or if this process has the most sessions it may have. A server that does not answer
 * within gpuagg.server_timeout is treated as one that ended.
 */
extern void client_connect(Client *client, const void *open, size_t length);
/* Returns whether this process has the most sessions it may have. */
extern bool client_full(void);
/* Waits for the answer to OPEN, unless it has come. Returns false like client_send(). */
extern bool client_opened(Client *client);
extern void client_close(Client *client);
/*
 * Records that all answers have come. Only then client_end() keeps the connection for the next
 * query of this process.
 */
static inline void
client_settle(Client *client)
{
	client->midway = false;
}
/* Ends the session. Keeps the connection for the next query if that is possible. */
extern void client_end(Client *client);

/* Sends a message. Returns false, with client->failure, if the connection was lost or closed. */
extern bool client_send(Client *client, MessageType type, const void *body, size_t length);
/* Queues a message, which is sent with the next one. Returns false like client_send(). */
extern bool client_queue(Client *client, MessageType type, const void *body, size_t length);
/* Receives one message of this type and length. Returns false like client_send(). */
extern bool client_receive(Client *client, MessageType type, void *body, size_t length);

/* Closes the connection for this reason. Always returns false. */
extern bool client_fail(Client *client, const char *failure);

/* Populates the page table for the first `bytes` of `buffers` buffers. */
extern void client_prepare(Client *client, size_t bytes, double buffers);

/* Asks the server for its devices and counters. Returns false if there is no answer. */
extern bool client_status(WireStatus *status);

/*
 * Returns the columns that the server stores, in the current memory context, and their number in
 * *n; NULL if there is no answer.
 */
extern WireListedColumn *client_list(int *n);

#endif /* GPUAGG_CUDA_CLIENT_H */
