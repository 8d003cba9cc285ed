/*
 * runtime.h
 *	  What the files of the emulator's CUDA runtime share: devices, what they hold, and the frame of
 * every call.
 *
 * Calls take one lock and do at once what they are asked for, in the thread of the caller: an order
 * that the streams of a real device allow, so that synchronizing is nothing.  Errors are CUDA's:
 * the last one of each thread, and the one that has broken a device, which every later call on it
 * returns.
 */
#ifndef GPUAGG_EMULATOR_RUNTIME_H
#define GPUAGG_EMULATOR_RUNTIME_H

#include <cuda_runtime_api.h>

#include <mutex>

#include "emulator.h"

#define RUNTIME_MAX_DEVICES 8

/* What an H100 has. */
#define SHARED_PER_MULTIPROCESSOR (228 << 10)
#define SHARED_PER_BLOCK (227 << 10)
#define SHARED_PER_BLOCK_DEFAULT (48 << 10)
#define SHARED_RESERVED (1 << 10) /* of each block */
#define THREADS_PER_MULTIPROCESSOR 2048
#define THREADS_PER_BLOCK 1024
#define BLOCKS_PER_MULTIPROCESSOR 32

/* The pool of cudaMallocAsync(). */
struct CUmemPoolHandle_st
{
	size_t used, reserved, /* taken from the device, used or not */
		threshold;         /* what synchronizing leaves reserved */
};

struct RuntimeDevice
{
	int number;
	size_t memory, taken; /* by cudaMalloc() */
	int multiprocessors;
	CUmemPoolHandle_st pool;
	cudaError_t broken; /* cudaSuccess: it is whole */
};

struct CUstream_st
{
	int device;
};

std::recursive_mutex &runtime_lock();
int runtime_devices();
RuntimeDevice &runtime_device(int number);

/* The calling thread's. */
RuntimeDevice &runtime_current();

/* Sets the thread's last error if it is one, and returns it. */
cudaError_t runtime_note(cudaError_t error);

/* A line to standard error. */
void runtime_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The device is broken from now on; text is what cudaGetErrorString() says of it. */
cudaError_t runtime_break(RuntimeDevice &device, const std::string &text);

/* The device of a stream, or NULL with an error. */
RuntimeDevice *runtime_stream(cudaStream_t stream, cudaError_t *error);

/*
 * The frame of a call that needs the calling thread's device: do_it gets that and returns an error.
 */
template <typename F>
cudaError_t
runtime_call(F do_it)
{
	std::lock_guard<std::recursive_mutex> guard(runtime_lock());

	if (runtime_devices() == 0)
		return runtime_note(cudaErrorNoDevice);

	RuntimeDevice &device = runtime_current();

	return runtime_note(device.broken != cudaSuccess ? device.broken : do_it(device));
}

/* ... and its stream, of any device */
template <typename F>
cudaError_t
runtime_stream_call(cudaStream_t stream, F do_it)
{
	return runtime_call(
		[&](RuntimeDevice &)
		{
			cudaError_t error = cudaSuccess;
			RuntimeDevice *device = runtime_stream(stream, &error);

			return device == nullptr          ? error :
				device->broken != cudaSuccess ? device->broken :
												do_it(*device);
		});
}

#endif /* GPUAGG_EMULATOR_RUNTIME_H */
