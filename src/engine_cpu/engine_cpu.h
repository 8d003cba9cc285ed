/*
 * engine_cpu.h
 *	  The CPU engine, for other folders.
 */
#ifndef GPUAGG_ENGINE_CPU_H
#define GPUAGG_ENGINE_CPU_H

#include "engine.h"

extern const EngineOps engine_cpu_ops;

/*
 * Combines groups with those of a CPU engine; transition values of type internal
 * are serialized.  May be called before, between and after add_batch.
 */
extern void cpu_merge_groups(Engine *cpu, const GroupBatch *groups);

/*
 * The same of groups as engines return them: transition values of type internal are those of another engine, which
 * keeps them.
 */
extern void cpu_combine_groups(Engine *cpu, const GroupBatch *groups);

#endif							/* GPUAGG_ENGINE_CPU_H */
