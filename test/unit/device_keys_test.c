/*
 * device_keys_test.c
 *	  Tests queries with one to eight keys of random widths and values, some with a limit, some on
 *	  two devices. They go through the CUDA device layer over the CUDA stub. In about half of them,
 *	  allocations of device memory fail at some point; in some, another call fails.
 *
 * Reference: the groups of the batches that were reduced, combined on the host by sorting rows.
 */
#include "abandon.h"
#include "cuda/cases.h"
#include "cuda/cuda_stub.h"
#include "device_cuda/device_internal.h"

#define BUFFER_BYTES (1 << 17)
#define DEVICES 2

#define KEYS_ROWS 200
#define KEYS_BATCHES 6

static const int key_widths[] = {1, 2, 4, 8};
static uint64_t random_state;

/* Returns a random number from 0 to n - 1. */
static uint32_t
draw(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t) (random_state >> 33) % n;
}

/* A random query with up to eight keys. */
typedef struct KeysQuery
{
	WireQuery q;
	/* kind of the values: 0 few, 1 others in each batch, 2 the ends of the type, 3 scattered */
	int form[WIRE_MAX_KEYS];
	int first_null[WIRE_MAX_KEYS]; /* first batch with NULLs; KEYS_BATCHES: no NULLs */
} KeysQuery;

/* Draws a query, with keys packed as the client packs them (engine_cuda/query.c). */
static void
draw_keys_query(KeysQuery *k)
{
	static const GpuaggStrategy forced[] = {STRATEGY_AUTO, STRATEGY_DIRECT, STRATEGY_HASH};
	WireQuery *q = &k->q;
	int bytes = 0;
	bool nulls = draw(8) > 0;

	memset(k, 0, sizeof(*k));
	q->nkeys = 1 + draw(draw(2) ? 3 : WIRE_MAX_KEYS);
	for (int i = 0; i < q->nkeys; i++)
	{
		int width = key_widths[draw(4)];

		q->keys[i] = (WireKey){.col = i, .width = width, .nullable = nulls, .offset = bytes};
		k->form[i] = draw(8) < 5 ? draw(2) : draw(4);
		k->first_null[i] = nulls ? draw(KEYS_BATCHES + 1) : KEYS_BATCHES;
		bytes += width;
	}
	q->key_bytes = wire_key_bytes(bytes + nulls);
	q->null_offset = nulls ? bytes : q->key_bytes;
	q->ncols = q->nkeys + 1;
	q->forced = forced[draw(3)];
	add_slot(q, MONOID_SUM_I64, q->nkeys);
	/* count(*), or count(column), which does not show which direct bins have rows */
	add_slot(q, MONOID_COUNT, draw(2) ? -1 : (int) q->nkeys);
	q->est_groups = draw(3) * 500;
}

/*
 * Returns a random key of `width` bytes. `form`: near 0, shifting with batches, at the ends, or
 * scattered.
 */
static int64_t
draw_key(int form, int width, int batch)
{
	int64_t least = width == 8 ? INT64_MIN : -((int64_t) 1 << (8 * width - 1));

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
	char key[WIRE_MAX_KEY_BYTES];
	int64_t sum;
	int64_t count;
} KeysGroup;

/* For qsort: compares two groups by their keys. */
static int
compare_groups(const void *a, const void *b)
{
	return memcmp(a, b, WIRE_MAX_KEY_BYTES);
}

/* Sorts the groups and combines those with equal keys. Returns the number of groups left. */
static int
combine_groups(KeysGroup *groups, int n)
{
	int ngroups = 0;

	qsort(groups, n, sizeof(*groups), compare_groups);
	for (int i = 0; i < n; i++)
		if (ngroups > 0 && compare_groups(&groups[ngroups - 1], &groups[i]) == 0)
		{
			groups[ngroups - 1].sum += groups[i].sum;
			groups[ngroups - 1].count += groups[i].count;
		}
		else
			groups[ngroups++] = groups[i];
	return ngroups;
}

/* Draws a batch: writes its columns to `to`, its description to *batch, and its rows to `rows`. */
static void
draw_batch(const KeysQuery *k, int b, char *to, WireBatch *batch, KeysGroup *rows)
{
	static const uint32_t types[] = {[1] = WIRE_I8, [2] = WIRE_I16, [4] = WIRE_I32, [8] = WIRE_I64};
	const WireQuery *q = &k->q;
	uint32_t at = 0;

	memset(batch, 0, sizeof(*batch));
	memset(rows, 0, KEYS_ROWS * sizeof(*rows));
	batch->nrows = KEYS_ROWS;
	batch->ncols = q->ncols;
	for (int i = 0; i < q->ncols; i++)
	{
		int width = i < q->nkeys ? (int) q->keys[i].width : 8;
		bool nulls = i < q->nkeys && b >= k->first_null[i];

		batch->cols[i] = (WireColumn){types[width], at, WIRE_NO_ARRAY};
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
			int64_t value = i < q->nkeys ? draw_key(k->form[i], width, b) : (int64_t) draw(1000);
			bool isnull = nulls && draw(8) == 0;

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

/* ---- the reference of a limit ---- */

/* Returns how a group's value compares with those of others, as two numbers. */
static void
limit_rank(const WireQuery *q, const WireSort *by, const KeysGroup *group, int64_t rank[2])
{
	const WireKey *key = &q->keys[by->value.key];
	bool isnull = false;
	int64_t value = by->value.slot == 1 ? group->count : group->sum;

	if (by->value.slot < 0)
	{
		isnull = q->null_offset < q->key_bytes && (group->key[q->null_offset] >> by->value.key & 1);
		value = 0;
		memcpy(&value, group->key + key->offset, key->width);
		value = (int64_t) ((uint64_t) value << (64 - 8 * key->width)) >> (64 - 8 * key->width);
	}
	rank[0] = isnull ? (by->nulls_first ? -1 : 1) : 0;
	rank[1] = isnull ? 0 : by->descending ? ~value : value;
}

static const WireQuery *limit_query;
static const WireLimit *limit_of_query;

/* For qsort: compares two groups by the order of a limit. */
static int
compare_by_limit(const void *a, const void *b)
{
	for (uint32_t s = 0; s < limit_of_query->nsort; s++)
	{
		int64_t x[2], y[2];

		limit_rank(limit_query, &limit_of_query->by[s], a, x);
		limit_rank(limit_query, &limit_of_query->by[s], b, y);
		for (int i = 0; i < 2; i++)
			if (x[i] != y[i])
				return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}

/* Draws a limit by keys and states. */
static void
draw_limit(const WireQuery *q, WireLimit *limit)
{
	memset(limit, 0, sizeof(*limit));
	limit->count = 1 + draw(30);
	limit->ties = draw(2);
	limit->nsort = 1 + draw(WIRE_MAX_SORT);
	for (uint32_t s = 0; s < limit->nsort; s++)
	{
		limit->by[s].value = (WireValue){.slot = -1, .counted = -1, .key = draw(q->nkeys)};
		if (draw(4) == 0)
			limit->by[s].value = (WireValue){.slot = draw(2), .counted = -1};
		limit->by[s].descending = draw(2);
		limit->by[s].nulls_first = draw(2);
	}
}

/*
 * Checks the groups that were fetched with a limit: each is one of the `all` groups, and none
 * within the limit is missing. Reorders both.
 */
static void
check_limited(const WireQuery *q, const WireLimit *limit, KeysGroup *groups, int n, KeysGroup *all,
			  int nall, int seed)
{
	uint64_t last;

	limit_query = q;
	limit_of_query = limit;
	for (int g = 0; g < n; g++)
	{
		const KeysGroup *same = bsearch(&groups[g], all, nall, sizeof(*all), compare_groups);

		CHECK(same && memcmp(same, &groups[g], sizeof(*same)) == 0,
			  "seed %d: a group that does not exist, or with other states", seed);
	}
	qsort(groups, n, sizeof(*groups), compare_by_limit);
	qsort(all, nall, sizeof(*all), compare_by_limit);
	last = (uint64_t) nall < limit->count ? (uint64_t) nall : limit->count;
	while (limit->ties && last > 0 && last < (uint64_t) nall &&
		   compare_by_limit(&all[last - 1], &all[last]) == 0)
		last++;
	CHECK((uint64_t) n >= last, "seed %d: %d groups, and %d are within the limit", seed, n,
		  (int) last);
	for (uint64_t g = 0; g < last && g < (uint64_t) n; g++)
		CHECK(compare_by_limit(&groups[g], &all[g]) == 0,
			  "seed %d: group %d within the limit is missing", seed, (int) g);
}

/* Finishes the query and fetches all groups. Returns their number, or -1 after a failure. */
static int
fetch_all_groups(SharedQuery *query, Lane *lane, const char *arena, const WireQuery *q,
				 KeysGroup *groups, DeviceError *error)
{
	WireFinished finished = {0};
	WireGroups out = {0};

	if (shared_query_finish(query, &finished, error) != DEVICE_OK)
		return -1;
	out.n = finished.ngroups;
	out.slots[0] = wire_align(out.n * q->key_bytes);
	out.slots[1] = out.slots[0] + wire_align(out.n * sizeof(int64_t));
	if (out.n > 0 && shared_query_fetch(query, lane, &out, error) != DEVICE_OK)
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

/* ---- running ---- */

/* A second device, which reduces some of the batches. */
typedef struct OtherDevice
{
	DeviceQuery *query;
	Lane *lane;
	bool full; /* a batch was not reduced; no later one is sent */
	int64_t key_min[WIRE_MAX_KEYS];
	int64_t key_max[WIRE_MAX_KEYS];
} OtherDevice;

static const double no_thresholds[1];

static bool
open_other(OtherDevice *other, const WireQuery *q, char *arena, DeviceError *error)
{
	memset(other, 0, sizeof(*other));
	for (int k = 0; k < q->nkeys; k++)
	{
		other->key_min[k] = INT64_MAX;
		other->key_max[k] = INT64_MIN;
	}
	return device_ops.query_open(&other->query, 1, q, no_thresholds, error) == DEVICE_OK &&
		device_ops.lane_open(&other->lane, 1, arena, BUFFER_BYTES, ARENA_BUFFERS, error) ==
		DEVICE_OK;
}

static DeviceStatus
reduce_on_other(OtherDevice *other, const WireQuery *q, const WireBatch *batch, DeviceError *error)
{
	size_t bytes;
	double ms;
	DeviceStatus status = DEVICE_FULL;

	if (!other->full)
		status = device_ops.copy(other->lane, batch, &bytes, error);
	if (status == DEVICE_OK)
		status = device_ops.copy_wait(other->lane, 0, &ms, error);
	if (status == DEVICE_OK)
		status = device_ops.reduce(other->query, other->lane, batch, error);
	other->full |= status != DEVICE_OK;
	for (int k = 0; k < q->nkeys && status == DEVICE_OK; k++)
	{
		other->key_min[k] =
			batch->key_min[k] < other->key_min[k] ? batch->key_min[k] : other->key_min[k];
		other->key_max[k] =
			batch->key_max[k] > other->key_max[k] ? batch->key_max[k] : other->key_max[k];
	}
	return status == DEVICE_NO_MEMORY ? DEVICE_FULL : status;
}

/* Adds the groups of the other device to the query. Returns whether that was possible. */
static bool
absorb_other(SharedQuery *query, OtherDevice *other, DeviceError *error)
{
	WireFinished finished = {0};

	return device_ops.finish(other->query, NULL, true, &finished, error) == DEVICE_OK &&
		device_ops.absorb(query->query, other->query, other->key_min, other->key_max, error) ==
		DEVICE_OK;
}

static void
close_other(OtherDevice *other)
{
	device_ops.query_close(other->query);
	device_ops.lane_close(other->lane);
}

/*
 * Removes groups without rows: rows that were not reduced may have left some, which become visible
 * when groups of another device are added. Checks that these rows have their keys. Returns the
 * number of groups left.
 */
static int
remove_empty_groups(KeysGroup *groups, int n, const KeysGroup *lost, int nlost, int seed)
{
	int left = 0;

	for (int g = 0; g < n; g++)
	{
		bool known = false;

		if (groups[g].count > 0)
		{
			groups[left++] = groups[g];
			continue;
		}
		for (int r = 0; r < nlost && !known; r++)
			known = compare_groups(&lost[r], &groups[g]) == 0;
		CHECK(known && groups[g].sum == 0, "seed %d: a group without rows", seed);
	}
	return left;
}

/* What the random queries of a test covered. */
typedef struct Covered
{
	int forms[FORM_HASH + 1];
	int shortened; /* keys of more than 16 bytes in a hash table */
	int absorbed;
	int failed;
	int not_reduced; /* batches */
} Covered;

/* A random query while it is tested. */
typedef struct KeysTest
{
	int seed;
	KeysQuery k;
	char *arena;
	SharedQuery *query;
	Lane *lane;
	bool two; /* some rows are on another device, in `other` */
	OtherDevice other;
	bool broken; /* a call that fails breaks the query */
	bool failed; /* a call has failed when states had changed */
	DeviceError error;
	int n; /* rows that were reduced, */
	KeysGroup rows[KEYS_BATCHES * KEYS_ROWS];
	int nlost; /* and rows that were not */
	KeysGroup lost[KEYS_BATCHES * KEYS_ROWS];
	KeysGroup groups[KEYS_BATCHES * KEYS_ROWS];
} KeysTest;

/* Reduces a batch of the query on one of its devices. */
static DeviceStatus
reduce_keys(KeysTest *t, WireBatch *batch)
{
	size_t bytes;
	DeviceStatus status;

	if (t->two && draw(2))
		return reduce_on_other(&t->other, &t->k.q, batch, &t->error);
	status = shared_query_copy(t->query, t->lane, batch, &bytes, &t->error);
	return status == DEVICE_OK ? shared_query_reduce(t->query, t->lane, batch, &t->error) : status;
}

/* Reduces all batches. */
static void
reduce_all_keys(KeysTest *t, Covered *covered)
{
	for (int b = 0; b < KEYS_BATCHES; b++)
	{
		WireBatch batch;
		DeviceStatus status;

		draw_batch(&t->k, b, t->arena, &batch, t->rows + t->n);
		status = reduce_keys(t, &batch);
		if (t->broken && status != DEVICE_OK && status != DEVICE_FULL)
			t->failed = true;
		else
			CHECK(status == DEVICE_OK || status == DEVICE_FULL, "seed %d, batch %d: %s", t->seed, b,
				  t->error.text);
		if (status == DEVICE_OK)
			t->n += KEYS_ROWS;
		else
		{
			memcpy(t->lost + t->nlost, t->rows + t->n, KEYS_ROWS * sizeof(*t->rows));
			t->nlost += KEYS_ROWS;
		}
		covered->not_reduced += status != DEVICE_OK;
	}
}

/* Compares the groups that were fetched with those of the rows.  limit: NULL if there is none */
static void
check_keys_groups(KeysTest *t, int ngroups, const WireLimit *limit)
{
	if (ngroups < 0)
		CHECK(t->broken, "seed %d: no groups: %s", t->seed, t->error.text);
	else if (limit)
		check_limited(&t->k.q, limit, t->groups, ngroups, t->rows, t->n, t->seed);
	else
	{
		qsort(t->groups, ngroups, sizeof(*t->groups), compare_groups);
		CHECK(ngroups == t->n && memcmp(t->rows, t->groups, t->n * sizeof(*t->rows)) == 0,
			  "seed %d: %d groups, expected %d, or they differ", t->seed, ngroups, t->n);
	}
}

/* Tests one random query. */
static void
check_keys_query(uint64_t seed, Covered *covered)
{
	static char *arena;
	static KeysTest t;
	WireLimit limit;
	bool limited;
	int ngroups;

	if (arena == NULL)
		arena = malloc(ARENA_BUFFERS * BUFFER_BYTES);
	memset(&t, 0, offsetof(KeysTest, rows));
	t.nlost = 0;
	t.arena = arena;
	t.seed = (int) seed;
	random_state = seed;
	draw_keys_query(&t.k);
	t.two = draw(3) == 0;
	limited = draw(3) == 0;
	draw_limit(&t.k.q, &limit);
	CHECK(shared_query_enter(&t.query, 0, NULL, &t.k.q, no_thresholds, &t.error) == DEVICE_OK &&
			  shared_query_place(t.query, 0, &t.error) == DEVICE_OK &&
			  device_ops.lane_open(&t.lane, 0, arena, BUFFER_BYTES, ARENA_BUFFERS, &t.error) ==
				  DEVICE_OK &&
			  (!t.two || open_other(&t.other, &t.query->wire, arena, &t.error)),
		  "%s", t.error.text);
	t.query->limit = limit;
	t.broken = draw(8) == 0;
	if (t.broken)
		stub_fail(draw(2) ? STUB_LAUNCH : STUB_COPY, 1 + draw(60), false, cudaErrorInvalidValue);
	else if (draw(2))
		stub_fail(STUB_ALLOC, 1 + draw(40), draw(2), cudaErrorMemoryAllocation);
	reduce_all_keys(&t, covered);
	/* with rows that the CPU takes there is no limit */
	t.query->limited = limited = limited && t.nlost == 0;
	if (t.two && !t.failed)
	{
		stub_mend();
		if (absorb_other(t.query, &t.other, &t.error))
			covered->absorbed++;
		else
		{
			/* the keys of rows that were not reduced may be lost */
			CHECK(t.broken, "seed %d: %s", t.seed, t.error.text);
			t.failed = true;
		}
	}
	covered->failed += t.failed;
	covered->forms[t.query->query->groups.form]++;
	covered->shortened += t.query->query->groups.hash.shortened;
	ngroups = fetch_all_groups(t.query, t.lane, arena, &t.k.q, t.groups, &t.error);
	stub_mend();
	t.n = combine_groups(t.rows, t.n);
	if (t.two && !t.failed && ngroups > 0)
		ngroups = remove_empty_groups(t.groups, ngroups, t.lost, t.nlost, t.seed);
	/* after a failure there are no groups, or too few */
	if (!t.failed)
		check_keys_groups(&t, ngroups, limited ? &limit : NULL);
	if (t.two)
		close_other(&t.other);
	shared_query_leave(t.query);
	device_ops.lane_close(t.lane);
	CHECK(budget_device(0)->used == 0 && budget_device(1)->used == 0 && stub_live() == 0,
		  "seed %d: memory was not freed", t.seed);
}

/* Random queries; with sanitizers a query takes several times as long. */
#ifdef __SANITIZE_ADDRESS__
#define QUERIES 700
#else
#define QUERIES 2000
#endif

static void
test_several_keys(void)
{
	Covered c = {.forms = {0}};

	for (int seed = 1; seed <= QUERIES; seed++)
		check_keys_query(seed, &c);
	CHECK(c.forms[FORM_DIRECT] > QUERIES / 10 && c.forms[FORM_HASH] > QUERIES / 10 &&
			  c.shortened > QUERIES / 10 && c.absorbed > QUERIES / 10 &&
			  c.not_reduced > QUERIES / 10 && c.failed > QUERIES / 100,
		  "too few queries of some kind");
	CHECK(stub_partitions > QUERIES / 10, "rows were partitioned by key only %d times",
		  stub_partitions);
	printf("# %d direct, %d hash, %d of more than 16 bytes, %d absorbed, %d failed, "
		   "%d batches not reduced\n",
		   c.forms[FORM_DIRECT], c.forms[FORM_HASH], c.shortened, c.absorbed, c.failed,
		   c.not_reduced);
}

int
main(void)
{
	WireStatus status = {0};
	DeviceError error = {""};

	stub_devices = DEVICES;
	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	RUN("queries of several keys have the right groups, also when calls fail", test_several_keys);
	return unit_done();
}
