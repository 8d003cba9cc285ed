/*
 * foreign.h
 *	  Partial aggregation by the servers of foreign partitions.
 */
#ifndef GPUAGG_FOREIGN_H
#define GPUAGG_FOREIGN_H

extern void foreign_install_hook(void);

#endif /* GPUAGG_FOREIGN_H */
