/*
 * column_keys.c
 *	  Keys of groups that are codes of a stored column, and least and greatest texts that are ranks
 *	  of its values: values are fetched by code.
 *
 * Where equality of a key is equality of its bytes, the codes of the column's dictionary, which the
 * server has, are as good as those of the query's own dictionary. So no value is looked up for a
 * query, however many the column has, and only groups that leave need their values.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "engine_cuda/cuda_engine.h"
#include "engine_cuda/dictionaries.h"

/* The buffer for codes and values. Groups are in buffer 0. */
#define VALUES_BUFFER 1

static int
compare_codes(const void *a, const void *b)
{
	uint32 x = *(const uint32 *) a;
	uint32 y = *(const uint32 *) b;

	return x < y ? -1 : x > y;
}

/* Makes values of the images in the answer. Returns false if the answer is not valid. */
static bool
read_values(const CudaEngine *cuda, const ColumnSpec *spec, const WireValued *in, const char *from,
			size_t room, Datum *values)
{
	const uint32 *lengths = (const uint32 *) from;
	const char *image = from + in->n * sizeof(uint32);
	size_t left = in->bytes;

	if ((size_t) in->n * sizeof(uint32) + in->bytes > room)
		return false;
	for (uint32 i = 0; i < in->n; i++)
	{
		uint32 length = lengths[i];

		if (length > left ||
			!cuda_make_value(spec->typlen, spec->typbyval, image, length, &values[i]))
			return false;
		image += length;
		left -= length;
	}
	return true;
}

/*
 * Fetches the values of n codes, or of as many as one answer has: *done. Takes their bytes from
 * *left. Returns false if the session is lost.
 */
static bool
fetch_portion(CudaEngine *cuda, const CudaColumn *col, const uint32 *codes, uint32 n, Datum *values,
			  uint32 *done, size_t *left)
{
	Client *client = cuda->client;
	size_t room = client->welcome.buffer_bytes;
	char *buffer = client->arena + VALUES_BUFFER * room;
	size_t at = wire_align(n * sizeof(uint32));
	WireValues message = {.stored = col->stored, .n = n, .buffer = VALUES_BUFFER};
	WireValued in;

	memcpy(buffer, codes, n * sizeof(uint32));
	if (!client_send(client, MESSAGE_VALUES, &message, sizeof(message)) ||
		!client_receive(client, MESSAGE_VALUED, &in, sizeof(in)))
		return false;
	client_settle(client);
	*done = in.n;
	*left -= Min(*left, in.bytes);
	cuda->bytes_from_device += in.bytes;
	return (in.n > 0 && in.n <= n &&
			read_values(cuda, &cuda->spec->cols[col->col], &in, buffer + at, room - at, values)) ||
		client_fail(client, "the GPU server sent an invalid answer");
}

/* Returns whether a code is that of a stored value; else sets what it means. */
static bool
is_stored(const CudaColumn *col, uint32 code, Datum *value, bool *null)
{
	*null = code == (col->chosen ? (uint32) COLUMN_NULL : col->nvalues);
	*value = (Datum) 0;
	if (!*null && col->chosen && (int32) code < 0)
	{
		*value = col->constants[COLUMN_CONSTANT - (int32) code];
		return false;
	}
	return !*null;
}

/*
 * Sets the values of n groups' codes of a column. *left is as for cuda_fetch_keys(). Returns false
 * if the session is lost.
 */
static bool
fetch_values(CudaEngine *cuda, const CudaColumn *col, const uint32 *of, int n, size_t *left,
			 Datum *values, bool *nulls)
{
	uint32 *codes = palloc((n + 1) * sizeof(uint32));
	Datum *found = palloc((n + 1) * sizeof(Datum));
	uint32 m = 0;
	uint32 distinct = 0;
	uint32 done;

	for (int g = 0; g < n; g++)
	{
		if (is_stored(col, of[g], &values[g], &nulls[g]))
			codes[m++] = of[g];
	}
	/* with several keys, groups share values */
	qsort(codes, m, sizeof(uint32), compare_codes);
	for (uint32 i = 0; i < m; i++)
		if (i == 0 || codes[i] != codes[distinct - 1])
			codes[distinct++] = codes[i];
	for (uint32 at = 0; at<distinct && * left> 0; at += done)
	{
		CHECK_FOR_INTERRUPTS();
		if (!fetch_portion(cuda, col, codes + at, distinct - at, found + at, &done, left))
			return false;
	}
	for (int g = 0; g<n && * left> 0; g++)
		if (is_stored(col, of[g], &values[g], &nulls[g]))
			values[g] =
				found[(uint32 *) bsearch(&of[g], codes, distinct, sizeof(uint32), compare_codes) -
					  codes];
	pfree(codes);
	pfree(found);
	return true;
}

bool
cuda_fetch_keys(CudaEngine *cuda, int k, const char *packed, int n, size_t *left, Datum *values,
				bool *nulls)
{
	const CudaQuery *query = cuda->query;
	uint32 *codes = palloc((n + 1) * sizeof(uint32));
	bool ok;

	for (int g = 0; g < n; g++)
		codes[g] = cuda_query_code(query, k, packed + (size_t) g * query->wire->key_bytes);
	ok = fetch_values(cuda, &query->cols[query->keycol[k]], codes, n, left, values, nulls);
	pfree(codes);
	return ok;
}

bool
cuda_fetch_ranked(CudaEngine *cuda, const WireGroups *groups, const char *buffer, size_t *left,
				  GroupBatch *out)
{
	for (int f = 0; f<cuda->spec->nfallbacks && * left> 0; f++)
	{
		const CudaRanked *ranked = &cuda->query->ranked[f];
		const CudaColumn *col = &cuda->query->cols[ranked->col];
		const int32 *ranks;
		uint32 *codes;

		if (ranked->order == NULL)
			continue;
		ranks = (const int32 *) (buffer + groups->slots[ranked->slot]);
		codes = palloc((out->ngroups + 1) * sizeof(uint32));
		/* the operator's identity is no rank: there is no text */
		for (int g = 0; g < out->ngroups; g++)
			codes[g] = ranks[g] >= 0 && (uint32) ranks[g] < col->nvalues ? ranked->order[ranks[g]] :
																		   col->nvalues;
		if (!fetch_values(cuda, col, codes, out->ngroups, left, out->fallbacks[f],
						  out->fallback_nulls[f]))
			return false;
		pfree(codes);
	}
	return true;
}
