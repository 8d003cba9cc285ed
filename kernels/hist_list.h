/*
 * hist_list.h
 *	  The operators that have a form in shared memory. Included with HIST() defined.
 *
 * HIST(NAME, form): MONOID_NAME is accumulated in the form HIST_form (hist.cuh). CAS supports any
 * commutative operator whose state has at most 8 bytes. Operators that are not listed change states
 * in device memory, by compare-and-swap or under locks.
 */
HIST(COUNT, COUNT)
HIST(SUM_I64, INT)
HIST(SUM_I128, INT)
HIST(SUMSQ_I128, INTSQ)
HIST(SUMSQ_I192, INTSQ)
HIST(SUM_DEC, INT)
HIST(SUM_F32, FIX)
HIST(SUM_F64, FIX)
HIST(ACCUM_F64, ACCUM)
HIST(REGR_F64, REGR)
HIST(MIN_I32, MAX32)
HIST(MAX_I32, MAX32)
HIST(MIN_F32, MAX32)
HIST(MAX_F32, MAX32)
HIST(MIN_I64, MAX64)
HIST(MAX_I64, MAX64)
HIST(MIN_F64, MAX64)
HIST(MAX_F64, MAX64)
HIST(BIT_AND, OR64)
HIST(BIT_OR, OR64)
HIST(BIT_XOR, XOR64)
HIST(PRODUCT_F64, CAS)
