/*
 * hist_kernels.cuh
 *	  What hist.cu launches; see hist_kernels.cu and hist_partition.cu.
 */
#ifndef GPUAGG_HIST_KERNELS_CUH
#define GPUAGG_HIST_KERNELS_CUH

#include "hist.cuh"
#include "hist_model.h"

/* Kernels need some shared memory of their own. */
#define SHARED_RESERVE 1024
/*
 * Threads of a block of the general kernels in shared memory; blocks a multiprocessor of that for
 * partitions.
 */
#define HIST_THREADS 512
#define HIST_PARTITION_BLOCKS 2

GpuaggCudaStatus hist_launch_prepare(const HistArgs &args, const DeviceFacts &facts,
									 cudaStream_t stream);
GpuaggCudaStatus hist_launch_shared(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);
GpuaggCudaStatus hist_launch_partition(const HistArgs &args, const DeviceFacts &facts,
									   cudaStream_t stream);
/* All slots, tile by tile; what it needs of shared memory beside bins. */
size_t hist_tile_bytes(const HistArgs &args);
/* The fastest kernel that knows all slots and steps; NULL: any steps. */
int hist_choose_tiles(const HistArgs &args, const VectorProgram *steps);
GpuaggCudaStatus hist_launch_tiles(const HistArgs &args, const DeviceFacts &facts,
								   cudaStream_t stream);
/* Limbs to states. */
GpuaggCudaStatus hist_launch_fold(const HistArgs &args, const DeviceFacts &facts,
								  cudaStream_t stream);
/* Slots without a form. */
GpuaggCudaStatus hist_launch_global(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);
/* Slots of ARGMAX and ARGMIN. */
GpuaggCudaStatus hist_launch_argmax(const HistArgs &args, const HistModel &model,
									const DeviceFacts &facts, cudaStream_t stream);
/* Copies of states: before rows, and after all that changes the states. */
GpuaggCudaStatus hist_launch_init_copies(const HistArgs &args, const DeviceFacts &facts,
										 cudaStream_t stream);
GpuaggCudaStatus hist_launch_merge_copies(const HistArgs &args, const DeviceFacts &facts,
										  cudaStream_t stream);

/* Whether the bins make sense, and have so many columns. */
GpuaggCudaStatus hist_check_bins(const GpuaggBins &bins, int least_columns = 1);

/* Slots alone, checked; float sums of so many digits.  For what finds its bins by itself. */
GpuaggCudaStatus hist_slots(const GpuaggHist *hist, const DeviceFacts &facts, int digits,
							HistArgs &args);

/* Where the shape is a common one; *taken says whether. */
bool hist_fast_takes(const HistArgs &args);
GpuaggCudaStatus hist_launch_fast(const HistArgs &args, const DeviceFacts &facts,
								  cudaStream_t stream, bool *taken);
/* Words of HistArgs.out_of_window that this takes. */
size_t hist_deviation_mark_words(const HistArgs &args);
/* A lone count in bytes, of a simple column of bins; pass_bins bytes a block. */
int hist_count_blocks(u32 nrows, const DeviceFacts &facts);
GpuaggCudaStatus hist_launch_counts(const HistArgs &args, u32 *bytes, const DeviceFacts &facts,
									cudaStream_t stream);
/*
 * Counts and narrow sums that change states themselves, and need neither limbs
 * nor a fold; whether they take the histogram.
 */
bool hist_narrow_takes(const HistArgs &args);
GpuaggCudaStatus hist_launch_narrow(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);

/* Does a range have int32 keys, itself in 32 bits, and no NULL? */
static inline bool
hist_plain_key(const GpuaggBins &b, int c)
{
	return b.column[c].type == GPUAGG_VALUE_I32 && b.column[c].values && !b.column[c].validity &&
		!b.null_bin[c] && b.min[c] >= INT32_MIN && b.min[c] <= INT32_MAX - (b.extent[c] - 1);
}

/* Bins that are an int32 column less a minimum, in 32 bits, with no filter and no NULL. */
static inline bool
hist_simple_bins(const GpuaggBins &b)
{
	return !b.filter &&
		(b.kind == GPUAGG_BIN_INDEX ||
		 (b.kind == GPUAGG_BIN_RANGE && b.ncolumns == 1 && hist_plain_key(b, 0) &&
		  b.extent[0] == b.nbins));
}

/*
 * Bins of two int32 keys with such ranges, which fast kernels make themselves; with no filter and
 * no NULL.
 */
static inline bool
hist_paired_bins(const GpuaggBins &b)
{
	return !b.filter && b.kind == GPUAGG_BIN_RANGE && b.ncolumns == 2 && hist_plain_key(b, 0) &&
		hist_plain_key(b, 1) && b.extent[0] * b.extent[1] == b.nbins;
}

/* Bins that were found before. */
static inline GpuaggBins
index_bins(const int32_t *bins, int64_t nbins)
{
	GpuaggBins b = GpuaggBins();

	b.kind = GPUAGG_BIN_INDEX;
	b.ncolumns = 1;
	b.column[0].values = bins;
	b.column[0].type = GPUAGG_VALUE_I32;
	b.nbins = nbins;
	return b;
}

/* Simple bins, as kernels that take no others see them. */
struct SimpleBins
{
	const int32_t *column; /* or NULL: 0 for all rows */
	u32 min;               /* the value of bin 0 */
	bool skip_negative;    /* negative bins are no error */
	u32 n;
};

static inline SimpleBins
simple_bins(const GpuaggBins &b)
{
	bool index = b.kind == GPUAGG_BIN_INDEX;

	return {(const int32_t *) b.column[0].values, index ? 0 : (u32) (int32_t) b.min[0], index,
			(u32) b.nbins};
}

/* Paired bins, as kernels see them. */
struct PairedKeys
{
	const int32_t *column[2];
	u32 min[2];
	u32 extent[2];

	/*
	 * The bin of two keys; above all bins if one of them is out of its range, whatever the other
	 * is.
	 */
	__device__ __forceinline__ u32
	bin(u32 outer, u32 inner) const
	{
		outer -= min[0];
		inner -= min[1];
		return outer < extent[0] && inner < extent[1] ? outer * extent[1] + inner : ~0u;
	}
};

static inline PairedKeys
paired_keys(const GpuaggBins &b)
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

/* Columns that move along with a partition. */
#define PART_MAX_COLUMNS 8
struct PartColumns
{
	int n;
	int bytes[PART_MAX_COLUMNS];
	const void *from[PART_MAX_COLUMNS];
	void *to[PART_MAX_COLUMNS];
};

/* More partitions take two steps. */
#define PART_MANY 512

/* What a partition by bin range needs in the workspace. */
struct PartPlan
{
	u32 parts;
	u32 part_bins; /* bins of one partition: 1 << shift */
	int shift;
	u32 max_item_rows; /* a partition with more is split */
	u32 piece_rows;    /* into items of at most these */
	u32 max_items;
	u32 max_splits;
	u32 *start;      /* parts + 1: first row of each */
	u32 *cursor;     /* parts */
	void *bin;       /* nrows, int32, or uint16 within the partition */
	bool narrow;     /* the latter: in the last step */
	u32 *row;        /* nrows numbers of rows where columns do not move, or NULL */
	const u32 *rows; /* how many there are to move, if not all of the call's */
	bool moved;      /* columns move: all that slots read */
	PartColumns columns;
	int stage_bytes; /* of the widest thing that moves */
	HistItem *item;
	u32 *counter;
	u32 *split_done;
	u32 *split_items;
};

/* Rounds under way at a time; so many queues each multiprocessor has. */
#define EXCHANGE_ROUNDS 5

/* What an exchange through the L2 cache needs in the workspace; see hist_exchange.cu. */
struct HistExchange
{
	u32 owners;     /* multiprocessors; 0: there is no exchange */
	u32 magic;      /* divides by them */
	u32 mask;       /* of bits that are a number below them */
	u32 local;      /* bins of each, */
	u32 plane;      /* and with places for hot ones */
	bool always;    /* whatever the sample says */
	uint16_t *key;  /* queues: where in the plane, */
	u64 *value;     /* and values */
	u32 *cursor;    /* rows of each */
	u32 *produced;  /* blocks that are done with a round's tile, */
	u32 *consumed;  /* with its queue */
	u32 *ndeferred; /* deferred rows */
	u32 *deferred_bin;
	u64 *deferred_value;
	u32 *hot;   /* hot bins */
	u32 *taken; /* whether the sample says so */
	u64 *limb;  /* of hot bins */
};

/* Whether slots, with float sums of three digits, take it; always: if at all possible. */
bool hist_can_exchange(const HistArgs &args, const DeviceFacts &facts, bool always);
/* The workspace, and words in it that the preparation is to clear. */
size_t hist_exchange_zero_words(const HistArgs &args);
void hist_exchange_plan(const HistArgs &args, const DeviceFacts &facts, bool always, u32 *zeros,
						const PartPlan &part, HistExchange &exchange, Workspace &ws);
/* Takes all rows, or none: then *exchange.taken is 0, and the partition takes them. */
GpuaggCudaStatus hist_launch_exchange(const HistArgs &partitioned, const HistExchange &exchange,
									  const DeviceFacts &facts, cudaStream_t stream);

/* Of simple bins.  groups: of partitions, where rows go first; no parts: there is no such step. */
GpuaggCudaStatus hist_launch_split(const HistArgs &args, const PartPlan &plan,
								   const PartPlan &groups, const DeviceFacts &facts,
								   cudaStream_t stream);

#endif /* GPUAGG_HIST_KERNELS_CUH */
