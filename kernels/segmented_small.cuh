/*
 * segmented_small.cuh
 *	  The kernel beside the chunks: one launch for few elements of a commutative
 *	  operator.
 */
#ifndef GPUAGG_SEGMENTED_SMALL_CUH
#define GPUAGG_SEGMENTED_SMALL_CUH

#include "segmented_pieces.cuh"

/* A lane's share of one segment: every `lanes`-th element, in batches of `unroll` loads. */
template <class Op, class InT, int unroll>
static __device__ __forceinline__ typename Op::State
seg_fold_lanes(const SegmentedArgs &a, int64_t begin, int64_t end, int lane, int lanes, int *err)
{
	const InT  *x = static_cast<const InT *>(a.values);
	typename Op::State v = Op::identity();
	int64_t		i = begin + lane;

	for (; i + (unroll - 1) * lanes < end; i += unroll * lanes)
	{
		InT			batch[unroll];

#pragma unroll
		for (int u = 0; u < unroll; u++)
			batch[u] = x[i + u * lanes];
#pragma unroll
		for (int u = 0; u < unroll; u++)
			v = seg_step<Op>(v, (typename Op::Input) batch[u], err);
	}
	if (i < end)
	{
		InT			batch[unroll];

		/* what is left at once, too; past the end the first of it again */
#pragma unroll
		for (int u = 0; u < unroll; u++)
			batch[u] = x[i + u * lanes < end ? i + u * lanes : i];
#pragma unroll
		for (int u = 0; u < unroll; u++)
			if (i + u * lanes < end)
				v = seg_step<Op>(v, (typename Op::Input) batch[u], err);
	}
	return v;
}

/*
 * Few elements of a commutative operator: one launch, 2^lanes_log2 threads a segment (up to a warp; 8
 * means the whole block).  A segment much longer than the mean is left to the
 * whole block, after the others.
 */
template <class Op, class InT>
__global__ void __launch_bounds__(256)
segmented_small(SegmentedArgs a, int lanes_log2)
{
	typedef typename Op::State State;
	typedef typename Op::Input Input;
	__shared__ alignas(16) State totals[8];
	__shared__ int long_ones[257];
	int			groups = 256 >> lanes_log2;
	int			lanes = lanes_log2 > 5 ? 32 : 1 << lanes_log2;
	int			err = 0;
	int			lane = threadIdx.x & (lanes - 1);
	int64_t		first = (int64_t) blockIdx.x * groups;
	int64_t		s = first + (threadIdx.x >> lanes_log2);
	int64_t		begin = 0,
				end = 0;
	State		v = Op::identity();

	seg_launch_order();
	if (threadIdx.x == 0)
		long_ones[0] = 0;
	__syncthreads();
	if (lanes_log2 <= 5)
	{
		bool		deferred;

		if (s < a.nsegments)
		{
			begin = a.offsets[s];
			end = a.offsets[s + 1];
		}
		deferred = end - begin > (SEG_SMALL_LONG << lanes_log2);
		if (deferred && lane == 0)
			long_ones[1 + atomicAdd(&long_ones[0], 1)] = (int) (s - first);
		if (!deferred)
			v = seg_fold_lanes<Op, InT, 8>(a, begin, end, lane, lanes, &err);
		v = seg_warp_reduce<Op>(v, lanes, &err);
		if (!deferred && lane == 0 && s < a.nsegments)
			static_cast<State *>(a.states)[s] = v;
		__syncthreads();
	}
	else
	{
		if (threadIdx.x == 0)
		{
			long_ones[0] = 1;
			long_ones[1] = 0;
		}
		__syncthreads();
	}
	for (int q = 0; q < long_ones[0]; q++)
	{
		s = first + long_ones[1 + q];
		begin = a.offsets[s];
		end = a.offsets[s + 1];
		v = seg_fold_lanes<Op, InT, 16>(a, begin, end, threadIdx.x, 256, &err);
		v = seg_warp_reduce<Op>(v, 32, &err);
		if ((threadIdx.x & 31) == 0)
			totals[threadIdx.x >> 5] = v;
		__syncthreads();
		if (threadIdx.x == 0)
		{
			for (int w = 1; w < 8; w++)
				v = seg_combine<Op>(v, totals[w], &err);
			static_cast<State *>(a.states)[s] = v;
		}
		__syncthreads();
	}
	if (err != 0 && a.errors != nullptr)
		atomicOr(a.errors, (unsigned) err);
}

#endif							/* GPUAGG_SEGMENTED_SMALL_CUH */
