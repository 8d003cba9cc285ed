/*
 * query_exact.c
 *	  Translates exact sums of floats for the GPU server, as sums of integers.
 *
 * Exact sums are fallback aggregates (aggregates/exact.c).  Their floats travel as two integers
 * (operators/exact_parts.h), which the server adds.  From these sums this file makes the states
 * that the CPU engine would have, so that states of both can be combined.
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

/* Translates exact sum o. */
static bool
translate_sum(CudaQuery *query, int o, const char **why)
{
	const FallbackAgg *fallback = &query->spec->fallbacks[o];
	CudaExactSum *sum = &query->exact[o];
	int present, filter = -1;

	*why = "variances and regression are exact only on the CPU";
	if (exact_kind_of(&fallback->transfn) != EXACT_SUM)
		return false;
	*why = "exact sums of DISTINCT or ordered floats are not supported on the GPU";
	if (fallback->set > 0)
		return false;
	*why = "the query has more aggregates than the GPU supports";
	present = cuda_query_add_column(query, fallback->argcol[0], TRAVEL_PRESENCE, WIRE_I8, -1);
	if (fallback->filter >= 0)
		filter = cuda_query_add_column(query, fallback->filter, TRAVEL_FILTER, WIRE_I8, -1);
	sum->parts = add_parts(query, fallback->argcol[0]);
	if (present < 0 || sum->parts == NULL || (fallback->filter >= 0 && filter < 0))
		return false;
	sum->count = add_slot(query, MONOID_COUNT, present, filter);
	sum->high = add_slot(query, MONOID_SUM_I128, sum->parts->high_col, filter);
	sum->low = add_slot(query, MONOID_SUM_I128, sum->parts->low_col, filter);
	sum->rows = filter < 0 ? -1 : add_slot(query, MONOID_COUNT, -1, filter);
	return true;
}

bool
cuda_query_exact_sums(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;

	query->exact = palloc0(sizeof(CudaExactSum) * (spec->nfallbacks + 1));
	for (int o = 0; o < spec->nfallbacks; o++)
		if (spec->fallbacks[o].exact && !translate_sum(query, o, why))
			return false;
	return true;
}

int
cuda_query_count_exact_sums(const CudaQuery *query)
{
	int n = 0;

	for (int o = 0; o < query->spec->nfallbacks; o++)
		n += query->exact[o].parts != NULL;
	return n;
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

/* Returns the states of a slot in a chunk of groups, from group `from` on. */
static const void *
slot_states(const CudaQuery *query, const WireGroups *groups, const char *buffer, int slot,
			uint32 from)
{
	return buffer + groups->slots[slot] +
		(size_t) from * gpuagg_monoids[query->wire->slots[slot].monoid].state_size;
}

void
cuda_query_exact_states(const CudaQuery *query, int o, const WireGroups *groups, const char *buffer,
						uint32 from, GroupBatch *out)
{
	const CudaExactSum *sum = &query->exact[o];
	const int64 *count = slot_states(query, groups, buffer, sum->count, from);
	const int64 *rows = sum->rows < 0 ? NULL : slot_states(query, groups, buffer, sum->rows, from);
	const gpuagg_i128 *high = slot_states(query, groups, buffer, sum->high, from);
	const gpuagg_i128 *low = slot_states(query, groups, buffer, sum->low, from);

	for (int g = 0; g < out->ngroups; g++)
	{
		ExactState *state;

		/* without rows there is no state; rows with NULL make one */
		out->fallback_nulls[o][g] = rows && rows[g] == 0;
		out->fallbacks[o][g] = (Datum) 0;
		if (out->fallback_nulls[o][g])
			continue;
		state = exact_create(EXACT_SUM);
		exact_set_parts(state, count[g], high[g], low[g], sum->parts->unit);
		out->fallbacks[o][g] = PointerGetDatum(state);
	}
}
