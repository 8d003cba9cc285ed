/*
 * monoid_test.c
 *	  The laws of every operator, and what each computes.
 *
 * Laws run over all of monoid_list.h, so a new row is tested as it is added:
 * identity, associativity, commutativity where the list claims it, and step
 * against combine with the lifted input.  States are folds of random inputs, as
 * in use.  Inputs are chosen so that floating-point arithmetic is exact where
 * the operator allows it, and compared with a tolerance elsewhere.
 */
#include "unit.h"

#include "operators/monoid.h"

#define ROUNDS 3000

/* ---- random inputs ----------------------------------------------------------- */

/* May inputs of this operator be NaN or infinite without breaking associativity? */
static int
takes_specials(MonoidId id)
{
	return id != MONOID_LINEAR;
}

static double
random_number(MonoidId id)
{
	static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0};

	if (takes_specials(id) && random_below(40) == 0)
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
	return (float) random_number(id);
}

static double
random_double(MonoidId id)
{
	return random_number(id);
}

static gpuagg_f64x2
random_gpuagg_f64x2(MonoidId id)
{
	gpuagg_f64x2 r;

	/* few bits, so that compositions of a few maps are exact */
	if (id == MONOID_LINEAR)
	{
		r.x = (double) (random_below(9) - 4);
		r.y = (double) (random_below(17) - 8);
		return r;
	}
	r.x = random_number(id);
	r.y = random_number(id);
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

/* NaN equals NaN; zeros of either sign are equal. */
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

/* Deviations are rounded; inputs are below 1000, so their squares below 1e6 a row. */
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
		CHECK(gpuagg_monoids[MONOID_##NAME].commutative == (comm), "list"); \
		CHECK(gpuagg_monoids[MONOID_##NAME].state_size == sizeof(state_t), "list"); \
		CHECK(MONOID_ATOMIC_##atomic == MONOID_ATOMIC_XCG || sizeof(state_t) <= 16, \
			  "a state of more than 16 bytes cannot be updated by compare-and-swap"); \
	}
#include "operators/monoid_list.h"
#undef MONOID

/* ---- what they compute ---------------------------------------------------------- */

#define MAX_ROWS 60

static void
integers_by_wider_arithmetic(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		gpuagg_i192 squares = sumsq_i192_identity();
		gpuagg_i128 sum = sum_i128_identity(), expected_sum = 0;
		uint64_t word[4] = {0}; /* squares in 64-bit words */

		for (int n = (int) random_below(MAX_ROWS); n > 0; n--)
		{
			int64_t x = random_int64_t(MONOID_SUM_I128);
			uint64_t m = x < 0 ? -(uint64_t) x : (uint64_t) x;
			uint64_t hi = m >> 32, lo = m & 0xFFFFFFFF;
			uint64_t product[3] = {lo * lo, 2 * hi * lo, hi * hi};

			sum = sum_i128_step(sum, x);
			expected_sum += x;
			squares = sumsq_i192_step(squares, x);
			/* schoolbook: hi^2 * 2^64 + 2 hi lo * 2^32 + lo^2, carried by hand */
			for (int p = 0; p < 3; p++)
			{
				uint64_t add[4] = {0};
				uint64_t carry = 0;

				if (p == 0)
					add[0] = product[0];
				else if (p == 1)
				{
					/* 2 hi lo has up to 65 bits, kept as hi lo shifted by 33 */
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
decimal_overflow_is_told(void)
{
	gpuagg_i128 big = GPUAGG_I128_MAX;

	CHECK(sum_dec_error(big, 1, sum_dec_step(big, 1)) == MONOID_ERR_INT_OVERFLOW, "upwards");
	CHECK(sum_dec_error(-big, -2, sum_dec_step(-big, -2)) == MONOID_ERR_INT_OVERFLOW, "downwards");
	CHECK(sum_dec_error(big, -1, sum_dec_step(big, -1)) == MONOID_ERR_NONE, "none");
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

/* As core's float8_accum: infinite inputs make NaN, finite ones that overflow an error. */
static void
overflow_is_told(void)
{
	gpuagg_accum a = accum_f64_lift(1e200);
	gpuagg_accum b = accum_f64_lift(-1e200);
	gpuagg_accum inf = accum_f64_lift(INFINITY);
	gpuagg_f64x2 p = {1e200, 1}, q = {-1e200, 2}, r = {INFINITY, 3};

	CHECK(accum_f64_error(a, b, accum_f64_step(a, -1e200)) == MONOID_ERR_OVERFLOW, "accum step");
	CHECK(accum_f64_error(a, b, accum_f64_combine(a, b)) == MONOID_ERR_OVERFLOW, "accum combine");
	CHECK(accum_f64_error(a, inf, accum_f64_step(a, INFINITY)) == MONOID_ERR_NONE,
		  "infinite input");
	CHECK(isnan(accum_f64_step(a, INFINITY).sxx), "infinite input");
	CHECK(isnan(accum_f64_step(accum_f64_step(inf, 1), -INFINITY).sx), "both infinities");
	CHECK(regr_f64_error(regr_f64_lift(p), regr_f64_lift(q), regr_f64_step(regr_f64_lift(p), q)) ==
			  MONOID_ERR_OVERFLOW,
		  "regr step");
	CHECK(regr_f64_error(regr_f64_lift(p), regr_f64_lift(r), regr_f64_step(regr_f64_lift(p), r)) ==
			  MONOID_ERR_NONE,
		  "regr infinite");
	CHECK(!isnan(regr_f64_step(regr_f64_lift(p), r).syy) &&
			  isnan(regr_f64_step(regr_f64_lift(p), r).sxy),
		  "regr infinite x leaves y alone");

	CHECK(sum_f64_error(DBL_MAX, DBL_MAX, sum_f64_step(DBL_MAX, DBL_MAX)) == MONOID_ERR_OVERFLOW,
		  "sum");
	CHECK(sum_f64_error(INFINITY, 1, sum_f64_step(INFINITY, 1)) == MONOID_ERR_NONE,
		  "sum of infinity");
	CHECK(sum_f32_error(FLT_MAX, FLT_MAX, sum_f32_step(FLT_MAX, FLT_MAX)) == MONOID_ERR_OVERFLOW,
		  "sum");
	CHECK(product_f64_error(1e200, 1e200, product_f64_step(1e200, 1e200)) == MONOID_ERR_OVERFLOW,
		  "product");
	CHECK(product_f64_error(1e-200, 1e-200, product_f64_step(1e-200, 1e-200)) ==
			  MONOID_ERR_UNDERFLOW,
		  "product");
	CHECK(product_f64_error(0, 1e-200, product_f64_step(0, 1e-200)) == MONOID_ERR_NONE, "zero");
}

/* A sum of negative zeros is one; every other sum that is zero is positive. */
static void
signs_of_zero(void)
{
	CHECK(signbit(sum_f64_step(sum_f64_identity(), -0.0)), "-0");
	CHECK(!signbit(sum_f64_step(sum_f64_step(sum_f64_identity(), -0.0), 0.0)), "-0 + 0");
	CHECK(signbit(sum_f32_step(sum_f32_identity(), -0.0f)), "-0 in single precision");
	/* core keeps the later of equal values */
	CHECK(signbit(min_f64_step(0.0, -0.0)) && !signbit(min_f64_step(-0.0, 0.0)), "min");
	CHECK(signbit(max_f64_step(0.0, -0.0)) && !signbit(max_f64_step(-0.0, 0.0)), "max");
}

/* PostgreSQL's order of floats: NaN above infinity, equal to itself. */
static int
float_rank(double x, double y)
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
			double x = random_below(3) ? random_number(MONOID_MIN_F64) :
				random_below(2)        ? NAN :
				random_below(2)        ? INFINITY :
										 -INFINITY;

			least = j == 0 || float_rank(x, least) < 0 ? x : least;
			most = j == 0 || float_rank(x, most) > 0 ? x : most;
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
runs_by_search(void)
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
		CHECK(sub.best == best && maxsub_f64_best(subf) == (double) best, "subarray, round %d", i);
		CHECK(run.best == longest, "run, round %d", i);
		CHECK(asc.best == ascending, "ascending, round %d", i);
	}
}

/* The shorter steps equal the others up to their bounds, which nothing wilder is within. */
static void
bounded_steps(void)
{
	const int64_t most = ((int64_t) 1 << 57) - 1;
	const int64_t wild[] = {INT64_MIN, -most - 2, most + 1, INT64_MAX};
	const double wild_floats[] = {NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, ldexp(1, 1001)};

	for (int i = 0; i < 4; i++)
		CHECK(maxsub_i64_magnitude(wild[i]) > maxsub_i64_bound, "integer %d", i);
	for (int i = 0; i < 6; i++)
		CHECK(maxsub_f64_magnitude(wild_floats[i]) > maxsub_f64_bound, "double %d", i);
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

			CHECK(maxsub_i64_magnitude(x) <= maxsub_i64_bound, "%ld", (long) x);
			CHECK(maxsub_f64_magnitude(y) <= maxsub_f64_bound, "%g", y);
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
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) RUN("laws of " #name, laws_##name);
#include "operators/monoid_list.h"
#undef MONOID
	RUN("wide integers by schoolbook arithmetic", integers_by_wider_arithmetic);
	RUN("overflow of decimals", decimal_overflow_is_told);
	RUN("deviations by two passes", deviations_by_two_passes);
	RUN("overflow of floats", overflow_is_told);
	RUN("signs of zero", signs_of_zero);
	RUN("extremes in the order of floats", extremes_in_the_order_of_floats);
	RUN("arg extremes by search", arg_extremes_by_search);
	RUN("runs and subarrays by search", runs_by_search);
	RUN("steps within bounds", bounded_steps);
	RUN("compositions in order", compositions_in_order);
	return unit_done();
}
