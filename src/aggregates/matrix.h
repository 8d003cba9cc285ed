/*
 * matrix.h
 *	  Square matrices as SQL arrays; implemented in order_dependent.c.
 */
#ifndef GPUAGG_MATRIX_H
#define GPUAGG_MATRIX_H

#include "postgres.h"

#define MATRIX_MAX 5

/*
 * Copies a two-dimensional double precision[] to m, row by row, and returns its size. Raises an
 * error if it is not a square of 1 to MATRIX_MAX rows without NULLs.
 */
extern int matrix_read(Datum array, double *m);

/* Returns a size x size matrix as an array, in the current context. */
extern Datum matrix_datum(const double *m, int size);

#endif /* GPUAGG_MATRIX_H */
