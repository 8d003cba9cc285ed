/*
 * hist_partition.cu
 *	  Moves rows to partitions by bin range, so that the bins of a partition fit shared memory
 *	  (partition.cuh, PartPlan).
 *
 * These kernels run before accumulate_partition_kernel or accumulate_fast_partition_kernel:
 *
 *	count_partition_rows_kernel	counts the rows of each partition
 *	plan_partition_items_kernel	computes the first row of each partition, and the work items
 *	clear_split_limbs_kernel	clears the limbs of split partitions
 *	scatter_rows_kernel	moves bins and columns, or row numbers, to the partitions
 *
 * A partition with very many rows is split into several work items, whose blocks share limbs. If
 * there are very many partitions, rows are scattered twice, first to groups of partitions. So the
 * rows of a tile go to few places in either step. The order of rows within a partition is not
 * fixed, and the histogram that follows does not depend on it.
 */
#include "hist_kernels.cuh"
#include "partition.cuh"

/* Loads the values of a tile's bins; 0 for rows past the end. */
static __device__ __forceinline__ void
load_bins(const HistArgs &args, u64 base, u32 nrows, int32_t (&bin)[PARTITION_ROWS_PER_THREAD])
{
	const int32_t *column = (const int32_t *) args.bins.column[0].values + base + threadIdx.x;

#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
		bin[j] = base + j * PARTITION_THREADS_PER_BLOCK + threadIdx.x < nrows ?
			__ldcs(column + j * PARTITION_THREADS_PER_BLOCK) :
			0;
}

/* Returns the value of bin 0 in the column. */
static __device__ __forceinline__ u32
value_of_bin_0(const GpuaggBins &b)
{
	return b.kind == GPUAGG_BIN_INDEX ? 0 : (u32) (int32_t) b.min[0];
}

/*
 * Turns the loaded values of a tile into bins. Returns a bit for each row that exists and has a
 * bin.
 */
static __device__ __forceinline__ u32
bins_of_tile(const HistArgs &args, u64 base, u32 nrows, int32_t (&bin)[PARTITION_ROWS_PER_THREAD])
{
	u32 ok = 0;

#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
	{
		bin[j] = (int32_t) ((u32) bin[j] - value_of_bin_0(args.bins));
		if (base + j * PARTITION_THREADS_PER_BLOCK + threadIdx.x < nrows &&
			(u32) bin[j] < (u32) args.bins.nbins)
			ok |= 1u << j;
	}
	return ok;
}

/*
 * Counts the rows of each partition in count[], in vectors of four. Counts rows out of range in
 * status->outside.
 */
static __device__ __forceinline__ void
count_rows_of_partitions(const HistArgs &args, int shift, u32 *count)
{
	const int32_t *column = (const int32_t *) args.bins.column[0].values;
	bool index = args.bins.kind == GPUAGG_BIN_INDEX;
	u32 min = value_of_bin_0(args.bins), nbins = (u32) args.bins.nbins,
		lead = ::min((u32) (-(uintptr_t) column % 16 / 4), args.nrows),
		vectors = (args.nrows - lead) / 4, stride = gridDim.x * PARTITION_THREADS_PER_BLOCK,
		i = blockIdx.x * PARTITION_THREADS_PER_BLOCK + threadIdx.x, outside = 0;
	const int4 *vector = (const int4 *) (column + lead);
	auto add = [&](int32_t v)
	{
		u32 b = (u32) v - min;

		if (b < nbins)
			atomicAdd(&count[b >> shift], 1u);
		else
			outside += !index || (int32_t) b >= 0;
	};
	auto add_four = [&](const int4 &v) { add(v.x), add(v.y), add(v.z), add(v.w); };

	for (; (u64) i + stride < vectors; i += 2 * stride)
	{
		int4 a = __ldcs(vector + i), b = __ldcs(vector + i + stride);

		add_four(a);
		add_four(b);
	}
	if (i < vectors)
		add_four(__ldcs(vector + i));
	/* rows at both ends of the column that are not in a whole vector */
	if (blockIdx.x == 0 && threadIdx.x < args.nrows - 4 * vectors)
		add(column[threadIdx.x < lead ? threadIdx.x : threadIdx.x + 4 * vectors]);
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

/* Returns whether an exchange has taken the rows, so that there is nothing to partition. */
static __device__ __forceinline__ bool
rows_were_exchanged(const HistArgs &args)
{
	return args.part.exchanged && __ldcg(args.part.exchanged);
}

/* Counts the rows of each partition in plan.start. */
static __global__ void
__launch_bounds__(PARTITION_THREADS_PER_BLOCK, PARTITION_COUNT_BLOCKS_PER_SM)
	count_partition_rows_kernel(const __grid_constant__ HistArgs args,
								const __grid_constant__ PartPlan plan)
{
	extern __shared__ __align__(16) char part_memory[];
	u32 *count = (u32 *) part_memory;

	wait_for_predecessor();
	let_successor_start();
	if (rows_were_exchanged(args))
		return;
	for (u32 p = threadIdx.x; p < plan.parts; p += blockDim.x)
		count[p] = 0;
	__syncthreads();
	count_rows_of_partitions(args, plan.shift, count);
	__syncthreads();
	for (u32 p = threadIdx.x; p < plan.parts; p += blockDim.x)
		if (count[p])
			atomicAdd(&plan.start[p], count[p]);
}

/*
 * Turns the numbers of rows in plan.start into first rows, and makes the work items. A partition
 * with more than max_item_rows rows is split into smaller items. These come first, because they
 * take the longest: their rows share few bins. One block of 1024 threads.
 */
static __global__ void __launch_bounds__(1024)
	plan_partition_items_kernel(const __grid_constant__ PartPlan plan)
{
	__shared__ u32 scan[4][32];
	u32 rows_before = 0, splits_before = 0,
		items_before[2] = {0, 0}, /* items of whole partitions, of split ones */
		all[4], all_split_items = 0;

	wait_for_predecessor();
	let_successor_start();
	for (u32 p = threadIdx.x; p < plan.parts; p += 1024)
		if (plan.start[p] > plan.max_item_rows)
			all_split_items += (plan.start[p] - 1) / plan.split_item_rows + 1;
	block_scan(all_split_items, scan[3], &items_before[0]);
	for (u32 base = 0; base < plan.parts; base += 1024)
	{
		u32 p = base + threadIdx.x;
		u32 rows = p < plan.parts ? plan.start[p] : 0;
		bool split = rows > plan.max_item_rows;
		u32 items = split ? (rows - 1) / plan.split_item_rows + 1 : rows > 0;
		u32 first = rows_before + block_scan(rows, scan[0], &all[0]) - rows,
			whole_item = items_before[0] + block_scan(split ? 0 : items, scan[1], &all[1]) - items,
			split_item = items_before[1] + block_scan(split ? items : 0, scan[2], &all[2]) - items,
			number = splits_before + block_scan(split, scan[3], &all[3]) - split;
		u32 item = split ? split_item : whole_item;

		rows_before += all[0];
		items_before[0] += all[1];
		items_before[1] += all[2];
		splits_before += all[3];
		if (p < plan.parts)
		{
			plan.start[p] = plan.cursor[p] = first;
			for (u32 i = 0; i < items; i++)
			{
				/* items of equal size, so that none is a small rest */
				u32 each = rows / items, more = rows % items;

				plan.item[item + i].row0 = first + i * each + min(i, more);
				plan.item[item + i].row1 = first + (i + 1) * each + min(i + 1, more);
				plan.item[item + i].part = p;
				plan.item[item + i].split = split ? (int) number : -1;
			}
			if (split)
			{
				plan.split_items[number] = items;
				plan.split_done[number] = 0;
				if (plan.split_part)
					plan.split_part[number] = p;
			}
		}
		__syncthreads();
	}
	if (threadIdx.x == 0)
	{
		plan.counter[HIST_NITEMS] = items_before[0];
		plan.counter[HIST_NSPLITS] = splits_before;
		plan.counter[HIST_NROWS] = rows_before;
		plan.counter[HIST_NEXT] = 0;
	}
}

/*
 * Clears the limbs of split partitions. Only the device has their number. Several calls may use one
 * partition by key, so that this also resets what counts finished work items.
 */
static __global__ void
clear_split_limbs_kernel(const __grid_constant__ HistArgs args)
{
	u64 n;

	wait_for_predecessor();
	let_successor_start();
	n = (u64) args.part.counter[HIST_NSPLITS] * args.limbs * args.limb_bins;
	if (args.part.first && blockIdx.x == 0)
	{
		for (u32 i = threadIdx.x; i < args.part.counter[HIST_NSPLITS]; i += blockDim.x)
			args.part.split_done[i] = 0;
		if (threadIdx.x == 0)
			args.part.counter[HIST_NEXT] = 0;
	}
	for (u64 i = blockIdx.x * (u64) blockDim.x + threadIdx.x; i < n;
		 i += (u64) gridDim.x * blockDim.x)
		args.limb[i] = 0;
}

/* Stores the bin of a row: in the last step its number within the partition. */
struct PutBin
{
	void *out;
	bool narrow;
	u32 mask;

	__device__ __forceinline__ void
	operator()(u32 row, u32 bin) const
	{
		if (narrow)
			((uint16_t *) out)[row] = (uint16_t) (bin & mask);
		else
			((u32 *) out)[row] = bin;
	}
};

/* The type that moves values of a width. */
template <int BYTES> struct PartColumn
{
	typedef u32 type;
};
template <> struct PartColumn<8>
{
	typedef u64 type;
};

/*
 * Moves rows to partitions. Each tile is sorted by partition in shared memory; then the rows of
 * each partition are appended to it together. Bins are moved with the first column, or with the
 * numbers of rows if no columns move. BYTES: width of all columns; 0: widths differ. MORE: there
 * are further columns; they take registers even where there are none.
 */
template <int BYTES, bool MORE>
static __global__ void
__launch_bounds__(PARTITION_THREADS_PER_BLOCK, 1)
	scatter_rows_kernel(const __grid_constant__ HistArgs args,
						const __grid_constant__ PartPlan plan)
{
	typedef typename PartColumn<BYTES>::type T;
	PartTile t = {plan.parts, sizeof(u32), (u32) plan.stage_bytes};
	PutBin put = {plan.bin, plan.narrow, plan.part_bins - 1};
	bool numbers = BYTES == 4 && plan.row, column = BYTES != 0 && !numbers && plan.columns.n > 0;
	T *out = numbers ? (T *) plan.row : column ? (T *) plan.columns.to[0] : nullptr;
	u64 base = blockIdx.x * (u64) PARTITION_TILE_ROWS;
	u32 nrows;
	int32_t bin[PARTITION_ROWS_PER_THREAD];

	wait_for_predecessor();
	let_successor_start();
	if (rows_were_exchanged(args))
		return;
	nrows = plan.rows ? *plan.rows : args.nrows;
	part_clear(t);
	load_bins(args, base, nrows, bin);
	for (; base < nrows; base += gridDim.x * (u64) PARTITION_TILE_ROWS)
	{
		u32 place[PARTITION_ROWS_PER_THREAD];
		T v[PARTITION_ROWS_PER_THREAD];
		u32 ok = bins_of_tile(args, base, nrows, bin);
		u32 least = ~0u, most = 0;
		TilePartitions used;

		if (column)
			part_load<T>(ok, plan.columns.from[0], base, v);
		else if (numbers)
#pragma unroll
			for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
				v[j] = (T) (base + j * PARTITION_THREADS_PER_BLOCK + threadIdx.x);
#pragma unroll
		for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
			if (ok >> j & 1)
			{
				u32 p = (u32) bin[j] >> plan.shift;

				place[j] = atomicAdd(&t.count()[p], 1u);
				least = min(least, p);
				most = max(most, p);
			}
		used = part_reserve(t, plan.cursor, least, most);
#pragma unroll
		for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
			if (ok >> j & 1)
			{
				u32 p = (u32) bin[j] >> plan.shift;

				place[j] += t.count()[p];
				t.part()[place[j]] = (uint16_t) p;
			}
		part_stage<int32_t>(t.keys(), ok, place, bin);
		if (out)
			part_stage<T>(t.stage(), ok, place, v);
		load_bins(args, base + gridDim.x * (u64) PARTITION_TILE_ROWS, nrows, bin);
		part_write<u32, T>(t, used, put, out);
		for (int c = column; MORE && c < plan.columns.n; c++)
			part_move_column<BYTES>(t, used.total, ok, place, plan.columns.from[c], base,
									plan.columns.to[c], plan.columns.bytes[c]);
	}
}

/* Queues scatter_rows_kernel for one step, in the instance for the widths of its columns. */
static GpuaggCudaStatus
launch_scatter_rows(const HistArgs &args, const PartPlan &plan, const DeviceFacts &facts,
					cudaStream_t stream)
{
	size_t bytes = part_tile_bytes(sizeof(u32), plan.stage_bytes, plan.parts);
	int width = part_common_width(plan.columns);
	bool one = plan.columns.n + (plan.row != nullptr) <= 1;
	void (*scatter)(HistArgs, PartPlan) = width == 4 ?
		(one ? scatter_rows_kernel<4, false> : scatter_rows_kernel<4, true>) :
		width == 8 ? (one ? scatter_rows_kernel<8, false> : scatter_rows_kernel<8, true>) :
					 scatter_rows_kernel<0, true>;

	CUDA_TRY(allow_shared(scatter, facts));
	CUDA_TRY(launch_early(scatter, facts.sms, PARTITION_THREADS_PER_BLOCK, bytes, facts, stream,
						  args, plan));
	return GPUAGG_CUDA_OK;
}

/* Scatters the rows of the caller to groups of partitions, and from these to partitions. */
static GpuaggCudaStatus
launch_two_scatters(const HistArgs &args, const PartPlan &plan, const PartPlan &groups,
					const DeviceFacts &facts, cudaStream_t stream)
{
	HistArgs grouped = args;
	PartPlan second = plan;

	/* a group starts where its first partition does */
	CUDA_TRY(cudaMemcpy2DAsync(groups.cursor, sizeof(u32), plan.start,
							   sizeof(u32) << (groups.shift - plan.shift), sizeof(u32),
							   groups.parts, cudaMemcpyDeviceToDevice, stream));
	STATUS_TRY(launch_scatter_rows(args, groups, facts, stream));
	grouped.bins = make_index_bins((const int32_t *) groups.bin, args.bins.nbins);
	second.rows = plan.counter + HIST_NROWS;
	for (int c = 0; c < second.columns.n; c++)
		second.columns.from[c] = groups.columns.to[c];
	if (plan.row)
	{
		/* row numbers are a column of the second step, and its only one */
		second.row = nullptr;
		second.columns.bytes[second.columns.n] = sizeof(u32);
		second.columns.from[second.columns.n] = groups.row;
		second.columns.to[second.columns.n++] = plan.row;
	}
	return launch_scatter_rows(grouped, second, facts, stream);
}

GpuaggCudaStatus
hist_launch_plan_items(const PartPlan &plan, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(launch_early(plan_partition_items_kernel, 1, 1024, 0, facts, stream, plan));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_clear_splits(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(launch_early(clear_split_limbs_kernel, 2 * facts.sms, 512, 0, facts, stream, args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_partition_rows(const HistArgs &args, const PartPlan &plan, const PartPlan &groups,
						   const DeviceFacts &facts, cudaStream_t stream)
{
	size_t bytes = plan.parts * sizeof(u32);

	CUDA_TRY(allow_shared(count_partition_rows_kernel, facts));
	CUDA_TRY(launch_early(count_partition_rows_kernel, PARTITION_COUNT_BLOCKS_PER_SM * facts.sms,
						  PARTITION_THREADS_PER_BLOCK, bytes, facts, stream, args, plan));
	STATUS_TRY(hist_launch_plan_items(plan, facts, stream));
	STATUS_TRY(hist_launch_clear_splits(args, facts, stream));
	return groups.parts ? launch_two_scatters(args, plan, groups, facts, stream) :
						  launch_scatter_rows(args, plan, facts, stream);
}
