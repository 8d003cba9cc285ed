/*
 * device_store_hold.c
 *	  Finds the rows that a RESIDENT message names, and holds their columns. Remembers the lists
 *	  of spans. See device_store.h.
 */
#include <stdlib.h>
#include <string.h>

#include "server/column_dictionary.h"
#include "server/device_store_internal.h"

/* ---- columns and row ranges ---- */

/*
 * Returns the numbers of the message's columns, and records their use. -1: the column cannot be
 * used.
 */
static void
find_columns(Store *store, StoreTable *table, const WireResident *in, uint64_t use, int *columns)
{
	for (uint32_t i = 0; i < in->nstored; i++)
	{
		columns[i] = store_make_column(store, table, &in->stored[i], use);
		if (columns[i] < 0)
			continue;
		store_note_use(table, &table->columns[columns[i]], use);
		if (store_is_outdated(&table->columns[columns[i]]))
			columns[i] = -1;
	}
}

/* Returns whether the range is stored with the rows of the row range. */
static bool
range_is_there(const StoreRange *range, const WireRowRange *row_range)
{
	return range && range->number == row_range->range && range->stamp == row_range->stamp &&
		range->room > 0 && row_range->first <= range->nrows &&
		row_range->nrows <= range->nrows - row_range->first;
}

/*
 * Returns a bit for each of the message's columns that the range lacks; all bits if the range is
 * not stored.
 */
static uint64_t
lacks(const StoreRange *range, const WireRowRange *row_range, const WireResident *in,
	  const int *columns)
{
	uint64_t bits = 0;
	bool there = range_is_there(range, row_range);

	for (uint32_t i = 0; i < in->nstored; i++)
		if (!there || columns[i] < 0 || !(range->columns >> columns[i] & 1))
			bits |= (uint64_t) 1 << i;
	return bits;
}

static int
compare_spans(const void *a, const void *b)
{
	int64_t x = ((const StoreSpan *) a)->first;
	int64_t y = ((const StoreSpan *) b)->first;

	return x < y ? -1 : x > y;
}

/* Sorts spans, and merges adjacent ones within a segment. */
static void
join_spans(StoreHold *hold)
{
	int n = 0;

	if (!hold->sorted)
		qsort(hold->spans, hold->nspans, sizeof(StoreSpan), compare_spans);
	for (int i = 0; i < hold->nspans; i++)
	{
		StoreSpan *last = &hold->spans[n - 1];

		if (n > 0 && last->first + last->nrows == hold->spans[i].first &&
			hold->spans[i].first % STORE_SEGMENT_ROWS != 0)
			last->nrows += hold->spans[i].nrows;
		else
			hold->spans[n++] = hold->spans[i];
	}
	hold->nspans = n;
}

/* Returns whether the client has all entries of the dictionaries. */
static bool
knows_dictionaries(const StoreTable *table, const WireResident *in, const int *columns)
{
	for (uint32_t i = 0; i < in->nstored; i++)
	{
		const Dictionary *dict = in->stored[i].coded ? table->columns[columns[i]].dictionary : NULL;

		if (dict &&
			(dictionary_id(dict) != in->known[i].id ||
			 dictionary_entries(dict) != in->known[i].nentries))
			return false;
	}
	return true;
}

/*
 * Returns the range at the index of this number, which may have another number; NULL at the end.
 * *place is the index of the range before, and becomes that of this one.
 */
static const StoreRange *
next_range(const StoreTable *table, uint32_t number, int *place)
{
	if (*place < table->nranges && table->ranges[*place].number < number)
		(*place)++;
	if (*place < table->nranges && table->ranges[*place].number != number)
		*place = store_range_place(table, number);
	return *place < table->nranges ? &table->ranges[*place] : NULL;
}

/* Appends a span. Clears hold->sorted unless it lies behind all others. */
static void
add_span(StoreHold *hold, const StoreSpan *span)
{
	hold->sorted =
		hold->sorted && (hold->nspans == 0 || span->first > hold->spans[hold->nspans - 1].first);
	hold->spans[hold->nspans++] = *span;
	hold->nrows += span->nrows;
}

/* ---- lists of row ranges ---- */

/*
 * Returns the index of the list that begins with this range, or the index where it would be
 * inserted.
 */
static int
list_place(const StoreTable *table, uint32_t first)
{
	int left = 0, right = table->nlists;

	while (left < right)
	{
		int mid = left + (right - left) / 2;

		if (table->lists[mid].first < first)
			left = mid + 1;
		else
			right = mid;
	}
	return left;
}

/*
 * Remembers a span's list, and replaces an earlier one of the same first range. Does nothing
 * without memory.
 */
static void
remember_list(StoreTable *table, const WireSpan *span, const WireRowRange *row_ranges)
{
	int place = list_place(table, span->first);
	bool there = place < table->nlists && table->lists[place].first == span->first;
	StoreList list = {.id = span->id,
					  .first = span->first,
					  .nranges = span->nranges,
					  .nrow_ranges = span->nrow_ranges};

	/* bounds the memory: only a few for each range */
	if (!there &&
		table->listed + span->nrow_ranges > 2 * (int64_t) table->nranges + STORE_LEAST_LISTED)
		return;
	if (!there && table->nlists == table->lists_room)
	{
		int room = table->lists_room * 2 + 16;
		StoreList *larger = realloc(table->lists, room * sizeof(StoreList));

		if (larger == NULL)
			return;
		table->lists = larger;
		table->lists_room = room;
	}
	list.row_ranges = malloc(span->nrow_ranges * sizeof(WireRowRange));
	list.spans = malloc(span->nrow_ranges * sizeof(StoreSpan));
	if (list.row_ranges == NULL || list.spans == NULL)
	{
		store_free_list(&list);
		return;
	}
	memcpy(list.row_ranges, row_ranges + span->row_range, span->nrow_ranges * sizeof(WireRowRange));
	if (there)
	{
		table->listed -= table->lists[place].nrow_ranges;
		store_free_list(&table->lists[place]);
	}
	else
	{
		memmove(&table->lists[place + 1], &table->lists[place],
				(table->nlists - place) * sizeof(StoreList));
		table->nlists++;
	}
	table->listed += span->nrow_ranges;
	table->lists[place] = list;
}

/* Finds the positions of the list's rows, unless they are up to date. */
static void
settle_list(const StoreTable *table, StoreList *list)
{
	int place = 0;

	if (list->version == table->version)
		return;
	list->version = table->version;
	list->there = true;
	list->columns = UINT64_MAX;
	list->nrows = 0;
	list->nspans = 0;
	for (uint32_t r = 0; r < list->nrow_ranges && list->there; r++)
	{
		const WireRowRange *row_range = &list->row_ranges[r];
		const StoreRange *range = next_range(table, row_range->range, &place);
		StoreSpan *last = list->nspans > 0 ? &list->spans[list->nspans - 1] : NULL;

		list->there = range_is_there(range, row_range);
		if (!list->there)
			break;
		list->columns &= range->columns;
		list->nrows += row_range->nrows;
		if (last && last->first + last->nrows == range->first &&
			range->first % STORE_SEGMENT_ROWS != 0)
			last->nrows += row_range->nrows;
		else
			list->spans[list->nspans++] = (StoreSpan){range->first, row_range->nrows};
	}
}

/*
 * Returns the list of a span that came without it, and what it lacks; NULL if the list is unknown.
 */
static StoreList *
find_list(StoreTable *table, const WireSpan *span, const WireResident *in, const int *columns,
		  uint64_t *lacking)
{
	int place = list_place(table, span->first);
	StoreList *list = place < table->nlists ? &table->lists[place] : NULL;

	*lacking = UINT64_MAX >> (64 - in->nstored);
	if (list == NULL || list->id != span->id || list->first != span->first ||
		list->nranges != span->nranges)
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

/*
 * Finds the lists of all spans, and what they lack. Adds to *room the number of position ranges
 * that they have. Returns whether nothing is lacking.
 */
static bool
find_lists(StoreTable *table, const WireResident *in, const int *columns, uint64_t *lacking,
		   size_t *room)
{
	const WireSpan *spans = wire_spans(in);
	bool all = true;

	for (uint32_t i = 0; i < in->nspans; i++)
	{
		const StoreList *list = spans[i].row_range == WIRE_NO_ARRAY ?
			find_list(table, &spans[i], in, columns, &lacking[i]) :
			NULL;

		all = all && lacking[i] == 0;
		*room += list ? list->nspans : 0;
	}
	return all;
}

/* Adds the rows of lists for ranges before this one, from span i on. Returns the next span. */
static uint32_t
add_lists(const StoreTable *table, const WireResident *in, uint32_t i, uint64_t range,
		  StoreHold *hold)
{
	const WireSpan *spans = wire_spans(in);

	for (; i < in->nspans && spans[i].first < range; i++)
	{
		const StoreList *list;

		if (spans[i].row_range != WIRE_NO_ARRAY)
			continue;
		list = &table->lists[list_place(table, spans[i].first)];
		for (int s = 0; s < list->nspans; s++)
			add_span(hold, &list->spans[s]);
	}
	return i;
}

/*
 * Finds all rows, of lists and of row ranges, in the order of their ranges. Returns false if
 * something is lacking, or if there is no memory.
 */
static bool
find_rows(StoreTable *table, const WireResident *in, const WireRowRange *row_ranges,
		  const int *columns, uint64_t *lacking, StoreHold *hold)
{
	size_t room = in->nrow_ranges + 1;
	uint32_t span = 0;
	int place = 0;
	bool all;

	for (uint32_t i = 0; i < in->nspans; i++)
		if (wire_spans(in)[i].row_range != WIRE_NO_ARRAY)
			remember_list(table, &wire_spans(in)[i], row_ranges);
	all = find_lists(table, in, columns, lacking + in->nrow_ranges, &room);
	hold->sorted = true;
	hold->spans = malloc(room * sizeof(StoreSpan));
	if (hold->spans == NULL)
		return false;
	for (uint32_t r = 0; r < in->nrow_ranges; r++)
	{
		const StoreRange *range = next_range(table, row_ranges[r].range, &place);

		lacking[r] = lacks(range, &row_ranges[r], in, columns);
		all = all && lacking[r] == 0;
		if (!all)
			continue;
		span = add_lists(table, in, span, row_ranges[r].range, hold);
		add_span(hold, &(StoreSpan){range->first + row_ranges[r].first, row_ranges[r].nrows});
	}
	if (!all)
		return false;
	add_lists(table, in, span, UINT64_MAX, hold);
	join_spans(hold);
	return true;
}

/*
 * Sets up a hold without columns: rows are only counted, and any positions will do. Returns false
 * if there is no memory.
 */
static bool
count_rows(const WireResident *in, const WireRowRange *row_ranges, StoreHold *hold)
{
	const WireSpan *spans = wire_spans(in);

	for (uint32_t r = 0; r < in->nrow_ranges; r++)
		hold->nrows += row_ranges[r].nrows;
	for (uint32_t i = 0; i < in->nspans; i++)
		hold->nrows += spans[i].row_range == WIRE_NO_ARRAY ? (int64_t) spans[i].nrows : 0;
	hold->spans = malloc(STORE_MAX_SEGMENTS * sizeof(StoreSpan));
	for (int64_t at = 0; hold->spans && at < hold->nrows; at += STORE_SEGMENT_ROWS)
		hold->spans[hold->nspans++] = (StoreSpan){
			at, hold->nrows - at < STORE_SEGMENT_ROWS ? hold->nrows - at : STORE_SEGMENT_ROWS};
	return hold->spans != NULL;
}

static void
free_hold(StoreHold *hold)
{
	free(hold->spans);
	free(hold->segments);
	free(hold);
}

/* Holds the columns, and fills in their arrays. Returns false if there is no memory. */
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

		hold->column[i] = (uint8_t) columns[i];
		for (int s = 0; s < column->nsegments && s < hold->nsegments; s++)
			hold->segments[(size_t) i * hold->nsegments + s] =
				(StoreSegment){column->segments[s].values.at, column->segments[s].validity.at};
		if (!(hold->columns >> columns[i] & 1))
			column->holds++;
		hold->columns |= (uint64_t) 1 << columns[i];
	}
	table->holds++;
	hold->table = table;
	return true;
}

/* Releases what a hold has, and frees it. Called with the store's lock held. */
static void
release_hold(Store *store, StoreHold *hold)
{
	StoreTable *table = hold->table;

	if (table)
	{
		table->holds--;
		for (int c = 0; c < table->ncolumns; c++)
			if ((hold->columns >> c & 1) && --table->columns[c].holds == 0)
				store_free_retired(store, &table->columns[c]);
	}
	store_release_cells(hold);
	free_hold(hold);
}

/*
 * Holds the columns if all rows are there; else returns false, and says in lacking[] what is not.
 */
static bool
hold_columns(Store *store, const WireResident *in, const WireRowRange *row_ranges, uint64_t use,
			 uint64_t *lacking, StoreHold *hold)
{
	StoreTable *table;
	int columns[WIRE_MAX_STORED_COLS];

	store_drop_retired(store);
	table = store_make_table(store, in->table.id, use);
	if (table == NULL)
	{
		for (uint32_t r = 0; r < in->nrow_ranges + in->nspans; r++)
			lacking[r] = UINT64_MAX >> (64 - in->nstored);
		return false;
	}
	/*
	 * Removes a table with many gaps, but only at the query's first message: later ones must find
	 * what the query has stored.
	 */
	if (table->gaps > STORE_LEAST_GAPS && table->gaps > table->end / 4 && table->holds == 0 &&
		table->last != use)
		store_empty_table(store, table);
	find_columns(store, table, in, use, columns);
	if (!find_rows(table, in, row_ranges, columns, lacking, hold))
		return false;
	if (!knows_dictionaries(table, in, columns))
	{
		lacking[0] |= WIRE_OUTDATED;
		return false;
	}
	return take_hold(table, in, columns, hold);
}

DeviceStatus
store_hold(int device, const WireResident *in, const WireRowRange *row_ranges, uint64_t use,
		   uint64_t *lacking, uint32_t *lacking_cells, StoreHold **hold, DeviceError *error)
{
	Store *store = store_of(device);
	StoreHold *made = calloc(1, sizeof(*made));
	uint32_t unkept = 0;
	DeviceStatus status;
	bool held = true;

	*hold = NULL;
	memset(lacking, 0, ((size_t) in->nrow_ranges + in->nspans) * sizeof(*lacking));
	if (made)
		made->device = device;
	if (made == NULL || (in->nstored == 0 && !count_rows(in, row_ranges, made)))
	{
		free(made);
		return device_fail(error, DEVICE_FULL, "out of memory in the GPU server");
	}
	pthread_mutex_lock(&store->lock);
	if (in->nstored > 0)
		held = hold_columns(store, in, row_ranges, use, lacking, made);
	status = store_hold_cells(store, in, (const char *) row_ranges + wire_cells_at(in), use, made,
							  lacking_cells, &unkept, error);
	held = held && status == DEVICE_OK && *lacking_cells == 0;
	if (!held)
	{
		release_hold(store, made);
		*lacking_cells |= unkept;
	}
	pthread_mutex_unlock(&store->lock);
	*hold = held ? made : NULL;
	return status;
}

void
store_release(StoreHold *hold)
{
	Store *store = store_of(hold->device);

	pthread_mutex_lock(&store->lock);
	release_hold(store, hold);
	pthread_mutex_unlock(&store->lock);
}

bool
store_is_disordered(const StoreHold *hold, int stored)
{
	Store *store = store_of(hold->device);
	bool is;

	pthread_mutex_lock(&store->lock);
	is = hold->table->columns[hold->column[stored]].disordered;
	pthread_mutex_unlock(&store->lock);
	return is;
}

void
store_note_disorder(const StoreHold *hold, int stored)
{
	Store *store = store_of(hold->device);

	pthread_mutex_lock(&store->lock);
	hold->table->columns[hold->column[stored]].disordered = true;
	pthread_mutex_unlock(&store->lock);
}
