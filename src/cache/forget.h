/*
 * forget.h
 *
 * Frees what is cached of tables that do not exist any more.
 */
#ifndef GPUAGG_CACHE_FORGET_H
#define GPUAGG_CACHE_FORGET_H

/*
 * Called by _PG_init if the library is preloaded: from then on, tables that transactions drop,
 * truncate or rewrite are forgotten.
 */
extern void forget_init(void);

/* Runs cache_sweep(), unless some process has done so a short time ago. */
extern void forget_sweep_if_due(void);

#endif /* GPUAGG_CACHE_FORGET_H */
