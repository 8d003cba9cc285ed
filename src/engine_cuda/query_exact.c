/*
 * query_exact.c
 *	  Translates exact aggregates of floats for the GPU server, as sums of integers and of their
 *	  squares.
 *
 * Exact aggregates are fallback aggregates (aggregates/exact.c).  Their floats travel as two
 * integers (operators/exact_parts.h).  The server adds these, their squares, and the squares of
 * sums of two, from which sums of products follow.  Of these sums this file makes the states that
 * the CPU engine would have, so that states of both can be combined.
 *
 * All values of a column have one unit.  It suits the first values that come, and others up to 2^20
 * times as large or 2^53 times as small.  The CPU fallback takes batches with values that do not
 * fit.
 */
#include "postgres.h"

#include <math.h>

#include "aggregates/exact.h"
#include "engine_cuda/query.h"
#include "operators/exact_parts.h"

/* Bits for values that are larger than those for which a unit is chosen. */
#define MARGIN_BITS 20

/* ---- translation ---- */

/* Adds the columns with both parts of a column. Returns NULL if there are too many. */
static CudaParts *
add_parts(CudaQuery *query, int col)
{
	int high = cuda_query_add_column(query, col, TRAVEL_HIGH_PART, WIRE_I64, -1);
	int low = cuda_query_add_column(query, col, TRAVEL_LOW_PART, WIRE_I64, -1);
	CudaParts *parts;

	if (high < 0 || low < 0)
		return NULL;
	if (query->cols[high].parts)
		return query->cols[high].parts;
	parts = palloc0(sizeof(CudaParts));
	parts->high_col = high;
	parts->low_col = low;
	query->cols[high].parts = query->cols[low].parts = parts;
	return parts;
}

/* Adds a sum or a count over a column. Returns its number, which may be too large by one. */
static int
add_slot(CudaQuery *query, MonoidId monoid, int col, int filter)
{
	WireSlot slot = {.monoid = monoid, .col = {col, -1}, .filter = filter, .width = 1};

	return cuda_query_add_slot(query, &slot);
}

/* Adds the column with the sums of two parts, which are columns, and a slot with its squares. */
static int
add_squares(CudaQuery *query, int a, int b, int filter)
{
	int sum =
		cuda_query_add_derived(query, query->cols[a].col, TRAVEL_PARTS_SUM, WIRE_I64, a, b, 0);

	return sum < 0 ? -1 : add_slot(query, MONOID_SUMSQ_I192, sum, filter);
}

/* Adds the slots of one variable. Returns false if there are too many columns. */
static bool
add_variable(CudaQuery *query, CudaExactVariable *v, bool squares, int filter)
{
	const CudaParts *parts = v->parts;

	v->high = add_slot(query, MONOID_SUM_I128, parts->high_col, filter);
	v->low = add_slot(query, MONOID_SUM_I128, parts->low_col, filter);
	if (!squares)
		return true;
	v->high_squares = add_slot(query, MONOID_SUMSQ_I192, parts->high_col, filter);
	v->low_squares = add_slot(query, MONOID_SUMSQ_I192, parts->low_col, filter);
	v->sum_squares = add_squares(query, parts->high_col, parts->low_col, filter);
	return v->sum_squares >= 0;
}

/* Returns the column of a variable's high or low part. */
static int
part_column(const CudaExactVariable *v, bool low)
{
	return low ? v->parts->low_col : v->parts->high_col;
}

/* Adds the slots of an exact aggregate whose variables have their parts. */
static bool
add_slots(CudaQuery *query, CudaExact *exact, int present, int filter)
{
	CudaExactVariable *x = &exact->variables[0], *y = &exact->variables[1];

	exact->rows = filter < 0 ? -1 : add_slot(query, MONOID_COUNT, -1, filter);
	if (exact->kind == EXACT_PAIRS)
	{
		filter = cuda_query_add_derived(query, query->cols[x->parts->low_col].col, TRAVEL_PAIRS,
										WIRE_I8, x->parts->low_col, y->parts->low_col, filter);
		if (filter < 0)
			return false;
		present = -1;
	}
	exact->count = add_slot(query, MONOID_COUNT, present, filter);
	for (int i = 0; i < exact_sums(exact->kind); i++)
		if (!add_variable(query, &exact->variables[i], exact->kind != EXACT_SUM, filter))
			return false;
	for (int i = 0; i < 4 && exact->kind == EXACT_PAIRS; i++)
	{
		int slot = add_squares(query, part_column(x, i / 2), part_column(y, i % 2), filter);

		if (slot < 0)
			return false;
		exact->pair_squares[i / 2][i % 2] = slot;
	}
	return query->wire->nslots <= WIRE_MAX_SLOTS;
}

/* Translates exact aggregate o. Pairs have the arguments y and x. */
static bool
translate_exact(CudaQuery *query, int o, const char **why)
{
	const FallbackAgg *fallback = &query->spec->fallbacks[o];
	CudaExact *exact = &query->exact[o];
	int present, filter = -1;

	*why = "exact aggregates of DISTINCT or ordered floats are not supported on the GPU";
	if (fallback->set > 0)
		return false;
	*why = "the query has more aggregates than the GPU supports";
	exact->kind = exact_kind_of(&fallback->transfn);
	present = cuda_query_add_column(query, fallback->argcol[0], TRAVEL_PRESENCE, WIRE_I8, -1);
	if (fallback->filter >= 0)
		filter = cuda_query_add_column(query, fallback->filter, TRAVEL_FILTER, WIRE_I8, -1);
	if (present < 0 || (fallback->filter >= 0 && filter < 0))
		return false;
	for (int i = 0; i < exact_sums(exact->kind); i++)
	{
		exact->variables[i].parts =
			add_parts(query, fallback->argcol[exact_sums(exact->kind) - 1 - i]);
		if (exact->variables[i].parts == NULL)
			return false;
	}
	return add_slots(query, exact, present, filter);
}

bool
cuda_query_exact(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;

	query->exact = palloc0(sizeof(CudaExact) * (spec->nfallbacks + 1));
	for (int o = 0; o < spec->nfallbacks; o++)
		if (spec->fallbacks[o].exact && !translate_exact(query, o, why))
			return false;
	return true;
}

bool
cuda_query_has_exact(const CudaQuery *query)
{
	return cuda_query_exact_bytes(query) > 0;
}

size_t
cuda_query_exact_bytes(const CudaQuery *query)
{
	size_t bytes = 0;

	for (int o = 0; o < query->spec->nfallbacks; o++)
		if (query->exact[o].kind != 0)
			bytes += exact_most_bytes(query->exact[o].kind);
	return bytes;
}

/* ---- units ---- */

/* Returns the position of the lowest bit of a double's mantissa. */
static int
lowest_position(double x)
{
	uint64 bits;

	memcpy(&bits, &x, sizeof(bits));
	return Max((int) (bits >> 52 & 0x7ff), 1) - 1;
}

bool
cuda_parts_reach(CudaParts *parts, double magnitude)
{
	int position = lowest_position(magnitude);

	if (magnitude == 0)
		return true;
	if (!parts->settled)
	{
		parts->unit =
			Min(Max(position + MARGIN_BITS - EXACT_PARTS_SHIFT, 0), EXACT_PARTS_LAST_UNIT);
		parts->settled = true;
	}
	return position - parts->unit <= EXACT_PARTS_SHIFT;
}

/* ---- batches ---- */

/* Returns the value of a row as a double; 0 for NULL. */
static inline double
row_value(const Column *in, int i)
{
	if (column_is_null(in, i))
		return 0;
	return in->type == COLUMN_F64 ? ((const float8 *) in->values)[i] :
									((const float4 *) in->values)[i];
}

/* Returns the largest finite magnitude in n rows. */
static double
greatest_magnitude(const Column *in, int n)
{
	double greatest = 0;

	for (int i = 0; i < n; i++)
	{
		double x = fabs(row_value(in, i));

		if (x > greatest && !isinf(x))
			greatest = x;
	}
	return greatest;
}

bool
cuda_query_split(CudaQuery *query, const Batch *batch)
{
	for (int c = 0; c < query->ncols; c++)
	{
		CudaColumn *col = &query->cols[c];
		CudaParts *parts = col->parts;
		const Column *in = &batch->cols[col->col];
		bool settled = parts && parts->settled;
		int fits = 1;

		if (parts == NULL || parts->high_col != c)
			continue;
		if (!settled)
			cuda_parts_reach(parts, greatest_magnitude(in, batch->nrows));
		for (int i = 0; i < batch->nrows; i++)
		{
			GpuaggParts p = gpuagg_exact_parts(row_value(in, i), parts->unit);

			parts->high[i] = p.high;
			parts->low[i] = p.low;
			fits &= p.fits;
		}
		if (!fits)
		{
			/* the server has no values with this unit, and the next batch may have others */
			parts->settled = settled;
			return false;
		}
	}
	return true;
}

void
cuda_parts_read(const CudaParts *parts, const int64 *high, const int64 *low, int n, Column *out)
{
	for (int i = 0; i < n; i++)
	{
		double x = gpuagg_exact_value(high[i], low[i], parts->unit);

		if (out->type == COLUMN_F64)
			((float8 *) out->values)[i] = x;
		else
			((float4 *) out->values)[i] = (float4) x;
	}
}

/* ---- groups ---- */

/* Groups of a chunk, from group `from` on. */
typedef struct ChunkStates
{
	const CudaQuery *query;
	const WireGroups *groups;
	const char *buffer;
	uint32 from;
} ChunkStates;

/* Returns the states of a slot. */
static const void *
slot_states(const ChunkStates *chunk, int slot)
{
	return chunk->buffer + chunk->groups->slots[slot] +
		(size_t) chunk->from * gpuagg_monoids[chunk->query->wire->slots[slot].monoid].state_size;
}

/* Returns group g's sum of squares in a slot. */
static gpuagg_i192
squares_of(const ChunkStates *chunk, int slot, int g)
{
	gpuagg_i192 squares;

	memcpy(&squares, (const gpuagg_i192 *) slot_states(chunk, slot) + g, sizeof(squares));
	return squares;
}

/*
 * Sets a sum of squares. With the parts h and l of x = h * 2^62 + l, x * x = h * h * 2^124 + 2 * h
 * * l * 2^62 + l * l, and 2 * h * l = (h + l)^2 - h * h - l * l.
 */
static void
set_squares(const ChunkStates *chunk, const CudaExactVariable *v, int g, ExactState *state, int i)
{
	gpuagg_i192 high = squares_of(chunk, v->high_squares, g);
	gpuagg_i192 low = squares_of(chunk, v->low_squares, g);

	exact_add_to_window(state, i, high, 2 * EXACT_PARTS_LOW, false);
	exact_add_to_window(state, i, squares_of(chunk, v->sum_squares, g), EXACT_PARTS_LOW, false);
	exact_add_to_window(state, i, high, EXACT_PARTS_LOW, true);
	exact_add_to_window(state, i, low, EXACT_PARTS_LOW, true);
	exact_add_to_window(state, i, low, 0, false);
}

/*
 * Sets the sum of x * y. It is the sum of the products of each part of x and each part of y, and
 * 2 * a * b = (a + b)^2 - a * a - b * b.
 */
static void
set_products(const ChunkStates *chunk, const CudaExact *exact, int g, ExactState *state)
{
	const CudaExactVariable *x = &exact->variables[0], *y = &exact->variables[1];

	for (int i = 0; i < 4; i++)
	{
		bool x_low = i / 2, y_low = i % 2;
		int shift = (!x_low + !y_low) * EXACT_PARTS_LOW;
		int squares[] = {x_low ? x->low_squares : x->high_squares,
						 y_low ? y->low_squares : y->high_squares};

		exact_add_to_window(state, EXACT_XY,
							squares_of(chunk, exact->pair_squares[x_low][y_low], g), shift, false);
		for (int j = 0; j < 2; j++)
			exact_add_to_window(state, EXACT_XY, squares_of(chunk, squares[j], g), shift, true);
	}
	exact_halve_window(state, EXACT_XY);
}

/* Returns the state of a group. */
static ExactState *
make_state(const ChunkStates *chunk, const CudaExact *exact, int g)
{
	ExactState *state = exact_create(exact->kind);

	state->n = ((const int64 *) slot_states(chunk, exact->count))[g];
	for (int i = 0; i < exact_sums(exact->kind); i++)
	{
		const CudaExactVariable *v = &exact->variables[i];

		exact_set_parts(state, i, ((const gpuagg_i128 *) slot_states(chunk, v->high))[g],
						((const gpuagg_i128 *) slot_states(chunk, v->low))[g], v->parts->unit);
		if (exact->kind != EXACT_SUM)
			set_squares(chunk, v, g, state, i == 0 ? EXACT_XX : EXACT_YY);
	}
	if (exact->kind == EXACT_PAIRS)
		set_products(chunk, exact, g, state);
	return state;
}

void
cuda_query_exact_states(const CudaQuery *query, int o, const WireGroups *groups, const char *buffer,
						uint32 from, GroupBatch *out)
{
	const ChunkStates chunk = {query, groups, buffer, from};
	const CudaExact *exact = &query->exact[o];
	const int64 *rows = exact->rows < 0 ? NULL : slot_states(&chunk, exact->rows);

	for (int g = 0; g < out->ngroups; g++)
	{
		/* without rows there is no state; rows with NULL make one */
		out->fallback_nulls[o][g] = rows && rows[g] == 0;
		out->fallbacks[o][g] = (Datum) 0;
		if (!out->fallback_nulls[o][g])
			out->fallbacks[o][g] = PointerGetDatum(make_state(&chunk, exact, g));
	}
}
