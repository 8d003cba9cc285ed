/*
 * hist_sums.cu
 *	  A sum of floats in chains (hist.cuh), with a COUNT and a sum of integers, in one pass.
 *
 * Supported are a sum of a float8 column, at most a COUNT and a SUM_I64 of an int32 column, simple
 * bins (hist_bins_are_simple) of one pass, no NULLs and no filters. The loop has no test of a row
 * where all rows of a warp are ordinary: they have a bin, and a value in the window. Then it runs at
 * memory bandwidth.
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

/* Rows of a thread in a tile: pairs of neighbours, which it loads together. */
#define SUMS_ROWS Tuned::SUMS_ROWS_PER_THREAD
#define SUMS_TILE ((u64) SUMS_ROWS * SUMS_THREADS_PER_BLOCK)

/* Returns row j of a thread in the tile that begins at `base`. */
static __device__ __forceinline__ u64
row_of_tile(u64 base, int j)
{
	return base + (u64) (j / 2) * (2 * SUMS_THREADS_PER_BLOCK) + 2 * threadIdx.x + j % 2;
}

/* The columns of a block's rows. */
struct SumsColumns
{
	const int32_t *bins; /* NULL: all rows have bin 0 */
	const double *floats;
	const int32_t *integers;

	__device__ __forceinline__ u32
	bin(u64 row) const
	{
		return bins ? (u32) bins[row] : 0;
	}
};

/* A thread's rows of one tile, loaded before the previous tile is added. */
template <bool INTEGERS> struct SumsTile
{
	u32 bin[SUMS_ROWS];
	double x[SUMS_ROWS];
	u32 v[INTEGERS ? SUMS_ROWS : 1];

	/* Loads the rows from `base` on, up to `end`. Rows past the end get `none`, which is no bin. */
	__device__ __forceinline__ void
	load(const SumsColumns &columns, u64 base, u64 end, u32 none)
	{
		if (base + SUMS_TILE <= end)
		{
#pragma unroll
			for (int j = 0; j < SUMS_ROWS; j += 2)
			{
				u64 row = row_of_tile(base, j);
				int2 two = columns.bins ? __ldcs((const int2 *) (columns.bins + row)) : int2();
				double2 x2 = __ldcs((const double2 *) (columns.floats + row));

				bin[j] = (u32) two.x;
				bin[j + 1] = (u32) two.y;
				x[j] = x2.x;
				x[j + 1] = x2.y;
				if constexpr (INTEGERS)
				{
					int2 v2 = __ldcs((const int2 *) (columns.integers + row));

					v[j] = (u32) v2.x;
					v[j + 1] = (u32) v2.y;
				}
			}
			return;
		}
#pragma unroll
		for (int j = 0; j < SUMS_ROWS; j++)
		{
			u64 row = row_of_tile(base, j);

			bin[j] = none;
			if (row < end)
			{
				bin[j] = columns.bin(row);
				x[j] = columns.floats[row];
				if (INTEGERS)
					v[j] = (u32) columns.integers[row];
			}
		}
	}
};

/* Tiles of a round, for which a warp has bits. */
#define SUMS_ROUND 1024

/* The tiles of a round that a warp has left to the general loop: bits in the lanes' registers. */
struct LeftTiles
{
	u32 bits = 0;
	u32 from = 0; /* all tiles from this one on are left, too */

	/* All lanes of the warp must call these with the same number of a tile. */
	__device__ __forceinline__ void
	leave(u32 tile)
	{
		if (threadIdx.x % 32 == tile / 32)
			bits |= 1u << tile % 32;
	}
	/* Returns the first tile from `tile` on, below n, that is left; n if there is none. */
	__device__ __forceinline__ u32
	next(u32 tile, u32 n) const
	{
		while (tile < min(from, n) && !(__shfl_sync(~0u, bits, tile / 32) >> tile % 32 & 1))
			tile++;
		return tile;
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

	return s < 0 ? 0 :
				   shared_address(shared) + args.slot[s].word * place.plane +
			copy * (u32) sizeof(u32);
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
	/* the top bit of `over` is set if the carry of some item, less 1 for a negative one, is not 0 */
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

/*
 * Adds the tiles of a round in which all rows of the warp are ordinary. Leaves the others, and, if
 * they are many, all that follow. rows: those of the round.
 */
template <bool INTEGERS>
static __device__ __forceinline__ LeftTiles
add_ordinary_tiles(const SumsColumns &columns, const SimpleBins &bins, const SumsPlace &place,
				   const FixWindow<FIX_CHAIN_WORDS> &window, u64 begin, u64 end)
{
	constexpr u32 ALL = (1u << SUMS_ROWS) - 1;
	SumsTile<INTEGERS> next;
	LeftTiles left;
	u32 tiles = (u32) ((end - begin + SUMS_TILE - 1) / SUMS_TILE), several = 0;

	next.load(columns, begin, end, bins.min - 1);
#pragma unroll 1
	for (; left.from < tiles; left.from++)
	{
		SumsTile<INTEGERS> tile = next;
		u32 at[SUMS_ROWS], word[SUMS_ROWS], d[SUMS_ROWS][FIX_CHAIN_WORDS];
		double rest[SUMS_ROWS];
		bool ordinary = true, low = false;

		begin += SUMS_TILE;
		next.load(columns, begin, end, bins.min - 1);
#pragma unroll
		for (int j = 0; j < SUMS_ROWS; j++)
		{
			u32 bin = tile.bin[j] - bins.min;

			rest[j] = window.cut_upper(tile.x[j], d[j]);
			low = low || rest[j] != 0;
			ordinary = ordinary && bin < bins.n && window.is_ordinary(tile.x[j]);
			at[j] = bin * place.scale;
			word[j] = place.floats + at[j];
		}
		if (low)
#pragma unroll
			for (int j = 0; j < SUMS_ROWS; j++)
				ordinary = window.cut_lowest(rest[j], d[j]) == 0 && ordinary;
		if (__all_sync(~0u, ordinary))
		{
			add_counts(place, at, ALL);
			add_to_chains<SUMS_ROWS>(word, place.plane, d, ALL, low);
			if constexpr (INTEGERS)
				add_integer_words(place, at, tile.v, ALL);
		}
		else
		{
			left.leave(left.from);
			if (++several > Tuned::SUMS_MIN_LEFT_TILES + left.from / Tuned::SUMS_TILES_PER_LEFT_TILE)
			{
				left.from++;
				break;
			}
		}
		__syncwarp();
	}
	return left;
}

/* Adds the tiles of a round that add_ordinary_tiles() has left. The whole warp must call it. */
template <bool INTEGERS>
static __device__ __noinline__ void
add_left_tiles(const HistArgs &args, const SumsArgs &sums, SumsColumns columns, SumsPlace place,
			   u64 begin, u64 end, LeftTiles left)
{
	FixWindow<FIX_CHAIN_WORDS> window(args, sums.floats);
	u32 nbins = sums.bins.n, origin = sums.bins.min, outside = 0,
		tiles = (u32) ((end - begin + SUMS_TILE - 1) / SUMS_TILE);
	/* as in hist_fast.cu */
	u32 bias = sums.bins.skip_negative ? 0x80000000u : 0;

	for (u32 t = left.next(0, tiles); t < tiles; t = left.next(t + 1, tiles))
	{
		SumsTile<INTEGERS> tile;
		u32 at[SUMS_ROWS], word[SUMS_ROWS], d[SUMS_ROWS][FIX_CHAIN_WORDS], in = 0, fits = 0;

		tile.load(columns, begin + t * SUMS_TILE, end, origin - 1);
#pragma unroll
		for (int j = 0; j < SUMS_ROWS; j++)
		{
			u32 bin = tile.bin[j] - origin;

			at[j] = bin * place.scale;
			word[j] = place.floats + at[j];
			if (bin < nbins)
				in |= 1u << j;
			else if (bin + bias >= nbins + bias &&
					 row_of_tile(begin + t * SUMS_TILE, j) < end)
				outside++;
			if (window.cut(tile.x[j], d[j]) && window.is_ordinary(tile.x[j]))
				fits |= 1u << j;
		}
		add_counts(place, at, in);
		add_to_chains<SUMS_ROWS>(word, place.plane, d, in & fits, true);
		if constexpr (INTEGERS)
			add_integer_words(place, at, tile.v, in);
		__syncwarp();
		if (__any_sync(~0u, in & ~fits))
#pragma unroll
			for (int j = 0; j < SUMS_ROWS; j++)
			{
				u64 bits = (u64) __double_as_longlong(tile.x[j]);
				/* -0 is the identity */
				bool has = (in & ~fits & 1u << j) && bits != 1ULL << 63;

				change_rows<CHANGE_SUMS>(args, sums.floats, has ? tile.bin[j] - origin : 0, has,
										 bits, 0);
			}
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

/* Adds all rows of a call in shared memory and flushes them to limbs. One block a multiprocessor. */
template <bool INTEGERS>
static __global__ void
__launch_bounds__(SUMS_THREADS_PER_BLOCK, 1)
	accumulate_sums_kernel(const __grid_constant__ HistArgs args,
						   const __grid_constant__ SumsArgs sums)
{
	extern __shared__ __align__(16) u32 shared[];
	SumsColumns columns = {sums.bins.column,
						   (const double *) args.slot[sums.floats].x.values, nullptr};
	BlockRows rows(args.nrows);
	SumsPlace place;
	int lc;

	if (INTEGERS)
		columns.integers = (const int32_t *) args.slot[sums.integers].x.values;
	let_successor_start();
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
	for (u64 begin = rows.begin; begin < rows.end; begin += SUMS_ROUND * SUMS_TILE)
	{
		u64 end = min(begin + SUMS_ROUND * SUMS_TILE, rows.end);
		LeftTiles left =
			add_ordinary_tiles<INTEGERS>(columns, sums.bins, place, window, begin, end);

		if (__any_sync(~0u, left.bits))
			add_left_tiles<INTEGERS>(args, sums, columns, place, begin, end, left);
	}
	__syncthreads();
	flush_to_limbs(args, shared, lc, sums.bins.n, args.limb, 0);
}

/* ---- host -------------------------------------------------------------------------- */

/* Returns whether rows can be loaded in pairs from the column. */
static bool
can_load_pairs(const GpuaggColumn &column)
{
	return (uintptr_t) column.values % (2 * hist_type_bytes(column.type)) == 0;
}

/* Returns whether the kernel supports the call. If so, sets `sums`. */
static bool
match_sums(const HistArgs &args, SumsArgs &sums)
{
	if (args.part.item || args.part.row || args.passes > 1 || !args.report ||
		!hist_bins_are_simple(args.bins) || !can_load_pairs(args.bins.column[0]))
		return false;
	sums.bins = make_simple_bins(args.bins);
	sums.count = sums.integers = sums.floats = -1;
	for (int s = 0; s < args.nslots; s++)
	{
		const HistSlot &slot = args.slot[s];
		int kind = fast_kind(slot);

		if (!can_load_pairs(slot.x))
			return false;
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
	CUDA_TRY(launch_early(kernel, facts.sms, SUMS_THREADS_PER_BLOCK, bytes, facts, stream, args,
						  sums));
	return GPUAGG_CUDA_OK;
}
