/*
 * hist_moments.cuh
 *	  Deviations (form ACCUM): exact sums of doubles and of their squares in words of shared memory.
 *
 * A bin has a word that counts rows, then HistSlot.words words for the sum of x, then
 * HistSlot.words2 words for the sum of x * x.  Word w of all bins is a plane.  All words are
 * signed.
 *
 * A value and its square are stored in fixed point, as multiples of a unit.  They are cut
 * into digits of BITS bits, 24 or 28, and each digit is added to a word of its own.  A digit below
 * the highest is balanced: it is between -2^(BITS - 1) and 2^(BITS - 1).  Sums of balanced digits
 * grow slowly: the sum of n digits is around 2^(BITS - 2) * sqrt(n), so a word rarely overflows.
 * Digits that are not balanced would make a word overflow every 2^(33 - BITS) rows.  The highest
 * digit is the rest of the number, with its sign.
 *
 * A thread whose addition overflows a word adds the carry to the next word.  If the top words have
 * no room for all rows of a block (HistWidth.spill), what overflows them, 2^32 of their units, goes
 * to their limbs in device memory.
 */
#ifndef GPUAGG_HIST_MOMENTS_CUH
#define GPUAGG_HIST_MOMENTS_CUH

#include "hist.cuh"

/* Returns a word whose sign bit is set if the signed addition of d to `old` overflowed. */
static __device__ __forceinline__ u32
overflow_sign(u32 old, u32 d)
{
	u32 sum = old + d;

	return (old ^ sum) & (d ^ sum);
}

/* Returns the 32 bits from bit `at` on of a number of N words, which is sign-extended. */
template <int N>
static __device__ __forceinline__ u32
bits_of_words(const u32 (&w)[N], int at)
{
	return __funnelshift_r(
		w[at / 32], at / 32 + 1 < N ? w[at / 32 + 1] : (u32) ((int) w[N - 1] >> 31), at % 32);
}

/* Computes r = w << s.  s is below 32, and r has one more word. */
template <int N>
static __device__ __forceinline__ void
shift_words(const u32 (&w)[N], u32 s, u32 (&r)[N + 1])
{
	r[0] = w[0] << s;
#pragma unroll
	for (int i = 1; i < N; i++)
		r[i] = __funnelshift_l(w[i - 1], w[i], s);
	r[N] = __funnelshift_l(w[N - 1], 0, s);
}

/*
 * Cuts w, a number in two's complement, into N balanced digits d[].  If `full`, the highest digit
 * is number N - 1; otherwise it is number N - 2, and d[N - 1] is 0.  Overwrites w.
 *
 * First adds half a unit of the next digit at each digit below the highest; then subtracts that
 * half from the digit.
 */
template <int BITS, int N, int WORDS>
static __device__ __forceinline__ void
cut_digits(u32 (&w)[WORDS], bool full, u32 *d)
{
	constexpr u32 HALF = 1u << (BITS - 1), MASK = (1u << BITS) - 1;
	u32 carry = 0;

#pragma unroll
	for (int i = 0; i < WORDS; i++)
	{
		u32 half = 0;
		u64 sum;

#pragma unroll
		for (int k = 0; k < N - 1; k++)
			if ((BITS * (k + 1) - 1) / 32 == i && (k < N - 2 || full))
				half |= 1u << (BITS * (k + 1) - 1) % 32;
		sum = (u64) w[i] + half + carry;
		w[i] = (u32) sum;
		carry = (u32) (sum >> 32);
	}
#pragma unroll
	for (int k = 0; k < N - 2; k++)
		d[k] = (bits_of_words(w, BITS * k) & MASK) - HALF;
	d[N - 2] = bits_of_words(w, BITS * (N - 2));
	if (full)
		d[N - 2] = (d[N - 2] & MASK) - HALF;
	d[N - 1] = full ? bits_of_words(w, BITS * (N - 1)) : 0;
}

/*
 * The digits of a value and of its square.  A value has 53 bits and its square 106, shifted by up
 * to BITS - 1.
 *
 * The caller calls cut, add and carry in this order: all digits are cut before any is added, and
 * all are added before any result is checked.  So the atomic additions overlap.
 */
template <int BITS> struct MomentDigits
{
	/* number of digits of the value, of the square, and of both */
	static constexpr int X = (53 + BITS - 1 + BITS - 1) / BITS;
	static constexpr int XX = (106 + BITS - 1 + BITS - 1) / BITS;
	static constexpr int N = X + XX;
	u32 d[N],   /* digits, the value's first */
		old[N]; /* the words before the digits were added */
	/* shared addresses of the words for the lowest digit of the value and of the square */
	u32 at[2];

	/*
	 * Cuts a value that fix_from_double placed in the window.  The arguments: words_at is the
	 * shared address of the bin's first word, plane_bytes the distance to its next word, `words`
	 * the number of words for x.
	 */
	__device__ __forceinline__ void
	cut(const FixValue &f, u32 words_at, u32 plane_bytes, int words)
	{
		u32 lo = (u32) f.m, hi = (u32) (f.m >> 32), sign = f.negative ? ~0u : 0,
			s = (u32) f.shift % BITS, t = 2 * (u32) f.shift % BITS;
		u64 low = (u64) lo * lo, mid = (u64) lo * hi, /* below 2^53; its unit is 2^33 */
			high = (u64) hi * hi + (mid >> 31), sum = low + (mid << 33), value;
		u32 m[2] = {lo, hi}, square[4], x[3], xx[5];

		shift_words(m, s, x);
		/* negates x in two's complement if the value is negative */
		value =
			(((u64) x[1] << 32 | x[0]) ^ (u64) (int64_t) (int) sign) - (u64) (int64_t) (int) sign;
		x[2] = (x[2] ^ sign) + (value == 0 ? sign & 1 : 0);
		x[0] = (u32) value;
		x[1] = (u32) (value >> 32);
		high += sum < low;
		square[0] = (u32) sum;
		square[1] = (u32) (sum >> 32);
		square[2] = (u32) high;
		square[3] = (u32) (high >> 32);
		shift_words(square, t, xx);
		at[0] = words_at + (1 + (u32) f.shift / BITS) * plane_bytes;
		at[1] = words_at + (1 + words + 2 * (u32) f.shift / BITS) * plane_bytes;
		cut_digits<BITS, X>(x, 53 + s > BITS * (X - 1), d);
		cut_digits<BITS, XX>(xx, 106 + t > BITS * (XX - 1), d + X);
	}

	/* Adds the digits to their words, and stores the words' values before in old[]. */
	__device__ __forceinline__ void
	add(u32 plane_bytes)
	{
#pragma unroll
		for (int k = 0; k < N; k++)
			old[k] = d[k] ?
				shared_add(k < X ? at[0] + k * plane_bytes : at[1] + (k - X) * plane_bytes, d[k]) :
				0;
	}

	/*
	 * Adds the carries of the words that overflowed.  `bin` is the bin's number in the planes of
	 * limbs.  It makes no calls and indexes no array with a variable: either would put live values
	 * of the caller into local memory.
	 */
	__device__ __forceinline__ void
	carry(const HistArgs &args, const HistSlot &slot, u32 bin, u32 words_at, u32 plane_bytes) const
	{
		u32 some = 0, over = 0, negative = 0;

#pragma unroll
		for (int k = 0; k < N; k++)
			some |= overflow_sign(old[k], d[k]);
		if ((int) some >= 0)
			return;
#pragma unroll
		for (int k = 0; k < N; k++)
		{
			over |= overflow_sign(old[k], d[k]) >> 31 << k;
			negative |= d[k] >> 31 << k;
		}
#pragma unroll 1
		for (; over; over &= over - 1)
		{
			int k = __ffs(over) - 1;
			u32 top = (u32) (k < X ? slot.words : slot.words + slot.words2),
				end = words_at + top * plane_bytes,
				word = k < X ? at[0] + k * plane_bytes : at[1] + (k - X) * plane_bytes,
				unit = 1u << (32 - BITS), carry = negative >> k & 1 ? -unit : unit;
			bool overflow = true;

			while (overflow && word != end)
			{
				word += plane_bytes;
				overflow = (int) overflow_sign(shared_add(word, carry), carry) < 0;
			}
			if (overflow)
				atomicAdd(&args.limb[(size_t) (slot.limb + top) * args.limb_bins + bin],
						  negative >> k & 1 ? -(1ULL << 32) : 1ULL << 32);
		}
	}
};

/*
 * Adds a value to a bin: to its count and to its sums.  The bin's first word is at the shared
 * address words_at; `bin` is the bin's number in the planes of limbs.
 */
template <int BITS>
static __device__ __forceinline__ void
add_moments(const HistArgs &args, const HistSlot &slot, u32 bin, u32 words_at, u32 plane_bytes,
			const FixValue &f)
{
	MomentDigits<BITS> m;

	shared_count(words_at);
	m.cut(f, words_at, plane_bytes, slot.words);
	m.add(plane_bytes);
	m.carry(args, slot, bin, words_at, plane_bytes);
}

#endif /* GPUAGG_HIST_MOMENTS_CUH */
