/*
 * store_entries.c
 *
 * Tables and columns of the store, and their ranges and chunks.
 *
 * Entries of evicted tables and columns stay as history of their uses, until their hash table is
 * full.
 */
#include "postgres.h"

#include "cache/store_internal.h"

/* ---- tables and columns ---------------------------------------------------------- */

StoredTable *
cache_table_find(const CacheTableKey *key, uint64 serial)
{
	StoredTable *table = hash_search(cache_tables, key, HASH_FIND, NULL);

	return table && table->serial == serial ? table : NULL;
}

/* Returns the hash key of a table's column. */
static StoredColumnKey
column_key(const StoredTable *table, const CacheColumnKey *col)
{
	StoredColumnKey key = {0};

	key.serial = table->serial;
	key.typid = col->typid;
	key.typmod = col->typmod;
	key.missing = col->missing;
	key.scale = col->scale;
	key.attno = col->attno;
	return key;
}

StoredColumn *
cache_column_find(StoredTable *table, const CacheColumnKey *col)
{
	StoredColumnKey key = column_key(table, col);

	return hash_search(cache_columns, &key, HASH_FIND, NULL);
}

/* Removes the entry of a column, which has no chunks. */
static void
remove_column(StoredColumn *column)
{
	StoredColumn **link = &column->table->columns;

	while (*link != column)
		link = &(*link)->next;
	*link = column->next;
	hash_search(cache_columns, &column->key, HASH_REMOVE, NULL);
}

/* Returns whether a column's entry has no chunks, so that it is only a history of uses. */
static bool
column_is_history(const StoredColumn *column)
{
	return column->sum.items == 0 && column->unpublished == 0;
}

/* Returns whether a table's entry has no ranges or chunks, so that it is only a history of uses. */
static bool
table_is_history(const StoredTable *table)
{
	if (table->sum.items > 0)
		return false;
	for (StoredColumn *column = table->columns; column; column = column->next)
		if (!column_is_history(column))
			return false;
	return true;
}

void
cache_table_remove(StoredTable *table)
{
	while (table->columns)
		remove_column(table->columns);
	hash_search(cache_tables, &table->key, HASH_REMOVE, NULL);
}

uint64
cache_table_bytes(const StoredTable *table)
{
	uint64 bytes = table->sum.bytes;

	for (StoredColumn *column = table->columns; column; column = column->next)
		bytes += column->sum.bytes;
	return bytes;
}

/*
 * Removes history entries of columns or tables: about the older half, at least one if there is
 * any.
 */
static void
forget_history(HTAB *entries)
{
	uint64 oldest = UINT64_MAX, newest = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		uint64 limit = oldest + (newest - oldest) / 2;
		HASH_SEQ_STATUS scan;
		void *entry;

		hash_seq_init(&scan, entries);
		while ((entry = hash_seq_search(&scan)) != NULL)
		{
			bool of_tables = entries == cache_tables;
			StoredTable *table = entry;
			StoredColumn *column = entry;
			uint64 last = of_tables ? table->use.last : column->use.last;

			if (of_tables ? !table_is_history(table) : !column_is_history(column))
				continue;
			if (pass == 0)
			{
				oldest = Min(oldest, last);
				newest = Max(newest, last);
			}
			else if (last <= limit)
			{
				if (of_tables)
					cache_table_remove(table);
				else
					remove_column(column);
			}
		}
		if (oldest == UINT64_MAX)
			return;
	}
}

/*
 * Returns the entry of a hash table with this key; adds it if there is none, after removing history
 * entries if the hash table is full. NULL: there is no room.
 */
static void *
find_or_add_entry(HTAB *entries, const void *key, bool *found)
{
	void *entry = hash_search(entries, key, HASH_ENTER_NULL, found);

	if (entry == NULL)
	{
		forget_history(entries);
		entry = hash_search(entries, key, HASH_ENTER_NULL, found);
	}
	return entry;
}

/* Initializes a sum with zeros. */
static void
init_sum(StoredSum *sum)
{
	memset(sum, 0, sizeof(StoredSum));
	pg_atomic_init_u64(&sum->dead, 0);
	pg_atomic_init_u64(&sum->hits, 0);
}

StoredTable *
cache_table_find_or_add(const CacheTableKey *key, Oid relid, Oid owner)
{
	bool found;
	StoredTable *table = find_or_add_entry(cache_tables, key, &found);

	if (table && !found)
	{
		memset(&table->use, 0, sizeof(StoredUse));
		init_sum(&table->sum);
		memset(&table->refresh, 0, sizeof(StoredRefresh));
		table->relid = relid;
		table->owner = owner;
		table->serial = cache_shared->next_serial++;
		table->columns = NULL;
		dlist_init(&table->ranges);
		dlist_init(&table->bare);
	}
	return table && table->serial != 0 ? table : NULL;
}

StoredColumn *
cache_column_find_or_add(StoredTable *table, const CacheColumnKey *col)
{
	bool found;
	StoredColumnKey key = column_key(table, col);
	StoredColumn *column = find_or_add_entry(cache_columns, &key, &found);

	if (column && !found)
	{
		memset(&column->use, 0, sizeof(StoredUse));
		init_sum(&column->sum);
		column->table = table;
		column->next = table->columns;
		table->columns = column;
		column->unpublished = 0;
		dlist_init(&column->chunks);
	}
	return column;
}

/* ---- ranges and chunks ------------------------------------------------------------- */

/* Returns how many bytes of the area a descriptor takes. */
static Size
range_bytes(void)
{
	return cache_memory_used(sizeof(StoredRange));
}

/*
 * Adds a descriptor or chunk of a range to a sum, but not its dead blocks. *filled is the number of
 * sums that are not empty.
 */
static void
add_to_sum(StoredSum *sum, uint64 *filled, const StoredRange *range, Size bytes)
{
	if (sum->items++ == 0)
		(*filled)++;
	sum->blocks += range->range.nblocks;
	sum->rows += range->range.nrows;
	sum->bytes += bytes;
}

/*
 * Subtracts a descriptor or chunk of a range from a sum, with its dead blocks. filled: see
 * add_to_sum().
 */
static void
subtract_from_sum(StoredSum *sum, uint64 *filled, StoredRange *range, Size bytes)
{
	if (--sum->items == 0)
		(*filled)--;
	sum->blocks -= range->range.nblocks;
	sum->rows -= range->range.nrows;
	sum->bytes -= bytes;
	pg_atomic_fetch_sub_u64(&sum->dead, pg_atomic_read_u32(&range->range.ndead));
}

void
cache_range_attach(StoredTable *table, StoredRange *range)
{
	StoredRange **bucket = &cache_shared->buckets[cache_bucket(range->serial, range->range_no)];
	LWLock *lock = cache_range_lock(range->serial, range->range_no);

	range->table = table;
	dlist_push_tail(&table->ranges, &range->in_table);
	dlist_push_tail(&table->bare, &range->in_bare);
	add_to_sum(&table->sum, &cache_shared->filled_tables, range, range_bytes());
	LWLockAcquire(lock, LW_EXCLUSIVE);
	pg_atomic_fetch_add_u64(&table->sum.dead, pg_atomic_read_u32(&range->range.ndead));
	range->next = *bucket;
	*bucket = range;
	LWLockRelease(lock);
}

void
cache_range_free(StoredRange *range)
{
	for (StoredChunk *chunk = range->chunks; chunk;)
	{
		StoredChunk *next = chunk->next;

		cache_memory_free(chunk->self);
		chunk = next;
	}
	cache_memory_free(range->self);
}

void
cache_range_detach(StoredRange *range)
{
	StoredRange **link = &cache_shared->buckets[cache_bucket(range->serial, range->range_no)];
	LWLock *lock = cache_range_lock(range->serial, range->range_no);
	bool pinned;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	while (*link != range)
		link = &(*link)->next;
	*link = range->next;
	range->detached = true;
	pinned = pg_atomic_read_u32(&range->pins) > 0;
	/*
	 * Blocks of detached ranges that are marked as changed later are not counted, so this
	 * subtracts what was added.
	 */
	subtract_from_sum(&range->table->sum, &cache_shared->filled_tables, range, range_bytes());
	if (range->chunks == NULL)
		dlist_delete(&range->in_bare);
	for (StoredChunk *chunk = range->chunks; chunk; chunk = chunk->next)
	{
		subtract_from_sum(&chunk->column->sum, &cache_shared->filled_columns, range, chunk->bytes);
		dlist_delete(&chunk->in_column);
		chunk->column = NULL;
	}
	dlist_delete(&range->in_table);
	range->table = NULL;
	LWLockRelease(lock);
	if (!pinned)
		cache_range_free(range);
}

void
cache_chunk_attach(StoredColumn *column, StoredRange *range, StoredChunk *chunk)
{
	LWLock *lock = cache_range_lock(range->serial, range->range_no);

	if (range->chunks == NULL)
		dlist_delete(&range->in_bare);
	add_to_sum(&column->sum, &cache_shared->filled_columns, range, chunk->bytes);
	dlist_push_tail(&column->chunks, &chunk->in_column);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	pg_atomic_fetch_add_u64(&column->sum.dead, pg_atomic_read_u32(&range->range.ndead));
	chunk->column = column;
	cache_chunk_link(range, chunk);
	LWLockRelease(lock);
}

bool
cache_chunk_evict(StoredChunk *chunk)
{
	StoredRange *range = chunk->range;
	StoredChunk **link = &range->chunks;
	LWLock *lock = cache_range_lock(range->serial, range->range_no);

	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&range->pins) > 0)
	{
		LWLockRelease(lock);
		return false;
	}
	while (*link != chunk)
		link = &(*link)->next;
	*link = chunk->next;
	link = cache_attno_list(range, chunk->key.attno);
	while (*link != chunk)
		link = &(*link)->next_by_attno;
	*link = chunk->next_by_attno;
	subtract_from_sum(&chunk->column->sum, &cache_shared->filled_columns, range, chunk->bytes);
	LWLockRelease(lock);
	dlist_delete(&chunk->in_column);
	if (range->chunks == NULL)
		dlist_push_tail(&range->table->bare, &range->in_bare);
	cache_memory_free(chunk->self);
	return true;
}

bool
cache_bare_range_evict(StoredRange *range)
{
	if (pg_atomic_read_u32(&range->pins) > 0)
		return false;
	/* If it gets pinned now, the last unpin frees it. */
	cache_range_detach(range);
	return true;
}
