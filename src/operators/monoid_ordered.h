/*
 * monoid_ordered.h
 *	  Operators that do not commute: subarray sums, longest runs, compositions, matrix products.
 *
 * A run is a sequence of rows without a gap.  Only monoid.h includes this file.
 */
#ifndef GPUAGG_MONOID_ORDERED_H
#define GPUAGG_MONOID_ORDERED_H

/*
 * Maximum subarray sum, which is 0 for the empty subarray.  Bentley, "Programming pearls: algorithm
 * design techniques" (1984), as a monoid.
 *
 * Integers: sums saturate.  If the sum of any subarray is above the range, so is the result.  best
 * < 0 marks that, also in all further combinations.  A subarray whose sum is below the range is not
 * the best one.
 */

/* Returns a + b; the least or largest int64 if the sum is out of range. */
GPUAGG_HD int64_t
gpuagg_add_sat(int64_t a, int64_t b)
{
	int64_t r = (int64_t) ((uint64_t) a + (uint64_t) b);

	if (((a ^ r) & (b ^ r)) < 0)
		return a < 0 ? INT64_MIN : INT64_MAX;
	return r;
}

MONOID_IDENTITY(maxsub_i64, gpuagg_maxsub_i64, 0, 0, 0, 0)

/* Returns the state of one input. The empty subarray, of sum 0, is better than a negative input. */
GPUAGG_HD gpuagg_maxsub_i64
maxsub_i64_lift(int64_t x)
{
	int64_t p = x > 0 ? x : 0;
	gpuagg_maxsub_i64 r = {x, p, p, p};

	return r;
}

/*
 * Combines states of adjacent ranges of rows.  The best subarray is in a, or in b, or a suffix of a
 * and a prefix of b (`cross`).
 */
GPUAGG_HD gpuagg_maxsub_i64
maxsub_i64_combine(gpuagg_maxsub_i64 a, gpuagg_maxsub_i64 b)
{
	gpuagg_maxsub_i64 r;
	int64_t pre = gpuagg_add_sat(a.total, b.prefix);
	int64_t suf = gpuagg_add_sat(a.suffix, b.total);
	int64_t cross = (int64_t) ((uint64_t) a.suffix + (uint64_t) b.prefix);

	r.total = gpuagg_add_sat(a.total, b.total);
	r.prefix = a.prefix > pre ? a.prefix : pre;
	r.suffix = b.suffix > suf ? b.suffix : suf;
	r.best = a.best > b.best ? a.best : b.best;
	r.best = r.best > cross ? r.best : cross;
	if (a.best < 0 || b.best < 0 || cross < 0)
		r.best = -1;
	return r;
}

/*
 * combine(a, lift(x)), simplified: the total is never above the prefix, and the suffix is never
 * above the best.
 */
GPUAGG_HD gpuagg_maxsub_i64
maxsub_i64_step(gpuagg_maxsub_i64 a, int64_t x)
{
	gpuagg_maxsub_i64 r;
	int64_t suf = (int64_t) ((uint64_t) a.suffix + (uint64_t) x);
	int over = x > 0 && suf < 0;

	r.total = gpuagg_add_sat(a.total, x);
	r.prefix = a.prefix > r.total ? a.prefix : r.total;
	r.suffix = over ? INT64_MAX : suf > 0 ? suf : 0;
	r.best = a.best > r.suffix ? a.best : r.suffix;
	if (a.best < 0 || over)
		r.best = -1;
	return r;
}

/* The largest maxsub_i64_magnitude() of inputs for maxsub_i64_bounded_step(). */
#define maxsub_i64_bound 0x03FFFFFFu

/*
 * Returns a number that is at most maxsub_i64_bound if and only if -2^57 <= x < 2^57.  Sums of 32
 * such inputs do not overflow.
 */
GPUAGG_HD uint32_t
maxsub_i64_magnitude(int64_t x)
{
	return (uint32_t) (x >> 32) + 0x02000000u;
}

/*
 * maxsub_i64_step() without overflow checks: for up to 32 inputs after the identity, each with a
 * magnitude within maxsub_i64_bound.
 */
GPUAGG_HD gpuagg_maxsub_i64
maxsub_i64_bounded_step(gpuagg_maxsub_i64 a, int64_t x)
{
	gpuagg_maxsub_i64 r;

	r.total = a.total + x;
	r.prefix = a.prefix > r.total ? a.prefix : r.total;
	r.suffix = a.suffix + x;
	r.suffix = r.suffix > 0 ? r.suffix : 0;
	r.best = a.best > r.suffix ? a.best : r.suffix;
	return r;
}

MONOID_NO_ERROR(maxsub_i64, gpuagg_maxsub_i64)

/*
 * Doubles.  NaN is the greatest sum in PostgreSQL's order, and the sum of a subarray with both
 * infinities is NaN.  Flags say which of these occurred.  NaN and +infinity count as 0, so that the
 * other sums stay comparable.
 */
#define GPUAGG_MAXSUB_NAN 1
#define GPUAGG_MAXSUB_PINF 2
#define GPUAGG_MAXSUB_NINF 4

MONOID_IDENTITY(maxsub_f64, gpuagg_maxsub_f64, 0, 0, 0, 0, 0)

/* Returns the state of one input. The empty subarray, of sum 0, is better than a negative input. */
GPUAGG_HD gpuagg_maxsub_f64
maxsub_f64_lift(double x)
{
	gpuagg_maxsub_f64 r = {0, 0, 0, 0, 0};

	if (isnan(x))
		r.flags = GPUAGG_MAXSUB_NAN;
	else if (isinf(x) && x > 0)
		r.flags = GPUAGG_MAXSUB_PINF;
	else
	{
		if (isinf(x))
			r.flags = GPUAGG_MAXSUB_NINF;
		r.total = x;
		r.prefix = r.suffix = r.best = x > 0 ? x : 0;
	}
	return r;
}

/* As maxsub_i64_combine(); the flags of both states are set. */
GPUAGG_HD gpuagg_maxsub_f64
maxsub_f64_combine(gpuagg_maxsub_f64 a, gpuagg_maxsub_f64 b)
{
	gpuagg_maxsub_f64 r;
	double pre = a.total + b.prefix;
	double suf = a.suffix + b.total;
	double cross = a.suffix + b.prefix;

	r.total = a.total + b.total;
	r.prefix = a.prefix > pre ? a.prefix : pre;
	r.suffix = b.suffix > suf ? b.suffix : suf;
	r.best = a.best > b.best ? a.best : b.best;
	r.best = r.best > cross ? r.best : cross;
	r.flags = a.flags | b.flags;
	return r;
}

/* As maxsub_i64_step(). NaN and +infinity set a flag and count as 0; -infinity sets a flag, too. */
GPUAGG_HD gpuagg_maxsub_f64
maxsub_f64_step(gpuagg_maxsub_f64 a, double x)
{
	gpuagg_maxsub_f64 r;
	double suf;

	r.flags = a.flags;
	if (isnan(x) || isinf(x))
	{
		r.flags |= isnan(x) ? GPUAGG_MAXSUB_NAN : x > 0 ? GPUAGG_MAXSUB_PINF : GPUAGG_MAXSUB_NINF;
		x = x < 0 ? x : 0;
	}
	suf = a.suffix + x;
	r.total = a.total + x;
	r.prefix = a.prefix > r.total ? a.prefix : r.total;
	r.suffix = suf > 0 ? suf : 0;
	r.best = a.best > r.suffix ? a.best : r.suffix;
	return r;
}

/* The largest maxsub_f64_magnitude() of inputs for maxsub_f64_bounded_step(): about 2^1000. */
#define maxsub_f64_bound ((uint32_t) (1023 + 1000) << 20)

/*
 * Returns the upper 32 bits of |x|, which order doubles by magnitude.  Infinities and NaN are above
 * the bound.
 */
GPUAGG_HD uint32_t
maxsub_f64_magnitude(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint32_t) (bits >> 32) & 0x7FFFFFFFu;
}

/*
 * maxsub_f64_step() without checks: for up to 32 inputs after the identity, each with a magnitude
 * within maxsub_f64_bound.  Then no input is infinite or NaN, and all sums are finite.
 */
GPUAGG_HD gpuagg_maxsub_f64
maxsub_f64_bounded_step(gpuagg_maxsub_f64 a, double x)
{
	gpuagg_maxsub_f64 r;
	double suf = a.suffix + x;

	r.flags = a.flags;
	r.total = a.total + x;
	r.prefix = a.prefix > r.total ? a.prefix : r.total;
	r.suffix = suf > 0 ? suf : 0;
	r.best = a.best > r.suffix ? a.best : r.suffix;
	return r;
}

/*
 * Returns the maximum subarray sum of a state, with its flags applied.  If it is infinite without
 * flags, finite sums overflowed.
 */
GPUAGG_HD double
maxsub_f64_best(gpuagg_maxsub_f64 s)
{
	if ((s.flags & GPUAGG_MAXSUB_NAN) ||
		((s.flags & GPUAGG_MAXSUB_PINF) && (s.flags & GPUAGG_MAXSUB_NINF)))
		return NAN;
	return (s.flags & GPUAGG_MAXSUB_PINF) ? INFINITY : s.best;
}

MONOID_NO_ERROR(maxsub_f64, gpuagg_maxsub_f64)

MONOID_IDENTITY(longest_run, gpuagg_run, 0, 0, 0, 0)

/* Returns the state of one row: a run of length 1 if x is true, else no run. */
GPUAGG_HD gpuagg_run
longest_run_lift(int8_t x)
{
	int64_t p = x != 0;
	gpuagg_run r = {1, p, p, p};

	return r;
}

/*
 * Combines states of adjacent ranges of rows. A run may cross from the end of a to the start of b.
 */
GPUAGG_HD gpuagg_run
longest_run_combine(gpuagg_run a, gpuagg_run b)
{
	gpuagg_run r;
	int64_t cross = a.suffix + b.prefix;

	r.len = a.len + b.len;
	r.prefix = a.prefix == a.len ? a.len + b.prefix : a.prefix;
	r.suffix = b.suffix == b.len ? b.len + a.suffix : b.suffix;
	r.best = a.best > b.best ? a.best : b.best;
	r.best = r.best > cross ? r.best : cross;
	return r;
}
MONOID_PLAIN_STEP(longest_run, int8_t, gpuagg_run)
MONOID_NO_ERROR(longest_run, gpuagg_run)

/*
 * Longest strictly ascending run of order-preserving codes.  The input's value is 0 for NULL, which
 * ends a run and belongs to none.
 */
MONOID_IDENTITY(longest_asc, gpuagg_asc, 0, 0, 0, 0, 0, 0)

/* Returns the state of one row: a run of length 1, or no run if the input is NULL. */
GPUAGG_HD gpuagg_asc
longest_asc_lift(gpuagg_kv x)
{
	int64_t p = x.value != 0;
	gpuagg_asc r = {1, p, p, p, x.key, x.key};

	return r;
}

/*
 * Combines states of adjacent ranges of rows. The last run of a continues in b if b starts with a
 * larger code.
 */
GPUAGG_HD gpuagg_asc
longest_asc_combine(gpuagg_asc a, gpuagg_asc b)
{
	gpuagg_asc r;
	int joins;

	if (a.len == 0)
		return b;
	if (b.len == 0)
		return a;
	joins = a.suffix > 0 && b.prefix > 0 && a.last < b.first;
	r.len = a.len + b.len;
	r.prefix = (joins && a.prefix == a.len) ? a.len + b.prefix : a.prefix;
	r.suffix = (joins && b.suffix == b.len) ? b.len + a.suffix : b.suffix;
	r.best = a.best > b.best ? a.best : b.best;
	if (joins && a.suffix + b.prefix > r.best)
		r.best = a.suffix + b.prefix;
	r.first = a.first;
	r.last = b.last;
	return r;
}
MONOID_PLAIN_STEP(longest_asc, gpuagg_kv, gpuagg_asc)
MONOID_NO_ERROR(longest_asc, gpuagg_asc)

/*
 * Composition of functions v -> x * v + y.  combine(a, b) applies a first, and then b: v -> b.x *
 * (a.x * v + a.y) + b.y.
 */
MONOID_IDENTITY(linear, gpuagg_f64x2, 1.0, 0.0)

GPUAGG_HD gpuagg_f64x2
linear_lift(gpuagg_f64x2 in)
{
	return in;
}

GPUAGG_HD gpuagg_f64x2
linear_combine(gpuagg_f64x2 a, gpuagg_f64x2 b)
{
	gpuagg_f64x2 r;

	/* the identity leaves infinities unchanged: 0 * inf would be NaN */
	if (a.x == 1.0 && a.y == 0.0)
		return b;
	if (b.x == 1.0 && b.y == 0.0)
		return a;
	r.x = a.x * b.x;
	r.y = b.x * a.y + b.y;
	return r;
}
MONOID_PLAIN_STEP(linear, gpuagg_f64x2, gpuagg_f64x2)
MONOID_NO_ERROR(linear, gpuagg_f64x2)

/* Product of k by k matrices, row-major, left to right in input order. */
#define MONOID_MATRIX(name, k, state_t) \
	GPUAGG_HD state_t name##_identity(void) \
	{ \
		state_t r; \
		for (int i = 0; i < (k) * (k); i++) \
			r.m[i] = (i / (k) == i % (k)) ? 1.0 : 0.0; \
		return r; \
	} \
	/* combine skips the identity to leave infinities unchanged: 0 * inf is NaN */ \
	GPUAGG_HD int name##_is_identity(state_t a) \
	{ \
		for (int i = 0; i < (k) * (k); i++) \
			if (a.m[i] != ((i / (k) == i % (k)) ? 1.0 : 0.0)) \
				return 0; \
		return 1; \
	} \
	GPUAGG_HD state_t name##_lift(state_t x) \
	{ \
		return x; \
	} \
	GPUAGG_HD state_t name##_combine(state_t a, state_t b) \
	{ \
		state_t r; \
		if (name##_is_identity(a)) \
			return b; \
		if (name##_is_identity(b)) \
			return a; \
		for (int i = 0; i < (k); i++) \
			for (int j = 0; j < (k); j++) \
			{ \
				double s = 0.0; \
				for (int l = 0; l < (k); l++) \
					s += a.m[i * (k) + l] * b.m[l * (k) + j]; \
				r.m[i * (k) + j] = s; \
			} \
		return r; \
	} \
	MONOID_PLAIN_STEP(name, state_t, state_t) \
	MONOID_NO_ERROR(name, state_t)

MONOID_MATRIX(mat2, 2, gpuagg_mat2)
MONOID_MATRIX(mat3, 3, gpuagg_mat3)
MONOID_MATRIX(mat4, 4, gpuagg_mat4)
MONOID_MATRIX(mat5, 5, gpuagg_mat5)

#endif /* GPUAGG_MONOID_ORDERED_H */
