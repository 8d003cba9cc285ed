/*
 * hist_partition.cu
 *	  One partition of rows by bin range, ahead of a histogram in shared memory.
 *
 * count (rows of each partition) → plan (first rows, work items) → scatter
 * (bins and columns to their partition).  The order of rows inside a partition is not fixed; the
 * histogram that follows does not depend on it.
 */
#include "hist_kernels.cuh"
#include "partition.cuh"

#define ITEMS PART_ITEMS
#define THREADS PART_THREADS

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
count_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ PartPlan plan)
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
				atomicAdd(&count[(u32) bin[j] >> plan.shift], 1u);
	}
	__syncthreads();
	for (u32 p = threadIdx.x; p < plan.parts; p += blockDim.x)
		if (count[p])
			atomicAdd(&plan.start[p], count[p]);
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

/* Sorts each tile by partition in shared memory and appends the runs to the partitions. */
template <bool SIMPLE, int BYTES> static __global__ void __launch_bounds__(THREADS, 2)
scatter_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ PartPlan plan)
{
	PartTile	t = {plan.parts, (u32) plan.stage_bytes};

	for (u64 base = blockIdx.x * (u64) PART_TILE; base < args.nrows; base += gridDim.x * (u64) PART_TILE)
	{
		int32_t		bin[ITEMS];
		u32			row[ITEMS];
		u32			place[ITEMS];
		u32			ok = tile_rows<ITEMS>(base, args.nrows, row);
		u32			total;

		part_clear(t);
		ok = tile_bins<SIMPLE>(args, row, ok, bin);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			place[j] = ok >> j & 1 ? atomicAdd(&t.count()[(u32) bin[j] >> plan.shift], 1u) : UNPLACED;
		total = part_reserve(t, plan.cursor);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (place[j] != UNPLACED)
			{
				u32			p = (u32) bin[j] >> plan.shift;

				place[j] += t.count()[p];
				t.part()[place[j]] = (uint16_t) p;
				((int32_t *) t.stage())[place[j]] = bin[j];
			}
		part_write<int32_t>(t, total, plan.bin);
		if (plan.row)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (place[j] != UNPLACED)
					((u32 *) t.stage())[place[j]] = (u32) base + j * THREADS + threadIdx.x;
			part_write<u32>(t, total, plan.row);
		}
		for (int c = 0; c < plan.columns.n; c++)
			part_move_column<BYTES>(t, total, place, plan.columns.from[c], base, plan.columns.to[c],
									plan.columns.bytes[c]);
	}
}

/* The width of all columns, or 0. */
static int
columns_width(const PartColumns &columns)
{
	int			width = columns.n ? columns.bytes[0] : 4;

	for (int c = 1; c < columns.n; c++)
		if (columns.bytes[c] != width)
			width = 0;
	return width;
}

template <bool SIMPLE> static GpuaggCudaStatus
launch_split(const HistArgs &args, const PartPlan &plan, const DeviceFacts &facts,
			 cudaStream_t stream)
{
	size_t		bytes = plan.parts * sizeof(u32);
	size_t		tile_bytes = part_tile_bytes(plan.stage_bytes, plan.parts);
	HistArgs	scatter_args = args;
	int			width = columns_width(plan.columns);
	void	  (*scatter) (HistArgs, PartPlan) = width == 4 ? scatter_kernel<SIMPLE, 4>
		: width == 8 ? scatter_kernel<SIMPLE, 8> : scatter_kernel<SIMPLE, 0>;

	CUDA_TRY(allow_shared(count_kernel<SIMPLE>, facts));
	CUDA_TRY(allow_shared(scatter, facts));
	/* rows out of range are reported once, by the count */
	scatter_args.status = plan.unread_status;
	CUDA_TRY(cudaMemsetAsync(plan.start, 0, bytes, stream));
	count_kernel<SIMPLE><<<2 * facts.sms, THREADS, bytes, stream>>>(args, plan);
	CUDA_TRY_LAUNCH("count_kernel");
	plan_kernel<<<1, 1024, 0, stream>>>(plan);
	CUDA_TRY_LAUNCH("plan_kernel");
	clear_splits_kernel<<<2 * facts.sms, 512, 0, stream>>>(args);
	CUDA_TRY_LAUNCH("clear_splits_kernel");
	scatter<<<2 * facts.sms, THREADS, tile_bytes, stream>>>(scatter_args, plan);
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
