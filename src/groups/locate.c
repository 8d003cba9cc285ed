/*
 * locate.c
 *	  Finds the groups of a batch's rows; see table.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "columns/hash_seed.h"
#include "groups/huge_pages.h"
#include "groups/table.h"

/* Maps of up to this many bins stay in the first-level cache. */
#define SMALL_BINS 8192
/* Table rows of up to this many bytes stay in the second-level cache and need no prefetching. */
#define SMALL_ROWS (512 * 1024)
/* Runs are looked for if at least half of this many rows equal the row before. */
#define RUN_SAMPLE 128
/*
 * A probe sequence that is longer does not come by chance. The longest one in a table of a billion
 * rows that is three quarters full is half as long.
 */
#ifndef MAX_PROBES
#define MAX_PROBES 1024
#endif

/*
 * Adds a group with the keys of batch row i. Returns the offset of its table row. If there is no
 * room, returns NO_GROUP, and the table accepts no new groups from now on.
 */
static uint32
insert_row(GroupTable *table, const Batch *batch, int i)
{
	uint32 at;

	if (table->frozen || (table->ngroups > 0 && table->ngroups >= table->max_groups) ||
		(table->mode == TABLE_HASH && !table->foreign_rows &&
		 group_keys_lacks_code(&table->keys, i)))
	{
		table->denied = table->frozen = true;
		return NO_GROUP;
	}
	at = group_table_add(table);
	if (table->foreign_rows)
		memcpy(group_row_at(table, at), table->foreign_rows + (size_t) i * table->row_size,
			   table->keys.nhead * sizeof(uint64));
	else
		group_keys_store(&table->keys, group_row_at(table, at), batch, i);
	return at;
}

/* Packs the keys of a batch. If the table is frozen, new values of Datum keys get no code. */
static void
pack_keys(GroupTable *table, const Batch *batch)
{
	group_keys_pack(&table->keys, batch, table->frozen ? 0 : PG_INT32_MAX, table->max_dict_bytes);
}

/* ---- runs --------------------------------------------------------------- */

/* Returns whether rows i and j of the packed batch have the same words. */
static inline bool
same_words(const GroupTable *table, int nwords, int i, int j)
{
	for (int w = 0; w < nwords; w++)
		if (table->keys.words[w][i] != table->keys.words[w][j])
			return false;
	return true;
}

/* Sets run_start, nruns and mean_run: the runs of equal keys among n rows. */
static void
split_runs(GroupTable *table, int nwords, int n)
{
	uint32 *start = table->run_start;
	int r = 0;

	start[r++] = 0;
	if (nwords == 1)
	{
		const uint64 *words = table->keys.words[0];

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

/*
 * Finds all runs of equal keys if at least half of a sample's rows equal the row before. Also moves
 * the packed words of each run's first row to index [run]. Returns whether it found the runs.
 */
static bool
find_runs(GroupTable *table, int nwords, int n)
{
	int same = 0;
	int sample = Min(n, RUN_SAMPLE);

	for (int i = 1; i < sample; i++)
		same += same_words(table, nwords, i, i - 1);
	table->mean_run = sample / (double) (sample - same);
	if (n < 2 || same * 2 < sample)
		return false;
	split_runs(table, nwords, n);
	for (int w = 0; w < nwords; w++)
		for (int r = 0; r < table->nruns; r++)
			table->keys.words[w][r] = table->keys.words[w][table->run_start[r]];
	return true;
}

/* Fills at[]: each row gets the offset that run_at[] has for its run. */
static void
expand_runs(GroupTable *table)
{
	for (int r = 0; r < table->nruns; r++)
	{
		uint32 at = table->run_at[r];

		for (uint32 i = table->run_start[r]; i < table->run_start[r + 1]; i++)
			table->at[i] = at;
	}
}

/* ---- hash --------------------------------------------------------------- */

/* Returns the hash of the i-th packed key. `seed` is table->seed, which callers load only once. */
static inline uint32
hash_words(const GroupTable *table, HashSeed seed, int nwords, int i)
{
	uint64 h = hash_fold(seed, table->keys.words[0][i]);

	for (int w = 1; w < nwords; w++)
		h = hash_fold(seed, h ^ table->keys.words[w][i]);
	return hash_finish(h);
}

/* Returns the hash of a group's packed words, as hash_words computes it for a batch. */
static uint32
hash_group(const GroupTable *table, uint32 group)
{
	const uint64 *words = (const uint64 *) group_row(table, group);
	uint64 h = hash_fold(table->seed, words[0]);

	for (int w = 1; w < table->keys.nwords; w++)
		h = hash_fold(table->seed, h ^ words[w]);
	return hash_finish(h);
}

/* Puts an entry into the first free position of its probe sequence. */
static void
table_insert(uint64 *slots, uint32 mask, uint64 entry)
{
	uint32 pos = (uint32) (entry >> 32) & mask;

	while ((uint32) slots[pos] != NO_GROUP)
		pos = (pos + 1) & mask;
	slots[pos] = entry;
}

/* Bytes, or groups, between checks for interrupts. */
#define FILLED_BYTES ((size_t) 16 * 1024 * 1024)
#define MOVED_GROUPS 65536

/* Sets all bytes to 0xff: entries of hash tables and maps are NO_GROUP then. */
static void
fill_empty(void *start, size_t size)
{
	for (size_t at = 0; at < size; at += FILLED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		memset((char *) start + at, 0xff, Min(FILLED_BYTES, size - at));
	}
}

/* Checks for interrupts if the index i of a loop is a multiple of MOVED_GROUPS. */
static inline void
check_interrupts_at(size_t i)
{
	if (i % MOVED_GROUPS == 0)
		CHECK_FOR_INTERRUPTS();
}

/* Returns the memory of a hash table of `size` entries, which are made empty. */
static uint64 *
new_hash_table(GroupTable *table, size_t size)
{
	uint64 *slots = group_table_take_spare(table, size);

	if (slots == NULL)
		slots = huge_pages_alloc(table->cxt, size * sizeof(uint64));
	table->hash_tables++;
	fill_empty(slots, size * sizeof(uint64));
	return slots;
}

/*
 * Returns how many entries a new hash table should have: enough for one more group, and for the
 * expected groups. The expectation is limited by GROUPS_UNPROVEN and GROUPS_PER_GROUP (table.h).
 */
static size_t
wanted_size(const GroupTable *table)
{
	double groups =
		Min(table->expected, Max(GROUPS_UNPROVEN, GROUPS_PER_GROUP * (double) table->ngroups));

	return group_table_hash_size(Max(Min(groups, table->max_groups), table->ngroups + 1.0));
}

/* Moves all entries to a hash table that is at least twice as large. */
static void
grow_hash(GroupTable *table)
{
	size_t old_size = (size_t) table->mask + 1;
	uint64 *old = table->table;
	size_t size = Max(old_size * 2, wanted_size(table));
	uint32 mask = size - 1;
	uint64 *slots = new_hash_table(table, size);

	for (size_t i = 0; i < old_size; i++)
	{
		check_interrupts_at(i);
		if ((uint32) old[i] != NO_GROUP)
			table_insert(slots, mask, old[i]);
	}
	huge_pages_free(old);
	table->table = slots;
	table->mask = mask;
}

/* Replaces the hash table by a new one of `size` entries, which has all groups. */
static void
fill_hash_table(GroupTable *table, size_t size)
{
	group_table_drop_hash(table);
	table->table = new_hash_table(table, size);
	table->mask = size - 1;
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		check_interrupts_at(g);
		table_insert(table->table, table->mask,
					 (uint64) hash_group(table, g) << 32 | (g * table->row_cells));
	}
}

void
group_table_use_hash(GroupTable *table, double groups)
{
	if (table->map)
		pfree(table->map);
	table->map = NULL;
	table->bins = 0;
	table->mode = TABLE_HASH;
	table->expected = groups;
	fill_hash_table(table, wanted_size(table));
}

void
group_table_clear(GroupTable *table)
{
	table->ngroups = table->seed_groups = 0;
	fill_empty(table->table, ((size_t) table->mask + 1) * sizeof(uint64));
}

/*
 * Called after a probe sequence that is too long: changes the seed, and hashes all groups and the
 * packed keys `from` .. n - 1 again. Does so at most once each time the number of groups doubles,
 * which bounds the time if new seeds are no better.
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

/*
 * Finds the group of the i-th of n packed keys, or adds it with the keys of batch row `row`.
 * Starts at `pos` of the key's probe sequence; no entry before it has the key's hash. Returns the
 * offset of its table row, or NO_GROUP if the group is new and there is no room.
 */
static inline uint32
lookup_or_add_group(GroupTable *table, const Batch *batch, int nwords, int i, int n, int row,
					uint32 pos)
{
	uint32 hash = table->hash[i];

	for (;;)
	{
		uint64 entry = table->table[pos];
		uint32 at = (uint32) entry;

		if (at == NO_GROUP)
			break;
		if ((uint32) (entry >> 32) == hash)
		{
			const uint64 *words = (const uint64 *) group_row_at(table, at);
			int w = 0;

			while (w < nwords && words[w] == table->keys.words[w][i])
				w++;
			if (w == nwords)
				return at;
		}
		pos = (pos + 1) & table->mask;
	}
	{
		uint32 probes = (pos - hash) & table->mask;
		uint32 at = insert_row(table, batch, row);

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

/* Prefetches the first cache line of a row, and the line of its last byte or of byte 127. */
static inline void
prefetch_row(const GroupTable *table, uint32 at)
{
	const char *row = group_row_at(table, at);

	__builtin_prefetch(row, 1);
	__builtin_prefetch(row + Min(table->row_size, 128) - 1, 1);
}

/*
 * Returns the first position in the probe sequence of a hash that is empty or has this hash, and
 * prefetches the row there.
 */
static inline uint32
prefetch_group(const GroupTable *table, uint32 hash)
{
	uint32 pos = hash & table->mask;
	uint64 entry = table->table[pos];

	while ((uint32) entry != NO_GROUP && (uint32) (entry >> 32) != hash)
	{
		pos = (pos + 1) & table->mask;
		entry = table->table[pos];
	}
	if ((uint32) entry != NO_GROUP)
		prefetch_row(table, (uint32) entry);
	return pos;
}

/*
 * Finds or adds the groups of n packed keys; sets out[i] as lookup_or_add_group returns it. The
 * i-th key is the key of batch row rows[i], or of row i if rows is NULL.
 */
static inline void
locate_hash_words(GroupTable *table, const Batch *batch, int nwords, int n, const uint32 *rows,
				  uint32 *out)
{
	HashSeed seed = table->seed;
	uint32 hash_tables = 0; /* positions in out[] belong to this hash table; 0: there are none */

	for (int i = 0; i < n; i++)
		table->hash[i] = hash_words(table, seed, nwords, i);
	if (table->ngroups * table->row_size > SMALL_ROWS)
	{
		hash_tables = table->hash_tables;
		for (int i = 0; i < n; i++)
			__builtin_prefetch(&table->table[table->hash[i] & table->mask]);
		for (int i = 0; i < n; i++)
			out[i] = prefetch_group(table, table->hash[i]);
	}
	for (int i = 0; i < n; i++)
	{
		/* a table that is made in this loop has other positions */
		uint32 pos = table->hash_tables == hash_tables ? out[i] : table->hash[i] & table->mask;

		out[i] = lookup_or_add_group(table, batch, nwords, i, n, rows ? rows[i] : i, pos);
	}
}

/*
 * TABLE_HASH: calls locate_hash_words, with a constant number of words where that is 1 or 2, so
 * that the compiler can unroll its loops. Creates the hash table if there is none.
 */
static void
locate_hash(GroupTable *table, const Batch *batch, int n, const uint32 *rows, uint32 *out)
{
	if (!table->table)
		group_table_use_hash(table, 0);
	if (table->keys.nwords == 1)
		locate_hash_words(table, batch, 1, n, rows, out);
	else if (table->keys.nwords == 2)
		locate_hash_words(table, batch, 2, n, rows, out);
	else
		locate_hash_words(table, batch, table->keys.nwords, n, rows, out);
}

/* ---- direct ------------------------------------------------------------- */

/*
 * Sets ranges[].factor, the keys' weights in the mixed-radix bin number. Returns the number of
 * bins, or 0 if there would be more than max_bins.
 */
static int64
range_bins(int nkeys, KeyRange *ranges, int64 max_bins)
{
	int64 bins = 1;

	for (int k = 0; k < nkeys; k++)
	{
		uint64 values = 1;

		/* a key without values so far has only the bin for NULL */
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

/* Extends keys.ranges so that they include the keys of the group in this table row. */
static inline void
extend_ranges_to_row(GroupTable *table, const char *row)
{
	for (int k = 0; k < table->spec->nkeys; k++)
	{
		KeyRange *range = &table->keys.ranges[k];
		bool isnull;
		int64 v = group_key_integer(&table->keys, row, k, &isnull);

		if (isnull)
			continue;
		range->min = range->any ? Min(range->min, v) : v;
		range->max = range->any ? Max(range->max, v) : v;
		range->any = true;
	}
}

bool
group_table_use_direct(GroupTable *table)
{
	int nkeys = table->spec->nkeys;
	int64 bins;

	for (uint32 g = 0; g < table->ngroups; g++)
	{
		check_interrupts_at(g);
		extend_ranges_to_row(table, group_row(table, g));
	}
	bins = range_bins(nkeys, table->keys.ranges, table->max_bins);
	if (bins == 0)
		return false;
	if (table->map)
		pfree(table->map);
	group_table_drop_hash(table);
	table->map = MemoryContextAllocHuge(table->cxt, bins * sizeof(uint32));
	huge_pages_advise((char *) table->map, bins * sizeof(uint32));
	fill_empty(table->map, bins * sizeof(uint32));
	table->bins = bins;
	table->mode = TABLE_DIRECT;
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);
		uint64 bin = 0;

		check_interrupts_at(g);
		for (int k = 0; k < nkeys; k++)
		{
			bool isnull;
			int64 v = group_key_integer(&table->keys, row, k, &isnull);

			if (!isnull)
				bin += ((uint64) v - (uint64) table->keys.ranges[k].min + 1) *
					table->keys.ranges[k].factor;
		}
		table->map[bin] = g * table->row_cells;
	}
	return true;
}

/* Adds slack on the sides where *range exceeds *old, so that the map does not grow often. */
static void
add_slack(const KeyRange *old, KeyRange *range)
{
	uint64 slack = ((uint64) old->max - (uint64) old->min) / 4 + 64;

	if (old->any)
		key_range_widen(old, range, slack);
}

/*
 * Returns whether the column bounds that the feed has set prove that the batch's keys are within
 * the ranges.
 */
static bool
bounds_are_inside(const GroupTable *table, const Batch *batch)
{
	for (int k = 0; k < table->spec->nkeys; k++)
	{
		const Column *col = &batch->cols[table->spec->keys[k].col];
		const KeyRange *range = &table->keys.ranges[k];

		if (!col->has_bounds || !range->any || col->least.integer < range->min ||
			col->greatest.integer > range->max)
			return false;
	}
	return true;
}

/*
 * Extends keys.ranges so that they include the batch's keys, and rebuilds the map if they change.
 * Returns false if the map would need too many bins; the table is a TABLE_HASH then.
 */
static bool
extend_ranges_to_batch(GroupTable *table, const Batch *batch)
{
	int nkeys = table->spec->nkeys;
	size_t size = nkeys * sizeof(KeyRange);
	KeyRange *exact;
	KeyRange *wide;
	bool inside = true;

	if (bounds_are_inside(table, batch))
		return true;
	exact = palloc(size);
	wide = palloc(size);
	memcpy(exact, table->keys.ranges, size);
	group_keys_ranges(&table->keys, batch, exact);
	memcpy(wide, exact, size);
	for (int k = 0; k < nkeys; k++)
	{
		if (exact[k].any != table->keys.ranges[k].any ||
			exact[k].min != table->keys.ranges[k].min || exact[k].max != table->keys.ranges[k].max)
			inside = false;
		add_slack(&table->keys.ranges[k], &wide[k]);
	}
	if (!inside)
	{
		/* without slack, each batch might extend the ranges and rebuild the map */
		inside = range_bins(nkeys, wide, table->max_bins) > 0;
		memcpy(table->keys.ranges, inside ? wide : exact, size);
		inside = inside && group_table_use_direct(table);
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

/*
 * TABLE_DIRECT: finds or adds the groups of n keys, whose bins are in words[0]. Sets out[i] to the
 * offset of the group's table row, or NO_GROUP if there is no room. The i-th key is the key of
 * batch row rows[i], or of row i if rows is NULL.
 */
static void
locate_direct(GroupTable *table, const Batch *batch, int n, const uint32 *rows, uint32 *out)
{
	const uint64 *bins = table->keys.words[0];
	uint32 *map = table->map;

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
		uint32 at = map[bins[i]];

		if (unlikely(at == NO_GROUP))
			map[bins[i]] = at = insert_row(table, batch, rows ? rows[i] : i);
		out[i] = at;
	}
}

/* ---- dictionary, segmented ---------------------------------------------- */

/*
 * TABLE_DICTIONARY: finds or adds the groups of a batch; sets at[]. The dictionary code of the only
 * key is the number of the group.
 */
static void
locate_dictionary(GroupTable *table, const Batch *batch)
{
	const int32 *codes = table->keys.codes[0];

	dictionary_lookup(table->keys.dicts[0], &batch->cols[table->spec->keys[0].col], batch->nrows,
					  table->frozen ? 0 : table->max_groups, table->max_dict_bytes,
					  table->keys.codes[0], table->keys.hashes[0]);
	for (int i = 0; i < batch->nrows; i++)
	{
		int32 code = codes[i];

		/* the code belongs to a group that group_table_truncate has dropped */
		if (code >= (int64) table->ngroups && table->frozen)
			code = NO_CODE;
		if (code >= (int64) table->ngroups)
			group_keys_store(&table->keys, group_row_at(table, group_table_add(table)), batch, i);
		table->at[i] = code == NO_CODE ? NO_GROUP : (uint32) code * table->row_cells;
		table->denied |= code == NO_CODE;
	}
	table->frozen |= table->denied;
}

/*
 * TABLE_SEGMENTED: finds the runs of equal keys in a batch, and adds a group for each; sets at[].
 * The first run may continue the last group of the batch before.
 */
static void
locate_segments(GroupTable *table, const Batch *batch)
{
	bool datums = false;
	int r = 0;

	pack_keys(table, batch);
	for (int k = 0; k < table->spec->nkeys; k++)
		datums |= table->keys.layout[k].word < 0;
	if (!datums)
		split_runs(table, table->keys.nwords, batch->nrows);
	else
	{
		for (int i = 0; i < batch->nrows; i++)
			if (i == 0 || !same_words(table, table->keys.nwords, i, i - 1) ||
				!group_keys_same_datums(&table->keys, batch, i - 1, i))
				table->run_start[r++] = i;
		table->run_start[r] = batch->nrows;
		table->nruns = r;
		table->mean_run = batch->nrows / (double) r;
	}
	for (r = 0; r < table->nruns; r++)
	{
		int i = table->run_start[r];

		if (r == 0 && table->ngroups > 0 &&
			group_keys_row_matches(&table->keys, group_row(table, table->ngroups - 1), batch, i))
			table->run_at[r] = (table->ngroups - 1) * table->row_cells;
		else
		{
			table->run_at[r] = group_table_add(table);
			group_keys_store(&table->keys, group_row_at(table, table->run_at[r]), batch, i);
		}
	}
	expand_runs(table);
}

/* ---- dropping groups ---------------------------------------------------- */

void
group_table_truncate(GroupTable *table, uint32 n, int rows)
{
	table->ngroups = n;
	table->frozen = table->mode != TABLE_SEGMENTED;
	if (table->mode == TABLE_HASH)
		fill_hash_table(table, (size_t) table->mask + 1);
	for (int64 b = 0; b < table->bins; b++)
		if (table->map[b] >= (uint64) n * table->row_cells)
			table->map[b] = NO_GROUP;
	while (table->nruns > 0 && table->run_start[table->nruns - 1] >= rows)
		table->nruns--;
	if (table->nruns > 0)
		table->run_start[table->nruns] = rows;
	while (table->nmissing > 0 && table->missing[table->nmissing - 1] >= rows)
		table->nmissing--;
}

/* ---- all ---------------------------------------------------------------- */

/*
 * Fills at[]. Sets bad if a key is out of range. Sets the highest bit of found, as NO_GROUP does,
 * if a key has no group.
 */
#define EXISTING_LOOP(T) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		for (int i = 0; i < n; i++) \
		{ \
			uint64 key = (uint64) (int64) v[i] - min; \
			uint32 row = map[key <= span ? key : 0]; \
			bad |= key > span; \
			found |= row; \
			at[i] = row; \
		} \
	} while (0)

/*
 * Fills at[] where there is one key: reads the map without writing bins to memory first. Returns
 * false if some value is out of range or has no group; at[] is undefined then.
 */
static bool
locate_existing_key(GroupTable *table, const Column *col, int n)
{
	const KeyRange *range = table->keys.ranges;
	uint64 min = (uint64) range->min - (uint64) col->base;
	uint64 span = (uint64) range->max - (uint64) range->min;
	const uint32 *map = table->map + 1; /* bin 0 is NULL */
	uint32 *at = table->at;
	uint32 found = 0;
	bool bad = false;

	switch (column_form(col))
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		EXISTING_LOOP(value_t); \
		break;
		COLUMN_INTEGERS(X)
#undef X
#define X(width, from_t) \
	case FORM_NARROW + width: \
		EXISTING_LOOP(from_t); \
		break;
		COLUMN_NARROWS(X)
#undef X
		default:
			return false;
	}
	return !bad && found <= PG_INT32_MAX;
}

/* Adds one key's contribution to the bin numbers, modulo 2^32. All bin numbers are below that. */
#define ADD_BINS_LOOP(T) \
	do \
	{ \
		const T *v = (const T *) column_array(col); \
		if (first) \
			for (int i = 0; i < n; i++) \
				bins[i] = base + (uint32) v[i] * factor; \
		else \
			for (int i = 0; i < n; i++) \
				bins[i] += base + (uint32) v[i] * factor; \
	} while (0)

/*
 * Adds a key's contribution to bins[], the rows' bin numbers; if `first`, replaces them. Returns
 * false if the column is no integer.
 */
static bool
add_bins(uint32 *bins, const Column *col, const KeyRange *range, int n, bool first)
{
	uint32 factor = (uint32) range->factor;
	uint32 base = ((uint32) col->base - (uint32) range->min + 1) * factor;

	switch (column_form(col))
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		ADD_BINS_LOOP(value_t); \
		break;
		COLUMN_INTEGERS(X)
#undef X
#define X(width, from_t) \
	case FORM_NARROW + width: \
		ADD_BINS_LOOP(from_t); \
		break;
		COLUMN_NARROWS(X)
#undef X
		default:
			return false;
	}
	return true;
}

/*
 * Fills at[] where there are several keys: reads the map without searching. Returns false if the
 * feed's column bounds do not prove that all values are in range, or if some row has no group;
 * at[] is undefined then.
 */
static bool
locate_existing_keys(GroupTable *table, const Batch *batch)
{
	const AggSpec *spec = table->spec;
	const uint32 *map = table->map;
	uint32 *at = table->at;
	uint32 found = 0;
	int n = batch->nrows;

	if (!bounds_are_inside(table, batch))
		return false;
	for (int k = 0; k < spec->nkeys; k++)
		if (!add_bins(table->hash, &batch->cols[spec->keys[k].col], &table->keys.ranges[k], n,
					  k == 0))
			return false;
	for (int i = 0; i < n; i++)
	{
		at[i] = map[table->hash[i]];
		found |= at[i];
	}
	return found <= PG_INT32_MAX;
}

/*
 * Fills at[] of TABLE_DIRECT in a fast way. That needs few bins, no NULLs among the keys, no runs,
 * and an existing group for each row. Returns false if that is not so; at[] is undefined then.
 */
static bool
locate_existing(GroupTable *table, const Batch *batch)
{
	const AggSpec *spec = table->spec;
	int n = batch->nrows;
	int same = 0;

	if (table->bins > SMALL_BINS || table->ngroups * (uint64) table->row_cells > PG_INT32_MAX)
		return false;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];

		if (!table->keys.ranges[k].any || col->validity || col->unrepresentable)
			return false;
	}
	if (!(spec->nkeys == 1 ? locate_existing_key(table, &batch->cols[spec->keys[0].col], n) :
							 locate_existing_keys(table, batch)))
		return false;
	for (int i = 1; i < Min(n, RUN_SAMPLE); i++)
		same += table->at[i] == table->at[i - 1];
	table->mean_run = 1;
	return n > 1 && same * 2 < Min(n, RUN_SAMPLE);
}

/*
 * Finds or adds the groups of a batch in TABLE_DIRECT or TABLE_HASH, by runs where there are some.
 */
static void
locate_words(GroupTable *table, const Batch *batch)
{
	bool direct;
	int n = batch->nrows;
	bool runs;

	if (table->mode == TABLE_DIRECT && locate_existing(table, batch))
		return;
	direct = table->mode == TABLE_DIRECT && extend_ranges_to_batch(table, batch);
	if (direct)
		group_keys_bins(&table->keys, batch);
	else
		pack_keys(table, batch);
	runs = find_runs(table, direct ? 1 : table->keys.nwords, n);
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

void
group_table_locate_rows(GroupTable *table, const char *rows, int n)
{
	int nwords = table->keys.nwords;
	MemoryContext old = MemoryContextSwitchTo(table->cxt);

	Assert(table->mode == TABLE_HASH && n <= table->batch_rows);
	for (int i = 0; i < n; i++)
	{
		const uint64 *words = (const uint64 *) (rows + (size_t) i * table->row_size);

		for (int w = 0; w < nwords; w++)
			table->keys.words[w][i] = words[w];
	}
	table->nmissing = 0;
	table->nruns = 0;
	table->denied = false;
	table->foreign_rows = rows;
	locate_hash(table, NULL, n, NULL, table->at);
	table->foreign_rows = NULL;
	if (table->denied)
		for (int i = 0; i < n; i++)
			if (table->at[i] == NO_GROUP)
				table->missing[table->nmissing++] = i;
	MemoryContextSwitchTo(old);
}
