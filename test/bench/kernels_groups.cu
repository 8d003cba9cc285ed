/*
 * kernels_groups.cu
 *	  Part (d) of the kernel benchmark: group-by of keys that are bins, by a hash table, and of rows
 *	  that are partitioned by key.
 *
 * Peers are plain atomics in device memory, and CUB's radix sort followed by ReduceByKey.  Each
 * computes the same operators over the same rows, from empty states.
 */
#include "kernels_bench.h"

#include <cub/cub.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <math.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "operators/monoid.h"

/* The inverse of bench_mix(). */
static inline uint64_t
unmix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0x9cb4b2f8129337dbULL;
	x ^= x >> 33;
	x *= 0x4f74430c22a54005ULL;
	return x ^ x >> 33;
}

/* ---- generators -------------------------------------------------------------- */

/*
 * Returns the group of row i: uniform, or Zipf with exponent 1.5.  Zipf is by rejection from the
 * continuous distribution; a hash scatters the ranks over the groups.
 */
static __device__ int64_t
group_of_row(int64_t i, int64_t groups, bool zipf)
{
	uint64_t r = bench_mix(i + 77);

	if (!zipf)
		return (int64_t) (r % groups);
	for (;;)
	{
		double u = (double) (r >> 11) * 0x1p-53, v, x, k, ratio;

		r = bench_mix(r + 1);
		v = (double) (r >> 11) * 0x1p-53;
		r = bench_mix(r + 1);
		x = 1.0 - u * (1.0 - 1.0 / sqrt((double) groups + 1.0));
		k = floor(1.0 / (x * x));
		if (k < 1 || k > groups)
			continue;
		ratio = 1.0 / (k * sqrt(k)) / (2.0 / sqrt(k) - 2.0 / sqrt(k + 1.0));
		if (v * 1.7072 < ratio)
			return (int64_t) (((uint64_t) k - 1) * 2654435761ULL % groups);
	}
}

/* Returns the value of row i, from 0 to 1000. */
static __host__ __device__ inline double
value_of_row(int64_t i)
{
	return (double) (bench_mix(i ^ 0x5555555555ULL) >> 11) * 0x1p-53 * 1000.0;
}

/* Fills in rows: groups as dense int32 and as sparse int64 keys, and values. */
static __global__ void
make_groups(int32_t *dense, int64_t *sparse, double *values, int64_t n, int64_t groups, bool zipf)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t g = group_of_row(i, groups, zipf);

		dense[i] = (int32_t) g;
		sparse[i] = (int64_t) bench_mix(g + 1);
		values[i] = value_of_row(i);
	}
}

/* ---- peers -------------------------------------------------------------------- */

struct CountSum
{
	int64_t count;
	double sum;
};

struct ToCountSum
{
	__host__ __device__ CountSum
	operator()(double v) const
	{
		return {1, v};
	}
};

struct AddCountSum
{
	__host__ __device__ CountSum
	operator()(const CountSum &a, const CountSum &b) const
	{
		return {a.count + b.count, a.sum + b.sum};
	}
};

static __global__ void
plain_atomics(const int32_t *keys, const double *values, int64_t n, unsigned long long *count,
			  double *sum)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		atomicAdd(&count[keys[i]], 1ULL);
		atomicAdd(&sum[keys[i]], values[i]);
	}
}

/*
 * An entry of a simple hash table: open addressing with linear probing, atomics in device memory.
 * Key 0 marks a free entry.
 */
struct __align__(32) TableEntry
{
	unsigned long long key;
	unsigned long long count;
	double sum;
};

static __global__ void
table_atomics(const int64_t *keys, const double *values, int64_t n, TableEntry *table,
			  uint64_t size)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		unsigned long long key = (unsigned long long) keys[i];
		uint64_t at = __umul64hi(bench_mix(key), size);

		for (;; at = at + 1 == size ? 0 : at + 1)
		{
			unsigned long long seen = *(volatile unsigned long long *) &table[at].key;

			if (seen == 0)
				seen = atomicCAS(&table[at].key, 0ULL, key);
			if (seen == 0 || seen == key)
				break;
		}
		atomicAdd(&table[at].count, 1ULL);
		atomicAdd(&table[at].sum, values[i]);
	}
}

/* Adds the table's numbers of groups and rows to totals[0] and totals[1]. */
static __global__ void
table_totals(const TableEntry *table, int64_t size, unsigned long long *totals)
{
	unsigned long long groups = 0, rows = 0;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < size;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		groups += table[i].key != 0;
		rows += table[i].count;
	}
	atomicAdd(&totals[0], groups);
	atomicAdd(&totals[1], rows);
}

/* Returns the time to clear a table with two entries per group and fill it; no key may be 0. */
static double
table_atomics_ms(const int64_t *keys, const double *values, int64_t n, int64_t groups)
{
	uint64_t size = 2 * (uint64_t) groups;
	BenchMemory table(size * sizeof(TableEntry)), totals(16);
	unsigned long long got[2];
	double ms = bench_time(
		1,
		[&](int)
		{
			CUDA_MUST(cudaMemsetAsync(table.memory, 0, size * sizeof(TableEntry), nullptr));
			table_atomics<<<2048, 256>>>(keys, values, n, table.as<TableEntry>(), size);
		});

	CUDA_MUST(cudaMemset(totals.memory, 0, 16));
	table_totals<<<2048, 256>>>(table.as<TableEntry>(), (int64_t) size,
								totals.as<unsigned long long>());
	CUDA_MUST(cudaMemcpy(got, totals.memory, 16, cudaMemcpyDeviceToHost));
	if ((int64_t) got[0] != groups || (int64_t) got[1] != n)
	{
		fprintf(stderr,
				"hash table of plain atomics: %llu groups and %llu rows, expected %lld and %lld\n",
				got[0], got[1], (long long) groups, (long long) n);
		exit(2);
	}
	return ms;
}

/* Returns the time to sort (key, value) pairs by key and reduce equal keys to count and sum. */
template <typename Key>
static double
sort_group_ms(const Key *keys, const double *values, int64_t n, int bits)
{
	BenchMemory k(n * sizeof(Key)), v(n * 8), unique(n * sizeof(Key)), out(n * sizeof(CountSum)),
		runs(8);
	size_t sort_bytes = 0, reduce_bytes = 0;
	auto in = thrust::make_transform_iterator(v.as<double>(), ToCountSum());

	CUDA_MUST(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, keys, k.as<Key>(), values,
											  v.as<double>(), n, 0, bits));
	CUDA_MUST(cub::DeviceReduce::ReduceByKey(nullptr, reduce_bytes, k.as<Key>(), unique.as<Key>(),
											 in, out.as<CountSum>(), runs.as<int64_t>(),
											 AddCountSum(), (int) n));
	BenchMemory tmp(std::max(sort_bytes, reduce_bytes));

	return bench_time(
		1,
		[&](int)
		{
			CUDA_MUST(cub::DeviceRadixSort::SortPairs(tmp.memory, sort_bytes, keys, k.as<Key>(),
													  values, v.as<double>(), n, 0, bits));
			CUDA_MUST(cub::DeviceReduce::ReduceByKey(tmp.memory, reduce_bytes, k.as<Key>(),
													 unique.as<Key>(), in, out.as<CountSum>(),
													 runs.as<int64_t>(), AddCountSum(), (int) n));
		});
}

/*
 * Checks the results of group-by: the groups of the rows, the states that the CPU monoids compute,
 * and copies of the device's results.  All are in host memory.
 */
struct GroupCheck
{
	const int32_t *group; /* the group of each row */
	int64_t n;            /* number of rows */
	int64_t groups = 0;   /* groups are 0 to groups - 1 */
	int64_t distinct = 0; /* number of groups that have rows */
	BenchHost rows, expect, count, sum, unique, where;

	/* Computes the expected states.  Each thread takes a range of groups, and all rows in order. */
	void
	prepare(const int32_t *dense, int64_t nrows, int64_t ngroups)
	{
		std::atomic<int64_t> found{0};
		CountSum *e = expect.room<CountSum>(ngroups);

		n = nrows;
		groups = ngroups;
		group = rows.fetch<int32_t>(dense, n);
		bench_parallel(groups,
					   [&](int64_t begin, int64_t end)
					   {
						   int64_t mine = 0;

						   for (int64_t g = begin; g < end; g++)
							   e[g] = {count_identity(), sum_f64_identity()};
						   for (int64_t i = 0; i < n && begin < end; i++)
							   if (group[i] >= begin && group[i] < end)
							   {
								   CountSum &s = e[group[i]];

								   s.count = count_step(s.count, 0);
								   s.sum = sum_f64_step(s.sum, value_of_row(i));
							   }
						   for (int64_t g = begin; g < end; g++)
							   mine += e[g].count > 0;
						   found += mine;
					   });
		distinct = found;
	}

	/*
	 * Returns the bin of each group, -1 if it has none, from the keys of `found` bins.  Returns
	 * NULL, and prints why, if a bin has a foreign key or the number of bins is wrong.
	 */
	const int32_t *
	bins_of_keys(const void *device_keys, int64_t found)
	{
		const int64_t *key = unique.fetch<int64_t>(device_keys, found);
		int32_t *bin = where.room<int32_t>(groups);
		std::atomic<int64_t> foreign{0};

		bench_parallel(groups,
					   [&](int64_t begin, int64_t end) { std::fill(bin + begin, bin + end, -1); });
		bench_parallel(found,
					   [&](int64_t begin, int64_t end)
					   {
						   for (int64_t b = begin; b < end; b++)
						   {
							   int64_t g = (int64_t) unmix((uint64_t) key[b]) - 1;

							   if (g >= 0 && g < groups)
								   __atomic_store_n(&bin[g], (int32_t) b, __ATOMIC_RELAXED);
							   else
								   foreign++;
						   }
					   });
		if (foreign > 0 || found != distinct)
			printf("%lld groups, %lld of them with keys that no row has, expected %lld\n",
				   (long long) found, (long long) foreign, (long long) distinct);
		return foreign > 0 || found != distinct ? nullptr : bin;
	}

	/*
	 * Returns whether the device's counts and sums of all groups are right; prints a group that is
	 * not.  bin: the bin of each group, -1 if it has none; NULL: its number.
	 */
	bool
	matches(const void *device_count, const void *device_sum, int64_t nbins, const int32_t *bin)
	{
		const int64_t *c = count.fetch<int64_t>(device_count, nbins);
		const double *s = sum.fetch<double>(device_sum, nbins);
		const CountSum *e = (const CountSum *) expect.memory;
		std::atomic<int64_t> wrong{0};
		std::mutex lock;

		bench_parallel(
			groups,
			[&](int64_t begin, int64_t end)
			{
				for (int64_t g = begin; g < end; g++)
				{
					int64_t b = bin ? bin[g] : g;

					if (b < 0 ?
							e[g].count == 0 :
							c[b] == e[g].count && fabs(s[b] - e[g].sum) <= 1e-9 * fabs(e[g].sum))
						continue;
					if (wrong++ > 0)
						continue;
					std::lock_guard<std::mutex> guard(lock);

					printf("group %lld: bin %lld, count %lld, sum %.17g, expected %lld, %.17g\n",
						   (long long) g, (long long) b, b < 0 ? 0LL : (long long) c[b],
						   b < 0 ? 0.0 : s[b], (long long) e[g].count, e[g].sum);
				}
			});
		if (wrong > 0)
			printf("%lld of %lld groups differ from the CPU monoids\n", (long long) wrong,
				   (long long) groups);
		return wrong == 0;
	}
};

static const int64_t d_rows = (int64_t) 1 << 27;

/*
 * Targets in 10^9 rows/s for uniform keys. The target for Zipf is half of what uniform keys reach.
 */
struct GroupTarget
{
	int64_t groups;
	double direct;
	double hash;
};

static const GroupTarget d_targets[] = {
	{4, 200, 120},      {100, 200, 120},    {10000, 200, 120},
	{1000000, 100, 40}, {10000000, 40, 25}, {100000000, 40, 25},
};

static void
set_count_sum(GpuaggHist &h, const int32_t *bins, const double *values, int64_t n, int64_t groups,
			  void *count, void *sum)
{
	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0].values = bins;
	h.bins.column[0].type = GPUAGG_VALUE_I32;
	h.bins.nbins = groups;
	h.nslots = 2;
	h.nrows = n;
	h.slot[0].op = MONOID_COUNT;
	h.slot[0].states = count;
	h.slot[1].op = MONOID_SUM_F64;
	h.slot[1].x.values = values;
	h.slot[1].x.type = GPUAGG_VALUE_F64;
	h.slot[1].states = sum;
}

static std::string
group_problem(const char *kind, bool zipf, int64_t groups)
{
	return std::string(kind) + (zipf ? ", zipf, " : ", uniform, ") + std::to_string(groups) +
		" groups";
}

/*
 * Checks and measures a group-by whose dense keys are the bins, and prints its row.  Returns 10^9
 * rows/s.  target: the same unit; it is set only for d_rows rows.
 */
static double
bench_direct(const int32_t *keys, const double *values, bool zipf, GroupCheck *check, double target)
{
	int64_t n = check->n, groups = check->groups;
	BenchMemory count(groups * 8), sum(groups * 8);
	HistUpdate u;
	BenchRow row;

	set_count_sum(u.hist, keys, values, n, groups, count.memory, sum.memory);
	u.prepare();
	STATUS_MUST(gpuagg_hist_init(MONOID_COUNT, count.memory, groups, nullptr));
	STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sum.memory, groups, nullptr));
	u.run();
	row.correct = check->matches(count.memory, sum.memory, groups, nullptr);
	row.ours_ms = bench_time(1, [&](int) { u.run(); });
	row.problem = group_problem("direct", zipf, groups);
	row.bytes = n * 12.0 + groups * 16.0;
	row.rows = (double) n;
	row.peer1 = "atomics";
	row.peer1_ms =
		bench_time(1,
				   [&](int)
				   {
					   plain_atomics<<<2048, 256>>>(keys, values, n, count.as<unsigned long long>(),
													sum.as<double>());
				   });
	row.peer2 = "sort + reduce";
	row.peer2_ms = sort_group_ms<int32_t>(keys, values, n, (int) ceil(log2((double) groups)));
	if (n == d_rows)
		row.targets.push_back({BENCH_RATE, target});
	bench_print(row);
	return row.rows / row.ours_ms * 1e-6;
}

/* A group-by of sparse keys through a hash table: a lookup, and a histogram of counts and sums. */
struct HashRun
{
	GpuaggGroupTable table = GpuaggGroupTable();
	BenchMemory slots, unique, counters, bins, count, sum, status;
	std::unique_ptr<BenchMemory> workspace;
	size_t workspace_bytes = 0;
	GpuaggHist hist = GpuaggHist();
	const int64_t *keys;

	HashRun(const int64_t *k, const double *v, int64_t n, int64_t capacity)
		: slots(gpuagg_group_slot_bytes(8, capacity)), unique(capacity * 8),
		  counters(sizeof(GpuaggGroupCounters)), bins(n * 4), count(capacity * 8),
		  sum(capacity * 8), status(sizeof(GpuaggHistStatus)), keys(k)
	{
		table.key_bytes = 8;
		table.capacity = capacity;
		table.slots = slots.memory;
		table.keys = unique.memory;
		table.counters = counters.as<GpuaggGroupCounters>();
		set_count_sum(hist, bins.as<int32_t>(), v, n, capacity, count.memory, sum.memory);
		hist.status = status.as<GpuaggHistStatus>();
		CUDA_MUST(cudaMemset(hist.status, 0, sizeof(GpuaggHistStatus)));
		STATUS_MUST(gpuagg_hist_update(&hist, nullptr, &workspace_bytes, nullptr));
		workspace.reset(new BenchMemory(workspace_bytes));
	}
	void
	run()
	{
		STATUS_MUST(gpuagg_group_init(&table, nullptr));
		STATUS_MUST(gpuagg_hist_init(MONOID_COUNT, count.memory, table.capacity, nullptr));
		STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sum.memory, table.capacity, nullptr));
		STATUS_MUST(
			gpuagg_group_lookup(&table, keys, nullptr, hist.nrows, 0, bins.as<int32_t>(), nullptr));
		STATUS_MUST(gpuagg_hist_update(&hist, workspace->memory, &workspace_bytes, nullptr));
	}
};

/*
 * The same for many groups: rows are partitioned by key first, and the groups become those of an
 * empty table.
 */
struct PartRun
{
	GpuaggGroupTable table = GpuaggGroupTable();
	GpuaggKeyParts parts = GpuaggKeyParts();
	BenchMemory unique, counters, count, sum, status;
	std::unique_ptr<BenchMemory> moved, workspace;
	size_t moved_bytes = 0, workspace_bytes = 0;
	GpuaggHist hist = GpuaggHist();
	const int64_t *keys;
	GpuaggKeyCounts found;

	PartRun(const int64_t *k, const double *v, int64_t n, int64_t groups, int64_t capacity)
		: unique(capacity * 8), counters(sizeof(GpuaggGroupCounters)), count(capacity * 8),
		  sum(capacity * 8), status(sizeof(GpuaggHistStatus)), keys(k)
	{
		table.key_bytes = 8;
		table.capacity = capacity;
		table.keys = unique.memory;
		table.counters = counters.as<GpuaggGroupCounters>();
		parts.nrows = n;
		parts.groups = groups;
		parts.nmoved = 1;
		parts.moved[0].values = v;
		parts.moved[0].type = GPUAGG_VALUE_F64;
		STATUS_MUST(
			gpuagg_group_partition(&table, keys, nullptr, &parts, nullptr, &moved_bytes, nullptr));
		moved.reset(new BenchMemory(moved_bytes));
		set_count_sum(hist, nullptr, v, n, capacity, count.memory, sum.memory);
		hist.status = status.as<GpuaggHistStatus>();
		hist.parts = &parts;
		CUDA_MUST(cudaMemset(hist.status, 0, sizeof(GpuaggHistStatus)));
		STATUS_MUST(gpuagg_hist_update(&hist, nullptr, &workspace_bytes, nullptr));
		workspace.reset(new BenchMemory(workspace_bytes));
	}
	void
	partition()
	{
		STATUS_MUST(gpuagg_group_partition(&table, keys, nullptr, &parts, moved->memory,
										   &moved_bytes, nullptr));
	}
	void
	read()
	{
		CUDA_MUST(cudaMemcpy(&found, parts.counts, sizeof(found), cudaMemcpyDeviceToHost));
		if (found.overflows > 0)
		{
			fprintf(stderr, "%llu partitions have too many groups\n", found.overflows);
			exit(2);
		}
	}
	void
	add()
	{
		STATUS_MUST(gpuagg_group_adopt(&table, &parts, (int64_t) found.groups, nullptr));
		STATUS_MUST(gpuagg_hist_init(MONOID_COUNT, count.memory, table.capacity, nullptr));
		STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sum.memory, table.capacity, nullptr));
		STATUS_MUST(gpuagg_hist_update(&hist, workspace->memory, &workspace_bytes, nullptr));
	}
	void
	run()
	{
		partition();
		read();
		add();
	}
};

/* Like bench_hash(), for rows that are partitioned by key; one peer is bench_hash() itself. */
static void
bench_parts(const int64_t *keys, const double *values, bool zipf, GroupCheck *check,
			double hash_rate, double target)
{
	BenchRow row;
	int64_t n = check->n;
	PartRun run(keys, values, n, check->groups, std::min(check->groups, n) + 1000);
	const int32_t *bin;

	run.run();
	bin = check->bins_of_keys(run.unique.memory, (int64_t) run.found.groups);
	row.correct = bin != nullptr &&
		check->matches(run.count.memory, run.sum.memory, (int64_t) run.found.groups, bin);
	row.ours_ms = bench_time(1, [&](int) { run.run(); });
	row.problem = group_problem("partitioned", zipf, check->groups);
	row.bytes = n * 16.0 + check->distinct * 24.0;
	row.rows = (double) n;
	row.peer1 = "hash";
	row.peer1_ms = (double) n / hash_rate * 1e-6;
	row.peer2 = "sort + reduce";
	row.peer2_ms = sort_group_ms<int64_t>(keys, values, n, 64);
	if (n == d_rows)
		row.targets.push_back({BENCH_RATE, target});
	bench_print(row);
	printf("    partition %.3f ms, states and adding %.3f ms\n",
		   bench_time(1, [&](int) { run.partition(); }), bench_time(1, [&](int) { run.add(); }));
}

/* Like bench_direct(), for sparse keys through a hash table. */
static double
bench_hash(const int64_t *keys, const double *values, bool zipf, GroupCheck *check, double target)
{
	BenchRow row;
	int64_t n = check->n;
	int64_t found;
	GpuaggGroupCounters counters;
	HashRun run(keys, values, n, std::min(check->groups, n) + 1000);
	GpuaggCudaStatus status;

	run.run();
	CUDA_MUST(cudaMemcpy(&counters, run.table.counters, sizeof(counters), cudaMemcpyDeviceToHost));
	status = gpuagg_group_outcome(&run.table, &counters, &found);
	row.correct = status == GPUAGG_CUDA_OK;
	if (row.correct)
	{
		const int32_t *bin = check->bins_of_keys(run.unique.memory, found);

		row.correct =
			bin != nullptr && check->matches(run.count.memory, run.sum.memory, found, bin);
	}
	else
		printf("status %d (%s), %llu rows pending\n", (int) status, gpuagg_cuda_last_error(),
			   counters.pending);
	row.ours_ms = bench_time(1, [&](int) { run.run(); });
	row.problem = group_problem("hash", zipf, check->groups);
	row.bytes = n * 16.0 + check->distinct * 24.0;
	row.rows = (double) n;
	row.peer1 = "atomics";
	row.peer1_ms = table_atomics_ms(keys, values, n, check->distinct);
	row.peer2 = "sort + reduce";
	row.peer2_ms = sort_group_ms<int64_t>(keys, values, n, 64);
	if (n == d_rows)
		row.targets.push_back({BENCH_RATE, target});
	bench_print(row);
	return row.rows / row.ours_ms * 1e-6;
}

BENCH_PART(d, "group-by of 2^27 rows (or --max): count(*), sum(float8)")
{
	const int points = sizeof(d_targets) / sizeof(d_targets[0]);
	int64_t n = std::min(d_rows, (int64_t) 1 << bench_max_log2());
	BenchMemory dense(n * 4), sparse(n * 8), values(n * 8);
	GroupCheck check;
	double direct[points], hash[points];

	for (bool zipf : {false, true})
		for (int p = 0; p < points; p++)
		{
			make_groups<<<4096, 256>>>(dense.as<int32_t>(), sparse.as<int64_t>(),
									   values.as<double>(), n, d_targets[p].groups, zipf);
			check.prepare(dense.as<int32_t>(), n, d_targets[p].groups);
			direct[p] = bench_direct(dense.as<int32_t>(), values.as<double>(), zipf, &check,
									 zipf ? direct[p] / 2 : d_targets[p].direct);
			hash[p] = bench_hash(sparse.as<int64_t>(), values.as<double>(), zipf, &check,
								 zipf ? hash[p] / 2 : d_targets[p].hash);
			if (d_targets[p].groups >= 10000)
				bench_parts(sparse.as<int64_t>(), values.as<double>(), zipf, &check, hash[p],
							zipf ? hash[p] / 2 : d_targets[p].hash);
		}
}
