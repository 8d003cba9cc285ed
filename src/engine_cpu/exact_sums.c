/*
 * exact_sums.c
 *	  Exact aggregates of floats (aggregates/exact.c), a batch at a time.
 *
 * They are fallback aggregates, but columns of floats are added to their states here, without calls
 * of transition functions.
 */
#include "postgres.h"

#include "common/interruptible.h"
#include "engine_cpu/exact_sums.h"
#include "engine_cpu/exact_vectors.h"

/* Rows of groups are prefetched so many rows of the batch ahead, and then the states. */
#define PREFETCH_ROWS 24
#define PREFETCH_STATES 12

/* Sums of integers by group have room for more rows: for 2^32 in a count. */
#define MOST_GRID_ROWS ((int64) 1 << 31)

bool
exact_sums_take(const AggSpec *spec, const FallbackAgg *fallback)
{
	if (!fallback->exact)
		return false;
	for (int a = 0; a < fallback->nargs; a++)
		if (!column_is_float(spec->cols[fallback->argcol[a]].type))
			return false;
	return true;
}

/* Returns the state of the group at an offset, or NULL. */
static inline ExactState *
group_state(const ExactSums *sums, uint32 at)
{
	const FallbackState *state = (const FallbackState *) (sums->states + (size_t) at * 4);

	return (ExactState *) DatumGetPointer(state->value);
}

/* Returns the state of the group at an offset; creates it if the group has none. */
static inline ExactState *
made_state(const ExactSums *sums, uint32 at)
{
	ExactState *state = group_state(sums, at);

	return likely(state != NULL) ? state : sums->create(sums->arg, at);
}

/* Returns row i of a column. */
static inline double
row_value(const Column *col, int i)
{
	return col->type == COLUMN_F64 ? ((const float8 *) col->values)[i] :
									 ((const float4 *) col->values)[i];
}

void
exact_sums_add_row(ExactState *state, const Batch *batch, const FallbackAgg *fallback, int i)
{
	const Column *first = &batch->cols[fallback->argcol[0]];
	double x, y = 0;

	if (column_is_null(first, i))
		return;
	x = row_value(first, i);
	if (state->kind == EXACT_PAIRS)
	{
		const Column *second = &batch->cols[fallback->argcol[1]];

		if (column_is_null(second, i))
			return;
		/* arguments of core's aggregates are y, x */
		y = x;
		x = row_value(second, i);
	}
	if (!(state->kind == EXACT_SUM         ? exact_try_sum(state, x) :
			  state->kind == EXACT_SQUARES ? exact_try_squares(state, x) :
											 exact_try_pairs(state, x, y)))
		exact_add(state, x, y, false);
}

/* Adds n values to one state of the kind EXACT_SUM, one after the other. */
static void
add_values(ExactState *state, const double *x, int n)
{
	gpuagg_i128 sum = state->sum[0];
	int unit = state->unit[0];
	int others = 0;

	for (int i = 0; i < n; i++)
	{
		int64 m;
		int shift;

		if (likely(exact_in_window(x[i], unit, &m, &shift) && exact_add_to_sum(&sum, m, shift)))
			continue;
		state->sum[0] = sum;
		exact_add(state, x[i], 0, false);
		sum = state->sum[0];
		unit = state->unit[0];
		others++;
	}
	state->sum[0] = sum;
	state->n += n - others;
}

/* ---- blocks of values ------------------------------------------------------ */

/*
 * Values of one group are added by vector operations, as in Demmel and Nguyen, "Fast Reproducible
 * Floating-Point Summation" (2013): each value is split into a multiple of 2^high and one of 2^low,
 * and doubles add up to BLOCK_ROWS of each without rounding.  That needs values below 2^(high +
 * HIGH_BITS), and without bits below 2^low.
 */
#define BLOCK_ROWS 1024
#define LEAST_BLOCK 64
#define HIGH_BITS 41
#define LOW_BITS 42

/*
 * Sets state->top to an exponent of more than the largest of n values; EXACT_NO_BOUND if blocks
 * cannot have them.
 */
static void
bound_values(ExactState *state, const double *x, int n)
{
	int most = 0;

	for (int i = 0; i < n; i++)
	{
		uint64 bits;

		memcpy(&bits, &x[i], sizeof(bits));
		most = Max(most, (int) (bits >> 52 & 0x7ff));
	}
	/* all powers of two of a block are normal doubles */
	state->top = most > 200 && most < 1900 ? most - 1023 + 2 : EXACT_NO_BOUND;
}

/*
 * Adds n values, a multiple of LANES and at most BLOCK_ROWS, below 2^state->top. Returns false, and
 * adds nothing, if there are others, or values with too low bits.
 */
static bool
add_block(ExactState *state, const double *x, int n)
{
	int high = state->top - HIGH_BITS;
	int low = high - LOW_BITS;
	uint64 bound = exact_bits(exact_power_of_two(state->top));
	/* adding and subtracting these rounds to multiples of 2^high and 2^low */
	double round_high = 1.5 * exact_power_of_two(high + 52);
	double round_low = 1.5 * exact_power_of_two(low + 52);
	Doubles sum_high[2] = {{0}};
	Doubles sum_low[2] = {{0}};
	Words bad = {0}; /* has bits if there are values that blocks cannot have */

	for (int i = 0; i < n; i += 2 * LANES)
		for (int k = 0; k < 2; k++)
		{
			Doubles v, q, r, s;

			memcpy(&v, &x[i + k * LANES], sizeof(v));
			q = (v + round_high) - round_high;
			r = v - q;
			s = (r + round_low) - round_low;
			bad |= (Words) (s - r) | exact_large(v, bound);
			sum_high[k] += q;
			sum_low[k] += s;
		}
	if (bad[0] | bad[1])
		return false;
	sum_high[0] += sum_high[1];
	sum_low[0] += sum_low[1];
	exact_add_integer(state,
					  (int64) ((sum_high[0][0] + sum_high[0][1]) * exact_power_of_two(-high)),
					  high - EXACT_LOWEST_POSITION);
	exact_add_integer(state, (int64) ((sum_low[0][0] + sum_low[0][1]) * exact_power_of_two(-low)),
					  low - EXACT_LOWEST_POSITION);
	state->n += n;
	return true;
}

/* Adds n values to one state of the kind EXACT_SUM. */
static void
add_run(ExactState *state, const double *x, int n)
{
	while (n > 0)
	{
		int rows = Min(n, BLOCK_ROWS);

		if (rows >= LEAST_BLOCK)
			rows -= rows % (2 * LANES);
		if (rows < LEAST_BLOCK || state->top == EXACT_NO_BOUND || !add_block(state, x, rows))
		{
			add_values(state, x, rows);
			if (rows >= LEAST_BLOCK)
				bound_values(state, x, rows);
		}
		x += rows;
		n -= rows;
	}
}

/* ---- rows of any groups ---------------------------------------------------- */

/* Add rows to the states of their groups, one after the other. */
#define ADD_ROWS(name, try_add, ...) \
	static void name##_rows(const ExactSums *sums, const uint32 *at, const double *x, \
							const double *y, int n) \
	{ \
		for (int i = 0; i < n; i++) \
		{ \
			ExactState *state = made_state(sums, at[i]); \
\
			if (sums->prefetch && i + PREFETCH_ROWS < n) \
			{ \
				__builtin_prefetch(sums->states + (size_t) at[i + PREFETCH_ROWS] * 4); \
				__builtin_prefetch(group_state(sums, at[i + PREFETCH_STATES]), 1); \
			} \
			if (unlikely(!try_add(state, __VA_ARGS__))) \
				exact_add(state, x[i], y ? y[i] : 0, false); \
		} \
	}
ADD_ROWS(sum, exact_try_sum, x[i])
ADD_ROWS(squares, exact_try_squares, x[i])
ADD_ROWS(pairs, exact_try_pairs, x[i], y[i])
#undef ADD_ROWS

static void
add_rows(const ExactSums *sums, const uint32 *at, const double *x, const double *y, int n)
{
	if (sums->kind == EXACT_PAIRS)
		pairs_rows(sums, at, x, y, n);
	else if (sums->kind == EXACT_SQUARES)
		squares_rows(sums, at, x, NULL, n);
	else
		sum_rows(sums, at, x, NULL, n);
}

/*
 * Returns whether sums of integers by group can take the integers of the grids.  If sums of others
 * are there, they are moved to the states first, unless there are few rows for so many groups.
 */
static bool
accept_grids(const ExactSums *sums, ExactGrid *const *grids)
{
	GridSums *by_group = sums->by_group;
	bool same = true;

	for (int i = 0; i < exact_sums(sums->kind); i++)
	{
		if (grids[i]->unit == EXACT_NO_WINDOW)
			return false;
		same &= by_group->unit[i] == grids[i]->unit;
	}
	if (by_group->rows > 0 && (!same || by_group->rows > MOST_GRID_ROWS))
	{
		if (by_group->rows < by_group->ngroups)
			return false;
		exact_sums_complete(sums);
	}
	for (int i = 0; i < exact_sums(sums->kind); i++)
		by_group->unit[i] = grids[i]->unit;
	return true;
}

/* Adds n rows, at most GRID_ROWS, to the sums of integers by group; the others to the states. */
static void
add_integers(const ExactSums *sums, const uint32 *at, const double *x, const double *y, int n)
{
	ExactGrid *grid = sums->grid[0];

	exact_grid_load(grid, x, n);
	if (sums->kind == EXACT_PAIRS)
	{
		exact_grid_load(sums->grid[1], y, n);
		exact_grid_add_others(grid, sums->grid[1]);
	}
	if (!accept_grids(sums, sums->grid))
	{
		sums->by_group->rows += sums->by_group->rows > 0 ? n : 0;
		add_rows(sums, at, x, y, n);
		return;
	}
	grid_sums_add(sums->by_group, &sums->numbers, sums->one_group ? NULL : at, sums->grid, n);
	for (int o = 0; o < grid->nothers; o++)
	{
		int i = grid->others[o];

		add_rows(sums, at + i, x + i, y ? y + i : NULL, 1);
	}
}

void
exact_sums_complete(const ExactSums *sums)
{
	GridSums *by_group = sums->by_group;

	INTERRUPTIBLE_FOR (group, 0, by_group->rows > 0 ? by_group->ngroups : 0)
		if (grid_sums_any(by_group, group))
			grid_sums_move(by_group, group, made_state(sums, group * sums->row_cells));
	by_group->rows = 0;
}

/* Returns the values of a column as doubles, in `buffer` if it has others. */
static const double *
doubles(const Column *col, int n, double *buffer)
{
	const float4 *x = col->values;

	if (col->type == COLUMN_F64)
		return col->values;
	for (int i = 0; i < n; i++)
		buffer[i] = x[i];
	return buffer;
}

/* Rows that count: the offsets of their groups, and their values. */
typedef struct CountedRows
{
	uint32 at[GRID_ROWS];
	double x[GRID_ROWS];
	double y[GRID_ROWS];
} CountedRows;

/*
 * Collects those of the rows from .. end - 1 that have a group and pass the filter, without NULL as
 * an argument. Returns how many there are. Rows with NULL make the states of their groups, as they
 * do in transition functions.
 */
static int
collect_rows(CountedRows *rows, const ExactSums *sums, const GroupTable *table, const Batch *batch,
			 const FallbackAgg *fallback, int from, int end)
{
	const Column *first = &batch->cols[fallback->argcol[0]];
	const Column *second = fallback->nargs > 1 ? &batch->cols[fallback->argcol[1]] : NULL;
	const Column *filter = fallback->filter >= 0 ? &batch->cols[fallback->filter] : NULL;
	int n = 0;

	for (int i = from; i < end; i++)
	{
		bool counts = table->at[i] != NO_GROUP;
		bool null = column_is_null(first, i);

		if (filter)
			counts &= !column_is_null(filter, i) && ((const int8 *) filter->values)[i] != 0;
		if (second)
		{
			null |= column_is_null(second, i);
			rows->y[n] = row_value(first, i);
		}
		rows->x[n] = row_value(second ? second : first, i);
		rows->at[n] = table->at[i];
		if (counts && null)
			made_state(sums, table->at[i]);
		n += counts && !null;
	}
	return n;
}

void
exact_sums_add_counted(const ExactSums *sums, const GroupTable *table, const Batch *batch,
					   const FallbackAgg *fallback)
{
	CountedRows rows;

	for (int from = 0; from < batch->nrows; from += GRID_ROWS)
	{
		int n = collect_rows(&rows, sums, table, batch, fallback, from,
							 Min(from + GRID_ROWS, batch->nrows));

		if (n > 0 && sums->one_group && sums->kind == EXACT_SUM)
			add_run(made_state(sums, rows.at[0]), rows.x, n);
		else if (sums->by_group->sums == NULL)
			add_rows(sums, rows.at, rows.x, rows.y, n);
		else
			add_integers(sums, rows.at, rows.x, rows.y, n);
	}
}

void
exact_sums_add_batch(const ExactSums *sums, const GroupTable *table, const Batch *batch,
					 const FallbackAgg *fallback)
{
	int n = batch->nrows;
	const double *x = doubles(&batch->cols[fallback->argcol[0]], n, sums->buffer[0]);
	const double *y = NULL;

	if (sums->kind == EXACT_SUM && table->nruns > 0 && table->mean_run >= EXACT_MIN_RUN)
	{
		for (int r = 0; r < table->nruns; r++)
			add_run(made_state(sums, table->run_at[r]), x + table->run_start[r],
					table->run_start[r + 1] - table->run_start[r]);
		return;
	}
	if (sums->kind == EXACT_PAIRS)
	{
		/* arguments of core's aggregates are y, x */
		y = x;
		x = doubles(&batch->cols[fallback->argcol[1]], n, sums->buffer[1]);
	}
	if (sums->by_group->sums == NULL)
		add_rows(sums, table->at, x, y, n);
	else
		for (int from = 0; from < n; from += GRID_ROWS)
			add_integers(sums, table->at + from, x + from, y ? y + from : NULL,
						 Min(n - from, GRID_ROWS));
}
