/*
 * record.c
 *	  Rows and groups as bytes; see record.h.
 *
 * A row is a bitmap of NULLs, a bitmap of unrepresentable numerics, then the values that are not
 * NULL. A group is its keys and its transition values, each after a byte that says whether it is
 * NULL, then the states of all slots.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "groups/record.h"
#include "groups/spill.h"

/* ---- values ------------------------------------------------------------- */

/* Appends a value that is not NULL: by-reference values as a length and bytes. */
static void
put_datum(StringInfo record, Datum value, bool typbyval, int16 typlen)
{
	uint32 len;
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
		/* EOH_flatten_into needs aligned memory */
		{
			void *flat = palloc(len);

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

/*
 * Reads the value at *pos, which is not NULL, and advances *pos. By-reference values are copied to
 * the current context.
 */
static Datum
get_datum(const char **pos, bool typbyval, int16 typlen)
{
	Datum value;
	uint32 len;
	char *copy;

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

/* Sets bit i of a bitmap. */
static inline void
set_bit(char *bits, int i)
{
	bits[i / 8] |= 1 << (i % 8);
}

/* Returns bit i of a bitmap. */
static inline bool
get_bit(const char *bits, int i)
{
	return (bits[i / 8] >> (i % 8)) & 1;
}

/* Copies one fixed-width value. Calling memcpy for each would cost more than the copying. */
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
row_record_write(StringInfo record, const AggSpec *spec, const Batch *batch, int i)
{
	int bytes = (spec->ncols + 7) / 8;

	/* room for all fixed-width values, so that appending them needs no checks */
	resetStringInfo(record);
	enlargeStringInfo(record, 2 * bytes + spec->ncols * sizeof(gpuagg_i128));
	memset(record->data, 0, 2 * bytes);
	record->len = 2 * bytes;
	for (int c = 0; c < spec->ncols; c++)
	{
		const Column *col = &batch->cols[c];
		int width = column_width(col->type);

		if (column_is_null(col, i))
			set_bit(record->data, c);
		else if (column_is_unrepresentable(col, i))
		{
			set_bit(record->data + bytes, c);
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
			gpuagg_i128 value;
			const char *from = (char *) col->values + (size_t) i * width;

			if (col->narrow)
			{
				value = column_narrow_value(col, i);
				from = (const char *) &value; /* little-endian */
			}
			copy_value(record->data + record->len, from, width);
			record->len += width;
		}
	}
}

RowReader *
row_reader_create(const AggSpec *spec, int batch_rows)
{
	RowReader *reader = palloc0(sizeof(RowReader));

	reader->spec = spec;
	reader->datum_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg spilled values",
											  ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&reader->record);
	reader->batch.capacity = batch_rows;
	reader->batch.ncols = spec->ncols;
	reader->batch.cols = palloc0(Max(spec->ncols, 1) * sizeof(Column));
	reader->writers = palloc0(Max(spec->ncols, 1) * sizeof(ColumnWriter));
	for (int c = 0; c < spec->ncols; c++)
		column_writer_init(&reader->writers[c], &reader->batch.cols[c], &spec->cols[c], batch_rows,
						   NULL);
	return reader;
}

/* Reads a by-reference value, and adds its detoasted size to reader->bytes. */
static Datum
read_reference(RowReader *reader, const char **pos, int16 typlen)
{
	Datum value = get_datum(pos, false, typlen);

	reader->bytes += datum_bytes(value, typlen);
	return value;
}

/* Reads a row's record, which begins with the bitmap `nulls`, into row i of the batch. */
static void
decode_row(RowReader *reader, int i, const char *nulls)
{
	const AggSpec *spec = reader->spec;
	int bytes = (spec->ncols + 7) / 8;
	const char *pos = nulls + 2 * bytes;

	for (int c = 0; c < spec->ncols; c++)
	{
		Column *col = &reader->batch.cols[c];
		int width = column_width(col->type);

		if (get_bit(nulls, c))
			column_write_null(&reader->writers[c], i);
		else if (get_bit(nulls + bytes, c))
			column_mark_unrepresentable(&reader->writers[c], i, read_reference(reader, &pos, -1));
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
	MemoryContextReset(reader->datum_cxt);
	for (int c = 0; c < reader->batch.ncols; c++)
		column_begin(&reader->writers[c]);
	reader->batch.nrows = 0;
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
	Batch *batch = &reader->batch;

	row_reader_begin(reader);
	while (!row_reader_full(reader) && partition_read(file, &reader->record))
		row_reader_add(reader, reader->record.data);
	return batch->nrows > 0 ? batch : NULL;
}

/* ---- groups ------------------------------------------------------------- */

/* Most groups that are read at a time, and the bytes of their states. */
#define READ_GROUPS 256
#define READ_BYTES (1024 * 1024)

/*
 * Returns the bytes of all states of a group. Raises an error if they do not fit into one
 * allocation together with the keys.
 */
static size_t
states_bytes(const AggSpec *spec)
{
	size_t bytes = 0;

	for (int s = 0; s < spec->nslots; s++)
		bytes += slot_bytes(&spec->slots[s]);
	if (bytes > MaxAllocSize / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("states of one group need %zu bytes", bytes),
				 errdetail("At most %zu bytes can be merged.", (size_t) MaxAllocSize / 2)));
	return bytes;
}

/*
 * Returns the typlen that a transition value has in a record: type internal is serialized as bytea.
 */
static int16
transition_length(const FallbackAgg *fallback)
{
	return fallback->transtype == INTERNALOID ? -1 : fallback->translen;
}

/* Returns whether a transition value is stored by value in a record. */
static bool
transition_byval(const FallbackAgg *fallback)
{
	return fallback->transtype != INTERNALOID && fallback->transbyval;
}

void
group_record_write(StringInfo record, const AggSpec *spec, const GroupBatch *groups, int g)
{
	resetStringInfo(record);
	for (int k = 0; k < spec->nkeys; k++)
	{
		const ColumnSpec *col = &spec->cols[spec->keys[k].col];

		appendStringInfoCharMacro(record, groups->keynulls[k][g]);
		if (!groups->keynulls[k][g])
			put_datum(record, groups->keys[k][g], col->typbyval, col->typlen);
	}
	for (int o = 0; o < spec->nfallbacks; o++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[o];

		appendStringInfoCharMacro(record, groups->fallback_nulls[o][g]);
		if (!groups->fallback_nulls[o][g])
			put_datum(record, groups->fallbacks[o][g], transition_byval(fallback),
					  transition_length(fallback));
	}
	enlargeStringInfo(record, states_bytes(spec));
	for (int s = 0; s < spec->nslots; s++)
	{
		size_t size = slot_bytes(&spec->slots[s]);

		appendBinaryStringInfo(record, (const char *) groups->slots[s] + g * size, size);
	}
}

/* Allocates `count` arrays of n values, and `count` arrays of n NULL flags. */
static void
allocate_columns(int count, int n, Datum ***values, bool ***nulls)
{
	*values = palloc(Max(count, 1) * sizeof(Datum *));
	*nulls = palloc(Max(count, 1) * sizeof(bool *));
	for (int i = 0; i < count; i++)
	{
		(*values)[i] = palloc(n * sizeof(Datum));
		(*nulls)[i] = palloc(n * sizeof(bool));
	}
}

void
group_batch_init(GroupBatch *groups, const AggSpec *spec, int n, bool states)
{
	memset(groups, 0, sizeof(*groups));
	allocate_columns(spec->nkeys, n, &groups->keys, &groups->keynulls);
	allocate_columns(spec->nfallbacks, n, &groups->fallbacks, &groups->fallback_nulls);
	groups->slots = palloc0(Max(spec->nslots, 1) * sizeof(void *));
	for (int s = 0; states && s < spec->nslots; s++)
	{
		void *memory = MemoryContextAllocHuge(CurrentMemoryContext,
											  n * slot_bytes(&spec->slots[s]) + STATE_ALIGN);

		groups->slots[s] = (void *) TYPEALIGN(STATE_ALIGN, (uintptr_t) memory);
	}
}

GroupReader *
group_reader_create(const AggSpec *spec, MemoryContext parent)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg groups read", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	GroupReader *reader = palloc0(sizeof(GroupReader));
	size_t bytes = states_bytes(spec);

	reader->spec = spec;
	reader->capacity = Max(1, Min(READ_GROUPS, READ_BYTES / Max(bytes, 1)));
	group_batch_init(&reader->groups, spec, reader->capacity, true);
	initStringInfo(&reader->record);
	reader->datum_cxt = AllocSetContextCreate(cxt, "gpuagg values read", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	return reader;
}

void
group_reader_free(GroupReader *reader)
{
	MemoryContextDelete(GetMemoryChunkContext(reader));
}

void
group_reader_clear(GroupReader *reader)
{
	reader->groups.ngroups = 0;
	reader->bytes = 0;
	MemoryContextReset(reader->datum_cxt);
}

void
group_reader_add(GroupReader *reader)
{
	const AggSpec *spec = reader->spec;
	GroupBatch *groups = &reader->groups;
	int g = groups->ngroups++;
	const char *pos = reader->record.data;
	MemoryContext old = MemoryContextSwitchTo(reader->datum_cxt);

	reader->bytes += reader->record.len;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const ColumnSpec *col = &spec->cols[spec->keys[k].col];

		groups->keynulls[k][g] = *pos++;
		groups->keys[k][g] =
			groups->keynulls[k][g] ? (Datum) 0 : get_datum(&pos, col->typbyval, col->typlen);
	}
	for (int o = 0; o < spec->nfallbacks; o++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[o];

		groups->fallback_nulls[o][g] = *pos++;
		groups->fallbacks[o][g] = groups->fallback_nulls[o][g] ?
			(Datum) 0 :
			get_datum(&pos, transition_byval(fallback), transition_length(fallback));
	}
	for (int s = 0; s < spec->nslots; s++)
	{
		size_t size = slot_bytes(&spec->slots[s]);

		memcpy((char *) groups->slots[s] + g * size, pos, size);
		pos += size;
	}
	MemoryContextSwitchTo(old);
}
