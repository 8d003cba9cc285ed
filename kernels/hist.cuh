/*
 * hist.cuh
 *	  Definitions that all histogram kernels share: slots and the arguments of a call, reading of
 *	  columns, bins of rows, and additions to words in shared memory.
 *
 * An update computes state[bin(row)] = combine(state[bin(row)], lift(value(row))) for all rows and
 * all slots of a call. Terms:
 *
 *	slot	one operator of the call with its input columns and its state array
 *	bin		index of a state; each group of rows has one
 *	word	32 bits in shared memory. A bin has a few words per slot. Words are stored as planes:
 *			one plane holds the same word of all bins.
 *	copies	a block may hold M copies of its bins (sub-histograms), so that lanes with equal bins
 *			add to different words. The copies of a bin are adjacent in a plane.
 *	limb	64 bits in device memory. Blocks flush their words to limbs, which are planes, too.
 *	state	the operator's state in the caller's array in device memory
 *	pass	one pass over the rows. It covers pass_bins bins, as many as shared memory holds.
 *	partition	the rows of a range of pass_bins bins, moved together by hist_partition.cu
 *	window	the range of exponents that a fixed-point sum covers. Its lowest bit is 2^e0.
 *	out-of-window row	a row whose float has no exact place in the window: an infinity, NaN, a
 *			value that is too large, or one with bits below 2^e0
 *
 * The form of a slot says what its words hold. Every form is zero for an empty bin. Forms are
 * changed by native 32-bit atomics only, except for 64-bit maxima and CAS.
 *
 *	COUNT	one word
 *	INT		two's complement sum. A word carries into the next one. The carry out of the last word
 *			is dropped, or, with `spill` (also used by FIX), added to a limb in device memory.
 *	INTSQ	two's complement sum of squares of integers
 *	FIX		sum of doubles as a multiple of 2^e0, in a chain of words or in digits (see below)
 *	ACCUM	COUNT, then the sums of x and of x * x in fixed point, in signed digits of 24 or 28 bits
 *			(hist_moments.cuh). The sums are exact, so nothing cancels. Carries out of the top word
 *			of either sum go to the limb of that word.
 *	REGR	COUNT, then wide sums of x, y, x * x, y * y and x * y. A wide sum is a two's complement
 *			sum in fixed point; a value spans three words.
 *	MAX32, MAX64	codes that compare in the operator's order, complemented for minima
 *	OR64, XOR64	two words. AND is an OR of complements.
 *	CAS		the state itself, XORed with the bits of the identity. It is changed by a 64-bit
 *			compare-and-swap with the result of the operator's combine function.
 *
 * Blocks flush words to limbs with native atomics (add, max, or, xor). These are exact, so the
 * result does not depend on their order. Limbs of CAS are changed by compare-and-swap. Fold kernels
 * turn limbs into states and combine them with the caller's states by the monoid's combine
 * function. Out-of-window rows, and slots without a form (HIST_GENERIC), are combined with states
 * directly.
 */
#ifndef GPUAGG_HIST_CUH
#define GPUAGG_HIST_CUH

#include <cuda_runtime.h>

#include "operators/gpu_hash.h"
#include "common.cuh"
#include "tuning.h"

typedef unsigned long long u64;
typedef uint32_t u32;

enum HistSlotForm
{
	HIST_GENERIC,
	HIST_COUNT,
	HIST_INT,
	HIST_INTSQ,
	HIST_FIX,
	HIST_ACCUM,
	HIST_REGR,
	HIST_MAX32,
	HIST_MAX64,
	HIST_OR64,
	HIST_XOR64,
	HIST_CAS
};

/* How the tile kernels (hist_tiles.cu) accumulate a slot. */
enum HistTile
{
	TILE_NONE, /* unsupported by tiles */
	TILE_COUNT,
	TILE_INT_I32,
	TILE_INT_I64,
	TILE_FIX3,
	TILE_CHAIN,
	TILE_MAX32,
	TILE_MAX64,
	TILE_SQUARES
};

/* One operator of a call, as kernels use it. Pointers are device pointers of the caller. */
struct HistSlot
{
	int op;                /* MonoidId */
	int form;              /* HistSlotForm */
	GpuaggColumn x, y;     /* inputs; y.values is NULL for operators with one input */
	const uint8_t *filter; /* one byte a row, 0 leaves the row out; NULL: no filter */
	void *states;          /* [bin] */
	int number;            /* index among the caller's slots */
	int word;              /* number of the first word plane in shared memory */
	int limb;              /* number of the first limb plane in device memory */
	int nlimbs;            /* limbs of a bin */
	int input_words;       /* words of an INT input (1, 2 or 4) or of an INTSQ square (2 or 4) */
	int words;      /* words of an INT, INTSQ or FIX sum, of a wide sum, or of ACCUM's sum of x */
	int words2;     /* words of a wide sum of products, or of ACCUM's sum of x * x */
	int digits;     /* FIX: digits that a value is split into, or FIX_CHAIN_WORDS */
	int digit_bits; /* ACCUM: bits of a digit, 24 or 28 */
	int tile;       /* HistTile */
	int filter_operand; /* operand of the program that holds the filter, or -1 */
	/* Tiles: x is the column of the previous slot, whose loaded values are used again. */
	int repeats_x;
	int extend; /* the operator's input has 128 bits and the column is narrower: sign-extend it */
	int wide_state; /* the state has 128 bits */
	int spill; /* INT, FIX, ACCUM: limbs in device memory take the carries out of the last word */
	/*
	 * COUNT: the slot has no word of its own. ACCUM's count word counts the rows inside its window;
	 * hist_deviations.cu counts the others.
	 */
	int in_moments;
	int max_shift; /* FIX, wide sums: the lowest bit of a value is at most 2^(e0 + max_shift) */
};

/*
 * Copies of a slot's state array in device memory, for rows that change states directly. Each block
 * changes one copy, and merge_copies_kernel combines them. The slot's own array is the first copy
 * (see state_at).
 */
struct HistCopies
{
	void *states;        /* memory of all copies but the first; NULL: there are no others */
	int *log2;           /* device memory: log2 of the copies in use, the first one included */
	int log2_max_copies; /* log2 of the copies that there is memory for, the first one included */
};

/* A work item of a partitioned call: a range of the rows of one partition. */
struct HistItem
{
	u32 row0, row1; /* rows from row0 up to, not including, row1 */
	u32 part;       /* number of the partition */
	int split;      /* number of the split partition if it has several items, else -1 */
};

/*
 * Rows that hist_partition.cu has moved to partitions by bin range, or group_partition.cu by the
 * hash of their keys. All arrays are in device memory.
 */
struct HistPartitioned
{
	const HistItem *item; /* [work item]; NULL: rows are not partitioned */
	const uint16_t *bin;  /* [row] bin number within the partition */
	/* Rows partitioned by key: */
	const u32 *first;    /* [partition] number of its first group; NULL: bin ranges */
	const u32 *groups;   /* [partition] number of its groups */
	const int32_t *bins; /* [group] its bin; NULL: its number */
	/* [row] number of the row in the caller's columns. NULL: the columns were moved. */
	const u32 *row;
	u32 *counter;           /* [HistCounter] */
	u32 *split_done;        /* [split partition] items that are finished */
	const u32 *split_items; /* [split partition] items that it has */
	/* Not 0: the rows went through an exchange, not to partitions. NULL: there is no exchange. */
	const u32 *exchanged;
};

/* The arguments of histogram kernels, passed by value. */
struct HistArgs
{
	/* the call */
	GpuaggBins bins;
	HistSlot slot[GPUAGG_MAX_SLOTS];
	int nslots;
	u32 nrows;
	GpuaggHistStatus *status; /* in device memory */
	bool report;              /* count rows out of range in status->outside */
	/* the layout of bins, and passes over the rows */
	int words;           /* word planes of all slots */
	int limbs;           /* limb planes of all slots */
	int log2_copies;     /* log2 of M if `copies` is NULL */
	int log2_max_copies; /* log2 of the most copies that shared memory has room for */
	/*
	 * log2 of M in device memory, which the preparation derives from the sampled race factor. NULL:
	 * log2_copies holds.
	 */
	int *copies;
	int64_t spread; /* words or states to spread the bins in use over (hist_model_copies) */
	int passes;
	u32 pass_bins; /* bins of a pass or a partition; even where they are in shared memory */
	/* memory of the device */
	u32 limb_bins; /* bins in a limb plane */
	u64 *limb;     /* limb planes; partitioned: one set for each split partition; NULL: none */
	int *window;   /* [2 * slot] e0 of x, [2 * slot + 1] e0 of y */
	u32 *zero;     /* words that the preparation clears */
	u32 zeros;     /* number of these words */
	/* rows that change states directly */
	HistCopies extra[GPUAGG_MAX_SLOTS]; /* copies of the states of each slot */
	u32 *lock;  /* [HIST_LOCKS] 0 is free; a hash of the bin selects the lock */
	bool locks; /* some rows may take locks */
	/* Threads that may change copies concurrently for out-of-window rows. 0: none do. */
	int64_t out_of_window_threads;
	u32 *out_of_window; /* hist_deviations.cu: one bit a row, set for out-of-window rows */
	int hot_entries;    /* hot entries of a warp, a power of two or 0; see hist_change.cuh */
	/* hist_tiles.cu */
	const GpuaggProgram *program; /* in device memory */
	int tiles;                    /* TileKernel */
	int temporaries;              /* these three as in GpuaggHist */
	int input_bytes;
	u32 input_row;
	/* partitioned calls */
	HistPartitioned part;
};

/* The bins of a partition. */
struct PartBins
{
	u32 bin0; /* the first bin, or, if rows are partitioned by key, the number of the first group */
	u32 n;
};

/* Returns the bins of partition p. */
static __device__ __forceinline__ PartBins
bins_of_partition(const HistArgs &args, u32 p)
{
	u32 bin0 = p * args.pass_bins;

	if (args.part.first)
		return {args.part.first[p], args.part.groups[p]};
	return {bin0, min(args.pass_bins, (u32) args.bins.nbins - bin0)};
}

/*
 * Returns the bin of a group: of bin0 plus the number within the partition. bins: HistPartitioned.
 */
static __device__ __forceinline__ u32
bin_of_group(const int32_t *bins, u32 group)
{
	return bins ? (u32) bins[group] : group;
}

/* Counters of a partitioned call in device memory. */
enum HistCounter
{
	HIST_NITEMS,  /* work items */
	HIST_NSPLITS, /* partitions that are split into several items */
	HIST_NROWS,   /* rows that have a bin, in all partitions */
	HIST_NEXT,    /* next work item that no block has taken */
	HIST_NCOUNTERS
};

#define HIST_LOCKS (1 << HIST_LOG2_LOCKS)

/* Returns whether states of the operator are pairs of a key and a value; see hist_argmax.cu. */
static constexpr __host__ __device__ bool
is_argmax(int op)
{
	return op == MONOID_ARGMAX || op == MONOID_ARGMIN;
}

static constexpr __host__ __device__ bool
hist_is_float(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_F32 || type == GPUAGG_VALUE_F64;
}

/* Calls body(Op()) with the type of the operator. */
#pragma nv_exec_check_disable
template <typename Body>
static __host__ __device__ __forceinline__ void
with_operator(int op, const Body &body)
{
	switch (op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	case MONOID_##NAME: \
		body(Op_##name()); \
		break;
#include "operators/monoid_list.h"
#undef MONOID
	}
}

/* Returns log2 of M. The preparation must have ended. */
static __device__ __forceinline__ int
log2_copies(const HistArgs &args)
{
	return args.copies ? __ldcg(args.copies) : args.log2_copies;
}

/* ---- reading columns ------------------------------------------------------------ */

static __host__ __device__ __forceinline__ int
hist_type_bytes(GpuaggValueType type)
{
	switch (type)
	{
		case GPUAGG_VALUE_I8:
			return 1;
		case GPUAGG_VALUE_I16:
			return 2;
		case GPUAGG_VALUE_I32:
		case GPUAGG_VALUE_F32:
			return 4;
		case GPUAGG_VALUE_I64:
		case GPUAGG_VALUE_F64:
			return 8;
		default:
			return 16;
	}
}

static __device__ __forceinline__ bool
is_bit_set(const uint8_t *bits, u32 row)
{
	return (bits[row >> 3] >> (row & 7)) & 1;
}

/* Returns the inclusive prefix sum of v over the warp. */
static __device__ __forceinline__ u32
warp_scan(u32 v)
{
	u32 lane = threadIdx.x % 32;

#pragma unroll
	for (int d = 1; d < 32; d *= 2)
	{
		u32 t = __shfl_up_sync(~0u, v, d);

		if (lane >= (u32) d)
			v += t;
	}
	return v;
}

/*
 * Loads the values of ITEMS rows into 64-bit words. Integers are sign-extended, float4 is converted
 * to the bits of a double. `hi` gets the second word of 16-byte values. Rows whose bit in `ok` is 0
 * are not read.
 */
template <int ITEMS>
static __device__ __forceinline__ void
load_items(const GpuaggColumn &c, const u32 (&row)[ITEMS], u32 ok, u64 (&lo)[ITEMS],
		   u64 (&hi)[ITEMS])
{
#define EACH(expr) \
	_Pragma("unroll") for (int j = 0; j < ITEMS; j++) lo[j] = (ok >> j & 1) ? (u64) (expr) : 0; \
	break
	switch (c.type)
	{
		case GPUAGG_VALUE_I8:
			EACH((int64_t) ((const int8_t *) c.values)[row[j]]);
		case GPUAGG_VALUE_I16:
			EACH((int64_t) ((const int16_t *) c.values)[row[j]]);
		case GPUAGG_VALUE_I32:
			EACH((int64_t) ((const int32_t *) c.values)[row[j]]);
		case GPUAGG_VALUE_I64:
		case GPUAGG_VALUE_F64:
			EACH(((const u64 *) c.values)[row[j]]);
		case GPUAGG_VALUE_F32:
			EACH(__double_as_longlong((double) ((const float *) c.values)[row[j]]));
		default:
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (ok >> j & 1)
				{
					const u64 *p = (const u64 *) c.values + 2 * (size_t) row[j];

					lo[j] = p[0];
					hi[j] = p[1];
				}
	}
#undef EACH
}

/* ---- bins --------------------------------------------------------------- */

/*
 * Sets bin[j] for each row[j] whose bit j is set in `ok`. Returns `ok` without the rows that have
 * no bin: rows that the filter rejects, rows with a NULL key (unless NULL has a bin), with a
 * negative index, or with a key out of range. Rows with a key out of range are also counted in
 * status->outside, unless status is NULL.
 */
template <int ITEMS>
static __device__ __forceinline__ u32
find_bins(const GpuaggBins &b, const u32 (&row)[ITEMS], u32 ok, int32_t (&bin)[ITEMS],
		  GpuaggHistStatus *status)
{
	u32 outside = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		bin[j] = 0;
		if (b.filter && (ok >> j & 1) && !b.filter[row[j]])
			ok &= ~(1u << j);
	}
	if (b.kind == GPUAGG_BIN_INDEX)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			bin[j] = !(ok >> j & 1) ? -1 :
				b.column[0].values  ? ((const int32_t *) b.column[0].values)[row[j]] :
									  0;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			if ((ok >> j & 1) && bin[j] >= b.nbins)
				outside |= 1u << j;
			if (bin[j] < 0)
				ok &= ~(1u << j);
		}
	}
	else
	{
		for (int c = 0; c < b.ncolumns; c++)
		{
			u64 v[ITEMS], unused[ITEMS];
			const GpuaggColumn &col = b.column[c];
			u64 values = b.extent[c] - (b.null_bin[c] != 0);

			load_items<ITEMS>(col, row, ok, v, unused);
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				u64 k = v[j] - (u64) b.min[c];

				if (!(ok >> j & 1))
					continue;
				if (col.validity && !is_bit_set(col.validity, row[j]))
				{
					if (!b.null_bin[c])
						ok &= ~(1u << j);
					k = values;
				}
				else if (k >= values)
				{
					outside |= 1u << j;
					k = 0;
				}
				bin[j] = (int32_t) (bin[j] * b.extent[c] + (int64_t) k);
			}
		}
	}
	outside &= ok;
	if (outside && status)
		atomicAdd(&status->outside, (u64) __popc(outside));
	return ok & ~outside;
}

/* ---- adding to shared memory --------------------------------------------- */

/*
 * Returns the address of p within shared memory, for the atomics below. Through generic pointers,
 * the compiler computes the base of the shared memory window again for every row. That takes
 * several times as many instructions as the addition.
 */
static __device__ __forceinline__ u32
shared_address(const void *p)
{
	return (u32) __cvta_generic_to_shared(p);
}

/* Adds 1 to a word of shared memory. at: its shared_address(). */
static __device__ __forceinline__ void
shared_count(u32 at)
{
	asm volatile("red.shared.add.u32 [%0], 1;" : : "r"(at) : "memory");
}

/* Adds v to a word of shared memory. at: its shared_address(). */
static __device__ __forceinline__ void
shared_increase(u32 at, u32 v)
{
	asm volatile("red.shared.add.u32 [%0], %1;" : : "r"(at), "r"(v) : "memory");
}

/* Sets bits of a word of shared memory. at: its shared_address(). */
static __device__ __forceinline__ void
shared_or(u32 at, u32 bits)
{
	asm volatile("red.shared.or.b32 [%0], %1;" : : "r"(at), "r"(bits) : "memory");
}

/* Adds v to a word of shared memory and returns its old value. at: its shared_address(). */
static __device__ __forceinline__ u32
shared_add(u32 at, u32 v)
{
	u32 old;

	asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(v) : "memory");
	return old;
}

/*
 * Adds a[] * 2^(32 * w0) to a two's complement number in shared memory. The number has `words`
 * words at p, p + plane, p + 2 * plane and so on. a[] has CNT words, the lowest first; `fill` (0 or
 * ~0) is its sign extension. Returns the carry out of the last word: -1, 0 or 1. CHECK must be true
 * if w0 + CNT may exceed `words`.
 */
template <int CNT, bool CHECK = true>
static __device__ __forceinline__ int
add_words(u32 *p, u32 plane, int words, const u32 (&a)[CNT], u32 fill, int w0)
{
	u32 carry = 0;
	int w = w0;

	p += (size_t) w0 * plane;
#pragma unroll
	for (int i = 0; i < CNT; i++)
	{
		u32 s = a[i] + carry;
		u32 c = s < carry;

		if (CHECK && w == words)
			return (int) (fill + carry);
		if (s)
		{
			u32 old = atomicAdd(p, s);

			c += (u32) (old + s) < s;
		}
		carry = c;
		p += plane;
		w++;
	}
	while (w < words)
	{
		u32 s = fill + carry;
		u32 old;

		if (s == 0)
			return 0;
		old = atomicAdd(p, s);
		carry = (s < carry) + ((u32) (old + s) < s);
		p += plane;
		w++;
	}
	return (int) (fill + carry);
}

/* A double as a fixed-point number: (negative ? -m : m) * 2^(e0 + shift). */
struct FixValue
{
	u64 m; /* at most 53 bits; 0 for zero */
	int shift;
	bool negative;
};

/*
 * Converts a double, given by its bits, to the fixed-point value f. Returns false, with f
 * undefined, if the value cannot be stored exactly in the window (an out-of-window row).
 */
static __device__ __forceinline__ bool
fix_from_double(u64 bits, int e0, int max_shift, FixValue &f)
{
	int e = (int) (bits >> 52) & 0x7ff;

	f.m = (bits & 0xfffffffffffffULL) | (u64) (e != 0) << 52;
	f.negative = bits >> 63;
	f.shift = max(e, 1) - (1075 + e0);
	if ((u32) f.shift <= (u32) max_shift)
		return e != 0x7ff;
	/* rare cases: zeros, and values below the window whose bits below 2^e0 are all 0 */
	if (f.m != 0 &&
		(e == 0x7ff || f.shift > 0 || f.shift < -52 || (f.m & ((1ULL << -f.shift) - 1))))
		return false;
	f.m = f.m ? f.m >> -f.shift : 0;
	f.shift = 0;
	return true;
}

/* Negates a two's complement number of CNT words, the lowest word first. */
template <int CNT>
static __device__ __forceinline__ void
negate_words(u32 (&a)[CNT])
{
	u32 c = 1;

#pragma unroll
	for (int i = 0; i < CNT; i++)
	{
		a[i] = ~a[i] + c;
		c = c && a[i] == 0;
	}
}

/* Adds f to a wide sum in shared memory, whose `words` words are at p, p + plane and so on. */
static __device__ __forceinline__ void
add_fix(u32 *p, u32 plane, int words, const FixValue &f)
{
	int s = f.shift & 31;
	u64 lo = f.m << s;
	u32 a[3] = {(u32) lo, (u32) (lo >> 32), (u32) ((f.m >> 1) >> (63 - s))};

	if (f.m == 0)
		return;
	if (f.negative)
		negate_words(a);
	/* the window has room for all three words */
	add_words<3, false>(p, plane, words, a, f.negative ? ~0u : 0, f.shift >> 5);
}

/* Adds the product f * g to a wide sum in shared memory, like add_fix(). */
static __device__ __forceinline__ void
add_product(u32 *p, u32 plane, int words, const FixValue &f, const FixValue &g)
{
	int shift = f.shift + g.shift;
	int s = shift & 31;
	u64 lo = f.m * g.m, hi = __umul64hi(f.m, g.m);
	bool negative = f.negative != g.negative;
	u64 mid = (hi << s) | ((lo >> 1) >> (63 - s));
	u32 a[5] = {(u32) (lo << s), (u32) ((lo << s) >> 32), (u32) mid, (u32) (mid >> 32),
				(u32) ((hi >> 1) >> (63 - s))};

	if (f.m == 0 || g.m == 0)
		return;
	if (negative)
		negate_words(a);
	add_words<5>(p, plane, words, a, negative ? ~0u : 0, shift >> 5);
}

/*
 * FIX: sums of doubles in fixed point, in words of shared memory that native atomics change. There
 * are two layouts.
 *
 * A chain is a two's complement number of FIX_CHAIN_WORDS words. A value is added word by word: the
 * carry out of a word is known from the old value that the atomic returns, and goes into what is
 * added to the next word. The window is placed so that the lowest word of most values is 0, and the
 * top word only counts carries; zeros are not added. So most rows change two words. The top word
 * has its number times 2, and in its lowest bit a mark: the bin has rows other than -0, though
 * their sum may be 0. The row that made word 1 zero sets it.
 *
 * Digits need less shared memory. A value is split into 3 signed digits, and each is added to a
 * word of its own, independently of the others. A word overflows after 32 additions at the
 * earliest. The thread whose addition overflows adds the carry to the next word. The lowest digit
 * has a bias that makes it positive, so its word is not zero once a row was added to the bin,
 * unless it overflowed. It has fewer bits, so that its word overflows rarely. One word above the
 * digits takes the last carries.
 *
 * To cut a digit or word off a value, a large constant is added to the value: the last bit of that
 * sum has the weight of the digit's unit, and the low 32 bits of its bit pattern are the digit. No
 * exponents are compared.
 */
#define FIX_LOW_BITS 20   /* bits of the lowest digit */
#define FIX_DIGIT_BITS 27 /* bits of the others */
#define FIX_DIGITS 3
#define FIX_CHAIN_WORDS 4
/*
 * A value of a chain is below 2^(53 + FIX_CHAIN_MAX_SHIFT), and the greatest value of the sample
 * below 2^(50 + FIX_CHAIN_MAX_SHIFT). If that is less than 2^95, words 1 and 2 hold all bits of
 * values that are not much smaller than the greatest one.
 */
#define FIX_CHAIN_MAX_SHIFT 44

/* Returns whether a slot's float sums are chains. */
static __host__ __device__ __forceinline__ bool
is_chain(const HistSlot &slot)
{
	return slot.form == HIST_FIX && slot.digits == FIX_CHAIN_WORDS;
}

/*
 * Returns log2 of the weight of word number `word` of a FIX sum, in units of 2^e0. digits: 3, or
 * FIX_CHAIN_WORDS.
 */
static __host__ __device__ __forceinline__ int
fix_log2_weight(int digits, int word)
{
	return digits == FIX_CHAIN_WORDS ? 32 * word :
		word == 0                    ? 0 :
									   FIX_LOW_BITS + FIX_DIGIT_BITS * (word - 1);
}

/* Returns what is added to word number `word` + 1 of digits for a carry out of word `word`. */
static __device__ __forceinline__ int
fix_carry_value(int word)
{
	return 1 << (32 - (word == 0 ? FIX_LOW_BITS : FIX_DIGIT_BITS));
}

/*
 * Returns the constant by which fix_cut_digit() cuts off a digit or word: 1.5 * 2^52 of its units.
 * The constant of the lowest digit also adds the bias, and that of the second digit subtracts it
 * again.
 */
static __device__ __forceinline__ double
fix_magic(int e0, int digits, int digit)
{
	u64 bits = (u64) (1075 + e0 + fix_log2_weight(digits, digit)) << 52 | 1ULL << 51;

	if (digits == FIX_CHAIN_WORDS)
		return __longlong_as_double(bits);
	if (digit == 0)
		bits += 1 << FIX_LOW_BITS;
	else if (digit == 1)
		bits--;
	return __longlong_as_double(bits);
}

/*
 * Returns the limit for the high 32 bits of an absolute value. A value whose high bits are not
 * below it is too large for the window. Below the limit, the top digit has at most 27 bits.
 */
static __device__ __forceinline__ u32
fix_high_word_limit(int e0, int max_shift)
{
	return (u32) (1023 + 53 + e0 + max_shift) << 20;
}

/* Cuts off a digit of r and returns it; r keeps the rest. */
static __device__ __forceinline__ u32
fix_cut_digit(double &r, double magic)
{
	double t = r + magic;

	r -= t - magic;
	return (u32) __double2loint(t);
}

/* Like fix_cut_digit(), but returns all bits of the digit, which may be -2^31 or 2^31. */
static __device__ __forceinline__ int64_t
fix_cut_word(double &r, double magic)
{
	double t = r + magic;

	r -= t - magic;
	return __double_as_longlong(t) - __double_as_longlong(magic);
}

/* The window of a FIX slot, in the form in which values are split into digits or words. */
template <int DIGITS> struct FixWindow
{
	double magic[FIX_DIGITS]; /* fix_magic of each digit, or of words 0 to 2 */
	u32 limit;                /* fix_high_word_limit */

	__device__ __forceinline__
	FixWindow(const HistArgs &args, int s)
		: FixWindow(DIGITS > 0 ? args.window[2 * s] : 0, DIGITS > 0 ? args.slot[s].max_shift : 0)
	{
	}
	__device__ __forceinline__
	FixWindow(int e0, int max_shift)
	{
		limit = 0;
		if constexpr (DIGITS > 0)
		{
			limit = fix_high_word_limit(e0, max_shift);
#pragma unroll
			for (int k = 0; k < FIX_DIGITS; k++)
				magic[k] = fix_magic(e0, DIGITS, k);
		}
	}
	/*
	 * Splits v into digits, or words of a chain, d[0] (the lowest) to d[DIGITS - 1]. Returns false
	 * if v is out of the window; they are then undefined.
	 */
	template <int ROOM>
	__device__ __forceinline__ bool
	cut(double v, u32 (&d)[ROOM]) const
	{
		double r = v;

		if constexpr (DIGITS == FIX_CHAIN_WORDS)
		{
			r = cut_upper(v, d);
			r = cut_lowest(r, d);
		}
		else
#pragma unroll
			for (int k = DIGITS - 1; k >= 0; k--)
				d[k] = fix_cut_digit(r, magic[k]);
		return ((u32) __double2hiint(v) & 0x7fffffff) < limit && r == 0;
	}
	/* Cuts all words of a chain but the lowest off v, and returns the rest. Sets d[0] to 0. */
	__device__ __forceinline__ double
	cut_upper(double v, u32 (&d)[FIX_CHAIN_WORDS]) const
	{
		double r = v;
		int64_t top = fix_cut_word(r, magic[2]), middle = fix_cut_word(r, magic[1]);

		top += middle >> 32;
		d[0] = 0;
		d[1] = (u32) middle;
		d[2] = (u32) top;
		d[3] = (u32) (top >> 32);
		return r;
	}
	/*
	 * Cuts the lowest word off r, what cut_upper() returned. Returns the rest, which is 0 unless
	 * the value is out of the window.
	 */
	__device__ __forceinline__ double
	cut_lowest(double r, u32 (&d)[FIX_CHAIN_WORDS]) const
	{
		int64_t low = fix_cut_word(r, magic[0]);
		u64 upper = ((u64) d[2] << 32 | d[1]) + (u64) (low >> 32);

		/* low >> 32 is 0 or -1 */
		d[3] -= low < 0 && upper == ~0ULL;
		d[0] = (u32) low;
		d[1] = (u32) upper;
		d[2] = (u32) (upper >> 32);
		return r;
	}
	/* Returns whether v is in the window if it can be cut without a rest, and is not -0. */
	__device__ __forceinline__ bool
	is_ordinary(double v) const
	{
		return fabs(v) < __hiloint2double((int) limit, 0) && (u32) __double2hiint(v) != 0x80000000;
	}
};

/*
 * Returns whether the addition s = old + d overflowed a word of digits. Word 0 is unsigned, the
 * others are signed.
 */
static __device__ __forceinline__ bool
fix_overflows(int word, u32 old, u32 d, u32 s)
{
	return word == 0 ? s < d : (int) ((old ^ s) & (d ^ s)) < 0;
}

/* Returns whether any addition of a digit d to a word that held `old` overflowed. */
template <int DIGITS, int ITEMS, int ROOM>
static __device__ __forceinline__ bool
any_digit_overflows(const u32 (&old)[ITEMS][DIGITS], const u32 (&d)[ITEMS][ROOM])
{
	u32 over = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		over |= old[j][0] & ~(old[j][0] + d[j][0]);
#pragma unroll
		for (int k = 1; k < DIGITS; k++)
		{
			u32 s = old[j][k] + d[j][k];

			over |= (old[j][k] ^ s) & (d[j][k] ^ s);
		}
	}
	return (int) over < 0;
}

/* Sets *p to the maximum of *p and v. Most rows do not raise *p, so it is read first. */
static __device__ __forceinline__ void
max_u32(u32 *p, u32 v)
{
	if (*(volatile u32 *) p < v)
		atomicMax(p, v);
}

/*
 * Sets *p to the maximum of *p and v. Few rows raise a maximum, so the compare-and-swap loop rarely
 * runs.
 */
static __device__ __forceinline__ void
max_u64(u64 *p, u64 v)
{
	u64 old = *(volatile u64 *) p;

	while (old < v)
	{
		u64 seen = atomicCAS(p, old, v);

		if (seen == old)
			break;
		old = seen;
	}
}

/* ---- codes that compare like values ----------------------------------------- */

/*
 * Returns a code of a double that compares as an unsigned integer in SQL's order: all NaNs have one
 * code, the greatest. 0 and -0 have different codes.
 */
static __device__ __forceinline__ u64
f64_order_code(u64 bits)
{
	if ((bits & ~(1ULL << 63)) > 0x7ff0000000000000ULL)
		bits = 0x7ff8000000000000ULL;
	return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

/* Returns the bits of the double whose f64_order_code() is `code`. */
static __device__ __forceinline__ u64
f64_of_order_code(u64 code)
{
	return code >> 63 ? code & ~(1ULL << 63) : ~code;
}

/* Like f64_order_code(), in 32 bits for a float4. v: the bits of its value as a double. */
static __device__ __forceinline__ u32
f32_order_code(u64 v)
{
	u32 bits = __float_as_uint((float) __longlong_as_double(v));

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		bits = 0x7fc00000u;
	return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Returns the float whose f32_order_code() is `code`. */
static __device__ __forceinline__ float
f32_of_order_code(u32 code)
{
	return __uint_as_float(code >> 31 ? code & 0x7fffffffu : ~code);
}

/*
 * Returns the code of an input of a minimum or maximum: the greater the code, the better the value.
 * Code 0 stands for an empty bin. The code of the identity is 0 or more.
 */
static __device__ __forceinline__ u64
max_code(int op, u64 v)
{
	switch (op)
	{
		case MONOID_MIN_I64:
		case MONOID_MIN_DEC:
			return ~(v ^ 1ULL << 63);
		case MONOID_MAX_I64:
		case MONOID_MAX_DEC:
			return v ^ 1ULL << 63;
		case MONOID_MIN_F64:
			return ~f64_order_code(v);
		case MONOID_MAX_F64:
			return f64_order_code(v);
		case MONOID_MIN_I32:
			return ~((u32) v ^ 0x80000000u) & 0xffffffffu;
		case MONOID_MAX_I32:
			return (u32) v ^ 0x80000000u;
		case MONOID_MIN_F32:
			return (u32) ~f32_order_code(v);
		default: /* MAX_F32 */
			return f32_order_code(v);
	}
}

/*
 * Lets launches of a kernel use all shared memory of a block. The limit belongs to the kernel, not
 * to a launch: if each launch set what it needs, a larger launch of another thread could fail.
 */
template <class... Params>
static inline cudaError_t
allow_shared(void (*kernel)(Params...), const DeviceFacts &facts)
{
	cudaFuncAttributes own;
	cudaError_t err = cudaFuncGetAttributes(&own, kernel);

	if (err != cudaSuccess)
		return err;
	return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
								(int) (facts.smem_per_block - own.sharedSizeBytes));
}

#endif /* GPUAGG_HIST_CUH */
