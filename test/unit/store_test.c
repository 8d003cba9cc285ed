/*
 * store_test.c
 *	  The bookkeeping of stored columns: what is replaced when lists are full, dictionaries that
 * fill, and memory that cannot be had.  Devices are in host memory, in operations of the test's
 * own.
 */
#include <string.h>

#include "server/device_store_internal.h"
#include "server/server.h"
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

static const StoreOps operations = {
	.buffer = test_buffer,
	.allocate = test_allocate,
	.release = test_release,
	.enlarge = test_enlarge,
	.put = test_put,
};

static WireColumnKey
column_key(int attno, bool coded)
{
	return (WireColumnKey){
		.typid = 25, .attno = attno, .scale = -1, .type = WIRE_I32, .coded = coded};
}

/*
 * Stores `nrows` rows of a range; of a coded column each has a text of its own, counted from
 * `first`.
 */
static bool
store(int device, uint64_t table, int attno, bool coded, uint32_t range, uint64_t stamp,
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
	CHECK(store_put(device, NULL, &in, use, &kept, &error) == DEVICE_OK, "%s", error.text);
	return kept;
}

/* Are all rows of the ranges there, for a query that knows the dictionary? */
static bool
is_there(int device, uint64_t table, int attno, bool coded, const WireRowRange *runs,
		 uint32_t nruns, uint64_t use)
{
	static WireResident in;
	uint64_t lacking[64];
	StoreHold *hold = NULL;
	DeviceError error;
	WireColumnKey key = column_key(attno, coded);
	Dictionary *dict = coded ? dictionary_take((WireTableKey){table}, &key, false) : NULL;

	in = (WireResident){.table = {table}, .nrow_ranges = nruns, .nstored = 1};
	in.stored[0] = key;
	if (dict)
		in.known[0] = (WireKnown){dictionary_id(dict), dictionary_entries(dict)};
	dictionary_give(dict);
	CHECK(store_hold(device, &in, runs, use, lacking, &hold, &error) == DEVICE_OK, "%s",
		  error.text);
	if (hold)
		store_release(hold);
	return hold != NULL;
}

static bool
is_refused(int device, uint64_t table, int attno, bool coded)
{
	static WireResident in;

	in = (WireResident){.table = {table}, .nstored = 1};
	in.stored[0] = column_key(attno, coded);
	return store_refused(device, &in) != 0;
}

static void
forget_all(void)
{
	for (int d = 0; d < DEVICES; d++)
		store_forget(d);
	for (int d = 0; d < DEVICES; d++)
		CHECK(budget_device(d)->used == 0 && store_host_bytes(d) == 0, "something is left");
	CHECK(dictionary_bytes_of_all() == 0, "a dictionary is left");
}

/*
 * More tables than there are entries: the one that was used the longest ago goes, with its columns.
 */
static void
many_tables(void)
{
	WireRowRange run = {1, 0, 0, 10, 0};

	for (uint64_t t = 1; t <= 3 * STORE_MAX_TABLES; t++)
	{
		CHECK(store(0, t, 1, false, 0, 1, 10, 0, store_use()), "table %d has no place", (int) t);
		CHECK(is_there(0, 1, 1, false, &run, 1, store_use()),
			  "table 1, which all queries use, is gone after table %d", (int) t);
	}
	CHECK(store_of(0)->ntables == STORE_MAX_TABLES, "%d tables", store_of(0)->ntables);
	CHECK(store_find_table(store_of(0), 3 * STORE_MAX_TABLES) &&
			  store_find_table(store_of(0), 2) == NULL,
		  "tables that were not used longest");
	forget_all();
}

/* The same with columns of a table. */
static void
many_columns(void)
{
	WireRowRange run = {1, 0, 0, 10, 0};

	for (int a = 1; a <= 3 * STORE_MAX_COLUMNS; a++)
	{
		CHECK(store(0, 1, a, false, 0, 1, 10, 0, store_use()), "column %d has no place", a);
		CHECK(is_there(0, 1, 1, false, &run, 1, store_use()),
			  "column 1, which all queries use, is gone after column %d", a);
		CHECK(is_there(0, 1, a, false, &run, 1, store_use()), "column %d is not there", a);
	}
	CHECK(!is_there(0, 1, 2, false, &run, 1, store_use()), "a column that was not used for long");
	forget_all();
}

/* Columns of one query do not replace each other. */
static void
columns_of_a_query(void)
{
	uint64_t use = store_use();

	for (int a = 1; a <= STORE_MAX_COLUMNS + 5; a++)
		CHECK(store(0, 1, a, false, 0, 1, 10, 0, use) == (a <= STORE_MAX_COLUMNS),
			  "column %d of a query", a);
	forget_all();
}

#define BLOCKS 32
#define TEXTS (WIRE_MAX_ENTRIES / BLOCKS)

/* A text column whose rows change again and again stays, as values that are gone do not count. */
static void
churn(void)
{
	WireRowRange runs[BLOCKS];

	for (int round = 0; round < 6; round++)
	{
		uint64_t use = store_use();

		for (int device = 0; device < DEVICES; device++)
			for (uint32_t r = 0; r < BLOCKS; r++)
			{
				runs[r] = (WireRowRange){++stamps, r, 0, TEXTS, 0};
				store(device, 1, 1, true, r, stamps, TEXTS, round * WIRE_MAX_ENTRIES + r * TEXTS,
					  use);
			}
		/* what was stored before the dictionary was replaced is sent once more */
		for (uint32_t r = 0; r < BLOCKS; r++)
			store(1, 1, 1, true, r, runs[r].stamp, TEXTS, round * WIRE_MAX_ENTRIES + r * TEXTS,
				  use);
		CHECK(is_there(1, 1, 1, true, runs, BLOCKS, store_use()), "round %d", round);
		CHECK(!is_refused(1, 1, 1, true), "refused in round %d", round);
	}
	forget_all();
}

/* One with too many values is refused until a quarter of its ranges has changed. */
static void
too_many_texts(void)
{
	WireRowRange runs[2 * BLOCKS];
	int kept = 0;

	for (uint32_t r = 0; r < 2 * BLOCKS; r++)
	{
		runs[r] = (WireRowRange){++stamps, r, 0, TEXTS, 0};
		kept += store(0, 1, 1, true, r, stamps, TEXTS, r * TEXTS, store_use());
	}
	CHECK(kept == BLOCKS, "%d ranges kept", kept);
	CHECK(!is_there(0, 1, 1, true, runs, 2 * BLOCKS, store_use()) && is_refused(0, 1, 1, true),
		  "not refused");
	for (int r = 0; r < BLOCKS / 2 - 1; r++)
		runs[r].stamp = ++stamps;
	CHECK(!is_there(0, 1, 1, true, runs, 2 * BLOCKS, store_use()) && is_refused(0, 1, 1, true),
		  "tried again after few changes");
	runs[BLOCKS].stamp = ++stamps;
	CHECK(!is_there(0, 1, 1, true, runs, 2 * BLOCKS, store_use()) && !is_refused(0, 1, 1, true),
		  "not tried again");
	for (uint32_t r = 0; r < 2 * BLOCKS; r++)
		CHECK(store(0, 1, 1, true, r, runs[r].stamp, TEXTS, 7, store_use()),
			  "range %d with the same texts as others", (int) r);
	CHECK(is_there(0, 1, 1, true, runs, 2 * BLOCKS, store_use()), "not there");
	forget_all();
}

/*
 * A query names all ranges, and sends none behind the first that was refused: the next query does
 * not try again.
 */
static void
not_all_sent(void)
{
	WireRowRange runs[2 * BLOCKS];

	for (uint32_t r = 0; r < 2 * BLOCKS; r++)
		runs[r] = (WireRowRange){++stamps, r, 0, TEXTS, 0};
	CHECK(!is_there(0, 1, 1, true, runs, 2 * BLOCKS, store_use()), "there from the start");
	for (uint32_t r = 0; r <= BLOCKS; r++)
		store(0, 1, 1, true, r, runs[r].stamp, TEXTS, r * TEXTS, store_use());
	CHECK(!is_there(0, 1, 1, true, runs, 2 * BLOCKS, store_use()) && is_refused(0, 1, 1, true),
		  "not refused");
	CHECK(is_there(0, 1, 1, true, runs, BLOCKS, store_use()), "what was kept is gone");
	/* what is freed is not refused */
	CHECK(store_yield(0, 1) && !is_refused(0, 1, 1, true), "refused where there is nothing");
	forget_all();
}

/* A dictionary that is full on two devices, and is replaced for one of them. */
static void
full_on_two(void)
{
	WireRowRange runs[2][2 * BLOCKS];

	for (int d = 0; d < DEVICES; d++)
	{
		for (uint32_t r = 0; r < 2 * BLOCKS; r++)
		{
			runs[d][r] = (WireRowRange){++stamps, r, 0, TEXTS, 0};
			store(d, 1, 1, true, r, stamps, TEXTS, r * TEXTS, store_use());
		}
		CHECK(is_refused(d, 1, 1, true), "device %d has room", d);
	}
	for (int r = 0; r < BLOCKS; r++)
		runs[0][r].stamp = ++stamps;
	CHECK(!is_there(0, 1, 1, true, runs[0], 2 * BLOCKS, store_use()) && !is_refused(0, 1, 1, true),
		  "not tried again");
	CHECK(!is_there(1, 1, 1, true, runs[1], 2 * BLOCKS, store_use()) && !is_refused(1, 1, 1, true),
		  "not tried again on the other device");
	forget_all();
}

/* A column that a query holds keeps its dictionary; then it is stored anew. */
static void
held(void)
{
	static WireResident in;
	WireRowRange run = {++stamps, 0, 0, TEXTS, 0};
	uint64_t lacking[1];
	StoreHold *hold = NULL;
	DeviceError error;
	WireColumnKey key = column_key(1, true);
	Dictionary *dict;
	uint64_t bytes;

	CHECK(store(0, 1, 1, true, 0, run.stamp, TEXTS, 0, store_use()), "not kept");
	dict = dictionary_take((WireTableKey){1}, &key, false);
	in = (WireResident){.table = {1}, .nrow_ranges = 1, .nstored = 1};
	in.stored[0] = key;
	in.known[0] = (WireKnown){dictionary_id(dict), dictionary_entries(dict)};
	CHECK(store_hold(0, &in, &run, store_use(), lacking, &hold, &error) == DEVICE_OK && hold,
		  "not held");
	bytes = dictionary_bytes_of_all();
	dictionary_retire(dict);
	CHECK(bytes > 0 && dictionary_bytes_of_all() == 0, "%d bytes of %d",
		  (int) dictionary_bytes_of_all(), (int) bytes);
	CHECK(hold->segments[0].values &&
			  ((const uint32_t *) hold->segments[0].values)[TEXTS - 1] == TEXTS - 1,
		  "what is held has changed");
	CHECK(!store(0, 1, 1, true, 1, ++stamps, TEXTS, 0, store_use()),
		  "a held column has two dictionaries");
	CHECK(dictionary_take((WireTableKey){1}, &key, false) == NULL, "a retired dictionary is given");
	store_release(hold);
	dictionary_give(dict);
	CHECK(!is_there(0, 1, 1, true, &run, 1, store_use()),
		  "codes of a retired dictionary are there");
	CHECK(store(0, 1, 1, true, 0, run.stamp, TEXTS, 50, store_use()) &&
			  is_there(0, 1, 1, true, &run, 1, store_use()),
		  "not kept anew");
	forget_all();
}

/*
 * Dictionaries stay within the limit of host memory: those used longest ago go; a refusal ends when
 * there is room.
 */
static void
host_memory(void)
{
	WireRowRange run = {1, 0, 0, TEXTS, 0};
	uint64_t one;

	CHECK(store(0, 1, 1, true, 0, 1, TEXTS, 0, store_use()), "not kept");
	one = dictionary_bytes_of_all();
	CHECK(store_host_bytes(0) > one && store_host_bytes(1) == 0, "%d bytes",
		  (int) store_host_bytes(0));
	store_set_host_limit(3 * one);
	for (uint64_t t = 2; t < 10; t++)
		for (int twice = 0; twice < 2; twice++)
		{
			store(0, t, 1, true, 0, 1, TEXTS, 0, store_use());
			CHECK(dictionary_bytes_of_all() <= 3 * one, "%d bytes of %d",
				  (int) dictionary_bytes_of_all(), (int) (3 * one));
		}
	CHECK(is_there(0, 9, 1, true, &run, 1, store_use()) &&
			  !is_there(0, 1, 1, true, &run, 1, store_use()),
		  "others than the latest are there");
	store_set_host_limit(one / 2);
	CHECK(!store(0, 20, 1, true, 0, 1, TEXTS, 0, store_use()) && is_refused(0, 20, 1, true),
		  "beyond the limit");
	store_set_host_limit(0);
	CHECK(!is_refused(0, 20, 1, true) && store(0, 20, 1, true, 0, 1, TEXTS, 0, store_use()),
		  "refused though there is room");
	forget_all();
}

/* What cannot be had frees nothing. */
static void
impossible(void)
{
	WireRowRange run = {1, 0, 0, 10, 0};
	uint64_t stored;

	for (uint64_t t = 1; t <= 10; t++)
		for (int twice = 0; twice < 2; twice++)
			store(0, t, 1, false, 0, 1, 10, 0, store_use());
	stored = budget_device(0)->stored;
	CHECK(stored > 0, "nothing is stored");
	CHECK(!store_yield(0, 2 * DEVICE_BYTES) && budget_device(0)->stored == stored,
		  "columns are freed in vain");
	/* others have nearly all of the limit */
	CHECK(budget_take(0, budget_room(0)), "no room");
	CHECK(!store_yield(0, stored + 1) && budget_device(0)->stored == stored,
		  "columns are freed in vain where others have the rest");
	CHECK(store_yield(0, stored / 2) && budget_device(0)->stored <= stored - stored / 2,
		  "what can be freed is not");
	budget_give(0, budget_device(0)->used - budget_device(0)->stored);
	/* the device has no memory in one piece: no more is freed than was wanted */
	stored = budget_device(0)->stored;
	largest = 1;
	for (int twice = 0; twice < 3; twice++)
		CHECK(!store(0, 50, 1, false, 0, 1, 10, 0, store_use()), "kept without memory");
	largest = SIZE_MAX;
	CHECK(budget_device(0)->stored >= stored / 2, "%d of %d bytes are left",
		  (int) budget_device(0)->stored, (int) stored);
	for (uint64_t t = 1; t <= 10; t++)
		is_there(0, t, 1, false, &run, 1, store_use());
	forget_all();
}

int
main(void)
{
	WireStatus status = {.ndevices = DEVICES};

	for (int d = 0; d < DEVICES; d++)
		status.devices[d].limit = DEVICE_BYTES;
	budget_start(&status);
	store_start(&operations, DEVICES);
	RUN("more tables than entries", many_tables);
	RUN("more columns than entries", many_columns);
	RUN("more columns of one query than entries", columns_of_a_query);
	RUN("texts that change", churn);
	RUN("more texts than a dictionary holds", too_many_texts);
	RUN("ranges that are not sent to a full dictionary", not_all_sent);
	RUN("a dictionary that is full on two devices", full_on_two);
	RUN("a dictionary that is replaced while a query reads", held);
	RUN("host memory of dictionaries", host_memory);
	RUN("memory that cannot be had", impossible);
	return unit_done();
}
