/*
 * gpu_group_update.cu
 *	  Group-by as one operation against the CPU monoids: every way it takes,
 *	  tables that are too small, and estimates that are wrong.
 */
#include "gpu_group_table.h"
#include "gpu_hist_reference.h"
#include "operators/gpu_hash.h"

#include <map>
#include <memory>
#include <unordered_map>

struct Case
{
	int			key_bytes;
	std::vector<MonoidId> ops;
	GpuaggHistStrategy strategy;
	uint64_t	distinct;
	size_t		n;
	int			batches = 1;
	int64_t		capacity = 0;	/* of the first table; 0: as many as there may be */
	int64_t		estimate = -1;	/* -1: the truth */
	Spread		spread = PLAIN;
	bool		nulls = false;	/* among the keys */
	bool		filter = false;
	bool		skew = false;	/* three keys have three quarters of the rows */
	bool		narrow = false;	/* values of 4 bytes */
	bool		slot_nulls = false;	/* among the values */
};

/* What the errors of a float state are in proportion to: the finite inputs of one group and slot. */
struct GroupMagnitude
{
	double		sum = 0,		/* exact enough for a sum in single precision */
				x = 0,
				xx = 0;
};

/* Groups by key, the NULL key as an empty string, with their states as bytes. */
typedef std::map<std::string, std::vector<std::vector<char>>> Groups;

struct Grouping
{
	const Case &c;
	std::unique_ptr<Table> table;
	std::vector<std::unique_ptr<DeviceArray<char>>> states;
	DeviceArray<GpuaggHistStatus> status{1};
	std::unordered_map<std::string, int64_t> index;
	std::vector<std::vector<char>> expect;
	std::vector<std::vector<GroupMagnitude>> magnitude;
	int64_t		groups = 0,
				null_bin = -1;
	int			grown = 0;

	explicit Grouping(const Case &of) : c(of), expect(of.ops.size()), magnitude(of.ops.size())
	{
		int64_t		most = (int64_t) std::max<uint64_t>(std::min<uint64_t>(c.distinct, c.n * c.batches), 3) + 1;

		CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
		table.reset(new Table(c.key_bytes, c.capacity ? c.capacity : most));
		STATUS_MUST(gpuagg_group_init(&table->t, nullptr));
		make_states(nullptr);
		for (size_t s = 0; s < c.ops.size(); s++)
		{
			reference_init(c.ops[s], expect[s], most);
			magnitude[s].resize(most);
		}
	}
	int64_t
	index_of(const std::string &key)
	{
		return index.emplace(key, (int64_t) index.size()).first->second;
	}
	/* For the table's capacity, with what there was. */
	void
	make_states(const Table *before)
	{
		for (size_t s = 0; s < c.ops.size(); s++)
		{
			size_t		size = gpuagg_monoids[c.ops[s]].state_size;
			auto	   *made = new DeviceArray<char>(table->t.capacity * size);

			STATUS_MUST(gpuagg_hist_init(c.ops[s], made->get(), table->t.capacity, nullptr));
			if (before)
			{
				CUDA_MUST(cudaMemcpy(made->get(), states[s]->get(), before->t.capacity * size, cudaMemcpyDeviceToDevice));
				CHECK(states[s]->guards_intact(), "states overrun");
				states[s].reset(made);
			}
			else
				states.emplace_back(made);
		}
	}
	void
	grow()
	{
		std::unique_ptr<Table> larger(new Table(c.key_bytes, table->t.capacity * 2));

		STATUS_MUST(gpuagg_group_grow(&table->t, &larger->t, nullptr));
		CUDA_MUST(cudaDeviceSynchronize());
		CHECK(table->intact(), "table overrun");
		table.swap(larger);
		make_states(larger.get());
		grown++;
	}
	void run(GpuaggHist &h, const void *keys, const uint8_t *valid, const uint8_t *keep);
	void fill(Random &r, size_t s, Column &x, Column &y, GpuaggSlot &slot);
	void expect_row(size_t s, int64_t group, Input in);
	void batch(Random &r);
	Groups got();
	void check();
};

/* One batch, as often as the table has to grow. */
void
Grouping::run(GpuaggHist &h, const void *keys, const uint8_t *valid, const uint8_t *keep)
{
	std::unique_ptr<DeviceArray<char>> workspace;
	int64_t		estimate = c.estimate >= 0 ? c.estimate : (int64_t) std::min<uint64_t>(c.distinct, c.n);

	for (int tries = 0; tries <= 40; tries++)
	{
		size_t		bytes = 0;
		int64_t		pending;

		for (size_t s = 0; s < c.ops.size(); s++)
			h.slot[s].states = states[s]->get();
		STATUS_MUST(gpuagg_group_update(&table->t, keys, valid, keep, &h, estimate, tries > 0, nullptr, &bytes, nullptr));
		/* initcheck would report a copy of what was not written: there, the first is large enough for all */
		if (!workspace || !gpu_test_unpoisoned() || workspace->count < bytes)
		{
			std::unique_ptr<DeviceArray<char>> next(new DeviceArray<char>(bytes + (gpu_test_unpoisoned() ? 64 << 20 : 0)));

			if (workspace)
				CUDA_MUST(cudaMemcpy(next->get(), workspace->get(), std::min(workspace->count, bytes),
									 cudaMemcpyDeviceToDevice));
			workspace.swap(next);
		}
		STATUS_MUST(gpuagg_group_update(&table->t, keys, valid, keep, &h, estimate, tries > 0, workspace->get(), &bytes,
										nullptr));
		GpuaggCudaStatus status = gpuagg_group_status(&table->t, &groups, &pending, &null_bin, nullptr);

		CHECK(workspace->guards_intact(), "workspace overrun");
		if (status != GPUAGG_CUDA_FULL)
		{
			STATUS_MUST(status);
			return;
		}
		CHECK(pending > 0, "full, but no row pending");
		grow();
	}
	CHECK(false, "no end of growing");
}

static GpuaggValueType
value_type(MonoidId op, bool narrow)
{
	GpuaggValueType t = own_type(op);

	return !narrow ? t : t == GPUAGG_VALUE_F64 ? GPUAGG_VALUE_F32 : t == GPUAGG_VALUE_I64 ? GPUAGG_VALUE_I32 : t;
}

/* Fills a slot's columns and names them in *slot. */
void
Grouping::fill(Random &r, size_t s, Column &x, Column &y, GpuaggSlot &slot)
{
	GpuaggValueType t = value_type(c.ops[s], c.narrow);

	fill_column(x, r, t, c.n, c.spread, c.slot_nulls && s % 2);
	x.upload(size_of(t));
	slot.op = c.ops[s];
	slot.x = x.get();
	if (c.ops[s] == MONOID_COUNT && !c.slot_nulls)
		slot.x = GpuaggColumn();
	if (takes_pairs(c.ops[s]))
	{
		fill_column(y, r, t, c.n, c.spread, c.slot_nulls && s % 3 == 0);
		y.upload(size_of(t));
		slot.y = y.get();
	}
}

void
Grouping::expect_row(size_t s, int64_t group, Input in)
{
	GpuaggValueType t = own_type(c.ops[s]);

	reference_step(c.ops[s], expect[s], group, in);
	if (t == GPUAGG_VALUE_F64 || t == GPUAGG_VALUE_F32)
	{
		double		v = as_double(in.lo);
		GroupMagnitude  &m = magnitude[s][group];

		m.sum += v;
		m.x += isfinite(v) ? fabs(v) : 0;
		m.xx += isfinite(v) ? v * v : 0;
	}
}

void
Grouping::batch(Random &r)
{
	GpuaggHist	h = GpuaggHist();
	Column		x[GPUAGG_MAX_SLOTS],
				y[GPUAGG_MAX_SLOTS];
	std::vector<char> keys(c.n * c.key_bytes);
	std::vector<uint8_t> valid((c.n + 7) / 8, 0xff),
				keep(c.n, 1);

	h.nslots = (int) c.ops.size();
	h.nrows = (int64_t) c.n;
	h.status = status.get();
	h.strategy = c.strategy;
	for (size_t s = 0; s < c.ops.size(); s++)
		fill(r, s, x[s], y[s], h.slot[s]);
	for (size_t i = 0; i < c.n; i++)
	{
		std::string key = random_key(r, c.key_bytes, c.distinct, c.skew);

		memcpy(&keys[i * c.key_bytes], key.data(), c.key_bytes);
		if (c.nulls && r.below(10) == 0)
		{
			valid[i / 8] &= ~(1 << (i % 8));
			key.clear();
		}
		if (c.filter && r.below(3) == 0)
		{
			keep[i] = 0;
			continue;
		}

		int64_t		group = index_of(key);

		for (size_t s = 0; s < c.ops.size(); s++)
			if ((!h.slot[s].x.validity || x[s].ok(i)) && (!h.slot[s].y.validity || y[s].ok(i)))
			{
				Input		in = x[s].in[i];

				if (takes_pairs(c.ops[s]))
					in.hi = y[s].in[i].lo;
				expect_row(s, group, in);
			}
	}
	DeviceArray<char> device_keys(keys, 16);
	DeviceArray<uint8_t> device_valid(valid),
				device_keep(keep);

	run(h, device_keys.get(), c.nulls ? device_valid.get() : nullptr, c.filter ? device_keep.get() : nullptr);
	CUDA_MUST(cudaDeviceSynchronize());
}

Groups
Grouping::got()
{
	std::vector<char> unique = table->keys.take(groups * c.key_bytes);
	Groups		out;

	for (size_t s = 0; s < c.ops.size(); s++)
	{
		std::vector<char> all = states[s]->take();
		size_t		size = gpuagg_monoids[c.ops[s]].state_size;

		CHECK(states[s]->guards_intact(), "states overrun");
		for (int64_t b = 0; b < groups; b++)
		{
			std::string key(unique.data() + b * c.key_bytes, b == null_bin ? 0 : c.key_bytes);

			out[key].emplace_back(&all[b * size], &all[b * size] + size);
			CHECK(out[key].size() == s + 1, "two bins for one key");
		}
	}
	CHECK(table->intact(), "table overrun");
	return out;
}

/* NaN and infinities as such; false for NaN beside a number. */
static bool
within(double a, double b, double tolerance)
{
	if (isnan(b) || isinf(b))
		return isnan(b) ? isnan(a) : a == b;
	return fabs(a - b) <= tolerance;
}

/*
 * Whether a state is what is expected: floats up to the rounding of sums in
 * another order, of which the fold on the CPU has the most, n * 2^-53 of the sum
 * of magnitudes; sums in single precision are held against one in double
 * precision, and may be added row by row.
 */
static bool
state_is(MonoidId op, const char *has, const char *want, const GroupMagnitude &m)
{
	const double *a = (const double *) has;
	const double *b = (const double *) want;
	float		f;

	switch (op)
	{
		case MONOID_SUM_F32:
			memcpy(&f, has, sizeof(f));
			return within(f, m.sum, 1e-4 * m.x);
		case MONOID_SUM_F64:
			/* zeros with their sign */
			return within(a[0], b[0], 1e-12 * m.x) && (a[0] != 0 || b[0] != 0 || signbit(a[0]) == signbit(b[0]));
		case MONOID_ACCUM_F64:
			return a[0] == b[0] && within(a[1], b[1], 1e-12 * m.x) && within(a[2], b[2], 1e-10 * m.xx);
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
			return within(a[0], b[0], 0);
		default:
			return memcmp(has, want, gpuagg_monoids[op].state_size) == 0;
	}
}

/* All groups and slots. */
void
Grouping::check()
{
	Groups		have = got();
	GpuaggHistStatus noted = status.take()[0];

	for (size_t s = 0; s < c.ops.size() && c.spread == PLAIN; s++)
		CHECK(noted.errors[s] == 0, "%s, slot %zu: errors %u", gpuagg_monoids[c.ops[s]].name, s, noted.errors[s]);
	CHECK(groups == (int64_t) index.size(), "%d-byte keys, %zu rows, %lu distinct, strategy %d, estimate %ld: "
		  "%ld groups, expected %zu", c.key_bytes, c.n, (unsigned long) c.distinct, c.strategy, (long) c.estimate,
		  (long) groups, index.size());
	for (auto &k : index)
	{
		auto		h = have.find(k.first);

		CHECK(h != have.end(), "a key is missing");
		if (h == have.end())
			return;
		for (size_t s = 0; s < c.ops.size(); s++)
		{
			size_t		size = gpuagg_monoids[c.ops[s]].state_size;
			const char *want = &expect[s][k.second * size],
					   *has = h->second[s].data();
			const GroupMagnitude &m = magnitude[s][k.second];
			uint64_t	words[2] = {0, 0};

			if (state_is(c.ops[s], has, want, m))
				continue;
			memcpy(&words[0], has, std::min<size_t>(size, 8));
			memcpy(&words[1], want, std::min<size_t>(size, 8));
			CHECK(false, "%s, slot %zu of %zu, %d-byte keys, %zu rows x %d, %lu distinct, strategy %d, estimate %ld, "
				  "spread %d nulls %d filter %d slot nulls %d, grown %d, magnitude %g: %016lx, expected %016lx",
				  gpuagg_monoids[c.ops[s]].name, s, c.ops.size(), c.key_bytes, c.n, c.batches,
				  (unsigned long) c.distinct, c.strategy, (long) c.estimate, c.spread, c.nulls, c.filter, c.slot_nulls,
				  grown, m.x, (unsigned long) words[0], (unsigned long) words[1]);
			return;
		}
	}
}

static int
run_case(const Case &c, uint64_t seed)
{
	Random		r(seed);
	Grouping	g(c);

	for (int k = 0; k < c.batches; k++)
		g.batch(r);
	g.check();
	return g.grown;
}

/* ---- the tests ----------------------------------------------------------------------- */

static const GpuaggHistStrategy strategies[] = {GPUAGG_HIST_AUTO, GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION,
	GPUAGG_HIST_GLOBAL};

static const std::vector<std::vector<MonoidId>> shapes = {
	{MONOID_COUNT}, {MONOID_COUNT, MONOID_SUM_F64}, {MONOID_SUM_F64}, {MONOID_SUM_I64, MONOID_COUNT},
	{MONOID_SUM_F32}, {MONOID_SUM_F64, MONOID_MAX_I32, MONOID_ARGMAX, MONOID_COUNT}};

GPU_TEST(group_update_shapes)
{
	uint64_t	seed = 1;

	for (auto &ops : shapes)
		for (GpuaggHistStrategy strategy : strategies)
			for (int bytes : {4, 8, 16})
				for (int flags = 0; flags < 32; flags++)
				{
					Case		c = {bytes, ops, strategy, 3000, (size_t) (gpu_test_quick() ? 3001 : 6007)};

					if (gpu_test_quick() ? flags != (seed % 2 ? 10 : 21) : flags % 3 != (int) (seed % 3))
						continue;
					c.batches = 2;
					c.spread = flags & 1 ? EXTREME : PLAIN;
					c.filter = flags & 2;
					c.skew = flags & 4;
					c.narrow = flags & 8;
					c.nulls = flags & 16;
					run_case(c, seed++);
				}
}

GPU_TEST(group_update_sizes)
{
	uint64_t	seed = 1000;

	for (GpuaggHistStrategy strategy : strategies)
		for (size_t n : {0, 1, 2, 31, 33, 2047, 2049, 8191, 8193, 270337, 1200001})
			for (uint64_t distinct : {1UL, 7UL, 9000UL, 1000000UL})
				if (gpu_test_quick() ? n < 10000 && n > 30 : n < 1000000 || distinct > 1000)
					run_case({8, {MONOID_COUNT, MONOID_SUM_F64}, strategy, distinct, n}, seed++);
}

/* Tables of one group and more that have to grow, also in the middle of what goes to them. */
GPU_TEST(group_update_grow)
{
	uint64_t	seed = 2000;

	for (auto &ops : shapes)
		for (GpuaggHistStrategy strategy : strategies)
			for (int bytes : {4, 8, 16})
				for (int64_t capacity : {1, 100, 5000})
				{
					Case		c = {bytes, ops, strategy, 30000, (size_t) (gpu_test_quick() ? 3000 : 12000)};

					if (gpu_test_quick() && seed++ % 4)
						continue;

					c.capacity = capacity;
					c.batches = 2;
					c.filter = true;
					c.nulls = seed % 8 == 5;
					CHECK(run_case(c, seed++) > 0 || capacity == 5000, "a table of one group did not have to grow");
				}
}

/* An estimate decides how, not what. */
GPU_TEST(group_update_estimates)
{
	uint64_t	seed = 3000;
	const size_t n = gpu_test_quick() ? 20000 : 100000;

	for (GpuaggHistStrategy strategy : {GPUAGG_HIST_AUTO, GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION})
		for (uint64_t distinct : {1UL, 5000UL, 3000000UL})
			for (int64_t estimate : {0L, 1000L, 100000L, 100000000L})
				for (bool skew : {false, true})
				{
					Case		c = {8, {MONOID_COUNT, MONOID_SUM_F64}, strategy, distinct, n};

					c.estimate = estimate;
					c.skew = skew;
					c.spread = skew ? EXTREME : PLAIN;
					run_case(c, seed++);
				}
}

/* One key with most rows among many: its partition is cut into pieces. */
GPU_TEST(group_update_hot)
{
	uint64_t	seed = 5000;
	const size_t n = gpu_test_quick() ? 80000 : 300000;

	for (auto &ops : shapes)
		for (int bytes : {4, 8})
			for (int64_t capacity : {0, 3000})
			{
				Case		c = {bytes, ops, GPUAGG_HIST_PARTITION, 100000, n};

				c.skew = true;
				c.capacity = capacity;
				c.spread = seed % 2 ? EXTREME : PLAIN;
				c.filter = bytes == 4;
				run_case(c, seed++);
			}
}

/* The key that has this hash in tables of seed 0. */
static uint64_t
key_of_hash(uint64_t x)
{
	const GpuaggHashKey k = gpuagg_hash_key(0);

	return gpuagg_unhash64(&k, x);
}

/*
 * Rows i of key keys[i % keys.size()] and value i % keys.size() % 1000, in a table
 * of `capacity`, by partitions, as if there were hardly any keys.
 */
static void
many_keys(const std::vector<uint64_t> &keys, size_t n, int64_t capacity)
{
	std::unordered_map<uint64_t, size_t> index;
	std::vector<uint64_t> row_keys(n);
	std::vector<double> values(n);
	GpuaggHist	h = GpuaggHist();
	Table		table(8, capacity);
	DeviceArray<int64_t> counts(capacity);
	DeviceArray<double> sums(capacity);
	DeviceArray<GpuaggHistStatus> status(1);
	size_t		bytes = 0;
	int64_t		found,
				pending,
				null_bin;

	for (size_t k = 0; k < keys.size(); k++)
		index[keys[k]] = k;
	for (size_t i = 0; i < n; i++)
	{
		row_keys[i] = keys[i % keys.size()];
		values[i] = (double) (i % keys.size() % 1000);
	}
	DeviceArray<uint64_t> device_keys(row_keys);
	DeviceArray<double> device_values(values);

	CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
	h.nslots = 2;
	h.nrows = (int64_t) n;
	h.status = status.get();
	h.strategy = GPUAGG_HIST_PARTITION;
	h.slot[0].op = MONOID_COUNT;
	h.slot[0].states = counts.get();
	h.slot[1].op = MONOID_SUM_F64;
	h.slot[1].x.values = device_values.get();
	h.slot[1].states = sums.get();
	STATUS_MUST(gpuagg_group_init(&table.t, nullptr));
	STATUS_MUST(gpuagg_hist_init(MONOID_COUNT, counts.get(), capacity, nullptr));
	STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sums.get(), capacity, nullptr));
	STATUS_MUST(gpuagg_group_update(&table.t, device_keys.get(), nullptr, nullptr, &h, 1, 0, nullptr, &bytes, nullptr));
	DeviceArray<char> workspace(bytes);

	STATUS_MUST(gpuagg_group_update(&table.t, device_keys.get(), nullptr, nullptr, &h, 1, 0, workspace.get(), &bytes,
									nullptr));
	STATUS_MUST(gpuagg_group_status(&table.t, &found, &pending, &null_bin, nullptr));
	CHECK(found == (int64_t) keys.size(), "%ld groups of %zu", (long) found, keys.size());
	CHECK(workspace.guards_intact() && table.intact(), "overrun");

	CHECK(pending == 0 && null_bin == -1, "%ld rows pending, NULL in bin %ld", (long) pending, (long) null_bin);

	std::vector<char> unique = table.keys.take(found * 8);
	std::vector<int64_t> count = counts.take(found);
	std::vector<double> sum = sums.take(found);

	for (int64_t b = 0; b < found; b++)
	{
		uint64_t	key;
		size_t		rows;

		memcpy(&key, &unique[b * 8], 8);

		auto		k = index.find(key);

		if (k == index.end())
		{
			CHECK(false, "bin %ld has key %016lx, which no row has, or another bin has, too", (long) b, (unsigned long) key);
			continue;
		}
		rows = n / keys.size() + (k->second < n % keys.size());
		CHECK(count[b] == (int64_t) rows && sum[b] == (double) rows * (double) (k->second % 1000),
			  "bin %ld, key number %zu: %ld rows, expected %zu; sum %g, expected %g", (long) b, k->second,
			  (long) count[b], rows, sum[b], (double) rows * (double) (k->second % 1000));
		index.erase(k);
	}
	CHECK(index.empty(), "%zu keys have no bin", index.size());
}

/* Partitions of more keys than a table holds are halved; a cut one, too, if the call's table is full. */
GPU_TEST(group_update_halves)
{
	std::vector<uint64_t> keys;

	if (gpu_test_quick())
	{
		gpu_test_skip("too large for --quick");
		return;
	}
	if (!gpu_test_has_memory((size_t) 4 << 30))
		return;
	for (uint64_t k = 0; k < 3500000; k++)
		keys.push_back(k * 0x9E3779B97F4A7C15ull);
	many_keys(keys, 4000000, 4000000);
	keys.clear();
	/* all in the first of the partitions, in a table so large that they have room there */
	for (uint64_t k = 0; k < 140000; k++)
		keys.push_back(key_of_hash((k * 100) << 32 | (uint32_t) (k * 2654435761u)));
	many_keys(keys, 300000, 60000000);
}

/* Several operators, of which some have no fused form, and NULLs among their inputs. */
GPU_TEST(group_update_slots)
{
	uint64_t	seed = 4000;

	for (MonoidId op : {MONOID_COUNT, MONOID_SUM_F64, MONOID_SUM_I64, MONOID_MAX_F64, MONOID_BIT_XOR, MONOID_ACCUM_F64})
		for (GpuaggHistStrategy strategy : strategies)
			for (bool nulls : {false, true})
			{
				Case		c = {8, {op, op, op}, strategy, 2000, 30011};

				c.slot_nulls = nulls;
				c.batches = 2;
				run_case(c, seed++);
			}
}

/* Arguments of extremes, of a key and a payload each, in tables that grow and that do not. */
GPU_TEST(group_update_payload)
{
	uint64_t	seed = 6000;

	for (GpuaggHistStrategy strategy : strategies)
		for (int bytes : {4, 8, 16})
			for (int64_t capacity : {0, 30})
			{
				Case		c = {bytes, {MONOID_ARGMAX, MONOID_COUNT, MONOID_ARGMIN}, strategy, 2000,
					(size_t) (gpu_test_quick() ? 1003 : 10007)};

				c.capacity = capacity;
				c.batches = 2;
				c.spread = seed % 2 ? EXTREME : PLAIN;
				c.filter = seed % 3 == 0;
				c.nulls = seed % 4 < 2;
				c.slot_nulls = seed % 5 < 3;
				CHECK(run_case(c, seed++) > 3 || capacity == 0, "%d-byte keys, strategy %d: a table of 30 groups hardly "
					  "grew", bytes, strategy);
			}
}

/* One slot to all of them, most of which have no fused form, over wide keys in a table that grows again and again. */
GPU_TEST(group_update_many_slots)
{
	static const MonoidId all[GPUAGG_MAX_SLOTS] = {MONOID_COUNT, MONOID_ARGMAX, MONOID_SUM_F64, MONOID_SUM_I64,
		MONOID_ARGMIN, MONOID_SUM_DEC, MONOID_MAX_I64, MONOID_ACCUM_F64, MONOID_SUM_I128, MONOID_MIN_F64,
		MONOID_MAX_F64, MONOID_BIT_OR, MONOID_MIN_I64, MONOID_SUM_F32, MONOID_SUMSQ_I128, MONOID_MAX_DEC};
	uint64_t	seed = 7000;

	for (GpuaggHistStrategy strategy : strategies)
		for (int nslots = 1; nslots <= GPUAGG_MAX_SLOTS; nslots++)
		{
			Case		c = {16, {}, strategy, gpu_test_quick() ? 300UL : 3000UL, (size_t) (gpu_test_quick() ? 607 : 6007)};

			if (gpu_test_quick() && (nslots + strategy) % 5 != 1)
				continue;
			for (int s = 0; s < nslots; s++)
				c.ops.push_back(all[(s + 3 * nslots + strategy) % GPUAGG_MAX_SLOTS]);
			c.capacity = gpu_test_quick() ? 5 : 50;
			c.batches = 2;
			c.filter = c.nulls = c.slot_nulls = true;
			CHECK(run_case(c, seed++) >= 5, "%d slots, strategy %d: a small table hardly grew", nslots, strategy);
		}
}

/* Zeros of both signs: sums keep -0 only where nothing else was added. */
GPU_TEST(group_update_zeros)
{
	const size_t n = 300000;

	for (GpuaggHistStrategy strategy : strategies)
		for (uint64_t groups : {1UL, 3UL, 1000UL})
		{
			std::vector<uint64_t> keys(n);
			std::vector<double> values(n);
			std::vector<char> negative(groups, 1);
			GpuaggHist	h = GpuaggHist();
			Table		table(8, 2000);
			DeviceArray<double> sums(2000);
			DeviceArray<GpuaggHistStatus> status(1);
			size_t		bytes = 0;
			int64_t		found,
						pending,
						null_bin;

			for (size_t i = 0; i < n; i++)
			{
				keys[i] = i % groups;
				values[i] = i % groups % 2 ? -0.0 : 0.0;
			}
			DeviceArray<uint64_t> device_keys(keys);
			DeviceArray<double> device_values(values);

			CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
			h.nslots = 1;
			h.nrows = (int64_t) n;
			h.status = status.get();
			h.strategy = strategy;
			h.slot[0].op = MONOID_SUM_F64;
			h.slot[0].x.values = device_values.get();
			h.slot[0].states = sums.get();
			STATUS_MUST(gpuagg_group_init(&table.t, nullptr));
			STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sums.get(), 2000, nullptr));
			STATUS_MUST(gpuagg_group_update(&table.t, device_keys.get(), nullptr, nullptr, &h, groups, 0, nullptr, &bytes,
											nullptr));
			DeviceArray<char> workspace(bytes);

			STATUS_MUST(gpuagg_group_update(&table.t, device_keys.get(), nullptr, nullptr, &h, groups, 0,
											workspace.get(), &bytes, nullptr));
			STATUS_MUST(gpuagg_group_status(&table.t, &found, &pending, &null_bin, nullptr));
			CHECK(found == (int64_t) groups, "%ld groups of %lu", (long) found, (unsigned long) groups);

			std::vector<char> unique = table.keys.take(found * 8);
			std::vector<double> got = sums.take(found);

			for (int64_t b = 0; b < found; b++)
			{
				uint64_t	key;

				memcpy(&key, &unique[b * 8], 8);
				CHECK(got[b] == 0 && signbit(got[b]) == (key % 2 == 1), "strategy %d, %lu groups: sum %g of group %lu",
					  strategy, (unsigned long) groups, got[b], (unsigned long) key);
			}
		}
}

/* Ten times the same bits, whatever bins the keys got.  (GLOBAL adds floats in any order.) */
GPU_TEST(group_update_repeatable)
{
	for (GpuaggHistStrategy strategy : {GPUAGG_HIST_AUTO, GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION})
		for (uint64_t distinct : {3UL, 5000UL, 200000UL})
			for (bool skew : {false, true})
			{
				Case		c = {8, {MONOID_COUNT, MONOID_SUM_F64}, strategy, distinct,
					(size_t) (gpu_test_quick() ? 20000 : 60000)};
				Groups		first;

				c.skew = skew;
				for (int k = 0; k < (gpu_test_quick() ? 2 : 10); k++)
				{
					Random		r(distinct);
					Grouping	g(c);

					g.batch(r);
					if (k == 0)
						first = g.got();
					else
						CHECK(g.got() == first, "strategy %d, %lu distinct, run %d differs", strategy,
							  (unsigned long) distinct, k);
				}
			}
}
