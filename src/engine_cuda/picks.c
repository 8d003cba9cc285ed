/*
 * picks.c
 *	  Picks values of sets at the server, by their positions.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "engine_cuda/cuda_engine.h"

/* The buffer for positions. Groups are in buffer 0. */
#define PICK_BUFFER 1

/* Picks n values, at most PICK_PLACES. */
static bool
pick_portion(CudaEngine *cuda, int set, const int32 *places, uint32 n, int64 *values)
{
	Client *client = cuda->client;
	char *buffer = client->arena + (size_t) PICK_BUFFER * client->welcome.buffer_bytes;
	WirePick message = {.set = set, .n = n, .buffer = PICK_BUFFER};
	WirePicked picked;

	if (client->welcome.buffers <= PICK_BUFFER ||
		wire_picked_at(n) + n * sizeof(int64) > client->welcome.buffer_bytes)
	{
		strlcpy(client->failure, "the GPU server sent an invalid answer", sizeof(client->failure));
		return false;
	}
	memcpy(buffer, places, n * sizeof(int32));
	if (!client_send(client, MESSAGE_PICK, &message, sizeof(message)) ||
		!client_receive(client, MESSAGE_PICKED, &picked, sizeof(picked)))
		return false;
	client_settle(client);
	memcpy(values, buffer + wire_picked_at(n), n * sizeof(int64));
	cuda->bytes_from_device += n * sizeof(int64);
	return true;
}

bool
cuda_pick(CudaEngine *cuda, int set, const int32 *places, Size n, int64 *values)
{
	for (Size at = 0; at < n; at += PICK_PLACES)
	{
		CHECK_FOR_INTERRUPTS();
		if (!pick_portion(cuda, set, places + at, Min(n - at, PICK_PLACES), values + at))
			return false;
	}
	return true;
}
