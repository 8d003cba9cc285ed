/*
 * cuda_stub_sets.c
 *	  The server's small kernels on values of sets, on the host; see cuda_stub_kernels.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"

GpuaggCudaStatus
device_init_set(SetCounts *counts, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	*counts = (SetCounts){0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0};
	return GPUAGG_CUDA_OK;
}

/* Stores the codes of the value beside that of row i. */
static void
keep_beside(const SetRows *rows, int64_t i, const SetArrays *to, SetCounts *counts)
{
	GpuaggColumn column = stub_column_of(&rows->beside);
	int null = !stub_is_valid(column.validity, i);
	int64_t code = stub_load_integer(&column, i);
	int32_t order = rows->order ? rows->order[i] : wire_beside_order(null, rows->descending);

	if (rows->order == NULL)
		code = wire_beside_code(code, null, rows->descending);
	counts->beside_min = code < counts->beside_min ? code : counts->beside_min;
	counts->beside_max = code > counts->beside_max ? code : counts->beside_max;
	counts->last += order;
	to->beside[counts->n] = code;
	to->order[counts->n] = order;
}

/* Appends values from the last row backwards, because the order is undefined. */
GpuaggCudaStatus
device_keep_values(const SetRows *rows, int64_t nrows, const SetArrays *to, SetCounts *counts,
				   gpuagg_stream stream)
{
	GpuaggColumn column = stub_column_of(&rows->column);

	(void) stream;
	LAUNCH();
	for (int64_t i = nrows - 1; i >= 0; i--)
	{
		int64_t x;

		if ((rows->filter && !rows->filter[i]) || !stub_is_valid(column.validity, i) ||
			rows->bins[i] < 0)
			continue;
		x = stub_load_integer(&column, i);
		counts->min = x < counts->min ? x : counts->min;
		counts->max = x > counts->max ? x : counts->max;
		if (rows->beside.values)
			keep_beside(rows, i, to, counts);
		to->bins[counts->n] = rows->bins[i];
		to->values[counts->n++] = x;
	}
	return GPUAGG_CUDA_OK;
}

typedef struct Pair
{
	uint64_t key;
	int64_t number;
} Pair;

/*
 * Sorts stably by the highest `bits` bits of the keys. A radix sort, as qsort is too slow for the
 * tests.
 */
static void
sort_pairs(Pair *pairs, int64_t n, int bits)
{
	Pair *sorted = malloc(n * sizeof(*sorted));

	for (int shift = (64 - bits) & ~7; shift < 64; shift += 8)
	{
		int64_t first[257] = {0};

		for (int64_t i = 0; i < n; i++)
			first[(pairs[i].key >> shift & 255) + 1]++;
		for (int byte = 0; byte < 255; byte++)
			first[byte + 1] += first[byte];
		for (int64_t i = 0; i < n; i++)
			sorted[first[pairs[i].key >> shift & 255]++] = pairs[i];
		for (int64_t i = 0; i < n; i++)
			pairs[i] = sorted[i];
	}
	free(sorted);
}

/*
 * Sorts by the lowest `bits` bits. The sorted arrays are the spare ones, which become bins[0] and
 * values[0]; the former input is overwritten.
 */
GpuaggCudaStatus
device_sort_values(bool by_bin, int32_t *bins[2], int64_t *values[2], int64_t n, int bits,
				   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	int all = by_bin ? 32 : 64;
	int32_t *b = bins[0];
	int64_t *v = values[0];
	Pair *pairs;

	(void) stream;
	if (workspace == NULL)
	{
		*workspace_bytes = WORKSPACE;
		return GPUAGG_CUDA_OK;
	}
	if (*workspace_bytes < WORKSPACE || bits < 1 || bits > all)
		return GPUAGG_CUDA_INVALID;
	memset(workspace, 0x77, WORKSPACE);
	LAUNCH();
	pairs = malloc(n * sizeof(*pairs));
	for (int64_t i = 0; i < n; i++)
	{
		uint64_t key = (uint64_t) (by_bin ? b[i] : v[i]);

		if (bits == all)
			key ^= UINT64_C(1) << (all - 1);
		pairs[i] = (Pair){key << (64 - bits), i};
	}
	sort_pairs(pairs, n, bits);
	for (int64_t i = 0; i < n; i++)
	{
		bins[1][i] = b[pairs[i].number];
		values[1][i] = v[pairs[i].number];
	}
	free(pairs);
	memset(b, 0x55, n * sizeof(*b));
	memset(v, 0x55, n * sizeof(*v));
	bins[0] = bins[1], bins[1] = b;
	values[0] = values[1], values[1] = v;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_sort_numbers(int32_t *keys[2], int32_t *numbers[2], int64_t n, int bits, void *workspace,
					size_t *workspace_bytes, gpuagg_stream stream)
{
	int32_t *k = keys[0], *v = numbers[0];
	Pair *pairs;

	(void) stream;
	if (workspace == NULL)
	{
		*workspace_bytes = WORKSPACE;
		return GPUAGG_CUDA_OK;
	}
	if (*workspace_bytes < WORKSPACE || bits < 1 || bits > 31)
		return GPUAGG_CUDA_INVALID;
	memset(workspace, 0x77, WORKSPACE);
	LAUNCH();
	pairs = malloc(n * sizeof(*pairs));
	for (int64_t i = 0; i < n; i++)
		pairs[i] = (Pair){(uint64_t) k[i] << (64 - bits), i};
	sort_pairs(pairs, n, bits);
	for (int64_t i = 0; i < n; i++)
	{
		keys[1][i] = k[pairs[i].number];
		numbers[1][i] = v[pairs[i].number];
	}
	free(pairs);
	memset(k, 0x55, n * sizeof(*k));
	memset(v, 0x55, n * sizeof(*v));
	keys[0] = keys[1], keys[1] = k;
	numbers[0] = numbers[1], numbers[1] = v;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_number_values(int32_t *numbers, int64_t n, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		numbers[i] = (int32_t) i;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_distinct_values(const int32_t *bins, const int64_t *values, int64_t n, uint8_t *distinct,
					   gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		distinct[i] = i == 0 || values[i] != values[i - 1] || bins[i] != bins[i - 1];
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_list_firsts(const int32_t *bins, const int64_t *values, int64_t n, int32_t *firsts,
				   int32_t *nfirsts, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	int32_t listed = 0;

	(void) stream;
	if (workspace == NULL)
	{
		*workspace_bytes = WORKSPACE;
		return GPUAGG_CUDA_OK;
	}
	if (*workspace_bytes < WORKSPACE)
		return GPUAGG_CUDA_INVALID;
	memset(workspace, 0x77, WORKSPACE);
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || values[i] != values[i - 1] || bins[i] != bins[i - 1])
			firsts[listed++] = (int32_t) i;
	*nfirsts = listed;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_first_values(const int32_t *bins, int64_t n, int64_t *first, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || bins[i] != bins[i - 1])
			first[bins[i]] = i;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_modes(const int32_t *bins, const int64_t *values, int64_t n, bool last, int64_t *modes,
			 gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0, first = 0; i < n; i++)
	{
		int64_t mode;

		if (i > 0 && (values[i] != values[i - 1] || bins[i] != bins[i - 1]))
			first = i;
		mode = wire_mode_of(i - first + 1, first, last);
		modes[bins[i]] = mode > modes[bins[i]] ? mode : modes[bins[i]];
	}
	return GPUAGG_CUDA_OK;
}
