/*
 * matrix.h
 *	  Square matrices as SQL arrays; in ordered.c.
 */
#ifndef GPUAGG_MATRIX_H
#define GPUAGG_MATRIX_H

#include "postgres.h"

#define MATRIX_MAX 5

/*
 * Copies a two-dimensional double precision[] to m, row by row, and returns its
 * size.  Anything but a square of 1 to MATRIX_MAX rows without NULLs is an error.
 */
extern int matrix_read(Datum array, double *m);

/* The array of a size by size matrix, in the current context. */
extern Datum matrix_datum(const double *m, int size);

#endif /* GPUAGG_MATRIX_H */
