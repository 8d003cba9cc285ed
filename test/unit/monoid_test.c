/*
 * monoid_test.c
 *	  Tests all aggregate operators (operators/monoid.h): the laws of a monoid, and the results.
 *
 * The laws are tested for each row of monoid_list.h, so a new operator is tested without a change
 * here: identity, associativity, commutativity if the list claims it, and that a step equals
 * combining with the lifted input. States are made by steps over random inputs. Inputs are such
 * that floating-point arithmetic is exact; where the operator does not allow this, states are
 * compared with a tolerance. Results are compared with plain loops over the same inputs.
 */
#include "unit.h"

#include "operators/monoid.h"

#define ROUNDS 3000

/* ---- random inputs ----------------------------------------------------------- */

/* Returns whether the operator is associative for NaN and infinite inputs as well. */
static int
is_associative_for_specials(MonoidId id)
{
	return id != MONOID_LINEAR;
}

/* Returns a random float for which the operator is exact, so that order does not matter. */
static double
random_float_input(MonoidId id)
{
	static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0};

	if (is_associative_for_specials(id) && random_below(40) == 0)
		return special[random_below(5)];
	/* products of powers of two and sums of small integers are exact */
	if (id == MONOID_PRODUCT_F64)
		return ldexp(random_below(2) ? 1 : -1, (int) random_below(9) - 4);
	return (double) (random_below(2001) - 1000);
}

static int8_t
random_int8_t(MonoidId id)
{
	(void) id;
	return (int8_t) random_below(2);
}

static int32_t
random_int32_t(MonoidId id)
{
	if (id == MONOID_HLL_MAX)
		return (int32_t) random_below(52);
	return random_below(8) ? (int32_t) random_u64() : random_below(2) ? INT32_MAX : INT32_MIN;
}

static int64_t
random_int64_t(MonoidId id)
{
	if (id == MONOID_MAXSUB_I64)
		return random_below(7) - 3;
	return random_below(8) ? (int64_t) random_u64() : random_below(2) ? INT64_MAX : INT64_MIN;
}

static gpuagg_i128
random_gpuagg_i128(MonoidId id)
{
	gpuagg_u128 x = (gpuagg_u128) random_u64() << 64 | random_u64();

	(void) id;
	return (gpuagg_i128) x >> random_below(128);
}

static float
random_float(MonoidId id)
{
	return (float) random_float_input(id);
}

static double
random_double(MonoidId id)
{
	return random_float_input(id);
}

static gpuagg_f64x2
random_gpuagg_f64x2(MonoidId id)
{
	gpuagg_f64x2 r;

	/* few bits, so that the composition of a few maps is exact */
	if (id == MONOID_LINEAR)
	{
		r.x = (double) (random_below(9) - 4);
		r.y = (double) (random_below(17) - 8);
		return r;
	}
	r.x = random_float_input(id);
	r.y = random_float_input(id);
	return r;
}

static gpuagg_kv
random_gpuagg_kv(MonoidId id)
{
	gpuagg_kv r;

	(void) id;
	r.key = random_below(10) ? random_below(4) : random_below(2) ? INT64_MIN : INT64_MAX;
	r.value = random_below(10) ? random_below(4) : random_below(2) ? INT64_MIN : INT64_MAX;
	return r;
}

#define RANDOM_MATRIX(k) \
	static gpuagg_mat##k random_gpuagg_mat##k(MonoidId id) \
	{ \
		gpuagg_mat##k r; \
		(void) id; \
		for (int i = 0; i < k * k; i++) \
			r.m[i] = (double) (random_below(7) - 3); \
		return r; \
	}
RANDOM_MATRIX(2)
RANDOM_MATRIX(3)
RANDOM_MATRIX(4)
RANDOM_MATRIX(5)

/* ---- equality of states --------------------------------------------------------- */

/*
 * Returns whether two numbers differ by no more than the tolerance. NaN equals NaN, and -0 equals
 * 0.
 */
static int
near(double a, double b, double tolerance)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= tolerance;
}

#define SAME_SCALAR(type) \
	static int same_##type(type a, type b) \
	{ \
		return a == b; \
	}
#define SAME_BYTES(type) \
	static int same_##type(type a, type b) \
	{ \
		return memcmp(&a, &b, sizeof(type)) == 0; \
	}
#define SAME_FLOAT(type) \
	static int same_##type(type a, type b) \
	{ \
		return near(a, b, 0); \
	}

SAME_SCALAR(int32_t)
SAME_SCALAR(int64_t)
SAME_SCALAR(gpuagg_i128)
SAME_FLOAT(float)
SAME_FLOAT(double)
SAME_BYTES(gpuagg_i192)
SAME_BYTES(gpuagg_kv)
SAME_BYTES(gpuagg_maxsub_i64)
SAME_BYTES(gpuagg_run)
SAME_BYTES(gpuagg_asc)

static int
same_gpuagg_maxsub_f64(gpuagg_maxsub_f64 a, gpuagg_maxsub_f64 b)
{
	return a.flags == b.flags && near(maxsub_f64_best(a), maxsub_f64_best(b), 0);
}

/* Sums of squared deviations are rounded. Inputs are below 1000, so each row adds less than 1e6. */
static int
same_gpuagg_accum(gpuagg_accum a, gpuagg_accum b)
{
	return a.n == b.n && near(a.sx, b.sx, 0) && near(a.sxx, b.sxx, 1e-7 * (1 + a.n));
}

static int
same_gpuagg_regr(gpuagg_regr a, gpuagg_regr b)
{
	double eps = 1e-7 * (1 + a.n);

	return a.n == b.n && near(a.sx, b.sx, 0) && near(a.sy, b.sy, 0) && near(a.sxx, b.sxx, eps) &&
		near(a.syy, b.syy, eps) && near(a.sxy, b.sxy, eps);
}

/* Powers of deviations are rounded. Each row adds less than 2000 to the power. */
static int
same_gpuagg_moments(gpuagg_moments a, gpuagg_moments b)
{
	return a.n == b.n && near(a.mean, b.mean, 1e-10) && near(a.m2, b.m2, 1e-7 * (1 + a.n)) &&
		near(a.m3, b.m3, 1e-4 * (1 + a.n)) && near(a.m4, b.m4, 1e-1 * (1 + a.n));
}

static int
same_gpuagg_f64x2(gpuagg_f64x2 a, gpuagg_f64x2 b)
{
	return near(a.x, b.x, 0) && near(a.y, b.y, 0);
}

#define SAME_MATRIX(k) \
	static int same_gpuagg_mat##k(gpuagg_mat##k a, gpuagg_mat##k b) \
	{ \
		for (int i = 0; i < k * k; i++) \
			if (!near(a.m[i], b.m[i], 0)) \
				return 0; \
		return 1; \
	}
SAME_MATRIX(2)
SAME_MATRIX(3)
SAME_MATRIX(4)
SAME_MATRIX(5)

/* ---- laws --------------------------------------------------------------------- */

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static state_t random_state_##name(void) \
	{ \
		state_t s = name##_identity(); \
		for (int64_t n = random_below(5); n > 0; n--) \
			s = name##_step(s, random_##input_t(MONOID_##NAME)); \
		return s; \
	} \
	static void laws_##name(void) \
	{ \
		state_t e = name##_identity(); \
		for (int i = 0; i < ROUNDS; i++) \
		{ \
			state_t a = random_state_##name(); \
			state_t b = random_state_##name(); \
			state_t c = random_state_##name(); \
			input_t x = random_##input_t(MONOID_##NAME); \
			CHECK(same_##state_t(name##_combine(e, a), a), "left identity, round %d", i); \
			CHECK(same_##state_t(name##_combine(a, e), a), "right identity, round %d", i); \
			CHECK(same_##state_t(name##_combine(name##_combine(a, b), c), \
								 name##_combine(a, name##_combine(b, c))), \
				  "associativity, round %d", i); \
			CHECK(!(comm) || same_##state_t(name##_combine(a, b), name##_combine(b, a)), \
				  "commutativity, round %d", i); \
			CHECK(same_##state_t(name##_step(a, x), name##_combine(a, name##_lift(x))), \
				  "step, round %d", i); \
			CHECK(same_##state_t(name##_step(e, x), name##_lift(x)), "lift, round %d", i); \
			CHECK(name##_error(e, name##_lift(x), name##_step(e, x)) == MONOID_ERR_NONE, \
				  "error of one input, round %d", i); \
		} \
		CHECK(gpuagg_monoids[MONOID_##NAME].commutative == (comm), \
			  "the list has the commutativity"); \
		CHECK(gpuagg_monoids[MONOID_##NAME].state_size == sizeof(state_t), \
			  "the list has the size of the state"); \
		CHECK(MONOID_ATOMIC_##atomic == MONOID_ATOMIC_XCG || sizeof(state_t) <= 16, \
			  "a state of more than 16 bytes cannot be updated by compare-and-swap"); \
	}
#include "operators/monoid_list.h"
#undef MONOID

/* ---- results ---------------------------------------------------------------------- */

#define MAX_ROWS 60

static void
integers_by_wider_arithmetic(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_i192 squares = sumsq_i192_identity();
		gpuagg_i128 sum = sum_i128_identity(), expected_sum = 0;
		uint64_t word[4] = {0}; /* the expected sum of squares, least word first */

		for (int n = (int) random_below(MAX_ROWS); n > 0; n--)
		{
			int64_t x = random_int64_t(MONOID_SUM_I128);
			uint64_t m = x < 0 ? -(uint64_t) x : (uint64_t) x;
			uint64_t hi = m >> 32, lo = m & 0xFFFFFFFF;
			uint64_t product[3] = {lo * lo, 2 * hi * lo, hi * hi};

			sum = sum_i128_step(sum, x);
			expected_sum += x;
			squares = sumsq_i192_step(squares, x);
			/* long multiplication: hi^2 * 2^64 + 2 hi lo * 2^32 + lo^2, with explicit carries */
			for (int p = 0; p < 3; p++)
			{
				uint64_t add[4] = {0};
				uint64_t carry = 0;

				if (p == 0)
					add[0] = product[0];
				else if (p == 1)
				{
					/* 2 hi lo has up to 65 bits, so hi lo is shifted by 33 instead */
					add[0] = (hi * lo) << 33;
					add[1] = (hi * lo) >> 31;
				}
				else
					add[1] = product[2];
				for (int w = 0; w < 4; w++)
				{
					uint64_t before = word[w];

					word[w] += add[w] + carry;
					carry = carry ? word[w] <= before : word[w] < before;
				}
			}
		}
		CHECK(sum == expected_sum, "sum, round %d", i);
		CHECK((uint64_t) squares.lo == word[0] && (uint64_t) (squares.lo >> 64) == word[1] &&
				  squares.hi == word[2] && word[3] == 0,
			  "squares, round %d", i);
	}
}

static void
decimal_overflow(void)
{
	gpuagg_i128 big = GPUAGG_I128_MAX;

	CHECK(sum_dec_error(big, 1, sum_dec_step(big, 1)) == MONOID_ERR_INT_OVERFLOW,
		  "overflow upwards is an error");
	CHECK(sum_dec_error(-big, -2, sum_dec_step(-big, -2)) == MONOID_ERR_INT_OVERFLOW,
		  "overflow downwards is an error");
	CHECK(sum_dec_error(big, -1, sum_dec_step(big, -1)) == MONOID_ERR_NONE,
		  "a sum in range is no error");
}

static void
deviations_by_two_passes(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_regr regr = regr_f64_identity();
		gpuagg_accum accum = accum_f64_identity();
		gpuagg_f64x2 in[MAX_ROWS];
		int n = 1 + (int) random_below(MAX_ROWS);
		double offset = random_below(2) ? 0 : 1e6;
		long double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;

		for (int j = 0; j < n; j++)
		{
			in[j].x = offset + random_unit() * 100;
			in[j].y = random_unit() * 100 - offset;
			sx += in[j].x;
			sy += in[j].y;
			regr = regr_f64_step(regr, in[j]);
			accum = accum_f64_step(accum, in[j].x);
		}
		for (int j = 0; j < n; j++)
		{
			long double dx = in[j].x - sx / n;
			long double dy = in[j].y - sy / n;

			sxx += dx * dx;
			syy += dy * dy;
			sxy += dx * dy;
		}
		CHECK(near(regr.sxx, (double) sxx, 1e-3) && near(regr.syy, (double) syy, 1e-3) &&
				  near(regr.sxy, (double) sxy, 1e-3),
			  "regr, round %d", i);
		CHECK(regr.n == n && near(regr.sx, (double) sx, 1e-6) && near(regr.sy, (double) sy, 1e-6),
			  "sums, round %d", i);
		CHECK(accum.n == n && accum.sx == regr.sx && near(accum.sxx, (double) sxx, 1e-3),
			  "accum, round %d", i);
	}
}

/* Sums of powers of deviations, added one by one and combined from two parts. */
static void
central_moments_by_two_passes(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_moments part[2] = {moments_f64_identity(), moments_f64_identity()};
		gpuagg_moments all = moments_f64_identity(), both;
		double in[MAX_ROWS];
		int n = 1 + (int) random_below(MAX_ROWS);
		double offset = random_below(2) ? 0 : 1e6;
		long double sum = 0, m[5] = {0};

		for (int j = 0; j < n; j++)
		{
			in[j] = offset + random_unit() * random_unit() * 100;
			sum += in[j];
			all = moments_f64_step(all, in[j]);
			part[j % 3 == 0] = moments_f64_step(part[j % 3 == 0], in[j]);
		}
		both = moments_f64_combine(part[0], part[1]);
		for (int j = 0; j < n; j++)
			for (int k = 2; k < 5; k++)
				m[k] += powl(in[j] - sum / n, k);
		CHECK(all.n == n && near(all.mean, (double) (sum / n), 1e-6), "mean, round %d", i);
		CHECK(near(all.m2, (double) m[2], 1e-3) && near(both.m2, (double) m[2], 1e-3),
			  "second powers, round %d", i);
		CHECK(near(all.m3, (double) m[3], 1e-1) && near(both.m3, (double) m[3], 1e-1),
			  "third powers, round %d", i);
		CHECK(near(all.m4, (double) m[4], 1e1) && near(both.m4, (double) m[4], 1e1),
			  "fourth powers, round %d", i);
	}
}

/*
 * As in core's float8_accum, infinite inputs give NaN, and finite inputs that overflow are an
 * error.
 */
static void
float_overflow(void)
{
	gpuagg_accum a = accum_f64_lift(1e200);
	gpuagg_accum b = accum_f64_lift(-1e200);
	gpuagg_accum inf = accum_f64_lift(INFINITY);
	gpuagg_f64x2 p = {1e200, 1}, q = {-1e200, 2}, r = {INFINITY, 3};

	CHECK(accum_f64_error(a, b, accum_f64_step(a, -1e200)) == MONOID_ERR_OVERFLOW,
		  "accum: a step that overflows is an error");
	CHECK(accum_f64_error(a, b, accum_f64_combine(a, b)) == MONOID_ERR_OVERFLOW,
		  "accum: a combination that overflows is an error");
	CHECK(accum_f64_error(a, inf, accum_f64_step(a, INFINITY)) == MONOID_ERR_NONE,
		  "accum: an infinite input is no error");
	CHECK(isnan(accum_f64_step(a, INFINITY).sxx), "accum: an infinite input gives NaN");
	CHECK(isnan(accum_f64_step(accum_f64_step(inf, 1), -INFINITY).sx),
		  "accum: both infinities give NaN");
	CHECK(moments_f64_error(moments_f64_lift(1e80), moments_f64_lift(-1e80),
							moments_f64_step(moments_f64_lift(1e80), -1e80)) == MONOID_ERR_OVERFLOW,
		  "moments: a step that overflows is an error");
	CHECK(moments_f64_error(moments_f64_lift(1e80), moments_f64_lift(NAN),
							moments_f64_step(moments_f64_lift(1e80), NAN)) == MONOID_ERR_NONE,
		  "moments: NaN is no error");
	CHECK(regr_f64_error(regr_f64_lift(p), regr_f64_lift(q), regr_f64_step(regr_f64_lift(p), q)) ==
			  MONOID_ERR_OVERFLOW,
		  "regr: a step that overflows is an error");
	CHECK(regr_f64_error(regr_f64_lift(p), regr_f64_lift(r), regr_f64_step(regr_f64_lift(p), r)) ==
			  MONOID_ERR_NONE,
		  "regr: an infinite input is no error");
	CHECK(!isnan(regr_f64_step(regr_f64_lift(p), r).syy) &&
			  isnan(regr_f64_step(regr_f64_lift(p), r).sxy),
		  "regr: an infinite x does not change the sums of y");

	CHECK(sum_f64_error(DBL_MAX, DBL_MAX, sum_f64_step(DBL_MAX, DBL_MAX)) == MONOID_ERR_OVERFLOW,
		  "a sum that overflows is an error");
	CHECK(sum_f64_error(INFINITY, 1, sum_f64_step(INFINITY, 1)) == MONOID_ERR_NONE,
		  "a sum with an infinite input is no error");
	CHECK(sum_f32_error(FLT_MAX, FLT_MAX, sum_f32_step(FLT_MAX, FLT_MAX)) == MONOID_ERR_OVERFLOW,
		  "a sum in single precision that overflows is an error");
	CHECK(product_f64_error(1e200, 1e200, product_f64_step(1e200, 1e200)) == MONOID_ERR_OVERFLOW,
		  "a product that overflows is an error");
	CHECK(product_f64_error(1e-200, 1e-200, product_f64_step(1e-200, 1e-200)) ==
			  MONOID_ERR_UNDERFLOW,
		  "a product that underflows is an error");
	CHECK(product_f64_error(0, 1e-200, product_f64_step(0, 1e-200)) == MONOID_ERR_NONE,
		  "a product with zero is no error");
}

/* A sum of negative zeros is -0. Any other sum that is zero is +0. */
static void
signs_of_zero(void)
{
	CHECK(signbit(sum_f64_step(sum_f64_identity(), -0.0)), "the sum of -0 is -0");
	CHECK(!signbit(sum_f64_step(sum_f64_step(sum_f64_identity(), -0.0), 0.0)), "-0 + 0 is +0");
	CHECK(signbit(sum_f32_step(sum_f32_identity(), -0.0f)),
		  "the sum of -0 in single precision is -0");
	/* as in core, the later of two equal values is kept */
	CHECK(signbit(min_f64_step(0.0, -0.0)) && !signbit(min_f64_step(-0.0, 0.0)),
		  "min() keeps the later zero");
	CHECK(signbit(max_f64_step(0.0, -0.0)) && !signbit(max_f64_step(-0.0, 0.0)),
		  "max() keeps the later zero");
}

/* Compares floats in PostgreSQL's order: NaN equals NaN, and is greater than infinity. */
static int
compare_floats(double x, double y)
{
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x > y) - (x < y);
}

static void
extremes_in_the_order_of_floats(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		double least = 0, most = 0, lo = min_f64_identity(), hi = max_f64_identity();
		float lo4 = min_f32_identity(), hi4 = max_f32_identity();
		int n = 1 + (int) random_below(6);

		for (int j = 0; j < n; j++)
		{
			double x = random_below(3) ? random_float_input(MONOID_MIN_F64) :
				random_below(2)        ? NAN :
				random_below(2)        ? INFINITY :
										 -INFINITY;

			least = j == 0 || compare_floats(x, least) < 0 ? x : least;
			most = j == 0 || compare_floats(x, most) > 0 ? x : most;
			lo = min_f64_step(lo, x);
			hi = max_f64_step(hi, x);
			lo4 = min_f32_step(lo4, (float) x);
			hi4 = max_f32_step(hi4, (float) x);
		}
		CHECK(near(lo, least, 0) && near(hi, most, 0), "double, round %d", i);
		CHECK(near(lo4, (float) least, 0) && near(hi4, (float) most, 0), "single, round %d", i);
	}
}

static void
arg_extremes_by_search(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_kv most = argmax_identity(), least = argmin_identity(), best = {0, 0},
				  worst = {0, 0};
		int n = 1 + (int) random_below(8);

		for (int j = 0; j < n; j++)
		{
			gpuagg_kv x = random_gpuagg_kv(MONOID_ARGMAX);

			if (j == 0 || x.key > best.key || (x.key == best.key && x.value < best.value))
				best = x;
			if (j == 0 || x.key < worst.key || (x.key == worst.key && x.value < worst.value))
				worst = x;
			most = argmax_step(most, x);
			least = argmin_step(least, x);
		}
		CHECK(same_gpuagg_kv(most, best), "argmax, round %d", i);
		CHECK(same_gpuagg_kv(least, worst), "argmin, round %d", i);
	}
}

static void
sequences_by_search(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		int n = (int) random_below(MAX_ROWS);
		int64_t x[MAX_ROWS];
		int present[MAX_ROWS];
		gpuagg_maxsub_i64 sub = maxsub_i64_identity();
		gpuagg_maxsub_f64 subf = maxsub_f64_identity();
		gpuagg_run run = longest_run_identity();
		gpuagg_asc asc = longest_asc_identity();
		int64_t best = 0, longest = 0, ascending = 0;

		for (int j = 0; j < n; j++)
		{
			x[j] = random_below(9) - 4;
			sub = maxsub_i64_step(sub, x[j]);
			subf = maxsub_f64_step(subf, (double) x[j]);
			run = longest_run_step(run, x[j] > -2);
			present[j] = random_below(8) != 0;
			asc = longest_asc_step(asc, (gpuagg_kv){x[j], present[j]});
		}
		for (int from = 0; from < n; from++)
		{
			int64_t sum = 0;
			int all = 1, up = 1;

			for (int to = from; to < n; to++)
			{
				sum += x[to];
				all = all && x[to] > -2;
				up = up && present[to] && (to == from || x[to - 1] < x[to]);
				best = sum > best ? sum : best;
				longest = all && to - from + 1 > longest ? to - from + 1 : longest;
				ascending = up && to - from + 1 > ascending ? to - from + 1 : ascending;
			}
		}
		CHECK(sub.best == best && maxsub_f64_best(subf) == (double) best,
			  "maximum subarray sum, round %d", i);
		CHECK(run.best == longest, "longest run, round %d", i);
		CHECK(asc.best == ascending, "longest ascending sequence, round %d", i);
	}
}

/*
 * Bounded steps equal the general ones for inputs within their bounds. Greater inputs are out of
 * bounds.
 */
static void
bounded_steps(void)
{
	const int64_t most = ((int64_t) 1 << 57) - 1;
	const int64_t out_of_bounds[] = {INT64_MIN, -most - 2, most + 1, INT64_MAX};
	const double out_of_bounds_floats[] = {NAN,     INFINITY, -INFINITY,
										   DBL_MAX, -DBL_MAX, ldexp(1, 1001)};

	for (int i = 0; i < 4; i++)
		CHECK(maxsub_i64_magnitude(out_of_bounds[i]) > maxsub_i64_bound,
			  "integer %d is out of bounds", i);
	for (int i = 0; i < 6; i++)
		CHECK(maxsub_f64_magnitude(out_of_bounds_floats[i]) > maxsub_f64_bound,
			  "double %d is out of bounds", i);
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_maxsub_i64 a = maxsub_i64_identity(), b = a;
		gpuagg_maxsub_f64 c = maxsub_f64_identity(), d = c;

		for (int j = 0; j < 32; j++)
		{
			int64_t x = random_below(4) ? random_below(2 * most + 1) - most :
				random_below(2)         ? most :
										  -most - 1;
			double y = ldexp((double) (random_below(2001) - 1000), i % 2 ? 990 : 0);

			CHECK(maxsub_i64_magnitude(x) <= maxsub_i64_bound, "%ld is within bounds", (long) x);
			CHECK(maxsub_f64_magnitude(y) <= maxsub_f64_bound, "%g is within bounds", y);
			a = maxsub_i64_step(a, x);
			b = maxsub_i64_bounded_step(b, x);
			c = maxsub_f64_step(c, y);
			d = maxsub_f64_bounded_step(d, y);
		}
		CHECK(same_gpuagg_maxsub_i64(a, b) && a.best >= 0, "integers, round %d", i);
		CHECK(memcmp(&c, &d, sizeof(c)) == 0 && isfinite(c.best), "doubles, round %d", i);
	}
}

static void
compositions_in_order(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_f64x2 map = linear_identity();
		gpuagg_mat3 product = mat3_identity();
		double start = (double) random_below(10), value = start;
		double vector[3] = {1, 2, 3}, row[3] = {1, 2, 3};

		for (int n = (int) random_below(6); n > 0; n--)
		{
			gpuagg_f64x2 f = random_gpuagg_f64x2(MONOID_LINEAR);
			gpuagg_mat3 m = random_gpuagg_mat3(MONOID_MAT3);
			double next[3] = {0};

			map = linear_step(map, f);
			value = f.x * value + f.y;
			product = mat3_step(product, m);
			for (int r = 0; r < 3; r++)
				for (int c = 0; c < 3; c++)
					next[c] += row[r] * m.m[r * 3 + c];
			memcpy(row, next, sizeof(row));
		}
		CHECK(map.x * start + map.y == value, "linear, round %d", i);
		for (int c = 0; c < 3; c++)
			CHECK(vector[0] * product.m[c] + vector[1] * product.m[3 + c] +
						  vector[2] * product.m[6 + c] ==
					  row[c],
				  "matrix, round %d", i);
	}
}

int
main(void)
{
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	RUN("the laws hold for " #name, laws_##name);
#include "operators/monoid_list.h"
#undef MONOID
	RUN("wide integers agree with long multiplication", integers_by_wider_arithmetic);
	RUN("overflow of decimals is reported", decimal_overflow);
	RUN("deviations agree with two passes", deviations_by_two_passes);
	RUN("central moments agree with two passes", central_moments_by_two_passes);
	RUN("overflow of floats is reported", float_overflow);
	RUN("signs of zero are as in core", signs_of_zero);
	RUN("extremes use PostgreSQL's order of floats", extremes_in_the_order_of_floats);
	RUN("arg extremes agree with a search", arg_extremes_by_search);
	RUN("runs and subarrays agree with a search", sequences_by_search);
	RUN("bounded steps equal the general ones", bounded_steps);
	RUN("compositions keep the order of inputs", compositions_in_order);
	return unit_done();
}
