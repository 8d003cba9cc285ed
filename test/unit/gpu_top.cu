/*
 * gpu_top.cu
 *	  Tests the kernels that find the groups within a limit (device_top_groups). Reference: the
 *	  same search on the host (limit_host.h).
 */
#include "gpu_test.h"
#include "limit_host.h"
#include "device_cuda/kernels.h"

enum
{
	SLOT_COUNT, /* 0 in some groups, whose sums are NULL */
	SLOT_SUM,
	SLOT_WIDE, /* 128 bits; where 64 are too few, the order uses the nearest 64-bit number */
	SLOT_FLOAT,
	SLOTS
};

/* The states of n groups and their keys: an integer of 32 bits, and a byte with its NULL bit. */
struct Groups
{
	std::vector<int64_t> counts, sums, keys;
	std::vector<gpuagg_i128> wide;
	std::vector<double> floats;
};

/* Makes groups with few different values, so that they tie, and with special ones. */
static Groups
make_groups(Random &r, int64_t n, int kinds)
{
	static const int64_t special[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, 0, -1};
	Groups groups;

	for (int64_t i = 0; i < n; i++)
	{
		int64_t v = (int64_t) r.below(kinds) - kinds / 2;
		bool null = r.below(10) == 0;

		groups.counts.push_back((int64_t) r.below(kinds < 4 ? kinds : 4));
		groups.sums.push_back(r.below(20) == 0 ? special[r.below(6)] : v);
		groups.wide.push_back((gpuagg_i128) v * (r.below(2) ? (gpuagg_i128) INT64_MAX : 1));
		groups.floats.push_back(r.below(30) == 0 ? -0.0 : (double) v / 4);
		groups.keys.push_back(null ? INT64_C(1) << 32 : (int64_t) (uint32_t) (int32_t) (v * 31));
	}
	return groups;
}

static WireValue
random_value(Random &r)
{
	WireValue value = {(int16_t) ((int) r.below(SLOTS + 1) - 1), 0, -1, 0};

	if (value.slot > 0 && r.below(2))
		value.counted = SLOT_COUNT;
	value.mean = value.slot == SLOT_FLOAT && value.counted >= 0 && r.below(2);
	return value;
}

/* Returns a random limit on n groups. */
static WireLimit
random_limit(Random &r, int64_t n)
{
	WireLimit limit = {};

	limit.count = r.below(8) == 0 ? 0 : 1 + r.below(r.below(3) == 0 ? n + 10 : 20);
	limit.nsort = 1 + (uint32_t) r.below(WIRE_MAX_SORT);
	limit.ties = (uint32_t) r.below(2);
	limit.nconditions = (uint32_t) r.below(3);
	for (uint32_t i = 0; i < limit.nsort; i++)
		limit.by[i] = {random_value(r), (uint16_t) r.below(2), (uint16_t) r.below(2)};
	for (uint32_t i = 0; i < limit.nconditions; i++)
		limit.conditions[i] = {random_value(r), r.below(2) ? INT64_MIN : -(int64_t) r.below(50),
							   INT64_MAX};
	return limit;
}

/* The groups on the host, with the plan for them. */
struct HostGroups
{
	const TopGroups *top;
	const Groups *groups;
};

static const char *
host_key(const void *arg, int64_t g, char *)
{
	const HostGroups *host = (const HostGroups *) arg;
	const char *key = (const char *) &host->groups->keys[g];

	if (host->top->counts && host->groups->counts[g] == 0)
		return nullptr;
	return limit_passes(&host->top->plan, g, key) ? key : nullptr;
}

/* Compares the groups that the device selects with those selected on the host. */
static void
check_top(const Groups &groups, const WireQuery &q, const WireLimit &limit, bool sparse,
		  const char *what)
{
	int64_t n = (int64_t) groups.counts.size();
	DeviceArray<int64_t> counts(groups.counts), sums(groups.sums), keys(groups.keys);
	DeviceArray<gpuagg_i128> wide(groups.wide);
	DeviceArray<double> floats(groups.floats);
	DeviceArray<int32_t> list(n), nlisted(1);
	DeviceArray<TopCounts> found(1);
	const void *host_slots[] = {groups.counts.data(), groups.sums.data(), groups.wide.data(),
								groups.floats.data()};
	const void *slots[] = {counts.get(), sums.get(), wide.get(), floats.get()};
	TopGroups top = {};
	TopGroups on_host;
	static LimitSearch search;
	std::vector<int32_t> expected_list;
	TopCounts expected = {};
	size_t bytes = 0;

	top.counts = sparse ? counts.get() : nullptr;
	top.keys.key_bytes = top.keys.table_bytes = 8;
	top.keys.null_offset = 4;
	top.keys.table = keys.get();
	top.keys.nkeys = 1;
	on_host = top;
	top.plan = limit_plan(&q, &limit, slots);
	top.reads_keys = limit_reads_keys(&top.plan);
	on_host.plan = limit_plan(&q, &limit, host_slots);

	HostGroups host = {&on_host, &groups};

	for (int64_t g = 0; g < n; g++)
	{
		bool has_rows = !sparse || groups.counts[g] > 0;

		expected.all += has_rows;
		expected.failed += has_rows && host_key(&host, g, nullptr) == nullptr;
	}
	limit_search(&on_host.plan, host_key, &host, n, expected.all - expected.failed, &search);
	for (int64_t g = 0; g < n; g++)
	{
		const char *key = host_key(&host, g, nullptr);

		if (key && limit_contains(&on_host.plan, &search, g, key))
			expected_list.push_back((int32_t) g);
	}
	STATUS_MUST(device_top_groups(&top, n, nullptr, nullptr, nullptr, nullptr, &bytes, nullptr));
	DeviceArray<char> workspace(bytes);
	STATUS_MUST(device_top_groups(&top, n, list.get(), nlisted.get(), found.get(), workspace.get(),
								  &bytes, nullptr));

	TopCounts counted = found.take()[0];
	int32_t ngot = nlisted.take()[0];
	std::vector<int32_t> got = list.take(ngot > 0 ? ngot : 0);

	CHECK(counted.all == expected.all && counted.failed == expected.failed,
		  "%s: %d groups, %d failed; expected %d, %d", what, counted.all, counted.failed,
		  expected.all, expected.failed);
	CHECK(got == expected_list, "%s: %d groups, expected %d, or they differ", what, ngot,
		  (int) expected_list.size());
	if (limit.count > 0 && !limit.ties && limit.nsort == 1 && limit.by[0].value.slot == SLOT_COUNT)
		CHECK((uint64_t) ngot <= limit.count + LIMIT_SPARE, "%s: %d groups with a limit of %d",
			  what, ngot, (int) limit.count);
}

/* Returns a query with an int4 key and one slot of each state type. */
static WireQuery
make_query()
{
	static const MonoidId monoids[] = {MONOID_COUNT, MONOID_SUM_I64, MONOID_SUM_I128,
									   MONOID_SUM_F64};
	WireQuery q = {};

	q.nkeys = 1;
	q.key_bytes = 8;
	q.null_offset = 4;
	q.keys[0].width = 4;
	q.nslots = SLOTS;
	for (int s = 0; s < SLOTS; s++)
		q.slots[s].monoid = monoids[s];
	return q;
}

GPU_TEST(top_groups)
{
	static const int64_t sizes[] = {1, 33, 700, 3000, 20000};
	WireQuery q = make_query();
	Random r(11);

	for (int round = 0; round < (gpu_test_quick() ? 60 : 400); round++)
	{
		char what[64];
		Groups groups = make_groups(r, sizes[round % 5],
									round % 3 == 0     ? 2 :
										round % 3 == 1 ? 100 :
														 1 << 20);

		snprintf(what, sizeof(what), "round %d", round);
		check_top(groups, q, random_limit(r, sizes[round % 5]), r.below(2), what);
	}
}

/* All groups are equal: ordered only by a count, and by a count and the key. */
GPU_TEST(top_equal_groups)
{
	int64_t n = gpu_test_quick() ? 30000 : 1 << 20;
	WireQuery q = make_query();
	Random r(12);
	Groups groups = make_groups(r, n, 1);
	WireLimit limit = {};

	limit.count = 10;
	limit.nsort = 1;
	limit.by[0] = {{SLOT_COUNT, 0, -1, 0}, 1, 0};
	check_top(groups, q, limit, false, "equal counts");
	limit.ties = 1;
	check_top(groups, q, limit, false, "equal counts with ties");
	for (int64_t g = 0; g < n; g++)
		groups.keys[g] = (int64_t) (uint32_t) (int32_t) (g * 7919 % n - n / 2);
	limit.nsort = 2;
	limit.by[1] = {{-1, 0, -1, 0}, 0, 0};
	check_top(groups, q, limit, false, "equal counts, then by key");
}
