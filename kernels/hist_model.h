/*
 * hist_model.h
 *	  Which form a generalized histogram takes: the analytic model.
 *
 * After Henriksen, Hellfritzsch, Sadayappan and Oancea, "Compiling Generalized
 * Histograms for GPU" (SC20): sub-histograms M as many as pay for themselves,
 * passes S as few as fit.  It departs from the paper in three points that
 * measurements asked for: every operator with a fast form is reduced to native 32-bit atomics in
 * shared memory, so M only has to spread equal bins of one warp over banks;
 * initialising and flushing M copies is weighed against the rows of a block; and where S passes
 * would read the input more often than a partition moves it, the rows are
 * partitioned by bin range once.
 *
 * Plain C, no CUDA, no memory: a pure function, tested as a table.
 */
#ifndef GPUAGG_HIST_MODEL_H
#define GPUAGG_HIST_MODEL_H

#include <stdint.h>

typedef struct HistDevice
{
	int			sms;
	int			shared_bytes;	/* most dynamic shared memory of one block */
} HistDevice;

typedef enum HistForm
{
	HIST_FORM_SHARED,
	HIST_FORM_PARTITION,
	HIST_FORM_GLOBAL
} HistForm;

typedef struct HistModel
{
	HistForm	form;
	int			log2_copies;	/* M = 1 << log2_copies */
	int			passes;			/* S */
	int64_t		pass_bins;		/* bins of one pass or partition */
	int64_t		partitions;
} HistModel;

/* Copies of a bin beyond a warp's lanes win nothing. */
#define HIST_MAX_LOG2_COPIES 5
/* What a partition costs in passes, of counts and of anything else; see the tuning table in README.md. */
#define HIST_PASSES_OF_COUNTS 4
#define HIST_PASSES_PER_PARTITION 3
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
	int64_t		two = (dev->shared_bytes / 2 - 1024) / 4 / bin_words,
				one = dev->shared_bytes / 4 / bin_words,
				part = 2;

	while (part * 2 <= two && part * HIST_GOOD_PARTITIONS < nbins)
		part *= 2;
	while (part * 2 <= one && part * HIST_MAX_PARTITIONS < nbins)
		part *= 2;
	m->pass_bins = part;
	m->partitions = (nbins + part - 1) / part;
	m->log2_copies = 0;
	m->form = m->partitions <= HIST_MAX_PARTITIONS ? HIST_FORM_PARTITION : HIST_FORM_GLOBAL;
}

/*
 * nbins bins of bin_words 32-bit words each, which count rows if `counts`.
 * race is the sampled race factor RF, bins over distinct bins in use (1 if
 * not known): equal bins in one warp grow with it.
 */
static inline HistModel
hist_model(const HistDevice *dev, int64_t nbins, int bin_words, int64_t nrows, int64_t race, int counts)
{
	HistModel	m = {HIST_FORM_SHARED, 0, 1, nbins, 1};
	int64_t		fit = dev->shared_bytes / 4 / bin_words;
	int64_t		block_rows = nrows / dev->sms + 1;
	int64_t		distinct = race > 1 ? nbins / race : nbins;

	fit &= ~(int64_t) 1;
	if (nbins > fit)
	{
		m.passes = (int) ((nbins + fit - 1) / fit < 1000000 ? (nbins + fit - 1) / fit : 1000000);
		m.pass_bins = (nbins + m.passes - 1) / m.passes;
		m.pass_bins += m.pass_bins & 1;
		if (m.passes > (counts ? HIST_PASSES_OF_COUNTS : HIST_PASSES_PER_PARTITION))
			hist_model_partition(dev, nbins, bin_words, &m);
		return m;
	}
	if (distinct < 1)
		distinct = 1;
	/*
	 * One more doubling while equal bins still meet in a warp, it fits, and the
	 * copies' words stay below an eighth of the block's rows.
	 */
	while (m.log2_copies < HIST_MAX_LOG2_COPIES &&
		   nbins << (m.log2_copies + 1) <= fit &&
		   (distinct << m.log2_copies) < 4096 &&
		   (nbins * bin_words) << (m.log2_copies + 1) <= block_rows / 8 + 4096)
		m.log2_copies++;
	return m;
}

#endif							/* GPUAGG_HIST_MODEL_H */
