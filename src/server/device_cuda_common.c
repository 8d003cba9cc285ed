/*
 * device_cuda_common.c
 *	  The base of the CUDA device layer: errors, numbers of devices, memory of
 *	  queries, columns as kernels take them.
 */
#include <stdio.h>
#include <string.h>

#include "server/device_cuda.h"

/* ---- errors ---- */

/*
 * Errors that concern one call leave the context as it was; after any other, all calls
 * fail until the process ends.
 */
static DeviceStatus
status_of(cudaError_t err)
{
	switch (err)
	{
		case cudaErrorMemoryAllocation:
			return DEVICE_NO_MEMORY;
		case cudaErrorInvalidValue:
		case cudaErrorInvalidConfiguration:
		case cudaErrorLaunchOutOfResources:
		case cudaErrorCooperativeLaunchTooLarge:
		case cudaErrorInvalidDeviceFunction:
		case cudaErrorNoKernelImageForDevice:
			/* the driver cannot make code of the PTX */
		case cudaErrorInvalidKernelImage:
		case cudaErrorInvalidPtx:
		case cudaErrorJitCompilerNotFound:
		case cudaErrorUnsupportedPtxVersion:
		case cudaErrorJitCompilationDisabled:
		case cudaErrorNotSupported:
			return DEVICE_UNSUPPORTED;
		default:
			return DEVICE_LOST;
	}
}

DeviceStatus
cuda_status(cudaError_t err, const char *call, DeviceError *error)
{
	snprintf(error->text, sizeof(error->text), "%s (%s) in %.100s", cudaGetErrorString(err),
			 cudaGetErrorName(err), call);

	/*
	 * The run time keeps a thread's last error, which the next launch would report as
	 * its own, even on another device.  Errors that stay with a context are reported again.
	 */
	cudaGetLastError();
	return status_of(err);
}

DeviceStatus
kernel_status(GpuaggCudaStatus status, const char *call, DeviceError *error)
{
	if (status == GPUAGG_CUDA_ERROR)
	{
		snprintf(error->text, sizeof(error->text), "%.250s", gpuagg_cuda_last_error());
		return status_of((cudaError_t) gpuagg_cuda_last_code());
	}
	snprintf(error->text, sizeof(error->text), "not supported by the GPU (%d from %.150s)",
			 (int) status, call);
	return DEVICE_UNSUPPORTED;
}

/* ---- devices ---- */

int cuda_ordinals[WIRE_MAX_DEVICES];

cudaError_t
cuda_select(int device)
{
	return cudaSetDevice(cuda_ordinals[device]);
}

/* ---- memory ---- */

DeviceStatus
device_allocate(int device, size_t bytes, cudaStream_t stream, void **at, DeviceError *error)
{
	bool yielded = false;

	*at = NULL;
	while (!budget_take(device, bytes))
		if (!store_yield(device, bytes))
			return device_say(error, DEVICE_NO_MEMORY, "gpuagg.device_memory_limit reached");
	for (;;)
	{
		cudaError_t err = cudaMallocAsync(at, bytes, stream);

		if (err == cudaSuccess)
			return DEVICE_OK;
		*at = NULL;
		/* once: if others have the memory, columns would be freed in vain */
		if (err == cudaErrorMemoryAllocation && !yielded && store_yield(device, bytes))
		{
			/* the error of this call must not be the next one's */
			cudaGetLastError();
			yielded = true;
			continue;
		}
		budget_give(device, bytes);
		return cuda_status(err, "cudaMallocAsync", error);
	}
}

/* Takes the bytes from the budget and allocates them, or does neither. */
static DeviceStatus
take_memory(Query *query, size_t bytes, DeviceMemory *memory, DeviceError *error)
{
	memory->at = NULL;
	memory->bytes = 0;
	DEVICE_CHECK(
		device_allocate(query->device, bytes > 0 ? bytes : 1, query->stream, &memory->at, error));
	memory->bytes = bytes > 0 ? bytes : 1;
	query->memory += memory->bytes;
	if (query->memory > query->memory_peak)
		query->memory_peak = query->memory;
	return DEVICE_OK;
}

void
query_release(Query *query, DeviceMemory *memory)
{
	if (memory->at == NULL)
		return;
	cudaFreeAsync(memory->at, query->stream);
	budget_give(query->device, memory->bytes);
	query->memory -= memory->bytes;
	memory->at = NULL;
	memory->bytes = 0;
}

DeviceStatus
query_reserve(Query *query, DeviceMemory *memory, size_t bytes, DeviceError *error)
{
	if (memory->at != NULL && memory->bytes >= bytes)
		return DEVICE_OK;
	query_release(query, memory);
	return take_memory(query, bytes, memory, error);
}

DeviceStatus
query_extend(Query *query, DeviceMemory *memory, size_t used, size_t bytes, DeviceError *error)
{
	DeviceMemory larger;

	if (memory->at != NULL && memory->bytes >= bytes)
		return DEVICE_OK;
	DEVICE_CHECK(take_memory(query, bytes, &larger, error));
	if (used > 0)
	{
		cudaError_t err =
			cudaMemcpyAsync(larger.at, memory->at, used, cudaMemcpyDeviceToDevice, query->stream);

		if (err != cudaSuccess)
		{
			query_release(query, &larger);
			return cuda_status(err, "copy to larger memory", error);
		}
	}
	query_release(query, memory);
	*memory = larger;
	return DEVICE_OK;
}

/* ---- columns and slots ---- */

bool
slot_is_sketch(const WireQuery *q, int s)
{
	return q->slots[s].bin_kind == WIRE_BIN_HLL;
}

size_t
slot_state_bytes(const WireQuery *q, int s)
{
	return (size_t) q->slots[s].width *
		(slot_is_sketch(q, s) ? 1 : gpuagg_monoids[q->slots[s].monoid].state_size);
}

void
batch_rows(const char *base, const WireBatch *batch, Rows *rows)
{
	memset(rows, 0, sizeof(*rows));
	rows->nrows = batch->nrows;
	rows->key_min = batch->key_min;
	rows->key_max = batch->key_max;
	for (uint32_t c = 0; c < batch->ncols; c++)
	{
		const WireColumn *col = &batch->cols[c];

		rows->cols[c].values = col->values == WIRE_NO_ARRAY ? NULL : base + col->values;
		rows->cols[c].validity =
			col->validity == WIRE_NO_ARRAY ? NULL : (const uint8_t *) base + col->validity;
		rows->cols[c].type = col->type;
	}
}

bool
may_have_nulls(const DeviceColumn *c)
{
	return c->validity != NULL || c->nullable;
}

GpuaggColumn
kernel_column(const DeviceColumn *c)
{
	static const GpuaggValueType types[WIRE_TYPES] = {
		GPUAGG_VALUE_I8,     GPUAGG_VALUE_I16,    GPUAGG_VALUE_I32,   GPUAGG_VALUE_I64,
		GPUAGG_VALUE_I128,   GPUAGG_VALUE_F32,    GPUAGG_VALUE_F64,   GPUAGG_VALUE_NATIVE,
		GPUAGG_VALUE_NATIVE, GPUAGG_VALUE_NATIVE, GPUAGG_VALUE_NATIVE};

	return (GpuaggColumn){c->values, c->validity, types[c->type], c->computed, c->operand};
}

bool
slot_is_ordered(const WireQuery *q, int s)
{
	return !gpuagg_monoids[q->slots[s].monoid].commutative;
}

bool
slot_is_late(const WireQuery *q, int s)
{
	return slot_is_ordered(q, s) || q->slots[s].input != WIRE_ROWS;
}
