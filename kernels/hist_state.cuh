/*
 * hist_state.cuh
 *	  Combines limbs with states: turns the limbs of a bin into a partial state, and combines it
 *	  with the caller's state by the operator's own combine and error functions.
 *
 * Limbs are 64-bit words in device memory or registers, to which blocks have added their words of
 * shared memory; see hist.cuh for the forms.  Arithmetic is exact up to one rounding to a double.
 * fold_limbs() is the entry for all forms.  Its caller must be the only thread that changes the
 * state, except for changes by out-of-window rows that ended before.
 */
#ifndef GPUAGG_HIST_STATE_CUH
#define GPUAGG_HIST_STATE_CUH

#include "hist_cas.cuh"

/* ---- big integers --------------------------------------------------------- */

/*
 * Big integers are arrays of 32-bit words, the lowest first.  They are in two's complement, or
 * unsigned magnitudes (absolute values).
 */

#define HIST_MAX_LIMBS 40
#define HIST_BIG 20 /* words of a big integer */

/*
 * Adds up limbs and stores the sum in w[] as n words in two's complement.  Limb i has the weight
 * 2^(32 * i).  The last limb is signed, the others are unsigned.
 */
static __device__ void
limbs_to_words(const u64 *limb, int nlimbs, u32 *w, int n)
{
	gpuagg_i128 carry = 0;

	for (int i = 0; i < n; i++)
	{
		if (i < nlimbs - 1)
			carry += limb[i];
		else if (i == nlimbs - 1)
			carry += (int64_t) limb[i];
		w[i] = (u32) carry;
		carry >>= 32;
	}
}

/* Replaces a number in two's complement by its absolute value.  Returns whether it was negative. */
static __device__ bool
words_to_magnitude(u32 *w, int n)
{
	bool negative = w[n - 1] >> 31;
	u32 c = 1;

	if (negative)
		for (int i = 0; i < n; i++)
		{
			w[i] = ~w[i] + c;
			c = c && w[i] == 0;
		}
	return negative;
}

/* Returns the double nearest to w * 2^e, for a magnitude w of n words. */
static __device__ double
magnitude_to_double(const u32 *w, int n, int e)
{
	int top = n - 1;
	int lead;
	u64 m;
	u32 below = 0;

	while (top >= 0 && w[top] == 0)
		top--;
	if (top < 0)
		return 0.0;
	/* the top 64 bits, with a sticky lowest bit */
	m = (u64) w[top] << 32 | (top > 0 ? w[top - 1] : 0);
	lead = __clzll(m);
	if (top > 1)
	{
		m <<= lead;
		if (lead)
			m |= w[top - 2] >> (32 - lead);
		below = lead ? w[top - 2] << lead : w[top - 2];
		for (int i = top - 3; i >= 0; i--)
			below |= w[i];
	}
	else
		m <<= lead;
	if (below)
		m |= 1;
	return scalbn(__ull2double_rn(m), 32 * (top - 1) - lead + e);
}

/* Returns the double nearest to words * 2^e, for a number in two's complement. */
static __device__ double
words_to_double(const u32 *words, int n, int e)
{
	u32 w[HIST_BIG];
	bool negative;
	double d;

	for (int i = 0; i < n; i++)
		w[i] = words[i];
	negative = words_to_magnitude(w, n);
	d = magnitude_to_double(w, n, e);
	return negative ? -d : d;
}

/*
 * Adds a * b to r, or subtracts it.  r has n words in two's complement; a and b are magnitudes of
 * na and nb words.
 */
static __device__ void
multiply_add(u32 *r, int n, const u32 *a, int na, const u32 *b, int nb, bool subtract)
{
	u32 p[HIST_BIG];
	u32 c = subtract;

	for (int i = 0; i < n; i++)
		p[i] = 0;
	for (int i = 0; i < na; i++)
	{
		u64 carry = 0;

		for (int j = 0; i + j < n; j++)
		{
			carry += p[i + j] + (u64) a[i] * (j < nb ? b[j] : 0);
			p[i + j] = (u32) carry;
			carry >>= 32;
		}
	}
	for (int i = 0; i < n; i++)
	{
		u64 t = (u64) r[i] + (subtract ? ~p[i] : p[i]) + c;

		r[i] = (u32) t;
		c = (u32) (t >> 32);
	}
}

/* Like limbs_to_words(), but limb i has the weight 2^(bits * i), and all limbs are signed. */
static __device__ void
digits_to_words(const u64 *limb, int nlimbs, int bits, u32 *w, int n)
{
	gpuagg_i128 carry = 0;
	int k = 0;

	for (int i = 0; i < n; i++)
	{
		for (; k < nlimbs && bits * k < 32 * (i + 1); k++)
			carry += (gpuagg_i128) (int64_t) limb[k] << (bits * k - 32 * i);
		w[i] = (u32) carry;
		carry >>= 32;
	}
}

/* ---- float sums ----------------------------------------------------------- */

/*
 * Returns (sum(xy) - sum(x) * sum(y) / n) * 2^e, exact up to one rounding to a double and the
 * division.  x, y and xy are the sums in two's complement, of w, w and w2 words; they are changed.
 */
static __device__ double
deviation_from_words(u64 n, u32 *x, u32 *y, int w, u32 *xy, int w2, int e)
{
	u32 r[HIST_BIG];
	u32 count[2] = {(u32) n, (u32) (n >> 32)};
	bool nx, ny, nxy;
	int big = HIST_BIG;

	nx = words_to_magnitude(x, w);
	ny = words_to_magnitude(y, w);
	nxy = words_to_magnitude(xy, w2);
	for (int i = 0; i < big; i++)
		r[i] = 0;
	multiply_add(r, big, xy, w2, count, 2, nxy);
	multiply_add(r, big, x, w, y, w, nx == ny);
	return scalbn(words_to_double(r, big, 0) / (double) n, e);
}

/*
 * Like deviation_from_words(), for sums in limbs as in limbs_to_words(): `words` limbs for x and
 * for y, words2 limbs for xy.
 */
static __device__ double
deviation_from_limbs(u64 n, const u64 *lx, const u64 *ly, int words, const u64 *lxy, int words2,
					 int e)
{
	u32 x[HIST_BIG], y[HIST_BIG], xy[HIST_BIG];

	limbs_to_words(lx, words, x, words + 2);
	limbs_to_words(ly, words, y, words + 2);
	limbs_to_words(lxy, words2, xy, words2 + 2);
	return deviation_from_words(n, x, y, words + 2, xy, words2 + 2, e);
}

/*
 * Returns the double nearest to s * 2^e0, for the e0 of a window.  Multiplies by powers of two
 * instead of calling scalbn(), which rounds in the same way but has a loop or a call.
 */
static __device__ __forceinline__ double
i128_to_double(gpuagg_i128 s, int e0)
{
	gpuagg_u128 m = s < 0 ? -(gpuagg_u128) s : (gpuagg_u128) s;
	u64 hi = (u64) (m >> 64), lo = (u64) m;
	double d = __ull2double_rn(lo);

	if (hi)
	{
		int lead = __clzll(hi);

		/* the top 64 bits, with a sticky lowest bit */
		hi = hi << lead | (lo >> 1) >> (63 - lead);
		lo <<= lead;
		d = __ull2double_rn(hi | (lo != 0)) * __longlong_as_double((long long) (1087 - lead) << 52);
	}
	d *= e0 >= -1022 ? __longlong_as_double((long long) (1023 + e0) << 52) :
					   __longlong_as_double(1LL << (e0 + 1074));
	return s < 0 ? -d : d;
}

/*
 * Returns a wide sum (form REGR), in units of 2^e0. hist_slots.cu chooses windows so that it fits
 * 128 bits.
 */
static __device__ __forceinline__ gpuagg_i128
wide_limbs_to_i128(const u64 *limb, int words)
{
	gpuagg_u128 sum = 0;

	for (int i = 0; i < words; i++)
		sum += (gpuagg_u128) (gpuagg_i128) (int64_t) limb[i] << (32 * i);
	return (gpuagg_i128) sum;
}

/*
 * Returns a sum in form FIX, in units of 2^e0. digits: HistSlot. hist_slots.cu chooses windows so
 * that it fits 128 bits.
 */
static __device__ __forceinline__ gpuagg_i128
fix_limbs_to_i128(const u64 *limb, int digits)
{
	gpuagg_u128 sum = 0;

	/* the last limb of a chain is a mark */
	for (int i = 0; i <= FIX_DIGITS; i++)
		sum += (gpuagg_u128) (gpuagg_i128) (int64_t) limb[i] << fix_log2_weight(digits, i);
	return (gpuagg_i128) sum;
}

/* Returns the double nearest to a wide sum (form REGR) whose limbs are in units of 2^e0. */
static __device__ __forceinline__ double
wide_sum_to_double(const u64 *limb, int words, int e0)
{
	return i128_to_double(wide_limbs_to_i128(limb, words), e0);
}

/*
 * Replaces a state of -0, the identity of float sums, by +0.  Called for a bin that has rows other
 * than -0, if their sum, or the word that marks a bin as used, may be 0.
 */
static __device__ __forceinline__ void
replace_negative_zero(const HistSlot &slot, u32 bin)
{
	if (slot.op == MONOID_SUM_F64)
	{
		if (__ldcg((u64 *) slot.states + bin) == 1ULL << 63)
			atomicCAS((u64 *) slot.states + bin, 1ULL << 63, 0ULL);
	}
	else if (__ldcg((u32 *) slot.states + bin) == 1u << 31)
		atomicCAS((u32 *) slot.states + bin, 1u << 31, 0u);
}

/*
 * Returns the state of a float sum.  It is read from the L2 cache, since out-of-window rows may
 * have changed it there.
 */
static __device__ __forceinline__ double
load_float_sum(const HistSlot &slot, u32 bin)
{
	return slot.op == MONOID_SUM_F32 ? (double) __ldcg((const float *) slot.states + bin) :
									   __ldcg((const double *) slot.states + bin);
}

/*
 * Combines a float sum with the state of its bin, which is `old`. total: the sum in units of the
 * slot's window, of at least one row that is not -0.  Adds error bits to the call's status.
 */
static __device__ __forceinline__ void
fold_float_sum(const HistArgs &args, int s, u32 bin, gpuagg_i128 total, double old)
{
	const HistSlot &slot = args.slot[s];
	int err;
	double sum;

	if (total == 0)
	{
		replace_negative_zero(slot, bin);
		return;
	}
	sum = i128_to_double(total, args.window[2 * s]);
	if (slot.op == MONOID_SUM_F32)
	{
		float a = (float) old, b = (float) sum, r = sum_f32_combine(a, b);

		((float *) slot.states)[bin] = r;
		err = sum_f32_error(a, b, r) | (isinf(b) ? MONOID_ERR_OVERFLOW : 0);
	}
	else
	{
		double r = sum_f64_combine(old, sum);

		((double *) slot.states)[bin] = r;
		err = sum_f64_error(old, sum, r) | (isinf(sum) ? MONOID_ERR_OVERFLOW : 0);
	}
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

/* ---- partial states ------------------------------------------------------- */

/*
 * A partial state: the result of the call's rows in one bin.  It has room for the state of every
 * operator with a form in shared memory, at most 48 bytes.
 */
union HistPartial
{
	int32_t i32;
	int64_t i64;
	gpuagg_i128 i128;
	gpuagg_i192 i192;
	float f32;
	double f64;
	gpuagg_accum accum;
	gpuagg_regr regr;
};

/*
 * Sets p from `code`, the only limb of an extreme, of an operator on bits, or of form CAS.  The
 * limb of an extreme is a code of max_code(); the limb of form CAS is copied and not decoded.
 */
static __device__ void
partial_from_code(int op, u64 code, HistPartial &p)
{
	switch (op)
	{
		case MONOID_MIN_I32:
			p.i32 = (int32_t) (~(u32) code ^ 0x80000000u);
			break;
		case MONOID_MAX_I32:
			p.i32 = (int32_t) ((u32) code ^ 0x80000000u);
			break;
		case MONOID_MIN_F32:
			p.f32 = f32_of_order_code(~(u32) code);
			break;
		case MONOID_MAX_F32:
			p.f32 = f32_of_order_code((u32) code);
			break;
		case MONOID_MIN_I64:
			p.i64 = (int64_t) (~code ^ 1ULL << 63);
			break;
		case MONOID_MAX_I64:
			p.i64 = (int64_t) (code ^ 1ULL << 63);
			break;
		case MONOID_MIN_F64:
			p.f64 = __longlong_as_double(f64_of_order_code(~code));
			break;
		case MONOID_MAX_F64:
			p.f64 = __longlong_as_double(f64_of_order_code(code));
			break;
		case MONOID_BIT_AND:
			p.i64 = (int64_t) ~code;
			break;
		case MONOID_MIN_DEC:
			p.i128 = (int64_t) (~code ^ 1ULL << 63);
			break;
		case MONOID_MAX_DEC:
			p.i128 = (int64_t) (code ^ 1ULL << 63);
			break;
		default: /* BIT_OR, BIT_XOR; form CAS: the word itself */
			p.i64 = (int64_t) code;
	}
}

/*
 * Sets p from the limbs of form ACCUM or REGR: the count, the sums, then the sums of products.  ex
 * and ey: exponents of the windows of x and y.  Returns error bits that the combine function cannot
 * see: a sum that is too large for a double.
 */
static __device__ int
partial_from_float_limbs(const HistSlot &slot, const u64 *limb, int ex, int ey, HistPartial &p)
{
	int w = slot.words, w2 = slot.words2;
	const u64 *x = limb + 1;

	if (slot.form == HIST_ACCUM)
	{
		/* the sums are below 2^128 and 2^256 */
		u32 xs[5], ys[5], xx[9];
		gpuagg_u128 sum = 0;
		double n = (double) limb[0], sx;

		for (int k = 0; k < w; k++)
			sum += (gpuagg_u128) (gpuagg_i128) (int64_t) x[k] << (slot.digit_bits * k);
		sx = i128_to_double((gpuagg_i128) sum, ex);
		digits_to_words(x, w, slot.digit_bits, xs, 5);
		digits_to_words(x, w, slot.digit_bits, ys, 5);
		digits_to_words(x + w, w2, slot.digit_bits, xx, 9);
		p.accum.n = n;
		p.accum.sx = sx;
		p.accum.sxx = deviation_from_words(limb[0], xs, ys, 5, xx, 9, 2 * ex);
		return isinf(sx) || isinf(p.accum.sxx) ? MONOID_ERR_OVERFLOW : 0;
	}
	const u64 *y = x + w, *xx = y + w, *yy = xx + w2, *xy = yy + w2;

	p.regr.n = (double) limb[0];
	p.regr.sx = wide_sum_to_double(x, w, ex);
	p.regr.sy = wide_sum_to_double(y, w, ey);
	p.regr.sxx = deviation_from_limbs(limb[0], x, x, w, xx, w2, 2 * ex);
	p.regr.syy = deviation_from_limbs(limb[0], y, y, w, yy, w2, 2 * ey);
	p.regr.sxy = deviation_from_limbs(limb[0], x, y, w, xy, w2, ex + ey);
	return isinf(p.regr.sx) || isinf(p.regr.sxx) || isinf(p.regr.sy) || isinf(p.regr.syy) ||
			isinf(p.regr.sxy) ?
		MONOID_ERR_OVERFLOW :
		0;
}

/* Sets p from the limbs of form INT or INTSQ. */
static __device__ void
partial_from_integer_limbs(const HistSlot &slot, const u64 *limb, HistPartial &p)
{
	if (slot.op == MONOID_SUMSQ_I192)
	{
		u32 w[8];

		limbs_to_words(limb, slot.nlimbs, w, 8);
		p.i192.lo = (gpuagg_u128) ((u64) w[3] << 32 | w[2]) << 64 | ((u64) w[1] << 32 | w[0]);
		p.i192.hi = (u64) w[5] << 32 | w[4];
		p.i192.pad = 0;
		return;
	}
	gpuagg_u128 sum = 0;

	for (int i = 0; i < slot.nlimbs && i < 4; i++)
		sum += (gpuagg_u128) (gpuagg_i128) (int64_t) limb[i] << (32 * i);
	if (slot.wide_state)
		p.i128 = (gpuagg_i128) sum;
	else
		p.i64 = (int64_t) sum;
}

/* Combines a partial state with the state of a bin; returns error bits. */
template <typename Op>
static __device__ __forceinline__ int
combine_partial(void *states, u32 bin, const HistPartial &partial)
{
	typedef typename Op::State S;
	S *p = (S *) states + bin;
	S a, b, r;

#pragma unroll
	for (int i = 0; i < (int) (sizeof(S) / 4); i++)
		((u32 *) &a)[i] = __ldcg((const u32 *) p + i);
	if constexpr (form_of(Op::id) == HIST_CAS)
		b = cas_word_state<Op>((u64) partial.i64);
	else
		memcpy(&b, &partial, sizeof(S));
	r = Op::combine(a, b);
	*p = r;
	return Op::error(a, b, r);
}

/*
 * Combines the limbs of one bin of slot s with the bin's state. limb: array of slot.nlimbs limbs.
 * Does nothing if all of them are 0, since the bin then has no rows.  Adds error bits to the call's
 * status.
 */
static __device__ __noinline__ void
fold_limbs(const HistArgs &args, int s, u32 bin, const u64 *limb)
{
	const HistSlot &slot = args.slot[s];
	HistPartial partial;
	int err = 0;
	u64 any = 0;

	for (int i = 0; i < slot.nlimbs; i++)
		any |= limb[i];
	if (any == 0)
		return;
	switch (slot.form)
	{
		case HIST_COUNT:
			((int64_t *) slot.states)[bin] += (int64_t) limb[0];
			return;
		case HIST_INT:
		case HIST_INTSQ:
			partial_from_integer_limbs(slot, limb, partial);
			break;
		case HIST_FIX:
			fold_float_sum(args, s, bin, fix_limbs_to_i128(limb, slot.digits),
						   load_float_sum(slot, bin));
			return;
		case HIST_ACCUM:
		case HIST_REGR:
			err = partial_from_float_limbs(slot, limb, args.window[2 * s], args.window[2 * s + 1],
										   partial);
			break;
		default:
			partial_from_code(slot.op, limb[0], partial);
	}
	with_operator(slot.op,
				  [&](auto op)
				  {
					  if constexpr (form_of(op.id) != HIST_GENERIC || op.id == MONOID_MIN_DEC ||
									op.id == MONOID_MAX_DEC)
						  err |= combine_partial<decltype(op)>(slot.states, bin, partial);
				  });
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

#endif /* GPUAGG_HIST_STATE_CUH */
