/*
 * spool.h
 *	  Spool: groups of the GPU server that are kept in this process.
 */
#ifndef GPUAGG_CUDA_SPOOL_H
#define GPUAGG_CUDA_SPOOL_H

#include "postgres.h"

#include "protocol.h"

typedef struct CudaSpool CudaSpool;

/*
 * Creates a spool in `cxt`. It keeps mem_limit bytes in memory, and the rest in a temporary file of
 * the current resource owner.
 */
extern CudaSpool *cuda_spool_create(MemoryContext cxt, size_t mem_limit);
extern void cuda_spool_free(CudaSpool *spool);

/* Adds *groups, and the first `bytes` of a buffer, which has their arrays. */
extern void cuda_spool_put(CudaSpool *spool, const WireGroups *groups, const char *buffer,
						   size_t bytes);
/*
 * Returns the groups in the order in which they were added, after all were added; false at the end.
 * The buffer is valid until the next call.
 */
extern bool cuda_spool_get(CudaSpool *spool, WireGroups *groups, const char **buffer);

#endif /* GPUAGG_CUDA_SPOOL_H */
