/*
 * device_test.c
 *	  The CUDA device layer over a stub of the run time: every call of a set of
 *	  queries fails once, or from some point on.
 *
 * Whatever fails, a query of three participants returns the right groups of the batches
 * that were taken, or every participant gets the same failure; all memory is freed; a
 * query beside it is not affected.  Lack of memory makes no open query fail, unless it
 * keeps rows in order.
 */
#include <pthread.h>

#include "abandon.h"
#include "cuda/cases.h"
#include "cuda/cuda_stub.h"
#include "server/device_cuda.h"

#define PARTICIPANTS 3
#define BUFFER_BYTES (1 << 20)

/* ---- a run of a query ---- */

typedef struct Run
{
	const Case *c;
	OpenQuery  *query[PARTICIPANTS];
	Lane	   *lane[PARTICIPANTS];
	char	   *arena[PARTICIPANTS];
	bool		opened;
	uint32_t	taken;			/* batches, a bit each */
	DeviceStatus status;
	DeviceError error;
	WireFinished finished;
	char	   *groups;			/* key and states of each, by key */
	size_t		group_bytes;
} Run;

/* Fills in status and error; later calls are not made. */
static bool
went_well(Run *run, DeviceStatus status, const DeviceError *error)
{
	run->status = status;
	run->error = *error;
	return status == DEVICE_OK;
}

static bool
open_run(Run *run)
{
	DeviceError error = {""};
	WireQuery	wire = run->c->q;

	wire.share = 4711;
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		if (!went_well(run, query_enter(&run->query[p], 0, NULL, &wire, run->c->thresholds, &error), &error))
			return false;
		if (!went_well(run, device_ops.lane_open(&run->lane[p], 0, run->arena[p], BUFFER_BYTES,
												 ARENA_BUFFERS, &error), &error))
			return false;
	}
	return true;
}

/* After a failure of the query every call of every participant returns it. */
static void
check_stays_failed(Run *run, int buffer)
{
	WireBatch	batch;
	WireFinished finished;
	WireGroups	groups = {0};
	DeviceError error = {""};

	make_batch(run->c, 0, buffer, run->arena[0] + buffer * BUFFER_BYTES, &batch);
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		CHECK(query_reduce(run->query[p], run->lane[p], &batch, &error) == run->status, "a batch after the failure");
		CHECK(strcmp(error.text, run->error.text) == 0, "another text: %s", error.text);
		CHECK(query_finish(run->query[p], &finished, &error) == run->status, "an end after the failure");
		CHECK(query_fetch(run->query[p], run->lane[p], &groups, &error) == run->status, "a fetch after the failure");
	}
}

static bool
give_batch(Run *run, int b)
{
	int			p = b % PARTICIPANTS;
	int			buffer = b / PARTICIPANTS % ARENA_BUFFERS;
	WireBatch	batch;
	DeviceError error = {""};
	DeviceStatus status;
	size_t		bytes;
	double		ms;

	make_batch(run->c, b, buffer, run->arena[p] + buffer * BUFFER_BYTES, &batch);
	status = query_copy(run->query[p], run->lane[p], &batch, &bytes, &error);
	if (status != DEVICE_FULL && (!went_well(run, status, &error) ||
								  !went_well(run, device_ops.copy_wait(run->lane[p], buffer, &ms, &error), &error)))
		return false;
	status = query_reduce(run->query[p], run->lane[p], &batch, &error);
	if (status == DEVICE_FULL)
	{
		CHECK(error.text[0] != '\0' || atomic_load(&run->query[p]->full), "no reason");
		return true;
	}
	if (!went_well(run, status, &error))
	{
		check_stays_failed(run, buffer);
		return false;
	}
	run->taken |= 1u << b;
	return true;
}

/* A packed key of at most 8 bytes, as a number. */
static uint64_t
read_key(const void *from, size_t key_bytes)
{
	uint64_t	key = 0;

	memcpy(&key, from, key_bytes);
	return key;
}

static int
compare_short_keys(const void *a, const void *b)
{
	uint64_t	x = read_key(a, 4);
	uint64_t	y = read_key(b, 4);

	return x < y ? -1 : x > y;
}

static int
compare_long_keys(const void *a, const void *b)
{
	uint64_t	x = read_key(a, 8);
	uint64_t	y = read_key(b, 8);

	return x < y ? -1 : x > y;
}

/* The same groups with counts of ranks, if the query has sketches; run->groups has their registers. */
static bool
check_ranks(Run *run, WireGroups out)
{
	const WireQuery *q = &run->c->q;
	size_t		at = q->key_bytes;
	DeviceError error = {""};

	for (int s = 0; s < q->nslots; at += wire_slot_bytes(&q->slots[s++], 0))
	{
		if (q->slots[s].bin_kind != WIRE_BIN_HLL)
			continue;
		out.ranks = 1;
		if (!went_well(run, query_fetch(run->query[0], run->lane[0], &out, &error), &error))
			return false;
		for (uint32_t g = 0; g < out.n; g++)
		{
			const char *group = run->groups + (out.first + g) * run->group_bytes;
			int32_t    *registers = malloc(wire_slot_bytes(&q->slots[s], 0));
			int32_t		counts[GPUAGG_HLL_RANKS];

			memcpy(registers, group + at, wire_slot_bytes(&q->slots[s], 0));
			gpuagg_hll_count_ranks(registers, counts);
			CHECK(memcmp(run->arena[0] + out.slots[s] + g * sizeof(counts), counts, sizeof(counts)) == 0 &&
				  memcmp(run->arena[0] + out.keys + g * q->key_bytes, group, q->key_bytes) == 0,
				  "%s: ranks of group %d", run->c->name, (int) (out.first + g));
			free(registers);
		}
	}
	return true;
}

static bool
fetch_groups(Run *run)
{
	const WireQuery *q = &run->c->q;
	size_t		key_bytes = q->key_bytes;
	uint64_t	fits = (BUFFER_BYTES - (q->nslots + 1) * WIRE_ALIGN) / wire_group_bytes(q);
	DeviceError error = {""};

	run->group_bytes = wire_group_bytes(q);
	run->groups = malloc(run->group_bytes * run->finished.ngroups + 1);
	for (uint64_t first = 0; first < run->finished.ngroups;)
	{
		uint64_t	left = run->finished.ngroups - first;
		WireGroups	out = {.first = first,.n = left < fits ? left : fits};
		size_t		at = wire_align(out.n * key_bytes);

		for (int s = 0; s < q->nslots; s++)
		{
			out.slots[s] = at;
			at += wire_align(out.n * wire_slot_bytes(&q->slots[s], 0));
		}
		if (!went_well(run, query_fetch(run->query[0], run->lane[0], &out, &error), &error))
			return false;
		for (uint32_t g = 0; g < out.n; g++)
		{
			char	   *to = run->groups + (first + g) * run->group_bytes;

			memcpy(to, run->arena[0] + out.keys + g * key_bytes, key_bytes);
			to += key_bytes;
			for (int s = 0; s < q->nslots; s++)
			{
				memcpy(to, run->arena[0] + out.slots[s] + g * wire_slot_bytes(&q->slots[s], 0), wire_slot_bytes(&q->slots[s], 0));
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

static int
compare_integers(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a;
	int64_t		y = *(const int64_t *) b;

	return x < y ? -1 : x > y;
}

/* Values of a group in order, in malloc'ed memory. */
static int64_t *
values_of(const Run *run, uint64_t key, bool v, int *n)
{
	const Case *c = run->c;
	int64_t    *values = malloc(sizeof(int64_t) * (c->nbatches * c->nrows + 1));

	*n = 0;
	for (int b = 0; b < c->nbatches; b++)
		for (int r = 0; r < c->nrows && run->taken >> b & 1; r++)
			if (packed_key(c, b, r) == key && (!v || row_has_v(r)))
				values[(*n)++] = v ? row_v(b, r) : (r * 37) % 101;
	qsort(values, *n, sizeof(*values), compare_integers);
	return values;
}

/* Of a query with sets of values: what add_sets asks for, by other means; false: a call has failed. */
static bool
check_sets(Run *run)
{
	const WireQuery *q = &run->c->q;

	for (uint64_t g = 0; g < run->finished.ngroups; g += 1 + run->finished.ngroups / 16)
	{
		const char *at = run->groups + g * run->group_bytes;
		int64_t		states[6];
		int			n,
					distinct = 0,
					run_length = 0,
					most = 0;
		int64_t    *values = values_of(run, read_key(at, q->key_bytes), true, &n);
		int64_t		sum = 0,
					mode = 0;
		WirePick	pick = {.set = 1,.n = 3};
		int32_t		places[3];
		const int64_t *picked = (const int64_t *) (run->arena[0] + wire_picked_at(3));
		DeviceError error = {""};

		memcpy(states, at + q->key_bytes, sizeof(states));
		for (int i = 0; i < n; i++)
		{
			if (i == 0 || values[i] != values[i - 1])
				distinct++, sum += values[i], run_length = 0;
			if (++run_length >= most)
				most = run_length, mode = values[i];
		}
		CHECK(states[2] == distinct && states[3] == sum, "%s: %d distinct values, not %d", run->c->name, (int) states[2],
			  distinct);
		free(values);
		if (most > 0)
		{
			WirePick	one = {.n = 1};

			places[0] = (int32_t) wire_mode_place(states[5], 1);
			if (!went_well(run, query_pick(run->query[0], run->lane[0], &one, places, &error), &error))
				return false;
			CHECK(states[5] >> 31 == most && *(const int64_t *) (run->arena[0] + wire_picked_at(1)) == mode,
				  "%s: the most frequent value", run->c->name);
		}
		values = values_of(run, read_key(at, q->key_bytes), false, &n);
		for (int i = 0; i < 3; i++)
			places[i] = (int32_t) (states[4] + (n - 1) / 2 * i);
		if (!went_well(run, query_pick(run->query[0], run->lane[0], &pick, places, &error), &error))
		{
			free(values);
			return false;
		}
		for (int i = 0; i < 3; i++)
			CHECK(picked[i] == values[(n - 1) / 2 * i], "%s: value %d of a group", run->c->name, i);
		free(values);
	}
	return true;
}

/* Of a query with ARGMAX: the greatest v, of rows that have one, and the smallest of another column, of all rows. */
static void
check_extremes(const Run *run)
{
	for (uint64_t g = 0; g < run->finished.ngroups; g += 1 + run->finished.ngroups / 16)
	{
		const char *at = run->groups + g * run->group_bytes;
		size_t		key_bytes = run->c->q.key_bytes;

		for (int v = 0; v < 2; v++)
		{
			int			n;
			int64_t    *values = values_of(run, read_key(at, key_bytes), v, &n);
			int64_t		extreme;

			memcpy(&extreme, at + key_bytes + (v ? 4 : 7) * sizeof(int64_t), sizeof(extreme));
			CHECK(extreme == (v ? n > 0 ? values[n - 1] : INT64_MIN : values[0]), "%s: extreme %d of group %d", run->c->name,
				  v, (int) g);
			free(values);
		}
	}
}

/* There is no such place. */
static void
pick_too_far(Run *run)
{
	WirePick	pick = {.set = 1,.n = 2};
	int32_t		places[2] = {0, (int32_t) run->query[0]->query->sets[1].n};
	DeviceError error = {""};

	CHECK(query_pick(run->query[0], run->lane[0], &pick, places, &error) == DEVICE_UNSUPPORTED, "a place behind all");
}

/* A query whose groups wait to be fetched has no other memory than theirs. */
static void
check_finished_memory(const Query *query)
{
	size_t		groups = query->hash.memory.bytes + query->groups.present.bytes + query->groups.list.bytes +
		query->groups.keys.bytes + query->top.bytes;

	for (uint32_t s = 0; s < query->q->nsets; s++)
		groups += query->sets[s].values.bytes;

	for (int s = 0; s < query->q->nslots; s++)
		groups += query->groups.slot[s].bytes;
	CHECK(query->rows_kept == NULL, "rows in order are kept");
	CHECK(query->memory == groups + query->thresholds.bytes + query->status.bytes,
		  "%zu bytes, %zu of them groups", (size_t) query->memory, groups);
}

/* Keys are as long as the NULLs among them need, and rows are counted once. */
static void
check_form(const Run *run)
{
	const Query *query = run->query[0]->query;
	const Case *c = run->c;
	bool		nulls = c->first_null > 0 && run->taken >> c->first_null != 0;
	bool		all = run->taken == (1u << c->nbatches) - 1;

	/* a batch that is not taken may have changed the form */
	if (query->form == FORM_HASH && (all || nulls))
		CHECK(query->hash.table.key_bytes == (nulls || wire_keeps_rows(&c->q) ? c->q.key_bytes : 4),
			  "%s: keys of %d bytes in the table", c->name, query->hash.table.key_bytes);
	if (query->form == FORM_DIRECT && (all || nulls))
		CHECK(query->ranges.has_null[0] == nulls, "%s: a bin for NULLs", c->name);
	CHECK((query->groups.present.at != NULL) == (query->form == FORM_DIRECT && c->q.slots[0].col[0] >= 0),
		  "%s: rows are counted twice, or not at all", c->name);
}

/* The batches of `wanted`; those taken are in run->taken. */
static void
do_run(Run *run, const Case *c, uint32_t wanted)
{
	static char *arenas[PARTICIPANTS];
	static uint64_t last_seed;
	bool		ok;
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
		CHECK(run->query[0]->query->seed != last_seed, "two queries hash alike");
		last_seed = run->query[0]->query->seed;
	}
	for (int b = 0; b < c->nbatches && ok; b++)
		if (wanted >> b & 1)
			ok = give_batch(run, b);
	for (int p = 0; p < PARTICIPANTS && ok; p++)
	{
		double		ms;

		ok = went_well(run, device_ops.lane_settle(run->lane[p], &ms, &error), &error);
	}
	if (ok)
		ok = went_well(run, query_finish(run->query[0], &run->finished, &error), &error);
	if (ok)
	{
		check_finished_memory(run->query[0]->query);
		check_form(run);
		ok = fetch_groups(run);
		if (ok && c->q.nsets > 0 && check_sets(run))
			pick_too_far(run);
		if (ok && c->q.nslots == 6 && c->q.slots[2].monoid == MONOID_ARGMAX)
			check_extremes(run);
	}
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		if (run->query[p])
			query_leave(run->query[p]);
		if (run->lane[p])
			device_ops.lane_close(run->lane[p]);
	}
}

/* ---- checks ---- */

static uint64_t
used(void)
{
	return budget_device(0)->used;
}

static void
check_counts_and_sums(const Run *run, const char *what)
{
	int			n;
	Expected   *expected = expect(run->c, run->taken, &n);

	CHECK((uint64_t) n == run->finished.ngroups, "%s: %d groups expected, not %d", what, n,
		  (int) run->finished.ngroups);
	CHECK(run->finished.errors == 0, "%s: errors", what);
	for (int g = 0; g < n && (uint64_t) g < run->finished.ngroups; g++)
	{
		const char *at = run->groups + g * run->group_bytes;
		uint64_t	key = read_key(at, run->c->q.key_bytes);
		int64_t		state[2];

		memcpy(state, at + run->c->q.key_bytes, sizeof(state));
		CHECK(key == expected[g].key && state[0] == expected[g].count && state[1] == expected[g].sum,
			  "%s: group %d: key %llx count %d sum %d, expected %llx %d %d", what, g, (unsigned long long) key,
			  (int) state[0], (int) state[1], (unsigned long long) expected[g].key, (int) expected[g].count,
			  (int) expected[g].sum);
	}
	free(expected);
}

/* A run that ended well: its groups are those of a run without faults over the batches taken. */
static void
check_right(const Run *run, const Run *whole, const char *what)
{
	Run			again;
	const Run  *right = whole;

	check_counts_and_sums(run, what);
	if (run->taken != whole->taken)
	{
		do_run(&again, run->c, run->taken);
		right = &again;
	}
	CHECK(right->status == DEVICE_OK && right->taken == run->taken, "%s: the run to compare with", what);
	CHECK(run->finished.ngroups == right->finished.ngroups &&
		  (run->finished.ngroups == 0 ||
		   memcmp(run->groups, right->groups, run->group_bytes * run->finished.ngroups) == 0),
		  "%s: other groups than without the fault", what);
	if (right == &again)
		free(again.groups);
}

typedef struct Fault
{
	StubCall	call;
	cudaError_t err;
	bool		on;
	DeviceStatus status;		/* what it may end in, but for well */
} Fault;

static const Fault faults[] = {
	{STUB_ALLOC, cudaErrorMemoryAllocation, false, DEVICE_NO_MEMORY},
	{STUB_ALLOC, cudaErrorMemoryAllocation, true, DEVICE_NO_MEMORY},
	{STUB_ALLOC, cudaErrorIllegalAddress, true, DEVICE_LOST},
	{STUB_COPY, cudaErrorInvalidValue, false, DEVICE_UNSUPPORTED},
	{STUB_COPY, cudaErrorIllegalAddress, true, DEVICE_LOST},
	{STUB_LAUNCH, cudaErrorMemoryAllocation, false, DEVICE_NO_MEMORY},
	{STUB_LAUNCH, cudaErrorLaunchOutOfResources, false, DEVICE_UNSUPPORTED},
	{STUB_LAUNCH, cudaErrorLaunchOutOfResources, true, DEVICE_UNSUPPORTED},
	{STUB_LAUNCH, cudaErrorIllegalAddress, true, DEVICE_LOST},
	{STUB_OTHER, cudaErrorIllegalAddress, true, DEVICE_LOST},
};

static int	runs;
static int	refused;			/* runs that ended well without some of their batches */

static void
run_with_fault(const Case *c, const Run *whole, const Fault *fault, int n)
{
	Case		small;
	Run			run;
	OpenQuery  *beside = NULL;
	Lane	   *lane = NULL;
	WireBatch	batch;
	WireFinished finished = {0};
	DeviceError error = {""};
	char		what[160];
	static char *arena;
	size_t		bytes;
	uint64_t	used_before;
	int			live_before;

	snprintf(what, sizeof(what), "%s, call %d of kind %d, error %d%s", c->name, n, fault->call, fault->err,
			 fault->on ? " and on" : "");
	if (arena == NULL)
		arena = malloc(ARENA_BUFFERS * BUFFER_BYTES);
	make_case(1, &small);
	CHECK(query_enter(&beside, 0, NULL, &small.q, small.thresholds, &error) == DEVICE_OK &&
		  query_place(beside, 0, &error) == DEVICE_OK &&
		  device_ops.lane_open(&lane, 0, arena, BUFFER_BYTES, ARENA_BUFFERS, &error) == DEVICE_OK,
		  "%s: the query beside it: %s", what, error.text);
	make_batch(&small, 0, 0, arena, &batch);
	CHECK(device_ops.copy(lane, &batch, &bytes, &error) == DEVICE_OK &&
		  query_reduce(beside, lane, &batch, &error) == DEVICE_OK, "%s: the batch beside it: %s", what, error.text);
	used_before = used();
	live_before = stub_live();

	stub_fail(fault->call, n, fault->on, fault->err);
	do_run(&run, c, ~0u);
	stub_mend();

	runs++;
	CHECK(used() == used_before, "%s: %d bytes stay in the budget", what, (int) (used() - used_before));
	CHECK(stub_live() == live_before, "%s: %d pieces of memory stay", what, stub_live() - live_before);
	CHECK(run.status == DEVICE_OK || run.status == fault->status, "%s: status %d, %s", what, run.status,
		  run.error.text);
	CHECK(run.status == DEVICE_OK || run.error.text[0] != '\0', "%s: no text", what);
	/* lack of memory after the query was opened means batches that are not taken, and no failure */
	CHECK(run.status == DEVICE_OK || !run.opened || fault->call != STUB_ALLOC ||
		  fault->err != cudaErrorMemoryAllocation || wire_keeps_rows(&c->q), "%s: %s", what, run.error.text);
	if (run.status == DEVICE_OK)
	{
		refused += run.taken != whole->taken;
		check_right(&run, whole, what);
	}
	free(run.groups);

	CHECK(query_reduce(beside, lane, &batch, &error) == DEVICE_OK &&
		  query_finish(beside, &finished, &error) == DEVICE_OK && finished.ngroups == 50,
		  "%s: the query beside it ends with %s", what, error.text);
	query_leave(beside);
	device_ops.lane_close(lane);
	CHECK(used() == 0 && stub_live() == 0, "%s: something is left in the end", what);
}

static Case current;

static void
every_call_fails(void)
{
	Run			whole;
	int			calls[STUB_CALLS];

	stub_fail(STUB_ALLOC, 0, false, cudaSuccess);
	do_run(&whole, &current, ~0u);
	for (int k = 0; k < STUB_CALLS; k++)
		calls[k] = stub_count(k);
	CHECK(whole.status == DEVICE_OK && whole.taken == (1u << current.nbatches) - 1, "without faults: %s",
		  whole.error.text);
	CHECK(used() == 0 && stub_live() == 0, "without faults: something is left");
	check_counts_and_sums(&whole, "without faults");
	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int n = 1; n <= calls[faults[f].call]; n++)
			run_with_fault(&current, &whole, &faults[f], n);
	free(whole.groups);
}

/* ---- limits ---- */

/* Memory of every size up to what the query needs. */
static void
little_memory(void)
{
	uint64_t	enough;
	Run			run,
				whole;
	int			ended = 0;

	for (int i = 0; make_case(i, &current); i++)
	{
		do_run(&whole, &current, ~0u);
		enough = whole.finished.memory_peak + PARTICIPANTS * ARENA_BUFFERS * BUFFER_BYTES;
		for (int part = 1; part <= 16; part++)
		{
			uint64_t	limit = PARTICIPANTS * ARENA_BUFFERS * BUFFER_BYTES + whole.finished.memory_peak / 16 * part;

			budget_set_limit(limit < enough ? limit : enough);
			do_run(&run, &current, ~0u);
			budget_set_limit(0);
			CHECK(run.status == DEVICE_OK || run.status == DEVICE_NO_MEMORY, "%s: status %d, %s", current.name,
				  run.status, run.error.text);
			CHECK(used() == 0 && stub_live() == 0, "%s: something is left", current.name);
			if (run.status == DEVICE_OK)
			{
				ended++;
				check_right(&run, &whole, current.name);
			}
			/* four times the table is too much then, and less does */
			CHECK(current.key != key_distinct || current.first_null > 0 || part < 12 || run.taken == whole.taken,
				  "%s: taken %x with %d sixteenths of the memory", current.name, run.taken, part);
			free(run.groups);
		}
		free(whole.groups);
	}
	CHECK(ended > 110, "only %d runs ended well", ended);
}

/* A table grows up to the most bins, by less than four times if need be; then no batch is taken. */
static void
most_bins(void)
{
	Run			run;
	int64_t		most = cuda_most_bins;
	int			n;

	make_case(4, &current);
	free(expect(&current, ~0u, &n));
	cuda_most_bins = n;
	do_run(&run, &current, ~0u);
	CHECK(run.status == DEVICE_OK && run.taken == (1u << current.nbatches) - 1 && run.finished.ngroups == (uint64_t) n,
		  "as many groups as bins: %s", run.error.text);
	check_counts_and_sums(&run, "as many groups as bins");
	free(run.groups);

	cuda_most_bins = n - 1;
	do_run(&run, &current, ~0u);
	CHECK(run.status == DEVICE_OK && run.taken == (1u << (current.nbatches - 1)) - 1, "one bin too few: taken %x, %s",
		  run.taken, run.error.text);
	check_counts_and_sums(&run, "one bin too few");
	free(run.groups);

	/* histograms so wide that there is room for few groups, or none */
	make_case(5, &current);
	for (int groups = 0; groups < 21; groups++)
	{
		cuda_most_bins = groups * 32;
		do_run(&run, &current, ~0u);
		CHECK(run.status == DEVICE_OK && (run.taken != 0) == (groups >= 20), "%d groups: taken %x, %s", groups,
			  run.taken, run.error.text);
		check_counts_and_sums(&run, "wide histograms");
		free(run.groups);
	}
	cuda_most_bins = most;
	CHECK(used() == 0 && stub_live() == 0, "something is left");
}

/* ---- several keys ---- */

#define KEYS_ROWS 200
#define KEYS_BATCHES 6

static const int key_widths[] = {1, 2, 4, 8};
static uint64_t random_state;

static uint32_t
draw(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t) (random_state >> 33) % n;
}

/* A query of up to five keys, its key values, and its groups computed by other means. */
typedef struct KeysQuery
{
	WireQuery	q;
	int			form[WIRE_MAX_KEYS];	/* of values: few, more in each batch, the ends of the type, scattered */
	int			first_null[WIRE_MAX_KEYS];	/* batch; KEYS_BATCHES: no NULLs */
} KeysQuery;

/* As the client packs keys (engine_cuda/query.c); false if they are too wide. */
static bool
draw_keys_query(KeysQuery *k)
{
	static const GpuaggStrategy forced[] = {STRATEGY_AUTO, STRATEGY_DIRECT, STRATEGY_HASH};
	WireQuery  *q = &k->q;
	int			bytes = 0;
	bool		nulls;

	memset(k, 0, sizeof(*k));
	q->nkeys = 1 + draw(5);
	for (int i = 0; i < q->nkeys; i++)
	{
		int			width = key_widths[draw(4)];

		q->keys[i] = (WireKey) {.col = i,.width = width,.offset = bytes};
		k->form[i] = draw(8) < 5 ? draw(2) : draw(4);
		k->first_null[i] = draw(KEYS_BATCHES + 1);
		bytes += width;
	}
	if (bytes > WIRE_MAX_KEY_BYTES)
		return false;
	nulls = bytes < WIRE_MAX_KEY_BYTES;
	for (int i = 0; i < q->nkeys; i++)
	{
		q->keys[i].nullable = nulls;
		if (!nulls)
			k->first_null[i] = KEYS_BATCHES;
	}
	bytes += nulls;
	q->key_bytes = bytes <= 4 ? 4 : bytes <= 8 ? 8 : 16;
	q->null_offset = nulls ? bytes - 1 : q->key_bytes;
	q->ncols = q->nkeys + 1;
	q->forced = forced[draw(3)];
	add_slot(q, MONOID_SUM_I64, q->nkeys);
	/* count(*), or count(column), which shows no direct bins */
	add_slot(q, MONOID_COUNT, draw(2) ? -1 : (int) q->nkeys);
	return true;
}

static int64_t
draw_key(int form, int width, int batch)
{
	int64_t		least = width == 8 ? INT64_MIN : -((int64_t) 1 << (8 * width - 1));

	switch (form)
	{
		case 0:
			return (int64_t) draw(4) - 2;
		case 1:
			return batch * 7 + draw(5);
		case 2:
			return draw(2) ? least + draw(2) : -(least + 1) - (int64_t) draw(2);
		default:
			return (int64_t) ((uint64_t) draw(20) * 0x9e3779b97f4a7c15u) >> (64 - 8 * width);
	}
}

typedef struct KeysGroup
{
	char		key[WIRE_MAX_KEY_BYTES];
	int64_t		sum;
	int64_t		count;
} KeysGroup;

static int
compare_groups(const void *a, const void *b)
{
	return memcmp(a, b, WIRE_MAX_KEY_BYTES);
}

static int
combine_groups(KeysGroup *groups, int n)
{
	int			made = 0;

	qsort(groups, n, sizeof(*groups), compare_groups);
	for (int i = 0; i < n; i++)
		if (made > 0 && compare_groups(&groups[made - 1], &groups[i]) == 0)
		{
			groups[made - 1].sum += groups[i].sum;
			groups[made - 1].count += groups[i].count;
		}
		else
			groups[made++] = groups[i];
	return made;
}

/* Writes a batch and describes it; its rows are appended to `rows`. */
static void
draw_batch(const KeysQuery *k, int b, char *to, WireBatch *batch, KeysGroup *rows)
{
	static const uint32_t types[] = {[1] = WIRE_I8,[2] = WIRE_I16,[4] = WIRE_I32,[8] = WIRE_I64};
	const WireQuery *q = &k->q;
	uint32_t	at = 0;

	memset(batch, 0, sizeof(*batch));
	memset(rows, 0, KEYS_ROWS * sizeof(*rows));
	batch->nrows = KEYS_ROWS;
	batch->ncols = q->ncols;
	for (int i = 0; i < q->ncols; i++)
	{
		int			width = i < q->nkeys ? (int) q->keys[i].width : 8;
		bool		nulls = i < q->nkeys && b >= k->first_null[i];

		batch->cols[i] = (WireColumn) {types[width], at, WIRE_NO_ARRAY};
		at += wire_align(KEYS_ROWS * width);
		if (nulls)
		{
			batch->cols[i].validity = at;
			memset(to + at, 0, wire_bitmap_bytes(KEYS_ROWS));
			at += wire_align(wire_bitmap_bytes(KEYS_ROWS));
		}
		if (i < q->nkeys)
		{
			batch->key_min[i] = INT64_MAX;
			batch->key_max[i] = INT64_MIN;
		}
		for (int r = 0; r < KEYS_ROWS; r++)
		{
			int64_t		value = i < q->nkeys ? draw_key(k->form[i], width, b) : (int64_t) draw(1000);
			bool		isnull = nulls && draw(8) == 0;

			memcpy(to + batch->cols[i].values + r * width, &value, width);
			if (i == q->nkeys)
				rows[r].sum = value;
			else if (isnull)
				rows[r].key[q->null_offset] |= 1 << i;
			else
			{
				memcpy(rows[r].key + q->keys[i].offset, &value, width);
				batch->key_min[i] = value < batch->key_min[i] ? value : batch->key_min[i];
				batch->key_max[i] = value > batch->key_max[i] ? value : batch->key_max[i];
			}
			if (nulls)
				set_bit((uint8_t *) to + batch->cols[i].validity, r, !isnull);
			rows[r].count = 1;
		}
	}
	batch->bytes = at;
}

/* All groups of the query; their number. */
static int
fetch_keys(OpenQuery *query, Lane *lane, const char *arena, const WireQuery *q, KeysGroup *groups, DeviceError *error)
{
	WireFinished finished = {0};
	WireGroups	out = {0};

	if (query_finish(query, &finished, error) != DEVICE_OK)
		return -1;
	out.n = finished.ngroups;
	out.slots[0] = wire_align(out.n * q->key_bytes);
	out.slots[1] = out.slots[0] + wire_align(out.n * sizeof(int64_t));
	if (out.n > 0 && query_fetch(query, lane, &out, error) != DEVICE_OK)
		return -1;
	memset(groups, 0, out.n * sizeof(*groups));
	for (uint32_t g = 0; g < out.n; g++)
	{
		memcpy(groups[g].key, arena + out.keys + g * q->key_bytes, q->key_bytes);
		memcpy(&groups[g].sum, arena + out.slots[0] + g * sizeof(int64_t), sizeof(int64_t));
		memcpy(&groups[g].count, arena + out.slots[1] + g * sizeof(int64_t), sizeof(int64_t));
	}
	return (int) out.n;
}

/* One query, with lack of memory at some point in half of them. */
static void
run_keys(uint64_t seed, int forms[FORM_HASH + 1], int *untaken)
{
	static KeysGroup rows[KEYS_BATCHES * KEYS_ROWS],
				groups[KEYS_BATCHES * KEYS_ROWS];
	static const double no_thresholds[1];
	static char *arena;
	KeysQuery	k;
	OpenQuery  *query = NULL;
	Lane	   *lane = NULL;
	DeviceError error = {""};
	int			n = 0,
				made;

	if (arena == NULL)
		arena = malloc(ARENA_BUFFERS * BUFFER_BYTES);
	random_state = seed;
	while (!draw_keys_query(&k))
		;
	CHECK(query_enter(&query, 0, NULL, &k.q, no_thresholds, &error) == DEVICE_OK &&
		  query_place(query, 0, &error) == DEVICE_OK &&
		  device_ops.lane_open(&lane, 0, arena, BUFFER_BYTES, ARENA_BUFFERS, &error) == DEVICE_OK, "%s", error.text);
	if (draw(2))
		stub_fail(STUB_ALLOC, 1 + draw(40), draw(2), cudaErrorMemoryAllocation);
	for (int b = 0; b < KEYS_BATCHES; b++)
	{
		WireBatch	batch;
		size_t		bytes;
		DeviceStatus status;

		draw_batch(&k, b, arena, &batch, rows + n);
		status = query_copy(query, lane, &batch, &bytes, &error);
		if (status == DEVICE_OK)
			status = query_reduce(query, lane, &batch, &error);
		CHECK(status == DEVICE_OK || status == DEVICE_FULL, "seed %d, batch %d: %s", (int) seed, b, error.text);
		n += status == DEVICE_OK ? KEYS_ROWS : 0;
		*untaken += status != DEVICE_OK;
	}
	forms[query->query->form]++;
	made = fetch_keys(query, lane, arena, &k.q, groups, &error);
	stub_mend();
	if (made >= 0)
	{
		qsort(groups, made, sizeof(*groups), compare_groups);
		n = combine_groups(rows, n);
		CHECK(made == n && memcmp(rows, groups, n * sizeof(*rows)) == 0, "seed %d: %d groups, expected %d, or others",
			  (int) seed, made, n);
	}
	else
		CHECK(0, "seed %d: no groups: %s", (int) seed, error.text);
	query_leave(query);
	device_ops.lane_close(lane);
	CHECK(used() == 0 && stub_live() == 0, "seed %d: something is left", (int) seed);
}

static void
several_keys(void)
{
	int			forms[FORM_HASH + 1] = {0};
	int			untaken = 0;

	for (int seed = 1; seed <= 3000; seed++)
		run_keys(seed, forms, &untaken);
	CHECK(forms[FORM_DIRECT] > 300 && forms[FORM_HASH] > 300 && untaken > 300, "%d direct, %d hash, %d batches not taken",
		  forms[FORM_DIRECT], forms[FORM_HASH], untaken);
	printf("# %d direct, %d hash, %d batches not taken\n", forms[FORM_DIRECT], forms[FORM_HASH], untaken);
}

/* ---- devices ---- */

static DeviceStatus
start(int devices, int first, int second, WireStatus *status, DeviceError *error)
{
	memset(status, 0, sizeof(*status));
	error->text[0] = '\0';
	stub_devices = devices;
	stub_capability[0] = first;
	stub_capability[1] = second;
	return device_ops.start("all", status, error);
}

static void
devices(void)
{
	WireStatus	status;
	DeviceError error;

	CHECK(start(2, 75, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 && status.devices[0].ordinal == 1,
		  "an old device beside a good one: %s", error.text);
	CHECK(status.nskipped == 1 && status.skipped[0].ordinal == 0 &&
		  strstr(status.skipped[0].note, "capability 7.5 is below 8.0"), "%s", status.skipped[0].note);
	CHECK(start(1, 75, 0, &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "7.5"), "an old device alone: %s",
		  error.text);

	/* a binary made of PTX at the start */
	stub_binary = 120;
	CHECK(start(1, 120, 0, &status, &error) == DEVICE_OK && strstr(status.devices[0].note, "CUDA_ARCHS=\"... 120\""), "%s",
		  status.devices[0].note);
	stub_binary = 90;

	/* neither binary nor PTX */
	stub_fail(STUB_LAUNCH, 1, false, cudaErrorNoKernelImageForDevice);
	CHECK(start(2, 90, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 && status.nskipped == 1 &&
		  status.devices[0].ordinal == 1, "a device without kernels");
	stub_fail(STUB_LAUNCH, 1, true, cudaErrorMemoryAllocation);
	CHECK(start(1, 90, 0, &status, &error) == DEVICE_NO_MEMORY, "a device that is busy may be tried again");
	stub_fail(STUB_OTHER, 1, true, cudaErrorJitCompilerNotFound);
	CHECK(start(1, 120, 0, &status, &error) == DEVICE_UNSUPPORTED, "PTX that the driver cannot compile");

	/* an error of the second device must not be reported by a launch on the first */
	stub_fail(STUB_OTHER, 2, false, cudaErrorDevicesUnavailable);
	CHECK(start(2, 90, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 && status.nskipped == 1 &&
		  status.devices[0].ordinal == 0, "a device that another process uses exclusively");
	CHECK(cudaGetLastError() == cudaSuccess, "the error stays behind");
	stub_mend();

	CHECK(start(1, 90, 0, &status, &error) == DEVICE_OK && status.ndevices == 1 && status.nskipped == 0 &&
		  status.devices[0].note[0] == '\0', "a device");
	budget_start(&status);
}

static DeviceStatus
start_named(const char *names, WireStatus *status, DeviceError *error)
{
	memset(status, 0, sizeof(*status));
	error->text[0] = '\0';
	stub_devices = 2;
	stub_capability[0] = stub_capability[1] = 90;
	return device_ops.start(names, status, error);
}

static void
named_devices(void)
{
	WireStatus	status;
	DeviceError error;

	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(start_named("1", &status, &error) == DEVICE_OK && status.ndevices == 1 && status.nskipped == 0 &&
		  status.devices[0].ordinal == 1, "the second one");
	CHECK(start_named("1, 7", &status, &error) == DEVICE_OK && status.ndevices == 1 && status.nskipped == 1 &&
		  status.skipped[0].ordinal == 7 && strstr(status.skipped[0].note, "no GPU of this number"), "%s",
		  status.skipped[0].note);
	CHECK(start_named("7", &status, &error) == DEVICE_UNSUPPORTED && status.ndevices == 0, "none that is there");
	CHECK(start_named("none", &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "names no device"), "%s",
		  error.text);
	CHECK(start_named("zork", &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "zork"), "%s", error.text);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") == NULL, "numbers are CUDA's own");
	CHECK(start_named("GPU-8932f937, GPU-12, GPU-13", &status, &error) == DEVICE_OK && status.ndevices == 2 &&
		  status.nskipped == 1 && strstr(status.skipped[0].note, "names 3 GPUs, of which CUDA finds the first 2"), "%s",
		  status.skipped[0].note);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") && strcmp(getenv("CUDA_VISIBLE_DEVICES"), "GPU-8932f937,GPU-12,GPU-13") == 0,
		  "UUIDs are for CUDA");
	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(start_named("all", &status, &error) == DEVICE_OK && status.ndevices == 2, "all");
	CHECK(start(1, 90, 0, &status, &error) == DEVICE_OK, "one for the tests that follow");
	budget_start(&status);
}

/* What other processes leave, and what is given back to them. */
static void
other_processes(void)
{
	uint64_t	memory = budget_device(0)->memory;
	uint64_t	bytes;

	stub_others = memory / 2;
	stub_reserved = memory / 4;
	stub_used = memory / 8;
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2, "half is left");
	CHECK(stub_reserved == memory / 4, "nothing is given back while queries run");
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == memory / 2 / 5 * 4, "the limit follows");
	CHECK(device_ops.available(0, true, &bytes) && bytes == memory / 2, "half is left");
	CHECK(stub_reserved == memory / 8 + memory / 64, "what is not used is given back, but for a little");
	stub_reserved = memory / 4;
	budget_set_available(0, memory / 4);
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2, "half is left");
	CHECK(stub_reserved == memory / 8 + memory / 64, "while queries run, what is more than the limit");
	stub_grows = memory / 64;
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2, "what queries take meanwhile is not another process's");
	stub_grows = 0;
	stub_fail(STUB_OTHER, 1, true, cudaErrorIllegalAddress);
	device_ops.pin(&bytes, sizeof(bytes), &(DeviceError) {""});
	CHECK(!device_ops.available(0, true, &bytes), "nothing is known of a device that is lost");
	stub_mend();
	stub_others = stub_reserved = stub_used = 0;
	CHECK(device_ops.available(0, true, &bytes) && bytes == memory, "all is left");
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == memory / 5 * 4, "as before");
	budget_set_limit(1 << 20);
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == 1 << 20, "a setting is the most");
	budget_set_limit(0);
}

int
main(void)
{
	RUN("devices that are named", named_devices);
	RUN("devices that can be used, and others", devices);
	RUN("other processes on the device", other_processes);
	for (int i = 0; make_case(i, &current); i++)
		RUN(current.name, every_call_fails);
	printf("# %d runs, %d of them without some batches\n", runs, refused);
	RUN("little memory", little_memory);
	RUN("the most bins", most_bins);
	RUN("several keys", several_keys);
	return unit_done();
}
