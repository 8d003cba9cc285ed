/*
 * segmented_args.h
 *	  Types that the host side (segmented.cu) and the kernels of the segmented reduction share.
 *
 * The kernels are templates. segmented_part.cu instantiates them for each operator that does not
 * commute; the host side knows an instance by a SegmentedInstance.
 *
 * Words of the segmented reduction:
 *
 *	chunk	the elements and segment ends that one warp reduces
 *	carry	the state of the open segment: the one that has begun but not ended
 *	head	the result of the first segment that ends in a chunk or a block, without the elements
 *			before the chunk or the block
 */
#ifndef GPUAGG_SEGMENTED_ARGS_H
#define GPUAGG_SEGMENTED_ARGS_H

#include "common.cuh"

/*
 * Arguments of both kernels.  All pointers are to device memory of the caller; the types of values,
 * states, heads and carries are the operator's.
 */
struct SegmentedArgs
{
	const void *values;     /* offsets[nsegments] elements */
	const int64_t *offsets; /* nsegments + 1 ascending positions in values */
	int64_t nsegments;
	int64_t nvalues; /* offsets[nsegments] - offsets[0] */
	void *states;    /* result: one for each segment */
	int chunks;      /* number of chunks, one for each warp */
	int blocks;      /* number of blocks of the chunk kernel */
	/* workspace, one entry for each block: */
	void *heads;            /* head of the block */
	void *carries;          /* carry at the end of the block */
	int64_t *head_segments; /* segment of the head; -1: no segment ends in the block */
};

/* SegUnit<size>::type is the unsigned type of `size` bytes. */
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

/* The instance of one operator. */
struct SegmentedInstance
{
	MonoidId id;
	size_t state_size;
	/*
	 * Prepares the chunk kernel on the current device, and stores in *blocks how many of its blocks
	 * run concurrently on a multiprocessor.
	 */
	GpuaggCudaStatus (*occupancy)(int *blocks);
	int warps;  /* number of warps in such a block */
	int tile;   /* greatest number of elements in a tile */
	int weight; /* cost of a segment's end, in elements */
	/* Queues the kernels on the stream. */
	GpuaggCudaStatus (*launch)(const SegmentedArgs *args, cudaStream_t stream);
};

/*
 * The instances are compiled in parts, so that builds run in parallel: see segmented_part.cu.  A
 * SegmentedPart returns the instances of one part, and their number in *count.
 */
#define SEGMENTED_PARTS 6
typedef const SegmentedInstance *(*SegmentedPart)(int *count);

#endif /* GPUAGG_SEGMENTED_ARGS_H */
