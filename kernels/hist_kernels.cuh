/*
 * hist_kernels.cuh
 *	  The host interface between hist.cu, which plans a call, and the files with kernels: launches,
 *	  tests of which calls a kernel supports, and plans of partitions and exchanges.
 *
 * Launches queue kernels on the stream and return the first error. They allocate nothing and do not
 * synchronize. All device memory belongs to the caller: its columns and states, and the workspace
 * that hist.cu divides.
 */
#ifndef GPUAGG_HIST_KERNELS_CUH
#define GPUAGG_HIST_KERNELS_CUH

#include "hist.cuh"
#include "hist_model.h"

/* Bytes of shared memory of a block that are left for variables that kernels declare. */
#define SHARED_RESERVE 1024

/*
 * Clears limbs, locks and the words at args.zero, chooses the windows of floats, and samples how
 * many copies are used. Must come before the kernels that add rows.
 */
GpuaggCudaStatus hist_launch_prepare(const HistArgs &args, const DeviceFacts &facts,
									 cudaStream_t stream);
/* Adds all rows in shared memory and folds limbs into states. */
GpuaggCudaStatus hist_launch_shared(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);
/* Adds the rows that hist_launch_partition_rows has moved, and combines the results with states. */
GpuaggCudaStatus hist_launch_partitioned(const HistArgs &args, const DeviceFacts &facts,
										 cudaStream_t stream);
/* Returns the shared memory that a tile kernel needs in addition to the bins, in bytes. */
size_t hist_tile_bytes(const HistArgs &args);
/*
 * Returns the fastest TileKernel that supports all slots and all operations of `steps`. NULL: the
 * operations are unknown.
 */
int hist_choose_tiles(const HistArgs &args, const VectorProgram *steps);
/* Runs the program of args, adds its results in shared memory, and folds limbs into states. */
GpuaggCudaStatus hist_launch_tiles(const HistArgs &args, const DeviceFacts &facts,
								   cudaStream_t stream);
/* Combines limbs with states. */
GpuaggCudaStatus hist_launch_fold(const HistArgs &args, const DeviceFacts &facts,
								  cudaStream_t stream);
/*
 * Adds all rows to states in the L2 cache: slots without a form, and more bins than partitions
 * take. Includes the preparation, and the copies of states.
 */
GpuaggCudaStatus hist_launch_global(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);
/* Adds all rows of ARGMAX and ARGMIN slots (hist_argmax.cu). */
GpuaggCudaStatus hist_launch_argmax(const HistArgs &args, const HistModel &model,
									const DeviceFacts &facts, cudaStream_t stream);
/*
 * Initializes the copies of states. Comes after the preparation and before kernels that add rows.
 * Merging comes after all other changes of the states.
 */
GpuaggCudaStatus hist_launch_init_copies(const HistArgs &args, const DeviceFacts &facts,
										 cudaStream_t stream);
GpuaggCudaStatus hist_launch_merge_copies(const HistArgs &args, const DeviceFacts &facts,
										  cudaStream_t stream);

/*
 * Returns INVALID or UNSUPPORTED for bins that no kernel can use, or that have fewer than
 * least_columns key columns.
 */
GpuaggCudaStatus hist_check_bins(const GpuaggBins &bins, int least_columns = 1);

/*
 * Returns whether the kernels for common shapes support the call (hist_fast.cu). hist_launch_fast
 * sets *taken to the same, and launches one of them if they do.
 */
bool hist_fast_supports(const HistArgs &args);
GpuaggCudaStatus hist_launch_fast(const HistArgs &args, const DeviceFacts &facts,
								  cudaStream_t stream, bool *taken);
/* The same for a sum of floats in chains, with a COUNT and a sum of integers (hist_sums.cu). */
bool hist_sums_support(const HistArgs &args);
GpuaggCudaStatus hist_launch_sums(const HistArgs &args, const DeviceFacts &facts,
								  cudaStream_t stream, bool *taken);
/*
 * Returns how many words HistArgs.out_of_window has for the call: 0 unless hist_deviations.cu
 * supports the call.
 */
size_t hist_deviation_mark_words(const HistArgs &args);
/*
 * Counts rows in bytes, for a single COUNT of a simple column of bins (hist_counts.cu). `bytes` has
 * room for pass_bins bytes for each of hist_byte_count_blocks() blocks.
 */
int hist_byte_count_blocks(u32 nrows, const DeviceFacts &facts);
GpuaggCudaStatus hist_launch_byte_counts(const HistArgs &args, u32 *bytes, const DeviceFacts &facts,
										 cudaStream_t stream);
/*
 * Returns whether the kernels for counts and sums of int32 support the call (hist_narrow.cu). They
 * change states directly and need neither limbs nor a fold.
 */
bool hist_narrow_supports(const HistArgs &args);
GpuaggCudaStatus hist_launch_narrow(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);

/*
 * Returns whether key c of kind RANGE is an int32 column without NULLs whose range lies within 32
 * bits.
 */
static inline bool
hist_key_is_plain(const GpuaggBins &b, int c)
{
	return b.column[c].type == GPUAGG_VALUE_I32 && b.column[c].values && !b.column[c].validity &&
		!b.null_bin[c] && b.min[c] >= INT32_MIN && b.min[c] <= INT32_MAX - (b.extent[c] - 1);
}

/*
 * Returns whether bins are simple: the bin of a row is an int32 column less a minimum, without a
 * filter and without NULLs.
 */
static inline bool
hist_bins_are_simple(const GpuaggBins &b)
{
	return !b.filter &&
		(b.kind == GPUAGG_BIN_INDEX ||
		 (b.kind == GPUAGG_BIN_RANGE && b.ncolumns == 1 && hist_key_is_plain(b, 0) &&
		  b.extent[0] == b.nbins));
}

/*
 * Returns whether bins are paired: they are made of two plain int32 keys, without a filter. Fast
 * kernels compute them.
 */
static inline bool
hist_bins_are_paired(const GpuaggBins &b)
{
	return !b.filter && b.kind == GPUAGG_BIN_RANGE && b.ncolumns == 2 && hist_key_is_plain(b, 0) &&
		hist_key_is_plain(b, 1) && b.extent[0] * b.extent[1] == b.nbins;
}

/* Returns bins of kind INDEX whose column is `bins`, an array in device memory. */
static inline GpuaggBins
make_index_bins(const int32_t *bins, int64_t nbins)
{
	GpuaggBins b = GpuaggBins();

	b.kind = GPUAGG_BIN_INDEX;
	b.ncolumns = 1;
	b.column[0].values = bins;
	b.column[0].type = GPUAGG_VALUE_I32;
	b.nbins = nbins;
	return b;
}

/* Simple bins, for kernels that support no others. */
struct SimpleBins
{
	const int32_t *column; /* NULL: all rows have bin 0 */
	u32 min;               /* the value of bin 0 */
	bool skip_negative;    /* negative bins are left out and not counted as out of range */
	u32 n;                 /* number of bins */
};

/* Returns b as SimpleBins. The result is valid only if hist_bins_are_simple(b). */
static inline SimpleBins
make_simple_bins(const GpuaggBins &b)
{
	bool index = b.kind == GPUAGG_BIN_INDEX;

	return {(const int32_t *) b.column[0].values, index ? 0 : (u32) (int32_t) b.min[0], index,
			(u32) b.nbins};
}

/* Paired bins, for kernels. The first key is the outer one. */
struct PairedKeys
{
	const int32_t *column[2];
	u32 min[2];
	u32 extent[2];

	/* Returns the bin of two keys, or ~0 if a key is out of its range. */
	__device__ __forceinline__ u32
	bin(u32 outer, u32 inner) const
	{
		outer -= min[0];
		inner -= min[1];
		return outer < extent[0] && inner < extent[1] ? outer * extent[1] + inner : ~0u;
	}
};

/* Returns the keys of b as PairedKeys; hist_bins_are_paired(b) must hold. */
static inline PairedKeys
make_paired_keys(const GpuaggBins &b)
{
	PairedKeys keys;

	for (int c = 0; c < 2; c++)
	{
		keys.column[c] = (const int32_t *) b.column[c].values;
		keys.min[c] = (u32) (int32_t) b.min[c];
		keys.extent[c] = (u32) b.extent[c];
	}
	return keys;
}

/* Columns that a partition moves. */
#define PART_MAX_COLUMNS 8
struct PartColumns
{
	int n;
	int bytes[PART_MAX_COLUMNS]; /* width of a value */
	const void *from[PART_MAX_COLUMNS];
	void *to[PART_MAX_COLUMNS]; /* [row], in the workspace */
};

/* Returns the width of all columns if it is 4 or 8, or there are none; 0 for any other widths. */
static inline int
part_common_width(const PartColumns &columns)
{
	int width = columns.n ? columns.bytes[0] : 4;

	for (int c = 1; c < columns.n; c++)
		if (columns.bytes[c] != width)
			width = 0;
	return width == 4 || width == 8 ? width : 0;
}

/*
 * One step of a partition of rows by bin range, and its memory in the workspace. Partition p has
 * the bins from p << shift up to (p + 1) << shift. Arrays are in device memory.
 */
struct PartPlan
{
	u32 parts;     /* number of partitions */
	u32 part_bins; /* bins of a partition: 1 << shift */
	int shift;
	u32 max_item_rows;   /* a partition with more rows is split */
	u32 split_item_rows; /* rows of a work item of a split partition, at most */
	u32 max_items;       /* room for work items */
	u32 max_splits;      /* room for split partitions */
	u32 *start;          /* [partition] its number of rows, then its first row */
	u32 *cursor;         /* [partition] where the next rows are appended */
	void *bin;       /* [row] bin as int32, or, if narrow, number within the partition as uint16 */
	bool narrow;     /* the step is the last one, and `bin` is uint16 */
	u32 *row;        /* [row] number of the row in the caller's columns; NULL if `moved` */
	const u32 *rows; /* number of rows to move, if not all rows of the call; or NULL */
	bool moved;      /* all columns that slots read are moved */
	PartColumns columns;
	int stage_bytes; /* width of the widest value that is moved */
	HistItem *item;  /* these four as in HistPartitioned */
	u32 *counter;
	u32 *split_done;
	u32 *split_items;
	u32 *split_part; /* [split partition] its number; NULL: not needed */
};

/*
 * Takes workspace for the work items of plan.parts partitions of nrows rows, and sets their limits
 * in plan.
 */
void hist_plan_items(int64_t nrows, const DeviceFacts &facts, PartPlan &plan, Workspace &ws);
/* Turns the numbers of rows in plan.start into first rows, and makes the work items. */
GpuaggCudaStatus hist_launch_plan_items(const PartPlan &plan, const DeviceFacts &facts,
										cudaStream_t stream);
/*
 * Clears the limbs of split partitions. If rows were partitioned by key, the work items may be
 * taken again then.
 */
GpuaggCudaStatus hist_launch_clear_splits(const HistArgs &args, const DeviceFacts &facts,
										  cudaStream_t stream);

/*
 * An exchange of rows through the L2 cache, and its memory in the workspace; see hist_exchange.cu.
 * Each multiprocessor owns some of the bins. Arrays are in device memory.
 */
struct HistExchange
{
	u32 owners;        /* number of owners: the multiprocessors; 0: there is no exchange */
	u32 magic;         /* multiplier for a division by the owners */
	u32 mask;          /* the largest 2^n - 1 below the owners */
	u32 local;         /* bins of an owner */
	u32 plane;         /* words of an owner's plane: its bins, and copies of hot bins */
	bool always;       /* exchange the rows whatever the sample says */
	uint16_t *key;     /* [queue entry] place in the owner's plane */
	u64 *value;        /* [queue entry] value */
	u32 *cursor;       /* [queue] rows in it */
	u32 *produced;     /* [round % EXCHANGE_ROUNDS] blocks that have queued their tiles */
	u32 *consumed;     /* [round % EXCHANGE_ROUNDS] blocks that have read their queues */
	u32 *ndeferred;    /* number of rows that a later kernel adds */
	u32 *deferred_bin; /* [deferred row] */
	u64 *deferred_value;
	u32 *hot;   /* [HOT_BINS] hot bins, or NO_BIN */
	u32 *taken; /* not 0: the rows are exchanged; 0: they are partitioned */
	u64 *limb;  /* limb planes of hot bins */
};

/*
 * Returns whether an exchange supports the call; its float sums must have three digits. always:
 * even if a partition would be faster.
 */
bool hist_exchange_supports(const HistArgs &args, const DeviceFacts &facts, bool always);
/* Returns how many words of workspace the preparation must clear for an exchange. */
size_t hist_exchange_zeroed_words(const HistArgs &args);
/*
 * Fills in `exchange` and takes its workspace. `zeros` are the words that the preparation clears;
 * NULL if only the size of the workspace is computed.
 */
void hist_exchange_plan(const HistArgs &args, const DeviceFacts &facts, bool always, u32 *zeros,
						const PartPlan &part, HistExchange &exchange, Workspace &ws);
/* Exchanges all rows, or none: then *exchange.taken is 0, and the rows must be partitioned. */
GpuaggCudaStatus hist_launch_exchange(const HistArgs &partitioned, const HistExchange &exchange,
									  const DeviceFacts &facts, cudaStream_t stream);

/*
 * Moves rows to partitions; bins must be simple. groups: the first of two steps, which moves rows
 * to groups of partitions. groups.parts == 0: one step is enough.
 */
GpuaggCudaStatus hist_launch_partition_rows(const HistArgs &args, const PartPlan &plan,
											const PartPlan &groups, const DeviceFacts &facts,
											cudaStream_t stream);

#endif /* GPUAGG_HIST_KERNELS_CUH */
