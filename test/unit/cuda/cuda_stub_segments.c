/*
 * cuda_stub_segments.c
 *	  The library's sorting, and its segments and runs of rows, on the host; see
 *	  cuda_stub_kernels.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"

/* ---- rows in order ---- */

typedef struct Sort
{
	int nwords;
	const GpuaggSortWord *words;
	uint64_t without; /* bits to be ignored; only set if there is one word */
} Sort;

static _Thread_local Sort sorting;

/* For qsort: compares two row numbers by the words of `sorting`, then by number. */
static int
compare_rows(const void *a, const void *b)
{
	int64_t x = *(const int64_t *) a;
	int64_t y = *(const int64_t *) b;

	for (int w = 0; w < sorting.nwords; w++)
	{
		GpuaggColumn column = {.values = sorting.words[w].values, .type = sorting.words[w].type};
		int64_t u = stub_load_integer(&column, x) & ~sorting.without;
		int64_t v = stub_load_integer(&column, y) & ~sorting.without;

		if (u != v)
			return (u < v) != sorting.words[w].descending ? -1 : 1;
	}
	return x < y ? -1 : x > y;
}

GpuaggCudaStatus
gpuagg_cuda_sort_rows(int64_t n, int nwords, const GpuaggSortWord *words, int64_t *permutation,
					  void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		permutation[i] = i;
	sorting = (Sort){nwords, words, 0};
	qsort(permutation, n, sizeof(int64_t), compare_rows);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_select_rows(int64_t n, const int64_t *permutation, const uint8_t *keep,
						int64_t *selected, int64_t *nselected_device, void *workspace,
						size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	*nselected_device = 0;
	for (int64_t i = 0; i < n; i++)
		if (keep[permutation[i]])
			selected[(*nselected_device)++] = permutation[i];
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index, int64_t n, void *out,
				   gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		memcpy((char *) out + i * row_size, (const char *) in + index[i] * row_size, row_size);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_segments_from_bins(const int32_t *bins, int64_t n, int64_t *offsets,
							   int64_t *nsegments_device, void *workspace, size_t *workspace_bytes,
							   gpuagg_stream stream)
{
	int64_t nsegments = 0;

	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || bins[i] != bins[i - 1])
			offsets[nsegments++] = i;
	offsets[nsegments] = n;
	*nsegments_device = nsegments;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_segmented_reduce(const GpuaggSegments *segments, MonoidId op, const void *values,
							 void *states, void *workspace, size_t *workspace_bytes,
							 gpuagg_stream stream)
{
	(void) stream;
	if (gpuagg_monoids[op].commutative)
		return GPUAGG_CUDA_UNSUPPORTED;
	SIZE(workspace, workspace_bytes);
	LAUNCH_UPDATE();
	for (int64_t s = 0; s < segments->nsegments; s++)
	{
		char *state = (char *) states + s * gpuagg_monoids[op].state_size;

		stub_operators[op].fill(state, 1);
		for (int64_t i = segments->offsets[s]; i < segments->offsets[s + 1]; i++)
			stub_operators[op].step(state,
									(const char *) values + i * gpuagg_monoids[op].input_size);
	}
	return GPUAGG_CUDA_OK;
}

/* ---- runs ---- */

GpuaggCudaStatus
gpuagg_runs_number(const uint32_t *heads, int64_t words, int32_t *before, void *workspace,
				   size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	before[0] = 0;
	for (int64_t w = 0; w < words; w++)
		before[w + 1] = before[w] + __builtin_popcount(heads[w]);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_runs_sort(int key_bytes, const void *keys, int64_t nrows, int bits, void *sorted,
				 uint32_t *order, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	GpuaggSortWord word = {.values = keys,
						   .type = key_bytes == 4 ? GPUAGG_VALUE_I32 : GPUAGG_VALUE_I64};
	int64_t *rows;

	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	rows = malloc(nrows * sizeof(*rows));
	for (int64_t i = 0; i < nrows; i++)
		rows[i] = i;
	sorting = (Sort){1, &word, bits < 8 * key_bytes ? ~(uint64_t) 0 << bits : 0};
	qsort(rows, nrows, sizeof(*rows), compare_rows);
	for (int64_t i = 0; i < nrows; i++)
	{
		order[i] = (uint32_t) rows[i];
		memcpy((char *) sorted + i * key_bytes, (const char *) keys + rows[i] * key_bytes,
			   key_bytes);
	}
	free(rows);
	return GPUAGG_CUDA_OK;
}

/* For qsort: compares two bins. */
static int
compare_bins(const void *a, const void *b)
{
	int32_t x = *(const int32_t *) a;
	int32_t y = *(const int32_t *) b;

	return x < y ? -1 : x > y;
}

/*
 * Returns whether no two runs have the same bin. Kernels rely on it: they update states without
 * atomics.
 */
static bool
runs_have_own_bins(const GpuaggRuns *runs)
{
	int64_t first = runs->before[0];
	int64_t n = runs->before[(runs->nrows + 31) / 32] - first;
	int32_t *bins = malloc((n + 1) * sizeof(*bins));
	bool ok = true;

	memcpy(bins, runs->bins + first, n * sizeof(*bins));
	qsort(bins, n, sizeof(*bins), compare_bins);
	for (int64_t i = 1; i < n; i++)
		ok = ok && bins[i] != bins[i - 1];
	free(bins);
	return ok;
}

/* Returns the bin of each row, or -1 for rows that are left out. The caller frees the array. */
static int32_t *
bins_of_runs(const GpuaggRuns *runs)
{
	int64_t run = runs->nrows > 0 ? runs->before[0] - 1 : 0;
	int32_t *bins = malloc((runs->nrows + 1) * sizeof(*bins));

	for (int64_t i = 0; i < runs->nrows; i++)
	{
		run += runs->heads[i / 32] >> (i % 32) & 1;
		bins[i] = runs->filter && !runs->filter[runs->order ? runs->order[i] : i] ? -1 :
			runs->bins ? runs->bins[run] :
						 (int32_t) run;
	}
	return bins;
}

GpuaggCudaStatus
gpuagg_runs_update(const GpuaggRuns *runs, const GpuaggSlot *slot, uint32_t *errors,
				   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	GpuaggCudaStatus status = stub_check_slot(slot);
	int32_t *bins;

	(void) stream;
	if (status != GPUAGG_CUDA_OK)
		return GPUAGG_CUDA_UNSUPPORTED;
	SIZE(workspace, workspace_bytes);
	LAUNCH_UPDATE();
	if (runs->bins && runs->nrows > 0 && !runs_have_own_bins(runs))
	{
		printf("Bail out! two runs have the same bin\n");
		exit(1);
	}
	bins = bins_of_runs(runs);
	*errors |= stub_operators[slot->op].update(
		slot->states,
		&(StubRows){runs->nrows, bins, runs->order, &slot->x, &slot->y, slot->filter});
	free(bins);
	return GPUAGG_CUDA_OK;
}
