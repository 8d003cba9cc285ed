/*
 * hist_kernels.cuh
 *	  What hist.cu launches; see hist_kernels.cu and hist_partition.cu.
 */
#ifndef GPUAGG_HIST_KERNELS_CUH
#define GPUAGG_HIST_KERNELS_CUH

#include "hist.cuh"

GpuaggCudaStatus hist_launch_prepare(const HistArgs &args, const DeviceFacts &facts,
									 cudaStream_t stream);
GpuaggCudaStatus hist_launch_shared(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);
GpuaggCudaStatus hist_launch_partition(const HistArgs &args, const DeviceFacts &facts,
									   cudaStream_t stream);
GpuaggCudaStatus hist_launch_global(const HistArgs &args, const DeviceFacts &facts,
									cudaStream_t stream);

/* Where the shape is a common one; *taken says whether. */
GpuaggCudaStatus hist_launch_fast(const HistArgs &args, const DeviceFacts &facts,
								  cudaStream_t stream, bool *taken);
/* Whether they need neither limbs nor a fold. */
bool hist_fast_counts(const HistArgs &args);
/* Whether they do so with row numbers and moved columns, too. */
bool hist_fast_numbers_rows(const HistArgs &args);

/* Bins that are an int32 column less a minimum, with no filter and no NULL. */
static inline bool
hist_simple_bins(const GpuaggBins &b)
{
	return !b.filter &&
		(b.kind == GPUAGG_BIN_INDEX ||
		 (b.kind == GPUAGG_BIN_RANGE && b.ncolumns == 1 && b.column[0].type == GPUAGG_VALUE_I32 &&
		  !b.column[0].validity && b.min[0] >= INT32_MIN && b.min[0] <= INT32_MAX &&
		  b.extent[0] == b.nbins && !b.null_bin[0]));
}

/* Columns that move along with a partition. */
#define PART_MAX_COLUMNS 8
struct PartColumns
{
	int			n;
	int			bytes[PART_MAX_COLUMNS];
	const void *from[PART_MAX_COLUMNS];
	void	   *to[PART_MAX_COLUMNS];
};

/* What a partition by bin range needs in the workspace. */
struct PartPlan
{
	u32			parts;
	u32			part_bins;		/* bins of one partition: 1 << shift */
	int			shift;
	u32			max_item_rows;
	u32			max_items;
	u32			max_splits;
	u32		   *start;			/* parts + 1: first row of each */
	u32		   *cursor;			/* parts */
	int32_t    *bin;			/* nrows */
	u32		   *row;			/* nrows; NULL if nothing needs row numbers */
	bool		moved;			/* columns move: all that slots read */
	PartColumns columns;
	int			stage_bytes;	/* of the widest thing that moves */
	HistItem   *item;
	u32		   *counter;
	u32		   *split_done;
	u32		   *split_items;
	GpuaggHistStatus *unread_status;
};

GpuaggCudaStatus hist_launch_split(const HistArgs &args, const PartPlan &plan,
								   const DeviceFacts &facts, cudaStream_t stream);

#endif							/* GPUAGG_HIST_KERNELS_CUH */
