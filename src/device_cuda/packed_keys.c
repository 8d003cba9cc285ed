/*
 * packed_keys.c
 *	  Packed keys of rows and groups: they are made of columns, turned back into columns, and
 *	  shortened if they exceed 16 bytes.
 *
 * A hash table takes keys of at most 16 bytes.  Longer ones are shortened, part by part.  The first
 * part has as many key columns as fit into 16 bytes.  A table numbers its different values.  The
 * next part consists of that number, 4 bytes, and further columns; another table numbers these, and
 * so on.  The last part, which also has the byte of NULL bits, is the shortened key: two keys have
 * equal ones if and only if they are equal.  The group's table (group_tables.c) has shortened keys,
 * and GroupStates.keys the whole ones.
 *
 * Numbers stay valid as long as the query has groups.  A part that is numbered, but belongs to no
 * group because its rows were not reduced, does no harm.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/* Bytes of the number of a part. */
#define NUMBER_BYTES 4

/* ---- keys of any length ---- */

static bool
has_null_byte(const WireQuery *q)
{
	return q->null_offset < q->key_bytes;
}

PackKeys
keys_of_columns(const WireQuery *q, const DeviceColumn *cols)
{
	PackKeys pack = {
		.nkeys = q->nkeys, .key_bytes = q->key_bytes, .null_offset = (int) q->null_offset};

	for (int k = 0; k < q->nkeys; k++)
	{
		pack.width[k] = q->keys[k].width;
		pack.offset[k] = q->keys[k].offset;
		pack.column[k] = cols[q->keys[k].col];
	}
	return pack;
}

DeviceStatus
keys_to_columns(DeviceQuery *query, const void *keys, int64_t n, uint32_t nulls,
				DeviceMemory *memory, DeviceColumn *cols, DeviceError *error)
{
	static const int types[] = {[1] = WIRE_I8, [2] = WIRE_I16, [4] = WIRE_I32, [8] = WIRE_I64};
	const WireQuery *q = query->q;
	UnpackKeys unpack = {
		.nkeys = q->nkeys, .key_bytes = q->key_bytes, .null_offset = (int) q->null_offset};
	size_t bytes = 0;
	char *at;

	for (int k = 0; k < q->nkeys; k++)
		bytes += wire_align(n * q->keys[k].width) + wire_align(wire_bitmap_bytes(n));
	DEVICE_CHECK(memory_reserve(query, memory, bytes, error));
	at = memory->at;
	for (int k = 0; k < q->nkeys; k++)
	{
		DeviceColumn *col = &cols[q->keys[k].col];

		*col = (DeviceColumn){.values = at, .type = types[q->keys[k].width]};
		unpack.width[k] = q->keys[k].width;
		unpack.offset[k] = q->keys[k].offset;
		unpack.values[k] = at;
		at += wire_align(n * q->keys[k].width);
		if (nulls >> k & 1)
		{
			unpack.validity[k] = (uint32_t *) at;
			col->validity = (const uint8_t *) at;
		}
		at += wire_align(wire_bitmap_bytes(n));
	}
	KERNEL_CHECK(device_unpack_keys(&unpack, keys, n, query->stream));
	return DEVICE_OK;
}

int
keys_narrow_bytes(const WireQuery *q)
{
	const WireKey *last = &q->keys[q->nkeys - 1];

	return wire_key_bytes(last->offset + last->width);
}

void
lengthen_keys(char *keys, size_t n, int from, int to)
{
	/* most queries have int4 keys: copy them as whole words */
	if (from == 4 && to == 8)
		for (size_t i = n; i-- > 0;)
		{
			uint64_t key = 0;

			memcpy(&key, keys + i * 4, 4);
			memcpy(keys + i * 8, &key, 8);
		}
	else if (from < to)
		for (size_t i = n; i-- > 0;)
		{
			memmove(keys + i * to, keys + i * from, from);
			memset(keys + i * to + from, 0, to - from);
		}
}

/* ---- keys of more than 16 bytes ---- */

/* The parts of a key: for each its columns, a bit each, and its bytes. */
typedef struct KeyParts
{
	int n;
	uint32_t columns[WIDE_MOST_PARTS];
	int bytes[WIDE_MOST_PARTS];
} KeyParts;

/*
 * Takes the first of the columns in *left, and those after it for which a part has room.  *bytes is
 * the length of the part.
 */
static uint32_t
take_columns(const WireQuery *q, uint32_t *left, int *bytes)
{
	uint32_t taken = 0;

	for (int k = 0; k < q->nkeys; k++)
		if ((*left >> k & 1) && *bytes + q->keys[k].width <= HASH_MOST_KEY_BYTES)
		{
			taken |= 1u << k;
			*bytes += q->keys[k].width;
		}
	*left &= ~taken;
	return taken;
}

static KeyParts
divide_key(const WireQuery *q)
{
	KeyParts parts = {.n = 0};
	uint32_t left = (1u << q->nkeys) - 1;
	bool ended = false;

	while (!ended)
	{
		int p = parts.n++;
		int bytes = p > 0 ? NUMBER_BYTES : 0;

		parts.columns[p] = take_columns(q, &left, &bytes);
		/* if there is no room for the NULL bits, they are a part of their own */
		ended = left == 0 && bytes + has_null_byte(q) <= HASH_MOST_KEY_BYTES;
		parts.bytes[p] = wire_key_bytes(bytes + (ended && has_null_byte(q)));
	}
	return parts;
}

int
keys_short_bytes(const WireQuery *q)
{
	KeyParts parts = divide_key(q);

	return parts.bytes[parts.n - 1];
}

/* Says what part p is made of.  numbers: those of the part before, for each row. */
static PackKeys
describe_part(const WireQuery *q, const KeyParts *parts, int p, const DeviceColumn *cols,
			  const int32_t *numbers)
{
	bool last = p == parts->n - 1;
	int at = p > 0 ? NUMBER_BYTES : 0;
	PackKeys pack = {
		.nkeys = q->nkeys, .key_bytes = parts->bytes[p], .null_offset = parts->bytes[p]};

	for (int k = 0; k < q->nkeys; k++)
	{
		bool here = parts->columns[p] >> k & 1;

		/* the last part has the NULL bits of all columns */
		if (here || last)
			pack.column[k] = cols[q->keys[k].col];
		if (!here)
			continue;
		pack.offset[k] = at;
		pack.width[k] = q->keys[k].width;
		at += q->keys[k].width;
	}
	if (p > 0)
	{
		pack.column[pack.nkeys] = (DeviceColumn){.values = numbers, .type = WIRE_I32};
		pack.width[pack.nkeys++] = NUMBER_BYTES;
	}
	if (last && has_null_byte(q))
		pack.null_offset = at;
	return pack;
}

/* Replaces the table by one of four times its capacity, or as much as memory allows. */
static DeviceStatus
grow_part(DeviceQuery *query, HashTable *part, DeviceError *error)
{
	int64_t old = part->table.capacity;
	int64_t least = old + (old < HASH_LEAST_GROWTH ? 1 : HASH_LEAST_GROWTH);
	int64_t capacity = 4 * old < cuda_max_bins ? 4 * old : cuda_max_bins;
	HashTable larger = {.table = {.key_bytes = part->table.key_bytes}};
	DeviceStatus status;

	if (least > cuda_max_bins)
		return device_fail(error, DEVICE_UNSUPPORTED, "too many parts of keys");
	while ((status = hash_make(query, capacity, &larger, error)) == DEVICE_NO_MEMORY &&
		   capacity > least)
		capacity = hash_smaller_capacity(capacity, least);
	DEVICE_CHECK(status);
	status = kernel_status(gpuagg_group_grow(&part->table, &larger.table, query->stream),
						   "gpuagg_group_grow", error);
	hash_release(query, status == DEVICE_OK ? part : &larger);
	if (status == DEVICE_OK)
		*part = larger;
	return status;
}

static DeviceStatus
make_part(DeviceQuery *query, int key_bytes, HashTable *part, DeviceError *error)
{
	DeviceStatus status;

	part->table.key_bytes = key_bytes;
	DEVICE_CHECK(hash_make(query, hash_first_capacity(query->q, 0), part, error));
	status =
		kernel_status(gpuagg_group_init(&part->table, query->stream), "gpuagg_group_init", error);
	if (status != DEVICE_OK)
		hash_release(query, part);
	return status;
}

/* Numbers the n keys of a part, which are in scratch.keys. */
static DeviceStatus
number_part(DeviceQuery *query, HashTable *part, int key_bytes, const uint8_t *filter, int64_t n,
			int32_t *numbers, DeviceError *error)
{
	bool full = true;

	if (part->memory.at == NULL)
		DEVICE_CHECK(make_part(query, key_bytes, part, error));
	for (int retry = 0; full; retry = 1)
	{
		int64_t different;

		DEVICE_CHECK(hash_look_up(query, &part->table, query->scratch.keys.at, filter, n, retry,
								  numbers, &different, &full, error));
		if (full)
			DEVICE_CHECK(grow_part(query, part, error));
	}
	return DEVICE_OK;
}

DeviceStatus
keys_shorten(DeviceQuery *query, const DeviceColumn *cols, const uint8_t *filter, int64_t n,
			 int32_t *numbers, DeviceError *error)
{
	KeyParts parts = divide_key(query->q);

	DEVICE_CHECK(memory_reserve(query, &query->scratch.keys, n * HASH_MOST_KEY_BYTES, error));
	for (int p = 0; p < parts.n; p++)
	{
		PackKeys pack = describe_part(query->q, &parts, p, cols, numbers);

		KERNEL_CHECK(device_pack_keys(&pack, n, query->scratch.keys.at, query->stream));
		if (p < parts.n - 1)
			DEVICE_CHECK(number_part(query, &query->groups.parts[p], parts.bytes[p], filter, n,
									 numbers, error));
	}
	return DEVICE_OK;
}

DeviceStatus
keys_store(DeviceQuery *query, const DeviceColumn *cols, const int32_t *bins, int64_t nrows,
		   int32_t *rows, DeviceError *error)
{
	Groups *groups = &query->groups;
	int64_t n = groups->ntable - groups->nstored;
	PackKeys pack = keys_of_columns(query->q, cols);
	char *to = (char *) groups->states.keys.at + groups->nstored * pack.key_bytes;

	if (n == 0)
		return DEVICE_OK;
	CUDA_CHECK(cudaMemsetAsync(rows, 0xff, n * sizeof(int32_t), query->stream));
	KERNEL_CHECK(device_rows_of_bins(bins, nrows, groups->nstored, rows, query->stream));
	KERNEL_CHECK(device_row_keys(&pack, rows, n, to, query->stream));
	groups->nstored = groups->ntable;
	return DEVICE_OK;
}

void
keys_release(DeviceQuery *query)
{
	for (int p = 0; p < WIDE_MOST_PARTS - 1; p++)
		hash_release(query, &query->groups.parts[p]);
}
