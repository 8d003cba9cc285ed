/*
 * cuda_stub.h
 *	  A CUDA run time in host memory: every call is done when it returns, and fails on request.
 */
#ifndef GPUAGG_CUDA_STUB_H
#define GPUAGG_CUDA_STUB_H

#include <stdbool.h>

#include "cuda_runtime_api.h"

typedef enum StubCall
{
	STUB_ALLOC,  /* device memory */
	STUB_COPY,   /* copies and fills */
	STUB_LAUNCH, /* a function of the kernel library */
	STUB_OTHER,  /* streams, events and a device's context */
	STUB_CALLS
} StubCall;

/* One device for each entry; ten times major plus minor. */
#define STUB_MAX_DEVICES 4
extern int stub_devices;
extern int stub_capability[STUB_MAX_DEVICES];
/* What device_kernel_versions returns. */
extern int stub_binary;
extern int stub_ptx;

/*
 * From now on the n-th call of this kind (1 is the next), and if `on` is set all
 * after it, returns this error.  An illegal address stays, for every call, until
 * stub_mend().
 */
extern void stub_fail(StubCall call, int n, bool on, cudaError_t err);
extern void stub_mend(void);
/* Calls of this kind since the last stub_fail or stub_mend. */
extern int stub_count(StubCall call);
/* Was an error returned since the last stub_fail? */
extern bool stub_has_failed(void);
/* Updates of histograms by two keys, and bins made of two. */
extern int stub_paired_updates;
extern int stub_paired_bins;
/* Pieces of device memory that were not freed. */
extern int stub_live(void);

/* Bytes that another process has of the device, and that the pool has, and those of them in use. */
extern size_t stub_others;
extern size_t stub_reserved;
extern size_t stub_used;
/* What the pool takes after each question for what it has. */
extern size_t stub_grows;

/*
 * Something that is asked of the stream changes this memory: no copy between devices may still be
 * reading it, as one does until its own stream was waited for.
 */
extern void stub_write(const void *at, size_t bytes, cudaStream_t stream);

/*
 * For the kernels (cuda_stub_kernels.h): what a launch returns, and the last one that failed has
 * returned.
 */
extern cudaError_t stub_launch(void);
extern _Thread_local cudaError_t stub_last_code;

#define LAUNCH() \
	do \
	{ \
		cudaError_t launch_err = stub_launch(); \
		if (launch_err != cudaSuccess) \
		{ \
			stub_last_code = launch_err; \
			return GPUAGG_CUDA_ERROR; \
		} \
	} while (0)

#endif /* GPUAGG_CUDA_STUB_H */
