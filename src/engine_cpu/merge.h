/*
 * merge.h
 *	  Groups that others made, into a CPU engine.
 */
#ifndef GPUAGG_ENGINE_CPU_MERGE_H
#define GPUAGG_ENGINE_CPU_MERGE_H

#include "engine.h"

/*
 * Combines groups with those of a CPU engine; transition values of type internal
 * are serialized.  May be called before, between and after add_batch.
 */
extern void cpu_merge_groups(Engine *cpu, const GroupBatch *groups);

#endif							/* GPUAGG_ENGINE_CPU_MERGE_H */
