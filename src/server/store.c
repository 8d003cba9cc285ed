/*
 * store.c
 *	  Columns of tables that stay on the devices; see store.h.
 *
 * Each device has a lock, under which all of its bookkeeping and the operations on its memory
 * are done.
 */
#include <stdlib.h>
#include <string.h>

#include "server/server.h"
#include "server/store.h"

/* Bits of StoreRange.columns. */
#define MAX_COLUMNS 64
/* Tables that are remembered, and ranges of all of them, on one device. */
#define MAX_TABLES 1024
#define MAX_RANGES (1 << 22)

typedef struct StoreRange
{
	uint32_t	number;
	uint32_t	nrows;
	uint32_t	room;			/* rows that its place has room for */
	uint64_t	stamp;
	int64_t		first;			/* position */
	uint64_t	columns;		/* that are there, a bit each */
} StoreRange;

typedef struct Array
{
	void	   *at;
	size_t		bytes;
} Array;

/* An array that was replaced while queries read it. */
typedef struct Retired
{
	struct Retired *next;
	Array		array;
} Retired;

typedef struct Segment
{
	Array		values;
	Array		validity;		/* none: no NULLs so far */
} Segment;

typedef struct StoreColumn
{
	WireColumnKey key;
	bool		used;			/* this entry */
	int			holds;
	uint64_t	last,			/* uses; 0: none */
				before;
	uint64_t	bytes;
	uint64_t	refused;		/* bytes that it was last refused; 0: none */
	int			nsegments;		/* entries of the array */
	Segment    *segments;
	Retired    *retired;
} StoreColumn;

/* A list of runs that has an id, and where its rows lie. */
typedef struct StoreList
{
	uint64_t	id;
	uint32_t	first;			/* ranges */
	uint32_t	nruns;
	WireRun    *runs;
	uint64_t	version;		/* of the table, when the rest was found; 0: not yet */
	bool		there;			/* all ranges are: */
	uint64_t	columns;		/* that all of them have, a bit each */
	int64_t		nrows;
	int			nspans;
	StoreSpan  *spans;
} StoreList;

struct StoreTable
{
	StoreTable *next;
	uint64_t	id;
	int			holds;
	uint64_t	last;			/* use */
	int64_t		end;			/* positions in use */
	int64_t		gaps;			/* of them without rows */
	int			nranges;
	int			ranges_room;
	StoreRange *ranges;			/* by number */
	uint64_t	version;		/* counts changes of ranges and of what columns they have */
	int			nlists;
	int			lists_room;
	StoreList  *lists;			/* by first range */
	int64_t		listed;			/* runs of all lists */
	StoreColumn columns[MAX_COLUMNS];
};

typedef struct Store
{
	pthread_mutex_t lock;
	int			device;
	StoreTable *tables;
	int			ntables;
	int64_t		nranges;		/* of all tables */
	uint64_t	bytes;
} Store;

static Store stores[WIRE_MAX_DEVICES];
static int	nstores;
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

static uint64_t
store_limit(const Store *store)
{
	uint64_t	setting = atomic_load(&limit_setting);

	return setting == UINT64_MAX ? budget_device(store->device)->memory / 2 : setting;
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

static void
free_retired(Store *store, StoreColumn *column)
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

	free_retired(store, column);
	for (int s = 0; s < column->nsegments; s++)
	{
		free_array(store, column, &column->segments[s].values);
		free_array(store, column, &column->segments[s].validity);
	}
	free(column->segments);
	column->segments = NULL;
	column->nsegments = 0;
	for (int r = 0; r < table->nranges; r++)
		table->ranges[r].columns &= ~bit;
	table->version++;
}

static void
free_list(StoreList *list)
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
	for (int c = 0; c < MAX_COLUMNS; c++)
		if (table->columns[c].bytes > 0)
			return;
	for (int c = 0; c < MAX_COLUMNS; c++)
	{
		free(table->columns[c].segments);
		table->columns[c].segments = NULL;
		table->columns[c].nsegments = 0;
	}
	for (int i = 0; i < table->nlists; i++)
		free_list(&table->lists[i]);
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

static void
empty_table(Store *store, StoreTable *table)
{
	for (int c = 0; c < MAX_COLUMNS; c++)
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
		for (int i = 0; i < MAX_COLUMNS; i++)
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

static StoreTable *
find_table(Store *store, uint64_t id)
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
static StoreTable *
make_table(Store *store, uint64_t id)
{
	StoreTable *t = find_table(store, id);

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
		a->scale == b->scale && a->type == b->type;
}

/* The number of the column, or -1. */
static int
find_column(const StoreTable *table, const WireColumnKey *key)
{
	for (int c = 0; c < MAX_COLUMNS; c++)
		if (table->columns[c].used && same_column(&table->columns[c].key, key))
			return c;
	return -1;
}

/* Makes an entry, in place of one without memory if need be; -1: there is none. */
static int
make_column(StoreTable *table, const WireColumnKey *key)
{
	int			found = find_column(table, key);

	if (found >= 0)
		return found;
	for (int c = 0; c < MAX_COLUMNS; c++)
	{
		const StoreColumn *column = &table->columns[c];

		if (column->bytes == 0 && (found < 0 || !column->used || (table->columns[found].used &&
																   column->last < table->columns[found].last)))
			found = c;
	}
	if (found >= 0)
	{
		free(table->columns[found].segments);	/* without arrays */
		table->columns[found] = (StoreColumn) {.key = *key,.used = true};
	}
	return found;
}

static void
note_use(StoreTable *table, StoreColumn *column, uint64_t use)
{
	table->last = use;
	if (column->last == use)
		return;
	column->before = column->last;
	column->last = use;
}

/* The place of the range of this number among the table's, or where it would be. */
static int
range_place(const StoreTable *table, uint32_t number)
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
	int			place = range_place(table, in->range);
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

/* With the lock held. */
static DeviceStatus
put(Store *store, Lane *lane, const WireStore *in, uint64_t use, bool *kept, DeviceError *error)
{
	StoreTable *table = make_table(store, in->table.id);
	int			c = table ? make_column(table, &in->column) : -1;
	uint64_t	bit = (uint64_t) 1 << (c & (MAX_COLUMNS - 1));
	StoreRange *range;
	Segment    *segment;
	DeviceStatus status;

	if (c < 0)
		return DEVICE_OK;
	note_use(table, &table->columns[c], use);
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
	if (status == DEVICE_OK)
		status = fill(lane, in, range, segment, error);
	if (status != DEVICE_OK)
		return status;
	range->columns |= bit;
	table->version++;
	*kept = true;
	return DEVICE_OK;
}

/* A column of a table that lies on another device is not kept. */
DeviceStatus
store_put(int device, Lane *lane, const WireStore *in, uint64_t use, bool *kept, DeviceError *error)
{
	Store	   *store = &stores[device];
	int			place = store_device(in->table.id);
	DeviceStatus status;

	*kept = false;
	if (place >= 0 && place != device)
		return DEVICE_OK;
	pthread_mutex_lock(&store->lock);
	status = put(store, lane, in, use, kept, error);
	pthread_mutex_unlock(&store->lock);
	return status;
}

/* ---- reading ---- */

/* The numbers of the columns that the message names; notes that they are used. */
static void
find_columns(StoreTable *table, const WireResident *in, uint64_t use, int *columns)
{
	for (uint32_t i = 0; i < in->nstored; i++)
	{
		columns[i] = make_column(table, &in->stored[i]);
		if (columns[i] >= 0)
			note_use(table, &table->columns[columns[i]], use);
	}
}

/* Has the range the run's rows? */
static bool
range_is_there(const StoreRange *range, const WireRun *run)
{
	return range && range->number == run->range && range->stamp == run->stamp && range->room > 0 &&
		run->first <= range->nrows && run->nrows <= range->nrows - run->first;
}

/* Bit i: the range lacks the message's column i; all bits if it is not there. */
static uint64_t
lacks(const StoreRange *range, const WireRun *run, const WireResident *in, const int *columns)
{
	uint64_t	bits = 0;
	bool		there = range_is_there(range, run);

	for (uint32_t i = 0; i < in->nstored; i++)
		if (!there || columns[i] < 0 || !(range->columns >> columns[i] & 1))
			bits |= (uint64_t) 1 << i;
	return bits;
}

static int
compare_spans(const void *a, const void *b)
{
	int64_t		x = ((const StoreSpan *) a)->first;
	int64_t		y = ((const StoreSpan *) b)->first;

	return x < y ? -1 : x > y;
}

/* Sorts spans, and joins those that touch, but not across segments. */
static void
join_spans(StoreHold *hold, bool sorted)
{
	int			n = 0;

	if (!sorted)
		qsort(hold->spans, hold->nspans, sizeof(StoreSpan), compare_spans);
	for (int i = 0; i < hold->nspans; i++)
	{
		StoreSpan  *last = &hold->spans[n - 1];

		if (n > 0 && last->first + last->nrows == hold->spans[i].first &&
			hold->spans[i].first % STORE_SEGMENT_ROWS != 0)
			last->nrows += hold->spans[i].nrows;
		else
			hold->spans[n++] = hold->spans[i];
	}
	hold->nspans = n;
}

/* The range of this number, or NULL; *place is that of the one before, and of this one then. */
static const StoreRange *
next_range(const StoreTable *table, uint32_t number, int *place)
{
	if (*place < table->nranges && table->ranges[*place].number < number)
		(*place)++;
	if (*place < table->nranges && table->ranges[*place].number != number)
		*place = range_place(table, number);
	return *place < table->nranges ? &table->ranges[*place] : NULL;
}

/* Adds a span, after all that have less positions. */
static void
add_span(StoreHold *hold, const StoreSpan *span, bool *sorted)
{
	*sorted = *sorted && (hold->nspans == 0 || span->first > hold->spans[hold->nspans - 1].first);
	hold->spans[hold->nspans++] = *span;
	hold->nrows += span->nrows;
}

/* The spans of all runs, if none lacks a column; else false. */
static bool
find_spans(const StoreTable *table, const WireResident *in, const WireRun *runs, const int *columns, uint64_t *lacking,
		   StoreHold *hold, bool *sorted)
{
	int			place = 0;
	bool		all = true;

	for (uint32_t r = 0; r < in->nruns; r++)
	{
		const StoreRange *range = next_range(table, runs[r].range, &place);

		lacking[r] = lacks(range, &runs[r], in, columns);
		all = all && lacking[r] == 0;
		if (all)
			add_span(hold, &(StoreSpan) {range->first + runs[r].first, runs[r].nrows}, sorted);
	}
	return all;
}

/* ---- lists of runs ---- */

/* The place of the list that begins with this range, or where it would be. */
static int
list_place(const StoreTable *table, uint32_t first)
{
	int			left = 0,
				right = table->nlists;

	while (left < right)
	{
		int			mid = left + (right - left) / 2;

		if (table->lists[mid].first < first)
			left = mid + 1;
		else
			right = mid;
	}
	return left;
}

/* Remembers a list in place of an earlier one, if there is memory. */
static void
remember_list(StoreTable *table, const WireSpan *span, const WireRun *runs)
{
	int			place = list_place(table, span->first);
	bool		there = place < table->nlists && table->lists[place].first == span->first;
	StoreList	list = {.id = span->id,.first = span->first,.nruns = span->nruns};

	/* not more than a few for each range */
	if (!there && table->listed + span->nruns > 2 * (int64_t) table->nranges + STORE_LEAST_LISTED)
		return;
	if (!there && table->nlists == table->lists_room)
	{
		int			room = table->lists_room * 2 + 16;
		StoreList  *larger = realloc(table->lists, room * sizeof(StoreList));

		if (larger == NULL)
			return;
		table->lists = larger;
		table->lists_room = room;
	}
	list.runs = malloc(span->nruns * sizeof(WireRun));
	list.spans = malloc(span->nruns * sizeof(StoreSpan));
	if (list.runs == NULL || list.spans == NULL)
	{
		free_list(&list);
		return;
	}
	memcpy(list.runs, runs + span->run, span->nruns * sizeof(WireRun));
	if (there)
	{
		table->listed -= table->lists[place].nruns;
		free_list(&table->lists[place]);
	}
	else
	{
		memmove(&table->lists[place + 1], &table->lists[place], (table->nlists - place) * sizeof(StoreList));
		table->nlists++;
	}
	table->listed += span->nruns;
	table->lists[place] = list;
}

/* Finds where the list's rows lie, unless that is known. */
static void
settle_list(const StoreTable *table, StoreList *list)
{
	int			place = 0;

	if (list->version == table->version)
		return;
	list->version = table->version;
	list->there = true;
	list->columns = UINT64_MAX;
	list->nrows = 0;
	list->nspans = 0;
	for (uint32_t r = 0; r < list->nruns && list->there; r++)
	{
		const WireRun *run = &list->runs[r];
		const StoreRange *range = next_range(table, run->range, &place);
		StoreSpan  *last = list->nspans > 0 ? &list->spans[list->nspans - 1] : NULL;

		list->there = range_is_there(range, run);
		if (!list->there)
			break;
		list->columns &= range->columns;
		list->nrows += run->nrows;
		if (last && last->first + last->nrows == range->first && range->first % STORE_SEGMENT_ROWS != 0)
			last->nrows += run->nrows;
		else
			list->spans[list->nspans++] = (StoreSpan) {range->first, run->nrows};
	}
}

/* The list of a span that came without it, if it is known, with what it lacks. */
static StoreList *
find_list(StoreTable *table, const WireSpan *span, const WireResident *in, const int *columns, uint64_t *lacking)
{
	int			place = list_place(table, span->first);
	StoreList  *list = place < table->nlists ? &table->lists[place] : NULL;

	*lacking = UINT64_MAX;
	if (list == NULL || list->id != span->id || list->first != span->first)
		return NULL;
	settle_list(table, list);
	if (!list->there || list->nrows != (int64_t) span->nrows)
		return NULL;
	*lacking = 0;
	for (uint32_t i = 0; i < in->nstored; i++)
		if (columns[i] < 0 || !(list->columns >> columns[i] & 1))
			*lacking |= (uint64_t) 1 << i;
	return list;
}

/* The spans of all lists that are named, if none lacks a column; else false. */
static bool
find_lists(StoreTable *table, const WireResident *in, const WireSpan *spans, const int *columns, uint64_t *lacking,
		   size_t *room)
{
	bool		all = true;

	for (uint32_t i = 0; i < in->nspans; i++)
	{
		const StoreList *list = spans[i].run == WIRE_NO_ARRAY ? find_list(table, &spans[i], in, columns, &lacking[i]) : NULL;

		all = all && lacking[i] == 0;
		*room += list ? list->nspans : 0;
	}
	return all;
}

/* Finds all rows, of lists and of runs; false: something is lacking, or there is no memory. */
static bool
find_rows(StoreTable *table, const WireResident *in, const WireRun *runs, const int *columns, uint64_t *lacking,
		  StoreHold *hold)
{
	const WireSpan *spans = resident_spans(in, runs);
	size_t		room = in->nruns + 1;
	bool		sorted = true;
	bool		all;

	for (uint32_t i = 0; i < in->nspans; i++)
		if (spans[i].run != WIRE_NO_ARRAY)
			remember_list(table, &spans[i], runs);
	all = find_lists(table, in, spans, columns, lacking + in->nruns, &room);
	hold->spans = malloc(room * sizeof(StoreSpan));
	if (hold->spans == NULL)
		return false;
	for (uint32_t i = 0; i < in->nspans && all; i++)
	{
		const StoreList *list = &table->lists[list_place(table, spans[i].first)];

		for (int s = 0; spans[i].run == WIRE_NO_ARRAY && s < list->nspans; s++)
			add_span(hold, &list->spans[s], &sorted);
	}
	if (!find_spans(table, in, runs, columns, lacking, hold, &sorted) || !all)
		return false;
	join_spans(hold, sorted);
	return true;
}

/* Rows without columns: they have any positions.  False: no memory. */
static bool
count_rows(const WireResident *in, const WireRun *runs, StoreHold *hold)
{
	const WireSpan *spans = resident_spans(in, runs);

	for (uint32_t r = 0; r < in->nruns; r++)
		hold->nrows += runs[r].nrows;
	for (uint32_t i = 0; i < in->nspans; i++)
		hold->nrows += spans[i].run == WIRE_NO_ARRAY ? (int64_t) spans[i].nrows : 0;
	hold->spans = malloc(STORE_MAX_SEGMENTS * sizeof(StoreSpan));
	for (int64_t at = 0; hold->spans && at < hold->nrows; at += STORE_SEGMENT_ROWS)
		hold->spans[hold->nspans++] = (StoreSpan) {
			at, hold->nrows - at < STORE_SEGMENT_ROWS ? hold->nrows - at : STORE_SEGMENT_ROWS
		};
	return hold->spans != NULL;
}

static void
free_hold(StoreHold *hold)
{
	free(hold->spans);
	free(hold->segments);
	free(hold);
}

/* Holds the columns, and notes where they lie; false: no memory. */
static bool
take_hold(StoreTable *table, const WireResident *in, const int *columns, StoreHold *hold)
{
	hold->nsegments = (int) ((table->end + STORE_SEGMENT_ROWS - 1) / STORE_SEGMENT_ROWS);
	hold->segments = calloc((size_t) hold->nsegments * in->nstored + 1, sizeof(StoreSegment));
	if (hold->segments == NULL)
		return false;
	for (uint32_t i = 0; i < in->nstored; i++)
	{
		StoreColumn *column = &table->columns[columns[i]];

		for (int s = 0; s < column->nsegments && s < hold->nsegments; s++)
			hold->segments[(size_t) i * hold->nsegments + s] = (StoreSegment) {
				column->segments[s].values.at, column->segments[s].validity.at
			};
		if (!(hold->columns >> columns[i] & 1))
			column->holds++;
		hold->columns |= (uint64_t) 1 << columns[i];
	}
	table->holds++;
	hold->table = table;
	return true;
}

DeviceStatus
store_hold(int device, const WireResident *in, const WireRun *runs, uint64_t use, uint64_t *lacking,
		   StoreHold **hold, DeviceError *error)
{
	Store	   *store = &stores[device];
	StoreHold  *made = calloc(1, sizeof(*made));
	int			columns[WIRE_MAX_STORED_COLS];
	StoreTable *table = NULL;
	bool		held = false;

	*hold = NULL;
	memset(lacking, 0, ((size_t) in->nruns + in->nspans) * sizeof(*lacking));
	if (made)
		made->device = device;
	if (made == NULL || (in->nstored == 0 && !count_rows(in, runs, made)))
	{
		free(made);
		return device_say(error, DEVICE_FULL, "out of memory in the GPU server");
	}
	if (in->nstored == 0)
	{
		*hold = made;
		return DEVICE_OK;
	}
	pthread_mutex_lock(&store->lock);
	table = make_table(store, in->table.id);
	if (table)
	{
		/* when the query asks for the first time: what it stores then must not be dropped again */
		if (table->gaps > STORE_LEAST_GAPS && table->gaps > table->end / 4 && table->holds == 0 && table->last != use)
			empty_table(store, table);
		find_columns(table, in, use, columns);
		held = find_rows(table, in, runs, columns, lacking, made) && take_hold(table, in, columns, made);
	}
	pthread_mutex_unlock(&store->lock);
	if (table == NULL)
		for (uint32_t r = 0; r < in->nruns + in->nspans; r++)
			lacking[r] = UINT64_MAX >> (64 - in->nstored);
	if (held)
		*hold = made;
	else
		free_hold(made);
	return DEVICE_OK;
}

void
store_release(StoreHold *hold)
{
	Store	   *store = &stores[hold->device];
	StoreTable *table = hold->table;

	if (table)
	{
		pthread_mutex_lock(&store->lock);
		table->holds--;
		for (int c = 0; c < MAX_COLUMNS; c++)
			if ((hold->columns >> c & 1) && --table->columns[c].holds == 0)
				free_retired(store, &table->columns[c]);
		pthread_mutex_unlock(&store->lock);
	}
	free_hold(hold);
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
		for (int i = 0; i < MAX_COLUMNS; i++)
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
	table = find_table(store, in->table.id);
	for (uint32_t i = 0; table && i < in->nstored; i++)
	{
		int			c = find_column(table, &in->stored[i]);

		if (c >= 0 && still_refused(store, &table->columns[c]))
			refused |= (uint32_t) 1 << i;
	}
	pthread_mutex_unlock(&store->lock);
	return refused;
}

/* ---- all of it ---- */

int
store_device(uint64_t table)
{
	int			found = -1;

	for (int d = 0; d < nstores && found < 0; d++)
	{
		StoreTable *t;

		pthread_mutex_lock(&stores[d].lock);
		t = find_table(&stores[d], table);
		if (t && t->nranges > 0)
			found = d;
		pthread_mutex_unlock(&stores[d].lock);
	}
	return found;
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
		empty_table(store, t);
	while (forget_table(store))
		;
	pthread_mutex_unlock(&store->lock);
}
