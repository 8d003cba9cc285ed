/*
 * agg_tally.c
 *	  Aggregates whose states can be made of counted values.
 */
#include "postgres.h"

#include "aggregates/agg_tally.h"
#include "aggregates/equidepth.h"
#include "aggregates/exp_histogram.h"
#include "aggregates/histogram_auto.h"
#include "aggregates/median.h"
#include "aggregates/sketch.h"
#include "aggregates/summary.h"
#include "aggregates/value_counts.h"

const AggTally *
agg_tally(const FmgrInfo *transfn)
{
	static const AggTally *(*const finders[])(const FmgrInfo *) = {
		equidepth_tally, exp_histogram_tally, histogram_auto_tally, median_deviation_tally,
		sketch_tally,    summary_tally,       value_counts_tally,
	};

	for (int i = 0; i < lengthof(finders); i++)
	{
		const AggTally *tally = finders[i](transfn);

		if (tally)
			return tally;
	}
	return NULL;
}
