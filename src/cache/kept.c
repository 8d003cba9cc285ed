/*
 * kept.c
 *
 * Results of plans over unchanged tables; see kept.h.
 *
 * Names are in a hash table of fixed size under change_lock, with their uses and the result, if
 * there is one. Results are evicted as columns are (LRU-2, see evict.c), but only for other
 * results. A quarter of the names have no results: they are the history of uses, from which the
 * name that was used longest ago is removed for a new one.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "cache/store_internal.h"
#include "settings.h"

/* Results take at most this part of the memory, and one of them at most half of that. */
#define KEPT_PART 8
#define MOST_RESULTS (CACHE_KEPT_NAMES - CACHE_KEPT_NAMES / 4)
/* Most times that an allocation evicts columns and tries again. */
#define ALLOCATION_ROUNDS 8

/* Header of a result, which follows it in memory. */
typedef struct KeptResult
{
	bool named; /* a name has it; not if it is unpublished, replaced or evicted */
	uint32 pins;
	Size bytes; /* what it takes of the area, including this header */
	uint64 rows;
	uint64 serial; /* see kept_serial() */
	uint64 hits;   /* how often a query has found it */
	dsa_pointer self;
	KeptName name;
	KeptTables tables;
} KeptResult;

#define RESULT_DATA(result) ((void *) ((char *) (result) + MAXALIGN(sizeof(KeptResult))))
#define RESULT_OF(data) ((KeptResult *) ((char *) (data) -MAXALIGN(sizeof(KeptResult))))

/* ---- under change_lock ------------------------------------------------------------------ */

/* Frees a result that no name has and nobody has pinned. */
static void
free_result(KeptResult *result)
{
	cache_shared->kept_bytes -= result->bytes;
	cache_shared->kept_results--;
	cache_memory_free(result->self);
}

/*
 * Takes the result away from a name; it is freed now or by the last kept_release(). Returns its
 * bytes.
 */
static Size
detach_result(StoredKept *entry)
{
	KeptResult *result = entry->result;
	Size bytes;

	entry->result = NULL;
	if (result == NULL)
		return 0;
	bytes = result->bytes;
	result->named = false;
	if (result->pins == 0)
		free_result(result);
	return bytes;
}

/* Returns whether two results were computed from the same states of tables. */
static bool
tables_are_equal(const KeptTables *a, const KeptTables *b)
{
	return a->n == b->n && memcmp(a->of, b->of, sizeof(ProofTable) * a->n) == 0;
}

/*
 * Returns the name with the unpinned result that is evicted first, if it is worth less than `use`;
 * NULL: there is none.
 */
static StoredKept *
find_victim(const StoredUse *use)
{
	StoredKept *entry, *best = NULL;
	HASH_SEQ_STATUS scan;

	hash_seq_init(&scan, cache_kept);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->result && entry->result->pins == 0 && cache_is_worth_less(&entry->use, use) &&
			(best == NULL || cache_is_evicted_before(&entry->use, &best->use)))
			best = entry;
	return best;
}

/* Removes the name without a result that was used longest ago. */
static void
remove_oldest_name(void)
{
	StoredKept *entry, *oldest = NULL;
	HASH_SEQ_STATUS scan;

	hash_seq_init(&scan, cache_kept);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->result == NULL && (oldest == NULL || entry->use.last < oldest->use.last))
			oldest = entry;
	if (oldest)
		hash_search(cache_kept, &oldest->name, HASH_REMOVE, NULL);
}

/* Returns the entry of a name, which is added if it is new. */
static StoredKept *
find_or_add(const KeptName *name)
{
	bool found;
	StoredKept *entry;

	if (hash_search(cache_kept, name, HASH_FIND, NULL) == NULL &&
		hash_get_num_entries(cache_kept) >= CACHE_KEPT_NAMES)
		remove_oldest_name();
	entry = hash_search(cache_kept, name, HASH_ENTER_NULL, &found);
	if (entry && !found)
	{
		memset(&entry->use, 0, sizeof(entry->use));
		entry->result = NULL;
	}
	return entry;
}

Size
kept_largest(void)
{
	return cache_shared->memory / KEPT_PART / 2;
}

/* Makes room for a result of this size among the results; returns false if there is none. */
static bool
make_room(const StoredUse *use, Size size)
{
	Size most = cache_shared->memory / KEPT_PART;

	if (size > kept_largest())
		return false;
	while (cache_shared->kept_bytes + size > most || cache_shared->kept_results >= MOST_RESULTS)
	{
		StoredKept *victim = find_victim(use);

		if (victim == NULL)
			return false;
		detach_result(victim);
	}
	return true;
}

Size
cache_kept_forget(const CacheTableKey *key)
{
	StoredKept *entry;
	HASH_SEQ_STATUS scan;
	Size bytes = 0;

	hash_seq_init(&scan, cache_kept);
	while ((entry = hash_seq_search(&scan)) != NULL)
		for (int i = 0; entry->result && i < entry->result->tables.n; i++)
			if (memcmp(&entry->result->tables.of[i].key, key, sizeof(*key)) == 0)
				bytes += detach_result(entry);
	return bytes;
}

int
cache_kept_list(CacheKeptItem *items, int room)
{
	StoredKept *entry;
	HASH_SEQ_STATUS scan;
	int n = 0;

	hash_seq_init(&scan, cache_kept);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->result && n < room)
			items[n++] = (CacheKeptItem){.tables = entry->result->tables,
										 .rows = entry->result->rows,
										 .bytes = entry->result->bytes,
										 .hits = entry->result->hits,
										 .when = entry->use.when};
	return n;
}

void
cache_kept_mark(const CacheTableKey *keys, int n, bool *marks)
{
	StoredKept *entry;
	HASH_SEQ_STATUS scan;

	hash_seq_init(&scan, cache_kept);
	while ((entry = hash_seq_search(&scan)) != NULL)
		for (int i = 0; entry->result && i < entry->result->tables.n; i++)
		{
			const CacheTableKey *key = bsearch(&entry->result->tables.of[i].key, keys, n,
											   sizeof(CacheTableKey), cache_compare_keys);

			if (key)
				marks[key - keys] = true;
		}
}

/* ---- for queries ------------------------------------------------------------------------ */

const void *
kept_find(const KeptName *name, const KeptTables *tables, bool count, bool *wanted)
{
	StoredKept *entry;
	KeptResult *result = NULL;

	cache_memory_attach();
	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	entry = find_or_add(name);
	if (entry)
	{
		if (count)
			cache_count_use(&entry->use, ++cache_shared->clock, GetCurrentTimestamp());
		if (entry->result && !tables_are_equal(&entry->result->tables, tables))
			detach_result(entry);
		result = entry->result;
		if (result)
		{
			result->pins++;
			result->hits += count;
		}
	}
	*wanted = entry && (entry->use.uses > 1 || gpuagg_cache == GPUAGG_CACHE_EAGER);
	LWLockRelease(cache_shared->change_lock);
	return result ? RESULT_DATA(result) : NULL;
}

void *
kept_allocate(const KeptName *name, const KeptTables *tables, Size size, uint64 rows)
{
	Size request = MAXALIGN(sizeof(KeptResult)) + size;
	Size bytes = cache_memory_used(request);
	KeptResult *result = NULL;
	dsa_pointer self;

	for (int round = 0; round < ALLOCATION_ROUNDS && result == NULL; round++)
	{
		StoredKept *entry;
		Size freed = 0;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
		entry = find_or_add(name);
		if (entry && entry->result == NULL && make_room(&entry->use, bytes))
		{
			StoredDemand demand = {.database = MyDatabaseId, .use = &entry->use};

			result = cache_memory_get(request, &self);
			if (result == NULL)
				freed = cache_evict(&demand, bytes);
			else
			{
				cache_shared->kept_bytes += bytes;
				cache_shared->kept_results++;
			}
		}
		LWLockRelease(cache_shared->change_lock);
		if (result == NULL && freed == 0)
			return NULL;
	}
	if (result == NULL)
		return NULL;
	memset(result, 0, sizeof(KeptResult));
	result->bytes = bytes;
	result->rows = rows;
	result->serial = pg_atomic_fetch_add_u64(&cache_shared->next_stamp, 1);
	result->self = self;
	result->name = *name;
	result->tables = *tables;
	return RESULT_DATA(result);
}

uint64
kept_serial(const void *data)
{
	return RESULT_OF(data)->serial;
}

bool
kept_publish(void *data)
{
	KeptResult *result = RESULT_OF(data);
	StoredKept *entry;
	bool published;

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	entry = find_or_add(&result->name);
	published = entry && entry->result == NULL;
	if (published)
	{
		entry->result = result;
		result->named = true;
	}
	else
		free_result(result);
	LWLockRelease(cache_shared->change_lock);
	return published;
}

void
kept_drop(const void *data)
{
	KeptResult *result = RESULT_OF(data);
	StoredKept *entry;

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	entry = hash_search(cache_kept, &result->name, HASH_FIND, NULL);
	if (entry && entry->result == result)
		detach_result(entry);
	LWLockRelease(cache_shared->change_lock);
}

void
kept_release(const void *data)
{
	KeptResult *result = RESULT_OF(data);

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	result->pins--;
	if (result->pins == 0 && !result->named)
		free_result(result);
	LWLockRelease(cache_shared->change_lock);
}
