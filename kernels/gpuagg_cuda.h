/*
 * gpuagg_cuda.h
 *	  Segmented reductions and generalized histograms on CUDA devices.
 *
 * A C interface, with no PostgreSQL and no session in it: used by the server,
 * the unit tests and the benchmarks alike.
 *
 * Conventions of every function unless its comment says otherwise:
 *	- pointers are device pointers, sizes are element counts in 64 bits: up to 2^33
 *	  elements for segmented reductions, segments_from_bins and gather; sorts, histograms
 *	  and hash tables take fewer than 2^32 rows a call (UNSUPPORTED above), and the last two
 *	  accumulate over calls;
 *	- alignment is that of the element type; of states and columns of 16 bytes 16 (states
 *	  that are not aligned are INVALID), of a workspace, slots and keys of tables 256,
 *	  which is what cudaMalloc gives;
 *	- work is queued on `stream`; nothing synchronizes, nothing allocates;
 *	- scratch memory is the caller's: call with workspace = NULL to learn the
 *	  size in *workspace_bytes, then with memory of at least that size;
 *	- the result is the first error met, GPUAGG_CUDA_OK otherwise; the text of
 *	  the last CUDA error of this thread (call, file, line) is
 *	  gpuagg_cuda_last_error(), its code gpuagg_cuda_last_code(): memory that
 *	  could not be had and a launch that did not fit leave the device as it was;
 *	- the same input on the same device gives the same bits on every run,
 *	  except where a function says that float atomics are used.
 *
 * Operators are named by MonoidId (monoid.h); inputs and states are arrays of
 * the types that the monoid list gives.
 */
#ifndef GPUAGG_CUDA_H
#define GPUAGG_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "operators/monoid.h"
#include "operators/vector_program.h"

#ifdef __cplusplus
extern "C"
{
#endif

	typedef struct CUstream_st *gpuagg_stream; /* a cudaStream_t */

	typedef enum GpuaggCudaStatus
	{
		GPUAGG_CUDA_OK = 0,
		GPUAGG_CUDA_INVALID,     /* an argument makes no sense */
		GPUAGG_CUDA_UNSUPPORTED, /* no instance for this operator or shape */
		GPUAGG_CUDA_WORKSPACE,   /* workspace_bytes is too small */
		GPUAGG_CUDA_FULL,        /* a table or output is full; see the function */
		GPUAGG_CUDA_ERROR,       /* the CUDA call failed; see gpuagg_cuda_last_error */
		GPUAGG_CUDA_DEGENERATE   /* too many keys collide under a table's seed; see
									gpuagg_group_outcome */
	} GpuaggCudaStatus;

	/*
	 * How the values of a column are stored.  NATIVE is the operator's own input
	 * type; a narrower number is widened as it is read, so that no widened copy of
	 * the column is needed.  Which pairs exist is stated by each section below.
	 */
	typedef enum GpuaggValueType
	{
		GPUAGG_VALUE_NATIVE = 0,
		GPUAGG_VALUE_I8,
		GPUAGG_VALUE_I16,
		GPUAGG_VALUE_I32,
		GPUAGG_VALUE_I64,
		GPUAGG_VALUE_F32,
		GPUAGG_VALUE_F64,
		GPUAGG_VALUE_I128
	} GpuaggValueType;

	/* Text of the last CUDA error of this thread, and its cudaError_t; 0 before the first one. */
	const char *gpuagg_cuda_last_error(void);
	int gpuagg_cuda_last_code(void);

	/* ---- segmented reductions ---------------------------------------------- */

	/*
	 * Segments of a column in CSR form: segment s holds the elements offsets[s] up
	 * to, not including, offsets[s + 1]; empty segments are fine.  offsets[0] may be
	 * above 0.
	 */
	typedef struct GpuaggSegments
	{
		int64_t nvalues; /* offsets[nsegments] - offsets[0], known to the host */
		int64_t nsegments;
		const int64_t *offsets; /* nsegments + 1 */
	} GpuaggSegments;

	/*
	 * Reduces each segment in element order, by an operator that does not commute (UNSUPPORTED
	 * otherwise): states[s] for each segment, identities for empty ones.  Values are of the
	 * operator's input type; these operators raise no errors.  Deterministic: what is combined in
	 * which order depends on the device and the sizes only.
	 */
	GpuaggCudaStatus gpuagg_cuda_segmented_reduce(const GpuaggSegments *segments, MonoidId op,
												  const void *values, void *states, void *workspace,
												  size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * Segments of equal neighbouring bins (sorted or merely grouped).  `offsets` has room for n + 1
	 * entries and *nsegments_device for one; both are filled on the stream.  n is at least 1.
	 */
	GpuaggCudaStatus gpuagg_cuda_segments_from_bins(const int32_t *bins, int64_t n,
													int64_t *offsets, int64_t *nsegments_device,
													void *workspace, size_t *workspace_bytes,
													gpuagg_stream stream);

	/*
	 * Copies rows of 1 or 4 bytes or any multiple of 8: out[i] = in[index[i]] for i below n.
	 * With segments_from_bins's offsets as the index it yields the bins of the segments.
	 */
	GpuaggCudaStatus gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index,
										int64_t n, void *out, gpuagg_stream stream);

/*
 * Ordered input for operators that do not commute: the stable permutation that
 * sorts n rows (below 2^32) by words[0], then words[1] and so on.  A word is a
 * column of signed integers (I8 to I64) whose values less `min` are below
 * 2^bits; with 64 bits any value will do.  Narrow words are sorted by together,
 * so exact ranges are worth their price.
 */
#define GPUAGG_MAX_SORT_WORDS 24

	typedef struct GpuaggSortWord
	{
		const void *values;
		GpuaggValueType type;
		int bits;
		int descending;
		int64_t min;
	} GpuaggSortWord;

	GpuaggCudaStatus gpuagg_cuda_sort_rows(int64_t n, int nwords, const GpuaggSortWord *words,
										   int64_t *permutation, void *workspace,
										   size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * The entries of a permutation whose row is to be kept, in their order:
	 * *nselected_device of them in `selected`, which has room for n.
	 */
	GpuaggCudaStatus gpuagg_cuda_select_rows(int64_t n, const int64_t *permutation,
											 const uint8_t *keep, int64_t *selected,
											 int64_t *nselected_device, void *workspace,
											 size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * ---- generalized histograms --------------------------------------------
	 *
	 * state[bin(row)] = combine(state[bin(row)], lift(value(row))) for every row,
	 * for several operators over the same bins in one pass.
	 *
	 * States live in caller's arrays of the monoid's state type, one per slot, and
	 * accumulate over any number of calls: gpuagg_hist_init once, then
	 * gpuagg_hist_update per batch.  After an update the arrays hold states, and nothing else is
	 * left to do. To add bins, copy the arrays into larger ones and init the new tail.
	 *
	 * Determinism: integer results are exact.  Float sums, and the moments behind
	 * variances and regressions, are accumulated exactly in fixed point (up to 160
	 * bits, placed by a sample of the batch) and rounded once per batch, so they
	 * are the same on every run; inputs outside that window (more than
	 * about 5 decades below the sampled maximum for sums into many bins, 10 into
	 * fewer, 15 for moments; infinities, NaN) are combined one by one in no fixed
	 * order.  So are rows of an EXCHANGE that crowd in the bins of few multiprocessors though its
	 * sample did not show it.
	 */
	/* A column in Arrow's physical layout. */
	typedef struct GpuaggColumn
	{
		const void *values;
		const uint8_t *validity; /* LSB-first bits, 1 = not NULL; NULL: all valid */
		GpuaggValueType type;    /* of a key: not NATIVE */
		uint16_t
			computed; /* 1: by the program of a call in TILES; then values and validity are NULL, */
		uint16_t operand; /* and this is what it is */
	} GpuaggColumn;

	typedef enum GpuaggBinKind
	{
		GPUAGG_BIN_INDEX, /* column[0] is the bin, int32; negative: skip the row; its values NULL: 0
							 for all, of one bin */
		GPUAGG_BIN_RANGE  /* product of integer ranges, first column outermost */
	} GpuaggBinKind;

#define GPUAGG_MAX_KEYS 8
#define GPUAGG_MAX_SLOTS 16

	/*
	 * How a row gets its bin.  RANGE: key c contributes key - min[c], or extent[c]
	 * - 1 if it is NULL and null_bin[c] is set (extent[c] then counts one more than
	 * the range).  Rows with another NULL, a failing filter, or a key out of range
	 * are left out; the last kind is counted in GpuaggHistStatus.outside.
	 */
	typedef struct GpuaggBins
	{
		GpuaggBinKind kind;
		int ncolumns;
		GpuaggColumn column[GPUAGG_MAX_KEYS];
		int64_t min[GPUAGG_MAX_KEYS];
		int64_t extent[GPUAGG_MAX_KEYS];
		uint8_t null_bin[GPUAGG_MAX_KEYS];
		const uint8_t *filter; /* one byte a row, 0: leave the row out; may be NULL */
		int64_t nbins;         /* size of the state arrays, below 2^31 */
	} GpuaggBins;

	/*
	 * One operator.  x is the input; the second input y is the Y of a regression
	 * (x the X) or the payload of argmax and argmin (x the key).  Integer columns may be
	 * narrower than the monoid's input, and float4 may feed float8.  Floats of argmax and argmin
	 * stand for their gpuagg_f64_code(), a key of -0 for that of 0.  A row with a NULL in x or y is
	 * left out.  COUNT with x.values = NULL counts rows; x.validity then still counts.
	 */
	typedef struct GpuaggSlot
	{
		MonoidId op;
		GpuaggColumn x;
		GpuaggColumn y;
		const uint8_t *filter;    /* as in GpuaggBins, for this operator alone; or NULL: */
		uint16_t filter_computed; /* 1: by the program, NULL is false */
		uint16_t filter_operand;
		void *states;
	} GpuaggSlot;

	/* In device memory, zeroed by the caller before the first batch. */
	typedef struct GpuaggHistStatus
	{
		unsigned long long outside;        /* rows whose key lay out of the stated range */
		uint32_t errors[GPUAGG_MAX_SLOTS]; /* MonoidError bits of each slot */
	} GpuaggHistStatus;

	typedef enum GpuaggHistStrategy
	{
		GPUAGG_HIST_AUTO,
		GPUAGG_HIST_SHARED,    /* shared memory: M sub-histograms, S passes */
		GPUAGG_HIST_PARTITION, /* partition by bin range, then shared memory */
		GPUAGG_HIST_GLOBAL,    /* states changed in the L2 cache, M copies of them */
		GPUAGG_HIST_EXCHANGE,  /* shared memory of all multiprocessors together, rows exchanged
								  through the L2 cache */
		GPUAGG_HIST_TILES /* shared memory, a program and all operators in one pass; only by name */
	} GpuaggHistStrategy;

/*
 * What computes columns of a call in TILES.  Registers of its steps are `temporaries` of the call,
 * and VECTOR_NONE where only the next instruction reads a result, as GPUAGG_LAST; so does what
 * comes after the last one.  Inputs are operands, GPUAGG_INPUT + their number, and there is no
 * VECTOR_LOAD.  Operand b of instructions with one operand is VECTOR_NONE.  Rows do not count where
 * the filter is not true, nor where a result is not of which the operation has the bit
 * GPUAGG_CONDITION; they are undetermined where the first of these that is not true, the filter
 * last, is undetermined.
 */
#define GPUAGG_LAST 0x7fff
#define GPUAGG_INPUT 0x4000
#define GPUAGG_CONDITION 0x8000
#define GPUAGG_MAX_INPUTS 32
#define GPUAGG_MAX_TABLES 32
#define GPUAGG_MAX_CHECKS 48

	/*
	 * A row does not count, but as undetermined, where the operand is VECTOR_UNDETERMINED, or NULL
	 * unless it may be.
	 */
	typedef struct GpuaggCheck
	{
		uint16_t operand;
		uint16_t nullable;
	} GpuaggCheck;

	typedef struct GpuaggProgram
	{
		VectorProgram steps;
		GpuaggColumn input[GPUAGG_MAX_INPUTS];
		VectorTable tables[GPUAGG_MAX_TABLES]; /* of VECTOR_LOOKUP; in device memory: */
		const int64_t *cells;
		const uint8_t *cell_states;
		unsigned long long *undetermined; /* rows are added whose outcome the program cannot tell */
		int nchecks;
		GpuaggCheck check[GPUAGG_MAX_CHECKS];
	} GpuaggProgram;

	typedef struct GpuaggHist
	{
		GpuaggBins bins;
		int nslots;
		GpuaggSlot slot[GPUAGG_MAX_SLOTS];
		int64_t nrows; /* below 2^32 in one call */
		GpuaggHistStatus *status;
		GpuaggHistStrategy strategy;  /* AUTO: by the model in hist_model.h */
		const GpuaggProgram *program; /* TILES: in device memory */
		const VectorProgram *steps; /* its steps in the host's memory: what knows no more operations
									   is faster; NULL: unknown */
		int temporaries;            /* that it has */
		int input_bytes; /* of a row's inputs that it reads, about: room to have them read ahead */
		int64_t input_row; /* of its inputs, the call's first row: a multiple of 64 below 2^31 */
	} GpuaggHist;

	/*
	 * What AUTO chose, for EXPLAIN, of the operators that have a form in shared memory, or of
	 * all if none has.  copies is of rows whose bins are all alike (race factor 1); how often
	 * rows of a warp meet is sampled during the update, and more copies are used then if there is
	 * room.
	 */
	typedef struct GpuaggHistChoice
	{
		GpuaggHistStrategy strategy;
		int copies;    /* M, sub-histograms a block; GLOBAL: of the device */
		int passes;    /* S, or the partitions */
		int bin_bytes; /* shared memory of one bin */
		int together; /* one of the fastest kernels takes all operators at once, by the bins as they
						 are: it reads each column once */
	} GpuaggHistChoice;

	GpuaggCudaStatus gpuagg_hist_init(MonoidId op, void *states, int64_t nbins,
									  gpuagg_stream stream);
	GpuaggCudaStatus gpuagg_hist_choose(const GpuaggHist *hist, GpuaggHistChoice *choice);
	/*
	 * TILES is UNSUPPORTED where the bins of all operators together do not fit shared memory, for
	 * operators without a form there, second inputs, and sums of floats that are computed.  Bins
	 * are of kind RANGE, of no column for one bin in all; columns and filters start at a multiple
	 * of 16 bytes.
	 */
	/*
	 * Operators with a form in shared memory (hist_list.h) take the strategy chosen; the others
	 * change their states in the L2 cache in any case.
	 */
	GpuaggCudaStatus gpuagg_hist_update(const GpuaggHist *hist, void *workspace,
										size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * The bin of every row, as GPUAGG_BIN_INDEX reads it: -1 for rows left out.
	 */
	GpuaggCudaStatus gpuagg_hist_bins(const GpuaggBins *bins, int64_t nrows, int32_t *out,
									  GpuaggHistStatus *status, gpuagg_stream stream);

	/*
	 * Least and greatest non-NULL value of an integer column, into range[0] and
	 * range[1]; INT64_MAX and INT64_MIN if there is none.
	 */
	GpuaggCudaStatus gpuagg_key_range(const GpuaggColumn *column, int64_t nrows, int64_t *range,
									  gpuagg_stream stream);

	/*
	 * ---- runs of rows that lie together --------------------------------------
	 *
	 * Rows of a key's values in order, or sorted, are runs: one state each, without a table or
	 * atomics.  For operators that commute, over any number of columns with one plan of the runs;
	 * NULLs and filters as in histograms.
	 */

	/*
	 * The number of runs that begin before each word of 32 rows, and behind the last: words + 1
	 * entries.  heads: a bit for each row, set where a run begins.
	 */
	GpuaggCudaStatus gpuagg_runs_number(const uint32_t *heads, int64_t words, int32_t *before,
										void *workspace, size_t *workspace_bytes,
										gpuagg_stream stream);

	typedef struct GpuaggRuns
	{
		int64_t nrows;         /* below 2^31 */
		const uint32_t *heads; /* bits behind the last row are 0 */
		const int32_t *before; /* as gpuagg_runs_number has them; rows before the first head belong
								  to run before[0] - 1 */
		const uint32_t *order; /* row i is row order[i] of the columns; or NULL */
		const int32_t *bins;   /* run r has state bins[r], no two the same; NULL: r */
		const uint8_t *filter; /* of the columns' rows: 0 leaves a row out; or NULL */
	} GpuaggRuns;

	/*
	 * Rows in the order of their keys, integers of 4 or 8 bytes that are below 2^bits, or of any
	 * value where these are all their bits: the sorted keys, and the row of each.  Fewer than 2^31
	 * rows.
	 */
	GpuaggCudaStatus gpuagg_runs_sort(int key_bytes, const void *keys, int64_t nrows, int bits,
									  void *sorted, uint32_t *order, void *workspace,
									  size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * states[run] = combine(states[run], rows of the run).  Columns and filters start at a multiple
	 * of 16 bytes.  Types are those of histograms; error bits are or'ed into *errors.
	 */
	GpuaggCudaStatus gpuagg_runs_update(const GpuaggRuns *runs, const GpuaggSlot *slot,
										uint32_t *errors, void *workspace, size_t *workspace_bytes,
										gpuagg_stream stream);

/*
 * ---- hash group-by ------------------------------------------------------
 *
 * Keys of 4, 8 or 16 bytes, compared as bytes, to dense bins 0, 1, 2, … in
 * no fixed order.  The table is three pieces of caller's memory: slots, one
 * copy of each key in bin order, and the counters.
 *
 * Every row gets its bin, GPUAGG_GROUP_FILTERED if the filter leaves it out, or
 * -1 if its key is new and the table is full.
 * gpuagg_group_outcome then says GPUAGG_CUDA_FULL: move to a larger table with
 * gpuagg_group_grow, and look the same batch up again with retry set, which
 * touches only those rows.  Bins never change, so no row is lost or counted
 * twice if the histogram is updated after the last retry.
 *
 * Keys are hashed with the table's seed (gpu_hash.h).  It should be random where keys come
 * from whoever may wish to make them collide.  A search is bounded: a row that has passed too many
 * slots gets -1, too, and gpuagg_group_outcome says GPUAGG_CUDA_DEGENERATE.  Random
 * hashes never come to that.  The table is as it was; move to one of another seed with
 * gpuagg_group_grow (the capacity may stay the same), and retry.
 */
#define GPUAGG_GROUP_FILTERED (-2)

	typedef struct GpuaggGroupTable
	{
		int key_bytes;    /* 4, 8 or 16 */
		int64_t capacity; /* groups; bins are below this */
		uint64_t seed;    /* of the hash; the same in all calls for this table */
		void *slots;      /* gpuagg_group_slot_bytes(), any content */
		void *keys;       /* capacity * key_bytes */
		struct GpuaggGroupCounters *counters;
	} GpuaggGroupTable;

	typedef struct GpuaggGroupCounters
	{
		unsigned long long groups;  /* bins given out, also those beyond capacity */
		unsigned long long pending; /* rows that got no bin in the last lookup */
		unsigned long long
			lost; /* searches that were given up since init or grow; not 0: DEGENERATE */
	} GpuaggGroupCounters;

	size_t gpuagg_group_slot_bytes(int key_bytes, int64_t capacity);
	GpuaggCudaStatus gpuagg_group_init(const GpuaggGroupTable *table, gpuagg_stream stream);
	GpuaggCudaStatus gpuagg_group_lookup(const GpuaggGroupTable *table, const void *keys,
										 const uint8_t *filter, int64_t nrows, int retry,
										 int32_t *bins, gpuagg_stream stream);
	/*
	 * FULL, DEGENERATE or OK, of counters that the caller has copied from the device.  *groups is
	 * exact unless FULL.
	 */
	static inline GpuaggCudaStatus
	gpuagg_group_outcome(const GpuaggGroupTable *table, const GpuaggGroupCounters *counters,
						 int64_t *groups)
	{
		*groups = counters->groups < (unsigned long long) table->capacity ?
			(int64_t) counters->groups :
			table->capacity;
		return counters->lost ? GPUAGG_CUDA_DEGENERATE :
			counters->pending ? GPUAGG_CUDA_FULL :
								GPUAGG_CUDA_OK;
	}
	/*
	 * Copies a table into an empty one, no smaller, maybe of another seed, which must be secret
	 * from users that choose keys; `to` needs no gpuagg_group_init.
	 */
	GpuaggCudaStatus gpuagg_group_grow(const GpuaggGroupTable *from, const GpuaggGroupTable *to,
									   gpuagg_stream stream);

#ifdef __cplusplus
}
#endif

#endif /* GPUAGG_CUDA_H */
