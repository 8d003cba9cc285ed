/*
 * evict.c
 *	  What goes when memory is short.
 *
 * LRU-2 (O'Neil, O'Neil and Weikum, SIGMOD 1993) by column of a table: what goes first is the
 * column whose last but one use is the oldest, and before all others what was used once.  What
 * is asked for here is more than an order, though, since whoever needs memory only needs it to
 * cache something: it must be worth more than what goes.  It is if the victim's last but one
 * use is more than twice as far back as its own.  So
 *
 * - a query over much data takes nothing from columns that are used again and again;
 * - columns of one query take nothing from each other, and where memory does not suffice for a
 *   column, what is there of it stays;
 * - queries that come round in turn, over more than the memory, take nothing from each other
 *   either.  In a round of n queries the one at hand was here n uses ago, and no other one's last
 *   but one use is 2n uses back.  Without the factor each would evict what the next one needs.
 *
 * Descriptors without chunks are evicted as if they were a column, which every query of the table
 * uses; those with chunks are kept.
 *
 * Entries may be short before memory is, where there are many small tables.  Then a whole column,
 * or a whole table, goes in the same order.
 *
 * Databases share: one with more than its part (the memory, by the number of databases that
 * have anything) gives first, and gives to one with less whatever the columns are worth.
 *
 * gpuagg_cache_prewarm() evicts only from tables of the same owner: one call by anyone who may read
 * a table must not evict the columns that the queries of others use.
 */
#include "postgres.h"

#include "cache/store_internal.h"

/* More than these are not told apart: the others have no part, and give as all do. */
#define MOST_DATABASES 64
/* How many columns an eviction tries whose chunks may all be pinned. */
#define MOST_VICTIMS 8
/* Items of one column that an eviction looks at. */
#define MOST_ITEMS 4096

typedef struct Share
{
	Oid database;
	uint64 bytes;
} Share;

typedef struct Shares
{
	int n;
	uint64 part; /* of the memory, for each */
	Share of[MOST_DATABASES];
} Shares;

typedef struct Victim
{
	StoredTable *table; /* if set, its bare ranges, or all */
	StoredColumn *column;
} Victim;

/* What is needed. */
typedef enum Need
{
	NEED_MEMORY,
	NEED_COLUMN, /* one without chunks */
	NEED_TABLE   /* one without ranges */
} Need;

/* ---- who has how much ----------------------------------------------------------- */

static Share *
share_of(Shares *shares, Oid database, bool make)
{
	for (int i = 0; i < shares->n; i++)
		if (shares->of[i].database == database)
			return &shares->of[i];
	if (!make || shares->n == MOST_DATABASES)
		return NULL;
	shares->of[shares->n] = (Share){database, 0};
	return &shares->of[shares->n++];
}

static void
count_share(Shares *shares, Oid database, uint64 bytes)
{
	Share *share = bytes > 0 ? share_of(shares, database, true) : NULL;

	if (share)
		share->bytes += bytes;
}

static void
count_shares(Shares *shares, Oid database)
{
	HASH_SEQ_STATUS scan;
	StoredTable *table;
	StoredColumn *column;

	shares->n = 0;
	share_of(shares, database, true);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		count_share(shares, table->key.database, table->sum.bytes);
	hash_seq_init(&scan, cache_columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		count_share(shares, column->table->key.database, column->sum.bytes);
	shares->part = cache_shared->memory / shares->n;
}

static bool
has_more(Shares *shares, Oid database)
{
	Share *share = share_of(shares, database, false);

	return share && share->bytes > shares->part;
}

/* ---- the choice ------------------------------------------------------------------- */

/* The order in which things go. */
static bool
goes_before(const StoredUse *a, const StoredUse *b)
{
	return a->before != b->before ? a->before < b->before : a->last < b->last;
}

/* Is something worth so much less than something else that it may go for it? */
static bool
worth_less(const StoredUse *use, const StoredUse *than)
{
	uint64 clock = cache_shared->clock;

	if (than->before == 0)
		return use->before == 0 && clock - use->last > 2 * (clock - than->last);
	return use->before == 0 || clock - use->before > 2 * (clock - than->before);
}

/* What is looked for, and the best found. */
typedef struct Search
{
	Shares shares;
	Need what;
	const StoredDemand *demand;
	bool needy; /* the database that needs it has less than its part */
	int ntried;
	Victim tried[MOST_VICTIMS];
	Victim best;
	const StoredUse *best_use;
	bool best_more; /* its database has more than its part */
} Search;

static void
consider(Search *search, Victim victim, const StoredTable *table, const StoredUse *use)
{
	const StoredDemand *demand = search->demand;
	Oid database = table->key.database;
	bool more = has_more(&search->shares, database);

	if (OidIsValid(demand->owner) && table->owner != demand->owner)
		return;
	if (!worth_less(use, demand->use) && !(more && search->needy && database != demand->database))
		return;
	for (int i = 0; i < search->ntried; i++)
		if (search->tried[i].table == victim.table && search->tried[i].column == victim.column)
			return;
	if (search->best_use && more != search->best_more && search->best_more)
		return;
	if (search->best_use && more == search->best_more && !goes_before(use, search->best_use))
		return;
	search->best = victim;
	search->best_use = use;
	search->best_more = more;
}

static bool
is_victim(const Search *search, StoredTable *table)
{
	if (search->what == NEED_TABLE)
		return !dlist_is_empty(&table->ranges);
	return search->what == NEED_MEMORY && !dlist_is_empty(&table->bare);
}

static bool
choose(Search *search)
{
	HASH_SEQ_STATUS scan;
	StoredTable *table;
	StoredColumn *column;

	search->best_use = NULL;
	/* first columns: at equal worth they go before descriptors */
	hash_seq_init(&scan, cache_columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		if (search->what != NEED_TABLE && !dlist_is_empty(&column->chunks))
			consider(search, (Victim){NULL, column}, column->table, &column->use);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		if (is_victim(search, table))
			consider(search, (Victim){table, NULL}, table, &table->use);
	if (search->best_use == NULL)
		return false;
	search->tried[search->ntried++] = search->best;
	return true;
}

/* ---- eviction ---------------------------------------------------------------------- */

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

/* Of a table, with their chunks; those that are pinned go with their last pin. */
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

static Size
evict(const StoredDemand *demand, Need what, Size need)
{
	Search search;
	Size freed = 0;

	search.what = what;
	search.demand = demand;
	search.ntried = 0;
	count_shares(&search.shares, demand->database);
	search.needy = !has_more(&search.shares, demand->database);
	while (freed < need && search.ntried < MOST_VICTIMS && choose(&search))
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
