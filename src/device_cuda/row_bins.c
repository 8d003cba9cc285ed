/*
 * row_bins.c
 *	  Finds the bins of rows: the groups that their keys belong to.
 *
 * Bins are made as an array of int32 only where something reads it.  Histograms can also compute
 * bins from key columns, and reduce runs of equal keys without bins.
 */
#include "device_cuda/device_internal.h"

/* Makes room for an int32 of each row in scratch.bins. */
static DeviceStatus
reserve_bins(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	size_t bytes = (size_t) rows->nrows * sizeof(int32_t);

	if (query->scratch.bins.at == NULL || query->scratch.bins.bytes < bytes)
		query->scratch.nzeros = 0;
	return memory_reserve(query, &query->scratch.bins, bytes, error);
}

/*
 * Returns the values of the only key column, if they can serve as packed keys without a copy.
 * Returns NULL if the keys must be packed.
 */
static const void *
keys_in_place(const DeviceQuery *query, const Rows *rows)
{
	const WireKey *key = &query->q->keys[0];

	return query->q->nkeys == 1 && key->width == query->groups.hash.table.key_bytes &&
			!key_has_nulls(query->q, rows, 0) ?
		rows->cols[key->col].values :
		NULL;
}

/* Writes the packed keys of the rows to scratch.keys. */
static DeviceStatus
pack_keys(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	PackKeys pack = keys_of_columns(query->q, rows->cols);

	pack.key_bytes = query->groups.hash.table.key_bytes;
	DEVICE_CHECK(
		memory_reserve(query, &query->scratch.keys, (size_t) rows->nrows * pack.key_bytes, error));
	KERNEL_CHECK(device_pack_keys(&pack, rows->nrows, query->scratch.keys.at, query->stream));
	return DEVICE_OK;
}

/* Finds the bins of sorted rows: looks up each of the n runs instead of each row. */
static DeviceStatus
locate_sorted(DeviceQuery *query, const Rows *rows, int64_t n, DeviceError *error)
{
	int key_bytes = query->groups.hash.table.key_bytes;
	PackKeys pack = {
		.nkeys = 1, .key_bytes = key_bytes, .null_offset = key_bytes, .width = {key_bytes}};

	pack.column[0] = (DeviceColumn){.values = query->runs.sorted_keys.at,
									.type = key_bytes == 4 ? WIRE_I32 : WIRE_I64};
	/* the packed keys of the rows are sorted now; their memory is free for the keys of the runs */
	DEVICE_CHECK(memory_reserve(query, &query->scratch.keys, n * key_bytes, error));
	KERNEL_CHECK(device_head_keys(&pack, query->runs.heads.at, query->runs.before.at, rows->nrows,
								  query->scratch.keys.at, query->stream));
	DEVICE_CHECK(groups_look_up(query, query->scratch.keys.at, NULL, NULL, n,
								query->scratch.bins.at, error));
	query->location.runs = (GpuaggRuns){
		.heads = query->runs.heads.at,
		.before = query->runs.before.at,
		.order = query->runs.row_numbers.at,
		.bins = query->scratch.bins.at,
	};
	return DEVICE_OK;
}

/*
 * FORM_HASH: looks up the keys of the rows, and inserts new ones.  The bins are in scratch.bins,
 * unless the rows are partitioned by key.
 */
static DeviceStatus
locate_hash(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	const void *keys = keys_in_place(query, rows);
	int64_t n = 0;
	bool parted;

	if (query->groups.hash.shortened)
	{
		DEVICE_CHECK(reserve_bins(query, rows, error));
		DEVICE_CHECK(keys_shorten(query, rows->cols, rows->filter, rows->nrows,
								  query->scratch.bins.at, error));
	}
	else if (keys == NULL)
		DEVICE_CHECK(pack_keys(query, rows, error));
	if (keys == NULL)
		keys = query->scratch.keys.at;
	DEVICE_CHECK(parts_locate(query, rows, keys, &parted, error));
	if (parted)
		return DEVICE_OK;
	DEVICE_CHECK(reserve_bins(query, rows, error));
	DEVICE_CHECK(runs_sort(query, rows, keys, &n, error));
	query->stats.sorted = n > 0;
	if (query->stats.sorted)
		return locate_sorted(query, rows, n, error);
	return groups_look_up(query, keys, rows->cols, rows->filter, rows->nrows,
						  query->scratch.bins.at, error);
}

/*
 * Returns whether something reads scratch.bins itself.  Sketches do not: they can find the group of
 * a row from its key, as histograms do.
 */
static bool
needs_bins(const WireQuery *q)
{
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE && !slot_is_sketch(q, s))
			return true;
	return wire_keeps_rows(q);
}

/*
 * Returns whether histograms can read the keys instead of bins.  They read one int32 key as fast as
 * a column of bins, and some kernels read two.  For all other keys, for NULLs and for filters the
 * bins are made once, because several calls may read them.
 */
static bool
keys_can_replace_bins(const DeviceQuery *query, const GpuaggBins *bins)
{
	if (bins->ncolumns > 2 || bins->filter != NULL || needs_bins(query->q))
		return false;
	for (int k = 0; k < bins->ncolumns; k++)
		if (bins->column[k].type != GPUAGG_VALUE_I32 || bins->column[k].validity != NULL)
			return false;
	return true;
}

DeviceStatus
groups_make_bins(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	DEVICE_CHECK(reserve_bins(query, rows, error));
	KERNEL_CHECK(gpuagg_hist_bins(&query->location.bins, rows->nrows, query->scratch.bins.at,
								  query->status.at, query->stream));
	query->location.bins =
		(GpuaggBins){.kind = GPUAGG_BIN_INDEX, .ncolumns = 1, .nbins = query->location.bins.nbins};
	query->location.bins.column[0] =
		(GpuaggColumn){.values = query->scratch.bins.at, .type = GPUAGG_VALUE_I32};
	return DEVICE_OK;
}

/* FORM_DIRECT: computes the bins from the keys, unless histograms can read the keys themselves. */
static DeviceStatus
locate_direct(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	query->location.bins = groups_bins(query, rows);
	return keys_can_replace_bins(query, &query->location.bins) ?
		DEVICE_OK :
		groups_make_bins(query, rows, error);
}

/*
 * FORM_SINGLE: all rows are in bin 0, except those that the filter excludes, which have bin -1.
 * Makes the bins only if something reads them.
 */
static DeviceStatus
locate_single(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	if (!rows->filter && !wire_keeps_rows(query->q))
		return DEVICE_OK;
	DEVICE_CHECK(reserve_bins(query, rows, error));
	if (rows->filter)
	{
		query->scratch.nzeros = 0;
		KERNEL_CHECK(
			device_filter_bins(rows->filter, rows->nrows, query->scratch.bins.at, query->stream));
	}
	else if (query->scratch.nzeros < rows->nrows)
	{
		CUDA_CHECK(cudaMemsetAsync(query->scratch.bins.at, 0,
								   (size_t) rows->nrows * sizeof(int32_t), query->stream));
		query->scratch.nzeros = rows->nrows;
	}
	return DEVICE_OK;
}

const int32_t *
groups_of_rows(const DeviceQuery *query, const Rows *rows)
{
	return query->groups.form == FORM_SINGLE && rows->filter == NULL ? NULL :
																	   query->scratch.bins.at;
}

DeviceStatus
groups_locate(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	DeviceStatus status;

	DEVICE_CHECK(groups_fit(query, rows, error));
	query->location.runs = (GpuaggRuns){.heads = rows->heads, .before = rows->before};
	query->location.parts = NULL;
	query->location.bins = (GpuaggBins){.kind = GPUAGG_BIN_INDEX, .ncolumns = 1};
	if (query->groups.form == FORM_DIRECT)
		status = locate_direct(query, rows, error);
	else if (query->groups.form == FORM_HASH)
		status = locate_hash(query, rows, error);
	else if (query->groups.form == FORM_RUNS)
		status = DEVICE_OK;
	else
		status = locate_single(query, rows, error);
	if (query->location.bins.kind == GPUAGG_BIN_INDEX && query->location.parts == NULL)
		query->location.bins.column[0] =
			(GpuaggColumn){.values = groups_of_rows(query, rows), .type = GPUAGG_VALUE_I32};
	query->location.bins.nbins =
		query->groups.form == FORM_HASH ? query->groups.ntable : query->groups.states.capacity;
	return status;
}
