/*
 * store_ops.c
 *	  The operations of the store (server/device_store.h) on device memory.
 *
 * Each device has one stream for them, and each call waits for it.  So when a call returns, kernels
 * of any query may read what it stored.  The store releases only memory that no query reads.
 */
#include "device_cuda/device_internal.h"

static cudaStream_t streams[WIRE_MAX_DEVICES];

static DeviceStatus
finish_stream(cudaStream_t stream, DeviceError *error)
{
	CUDA_CHECK(cudaStreamSynchronize(stream));
	return DEVICE_OK;
}

/*
 * Waits, also after a failure: the memory may be reused, and no queued copy may still write to it.
 */
static DeviceStatus
finish_call(int device, DeviceStatus status, DeviceError *error)
{
	DeviceError later;
	DeviceStatus ended = finish_stream(streams[device], &later);

	if (status == DEVICE_OK && ended != DEVICE_OK)
		*error = later;
	return status == DEVICE_OK ? ended : status;
}

/* The store has taken the bytes from the budget. */
static DeviceStatus
column_allocate(int device, size_t bytes, void **at, DeviceError *error)
{
	CUDA_CHECK(cuda_select(device));
	CUDA_CHECK(cudaMallocAsync(at, bytes, streams[device]));
	return DEVICE_OK;
}

static void
column_release(int device, void *at)
{
	cuda_select(device);
	cudaFreeAsync(at, streams[device]);
}

static DeviceStatus
fill_larger(int device, char *to, size_t bytes, const void *from, size_t used, int rest,
			DeviceError *error)
{
	if (used > 0)
		CUDA_CHECK(cudaMemcpyAsync(to, from, used, cudaMemcpyDeviceToDevice, streams[device]));
	CUDA_CHECK(cudaMemsetAsync(to + used, rest, bytes - used, streams[device]));
	return DEVICE_OK;
}

static DeviceStatus
column_enlarge(int device, void *to, size_t bytes, const void *from, size_t used, int rest,
			   DeviceError *error)
{
	CUDA_CHECK(cuda_select(device));
	return finish_call(device, fill_larger(device, to, bytes, from, used, rest, error), error);
}

static DeviceStatus
copy_in(int device, const char *from, void *to, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, streams[device]));
	return DEVICE_OK;
}

static DeviceStatus
column_put(Lane *lane, int buffer, uint32_t from, void *to, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cuda_select(lane->device));
	return finish_call(
		lane->device,
		copy_in(lane->device, lane->arena + buffer * lane->buffer_bytes + from, to, bytes, error),
		error);
}

static DeviceStatus
memory_put(int device, const void *from, void *to, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cuda_select(device));
	return finish_call(device, copy_in(device, from, to, bytes, error), error);
}

/*
 * Copies bits by way of the lane's buffer on the device.  No batch uses that buffer now, because a
 * client sends one message at a time for a buffer.
 */
static DeviceStatus
shift_bits(Lane *lane, size_t at, bool has_bits, void *bits, int64_t first, int64_t nrows,
		   DeviceError *error)
{
	cudaStream_t stream = streams[lane->device];

	if (has_bits)
	{
		CUDA_CHECK(cudaStreamSynchronize(lane->stream));
		DEVICE_CHECK(copy_in(lane->device, lane->arena + at, lane->memory + at,
							 wire_bitmap_bytes(nrows), error));
	}
	KERNEL_CHECK(device_put_bits(has_bits ? lane->memory + at : NULL, bits, first, nrows, stream));
	return DEVICE_OK;
}

static DeviceStatus
column_put_bits(Lane *lane, int buffer, uint32_t from, void *bits, int64_t first, int64_t nrows,
				DeviceError *error)
{
	bool has_bits = from != WIRE_NO_ARRAY;
	size_t at = buffer * lane->buffer_bytes + (has_bits ? from : 0);

	CUDA_CHECK(cuda_select(lane->device));
	/* kernels may still read the last batch in this buffer */
	DEVICE_CHECK(lane_add_kernel_time(lane, buffer, error));
	return finish_call(lane->device, shift_bits(lane, at, has_bits, bits, first, nrows, error),
					   error);
}

static DeviceStatus
column_ready(Lane *lane, DeviceError *error)
{
	CUDA_CHECK(cuda_select(lane->device));
	return lane_reserve(lane, error);
}

static char *
lane_buffer(Lane *lane, int buffer)
{
	return lane->arena + buffer * lane->buffer_bytes;
}

static const StoreOps operations = {
	.buffer = lane_buffer,
	.allocate = column_allocate,
	.release = column_release,
	.enlarge = column_enlarge,
	.ready = column_ready,
	.put = column_put,
	.put_bits = column_put_bits,
	.put_memory = memory_put,
};

DeviceStatus
cuda_store_start(int ndevices, DeviceError *error)
{
	for (int d = 0; d < ndevices; d++)
		if (streams[d] == NULL)
		{
			CUDA_CHECK(cuda_select(d));
			CUDA_CHECK(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
		}
	store_start(&operations, ndevices);
	return DEVICE_OK;
}
