/*
 * exchange.c
 *	  Exchanges rows of the table of groups between participants of a parallel plan.
 *
 * Participants have the same spec, so their tables have the same layout of rows. A row that has
 * neither references nor dictionary codes is exchanged as it is. The receiver finds its group by
 * the packed keys and combines the states, without making values or records.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "miscadmin.h"

#include "engine_cpu/engine_cpu_internal.h"

/*
 * Most groups that are located between two checks of the memory, and the bytes of their table rows.
 */
#define MERGE_GROUPS 256
#define MERGE_BYTES (1024 * 1024)

/* Bytes that are mapped by one call. */
#define MAPPED_BYTES ((ptrdiff_t) 64 * 1024 * 1024)

int
cpu_count_datums(const CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;
	int n = 0;

	for (int k = 0; k < spec->nkeys; k++)
		n += spec->keys[k].kind == KEY_DATUM;
	return n;
}

bool
cpu_rows_are_plain(const CpuEngine *engine)
{
	/* the size must fit into a record's length, and into a reasonable buffer */
	return engine->spec->nkeys > 0 && engine->spec->nfallbacks == 0 &&
		engine->table->row_size <= 4096 && engine->table->mode != TABLE_SEGMENTED;
}

void
cpu_make_key_batch(CpuEngine *engine, Batch *keys)
{
	const AggSpec *spec = engine->spec;
	MemoryContext old = MemoryContextSwitchTo(engine->cxt);

	keys->capacity = Max(1, Min(MERGE_GROUPS, MERGE_BYTES / engine->table->row_size));
	Assert(keys->capacity <= engine->table->batch_rows);
	keys->ncols = spec->ncols;
	keys->cols = palloc0(Max(spec->ncols, 1) * sizeof(Column));
	for (int k = 0; k < spec->nkeys; k++)
	{
		Column *col = &keys->cols[spec->keys[k].col];

		col->type = spec->cols[spec->keys[k].col].type;
		col->values = palloc(keys->capacity * sizeof(uint64));
		col->validity = palloc(BITMAP_WORDS(keys->capacity) * sizeof(uint64));
	}
	MemoryContextSwitchTo(old);
}

bool
cpu_exchanges_rows(const CpuEngine *engine)
{
	return cpu_rows_are_plain(engine) && cpu_count_datums(engine) == 0;
}

void
cpu_write_rows(CpuEngine *engine, GroupSink *sink)
{
	GroupTable *table = engine->table;
	StringInfo record = &engine->record;
	uint32 len = table->row_size | EXCHANGED_ROW;

	resetStringInfo(record);
	enlargeStringInfo(record, sizeof(len) + table->row_size);
	memcpy(record->data, &len, sizeof(len));
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);

		if (g % EXCHANGE_ROWS == 0)
		{
			CHECK_FOR_INTERRUPTS();
			slots_complete(engine->slots, table, g, Min(g + EXCHANGE_ROWS, table->ngroups));
		}
		if (sink->part)
			sink->part(sink, group_part(sink, group_keys_row_hash(&table->keys, row)));
		memcpy(record->data + sizeof(len), row, table->row_size);
		sink->write(sink, record->data, sizeof(len) + table->row_size);
	}
}

void
cpu_count_parts(const CpuEngine *engine, const GroupSink *sink, uint16 *part, uint32 *counts)
{
	const GroupTable *table = engine->table;

	memset(counts, 0, sink->nparts * sizeof(uint32));
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		if (g % EXCHANGE_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		part[g] = group_part(sink, group_keys_row_hash(&table->keys, group_row(table, g)));
		counts[part[g]]++;
	}
}

/*
 * Returns whether rows of this size are written with stores that bypass the caches. Other
 * participants read them much later, and whole cache lines need not be read before they are
 * written.
 */
static inline bool
streams_rows(size_t size)
{
#ifdef __SSE2__
	return size % CACHE_LINE == 0;
#else
	return false;
#endif
}

void
cpu_map_pages(char *start, size_t size)
{
#ifdef MADV_POPULATE_WRITE
	char *page = (char *) TYPEALIGN_DOWN(sysconf(_SC_PAGESIZE), (uintptr_t) start);

	for (; page < start + size; page += MAPPED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		(void) madvise(page, Min(MAPPED_BYTES, start + size - page), MADV_POPULATE_WRITE);
	}
#endif
}

/* Copies a row with stores that bypass the caches; `size` is a multiple of 16. */
static inline void
stream_row(char *to, const char *row, size_t size)
{
#ifdef __SSE2__
	for (size_t at = 0; at < size; at += sizeof(__m128i))
		_mm_stream_si128((__m128i *) (to + at), _mm_load_si128((const __m128i *) (row + at)));
#endif
}

/* Makes streamed rows visible to other processes. */
static inline void
end_streams(void)
{
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/*
 * Copies the rows of all groups, with completed states, to the memory of their parts. ends[part] is
 * where the next row goes; it is advanced.
 */
static void
scatter_rows(CpuEngine *engine, const uint16 *part, char **ends)
{
	GroupTable *table = engine->table;
	size_t size = table->row_size;
	bool streams = streams_rows(size);

	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);
		char *to = ends[part[g]];

		/* complete the states while they are in the caches */
		if (g % EXCHANGE_ROWS == 0)
		{
			CHECK_FOR_INTERRUPTS();
			slots_complete(engine->slots, table, g, Min(g + EXCHANGE_ROWS, table->ngroups));
		}
		if (streams)
			stream_row(to, row, size);
		else
			memcpy(to, row, size);
		ends[part[g]] = to + size;
	}
	end_streams();
}

bool
cpu_share_rows(CpuEngine *engine, GroupSink *sink)
{
	GroupTable *table = engine->table;
	uint32 n = table->ngroups;
	size_t size = table->row_size;
	uint16 *part;
	uint32 *counts;
	size_t *bytes;
	char **ends;
	char *to;

	if (n == 0 ||
		group_table_memory(table) + cpu_early_bytes(engine) + n * (size + sizeof(*part)) >
			engine->env.mem_limit)
		return false;
	part = MemoryContextAllocHuge(engine->cxt, n * sizeof(*part));
	counts = palloc(sink->nparts * sizeof(*counts));
	bytes = palloc(sink->nparts * sizeof(*bytes));
	cpu_count_parts(engine, sink, part, counts);
	CHECK_FOR_INTERRUPTS();
	for (int p = 0; p < sink->nparts; p++)
		bytes[p] = TYPEALIGN(CACHE_LINE, counts[p] * size);
	to = sink->rows(sink, counts, bytes, 0);
	if (to)
	{
		if (streams_rows(size))
			cpu_map_pages(to, n * size);
		ends = palloc(sink->nparts * sizeof(*ends));
		for (int p = 0; p < sink->nparts; p++)
		{
			ends[p] = to;
			to += bytes[p];
		}
		scatter_rows(engine, part, ends);
		pfree(ends);
	}
	pfree(bytes);
	pfree(counts);
	pfree(part);
	return to != NULL;
}

void
cpu_spill_foreign_row(CpuEngine *engine, char *row, const Batch *keys, int i)
{
	const AggSpec *spec = engine->spec;
	GroupTable *table = engine->table;
	GroupBatch *group = &engine->spilled;

	CHECK_FOR_INTERRUPTS();
	if (group->slots == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(engine->cxt);

		group_batch_init(group, spec, 1, false);
		MemoryContextSwitchTo(old);
	}
	group->ngroups = 1;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = keys ? &keys->cols[spec->keys[k].col] : NULL;

		if (spec->keys[k].kind == KEY_DATUM)
		{
			group->keys[k][0] = ((Datum *) col->values)[i];
			group->keynulls[k][0] = column_is_null(col, i);
		}
		else
			group->keys[k][0] = group_key_datum(&table->keys, row, k, &group->keynulls[k][0]);
	}
	for (int s = 0; s < spec->nslots; s++)
		group->slots[s] = row + table->slot_off[s];
	group_record_write(&engine->record, spec, group, 0);
	partition_write_group(cpu_partitions(engine),
						  keys ? group_keys_spill_hash(&table->keys, keys, i) :
								 group_keys_row_hash(&table->keys, row),
						  &engine->record);
}

void
cpu_combine_rows(CpuEngine *engine, const char *rows, size_t stride, int n)
{
	const AggSpec *spec = engine->spec;
	GroupTable *table = engine->table;

	for (int s = 0; s < spec->nslots; s++)
	{
		const SlotSpec *slot = &spec->slots[s];
		size_t size = gpuagg_monoids[slot->monoid].state_size;

		for (int w = 0; w < slot->width; w++)
		{
			size_t off = table->slot_off[s] + w * size;

			engine->base.errors |= loop_combine_rows(slot->monoid, table->rows + off, table->at,
													 rows + off, stride, n);
		}
	}
}

void
cpu_merge_rows(CpuEngine *engine, const char *rows, int n)
{
	GroupTable *table = engine->table;

	CHECK_FOR_INTERRUPTS();
	slots_combine(engine->slots, table);
	cpu_budget(engine);
	/* if rows went to partitions without a lookup, groups must go there, too */
	if (cpu_bypasses_table(engine))
	{
		for (int i = 0; i < n; i++)
			cpu_spill_foreign_row(engine, unconstify(char *, rows) + i * table->row_size, NULL, 0);
		return;
	}
	group_table_locate_rows(table, rows, n);
	cpu_combine_rows(engine, rows, table->row_size, n);
	for (int i = 0; i < table->nmissing; i++)
		cpu_spill_foreign_row(
			engine, unconstify(char *, rows) + table->missing[i] * table->row_size, NULL, 0);
}
