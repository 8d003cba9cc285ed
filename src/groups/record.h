/*
 * record.h
 *	  Rows and groups as bytes: in temporary files, and between processes of a parallel plan.
 *
 * The format is that of this process's memory. Records never leave the query.
 */
#ifndef GPUAGG_RECORD_H
#define GPUAGG_RECORD_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/buffile.h"

#include "batch.h"
#include "columns/column_writer.h"
#include "engine.h"
#include "spec.h"

/* ---- rows --------------------------------------------------------------- */

/* Writes row i of a batch to *record. */
extern void row_record_write(StringInfo record, const AggSpec *spec, const Batch *batch, int i);

/* Makes batches of records. */
typedef struct RowReader
{
	const AggSpec *spec;
	Batch batch;
	MemoryContext datum_cxt; /* by-reference values of the batch */
	ColumnWriter *writers;   /* [column of the batch] */
	StringInfoData record;
	size_t bytes; /* by-reference values of the batch, detoasted */
} RowReader;

/* Allocates in the current context. */
extern RowReader *row_reader_create(const AggSpec *spec, int batch_rows);
/* row_reader_begin empties the batch; row_reader_add adds the row of a record to it. */
extern void row_reader_begin(RowReader *reader);
extern void row_reader_add(RowReader *reader, const char *data);
/* Returns whether the batch must end here. */
static inline bool
row_reader_full(const RowReader *reader)
{
	return reader->batch.nrows >= reader->batch.capacity || reader->bytes >= BATCH_BYTES;
}

/* Reads the next batch of a file; NULL at its end. */
extern const Batch *row_reader_next(RowReader *reader, BufFile *file);

/* ---- groups ------------------------------------------------------------- */

/* Bytes of a slot's states in one group. */
static inline size_t
slot_bytes(const SlotSpec *slot)
{
	return (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
}

/* States in a GroupBatch begin at multiples of this. */
#define STATE_ALIGN 16

/* Allocates arrays for n groups, in the current context. Without `states`, slots[] are NULL. */
extern void group_batch_init(GroupBatch *groups, const AggSpec *spec, int n, bool states);

/* Writes a group to *record. Transition values of type internal must be serialized already. */
extern void group_record_write(StringInfo record, const AggSpec *spec, const GroupBatch *groups,
							   int g);

/* Makes groups of records. */
typedef struct GroupReader
{
	const AggSpec *spec;
	GroupBatch groups; /* transition values of type internal are serialized */
	int capacity;
	MemoryContext datum_cxt; /* by-reference values of the groups */
	StringInfoData record;
	size_t bytes; /* bytes of records read since group_reader_clear */
} GroupReader;

/* Creates a reader in a child context of `parent`, which group_reader_free deletes. */
extern GroupReader *group_reader_create(const AggSpec *spec, MemoryContext parent);
extern void group_reader_free(GroupReader *reader);
/* Adds the group of reader->record. */
extern void group_reader_add(GroupReader *reader);
/* Returns whether the groups must be used before the next one is added. */
static inline bool
group_reader_full(const GroupReader *reader)
{
	return reader->groups.ngroups >= reader->capacity || reader->bytes >= BATCH_BYTES;
}

/* Forgets the groups that were added. */
extern void group_reader_clear(GroupReader *reader);

#endif /* GPUAGG_RECORD_H */
