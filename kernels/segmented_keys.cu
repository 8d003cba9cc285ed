/*
 * segmented_keys.cu
 *	  Segments out of keys: boundaries of runs, the gathering of rows, and the
 *	  stable order of rows by group and order key.  Sort and select are CUB's.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "common.cuh"

/* ---- runs of equal keys ------------------------------------------------ */

/* Whether a key differs from the one before it. */
struct RunHead
{
	const char *keys;
	int			size;

	__device__ __forceinline__ bool
	operator()(int64_t i) const
	{
		if (i == 0)
			return true;
		switch (size)
		{
			case 1:
				return differs<uint8_t>(i);
			case 2:
				return differs<uint16_t>(i);
			case 4:
				return differs<uint32_t>(i);
			case 8:
				return differs<uint64_t>(i);
			default:
				return differs<uint64_t>(2 * i, 2) || differs<uint64_t>(2 * i + 1, 2);
		}
	}

	/* Word i against the one `words` before it. */
	template <typename Word>
	__device__ __forceinline__ bool
	differs(int64_t i, int words = 1) const
	{
		const Word *w = reinterpret_cast<const Word *>(keys);

		return w[i] != w[i - words];
	}
};

static __global__ void
close_offsets(int64_t *offsets, const int64_t *nsegments, int64_t n)
{
	offsets[*nsegments] = n;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_segments_from_keys(int key_size, const void *keys, int64_t n, int64_t *offsets,
							   int64_t *nsegments_device, GpuaggSegments *segments,
							   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	Workspace	ws(workspace);
	size_t		bytes = 0;
	RunHead		head = {static_cast<const char *>(keys), key_size};
	thrust::counting_iterator<int64_t> rows(0);
	char	   *temp;

	if (n < 1 || (key_size != 1 && key_size != 2 && key_size != 4 && key_size != 8 && key_size != 16))
		return GPUAGG_CUDA_INVALID;
	CUDA_TRY(cub::DeviceSelect::If(nullptr, bytes, rows, offsets, nsegments_device, n, head, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cub::DeviceSelect::If(temp, bytes, rows, offsets, nsegments_device, n, head, stream));
	close_offsets<<<1, 1, 0, stream>>>(offsets, nsegments_device, n);
	CUDA_TRY_LAUNCH("close_offsets");
	*segments = GpuaggSegments();
	segments->nvalues = n;
	segments->nsegments = n;
	segments->nsegments_device = nsegments_device;
	segments->offsets = offsets;
	return GPUAGG_CUDA_OK;
}

/* ---- gather ------------------------------------------------------------ */

template <typename Word>
static __global__ void
gather_words(int words, const Word *in, const int64_t *index, int64_t n, const int64_t *n_device, Word *out)
{
	if (n_device != nullptr && *n_device < n)
		n = *n_device;
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n * words;
		 i += (int64_t) gridDim.x * blockDim.x)
		out[i] = in[words == 1 ? index[i] : index[i / words] * words + i % words];
}

template <typename Word>
static GpuaggCudaStatus
gather(int row_size, const void *in, const int64_t *index, int64_t n, const int64_t *n_device,
	   void *out, cudaStream_t stream)
{
	int			words = row_size / sizeof(Word);
	int64_t		blocks = (n * words + 255) / 256;

	gather_words<Word><<<(unsigned) (blocks < 65536 ? blocks : 65536), 256, 0, stream>>>
		(words, static_cast<const Word *>(in), index, n, n_device, static_cast<Word *>(out));
	CUDA_TRY_LAUNCH("gather_words");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index, int64_t n,
				   const int64_t *n_device, void *out, gpuagg_stream stream)
{
	if (row_size < 1 || n < 0)
		return GPUAGG_CUDA_INVALID;
	if (n == 0)
		return GPUAGG_CUDA_OK;
	if (row_size % 8 == 0)
		return gather<uint64_t>(row_size, in, index, n, n_device, out, stream);
	switch (row_size)
	{
		case 1:
			return gather<uint8_t>(row_size, in, index, n, n_device, out, stream);
		case 2:
			return gather<uint16_t>(row_size, in, index, n, n_device, out, stream);
		case 4:
			return gather<uint32_t>(row_size, in, index, n, n_device, out, stream);
		default:
			return GPUAGG_CUDA_INVALID;
	}
}

/* ---- order ------------------------------------------------------------- */

static __global__ void
number_rows(int64_t n, const int64_t *order_keys, uint64_t *keys, uint32_t *rows)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		keys[i] = (uint64_t) order_keys[i] ^ ((uint64_t) 1 << 63);
		rows[i] = (uint32_t) i;
	}
}

static __global__ void
fetch_groups(int64_t n, const int32_t *groups, const uint32_t *rows, uint64_t *keys)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		keys[i] = (uint32_t) groups[rows[i]];
}

static __global__ void
write_order(int64_t n, const uint64_t *keys, const uint32_t *rows, int64_t *permutation, int32_t *groups)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		permutation[i] = rows[i];
		if (groups != nullptr)
			groups[i] = (int32_t) keys[i];
	}
}

/* Two stable passes over (key, row): by order key, then by group. */
GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_order_rows(int64_t n, const int32_t *groups, int group_bits, const int64_t *order_keys,
					   int64_t *permutation, int32_t *sorted_groups, void *workspace,
					   size_t *workspace_bytes, gpuagg_stream stream)
{
	Workspace	ws(workspace);
	unsigned	blocks = (unsigned) ((n + 255) / 256 < 65536 ? (n + 255) / 256 : 65536);
	size_t		bytes = 0;
	char	   *temp;

	if (n < 0 || n > UINT32_MAX || group_bits < 0 || group_bits > 31)
		return GPUAGG_CUDA_INVALID;

	cub::DoubleBuffer<uint64_t> keys(ws.take<uint64_t>(n), ws.take<uint64_t>(n));
	cub::DoubleBuffer<uint32_t> rows(ws.take<uint32_t>(n), ws.take<uint32_t>(n));

	CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, rows, n, 0, 64, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (n == 0)
		return GPUAGG_CUDA_OK;
	number_rows<<<blocks, 256, 0, stream>>>(n, order_keys, keys.Current(), rows.Current());
	CUDA_TRY_LAUNCH("number_rows");
	CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, bytes, keys, rows, n, 0, 64, stream));
	fetch_groups<<<blocks, 256, 0, stream>>>(n, groups, rows.Current(), keys.Current());
	CUDA_TRY_LAUNCH("fetch_groups");
	if (group_bits > 0)
		CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, bytes, keys, rows, n, 0, group_bits, stream));
	write_order<<<blocks, 256, 0, stream>>>(n, keys.Current(), rows.Current(), permutation, sorted_groups);
	CUDA_TRY_LAUNCH("write_order");
	return GPUAGG_CUDA_OK;
}
