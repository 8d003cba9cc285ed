/*
 * table.c
 *	  Rows of groups and their memory; see table.h.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "columns/hash_seed.h"
#include "groups/huge_pages.h"
#include "groups/table.h"

#define MIN_TABLE 256

/*
 * Room for rows that is made with the first one, and the limit of room for an estimate that no
 * group has confirmed yet.
 */
#define FIRST_BYTES ((size_t) 64 * 1024)
#define RESERVED_BYTES (64.0 * 1024 * 1024)

/*
 * An emptied table keeps so many bytes of rows. Those that merge many partitions, one after
 * another, need not get new pages for each.
 */
#define KEPT_BYTES ((size_t) 4 * 1024 * 1024)
/* A hash table of up to this many entries is kept as well. */
#define SPARE_ENTRIES ((size_t) 512 * 1024)

/*
 * Sets the offsets of states in a row. States of slots come after those of fallback aggregates;
 * 16-byte integers are aligned.
 */
static void
layout_row(GroupTable *table)
{
	const AggSpec *spec = table->spec;
	size_t off;

	table->fallback_off = MAXALIGN(table->keys.nhead * sizeof(uint64));
	off = table->fallback_off + spec->nfallbacks * sizeof(FallbackState);
	table->slot_off = palloc0(Max(spec->nslots, 1) * sizeof(size_t));
	table->state_off = off;
	for (int s = 0; s < spec->nslots; s++)
	{
		size_t size = gpuagg_monoids[spec->slots[s].monoid].state_size;

		off = TYPEALIGN(size % 16 == 0 ? 16 : size % 8 == 0 ? 8 : 4, off);
		table->slot_off[s] = off;
		if (s == 0)
			table->state_off = off;
		off += size * spec->slots[s].width;
	}
	table->row_size = TYPEALIGN(16, Max(off, 16));
	if (table->row_size > (size_t) PG_UINT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("states of one group need %zu bytes", table->row_size)));
	table->row_cells = table->row_size / 4;
}

#define FILL_IDENTITY(NAME, name, state_t) \
	case MONOID_##NAME: \
	{ \
		state_t identity = name##_identity(); \
		for (int i = 0; i < width; i++) \
			memcpy(to + i * sizeof(state_t), &identity, sizeof(state_t)); \
		break; \
	}

/* Fills `to` with `width` identity states. */
static void
fill_identity(MonoidId id, char *to, int width)
{
	switch (id)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) FILL_IDENTITY(NAME, name, state_t)
#include "operators/monoid_list.h"
#undef MONOID
		case MONOID_COUNT_OF_IDS:
			break;
	}
}

GroupTable *
group_table_create(MemoryContext parent, const AggSpec *spec, TableMode mode, int batch_rows)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg groups", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	GroupTable *table = palloc0(sizeof(GroupTable));

	table->spec = spec;
	table->cxt = cxt;
	table->mode = mode;
	table->batch_rows = batch_rows;
	table->max_groups = mode == TABLE_SEGMENTED ? PG_INT32_MAX : 1;
	table->seed = hash_seed_random();
	group_keys_init(&table->keys, spec, mode == TABLE_SEGMENTED, batch_rows);
	layout_row(table);
	table->blank =
		MemoryContextAllocExtended(cxt, table->row_size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int s = 0; s < spec->nslots; s++)
		fill_identity(spec->slots[s].monoid, table->blank + table->slot_off[s],
					  spec->slots[s].width);
	table->hash = palloc(batch_rows * sizeof(uint32));
	table->at = palloc0(batch_rows * sizeof(uint32));
	table->missing = palloc(batch_rows * sizeof(uint32));
	table->run_start = palloc((batch_rows + 1) * sizeof(uint32));
	table->run_at = palloc(batch_rows * sizeof(uint32));
	MemoryContextSwitchTo(old);
	return table;
}

/* Frees the memory of a hash table that is not used. */
static void
free_spare(GroupTable *table)
{
	if (table->spare)
		huge_pages_free(table->spare);
	table->spare = NULL;
}

void
group_table_drop_hash(GroupTable *table)
{
	size_t size = (size_t) table->mask + 1;

	if (table->table == NULL)
		return;
	free_spare(table);
	if (size <= SPARE_ENTRIES)
	{
		table->spare = table->table;
		table->spare_size = size;
	}
	else
		huge_pages_free(table->table);
	table->table = NULL;
	table->mask = 0;
}

uint64 *
group_table_take_spare(GroupTable *table, size_t size)
{
	uint64 *spare = NULL;

	if (table->spare && table->spare_size == size)
	{
		spare = table->spare;
		table->spare = NULL;
	}
	free_spare(table);
	return spare;
}

void
group_table_reset(GroupTable *table)
{
	if (table->rows && table->capacity * table->row_size > KEPT_BYTES)
	{
		huge_pages_free(table->rows);
		table->rows = NULL;
		table->capacity = 0;
	}
	group_table_drop_hash(table);
	if (table->map)
		pfree(table->map);
	table->map = NULL;
	table->ngroups = 0;
	table->bins = 0;
	table->seed_groups = 0;
	table->expected = 0;
	table->frozen = false;
	group_keys_reset(&table->keys);
	if (table->mode == TABLE_DIRECT)
		table->mode = TABLE_HASH;
}

/* ---- rows and memory ---------------------------------------------------- */

size_t
group_table_hash_size(double groups)
{
	size_t size = MIN_TABLE;

	while (size * 0.75 < groups && size < (size_t) 1 << 31)
		size *= 2;
	return size;
}

size_t
group_table_memory(const GroupTable *table)
{
	size_t bytes = table->capacity * table->row_size + group_keys_memory(&table->keys);

	if (table->table)
		bytes += ((size_t) table->mask + 1) * sizeof(uint64);
	if (table->spare)
		bytes += table->spare_size * sizeof(uint64);
	return bytes + table->bins * sizeof(uint32);
}

void
group_table_budget(GroupTable *table, size_t bytes, double group_bytes)
{
	size_t dict = group_keys_memory(&table->keys);
	size_t fixed = dict + table->bins * sizeof(uint32);
	double avail = bytes > fixed ? bytes - fixed : 0;
	double row = table->row_size + group_bytes;
	double groups = avail / row;

	table->max_dict_bytes = bytes;
	if (table->mode == TABLE_HASH)
	{
		size_t size = group_table_hash_size(avail / (row + sizeof(uint64)));
		double more = (avail - size * (double) sizeof(uint64)) / row;
		double less = Min(avail - size * (double) sizeof(uint64) / 2, 0.375 * size * row) / row;

		groups = Max(more, Min(less, 0.375 * size));
	}
	if (dict > 0 && table->ngroups > 0 && groups > table->ngroups)
	{
		/* new groups also add values to the dictionaries */
		double each = dict / (double) table->ngroups;

		groups = table->ngroups + (groups - table->ngroups) * row / (row + each);
		table->max_dict_bytes = dict + (groups - table->ngroups) * each;
	}
	groups = Min(groups, (PG_UINT32_MAX - 1) / table->row_cells);
	table->max_groups = groups < 1 ? 1 : (uint32) groups;
}

/*
 * Makes room for `wanted` rows, or as many as max_groups allows; at least one more than there are.
 */
static void
grow_rows(GroupTable *table, uint32 wanted)
{
	uint32 capacity = Max(Min(wanted, table->max_groups), table->ngroups + 1);
	size_t used = table->ngroups * table->row_size;
	size_t size = capacity * table->row_size;
	char *rows = table->rows;

	/* a copy lies on large pages, but both take no more memory than the new rows will */
	if (rows && used > size / 2)
		table->rows = huge_pages_enlarge(rows, used, size);
	else
	{
		table->rows = huge_pages_alloc(table->cxt, size);
		if (rows)
		{
			memcpy(table->rows, rows, used);
			huge_pages_free(rows);
		}
	}
	table->capacity = capacity;
}

void
group_table_reserve(GroupTable *table, double groups)
{
	groups = Min(groups,
				 Max(RESERVED_BYTES / table->row_size, GROUPS_PER_GROUP * (double) table->ngroups));
	groups = Min(groups, table->max_groups);
	if (groups > table->capacity)
		grow_rows(table, (uint32) groups);
}

uint32
group_table_add(GroupTable *table)
{
	char *row;

	if (table->ngroups == table->capacity)
		grow_rows(
			table,
			Max((uint64) table->capacity * 2, Max(1, Min(64, FIRST_BYTES / table->row_size))));
	row = group_row(table, table->ngroups);
	memcpy(row, table->blank, table->row_size);
	if (table->init_row)
		table->init_row(table->init_arg, row);
	return table->ngroups++ * table->row_cells;
}

void
group_table_carry_last(GroupTable *table)
{
	if (table->ngroups <= 1)
		return;
	memcpy(table->rows, group_row(table, table->ngroups - 1), table->row_size);
	table->ngroups = 1;
	group_keys_carry_last(&table->keys, table->rows);
}
