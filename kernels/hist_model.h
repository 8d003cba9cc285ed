/*
 * hist_model.h
 *	  Which form a generalized histogram takes: the analytic model.
 *
 * After Henriksen, Hellfritzsch, Sadayappan and Oancea, "Compiling Generalized
 * Histograms for GPU" (SC20): sub-histograms M as many as pay for themselves,
 * passes S as few as fit.  It departs from the paper in three points that
 * measurements led to: operators with a fast form are reduced to native 32-bit atomics in
 * shared memory, or put equal bins of a warp together, so M only has to spread those over banks;
 * initialising and flushing M copies is weighed against the rows of a block; and where S passes
 * would read the input more often than a partition moves it, the rows are
 * partitioned by bin range once, or exchanged where hist_exchange.cu takes them; a lone
 * count is kept in bytes before that.  Operators without a fast form have copies in the L2 cache.
 *
 * The race factor is sampled on the device, where no host waits for it: here is what the
 * memory has room for, and the device picks as many copies of that as rows meet.
 *
 * Plain C, no memory: pure functions, tested as a table.
 */
#ifndef GPUAGG_HIST_MODEL_H
#define GPUAGG_HIST_MODEL_H

#include <stdbool.h>

#include "operators/monoid.h"

typedef struct HistDevice
{
	int sms;
	int sm_threads;
	int shared_bytes; /* most dynamic shared memory of one block */
	int64_t l2_bytes;
} HistDevice;

typedef enum HistForm
{
	HIST_FORM_SHARED,
	HIST_FORM_BYTES, /* in shared memory, a byte a bin */
	HIST_FORM_PARTITION,
	HIST_FORM_GLOBAL
} HistForm;

typedef struct HistModel
{
	HistForm form;
	int log2_copies;     /* M = 1 << log2_copies */
	int log2_max_copies; /* M if all rows met */
	int passes;          /* S */
	int64_t pass_bins;   /* bins of one pass or partition */
	int64_t partitions;
} HistModel;

/* Copies of a bin in shared memory beyond a warp's lanes win nothing. */
#define HIST_MAX_LOG2_COPIES 5
/* Equal bins seldom meet in a warp when so many are in use. */
#define HIST_SPREAD_BINS 4096
/* In the L2 cache: copies for blocks, and threads that may change a state at a time. */
#define HIST_MAX_LOG2_GLOBAL 10
#define HIST_GLOBAL_THREADS 32
/*
 * The change of a state under a lock by an out-of-window row takes as long as so many rows inside
 * the window.
 */
#define HIST_OUT_OF_WINDOW_ROWS 4
/* What a partition costs in passes, of counts and of anything else; see TUNING.md. */
#define HIST_PASSES_OF_COUNTS 4
#define HIST_PASSES_PER_PARTITION 3

/* What the bins are, as far as it decides the form. */
typedef enum HistSlotsKind
{
	HIST_SLOTS_ANY,
	HIST_SLOTS_COUNTS,   /* rows are counted, nothing else */
	HIST_SLOTS_ONE_COUNT /* once, all of them, which bytes can do */
} HistSlotsKind;

#define HIST_MAX_PARTITIONS 16384
/* With fewer, multiprocessors wait for the last; with more, runs get short. */
#define HIST_GOOD_PARTITIONS 256

/*
 * Partitions of 2^n bins: as many as keep the device evenly busy, small enough
 * that two blocks share a multiprocessor's memory, or one, for very many bins.
 */
static inline void
hist_model_partition(const HistDevice *dev, int64_t nbins, int bin_words, HistModel *m)
{
	int64_t two = (dev->shared_bytes / 2 - 1024) / 4 / bin_words,
			one = dev->shared_bytes / 4 / bin_words, part = 2;

	while (part * 2 <= two && part * HIST_GOOD_PARTITIONS < nbins)
		part *= 2;
	while (part * 2 <= one && part * HIST_MAX_PARTITIONS < nbins)
		part *= 2;
	m->pass_bins = part;
	m->partitions = (nbins + part - 1) / part;
	m->log2_copies = m->log2_max_copies = 0;
	m->form = m->partitions <= HIST_MAX_PARTITIONS ? HIST_FORM_PARTITION : HIST_FORM_GLOBAL;
}

/* Passes over bins of which so many fit in one; all but the last are multiples of `unit`. */
static inline void
hist_model_passes(int64_t nbins, int64_t fit, int64_t unit, HistModel *m)
{
	int64_t passes = (nbins + fit - 1) / fit;

	m->passes = (int) (passes < 1000000 ? passes : 1000000);
	m->pass_bins = ((nbins + m->passes - 1) / m->passes + unit - 1) / unit * unit;
}

/* log2 of M, at most `most`, so that `distinct` bins are spread over `spread`. */
GPUAGG_HD int
hist_model_copies(int64_t distinct, int64_t spread, int most)
{
	int log2 = 0;

	while (log2 < most && distinct << log2 < spread)
		log2++;
	return log2;
}

/* The states that threads in flight should be spread over. */
static inline int64_t
hist_model_spread(const HistDevice *dev)
{
	return (int64_t) dev->sms * dev->sm_threads / HIST_GLOBAL_THREADS;
}

/*
 * log2 of the copies of states that out-of-window rows change under locks, at most `most`, if `out`
 * of `sampled` rows are: `distinct` states are spread so that each of `threads` has one for itself,
 * or each of those that change one at a time.
 */
GPUAGG_HD int
hist_model_out_of_window(int64_t distinct, int64_t out, int64_t sampled, int64_t threads, int most)
{
	int64_t busy = threads * HIST_OUT_OF_WINDOW_ROWS * out / sampled;

	return hist_model_copies(distinct, busy < threads ? busy : threads, most);
}

/*
 * The words of a sum, over 2^block_bits rows, of numbers of `bits` bits that are cut into digits of
 * digit_bits (28 at most), a word for each, which carry into the next.  There are as many as
 * digits, and as many that the top one, which does not carry, has room for all rows: the sum is
 * below 2^(bits + block_bits), so in the top word's units, of 2^(digit_bits * (words - 1)), below
 * 2^30.  All words are signed, and those below the top one are worth up to 2^(31 - digit_bits) of
 * its units and a little, as carries on their way are one a thread: so the top word may leave 2^30
 * by some thousands, for which it has a bit.
 */
static inline int
hist_model_digit_words(int bits, int digit_bits, int block_bits)
{
	int digits = (bits - 1) / digit_bits + 1, above = bits + block_bits - 30,
		words = above > 0 ? 1 + (above + digit_bits - 1) / digit_bits : 1;

	return words > digits ? words : digits;
}

/* nbins bins of bin_words 32-bit words each, all of them in use. */
static inline HistModel
hist_model(const HistDevice *dev, int64_t nbins, int bin_words, int64_t nrows, HistSlotsKind kind)
{
	HistModel m = {HIST_FORM_SHARED, 0, 0, 1, nbins, 1};
	int64_t fit = dev->shared_bytes / 4 / bin_words;
	int64_t block_rows = nrows / dev->sms + 1;
	/* bins of a pass are even in number, each with all its copies */
	int64_t even = nbins + (nbins & 1);

	fit &= ~(int64_t) 1;
	if (nbins > fit)
	{
		hist_model_passes(nbins, fit, 2, &m);
		if (kind == HIST_SLOTS_ONE_COUNT)
		{
			hist_model_passes(nbins, dev->shared_bytes & ~15, 16, &m);
			m.form = HIST_FORM_BYTES;
		}
		if (m.passes > (kind == HIST_SLOTS_ANY ? HIST_PASSES_PER_PARTITION : HIST_PASSES_OF_COUNTS))
			hist_model_partition(dev, nbins, bin_words, &m);
		return m;
	}
	/* as many as fit, while the copies' words stay below an eighth of the block's rows */
	while (m.log2_max_copies < HIST_MAX_LOG2_COPIES && even << (m.log2_max_copies + 1) <= fit &&
		   (nbins * bin_words) << (m.log2_max_copies + 1) <= block_rows / 8 + 4096)
		m.log2_max_copies++;
	m.log2_copies = hist_model_copies(nbins, HIST_SPREAD_BINS, m.log2_max_copies);
	return m;
}

/*
 * States of bin_bytes a bin that rows change in place: copies of all in a quarter of
 * the L2 cache.  Where most rows only read, they win nothing; nor do passes over as
 * many bins as the cache holds, which take longer than its misses (TUNING.md).
 */
static inline HistModel
hist_model_global(const HistDevice *dev, int64_t nbins, int bin_bytes, int64_t nrows, bool reads)
{
	HistModel m = {HIST_FORM_GLOBAL, 0, 0, 1, nbins, 1};

	while (!reads && m.log2_max_copies < HIST_MAX_LOG2_GLOBAL &&
		   nbins << (m.log2_max_copies + 1) <= dev->l2_bytes / 4 / bin_bytes &&
		   nbins << (m.log2_max_copies + 1) <= nrows / 8)
		m.log2_max_copies++;
	m.log2_copies = hist_model_copies(nbins, hist_model_spread(dev), m.log2_max_copies);
	return m;
}

/*
 * ARGMAX and ARGMIN: a pair a bin in shared memory, and locks; see hist_argmax.cu.  More entries
 * than these would win nothing as copies: an entry that few rows have met is beaten often.
 */
#define HIST_ARGMAX_BYTES 16
#define HIST_ARGMAX_LOCKS 1024
#define HIST_ARGMAX_SPREAD 1024
/* So many rows an entry are taken from the end of a block's share. */
#define HIST_ARGMAX_LAST 8
/* A block reads and changes this many states at its ends in the time of one row. */
#define HIST_ARGMAX_STATES 4

static inline int64_t
hist_argmax_shared_bytes(int64_t entries)
{
	return entries * HIST_ARGMAX_BYTES + HIST_ARGMAX_LOCKS * 4;
}

/* In shared memory, or on the states in the L2 cache; shared: wherever the bins fit. */
static inline HistModel
hist_model_argmax(const HistDevice *dev, int64_t nbins, int64_t nrows, bool shared)
{
	HistModel m = {HIST_FORM_GLOBAL, 0, 0, 1, nbins, 1};
	int64_t block_rows = nrows / dev->sms + 1;

	if (hist_argmax_shared_bytes(nbins) > dev->shared_bytes ||
		(!shared && nbins > HIST_ARGMAX_STATES * block_rows))
		return m;
	m.form = HIST_FORM_SHARED;
	while (m.log2_copies < HIST_MAX_LOG2_COPIES &&
		   nbins << (m.log2_copies + 1) <= HIST_ARGMAX_SPREAD)
		m.log2_copies++;
	m.log2_max_copies = m.log2_copies;
	return m;
}

#endif /* GPUAGG_HIST_MODEL_H */
