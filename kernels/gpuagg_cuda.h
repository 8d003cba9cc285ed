/*
 * gpuagg_cuda.h
 *	  The C interface of the CUDA library: segmented reductions, generalized histograms, runs and
 *	  hash tables.
 *
 * The library depends on neither PostgreSQL nor the server.  The server, the unit tests and the
 * benchmarks call it.
 *
 * Conventions of all functions, unless a comment says otherwise:
 *	- Pointers are device pointers.  Sizes are 64-bit counts of elements.  Segmented reductions,
 *	  gpuagg_cuda_segments_from_bins and gpuagg_cuda_gather take up to 2^33 elements.  Sorts,
 *	  histograms and hash tables take fewer than 2^32 rows in one call, and return INVALID or
 *	  UNSUPPORTED above that.  Histograms and hash tables accumulate over calls.
 *	- Arrays are aligned as their element type, states and columns of 16-byte values to 16 bytes.
 *	  Unaligned states are INVALID.  Workspaces, and the slots and keys of tables, are aligned to
 *	  256 bytes, as cudaMalloc returns them.
 *	- Work is queued on `stream`.  No function synchronizes or allocates memory.
 *	- The caller provides scratch memory.  A call with workspace = NULL only returns its size in
 *	  *workspace_bytes.  The next call passes memory of at least that size.
 *	- Functions return GPUAGG_CUDA_OK or the first error.  gpuagg_cuda_last_error() returns the text
 *	  of the last CUDA error of this thread (call, file, line), gpuagg_cuda_last_code() its code.
 *	  The device stays usable after failed allocations and after launches that do not fit.
 *	- The same input on the same device gives the same bits on every run, except where a comment
 *	  says that rows are combined in no fixed order.
 *
 * Operators are named by MonoidId (monoid.h).  Inputs and states are arrays of the types in the
 * monoid list.
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
		GPUAGG_CUDA_INVALID,     /* an argument is invalid */
		GPUAGG_CUDA_UNSUPPORTED, /* there is no kernel for this operator, type or size */
		GPUAGG_CUDA_WORKSPACE,   /* workspace_bytes is too small */
		GPUAGG_CUDA_FULL,        /* a hash table is full; see gpuagg_group_outcome */
		GPUAGG_CUDA_ERROR,       /* a CUDA call failed; see gpuagg_cuda_last_error */
		GPUAGG_CUDA_DEGENERATE   /* too many keys collide under a table's seed; see
									gpuagg_group_outcome */
	} GpuaggCudaStatus;

	/*
	 * How the values of a column are stored.  NATIVE is the operator's own input type.  Kernels
	 * widen narrower numbers as they read them, so that no widened copy of the column is needed.
	 * Each section below says which types it takes.
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

	/* Return the text of this thread's last CUDA error, and its cudaError_t: 0 if there is none. */
	const char *gpuagg_cuda_last_error(void);
	int gpuagg_cuda_last_code(void);

	/* ---- segmented reductions ---------------------------------------------- */

	/*
	 * Segments of a column in CSR form.  Segment s has the elements from offsets[s] up to, but not
	 * including, offsets[s + 1].  Segments may be empty, and offsets[0] may be above 0.
	 */
	typedef struct GpuaggSegments
	{
		int64_t nvalues; /* offsets[nsegments] - offsets[0] */
		int64_t nsegments;
		const int64_t *offsets; /* nsegments + 1 entries */
	} GpuaggSegments;

	/*
	 * Reduces each segment, in the order of its elements, to states[s].  The state of an empty
	 * segment is the identity.  Returns UNSUPPORTED for operators that commute: runs and histograms
	 * reduce those.  Values have the operator's input type.  These operators raise no errors.  The
	 * order of all combinations depends only on the device and on the sizes.
	 */
	GpuaggCudaStatus gpuagg_cuda_segmented_reduce(const GpuaggSegments *segments, MonoidId op,
												  const void *values, void *states, void *workspace,
												  size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * Finds the segments of equal neighbouring bins: rows must be grouped by bin, but need not be
	 * sorted.  `offsets` has room for n + 1 entries.  The kernels write the offsets, and the number
	 * of segments to *nsegments_device.  n is at least 1.
	 */
	GpuaggCudaStatus gpuagg_cuda_segments_from_bins(const int32_t *bins, int64_t n,
													int64_t *offsets, int64_t *nsegments_device,
													void *workspace, size_t *workspace_bytes,
													gpuagg_stream stream);

	/*
	 * Copies rows: out[i] = in[index[i]] for i below n.  row_size is 1, 4 or a multiple of 8 bytes;
	 * other sizes are INVALID.  With the offsets of segments as the index, and bins as rows, the
	 * result is the bin of each segment.
	 */
	GpuaggCudaStatus gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index,
										int64_t n, void *out, gpuagg_stream stream);

#define GPUAGG_MAX_SORT_WORDS 24

	/* A sort key: a column of signed integers. */
	typedef struct GpuaggSortWord
	{
		const void *values;
		GpuaggValueType type; /* I8 to I64 */
		int bits;             /* values less `min` are below 2^bits; 64: any values */
		int descending;
		int64_t min;
	} GpuaggSortWord;

	/*
	 * Writes the stable permutation that sorts n rows, fewer than 2^32, by words[0], then words[1]
	 * and so on.  It orders the input of operators that do not commute.  Words that together have
	 * up to 64 bits are sorted in one pass, so exact ranges save passes.
	 */
	GpuaggCudaStatus gpuagg_cuda_sort_rows(int64_t n, int nwords, const GpuaggSortWord *words,
										   int64_t *permutation, void *workspace,
										   size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * Copies those entries of a permutation whose row has keep[row] != 0, in their order.
	 * `selected` has room for n entries; the kernels write their number to *nselected_device.
	 */
	GpuaggCudaStatus gpuagg_cuda_select_rows(int64_t n, const int64_t *permutation,
											 const uint8_t *keep, int64_t *selected,
											 int64_t *nselected_device, void *workspace,
											 size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * ---- generalized histograms --------------------------------------------
	 *
	 * For every row and every operator: state[bin(row)] = combine(state[bin(row)],
	 * lift(value(row))).
	 *
	 * States are in the caller's arrays, one array for each operator, of the monoid's state type.
	 * They accumulate over any number of calls: gpuagg_hist_init once, then gpuagg_hist_update for
	 * each batch.  After each update the arrays have complete states.  To add bins, copy the arrays
	 * to larger ones and initialize the new end.
	 *
	 * Determinism: results of integers are exact.  Sums of floats, and the moments of variances and
	 * regressions, are accumulated exactly in fixed point, in a window of up to 160 bits that a
	 * sample of the batch places.  They are rounded once for each batch, so they are the same on
	 * every run.  Values outside the window are combined one by one in no fixed order: infinities,
	 * NaN, and values more than about 5 decades below the sampled maximum for sums into many bins,
	 * 11 for fewer bins, 15 for moments.  An EXCHANGE also combines rows in no fixed order if many
	 * rows have bins of few multiprocessors and its sample did not show that.
	 */

	/* A column in Arrow's physical layout. */
	typedef struct GpuaggColumn
	{
		const void *values;
		const uint8_t *validity; /* bits, least significant first, 1 = not NULL; NULL: all valid */
		GpuaggValueType type;    /* keys are not NATIVE */
		uint16_t computed;       /* 1: a program computes the column (only in TILES); values and
									validity are NULL then */
		uint16_t operand;        /* the operand that has it then */
	} GpuaggColumn;

	typedef enum GpuaggBinKind
	{
		GPUAGG_BIN_INDEX, /* column[0] has the bins, int32; negative: skip the row.  values = NULL:
							 bin 0 for all rows */
		GPUAGG_BIN_RANGE  /* bins are made of integer keys with known ranges; the bin of the last
							 column changes fastest */
	} GpuaggBinKind;

#define GPUAGG_MAX_KEYS 8
#define GPUAGG_MAX_SLOTS 16

	/*
	 * How a row gets its bin.  RANGE: key c contributes key - min[c].  If null_bin[c] is set, a
	 * NULL contributes extent[c] - 1, and extent[c] is one more than the number of keys.  Other
	 * rows with a NULL are left out, as are rows that fail the filter, and rows with a key out of
	 * range.  The last ones are counted in GpuaggHistStatus.outside.
	 */
	typedef struct GpuaggBins
	{
		GpuaggBinKind kind;
		int ncolumns;
		GpuaggColumn column[GPUAGG_MAX_KEYS];
		int64_t min[GPUAGG_MAX_KEYS];
		int64_t extent[GPUAGG_MAX_KEYS];
		uint8_t null_bin[GPUAGG_MAX_KEYS];
		const uint8_t *filter; /* one byte a row, 0: leave the row out; or NULL */
		int64_t nbins;         /* size of the state arrays, below 2^31 */
	} GpuaggBins;

	/*
	 * One operator and its inputs.  x is the input.  y is the second input: Y of a regression (x is
	 * X), or the payload of argmax and argmin (x is the key).  Integer columns may be narrower than
	 * the monoid's input, and float4 may be the input of float8.  Argmax and argmin replace a float
	 * by its gpuagg_f64_code(), and a key of -0 by 0.  A row with a NULL in x or y is left out.
	 * COUNT with x.values = NULL counts rows; x.validity still leaves rows out.
	 */
	typedef struct GpuaggSlot
	{
		MonoidId op;
		GpuaggColumn x;
		GpuaggColumn y;
		const uint8_t *filter;    /* as in GpuaggBins, for this operator only; or NULL */
		uint16_t filter_computed; /* 1: a program computes the filter, and NULL counts as false */
		uint16_t filter_operand;  /* the operand that has it then */
		void *states;
	} GpuaggSlot;

	/* In device memory; the caller clears it before the first batch. */
	typedef struct GpuaggHistStatus
	{
		unsigned long long outside;        /* rows with a key outside its range */
		uint32_t errors[GPUAGG_MAX_SLOTS]; /* MonoidError bits of each slot */
	} GpuaggHistStatus;

	typedef enum GpuaggHistStrategy
	{
		GPUAGG_HIST_AUTO,
		GPUAGG_HIST_SHARED,    /* shared memory: M sub-histograms, S passes */
		GPUAGG_HIST_PARTITION, /* rows are partitioned by bin range, then SHARED */
		GPUAGG_HIST_GLOBAL,    /* M copies of the states, changed in the L2 cache */
		GPUAGG_HIST_EXCHANGE, /* each multiprocessor has some of the bins in its shared memory; rows
								  are exchanged through the L2 cache */
		GPUAGG_HIST_TILES /* shared memory, a program and all operators in one pass; AUTO does not
							 choose it */
	} GpuaggHistStrategy;

/*
 * Operands of the program of a call in TILES.  An operand is one of:
 *	- a temporary, below GpuaggHist.temporaries;
 *	- GPUAGG_INPUT plus the number of an input; there is no instruction VECTOR_LOAD;
 *	- GPUAGG_LAST: the result of the instruction before, whose register is VECTOR_NONE.  After the
 *	  last instruction, it is that instruction's result.
 * Instructions with one operand have VECTOR_NONE as operand b.
 *
 * A row counts if the filter is true, and all results whose operation has the bit GPUAGG_CONDITION.
 * Conditions are tested in their order, the filter last.  The first one that is not true decides:
 * if it is undetermined, so is the row.
 */
#define GPUAGG_LAST 0x7fff
#define GPUAGG_INPUT 0x4000
#define GPUAGG_CONDITION 0x8000
#define GPUAGG_MAX_INPUTS 32
#define GPUAGG_MAX_TABLES 32
#define GPUAGG_MAX_CHECKS 48

	/*
	 * An operand that must be determined.  A row is undetermined if the operand is
	 * VECTOR_UNDETERMINED, or if it is NULL and not nullable.
	 */
	typedef struct GpuaggCheck
	{
		uint16_t operand;
		uint16_t nullable;
	} GpuaggCheck;

	/* What a call in TILES computes from its input columns. */
	typedef struct GpuaggProgram
	{
		VectorProgram steps;
		GpuaggColumn input[GPUAGG_MAX_INPUTS];
		VectorTable tables[GPUAGG_MAX_TABLES];   /* tables of VECTOR_LOOKUP */
		const uint8_t *cells[GPUAGG_MAX_TABLES]; /* cells of each table, in device memory */
		unsigned long long *undetermined; /* the kernel adds the number of undetermined rows */
		int nchecks;
		GpuaggCheck check[GPUAGG_MAX_CHECKS];
	} GpuaggProgram;

	struct GpuaggKeyParts; /* rows that were partitioned by key, see below */

	typedef struct GpuaggHist
	{
		GpuaggBins bins;
		int nslots;
		GpuaggSlot slot[GPUAGG_MAX_SLOTS];
		int64_t nrows; /* below 2^32 in one call */
		GpuaggHistStatus *status;
		GpuaggHistStrategy strategy; /* AUTO: chosen by the model in hist_model.h */
		/*
		 * The rows were partitioned by key and their groups have bins; of `bins` only nbins is
		 * read, which exceeds all of these.  Returns UNSUPPORTED for operators without a form in
		 * shared memory, and if the bins of a partition do not fit there.  NULL: they were not.
		 */
		const struct GpuaggKeyParts *parts;
		/* only in TILES: */
		const GpuaggProgram *program; /* in device memory; or NULL */
		const VectorProgram *steps; /* its steps in host memory, to choose a faster kernel that has
										 only their operations; NULL: unknown */
		int temporaries;            /* temporaries of the program */
		int input_bytes;   /* bytes of a row's inputs, about; shared memory to read them ahead */
		int64_t input_row; /* the call's first row in the inputs: a multiple of 64 below 2^31 */
	} GpuaggHist;

	/*
	 * The choice of AUTO, for EXPLAIN.  It describes the operators that have a form in shared
	 * memory, or all operators if none has one.
	 */
	typedef struct GpuaggHistChoice
	{
		GpuaggHistStrategy strategy;
		int copies;    /* M: sub-histograms of a block, or copies of GLOBAL, if all bins are equally
						  frequent (race factor 1).  The update samples how often rows of a warp
						  have one bin, and makes more copies if that helps and there is room */
		int passes;    /* S, or the number of partitions */
		int bin_bytes; /* bytes of one bin in shared memory */
		int together; /* one kernel of the common shapes (hist_fast.cuh) takes all operators and the
						  bins as they are, so that each column is read once */
	} GpuaggHistChoice;

	/* Writes the operator's identity to nbins states. */
	GpuaggCudaStatus gpuagg_hist_init(MonoidId op, void *states, int64_t nbins,
									  gpuagg_stream stream);
	/* Fills in *choice.  Reads no device memory and queues nothing. */
	GpuaggCudaStatus gpuagg_hist_choose(const GpuaggHist *hist, GpuaggHistChoice *choice);
	/*
	 * Adds a batch of rows to the states.  The strategy applies to operators with a form in shared
	 * memory (hist_list.h); the other operators always change their states in the L2 cache.
	 *
	 * TILES returns UNSUPPORTED if the bins of all operators do not fit into shared memory
	 * together, and for operators without a form there, for second inputs, and for sums of computed
	 * floats.  Its bins have the kind RANGE, with no column if there is only one bin.  Its columns
	 * and filters start at a multiple of 16 bytes.
	 */
	GpuaggCudaStatus gpuagg_hist_update(const GpuaggHist *hist, void *workspace,
										size_t *workspace_bytes, gpuagg_stream stream);

	/* Writes the bin of every row for GPUAGG_BIN_INDEX, and -1 for rows that are left out. */
	GpuaggCudaStatus gpuagg_hist_bins(const GpuaggBins *bins, int64_t nrows, int32_t *out,
									  GpuaggHistStatus *status, gpuagg_stream stream);

	/*
	 * Writes the least and the greatest value of an integer column to range[0] and range[1].
	 * Without values that are not NULL, these are INT64_MAX and INT64_MIN.
	 */
	GpuaggCudaStatus gpuagg_key_range(const GpuaggColumn *column, int64_t nrows, int64_t *range,
									  gpuagg_stream stream);

	/*
	 * ---- runs --------------------------------------------------------------
	 *
	 * A run is rows in a row that have the same key.  Rows in the order of their keys are runs,
	 * which are reduced to one state each without a hash table and without atomics.  Operators must
	 * commute.  Any number of operators and columns can use one set of runs.  NULLs and filters
	 * leave rows out as in histograms.
	 */

	/*
	 * Counts the runs that begin before each word of 32 rows.  `heads` has a bit for each row,
	 * which is set where a run begins.  `before` has words + 1 entries; the last one is the number
	 * of runs.
	 */
	GpuaggCudaStatus gpuagg_runs_number(const uint32_t *heads, int64_t words, int32_t *before,
										void *workspace, size_t *workspace_bytes,
										gpuagg_stream stream);

	typedef struct GpuaggRuns
	{
		int64_t nrows;         /* below 2^31 */
		const uint32_t *heads; /* as for gpuagg_runs_number; bits past the last row are 0 */
		const int32_t *before; /* as gpuagg_runs_number writes it; rows before the first head belong
								  to run before[0] - 1 */
		const uint32_t *order; /* row i is row order[i] of the columns; NULL: row i */
		const int32_t *bins;   /* run r changes the state bins[r]; no two are equal.  NULL: r */
		const uint8_t *filter; /* by the rows of the columns: 0 leaves a row out; or NULL */
	} GpuaggRuns;

	/*
	 * Sorts keys of 4 or 8 bytes and writes the sorted keys, and the row of each.  Keys are
	 * integers below 2^bits, or any integers if `bits` is the whole width of a key.  Takes fewer
	 * than 2^31 rows.
	 */
	GpuaggCudaStatus gpuagg_runs_sort(int key_bytes, const void *keys, int64_t nrows, int bits,
									  void *sorted, uint32_t *order, void *workspace,
									  size_t *workspace_bytes, gpuagg_stream stream);

	/*
	 * Combines the rows of each run with its state.  Columns and filters start at a multiple of 16
	 * bytes.  Column types are those of histograms.  The kernels set error bits (MonoidError) in
	 * *errors.
	 */
	GpuaggCudaStatus gpuagg_runs_update(const GpuaggRuns *runs, const GpuaggSlot *slot,
										uint32_t *errors, void *workspace, size_t *workspace_bytes,
										gpuagg_stream stream);

/*
 * ---- hash group-by ------------------------------------------------------
 *
 * A table gives each key a dense bin: 0, 1, 2 and so on, in no fixed order.  Keys have 4, 8 or 16
 * bytes and are compared as bytes.  The caller provides the memory of a table: the slots, a copy of
 * each key in the order of bins, and the counters.
 *
 * A lookup writes the bin of each row, or GPUAGG_GROUP_FILTERED if the filter leaves the row out,
 * or -1 if the key is new and the table is full.  gpuagg_group_outcome returns GPUAGG_CUDA_FULL
 * then.  The caller moves the table to a larger one (gpuagg_group_grow) and looks up the same batch
 * with `retry` set, which changes only the rows that have -1.  Bins never change.  So if the
 * histogram is updated after the last retry, no row is lost or counted twice.
 *
 * Keys are hashed with the table's seed (gpu_hash.h).  The seed should be random and secret if
 * users choose the keys, or they could make many keys collide.  The length of a search is bounded.
 * A row whose search is too long gets -1, too, and gpuagg_group_outcome returns
 * GPUAGG_CUDA_DEGENERATE.  This does not happen with random hashes.  The table remains valid: move
 * it to one with another seed (gpuagg_group_grow; the capacity may stay the same) and retry.
 */
#define GPUAGG_GROUP_FILTERED (-2)

	typedef struct GpuaggGroupTable
	{
		int key_bytes;    /* 4, 8 or 16 */
		int64_t capacity; /* most groups; bins are below this */
		uint64_t seed;    /* seed of the hash; the same in all calls for this table */
		void *slots;      /* gpuagg_group_slot_bytes() bytes; need not be cleared */
		void *keys;       /* capacity * key_bytes bytes: the key of each bin */
		struct GpuaggGroupCounters *counters;
	} GpuaggGroupTable;

	typedef struct GpuaggGroupCounters
	{
		unsigned long long groups;  /* bins given to keys; may exceed the capacity */
		unsigned long long pending; /* rows that got no bin in the last lookup */
		unsigned long long lost;    /* searches that were too long, since init or grow */
	} GpuaggGroupCounters;

	/* Returns the bytes of the slots of a table. */
	size_t gpuagg_group_slot_bytes(int key_bytes, int64_t capacity);
	/* Clears the slots and the counters. */
	GpuaggCudaStatus gpuagg_group_init(const GpuaggGroupTable *table, gpuagg_stream stream);
	/*
	 * Writes the bin of each row, and gives bins to new keys.  retry: only rows whose bin is -1 are
	 * looked up.
	 */
	GpuaggCudaStatus gpuagg_group_lookup(const GpuaggGroupTable *table, const void *keys,
										 const uint8_t *filter, int64_t nrows, int retry,
										 int32_t *bins, gpuagg_stream stream);
	/*
	 * Returns the outcome of the last lookup, OK, FULL or DEGENERATE, by counters that the caller
	 * copied from the device.  Sets *groups to the number of groups, at most the capacity.
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
	 * Copies a table to another one with the same or a larger capacity, and any seed.  `to` needs
	 * no gpuagg_group_init.
	 */
	GpuaggCudaStatus gpuagg_group_grow(const GpuaggGroupTable *from, const GpuaggGroupTable *to,
									   gpuagg_stream stream);

/*
 * ---- group-by of very many groups ---------------------------------------
 *
 * Rows are moved to partitions by the hash of their keys, with the columns that operators read.  A
 * block numbers the groups of a partition in shared memory.  Then only groups are looked up, not
 * rows, and a histogram adds the rows of each partition in shared memory:
 *
 *	gpuagg_group_partition	moves the rows and numbers the groups
 *	(the caller reads *counts: there are counts->groups groups, and keys has their keys)
 *	gpuagg_group_lookup of keys[], with the result in bins[], as often as the table is full; or,
 *	if the table has no groups, gpuagg_group_adopt
 *	gpuagg_hist_update	for any number of calls, with GpuaggHist.parts
 *
 * The same key may not be counted twice in counts->groups: each key of the rows is in keys[] once.
 * If some partition has more groups than shared memory, counts->overflows is not 0 and nothing else
 * is valid.  That happens only if there are more groups than `groups` said.
 */
#define GPUAGG_MAX_MOVED 8

	typedef struct GpuaggKeyCounts
	{
		unsigned long long groups;    /* different keys */
		unsigned long long overflows; /* partitions with too many groups */
	} GpuaggKeyCounts;

	typedef struct GpuaggKeyParts
	{
		/* the caller sets these: */
		int64_t nrows;  /* below 2^32 */
		int64_t groups; /* about how many different keys there are, or more */
		int nmoved;     /* columns that operators read, without NULLs and filters */
		GpuaggColumn moved[GPUAGG_MAX_MOVED]; /* not NATIVE */
		int numbers; /* move numbers of rows instead of columns, for any columns and filters */
		/* gpuagg_group_partition sets these; all arrays are in its workspace: */
		GpuaggKeyCounts *counts;
		void *keys;        /* [group] */
		int32_t *bins;     /* [group]; the caller fills it */
		int dense;         /* gpuagg_group_adopt was called: the bins are the numbers of groups */
		int nparts;        /* partitions */
		int most_groups;   /* groups of a partition, at most */
		int most_splits;   /* split partitions */
		uint32_t *first;   /* [partition] first group */
		uint32_t *ngroups; /* [partition] groups */
		uint16_t *number;  /* [moved row] number of its group within the partition */
		uint32_t *row;     /* [moved row] number of the row; or NULL */
		void *to[GPUAGG_MAX_MOVED]; /* [moved row] columns */
		void *items;                /* work items, and their counters */
		uint32_t *item_counters;
		uint32_t *split_done;
		uint32_t *split_items;
	} GpuaggKeyParts;

	/*
	 * Moves rows to partitions, without those that the filter leaves out, and numbers their groups.
	 * Of the table only key_bytes and seed are read.  Returns UNSUPPORTED for too many groups, and
	 * for columns and keys that are too wide for the shared memory of the device.
	 */
	GpuaggCudaStatus gpuagg_group_partition(const GpuaggGroupTable *table, const void *keys,
											const uint8_t *filter, GpuaggKeyParts *parts,
											void *workspace, size_t *workspace_bytes,
											gpuagg_stream stream);
	/*
	 * Makes the groups of *parts, counts->groups in number, the groups of an empty table with room
	 * for them.  Its slots stay empty: gpuagg_group_fill must come before a lookup or growth.
	 */
	GpuaggCudaStatus gpuagg_group_adopt(const GpuaggGroupTable *table, GpuaggKeyParts *parts,
										int64_t groups, gpuagg_stream stream);
	/* Clears the slots of a table and fills them with its groups. */
	GpuaggCudaStatus gpuagg_group_fill(const GpuaggGroupTable *table, gpuagg_stream stream);

#ifdef __cplusplus
}
#endif

#endif /* GPUAGG_CUDA_H */
