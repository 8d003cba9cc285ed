/*
 * segmented.cuh
 *	  Segmented reduction over CSR offsets: the load-balanced kernel.
 *
 * The work is the merge of two lists: the elements, and the ends of the
 * segments with a weight each.  It is cut into as many equal chunks as the
 * device runs warps at once, so that neither a giant segment nor a million
 * empty ones can leave a warp behind.  Each warp finds its chunk's two ends by
 * a search in the offsets and walks it tile by tile, without a barrier beyond
 * the warp, keeping the partial state of the open segment ("carry") from tile
 * to tile.
 *
 *	mixed tile	elements go to shared memory, segment ends become marks on their
 *				last elements; each lane folds its own consecutive elements in
 *				order and stages a result at each mark; a segmented scan over
 *				the lanes brings the left part of each lane's first result
 *	inner tile	the same without marks: no segment ends inside
 *
 * What the chunks of a block leave open is put together at its end; what a
 * block leaves open goes to the workspace, and segmented_fixup puts the left
 * parts before the first result of each block, in order.  The cut depends on
 * the device and the sizes only: the same input, the same bits.
 *
 * Positions in a chunk are 32-bit numbers, relative to its start: a chunk has
 * fewer than 2^31 elements and segments.
 */
#ifndef GPUAGG_SEGMENTED_CUH
#define GPUAGG_SEGMENTED_CUH

#include <limits.h>

#include "segmented_pieces.cuh"

/* ---- a warp's walk along its chunk -------------------------------------- */

/* What a walk over a tile's segment ends finds; the same in all lanes. */
struct SegFound
{
	int count;        /* segment ends */
	int filled;       /* those of segments that are not empty here */
	int last;         /* the last end */
	int after;        /* the end after the tile, if known, or -1 */
	bool first_empty; /* the first end is where the tile starts */
	bool tiny;        /* all segments are, and what is after the last: nothing is marked */
};

/* Where the elements of a tile are in shared memory, row by row. */
template <class Op> struct SegRows
{
	typedef SegShape<Op> Shape;

	/*
	 * Elements before the one at p that share its 128 bytes: a tile fetches
	 * them too, so that the tiles after it start with a cache line.
	 */
	static __device__ __forceinline__ int
	misfit(const char *p)
	{
		int bytes = (int) (reinterpret_cast<uintptr_t>(p) & 127);

		return Shape::in_size > 16 || bytes % Shape::in_size != 0 ? 0 : bytes / Shape::in_size;
	}

	/* Offset in a buffer of unit q of row r. */
	static __device__ __forceinline__ int
	offset(int r, int q)
	{
		if constexpr (Shape::unit == 16 && Shape::units >= 8)
			q ^= r & 7;
		else if constexpr (Shape::unit == 16)
			q ^= r / (8 / Shape::units) & (Shape::units - 1);
		return r * Shape::stride + q * Shape::unit;
	}

	/* Offset of byte `at` of the tile. */
	static __device__ __forceinline__ int
	offset(int at)
	{
		return offset(at / Shape::row, at % Shape::row / Shape::unit) + at % Shape::unit;
	}
};

/*
 * One tile is at work while the next one's elements and segment ends are on
 * their way to shared memory.
 */
template <class Op> struct SegWarp
{
	typedef SegShape<Op> Shape;
	typedef typename Op::State State;
	typedef typename Op::Input Input;
	typedef SegRows<Op> Rows;

	const SegmentedArgs &a;
	SegShared<Op> &s;
	int lane;
	int64_t seg0, /* the chunk's start */
		elem0;
	int seg,     /* the segment open where the tile starts */
		elem,    /* the tile's first element */
		seg_end, /* of the chunk */
		elem_end;
	int open;       /* the open segment surely has this many elements left */
	int want_elems, /* size of the next mixed tile, from the last one's */
		want_ends;
	/* the tile on its way */
	int buffer, lead, /* unused elements before the first */
		n,            /* elements */
		ends;         /* segment ends fetched; -1: an inner tile */

	/* Takes the chunk's cut, guesses the first tile from its mean length. */
	__device__ __forceinline__
	SegWarp(const SegmentedArgs &args, SegShared<Op> &shared, const int64_t *cut)
		: a(args), s(shared), lane(threadIdx.x & 31), seg0(cut[0]), elem0(cut[1]), seg(0), elem(0),
		  seg_end((int) (cut[2] - cut[0])), elem_end((int) (cut[3] - cut[1])),
		  want_elems(Shape::tile), want_ends(Shape::ends), buffer(0)
	{
		open = seg_end == 0 ? elem_end : 0;
		if ((int64_t) elem_end * Shape::ends < (int64_t) seg_end * Shape::tile)
			want_elems = (int) ((int64_t) elem_end * Shape::ends / seg_end) + 32;
		else if (elem_end > 0)
			want_ends = (int) ((int64_t) seg_end * Shape::tile / elem_end) + 32;
		want_elems = want_elems < Shape::tile ? want_elems : Shape::tile;
		want_ends = want_ends < Shape::ends ? want_ends : Shape::ends;
		for (int q = lane; q < 8 * Shape::mark_row; q += 32)
			reinterpret_cast<uint32_t *>(s.marks)[q] = 0;
		if (lane == 0)
		{
			s.carry = Op::identity();
			s.head_segment = -1;
		}
	}

	/* Starts the copy of n elements from p; `lead` more come along before them. */
	__device__ __forceinline__ void
	copy_rows(const char *p)
	{
		char *to = s.rows[buffer];
		const char *from = p - lead * Shape::in_size;
		int bytes = (lead + n) * Shape::in_size;

		/* what is shorter than a unit starts with a line; see Rows::misfit */
		if (Shape::unit == 16 &&
			(Shape::in_size < 16 || reinterpret_cast<uintptr_t>(from) % 16 == 0))
		{
			if (bytes == 32 * Shape::row)
			{
#pragma unroll
				for (int r = 0; r < Shape::units; r++)
					seg_copy16(to + Rows::offset((r * 32 + lane) * 16),
							   from + (r * 32 + lane) * 16);
			}
			else
			{
				/*
				 * elements behind the tile come along up to the chunk's end, which may be the
				 * array's
				 */
				int after = elem_end - elem - n;
				int there = bytes + (after < 16 ? after : 16) * Shape::in_size;

#pragma unroll 1
				for (int at = lane * 16; at < bytes; at += 32 * 16)
					if (there - at >= 16)
						seg_copy16(to + Rows::offset(at), from + at);
					else
						seg_copy_rest<Shape::in_size>(to + Rows::offset(at), from + at, bytes - at);
			}
		}
		else
#pragma unroll 1
			for (int at = lane * 8; at < n * Shape::in_size; at += 32 * 8)
				seg_copy8(to + Rows::offset(at), p + at);
	}

	/* Chooses the tile at (seg, elem) and starts to fetch it. */
	__device__ __forceinline__ void
	fetch()
	{
		bool inner = open >= Shape::tile;
		const char *p = static_cast<const char *>(a.values) + (elem0 + elem) * Shape::in_size;
		int limit = inner ? Shape::tile : want_elems;

		lead = Rows::misfit(p);
		limit = limit < Shape::tile - lead ? limit : Shape::tile - lead;
		n = elem_end - elem < limit ? elem_end - elem : limit;
		ends = inner ? -1 : seg_end - seg < want_ends ? seg_end - seg : want_ends;
#pragma unroll 2
		for (int k = lane; k < ends; k += 32)
			seg_copy8(&s.ends[k], a.offsets + seg0 + seg + 1 + k);
		copy_rows(p);
	}

	/* End k of the tile, from the chunk's start. */
	__device__ __forceinline__ int
	end(int k)
	{
		/* the low words do */
		return (int) (*reinterpret_cast<const unsigned *>(&s.ends[k]) - (unsigned) elem0);
	}

	__device__ __forceinline__ void
	read_row(Input *x)
	{
		typedef typename SegUnit<Shape::unit>::type Unit;
		Unit raw[Shape::units];

#pragma unroll
		for (int q = 0; q < Shape::units; q++)
			raw[q] = *reinterpret_cast<const Unit *>(s.rows[buffer] + Rows::offset(lane, q));
		memcpy(x, raw, Shape::row);
	}

	/* The marks of a lane's row as bits, cleared for the next tile. */
	__device__ __forceinline__ uint32_t
	take_marks()
	{
		typedef typename SegUnit<(Shape::mark_row < 16 ? Shape::mark_row : 16)>::type Unit;
		constexpr int units = Shape::mark_row / sizeof(Unit);
		Unit *from = reinterpret_cast<Unit *>(s.marks) + lane * units;
		Unit raw[units];
		uint32_t word[Shape::mark_row / 4];
		uint32_t bits = 0;

#pragma unroll
		for (int q = 0; q < units; q++)
		{
			raw[q] = from[q];
			from[q] = Unit();
		}
		memcpy(word, raw, Shape::mark_row);
		/* the product brings the lowest bits of the four bytes together */
#pragma unroll
		for (int q = 0; q < Shape::mark_row / 4; q++)
			bits |= word[q] * 0x10204080u >> 28 << 4 * q;
		return bits;
	}

	/*
	 * Counts ends, one a lane, of which those in `ins` are in the tile; true if
	 * they are the last, and then it is known what comes after.
	 */
	__device__ __forceinline__ bool
	count_ends(SegFound *f, int e, unsigned ins)
	{
		f->count += __popc(ins);
		if (ins != 0)
			f->last = __shfl_sync(0xFFFFFFFFu, e, 31 - __clz(ins));
		if (ins == 0xFFFFFFFFu)
			return false;
		e = __shfl_sync(0xFFFFFFFFu, e, __popc(ins));
		f->after = e == INT_MAX ? -1 : e;
		return true;
	}

	/*
	 * Marks the last element of each segment that ends in the tile, and notes
	 * where each one's result will be.
	 */
	__device__ __forceinline__ SegFound
	mark_ends()
	{
		SegFound f = {0, 0, elem, -1, false, false};
		int limit = elem + n;

#pragma unroll 1
		for (int base = 0; base < ends; base += 32)
		{
			int k = base + lane;
			int e = k < ends ? end(k) : INT_MAX;
			int before = __shfl_up_sync(0xFFFFFFFFu, e, 1);
			bool in = e <= limit;
			int rank;
			unsigned ins, filled;

			before = lane == 0 ? f.last : before;
			ins = __ballot_sync(0xFFFFFFFFu, in);
			filled = __ballot_sync(0xFFFFFFFFu, in && e != before);
			rank = f.filled + __popc(filled & ((1u << lane) - 1));
			if (in && e != before)
			{
				int at = lead + e - elem - 1;
				int r = at / Shape::items;

				s.marks[r * Shape::mark_row + at % Shape::items] = 1;
				if (before == elem || (lead + before - elem - 1) / Shape::items != r)
					s.first[r] = (uint16_t) rank;
				s.from[k] = (uint16_t) (rank * Shape::state_size + r * Shape::pad);
			}
			else if (in) /* of a tile's first segment, the carry is all */
				s.from[k] = k > 0 ? Shape::identity_at : Shape::carry_at;
			if (base == 0)
				f.first_empty = (ins & 1) != 0 && (filled & 1) == 0;
			f.filled += __popc(filled);
			if (count_ends(&f, e, ins))
				break;
		}
		return f;
	}

	/* Sets the sizes of the next mixed tile from what limited this one. */
	__device__ __forceinline__ void
	adapt(int count, int taken, bool out_of_ends)
	{
		if (out_of_ends)
		{
			if (ends < Shape::ends)
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

	/* A row's elements from g on, with marks, and if `partial` with elements that do not count. */
	template <bool bounded, bool partial>
	__device__ __forceinline__ State
	fold_marked(State v, const Input *x, uint32_t valid, uint32_t marks, int g, char **stage)
	{
#pragma unroll
		for (int k = g; k < g + Shape::group; k++)
		{
			if (!partial || (valid >> k & 1))
				v = SegStep<Op, bounded>::step(v, x[k]);
			if (marks >> k & 1)
			{
				*reinterpret_cast<State *>(*stage) = v;
				*stage += Shape::state_size;
				v = Op::identity();
			}
		}
		return v;
	}

	/*
	 * Folds a row onto v.  Elements whose bit in `valid` is clear do not count; at
	 * each bit of `marks` a result is staged, one after the other.  Where
	 * `marked` has no bit, no lane has a mark; where `partial` has none, all
	 * elements of all rows that are used at all count.
	 */
	template <bool bounded>
	__device__ __forceinline__ State
	fold_row(State v, const Input *x, uint32_t valid, uint32_t marks, uint32_t marked,
			 uint32_t partial, char *stage)
	{
		constexpr int group = Shape::group;
		constexpr uint32_t bits = (1u << group) - 1;

#pragma unroll
		for (int g = 0; g < Shape::items; g += group)
		{
			if (((marked | partial) >> g & bits) == 0)
			{
#pragma unroll
				for (int k = g; k < g + group; k++)
					v = SegStep<Op, bounded>::step(v, x[k]);
			}
			else if (sizeof(State) <= 16 && (partial >> g & bits) == 0)
				v = fold_marked<bounded, false>(v, x, valid, marks, g, &stage);
			else
				v = fold_marked<bounded, true>(v, x, valid, marks, g, &stage);
		}
		return v;
	}

	/* The tile that is there: its work, while the next one is fetched. */
	__device__ __forceinline__ void
	work()
	{
		constexpr uint32_t all = Shape::items == 32 ? 0xFFFFFFFFu : (1u << Shape::items % 32) - 1;
		SegFound found = {0, 0, elem, -1, false, false};
		int first_seg = seg;
		int here = n;
		int from = lane * Shape::items - lead;
		int to;
		uint32_t marks = 0;
		uint32_t valid = all;
		uint32_t marked = 0;
		uint32_t partial = 0;
		char *results = s.rows[buffer];
		char *stage = results;
		Input x[Shape::items];
		State v = Op::identity();

		if (ends < 0)
			open -= n;
		else
		{
			here = take_ends(&found);
			if (Shape::tiny > 0 && found.tiny)
			{
				work_tiny(found, here);
				return;
			}
		}
		read_row(x);
		if (found.count > 0)
		{
			marks = take_marks();
			if (marks != 0)
				stage += s.first[lane] * Shape::state_size + lane * Shape::pad;
			marked = __reduce_or_sync(0xFFFFFFFFu, marks);
		}
		to = here - from; /* elements of the row up to the tile's end */
		if (lead > 0 || here < Shape::tile)
		{
			valid = to >= Shape::items ? all : to > 0 ? (1u << to) - 1 : 0;
			if (from < 0)
				valid &= -from < Shape::items ? all << -from : 0;
			partial = __reduce_or_sync(0xFFFFFFFFu, valid != 0 ? all & ~valid : 0);
		}
		seg += found.count;
		elem += here;
		buffer ^= 1;
		/* the rows are in registers: their place is free for results */
		__syncwarp();
		if (unfinished())
			fetch();
		if (SegStep<Op, true>::exists &&
			__all_sync(0xFFFFFFFFu, valid == 0 || SegStep<Op, true>::covers(x)))
			v = fold_row<true>(v, x, valid, marks, marked, partial, stage);
		else
			v = fold_row<false>(v, x, valid, marks, marked, partial, stage);
		if (valid == 0)
		{
			/* a row that is not used: what was folded is none of the tile's */
			v = Op::identity();
		}
		if (found.count > 0)
			finish(v, marks, results, stage, first_seg, found);
		else
			carry_on(v);
	}

	/*
	 * The same where segments are so short that a lane folds each: notes their
	 * ends in s.from, from the tile's start.  If one is longer, f.tiny is not set.
	 */
	__device__ __forceinline__ SegFound
	tiny_ends()
	{
		SegFound f = {0, 0, elem, -1, false, false};
		int limit = elem + n;
		int longest = 0;

#pragma unroll 1
		for (int base = 0; base < ends; base += 32)
		{
			int k = base + lane;
			int e = k < ends ? end(k) : INT_MAX;
			int before = __shfl_up_sync(0xFFFFFFFFu, e, 1);
			bool in = e <= limit;
			unsigned ins = __ballot_sync(0xFFFFFFFFu, in);

			before = lane == 0 ? f.last : before;
			if (in)
			{
				longest = e - before > longest ? e - before : longest;
				s.from[k] = (uint16_t) (e - elem);
			}
			if (count_ends(&f, e, ins))
				break;
		}
		longest = __reduce_max_sync(0xFFFFFFFFu, longest);
		f.tiny = f.count > 0 && longest <= Shape::tiny &&
			(limit - f.last <= Shape::tiny || (f.count == ends && seg + f.count < seg_end));
		return f;
	}

	/* Element i of the tile. */
	__device__ __forceinline__ Input
	element(const char *rows, int i)
	{
		Input x;

		memcpy(&x, rows + Rows::offset(i * Shape::in_size), sizeof(Input));
		return x;
	}

	/*
	 * Writes the states of `count` lanes, by way of the tile's end so that neighbours write
	 * neighbours.
	 */
	__device__ __forceinline__ void
	store_staged(const State &v, State *to, int count, char *rows)
	{
		constexpr int words = Shape::state_size / 8;
		uint64_t *staged = reinterpret_cast<uint64_t *>(rows + Shape::stage_at);
		uint64_t word[words];

		memcpy(word, &v, sizeof(State));
		__syncwarp();
#pragma unroll
		for (int q = 0; q < words; q++)
			staged[lane * Shape::staged + q] = word[q];
		__syncwarp();
		for (int q = lane; q < count * words; q += 32)
			reinterpret_cast<uint64_t *>(to)[q] = staged[q / words * Shape::staged + q % words];
	}

	/* A tile of tiny segments: each by one lane. */
	__device__ __forceinline__ void
	work_tiny(const SegFound &found, int here)
	{
		char *rows = s.rows[buffer];
		State *to = static_cast<State *>(a.states) + seg0 + seg;
		int shift = lead;
		int last = found.last - elem;

		seg += found.count;
		elem += here;
		buffer ^= 1;
		if (unfinished())
			fetch();
		for (int base = 0; base < found.count; base += 32)
		{
			int k = base + lane;
			State v = k > 0 ? Op::identity() : s.carry;

			if (k < found.count)
			{
				int end = shift + s.from[k];

				for (int i = shift + (k > 0 ? s.from[k - 1] : 0); i < end; i++)
					v = Op::step(v, element(rows, i));
			}
			if (k == 0 && s.head_segment < 0)
			{
				s.head = v;
				s.head_segment = seg0;
			}
			if constexpr (Shape::staged == 0)
			{
				if (k < found.count)
					to[k] = v;
			}
			else
				store_staged(v, to + base, found.count - base < 32 ? found.count - base : 32, rows);
		}
		__syncwarp();
		if (lane == 0)
		{
			State v = Op::identity();

			for (int i = last; i < here; i++)
				v = Op::step(v, element(rows, shift + i));
			s.carry = v;
		}
	}

	/* A mixed tile's ends: marks them, and returns how many elements are used. */
	__device__ __forceinline__ int
	take_ends(SegFound *found)
	{
		SegFound f = {};
		bool out_of_ends;
		int here;

		if (Shape::tiny > 0 && ends >= 32 && n < ends * Shape::tiny / 2 &&
			lead + n <= Shape::tiny_most)
			f = tiny_ends();
		if (!f.tiny)
			f = mark_ends();
		out_of_ends = f.count > 0 && f.count == ends && seg + f.count < seg_end;
		here = out_of_ends ? f.last - elem : n;
		open = elem_end - elem - here;
		if (f.after >= 0 && f.after - elem - here < open)
			open = f.after - elem - here;
		if (out_of_ends)
			open = 0;
		__syncwarp();
		adapt(f.count, here, out_of_ends);
		*found = f;
		return here;
	}

	/* Adds the lanes' states, in order, to the carry. */
	__device__ __forceinline__ void
	carry_on(State v)
	{
		v = seg_warp_reduce<Op>(v, 32);
		if (lane == 0)
			s.carry = Op::combine(s.carry, v);
	}

	/*
	 * Completes each lane's first result, which is at `stage` if the lane has
	 * marks, writes the results, sets the carry.
	 */
	__device__ __forceinline__ void
	finish(State v, uint32_t marks, char *results, char *stage, int first_seg,
		   const SegFound &found)
	{
		typedef typename SegUnit<(Shape::state_size % 8 == 0 ? 8 : 4)>::type Word;
		constexpr int words = Shape::state_size / sizeof(Word);
		unsigned heads = __ballot_sync(0xFFFFFFFFu, marks != 0);
		State *first = reinterpret_cast<State *>(stage);
		State left;
		Word *to = reinterpret_cast<Word *>(static_cast<State *>(a.states) + seg0 + first_seg);

		if (lane == 0)
		{
			State c = s.carry;

			if (found.first_empty)
			{
				*reinterpret_cast<State *>(results + Shape::carry_at) = c;
				c = Op::identity();
			}
			if (marks != 0)
				*first = Op::combine(c, *first);
			else
				v = Op::combine(c, v);
			if (found.filled < found.count)
				*reinterpret_cast<State *>(results + Shape::identity_at) = Op::identity();
		}
		v = seg_warp_scan<Op>(v, heads, lane);
		left = seg_shfl<true>(v, 1);
		if (lane > 0 && marks != 0)
			*first = Op::combine(left, *first);
		__syncwarp();
		if (lane == 31)
			s.carry = v;
		if (lane == 0 && s.head_segment < 0)
		{
			s.head = *reinterpret_cast<const State *>(results + s.from[0]);
			s.head_segment = seg0;
		}
#pragma unroll 2
		for (int q = lane; q < found.count * words; q += 32)
			to[q] = reinterpret_cast<const Word *>(results + s.from[q / words])[q % words];
	}

	__device__ __forceinline__ bool
	unfinished()
	{
		return seg < seg_end || elem < elem_end;
	}

	__device__ __forceinline__ void
	run()
	{
		__syncwarp();
		if (unfinished())
			fetch();
		while (unfinished())
		{
			seg_copy_wait();
			__syncwarp();
			work();
		}
		__syncwarp();
	}
};

/* ---- kernels ----------------------------------------------------------- */

/* By one thread, once a block's warps are through: puts their chunks together. */
template <class Op>
static __device__ __forceinline__ void
seg_close_block(const SegmentedArgs &a, const SegShared<Op> *warps)
{
	typedef typename Op::State State;
	State *states = static_cast<State *>(a.states);
	int64_t head = -1;
	State v = Op::identity();

#pragma unroll 1
	for (int w = 0; w < SegShape<Op>::warps; w++)
	{
		const SegShared<Op> &s = warps[w];

		v = Op::combine(v, s.head_segment >= 0 ? s.head : s.carry);
		if (s.head_segment < 0)
			continue;
		if (head < 0)
		{
			head = s.head_segment;
			*(gridDim.x > 1 ? static_cast<State *>(a.heads) + blockIdx.x : states + head) = v;
		}
		else
			states[s.head_segment] = v;
		v = s.carry;
	}
	if (gridDim.x > 1)
	{
		/* read with the others, and not used */
		if (head < 0)
			static_cast<State *>(a.heads)[blockIdx.x] = v;
		static_cast<State *>(a.carries)[blockIdx.x] = v;
		a.head_segments[blockIdx.x] = head;
	}
}

template <class Op>
__global__ void __launch_bounds__((SegShape<Op>::warps * 32)) segmented_tiles(SegmentedArgs a)
{
	typedef SegShape<Op> Shape;
	extern __shared__ __align__(16) char seg_memory[];
	SegShared<Op> *shared = reinterpret_cast<SegShared<Op> *>(seg_memory);
	int warp = threadIdx.x >> 5;
	int chunk = blockIdx.x * Shape::warps + warp;
	int64_t cut[4] = {0, 0, 0, 0};

	seg_launch_order();
	if (chunk < a.chunks)
		seg_cut_chunk(a, Shape::weight, chunk, cut);

	SegWarp<Op> walk(a, shared[warp], cut);

	walk.run();
	__syncthreads();
	if (threadIdx.x == 0)
		seg_close_block<Op>(a, shared);
}

/*
 * The state before a warp: the totals of the warps before it back to the nearest that had an end.
 */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_fold_warps(const typename Op::State *totals, const int *has_end, int warps)
{
	typename Op::State left = Op::identity();

#pragma unroll 1
	for (int w = 0; w < warps; w++)
		left = has_end[w] ? totals[w] : Op::combine(left, totals[w]);
	return left;
}

/*
 * One block: puts what the blocks left open before the first results after, in order.
 */
template <class Op>
__global__ void
__launch_bounds__(SegShape<Op>::fixup_threads) segmented_fixup(SegmentedArgs a)
{
	typedef typename Op::State State;
	constexpr int threads = SegShape<Op>::fixup_threads;
	constexpr int batch = SegShape<Op>::Tuning::FIXUP_BLOCKS_PER_LOAD;
	__shared__ alignas(16) State totals[threads / 32];
	__shared__ int has_end[threads / 32];
	State *states = static_cast<State *>(a.states);
	int each = (a.blocks + threads - 1) / threads;
	int begin = threadIdx.x * each;
	int end = begin + each < a.blocks ? begin + each : a.blocks;
	int lane = threadIdx.x & 31;
	int warp = threadIdx.x >> 5;
	int64_t first = -1; /* the first segment that ends in this thread's blocks */
	State first_state = Op::identity();
	State v = Op::identity();
	State left;
	unsigned heads;

	seg_launch_order();
	for (int c = begin; c < end; c += batch)
	{
		int64_t segments[batch];
		State head[batch], open[batch];

#pragma unroll
		for (int u = 0; u < batch; u++)
		{
			int b = c + u < end ? c + u : end - 1;

			segments[u] = a.head_segments[b];
			head[u] = static_cast<const State *>(a.heads)[b];
			open[u] = static_cast<const State *>(a.carries)[b];
		}
#pragma unroll
		for (int u = 0; u < batch; u++)
		{
			if (c + u >= end)
				break;
			v = Op::combine(v, segments[u] >= 0 ? head[u] : open[u]);
			if (segments[u] < 0)
				continue;
			if (first < 0)
			{
				first = segments[u];
				first_state = v;
			}
			else
				states[segments[u]] = v;
			v = open[u];
		}
	}
	heads = __ballot_sync(0xFFFFFFFFu, first >= 0);
	v = seg_warp_scan<Op>(v, heads, lane);
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
			State before = seg_fold_warps<Op>(totals, has_end, warp);

			left = lane > 0 ? Op::combine(before, left) : before;
		}
		states[first] = Op::combine(left, first_state);
	}
}

#endif /* GPUAGG_SEGMENTED_CUH */
