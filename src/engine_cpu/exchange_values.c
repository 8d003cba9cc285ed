/*
 * exchange_values.c
 *	  Exchanges groups with Datum keys between participants of a parallel plan, in shared memory.
 *
 * A partition begins with the rows of its groups. A row is a row of the sender's table, and a
 * SharedValue for each Datum key. The values that these refer to follow the rows. The receiver
 * looks up the values in its own dictionaries, which refer to the shared memory and do not copy it,
 * and combines the states.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"

#include "engine_cpu/engine_cpu_internal.h"

/* The value of a Datum key of a group in shared memory. */
typedef struct SharedValue
{
	uint64
		value;   /* the Datum; where it lies from the beginning of the partition, if by reference */
	uint32 hash; /* the dictionary's */
	uint32 isnull;
} SharedValue;

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

/* Returns the first address from `at` on where a by-reference value may lie. */
static inline size_t
align_value(size_t at, int16 typlen, Datum value)
{
	return typlen == -1 && VARATT_IS_SHORT(DatumGetPointer(value)) ? at : MAXALIGN(at);
}

/* Returns where the next value may lie if the values of this group begin at `at`. */
static size_t
add_value_sizes(const CpuEngine *engine, const char *row, size_t at)
{
	const AggSpec *spec = engine->spec;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const ColumnSpec *col = &spec->cols[spec->keys[k].col];
		bool isnull;
		Datum value;

		if (spec->keys[k].kind != KEY_DATUM || col->typbyval)
			continue;
		value = group_key_datum(&engine->table->keys, row, k, &isnull);
		if (!isnull)
			at = align_value(at, col->typlen, value) + datumGetSize(value, false, col->typlen);
	}
	return at;
}

/*
 * Copies the values of a group's Datum keys to the partition that begins at `part`, from *at on.
 * Sets the SharedValues of the group's row there, and advances *at.
 */
static void
write_values(const CpuEngine *engine, const char *row, char *part, size_t *at, SharedValue *to)
{
	const AggSpec *spec = engine->spec;
	const GroupKeys *keys = &engine->table->keys;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const ColumnSpec *col = &spec->cols[spec->keys[k].col];
		bool isnull;
		Datum value;

		if (spec->keys[k].kind != KEY_DATUM)
			continue;
		value = group_key_datum(keys, row, k, &isnull);
		to->hash = group_key_hash(keys, row, k);
		to->isnull = isnull;
		to->value = value;
		if (!isnull && !col->typbyval)
		{
			size_t size = datumGetSize(value, false, col->typlen);

			*at = align_value(*at, col->typlen, value);
			memcpy(part + *at, DatumGetPointer(value), size);
			to->value = *at;
			*at += size;
		}
		to++;
	}
}

/*
 * Copies all groups, with completed states, to their partitions: starts[part] is the beginning of a
 * partition, ends[part] where its next row goes, and values[part] where the values begin, from the
 * beginning of the partition.
 */
static void
scatter_values(CpuEngine *engine, const uint16 *part, char **starts, char **ends, size_t *values)
{
	GroupTable *table = engine->table;
	size_t stride = shared_stride(engine);

	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);
		int p = part[g];

		if (g % EXCHANGE_ROWS == 0)
		{
			CHECK_FOR_INTERRUPTS();
			slots_complete(engine->slots, table, g, Min(g + EXCHANGE_ROWS, table->ngroups));
		}
		memcpy(ends[p], row, table->row_size);
		write_values(engine, row, starts[p], &values[p], shared_values(engine, ends[p]));
		ends[p] += stride;
	}
}

bool
cpu_share_values(CpuEngine *engine, GroupSink *sink)
{
	GroupTable *table = engine->table;
	size_t stride = shared_stride(engine);
	size_t total = 0;
	uint16 *part;
	uint32 *counts;
	size_t *bytes;
	size_t *values;
	char **starts;
	char **ends;
	char *to = NULL;

	if (table->ngroups == 0 || group_table_memory(table) > engine->env.mem_limit)
		return false;
	part = MemoryContextAllocHuge(engine->cxt, table->ngroups * sizeof(*part));
	counts = palloc(sink->nparts * sizeof(*counts));
	bytes = palloc(sink->nparts * sizeof(*bytes));
	values = palloc(sink->nparts * sizeof(*values));
	cpu_count_parts(engine, sink, part, counts);
	for (int p = 0; p < sink->nparts; p++)
		bytes[p] = values[p] = counts[p] * stride;
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		if (g % EXCHANGE_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		bytes[part[g]] = add_value_sizes(engine, group_row(table, g), bytes[part[g]]);
	}
	for (int p = 0; p < sink->nparts; p++)
	{
		bytes[p] = TYPEALIGN(CACHE_LINE, bytes[p]);
		total += bytes[p];
	}
	if (group_table_memory(table) + total + table->ngroups * sizeof(*part) <= engine->env.mem_limit)
		to = sink->rows(sink, counts, bytes);
	if (to)
	{
		starts = palloc(sink->nparts * sizeof(*starts));
		ends = palloc(sink->nparts * sizeof(*ends));
		cpu_map_pages(to, total);
		for (int p = 0; p < sink->nparts; p++)
		{
			starts[p] = ends[p] = to;
			to += bytes[p];
		}
		scatter_values(engine, part, starts, ends, values);
		pfree(starts);
		pfree(ends);
	}
	pfree(values);
	pfree(bytes);
	pfree(counts);
	pfree(part);
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
