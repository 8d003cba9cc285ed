/*
 * common.cuh
 *	  Common to all kernel files: error macros, device facts, launches, workspaces, and the monoid
 *	  list as C++ types.
 *
 * Host functions return GpuaggCudaStatus.  The macros record a CUDA error with its text, file and
 * line for gpuagg_cuda_last_error().  Nothing here allocates device memory or synchronizes.
 */
#ifndef GPUAGG_COMMON_CUH
#define GPUAGG_COMMON_CUH

#include <cuda_runtime.h>

#include "gpuagg_cuda.h"

/* The library is built with hidden visibility; its C API is exported. */
#define GPUAGG_API extern "C" __attribute__((visibility("default")))

/* Returns GPUAGG_CUDA_ERROR from the calling function if the call failed. */
#define CUDA_TRY(call) \
	do \
	{ \
		cudaError_t cuda_try_err = (call); \
		if (cuda_try_err != cudaSuccess) \
			return gpuagg_cuda_fail(cuda_try_err, #call, __FILE__, __LINE__); \
	} while (0)

/* Returns GPUAGG_CUDA_ERROR from the calling function if the last kernel launch failed. */
#define CUDA_TRY_LAUNCH(name) \
	do \
	{ \
		cudaError_t cuda_try_err = cudaGetLastError(); \
		if (cuda_try_err != cudaSuccess) \
			return gpuagg_cuda_fail(cuda_try_err, "launch of " name, __FILE__, __LINE__); \
	} while (0)

/* Returns the status of the call from the calling function, unless it is GPUAGG_CUDA_OK. */
#define STATUS_TRY(call) \
	do \
	{ \
		GpuaggCudaStatus status_try = (call); \
		if (status_try != GPUAGG_CUDA_OK) \
			return status_try; \
	} while (0)

/* Records the error for this thread.  Returns GPUAGG_CUDA_ERROR. */
GpuaggCudaStatus gpuagg_cuda_fail(cudaError_t err, const char *call, const char *file, int line);

/* Devices with a higher number are INVALID. */
#define GPUAGG_MAX_DEVICES 64

/* Properties of a device and of the code that runs on it, which launches depend on. */
struct DeviceFacts
{
	int sms;   /* multiprocessors */
	int major; /* major compute capability */
	size_t l2_bytes;
	size_t smem_per_sm;    /* bytes of shared memory of a multiprocessor */
	size_t smem_per_block; /* most bytes for one block (allow_shared) */
	int threads_per_sm;
	bool built_for_90; /* the running code was compiled for compute capability 9.0 or later: kernels
						  wait for their predecessors, and use 128-bit atomics */
	int pairs; /* clusters of two blocks that run concurrently, a block on each multiprocessor */
};

/* Sets *facts to the facts of the current device. */
GpuaggCudaStatus gpuagg_device_facts(const DeviceFacts **facts);

/* ---- launches that overlap the end of the kernel before them on the stream ---- */

/*
 * A kernel that launch_early started calls this before it reads what an earlier kernel of the
 * stream wrote.
 */
static __device__ __forceinline__ void
wait_for_predecessor()
{
#if __CUDA_ARCH__ >= 900
	cudaGridDependencySynchronize();
#endif
}

/* The next kernel of the stream may start when all blocks have called this or have ended. */
static __device__ __forceinline__ void
let_successor_start()
{
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/*
 * Returns `value` with each 32-bit word replaced by take(word).  With a warp shuffle as take(),
 * this passes a state of any size between lanes.
 */
template <class T, class Take>
static __device__ __forceinline__ T
shuffle_words(T value, const Take &take)
{
	static_assert(sizeof(T) % 4 == 0, "states are whole words");
	uint32_t words[sizeof(T) / 4];

	memcpy(words, &value, sizeof(T));
#pragma unroll
	for (unsigned i = 0; i < sizeof(T) / 4; i++)
		words[i] = take(words[i]);
	memcpy(&value, words, sizeof(T));
	return value;
}

/* Returns an integer of a column, sign-extended. */
static __device__ __forceinline__ int64_t
load_integer(const void *values, GpuaggValueType type, size_t row)
{
	switch (type)
	{
		case GPUAGG_VALUE_I8:
			return ((const int8_t *) values)[row];
		case GPUAGG_VALUE_I16:
			return ((const int16_t *) values)[row];
		case GPUAGG_VALUE_I32:
			return ((const int32_t *) values)[row];
		default:
			return ((const int64_t *) values)[row];
	}
}

/*
 * Launches a kernel in clusters of `cluster` blocks, which can read each other's shared memory.  If
 * the running code was compiled for 9.0, the kernel may start before its predecessor has ended.  It
 * must therefore call wait_for_predecessor() and let_successor_start().
 */
template <class... Params, class... Args>
static inline cudaError_t
launch_clusters(void (*kernel)(Params...), int cluster, int blocks, int threads,
				size_t shared_bytes, const DeviceFacts &facts, cudaStream_t stream,
				const Args &...args)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute[2] = {};

	config.gridDim = dim3(blocks);
	config.blockDim = dim3(threads);
	config.dynamicSmemBytes = shared_bytes;
	config.stream = stream;
	attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute[0].val.programmaticStreamSerializationAllowed = 1;
	attribute[1].id = cudaLaunchAttributeClusterDimension;
	attribute[1].val.clusterDim.x = cluster;
	attribute[1].val.clusterDim.y = attribute[1].val.clusterDim.z = 1;
	config.attrs = attribute;
	config.numAttrs = !facts.built_for_90 ? 0 : cluster > 1 ? 2 : 1;
	return cudaLaunchKernelEx(&config, kernel, args...);
}

/* Like launch_clusters(), but without clusters. */
template <class... Params, class... Args>
static inline cudaError_t
launch_early(void (*kernel)(Params...), int blocks, int threads, size_t shared_bytes,
			 const DeviceFacts &facts, cudaStream_t stream, const Args &...args)
{
	return launch_clusters(kernel, 1, blocks, threads, shared_bytes, facts, stream, args...);
}

/*
 * Launches blocks that wait for each other (a cooperative launch): all of them run concurrently, or
 * the launch fails.
 */
template <class... Params, class... Args>
static inline cudaError_t
launch_together(void (*kernel)(Params...), int blocks, int threads, size_t shared_bytes,
				cudaStream_t stream, const Args &...args)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};

	config.gridDim = dim3(blocks);
	config.blockDim = dim3(threads);
	config.dynamicSmemBytes = shared_bytes;
	config.stream = stream;
	attribute.id = cudaLaunchAttributeCooperative;
	attribute.val.cooperative = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	return cudaLaunchKernelEx(&config, kernel, args...);
}

/*
 * Divides the caller's workspace into arrays, aligned to 256 bytes.  Without memory it only counts
 * bytes, so that the same code finds the size and takes the arrays.
 */
struct Workspace
{
	char *base;
	size_t used;

	explicit Workspace(void *memory) : base(static_cast<char *>(memory)), used(0)
	{
	}

	/* Returns the next array; NULL without memory. */
	template <typename T>
	T *
	take(size_t count)
	{
		size_t at = (used + 255) & ~(size_t) 255;

		used = at + count * sizeof(T);
		return base ? reinterpret_cast<T *>(base + at) : nullptr;
	}
};

/*
 * Ends the first half of a function with a workspace, after all take() calls.  Returns the size if
 * the caller gave no memory, and GPUAGG_CUDA_WORKSPACE if it gave too little.
 */
#define WORKSPACE_TRY(ws, workspace, workspace_bytes) \
	do \
	{ \
		if ((workspace) == nullptr) \
		{ \
			*(workspace_bytes) = (ws).used > 0 ? (ws).used : 1; \
			return GPUAGG_CUDA_OK; \
		} \
		if (*(workspace_bytes) < (ws).used) \
			return GPUAGG_CUDA_WORKSPACE; \
	} while (0)

/*
 * Each operator of the monoid list as a type, for templates.  Its functions are those of the list.
 * reduces_rows: histograms and runs have the operator.  They do not have the registers of sketches
 * (HLL_MAX), which a kernel of the server updates.
 */
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	struct Op_##name \
	{ \
		typedef input_t Input; \
		typedef state_t State; \
		static constexpr MonoidId id = MONOID_##NAME; \
		static constexpr bool commutative = (comm) != 0; \
		static constexpr bool reduces_rows = (comm) && MONOID_##NAME != MONOID_HLL_MAX; \
		static __host__ __device__ __forceinline__ State \
		identity() \
		{ \
			return name##_identity(); \
		} \
		static __host__ __device__ __forceinline__ State \
		lift(Input x) \
		{ \
			return name##_lift(x); \
		} \
		static __host__ __device__ __forceinline__ State \
		combine(State a, State b) \
		{ \
			return name##_combine(a, b); \
		} \
		static __host__ __device__ __forceinline__ State \
		step(State a, Input x) \
		{ \
			return name##_step(a, x); \
		} \
		static __host__ __device__ __forceinline__ int \
		error(State a, State b, State r) \
		{ \
			return name##_error(a, b, r); \
		} \
	};
#include "operators/monoid_list.h"
#undef MONOID

#endif /* GPUAGG_COMMON_CUH */
