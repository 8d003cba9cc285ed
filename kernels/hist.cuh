/*
 * hist.cuh
 *	  Device side of generalized histograms: what kernels know of a slot,
 *	  reading columns, finding bins, and adding to shared memory.
 *
 * In shared memory a bin is a few 32-bit words, kept as planes (word w of all
 * bins, M copies of a bin side by side).  Every form is zero when empty and is
 * changed by native 32-bit atomics only, except 64-bit maxima and CAS:
 *
 *	COUNT	one word
 *	INT		two's complement sum; the carry goes to the next word, past the last
 *			one ("spill", FIX too) to the limb in device memory
 *	FIX		sum of doubles as multiples of 2^e0, in signed digits of 24 or 27 bits (see below)
 *	ACCUM	COUNT, sums of x and of x * x in fixed point (exact, so no cancellation), by signed
 *			digits of 24 or 28 bits (hist_moments.cuh); what leaves the top word of either goes
 *			to that word's limb in device memory
 *	REGR	COUNT, wide sums of x, y, and of x * x, y * y, x * y (a wide sum is a two's
 *			complement sum in fixed point; a value spans three words)
 *	MAX32/64 order-preserving codes, complemented for minima
 *	OR64, XOR64	two words; AND is OR of complements
 *	CAS		the state itself, exclusive-or the identity's bits, changed by compare-and-swap
 *			of 64 bits with what the operator's combine function makes of it
 *
 * Blocks flush words into 64-bit limbs in device memory, where addition, max,
 * or and xor are native and, being exact, independent of order (those of CAS are
 * combined there by compare-and-swap, too).  Fold kernels
 * turn limbs into the monoid's state and combine it with the caller's array by
 * the monoid's own combine function.  Rows that a form cannot take (infinities,
 * NaN, doubles outside the window) and operators without a form are combined
 * with the state directly.
 */
#ifndef GPUAGG_HIST_CUH
#define GPUAGG_HIST_CUH

#include <cuda_runtime.h>

#include "operators/gpu_hash.h"
#include "common.cuh"

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

/* What hist_tiles.cu does of a slot. */
enum HistTile
{
	TILE_NONE, /* it cannot */
	TILE_COUNT,
	TILE_INT_I32,
	TILE_INT_I64,
	TILE_FIX3,
	TILE_FIX4,
	TILE_MAX32,
	TILE_MAX64,
	TILE_SQUARES
};

/* A slot as kernels see it. */
struct HistSlot
{
	int op;
	int form;
	GpuaggColumn x, y;
	const uint8_t *filter;
	void *states;
	int number; /* among the caller's slots */
	int word;   /* first word plane in shared memory */
	int limb;   /* first limb plane in device memory */
	int nlimbs;
	int input_words;    /* INT: 1, 2 or 4 words of input */
	int words;          /* words of INT, FIX and wide sums, and of ACCUM's x */
	int words2;         /* words of wide sums of products, and of ACCUM's x * x */
	int digits;         /* FIX: digits of a value */
	int digit_bits;     /* ACCUM */
	int tile;           /* HistTile, */
	int filter_operand; /* of a program, or -1, */
	int repeats_x;      /* x is that of the slot before: see hist_tiles.cu */
	int extend;         /* a narrow column for a 128-bit input */
	int wide_state;     /* INT: a 128-bit state */
	int spill;          /* the limb past the words takes carries */
	int in_moments;     /* COUNT: its word is ACCUM's, which counts the rows in its window, and
						   hist_deviations.cu the others */
	int max_shift;      /* FIX, wide sums: window above 2^e0 */
};

/* Copies of a slot's states, for changes by rows; see state_at. */
struct HistCopies
{
	void *states;        /* NULL: none */
	int *log2;           /* of how many are used, the slot's own states counted, */
	int log2_max_copies; /* and of how many there are */
};

struct HistItem
{
	u32 row0, row1;
	u32 part;
	int split; /* index of a partition of several items, or -1 */
};

/* Rows that were moved to partitions by bin range. */
struct HistPartitioned
{
	const HistItem *item; /* NULL: they were not */
	const uint16_t *bin;  /* within the partition */
	const u32 *row;       /* row numbers where columns were not moved */
	u32 *counter;         /* HistCounter */
	u32 *split_done;      /* items finished of each split */
	const u32 *split_items;
	const u32 *exchanged; /* not 0: rows went by an exchange; or NULL */
};

/* Everything a histogram kernel needs; passed by value. */
struct HistArgs
{
	/* the call */
	GpuaggBins bins;
	HistSlot slot[GPUAGG_MAX_SLOTS];
	int nslots;
	u32 nrows;
	GpuaggHistStatus *status;
	bool report; /* rows out of range */
	/* the layout of bins, and passes over the rows */
	int words;           /* word planes in all */
	int limbs;           /* limb planes in all */
	int log2_copies;     /* M, unless it is sampled: */
	int log2_max_copies; /* what there is memory for */
	int *copies;         /* log2 of M, by the sampled race factor; NULL: log2_copies */
	int64_t spread;      /* what hist_model_copies then takes */
	int passes;
	u32 pass_bins; /* even, if in shared memory */
	/* memory of the device */
	u32 limb_bins; /* bins of a limb plane */
	u64 *limb;     /* limb planes; in partitions: one set a split; NULL: none */
	int *window;   /* e0 of x and y, two a slot */
	u32 *zero;     /* words that the preparation clears */
	u32 zeros;
	/* rows that change states themselves */
	HistCopies extra[GPUAGG_MAX_SLOTS];
	u32 *lock;                     /* HIST_LOCKS of them */
	bool locks;                    /* some row may need one */
	int64_t out_of_window_threads; /* how many may change copies at a time, if out-of-window rows
									  do; or 0 */
	u32 *out_of_window;            /* hist_deviations.cu: a bit for each row */
	int hot_entries;               /* of a warp, a power of two, or 0; see hist_change.cuh */
	/* hist_tiles.cu */
	const GpuaggProgram *program;
	int tiles; /* TileKernel */
	int temporaries;
	int input_bytes;
	u32 input_row;
	HistPartitioned part;
};

enum HistCounter
{
	HIST_NITEMS,
	HIST_NSPLITS,
	HIST_NROWS, /* rows that have a bin */
	HIST_NEXT,
	HIST_NCOUNTERS
};

#define HIST_LOG2_LOCKS 14
#define HIST_LOCKS (1 << HIST_LOG2_LOCKS)
#define HIST_SAMPLE 4096

/* Those whose states are pairs of a key and a value: see hist_argmax.cu. */
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

/* body(Op()) with the operator's type. */
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

/* log2 of M; known once the preparation has ended. */
static __device__ __forceinline__ int
log2_copies(const HistArgs &args)
{
	return args.copies ? __ldcg(args.copies) : args.log2_copies;
}

/* ---- reading ------------------------------------------------------------ */

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
bit_set(const uint8_t *bits, u32 row)
{
	return (bits[row >> 3] >> (row & 7)) & 1;
}

/* Inclusive prefix sum over the warp. */
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
 * ITEMS values of one column into 64-bit words: integers sign-extended, floats
 * as the bits of a double.  hi takes the second word of 16-byte values.
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
 * The bin of each row in ok; rows without one leave ok.  status: where those out of range count, or
 * NULL.
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
				if (col.validity && !bit_set(col.validity, row[j]))
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
 * Atomics at an address within shared memory.  Of a pointer the compiler works
 * out the window's base again for every row, which takes several times as many
 * instructions as the addition itself.
 */
static __device__ __forceinline__ u32
shared_address(const void *p)
{
	return (u32) __cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void
shared_count(u32 at)
{
	asm volatile("red.shared.add.u32 [%0], 1;" : : "r"(at) : "memory");
}

static __device__ __forceinline__ u32
shared_add(u32 at, u32 v)
{
	u32 old;

	asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(v) : "memory");
	return old;
}

static __device__ __forceinline__ void
shared_or(u32 at, u32 v)
{
	asm volatile("red.shared.or.b32 [%0], %1;" : : "r"(at), "r"(v) : "memory");
}

/*
 * Add cnt words a, continued by fill (0 or ~0), to the two's complement number
 * at p, p + plane, …, of `words` words, starting with word w0.  Returns what
 * is carried out of the last word.  CHECK: w0 + CNT may be above words.
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

/* Wide sums: where a double lies in a window. */
struct FixValue
{
	u64 m; /* 53 bits, 0 for zero */
	int shift;
	bool negative;
};

/* False if the value has no exact place in the window. */
static __device__ __forceinline__ bool
fix_from_double(u64 bits, int e0, int max_shift, FixValue &f)
{
	int e = (int) (bits >> 52) & 0x7ff;

	f.m = (bits & 0xfffffffffffffULL) | (u64) (e != 0) << 52;
	f.negative = bits >> 63;
	f.shift = max(e, 1) - (1075 + e0);
	if ((u32) f.shift <= (u32) max_shift)
		return e != 0x7ff;
	/* seldom: zero, low bits that are all zero, or none of the window's */
	if (f.m != 0 &&
		(e == 0x7ff || f.shift > 0 || f.shift < -52 || (f.m & ((1ULL << -f.shift) - 1))))
		return false;
	f.m = f.m ? f.m >> -f.shift : 0;
	f.shift = 0;
	return true;
}

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
	/* the window leaves room for all three words */
	add_words<3, false>(p, plane, words, a, f.negative ? ~0u : 0, f.shift >> 5);
}

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
 * FIX: a value is cut into signed digits by adding numbers so large that the
 * sum's last bit is the digit's unit: no exponents to compare, and every digit
 * is added to its word by itself.  A word overflows after 32 additions at the
 * earliest; the thread that sees it carries on.  The lowest digit is biased to
 * be positive, so that its word says whether a bin was touched at all, and is
 * narrower, so that this word overflows seldom, too.  A word past the digits
 * takes the last carries.
 *
 * Three digits are as wide as they can be.  Four have bits to spare, so they are
 * narrower and overflow more seldom: a few bins take many rows each.
 */
#define FIX_LOW_BITS 20
#define FIX_MAX_DIGITS 4

/* Bits of a digit above the lowest, in a sum of so many digits. */
static __host__ __device__ __forceinline__ int
fix_digit_bits(int digits)
{
	return digits == 4 ? 24 : 27;
}

static __host__ __device__ __forceinline__ int
fix_log2_weight(int digits, int word)
{
	return word == 0 ? 0 : FIX_LOW_BITS + fix_digit_bits(digits) * (word - 1);
}

/* What carries out of this word are worth in the next. */
static __device__ __forceinline__ int
fix_carry_value(int digits, int word)
{
	return 1 << (32 - (word == 0 ? FIX_LOW_BITS : fix_digit_bits(digits)));
}

/* The large number for a digit: 1.5 * 2^52 units, and its bias. */
static __device__ __forceinline__ double
fix_magic(int e0, int digits, int digit)
{
	u64 bits = (u64) (1075 + e0 + fix_log2_weight(digits, digit)) << 52 | 1ULL << 51;

	if (digit == 0)
		bits += 1 << FIX_LOW_BITS;
	else if (digit == 1)
		bits--;
	return __longlong_as_double(bits);
}

/* The high word of absolute values starts below this; the top digit fits 27 bits then. */
static __device__ __forceinline__ u32
fix_high_word_limit(int e0, int max_shift)
{
	return (u32) (1023 + 53 + e0 + max_shift) << 20;
}

/* Cuts off one digit; r keeps the rest. */
static __device__ __forceinline__ u32
fix_cut_digit(double &r, double magic)
{
	double t = r + magic;

	r -= t - magic;
	return (u32) __double2loint(t);
}

/*
 * The window of a slot's float sum: the numbers that cut off digits, and where values are too
 * large.
 */
template <int DIGITS> struct FixWindow
{
	double magic[DIGITS + 1];
	u32 limit;

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
			for (int k = 0; k < DIGITS; k++)
				magic[k] = fix_magic(e0, DIGITS, k);
		}
	}
	/* Digits of a double; whether it has them all. */
	template <int ROOM>
	__device__ __forceinline__ bool
	cut(double v, u32 (&d)[ROOM]) const
	{
		double r = v;

#pragma unroll
		for (int k = DIGITS - 1; k >= 0; k--)
			d[k] = fix_cut_digit(r, magic[k]);
		return ((u32) __double2hiint(v) & 0x7fffffff) < limit && r == 0;
	}
};

/* Whether an addition of d that made s of old left the range of a word. */
static __device__ __forceinline__ bool
fix_overflows(int word, u32 old, u32 d, u32 s)
{
	return word == 0 ? s < d : (int) ((old ^ s) & (d ^ s)) < 0;
}

/* Whether any of the additions of d to old did, by the top bits of what they would carry. */
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

static __device__ __forceinline__ void
max_u32(u32 *p, u32 v)
{
	if (*(volatile u32 *) p < v)
		atomicMax(p, v);
}

/* Few rows raise a maximum, so the compare-and-swap loop hardly runs. */
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

/* ---- codes whose order is the operator's ---------------------------------- */

static __device__ __forceinline__ u64
f64_order_code(u64 bits)
{
	if ((bits & ~(1ULL << 63)) > 0x7ff0000000000000ULL)
		bits = 0x7ff8000000000000ULL;
	return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static __device__ __forceinline__ u64
f64_of_order_code(u64 code)
{
	return code >> 63 ? code & ~(1ULL << 63) : ~code;
}

/* v: the bits of the float as a double. */
static __device__ __forceinline__ u32
f32_order_code(u64 v)
{
	u32 bits = __float_as_uint((float) __longlong_as_double(v));

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		bits = 0x7fc00000u;
	return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float
f32_of_order_code(u32 code)
{
	return __uint_as_float(code >> 31 ? code & 0x7fffffffu : ~code);
}

/* The greater the code, the better; 0 is the identity's or below it. */
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
 * Allows a kernel all the shared memory of a block.  The limit is the function's,
 * not the launch's: set to what one launch needs, it would fail the larger one of
 * another thread that comes between.
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
