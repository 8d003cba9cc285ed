/*
 * query_parts.c
 *	  Adds columns and slots to a query's message. Equal ones are added once.
 */
#include "postgres.h"

#include "engine_cuda/query.h"

int
cuda_query_add_column(CudaQuery *query, int col, Travel travel, WireType type, int key)
{
	int i = cuda_query_add_derived(query, col, travel, type, 0, 0, 0);

	if (i >= 0 && key >= 0)
		query->cols[i].key = key;
	return i;
}

int
cuda_query_add_derived(CudaQuery *query, int col, Travel travel, WireType type, int a, int b, int c)
{
	const int sources[] = {a, b, c};
	CudaColumn *out;

	for (int i = 0; i < query->ncols; i++)
	{
		out = &query->cols[i];
		if (out->col == col && out->travel == travel && out->type == type &&
			memcmp(out->sources, sources, sizeof(sources)) == 0)
			return i;
	}
	if (query->ncols == WIRE_MAX_COLS)
		return -1;
	out = &query->cols[query->ncols];
	memset(out, 0, sizeof(*out));
	out->col = col;
	out->travel = travel;
	out->type = type;
	memcpy(out->sources, sources, sizeof(sources));
	out->key = -1;
	out->stored = -1;
	return query->ncols++;
}

int
cuda_native_type(ColumnType type)
{
#define X(NAME, value_t, bits_t, WIRE, ...) WIRE,
	static const int wire[] = {COLUMN_TYPES(X)};
#undef X

	return wire[type];
}

int
cuda_query_add_slot(CudaQuery *query, const WireSlot *slot)
{
	WireQuery *wire = query->wire;

	for (int s = 0; s < wire->nslots; s++)
		if (memcmp(&wire->slots[s], slot, sizeof(*slot)) == 0)
			return s;
	if (wire->nslots < WIRE_MAX_SLOTS)
		wire->slots[wire->nslots] = *slot;
	return wire->nslots++;
}
