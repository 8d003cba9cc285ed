/*
 * monoid.h
 *	  The operators of gpuagg, defined once for gcc and nvcc.
 *
 * A monoid is a state type with
 *
 *	name_identity()		the neutral state
 *	name_lift(x)		the state of one input
 *	name_combine(a, b)	associative; a comes before b in input order
 *	name_step(a, x)		a with one more input.  Equals combine(a, lift(x)) up to float rounding;
 *						for float sums it equals core's transition function bit for bit
 *	name_error(a, b, r)	error bits (MonoidError) of r = combine(a, b); for steps b is lift(x)
 *
 * States are plain data.  They may be copied as bytes between processes and to the device.  Nothing
 * here depends on PostgreSQL or CUDA's run time.  Errors are bits, which the caller reports.
 *
 * Floating point: compile with contraction off (gcc -ffp-contract=off, nvcc -fmad=false), so that
 * both compilers round as core does.
 */
#ifndef GPUAGG_MONOID_H
#define GPUAGG_MONOID_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GPUAGG_HD static __host__ __device__ __forceinline__
#else
#define GPUAGG_HD static inline
#endif

/*
 * On the host, 128-bit values are aligned to a multiple of 8, as palloc aligns them, like core's
 * int128.  Layouts are the same on both.
 */
#ifdef __CUDACC__
typedef __int128 gpuagg_i128;
typedef unsigned __int128 gpuagg_u128;
#else
typedef __int128 gpuagg_i128 __attribute__((aligned(8)));
typedef unsigned __int128 gpuagg_u128 __attribute__((aligned(8)));
#endif

/* Error bits of a reduction: the bitwise or over all rows. */
typedef enum MonoidError
{
	MONOID_ERR_NONE = 0,
	MONOID_ERR_OVERFLOW = 1,    /* finite inputs gave an infinite float */
	MONOID_ERR_UNDERFLOW = 2,   /* nonzero factors gave a zero product */
	MONOID_ERR_INT_OVERFLOW = 4 /* an integer or decimal sum exceeded its range */
} MonoidError;

/* How a GPU updates a state in place; see monoid_list.h. */
typedef enum MonoidAtomic
{
	MONOID_ATOMIC_HDW,
	MONOID_ATOMIC_CAS,
	MONOID_ATOMIC_XCG
} MonoidAtomic;

/* Inputs and states of several values. */
typedef struct gpuagg_f64x2
{
	double x, y;
} gpuagg_f64x2;

/* Unsigned 192-bit sum of squares: lo has the low 128 bits, hi the carries. */
typedef struct gpuagg_i192
{
	gpuagg_u128 lo;
	uint64_t hi;
	uint64_t pad;
} gpuagg_i192;

/* Layout of core's float8_accum transition array: {N, Sx, Sxx}. */
typedef struct gpuagg_accum
{
	double n, sx, sxx;
} gpuagg_accum;

/* Layout of core's float8_regr_accum array: {N, Sx, Sxx, Sy, Syy, Sxy}. */
typedef struct gpuagg_regr
{
	double n, sx, sxx, sy, syy, sxy;
} gpuagg_regr;

/*
 * Number and mean of inputs, and the sums of the second, third and fourth powers of their
 * deviations from the mean. If an input is NaN or infinite, all but n are NaN.
 */
typedef struct gpuagg_moments
{
	double n, mean, m2, m3, m4;
} gpuagg_moments;

/* An order-preserving code of a key, and a code of its value; see argmax below. */
typedef struct gpuagg_kv
{
	int64_t key, value;
} gpuagg_kv;

/*
 * State of the maximum subarray sum: the sum of all inputs, and the largest sums of a prefix, of a
 * suffix and of any subarray; see monoid_ordered.h.
 */
typedef struct gpuagg_maxsub_i64
{
	int64_t total, prefix, suffix, best;
} gpuagg_maxsub_i64;

/* State of the maximum subarray sum of doubles; members as in gpuagg_maxsub_i64. */
typedef struct gpuagg_maxsub_f64
{
	double total, prefix, suffix, best;
	int64_t flags; /* which of GPUAGG_MAXSUB_NAN, _PINF, _NINF occurred */
} gpuagg_maxsub_f64;

/*
 * State of the longest run of true: the number of inputs, and the lengths of the run at the start,
 * of the run at the end, and of the longest one.
 */
typedef struct gpuagg_run
{
	int64_t len, prefix, suffix, best;
} gpuagg_run;

/* State of the longest ascending run: as gpuagg_run, and the codes of the first and last input. */
typedef struct gpuagg_asc
{
	int64_t len, prefix, suffix, best, first, last;
} gpuagg_asc;

/* Matrices of doubles, row by row. */
typedef struct gpuagg_mat2
{
	double m[4];
} gpuagg_mat2;
typedef struct gpuagg_mat3
{
	double m[9];
} gpuagg_mat3;
typedef struct gpuagg_mat4
{
	double m[16];
} gpuagg_mat4;
typedef struct gpuagg_mat5
{
	double m[25];
} gpuagg_mat5;

/* The numbers of the operators: the rows of monoid_list.h, in their order. */
typedef enum MonoidId
{
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) MONOID_##NAME,
#include "operators/monoid_list.h"
#undef MONOID
	MONOID_COUNT_OF_IDS
} MonoidId;

/* A row of the list as data. */
typedef struct MonoidInfo
{
	const char *name;
	int input_size;
	int state_size;
	int commutative;
	MonoidAtomic atomic;
	const char *text;
} MonoidInfo;

/* ---- helpers ---------------------------------------------------------- */

/*
 * Returns whether a > b in PostgreSQL's float order: NaN equals NaN and is above all other values.
 */
GPUAGG_HD int
gpuagg_f64_gt(double a, double b)
{
	return !isnan(b) && (isnan(a) || a > b);
}

/* Returns whether a < b in PostgreSQL's float order. */
GPUAGG_HD int
gpuagg_f64_lt(double a, double b)
{
	return !isnan(a) && (isnan(b) || a < b);
}

/*
 * Returns a 64-bit integer that compares like the double in PostgreSQL's order, NaN last.  The code
 * of -0 is below that of 0.  If they must be equal, pass x + 0.0.
 */
GPUAGG_HD int64_t
gpuagg_f64_code(double x)
{
	union
	{
		double f;
		int64_t i;
	} u;

	u.f = x;
	if (isnan(x))
		return 0x7FF8000000000000LL;
	return u.i >= 0 ? u.i : u.i ^ INT64_MAX;
}

/* Returns the double with this gpuagg_f64_code(). */
GPUAGG_HD double
gpuagg_code_f64(int64_t code)
{
	union
	{
		double f;
		int64_t i;
	} u;

	u.i = code >= 0 ? code : code ^ INT64_MAX;
	return u.f;
}

/* Most monoids have no errors. */
#define MONOID_NO_ERROR(name, state_t) \
	GPUAGG_HD int name##_error(state_t a, state_t b, state_t r) \
	{ \
		(void) a; \
		(void) b; \
		(void) r; \
		return MONOID_ERR_NONE; \
	}

/* The step of most monoids combines with the lifted input. */
#define MONOID_PLAIN_STEP(name, input_t, state_t) \
	GPUAGG_HD state_t name##_step(state_t a, input_t x) \
	{ \
		return name##_combine(a, name##_lift(x)); \
	}

/* The neutral state of a struct, by its members. */
#define MONOID_IDENTITY(name, state_t, ...) \
	GPUAGG_HD state_t name##_identity(void) \
	{ \
		state_t r = {__VA_ARGS__}; \
		return r; \
	}

/* A monoid with a scalar state, from an identity and two expressions. */
#define MONOID_SCALAR(name, input_t, state_t, ident, liftexpr, combexpr) \
	GPUAGG_HD state_t name##_identity(void) \
	{ \
		return (ident); \
	} \
	GPUAGG_HD state_t name##_lift(input_t x) \
	{ \
		(void) x; \
		return (liftexpr); \
	} \
	GPUAGG_HD state_t name##_combine(state_t a, state_t b) \
	{ \
		return (combexpr); \
	} \
	MONOID_PLAIN_STEP(name, input_t, state_t)

/* MONOID_SCALAR for a monoid without errors. */
#define MONOID_SIMPLE(name, input_t, state_t, ident, liftexpr, combexpr) \
	MONOID_SCALAR(name, input_t, state_t, ident, liftexpr, combexpr) \
	MONOID_NO_ERROR(name, state_t)

/* ---- counts, sums ----------------------------------------------------- */

MONOID_SIMPLE(count, int8_t, int64_t, 0, 1, a + b)
MONOID_SIMPLE(sum_i64, int64_t, int64_t, 0, x, (int64_t) ((uint64_t) a + (uint64_t) b))
MONOID_SIMPLE(sum_i128, int64_t, gpuagg_i128, 0, x, a + b)
MONOID_SIMPLE(sumsq_i128, int32_t, gpuagg_i128, 0, (int64_t) x *(int64_t) x, a + b)

MONOID_IDENTITY(sumsq_i192, gpuagg_i192, 0, 0, 0)

/* Returns x * x. */
GPUAGG_HD gpuagg_i192
sumsq_i192_lift(int64_t x)
{
	gpuagg_i192 r = {0, 0, 0};

	r.lo = (gpuagg_u128) ((gpuagg_i128) x * (gpuagg_i128) x);
	return r;
}

/* Returns a + b. The carry of the low 128 bits goes to hi. */
GPUAGG_HD gpuagg_i192
sumsq_i192_combine(gpuagg_i192 a, gpuagg_i192 b)
{
	gpuagg_i192 r;

	r.lo = a.lo + b.lo;
	r.hi = a.hi + b.hi + (r.lo < a.lo);
	r.pad = 0;
	return r;
}
MONOID_PLAIN_STEP(sumsq_i192, int64_t, gpuagg_i192)
MONOID_NO_ERROR(sumsq_i192, gpuagg_i192)

/* Decimals. The caller keeps |x| below 2^126 / rows by its choice of scale. */
MONOID_SCALAR(sum_dec, gpuagg_i128, gpuagg_i128, 0, x,
			  (gpuagg_i128) ((gpuagg_u128) a + (gpuagg_u128) b))
GPUAGG_HD int
sum_dec_error(gpuagg_i128 a, gpuagg_i128 b, gpuagg_i128 r)
{
	/* signed overflow: both operands differ in sign from the result */
	return (((a ^ r) & (b ^ r)) < 0) ? MONOID_ERR_INT_OVERFLOW : MONOID_ERR_NONE;
}

/* -0 is the identity of IEEE addition: a sum of negative zeros stays -0. */
MONOID_SCALAR(sum_f32, float, float, -0.0f, x, a + b)
/* Reports an overflow if finite a and b have an infinite sum r. */
GPUAGG_HD int
sum_f32_error(float a, float b, float r)
{
	return (isinf(r) && !isinf(a) && !isinf(b)) ? MONOID_ERR_OVERFLOW : MONOID_ERR_NONE;
}

MONOID_SCALAR(sum_f64, double, double, -0.0, x, a + b)
/* Reports an overflow if finite a and b have an infinite sum r. */
GPUAGG_HD int
sum_f64_error(double a, double b, double r)
{
	return (isinf(r) && !isinf(a) && !isinf(b)) ? MONOID_ERR_OVERFLOW : MONOID_ERR_NONE;
}

/* ---- float moments ---------------------------------------------------- */

MONOID_IDENTITY(accum_f64, gpuagg_accum, 0, 0, 0)

/* Returns the state of one input. As in core, its deviation is NaN if the input is not finite. */
GPUAGG_HD gpuagg_accum
accum_f64_lift(double x)
{
	gpuagg_accum r;

	r.n = 1.0;
	r.sx = x;
	r.sxx = (isnan(x) || isinf(x)) ? NAN : 0.0;
	return r;
}

/*
 * Combines the moments of two sets of inputs by Chan, Golub and LeVeque, "Updating Formulae and a
 * Pairwise Algorithm for Computing Sample Variances" (1979), as core's float8_combine does.
 */
GPUAGG_HD gpuagg_accum
accum_f64_combine(gpuagg_accum a, gpuagg_accum b)
{
	gpuagg_accum r;
	double t;

	if (a.n == 0.0)
		return b;
	if (b.n == 0.0)
		return a;
	r.n = a.n + b.n;
	r.sx = a.sx + b.sx;
	t = a.sx / a.n - b.sx / b.n;
	r.sxx = a.sxx + b.sxx + a.n * b.n * t * t / r.n;
	return r;
}

/*
 * Adds an input by Youngs and Cramer, "Some Results Relevant to Choice of Sum and Sum-of-Product
 * Algorithms" (1971), as core's float8_accum does.
 */
GPUAGG_HD gpuagg_accum
accum_f64_step(gpuagg_accum a, double x)
{
	gpuagg_accum r;

	r.n = a.n + 1.0;
	r.sx = a.sx + x;
	if (a.n > 0.0)
	{
		double t = x * r.n - r.sx;

		r.sxx = a.sxx + t * t / (r.n * a.n);
		if (isinf(r.sx) || isinf(r.sxx))
			r.sxx = (!isinf(a.sx) && !isinf(x)) ? r.sxx : NAN;
	}
	else
		r.sxx = (isnan(x) || isinf(x)) ? NAN : a.sxx;
	return r;
}

/* Reports an overflow if a sum became infinite though no state had an infinite one. */
GPUAGG_HD int
accum_f64_error(gpuagg_accum a, gpuagg_accum b, gpuagg_accum r)
{
	if ((isinf(r.sx) || isinf(r.sxx)) && !isinf(a.sx) && !isinf(b.sx) && !isinf(a.sxx) &&
		!isinf(b.sxx))
		return MONOID_ERR_OVERFLOW;
	return MONOID_ERR_NONE;
}

MONOID_IDENTITY(regr_f64, gpuagg_regr, 0, 0, 0, 0, 0, 0)

/* Returns the state of one pair. Core's aggregates take (Y, X): in.x is X, in.y is Y. */
GPUAGG_HD gpuagg_regr
regr_f64_lift(gpuagg_f64x2 in)
{
	gpuagg_regr r = {1.0, in.x, 0.0, in.y, 0.0, 0.0};

	if (isnan(in.x) || isinf(in.x))
		r.sxx = r.sxy = NAN;
	if (isnan(in.y) || isinf(in.y))
		r.syy = r.sxy = NAN;
	return r;
}

/* As accum_f64_combine(), for pairs. */
GPUAGG_HD gpuagg_regr
regr_f64_combine(gpuagg_regr a, gpuagg_regr b)
{
	gpuagg_regr r;
	double tx, ty;

	if (a.n == 0.0)
		return b;
	if (b.n == 0.0)
		return a;
	r.n = a.n + b.n;
	r.sx = a.sx + b.sx;
	tx = a.sx / a.n - b.sx / b.n;
	r.sxx = a.sxx + b.sxx + a.n * b.n * tx * tx / r.n;
	r.sy = a.sy + b.sy;
	ty = a.sy / a.n - b.sy / b.n;
	r.syy = a.syy + b.syy + a.n * b.n * ty * ty / r.n;
	r.sxy = a.sxy + b.sxy + a.n * b.n * tx * ty / r.n;
	return r;
}

/* As accum_f64_step(), for pairs. */
GPUAGG_HD gpuagg_regr
regr_f64_step(gpuagg_regr a, gpuagg_f64x2 in)
{
	gpuagg_regr r;

	r.n = a.n + 1.0;
	r.sx = a.sx + in.x;
	r.sy = a.sy + in.y;
	r.sxx = a.sxx;
	r.syy = a.syy;
	r.sxy = a.sxy;
	if (a.n > 0.0)
	{
		double tx = in.x * r.n - r.sx;
		double ty = in.y * r.n - r.sy;
		double scale = 1.0 / (r.n * a.n);

		r.sxx += tx * tx * scale;
		r.syy += ty * ty * scale;
		r.sxy += tx * ty * scale;
		if (isinf(r.sx) || isinf(r.sxx) || isinf(r.sy) || isinf(r.syy) || isinf(r.sxy))
		{
			/* an infinite input gives NaN; finite inputs that overflow stay infinite */
			if (isinf(r.sxx) && (isinf(a.sx) || isinf(in.x)))
				r.sxx = NAN;
			if (isinf(r.syy) && (isinf(a.sy) || isinf(in.y)))
				r.syy = NAN;
			if (isinf(r.sxy) && (isinf(a.sx) || isinf(in.x) || isinf(a.sy) || isinf(in.y)))
				r.sxy = NAN;
		}
	}
	else
	{
		if (isnan(in.x) || isinf(in.x))
			r.sxx = r.sxy = NAN;
		if (isnan(in.y) || isinf(in.y))
			r.syy = r.sxy = NAN;
	}
	return r;
}

/* Reports an overflow, as accum_f64_error() does. */
GPUAGG_HD int
regr_f64_error(gpuagg_regr a, gpuagg_regr b, gpuagg_regr r)
{
	int xinf = isinf(a.sx) || isinf(b.sx);
	int yinf = isinf(a.sy) || isinf(b.sy);

	if (((isinf(r.sx) || isinf(r.sxx)) && !xinf) || ((isinf(r.sy) || isinf(r.syy)) && !yinf) ||
		(isinf(r.sxy) && !xinf && !yinf))
		return MONOID_ERR_OVERFLOW;
	return MONOID_ERR_NONE;
}

MONOID_IDENTITY(moments_f64, gpuagg_moments, 0, 0, 0, 0, 0)

/* Returns the state of one input. */
GPUAGG_HD gpuagg_moments
moments_f64_lift(double x)
{
	gpuagg_moments r = {1.0, x, 0.0, 0.0, 0.0};

	if (isnan(x) || isinf(x))
		r.mean = r.m2 = r.m3 = r.m4 = NAN;
	return r;
}

/*
 * Combines the moments of two sets of inputs by Pebay, "Formulas for Robust, One-Pass Parallel
 * Computation of Covariances and Arbitrary-Order Statistical Moments" (SAND2008-6212), section 3.
 */
GPUAGG_HD gpuagg_moments
moments_f64_combine(gpuagg_moments a, gpuagg_moments b)
{
	gpuagg_moments r;
	double d, d2, term;

	if (a.n == 0.0)
		return b;
	if (b.n == 0.0)
		return a;
	r.n = a.n + b.n;
	/* equal means give deviations of exactly 0 */
	d = (b.mean - a.mean) / r.n;
	d2 = d * d;
	term = d2 * a.n * b.n;
	r.mean = a.mean + d * b.n;
	r.m2 = a.m2 + b.m2 + term * r.n;
	r.m3 = a.m3 + b.m3 + term * d * (a.n - b.n) * r.n + 3.0 * d * (a.n * b.m2 - b.n * a.m2);
	r.m4 = a.m4 + b.m4 + term * d2 * (a.n * a.n - a.n * b.n + b.n * b.n) * r.n +
		6.0 * d2 * (a.n * a.n * b.m2 + b.n * b.n * a.m2) + 4.0 * d * (a.n * b.m3 - b.n * a.m3);
	return r;
}

/*
 * Adds an input by Terriberry, "Computing Higher-Order Moments Online" (2007): the combination with
 * the state of one input, which has no deviations.
 */
GPUAGG_HD gpuagg_moments
moments_f64_step(gpuagg_moments a, double x)
{
	gpuagg_moments r;
	double d, d2, term;

	if (a.n == 0.0 || isnan(x) || isinf(x))
		return moments_f64_combine(a, moments_f64_lift(x));
	r.n = a.n + 1.0;
	d = (x - a.mean) / r.n;
	d2 = d * d;
	term = d2 * a.n;
	r.mean = a.mean + d;
	r.m2 = a.m2 + term * r.n;
	r.m3 = a.m3 + term * d * (a.n - 1.0) * r.n - 3.0 * d * a.m2;
	r.m4 = a.m4 + term * d2 * (a.n * a.n - a.n + 1.0) * r.n + 6.0 * d2 * a.m2 - 4.0 * d * a.m3;
	return r;
}

/* Returns whether all sums of a state are finite. */
GPUAGG_HD int
gpuagg_moments_finite(gpuagg_moments a)
{
	return !isnan(a.m2) && !isinf(a.m2) && !isnan(a.m3) && !isinf(a.m3) && !isnan(a.m4) &&
		!isinf(a.m4);
}

/* Reports an overflow if finite states, which have only finite inputs, give one that is not. */
GPUAGG_HD int
moments_f64_error(gpuagg_moments a, gpuagg_moments b, gpuagg_moments r)
{
	return gpuagg_moments_finite(a) && gpuagg_moments_finite(b) && !gpuagg_moments_finite(r) ?
		MONOID_ERR_OVERFLOW :
		MONOID_ERR_NONE;
}

/* ---- extremes --------------------------------------------------------- */

MONOID_SIMPLE(min_i32, int32_t, int32_t, INT32_MAX, x, a < b ? a : b)
MONOID_SIMPLE(max_i32, int32_t, int32_t, INT32_MIN, x, a > b ? a : b)
MONOID_SIMPLE(min_i64, int64_t, int64_t, INT64_MAX, x, a < b ? a : b)
MONOID_SIMPLE(max_i64, int64_t, int64_t, INT64_MIN, x, a > b ? a : b)

#define GPUAGG_I128_MAX ((gpuagg_i128) (~(gpuagg_u128) 0 >> 1))
#define GPUAGG_I128_MIN (-GPUAGG_I128_MAX - 1)
MONOID_SIMPLE(min_dec, gpuagg_i128, gpuagg_i128, GPUAGG_I128_MAX, x, a < b ? a : b)
MONOID_SIMPLE(max_dec, gpuagg_i128, gpuagg_i128, GPUAGG_I128_MIN, x, a > b ? a : b)

/*
 * If values are equal, the later one is taken, as in core's float8smaller and float8larger.  It
 * matters only for -0 and 0.  NaN, the greatest value, is min's identity.  max's identity is
 * -infinity, which is also the result for a group of -infinities.
 */
MONOID_SIMPLE(min_f32, float, float, NAN, x, gpuagg_f64_lt(a, b) ? a : b)
MONOID_SIMPLE(max_f32, float, float, -INFINITY, x, gpuagg_f64_gt(a, b) ? a : b)
MONOID_SIMPLE(min_f64, double, double, NAN, x, gpuagg_f64_lt(a, b) ? a : b)
MONOID_SIMPLE(max_f64, double, double, -INFINITY, x, gpuagg_f64_gt(a, b) ? a : b)

/*
 * Arg max and arg min.  The identity has the key that loses against all others, and the largest
 * value code, so that any input wins or ties.
 */
#define MONOID_ARG(name, worst, wins) \
	MONOID_IDENTITY(name, gpuagg_kv, worst, INT64_MAX) \
	GPUAGG_HD gpuagg_kv name##_lift(gpuagg_kv in) \
	{ \
		return in; \
	} \
\
	GPUAGG_HD gpuagg_kv name##_combine(gpuagg_kv a, gpuagg_kv b) \
	{ \
		if (a.key != b.key) \
			return (wins) ? a : b; \
		return a.value <= b.value ? a : b; \
	} \
	MONOID_PLAIN_STEP(name, gpuagg_kv, gpuagg_kv) \
	MONOID_NO_ERROR(name, gpuagg_kv)

MONOID_ARG(argmax, INT64_MIN, a.key > b.key)
MONOID_ARG(argmin, INT64_MAX, a.key < b.key)

/* ---- bits, products, small integers ------------------------------------ */

MONOID_SIMPLE(bit_and, int64_t, int64_t, -1, x, a &b)
MONOID_SIMPLE(bit_or, int64_t, int64_t, 0, x, a | b)
MONOID_SIMPLE(bit_xor, int64_t, int64_t, 0, x, a ^ b)

MONOID_SCALAR(product_f64, double, double, 1.0, x, a *b)
/* Reports an infinite product of finite factors, and a zero product of nonzero factors. */
GPUAGG_HD int
product_f64_error(double a, double b, double r)
{
	if (isinf(r) && !isinf(a) && !isinf(b))
		return MONOID_ERR_OVERFLOW;
	if (r == 0.0 && a != 0.0 && b != 0.0)
		return MONOID_ERR_UNDERFLOW;
	return MONOID_ERR_NONE;
}

MONOID_SIMPLE(hll_max, int32_t, int32_t, 0, x, a > b ? a : b)

#include "operators/monoid_ordered.h"

/* The list as data, defined in monoid.c. */
#ifdef __cplusplus
extern "C"
{
#endif
	extern const MonoidInfo gpuagg_monoids[MONOID_COUNT_OF_IDS];
#ifdef __cplusplus
}
#endif

#endif /* GPUAGG_MONOID_H */
