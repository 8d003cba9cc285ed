/*
 * key_runs.c
 *	  Runs of equal keys in rows that are in the order of their keys, either as they are stored or
 *	  after sorting.  Each run is reduced as a segment.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/* ---- rows that are stored in order ---- */

bool
runs_are_allowed(const DeviceQuery *query)
{
	const WireQuery *q = query->q;

	if (query->groups.form != FORM_UNKNOWN || q->nkeys == 0 || q->key_bytes == 0 ||
		wire_keeps_rows(q))
		return false;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE)
			return false;
	return q->forced == STRATEGY_AUTO || q->forced == STRATEGY_SEGMENTED ||
		q->forced == STRATEGY_SORT;
}

/* Returns whether strategy.c chooses one state per run, in the order of the rows. */
static bool
segments_are_chosen(const DeviceQuery *query, double rows, double runs)
{
	const WireQuery *q = query->q;
	const WireDevice *d = budget_device(query->device);
	StrategyDevice device = {.gpu = true, .l2_bytes = d->l2_bytes, .memory_bytes = d->limit};
	StrategyInput input = {
		.forced = q->forced,
		.nkeys = q->nkeys,
		.keys_integer = true,
		.grouped = true,
		.rows = rows,
		.groups = runs,
		.mean_run = rows / runs,
		.state_bytes = (int) wire_group_bytes(q),
		.key_bytes = q->key_bytes,
	};
	StrategyChoice choice;

	strategy_choose(&device, &input, &choice);
	return choice.strategy == STRATEGY_SEGMENTED;
}

DeviceStatus
runs_number(DeviceQuery *query, int64_t words, double rows, int64_t *n, uint32_t *order,
			bool *segmented, DeviceError *error)
{
	KernelStatus *status = query->status.at;
	size_t bytes = 0;
	int32_t runs = 0;

	KERNEL_CHECK(gpuagg_runs_number(query->runs.heads.at, words, query->runs.before.at, NULL,
									&bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error));
	KERNEL_CHECK(gpuagg_runs_number(query->runs.heads.at, words, query->runs.before.at,
									query->scratch.workspace.at, &bytes, query->stream));
	DEVICE_CHECK(device_query_copy_out(query, (int32_t *) query->runs.before.at + words,
									   sizeof(runs), 0, error));
	DEVICE_CHECK(device_query_copy_out(query, &status->order, sizeof(*order), sizeof(runs), error));
	DEVICE_CHECK(device_query_wait(query, error));
	memcpy(&runs, query->page, sizeof(runs));
	memcpy(order, query->page + sizeof(runs), sizeof(*order));
	*n = runs;
	*segmented = runs > 0 &&
		(*order & (HEADS_ASCEND | HEADS_DESCEND)) != (HEADS_ASCEND | HEADS_DESCEND) &&
		segments_are_chosen(query, rows, runs);
	return DEVICE_OK;
}

/* ---- rows that are sorted ---- */

/* Returns whether to sort the rows by key, and look up each run instead of each row. */
static bool
should_sort_rows(const DeviceQuery *query, const Rows *rows)
{
	const WireQuery *q = query->q;

	if (wire_keeps_rows(q))
		return false;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE)
			return false;
	/* with a filter there would be runs without rows, whose keys must not become groups */
	return q->forced == STRATEGY_SORT && rows->nrows >= SPLIT_ROWS && rows->filter == NULL &&
		query->groups.hash.table.key_bytes <= 8 && !query->groups.hash.shortened;
}

/* Returns the number of low bits in which keys may differ.  Bits of NULL are above the value's. */
static int
key_bits(const DeviceQuery *query, const Rows *rows)
{
	int all = 8 * query->groups.hash.table.key_bytes;
	int bits;

	if (query->q->nkeys > 1 || rows->cols[query->q->keys[0].col].validity || rows->key_min[0] < 0 ||
		rows->key_max[0] < rows->key_min[0])
		return all;
	bits = rows->key_max[0] == 0 ? 1 : 64 - __builtin_clzll(rows->key_max[0]);
	return bits < all ? bits : all;
}

/* Sorts the rows and finds their runs.  Waits for the number of runs. */
static DeviceStatus
sort_rows_by_key(DeviceQuery *query, const Rows *rows, const void *keys, int64_t *nruns,
				 DeviceError *error)
{
	int key_bytes = query->groups.hash.table.key_bytes;
	int64_t words = (rows->nrows + 31) / 32;
	uint32_t *order = &((KernelStatus *) query->status.at)->order;
	HeadRows sorted = {.nkeys = 1,
					   .last_before = -1,
					   .column = {{NULL, NULL, key_bytes == 4 ? WIRE_I32 : WIRE_I64}}};
	int bits = key_bits(query, rows);
	size_t sort_bytes = 0, number_bytes = 0;
	int32_t n = 0;

	DEVICE_CHECK(memory_reserve(query, &query->runs.sorted_keys, rows->nrows * key_bytes, error));
	DEVICE_CHECK(
		memory_reserve(query, &query->runs.row_numbers, rows->nrows * sizeof(uint32_t), error));
	DEVICE_CHECK(memory_reserve(query, &query->runs.heads, words * sizeof(uint32_t), error));
	DEVICE_CHECK(memory_reserve(query, &query->runs.before, (words + 1) * sizeof(int32_t), error));
	KERNEL_CHECK(gpuagg_runs_sort(key_bytes, keys, rows->nrows, bits, query->runs.sorted_keys.at,
								  query->runs.row_numbers.at, NULL, &sort_bytes, query->stream));
	KERNEL_CHECK(gpuagg_runs_number(query->runs.heads.at, words, query->runs.before.at, NULL,
									&number_bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace,
								sort_bytes > number_bytes ? sort_bytes : number_bytes, error));
	KERNEL_CHECK(gpuagg_runs_sort(key_bytes, keys, rows->nrows, bits, query->runs.sorted_keys.at,
								  query->runs.row_numbers.at, query->scratch.workspace.at,
								  &sort_bytes, query->stream));
	sorted.column[0].values = query->runs.sorted_keys.at;
	CUDA_CHECK(cudaMemsetAsync(order, 0, sizeof(*order), query->stream));
	KERNEL_CHECK(
		device_find_heads(&sorted, rows->nrows, query->runs.heads.at, order, query->stream));
	KERNEL_CHECK(gpuagg_runs_number(query->runs.heads.at, words, query->runs.before.at,
									query->scratch.workspace.at, &number_bytes, query->stream));
	DEVICE_CHECK(
		device_query_read(query, &n, (int32_t *) query->runs.before.at + words, sizeof(n), error));
	*nruns = n;
	return DEVICE_OK;
}

DeviceStatus
runs_sort(DeviceQuery *query, const Rows *rows, const void *keys, int64_t *nruns,
		  DeviceError *error)
{
	DeviceStatus status;

	*nruns = 0;
	if (!should_sort_rows(query, rows))
		return DEVICE_OK;
	status = sort_rows_by_key(query, rows, keys, nruns, error);
	if (status != DEVICE_NO_MEMORY)
		return status;
	memory_release(query, &query->runs.sorted_keys);
	memory_release(query, &query->runs.row_numbers);
	memory_release(query, &query->runs.heads);
	memory_release(query, &query->runs.before);
	return DEVICE_OK;
}
