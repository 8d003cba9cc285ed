/*
 * runtime_device.cpp
 *	  The emulated devices, errors, streams and events.
 *
 *	EMULATOR_DEVICES			how many (default 1, up to 8)
 *	EMULATOR_MULTIPROCESSORS	of each (default 4)
 *	EMULATOR_MEMORY_MB			of each (default 4096)
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <set>

#include "runtime.h"

#define L2_BYTES (50 << 20)

struct CUevent_st
{
	int			device;
	bool		timed,
				recorded;
	struct timespec at;
};

static thread_local int current;
static thread_local cudaError_t last_error = cudaSuccess;

/* Why a device is broken; kept for good, as callers keep the pointer. */
static std::string broken_text;

/* Streams and events that live. */
static std::set<const void *> &
living()
{
	static std::set<const void *> all;

	return all;
}

std::recursive_mutex &
runtime_lock()
{
	static std::recursive_mutex lock;

	return lock;
}

/* ---- devices ---- */

static long
setting(const char *name, long usual, long least, long most)
{
	const char *text = getenv(name);
	char	   *end;
	long		value;

	if (text == nullptr)
		return usual;
	value = strtol(text, &end, 10);
	if (*text == '\0' || *end != '\0' || value < least || value > most)
	{
		runtime_say("%s=%s is not a number from %ld to %ld", name, text, least, most);
		exit(2);
	}
	return value;
}

static RuntimeDevice *
devices(int *count)
{
	static RuntimeDevice all[RUNTIME_MAX_DEVICES];
	static int	n = -1;

	if (n < 0)
	{
		n = setting("EMULATOR_DEVICES", 1, 0, RUNTIME_MAX_DEVICES);
		for (int i = 0; i < n; i++)
		{
			all[i].number = i;
			all[i].memory = (size_t) setting("EMULATOR_MEMORY_MB", 4096, 1, 1 << 20) << 20;
			all[i].multiprocessors = setting("EMULATOR_MULTIPROCESSORS", 4, 1, 1024);
		}
	}
	if (count)
		*count = n;
	return all;
}

int
runtime_devices()
{
	int			n;

	devices(&n);
	return n;
}

RuntimeDevice &
runtime_device(int number)
{
	return devices(nullptr)[number];
}

RuntimeDevice &
runtime_current()
{
	return runtime_device(current);
}

cudaError_t
cudaGetDeviceCount(int *count)
{
	std::lock_guard<std::recursive_mutex> guard(runtime_lock());

	*count = runtime_devices();
	return runtime_note(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t
cudaGetDevice(int *number)
{
	std::lock_guard<std::recursive_mutex> guard(runtime_lock());

	*number = current;
	return runtime_note(runtime_devices() > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t
cudaSetDevice(int number)
{
	std::lock_guard<std::recursive_mutex> guard(runtime_lock());

	if (runtime_devices() == 0)
		return runtime_note(cudaErrorNoDevice);
	if (number < 0 || number >= runtime_devices())
		return runtime_note(cudaErrorInvalidDevice);
	current = number;
	return runtime_note(runtime_current().broken);
}

cudaError_t
cudaSetDeviceFlags(unsigned)
{
	return runtime_call([](RuntimeDevice &) { return cudaSuccess; });
}

cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *prop, int number)
{
	return runtime_call([&](RuntimeDevice &) {
		if (number < 0 || number >= runtime_devices())
			return cudaErrorInvalidDevice;

		const RuntimeDevice &device = runtime_device(number);

		memset(prop, 0, sizeof(*prop));
		snprintf(prop->name, sizeof(prop->name), "emulator of compute capability 9.0");
		prop->major = 9;
		prop->totalGlobalMem = device.memory;
		prop->multiProcessorCount = device.multiprocessors;
		prop->warpSize = 32;
		prop->maxThreadsPerBlock = THREADS_PER_BLOCK;
		prop->maxThreadsPerMultiProcessor = THREADS_PER_MULTIPROCESSOR;
		prop->maxBlocksPerMultiProcessor = BLOCKS_PER_MULTIPROCESSOR;
		prop->sharedMemPerBlock = SHARED_PER_BLOCK_DEFAULT;
		prop->sharedMemPerBlockOptin = SHARED_PER_BLOCK;
		prop->sharedMemPerMultiprocessor = SHARED_PER_MULTIPROCESSOR;
		prop->reservedSharedMemPerBlock = SHARED_RESERVED;
		prop->l2CacheSize = L2_BYTES;
		prop->cooperativeLaunch = prop->clusterLaunch = prop->memoryPoolsSupported = 1;
		return cudaSuccess;
	});
}

static bool
attribute(const RuntimeDevice &device, cudaDeviceAttr what, int *value)
{
	switch (what)
	{
		case cudaDevAttrMultiProcessorCount:
			*value = device.multiprocessors;
			return true;
		case cudaDevAttrComputeCapabilityMajor:
			*value = 9;
			return true;
		case cudaDevAttrComputeCapabilityMinor:
			*value = 0;
			return true;
		case cudaDevAttrL2CacheSize:
			*value = L2_BYTES;
			return true;
		case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
			*value = SHARED_PER_MULTIPROCESSOR;
			return true;
		case cudaDevAttrMaxSharedMemoryPerBlock:
			*value = SHARED_PER_BLOCK_DEFAULT;
			return true;
		case cudaDevAttrMaxSharedMemoryPerBlockOptin:
			*value = SHARED_PER_BLOCK;
			return true;
		case cudaDevAttrReservedSharedMemoryPerBlock:
			*value = SHARED_RESERVED;
			return true;
		case cudaDevAttrMaxThreadsPerMultiProcessor:
			*value = THREADS_PER_MULTIPROCESSOR;
			return true;
		case cudaDevAttrMaxThreadsPerBlock:
			*value = THREADS_PER_BLOCK;
			return true;
		case cudaDevAttrMaxBlocksPerMultiprocessor:
			*value = BLOCKS_PER_MULTIPROCESSOR;
			return true;
		case cudaDevAttrMaxGridDimX:
			*value = 0x7fffffff;
			return true;
		case cudaDevAttrMaxGridDimY:
			*value = 65535;
			return true;
		case cudaDevAttrWarpSize:
			*value = 32;
			return true;
		case cudaDevAttrCooperativeLaunch:
		case cudaDevAttrClusterLaunch:
		case cudaDevAttrMemoryPoolsSupported:
			*value = 1;
			return true;
		default:
			runtime_say("device attribute %d is not known", (int) what);
			return false;
	}
}

cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int number)
{
	return runtime_call([&](RuntimeDevice &) {
		if (number < 0 || number >= runtime_devices())
			return cudaErrorInvalidDevice;
		return attribute(runtime_device(number), what, value) ? cudaSuccess : cudaErrorInvalidValue;
	});
}

/* The server asks for the driver before it calls anything of CUDA's; here is none. */
extern "C" void *
dlopen(const char *name, int flags) noexcept
{
	static auto	real = (void *(*) (const char *, int)) dlsym(RTLD_NEXT, "dlopen");

	return real(name && strcmp(name, "libcuda.so.1") == 0 ? nullptr : name, flags);
}

/* ---- errors ---- */

void
runtime_say(const char *format, ...)
{
	va_list		args;

	fprintf(stderr, "emulator: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
}

cudaError_t
runtime_note(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

cudaError_t
runtime_break(RuntimeDevice &device, const std::string &text)
{
	runtime_say("%s", text.c_str());
	if (broken_text.empty())
		broken_text = "an illegal memory access was encountered: " + text;
	return device.broken = cudaErrorIllegalAddress;
}

cudaError_t
cudaPeekAtLastError()
{
	std::lock_guard<std::recursive_mutex> guard(runtime_lock());

	if (runtime_devices() > 0 && runtime_current().broken != cudaSuccess)
		last_error = runtime_current().broken;
	return last_error;
}

cudaError_t
cudaGetLastError()
{
	cudaError_t error = cudaPeekAtLastError();

	last_error = cudaSuccess;
	return error;
}

static const struct
{
	cudaError_t error;
	const char *name,
			   *text;
}			errors[] = {
	{cudaSuccess, "cudaSuccess", "no error"},
	{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
	{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
	{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
	{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
	{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
	{cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
	{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{cudaErrorInvalidClusterSize, "cudaErrorInvalidClusterSize", "invalid cluster size"},
	{cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
	{cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
	{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
		"part or all of the requested memory range is already mapped"},
	{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
	{cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
	{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const char *
cudaGetErrorName(cudaError_t error)
{
	for (const auto &e : errors)
		if (e.error == error)
			return e.name;
	return "unrecognized error code";
}

const char *
cudaGetErrorString(cudaError_t error)
{
	if (error == cudaErrorIllegalAddress && !broken_text.empty())
		return broken_text.c_str();
	for (const auto &e : errors)
		if (e.error == error)
			return e.text;
	return "unrecognized error code";
}

/* ---- streams ---- */

RuntimeDevice *
runtime_stream(cudaStream_t stream, cudaError_t *error)
{
	if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
		return &runtime_current();
	if (living().count(stream) != 0)
		return &runtime_device(stream->device);
	*error = cudaErrorInvalidResourceHandle;
	return nullptr;
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
	return runtime_call([&](RuntimeDevice &device) {
		*stream = new CUstream_st{device.number};
		living().insert(*stream);
		return cudaSuccess;
	});
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	return runtime_call([&](RuntimeDevice &) {
		if (living().erase(stream) == 0)
			return cudaErrorInvalidResourceHandle;
		delete stream;
		return cudaSuccess;
	});
}

void		runtime_synchronized(RuntimeDevice &device);

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	return runtime_stream_call(stream, [](RuntimeDevice &device) {
		runtime_synchronized(device);
		return cudaSuccess;
	});
}

/* All has ended when it was queued; but every second look in a thread says that it has not, as a device would. */
static cudaError_t
looked_at(cudaError_t ended)
{
	static thread_local bool looked;

	looked = !looked;
	return looked && ended == cudaSuccess ? cudaErrorNotReady : ended;
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
	return looked_at(cudaStreamSynchronize(stream));
}

cudaError_t
cudaDeviceSynchronize()
{
	return cudaStreamSynchronize(nullptr);
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) {
		*status = cudaStreamCaptureStatusNone;
		return cudaSuccess;
	});
}

/* ---- events ---- */

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	return runtime_call([&](RuntimeDevice &device) {
		*event = new CUevent_st{device.number, (flags & cudaEventDisableTiming) == 0, false, {}};
		living().insert(*event);
		return cudaSuccess;
	});
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
	return runtime_call([&](RuntimeDevice &) {
		if (living().erase(event) == 0)
			return cudaErrorInvalidResourceHandle;
		delete event;
		return cudaSuccess;
	});
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &device) {
		if (living().count(event) == 0 || event->device != device.number)
			return cudaErrorInvalidResourceHandle;
		event->recorded = true;
		clock_gettime(CLOCK_MONOTONIC, &event->at);
		return cudaSuccess;
	});
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	return runtime_call([&](RuntimeDevice &) {
		if (living().count(event) == 0)
			return cudaErrorInvalidResourceHandle;
		return runtime_device(event->device).broken;
	});
}

cudaError_t
cudaEventQuery(cudaEvent_t event)
{
	return looked_at(cudaEventSynchronize(event));
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) {
		return living().count(event) == 0 ? cudaErrorInvalidResourceHandle : cudaSuccess;
	});
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t began, cudaEvent_t ended)
{
	return runtime_call([&](RuntimeDevice &) {
		for (cudaEvent_t event : {began, ended})
			if (living().count(event) == 0 || !event->timed || !event->recorded)
				return cudaErrorInvalidResourceHandle;
		*ms = (ended->at.tv_sec - began->at.tv_sec) * 1e3f + (ended->at.tv_nsec - began->at.tv_nsec) * 1e-6f;
		return cudaSuccess;
	});
}
