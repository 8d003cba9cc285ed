/*
 * table.c
 *	  Rows of the groups and the ways to find them; see group_table.h.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "groups/table.h"

#define CACHE_LINE 64
#define HUGE_PAGE ((size_t) 2 * 1024 * 1024)
#define MIN_TABLE 256
/* Maps up to this many bins stay in the first-level cache. */
#define SMALL_BINS 8192
/* Rows that fit the second-level cache need no prefetching. */
#define SMALL_ROWS (512 * 1024)
/* Runs are used when so many rows of a sample equal the row before. */
#define RUN_SAMPLE 128
/*
 * No row is so far from its place by chance: the longest run of a table of a
 * billion rows, three quarters full, is half as long.
 */
#ifndef MAX_PROBES
#define MAX_PROBES 1024
#endif

/* Slot states follow the own states; a state of 16-byte integers is aligned. */
static void
layout_row(GroupTable *table)
{
	const AggSpec *spec = table->spec;
	size_t		off;

	table->fallback_off = MAXALIGN(table->nhead * sizeof(uint64));
	off = table->fallback_off + spec->nfallbacks * sizeof(FallbackState);
	table->slot_off = palloc0(Max(spec->nslots, 1) * sizeof(size_t));
	table->state_off = off;
	for (int s = 0; s < spec->nslots; s++)
	{
		size_t		size = gpuagg_monoids[spec->slots[s].monoid].state_size;

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
			state_t		identity = name##_identity(); \
			for (int i = 0; i < width; i++) \
				memcpy(to + i * sizeof(state_t), &identity, sizeof(state_t)); \
			break; \
		}

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

/*
 * A table under a context of its own.  The first mode is final for SINGLE,
 * SEGMENTED and DICTIONARY; DIRECT and HASH start with HASH.
 */
GroupTable *
group_table_create(MemoryContext parent, const AggSpec *spec, TableMode mode, bool segmented,
				   int batch_rows)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg groups", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	GroupTable *table = palloc0(sizeof(GroupTable));

	table->spec = spec;
	table->cxt = cxt;
	table->mode = mode;
	table->batch_rows = batch_rows;
	table->max_groups = segmented ? PG_INT32_MAX : 1;
	table->seed = hash_seed_random();
	table->spill_seed = hash_seed_random();
	table->key_cxt = AllocSetContextCreate(cxt, "gpuagg keys", ALLOCSET_SMALL_SIZES);
	table->spare_cxt = AllocSetContextCreate(cxt, "gpuagg keys", ALLOCSET_SMALL_SIZES);
	group_keys_layout(table, segmented);
	layout_row(table);
	table->blank = MemoryContextAllocExtended(cxt, table->row_size,
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int s = 0; s < spec->nslots; s++)
		fill_identity(spec->slots[s].monoid, table->blank + table->slot_off[s],
					  spec->slots[s].width);

	table->ranges = palloc0(Max(spec->nkeys, 1) * sizeof(KeyRange));
	table->dicts = palloc0(Max(spec->nkeys, 1) * sizeof(Dictionary *));
	table->codes = palloc0(Max(spec->nkeys, 1) * sizeof(int32 *));
	table->hashes = palloc0(Max(spec->nkeys, 1) * sizeof(uint32 *));
	for (int k = 0; k < spec->nkeys; k++)
	{
		if (spec->keys[k].kind != KEY_DATUM)
			continue;
		table->dicts[k] = dictionary_create(cxt, &spec->keys[k], &spec->cols[spec->keys[k].col],
											batch_rows);
		table->codes[k] = palloc(batch_rows * sizeof(int32));
		table->hashes[k] = palloc(batch_rows * sizeof(uint32));
	}
	table->words = palloc0((table->nwords + 1) * sizeof(uint64 *));
	table->started = palloc0(table->nwords + 1);
	for (int w = 0; w < table->nwords; w++)
		table->words[w] = palloc(batch_rows * sizeof(uint64));
	table->hash = palloc(batch_rows * sizeof(uint32));
	table->at = palloc0(batch_rows * sizeof(uint32));
	table->missing = palloc(batch_rows * sizeof(uint32));
	table->run_start = palloc((batch_rows + 1) * sizeof(uint32));
	table->run_at = palloc(batch_rows * sizeof(uint32));
	MemoryContextSwitchTo(old);
	return table;
}

/* Forgets all groups and gives their memory back. */
void
group_table_reset(GroupTable *table)
{
	if (table->chunk)
		pfree(table->chunk);
	if (table->table)
		pfree(table->table);
	if (table->map)
		pfree(table->map);
	table->chunk = table->rows = NULL;
	table->table = NULL;
	table->map = NULL;
	table->ngroups = table->capacity = table->mask = 0;
	table->bins = 0;
	table->seed_groups = 0;
	table->frozen = false;
	for (int k = 0; k < table->spec->nkeys; k++)
	{
		table->ranges[k].any = false;
		if (table->dicts[k])
			dictionary_reset(table->dicts[k]);
	}
	MemoryContextReset(table->key_cxt);
	MemoryContextReset(table->spare_cxt);
	table->shown_bytes = 0;
	if (table->mode == TABLE_DIRECT)
		table->mode = TABLE_HASH;
}

/* ---- rows and memory ---------------------------------------------------- */

static size_t
hash_size(double groups)
{
	size_t		size = MIN_TABLE;

	while (size * 0.75 < groups && size < (size_t) 1 << 31)
		size *= 2;
	return size;
}

/* What the values of Datum keys take outside of the rows. */
static size_t
values_memory(const GroupTable *table)
{
	size_t		bytes = table->shown_bytes;

	for (int k = 0; k < table->spec->nkeys; k++)
		if (table->dicts[k])
			bytes += dictionary_memory(table->dicts[k]);
	return bytes;
}

size_t
group_table_memory(const GroupTable *table)
{
	size_t		bytes = table->capacity * table->row_size + values_memory(table);

	if (table->table)
		bytes += ((size_t) table->mask + 1) * sizeof(uint64);
	return bytes + table->bins * sizeof(uint32);
}

/*
 * How many groups may there be in so many bytes?  One at least, always.  A
 * group takes group_bytes elsewhere.
 */
void
group_table_budget(GroupTable *table, size_t bytes, double group_bytes)
{
	size_t		dict = values_memory(table);
	size_t		fixed = dict + table->bins * sizeof(uint32);
	double		avail = bytes > fixed ? bytes - fixed : 0;
	double		row = table->row_size + group_bytes;
	double		groups = avail / row;

	table->max_dict_bytes = bytes;
	if (table->mode == TABLE_HASH)
	{
		size_t		size = hash_size(avail / (row + sizeof(uint64)));
		double		more = (avail - size * (double) sizeof(uint64)) / row;
		double		less = Min(avail - size * (double) sizeof(uint64) / 2, 0.375 * size * row) / row;

		groups = Max(more, Min(less, 0.375 * size));
	}
	if (dict > 0 && table->ngroups > 0 && groups > table->ngroups)
	{
		/* new groups bring values to the dictionaries as well */
		double		each = dict / (double) table->ngroups;

		groups = table->ngroups + (groups - table->ngroups) * row / (row + each);
		table->max_dict_bytes = dict + (groups - table->ngroups) * each;
	}
	groups = Min(groups, (PG_UINT32_MAX - 1) / table->row_cells);
	table->max_groups = groups < 1 ? 1 : (uint32) groups;
}

/* Large pages spare the random accesses of large tables address translation. */
static void
advise_huge(char *start, size_t size)
{
#ifdef MADV_HUGEPAGE
	char	   *from = (char *) TYPEALIGN(HUGE_PAGE, (uintptr_t) start);

	if (size >= 2 * HUGE_PAGE)
		(void) madvise(from, (start + size - from) & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
}

static void
grow_rows(GroupTable *table)
{
	uint32		capacity = Max((uint64) table->capacity * 2, 64);
	size_t		shift = table->rows - table->chunk;
	size_t		size;
	char	   *start;

	capacity = Max(Min(capacity, table->max_groups), table->ngroups + 1);
	size = (size_t) capacity * table->row_size + CACHE_LINE;
	if (table->chunk)
		table->chunk = repalloc_huge(table->chunk, size);
	else
		table->chunk = MemoryContextAllocHuge(table->cxt, size);
	start = (char *) TYPEALIGN(CACHE_LINE, (uintptr_t) table->chunk);
	if (table->rows && start != table->chunk + shift)
		memmove(start, table->chunk + shift, table->ngroups * table->row_size);
	advise_huge(start, size - CACHE_LINE);
	table->rows = start;
	table->capacity = capacity;
}

/* Adds a blank row and returns its offset. */
uint32
group_table_add(GroupTable *table)
{
	char	   *row;

	if (table->ngroups == table->capacity)
		grow_rows(table);
	row = group_row(table, table->ngroups);
	memcpy(row, table->blank, table->row_size);
	if (table->init_row)
		table->init_row(table->init_arg, row);
	return table->ngroups++ * table->row_cells;
}

/* Was no room for the value of some key of row i in its dictionary? */
static bool
lacks_code(const GroupTable *table, int i)
{
	for (int k = 0; k < table->spec->nkeys; k++)
		if (table->dicts[k] && table->codes[k][i] == NO_CODE)
			return true;
	return false;
}

/* A new group with the keys of batch row i, or NO_GROUP. */
static uint32
insert_row(GroupTable *table, const Batch *batch, int i)
{
	uint32		at;

	if (table->frozen || (table->ngroups > 0 && table->ngroups >= table->max_groups) ||
		(table->mode == TABLE_HASH && lacks_code(table, i)))
	{
		table->denied = table->frozen = true;
		return NO_GROUP;
	}
	at = group_table_add(table);
	group_keys_store(table, group_row_at(table, at), batch, i);
	return at;
}

/* ---- runs --------------------------------------------------------------- */

static inline bool
same_words(const GroupTable *table, int nwords, int i, int j)
{
	for (int w = 0; w < nwords; w++)
		if (table->words[w][i] != table->words[w][j])
			return false;
	return true;
}

static void
split_runs(GroupTable *table, int nwords, int n)
{
	uint32	   *start = table->run_start;
	int			r = 0;

	start[r++] = 0;
	if (nwords == 1)
	{
		const uint64 *words = table->words[0];

		for (int i = 1; i < n; i++)
		{
			start[r] = i;
			r += words[i] != words[i - 1];
		}
	}
	else
		for (int i = 1; i < n; i++)
		{
			start[r] = i;
			r += !same_words(table, nwords, i, i - 1);
		}
	start[r] = n;
	table->nruns = r;
	table->mean_run = (double) n / r;
}

/* If a sample shows runs of equal keys, finds them all and keeps their heads. */
static bool
find_runs(GroupTable *table, int nwords, int n)
{
	int			same = 0;
	int			sample = Min(n, RUN_SAMPLE);

	for (int i = 1; i < sample; i++)
		same += same_words(table, nwords, i, i - 1);
	table->mean_run = sample / (double) (sample - same);
	if (n < 2 || same * 2 < sample)
		return false;
	split_runs(table, nwords, n);
	for (int w = 0; w < nwords; w++)
		for (int r = 0; r < table->nruns; r++)
			table->words[w][r] = table->words[w][table->run_start[r]];
	return true;
}

/* From run_at to at. */
static void
expand_runs(GroupTable *table)
{
	for (int r = 0; r < table->nruns; r++)
	{
		uint32		at = table->run_at[r];

		for (uint32 i = table->run_start[r]; i < table->run_start[r + 1]; i++)
			table->at[i] = at;
	}
}

/* ---- hash --------------------------------------------------------------- */

static inline uint32
hash_words(const GroupTable *table, HashSeed seed, int nwords, int i)
{
	uint64		h = hash_fold(seed, table->words[0][i]);

	for (int w = 1; w < nwords; w++)
		h = hash_fold(seed, h ^ table->words[w][i]);
	return hash_finish(h);
}

/* The same of a group. */
static uint32
hash_group(const GroupTable *table, uint32 group)
{
	const uint64 *words = (const uint64 *) group_row(table, group);
	uint64		h = hash_fold(table->seed, words[0]);

	for (int w = 1; w < table->nwords; w++)
		h = hash_fold(table->seed, h ^ words[w]);
	return hash_finish(h);
}

static void
table_insert(uint64 *slots, uint32 mask, uint64 entry)
{
	uint32		pos = (uint32) (entry >> 32) & mask;

	while ((uint32) slots[pos] != NO_GROUP)
		pos = (pos + 1) & mask;
	slots[pos] = entry;
}

static uint64 *
new_hash_table(GroupTable *table, size_t size)
{
	uint64	   *slots = MemoryContextAllocHuge(table->cxt, size * sizeof(uint64));

	advise_huge((char *) slots, size * sizeof(uint64));
	memset(slots, 0xff, size * sizeof(uint64));
	return slots;
}

static void
grow_hash(GroupTable *table)
{
	size_t		old_size = (size_t) table->mask + 1;
	uint64	   *old = table->table;
	uint32		mask = old_size * 2 - 1;
	uint64	   *slots = new_hash_table(table, old_size * 2);

	for (size_t i = 0; i < old_size; i++)
		if ((uint32) old[i] != NO_GROUP)
			table_insert(slots, mask, old[i]);
	pfree(old);
	table->table = slots;
	table->mask = mask;
}

/* A new table of this size, with all groups. */
static void
fill_hash_table(GroupTable *table, size_t size)
{
	if (table->table)
		pfree(table->table);
	table->table = new_hash_table(table, size);
	table->mask = size - 1;
	for (uint32 g = 0; g < table->ngroups; g++)
		table_insert(table->table, table->mask,
					 (uint64) hash_group(table, g) << 32 | (g * table->row_cells));
}

/* Changes over to TABLE_HASH, sized for so many groups where memory allows. */
void
group_table_use_hash(GroupTable *table, double groups)
{
	if (table->map)
		pfree(table->map);
	table->map = NULL;
	table->bins = 0;
	table->mode = TABLE_HASH;
	fill_hash_table(table, hash_size(Max(Min(groups, table->max_groups), table->ngroups + 1)));
}

/*
 * Rows crowd together: places all anew by another seed, by which packed keys
 * `from` .. n - 1 then have their hashes as well.  Once for each doubling of the
 * groups, so that a seed that is no better does not cost more than it may.
 */
static void
change_seed(GroupTable *table, int nwords, int from, int n)
{
	if (table->ngroups < table->seed_groups * 2)
		return;
	table->seed = hash_seed_random();
	table->seed_groups = table->ngroups;
	fill_hash_table(table, (size_t) table->mask + 1);
	for (int i = from; i < n; i++)
		table->hash[i] = hash_words(table, table->seed, nwords, i);
}

/* The i-th of n packed keys, which is of batch row `row`. */
static inline uint32
probe(GroupTable *table, const Batch *batch, int nwords, int i, int n, int row)
{
	uint32		hash = table->hash[i];
	uint32		pos = hash & table->mask;

	for (;;)
	{
		uint64		entry = table->table[pos];
		uint32		at = (uint32) entry;

		if (at == NO_GROUP)
			break;
		if ((uint32) (entry >> 32) == hash)
		{
			const uint64 *words = (const uint64 *) group_row_at(table, at);
			int			w = 0;

			while (w < nwords && words[w] == table->words[w][i])
				w++;
			if (w == nwords)
				return at;
		}
		pos = (pos + 1) & table->mask;
	}
	{
		uint32		probes = (pos - hash) & table->mask;
		uint32		at = insert_row(table, batch, row);

		if (at == NO_GROUP)
			return at;
		if ((uint64) table->ngroups * 4 > ((uint64) table->mask + 1) * 3)
		{
			grow_hash(table);
			table_insert(table->table, table->mask, ((uint64) hash << 32) | at);
		}
		else
			table->table[pos] = ((uint64) hash << 32) | at;
		if (unlikely(probes > MAX_PROBES))
			change_seed(table, nwords, i + 1, n);
		return at;
	}
}

static inline void
prefetch_row(const GroupTable *table, uint32 at)
{
	const char *row = group_row_at(table, at);

	__builtin_prefetch(row, 1);
	__builtin_prefetch(row + Min(table->row_size, 128) - 1, 1);
}

/* Looks n packed keys up; the i-th is of batch row rows[i], or i. */
static inline void
locate_hash_words(GroupTable *table, const Batch *batch, int nwords, int n, const uint32 *rows,
				  uint32 *out)
{
	HashSeed	seed = table->seed;

	for (int i = 0; i < n; i++)
		table->hash[i] = hash_words(table, seed, nwords, i);
	if (table->ngroups * table->row_size > SMALL_ROWS)
	{
		for (int i = 0; i < n; i++)
			__builtin_prefetch(&table->table[table->hash[i] & table->mask]);
		for (int i = 0; i < n; i++)
		{
			uint32		at = (uint32) table->table[table->hash[i] & table->mask];

			if (at != NO_GROUP)
				prefetch_row(table, at);
		}
	}
	for (int i = 0; i < n; i++)
		out[i] = probe(table, batch, nwords, i, n, rows ? rows[i] : i);
}

static void
locate_hash(GroupTable *table, const Batch *batch, int n, const uint32 *rows, uint32 *out)
{
	if (!table->table)
		group_table_use_hash(table, 0);
	if (table->nwords == 1)
		locate_hash_words(table, batch, 1, n, rows, out);
	else if (table->nwords == 2)
		locate_hash_words(table, batch, 2, n, rows, out);
	else
		locate_hash_words(table, batch, table->nwords, n, rows, out);
}

/* ---- direct ------------------------------------------------------------- */

/* Factors of the mixed-radix bin number; 0 if there would be more than max_bins. */
static int64
range_bins(int nkeys, KeyRange *ranges, int64 max_bins)
{
	int64		bins = 1;

	for (int k = 0; k < nkeys; k++)
	{
		uint64		values = 1;

		/* keys without a value yet have NULL's bin alone */
		if (ranges[k].any)
		{
			values = (uint64) ranges[k].max - (uint64) ranges[k].min;
			if (values >= (uint64) max_bins)
				return 0;
			values += 2;
		}
		else
			ranges[k].min = 0;
		ranges[k].factor = bins;
		bins *= (int64) values;
		if (bins > max_bins)
			return 0;
	}
	return bins;
}

/* A key of a row as a signed number. */
static int64
row_key(const GroupTable *table, const char *row, int k, bool *isnull)
{
	uint64		bits = group_key_value(table, row, k, isnull);

	switch (table->spec->cols[table->spec->keys[k].col].type)
	{
#define X(NAME, value_t, bits_t, ...) \
		case COLUMN_##NAME: \
			return (value_t) (bits_t) bits;
		COLUMN_INTEGERS(X)
#undef X
		default:
			return (int64) bits;
	}
}

/* Changes over to TABLE_DIRECT over table->ranges; false if they are too wide. */
bool
group_table_use_direct(GroupTable *table)
{
	int			nkeys = table->spec->nkeys;
	int64		bins = range_bins(nkeys, table->ranges, table->max_bins);

	if (bins == 0)
		return false;
	if (table->map)
		pfree(table->map);
	if (table->table)
		pfree(table->table);
	table->table = NULL;
	table->mask = 0;
	table->map = MemoryContextAllocHuge(table->cxt, bins * sizeof(uint32));
	advise_huge((char *) table->map, bins * sizeof(uint32));
	memset(table->map, 0xff, bins * sizeof(uint32));
	table->bins = bins;
	table->mode = TABLE_DIRECT;
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);
		uint64		bin = 0;

		for (int k = 0; k < nkeys; k++)
		{
			bool		isnull;
			int64		v = row_key(table, row, k, &isnull);

			if (!isnull)
				bin += ((uint64) v - (uint64) table->ranges[k].min + 1) * table->ranges[k].factor;
		}
		table->map[bin] = g * table->row_cells;
	}
	return true;
}

/* Wider than needed on the side where the data went out, so that growing stays rare. */
static void
widen_range(const KeyRange *old, KeyRange *range)
{
	uint64		slack = ((uint64) old->max - (uint64) old->min) / 4 + 64;

	if (!old->any)
		return;
	if (range->max > old->max)
		range->max = range->max > (int64) (PG_INT64_MAX - slack) ? PG_INT64_MAX
			: range->max + (int64) slack;
	if (range->min < old->min)
		range->min = range->min < (int64) (PG_INT64_MIN + slack) ? PG_INT64_MIN
			: range->min - (int64) slack;
}

/* Sees to it that the batch's keys are within the ranges; false: now hashing. */
static bool
cover_ranges(GroupTable *table, const Batch *batch)
{
	int			nkeys = table->spec->nkeys;
	size_t		size = nkeys * sizeof(KeyRange);
	KeyRange   *exact = palloc(size);
	KeyRange   *wide = palloc(size);
	bool		inside = true;

	memcpy(exact, table->ranges, size);
	group_keys_ranges(table, batch, exact);
	memcpy(wide, exact, size);
	for (int k = 0; k < nkeys; k++)
	{
		if (exact[k].any != table->ranges[k].any || exact[k].min != table->ranges[k].min ||
			exact[k].max != table->ranges[k].max)
			inside = false;
		widen_range(&table->ranges[k], &wide[k]);
	}
	if (!inside)
	{
		memcpy(table->ranges, range_bins(nkeys, wide, table->max_bins) ? wide : exact, size);
		inside = group_table_use_direct(table);
		if (!inside)
		{
			group_table_use_hash(table, 0);
			table->changes++;
		}
	}
	pfree(exact);
	pfree(wide);
	return inside;
}

static void
locate_direct(GroupTable *table, const Batch *batch, int n, const uint32 *rows, uint32 *out)
{
	const uint64 *bins = table->words[0];
	uint32	   *map = table->map;

	if (table->bins > SMALL_BINS)
	{
		for (int i = 0; i < n; i++)
			__builtin_prefetch(&map[bins[i]]);
		if (table->ngroups * table->row_size > SMALL_ROWS)
			for (int i = 0; i < n; i++)
				if (map[bins[i]] != NO_GROUP)
					prefetch_row(table, map[bins[i]]);
	}
	for (int i = 0; i < n; i++)
	{
		uint32		at = map[bins[i]];

		if (unlikely(at == NO_GROUP))
			map[bins[i]] = at = insert_row(table, batch, rows ? rows[i] : i);
		out[i] = at;
	}
}

/* ---- dictionary, segmented ---------------------------------------------- */

/* The only key's code is the row. */
static void
locate_dictionary(GroupTable *table, const Batch *batch)
{
	const int32 *codes = table->codes[0];

	dictionary_lookup(table->dicts[0], &batch->cols[table->spec->keys[0].col], batch->nrows,
					  table->frozen ? 0 : table->max_groups, table->max_dict_bytes, table->codes[0],
					  table->hashes[0]);
	for (int i = 0; i < batch->nrows; i++)
	{
		int32		code = codes[i];

		if (code >= (int64) table->ngroups)
			group_keys_store(table, group_row_at(table, group_table_add(table)), batch, i);
		table->at[i] = code == NO_CODE ? NO_GROUP : (uint32) code * table->row_cells;
		table->denied |= code == NO_CODE;
	}
	table->frozen |= table->denied;
}

/* Each run is a group; the first may go on with the row carried over. */
static void
locate_segments(GroupTable *table, const Batch *batch)
{
	bool		datums = false;
	int			r = 0;

	group_keys_pack(table, batch);
	for (int k = 0; k < table->spec->nkeys; k++)
		datums |= table->keys[k].word < 0;
	if (!datums)
		split_runs(table, table->nwords, batch->nrows);
	else
	{
		for (int i = 0; i < batch->nrows; i++)
			if (i == 0 || !same_words(table, table->nwords, i, i - 1) ||
				!group_keys_same_datums(table, batch, i - 1, i))
				table->run_start[r++] = i;
		table->run_start[r] = batch->nrows;
		table->nruns = r;
		table->mean_run = batch->nrows / (double) r;
	}
	for (r = 0; r < table->nruns; r++)
	{
		int			i = table->run_start[r];

		if (r == 0 && table->ngroups > 0 &&
			group_keys_row_matches(table, group_row(table, table->ngroups - 1), batch, i))
			table->run_at[r] = (table->ngroups - 1) * table->row_cells;
		else
		{
			table->run_at[r] = group_table_add(table);
			group_keys_store(table, group_row_at(table, table->run_at[r]), batch, i);
		}
	}
	expand_runs(table);
}

/* Segmented: the last group becomes the only one; the others are done with. */
void
group_table_carry_last(GroupTable *table)
{
	const AggSpec *spec = table->spec;
	MemoryContext emitted = table->key_cxt;
	MemoryContext old;
	uint64	   *words;

	if (table->ngroups <= 1)
		return;
	memcpy(table->rows, group_row(table, table->ngroups - 1), table->row_size);
	table->ngroups = 1;
	words = (uint64 *) table->rows;
	old = MemoryContextSwitchTo(table->spare_cxt);
	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeyLayout *key = &table->keys[k];
		const ColumnSpec *col = &spec->cols[spec->keys[k].col];

		if (key->word < 0 && !(words[key->null_word] & key->null_bit))
			words[key->shown] = datumCopy(words[key->shown], col->typbyval, col->typlen);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(emitted);
	table->key_cxt = table->spare_cxt;
	table->spare_cxt = emitted;
}

/* ---- all ---------------------------------------------------------------- */

static void
locate_words(GroupTable *table, const Batch *batch)
{
	bool		direct = table->mode == TABLE_DIRECT && cover_ranges(table, batch);
	int			n = batch->nrows;
	bool		runs;

	if (direct)
		group_keys_bins(table, batch);
	else
		group_keys_pack(table, batch);
	runs = find_runs(table, direct ? 1 : table->nwords, n);
	if (runs)
		n = table->nruns;
	if (direct)
		locate_direct(table, batch, n, runs ? table->run_start : NULL,
					  runs ? table->run_at : table->at);
	else
		locate_hash(table, batch, n, runs ? table->run_start : NULL,
					runs ? table->run_at : table->at);
	if (runs)
		expand_runs(table);
}

/*
 * Finds or makes the group of every row: fills at, the runs if there are any,
 * and missing.
 */
void
group_table_locate(GroupTable *table, const Batch *batch)
{
	MemoryContext old = MemoryContextSwitchTo(table->cxt);

	table->nmissing = 0;
	table->nruns = 0;
	table->denied = false;
	switch (table->mode)
	{
		case TABLE_SINGLE:
			if (table->ngroups == 0)
				group_table_add(table);
			table->nruns = 1;
			table->run_start[0] = 0;
			table->run_start[1] = batch->nrows;
			table->run_at[0] = 0;
			table->mean_run = batch->nrows;
			break;
		case TABLE_SEGMENTED:
			locate_segments(table, batch);
			break;
		case TABLE_DICTIONARY:
			locate_dictionary(table, batch);
			break;
		case TABLE_DIRECT:
		case TABLE_HASH:
			locate_words(table, batch);
			break;
	}
	if (table->denied)
		for (int i = 0; i < batch->nrows; i++)
			if (table->at[i] == NO_GROUP)
				table->missing[table->nmissing++] = i;
	MemoryContextSwitchTo(old);
}
