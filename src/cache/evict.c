/*
 * evict.c
 *
 * Chooses what is evicted when memory is short.
 *
 * The policy is LRU-2 (O'Neil, O'Neil and Weikum, SIGMOD 1993) per column of a table. The first
 * victim is the column whose last but one use is the oldest; columns that were used only once come
 * before all others. In addition, memory is only needed to cache something else, which must be
 * worth more than the victim. It is if the victim's last but one use is more than twice as long
 * ago as its own. So
 *
 * - a query over much data takes nothing from columns that are used repeatedly;
 *
 * - columns of one query take nothing from each other; where memory does not suffice for a column,
 * the chunks that are cached stay;
 *
 * - queries that are repeated in turn, over more than the memory, take nothing from each other
 * either. In a round of n queries the current one was run n uses ago, and no other one's last but
 * one use is 2n uses ago. Without the factor each would evict what the next one needs.
 *
 * Descriptors without chunks are evicted like a column that every query of the table uses; those
 * with chunks are kept.
 *
 * Entries may run out before memory does, if there are many small tables. Then a whole column, or
 * a whole table, is evicted in the same order.
 *
 * Databases share the memory. A database's share is the memory divided by the number of databases
 * that have anything cached. A database with more than its share is evicted first, and for a
 * database with less whatever the columns are worth.
 *
 * gpuagg_cache_prewarm() evicts only from tables of the same owner: a call by any user who may
 * read a table must not evict columns that the queries of others use.
 */
#include "postgres.h"

#include "cache/store_internal.h"

/* Most databases that are distinguished. Further ones have no share, and are evicted like all. */
#define MOST_DATABASES 64
/* Most columns that one eviction tries; the chunks of some may all be pinned. */
#define MOST_VICTIMS 8
/* Most chunks of one column, or ranges of one table, that an eviction visits. */
#define MOST_ITEMS 4096

typedef struct Share
{
	Oid database;
	uint64 bytes;
} Share;

typedef struct Shares
{
	int n;
	uint64 share; /* each database's share of the memory */
	Share entries[MOST_DATABASES];
} Shares;

typedef struct Victim
{
	StoredTable *table; /* if set, the victims are its ranges without chunks, or all ranges */
	StoredColumn *column;
} Victim;

/* What the demand needs. */
typedef enum Need
{
	NEED_MEMORY,
	NEED_COLUMN, /* a free entry of a column with chunks */
	NEED_TABLE   /* a free entry of a table with ranges */
} Need;

/* ---- shares of databases ------------------------------------------------------------- */

/*
 * Returns the entry of a database. If there is none, adds one if `make` is set and there is room,
 * and returns NULL otherwise.
 */
static Share *
find_share(Shares *shares, Oid database, bool make)
{
	for (int i = 0; i < shares->n; i++)
		if (shares->entries[i].database == database)
			return &shares->entries[i];
	if (!make || shares->n == MOST_DATABASES)
		return NULL;
	shares->entries[shares->n] = (Share){database, 0};
	return &shares->entries[shares->n++];
}

/* Adds bytes to the entry of a database. */
static void
count_share(Shares *shares, Oid database, uint64 bytes)
{
	Share *share = bytes > 0 ? find_share(shares, database, true) : NULL;

	if (share)
		share->bytes += bytes;
}

/*
 * Sets the bytes that each database has cached, and the share. `database` needs memory, so it
 * counts as one that has something cached.
 */
static void
count_shares(Shares *shares, Oid database)
{
	HASH_SEQ_STATUS scan;
	StoredTable *table;
	StoredColumn *column;

	shares->n = 0;
	find_share(shares, database, true);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		count_share(shares, table->key.database, table->sum.bytes);
	hash_seq_init(&scan, cache_columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		count_share(shares, column->table->key.database, column->sum.bytes);
	shares->share = cache_shared->memory / shares->n;
}

/* Returns whether a database has more than its share of the memory cached. */
static bool
exceeds_share(Shares *shares, Oid database)
{
	Share *share = find_share(shares, database, false);

	return share && share->bytes > shares->share;
}

/* ---- choosing a victim -------------------------------------------------------------- */

bool
cache_is_evicted_before(const StoredUse *a, const StoredUse *b)
{
	return a->before != b->before ? a->before < b->before : a->last < b->last;
}

bool
cache_is_worth_less(const StoredUse *use, const StoredUse *than)
{
	uint64 clock = cache_shared->clock;

	if (than->before == 0)
		return use->before == 0 && clock - use->last > 2 * (clock - than->last);
	return use->before == 0 || clock - use->before > 2 * (clock - than->before);
}

/* A search for a victim. */
typedef struct Search
{
	Shares shares;
	Need what;
	const StoredDemand *demand;
	bool needy; /* the demand's database has less than its share */
	int ntried;
	Victim tried[MOST_VICTIMS];
	Victim best;
	const StoredUse *best_use;
	bool best_more; /* its database has more than its share */
} Search;

/*
 * Makes a victim the best one so far, if the demand may evict it, it has not been tried, and it
 * goes before the best one. table, use: those of the victim.
 */
static void
consider_victim(Search *search, Victim victim, const StoredTable *table, const StoredUse *use)
{
	const StoredDemand *demand = search->demand;
	Oid database = table->key.database;
	bool more = exceeds_share(&search->shares, database);

	if (OidIsValid(demand->owner) && table->owner != demand->owner)
		return;
	if (!cache_is_worth_less(use, demand->use) &&
		!(more && search->needy && database != demand->database))
		return;
	for (int i = 0; i < search->ntried; i++)
		if (search->tried[i].table == victim.table && search->tried[i].column == victim.column)
			return;
	if (search->best_use && more != search->best_more && search->best_more)
		return;
	if (search->best_use && more == search->best_more &&
		!cache_is_evicted_before(use, search->best_use))
		return;
	search->best = victim;
	search->best_use = use;
	search->best_more = more;
}

/*
 * Returns whether a table has ranges to be evicted: any if a table's entry is needed, those without
 * chunks if memory is needed.
 */
static bool
has_victims(const Search *search, StoredTable *table)
{
	if (search->what == NEED_TABLE)
		return !dlist_is_empty(&table->ranges);
	return search->what == NEED_MEMORY && !dlist_is_empty(&table->bare);
}

/*
 * Sets search->best to the victim to be evicted next, and notes that it is tried. Returns false if
 * there is none.
 */
static bool
choose_victim(Search *search)
{
	HASH_SEQ_STATUS scan;
	StoredTable *table;
	StoredColumn *column;

	search->best_use = NULL;
	/* Columns first: at equal worth they are evicted before descriptors. */
	hash_seq_init(&scan, cache_columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		if (search->what != NEED_TABLE && !dlist_is_empty(&column->chunks))
			consider_victim(search, (Victim){NULL, column}, column->table, &column->use);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		if (has_victims(search, table))
			consider_victim(search, (Victim){table, NULL}, table, &table->use);
	if (search->best_use == NULL)
		return false;
	search->tried[search->ntried++] = search->best;
	return true;
}

/* ---- eviction ---------------------------------------------------------------------- */

/*
 * Evicts chunks of a column that are not pinned, until `need` bytes are free. Returns the freed
 * bytes.
 */
static Size
evict_chunks(StoredColumn *column, Size need)
{
	dlist_mutable_iter iter;
	Size freed = 0;
	int seen = 0;

	dlist_foreach_modify(iter, &column->chunks)
	{
		StoredChunk *chunk = dlist_container(StoredChunk, in_column, iter.cur);
		Size bytes = chunk->bytes;

		if (cache_chunk_evict(chunk))
			freed += bytes;
		if (freed >= need || ++seen == MOST_ITEMS)
			break;
	}
	return freed;
}

/*
 * Evicts ranges without chunks that are not pinned, until `need` bytes are free. Returns the freed
 * bytes.
 */
static Size
evict_bare_ranges(StoredTable *table, Size need)
{
	dlist_mutable_iter iter;
	Size freed = 0;
	int seen = 0;

	dlist_foreach_modify(iter, &table->bare)
	{
		StoredRange *range = dlist_container(StoredRange, in_bare, iter.cur);

		if (cache_bare_range_evict(range))
			freed += cache_memory_used(sizeof(StoredRange));
		if (freed >= need || ++seen == MOST_ITEMS)
			break;
	}
	return freed;
}

/*
 * Evicts ranges of a table with their chunks; pinned ones are freed by their last unpin. Returns
 * the bytes of the ranges' descriptors.
 */
static Size
evict_ranges(StoredTable *table)
{
	Size freed = 0;

	for (int i = 0; i < MOST_ITEMS && !dlist_is_empty(&table->ranges); i++)
	{
		cache_range_detach(dlist_head_element(StoredRange, in_table, &table->ranges));
		freed += cache_memory_used(sizeof(StoredRange));
	}
	return freed;
}

/*
 * Evicts one victim after the other until `need` bytes are free. Returns the freed bytes. what:
 * kind of victims.
 */
static Size
evict(const StoredDemand *demand, Need what, Size need)
{
	Search search;
	Size freed = 0;

	search.what = what;
	search.demand = demand;
	search.ntried = 0;
	count_shares(&search.shares, demand->database);
	search.needy = !exceeds_share(&search.shares, demand->database);
	while (freed < need && search.ntried < MOST_VICTIMS && choose_victim(&search))
	{
		if (what == NEED_TABLE)
			freed += evict_ranges(search.best.table);
		else if (what == NEED_COLUMN)
			freed += evict_chunks(search.best.column, search.best.column->sum.bytes);
		else if (search.best.table)
			freed += evict_bare_ranges(search.best.table, need - freed);
		else
			freed += evict_chunks(search.best.column, need - freed);
	}
	return freed;
}

Size
cache_evict(const StoredDemand *demand, Size need)
{
	return evict(demand, NEED_MEMORY, need);
}

Size
cache_evict_entry(const StoredDemand *demand, bool of_tables)
{
	return evict(demand, of_tables ? NEED_TABLE : NEED_COLUMN, 1);
}
