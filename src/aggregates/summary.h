/*
 * summary.h
 *	  gpu_summary.
 */
#ifndef GPUAGG_SUMMARY_H
#define GPUAGG_SUMMARY_H

#include "postgres.h"

#include "fmgr.h"

#include "aggregates/agg_tally.h"
#include "aggregates/aggcall.h"

/* Returns the step that replaces the transition function of gpu_summary; else NULL. */
extern AggStep summary_step(const FmgrInfo *transfn);

/* Returns how states of gpu_summary are made of counts; else NULL. */
extern const AggTally *summary_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_SUMMARY_H */
