/*
 * agg_step.c
 *	  Transitions without a function call.
 */
#include "postgres.h"

#include "aggregates/agg_step.h"
#include "aggregates/exp_histogram.h"
#include "aggregates/hll.h"
#include "aggregates/interval_steps.h"
#include "aggregates/sketch.h"
#include "aggregates/summary.h"
#include "aggregates/value_counts.h"

AggStep
agg_step(const FmgrInfo *transfn)
{
	static AggStep (*const finders[])(const FmgrInfo *) = {
		exp_histogram_step, hll_step, interval_step, sketch_step, summary_step, value_counts_step,
	};

	for (int i = 0; i < lengthof(finders); i++)
	{
		AggStep step = finders[i](transfn);

		if (step)
			return step;
	}
	return NULL;
}

AggSteps
agg_steps(const FmgrInfo *transfn)
{
	AggSteps steps = value_counts_steps(transfn);

	return steps ? steps : sketch_steps(transfn);
}
