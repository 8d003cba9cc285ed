/*
 * segmented_args.h
 *	  What the host side of the segmented reduction and its kernels share.
 */
#ifndef GPUAGG_SEGMENTED_ARGS_H
#define GPUAGG_SEGMENTED_ARGS_H

#include "common.cuh"

/* Kernel arguments; arrays are of the operator's types. */
struct SegmentedArgs
{
	const void *values;
	const int64_t *offsets; /* nsegments + 1 */
	int64_t nsegments;
	int64_t nvalues; /* offsets[nsegments] - offsets[0] */
	void *states;
	int chunks; /* one for each warp */
	int blocks;
	/* workspace, one a block: */
	void *heads;            /* the first result, without what came before the block */
	void *carries;          /* what is open at the end */
	int64_t *head_segments; /* the segment of the first result, or -1 */
};

/* The unsigned word of a size. */
template <int size> struct SegUnit;
template <> struct SegUnit<1>
{
	typedef uint8_t type;
};
template <> struct SegUnit<2>
{
	typedef uint16_t type;
};
template <> struct SegUnit<4>
{
	typedef uint32_t type;
};
template <> struct SegUnit<8>
{
	typedef uint64_t type;
};
template <> struct SegUnit<16>
{
	typedef uint4 type;
};

/* One operator. */
struct SegmentedInstance
{
	MonoidId id;
	size_t state_size;
	/* blocks of the chunk kernel that a multiprocessor runs at once */
	GpuaggCudaStatus (*occupancy)(int *blocks);
	int warps;  /* of such a block */
	int tile;   /* elements */
	int weight; /* of a segment's end */
	GpuaggCudaStatus (*run)(const SegmentedArgs *args, cudaStream_t stream);
};

/* The instances are compiled in parts, for parallel builds; see segmented_part.cu. */
#define SEGMENTED_PARTS 6
typedef const SegmentedInstance *(*SegmentedPart)(int *count);

#endif /* GPUAGG_SEGMENTED_ARGS_H */
