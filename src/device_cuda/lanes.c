/*
 * lanes.c
 *	  Lanes: a connection's copy stream, and its buffers on the device.
 *
 * Making streams and events takes the driver's lock, so idle lanes are kept for the next session on
 * their device, without their buffers.  A lock protects the list of idle lanes; a lane belongs to
 * one connection.
 */
#include <pthread.h>
#include <stdlib.h>

#include "device_cuda/device_internal.h"

#define IDLE_LANES 64

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static Lane *idle_lanes;
static int nidle;

static void
destroy_event(cudaEvent_t event)
{
	if (event)
		cudaEventDestroy(event);
}

static void
destroy_lane(Lane *lane)
{
	for (int b = 0; b < WIRE_BUFFERS; b++)
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

/* Creates the lane's stream and events.  If it fails, the caller closes the lane. */
static DeviceStatus
make_lane(Lane *lane, DeviceError *error)
{
	CUDA_CHECK(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
	for (int b = 0; b < WIRE_BUFFERS; b++)
	{
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->copy_began[b], cudaEventDefault));
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->copied[b], cudaEventBlockingSync));
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->reduce_began[b], cudaEventDefault));
		CUDA_CHECK(cudaEventCreateWithFlags(&lane->reduced[b], cudaEventBlockingSync));
	}
	return DEVICE_OK;
}

/* Takes an idle lane of the device from the list.  Returns NULL if there is none. */
static Lane *
take_idle_lane(int device)
{
	Lane **at = &idle_lanes;
	Lane *lane;

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

/* Adds the lane to the list of idle lanes.  Returns false if the list is full. */
static bool
keep_idle(Lane *lane)
{
	bool room;

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

void
cuda_lane_close(Lane *lane)
{
	bool whole = lane->stream != NULL;

	cuda_select(lane->device);
	/* wait for copies from the arena; the buffers are freed after the kernels that read them */
	if (lane->stream)
		cudaStreamSynchronize(lane->stream);
	for (int b = 0; b < WIRE_BUFFERS; b++)
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

DeviceStatus
lane_reserve(Lane *lane, DeviceError *error)
{
	void *memory;

	if (lane->memory)
		return DEVICE_OK;
	DEVICE_CHECK(device_allocate(lane->device, lane->buffers * lane->buffer_bytes, lane->stream,
								 &memory, error));
	lane->memory = memory;
	return DEVICE_OK;
}

DeviceStatus
cuda_lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes, int buffers,
			   DeviceError *error)
{
	Lane *l;
	DeviceStatus status;

	CUDA_CHECK(cuda_select(device));
	l = take_idle_lane(device);
	if (l == NULL)
		l = calloc(1, sizeof(*l));
	if (l == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory");
	l->device = device;
	l->arena = arena;
	l->buffer_bytes = buffer_bytes;
	l->buffers = buffers;
	l->kernel_ms = 0;
	status = l->stream ? DEVICE_OK : make_lane(l, error);
	if (status != DEVICE_OK)
	{
		cuda_lane_close(l);
		return status;
	}
	*lane = l;
	return DEVICE_OK;
}

/*
 * Queues the copy of `bytes` bytes at offset `at` of the arena, to the same offset on the device.
 */
static DeviceStatus
copy_array(Lane *lane, size_t at, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cudaMemcpyAsync(lane->memory + at, lane->arena + at, bytes, cudaMemcpyHostToDevice,
							   lane->stream));
	return DEVICE_OK;
}

/* Copies array by array: a batch that does not fill its buffer has gaps between its arrays. */
DeviceStatus
cuda_copy(Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error)
{
	int b = batch->buffer;
	size_t base = b * lane->buffer_bytes;

	CUDA_CHECK(cuda_select(lane->device));
	DEVICE_CHECK(lane_reserve(lane, error));
	CUDA_CHECK(cudaStreamWaitEvent(lane->stream, lane->reduced[b], 0));
	CUDA_CHECK(cudaEventRecord(lane->copy_began[b], lane->stream));
	*bytes = 0;
	for (uint32_t c = 0; c < batch->ncols; c++)
	{
		const WireColumn *col = &batch->cols[c];
		size_t values = (size_t) batch->nrows * wire_width(col->type);
		size_t validity = wire_bitmap_bytes(batch->nrows);

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

DeviceStatus
cuda_copy_wait(Lane *lane, int buffer, double *ms, DeviceError *error)
{
	float elapsed;

	CUDA_CHECK(cudaEventSynchronize(lane->copied[buffer]));
	CUDA_CHECK(cudaEventElapsedTime(&elapsed, lane->copy_began[buffer], lane->copied[buffer]));
	*ms = elapsed;
	return DEVICE_OK;
}

DeviceStatus
lane_add_kernel_time(Lane *lane, int buffer, DeviceError *error)
{
	float ms;

	if (!lane->timing[buffer])
		return DEVICE_OK;
	lane->timing[buffer] = false;
	CUDA_CHECK(event_wait(lane->reduced[buffer]));
	CUDA_CHECK(cudaEventElapsedTime(&ms, lane->reduce_began[buffer], lane->reduced[buffer]));
	lane->kernel_ms += ms;
	return DEVICE_OK;
}

DeviceStatus
cuda_lane_settle(Lane *lane, double *kernel_ms, DeviceError *error)
{
	CUDA_CHECK(cuda_select(lane->device));
	for (int b = 0; b < lane->buffers; b++)
		DEVICE_CHECK(lane_add_kernel_time(lane, b, error));
	*kernel_ms = lane->kernel_ms;
	lane->kernel_ms = 0;
	return DEVICE_OK;
}
