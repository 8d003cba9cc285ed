/*
 * hist_fast.cuh
 *	  Adding tiles of rows of the common shapes: int32 bins without NULLs or filter, and one
 *	  operator, with or without a count.  What hist_fast.cu and hist_exchange.cu share.
 */
#ifndef GPUAGG_HIST_FAST_CUH
#define GPUAGG_HIST_FAST_CUH

#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* What the second slot does; the first is a count, if there is one. */
enum FastKind
{
	FAST_NONE,
	FAST_FIX3_F64,				/* by digits of a value */
	FAST_FIX4_F64,
	FAST_FIX3_F32,
	FAST_INT_I32,
	FAST_INT_I64,
	FAST_UINT,
	FAST_MAX_I32,
	FAST_MAX_64,				/* 64-bit integers or float8 */
	FAST_ARG,
	FAST_KINDS
};

/* Digits of a float sum, 0 for other kinds. */
static constexpr __host__ __device__ int
digits_of(int kind)
{
	return kind == FAST_FIX4_F64 ? 4 : kind == FAST_FIX3_F64 || kind == FAST_FIX3_F32 ? 3 : 0;
}

/*
 * Threads of a multiprocessor: float sums need 128 registers, or they spill,
 * and with fewer rows at a time their atomics do not overlap.  Partitions run
 * as two blocks, so that one flushes while the other reads.
 */
static constexpr __host__ __device__ int
sm_threads(int kind)
{
	return digits_of(kind) ? 512 : 1024;
}

/* Rows of a thread in a tile, as registers allow; the next tile is loaded meanwhile. */
static constexpr __host__ __device__ int
tile_items(int kind)
{
	return kind == FAST_NONE ? 8 : kind == FAST_INT_I32 || kind == FAST_UINT || kind == FAST_MAX_I32 ? 6 : 4;
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

struct FastArgs
{
	const void *bin;			/* int32 */
	bool		narrow;			/* no: uint16 within a partition */
	const u32  *row;			/* ARG after a partition: row numbers */
	int32_t		min;
	bool		skip_negative;	/* INDEX: negative bins are no error */
	int			count;			/* slot numbers, or -1 */
	int			slot;
};

/* Where a block adds: planes of its bins in shared memory. */
struct FastPlace
{
	u32		   *count;
	u32		   *words;
	u32			count_at;		/* their addresses within shared memory */
	u32			words_at;
	u32			word;			/* words begin with this plane */
	u32			plane;
	u32			bin0;
	u32			nbins;
	int			log2_copies;
	u32			copy;

	/* The bin of a place in a plane. */
	__device__ __forceinline__ u32 bin_at(u32 at) const { return bin0 + (at >> log2_copies); }
};

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
#define NO_BIN (~1u)			/* not what rows past the end get */

template <int DIGITS> struct HotBin
{
	u32			bin;			/* or NO_BIN */
	u32			rows;
	int64_t		digit[DIGITS + 1];
};

/* The bin that two of three rows have. */
static __device__ __forceinline__ u32
hot_bin(const FastArgs &fast, const HistItem &item, u32 bin0)
{
	u32			third = (item.row1 - item.row0) / 3,
				b[3];

	for (int i = 0; i < 3; i++)
	{
		u32			row = item.row0 + i * third;

		b[i] = fast.narrow ? ((const uint16_t *) fast.bin)[row] : ((const u32 *) fast.bin)[row] - bin0;
	}
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
template <int DIGITS, int ITEMS, class Place> static __device__ __forceinline__ void
add_carries(const HistArgs &args, const HistSlot &slot, const Place &place, const u32 (&at)[ITEMS],
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

template <int DIGITS, int ITEMS, bool PARTITIONED, typename T, class Place> static __device__ __forceinline__ void
add_fixes(const HistArgs &args, const FastArgs &fast, const Place &place, const double *magic,
		  u32 limit, const u32 (&at)[ITEMS], const T (&v)[ITEMS], u32 in, u32 in_hot, HotBin<DIGITS> &hot)
{
	u32			d[ITEMS][DIGITS],
				old[ITEMS][DIGITS];
	u32			late = 0;
	bool		same = true;
	auto		cut = [&](int j) {
		double		r = (double) v[j];
		u32			hi = (u32) __double2hiint(r);
		bool		fits = (hi & 0x7fffffff) < limit && hi != 0x80000000;

#pragma unroll
		for (int k = DIGITS - 1; k >= 0; k--)
			d[j][k] = fix_digit(r, magic[k]);
		fits = fits && r == 0;
		if (((in | in_hot) >> j & 1) && !fits)
			late |= 1u << j;
	};
	auto		add = [&](int j) {
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
			old[j][k] = 0;
		if (in & ~late & 1u << j)
		{
#pragma unroll
			for (int k = 0; k < DIGITS; k++)
				old[j][k] = atomicAdd(place.words + k * place.plane + at[j], d[j][k]);
		}
		else if (in_hot & ~late & 1u << j)
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
		if (same && late == 0 && in == (1u << ITEMS) - 1)
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
	/* floats that have no digits in the window go straight to their states; -0 is the identity */
	if (__any_sync(~0u, late))
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			bits = __double_as_longlong((double) v[j]);

			change_rows<CHANGE_SUMS>(args, fast.slot, place.bin_at(at[j]),
									 (late >> j & 1) && bits != 1ULL << 63, bits, 0);
		}
	/* lanes that came apart here would stay so for the rest of the loop */
	__syncwarp();
}

/* What leaves the first word of a sum. */
static __device__ __forceinline__ void
add_rest(const HistArgs &args, const HistSlot &slot, const FastPlace &place, u32 at, u32 rest)
{
	if (rest && slot.spill)
		add_carry(args.limb + (slot.limb + 1) * (size_t) args.limb_bins, place.bin_at(at),
				  (int) rest < 0, 1);
	else if (rest)
		shared_add(place.words_at + (place.plane + at) * (u32) sizeof(u32), rest);
}

/*
 * Narrow integers: one word, and seldom a carry.  A saturating sum that was
 * carried out of its word has reached its limit; the top bit keeps that.
 */
template <int KIND, int ITEMS> static __device__ __forceinline__ void
add_integers(const HistArgs &args, const FastArgs &fast, const FastPlace &place, const u32 (&at)[ITEMS],
			 const int32_t (&v)[ITEMS], u32 in)
{
	const HistSlot &slot = args.slot[fast.slot];
	u32			w[ITEMS],
				old[ITEMS];
	u32			over = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		w[j] = KIND == FAST_UINT ? min((u32) v[j], GPUAGG_U24_MAX) : (u32) v[j];
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

		over |= KIND == FAST_UINT ? old[j] & ~s : ((old[j] & w[j]) | ((old[j] | w[j]) & ~s)) ^ w[j];
	}
	if ((int) over < 0)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			carry = (u32) (old[j] + w[j]) < w[j];

			if (KIND == FAST_INT_I32)
				add_rest(args, slot, place, at[j], (u32) ((int32_t) w[j] >> 31) + carry);
			else if (carry)
				shared_or(place.words_at + at[j] * (u32) sizeof(u32), UINT_SATURATED);
		}
	__syncwarp();
}

/* 64-bit integers, by words with carries. */
template <int ITEMS> static __device__ __forceinline__ void
add_wide_integers(const HistArgs &args, const FastArgs &fast, const FastPlace &place, const u32 (&at)[ITEMS],
				  const u64 (&v)[ITEMS], u32 in)
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (in >> j & 1)
		{
			u32			a[2] = {(u32) v[j], (u32) (v[j] >> 32)};

			add_words<2>(place.words + at[j], place.plane, args.slot[fast.slot].words, a,
						 (int64_t) v[j] < 0 ? ~0u : 0, 0);
		}
}

/* 32-bit maxima; most rows only look. */
template <int ITEMS> static __device__ __forceinline__ void
add_maxima(const HistArgs &args, const FastArgs &fast, const FastPlace &place, const u32 (&at)[ITEMS],
		   const int32_t (&v)[ITEMS], u32 in)
{
	u32			flip = args.slot[fast.slot].op == MONOID_MIN_I32 ? 0x7fffffffu : 0x80000000u;
	u32			seen[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		seen[j] = ~0u;
		if (in >> j & 1)
			seen[j] = *(volatile u32 *) (place.words + at[j]);
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (seen[j] < ((u32) v[j] ^ flip))
			atomicMax(place.words + at[j], (u32) v[j] ^ flip);
}

/* The same of 64 bits: codes of values, or of keys above those of row numbers. */
template <int ITEMS> static __device__ __forceinline__ void
add_wide_maxima(const FastPlace &place, const u32 (&at)[ITEMS], const u64 (&code)[ITEMS], u32 in)
{
	u64		   *p = (u64 *) place.words;
	u64			seen[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		seen[j] = ~0ULL;
		if (in >> j & 1)
			seen[j] = *(volatile u64 *) (p + at[j]);
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		while (seen[j] < code[j])
		{
			u64			now = atomicCAS(p + at[j], seen[j], code[j]);

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
	load(const B *bins, const T *values, bool with_values, u64 left, int threads, u32 none)
	{
		if (left >= (u64) ITEMS * threads)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				bin[j] = (u32) __ldcs(bins + j * threads);
				if (with_values)
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
					if (with_values)
						v[j] = __ldcs(values + j * threads);
				}
			}
		}
	}
	__device__ __forceinline__ void
	load(const FastArgs &fast, bool narrow, const T *values, bool with_values, u64 base, u64 end, int threads,
		 u32 none)
	{
		u64			left = base < end ? end - base : 0;

		base += threadIdx.x;
		if (narrow)
			load((const uint16_t *) fast.bin + base, values + base, with_values, left, threads, none);
		else
			load((const int32_t *) fast.bin + base, values + base, with_values, left, threads, none);
	}
	/* Where the bins are the values, too; not while they are on their way.  first: value of bin 0. */
	__device__ __forceinline__ void
	copy_bins(u32 first)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			value = bin[j] + first;

			memcpy(&v[j], &value, 4);
		}
	}
};

/* Adds a tile whose bins are below place.nbins where `in` says so. */
template <int KIND, bool PARTITIONED, class Place> static __device__ __forceinline__ void
add_tile(const HistArgs &args, const FastArgs &fast, const Place &place,
		 const double (&magic)[digits_of(KIND) + 1], u32 limit, const u32 (&at)[tile_items(KIND)],
		 const FastTile<KIND> &tile, u32 in, u32 in_hot, HotBin<digits_of(KIND)> &hot, u64 row)
{
	constexpr int ITEMS = tile_items(KIND);
	constexpr int DIGITS = digits_of(KIND);

	if constexpr (DIGITS > 0)
		add_fixes<DIGITS, ITEMS, PARTITIONED>(args, fast, place, magic, limit, at, tile.v, in, in_hot, hot);
	else if constexpr (KIND == FAST_INT_I32 || KIND == FAST_UINT)
		add_integers<KIND, ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_INT_I64)
		add_wide_integers<ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_MAX_I32)
		add_maxima<ITEMS>(args, fast, place, at, tile.v, in);
	else if constexpr (KIND == FAST_MAX_64 || KIND == FAST_ARG)
	{
		int			op = args.slot[fast.slot].op;
		u32			flip = op == MONOID_ARGMIN ? 0x7fffffffu : 0x80000000u;
		u64			code[ITEMS];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if constexpr (KIND == FAST_MAX_64)
				code[j] = max_code(op, tile.v[j]);
			else
			{
				u32			number = (u32) row + j * blockDim.x;

				if (PARTITIONED && (in >> j & 1))
					number = __ldcs(fast.row + row + j * blockDim.x);
				code[j] = (u64) ((u32) tile.v[j] ^ flip) << 32 | (u32) ~number;
			}
		add_wide_maxima<ITEMS>(place, at, code, in);
	}
}

/* The numbers that cut off digits of a float sum; returns where values are too large for it. */
template <int DIGITS> static __device__ __forceinline__ u32
window_of(const HistArgs &args, const FastArgs &fast, double (&magic)[DIGITS + 1])
{
	int			e0 = args.window[2 * fast.slot];
	u32			limit = fix_limit(e0, args.slot[fast.slot].max_shift);

#pragma unroll
	for (int k = 0; k < DIGITS; k++)
		magic[k] = fix_magic(e0, DIGITS, k);
	return limit;
}

/* Where the block's bins are. */
template <int KIND> static __device__ __forceinline__ FastPlace
place_of(const HistArgs &args, const FastArgs &fast, bool counting, u32 *shared, int lc, u32 bin0, u32 nbins)
{
	u32			plane = args.pass_bins << lc;
	FastPlace	place;

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
template <int KIND, typename BinOf> static __device__ void
flush_fast(const HistArgs &args, const FastArgs &fast, const u32 *shared, u32 plane, u32 n, const BinOf &bin_of)
{
	if constexpr (KIND == FAST_NONE || digits_of(KIND) > 0)
	{
		for (u32 b = threadIdx.x; b < n; b += blockDim.x)
		{
			if (fast.count >= 0)
			{
				u32			c = shared[(size_t) args.slot[fast.count].word * plane + b];

				if (c)
					((int64_t *) args.slot[fast.count].states)[bin_of(b)] += c;
			}
			if (KIND != FAST_NONE)
			{
				const u32  *p = shared + (size_t) args.slot[fast.slot].word * plane + b;
				gpuagg_u128 sum = p[0];

#pragma unroll
				for (int w = 1; w <= digits_of(KIND); w++)
					sum += (gpuagg_u128) (gpuagg_i128) (int32_t) p[(size_t) w * plane] << fix_weight(digits_of(KIND), w);
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
			return t == GPUAGG_VALUE_F32 ? FAST_FIX3_F32 : slot.digits == 3 ? FAST_FIX3_F64 : FAST_FIX4_F64;
		case HIST_INT:
			return t == GPUAGG_VALUE_I32 && slot.words <= 2 ? FAST_INT_I32
				: t == GPUAGG_VALUE_I64 ? FAST_INT_I64 : FAST_KINDS;
		case HIST_UINT:
			return t == GPUAGG_VALUE_I32 ? FAST_UINT : FAST_KINDS;
		case HIST_MAX32:
			return slot.op != MONOID_HLL_MAX && t == GPUAGG_VALUE_I32 ? FAST_MAX_I32 : FAST_KINDS;
		case HIST_MAX64:
			return t == GPUAGG_VALUE_I64 || t == GPUAGG_VALUE_F64 ? FAST_MAX_64 : FAST_KINDS;
		case HIST_ARG:
			return t == GPUAGG_VALUE_I32 ? FAST_ARG : FAST_KINDS;
		default:
			return FAST_KINDS;
	}
}

static inline bool
plain_count(const HistSlot &slot)
{
	return slot.form == HIST_COUNT && !slot.filter && !slot.x.validity && !slot.y.validity;
}

/* Whether fast kernels take the histogram; fills in how. */
static inline bool
fast_shape(const HistArgs &args, FastArgs &fast, int &kind)
{
	const GpuaggBins &b = args.bins;
	bool		index = b.kind == GPUAGG_BIN_INDEX;

	if (args.nslots > 2 || (!args.item && !hist_simple_bins(b)))
		return false;
	fast.count = fast.slot = -1;
	for (int s = 0; s < args.nslots; s++)
	{
		if (plain_count(args.slot[s]) && fast.count < 0)
			fast.count = s;
		else if (fast.slot < 0)
			fast.slot = s;
		else
			return false;
	}
	kind = fast.slot < 0 ? FAST_NONE : fast_kind(args.slot[fast.slot]);
	fast.bin = args.item ? args.part_bin : b.column[0].values;
	fast.narrow = args.item && args.part_narrow;
	fast.min = args.item || index ? 0 : (int32_t) b.min[0];
	fast.skip_negative = index;
	fast.row = args.part_row;
	return kind != FAST_KINDS && (!args.part_row || kind == FAST_ARG);
}

#endif							/* GPUAGG_HIST_FAST_CUH */
