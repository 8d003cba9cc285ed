/*
 * query.h
 *	  A query in the server's terms: which columns travel, and how.
 */
#ifndef GPUAGG_CUDA_QUERY_H
#define GPUAGG_CUDA_QUERY_H

#include "postgres.h"

#include "batch.h"
#include "groups/dictionary.h"
#include "engine.h"
#include "protocol.h"
#include "spec.h"

typedef enum Travel
{
	TRAVEL_VALUES,				/* as they are, or widened to `type` */
	TRAVEL_CODES,				/* dictionary codes of a group key */
	TRAVEL_FILTER,				/* 1 where true, 0 where false or NULL */
	TRAVEL_PRESENCE,			/* validity alone */
	TRAVEL_KEY_CODES,			/* gpuagg_f64_code of floats, with -0 as 0 */
	TRAVEL_VALUE_CODES,			/* the same, telling them apart */
	TRAVEL_MATRIX				/* square matrices out of arrays */
} Travel;

typedef struct CudaColumn
{
	int			col;			/* in AggSpec.cols */
	Travel		travel;
	WireType	type;			/* COLUMN_DEC: I64 until a value needs more */
	int			key;			/* which key, or -1 */
	bool		extreme;		/* floats of which a minimum or maximum is taken */
	double		safe;			/* floats below this, in magnitude, never make a sum overflow; 0: of no sum */
	uint32		values;			/* offsets in a buffer */
	uint32		validity;
	Dictionary *dict;			/* TRAVEL_CODES */
	Datum	   *datums;			/* what it reads, where the column has no Datums */
	int32	   *codes;			/* of the batch at hand */
	uint32	   *hashes;

	/* of the buffer being filled */
	bool		has_nulls;
	bool		sizes_differ;	/* TRAVEL_MATRIX: since the start */
	bool		negative_zero;	/* seen since the start, if `extreme` */
	bool		wide;			/* COLUMN_DEC: I128 so far */
	int64		min,			/* of a key */
				max;
} CudaColumn;

typedef struct CudaQuery
{
	const AggSpec *spec;
	WireQuery  *wire;			/* thresholds follow */
	size_t		wire_bytes;
	int			ncols;
	CudaColumn	cols[WIRE_MAX_COLS];
	int			keycol[WIRE_MAX_KEYS];	/* of cols */
	int			matrix_size;	/* of all matrices; 0 until there was one */
	uint32		buffer_rows;	/* that fit a buffer */
	uint32		buffer_bytes;	/* that they take */
} CudaQuery;

/*
 * Translates; NULL if the GPU cannot run it, and then *why says why not.
 * Needs no server, so that EXPLAIN may ask.
 */
extern CudaQuery *cuda_query_build(const AggSpec *spec, const char **why);

/* Lays out buffers of this size, the estimates being set; dictionaries live in `cxt`. */
extern void cuda_query_layout(CudaQuery *query, MemoryContext cxt, uint32 buffer_bytes,
							  int batch_rows, bool parallel);

/* The type of the same width as a column's, or -1. */
extern int	cuda_native_type(ColumnType type);

/*
 * Encodes the batch's dictionary keys; false if they need more than `mem_limit`.
 * *variants: some key equals one of its dictionary that looks different, which
 * its code does not tell.
 */
extern bool cuda_query_encode(CudaQuery *query, const Batch *batch, size_t mem_limit,
							  bool *variants);
/* Does the batch hold numerics that only the CPU can add up? */
extern bool cuda_query_unrepresentable(const CudaQuery *query, const Batch *batch);
/*
 * Does the batch hold floats so large that a sum or a variance of them might overflow on the
 * way?  Whether it does depends on the order of rows, which the GPU does not keep.
 */
extern bool cuda_query_large(const CudaQuery *query, const Batch *batch);
/* Is there a product?  Its factors may overflow in one order and not in another. */
extern bool cuda_query_multiplies(const CudaQuery *query);
/*
 * Points the batch's columns that travel as they are to behind `rows` rows of the
 * buffer, all others to their own memory; buffer NULL: all.
 */
extern void cuda_query_bind_buffers(const CudaQuery *query, char *buffer, uint32 rows, Batch *batch);
/* Appends rows from .. from + n - 1 of the batch behind `rows` rows of the buffer. */
extern void cuda_query_fill(CudaQuery *query, char *buffer, uint32 rows, const Batch *batch,
							int from, int n);
/*
 * Has a minimum or maximum met -0?  It equals 0, and core returns whichever came
 * last; the GPU reduces in no such order.
 */
extern bool cuda_query_zeros(const CudaQuery *query);
/* Do rows of several processes mean the same to the server, in whatever order they come? */
extern bool cuda_query_shareable(const CudaQuery *query);
/* Must cuda_query_settle() be called before the query can be opened? */
extern bool cuda_query_needs_batch(const CudaQuery *query);
/*
 * Settles the size of matrices by the first one of the first batch.  False where
 * there is none, or of a size that the GPU does not have.
 */
extern bool cuda_query_settle(CudaQuery *query, const Batch *batch);
/* Were there matrices of another size? */
extern bool cuda_query_sizes_differ(const CudaQuery *query);
/* As cuda_query_zeros, with what a batch holds that does not travel. */
extern bool cuda_query_batch_zeros(CudaQuery *query, const Batch *batch);
/*
 * Makes a batch, in the current memory context, of rows from .. from + n - 1 of
 * a buffer that was described so; `from` is a multiple of 64.
 */
extern void cuda_query_unfill(const CudaQuery *query, const char *buffer, const WireBatch *wire,
							  int from, int n, Batch *out);
/* Describes the filled buffer and starts a new one. */
extern void cuda_query_describe(CudaQuery *query, uint32 rows, WireBatch *out);
extern void cuda_query_reset(CudaQuery *query);

/* Key `k` of a packed group key. */
extern bool cuda_query_keys_known(const CudaQuery *query, const char *packed, int n);
extern Datum cuda_query_key(const CudaQuery *query, int k, const char *packed, bool *isnull);

#endif							/* GPUAGG_CUDA_QUERY_H */
