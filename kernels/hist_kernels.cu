/*
 * hist_kernels.cu
 *	  The general kernels of histograms in shared memory. They support all forms, bins of any kind,
 *	  NULLs and filters.
 *
 * An update launches these kernels: preparation (clears limbs, chooses the windows of floats,
 * samples how many copies to use), a kernel that adds all rows, fold (limbs to states). Where
 * out-of-window rows change states under locks, these states have copies (hist_global.cu): they are
 * initialized after the preparation and merged after the fold. Kernels that add rows:
 *
 *	accumulate_shared_kernel	rows in their order, M copies, S passes
 *	accumulate_partition_kernel	rows of partitions; a block owns the bins of its work item
 *
 * On devices that support it, each kernel starts while the previous one ends, and waits where it
 * needs the results of that (wait_for_predecessor).
 *
 * The file also has gpuagg_hist_bins (bins of rows) and gpuagg_key_range (range of a key column).
 */
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* ---- prepare ------------------------------------------------------------- */

/* Rows of a thread in the sample of bins; a line is the rows of a warp. */
#define RACE_ITEMS (Tuned::HIST_RACE_SAMPLE_LINES / HIST_PREPARE_WARPS)

/*
 * Returns D, an estimate of the number of bins in use, from a sample of pairs of rows. If D bins
 * were equally likely, one pair in D would have equal bins (the race factor). Both rows of a pair
 * are rows of one warp. These are neighbours, as they are when rows are added, so sorted rows count
 * as if they had few bins. The whole block of HIST_PREPARE_WARPS warps must call it.
 */
static __device__ int64_t
sample_distinct_bins(const HistArgs &args)
{
	__shared__ u32 total, equal;
	u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, lines = (args.nrows + 31) / 32,
		samples = min(lines, (u32) Tuned::HIST_RACE_SAMPLE_LINES), row[RACE_ITEMS], ok = 0;
	int32_t bin[RACE_ITEMS];

	if (threadIdx.x == 0)
		total = equal = 0;
	__syncthreads();
#pragma unroll
	for (int j = 0; j < RACE_ITEMS; j++)
	{
		u32 i = warp * RACE_ITEMS + j;
		u64 from = (u64) lines * i / Tuned::HIST_RACE_SAMPLE_LINES,
			to = (u64) lines * (i + 1) / Tuned::HIST_RACE_SAMPLE_LINES;
		u64 line = samples < Tuned::HIST_RACE_SAMPLE_LINES ?
			i :
			from + __umul64hi(gpuagg_mix64(i), to - from);

		row[j] = (u32) line * 32 + lane;
		if (i < samples && line * 32 + lane < args.nrows)
			ok |= 1u << j;
	}
	ok = find_bins<RACE_ITEMS>(args.bins, row, ok, bin, nullptr);
#pragma unroll
	for (int j = 0; j < RACE_ITEMS; j++)
	{
		bool has = ok >> j & 1;
		u32 rows = __popc(__ballot_sync(~0u, has)),
			same = __popc(__match_any_sync(~0u, has ? (u32) bin[j] : ~lane)) - 1;

		same = __reduce_add_sync(~0u, same);
		if (lane == 0 && rows > 1)
		{
			atomicAdd(&total, rows * (rows - 1));
			atomicAdd(&equal, same);
		}
	}
	__syncthreads();
	return equal ? min((int64_t) (total / equal), args.bins.nbins) : args.bins.nbins;
}

/* Rows of a thread in the sample of values. */
#define SAMPLE_ITEMS (Tuned::HIST_WINDOW_SAMPLE_ROWS / (HIST_PREPARE_WARPS * 32))

/*
 * Chooses a thread's rows of the sample: one row of each of HIST_WINDOW_SAMPLE_ROWS equal ranges,
 * or all rows if there are fewer. Returns a bit for each of them that exists.
 */
static __device__ __forceinline__ u32
sample_rows(u32 nrows, u32 (&row)[SAMPLE_ITEMS])
{
	u32 samples = min(nrows, (u32) Tuned::HIST_WINDOW_SAMPLE_ROWS), ok = 0;

#pragma unroll
	for (int j = 0; j < SAMPLE_ITEMS; j++)
	{
		u32 i = j * HIST_PREPARE_WARPS * 32 + threadIdx.x;
		u64 from = (u64) nrows * i / Tuned::HIST_WINDOW_SAMPLE_ROWS,
			to = (u64) nrows * (i + 1) / Tuned::HIST_WINDOW_SAMPLE_ROWS;

		row[j] = samples < Tuned::HIST_WINDOW_SAMPLE_ROWS ?
			i :
			(u32) (from + __umul64hi(gpuagg_mix64(i), to - from));
		if (i < samples)
			ok |= 1u << j;
	}
	return ok;
}

/* Loads sampled values of a column; zeros for NULLs. */
static __device__ __forceinline__ void
sample_values(const GpuaggColumn &c, const u32 (&row)[SAMPLE_ITEMS], u32 ok, u64 (&v)[SAMPLE_ITEMS])
{
	u64 unused[SAMPLE_ITEMS];

	if (c.validity)
#pragma unroll
		for (int j = 0; j < SAMPLE_ITEMS; j++)
			if ((ok >> j & 1) && !is_bit_set(c.validity, row[j]))
				ok &= ~(1u << j);
	load_items<SAMPLE_ITEMS>(c, row, ok, v, unused);
}

/*
 * Returns e0 of a window whose top is three bits above the greatest exponent of the sampled finite
 * values. The whole block must call it.
 */
static __device__ int
choose_window(const HistSlot &slot, const u64 (&v)[SAMPLE_ITEMS])
{
	__shared__ u32 best;
	u32 own = 0;
	int least, most = 2046 - slot.max_shift;

#pragma unroll
	for (int j = 0; j < SAMPLE_ITEMS; j++)
	{
		u32 e = (u32) (v[j] >> 52) & 0x7ff;

		if (e != 0x7ff)
			own = max(own, e);
	}
	own = __reduce_max_sync(~0u, own);
	__syncthreads();
	if (threadIdx.x == 0)
		best = 0;
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		atomicMax(&best, own);
	__syncthreads();
	least = (best ? (int) best : 1023) + 3 - slot.max_shift;
	/*
	 * the exponents of the window, and for FIX those of the constants that cut off digits, must be
	 * those of finite numbers
	 */
	if (slot.form == HIST_FIX)
		most = min(most, 2045 - fix_log2_weight(slot.digits, FIX_DIGITS - 1));
	return min(max(least, 1), most) - 1075;
}

/*
 * Chooses the windows of a slot of floats, and how many copies of its states out-of-window rows
 * change. The whole block must call it.
 */
static __device__ void
prepare_float_slot(const HistArgs &args, int s)
{
	__shared__ u32 out_of_window;
	const HistSlot &slot = args.slot[s];
	const HistCopies &extra = args.extra[s];
	u32 row[SAMPLE_ITEMS], ok = sample_rows(args.nrows, row), own = 0;
	u64 x[SAMPLE_ITEMS], y[SAMPLE_ITEMS];
	bool pairs = slot.form == HIST_REGR;
	int ex, ey = 0;
	FixValue unused;

	sample_values(slot.x, row, ok, x);
	if (pairs)
		sample_values(slot.y, row, ok, y);
	if (threadIdx.x == 0)
		out_of_window = 0;
	ex = choose_window(slot, x);
	if (pairs)
		ey = choose_window(slot, y);
	if (threadIdx.x == 0)
	{
		args.window[2 * s] = ex;
		args.window[2 * s + 1] = ey;
	}
	if (!extra.states || !args.out_of_window_threads)
		return;
	ok = filter_slot_rows<SAMPLE_ITEMS>(slot, row, ok);
#pragma unroll
	for (int j = 0; j < SAMPLE_ITEMS; j++)
		if ((ok >> j & 1) &&
			!(fix_from_double(x[j], ex, slot.max_shift, unused) &&
			  (!pairs || fix_from_double(y[j], ey, slot.max_shift, unused))))
			own++;
	own = __reduce_add_sync(~0u, own);
	if (threadIdx.x % 32 == 0 && own)
		atomicAdd(&out_of_window, own);
	__syncthreads();
	if (out_of_window == 0)
	{
		if (threadIdx.x == 0)
			*extra.log2 = 0;
		return;
	}

	int64_t distinct = sample_distinct_bins(args);

	if (threadIdx.x == 0)
		*extra.log2 = hist_model_out_of_window(
			distinct, out_of_window, min(args.nrows, (u32) Tuned::HIST_WINDOW_SAMPLE_ROWS),
			args.out_of_window_threads, extra.log2_max_copies);
}

/*
 * Prepares a call: clears limbs, locks and the words at args.zero, samples the copies of bins, and
 * chooses the windows of float slots.
 */
static __global__ void
__launch_bounds__(HIST_PREPARE_WARPS * 32)
	prepare_call_kernel(const __grid_constant__ HistArgs args)
{
	size_t total = args.part.item ? 0 : (size_t) args.limbs * args.limb_bins;

	wait_for_predecessor();
	let_successor_start();
	for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < total;
		 i += (size_t) gridDim.x * blockDim.x)
		args.limb[i] = 0;
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; args.locks && i < HIST_LOCKS;
		 i += gridDim.x * blockDim.x)
		args.lock[i] = 0;
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < args.zeros; i += gridDim.x * blockDim.x)
		args.zero[i] = 0;
	if (args.copies && blockIdx.x == gridDim.x - 1)
	{
		int64_t distinct = sample_distinct_bins(args);

		if (threadIdx.x == 0)
			*args.copies = hist_model_copies(distinct, args.spread, args.log2_max_copies);
	}
	for (int s = blockIdx.x; s < args.nslots; s += gridDim.x)
		if (sums_floats(args.slot[s].op))
		{
			/* all threads have read the shared memory of the previous sample */
			__syncthreads();
			prepare_float_slot(args, s);
		}
}

/* ---- adding rows ------------------------------------------------------------ */

/* Runs body for each row j of the thread in `ok`; `at` is its place in a plane. */
#define EACH_ROW(body) \
	_Pragma("unroll") for (int j = 0; j < Tuned::HIST_ROWS_PER_THREAD; j++) if (ok >> j & 1) \
	{ \
		u32 at = ((u32) bin[j] << lc) | copy; \
		body \
	} \
	break

/*
 * Runs body for the rows of the whole warp, one row of each lane at a time. In body, `has` is true
 * if the lane has a row. Then b is the row's bin, `at` its place in a plane, and l and h are the
 * words of its input.
 */
#define ROW_AFTER_ROW(body) \
	for_each_row_of_warp<Tuned::HIST_ROWS_PER_THREAD>(ok, bin, lo, hi, \
													  [&](bool has, int32_t b, u64 l, u64 h) \
													  { \
														  u32 at = ((u32) b << lc) | copy; \
														  body \
													  }); \
	break

/*
 * Adds the thread's rows whose bits are set in `ok` to the words of slot s in shared memory. row:
 * numbers of the rows in the columns. bin: their bins, less bin0. lc: log2 of the copies.
 */
static __device__ __forceinline__ void
add_rows_of_slot(const HistArgs &args, int s, u32 *shared, int lc, u32 bin0,
				 const u32 (&row)[Tuned::HIST_ROWS_PER_THREAD],
				 const int32_t (&bin)[Tuned::HIST_ROWS_PER_THREAD], u32 ok)
{
	u32 plane = args.pass_bins << lc, copy = threadIdx.x & ((1u << lc) - 1);
	const HistSlot &slot = args.slot[s];
	u32 *p = shared + (size_t) slot.word * plane;
	u64 lo[Tuned::HIST_ROWS_PER_THREAD], hi[Tuned::HIST_ROWS_PER_THREAD];

	ok = filter_slot_rows<Tuned::HIST_ROWS_PER_THREAD>(slot, row, ok);
	if (slot.form == HIST_COUNT)
	{
#pragma unroll
		for (int j = 0; j < Tuned::HIST_ROWS_PER_THREAD; j++)
			if (ok >> j & 1)
				atomicAdd(&p[((u32) bin[j] << lc) | copy], 1u);
		return;
	}
	load_slot_values<Tuned::HIST_ROWS_PER_THREAD>(slot, row, ok, lo, hi);
	switch (slot.form)
	{
		case HIST_INT:
			EACH_ROW(add_integer(args, slot, p + at, plane,
								 bin_of_group(args.part.bins, bin0 + bin[j]), lo[j], hi[j]););
		case HIST_INTSQ:
			ROW_AFTER_ROW(if (has) add_square(slot, p + at, plane, l););
		case HIST_FIX:
		case HIST_ACCUM:
		case HIST_REGR:
			ROW_AFTER_ROW(u32 own = has ? bin_of_group(args.part.bins, bin0 + b) : 0;
						  bool out_of_window =
							  has && !add_floats(args, slot, s, p + at, plane, own, l, h);
						  if (__any_sync(~0u, out_of_window)) change_rows<CHANGE_OUT_OF_WINDOW>(
							  args, s, bin_in_block_copy(args, s, own), out_of_window, l, h););
		case HIST_MAX32:
			EACH_ROW(max_u32(p + at, (u32) max_code(slot.op, lo[j])););
		case HIST_MAX64:
			ROW_AFTER_ROW(u64 code = max_code(slot.op, l);
						  if (has && code == 0 && slot.wide_state) change_decimal_extreme(
							  args, s, bin_of_group(args.part.bins, bin0 + b), (int64_t) l);
						  else if (has) max_u64((u64 *) p + at, code););
		case HIST_CAS:
			add_cas_rows<Tuned::HIST_ROWS_PER_THREAD>(args, slot, (u64 *) p, lc, ok, bin, lo, hi);
			break;
		default: /* OR64, XOR64 */
			ROW_AFTER_ROW(u64 v = slot.op == MONOID_BIT_AND ? ~l : l;
						  for (int k = 0; has && k < 2; k++) {
							  u32 *q = p + at + k * plane;
							  u32 w = (u32) (v >> (32 * k));

							  if (slot.form == HIST_XOR64)
								  atomicXor(q, w);
							  else if (w & ~*(volatile u32 *) q)
								  atomicOr(q, w);
						  });
	}
}

/*
 * Adds the block's rows [begin, end) to bins [bin0, bin0 + nbins), tile by tile. If rows are
 * partitioned, all of them have bins there. report: count rows out of range.
 */
static __device__ void
add_rows(const HistArgs &args, u32 *shared, int lc, u32 bin0, u32 nbins, u64 begin, u64 end,
		 bool report)
{
	u64 stride = (u64) Tuned::HIST_ROWS_PER_THREAD * blockDim.x;

	for (u64 base = begin; base < end; base += stride)
	{
		u32 row[Tuned::HIST_ROWS_PER_THREAD];
		int32_t bin[Tuned::HIST_ROWS_PER_THREAD];
		u32 ok = 0;

#pragma unroll
		for (int j = 0; j < Tuned::HIST_ROWS_PER_THREAD; j++)
		{
			u64 r = base + (u64) j * blockDim.x + threadIdx.x;

			row[j] = (u32) r;
			if (r < end)
				ok |= 1u << j;
		}
		if (args.part.item)
		{
#pragma unroll
			for (int j = 0; j < Tuned::HIST_ROWS_PER_THREAD; j++)
				bin[j] = (ok >> j & 1) ? bin0 + args.part.bin[row[j]] : 0;
			if (args.part.row)
#pragma unroll
				for (int j = 0; j < Tuned::HIST_ROWS_PER_THREAD; j++)
					row[j] = (ok >> j & 1) ? args.part.row[row[j]] : 0;
		}
		else
			ok = find_bins<Tuned::HIST_ROWS_PER_THREAD>(args.bins, row, ok, bin,
														report ? args.status : nullptr);
#pragma unroll
		for (int j = 0; j < Tuned::HIST_ROWS_PER_THREAD; j++)
		{
			bin[j] -= bin0;
			if ((u32) bin[j] >= nbins)
				ok &= ~(1u << j);
		}
		for (int s = 0; s < args.nslots; s++)
			add_rows_of_slot(args, s, shared, lc, bin0, row, bin, ok);
	}
}

/* ---- the kernels --------------------------------------------------------------- */

/*
 * Adds all rows to M sub-histograms in shared memory, in S passes over the rows, and flushes them
 * to limbs. One block a multiprocessor.
 */
static __global__ void
__launch_bounds__(HIST_THREADS_PER_BLOCK, 1)
	accumulate_shared_kernel(const __grid_constant__ HistArgs args)
{
	extern __shared__ __align__(16) u32 shared[];
	u32 nbins = (u32) args.bins.nbins;
	size_t words = (size_t) args.words * (args.pass_bins << args.log2_max_copies);
	int lc;
	/* equal shares of whole warps of rows: small batches have fewer tiles than there are blocks */
	u64 lines = ((u64) args.nrows + 31) / 32, begin = lines * blockIdx.x / gridDim.x * 32,
		end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, (u64) args.nrows);

	let_successor_start();
	hot_entries_init(args);
	clear_shared(shared, words);
	__syncthreads();
	wait_for_predecessor();
	lc = log2_copies(args);
	for (int pass = 0; pass < args.passes; pass++)
	{
		u32 bin0 = pass * args.pass_bins;
		u32 n = min(args.pass_bins, nbins - bin0);

		add_rows(args, shared, lc, bin0, n, begin, end, pass == 0 && args.report);
		__syncthreads();
		flush_to_limbs(args, shared, lc, n, args.limb, bin0);
		if (pass + 1 < args.passes)
		{
			__syncthreads();
			clear_shared(shared, words);
			__syncthreads();
		}
	}
	hot_entries_flush(args);
}

/* Combines the limbs of all bins and slots with the states. */
static __global__ void
fold_limbs_kernel(const __grid_constant__ HistArgs args)
{
	u64 work = (u64) args.bins.nbins * args.nslots;

	let_successor_start();
	wait_for_predecessor();
	for (u64 i = blockIdx.x * (u64) blockDim.x + threadIdx.x; i < work;
		 i += (u64) gridDim.x * blockDim.x)
		fold_bin_of_slot(args, (int) (i / args.bins.nbins), args.limb, 0,
						 (u32) (i % args.bins.nbins));
}

/*
 * Adds partitioned rows. Blocks take work items in order: all rows of a partition, which then go to
 * states directly, or a range of them, which goes to the limbs of the split partition.
 */
static __global__ void
__launch_bounds__(HIST_THREADS_PER_BLOCK, 1)
	accumulate_partition_kernel(const __grid_constant__ HistArgs args)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ u32 next, last;
	const int32_t *bins = args.part.bins;
	u32 nitems;

	wait_for_predecessor();
	let_successor_start();
	hot_entries_init(args);
	nitems = args.part.counter[HIST_NITEMS];

	for (;;)
	{
		__syncthreads();
		if (threadIdx.x == 0)
			next = atomicAdd(&args.part.counter[HIST_NEXT], 1);
		clear_shared(shared, (size_t) args.words * args.pass_bins);
		__syncthreads();
		if (next >= nitems)
			return;

		HistItem item = args.part.item[next];
		PartBins own = bins_of_partition(args, item.part);

		add_rows(args, shared, 0, own.bin0, own.n, item.row0, item.row1, false);
		__syncthreads();
		/* before any thread combines limbs with states */
		hot_entries_flush(args);
		if (item.split < 0)
			flush_to_states(args, shared, args.pass_bins, own.n,
							[=](u32 b) { return bin_of_group(bins, own.bin0 + b); });
		else
			flush_split_partition(args, shared, own.bin0, own.n, item.split, &last);
	}
}

/* Stores the bin of each row in out[], or -1 if it has none. */
static __global__ void
__launch_bounds__(HIST_BINS_THREADS_PER_BLOCK)
	find_bins_kernel(const __grid_constant__ GpuaggBins bins, u32 nrows, int32_t *out,
					 GpuaggHistStatus *status)
{
	constexpr u64 TILE = HIST_BINS_THREADS_PER_BLOCK * Tuned::HIST_BINS_ROWS_PER_THREAD;

	for (u64 first = blockIdx.x * TILE; first < nrows; first += gridDim.x * TILE)
	{
		u32 row[Tuned::HIST_BINS_ROWS_PER_THREAD], there = 0, ok;
		int32_t bin[Tuned::HIST_BINS_ROWS_PER_THREAD];

#pragma unroll
		for (int j = 0; j < Tuned::HIST_BINS_ROWS_PER_THREAD; j++)
		{
			u64 r = first + j * HIST_BINS_THREADS_PER_BLOCK + threadIdx.x;

			row[j] = (u32) r;
			there |= r < nrows ? 1u << j : 0;
		}
		ok = find_bins<Tuned::HIST_BINS_ROWS_PER_THREAD>(bins, row, there, bin, status);
#pragma unroll
		for (int j = 0; j < Tuned::HIST_BINS_ROWS_PER_THREAD; j++)
			if (there >> j & 1)
				out[row[j]] = (ok >> j & 1) ? bin[j] : -1;
	}
}

/* ---- launches ------------------------------------------------------------------- */

GpuaggCudaStatus
hist_launch_prepare(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(launch_early(prepare_call_kernel, facts.sms, HIST_PREPARE_WARPS * 32, 0, facts, stream,
						  args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_fold(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	u64 work = (u64) args.bins.nbins * args.nslots;

	CUDA_TRY(launch_early(fold_limbs_kernel,
						  (int) (work / HIST_FOLD_THREADS_PER_BLOCK + 1 < HIST_FOLD_MAX_BLOCKS ?
									 work / HIST_FOLD_THREADS_PER_BLOCK + 1 :
									 HIST_FOLD_MAX_BLOCKS),
						  HIST_FOLD_THREADS_PER_BLOCK, 0, facts, stream, args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_shared(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t bytes = bytes_with_hot(args, HIST_THREADS_PER_BLOCK);
	bool taken;

	STATUS_TRY(hist_launch_sums(args, facts, stream, &taken));
	if (!taken)
		STATUS_TRY(hist_launch_fast(args, facts, stream, &taken));
	if (!taken)
	{
		CUDA_TRY(allow_shared(accumulate_shared_kernel, facts));
		CUDA_TRY(launch_early(accumulate_shared_kernel, facts.sms, HIST_THREADS_PER_BLOCK, bytes,
							  facts, stream, args));
	}
	return hist_launch_fold(args, facts, stream);
}

GpuaggCudaStatus
hist_launch_partitioned(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t bytes = bytes_with_hot(args, HIST_THREADS_PER_BLOCK);
	bool taken;

	STATUS_TRY(hist_launch_fast(args, facts, stream, &taken));
	if (taken)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(allow_shared(accumulate_partition_kernel, facts));
	CUDA_TRY(launch_early(accumulate_partition_kernel, HIST_PARTITION_BLOCKS_PER_SM * facts.sms,
						  HIST_THREADS_PER_BLOCK, bytes, facts, stream, args));
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_bins(const GpuaggBins *bins, int64_t nrows, int32_t *out, GpuaggHistStatus *status,
				 gpuagg_stream stream)
{
	const DeviceFacts *facts;

	if (nrows < 0)
		return GPUAGG_CUDA_INVALID;
	if (nrows > UINT32_MAX)
		return GPUAGG_CUDA_UNSUPPORTED;
	STATUS_TRY(hist_check_bins(*bins));
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	STATUS_TRY(gpuagg_device_facts(&facts));
	find_bins_kernel<<<HIST_BINS_BLOCKS_PER_SM * facts->sms, HIST_BINS_THREADS_PER_BLOCK, 0,
					   stream>>>(*bins, (u32) nrows, out, status);
	CUDA_TRY_LAUNCH("find_bins_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- ranges of keys ------------------------------------------------------------ */

/* Sets range[] to the range of no values. */
static __global__ void
init_key_range_kernel(int64_t *range)
{
	range[0] = INT64_MAX;
	range[1] = INT64_MIN;
}

/*
 * Lowers range[0] to the least value of a column, and raises range[1] to its greatest value. NULLs
 * do not count.
 */
static __global__ void
__launch_bounds__(HIST_RANGE_THREADS_PER_BLOCK)
	key_range_kernel(GpuaggColumn column, u32 nrows, int64_t *range)
{
	int64_t lo = INT64_MAX, hi = INT64_MIN;

	for (u64 r = blockIdx.x * (u64) blockDim.x + threadIdx.x; r < nrows;
		 r += (u64) gridDim.x * blockDim.x)
	{
		int64_t v;

		if (column.validity && !is_bit_set(column.validity, (u32) r))
			continue;
		v = load_integer(column.values, column.type, r);
		lo = v < lo ? v : lo;
		hi = v > hi ? v : hi;
	}
	for (int d = 16; d > 0; d /= 2)
	{
		int64_t l = __shfl_xor_sync(~0u, lo, d), h = __shfl_xor_sync(~0u, hi, d);

		lo = l < lo ? l : lo;
		hi = h > hi ? h : hi;
	}
	if (threadIdx.x % 32 == 0 && lo <= hi)
	{
		atomicMin((long long *) &range[0], (long long) lo);
		atomicMax((long long *) &range[1], (long long) hi);
	}
}

GPUAGG_API GpuaggCudaStatus
gpuagg_key_range(const GpuaggColumn *column, int64_t nrows, int64_t *range, gpuagg_stream stream)
{
	const DeviceFacts *facts;

	if (nrows < 0 || nrows > UINT32_MAX || column->type < GPUAGG_VALUE_I8 ||
		column->type > GPUAGG_VALUE_I64)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	init_key_range_kernel<<<1, 1, 0, stream>>>(range);
	key_range_kernel<<<HIST_RANGE_BLOCKS_PER_SM * facts->sms, HIST_RANGE_THREADS_PER_BLOCK, 0,
					   stream>>>(*column, (u32) nrows, range);
	CUDA_TRY_LAUNCH("key_range_kernel");
	return GPUAGG_CUDA_OK;
}
