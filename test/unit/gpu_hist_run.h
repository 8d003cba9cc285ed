/*
 * gpu_hist_run.h
 *	  Shared by the tests of gpuagg_hist_update: slots with random columns, the expected states,
 *	  the states made by the device, and the call.
 *
 * HistBatch makes the columns for a list of SlotCase. HistExpected computes the expected states
 * with the CPU's operators. HistActual has the arrays that the device fills, and compares them. One
 * HistExpected serves several HistActual, one for each strategy.
 */
#ifndef GPUAGG_GPU_HIST_RUN_H
#define GPUAGG_GPU_HIST_RUN_H

#include <memory>
#include <string>

#include "gpu_hist_reference.h"

static const GpuaggHistStrategy strategies[] = {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION,
												GPUAGG_HIST_GLOBAL, GPUAGG_HIST_EXCHANGE,
												GPUAGG_HIST_AUTO};

/* An operator, and how its columns are made. */
struct SlotCase
{
	MonoidId op;
	GpuaggValueType type; /* type of x */
	bool nulls = false;   /* x has NULLs */
	bool filter = false;
	Spread spread = PLAIN;
	GpuaggValueType second = GPUAGG_VALUE_NATIVE; /* type of y; NATIVE: there is no y */
	bool second_nulls = false;
};

/*
 * Returns a slot with columns of the operator's own input type. Products stay within the range of
 * doubles.
 */
static inline SlotCase
plain_slot(MonoidId op)
{
	SlotCase c = {op, own_type(op)};

	if (has_pair_input(op))
		c.second = c.type;
	if (op == MONOID_PRODUCT_F64)
		c.spread = FACTORS;
	return c;
}

/* ---- expected states ---------------------------------------------------------------- */

struct HistExpected
{
	std::vector<SlotCase> slots;
	int64_t nbins;
	std::vector<std::vector<char>> states;
	std::vector<std::vector<HistScale>>
		scales; /* for each slot, by bin; empty if the operator does not round */
	unsigned long long outside = 0;
	std::vector<uint32_t> errors;

	HistExpected(const std::vector<SlotCase> &of, int64_t bins)
		: slots(of), nbins(bins), states(of.size()), scales(of.size()), errors(of.size(), 0)
	{
		for (size_t s = 0; s < slots.size(); s++)
		{
			reference_init(slots[s].op, states[s], nbins);
			if (is_rounded(slots[s].op))
				scales[s].resize(nbins);
		}
	}
	void
	step(size_t s, int64_t bin, Input in)
	{
		reference_step(slots[s].op, states[s], bin, in);
		if (!scales[s].empty())
			scale_step(slots[s].op, scales[s][bin], in);
	}
	/* Returns the first bin with a wrong state, or -1. */
	int64_t
	first_bad(size_t s, const std::vector<char> &got) const
	{
		size_t size = gpuagg_monoids[slots[s].op].state_size;

		if (scales[s].empty() && got == states[s])
			return -1;
		for (int64_t b = 0; b < nbins; b++)
			if (!same_state(slots[s].op, &got[b * size], &states[s][b * size],
							scales[s].empty() ? nullptr : &scales[s][b]))
				return b;
		return -1;
	}
};

/* Returns the first state in which two arrays differ, or -1. */
static inline int64_t
first_difference(MonoidId op, const std::vector<char> &a, const std::vector<char> &b)
{
	size_t size = gpuagg_monoids[op].state_size;

	if (a == b)
		return -1;
	for (size_t at = 0; at < a.size(); at += size)
		if (memcmp(&a[at], &b[at], size) != 0)
			return (int64_t) (at / size);
	return -1;
}

/* Returns a state's bytes as hexadecimal words. */
static inline std::string
state_text(MonoidId op, const char *state)
{
	size_t size = gpuagg_monoids[op].state_size;
	std::string text;
	char word[40];

	for (size_t at = 0; at < size; at += 8)
	{
		uint64_t bits = 0;

		memcpy(&bits, state + at, size - at < 8 ? size - at : 8);
		snprintf(word, sizeof(word), "%s%016lx", at ? " " : "", (unsigned long) bits);
		text += word;
	}
	return text;
}

/* ---- bins from two keys ---------------------------------------------------------------- */

/*
 * Two int32 keys from whose ranges the given bins result. The fast kernels compute these bins
 * themselves. In rows without a bin, one key or both are out of range. They are next to the range,
 * where a missing check would give another row's bin, or far away.
 */
struct BinKeys
{
	GpuaggBins bins = GpuaggBins();
	unsigned long long outside = 0;
	std::unique_ptr<DeviceArray<int32_t>> column[2];

	BinKeys(const std::vector<int32_t> &bin, int64_t nbins)
	{
		uint32_t extent[2] = {1, 0};
		const uint32_t n = (uint32_t) nbins;
		std::vector<int32_t> key[2] = {std::vector<int32_t>(bin.size()),
									   std::vector<int32_t>(bin.size())};

		for (uint32_t e = 2; e * e <= n; e++)
			if (n % e == 0)
				extent[0] = e;
		extent[1] = n / extent[0];
		const uint32_t mins[3][2] = {{(uint32_t) -7, (uint32_t) INT32_MAX - extent[1] + 1},
									 {(uint32_t) INT32_MIN, (uint32_t) -1000},
									 {(uint32_t) INT32_MAX - extent[0] + 1, (uint32_t) INT32_MIN}};
		const uint32_t *min = mins[n % 3];

		for (size_t i = 0; i < bin.size(); i++)
		{
			bool has_bin = bin[i] >= 0 && bin[i] < nbins;
			uint32_t at[2] = {has_bin ? (uint32_t) bin[i] / extent[1] : extent[0] / 2,
							  has_bin ? (uint32_t) bin[i] % extent[1] : extent[1] / 2};
			const uint32_t invalid[7][2] = {
				{at[0], ~0u},
				{at[0], extent[1]},
				{~0u, at[1]},
				{extent[0], at[1]},
				{~0u, extent[1]},
				{at[0] ^ 1u << 31, at[1] ^ 1u << 31},
				/*
				 * multiplied by extent[1] it overflows 32 bits and is small again, if extent[1] > 1
				 */
				{extent[1] > 1 ? (uint32_t) ((1ULL << 32) / extent[1]) + 1 : extent[0], at[1]}};

			outside += !has_bin;
			for (int c = 0; c < 2; c++)
				key[c][i] = (int32_t) (min[c] + (has_bin ? at[c] : invalid[i % 7][c]));
		}
		bins.kind = GPUAGG_BIN_RANGE;
		bins.ncolumns = 2;
		bins.nbins = nbins;
		for (int c = 0; c < 2; c++)
		{
			column[c].reset(new DeviceArray<int32_t>(key[c], c + 1));
			bins.column[c] = {column[c]->get(), nullptr, GPUAGG_VALUE_I32};
			bins.min[c] = (int32_t) min[c];
			bins.extent[c] = extent[c];
		}
	}
};

struct HistActual
{
	std::vector<std::unique_ptr<DeviceArray<char>>> states;
	DeviceArray<GpuaggHistStatus> status{1};

	/* Initializes states that start `shift` bytes after a multiple of 256. */
	HistActual(const std::vector<SlotCase> &slots, int64_t nbins, size_t shift = 0)
	{
		CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
		for (const SlotCase &c : slots)
		{
			states.emplace_back(
				new DeviceArray<char>(nbins * gpuagg_monoids[c.op].state_size, shift));
			STATUS_MUST(gpuagg_hist_init(c.op, states.back()->get(), nbins, nullptr));
		}
	}
	void
	attach(GpuaggHist &h) const
	{
		h.status = status.get();
		for (size_t s = 0; s < states.size(); s++)
			h.slot[s].states = states[s]->get();
	}
	void
	check(const HistExpected &e, const char *what) const
	{
		const GpuaggHistStatus reported = status.take()[0];

		CHECK(reported.outside == e.outside, "%s: %llu rows outside, expected %llu", what,
			  reported.outside, e.outside);
		for (size_t s = 0; s < e.slots.size(); s++)
		{
			MonoidId op = e.slots[s].op;
			size_t size = gpuagg_monoids[op].state_size;
			std::vector<char> got = states[s]->take();
			int64_t bad = e.first_bad(s, got);

			CHECK(bad < 0, "%s: slot %zu, %s: bin %ld of %ld, %g rows: %s, expected %s", what, s,
				  gpuagg_monoids[op].name, (long) bad, (long) e.nbins,
				  bad < 0 || e.scales[s].empty() ? -1 : e.scales[s][bad].n,
				  bad < 0 ? "" : state_text(op, &got[bad * size]).c_str(),
				  bad < 0 ? "" : state_text(op, &e.states[s][bad * size]).c_str());
			CHECK(reported.errors[s] == e.errors[s], "%s: slot %zu, %s: error bits %u, expected %u",
				  what, s, gpuagg_monoids[op].name, reported.errors[s], e.errors[s]);
			CHECK(states[s]->guards_intact(), "%s: slot %zu, %s: states overrun", what, s,
				  gpuagg_monoids[op].name);
		}
	}
};

/* ---- rows: HistBatch ------------------------------------------------------------------- */

struct HistBatch
{
	std::vector<SlotCase> slots;
	size_t n;
	Column x[GPUAGG_MAX_SLOTS];
	Column y[GPUAGG_MAX_SLOTS];
	std::vector<uint8_t> filter;
	std::unique_ptr<DeviceArray<uint8_t>> device_filter;

	/* Makes columns of n rows that start 1 + shift elements after a multiple of 256 bytes. */
	HistBatch(Random &r, const std::vector<SlotCase> &of, size_t rows, size_t shift = 0)
		: slots(of), n(rows)
	{
		for (size_t i = 0; i < n; i++)
			filter.push_back(r.below(4) ? 1 + (uint8_t) r.below(2) : 0);
		device_filter.reset(new DeviceArray<uint8_t>(filter));
		for (size_t s = 0; s < slots.size(); s++)
		{
			const SlotCase &c = slots[s];
			size_t at = 1 + shift;

			fill_column(x[s], r, c.type, n, c.spread, c.nulls);
			x[s].upload(size_of(c.type) * at);
			if (c.second != GPUAGG_VALUE_NATIVE)
			{
				fill_column(y[s], r, c.second, n, c.spread, c.second_nulls);
				y[s].upload(size_of(c.second) * at);
			}
		}
	}
	void
	attach(GpuaggHist &h) const
	{
		h.nslots = (int) slots.size();
		h.nrows = (int64_t) n;
		for (size_t s = 0; s < slots.size(); s++)
		{
			GpuaggSlot &slot = h.slot[s];

			slot.op = slots[s].op;
			slot.x = x[s].get();
			slot.y = slots[s].second != GPUAGG_VALUE_NATIVE ? y[s].get() : GpuaggColumn();
			slot.filter = slots[s].filter ? device_filter->get() : nullptr;
		}
	}
	/* Sets `in` to the input of slot s from row i. Returns false if the row does not count. */
	bool
	input(size_t s, size_t i, Input &in) const
	{
		const SlotCase &c = slots[s];
		bool second = c.second != GPUAGG_VALUE_NATIVE;

		if (!x[s].ok(i) || (c.filter && !filter[i]) || (second && !y[s].ok(i)))
			return false;
		in = x[s].in[i];
		if (second)
			in.hi = y[s].in[i].lo;
		return true;
	}
	/* Adds the rows to the expected states. bin: the bin of each row, or negative for none. */
	void
	expect(HistExpected &e, const std::vector<int32_t> &bin) const
	{
		for (size_t s = 0; s < slots.size(); s++)
			for (size_t i = 0; i < n; i++)
			{
				Input in;

				if (bin[i] >= 0 && input(s, i, in))
					e.step(s, bin[i], in);
			}
	}
};

/* ---- the call ---------------------------------------------------------------------- */

/* Runs the update in a workspace of exactly the size that it needs, and waits for its end. */
static inline void
hist_update(const GpuaggHist &h)
{
	size_t bytes = 0;

	STATUS_MUST(gpuagg_hist_update(&h, nullptr, &bytes, nullptr));
	DeviceArray<char> workspace(bytes);

	STATUS_MUST(gpuagg_hist_update(&h, workspace.get(), &bytes, nullptr));
	CUDA_MUST(cudaDeviceSynchronize());
	CHECK(workspace.guards_intact(), "workspace overrun");
}

/* Initializes the states of one slot, and adds a batch to them. `index` has the bin of each row. */
static inline void
update_one_batch(MonoidId op, const GpuaggColumn &index, const GpuaggColumn &x, size_t n,
				 int64_t nbins, void *states, GpuaggHistStatus *status, GpuaggHistStrategy strategy,
				 const GpuaggColumn &y = GpuaggColumn())
{
	GpuaggHist h = GpuaggHist();

	CUDA_MUST(cudaMemset(status, 0, sizeof(GpuaggHistStatus)));
	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = index;
	h.bins.nbins = nbins;
	h.nslots = 1;
	h.slot[0].op = op;
	h.slot[0].x = x;
	h.slot[0].y = y;
	h.slot[0].states = states;
	h.nrows = (int64_t) n;
	h.status = status;
	h.strategy = strategy;
	STATUS_MUST(gpuagg_hist_init(op, states, nbins, nullptr));
	hist_update(h);
}

#endif /* GPUAGG_GPU_HIST_RUN_H */
