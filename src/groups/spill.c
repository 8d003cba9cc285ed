/*
 * spill.c
 *	  Partitions in temporary files; see spill.h. A record is its length followed by its bytes.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "groups/spill.h"

/* ---- partitions --------------------------------------------------------- */

PartitionSet *
partition_set_create(MemoryContext cxt, int n, int level)
{
	PartitionSet *set = MemoryContextAllocZero(cxt, sizeof(PartitionSet));

	set->n = n;
	set->level = level;
	set->parts = MemoryContextAllocZero(cxt, n * sizeof(Partition));
	for (int p = 0; p < n; p++)
		set->parts[p].level = level + 1;
	return set;
}

/* Appends a record to *file of a partition, which is created if NULL. */
static void
write_record(PartitionSet *set, Partition *part, BufFile **file, const StringInfo record)
{
	uint32 len = record->len;

	if (*file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(set));

		*file = BufFileCreateTemp(false);
		set->nfiles++;
		MemoryContextSwitchTo(old);
	}
	BufFileWrite(*file, &len, sizeof(len));
	BufFileWrite(*file, record->data, len);
	part->bytes += sizeof(len) + len;
	set->bytes += sizeof(len) + len;
}

/*
 * Returns the partition for a hash of keys. Each level hashes it in another way, so that a
 * partition can be partitioned again.
 */
static Partition *
hash_partition(PartitionSet *set, uint64 hash)
{
	hash = hash_bytes_extended((const unsigned char *) &hash, sizeof(hash), set->level);
	return &set->parts[hash % set->n];
}

void
partition_write_row(PartitionSet *set, uint64 hash, const StringInfo record)
{
	Partition *part = hash_partition(set, hash);

	write_record(set, part, &part->rows, record);
}

void
partition_write_group(PartitionSet *set, uint64 hash, const StringInfo record)
{
	Partition *part = hash_partition(set, hash);

	write_record(set, part, &part->groups, record);
}

void
partition_rewind(BufFile *file)
{
	if (file && BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(
			ERROR,
			(errcode_for_file_access(), errmsg("could not rewind temporary file of aggregation")));
}

void
partition_set_finish(PartitionSet *set, PartitionList *list)
{
	if (list->n + set->n > list->capacity)
	{
		int capacity = list->n + set->n * 2;

		if (list->parts)
			list->parts = repalloc(list->parts, capacity * sizeof(Partition));
		else
			list->parts =
				MemoryContextAlloc(GetMemoryChunkContext(set), capacity * sizeof(Partition));
		list->capacity = capacity;
	}
	for (int p = 0; p < set->n; p++)
	{
		if (!set->parts[p].rows && !set->parts[p].groups)
			continue;
		partition_rewind(set->parts[p].rows);
		partition_rewind(set->parts[p].groups);
		list->parts[list->n++] = set->parts[p];
	}
	pfree(set->parts);
	pfree(set);
}

bool
partition_list_pop(PartitionList *list, Partition *part)
{
	if (list->n == 0)
		return false;
	*part = list->parts[--list->n];
	return true;
}

void
partition_close(Partition *part)
{
	if (part->rows)
		BufFileClose(part->rows);
	if (part->groups)
		BufFileClose(part->groups);
	part->rows = part->groups = NULL;
}

void
partition_list_clear(PartitionList *list)
{
	while (list->n > 0)
		partition_close(&list->parts[--list->n]);
}

bool
partition_read(BufFile *file, StringInfo record)
{
	uint32 len;

	if (!compat_read_file(file, &len, sizeof(len), true))
		return false;
	resetStringInfo(record);
	enlargeStringInfo(record, len);
	compat_read_file(file, record->data, len, false);
	record->len = len;
	return true;
}
