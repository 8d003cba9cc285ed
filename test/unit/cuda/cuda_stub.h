/*
 * cuda_stub.h
 *	  A CUDA run time in host memory. Every call is complete when it returns. Tests can make
 *	  calls fail. Unit tests and the test server (../../stub_server) link it in place of libcudart.
 *
 * Two kinds of faults exist. stub_fail() counts calls of all threads; unit tests use it.
 * stub_arm() concerns the calls of one thread until stub_disarm(); the test server uses it.
 */
#ifndef GPUAGG_CUDA_STUB_H
#define GPUAGG_CUDA_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

typedef enum StubCall
{
	STUB_ALLOC,  /* allocations of device memory */
	STUB_COPY,   /* copies and fills */
	STUB_LAUNCH, /* launches: calls of the kernel library and of device_cuda/kernels.h */
	STUB_OTHER,  /* streams, events and contexts */
	STUB_CALLS,
	/* Values for stub_arm() only: */
	STUB_UPDATE = STUB_CALLS, /* launches that change states of groups */
	STUB_ANY                  /* all of the above */
} StubCall;

#define STUB_MAX_DEVICES 4
/* The number of devices, and the compute capability of each: ten times major plus minor. */
extern int stub_devices;
extern int stub_capability[STUB_MAX_DEVICES];
/* Results of device_kernel_versions(). */
extern int stub_binary;
extern int stub_ptx;

/* ---- faults ---- */

/*
 * The n-th call of this kind from now on (1 is the next one) fails with this error; with `on`, all
 * calls after it fail too. cudaErrorIllegalAddress stays with every later call until stub_mend().
 */
extern void stub_fail(StubCall call, int n, bool on, cudaError_t err);
extern void stub_mend(void);
/* Returns the number of calls of this kind since the last stub_fail() or stub_mend(). */
extern int stub_count(StubCall call);
/* Returns whether a call has failed since the last stub_fail(). */
extern bool stub_has_failed(void);

/*
 * This thread's next calls of this kind run `effect` once, unless it is NULL, and fail with the
 * error, unless it is cudaSuccess.
 */
extern void stub_arm(StubCall call, cudaError_t err, void (*effect)(void));
extern void stub_disarm(void);

/* ---- observations ---- */

/* Histogram updates by two keys without bins, and computations of bins from two keys. */
extern _Atomic int stub_paired_updates;
extern _Atomic int stub_paired_bins;
/* Rows that were partitioned by key: calls, and those whose table was empty. */
extern _Atomic int stub_partitions;
extern _Atomic int stub_adoptions;
/* Returns the number of allocations of device memory that were not freed. */
extern int stub_live(void);

/* ---- memory of devices ---- */

/* All in bytes. A device's free memory is stub_memory_bytes - others - reserved. */
typedef struct StubMemory
{
	size_t others;   /* memory of another process */
	size_t reserved; /* memory of the default pool */
	size_t used;     /* allocations in the pool */
	size_t grows;    /* bytes by which the pool grows after each query of its size */
} StubMemory;

extern size_t stub_memory_bytes;
extern StubMemory stub_memory[STUB_MAX_DEVICES];

/*
 * Servers that name the same file share the memory of the devices. The file has STUB_SHARERS
 * entries, one for each process.
 */
#define STUB_SHARERS 16
typedef struct StubSharer
{
	_Atomic int32_t pid; /* 0: free entry */
	_Atomic uint64_t reserved[STUB_MAX_DEVICES];
	/* for tests to read: the server's budget */
	_Atomic uint64_t used[STUB_MAX_DEVICES];
	_Atomic uint64_t limit[STUB_MAX_DEVICES];
} StubSharer;

/* Joins the processes that share the file's devices; returns false if that is not possible. */
extern bool stub_share(const char *path);
/* Writes a device's budget into this process's entry, if it has one. */
extern void stub_share_budget(int device, uint64_t used, uint64_t limit);

/* ---- for the kernels (cuda_stub_kernels.h) ---- */

/*
 * Work queued on the stream changes this memory. Aborts if a copy between devices may still read
 * it: that copy is complete only after a wait for its own stream.
 */
extern void stub_write(const void *at, size_t bytes, cudaStream_t stream);

/* Returns the result of a launch; `update`: it changes states of groups. */
extern cudaError_t stub_launch(bool update);
/* The error of this thread's last launch that failed. */
extern _Thread_local cudaError_t stub_last_code;

#define LAUNCH_KIND(update) \
	do \
	{ \
		cudaError_t launch_err = stub_launch(update); \
		if (launch_err != cudaSuccess) \
		{ \
			stub_last_code = launch_err; \
			return GPUAGG_CUDA_ERROR; \
		} \
	} while (0)
#define LAUNCH() LAUNCH_KIND(false)
#define LAUNCH_UPDATE() LAUNCH_KIND(true)

#endif /* GPUAGG_CUDA_STUB_H */
