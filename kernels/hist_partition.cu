/*
 * hist_partition.cu
 *	  One partition of rows by bin range, ahead of a histogram in shared memory.
 *
 * count (rows of each partition) → plan (first rows, work items) → scatter
 * (bins and columns to their partition).  The order of rows inside a partition is not fixed; the
 * histogram that follows does not depend on it.
 */
#include "hist_kernels.cuh"

#define ITEMS 8
#define THREADS 512
#define TILE HIST_TILE
#define TILE_ITEMS (TILE / THREADS)

/* bin / part_bins by multiplication; exact below 2^32. */
static __device__ __forceinline__ u32
part_of(u32 bin, u64 inverse)
{
	return (u32) __umul64hi(bin, inverse);
}

template <int N> static __device__ __forceinline__ u32
tile_rows(u64 base, u32 nrows, u32 (&row)[N])
{
	u32			ok = 0;

#pragma unroll
	for (int j = 0; j < N; j++)
	{
		u64			r = base + (u64) j * blockDim.x + threadIdx.x;

		row[j] = (u32) r;
		if (r < nrows)
			ok |= 1u << j;
	}
	return ok;
}

/*
 * Bins of a tile.  SIMPLE: an int32 column less a minimum, and nothing else to
 * look at.
 */
template <bool SIMPLE> static __device__ __forceinline__ u32
tile_bins(const HistArgs &args, const u32 (&row)[ITEMS], u32 ok, int32_t (&bin)[ITEMS])
{
	if (SIMPLE)
	{
		const int32_t *column = (const int32_t *) args.bins.column[0].values;
		bool		index = args.bins.kind == GPUAGG_BIN_INDEX;
		int32_t		min = index ? 0 : (int32_t) args.bins.min[0];
		u32			odd = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				bin[j] = __ldcs(column + row[j]);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			bin[j] = (int32_t) ((u32) bin[j] - (u32) min);
			if ((ok >> j & 1) && (u32) bin[j] >= (u32) args.bins.nbins)
			{
				ok &= ~(1u << j);
				odd += !index || bin[j] >= 0;
			}
		}
		if (odd)
			atomicAdd(&args.status->outside, (u64) odd);
		return ok;
	}
	return find_bins<ITEMS>(args.bins, row, ok, bin, args.status);
}

/* Rows of each partition, into plan.start. */
template <bool SIMPLE> static __global__ void __launch_bounds__(THREADS, 2)
count_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ PartPlan plan, u64 inverse)
{
	extern __shared__ u32 count[];

	for (u32 p = threadIdx.x; p < plan.parts; p += blockDim.x)
		count[p] = 0;
	__syncthreads();
	for (u64 base = blockIdx.x * (u64) (ITEMS * THREADS); base < args.nrows;
		 base += gridDim.x * (u64) (ITEMS * THREADS))
	{
		u32			row[ITEMS];
		int32_t		bin[ITEMS];
		u32			ok = tile_rows<ITEMS>(base, args.nrows, row);

		ok = tile_bins<SIMPLE>(args, row, ok, bin);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				atomicAdd(&count[part_of(bin[j], inverse)], 1u);
	}
	__syncthreads();
	for (u32 p = threadIdx.x; p < plan.parts; p += blockDim.x)
		if (count[p])
			atomicAdd(&plan.start[p], count[p]);
}

/* Inclusive prefix sum over the block; sum is left in shared[31]. */
static __device__ u32
block_scan(u32 v, u32 *shared)
{
	u32			lane = threadIdx.x % 32,
				warp = threadIdx.x / 32;

	for (int d = 1; d < 32; d *= 2)
	{
		u32			t = __shfl_up_sync(~0u, v, d);

		if (lane >= (u32) d)
			v += t;
	}
	__syncthreads();
	if (lane == 31)
		shared[warp] = v;
	__syncthreads();
	if (warp == 0)
	{
		u32			t = lane < blockDim.x / 32 ? shared[lane] : 0;

		for (int d = 1; d < 32; d *= 2)
		{
			u32			u = __shfl_up_sync(~0u, t, d);

			if (lane >= (u32) d)
				t += u;
		}
		shared[lane] = t;
	}
	__syncthreads();
	return v + (warp ? shared[warp - 1] : 0);
}

/* One block of 1024: first rows, and the items with their splits. */
static __global__ void __launch_bounds__(1024)
plan_kernel(const __grid_constant__ PartPlan plan)
{
	__shared__ u32 scan[32];
	u32			rows_before = 0,
				items_before = 0,
				splits_before = 0;

	for (u32 base = 0; base < plan.parts; base += 1024)
	{
		u32			p = base + threadIdx.x;
		u32			rows = p < plan.parts ? plan.start[p] : 0;
		u32			items = (rows + plan.max_item_rows - 1) / plan.max_item_rows;
		u32			first = rows_before + block_scan(rows, scan) - rows;

		rows_before += scan[31];
		u32			item = items_before + block_scan(items, scan) - items;

		items_before += scan[31];
		u32			split = splits_before + block_scan(items > 1, scan) - (items > 1);

		splits_before += scan[31];
		if (p < plan.parts)
		{
			plan.start[p] = plan.cursor[p] = first;
			for (u32 i = 0; i < items; i++)
			{
				HistItem	it;

				/* equal parts, so that no item is a small rest */
				it.row0 = first + (u32) ((u64) rows * i / items);
				it.row1 = first + (u32) ((u64) rows * (i + 1) / items);
				it.part = p;
				it.split = items > 1 ? (int) split : -1;
				plan.item[item + i] = it;
			}
			if (items > 1)
			{
				plan.split_items[split] = items;
				plan.split_done[split] = 0;
			}
		}
	}
	if (threadIdx.x == 0)
	{
		plan.counter[HIST_NITEMS] = items_before;
		plan.counter[HIST_NSPLITS] = splits_before;
		plan.counter[HIST_NEXT] = 0;
	}
}

/* Limbs of split partitions start at zero; how many there are is known here only. */
static __global__ void
clear_splits_kernel(const __grid_constant__ HistArgs args)
{
	u64			n = (u64) args.counter[HIST_NSPLITS] * args.limbs * args.limb_bins;

	for (u64 i = blockIdx.x * (u64) blockDim.x + threadIdx.x; i < n; i += (u64) gridDim.x * blockDim.x)
		args.limb[i] = 0;
}

/* No place in the tile: the row takes no part. */
#define UNPLACED ((uint16_t) 0xffff)

/* 16 bytes aligned to 8. */
struct Pair
{
	u64			lo,
				hi;
};

/*
 * One column of a tile to its places: through shared memory in partition order,
 * so that runs are written whole.
 */
template <typename T> static __device__ __forceinline__ void
move_column(const void *from, void *to, u64 base, u32 n, const uint16_t (&place)[TILE_ITEMS],
			const int32_t *bin, const u32 *delta, char *stage, u64 inverse)
{
	T		   *staged = (T *) stage;
	const T    *in = (const T *) from + base;

#pragma unroll
	for (int h = 0; h < TILE_ITEMS; h += 8)
	{
		T			v[8];

#pragma unroll
		for (int j = 0; j < 8; j++)
			if ((h + j) * THREADS + threadIdx.x < n && place[h + j] != UNPLACED)
				v[j] = in[(h + j) * THREADS + threadIdx.x];
#pragma unroll
		for (int j = 0; j < 8; j++)
			if ((h + j) * THREADS + threadIdx.x < n && place[h + j] != UNPLACED)
				staged[place[h + j]] = v[j];
	}
	__syncthreads();
	for (u32 i = threadIdx.x; i < delta[-1]; i += THREADS)
		((T *) to)[delta[part_of(bin[i], inverse)] + i] = staged[i];
	__syncthreads();
}

/* First places of the tile's partitions, and their distance to device memory's. */
static __device__ __forceinline__ void
reserve_places(u32 *count, u32 *delta, u32 parts, u32 *cursor, u32 *scan)
{
	u32			each = (parts + THREADS - 1) / THREADS,
				from = threadIdx.x * each,
				to = min(from + each, parts),
				sum = 0,
				before;

	for (u32 p = from; p < to; p++)
		sum += count[p];
	before = block_scan(sum, scan) - sum;
	for (u32 p = from; p < to; p++)
	{
		u32			c = count[p];

		count[p] = before;
		delta[p] = c;
		before += c;
	}
	if (threadIdx.x == 0)
		delta[-1] = scan[31];
	__syncthreads();
	for (u32 p = threadIdx.x; p < parts; p += THREADS)
	{
		u32			c = delta[p];

		if (c)
			delta[p] = atomicAdd(&cursor[p], c) - count[p];
	}
	__syncthreads();
}

/*
 * Sorts each tile by partition in shared memory and appends the runs to the
 * partitions, with one atomic addition each.
 */
template <bool SIMPLE> static __global__ void __launch_bounds__(THREADS, 2)
scatter_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ PartPlan plan,
			   const __grid_constant__ PartColumns columns, int32_t *bin_out, u32 *row_out, u32 parts,
			   u32 *cursor, u64 inverse)
{
	extern __shared__ __align__(16) char memory[];
	__shared__ u32 scan[32];
	char	   *stage = memory;
	int32_t    *bins = (int32_t *) (memory + TILE * plan.stage_bytes);
	u32		   *count = (u32 *) (bins + TILE),
			   *delta = count + parts + 1;

	for (u64 base = blockIdx.x * (u64) TILE; base < args.nrows; base += gridDim.x * (u64) TILE)
	{
		u32			n = (u32) min((u64) TILE, args.nrows - base);
		int32_t		bin[TILE_ITEMS];
		uint16_t	place[TILE_ITEMS];

		for (u32 p = threadIdx.x; p < parts; p += THREADS)
			count[p] = 0;
		__syncthreads();
#pragma unroll
		for (int h = 0; h < TILE_ITEMS; h += ITEMS)
		{
			u32			row[ITEMS];
			int32_t		some[ITEMS];
			u32			ok = tile_rows<ITEMS>(base + h * THREADS, args.nrows, row);

			ok = tile_bins<SIMPLE>(args, row, ok, some);
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				bin[h + j] = some[j];
				place[h + j] = UNPLACED;
				if (ok >> j & 1)
					place[h + j] = (uint16_t) atomicAdd(&count[part_of(some[j], inverse)], 1u);
			}
		}
		__syncthreads();
		reserve_places(count, delta, parts, cursor, scan);
#pragma unroll
		for (int j = 0; j < TILE_ITEMS; j++)
			if (place[j] != UNPLACED)
			{
				place[j] += (uint16_t) count[part_of(bin[j], inverse)];
				bins[place[j]] = bin[j];
			}
		__syncthreads();
		for (u32 i = threadIdx.x; i < delta[-1]; i += THREADS)
			bin_out[delta[part_of(bins[i], inverse)] + i] = bins[i];
		if (row_out)
		{
#pragma unroll
			for (int j = 0; j < TILE_ITEMS; j++)
				if (place[j] != UNPLACED)
					((u32 *) stage)[place[j]] = (u32) base + j * THREADS + threadIdx.x;
			__syncthreads();
			for (u32 i = threadIdx.x; i < delta[-1]; i += THREADS)
				row_out[delta[part_of(bins[i], inverse)] + i] = ((u32 *) stage)[i];
		}
		for (int c = 0; c < columns.n; c++)
		{
			const void *from = columns.from[c];
			void	   *to = columns.to[c];

#define MOVE(type) move_column<type>(from, to, base, n, place, bins, delta, stage, inverse)
			switch (columns.bytes[c])
			{
				case 1:
					MOVE(uint8_t);
					break;
				case 2:
					MOVE(uint16_t);
					break;
				case 4:
					MOVE(u32);
					break;
				case 8:
					MOVE(u64);
					break;
				default:
					MOVE(Pair);
			}
#undef MOVE
		}
		__syncthreads();
	}
}

template <bool SIMPLE> static GpuaggCudaStatus
launch_split(const HistArgs &args, const PartPlan &plan, const DeviceFacts &facts,
			 cudaStream_t stream)
{
	u64			inverse = ~(u64) 0 / plan.part_bins + 1;
	size_t		bytes = plan.parts * sizeof(u32);
	size_t		tile_bytes = hist_tile_bytes(plan.stage_bytes, plan.parts);
	HistArgs	scatter_args = args;

	CUDA_TRY(allow_shared(count_kernel<SIMPLE>, facts));
	CUDA_TRY(allow_shared(scatter_kernel<SIMPLE>, facts));
	/* rows out of range are reported once, by the count */
	scatter_args.status = plan.unread_status;
	CUDA_TRY(cudaMemsetAsync(plan.start, 0, bytes, stream));
	count_kernel<SIMPLE><<<2 * facts.sms, THREADS, bytes, stream>>>(args, plan, inverse);
	CUDA_TRY_LAUNCH("count_kernel");
	plan_kernel<<<1, 1024, 0, stream>>>(plan);
	CUDA_TRY_LAUNCH("plan_kernel");
	clear_splits_kernel<<<2 * facts.sms, 512, 0, stream>>>(args);
	CUDA_TRY_LAUNCH("clear_splits_kernel");
	scatter_kernel<SIMPLE><<<2 * facts.sms, THREADS, tile_bytes, stream>>>(
		scatter_args, plan, plan.columns, plan.bin, plan.row, plan.parts, plan.cursor, inverse);
	CUDA_TRY_LAUNCH("scatter_kernel");
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_split(const HistArgs &args, const PartPlan &plan, const DeviceFacts &facts,
				  cudaStream_t stream)
{
	return hist_simple_bins(args.bins) ? launch_split<true>(args, plan, facts, stream)
		: launch_split<false>(args, plan, facts, stream);
}
