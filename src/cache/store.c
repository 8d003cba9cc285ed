/*
 * store.c
 *
 * The store of cached columns: handles, pins, publication.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "cache/forget.h"
#include "cache/store.h"
#include "cache/store_internal.h"
#include "common/compat.h"
#include "settings.h"

/* Most times that an allocation evicts and tries again: what is evicted may not be adjacent. */
#define ALLOCATION_ROUNDS 16
/*
 * At least this fraction of the memory is evicted at a time, so that not every allocation has to
 * choose.
 */
#define EVICTED_PART 256
/* A handle that finds nothing to evict does not try again for so long. */
#define SHORTAGE_MS 1000

void
cache_store_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	cache_memory_init();
	forget_init();
}

bool
cache_exists(void)
{
	return cache_shared != NULL;
}

bool
cache_available(void)
{
	return cache_shared != NULL && gpuagg_cache != GPUAGG_CACHE_OFF;
}

CacheTableKey
cache_table_key(Relation rel)
{
	CompatLocator locator = compat_relation_locator(rel);
	CacheTableKey key;

	key.tablespace = compat_locator_tablespace(locator);
	key.database = compat_locator_database(locator);
	key.relnumber = compat_locator_number(locator);
	return key;
}

/* ---- tables and their use ------------------------------------------------------------ */

static void release_pin(CachePin *pin);

/* Reset callback of the handle's memory context: releases all of its pins. */
static void
release_all_pins(void *arg)
{
	CacheTable *table = arg;

	while (table->pins)
	{
		CachePin *pin = table->pins;

		table->pins = pin->next;
		release_pin(pin);
	}
}

CacheTable *
cache_table_open(const CacheTableKey *key, Relation rel)
{
	Oid owner = rel ? rel->rd_rel->relowner : InvalidOid;
	StoredTable *stored;
	CacheTable *table;
	bool change;
	uint64 serial = 0;

	if (cache_shared == NULL)
		return NULL;
	cache_memory_attach();
	table = palloc0(sizeof(CacheTable));
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	stored = hash_search(cache_tables, key, HASH_FIND, NULL);
	if (stored)
		serial = stored->serial;
	change = rel && (stored == NULL || stored->owner != owner);
	LWLockRelease(cache_shared->change_lock);
	if (change)
	{
		LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
		stored = cache_table_find_or_add(key, RelationGetRelid(rel), owner);
		if (stored)
		{
			stored->owner = owner;
			serial = stored->serial;
		}
		LWLockRelease(cache_shared->change_lock);
	}
	if (serial == 0)
	{
		pfree(table);
		return NULL;
	}
	table->key = *key;
	table->serial = serial;
	table->context = CurrentMemoryContext;
	table->callback.func = release_all_pins;
	table->callback.arg = table;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &table->callback);
	return table;
}

void
cache_table_evict_own(CacheTable *table)
{
	table->evicts_own = true;
}

uint64
cache_table_id(const CacheTable *table)
{
	return table->serial;
}

void
cache_table_use(CacheTable *table, int ncols, const CacheColumnKey *cols)
{
	TimestampTz now = GetCurrentTimestamp();
	StoredTable *stored;

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	stored = cache_table_find(&table->key, table->serial);
	if (stored)
	{
		uint64 clock = ++cache_shared->clock;

		cache_count_use(&stored->use, clock, now);
		for (int i = 0; i < ncols; i++)
		{
			StoredColumn *column = cache_column_find_or_add(stored, &cols[i]);

			if (column)
				cache_count_use(&column->use, clock, now);
		}
	}
	LWLockRelease(cache_shared->change_lock);
}

bool
cache_column_is_wanted(CacheTable *table, const CacheColumnKey *col)
{
	StoredTable *stored;
	StoredColumn *column = NULL;
	bool wanted;

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	stored = cache_table_find(&table->key, table->serial);
	if (stored)
		column = cache_column_find(stored, col);
	wanted = column &&
		(column->use.uses > 1 || column->sum.items > 0 || gpuagg_cache == GPUAGG_CACHE_EAGER);
	LWLockRelease(cache_shared->change_lock);
	return wanted;
}

bool
cache_table_is_filled(CacheTable *table)
{
	StoredTable *stored;
	bool filled;

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	stored = cache_table_find(&table->key, table->serial);
	filled = stored && stored->sum.items > 0;
	LWLockRelease(cache_shared->change_lock);
	return filled;
}

/* ---- for the planner ------------------------------------------------------------------ */

/* Returns the number of blocks that are not marked as changed. */
static uint64
live_blocks(const StoredSum *sum)
{
	return sum->blocks - Min(sum->blocks, pg_atomic_read_u64((pg_atomic_uint64 *) &sum->dead));
}

/*
 * Sets blocks[attno - 1] to the number of blocks that have unchanged chunks of the attribute in its
 * current type; if it has several column entries, to the largest number.
 */
static void
count_columns(const StoredTable *table, TupleDesc desc, uint64 *blocks)
{
	for (const StoredColumn *column = table->columns; column; column = column->next)
	{
		int a = column->key.attno - 1;

		if (a < desc->natts && column->key.typid == TupleDescAttr(desc, a)->atttypid &&
			column->key.typmod == TupleDescAttr(desc, a)->atttypmod)
			blocks[a] = Max(blocks[a], live_blocks(&column->sum));
	}
}

double
cache_table_share(Relation rel, BlockNumber nblocks, const Bitmapset *attnos)
{
	CacheTableKey key;
	StoredTable *table;
	uint64 *blocks;
	uint64 cached = 0;
	int member = -1;

	if (cache_shared == NULL || nblocks == 0)
		return 0;
	key = cache_table_key(rel);
	blocks = palloc0(sizeof(uint64) * (RelationGetNumberOfAttributes(rel) + 1));
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	table = hash_search(cache_tables, &key, HASH_FIND, NULL);
	if (table && table->serial != 0)
	{
		cached = live_blocks(&table->sum);
		count_columns(table, RelationGetDescr(rel), blocks);
	}
	LWLockRelease(cache_shared->change_lock);
	while ((member = bms_next_member(attnos, member)) >= 0)
	{
		int attno = member + FirstLowInvalidHeapAttributeNumber;

		cached = Min(cached, attno > 0 ? blocks[attno - 1] : 0);
	}
	pfree(blocks);
	return Min((double) cached / nblocks, 1.0);
}

/* ---- pins ------------------------------------------------------------------------------ */

StoredRange *
cache_range_find(uint64 serial, uint32 range_no)
{
	StoredRange *range = cache_shared->buckets[cache_bucket(serial, range_no)];

	while (range && (range->serial != serial || range->range_no != range_no))
		range = range->next;
	return range;
}

/* Returns the range's chunk with this key; NULL if there is none. */
static StoredChunk *
find_chunk(StoredRange *range, const CacheColumnKey *col)
{
	StoredChunk *chunk = *cache_attno_list(range, col->attno);

	while (chunk && !cache_column_equal(&chunk->key, col))
		chunk = chunk->next_by_attno;
	return chunk;
}

/*
 * Returns a pin with room for ncols chunks: one that has been released, or a new one. It pins
 * nothing yet.
 */
static CachePin *
take_spare_pin(CacheTable *table, int ncols)
{
	CachePin **link = &table->spare;
	CachePin *pin;

	while (*link && (*link)->room < ncols)
		link = &(*link)->next;
	pin = *link;
	if (pin)
		*link = pin->next;
	else
	{
		pin = MemoryContextAllocZero(table->context, sizeof(CachePin));
		pin->chunks = MemoryContextAlloc(table->context, Max(ncols, 1) * sizeof(*pin->chunks));
		pin->room = ncols;
	}
	pin->table = table;
	pin->ncols = ncols;
	pin->range = NULL;
	pin->failed = false;
	pin->unpublished = NULL;
	return pin;
}

/*
 * Sets the pin's chunks to those that the range has, or NULL, and counts hits. Under the bucket's
 * lock.
 */
static void
pin_chunks(CachePin *pin, StoredRange *range, const CacheColumnKey *cols)
{
	pg_atomic_fetch_add_u64(&range->table->sum.hits, 1);
	for (int i = 0; i < pin->ncols; i++)
	{
		StoredChunk *chunk = find_chunk(range, &cols[i]);

		pin->chunks[i] = chunk ? StoredChunkData(chunk) : NULL;
		if (chunk)
			pg_atomic_fetch_add_u64(&chunk->column->sum.hits, 1);
	}
}

CachePin *
cache_pin(CacheTable *table, uint32 range_no, int ncols, const CacheColumnKey *cols)
{
	LWLock *lock = cache_range_lock(table->serial, range_no);
	CachePin *pin = take_spare_pin(table, ncols);
	StoredRange *range;

	LWLockAcquire(lock, LW_SHARED);
	range = cache_range_find(table->serial, range_no);
	if (range)
	{
		pg_atomic_fetch_add_u32(&range->pins, 1);
		pin_chunks(pin, range, cols);
		pin->range = &range->range;
	}
	LWLockRelease(lock);
	if (range)
	{
		pin->next = table->pins;
		table->pins = pin;
		return pin;
	}
	pin->next = table->spare;
	table->spare = pin;
	return NULL;
}

bool
cache_has_columns(CacheTable *table, uint32 range_no, int ncols, const CacheColumnKey *cols)
{
	LWLock *lock = cache_range_lock(table->serial, range_no);
	StoredRange *range;
	bool has;

	LWLockAcquire(lock, LW_SHARED);
	range = cache_range_find(table->serial, range_no);
	has = range != NULL;
	for (int i = 0; i < ncols && has; i++)
		has = find_chunk(range, &cols[i]) != NULL;
	LWLockRelease(lock);
	return has;
}

void
cache_count_hits(CacheTable *table, uint32 nranges, int ncols, const CacheColumnKey *cols)
{
	StoredTable *stored;

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	stored = cache_table_find(&table->key, table->serial);
	if (stored)
		pg_atomic_fetch_add_u64(&stored->sum.hits, nranges);
	for (int i = 0; stored && i < ncols; i++)
	{
		StoredColumn *column = cache_column_find(stored, &cols[i]);

		if (column)
			pg_atomic_fetch_add_u64(&column->sum.hits, nranges);
	}
	LWLockRelease(cache_shared->change_lock);
}

/*
 * Ends the unpublished state of a chunk, before it is published or freed. Under change_lock.
 * Returns its column; NULL: the table has been forgotten.
 */
static StoredColumn *
end_unpublished(CachePin *pin, StoredChunk *chunk)
{
	StoredTable *table = cache_table_find(&pin->table->key, pin->table->serial);
	StoredColumn *column = table ? cache_column_find(table, &chunk->key) : NULL;

	if (column)
		column->unpublished--;
	return column;
}

/* Removes a chunk from the pin's list of unpublished chunks. */
static void
forget_unpublished(CachePin *pin, StoredChunk *chunk)
{
	StoredChunk **link = &pin->unpublished;

	while (*link != chunk)
		link = &(*link)->next;
	*link = chunk->next;
}

void
cache_free_chunk(CachePin *pin, struct CacheChunk *data)
{
	StoredChunk *chunk = StoredChunkOf(data);

	forget_unpublished(pin, chunk);
	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	end_unpublished(pin, chunk);
	cache_memory_free(chunk->self);
	LWLockRelease(cache_shared->change_lock);
}

/*
 * Ends a pin: frees its unpublished chunks, and the range too if it is detached and has no other
 * pins. The caller removes the pin from the handle's list.
 */
static void
release_pin(CachePin *pin)
{
	StoredRange *range = StoredRangeOf(pin->range);
	LWLock *lock = cache_range_lock(range->serial, range->range_no);
	bool last;

	while (pin->unpublished)
		cache_free_chunk(pin, StoredChunkData(pin->unpublished));
	LWLockAcquire(lock, LW_SHARED);
	/* A detached range has no new pins, so only one process finds itself the last. */
	last = pg_atomic_sub_fetch_u32(&range->pins, 1) == 0 && range->detached;
	LWLockRelease(lock);
	if (last)
	{
		LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
		cache_range_free(range);
		LWLockRelease(cache_shared->change_lock);
	}
}

/* Removes a range if it has no chunks: its memory has no use. */
static void
drop_if_bare(StoredRange *range)
{
	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	if (!range->detached && range->chunks == NULL)
		cache_range_detach(range);
	LWLockRelease(cache_shared->change_lock);
}

void
cache_unpin(CachePin *pin)
{
	CacheTable *table = pin->table;
	CachePin **link = &table->pins;

	while (*link != pin)
		link = &(*link)->next;
	*link = pin->next;
	if (pin->failed)
		drop_if_bare(StoredRangeOf(pin->range));
	release_pin(pin);
	pin->next = table->spare;
	table->spare = pin;
}

void
cache_mark_dead(CachePin *pin, const CacheBlocks *blocks)
{
	StoredRange *range = StoredRangeOf(pin->range);
	LWLock *lock = cache_range_lock(range->serial, range->range_no);
	int n = 0;

	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		if (blocks->word[w])
		{
			uint64 before = pg_atomic_fetch_or_u64(&range->range.dead[w], blocks->word[w]);

			n += pg_popcount64(blocks->word[w] & ~before);
		}
	if (n == 0)
		return;
	LWLockAcquire(lock, LW_SHARED);
	pg_atomic_fetch_add_u32(&range->range.ndead, n);
	if (!range->detached)
	{
		pg_atomic_fetch_add_u64(&range->table->sum.dead, n);
		for (StoredChunk *chunk = range->chunks; chunk; chunk = chunk->next)
			pg_atomic_fetch_add_u64(&chunk->column->sum.dead, n);
	}
	LWLockRelease(lock);
}

/* ---- publication ------------------------------------------------------------------------- */

/*
 * Returns whether a column may get a chunk or, if column is NULL, a table may get a range: it has
 * some already, or the number of columns or tables that have some is below its limit. Under
 * change_lock.
 */
static bool
may_fill(const StoredTable *table, const StoredColumn *column)
{
	if (column)
		return column->sum.items > 0 ||
			cache_shared->filled_columns < cache_shared->most_filled_columns;
	return table->sum.items > 0 || cache_shared->filled_tables < cache_shared->most_filled_tables;
}

/*
 * Evicts memory, or an entry, for a chunk of a column or a range of a table. own: from tables of
 * the same owner only. Under change_lock. Returns the freed bytes.
 */
static Size
evict_for(const StoredTable *table, const StoredColumn *column, bool own, Size need)
{
	StoredDemand demand = {.database = table->key.database,
						   .owner = own ? table->owner : InvalidOid};

	demand.use = column ? &column->use : &table->use;
	if (!may_fill(table, column))
		return cache_evict_entry(&demand, column == NULL);
	return cache_evict(&demand, need);
}

/*
 * Allocates memory for a chunk of the column, or for a descriptor if col is NULL, from free memory
 * or by evicting what is worth less. Returns NULL if there is none. Counts a chunk as unpublished
 * with its column. On return, no interrupt has been checked since the memory was allocated.
 */
static void *
get_memory(CacheTable *table, const CacheColumnKey *col, Size size, dsa_pointer *self)
{
	Size need = Max(cache_memory_used(size), cache_shared->memory / EVICTED_PART);

	bool evict = table->short_until == 0 || GetCurrentTimestamp() > table->short_until;

	for (int round = 0; round <= (evict ? ALLOCATION_ROUNDS : 0); round++)
	{
		StoredTable *stored;
		StoredColumn *column = NULL;
		void *memory = NULL;
		Size freed = 0;

		LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
		stored = cache_table_find(&table->key, table->serial);
		if (stored && col)
			column = cache_column_find_or_add(stored, col);
		if (stored && (column || !col))
		{
			if (may_fill(stored, column))
				memory = cache_memory_get(size, self);
			if (!memory && round > 0)
			{
				freed = evict_for(stored, column, table->evicts_own, need);
				if (freed > 0 && may_fill(stored, column))
					memory = cache_memory_get(size, self);
			}
			if (memory && column)
				column->unpublished++;
		}
		LWLockRelease(cache_shared->change_lock);
		if (memory)
			return memory;
		/* Before evicting anything, free what belongs to tables that do not exist any more. */
		if (round == 0 && evict)
			forget_sweep_if_due();
		else if (freed == 0)
			break;
		CHECK_FOR_INTERRUPTS();
	}
	if (evict)
		table->short_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), SHORTAGE_MS);
	return NULL;
}

bool
cache_publish_range(CacheTable *table, uint32 range_no, const CacheRange *contents,
					const CacheRange *expected)
{
	StoredTable *stored;
	StoredRange *present = NULL;
	dsa_pointer self;
	StoredRange *range = get_memory(table, NULL, sizeof(StoredRange), &self);
	bool expect;

	if (range == NULL)
		return false;
	memset(range, 0, offsetof(StoredRange, range));
	range->serial = table->serial;
	range->range_no = range_no;
	range->self = self;
	pg_atomic_init_u32(&range->pins, 0);
	memcpy(&range->range, contents, sizeof(CacheRange));
	range->range.stamp = pg_atomic_fetch_add_u64(&cache_shared->next_stamp, 1);

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	stored = cache_table_find(&table->key, table->serial);
	if (stored)
		present = cache_range_find(table->serial, range_no);
	expect = stored && expected == (present ? &present->range : NULL);
	if (expect)
	{
		if (present)
			cache_range_detach(present);
		cache_range_attach(stored, range);
	}
	else
		cache_memory_free(self);
	LWLockRelease(cache_shared->change_lock);
	return expect;
}

struct CacheChunk *
cache_alloc_chunk(CachePin *pin, const CacheColumnKey *col, Size size)
{
	dsa_pointer self;
	StoredChunk *chunk;

	if (size >= cache_shared->memory)
		return NULL;
	size += MAXALIGN(sizeof(StoredChunk));
	chunk = get_memory(pin->table, col, size, &self);
	if (chunk == NULL)
	{
		pin->failed = true;
		return NULL;
	}
	memset(chunk, 0, sizeof(StoredChunk));
	chunk->range = StoredRangeOf(pin->range);
	chunk->key = *col;
	chunk->bytes = cache_memory_used(size);
	chunk->self = self;
	chunk->next = pin->unpublished;
	pin->unpublished = chunk;
	return StoredChunkData(chunk);
}

const struct CacheChunk *
cache_publish_chunk(CachePin *pin, int i, const CacheColumnKey *col, struct CacheChunk *data)
{
	StoredChunk *chunk = StoredChunkOf(data);
	StoredRange *range = chunk->range;
	StoredChunk *present;
	StoredColumn *column;

	forget_unpublished(pin, chunk);
	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	column = end_unpublished(pin, chunk);
	/* Without a column, the table is being forgotten, and its range will be. */
	if (column == NULL && !range->detached)
		cache_range_detach(range);
	present = find_chunk(range, col);
	if (present)
		cache_memory_free(chunk->self);
	else if (range->detached)
		cache_chunk_link(range, chunk); /* freed with the range */
	else
		cache_chunk_attach(column, range, chunk);
	LWLockRelease(cache_shared->change_lock);
	data = StoredChunkData(present ? present : chunk);
	if (i >= 0)
		pin->chunks[i] = data;
	return data;
}
