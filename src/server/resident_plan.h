/*
 * resident_plan.h
 *	  Server side of RESIDENT, without a device: plans how rows that are cached on a device are
 *	  read.
 *
 * Finds the columns that can be read where they are stored, the instructions of the program that
 * compute the other ones, and slices of rows. The CUDA device layer uses it. It needs no lock: the
 * columns are held (StoreHold).
 */
#ifndef GPUAGG_RESIDENT_H
#define GPUAGG_RESIDENT_H

#include "server/device_store.h"

/* A set of slots. */
typedef struct SlotSet
{
	uint64_t word[(WIRE_MAX_SLOTS + 63) / 64];
} SlotSet;

static inline bool
slot_set_has(const SlotSet *set, int s)
{
	return set->word[s / 64] >> s % 64 & 1;
}

static inline void
slot_set_add(SlotSet *set, int s)
{
	set->word[s / 64] |= UINT64_C(1) << s % 64;
}

/* How a column of the query gets its values. */
typedef struct ResidentColumn
{
	int stored;       /* column of the message that is read in place; -1: the program computes it */
	uint32_t type;    /* WireType */
	uint16_t operand; /* of the program, which has the column's value */
	bool nullable;
	bool filter; /* filter of a slot: NULL counts as false */
	/* only NULLs matter: its values are those of the stored column, or it is never NULL */
	bool presence;
	bool codes; /* the reader must make codes of the stored column's floats (gpuagg_f64_code) */
	bool zeros; /* the code for -0 is that of 0 */
	/*
	 * Rows are undetermined if a float's magnitude is not less than `below`, or, with no_zeros, if
	 * it is -0.
	 */
	bool checked;
	double below;
	bool no_zeros;
} ResidentColumn;

typedef struct ResidentPlan
{
	VectorProgram program; /* only the instructions that are needed */
	bool runs;      /* the program must run: it filters rows, or computes or checks columns */
	bool computes;  /* the program does more than check columns */
	uint64_t loads; /* stored columns that the program loads, a bit each */
	int ncols;
	ResidentColumn cols[WIRE_MAX_RESIDENT_COLS];
	size_t row_bits; /* bits of memory per row for the computed columns */
} ResidentPlan;

/*
 * Returns whether the rows come in an order that the query can use. If not, releases the hold and
 * sets WIRE_UNSORTED in *lacking.
 */
extern bool resident_in_order(const WireQuery *q, StoreHold *hold, uint64_t *lacking);

/* Returns whether the program writes the column to memory. */
extern bool resident_is_written(const ResidentPlan *plan, int c);
/*
 * Fills in *plan. derived: the MIN and MAX slots whose states will be derived from an ARGMIN or
 * ARGMAX slot.
 */
extern void resident_plan(const WireQuery *q, const WireResident *in, const StoreHold *hold,
						  const SlotSet *derived, ResidentPlan *plan);

/*
 * A slice: rows first .. first + nrows - 1 of one segment, which are reduced together. `first` is a
 * multiple of 64.
 */
typedef struct ResidentSlice
{
	int64_t first;
	int64_t nrows;
	bool masked; /* some of its rows are in no span, and must be skipped */
	int span,    /* first one and number of the hold's spans that have rows of the slice */
		nspans;
} ResidentSlice;

/* Most rows between two spans of one slice. */
#ifndef RESIDENT_MAX_GAP
#define RESIDENT_MAX_GAP ((int64_t) 1 << 21)
/* Least rows of a slice when memory is short. */
#define RESIDENT_LEAST_SLICE ((int64_t) 1 << 18)
#endif

/*
 * Returns the next slice of at most `most` rows (a multiple of 64), from *position on; false if
 * there is none. Updates *position and *span; both must be 0 at first.
 */
extern bool resident_slice(const StoreHold *hold, int64_t most, int64_t *position, int *span,
						   ResidentSlice *slice);

#endif /* GPUAGG_RESIDENT_H */
