/*
 * store_test.c
 *	  Tests the bookkeeping of stored columns: eviction from full lists, dictionaries that grow,
 *	  and failing allocations. The devices are simulated: StoreOps of the test that use host memory.
 */
#include <string.h>

#include "server/device_store_internal.h"
#include "server/server.h"
#include "server/store_entries.h"
#include "unit.h"

#define DEVICES 2
#define DEVICE_BYTES ((uint64_t) 64 << 20)

static char buffer[WIRE_BUFFER_BYTES];
static uint64_t stamps = 1000;
static size_t largest = SIZE_MAX; /* larger allocations fail */

static char *
test_buffer(Lane *lane, int number)
{
	(void) lane, (void) number;
	return buffer;
}

static DeviceStatus
test_allocate(int device, size_t bytes, void **at, DeviceError *error)
{
	(void) device;
	*at = bytes > largest ? NULL : calloc(1, bytes);
	return *at ? DEVICE_OK : device_fail(error, DEVICE_NO_MEMORY, "no memory");
}

static void
test_release(int device, void *at)
{
	(void) device;
	free(at);
}

static DeviceStatus
test_enlarge(int device, void *to, size_t bytes, const void *from, size_t used, int rest,
			 DeviceError *error)
{
	(void) device, (void) error;
	memset(to, rest, bytes);
	if (from)
		memcpy(to, from, used);
	return DEVICE_OK;
}

static DeviceStatus
test_put(Lane *lane, int number, uint32_t from, void *to, size_t bytes, DeviceError *error)
{
	(void) lane, (void) number, (void) error;
	memcpy(to, buffer + from, bytes);
	return DEVICE_OK;
}

static DeviceStatus
test_put_memory(int device, const void *from, void *to, size_t bytes, DeviceError *error)
{
	(void) device, (void) error;
	memcpy(to, from, bytes);
	return DEVICE_OK;
}

static const StoreOps operations = {
	.buffer = test_buffer,
	.allocate = test_allocate,
	.release = test_release,
	.enlarge = test_enlarge,
	.put = test_put,
	.put_memory = test_put_memory,
};

/* Returns the key of a column by its number. `coded`: a column of dictionary codes. */
static WireColumnKey
column_key(int attno, bool coded)
{
	return (WireColumnKey){
		.typid = 25, .attno = attno, .scale = -1, .type = WIRE_I32, .coded = coded};
}

/*
 * Stores `nrows` rows of a range. Each row of a coded column has another text: the numbers from
 * `first` on. Returns whether the column was kept.
 */
static bool
store_column(int device, uint64_t table, int attno, bool coded, uint32_t range, uint64_t stamp,
			 uint32_t nrows, uint32_t first, uint64_t use)
{
	WireStore in = {
		.table = {table},
		.stamp = stamp,
		.range = range,
		.nrows = nrows,
		.column = column_key(attno, coded),
		.validity = WIRE_NO_ARRAY,
		.entries = (uint32_t) wire_align(nrows * sizeof(uint32_t)),
		.nentries = coded ? nrows : 0,
		.bytes = coded ? nrows * 8 : 0,
	};
	uint32_t *codes = (uint32_t *) buffer;
	uint32_t *lengths = (uint32_t *) (buffer + in.entries);
	char *text = (char *) (lengths + nrows);
	StoreEntries entries = {0};
	DeviceError error;
	bool kept = false;

	for (uint32_t i = 0; i < nrows; i++)
	{
		codes[i] = i;
		if (!coded)
			continue;
		lengths[i] = 8;
		snprintf(text, 9, "%08u", first + i);
		text += 8;
	}
	if (coded)
	{
		CHECK(store_entries_take(&entries, &in, buffer) == NULL, "the entries are invalid");
		store_entries_translate(&entries, codes, nrows);
	}
	CHECK(store_put(device, NULL, &in, entries.dict, use, &kept, &error) == DEVICE_OK, "%s",
		  error.text);
	store_entries_forget(&entries);
	return kept;
}

/* Returns whether the device has all rows of the ranges, for a query that knows the dictionary. */
static bool
is_stored(int device, uint64_t table, int attno, bool coded, const WireRowRange *ranges,
		  uint32_t nranges, uint64_t use)
{
	static WireResident in;
	uint64_t lacking[64];
	uint32_t lacking_cells = 0;
	StoreHold *hold = NULL;
	DeviceError error;
	WireColumnKey key = column_key(attno, coded);
	Dictionary *dict = coded ? dictionary_take((WireTableKey){table}, &key, false) : NULL;

	in = (WireResident){.table = {table}, .nrow_ranges = nranges, .nstored = 1};
	in.stored[0] = key;
	if (dict)
		in.known[0] = (WireKnown){dictionary_id(dict), dictionary_entries(dict)};
	dictionary_give(dict);
	CHECK(store_hold(device, &in, ranges, use, lacking, &lacking_cells, &hold, &error) == DEVICE_OK,
		  "%s", error.text);
	if (hold)
		store_release(hold);
	return hold != NULL;
}

/* Returns whether store_refused() reports the column. */
static bool
is_refused(int device, uint64_t table, int attno, bool coded)
{
	static WireResident in;

	in = (WireResident){.table = {table}, .nstored = 1};
	in.stored[0] = column_key(attno, coded);
	return store_refused(device, &in) != 0;
}

/* Forgets all stored columns, and checks that this freed all memory. */
static void
check_empty(void)
{
	for (int d = 0; d < DEVICES; d++)
		store_forget(d);
	for (int d = 0; d < DEVICES; d++)
		CHECK(budget_device(d)->used == 0 && store_host_bytes(d) == 0, "memory was not freed");
	CHECK(dictionary_bytes_of_all() == 0, "a dictionary was not freed");
}

/* With more tables than entries, the table whose last use is oldest goes, with its columns. */
static void
test_many_tables(void)
{
	WireRowRange run = {1, 0, 0, 10, 0};

	for (uint64_t t = 1; t <= 3 * STORE_MAX_TABLES; t++)
	{
		CHECK(store_column(0, t, 1, false, 0, 1, 10, 0, store_use()), "table %d was not kept",
			  (int) t);
		CHECK(is_stored(0, 1, 1, false, &run, 1, store_use()),
			  "table 1, which all queries use, went after table %d", (int) t);
	}
	CHECK(store_of(0)->ntables == STORE_MAX_TABLES, "%d tables", store_of(0)->ntables);
	CHECK(store_find_table(store_of(0), 3 * STORE_MAX_TABLES) &&
			  store_find_table(store_of(0), 2) == NULL,
		  "the tables used last are not the ones that were kept");
	check_empty();
}

/* The same with columns of a table. */
static void
test_many_columns(void)
{
	WireRowRange run = {1, 0, 0, 10, 0};

	for (int a = 1; a <= 3 * STORE_MAX_COLUMNS; a++)
	{
		CHECK(store_column(0, 1, a, false, 0, 1, 10, 0, store_use()), "column %d was not kept", a);
		CHECK(is_stored(0, 1, 1, false, &run, 1, store_use()),
			  "column 1, which all queries use, went after column %d", a);
		CHECK(is_stored(0, 1, a, false, &run, 1, store_use()), "column %d is not stored", a);
	}
	CHECK(!is_stored(0, 1, 2, false, &run, 1, store_use()),
		  "a column that was not used for long is still stored");
	check_empty();
}

/* Columns of one query do not replace each other. */
static void
test_columns_of_a_query(void)
{
	uint64_t use = store_use();

	for (int a = 1; a <= STORE_MAX_COLUMNS + 5; a++)
		CHECK(store_column(0, 1, a, false, 0, 1, 10, 0, use) == (a <= STORE_MAX_COLUMNS),
			  "column %d of a query: kept, or not, against the limit", a);
	check_empty();
}

#define BLOCKS 32
#define TEXTS 2048
#define ALL_TEXTS (BLOCKS * TEXTS)

/*
 * Stores all ranges with new texts, until one is not kept, and describes all in ranges[]. Returns
 * how many were kept.
 */
static int
store_texts(int device, uint32_t first, WireRowRange *ranges, uint64_t use)
{
	int kept = 0;

	for (uint32_t r = 0; r < BLOCKS; r++)
	{
		ranges[r] = (WireRowRange){++stamps, r, 0, TEXTS, 0};
		kept += kept == (int) r &&
			store_column(device, 1, 1, true, r, stamps, TEXTS, first + r * TEXTS, use);
	}
	return kept;
}

/*
 * A text column whose rows change often stays stored, and its dictionary does not keep the values
 * that are gone for ever.
 */
static void
test_changing_texts(void)
{
	WireRowRange ranges[BLOCKS];
	WireColumnKey key = column_key(1, true);
	int rounds = 0;

	for (int round = 0; round < 60; round++)
	{
		Dictionary *dict;

		store_texts(1, round * ALL_TEXTS, ranges, store_use());
		rounds += is_stored(1, 1, 1, true, ranges, BLOCKS, store_use());
		CHECK(!is_refused(1, 1, 1, true), "the column is refused in round %d", round);
		dict = dictionary_take((WireTableKey){1}, &key, false);
		CHECK(dict == NULL || dictionary_entries(dict) < 20 * ALL_TEXTS, "round %d: %d entries",
			  round, (int) dictionary_entries(dict));
		dictionary_give(dict);
	}
	CHECK(rounds > 40, "the column was stored in %d rounds", rounds);
	check_empty();
}

/* A text column with too many values for the host's memory is refused until many have changed. */
static void
test_too_many_texts(void)
{
	WireRowRange ranges[BLOCKS];
	uint64_t one;

	CHECK(store_texts(0, 0, ranges, store_use()) == BLOCKS, "some ranges were not kept");
	one = dictionary_bytes_of_all();
	check_empty();
	store_set_host_limit(one / 2);
	CHECK(store_texts(0, 0, ranges, store_use()) < BLOCKS, "all ranges were kept");
	CHECK(!is_stored(0, 1, 1, true, ranges, BLOCKS, store_use()) && is_refused(0, 1, 1, true),
		  "the column is not refused");
	check_empty();
	/* the values of rows that were replaced take the memory */
	store_set_host_limit(2 * one);
	CHECK(store_texts(0, 0, ranges, store_use()) == BLOCKS, "some ranges were not kept");
	for (int round = 1; round < 10; round++)
		store_texts(0, round * ALL_TEXTS, ranges, store_use());
	CHECK(!is_refused(0, 1, 1, true), "the column is refused for values that are gone");
	CHECK(dictionary_bytes_of_all() <= 2 * one, "dictionaries have too many bytes");
	store_set_host_limit(0);
	check_empty();
}

/* Sends an entry of a range whose entries come in parts. Returns what is wrong, or NULL. */
static const char *
send_part(StoreEntries *entries, uint32_t before, char text, uint32_t length)
{
	WireStore in = {.table = {1},
					.stamp = 1,
					.nrows = 10,
					.column = column_key(1, true),
					.nentries = 1,
					.bytes = 1,
					.before = before,
					.more = 1};

	((uint32_t *) buffer)[0] = length;
	buffer[4] = text;
	return store_entries_take(entries, &in, buffer);
}

static void
test_parts(void)
{
	StoreEntries entries = {0};
	uint32_t values[] = {2, 0, 1, 9};

	CHECK(send_part(&entries, 1, 'a', 1) != NULL, "the first part is lacking");
	CHECK(send_part(&entries, 0, 'a', 1) == NULL && send_part(&entries, 1, 'b', 1) == NULL &&
			  send_part(&entries, 2, 'a', 1) == NULL && !entries.refused,
		  "parts are refused");
	store_entries_translate(&entries, values, 4);
	CHECK(values[0] == 0 && values[1] == 0 && values[2] == 1 && values[3] == DICTIONARY_NO_CODE,
		  "codes are wrong");
	CHECK(send_part(&entries, 2, 'a', 1) != NULL, "a part comes twice");
	CHECK(send_part(&entries, 3, 'a', 2) != NULL, "an entry is longer than the message");
	CHECK(send_part(&entries, 0, 'c', 1) == NULL, "another range is refused");
	CHECK(send_part(&entries, 1, 'c', UINT32_MAX) != NULL, "an entry is too long");
	store_entries_forget(&entries);
	check_empty();
}

/*
 * A column that a query holds keeps its dictionary. Afterwards it is stored again, with another
 * one.
 */
static void
test_held_column(void)
{
	static WireResident in;
	WireRowRange run = {++stamps, 0, 0, TEXTS, 0};
	uint64_t lacking[1];
	uint32_t lacking_cells = 0;
	StoreHold *hold = NULL;
	DeviceError error;
	WireColumnKey key = column_key(1, true);
	Dictionary *dict;
	uint64_t bytes;

	CHECK(store_column(0, 1, 1, true, 0, run.stamp, TEXTS, 0, store_use()),
		  "the column was not kept");
	dict = dictionary_take((WireTableKey){1}, &key, false);
	in = (WireResident){.table = {1}, .nrow_ranges = 1, .nstored = 1};
	in.stored[0] = key;
	in.known[0] = (WireKnown){dictionary_id(dict), dictionary_entries(dict)};
	CHECK(store_hold(0, &in, &run, store_use(), lacking, &lacking_cells, &hold, &error) ==
				  DEVICE_OK &&
			  hold,
		  "the column is not held");
	bytes = dictionary_bytes_of_all();
	dictionary_retire(dict);
	CHECK(bytes > 0 && dictionary_bytes_of_all() == 0,
		  "the retired dictionary still counts: %d bytes of %d", (int) dictionary_bytes_of_all(),
		  (int) bytes);
	CHECK(hold->segments[0].values &&
			  ((const uint32_t *) hold->segments[0].values)[TEXTS - 1] == TEXTS - 1,
		  "the held column has changed");
	CHECK(!store_column(0, 1, 1, true, 1, ++stamps, TEXTS, 0, store_use()),
		  "a held column has two dictionaries");
	CHECK(dictionary_take((WireTableKey){1}, &key, false) == NULL,
		  "a retired dictionary is returned");
	store_release(hold);
	dictionary_give(dict);
	CHECK(!is_stored(0, 1, 1, true, &run, 1, store_use()),
		  "codes of a retired dictionary are still used");
	CHECK(store_column(0, 1, 1, true, 0, run.stamp, TEXTS, 50, store_use()) &&
			  is_stored(0, 1, 1, true, &run, 1, store_use()),
		  "the column was not kept with a new dictionary");
	check_empty();
}

/* The name of cells by a number. */
static WireCellsName
cells_name(uint64_t number)
{
	return (WireCellsName){{number, ~number}};
}

/*
 * Holds the cells of one table of n + 1 bytes, all `byte`; sends them if `sent`. Returns the hold;
 * NULL if they are lacking.
 */
static StoreHold *
hold_cells(int device, uint64_t number, uint32_t n, bool sent, uint8_t byte, uint64_t use)
{
	static WireResident in;
	struct
	{
		WireRowRange run;
		char gap[WIRE_ALIGN - sizeof(WireRowRange)];
		uint8_t cells[1 << 20];
	} *message = calloc(1, sizeof(*message));
	uint64_t lacking[1];
	uint32_t lacking_cells = 0;
	StoreHold *hold = NULL;
	DeviceError error;

	in = (WireResident){.nrow_ranges = 1, .ntables = 1, .sent = sent};
	in.tables[0] = (VectorTable){.n = n, .form = 1};
	in.names[0] = cells_name(number);
	in.cell_bytes = sent ? (uint32_t) vector_table_bytes(&in.tables[0]) : 0;
	message->run = (WireRowRange){1, 0, 0, 10, 0};
	memset(message->cells, byte, sizeof(message->cells));
	CHECK(store_hold(device, &in, &message->run, use, lacking, &lacking_cells, &hold, &error) ==
			  DEVICE_OK,
		  "%s", error.text);
	CHECK((hold == NULL) == (lacking_cells == 1) && (hold || !sent), "cells are lacking: %d",
		  (int) lacking_cells);
	free(message);
	return hold;
}

/*
 * Returns the first byte of stored cells; -1: they are lacking, or not stored. sent: as for
 * hold_cells
 */
static int
stored_cells(int device, uint64_t number, uint32_t n, bool sent, uint8_t byte)
{
	StoreHold *hold = hold_cells(device, number, n, sent, byte, store_use());
	const uint8_t *cells = hold ? store_held_cells(hold, 0) : NULL;
	int first = cells ? cells[0] : -1;

	if (hold)
		store_release(hold);
	return first;
}

/* Cells are kept by name, and only cells of their layout are found. */
static void
test_cells(void)
{
	CHECK(stored_cells(0, 1, 99, false, 0) == -1, "cells are there that nobody has sent");
	CHECK(stored_cells(0, 1, 99, true, 7) == 7, "cells were not kept");
	CHECK(stored_cells(0, 1, 99, false, 0) == 7, "kept cells are not found");
	CHECK(stored_cells(1, 1, 99, false, 0) == -1, "cells are on another device");
	CHECK(stored_cells(0, 2, 99, false, 0) == -1, "cells of another name are found");
	CHECK(stored_cells(0, 1, 100, false, 0) == -1, "cells of another layout are found");
	/* a client that lies about a name uses its own cells, and changes nothing */
	CHECK(stored_cells(0, 1, 100, true, 8) == -1, "cells of another layout were kept");
	CHECK(stored_cells(0, 1, 99, true, 8) == 7, "cells have changed");
	check_empty();
	CHECK(stored_cells(0, 1, 99, false, 0) == -1, "forgotten cells are found");
}

/* Cells that a query holds stay, and others go when there are too many, the oldest first. */
static void
test_many_cells(void)
{
	StoreHold *hold = hold_cells(0, 1000, 10, true, 3, store_use());

	for (uint64_t i = 1; i <= 2 * STORE_MAX_CELLS; i++)
	{
		CHECK(stored_cells(0, i, 10, true, (uint8_t) i) == (uint8_t) i, "cells were not kept");
		CHECK(stored_cells(0, 1, 10, false, 0) == 1, "cells that are used often are not found");
	}
	CHECK(store_of(0)->ncells == STORE_MAX_CELLS, "%d cells", store_of(0)->ncells);
	CHECK(stored_cells(0, 2, 10, false, 0) == -1, "the oldest cells are there");
	CHECK(*(const uint8_t *) store_held_cells(hold, 0) == 3, "held cells have changed");
	store_release(hold);
	check_empty();
}

/* Cells and columns share the memory: what was used less recently goes. */
static void
test_cells_and_columns(void)
{
	const uint32_t n = (1 << 20) - 64;
	WireRowRange run = {1, 0, 0, 10, 0};
	StoreHold *hold;

	store_set_limit(8 << 20);
	CHECK(store_column(0, 1, 1, false, 0, 1, 10, 0, store_use()), "the column was not kept");
	for (uint64_t i = 1; i <= 20; i++)
	{
		CHECK(stored_cells(0, i, n, true, (uint8_t) i) == (uint8_t) i, "cells were not kept");
		CHECK(is_stored(0, 1, 1, false, &run, 1, store_use()), "the column went after %d cells",
			  (int) i);
		CHECK(store_of(0)->bytes <= 8 << 20, "too much memory");
	}
	CHECK(stored_cells(0, 20, n, false, 0) == 20, "the last cells are not found");
	CHECK(stored_cells(0, 1, n, false, 0) == -1, "the first cells are there");
	/* what one query has held is not replaced by another one */
	hold = hold_cells(0, 20, n, false, 0, store_use());
	for (uint64_t i = 30; i <= 40; i++)
		CHECK(stored_cells(0, i, n, true, 1) == 1, "cells were not kept");
	CHECK(*(const uint8_t *) store_held_cells(hold, 0) == 20, "held cells have changed");
	store_set_limit(0);
	store_trim();
	CHECK(store_of(0)->ncells == 1, "%d cells with a limit of 0", store_of(0)->ncells);
	CHECK(stored_cells(0, 50, n, true, 1) == -1, "cells were kept with a limit of 0");
	store_release(hold);
	store_trim();
	CHECK(store_of(0)->ncells == 0, "%d cells after the hold", store_of(0)->ncells);
	store_set_limit(UINT64_MAX);
	largest = 1000;
	CHECK(stored_cells(0, 60, n, true, 1) == -1, "cells were kept without memory");
	CHECK(budget_device(0)->used == store_of(0)->bytes, "memory is not accounted for");
	largest = SIZE_MAX;
	check_empty();
}

/*
 * Dictionaries stay within the limit of host memory: those whose last use is oldest go. A column is
 * not refused any more when there is room.
 */
static void
test_host_memory(void)
{
	WireRowRange run = {1, 0, 0, TEXTS, 0};
	uint64_t one;

	CHECK(store_column(0, 1, 1, true, 0, 1, TEXTS, 0, store_use()), "the column was not kept");
	one = dictionary_bytes_of_all();
	CHECK(store_host_bytes(0) > one && store_host_bytes(1) == 0,
		  "the device has %d bytes of host memory", (int) store_host_bytes(0));
	store_set_host_limit(3 * one);
	for (uint64_t t = 2; t < 10; t++)
		for (int twice = 0; twice < 2; twice++)
		{
			store_column(0, t, 1, true, 0, 1, TEXTS, 0, store_use());
			CHECK(dictionary_bytes_of_all() <= 3 * one,
				  "dictionaries have %d bytes, the limit is %d", (int) dictionary_bytes_of_all(),
				  (int) (3 * one));
		}
	CHECK(is_stored(0, 9, 1, true, &run, 1, store_use()) &&
			  !is_stored(0, 1, 1, true, &run, 1, store_use()),
		  "the stored columns are not the latest");
	store_set_host_limit(one / 2);
	CHECK(!store_column(0, 20, 1, true, 0, 1, TEXTS, 0, store_use()) && is_refused(0, 20, 1, true),
		  "a column beyond the limit was kept, or is not refused");
	store_set_host_limit(0);
	CHECK(!is_refused(0, 20, 1, true) && store_column(0, 20, 1, true, 0, 1, TEXTS, 0, store_use()),
		  "a column is refused though there is room");
	check_empty();
}

/* Dictionaries that are evicted while queries read them have a limit, too. */
static void
test_read_dictionaries(void)
{
	enum
	{
		READ = 20
	};
	Dictionary *read[READ];
	WireColumnKey key = column_key(1, true);
	uint64_t one, sum;

	CHECK(store_column(0, 1, 1, true, 0, 1, TEXTS, 0, store_use()), "the column was not kept");
	one = dictionary_bytes_of_all();
	store_set_host_limit(2 * one);
	for (int i = 0; i < READ; i++)
	{
		store_column(0, 1, 1, true, 0, ++stamps, TEXTS, 0, store_use());
		read[i] = dictionary_take((WireTableKey){1}, &key, false);
		if (read[i])
			dictionary_retire(read[i]);
		store_forget(0);
	}
	sum = dictionary_bytes_of_all() + dictionary_retired_bytes();
	CHECK(sum > 2 * one && sum <= 5 * one, "dictionaries have %d bytes, one has %d", (int) sum,
		  (int) one);
	store_column(0, 1, 1, true, 0, ++stamps, TEXTS, 0, store_use());
	CHECK(is_refused(0, 1, 1, true), "the column is not refused");
	for (int i = 0; i < READ; i++)
		dictionary_give(read[i]);
	CHECK(dictionary_retired_bytes() == 0, "retired dictionaries were not freed");
	CHECK(!is_refused(0, 1, 1, true), "the column is refused though there is room");
	store_set_host_limit(0);
	check_empty();
}

/* Nothing is evicted for memory that could not be freed anyway. */
static void
test_impossible_memory(void)
{
	WireRowRange run = {1, 0, 0, 10, 0};
	uint64_t stored;

	for (uint64_t t = 1; t <= 10; t++)
		for (int twice = 0; twice < 2; twice++)
			store_column(0, t, 1, false, 0, 1, 10, 0, store_use());
	stored = budget_device(0)->stored;
	CHECK(stored > 0, "nothing is stored");
	CHECK(!store_yield(0, 2 * DEVICE_BYTES) && budget_device(0)->stored == stored,
		  "columns are evicted in vain");
	/* memory other than stored columns takes nearly all of the limit */
	CHECK(budget_take(0, budget_room(0)), "there is no room");
	CHECK(!store_yield(0, stored + 1) && budget_device(0)->stored == stored,
		  "columns are evicted in vain where other memory takes the rest");
	CHECK(store_yield(0, stored / 2) && budget_device(0)->stored <= stored - stored / 2,
		  "columns that can be evicted are not");
	budget_give(0, budget_device(0)->used - budget_device(0)->stored);
	/* the device's memory is fragmented: no more is evicted than was needed */
	stored = budget_device(0)->stored;
	largest = 1;
	for (int twice = 0; twice < 3; twice++)
		CHECK(!store_column(0, 50, 1, false, 0, 1, 10, 0, store_use()),
			  "a column was kept without memory");
	largest = SIZE_MAX;
	CHECK(budget_device(0)->stored >= stored / 2, "only %d of %d bytes are left",
		  (int) budget_device(0)->stored, (int) stored);
	for (uint64_t t = 1; t <= 10; t++)
		is_stored(0, t, 1, false, &run, 1, store_use());
	check_empty();
}

int
main(void)
{
	WireStatus status = {.ndevices = DEVICES};

	for (int d = 0; d < DEVICES; d++)
		status.devices[d].limit = DEVICE_BYTES;
	budget_start(&status);
	store_start(&operations, DEVICES);
	RUN("the table whose last use is oldest gives way", test_many_tables);
	RUN("the column whose last use is oldest gives way", test_many_columns);
	RUN("columns of one query do not replace each other", test_columns_of_a_query);
	RUN("a text column that changes often stays stored", test_changing_texts);
	RUN("a column with too many texts is refused until it changes", test_too_many_texts);
	RUN("entries that come in parts", test_parts);
	RUN("a query keeps the dictionary that it reads", test_held_column);
	RUN("cells are kept by name", test_cells);
	RUN("the cells whose last use is oldest give way", test_many_cells);
	RUN("cells and columns share the memory", test_cells_and_columns);
	RUN("dictionaries stay within the limit of host memory", test_host_memory);
	RUN("dictionaries that queries read have a limit", test_read_dictionaries);
	RUN("nothing is evicted for memory that cannot be freed", test_impossible_memory);
	return unit_done();
}
