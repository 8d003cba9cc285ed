/*
 * spill.c
 *	  Partitions in temporary files; see spill.h.
 *
 * A record is its length and bytes.  A row's bytes are a NULL bitmap, an odd
 * bitmap, then the values that are not NULL.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
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

static void
write_record(PartitionSet *set, BufFile **file, const StringInfo record)
{
	uint32		len = record->len;

	if (*file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(set));

		*file = BufFileCreateTemp(false);
		set->nfiles++;
		MemoryContextSwitchTo(old);
	}
	BufFileWrite(*file, &len, sizeof(len));
	BufFileWrite(*file, record->data, len);
	set->bytes += sizeof(len) + len;
}

/* Each level hashes anew, so that a partition splits again. */
static Partition *
hash_partition(PartitionSet *set, uint64 hash)
{
	hash = hash_bytes_extended((const unsigned char *) &hash, sizeof(hash), set->level);
	return &set->parts[hash % set->n];
}

void
partition_write_row(PartitionSet *set, uint64 hash, const StringInfo record)
{
	write_record(set, &hash_partition(set, hash)->rows, record);
}

void
partition_write_state(PartitionSet *set, uint64 hash, const StringInfo record)
{
	write_record(set, &hash_partition(set, hash)->states, record);
}

static void
rewind_file(BufFile *file)
{
	if (file && BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of aggregation")));
}

void
partition_set_finish(PartitionSet *set, PartitionList *list)
{
	if (list->n + set->n > list->capacity)
	{
		int			capacity = list->n + set->n * 2;

		if (list->parts)
			list->parts = repalloc(list->parts, capacity * sizeof(Partition));
		else
			list->parts = MemoryContextAlloc(GetMemoryChunkContext(set),
											 capacity * sizeof(Partition));
		list->capacity = capacity;
	}
	for (int p = 0; p < set->n; p++)
	{
		if (!set->parts[p].rows && !set->parts[p].states)
			continue;
		rewind_file(set->parts[p].rows);
		rewind_file(set->parts[p].states);
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
	if (part->states)
		BufFileClose(part->states);
	part->rows = part->states = NULL;
}

void
partition_list_clear(PartitionList *list)
{
	while (list->n > 0)
		partition_close(&list->parts[--list->n]);
}

static void
read_bytes(BufFile *file, void *data, size_t len)
{
	if (BufFileRead(file, data, len) != len)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of aggregation")));
}

bool
partition_read(BufFile *file, StringInfo record)
{
	uint32		len;
	size_t		n = BufFileRead(file, &len, sizeof(len));

	if (n == 0)
		return false;
	if (n != sizeof(len))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of aggregation")));
	resetStringInfo(record);
	enlargeStringInfo(record, len);
	read_bytes(file, record->data, len);
	record->len = len;
	return true;
}

/* ---- values ------------------------------------------------------------- */

void
put_datum(StringInfo record, Datum value, bool typbyval, int16 typlen)
{
	uint32		len;
	const char *data = DatumGetPointer(value);

	if (typbyval)
	{
		appendBinaryStringInfo(record, (const char *) &value, sizeof(value));
		return;
	}
	if (typlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(data))
	{
		ExpandedObjectHeader *object = DatumGetEOHP(value);

		len = EOH_get_flat_size(object);
		appendBinaryStringInfo(record, (const char *) &len, sizeof(len));
		enlargeStringInfo(record, len);
		/* flattening wants aligned memory */
		{
			void	   *flat = palloc(len);

			EOH_flatten_into(object, flat, len);
			appendBinaryStringInfo(record, flat, len);
			pfree(flat);
		}
		return;
	}
	len = datumGetSize(value, typbyval, typlen);
	appendBinaryStringInfo(record, (const char *) &len, sizeof(len));
	appendBinaryStringInfo(record, data, len);
}

/* By-reference values are copied to the current memory context. */
Datum
get_datum(const char **pos, bool typbyval, int16 typlen)
{
	Datum		value;
	uint32		len;
	char	   *copy;

	if (typbyval)
	{
		memcpy(&value, *pos, sizeof(value));
		*pos += sizeof(value);
		return value;
	}
	memcpy(&len, *pos, sizeof(len));
	*pos += sizeof(len);
	copy = palloc(len);
	memcpy(copy, *pos, len);
	*pos += len;
	return PointerGetDatum(copy);
}

/* ---- rows --------------------------------------------------------------- */

static inline void
byte_set(char *bits, int i)
{
	bits[i / 8] |= 1 << (i % 8);
}

static inline bool
byte_get(const char *bits, int i)
{
	return (bits[i / 8] >> (i % 8)) & 1;
}

/* One fixed-width value; a call of memcpy for each would cost more than it moves. */
static inline void
copy_value(char *to, const char *from, int width)
{
	switch (width)
	{
		case 1:
			*to = *from;
			break;
		case 2:
			memcpy(to, from, 2);
			break;
		case 4:
			memcpy(to, from, 4);
			break;
		case 8:
			memcpy(to, from, 8);
			break;
		default:
			memcpy(to, from, 16);
	}
}

void
spill_encode_row(StringInfo record, const AggSpec *spec, const Batch *batch, int i)
{
	int			bytes = (spec->ncols + 7) / 8;

	/* room for all fixed-width values, so that those need no checks */
	resetStringInfo(record);
	enlargeStringInfo(record, 2 * bytes + spec->ncols * sizeof(gpuagg_i128));
	memset(record->data, 0, 2 * bytes);
	record->len = 2 * bytes;
	for (int c = 0; c < spec->ncols; c++)
	{
		const Column *col = &batch->cols[c];
		int			width = column_width(col->type);

		if (column_is_null(col, i))
			byte_set(record->data, c);
		else if (column_is_unrepresentable(col, i))
		{
			byte_set(record->data + bytes, c);
			put_datum(record, col->unrepresentable_values[i], false, -1);
			enlargeStringInfo(record, spec->ncols * sizeof(gpuagg_i128));
		}
		else if (col->type == COLUMN_DATUM)
		{
			put_datum(record, ((Datum *) col->values)[i], spec->cols[c].typbyval,
					  spec->cols[c].typlen);
			enlargeStringInfo(record, spec->ncols * sizeof(gpuagg_i128));
		}
		else
		{
			copy_value(record->data + record->len, (char *) col->values + (size_t) i * width, width);
			record->len += width;
		}
	}
}

RowReader *
row_reader_create(const AggSpec *spec, int batch_rows)
{
	RowReader  *reader = palloc0(sizeof(RowReader));
	int			words = BITMAP_WORDS(batch_rows);

	reader->spec = spec;
	reader->datum_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg spilled values",
											  ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&reader->record);
	reader->batch.capacity = batch_rows;
	reader->batch.ncols = spec->ncols;
	reader->batch.cols = palloc0(Max(spec->ncols, 1) * sizeof(Column));
	reader->validity = palloc(Max(spec->ncols, 1) * sizeof(uint64 *));
	reader->unrepresentable = palloc0(Max(spec->ncols, 1) * sizeof(uint64 *));
	for (int c = 0; c < spec->ncols; c++)
	{
		Column	   *col = &reader->batch.cols[c];

		col->type = spec->cols[c].type;
		col->scale = spec->cols[c].scale;
		/* 16-byte integers are read in place */
		col->values = palloc(batch_rows * column_width(col->type) + 16);
		col->values = (void *) TYPEALIGN(16, (uintptr_t) col->values);
		reader->validity[c] = palloc(words * sizeof(uint64));
		if (col->type == COLUMN_DEC)
		{
			reader->unrepresentable[c] = palloc(words * sizeof(uint64));
			col->unrepresentable_values = palloc(batch_rows * sizeof(Datum));
		}
	}
	return reader;
}

/* A by-reference value, which counts for the batch. */
static Datum
read_reference(RowReader *reader, const char **pos, int16 typlen)
{
	Datum		value = get_datum(pos, false, typlen);

	reader->bytes += datum_bytes(value, typlen);
	return value;
}

static void
decode_row(RowReader *reader, int i, const char *nulls)
{
	const AggSpec *spec = reader->spec;
	int			bytes = (spec->ncols + 7) / 8;
	const char *pos = nulls + 2 * bytes;

	for (int c = 0; c < spec->ncols; c++)
	{
		Column	   *col = &reader->batch.cols[c];
		int			width = column_width(col->type);

		if (byte_get(nulls, c))
		{
			bitmap_clear(reader->validity[c], i);
			col->validity = reader->validity[c];
		}
		else if (byte_get(nulls + bytes, c))
		{
			bitmap_set(reader->unrepresentable[c], i);
			col->unrepresentable = reader->unrepresentable[c];
			col->unrepresentable_values[i] = read_reference(reader, &pos, -1);
		}
		else if (col->type == COLUMN_DATUM && !spec->cols[c].typbyval)
			((Datum *) col->values)[i] = read_reference(reader, &pos, spec->cols[c].typlen);
		else if (col->type == COLUMN_DATUM)
			((Datum *) col->values)[i] = get_datum(&pos, true, spec->cols[c].typlen);
		else
		{
			copy_value((char *) col->values + (size_t) i * width, pos, width);
			pos += width;
		}
	}
}

void
row_reader_begin(RowReader *reader)
{
	Batch	   *batch = &reader->batch;
	size_t		bitmap = BITMAP_WORDS(batch->capacity) * sizeof(uint64);

	MemoryContextReset(reader->datum_cxt);
	for (int c = 0; c < batch->ncols; c++)
	{
		batch->cols[c].validity = NULL;
		batch->cols[c].unrepresentable = NULL;
		memset(reader->validity[c], 0xff, bitmap);
		if (reader->unrepresentable[c])
			memset(reader->unrepresentable[c], 0, bitmap);
	}
	batch->nrows = 0;
	reader->bytes = 0;
}

void
row_reader_add(RowReader *reader, const char *data)
{
	MemoryContext old = MemoryContextSwitchTo(reader->datum_cxt);

	decode_row(reader, reader->batch.nrows++, data);
	MemoryContextSwitchTo(old);
}

const Batch *
row_reader_next(RowReader *reader, BufFile *file)
{
	Batch	   *batch = &reader->batch;

	row_reader_begin(reader);
	while (!row_reader_full(reader) && partition_read(file, &reader->record))
		row_reader_add(reader, reader->record.data);
	return batch->nrows > 0 ? batch : NULL;
}
