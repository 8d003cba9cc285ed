/*
 * spill.h
 *	  Records in temporary files, partitioned by a hash of the keys.
 *
 * When memory is used up, rows whose group is not in the table go to the files of a partition set.
 * Groups that are in the table may follow them. Later the partitions are read back one at a time,
 * groups before rows, each in the order in which they were written. A partition that is still too
 * large is partitioned again, on the next level.
 *
 * The store of values (value_store_internal.h) has a format of its own: it partitions by group
 * number instead of a hash, and writes arrays of codes instead of records, because its values are 8
 * bytes each and need no keys.
 *
 * Files belong to the current resource owner, which closes them after errors.
 */
#ifndef GPUAGG_SPILL_H
#define GPUAGG_SPILL_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/buffile.h"

typedef struct Partition
{
	BufFile *rows; /* NULL: no rows */
	BufFile *groups;
	uint64 bytes; /* in its files */
	int level;    /* how often its rows have been partitioned */
} Partition;

typedef struct PartitionSet
{
	int n;            /* partitions */
	int level;        /* selects the hash */
	int nfiles;       /* files that were created */
	uint64 bytes;     /* written to them */
	Partition *parts; /* [n] */
} PartitionSet;

/* Partitions still to be read; the last one is next. */
typedef struct PartitionList
{
	int n;
	int capacity;
	Partition *parts;
} PartitionList;

/*
 * Groups may take this many bytes in any case, beyond what is taken without a group. So each pass
 * over a partition completes groups of that many bytes, however small the memory is: the number of
 * partitions is bounded by the bytes of all groups.
 */
#define SPILL_LEAST_BYTES ((size_t) 32 * 1024)

/*
 * Returns the bytes that groups may take before others go to partitions. `limit`: bytes of memory
 * for them; `empty`: those that are taken without a group.
 */
static inline size_t
spill_memory(size_t limit, size_t empty)
{
	return Max(limit, empty + SPILL_LEAST_BYTES);
}

/* Creates n empty partitions for rows that have been partitioned `level` times before. */
extern PartitionSet *partition_set_create(MemoryContext cxt, int n, int level);
/* Appends the record of a row, or of a group, to the partition that its hash selects. */
extern void partition_write_row(PartitionSet *set, uint64 hash, const StringInfo record);
extern void partition_write_group(PartitionSet *set, uint64 hash, const StringInfo record);
/* Moves a set's files, set to their beginnings, to the list, and frees the set. */
extern void partition_set_finish(PartitionSet *set, PartitionList *list);
/* Moves the list's last partition to *part, which the caller closes; false if the list is empty. */
extern bool partition_list_pop(PartitionList *list, Partition *part);
/* Closes the files of all partitions, and empties the list. */
extern void partition_list_clear(PartitionList *list);
/* Closes the files of a partition, if it has any, and sets them to NULL. */
extern void partition_close(Partition *part);
/* Sets a file, if it is not NULL, to its beginning. */
extern void partition_rewind(BufFile *file);
/* Reads the next record of a file; false at its end. */
extern bool partition_read(BufFile *file, StringInfo record);

#endif /* GPUAGG_SPILL_H */
