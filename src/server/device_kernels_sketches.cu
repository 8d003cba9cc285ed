/*
 * device_kernels_sketches.cu
 *	  Sketches of distinct values (operators/hll.h): registers raised by rows, and ranks of registers counted.
 *
 * Registers are changed where they are.  Of few groups, and soon of many rows, most rows find a register that is as
 * high as their rank, so it is read before: by way of the L1 cache, whose copy may be old, but no higher than it is.
 */
#include "common.cuh"

#include "operators/hll.h"
#include "server/device_column.cuh"
#include "server/device_kernels.h"

#define THREADS 256
#define ITEMS 4
#define BLOCKS 2048

__global__ static void __launch_bounds__(THREADS)
update_kernel(SketchRows rows, int64_t nrows, int32_t *registers)
{
	int64_t		tile = (int64_t) ITEMS * THREADS;

	for (int64_t base = blockIdx.x * tile; base < nrows; base += gridDim.x * tile)
	{
		int32_t    *at[ITEMS];
		int			rank[ITEMS];
		int			found[ITEMS];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			int64_t		i = base + j * THREADS + threadIdx.x;
			int			group = i >= nrows ? -1 : rows.group ? rows.group[i] : 0;
			int			reg;

			rank[j] = 0;
			at[j] = registers;
			if (group < 0 || !is_valid(rows.column, i) || (rows.filter && !rows.filter[i]))
				continue;
			gpuagg_bin_hll((uint64_t) load_integer(rows.column, i), &reg, &rank[j]);
			at[j] = registers + (size_t) group * GPUAGG_HLL_REGISTERS + reg;
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			found[j] = rank[j] > 0 ? *at[j] : 0;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (rank[j] > found[j])
				atomicMax(at[j], rank[j]);
	}
}

GpuaggCudaStatus
device_update_sketches(const SketchRows *rows, int64_t nrows, int32_t *registers, gpuagg_stream stream)
{
	int64_t		blocks = (nrows + ITEMS * THREADS - 1) / (ITEMS * THREADS);

	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	update_kernel<<<(int) (blocks < BLOCKS ? blocks : BLOCKS), THREADS, 0, stream>>>(*rows, nrows, registers);
	CUDA_TRY_LAUNCH("update_kernel");
	return GPUAGG_CUDA_OK;
}

/* A thread's registers, which a byte can count. */
#define COUNT_THREADS 128
static_assert(GPUAGG_HLL_REGISTERS / COUNT_THREADS < 256, "registers of a thread");

/* A block a group; each thread has counts of its own. */
__global__ static void __launch_bounds__(COUNT_THREADS)
count_kernel(const int32_t *registers, const int32_t *list, int64_t n, int32_t *counts)
{
	__shared__ uint32_t part[GPUAGG_HLL_RANKS][COUNT_THREADS / 4];

	for (int64_t g = blockIdx.x; g < n; g += gridDim.x)
	{
		const int4 *from = (const int4 *) (registers + (size_t) (list ? list[g] : g) * GPUAGG_HLL_REGISTERS);

		for (int i = threadIdx.x; i < GPUAGG_HLL_RANKS * (COUNT_THREADS / 4); i += COUNT_THREADS)
			(&part[0][0])[i] = 0;
		__syncthreads();
		for (int i = threadIdx.x; i < GPUAGG_HLL_REGISTERS / 4; i += COUNT_THREADS)
		{
			int4		four = from[i];

			((uint8_t *) part[four.x])[threadIdx.x]++;
			((uint8_t *) part[four.y])[threadIdx.x]++;
			((uint8_t *) part[four.z])[threadIdx.x]++;
			((uint8_t *) part[four.w])[threadIdx.x]++;
		}
		__syncthreads();
		if (threadIdx.x < GPUAGG_HLL_RANKS)
		{
			uint32_t	sum = 0;

			/* threads begin apart, so that their banks differ */
			for (int w = 0; w < COUNT_THREADS / 4; w++)
				sum = __dp4a(part[threadIdx.x][(w + threadIdx.x) % (COUNT_THREADS / 4)], 0x01010101u, sum);
			counts[g * GPUAGG_HLL_RANKS + threadIdx.x] = (int32_t) sum;
		}
		__syncthreads();
	}
}

GpuaggCudaStatus
device_count_ranks(const void *registers, const int32_t *list, int64_t n, int32_t *counts, gpuagg_stream stream)
{
	if (n == 0)
		return GPUAGG_CUDA_OK;
	count_kernel<<<(int) (n < BLOCKS ? n : BLOCKS), COUNT_THREADS, 0, stream>>>((const int32_t *) registers, list, n, counts);
	CUDA_TRY_LAUNCH("count_kernel");
	return GPUAGG_CUDA_OK;
}
