/*
 * engine_cpu.h
 *	  The CPU engine, for other folders.
 *
 * It runs every spec. It raises errors instead of returning ENGINE_FAILED.
 */
#ifndef GPUAGG_ENGINE_CPU_H
#define GPUAGG_ENGINE_CPU_H

#include "engine.h"

extern const EngineOps engine_cpu_ops;

/*
 * Combines these groups with the groups of a CPU engine. Transition values of type internal must be
 * serialized. May be called before, between and after add_batch.
 */
extern void cpu_merge_groups(Engine *cpu, const GroupBatch *groups);

/*
 * Combines these groups with the groups of a CPU engine. They come from another engine's
 * next_groups: transition values of type internal are in memory, and belong to that engine.
 */
extern void cpu_combine_groups(Engine *cpu, const GroupBatch *groups);

/*
 * For grouped input, when all complete groups have been returned: appends groups, and combines the
 * first one with the last group if they have the same key. next_groups then returns all groups but
 * the last one; with `closed`, when no later row can have its key, also the last one.  Transition
 * values are in memory, as for cpu_combine_groups().
 */
extern void cpu_append_groups(Engine *cpu, const GroupBatch *groups, bool closed);

#endif /* GPUAGG_ENGINE_CPU_H */
