/*
 * segmented.cuh
 *	  Segmented reduction over CSR offsets: the kernels' templates.
 *
 * The work is the merge of two lists: the elements, and the ends of the
 * segments with a weight each.  It is cut into as many equal chunks as the
 * device runs blocks at once, so that neither a giant segment nor a million
 * empty ones can leave a block behind.  Each block finds its chunk's two ends
 * by a search in the offsets and walks it tile by tile, keeping the partial
 * state of the segment that is open ("carry") from tile to tile.
 *
 *	mixed tile	elements go to shared memory, segment ends become marks on their
 *				last elements; each thread folds its own consecutive elements in
 *				order and stages a result at each mark; a segmented scan over
 *				the threads brings the left part of each thread's first result
 *	inner tile	the same without marks: no segment ends inside.  If the operator
 *				commutes, threads keep their own states from inner tile to inner
 *				tile, and are added up when the next mixed tile comes
 *
 * What a chunk leaves open goes to the workspace, and segmented_fixup puts the
 * left parts before the first result of each chunk, in chunk order.  The cut
 * depends on the device and the sizes only: the same input, the same bits.
 */
#ifndef GPUAGG_SEGMENTED_CUH
#define GPUAGG_SEGMENTED_CUH

#include "common.cuh"
#include "segmented_args.h"

/* ---- shapes ------------------------------------------------------------ */

/* Tuning as data; measurements in kernels/README.md. */
template <class Op, class InT>
struct SegShape
{
	typedef typename Op::State State;
	static constexpr int in_size = sizeof(InT);
	static constexpr int state_size = sizeof(State);
	static constexpr int threads = in_size > 64 ? 64 : 128;
	static constexpr int warps = threads / 32;
	/* consecutive elements of a thread */
	static constexpr int items = in_size <= 2 ? 32 / in_size : in_size == 4 ? 16 : in_size <= 16 ? 128 / in_size :
		in_size <= 64 ? 64 / in_size : 1;
	static constexpr int tile = threads * items;
	/* copies to shared memory are of 16 bytes for small elements, else of 8 */
	static constexpr int unit = in_size <= 16 ? 16 : 8;
	/*
	 * A thread's elements.  So that the threads' rows meet all banks, units of
	 * 16 bytes change places within their row, and larger elements are padded.
	 */
	static constexpr int row = items * in_size;
	static constexpr int units = row / unit;
	static constexpr int stride = unit == 8 && units % 2 == 0 ? row + unit : row;
	/* segment ends of a tile: as many as leave room for four or five blocks of the widest rows */
	static constexpr int ends = state_size <= 8 ? 512 : state_size <= 16 ? 384 : state_size <= 24 ? 512 :
		state_size <= 48 ? 15360 / state_size : 4096 / state_size;
	/* weight of a segment's end against an element: what a tile full of ends takes longer */
	static constexpr int weight = in_size <= 8 ? 16 : in_size == 16 ? 8 : 4;
	static_assert(row % unit == 0, "rows are whole units");
	static_assert(unit == 8 || (units & (units - 1)) == 0, "places are found by exclusive or");
};

template <class Op, class InT>
struct SegShared
{
	typedef SegShape<Op, InT> Shape;

	/* the elements' rows: of the tile at work, and of the next on its way */
	alignas(16) char rows[2][Shape::threads * Shape::stride];
	/* the results */
	alignas(16) typename Op::State stage[Shape::ends];
	/* 0, or 1 + the number of the segment end right after this element */
	alignas(16) uint16_t marks[Shape::tile];
	alignas(16) typename Op::State totals[Shape::warps];
	alignas(16) typename Op::State carry;
	int64_t		ends[Shape::ends];	/* offsets, from the end of the tile's first segment on */
	int64_t		cut[4];			/* segment, element of the chunk's start and end */
	int64_t		after;			/* the first segment end after the tile, if known, or -1 */
	int64_t		last;			/* the last one in it */
	int			count;			/* segment ends in the tile */
	bool		first_empty;	/* the first is where the tile starts */
	int			total_has_end[Shape::warps];
};

/* ---- pieces ------------------------------------------------------------ */

/*
 * First in each kernel: the launches are allowed to overlap the end of the work
 * before them on the stream, so that their start costs nothing.  They wait here
 * before they touch memory, and let the next launch do likewise.
 */
static __device__ __forceinline__ void
seg_launch_order()
{
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
	cudaGridDependencySynchronize();
#endif
}

/* combine and step that collect the operator's error bits. */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_combine(typename Op::State a, typename Op::State b, int *err)
{
	typename Op::State r = Op::combine(a, b);

	*err |= Op::error(a, b, r);
	return r;
}

template <class Op>
static __device__ __forceinline__ typename Op::State
seg_step(typename Op::State a, typename Op::Input x, int *err)
{
	typename Op::State r = Op::step(a, x);

	*err |= Op::error(a, Op::lift(x), r);
	return r;
}

/* A state from the lane `delta` below (up) or above (down), word by word. */
template <bool up, class T>
static __device__ __forceinline__ T
seg_shfl(T value, int delta)
{
	static_assert(sizeof(T) % 4 == 0, "states are whole words");
	uint32_t	words[sizeof(T) / 4];

	memcpy(words, &value, sizeof(T));
#pragma unroll
	for (unsigned i = 0; i < sizeof(T) / 4; i++)
		words[i] = up ? __shfl_up_sync(0xFFFFFFFFu, words[i], delta)
			: __shfl_down_sync(0xFFFFFFFFu, words[i], delta);
	memcpy(&value, words, sizeof(T));
	return value;
}

/*
 * Inclusive scan over a warp in lane order, restarting at each lane whose bit
 * is set in heads: lane l's result folds the lanes from its nearest head (or
 * lane 0) up to itself.
 */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_warp_scan(typename Op::State v, unsigned heads, int lane, int *err)
{
	unsigned	below = heads & (0xFFFFFFFFu >> (31 - lane));
	int			start = below ? 31 - __clz(below) : 0;

#pragma unroll (sizeof(v) <= 16 ? 5 : 1)
	for (int d = 1; d < 32; d <<= 1)
	{
		typename Op::State left = seg_shfl<true>(v, d);

		if (lane - d >= start)
			v = seg_combine<Op>(left, v, err);
	}
	return v;
}

/* Folds groups of `lanes` neighbours in lane order; good in each group's lane 0. */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_warp_reduce(typename Op::State v, int lanes, int *err)
{
	int			lane = threadIdx.x & (lanes - 1);

#pragma unroll 1
	for (int d = 1; d < lanes; d <<= 1)
	{
		typename Op::State right = seg_shfl<false>(v, d);

		if ((lane & (2 * d - 1)) == 0)
			v = seg_combine<Op>(v, right, err);
	}
	return v;
}

/*
 * The state before a warp: the carry, and the totals of the warps before it
 * back to the nearest that had an end.
 */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_fold_warps(typename Op::State left, const typename Op::State *totals, const int *has_end,
			   int warps, int *err)
{
#pragma unroll 1
	for (int w = 0; w < warps; w++)
		left = has_end[w] ? totals[w] : seg_combine<Op>(left, totals[w], err);
	return left;
}

static __device__ __forceinline__ void
seg_copy16(void *to_shared, const void *from, int bytes)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::
				 "r"((unsigned) __cvta_generic_to_shared(to_shared)), "l"(from), "r"(bytes));
}

static __device__ __forceinline__ void
seg_copy8(void *to_shared, const void *from)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::
				 "r"((unsigned) __cvta_generic_to_shared(to_shared)), "l"(from));
}

static __device__ __forceinline__ void
seg_copy_wait()
{
	asm volatile("cp.async.wait_all;" ::: "memory");
}

/*
 * By one warp: the greatest segment s in [0, nsegments] with
 * offsets[s] - offsets[0] + weight * s <= diagonal.  Evenly long segments are
 * found at the first look, others in log32(nsegments) more.
 */
static __device__ __forceinline__ int64_t
seg_search(const int64_t *offsets, int64_t base, int64_t nsegments, int weight, int64_t total,
		   int64_t diagonal)
{
	int			lane = threadIdx.x & 31;
	int64_t		low = 0;
	int64_t		high = nsegments + 1;
	int64_t		first = (int64_t) ((double) diagonal / (double) (total > 0 ? total : 1) * nsegments) - 15;
	int64_t		probe = first + lane;
	bool		before = probe <= 0 ||
		(probe <= nsegments && offsets[probe] - base + weight * probe <= diagonal);
	int			found = __popc(__ballot_sync(0xFFFFFFFFu, before));

	if (found > 0 && first + found - 1 > low)
		low = first + found - 1;
	if (found < 32 && first + found < high)
		high = first + found;
	while (high - low > 1)
	{
		int64_t		step = (high - low + 32) / 33;

		probe = low + (lane + 1) * step;
		before = probe < high && offsets[probe] - base + weight * probe <= diagonal;
		found = __popc(__ballot_sync(0xFFFFFFFFu, before));
		low += found * step;
		if (found < 32 && low + step < high)
			high = low + step;
	}
	return low;
}

/* Where chunk c starts: a segment and an element. */
static __device__ __forceinline__ void
seg_chunk_start(const SegmentedArgs *a, int64_t nsegments, int weight, int chunk, int64_t *cut)
{
	int64_t		base = a->offsets[0];
	int64_t		total = a->nvalues + weight * nsegments;
	int64_t		diagonal = (total + a->chunks - 1) / a->chunks * chunk;
	int64_t		s,
				e;

	diagonal = diagonal < total ? diagonal : total;
	s = seg_search(a->offsets, base, nsegments, weight, total, diagonal);
	e = base + diagonal - weight * s;
	/* inside the weight of segment s's end: its elements are all taken */
	if (s < nsegments && e > a->offsets[s + 1])
		e = a->offsets[s + 1];
	if (s == nsegments)
		e = base + a->nvalues;
	cut[0] = s;
	cut[1] = e;
}

/* ---- a block's walk along its chunk ------------------------------------- */

/*
 * One tile is at work while the next one's elements and segment ends are on
 * their way to shared memory.  Barriers of a tile: its data are there; its
 * ends are counted (mixed tiles); the warps' totals are there; the results are
 * complete (mixed tiles).
 */
template <class Op, class InT>
struct SegBlock
{
	typedef SegShape<Op, InT> Shape;
	typedef typename Op::State State;
	typedef typename Op::Input Input;

	const SegmentedArgs &a;
	SegShared<Op, InT> &s;
	int			tid,
				lane,
				warp;
	int			err;
	int64_t		seg,			/* the segment open where the tile starts */
				elem,			/* the tile's first element */
				seg_end,		/* of the chunk */
				elem_end;
	int64_t		open;			/* the open segment surely has this many elements left */
	int			want_elems,		/* size of the next mixed tile, from the last one's */
				want_ends;
	State		kept;			/* this thread's part of the inner tiles since the last mixed one */
	bool		pending;		/* whether there were any */
	/* the tile on its way */
	int			buffer,
				lead,			/* unused elements before the first */
				n,				/* elements */
				ends;			/* segment ends fetched; -1: an inner tile */

	__device__ SegBlock(const SegmentedArgs &args, SegShared<Op, InT> &shared)
		: a(args), s(shared), tid(threadIdx.x), lane(threadIdx.x & 31), warp(threadIdx.x >> 5), err(0),
		  kept(Op::identity()), pending(false), buffer(0)
	{
	}

	/* Address of element e of segment `in`. */
	__device__ __forceinline__ const char *
	address(int64_t e, int64_t in)
	{
		if (a.sources != nullptr)
			e += a.sources[in] - a.offsets[in];
		return static_cast<const char *>(a.values) + e * Shape::in_size;
	}

	/*
	 * Elements before the one at p that share its 128 bytes: a tile fetches
	 * them too, so that the tiles after it start with a cache line.
	 */
	static __device__ __forceinline__ int
	misfit(const char *p)
	{
		int			bytes = (int) (reinterpret_cast<uintptr_t>(p) & 127);

		return Shape::in_size > 16 || bytes % Shape::in_size != 0 ? 0 : bytes / Shape::in_size;
	}

	/* Place in a buffer of unit q of row r. */
	static __device__ __forceinline__ int
	place(int r, int q)
	{
		if constexpr (Shape::unit == 16)
			q ^= r / (8 / Shape::units) & (Shape::units - 1);
		return r * Shape::stride + q * Shape::unit;
	}

	/* Place of byte `at` of the tile. */
	static __device__ __forceinline__ int
	place(int at)
	{
		return place(at / Shape::row, at % Shape::row / Shape::unit) + at % Shape::unit;
	}

	/* Starts the copy of n elements from p; `lead` more come along before them. */
	__device__ __forceinline__ void
	copy_rows(const char *p)
	{
		char	   *to = s.rows[buffer];

		if (Shape::unit == 16 && (reinterpret_cast<uintptr_t>(p) - lead * Shape::in_size) % 16 == 0)
		{
			const char *from = p - lead * Shape::in_size;
			int			bytes = (lead + n) * Shape::in_size;

#pragma unroll
			for (int r = 0; r < Shape::row / 16; r++)
			{
				int			at = (r * Shape::threads + tid) * 16;

				if (at < bytes)
					seg_copy16(to + place(at), from + at, bytes - at < 16 ? bytes - at : 16);
			}
		}
		else
			for (int at = tid * 8; at < n * Shape::in_size; at += Shape::threads * 8)
				seg_copy8(to + place(at), p + at);
	}

	/* Chooses the tile at (seg, elem) and starts to fetch it. */
	__device__ __forceinline__ void
	fetch()
	{
		bool		inner = open >= Shape::tile;
		const char *p = inner ? address(elem, seg) :
			static_cast<const char *>(a.values) + elem * Shape::in_size;
		int			limit = inner ? Shape::tile : want_elems;

		lead = a.sources && !inner ? 0 : misfit(p);
		limit = limit < Shape::tile - lead ? limit : Shape::tile - lead;
		n = (int) (elem_end - elem < limit ? elem_end - elem : limit);
		ends = inner ? -1 : (int) (seg_end - seg < want_ends ? seg_end - seg : want_ends);
		for (int k = tid; k < ends; k += Shape::threads)
			seg_copy8(&s.ends[k], a.offsets + seg + 1 + k);
		if (a.sources == nullptr || inner)
			copy_rows(p);
	}

	/* The elements of a mixed tile of indirect segments, once its ends are counted. */
	__device__ void
	gather_rows(int64_t first_seg, int64_t first_elem, int elems, int count)
	{
		for (int e = tid; e < elems; e += Shape::threads)
		{
			int			low = 0,
						high = count;
			InT			x;

			while (low < high)
			{
				int			mid = (low + high) / 2;

				if (s.ends[mid] - first_elem > e)
					high = mid;
				else
					low = mid + 1;
			}
			memcpy(&x, address(first_elem + e, first_seg + low), sizeof(InT));
			memcpy(s.rows[buffer] + place(e * Shape::in_size), &x, sizeof(InT));
		}
		__syncthreads();
	}

	__device__ __forceinline__ void
	read_row(InT *x)
	{
		typedef typename SegUnit<Shape::unit>::type Unit;
		Unit		raw[Shape::units];

#pragma unroll
		for (int q = 0; q < Shape::units; q++)
			raw[q] = *reinterpret_cast<const Unit *>(s.rows[buffer] + place(tid, q));
		memcpy(x, raw, Shape::row);
	}

	/* The marks of a thread's row, cleared for the next tile. */
	__device__ __forceinline__ void
	take_marks(uint16_t *m)
	{
		typedef typename SegUnit<(Shape::items >= 8 ? 16 : Shape::items * 2)>::type Unit;
		constexpr int units = Shape::items * 2 / sizeof(Unit);
		Unit	   *from = reinterpret_cast<Unit *>(s.marks) + tid * units;
		Unit		raw[units];

#pragma unroll
		for (int q = 0; q < units; q++)
		{
			raw[q] = from[q];
			from[q] = Unit();
		}
		memcpy(m, raw, Shape::items * 2);
	}

	/*
	 * Folds a row onto v.  With marks, stages the result of each segment that ends in
	 * it, the first of which still lacks what came before the row; *first is
	 * its number or -1.  Unless whole, only elements from_item up to to_item count.
	 */
	template <bool whole, bool marked>
	__device__ __forceinline__ State
	fold_row(State v, const InT *x, int from_item, int to_item, int *first)
	{
		constexpr int group = Shape::items < 4 ? Shape::items : 4;
		uint16_t	m[Shape::items];

		if (marked)
			take_marks(m);
#pragma unroll
		for (int g = 0; g < Shape::items; g += group)
		{
			bool		any = false;

			/* most groups of four have no mark at all */
#pragma unroll
			for (int k = g; marked && k < g + group; k++)
				any |= m[k] != 0;
			if (any)
			{
#pragma unroll
				for (int k = g; k < g + group; k++)
				{
					if (whole || (k >= from_item && k < to_item))
						v = seg_step<Op>(v, (Input) x[k], &err);
					if (m[k] != 0)
					{
						s.stage[m[k] - 1] = v;
						*first = *first < 0 ? m[k] - 1 : *first;
						v = Op::identity();
					}
				}
			}
			else
			{
#pragma unroll
				for (int k = g; k < g + group; k++)
					if (whole || (k >= from_item && k < to_item))
						v = seg_step<Op>(v, (Input) x[k], &err);
			}
		}
		return v;
	}

	/*
	 * Marks the last element of each segment that ends in the tile, stages the
	 * results of empty ones, and finds what is before and after the tile's end.
	 */
	__device__ __forceinline__ void
	mark_ends()
	{
		int64_t		limit = elem + n;

		if (tid == 0)
		{
			s.first_empty = ends > 0 && s.ends[0] == elem;
			if (ends == 0 || s.ends[0] > limit)
			{
				s.count = 0;
				s.after = ends == 0 ? -1 : s.ends[0];
			}
		}
		for (int k = tid; k < ends; k += Shape::threads)
		{
			int64_t		e = s.ends[k];

			if (e > limit)
				break;
			if (e != (k > 0 ? s.ends[k - 1] : elem))
				s.marks[lead + (int) (e - elem) - 1] = k + 1;
			else				/* of a tile's first segment, the carry may be all */
				s.stage[k] = k > 0 ? Op::identity() : s.carry;
			if (k + 1 == ends || s.ends[k + 1] > limit)
			{
				s.count = k + 1;
				s.last = e;
				s.after = k + 1 == ends ? -1 : s.ends[k + 1];
			}
		}
	}

	/* Sets the sizes of the next mixed tile from what limited this one. */
	__device__ __forceinline__ void
	adapt(int fetched, int count, int taken, bool out_of_ends)
	{
		if (out_of_ends)
		{
			if (fetched < Shape::ends)
				want_ends = want_ends * 2;
			else
				want_elems = taken + taken / 8 + 32;
		}
		else
		{
			if (count < want_ends / 4)
				want_ends = want_ends / 2 > 32 ? want_ends / 2 : 32;
			want_elems = want_elems * 2;
		}
		want_elems = want_elems < Shape::tile ? want_elems : Shape::tile;
		want_ends = want_ends < Shape::ends ? want_ends : Shape::ends;
	}

	/* The tile that is there: its work, while the next one is fetched. */
	__device__ __forceinline__ void
	work()
	{
		int64_t		first_seg = seg;
		int64_t		first_elem = elem;
		int			here = n;
		int			row_start = tid * Shape::items - lead;
		int			count = 0;
		int			first = -1;
		bool		first_empty = false;
		bool		inner = ends < 0;
		InT			x[Shape::items];
		State		v;

		if (inner)
			open -= n;
		else
		{
			bool		out_of_ends;

			flush();
			mark_ends();
			__syncthreads();
			count = s.count;
			first_empty = s.first_empty;
			out_of_ends = count > 0 && count == ends && seg + count < seg_end;
			if (out_of_ends)
				here = (int) (s.last - elem);
			open = elem_end - elem - here;
			if (s.after >= 0 && s.after - elem - here < open)
				open = s.after - elem - here;
			if (out_of_ends)
				open = 0;
			if (a.sources != nullptr)
				gather_rows(first_seg, first_elem, here, count);
			adapt(ends, count, here, out_of_ends);
		}
		read_row(x);
		seg += count;
		elem += here;
		buffer ^= 1;
		if (unfinished())
			fetch();
		v = Op::identity();
		if constexpr (Op::commutative)
			if (inner)
				v = kept;
		if (row_start < 0 || row_start + Shape::items > here)
			v = fold_row<false, true>(v, x, -row_start, here - row_start, &first);
		else if (count > 0)
			v = fold_row<true, true>(v, x, 0, 0, &first);
		else
			v = fold_row<true, false>(v, x, 0, 0, &first);
		if (Op::commutative && inner)
		{
			kept = v;
			pending = true;
		}
		else if (count == 0)
			carry_on(v);
		else
			finish(v, first, first_seg, count, first_empty);
	}

	/* Adds the threads' states, in thread order, to the carry. */
	__device__ __forceinline__ void
	carry_on(State v)
	{
		v = seg_warp_reduce<Op>(v, 32, &err);
		if (lane == 0)
			s.totals[warp] = v;
		__syncthreads();
		if (tid == 0)
		{
			State		c = s.carry;

			for (int w = 0; w < Shape::warps; w++)
				c = seg_combine<Op>(c, s.totals[w], &err);
			s.carry = c;
		}
	}

	/* Completes each thread's first result, writes the results, sets the carry. */
	__device__ __forceinline__ void
	finish(State v, int first, int64_t first_seg, int count, bool first_empty)
	{
		typedef typename SegUnit<(Shape::state_size % 8 == 0 ? 8 : 4)>::type Word;
		constexpr int words = Shape::state_size / sizeof(Word);
		unsigned	heads = __ballot_sync(0xFFFFFFFFu, first >= 0);
		State		left;

		v = seg_warp_scan<Op>(v, heads, lane, &err);
		left = seg_shfl<true>(v, 1);
		if (lane == 31)
		{
			s.totals[warp] = v;
			s.total_has_end[warp] = heads != 0;
		}
		__syncthreads();
		if (first >= 0)
		{
			if ((heads & ((1u << lane) - 1)) == 0)
			{
				/* no end before in this warp: the warps to the left count */
				State		before = first_empty ? Op::identity() : s.carry;

				before = seg_fold_warps<Op>(before, s.totals, s.total_has_end, warp, &err);
				left = lane > 0 ? seg_combine<Op>(before, left, &err) : before;
			}
			s.stage[first] = seg_combine<Op>(left, s.stage[first], &err);
		}
		__syncthreads();
		for (int q = tid; q < count * words; q += Shape::threads)
			reinterpret_cast<Word *>(static_cast<State *>(a.states) + first_seg)[q] =
				reinterpret_cast<const Word *>(s.stage)[q];
		/* a tile with ends but without marks has empty segments alone, and no elements before them */
		if (tid == 0)
			s.carry = seg_fold_warps<Op>(Op::identity(), s.totals, s.total_has_end, Shape::warps, &err);
	}

	__device__ __forceinline__ bool
	unfinished()
	{
		return seg < seg_end || elem < elem_end;
	}

	/* Adds what commutative inner tiles left in the threads to the carry. */
	__device__ __forceinline__ void
	flush()
	{
		if (Op::commutative && pending)
		{
			carry_on(kept);
			kept = Op::identity();
			pending = false;
		}
	}

	/* Takes the chunk's ends, guesses the first tile from its mean length. */
	__device__ __forceinline__ void
	start()
	{
		int64_t		elems,
					segs;

		seg = s.cut[0];
		elem = s.cut[1];
		seg_end = s.cut[2];
		elem_end = s.cut[3];
		elems = elem_end - elem;
		segs = seg_end - seg;
		open = segs == 0 ? elems : 0;
		want_elems = Shape::tile;
		want_ends = Shape::ends;
		if (elems * Shape::ends < segs * Shape::tile)
			want_elems = (int) (elems * Shape::ends / segs) + 32;
		else if (elems > 0)
			want_ends = (int) (segs * Shape::tile / elems) + 32;
		want_elems = want_elems < Shape::tile ? want_elems : Shape::tile;
		want_ends = want_ends < Shape::ends ? want_ends : Shape::ends;
		for (int q = tid; q < Shape::tile / 2; q += Shape::threads)
			reinterpret_cast<uint32_t *>(s.marks)[q] = 0;
	}

	__device__ __forceinline__ void
	run()
	{
		start();
		if (unfinished())
			fetch();
		while (unfinished())
		{
			seg_copy_wait();
			__syncthreads();
			work();
		}
		/* the last tile may still be adding up its totals */
		__syncthreads();
		flush();
		if (err != 0 && a.errors != nullptr)
			atomicOr(a.errors, (unsigned) err);
	}
};

/* ---- kernels ----------------------------------------------------------- */

template <class Op, class InT>
__global__ void __launch_bounds__(SegShape<Op, InT>::threads)
segmented_tiles(SegmentedArgs a)
{
	typedef SegShape<Op, InT> Shape;
	extern __shared__ __align__(16) char seg_memory[];
	SegShared<Op, InT> &s = *reinterpret_cast<SegShared<Op, InT> *>(seg_memory);
	int64_t		nsegments = a.nsegments;
	int			warp = threadIdx.x >> 5;

	seg_launch_order();
	if (a.nsegments_device != nullptr)
		nsegments = *a.nsegments_device;
	if (warp < 2)
	{
		int64_t		cut[2];

		if (a.starts != nullptr)
		{
			cut[0] = a.starts[2 * (blockIdx.x + warp)];
			cut[1] = a.starts[2 * (blockIdx.x + warp) + 1];
		}
		else
			seg_chunk_start(&a, nsegments, Shape::weight, blockIdx.x + warp, cut);
		if ((threadIdx.x & 31) == 0)
		{
			s.cut[2 * warp] = cut[0];
			s.cut[2 * warp + 1] = cut[1];
		}
	}
	if (threadIdx.x == 0)
		s.carry = Op::identity();
	__syncthreads();

	SegBlock<Op, InT> block(a, s);

	block.run();
	if (threadIdx.x == 0)
	{
		static_cast<typename Op::State *>(a.carries)[blockIdx.x] = s.carry;
		a.first_segments[blockIdx.x] = s.cut[0];
		if (blockIdx.x == gridDim.x - 1)
			a.first_segments[gridDim.x] = nsegments;
	}
}

/* One block: puts what the chunks left open before the next results, in order. */
template <class Op>
__global__ void __launch_bounds__(SegFixup<Op>::threads)
segmented_fixup(SegmentedArgs a)
{
	typedef typename Op::State State;
	constexpr int threads = SegFixup<Op>::threads;
	__shared__ alignas(16) State totals[threads / 32];
	__shared__ int has_end[threads / 32];
	const State *carries = static_cast<const State *>(a.carries);
	State	   *states = static_cast<State *>(a.states);
	constexpr int batch = sizeof(State) <= 16 ? 4 : 1;
	int			each = (a.chunks + threads - 1) / threads;
	int			begin = threadIdx.x * each;
	int			end = begin + each < a.chunks ? begin + each : a.chunks;
	int			lane = threadIdx.x & 31;
	int			warp = threadIdx.x >> 5;
	int			err = 0;
	int64_t		first = -1;
	State		v = Op::identity();
	State		left;

	seg_launch_order();
	for (int c = begin; c < end; c += batch)
	{
		int64_t		segments[batch + 1];
		State		open[batch];

#pragma unroll
		for (int u = 0; u <= batch; u++)
			segments[u] = a.first_segments[c + u < a.chunks ? c + u : a.chunks];
#pragma unroll
		for (int u = 0; u < batch; u++)
			open[u] = carries[c + u < a.chunks ? c + u : a.chunks - 1];
#pragma unroll
		for (int u = 0; u < batch; u++)
			if (c + u < end)
			{
				if (segments[u + 1] > segments[u])
				{
					State	   *state = states + segments[u];

					*state = seg_combine<Op>(v, *state, &err);
					first = first < 0 ? segments[u] : first;
					v = open[u];
				}
				else
					v = seg_combine<Op>(v, open[u], &err);
			}
	}

	unsigned	heads = __ballot_sync(0xFFFFFFFFu, first >= 0);

	v = seg_warp_scan<Op>(v, heads, lane, &err);
	left = seg_shfl<true>(v, 1);
	if (lane == 31)
	{
		totals[warp] = v;
		has_end[warp] = heads != 0;
	}
	__syncthreads();
	if (first >= 0)
	{
		if ((heads & ((1u << lane) - 1)) == 0)
		{
			State		before = seg_fold_warps<Op>(Op::identity(), totals, has_end, warp, &err);

			left = lane > 0 ? seg_combine<Op>(before, left, &err) : before;
		}
		states[first] = seg_combine<Op>(left, states[first], &err);
	}
	if (err != 0 && a.errors != nullptr)
		atomicOr(a.errors, (unsigned) err);
}

/* ---- few elements, and states ------------------------------------------ */

/* A lane's share of one segment: every `lanes`-th element, in batches of `unroll` loads. */
template <class Op, class InT, int unroll>
static __device__ __forceinline__ typename Op::State
seg_fold_lanes(const SegmentedArgs &a, int64_t s, int64_t begin, int64_t end, int lane, int lanes,
			   int *err)
{
	const InT  *x = static_cast<const InT *>(a.values);
	typename Op::State v = Op::identity();
	int64_t		i = begin + lane;

	if (begin < end && a.sources != nullptr)
		x += a.sources[s] - begin;
	for (; i + (unroll - 1) * lanes < end; i += unroll * lanes)
	{
		InT			batch[unroll];

#pragma unroll
		for (int u = 0; u < unroll; u++)
			batch[u] = x[i + u * lanes];
#pragma unroll
		for (int u = 0; u < unroll; u++)
			v = seg_step<Op>(v, (typename Op::Input) batch[u], err);
	}
	for (; i < end; i += lanes)
		v = seg_step<Op>(v, (typename Op::Input) x[i], err);
	return v;
}

/*
 * Few elements of a commutative operator: one launch, 2^lanes_log2 threads a segment (up to a warp; 8
 * means the whole block).  A segment much longer than the mean is left to the
 * whole block, after the others.
 */
template <class Op, class InT>
__global__ void __launch_bounds__(256)
segmented_small(SegmentedArgs a, int lanes_log2)
{
	typedef typename Op::State State;
	typedef typename Op::Input Input;
	__shared__ alignas(16) State totals[8];
	__shared__ int long_ones[257];
	int			groups = 256 >> lanes_log2;
	int			lanes = lanes_log2 > 5 ? 32 : 1 << lanes_log2;
	int			err = 0;
	int			lane = threadIdx.x & (lanes - 1);
	int64_t		first = (int64_t) blockIdx.x * groups;
	int64_t		s = first + (threadIdx.x >> lanes_log2);
	int64_t		begin = 0,
				end = 0;
	State		v = Op::identity();

	seg_launch_order();
	if (threadIdx.x == 0)
		long_ones[0] = 0;
	__syncthreads();
	if (lanes_log2 <= 5)
	{
		bool		deferred;

		if (s < a.nsegments)
		{
			begin = a.offsets[s];
			end = a.offsets[s + 1];
		}
		deferred = end - begin > (SEG_SMALL_LONG << lanes_log2);
		if (deferred && lane == 0)
			long_ones[1 + atomicAdd(&long_ones[0], 1)] = (int) (s - first);
		if (!deferred)
			v = seg_fold_lanes<Op, InT, 8>(a, s, begin, end, lane, lanes, &err);
		v = seg_warp_reduce<Op>(v, lanes, &err);
		if (!deferred && lane == 0 && s < a.nsegments)
			static_cast<State *>(a.states)[s] = v;
		__syncthreads();
	}
	else
	{
		if (threadIdx.x == 0)
		{
			long_ones[0] = 1;
			long_ones[1] = 0;
		}
		__syncthreads();
	}
	for (int q = 0; q < long_ones[0]; q++)
	{
		s = first + long_ones[1 + q];
		begin = a.offsets[s];
		end = a.offsets[s + 1];
		v = seg_fold_lanes<Op, InT, 16>(a, s, begin, end, threadIdx.x, 256, &err);
		v = seg_warp_reduce<Op>(v, 32, &err);
		if ((threadIdx.x & 31) == 0)
			totals[threadIdx.x >> 5] = v;
		__syncthreads();
		if (threadIdx.x == 0)
		{
			for (int w = 1; w < 8; w++)
				v = seg_combine<Op>(v, totals[w], &err);
			static_cast<State *>(a.states)[s] = v;
		}
		__syncthreads();
	}
	if (err != 0 && a.errors != nullptr)
		atomicOr(a.errors, (unsigned) err);
}

/* Combines two arrays of states, left before right; out may be one of them. */
template <class Op>
__global__ void __launch_bounds__(256)
combine_states(int64_t n, const typename Op::State *left, const typename Op::State *right,
			   typename Op::State *out, uint32_t *errors)
{
	int			err = 0;

	for (int64_t i = (int64_t) blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t) gridDim.x * 256)
		out[i] = seg_combine<Op>(left[i], right[i], &err);
	if (err != 0 && errors != nullptr)
		atomicOr(errors, (unsigned) err);
}

#endif							/* GPUAGG_SEGMENTED_CUH */
