/*
 * kernels_sets.cu
 *	  Kernels for values of sets: appending and sorting values, marking, listing and counting
 *	  distinct ones, finding modes and the first value of each group; see kernels.h.
 */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "common.cuh"

#include "device_cuda/column.cuh"
#include "device_cuda/kernels.h"

#define THREADS 256
/* Rows per thread; a block reserves room for the values of all its rows at once. */
#define ROWS 8
#define MOST_BLOCKS 4096

static int
grid_for(int64_t n, int rows)
{
	int64_t blocks = (n + rows - 1) / rows;

	return (int) (blocks < MOST_BLOCKS ? (blocks > 0 ? blocks : 1) : MOST_BLOCKS);
}

GpuaggCudaStatus
device_init_set(SetCounts *counts, gpuagg_stream stream)
{
	SetCounts none = {0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0};

	/* pageable memory has been read when the call returns */
	CUDA_TRY(cudaMemcpyAsync(counts, &none, sizeof(none), cudaMemcpyHostToDevice, stream));
	return GPUAGG_CUDA_OK;
}

struct Least
{
	__device__ int64_t
	operator()(int64_t a, int64_t b) const
	{
		return a < b ? a : b;
	}
};

struct Greatest
{
	__device__ int64_t
	operator()(int64_t a, int64_t b) const
	{
		return a > b ? a : b;
	}
};

typedef cub::BlockReduce<int64_t, THREADS> Reduce;

/* Widens a range by that of each thread of the block.  All threads call it. */
__device__ static inline void
widen_range(Reduce::TempStorage &temp, int64_t least, int64_t greatest, int64_t *min, int64_t *max)
{
	least = Reduce(temp).Reduce(least, Least());
	__syncthreads();
	greatest = Reduce(temp).Reduce(greatest, Greatest());
	__syncthreads();
	if (threadIdx.x == 0 && least <= greatest)
	{
		atomicMin((long long *) min, (long long) least);
		atomicMax((long long *) max, (long long) greatest);
	}
}

/* Stores the codes of the value beside that of row i.  Returns its order. */
__device__ static inline int32_t
keep_beside(const SetRows &rows, int64_t i, const SetArrays &to, int64_t place, int64_t *code)
{
	int32_t order =
		rows.order ? rows.order[i] : wire_beside_order(!is_valid(rows.beside, i), rows.descending);

	*code = rows.order ?
		load_integer(rows.beside, i) :
		wire_beside_code(load_integer(rows.beside, i), !is_valid(rows.beside, i), rows.descending);
	to.beside[place] = *code;
	to.order[place] = order;
	return order;
}

/*
 * A block counts the values of THREADS * ROWS rows, reserves places for all of them with one atomic
 * operation, and writes them there.
 */
template <bool BESIDE>
__global__ static void
__launch_bounds__(THREADS) keep_kernel(SetRows rows, int64_t nrows, SetArrays to, SetCounts *counts)
{
	typedef cub::BlockScan<int, THREADS> Scan;
	__shared__ union
	{
		typename Scan::TempStorage scan;
		typename Reduce::TempStorage reduce;
	} temp;
	__shared__ long long place;
	int64_t least = INT64_MAX, greatest = INT64_MIN;
	int64_t beside_least = INT64_MAX, beside_greatest = INT64_MIN;
	int64_t last = 0;

	for (int64_t from = blockIdx.x * (int64_t) (THREADS * ROWS); from < nrows;
		 from += gridDim.x * (int64_t) (THREADS * ROWS))
	{
		int32_t bin[ROWS];
		int64_t value[ROWS];
		int mine = 0, before, all;

#pragma unroll
		for (int r = 0; r < ROWS; r++)
		{
			int64_t i = from + r * THREADS + threadIdx.x;

			bin[r] = -1;
			if (i >= nrows || (rows.filter && !rows.filter[i]) || !is_valid(rows.column, i))
				continue;
			bin[r] = rows.bins[i];
			value[r] = load_integer(rows.column, i);
			if (bin[r] < 0)
				continue;
			mine++;
			least = value[r] < least ? value[r] : least;
			greatest = value[r] > greatest ? value[r] : greatest;
		}
		Scan(temp.scan).ExclusiveSum(mine, before, all);
		if (threadIdx.x == 0)
			place =
				(long long) atomicAdd((unsigned long long *) &counts->n, (unsigned long long) all);
		__syncthreads();
#pragma unroll
		for (int r = 0; r < ROWS; r++)
		{
			if (bin[r] < 0)
				continue;
			to.bins[place + before] = bin[r];
			to.values[place + before] = value[r];
			if (BESIDE)
			{
				int64_t code;

				last +=
					keep_beside(rows, from + r * THREADS + threadIdx.x, to, place + before, &code);
				beside_least = code < beside_least ? code : beside_least;
				beside_greatest = code > beside_greatest ? code : beside_greatest;
			}
			before++;
		}
		__syncthreads();
	}
	widen_range(temp.reduce, least, greatest, &counts->min, &counts->max);
	if (BESIDE)
	{
		widen_range(temp.reduce, beside_least, beside_greatest, &counts->beside_min,
					&counts->beside_max);
		last = Reduce(temp.reduce).Sum(last);
		if (threadIdx.x == 0)
			atomicAdd((unsigned long long *) &counts->last, (unsigned long long) last);
	}
}

GpuaggCudaStatus
device_keep_values(const SetRows *rows, int64_t nrows, const SetArrays *to, SetCounts *counts,
				   gpuagg_stream stream)
{
	int grid = grid_for(nrows, THREADS * ROWS);

	if (rows->beside.values)
		keep_kernel<true><<<grid, THREADS, 0, stream>>>(*rows, nrows, *to, counts);
	else
		keep_kernel<false><<<grid, THREADS, 0, stream>>>(*rows, nrows, *to, counts);
	CUDA_TRY_LAUNCH("keep_kernel");
	return GPUAGG_CUDA_OK;
}

template <typename K, typename V>
static GpuaggCudaStatus
sort_pairs(K *keys[2], V *values[2], int64_t n, int bits, void *workspace, size_t *workspace_bytes,
		   cudaStream_t stream)
{
	cub::DoubleBuffer<K> k(keys[0], keys[1]);
	cub::DoubleBuffer<V> v(values[0], values[1]);
	Workspace ws(workspace);
	size_t bytes = 0;
	char *temp;

	CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, (int) n, 0, bits, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, bytes, k, v, (int) n, 0, bits, stream));
	keys[0] = k.Current(), keys[1] = k.Alternate();
	values[0] = v.Current(), values[1] = v.Alternate();
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_sort_values(bool by_bin, int32_t *bins[2], int64_t *values[2], int64_t n, int bits,
				   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	if (by_bin)
		return sort_pairs(bins, values, n, bits, workspace, workspace_bytes, stream);
	return sort_pairs(values, bins, n, bits, workspace, workspace_bytes, stream);
}

GpuaggCudaStatus
device_sort_numbers(int32_t *keys[2], int32_t *numbers[2], int64_t n, int bits, void *workspace,
					size_t *workspace_bytes, gpuagg_stream stream)
{
	return sort_pairs(keys, numbers, n, bits, workspace, workspace_bytes, stream);
}

__global__ static void
number_kernel(int32_t *numbers, int64_t n)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		numbers[i] = (int32_t) i;
}

GpuaggCudaStatus
device_number_values(int32_t *numbers, int64_t n, gpuagg_stream stream)
{
	number_kernel<<<grid_for(n, THREADS), THREADS, 0, stream>>>(numbers, n);
	CUDA_TRY_LAUNCH("number_kernel");
	return GPUAGG_CUDA_OK;
}

__global__ static void
distinct_kernel(const int32_t *bins, const int64_t *values, int64_t n, uint8_t *distinct)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		distinct[i] = i == 0 || values[i] != values[i - 1] || bins[i] != bins[i - 1];
}

GpuaggCudaStatus
device_distinct_values(const int32_t *bins, const int64_t *values, int64_t n, uint8_t *distinct,
					   gpuagg_stream stream)
{
	distinct_kernel<<<grid_for(n, THREADS), THREADS, 0, stream>>>(bins, values, n, distinct);
	CUDA_TRY_LAUNCH("distinct_kernel");
	return GPUAGG_CUDA_OK;
}

struct IsFirst
{
	const int32_t *bins;
	const int64_t *values;

	__device__ bool
	operator()(int32_t i) const
	{
		return i == 0 || values[i] != values[i - 1] || bins[i] != bins[i - 1];
	}
};

GpuaggCudaStatus
device_list_firsts(const int32_t *bins, const int64_t *values, int64_t n, int32_t *firsts,
				   int32_t *nfirsts, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	thrust::counting_iterator<int32_t> places(0);
	IsFirst is_first = {bins, values};
	Workspace ws(workspace);
	size_t bytes = 0;
	char *temp;

	CUDA_TRY(
		cub::DeviceSelect::If(nullptr, bytes, places, firsts, nfirsts, (int) n, is_first, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(
		cub::DeviceSelect::If(temp, bytes, places, firsts, nfirsts, (int) n, is_first, stream));
	return GPUAGG_CUDA_OK;
}

__global__ static void
first_kernel(const int32_t *bins, int64_t n, int64_t *first)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		if (i == 0 || bins[i] != bins[i - 1])
			first[bins[i]] = i;
}

GpuaggCudaStatus
device_first_values(const int32_t *bins, int64_t n, int64_t *first, gpuagg_stream stream)
{
	first_kernel<<<grid_for(n, THREADS), THREADS, 0, stream>>>(bins, n, first);
	CUDA_TRY_LAUNCH("first_kernel");
	return GPUAGG_CUDA_OK;
}

/*
 * The thread of the last of several equal values searches for the first one, in steps that double
 * and then halve, because most are near.  It changes the mode only if the new one is greater.
 */
__global__ static void
mode_kernel(const int32_t *bins, const int64_t *values, int64_t n, bool last, int64_t *modes)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int32_t bin = bins[i];
		int64_t value = values[i];
		int64_t first = i, step = 1, mode;

		if (i + 1 < n && values[i + 1] == value && bins[i + 1] == bin)
			continue;
		for (; first >= step && values[first - step] == value && bins[first - step] == bin;
			 step *= 2)
			first -= step;
		for (; step > 0; step /= 2)
			if (first >= step && values[first - step] == value && bins[first - step] == bin)
				first -= step;
		mode = wire_mode_of(i - first + 1, first, last);
		if (mode > *(volatile int64_t *) &modes[bin])
			atomicMax((long long *) &modes[bin], (long long) mode);
	}
}

GpuaggCudaStatus
device_modes(const int32_t *bins, const int64_t *values, int64_t n, bool last, int64_t *modes,
			 gpuagg_stream stream)
{
	mode_kernel<<<grid_for(n, THREADS), THREADS, 0, stream>>>(bins, values, n, last, modes);
	CUDA_TRY_LAUNCH("mode_kernel");
	return GPUAGG_CUDA_OK;
}
