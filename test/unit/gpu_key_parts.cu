/*
 * gpu_key_parts.cu
 *	  Tests group-by of rows that are partitioned by key. Reference: a lookup of each row and a
 *	  histogram of bins, whose states must have the same bits.
 */
#include "gpu_group_table.h"

#include <math.h>

#include <memory>
#include <unordered_map>

/* Host rows and their columns. */
struct PartRows
{
	int bytes; /* of a key */
	size_t n;
	std::vector<char> keys;
	std::vector<uint8_t> keep; /* the filter of rows */
	std::vector<double> floats;
	std::vector<int32_t> ints;
	std::vector<uint8_t> validity; /* of ints */
};

/* What rows a test has. */
struct PartCase
{
	int bytes;
	size_t n;
	uint64_t distinct;
	bool skew;
	bool filter;
	int nulls;      /* 0: none; 1: every third int is NULL; 2: all are */
	int64_t groups; /* estimate; 0: right */
};

static PartRows
make_part_rows(const PartCase &c, uint64_t seed)
{
	Random r(seed);
	PartRows rows;

	rows.bytes = c.bytes;
	rows.n = c.n;
	rows.keys.resize(c.n * c.bytes);
	rows.keep.assign(c.n, 1);
	rows.validity.assign((c.n + 7) / 8, 0);
	for (size_t i = 0; i < c.n; i++)
	{
		std::string key = random_key(r, c.bytes, c.distinct, c.skew);

		memcpy(&rows.keys[i * c.bytes], key.data(), c.bytes);
		if (c.filter && r.below(3) == 0)
			rows.keep[i] = 0;
		rows.floats.push_back(r.below(5000) == 0 ? INFINITY : (r.uniform() - 0.5) * 1000);
		rows.ints.push_back((int32_t) r.next());
		if (c.nulls == 0 || (c.nulls == 1 && r.below(3) > 0))
			rows.validity[i / 8] |= 1 << i % 8;
	}
	return rows;
}

/* The columns in device memory. */
struct PartColumnsOnDevice
{
	DeviceArray<char> keys;
	DeviceArray<uint8_t> keep;
	DeviceArray<double> floats;
	DeviceArray<int32_t> ints;
	DeviceArray<uint8_t> validity;

	explicit PartColumnsOnDevice(const PartRows &rows)
		: keys(rows.keys, 16), keep(rows.keep), floats(rows.floats), ints(rows.ints),
		  validity(rows.validity)
	{
	}
};

/* The operators that are reduced: each has an array of states. */
static const MonoidId part_ops[] = {MONOID_COUNT,   MONOID_SUM_F64, MONOID_SUM_I64,
									MONOID_MAX_F64, MONOID_COUNT,   MONOID_MIN_I64};
#define PART_OPS ((int) (sizeof(part_ops) / sizeof(part_ops[0])))

/* A table with states, as one of the two ways fills it. */
struct PartStates
{
	std::unique_ptr<Table> table;
	std::vector<std::unique_ptr<DeviceArray<char>>> states;
	DeviceArray<GpuaggHistStatus> status;
	int64_t groups = 0;

	PartStates(int bytes, int64_t capacity) : table(new Table(bytes, capacity)), status(1)
	{
		table->t.seed = 12345;
		STATUS_MUST(gpuagg_group_init(&table->t, nullptr));
		CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
		for (MonoidId op : part_ops)
		{
			states.emplace_back(new DeviceArray<char>(capacity * gpuagg_monoids[op].state_size));
			STATUS_MUST(gpuagg_hist_init(op, states.back()->get(), capacity, nullptr));
		}
	}

	GpuaggSlot
	slot(int s, const PartColumnsOnDevice &in, bool nulls) const
	{
		GpuaggSlot out = GpuaggSlot();

		out.op = part_ops[s];
		out.states = states[s]->get();
		if (s == 1 || s == 3)
		{
			out.x.values = in.floats.get();
			out.x.type = GPUAGG_VALUE_F64;
		}
		else if (s > 0)
		{
			out.x.values = in.ints.get();
			out.x.type = GPUAGG_VALUE_I32;
			out.x.validity = nulls ? in.validity.get() : nullptr;
		}
		return out;
	}

	/* Updates the slots from `from` up to `to` in one call. */
	void
	update(GpuaggHist hist, int from, int to, const PartColumnsOnDevice &in, bool nulls)
	{
		size_t bytes = 0;

		hist.status = status.get();
		hist.nslots = 0;
		for (int s = from; s < to; s++)
			hist.slot[hist.nslots++] = slot(s, in, nulls);
		STATUS_MUST(gpuagg_hist_update(&hist, nullptr, &bytes, nullptr));
		DeviceArray<char> workspace(bytes);

		STATUS_MUST(gpuagg_hist_update(&hist, workspace.get(), &bytes, nullptr));
		CHECK(workspace.guards_intact(), "workspace overrun");
	}

	/* Updates a common shape, and other operators together. */
	void
	update_all(const GpuaggHist &hist, const PartColumnsOnDevice &in, bool nulls)
	{
		update(hist, 0, 2, in, nulls);
		update(hist, 2, 3, in, nulls);
		update(hist, 3, PART_OPS, in, nulls);
	}
};

/* Reduces rows by a lookup of each. */
static void
reduce_rows(PartStates &out, const PartColumnsOnDevice &in, const PartCase &c)
{
	DeviceArray<int32_t> bins(c.n);
	GpuaggHist hist = GpuaggHist();

	STATUS_MUST(gpuagg_group_lookup(&out.table->t, in.keys.get(),
									c.filter ? in.keep.get() : nullptr, (int64_t) c.n, 0,
									bins.get(), nullptr));
	CHECK(out.table->outcome(&out.groups) == GPUAGG_CUDA_OK, "the table is full");
	if (out.groups == 0)
		return;
	hist.bins.kind = GPUAGG_BIN_INDEX;
	hist.bins.ncolumns = 1;
	hist.bins.column[0].values = bins.get();
	hist.bins.column[0].type = GPUAGG_VALUE_I32;
	hist.bins.nbins = out.groups;
	hist.nrows = (int64_t) c.n;
	out.update_all(hist, in, c.nulls > 0);
}

/*
 * Reduces rows by partitions of their keys. adopt: the table is empty, and takes the groups
 * without a lookup.  Returns whether there was room in the partitions.
 */
static bool
reduce_parts(PartStates &out, const PartColumnsOnDevice &in, const PartCase &c, bool adopt)
{
	GpuaggKeyParts parts = GpuaggKeyParts();
	GpuaggHist hist = GpuaggHist();
	GpuaggKeyCounts counts;
	const uint8_t *filter = c.filter ? in.keep.get() : nullptr;
	size_t bytes = 0;

	parts.nrows = (int64_t) c.n;
	parts.groups = c.groups ? c.groups : (int64_t) c.distinct;
	parts.numbers = c.nulls > 0;
	if (!parts.numbers)
	{
		parts.nmoved = 2;
		parts.moved[0].values = in.floats.get();
		parts.moved[0].type = GPUAGG_VALUE_F64;
		parts.moved[1].values = in.ints.get();
		parts.moved[1].type = GPUAGG_VALUE_I32;
	}
	STATUS_MUST(gpuagg_group_partition(&out.table->t, in.keys.get(), filter, &parts, nullptr,
									   &bytes, nullptr));
	DeviceArray<char> moved(bytes);

	STATUS_MUST(gpuagg_group_partition(&out.table->t, in.keys.get(), filter, &parts, moved.get(),
									   &bytes, nullptr));
	CUDA_MUST(cudaMemcpy(&counts, parts.counts, sizeof(counts), cudaMemcpyDeviceToHost));
	CHECK(moved.guards_intact(), "workspace of the partition overrun");
	if (counts.overflows > 0)
		return false;
	if (adopt)
	{
		STATUS_MUST(gpuagg_group_adopt(&out.table->t, &parts, (int64_t) counts.groups, nullptr));
		out.groups = (int64_t) counts.groups;
	}
	else
	{
		STATUS_MUST(gpuagg_group_lookup(&out.table->t, parts.keys, nullptr, (int64_t) counts.groups,
										0, parts.bins, nullptr));
		CHECK(out.table->outcome(&out.groups) == GPUAGG_CUDA_OK, "the table is full");
	}
	if (out.groups == 0)
		return true;
	hist.bins.nbins = out.groups;
	hist.nrows = (int64_t) c.n;
	hist.parts = &parts;
	out.update_all(hist, in, c.nulls > 0);
	if (adopt)
		STATUS_MUST(gpuagg_group_fill(&out.table->t, nullptr));
	CUDA_MUST(cudaDeviceSynchronize());
	CHECK(moved.guards_intact() && out.table->intact(), "memory of the partition overrun");
	return true;
}

/* Checks that both have the same groups, with the same bits in all states. */
static void
check_same_states(const PartStates &got, const PartStates &expect, int bytes)
{
	std::vector<char> got_keys = got.table->keys.take(got.groups * bytes),
					  keys = expect.table->keys.take(expect.groups * bytes);
	std::unordered_map<std::string, int64_t> bin;

	CHECK(got.groups == expect.groups, "%d-byte keys: %ld groups, expected %ld", bytes,
		  (long) got.groups, (long) expect.groups);
	for (int64_t b = 0; b < expect.groups; b++)
		bin[std::string(&keys[b * bytes], bytes)] = b;
	CHECK((int64_t) bin.size() == expect.groups, "a key has two bins");
	for (int s = 0; s < PART_OPS; s++)
	{
		size_t size = gpuagg_monoids[part_ops[s]].state_size;
		std::vector<char> a = got.states[s]->take(got.groups * size),
						  b = expect.states[s]->take(expect.groups * size);

		CHECK(got.states[s]->guards_intact(), "states overrun");
		for (int64_t g = 0; g < got.groups; g++)
		{
			auto at = bin.find(std::string(&got_keys[g * bytes], bytes));
			bool same = at != bin.end() && memcmp(&a[g * size], &b[at->second * size], size) == 0;

			CHECK(same, "%d-byte keys: slot %d of group %ld differs", bytes, s, (long) g);
			if (!same)
				break;
		}
	}
}

/* Reduces two batches of rows in both ways. */
static void
check_parts(const PartCase &c, uint64_t seed)
{
	int64_t capacity = 2 * (int64_t) c.n + 10;
	PartStates got(c.bytes, capacity), expect(c.bytes, capacity);

	for (int batch = 0; batch < 2; batch++)
	{
		PartRows rows = make_part_rows(c, seed + batch);
		PartColumnsOnDevice in(rows);
		/* the second batch finds groups of the first one in the table */
		bool room = reduce_parts(got, in, c, batch == 0 && seed % 2 == 0);

		CHECK(room, "%d-byte keys, %zu rows: too many groups in a partition", c.bytes, c.n);
		if (!room)
			return;
		reduce_rows(expect, in, c);
	}
	check_same_states(got, expect, c.bytes);
}

GPU_TEST(key_parts)
{
	uint64_t seed = 1;

	for (int bytes : {4, 8, 16})
		for (uint64_t distinct : {1, 3, 60000})
			for (size_t n : {0, 1, 4097, 100000})
				for (int flags = 0; flags < (n < 4097 ? 2 : 6); flags++)
					if (!gpu_test_quick() || (n == 4097 && flags < 4) ||
						(n == 100000 && flags == 5))
						check_parts(
							{bytes, n, distinct, (flags & 1) != 0, (flags & 2) != 0, flags / 2, 0},
							seed++);
}

/* So many groups that rows are moved in two steps. */
GPU_TEST(key_parts_two_steps)
{
	size_t n = 1700000;

	for (int bytes : {4, 8, 16})
		for (bool skew : {false, true})
			if (!gpu_test_quick() || (bytes == 8 && !skew))
				check_parts(
					{bytes, n, skew ? n : 10 * n, skew, skew, skew && bytes == 8, (int64_t) n},
					(uint64_t) (bytes + skew));
}

/* An estimate that is too low: some partition has too many groups, which is reported. */
GPU_TEST(key_parts_overflow)
{
	for (int bytes : {4, 8, 16})
	{
		PartCase c = {bytes, gpu_test_rows(2000000, 1300000), 1u << 30, false, false, 0, 1000};
		PartRows rows = make_part_rows(c, 1);
		PartColumnsOnDevice in(rows);
		PartStates out(bytes, 10);

		CHECK(!reduce_parts(out, in, c, false), "%d-byte keys: no overflow", bytes);
	}
}
