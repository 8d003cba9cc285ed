/*
 * group_partition.cu
 *	  Keys to partitions by hash, and the estimate of their distinct number.
 */
#include "group.cuh"
#include "partition.cuh"

/* The more, the better a part of the table fits caches, and the shorter the runs. */
#define PARTITIONS 512

/* By the top of the hash, so that a partition's keys share a part of the table. */
template <int WORDS> static __device__ __forceinline__ u32
partition_of(const GpuaggHashKey &hash, const Key<WORDS> &k)
{
	return (u32) (hash_key(hash, k) >> 32) / (u32) (0x100000000ULL / PARTITIONS);
}

/* What a row's key, or value, is moved as. */
template <int BYTES> struct Moved;
template <> struct Moved<4>
{
	typedef u32 type;
};
template <> struct Moved<8>
{
	typedef u64 type;
};
template <> struct Moved<16>
{
	typedef Pair type;
};

static __device__ __forceinline__ Key<1>
key_of(u64 k)
{
	return {{k}};
}
static __device__ __forceinline__ Key<2>
key_of(const Pair &k)
{
	return {{k.lo, k.hi}};
}

template <int BYTES> static __global__ void __launch_bounds__(PART_THREADS, 2)
count_keys_kernel(const __grid_constant__ GpuaggHashKey hash, const void *keys, u32 nrows, u32 *total)
{
	typedef typename Moved<BYTES>::type K;
	__shared__ u32 count[PARTITIONS];
	u64			base = blockIdx.x * (u64) PART_TILE;

	for (u32 p = threadIdx.x; p < PARTITIONS; p += PART_THREADS)
		count[p] = 0;
	__syncthreads();
	/* as many at a time as hide the way to memory */
	for (; base + PART_TILE <= nrows; base += gridDim.x * (u64) PART_TILE)
	{
		K			key[PART_ITEMS];

		part_load<K>(~0u, keys, base, key);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			atomicAdd(&count[partition_of(hash, key_of(key[j]))], 1u);
	}
	for (u64 r = base + threadIdx.x; r < nrows; r += PART_THREADS)
		atomicAdd(&count[partition_of(hash, key_of(((const K *) keys)[r]))], 1u);
	__syncthreads();
	for (u32 p = threadIdx.x; p < PARTITIONS; p += PART_THREADS)
		if (count[p])
			atomicAdd(&total[p], count[p]);
}

/* The tile's rows before the end, one bit an item. */
static __device__ __forceinline__ u32
rows_left(u64 base, u32 nrows)
{
	u32			ok = 0;

#pragma unroll
	for (int j = 0; j < PART_ITEMS; j++)
		if (base + j * PART_THREADS + threadIdx.x < nrows)
			ok |= 1u << j;
	return ok;
}

/* values_out may be NULL. */
template <int BYTES, int VALUE_BYTES> static __global__ void __launch_bounds__(PART_THREADS, 1)
move_keys_kernel(const __grid_constant__ GpuaggHashKey hash, const void *keys, const void *values, u32 nrows,
				 void *keys_out, void *values_out, u32 *cursor)
{
	typedef typename Moved<BYTES>::type K;
	typedef typename Moved<VALUE_BYTES>::type V;
	PartTile	t = {PARTITIONS, BYTES, VALUE_BYTES};
	PutKey<K>	put = {(K *) keys_out};
	u64			base = blockIdx.x * (u64) PART_TILE;
	u32			ok = rows_left(base, nrows);
	K			key[PART_ITEMS];

	part_clear(t);
	part_load<K>(ok, keys, base, key);
	while (base < nrows)
	{
		V			v[PART_ITEMS];
		u32			place[PART_ITEMS];	/* and the partition above it */
		PartRuns	runs;

		if (values_out)
			part_load<V>(ok, values, base, v);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			if (ok >> j & 1)
			{
				u32			p = partition_of(hash, key_of(key[j]));

				place[j] = p << 16 | atomicAdd(&t.count()[p], 1u);
			}
		runs = part_reserve(t, cursor, 0, PARTITIONS - 1);
		part_places(t, ok, place);
		part_stage<K>(t.keys(), ok, place, key);
		if (values_out)
			part_stage<V>(t.stage(), ok, place, v);
		base += gridDim.x * (u64) PART_TILE;
		ok = rows_left(base, nrows);
		part_load<K>(ok, keys, base, key);
		part_write<K, V>(t, runs, put, (V *) values_out);
	}
}

/* Counts to first rows. */
static __global__ void
first_rows_kernel(u32 *cursor)
{
	__shared__ u32 count[PARTITIONS];
	u32			sum = 0;

	count[threadIdx.x] = cursor[threadIdx.x];
	__syncthreads();
	for (u32 p = 0; p < threadIdx.x; p++)
		sum += count[p];
	cursor[threadIdx.x] = sum;
}

template <int BYTES, int VALUE_BYTES> static GpuaggCudaStatus
partition_keys(const GpuaggHashKey &hash, const void *keys, const void *values, u32 nrows, void *keys_out,
			   void *values_out, u32 *cursor, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = part_tile_bytes(BYTES, VALUE_BYTES, PARTITIONS);
	void	  (*move) (GpuaggHashKey, const void *, const void *, u32, void *, void *, u32 *) = move_keys_kernel<BYTES, VALUE_BYTES>;

	CUDA_TRY(allow_shared(move, facts));
	CUDA_TRY(cudaMemsetAsync(cursor, 0, PARTITIONS * sizeof(u32), stream));
	count_keys_kernel<BYTES><<<2 * facts.sms, PART_THREADS, 0, stream>>>(hash, keys, nrows, cursor);
	first_rows_kernel<<<1, PARTITIONS, 0, stream>>>(cursor);
	move<<<facts.sms, PART_THREADS, bytes, stream>>>(hash, keys, values, nrows, keys_out, values_out, cursor);
	CUDA_TRY_LAUNCH("move_keys_kernel");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_partition(int key_bytes, uint64_t seed, const void *keys, int value_bytes,
					   const void *values, int64_t nrows, void *keys_out, void *values_out, void *workspace,
					   size_t *workspace_bytes, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	Workspace	ws(workspace);
	u32		   *cursor = ws.take<u32>(PARTITIONS);
	GpuaggHashKey hash = gpuagg_hash_key(seed);

	if (nrows < 0 || nrows > UINT32_MAX || (values && value_bytes != 4 && value_bytes != 8))
		return GPUAGG_CUDA_INVALID;
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	STATUS_TRY(gpuagg_device_facts(&facts));
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	if (values == nullptr)
		values_out = nullptr;
#define PARTITION(bytes) \
	if (key_bytes == bytes) \
		return values_out && value_bytes == 8 \
			? partition_keys<bytes, 8>(hash, keys, values, (u32) nrows, keys_out, values_out, cursor, *facts, stream) \
			: partition_keys<bytes, 4>(hash, keys, values, (u32) nrows, keys_out, values_out, cursor, *facts, stream)
	PARTITION(4);
	PARTITION(8);
	PARTITION(16);
#undef PARTITION
	return GPUAGG_CUDA_INVALID;
}

/* ---- estimate ------------------------------------------------------------------------ */

#define ESTIMATE_ROWS 65536

struct EstimateCounts
{
	u32			once;
	u32			twice;
};

template <int BYTES> static __global__ void
sample_keys_kernel(const void *keys, u32 nrows, u32 samples, void *out)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < samples; i += gridDim.x * blockDim.x)
	{
		u64			from = (u64) nrows * i / samples,
					to = (u64) nrows * (i + 1) / samples;
		u32			row = (u32) (from + mix64(i + 1) % (to - from));

		store_key<BYTES, BYTES == 16 ? 2 : 1>(out, i, load_key<BYTES>(keys, row));
	}
}

static __global__ void
count_bins_kernel(const int32_t *bins, u32 n, u32 *count)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		if (bins[i] >= 0)
			atomicAdd(&count[bins[i]], 1u);
}

static __global__ void
count_counts_kernel(const u32 *count, u32 n, EstimateCounts *out)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
	{
		if (count[i] == 1)
			atomicAdd(&out->once, 1u);
		if (count[i] == 2)
			atomicAdd(&out->twice, 1u);
	}
}

/*
 * Chao (1984), "Nonparametric Estimation of the Number of Classes in a
 * Population": the unseen from those seen once and twice.
 */
static int64_t
chao_estimate(int64_t seen, const EstimateCounts &c, int64_t samples, int64_t nrows)
{
	double		unseen = 0.5 * (double) c.once * ((double) c.once - 1) / ((double) c.twice + 1);
	double		total;

	if (samples >= nrows)
		return seen;
	/* distinct rows of a sample say no more than that most rows are distinct */
	total = c.once >= samples ? (double) nrows : (double) seen + (unseen > 0 ? unseen : 0);
	return total < (double) nrows ? (int64_t) total : nrows;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_estimate(int key_bytes, uint64_t seed, const void *keys, int64_t nrows,
					  int64_t *distinct, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	Workspace	ws(workspace);
	u32			samples = (u32) (nrows < ESTIMATE_ROWS ? nrows : ESTIMATE_ROWS);
	GpuaggGroupTable table = GpuaggGroupTable();
	EstimateCounts counts,
			   *device_counts;
	char	   *sample;
	int32_t    *bins;
	u32		   *count;
	GpuaggCudaStatus status;
	int64_t		seen,
				pending,
				null_bin;

	if (nrows < 0 || nrows > UINT32_MAX || (key_bytes != 4 && key_bytes != 8 && key_bytes != 16))
		return GPUAGG_CUDA_INVALID;
	table.key_bytes = key_bytes;
	table.capacity = ESTIMATE_ROWS;
	table.seed = seed;
	table.slots = ws.take<char>(gpuagg_group_slot_bytes(key_bytes, ESTIMATE_ROWS));
	table.keys = ws.take<char>((size_t) ESTIMATE_ROWS * key_bytes);
	table.counters = ws.take<GpuaggGroupCounters>(1);
	sample = ws.take<char>((size_t) ESTIMATE_ROWS * key_bytes);
	bins = ws.take<int32_t>(ESTIMATE_ROWS);
	count = ws.take<u32>(ESTIMATE_ROWS);
	device_counts = ws.take<EstimateCounts>(1);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	*distinct = 0;
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	STATUS_TRY(gpuagg_group_init(&table, stream));
	CUDA_TRY(cudaMemsetAsync(count, 0, ESTIMATE_ROWS * sizeof(u32), stream));
	CUDA_TRY(cudaMemsetAsync(device_counts, 0, sizeof(EstimateCounts), stream));
	if (key_bytes == 4)
		sample_keys_kernel<4><<<64, 256, 0, stream>>>(keys, (u32) nrows, samples, sample);
	else if (key_bytes == 8)
		sample_keys_kernel<8><<<64, 256, 0, stream>>>(keys, (u32) nrows, samples, sample);
	else
		sample_keys_kernel<16><<<64, 256, 0, stream>>>(keys, (u32) nrows, samples, sample);
	CUDA_TRY_LAUNCH("sample_keys_kernel");
	STATUS_TRY(gpuagg_group_lookup(&table, sample, nullptr, nullptr, samples, 0, bins, stream));
	count_bins_kernel<<<64, 256, 0, stream>>>(bins, samples, count);
	count_counts_kernel<<<64, 256, 0, stream>>>(count, ESTIMATE_ROWS, device_counts);
	CUDA_TRY_LAUNCH("count_counts_kernel");
	CUDA_TRY(cudaMemcpyAsync(&counts, device_counts, sizeof(counts), cudaMemcpyDeviceToHost, stream));
	status = gpuagg_group_status(&table, &seen, &pending, &null_bin, stream);
	/* an estimate can do without keys that were lost */
	if (status != GPUAGG_CUDA_OK && status != GPUAGG_CUDA_DEGENERATE)
		return status;
	*distinct = chao_estimate(seen, counts, samples, nrows);
	return GPUAGG_CUDA_OK;
}
