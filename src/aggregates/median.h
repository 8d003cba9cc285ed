/*
 * median.h
 *	  gpu_mad, for engines that count values.
 */
#ifndef GPUAGG_MEDIAN_H
#define GPUAGG_MEDIAN_H

#include "postgres.h"

#include "aggregates/agg_tally.h"

/* Returns how states of gpu_mad are made of counts; else NULL. */
extern const AggTally *median_deviation_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_MEDIAN_H */
