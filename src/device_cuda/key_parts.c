/*
 * key_parts.c
 *	  Partitions rows of very many groups by their keys, instead of looking up each row.
 *
 * The kernel library moves the rows with the columns that the slots read, and numbers the groups
 * (gpuagg_group_partition).  Then only the groups are looked up.  Rows have no bins: histograms add
 * them as they were moved.  So all slots must be histograms with one state per group.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/* Returns how many groups to expect: those so far, or the planner's estimate. */
static double
expected_groups(const DeviceQuery *query)
{
	double found = query->groups.ntable * 1.25;

	return found > query->q->est_groups ? found : query->q->est_groups;
}

/* Returns whether rows and groups are many, and all slots are histograms of rows. */
static bool
may_partition(const DeviceQuery *query, const Rows *rows)
{
	const WireQuery *q = query->q;

	if (rows->nrows < PARTED_ROWS || expected_groups(query) < PARTED_GROUPS ||
		query->groups.hash.shortened || wire_keeps_rows(q) || q->forced == STRATEGY_SORT)
		return false;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE)
			return false;
	return true;
}

/*
 * Adds a column to those that are moved.  Columns that cannot be moved, or are too many, are read
 * by the numbers of rows.
 */
static void
move_column(GpuaggKeyParts *parts, const GpuaggColumn *column)
{
	if (column->validity)
		parts->numbers = 1;
	if (column->values == NULL || parts->numbers)
		return;
	for (int c = 0; c < parts->nmoved; c++)
		if (parts->moved[c].values == column->values)
			return;
	if (parts->nmoved == GPUAGG_MAX_MOVED || column->type == GPUAGG_VALUE_NATIVE)
		parts->numbers = 1;
	else
		parts->moved[parts->nmoved++] = *column;
}

/* Describes the rows: their number, and the columns that the slots read. */
static GpuaggKeyParts
describe_parts(const DeviceQuery *query, const Rows *rows, double groups)
{
	GpuaggKeyParts parts = {.nrows = rows->nrows,
							.groups = groups < rows->nrows ? (int64_t) groups : rows->nrows};

	for (int s = -1; s < query->q->nslots; s++)
		if (slot_is_computed(query, s))
		{
			GpuaggSlot slot = kernel_slot(query, rows, s);

			if (slot.filter)
				parts.numbers = 1;
			move_column(&parts, &slot.x);
			move_column(&parts, &slot.y);
		}
	if (parts.numbers)
		parts.nmoved = 0;
	return parts;
}

/* Returns whether histograms of partitioned rows support each slot, together with a count. */
static bool
support_slots(const DeviceQuery *query, const Rows *rows, const GpuaggKeyParts *parts)
{
	for (int s = -1; s < query->q->nslots; s++)
		if (slot_is_computed(query, s))
		{
			GpuaggHist hist = {.bins.nbins = 1, .nslots = 2, .nrows = rows->nrows, .parts = parts};
			GpuaggHistChoice choice;

			hist.slot[0] = (GpuaggSlot){.op = MONOID_COUNT};
			hist.slot[1] = kernel_slot(query, rows, s);
			if (gpuagg_hist_choose(&hist, &choice) != GPUAGG_CUDA_OK)
				return false;
		}
	return true;
}

/*
 * Partitions the rows for so many groups.  Sets *n to the number of groups.  *taken is false if
 * that is not supported, or there is no memory, or *overflow is set: there are more groups.
 */
static DeviceStatus
partition_rows(DeviceQuery *query, const Rows *rows, const void *keys, double groups, int64_t *n,
			   bool *taken, bool *overflow, DeviceError *error)
{
	GpuaggKeyParts *parts = &query->parted.parts;
	const GpuaggGroupTable *table = &query->groups.hash.table;
	GpuaggKeyCounts counts;
	size_t bytes = 0;
	DeviceStatus status;

	*taken = *overflow = false;
	*parts = describe_parts(query, rows, groups);
	if (gpuagg_group_partition(table, keys, rows->filter, parts, NULL, &bytes, query->stream) !=
			GPUAGG_CUDA_OK ||
		!support_slots(query, rows, parts))
		return DEVICE_OK;
	status = memory_reserve(query, &query->parted.memory, bytes, error);
	if (status == DEVICE_NO_MEMORY)
		return DEVICE_OK;
	DEVICE_CHECK(status);
	KERNEL_CHECK(gpuagg_group_partition(table, keys, rows->filter, parts, query->parted.memory.at,
										&bytes, query->stream));
	DEVICE_CHECK(device_query_read(query, &counts, parts->counts, sizeof(counts), error));
	*n = (int64_t) counts.groups;
	*overflow = counts.overflows > 0;
	*taken = !*overflow;
	return DEVICE_OK;
}

DeviceStatus
parts_locate(DeviceQuery *query, const Rows *rows, const void *keys, bool *taken,
			 DeviceError *error)
{
	bool overflow;
	int64_t n;
	DeviceStatus status = DEVICE_OK;

	*taken = false;
	if (!may_partition(query, rows))
		return DEVICE_OK;
	DEVICE_CHECK(
		partition_rows(query, rows, keys, expected_groups(query), &n, taken, &overflow, error));
	/* the estimate was too low */
	if (overflow)
		DEVICE_CHECK(
			partition_rows(query, rows, keys, (double) rows->nrows, &n, taken, &overflow, error));
	if (*taken)
	{
		status = groups_add_parts(query, &query->parted.parts, n, error);
		/* a lookup of each row needs less memory */
		*taken = status != DEVICE_NO_MEMORY;
	}
	if (!*taken)
	{
		memory_release(query, &query->parted.memory);
		return DEVICE_OK;
	}
	DEVICE_CHECK(status);
	query->location.parts = &query->parted.parts;
	return DEVICE_OK;
}
