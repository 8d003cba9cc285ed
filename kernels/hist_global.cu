/*
 * hist_global.cu
 *	  Histograms whose rows change the states in device memory directly, through the L2 cache:
 *	  operators without a form in shared memory, and more bins than partitions support. Also
 *	  gpuagg_hist_init.
 *
 * Where the workspace has room, states have M copies. The caller's states are the first copy. The
 * others are initialized before rows are added, and merged into the states at the end. A block
 * chooses its copy by its number. How many copies are used is sampled (sample_distinct_bins): the
 * fewer bins are in use, the more copies. Slots in shared memory have such copies for out-of-window
 * rows.
 */
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* Combines all rows with the states, or with the block's copy of the states. */
static __global__ void
__launch_bounds__(GLOBAL_THREADS_PER_BLOCK)
	accumulate_global_kernel(const __grid_constant__ HistArgs args)
{
	u64 tile = (u64) Tuned::GLOBAL_ROWS_PER_THREAD * GLOBAL_THREADS_PER_BLOCK;
	u32 copy;

	hot_entries_init(args);
	__syncthreads();
	wait_for_predecessor();
	let_successor_start();
	copy = blockIdx.x & ((1u << log2_copies(args)) - 1);
	for (u64 base = blockIdx.x * tile; base < args.nrows; base += gridDim.x * tile)
	{
		u32 row[Tuned::GLOBAL_ROWS_PER_THREAD];
		int32_t bin[Tuned::GLOBAL_ROWS_PER_THREAD];
		u32 ok = 0;

#pragma unroll
		for (int j = 0; j < Tuned::GLOBAL_ROWS_PER_THREAD; j++)
		{
			u64 r = base + (u64) j * GLOBAL_THREADS_PER_BLOCK + threadIdx.x;

			row[j] = (u32) r;
			if (r < args.nrows)
				ok |= 1u << j;
		}
		ok = find_bins<Tuned::GLOBAL_ROWS_PER_THREAD>(args.bins, row, ok, bin,
													  args.report ? args.status : nullptr);
		for (int s = 0; s < args.nslots; s++)
		{
			const HistSlot &slot = args.slot[s];
			u32 in = filter_slot_rows<Tuned::GLOBAL_ROWS_PER_THREAD>(slot, row, ok);
			u64 lo[Tuned::GLOBAL_ROWS_PER_THREAD], hi[Tuned::GLOBAL_ROWS_PER_THREAD];

			load_slot_values<Tuned::GLOBAL_ROWS_PER_THREAD>(slot, row, in, lo, hi);
			for_each_row_of_warp<Tuned::GLOBAL_ROWS_PER_THREAD>(
				in, bin, lo, hi,
				[&](bool has, int32_t b, u64 l, u64 h)
				{ change_rows<CHANGE_ANY>(args, s, copy * (u32) args.bins.nbins + b, has, l, h); });
		}
	}
	hot_entries_flush(args);
}

/*
 * Sets states to the identity. copies == NULL: n states. Else *copies is log2 of the copies, and
 * all copies but the first have n states each.
 */
template <typename Op>
static __global__ void
init_states_kernel(typename Op::State *states, int64_t n, const int *copies)
{
	typename Op::State id = Op::identity();

	wait_for_predecessor();
	let_successor_start();
	if (copies)
		n *= (1 << __ldcg(copies)) - 1;
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		states[i] = id;
}

/*
 * Merges the copies of nbins states into the states. A bin has as many lanes as copies, the first
 * one included, up to a warp.
 */
template <typename Op>
static __global__ void
merge_copies_kernel(typename Op::State *states, const typename Op::State *copies, u32 nbins,
					const int *log2_copies, uint32_t *errors)
{
	typedef typename Op::State S;
	u32 lane = threadIdx.x % 32;
	int err = 0;
	int log2, lanes;

	wait_for_predecessor();
	let_successor_start();
	log2 = __ldcg(log2_copies);
	if (log2 == 0)
		return;
	lanes = 1 << min(log2, 5);
	/* all lanes of a warp leave the loop together */
	for (u64 first = (blockIdx.x * (u64) blockDim.x + threadIdx.x - lane) / lanes; first < nbins;
		 first += (u64) gridDim.x * blockDim.x / lanes)
	{
		u64 bin = first + lane / lanes;
		S v = Op::identity();

#pragma unroll 4
		for (u32 c = lane % lanes; bin < nbins && c < (1u << log2) - 1; c += lanes)
			err |= combine_into<Op>(v, copies[(u64) c * nbins + bin]);
		for (int d = lanes / 2; d > 0; d /= 2)
			err |= combine_into<Op>(v, shuffle_state(v, lane ^ d));
		if (bin < nbins && lane % lanes == 0)
			err |= combine_into<Op>(states[bin], v);
	}
	if (err)
		atomicOr(errors, (u32) err);
}

/* Returns the number of blocks for this many threads, at most GLOBAL_MAX_STATE_BLOCKS. */
static int
blocks_for_threads(int64_t threads)
{
	int64_t blocks = threads / GLOBAL_THREADS_PER_BLOCK + 1;

	return (int) (blocks < GLOBAL_MAX_STATE_BLOCKS ? blocks : GLOBAL_MAX_STATE_BLOCKS);
}

/* ---- launches ------------------------------------------------------------------- */

/* Queues init_states_kernel for an operator. */
static GpuaggCudaStatus
launch_init_states(int op, void *states, int64_t n, const int *copies, int blocks,
				   const DeviceFacts &facts, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;

	with_operator(op,
				  [&](auto o)
				  {
					  typedef typename decltype(o)::State S;

					  err = launch_early(init_states_kernel<decltype(o)>, blocks,
										 GLOBAL_THREADS_PER_BLOCK, 0, facts, stream, (S *) states,
										 n, copies);
				  });
	CUDA_TRY(err);
	return GPUAGG_CUDA_OK;
}

/* Queues merge_copies_kernel for slot s. */
static GpuaggCudaStatus
launch_merge_copies_of_slot(const HistArgs &args, int s, int blocks, const DeviceFacts &facts,
							cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;

	with_operator(args.slot[s].op,
				  [&](auto op)
				  {
					  typedef typename decltype(op)::State S;

					  if constexpr (op.reduces_rows)
						  err = launch_early(
							  merge_copies_kernel<decltype(op)>, blocks, GLOBAL_THREADS_PER_BLOCK,
							  0, facts, stream, (S *) args.slot[s].states,
							  (const S *) args.extra[s].states, (u32) args.bins.nbins,
							  (const int *) args.extra[s].log2,
							  &args.status->errors[args.slot[s].number]);
				  });
	CUDA_TRY(err);
	return GPUAGG_CUDA_OK;
}

/*
 * Returns the number of blocks that initialize or merge copies of states. The copies are often
 * unused, so there are no more blocks than run concurrently.
 */
static int
blocks_for_copies(const HistArgs &args, int log2, const DeviceFacts &facts)
{
	return min(blocks_for_threads(args.bins.nbins << log2), GLOBAL_BLOCKS_PER_SM * facts.sms);
}

GpuaggCudaStatus
hist_launch_init_copies(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	for (int s = 0; s < args.nslots; s++)
	{
		const HistCopies &extra = args.extra[s];

		if (extra.states)
			STATUS_TRY(launch_init_states(
				args.slot[s].op, extra.states, args.bins.nbins, extra.log2,
				blocks_for_copies(args, extra.log2_max_copies, facts), facts, stream));
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_merge_copies(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	for (int s = 0; s < args.nslots; s++)
	{
		const HistCopies &extra = args.extra[s];

		if (extra.states)
			STATUS_TRY(launch_merge_copies_of_slot(
				args, s, blocks_for_copies(args, min(extra.log2_max_copies, 5), facts), facts,
				stream));
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_global(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	STATUS_TRY(hist_launch_prepare(args, facts, stream));
	STATUS_TRY(hist_launch_init_copies(args, facts, stream));
	CUDA_TRY(launch_early(accumulate_global_kernel, GLOBAL_BLOCKS_PER_SM * facts.sms,
						  GLOBAL_THREADS_PER_BLOCK, bytes_with_hot(args, GLOBAL_THREADS_PER_BLOCK),
						  facts, stream, args));
	return hist_launch_merge_copies(args, facts, stream);
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_init(MonoidId op, void *states, int64_t nbins, gpuagg_stream stream)
{
	const DeviceFacts *facts;

	if (op < 0 || op >= MONOID_COUNT_OF_IDS || nbins < 0)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	return launch_init_states(op, states, nbins, nullptr, blocks_for_threads(nbins), *facts,
							  stream);
}
