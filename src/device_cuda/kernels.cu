/*
 * kernels.cu
 *	  Kernels that pack keys and inputs, copy rows, and find the bins of slots; see kernels.h.
 */
#include "common.cuh"

#include "operators/bins.h"
#include "device_cuda/column.cuh"
#include "device_cuda/kernels.h"

#define THREADS 256

/* Returns the number of blocks for n items.  If there are many, each thread handles several. */
static int
grid_for(int64_t n)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;

	return (int) (blocks < 4096 ? (blocks > 0 ? blocks : 1) : 4096);
}

/* Returns value i of a column, `width` bytes without sign extension; 0 if there are none. */
__device__ static uint64_t
load_bits(const DeviceColumn &c, int width, int64_t i)
{
	switch (width)
	{
		case 0:
			return 0;
		case 1:
			return ((const uint8_t *) c.values)[i];
		case 2:
			return ((const uint16_t *) c.values)[i];
		case 4:
			return ((const uint32_t *) c.values)[i];
		default:
			return ((const uint64_t *) c.values)[i];
	}
}

/* ORs `bits` into a 16-byte key, starting at byte `offset`. */
__device__ static void
or_bits_into_key(uint64_t key[2], uint64_t bits, int offset)
{
	int shift = 8 * (offset & 7);

	if (offset >= 8)
		key[1] |= bits << shift;
	else
	{
		key[0] |= bits << shift;
		if (shift > 0)
			key[1] |= bits >> (64 - shift);
	}
}

__global__ static void
pack_kernel(PackKeys pack, int64_t nrows, void *out)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		uint64_t key[2] = {0, 0};
		uint64_t nulls = 0;

		for (int k = 0; k < pack.nkeys; k++)
		{
			if (is_valid(pack.column[k], i))
				or_bits_into_key(key, load_bits(pack.column[k], pack.width[k], i), pack.offset[k]);
			else
				nulls |= (uint64_t) 1 << k;
		}
		if (nulls && pack.null_offset < pack.key_bytes)
			or_bits_into_key(key, nulls, pack.null_offset);
		if (pack.key_bytes == 4)
			((uint32_t *) out)[i] = (uint32_t) key[0];
		else if (pack.key_bytes == 8)
			((uint64_t *) out)[i] = key[0];
		else
			((ulonglong2 *) out)[i] = make_ulonglong2(key[0], key[1]);
	}
}

GpuaggCudaStatus
device_pack_keys(const PackKeys *pack, int64_t nrows, void *out, gpuagg_stream stream)
{
	pack_kernel<<<grid_for(nrows), THREADS, 0, stream>>>(*pack, nrows, out);
	CUDA_TRY_LAUNCH("pack_kernel");
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_kernel_versions(int *binary, int *ptx)
{
	cudaFuncAttributes code;

	CUDA_TRY(cudaFuncGetAttributes(&code, pack_kernel));
	*binary = code.binaryVersion;
	*ptx = code.ptxVersion;
	return GPUAGG_CUDA_OK;
}

/* Each thread copies one word of 4 bytes, so that writes coalesce. */
template <bool SCATTER>
__global__ static void
move_kernel(const uint32_t *from, size_t words, const int32_t *map, int64_t n, uint32_t *to)
{
	int64_t total = n * (int64_t) words;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < total;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t row = i / words;
		int64_t other = map[row] * (int64_t) words + i % words;

		if (!SCATTER)
			to[i] = from[other];
		else if (map[row] >= 0)
			to[other] = from[i];
	}
}

template <bool SCATTER>
static GpuaggCudaStatus
move_rows(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
		  gpuagg_stream stream)
{
	if (n == 0)
		return GPUAGG_CUDA_OK;
	move_kernel<SCATTER><<<grid_for(n * (int64_t) row_bytes / 4), THREADS, 0, stream>>>(
		(const uint32_t *) from, row_bytes / 4, map, n, (uint32_t *) to);
	CUDA_TRY_LAUNCH("move_kernel");
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_scatter(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
			   gpuagg_stream stream)
{
	return move_rows<true>(from, row_bytes, map, n, to, stream);
}

GpuaggCudaStatus
device_gather(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
			  gpuagg_stream stream)
{
	return move_rows<false>(from, row_bytes, map, n, to, stream);
}

__global__ static void
keys_kernel(const gpuagg_kv *states, int64_t n, int64_t *to)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		to[i] = states[i].key;
}

GpuaggCudaStatus
device_take_keys(const void *states, int64_t n, int64_t *to, gpuagg_stream stream)
{
	keys_kernel<<<grid_for(n), THREADS, 0, stream>>>((const gpuagg_kv *) states, n, to);
	CUDA_TRY_LAUNCH("keys_kernel");
	return GPUAGG_CUDA_OK;
}

/* Returns value i of a column of integers or floats, as a double. */
__device__ static double
load_double(const DeviceColumn &c, int64_t i)
{
	switch (c.type)
	{
		case WIRE_F32:
			return ((const float *) c.values)[i];
		case WIRE_F64:
			return ((const double *) c.values)[i];
		default:
			return (double) load_integer(c, i);
	}
}

__global__ static void
slot_bins_kernel(SlotBins b, int64_t nrows, int32_t *out)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int group = b.group ? b.group[i] : 0;
		int bin = -1;

		if (group >= 0 && is_valid(b.column, i) && (b.filter == nullptr || b.filter[i]))
		{
			if (b.kind == WIRE_BIN_UNIFORM)
				bin = gpuagg_bin_uniform(load_double(b.column, i), b.lo, b.hi, b.n, b.formula);
			else
				bin = gpuagg_bin_thresholds(load_double(b.column, i), b.thresholds, b.n);
			bin += group * b.width;
		}
		out[i] = bin;
	}
}

GpuaggCudaStatus
device_slot_bins(const SlotBins *bins, int64_t nrows, int32_t *out, gpuagg_stream stream)
{
	slot_bins_kernel<<<grid_for(nrows), THREADS, 0, stream>>>(*bins, nrows, out);
	CUDA_TRY_LAUNCH("slot_bins_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- rows of operators that do not commute ---- */

__device__ static void
load_input(const PackInput &p, int64_t i, int8_t *out)
{
	*out = (int8_t) load_integer(p.column[0], i);
}

__device__ static void
load_input(const PackInput &p, int64_t i, int64_t *out)
{
	*out = load_integer(p.column[0], i);
}

__device__ static void
load_input(const PackInput &p, int64_t i, double *out)
{
	*out = load_double(p.column[0], i);
}

__device__ static void
load_input(const PackInput &p, int64_t i, gpuagg_f64x2 *out)
{
	out->x = load_double(p.column[0], i);
	out->y = load_double(p.column[1], i);
}

/* For LONGEST_ASC: sets out->key to the value, and out->value to whether it is not NULL. */
__device__ static void
load_input(const PackInput &p, int64_t i, gpuagg_kv *out)
{
	out->value = is_valid(p.column[0], i);
	out->key = out->value ? load_integer(p.column[0], i) : 0;
}

template <typename Matrix>
__device__ static void
load_input(const PackInput &p, int64_t i, Matrix *out)
{
	*out = ((const Matrix *) p.column[0].values)[i];
}

template <typename Input>
__global__ static void
inputs_kernel(PackInput pack, int64_t nrows, Input *inputs, uint8_t *keep)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		bool counts = pack.filter == nullptr || pack.filter[i];

		for (int c = 0; c < 2; c++)
			if (pack.column[c].values && pack.monoid != MONOID_LONGEST_ASC)
				counts = counts && is_valid(pack.column[c], i);
		load_input(pack, i, inputs + i);
		keep[i] = counts;
	}
}

template <typename Input>
static GpuaggCudaStatus
pack_inputs(const PackInput *pack, int64_t nrows, void *inputs, uint8_t *keep, gpuagg_stream stream)
{
	inputs_kernel<<<grid_for(nrows), THREADS, 0, stream>>>(*pack, nrows, (Input *) inputs, keep);
	CUDA_TRY_LAUNCH("inputs_kernel");
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_pack_inputs(const PackInput *pack, int64_t nrows, void *inputs, uint8_t *keep,
				   gpuagg_stream stream)
{
	switch (pack->monoid)
	{
		case MONOID_MAXSUB_I64:
			return pack_inputs<int64_t>(pack, nrows, inputs, keep, stream);
		case MONOID_MAXSUB_F64:
			return pack_inputs<double>(pack, nrows, inputs, keep, stream);
		case MONOID_LONGEST_RUN:
			return pack_inputs<int8_t>(pack, nrows, inputs, keep, stream);
		case MONOID_LONGEST_ASC:
			return pack_inputs<gpuagg_kv>(pack, nrows, inputs, keep, stream);
		case MONOID_LINEAR:
			return pack_inputs<gpuagg_f64x2>(pack, nrows, inputs, keep, stream);
		case MONOID_MAT2:
			return pack_inputs<gpuagg_mat2>(pack, nrows, inputs, keep, stream);
		case MONOID_MAT3:
			return pack_inputs<gpuagg_mat3>(pack, nrows, inputs, keep, stream);
		case MONOID_MAT4:
			return pack_inputs<gpuagg_mat4>(pack, nrows, inputs, keep, stream);
		case MONOID_MAT5:
			return pack_inputs<gpuagg_mat5>(pack, nrows, inputs, keep, stream);
		default:
			return GPUAGG_CUDA_UNSUPPORTED;
	}
}

__global__ static void
order_kernel(DeviceColumn column, int64_t nrows, int nulls_first, int64_t *codes, int8_t *ranks)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < nrows;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		bool valid = is_valid(column, i);

		codes[i] = valid ? load_integer(column, i) : 0;
		ranks[i] = valid == (nulls_first != 0);
	}
}

GpuaggCudaStatus
device_pack_order(const DeviceColumn *column, int64_t nrows, int nulls_first, int64_t *codes,
				  int8_t *ranks, gpuagg_stream stream)
{
	order_kernel<<<grid_for(nrows), THREADS, 0, stream>>>(*column, nrows, nulls_first, codes,
														  ranks);
	CUDA_TRY_LAUNCH("order_kernel");
	return GPUAGG_CUDA_OK;
}
