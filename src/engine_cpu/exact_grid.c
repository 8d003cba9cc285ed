/*
 * exact_grid.c
 *	  Columns of doubles as integers times one power of two, and sums of such integers by group.
 *
 * A value is split into a multiple of 2^high and one of 2^low by adding and subtracting large
 * numbers, as in Rump, Ogita and Oishi, "Accurate Floating-Point Summation" (2008), and Demmel and
 * Nguyen, "Fast Reproducible Floating-Point Summation" (2013).  There the parts are added as
 * doubles.  Here the bits of the sums are read: they are those of the large number plus the
 * multiple.  So both parts become one integer.
 */
#include "postgres.h"

#include "engine_cpu/exact_grid.h"
#include "engine_cpu/exact_vectors.h"

/* Values are below 2^GRID_BITS units in absolute value, and HIGH units are a multiple of 2^high. */
#define GRID_BITS 63
#define HIGH 31

/* The values that may be larger than those for which a unit is chosen. */
#define MARGIN_BITS 1

/* At most one of so many values may be one of the others, and these few in addition. */
#define OTHERS_SHARE 8
#define FEW_OTHERS 16

/* Most calls in a row that look for no unit. */
#define MOST_SKIPS 63

/* Exponents, as bits of a double, with which all powers of two here are normal doubles. */
#define LEAST_EXPONENT 200
#define GREATEST_EXPONENT 1900

#define STEP (4 * LANES)

void
exact_grid_init(ExactGrid *grid)
{
	grid->unit = EXACT_NO_WINDOW;
	grid->skip = grid->skipped = 0;
	grid->nothers = 0;
}

/*
 * Returns a unit for n values, without the largest of them if these are few; EXACT_NO_WINDOW if
 * there is none.
 */
static int16
suitable_unit(const double *x, int n)
{
	uint16 counts[2048] = {0};
	int larger = 0;
	int e = 2047;

	for (int i = 0; i < n; i++)
		counts[exact_bits(x[i]) >> 52 & 0x7ff]++;
	while (e > LEAST_EXPONENT && (larger += counts[e]) <= n / (2 * OTHERS_SHARE))
		e--;
	if (e <= LEAST_EXPONENT || e >= GREATEST_EXPONENT)
		return EXACT_NO_WINDOW;
	/* all values with this exponent are below 2^(e - 1022) */
	return e - 1022 + MARGIN_BITS - GRID_BITS - EXACT_LOWEST_POSITION;
}

/* Numbers that split values, see above. */
typedef struct Splitter
{
	double high, low;
	uint64 bound; /* bits of a double */
	uint64 bits;  /* what the bits of high and low add to the integers */
} Splitter;

static Splitter
splitter(int16 unit)
{
	int low = unit + EXACT_LOWEST_POSITION;
	Splitter s = {
		.high = 1.5 * exact_power_of_two(low + HIGH + 52),
		.low = 1.5 * exact_power_of_two(low + 52),
		.bound = exact_bits(exact_power_of_two(low + GRID_BITS)),
	};

	s.bits = (exact_bits(s.high) << HIGH) + exact_bits(s.low);
	return s;
}

/* Sets m to two values. Returns lanes with bits where it is not possible. */
static inline Words
split(const Splitter *s, Doubles v, int64 *m)
{
	Doubles high = v + s->high;
	Doubles rest = v - (high - s->high);
	Doubles low = rest + s->low;
	Words integers = ((Words) high << HIGH) + (Words) low - s->bits;

	memcpy(m, &integers, sizeof(integers));
	return (Words) ((low - s->low) - rest) | exact_large(v, s->bound);
}

/* Sets m and the others, with the grid's unit. */
static void
load(ExactGrid *grid, const double *x, int n)
{
	Splitter s = splitter(grid->unit);

	grid->nothers = 0;
	for (int i = 0; i < n; i += STEP)
	{
		double last[STEP] = {0};
		const double *from = &x[i];
		Doubles v[STEP / LANES];
		Words bad[STEP / LANES];
		Words any = {0};

		if (unlikely(n - i < STEP))
			from = memcpy(last, from, (n - i) * sizeof(double));
		memcpy(v, from, sizeof(v));
		for (int k = 0; k < STEP / LANES; k++)
		{
			bad[k] = split(&s, v[k], &grid->m[i + k * LANES]);
			any |= bad[k];
		}
		if (unlikely(any[0] | any[1]))
			for (int k = 0; k < STEP; k++)
				if (bad[k / LANES][k % LANES])
					grid->others[grid->nothers++] = i + k;
	}
}

/* Returns whether the unit suits n values that are loaded. */
static inline bool
suits(const ExactGrid *grid, int n)
{
	return grid->nothers <= n / OTHERS_SHARE + FEW_OTHERS;
}

void
exact_grid_load_none(ExactGrid *grid, int n)
{
	grid->nothers = n;
	for (int i = 0; i < n; i++)
		grid->others[i] = i;
}

void
exact_grid_load(ExactGrid *grid, const double *x, int n)
{
	if (grid->unit != EXACT_NO_WINDOW)
	{
		load(grid, x, n);
		if (likely(suits(grid, n)))
			return;
	}
	if (grid->skipped < grid->skip)
	{
		grid->skipped++;
		exact_grid_load_none(grid, n);
		return;
	}
	grid->unit = suitable_unit(x, n);
	if (grid->unit != EXACT_NO_WINDOW)
		load(grid, x, n);
	if (grid->unit != EXACT_NO_WINDOW && suits(grid, n))
		grid->skip = 0;
	else
	{
		grid->unit = EXACT_NO_WINDOW;
		grid->skip = Min(2 * grid->skip + 1, MOST_SKIPS);
		exact_grid_load_none(grid, n);
	}
	grid->skipped = 0;
}

void
exact_grid_add_others(ExactGrid *grid, const ExactGrid *other)
{
	uint16 rows[GRID_ROWS];
	int a = 0;
	int b = 0;
	int n = 0;

	if (other->nothers == 0)
		return;
	while (a < grid->nothers || b < other->nothers)
	{
		uint16 x = a < grid->nothers ? grid->others[a] : GRID_ROWS;
		uint16 y = b < other->nothers ? other->others[b] : GRID_ROWS;

		rows[n++] = Min(x, y);
		a += x <= y;
		b += y <= x;
	}
	memcpy(grid->others, rows, n * sizeof(uint16));
	grid->nothers = n;
}

/* ---- sums by group ------------------------------------------------------- */

/* The number of rows is added to the words of a sum from this bit on. */
#define COUNT_BIT 96

/*
 * Sums that take more bytes are not in the CPU's first caches. They are prefetched so many rows
 * ahead.
 */
#define NEAR_BYTES (256 * 1024)
#define PREFETCH_ROWS 16

#define MOST_WORDS (2 * GRID_SUM_WORDS + 3 * GRID_PRODUCT_WORDS)

GroupNumbers
group_numbers(uint32 cells)
{
	GroupNumbers numbers = {.shift = __builtin_ctz(cells)};
	uint32 odd = cells >> numbers.shift;

	/* Newton's method doubles the right bits: odd * odd is 1 modulo 8 */
	numbers.inverse = odd;
	for (int bits = 3; bits < 32; bits *= 2)
		numbers.inverse *= 2 - odd * numbers.inverse;
	return numbers;
}

/* Adds a value and a row. */
static inline void
add_value(uint64 *words, int64 m)
{
	uint64 low = words[0] + (uint64) m;

	words[1] += (uint64) (m >> 63) + (UINT64CONST(1) << (COUNT_BIT - 64)) + (low < words[0]);
	words[0] = low;
}

/* Adds a product of two values. */
static inline void
add_product(uint64 *words, int64 a, int64 b)
{
	gpuagg_i128 product = (gpuagg_i128) a * b;
	bool carry = exact_add_words(words, 0, (gpuagg_u128) product);

	words[2] += (uint64) (product >> 127) + carry;
}

/* Adds row i to the sums of its group. */
static pg_attribute_always_inline void
add_row(uint64 *words, ExactKind kind, const int64 *x, const int64 *y, int i)
{
	add_value(words, x[i]);
	if (kind == EXACT_SQUARES)
		add_product(words + GRID_SUM_WORDS, x[i], x[i]);
	else if (kind == EXACT_PAIRS)
	{
		uint64 *products = words + 2 * GRID_SUM_WORDS;

		add_value(words + GRID_SUM_WORDS, y[i]);
		add_product(products + EXACT_XX * GRID_PRODUCT_WORDS, x[i], x[i]);
		add_product(products + EXACT_XY * GRID_PRODUCT_WORDS, x[i], y[i]);
		add_product(products + EXACT_YY * GRID_PRODUCT_WORDS, y[i], y[i]);
	}
}

/* Adds the rows from .. end - 1. at: NULL if all belong to group 0. */
static pg_attribute_always_inline void
add_rows(GridSums *sums, ExactKind kind, const GroupNumbers *numbers, const uint32 *at,
		 const int64 *x, const int64 *y, int from, int end)
{
	int shift = numbers->shift;
	uint32 inverse = numbers->inverse;
	uint64 *all = sums->sums;
	size_t width = grid_sums_words(kind);

	if (at == NULL)
	{
		/* copied, so that they are in registers */
		uint64 words[MOST_WORDS];

		memcpy(words, all, width * sizeof(uint64));
		for (int i = from; i < end; i++)
			add_row(words, kind, x, y, i);
		memcpy(all, words, width * sizeof(uint64));
		return;
	}
	if (sums->ngroups * width * sizeof(uint64) > NEAR_BYTES)
		for (; from < end - PREFETCH_ROWS; from++)
		{
			const uint64 *ahead =
				all + (size_t) ((at[from + PREFETCH_ROWS] >> shift) * inverse) * width;

			__builtin_prefetch(ahead, 1);
			__builtin_prefetch(ahead + width - 1, 1);
			add_row(all + (size_t) ((at[from] >> shift) * inverse) * width, kind, x, y, from);
		}
	for (int i = from; i < end; i++)
		add_row(all + (size_t) ((at[i] >> shift) * inverse) * width, kind, x, y, i);
}

void
grid_sums_add(GridSums *sums, const GroupNumbers *numbers, const uint32 *at,
			  ExactGrid *const *grids, int n)
{
	const ExactGrid *x = grids[0];
	int from = 0;

	for (int o = 0; o <= x->nothers; o++)
	{
		int end = o < x->nothers ? x->others[o] : n;

		if (sums->kind == EXACT_SUM)
			add_rows(sums, EXACT_SUM, numbers, at, x->m, NULL, from, end);
		else if (sums->kind == EXACT_SQUARES)
			add_rows(sums, EXACT_SQUARES, numbers, at, x->m, NULL, from, end);
		else
			add_rows(sums, EXACT_PAIRS, numbers, at, x->m, grids[1]->m, from, end);
		from = end + 1;
	}
	sums->rows += n;
}

void
grid_sums_read(const GridSums *sums, uint32 group, ExactState *state)
{
	const uint64 *next = &sums->sums[(size_t) group * grid_sums_words(sums->kind)];

	exact_init(state, sums->kind);
	for (int i = 0; i < exact_sums(sums->kind); i++, next += GRID_SUM_WORDS)
	{
		gpuagg_u128 sum;

		memcpy(&sum, next, sizeof(sum));
		/* a negative sum has taken 1 from the count */
		state->n = (int64) ((sum + ((gpuagg_u128) 1 << (COUNT_BIT - 1))) >> COUNT_BIT);
		state->sum[i] = (gpuagg_i128) (sum - ((gpuagg_u128) state->n << COUNT_BIT));
		state->unit[i] = sums->unit[i];
	}
	for (int i = 0; i < exact_products(sums->kind); i++, next += GRID_PRODUCT_WORDS)
	{
		memcpy(state->product[i], next, GRID_PRODUCT_WORDS * sizeof(uint64));
		for (int w = GRID_PRODUCT_WORDS; w < EXACT_WINDOW_WORDS; w++)
			state->product[i][w] = next[GRID_PRODUCT_WORDS - 1] >> 63 ? PG_UINT64_MAX : 0;
	}
}

void
grid_sums_move(GridSums *sums, uint32 group, ExactState *state)
{
	size_t words = grid_sums_words(sums->kind);
	ExactState added;

	grid_sums_read(sums, group, &added);
	memset(&sums->sums[group * words], 0, words * sizeof(uint64));
	exact_combine(state, &added);
}
