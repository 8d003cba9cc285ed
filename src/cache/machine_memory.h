/*
 * machine_memory.h
 *
 * The memory that this process may use.
 */
#ifndef GPUAGG_MACHINE_MEMORY_H
#define GPUAGG_MACHINE_MEMORY_H

#include "postgres.h"

/*
 * Returns the machine's memory in bytes, or the limit of this process's control groups if that is
 * less; 0: unknown.
 */
extern uint64 machine_memory(void);

#endif /* GPUAGG_MACHINE_MEMORY_H */
