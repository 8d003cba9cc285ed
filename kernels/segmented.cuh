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
 *	inner tile	the same without marks: no segment ends inside
 *	stream		commutative operators in a long segment: each thread folds
 *				every 256th 16-byte vector from registers, one reduction at the end
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
	static constexpr int threads = state_size > 64 ? 128 : 256;
	static constexpr int warps = threads / 32;
	/* consecutive elements of a thread: 64 bytes where that is several */
	static constexpr int items = in_size <= 4 ? 16 : in_size <= 64 ? 64 / in_size : 1;
	static constexpr int tile = threads * items;
	/* copies to shared memory are of 16 bytes for small elements, else of 8 */
	static constexpr int unit = in_size <= 16 ? 16 : 8;
	/* a thread's elements, padded so that the threads' rows meet all banks */
	static constexpr int row = items * in_size;
	static constexpr int stride = row + ((row / unit) % 2 == 0 ? unit : 0);
	/* segment ends of a tile: as many results as 16 KB hold */
	static constexpr int ends = (16384 / state_size < 2048) ? (16384 / state_size) / 8 * 8 : 2048;
	static constexpr int end_rounds = (ends + threads - 1) / threads;
	static constexpr int rows_bytes = threads * stride;
	static constexpr int stage_bytes = ends * state_size;
	static constexpr int pool_bytes = rows_bytes > stage_bytes ? rows_bytes : stage_bytes;
	/* a stream ignores the order; it must repay the block's reduction at its end */
	static constexpr bool streams = Op::commutative && in_size <= 16;
	static constexpr int64_t stream_min = 2 * tile;
	/* weight of a segment's end against an element, by the bytes each moves */
	static constexpr int weight_bytes = (8 + state_size) / in_size;
	static constexpr int weight = weight_bytes < 1 ? 1 : weight_bytes > 8 ? 8 : weight_bytes;
	static_assert(row % unit == 0, "rows are whole units");
};

template <class Op, class InT>
struct SegShared
{
	typedef SegShape<Op, InT> Shape;

	/* the elements' rows, then the staged results */
	alignas(16) char pool[Shape::pool_bytes];
	/* 0, or 1 + the number of the segment end right after this element */
	alignas(16) uint16_t marks[Shape::tile];
	uint32_t	ends[Shape::ends];	/* relative to the tile's first element */
	alignas(16) typename Op::State totals[Shape::warps];
	alignas(16) typename Op::State carry;
	int			total_has_end[Shape::warps];
	int			count;			/* segment ends in the tile */
	int64_t		cut[4];			/* segment, element of the chunk's start and end */
};

/* ---- pieces ------------------------------------------------------------ */

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

#pragma unroll 1
	for (int d = 1; d < 32; d <<= 1)
	{
		typename Op::State left = seg_shfl<true>(v, d);

		if (lane - d >= start)
			v = seg_combine<Op>(left, v, err);
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
		int64_t		step = (high - low + 31) / 33 + 1;

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
	int64_t		seg,			/* the open segment */
				elem,			/* the first element not yet taken */
				seg_end,		/* of the chunk */
				elem_end;
	int64_t		open;			/* the open segment surely has this many elements left */
	int			want_elems,		/* size of the next tile, from the last one's */
				want_ends;

	__device__ SegBlock(const SegmentedArgs &args, SegShared<Op, InT> &shared)
		: a(args), s(shared), tid(threadIdx.x), lane(threadIdx.x & 31), warp(threadIdx.x >> 5), err(0)
	{
	}

	__device__ State *stage() { return reinterpret_cast<State *>(s.pool); }

	/* Address of element e of segment `in` (the open one). */
	__device__ __forceinline__ const char *
	address(int64_t e, int64_t in)
	{
		if (a.sources != nullptr)
			e += a.sources[in] - a.offsets[in];
		return static_cast<const char *>(a.values) + e * Shape::in_size;
	}

	/* Elements before the one at p that share its 16 bytes. */
	static __device__ __forceinline__ int
	misfit(const char *p)
	{
		if (Shape::in_size >= 16)
			return 0;
		return (int) (reinterpret_cast<uintptr_t>(p) & 15) / Shape::in_size;
	}

	/*
	 * Starts the copy of n elements from p to the rows, the first going to place
	 * `lead` (the elements before it in its 16 bytes come along, unused).
	 */
	__device__ __forceinline__ void
	copy_rows(const char *p, int lead, int n)
	{
		if (Shape::unit == 16 && (reinterpret_cast<uintptr_t>(p) - lead * Shape::in_size) % 16 == 0)
		{
			const char *from = p - lead * Shape::in_size;
			int			bytes = (lead + n) * Shape::in_size;

#pragma unroll
			for (int r = 0; r < Shape::row / 16; r++)
			{
				int			at = (r * Shape::threads + tid) * 16;

				if (at < bytes)
					seg_copy16(s.pool + at + at / Shape::row * (Shape::stride - Shape::row), from + at,
							   bytes - at < 16 ? bytes - at : 16);
			}
		}
		else
			for (int at = tid * 8; at < n * Shape::in_size; at += Shape::threads * 8)
				seg_copy8(s.pool + at + at / Shape::row * (Shape::stride - Shape::row), p + at);
	}

	/* The same for indirect segments, once the tile's ends are known; waits. */
	__device__ void
	gather_rows(int n)
	{
		for (int e = tid; e < n; e += Shape::threads)
		{
			int			low = 0,
						high = s.count;
			int			at = e * Shape::in_size;
			InT			x;

			while (low < high)
			{
				int			mid = (low + high) / 2;

				if (s.ends[mid] > (uint32_t) e)
					high = mid;
				else
					low = mid + 1;
			}
			memcpy(&x, address(elem + e, seg + low), sizeof(InT));
			memcpy(s.pool + at + at / Shape::row * (Shape::stride - Shape::row), &x, sizeof(InT));
		}
	}

	__device__ __forceinline__ void
	read_row(InT *x)
	{
		const char *from = s.pool + tid * Shape::stride;

		if (Shape::unit == 16)
		{
			uint4		raw[Shape::row / Shape::unit];

#pragma unroll
			for (int q = 0; q < Shape::row / Shape::unit; q++)
				raw[q] = *reinterpret_cast<const uint4 *>(from + q * 16);
			memcpy(x, raw, Shape::row);
		}
		else
		{
			uint64_t	raw[Shape::row / Shape::unit];

#pragma unroll
			for (int q = 0; q < Shape::row / Shape::unit; q++)
				raw[q] = *reinterpret_cast<const uint64_t *>(from + q * 8);
			memcpy(x, raw, Shape::row);
		}
	}

	__device__ __forceinline__ void
	read_marks(uint16_t *m)
	{
		const char *from = reinterpret_cast<const char *>(s.marks) + tid * Shape::items * 2;

		if (Shape::items >= 8)
		{
			uint4		raw[(Shape::items + 7) / 8];

#pragma unroll
			for (int q = 0; q < Shape::items / 8; q++)
				raw[q] = reinterpret_cast<const uint4 *>(from)[q];
			memcpy(m, raw, Shape::items * 2);
		}
		else
#pragma unroll
			for (int q = 0; q < Shape::items; q++)
				m[q] = reinterpret_cast<const uint16_t *>(from)[q];
	}

	/* Folds a row in which no segment ends. */
	__device__ __forceinline__ State
	fold_row(const InT *x, int lead, int n)
	{
		State		v = Op::identity();

#pragma unroll
		for (int k = 0; k < Shape::items; k++)
			if ((unsigned) (tid * Shape::items + k - lead) < (unsigned) n)
				v = seg_step<Op>(v, (Input) x[k], &err);
		return v;
	}

	/*
	 * Folds a row and stages the result of each segment that ends in it; the
	 * first still lacks what came before the row.  *first is its number or -1.
	 */
	__device__ __forceinline__ State
	fold_marked_row(const InT *x, int lead, int n, int *first)
	{
		State		v = Op::identity();
		uint16_t	m[(Shape::items + 7) / 8 * 8];

		read_marks(m);
		*first = -1;
#pragma unroll
		for (int k = 0; k < Shape::items; k++)
		{
			if ((unsigned) (tid * Shape::items + k - lead) < (unsigned) n)
				v = seg_step<Op>(v, (Input) x[k], &err);
			if (m[k] != 0)
			{
				stage()[m[k] - 1] = v;
				*first = *first < 0 ? m[k] - 1 : *first;
				v = Op::identity();
			}
		}
		return v;
	}

	/* Adds the threads' states, in thread order, to the carry.  Ends with a barrier. */
	__device__ __forceinline__ void
	carry_on(State v)
	{
		v = seg_warp_scan<Op>(v, 0, lane, &err);
		if (lane == 31)
			s.totals[warp] = v;
		__syncthreads();
		if (tid == 0)
		{
			State		c = s.carry;

			for (int w = 0; w < Shape::warps; w++)
				c = seg_combine<Op>(c, s.totals[w], &err);
			s.carry = c;
		}
		__syncthreads();
	}

	/* A tile inside the open segment. */
	__device__ __forceinline__ void
	inner_tile()
	{
		const char *p = address(elem, seg);
		int			lead = misfit(p);
		int			n = (int) (open < Shape::tile - lead ? open : Shape::tile - lead);
		InT			x[Shape::items];

		copy_rows(p, lead, n);
		seg_copy_wait();
		__syncthreads();
		read_row(x);
		carry_on(fold_row(x, lead, n));
		elem += n;
		open -= n;
	}

	/* The rest of the open segment (or of the chunk), without shared memory. */
	__device__ __forceinline__ void
	stream()
	{
		constexpr int per_vector = 16 / Shape::in_size;
		constexpr int unroll = 4;
		const char *p = address(elem, seg);
		int64_t		head = Shape::in_size < 16 ? (per_vector - misfit(p)) % per_vector : 0;
		bool		aligned = (reinterpret_cast<uintptr_t>(p) + head * Shape::in_size) % 16 == 0;
		int64_t		vectors = aligned ? (open - head) / per_vector : 0;
		const uint4 *v = reinterpret_cast<const uint4 *>(p + head * Shape::in_size);
		const InT  *tail = reinterpret_cast<const InT *>(p) + (aligned ? head + vectors * per_vector : 0);
		int64_t		ntail = open - (aligned ? head + vectors * per_vector : 0);
		State		acc = Op::identity();
		int64_t		i = tid;

		if (aligned && tid < head)
			acc = seg_step<Op>(acc, (Input) reinterpret_cast<const InT *>(p)[tid], &err);
		for (; i + (unroll - 1) * Shape::threads < vectors; i += unroll * Shape::threads)
		{
			uint4		raw[unroll];

#pragma unroll
			for (int u = 0; u < unroll; u++)
				raw[u] = __ldcs(v + i + u * Shape::threads);
#pragma unroll
			for (int u = 0; u < unroll; u++)
				acc = fold_vector(acc, raw[u]);
		}
		for (; i < vectors; i += Shape::threads)
			acc = fold_vector(acc, __ldcs(v + i));
#pragma unroll 4
		for (i = tid; i < ntail; i += Shape::threads)
			acc = seg_step<Op>(acc, (Input) tail[i], &err);
		elem += open;
		open = 0;
		carry_on(acc);
	}

	__device__ __forceinline__ State
	fold_vector(State acc, uint4 raw)
	{
		constexpr int per_vector = 16 / Shape::in_size;
		InT			x[per_vector];

		memcpy(x, &raw, 16);
#pragma unroll
		for (int k = 0; k < per_vector; k++)
			acc = seg_step<Op>(acc, (Input) x[k], &err);
		return acc;
	}

	/* Reads the next `ends` segment ends, relative to elem, and clears the marks. */
	__device__ __forceinline__ void
	load_ends(int ends)
	{
#pragma unroll
		for (int r = 0; r < Shape::end_rounds; r++)
		{
			int			k = r * Shape::threads + tid;

			if (k < ends)
			{
				int64_t		e = a.offsets[seg + 1 + k] - elem;

				s.ends[k] = e < INT32_MAX ? (uint32_t) e : INT32_MAX;
			}
		}
		for (int q = tid; q < Shape::tile * 2 / 16; q += Shape::threads)
			reinterpret_cast<uint4 *>(s.marks)[q] = make_uint4(0, 0, 0, 0);
	}

	/*
	 * Marks the last element of each segment that ends within n elements and
	 * finds their count.
	 */
	__device__ __forceinline__ void
	mark_ends(int ends, int lead, int n)
	{
		if (tid == 0 && (ends == 0 || s.ends[0] > (uint32_t) n))
			s.count = 0;
#pragma unroll
		for (int r = 0; r < Shape::end_rounds; r++)
		{
			int			k = r * Shape::threads + tid;

			if (k < ends)
			{
				uint32_t	e = s.ends[k];
				uint32_t	before = k > 0 ? s.ends[k - 1] : 0;

				if (e <= (uint32_t) n)
				{
					if (e > before)
						s.marks[lead + e - 1] = k + 1;
					if (k + 1 == ends || s.ends[k + 1] > (uint32_t) n)
						s.count = k + 1;
				}
			}
		}
	}

	/* Results of empty segments; the first of a tile may be a whole carry. */
	__device__ __forceinline__ void
	stage_empty(int count)
	{
#pragma unroll
		for (int r = 0; r < Shape::end_rounds; r++)
		{
			int			k = r * Shape::threads + tid;

			if (k < count && s.ends[k] == (k > 0 ? s.ends[k - 1] : 0))
				stage()[k] = k > 0 ? Op::identity() : s.carry;
		}
	}

	/* Writes the staged results out, word by word. */
	__device__ __forceinline__ void
	write_results(int count)
	{
		typedef typename SegWord<Shape::state_size % 8 == 0>::type Word;
		constexpr int words = Shape::state_size / sizeof(Word);
		const Word *from = reinterpret_cast<const Word *>(s.pool);
		Word	   *to = reinterpret_cast<Word *>(static_cast<State *>(a.states) + seg);

		for (int q = tid; q < count * words; q += Shape::threads)
			to[q] = from[q];
	}

	/* Sets the sizes of the next tile from what limited this one. */
	__device__ __forceinline__ void
	adapt(int ends, int count, int taken)
	{
		if (count == ends && seg + count < seg_end)
		{
			/* out of ends: ask for more of them, or for fewer elements */
			if (want_ends < Shape::ends)
				want_ends = want_ends * 2 < Shape::ends ? want_ends * 2 : Shape::ends;
			else
				want_elems = taken + taken / 8 + 32;
		}
		else
		{
			if (count < want_ends / 4)
				want_ends = want_ends / 2 > 64 ? want_ends / 2 : 64;
			want_elems = want_elems * 2;
		}
		want_elems = want_elems < Shape::tile ? want_elems : Shape::tile;
	}

	/* A tile with segment ends, perhaps. */
	__device__ __forceinline__ void
	mixed_tile()
	{
		const char *p = static_cast<const char *>(a.values) + elem * Shape::in_size;
		int			lead = a.sources ? 0 : misfit(p);
		int			limit = want_elems < Shape::tile - lead ? want_elems : Shape::tile - lead;
		int			n = (int) (elem_end - elem < limit ? elem_end - elem : limit);
		int			ends = (int) (seg_end - seg < want_ends ? seg_end - seg : want_ends);
		int			count,
					first = -1;
		InT			x[Shape::items];
		State		v;

		if (!a.sources)
			copy_rows(p, lead, n);
		load_ends(ends);
		seg_copy_wait();
		__syncthreads();
		mark_ends(ends, lead, n);
		if (a.sources)
		{
			__syncthreads();
			gather_rows(n);
			__syncthreads();
		}
		read_row(x);
		__syncthreads();
		count = s.count;
		/* out of ends: elements after the last one belong to the next tile */
		if (count == ends && ends > 0 && seg + ends < seg_end)
			n = s.ends[ends - 1];
		open = count < ends ? (int64_t) s.ends[count] - n : seg + count == seg_end ? elem_end - elem - n : 0;
		if (open > elem_end - elem - n)
			open = elem_end - elem - n;
		adapt(ends, count, n);
		if (count == 0)
			carry_on(fold_row(x, lead, n));
		else
		{
			v = fold_marked_row(x, lead, n, &first);
			stage_empty(count);
			finish_marked(v, first, count);
		}
		seg += count;
		elem += n;
	}

	/* Completes each thread's first result, writes the results, sets the carry. */
	__device__ __forceinline__ void
	finish_marked(State v, int first, int count)
	{
		unsigned	heads = __ballot_sync(0xFFFFFFFFu, first >= 0);
		unsigned	before = heads & ((1u << lane) - 1);
		State		left,
					carry;

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
			if (before == 0)
			{
				/* nobody in this warp ended a segment before: the warps to the left count */
				carry = s.ends[0] == 0 ? Op::identity() : s.carry;
				carry = seg_fold_warps<Op>(carry, s.totals, s.total_has_end, warp, &err);
				left = lane > 0 ? seg_combine<Op>(carry, left, &err) : carry;
			}
			stage()[first] = seg_combine<Op>(left, stage()[first], &err);
		}
		__syncthreads();
		write_results(count);
		if (tid == Shape::threads - 1)
			s.carry = seg_fold_warps<Op>(Op::identity(), s.totals, s.total_has_end, Shape::warps, &err);
		__syncthreads();
	}

	__device__ __forceinline__ void
	run()
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
		/* a first guess from the chunk's mean length */
		if (elems * Shape::ends < segs * Shape::tile)
			want_elems = (int) (elems * Shape::ends / segs) + 32;
		else if (elems > 0)
			want_ends = (int) (segs * Shape::tile / elems) + 64;
		want_elems = want_elems < Shape::tile ? want_elems : Shape::tile;
		want_ends = want_ends < Shape::ends ? want_ends : Shape::ends;
		while (seg < seg_end || elem < elem_end)
		{
			if constexpr (Shape::streams)
				if (open >= Shape::stream_min)
				{
					stream();
					continue;
				}
			if (open >= Shape::tile)
				inner_tile();
			else
				mixed_tile();
		}
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
	__shared__ SegShared<Op, InT> s;
	int64_t		nsegments = a.nsegments_device ? *a.nsegments_device : a.nsegments;
	int			warp = threadIdx.x >> 5;

#if __CUDA_ARCH__ >= 900
	/* lets the fix-up's block start early; it waits for this grid's end */
	cudaTriggerProgrammaticLaunchCompletion();
#endif
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
	int			each = (a.chunks + threads - 1) / threads;
	int			lane = threadIdx.x & 31;
	int			warp = threadIdx.x >> 5;
	int			err = 0;
	int64_t		first = -1;
	State		v = Op::identity();
	State		left;

#if __CUDA_ARCH__ >= 900
	cudaGridDependencySynchronize();
#endif
	for (int c = threadIdx.x * each; c < (threadIdx.x + 1) * each && c < a.chunks; c++)
	{
		int64_t		s = a.first_segments[c];
		State		carry = carries[c];

		if (a.first_segments[c + 1] > s)
		{
			if (first < 0)
				first = s;
			else
				states[s] = seg_combine<Op>(v, states[s], &err);
			v = carry;
		}
		else
			v = seg_combine<Op>(v, carry, &err);
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

/*
 * A lane's share of one segment: every `lanes`-th element, or for ordered
 * operators the lane's part of a cut into `lanes` equal parts.
 */
template <class Op, class InT>
static __device__ __forceinline__ typename Op::State
seg_fold_lanes(const SegmentedArgs &a, int64_t s, int64_t begin, int64_t end, int lane, int lanes,
			   int *err)
{
	const InT  *x = static_cast<const InT *>(a.values);
	typename Op::State v = Op::identity();

	if (begin < end && a.sources != nullptr)
		x += a.sources[s] - begin;
	if (Op::commutative)
	{
#pragma unroll 4
		for (int64_t i = begin + lane; i < end; i += lanes)
			v = seg_step<Op>(v, (typename Op::Input) x[i], err);
	}
	else
	{
		int64_t		each = (end - begin + lanes - 1) / lanes;
		int64_t		stop = begin + (lane + 1) * each < end ? begin + (lane + 1) * each : end;

#pragma unroll 2
		for (int64_t i = begin + lane * each; i < stop; i++)
			v = seg_step<Op>(v, (typename Op::Input) x[i], err);
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

		if (lane + d < lanes)
			v = seg_combine<Op>(v, right, err);
	}
	return v;
}

/*
 * Few elements: one launch, 2^lanes_log2 threads a segment (up to a warp; 8
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
			v = seg_fold_lanes<Op, InT>(a, s, begin, end, lane, lanes, &err);
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
		v = seg_fold_lanes<Op, InT>(a, s, begin, end, threadIdx.x, 256, &err);
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
