/*
 * supervisor.h
 *	  The background worker that keeps the GPU server running.
 */
#ifndef GPUAGG_SUPERVISOR_H
#define GPUAGG_SUPERVISOR_H

/*
 * From _PG_init, where the library is preloaded: reserves the shared memory (state.h), and has
 * the postmaster run the worker unless it would have nothing to do.
 */
extern void supervisor_init(void);

/*
 * In a session, before it asks for the server's state: has a worker run if settings want a server
 * now and none is there, as gpuagg.server was off or no worker slot was free.
 */
extern void supervisor_ensure(void);

/* Is there a server's program, or does gpuagg.server_program name one? */
extern bool supervisor_has_program(void);

#endif /* GPUAGG_SUPERVISOR_H */
