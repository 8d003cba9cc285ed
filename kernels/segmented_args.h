/*
 * segmented_args.h
 *	  What the host side of the segmented reduction and its kernels share.
 */
#ifndef GPUAGG_SEGMENTED_ARGS_H
#define GPUAGG_SEGMENTED_ARGS_H

#include "common.cuh"

/* In segmented_small: elements per thread from which the whole block takes over. */
#define SEG_SMALL_LONG ((int64_t) 64)

/* The even form's kernels; see segmented_even.cuh. */
typedef enum SegEvenForm
{
	SEG_EVEN_LONE,				/* a thread for each segment */
	SEG_EVEN_WINDOWS,			/* a lane for each, in shared memory */
	SEG_EVEN_GROUPS,			/* part of a warp or a warp for each */
	SEG_EVEN_BLOCKS				/* a block or several for each */
} SegEvenForm;

#define SEG_EVEN_THREADS 256

/* Segments of a thread at a time in the lone form. */
#define SEG_EVEN_SOME 4

/* Elements of a vector by their size. */
#define SEG_EVEN_VECTOR(size) ((size) >= 16 ? 1 : (size) == 8 ? 2 : 4)

/* Blocks and threads of segmented_sample, and the stretches of segments that they sample. */
#define SEG_SAMPLE_BLOCKS 8
#define SEG_SAMPLE_THREADS 1024
#define SEG_SAMPLE_MOST (2 * SEG_SAMPLE_BLOCKS * SEG_SAMPLE_THREADS)

/*
 * What was seen: a word for each of those blocks and one for errors, not zero
 * if the load-balanced form must do the work; so that not all read the same
 * words, there are copies, words apart.
 */
#define SEG_SEEN_WORDS (SEG_SAMPLE_BLOCKS + 1)
#define SEG_SEEN_COPIES 32
#define SEG_SEEN_STRIDE 32

/* Behind them: how many items the even form's warps have taken; and the words of all. */
#define SEG_TAKEN_AT (SEG_SEEN_COPIES * SEG_SEEN_STRIDE)
#define SEG_SEEN_ALL (SEG_TAKEN_AT + 1)

/* Bytes of values from which the even form is tried; tests want it for fewer. */
extern int64_t seg_even_least;

struct SegEven
{
	uint32_t   *seen;			/* NULL: the form is not tried */
	SegEvenForm form;
	unsigned	blocks;			/* of its launch */
	unsigned	items;			/* lone: what its warps take */
	int			rounds;			/* lone: chunks of an item; windows of a warp; segments of a group */
	int			lanes_log2;		/* threads of a group, 2 to 5 */
	int			capacity;		/* bytes of a window in shared memory */
	unsigned	early;			/* of a launch of whole blocks, those that fetch before the sample has ended */
	int			each;			/* blocks of a segment */
	void	   *pieces;			/* their states, if there are several */
	int64_t		stretch;		/* segments of a stretch, */
	int64_t		most;			/* and the elements allowed in them */
};

/* Kernel arguments; arrays are of the instance's types. */
struct SegmentedArgs
{
	const void *values;
	const int64_t *offsets;		/* nsegments + 1 */
	int64_t		nsegments;
	const int64_t *nsegments_device;	/* the true count, if only the device knows it */
	int64_t		nvalues;		/* offsets[nsegments] - offsets[0] */
	void	   *states;
	uint32_t   *errors;
	int			chunks;			/* one for each warp */
	int			blocks;
	/* workspace, one a block: */
	void	   *heads;			/* the first result, without what came before the block */
	void	   *carries;		/* what is open at the end */
	int64_t    *head_segments;	/* the segment of the first result, or -1 */
	SegEven		even;
};

/* The unsigned word of a size. */
template <int size> struct SegUnit;
template <> struct SegUnit<1> { typedef uint8_t type; };
template <> struct SegUnit<2> { typedef uint16_t type; };
template <> struct SegUnit<4> { typedef uint32_t type; };
template <> struct SegUnit<8> { typedef uint64_t type; };
template <> struct SegUnit<16> { typedef uint4 type; };

template <class Op>
struct SegFixup
{
	static constexpr int threads = sizeof(typename Op::State) > 64 ? 128 : 512;
};

/* One operator over one stored type. */
struct SegmentedInstance
{
	MonoidId	id;
	GpuaggValueType type;
	size_t		state_size;
	/* blocks of the chunk kernel that a multiprocessor runs at once */
	GpuaggCudaStatus (*occupancy) (int *blocks);
	int			warps;			/* of such a block */
	int			tile;			/* elements */
	int			weight;			/* of a segment's end */
	int			even_size;		/* of an element, if the instance has the even form, else 0 */
	/* the even form before it, if args->even.seen is set */
	GpuaggCudaStatus (*run) (const SegmentedArgs *args, cudaStream_t stream);
	GpuaggCudaStatus (*run_small) (const SegmentedArgs *args, int lanes_log2, cudaStream_t stream);
};

/* The instances are compiled in parts, for parallel builds; see segmented_part.cu. */
#define SEGMENTED_PARTS 6
typedef const SegmentedInstance *(*SegmentedPart) (int *count);

#endif							/* GPUAGG_SEGMENTED_ARGS_H */
