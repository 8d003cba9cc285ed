/*
 * segmented_even.cuh
 *	  Segmented reduction where the work is spread evenly over the segments: no
 *	  search, no carries, and blocks small enough for the device to balance.
 *
 * Each segment gets a thread, part of a warp, a warp, a block or several
 * blocks, by the mean length.  That is only good if no stretch of segments
 * holds much more than its share, which the host cannot know: segmented_sample,
 * queued before, samples evenly spaced offsets.  If it finds such a
 * stretch, this form's blocks return at once; if not, those of the load-balanced
 * form, queued behind, and of its fix-up do.
 *
 * Errors are left to the load-balanced form, too: one makes it do the work
 * again, so that the bits reported do not depend on the order of summation
 * here, but for what only the joining of a segment's pieces overflows, which is
 * reported as it is.  Which form gives the states thus depends on the input and sizes alone.
 *
 * Lengths within a stretch are 32-bit numbers, as are those allowed.
 */
#ifndef GPUAGG_SEGMENTED_EVEN_CUH
#define GPUAGG_SEGMENTED_EVEN_CUH

#include "segmented_pieces.cuh"

/* Operators that have this form: any that commutes could, these are worth their compile time. */
static constexpr bool
seg_even_exists(MonoidId id)
{
	for (MonoidId known : {MONOID_SUM_I64, MONOID_SUM_I128, MONOID_SUM_DEC, MONOID_SUM_F32, MONOID_SUM_F64,
						   MONOID_MIN_I32, MONOID_MAX_I32, MONOID_MIN_I64, MONOID_MAX_I64, MONOID_MIN_F64,
						   MONOID_MAX_F64, MONOID_ARGMAX, MONOID_ARGMIN})
		if (id == known)
			return true;
	return false;
}

template <class Op, class InT>
struct SegEvenShape
{
	static constexpr bool exists = seg_even_exists(Op::id);
	/* vectors that a thread has on their way at once */
	static constexpr int depth = 4;
	/* and the same where it has segments by itself: elements of a segment, segments */
	static constexpr int lone = 4;
	static constexpr int some = SEG_EVEN_SOME;
};

/* Elements loaded at once; they are aligned to their size. */
template <class InT>
struct alignas(sizeof(InT) < 16 ? sizeof(InT) * SEG_EVEN_VECTOR(sizeof(InT)) : alignof(InT)) SegVector
{
	static constexpr int count = SEG_EVEN_VECTOR(sizeof(InT));
	InT			x[count];
};

/* ---- which form does the work ------------------------------------------- */

/*
 * By whole warps of the even form: whether the load-balanced form must do the
 * work.  Through the cache, so that blocks which return are quick.
 */
static __device__ __forceinline__ bool
seg_uneven(const SegEven &even)
{
	int			lane = threadIdx.x & 31;

	return __any_sync(0xFFFFFFFFu, lane < SEG_SEEN_WORDS && __ldca(even.seen + lane) != 0);
}

/* The same for those after the even form, whether it was tried and did the work; past the cache. */
static __device__ __forceinline__ bool
seg_even_did(const SegmentedArgs &a)
{
	int			lane = threadIdx.x & 31;
	const uint32_t *seen = a.even.seen + blockIdx.x % SEG_SEEN_COPIES * SEG_SEEN_STRIDE;

	return a.even.seen != nullptr && !__any_sync(0xFFFFFFFFu, lane < SEG_SEEN_WORDS && __ldcg(seen + lane) != 0);
}

/*
 * A warp's walk over its chunks of segments: even.rounds that follow each other
 * are an item, and the next item is that which no warp has taken yet.  The
 * launch thus needs no more blocks than run at once.
 */
struct SegChunks
{
	unsigned	item;
	int			round;
	unsigned	ahead;			/* in lane 0: the next item */

	__device__ __forceinline__ void
	take(const SegEven &even)
	{
		round = 0;
		if ((threadIdx.x & 31) == 0 && item < even.items)
			ahead = atomicAdd(even.seen + SEG_TAKEN_AT, 1) + gridDim.x * (SEG_EVEN_THREADS / 32);
	}

	explicit __device__ __forceinline__ SegChunks(const SegEven &even)
		: item(blockIdx.x * (SEG_EVEN_THREADS / 32) + threadIdx.x / 32), ahead(even.items)
	{
		take(even);
	}

	__device__ __forceinline__ void
	next(const SegEven &even)
	{
		if (++round < even.rounds)
			return;
		item = __shfl_sync(0xFFFFFFFFu, ahead, 0);
		take(even);
	}

	/* Past the last item there are only chunks past the last segment. */
	__device__ __forceinline__ int64_t
	chunk(const SegEven &even) const
	{
		return (int64_t) item * even.rounds + round;
	}
};

/* Notes an error, for all after the even form. */
static __device__ __forceinline__ void
seg_even_error(const SegEven &even)
{
	for (int c = 0; c < SEG_SEEN_COPIES; c++)
		even.seen[c * SEG_SEEN_STRIDE + SEG_SAMPLE_BLOCKS] = 1;
}

/* ---- pieces ------------------------------------------------------------- */

/* *p; `past` the multiprocessor's cache. */
template <bool past, class T>
static __device__ __forceinline__ T
seg_load(const T *p)
{
	if constexpr (past)
	{
		typedef typename SegUnit<alignof(T)>::type Unit;
		Unit		raw[sizeof(T) / sizeof(Unit)];
		T			value;

#pragma unroll
		for (unsigned q = 0; q < sizeof(T) / sizeof(Unit); q++)
			raw[q] = __ldcg(reinterpret_cast<const Unit *>(p) + q);
		memcpy(&value, raw, sizeof(T));
		return value;
	}
	else
		return *p;
}

/* A thread's share of n elements of `lanes` threads, of which it is number `lane`. */
template <class Op, class InT>
struct SegShare
{
	typedef typename Op::State State;
	typedef typename Op::Input Input;
	typedef SegVector<InT> Vector;
	static constexpr int depth = SegEvenShape<Op, InT>::depth;

	int			head,			/* elements before the vectors, and after */
				tail,
				vectors;
	int			i;				/* of the batch that is on its way, the thread's first vector */
	const Vector *from;
	InT			edge[2];
	Vector		batch[depth];

	template <bool past>
	__device__ __forceinline__ void
	fetch(int lanes)
	{
#pragma unroll
		for (int u = 0; u < depth; u++)
			if (i + u * lanes < vectors)
				batch[u] = seg_load<past>(from + i + u * lanes);
	}

	/* Starts to fetch the first of them. */
	template <bool past>
	__device__ __forceinline__ void
	start(const InT *x, int n, int lane, int lanes)
	{
		head = Vector::count == 1 ? 0 :
			(int) ((0 - reinterpret_cast<uintptr_t>(x) / sizeof(InT)) & (Vector::count - 1));
		head = head < n ? head : n;
		vectors = (n - head) / Vector::count;
		tail = n - head - vectors * Vector::count;
		from = reinterpret_cast<const Vector *>(x + head);
		i = lane;
		/* there are fewer of these than threads */
		if (lane < head)
			edge[0] = seg_load<past>(x + lane);
		if (lane < tail)
			edge[1] = seg_load<past>(x + n - tail + lane);
		fetch<past>(lanes);
	}

	__device__ __forceinline__ State
	fold(int lane, int lanes, int *err)
	{
		State		v = Op::identity();

		while (i < vectors)
		{
			if (i + (depth - 1) * lanes < vectors)
			{
#pragma unroll
				for (int u = 0; u < depth; u++)
#pragma unroll
					for (int k = 0; k < Vector::count; k++)
						v = seg_step<Op>(v, (Input) batch[u].x[k], err);
			}
			else
			{
#pragma unroll
				for (int u = 0; u < depth - 1; u++)
					if (i + u * lanes < vectors)
					{
#pragma unroll
						for (int k = 0; k < Vector::count; k++)
							v = seg_step<Op>(v, (Input) batch[u].x[k], err);
					}
			}
			i += depth * lanes;
			fetch<false>(lanes);
		}
		if (lane < head)
			v = seg_step<Op>(v, (Input) edge[0], err);
		if (lane < tail)
			v = seg_step<Op>(v, (Input) edge[1], err);
		return v;
	}
};

template <class Op, class InT>
static __device__ __forceinline__ typename Op::State
seg_even_fold(const InT *x, int n, int lane, int lanes, int *err)
{
	SegShare<Op, InT> share;

	share.template start<false>(x, n, lane, lanes);
	return share.fold(lane, lanes, err);
}

/* Folds groups of `lanes` neighbours; good in all of them, as the operator commutes. */
template <class Op>
static __device__ __forceinline__ typename Op::State
seg_butterfly(typename Op::State v, int lanes, int *err)
{
#pragma unroll 1
	for (int d = 1; d < lanes; d <<= 1)
		v = seg_combine<Op>(v, seg_shfl_xor(v, d), err);
	return v;
}

/*
 * Segments that are too long for their threads, a bit of `mask` for each lane's
 * own: by the whole warp, one after the other.
 */
template <class Op, class InT>
static __device__ __forceinline__ void
seg_even_long(const SegmentedArgs &a, unsigned mask, int64_t begin, int n, typename Op::State *own, int *err)
{
	int			lane = threadIdx.x & 31;

	while (mask != 0)
	{
		int			owner = __ffs(mask) - 1;
		int64_t		b = __shfl_sync(0xFFFFFFFFu, begin, owner);
		int			length = __shfl_sync(0xFFFFFFFFu, n, owner);
		typename Op::State v = seg_even_fold<Op, InT>(static_cast<const InT *>(a.values) + b, length, lane, 32, err);

		v = seg_butterfly<Op>(v, 32, err);
		if (lane == owner)
			*own = v;
		mask &= mask - 1;
	}
}

/* Starts the copy of `bytes` bytes, which start with a unit of 16, by a warp. */
template <int size>
static __device__ __forceinline__ void
seg_copy_window(char *to_shared, const char *from, int bytes)
{
#pragma unroll 4
	for (int at = (threadIdx.x & 31) * 16; at < bytes; at += 32 * 16)
		if (bytes - at >= 16)
			seg_copy16(to_shared + at, from + at);
		else
			seg_copy_rest<size>(to_shared + at, from + at, bytes - at);
}

/*
 * n elements in shared memory, by one lane.  A whole warp meets all banks at
 * once: each lane starts where `turn` says and comes round to the others.
 */
template <class Op, class InT>
static __device__ __forceinline__ typename Op::State
seg_fold_window(typename Op::State v, const InT *x, int n, int turn, int *err)
{
	constexpr int round = sizeof(InT) <= 4 ? 32 : 128 / sizeof(InT);
	constexpr int depth = 8;

#pragma unroll 1
	for (int base = 0; base < n; base += round)
#pragma unroll 1
		for (int t = 0; t < round; t += depth)
		{
			InT			some[depth];

#pragma unroll
			for (int u = 0; u < depth; u++)
				if (base + (turn + t + u & round - 1) < n)
					some[u] = x[base + (turn + t + u & round - 1)];
#pragma unroll
			for (int u = 0; u < depth; u++)
				if (base + (turn + t + u & round - 1) < n)
					v = seg_step<Op>(v, (typename Op::Input) some[u], err);
		}
	return v;
}

/* ---- kernels ------------------------------------------------------------ */

/* Offsets of a warp's next segments, several times 32 of them, on their way. */
template <int some>
struct SegAhead
{
	int64_t		begin[some];
	int64_t		end;

	__device__ __forceinline__ void
	load(const SegmentedArgs &a, int64_t first)
	{
		int			lane = threadIdx.x & 31;

#pragma unroll
		for (int r = 0; r < some; r++)
			begin[r] = a.offsets[first + r * 32 + lane < a.nsegments ? first + r * 32 + lane : a.nsegments];
		end = a.offsets[first + some * 32 < a.nsegments ? first + some * 32 : a.nsegments];
	}
};

/* Those of the warp's segments, from `first` on, that are longer than `longest`: by the whole warp. */
template <class Op, class InT>
static __device__ __forceinline__ void
seg_even_long_lone(const SegmentedArgs &a, int64_t first, int longest, int *err)
{
#pragma unroll 1
	for (int64_t s = first; s < first + SegEvenShape<Op, InT>::some * 32 && s < a.nsegments; s++)
	{
		int64_t		end = a.offsets[s + 1];
		int64_t		i = a.offsets[s] + (threadIdx.x & 31);
		typename Op::State v = Op::identity();

		if (end - a.offsets[s] <= longest)
			continue;
#pragma unroll 1
		for (; i < end; i += 32)
			v = seg_step<Op>(v, (typename Op::Input) static_cast<const InT *>(a.values)[i], err);
		v = seg_butterfly<Op>(v, 32, err);
		if ((threadIdx.x & 31) == 0)
			static_cast<typename Op::State *>(a.states)[s] = v;
	}
}

/* Few segments at a time for each thread, of very few elements. */
template <class Op, class InT>
__global__ void __launch_bounds__(SEG_EVEN_THREADS, sizeof(InT) > 4 ? 3 : 4)
segmented_even_lone(SegmentedArgs a)
{
	typedef typename Op::State State;
	typedef typename Op::Input Input;
	constexpr int some = SegEvenShape<Op, InT>::some;
	constexpr int depth = SegEvenShape<Op, InT>::lone;
	constexpr int longest = 8 * depth;	/* for one thread */
	State	   *states = static_cast<State *>(a.states);
	int			lane = threadIdx.x & 31;
	int			err = 0;
	SegAhead<some> ahead;

	seg_launch_order();
	if (seg_uneven(a.even))
		return;

	SegChunks	chunks(a.even);

	ahead.load(a, chunks.chunk(a.even) * (32 * some));
#pragma unroll 1
	while (chunks.item < a.even.items)
	{
		int64_t		first = chunks.chunk(a.even) * (32 * some);
		int64_t		base = __shfl_sync(0xFFFFFFFFu, ahead.begin[0], 0);
		const InT  *values = static_cast<const InT *>(a.values) + base;
		int			begin[some],
					n[some];
		bool		is_long = false;
		InT			batch[some][depth];

#pragma unroll
		for (int r = 0; r < some; r++)
			begin[r] = (int) (ahead.begin[r] - base);
#pragma unroll
		for (int r = 0; r < some; r++)
		{
			int			next = r + 1 < some ? __shfl_sync(0xFFFFFFFFu, begin[(r + 1) % some], 0) : (int) (ahead.end - base);
			int			end = __shfl_down_sync(0xFFFFFFFFu, begin[r], 1);

			n[r] = (lane < 31 ? end : next) - begin[r];
			is_long |= n[r] > longest;
		}
#pragma unroll
		for (int r = 0; r < some; r++)
#pragma unroll
			for (int u = 0; u < depth; u++)
				if (u < n[r])
					batch[r][u] = values[begin[r] + u];
		chunks.next(a.even);
		ahead.load(a, chunks.chunk(a.even) * (32 * some));
#pragma unroll
		for (int r = 0; r < some; r++)
		{
			int64_t		s = first + r * 32 + lane;
			State		v = Op::identity();

#pragma unroll
			for (int u = 0; u < depth; u++)
				if (u < n[r])
					v = seg_step<Op>(v, (Input) batch[r][u], &err);
			if (n[r] <= longest)
			{
#pragma unroll 1
				for (int i = depth; i < n[r]; i++)
					v = seg_step<Op>(v, (Input) values[begin[r] + i], &err);
				if (s < a.nsegments)
					states[s] = v;
			}
		}
		if (__any_sync(0xFFFFFFFFu, is_long))
			seg_even_long_lone<Op, InT>(a, first, longest, &err);
	}
	if (err != 0)
		seg_even_error(a.even);
}

/*
 * A warp's window of 32 segments, which follow each other in memory, goes to
 * shared memory, and each lane folds one of them there; for elements of up to 8
 * bytes.
 */
template <class Op, class InT>
__global__ void __launch_bounds__(SEG_EVEN_THREADS)
segmented_even_windows(SegmentedArgs a)
{
	typedef typename Op::State State;
	constexpr int size = sizeof(InT);
	constexpr int longest = 1024;	/* for one lane */
	extern __shared__ __align__(16) char seg_memory[];
	int			lane = threadIdx.x & 31;
	int			warp = threadIdx.x / 32;
	int			capacity = a.even.capacity;
	char	   *rows = seg_memory + warp * capacity;
	int64_t		window = (int64_t) blockIdx.x * a.even.rounds * (SEG_EVEN_THREADS / 32) + warp;
	int64_t		s = window * 32 + lane;
	int64_t		begin,
				end;
	int			err = 0;

	seg_launch_order();
	if (seg_uneven(a.even))
		return;
	begin = a.offsets[s < a.nsegments ? s : a.nsegments];
	end = a.offsets[s < a.nsegments ? s + 1 : a.nsegments];
#pragma unroll 1
	for (int round = 0; round < a.even.rounds; round++)
	{
		int64_t		next = s + SEG_EVEN_THREADS;
		int64_t		next_begin = a.offsets[next < a.nsegments ? next : a.nsegments];
		int64_t		next_end = a.offsets[next < a.nsegments ? next + 1 : a.nsegments];
		int64_t		base = __shfl_sync(0xFFFFFFFFu, begin, 0);
		int64_t		length = __shfl_sync(0xFFFFFFFFu, end, 31) - base;
		State		v = Op::identity();

		if (__any_sync(0xFFFFFFFFu, end - begin > longest))
			seg_even_long<Op, InT>(a, __ballot_sync(0xFFFFFFFFu, end > begin), begin, (int) (end - begin), &v, &err);
		else
		{
			const char *from = static_cast<const char *>(a.values) + base * size;
			/* the elements before, up to a unit of 16 bytes, come along */
			int			lead = (int) (reinterpret_cast<uintptr_t>(from) & 15);
			int			bytes = lead + (int) length * size;
			int			lo = lead + (int) (begin - base) * size;
			int			hi = lead + (int) (end - base) * size;

			from -= lead;
#pragma unroll 1
			for (int done = 0; done < bytes; done += capacity)
			{
				int			here = bytes - done < capacity ? bytes - done : capacity;
				int			at = lo > done ? lo - done : 0;
				int			stop = hi - done < here ? hi - done : here;

				seg_copy_window<size>(rows, from + done, here);
				seg_copy_wait();
				__syncwarp();
				v = seg_fold_window<Op>(v, reinterpret_cast<const InT *>(rows + at), (stop - at) / size,
										lane - at / size, &err);
				__syncwarp();
			}
		}
		if (s < a.nsegments)
			static_cast<State *>(a.states)[s] = v;
		s = next;
		begin = next_begin;
		end = next_end;
	}
	if (err != 0)
		seg_even_error(a.even);
}

/*
 * Groups of 2^lanes_log2 threads, at least 4, with even.rounds segments each,
 * one after the other.  Lane q of a group keeps the group's segment q.
 */
template <class Op, class InT>
__global__ void __launch_bounds__(SEG_EVEN_THREADS, 4)
segmented_even_groups(SegmentedArgs a)
{
	typedef typename Op::State State;
	constexpr int limit_each = SegVector<InT>::count * SegEvenShape<Op, InT>::depth * 8;
	int			lanes = 1 << a.even.lanes_log2;
	int			rounds = a.even.rounds;
	int			in_group = threadIdx.x & (lanes - 1);
	int64_t		group = ((int64_t) blockIdx.x * SEG_EVEN_THREADS + threadIdx.x) >> a.even.lanes_log2;
	int64_t		s = group * rounds + in_group;
	int64_t		begin;
	int			n;
	int			err = 0;
	bool		owns = in_group < rounds && s < a.nsegments;
	bool		is_long;
	State		own = Op::identity();

	seg_launch_order();
	if (seg_uneven(a.even))
		return;
	s = owns ? s : 0;
	begin = a.offsets[s];
	n = owns ? (int) (a.offsets[s + 1] - begin) : 0;
	is_long = n > limit_each << a.even.lanes_log2;
#pragma unroll 1
	for (int j = 0; j < rounds; j++)
	{
		int64_t		b = __shfl_sync(0xFFFFFFFFu, begin, j, lanes);
		int			m = __shfl_sync(0xFFFFFFFFu, is_long ? 0 : n, j, lanes);
		State		v = seg_even_fold<Op, InT>(static_cast<const InT *>(a.values) + b, m, in_group, lanes, &err);

		v = seg_butterfly<Op>(v, lanes, &err);
		if (in_group == j)
			own = v;
	}
	seg_even_long<Op, InT>(a, __ballot_sync(0xFFFFFFFFu, is_long), begin, n, &own, &err);
	if (owns)
		static_cast<State *>(a.states)[s] = own;
	if (err != 0)
		seg_even_error(a.even);
}

/*
 * A block a segment; or even.each blocks, whose states segmented_fixup puts
 * together.  The first blocks fetch their first values while segmented_sample is
 * at work: it lets them start when all before it has ended.  As they have not
 * waited for that themselves by then, those loads pass by the multiprocessor's
 * cache.
 */
template <class Op, class InT>
__global__ void __launch_bounds__(SEG_EVEN_THREADS)
segmented_even_blocks(SegmentedArgs a)
{
	typedef typename Op::State State;
	constexpr int warps = SEG_EVEN_THREADS / 32;
	__shared__ alignas(16) State totals[warps];
	int			each = a.even.each;
	int64_t		s = blockIdx.x / each;
	int			piece = blockIdx.x % each;
	int			err = 0;
	bool		early = blockIdx.x < a.even.early;
	int64_t		begin,
				length,
				from = 0,
				to;
	State		v;
	SegShare<Op, InT> share;

	let_successor_start();
	if (!early)
	{
		wait_for_predecessor();
		if (seg_uneven(a.even))
			return;
	}
	begin = seg_load<true>(a.offsets + s);
	length = to = seg_load<true>(a.offsets + s + 1) - begin;
	if (each > 1)
	{
		/* cut at whole lines of memory, if the segment starts with one */
		from = piece == 0 ? 0 : length * piece / each & ~(int64_t) 127;
		to = piece == each - 1 ? length : length * (piece + 1) / each & ~(int64_t) 127;
	}
	share.template start<true>(static_cast<const InT *>(a.values) + begin + from, (int) (to - from), threadIdx.x,
							   SEG_EVEN_THREADS);
	if (early)
	{
		wait_for_predecessor();
		if (seg_uneven(a.even))
			return;
	}
	v = seg_butterfly<Op>(share.fold(threadIdx.x, SEG_EVEN_THREADS, &err), 32, &err);
	if ((threadIdx.x & 31) == 0)
		totals[threadIdx.x / 32] = v;
	__syncthreads();
	if (threadIdx.x == 0)
	{
		for (int w = 1; w < warps; w++)
			v = seg_combine<Op>(v, totals[w], &err);
		static_cast<State *>(each > 1 ? a.even.pieces : a.states)[blockIdx.x] = v;
	}
	if (err != 0)
		seg_even_error(a.even);
}

/*
 * By one block: puts the states of each segment's blocks together, if there are
 * several.  `totals` has room for one state a warp.
 */
template <class Op>
static __device__ __forceinline__ void
seg_even_join(const SegmentedArgs &a, int threads, typename Op::State *totals)
{
	typedef typename Op::State State;
	const State *pieces = static_cast<const State *>(a.even.pieces);
	State	   *states = static_cast<State *>(a.states);
	int			each = a.even.each;
	int			lanes = 1;
	int			err = 0;
	int			lane;

	if (a.even.pieces == nullptr)
		return;
	while (lanes < threads && lanes * 2 * a.nsegments <= threads)
		lanes *= 2;
	lane = threadIdx.x & (lanes - 1);
	for (int64_t base = 0; base < a.nsegments; base += threads / lanes)
	{
		int64_t		s = base + threadIdx.x / lanes;
		State		v = Op::identity();

		if (s < a.nsegments)
#pragma unroll 4
			for (int p = lane; p < each; p += lanes)
				v = seg_combine<Op>(v, pieces[s * each + p], &err);
		v = seg_butterfly<Op>(v, lanes < 32 ? lanes : 32, &err);
		if (lanes > 32)
		{
			/* then there is one round */
			if ((threadIdx.x & 31) == 0)
				totals[threadIdx.x / 32] = v;
			__syncthreads();
			if (lane == 0)
				for (int w = 1; w < lanes / 32; w++)
					v = seg_combine<Op>(v, totals[threadIdx.x / 32 + w], &err);
		}
		if (lane == 0 && s < a.nsegments)
			states[s] = v;
	}
	if (err != 0 && a.errors != nullptr)
		atomicOr(a.errors, (unsigned) err);
}

#endif							/* GPUAGG_SEGMENTED_EVEN_CUH */
