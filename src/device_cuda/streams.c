/*
 * streams.c
 *	  Streams of queries, each with a page of pinned host memory, and waiting for them.
 *
 * Making a stream takes longer than the kernels of many queries, so idle streams are kept for the
 * next one.  A lock protects the list of idle streams; threads use a stream alone.
 */
#include <pthread.h>
#include <string.h>

#include "device_cuda/device_internal.h"

#define IDLE_STREAMS 64

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct
{
	int device;
	cudaStream_t stream;
	char *page;
} idle[IDLE_STREAMS];
static int nidle;

/* ---- streams ---- */

static void
destroy_stream(cudaStream_t stream, char *page)
{
	if (page)
		cudaFreeHost(page);
	cudaStreamDestroy(stream);
}

cudaError_t
stream_take(int device, cudaStream_t *stream, char **page)
{
	void *memory = NULL;
	cudaError_t err;

	*stream = NULL;
	*page = NULL;
	pthread_mutex_lock(&idle_lock);
	for (int i = nidle - 1; i >= 0 && *stream == NULL; i--)
		if (idle[i].device == device)
		{
			*stream = idle[i].stream;
			*page = idle[i].page;
			idle[i] = idle[--nidle];
		}
	pthread_mutex_unlock(&idle_lock);
	if (*stream)
		return cudaSuccess;
	err = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
	if (err != cudaSuccess)
		return err;
	err = cudaHostAlloc(&memory, STREAM_PAGE_BYTES, cudaHostAllocPortable);
	if (err != cudaSuccess)
	{
		destroy_stream(*stream, NULL);
		*stream = NULL;
	}
	*page = memory;
	return err;
}

void
stream_give(int device, cudaStream_t stream, char *page)
{
	bool room;

	pthread_mutex_lock(&idle_lock);
	room = nidle < IDLE_STREAMS;
	if (room)
	{
		idle[nidle].device = device;
		idle[nidle].page = page;
		idle[nidle++].stream = stream;
	}
	pthread_mutex_unlock(&idle_lock);
	if (!room)
		destroy_stream(stream, page);
}

/* ---- waiting ---- */

/* What is polled: the event, or else the stream. */
typedef struct PollTarget
{
	cudaStream_t stream;
	cudaEvent_t event;
	cudaError_t err;
} PollTarget;

static bool
has_ended(void *arg)
{
	PollTarget *target = arg;

	target->err = target->event ? cudaEventQuery(target->event) : cudaStreamQuery(target->stream);
	return target->err != cudaErrorNotReady;
}

/* Polls for a moment.  Returns false if the work has not ended by then. */
static bool
poll_for_end(PollTarget *target)
{
	bool ended;

	ended = spin_until(has_ended, target);
	/* the runtime may record "not ready" as an error, which the next launch would report */
	cudaGetLastError();
	return ended;
}

cudaError_t
stream_wait(cudaStream_t stream)
{
	PollTarget target = {.stream = stream};

	return poll_for_end(&target) ? target.err : cudaStreamSynchronize(stream);
}

cudaError_t
event_wait(cudaEvent_t event)
{
	PollTarget target = {.event = event};

	return poll_for_end(&target) ? target.err : cudaEventSynchronize(event);
}

DeviceStatus
device_query_copy_out(DeviceQuery *query, const void *from, size_t bytes, size_t at,
					  DeviceError *error)
{
	if (at + bytes > STREAM_PAGE_BYTES)
		return device_fail(error, DEVICE_UNSUPPORTED, "too much for the stream's memory");
	CUDA_CHECK(
		cudaMemcpyAsync(query->page + at, from, bytes, cudaMemcpyDeviceToHost, query->stream));
	return DEVICE_OK;
}

DeviceStatus
device_query_wait(DeviceQuery *query, DeviceError *error)
{
	CUDA_CHECK(stream_wait(query->stream));
	return DEVICE_OK;
}

DeviceStatus
device_query_read(DeviceQuery *query, void *to, const void *from, size_t bytes, DeviceError *error)
{
	DEVICE_CHECK(device_query_copy_out(query, from, bytes, 0, error));
	DEVICE_CHECK(device_query_wait(query, error));
	memcpy(to, query->page, bytes);
	return DEVICE_OK;
}
