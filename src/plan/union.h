/*
 * union.h
 *	  UNION as SELECT DISTINCT over UNION ALL.
 */
#ifndef GPUAGG_UNION_H
#define GPUAGG_UNION_H

extern void union_install_hook(void);

#endif /* GPUAGG_UNION_H */
