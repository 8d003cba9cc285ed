/*
 * device_cells.h
 *	  The cells of a lookup table, as narrow as its values allow (VectorTable).  Internal to
 *	  device_values.c and device_lookups.c.
 */
#ifndef GPUAGG_ENGINE_CUDA_DEVICE_CELLS_H
#define GPUAGG_ENGINE_CUDA_DEVICE_CELLS_H

#include "postgres.h"

#include "expr/program.h"

/* Chooses the form of a table's cells. */
static inline void
cells_choose_form(const ExprLookup *lookup, VectorTable *table)
{
	uint64 span = (uint64) lookup->interval.max - (uint64) lookup->interval.min;

	table->form = lookup->undetermined              ? VECTOR_CELLS_WIDE :
		lookup->interval.min > lookup->interval.max ? 1 :
		span == 0                                   ? VECTOR_CELLS_BITS :
		span < PG_UINT8_MAX                         ? 1 :
		span < PG_UINT16_MAX                        ? 2 :
		span < PG_UINT32_MAX                        ? 4 :
													  VECTOR_CELLS_WIDE;
	table->least = lookup->interval.min;
}

/* Returns what a cell of a narrow form has for an entry. */
static inline uint32
cell_narrow(const ExprLookup *lookup, const VectorTable *table, uint32 entry)
{
	return lookup->states[entry] == VECTOR_NULL ?
		0 :
		(uint32) ((uint64) lookup->values[entry] - (uint64) table->least) + 1;
}

/* Writes cell `at` for an entry. */
static inline void
cell_write(const ExprLookup *lookup, const VectorTable *table, uint8 *to, int64 at, uint32 entry)
{
	switch (table->form)
	{
		case VECTOR_CELLS_BITS:
			to[at / 8] &= ~(1 << at % 8);
			to[at / 8] |= cell_narrow(lookup, table, entry) << at % 8;
			break;
		case 1:
			to[at] = cell_narrow(lookup, table, entry);
			break;
		case 2:
			((uint16 *) to)[at] = cell_narrow(lookup, table, entry);
			break;
		case 4:
			((uint32 *) to)[at] = cell_narrow(lookup, table, entry);
			break;
		default:
			((int64 *) to)[at] = lookup->values[entry];
			to[((Size) table->n + 1) * sizeof(int64) + at] = lookup->states[entry];
	}
}

/* Sets the value and state of an entry to those of cell `at`, for which it was written. */
static inline void
cell_read(ExprLookup *lookup, const VectorTable *table, const uint8 *from, uint32 at)
{
	uint32 narrow;

	switch (table->form)
	{
		case VECTOR_CELLS_BITS:
			narrow = from[at / 8] >> at % 8 & 1;
			break;
		case 1:
			narrow = from[at];
			break;
		case 2:
			narrow = ((const uint16 *) from)[at];
			break;
		case 4:
			narrow = ((const uint32 *) from)[at];
			break;
		default:
			lookup->values[at] = ((const int64 *) from)[at];
			lookup->states[at] = from[((Size) table->n + 1) * sizeof(int64) + at];
			return;
	}
	lookup->states[at] = narrow == 0 ? VECTOR_NULL : VECTOR_VALUE;
	lookup->values[at] = narrow == 0 ? 0 : (int64) ((uint64) table->least + (narrow - 1));
}

#endif /* GPUAGG_ENGINE_CUDA_DEVICE_CELLS_H */
