/*
 * spool.h
 *	  Groups of the GPU server, kept in this process.
 */
#ifndef GPUAGG_CUDA_SPOOL_H
#define GPUAGG_CUDA_SPOOL_H

#include "postgres.h"

#include "protocol.h"

typedef struct CudaSpool CudaSpool;

/*
 * Lives in `cxt`; keeps so much memory, and the rest in a temporary file of the
 * current resource owner.
 */
extern CudaSpool *cuda_spool_create(MemoryContext cxt, size_t mem_limit);
extern void cuda_spool_free(CudaSpool *spool);

/* The first `bytes` of a buffer, where the arrays of *groups lie. */
extern void cuda_spool_put(CudaSpool *spool, const WireGroups *groups, const char *buffer,
						   size_t bytes);
/*
 * The next ones in the order in which they were put, once all are; false at the
 * end.  The buffer is valid until the next call.
 */
extern bool cuda_spool_get(CudaSpool *spool, WireGroups *groups, const char **buffer);

#endif							/* GPUAGG_CUDA_SPOOL_H */
