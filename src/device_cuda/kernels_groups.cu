/*
 * kernels_groups.cu
 *	  Kernels for groups: boundaries of runs of equal keys, packed keys of groups, lists of groups,
 *	  and the groups within a limit; see kernels.h.
 */
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "common.cuh"

#include "device_cuda/column.cuh"
#include "device_cuda/kernels.h"
#include "device_cuda/limit.h"

#define THREADS 256

static int
grid_for(int64_t n, int most)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;

	return (int) (blocks < most ? (blocks > 0 ? blocks : 1) : most);
}

/* ---- boundaries ---- */

/* Compares two keys: returns -1, 0 or 1.  NULL is greater than any value. */
__device__ static int
compare_keys(const DeviceColumn &a, int64_t i, const DeviceColumn &b, int64_t j)
{
	bool there = is_valid(a, i), other = is_valid(b, j);
	int64_t x, y;

	if (!there || !other)
		return (int) other - (int) there;
	x = load_integer(a, i);
	y = load_integer(b, j);
	return x < y ? -1 : x > y;
}

/* Returns the last wanted row before row i; -1: there is none in the slice. */
__device__ static int64_t
row_before(const HeadRows &rows, int64_t i)
{
	int left = 0, right = rows.nspans;

	if (rows.mask == nullptr || (i > 0 && rows.mask[i - 1]))
		return i - 1;
	/* find the first range that ends after the row */
	while (left < right)
	{
		int mid = left + (right - left) / 2;

		if (rows.spans[mid].first + rows.spans[mid].nrows > rows.first + i)
			right = mid;
		else
			left = mid + 1;
	}
	return left == 0 ? -1 :
					   rows.spans[left - 1].first + rows.spans[left - 1].nrows - 1 - rows.first;
}

/* Returns whether row i begins a run; adds HEADS_* flags to *order. */
__device__ static bool
begins_run(const HeadRows &rows, int64_t i, uint32_t *order)
{
	int64_t before = row_before(rows, i);
	int first = 0, all = 0;

	if (before < 0 && rows.last_before < 0)
		return true;
	for (int k = 0; k < rows.nkeys && all == 0; k++)
	{
		const DeviceColumn &other = before < 0 ? rows.column_before[k] : rows.column[k];

		all = compare_keys(rows.column[k], i, other, before < 0 ? rows.last_before : before);
		if (k == 0)
			first = all;
	}
	*order |= (all > 0     ? HEADS_ASCEND :
				   all < 0 ? HEADS_DESCEND :
							 0) |
		(first > 0     ? HEADS_FIRST_ASCENDS :
			 first < 0 ? HEADS_FIRST_DESCENDS :
						 0);
	return all != 0;
}

/*
 * Returns whether the first key column both ascends and descends so far, so that no more heads are
 * needed.  All threads of a warp must call it.
 */
__device__ static bool
is_disordered(const uint32_t *order)
{
	uint32_t seen = threadIdx.x % 32 == 0 ? __ldcg(order) : 0;

	seen = __shfl_sync(~0u, seen, 0);
	return (seen & HEADS_FIRST_ASCENDS) && (seen & HEADS_FIRST_DESCENDS);
}

/* Adds the HEADS_* flags that the threads of a warp have seen to *order. */
__device__ static void
add_order_flags(uint32_t seen, uint32_t *order)
{
	seen = __reduce_or_sync(~0u, seen);
	if (threadIdx.x % 32 == 0 && seen != 0 && (__ldcg(order) & seen) != seen)
		atomicOr(order, seen);
}

/* The special case of one key without NULLs and without a mask: each thread handles eight rows. */
template <typename T>
__global__ static void
plain_heads_kernel(const T *keys, const T *before, int64_t nrows, uint8_t *heads, uint32_t *order)
{
	int64_t bytes = (nrows + 31) / 32 * 4;
	uint32_t seen = 0;

	if (is_disordered(order))
		return;
	for (int64_t b = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; b < bytes;
		 b += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t at = 8 * b;
		union
		{
			T key[8];
			uint2 piece[sizeof(T)];
		} u;
		T last;
		uint32_t bits = 0;

		if (at + 8 <= nrows)
#pragma unroll
			for (unsigned i = 0; i < sizeof(T); i++)
				u.piece[i] = __ldcs((const uint2 *) (keys + at) + i);
		else
			for (int i = 0; at + i < nrows && i < 8; i++)
				u.key[i] = keys[at + i];
		if (at > 0)
			last = at < nrows ? keys[at - 1] : 0;
		else
			last = before ? *before : u.key[0];
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (at + i < nrows)
			{
				bool first = at + i == 0 && before == nullptr;

				bits |= (uint32_t) (first || u.key[i] != last) << i;
				seen |= u.key[i] > last ? HEADS_ASCEND | HEADS_FIRST_ASCENDS :
					u.key[i] < last     ? HEADS_DESCEND | HEADS_FIRST_DESCENDS :
										  0;
				last = u.key[i];
			}
		heads[b] = (uint8_t) bits;
	}
	add_order_flags(seen, order);
}

template <typename T>
static void
find_plain(const HeadRows &rows, int64_t nrows, uint32_t *heads, uint32_t *order,
		   cudaStream_t stream)
{
	const T *before = rows.last_before < 0 ?
		nullptr :
		(const T *) rows.column_before[0].values + rows.last_before;

	plain_heads_kernel<T><<<grid_for((nrows + 7) / 8, 132 * 16), THREADS, 0, stream>>>(
		(const T *) rows.column[0].values, before, nrows, (uint8_t *) heads, order);
}

__global__ static void
heads_kernel(const __grid_constant__ HeadRows rows, int64_t nrows, uint32_t *heads, uint32_t *order)
{
	uint32_t seen = 0;

	if (is_disordered(order))
		return;
	for (int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; at < (nrows + 31) / 32 * 32;
		 at += (int64_t) gridDim.x * blockDim.x)
	{
		bool head =
			at < nrows && (rows.mask == nullptr || rows.mask[at]) && begins_run(rows, at, &seen);
		uint32_t word = __ballot_sync(~0u, head);

		if (threadIdx.x % 32 == 0)
			heads[at / 32] = word;
	}
	add_order_flags(seen, order);
}

GpuaggCudaStatus
device_find_heads(const HeadRows *rows, int64_t nrows, uint32_t *heads, uint32_t *order,
				  gpuagg_stream stream)
{
	const DeviceColumn *key = &rows->column[0];
	const DeviceColumn *before = &rows->column_before[0];

	if (rows->nkeys == 1 && rows->mask == nullptr && key->validity == nullptr &&
		(rows->last_before < 0 || before->validity == nullptr) &&
		(key->type == WIRE_I32 || key->type == WIRE_I64))
	{
		if (key->type == WIRE_I32)
			find_plain<int32_t>(*rows, nrows, heads, order, stream);
		else
			find_plain<int64_t>(*rows, nrows, heads, order, stream);
		CUDA_TRY_LAUNCH("plain_heads_kernel");
		return GPUAGG_CUDA_OK;
	}
	heads_kernel<<<grid_for(nrows, 132 * 16), THREADS, 0, stream>>>(*rows, nrows, heads, order);
	CUDA_TRY_LAUNCH("heads_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- keys ---- */

__device__ static void
store_key_bytes(char *key, int64_t value, int offset, int width)
{
	for (int b = 0; b < width; b++)
		key[offset + b] = (char) (value >> 8 * b);
}

/* A packed key, in words. */
union PackedKey
{
	uint32_t words[WIRE_MAX_KEY_BYTES / 4];
	char bytes[WIRE_MAX_KEY_BYTES];
};

/* Writes packed key i. */
__device__ static void
write_key(const PackedKey &key, int bytes, void *out, int64_t i)
{
	for (int w = 0; w < bytes / 4; w++)
		((uint32_t *) out)[i * (bytes / 4) + w] = key.words[w];
}

/* Clears a packed key from word `from` on. */
__device__ static void
clear_key(PackedKey &key, int from, int bytes)
{
	for (int w = from; w < bytes / 4; w++)
		key.words[w] = 0;
}

/* Packs the key of row i. */
__device__ static void
pack_key(const PackKeys &pack, int64_t i, PackedKey &key)
{
	clear_key(key, 0, pack.key_bytes);
	for (int k = 0; k < pack.nkeys; k++)
		if (is_valid(pack.column[k], i))
			store_key_bytes(key.bytes, load_integer(pack.column[k], i), pack.offset[k],
							pack.width[k]);
		else
			key.bytes[pack.null_offset] |= 1 << k;
}

/* Each thread handles one word of heads, because there are far fewer runs than rows. */
__global__ static void
head_keys_kernel(const __grid_constant__ PackKeys pack, const uint32_t *heads,
				 const int32_t *before, int64_t words, void *out)
{
	for (int64_t w = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; w < words;
		 w += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t run = before[w];

		for (uint32_t word = heads[w]; word != 0; word &= word - 1)
		{
			PackedKey key;

			pack_key(pack, 32 * w + __ffs(word) - 1, key);
			write_key(key, pack.key_bytes, out, run++);
		}
	}
}

GpuaggCudaStatus
device_head_keys(const PackKeys *pack, const uint32_t *heads, const int32_t *before, int64_t nrows,
				 void *out, gpuagg_stream stream)
{
	int64_t words = (nrows + 31) / 32;

	head_keys_kernel<<<grid_for(words, 132 * 16), THREADS, 0, stream>>>(*pack, heads, before, words,
																		out);
	CUDA_TRY_LAUNCH("head_keys_kernel");
	return GPUAGG_CUDA_OK;
}

__global__ static void
rows_of_bins_kernel(const int32_t *bins, int64_t nrows, int64_t first, int32_t *rows)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows;
		 i += (int64_t) gridDim.x * blockDim.x)
		if (bins[i] >= first)
			rows[bins[i] - first] = (int32_t) i;
}

GpuaggCudaStatus
device_rows_of_bins(const int32_t *bins, int64_t nrows, int64_t first, int32_t *rows,
					gpuagg_stream stream)
{
	rows_of_bins_kernel<<<grid_for(nrows, 4096), THREADS, 0, stream>>>(bins, nrows, first, rows);
	CUDA_TRY_LAUNCH("rows_of_bins_kernel");
	return GPUAGG_CUDA_OK;
}

__global__ static void
row_keys_kernel(const __grid_constant__ PackKeys pack, const int32_t *rows, int64_t n, void *out)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		PackedKey key;

		if (rows[i] >= 0)
			pack_key(pack, rows[i], key);
		else
			clear_key(key, 0, pack.key_bytes);
		write_key(key, pack.key_bytes, out, i);
	}
}

GpuaggCudaStatus
device_row_keys(const PackKeys *pack, const int32_t *rows, int64_t n, void *out,
				gpuagg_stream stream)
{
	row_keys_kernel<<<grid_for(n, 4096), THREADS, 0, stream>>>(*pack, rows, n, out);
	CUDA_TRY_LAUNCH("row_keys_kernel");
	return GPUAGG_CUDA_OK;
}

/* Makes the packed key of a bin. */
__device__ static void
make_key(const GroupKeys &keys, int64_t bin, PackedKey &key)
{
	int words = keys.table ? keys.table_bytes / 4 : 0;

	for (int w = 0; w < words; w++)
		key.words[w] = ((const uint32_t *) keys.table)[bin * words + w];
	clear_key(key, words, keys.key_bytes);
	for (int k = keys.nkeys - 1; k >= 0 && words == 0; k--)
	{
		int64_t digit = bin % keys.extent[k];

		bin /= keys.extent[k];
		if (keys.has_null[k] && digit == keys.extent[k] - 1)
			key.bytes[keys.null_offset] |= 1 << k;
		else
			store_key_bytes(key.bytes, keys.min[k] + digit, keys.offset[k], keys.width[k]);
	}
}

__global__ static void
group_keys_kernel(const __grid_constant__ GroupKeys keys, const int32_t *list, int64_t n, void *out)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		PackedKey key;

		make_key(keys, list ? list[i] : (int32_t) i, key);
		write_key(key, keys.key_bytes, out, i);
	}
}

GpuaggCudaStatus
device_group_keys(const GroupKeys *keys, const int32_t *list, int64_t n, void *out,
				  gpuagg_stream stream)
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
device_list_groups(const int64_t *counts, int64_t n, int32_t *list, int32_t *nlisted,
				   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	thrust::counting_iterator<int32_t> bins(0);
	HasRows has_rows = {counts};
	Workspace ws(workspace);
	size_t bytes = 0;
	char *temp;

	CUDA_TRY(cub::DeviceSelect::If(nullptr, bytes, bins, list, nlisted, (int) n, has_rows, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cub::DeviceSelect::If(temp, bytes, bins, list, nlisted, (int) n, has_rows, stream));
	return GPUAGG_CUDA_OK;
}

/* ---- the groups within a limit ---- */

/* What the search for the groups within a limit reads of one bin. */
struct TopKey
{
	PackedKey key; /* only set if the plan reads keys */
	bool exists;   /* the bin is a group */
	bool passes;   /* it is, and it meets the conditions */

	__device__ __forceinline__
	TopKey(const TopGroups &top, int64_t bin)
		: exists(top.counts == nullptr || top.counts[bin] != 0), passes(false)
	{
		if (!exists)
			return;
		if (top.reads_keys)
			make_key(top.keys, bin, key);
		passes = limit_passes(&top.plan, bin, key.bytes);
	}
};

/* Returns whether this is the last block to call it; then it sees what the other blocks wrote. */
__device__ static bool
is_last_block(LimitSearch *search)
{
	__shared__ bool last;

	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
	{
		last = atomicAdd(&search->blocks, 1u) == gridDim.x - 1;
		if (last)
			search->blocks = 0;
		__threadfence();
	}
	__syncthreads();
	return last;
}

/*
 * Finds the range of the current word of the tied groups.  The pass for word 0 also counts the
 * groups. search NULL: only counts them.
 */
__global__ static void
top_range_kernel(const __grid_constant__ TopGroups top, int64_t n, int w, LimitSearch *search,
				 TopCounts *counts)
{
	__shared__ uint64_t least, greatest;
	bool searches = search != nullptr;
	int groups = 0, failed = 0;

	if (w > 0 && (search->ended || search->word != w || search->ranged))
		return;
	if (threadIdx.x == 0)
	{
		least = UINT64_MAX;
		greatest = 0;
	}
	__syncthreads();
	uint64_t low = UINT64_MAX, high = 0, word;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		TopKey top_key(top, i);

		groups += top_key.exists;
		failed += top_key.exists && !top_key.passes;
		if (searches && top_key.passes &&
			limit_compare(&top.plan, search, i, top_key.key.bytes, &word) == 0)
		{
			low = word < low ? word : low;
			high = word > high ? word : high;
		}
	}
	groups = __reduce_add_sync(~0u, groups);
	failed = __reduce_add_sync(~0u, failed);
	if (w == 0 && threadIdx.x % 32 == 0)
	{
		atomicAdd(&counts->all, groups);
		atomicAdd(&counts->failed, failed);
	}
	if (!searches)
		return;
	if (low <= high)
	{
		atomicMin((unsigned long long *) &least, (unsigned long long) low);
		atomicMax((unsigned long long *) &greatest, (unsigned long long) high);
	}
	__syncthreads();
	if (threadIdx.x == 0 && least <= greatest)
	{
		atomicMin((unsigned long long *) &search->least, (unsigned long long) least);
		atomicMax((unsigned long long *) &search->greatest, (unsigned long long) greatest);
	}
	if (!is_last_block(search) || threadIdx.x != 0)
		return;
	if (w == 0 && __ldcg(&counts->all) - __ldcg(&counts->failed) <= search->wanted)
		search->ended = 1;
	else
	{
		search->least = __ldcg(&search->least);
		search->greatest = __ldcg(&search->greatest);
		limit_search_range(&top.plan, search);
	}
}

/*
 * Finds the greatest digit for which at least search->wanted groups have this digit or a greater
 * one, and advances the search.  Called by a whole block, which uses prefix sums.  Clears
 * the counts.
 */
__device__ static void
find_digit(const TopGroups &top, LimitSearch *search)
{
	constexpr int EACH = LIMIT_DIGITS / THREADS;
	__shared__ uint32_t sums[THREADS];
	uint32_t mine = 0;

	/* thread t adds the t-th greatest EACH digits */
	for (int i = 0; i < EACH; i++)
		mine += __ldcg(&search->digits[LIMIT_DIGITS - 1 - threadIdx.x * EACH - i]);
	sums[threadIdx.x] = mine;
	__syncthreads();
	for (int step = 1; step < THREADS; step *= 2)
	{
		uint32_t other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;

		__syncthreads();
		sums[threadIdx.x] += other;
		__syncthreads();
	}
	int64_t before = (int64_t) sums[threadIdx.x] - mine;
	bool here = before < search->wanted && search->wanted <= (int64_t) sums[threadIdx.x];

	__syncthreads();
	if (here)
	{
		int digit = LIMIT_DIGITS - 1 - threadIdx.x * EACH;
		uint32_t tie;

		for (; before + (tie = __ldcg(&search->digits[digit])) < search->wanted; digit--)
			before += tie;
		limit_search_digit(&top.plan, search, digit, before, tie);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < LIMIT_DIGITS; i += THREADS)
		search->digits[i] = 0;
}

/* Counts how many tied groups have each value of the next digit of word w. */
__global__ static void
top_digit_kernel(const __grid_constant__ TopGroups top, int64_t n, int w, LimitSearch *search)
{
	__shared__ uint32_t digits[LIMIT_DIGITS];

	if (search->ended || search->word != w || !search->ranged)
		return;
	for (int i = threadIdx.x; i < LIMIT_DIGITS; i += THREADS)
		digits[i] = 0;
	__syncthreads();
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		TopKey top_key(top, i);
		uint64_t word;

		if (top_key.passes && limit_compare(&top.plan, search, i, top_key.key.bytes, &word) == 0)
			atomicAdd(&digits[limit_digit(search, word)], 1u);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < LIMIT_DIGITS; i += THREADS)
		if (digits[i] > 0)
			atomicAdd(&search->digits[i], digits[i]);
	if (is_last_block(search))
		find_digit(top, search);
}

/* Copies the arguments to device memory, and starts the search; *search is zeros, or it is NULL. */
__global__ static void
top_begin_kernel(const __grid_constant__ TopGroups top, TopGroups *copy, LimitSearch *search)
{
	*copy = top;
	if (search == nullptr)
		return;
	search->wanted = top.plan.count;
	limit_search_word(search, 0);
}

/* Contains a pointer to the arguments, because each thread of CUB's kernel copies the functor. */
struct InTop
{
	const TopGroups *top;
	const LimitSearch *search; /* NULL: all groups that meet the conditions */

	__device__ __forceinline__ bool
	operator()(int32_t bin) const
	{
		TopKey top_key(*top, bin);
		uint64_t word;

		return top_key.passes &&
			(search == nullptr ||
			 limit_compare(&top->plan, search, bin, top_key.key.bytes, &word) >= 0);
	}
};

/* Queues as many passes as may be needed; passes after the end of the search do nothing. */
static GpuaggCudaStatus
search_bound(const TopGroups *top, int64_t n, TopGroups *copy, LimitSearch *search,
			 TopCounts *counts, cudaStream_t stream)
{
	int grid = grid_for(n, 1024);

	if (search)
		CUDA_TRY(cudaMemsetAsync(search, 0, sizeof(*search), stream));
	top_begin_kernel<<<1, 1, 0, stream>>>(*top, copy, search);
	CUDA_TRY_LAUNCH("top_begin_kernel");
	for (int w = 0; w == 0 || (search && w < top->plan.nsort + !top->plan.ties); w++)
	{
		top_range_kernel<<<grid, THREADS, 0, stream>>>(*top, n, w, search, counts);
		CUDA_TRY_LAUNCH("top_range_kernel");
		/* group numbers have 31 bits */
		for (int pass = 1; search && pass < (w < top->plan.nsort ? LIMIT_PASSES : 4); pass++)
		{
			top_digit_kernel<<<grid, THREADS, 0, stream>>>(*top, n, w, search);
			CUDA_TRY_LAUNCH("top_digit_kernel");
		}
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_top_groups(const TopGroups *top, int64_t n, int32_t *list, int32_t *nlisted,
				  TopCounts *counts, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	thrust::counting_iterator<int32_t> bins(0);
	bool searches = top->plan.count > 0 && top->plan.count < n;
	Workspace ws(workspace);
	TopGroups *copy = ws.take<TopGroups>(1);
	LimitSearch *search = searches ? ws.take<LimitSearch>(1) : nullptr;
	size_t bytes = 0;
	char *temp;

	CUDA_TRY(cub::DeviceSelect::If(nullptr, bytes, bins, list, nlisted, (int) n,
								   InTop{copy, search}, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cudaMemsetAsync(counts, 0, sizeof(*counts), stream));
	STATUS_TRY(search_bound(top, n, copy, search, counts, stream));
	CUDA_TRY(cub::DeviceSelect::If(temp, bytes, bins, list, nlisted, (int) n, InTop{copy, search},
								   stream));
	return GPUAGG_CUDA_OK;
}
