/*
 * hist_fast.cu
 *	  Kernels in shared memory for common shapes of calls (hist_fast.cuh): simple or paired bins,
 *	  and one operator over a column without NULLs or filter, with or without a COUNT and extremes.
 *
 * hist_kernels.cu has the kernels for all other calls. Words in shared memory and limbs are the
 * same in both. Here the inner loop has nothing left to decide, so that it runs at memory
 * bandwidth. There are two kernels for each kind of slot:
 *
 *	accumulate_fast_kernel	rows in their order, M copies, S passes; flushes to limbs
 *	accumulate_fast_partition_kernel	rows of partitions; flushes to states
 */
#include "hist_add.cuh"

/* Returns the bin that at least two of three sampled rows of a work item have, or NO_BIN. */
static __device__ __forceinline__ u32
sample_hot_bin(const uint16_t *bin, const HistItem &item)
{
	u32 third = (item.row1 - item.row0) / 3, b[3];

	for (int i = 0; i < 3; i++)
		b[i] = bin[item.row0 + i * third];
	return b[0] == b[1] || b[0] == b[2] ? b[0] : b[1] == b[2] ? b[1] : NO_BIN;
}

/*
 * Adds the hot bin's sums, which the lanes of the warp have in registers, to the limbs of the split
 * partition.
 */
template <int DIGITS>
static __device__ __forceinline__ void
flush_hot_bin(const HistArgs &args, const FastArgs &fast, HotBin<DIGITS> &hot, u64 *limbs)
{
	constexpr int LIMBS = DIGITS + (DIGITS == FIX_CHAIN_WORDS);

	for (int d = 16; d > 0; d /= 2)
	{
		hot.rows += __shfl_xor_sync(~0u, hot.rows, d);
		for (int k = 0; k < LIMBS; k++)
			hot.digit[k] += __shfl_xor_sync(~0u, hot.digit[k], d);
	}
	if (threadIdx.x % 32 != 0 || hot.rows == 0)
		return;
	if (fast.count >= 0)
		atomicAdd((u32 *) (limbs + (size_t) args.slot[fast.count].limb * args.limb_bins) + hot.bin,
				  hot.rows);
	for (int k = 0; k < LIMBS; k++)
		atomicAdd(limbs + (size_t) (args.slot[fast.slot].limb + k) * args.limb_bins + hot.bin,
				  (u64) hot.digit[k]);
}

/* A thread's rows of one tile, loaded before the previous tile is added. */
template <int KIND, bool PAIRED> struct FastTile
{
	typedef typename FastInput<KIND>::type T;
	static constexpr int ITEMS = fast_tile_items(KIND, PAIRED);
	u32 bin[ITEMS];                /* bin, or PAIRED: the outer key */
	u32 inner[PAIRED ? ITEMS : 1]; /* PAIRED: the inner key */
	T v[ITEMS];                    /* value */

	/*
	 * Loads the rows from `base` on, up to `end`. bins == NULL: all rows have bin 0. Rows past the
	 * end get `none`, which is not a bin.
	 */
	template <typename B>
	__device__ __forceinline__ void
	load(const B *bins, const int32_t *inners, const T *values, u64 base, u64 end, int threads,
		 u32 none)
	{
		u64 left = base < end ? end - base : 0;

		base += threadIdx.x;
		values += base;
		if (PAIRED)
			inners += base;
		if (PAIRED || bins)
			bins += base;
		if (left >= (u64) ITEMS * threads)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				bin[j] = PAIRED || bins ? (u32) __ldcs(bins + j * threads) : 0;
				if (PAIRED)
					inner[j] = (u32) __ldcs(inners + j * threads);
				if (KIND != FAST_NONE)
					v[j] = __ldcs(values + j * threads);
			}
		}
		else
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				bin[j] = none;
				if (j * threads + threadIdx.x < left)
				{
					bin[j] = PAIRED || bins ? (u32) __ldcs(bins + j * threads) : 0;
					if (PAIRED)
						inner[j] = (u32) __ldcs(inners + j * threads);
					if (KIND != FAST_NONE)
						v[j] = __ldcs(values + j * threads);
				}
			}
		}
	}
};

/*
 * Returns the column that the bin of a row is loaded from: bin numbers within a partition, the
 * outer of two keys, or a simple column.
 */
template <bool PARTITIONED, bool PAIRED>
static __device__ __forceinline__ auto
bin_column(const HistArgs &args, const FastArgs &fast)
{
	if constexpr (PARTITIONED)
		return args.part.bin;
	else if constexpr (PAIRED)
		return fast.keys.column[0];
	else
		return fast.bins.column;
}

/* ---- extremes of few bins --------------------------------------------------------- */

/*
 * With few bins, hardly any row raises an extreme. So a block keeps bounds in shared memory: only
 * values at or beyond them can be a new minimum or maximum of some bin. Values between the bounds
 * are skipped without a look at their bins. Bounds are integers or the bits of doubles. They hold
 * for all extremes of the call, which have one column. Extremes only move outwards, so an old bound
 * is still right; it only lets more rows through. While a bin is empty, any value passes.
 */

/* Returns whether the operator is a minimum; the others are maxima. */
static __device__ __forceinline__ bool
is_minimum(int op)
{
	return op == MONOID_MIN_I32 || op == MONOID_MIN_I64 || op == MONOID_MIN_DEC ||
		op == MONOID_MIN_F64;
}

/*
 * Returns the bound (see above), given that the extremes of all bins have at least this code
 * (max_code). The bound of integers is the first value with a greater code. The bound of doubles is
 * the value of the code itself; values beyond it have a greater code. greatest: the greatest code
 * of the type.
 */
static __device__ __forceinline__ u64
bound_of_code(int op, u64 code, u64 greatest)
{
	bool least = is_minimum(op);

	if (op == MONOID_MIN_F64 || op == MONOID_MAX_F64)
	{
		u64 bits = f64_of_order_code(least ? ~code : code);

		/*
		 * NaN: all values are beyond it, as comparisons with it are false. 0 and -0 compare as
		 * equal but have two codes, so their bound is the neighbouring number.
		 */
		if (code == 0)
			return 0x7ff8000000000000ULL;
		return bits << 1 ? bits : least ? 1 : 1ULL << 63 | 1;
	}
	/*
	 * the next code, if there is one; code 0 is kept, since it also stands for a bin without rows
	 */
	if (code != 0 && code != greatest)
		code++;
	code = least ? greatest - code : code;
	return op == MONOID_MIN_I32 || op == MONOID_MAX_I32 ?
		(u64) (int64_t) (int32_t) ((u32) code ^ 0x80000000u) :
		code ^ 1ULL << 63;
}

/*
 * Returns the bound of a slot with operator op, computed from the codes that the block's bins have
 * at p. wide: a code has 64 bits. The whole warp must call it.
 */
static __device__ __noinline__ u64
find_bound(int op, bool wide, const volatile u32 *p, int lc, u32 nbins)
{
	u32 copy = threadIdx.x % 32 & ((1u << lc) - 1);
	u64 least = ~0ULL;

	for (u32 b = 0; b < nbins; b++)
	{
		u32 at = (b << lc) | copy;
		u64 code = wide ? ((const volatile u64 *) p)[at] : p[at];
		u32 high = __reduce_max_sync(~0u, (u32) (code >> 32)),
			low = __reduce_max_sync(~0u, (u32) (code >> 32) == high ? (u32) code : 0);

		least = min(least, (u64) high << 32 | low);
	}
	return bound_of_code(op, least, wide ? ~0ULL : 0xffffffffULL);
}

/*
 * A value below `low` or above `high` may be a new extreme. An integer equal to one of them may be
 * one, too.
 */
struct Bounds
{
	u64 low, high;
};

/* Returns whether the column's values are compared as doubles. */
template <int KIND>
static __device__ __forceinline__ bool
column_has_doubles(const HistArgs &args, const FastArgs &fast)
{
	return fast_digits(KIND) > 0 ||
		(KIND == FAST_MAX_64 && args.slot[fast.slot].x.type == GPUAGG_VALUE_F64);
}

/*
 * Sets `bounds` from the extremes that the block has in shared memory so far. The whole warp must
 * call it.
 */
template <int KIND>
static __device__ __forceinline__ void
update_bounds(const HistArgs &args, const FastArgs &fast, const u32 *shared, u32 plane, int lc,
			  u32 nbins, Bounds &bounds)
{
	bool doubles = column_has_doubles<KIND>(args, fast),
		 narrow = sizeof(typename FastInput<KIND>::type) == sizeof(int32_t);
	/* without a minimum or a maximum slot, only the last value of the type is at that bound */
	u64 low = doubles ? 0xfff0000000000000ULL : (u64) (narrow ? INT32_MIN : INT64_MIN),
		high = doubles ? 0x7ff0000000000000ULL : (u64) (narrow ? INT32_MAX : INT64_MAX);

#pragma unroll 1
	for (int k = fast_is_extreme(KIND) ? -1 : 0; k < FAST_MORE && (k < 0 || fast.joined[k] >= 0);
		 k++)
	{
		const HistSlot &slot = args.slot[k < 0 ? fast.slot : fast.joined[k]];
		u64 bound = find_bound(slot.op, slot.form == HIST_MAX64,
							   shared + (size_t) slot.word * plane, lc, nbins);

		if (is_minimum(slot.op))
			low = bound;
		else
			high = bound;
	}
	if (threadIdx.x % 32 == 0)
	{
		atomicExch(&bounds.low, low);
		atomicExch(&bounds.high, high);
	}
}

/* Returns whether any value of the warp may be a new extreme. NaNs always may. */
template <int KIND, bool PAIRED>
static __device__ __forceinline__ bool
any_beyond_bounds(const HistArgs &args, const FastArgs &fast, const Bounds &bounds,
				  const FastTile<KIND, PAIRED> &tile)
{
	u64 low = *(const volatile u64 *) &bounds.low, high = *(const volatile u64 *) &bounds.high;
	bool some = false;

	if (column_has_doubles<KIND>(args, fast))
#pragma unroll
		for (int j = 0; j < fast_tile_items(KIND, PAIRED); j++)
		{
			double x;

			if constexpr (KIND == FAST_MAX_64)
				x = __longlong_as_double((long long) tile.v[j]);
			else
				x = (double) tile.v[j];
			some = some ||
				!(x >= __longlong_as_double((long long) low) &&
				  x <= __longlong_as_double((long long) high));
		}
	else if constexpr (sizeof(tile.v[0]) == sizeof(int32_t))
#pragma unroll
		for (int j = 0; j < fast_tile_items(KIND, PAIRED); j++)
			some = some || (int32_t) tile.v[j] <= (int32_t) low ||
				(int32_t) tile.v[j] >= (int32_t) high;
	else
#pragma unroll
		for (int j = 0; j < fast_tile_items(KIND, PAIRED); j++)
			some = some || (int64_t) tile.v[j] <= (int64_t) low ||
				(int64_t) tile.v[j] >= (int64_t) high;
	return __any_sync(~0u, some);
}

/*
 * Adds the rows of a tile to the main slot. `in` has a bit for each row that has a bin here, in_hot
 * for each row of the hot bin.
 */
template <int KIND, bool PARTITIONED, bool PAIRED>
static __device__ __forceinline__ void
add_tile(const HistArgs &args, const FastArgs &fast, const FastShared &place,
		 const FixWindow<fast_digits(KIND)> &window, const u32 (&at)[fast_tile_items(KIND, PAIRED)],
		 const FastTile<KIND, PAIRED> &tile, u32 in, u32 in_hot, HotBin<fast_digits(KIND)> &hot)
{
	constexpr int ITEMS = fast_tile_items(KIND, PAIRED);
	constexpr int DIGITS = fast_digits(KIND);

	if constexpr (DIGITS == FIX_CHAIN_WORDS)
		add_floats_to_chains<ITEMS, PARTITIONED>(args, fast, place, window, at, tile.v, in, in_hot,
												 hot);
	else if constexpr (DIGITS > 0)
		add_fixes<DIGITS, ITEMS, PARTITIONED>(args, fast, place, window, at, tile.v, in, in_hot,
											  hot);
	else if constexpr (KIND == FAST_INT_I32)
		add_integers<ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_INT_I64)
		add_wide_integers<ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_MAX_I32 || KIND == FAST_MAX_64)
		add_extremes<ITEMS>(args, fast.slot, place, at, tile.v, in);
}

/* Adds the rows of a tile to the slots of fast.joined, which are extremes of the same column. */
template <int KIND, bool PAIRED>
static __device__ __forceinline__ void
add_joined_extremes(const HistArgs &args, const FastArgs &fast, u32 *shared, FastShared place,
					const u32 (&at)[fast_tile_items(KIND, PAIRED)],
					const FastTile<KIND, PAIRED> &tile, u32 in)
{
	constexpr int ITEMS = fast_tile_items(KIND, PAIRED);

#pragma unroll 1
	for (int k = 0; k < FAST_MORE && fast.joined[k] >= 0; k++)
	{
		place.word = args.slot[fast.joined[k]].word;
		place.words = shared + place.word * place.plane;
		if constexpr (KIND == FAST_INT_I32 || KIND == FAST_MAX_I32 || KIND == FAST_INT_I64 ||
					  KIND == FAST_MAX_64)
			add_extremes<ITEMS>(args, fast.joined[k], place, at, tile.v, in);
		else if constexpr (KIND == FAST_FIX3_F64 || KIND == FAST_CHAIN_F64)
		{
			u64 bits[ITEMS];

#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				bits[j] = (u64) __double_as_longlong(tile.v[j]);
			add_extremes<ITEMS>(args, fast.joined[k], place, at, bits, in);
		}
	}
}

/* ---- rows of a block ----------------------------------------------------------- */

/*
 * Adds rows [begin, end) to bins [bin0, bin0 + nbins) in shared memory, which it clears first,
 * while the first rows are loaded. THREADS: threads of the block; 0: known at run time only.
 * report: count rows out of range. hot: rows of its bin are summed in registers. bounds: shared
 * memory, used if there are extremes of few bins.
 */
template <int KIND, int THREADS, bool PARTITIONED, bool PAIRED>
static __device__ __forceinline__ void
add_row_range(const HistArgs &args, const FastArgs &fast, u32 *shared, u32 bin0, u32 nbins,
			  u64 begin, u64 end, bool report, HotBin<fast_digits(KIND)> &hot, Bounds *bounds)
{
	typedef typename FastInput<KIND>::type T;
	constexpr int ITEMS = fast_tile_items(KIND, PAIRED);
	constexpr int DIGITS = fast_digits(KIND);
	const int threads = THREADS ? THREADS : blockDim.x;
	const u32 step = ITEMS * threads;
	const auto *bins = bin_column<PARTITIONED, PAIRED>(args, fast);
	const int32_t *inners = PAIRED ? fast.keys.column[1] : nullptr;
	const T *values = KIND == FAST_NONE ? nullptr : (const T *) args.slot[fast.slot].x.values;
	bool counting = KIND == FAST_NONE || fast.count >= 0;
	u32 origin = PARTITIONED ? 0 : fast.bins.min + bin0;
	/*
	 * rows are outside if their bin is at or above the number of bins, compared as signed numbers
	 * if negative bins are skipped
	 */
	u32 bias = fast.bins.skip_negative ? 0x80000000u : 0;
	u32 most = report ? fast.bins.n - 1 + bias : ~0u;
	u32 outside = 0;
	/* the bin, or the outer key, of rows past the end */
	u32 none = PAIRED ? fast.keys.min[0] - 1 : origin - 1;
	FastTile<KIND, PAIRED> next;

	next.load(bins, inners, values, begin, end, threads, none);
	clear_shared(
		shared, (size_t) args.words * (args.pass_bins << (PARTITIONED ? 0 : args.log2_max_copies)));
	/* windows are needed now; cleared limbs at the end, or for a carry */
	if (!PARTITIONED && (KIND != FAST_MAX_I32 || args.copies))
		wait_for_predecessor();

	FastShared place = make_fast_shared<KIND>(args, fast, counting, shared,
											  PARTITIONED ? 0 : log2_copies(args), bin0, nbins);

	if (PARTITIONED)
		place.bins = args.part.bins;
	FixWindow<DIGITS> window(args, fast.slot);
	const bool bounded = !PARTITIONED && nbins <= Tuned::FAST_MAX_BOUNDED_BINS &&
		(fast_is_extreme(KIND) || fast.joined[0] >= 0);
	u32 turn = 0;

	__syncthreads();
	if (bounded)
	{
		/* bounds of empty bins */
		if (threadIdx.x < 32)
			update_bounds<KIND>(args, fast, shared, place.plane, place.log2_copies, nbins, *bounds);
		__syncthreads();
	}
	for (u64 base = begin; base < end; base += step)
	{
		FastTile<KIND, PAIRED> tile = next;
		u32 at[ITEMS], bin[ITEMS];
		u32 in = 0, in_hot = 0;
		bool all = true;

		next.load(bins, inners, values, base + step, end, threads, none);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			bin[j] = (PAIRED ? fast.keys.bin(tile.bin[j], tile.inner[j]) : tile.bin[j]) - origin;
			at[j] = (bin[j] << place.log2_copies) | place.copy;
			all = all && bin[j] < nbins && !(PARTITIONED && DIGITS > 0 && bin[j] == hot.bin);
		}
		/* nearly always: without a test of each row */
		if (__all_sync(~0u, all))
		{
			in = (1u << ITEMS) - 1;
			if (counting)
#pragma unroll
				for (int j = 0; j < ITEMS; j++)
					shared_count(place.count_at + at[j] * (u32) sizeof(u32));
		}
		else
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (PARTITIONED && DIGITS > 0 && bin[j] == hot.bin)
					in_hot |= 1u << j;
				else if (bin[j] < nbins)
				{
					in |= 1u << j;
					if (counting)
						shared_count(place.count_at + at[j] * (u32) sizeof(u32));
				}
				else if (bin[j] + bin0 + bias > most && base + j * threads + threadIdx.x < end)
					outside++;

		bool look = !bounded || any_beyond_bounds<KIND, PAIRED>(args, fast, *bounds, tile);

		if (look || !fast_is_extreme(KIND))
			add_tile<KIND, PARTITIONED, PAIRED>(args, fast, place, window, at, tile, in, in_hot,
												hot);
		if constexpr (!PARTITIONED)
			if (look)
				add_joined_extremes<KIND, PAIRED>(args, fast, shared, place, at, tile, in);
		if (bounded)
		{
			turn++;
			if ((turn % Tuned::FAST_TILES_PER_BOUND_SEARCH == 0 || (turn & (turn - 1)) == 0) &&
				turn / Tuned::FAST_TILES_PER_BOUND_SEARCH % (threads / 32) == threadIdx.x / 32)
				update_bounds<KIND>(args, fast, shared, place.plane, place.log2_copies, nbins,
									*bounds);
		}
		hot.rows += __popc(in_hot);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

/* ---- states of a partition ------------------------------------------------------- */

/* Brings the line at p into the L2 cache. */
static __device__ __forceinline__ void
prefetch_line(const void *p)
{
	asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(p)));
}

/*
 * Brings the states of a partition's bins into the L2 cache while rows are added, so that the flush
 * does not wait for them.
 */
template <int KIND>
static __device__ __forceinline__ void
prefetch_states(const HistArgs &args, const FastArgs &fast, const PartBins &own)
{
	/* bins that are neighbours share lines of 128 bytes */
	u32 step = args.part.bins ? 1 : 16;

	for (u32 b = step * threadIdx.x; b < own.n; b += step * blockDim.x)
	{
		u32 bin = bin_of_group(args.part.bins, own.bin0 + b);

		if (fast.count >= 0)
			prefetch_line((const int64_t *) args.slot[fast.count].states + bin);
		if (KIND != FAST_NONE)
		{
			const HistSlot &slot = args.slot[fast.slot];
			size_t bytes = slot.wide_state                        ? 16 :
				KIND == FAST_MAX_I32 || slot.op == MONOID_SUM_F32 ? 4 :
																	8;

			prefetch_line((const char *) slot.states + bin * bytes);
		}
	}
}

/* ---- the kernels --------------------------------------------------------------- */

/*
 * Adds all rows to shared memory, in passes over the rows, and flushes them to limbs. One block a
 * multiprocessor.
 */
template <int KIND, bool PAIRED>
static __global__ void
__launch_bounds__(fast_sm_threads(KIND), 1)
	accumulate_fast_kernel(const __grid_constant__ HistArgs args,
						   const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ Bounds bounds;
	HotBin<fast_digits(KIND)> none = {NO_BIN, 0, {}};
	BlockRows rows(args.nrows);

	let_successor_start();
	for (int pass = 0; pass < args.passes; pass++)
	{
		u32 bin0 = pass * args.pass_bins;
		u32 n = min(args.pass_bins, (u32) args.bins.nbins - bin0);

		if (pass > 0)
			__syncthreads();
		add_row_range<KIND, fast_sm_threads(KIND), false, PAIRED>(
			args, fast, shared, bin0, n, rows.begin, rows.end, pass == 0 && args.report, none,
			&bounds);
		__syncthreads();
		wait_for_predecessor();
		flush_to_limbs(args, shared, log2_copies(args), n, args.limb, bin0);
	}
}

/*
 * Adds partitioned rows, work item by work item, and combines them with states. A multiprocessor
 * has two blocks, or one with twice the threads if the bins need more than half of its shared
 * memory.
 */
template <int KIND>
static __global__ void
__launch_bounds__(fast_sm_threads(KIND), 1)
	accumulate_fast_partition_kernel(const __grid_constant__ HistArgs args,
									 const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ u32 next, last;
	const int32_t *bins = args.part.bins;
	u32 plane = args.pass_bins;
	u32 nitems;

	wait_for_predecessor();
	let_successor_start();
	nitems = args.part.counter[HIST_NITEMS];

	for (;;)
	{
		__syncthreads();
		if (threadIdx.x == 0)
			next = atomicAdd(&args.part.counter[HIST_NEXT], 1);
		__syncthreads();
		if (next >= nitems)
			return;

		HistItem item = args.part.item[next];
		PartBins own = bins_of_partition(args, item.part);

		if (item.split < 0)
			prefetch_states<KIND>(args, fast, own);

		HotBin<fast_digits(KIND)> hot = {NO_BIN, 0, {}};

		if (fast_digits(KIND) > 0 && item.split >= 0)
			hot.bin = sample_hot_bin(args.part.bin, item);
		add_row_range<KIND, 0, true, false>(args, fast, shared, own.bin0, own.n, item.row0,
											item.row1, false, hot, nullptr);
		if (hot.bin != NO_BIN)
			flush_hot_bin(args, fast, hot,
						  args.limb + (size_t) item.split * args.limbs * args.limb_bins);
		__syncthreads();
		if (item.split < 0)
			flush_fast_to_states<KIND>(args, fast, shared, plane, own.n,
									   [=](u32 b) { return bin_of_group(bins, own.bin0 + b); });
		else
			flush_split_partition(args, shared, own.bin0, own.n, item.split, &last);
	}
}

/* Shared memory that the kernels declare. */
#define STATIC_BYTES 64

/* Launches the kernel of a kind: one for partitioned rows, or one for rows in their order. */
template <int KIND>
static cudaError_t
launch_fast(const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts,
			cudaStream_t stream)
{

	void (*kernel)(HistArgs, FastArgs) = accumulate_fast_partition_kernel<KIND>;
	size_t bytes = (size_t) args.words * (args.pass_bins << args.log2_max_copies) * sizeof(u32);
	/* the system reserves 1 KB for each block */
	int blocks = args.part.item && 2 * (bytes + 1024 + STATIC_BYTES) <= facts.smem_per_sm ? 2 : 1;
	cudaError_t err;

	/* a COUNT alone comes here only if rows are partitioned */
	if constexpr (KIND != FAST_NONE)
		if (!args.part.item)
			kernel = fast.paired ? accumulate_fast_kernel<KIND, true> :
								   accumulate_fast_kernel<KIND, false>;
	err = allow_shared(kernel, facts);
	if (err != cudaSuccess)
		return err;
	return launch_early(kernel, blocks * facts.sms, fast_sm_threads(KIND) / blocks, bytes, facts,
						stream, args, fast);
}

/* Launches the kernel of a FastKind that is known at run time only. */
static cudaError_t
launch_fast_kind(int kind, const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts,
				 cudaStream_t stream)
{
	switch (kind)
	{
#define CASE(k) \
	case k: \
		return launch_fast<k>(args, fast, facts, stream)
		CASE(FAST_FIX3_F64);
		CASE(FAST_CHAIN_F64);
		CASE(FAST_FIX3_F32);
		CASE(FAST_INT_I32);
		CASE(FAST_INT_I64);
		CASE(FAST_MAX_I32);
		CASE(FAST_MAX_64);
#undef CASE
		case FAST_ACCUM_F64:
			return hist_launch_deviations(args, fast, facts, stream);
		default:
			return launch_fast<FAST_NONE>(args, fast, facts, stream);
	}
}

bool
hist_fast_supports(const HistArgs &args)
{
	FastArgs fast = FastArgs();
	int kind;

	return fast_match_shape(args, fast, kind);
}

GpuaggCudaStatus
hist_launch_fast(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream, bool *taken)
{
	FastArgs fast = FastArgs();
	int kind;

	*taken = fast_match_shape(args, fast, kind);
	if (!*taken)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(launch_fast_kind(kind, args, fast, facts, stream));
	return GPUAGG_CUDA_OK;
}
