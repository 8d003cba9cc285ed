/*
 * forget.h
 *	  Tables that are not there any more.
 */
#ifndef GPUAGG_CACHE_FORGET_H
#define GPUAGG_CACHE_FORGET_H

/*
 * From _PG_init, where the library is preloaded: from then on, what transactions drop, truncate
 * and rewrite is forgotten.
 */
extern void forget_init(void);

/* cache_sweep(), unless some process did it a short time ago. */
extern void forget_sweep_if_due(void);

#endif /* GPUAGG_CACHE_FORGET_H */
