/*
 * log_edges.h
 *	  The edges of log-spaced bins: the same doubles on every machine.
 *
 * Edge i of n bins between lo and hi is lo * (hi / lo)^(i / n).  exp() and log() of the C library
 * differ in the last digit between releases.  So edges are computed only by additions,
 * multiplications and divisions, which IEEE 754 defines exactly, on pairs of doubles with about 100
 * bits.  After one rounding at the end, edge i is the double nearest to the true value, unless that
 * is within 2^-88 of the middle between two doubles.  Compile with contraction off.
 */
#ifndef GPUAGG_LOG_EDGES_H
#define GPUAGG_LOG_EDGES_H

#include <math.h>

/* A number as the sum of two doubles. The second is below half of the last digit of the first. */
typedef struct gpuagg_pair
{
	double hi, lo;
} gpuagg_pair;

/* Returns a as a pair. */
static inline gpuagg_pair
pair_of(double a)
{
	gpuagg_pair r = {a, 0};

	return r;
}

/* Returns the exact sum a + b. Requires |a| >= |b|, or a = 0. */
static inline gpuagg_pair
pair_fast_sum(double a, double b)
{
	gpuagg_pair r = {a + b, 0};

	r.lo = b - (r.hi - a);
	return r;
}

/* Returns the exact sum a + b. */
static inline gpuagg_pair
pair_sum(double a, double b)
{
	gpuagg_pair r = {a + b, 0};
	double part = r.hi - a;

	r.lo = (a - (r.hi - part)) + (b - part);
	return r;
}

/* Returns the exact product a * b (Dekker), for factors below 2^996. */
static inline gpuagg_pair
pair_product(double a, double b)
{
	gpuagg_pair r = {a * b, 0};
	double t = 134217729.0 * a, u = 134217729.0 * b;
	double a1 = t - (t - a), a2 = a - a1, b1 = u - (u - b), b2 = b - b1;

	r.lo = ((a1 * b1 - r.hi) + a1 * b2 + a2 * b1) + a2 * b2;
	return r;
}

/* Returns a + b, rounded to a pair. */
static inline gpuagg_pair
pair_add(gpuagg_pair a, gpuagg_pair b)
{
	gpuagg_pair s = pair_sum(a.hi, b.hi);
	gpuagg_pair t = pair_sum(a.lo, b.lo);

	s = pair_fast_sum(s.hi, s.lo + t.hi);
	return pair_fast_sum(s.hi, s.lo + t.lo);
}

/* Returns a * b, rounded to a pair. */
static inline gpuagg_pair
pair_mul(gpuagg_pair a, gpuagg_pair b)
{
	gpuagg_pair p = pair_product(a.hi, b.hi);

	return pair_fast_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

/* Returns a * b for a double b, rounded to a pair. */
static inline gpuagg_pair
pair_scale(gpuagg_pair a, double b)
{
	gpuagg_pair p = pair_product(a.hi, b);

	return pair_fast_sum(p.hi, p.lo + a.lo * b);
}

/* Returns a / b, rounded to a pair. */
static inline gpuagg_pair
pair_div(gpuagg_pair a, gpuagg_pair b)
{
	double q1 = a.hi / b.hi, q2, q3;

	a = pair_add(a, pair_scale(b, -q1));
	q2 = a.hi / b.hi;
	a = pair_add(a, pair_scale(b, -q2));
	q3 = a.hi / b.hi;
	return pair_add(pair_fast_sum(q1, q2), pair_of(q3));
}

static const gpuagg_pair pair_ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/*
 * Returns the natural logarithm of a finite x > 0: 2 atanh((m - 1) / (m + 1)) + e ln 2 for x = m
 * 2^e.
 */
static inline gpuagg_pair
pair_log(double x)
{
	int e;
	double m = frexp(x, &e);
	gpuagg_pair s, square, sum = {0, 0};

	if (m < 0.70710678118654752)
	{
		m *= 2;
		e--;
	}
	s = pair_div(pair_sum(m, -1), pair_sum(m, 1));
	square = pair_mul(s, s);
	/* |s| < 0.172: the omitted terms are below 2^-120 */
	for (int k = 24; k >= 0; k--)
		sum = pair_add(pair_mul(sum, square), pair_div(pair_of(1), pair_of(2 * k + 1)));
	sum = pair_scale(pair_mul(sum, s), 2);
	return pair_add(sum, pair_scale(pair_ln2, e));
}

/* Returns exp(y) for 0 <= y < 2000 as a number near 1 times 2^*exponent. */
static inline gpuagg_pair
pair_exp(gpuagg_pair y, int *exponent)
{
	/* avoids converting a NaN, which results from edges that no double can represent */
	int k = y.hi < 2000 ? (int) (y.hi / pair_ln2.hi + 0.5) : 0;
	gpuagg_pair r = pair_add(y, pair_scale(pair_ln2, -k));
	gpuagg_pair p = pair_of(0);

	/* |r| < 0.35: for r / 256, 11 terms of exp(r) - 1 are enough; the result is squared 8 times */
	r = pair_scale(r, 1.0 / 256);
	for (int j = 11; j >= 1; j--)
		p = pair_div(pair_mul(r, pair_add(pair_of(1), p)), pair_of(j));
	for (int i = 0; i < 8; i++)
		p = pair_add(pair_scale(p, 2), pair_mul(p, p));
	*exponent = k;
	return pair_add(pair_of(1), p);
}

/*
 * Log-spaced bins: n bins between lo and hi, and numbers from which gpuagg_log_edge() computes
 * their edges.
 */
typedef struct gpuagg_log_range
{
	double lo, hi;
	int n;
	double mantissa; /* mantissa of lo, in [0.5, 1) */
	int exponent;
	gpuagg_pair span; /* log(hi / lo) */
} gpuagg_log_range;

/*
 * Prepares the edges of n log-spaced bins between lo and hi.  Requires 0 < lo < hi, both finite,
 * and n > 0.
 */
static inline gpuagg_log_range
gpuagg_log_range_of(double lo, double hi, int n)
{
	gpuagg_log_range r = {lo, hi, n, 0, 0, {0, 0}};

	r.mantissa = frexp(lo, &r.exponent);
	r.span = pair_add(pair_log(hi), pair_scale(pair_log(lo), -1));
	return r;
}

/* Returns edge i: lo for 0, hi for n. Edges ascend with i. */
static inline double
gpuagg_log_edge(const gpuagg_log_range *r, int i)
{
	int exponent;
	gpuagg_pair part;
	double edge;

	if (i <= 0)
		return r->lo;
	if (i >= r->n)
		return r->hi;
	part = pair_div(pair_scale(r->span, i), pair_of(r->n));
	part = pair_scale(pair_exp(part, &exponent), r->mantissa);
	edge = ldexp(part.hi, exponent + r->exponent);
	return edge < r->lo ? r->lo : edge > r->hi ? r->hi : edge;
}

#endif /* GPUAGG_LOG_EDGES_H */
