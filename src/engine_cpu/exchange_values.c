/*
 * exchange_values.c
 *	  Exchanges groups with Datum keys between participants of a parallel plan, in shared memory.
 *
 * A partition begins with the rows of its groups. A row is a row of the sender's table, and a
 * SharedValue for each Datum key. The values that these refer to follow the rows; those that many
 * groups have are there once, after the last partition. The receiver looks up the values in its own
 * dictionaries, which refer to the shared memory and do not copy it, and combines the states.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"

#include "engine_cpu/engine_cpu_internal.h"

/* The value of a Datum key of a group in shared memory. */
typedef struct SharedValue
{
	uint64 value; /* the Datum; where it lies from the beginning of the partition on, if by
					  reference */
	uint32 hash;  /* the dictionary's */
	uint32 isnull;
} SharedValue;

/*
 * A dictionary's values are copied once, for all groups, if there are at least this many groups for
 * each. Otherwise each group has a copy that lies near it.
 */
#define COMMON_GROUPS 4

/* ---- writing ------------------------------------------------------------ */

/*
 * Returns whether the column of a Datum key is also that of an earlier key with another equality.
 * The receiver has only one hash and one value for each column.
 */
static bool
shares_column(const AggSpec *spec, int k)
{
	const KeySpec *key = &spec->keys[k];

	for (int j = 0; j < k; j++)
	{
		const KeySpec *other = &spec->keys[j];

		if (other->col == key->col &&
			(other->eqfunc != key->eqfunc || other->hashfunc != key->hashfunc ||
			 other->collation != key->collation))
			return true;
	}
	return false;
}

bool
cpu_shares_values(const CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;

	for (int k = 0; k < spec->nkeys; k++)
		if (shares_column(spec, k))
			return false;
	return cpu_rows_are_plain(engine) && cpu_count_datums(engine) > 0;
}

/* Returns the distance between rows of a partition. */
static size_t
shared_stride(const CpuEngine *engine)
{
	return TYPEALIGN(STATE_ALIGN, engine->table->row_size) +
		cpu_count_datums(engine) * sizeof(SharedValue);
}

/* Returns the SharedValues of a row. */
static inline SharedValue *
shared_values(const CpuEngine *engine, const char *row)
{
	return (SharedValue *) (row + TYPEALIGN(STATE_ALIGN, engine->table->row_size));
}

/* A Datum key, as its values are written. */
typedef struct SharedKey
{
	const KeyLayout *layout;
	int16 typlen;
	bool typbyval;
	DictionaryView dict;
	size_t *common; /* [code] where the dictionary's value lies in the common memory of all groups;
					   NULL: each group has its own copy in its partition */
} SharedKey;

/* Where groups are written. */
typedef struct ValueWriter
{
	int nkeys;
	SharedKey *keys;     /* Datum keys alone */
	size_t common_bytes; /* values that several groups refer to; they follow the partitions */
	uint16 *part;        /* [group] */
	uint32 *counts;      /* [partition] groups */
	size_t *values;      /* [partition] bytes of values; later where the next value goes */
	size_t *bytes;       /* [partition] all bytes */
	char **starts;       /* [partition] */
	char **ends;         /* [partition] where the next row goes */
	char *common;
} ValueWriter;

/* Returns the first address from `at` on where a by-reference value may lie. */
static inline size_t
align_value(size_t at, int16 typlen, Datum value)
{
	return typlen == -1 && VARATT_IS_SHORT(DatumGetPointer(value)) ? at : MAXALIGN(at);
}

/* Returns the bytes of a by-reference value, which is detoasted. */
static inline size_t
value_size(int16 typlen, Datum value)
{
	return typlen == -1 ? VARSIZE_ANY(DatumGetPointer(value)) : datumGetSize(value, false, typlen);
}

/* Returns the dictionary code of a key in a row of the table. */
static inline int32
key_code(const SharedKey *key, const char *row)
{
	return (int32) ((((const uint64 *) row)[key->layout->word] >> key->layout->shift) &
					key->layout->mask);
}

/* Returns the value that a group with this code, which is not that of NULL, shows of a key. */
static inline Datum
key_value(const SharedKey *key, const char *row, int32 code)
{
	int shown = key->layout->shown;

	return shown >= 0 ? (Datum) ((const uint64 *) row)[shown] : key->dict.values[code];
}

/* Returns whether a group has a copy of its own of a key's value. */
static inline bool
has_own_copy(const SharedKey *key, int32 code, Datum value)
{
	return code != key->dict.null_code && !key->typbyval &&
		(key->common == NULL || value != key->dict.values[code]);
}

/*
 * Lays out the values of a key in the common memory, if many groups share them. Otherwise copies
 * that lie near their groups are faster to read.
 */
static void
lay_out_common(CpuEngine *engine, ValueWriter *writer, SharedKey *key)
{
	const DictionaryView *dict = &key->dict;

	if (key->typbyval || (uint64) dict->n * COMMON_GROUPS > engine->table->ngroups)
		return;
	key->common = MemoryContextAllocHuge(CurrentMemoryContext, dict->n * sizeof(size_t));
	for (int32 code = 0; code < dict->n; code++)
	{
		if (code % EXCHANGE_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		if (code == dict->null_code)
			continue;
		key->common[code] = align_value(writer->common_bytes, key->typlen, dict->values[code]);
		writer->common_bytes = key->common[code] + value_size(key->typlen, dict->values[code]);
	}
}

/* Finds the Datum keys, and lays out the common memory. */
static void
begin_writer(CpuEngine *engine, ValueWriter *writer, int nparts)
{
	const AggSpec *spec = engine->spec;
	const GroupKeys *keys = &engine->table->keys;

	memset(writer, 0, sizeof(*writer));
	writer->keys = palloc0(cpu_count_datums(engine) * sizeof(SharedKey));
	for (int k = 0; k < spec->nkeys; k++)
	{
		SharedKey *key = &writer->keys[writer->nkeys];

		if (spec->keys[k].kind != KEY_DATUM)
			continue;
		key->layout = &keys->layout[k];
		key->typlen = spec->cols[spec->keys[k].col].typlen;
		key->typbyval = spec->cols[spec->keys[k].col].typbyval;
		key->dict = dictionary_view(keys->dicts[k]);
		lay_out_common(engine, writer, key);
		writer->nkeys++;
	}
	writer->part =
		MemoryContextAllocHuge(CurrentMemoryContext, engine->table->ngroups * sizeof(uint16));
	writer->counts = palloc0(nparts * sizeof(uint32));
	writer->values = palloc0(nparts * sizeof(size_t));
	writer->bytes = palloc0(nparts * sizeof(size_t));
	writer->starts = palloc0(nparts * sizeof(char *));
	writer->ends = palloc0(nparts * sizeof(char *));
}

/*
 * Prefetches what the dictionaries have of the groups from .. end - 1, and the values that are
 * copied for them.
 */
static void
prefetch_values(const CpuEngine *engine, const ValueWriter *writer, uint32 from, uint32 end)
{
	const GroupTable *table = engine->table;

	for (int k = 0; k < writer->nkeys; k++)
	{
		const SharedKey *key = &writer->keys[k];

		for (uint32 g = from; g < end; g++)
		{
			int32 code = key_code(key, group_row(table, g));

			__builtin_prefetch(&key->dict.values[code]);
			__builtin_prefetch(&key->dict.hashes[code]);
		}
		for (uint32 g = from; !key->typbyval && !key->common && g < end; g++)
		{
			const char *row = group_row(table, g);
			int32 code = key_code(key, row);
			const char *value = DatumGetPointer(key_value(key, row, code));

			if (code == key->dict.null_code)
				continue;
			__builtin_prefetch(value);
			__builtin_prefetch(value + CACHE_LINE);
		}
	}
}

/* Sets the partitions of all groups, and the bytes of all partitions. Returns their sum. */
static size_t
measure_parts(CpuEngine *engine, ValueWriter *writer, const GroupSink *sink)
{
	const GroupTable *table = engine->table;
	size_t total = 0;

	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);
		uint32 p;
		size_t at;

		if (g % EXCHANGE_ROWS == 0)
		{
			CHECK_FOR_INTERRUPTS();
			prefetch_values(engine, writer, g, Min(g + EXCHANGE_ROWS, table->ngroups));
		}
		p = group_part(sink, group_keys_row_hash(&table->keys, row));
		at = writer->values[p];
		writer->part[g] = p;
		writer->counts[p]++;
		for (int k = 0; k < writer->nkeys; k++)
		{
			const SharedKey *key = &writer->keys[k];
			int32 code = key_code(key, row);
			Datum value = key_value(key, row, code);

			if (has_own_copy(key, code, value))
				at = align_value(at, key->typlen, value) + value_size(key->typlen, value);
		}
		writer->values[p] = at;
	}
	for (int p = 0; p < sink->nparts; p++)
	{
		size_t rows = writer->counts[p] * shared_stride(engine);

		writer->bytes[p] = TYPEALIGN(CACHE_LINE, rows + writer->values[p]);
		writer->values[p] = rows;
		total += writer->bytes[p];
	}
	return total;
}

/* Copies the values that several groups refer to. */
static void
write_common(const ValueWriter *writer)
{
	for (int k = 0; k < writer->nkeys; k++)
	{
		const SharedKey *key = &writer->keys[k];

		for (int32 code = 0; key->common && code < key->dict.n; code++)
		{
			if (code % EXCHANGE_ROWS == 0)
				CHECK_FOR_INTERRUPTS();
			if (code != key->dict.null_code)
				memcpy(writer->common + key->common[code], DatumGetPointer(key->dict.values[code]),
					   value_size(key->typlen, key->dict.values[code]));
		}
	}
}

/*
 * Sets the SharedValues `to` of a group of partition p, and copies the values that are the group's
 * own.
 */
static inline void
write_values(ValueWriter *writer, const char *row, int p, SharedValue *to)
{
	char *part = writer->starts[p];

	for (int k = 0; k < writer->nkeys; k++, to++)
	{
		const SharedKey *key = &writer->keys[k];
		int32 code = key_code(key, row);
		Datum value = key_value(key, row, code);

		to->hash = key->dict.hashes[code];
		to->isnull = code == key->dict.null_code;
		to->value = value;
		if (has_own_copy(key, code, value))
		{
			size_t size = value_size(key->typlen, value);
			size_t at = align_value(writer->values[p], key->typlen, value);

			memcpy(part + at, DatumGetPointer(value), size);
			to->value = at;
			writer->values[p] = at + size;
		}
		else if (!to->isnull && !key->typbyval)
			to->value = writer->common - part + key->common[code];
	}
}

/* Copies all groups, with completed states, to their partitions. */
static void
write_rows(CpuEngine *engine, ValueWriter *writer)
{
	GroupTable *table = engine->table;
	size_t stride = shared_stride(engine);

	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);
		int p = writer->part[g];

		if (g % EXCHANGE_ROWS == 0)
		{
			CHECK_FOR_INTERRUPTS();
			prefetch_values(engine, writer, g, Min(g + EXCHANGE_ROWS, table->ngroups));
			slots_complete(engine->slots, table, g, Min(g + EXCHANGE_ROWS, table->ngroups));
		}
		memcpy(writer->ends[p], row, table->row_size);
		write_values(writer, row, p, shared_values(engine, writer->ends[p]));
		writer->ends[p] += stride;
	}
}

bool
cpu_share_values(CpuEngine *engine, GroupSink *sink)
{
	GroupTable *table = engine->table;
	MemoryContext cxt;
	MemoryContext old;
	ValueWriter writer;
	size_t total;
	char *to = NULL;

	if (table->ngroups == 0 || group_table_memory(table) > engine->env.mem_limit)
		return false;
	cxt = AllocSetContextCreate(engine->cxt, "gpuagg shared values", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	begin_writer(engine, &writer, sink->nparts);
	total = measure_parts(engine, &writer, sink) + writer.common_bytes;
	if (group_table_memory(table) + MemoryContextMemAllocated(cxt, false) + total <=
		engine->env.mem_limit)
		to = sink->rows(sink, writer.counts, writer.bytes, writer.common_bytes);
	if (to)
	{
		cpu_map_pages(to, total);
		for (int p = 0; p < sink->nparts; p++)
		{
			writer.starts[p] = writer.ends[p] = to;
			to += writer.bytes[p];
		}
		writer.common = to;
		write_common(&writer);
		write_rows(engine, &writer);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return to != NULL;
}

/* ---- merging ------------------------------------------------------------ */

/* Fills engine->foreign_keys with the keys of n rows of the partition that begins at `part`. */
static void
load_foreign_keys(CpuEngine *engine, const char *part, const char *rows, int n)
{
	const AggSpec *spec = engine->spec;
	Batch *keys = &engine->foreign_keys;
	size_t stride = shared_stride(engine);
	int d = 0;

	keys->nrows = n;
	group_keys_load(&engine->table->keys, rows, stride, keys);
	for (int k = 0; k < spec->nkeys; k++)
	{
		Column *col = &keys->cols[spec->keys[k].col];
		bool byval = spec->cols[spec->keys[k].col].typbyval;
		uint32 *hashes = unconstify(uint32 *, col->hashes);

		if (spec->keys[k].kind != KEY_DATUM)
			continue;
		for (int i = 0; i < n; i++)
		{
			const SharedValue *value = shared_values(engine, rows + i * stride) + d;

			hashes[i] = value->hash;
			((Datum *) col->values)[i] =
				byval ? (Datum) value->value : PointerGetDatum(part + value->value);
			if (value->isnull)
				bitmap_clear(col->validity, i);
			else
				bitmap_set(col->validity, i);
		}
		d++;
	}
}

/* Initialises engine->foreign_keys. */
static void
make_foreign_keys(CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;
	Batch *keys = &engine->foreign_keys;

	cpu_make_key_batch(engine, keys);
	for (int k = 0; k < spec->nkeys; k++)
	{
		Column *col = &keys->cols[spec->keys[k].col];

		if (spec->keys[k].kind != KEY_DATUM)
			continue;
		col->hashes = MemoryContextAlloc(engine->cxt, keys->capacity * sizeof(uint32));
		col->lasting = true;
	}
}

void
cpu_merge_values(CpuEngine *engine, const char *rows, uint32 n)
{
	GroupTable *table = engine->table;
	Batch *keys = &engine->foreign_keys;
	size_t stride = shared_stride(engine);

	if (keys->cols == NULL)
		make_foreign_keys(engine);
	slots_combine(engine->slots, table);
	for (uint32 from = 0; from < n; from += keys->nrows)
	{
		const char *first = rows + from * stride;

		CHECK_FOR_INTERRUPTS();
		load_foreign_keys(engine, rows, first, Min(n - from, keys->capacity));
		cpu_budget(engine);
		/* if rows went to partitions without a lookup, groups must go there, too */
		if (cpu_bypasses_table(engine))
			cpu_bypass(engine, keys);
		else
			group_table_locate(table, keys);
		cpu_combine_rows(engine, first, stride, keys->nrows);
		for (int i = 0; i < keys->nrows; i++)
			if (table->at[i] == NO_GROUP)
				cpu_spill_foreign_row(engine, unconstify(char *, first) + i * stride, keys, i);
	}
}
