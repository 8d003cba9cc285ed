/*
 * device_run.c
 *	  Runs a query through the device layer, with checks during and after it; see device_run.h.
 */
#include "device_run.h"

/*
 * Stores status and error in the run. Returns whether the call succeeded. No calls follow one that
 * failed.
 */
static bool
record_status(QueryRun *run, DeviceStatus status, const DeviceError *error)
{
	run->status = status;
	run->error = *error;
	return status == DEVICE_OK;
}

/* Opens the query for each participant, with a lane. Returns false after a failure. */
static bool
open_run(QueryRun *run)
{
	DeviceError error = {""};
	WireQuery wire = run->c->q;

	wire.shared_id = 4711;
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		if (!record_status(
				run, shared_query_enter(&run->query[p], 0, NULL, &wire, run->c->thresholds, &error),
				&error))
			return false;
		if (!record_status(run,
						   device_ops.lane_open(&run->lane[p], 0, run->arena[p], BUFFER_BYTES,
												ARENA_BUFFERS, &error),
						   &error))
			return false;
	}
	return true;
}

/* Checks that every later call of every participant returns the failure of the query. */
static void
check_stays_failed(QueryRun *run, int buffer)
{
	WireBatch batch;
	WireFinished finished;
	WireGroups groups = {0};
	DeviceError error = {""};

	make_batch(run->c, 0, buffer, run->arena[0] + buffer * BUFFER_BYTES, &batch);
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		CHECK(shared_query_reduce(run->query[p], run->lane[p], &batch, &error) == run->status,
			  "a batch after the failure has another status");
		CHECK(strcmp(error.text, run->error.text) == 0, "the failure has another text: %s",
			  error.text);
		CHECK(shared_query_finish(run->query[p], &finished, &error) == run->status,
			  "finish after the failure has another status");
		CHECK(shared_query_fetch(run->query[p], run->lane[p], &groups, &error) == run->status,
			  "fetch after the failure has another status");
	}
}

/* Sends batch b by a participant that depends on b. Returns false after a failure. */
static bool
send_batch(QueryRun *run, int b)
{
	int p = b % PARTICIPANTS;
	int buffer = b / PARTICIPANTS % ARENA_BUFFERS;
	WireBatch batch;
	DeviceError error = {""};
	DeviceStatus status;
	size_t bytes;
	double ms;

	make_batch(run->c, b, buffer, run->arena[p] + buffer * BUFFER_BYTES, &batch);
	status = shared_query_copy(run->query[p], run->lane[p], &batch, &bytes, &error);
	if (status != DEVICE_FULL &&
		(!record_status(run, status, &error) ||
		 !record_status(run, device_ops.copy_wait(run->lane[p], buffer, &ms, &error), &error)))
		return false;
	status = shared_query_reduce(run->query[p], run->lane[p], &batch, &error);
	if (status == DEVICE_FULL)
	{
		CHECK(error.text[0] != '\0' || atomic_load(&run->query[p]->full),
			  "a batch is rejected without a reason");
		return true;
	}
	if (!record_status(run, status, &error))
	{
		check_stays_failed(run, buffer);
		return false;
	}
	run->taken |= 1u << b;
	return true;
}

/* Returns a packed key of at most 8 bytes as a number. */
static uint64_t
read_key(const void *from, size_t key_bytes)
{
	uint64_t key = 0;

	memcpy(&key, from, key_bytes);
	return key;
}

/* For qsort: compares two groups by their packed keys of 4 bytes. */
static int
compare_short_keys(const void *a, const void *b)
{
	uint64_t x = read_key(a, 4);
	uint64_t y = read_key(b, 4);

	return x < y ? -1 : x > y;
}

/* For qsort: compares two groups by their packed keys of 8 bytes. */
static int
compare_long_keys(const void *a, const void *b)
{
	uint64_t x = read_key(a, 8);
	uint64_t y = read_key(b, 8);

	return x < y ? -1 : x > y;
}

/*
 * Fetches the groups again, with counts of ranks in place of registers, if the query has sketches.
 * Compares them with the registers in run->groups. Returns false if a call failed.
 */
static bool
check_ranks(QueryRun *run, WireGroups out)
{
	const WireQuery *q = &run->c->q;
	size_t at = q->key_bytes;
	DeviceError error = {""};

	for (int s = 0; s < q->nslots; at += wire_slot_bytes(&q->slots[s++], 0))
	{
		if (q->slots[s].bin_kind != WIRE_BIN_HLL)
			continue;
		out.ranks = 1;
		if (!record_status(run, shared_query_fetch(run->query[0], run->lane[0], &out, &error),
						   &error))
			return false;
		for (uint32_t g = 0; g < out.n; g++)
		{
			const char *group = run->groups + (out.first + g) * run->group_bytes;
			int32_t *registers = malloc(wire_slot_bytes(&q->slots[s], 0));
			int32_t counts[GPUAGG_HLL_RANKS];

			memcpy(registers, group + at, wire_slot_bytes(&q->slots[s], 0));
			gpuagg_hll_count_ranks(registers, counts);
			CHECK(memcmp(run->arena[0] + out.slots[s] + g * sizeof(counts), counts,
						 sizeof(counts)) == 0 &&
					  memcmp(run->arena[0] + out.keys + g * q->key_bytes, group, q->key_bytes) == 0,
				  "%s: wrong ranks of group %d", run->c->name, (int) (out.first + g));
			free(registers);
		}
	}
	return true;
}

/* Fetches all groups into run->groups, sorted by key. Returns false after a failure. */
static bool
fetch_groups(QueryRun *run)
{
	const WireQuery *q = &run->c->q;
	size_t key_bytes = q->key_bytes;
	uint64_t fits = (BUFFER_BYTES - (q->nslots + 1) * WIRE_ALIGN) / wire_group_bytes(q);
	DeviceError error = {""};

	run->group_bytes = wire_group_bytes(q);
	run->groups = malloc(run->group_bytes * run->finished.ngroups + 1);
	for (uint64_t first = 0; first < run->finished.ngroups;)
	{
		uint64_t left = run->finished.ngroups - first;
		WireGroups out = {.first = first, .n = left < fits ? left : fits};
		size_t at = wire_align(out.n * key_bytes);

		for (int s = 0; s < q->nslots; s++)
		{
			out.slots[s] = at;
			at += wire_align(out.n * wire_slot_bytes(&q->slots[s], 0));
		}
		if (!record_status(run, shared_query_fetch(run->query[0], run->lane[0], &out, &error),
						   &error))
			return false;
		for (uint32_t g = 0; g < out.n; g++)
		{
			char *to = run->groups + (first + g) * run->group_bytes;

			memcpy(to, run->arena[0] + out.keys + g * key_bytes, key_bytes);
			to += key_bytes;
			for (int s = 0; s < q->nslots; s++)
			{
				memcpy(to, run->arena[0] + out.slots[s] + g * wire_slot_bytes(&q->slots[s], 0),
					   wire_slot_bytes(&q->slots[s], 0));
				to += wire_slot_bytes(&q->slots[s], 0);
			}
		}
		if (!check_ranks(run, out))
			return false;
		first += out.n;
	}
	if (key_bytes > 0)
		qsort(run->groups, run->finished.ngroups, run->group_bytes,
			  key_bytes == 4 ? compare_short_keys : compare_long_keys);
	return true;
}

/* For qsort: compares two 64-bit integers. */
static int
compare_integers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *) a;
	int64_t y = *(const int64_t *) b;

	return x < y ? -1 : x > y;
}

/*
 * Returns the sorted values of a group: v without NULLs, or those of COL_ORDER. The caller frees
 * the array.
 */
static int64_t *
sorted_values(const QueryRun *run, uint64_t key, bool v, int *n)
{
	const Case *c = run->c;
	int64_t *values = malloc(sizeof(int64_t) * (c->nbatches * c->nrows + 1));

	*n = 0;
	for (int b = 0; b < c->nbatches; b++)
		for (int r = 0; r < c->nrows && run->taken >> b & 1; r++)
			if (packed_key(c, b, r) == key && (!v || row_has_v(r)))
				values[(*n)++] = v ? row_v(b, r) : (r * 37) % 101;
	qsort(values, *n, sizeof(*values), compare_integers);
	return values;
}

/* A value of COL_ORDER, and codes of the v beside it. */
typedef struct BesideValue
{
	int64_t value;
	int32_t order;
	int64_t code;
} BesideValue;

/* For qsort: compares by value, then order, then code. */
static int
compare_beside(const void *a, const void *b)
{
	const BesideValue *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->order != y->order)
		return x->order - y->order;
	return x->code < y->code ? -1 : x->code > y->code;
}

/* Returns the values of COL_ORDER in a group, sorted as in set 1. The caller frees the array. */
static BesideValue *
sorted_beside(const QueryRun *run, uint64_t key, int *n)
{
	const Case *c = run->c;
	int descending = c->q.sets[1].descending;
	BesideValue *values = malloc(sizeof(*values) * (c->nbatches * c->nrows + 1));

	*n = 0;
	for (int b = 0; b < c->nbatches; b++)
		for (int r = 0; r < c->nrows && run->taken >> b & 1; r++)
			if (packed_key(c, b, r) == key)
				values[(*n)++] =
					(BesideValue){(r * 37) % 101, wire_beside_order(!row_has_v(r), descending),
								  wire_beside_code(row_v(b, r), !row_has_v(r), descending)};
	qsort(values, *n, sizeof(*values), compare_beside);
	return values;
}

/*
 * Checks three values of set 1 in a group, the first of which has this position, and those beside
 * them. Returns false if a call failed.
 */
static bool
check_picked(QueryRun *run, uint64_t key, int64_t first)
{
	int n;
	BesideValue *expected = sorted_beside(run, key, &n);
	WirePick pick = {.set = 1, .n = 3};
	int32_t places[3];
	const char *picked = run->arena[0] + wire_picked_at(3);
	DeviceError error = {""};
	bool ok;

	for (int i = 0; i < 3; i++)
		places[i] = (int32_t) (first + (n - 1) / 2 * i);
	ok = record_status(run, shared_query_pick(run->query[0], run->lane[0], &pick, places, &error),
					   &error);
	for (int i = 0; i < 3 && ok; i++)
	{
		const BesideValue *want = &expected[(n - 1) / 2 * i];
		const int64_t *codes = (const int64_t *) picked + 3;

		CHECK(((const int64_t *) picked)[i] == want->value, "%s: value %d of a group", run->c->name,
			  i);
		CHECK(codes[i] == want->code && ((const int32_t *) (codes + 3))[i] == want->order,
			  "%s: the value beside value %d of a group", run->c->name, i);
	}
	free(expected);
	return ok;
}

/* At most so many values of a counted set are picked of a group. */
#define MOST_COUNTED 100

/*
 * Checks the first values of set 2 in a group, and their places. values: those of the
 * group's n rows, sorted; first, distinct: the position of the first one, and how many there are
 */
static bool
check_counted(QueryRun *run, const int64_t *values, int n, int64_t first, int64_t distinct)
{
	int count = distinct < MOST_COUNTED ? (int) distinct : MOST_COUNTED;
	WirePick pick = {.set = 2, .n = (uint32_t) count};
	int32_t places[MOST_COUNTED];
	const int64_t *picked = (const int64_t *) (run->arena[0] + wire_picked_at(count));
	const int32_t *found = (const int32_t *) (picked + count);
	DeviceError error = {""};

	if (count == 0)
		return true;
	for (int i = 0; i < count; i++)
		places[i] = (int32_t) (first + i);
	if (!record_status(run, shared_query_pick(run->query[0], run->lane[0], &pick, places, &error),
					   &error))
		return false;
	for (int i = 0, at = 0; i < count; i++)
	{
		int end = at;

		while (end < n && values[end] == values[at])
			end++;
		CHECK(picked[i] == values[at] && found[i] - found[0] == at,
			  "%s: distinct value %d of a group, or its place", run->c->name, i);
		at = end;
	}
	return true;
}

/*
 * Checks the sets of add_sets: distinct values, mode, picked and counted values. The reference is
 * the sorted values of each group. Returns false if a call failed.
 */
static bool
check_sets(QueryRun *run)
{
	const WireQuery *q = &run->c->q;

	for (uint64_t g = 0; g < run->finished.ngroups; g += 1 + run->finished.ngroups / 16)
	{
		const char *at = run->groups + g * run->group_bytes;
		int64_t states[8];
		int n, distinct = 0, run_length = 0, most = 0;
		int64_t *values = sorted_values(run, read_key(at, q->key_bytes), true, &n);
		int64_t sum = 0, mode = 0;
		DeviceError error = {""};

		memcpy(states, at + q->key_bytes, sizeof(states));
		for (int i = 0; i < n; i++)
		{
			if (i == 0 || values[i] != values[i - 1])
				distinct++, sum += values[i], run_length = 0;
			if (++run_length >= most)
				most = run_length, mode = values[i];
		}
		CHECK(states[2] == distinct && states[3] == sum && states[7] == distinct,
			  "%s: %d distinct values, not %d", run->c->name, (int) states[2], distinct);
		if (!check_counted(run, values, n, states[6], distinct))
		{
			free(values);
			return false;
		}
		free(values);
		if (most > 0)
		{
			WirePick one = {.n = 1};
			int32_t place = (int32_t) wire_mode_place(states[5], 1);

			if (!record_status(run,
							   shared_query_pick(run->query[0], run->lane[0], &one, &place, &error),
							   &error))
				return false;
			CHECK(states[5] >> 31 == most &&
					  *(const int64_t *) (run->arena[0] + wire_picked_at(1)) == mode,
				  "%s: the most frequent value", run->c->name);
		}
		if (!check_picked(run, read_key(at, q->key_bytes), states[4]))
			return false;
	}
	return true;
}

/*
 * Checks the extremes of add_argmax: the greatest v that is not NULL, and the smallest value of
 * COL_ORDER.
 */
static void
check_extremes(const QueryRun *run)
{
	for (uint64_t g = 0; g < run->finished.ngroups; g += 1 + run->finished.ngroups / 16)
	{
		const char *at = run->groups + g * run->group_bytes;
		size_t key_bytes = run->c->q.key_bytes;

		for (int v = 0; v < 2; v++)
		{
			int n;
			int64_t *values = sorted_values(run, read_key(at, key_bytes), v, &n);
			int64_t extreme;

			memcpy(&extreme, at + key_bytes + (v ? 4 : 7) * sizeof(int64_t), sizeof(extreme));
			CHECK(extreme == (v ? n > 0 ? values[n - 1] : INT64_MIN : values[0]),
				  "%s: wrong extreme %d of group %d", run->c->name, v, (int) g);
			free(values);
		}
	}
}

/* Checks that a place beyond the last value is rejected. */
static void
check_pick_beyond_end(QueryRun *run)
{
	WirePick pick = {.set = 1, .n = 2};
	int32_t places[2] = {0, (int32_t) run->query[0]->query->late.sets[1].n};
	DeviceError error = {""};

	CHECK(shared_query_pick(run->query[0], run->lane[0], &pick, places, &error) ==
			  DEVICE_UNSUPPORTED,
		  "a place beyond the last value was accepted");
}

/* Checks that a finished query has no memory except for its groups, thresholds and status. */
static void
check_finished_memory(const DeviceQuery *query)
{
	size_t groups = query->groups.hash.memory.bytes + query->groups.states.row_counts.bytes +
		query->groups.states.list.bytes + query->groups.states.keys.bytes + query->result.top.bytes;

	for (uint32_t s = 0; s < query->q->nsets; s++)
		groups += query->late.sets[s].values.bytes + query->late.sets[s].beside.bytes +
			query->late.sets[s].order.bytes;

	for (int s = 0; s < query->q->nslots; s++)
		groups += query->groups.states.slot[s].bytes;
	CHECK(query->late.ordered == NULL, "the ordered rows were not freed");
	CHECK(query->memory == groups + query->thresholds.bytes + query->status.bytes,
		  "the query has %zu bytes, of which groups take %zu", (size_t) query->memory, groups);
}

/*
 * Checks that packed keys are as short as their NULLs allow, and that rows are counted only once.
 */
static void
check_form(const QueryRun *run)
{
	const DeviceQuery *query = run->query[0]->query;
	const Case *c = run->c;
	bool nulls = c->first_null > 0 && run->taken >> c->first_null != 0;
	bool all = run->taken == (1u << c->nbatches) - 1;

	/* a batch that was rejected may have changed the form */
	if (query->groups.form == FORM_HASH && (all || nulls))
		CHECK(query->groups.hash.table.key_bytes ==
				  (nulls || wire_keeps_rows(&c->q) ? c->q.key_bytes : 4),
			  "%s: keys have %d bytes in the table", c->name, query->groups.hash.table.key_bytes);
	if (query->groups.form == FORM_DIRECT && (all || nulls))
		CHECK(query->groups.ranges.has_null[0] == nulls,
			  "%s: there is a bin for NULLs without NULLs, or none with NULLs", c->name);
	CHECK((query->groups.states.row_counts.at != NULL) ==
			  (query->groups.form == FORM_DIRECT && c->q.slots[0].col[0] >= 0),
		  "%s: rows are counted twice, or not at all", c->name);
}

void
run_query(QueryRun *run, const Case *c, uint32_t wanted)
{
	static char *arenas[PARTICIPANTS];
	static uint64_t last_seed;
	bool ok;
	DeviceError error = {""};

	memset(run, 0, sizeof(*run));
	run->c = c;
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		if (arenas[p] == NULL)
			arenas[p] = malloc(ARENA_BUFFERS * BUFFER_BYTES);
		run->arena[p] = arenas[p];
	}
	ok = run->opened = open_run(run);
	if (ok)
	{
		CHECK(run->query[0]->query->seed != last_seed,
			  "two queries in succession have the same hash seed");
		last_seed = run->query[0]->query->seed;
	}
	for (int b = 0; b < c->nbatches && ok; b++)
		if (wanted >> b & 1)
			ok = send_batch(run, b);
	for (int p = 0; p < PARTICIPANTS && ok; p++)
	{
		double ms;

		ok = record_status(run, device_ops.lane_settle(run->lane[p], &ms, &error), &error);
	}
	if (ok)
		ok = record_status(run, shared_query_finish(run->query[0], &run->finished, &error), &error);
	if (ok)
	{
		check_finished_memory(run->query[0]->query);
		check_form(run);
		ok = fetch_groups(run);
		if (ok && c->q.nsets > 0 && check_sets(run))
			check_pick_beyond_end(run);
		if (ok && c->q.nslots == 6 && c->q.slots[2].monoid == MONOID_ARGMAX)
			check_extremes(run);
	}
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		if (run->query[p])
			shared_query_leave(run->query[p]);
		if (run->lane[p])
			device_ops.lane_close(run->lane[p]);
	}
}

/* ---- checks ---- */

uint64_t
run_used(void)
{
	return budget_device(0)->used;
}

void
run_check_sums(const QueryRun *run, const char *what)
{
	int n;
	Expected *expected = expect(run->c, run->taken, &n);

	CHECK((uint64_t) n == run->finished.ngroups, "%s: expected %d groups, not %d", what, n,
		  (int) run->finished.ngroups);
	CHECK(run->finished.errors == 0, "%s: the query has error bits", what);
	for (int g = 0; g < n && (uint64_t) g < run->finished.ngroups; g++)
	{
		const char *at = run->groups + g * run->group_bytes;
		uint64_t key = read_key(at, run->c->q.key_bytes);
		int64_t state[2];

		memcpy(state, at + run->c->q.key_bytes, sizeof(state));
		CHECK(key == expected[g].key && state[0] == expected[g].count &&
				  state[1] == expected[g].sum,
			  "%s: group %d: key %llx count %d sum %d, expected %llx %d %d", what, g,
			  (unsigned long long) key, (int) state[0], (int) state[1],
			  (unsigned long long) expected[g].key, (int) expected[g].count, (int) expected[g].sum);
	}
	free(expected);
}

void
run_check_groups(const QueryRun *run, const QueryRun *whole, const char *what)
{
	QueryRun again;
	const QueryRun *reference = whole;

	run_check_sums(run, what);
	if (run->taken != whole->taken)
	{
		run_query(&again, run->c, run->taken);
		reference = &again;
	}
	CHECK(reference->status == DEVICE_OK && reference->taken == run->taken,
		  "%s: the run for comparison failed, or reduced other batches", what);
	CHECK(
		run->finished.ngroups == reference->finished.ngroups &&
			(run->finished.ngroups == 0 ||
			 memcmp(run->groups, reference->groups, run->group_bytes * run->finished.ngroups) == 0),
		"%s: groups differ from those without the fault", what);
	if (reference == &again)
		free(again.groups);
}
