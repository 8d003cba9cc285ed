/*
 * device_upload.c
 *	  Uploads columns that the devices lack, from the column cache (STORE).
 */
#include "postgres.h"

#include "miscadmin.h"

#include "columns/column_value.h"
#include "engine_cuda/dictionaries.h"
#include "engine_cuda/device_rows.h"

/* Number of rows that are decoded at a time. */
#define DECODE_ROWS 4096

typedef struct Upload
{
	Resident *r;
	int buffer;                /* the next one to fill */
	int npending;              /* number of buffers that are not answered */
	int pending[MAX_BUFFERS];  /* stored column in each buffer */
	uint32 place[MAX_BUFFERS]; /* device for each buffer */
} Upload;

static uint32
device_of_range(const Resident *r, uint32 range)
{
	const WireWelcome *welcome = &r->cuda->client->welcome;

	return wire_place(r->wire.table, range, welcome->ndevices, welcome->place_ranges);
}

/* Receives the oldest pending answer. */
static bool
await_stored(Upload *up)
{
	CudaEngine *cuda = up->r->cuda;
	int buffers = cuda->client->welcome.buffers;
	int oldest = (up->buffer + buffers - up->npending) % buffers;
	WireStored stored;

	if (!client_receive(cuda->client, MESSAGE_STORED, &stored, sizeof(stored)))
		return false;
	up->npending--;
	if (stored.kept == 0)
		up->r->refused[up->place[oldest]] |= (uint32) 1 << up->pending[oldest];
	return true;
}

/* Decodes a chunk into a buffer, and sets the offsets in the message. */
static void
decode_chunk(const CacheChunk *chunk, const ExprStored *stored, char *buffer, WireStore *out)
{
	int width = stored->type == COLUMN_DEC ? sizeof(int64) : column_width(stored->type);
	uint64 *bits;
	gpuagg_i128 wide[DECODE_ROWS];
	uint8 state[DECODE_ROWS];
	bool nulls = false;

	out->values = 0;
	out->validity = wire_align((size_t) chunk->nrows * width);
	bits = (uint64 *) (buffer + out->validity);
	memset(bits, 0xff, wire_bitmap_bytes(chunk->nrows));
	if (stored->presence)
	{
		memset(buffer, 1, chunk->nrows);
		if (chunk_validity(chunk))
			memcpy(bits, chunk_validity(chunk), wire_bitmap_bytes(chunk->nrows));
		else
			out->validity = WIRE_NO_ARRAY;
		return;
	}
	for (uint32 at = 0; at < chunk->nrows; at += DECODE_ROWS)
	{
		int n = Min(DECODE_ROWS, chunk->nrows - at);
		char *to = buffer + (size_t) at * width;
		bool all;

		CHECK_FOR_INTERRUPTS();
		all = chunk_read(chunk, at, n, stored->type, stored->scale,
						 stored->type == COLUMN_DEC ? (void *) wide : to, state);
		for (int i = 0; stored->type == COLUMN_DEC && i < n; i++)
			((int64 *) to)[i] = (int64) wide[i];
		for (int i = 0; !all && i < n; i++)
			if (state[i] != VEC_VALUE)
			{
				bitmap_clear(bits, at + i);
				nulls = true;
			}
	}
	if (!nulls)
		out->validity = WIRE_NO_ARRAY;
}

/* Sends the buffer that was filled, and waits until the next one is free. */
static bool
send_store(Upload *up, const WireStore *store, int s)
{
	CudaEngine *cuda = up->r->cuda;
	int buffers = cuda->client->welcome.buffers;

	if (!client_send(cuda->client, MESSAGE_STORE, store, sizeof(*store)))
		return false;
	up->pending[up->buffer] = s;
	up->place[up->buffer] = device_of_range(up->r, store->range);
	up->buffer = (up->buffer + 1) % buffers;
	up->npending++;
	return up->npending < buffers || await_stored(up);
}

static char *
next_buffer(const Upload *up, WireStore *store)
{
	const Client *client = up->r->cuda->client;

	store->buffer = up->buffer;
	return client->arena + (size_t) up->buffer * client->welcome.buffer_bytes;
}

/*
 * Sends a chunk as codes and entries, in as many messages as the entries need. Returns false if the
 * session is lost. *there: the chunk has this form.
 */
static bool
send_coded(Upload *up, const CacheChunk *chunk, int s, WireStore *store, bool *there)
{
	Resident *r = up->r;
	size_t buffer_bytes = r->cuda->client->welcome.buffer_bytes;
	uint32 device = device_of_range(r, store->range);
	CudaEncoded *encoded =
		chunk->no_numbers ? NULL : cuda_encode_chunk(chunk, resident_attribute(r, s));
	bool ok = true;
	bool more = true;

	*there = encoded && cuda_encoded_fits(encoded, buffer_bytes);
	/* the chunk never changes, so the next query need not try */
	if (!*there)
		((CacheChunk *) chunk)->no_numbers = true;
	while (*there && ok && more && !(r->refused[device] >> s & 1))
	{
		more = cuda_encoded_write(encoded, next_buffer(up, store), buffer_bytes, store);
		ok = send_store(up, store, s);
	}
	if (encoded)
		cuda_encoded_free(encoded);
	return ok;
}

/*
 * Sends one column of a row range's block range. Returns false if the session is lost. *there: the
 * column is still in the cache, and has a form that the GPU can have.
 */
static bool
send_column(Upload *up, const WireRowRange *row_range, int s, bool *there)
{
	Resident *r = up->r;
	CachePin *pin = feed_resident_pin(r->rows, row_range);
	WireStore store = {0};
	const CacheChunk *chunk;
	bool ok;

	*there = pin != NULL;
	if (pin == NULL)
		return true;
	chunk = pin->chunks[r->chunk[s]];
	store.table = r->wire.table;
	store.stamp = row_range->stamp;
	store.range = row_range->range;
	store.nrows = chunk->nrows;
	store.column = r->wire.stored[s];
	if (store.column.coded)
		ok = send_coded(up, chunk, s, &store, there);
	else
	{
		decode_chunk(chunk, &r->program->stored[s], next_buffer(up, &store), &store);
		ok = send_store(up, &store, s);
	}
	if (*there)
		r->cuda->uploaded += (size_t) chunk->nrows * wire_width(store.column.type);
	cache_unpin(pin);
	return ok;
}

bool
resident_upload(Resident *r, const uint64 *lacking, bool *keep)
{
	Upload up = {r};
	bool there = true;

	for (uint32 i = 0; i < r->rows->nrow_ranges; i++)
	{
		const WireRowRange *row_range = &r->rows->row_ranges[i];
		bool again = i > 0 && row_range->range == row_range[-1].range;

		CHECK_FOR_INTERRUPTS();
		if (again)
			keep[i] = keep[i - 1];
		for (int s = 0; !again && s < r->program->nstored; s++)
		{
			if (!(lacking[i] >> s & 1))
				continue;
			if (r->refused[device_of_range(r, row_range->range)] >> s & 1)
				keep[i] = false;
			else if (!send_column(&up, row_range, s, &there))
				return false;
			else
				keep[i] &= there;
		}
	}
	while (up.npending > 0)
		if (!await_stored(&up))
			return false;
	return true;
}
