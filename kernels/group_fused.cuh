/*
 * group_fused.cuh
 *	  Hash group-by as one operation: what its kernels share.
 *
 * A block aggregates rows in a table in shared memory: the hashes of keys, from
 * which keys can be computed back, and beside each a few 32-bit words, of the
 * same forms as in histograms (hist.cuh).  An entry that has a hash keeps it, so
 * a key that finds none in the steps that a search takes never will: then the
 * whole of what the block has is dropped and done in parts.
 *
 * Words, all zero at first: count (its top bit: the lowest digit has wrapped
 * around), then digits of a float sum with a word for carries, or the two
 * halves of an integer sum.
 */
#ifndef GPUAGG_GROUP_FUSED_CUH
#define GPUAGG_GROUP_FUSED_CUH

#include "group.cuh"
#include "hist_kernels.cuh"

/* What is aggregated beside a count. */
enum FusedKind
{
	FUSED_COUNT,
	FUSED_FIX3,					/* floats, by digits of a value */
	FUSED_FIX4,
	FUSED_INT,					/* integers of up to 64 bits into 64 bits */
	FUSED_KINDS
};

static constexpr __host__ __device__ int
fused_digits(int kind)
{
	return kind == FUSED_FIX4 ? 4 : kind == FUSED_FIX3 ? 3 : 0;
}

/* Words of a group beside its count, and limbs of them in device memory. */
static constexpr __host__ __device__ int
fused_words(int kind)
{
	return kind == FUSED_COUNT ? 0 : kind == FUSED_INT ? 2 : fused_digits(kind) + 1;
}

#define FUSED_THREADS 640
#define FUSED_ITEMS 4
/* Most entries of a table in shared memory. */
#define FUSED_LOG2_ENTRIES 13
/* Groups for each entry that a partition is planned for, and steps from the first entry of a hash. */
#define FUSED_LOAD 0.34
#define FUSED_STEPS 64

/* A partition's rows, or part of them, and how far they are done. */
struct FusedItem
{
	u32			row0,
				row1;
	u32			part;			/* of the hashes, by further bits, that is next */
	u32			depth;			/* how many such bits; FUSED_DONE: all is done */
	u32			first;			/* top 32 bits of the partition's hashes, from here on */
};

#define FUSED_DONE (~0u)
/* Bits of hashes by which partitions are halved, at most: keys that are equal in all of them were made to be. */
#define FUSED_MOST_DEPTH 24

/* Zero at first. */
struct FusedHead
{
	u32			misfit;			/* a partition got more rows than the sample promised */
	u32			items;
	u32			next;
	u32			next_careful;
	u32			pieces;			/* items that share partitions */
	u32			next_piece;
	u32			splits;			/* partitions that were cut into pieces */
	u32			next_split;
	u32			over;			/* the call's own table is full: nothing in it counts */
	u32			out_of_window;			/* rows that have no digits in the window */
	u32			unfolded;		/* groups of the call's table that the table had no room for */
	u32			fresh;			/* the table was empty */
	u32			careful;		/* some items are left for lack of a promise */
	u64			promised;		/* bins given out, or to be by items that are sure of room */
};

/* The call's own table, whose keys are hashes, for few groups and for pieces of partitions. */
struct FusedLocal
{
	GroupArgs	table;
	u64		   *limb;			/* count, then words; table.capacity each */
	u32			spills;			/* blocks of rows, each with room to spill */
	u32			spill_rows;		/* so many of them, to hash[0] and value[0] of the partitions */
	u32		   *spilled;		/* rows of each */
};

/* Rows that are moved to partitions by hash, in one step or in two. */
struct FusedParts
{
	bool		spare;			/* act only if the call's table was full */
	u32			parts;			/* of the first step */
	u32			fine;			/* partitions of each in a second one, or 1 */
	u32			samples;		/* of rows, or all of them */
	u32			room;			/* rows that the first step has memory for */
	u32		   *sampled;		/* parts */
	u32		   *start;			/* parts: first row */
	u32		   *limit;			/* parts: first row past its memory */
	u32		   *cursor;			/* parts: first row past its rows */
	u32		   *first_tile;		/* parts + 1: of the second step */
	u32		   *fine_rows;		/* parts * fine, rounded up for fused_plan; then cursors */
	u64		   *hash[2];		/* rows past a step: room, nrows */
	u64		   *value[2];
	FusedItem  *item;
	u32			most_rows;		/* partitions of more are cut */
	u32			piece_rows;		/* into pieces of so many */
	FusedItem  *piece;
	FusedItem  *split;			/* partitions that were cut, whole */
};

struct FusedArgs
{
	/* the call */
	GroupArgs	table;
	int			key_bytes;
	const void *keys;
	const uint8_t *filter;
	const void *values;			/* or NULL */
	GpuaggValueType type;		/* of values: I32, I64, F32 or F64 */
	u32			nrows;
	int			count;			/* slot numbers, or -1 */
	int			slot;
	bool		retry;
	/* what was planned for it */
	int			log2_entries;	/* of the table in shared memory */
	int			log2_copies;
	FusedHead  *head;
	FusedLocal	local;
	FusedParts	part;
	/* one launch */
	bool		careful;		/* items that were promised no room, which may be little */
	bool		whole;			/* of partitions that were cut, if the pieces came to nothing */
};

/* A limb's count: the lowest digit has wrapped around. */
#define LIMB_WRAPPED (1ULL << 63)

/* ---- rows ------------------------------------------------------------------- */

/* A value as it was loaded, to 64 bits: floats as doubles, integers extended. */
static __device__ __forceinline__ u64
widen(GpuaggValueType type, u64 v)
{
	if (type == GPUAGG_VALUE_F32)
		return (u64) __double_as_longlong((double) __uint_as_float((u32) v));
	if (type == GPUAGG_VALUE_I32)
		return (u64) (int64_t) (int32_t) v;
	return v;
}

static __device__ __forceinline__ bool
narrow_type(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_F32 || type == GPUAGG_VALUE_I32;
}

/* A column's elements of 4 or 8 bytes, THREADS apart, for the items in ok. */
template <int ITEMS, int THREADS> static __device__ __forceinline__ void
load_column(bool narrow, const void *from, u64 row, u32 ok, u64 (&v)[ITEMS])
{
	if (narrow)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				v[j] = __ldcs((const u32 *) from + row + j * THREADS);
	}
	else
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				v[j] = __ldcs((const u64 *) from + row + j * THREADS);
	}
}

/* The thread's rows before the end that the filter leaves in, one bit an item. */
template <int ITEMS, int THREADS> static __device__ __forceinline__ u32
rows_of(const uint8_t *filter, u64 row, u64 end)
{
	u32			ok = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (row + j * THREADS < end && !(filter && !filter[row + j * THREADS]))
			ok |= 1u << j;
	return ok;
}

/*
 * The hash by which the call's own table is searched: what it gets from a
 * partition has the same top bits.
 */
static __device__ __forceinline__ u64
local_hash(u64 hash)
{
	return hash << 32 | hash >> 32;
}

static __device__ __forceinline__ u32
partition_of_hash(u64 hash, u32 parts)
{
	return __umulhi((u32) (hash >> 32), parts);
}

static __device__ __forceinline__ u64
hash_of_row(const FusedArgs &f, u64 row)
{
	return gpuagg_hash64(&f.table.hash, f.key_bytes == 4 ? ((const u32 *) f.keys)[row] : ((const u64 *) f.keys)[row]);
}

static __device__ __forceinline__ Key<1>
key_of_hash(const FusedArgs &f, u64 hash)
{
	return {{gpuagg_unhash64(&f.table.hash, hash)}};
}

/* ---- launches ----------------------------------------------------------------- */

/* Rows to partitions, and the items of them. */
GpuaggCudaStatus fused_launch_move(const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream);
/* Fine partitions that the first step has room to count; 0: it has none for a tile of rows. */
u32			fused_most_fine(const DeviceFacts &facts, bool values);
/* All rows into the call's table, and from there to the table and the states. */
GpuaggCudaStatus fused_launch_rows(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts,
								   cudaStream_t stream);
/* The same of pieces of partitions. */
GpuaggCudaStatus fused_launch_pieces(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts,
									 cudaStream_t stream);
/* Items of partitions into the table and the states. */
GpuaggCudaStatus fused_launch_items(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts,
									cudaStream_t stream);

#endif							/* GPUAGG_GROUP_FUSED_CUH */
