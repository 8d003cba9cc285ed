/*
 * cuda_stub_resident.c
 *	  The server's small kernels on rows of stored columns, on the host; see cuda_stub_kernels.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"
#include "operators/vector_run.h"

GpuaggCudaStatus
device_filter_bins(const uint8_t *filter, int64_t nrows, int32_t *bins, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		bins[i] = filter[i] ? 0 : -1;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_mask(const StoreSpan *spans, int nspans, int64_t first, int64_t nrows, uint8_t *mask,
			gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	memset(mask, 0, nrows);
	for (int s = 0; s < nspans; s++)
		for (int64_t i = spans[s].first; i < spans[s].first + spans[s].nrows; i++)
			if (i >= first && i < first + nrows)
				mask[i - first] = 1;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_put_bits(const void *from, void *bits, int64_t first, int64_t nrows, gpuagg_stream stream)
{
	uint8_t *to = bits;

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		int bit = 1 << ((first + i) & 7);

		if (from == NULL || stub_is_valid(from, i))
			to[(first + i) >> 3] |= bit;
		else
			to[(first + i) >> 3] &= ~bit;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_check_floats(const FloatCheck *check, int64_t nrows, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		VectorRow x = {.b = {vector_bits_F64(check->below), VECTOR_VALUE}};
		double value = check->column.type == WIRE_F32 ? ((const float *) check->column.values)[i] :
														((const double *) check->column.values)[i];

		if ((!check->mask || check->mask[i]) && stub_is_valid(check->column.validity, i) &&
			vector_below(x, value, check->no_zeros).state == VECTOR_UNDETERMINED)
			(*check->undetermined)++;
	}
	return GPUAGG_CUDA_OK;
}

/* ---- programs ---- */

#define TILE 1024

typedef struct Tile
{
	int n; /* rows */
	int64_t values[VECTOR_MAX_REGISTERS * TILE];
	uint8_t states[VECTOR_MAX_REGISTERS * TILE];
} Tile;

/* Loads the tile's rows of a column into register r. `position`: the first row in the column. */
static void
load_rows(Tile *tile, const DeviceColumn *c, int64_t position, int r)
{
	GpuaggColumn column = stub_column_of(c);
	int64_t *values = tile->values + r * TILE;
	uint8_t *states = tile->states + r * TILE;

	for (int i = 0; i < tile->n; i++)
	{
		values[i] = c->type == WIRE_F32 ? ((const uint32_t *) c->values)[position + i] :
										  stub_load_integer(&column, position + i);
		states[i] = stub_is_valid(c->validity, position + i) ? VECTOR_VALUE : VECTOR_NULL;
	}
}

/* Runs the program over the tile's rows, which begin at this position of the stored columns. */
static void
run_tile(Tile *tile, const ProgramRun *run, int64_t position)
{
	const VectorConstant *constants = run->program.constants;

	for (uint32_t p = 0; p < run->program.ninstructions; p++)
	{
		const VectorInstruction *in = &run->program.instructions[p];

		if (in->op == VECTOR_LOAD)
			load_rows(tile, &run->input[in->a], position, in->r);
		else
			stub_run_instruction(in, &(StubTables){run->tables, run->cells}, constants,
								 tile->values, tile->states, TILE, tile->n);
	}
}

/* Writes a column of the tile, from row `at` of the slice on. */
static void
write_output(const Tile *tile, const ProgramRun *run, const ProgramOutput *out, int64_t at)
{
	VectorOperand o =
		vector_operand(out->operand, run->program.constants, tile->values, tile->states, TILE);

	for (int row = 0; row < tile->n; row++)
	{
		bool valid = vector_state(&o, row) == VECTOR_VALUE;
		int64_t value = valid ? vector_value(&o, row) : 0;
		int64_t i = at + row;

		if (out->values)
			memcpy((char *) out->values + i * out->width, &value, out->width);
		if (out->validity)
			out->validity[i / 32] =
				(out->validity[i / 32] & ~(1u << (i & 31))) | (uint32_t) valid << (i & 31);
	}
}

/* Returns whether the row counts; counts it as undetermined if its outcome is. */
static bool
end_row(const Tile *tile, const ProgramRun *run, int row)
{
	const VectorConstant *constants = run->program.constants;
	bool undetermined = false, counts = true;

	if (run->program.filter != VECTOR_NONE)
	{
		VectorOperand o =
			vector_operand(run->program.filter, constants, tile->values, tile->states, TILE);

		undetermined = vector_state(&o, row) == VECTOR_UNDETERMINED;
		counts = vector_state(&o, row) == VECTOR_VALUE && vector_value(&o, row) != 0;
	}
	for (int c = 0; c < run->noutputs && counts; c++)
	{
		const ProgramOutput *out = &run->output[c];
		VectorOperand o = vector_operand(out->operand, constants, tile->values, tile->states, TILE);
		int state = vector_state(&o, row);

		undetermined |= state == VECTOR_UNDETERMINED ||
			(state == VECTOR_NULL && !out->nullable && !out->filter);
	}
	*run->undetermined += undetermined;
	return counts && !undetermined;
}

GpuaggCudaStatus
device_run_program(const ProgramRun *run, int nregisters, int64_t first, int64_t nrows,
				   const uint8_t *mask, uint8_t *filter, gpuagg_stream stream)
{
	Tile *tile;

	(void) nregisters, (void) stream;
	LAUNCH();
	tile = malloc(sizeof(*tile));
	for (int64_t at = 0; at < nrows; at += tile->n)
	{
		tile->n = nrows - at < TILE ? (int) (nrows - at) : TILE;
		run_tile(tile, run, first + at);
		for (int row = 0; row < tile->n; row++)
			filter[at + row] = (mask == NULL || mask[at + row]) && end_row(tile, run, row);
		for (int c = 0; c < run->noutputs; c++)
			write_output(tile, run, &run->output[c], at);
	}
	free(tile);
	return GPUAGG_CUDA_OK;
}
