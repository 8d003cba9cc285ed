/*
 * select_test.c
 *	  Tests selection by rank (operators/select.h) and buckets of doubles (operators/quantiles.h).
 *
 * Selected values are compared with those of qsort(). Values are few or many distinct ones,
 * doubles, duplicates and powers of two. Codes of numbers keep their order and can be converted
 * back.
 */
#include "unit.h"

#include <stdlib.h>

#include "operators/quantiles.h"

#define ROUNDS 3000
#define MAX_VALUES 6000
#define MAX_RANKS 9

static int
compare_codes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static int
compare_ranks(const void *a, const void *b)
{
	int64_t x = *(const int64_t *) a;
	int64_t y = *(const int64_t *) b;

	return (x > y) - (x < y);
}

static uint64_t
random_bits(void)
{
	uint64_t x = 0;

	for (int i = 0; i < 4; i++)
		x = x << 16 | (uint64_t) random_below(65536);
	return x;
}

/* Returns a random code. `kind` says how codes are distributed. */
static uint64_t
random_code(int kind)
{
	uint64_t x = random_bits();

	switch (kind)
	{
		case 0:
			return x % 10;
		case 1:
			return select_code_f64((double) (int64_t) x / 1e18);
		case 2:
			return x % 2 ? UINT64_MAX : x % 3;
		case 3:
			/* powers of two: each round of the selection excludes only one value */
			return UINT64_C(1) << (x % 64);
		default:
			return x;
	}
}

static void
ranks_agree_with_sort(void)
{
	static uint64_t codes[MAX_VALUES], spare[MAX_VALUES], sorted[MAX_VALUES];

	for (int round = 0; round < ROUNDS; round++)
	{
		int n = 1 + (int) random_below(round % 7 ? 200 : MAX_VALUES);
		int m = 1 + (int) random_below(MAX_RANKS);
		int64_t ranks[MAX_RANKS];
		uint64_t found[MAX_RANKS];

		for (int i = 0; i < n; i++)
			sorted[i] = codes[i] = random_code(round % 5);
		qsort(sorted, n, sizeof(uint64_t), compare_codes);
		for (int i = 0; i < m; i++)
			ranks[i] = (int64_t) random_below(n);
		qsort(ranks, m, sizeof(int64_t), compare_ranks);
		select_ranks(codes, spare, n, ranks, 0, m, found);
		for (int i = 0; i < m; i++)
			CHECK(found[i] == sorted[ranks[i]], "rank %d of %d", (int) ranks[i], n);
	}
}

static void
codes_keep_order(void)
{
	static const double ascending[] = {-INFINITY, -1e300, -2, -1,    -1e-320,  -0.0, 0.0,
									   1e-320,    1,      2,  1e300, INFINITY, NAN};

	for (int i = 1; i < (int) (sizeof(ascending) / sizeof(ascending[0])); i++)
		CHECK(select_code_f64(ascending[i - 1]) < select_code_f64(ascending[i]), "%g, %g",
			  ascending[i - 1], ascending[i]);
	for (int i = 0; i < ROUNDS; i++)
	{
		int64_t x = (int64_t) random_bits();

		CHECK(select_i64_of(select_code_i64(x)) == x, "%lld is restored from its code",
			  (long long) x);
		CHECK(select_f64_of(select_code_f64((double) x)) == (double) x,
			  "%g is restored from its code", (double) x);
	}
	CHECK(select_code_i64(INT64_MIN) == 0 && select_code_i64(INT64_MAX) == UINT64_MAX,
		  "the least and greatest integers have the least and greatest codes");
}

/* The middle of a bucket is in the bucket, and near to its values. */
static void
bucket_is_near(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		double x = ldexp(1 + random_below(1000) / 1000.0, (int) random_below(2000) - 1000) *
			(i % 2 ? 1 : -1);
		int level = (int) random_below(53);
		uint64_t bucket = quantiles_bucket(x, level);
		double middle = quantiles_value(bucket, level);

		CHECK(quantiles_bucket(middle, level) == bucket, "%g at level %d", x, level);
		CHECK(fabs(middle - x) <= ldexp(fabs(x), level - 53) || level == 0, "%g, %g at level %d", x,
			  middle, level);
		CHECK(level > 0 || middle == x, "%g is its own bucket at level 0", x);
	}
}

int
main(void)
{
	RUN("selected ranks agree with a sort", ranks_agree_with_sort);
	RUN("codes keep the order of numbers", codes_keep_order);
	RUN("the middle of a bucket is near its values", bucket_is_near);
	return unit_done();
}
