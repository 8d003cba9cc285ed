/*
 * kernels_sketches.cu
 *	  Kernels for sketches of distinct values (operators/hll.h): adding rows, combining sketches,
 *	  converting registers to states, and counting registers by rank; see kernels.h.
 *
 * On a device a register is a byte, four to a word.  If the registers of all groups fit into shared
 * memory, each block has registers of its own there, and combines them with the groups' after its
 * last row.  Otherwise blocks raise the groups' registers in device memory.  After some rows most
 * further rows do not raise a register, so it is read first, in device memory through the L1 cache.
 * The cached value may be old, but never too high; the atomic operation that follows returns the
 * current value.
 */
#include "common.cuh"

#include "operators/hll.h"
#include "device_cuda/column.cuh"
#include "device_cuda/kernels.h"

#define THREADS 256
#define ITEMS 4
#define BLOCKS 2048
#define SHARED_THREADS 1024
/* Number of words of a group's registers. */
#define WORDS (GPUAGG_HLL_REGISTERS / 4)

static_assert(GPUAGG_HLL_MAX_RANK < 256, "registers are bytes");

/* ---- rows ---- */

/* The effect of one row: raise the register at `shift` bits in `word` to `rank`; rank 0: none. */
struct Raise
{
	size_t word;
	int shift;
	int rank;
};

/* Returns `word` with the register of `r` raised to its rank, if the register is lower. */
__device__ static __forceinline__ uint32_t
raised(uint32_t word, const Raise &r)
{
	int old = (int) (word >> r.shift & 0xff);

	return word + ((uint32_t) (hll_max_combine(old, r.rank) - old) << r.shift);
}

/*
 * Sets r[j] to the effect of row first + j * step, for ITEMS rows.  Issues all loads before the
 * first value is used.
 */
template <typename T>
__device__ static __forceinline__ void
read_rows(const SketchRows &rows, int64_t first, int64_t step, int64_t nrows, Raise (&r)[ITEMS])
{
	const T *values = (const T *) rows.column.values;
	int64_t group[ITEMS];
	T value[ITEMS];
	unsigned in = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		int64_t i = first + j * step;

		group[j] = 0;
		value[j] = 0;
		if (i < nrows)
		{
			in |= 1u << j;
			value[j] = values[i];
			if (rows.group)
				group[j] = rows.group[i] - rows.min;
		}
	}
	if (rows.filter)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if ((in >> j & 1) && !rows.filter[first + j * step])
				in &= ~(1u << j);
	if (rows.column.validity)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if ((in >> j & 1) && !is_valid(rows.column, first + j * step))
				in &= ~(1u << j);
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		int reg;

		gpuagg_bin_hll((uint64_t) (int64_t) value[j], &reg, &r[j].rank);
		r[j].word = (size_t) group[j] * WORDS + reg / 4;
		r[j].shift = reg % 4 * 8;
		if (!(in >> j & 1) || (uint64_t) group[j] >= (uint64_t) rows.ngroups)
			r[j].rank = 0;
	}
}

/* Raises the registers of a thread's rows: reads all of their words first, then changes them. */
template <typename T>
__device__ static __forceinline__ void
raise_rows(const SketchRows &rows, int64_t first, int64_t step, int64_t nrows, uint32_t *registers)
{
	Raise r[ITEMS];
	uint32_t word[ITEMS], seen[ITEMS];

	read_rows<T>(rows, first, step, nrows, r);
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		word[j] = r[j].rank > 0 ? registers[r[j].word] : ~0u;
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		uint32_t next = raised(word[j], r[j]);

		seen[j] = word[j];
		if (next != seen[j])
			seen[j] = atomicCAS(registers + r[j].word, word[j], next);
	}
	/* rarely the word has changed since it was read */
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		while (seen[j] != word[j])
		{
			uint32_t next = raised(seen[j], r[j]);

			word[j] = seen[j];
			if (next != word[j])
				seen[j] = atomicCAS(registers + r[j].word, word[j], next);
		}
}

template <typename T>
__global__ static void
__launch_bounds__(THREADS)
	update_kernel(const __grid_constant__ SketchRows rows, int64_t nrows, uint32_t *registers)
{
	int64_t tile = (int64_t) ITEMS * THREADS;

	for (int64_t base = blockIdx.x * tile; base < nrows; base += gridDim.x * tile)
		raise_rows<T>(rows, base + threadIdx.x, THREADS, nrows, registers);
}

template <typename T>
__global__ static void
__launch_bounds__(SHARED_THREADS) update_shared_kernel(const __grid_constant__ SketchRows rows,
													   int64_t nrows, uint32_t *registers)
{
	extern __shared__ __align__(16) uint32_t own[];
	uint32_t n = (uint32_t) rows.ngroups * WORDS,
			 first = (uint32_t) ((uint64_t) n * blockIdx.x / gridDim.x);
	int64_t tile = (int64_t) ITEMS * SHARED_THREADS;

	for (uint32_t w = threadIdx.x; w < n; w += SHARED_THREADS)
		own[w] = 0;
	__syncthreads();
	for (int64_t base = blockIdx.x * tile; base < nrows; base += gridDim.x * tile)
		raise_rows<T>(rows, base + threadIdx.x, SHARED_THREADS, nrows, own);
	__syncthreads();
	/* blocks begin at different words, to avoid conflicts */
	for (uint32_t i = threadIdx.x; i < n; i += SHARED_THREADS)
	{
		uint32_t w = i + first < n ? i + first : i + first - n, word = __ldcg(registers + w), next;

		while ((next = __vmaxu4(word, own[w])) != word)
		{
			uint32_t seen = atomicCAS(registers + w, word, next);

			if (seen == word)
				break;
			word = seen;
		}
	}
}

template <typename T>
static GpuaggCudaStatus
update(const SketchRows &rows, int64_t nrows, uint32_t *registers, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	int64_t bytes = rows.ngroups * GPUAGG_HLL_REGISTERS,
			blocks = (nrows + ITEMS * THREADS - 1) / (ITEMS * THREADS);

	STATUS_TRY(gpuagg_device_facts(&facts));
	/* where a block has at least as many rows as it has words to combine */
	if (bytes <= (int64_t) facts->smem_per_block && bytes / 4 <= nrows / facts->sms)
	{
		CUDA_TRY(cudaFuncSetAttribute(update_shared_kernel<T>,
									  cudaFuncAttributeMaxDynamicSharedMemorySize,
									  (int) facts->smem_per_block));
		update_shared_kernel<T>
			<<<facts->sms, SHARED_THREADS, bytes, stream>>>(rows, nrows, registers);
	}
	else
		update_kernel<T><<<(int) (blocks < BLOCKS ? blocks : BLOCKS), THREADS, 0, stream>>>(
			rows, nrows, registers);
	CUDA_TRY_LAUNCH("update_kernel");
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_update_sketches(const SketchRows *rows, int64_t nrows, void *registers, gpuagg_stream stream)
{
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	switch (rows->column.type)
	{
		case WIRE_I8:
			return update<int8_t>(*rows, nrows, (uint32_t *) registers, stream);
		case WIRE_I16:
			return update<int16_t>(*rows, nrows, (uint32_t *) registers, stream);
		case WIRE_I32:
			return update<int32_t>(*rows, nrows, (uint32_t *) registers, stream);
		default:
			return update<int64_t>(*rows, nrows, (uint32_t *) registers, stream);
	}
}

/* ---- groups ---- */

static int
grid_for(int64_t n)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;

	return (int) (blocks < 4 * BLOCKS ? blocks : 4 * BLOCKS);
}

/* Raises the registers of group bins[g] to those of sketch g at `from`.  The bins all differ. */
__global__ static void
__launch_bounds__(THREADS)
	combine_kernel(const uint32_t *from, const int32_t *bins, int64_t n, uint32_t *registers)
{
	for (int64_t i = blockIdx.x * (int64_t) THREADS + threadIdx.x; i < n * WORDS;
		 i += (int64_t) gridDim.x * THREADS)
	{
		int64_t group = i / WORDS;
		uint32_t *to = registers + (bins ? bins[group] : group) * WORDS + i % WORDS;

		*to = __vmaxu4(*to, from[i]);
	}
}

GpuaggCudaStatus
device_combine_sketches(const void *from, const int32_t *bins, int64_t n, void *registers,
						gpuagg_stream stream)
{
	if (n == 0)
		return GPUAGG_CUDA_OK;
	combine_kernel<<<grid_for(n * WORDS), THREADS, 0, stream>>>((const uint32_t *) from, bins, n,
																(uint32_t *) registers);
	CUDA_TRY_LAUNCH("combine_kernel");
	return GPUAGG_CUDA_OK;
}

__global__ static void
__launch_bounds__(THREADS)
	widen_kernel(const uint32_t *registers, const int32_t *list, int64_t n, int4 *to)
{
	for (int64_t i = blockIdx.x * (int64_t) THREADS + threadIdx.x; i < n * WORDS;
		 i += (int64_t) gridDim.x * THREADS)
	{
		int64_t group = i / WORDS;
		uint32_t word = registers[(list ? list[group] : group) * WORDS + i % WORDS];

		to[i] = make_int4(word & 0xff, word >> 8 & 0xff, word >> 16 & 0xff, word >> 24);
	}
}

GpuaggCudaStatus
device_widen_registers(const void *registers, const int32_t *list, int64_t n, int32_t *to,
					   gpuagg_stream stream)
{
	if (n == 0)
		return GPUAGG_CUDA_OK;
	widen_kernel<<<grid_for(n * WORDS), THREADS, 0, stream>>>((const uint32_t *) registers, list, n,
															  (int4 *) to);
	CUDA_TRY_LAUNCH("widen_kernel");
	return GPUAGG_CUDA_OK;
}

/* With so many threads, a byte can count the registers that one thread reads. */
#define COUNT_THREADS 128
static_assert(GPUAGG_HLL_REGISTERS / COUNT_THREADS < 256, "registers of a thread");

/* Counts registers by rank: one block per group, with a byte per thread and rank. */
__global__ static void
__launch_bounds__(COUNT_THREADS)
	count_kernel(const uint8_t *registers, const int32_t *list, int64_t n, int32_t *counts)
{
	__shared__ uint32_t part[GPUAGG_HLL_RANKS][COUNT_THREADS / 4];

	for (int64_t g = blockIdx.x; g < n; g += gridDim.x)
	{
		const uint4 *from =
			(const uint4 *) (registers + (size_t) (list ? list[g] : g) * GPUAGG_HLL_REGISTERS);

		for (int i = threadIdx.x; i < GPUAGG_HLL_RANKS * (COUNT_THREADS / 4); i += COUNT_THREADS)
			(&part[0][0])[i] = 0;
		__syncthreads();
		for (int i = threadIdx.x; i < WORDS / 4; i += COUNT_THREADS)
		{
			uint4 v = from[i];
			uint32_t word[4] = {v.x, v.y, v.z, v.w};

#pragma unroll
			for (int k = 0; k < 16; k++)
				((uint8_t *) part[word[k / 4] >> k % 4 * 8 & 0xff])[threadIdx.x]++;
		}
		__syncthreads();
		if (threadIdx.x < GPUAGG_HLL_RANKS)
		{
			uint32_t sum = 0;

			/* threads begin apart, so that their banks differ */
			for (int w = 0; w < COUNT_THREADS / 4; w++)
				sum = __dp4a(part[threadIdx.x][(w + threadIdx.x) % (COUNT_THREADS / 4)],
							 0x01010101u, sum);
			counts[g * GPUAGG_HLL_RANKS + threadIdx.x] = (int32_t) sum;
		}
		__syncthreads();
	}
}

GpuaggCudaStatus
device_count_ranks(const void *registers, const int32_t *list, int64_t n, int32_t *counts,
				   gpuagg_stream stream)
{
	if (n == 0)
		return GPUAGG_CUDA_OK;
	count_kernel<<<(int) (n < BLOCKS ? n : BLOCKS), COUNT_THREADS, 0, stream>>>(
		(const uint8_t *) registers, list, n, counts);
	CUDA_TRY_LAUNCH("count_kernel");
	return GPUAGG_CUDA_OK;
}
