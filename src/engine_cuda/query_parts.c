/*
 * query_parts.c
 *	  Adds columns and slots to a query's message. Equal ones are added once.
 */
#include "postgres.h"

#include "engine_cuda/query.h"

int
cuda_query_add_column(CudaQuery *query, int col, Travel travel, WireType type, int key)
{
	CudaColumn *c;

	for (int i = 0; i < query->ncols; i++)
	{
		c = &query->cols[i];
		if (c->col == col && c->travel == travel && c->type == type)
		{
			if (key >= 0)
				c->key = key;
			return i;
		}
	}
	if (query->ncols == WIRE_MAX_COLS)
		return -1;
	c = &query->cols[query->ncols];
	memset(c, 0, sizeof(*c));
	c->col = col;
	c->travel = travel;
	c->type = type;
	c->key = key;
	c->stored = -1;
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
