/*
 * picks.c
 *	  Picks values of sets at the server, by their positions.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "engine_cuda/cuda_engine.h"

/* The buffer for positions. Groups are in buffer 0. */
#define PICK_BUFFER 1

bool
cuda_pick_pairs(CudaEngine *cuda, int set, const int32 *places, uint32 n, const Picked *to)
{
	Client *client = cuda->client;
	char *buffer = client->arena + (size_t) PICK_BUFFER * client->welcome.buffer_bytes;
	size_t end = wire_picked_end(n, &cuda->query->wire->sets[set]);
	WirePick message = {.set = set, .n = n, .buffer = PICK_BUFFER};
	const char *values = buffer + wire_picked_at(n);
	WirePicked picked;

	CHECK_FOR_INTERRUPTS();
	if (client->welcome.buffers <= PICK_BUFFER || end > client->welcome.buffer_bytes)
	{
		strlcpy(client->failure, "the GPU server sent an invalid answer", sizeof(client->failure));
		return false;
	}
	memcpy(buffer, places, n * sizeof(int32));
	if (!client_send(client, MESSAGE_PICK, &message, sizeof(message)) ||
		!client_receive(client, MESSAGE_PICKED, &picked, sizeof(picked)))
		return false;
	client_settle(client);
	memcpy(to->values, values, n * sizeof(int64));
	values += n * sizeof(int64);
	if (to->beside)
	{
		memcpy(to->beside, values, n * sizeof(int64));
		memcpy(to->order, values + n * sizeof(int64), n * sizeof(int32));
	}
	if (to->ranks)
		memcpy(to->ranks, values, n * sizeof(int32));
	cuda->bytes_from_device += end - wire_picked_at(n);
	return true;
}

bool
cuda_pick(CudaEngine *cuda, int set, const int32 *places, Size n, int64 *values)
{
	for (Size at = 0; at < n; at += PICK_PLACES)
	{
		Picked to = {.values = values + at};

		if (!cuda_pick_pairs(cuda, set, places + at, Min(n - at, PICK_PLACES), &to))
			return false;
	}
	return true;
}
