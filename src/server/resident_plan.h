/*
 * resident_plan.h
 *	  From RESIDENT to what a device has to do: columns that are read where they are stored,
 *	  the instructions that are needed for the others, and slices of rows.
 *
 * Plain C without calls of a device.
 */
#ifndef GPUAGG_RESIDENT_H
#define GPUAGG_RESIDENT_H

#include "server/store.h"

typedef struct ResidentColumn
{
	int stored;       /* the column of the message that it is as it stands, or -1: computed */
	uint32_t type;    /* WireType */
	uint16_t operand; /* of the program */
	bool nullable;
	bool filter;   /* of a slot: NULL is false */
	bool presence; /* nothing reads its values: it has those of the stored column, or nowhere a NULL
					*/
	bool codes;    /* the stored column's values are floats, and it is their codes, */
	bool zeros;    /* and that of -0 is that of 0 */
	bool checked;  /* rows are undetermined where a float of the stored column is so large, */
	double below;  /* that its magnitude is not below this, */
	bool no_zeros; /* or, if so, -0 */
} ResidentColumn;

typedef struct ResidentPlan
{
	VectorProgram program; /* with the instructions that are needed */
	bool runs;      /* the program decides which rows count, or computes or checks columns, */
	bool computes;  /* and does more than to check them */
	uint64_t loads; /* columns of the message that it loads, a bit each */
	int ncols;
	ResidentColumn cols[WIRE_MAX_COLS];
	size_t row_bits; /* of memory for the computed columns of a row */
} ResidentPlan;

/* May the query have the rows?  Else it releases them, and says why in *lacking. */
extern bool resident_in_order(const WireQuery *q, StoreHold *hold, uint64_t *lacking);

/* Does the program write the column to memory? */
extern bool resident_is_written(const ResidentPlan *plan, int c);
/*
 * told: a bit for each slot of greatest or smallest keys whose states those of ARGMAX or ARGMIN
 * will tell.
 */
extern void resident_plan(const WireQuery *q, const WireResident *in, const StoreHold *hold,
						  uint64_t told, ResidentPlan *plan);

/* Rows first .. first + nrows - 1 of one segment; first is a multiple of 64. */
typedef struct ResidentSlice
{
	int64_t first;
	int64_t nrows;
	bool masked; /* some of them are in no span */
	int span,    /* of the hold, those that have rows of the slice */
		nspans;
} ResidentSlice;

/* With no more unwanted rows between two spans these are in one slice. */
#ifndef RESIDENT_MAX_GAP
#define RESIDENT_MAX_GAP ((int64_t) 1 << 21)
/* Slices are not made smaller than this for lack of memory. */
#define RESIDENT_LEAST_SLICE ((int64_t) 1 << 18)
#endif

/*
 * The next slice of at most `most` rows (a multiple of 64), from *position on, which is moved
 * behind it; false: there is none.  *span is that to go on with.  Both begin at 0.
 */
extern bool resident_slice(const StoreHold *hold, int64_t most, int64_t *position, int *span,
						   ResidentSlice *slice);

#endif /* GPUAGG_RESIDENT_H */
