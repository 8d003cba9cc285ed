/*
 * chunk_model.h
 *	  Declarations that the tests of chunks share.
 *
 * A model holds the values of all rows of one chunk in plain arrays. A test fills the model and
 * calls build_and_check(), which builds the chunk, reads it in all ways, and compares what was read
 * with the model.
 *
 *	chunk_model.c			builds and compares
 *	chunk_test.c			integers, decimals, floats; times
 *	chunk_references_test.c	by-reference values
 */
#ifndef GPUAGG_UNIT_CHUNK_MODEL_H
#define GPUAGG_UNIT_CHUNK_MODEL_H

#include "unit.h"

#include "postgres.h"

#undef printf
#undef snprintf

#include "batch.h"
#include "cache/chunk.h"
#include "expr/expr.h"

/* The number of rows of a chunk of 256 blocks of the shortest tuples. */
#define MAX_ROWS (256 * EXPR_ROWS)

/* Bytes allocated for an image of a by-reference value. */
#define MAX_IMAGE 2000

typedef struct Model
{
	ColumnType type;
	int16 scale; /* decimal scale, for COLUMN_DEC */
	int16 typlen;
	bool byval;
	char align;
	int n; /* number of rows */

	/* The bytes of each row's value. For by-reference types, it is an index of image[]. */
	gpuagg_i128 value[MAX_ROWS];
	uint8 state[MAX_ROWS]; /* VEC_VALUE, VEC_NULL, or VEC_FALLBACK for an exception */

	/* By-reference values as in a tuple, malloc'ed by the test. */
	int nimages;
	char *image[MAX_ROWS];
} Model;

/* Which rows are NULL. */
typedef enum Nulls
{
	NULLS_NONE,
	NULLS_ALL,
	NULLS_HALF,
	NULLS_FEW,
	NULLS_FIRST, /* the first half of the rows */
	NULLS_PATTERNS
} Nulls;

extern Model model;
extern ChunkBuilder *builder;
extern CacheChunk *chunk; /* the chunk built last, in storage[] */
extern char storage[2][8 << 20];

/* Returns whether the model's type is passed by reference. */
extern bool is_by_reference(void);

/* Stores the model's value as element i of an array of the model's type. */
extern void store_value(void *values, int i, gpuagg_i128 value);

/* Sets the type of the model, and creates a builder for it. Rows stay as they are. */
extern void set_type(ColumnType type, int16 scale, int16 typlen, bool byval, char align);

/*
 * Sets the state of each row. With `exceptions`, 1 of 500 rows that are not NULL is an exception.
 */
extern void fill_states(Nulls nulls, bool exceptions);

/* Sets each value to a random integer in least .. least + range; both bounds occur. */
extern void fill_integers(gpuagg_i128 least, gpuagg_u128 range);

/* Returns a number of rows near the sizes at which code paths change. */
extern int random_rows(void);

extern gpuagg_i128 random_i128(void);

/* Builds a chunk from the model, checks it, and resets the builder. */
extern void build_and_check(void);

#endif /* GPUAGG_UNIT_CHUNK_MODEL_H */
