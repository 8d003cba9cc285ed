/*
 * hist_sums.cu
 *	  A sum of floats in chains (hist.cuh), with a COUNT and a sum of integers, in one pass.
 *
 * Supported are a sum of a float8 column, at most a COUNT and a SUM_I64 of an int32 column, simple
 * bins (hist_bins_are_simple) of one pass, no NULLs and no filters. The loop has no test of a row
 * where all rows of a warp are ordinary: they have a bin, and a value in the window. Then it runs
 * at two thirds of the memory bandwidth.
 */
#include "hist_add.cuh"

/* A call that the kernel supports. Slots are numbers in HistArgs.slot; -1: there is none. */
struct SumsArgs
{
	SimpleBins bins;
	int count;
	int integers;
	int floats;
};

/* Rows of a thread in a tile. */
#define SUMS_ROWS Tuned::SUMS_ROWS_PER_THREAD
#define SUMS_TILE ((u64) SUMS_ROWS * SUMS_THREADS_PER_BLOCK)

/* The columns of a block's rows. */
struct SumsColumns
{
	const int32_t *bins; /* NULL: all rows have bin 0 */
	const double *floats;
	const int32_t *integers;
};

/* A thread's rows of one tile, loaded before the previous tile is added. */
template <bool INTEGERS> struct SumsTile
{
	u32 bin[SUMS_ROWS];
	double x[SUMS_ROWS];
	u32 v[INTEGERS ? SUMS_ROWS : 1];

	__device__ __forceinline__ void
	load_row(const SumsColumns &columns, int j, u64 row)
	{
		bin[j] = columns.bins ? (u32) __ldcs(columns.bins + row) : 0;
		x[j] = __ldcs(columns.floats + row);
		if (INTEGERS)
			v[j] = (u32) __ldcs(columns.integers + row);
	}
	/* Loads the rows from `base` on, up to `end`. Rows past the end get `none`, which is no bin. */
	__device__ __forceinline__ void
	load(const SumsColumns &columns, u64 base, u64 end, u32 none)
	{
		u64 row = base + threadIdx.x;

		if (base + SUMS_TILE <= end)
		{
#pragma unroll
			for (int j = 0; j < SUMS_ROWS; j++)
				load_row(columns, j, row + j * SUMS_THREADS_PER_BLOCK);
			return;
		}
#pragma unroll
		for (int j = 0; j < SUMS_ROWS; j++)
		{
			bin[j] = none;
			if (row + j * SUMS_THREADS_PER_BLOCK < end)
				load_row(columns, j, row + j * SUMS_THREADS_PER_BLOCK);
		}
	}
};

/* Addresses in shared memory: those of the words of this thread's copy of bin 0. */
struct SumsPlace
{
	u32 scale; /* bytes from bin to bin */
	u32 plane; /* bytes from word to word of a bin */
	u32 count, integers, floats;
};

/* Returns the address of the word of slot s that this thread uses for bin 0. */
static __device__ __forceinline__ u32
word_of_slot(const HistArgs &args, int s, const u32 *shared, const SumsPlace &place)
{
	u32 copy = threadIdx.x & (place.scale / (u32) sizeof(u32) - 1);

	return s < 0 ?
		0 :
		shared_address(shared) + args.slot[s].word * place.plane + copy * (u32) sizeof(u32);
}

/*
 * Adds the integers of the items `in` to two's complement sums of two words. at[j]: offset of item
 * j's bin.
 */
template <int ITEMS>
static __device__ __forceinline__ void
add_integer_words(const SumsPlace &place, const u32 (&at)[ITEMS], const u32 (&v)[ITEMS], u32 in)
{
	u32 old[ITEMS], over = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		old[j] = 0;
		if (in >> j & 1)
			old[j] = shared_add(place.integers + at[j], v[j]);
	}
	/* the top bit of `over` is set if some carry, less 1 for a negative item, is not 0 */
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32 s = old[j] + v[j];

		over |= ((old[j] & v[j]) | ((old[j] | v[j]) & ~s)) ^ v[j];
	}
	if ((int) over >= 0)
		return;
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32 carry = (u32) ((int32_t) v[j] >> 31) + ((u32) (old[j] + v[j]) < v[j]);

		if ((in >> j & 1) && carry)
			shared_increase(place.integers + place.plane + at[j], carry);
	}
}

/* Adds the items `in` to the COUNT, if there is one. */
template <int ITEMS>
static __device__ __forceinline__ void
add_counts(const SumsPlace &place, const u32 (&at)[ITEMS], u32 in)
{
	if (place.count)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (in >> j & 1)
				shared_count(place.count + at[j]);
}

/* Adds all rows in shared memory and flushes them to limbs. One block a multiprocessor. */
template <bool INTEGERS>
static __global__ void
__launch_bounds__(SUMS_THREADS_PER_BLOCK, 1)
	accumulate_sums_kernel(const __grid_constant__ HistArgs args,
						   const __grid_constant__ SumsArgs sums)
{
	extern __shared__ __align__(16) u32 shared[];
	constexpr u32 ALL = (1u << SUMS_ROWS) - 1;
	const HistSlot &slot = args.slot[sums.floats];
	SumsColumns columns = {sums.bins.column, (const double *) slot.x.values, nullptr};
	u32 nbins = sums.bins.n, origin = sums.bins.min, outside = 0;
	/* as in hist_fast.cu */
	u32 bias = sums.bins.skip_negative ? 0x80000000u : 0;
	BlockRows rows(args.nrows);
	SumsTile<INTEGERS> next;
	SumsPlace place;
	int lc;

	if (INTEGERS)
		columns.integers = (const int32_t *) args.slot[sums.integers].x.values;
	let_successor_start();
	next.load(columns, rows.begin, rows.end, origin - 1);
	clear_shared(shared, (size_t) args.words * (args.pass_bins << args.log2_max_copies));
	wait_for_predecessor();
	lc = log2_copies(args);
	place.scale = (u32) sizeof(u32) << lc;
	place.plane = args.pass_bins * place.scale;
	place.count = word_of_slot(args, sums.count, shared, place);
	place.integers = word_of_slot(args, sums.integers, shared, place);
	place.floats = word_of_slot(args, sums.floats, shared, place);

	FixWindow<FIX_CHAIN_WORDS> window(args, sums.floats);

	__syncthreads();
#pragma unroll 1
	for (u64 base = rows.begin; base < rows.end; base += SUMS_TILE)
	{
		SumsTile<INTEGERS> tile = next;
		u32 at[SUMS_ROWS], word[SUMS_ROWS], d[SUMS_ROWS][FIX_CHAIN_WORDS], in = 0,
																		   out_of_window = 0;
		double rest[SUMS_ROWS];
		bool ordinary = true, low = false;

		next.load(columns, base + SUMS_TILE, rows.end, origin - 1);
#pragma unroll
		for (int j = 0; j < SUMS_ROWS; j++)
		{
			u32 bin = tile.bin[j] - origin;

			rest[j] = window.cut_upper(tile.x[j], d[j]);
			low = low || rest[j] != 0;
			ordinary = ordinary && bin < nbins && window.is_ordinary(tile.x[j]);
			at[j] = bin * place.scale;
			word[j] = place.floats + at[j];
		}
		if (low)
#pragma unroll
			for (int j = 0; j < SUMS_ROWS; j++)
			{
				rest[j] = window.cut_lowest(rest[j], d[j]);
				ordinary = ordinary && rest[j] == 0;
			}
		if (__all_sync(~0u, ordinary))
		{
			add_counts(place, at, ALL);
			add_to_chains<SUMS_ROWS>(word, place.plane, d, ALL, low);
			if constexpr (INTEGERS)
				add_integer_words(place, at, tile.v, ALL);
			__syncwarp();
			continue;
		}
#pragma unroll
		for (int j = 0; j < SUMS_ROWS; j++)
		{
			u32 bin = tile.bin[j] - origin;

			if (bin < nbins)
				in |= 1u << j;
			else if (bin + bias >= nbins + bias &&
					 base + j * SUMS_THREADS_PER_BLOCK + threadIdx.x < rows.end)
				outside++;
			/* -0 is set here, too */
			if (bin < nbins && !(rest[j] == 0 && window.is_ordinary(tile.x[j])))
				out_of_window |= 1u << j;
		}
		add_counts(place, at, in);
		add_to_chains<SUMS_ROWS>(word, place.plane, d, in & ~out_of_window, low);
		if constexpr (INTEGERS)
			add_integer_words(place, at, tile.v, in);
		if (__any_sync(~0u, out_of_window))
#pragma unroll
			for (int j = 0; j < SUMS_ROWS; j++)
			{
				u64 bits = (u64) __double_as_longlong(tile.x[j]);
				bool has = (out_of_window >> j & 1) && bits != 1ULL << 63;

				change_rows<CHANGE_SUMS>(args, sums.floats, has ? tile.bin[j] - origin : 0, has,
										 bits, 0);
			}
		__syncwarp();
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
	__syncthreads();
	flush_to_limbs(args, shared, lc, nbins, args.limb, 0);
}

/* ---- host -------------------------------------------------------------------------- */

/* Returns whether the kernel supports the call. If so, sets `sums`. */
static bool
match_sums(const HistArgs &args, SumsArgs &sums)
{
	if (args.part.item || args.part.row || args.passes > 1 || !args.report ||
		!hist_bins_are_simple(args.bins))
		return false;
	sums.bins = make_simple_bins(args.bins);
	sums.count = sums.integers = sums.floats = -1;
	for (int s = 0; s < args.nslots; s++)
	{
		const HistSlot &slot = args.slot[s];
		int kind = fast_kind(slot);

		if (is_plain_count(slot) && !slot.in_moments && sums.count < 0)
			sums.count = s;
		else if (kind == FAST_INT_I32 && slot.words == 2 && !slot.spill && sums.integers < 0)
			sums.integers = s;
		else if (kind == FAST_CHAIN_F64 && sums.floats < 0)
			sums.floats = s;
		else
			return false;
	}
	return sums.floats >= 0;
}

bool
hist_sums_support(const HistArgs &args)
{
	SumsArgs sums;

	return match_sums(args, sums);
}

GpuaggCudaStatus
hist_launch_sums(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream, bool *taken)
{
	SumsArgs sums;
	size_t bytes = (size_t) args.words * (args.pass_bins << args.log2_max_copies) * sizeof(u32);
	void (*kernel)(HistArgs, SumsArgs);

	*taken = match_sums(args, sums);
	if (!*taken)
		return GPUAGG_CUDA_OK;
	kernel = sums.integers >= 0 ? accumulate_sums_kernel<true> : accumulate_sums_kernel<false>;
	CUDA_TRY(allow_shared(kernel, facts));
	CUDA_TRY(
		launch_early(kernel, facts.sms, SUMS_THREADS_PER_BLOCK, bytes, facts, stream, args, sums));
	return GPUAGG_CUDA_OK;
}
