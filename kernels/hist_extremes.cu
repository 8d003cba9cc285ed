/*
 * hist_extremes.cu
 *	  Maxima and minima of more bins than shared memory holds, in the L2 cache.
 *
 * A row reads its bin's limb, and goes on to an atomic only if it raises it.
 * The more rows a bin has had, the fewer of the next ones do, so nearly all that
 * is done are reads, which need no partition to be fast.
 */
#include "hist_kernels.cuh"

#define THREADS 512
#define BLOCKS 4
/* Of a thread at a time; with more, rows of a hot bin read it before the first of them has raised it. */
#define ROWS 2

/* The greater, the better; as in shared memory, but always of 64 bits. */
static __device__ __forceinline__ u64
extreme_code(const HistSlot &slot, int32_t v)
{
	return (u32) v ^ (slot.op == MONOID_MIN_I32 ? 0x7fffffffu : 0x80000000u);
}

static __device__ __forceinline__ u64
extreme_code(const HistSlot &slot, u64 v)
{
	return max_code(slot.op, v);
}

template <typename V> static __global__ void __launch_bounds__(THREADS, BLOCKS)
extremes_kernel(const __grid_constant__ HistArgs args)
{
	const HistSlot &slot = args.slot[0];
	const int32_t *column = (const int32_t *) args.bins.column[0].values;
	const V    *values = (const V *) slot.x.values;
	bool		index = args.bins.kind == GPUAGG_BIN_INDEX;
	u32			min = index ? 0 : (u32) (int32_t) args.bins.min[0],
				nbins = (u32) args.bins.nbins,
				outside = 0;
	u64		   *limb = args.limb + (size_t) slot.limb * args.limb_bins;

	let_successor_start();
	wait_for_predecessor();
	for (u64 base = blockIdx.x * (u64) (ROWS * THREADS); base < args.nrows; base += gridDim.x * (u64) (ROWS * THREADS))
	{
		u32			bin[ROWS];
		u64			code[ROWS],
					seen[ROWS];

#pragma unroll
		for (int j = 0; j < ROWS; j++)
		{
			u64			r = base + j * THREADS + threadIdx.x;

			bin[j] = ~0u;
			if (r >= args.nrows)
				continue;
			bin[j] = (u32) __ldcs(column + r) - min;
			code[j] = extreme_code(slot, __ldcs(values + r));
			outside += bin[j] >= nbins && (!index || (int32_t) bin[j] >= 0);
		}
#pragma unroll
		for (int j = 0; j < ROWS; j++)
			seen[j] = bin[j] < nbins ? __ldcg(limb + bin[j]) : ~0ULL;
#pragma unroll
		for (int j = 0; j < ROWS; j++)
			if (bin[j] < nbins && seen[j] < code[j])
				atomicMax(limb + bin[j], code[j]);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

bool
hist_extremes_takes(const HistArgs &args)
{
	const HistSlot &slot = args.slot[0];
	GpuaggValueType t = slot.x.type;

	if (args.nslots != 1 || !hist_simple_bins(args.bins) || slot.filter || slot.x.validity || slot.y.validity ||
		slot.y.values)
		return false;
	if (slot.form == HIST_MAX64)
		return t == GPUAGG_VALUE_I64 || t == GPUAGG_VALUE_F64;
	return slot.form == HIST_MAX32 && slot.op != MONOID_HLL_MAX && t == GPUAGG_VALUE_I32;
}

GpuaggCudaStatus
hist_launch_extremes(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(launch_early(args.slot[0].form == HIST_MAX64 ? extremes_kernel<u64> : extremes_kernel<int32_t>,
						  BLOCKS * facts.sms, THREADS, 0, facts, stream, args));
	return hist_launch_fold(args, facts, stream);
}
