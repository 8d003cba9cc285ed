/*
 * exact_grid.h
 *	  Columns of doubles as integers times one power of two, and sums of such integers by group.
 *
 * Exact sums of integers need not look at exponents, and take few bytes a group.  The integers have
 * 63 bits, ten more than a double.  So most columns have few values that are too large or have
 * lower bits; these remain doubles, and are called the others.
 */
#ifndef GPUAGG_EXACT_GRID_H
#define GPUAGG_EXACT_GRID_H

#include "postgres.h"

#include "aggregates/exact_state.h"

#define GRID_ROWS 1024

/* The values of some rows of a column. The power of two stays as long as it suits the values. */
typedef struct ExactGrid
{
	int16 unit; /* position of bit 0 of m (exact_state.h); EXACT_NO_WINDOW: there are no integers */
	int skip;   /* in so many calls no unit is looked for */
	int skipped;
	int nothers;
	uint16 others[GRID_ROWS]; /* rows of the others, ascending; their m has any value */
	int64 m[GRID_ROWS];
} ExactGrid;

/* Sums of integers that the states of their groups do not have yet. */
typedef struct GridSums
{
	ExactKind kind;
	int16 unit[2]; /* exponents of the units of the integers */
	int64 rows;    /* since there were no sums */
	uint32 ngroups;
	uint64 *sums; /* [group] grid_sums_words() words each; or NULL */
} GridSums;

#define GRID_SUM_WORDS 2
#define GRID_PRODUCT_WORDS 3

/* The number of a group is (offset >> shift) * inverse, modulo 2^32. */
typedef struct GroupNumbers
{
	int shift;
	uint32 inverse;
} GroupNumbers;

/* Initializes a grid without a unit. */
extern void exact_grid_init(ExactGrid *grid);

/* Sets m and the others to n values, at most GRID_ROWS. */
extern void exact_grid_load(ExactGrid *grid, const double *x, int n);

/* Makes all n rows others. */
extern void exact_grid_load_none(ExactGrid *grid, int n);

/* Adds the others of another column of the same rows. */
extern void exact_grid_add_others(ExactGrid *grid, const ExactGrid *other);

/* Returns how groups at multiples of `cells` are numbered. */
extern GroupNumbers group_numbers(uint32 cells);

/*
 * Returns the words of a group: two for the sum of each variable, with the number of rows in the
 * upper bits, then three for each sum of products.
 */
static inline size_t
grid_sums_words(ExactKind kind)
{
	return GRID_SUM_WORDS * exact_sums(kind) + GRID_PRODUCT_WORDS * exact_products(kind);
}

/*
 * Adds n rows to the sums, without the others of grids[0].  at: offsets of the rows' groups;
 * NULL if there is one group.  grids[1]: only for EXACT_PAIRS.
 */
extern void grid_sums_add(GridSums *sums, const GroupNumbers *numbers, const uint32 *at,
						  ExactGrid *const *grids, int n);

/* Sets a state to the sums of a group. */
extern void grid_sums_read(const GridSums *sums, uint32 group, ExactState *state);

/* Moves the sums of a group to its state. */
extern void grid_sums_move(GridSums *sums, uint32 group, ExactState *state);

/* Returns whether the sums of a group have rows. */
static inline bool
grid_sums_any(const GridSums *sums, uint32 group)
{
	const uint64 *words = &sums->sums[(size_t) group * grid_sums_words(sums->kind)];

	/* groups of states that were combined came after there was room */
	return group < sums->ngroups && (words[0] | words[1]) != 0;
}

#endif /* GPUAGG_EXACT_GRID_H */
