/*
 * device_store.c
 *	  Fills the columns that are cached on the devices; see device_store.h.
 *
 * Each device's store has a lock. All bookkeeping, and all operations on the device's memory, are
 * done with it.
 */
#include <stdlib.h>
#include <string.h>

#include "server/column_dictionary.h"
#include "server/server.h"
#include "server/device_store_internal.h"

/* Most ranges of all tables on one device. */
#define MAX_RANGES (1 << 22)
/* Entries that a dictionary may have besides those that the table's rows explain. */
#define LEAST_DEAD 65536

/* ---- tables, columns, ranges ---- */

StoreTable *
store_find_table(Store *store, uint64_t id)
{
	StoreTable *t = store->buckets[id % STORE_BUCKETS];

	while (t && t->id != id)
		t = t->next_in_bucket;
	return t;
}

static void
remove_table(Store *store, StoreTable **at)
{
	StoreTable *t = *at;
	StoreTable **in_bucket = &store->buckets[t->id % STORE_BUCKETS];

	while (*in_bucket != t)
		in_bucket = &(*in_bucket)->next_in_bucket;
	*in_bucket = t->next_in_bucket;
	*at = t->next;
	free(t->columns);
	free(t);
	store->ntables--;
}

/*
 * Removes the table with the oldest last use, of those that no query holds and whose last use is
 * not `use`; tables without ranges first. `empty`: only a table without ranges. Returns false if
 * there is none.
 */
static bool
forget_table(Store *store, uint64_t use, bool empty)
{
	StoreTable **oldest = NULL;

	for (StoreTable **at = &store->tables; *at; at = &(*at)->next)
	{
		StoreTable *t = *at;

		if (t->holds > 0 || t->last == use || (empty && t->nranges > 0))
			continue;
		if (oldest == NULL || (t->nranges == 0) > ((*oldest)->nranges == 0) ||
			((t->nranges == 0) == ((*oldest)->nranges == 0) && t->last < (*oldest)->last))
			oldest = at;
	}
	if (oldest == NULL)
		return false;
	store_empty_table(store, *oldest);
	remove_table(store, oldest);
	return true;
}

StoreTable *
store_make_table(Store *store, uint64_t id, uint64_t use)
{
	StoreTable *t = store_find_table(store, id);
	StoreTable **bucket = &store->buckets[id % STORE_BUCKETS];

	if (t)
		return t;
	if ((store->ntables >= STORE_MAX_TABLES && !forget_table(store, use, false)) ||
		(t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->id = id;
	t->next = store->tables;
	store->tables = t;
	t->next_in_bucket = *bucket;
	*bucket = t;
	store->ntables++;
	return t;
}

static bool
same_column(const WireColumnKey *a, const WireColumnKey *b)
{
	return a->typid == b->typid && a->typmod == b->typmod && a->missing == b->missing &&
		a->attno == b->attno && a->scale == b->scale && a->type == b->type && a->coded == b->coded;
}

int
store_find_column(const StoreTable *table, const WireColumnKey *key)
{
	for (int c = 0; c < table->ncolumns; c++)
		if (same_column(&table->columns[c].key, key))
			return c;
	return -1;
}

/*
 * Returns the column with the oldest last use, of those that no query holds and whose last use is
 * not `use`; columns without memory first. -1: there is none.
 */
static int
replaceable_column(const StoreTable *table, uint64_t use)
{
	int found = -1;

	for (int c = 0; c < table->ncolumns; c++)
	{
		const StoreColumn *column = &table->columns[c];
		const StoreColumn *best = found < 0 ? NULL : &table->columns[found];

		if (column->holds > 0 || column->last == use)
			continue;
		if (best == NULL || (column->bytes == 0) > (best->bytes == 0) ||
			((column->bytes == 0) == (best->bytes == 0) && column->last < best->last))
			found = c;
	}
	return found;
}

int
store_make_column(Store *store, StoreTable *table, const WireColumnKey *key, uint64_t use)
{
	int c = store_find_column(table, key);

	if (c >= 0)
		return c;
	if (table->ncolumns < STORE_MAX_COLUMNS)
	{
		StoreColumn *more = realloc(table->columns, (table->ncolumns + 1) * sizeof(*more));

		if (more == NULL)
			return -1;
		table->columns = more;
		c = table->ncolumns++;
	}
	else
	{
		c = replaceable_column(table, use);
		if (c < 0)
			return -1;
		store_free_column(store, table, &table->columns[c]);
	}
	table->columns[c] = (StoreColumn){.key = *key};
	return c;
}

void
store_note_use(StoreTable *table, StoreColumn *column, uint64_t use)
{
	table->last = use;
	if (column->last == use)
		return;
	column->before = column->last;
	column->last = use;
}

int
store_range_place(const StoreTable *table, uint32_t number)
{
	int left = 0, right = table->nranges;

	/* most ranges come in order */
	if (right > 0 && table->ranges[right - 1].number < number)
		return right;
	while (left < right)
	{
		int mid = left + (right - left) / 2;

		if (table->ranges[mid].number < number)
			left = mid + 1;
		else
			right = mid;
	}
	return left;
}

/* Inserts a range at this index. Returns NULL if there is no memory. */
static StoreRange *
insert_range(Store *store, StoreTable *table, int place)
{
	while (store->nranges >= MAX_RANGES)
		if (!forget_table(store, table->last, false))
			return NULL;
	if (table->nranges == table->ranges_room)
	{
		int room = table->ranges_room * 2 + 64;
		StoreRange *larger = realloc(table->ranges, room * sizeof(StoreRange));

		if (larger == NULL)
			return NULL;
		table->ranges = larger;
		table->ranges_room = room;
	}
	memmove(&table->ranges[place + 1], &table->ranges[place],
			(table->nranges - place) * sizeof(StoreRange));
	memset(&table->ranges[place], 0, sizeof(StoreRange));
	table->nranges++;
	table->version++;
	store->nranges++;
	return &table->ranges[place];
}

/*
 * Gives a range without columns positions behind all others. Returns false if the table has too
 * many rows.
 */
static bool
append_range(StoreTable *table, StoreRange *range, uint32_t nrows)
{
	int64_t first = table->end;

	/* a range must not cross the end of a segment */
	if (first / STORE_SEGMENT_ROWS != (first + nrows - 1) / STORE_SEGMENT_ROWS)
		first = (first / STORE_SEGMENT_ROWS + 1) * STORE_SEGMENT_ROWS;
	if (first + nrows > STORE_MAX_ROWS)
		return false;
	table->gaps += first - table->end;
	table->end = first + nrows;
	range->first = first;
	range->room = nrows;
	return true;
}

/*
 * Readies an outdated range for other rows. Keeps its positions only if no query reads the table.
 */
static bool
replace_range(StoreTable *table, StoreRange *range, uint32_t nrows)
{
	bool last = range->first + range->room == table->end;

	table->version++;
	for (int c = 0; c < table->ncolumns; c++)
		table->columns[c].replaced += range->columns >> c & 1;
	range->columns = 0;
	if (table->holds == 0 && nrows <= range->room)
		return true;
	if (table->holds == 0 && last)
		table->end = range->first;
	else
		table->gaps += range->room;
	range->room = 0;
	return append_range(table, range, nrows);
}

/*
 * Returns the table's range with these rows, which is created if necessary; NULL if there is no
 * room.
 */
static StoreRange *
make_range(Store *store, StoreTable *table, const WireStore *in)
{
	int place = store_range_place(table, in->range);
	StoreRange *range = place < table->nranges ? &table->ranges[place] : NULL;
	bool ok;

	if (range && range->number == in->range && range->stamp == in->stamp && range->room > 0)
		return range->nrows == in->nrows ? range : NULL;
	if (range && range->number == in->range)
		ok = replace_range(table, range, in->nrows);
	else
	{
		range = insert_range(store, table, place);
		ok = range && append_range(table, range, in->nrows);
	}
	if (range == NULL)
		return NULL;
	range->number = in->range;
	range->stamp = in->stamp;
	range->nrows = in->nrows;
	return ok ? range : NULL;
}

/* ---- filling ---- */

/* Returns the column's segment of this number; NULL if there is no memory. */
static Segment *
make_segment(StoreColumn *column, int number)
{
	if (number >= column->nsegments)
	{
		Segment *more = realloc(column->segments, (number + 1) * sizeof(*more));

		if (more == NULL)
			return NULL;
		memset(more + column->nsegments, 0, (number + 1 - column->nsegments) * sizeof(*more));
		column->segments = more;
		column->nsegments = number + 1;
	}
	return &column->segments[number];
}

/* Makes room for so many rows in a segment, and in its bitmap if it has one or gets NULLs. */
static DeviceStatus
enlarge_segment(Store *store, StoreColumn *column, Segment *s, int64_t rows, bool nulls,
				DeviceError *error)
{
	size_t width = wire_width(column->key.type);
	DeviceStatus status = store_enlarge(store, column, &s->values, rows * width, 0, error);

	if (status == DEVICE_OK && (nulls || s->validity.at))
		status =
			store_enlarge(store, column, &s->validity, s->values.bytes / width / 8, 0xff, error);
	return status;
}

/*
 * Makes room in the column for the rows of a range. Doubles the segment's array if there is memory,
 * else enlarges it as far as necessary.
 */
static DeviceStatus
make_room(Store *store, StoreColumn *column, const StoreRange *range, bool nulls, Segment **segment,
		  DeviceError *error)
{
	Segment *s = make_segment(column, (int) (range->first / STORE_SEGMENT_ROWS));
	int64_t need = range->first % STORE_SEGMENT_ROWS + range->nrows;
	int64_t has, rows;
	DeviceStatus status;

	if (s == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	*segment = s;
	has = s->values.bytes / wire_width(column->key.type);
	need = (need + STORE_LEAST_ROWS - 1) / STORE_LEAST_ROWS * STORE_LEAST_ROWS;
	rows = need <= has ? has : need > 2 * has ? need : 2 * has;
	if (rows > STORE_SEGMENT_ROWS)
		rows = STORE_SEGMENT_ROWS;
	status = enlarge_segment(store, column, s, rows, nulls, error);
	if (status == DEVICE_NO_MEMORY && need > has && need < rows)
		status = enlarge_segment(store, column, s, need, nulls, error);
	column->refused =
		status == DEVICE_NO_MEMORY ? (need > has ? need : has) * wire_width(column->key.type) : 0;
	return status;
}

/* Copies the values and NULLs of a range to its positions. */
static DeviceStatus
fill(Lane *lane, const WireStore *in, const StoreRange *range, const Segment *s, DeviceError *error)
{
	size_t width = wire_width(in->column.type);
	int64_t first = range->first % STORE_SEGMENT_ROWS;
	DeviceStatus status =
		store_ops->put(lane, in->buffer, in->values, (char *) s->values.at + first * width,
					   in->nrows * width, error);

	if (status == DEVICE_OK && s->validity.at)
		status = store_ops->put_bits(lane, in->buffer, in->validity, s->validity.at, first,
									 in->nrows, error);
	return status;
}

/*
 * Lets the column have the dictionary that the values are numbered by. Returns false if it has
 * another one, or may not have one.
 */
static bool
adopt_dictionary(StoreColumn *column, Dictionary *dict)
{
	if (!column->key.coded)
		return true;
	if (dict == NULL || dictionary_is_retired(dict))
		return false;
	if (column->dictionary == NULL)
		column->dictionary = dictionary_share(dict);
	return column->dictionary == dict;
}

/*
 * Frees the column, and retires its dictionary. Another dictionary will have only the values that
 * are there then. Does nothing while a query holds the column.
 */
static void
drop_dictionary(Store *store, StoreTable *table, StoreColumn *column, Dictionary *dict)
{
	if (column->holds > 0)
		return;
	dictionary_retire(dict);
	store_free_column(store, table, column);
}

/*
 * Returns whether most entries of the dictionary must be values of rows that were replaced: it has
 * far more than the table has rows.
 */
static bool
is_mostly_dead(const StoreTable *table, const StoreColumn *column, const Dictionary *dict)
{
	return column->replaced > 0 &&
		dictionary_entries(dict) >
		LEAST_DEAD + 4 * (uint64_t) store_devices() * (uint64_t) (table->end - table->gaps);
}

/*
 * Returns whether dictionaries would have too many bytes with so many more. Retired ones, which
 * queries still read, may have as many bytes as the others: evicting them frees nothing.
 */
static bool
exceeds_host_memory(uint64_t bytes)
{
	return dictionary_bytes_of_all() + dictionary_retired_bytes() + bytes > 2 * store_host_limit();
}

/*
 * Keeps host memory within its limit, and the dictionary without too many dead values. Evicts other
 * columns with dictionaries. Returns false if that is not enough: the column is dropped, and will
 * not be stored now. If many of its ranges were replaced since its dictionary was made, the next
 * query may try again.
 */
static bool
keep_dictionary(Store *store, StoreTable *table, StoreColumn *column, Dictionary *dict)
{
	column->refused_host = 0;
	if (dict == NULL)
		return true;
	if (dictionary_is_retired(dict))
		return false;
	if (is_mostly_dead(table, column, dict))
	{
		drop_dictionary(store, table, column, dict);
		return false;
	}
	while (dictionary_bytes_of_all() > store_host_limit() || exceeds_host_memory(0))
		if (exceeds_host_memory(0) || !store_evict(store, column->before, column->last, true))
		{
			if (column->replaced == 0 || column->replaced < (uint32_t) table->nranges / 4)
				column->refused_host = dictionary_bytes(dict);
			drop_dictionary(store, table, column, dict);
			return false;
		}
	return true;
}

/* store_put() with the lock held. */
static DeviceStatus
put(Store *store, Lane *lane, const WireStore *in, Dictionary *dict, uint64_t use, bool *kept,
	DeviceError *error)
{
	StoreTable *table = store_make_table(store, in->table.id, use);
	int c = table ? store_make_column(store, table, &in->column, use) : -1;
	uint64_t bit = (uint64_t) 1 << (c & (STORE_MAX_COLUMNS - 1));
	StoreColumn *column;
	StoreRange *range;
	Segment *segment;
	DeviceStatus status;

	if (c < 0)
		return DEVICE_OK;
	column = &table->columns[c];
	store_note_use(table, column, use);
	if (store_is_outdated(column))
		return DEVICE_OK;
	if (in->more)
	{
		*kept = keep_dictionary(store, table, column, dict);
		return DEVICE_OK;
	}
	range = make_range(store, table, in);
	if (range == NULL)
		return DEVICE_OK;
	*kept = (range->columns & bit) != 0;
	if (*kept)
		return DEVICE_OK;
	/* while columns are evicted for this one, the table's list of ranges must stay */
	table->holds++;
	status = make_room(store, column, range, in->validity != WIRE_NO_ARRAY, &segment, error);
	if (status == DEVICE_OK &&
		(!keep_dictionary(store, table, column, dict) || !adopt_dictionary(column, dict)))
		status = DEVICE_NO_MEMORY;
	table->holds--;
	if (status == DEVICE_NO_MEMORY)
		return DEVICE_OK;
	if (status == DEVICE_OK)
		status = fill(lane, in, range, segment, error);
	if (status != DEVICE_OK)
		return status;
	range->columns |= bit;
	table->version++;
	*kept = true;
	return DEVICE_OK;
}

DeviceStatus
store_put(int device, Lane *lane, const WireStore *in, Dictionary *dict, uint64_t use, bool *kept,
		  DeviceError *error)
{
	Store *store = store_of(device);
	DeviceStatus status;

	*kept = false;
	status = store_ops->ready && in->validity != WIRE_NO_ARRAY ? store_ops->ready(lane, error) :
																 DEVICE_OK;
	if (status != DEVICE_OK)
		return status == DEVICE_NO_MEMORY ? DEVICE_OK : status;
	pthread_mutex_lock(&store->lock);
	store_drop_retired(store);
	status = put(store, lane, in, dict, use, kept, error);
	pthread_mutex_unlock(&store->lock);
	return status;
}

/* ---- refused columns ---- */

/* Returns whether there would still be no room for the column. */
static bool
is_still_refused(const Store *store, const StoreColumn *column)
{
	StoreEvictable evictable;

	if (column->refused == 0 && column->refused_host == 0)
		return false;
	evictable = store_evictable(store, column->before, column->last);
	if (column->refused_host > 0 &&
		(dictionary_bytes_of_all() + column->refused_host >
			 store_host_limit() + evictable.dictionaries ||
		 exceeds_host_memory(column->refused_host)))
		return true;
	return column->refused > 0 && evictable.device < store_shortage(store, column->refused);
}

uint32_t
store_refused(int device, const WireResident *in)
{
	Store *store = store_of(device);
	uint32_t refused = 0;
	StoreTable *table;

	pthread_mutex_lock(&store->lock);
	table = store_find_table(store, in->table.id);
	for (uint32_t i = 0; table && i < in->nstored; i++)
	{
		int c = store_find_column(table, &in->stored[i]);

		if (c >= 0 && is_still_refused(store, &table->columns[c]))
			refused |= (uint32_t) 1 << i;
	}
	pthread_mutex_unlock(&store->lock);
	return refused;
}

/* ---- all columns ---- */

static void
list_columns(const StoreTable *table, WireListed *out)
{
	for (int c = 0; c < table->ncolumns; c++)
	{
		const StoreColumn *column = &table->columns[c];
		WireListedColumn *row = &out->columns[out->n];

		if (column->bytes == 0)
			continue;
		*row =
			(WireListedColumn){.table = {table->id}, .column = column->key, .bytes = column->bytes};
		for (int r = 0; r < table->nranges; r++)
			if (table->ranges[r].columns >> c & 1)
			{
				row->ranges++;
				row->rows += table->ranges[r].nrows;
			}
		out->n++;
	}
}

static bool
has_memory(const StoreTable *table)
{
	for (int c = 0; c < table->ncolumns; c++)
		if (table->columns[c].bytes > 0)
			return true;
	return false;
}

static int
compare_ids(const void *a, const void *b)
{
	uint64_t x = (*(StoreTable *const *) a)->id;
	uint64_t y = (*(StoreTable *const *) b)->id;

	return x < y ? -1 : x > y;
}

/*
 * Returns the tables with memory and an id above `after`, ordered by id. The caller frees the
 * array. NULL: there is no memory.
 */
static StoreTable **
next_tables(const Store *store, uint64_t after, int *n)
{
	StoreTable **tables = malloc((store->ntables + 1) * sizeof(*tables));

	*n = 0;
	for (StoreTable *t = store->tables; t && tables; t = t->next)
		if (t->id > after && has_memory(t))
			tables[(*n)++] = t;
	if (tables)
		qsort(tables, *n, sizeof(*tables), compare_ids);
	return tables;
}

void
store_list(const WireList *from, WireListed *out)
{
	*out = (WireListed){.next = *from};
	while (out->next.device < (uint64_t) store_devices())
	{
		Store *store = store_of((int) out->next.device);
		StoreTable **tables;
		int n;

		pthread_mutex_lock(&store->lock);
		tables = next_tables(store, out->next.after, &n);
		for (int i = 0; i < n && out->n + STORE_MAX_COLUMNS <= WIRE_MAX_LISTED; i++)
		{
			list_columns(tables[i], out);
			out->next.after = tables[i]->id;
		}
		pthread_mutex_unlock(&store->lock);
		free(tables);
		if (out->n + STORE_MAX_COLUMNS > WIRE_MAX_LISTED)
			return;
		out->next = (WireList){0, out->next.device + 1};
	}
}

uint64_t
store_host_bytes(int device)
{
	Store *store = store_of(device);
	uint64_t bytes = 0;

	pthread_mutex_lock(&store->lock);
	for (const StoreTable *t = store->tables; t; t = t->next)
	{
		bytes += sizeof(*t) + t->ncolumns * sizeof(StoreColumn) +
			(uint64_t) t->ranges_room * sizeof(StoreRange) +
			(uint64_t) t->lists_room * sizeof(StoreList) +
			(uint64_t) t->listed * (sizeof(WireRowRange) + sizeof(StoreSpan));
		for (int c = 0; c < t->ncolumns; c++)
			bytes += t->columns[c].nsegments * sizeof(Segment) +
				(t->columns[c].dictionary ? dictionary_bytes(t->columns[c].dictionary) : 0);
	}
	pthread_mutex_unlock(&store->lock);
	return bytes;
}

void
store_forget(int device)
{
	Store *store = store_of(device);

	pthread_mutex_lock(&store->lock);
	for (StoreTable *t = store->tables; t; t = t->next)
		store_empty_table(store, t);
	while (forget_table(store, UINT64_MAX, true))
		;
	store_forget_cells(store);
	pthread_mutex_unlock(&store->lock);
}
