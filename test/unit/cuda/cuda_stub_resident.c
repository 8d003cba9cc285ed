/*
 * cuda_stub_resident.c
 *	  The server's small kernels on rows of stored columns, on the host; see cuda_stub_kernels.h.
 */
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

/* One row is a tile here. */
static void
run_row(const ProgramRun *run, int64_t position, int64_t *values, uint8_t *states)
{
	for (uint32_t p = 0; p < run->program.ninstructions; p++)
	{
		const VectorInstruction *in = &run->program.instructions[p];
		const DeviceColumn *c = &run->input[in->op == VECTOR_LOAD ? in->a : 0];

		if (in->op != VECTOR_LOAD)
			vector_run(in, run->program.constants, values, states, 1, 0, 1, 1);
		else
		{
			GpuaggColumn column = stub_column_of(c);

			values[in->r] = c->type == WIRE_F32 ? ((const uint32_t *) c->values)[position] :
												  stub_load_integer(&column, position);
			states[in->r] = stub_is_valid(c->validity, position) ? VECTOR_VALUE : VECTOR_NULL;
		}
	}
}

/* The row's columns; false: its outcome is undetermined. */
static bool
end_row(const ProgramRun *run, int64_t i, const int64_t *values, const uint8_t *states)
{
	bool told = true;

	for (int c = 0; c < run->noutputs; c++)
	{
		const ProgramOutput *out = &run->output[c];
		VectorOperand o = vector_operand(out->operand, run->program.constants, values, states, 1);
		int state = vector_state(&o, 0);
		int64_t value = state == VECTOR_VALUE ? vector_value(&o, 0) : 0;

		if (out->values)
			memcpy((char *) out->values + i * out->width, &value, out->width);
		if (out->validity)
			out->validity[i / 32] = (out->validity[i / 32] & ~(1u << (i & 31))) |
				(uint32_t) (state == VECTOR_VALUE) << (i & 31);
		if (state == VECTOR_NULL && !out->nullable && !out->filter)
			told = false;
		if (state == VECTOR_UNDETERMINED)
			told = false;
	}
	return told;
}

GpuaggCudaStatus
device_run_program(const ProgramRun *run, int nregisters, int64_t first, int64_t nrows,
				   const uint8_t *mask, uint8_t *filter, gpuagg_stream stream)
{
	int64_t values[VECTOR_MAX_REGISTERS];
	uint8_t states[VECTOR_MAX_REGISTERS];

	(void) nregisters, (void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		VectorOperand o;
		bool wanted = mask == NULL || mask[i];
		int state = VECTOR_VALUE;
		bool told;

		run_row(run, first + i, values, states);
		told = end_row(run, i, values, states);
		if (run->program.filter != VECTOR_NONE)
		{
			o = vector_operand(run->program.filter, run->program.constants, values, states, 1);
			state = vector_state(&o, 0);
			if (state == VECTOR_VALUE && vector_value(&o, 0) == 0)
				state = VECTOR_NULL;
		}
		if (wanted && (state == VECTOR_UNDETERMINED || (state == VECTOR_VALUE && !told)))
			(*run->undetermined)++;
		filter[i] = wanted && state == VECTOR_VALUE && told;
	}
	return GPUAGG_CUDA_OK;
}
