/*
 * resident_test.c
 *	  Columns cached on the device, and queries over them, through sessions of the server.
 *
 * The device layer runs over the stub of the CUDA run time, or over a GPU (make gpu-tests).
 *
 * A model has the contents of each range by its stamp. Columns are stored, replaced and evicted;
 * queries ask for random rows of random ranges, and must get the model's groups. Each allocation,
 * copy and launch fails in turn: then the answer is right or there is none, and nothing is left.
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

/* TEST_ROUNDS, or the number that is the first argument. */
static int rounds = TEST_ROUNDS;

static int taken_at_once, taken_later, not_taken, failed;

/*
 * How many more groups the query might have on a device, which has a bin for each state of a group:
 * sketches of a hundred thousand groups and more are too many.
 */
static int64_t
spare_groups(const Question *t, int n)
{
	return states_max_groups(&t->q) - n;
}

/*
 * Asks, stores what is lacking, asks again; then the rows are taken, unless there is no room or a
 * call fails.  Beyond a device's bins they are not; or the query fails, where rows before them
 * were, or were taken by other devices.
 */
static void
run_question(Peer *peer, Model *m, Kind kind, bool must, const char *where)
{
	Question t;
	bool taken = false, any = false, all_kept = true;
	uint64_t undetermined = 0;
	int n;
	int64_t spare;
	Group *right;
	char what[128];

	snprintf(what, sizeof(what), "%s, kind %d", where, kind);
	question_make(&t, m, kind);
	question_draw_runs(&t, m);
	right = groups_expect(&t, m, &n, &undetermined);
	n = groups_combine(right, n, kind == DISTINCT_VALUES);
	spare = spare_groups(&t, n);
	/*
	 * rows that are undetermined may be in groups of their own; a table that is full may be moved
	 * only to one with more room
	 */
	must = must && spare > (int64_t) undetermined;
	if (!client_open(peer, &t) || !client_ask(peer, &t, &taken))
		failed++;
	else if (!taken &&
			 (!client_store_lacking(peer, &t, m, &any, &all_kept) || !client_ask(peer, &t, &taken)))
		failed++;
	else
	{
		CHECK(taken || !must, "%s: the rows of %d groups were not taken", what, n);
		CHECK(!taken || spare >= 0 || store_devices() > 1, "%s: the rows of %d groups were taken",
			  what, n);
		taken_at_once += taken && !any;
		taken_later += taken && any;
		not_taken += !taken;
		if (!taken)
			n = 0, undetermined = 0;
		/* the same rows once more, behind the groups that there are */
		else if (random_below(4) == 0)
		{
			bool again = false;

			if (!client_ask(peer, &t, &again))
				failed++;
			for (int g = 0; g < n && again; g++)
			{
				right[g].count *= 2;
				right[g].payloads *= 2;
				right[g].sum *= kind == DISTINCT_VALUES ? 1 : 2;
			}
			undetermined *= again ? 2 : 1;
		}
		if (!client_check_answer(peer, &t, m, right, n, undetermined, what))
			failed++;
	}
	CHECK(!must || peer->failed.text[0] == '\0', "%s: %s", what, peer->failed.text);
	if (spare < 0 && strstr(peer->failed.text, "too many bins"))
	{
		peer_close(peer);
		CHECK(peer_open(peer), "another greeting");
	}
	free(right);
}

/* ---- tests ---- */

static bool
is_empty(void)
{
	for (int i = 0; i < 5000; i++)
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
all_kinds(void)
{
	Peer peer;
	Model m;

	for (int round = 0; round < rounds; round++)
	{
		model_make(&m);
		CHECK(peer_open(&peer), "a greeting");
		for (int i = 0; i < 3 * KINDS; i++)
		{
			run_question(&peer, &m, i % KINDS, true, "without faults");
			/* some ranges change */
			for (int r = (int) random_below(4); r > 0; r--)
				model_change(&m, (int) random_below(RANGES));
		}
		peer_close(&peer);
	}
	CHECK(is_empty(), "something is left");
	CHECK(client_named_taken > rounds || store_place_ranges % (3 * SPAN_RANGES) != 0,
		  "%d spans taken by their ids", client_named_taken);
	CHECK(taken_at_once > rounds && taken_later > 12 * rounds,
		  "%d questions taken at once, %d later", taken_at_once, taken_later);
#ifdef OVER_STUB
	/* of slices of one call, and of others */
	CHECK(stub_paired_updates > rounds && stub_paired_bins > rounds,
		  "by two keys %d calls without bins, %d times bins", stub_paired_updates,
		  stub_paired_bins);
	printf("# by two keys %d calls without bins, %d times bins\n", stub_paired_updates,
		   stub_paired_bins);
	stub_paired_updates = stub_paired_bins = 0;
#endif
	printf("# %d questions taken at once, %d later\n", taken_at_once, taken_later);
	client_named_taken = taken_at_once = taken_later = 0;
}

/* A question that is not done keeps what it reads: others may replace and evict, and store anew. */
static void
two_queries(void)
{
	Peer peer, other;
	Model m;

	for (int round = 0; round < rounds; round++)
	{
		Question t;
		Group *right;
		int n;
		bool taken = false, any, kept;
		uint64_t undetermined = 0;
		Model before;

		model_make(&m);
		CHECK(peer_open(&peer) && peer_open(&other), "greetings");
		question_make(&t, &m, round % KINDS);
		question_draw_runs(&t, &m);
		right = groups_expect(&t, &m, &n, &undetermined);
		n = groups_combine(right, n, t.kind == DISTINCT_VALUES);
		before = m;
		CHECK(client_open(&peer, &t) && client_ask(&peer, &t, &taken) &&
				  (taken ||
				   (client_store_lacking(&peer, &t, &m, &any, &kept) &&
					client_ask(&peer, &t, &taken))) &&
				  taken,
			  "%s", peer.failed.text);
		for (int r = 0; r < RANGES; r++)
			if (random_below(2))
				model_change(&m, r);
		for (int i = 0; i < 4; i++)
			run_question(&other, &m, (round + i) % KINDS, true, "beside another");
		CHECK(client_check_answer(&peer, &t, &before, right, n, undetermined,
								  "while ranges were replaced"),
			  "%s", peer.failed.text);
		/* the old contents may come back */
		run_question(&peer, &before, FILTERED_KEYS, true, "old stamps");
		free(right);
		peer_close(&peer);
		peer_close(&other);
	}
	CHECK(is_empty(), "something is left");
}

/* With limits of any size answers are right, and the limit holds. */
static void
little_memory(void)
{
	Peer peer;
	Model m[3];
	int before = not_taken;

	for (int round = 0; round < 40; round += (TEST_ROUNDS + rounds - 1) / rounds)
	{
		uint64_t limit = 4000 + 9000 * (uint64_t) round;

		store_set_limit(limit);
		for (int i = 0; i < 3; i++)
			model_make(&m[i]);
		CHECK(peer_open(&peer), "a greeting");
		for (int i = 0; i < 3 * KINDS; i++)
		{
			WireStatus status;

			run_question(&peer, &m[random_below(3)], i % KINDS, false, "little memory");
			CHECK(peer.failed.text[0] == '\0', "little memory: %s", peer.failed.text);
			budget_status(&status);
			for (uint32_t d = 0; d < status.ndevices; d++)
				CHECK(status.devices[d].stored <= limit, "%d bytes, of %d",
					  (int) status.devices[d].stored, (int) limit);
		}
		peer_close(&peer);
	}
	store_set_limit(UINT64_MAX);
	CHECK(is_empty(), "something is left");
	CHECK(not_taken - before > 20, "%d questions not taken", not_taken - before);
	printf("# %d questions not taken\n", not_taken - before);
}

/* One query that reads all of v; what is lacking is stored. */
static void
read_all(Peer *peer, const Model *m, bool taken, bool kept, const char *what)
{
	Question t;
	bool is_taken, any, is_kept = true;

	question_make(&t, m, FILTERED_NO_KEYS);
	for (int r = 0; r < RANGES; r++)
		t.runs[t.nruns++] = (WireRowRange){m->ranges[r].stamp, r * 3, 0, 900, 0};
	CHECK(client_open(peer, &t) && client_ask(peer, &t, &is_taken), "%s: %s", what,
		  peer->failed.text);
	CHECK(is_taken == taken, "%s: taken %d", what, is_taken);
	if (!is_taken)
		CHECK(client_store_lacking(peer, &t, m, &any, &is_kept) && any, "%s: %s", what,
			  peer->failed.text);
	CHECK(is_kept == kept, "%s: kept %d", what, is_kept);
}

/* The column goes whose last but one use is the longest ago. */
static void
eviction(void)
{
	Peer peer;
	Model a, b;
	WireStatus status;
	uint32_t place_ranges = store_place_ranges;

	budget_status(&status);
	/* on one device */
	store_place_ranges = 3 * RANGES;
	model_make(&a);
	model_last_table = a.id + status.ndevices - 1;
	model_make(&b);
	for (int r = 0; r < RANGES; r++)
		a.ranges[r].nrows = b.ranges[r].nrows = 900;
	CHECK(peer_open(&peer), "a greeting");
	/* there is room for one of them */
	store_set_limit(300000);
	read_all(&peer, &a, false, true, "a for the first time");
	read_all(&peer, &a, true, true, "a for the second time");
	read_all(&peer, &b, false, false, "b, which was never used before");
	read_all(&peer, &a, true, true, "a, which is still there");
	read_all(&peer, &b, false, true, "b, whose last but one use is newer than that of a");
	read_all(&peer, &b, true, true, "b, which is there");
	read_all(&peer, &a, false, false, "a, whose last but one use is older than that of b");
	store_set_limit(1000);
	CHECK(client_open(&peer, &(Question){.q = {.nslots = 0}}), "%s", peer.failed.text);
	store_trim();
	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
		CHECK(status.devices[d].stored <= 1000, "%d bytes beyond a lower limit",
			  (int) status.devices[d].stored);

	/* the device's limit is one of copies as well, whatever their own */
	store_set_limit(300000);
	read_all(&peer, &a, false, true, "a once more");
	CHECK(client_open(&peer, &(Question){.q = {.nslots = 0}}), "%s", peer.failed.text);
	for (uint32_t d = 0; d < status.ndevices; d++)
		budget_set_available(d, 1000);
	store_trim();
	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
	{
		CHECK(status.devices[d].stored <= 800, "%d bytes beyond the device's limit",
			  (int) status.devices[d].stored);
		budget_set_available(d, status.devices[d].memory);
	}
	store_set_limit(UINT64_MAX);
	store_place_ranges = place_ranges;
	peer_close(&peer);
	CHECK(is_empty(), "something is left");
}

/* Ranges with one stamp and other rows are not kept. */
static void
refusals(void)
{
	Peer peer;
	Model m;
	Question t;
	bool kept = true;

	model_make(&m);
	question_make(&t, &m, PLAIN_NO_KEYS);
	CHECK(peer_open(&peer) && client_open(&peer, &t), "%s", peer.failed.text);
	CHECK(client_store(&peer, &m, 3, COL_X, &kept) && kept, "a column was not kept");
	CHECK(client_store(&peer, &m, 3, COL_X, &kept) && kept, "a column was not kept twice");
	m.ranges[3].nrows++;
	CHECK(client_store(&peer, &m, 3, COL_K, &kept) && !kept, "other rows under one stamp");
	peer_close(&peer);
	CHECK(is_empty(), "something is left");
}

/*
 * A query that is opened late takes memory only of the device that has its rows, or that its first
 * message names.
 */
static void
late_opening(void)
{
	Peer peer, late;
	Model m;
	Question t;
	WireStatus before, after;
	bool kept, taken = false;

	model_make(&m);
	for (int span = 0; span < SPANS; span++)
	{
		int range = span * SPAN_RANGES;
		int place = store_place((WireTableKey){m.id}, range * 3);

		CHECK(peer_open(&peer) && peer_open(&late), "a greeting");
		question_make(&t, &m, PLAIN_NO_KEYS);
		CHECK(client_open(&peer, &t) && client_store(&peer, &m, range, COL_S, &kept) && kept, "%s",
			  peer.failed.text);
		t.runs[t.nruns++] =
			(WireRowRange){m.ranges[range].stamp, range * 3, 0, m.ranges[range].nrows, 0};
		memset(t.whole, 0, sizeof(t.whole));
		t.q.flags |= WIRE_LATE;
		budget_status(&before);
		CHECK(request(&late, MESSAGE_OPEN, &t.q, sizeof(t.q), MESSAGE_OPENED, &t.q, 0), "%s",
			  late.failed.text);
		budget_status(&after);
		for (uint32_t d = 0; d < after.ndevices; d++)
			CHECK(after.devices[d].used <= before.devices[d].used,
				  "device %d before there is a message", (int) d);
		CHECK(client_ask(&late, &t, &taken) && taken, "%s", late.failed.text);
		budget_status(&after);
		for (int d = 0; d < (int) after.ndevices; d++)
			CHECK((after.devices[d].used > before.devices[d].used) == (d == place),
				  "device %d, where the rows are on device %d", d, place);
		CHECK(request(&late, MESSAGE_FINISH, NULL, 0, MESSAGE_FINISHED, &(WireFinished){0},
					  sizeof(WireFinished)),
			  "%s", late.failed.text);
		peer_close(&late);
		peer_close(&peer);
		CHECK(is_empty(), "something is left");
	}
}

/*
 * All rows are on one device, which may be another one than the query's: that takes many groups of
 * it, a piece at a time, and its table grows.
 */
static void
rows_elsewhere(void)
{
	Peer peer;
	Model m;
	uint32_t place_ranges = store_place_ranges;

	store_place_ranges = 3 * RANGES;
	CHECK(peer_open(&peer), "a greeting");
	for (int i = 0; i < 24; i++)
	{
		/* on each device in turn */
		model_make(&m);
		m.ordered = m.scattered = true;
		for (int r = 0; r < RANGES; r++)
		{
			m.ranges[r].ordered = r + 1;
			m.ranges[r].nrows = TEST_ROWS;
		}
		run_question(&peer, &m, PAIRS, true, "rows on one of several devices");
	}
	peer_close(&peer);
	store_place_ranges = place_ranges;
	CHECK(is_empty(), "something is left");
}

#ifdef OVER_STUB
/* The device has bins for about as many groups as there are. */
static void
few_bins(void)
{
	int64_t most = cuda_max_bins;
	int before = not_taken + failed, n = 40 * KINDS;
	Peer peer;
	Model m;

	CHECK(peer_open(&peer), "a greeting");
	for (int i = 0; i < n; i++)
	{
		Question t;

		model_make(&m);
		question_make(&t, &m, i % KINDS);
		cuda_max_bins = most / states_max_groups(&t.q) * (1 + random_below(m.ordered ? 3000 : 60));
		run_question(&peer, &m, i % KINDS, true, "few bins");
		cuda_max_bins = most;
	}
	peer_close(&peer);
	CHECK(is_empty(), "something is left");
	CHECK(not_taken + failed - before > n / 20 && not_taken + failed - before < n / 2,
		  "%d of %d not taken", not_taken + failed - before, n);
}

/*
 * Opens a question for rows of a table in the order of its keys, which become runs, and stores all
 * columns.
 */
static void
open_runs(Peer *peer, Model *m, Question *t, Kind kind)
{
	bool taken, any, kept;

	model_make(m);
	m->ordered = true;
	for (int r = 0; r < RANGES; r++)
		m->ranges[r].ordered = r + 1;
	question_make(t, m, kind);
	t->q.forced = STRATEGY_SEGMENTED;
	/* all but some in the middle of each range */
	for (int r = 0; r < RANGES; r++)
	{
		const Range *range = &m->ranges[r];
		uint32_t part = range->nrows / 3 + 1;

		t->runs[t->nruns++] = (WireRowRange){range->stamp, r * 3, 0, part, 0};
		if (range->nrows > 2 * part)
			t->runs[t->nruns++] = (WireRowRange){range->stamp, r * 3, range->nrows - part, part, 0};
	}
	CHECK(peer_open(peer) && client_open(peer, t) && client_ask(peer, t, &taken) && !taken &&
			  client_store_lacking(peer, t, m, &any, &kept),
		  "%s", peer->failed.text);
}

/* There is no memory for a batch behind runs: their groups stay. */
static void
batch_behind_runs(void)
{
	int refused = 0;
	WireDone done = {.taken = 0};

	for (int n = 1; !done.taken; n++)
	{
		Peer peer;
		Model m;
		Question t;
		Group *right;
		int groups;
		bool taken;
		uint64_t undetermined = 0;
		WireBatch batch = {.buffer = 1,
						   .nrows = 64,
						   .bytes = 512,
						   .ncols = 2,
						   .key_max = {63},
						   .cols = {{WIRE_I32, 0, WIRE_NO_ARRAY}, {WIRE_I16, 256, WIRE_NO_ARRAY}}};

		open_runs(&peer, &m, &t, PLAIN_KEYS);
		CHECK(client_ask(&peer, &t, &taken) && taken, "%s", peer.failed.text);
		right = groups_expect(&t, &m, &groups, &undetermined);
		groups = groups_combine(right, groups, false);
		memset(peer.arena + ARENA_BUFFER_BYTES, 0, batch.bytes);
		stub_fail(STUB_ALLOC, n, true, cudaErrorMemoryAllocation);
		CHECK(
			request(&peer, MESSAGE_BATCH, &batch, sizeof(batch), MESSAGE_DONE, &done, sizeof(done)),
			"%s", peer.failed.text);
		stub_mend();
		refused += !done.taken;
		client_last_taken = false;
		if (!done.taken)
			CHECK(client_check_answer(&peer, &t, &m, right, groups, undetermined,
									  "a batch that was not taken"),
				  "%s", peer.failed.text);
		free(right);
		peer_close(&peer);
	}
	CHECK(refused > 3, "%d batches not taken", refused);
	CHECK(is_empty(), "something is left");
}

/* There is less memory for the program of runs than there was when they were found. */
static void
program_behind_runs(void)
{
	for (int n = 1; n < 30; n++)
	{
		Peer peer;
		Model m;
		Question t;
		Group *right;
		int groups;
		bool taken;
		uint64_t undetermined = 0;

		open_runs(&peer, &m, &t, FILTERED_KEYS);
		right = groups_expect(&t, &m, &groups, &undetermined);
		groups = groups_combine(right, groups, false);
		stub_fail(STUB_ALLOC, n, false, cudaErrorMemoryAllocation);
		CHECK(client_ask(&peer, &t, &taken), "%s", peer.failed.text);
		stub_mend();
		if (taken)
			CHECK(client_check_answer(&peer, &t, &m, right, groups, undetermined,
									  "runs of a program"),
				  "%s", peer.failed.text);
		free(right);
		peer_close(&peer);
		CHECK(is_empty(), "something is left");
	}
}

static void
every_call_fails(void)
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
		for (int kind = 0; kind < KINDS; kind++)
			for (int n = 1; n < 400; n += 1 + n / 5)
			{
				Peer peer, beside;
				Model m;
				char what[80];

				snprintf(what, sizeof(what), "call %d of kind %d, error %d%s", n, faults[f].call,
						 faults[f].err, faults[f].on ? " and on" : "");
				model_make(&m);
				CHECK(peer_open(&peer) && peer_open(&beside), "greetings");
				run_question(&beside, &m, PLAIN_KEYS, true, "beside it");
				stub_fail(faults[f].call, n, faults[f].on, faults[f].err);
				run_question(&peer, &m, kind, false, what);
				if (peer.failed.text[0] == '\0')
					run_question(&peer, &m, kind, false, what);
				stub_mend();
				run_question(&beside, &m, kind, true, "afterwards");
				peer_close(&peer);
				peer_close(&beside);
				CHECK(is_empty(), "%s: something is left", what);
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
	RUN("questions of all kinds", all_kinds);
	RUN("a query that goes on while ranges are replaced", two_queries);
	if (TEST_ROWS <= 900)
	{
		RUN("little memory for stored columns", little_memory);
		RUN("what goes", eviction);
	}
	RUN("what is not kept", refusals);
#ifdef OVER_STUB
	RUN("few bins", few_bins);
	RUN("a batch without memory behind runs", batch_behind_runs);
	RUN("a program without memory behind runs", program_behind_runs);
	RUN("every call fails", every_call_fails);
#endif
	if (status.ndevices > 1)
	{
		store_place_ranges = 3 * SPAN_RANGES;
		RUN("questions of all kinds, each span on another device", all_kinds);
		RUN("a query on several devices that goes on while ranges are replaced", two_queries);
		RUN("queries that are opened where their rows are", late_opening);
		RUN("queries all of whose rows are on another device", rows_elsewhere);
		store_place_ranges = 7;
		RUN("questions of all kinds, spans on several devices", all_kinds);
		if (TEST_ROWS <= 900)
			RUN("little memory on several devices", little_memory);
#ifdef OVER_STUB
		RUN("every call fails on one of several devices", every_call_fails);
#endif
	}
	return unit_done();
}
