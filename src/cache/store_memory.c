/*
 * store_memory.c
 *
 * The store's shared memory.
 *
 * It is main shared memory, requested at server start: huge pages apply to it, and a small
 * /dev/shm does not matter. It has the area of gpuagg.cache_memory bytes for ranges and chunks,
 * and about one hundredth of that in addition for tables, columns and buckets.
 *
 * The area is a dsa area of core, created in place with a size limit that is its own size. dsa
 * makes a second segment only while the sum of its segments' sizes is below the limit
 * (make_new_segment() in dsa.c, versions 10 to 18), so it never does, and any pointer into it
 * points into main shared memory.
 *
 * dsa takes requests up to 8 kB from superblocks of 64 kB, one list per size class, and larger
 * ones in whole pages of 4 kB. This has two consequences. In a small area, superblocks would leave
 * little room for anything else; there, all requests are made in pages. In a full area, a small
 * request for which no superblock can be made leaks the span that was to describe it. Therefore a
 * small request is made only when there is room for a superblock; change_lock keeps that true in
 * between.
 *
 * Before 15.4, dsa does not notice that an area which was full has large free ranges of pages
 * again. There the cache stores fewer and fewer large chunks once it has been full.
 *
 * Tables and columns are in core's shared hash tables of fixed size, not in dshash, which raises
 * errors when there is no memory.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "cache/machine_memory.h"
#include "cache/store_internal.h"
#include "common/compat.h"
#include "settings.h"

#define MEGABYTE ((Size) 1024 * 1024)
#define DSA_PAGE 4096          /* FPM_PAGE_SIZE */
#define DSA_LARGEST_SMALL 8192 /* larger requests are made in pages */
#define DSA_SUPERBLOCK (16 * DSA_PAGE)
/* In smaller areas every request is made in pages. */
#define SMALL_AREA (16 * MEGABYTE)

/*
 * Numbers of tables and columns per MB of the area, and their limits. An eviction visits all of
 * them.
 */
#define TABLES_PER_MB 8
#define FEWEST_TABLES 64
#define MOST_TABLES 65536
#define COLUMNS_PER_MB 32
#define FEWEST_COLUMNS 512
#define MOST_COLUMNS 262144
/* One entry in so many has nothing in the area: it keeps the history of uses. */
#define HISTORY_PART 4

#define DEFAULT_MOST_MB 1024
#define DEFAULT_PART 8

CacheShared *cache_shared;
HTAB *cache_tables;
HTAB *cache_columns;
HTAB *cache_kept;

static dsa_area *area; /* this process's handle; NULL: not attached */
static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;

/* ---- sizes --------------------------------------------------------------------- */

/* Returns the number of entries for tables. */
static long
table_limit(void)
{
	return Min(Max(FEWEST_TABLES, TABLES_PER_MB * (long) gpuagg_cache_memory), MOST_TABLES);
}

/* Returns the number of entries for columns. */
static long
column_limit(void)
{
	return Min(Max(FEWEST_COLUMNS, COLUMNS_PER_MB * (long) gpuagg_cache_memory), MOST_COLUMNS);
}

/* Returns the size of the dsa area in bytes. */
static Size
area_size(void)
{
	Size size = gpuagg_cache_memory * MEGABYTE;

#if SIZEOF_DSA_POINTER == 4
	size = Min(size, 127 * MEGABYTE);
#endif
	return size;
}

/*
 * Returns the number of buckets. A descriptor takes more than 4 kB, and most ranges also have
 * chunks.
 */
static uint32
bucket_count(void)
{
	return pg_nextpower2_32(Max(64, area_size() / 8192));
}

/*
 * Returns the number of entries for spans' summaries: one for each 512 kB of the area, as the
 * descriptors of a span take at least that.
 */
static uint32
span_count(void)
{
	return Max(64, area_size() / (512 * 1024));
}

/* Returns the size of CacheShared with the buckets and the area. */
static Size
shared_size(void)
{
	Size size = MAXALIGN(sizeof(CacheShared));

	size = add_size(size, mul_size(bucket_count(), sizeof(StoredRange *)));
	size = add_size(size, DSA_PAGE); /* the area begins at a page boundary */
	return add_size(size, area_size());
}

/* Replaces the default -1 by the number of MB that it means, so that SHOW shows it. */
static void
resolve_default(void)
{
	char value[32];

	if (gpuagg_cache_memory >= 0)
		return;
	snprintf(value, sizeof(value), "%d",
			 (int) Min(machine_memory() / DEFAULT_PART / MEGABYTE, DEFAULT_MOST_MB));
	SetConfigOption("gpuagg.cache_memory", value, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
	if (gpuagg_cache_memory < 0) /* -1 was set explicitly */
		SetConfigOption("gpuagg.cache_memory", value, PGC_POSTMASTER, PGC_S_OVERRIDE);
}

/* ---- start --------------------------------------------------------------------- */

/* shmem_request_hook: requests the shared memory and its locks. */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	resolve_default();
	if (gpuagg_cache_memory <= 0)
		return;
	RequestAddinShmemSpace(shared_size());
	RequestAddinShmemSpace(mul_size(span_count(), sizeof(StoredSpan)));
	RequestAddinShmemSpace(hash_estimate_size(table_limit(), sizeof(StoredTable)));
	RequestAddinShmemSpace(hash_estimate_size(column_limit(), sizeof(StoredColumn)));
	RequestAddinShmemSpace(hash_estimate_size(CACHE_KEPT_NAMES, sizeof(StoredKept)));
	RequestNamedLWLockTranche("gpuagg_cache", 1 + CACHE_RANGE_LOCKS);
}

/* Creates a shared hash table of fixed size, or attaches to it. */
static HTAB *
start_hash(const char *name, long limit, Size key, Size entry)
{
	HASHCTL control = {0};

	control.keysize = key;
	control.entrysize = entry;
	return compat_shared_hash(name, limit, &control, HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

/* Creates the dsa area in its shared memory. */
static void
start_area(CacheShared *shared, int tranche)
{
	dsa_area *created = dsa_create_in_place(shared->area_start, shared->memory, tranche, NULL);

	dsa_pin(created);
	dsa_set_size_limit(created, shared->memory);
	/* each process attaches by itself */
	dsa_detach(created);
}

/* Returns a random number; derived from the time if there is no source of random numbers. */
static uint64
random_number(void)
{
	uint64 number;

	if (!pg_strong_random(&number, sizeof(number)))
		number = (uint64) GetCurrentTimestamp() * UINT64CONST(0x9E3779B97F4A7C15);
	return number;
}

/*
 * shmem_startup_hook: sets up the shared memory in the first process, and this process's pointers
 * to it.
 */
static void
start_memory(void)
{
	bool found;
	CacheShared *shared;
	void *spans;

	if (previous_startup)
		previous_startup();
	cache_shared = NULL;
	if (gpuagg_cache_memory <= 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpuagg cache", shared_size(), &found);
	if (!found)
	{
		LWLockPadded *locks = GetNamedLWLockTranche("gpuagg_cache");

		memset(shared, 0, sizeof(CacheShared));
		shared->change_lock = &locks[0].lock;
		shared->range_locks = &locks[1];
		shared->memory = area_size();
		shared->nbuckets = bucket_count();
		shared->buckets = (StoredRange **) ((char *) shared + MAXALIGN(sizeof(CacheShared)));
		memset(shared->buckets, 0, shared->nbuckets * sizeof(StoredRange *));
		shared->area_start = (char *) TYPEALIGN(DSA_PAGE, shared->buckets + shared->nbuckets);
		/* never 0, and far from overflow */
		shared->next_serial = (random_number() >> 2) + 1;
		pg_atomic_init_u64(&shared->next_stamp, random_number());
		shared->most_filled_tables = table_limit() - table_limit() / HISTORY_PART;
		shared->most_filled_columns = column_limit() - column_limit() / HISTORY_PART;
		pg_atomic_init_u64(&shared->swept, 0);
		start_area(shared, shared->change_lock->tranche);
	}
	cache_shared = shared;
	spans =
		ShmemInitStruct("gpuagg cache spans", mul_size(span_count(), sizeof(StoredSpan)), &found);
	if (!found)
	{
		memset(spans, 0, mul_size(span_count(), sizeof(StoredSpan)));
		shared->spans = spans;
		shared->nspans = span_count();
	}
	cache_tables = start_hash("gpuagg cache tables", table_limit(), sizeof(CacheTableKey),
							  sizeof(StoredTable));
	cache_columns = start_hash("gpuagg cache columns", column_limit(), sizeof(StoredColumnKey),
							   sizeof(StoredColumn));
	cache_kept =
		start_hash("gpuagg kept results", CACHE_KEPT_NAMES, sizeof(KeptName), sizeof(StoredKept));
	LWLockRelease(AddinShmemInitLock);
}

void
cache_memory_init(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}

/* ---- the area ------------------------------------------------------------------ */

void
cache_memory_attach(void)
{
	MemoryContext old;

	if (area)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach_in_place(cache_shared->area_start, NULL);
	MemoryContextSwitchTo(old);
	dsa_pin_mapping(area);
	/* the area counts the attached processes */
	on_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(cache_shared->area_start));
}

/*
 * Returns the size with which memory is requested from dsa: whole pages for large requests, and for
 * all requests in a small area.
 */
static Size
request_size(Size size)
{
	if (size > DSA_LARGEST_SMALL)
		return TYPEALIGN(DSA_PAGE, size);
	if (cache_shared->memory < SMALL_AREA)
		return DSA_LARGEST_SMALL + DSA_PAGE;
	return MAXALIGN(size);
}

Size
cache_memory_used(Size size)
{
	return request_size(size);
}

/*
 * Allocates memory in the area; a small request only if there is room for a superblock. Returns
 * InvalidDsaPointer if there is no memory.
 */
static dsa_pointer
try_get(Size size)
{
	if (size <= DSA_LARGEST_SMALL)
	{
		dsa_pointer probe = dsa_allocate_extended(area, DSA_SUPERBLOCK, DSA_ALLOC_NO_OOM);

		if (!DsaPointerIsValid(probe))
			return InvalidDsaPointer;
		dsa_free(area, probe);
	}
	return dsa_allocate_extended(area, size, DSA_ALLOC_NO_OOM);
}

void *
cache_memory_get(Size size, dsa_pointer *self)
{
	Assert(LWLockHeldByMeInMode(cache_shared->change_lock, LW_EXCLUSIVE));
	size = request_size(size);
	if (size >= cache_shared->memory || !AllocSizeIsValid(size))
		return NULL;
	*self = try_get(size);
	if (!DsaPointerIsValid(*self))
	{
		/* dsa keeps one free superblock of each class */
		dsa_trim(area);
		*self = try_get(size);
	}
	return DsaPointerIsValid(*self) ? dsa_get_address(area, *self) : NULL;
}

void
cache_memory_free(dsa_pointer self)
{
	Assert(LWLockHeldByMeInMode(cache_shared->change_lock, LW_EXCLUSIVE));
	dsa_free(area, self);
}
