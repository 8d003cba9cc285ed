/*
 * common.cuh
 *	  What every kernel file needs: status and error macros, device facts, the
 *	  carving of a caller's workspace, and the monoid list as C++ types.
 *
 * Rules: host functions return GpuaggCudaStatus; the first CUDA error of a
 * call is kept with its text, file and line for gpuagg_cuda_last_error().
 * Nothing here allocates device memory or synchronizes.
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

/* The same for a kernel launch just made. */
#define CUDA_TRY_LAUNCH(name) \
	do \
	{ \
		cudaError_t cuda_try_err = cudaGetLastError(); \
		if (cuda_try_err != cudaSuccess) \
			return gpuagg_cuda_fail(cuda_try_err, "launch of " name, __FILE__, __LINE__); \
	} while (0)

#define STATUS_TRY(call) \
	do \
	{ \
		GpuaggCudaStatus status_try = (call); \
		if (status_try != GPUAGG_CUDA_OK) \
			return status_try; \
	} while (0)

/* Remembers the error for this thread; always GPUAGG_CUDA_ERROR. */
GpuaggCudaStatus gpuagg_cuda_fail(cudaError_t err, const char *call, const char *file, int line);

/* Devices whose facts are kept. */
#define GPUAGG_MAX_DEVICES 64

/* What the choice of a launch depends on, read once per device. */
struct DeviceFacts
{
	int sms;
	int major; /* of the compute capability */
	size_t l2_bytes;
	size_t smem_per_sm;
	size_t smem_per_block; /* with the opt-in above 48 KB */
	int threads_per_sm;
	bool built_for_90; /* and so is the code that runs: it waits for predecessors, and has 128-bit
						  atomics */
	int pairs; /* clusters of two blocks, each with a multiprocessor of its own, that run at once */
};

/* Facts of the current device. */
GpuaggCudaStatus gpuagg_device_facts(const DeviceFacts **facts);

/* ---- launches that overlap the end of the kernel before them on the stream ---- */

static __device__ __forceinline__ void
wait_for_predecessor()
{
#if __CUDA_ARCH__ >= 900
	cudaGridDependencySynchronize();
#endif
}

static __device__ __forceinline__ void
let_successor_start()
{
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* A state from another lane, word by word: take(word) is what that lane has. */
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

/* One integer of a column, sign-extended. */
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
 * Launches a kernel with leave to start while its predecessor drains: one that
 * waits for it before it reads what others wrote, and lets its own successor start.  Only
 * where the code that runs was compiled with these waits.
 * launch_clusters: so many blocks at a time see each other's shared memory.
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

template <class... Params, class... Args>
static inline cudaError_t
launch_early(void (*kernel)(Params...), int blocks, int threads, size_t shared_bytes,
			 const DeviceFacts &facts, cudaStream_t stream, const Args &...args)
{
	return launch_clusters(kernel, 1, blocks, threads, shared_bytes, facts, stream, args...);
}

/* Launches blocks that wait for each other, so that all of them run at once or none does. */
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
 * Carves a caller's workspace into arrays.  With base NULL it only counts, so
 * that the code which asks for the size and the code which uses the memory are
 * the same lines.
 */
struct Workspace
{
	char *base;
	size_t used;

	explicit Workspace(void *memory) : base(static_cast<char *>(memory)), used(0)
	{
	}

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
 * The end of the first half of every function with a workspace: answers the
 * size question, or refuses a workspace that is too small.
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
 * Each operator of the list as a type, for templates:
 *	 Input, State, id, commutative
 *	 reduces_rows: histograms and runs have it; registers of sketches are raised by a kernel of the
 * server's own identity(), lift(x), combine(a, b), step(a, x) and error(a, b, r)
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
