/*
 * query.h
 *	  CudaQuery: a query in the form that is sent to the GPU server: which columns are sent, and
 *	  in which form (client side of WireQuery).
 *
 * 	query.c			translates an AggSpec, lays out buffers, reads packed keys
 * 	query_sets.c	translates distinct values and ordered sets
 * 	query_exact.c	translates exact sums of floats, and makes their states
 * 	query_parts.c	adds columns and slots to the message, for both
 * 	fill.c			copies columns of a batch to a buffer
 * 	unfill.c		reads rows of a buffer back into a batch
 */
#ifndef GPUAGG_CUDA_QUERY_H
#define GPUAGG_CUDA_QUERY_H

#include "postgres.h"

#include "batch.h"
#include "groups/value_dictionary.h"
#include "engine.h"
#include "protocol.h"
#include "spec.h"

/* The form in which a column is sent. */
typedef enum Travel
{
	TRAVEL_VALUES,      /* the values, perhaps widened to `type` */
	TRAVEL_CODES,       /* dictionary codes of a group key, also for NULL */
	TRAVEL_NUMBERS,     /* the same of values that are counted */
	TRAVEL_SET_CODES,   /* dictionary codes of distinct values; NULL is NULL */
	TRAVEL_RANKS,       /* ranks of texts among all of a cached column; not sent in batches */
	TRAVEL_FILTER,      /* 1 where true, 0 where false or NULL */
	TRAVEL_PRESENCE,    /* the validity bitmap only */
	TRAVEL_KEY_CODES,   /* gpuagg_f64_code of floats, with -0 as 0 */
	TRAVEL_VALUE_CODES, /* the same, with -0 and 0 distinct */
	TRAVEL_HIGH_PART,   /* floats as integers of two parts (operators/exact_parts.h) */
	TRAVEL_LOW_PART,
	TRAVEL_PARTS_SUM, /* the sum of two parts, which are other columns */
	TRAVEL_PAIRS,     /* 1 where two columns have values, and a filter passes; else 0 */
	TRAVEL_MATRIX,    /* square matrices, read from arrays */
	TRAVEL_RUNS       /* number of the run of equal keys, for grouped rows; sorted.c writes it */
} Travel;

/* A column of floats that travels as two columns of integers, for exact sums. */
typedef struct CudaParts
{
	int high_col, low_col; /* columns of the message */
	int unit;
	bool settled;      /* the unit is chosen; else it is 0, and all values so far were 0 */
	int64 *high, *low; /* parts of the current batch */
} CudaParts;

/* Slots of the message for a variable of an exact aggregate. Squares are sums of squares. */
typedef struct CudaExactVariable
{
	CudaParts *parts;
	int high, low;
	int high_squares, low_squares;
	int sum_squares; /* of both parts' sums */
} CudaExactVariable;

/* Slots of the message for an exact aggregate. */
typedef struct CudaExact
{
	int kind;                       /* ExactKind; 0: this fallback aggregate is none */
	int count;                      /* number of values */
	int rows;                       /* number of rows that pass the filter; -1: without filter */
	CudaExactVariable variables[2]; /* x, and y of pairs */
	/* Of pairs: squares of the sums of a part of x and one of y, each of which is high or low. */
	int pair_squares[2][2];
} CudaExact;

/* A column of the message. */
typedef struct CudaColumn
{
	int col; /* index in AggSpec.cols */
	Travel travel;
	CudaParts *parts; /* TRAVEL_HIGH_PART and TRAVEL_LOW_PART; else NULL */
	/*
	 * TRAVEL_PARTS_SUM: columns of the message with the parts. TRAVEL_PAIRS: those with a part of
	 * each variable, and with the filter, or -1. Else 0.
	 */
	int sources[3];
	WireType type; /* for COLUMN_DEC it is WIRE_I128; see `wide` */
	int key;       /* number of the key, or -1 */
	bool extreme;  /* floats that a minimum or maximum reads */
	bool returned; /* floats that gpu_max_n or its like returns as they are */
	double safe;   /* floats of smaller magnitude never overflow a sum; 0: no sum reads them */
	uint32 values; /* offsets in a buffer */
	uint32 validity;
	Dictionary *dict;        /* numbers values that have dictionary codes */
	const KeySpec *equality; /* how these are compared */
	/*
	 * With dictionary codes or ranks: the codes of all rows at the server are those of a stored
	 * column, and not of `dict` (column_keys.c). This is the column's number in RESIDENT; -1: they
	 * are not.
	 */
	int stored;
	uint32 nvalues; /* number of that column's values, which is the code for NULL */
	/*
	 * The codes are also those of constants, COLUMN_CONSTANT and below, and that for NULL is
	 * COLUMN_NULL.
	 */
	bool chosen;
	int nconstants;
	Datum *constants;
	Oid collation; /* TRAVEL_RANKS: that of the order */
	Datum *datums; /* space for the dictionary's input, if the column has no Datums */
	int32 *codes;  /* of the current batch, with their hashes */
	uint32 *hashes;

	/* facts about the buffer that is being filled */
	bool has_nulls;
	bool wide; /* COLUMN_DEC: some value needs 128 bits; else the column is sent as WIRE_I64 */
	int64 min, /* bounds of a key's values */
		max;
} CudaColumn;

#define COLUMN_NULL (-1)
#define COLUMN_CONSTANT (-2)

/* Returns whether the column is sent as codes of a dictionary of this process. */
static inline bool
cuda_has_dictionary(const CudaColumn *col)
{
	return col->travel == TRAVEL_CODES || col->travel == TRAVEL_NUMBERS ||
		col->travel == TRAVEL_SET_CODES;
}

/* What the server computes for gpu_max_n or its like. */
typedef struct CudaTopN
{
	int set;    /* the set of the keys, with the values beside them */
	int number; /* slot with the number of a group's keys */
	int first;  /* slot with the position of the first one */
} CudaTopN;

/* What the server computes for an aggregate of counted values. */
typedef struct CudaTally
{
	int set;      /* the counted set */
	int first;    /* slot with the position of a group's first value */
	int distinct; /* slot with the number of its distinct values */
	int number;   /* slot with the number of its rows with a value, or a code for NULL */
	int rows;     /* slot with the number of all its rows that pass the filter; -1: not needed */
} CudaTally;

/* What the server computes for min() or max() of texts: the rank of the least or greatest one. */
typedef struct CudaRanked
{
	int slot;      /* -1: the fallback aggregate is another one */
	int col;       /* the column of the message with the ranks */
	uint32 *order; /* [rank] the text's code in the column's dictionary; NULL: there are no rows */
} CudaRanked;

/* A query of this process. It is sent as `wire`. */
typedef struct CudaQuery
{
	const AggSpec *spec;
	WireQuery *wire; /* thresholds follow */
	size_t wire_bytes;
	int ncols;
	CudaColumn cols[WIRE_MAX_COLS];
	int keycol[WIRE_MAX_KEYS]; /* index in cols, for each key */
	int slot[WIRE_MAX_SLOTS];  /* index in wire->slots, for each slot of the spec */
	/* The sum of a mean, which is sent as a count (`slot`) and this sum; -1 for other slots. */
	int sum[WIRE_MAX_SLOTS];
	CudaExact *exact; /* for each fallback aggregate */
	/* For each set of values of an ordered set: its set at the server, and slots. */
	int values[WIRE_MAX_SETS];
	int number[WIRE_MAX_SETS];   /* slot with the number of a group's values */
	int first[WIRE_MAX_SETS];    /* slot with the position of the first one */
	int mode_set[WIRE_MAX_SETS]; /* set in which the mode is found */
	int mode[2][WIRE_MAX_SETS];  /* slot with the mode, for [descending] */
	CudaTopN *top_n;             /* [fallback aggregate]; for others it is not set */
	CudaTally *tallies;          /* the same */
	CudaRanked *ranked;          /* [fallback aggregate] */
	int matrix_size;             /* of all matrices; 0: not known yet */
	bool sizes_differ;           /* a matrix of another size has come since the start */

	/*
	 * A minimum or maximum has read -0 since the start. Of -0 and 0, which are equal, core returns
	 * the one that came last; the GPU keeps no order of rows.
	 */
	bool negative_zero;
	/*
	 * Since the start, gpu_max_n or its like has read floats that codes do not preserve, or do not
	 * order as it does: -0, and NaNs other than the usual one.
	 */
	bool unusual_floats;
	uint32 buffer_rows;  /* rows of a full buffer */
	uint32 buffer_bytes; /* bytes that these rows take */
} CudaQuery;

/*
 * Translates the query. Returns NULL, with the reason in *why, if the GPU cannot run it. grouped:
 * rows arrive grouped, and groups leave in their order; keys are not sent then. Calls no server, so
 * that EXPLAIN may use it.
 */
extern CudaQuery *cuda_query_build(const AggSpec *spec, bool grouped, const char **why);

/*
 * query_parts.c: returns the number of the message's column, which is added if it is new; -1 if
 * there are too many.
 */
extern int cuda_query_add_column(CudaQuery *query, int col, Travel travel, WireType type, int key);
/* The same for a column that is made of others, see CudaColumn.sources. */
extern int cuda_query_add_derived(CudaQuery *query, int col, Travel travel, WireType type, int a,
								  int b, int c);
/*
 * Returns the number of the message's slot, which is added if it is new. wire->nslots may be one
 * too many afterwards.
 */
extern int cuda_query_add_slot(CudaQuery *query, const WireSlot *slot);
/*
 * query_sets.c: translate a slot of distinct values, and all ordered sets. They return false, with
 * the reason in *why, if the GPU cannot compute them.
 */
extern bool cuda_query_distinct_slot(CudaQuery *query, int s, const char **why);
extern bool cuda_query_ordered_sets(CudaQuery *query, const char **why);
/* The same for gpu_max_n and its like. */
extern bool cuda_query_top_n(CudaQuery *query, const char **why);
/* The same for aggregates of counted values. */
extern bool cuda_query_tallies(CudaQuery *query, const char **why);

/* The same for min() and max() of texts. */
extern bool cuda_query_ranked(CudaQuery *query, const char **why);
/* Returns whether there are any. Then the CPU fallback takes all batches. */
extern bool cuda_query_has_ranks(const CudaQuery *query);

/*
 * query_exact.c: translates exact aggregates. Returns false, with the reason in *why, if the GPU
 * cannot compute them.
 */
extern bool cuda_query_exact(CudaQuery *query, const char **why);
/* Returns whether there are any. */
extern bool cuda_query_has_exact(const CudaQuery *query);
/* Returns the most bytes of their states in a group. */
extern size_t cuda_query_exact_bytes(const CudaQuery *query);
/*
 * Returns whether values of this magnitude are not too large for the column's unit, which is chosen
 * for it if there is none.
 */
extern bool cuda_parts_reach(CudaParts *parts, double magnitude);
/* Sets the parts of the batch's columns. Returns false if some value does not fit. */
extern bool cuda_query_split(CudaQuery *query, const Batch *batch);
/* Sets n values of a column from their parts. */
extern void cuda_parts_read(const CudaParts *parts, const int64 *high, const int64 *low, int n,
							Column *out);
/*
 * Makes the states of exact aggregate o in out->ngroups groups of a chunk, from group `from` on, in
 * the current memory context.
 */
extern void cuda_query_exact_states(const CudaQuery *query, int o, const WireGroups *groups,
									const char *buffer, uint32 from, GroupBatch *out);

/*
 * Lays out buffers of this size, with the estimates in query->wire. Creates dictionaries in `cxt`.
 */
extern void cuda_query_layout(CudaQuery *query, MemoryContext cxt, uint32 buffer_bytes,
							  int batch_rows, bool parallel);

/* Returns the WireType in which values of this type are sent unchanged, or -1. */
extern int cuda_native_type(ColumnType type);

/*
 * Encodes the batch's columns with dictionaries. Returns false if the dictionaries would need more
 * than `mem_limit`, or if a value that is counted is equal to one that looks different. *variants:
 * some key is equal to a dictionary's entry that looks different (1.0 and 1.00), so that its code
 * would return the other one.
 */
extern bool cuda_query_encode(CudaQuery *query, const Batch *batch, size_t mem_limit,
							  bool *variants);
/* Returns whether the batch has numerics that COLUMN_DEC cannot represent. */
extern bool cuda_query_unrepresentable(const CudaQuery *query, const Batch *batch);
/*
 * Returns whether the batch has floats so large that a sum or a variance of them might overflow on
 * the way. Whether it does depends on the order of rows, which the GPU does not keep.
 */
extern bool cuda_query_large(const CudaQuery *query, const Batch *batch);
/*
 * Returns whether the query computes a product. A product may overflow in one order of rows and not
 * in another.
 */
extern bool cuda_query_multiplies(const CudaQuery *query);
/*
 * Points the batch's columns that are sent unchanged to their arrays in the buffer, after `rows`
 * rows, and all others to their own memory. buffer may be NULL: all to their own memory.
 */
extern void cuda_query_bind_buffers(const CudaQuery *query, char *buffer, uint32 rows,
									Batch *batch);
/* Appends rows from .. from + n - 1 of the batch after `rows` rows of the buffer. */
extern void cuda_query_fill(CudaQuery *query, char *buffer, uint32 rows, const Batch *batch,
							int from, int n);
/* Returns whether the participants of a parallel scan can share one query at the server. */
extern bool cuda_query_shareable(const CudaQuery *query);
/*
 * Returns whether cuda_query_settle() must be called with the first batch before the query can be
 * opened.
 */
extern bool cuda_query_needs_batch(const CudaQuery *query);
/*
 * Sets the size of matrices to that of the first one in the batch. Returns false if there is none,
 * or if the GPU has no operator for its size.
 */
extern bool cuda_query_settle(CudaQuery *query, const Batch *batch);
/* Sets query->negative_zero if a minimum or maximum reads -0 in this batch, which is not sent. */
extern void cuda_query_note_negative_zero(CudaQuery *query, const Batch *batch);
/*
 * Makes a batch, in the current memory context, of rows from .. from + n - 1 of a buffer that
 * cuda_query_describe() has described as *wire. `from` is a multiple of 64.
 */
extern void cuda_query_unfill(const CudaQuery *query, const char *buffer, const WireBatch *wire,
							  int from, int n, Batch *out);
/* Describes the buffer that was filled, and starts a new one. */
extern void cuda_query_describe(CudaQuery *query, uint32 rows, WireBatch *out);
/* Returns whether the codes of some key are those of a stored column. */
extern bool cuda_query_has_column_codes(const CudaQuery *query);
/* Returns the code of key `k` in a packed key. */
static inline int32
cuda_query_code(const CudaQuery *query, int k, const char *packed)
{
	int32 code;

	memcpy(&code, packed + query->wire->keys[k].offset, sizeof(code));
	return code;
}

/* Returns the query to its state after cuda_query_layout(). */
extern void cuda_query_reset(CudaQuery *query);

/*
 * Returns whether all dictionary codes in n packed keys are valid. Must be called before
 * cuda_query_keys().
 */
extern bool cuda_query_keys_known(const CudaQuery *query, const char *packed, int n);
/* Unpacks key `k` of n packed group keys. */
extern void cuda_query_keys(const CudaQuery *query, int k, const char *packed, int n, Datum *values,
							bool *nulls);

#endif /* GPUAGG_CUDA_QUERY_H */
