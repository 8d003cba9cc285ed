/*
 * segmented.cuh
 *	  The two kernels of the segmented reduction over CSR offsets.
 *
 *	segmented_tiles		the chunk kernel: each warp reduces one chunk of the elements
 *	segmented_fixup		one block: adds what earlier blocks left open to each block's first result
 *
 * They are templates for operators that do not commute.  Both take SegmentedArgs
 * (segmented_args.h).  States are written to the caller's array; all memory is the caller's.  The
 * kernels rely on the order of their stream, nothing synchronizes, and no atomics are used.  The
 * order in which states are combined depends only on the device, the offsets and the alignment of
 * the values: the same input gives the same bits.
 *
 * Load balance: the work is the merge of two lists, the elements and the segment ends.  An element
 * costs 1, a segment end costs Shape::weight.  The merged list is cut into chunks of equal cost, at
 * most as many as the device runs warps concurrently.  So a giant segment is divided among many
 * warps, and so are a million empty segments.  Each warp finds the two ends of its chunk by a
 * search in the offsets (seg_cut_chunk).
 *
 * A warp walks its chunk tile by tile, and needs no barrier beyond the warp.  It keeps the state of
 * the open segment, the carry, from tile to tile.  A tile is a range of elements in shared memory.
 * A row is the consecutive elements of a tile that one lane folds.  There are three kinds of tile:
 *
 *	mixed tile	Segments may end in it.  Each end becomes a mark on the segment's last element.  A
 *				lane folds its row in order and stores a result at each mark.  Then a segmented
 *				scan over the lanes computes what precedes each lane's first result.
 *	tiny tile	All its segments are very short.  Each segment is folded by one lane.
 *	inner tile	The open segment is known to go on behind it.  The lanes fold their rows, and the
 *				warp reduces the lanes.
 *
 * The chunks of a block may leave segments open at their ends; the block combines these at its end.
 * What a block leaves open goes to the workspace, and segmented_fixup combines that in the order of
 * the blocks.
 *
 * Positions within a chunk are 32-bit numbers relative to the chunk's start: a chunk has fewer than
 * 2^31 elements and segments.
 */
#ifndef GPUAGG_SEGMENTED_CUH
#define GPUAGG_SEGMENTED_CUH

#include <limits.h>

#include "segmented_warp.cuh"

/* ---- a warp's walk along its chunk -------------------------------------- */

/*
 * Segment ends of a tile, as found by mark_ends or tiny_ends; the same in all lanes.  Positions are
 * relative to the chunk's start.
 */
struct SegTileEnds
{
	int count;        /* number of segment ends in the tile */
	int nonempty;     /* number of ended segments with elements in the tile */
	int last;         /* position of the last end; the tile's start if there is none */
	int next_end;     /* position of the first end after the tile; -1: not known */
	bool first_empty; /* the first end is at the tile's start: its segment has no element here */
	bool tiny; /* all segments are tiny, and so is the rest after the last end; nothing is marked */
};

/*
 * Addresses of the elements of a tile in shared memory.  Rows are stored one after the other.
 * Units of 16 bytes are permuted within a row, so that the lanes' accesses meet all banks.
 */
template <class Op> struct SegRows
{
	typedef SegShape<Op> Shape;

	/*
	 * Returns the number of elements between p and the start of its line of 128 bytes.  A tile
	 * fetches them as well, so that the tiles after it start with a cache line.  Returns 0 for
	 * elements of more than 16 bytes, and if p is not aligned to the size of an element.
	 */
	static __device__ __forceinline__ int
	elements_since_line(const char *p)
	{
		int bytes = (int) (reinterpret_cast<uintptr_t>(p) & 127);

		return Shape::in_size > 16 || bytes % Shape::in_size != 0 ? 0 : bytes / Shape::in_size;
	}

	/* Returns the position in the buffer of unit q of row r, in bytes. */
	static __device__ __forceinline__ int
	offset(int r, int q)
	{
		if constexpr (Shape::unit == 16 && Shape::units >= 8)
			q ^= r & 7;
		else if constexpr (Shape::unit == 16)
			q ^= r / (8 / Shape::units) & (Shape::units - 1);
		return r * Shape::stride + q * Shape::unit;
	}

	/* Returns the position in the buffer of byte `at` of the tile. */
	static __device__ __forceinline__ int
	offset(int at)
	{
		return offset(at / Shape::row, at % Shape::row / Shape::unit) + at % Shape::unit;
	}
};

/*
 * The walk of one warp along its chunk.  While the warp works on one tile, the next tile's elements
 * and segment ends are copied to shared memory.
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
	/* the chunk's start: number of a segment, position of an element */
	int64_t seg0, elem0;
	/* relative to the chunk's start: */
	int seg;      /* the segment that is open where the next tile starts */
	int elem;     /* the next tile's first element */
	int seg_end;  /* the end of the chunk */
	int elem_end; /* the end of the chunk */
	int open;     /* the open segment has at least this many elements left in the chunk */
	/* greatest size of the next mixed tile, adapted to the last one's */
	int want_elems;
	int want_ends;
	/* the fetched tile: */
	int buffer; /* which buffer has its rows */
	int lead;   /* number of unused elements before the first */
	int n;      /* number of elements */
	int ends;   /* number of segment ends fetched; -1: an inner tile */

	/*
	 * Starts a walk along the chunk between the cuts.  The size of the first tile is guessed from
	 * the mean length of the chunk's segments.
	 */
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

	/* Starts to copy the n elements at p, and the `lead` elements before them. */
	__device__ __forceinline__ void
	copy_rows(const char *p)
	{
		char *to = s.rows[buffer];
		const char *from = p - lead * Shape::in_size;
		int bytes = (lead + n) * Shape::in_size;

		/* elements shorter than a unit start with a line; see elements_since_line */
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
				 * copies of 16 bytes may read elements behind the tile, but not behind the chunk's
				 * end, which may be the end of the array
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

	/* Chooses the next tile, which starts at (seg, elem), and starts to fetch it. */
	__device__ __forceinline__ void
	fetch()
	{
		bool inner = open >= Shape::tile;
		const char *p = static_cast<const char *>(a.values) + (elem0 + elem) * Shape::in_size;
		int limit = inner ? Shape::tile : want_elems;

		lead = Rows::elements_since_line(p);
		limit = limit < Shape::tile - lead ? limit : Shape::tile - lead;
		n = elem_end - elem < limit ? elem_end - elem : limit;
		ends = inner ? -1 : seg_end - seg < want_ends ? seg_end - seg : want_ends;
#pragma unroll 2
		for (int k = lane; k < ends; k += 32)
			seg_copy8(&s.ends[k], a.offsets + seg0 + seg + 1 + k);
		copy_rows(p);
	}

	/* Returns segment end k of the tile, relative to the chunk's start. */
	__device__ __forceinline__ int
	tile_end(int k)
	{
		/* the difference fits 31 bits, so the low words suffice */
		return (int) (*reinterpret_cast<const unsigned *>(&s.ends[k]) - (unsigned) elem0);
	}

	/* Reads the lane's row from shared memory. */
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

	/* Returns the marks of the lane's row as bits, and clears them for the next tile. */
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
		/* the product gathers the lowest bits of the four bytes in its highest four bits */
#pragma unroll
		for (int q = 0; q < Shape::mark_row / 4; q++)
			bits |= word[q] * 0x10204080u >> 28 << 4 * q;
		return bits;
	}

	/*
	 * Adds up to 32 of the tile's segment ends to f->count.  Each lane has one end e; ends ascend
	 * with the lanes.  `inside` has a bit for each lane whose end is in the tile.  Returns false if
	 * that is all lanes, because more ends may follow.  Otherwise returns true, and f->next_end is
	 * the first end after the tile, or -1 if it was not fetched.
	 */
	__device__ __forceinline__ bool
	count_ends(SegTileEnds *f, int e, unsigned inside)
	{
		f->count += __popc(inside);
		if (inside != 0)
			f->last = __shfl_sync(0xFFFFFFFFu, e, 31 - __clz(inside));
		if (inside == 0xFFFFFFFFu)
			return false;
		e = __shfl_sync(0xFFFFFFFFu, e, __popc(inside));
		f->next_end = e == INT_MAX ? -1 : e;
		return true;
	}

	/*
	 * Marks the last element of each segment that ends in the tile, and stores the place of each
	 * segment's result.
	 */
	__device__ __forceinline__ SegTileEnds
	mark_ends()
	{
		SegTileEnds f = {0, 0, elem, -1, false, false};
		int limit = elem + n;

#pragma unroll 1
		for (int base = 0; base < ends; base += 32)
		{
			int k = base + lane;
			int e = k < ends ? tile_end(k) : INT_MAX;
			int before = __shfl_up_sync(0xFFFFFFFFu, e, 1);
			bool in = e <= limit;
			int rank;
			unsigned inside, nonempty;

			before = lane == 0 ? f.last : before;
			inside = __ballot_sync(0xFFFFFFFFu, in);
			nonempty = __ballot_sync(0xFFFFFFFFu, in && e != before);
			rank = f.nonempty + __popc(nonempty & ((1u << lane) - 1));
			if (in && e != before)
			{
				int at = lead + e - elem - 1;
				int r = at / Shape::items;

				s.marks[r * Shape::mark_row + at % Shape::items] = 1;
				if (before == elem || (lead + before - elem - 1) / Shape::items != r)
					s.first_rank[r] = (uint16_t) rank;
				s.place[k] = (uint16_t) (rank * Shape::state_size + r * Shape::pad);
			}
			else if (in)
				/* an empty segment: the carry if it is the tile's first, else the identity */
				s.place[k] = k > 0 ? Shape::identity_at : Shape::carry_at;
			if (base == 0)
				f.first_empty = (inside & 1) != 0 && (nonempty & 1) == 0;
			f.nonempty += __popc(nonempty);
			if (count_ends(&f, e, inside))
				break;
		}
		return f;
	}

	/*
	 * Sets the sizes of the next mixed tile by what limited this one.  This tile had `count`
	 * segment ends and `taken` elements.  If out_of_ends is true, the fetched ends were used up
	 * before the elements.
	 */
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

	/*
	 * Folds Shape::group elements of a row, from element g on, onto v, and returns v.  At each
	 * mark, stores v at *stage, advances *stage, and restarts v at the identity. partial: elements
	 * whose bit in `valid` is clear are skipped.
	 */
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
	 * Folds a row onto v, in groups of elements, and returns v: the fold of the elements after the
	 * last mark.  Elements whose bit in `valid` is clear are skipped.  At each bit of `marks` a
	 * result is stored at `stage`, one after the other, and the fold restarts at the identity.
	 *
	 * The bits of `marked` and `partial` are the same in all lanes, so that the warp does not
	 * diverge.  A clear bit of `marked` means that no lane has a mark there.  A clear bit of
	 * `partial` means that the element is valid in every row with valid elements.  The fold of a
	 * row without valid elements is meaningless.
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

	/* Reduces the fetched tile, and starts to fetch the next one meanwhile. */
	__device__ __forceinline__ void
	reduce_tile()
	{
		constexpr uint32_t all = Shape::items == 32 ? 0xFFFFFFFFu : (1u << Shape::items % 32) - 1;
		SegTileEnds found = {0, 0, elem, -1, false, false};
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
				reduce_tiny_tile(found, here);
				return;
			}
		}
		read_row(x);
		if (found.count > 0)
		{
			marks = take_marks();
			if (marks != 0)
				stage += s.first_rank[lane] * Shape::state_size + lane * Shape::pad;
			marked = __reduce_or_sync(0xFFFFFFFFu, marks);
		}
		to = here - from; /* number of elements from the row's start to the tile's end */
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
		/* all lanes have their rows in registers: results may overwrite the buffer */
		__syncwarp();
		if (has_more())
			fetch();
		if (SegStep<Op, true>::exists &&
			__all_sync(0xFFFFFFFFu, valid == 0 || SegStep<Op, true>::covers(x)))
			v = fold_row<true>(v, x, valid, marks, marked, partial, stage);
		else
			v = fold_row<false>(v, x, valid, marks, marked, partial, stage);
		if (valid == 0)
		{
			/* the fold of a row without valid elements is meaningless */
			v = Op::identity();
		}
		if (found.count > 0)
			finish_tile(v, marks, results, stage, first_seg, found);
		else
			add_to_carry(v);
	}

	/*
	 * Like mark_ends, for segments so short that each is folded by one lane.  Stores their ends,
	 * relative to the tile's start, in s.place.  Sets f.tiny if all segments are short enough; if
	 * not, mark_ends must be called.
	 */
	__device__ __forceinline__ SegTileEnds
	tiny_ends()
	{
		SegTileEnds f = {0, 0, elem, -1, false, false};
		int limit = elem + n;
		int longest = 0;

#pragma unroll 1
		for (int base = 0; base < ends; base += 32)
		{
			int k = base + lane;
			int e = k < ends ? tile_end(k) : INT_MAX;
			int before = __shfl_up_sync(0xFFFFFFFFu, e, 1);
			bool in = e <= limit;
			unsigned inside = __ballot_sync(0xFFFFFFFFu, in);

			before = lane == 0 ? f.last : before;
			if (in)
			{
				longest = e - before > longest ? e - before : longest;
				s.place[k] = (uint16_t) (e - elem);
			}
			if (count_ends(&f, e, inside))
				break;
		}
		longest = __reduce_max_sync(0xFFFFFFFFu, longest);
		f.tiny = f.count > 0 && longest <= Shape::tiny &&
			(limit - f.last <= Shape::tiny || (f.count == ends && seg + f.count < seg_end));
		return f;
	}

	/* Returns element i of the tile. */
	__device__ __forceinline__ Input
	element(const char *rows, int i)
	{
		Input x;

		memcpy(&x, rows + Rows::offset(i * Shape::in_size), sizeof(Input));
		return x;
	}

	/*
	 * Writes the states of `count` lanes to device memory.  They pass through the end of the tile's
	 * buffer, so that neighbouring lanes write neighbouring words.
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

	/*
	 * Reduces a tile of tiny segments: each segment by one lane.  `here` is the number of elements.
	 */
	__device__ __forceinline__ void
	reduce_tiny_tile(const SegTileEnds &found, int here)
	{
		char *rows = s.rows[buffer];
		State *to = static_cast<State *>(a.states) + seg0 + seg;
		int shift = lead;
		int last = found.last - elem;

		seg += found.count;
		elem += here;
		buffer ^= 1;
		if (has_more())
			fetch();
		for (int base = 0; base < found.count; base += 32)
		{
			int k = base + lane;
			State v = k > 0 ? Op::identity() : s.carry;

			if (k < found.count)
			{
				int end = shift + s.place[k];

				for (int i = shift + (k > 0 ? s.place[k - 1] : 0); i < end; i++)
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

	/*
	 * Finds the segment ends of a mixed tile, and marks them unless all segments are tiny.  Returns
	 * the number of elements that the tile uses: it ends at the last fetched end if there may be
	 * further ends.  Sets the size of the next tile.
	 */
	__device__ __forceinline__ int
	take_ends(SegTileEnds *found)
	{
		SegTileEnds f = {};
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
		if (f.next_end >= 0 && f.next_end - elem - here < open)
			open = f.next_end - elem - here;
		if (out_of_ends)
			open = 0;
		__syncwarp();
		adapt(f.count, here, out_of_ends);
		*found = f;
		return here;
	}

	/* Adds the lanes' states to the carry, in order.  This ends a tile without segment ends. */
	__device__ __forceinline__ void
	add_to_carry(State v)
	{
		v = seg_warp_reduce<Op>(v, 32);
		if (lane == 0)
			s.carry = Op::combine(s.carry, v);
	}

	/*
	 * Ends a tile with segment ends: completes each lane's first result, which is at `stage` if the
	 * lane has marks, writes the results of all segments, and sets the carry.
	 */
	__device__ __forceinline__ void
	finish_tile(State v, uint32_t marks, char *results, char *stage, int first_seg,
				const SegTileEnds &found)
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
			if (found.nonempty < found.count)
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
			s.head = *reinterpret_cast<const State *>(results + s.place[0]);
			s.head_segment = seg0;
		}
#pragma unroll 2
		for (int q = lane; q < found.count * words; q += 32)
			to[q] = reinterpret_cast<const Word *>(results + s.place[q / words])[q % words];
	}

	/* Returns whether elements or segment ends of the chunk are left. */
	__device__ __forceinline__ bool
	has_more()
	{
		return seg < seg_end || elem < elem_end;
	}

	/* Reduces the whole chunk. */
	__device__ __forceinline__ void
	reduce_chunk()
	{
		__syncwarp();
		if (has_more())
			fetch();
		while (has_more())
		{
			seg_copy_wait();
			__syncwarp();
			reduce_tile();
		}
		__syncwarp();
	}
};

/* ---- kernels ----------------------------------------------------------- */

/*
 * Combines the chunks of a block.  One thread calls it, after all warps of the block.  It writes
 * the result of each segment that began in one chunk and ended in a later one.  If there are
 * several blocks, the block's head and carry go to the workspace.
 */
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
		/* segmented_fixup reads it but does not use it */
		if (head < 0)
			static_cast<State *>(a.heads)[blockIdx.x] = v;
		static_cast<State *>(a.carries)[blockIdx.x] = v;
		a.head_segments[blockIdx.x] = head;
	}
}

/*
 * The chunk kernel.  Each warp reduces one chunk; the last block may have idle warps, with empty
 * chunks.
 */
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

	walk.reduce_chunk();
	__syncthreads();
	if (threadIdx.x == 0)
		seg_close_block<Op>(a, shared);
}

/*
 * Returns the carry at the start of a warp: the totals of the warps before it, back to the nearest
 * one with a segment end.
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
 * Combines the carries of the blocks of segmented_tiles with the heads of the blocks after them, in
 * order, and writes the results.  It runs as one block.  Each thread takes a range of blocks; a
 * segmented scan combines the threads.
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
	int64_t first = -1; /* first segment that ends in this thread's range */
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
