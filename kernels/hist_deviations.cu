/*
 * hist_deviations.cu
 *	  Deviations (form ACCUM) of a float8 column in shared memory, for the common shapes.
 *
 * A common shape has no NULLs and no filter.  Its bins are an int32 column, keys with one range, or
 * pairs of keys with two ranges.  A count of the rows, and least and greatest values of the same
 * column, may be computed in the same pass.  Other shapes go to hist_kernels.cu or to tiles.
 *
 * hist_launch_deviations queues two kernels, and nothing synchronizes:
 *
 *	deviations_kernel		adds all rows to bins in shared memory, in one or more passes over the
 *							bins; flushes them to limbs, which a later kernel folds into states
 *	out_of_window_kernel	combines rows that do not fit the window with states
 *
 * A block of deviations_kernel has 1024 threads with a row each, so 64 registers a thread.  That is
 * enough because the loop has no calls.  The compiler keeps whatever is live across a call in local
 * memory throughout the loop, even in iterations without the call.  Local memory is in the L2 cache
 * here, because the bins take the room of the L1 cache.  Rows out of the window need calls, so the
 * loop marks them in HistArgs.out_of_window, one bit for each row, and the second kernel changes
 * their states.
 */
#include "hist_fast.cuh"

/*
 * Least and greatest values of a row's bin, as order-preserving codes of 64 bits.  The greatest
 * code wins; codes of least values are complemented.  Shared memory has no native maximum of 64
 * bits, so compare-and-swap changes a code.  A bin that has seen n rows in random order is changed
 * about ln n times by each extreme.  So nearly every warp has a row that changes one.
 */
struct FloatExtremes
{
	u32 word_at[FAST_MORE]; /* shared address of the bin's code */
	u64 code[FAST_MORE];    /* the row's code */
	u64 seen[FAST_MORE]; /* the bin's code when it was read; greatest of all: nothing to change */

	/*
	 * Computes the row's codes, and reads those of its bin.  If the row is not `in`, there is
	 * nothing to change.
	 */
	__device__ __forceinline__ void
	read(const HistArgs &args, const FastArgs &fast, u32 shared_at, u32 plane, u32 at, double v,
		 bool in)
	{
		u64 order = f64_order_code((u64) __double_as_longlong(v));

#pragma unroll
		for (int k = 0; k < FAST_MORE; k++)
		{
			bool there = fast.joined[k] >= 0;
			const HistSlot &slot = args.slot[there ? fast.joined[k] : 0];

			word_at[k] = shared_at + (slot.word * plane + 2 * at) * (u32) sizeof(u32);
			code[k] = slot.op == MONOID_MIN_F64 ? ~order : order;
			seen[k] = ~0ULL;
			if (there && in)
				asm volatile("ld.volatile.shared.u64 %0, [%1];"
							 : "=l"(seen[k])
							 : "r"(word_at[k])
							 : "memory");
		}
	}

	/* Writes the row's codes to its bin where they are greater. */
	__device__ __forceinline__ void
	update()
	{
#pragma unroll
		for (int k = 0; k < FAST_MORE; k++)
			while (seen[k] < code[k])
			{
				u64 now;

				asm volatile("atom.shared.cas.b64 %0, [%1], %2, %3;"
							 : "=l"(now)
							 : "r"(word_at[k]), "l"(seen[k]), "l"(code[k])
							 : "memory");
				seen[k] = now == seen[k] ? ~0ULL : now;
			}
		__syncwarp();
	}
};

/* Where a block's bins are in shared memory, and how rows out of range are recognized. */
struct DeviationPlaces
{
	FastShared place;
	u32 shared_at;   /* shared address of the first word */
	u32 plane_bytes; /* bytes from one word of a bin to the next */
	u32 origin;      /* key or bin number of the pass's first bin */
	/* a row is out of range if its bin + bias > most; later passes count no such rows */
	u32 most;
	u32 bias;
};

/* What a row's bin is computed from, loaded one row ahead: the bin itself, a key, or two keys. */
template <bool PAIRED> struct DeviationKeys
{
	u32 key,   /* the bin, the key, or the outer of two keys */
		inner; /* the inner of two keys */

	__device__ __forceinline__ void
	load(const FastArgs &fast, u64 row)
	{
		const int32_t *column = PAIRED ? fast.keys.column[0] : fast.bins.column;

		key = PAIRED || column ? (u32) __ldcs(column + row) : 0;
		inner = PAIRED ? (u32) __ldcs(fast.keys.column[1] + row) : 0;
	}
	/* Returns the bin, from which `origin` is not subtracted yet. */
	__device__ __forceinline__ u32
	bin(const FastArgs &fast) const
	{
		return PAIRED ? fast.keys.bin(key, inner) : key;
	}
};

/*
 * Adds a row to bin b of the pass, if `in`.  Returns whether the row is `in` but out of the window.
 * Such a row is in a separate count of rows and in the extremes, but not in the deviations.
 */
template <int BITS, bool EXTREMES>
static __device__ __forceinline__ bool
add_deviation_row(const HistArgs &args, const FastArgs &fast, const DeviationPlaces &p, int e0,
				  u32 b, double v, bool in)
{
	const HistSlot &slot = args.slot[fast.slot];
	u32 at = in ? (b << p.place.log2_copies) | p.place.copy : 0,
		words_at = p.place.words_at + at * (u32) sizeof(u32);
	FixValue f;
	MomentDigits<BITS> m;
	FloatExtremes extremes;
	bool fits = fix_from_double((u64) __double_as_longlong(v), e0, slot.max_shift, f);

	if (EXTREMES)
		extremes.read(args, fast, p.shared_at, p.place.plane, at, v, in);
	if (in && fast.count >= 0)
		shared_count(p.place.count_at + at * (u32) sizeof(u32));
	if (in && fits)
		shared_count(words_at);
	else
	{
		/* all digits are zero, and none is added */
		f.m = 0;
		f.shift = 0;
	}
	m.cut(f, words_at, p.plane_bytes, slot.words);
	m.add(p.plane_bytes);
	if (EXTREMES)
		extremes.update();
	m.carry(args, slot, p.place.bin_at(at), words_at, p.plane_bytes);
	__syncwarp();
	return in && !fits;
}

/*
 * Adds the block's rows [begin, end) of the bins [bin0, bin0 + nbins).  `begin` is a multiple of
 * 32.  In the first pass it also counts rows out of range, and writes the marks of rows out of the
 * window; later passes add their marks.
 */
template <int BITS, bool EXTREMES, bool PAIRED>
static __device__ __forceinline__ void
add_deviation_rows(const HistArgs &args, const FastArgs &fast, u32 *shared, u32 bin0, u32 nbins,
				   u64 begin, u64 end, bool first)
{
	const double *values = (const double *) args.slot[fast.slot].x.values;
	DeviationPlaces p = {make_fast_shared<FAST_ACCUM_F64>(args, fast, fast.count >= 0, shared,
														  log2_copies(args), bin0, nbins)};
	int e0 = args.window[2 * fast.slot];
	u32 outside = 0;
	DeviationKeys<PAIRED> keys, next_keys = {};
	double v, next = 0;

	p.shared_at = shared_address(shared);
	p.plane_bytes = p.place.plane * (u32) sizeof(u32);
	p.origin = fast.bins.min + bin0;
	/*
	 * out of range: at or above the number of bins; where negative bins are skipped, as signed
	 * numbers
	 */
	p.bias = fast.bins.skip_negative ? 0x80000000u : 0;
	p.most = first && args.report ? fast.bins.n - 1 + p.bias : ~0u;
	if (begin + threadIdx.x < end)
	{
		next_keys.load(fast, begin + threadIdx.x);
		next = __ldcs(values + begin + threadIdx.x);
	}
	for (u64 row = begin + threadIdx.x; row - threadIdx.x < end;
		 row += DEVIATIONS_THREADS_PER_BLOCK)
	{
		bool there = row < end;
		u32 b, out;

		keys = next_keys;
		v = next;
		if (row + DEVIATIONS_THREADS_PER_BLOCK < end)
		{
			next_keys.load(fast, row + DEVIATIONS_THREADS_PER_BLOCK);
			next = __ldcs(values + row + DEVIATIONS_THREADS_PER_BLOCK);
		}
		b = keys.bin(fast) - p.origin;
		out = __ballot_sync(
			~0u, add_deviation_row<BITS, EXTREMES>(args, fast, p, e0, b, v, there && b < nbins));
		if (there && b >= nbins && b + bin0 + p.bias > p.most)
			outside++;
		if (threadIdx.x % 32 == 0 && there && (first || out))
			args.out_of_window[row / 32] = (first ? 0 : args.out_of_window[row / 32]) | out;
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

/*
 * Adds all rows to bins in shared memory and flushes them to limbs.  A pass takes as many bins as
 * fit.
 */
template <int BITS, bool EXTREMES, bool PAIRED>
static __global__ void
__launch_bounds__(DEVIATIONS_THREADS_PER_BLOCK, 1)
	deviations_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	BlockRows rows(args.nrows);

	let_successor_start();
	for (int pass = 0; pass < args.passes; pass++)
	{
		u32 bin0 = pass * args.pass_bins;
		u32 n = min(args.pass_bins, (u32) args.bins.nbins - bin0);

		__syncthreads();
		clear_shared(shared, (size_t) args.words * (args.pass_bins << args.log2_max_copies));
		if (pass == 0)
			wait_for_predecessor();
		__syncthreads();
		add_deviation_rows<BITS, EXTREMES, PAIRED>(args, fast, shared, bin0, n, rows.begin,
												   rows.end, pass == 0);
		__syncthreads();
		flush_to_limbs(args, shared, log2_copies(args), n, args.limb, bin0);
	}
}

/* Adds one to a count in its limb.  A limb has the counts of two bins. */
static __device__ __forceinline__ void
count_in_limb(const HistArgs &args, const HistSlot &slot, u32 bin)
{
	atomicAdd(args.limb + (size_t) slot.limb * args.limb_bins + bin / 2,
			  bin % 2 ? 1ULL << 32 : 1ULL);
}

/* Returns the bin of a row; the row must have one. */
static __device__ __forceinline__ u32
bin_of_row(const FastArgs &fast, u32 row)
{
	if (fast.paired)
		return fast.keys.bin((u32) fast.keys.column[0][row], (u32) fast.keys.column[1][row]);
	return fast.bins.column ? (u32) fast.bins.column[row] - fast.bins.min : 0;
}

/*
 * Combines the marked rows with the states of their bins, or with copies of these (HistArgs.extra).
 */
static __global__ void
__launch_bounds__(HIST_THREADS_PER_BLOCK, 1)
	out_of_window_kernel(const __grid_constant__ HistArgs args,
						 const __grid_constant__ FastArgs fast)
{
	const double *values = (const double *) args.slot[fast.slot].x.values;
	u32 words = (u32) (((u64) args.nrows + 31) / 32),
		warps = gridDim.x * (HIST_THREADS_PER_BLOCK / 32), lane = threadIdx.x % 32;

	wait_for_predecessor();
	let_successor_start();
	hot_entries_init(args);
	/* a warp reads 32 words of marks together, so that words without marks cost little */
	for (u32 first = (blockIdx.x * (HIST_THREADS_PER_BLOCK / 32) + threadIdx.x / 32) * 32;
		 first < words; first += warps * 32)
	{
		u32 mine = first + lane < words ? args.out_of_window[first + lane] : 0;

		for (u32 some = __ballot_sync(~0u, mine); some; some &= some - 1)
		{
			u32 w = __ffs(some) - 1, row = (first + w) * 32 + lane;
			bool has = __shfl_sync(~0u, mine, w) >> lane & 1;
			u32 bin = has ? bin_of_row(fast, row) : 0;
			u64 bits = has ? (u64) __double_as_longlong(values[row]) : 0;

			/* the count that shares the word of the deviations lacks these rows */
			if (has && fast.in_moments >= 0)
				count_in_limb(args, args.slot[fast.in_moments], bin);
			change_rows<CHANGE_OUT_OF_WINDOW>(
				args, fast.slot, bin_in_block_copy(args, fast.slot, bin), has, bits, 0);
		}
	}
	hot_entries_flush(args);
}

/* Queues the kernel of deviations with the width of digits that the slot has. */
template <bool EXTREMES, bool PAIRED>
static cudaError_t
launch_deviations(const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts,
				  cudaStream_t stream)
{
	void (*kernel)(HistArgs, FastArgs) = args.slot[fast.slot].digit_bits == 24 ?
		deviations_kernel<24, EXTREMES, PAIRED> :
		deviations_kernel<28, EXTREMES, PAIRED>;
	cudaError_t err = allow_shared(kernel, facts);

	if (err != cudaSuccess)
		return err;
	return launch_early(kernel, facts.sms, DEVIATIONS_THREADS_PER_BLOCK,
						(size_t) args.words * (args.pass_bins << args.log2_max_copies) *
							sizeof(u32),
						facts, stream, args, fast);
}

cudaError_t
hist_launch_deviations(const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts,
					   cudaStream_t stream)
{
	bool extremes = fast.joined[0] >= 0;
	cudaError_t err = fast.paired ?
		(extremes ? launch_deviations<true, true> :
					launch_deviations<false, true>) (args, fast, facts, stream) :
		(extremes ? launch_deviations<true, false> :
					launch_deviations<false, false>) (args, fast, facts, stream);

	if (err == cudaSuccess)
		err = allow_shared(out_of_window_kernel, facts);
	if (err == cudaSuccess)
		err = launch_early(out_of_window_kernel, facts.sms, HIST_THREADS_PER_BLOCK,
						   bytes_with_hot(args, HIST_THREADS_PER_BLOCK), facts, stream, args, fast);
	return err;
}

size_t
hist_deviation_mark_words(const HistArgs &args)
{
	FastArgs fast = FastArgs();
	int kind;

	return fast_match_shape(args, fast, kind) && kind == FAST_ACCUM_F64 ?
		((size_t) args.nrows + 31) / 32 :
		0;
}
