/*
 * cuda_stub_batches.c
 *	  The server's small kernels on rows of batches, on the host: bins, sketches, and inputs of
 *	  operators in order; see cuda_stub_kernels.h.
 */
#include <string.h>

#include "cuda_stub_kernels.h"
#include "operators/bins.h"
#include "operators/hll.h"

GpuaggCudaStatus
device_scatter(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
			   gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		if (map[i] >= 0)
			memcpy((char *) to + map[i] * row_bytes, (const char *) from + i * row_bytes,
				   row_bytes);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_gather(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
			  gpuagg_stream stream)
{
	LAUNCH();
	stub_write(to, n * row_bytes, stream);
	for (int64_t i = 0; i < n; i++)
		memcpy((char *) to + i * row_bytes, (const char *) from + map[i] * row_bytes, row_bytes);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_take_keys(const void *states, int64_t n, int64_t *to, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		to[i] = ((const gpuagg_kv *) states)[i].key;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_slot_bins(const SlotBins *b, int64_t nrows, int32_t *out, gpuagg_stream stream)
{
	GpuaggColumn column = stub_column_of(&b->column);

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		int group = b->group ? b->group[i] : 0;
		int bin;

		out[i] = -1;
		if (group < 0 || !stub_is_valid(b->column.validity, i) || (b->filter && !b->filter[i]))
			continue;
		if (b->kind == WIRE_BIN_UNIFORM)
			bin = gpuagg_bin_uniform(stub_load_double(&column, i), b->lo, b->hi, b->n, b->formula);
		else
			bin = gpuagg_bin_thresholds(stub_load_double(&column, i), b->thresholds, b->n);
		out[i] = group * b->width + bin;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_update_sketches(const SketchRows *rows, int64_t nrows, void *registers, gpuagg_stream stream)
{
	GpuaggColumn column = stub_column_of(&rows->column);

	(void) stream;
	LAUNCH_UPDATE();
	for (int64_t i = 0; i < nrows; i++)
	{
		int64_t group = rows->group ? rows->group[i] - rows->min : 0;
		int bin, rank;
		uint8_t *to;

		if (group < 0 || group >= rows->ngroups || !stub_is_valid(column.validity, i) ||
			(rows->filter && !rows->filter[i]))
			continue;
		gpuagg_bin_hll((uint64_t) stub_load_integer(&column, i), &bin, &rank);
		to = (uint8_t *) registers + (size_t) group * GPUAGG_HLL_REGISTERS + bin;
		*to = (uint8_t) hll_max_combine(*to, rank);
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_count_ranks(const void *registers, const int32_t *list, int64_t n, int32_t *counts,
				   gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
	{
		const uint8_t *from =
			(const uint8_t *) registers + (list ? list[i] : i) * GPUAGG_HLL_REGISTERS;

		memset(counts + i * GPUAGG_HLL_RANKS, 0, GPUAGG_HLL_RANKS * sizeof(*counts));
		for (int r = 0; r < GPUAGG_HLL_REGISTERS; r++)
			counts[i * GPUAGG_HLL_RANKS + from[r]]++;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_widen_registers(const void *registers, const int32_t *list, int64_t n, int32_t *to,
					   gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n * GPUAGG_HLL_REGISTERS; i++)
	{
		int64_t group = i / GPUAGG_HLL_REGISTERS;

		to[i] = ((const uint8_t *) registers)[(list ? list[group] : group) * GPUAGG_HLL_REGISTERS +
											  i % GPUAGG_HLL_REGISTERS];
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_combine_sketches(const void *from, const int32_t *bins, int64_t n, void *registers,
						gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n * GPUAGG_HLL_REGISTERS; i++)
	{
		int64_t group = i / GPUAGG_HLL_REGISTERS;
		uint8_t *to = (uint8_t *) registers + (bins ? bins[group] : group) * GPUAGG_HLL_REGISTERS +
			i % GPUAGG_HLL_REGISTERS;

		*to = (uint8_t) hll_max_combine(*to, ((const uint8_t *) from)[i]);
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_pack_inputs(const PackInput *pack, int64_t nrows, void *inputs, uint8_t *keep,
				   gpuagg_stream stream)
{
	GpuaggColumn x = stub_column_of(&pack->column[0]);
	GpuaggColumn y = stub_column_of(&pack->column[1]);
	bool takes_nulls = pack->monoid == MONOID_LONGEST_ASC;

	(void) stream;
	if (gpuagg_monoids[pack->monoid].commutative)
		return GPUAGG_CUDA_UNSUPPORTED;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		keep[i] = (pack->filter == NULL || pack->filter[i]) &&
			(takes_nulls ||
			 ((x.values == NULL || stub_is_valid(x.validity, i)) &&
			  (y.values == NULL || stub_is_valid(y.validity, i))));
	if (!takes_nulls)
		stub_operators[pack->monoid].pack(inputs, &x, &y, nrows);
	for (int64_t i = 0; i < nrows && takes_nulls; i++)
	{
		int64_t valid = stub_is_valid(x.validity, i);

		((gpuagg_kv *) inputs)[i] = (gpuagg_kv){valid ? stub_load_integer(&x, i) : 0, valid};
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_pack_order(const DeviceColumn *order, int64_t nrows, int nulls_first, int64_t *codes,
				  int8_t *ranks, gpuagg_stream stream)
{
	GpuaggColumn column = stub_column_of(order);

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		bool valid = stub_is_valid(column.validity, i);

		codes[i] = valid ? stub_load_integer(&column, i) : 0;
		ranks[i] = valid == (nulls_first != 0);
	}
	return GPUAGG_CUDA_OK;
}
