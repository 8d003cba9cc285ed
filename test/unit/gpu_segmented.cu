/*
 * gpu_segmented.cu
 *	  Tests of segmented reductions, of segments from bins and of the order of rows.
 *
 * Every operator that does not commute is compared with the CPU monoids over many geometries.  The
 * inputs give the same result in any order of combination (small whole numbers in floats, signed
 * permutation matrices), so states are compared exactly.
 */
#include "gpu_segmented_test.h"

/* Checks an operator over one geometry if it does not commute. */
template <class Op>
static void
check_one(const char *name, const Geometry &geometry, uint64_t seed, int repeats = 1)
{
	if constexpr (!Op::commutative)
		check_monoid<Op>(name, geometry, seed + Op::id, repeats);
}

/* Checks every operator over one geometry. */
static void
check_all(const Geometry &geometry, uint64_t seed, int repeats = 1)
{
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	check_one<Op_##name>(#name, geometry, seed, repeats);
#include "operators/monoid_list.h"
#undef MONOID
}

/* ---- tests ------------------------------------------------------------- */

/* Up to 2^19 elements in segments of every kind. */
GPU_TEST(segmented_small)
{
	Random r(1);

	for (const Geometry &g : geometries(r, false))
		check_all(g, 100);
	for (int64_t mean : {2, 5, 9, 20, 40, 100, 300, 600, 5000})
		check_all(random_lengths("mean", r, (int) (30000 / mean) + 2, 2 * mean, 1), mean);
}

/*
 * The large geometries: with --quick all of them, else those that segmented_small does not cover.
 */
GPU_TEST(segmented_large)
{
	Random r(3);

	for (const Geometry &g : geometries(r, true))
		if (g.offsets.back() > (1 << 19) || gpu_test_quick())
			check_all(g, 300);
}

/* Lengths that differ little: from less than one element for each lane to more than a chunk. */
GPU_TEST(segmented_regular)
{
	int64_t n = (1 << 19) + 10000;
	Random r(12);

	for (const Geometry &geometry :
		 {even_lengths("0 to 4", r, n, 0, 5, 60), even_lengths("0 to 40", r, n, 0, 41, 50),
		  even_lengths("hundreds", r, n, 250, 100, 300),
		  even_lengths("ten thousands", r, n, 17001, 700, 17000), from_lengths("one", {n + 3})})
	{
		if (gpu_test_quick())
			check_one<Op_longest_run>("longest_run", geometry, 700, 2);
		else
			check_all(geometry, 700, 2);
	}
}

/*
 * Subarray sums where some elements are beyond the bound of the shorter steps: near the limits of
 * integers without overflow, with overflow, NaN and infinities.
 */
GPU_TEST(segmented_subarray_limits)
{
	const double inf = INFINITY;
	const double odd[] = {NAN, inf, -inf, 1e307, -1e307};
	Random r(11);
	const int nseg = 400, length = 30; /* most rows of a tile contain a segment's end */
	std::vector<int64_t> x(nseg * length);
	std::vector<double> y(nseg * length);
	std::vector<int64_t> offsets(nseg + 1);

	for (int i = 0; i < nseg * length; i++)
	{
		int segment = i / length;

		x[i] = segment % 7 == 0 && r.below(15) == 0 ? ((int64_t) r.next() >> 5) :
													  (int64_t) r.below(2001) - 1000;
		if (segment % 50 == 3)
			x[i] = INT64_MAX - 5;
		y[i] = segment % 5 == 0 && r.below(20) == 0 ? odd[r.below(5)] :
													  (double) (int) r.below(2001) - 1000;
	}
	for (int s = 0; s <= nseg; s++)
		offsets[s] = s * length;

	DeviceArray<int64_t> d_x(x);
	DeviceArray<double> d_y(y);
	DeviceArray<int64_t> d_offsets(offsets);
	DeviceArray<gpuagg_maxsub_i64> d_sub(nseg);
	DeviceArray<gpuagg_maxsub_f64> d_subf(nseg);
	GpuaggSegments segments = {nseg * length, nseg, d_offsets};

	reduce(&segments, MONOID_MAXSUB_I64, d_x, d_sub);
	reduce(&segments, MONOID_MAXSUB_F64, d_y, d_subf);

	std::vector<gpuagg_maxsub_i64> sub = d_sub.take();
	std::vector<gpuagg_maxsub_f64> subf = d_subf.take();

	for (int s = 0; s < nseg; s++)
	{
		gpuagg_maxsub_i64 e = maxsub_i64_identity();
		gpuagg_maxsub_f64 f = maxsub_f64_identity();

		for (int i = s * length; i < (s + 1) * length; i++)
		{
			e = maxsub_i64_step(e, x[i]);
			f = maxsub_f64_step(f, y[i]);
		}
		CHECK((e.best < 0) == (s % 50 == 3) && e.best == sub[s].best, "segment %d: %ld, not %ld", s,
			  (long) sub[s].best, (long) e.best);
		CHECK(f.flags == subf[s].flags && same(maxsub_f64_best(f), maxsub_f64_best(subf[s])),
			  "segment %d: %g, not %g", s, maxsub_f64_best(subf[s]), maxsub_f64_best(f));
	}
}

/*
 * Subarray sums of the least and greatest integers.  Their results do not depend on the order of
 * combination.
 */
GPU_TEST(segmented_subarray_extremes)
{
	const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, 0, 1, -1};
	Random r(41);

	for (const Geometry &g : {random_lengths("extremes, 0 to 4", r, 3000, 4, 1),
							  random_lengths("extremes, 0 to 60", r, 400, 60, 1),
							  random_lengths("extremes, to 1600", r, 16, 1600, 1),
							  random_lengths("extremes, chunks", r, gpu_test_quick() ? 6500 : 14000,
											 gpu_test_quick() ? 7 : 90, 1)})
	{
		int64_t nseg = (int64_t) g.offsets.size() - 1;
		std::vector<int64_t> values(g.offsets.back());

		for (int64_t &x : values)
			x = r.below(8) < 7 ? extremes[r.below(7)] : (int64_t) r.next();

		DeviceArray<int64_t> d_values(values, 1);
		DeviceArray<int64_t> d_offsets(g.offsets);
		DeviceArray<gpuagg_maxsub_i64> d_states(nseg);
		GpuaggSegments segments = {g.offsets.back(), nseg, d_offsets};

		reduce(&segments, MONOID_MAXSUB_I64, d_values, d_states);

		std::vector<gpuagg_maxsub_i64> states = d_states.take();

		CHECK(d_states.guards_intact(), "%s: results overrun", g.name);
		for (int64_t s = 0; s < nseg; s++)
		{
			gpuagg_maxsub_i64 expected = maxsub_i64_identity();

			for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
				expected = maxsub_i64_step(expected, values[e]);
			CHECK(states[s].best == expected.best, "%s, segment %ld of %ld: %ld, not %ld", g.name,
				  (long) s, (long) nseg, (long) states[s].best, (long) expected.best);
		}
	}
}

/*
 * Checks segments_from_bins for up to `distinct` bins in n sorted rows: where the segments start,
 * their bins, and a reduction of them.
 */
static void
check_bins(Random &r, int64_t n, uint64_t distinct)
{
	std::vector<int32_t> bins(n);
	std::vector<int64_t> heads;
	size_t bytes;

	for (int32_t &b : bins)
		b = (int32_t) (r.below(distinct) * 0x10001);
	std::sort(bins.begin(), bins.end());
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || bins[i] != bins[i - 1])
			heads.push_back(i);

	DeviceArray<int32_t> d_bins(bins, 1);
	DeviceArray<int64_t> d_offsets(n + 1);
	DeviceArray<int64_t> d_count(1);

	STATUS_MUST(gpuagg_cuda_segments_from_bins(d_bins, n, d_offsets, d_count, nullptr, &bytes, 0));

	DeviceArray<char> workspace(bytes);

	STATUS_MUST(
		gpuagg_cuda_segments_from_bins(d_bins, n, d_offsets, d_count, workspace.get(), &bytes, 0));

	int64_t runs = d_count.take()[0];

	CHECK(runs == (int64_t) heads.size(), "%ld runs in %ld rows, not %zu", (long) runs, (long) n,
		  heads.size());
	if (runs != (int64_t) heads.size())
		return;

	DeviceArray<int32_t> d_unique(runs);

	STATUS_MUST(gpuagg_cuda_gather(sizeof(int32_t), d_bins, d_offsets, runs, d_unique, 0));

	std::vector<int64_t> offsets = d_offsets.take(runs + 1);
	std::vector<int32_t> unique = d_unique.take();

	for (size_t s = 0; s < heads.size(); s++)
	{
		CHECK(offsets[s] == heads[s], "run %zu starts at %ld, not %ld", s, (long) offsets[s],
			  (long) heads[s]);
		CHECK(unique[s] == bins[heads[s]], "run %zu: another bin", s);
	}
	CHECK(offsets[runs] == n, "the last run ends at %ld, not %ld", (long) offsets[runs], (long) n);
	CHECK(d_offsets.guards_intact() && d_unique.guards_intact() && workspace.guards_intact(),
		  "overrun");

	/* a reduction of the segments gives the number of rows of each bin */
	DeviceArray<int8_t> d_values(std::vector<int8_t>(n, 1));
	DeviceArray<gpuagg_run> d_states(runs);
	GpuaggSegments segments = {n, runs, d_offsets};

	reduce(&segments, MONOID_LONGEST_RUN, d_values, d_states);

	std::vector<gpuagg_run> states = d_states.take();

	for (size_t s = 0; s < heads.size(); s++)
		CHECK(states[s].best == (s + 1 < heads.size() ? heads[s + 1] : n) - heads[s],
			  "run %zu: %ld rows", s, (long) states[s].best);
}

/* Segments from bins: few and many bins in few and many rows. */
GPU_TEST(segmented_by_bin)
{
	Random r(8);

	for (uint64_t distinct : {1, 7, 200, 10000})
		for (int64_t n : {1, 2, 1000, 70001})
			check_bins(r, n, distinct);
}

/* Returns the row numbers in the order that std::stable_sort gives. */
static std::vector<int64_t>
sorted_rows(const std::vector<std::vector<int64_t>> &words, const std::vector<bool> &descending)
{
	std::vector<int64_t> rows(words[0].size());

	for (size_t i = 0; i < rows.size(); i++)
		rows[i] = (int64_t) i;
	std::stable_sort(rows.begin(), rows.end(),
					 [&](int64_t a, int64_t b)
					 {
						 for (size_t w = 0; w < words.size(); w++)
							 if (words[w][a] != words[w][b])
								 return (words[w][a] < words[w][b]) != descending[w];
						 return false;
					 });
	return rows;
}

/* Shuffled rows are sorted by words of several widths, gathered, and selected. */
GPU_TEST(segmented_sort_rows)
{
	Random r(9);

	for (int64_t n : {1, 1000, 100003})
	{
		std::vector<std::vector<int64_t>> word(4, std::vector<int64_t>(n));
		std::vector<bool> descending = {false, true, false, true};
		std::vector<int32_t> group(n);
		std::vector<int8_t> flag(n);
		std::vector<uint8_t> keep(n);
		std::vector<gpuagg_f64x2> values(n);
		size_t bytes;

		for (int64_t i = 0; i < n; i++)
		{
			word[0][i] = group[i] = (int32_t) r.below(50) - 7;
			word[1][i] = flag[i] = (int8_t) (r.below(3) - 1);
			word[2][i] = r.below(3) ? (int64_t) r.below(100) - 50 :
				r.below(2)          ? INT64_MIN :
									  INT64_MAX;
			word[3][i] = (int64_t) r.below(1000) + ((int64_t) 1 << 40);
			keep[i] = r.below(4) != 0;
			make(r, &values[i]);
		}

		DeviceArray<int32_t> d_group(group);
		DeviceArray<int8_t> d_flag(flag);
		DeviceArray<int64_t> d_order(word[2]);
		DeviceArray<int64_t> d_late(word[3]);
		DeviceArray<uint8_t> d_keep(keep);
		DeviceArray<int64_t> d_permutation(n);
		DeviceArray<int64_t> d_selected(n);
		DeviceArray<int64_t> d_nselected(1);
		DeviceArray<gpuagg_f64x2> d_values(values);
		DeviceArray<gpuagg_f64x2> d_ordered(n);
		GpuaggSortWord words[4] = {{d_group.get(), GPUAGG_VALUE_I32, 6, 0, -7},
								   {d_flag.get(), GPUAGG_VALUE_I8, 2, 1, -1},
								   {d_order.get(), GPUAGG_VALUE_I64, 64, 0, 0},
								   {d_late.get(), GPUAGG_VALUE_I64, 10, 1, (int64_t) 1 << 40}};

		STATUS_MUST(gpuagg_cuda_sort_rows(n, 4, words, d_permutation, nullptr, &bytes, 0));

		DeviceArray<char> workspace(bytes);

		STATUS_MUST(gpuagg_cuda_sort_rows(n, 4, words, d_permutation, workspace.get(), &bytes, 0));
		STATUS_MUST(
			gpuagg_cuda_gather(sizeof(gpuagg_f64x2), d_values, d_permutation, n, d_ordered, 0));
		STATUS_MUST(gpuagg_cuda_select_rows(n, d_permutation, d_keep, d_selected, d_nselected,
											nullptr, &bytes, 0));

		DeviceArray<char> select(bytes);

		STATUS_MUST(gpuagg_cuda_select_rows(n, d_permutation, d_keep, d_selected, d_nselected,
											select.get(), &bytes, 0));

		std::vector<int64_t> expected = sorted_rows(word, descending);
		std::vector<int64_t> permutation = d_permutation.take();
		std::vector<int64_t> selected = d_selected.take(d_nselected.take()[0]);
		std::vector<gpuagg_f64x2> ordered = d_ordered.take();
		std::vector<int64_t> kept;

		CHECK(permutation == expected, "%ld rows: another order", (long) n);
		for (int64_t i = 0; i < n; i++)
		{
			CHECK(same(ordered[i], values[expected[i]]), "row %ld", (long) i);
			if (keep[expected[i]])
				kept.push_back(expected[i]);
		}
		CHECK(selected == kept, "%ld rows: other rows kept", (long) n);
	}
}

/* Unsupported operators, and arguments that are not valid. */
GPU_TEST(segmented_errors)
{
	GpuaggSegments segments = {10, 1, (const int64_t *) 256};
	size_t bytes = 0;

	for (MonoidId op : {MONOID_COUNT, MONOID_SUM_F64, MONOID_HLL_MAX})
		CHECK(gpuagg_cuda_segmented_reduce(&segments, op, nullptr, nullptr, nullptr, &bytes, 0) ==
				  GPUAGG_CUDA_UNSUPPORTED,
			  "%s, which commutes", gpuagg_monoids[op].name);
	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_COUNT_OF_IDS, nullptr, nullptr, nullptr,
									   &bytes, 0) == GPUAGG_CUDA_INVALID,
		  "no such operator");
	segments.nvalues = (int64_t) 1 << 30;
	bytes = 1;
	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_LINEAR, nullptr, nullptr, (void *) 256,
									   &bytes, 0) == GPUAGG_CUDA_WORKSPACE,
		  "one byte of workspace");
	segments.nvalues = -1;
	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_LINEAR, nullptr, nullptr, nullptr, &bytes,
									   0) == GPUAGG_CUDA_INVALID,
		  "fewer than no elements");
}
