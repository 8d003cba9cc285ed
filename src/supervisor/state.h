/*
 * state.h
 *	  The state of the GPU server in shared memory.
 *
 * The supervisor writes it. The choice of an engine, sessions and gpuagg_devices() read it. Without
 * shared_preload_libraries there is no shared memory, no supervisor and no server.
 *
 * Every function takes the lock for a short time. None of them waits for the server.
 */
#ifndef GPUAGG_SERVER_STATE_H
#define GPUAGG_SERVER_STATE_H

#include "postgres.h"

#include "protocol_status.h"

typedef enum ServerState
{
	SERVER_ABSENT, /* the library is not in shared_preload_libraries */
	SERVER_OFF,    /* gpuagg.server is off */
	SERVER_STARTING,
	SERVER_READY,
	SERVER_UNAVAILABLE, /* no binary, no driver, no device, or no slot for the supervisor */
	SERVER_RESTARTING   /* the server has ended, and another one will be started */
} ServerState;

/* A copy of the state. */
typedef struct ServerSnapshot
{
	ServerState state;
	int supervisor;    /* process id of the supervisor; 0: none */
	int restarts;      /* number of servers that ended by themselves, or hung */
	char reason[256];  /* why the server is not ready, or the last error; may be empty */
	char build[128];   /* description of the last server's build; empty: not known */
	WireStatus status; /* of the last server that was ready; without devices if none was */
} ServerSnapshot;

/*
 * Called in _PG_init. Reserves the shared memory if the library is preloaded. first_state is called
 * when the memory exists; it returns the first state, and the reason for it.
 */
extern void server_state_init(ServerState (*first_state)(char *reason, size_t size));

/* Returns whether a server is ready. If not, `reason` says why, in a few words. */
extern bool server_ready(char *reason, size_t reason_size);
/* Returns the name of the first device, for EXPLAIN; with several devices also their number. */
extern void server_device_name(char *name, size_t size);
extern void server_snapshot(ServerSnapshot *snapshot);
extern const char *server_state_name(ServerState state);

/* Records a backend's error at the server, for gpuagg_devices(). */
extern void server_note_error(const char *text);

/* For the supervisor. */
extern void server_set_state(ServerState state, const char *reason);
extern void server_set_ready(const WireStatus *status);
extern void server_set_build(const char *text);
/* Forgets the devices, because the settings name others now. */
extern void server_forget_devices(void);
extern void server_count_restart(void);

/* Makes this process the supervisor. Returns false if there is one. */
extern bool server_claim(void);
/* Ends being the supervisor. for_good: otherwise the postmaster starts it again. */
extern void server_resign(bool for_good);

/*
 * Returns whether there is neither a server nor a supervisor that would start one. Returns true for
 * at most one process per second, which may then start a supervisor.
 */
extern bool server_is_orphaned(void);

#endif /* GPUAGG_SERVER_STATE_H */
