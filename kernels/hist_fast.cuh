/*
 * hist_fast.cuh
 *	  The common shapes: int32 bins, or two int32 keys of ranges, without NULLs or filter, and one
 * operator, with or without a count.  What hist_fast.cu and hist_exchange.cu share.
 */
#ifndef GPUAGG_HIST_FAST_CUH
#define GPUAGG_HIST_FAST_CUH

#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* What the second slot does; the first is a count, if there is one. */
enum FastKind
{
	FAST_NONE,
	FAST_FIX3_F64, /* by digits of a value */
	FAST_FIX4_F64,
	FAST_FIX3_F32,
	FAST_INT_I32,
	FAST_INT_I64,
	FAST_MAX_I32,
	FAST_MAX_64,    /* 64-bit integers or float8 */
	FAST_ACCUM_F64, /* by hist_deviations.cu; not of partitions */
	FAST_KINDS
};

/* Digits of a float sum, 0 for other kinds. */
static constexpr __host__ __device__ int
fast_digits(int kind)
{
	return kind == FAST_FIX4_F64 ? 4 : kind == FAST_FIX3_F64 || kind == FAST_FIX3_F32 ? 3 : 0;
}

static constexpr __host__ __device__ bool
fast_is_extreme(int kind)
{
	return kind == FAST_MAX_I32 || kind == FAST_MAX_64;
}

/*
 * Threads of a multiprocessor: float sums need 128 registers, or they spill,
 * and with fewer rows at a time their atomics do not overlap.  Partitions run
 * as two blocks, so that one flushes while the other reads.
 */
static constexpr __host__ __device__ int
fast_sm_threads(int kind)
{
	return fast_digits(kind) ? 512 : 1024;
}

/*
 * Rows of a thread in a tile, as registers allow; the next tile is loaded meanwhile.  paired: of
 * two keys.
 */
static constexpr __host__ __device__ int
fast_tile_items(int kind, bool paired)
{
	return kind == FAST_NONE ?
		8 :
		(kind == FAST_INT_I32 || kind == FAST_MAX_I32 ? 6 : 4) - (paired && fast_digits(kind) == 0);
}

template <int KIND> struct FastInput
{
	typedef int32_t type;
};
template <> struct FastInput<FAST_FIX3_F64>
{
	typedef double type;
};
template <> struct FastInput<FAST_FIX4_F64>
{
	typedef double type;
};
template <> struct FastInput<FAST_INT_I64>
{
	typedef u64 type;
};
template <> struct FastInput<FAST_MAX_64>
{
	typedef u64 type;
};
template <> struct FastInput<FAST_FIX3_F32>
{
	typedef float type;
};

#define FAST_MORE 2

struct FastArgs
{
	SimpleBins bins; /* of rows that were not partitioned */
	int count;       /* slot numbers, or -1 */
	int in_moments;  /* instead of count, where ACCUM's word has it */
	int slot;
	int joined[FAST_MORE]; /* extremes of the slot's column */
	bool paired;           /* bins are made of two keys, and `bins` has their number alone */
	PairedKeys keys;
};

/* Where a block adds: planes of its bins in shared memory. */
struct FastShared
{
	u32 *count;
	u32 *words;
	u32 count_at; /* their addresses within shared memory */
	u32 words_at;
	u32 word; /* words begin with this plane */
	u32 plane;
	u32 bin0;
	u32 nbins;
	int log2_copies;
	u32 copy;

	/* The bin of a place in a plane. */
	__device__ __forceinline__ u32
	bin_at(u32 at) const
	{
		return bin0 + (at >> log2_copies);
	}
};

/* A block's rows [begin, end): equal shares, each from a line of memory on. */
struct BlockRows
{
	u64 begin, end;

	__device__ __forceinline__ explicit BlockRows(u32 nrows)
	{
		u64 lines = ((u64) nrows + 31) / 32;

		begin = lines * blockIdx.x / gridDim.x * 32;
		end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, (u64) nrows);
	}
};

/* No bin, and not what rows past the end get. */
#define NO_BIN (~1u)

/* 64-bit integers, by words with carries. */
template <int ITEMS>
static __device__ __forceinline__ void
add_wide_integers(const HistArgs &args, const FastArgs &fast, const FastShared &place,
				  const u32 (&at)[ITEMS], const u64 (&v)[ITEMS], u32 in)
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (in >> j & 1)
		{
			u32 a[2] = {(u32) v[j], (u32) (v[j] >> 32)};

			add_words<2>(place.words + at[j], place.plane, args.slot[fast.slot].words, a,
						 (int64_t) v[j] < 0 ? ~0u : 0, 0);
		}
}

/* Where the block's bins are. */
template <int KIND>
static __device__ __forceinline__ FastShared
make_fast_shared(const HistArgs &args, const FastArgs &fast, bool counting, u32 *shared, int lc,
				 u32 bin0, u32 nbins)
{
	u32 plane = args.pass_bins << lc;
	FastShared place;

	place.count = shared + (counting ? (size_t) args.slot[fast.count].word * plane : 0);
	place.word = KIND != FAST_NONE ? args.slot[fast.slot].word : 0;
	place.words = shared + place.word * plane;
	place.count_at = shared_address(place.count);
	place.words_at = shared_address(place.words);
	place.plane = plane;
	place.bin0 = bin0;
	place.nbins = nbins;
	place.log2_copies = lc;
	place.copy = threadIdx.x & ((1u << lc) - 1);
	return place;
}

/* ---- to states ----------------------------------------------------------------- */

/*
 * A block's own bins into states, without the detour over limbs in memory; bin_of(place) is the
 * number of one.
 */
template <int KIND, typename BinOf>
static __device__ void
flush_fast_to_states(const HistArgs &args, const FastArgs &fast, const u32 *shared, u32 plane,
					 u32 n, const BinOf &bin_of)
{
	if constexpr (KIND == FAST_NONE || fast_digits(KIND) > 0)
	{
		for (u32 b = threadIdx.x; b < n; b += blockDim.x)
		{
			if (fast.count >= 0)
			{
				u32 c = shared[(size_t) args.slot[fast.count].word * plane + b];

				if (c)
					((int64_t *) args.slot[fast.count].states)[bin_of(b)] += c;
			}
			if (KIND != FAST_NONE)
			{
				const u32 *p = shared + (size_t) args.slot[fast.slot].word * plane + b;
				gpuagg_u128 sum = p[0];

#pragma unroll
				for (int w = 1; w <= fast_digits(KIND); w++)
					sum += (gpuagg_u128) (gpuagg_i128) (int32_t) p[(size_t) w * plane]
						<< fix_log2_weight(fast_digits(KIND), w);
				if (p[0] != 0 || sum != 0)
					fold_fix(args, fast.slot, bin_of(b), (gpuagg_i128) sum);
			}
		}
	}
	else
		flush_to_states(args, shared, plane, n, bin_of);
}

/* ---- choice -------------------------------------------------------------------- */

/* Which kernel takes this slot; FAST_KINDS: none. */
static inline int
fast_kind(const HistSlot &slot)
{
	GpuaggValueType t = slot.x.type;

	if (slot.filter || slot.x.validity || slot.y.validity || slot.y.values)
		return FAST_KINDS;
	switch (slot.form)
	{
		case HIST_FIX:
			return t == GPUAGG_VALUE_F32 ? FAST_FIX3_F32 :
				slot.digits == 3         ? FAST_FIX3_F64 :
										   FAST_FIX4_F64;
		case HIST_INT:
			return t == GPUAGG_VALUE_I32 && slot.words <= 2 ? FAST_INT_I32 :
				t == GPUAGG_VALUE_I64                       ? FAST_INT_I64 :
															  FAST_KINDS;
		case HIST_MAX32:
			return t == GPUAGG_VALUE_I32 ? FAST_MAX_I32 : FAST_KINDS;
		case HIST_MAX64:
			return t == GPUAGG_VALUE_I64 || t == GPUAGG_VALUE_F64 ? FAST_MAX_64 : FAST_KINDS;
		case HIST_ACCUM:
			return t == GPUAGG_VALUE_F64 ? FAST_ACCUM_F64 : FAST_KINDS;
		default:
			return FAST_KINDS;
	}
}

static inline bool
is_plain_count(const HistSlot &slot)
{
	return slot.form == HIST_COUNT && !slot.filter && !slot.x.validity && !slot.y.validity;
}

/* Whether slot s may go along with the first: an extreme of the same column. */
static inline bool
can_join_extreme(const HistArgs &args, int first, int s)
{
	const GpuaggColumn &a = args.slot[first].x, &b = args.slot[s].x;

	return fast_is_extreme(fast_kind(args.slot[s])) && a.values == b.values && a.type == b.type &&
		!args.part.item;
}

/* Whether fast kernels take the histogram; fills in how. */
static inline bool
fast_match_shape(const HistArgs &args, FastArgs &fast, int &kind)
{
	int n = 0;

	fast.paired = !args.part.item && hist_bins_are_paired(args.bins);
	if (args.nslots > 2 + FAST_MORE || args.part.row ||
		(!args.part.item && !fast.paired && !hist_bins_are_simple(args.bins)))
		return false;
	fast.count = fast.in_moments = fast.slot = -1;
	for (int k = 0; k < FAST_MORE; k++)
		fast.joined[k] = -1;
	for (int s = 0; s < args.nslots; s++)
	{
		int other = s;

		if (is_plain_count(args.slot[s]) && fast.count < 0)
		{
			fast.count = s;
			continue;
		}
		/* what is no extreme comes first */
		if (fast.slot < 0 ||
			(fast_is_extreme(fast_kind(args.slot[fast.slot])) &&
			 !fast_is_extreme(fast_kind(args.slot[s]))))
		{
			other = fast.slot;
			fast.slot = s;
		}
		if (other >= 0 && (n == FAST_MORE || !can_join_extreme(args, fast.slot, other)))
			return false;
		if (other >= 0)
			fast.joined[n++] = other;
	}
	kind = fast.slot < 0 ? FAST_NONE : fast_kind(args.slot[fast.slot]);
	fast.bins = make_simple_bins(args.bins);
	if (fast.paired)
	{
		fast.bins = {nullptr, 0, false, (u32) args.bins.nbins};
		fast.keys = make_paired_keys(args.bins);
	}
	/* counts alone come to hist_fast.cu partitioned only */
	if ((kind == FAST_NONE && fast.paired) || (kind == FAST_ACCUM_F64 && args.part.item))
		return false;
	if (fast.count >= 0 && args.slot[fast.count].in_moments)
	{
		fast.in_moments = fast.count;
		fast.count = -1;
	}
	return kind != FAST_KINDS;
}

/* FAST_ACCUM_F64 */
cudaError_t hist_launch_deviations(const HistArgs &args, const FastArgs &fast,
								   const DeviceFacts &facts, cudaStream_t stream);

#endif /* GPUAGG_HIST_FAST_CUH */
