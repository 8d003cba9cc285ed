/*
 * gpuagg_cuda.h
 *	  Segmented reductions and generalized histograms on CUDA devices.
 *
 * A C interface, with no PostgreSQL and no session in it: used by the server,
 * the unit tests and the benchmarks alike.
 *
 * Conventions of every function unless its comment says otherwise:
 *	- pointers are device pointers, sizes are element counts in 64 bits (up to
 *	  2^33 elements), alignment is that of the element type only;
 *	- work is queued on `stream`; nothing synchronizes, nothing allocates;
 *	- scratch memory is the caller's: call with workspace = NULL to learn the
 *	  size in *workspace_bytes, then with memory of at least that size;
 *	- the result is the first error met, GPUAGG_CUDA_OK otherwise; the text of
 *	  the last CUDA error of this thread (call, file, line) is
 *	  gpuagg_cuda_last_error();
 *	- the same input on the same device gives the same bits on every run,
 *	  except where a function says that float atomics are used.
 *
 * Operators are named by MonoidId (monoid.h); inputs and states are arrays of
 * the types that the monoid list gives.
 */
#ifndef GPUAGG_CUDA_H
#define GPUAGG_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "monoid.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct CUstream_st *gpuagg_stream;	/* a cudaStream_t */

typedef enum GpuaggCudaStatus
{
	GPUAGG_CUDA_OK = 0,
	GPUAGG_CUDA_INVALID,		/* an argument makes no sense */
	GPUAGG_CUDA_UNSUPPORTED,	/* no instance for this operator or shape */
	GPUAGG_CUDA_WORKSPACE,		/* workspace_bytes is too small */
	GPUAGG_CUDA_FULL,			/* a table or output is full; see the function */
	GPUAGG_CUDA_ERROR			/* the CUDA call failed; see gpuagg_cuda_last_error */
} GpuaggCudaStatus;

/*
 * How the values of a column are stored.  NATIVE is the operator's own input
 * type; a narrower number is widened as it is read, so that no widened copy of
 * the column is needed.  Which pairs exist is stated by each section below.
 */
typedef enum GpuaggValueType
{
	GPUAGG_VALUE_NATIVE = 0,
	GPUAGG_VALUE_I8,
	GPUAGG_VALUE_I16,
	GPUAGG_VALUE_I32,
	GPUAGG_VALUE_I64,
	GPUAGG_VALUE_F32,
	GPUAGG_VALUE_F64
} GpuaggValueType;

const char *gpuagg_cuda_last_error(void);

#ifdef __cplusplus
}
#endif

#endif							/* GPUAGG_CUDA_H */
