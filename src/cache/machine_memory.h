/*
 * machine_memory.h
 *	  How much memory there is for this process.
 */
#ifndef GPUAGG_MACHINE_MEMORY_H
#define GPUAGG_MACHINE_MEMORY_H

#include "postgres.h"

/* Bytes of memory that the machine has, or the control groups that this process is in allow. */
extern uint64 machine_memory(void);

#endif /* GPUAGG_MACHINE_MEMORY_H */
