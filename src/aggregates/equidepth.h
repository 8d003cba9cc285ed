/*
 * equidepth.h
 *	  gpu_histogram_equidepth, for engines that count values.
 */
#ifndef GPUAGG_EQUIDEPTH_H
#define GPUAGG_EQUIDEPTH_H

#include "postgres.h"

#include "aggregates/agg_tally.h"

/* Returns how states of gpu_histogram_equidepth are made of counts; else NULL. */
extern const AggTally *equidepth_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_EQUIDEPTH_H */
