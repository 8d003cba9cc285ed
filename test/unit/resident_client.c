/*
 * resident_client.c
 *	  A client that stores columns of the model, sends queries over them, and compares their
 *	  groups.
 */
#include "operators/hll.h"
#include "resident_test.h"
#include "device_cuda/limit.h"

/* ---- storing ---- */

bool
client_store(Peer *peer, const Model *m, int range, int col, bool *kept)
{
	const Range *r = &m->ranges[range];
	WireStore in = {
		.table = {m->id},
		.stamp = r->stamp,
		.range = range * 3,
		.nrows = r->nrows,
		.column = {.typid = 20 + col, .attno = col + 1, .scale = -1, .type = model_types[col]},
		.buffer = random_below(ARENA_BUFFERS),
		.validity = WIRE_NO_ARRAY,
	};
	char *to = peer->arena + (size_t) in.buffer * ARENA_BUFFER_BYTES;
	int width = wire_width(model_types[col]);
	WireStored stored;

	in.values = 64 * random_below(3);
	for (uint32_t row = 0; row < r->nrows; row++)
	{
		int64_t v = model_value(m, r, col, row);
		double x = (double) v;

		memcpy(to + in.values + (size_t) row * width, col == COL_X ? (void *) &x : (void *) &v,
			   width);
	}
	if (model_has_nulls(r, col))
	{
		in.validity = in.values + wire_align((size_t) r->nrows * width);
		memset(to + in.validity, 0, wire_bitmap_bytes(r->nrows));
		for (uint32_t row = 0; row < r->nrows; row++)
			to[in.validity + row / 8] |= !model_is_null(r, col, row) << row % 8;
	}
	if (!request(peer, MESSAGE_STORE, &in, sizeof(in), MESSAGE_STORED, &stored, sizeof(stored)))
		return false;
	CHECK(stored.buffer == in.buffer, "STORED names another buffer");
	*kept = stored.kept != 0;
	return true;
}

/* ---- queries ---- */

bool
client_open(Peer *peer, const TestQuery *t)
{
	WireQuery q = t->q;

	if (random_below(2))
		q.flags |= WIRE_LATE;
	return request(peer, MESSAGE_OPEN, &q, sizeof(q), MESSAGE_OPENED, &q, 0);
}

bool client_last_taken;

/* Sends RESIDENT once. Returns false if the connection failed. */
static bool
send_resident_once(Peer *peer, TestQuery *t, bool *taken)
{
	char message[sizeof(WireResident) + SPANS * sizeof(WireSpan)];
	WireResided resided;

	test_query_lay_out(t);
	memcpy(peer->arena + (size_t) t->in.buffer * ARENA_BUFFER_BYTES, t->sent,
		   t->in.nrow_ranges * sizeof(WireRowRange));
	memcpy(message, &t->in, sizeof(t->in));
	memcpy(message + sizeof(t->in), t->spans, t->in.nspans * sizeof(WireSpan));
	if (!request(peer, MESSAGE_RESIDENT, message, sizeof(t->in) + t->in.nspans * sizeof(WireSpan),
				 MESSAGE_RESIDED, &resided, sizeof(resided)))
		return false;
	CHECK(resided.buffer == t->in.buffer, "RESIDED names another buffer");
	*taken = client_last_taken = resided.taken != 0;
	return true;
}

int client_named_spans_taken;

bool
client_send_resident(Peer *peer, TestQuery *t, bool *taken)
{
	for (;;)
	{
		uint64_t lacking[SPANS];
		bool again = false;

		if (!send_resident_once(peer, t, taken))
			return false;
		for (int s = 0; s < SPANS && *taken; s++)
			client_named_spans_taken += t->named[s];
		if (*taken)
			return true;
		memcpy(lacking,
			   peer->arena + (size_t) t->in.buffer * ARENA_BUFFER_BYTES +
				   wire_align(t->in.nrow_ranges * sizeof(WireRowRange)) +
				   t->in.nrow_ranges * sizeof(uint64_t),
			   t->in.nspans * sizeof(uint64_t));
		for (uint32_t i = 0; i < t->in.nspans; i++)
		{
			bool *named = &t->named[t->spans[i].first / (3 * SPAN_RANGES)];

			CHECK(*named || lacking[i] == 0, "a span whose row ranges were sent is lacking");
			again |= lacking[i] != 0;
			if (lacking[i] != 0)
				*named = false;
		}
		if (!again)
			return true;
	}
}

bool
client_store_lacking(Peer *peer, const TestQuery *t, const Model *m, bool *any, bool *all_kept)
{
	uint64_t lacking[3 * RANGES];

	memcpy(lacking,
		   peer->arena + (size_t) t->in.buffer * ARENA_BUFFER_BYTES +
			   wire_align(t->in.nrow_ranges * sizeof(WireRowRange)),
		   t->in.nrow_ranges * sizeof(uint64_t));
	*any = false;
	*all_kept = true;
	for (uint32_t i = 0; i < t->in.nrow_ranges; i++)
		for (uint32_t c = 0; c < t->in.nstored; c++)
		{
			bool kept;

			CHECK(lacking[i] >> t->in.nstored == 0,
				  "lacking columns include some that the query does not read");
			if (!(lacking[i] >> c & 1))
				continue;
			*any = true;
			if (!client_store(peer, m, t->sent[i].range / 3, t->in.stored[c].attno - 1, &kept))
				return false;
			*all_kept = *all_kept && kept;
		}
	return true;
}

/* ---- groups ---- */

/*
 * The number of groups that a limit may leave in excess. Kernels are not compiled with the small
 * constants of the tests.
 */
#ifdef OVER_GPU
#define MAX_EXCESS 64
#else
#define MAX_EXCESS LIMIT_SPARE
#endif

static WireLimit limit; /* the limit of the next FINISH, if `limited` */
static bool limited;

/* Draws a key, a count or a sum. The sum is NULL where the count is 0, or never. */
static WireValue
draw_value(const TestQuery *t)
{
	int slot = random_below(3) - 1;

	if (slot == 1 && t->q.slots[1].width > 1)
		slot = 0;
	return (WireValue){.slot = slot, .counted = slot == 1 && random_below(2) ? 0 : -1};
}

/* Draws the limit of a query: sets `limited`, and `limit` at random. */
static void
draw_limit(const TestQuery *t)
{
	/* only for queries with one key */
	limited = t->keyed && t->kind != TWO_KEYS && random_below(3) == 0;
	limit = (WireLimit){.count = random_below(3) * (1 + random_below(20)),
						.nsort = 1 + random_below(WIRE_MAX_SORT),
						.ties = random_below(2),
						.nconditions = random_below(3)};
	for (uint32_t w = 0; w < limit.nsort; w++)
		limit.by[w] = (WireSort){draw_value(t), random_below(2), random_below(2)};
	for (uint32_t c = 0; c < limit.nconditions; c++)
	{
		int64_t middle = random_below(200) - 50;

		limit.conditions[c] =
			(WireCondition){draw_value(t), random_below(2) ? INT64_MIN : middle - random_below(100),
							random_below(2) ? INT64_MAX : middle + random_below(1000)};
	}
	limited = limited && (limit.count > 0 || limit.nconditions > 0);
}

/* Sets *value to the group's value. Returns false if it is NULL. */
static bool
group_value(const Group *g, const WireValue *of, int64_t *value)
{
	*value = of->slot < 0 ? (int32_t) g->key : of->slot == 0 ? g->count : g->sum;
	return of->slot < 0 ? g->key >> 32 == 0 : of->counted < 0 || g->count > 0;
}

/* Compares the registers with those of the group's rows. */
static void
check_sketch(const TestQuery *t, const Model *m, const Group *g, const int32_t *registers,
			 const char *what)
{
	static uint8_t expected[GPUAGG_HLL_REGISTERS];
	int bad = 0;

	memset(expected, 0, sizeof(expected));
	for (uint32_t i = 0; i < t->nrow_ranges; i++)
		for (uint32_t row = t->row_ranges[i].first;
			 row < t->row_ranges[i].first + t->row_ranges[i].nrows; row++)
		{
			const Range *r = &m->ranges[t->row_ranges[i].range / 3];
			uint64_t key;
			int64_t sum;
			int reg, rank;

			if (test_query_row_outcome(t, m, r, row, &key, &sum) != 1 || key != g->key ||
				model_is_null(r, COL_V, row))
				continue;
			gpuagg_bin_hll((uint64_t) model_value(m, r, COL_V, row), &reg, &rank);
			expected[reg] = (uint8_t) hll_max_combine(expected[reg], rank);
		}
	for (int r = 0; r < GPUAGG_HLL_REGISTERS; r++)
		bad += registers[r] != expected[r];
	CHECK(bad == 0, "%s: %d wrong registers of group %d", what, bad, (int) g->key);
}

/* Compares two groups by the order of the limit. */
static int
compare_by_limit(const void *a, const void *b)
{
	for (uint32_t w = 0; w < limit.nsort; w++)
	{
		const WireSort *by = &limit.by[w];
		int64_t x = 0, y = 0;
		bool x_valid = group_value(a, &by->value, &x), y_valid = group_value(b, &by->value, &y);

		if (x_valid != y_valid)
			return x_valid == (by->nulls_first != 0) ? 1 : -1;
		if (x_valid && x != y)
			return (x < y) == (by->descending != 0) ? 1 : -1;
	}
	return 0;
}

/* Returns whether a group meets all conditions of `limit`. A NULL meets none. */
static bool
meets_conditions(const Group *g)
{
	for (uint32_t c = 0; c < limit.nconditions; c++)
	{
		int64_t value;

		if (!group_value(g, &limit.conditions[c].value, &value) ||
			value < limit.conditions[c].min || value > limit.conditions[c].max)
			return false;
	}
	return true;
}

/* Removes the groups that do not meet the conditions. Returns the number of those left. */
static int
apply_conditions(Group *expected, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (meets_conditions(&expected[i]))
			expected[kept++] = expected[i];
	return kept;
}

/* Returns the group that equals *like in key and sum, or NULL. groups[] is sorted. */
static const Group *
find_group(const Group *groups, int n, const Group *like)
{
	return bsearch(like, groups, n, sizeof(*groups), groups_compare);
}

/*
 * Returns whether the fetched groups are those within the limit. Each must equal an expected one.
 * They must contain all groups that come before the last of the first `count`, and enough of those
 * that tie with it, or all. Few others may be among them. `n` is the number of expected groups that
 * meet the conditions.
 */
static bool
is_within_limit(const Group *expected, int n, const Group *groups, int ngroups)
{
	int count = limit.count > 0 && limit.count < (uint64_t) n ? (int) limit.count : n;
	Group *sorted = malloc((n + 1) * sizeof(*sorted));
	int wanted = 0;
	bool ok = ngroups >= count;

	memcpy(sorted, expected, n * sizeof(*sorted));
	if (limit.count > 0)
		qsort(sorted, n, sizeof(*sorted), compare_by_limit);
	for (int i = 0; i < n && ok; i++)
	{
		int place = count < n ? compare_by_limit(&expected[i], &sorted[count - 1]) : -1;

		wanted += place < 0 || (place == 0 && limit.ties);
		ok =
			find_group(groups, ngroups, &expected[i]) || !(place < 0 || (place == 0 && limit.ties));
	}
	wanted = wanted < count ? count : wanted;
	for (int g = 0; g < ngroups && ok; g++)
	{
		const Group *found = find_group(expected, n, &groups[g]);

		ok = found && memcmp(found, &groups[g], sizeof(*found)) == 0;
	}
	free(sorted);
	return ok && ngroups <= wanted + MAX_EXCESS;
}

/* Reads a fetched group from the arena. Checks its sketch, if it has one. */
static void
read_group(const Peer *peer, const TestQuery *t, const Model *m, const WireGroups *fetched,
		   uint32_t g, Group *group, const char *what)
{
	const char *const arena = peer->arena;
	const int64_t *sums = (const int64_t *) (arena + fetched->slots[1]);

	memcpy(&group->key, arena + fetched->keys + g * t->q.key_bytes, t->q.key_bytes);
	group->count = ((const int64_t *) (arena + fetched->slots[0]))[g];
	groups_clear_pairs(group);
	if (t->q.nslots > 2 && t->q.slots[2].bin_kind == WIRE_BIN_HLL && group->count > 0)
		check_sketch(t, m, group,
					 (const int32_t *) (arena + fetched->slots[2]) + g * GPUAGG_HLL_REGISTERS,
					 what);
	if (t->kind == PAIRS)
	{
		group->best = ((const gpuagg_kv *) (arena + fetched->slots[2]))[g];
		group->most = ((const int64_t *) (arena + fetched->slots[3]))[g];
		group->payloads = ((const int64_t *) (arena + fetched->slots[4]))[g];
	}
	for (int b = 0; b < t->q.slots[1].width; b++)
		group->sum += sums[g * t->q.slots[1].width + b] * (t->q.slots[1].width > 1 ? b : 1);
}

bool
client_check_answer(Peer *peer, const TestQuery *t, const Model *m, Group *expected, int n,
					uint64_t undetermined, const char *what)
{
	WireFinished finished;
	Group *groups;
	int at = 0, all = n;
	bool ok = true;
	WireFinish finish = {.first = 0};
	WireGroups ahead = {.n = 0};

	draw_limit(t);
	if (limited)
		finish.limit = limit;
	finish.if_taken = client_last_taken && random_below(2);
	finish.first = random_below(2) ? 1 + random_below(1000) : 0;
	if (!request(peer, MESSAGE_FINISH, &finish,
				 limited || finish.if_taken || finish.first ? sizeof(finish) : 0, MESSAGE_FINISHED,
				 &finished, sizeof(finished)))
		return false;
	if (finish.first > 0 && finished.ngroups > 0 &&
		!receive_answer(peer, MESSAGE_GROUPS, &ahead, sizeof(ahead)))
		return false;
	CHECK(finished.undetermined == undetermined, "%s: %d rows undetermined, expected %d", what,
		  (int) finished.undetermined, (int) undetermined);
	/* such rows may be in groups, or not */
	if (t->kind == FLOATS && undetermined > 0)
		return true;
	if (limited)
	{
		/* without memory no group is left out */
		if (finished.ngroups < finished.allgroups || !device_was_short())
			n = apply_conditions(expected, n);
		CHECK(finished.failed == (uint64_t) (all - n), "%s: %d groups failed, expected %d", what,
			  (int) finished.failed, all - n);
	}
	CHECK(!t->keyed || finished.allgroups == (uint64_t) all, "%s: %d groups in all, expected %d",
		  what, (int) finished.allgroups, all);
	groups = calloc(finished.ngroups + 1, sizeof(*groups));
	while (ok && (uint64_t) at < finished.ngroups)
	{
		WireFetch fetch = {.first = at, .max = finished.ngroups - at};
		WireGroups got;

		if (at == 0 && ahead.n > 0)
			got = ahead;
		else
			ok = request(peer, MESSAGE_FETCH, &fetch, sizeof(fetch), MESSAGE_GROUPS, &got,
						 sizeof(got)) &&
				got.n > 0;
		for (uint32_t g = 0; ok && g < got.n; g++, at++)
			read_group(peer, t, m, &got, g, &groups[at], what);
	}
	if (ok)
	{
		qsort(groups, at, sizeof(*groups), groups_compare);
		/* without keys there may be a group without rows */
		if (!t->keyed && at == 1 && groups[0].count == 0)
			at = 0;
		CHECK(limited && finished.ngroups < finished.allgroups ?
				  is_within_limit(expected, n, groups, at) :
				  at == n && memcmp(groups, expected, n * sizeof(*expected)) == 0,
			  "%s: %d groups, expected %d, or they differ (%d rows in the first, expected %d)",
			  what, at, n, at ? (int) groups[0].count : 0, n ? (int) expected[0].count : 0);
	}
	free(groups);
	return ok;
}
