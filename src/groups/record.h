/*
 * record.h
 *	  Rows and groups as bytes: in temporary files, and between processes.
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

/* Makes *record of row i of a batch. */
extern void row_record_write(StringInfo record, const AggSpec *spec, const Batch *batch, int i);

/* Records back to batches. */
typedef struct RowReader
{
	const AggSpec *spec;
	Batch batch;
	MemoryContext datum_cxt; /* by-reference values of the batch */
	ColumnWriter *writers;   /* of its columns */
	StringInfoData record;
	size_t bytes; /* of the batch's by-reference values, detoasted */
} RowReader;

/* In the current context. */
extern RowReader *row_reader_create(const AggSpec *spec, int batch_rows);
/* Empties the batch; adds a row from a record of `data`. */
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

/* ---- groups ------------------------------------------------------------- */

/* Bytes of a slot's states in one group. */
static inline size_t
slot_bytes(const SlotSpec *slot)
{
	return (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
}

/* States in a GroupBatch begin at multiples of this. */
#define STATE_ALIGN 16

/* Arrays for n groups, in the current context; without `states` those of slots are NULL. */
extern void group_batch_init(GroupBatch *groups, const AggSpec *spec, int n, bool states);

/* Makes *record of a group; transition values of type internal are serialized. */
extern void group_record_write(StringInfo record, const AggSpec *spec, const GroupBatch *groups,
							   int g);

/* Records back to groups. */
typedef struct GroupReader
{
	const AggSpec *spec;
	GroupBatch groups; /* transition values of type internal are serialized */
	int capacity;
	MemoryContext datum_cxt; /* by-reference values of the groups */
	StringInfoData record;
	size_t bytes; /* of the records */
} GroupReader;

/* Below `parent`; group_reader_free gives the memory back. */
extern GroupReader *group_reader_create(const AggSpec *spec, MemoryContext parent);
extern void group_reader_free(GroupReader *reader);
/* Adds the group of reader->record. */
extern void group_reader_add(GroupReader *reader);
/* Must these groups be read before the next one? */
static inline bool
group_reader_full(const GroupReader *reader)
{
	return reader->groups.ngroups >= reader->capacity || reader->bytes >= BATCH_BYTES;
}

/* None yet. */
extern void group_reader_clear(GroupReader *reader);

#endif /* GPUAGG_RECORD_H */
