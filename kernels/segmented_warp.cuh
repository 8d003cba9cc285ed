/*
 * segmented_warp.cuh
 *	  Building blocks of the segmented reduction's chunk kernel (segmented.cuh).
 *
 *	SegShape		sizes of tiles, rows and buffers for an operator
 *	SegShared		a warp's shared memory
 *	SegStep			the step by one element
 *	seg_warp_*		scan and reduction over the lanes of a warp, in lane order
 *	seg_copy*		asynchronous copies from device to shared memory
 *	seg_cut_chunk	the search for the two ends of a chunk
 *
 * All functions run on the device.  Functions named seg_warp_* and the search need all 32 lanes
 * of the warp.
 */
#ifndef GPUAGG_SEGMENTED_WARP_CUH
#define GPUAGG_SEGMENTED_WARP_CUH

#include "common.cuh"
#include "segmented_args.h"
#include "tuning.h"

/* ---- shapes ------------------------------------------------------------ */

/* Sizes of tiles, rows and buffers for one operator. */
template <class Op> struct SegShape
{
	typedef typename Op::State State;
	static constexpr int in_size = sizeof(typename Op::Input);
	static constexpr int state_size = sizeof(State);
	typedef SegmentedTuning<in_size, state_size> Tuning;
	static constexpr int warps = Tuning::WARPS_PER_BLOCK;
	static constexpr int fixup_threads = Tuning::FIXUP_THREADS;
	/* consecutive elements of a lane, which are its row: a power of two, at most 32 */
	static constexpr int items = Tuning::ELEMENTS_PER_LANE;
	static constexpr int tile = 32 * items;
	/* elements between two tests for marks */
	static constexpr int group = items < 4 ? items : 4;
	/* greatest length of a tiny segment, which one lane folds; 0: there are no tiny tiles */
	static constexpr int tiny = Tuning::MAX_TINY_ELEMENTS;
	/*
	 * 64-bit words from one lane's staged state to the next (store_staged): an odd number, so that
	 * the lanes use different banks; 0: states are not staged
	 */
	static constexpr int staged = tiny == 0 || state_size <= 8 ? 0 : state_size / 8 | 1;
	/* bytes of one copy to shared memory */
	static constexpr int unit = in_size <= 16 ? 16 : 8;
	/*
	 * A row has `row` bytes, which are `units` units; from one row to the next are `stride` bytes.
	 * So that the lanes' rows meet all banks, units of 16 bytes are permuted within their row, and
	 * rows of larger elements are padded.
	 */
	static constexpr int row = items * in_size;
	static constexpr int units = row / unit;
	static constexpr int stride = unit == 8 && units % 2 == 0 ? row + unit : row;
	/*
	 * The results of a tile overwrite its rows, which are in registers by then.  Results of one row
	 * are next to each other; those of different rows are `pad` bytes apart, against bank
	 * conflicts.  Behind them are an identity and the carry.  A tile has as many segment ends as
	 * fit, within limits.
	 */
	static constexpr int pad = state_size % 16 == 0 ? 16 : state_size % 8 == 0 ? 8 : 4;
	static constexpr int fit = (32 * stride - 32 * pad) / state_size - 2;
	static constexpr int most_ends = Tuning::MAX_ENDS_PER_TILE;
	static constexpr int least_ends = Tuning::MIN_ENDS_PER_TILE;
	static constexpr int ends = fit > most_ends ? most_ends : fit < least_ends ? least_ends : fit;
	static constexpr int identity_at = ends * state_size + 32 * pad;
	static constexpr int carry_at = identity_at + state_size;
	static constexpr int results = (carry_at + state_size + 15) / 16 * 16;
	static constexpr int buffer = results > 32 * stride ? results : 32 * stride;
	/*
	 * in a tiny tile: where states are staged, behind the elements, and the greatest number of
	 * elements
	 */
	static constexpr int stage_at = buffer - 32 * staged * 8;
	static constexpr int tiny_most = stage_at / stride * items;
	/* bytes of a row's marks */
	static constexpr int mark_row = items < 4 ? 4 : items;
	/* cost of a segment's end, in elements: a tile full of ends takes that much longer */
	static constexpr int weight = Tuning::ELEMENTS_PER_END;
	static_assert((items & (items - 1)) == 0 && items <= 32, "a row's marks are a word");
	static_assert(row % unit == 0, "rows are whole units");
	static_assert(unit == 8 || (units & (units - 1)) == 0, "places are found by exclusive or");
	static_assert(buffer < 65536, "places of results have 16 bits");
};

/* Shared memory of one warp.  No other warp uses it before the chunk is done. */
template <class Op> struct SegShared
{
	typedef SegShape<Op> Shape;

	/*
	 * two buffers: one holds the rows of the current tile, and then its results; the other receives
	 * the rows of the next tile
	 */
	alignas(16) char rows[2][Shape::buffer];
	/*
	 * one byte for each element of the tile: 1 at the last element of each segment that ends in the
	 * tile; all bytes are 0 between tiles
	 */
	alignas(16) uint8_t marks[32 * Shape::mark_row];
	/* state of the open segment; elements before the chunk are missing in it */
	alignas(16) typename Op::State carry;
	/* result of the first segment that ends in the chunk, without elements before the chunk */
	alignas(16) typename Op::State head;
	/* ends of the tile's segments in order: offsets, copied from device memory */
	int64_t ends[Shape::ends];
	/* segment of head; -1: no segment has ended in the chunk yet */
	int64_t head_segment;
	/*
	 * for each segment that ends in the tile: byte position of its result in the buffer; in a tile
	 * of tiny segments: its end, as a number of elements from the tile's start
	 */
	uint16_t place[Shape::ends];
	/* for each row with a mark: rank of its first result among the nonempty segments' results */
	uint16_t first_rank[32];
};

/* ---- launches ------------------------------------------------------------ */

/*
 * Begins every kernel.  The launch of a kernel may overlap the end of the work before it on the
 * stream, which hides the cost of the launch.  This function lets the next launch start early as
 * well, and then waits for the work before the kernel.  No memory may be accessed before it
 * returns.
 */
static __device__ __forceinline__ void
seg_launch_order()
{
	let_successor_start();
	wait_for_predecessor();
}

/* ---- steps ------------------------------------------------------------ */

/*
 * The step by one element.  Some operators have a shorter step, "bounded", without checks of
 * overflow.  It is right only in a fold that starts at the identity and takes one row whose
 * elements are all small.
 */
template <class Op, bool bounded> struct SegStep
{
	/* true if the operator has this kind of step */
	static constexpr bool exists = !bounded;

	/* Returns whether the bounded step may be used for all elements of a row. */
	static __device__ __forceinline__ bool
	covers(const typename Op::Input *)
	{
		return false;
	}

	static __device__ __forceinline__ typename Op::State
	step(typename Op::State a, typename Op::Input x)
	{
		return Op::step(a, x);
	}
};

#define SEG_BOUNDED_STEP(name, input_t, items) \
	template <> struct SegStep<Op_##name, true> \
	{ \
		static constexpr bool exists = true; \
		static __device__ __forceinline__ bool \
		covers(const input_t *x) \
		{ \
			uint32_t most = 0; \
			_Pragma("unroll") for (int k = 0; k < (items); k++) most = \
				max(most, name##_magnitude(x[k])); \
			return most <= name##_bound; \
		} \
		static __device__ __forceinline__ Op_##name::State \
		step(Op_##name::State a, input_t x) \
		{ \
			return name##_bounded_step(a, x); \
		} \
	};
SEG_BOUNDED_STEP(maxsub_i64, int64_t, 32)
SEG_BOUNDED_STEP(maxsub_f64, double, 32)
#undef SEG_BOUNDED_STEP

/* ---- work of a warp ------------------------------------------------------------ */

/* Returns `value` of the lane whose number is lower by `delta` (up), or higher by it (not up). */
template <bool up, class T>
static __device__ __forceinline__ T
seg_shfl(T value, int delta)
{
	return shuffle_words(value,
						 [=](uint32_t word)
						 {
							 return up ? __shfl_up_sync(0xFFFFFFFFu, word, delta) :
										 __shfl_down_sync(0xFFFFFFFFu, word, delta);
						 });
}

/*
 * Inclusive scan over the lanes of a warp, in lane order.  It restarts at each lane whose bit is
 * set in heads: the result of a lane combines the values from the nearest such lane at or before
 * it, or else from lane 0, up to the lane itself.
 */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_warp_scan(typename Op::State v, unsigned heads, int lane)
{
	unsigned below = heads & (0xFFFFFFFFu >> (31 - lane));
	int start = below ? 31 - __clz(below) : 0;

#pragma unroll(sizeof(v) <= 16 ? 5 : 1)
	for (int d = 1; d < 32; d <<= 1)
	{
		typename Op::State left = seg_shfl<true>(v, d);

		if (lane - d >= start)
			v = Op::combine(left, v);
	}
	return v;
}

/*
 * Combines the values of groups of `lanes` neighbouring lanes, in lane order.  `lanes` is a power
 * of two.  The result is valid in the first lane of each group only.
 */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_warp_reduce(typename Op::State v, int lanes)
{
	int lane = threadIdx.x & (lanes - 1);

#pragma unroll 1
	for (int d = 1; d < lanes; d <<= 1)
	{
		typename Op::State right = seg_shfl<false>(v, d);

		if ((lane & (2 * d - 1)) == 0)
			v = Op::combine(v, right);
	}
	return v;
}

/* ---- copies to shared memory ------------------------------------------------------------ */

/* Start asynchronous copies of 16, 8 and 4 bytes to shared memory; see seg_copy_wait. */
static __device__ __forceinline__ void
seg_copy16(void *to_shared, const void *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
					 (unsigned) __cvta_generic_to_shared(to_shared)),
				 "l"(from));
}

static __device__ __forceinline__ void
seg_copy8(void *to_shared, const void *from)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
					 (unsigned) __cvta_generic_to_shared(to_shared)),
				 "l"(from));
}

static __device__ __forceinline__ void
seg_copy4(void *to_shared, const void *from)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
					 (unsigned) __cvta_generic_to_shared(to_shared)),
				 "l"(from));
}

/*
 * Copies fewer than 16 bytes, which are whole elements of `size` bytes.  Nothing behind them is
 * read.
 */
template <int size>
static __device__ __forceinline__ void
seg_copy_rest(char *to_shared, const char *from, int bytes)
{
#pragma unroll 1
	for (int at = 0; at < bytes; at += size < 4 ? 1 : 4)
		if constexpr (size >= 4)
			seg_copy4(to_shared + at, from + at);
		else
			to_shared[at] = from[at];
}

/* Waits for the copies that this thread started. */
static __device__ __forceinline__ void
seg_copy_wait()
{
	asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- search for a chunk ------------------------------------------------------------ */

/*
 * Returns a lane's distance from the guess in the first probe: -2^14 to -8, -4 to 3, 8 to 2^14,
 * ascending by lane.
 */
static __device__ __forceinline__ int
seg_probe_distance(int lane)
{
	return lane < 12 ? -(1 << (14 - lane)) : lane < 20 ? lane - 16 : 1 << (lane - 17);
}

/*
 * Finds where two diagonals cut the merge path.  All lanes of a warp call it together.
 *
 * The path merges two lists: the elements, of cost 1, and the segment ends, of cost `weight`.  The
 * cut at diagonal[d] has that cost before it.  The number of segment ends before the cut goes to
 * cut[2 * d]: it is the greatest s in [0, nsegments] with offsets[s] - offsets[0] + weight * s <=
 * diagonal[d].  The position in values of the first element after the cut goes to cut[2 * d + 1].
 *
 * The first probe looks at and around the place that the mean length of segments predicts, so it
 * finds the cut if segments are equally long.  Otherwise each further probe of 32 offsets divides
 * the range by 33: the search takes log33 of the distance to the guess, or of nsegments.
 */
static __device__ __forceinline__ void
seg_search(const SegmentedArgs &a, int weight, int64_t total, const int64_t *diagonal, int64_t *cut)
{
	int64_t nsegments = a.nsegments;
	int lane = threadIdx.x & 31;
	int64_t base = a.offsets[0];
	double density = (double) nsegments / (double) (total > 0 ? total : 1);
	int64_t low[2], high[2], at_high[2]; /* offsets[high], or the end of the elements */

#pragma unroll
	for (int d = 0; d < 2; d++)
	{
		int64_t guess = (int64_t) ((double) diagonal[d] * density);
		int64_t probe = guess + seg_probe_distance(lane);
		int64_t offset = probe > 0 && probe <= nsegments ? a.offsets[probe] : base;
		bool before =
			probe <= 0 || (probe <= nsegments && offset - base + weight * probe <= diagonal[d]);
		int found = __popc(__ballot_sync(0xFFFFFFFFu, before));

		offset = __shfl_sync(0xFFFFFFFFu, offset, found & 31);
		low[d] = found > 0 && guess + seg_probe_distance(found - 1) > 0 ?
			guess + seg_probe_distance(found - 1) :
			0;
		high[d] = nsegments + 1;
		at_high[d] = base + a.nvalues;
		if (found < 32 && guess + seg_probe_distance(found) <= nsegments)
		{
			high[d] = guess + seg_probe_distance(found);
			at_high[d] = offset;
		}
	}
	while (high[0] - low[0] > 1 || high[1] - low[1] > 1)
	{
#pragma unroll
		for (int d = 0; d < 2; d++)
		{
			int64_t step = (high[d] - low[d] + 32) / 33;
			int64_t probe = low[d] + (lane + 1) * step;
			int64_t offset = probe < high[d] ? a.offsets[probe] : base;
			bool before = probe < high[d] && offset - base + weight * probe <= diagonal[d];
			int found = __popc(__ballot_sync(0xFFFFFFFFu, before));

			offset = __shfl_sync(0xFFFFFFFFu, offset, found & 31);
			low[d] += found * step;
			if (found < 32 && low[d] + step < high[d])
			{
				high[d] = low[d] + step;
				at_high[d] = offset;
			}
		}
	}
#pragma unroll
	for (int d = 0; d < 2; d++)
	{
		int64_t e = base + diagonal[d] - weight * low[d];

		/* a cut inside the cost of a segment's end is behind all elements of the segment */
		cut[2 * d] = low[d];
		cut[2 * d + 1] = low[d] == nsegments ? base + a.nvalues : e < at_high[d] ? e : at_high[d];
	}
}

/*
 * Finds the start and the end of a chunk: cut[0] and cut[2] are segments, cut[1] and cut[3]
 * positions in values.  All lanes of a warp call it together.
 */
static __device__ __forceinline__ void
seg_cut_chunk(const SegmentedArgs &a, int weight, int chunk, int64_t *cut)
{
	int64_t total = a.nvalues + weight * a.nsegments;
	int64_t each = (total + a.chunks - 1) / a.chunks;
	int64_t diagonal[2];

	diagonal[0] = each * chunk < total ? each * chunk : total;
	diagonal[1] = each * (chunk + 1) < total ? each * (chunk + 1) : total;
	seg_search(a, weight, total, diagonal, cut);
}

#endif /* GPUAGG_SEGMENTED_WARP_CUH */
