/*
 * device_cuda.c
 *	  The CUDA device layer: devices, pinned memory, lanes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/device_cuda.h"

/* Server's device number to CUDA's. */
static int	ordinals[WIRE_MAX_DEVICES];

/*
 * What an error means for those who go on.  Errors that concern one call leave
 * the context as it was; all others stay with it until the process ends.
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
	 * The run time keeps a thread's last error, which the next launch would take for
	 * its own, be it on another device.  What stays with a context comes back by itself.
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

/* Facts that are known without a context. */
static DeviceStatus
describe_device(int ordinal, WireDevice *device, DeviceError *error)
{
	struct cudaDeviceProp prop;

	CUDA_CHECK(cudaGetDeviceProperties(&prop, ordinal));
	device->ordinal = ordinal;
	device->major = prop.major;
	device->minor = prop.minor;
	device->processors = prop.multiProcessorCount;
	device->threads = prop.multiProcessorCount * prop.maxThreadsPerMultiProcessor;
	device->memory = prop.totalGlobalMem;
	device->l2_bytes = prop.l2CacheSize;
	device->shared_bytes = prop.sharedMemPerBlockOptin;
	snprintf(device->name, sizeof(device->name), "%.127s", prop.name);
	return DEVICE_OK;
}

/*
 * Are there kernels for this device?  If they are only there as PTX, the driver
 * compiles them whenever the server starts, unless its cache has them.
 */
static DeviceStatus
probe_kernels(WireDevice *device, DeviceError *error)
{
	int			capability = 10 * device->major + device->minor;
	int			binary,
				ptx;
	DeviceStatus status = DEVICE_OK;
	GpuaggCudaStatus found = device_kernel_versions(&binary, &ptx);

	if (found != GPUAGG_CUDA_OK)
		status = kernel_status(found, "device_kernel_versions", error);
	if (status == DEVICE_OK && binary > ptx)
		snprintf(device->note, sizeof(device->note),
				 "kernels for compute capability %d.%d are compiled at each start; build with CUDA_ARCHS=\"... %d\"",
				 device->major, device->minor, capability);
	return status;
}

/* Makes the context, which takes most of the start's time, and reads the facts. */
static DeviceStatus
open_device(WireDevice *device, DeviceError *error)
{
	cudaMemPool_t pool;
	uint64_t	keep = UINT64_MAX;
	size_t		free_bytes,
				total;

	CUDA_CHECK(cudaSetDevice(device->ordinal));
	CUDA_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CUDA_CHECK(cudaFree(NULL));
	DEVICE_CHECK(probe_kernels(device, error));
	CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
	/* freed memory stays in the pool: giving it back costs a synchronization */
	CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device->ordinal));
	CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	device->memory = total;
	device->limit = free_bytes / 5 * 4;
	return DEVICE_OK;
}

/*
 * Opens a device, or notes why it is left alone: the others serve without it.
 * Of an old one no context is made, which would load kernels that it does not have.
 */
static DeviceStatus
try_device(int ordinal, WireStatus *status)
{
	WireDevice	device = {0};
	DeviceError error = {""};
	DeviceStatus opened;

	device.ordinal = ordinal;
	opened = describe_device(ordinal, &device, &error);
	if (opened == DEVICE_OK && 10 * device.major + device.minor < GPUAGG_LEAST_CAPABILITY)
	{
		opened = DEVICE_UNSUPPORTED;
		snprintf(error.text, sizeof(error.text),
				 "compute capability %d.%d is below %d.%d, the least that gpuagg was built for",
				 device.major, device.minor, GPUAGG_LEAST_CAPABILITY / 10,
				 GPUAGG_LEAST_CAPABILITY % 10);
	}
	if (opened == DEVICE_OK)
		opened = open_device(&device, &error);
	if (opened == DEVICE_OK)
	{
		if (device.note[0] != '\0')
			server_log("GPU %d (%s): %s", ordinal, device.name, device.note);
		ordinals[status->ndevices] = ordinal;
		status->devices[status->ndevices++] = device;
		return DEVICE_OK;
	}
	snprintf(device.note, sizeof(device.note), "not used: %.180s", error.text);
	server_log("GPU %d (%s): %s", ordinal, device.name, device.note);
	if (status->nskipped < WIRE_MAX_DEVICES)
		status->skipped[status->nskipped++] = device;
	return opened;
}

static DeviceStatus
cuda_start(const char *list, WireStatus *status, DeviceError *error)
{
	void	   *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int			count = 0;
	cudaError_t err;
	DeviceStatus opened,
				worst = DEVICE_OK;

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
		opened = try_device(ordinal, status);
		worst = opened > worst ? opened : worst;
	}
	if (status->ndevices == 0 && status->nskipped > 0)
	{
		/* what is not for good may be better at the next start */
		snprintf(error->text, sizeof(error->text), "%.60s: %.180s", status->skipped[0].name,
				 status->skipped[0].note);
		return worst;
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

/* Memory and its account, or neither. */
static DeviceStatus
take_memory(Query *query, size_t bytes, DeviceMemory *memory, DeviceError *error)
{
	cudaError_t err;

	memory->at = NULL;
	memory->bytes = 0;
	if (!budget_take(query->device, bytes))
		return device_say(error, DEVICE_NO_MEMORY, "gpuagg.device_memory_limit reached");
	err = cudaMallocAsync(&memory->at, bytes > 0 ? bytes : 1, query->stream);
	if (err != cudaSuccess)
	{
		memory->at = NULL;
		budget_give(query->device, bytes);
		return cuda_status(err, "cudaMallocAsync", error);
	}
	memory->bytes = bytes;
	query->memory += bytes;
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
		cudaError_t err = cudaMemcpyAsync(larger.at, memory->at, used, cudaMemcpyDeviceToDevice,
										  query->stream);

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
	Lane	   *l;
	DeviceStatus status;

	CUDA_CHECK(cudaSetDevice(ordinals[device]));
	l = take_idle(device);
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
device_query_open(Query **query, int device, const WireQuery *q, const double *thresholds,
				  DeviceError *error)
{
	DEVICE_CHECK(on_device(device, error));
	return cuda_query_open(query, device, q, thresholds, error);
}

static void
device_query_close(Query *query)
{
	cudaSetDevice(ordinals[query->device]);
	cuda_query_close(query);
}

static DeviceStatus
device_reduce(Query *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_reduce(query, lane, batch, error);
}

static DeviceStatus
device_finish(Query *query, WireFinished *result, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_finish(query, result, error);
}

static DeviceStatus
device_fetch(Query *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	DEVICE_CHECK(on_device(query->device, error));
	return cuda_fetch(query, lane, out, error);
}

static DeviceStatus
device_reset(Query *query, DeviceError *error)
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
	.query_open = device_query_open,
	.query_close = device_query_close,
	.reduce = device_reduce,
	.finish = device_finish,
	.fetch = device_fetch,
	.reset = device_reset,
};
