/*
 * segmented_keys.cu
 *	  Kernels that prepare the input of segmented reductions.
 *
 *	gpuagg_cuda_segments_from_bins	finds the segments of equal neighbouring bins
 *	gpuagg_cuda_gather				copies rows in the order of an index
 *	gpuagg_cuda_sort_rows			sorts row numbers by several words; the sort is stable
 *	gpuagg_cuda_select_rows			keeps the marked entries of a permutation
 *
 * Sort and selection are CUB's.  All work is queued on the caller's stream, nothing synchronizes,
 * and the memory is the caller's; gpuagg_cuda.h describes the arguments.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "common.cuh"
#include "tuning.h"

/* ---- segments of equal bins ------------------------------------------------ */

/* Predicate for CUB: true for the first row of a run of equal bins. */
struct IsRunStart
{
	const int32_t *bins;

	__device__ __forceinline__ bool
	operator()(int64_t i) const
	{
		return i == 0 || bins[i] != bins[i - 1];
	}
};

/*
 * Greatest number of rows that CUB's selection can take.  Before CUDA 12.9 it silently cuts numbers
 * off at 32 bits (NVIDIA/cccl pull request 2400).
 */
static const int64_t most_selected = CUB_VERSION >= 200800 ? INT64_MAX : INT32_MAX;

/*
 * Writes the end of the last segment.  One thread runs it, once the number of segments is known on
 * the device.
 */
static __global__ void
close_offsets(int64_t *offsets, const int64_t *nsegments, int64_t n)
{
	offsets[*nsegments] = n;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_segments_from_bins(const int32_t *bins, int64_t n, int64_t *offsets,
							   int64_t *nsegments_device, void *workspace, size_t *workspace_bytes,
							   gpuagg_stream stream)
{
	Workspace ws(workspace);
	size_t bytes = 0;
	IsRunStart is_start = {bins};
	thrust::counting_iterator<int64_t> rows(0);
	char *temp;

	if (n < 1)
		return GPUAGG_CUDA_INVALID;
	if (n > most_selected)
		return GPUAGG_CUDA_UNSUPPORTED;
	CUDA_TRY(cub::DeviceSelect::If(nullptr, bytes, rows, offsets, nsegments_device, n, is_start,
								   stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(
		cub::DeviceSelect::If(temp, bytes, rows, offsets, nsegments_device, n, is_start, stream));
	close_offsets<<<1, 1, 0, stream>>>(offsets, nsegments_device, n);
	CUDA_TRY_LAUNCH("close_offsets");
	return GPUAGG_CUDA_OK;
}

/* ---- gather ------------------------------------------------------------ */

/*
 * Copies rows of `words` words: row i of out becomes row index[i] of in.  Neighbouring threads copy
 * neighbouring words.
 */
template <typename Word>
static __global__ void
gather_words(int words, const Word *in, const int64_t *index, int64_t n, Word *out)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n * words;
		 i += (int64_t) gridDim.x * blockDim.x)
		out[i] = in[words == 1 ? index[i] : index[i / words] * words + i % words];
}

/* Queues gather_words for rows that are a whole number of Words long. */
template <typename Word>
static GpuaggCudaStatus
gather_rows(int row_size, const void *in, const int64_t *index, int64_t n, void *out,
			cudaStream_t stream)
{
	int words = row_size / sizeof(Word);
	int64_t blocks = (n * words + SORT_THREADS_PER_BLOCK - 1) / SORT_THREADS_PER_BLOCK;

	gather_words<Word>
		<<<(unsigned) (blocks < SORT_MAX_BLOCKS ? blocks : SORT_MAX_BLOCKS), SORT_THREADS_PER_BLOCK,
		   0, stream>>>(words, static_cast<const Word *>(in), index, n, static_cast<Word *>(out));
	CUDA_TRY_LAUNCH("gather_words");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index, int64_t n, void *out,
				   gpuagg_stream stream)
{
	if (row_size < 1 || n < 0)
		return GPUAGG_CUDA_INVALID;
	if (n == 0)
		return GPUAGG_CUDA_OK;
	if (row_size % 8 == 0)
		return gather_rows<uint64_t>(row_size, in, index, n, out, stream);
	switch (row_size)
	{
		case 1:
			return gather_rows<uint8_t>(row_size, in, index, n, out, stream);
		case 4:
			return gather_rows<uint32_t>(row_size, in, index, n, out, stream);
		default:
			return GPUAGG_CUDA_INVALID;
	}
}

/* ---- sorting rows ------------------------------------------------------------- */

/* Returns the number of blocks for n rows, a thread each; beyond the most blocks, kernels loop. */
static unsigned
blocks_for(int64_t n)
{
	int64_t blocks = (n + SORT_THREADS_PER_BLOCK - 1) / SORT_THREADS_PER_BLOCK;

	return (unsigned) (blocks < SORT_MAX_BLOCKS ? blocks : SORT_MAX_BLOCKS);
}

/* Numbers the rows from 0. */
static __global__ void
number_rows(int64_t n, uint32_t *rows)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		rows[i] = (uint32_t) i;
}

/*
 * The words of one sort pass.  Their bits form a key of 64 bits at most; the first word has the
 * highest bits.
 */
struct SortPass
{
	int nwords;
	int bits; /* total number of bits */
	GpuaggSortWord word[GPUAGG_MAX_SORT_WORDS];
};

/*
 * Makes the sort key of each row, in the current order of the rows.  A word becomes an unsigned
 * number: its distance from the least value, or the value with its sign bit inverted if it has 64
 * bits.  The bits of descending words are inverted.
 */
static __global__ void
make_keys(const __grid_constant__ SortPass pass, int64_t n, const uint32_t *rows, uint64_t *keys)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		uint64_t key = 0;

		for (int w = 0; w < pass.nwords; w++)
		{
			const GpuaggSortWord &word = pass.word[w];
			int64_t value = load_integer(word.values, word.type, rows[i]);
			uint64_t digit = word.bits == 64 ? (uint64_t) value ^ (uint64_t) 1 << 63 :
											   (uint64_t) value - (uint64_t) word.min;

			if (word.descending)
				digit =
					~digit & (word.bits == 64 ? ~(uint64_t) 0 : ((uint64_t) 1 << word.bits) - 1);
			key = word.bits == 64 ? digit : key << word.bits | digit;
		}
		keys[i] = key;
	}
}

/* Widens the sorted row numbers to 64 bits. */
static __global__ void
write_rows(int64_t n, const uint32_t *rows, int64_t *permutation)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		permutation[i] = rows[i];
}

/* Returns the pass of the last words before `end`: as many as have 64 bits together. */
static SortPass
last_pass(const GpuaggSortWord *words, int end)
{
	SortPass pass = SortPass();
	int from = end;

	while (from > 0 && pass.bits + words[from - 1].bits <= 64)
		pass.bits += words[--from].bits;
	for (; from < end; from++)
		pass.word[pass.nwords++] = words[from];
	return pass;
}

/*
 * Radix sort in stable passes over pairs of key and row number, from the last words to the first.
 */
GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_sort_rows(int64_t n, int nwords, const GpuaggSortWord *words, int64_t *permutation,
					  void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	Workspace ws(workspace);
	size_t bytes = 0;
	char *temp;

	if (n < 0 || n > UINT32_MAX || nwords < 0 || nwords > GPUAGG_MAX_SORT_WORDS)
		return GPUAGG_CUDA_INVALID;
	for (int w = 0; w < nwords; w++)
		if (words[w].bits < 0 || words[w].bits > 64 || words[w].type < GPUAGG_VALUE_I8 ||
			words[w].type > GPUAGG_VALUE_I64)
			return GPUAGG_CUDA_INVALID;

	cub::DoubleBuffer<uint64_t> keys(ws.take<uint64_t>(n), ws.take<uint64_t>(n));
	cub::DoubleBuffer<uint32_t> rows(ws.take<uint32_t>(n), ws.take<uint32_t>(n));

	CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, rows, n, 0, 64, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (n == 0)
		return GPUAGG_CUDA_OK;
	number_rows<<<blocks_for(n), SORT_THREADS_PER_BLOCK, 0, stream>>>(n, rows.Current());
	CUDA_TRY_LAUNCH("number_rows");
	for (int end = nwords; end > 0;)
	{
		SortPass pass = last_pass(words, end);

		end -= pass.nwords;
		if (pass.bits == 0)
			continue;
		make_keys<<<blocks_for(n), SORT_THREADS_PER_BLOCK, 0, stream>>>(pass, n, rows.Current(),
																		keys.Current());
		CUDA_TRY_LAUNCH("make_keys");
		CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, bytes, keys, rows, n, 0, pass.bits, stream));
	}
	write_rows<<<blocks_for(n), SORT_THREADS_PER_BLOCK, 0, stream>>>(n, rows.Current(),
																	 permutation);
	CUDA_TRY_LAUNCH("write_rows");
	return GPUAGG_CUDA_OK;
}

/* Predicate for CUB: true for the rows to keep. */
struct IsRowKept
{
	const uint8_t *keep;

	__device__ __forceinline__ bool
	operator()(int64_t row) const
	{
		return keep[row] != 0;
	}
};

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_select_rows(int64_t n, const int64_t *permutation, const uint8_t *keep,
						int64_t *selected, int64_t *nselected_device, void *workspace,
						size_t *workspace_bytes, gpuagg_stream stream)
{
	Workspace ws(workspace);
	size_t bytes = 0;
	IsRowKept is_kept = {keep};
	char *temp;

	if (n < 0)
		return GPUAGG_CUDA_INVALID;
	if (n > most_selected)
		return GPUAGG_CUDA_UNSUPPORTED;
	CUDA_TRY(cub::DeviceSelect::If(nullptr, bytes, permutation, selected, nselected_device, n,
								   is_kept, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cub::DeviceSelect::If(temp, bytes, permutation, selected, nselected_device, n, is_kept,
								   stream));
	return GPUAGG_CUDA_OK;
}
