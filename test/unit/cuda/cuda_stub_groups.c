/*
 * cuda_stub_groups.c
 *	  The server's small kernels on keys of rows and on groups, on the host; see
 *	  cuda_stub_kernels.h.
 */
#include <string.h>

#include "cuda_stub_kernels.h"
#include "limit_host.h"

/* ---- keys ---- */

/* Packs the key of row i: the values of its columns, and a bit for each NULL. */
static void
pack_one(const PackKeys *pack, int64_t i, char *key)
{
	memset(key, 0, pack->key_bytes);
	for (int k = 0; k < pack->nkeys; k++)
		if (!stub_is_valid(pack->column[k].validity, i))
		{
			if (pack->null_offset < pack->key_bytes)
				key[pack->null_offset] |= 1 << k;
		}
		else if (pack->width[k] > 0) /* of a column without width only NULLs are packed */
			memcpy(key + pack->offset[k],
				   (const char *) pack->column[k].values + i * pack->width[k], pack->width[k]);
}

GpuaggCudaStatus
device_pack_keys(const PackKeys *pack, int64_t nrows, void *out, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		pack_one(pack, i, (char *) out + i * pack->key_bytes);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_rows_of_bins(const int32_t *bins, int64_t nrows, int64_t first, int32_t *rows,
					gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		if (bins[i] >= first)
			rows[bins[i] - first] = (int32_t) i;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_row_keys(const PackKeys *pack, const int32_t *rows, int64_t n, void *out,
				gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	memset(out, 0, n * pack->key_bytes);
	for (int64_t i = 0; i < n; i++)
		if (rows[i] >= 0)
			pack_one(pack, rows[i], (char *) out + i * pack->key_bytes);
	return GPUAGG_CUDA_OK;
}

/*
 * Compares value i of a with value j of b. Returns less than, equal to or greater than 0; NULL is
 * last.
 */
static int
compare_values(const DeviceColumn *a, int64_t i, const DeviceColumn *b, int64_t j)
{
	GpuaggColumn x = stub_column_of(a);
	GpuaggColumn y = stub_column_of(b);
	int there = stub_is_valid(x.validity, i);
	int other = stub_is_valid(y.validity, j);
	int64_t u, v;

	if (!there || !other)
		return other - there;
	u = stub_load_integer(&x, i);
	v = stub_load_integer(&y, j);
	return u < v ? -1 : u > v;
}

GpuaggCudaStatus
device_find_heads(const HeadRows *rows, int64_t nrows, uint32_t *heads, uint32_t *order,
				  gpuagg_stream stream)
{
	int64_t last = -1;

	(void) stream;
	LAUNCH();
	memset(heads, 0, (nrows + 31) / 32 * sizeof(*heads));
	for (int64_t i = 0; i < nrows; i++)
	{
		int first = 0, all = 0;

		if (rows->mask && !rows->mask[i])
			continue;
		if (last >= 0 || rows->last_before >= 0)
		{
			for (int k = 0; k < rows->nkeys && all == 0; k++)
			{
				all = last >= 0 ?
					compare_values(&rows->column[k], i, &rows->column[k], last) :
					compare_values(&rows->column[k], i, &rows->column_before[k], rows->last_before);
				first = k == 0 ? all : first;
			}
			*order |= (all > 0     ? HEADS_ASCEND :
						   all < 0 ? HEADS_DESCEND :
									 0) |
				(first > 0     ? HEADS_FIRST_ASCENDS :
					 first < 0 ? HEADS_FIRST_DESCENDS :
								 0);
		}
		else
			all = 1;
		if (all != 0)
			heads[i / 32] |= 1u << (i % 32);
		last = i;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_head_keys(const PackKeys *pack, const uint32_t *heads, const int32_t *before, int64_t nrows,
				 void *out, gpuagg_stream stream)
{
	int64_t run = nrows > 0 ? before[0] - 1 : 0;

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		if (heads[i / 32] >> (i % 32) & 1)
			pack_one(pack, i, (char *) out + ++run * pack->key_bytes);
	return GPUAGG_CUDA_OK;
}

/* Writes the packed key of a bin: from the hash table's keys, or computed from the bin. */
static void
unpack_key(const GroupKeys *keys, int64_t bin, char *key)
{
	memset(key, 0, keys->key_bytes);
	if (keys->table)
		memcpy(key, (const char *) keys->table + bin * keys->table_bytes, keys->table_bytes);
	for (int k = keys->nkeys - 1; k >= 0 && keys->table == NULL; k--)
	{
		int64_t digit = bin % keys->extent[k];
		int64_t value = keys->min[k] + digit;

		bin /= keys->extent[k];
		if (keys->has_null[k] && digit == keys->extent[k] - 1)
			key[keys->null_offset] |= 1 << k;
		else
			memcpy(key + keys->offset[k], &value, keys->width[k]);
	}
}

/* ---- groups ---- */

GpuaggCudaStatus
device_group_keys(const GroupKeys *keys, const int32_t *list, int64_t n, void *out,
				  gpuagg_stream stream)
{
	LAUNCH();
	stub_write(out, n * keys->key_bytes, stream);
	for (int64_t i = 0; i < n; i++)
		unpack_key(keys, list ? list[i] : (int32_t) i, (char *) out + i * keys->key_bytes);
	return GPUAGG_CUDA_OK;
}

/* Implements LimitKey for a TopGroups. */
static const char *
key_within(const void *arg, int64_t i, char *space)
{
	const TopGroups *top = arg;

	if (top->counts && top->counts[i] == 0)
		return NULL;
	if (top->reads_keys)
		unpack_key(&top->keys, (int32_t) i, space);
	return limit_passes(&top->plan, i, space) ? space : NULL;
}

GpuaggCudaStatus
device_top_groups(const TopGroups *top, int64_t n, int32_t *list, int32_t *nlisted,
				  TopCounts *counts, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	LimitSearch search;
	char space[WIRE_MAX_KEY_BYTES];

	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	*nlisted = 0;
	*counts = (TopCounts){0};
	for (int64_t i = 0; i < n; i++)
	{
		bool has_rows = top->counts == NULL || top->counts[i] > 0;

		counts->all += has_rows;
		counts->failed += has_rows && key_within(top, i, space) == NULL;
	}
	limit_search(&top->plan, key_within, top, n, counts->all - counts->failed, &search);
	for (int64_t i = 0; i < n; i++)
		if (key_within(top, i, space) && limit_contains(&top->plan, &search, i, space))
			list[(*nlisted)++] = (int32_t) i;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_list_groups(const int64_t *counts, int64_t n, int32_t *list, int32_t *nlisted,
				   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	*nlisted = 0;
	for (int64_t i = 0; i < n; i++)
		if (counts[i] > 0)
			list[(*nlisted)++] = (int32_t) i;
	return GPUAGG_CUDA_OK;
}

/* ---- groups of another device ---- */

GpuaggCudaStatus
device_unpack_keys(const UnpackKeys *unpack, const void *keys, int64_t n, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < unpack->nkeys; k++)
		{
			const char *key = (const char *) keys + i * unpack->key_bytes;
			bool null =
				unpack->null_offset < unpack->key_bytes && (key[unpack->null_offset] >> k & 1);

			memcpy((char *) unpack->values[k] + i * unpack->width[k], key + unpack->offset[k],
				   unpack->width[k]);
			if (unpack->validity[k])
				unpack->validity[k][i / 32] =
					(unpack->validity[k][i / 32] & ~(1u << i % 32)) | (uint32_t) !null << i % 32;
		}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_combine_states(const CombineStates *in, gpuagg_stream stream)
{
	size_t size = gpuagg_monoids[in->monoid].state_size;

	(void) stream;
	LAUNCH_UPDATE();
	for (int64_t i = 0; i < in->n * in->width; i++)
	{
		int64_t bin = in->bins ? in->bins[i / in->width] * (int64_t) in->width + i % in->width : i;

		if (in->from == NULL)
			((int64_t *) in->states)[bin]++;
		else
			*in->errors |= (unsigned) stub_operators[in->monoid].combine(
				(char *) in->states + bin * size, (const char *) in->from + i * size);
	}
	return GPUAGG_CUDA_OK;
}
