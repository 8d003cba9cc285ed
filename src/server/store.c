/*
 * store.c
 *	  Columns of tables that stay on the devices; see store.h.
 *
 * Each device has a lock, under which all of its bookkeeping and the operations on its memory
 * are done.
 */
#include <stdlib.h>
#include <string.h>

#include "server/dictionary.h"
#include "server/server.h"
#include "server/store_internal.h"

/* Tables that are remembered, and ranges of all of them, on one device. */
#define MAX_TABLES 1024
#define MAX_RANGES (1 << 22)

static Store stores[WIRE_MAX_DEVICES];
static int	nstores;
uint32_t	store_place_ranges = 256;
static const StoreOps *ops;
static _Atomic uint64_t limit_setting = UINT64_MAX;
static _Atomic uint64_t uses;

void
store_start(const StoreOps *operations, int ndevices)
{
	for (int d = nstores; d < ndevices; d++)
	{
		pthread_mutex_init(&stores[d].lock, NULL);
		stores[d].device = d;
	}
	ops = operations;
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

static uint64_t
store_limit(const Store *store)
{
	uint64_t	setting = atomic_load(&limit_setting);
	uint64_t	limit = budget_device(store->device)->limit;

	/* five eighths of what is at most four fifths of the memory: half of it */
	if (setting == UINT64_MAX)
		return limit / 8 * 5;
	return setting < limit ? setting : limit;
}

/* ---- memory ---- */

static void
give_bytes(Store *store, uint64_t bytes)
{
	store->bytes -= bytes;
	budget_give(store->device, bytes);
	budget_set_stored(store->device, store->bytes);
}

static void
free_array(Store *store, StoreColumn *column, Array *array)
{
	if (array->at == NULL)
		return;
	ops->release(store->device, array->at);
	column->bytes -= array->bytes;
	give_bytes(store, array->bytes);
	*array = (Array) {NULL, 0};
}

void
store_free_retired(Store *store, StoreColumn *column)
{
	while (column->retired)
	{
		Retired    *r = column->retired;

		column->retired = r->next;
		free_array(store, column, &r->array);
		free(r);
	}
}

/* Frees the arrays of a column that nobody holds; its history stays. */
static void
free_column(Store *store, StoreTable *table, StoreColumn *column)
{
	uint64_t	bit = (uint64_t) 1 << (column - table->columns);

	store_free_retired(store, column);
	for (int s = 0; s < column->nsegments; s++)
	{
		free_array(store, column, &column->segments[s].values);
		free_array(store, column, &column->segments[s].validity);
	}
	free(column->segments);
	column->segments = NULL;
	column->nsegments = 0;
	dictionary_give(column->dictionary);
	column->dictionary = NULL;
	for (int r = 0; r < table->nranges; r++)
		table->ranges[r].columns &= ~bit;
	table->version++;
}

void
store_free_list(StoreList *list)
{
	free(list->runs);
	free(list->spans);
}

/* Forgets where ranges lie, if nothing of them is there and nobody holds the table. */
static void
trim_table(Store *store, StoreTable *table)
{
	if (table->holds > 0)
		return;
	for (int c = 0; c < STORE_MAX_COLUMNS; c++)
		if (table->columns[c].bytes > 0)
			return;
	for (int c = 0; c < STORE_MAX_COLUMNS; c++)
	{
		free(table->columns[c].segments);
		table->columns[c].segments = NULL;
		table->columns[c].nsegments = 0;
		dictionary_give(table->columns[c].dictionary);
		table->columns[c].dictionary = NULL;
	}
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
	for (int c = 0; c < STORE_MAX_COLUMNS; c++)
		if (table->columns[c].bytes > 0 && table->columns[c].holds == 0)
			free_column(store, table, &table->columns[c]);
	trim_table(store, table);
}

/*
 * Frees the column whose last but one use is the longest ago, if that is before `before`, and
 * its last use is not `last`, which is that of the query that needs the memory.
 */
static bool
evict(Store *store, uint64_t before, uint64_t last)
{
	StoreTable *from = NULL;
	StoreColumn *victim = NULL;

	for (StoreTable *t = store->tables; t; t = t->next)
		for (int i = 0; i < STORE_MAX_COLUMNS; i++)
		{
			StoreColumn *c = &t->columns[i];

			if (c->bytes == 0 || c->holds > 0 || c->before >= before || c->last == last)
				continue;
			if (victim == NULL || c->before < victim->before || (c->before == victim->before && c->last < victim->last))
			{
				victim = c;
				from = t;
			}
		}
	if (victim == NULL)
		return false;
	free_column(store, from, victim);
	trim_table(store, from);
	return true;
}

/* Accounts for memory of a column, which takes it from others if need be. */
static bool
take_bytes(Store *store, const StoreColumn *column, uint64_t bytes)
{
	for (;;)
	{
		uint64_t	limit = store_limit(store);

		if (store->bytes <= limit && bytes <= limit - store->bytes && budget_take(store->device, bytes))
			break;
		if (bytes > limit || !evict(store, column->before, column->last))
			return false;
	}
	store->bytes += bytes;
	budget_set_stored(store->device, store->bytes);
	return true;
}

/*
 * Replaces an array by a larger one, with the same at its start and `rest` in all other bytes.
 * DEVICE_NO_MEMORY: there is none, and nothing has changed.
 */
static DeviceStatus
enlarge(Store *store, StoreColumn *column, Array *array, size_t bytes, int rest,
		DeviceError *error)
{
	Array		larger = {NULL, bytes};
	Retired    *retired = NULL;
	DeviceStatus status = DEVICE_OK;

	if (array->bytes >= bytes)
		return DEVICE_OK;
	if (array->at && column->holds > 0 && (retired = malloc(sizeof(*retired))) == NULL)
		return device_say(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	if (!take_bytes(store, column, bytes))
	{
		free(retired);
		return device_say(error, DEVICE_NO_MEMORY, "gpuagg.device_cache_memory reached");
	}
	while ((status = ops->allocate(store->device, bytes, &larger.at, error)) == DEVICE_NO_MEMORY &&
		   evict(store, column->before, column->last))
		;
	if (status == DEVICE_OK)
	{
		column->bytes += bytes;
		status = ops->enlarge(store->device, larger.at, bytes, array->at, array->bytes, rest, error);
		if (status != DEVICE_OK)
			free_array(store, column, &larger);
	}
	else
		give_bytes(store, bytes);
	if (status != DEVICE_OK)
	{
		free(retired);
		return status;
	}
	if (retired)
	{
		*retired = (Retired) {column->retired, *array};
		column->retired = retired;
	}
	else
		free_array(store, column, array);
	*array = larger;
	return DEVICE_OK;
}

/* ---- tables, columns, ranges ---- */

StoreTable *
store_find_table(Store *store, uint64_t id)
{
	StoreTable *t = store->tables;

	while (t && t->id != id)
		t = t->next;
	return t;
}

static bool
is_empty(const StoreTable *table)
{
	return table->nranges == 0 && table->holds == 0;
}

/* Forgets the table of which nothing is there and which was used the longest ago. */
static bool
forget_table(Store *store)
{
	StoreTable **oldest = NULL;

	for (StoreTable **at = &store->tables; *at; at = &(*at)->next)
	{
		trim_table(store, *at);
		if (is_empty(*at) && (oldest == NULL || (*at)->last < (*oldest)->last))
			oldest = at;
	}
	if (oldest)
	{
		StoreTable *t = *oldest;

		*oldest = t->next;
		free(t);
		store->ntables--;
	}
	return oldest != NULL;
}

/* NULL: there are too many, or there is no memory. */
StoreTable *
store_make_table(Store *store, uint64_t id)
{
	StoreTable *t = store_find_table(store, id);

	if (t)
		return t;
	if ((store->ntables >= MAX_TABLES && !forget_table(store)) || (t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->id = id;
	t->next = store->tables;
	store->tables = t;
	store->ntables++;
	return t;
}

static bool
same_column(const WireColumnKey *a, const WireColumnKey *b)
{
	return a->typid == b->typid && a->typmod == b->typmod && a->missing == b->missing && a->attno == b->attno &&
		a->scale == b->scale && a->type == b->type && a->coded == b->coded;
}

/* The number of the column, or -1. */
int
store_find_column(const StoreTable *table, const WireColumnKey *key)
{
	for (int c = 0; c < STORE_MAX_COLUMNS; c++)
		if (table->columns[c].used && same_column(&table->columns[c].key, key))
			return c;
	return -1;
}

/* Makes an entry, in place of one without memory if need be; -1: there is none. */
int
store_make_column(StoreTable *table, const WireColumnKey *key)
{
	int			found = store_find_column(table, key);

	if (found >= 0)
		return found;
	for (int c = 0; c < STORE_MAX_COLUMNS; c++)
	{
		const StoreColumn *column = &table->columns[c];

		if (column->bytes == 0 && (found < 0 || !column->used || (table->columns[found].used &&
																   column->last < table->columns[found].last)))
			found = c;
	}
	if (found >= 0)
	{
		free(table->columns[found].segments);	/* without arrays */
		dictionary_give(table->columns[found].dictionary);
		table->columns[found] = (StoreColumn) {.key = *key,.used = true};
	}
	return found;
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

/* The place of the range of this number among the table's, or where it would be. */
int
store_range_place(const StoreTable *table, uint32_t number)
{
	int			left = 0,
				right = table->nranges;

	/* most ranges come in order */
	if (right > 0 && table->ranges[right - 1].number < number)
		return right;
	while (left < right)
	{
		int			mid = left + (right - left) / 2;

		if (table->ranges[mid].number < number)
			left = mid + 1;
		else
			right = mid;
	}
	return left;
}

/* A new entry for a range at this place; NULL: no memory. */
static StoreRange *
insert_range(Store *store, StoreTable *table, int place)
{
	if (store->nranges >= MAX_RANGES)
		return NULL;
	if (table->nranges == table->ranges_room)
	{
		int			room = table->ranges_room * 2 + 64;
		StoreRange *larger = realloc(table->ranges, room * sizeof(StoreRange));

		if (larger == NULL)
			return NULL;
		table->ranges = larger;
		table->ranges_room = room;
	}
	memmove(&table->ranges[place + 1], &table->ranges[place], (table->nranges - place) * sizeof(StoreRange));
	memset(&table->ranges[place], 0, sizeof(StoreRange));
	table->nranges++;
	table->version++;
	store->nranges++;
	return &table->ranges[place];
}

/* Gives a range, which has no columns, a place behind all others; false: there are too many rows. */
static bool
append_range(StoreTable *table, StoreRange *range, uint32_t nrows)
{
	int64_t		first = table->end;

	/* not across the end of a segment */
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

/* Takes the place of a range that is out of date; queries that read it keep what they see. */
static bool
replace_range(StoreTable *table, StoreRange *range, uint32_t nrows)
{
	bool		last = range->first + range->room == table->end;

	table->version++;
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

/* The table's range with these rows, made if need be; NULL: there is no room. */
static StoreRange *
make_range(Store *store, StoreTable *table, const WireStore *in)
{
	int			place = store_range_place(table, in->range);
	StoreRange *range = place < table->nranges ? &table->ranges[place] : NULL;
	bool		ok;

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

/* The column's segment of this number; NULL: no memory. */
static Segment *
make_segment(StoreColumn *column, int number)
{
	if (number >= column->nsegments)
	{
		Segment    *more = realloc(column->segments, (number + 1) * sizeof(*more));

		if (more == NULL)
			return NULL;
		memset(more + column->nsegments, 0, (number + 1 - column->nsegments) * sizeof(*more));
		column->segments = more;
		column->nsegments = number + 1;
	}
	return &column->segments[number];
}

/* Room for so many rows in a segment, and in its bitmap if there is one, or there are NULLs now. */
static DeviceStatus
enlarge_segment(Store *store, StoreColumn *column, Segment *s, int64_t rows, bool nulls,
				DeviceError *error)
{
	size_t		width = wire_width(column->key.type);
	DeviceStatus status = enlarge(store, column, &s->values, rows * width, 0, error);

	if (status == DEVICE_OK && (nulls || s->validity.at))
		status = enlarge(store, column, &s->validity, s->values.bytes / width / 8, 0xff, error);
	return status;
}

/* Makes room in the column for the rows of a range: twice what there was, or as much as is needed. */
static DeviceStatus
make_room(Store *store, StoreColumn *column, const StoreRange *range, bool nulls, Segment **segment,
		  DeviceError *error)
{
	Segment    *s = make_segment(column, (int) (range->first / STORE_SEGMENT_ROWS));
	int64_t		need = range->first % STORE_SEGMENT_ROWS + range->nrows;
	int64_t		has,
				rows;
	DeviceStatus status;

	if (s == NULL)
		return device_say(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	*segment = s;
	has = s->values.bytes / wire_width(column->key.type);
	need = (need + STORE_LEAST_ROWS - 1) / STORE_LEAST_ROWS * STORE_LEAST_ROWS;
	rows = need <= has ? has : need > 2 * has ? need : 2 * has;
	if (rows > STORE_SEGMENT_ROWS)
		rows = STORE_SEGMENT_ROWS;
	status = enlarge_segment(store, column, s, rows, nulls, error);
	if (status == DEVICE_NO_MEMORY && need > has && need < rows)
		status = enlarge_segment(store, column, s, need, nulls, error);
	column->refused = status == DEVICE_NO_MEMORY ? (need > has ? need : has) * wire_width(column->key.type) : 0;
	return status;
}

/* Copies the values and NULLs of a range to its place. */
static DeviceStatus
fill(Lane *lane, const WireStore *in, const StoreRange *range, const Segment *s, DeviceError *error)
{
	size_t		width = wire_width(in->column.type);
	int64_t		first = range->first % STORE_SEGMENT_ROWS;
	DeviceStatus status = ops->put(lane, in->buffer, in->values, (char *) s->values.at + first * width,
								   in->nrows * width, error);

	if (status == DEVICE_OK && s->validity.at)
		status = ops->put_bits(lane, in->buffer, in->validity, s->validity.at, first, in->nrows, error);
	return status;
}

/* Has the buffer the numbers of the column's dictionary in place of its own?  false: there is no room in that. */
static bool
number_values(Lane *lane, const WireStore *in, StoreColumn *column)
{
	char	   *buffer = ops->buffer(lane, in->buffer);

	if (!in->column.coded)
		return true;
	if (column->dictionary == NULL && (column->dictionary = dictionary_take(in->table, &in->column, true)) == NULL)
		return false;
	return dictionary_translate(column->dictionary, buffer + in->entries, in->nentries, in->bytes,
								(uint32_t *) (buffer + in->values), in->nrows);
}

/* With the lock held. */
static DeviceStatus
put(Store *store, Lane *lane, const WireStore *in, uint64_t use, bool *kept, DeviceError *error)
{
	StoreTable *table = store_make_table(store, in->table.id);
	int			c = table ? store_make_column(table, &in->column) : -1;
	uint64_t	bit = (uint64_t) 1 << (c & (STORE_MAX_COLUMNS - 1));
	StoreRange *range;
	Segment    *segment;
	DeviceStatus status;

	if (c < 0)
		return DEVICE_OK;
	store_note_use(table, &table->columns[c], use);
	range = make_range(store, table, in);
	if (range == NULL)
		return DEVICE_OK;
	*kept = (range->columns & bit) != 0;
	if (*kept)
		return DEVICE_OK;
	/* what goes for this column must not be the table's list of ranges */
	table->holds++;
	status = make_room(store, &table->columns[c], range, in->validity != WIRE_NO_ARRAY, &segment, error);
	table->holds--;
	if (status == DEVICE_NO_MEMORY)
		return DEVICE_OK;
	if (status == DEVICE_OK && !number_values(lane, in, &table->columns[c]))
	{
		/* nor would the next one have room: the dictionary stays as long as the column */
		table->columns[c].refused = UINT64_MAX;
		return DEVICE_OK;
	}
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
store_put(int device, Lane *lane, const WireStore *in, uint64_t use, bool *kept, DeviceError *error)
{
	Store	   *store = &stores[device];
	DeviceStatus status;

	*kept = false;
	status = ops->ready && in->validity != WIRE_NO_ARRAY ? ops->ready(lane, error) : DEVICE_OK;
	if (status != DEVICE_OK)
		return status == DEVICE_NO_MEMORY ? DEVICE_OK : status;
	pthread_mutex_lock(&store->lock);
	status = put(store, lane, in, use, kept, error);
	pthread_mutex_unlock(&store->lock);
	return status;
}

/* ---- what there was no room for ---- */

/* Would the column be refused again? */
static bool
still_refused(const Store *store, const StoreColumn *column)
{
	uint64_t	limit = store_limit(store);
	uint64_t	room = limit > store->bytes ? limit - store->bytes : 0;
	uint64_t	unused = budget_room(store->device);
	uint64_t	evictable = 0;

	if (column->refused == 0)
		return false;
	for (const StoreTable *t = store->tables; t; t = t->next)
		for (int i = 0; i < STORE_MAX_COLUMNS; i++)
		{
			const StoreColumn *c = &t->columns[i];

			if (c->bytes > 0 && c->holds == 0 && c->before < column->before && c->last != column->last)
				evictable += c->bytes;
		}
	return evictable + (room < unused ? room : unused) < column->refused;
}

uint32_t
store_refused(int device, const WireResident *in)
{
	Store	   *store = &stores[device];
	uint32_t	refused = 0;
	StoreTable *table;

	pthread_mutex_lock(&store->lock);
	table = store_find_table(store, in->table.id);
	for (uint32_t i = 0; table && i < in->nstored; i++)
	{
		int			c = store_find_column(table, &in->stored[i]);

		if (c >= 0 && still_refused(store, &table->columns[c]))
			refused |= (uint32_t) 1 << i;
	}
	pthread_mutex_unlock(&store->lock);
	return refused;
}

/* ---- all of it ---- */

static void
list_columns(const StoreTable *table, WireListed *out)
{
	for (int c = 0; c < STORE_MAX_COLUMNS; c++)
	{
		const StoreColumn *column = &table->columns[c];
		WireListedColumn *row = &out->columns[out->n];

		if (column->bytes == 0)
			continue;
		*row = (WireListedColumn) {.table = {table->id},.column = column->key,.bytes = column->bytes};
		for (int r = 0; r < table->nranges; r++)
			if (table->ranges[r].columns >> c & 1)
			{
				row->ranges++;
				row->rows += table->ranges[r].nrows;
			}
		out->n++;
	}
}

/* The table of the next number, or NULL. */
static const StoreTable *
next_table(const Store *store, uint64_t after)
{
	const StoreTable *next = NULL;

	for (const StoreTable *t = store->tables; t; t = t->next)
		if (t->id > after && (next == NULL || t->id < next->id))
			next = t;
	return next;
}

void
store_list(const WireList *from, WireListed *out)
{
	*out = (WireListed) {.next = *from};
	while (out->next.device < (uint64_t) nstores)
	{
		Store	   *store = &stores[out->next.device];
		const StoreTable *t;

		pthread_mutex_lock(&store->lock);
		while (out->n + STORE_MAX_COLUMNS <= WIRE_MAX_LISTED && (t = next_table(store, out->next.after)) != NULL)
		{
			list_columns(t, out);
			out->next.after = t->id;
		}
		pthread_mutex_unlock(&store->lock);
		if (out->n + STORE_MAX_COLUMNS > WIRE_MAX_LISTED)
			return;
		out->next = (WireList) {0, out->next.device + 1};
	}
}

bool
store_yield(int device, uint64_t bytes)
{
	Store	   *store = &stores[device];
	uint64_t	before;
	bool		gave;

	pthread_mutex_lock(&store->lock);
	before = store->bytes;
	while (before - store->bytes < bytes && evict(store, UINT64_MAX, 0))
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
		while (stores[d].bytes > store_limit(&stores[d]) && evict(&stores[d], UINT64_MAX, 0))
			;
		pthread_mutex_unlock(&stores[d].lock);
	}
}

void
store_forget(int device)
{
	Store	   *store = &stores[device];

	pthread_mutex_lock(&store->lock);
	for (StoreTable *t = store->tables; t; t = t->next)
		store_empty_table(store, t);
	while (forget_table(store))
		;
	pthread_mutex_unlock(&store->lock);
}
