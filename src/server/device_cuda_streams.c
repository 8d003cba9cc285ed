/*
 * device_cuda_streams.c
 *	  Streams of queries.
 *
 * Making and destroying one takes longer than many a query's kernels, so those that are idle are kept for the next.
 */
#include <pthread.h>

#include "server/device_cuda.h"

#define IDLE_STREAMS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct
{
	int			device;
	cudaStream_t stream;
}			idle[IDLE_STREAMS];
static int	nidle;

cudaError_t
stream_take(int device, cudaStream_t *stream)
{
	*stream = NULL;
	pthread_mutex_lock(&lock);
	for (int i = nidle - 1; i >= 0 && *stream == NULL; i--)
		if (idle[i].device == device)
		{
			*stream = idle[i].stream;
			idle[i] = idle[--nidle];
		}
	pthread_mutex_unlock(&lock);
	return *stream ? cudaSuccess : cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

void
stream_give(int device, cudaStream_t stream)
{
	bool		room;

	pthread_mutex_lock(&lock);
	room = nidle < IDLE_STREAMS;
	if (room)
	{
		idle[nidle].device = device;
		idle[nidle++].stream = stream;
	}
	pthread_mutex_unlock(&lock);
	if (!room)
		cudaStreamDestroy(stream);
}
