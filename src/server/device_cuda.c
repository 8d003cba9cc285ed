/*
 * device_cuda.c
 *	  The CUDA device layer: devices, pinned memory, lanes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_cuda.h"

/* Server's device number to CUDA's. */
static int	ordinals[WIRE_MAX_DEVICES];

DeviceStatus
cuda_status(cudaError_t err, const char *call, DeviceError *error)
{
	snprintf(error->text, sizeof(error->text), "%s (%s) in %.100s", cudaGetErrorString(err),
			 cudaGetErrorName(err), call);
	if (err != cudaErrorMemoryAllocation)
		return DEVICE_LOST;
	/* running out of memory leaves the device as it was */
	cudaGetLastError();
	return DEVICE_NO_MEMORY;
}

DeviceStatus
kernel_status(GpuaggCudaStatus status, const char *call, DeviceError *error)
{
	if (status == GPUAGG_CUDA_ERROR)
	{
		snprintf(error->text, sizeof(error->text), "%.250s", gpuagg_cuda_last_error());
		return DEVICE_LOST;
	}
	snprintf(error->text, sizeof(error->text), "not supported by the GPU (%d from %.150s)",
			 (int) status, call);
	return DEVICE_UNSUPPORTED;
}

/* ---- start ---- */

/* Is device `ordinal` named in the list? */
static bool
is_listed(const char *list, int ordinal)
{
	if (strcmp(list, "all") == 0 || list[0] == '\0')
		return true;
	for (const char *at = list; *at != '\0';)
	{
		char	   *end;
		long		n = strtol(at, &end, 10);

		if (end != at && n == ordinal)
			return true;
		at = end == at ? at + 1 : end;
	}
	return false;
}

/* Makes the context, which takes most of the start's time, and reads the facts. */
static DeviceStatus
open_device(int ordinal, WireDevice *device, DeviceError *error)
{
	struct cudaDeviceProp prop;
	cudaMemPool_t pool;
	uint64_t	keep = UINT64_MAX;
	size_t		free_bytes,
				total;

	CUDA_CHECK(cudaSetDevice(ordinal));
	CUDA_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CUDA_CHECK(cudaFree(NULL));
	CUDA_CHECK(cudaGetDeviceProperties(&prop, ordinal));
	CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
	/* freed memory stays in the pool: giving it back costs a synchronization */
	CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, ordinal));
	CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	device->ordinal = ordinal;
	device->major = prop.major;
	device->minor = prop.minor;
	device->processors = prop.multiProcessorCount;
	device->threads = prop.multiProcessorCount * prop.maxThreadsPerMultiProcessor;
	device->memory = total;
	device->limit = free_bytes / 5 * 4;
	device->l2_bytes = prop.l2CacheSize;
	device->shared_bytes = prop.sharedMemPerBlockOptin;
	snprintf(device->name, sizeof(device->name), "%.127s", prop.name);
	return DEVICE_OK;
}

static DeviceStatus
cuda_start(const char *list, WireStatus *status, DeviceError *error)
{
	void	   *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int			count = 0;
	cudaError_t err;

	if (driver == NULL)
		return device_say(error, DEVICE_UNSUPPORTED, "libcuda.so.1 not found");
	/* kernels are loaded now, not in somebody's first query */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	err = cudaGetDeviceCount(&count);
	if (err == cudaErrorNoDevice || (err == cudaSuccess && count == 0))
		return device_say(error, DEVICE_UNSUPPORTED, "no CUDA device found");
	if (err != cudaSuccess)
	{
		cuda_status(err, "cudaGetDeviceCount", error);
		return DEVICE_UNSUPPORTED;
	}
	CUDA_CHECK(cudaDriverGetVersion(&status->driver));
	for (int ordinal = 0; ordinal < count && status->ndevices < WIRE_MAX_DEVICES; ordinal++)
	{
		if (!is_listed(list, ordinal))
			continue;
		DEVICE_CHECK(open_device(ordinal, &status->devices[status->ndevices], error));
		ordinals[status->ndevices++] = ordinal;
	}
	if (status->ndevices == 0)
		return device_say(error, DEVICE_UNSUPPORTED, "gpuagg.devices names no device");
	return DEVICE_OK;
}

/* ---- memory ---- */

static DeviceStatus
cuda_pin(void *memory, size_t bytes, DeviceError *error)
{
	/* of a device in use: another one would get a context for it */
	CUDA_CHECK(cudaSetDevice(ordinals[0]));
	CUDA_CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
	return DEVICE_OK;
}

static void
cuda_unpin(void *memory)
{
	cudaSetDevice(ordinals[0]);
	cudaHostUnregister(memory);
}

DeviceStatus
query_alloc(Query *query, size_t bytes, void **at, DeviceError *error)
{
	cudaError_t err;

	*at = NULL;
	if (!budget_take(query->device, bytes))
		return device_say(error, DEVICE_NO_MEMORY, "gpuagg.device_memory_limit reached");
	err = cudaMallocAsync(at, bytes > 0 ? bytes : 1, query->stream);
	if (err != cudaSuccess)
	{
		*at = NULL;
		budget_give(query->device, bytes);
		return cuda_status(err, "cudaMallocAsync", error);
	}
	query->memory += bytes;
	if (query->memory > query->memory_peak)
		query->memory_peak = query->memory;
	return DEVICE_OK;
}

void
query_free(Query *query, void *at, size_t bytes)
{
	if (at == NULL)
		return;
	cudaFreeAsync(at, query->stream);
	budget_give(query->device, bytes);
	query->memory -= bytes;
}

void
query_release(Query *query, DeviceMemory *memory)
{
	query_free(query, memory->at, memory->bytes);
	memory->at = NULL;
	memory->bytes = 0;
}

DeviceStatus
query_reserve(Query *query, DeviceMemory *memory, size_t bytes, DeviceError *error)
{
	if (memory->at != NULL && memory->bytes >= bytes)
		return DEVICE_OK;
	query_release(query, memory);
	DEVICE_CHECK(query_alloc(query, bytes, &memory->at, error));
	memory->bytes = bytes;
	return DEVICE_OK;
}

/* ---- lanes ---- */

/* Streams and events take the driver's lock to make: lanes keep theirs for the next session. */
#define IDLE_LANES 64

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static Lane *idle_lanes;
static int	nidle;

static void
destroy_event(cudaEvent_t event)
{
	if (event)
		cudaEventDestroy(event);
}

static void
destroy_lane(Lane *lane)
{
	for (int b = 0; b < ARENA_BUFFERS; b++)
	{
		destroy_event(lane->copy_began[b]);
		destroy_event(lane->copied[b]);
		destroy_event(lane->reduce_began[b]);
		destroy_event(lane->reduced[b]);
	}
	if (lane->stream)
		cudaStreamDestroy(lane->stream);
	free(lane);
}

static DeviceStatus
make_lane(Lane *lane, DeviceError *error)
{
	CUDA_CHECK(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
	for (int b = 0; b < ARENA_BUFFERS; b++)
	{
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->copy_began[b], cudaEventDefault));
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->copied[b], cudaEventBlockingSync));
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->reduce_began[b], cudaEventDefault));
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->reduced[b], cudaEventBlockingSync));
	}
	return DEVICE_OK;
}

/* An idle lane of the device, or NULL. */
static Lane *
take_idle(int device)
{
	Lane	  **at = &idle_lanes;
	Lane	   *lane;

	pthread_mutex_lock(&idle_lock);
	while (*at && (*at)->device != device)
		at = &(*at)->next;
	lane = *at;
	if (lane)
	{
		*at = lane->next;
		nidle--;
	}
	pthread_mutex_unlock(&idle_lock);
	return lane;
}

static bool
keep_idle(Lane *lane)
{
	bool		room;

	pthread_mutex_lock(&idle_lock);
	room = nidle < IDLE_LANES;
	if (room)
	{
		lane->next = idle_lanes;
		idle_lanes = lane;
		nidle++;
	}
	pthread_mutex_unlock(&idle_lock);
	return room;
}

static void
cuda_lane_close(Lane *lane)
{
	bool		whole = lane->stream != NULL;

	cudaSetDevice(ordinals[lane->device]);
	/* nothing that reads the arena may go on, and what reads the buffers before they are freed */
	if (lane->stream)
		cudaStreamSynchronize(lane->stream);
	for (int b = 0; b < ARENA_BUFFERS; b++)
	{
		whole = whole && lane->reduced[b];
		if (lane->timing[b])
			cudaStreamWaitEvent(lane->stream, lane->reduced[b], 0);
		lane->timing[b] = false;
	}
	if (lane->memory)
	{
		cudaFreeAsync(lane->memory, lane->stream);
		budget_give(lane->device, lane->buffers * lane->buffer_bytes);
		lane->memory = NULL;
	}
	if (!whole || !keep_idle(lane))
		destroy_lane(lane);
}

static DeviceStatus
lane_fill(Lane *lane, DeviceError *error)
{
	size_t		bytes = lane->buffers * lane->buffer_bytes;
	cudaError_t err;

	if (lane->stream == NULL)
		DEVICE_CHECK(make_lane(lane, error));
	if (!budget_take(lane->device, bytes))
		return device_say(error, DEVICE_NO_MEMORY, "gpuagg.device_memory_limit reached");
	err = cudaMallocAsync((void **) &lane->memory, bytes, lane->stream);
	if (err != cudaSuccess)
	{
		lane->memory = NULL;
		budget_give(lane->device, bytes);
		return cuda_status(err, "cudaMallocAsync", error);
	}
	return DEVICE_OK;
}

static DeviceStatus
cuda_lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes, int buffers,
			   DeviceError *error)
{
	Lane	   *l = take_idle(device);
	DeviceStatus status;

	CUDA_CHECK(cudaSetDevice(ordinals[device]));
	if (l == NULL)
		l = calloc(1, sizeof(*l));
	if (l == NULL)
		return device_say(error, DEVICE_NO_MEMORY, "out of memory");
	l->device = device;
	l->arena = arena;
	l->buffer_bytes = buffer_bytes;
	l->buffers = buffers;
	l->kernel_ms = 0;
	status = lane_fill(l, error);
	if (status != DEVICE_OK)
	{
		cuda_lane_close(l);
		return status;
	}
	*lane = l;
	return DEVICE_OK;
}

static DeviceStatus
copy_array(Lane *lane, size_t at, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cudaMemcpyAsync(lane->memory + at, lane->arena + at, bytes,
							   cudaMemcpyHostToDevice, lane->stream));
	return DEVICE_OK;
}

/* Array by array: a batch that does not fill its buffer leaves gaps. */
static DeviceStatus
cuda_copy(Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error)
{
	int			b = batch->buffer;
	size_t		base = b * lane->buffer_bytes;

	CUDA_CHECK(cudaSetDevice(ordinals[lane->device]));
	CUDA_CHECK(cudaStreamWaitEvent(lane->stream, lane->reduced[b], 0));
	CUDA_CHECK(cudaEventRecord(lane->copy_began[b], lane->stream));
	*bytes = 0;
	for (uint32_t c = 0; c < batch->ncols; c++)
	{
		const WireColumn *col = &batch->cols[c];
		size_t		values = (size_t) batch->nrows * wire_width(col->type);
		size_t		validity = wire_bitmap_bytes(batch->nrows);

		if (col->values != WIRE_NO_ARRAY)
		{
			DEVICE_CHECK(copy_array(lane, base + col->values, values, error));
			*bytes += values;
		}
		if (col->validity != WIRE_NO_ARRAY)
		{
			DEVICE_CHECK(copy_array(lane, base + col->validity, validity, error));
			*bytes += validity;
		}
	}
	CUDA_CHECK(cudaEventRecord(lane->copied[b], lane->stream));
	return DEVICE_OK;
}

static DeviceStatus
cuda_copy_wait(Lane *lane, int buffer, double *ms, DeviceError *error)
{
	float		elapsed;

	CUDA_CHECK(cudaEventSynchronize(lane->copied[buffer]));
	CUDA_CHECK(cudaEventElapsedTime(&elapsed, lane->copy_began[buffer], lane->copied[buffer]));
	*ms = elapsed;
	return DEVICE_OK;
}

DeviceStatus
lane_add_timing(Lane *lane, int buffer, DeviceError *error)
{
	float		ms;

	if (!lane->timing[buffer])
		return DEVICE_OK;
	lane->timing[buffer] = false;
	CUDA_CHECK(cudaEventSynchronize(lane->reduced[buffer]));
	CUDA_CHECK(cudaEventElapsedTime(&ms, lane->reduce_began[buffer], lane->reduced[buffer]));
	lane->kernel_ms += ms;
	return DEVICE_OK;
}

static DeviceStatus
cuda_lane_settle(Lane *lane, double *kernel_ms, DeviceError *error)
{
	CUDA_CHECK(cudaSetDevice(ordinals[lane->device]));
	for (int b = 0; b < lane->buffers; b++)
		DEVICE_CHECK(lane_add_timing(lane, b, error));
	*kernel_ms = lane->kernel_ms;
	lane->kernel_ms = 0;
	return DEVICE_OK;
}

/* ---- queries, on the right device whatever thread calls ---- */

static DeviceStatus
on_device(int device, DeviceError *error)
{
	CUDA_CHECK(cudaSetDevice(ordinals[device]));
	return DEVICE_OK;
}

static DeviceStatus
query_open(Query **query, int device, const WireQuery *q, const double *thresholds,
		   DeviceError *error)
{
	DEVICE_CHECK(on_device(device, error));
	return cuda_query_open(query, device, q, thresholds, error);
}

static void
query_close(Query *query)
{
	cudaSetDevice(ordinals[query->device]);
	cuda_query_close(query);
}

static DeviceStatus
query_reduce(Query *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_reduce(query, lane, batch, error);
}

static DeviceStatus
query_finish(Query *query, WireFinished *result, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_finish(query, result, error);
}

static DeviceStatus
query_fetch(Query *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_fetch(query, lane, out, error);
}

static DeviceStatus
query_reset(Query *query, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_reset(query, error);
}

const DeviceOps device_ops = {
	.start = cuda_start,
	.pin = cuda_pin,
	.unpin = cuda_unpin,
	.lane_open = cuda_lane_open,
	.lane_close = cuda_lane_close,
	.copy = cuda_copy,
	.copy_wait = cuda_copy_wait,
	.lane_settle = cuda_lane_settle,
	.query_open = query_open,
	.query_close = query_close,
	.reduce = query_reduce,
	.finish = query_finish,
	.fetch = query_fetch,
	.reset = query_reset,
};
