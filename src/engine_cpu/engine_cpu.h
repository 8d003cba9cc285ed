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
 * The same of groups as engines return them: transition values of type internal are those of
 * another engine, which keeps them.
 */
extern void cpu_combine_groups(Engine *cpu, const GroupBatch *groups);

/*
 * Grouped input, all of whose complete groups have been returned: these come next, and combine with
 * the last group if that has their key.  Then the complete ones leave by next_groups: the last one,
 * too, if `closed`, when no later row has its key.
 */
extern void cpu_append_groups(Engine *cpu, const GroupBatch *groups, bool closed);

#endif /* GPUAGG_ENGINE_CPU_H */
