/*
 * float_sums.h
 *	  Exact aggregates of floats, as gpuagg.float_sum sets them.
 */
#ifndef GPUAGG_PLAN_FLOAT_SUMS_H
#define GPUAGG_PLAN_FLOAT_SUMS_H

/* Installs the hook that puts exact aggregates in place of others; it must be called first. */
extern void float_sums_install_hook(void);

#endif /* GPUAGG_PLAN_FLOAT_SUMS_H */
