/*
 * kernels_absorb.cu
 *	  Kernels for groups that were copied from another device; see kernels.h.
 */
#include "common.cuh"
#include "operators/monoid.h"

#include "device_cuda/kernels.h"

#define THREADS 256

static int
grid_for(int64_t n, int most)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;

	return (int) (blocks < most ? (blocks > 0 ? blocks : 1) : most);
}

/* ---- keys ---- */

__global__ static void
unpack_keys_kernel(const __grid_constant__ UnpackKeys unpack, const char *keys, int64_t n)
{
	int64_t end = (n + 31) / 32 * 32;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < end;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		const char *key = keys + i * unpack.key_bytes;
		unsigned nulls = i < n && unpack.null_offset < unpack.key_bytes ?
			(unsigned char) key[unpack.null_offset] :
			0;

		for (int k = 0; k < unpack.nkeys; k++)
		{
			uint32_t word = __ballot_sync(~0u, i < n && !(nulls >> k & 1));

			if (unpack.validity[k] && threadIdx.x % 32 == 0)
				unpack.validity[k][i / 32] = word;
			for (int b = 0; i < n && b < unpack.width[k]; b++)
				((char *) unpack.values[k])[i * unpack.width[k] + b] = key[unpack.offset[k] + b];
		}
	}
}

GpuaggCudaStatus
device_unpack_keys(const UnpackKeys *unpack, const void *keys, int64_t n, gpuagg_stream stream)
{
	unpack_keys_kernel<<<grid_for(n, 4096), THREADS, 0, stream>>>(*unpack, (const char *) keys, n);
	CUDA_TRY_LAUNCH("unpack_keys_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- states: no two groups have the same bin, so threads need no atomics ---- */

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	struct Combine_##name \
	{ \
		typedef state_t State; \
		static __device__ __forceinline__ State \
		combine(const State &a, const State &b) \
		{ \
			return name##_combine(a, b); \
		} \
		static __device__ __forceinline__ int \
		error(const State &a, const State &b, const State &r) \
		{ \
			return name##_error(a, b, r); \
		} \
	};
#include "operators/monoid_list.h"
#undef MONOID

template <class Op>
__global__ static void
combine_kernel(const __grid_constant__ CombineStates in)
{
	typedef typename Op::State State;
	int64_t n = in.n * in.width;
	int errors = 0;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t group = i / in.width;
		State *to = (State *) in.states +
			(in.bins ? in.bins[group] * (int64_t) in.width + i % in.width : i);
		State a = *to;
		State b = ((const State *) in.from)[i];
		State r = Op::combine(a, b);

		errors |= Op::error(a, b, r);
		*to = r;
	}
	if (errors)
		atomicOr(in.errors, (unsigned) errors);
}

__global__ static void
count_kernel(const __grid_constant__ CombineStates in)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < in.n;
		 i += (int64_t) gridDim.x * blockDim.x)
		((int64_t *) in.states)[in.bins[i]]++;
}

GpuaggCudaStatus
device_combine_states(const CombineStates *in, gpuagg_stream stream)
{
	int grid = grid_for(in->n * in->width, 8192);

	if (in->from == nullptr)
	{
		count_kernel<<<grid, THREADS, 0, stream>>>(*in);
		CUDA_TRY_LAUNCH("count_kernel");
		return GPUAGG_CUDA_OK;
	}
	switch (in->monoid)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	case MONOID_##NAME: \
		if (!(comm)) \
			return GPUAGG_CUDA_UNSUPPORTED; \
		combine_kernel<Combine_##name><<<grid, THREADS, 0, stream>>>(*in); \
		break;
#include "operators/monoid_list.h"
#undef MONOID
		default:
			return GPUAGG_CUDA_UNSUPPORTED;
	}
	CUDA_TRY_LAUNCH("combine_kernel");
	return GPUAGG_CUDA_OK;
}
