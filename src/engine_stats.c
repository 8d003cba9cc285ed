/*
 * engine_stats.c
 *	  Adds up the statistics of several engines.
 */
#include "postgres.h"

#include "engine.h"

/* Adds the statistics of work on a device to a total. */
static void
add_device(DeviceStats *total, const DeviceStats *stats)
{
	total->bytes_to += stats->bytes_to;
	total->bytes_from += stats->bytes_from;
	total->copy_ms += stats->copy_ms;
	total->kernel_ms += stats->kernel_ms;
	total->open_ms += stats->open_ms;
	total->proof_ms += stats->proof_ms;
	total->resident_ms += stats->resident_ms;
	total->finish_ms += stats->finish_ms;
	total->fetch_ms += stats->fetch_ms;
	total->server_ms += stats->server_ms;
	total->cpu_fallback_rows += stats->cpu_fallback_rows;
	total->rows_resident += stats->rows_resident;
	total->passes = Max(total->passes, stats->passes);
	total->uploaded += stats->uploaded;
	total->cells_sent += stats->cells_sent;
	total->cells_kept += stats->cells_kept;
	total->memory += stats->memory;
	total->retries += stats->retries;
	total->devices = Max(total->devices, stats->devices);
	if (total->limit == 0)
	{
		total->limit = stats->limit;
		total->limit_keys = stats->limit_keys;
		total->limit_ties = stats->limit_ties;
	}
}

void
engine_stats_add(EngineStats *total, const EngineStats *stats)
{
	if ((stats->rows > 0 && stats->strategy[0] != '\0') || total->strategy[0] == '\0')
		strlcpy(total->strategy, stats->strategy, sizeof(total->strategy));
	if (total->not_resident[0] == '\0')
		strlcpy(total->not_resident, stats->not_resident, sizeof(total->not_resident));
	total->rows += stats->rows;
	total->batches += stats->batches;
	total->groups += stats->groups;
	total->returned += stats->returned;
	total->mem_peak += stats->mem_peak;
	total->spilled_bytes += stats->spilled_bytes;
	total->spill_partitions += stats->spill_partitions;
	total->values += stats->values;
	total->changes += stats->changes;
	total->early += stats->early;
	total->parts += stats->parts;
	add_device(&total->device, &stats->device);
}
