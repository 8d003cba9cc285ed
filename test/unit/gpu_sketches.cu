/*
 * gpu_sketches.cu
 *	  Tests the server's kernels for HyperLogLog sketches: updates of registers from rows,
 *	  combination, widening, and counts of ranks. Reference: operators/hll.h on the host.
 */
#include "common.cuh"
#include "gpu_test.h"
#include "operators/hll.h"
#include "device_cuda/kernels.h"

enum Values
{
	DISTINCT,
	FEW, /* three hashes */
	ONE,
	RISING, /* the rank of one register grows */
	NVALUES
};

struct SketchCase
{
	WireType type;
	int64_t ngroups;
	size_t n;
	Values values;
	bool keyed; /* group numbers begin with a negative one, else with 0 */
	bool nulls;
	bool filter;
	size_t shift; /* columns start this number of elements after a multiple of 256 bytes */
};

/* Returns, by rank, hashes that belong to register 0. They are found by trial. */
static const std::vector<int64_t> &
hashes_by_rank()
{
	static std::vector<int64_t> found;

	if (found.empty())
	{
		found.resize(9);
		for (int64_t v = 1, left = 8; left > 0; v++)
		{
			int reg, rank;

			gpuagg_bin_hll((uint64_t) v, &reg, &rank);
			if (reg == 0 && rank < 9 && found[rank] == 0)
			{
				found[rank] = v;
				left--;
			}
		}
	}
	return found;
}

/* Returns the value of row i, in the distribution of the case. */
static int64_t
draw_value(const SketchCase &c, Random &r, size_t i)
{
	const std::vector<int64_t> &by_rank =
		c.values == RISING ? hashes_by_rank() : std::vector<int64_t>();
	int bits = 8 * (int) wire_width(c.type);

	switch (c.values)
	{
		case FEW:
			return (int64_t) r.below(3) - 1;
		case ONE:
			return -5;
		case RISING:
			return by_rank[1 + i * 8 / c.n];
		default:
			return (int64_t) (r.next() << (64 - bits)) >> (64 - bits);
	}
}

/* Updates the registers with the rows of a batch, on device and host. */
static void
update_batch(const SketchCase &c, Random &r, std::vector<uint8_t> &expected,
			 DeviceArray<uint8_t> &registers)
{
	const int32_t min = c.keyed ? -3 : 0;
	size_t width = wire_width(c.type);
	std::vector<char> bytes(c.n * width);
	std::vector<int32_t> group(c.n);
	std::vector<uint8_t> valid((c.n + 7) / 8), filter(c.n);
	SketchRows rows = {};

	for (size_t i = 0; i < c.n; i++)
	{
		int64_t v = draw_value(c, r, i);
		bool is_valid = r.below(8) != 0;
		int reg, rank;

		memcpy(&bytes[i * width], &v, width);
		group[i] = (int32_t) r.below(c.ngroups);
		filter[i] = r.below(4) != 0;
		valid[i / 8] |= is_valid << i % 8;
		if (r.below(16) == 0)
			group[i] = r.below(2) ? -1 - (int32_t) r.below(9) : (int32_t) (c.ngroups + r.below(9));
		group[i] += min;
		if (group[i] < min || group[i] - min >= c.ngroups || (c.nulls && !is_valid) ||
			(c.filter && !filter[i]))
			continue;
		gpuagg_bin_hll((uint64_t) v, &reg, &rank);
		uint8_t &to = expected[(group[i] - min) * GPUAGG_HLL_REGISTERS + reg];

		to = (uint8_t) hll_max_combine(to, rank);
	}
	DeviceArray<char> device_bytes(bytes, c.shift * width);
	DeviceArray<int32_t> device_group(group, c.shift);
	DeviceArray<uint8_t> device_valid(valid), device_filter(filter, c.shift);

	rows.column.type = c.type;
	rows.column.values = device_bytes.get();
	rows.column.validity = c.nulls ? device_valid.get() : nullptr;
	rows.filter = c.filter ? device_filter.get() : nullptr;
	rows.group = device_group.get();
	rows.min = min;
	rows.ngroups = c.ngroups;
	STATUS_MUST(device_update_sketches(&rows, (int64_t) c.n, registers.get(), nullptr));
	CUDA_MUST(cudaDeviceSynchronize());
}

/*
 * Updates sketches by two batches of random rows, and compares all registers with the expected
 * ones.
 */
static void
check_case(const SketchCase &c, uint64_t seed)
{
	size_t all = c.ngroups * GPUAGG_HLL_REGISTERS;
	Random r(seed);
	std::vector<uint8_t> expected(all, 0);
	DeviceArray<uint8_t> registers(all);
	size_t bad = 0;

	CUDA_MUST(cudaMemset(registers.get(), 0, all));
	for (int b = 0; b < 2; b++)
		update_batch(c, r, expected, registers);
	std::vector<uint8_t> got = registers.take();

	while (bad < all && got[bad] == expected[bad])
		bad++;
	CHECK(bad == all,
		  "type %d, %ld groups, %zu rows, values %d, keyed %d nulls %d filter %d shift %zu: "
		  "register %zu of group %zu is %d, expected %d",
		  c.type, (long) c.ngroups, c.n, c.values, c.keyed, c.nulls, c.filter, c.shift,
		  bad % GPUAGG_HLL_REGISTERS, bad / GPUAGG_HLL_REGISTERS, bad < all ? got[bad] : 0,
		  bad < all ? expected[bad] : 0);
	CHECK(registers.guards_intact(), "registers overrun");
}

/* Few rows, whose registers are updated in device memory. */
GPU_TEST(sketch_rows)
{
	const WireType types[] = {WIRE_I8, WIRE_I16, WIRE_I32, WIRE_I64};
	uint64_t seed = 1;

	for (WireType type : types)
		for (int64_t ngroups : {1L, 3L, 40L})
			for (size_t n : {1, 31, 1023, 1025, 9001})
				for (int flags = 0; flags < 8; flags++)
					if (!gpu_test_quick() || flags == (int) (seed % 8))
						check_case({type, ngroups, n, (Values) (flags % 3), (flags & 1) != 0,
									(flags & 2) != 0, (flags & 4) != 0, n % 3},
								   seed++);
					else
						seed++;
}

/* Many rows change the words of the same registers concurrently. */
GPU_TEST(sketch_hot_registers)
{
	const size_t n = gpu_test_quick() ? 3001 : 200003;
	uint64_t seed = 500;

	for (int values = 0; values < NVALUES; values++)
		for (int64_t ngroups : {1L, 20L})
			check_case({values == RISING ? WIRE_I64 : WIRE_I32, ngroups, n, (Values) values, false,
						false, false, 0},
					   seed++);
}

/*
 * Enough rows for registers in shared memory: for the largest number of groups that fits, and for
 * one more.
 */
GPU_TEST(sketch_shared)
{
	const DeviceFacts *facts;
	uint64_t seed = 700;

	STATUS_MUST(gpuagg_device_facts(&facts));
	for (int64_t ngroups : {1L, 2L, (long) (facts->smem_per_block / GPUAGG_HLL_REGISTERS),
							(long) (facts->smem_per_block / GPUAGG_HLL_REGISTERS) + 1})
	{
		size_t n = (size_t) ngroups * (GPUAGG_HLL_REGISTERS / 4) * facts->sms;

		if (gpu_test_quick() && n > 100000)
			continue;
		for (size_t rows : {n - 1, n + 1})
			for (int values = 0; values < NVALUES; values++)
				if (rows > n || values == 0)
					check_case({WIRE_I64, ngroups, rows, (Values) values, values == 1, values == 2,
								values == 0, 1},
							   seed++);
	}
}

/* Sketches of groups, in a list or all, are combined, widened and counted. */
GPU_TEST(sketch_groups)
{
	const int64_t ngroups = 7, n = 5;
	const std::vector<int32_t> list = {6, 0, 3, 2, 5};
	size_t all = ngroups * GPUAGG_HLL_REGISTERS;
	Random r(3);
	std::vector<uint8_t> to(all), from(n * GPUAGG_HLL_REGISTERS);

	for (uint8_t &b : to)
		b = (uint8_t) r.below(GPUAGG_HLL_RANKS);
	for (uint8_t &b : from)
		b = (uint8_t) r.below(GPUAGG_HLL_RANKS);
	for (bool listed : {false, true})
	{
		DeviceArray<uint8_t> registers(to), others(from);
		DeviceArray<int32_t> device_list(list), wide(n * GPUAGG_HLL_REGISTERS),
			counts(n * GPUAGG_HLL_RANKS);
		const int32_t *groups = listed ? device_list.get() : nullptr;

		STATUS_MUST(device_combine_sketches(others.get(), groups, n, registers.get(), nullptr));
		STATUS_MUST(device_widen_registers(registers.get(), groups, n, wide.get(), nullptr));
		STATUS_MUST(device_count_ranks(registers.get(), groups, n, counts.get(), nullptr));
		std::vector<int32_t> got = wide.take(), ranks = counts.take();
		std::vector<uint8_t> left = registers.take();

		for (int64_t g = 0; g < n; g++)
		{
			int64_t group = listed ? list[g] : g;
			int32_t expected[GPUAGG_HLL_REGISTERS], counted[GPUAGG_HLL_RANKS];

			for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
				expected[i] = hll_max_combine(to[group * GPUAGG_HLL_REGISTERS + i],
											  from[g * GPUAGG_HLL_REGISTERS + i]);
			gpuagg_hll_count_ranks(expected, counted);
			CHECK(memcmp(expected, &got[g * GPUAGG_HLL_REGISTERS], sizeof(expected)) == 0,
				  "listed %d: wrong registers of group %ld", listed, (long) group);
			CHECK(memcmp(counted, &ranks[g * GPUAGG_HLL_RANKS], sizeof(counted)) == 0,
				  "listed %d: wrong ranks of group %ld", listed, (long) group);
		}
		/* groups outside of the list are unchanged */
		for (int64_t g : {1, 4})
			CHECK(!listed ||
					  memcmp(&left[g * GPUAGG_HLL_REGISTERS], &to[g * GPUAGG_HLL_REGISTERS],
							 GPUAGG_HLL_REGISTERS) == 0,
				  "group %ld changed", (long) g);
		CHECK(wide.guards_intact() && counts.guards_intact() && registers.guards_intact(),
			  "overrun");
	}
}
