/*
 * spill.h
 *	  Rows and group states in temporary files, partitioned by key hash.
 *
 * When memory is used up, rows of groups that have no place go to the files of
 * a partition set, and come back one partition at a time.  Order within a
 * partition is input order, states before rows.
 *
 * Files belong to the current resource owner, which closes them after errors.
 */
#ifndef GPUAGG_SPILL_H
#define GPUAGG_SPILL_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/buffile.h"

#include "batch.h"
#include "spec.h"

typedef struct Partition
{
	BufFile    *rows;			/* NULL: none */
	BufFile    *states;
	int			level;			/* how often its rows have been partitioned */
} Partition;

typedef struct PartitionSet
{
	int			n;
	int			level;
	int			nfiles;
	uint64		bytes;
	Partition  *parts;
} PartitionSet;

/* Partitions yet to be read; the last one is next. */
typedef struct PartitionList
{
	int			n;
	int			capacity;
	Partition  *parts;
} PartitionList;

/* Reads rows back as batches. */
typedef struct RowReader
{
	const AggSpec *spec;
	Batch		batch;
	MemoryContext datum_cxt;	/* by-reference values of the batch */
	uint64	  **validity;		/* [column] */
	uint64	  **unrepresentable;
	StringInfoData record;
	size_t		bytes;			/* of the batch's by-reference values, detoasted */
} RowReader;

extern PartitionSet *partition_set_create(MemoryContext cxt, int n, int level);
extern void partition_write_row(PartitionSet *set, uint64 hash, const StringInfo record);
extern void partition_write_state(PartitionSet *set, uint64 hash, const StringInfo record);
/* Moves a set's files to the list and frees the set. */
extern void partition_set_finish(PartitionSet *set, PartitionList *list);
extern bool partition_list_pop(PartitionList *list, Partition *part);
extern void partition_list_clear(PartitionList *list);
extern void partition_close(Partition *part);
/* The next record of a file; false at its end. */
extern bool partition_read(BufFile *file, StringInfo record);

extern void spill_encode_row(StringInfo record, const AggSpec *spec, const Batch *batch, int i);
extern RowReader *row_reader_create(const AggSpec *spec, int batch_rows);
/* Batches made by hand: none yet, and one more row from a record of `data`. */
extern void row_reader_begin(RowReader *reader);
extern void row_reader_add(RowReader *reader, const char *data);
/* Must the batch end? */
static inline bool
row_reader_full(const RowReader *reader)
{
	return reader->batch.nrows >= reader->batch.capacity || reader->bytes >= BATCH_BYTES;
}

/* The next batch of a file; NULL at its end. */
extern const Batch *row_reader_next(RowReader *reader, BufFile *file);

/* Values as bytes. */
extern void put_datum(StringInfo record, Datum value, bool typbyval, int16 typlen);
extern Datum get_datum(const char **pos, bool typbyval, int16 typlen);

#endif							/* GPUAGG_SPILL_H */
