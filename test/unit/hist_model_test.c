/*
 * hist_model_test.c
 *	  Tests the analytic model that chooses how a histogram is computed (kernels/hist_model.h).
 *
 * A table gives the expected form, number of copies and passes for numbers of bins, words and rows
 * on an H100. Other tests check for many sizes that what was chosen fits and covers all bins.
 */
#include "unit.h"

#include "../../kernels/hist_model.h"

/*
 * H100: 132 multiprocessors, 227 kB of shared memory per block less 1 kB that kernels use, 50 MB of
 * L2 cache.
 */
static const HistDevice h100 = {132, 2048, 232448 - 1024, 50 << 20};

static const struct
{
	int64_t bins;
	int words;
	int64_t rows;
	HistForm form;
	int least_log2, most_log2; /* bounds of log2 of the number of copies */
	int passes;
	HistSlotsKind kind;
} table[] = {
	/* few bins: one copy per lane of a warp */
	{1, 1, 50000000, HIST_FORM_SHARED, 5, 5, 1, HIST_SLOTS_ANY},
	{31, 1, 50000000, HIST_FORM_SHARED, 5, 5, 1, HIST_SLOTS_ANY},
	{100, 5, 134217728, HIST_FORM_SHARED, 5, 5, 1, HIST_SLOTS_ANY},
	/* thousands of bins: lanes rarely update the same bin, so one copy */
	{6137, 1, 50000000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ANY},
	/* few rows: copies would cost more than they save */
	{2000, 5, 100000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ANY},
	/* the largest number of bins for each number of passes, and one more */
	{57856, 1, 50000000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ANY},
	{57857, 1, 50000000, HIST_FORM_SHARED, 0, 0, 2, HIST_SLOTS_ANY},
	{173568, 1, 50000000, HIST_FORM_SHARED, 0, 0, 3, HIST_SLOTS_ANY},
	/* four passes cost more than a partition, except for counts */
	{173569, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 4, HIST_SLOTS_ANY},
	{231424, 1, 50000000, HIST_FORM_SHARED, 0, 0, 4, HIST_SLOTS_COUNTS},
	{231425, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 5, HIST_SLOTS_COUNTS},
	{1572863, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 28, HIST_SLOTS_ANY},
	/* a single count uses one byte per bin if words do not fit */
	{57856, 1, 50000000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ONE_COUNT},
	{57857, 1, 50000000, HIST_FORM_BYTES, 0, 0, 1, HIST_SLOTS_ONE_COUNT},
	{231424, 1, 50000000, HIST_FORM_BYTES, 0, 0, 1, HIST_SLOTS_ONE_COUNT},
	{231425, 1, 50000000, HIST_FORM_BYTES, 0, 0, 2, HIST_SLOTS_ONE_COUNT},
	{925696, 1, 50000000, HIST_FORM_BYTES, 0, 0, 4, HIST_SLOTS_ONE_COUNT},
	{925697, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 5, HIST_SLOTS_ONE_COUNT},
	/* more partitions than a tile can count */
	{2000000000, 5, 134217728, HIST_FORM_GLOBAL, 0, 0, 172861, HIST_SLOTS_ANY},
};

static void
model_table(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		HistModel m =
			hist_model(&h100, table[i].bins, table[i].words, table[i].rows, table[i].kind);

		CHECK(m.form == table[i].form && m.log2_copies >= table[i].least_log2 &&
				  m.log2_copies <= table[i].most_log2 && m.passes == table[i].passes,
			  "%ld bins of %d words, %ld rows: form %d, 2^%d copies, %d passes",
			  (long) table[i].bins, table[i].words, (long) table[i].rows, m.form, m.log2_copies,
			  m.passes);
	}
}

/*
 * The device chooses the number of copies again when it knows how many bins are in use. If all are,
 * it chooses what the model chose; if one is, as many copies as fit.
 */
static void
model_copies(void)
{
	for (int64_t bins = 1; bins <= 57856; bins = bins * 5 / 4 + 1)
	{
		HistModel m = hist_model(&h100, bins, 1, 134217728, HIST_SLOTS_ANY);

		CHECK(m.log2_copies <= m.log2_max_copies, "%ld bins: 2^%d copies of at most 2^%d",
			  (long) bins, m.log2_copies, m.log2_max_copies);
		CHECK(m.log2_copies == hist_model_copies(bins, HIST_SPREAD_BINS, m.log2_max_copies),
			  "%ld bins: the device chooses the same number of copies", (long) bins);
		CHECK(hist_model_copies(1, HIST_SPREAD_BINS, m.log2_max_copies) == m.log2_max_copies,
			  "%ld bins, one in use: the device chooses all copies", (long) bins);
	}
	CHECK(hist_model(&h100, 20000, 1, 134217728, HIST_SLOTS_ANY).log2_max_copies == 1,
		  "20000 bins: at most two copies fit");
}

/*
 * The number of copies for out-of-window rows: one without such rows, ascending with their number,
 * and no more than threads can use.
 */
static void
model_out_of_window(void)
{
	const int64_t threads = 132 * 512;

	for (int64_t bins = 1; bins <= 200000; bins = bins * 3 / 2 + 1)
	{
		int before = 0;

		CHECK(hist_model_out_of_window(bins, 0, 4096, threads, 7) == 0,
			  "%ld bins: one copy without out-of-window rows", (long) bins);
		for (int64_t out = 1; out <= 4096; out *= 2)
		{
			int log2 = hist_model_out_of_window(bins, out, 4096, threads, 7);

			CHECK(log2 >= before && log2 <= 7 && (log2 == 0 || bins << (log2 - 1) < threads),
				  "%ld bins, %ld out-of-window rows: 2^%d copies, 2^%d for half of them",
				  (long) bins, (long) out, log2, before);
			before = log2;
		}
	}
	CHECK(hist_model_out_of_window(1000, 1, 4096, threads, 7) == 0,
		  "1000 bins, one out-of-window row: one copy");
	CHECK(hist_model_out_of_window(1, 1, 4096, threads, 7) > 0,
		  "one bin, one out-of-window row: several copies");
	CHECK(hist_model_out_of_window(1000, 3072, 4096, threads, 7) == 7,
		  "1000 bins, three of four rows: 2^7 copies");
	CHECK(hist_model_out_of_window(10000, 3072, 4096, threads, 7) == 3,
		  "10000 bins, three of four rows: 2^3 copies");
	CHECK(hist_model_out_of_window(100000, 3072, 4096, threads, 7) == 0,
		  "100000 bins, three of four rows: one copy");
	CHECK(hist_model_out_of_window(2, 5, 5, threads, 4) == 4,
		  "two bins, five rows, all outside the window: 2^4 copies");
}

/* States in global memory, cached in L2: several copies for few bins, one for many. */
static void
model_global(void)
{
	static const struct
	{
		int64_t bins;
		int bytes;
		int64_t rows;
		int log2_copies, log2_max_copies;
	} global[] = {
		/* one copy per block, with eight blocks per multiprocessor */
		{1, 16, 134217728, 10, 10},
		{100, 16, 134217728, 7, 10},
		/* one copy, or up to 2^6 if few of the bins are in use */
		{10000, 16, 134217728, 0, 6},
		/* few rows: merging copies would cost more than they save */
		{100, 16, 1000, 0, 0},
		{1000000, 16, 134217728, 0, 0},
		{10000000, 16, 134217728, 0, 0},
	};

	CHECK(hist_model_global(&h100, 10, 16, 134217728, true).log2_max_copies == 0,
		  "maxima have one copy");
	for (size_t i = 0; i < sizeof(global) / sizeof(global[0]); i++)
	{
		HistModel m =
			hist_model_global(&h100, global[i].bins, global[i].bytes, global[i].rows, false);

		CHECK(m.form == HIST_FORM_GLOBAL && m.log2_copies == global[i].log2_copies &&
				  m.log2_max_copies == global[i].log2_max_copies && m.passes == 1 &&
				  m.pass_bins == global[i].bins,
			  "%ld bins of %d bytes, %ld rows: 2^%d copies of at most 2^%d", (long) global[i].bins,
			  global[i].bytes, (long) global[i].rows, m.log2_copies, m.log2_max_copies);
	}
}

/*
 * Pairs of argmax: entries are in shared memory if they fit and there are enough rows, with several
 * entries per bin if bins are few.
 */
static void
model_argmax(void)
{
	static const struct
	{
		int64_t bins, rows;
		bool shared; /* shared memory is forced */
		HistForm form;
		int log2_copies;
	} argmax[] = {
		{1, 50000000, false, HIST_FORM_SHARED, 5},
		{32, 50000000, false, HIST_FORM_SHARED, 5},
		{33, 50000000, false, HIST_FORM_SHARED, 4},
		{512, 50000000, false, HIST_FORM_SHARED, 1},
		{513, 50000000, false, HIST_FORM_SHARED, 0},
		{1000, 50000000, false, HIST_FORM_SHARED, 0},
		{14208, 50000000, false, HIST_FORM_SHARED, 0},
		{14209, 50000000, false, HIST_FORM_GLOBAL, 0},
		{14209, 50000000, true, HIST_FORM_GLOBAL, 0},
		/* few rows: initializing many entries would cost more than they save */
		{4, 1, false, HIST_FORM_SHARED, 5},
		{5, 1, false, HIST_FORM_GLOBAL, 0},
		{1000, 132 * 248, false, HIST_FORM_GLOBAL, 0},
		{1000, 132 * 249, false, HIST_FORM_SHARED, 0},
		{14208, 1, true, HIST_FORM_SHARED, 0},
	};

	for (size_t i = 0; i < sizeof(argmax) / sizeof(argmax[0]); i++)
	{
		HistModel m = hist_model_argmax(&h100, argmax[i].bins, argmax[i].rows, argmax[i].shared);

		CHECK(m.form == argmax[i].form && m.log2_copies == argmax[i].log2_copies &&
				  (m.form == HIST_FORM_GLOBAL ||
				   hist_argmax_shared_bytes(argmax[i].bins << m.log2_copies) <= h100.shared_bytes),
			  "%ld bins, %ld rows: form %d, 2^%d copies", (long) argmax[i].bins,
			  (long) argmax[i].rows, m.form, m.log2_copies);
	}
}

/*
 * The bins of a pass or partition fit into shared memory, and all passes or partitions cover all
 * bins.
 */
static void
model_covers(void)
{
	for (int64_t bins = 1; bins < 2000000000; bins = bins * 5 / 4 + 1)
		for (int words = 1; words <= 33; words += 4)
		{
			HistModel m = hist_model(&h100, bins, words, 134217728, HIST_SLOTS_ANY);
			int64_t nparts = m.form == HIST_FORM_PARTITION ? m.partitions : m.passes;

			if (m.form == HIST_FORM_GLOBAL)
				continue;
			CHECK((m.pass_bins << m.log2_copies) * words * 4 <= h100.shared_bytes,
				  "%ld bins of %d words: a pass of %ld does not fit", (long) bins, words,
				  (long) m.pass_bins);
			CHECK(m.pass_bins * nparts >= bins,
				  "%ld bins of %d words: %ld parts of %ld bins cover all", (long) bins, words,
				  (long) nparts, (long) m.pass_bins);
		}
}

/* The maximum number of copies fits, too, with the number of bins rounded up to even. */
static void
model_copies_fit(void)
{
	for (int words = 1; words <= 200; words++)
		for (int64_t bins = 1; bins * words * 4 <= h100.shared_bytes; bins++)
		{
			HistModel m = hist_model(&h100, bins, words, 134217728, HIST_SLOTS_ANY);

			if (m.form == HIST_FORM_SHARED && m.passes == 1)
				CHECK(((bins + (bins & 1)) << m.log2_max_copies) * words * 4 <= h100.shared_bytes,
					  "%ld bins of %d words: 2^%d copies", (long) bins, words, m.log2_max_copies);
		}
}

/*
 * The number of words of sums of deviations: the least number for which the top word does not
 * overflow, after all rows, or after one row (rows = 0) where carries are spilled.
 */
static void
model_digits(void)
{
	for (int digit_bits = 24; digit_bits <= 28; digit_bits += 4)
		for (int rows = 0; rows <= 32; rows++)
			for (int bits = 53; bits <= 220; bits++)
			{
				int words = hist_model_digit_words(bits, digit_bits, rows);
				int below = digit_bits * (words - 1);

				CHECK(bits <= digit_bits * words && bits + rows - below <= 30,
					  "2^%d numbers of %d bits do not fit %d digits of %d", rows, bits, words,
					  digit_bits);
				CHECK(bits > below || bits + rows - (below - digit_bits) > 30,
					  "2^%d numbers of %d bits: %d digits of %d are too many", rows, bits, words,
					  digit_bits);
			}
	/*
	 * windows of 76 bits: 2^25 rows on 132 multiprocessors are up to 2^19 per block; with carries
	 * spilled, rows do not count
	 */
	CHECK(hist_model_digit_words(76, 28, 19) == 4 && hist_model_digit_words(152, 28, 19) == 7,
		  "a window of 76 bits and 2^19 rows need 4 and 7 words");
	CHECK(hist_model_digit_words(76, 28, 0) == 3 && hist_model_digit_words(152, 28, 0) == 6,
		  "a window of 76 bits with spilled carries needs 3 and 6 words");
	/* the widest windows with spilled carries, for few rows */
	CHECK(hist_model_digit_words(84, 28, 0) == 3 && hist_model_digit_words(168, 28, 0) == 6,
		  "a window of 84 bits with spilled carries needs 3 and 6 words");
}

/* There are enough partitions to keep a device busy. Their number of bins is a power of two. */
static void
model_partitions(void)
{
	for (int64_t bins = 1000000; bins <= 100000000; bins *= 10)
	{
		HistModel m = hist_model(&h100, bins, 6, 134217728, HIST_SLOTS_ANY);

		CHECK(m.form == HIST_FORM_PARTITION, "%ld bins: form %d", (long) bins, m.form);
		CHECK((m.pass_bins & (m.pass_bins - 1)) == 0, "%ld bins: partitions of %ld", (long) bins,
			  (long) m.pass_bins);
		CHECK(m.partitions >= 128 && m.partitions <= HIST_MAX_PARTITIONS,
			  "%ld bins: %ld partitions", (long) bins, (long) m.partitions);
	}
}

int
main(void)
{
	RUN("the model chooses as the table says", model_table);
	RUN("the device chooses copies as the model does", model_copies);
	RUN("the maximum number of copies fits", model_copies_fit);
	RUN("copies for out-of-window rows ascend with their number", model_out_of_window);
	RUN("copies in the L2 cache are as the table says", model_global);
	RUN("sums of deviations have as few words as fit", model_digits);
	RUN("pairs of argmax are in shared memory where the table says", model_argmax);
	RUN("there are enough partitions", model_partitions);
	RUN("passes and partitions fit and cover all bins", model_covers);
	return unit_done();
}
