/*
 * hist_model.h
 *	  The analytic model: which form of histogram a call takes, and with how many copies and passes.
 *
 * The model follows Henriksen, Hellfritzsch, Sadayappan and Oancea, "Compiling Generalized
 * Histograms for GPU" (SC20): as many sub-histograms (M) as pay for themselves, and as few passes
 * (S) as the bins fit into. It differs from the paper in these points, which measurements led to:
 *
 *	- Operators with a form are reduced to native 32-bit atomics in shared memory, or equal bins of
 *	  a warp are combined first. So M only has to spread these atomics over the banks.
 *	- The cost of clearing and flushing M copies is weighed against the rows of a block.
 *	- Where S passes would read the input more often than a partition moves it, rows are partitioned
 *	  by bin range once, or exchanged where hist_exchange.cu supports the call. Before that, a
 *	  single COUNT is kept in bytes.
 *	- Operators without a form have copies of their states in the L2 cache.
 *
 * The race factor is sampled on the device, so that the host does not wait for it. This model only
 * says how many copies there is room for; the device then chooses how many of them are used.
 *
 * The functions are plain C, pure, and use no memory. test/unit/hist_model_test.c tests them.
 */
#ifndef GPUAGG_HIST_MODEL_H
#define GPUAGG_HIST_MODEL_H

#include <stdbool.h>

#include "operators/monoid.h"
#include "tuning.h"

/* The properties of a device that the model depends on. */
typedef struct HistDevice
{
	int sms;          /* multiprocessors */
	int sm_threads;   /* threads that a multiprocessor runs concurrently */
	int shared_bytes; /* dynamic shared memory that a block may use */
	int64_t l2_bytes;
} HistDevice;

typedef enum HistForm
{
	HIST_FORM_SHARED,    /* words in shared memory, M copies, S passes */
	HIST_FORM_BYTES,     /* in shared memory, one byte a bin */
	HIST_FORM_PARTITION, /* rows partitioned by bin range, then shared memory */
	HIST_FORM_GLOBAL     /* states in device memory, changed by atomics in the L2 cache */
} HistForm;

typedef struct HistModel
{
	HistForm form;
	int log2_copies;     /* M = 1 << log2_copies if all bins are in use */
	int log2_max_copies; /* the same if few bins are in use: the most that there is room for */
	int passes;          /* S */
	int64_t pass_bins;   /* bins of a pass or a partition */
	int64_t partitions;
} HistModel;

/* What the slots of a call compute, as far as the form depends on it. */
typedef enum HistSlotsKind
{
	HIST_SLOTS_ANY,
	HIST_SLOTS_COUNTS,   /* only COUNT slots */
	HIST_SLOTS_ONE_COUNT /* a single COUNT of all rows, which may use bytes */
} HistSlotsKind;

/*
 * Chooses partitions of 2^n bins: enough partitions to keep all multiprocessors busy evenly, and
 * small enough for two blocks in the shared memory of a multiprocessor, or for one block if there
 * are very many bins. If that still makes too many partitions, the form becomes HIST_FORM_GLOBAL.
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

/*
 * Chooses the number of passes if `fit` bins fit into one. The bins of a pass are a multiple of
 * `unit`; the last pass may have fewer.
 */
static inline void
hist_model_passes(int64_t nbins, int64_t fit, int64_t unit, HistModel *m)
{
	int64_t passes = (nbins + fit - 1) / fit;

	m->passes = (int) (passes < 1000000 ? passes : 1000000);
	m->pass_bins = ((nbins + m->passes - 1) / m->passes + unit - 1) / unit * unit;
}

/*
 * Returns log2 of the copies, at most `most`, that spread `distinct` bins in use over at least
 * `spread` words or states.
 */
GPUAGG_HD int
hist_model_copies(int64_t distinct, int64_t spread, int most)
{
	int log2 = 0;

	while (log2 < most && distinct << log2 < spread)
		log2++;
	return log2;
}

/* Returns the number of states that the threads of the device should be spread over. */
static inline int64_t
hist_model_spread(const HistDevice *dev)
{
	return (int64_t) dev->sms * dev->sm_threads / HIST_THREADS_PER_GLOBAL_STATE;
}

/*
 * Returns log2 of the copies of states that out-of-window rows change under locks, at most `most`.
 * `out` of `sampled` rows are out-of-window rows, and `distinct` bins are in use. Each thread that
 * is expected to change a state at the same time as others gets a state of its own. There are at
 * most `threads`.
 */
GPUAGG_HD int
hist_model_out_of_window(int64_t distinct, int64_t out, int64_t sampled, int64_t threads, int most)
{
	int64_t busy = threads * HIST_ROWS_PER_LOCKED_CHANGE * out / sampled;

	return hist_model_copies(distinct, busy < threads ? busy : threads, most);
}

/*
 * Returns how many words a sum of 2^block_bits numbers of `bits` bits needs. The numbers are split
 * into digits of digit_bits bits (28 at most). Each digit is added to one word, and a word carries
 * into the next one.
 *
 * There are at least as many words as digits. The top word does not carry, so it needs room for the
 * sum of all rows, which is below 2^(bits + block_bits). The unit of the top word is 2^(digit_bits
 * * (words - 1)); in this unit the sum is below 2^30. All words are signed. The words below the top
 * one are together worth at most about 2^(31 - digit_bits) units, and each thread may have one
 * carry in flight. So the top word may leave 2^30 by some thousands, for which it has one more bit.
 */
static inline int
hist_model_digit_words(int bits, int digit_bits, int block_bits)
{
	int digits = (bits - 1) / digit_bits + 1, above = bits + block_bits - 30,
		words = above > 0 ? 1 + (above + digit_bits - 1) / digit_bits : 1;

	return words > digits ? words : digits;
}

/*
 * Returns the model of slots in shared memory: nbins bins of bin_words 32-bit words each, nrows
 * rows. All bins are assumed to be in use.
 */
static inline HistModel
hist_model(const HistDevice *dev, int64_t nbins, int bin_words, int64_t nrows, HistSlotsKind kind)
{
	HistModel m = {HIST_FORM_SHARED, 0, 0, 1, nbins, 1};
	int64_t fit = dev->shared_bytes / 4 / bin_words;
	int64_t block_rows = nrows / dev->sms + 1;
	/* the bins of a pass, each with all its copies, are even in number */
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
		if (m.passes > (kind == HIST_SLOTS_ANY ? HIST_MAX_PASSES : HIST_MAX_PASSES_OF_COUNTS))
			hist_model_partition(dev, nbins, bin_words, &m);
		return m;
	}
	/* as many copies as fit, while their words are few for the block's rows */
	while (m.log2_max_copies < HIST_MAX_LOG2_COPIES && even << (m.log2_max_copies + 1) <= fit &&
		   (nbins * bin_words) << (m.log2_max_copies + 1) <=
			   block_rows / HIST_ROWS_PER_COPIED_WORD + HIST_MIN_COPIED_WORDS)
		m.log2_max_copies++;
	m.log2_copies = hist_model_copies(nbins, HIST_SPREAD_BINS, m.log2_max_copies);
	return m;
}

/*
 * Returns the model of states that rows change in the L2 cache, bin_bytes bytes a bin. The copies
 * of all states take at most a quarter of the L2 cache. reads: most rows only read a state, so
 * copies gain nothing. Passes over as many bins as the cache holds gain nothing either: they take
 * longer than cache misses (TUNING.md).
 */
static inline HistModel
hist_model_global(const HistDevice *dev, int64_t nbins, int bin_bytes, int64_t nrows, bool reads)
{
	HistModel m = {HIST_FORM_GLOBAL, 0, 0, 1, nbins, 1};

	while (!reads && m.log2_max_copies < HIST_MAX_LOG2_GLOBAL &&
		   nbins << (m.log2_max_copies + 1) <=
			   dev->l2_bytes / HIST_L2_BYTES_PER_GLOBAL_BYTE / bin_bytes &&
		   nbins << (m.log2_max_copies + 1) <= nrows / HIST_ROWS_PER_GLOBAL_STATE)
		m.log2_max_copies++;
	m.log2_copies = hist_model_copies(nbins, hist_model_spread(dev), m.log2_max_copies);
	return m;
}

/* Bytes of an entry of ARGMAX and ARGMIN in shared memory: a key and a value (hist_argmax.cu). */
#define HIST_ARGMAX_BYTES 16

/* Returns the bytes of shared memory of a block for this many entries and for the locks. */
static inline int64_t
hist_argmax_shared_bytes(int64_t entries)
{
	return entries * HIST_ARGMAX_BYTES + HIST_ARGMAX_LOCKS * 4;
}

/*
 * Returns the model of ARGMAX and ARGMIN slots: pairs in shared memory if the bins fit and blocks
 * have enough rows, else states in the L2 cache. shared: use pairs even if blocks have few rows.
 */
static inline HistModel
hist_model_argmax(const HistDevice *dev, int64_t nbins, int64_t nrows, bool shared)
{
	HistModel m = {HIST_FORM_GLOBAL, 0, 0, 1, nbins, 1};
	int64_t block_rows = nrows / dev->sms + 1;

	if (hist_argmax_shared_bytes(nbins) > dev->shared_bytes ||
		(!shared && nbins > HIST_ARGMAX_STATES_PER_ROW * block_rows))
		return m;
	m.form = HIST_FORM_SHARED;
	while (m.log2_copies < HIST_MAX_LOG2_COPIES &&
		   nbins << (m.log2_copies + 1) <= HIST_ARGMAX_MAX_COPIED_ENTRIES)
		m.log2_copies++;
	m.log2_max_copies = m.log2_copies;
	return m;
}

#endif /* GPUAGG_HIST_MODEL_H */
