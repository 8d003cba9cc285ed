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
 * In `cxt`; keeps mem_limit bytes in memory, and the rest in a temporary file of
 * the current resource owner.
 */
extern CudaSpool *cuda_spool_create(MemoryContext cxt, size_t mem_limit);
extern void cuda_spool_free(CudaSpool *spool);

/* Adds *groups and the first `bytes` of a buffer, which hold its arrays. */
extern void cuda_spool_put(CudaSpool *spool, const WireGroups *groups, const char *buffer,
						   size_t bytes);
/*
 * Once all are added, returns them in the same order; false at the end.  The
 * buffer is valid until the next call.
 */
extern bool cuda_spool_get(CudaSpool *spool, WireGroups *groups, const char **buffer);

#endif /* GPUAGG_CUDA_SPOOL_H */
