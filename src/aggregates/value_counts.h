/*
 * value_counts.h
 *	  States of gpu_value_counts, gpu_top_k and gpu_entropy.
 */
#ifndef GPUAGG_VALUE_COUNTS_H
#define GPUAGG_VALUE_COUNTS_H

#include "postgres.h"

#include "fmgr.h"

#include "aggregates/agg_tally.h"
#include "aggregates/aggcall.h"
#include "aggregates/value_table.h"

/* The aggregate. States have these numbers. */
typedef enum CountsForm
{
	FORM_VALUE_COUNTS,
	FORM_TOP_K,
	FORM_ENTROPY
} CountsForm;

/*
 * The transition state. Some values of rows wait until they are counted together: with many
 * entries, these are not in the CPU's caches.
 */
typedef struct ValueCounts
{
	CountsForm form;
	int k;      /* 0: all values */
	int64 rows; /* number of rows whose values are not NULL */
	int64 nulls;
	int64 floor; /* no value that is not in the table has more rows */
	ValueTable *table;
	int nwaiting;
	Datum *waiting; /* values that are not in the table and in `rows` yet; NULL: none so far */
} ValueCounts;

/* Counts the values that wait. Must be called before anything else is done with a state. */
extern void value_counts_flush(ValueCounts *state);

/*
 * Returns a context for conversions of single values, which the caller resets before each of them.
 */
extern MemoryContext value_counts_conversions(void);

/* Returns the step that replaces a transition function of these aggregates, or NULL. */
extern AggStep value_counts_step(const FmgrInfo *transfn);

/* Returns the function that replaces such steps of consecutive rows, or NULL. */
extern AggSteps value_counts_steps(const FmgrInfo *transfn);

/* Returns how states of these aggregates are made of counts; NULL for others. */
extern const AggTally *value_counts_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_VALUE_COUNTS_H */
