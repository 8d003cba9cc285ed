/*
 * device_store_memory.c
 *	  The stores of all devices: their memory, its limits, and eviction; see device_store.h.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/column_dictionary.h"
#include "server/server.h"
#include "server/device_store_internal.h"

/*
 * Limit of the host memory of dictionaries: the limits of stored columns on all devices, divided by
 * this ...
 */
#define HOST_PART 8
/* ... but at least so many bytes, and at most the machine's memory divided by MACHINE_PART. */
#define LEAST_HOST_BYTES ((uint64_t) 64 << 20)
#define MACHINE_PART 16

static Store stores[WIRE_MAX_DEVICES];
static int nstores;
uint32_t store_place_ranges = 256;
const StoreOps *store_ops;
static _Atomic uint64_t limit_setting = UINT64_MAX;
static _Atomic uint64_t host_limit_setting; /* tests set it; 0: the default */
static _Atomic uint64_t uses;

void
store_start(const StoreOps *operations, int ndevices)
{
	for (int d = nstores; d < ndevices; d++)
	{
		pthread_mutex_init(&stores[d].lock, NULL);
		stores[d].device = d;
	}
	store_ops = operations;
	nstores = ndevices > nstores ? ndevices : nstores;
}

void
store_set_limit(uint64_t bytes)
{
	atomic_store(&limit_setting, bytes);
}

uint64_t
store_use(void)
{
	return atomic_fetch_add(&uses, 1) + 1;
}

int
store_devices(void)
{
	return nstores;
}

int
store_place(WireTableKey table, uint32_t range)
{
	return (int) wire_place(table, range, (uint32_t) nstores, store_place_ranges);
}

Store *
store_of(int device)
{
	return &stores[device];
}

/* Returns the most bytes of columns that the store may have, by the setting and the device. */
static uint64_t
store_limit(const Store *store)
{
	uint64_t setting = atomic_load(&limit_setting);
	uint64_t limit = budget_device(store->device)->limit;

	/* `limit` is at most four fifths of the device's memory; five eighths of that are half of it */
	if (setting == UINT64_MAX)
		return limit / 8 * 5;
	return setting < limit ? setting : limit;
}

void
store_set_host_limit(uint64_t bytes)
{
	atomic_store(&host_limit_setting, bytes);
}

uint64_t
store_host_limit(void)
{
	uint64_t setting = atomic_load(&host_limit_setting);
	uint64_t machine =
		(uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE) / MACHINE_PART;
	uint64_t limit = 0;

	if (setting > 0)
		return setting;
	for (int d = 0; d < nstores; d++)
		limit += store_limit(&stores[d]) / HOST_PART;
	limit = limit < machine ? limit : machine;
	return limit > LEAST_HOST_BYTES ? limit : LEAST_HOST_BYTES;
}

/* ---- memory ---- */

static void
give_bytes(Store *store, uint64_t bytes)
{
	store->bytes -= bytes;
	budget_give(store->device, bytes);
	budget_set_stored(store->device, store->bytes);
}

void
store_free_array(Store *store, Array *array)
{
	if (array->at == NULL)
		return;
	store_ops->release(store->device, array->at);
	give_bytes(store, array->bytes);
	*array = (Array){NULL, 0};
}

static void
free_array(Store *store, StoreColumn *column, Array *array)
{
	column->bytes -= array->bytes;
	store_free_array(store, array);
}

void
store_free_retired(Store *store, StoreColumn *column)
{
	while (column->retired)
	{
		Retired *r = column->retired;

		column->retired = r->next;
		free_array(store, column, &r->array);
		free(r);
	}
}

/*
 * Frees the list of segments, whose arrays are freed already, and the dictionary. Another
 * dictionary may have room.
 */
static void
forget_arrays(StoreColumn *column)
{
	free(column->segments);
	column->segments = NULL;
	column->nsegments = 0;
	dictionary_give(column->dictionary);
	column->dictionary = NULL;
	column->replaced = 0;
}

void
store_free_column(Store *store, StoreTable *table, StoreColumn *column)
{
	uint64_t bit = (uint64_t) 1 << (column - table->columns);

	store_free_retired(store, column);
	for (int s = 0; s < column->nsegments; s++)
	{
		free_array(store, column, &column->segments[s].values);
		free_array(store, column, &column->segments[s].validity);
	}
	forget_arrays(column);
	for (int r = 0; r < table->nranges; r++)
		table->ranges[r].columns &= ~bit;
	table->version++;
}

void
store_free_list(StoreList *list)
{
	free(list->row_ranges);
	free(list->spans);
}

void
store_trim_table(Store *store, StoreTable *table)
{
	if (table->holds > 0)
		return;
	for (int c = 0; c < table->ncolumns; c++)
		if (table->columns[c].bytes > 0)
			return;
	for (int c = 0; c < table->ncolumns; c++)
		forget_arrays(&table->columns[c]);
	for (int i = 0; i < table->nlists; i++)
		store_free_list(&table->lists[i]);
	free(table->lists);
	table->lists = NULL;
	table->nlists = table->lists_room = 0;
	table->listed = 0;
	table->version++;
	store->nranges -= table->nranges;
	free(table->ranges);
	table->ranges = NULL;
	table->nranges = table->ranges_room = 0;
	table->end = table->gaps = 0;
}

void
store_empty_table(Store *store, StoreTable *table)
{
	for (int c = 0; c < table->ncolumns; c++)
		if (table->columns[c].bytes > 0 && table->columns[c].holds == 0)
			store_free_column(store, table, &table->columns[c]);
	store_trim_table(store, table);
}

bool
store_is_outdated(const StoreColumn *column)
{
	return column->dictionary && dictionary_is_retired(column->dictionary);
}

void
store_drop_retired(Store *store)
{
	uint64_t retired = dictionary_retired_count();
	bool all = true;

	if (store->retired == retired)
		return;
	for (StoreTable *t = store->tables; t; t = t->next)
	{
		for (int c = 0; c < t->ncolumns; c++)
		{
			if (!store_is_outdated(&t->columns[c]))
				continue;
			if (t->columns[c].holds == 0)
				store_free_column(store, t, &t->columns[c]);
			all &= t->columns[c].holds == 0;
		}
		store_trim_table(store, t);
	}
	if (all)
		store->retired = retired;
}

void
store_free_cells(Store *store, StoreCells *cells)
{
	StoreCells **link = store_cells_bucket(store, &cells->name);

	while (*link != cells)
		link = &(*link)->next;
	*link = cells->next;
	store->ncells--;
	store_free_array(store, &cells->array);
	free(cells);
}

StoreCells *
store_evictable_cells(const Store *store, uint64_t before, uint64_t last, uint64_t *bytes)
{
	StoreCells *oldest = NULL;

	for (int b = 0; b < STORE_CELLS_BUCKETS && store->ncells > 0; b++)
		for (StoreCells *c = store->cells[b]; c; c = c->next)
		{
			if (c->holds > 0 || !store_is_evictable(c->before, c->last, before, last))
				continue;
			*bytes += c->array.bytes;
			if (oldest == NULL || c->before < oldest->before ||
				(c->before == oldest->before && c->last < oldest->last))
				oldest = c;
		}
	return oldest;
}

/* Returns whether the column may be freed; see store_evict(). */
static bool
is_evictable(const StoreColumn *c, uint64_t before, uint64_t last)
{
	return c->bytes > 0 && c->holds == 0 && store_is_evictable(c->before, c->last, before, last);
}

StoreEvictable
store_evictable(const Store *store, uint64_t before, uint64_t last)
{
	StoreEvictable sum = {0, 0};

	for (const StoreTable *t = store->tables; t; t = t->next)
		for (int i = 0; i < t->ncolumns; i++)
		{
			const StoreColumn *c = &t->columns[i];

			if (!is_evictable(c, before, last))
				continue;
			sum.device += c->bytes;
			if (c->dictionary)
				sum.dictionaries += dictionary_bytes(c->dictionary);
		}
	(void) store_evictable_cells(store, before, last, &sum.device);
	return sum;
}

bool
store_evict(Store *store, uint64_t before, uint64_t last, bool coded)
{
	StoreTable *from = NULL;
	StoreColumn *victim = NULL;
	uint64_t bytes = 0;
	StoreCells *cells = coded ? NULL : store_evictable_cells(store, before, last, &bytes);

	for (StoreTable *t = store->tables; t; t = t->next)
		for (int i = 0; i < t->ncolumns; i++)
		{
			StoreColumn *c = &t->columns[i];

			if (!is_evictable(c, before, last) || (coded && c->dictionary == NULL))
				continue;
			if (victim == NULL || c->before < victim->before ||
				(c->before == victim->before && c->last < victim->last))
			{
				victim = c;
				from = t;
			}
		}
	if (cells && (victim == NULL || cells->before <= victim->before))
	{
		store_free_cells(store, cells);
		return true;
	}
	if (victim == NULL)
		return false;
	if (coded)
		dictionary_retire(victim->dictionary);
	store_free_column(store, from, victim);
	store_trim_table(store, from);
	return true;
}

/*
 * Returns the bytes by which the store, or the store and the queries together, would exceed their
 * limits with `bytes` more.
 */
uint64_t
store_shortage(const Store *store, uint64_t bytes)
{
	uint64_t limit = store_limit(store);
	uint64_t room = budget_room(store->device);
	uint64_t store_lacks = store->bytes + bytes > limit ? store->bytes + bytes - limit : 0;
	uint64_t device_lacks = bytes > room ? bytes - room : 0;

	return store_lacks > device_lacks ? store_lacks : device_lacks;
}

/*
 * Accounts for memory of something with these uses, and evicts others if necessary and sufficient.
 * Returns false if there is not enough.
 */
static bool
take_bytes(Store *store, uint64_t before, uint64_t last, uint64_t bytes)
{
	for (;;)
	{
		uint64_t lacks = store_shortage(store, bytes);

		if (lacks == 0 && budget_take(store->device, bytes))
			break;
		if (store_evictable(store, before, last).device < lacks ||
			!store_evict(store, before, last, false))
			return false;
	}
	store->bytes += bytes;
	budget_set_stored(store->device, store->bytes);
	return true;
}

DeviceStatus
store_allocate(Store *store, uint64_t before, uint64_t last, size_t bytes, Array *array,
			   DeviceError *error)
{
	DeviceStatus status;
	uint64_t had;

	*array = (Array){NULL, 0};
	if (!take_bytes(store, before, last, bytes))
		return device_fail(error, DEVICE_NO_MEMORY, "gpuagg.device_cache_memory reached");
	/*
	 * The allocation may fail because other processes use memory, or because it is fragmented.
	 * Evicting may help then. Stops once as much was freed as is needed: evicting more would help
	 * no more.
	 */
	had = store->bytes;
	while ((status = store_ops->allocate(store->device, bytes, &array->at, error)) ==
			   DEVICE_NO_MEMORY &&
		   had - store->bytes < bytes && store_evict(store, before, last, false))
		;
	if (status == DEVICE_OK)
		array->bytes = bytes;
	else
	{
		array->at = NULL;
		give_bytes(store, bytes);
	}
	return status;
}

DeviceStatus
store_enlarge(Store *store, StoreColumn *column, Array *array, size_t bytes, int rest,
			  DeviceError *error)
{
	Array larger;
	Retired *retired = NULL;
	DeviceStatus status = DEVICE_OK;

	if (array->bytes >= bytes)
		return DEVICE_OK;
	if (array->at && column->holds > 0 && (retired = malloc(sizeof(*retired))) == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	status = store_allocate(store, column->before, column->last, bytes, &larger, error);
	if (status == DEVICE_OK)
	{
		column->bytes += bytes;
		status = store_ops->enlarge(store->device, larger.at, bytes, array->at, array->bytes, rest,
									error);
		if (status != DEVICE_OK)
			free_array(store, column, &larger);
	}
	if (status != DEVICE_OK)
	{
		free(retired);
		return status;
	}
	if (retired)
	{
		*retired = (Retired){column->retired, *array};
		column->retired = retired;
	}
	else
		free_array(store, column, array);
	*array = larger;
	return DEVICE_OK;
}

/* ---- memory for queries ---- */

bool
store_yield(int device, uint64_t bytes)
{
	Store *store = &stores[device];
	uint64_t room = budget_room(device);
	uint64_t lacks = bytes > room ? bytes - room : 0;
	uint64_t before;
	bool gave;

	pthread_mutex_lock(&store->lock);
	before = store->bytes;
	if (store_evictable(store, UINT64_MAX, 0).device >= lacks)
		while (before - store->bytes < bytes && store_evict(store, UINT64_MAX, 0, false))
			;
	gave = store->bytes < before;
	pthread_mutex_unlock(&store->lock);
	return gave;
}

void
store_trim(void)
{
	for (int d = 0; d < nstores; d++)
	{
		pthread_mutex_lock(&stores[d].lock);
		while (stores[d].bytes > store_limit(&stores[d]) &&
			   store_evict(&stores[d], UINT64_MAX, 0, false))
			;
		pthread_mutex_unlock(&stores[d].lock);
	}
}
