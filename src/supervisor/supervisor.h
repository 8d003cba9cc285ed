/*
 * supervisor.h
 *	  The background worker that keeps the GPU server running.
 */
#ifndef GPUAGG_SUPERVISOR_H
#define GPUAGG_SUPERVISOR_H

/* From _PG_init: has the postmaster run the worker, where the library is preloaded. */
extern void supervisor_register(void);

#endif							/* GPUAGG_SUPERVISOR_H */
