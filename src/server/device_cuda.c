/*
 * device_cuda.c
 *	  The CUDA device layer: devices, pinned memory, the table of functions.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/device_cuda.h"

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

/* Facts that need no context. */
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
 * Are there kernels for this device?  If there is only PTX for it, the driver compiles
 * them at every start of the server, unless its cache has them.
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
	/* keep freed memory in the pool: releasing it to the system synchronizes the device */
	CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device->ordinal));
	CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	device->memory = total;
	device->limit = free_bytes / 5 * 4;
	return DEVICE_OK;
}

/*
 * Opens a device, or notes why it is not used; the others serve without it.
 * On an old one no context is made, as that would fail to load the kernels.
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
		cuda_ordinals[status->ndevices] = ordinal;
		status->devices[status->ndevices++] = device;
		return DEVICE_OK;
	}
	snprintf(device.note, sizeof(device.note), "not used: %.180s", error.text);
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
	/* kernels are loaded now, not in the first query */
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
		/* the worst status: the supervisor tries again unless no start can succeed */
		snprintf(error->text, sizeof(error->text), "%.60s: %.180s", status->skipped[0].name,
				 status->skipped[0].note);
		return worst;
	}
	if (status->ndevices == 0)
		return device_say(error, DEVICE_UNSUPPORTED, "gpuagg.devices names no device");
	return cuda_store_start((int) status->ndevices, error);
}

/* ---- memory shared with clients ---- */

static DeviceStatus
cuda_pin(void *memory, size_t bytes, DeviceError *error)
{
	/* on a device in use: the call would make a context on another one */
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
	.start = cuda_start,
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
	.store = cuda_store,
	.table_device = store_device,
	.resident = cuda_resident,
	.finish = cuda_finish,
	.fetch = cuda_fetch,
	.reset = cuda_reset,
};
