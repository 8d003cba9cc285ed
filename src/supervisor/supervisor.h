/*
 * supervisor.h
 *	  The supervisor: a background worker that keeps the GPU server running.
 */
#ifndef GPUAGG_SUPERVISOR_H
#define GPUAGG_SUPERVISOR_H

/*
 * Called in _PG_init. If the library is preloaded, reserves the shared memory (state.h), and
 * registers the worker unless it would have nothing to do.
 */
extern void supervisor_init(void);

/*
 * Called in a session before it reads the server's state. Starts a supervisor if settings want a
 * server and there is no supervisor, because gpuagg.server was off or no worker slot was free.
 */
extern void supervisor_ensure(void);

/* Returns whether the server's program exists, or gpuagg.server_program names one. */
extern bool supervisor_has_program(void);

#endif /* GPUAGG_SUPERVISOR_H */
