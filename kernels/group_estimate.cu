/*
 * group_estimate.cu
 *	  About how many different keys there are, from a sample.
 */
#include "group.cuh"

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
		u32			row = (u32) (from + gpuagg_mix64(i + 1) % (to - from));

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
