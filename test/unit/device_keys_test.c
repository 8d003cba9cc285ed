/*
 * device_keys_test.c
 *	  Tests queries with one to five keys of random widths and values. They go through the CUDA
 *	  device layer over the CUDA stub. In half of them, allocations of device memory fail at some
 *	  point.
 *
 * Reference: the groups of the batches that were reduced, combined on the host by sorting rows.
 */
#include "abandon.h"
#include "cuda/cases.h"
#include "cuda/cuda_stub.h"
#include "device_cuda/device_internal.h"

#define BUFFER_BYTES (1 << 17)

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

/* A random query with up to five keys. */
typedef struct KeysQuery
{
	WireQuery q;
	/* kind of the values: 0 few, 1 others in each batch, 2 the ends of the type, 3 scattered */
	int form[WIRE_MAX_KEYS];
	int first_null[WIRE_MAX_KEYS]; /* first batch with NULLs; KEYS_BATCHES: no NULLs */
} KeysQuery;

/*
 * Draws a query, with keys packed as the client packs them (engine_cuda/query.c). Returns false if
 * the keys are too wide.
 */
static bool
draw_keys_query(KeysQuery *k)
{
	static const GpuaggStrategy forced[] = {STRATEGY_AUTO, STRATEGY_DIRECT, STRATEGY_HASH};
	WireQuery *q = &k->q;
	int bytes = 0;
	bool nulls;

	memset(k, 0, sizeof(*k));
	q->nkeys = 1 + draw(5);
	for (int i = 0; i < q->nkeys; i++)
	{
		int width = key_widths[draw(4)];

		q->keys[i] = (WireKey){.col = i, .width = width, .offset = bytes};
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
	/* count(*), or count(column), which does not show which direct bins have rows */
	add_slot(q, MONOID_COUNT, draw(2) ? -1 : (int) q->nkeys);
	return true;
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

/* Tests one random query. In half of them, allocations fail at some point. */
static void
check_keys_query(uint64_t seed, int forms[FORM_HASH + 1], int *not_reduced)
{
	static KeysGroup rows[KEYS_BATCHES * KEYS_ROWS], groups[KEYS_BATCHES * KEYS_ROWS];
	static const double no_thresholds[1];
	static char *arena;
	KeysQuery k;
	SharedQuery *query = NULL;
	Lane *lane = NULL;
	DeviceError error = {""};
	int n = 0, ngroups;

	if (arena == NULL)
		arena = malloc(ARENA_BUFFERS * BUFFER_BYTES);
	random_state = seed;
	while (!draw_keys_query(&k))
		;
	CHECK(shared_query_enter(&query, 0, NULL, &k.q, no_thresholds, &error) == DEVICE_OK &&
			  shared_query_place(query, 0, &error) == DEVICE_OK &&
			  device_ops.lane_open(&lane, 0, arena, BUFFER_BYTES, ARENA_BUFFERS, &error) ==
				  DEVICE_OK,
		  "%s", error.text);
	if (draw(2))
		stub_fail(STUB_ALLOC, 1 + draw(40), draw(2), cudaErrorMemoryAllocation);
	for (int b = 0; b < KEYS_BATCHES; b++)
	{
		WireBatch batch;
		size_t bytes;
		DeviceStatus status;

		draw_batch(&k, b, arena, &batch, rows + n);
		status = shared_query_copy(query, lane, &batch, &bytes, &error);
		if (status == DEVICE_OK)
			status = shared_query_reduce(query, lane, &batch, &error);
		CHECK(status == DEVICE_OK || status == DEVICE_FULL, "seed %d, batch %d: %s", (int) seed, b,
			  error.text);
		n += status == DEVICE_OK ? KEYS_ROWS : 0;
		*not_reduced += status != DEVICE_OK;
	}
	forms[query->query->groups.form]++;
	ngroups = fetch_all_groups(query, lane, arena, &k.q, groups, &error);
	stub_mend();
	if (ngroups >= 0)
	{
		qsort(groups, ngroups, sizeof(*groups), compare_groups);
		n = combine_groups(rows, n);
		CHECK(ngroups == n && memcmp(rows, groups, n * sizeof(*rows)) == 0,
			  "seed %d: %d groups, expected %d, or they differ", (int) seed, ngroups, n);
	}
	else
		CHECK(0, "seed %d: no groups: %s", (int) seed, error.text);
	shared_query_leave(query);
	device_ops.lane_close(lane);
	CHECK(budget_device(0)->used == 0 && stub_live() == 0, "seed %d: memory was not freed",
		  (int) seed);
}

static void
test_several_keys(void)
{
	int forms[FORM_HASH + 1] = {0};
	int not_reduced = 0;

	for (int seed = 1; seed <= 3000; seed++)
		check_keys_query(seed, forms, &not_reduced);
	CHECK(forms[FORM_DIRECT] > 300 && forms[FORM_HASH] > 300 && not_reduced > 300,
		  "%d direct, %d hash, %d batches not reduced", forms[FORM_DIRECT], forms[FORM_HASH],
		  not_reduced);
	printf("# %d direct, %d hash, %d batches not reduced\n", forms[FORM_DIRECT], forms[FORM_HASH],
		   not_reduced);
}

int
main(void)
{
	WireStatus status = {0};
	DeviceError error = {""};

	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	RUN("queries of several keys have the right groups, also when allocations fail",
		test_several_keys);
	return unit_done();
}
