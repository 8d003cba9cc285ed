/*
 * device_kernels_groups.cu
 *	  Kernels for groups: boundaries of runs of equal keys, lists of groups and their keys; see device_kernels.h.
 */
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "common.cuh"

#include "server/device_kernels.h"

#define THREADS 256

static int
grid_for(int64_t n, int most)
{
	int64_t		blocks = (n + THREADS - 1) / THREADS;

	return (int) (blocks < most ? (blocks > 0 ? blocks : 1) : most);
}

/* ---- boundaries ---- */

__device__ static bool
is_valid(const DeviceColumn &c, int64_t i)
{
	return c.validity == nullptr || (c.validity[i >> 3] >> (i & 7) & 1);
}

__device__ static int64_t
load_key(const DeviceColumn &c, int64_t i)
{
	switch (c.type)
	{
		case WIRE_I8:
			return ((const int8_t *) c.values)[i];
		case WIRE_I16:
			return ((const int16_t *) c.values)[i];
		case WIRE_I32:
			return ((const int32_t *) c.values)[i];
		default:
			return ((const int64_t *) c.values)[i];
	}
}

/* -1, 0 or 1; NULL is greater than any value. */
__device__ static int
compare_keys(const DeviceColumn &a, int64_t i, const DeviceColumn &b, int64_t j)
{
	bool		there = is_valid(a, i),
				other = is_valid(b, j);
	int64_t		x,
				y;

	if (!there || !other)
		return (int) other - (int) there;
	x = load_key(a, i);
	y = load_key(b, j);
	return x < y ? -1 : x > y;
}

/* The row before row i among those of the spans; -1: it is not in the slice. */
__device__ static int64_t
row_before(const HeadRows &rows, int64_t i)
{
	int			left = 0,
				right = rows.nspans;

	if (rows.mask == nullptr || (i > 0 && rows.mask[i - 1]))
		return i - 1;
	/* the first span that ends behind the row */
	while (left < right)
	{
		int			mid = left + (right - left) / 2;

		if (rows.spans[mid].first + rows.spans[mid].nrows > rows.first + i)
			right = mid;
		else
			left = mid + 1;
	}
	return left == 0 ? -1 : rows.spans[left - 1].first + rows.spans[left - 1].nrows - 1 - rows.first;
}

/* Whether row i begins a run; *order: the flags of device_find_heads. */
__device__ static bool
begins_run(const HeadRows &rows, int64_t i, uint32_t *order)
{
	int64_t		before = row_before(rows, i);
	int			first = 0,
				all = 0;

	if (before < 0 && rows.last_before < 0)
		return true;
	for (int k = 0; k < rows.nkeys && all == 0; k++)
	{
		const DeviceColumn &other = before < 0 ? rows.column_before[k] : rows.column[k];

		all = compare_keys(rows.column[k], i, other, before < 0 ? rows.last_before : before);
		if (k == 0)
			first = all;
	}
	*order |= (all > 0 ? HEADS_ASCEND : all < 0 ? HEADS_DESCEND : 0) |
		(first > 0 ? HEADS_FIRST_ASCENDS : first < 0 ? HEADS_FIRST_DESCENDS : 0);
	return all != 0;
}

__global__ static void
heads_kernel(const __grid_constant__ HeadRows rows, int64_t nrows, uint32_t *heads, uint32_t *order)
{
	uint32_t	seen = 0;

	for (int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; at < (nrows + 31) / 32 * 32;
		 at += (int64_t) gridDim.x * blockDim.x)
	{
		bool		head = at < nrows && (rows.mask == nullptr || rows.mask[at]) && begins_run(rows, at, &seen);
		uint32_t	word = __ballot_sync(~0u, head);

		if (threadIdx.x % 32 == 0)
			heads[at / 32] = word;
	}
	seen = __reduce_or_sync(~0u, seen);
	if (threadIdx.x % 32 == 0 && seen != 0 && (__ldcg(order) & seen) != seen)
		atomicOr(order, seen);
}

GpuaggCudaStatus
device_find_heads(const HeadRows *rows, int64_t nrows, uint32_t *heads, uint32_t *order, gpuagg_stream stream)
{
	heads_kernel<<<grid_for(nrows, 132 * 16), THREADS, 0, stream>>>(*rows, nrows, heads, order);
	CUDA_TRY_LAUNCH("heads_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- keys ---- */

__device__ static void
place(char *key, int64_t value, int offset, int width)
{
	for (int b = 0; b < width; b++)
		key[offset + b] = (char) (value >> 8 * b);
}

/* Keys have 4, 8 or 16 bytes, aligned. */
__device__ static void
write_key(const char *key, int bytes, void *out, int64_t i)
{
	for (int w = 0; w < bytes / 4; w++)
		((uint32_t *) out)[i * (bytes / 4) + w] = ((const uint32_t *) key)[w];
}

__global__ static void
head_keys_kernel(const __grid_constant__ PackKeys pack, const uint32_t *heads, const int32_t *before, int64_t nrows,
				 void *out)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows; i += (int64_t) gridDim.x * blockDim.x)
	{
		uint32_t	word = heads[i / 32];
		alignas(16) char key[WIRE_MAX_KEY_BYTES] = {0};

		if (!(word >> (i % 32) & 1))
			continue;
		for (int k = 0; k < pack.nkeys; k++)
			if (is_valid(pack.column[k], i))
				place(key, load_key(pack.column[k], i), pack.offset[k], pack.width[k]);
			else
				key[pack.null_offset] |= 1 << k;
		write_key(key, pack.key_bytes, out, before[i / 32] + __popc(word & ((1u << (i % 32)) - 1)));
	}
}

GpuaggCudaStatus
device_head_keys(const PackKeys *pack, const uint32_t *heads, const int32_t *before, int64_t nrows, void *out,
				 gpuagg_stream stream)
{
	head_keys_kernel<<<grid_for(nrows, 132 * 16), THREADS, 0, stream>>>(*pack, heads, before, nrows, out);
	CUDA_TRY_LAUNCH("head_keys_kernel");
	return GPUAGG_CUDA_OK;
}

__global__ static void
group_keys_kernel(const __grid_constant__ GroupKeys keys, const int32_t *list, int64_t n, void *out)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t		bin = list[i];
		alignas(16) char key[WIRE_MAX_KEY_BYTES] = {0};

		if (keys.table)
			for (int w = 0; w < keys.table_bytes / 4; w++)
				((uint32_t *) key)[w] = ((const uint32_t *) keys.table)[bin * (keys.table_bytes / 4) + w];
		else
			for (int k = keys.nkeys - 1; k >= 0; k--)
			{
				int64_t		digit = bin % keys.extent[k];

				bin /= keys.extent[k];
				if (keys.has_null[k] && digit == keys.extent[k] - 1)
					key[keys.null_offset] |= 1 << k;
				else
					place(key, keys.min[k] + digit, keys.offset[k], keys.width[k]);
			}
		write_key(key, keys.key_bytes, out, i);
	}
}

GpuaggCudaStatus
device_group_keys(const GroupKeys *keys, const int32_t *list, int64_t n, void *out, gpuagg_stream stream)
{
	group_keys_kernel<<<grid_for(n, 4096), THREADS, 0, stream>>>(*keys, list, n, out);
	CUDA_TRY_LAUNCH("group_keys_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- lists ---- */

struct HasRows
{
	const int64_t *counts;

	__device__ __forceinline__ bool
	operator()(int32_t bin) const
	{
		return counts[bin] > 0;
	}
};

GpuaggCudaStatus
device_list_groups(const int64_t *counts, int64_t n, int32_t *list, int32_t *nlisted, void *workspace,
				   size_t *workspace_bytes, gpuagg_stream stream)
{
	thrust::counting_iterator<int32_t> bins(0);
	HasRows		has_rows = {counts};
	Workspace	ws(workspace);
	size_t		bytes = 0;
	char	   *temp;

	CUDA_TRY(cub::DeviceSelect::If(nullptr, bytes, bins, list, nlisted, (int) n, has_rows, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cub::DeviceSelect::If(temp, bytes, bins, list, nlisted, (int) n, has_rows, stream));
	return GPUAGG_CUDA_OK;
}

__global__ static void
number_kernel(int32_t *list, int32_t first, int64_t n)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
		list[i] = first + (int32_t) i;
}

GpuaggCudaStatus
device_number_groups(int32_t *list, int64_t first, int64_t n, gpuagg_stream stream)
{
	number_kernel<<<grid_for(n, 4096), THREADS, 0, stream>>>(list, (int32_t) first, n);
	CUDA_TRY_LAUNCH("number_kernel");
	return GPUAGG_CUDA_OK;
}
