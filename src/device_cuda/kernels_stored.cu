/*
 * kernels_stored.cu
 *	  Kernels for rows of stored columns: masks, bitmaps, checks of floats, and the interpreter of
 *	  programs; see kernels.h.
 */
#include "common.cuh"

#include "operators/vector_run.h"
#include "device_cuda/column.cuh"
#include "device_cuda/kernels.h"

#define THREADS 256

static int
grid_for(int64_t n, int most)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;

	return (int) (blocks < most ? (blocks > 0 ? blocks : 1) : most);
}

/* ---- masks ---- */

__global__ static void
filter_bins_kernel(const uint8_t *filter, int64_t nrows, int32_t *bins)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows;
		 i += (int64_t) gridDim.x * blockDim.x)
		bins[i] = filter[i] ? 0 : -1;
}

GpuaggCudaStatus
device_filter_bins(const uint8_t *filter, int64_t nrows, int32_t *bins, gpuagg_stream stream)
{
	filter_bins_kernel<<<grid_for(nrows, 4096), THREADS, 0, stream>>>(filter, nrows, bins);
	CUDA_TRY_LAUNCH("filter_bins_kernel");
	return GPUAGG_CUDA_OK;
}

/* Rows per thread; their bytes are written as one word. */
#define MASK_ROWS 8

/* Returns the number of the first range of rows that ends after the position. */
__device__ static int
span_at(const StoreSpan *spans, int nspans, int64_t position)
{
	int left = 0, right = nspans;

	while (left < right)
	{
		int mid = left + (right - left) / 2;

		if (spans[mid].first + spans[mid].nrows > position)
			right = mid;
		else
			left = mid + 1;
	}
	return left;
}

__global__ static void
mask_kernel(const StoreSpan *spans, int nspans, int64_t first, int64_t nrows, uint8_t *mask)
{
	int64_t words = (nrows + MASK_ROWS - 1) / MASK_ROWS;

	for (int64_t w = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; w < words;
		 w += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t at = first + w * MASK_ROWS;
		int s = span_at(spans, nspans, at);
		uint64_t bytes = 0;

		for (int i = 0; i < MASK_ROWS && s < nspans; i++)
		{
			if (spans[s].first + spans[s].nrows <= at + i)
				s++;
			if (s < nspans && spans[s].first <= at + i)
				bytes |= (uint64_t) 1 << 8 * i;
		}
		if ((w + 1) * MASK_ROWS <= nrows)
			((uint64_t *) mask)[w] = bytes;
		else
			for (int64_t i = w * MASK_ROWS; i < nrows; i++)
				mask[i] = (uint8_t) (bytes >> 8 * (i - w * MASK_ROWS));
	}
}

GpuaggCudaStatus
device_mask(const StoreSpan *spans, int nspans, int64_t first, int64_t nrows, uint8_t *mask,
			gpuagg_stream stream)
{
	mask_kernel<<<grid_for((nrows + MASK_ROWS - 1) / MASK_ROWS, 8192), THREADS, 0, stream>>>(
		spans, nspans, first, nrows, mask);
	CUDA_TRY_LAUNCH("mask_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- bitmaps ---- */

/* Returns the 64 bits from bit `at` on of a bitmap of n bits; bits outside of the bitmap are 0. */
__device__ static uint64_t
bits_at(const uint64_t *from, int64_t at, int64_t n)
{
	int64_t word = at >> 6;
	int shift = (int) (at & 63);
	int64_t words = (n + 63) / 64;
	uint64_t low = word >= 0 && word < words ? from[word] : 0;
	uint64_t high = word + 1 >= 0 && word + 1 < words ? from[word + 1] : 0;

	return shift ? low >> shift | high << (64 - shift) : low;
}

__global__ static void
put_bits_kernel(const uint64_t *from, uint64_t *bits, int64_t first, int64_t nrows)
{
	int64_t begin = first / 64;
	int64_t end = (first + nrows + 63) / 64;

	for (int64_t w = begin + blockIdx.x * (int64_t) blockDim.x + threadIdx.x; w < end;
		 w += (int64_t) gridDim.x * blockDim.x)
	{
		uint64_t ours = ~(uint64_t) 0;
		uint64_t value = from ? bits_at(from, w * 64 - first, nrows) : ~(uint64_t) 0;

		if (w * 64 < first)
			ours &= ~(uint64_t) 0 << (first - w * 64);
		if ((w + 1) * 64 > first + nrows)
			ours &= ~(uint64_t) 0 >> ((w + 1) * 64 - first - nrows);
		/* queries may read the other bits of the word at the same time: they must not change */
		bits[w] = ours == ~(uint64_t) 0 ? value : (bits[w] & ~ours) | (value & ours);
	}
}

GpuaggCudaStatus
device_put_bits(const void *from, void *bits, int64_t first, int64_t nrows, gpuagg_stream stream)
{
	put_bits_kernel<<<grid_for(nrows / 64 + 2, 1024), THREADS, 0, stream>>>(
		(const uint64_t *) from, (uint64_t *) bits, first, nrows);
	CUDA_TRY_LAUNCH("put_bits_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- checks of floats ---- */

/* Rows that a thread loads at a time. */
#define CHECK_ROWS 4

template <typename T, typename V>
__device__ static bool
is_undetermined(const FloatCheck &check, int64_t i, V bits)
{
	VectorRow x = {};
	T value;

	memcpy(&value, &bits, sizeof(value));
	x.b.value = __double_as_longlong(check.below);
	return vector_below(x, value, check.no_zeros).state == VECTOR_UNDETERMINED &&
		is_valid(check.column, i) && (!check.mask || check.mask[i]);
}

/* T is the float type, V an integer type of the same width. */
template <typename T, typename V>
__global__ static void
check_kernel(const FloatCheck check, int64_t nrows)
{
	const V *values = (const V *) check.column.values;
	int64_t step = (int64_t) gridDim.x * THREADS;
	unsigned undetermined = 0;

	for (int64_t at = blockIdx.x * (int64_t) THREADS + threadIdx.x; at < nrows;
		 at += CHECK_ROWS * step)
	{
		V v[CHECK_ROWS];

#pragma unroll
		for (int j = 0; j < CHECK_ROWS; j++)
			v[j] = at + j * step < nrows ? values[at + j * step] : 0;
#pragma unroll
		for (int j = 0; j < CHECK_ROWS; j++)
			undetermined += at + j * step < nrows && is_undetermined<T>(check, at + j * step, v[j]);
	}
	if (undetermined > 0)
		atomicAdd(check.undetermined, (unsigned long long) undetermined);
}

GpuaggCudaStatus
device_check_floats(const FloatCheck *check, int64_t nrows, gpuagg_stream stream)
{
	int blocks = grid_for((nrows + CHECK_ROWS - 1) / CHECK_ROWS, 132 * 8 * 4);

	if (check->column.type == WIRE_F32)
		check_kernel<float, uint32_t><<<blocks, THREADS, 0, stream>>>(*check, nrows);
	else
		check_kernel<double, uint64_t><<<blocks, THREADS, 0, stream>>>(*check, nrows);
	CUDA_TRY_LAUNCH("check_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- programs ---- */

/*
 * A thread executes all instructions for its rows of a tile, so that no instruction waits for
 * another thread.
 */
#define MOST_TILE 1024
/* With at most this much shared memory two blocks fit on a multiprocessor. */
#define TILE_BYTES (100 << 10)

/* Rows per thread of the largest tile. */
#define TILE_ROWS (MOST_TILE / THREADS)

/* Issues all loads before the first value is used. */
template <typename T>
__device__ static void
load_typed(const DeviceColumn &c, int64_t first, int64_t *values, int n)
{
	const T *from = (const T *) c.values + first;
	T v[TILE_ROWS];

#pragma unroll
	for (int j = 0; j < TILE_ROWS; j++)
		if ((int) threadIdx.x + j * THREADS < n)
			v[j] = __ldcs(from + threadIdx.x + j * THREADS);
#pragma unroll
	for (int j = 0; j < TILE_ROWS; j++)
		if ((int) threadIdx.x + j * THREADS < n)
			values[threadIdx.x + j * THREADS] = (int64_t) v[j];
}

/*
 * VECTOR_LOAD: reads rows first .. first + n - 1 of a column into registers, with the states of the
 * rows.
 */
__device__ static void
load_rows(const DeviceColumn &c, int64_t first, int64_t *values, uint8_t *states, int n)
{
	switch (c.type)
	{
		case WIRE_I8:
			load_typed<int8_t>(c, first, values, n);
			break;
		case WIRE_I16:
			load_typed<int16_t>(c, first, values, n);
			break;
		case WIRE_I32:
			load_typed<int32_t>(c, first, values, n);
			break;
		case WIRE_F32:
			load_typed<uint32_t>(c, first, values, n);
			break;
		default:
			load_typed<int64_t>(c, first, values, n);
	}
	for (int row = threadIdx.x; row < n; row += THREADS)
	{
		int64_t i = first + row;

		states[row] = is_valid(c, i) ? VECTOR_VALUE : VECTOR_NULL;
	}
}

/* Writes value i of an output column. */
__device__ static void
store_value(const ProgramOutput &out, int64_t i, int64_t value)
{
	switch (out.width)
	{
		case 1:
			((int8_t *) out.values)[i] = (int8_t) value;
			break;
		case 2:
			((int16_t *) out.values)[i] = (int16_t) value;
			break;
		case 4:
			((int32_t *) out.values)[i] = (int32_t) value;
			break;
		default:
			((int64_t *) out.values)[i] = value;
	}
}

/* The outcome of one row: whether it counts, and whether it is undetermined. */
struct RowEnd
{
	bool counts;
	bool undetermined;
};

/* Returns the outcome of a row after all instructions.  wanted: the mask includes the row. */
__device__ static RowEnd
end_row(const ProgramRun &run, const int64_t *values, const uint8_t *states, int tile, int row,
		bool wanted)
{
	const VectorConstant *constants = run.program.constants;
	RowEnd end = {wanted, false};

	if (wanted && run.program.filter != VECTOR_NONE)
	{
		VectorOperand o = vector_operand(run.program.filter, constants, values, states, tile);

		end.undetermined = vector_state(&o, row) == VECTOR_UNDETERMINED;
		end.counts = vector_state(&o, row) == VECTOR_VALUE && vector_value(&o, row) != 0;
	}
	for (int c = 0; c < run.noutputs && end.counts; c++)
	{
		const ProgramOutput &out = run.output[c];
		VectorOperand o = vector_operand(out.operand, constants, values, states, tile);
		int state = vector_state(&o, row);

		end.undetermined |=
			state == VECTOR_UNDETERMINED || (state == VECTOR_NULL && !out.nullable && !out.filter);
	}
	end.counts = end.counts && !end.undetermined;
	return end;
}

__global__
__launch_bounds__(THREADS) static void program_kernel(const ProgramRun *global_run, int tile,
													  int64_t first, int64_t nrows,
													  const uint8_t *mask, uint8_t *filter)
{
	extern __shared__ int64_t values[];
	__shared__ ProgramRun run;
	uint8_t *states;
	unsigned undetermined = 0;

	for (int i = threadIdx.x; i < (int) (sizeof(run) / sizeof(uint64_t)); i += THREADS)
		((uint64_t *) &run)[i] = ((const uint64_t *) global_run)[i];
	__syncthreads();
	states = (uint8_t *) (values + (size_t) run.program.nregisters * tile);
	for (int64_t at = blockIdx.x * (int64_t) tile; at < nrows; at += (int64_t) gridDim.x * tile)
	{
		int n = nrows - at < tile ? (int) (nrows - at) : tile;

		for (uint32_t p = 0; p < run.program.ninstructions; p++)
		{
			const VectorInstruction *in = &run.program.instructions[p];

			if (in->op == VECTOR_LOAD)
				load_rows(run.input[in->a], first + at, values + in->r * tile,
						  states + in->r * tile, n);
			else if (vector_reads_table(in->op))
				vector_lookup(in, run.tables, run.cells, run.program.constants, values, states,
							  tile, threadIdx.x, THREADS, n);
			else
				vector_run(in, run.program.constants, values, states, tile, threadIdx.x, THREADS,
						   n);
		}
		for (int row = threadIdx.x; row < tile; row += THREADS)
		{
			bool there = row < n;
			int64_t i = at + row;
			RowEnd end = {false, false};

			if (there)
				end = end_row(run, values, states, tile, row, !mask || mask[i]);
			undetermined += end.undetermined;
			if (there)
				filter[i] = end.counts;
			for (int c = 0; c < run.noutputs; c++)
			{
				const ProgramOutput &out = run.output[c];
				VectorOperand o =
					vector_operand(out.operand, run.program.constants, values, states, tile);
				bool valid = there && vector_state(&o, row) == VECTOR_VALUE;

				if (there && out.values)
					store_value(out, i, valid ? vector_value(&o, row) : 0);
				if (out.validity)
				{
					uint32_t bits = __ballot_sync(~0u, valid);

					/* bitmaps have whole words of 64 bits */
					if (threadIdx.x % 32 == 0 && i < (nrows + 63) / 64 * 64)
						out.validity[i / 32] = bits;
				}
			}
		}
	}
	for (int lane = 16; lane > 0; lane /= 2)
		undetermined += __shfl_down_sync(~0u, undetermined, lane);
	if (threadIdx.x % 32 == 0 && undetermined > 0)
		atomicAdd(run.undetermined, (unsigned long long) undetermined);
}

GpuaggCudaStatus
device_run_program(const ProgramRun *run, int nregisters, int64_t first, int64_t nrows,
				   const uint8_t *mask, uint8_t *filter, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	int tile = MOST_TILE;
	int bytes, blocks;
	int64_t tiles;

	STATUS_TRY(gpuagg_device_facts(&facts));
	while (tile > THREADS && tile * nregisters * 9 > TILE_BYTES)
		tile /= 2;
	bytes = tile * nregisters * 9;
	CUDA_TRY(cudaFuncSetAttribute(program_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
								  TILE_BYTES));
	CUDA_TRY(
		cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, program_kernel, THREADS, bytes));
	tiles = (nrows + tile - 1) / tile;
	blocks = blocks > 0 ? blocks * facts->sms : 1;
	program_kernel<<<(int) (tiles < blocks ? tiles : blocks), THREADS, bytes, stream>>>(
		run, tile, first, nrows, mask, filter);
	CUDA_TRY_LAUNCH("program_kernel");
	return GPUAGG_CUDA_OK;
}
