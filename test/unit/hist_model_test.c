/*
 * hist_model_test.c
 *	  The analytic model of histograms as a table: bins, words and rows to form, copies and passes.
 */
#include "unit.h"

#include "../../kernels/hist_model.h"

/* An H100: 132 multiprocessors, 227 kB for a block less what kernels need, 50 MB of L2 cache. */
static const HistDevice h100 = {132, 2048, 232448 - 1024, 50 << 20};

static const struct
{
	int64_t bins;
	int words;
	int64_t rows;
	HistForm form;
	int least_log2, /* bounds of log2 M */
		most_log2;
	int passes;
	HistSlotsKind kind;
} table[] = {
	/* few bins: as many copies as a warp has lanes */
	{1, 1, 50000000, HIST_FORM_SHARED, 5, 5, 1, HIST_SLOTS_ANY},
	{31, 1, 50000000, HIST_FORM_SHARED, 5, 5, 1, HIST_SLOTS_ANY},
	{100, 5, 134217728, HIST_FORM_SHARED, 5, 5, 1, HIST_SLOTS_ANY},
	/* thousands: equal bins seldom meet */
	{6137, 1, 50000000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ANY},
	/* few rows do not pay for copies */
	{2000, 5, 100000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ANY},
	/* the last that fit, and the first that do not */
	{57856, 1, 50000000, HIST_FORM_SHARED, 0, 0, 1, HIST_SLOTS_ANY},
	{57857, 1, 50000000, HIST_FORM_SHARED, 0, 0, 2, HIST_SLOTS_ANY},
	{173568, 1, 50000000, HIST_FORM_SHARED, 0, 0, 3, HIST_SLOTS_ANY},
	/* four passes cost more than a partition, except of counts */
	{173569, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 4, HIST_SLOTS_ANY},
	{231424, 1, 50000000, HIST_FORM_SHARED, 0, 0, 4, HIST_SLOTS_COUNTS},
	{231425, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 5, HIST_SLOTS_COUNTS},
	{1572863, 1, 50000000, HIST_FORM_PARTITION, 0, 0, 28, HIST_SLOTS_ANY},
	/* a lone count takes a byte a bin as soon as words do not fit */
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
 * What the device chooses if all bins are in use is what the model says; of fewer, up to what there
 * is memory for.
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
			  "%ld bins: what the device chooses is another number", (long) bins);
		CHECK(hist_model_copies(1, HIST_SPREAD_BINS, m.log2_max_copies) == m.log2_max_copies,
			  "%ld bins, one in use: not all copies", (long) bins);
	}
	CHECK(hist_model(&h100, 20000, 1, 134217728, HIST_SLOTS_ANY).log2_max_copies == 1,
		  "20000 bins");
}

/*
 * Copies for out-of-window rows: none without such rows, more the more of them are, and no more
 * than threads need.
 */
static void
model_out_of_window(void)
{
	const int64_t threads = 132 * 512;

	for (int64_t bins = 1; bins <= 200000; bins = bins * 3 / 2 + 1)
	{
		int before = 0;

		CHECK(hist_model_out_of_window(bins, 0, 4096, threads, 7) == 0,
			  "%ld bins: copies for no out-of-window rows", (long) bins);
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
		  "1000 bins, one out-of-window row");
	CHECK(hist_model_out_of_window(1, 1, 4096, threads, 7) > 0,
		  "one out-of-window row of the only bin");
	CHECK(hist_model_out_of_window(1000, 3072, 4096, threads, 7) == 7,
		  "1000 bins, three of four rows");
	CHECK(hist_model_out_of_window(10000, 3072, 4096, threads, 7) == 3,
		  "10000 bins, three of four rows");
	CHECK(hist_model_out_of_window(100000, 3072, 4096, threads, 7) == 0,
		  "100000 bins, three of four rows");
	CHECK(hist_model_out_of_window(2, 5, 5, threads, 4) == 4,
		  "five rows, all of them outside the window");
}

/* States in the L2 cache: copies of few, one of many. */
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
		/* a copy for each block of eight a multiprocessor */
		{1, 16, 134217728, 10, 10},
		{100, 16, 134217728, 7, 10},
		/* enough bins, unless few of them are in use */
		{10000, 16, 134217728, 0, 6},
		/* few rows do not pay for the merge */
		{100, 16, 1000, 0, 0},
		{1000000, 16, 134217728, 0, 0},
		{10000000, 16, 134217728, 0, 0},
	};

	CHECK(hist_model_global(&h100, 10, 16, 134217728, true).log2_max_copies == 0,
		  "maxima want copies");
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
 * Pairs: entries in shared memory where they fit and rows pay for them, several a bin where bins
 * are few.
 */
static void
model_argmax(void)
{
	static const struct
	{
		int64_t bins, rows;
		bool shared; /* asked for */
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
		/* few rows do not pay for many entries */
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

/* What a pass or partition takes fits, and together they take every bin. */
static void
model_covers(void)
{
	for (int64_t bins = 1; bins < 2000000000; bins = bins * 5 / 4 + 1)
		for (int words = 1; words <= 33; words += 4)
		{
			HistModel m = hist_model(&h100, bins, words, 134217728, HIST_SLOTS_ANY);
			int64_t shares = m.form == HIST_FORM_PARTITION ? m.partitions : m.passes;

			if (m.form == HIST_FORM_GLOBAL)
				continue;
			CHECK((m.pass_bins << m.log2_copies) * words * 4 <= h100.shared_bytes,
				  "%ld bins of %d words: a pass of %ld does not fit", (long) bins, words,
				  (long) m.pass_bins);
			CHECK(m.pass_bins * shares >= bins, "%ld bins of %d words: %ld times %ld", (long) bins,
				  words, (long) shares, (long) m.pass_bins);
		}
}

/* The copies that there may be fit, too, of an even number of bins. */
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
 * The words of deviations' sums: as many that the top one has room for all rows, or for a row where
 * it spills, and no more.
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
	 * 2^25 rows on 132 multiprocessors, up to 2^19 a block, windows of 76 bits; the same with
	 * carries spilled
	 */
	CHECK(hist_model_digit_words(76, 28, 19) == 4 && hist_model_digit_words(152, 28, 19) == 7,
		  "deviations");
	CHECK(hist_model_digit_words(76, 28, 0) == 3 && hist_model_digit_words(152, 28, 0) == 6,
		  "spilled carries");
	/* the widest windows of spilled carries, of few rows */
	CHECK(hist_model_digit_words(84, 28, 0) == 3 && hist_model_digit_words(168, 28, 0) == 6,
		  "full digits");
}

/* Enough partitions to keep a device busy, each a power of two of bins. */
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
	RUN("the model's table", model_table);
	RUN("copies in shared memory", model_copies);
	RUN("copies fit", model_copies_fit);
	RUN("copies for out-of-window rows", model_out_of_window);
	RUN("copies in the L2 cache", model_global);
	RUN("digits of deviations", model_digits);
	RUN("pairs of argmax", model_argmax);
	RUN("partitions", model_partitions);
	RUN("passes and partitions fit and cover", model_covers);
	return unit_done();
}
