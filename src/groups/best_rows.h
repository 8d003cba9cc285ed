/*
 * best_rows.h
 *	  Drops rows that are not among the best rows of their group.
 *
 * For window functions such as row_number() that a condition bounds, and for DISTINCT ON
 * (exec/top_rows.c).  The nodes above sort the rows that are left and decide which of them the
 * query returns.  So only a row that cannot be in the result may be dropped, and a row may always
 * be passed on.
 *
 * Keys of groups are those of the spec.  A group keeps the best rows so far, in memory, until all
 * rows have been added.  If memory is used up, rows of new groups, and rows that would have to be
 * kept, are passed on at once: there are no files.
 *
 * All memory is below the context given at creation.  Functions may raise errors, call functions of
 * the types, and check for interrupts.
 */
#ifndef GPUAGG_BEST_ROWS_H
#define GPUAGG_BEST_ROWS_H

#include "postgres.h"

#include "utils/sortsupport.h"

#include "batch.h"
#include "spec.h"

/* Which function of a row's place in its group is at most `n` for the rows that are needed. */
typedef enum BestKind
{
	BEST_ROW_NUMBER, /* number of the row; any of the rows that are equal may be first */
	BEST_RANK,       /* 1 + number of better rows */
	BEST_DENSE_RANK  /* 1 + number of different better values */
} BestKind;

/* The largest bound for which rows are dropped. */
#define BEST_MOST 1000

/* A column of the rows. */
typedef struct BestColumn
{
	int col; /* column of the batch */
	int16 typlen;
	bool typbyval;
} BestColumn;

typedef struct BestSpec
{
	BestKind kind;
	int n; /* 1 to BEST_MOST */
	int ncolumns;
	BestColumn *columns;
	int norder;
	int *order;        /* [order] index in `columns` */
	SortSupport sorts; /* [order] compares the values */
	bool coded;        /* the first of these columns has 64-bit codes (spec_type_has_codes) */
	bool desc;         /* it is sorted by descending codes */
} BestSpec;

typedef struct BestRows BestRows;

/* Creates an empty set of groups. `spec` and `best` must stay.  limit: most bytes of memory. */
extern BestRows *best_rows_create(MemoryContext parent, const AggSpec *spec, const BestSpec *best,
								  int batch_rows, size_t limit);
/* Forgets all groups and rows. */
extern void best_rows_reset(BestRows *rows);
/*
 * Adds the rows of a batch.  Returns the number of rows that must be passed on at once, and sets
 * *passed to their indexes, which are valid until the next call.
 */
extern int best_rows_add(BestRows *rows, const Batch *batch, const uint32 **passed);
/* Sets the values of row i of a batch. By-reference values are valid as long as the batch. */
extern void best_rows_read(const BestRows *rows, const Batch *batch, int i, Datum *values,
						   bool *nulls);
/*
 * After the last batch: sets the values of the next kept row, which are valid until
 * best_rows_reset(); false if there are no more.
 */
extern bool best_rows_next(BestRows *rows, Datum *values, bool *nulls);
/* Returns the number of groups. */
extern uint64 best_rows_groups(const BestRows *rows);
/* Returns the most bytes that were in use. */
extern size_t best_rows_memory(const BestRows *rows);

#endif /* GPUAGG_BEST_ROWS_H */
