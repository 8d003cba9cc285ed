/*
 * device.c
 *	  The table of functions of the CUDA device layer: opening devices, pinned host memory.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_list.h"
#include "device_cuda/device_internal.h"

/* ---- start ---- */

/* Fills the properties that can be read without a context. */
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
 * Checks that there are kernels for the device.  If there is only PTX for it, the driver compiles
 * them at every start of the server, unless they are in its cache; this is noted.
 */
static DeviceStatus
probe_kernels(WireDevice *device, DeviceError *error)
{
	int capability = 10 * device->major + device->minor;
	int binary, ptx;
	DeviceStatus status = DEVICE_OK;
	GpuaggCudaStatus found = device_kernel_versions(&binary, &ptx);

	if (found != GPUAGG_CUDA_OK)
		status = kernel_status(found, "device_kernel_versions", error);
	if (status == DEVICE_OK && binary > ptx)
		snprintf(device->note, sizeof(device->note),
				 "kernels for compute capability %d.%d are compiled at each start; build with "
				 "CUDA_ARCHS=\"... %d\"",
				 device->major, device->minor, capability);
	return status;
}

/* Creates the context, which takes most of the time of the start, and reads further properties. */
static DeviceStatus
open_device(WireDevice *device, DeviceError *error)
{
	cudaMemPool_t pool;
	uint64_t keep = UINT64_MAX;
	size_t free_bytes, total;

	CUDA_CHECK(cudaSetDevice(device->ordinal));
	CUDA_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CUDA_CHECK(cudaFree(NULL));
	DEVICE_CHECK(probe_kernels(device, error));
	CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
	/* keep freed memory in the pool: releasing it to the system synchronizes the device */
	CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device->ordinal));
	CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	device->memory = total;
	device->limit = free_bytes / 5 * 4;
	return DEVICE_OK;
}

/*
 * Opens a device, or notes why it is not used; the server works without it.  For a device that is
 * too old no context is created, because loading the kernels would fail.
 */
static DeviceStatus
try_device(int ordinal, WireStatus *status)
{
	WireDevice device = {0};
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
		cuda_ordinals[status->ndevices] = ordinal;
		status->devices[status->ndevices++] = device;
		return DEVICE_OK;
	}
	snprintf(device.note, sizeof(device.note), "not used: %.180s", error.text);
	if (status->nskipped < WIRE_MAX_DEVICES)
		status->skipped[status->nskipped++] = device;
	return opened;
}

/* Adds a device that gpuagg.devices names, but that does not exist, to the skipped ones. */
static void
note_missing(WireStatus *status, int ordinal, const char *text)
{
	WireDevice *device = &status->skipped[status->nskipped];

	if (status->nskipped == WIRE_MAX_DEVICES)
		return;
	status->nskipped++;
	memset(device, 0, sizeof(*device));
	device->ordinal = ordinal;
	snprintf(device->name, sizeof(device->name), "unknown");
	snprintf(device->note, sizeof(device->note), "not used: %.180s", text);
}

/* Adds all GPUs that gpuagg.devices names, but CUDA did not find, to the skipped ones. */
static void
note_all_missing(const DeviceList *list, int count, WireStatus *status)
{
	char text[128];

	for (int i = 0; list->kind == DEVICES_NUMBERS && i < list->n; i++)
		if (list->numbers[i] >= count)
			note_missing(status, list->numbers[i],
						 "gpuagg.devices names it, but there is no GPU of this number");
	if (list->kind == DEVICES_IDS && count < list->n)
	{
		snprintf(text, sizeof(text),
				 "gpuagg.devices names %d GPUs, of which CUDA finds the first %d", list->n, count);
		note_missing(status, count, text);
	}
}

static void
cuda_build(char *text, size_t size)
{
	snprintf(text, size, "CUDA %d.%d, compute capabilities %s", CUDART_VERSION / 1000,
			 CUDART_VERSION % 1000 / 10, GPUAGG_CUDA_ARCHS);
}

static DeviceStatus
cuda_start(const char *names, WireStatus *status, DeviceError *error)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	DeviceList list;
	int count = 0;
	cudaError_t err;
	DeviceStatus opened, worst = DEVICE_OK;

	if (driver == NULL)
		return device_fail(error, DEVICE_UNSUPPORTED, "libcuda.so.1 not found");
	if (!device_list_read(names, &list, error->text, sizeof(error->text)))
		return DEVICE_UNSUPPORTED;
	/* CUDA itself resolves UUIDs and their prefixes */
	if (list.kind == DEVICES_IDS)
		setenv("CUDA_VISIBLE_DEVICES", list.ids, 1);
	/* load kernels now, not in the first query */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	err = cudaGetDeviceCount(&count);
	if (err == cudaErrorNoDevice || (err == cudaSuccess && count == 0))
		return device_fail(error, DEVICE_UNSUPPORTED,
						   list.kind == DEVICES_IDS ?
							   "no CUDA device found that gpuagg.devices names" :
							   "no CUDA device found");
	if (err != cudaSuccess)
	{
		cuda_status(err, "cudaGetDeviceCount", error);
		return DEVICE_UNSUPPORTED;
	}
	CUDA_CHECK(cudaDriverGetVersion(&status->driver));
	for (int ordinal = 0; ordinal < count && status->ndevices < WIRE_MAX_DEVICES; ordinal++)
	{
		if (!device_list_has(&list, ordinal))
			continue;
		opened = try_device(ordinal, status);
		worst = opened > worst ? opened : worst;
	}
	if (status->ndevices == 0 && status->nskipped == 0)
		return device_fail(error, DEVICE_UNSUPPORTED, "gpuagg.devices names no device");
	note_all_missing(&list, count, status);
	if (status->ndevices == 0)
	{
		/* the supervisor tries again, unless the worst status says that no start can succeed */
		snprintf(error->text, sizeof(error->text), "%.60s: %.180s", status->skipped[0].name,
				 status->skipped[0].note);
		return worst;
	}
	DEVICE_CHECK(cuda_absorb_start((int) status->ndevices, error));
	return cuda_store_start((int) status->ndevices, error);
}

/* ---- memory for other processes ---- */

/*
 * The pool keeps what queries have freed, because allocating from the system and freeing to it
 * synchronize the device.  It is trimmed to the used memory and 1/64 of the device's memory if no
 * query runs, or if the pool exceeds the limit, which other processes may have lowered.
 *
 * The size of the pool is read after the free memory: memory that the pool takes in between must
 * not look like another process's memory.
 */
static bool
cuda_available(int device, bool idle, uint64_t *bytes)
{
	const WireDevice *d = budget_device(device);
	cudaMemPool_t pool;
	uint64_t used, reserved;
	size_t free_bytes, total;

	if (cuda_select(device) != cudaSuccess ||
		cudaDeviceGetDefaultMemPool(&pool, cuda_ordinals[device]) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) !=
			cudaSuccess ||
		((idle || reserved > d->limit) &&
		 cudaMemPoolTrimTo(pool, used + d->memory / 64) != cudaSuccess) ||
		cudaMemGetInfo(&free_bytes, &total) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess)
	{
		/* clear the error, so that the next call does not report it */
		cudaGetLastError();
		return false;
	}
	*bytes = free_bytes + reserved;
	return true;
}

/* ---- memory shared with clients ---- */

static DeviceStatus
cuda_pin(void *memory, size_t bytes, DeviceError *error)
{
	/* select a device of the server: otherwise this creates a context on device 0 */
	CUDA_CHECK(cuda_select(0));
	CUDA_CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
	return DEVICE_OK;
}

static void
cuda_unpin(void *memory)
{
	cuda_select(0);
	cudaHostUnregister(memory);
}

const DeviceOps device_ops = {
	.build = cuda_build,
	.start = cuda_start,
	.available = cuda_available,
	.pin = cuda_pin,
	.unpin = cuda_unpin,
	.lane_open = cuda_lane_open,
	.lane_close = cuda_lane_close,
	.copy = cuda_copy,
	.copy_wait = cuda_copy_wait,
	.lane_settle = cuda_lane_settle,
	.query_open = cuda_query_open,
	.query_close = cuda_query_close,
	.reduce = cuda_reduce,
	.resident = cuda_resident,
	.absorb = cuda_absorb,
	.finish = cuda_finish,
	.fetch = cuda_fetch,
	.pick = cuda_pick,
	.reset = cuda_reset,
};
