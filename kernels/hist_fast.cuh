/*
 * hist_fast.cuh
 *	  Common shapes of calls, and what the kernels for them share: hist_fast.cu, hist_deviations.cu,
 *	  hist_exchange.cu and hist_tiles.cuh.
 *
 * A common shape has simple or paired bins (an int32 column of bins, an int32 key of a range, or
 * two of these; no NULLs, no filter), and at most: a COUNT, one slot of a kind below, and extremes
 * of the same column.
 */
#ifndef GPUAGG_HIST_FAST_CUH
#define GPUAGG_HIST_FAST_CUH

#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* How the kernels accumulate the main slot, which is the one besides the COUNT. */
enum FastKind
{
	FAST_NONE,     /* there is only a COUNT */
	FAST_FIX3_F64, /* FIX by digits of a value and type of the column */
	FAST_FIX3_F32,
	FAST_CHAIN_F64, /* FIX in chains */
	FAST_INT_I32,
	FAST_INT_I64,
	FAST_MAX_I32,
	FAST_MAX_64,    /* 64-bit integers or float8 */
	FAST_ACCUM_F64, /* in hist_deviations.cu; not for partitions */
	FAST_KINDS      /* number of kinds; as a kind: unsupported */
};

/*
 * Returns how many digits a value of a float sum is split into, or FIX_CHAIN_WORDS; 0 for other
 * kinds.
 */
static constexpr __host__ __device__ int
fast_digits(int kind)
{
	return kind == FAST_CHAIN_F64                      ? FIX_CHAIN_WORDS :
		kind == FAST_FIX3_F64 || kind == FAST_FIX3_F32 ? FIX_DIGITS :
														 0;
}

static constexpr __host__ __device__ bool
fast_is_extreme(int kind)
{
	return kind == FAST_MAX_I32 || kind == FAST_MAX_64;
}

/*
 * Returns how many threads of a kind's kernels run on a multiprocessor. Float sums need 128
 * registers a thread, or registers spill to memory. With fewer rows of a thread in a tile, their
 * atomics would not overlap. Partitions divide the threads into two blocks, so that one block
 * flushes while the other reads rows.
 */
static constexpr __host__ __device__ int
fast_sm_threads(int kind)
{
	return fast_digits(kind) ? FAST_FLOAT_SUM_THREADS_PER_SM : FAST_THREADS_PER_SM;
}

/*
 * Returns how many rows of a tile a thread has: as many as registers allow while the next tile is
 * loaded. paired: bins are made of two keys.
 */
static constexpr __host__ __device__ int
fast_tile_items(int kind, bool paired)
{
	return kind == FAST_NONE ?
		Tuned::FAST_COUNT_ROWS_PER_THREAD :
		(kind == FAST_INT_I32 || kind == FAST_MAX_I32 ? Tuned::FAST_INT32_ROWS_PER_THREAD :
														Tuned::FAST_ROWS_PER_THREAD) -
			(paired && fast_digits(kind) == 0);
}

/* The type of the input column of a kind. */
template <int KIND> struct FastInput
{
	typedef int32_t type;
};
template <> struct FastInput<FAST_FIX3_F64>
{
	typedef double type;
};
template <> struct FastInput<FAST_CHAIN_F64>
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

/* Greatest number of slots in FastArgs.joined. */
#define FAST_MORE 2

/* A call of a common shape. Slots are numbers in HistArgs.slot; -1: there is none. */
struct FastArgs
{
	SimpleBins bins; /* bins of rows that are not partitioned */
	int count;       /* the COUNT slot */
	int in_moments;  /* the COUNT slot instead of `count`, if ACCUM's count word has its counts */
	int slot;        /* the main slot */
	int joined[FAST_MORE]; /* further slots: extremes of the main slot's column */
	bool paired;           /* bins are made of two keys; then only bins.n is set */
	PairedKeys keys;
};

/* Where the words of a block's bins are in shared memory. */
struct FastShared
{
	u32 *count;   /* plane of the COUNT slot */
	u32 *words;   /* first plane of the main slot */
	u32 count_at; /* the addresses of these within shared memory */
	u32 words_at;
	u32 word;  /* number of the first plane of the main slot */
	u32 plane; /* words in a plane */
	u32 bin0;  /* first bin */
	u32 nbins; /* number of bins */
	int log2_copies;
	u32 copy;                      /* the copy that this thread adds to */
	const int32_t *bins = nullptr; /* as HistPartitioned.bins */

	/* Returns the bin of the word at index `at` of a plane. */
	__device__ __forceinline__ u32
	bin_at(u32 at) const
	{
		return bin_of_group(bins, bin0 + (at >> log2_copies));
	}
};

/* The rows [begin, end) of a block. All blocks have equal numbers of whole warps of rows. */
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

/* No bin. Rows past the end have another value. */
#define NO_BIN (~1u)

/*
 * Adds 64-bit integers to two's complement sums. at[j]: the place of row j in a plane. `in`: a bit
 * for each row that has a bin here.
 */
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

/*
 * Returns where the words of bins [bin0, bin0 + nbins) are in `shared`, with 1 << lc copies of each
 * bin. counting: fast.count is a slot.
 */
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

/* ---- flush to states ----------------------------------------------------------------- */

/*
 * Combines n bins that the block owns with states, without limbs. bin_of(place) is the number of
 * the bin at a place of a plane.
 */
template <int KIND, typename BinOf>
static __device__ void
flush_fast_to_states(const HistArgs &args, const FastArgs &fast, const u32 *shared, u32 plane,
					 u32 n, const BinOf &bin_of)
{
	if constexpr (KIND == FAST_NONE || fast_digits(KIND) > 0)
	{
		/* states whose loads are in flight together */
		constexpr int ITEMS = 4;

		for (u32 first = threadIdx.x; first < n; first += ITEMS * blockDim.x)
		{
			u32 bin[ITEMS], c[ITEMS];
			int64_t count[ITEMS];
			double old[ITEMS];

#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				u32 b = first + j * blockDim.x;

				c[j] = 0;
				if (b >= n)
					continue;
				bin[j] = bin_of(b);
				if (fast.count >= 0)
				{
					c[j] = shared[(size_t) args.slot[fast.count].word * plane + b];
					count[j] = ((const int64_t *) args.slot[fast.count].states)[bin[j]];
				}
				if (KIND != FAST_NONE)
					old[j] = load_float_sum(args.slot[fast.slot], bin[j]);
			}
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				u32 b = first + j * blockDim.x;

				if (c[j])
					((int64_t *) args.slot[fast.count].states)[bin[j]] = count[j] + c[j];
				if (KIND != FAST_NONE && b < n)
				{
					const u32 *p = shared + (size_t) args.slot[fast.slot].word * plane + b;
					gpuagg_u128 sum = p[0];
					u32 mark = p[0];

					if constexpr (KIND == FAST_CHAIN_F64)
					{
						mark = p[(size_t) 3 * plane];
						sum |= (gpuagg_u128) (((u64) ((int32_t) mark >> 1) << 32) |
											  p[2 * (size_t) plane])
								<< 64 |
							(u64) p[plane] << 32;
					}
					else
#pragma unroll
						for (int w = 1; w <= fast_digits(KIND); w++)
							sum += (gpuagg_u128) (gpuagg_i128) (int32_t) p[(size_t) w * plane]
								<< fix_log2_weight(fast_digits(KIND), w);
					if (mark != 0 || sum != 0)
						fold_float_sum(args, fast.slot, bin[j], (gpuagg_i128) sum, old[j]);
				}
			}
		}
	}
	else
		flush_to_states(args, shared, plane, n, bin_of);
}

/* ---- choice -------------------------------------------------------------------- */

/* Returns the FastKind of a slot, or FAST_KINDS if the kernels do not support it. */
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
				is_chain(slot)           ? FAST_CHAIN_F64 :
										   FAST_FIX3_F64;
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

/* Returns whether a slot counts all rows. */
static inline bool
is_plain_count(const HistSlot &slot)
{
	return slot.form == HIST_COUNT && !slot.filter && !slot.x.validity && !slot.y.validity;
}

/*
 * Returns whether slot s is an extreme of the same column as the main slot `first`, so that one
 * kernel can add both.
 */
static inline bool
can_join_extreme(const HistArgs &args, int first, int s)
{
	const GpuaggColumn &a = args.slot[first].x, &b = args.slot[s].x;

	return fast_is_extreme(fast_kind(args.slot[s])) && a.values == b.values && a.type == b.type &&
		!args.part.item;
}

/*
 * Returns whether a call has a common shape. If so, sets `fast`, and `kind` to the FastKind of the
 * main slot.
 */
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
		/* the main slot is an extreme only if all other slots are */
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
	/*
	 * a COUNT alone has a kernel here for partitioned rows only; hist_narrow.cu has one for simple
	 * bins
	 */
	if ((kind == FAST_NONE && fast.paired) || (kind == FAST_ACCUM_F64 && args.part.item))
		return false;
	if (fast.count >= 0 && args.slot[fast.count].in_moments)
	{
		fast.in_moments = fast.count;
		fast.count = -1;
	}
	return kind != FAST_KINDS;
}

/* Adds all rows of a call of kind FAST_ACCUM_F64 to limbs, and out-of-window rows to states. */
cudaError_t hist_launch_deviations(const HistArgs &args, const FastArgs &fast,
								   const DeviceFacts &facts, cudaStream_t stream);

#endif /* GPUAGG_HIST_FAST_CUH */
