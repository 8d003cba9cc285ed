/*
 * hist_fast.cu
 *	  Accumulating kernels for the common shapes: an int32 column of bins, or
 *	  of keys with one range, and one operator, with or without a count, over a
 *	  column without NULLs or filter.
 *
 * Everything else goes through the kernels of hist_kernels.cu.  Same layout of shared
 * memory, same limbs; what differs is that no choice is left to the inner
 * loop, so that it runs at memory bandwidth.
 */
#include "hist_fast.cuh"

/* ---- adding a tile ------------------------------------------------------------- */

/*
 * All rows of a tile take a step before any takes the next, so that their
 * atomics overlap.  `in` has one bit an item, whether it has a bin here; at[]
 * is where in a plane.
 */

/*
 * The hot bin of a partition that had to be split: its rows are summed up in
 * registers, where they do not queue for the same words of memory.
 */
template <int DIGITS> struct HotBin
{
	u32			bin;			/* or NO_BIN */
	u32			rows;
	int64_t		digit[DIGITS + 1];
};

/* The bin that two of three rows have. */
static __device__ __forceinline__ u32
hot_bin(const uint16_t *bin, const HistItem &item)
{
	u32			third = (item.row1 - item.row0) / 3,
				b[3];

	for (int i = 0; i < 3; i++)
		b[i] = bin[item.row0 + i * third];
	return b[0] == b[1] || b[0] == b[2] ? b[0] : b[1] == b[2] ? b[1] : NO_BIN;
}

/* What a warp has of the hot bin, to the limbs of the split partition. */
template <int DIGITS> static __device__ __forceinline__ void
flush_hot(const HistArgs &args, const FastArgs &fast, HotBin<DIGITS> &hot, u64 *limbs)
{
	for (int d = 16; d > 0; d /= 2)
	{
		hot.rows += __shfl_xor_sync(~0u, hot.rows, d);
		for (int k = 0; k < DIGITS; k++)
			hot.digit[k] += __shfl_xor_sync(~0u, hot.digit[k], d);
	}
	if (threadIdx.x % 32 != 0 || hot.rows == 0)
		return;
	if (fast.count >= 0)
		atomicAdd((u32 *) (limbs + (size_t) args.slot[fast.count].limb * args.limb_bins) + hot.bin, hot.rows);
	for (int k = 0; k < DIGITS; k++)
		atomicAdd(limbs + (size_t) (args.slot[fast.slot].limb + k) * args.limb_bins + hot.bin, (u64) hot.digit[k]);
}

/* Carries of the digits that overflowed when d was added to old. */
template <int DIGITS, int ITEMS> static __device__ __forceinline__ void
add_carries(const HistArgs &args, const HistSlot &slot, const FastShared &place, const u32 (&at)[ITEMS],
			const u32 (&d)[ITEMS][DIGITS], const u32 (&old)[ITEMS][DIGITS])
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
		{
			int			carry = (int) d[j][k] < 0 ? -fix_carry(DIGITS, k) : fix_carry(DIGITS, k);
			int			to = k + 1;

			if (!fix_overflows(k, old[j][k], d[j][k], old[j][k] + d[j][k]))
				continue;
			/* the usual case without a call: a middle digit, and its neighbor has room */
			if (k > 0 && to < DIGITS)
			{
				u32			was = atomicAdd(place.words + to * place.plane + at[j], (u32) carry);

				if (!fix_overflows(to, was, (u32) carry, was + carry))
					continue;
				carry = carry < 0 ? -fix_carry(DIGITS, to) : fix_carry(DIGITS, to);
				to++;
			}
			carry_digit(args, slot, place.word * place.plane + at[j], place.plane,
						place.bin_at(at[j]), to, carry);
		}
}

/* Floats that have no digits in the window, straight to their states; -0 is the identity. */
template <int ITEMS, typename T> static __device__ __forceinline__ void
change_floats(const HistArgs &args, const FastArgs &fast, const FastShared &place, const u32 (&at)[ITEMS],
			  const T (&v)[ITEMS], u32 out_of_window)
{
	if (__any_sync(~0u, out_of_window))
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			bits = __double_as_longlong((double) v[j]);

			change_rows<CHANGE_SUMS>(args, fast.slot, place.bin_at(at[j]),
									 (out_of_window >> j & 1) && bits != 1ULL << 63, bits, 0);
		}
}

template <int DIGITS, int ITEMS, bool PARTITIONED, typename T> static __device__ __forceinline__ void
add_fixes(const HistArgs &args, const FastArgs &fast, const FastShared &place, const FixWindow<DIGITS> &window,
		  const u32 (&at)[ITEMS], const T (&v)[ITEMS], u32 in, u32 in_hot, HotBin<DIGITS> &hot)
{
	u32			d[ITEMS][DIGITS],
				old[ITEMS][DIGITS];
	u32			out_of_window = 0;
	bool		same = true;
	auto		cut = [&](int j) {
		bool		fits = window.cut((double) v[j], d[j]);

		/* the identity, -0, is left out there */
		if (((in | in_hot) >> j & 1) && !(fits && (u32) __double2hiint((double) v[j]) != 0x80000000))
			out_of_window |= 1u << j;
	};
	auto		add = [&](int j) {
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
			old[j][k] = 0;
		if (in & ~out_of_window & 1u << j)
		{
#pragma unroll
			for (int k = 0; k < DIGITS; k++)
				old[j][k] = atomicAdd(place.words + k * place.plane + at[j], d[j][k]);
		}
		else if (in_hot & ~out_of_window & 1u << j)
		{
#pragma unroll
			for (int k = 0; k < DIGITS; k++)
				hot.digit[k] += k == 0 ? (int64_t) d[j][k] : (int64_t) (int32_t) d[j][k];
		}
	};

	/* partitions have their hot bin in registers, and are faster row by row */
	if constexpr (PARTITIONED)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			cut(j);
			add(j);
		}
	}
	else
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			cut(j);
			same = same && at[j] == at[0];
		}
		/* rows of one bin, as of sorted or hot keys, are one addition: four digits fit a word with ease */
		if (same && out_of_window == 0 && in == (1u << ITEMS) - 1)
		{
#pragma unroll
			for (int j = 1; j < ITEMS; j++)
#pragma unroll
				for (int k = 0; k < DIGITS; k++)
					d[0][k] += d[j][k];
			in = 1;
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			add(j);
	}
	if (digits_overflow(old, d))
		add_carries<DIGITS, ITEMS>(args, args.slot[fast.slot], place, at, d, old);
	change_floats(args, fast, place, at, v, out_of_window);
	/* lanes that came apart here would stay so for the rest of the loop */
	__syncwarp();
}

/* What leaves the first word of a sum. */
static __device__ __forceinline__ void
add_rest(const HistArgs &args, const HistSlot &slot, const FastShared &place, u32 at, u32 rest)
{
	if (rest && slot.spill)
		add_carry(args.limb + (slot.limb + 1) * (size_t) args.limb_bins, place.bin_at(at),
				  (int) rest < 0, 1);
	else if (rest)
		shared_add(place.words_at + (place.plane + at) * (u32) sizeof(u32), rest);
}

/* Narrow integers: one word, and seldom a carry. */
template <int ITEMS> static __device__ __forceinline__ void
add_integers(const HistArgs &args, const FastArgs &fast, const FastShared &place, const u32 (&at)[ITEMS],
			 const int32_t (&v)[ITEMS], u32 in)
{
	const HistSlot &slot = args.slot[fast.slot];
	u32			w[ITEMS],
				old[ITEMS];
	u32			over = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		w[j] = (u32) v[j];
		old[j] = 0;
		if (in >> j & 1)
			old[j] = shared_add(place.words_at + at[j] * (u32) sizeof(u32), w[j]);
		else
			w[j] = 0;
	}
	/* the carry out of the unsigned sum, less one for a negative addend */
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32			s = old[j] + w[j];

		over |= ((old[j] & w[j]) | ((old[j] | w[j]) & ~s)) ^ w[j];
	}
	if ((int) over < 0)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			carry = (u32) (old[j] + w[j]) < w[j];

			add_rest(args, slot, place, at[j], (u32) ((int32_t) w[j] >> 31) + carry);
		}
	__syncwarp();
}

/* Maxima of codes of 32 or 64 bits; most rows only read.  Shared memory has no native maximum of 64 bits. */
template <typename W, int ITEMS> static __device__ __forceinline__ void
add_maxima(const FastShared &place, const u32 (&at)[ITEMS], const W (&code)[ITEMS], u32 in)
{
	W		   *p = (W *) place.words;
	W			seen[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		seen[j] = ~(W) 0;
		if (in >> j & 1)
			seen[j] = *(volatile W *) (p + at[j]);
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if constexpr (sizeof(W) == sizeof(u32))
		{
			if (seen[j] < code[j])
				atomicMax(p + at[j], code[j]);
		}
		else
			while (seen[j] < code[j])
			{
				W			now = atomicCAS(p + at[j], seen[j], code[j]);

				seen[j] = now == seen[j] ? code[j] : now;
			}
	__syncwarp();
}

/* A thread's rows of one tile, loaded ahead of their turn. */
template <int KIND> struct FastTile
{
	typedef typename FastInput<KIND>::type T;
	static constexpr int ITEMS = tile_items(KIND);
	u32			bin[ITEMS];
	T			v[ITEMS];

	/* Rows past the end get a bin that is none. */
	template <typename B> __device__ __forceinline__ void
	load(const B *bins, const T *values, u64 base, u64 end, int threads, u32 none)
	{
		u64			left = base < end ? end - base : 0;

		base += threadIdx.x;
		bins += base;
		values += base;
		if (left >= (u64) ITEMS * threads)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				bin[j] = (u32) __ldcs(bins + j * threads);
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
					bin[j] = (u32) __ldcs(bins + j * threads);
					if (KIND != FAST_NONE)
						v[j] = __ldcs(values + j * threads);
				}
			}
		}
	}
};

/* Bins as rows have them: those of partitions are relative to the partition. */
template <bool PARTITIONED> static __device__ __forceinline__ auto
bins_of(const HistArgs &args, const FastArgs &fast)
{
	if constexpr (PARTITIONED)
		return args.part.bin;
	else
		return fast.bins.column;
}

/* Adds a tile whose bins are below place.nbins where `in` says so. */
template <int KIND, bool PARTITIONED> static __device__ __forceinline__ void
add_tile(const HistArgs &args, const FastArgs &fast, const FastShared &place,
		 const FixWindow<digits_of(KIND)> &window, const u32 (&at)[tile_items(KIND)], const FastTile<KIND> &tile,
		 u32 in, u32 in_hot, HotBin<digits_of(KIND)> &hot)
{
	constexpr int ITEMS = tile_items(KIND);
	constexpr int DIGITS = digits_of(KIND);

	if constexpr (DIGITS > 0)
		add_fixes<DIGITS, ITEMS, PARTITIONED>(args, fast, place, window, at, tile.v, in, in_hot, hot);
	else if constexpr (KIND == FAST_INT_I32)
		add_integers<ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_INT_I64)
		add_wide_integers<ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_MAX_I32)
	{
		u32			flip = args.slot[fast.slot].op == MONOID_MIN_I32 ? 0x7fffffffu : 0x80000000u,
					code[ITEMS];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			code[j] = (u32) tile.v[j] ^ flip;
		add_maxima(place, at, code, in);
	}
	else if constexpr (KIND == FAST_MAX_64)
	{
		u64			code[ITEMS];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			code[j] = max_code(args.slot[fast.slot].op, tile.v[j]);
		add_maxima(place, at, code, in);
	}
}

/* ---- a block's rows ----------------------------------------------------------- */

/*
 * Rows [begin, end) into the block's bins; clears them first, while the first
 * rows are on their way.  THREADS of the block, or 0 if not known ahead.  Rows
 * of a hot bin are not added, but summed up in `hot`.
 */
template <int KIND, int THREADS, bool PARTITIONED> static __device__ __forceinline__ void
add_range(const HistArgs &args, const FastArgs &fast, u32 *shared, u32 bin0, u32 nbins,
		  u64 begin, u64 end, bool report, HotBin<digits_of(KIND)> &hot)
{
	typedef typename FastInput<KIND>::type T;
	constexpr int ITEMS = tile_items(KIND);
	constexpr int DIGITS = digits_of(KIND);
	const int	threads = THREADS ? THREADS : blockDim.x;
	const u32	step = ITEMS * threads;
	const auto *bins = bins_of<PARTITIONED>(args, fast);
	const T    *values = KIND == FAST_NONE ? nullptr : (const T *) args.slot[fast.slot].x.values;
	bool		counting = KIND == FAST_NONE || fast.count >= 0;
	u32			origin = PARTITIONED ? 0 : fast.bins.min + bin0;
	/* outside: at or above the number of bins, as signed numbers where negative ones are skipped */
	u32			bias = fast.bins.skip_negative ? 0x80000000u : 0;
	u32			most = report ? fast.bins.n - 1 + bias : ~0u;
	u32			outside = 0;
	FastTile<KIND> next;

	next.load(bins, values, begin, end, threads, origin - 1);
	clear_shared(shared, (size_t) args.words * (args.pass_bins << (PARTITIONED ? 0 : args.log2_most)));
	/* windows are needed at once, cleared limbs at the end or for a carry */
	if (!PARTITIONED && (KIND != FAST_MAX_I32 || args.copies))
		wait_for_predecessor();

	FastShared	place = place_of<KIND>(args, fast, counting, shared, PARTITIONED ? 0 : log2_copies(args), bin0, nbins);
	FixWindow<DIGITS> window(args, fast.slot);

	__syncthreads();
	for (u64 base = begin; base < end; base += step)
	{
		FastTile<KIND> tile = next;
		u32			at[ITEMS];
		u32			in = 0,
					in_hot = 0;

		next.load(bins, values, base + step, end, threads, origin - 1);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			b = tile.bin[j] - origin;

			at[j] = (b << place.log2_copies) | place.copy;
			if (PARTITIONED && DIGITS > 0 && b == hot.bin)
				in_hot |= 1u << j;
			else if (b < nbins)
			{
				in |= 1u << j;
				if (counting && DIGITS == 0)
					shared_count(place.count_at + at[j] * (u32) sizeof(u32));
				else if (counting)
					atomicAdd(place.count + at[j], 1u);
			}
			else if (b + bin0 + bias > most && base + j * threads + threadIdx.x < end)
				outside++;
		}
		add_tile<KIND, PARTITIONED>(args, fast, place, window, at, tile, in, in_hot, hot);
		hot.rows += __popc(in_hot);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

/* ---- the kernels --------------------------------------------------------------- */

template <int KIND> static __global__ void __launch_bounds__(sm_threads(KIND), 1)
fast_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	HotBin<digits_of(KIND)> none = {NO_BIN, 0, {}};
	/* equal shares, each from a line of memory on */
	u64			lines = ((u64) args.nrows + 31) / 32;
	u64			begin = lines * blockIdx.x / gridDim.x * 32,
				end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, (u64) args.nrows);

	let_successor_start();
	for (int pass = 0; pass < args.passes; pass++)
	{
		u32			bin0 = pass * args.pass_bins;
		u32			n = min(args.pass_bins, (u32) args.bins.nbins - bin0);

		if (pass > 0)
			__syncthreads();
		add_range<KIND, sm_threads(KIND), false>(args, fast, shared, bin0, n, begin, end, pass == 0 && args.report, none);
		__syncthreads();
		wait_for_predecessor();
		flush_to_limbs(args, shared, log2_copies(args), n, args.limb, bin0);
	}
}

/* Two blocks a multiprocessor, or one of twice the threads where bins take more than half of its memory. */
template <int KIND> static __global__ void __launch_bounds__(sm_threads(KIND), 1)
fast_partition_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ u32 next,
				last;
	u32			plane = args.pass_bins;
	u32			nitems;

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

		HistItem	item = args.part.item[next];
		u32			bin0 = item.part * args.pass_bins;
		u32			n = min(args.pass_bins, (u32) args.bins.nbins - bin0);

		HotBin<digits_of(KIND)> hot = {NO_BIN, 0, {}};

		if (digits_of(KIND) > 0 && item.split >= 0)
			hot.bin = hot_bin(args.part.bin, item);
		add_range<KIND, 0, true>(args, fast, shared, bin0, n, item.row0, item.row1, false, hot);
		if (hot.bin != NO_BIN)
			flush_hot(args, fast, hot, args.limb + (size_t) item.split * args.limbs * args.limb_bins);
		__syncthreads();
		if (item.split < 0)
			flush_fast<KIND>(args, fast, shared, plane, n, [=](u32 b) { return bin0 + b; });
		else
			flush_split(args, shared, bin0, n, item.split, &last);
	}
}

/* Shared memory that kernels declare. */
#define STATIC_BYTES 64

template <int KIND> static cudaError_t
launch_fast(const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts, cudaStream_t stream)
{
	void	  (*kernel) (HistArgs, FastArgs) = fast_partition_kernel<KIND>;
	size_t		bytes = (size_t) args.words * (args.pass_bins << args.log2_most) * sizeof(u32);
	/* the system keeps 1 KB of each block */
	int			blocks = args.part.item && 2 * (bytes + 1024 + STATIC_BYTES) <= facts.smem_per_sm ? 2 : 1;
	cudaError_t err;

	/* counts alone come here partitioned only */
	if constexpr (KIND != FAST_NONE)
		if (!args.part.item)
			kernel = fast_kernel<KIND>;
	err = allow_shared(kernel, facts);
	if (err != cudaSuccess)
		return err;
	return launch_early(kernel, blocks * facts.sms, sm_threads(KIND) / blocks, bytes, facts, stream, args, fast);
}

static cudaError_t
launch_kind(int kind, const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts,
			cudaStream_t stream)
{
	switch (kind)
	{
#define CASE(k) case k: return launch_fast<k>(args, fast, facts, stream)
		CASE(FAST_FIX3_F64);
		CASE(FAST_FIX4_F64);
		CASE(FAST_FIX3_F32);
		CASE(FAST_INT_I32);
		CASE(FAST_INT_I64);
		CASE(FAST_MAX_I32);
		CASE(FAST_MAX_64);
#undef CASE
		default:
			return launch_fast<FAST_NONE>(args, fast, facts, stream);
	}
}

GpuaggCudaStatus
hist_launch_fast(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream, bool *taken)
{
	FastArgs	fast = FastArgs();
	int			kind;

	*taken = fast_shape(args, fast, kind);
	if (!*taken)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(launch_kind(kind, args, fast, facts, stream));
	return GPUAGG_CUDA_OK;
}
