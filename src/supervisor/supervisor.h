/*
 * supervisor.h
 *	  The background worker that keeps the GPU server running.
 */
#ifndef GPUAGG_SUPERVISOR_H
#define GPUAGG_SUPERVISOR_H

extern void supervisor_register(void);

#endif							/* GPUAGG_SUPERVISOR_H */
