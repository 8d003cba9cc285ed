/*
 * hist_exchange_sample.cu
 *	  The sample before an exchange (hist_exchange.cu): finds hot bins, and decides whether rows are
 *	  exchanged.
 *
 * Rows are not exchanged if too many of them go to one owner in a round, because its queue
 * overflows, or if too many floats have no place in the window.  Samples are taken from
 * EXCHANGE_SAMPLE_WINDOWS ranges of neighbouring rows.  A range is as long as what all blocks
 * process in one round, because the rows of a round compete for the same queues.
 */
#include "hist_exchange.cuh"

#define SAMPLES_A_WINDOW \
	(EXCHANGE_SAMPLE_THREADS * Tuned::EXCHANGE_SAMPLES_PER_THREAD / Tuned::EXCHANGE_SAMPLE_WINDOWS)
#define SAMPLE_CELLS (1 << Tuned::EXCHANGE_SAMPLE_LOG2_CELLS)

/* Returns the index of the counter for samples of a bin.  Several bins may share a counter. */
static __device__ __forceinline__ u32
sample_cell(u32 bin)
{
	return bin * 0x85ebca6bu >> (32 - Tuned::EXCHANGE_SAMPLE_LOG2_CELLS);
}

/*
 * Fills the table of hot bins: bins with at least EXCHANGE_HOT_BIN_SAMPLES samples.  Bins with most
 * samples go first, as a full bucket takes no more.  Bins may share a counter, so a bin may be hot
 * by mistake, which does no harm.  All threads of the block must call it.
 */
static __device__ __forceinline__ void
find_hot_bins(const u32 (&bin)[Tuned::EXCHANGE_SAMPLES_PER_THREAD], u32 nbins, u32 *cell, u32 *hot)
{
#pragma unroll
	for (int j = 0; j < Tuned::EXCHANGE_SAMPLES_PER_THREAD; j++)
		if (bin[j] < nbins)
			atomicAdd(&cell[sample_cell(bin[j])], 1u);
	__syncthreads();
	for (u32 least = 64 * Tuned::EXCHANGE_HOT_BIN_SAMPLES; least >= Tuned::EXCHANGE_HOT_BIN_SAMPLES;
		 least /= 4)
	{
#pragma unroll
		for (int j = 0; j < Tuned::EXCHANGE_SAMPLES_PER_THREAD; j++)
			if (bin[j] < nbins && cell[sample_cell(bin[j])] >= least)
			{
				u32 *bucket = hot + 2 * hot_bucket(bin[j]), old = atomicCAS(bucket, NO_BIN, bin[j]);

				if (old != NO_BIN && old != bin[j])
					atomicCAS(bucket + 1, NO_BIN, bin[j]);
			}
		__syncthreads();
	}
}

/* Returns how many of a thread's samples are floats that do not fit the window. */
static __device__ __forceinline__ u32
count_out_of_window(const HistArgs &args, const FastArgs &fast,
					const u64 (&value)[Tuned::EXCHANGE_SAMPLES_PER_THREAD])
{
	const HistSlot &slot = args.slot[fast.slot];
	int e0 = args.window[2 * fast.slot];
	u32 out_of_window = 0;

#pragma unroll
	for (int j = 0; j < Tuned::EXCHANGE_SAMPLES_PER_THREAD; j++)
	{
		FixValue unused;

		out_of_window += !fix_from_double(value[j], e0, slot.max_shift, unused);
	}
	return out_of_window;
}

/*
 * Takes the sample, and writes x.hot and *x.taken.  It runs as one block.  It reads rows before it
 * waits for its predecessor: the predecessor lets it start only after the kernels that wrote the
 * rows have ended.  The windows of floats are the predecessor's, so they are read after the wait.
 */
static __global__ void
__launch_bounds__(EXCHANGE_SAMPLE_THREADS)
	sample_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast,
				  const __grid_constant__ HistExchange x)
{
	constexpr int WINDOWS_AT_ONCE = EXCHANGE_SAMPLE_THREADS / SAMPLES_A_WINDOW;
	__shared__ u32 cell[SAMPLE_CELLS], owner_samples[WINDOWS_AT_ONCE * MOST_OWNERS];
	__shared__ __align__(8) u32 hot[HOT_BINS];
	const u64 *values = (const u64 *) args.slot[fast.slot].x.values;
	u32 nbins = fast.bins.n, bin[Tuned::EXCHANGE_SAMPLES_PER_THREAD];
	u64 value[Tuned::EXCHANGE_SAMPLES_PER_THREAD];
	u64 window = min((u64) args.nrows, (u64) x.owners * EXCHANGE_TILE_ROWS);
	bool crowd = false;

	for (u32 i = threadIdx.x; i < SAMPLE_CELLS; i += EXCHANGE_SAMPLE_THREADS)
		cell[i] = 0;
	if (threadIdx.x < HOT_BINS)
		hot[threadIdx.x] = NO_BIN;
#pragma unroll
	for (int j = 0; j < Tuned::EXCHANGE_SAMPLES_PER_THREAD; j++)
	{
		u32 i = j * EXCHANGE_SAMPLE_THREADS + threadIdx.x;
		u64 from = (args.nrows - window) * (i / SAMPLES_A_WINDOW) /
			(Tuned::EXCHANGE_SAMPLE_WINDOWS - 1),
			row = from + __umul64hi(gpuagg_mix64(i), window);

		bin[j] = (u32) fast.bins.column[row] - fast.bins.min;
		value[j] = values[row];
	}
	__syncthreads();
	find_hot_bins(bin, nbins, cell, hot);
#pragma unroll 1
	for (int j = 0; j < Tuned::EXCHANGE_SAMPLES_PER_THREAD; j++)
	{
		for (u32 i = threadIdx.x; i < WINDOWS_AT_ONCE * MOST_OWNERS; i += EXCHANGE_SAMPLE_THREADS)
			owner_samples[i] = 0;
		__syncthreads();
		if (bin[0] < nbins && hot_entry(hot, bin[0]) == HOT_BINS)
			atomicAdd(&owner_samples[threadIdx.x / SAMPLES_A_WINDOW * MOST_OWNERS +
									 owner_of(x, bin[0]).owner],
					  1u);
		__syncthreads();
		for (u32 i = threadIdx.x; i < WINDOWS_AT_ONCE * MOST_OWNERS; i += EXCHANGE_SAMPLE_THREADS)
			crowd = crowd || owner_samples[i] >= Tuned::EXCHANGE_CROWD_SAMPLES;
			/* shifts the array, so that its indexes are constants and it stays in registers */
#pragma unroll
		for (int k = 0; k + 1 < Tuned::EXCHANGE_SAMPLES_PER_THREAD; k++)
			bin[k] = bin[k + 1];
		__syncthreads();
	}
	crowd = __syncthreads_or(crowd);
	wait_for_predecessor();
	if (threadIdx.x == 0)
		owner_samples[0] = 0;
	__syncthreads();
	if (args.slot[fast.slot].form == HIST_FIX)
		atomicAdd(&owner_samples[0], count_out_of_window(args, fast, value));
	__syncthreads();
	if (threadIdx.x < HOT_BINS)
		x.hot[threadIdx.x] = hot[threadIdx.x];
	if (threadIdx.x == 0)
		*x.taken =
			x.always || !(crowd || owner_samples[0] >= Tuned::EXCHANGE_OUT_OF_WINDOW_SAMPLES);
}

GpuaggCudaStatus
hist_launch_exchange_sample(const HistArgs &args, const FastArgs &fast, const HistExchange &x,
							const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(
		launch_early(sample_kernel, 1, EXCHANGE_SAMPLE_THREADS, 0, facts, stream, args, fast, x));
	return GPUAGG_CUDA_OK;
}
