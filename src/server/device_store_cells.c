/*
 * device_store_cells.c
 *	  Cells of lookup tables that have names, kept on a device; see device_store.h.
 */
#include <stdlib.h>
#include <string.h>

#include "server/device_store_internal.h"

/* Returns the stored cells of a name, or NULL. */
static StoreCells *
find_name(Store *store, const WireCellsName *name)
{
	StoreCells *cells = *store_cells_bucket(store, name);

	while (cells && memcmp(&cells->name, name, sizeof(*name)) != 0)
		cells = cells->next;
	return cells;
}

/*
 * Returns the stored cells of a table, or NULL. Cells that have the name and another layout are
 * those of a client that lies.
 */
static StoreCells *
find_cells(Store *store, const WireCellsName *name, const VectorTable *table)
{
	StoreCells *cells = find_name(store, name);

	return cells && cells->n == table->n && cells->form == table->form ? cells : NULL;
}

void
store_forget_cells(Store *store)
{
	uint64_t bytes = 0;
	StoreCells *cells;

	while ((cells = store_evictable_cells(store, UINT64_MAX, 0, &bytes)) != NULL)
		store_free_cells(store, cells);
}

/* Returns whether there is an entry for other cells; may replace the oldest ones. */
static bool
has_entry(Store *store, uint64_t use)
{
	uint64_t bytes = 0;
	StoreCells *oldest;

	if (store->ncells < STORE_MAX_CELLS)
		return true;
	oldest = store_evictable_cells(store, UINT64_MAX, use, &bytes);
	if (oldest)
		store_free_cells(store, oldest);
	return oldest != NULL;
}

/* Stores cells. Sets *kept to NULL if there is no room for them. */
static DeviceStatus
keep_cells(Store *store, const WireCellsName *name, const VectorTable *table, const char *from,
		   uint64_t use, StoreCells **kept, DeviceError *error)
{
	size_t bytes = vector_table_bytes(table);
	StoreCells *cells;
	StoreCells **bucket;
	DeviceStatus status;

	*kept = NULL;
	if (find_name(store, name) || !has_entry(store, use) ||
		(cells = calloc(1, sizeof(*cells))) == NULL)
		return DEVICE_OK;
	*cells =
		(StoreCells){.name = *name, .n = table->n, .form = table->form, .last = use, .before = use};
	status = store_allocate(store, use, use, bytes, &cells->array, error);
	if (status == DEVICE_OK)
		status = store_ops->put_memory(store->device, from, cells->array.at, bytes, error);
	if (status != DEVICE_OK)
	{
		store_free_array(store, &cells->array);
		free(cells);
		return status == DEVICE_NO_MEMORY ? DEVICE_OK : status;
	}
	bucket = store_cells_bucket(store, name);
	cells->next = *bucket;
	*bucket = *kept = cells;
	store->ncells++;
	return DEVICE_OK;
}

DeviceStatus
store_hold_cells(Store *store, const WireResident *in, const char *cells, uint64_t use,
				 StoreHold *hold, uint32_t *lacking, uint32_t *unkept, DeviceError *error)
{
	for (uint32_t t = 0; t < in->ntables; t++)
	{
		const WireCellsName *name = &in->names[t];
		const VectorTable *table = &in->tables[t];
		StoreCells *found = wire_is_named(name) ? find_cells(store, name, table) : NULL;

		if (found == NULL && !wire_is_sent(in, t))
			*lacking |= UINT32_C(1) << t;
		else if (found == NULL && wire_is_named(name))
		{
			DeviceStatus status = keep_cells(store, name, table, cells + (size_t) table->first * 8,
											 use, &found, error);

			if (status != DEVICE_OK)
				return status;
			if (found == NULL)
				*unkept |= UINT32_C(1) << t;
		}
		hold->cells[t] = found;
		if (found == NULL)
			continue;
		found->holds++;
		if (found->last != use)
			found->before = found->last;
		found->last = use;
	}
	return DEVICE_OK;
}

void
store_release_cells(StoreHold *hold)
{
	for (int t = 0; t < WIRE_MAX_TABLES; t++)
		if (hold->cells[t])
			hold->cells[t]->holds--;
}

const void *
store_held_cells(const StoreHold *hold, uint32_t table)
{
	return hold->cells[table] ? hold->cells[table]->array.at : NULL;
}
