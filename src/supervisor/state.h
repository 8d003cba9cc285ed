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
	SERVER_ABSENT, /* the library is not in shared_preload_libraries */
	SERVER_OFF,    /* gpuagg.server is off */
	SERVER_STARTING,
	SERVER_READY,
	SERVER_UNAVAILABLE, /* no binary, no driver, no device, or no slot for the supervisor */
	SERVER_RESTARTING   /* it has ended, and another one will be started */
} ServerState;

typedef struct ServerSnapshot
{
	ServerState state;
	int supervisor;    /* its process; 0: none */
	int restarts;      /* of servers that ended by themselves, or hung */
	char reason[256];  /* why it is not ready, or the last error; may be empty */
	char build[128];   /* what the last server was built with; empty: none has said so */
	WireStatus status; /* of the last start; without devices if it was never ready */
} ServerSnapshot;

/*
 * From _PG_init: reserves the shared memory, where the library is preloaded.  first_state
 * is called when that is there, and gives the state to begin with, and the reason for it.
 */
extern void server_state_init(ServerState (*first_state)(char *reason, size_t size));

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
extern void server_set_build(const char *text);
/* The devices are not those of the settings any more. */
extern void server_forget_devices(void);
extern void server_count_restart(void);

/* This process is the supervisor from now on; false if there is one. */
extern bool server_claim(void);
/* It is no longer, for good or until the postmaster starts it again. */
extern void server_resign(bool for_good);

/*
 * Is there neither a server nor a supervisor that would start one?  True for one process in
 * a second at most, which may then start a supervisor.
 */
extern bool server_is_orphaned(void);

#endif /* GPUAGG_SERVER_STATE_H */
