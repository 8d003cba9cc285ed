/*
 * query.h
 *	  A query as the GPU server sees it: which columns are sent, and in which form.
 *
 *	query.c		translates an AggSpec, lays out buffers, reads packed keys
 *	query_sets.c	translates its distinct values and ordered sets
 *	query_parts.c	columns and slots of the message, for both
 *	fill.c		columns of a batch to a buffer
 *	unfill.c	rows of a buffer back to a batch
 */
#ifndef GPUAGG_CUDA_QUERY_H
#define GPUAGG_CUDA_QUERY_H

#include "postgres.h"

#include "batch.h"
#include "groups/dictionary.h"
#include "engine.h"
#include "protocol.h"
#include "spec.h"

/* The form in which a column is sent. */
typedef enum Travel
{
	TRAVEL_VALUES,      /* the values, perhaps widened to `type` */
	TRAVEL_CODES,       /* dictionary codes of a group key */
	TRAVEL_FILTER,      /* 1 where true, 0 where false or NULL */
	TRAVEL_PRESENCE,    /* the validity bitmap only */
	TRAVEL_KEY_CODES,   /* gpuagg_f64_code of floats, with -0 as 0 */
	TRAVEL_VALUE_CODES, /* the same, with -0 and 0 distinct */
	TRAVEL_MATRIX,      /* square matrices, read from arrays */
	TRAVEL_RUNS /* of grouped rows: the number of the run of equal keys, which sorted.c writes */
} Travel;

typedef struct CudaColumn
{
	int col; /* in AggSpec.cols */
	Travel travel;
	WireType type; /* of a COLUMN_DEC I128, but see `wide` */
	int key;       /* which key, or -1 */
	bool extreme;  /* floats whose minimum or maximum is computed */
	double safe;   /* floats of smaller magnitude never make a sum overflow; 0: no sum reads them */
	uint32 values; /* offsets in a buffer */
	uint32 validity;
	Dictionary *dict; /* TRAVEL_CODES */
	Datum *datums;    /* space for its input, if the column is not of Datums */
	int32 *codes;     /* of the current batch */
	uint32 *hashes;

	/* of the buffer being filled */
	bool has_nulls;
	bool wide; /* COLUMN_DEC: some value needs 128 bits; else it is sent as I64 */
	int64 min, /* of a key */
		max;
} CudaColumn;

typedef struct CudaQuery
{
	const AggSpec *spec;
	WireQuery *wire; /* thresholds follow */
	size_t wire_bytes;
	int ncols;
	CudaColumn cols[WIRE_MAX_COLS];
	int keycol[WIRE_MAX_KEYS];   /* of cols */
	int slot[WIRE_MAX_SLOTS];    /* [slot of the spec] in wire->slots */
	int sum[WIRE_MAX_SLOTS];     /* means travel as a count, in `slot`, and a sum; else -1 */
	int values[WIRE_MAX_SETS];   /* [values of the spec] set at the server, for ordered sets; in
									wire->slots: */
	int number[WIRE_MAX_SETS];   /* how many of them a group has */
	int first[WIRE_MAX_SETS];    /* where they begin */
	int mode_set[WIRE_MAX_SETS]; /* the set in which the most frequent one is looked for */
	int mode[2][WIRE_MAX_SETS];  /* [descending] that one */
	int matrix_size;             /* of all matrices; 0 until there was one */
	bool sizes_differ;           /* there were matrices of another size since the start */

	/*
	 * A minimum or maximum has read -0 since the start.  Of -0 and 0, which are equal, core
	 * returns the one that came last; the GPU keeps no order of rows.
	 */
	bool negative_zero;
	uint32 buffer_rows;  /* that fit a buffer */
	uint32 buffer_bytes; /* that they take */
} CudaQuery;

/*
 * Translates the query; NULL if the GPU cannot run it, for the reason in *why.  grouped: rows
 * arrive grouped, and groups leave in their order; keys do not travel then.  Calls no server, so
 * that EXPLAIN may use it.
 */
extern CudaQuery *cuda_query_build(const AggSpec *spec, bool grouped, const char **why);

/*
 * Of query_parts.c: the number of the message's column, which may be there already; -1: there are
 * too many.
 */
extern int cuda_query_add_column(CudaQuery *query, int col, Travel travel, WireType type, int key);
/* The same of a slot, of which there may be one too many. */
extern int cuda_query_add_slot(CudaQuery *query, const WireSlot *slot);
/*
 * Of query_sets.c: a slot of distinct values, and all ordered sets; false: the GPU cannot, for the
 * reason in *why.
 */
extern bool cuda_query_distinct_slot(CudaQuery *query, int s, const char **why);
extern bool cuda_query_ordered_sets(CudaQuery *query, const char **why);

/*
 * Lays out buffers of this size, by the estimates in query->wire; dictionaries are made in `cxt`.
 */
extern void cuda_query_layout(CudaQuery *query, MemoryContext cxt, uint32 buffer_bytes,
							  int batch_rows, bool parallel);

/* The type in which values of a column are sent unchanged, or -1. */
extern int cuda_native_type(ColumnType type);

/*
 * Encodes the batch's dictionary keys; false if they need more than `mem_limit`.
 * *variants: some key is equal to one in its dictionary that looks different (1.0 and 1.00),
 * so that its code would bring back the other one.
 */
extern bool cuda_query_encode(CudaQuery *query, const Batch *batch, size_t mem_limit,
							  bool *variants);
/* Does the batch hold a NULL in a key that is sent as not nullable (choose_raw)? */
extern bool cuda_query_null_keys(const CudaQuery *query, const Batch *batch);
/* Does the batch hold numerics that COLUMN_DEC cannot represent? */
extern bool cuda_query_unrepresentable(const CudaQuery *query, const Batch *batch);
/*
 * Does the batch hold floats so large that a sum or a variance of them might overflow on the
 * way?  Whether it does depends on the order of rows, which the GPU does not keep.
 */
extern bool cuda_query_large(const CudaQuery *query, const Batch *batch);
/* Does the query compute a product?  It may overflow in one order of rows and not in another. */
extern bool cuda_query_multiplies(const CudaQuery *query);
/*
 * Points the batch's columns that are sent unchanged to their arrays in the buffer, behind
 * `rows` rows, and all others to their own memory.  buffer NULL: all to their own memory.
 */
extern void cuda_query_bind_buffers(const CudaQuery *query, char *buffer, uint32 rows,
									Batch *batch);
/* Appends rows from .. from + n - 1 of the batch behind `rows` rows of the buffer. */
extern void cuda_query_fill(CudaQuery *query, char *buffer, uint32 rows, const Batch *batch,
							int from, int n);
/* May the participants of a parallel scan share one query at the server? */
extern bool cuda_query_shareable(const CudaQuery *query);
/* Must cuda_query_settle() be called with the first batch before the query can be opened? */
extern bool cuda_query_needs_batch(const CudaQuery *query);
/*
 * Sets the size of matrices to that of the first one in the batch.  False if there is
 * none, or the GPU has no operator for its size.
 */
extern bool cuda_query_settle(CudaQuery *query, const Batch *batch);
/* Sets query->negative_zero if a minimum or maximum reads -0 in this batch, which is not sent. */
extern void cuda_query_note_negative_zero(CudaQuery *query, const Batch *batch);
/*
 * Makes a batch, in the current memory context, of rows from .. from + n - 1 of a buffer
 * that cuda_query_describe described as *wire; `from` is a multiple of 64.
 */
extern void cuda_query_unfill(const CudaQuery *query, const char *buffer, const WireBatch *wire,
							  int from, int n, Batch *out);
/* Describes the buffer that was filled, and starts a new one. */
extern void cuda_query_describe(CudaQuery *query, uint32 rows, WireBatch *out);
/* Back to the state after cuda_query_layout. */
extern void cuda_query_reset(CudaQuery *query);

/* Are all dictionary codes in n packed keys valid?  To be called before cuda_query_keys. */
extern bool cuda_query_keys_known(const CudaQuery *query, const char *packed, int n);
/* Key `k` of n packed group keys. */
extern void cuda_query_keys(const CudaQuery *query, int k, const char *packed, int n, Datum *values,
							bool *nulls);

#endif /* GPUAGG_CUDA_QUERY_H */
