/*
 * gpu_segmented_extremes.cu
 *	  Segmented reductions of extreme values in every form: integers and decimals
 *	  at their limits, NaN, infinities, denormals and zeros of both signs; and
 *	  the error bits.
 *
 * Each segment has one kind of values, such that its state and errors are the
 * same in whatever order its elements are combined.
 */
#include "gpu_segmented_test.h"

/* ---- values -------------------------------------------------------------- */

/* What the segments have; errors are in a few of them only. */
struct Extreme
{
	MonoidId	op;
	bool		errors;
	int64_t		segment;
	int64_t		place;			/* in the segment */
	int64_t		length;			/* of it */

	/* the two elements of a segment that lead to an error, among others that change nothing */
	bool wrong() const { return errors && segment % 50 == 7 && length >= 2 && place < 2; }
	bool wrong_segment() const { return errors && segment % 50 == 7 && length >= 2; }
};

template <class T>
static void
extreme_integer(Random &r, T *x)
{
	const T		least = std::is_signed<T>::value ? (T) ((T) 1 << (sizeof(T) * 8 - 1)) : (T) 0;
	const T		values[] = {least, (T) (least + 1), (T) ~least, (T) (~least - 1), 0, 1, (T) -1, (T) r.next()};

	*x = values[r.below(8)];
}
static void extreme(Random &r, const Extreme &, int16_t *x) { extreme_integer(r, x); }
static void extreme(Random &r, const Extreme &, int32_t *x) { extreme_integer(r, x); }
static void extreme(Random &r, const Extreme &, int64_t *x) { extreme_integer(r, x); }

/* Ties, among them of keys that no value had, or of none but the identity's. */
static void
extreme(Random &r, const Extreme &e, gpuagg_kv *x)
{
	const int64_t keys[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX - 1, 0, -1};
	const int64_t values[] = {INT64_MIN, INT64_MAX, 0, 5, -5};

	x->key = e.segment % 4 == 0 ? INT64_MIN : e.segment % 4 == 1 ? INT64_MAX : keys[r.below(6)];
	x->value = r.below(3) ? values[r.below(5)] : (int64_t) r.next();
}

/*
 * Decimals: sums may leave the range on the way, which is an error in one order
 * and none in another, so the limits are met by one element alone, and by two
 * of which the sum is beyond.
 */
static void
extreme(Random &r, const Extreme &e, gpuagg_i128 *x)
{
	if (e.op != MONOID_SUM_DEC)
	{
		const gpuagg_i128 values[] = {GPUAGG_I128_MIN, GPUAGG_I128_MAX, GPUAGG_I128_MIN + 1, GPUAGG_I128_MAX - 1, 0, -1,
			(gpuagg_i128) ((gpuagg_u128) r.next() << 64 | r.next())};

		*x = values[r.below(7)];
	}
	else if (e.wrong_segment())
		*x = !e.wrong() ? 0 : e.segment % 2 ? GPUAGG_I128_MAX : GPUAGG_I128_MIN;
	else if (e.segment % 3 == 0)
		*x = e.place > 0 ? 0 : e.segment % 2 ? GPUAGG_I128_MAX : GPUAGG_I128_MIN;
	else
		*x = (gpuagg_i128) (int64_t) r.next() << (e.segment % 3 == 1 ? 40 : 0);
}

/* What floats and doubles have in common. */
struct Limits
{
	double		most,
				denormal;
};

static double
extreme_number(Random &r, const Extreme &e, const Limits &limits)
{
	const double specials[] = {NAN, INFINITY, -INFINITY};
	double		small = (double) ((int) r.below(2001) - 1000);

	if (e.wrong_segment())
		return e.wrong() ? limits.most : 0;
	switch (e.segment % 8)
	{
		case 0:					/* all specials among numbers */
			return r.below(8) ? small : specials[r.below(3)];
		case 1:					/* sums of which are exact, up to 2^14 of them */
			return small * limits.denormal;
		case 2:
			return r.below(2) ? 0.0 : -0.0;
		case 3:
			return -0.0;
		case 4:					/* the greatest, alone */
			return e.place > 0 ? -0.0 : e.segment % 16 == 4 ? limits.most : -limits.most;
		case 5:
			return r.below(20) ? small : -INFINITY;
		case 6:
			return r.below(20) ? small : INFINITY;
		default:
			return small;
	}
}
static void extreme(Random &r, const Extreme &e, float *x) { *x = (float) extreme_number(r, e, {FLT_MAX, 0x1p-149}); }

static void
extreme(Random &r, const Extreme &e, double *x)
{
	const double factors[] = {1, -1, 0, -0.0, INFINITY, -INFINITY, NAN};

	/* factors: overflow or underflow by two, else products that are exact */
	if (e.op == MONOID_PRODUCT_F64)
		*x = e.wrong_segment() ? (!e.wrong() ? 1 : e.segment % 100 == 7 ? 1e200 : 1e-200) :
			factors[r.below(e.segment % 3 == 0 ? 7 : e.segment % 3 == 1 ? 2 : 4)];
	/* squares: beyond the range for two that are far apart, else exact or near */
	else if (e.op == MONOID_ACCUM_F64)
		*x = e.wrong_segment() ? (!e.wrong() ? 0 : e.place ? 1e200 : -1e200) :
			e.segment % 8 == 0 || e.segment % 8 > 4 ? extreme_number(r, e, {0, 0}) : (double) ((int) r.below(2001) - 1000);
	else
		*x = extreme_number(r, e, {DBL_MAX, 0x1p-1074});
}

static void
extreme(Random &r, const Extreme &e, gpuagg_f64x2 *x)
{
	Extreme		one = e;

	one.op = MONOID_ACCUM_F64;
	extreme(r, one, &x->x);
	one.segment = e.segment / 2;	/* so that all pairs of kinds meet */
	one.errors = false;
	extreme(r, one, &x->y);
	if (e.wrong_segment())
		x->y = (double) e.place;
}

/* ---- comparison ---------------------------------------------------------- */

/* Rounded words of states: NaN and infinities as such, others nearly. */
static bool
alike(const double *a, const double *b, int n)
{
	for (int i = 0; i < n; i++)
		if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
			  (isfinite(a[i]) && isfinite(b[i]) && fabs(a[i] - b[i]) <= 1e-9 * fmax(fabs(a[i]), fabs(b[i])) + 1e-3)))
			return false;
	return true;
}

template <class State>
static bool
equal(MonoidId, const State &a, const State &b)
{
	return memcmp(&a, &b, sizeof(State)) == 0;
}

/* Zeros by their sign, but of minima and maxima, where it depends on who came last. */
template <class T>
static bool
equal_numbers(MonoidId op, T a, T b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b && (op == MONOID_MIN_F32 || op == MONOID_MAX_F32 || op == MONOID_MIN_F64 || op == MONOID_MAX_F64 ||
					  signbit(a) == signbit(b));
}
static bool equal(MonoidId op, const float &a, const float &b) { return equal_numbers(op, a, b); }
static bool equal(MonoidId op, const double &a, const double &b) { return equal_numbers(op, a, b); }
static bool equal(MonoidId, const gpuagg_accum &a, const gpuagg_accum &b) { return a.n == b.n && alike(&a.n, &b.n, 3); }
static bool equal(MonoidId, const gpuagg_regr &a, const gpuagg_regr &b) { return a.n == b.n && alike(&a.n, &b.n, 6); }

/* Where a sum leaves the range, what else is kept depends on the order; the answer does not. */
static bool equal(MonoidId, const gpuagg_maxsub_i64 &a, const gpuagg_maxsub_i64 &b) { return a.best == b.best; }

/* ---- one operator over one geometry --------------------------------------- */

struct ExtremeForm
{
	bool		by_device;		/* counts the segments */
	bool		errors;			/* of the operators that can fail only */
};

static bool
can_fail(MonoidId op)
{
	return op == MONOID_SUM_DEC || op == MONOID_SUM_F32 || op == MONOID_SUM_F64 || op == MONOID_PRODUCT_F64 ||
		op == MONOID_ACCUM_F64 || op == MONOID_REGR_F64;
}

template <class InT, class In, class State>
static void
check_extremes(const char *name, MonoidId op, GpuaggValueType type, State (*identity) (), State (*step) (State, In),
			   State (*lift) (In), int (*error) (State, State, State), const Geometry &g, ExtremeForm form, uint64_t seed)
{
	Random		r(seed);
	int64_t		nseg = (int64_t) g.offsets.size() - 1;
	std::vector<InT> values(g.offsets.back());
	std::vector<State> expected(nseg, identity());
	unsigned	errors = 0;

	if (form.errors && !can_fail(op))
		return;
	for (int64_t s = 0; s < nseg; s++)
		for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
		{
			State		before = expected[s];

			extreme(r, Extreme{op, form.errors, s, e - g.offsets[s], g.offsets[s + 1] - g.offsets[s]}, &values[e]);
			expected[s] = step(before, (In) values[e]);
			errors |= (unsigned) error(before, lift((In) values[e]), expected[s]);
		}

	DeviceArray<InT> d_values(values, 1);
	DeviceArray<int64_t> d_offsets(g.offsets);
	DeviceArray<int64_t> d_count(std::vector<int64_t>(1, nseg));
	DeviceArray<State> d_states(nseg);
	DeviceArray<uint32_t> d_errors(std::vector<uint32_t>(1, 0));
	GpuaggSegments segments = {g.offsets.back(), nseg, form.by_device ? d_count.get() : nullptr, d_offsets};
	std::vector<State> states;

	reduce(&segments, op, type, d_values, d_states, d_errors);
	states = d_states.take();

	CHECK(errors == 0 || form.errors, "%s, %s: the CPU's error bits are %u", name, g.name, errors);
	CHECK(d_errors.take()[0] == errors, "%s, %s: error bits %u, not %u", name, g.name, d_errors.take()[0], errors);
	CHECK(d_states.guards_intact(), "%s, %s: results overrun", name, g.name);
	for (int64_t s = 0; s < nseg; s++)
		CHECK(equal(op, states[s], expected[s]), "%s, %s, segment %ld of %ld (%ld elements): first words %016lx, "
			  "expected %016lx", name, g.name, (long) s, (long) nseg,
			  (long) (g.offsets[s + 1] - g.offsets[s]), seg_first_word(states[s]), seg_first_word(expected[s]));
}

#define EXTREME(name, NAME, input_t, state_t, stored_t, type) \
	check_extremes<stored_t, input_t, state_t>(#name, MONOID_##NAME, type, name##_identity, name##_step, name##_lift, \
											   name##_error, g, form, seed++);

static void
check_extremes_common(const Geometry &g, ExtremeForm form, uint64_t seed)
{
	EXTREME(sum_i64, SUM_I64, int64_t, int64_t, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(sum_i64, SUM_I64, int64_t, int64_t, int16_t, GPUAGG_VALUE_I16)
	EXTREME(sum_i64, SUM_I64, int64_t, int64_t, int32_t, GPUAGG_VALUE_I32)
	EXTREME(sum_i128, SUM_I128, int64_t, gpuagg_i128, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(sum_f32, SUM_F32, float, float, float, GPUAGG_VALUE_NATIVE)
	EXTREME(sum_f64, SUM_F64, double, double, double, GPUAGG_VALUE_NATIVE)
	EXTREME(min_i32, MIN_I32, int32_t, int32_t, int32_t, GPUAGG_VALUE_NATIVE)
	EXTREME(max_i32, MAX_I32, int32_t, int32_t, int32_t, GPUAGG_VALUE_NATIVE)
	EXTREME(min_i64, MIN_I64, int64_t, int64_t, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(max_i64, MAX_I64, int64_t, int64_t, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(min_f64, MIN_F64, double, double, double, GPUAGG_VALUE_NATIVE)
	EXTREME(max_f64, MAX_F64, double, double, double, GPUAGG_VALUE_NATIVE)
	EXTREME(sum_dec, SUM_DEC, gpuagg_i128, gpuagg_i128, gpuagg_i128, GPUAGG_VALUE_NATIVE)
	EXTREME(argmax, ARGMAX, gpuagg_kv, gpuagg_kv, gpuagg_kv, GPUAGG_VALUE_NATIVE)
	EXTREME(argmin, ARGMIN, gpuagg_kv, gpuagg_kv, gpuagg_kv, GPUAGG_VALUE_NATIVE)
}

/* The other commutative ones, and subarray sums of integers. */
static void
check_extremes_others(const Geometry &g, ExtremeForm form, uint64_t seed)
{
	EXTREME(sumsq_i128, SUMSQ_I128, int32_t, gpuagg_i128, int32_t, GPUAGG_VALUE_NATIVE)
	EXTREME(sumsq_i192, SUMSQ_I192, int64_t, gpuagg_i192, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(min_dec, MIN_DEC, gpuagg_i128, gpuagg_i128, gpuagg_i128, GPUAGG_VALUE_NATIVE)
	EXTREME(max_dec, MAX_DEC, gpuagg_i128, gpuagg_i128, gpuagg_i128, GPUAGG_VALUE_NATIVE)
	EXTREME(min_f32, MIN_F32, float, float, float, GPUAGG_VALUE_NATIVE)
	EXTREME(max_f32, MAX_F32, float, float, float, GPUAGG_VALUE_NATIVE)
	EXTREME(bit_and, BIT_AND, int64_t, int64_t, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(bit_or, BIT_OR, int64_t, int64_t, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(bit_xor, BIT_XOR, int64_t, int64_t, int64_t, GPUAGG_VALUE_NATIVE)
	EXTREME(product_f64, PRODUCT_F64, double, double, double, GPUAGG_VALUE_NATIVE)
	EXTREME(accum_f64, ACCUM_F64, double, gpuagg_accum, double, GPUAGG_VALUE_NATIVE)
	EXTREME(regr_f64, REGR_F64, gpuagg_f64x2, gpuagg_regr, gpuagg_f64x2, GPUAGG_VALUE_NATIVE)
	EXTREME(hll_max, HLL_MAX, int32_t, int32_t, int32_t, GPUAGG_VALUE_NATIVE)
	EXTREME(maxsub_i64, MAXSUB_I64, int64_t, gpuagg_maxsub_i64, int64_t, GPUAGG_VALUE_NATIVE)
}

static void
check_extremes_all(const Geometry &g, ExtremeForm form, uint64_t seed)
{
	check_extremes_common(g, form, seed);
	check_extremes_others(g, form, seed + 100);
}

/* ---- tests ---------------------------------------------------------------- */

GPU_TEST(segmented_extremes_small)
{
	Random		r(41);

	for (int errors = 0; errors < 2; errors++)
	{
		check_extremes_all(random_lengths("extremes, 0 to 4", r, 3000, 4, 1), {false, errors != 0}, 4100);
		check_extremes_all(random_lengths("extremes, 0 to 60", r, 400, 60, 1), {false, errors != 0}, 4100);
		check_extremes_all(random_lengths("extremes, to 1600", r, 16, 1600, 1), {false, errors != 0}, 4100);
	}
}

/* Many elements, and few whose segments the device counts. */
GPU_TEST(segmented_extremes_large)
{
	Random		r(42);
	bool		quick = gpu_test_quick();

	for (int errors = 0; errors < 2; errors++)
	{
		check_extremes_all(random_lengths("extremes, chunks", r, quick ? 6500 : 14000, quick ? 7 : 90, 1),
						   {false, errors != 0}, 4200);
		check_extremes_all(random_lengths("extremes, few", r, 900, 60, 1), {true, errors != 0}, 4300);
	}
}
