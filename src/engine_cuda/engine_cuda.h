/*
 * engine_cuda.h
 *	  The engine that runs on the GPU server.
 */
#ifndef GPUAGG_ENGINE_CUDA_H
#define GPUAGG_ENGINE_CUDA_H

#include "postgres.h"

#include "engine.h"

extern const EngineOps engine_cuda_ops;

/* Why the GPU leaves a query with an own transition function to the CPU engine. */
#define REASON_FALLBACK_AGGREGATE "an aggregate that only its own functions can compute"

/* May the GPU run this, with the server ready?  If not, `reason` is for EXPLAIN. */
extern bool engine_cuda_usable(const AggSpec *spec, char *reason, size_t reason_size);

/* Costs, in the planner's units; defined in engine_choice.c. */
extern double gpuagg_gpu_startup_cost;
extern double gpuagg_gpu_column_cost;

/*
 * After a run of the executor: the query's engines whose input is complete, or has
 * not begun, close their sessions.  With in_steps, those that still have groups at
 * the server bring them here first; else nobody will ask for them.
 */
extern void engine_cuda_release(EState *estate, bool in_steps);

#endif							/* GPUAGG_ENGINE_CUDA_H */
