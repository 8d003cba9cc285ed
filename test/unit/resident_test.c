/*
 * resident_test.c
 *	  Tests columns that the device caches, and queries over them (the message RESIDENT), through
 *	  sessions of the server. The device layer runs over the CUDA stub, or on a GPU (make
 *	  gpu-tests).
 *
 * Reference: a model that computes the contents of each range from its stamp. Columns are stored,
 * replaced and evicted. Queries read random rows of random ranges, and must get the model's groups.
 * Then each allocation, copy and launch fails in turn. After it the groups are right or the query
 * fails, and all memory is freed.
 */
#include "abandon.h"
#include "resident_test.h"
#include "device_cuda/device_internal.h"
#ifndef OVER_GPU
#define OVER_STUB 1
#include "cuda/cuda_stub.h"
#endif

bool
device_was_short(void)
{
#ifdef OVER_STUB
	return stub_has_failed();
#else
	return false;
#endif
}

/* After call n, call n + 1 + n / FAULT_STEP is the next one that fails. */
#ifdef __SANITIZE_ADDRESS__
#define FAULT_STEP 1
#else
#define FAULT_STEP 2
#endif

/* After a test of one kind of queries comes that of kind + KIND_STEP. */
#ifdef __SANITIZE_ADDRESS__
#define KIND_STEP 2
#else
#define KIND_STEP 1
#endif

/* The part of random queries that run. With sanitizers a query takes six times as long. */
#ifdef __SANITIZE_ADDRESS__
#define SHARE(n) ((n) / 6)
#else
#define SHARE(n) (n)
#endif

/* In so many rounds, rare cases are met. */
#define MANY_ROUNDS 10

/* TEST_ROUNDS, or the program's first argument */
static int rounds = TEST_ROUNDS;

static int taken_immediately, taken_later, not_taken, failed;

/*
 * Returns how many more groups the query could have on a device, which has a bin for each state of
 * a group. The result is negative if there are too many, as for sketches of more than a hundred
 * thousand groups.
 */
static int64_t
spare_groups(const TestQuery *t, int n)
{
	return states_max_groups(&t->q) - n;
}

/*
 * Opens a query, sends RESIDENT, stores the columns that are lacking, and sends RESIDENT again.
 * Then compares the groups. `must`: there is no fault, so that the rows must be taken.
 *
 * Rows that have more groups than the device has bins are not taken. If earlier rows of the query
 * were taken, or another device took rows, the query fails.
 */
static void
check_test_query(Peer *peer, Model *m, Kind kind, bool must, const char *where)
{
	TestQuery t;
	bool taken = false, any = false, all_kept = true;
	uint64_t undetermined = 0;
	int n;
	int64_t spare;
	Group *expected;
	char what[128];

	snprintf(what, sizeof(what), "%s, kind %d", where, kind);
	test_query_make(&t, m, kind);
	test_query_draw_ranges(&t, m);
	expected = groups_expect(&t, m, &n, &undetermined);
	n = groups_combine(expected, n, kind == DISTINCT_VALUES);
	spare = spare_groups(&t, n);
	/*
	 * Undetermined rows may be in groups of their own. A full table can only be replaced by a
	 * larger one.
	 */
	must = must && spare > (int64_t) undetermined;
	if (!client_open(peer, &t) || !client_send_resident(peer, &t, &taken))
		failed++;
	else if (!taken &&
			 (!client_store_lacking(peer, &t, m, &any, &all_kept) ||
			  !client_send_resident(peer, &t, &taken)))
		failed++;
	else
	{
		CHECK(taken || !must, "%s: the rows of %d groups were not taken", what, n);
		CHECK(!taken || spare >= 0 || store_devices() > 1, "%s: the rows of %d groups were taken",
			  what, n);
		taken_immediately += taken && !any;
		taken_later += taken && any;
		not_taken += !taken;
		if (!taken)
			n = 0, undetermined = 0;
		/* the same rows again, added to the groups */
		else if (random_below(4) == 0)
		{
			bool again = false;

			if (!client_send_resident(peer, &t, &again))
				failed++;
			for (int g = 0; g < n && again; g++)
			{
				expected[g].count *= 2;
				expected[g].payloads *= 2;
				expected[g].sum *= kind == DISTINCT_VALUES ? 1 : 2;
			}
			undetermined *= again ? 2 : 1;
		}
		if (!client_check_answer(peer, &t, m, expected, n, undetermined, what))
			failed++;
	}
	CHECK(!must || peer->failed.text[0] == '\0', "%s: %s", what, peer->failed.text);
	if (spare < 0 && strstr(peer->failed.text, "too many bins"))
	{
		peer_close(peer);
		CHECK(peer_open(peer), "a second connection cannot be opened");
	}
	free(expected);
}

/* ---- tests ---- */

/*
 * Empties the store, and waits for the end of sessions and their memory. Returns false after
 * more than 100 s.
 */
static bool
wait_until_empty(void)
{
	for (int i = 0; i < 100000; i++)
	{
		WireStatus status;

		bool used = false;

		budget_status(&status);
		for (uint32_t d = 0; d < status.ndevices; d++)
			store_forget((int) d);
		budget_status(&status);
		for (uint32_t d = 0; d < status.ndevices; d++)
			used |= status.devices[d].used > 0 || status.devices[d].stored > 0;
		if (status.sessions == 0 && !used)
#ifdef OVER_STUB
			if (stub_live() == 0)
#endif
				return true;
		usleep(1000);
	}
	return false;
}

static void
test_all_kinds(void)
{
	Peer peer;
	Model m;

	for (int round = 0; round < rounds; round++)
	{
		model_make(&m);
		CHECK(peer_open(&peer), "a connection cannot be opened");
		for (int i = 0; i < 3 * KINDS; i++)
		{
			check_test_query(&peer, &m, i % KINDS, true, "without faults");
			/* some ranges change */
			for (int r = (int) random_below(4); r > 0; r--)
				model_change(&m, (int) random_below(RANGES));
		}
		peer_close(&peer);
	}
	CHECK(wait_until_empty(), "memory or a session is left");
	CHECK(client_named_spans_taken > rounds || store_place_ranges % (3 * SPAN_RANGES) != 0,
		  "only %d spans were named by their ids were taken", client_named_spans_taken);
	CHECK(taken_immediately > rounds && taken_later > 12 * rounds,
		  "only %d queries were taken immediately, %d later", taken_immediately, taken_later);
#ifdef OVER_STUB
	/* by the histogram itself for slices in one call, otherwise as an array of bins */
	CHECK(rounds < MANY_ROUNDS || (stub_paired_updates > rounds && stub_paired_bins > rounds),
		  "two keys: %d histogram calls without bins, %d computations of bins", stub_paired_updates,
		  stub_paired_bins);
	printf("# two keys: %d histogram calls without bins, %d computations of bins\n",
		   stub_paired_updates, stub_paired_bins);
	printf("# %d times rows were partitioned by key, %d of them as the first ones\n",
		   stub_partitions, stub_adoptions);
	CHECK(rounds < MANY_ROUNDS || (stub_partitions > rounds && stub_adoptions > rounds),
		  "rows were partitioned by key only %d times, %d of them as the first ones",
		  stub_partitions, stub_adoptions);
	stub_paired_updates = stub_paired_bins = stub_partitions = stub_adoptions = 0;
#endif
	printf("# %d queries taken immediately, %d later\n", taken_immediately, taken_later);
	client_named_spans_taken = taken_immediately = taken_later = 0;
}

/*
 * A query that is not finished keeps the columns that it reads, while others replace, evict and
 * store columns.
 */
static void
test_two_queries(void)
{
	Peer peer, other;
	Model m;

	for (int round = 0; round < rounds; round++)
	{
		TestQuery t;
		Group *expected;
		int n;
		bool taken = false, any, kept;
		uint64_t undetermined = 0;
		Model before;

		model_make(&m);
		CHECK(peer_open(&peer) && peer_open(&other), "connections cannot be opened");
		test_query_make(&t, &m, round % KINDS);
		test_query_draw_ranges(&t, &m);
		expected = groups_expect(&t, &m, &n, &undetermined);
		n = groups_combine(expected, n, t.kind == DISTINCT_VALUES);
		before = m;
		CHECK(client_open(&peer, &t) && client_send_resident(&peer, &t, &taken) &&
				  (taken ||
				   (client_store_lacking(&peer, &t, &m, &any, &kept) &&
					client_send_resident(&peer, &t, &taken))) &&
				  taken,
			  "%s", peer.failed.text);
		for (int r = 0; r < RANGES; r++)
			if (random_below(2))
				model_change(&m, r);
		for (int i = 0; i < 4; i++)
			check_test_query(&other, &m, (round + i) % KINDS, true, "next to another query");
		CHECK(client_check_answer(&peer, &t, &before, expected, n, undetermined,
								  "while ranges were replaced"),
			  "%s", peer.failed.text);
		/* the server may get the old contents again */
		check_test_query(&peer, &before, FILTERED_KEYS, true, "old stamps");
		free(expected);
		peer_close(&peer);
		peer_close(&other);
	}
	CHECK(wait_until_empty(), "memory or a session is left");
}

/* For limits of any size, groups are right and stored columns stay within the limit. */
static void
test_little_memory(void)
{
	Peer peer;
	Model m[3];
	int before = not_taken;
	const int limits = SHARE(40);

	for (int round = 0; round < limits; round += (TEST_ROUNDS + rounds - 1) / rounds)
	{
		uint64_t limit = 4000 + 9000 * (uint64_t) round * 40 / limits;

		store_set_limit(limit);
		for (int i = 0; i < 3; i++)
			model_make(&m[i]);
		CHECK(peer_open(&peer), "a connection cannot be opened");
		for (int i = 0; i < 3 * KINDS; i++)
		{
			WireStatus status;

			check_test_query(&peer, &m[random_below(3)], i % KINDS, false, "little memory");
			CHECK(peer.failed.text[0] == '\0', "little memory: %s", peer.failed.text);
			budget_status(&status);
			for (uint32_t d = 0; d < status.ndevices; d++)
				CHECK(status.devices[d].stored <= limit,
					  "stored columns have %d bytes, the limit is %d",
					  (int) status.devices[d].stored, (int) limit);
		}
		peer_close(&peer);
	}
	store_set_limit(UINT64_MAX);
	CHECK(wait_until_empty(), "memory or a session is left");
	CHECK(not_taken - before > 20, "only %d queries were not taken", not_taken - before);
	printf("# %d queries not taken\n", not_taken - before);
}

/*
 * Runs a query that reads all of v, and stores lacking columns. Checks whether rows were taken, or
 * else whether the columns were kept.
 */
static void
check_read_all(Peer *peer, const Model *m, bool taken, bool kept, const char *what)
{
	TestQuery t;
	bool is_taken, any, is_kept = true;

	test_query_make(&t, m, FILTERED_NO_KEYS);
	for (int r = 0; r < RANGES; r++)
		t.row_ranges[t.nrow_ranges++] = (WireRowRange){m->ranges[r].stamp, r * 3, 0, 900, 0};
	CHECK(client_open(peer, &t) && client_send_resident(peer, &t, &is_taken), "%s: %s", what,
		  peer->failed.text);
	CHECK(is_taken == taken, "%s: taken %d", what, is_taken);
	if (!is_taken)
		CHECK(client_store_lacking(peer, &t, m, &any, &is_kept) && any, "%s: %s", what,
			  peer->failed.text);
	CHECK(is_kept == kept, "%s: kept %d", what, is_kept);
}

/* Checks that the column is evicted whose second-to-last use is oldest (LRU-2). */
static void
test_eviction(void)
{
	Peer peer;
	Model a, b;
	WireStatus status;
	uint32_t place_ranges = store_place_ranges;

	budget_status(&status);
	/* all ranges are on one device */
	store_place_ranges = 3 * RANGES;
	model_make(&a);
	model_last_table = a.id + status.ndevices - 1;
	model_make(&b);
	for (int r = 0; r < RANGES; r++)
		a.ranges[r].nrows = b.ranges[r].nrows = 900;
	CHECK(peer_open(&peer), "a connection cannot be opened");
	/* there is room for one of the two columns */
	store_set_limit(300000);
	check_read_all(&peer, &a, false, true, "a for the first time");
	check_read_all(&peer, &a, true, true, "a for the second time");
	check_read_all(&peer, &b, false, false, "b, which was not used before");
	check_read_all(&peer, &a, true, true, "a, which is still there");
	check_read_all(&peer, &b, false, true, "b, whose second-to-last use is newer than that of a");
	check_read_all(&peer, &b, true, true, "b, which is there");
	check_read_all(&peer, &a, false, false, "a, whose second-to-last use is older than that of b");
	store_set_limit(1000);
	CHECK(client_open(&peer, &(TestQuery){.q = {.nslots = 0}}), "%s", peer.failed.text);
	store_trim();
	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
		CHECK(status.devices[d].stored <= 1000,
			  "stored columns still have %d bytes after the limit was lowered",
			  (int) status.devices[d].stored);

	/* the device's limit also applies to stored columns */
	store_set_limit(300000);
	check_read_all(&peer, &a, false, true, "a again");
	CHECK(client_open(&peer, &(TestQuery){.q = {.nslots = 0}}), "%s", peer.failed.text);
	for (uint32_t d = 0; d < status.ndevices; d++)
		budget_set_available(d, 1000);
	store_trim();
	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
	{
		CHECK(status.devices[d].stored <= 800,
			  "stored columns have %d bytes, beyond the device's limit",
			  (int) status.devices[d].stored);
		budget_set_available(d, status.devices[d].memory);
	}
	store_set_limit(UINT64_MAX);
	store_place_ranges = place_ranges;
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
}

/* A column with another number of rows under a known stamp is not kept. */
static void
test_changed_row_count(void)
{
	Peer peer;
	Model m;
	TestQuery t;
	bool kept = true;

	model_make(&m);
	test_query_make(&t, &m, PLAIN_NO_KEYS);
	CHECK(peer_open(&peer) && client_open(&peer, &t), "%s", peer.failed.text);
	CHECK(client_store(&peer, &m, 3, COL_X, &kept) && kept, "a column was not kept");
	CHECK(client_store(&peer, &m, 3, COL_X, &kept) && kept,
		  "a column was not kept when it was stored again");
	m.ranges[3].nrows++;
	CHECK(client_store(&peer, &m, 3, COL_K, &kept) && !kept,
		  "another number of rows was kept under one stamp");
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
}

/*
 * A query opened with WIRE_LATE takes memory only on the device that has the rows of its first
 * message.
 */
static void
test_late_opening(void)
{
	Peer peer, late;
	Model m;
	TestQuery t;
	WireStatus before, after;
	bool kept, taken = false;

	model_make(&m);
	for (int span = 0; span < SPANS; span++)
	{
		int range = span * SPAN_RANGES;
		int place = store_place((WireTableKey){m.id}, range * 3);

		CHECK(peer_open(&peer) && peer_open(&late), "a connection cannot be opened");
		test_query_make(&t, &m, PLAIN_NO_KEYS);
		CHECK(client_open(&peer, &t) && client_store(&peer, &m, range, COL_S, &kept) && kept, "%s",
			  peer.failed.text);
		t.row_ranges[t.nrow_ranges++] =
			(WireRowRange){m.ranges[range].stamp, range * 3, 0, m.ranges[range].nrows, 0};
		memset(t.whole, 0, sizeof(t.whole));
		t.q.flags |= WIRE_LATE;
		budget_status(&before);
		CHECK(request(&late, MESSAGE_OPEN, &t.q, sizeof(t.q), MESSAGE_OPENED, &t.q, 0), "%s",
			  late.failed.text);
		budget_status(&after);
		for (uint32_t d = 0; d < after.ndevices; d++)
			CHECK(after.devices[d].used <= before.devices[d].used,
				  "device %d: memory is taken before the first message", (int) d);
		CHECK(client_send_resident(&late, &t, &taken) && taken, "%s", late.failed.text);
		budget_status(&after);
		for (int d = 0; d < (int) after.ndevices; d++)
			CHECK((after.devices[d].used > before.devices[d].used) == (d == place),
				  "device %d: wrong memory, as the rows are on device %d", d, place);
		CHECK(request(&late, MESSAGE_FINISH, NULL, 0, MESSAGE_FINISHED, &(WireFinished){0},
					  sizeof(WireFinished)),
			  "%s", late.failed.text);
		peer_close(&late);
		peer_close(&peer);
		CHECK(wait_until_empty(), "memory or a session is left");
	}
}

/*
 * All rows are on one device. If the query is on another one, that device absorbs many groups, in
 * several steps, and its table grows.
 */
static void
test_rows_on_another_device(void)
{
	Peer peer;
	Model m;
	uint32_t place_ranges = store_place_ranges;

	store_place_ranges = 3 * RANGES;
	CHECK(peer_open(&peer), "a connection cannot be opened");
	for (int i = 0; i < 24; i++)
	{
		/* tables are placed on each device in turn */
		model_make(&m);
		m.ordered = m.scattered = true;
		for (int r = 0; r < RANGES; r++)
		{
			m.ranges[r].ordered = r + 1;
			m.ranges[r].nrows = TEST_ROWS;
		}
		check_test_query(&peer, &m, PAIRS, true, "rows on one of several devices");
	}
	peer_close(&peer);
	store_place_ranges = place_ranges;
	CHECK(wait_until_empty(), "memory or a session is left");
}

#ifdef OVER_STUB
/* The device has bins for about as many groups as the query has. */
static void
test_few_bins(void)
{
	int64_t most = cuda_max_bins;
	int before = not_taken + failed, n = SHARE(40) * KINDS;
	Peer peer;
	Model m;

	CHECK(peer_open(&peer), "a connection cannot be opened");
	for (int i = 0; i < n; i++)
	{
		TestQuery t;

		model_make(&m);
		test_query_make(&t, &m, i % KINDS);
		cuda_max_bins = most / states_max_groups(&t.q) * (1 + random_below(m.ordered ? 3000 : 60));
		check_test_query(&peer, &m, i % KINDS, true, "few bins");
		cuda_max_bins = most;
	}
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
	CHECK(not_taken + failed - before > n / 20 && not_taken + failed - before < n / 2,
		  "%d of %d queries were not taken", not_taken + failed - before, n);
}

/*
 * Opens a query over rows in the order of their keys, so that equal keys form runs, and stores all
 * columns.
 */
static void
open_runs_query(Peer *peer, Model *m, TestQuery *t, Kind kind)
{
	bool taken, any, kept;

	model_make(m);
	m->ordered = true;
	for (int r = 0; r < RANGES; r++)
		m->ranges[r].ordered = r + 1;
	test_query_make(t, m, kind);
	t->q.forced = STRATEGY_SEGMENTED;
	/* all rows but some in the middle of each range */
	for (int r = 0; r < RANGES; r++)
	{
		const Range *range = &m->ranges[r];
		uint32_t part = range->nrows / 3 + 1;

		t->row_ranges[t->nrow_ranges++] = (WireRowRange){range->stamp, r * 3, 0, part, 0};
		if (range->nrows > 2 * part)
			t->row_ranges[t->nrow_ranges++] =
				(WireRowRange){range->stamp, r * 3, range->nrows - part, part, 0};
	}
	CHECK(peer_open(peer) && client_open(peer, t) && client_send_resident(peer, t, &taken) &&
			  !taken && client_store_lacking(peer, t, m, &any, &kept),
		  "%s", peer->failed.text);
}

/* A batch for which memory is lacking, after rows reduced as runs: their groups stay. */
static void
test_batch_after_runs(void)
{
	int rejected = 0;
	WireDone done = {.taken = 0};

	for (int n = 1; !done.taken; n++)
	{
		Peer peer;
		Model m;
		TestQuery t;
		Group *expected;
		int groups;
		bool taken;
		uint64_t undetermined = 0;
		WireBatch batch = {.buffer = 1,
						   .nrows = 64,
						   .bytes = 512,
						   .ncols = 2,
						   .key_max = {63},
						   .cols = {{WIRE_I32, 0, WIRE_NO_ARRAY}, {WIRE_I16, 256, WIRE_NO_ARRAY}}};

		open_runs_query(&peer, &m, &t, PLAIN_KEYS);
		CHECK(client_send_resident(&peer, &t, &taken) && taken, "%s", peer.failed.text);
		expected = groups_expect(&t, &m, &groups, &undetermined);
		groups = groups_combine(expected, groups, false);
		memset(peer.arena + ARENA_BUFFER_BYTES, 0, batch.bytes);
		stub_fail(STUB_ALLOC, n, true, cudaErrorMemoryAllocation);
		CHECK(
			request(&peer, MESSAGE_BATCH, &batch, sizeof(batch), MESSAGE_DONE, &done, sizeof(done)),
			"%s", peer.failed.text);
		stub_mend();
		rejected += !done.taken;
		client_last_taken = false;
		if (!done.taken)
			CHECK(client_check_answer(&peer, &t, &m, expected, groups, undetermined,
									  "after a rejected batch"),
				  "%s", peer.failed.text);
		free(expected);
		peer_close(&peer);
	}
	CHECK(rejected > 3, "only %d batches were rejected", rejected);
	CHECK(wait_until_empty(), "memory or a session is left");
}

/* An allocation fails after the runs of equal keys were found, and before the program runs. */
static void
test_program_after_runs(void)
{
	for (int n = 1; n < 30; n++)
	{
		Peer peer;
		Model m;
		TestQuery t;
		Group *expected;
		int groups;
		bool taken;
		uint64_t undetermined = 0;

		open_runs_query(&peer, &m, &t, FILTERED_KEYS);
		expected = groups_expect(&t, &m, &groups, &undetermined);
		groups = groups_combine(expected, groups, false);
		stub_fail(STUB_ALLOC, n, false, cudaErrorMemoryAllocation);
		CHECK(client_send_resident(&peer, &t, &taken), "%s", peer.failed.text);
		stub_mend();
		if (taken)
			CHECK(client_check_answer(&peer, &t, &m, expected, groups, undetermined,
									  "runs with a program"),
				  "%s", peer.failed.text);
		free(expected);
		peer_close(&peer);
		CHECK(wait_until_empty(), "memory or a session is left");
	}
}

static void
test_failing_calls(void)
{
	static const struct
	{
		StubCall call;
		bool on;
		cudaError_t err;
	} faults[] = {
		{STUB_ALLOC, false, cudaErrorMemoryAllocation},
		{STUB_ALLOC, true, cudaErrorMemoryAllocation},
		{STUB_COPY, false, cudaErrorInvalidValue},
		{STUB_LAUNCH, false, cudaErrorLaunchOutOfResources},
		{STUB_LAUNCH, false, cudaErrorMemoryAllocation},
	};

	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int kind = (int) f % KIND_STEP; kind < KINDS; kind += KIND_STEP)
			for (int n = 1; n < 400; n += 1 + n / FAULT_STEP)
			{
				Peer peer, other;
				Model m;
				char what[80];

				snprintf(what, sizeof(what), "call %d of kind %d, error %d%s", n, faults[f].call,
						 faults[f].err, faults[f].on ? " and later" : "");
				model_make(&m);
				CHECK(peer_open(&peer) && peer_open(&other), "connections cannot be opened");
				check_test_query(&other, &m, PLAIN_KEYS, true, "the other query");
				stub_fail(faults[f].call, n, faults[f].on, faults[f].err);
				check_test_query(&peer, &m, kind, false, what);
				if (peer.failed.text[0] == '\0')
					check_test_query(&peer, &m, kind, false, what);
				stub_mend();
				check_test_query(&other, &m, kind, true, "after the fault");
				peer_close(&peer);
				peer_close(&other);
				CHECK(wait_until_empty(), "%s: memory or a session is left", what);
			}
	printf("# %d queries failed\n", failed);
}
#endif

int
main(int argc, char **argv)
{
	WireStatus status = {0};
	DeviceError error = {""};

	if (argc > 1)
		rounds = atoi(argv[1]);

#ifdef OVER_STUB
	stub_devices = 3;
#endif
	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	RUN("queries of all kinds have the model's groups", test_all_kinds);
	RUN("a query keeps its columns while ranges are replaced", test_two_queries);
	if (TEST_ROWS <= 900)
	{
		RUN("with little memory, groups are right and the limit holds", test_little_memory);
		RUN("the column whose second-to-last use is oldest is evicted", test_eviction);
	}
	RUN("another number of rows under one stamp is rejected", test_changed_row_count);
#ifdef OVER_STUB
	RUN("with few bins, rows are rejected or groups are right", test_few_bins);
	RUN("after runs, a batch without memory is rejected", test_batch_after_runs);
	RUN("after runs, a program without memory is rejected", test_program_after_runs);
	RUN("after any failing call, groups are right or the query fails", test_failing_calls);
#endif
	if (status.ndevices > 1)
	{
		store_place_ranges = 3 * SPAN_RANGES;
		RUN("a span per device: queries of all kinds have the model's groups", test_all_kinds);
		RUN("a span per device: a query keeps its columns while ranges are replaced",
			test_two_queries);
		RUN("late queries are opened on the device that has their rows", test_late_opening);
		RUN("a query whose rows are all on another device has the model's groups",
			test_rows_on_another_device);
		store_place_ranges = 7;
		RUN("spans on several devices: queries of all kinds have the model's groups",
			test_all_kinds);
		if (TEST_ROWS <= 900)
			RUN("several devices: with little memory, groups are right and the limit holds",
				test_little_memory);
#ifdef OVER_STUB
		RUN("several devices: after any failing call, groups are right or the query fails",
			test_failing_calls);
#endif
	}
	return unit_done();
}
