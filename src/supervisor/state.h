/*
 * state.h
 *	  The state of the GPU server in shared memory.
 *
 * The supervisor writes it; the choice of an engine, sessions and gpuagg_devices()
 * read it.  Without shared_preload_libraries there is no shared memory, no supervisor
 * and no server.
 */
#ifndef GPUAGG_SERVER_STATE_H
#define GPUAGG_SERVER_STATE_H

#include "postgres.h"

#include "protocol.h"

typedef enum ServerState
{
	SERVER_ABSENT,				/* the library is not in shared_preload_libraries */
	SERVER_OFF,					/* gpuagg.server is off */
	SERVER_STARTING,
	SERVER_READY,
	SERVER_UNAVAILABLE,			/* no binary, no driver or no device */
	SERVER_RESTARTING			/* it has ended, and another one will be started */
} ServerState;

typedef struct ServerSnapshot
{
	ServerState state;
	int			restarts;		/* of servers that ended by themselves, or hung */
	char		reason[256];	/* why it is not ready, or the last error; may be empty */
	WireStatus	status;			/* of the last start; valid if it was ever ready */
} ServerSnapshot;

/* From _PG_init: reserves the shared memory, where the library is preloaded. */
extern void server_state_init(void);

/* Is a server ready?  If not, `reason` says why not in a few words. */
extern bool server_ready(char *reason, size_t reason_size);
/* Of the first device, for EXPLAIN. */
extern void server_device_name(char *name, size_t size);
extern void server_snapshot(ServerSnapshot *snapshot);
extern const char *server_state_name(ServerState state);

/* A backend met an error at the server, for gpuagg_devices(). */
extern void server_note_error(const char *text);

/* For the supervisor. */
extern void server_set_state(ServerState state, const char *reason);
extern void server_set_ready(const WireStatus *status);
extern void server_count_restart(void);

#endif							/* GPUAGG_SERVER_STATE_H */
