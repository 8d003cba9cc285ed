/*
 * device_common.c
 *	  The base of the CUDA device layer: errors, device numbers, memory of queries, columns and
 * slots as kernels take them.
 */
#include <stdio.h>
#include <string.h>

#include "device_cuda/device_internal.h"

/* ---- errors ---- */

/*
 * Returns the status for a CUDA error.  Errors of a single call leave the context usable.  After
 * any other error all calls fail until the process ends.
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
			/* the driver cannot compile the PTX: */
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
	 * The runtime keeps a thread's last error, and the next launch would report it as its own, even
	 * on another device.  Errors that make a context unusable are reported again anyway.
	 */
	cudaGetLastError();
	return status_of(err);
}

DeviceStatus
kernel_status(GpuaggCudaStatus status, const char *call, DeviceError *error)
{
	if (status == GPUAGG_CUDA_OK)
		return DEVICE_OK;
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
			return device_fail(error, DEVICE_NO_MEMORY, "gpuagg.device_memory_limit reached");
	for (;;)
	{
		cudaError_t err = cudaMallocAsync(at, bytes, stream);

		if (err == cudaSuccess)
			return DEVICE_OK;
		*at = NULL;
		/* try once: if other processes have the memory, freeing columns does not help */
		if (err == cudaErrorMemoryAllocation && !yielded && store_yield(device, bytes))
		{
			/* clear the error, so that the next call does not report it */
			cudaGetLastError();
			yielded = true;
			continue;
		}
		budget_give(device, bytes);
		return cuda_status(err, "cudaMallocAsync", error);
	}
}

/* Takes the bytes from the budget and allocates them; if one fails, does neither. */
static DeviceStatus
take_memory(DeviceQuery *query, size_t bytes, DeviceMemory *memory, DeviceError *error)
{
	memory->at = NULL;
	memory->bytes = 0;
	DEVICE_CHECK(
		device_allocate(query->device, bytes > 0 ? bytes : 1, query->stream, &memory->at, error));
	memory->bytes = bytes > 0 ? bytes : 1;
	query->memory += memory->bytes;
	if (query->memory > query->stats.memory_peak)
		query->stats.memory_peak = query->memory;
	return DEVICE_OK;
}

void
memory_release(DeviceQuery *query, DeviceMemory *memory)
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
memory_reserve(DeviceQuery *query, DeviceMemory *memory, size_t bytes, DeviceError *error)
{
	if (memory->at != NULL && memory->bytes >= bytes)
		return DEVICE_OK;
	memory_release(query, memory);
	return take_memory(query, bytes, memory, error);
}

DeviceStatus
memory_grow(DeviceQuery *query, DeviceMemory *memory, size_t used, size_t bytes, DeviceError *error)
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
			memory_release(query, &larger);
			return cuda_status(err, "copy to larger memory", error);
		}
	}
	memory_release(query, memory);
	*memory = larger;
	return DEVICE_OK;
}

/*
 * Estimates may be wrong: the first allocation has room for at most so many times the rows of the
 * first batch.
 */
#define ESTIMATE_PER_ROW 64

int64_t
late_capacity(int64_t capacity, int64_t used, int64_t n, double est_rows)
{
	bool first = capacity == 0;
	double estimate = est_rows * 1.1;

	if (first)
		capacity = LATE_MIN;
	if (estimate > ESTIMATE_PER_ROW * (double) n)
		estimate = ESTIMATE_PER_ROW * (double) n;
	if (first && estimate > capacity && estimate < LATE_MAX / 2)
		capacity = (int64_t) estimate;
	while (capacity < used + n)
		capacity *= 2;
	/* the last step may stop at the limit instead of doubling */
	return capacity > LATE_MAX && used + n <= LATE_MAX ? LATE_MAX : capacity;
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

bool
key_has_nulls(const WireQuery *q, const Rows *rows, int k)
{
	return may_have_nulls(&rows->cols[q->keys[k].col]);
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

bool
slot_is_computed(const DeviceQuery *query, int s)
{
	const WireQuery *q = query->q;

	if (s < 0)
		return query->groups.states.row_counts.at != NULL;
	return q->slots[s].bin_kind == WIRE_BIN_NONE && !slot_is_late(q, s) &&
		query->groups.source[s] == SOURCE_NONE;
}

GpuaggSlot
kernel_slot(const DeviceQuery *query, const Rows *rows, int s)
{
	const WireSlot *slot = &query->q->slots[s];
	GpuaggSlot out = {.op = MONOID_COUNT, .states = query->groups.states.row_counts.at};

	if (s < 0)
		return out;
	out.op = (MonoidId) slot->monoid;
	out.states = query->groups.states.slot[s].at;
	if (slot->col[0] >= 0)
		out.x = kernel_column(&rows->cols[slot->col[0]]);
	if (slot->col[1] >= 0)
		out.y = kernel_column(&rows->cols[slot->col[1]]);
	if (slot->filter >= 0)
	{
		const DeviceColumn *filter = &rows->cols[slot->filter];

		out.filter = filter->values;
		out.filter_computed = filter->computed;
		out.filter_operand = filter->operand;
	}
	return out;
}
