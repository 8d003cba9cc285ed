/*
 * hist_change.cuh
 *	  Changes of states in device memory by single rows: of operators that have no form in
 *	  shared memory, and of floats outside the window of a sum ("out-of-window rows").
 *
 * Such a change is a compare-and-swap or takes a lock, and those of one state come one after
 * another, a microsecond each.  So a warp puts rows of a bin together, and a block keeps the
 * states of hot bins.
 */
#ifndef GPUAGG_HIST_CHANGE_CUH
#define GPUAGG_HIST_CHANGE_CUH

#include "hist.cuh"

/* ---- one state ------------------------------------------------------------ */

/* A monoid's input from the two words that load_items made. */
template <typename T>
static __device__ __forceinline__ void
to_input(u64 lo, u64 hi, T &x)
{
	x = (T) (int64_t) lo;
}
static __device__ __forceinline__ void
to_input(u64 lo, u64 hi, gpuagg_i128 &x)
{
	x = (gpuagg_i128) ((gpuagg_u128) hi << 64 | lo);
}
static __device__ __forceinline__ void
to_input(u64 lo, u64 hi, double &x)
{
	x = __longlong_as_double(lo);
}
static __device__ __forceinline__ void
to_input(u64 lo, u64 hi, float &x)
{
	x = (float) __longlong_as_double(lo);
}
static __device__ __forceinline__ void
to_input(u64 lo, u64 hi, gpuagg_f64x2 &x)
{
	x.x = __longlong_as_double(lo);
	x.y = __longlong_as_double(hi);
}
static __device__ __forceinline__ void
to_input(u64 lo, u64 hi, gpuagg_kv &x)
{
	x.key = lo;
	x.value = hi;
}

template <typename T>
static __device__ __forceinline__ bool
same_bits(const T &a, const T &b)
{
	const u32 *p = (const u32 *) &a, *q = (const u32 *) &b;
	bool same = true;

#pragma unroll
	for (int i = 0; i < (int) (sizeof(T) / 4); i++)
		same = same && p[i] == q[i];
	return same;
}

template <int BYTES> struct CasWord;
template <> struct CasWord<4>
{
	typedef unsigned int type;
};
template <> struct CasWord<8>
{
	typedef unsigned long long type;
};

/* One state into another; returns error bits. */
template <typename Op>
static __device__ __forceinline__ int
combine_into(typename Op::State &a, const typename Op::State &b)
{
	typename Op::State r = Op::combine(a, b);
	int err = Op::error(a, b, r);

	a = r;
	return err;
}

/*
 * One compare-and-swap of a state, whose bits are in *p, exclusive-or `empty`, where they
 * were `old`.  False: they are others by now, which old then has.
 */
template <typename Op, typename W>
static __device__ __forceinline__ bool
try_change(W *p, W &old, W empty, const typename Op::State &b, int &err)
{
	typedef typename Op::State S;
	W bits = old ^ empty, next = 0, seen = old;
	S a, r;

	memcpy(&a, &bits, sizeof(S));
	r = Op::combine(a, b);
	memcpy(&next, &r, sizeof(S));
	next ^= empty;
	if (next != old)
		seen = atomicCAS(p, old, next);
	if (seen == old)
	{
		err |= Op::error(a, b, r);
		return true;
	}
	old = seen;
	return false;
}

/* By compare-and-swap; a stale first guess only costs a turn of the loop. */
template <typename Op>
static __device__ int
change_cas(typename Op::State *p, const typename Op::State &b)
{
	typedef typename CasWord<sizeof(typename Op::State)>::type W;
	W old = *(const W *) p;
	int err = 0;

	while (!try_change<Op>((W *) p, old, (W) 0, b, err))
		;
	return err;
}

/*
 * Between a lock and what it guards.  __threadfence is a sequentially consistent fence, which is
 * slower (PTX ISA, "membar, fence") and more than locks need.
 */
static __device__ __forceinline__ void
fence_lock()
{
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

/* Under a lock of the bin; states wider than 8 bytes. */
template <typename Op>
static __device__ int
change_locked(typename Op::State *p, const typename Op::State &b, u32 *lock)
{
	typedef typename Op::State S;
	int err = 0;
	bool done = false;

	while (!done)
	{
		if (atomicCAS(lock, 0, 1) == 0)
		{
			S a, r;

			fence_lock();
			for (int i = 0; i < (int) (sizeof(S) / 8); i++)
				((u64 *) &a)[i] = __ldcg((const u64 *) p + i);
			r = Op::combine(a, b);
			err = Op::error(a, b, r);
			if (!same_bits(a, r))
				for (int i = 0; i < (int) (sizeof(S) / 8); i++)
					__stcg((u64 *) p + i, ((u64 *) &r)[i]);
			fence_lock();
			atomicExch(lock, 0);
			done = true;
		}
	}
	return err;
}

/*
 * 16 bytes as one access to memory, which cannot be torn; of a vector of two words, the words might
 * be of two times.  A multiprocessor's cache may answer, so what is read may be old.
 */
static __device__ __forceinline__ ulonglong2
load_whole(const void *p)
{
	ulonglong2 v;

	asm volatile("{ .reg .b128 t; ld.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
				 : "=l"(v.x), "=l"(v.y)
				 : "l"(p)
				 : "memory");
	return v;
}

/*
 * 16-byte states: 128-bit compare-and-swap where the device has it.  A state that b does not change
 * is not written, so the first read must be of a state that was: an old one will do, as combining
 * with it then, too, would not have changed it, and where it comes among all changes is free.
 */
template <typename Op>
static __device__ int
change_wide(typename Op::State *p, const typename Op::State &b, u32 *lock)
{
#if __CUDA_ARCH__ >= 900
	typedef typename Op::State S;
	ulonglong2 old = load_whole(p);

	for (;;)
	{
		S a, r;
		ulonglong2 next;
		gpuagg_u128 seen, expect;

		memcpy(&a, &old, 16);
		r = Op::combine(a, b);
		memcpy(&next, &r, 16);
		if (next.x == old.x && next.y == old.y)
			return Op::error(a, b, r);
		memcpy(&expect, &old, 16);
		seen = atomicCAS((gpuagg_u128 *) p, expect, (gpuagg_u128) next.y << 64 | next.x);
		if (seen == expect)
			return Op::error(a, b, r);
		memcpy(&old, &seen, 16);
	}
#else
	return change_locked<Op>(p, b, lock);
#endif
}

/* A value that is a state, or rows put together, into the state at p. */
template <typename Op>
static __device__ int
change_state(typename Op::State *p, const typename Op::State &v, u32 *lock)
{
	typedef typename Op::State S;

	if constexpr (Op::id == MONOID_COUNT || Op::id == MONOID_SUM_I64)
		atomicAdd((u64 *) p, (u64) v);
	else if constexpr (Op::id == MONOID_SUM_F64)
	{
		/* most out-of-window values are small, and often lost in a sum that they do not change */
		double old = *p;

		if (__double_as_longlong(Op::combine(old, v)) != __double_as_longlong(old))
			old = atomicAdd(p, v);
		return Op::error(old, v, Op::combine(old, v));
	}
	else if constexpr (sizeof(S) <= 8)
		return change_cas<Op>(p, v);
	else if constexpr (sizeof(S) == 16)
		return change_wide<Op>(p, v, lock);
	else
		return change_locked<Op>(p, v, lock);
	return 0;
}

/* Spread, so that copies of a state have different ones, whatever the number of bins. */
static __device__ __forceinline__ u32 *
bin_lock(const HistArgs &args, u32 bin)
{
	return args.lock + (bin * 0x9e3779b1u >> (32 - HIST_LOG2_LOCKS));
}

/*
 * The state that rows of this block change instead of the bin's, counted on over the bins' states
 * and their copies.  The preparation must have ended.
 */
static __device__ __forceinline__ u32
bin_in_block_copy(const HistArgs &args, int s, u32 bin)
{
	const HistCopies &extra = args.extra[s];

	return extra.states ? bin + (blockIdx.x & ((1u << *extra.log2) - 1)) * (u32) args.bins.nbins :
						  bin;
}

/* Where it is.  The first copy are the states themselves. */
template <typename Op>
static __device__ __forceinline__ typename Op::State *
state_at(const HistArgs &args, int s, u32 bin)
{
	typedef typename Op::State S;
	u32 nbins = (u32) args.bins.nbins;
	S *p = (S *) args.slot[s].states;

	if (bin >= nbins)
	{
		p = (S *) args.extra[s].states;
		bin -= nbins;
	}
	return p + bin;
}

/* A value into that state. */
template <typename Op>
static __device__ __forceinline__ int
change_bin(const HistArgs &args, int s, u32 bin, const typename Op::State &v)
{
	return change_state<Op>(state_at<Op>(args, s, bin), v, bin_lock(args, bin));
}

/* ---- hot bins --------------------------------------------------------------- */

/* The form of an operator in shared memory, or HIST_GENERIC. */
static constexpr __host__ __device__ int
form_of(int op)
{
	switch (op)
	{
#define HIST(NAME, form) \
	case MONOID_##NAME: \
		return HIST_##form;
#include "hist_list.h"
#undef HIST
		default:
			return HIST_GENERIC;
	}
}

/* Whether rows may be outside the window of a float sum. */
static constexpr __host__ __device__ bool
sums_floats(int op)
{
	return form_of(op) == HIST_FIX || form_of(op) == HIST_ACCUM || form_of(op) == HIST_REGR;
}

/* Whether most rows leave a state as it is, so that they only read it. */
static constexpr __host__ __device__ bool
mostly_reads(int op)
{
	return form_of(op) == HIST_MAX32 || form_of(op) == HIST_MAX64 || form_of(op) == HIST_OR64 ||
		op == MONOID_MIN_DEC || op == MONOID_MAX_DEC || is_argmax(op);
}

/* Whether they take locks, so that states have copies. */
static constexpr __host__ __device__ bool
locks_out_of_window(int op)
{
	return form_of(op) == HIST_ACCUM || form_of(op) == HIST_REGR;
}

/*
 * Whether changes need no entries: native additions, and those of float4, which are seldom outside
 * the window.
 */
static constexpr __host__ __device__ bool
adds_natively(int op)
{
	return op == MONOID_COUNT || op == MONOID_SUM_I64 || op == MONOID_SUM_F64 ||
		op == MONOID_SUM_F32;
}

/*
 * Whether changes of hot bins go through entries: those that neither mostly read nor add natively.
 */
static constexpr __host__ __device__ bool
uses_hot_entries(int op)
{
	return !mostly_reads(op) && !adds_natively(op);
}

/*
 * States of bins that a warp meets often, in shared memory, so that a hot key's state in
 * device memory, where changes come one after another, is changed once a block.  A bin of several
 * rows of a warp, or now and then any, takes the entry of another, unless that was met lately.
 * A warp has args.hot_entries of them to itself, behind the bins' words.
 */
struct HotEntry
{
	u32 bin;  /* of the state or of the copy that the block changes */
	int slot; /* -1: free */
	int hits;
	ulonglong2 state[3]; /* 48 bytes hold every state of a commutative operator */
};

/* Words of shared memory before them. */
static __host__ __device__ __forceinline__ u32
words_before_hot(const HistArgs &args)
{
	return (args.words * (args.pass_bins << args.log2_max_copies) + 3) & ~3u;
}

/* Shared memory of a block, in bytes. */
static inline size_t
bytes_with_hot(const HistArgs &args, int threads)
{
	return words_before_hot(args) * sizeof(u32) +
		(size_t) (threads / 32) * args.hot_entries * sizeof(HotEntry);
}

static __device__ __forceinline__ HotEntry *
hot_entries(const HistArgs &args, u32 warp)
{
	extern __shared__ __align__(16) u32 shared[];

	return (HotEntry *) (shared + words_before_hot(args)) + warp * args.hot_entries;
}

/* By the whole block, before the first row. */
static __device__ __forceinline__ void
hot_entries_init(const HistArgs &args)
{
	HotEntry *entry = hot_entries(args, threadIdx.x / 32);

	for (int i = threadIdx.x % 32; i < args.hot_entries; i += 32)
	{
		entry[i].slot = -1;
		entry[i].hits = 0;
	}
	__syncwarp();
}

template <typename Op>
static __device__ __forceinline__ int
put_kept_state(const HistArgs &args, int s, u32 bin, const ulonglong2 (&kept)[3],
			   ulonglong2 (*into)[3])
{
	if constexpr (Op::reduces_rows && uses_hot_entries(Op::id))
	{
		typename Op::State a, v;
		int err;

		memcpy(&v, kept, sizeof(v));
		if (!into)
			return change_bin<Op>(args, s, bin, v);
		memcpy(&a, *into, sizeof(a));
		err = combine_into<Op>(a, v);
		memcpy(*into, &a, sizeof(a));
		return err;
	}
	return 0;
}

/* What was in an entry: to another's that has the same bin, or, without one, to the bin's state. */
static __device__ __noinline__ void
put_kept(const HistArgs &args, int s, u32 bin, const ulonglong2 (&kept)[3], ulonglong2 (*into)[3])
{
	const HistSlot &slot = args.slot[s];
	int err = 0;

	with_operator(slot.op,
				  [&](auto op) { err = put_kept_state<decltype(op)>(args, s, bin, kept, into); });
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

/*
 * By the whole block, after its last row of bins that others fold or go on to change: empties the
 * entries, what its warps have of a bin at once.
 */
static __device__ __forceinline__ void
hot_entries_flush(const HistArgs &args)
{
	if (args.hot_entries == 0)
		return;
	__syncthreads();
	if ((int) threadIdx.x < args.hot_entries)
	{
		HotEntry all;

		all.slot = -1;
		for (u32 warp = 0; warp < blockDim.x / 32; warp++)
		{
			HotEntry &entry = hot_entries(args, warp)[threadIdx.x];
			HotEntry one = entry;

			if (one.slot < 0)
				continue;
			entry.slot = -1;
			entry.hits = 0;
			if (one.slot == all.slot && one.bin == all.bin)
				put_kept(args, one.slot, one.bin, one.state, &all.state);
			else
			{
				if (all.slot >= 0)
					put_kept(args, all.slot, all.bin, all.state, nullptr);
				all = one;
			}
		}
		if (all.slot >= 0)
			put_kept(args, all.slot, all.bin, all.state, nullptr);
	}
	__syncthreads();
}

/*
 * A value of each lane that has one into its bin's entry, if that is hot, else into its state.
 * The whole warp must come here; of bins that share an entry, one may take it, at once if several
 * rows of the warp have that bin.
 */
template <typename Op>
static __device__ int
change_hot(const HistArgs &args, int s, u32 bin, bool has, bool several,
		   const typename Op::State &v)
{
	typedef typename Op::State S;
	u32 lane = threadIdx.x % 32, at = (bin + s) & (args.hot_entries - 1),
		same = __match_any_sync(~0u, has ? at : ~lane),
		hot = __ballot_sync(~0u, has && several) & same;
	bool past = has;
	int err = 0;

	if (has && args.hot_entries > 0 && lane == (u32) __ffs(hot ? hot : same) - 1)
	{
		HotEntry *entry = hot_entries(args, threadIdx.x / 32) + at;

		if (entry->slot == s && entry->bin == bin)
		{
			S a;

			memcpy(&a, entry->state, sizeof(S));
			err = combine_into<Op>(a, v);
			memcpy(entry->state, &a, sizeof(S));
			entry->hits = min(entry->hits + 1, Tuned::HIST_MAX_HOT_HITS);
			past = false;
		}
		else if (several || entry->slot < 0 || clock() / 4 % Tuned::HIST_ROWS_PER_HOT_TRY == 0)
		{
			if (entry->hits > 0)
				entry->hits--;
			else
			{
				if (entry->slot >= 0)
					put_kept(args, entry->slot, entry->bin, entry->state, nullptr);
				entry->slot = s;
				entry->bin = bin;
				memcpy(entry->state, &v, sizeof(S));
				past = false;
			}
		}
	}
	if (past)
		err |= change_bin<Op>(args, s, bin, v);
	__syncwarp();
	return err;
}

/* ---- rows --------------------------------------------------------------------- */

/* One of a single row. */
template <typename Op>
static __device__ __forceinline__ typename Op::State
lift_row(u64 lo, u64 hi)
{
	typename Op::Input x;

	to_input(lo, hi, x);
	return Op::lift(x);
}

/* A state from another lane. */
template <typename S>
static __device__ __forceinline__ S
shuffle_state(const S &v, int lane)
{
	return shuffle_words(v, [=](u32 word) { return __shfl_sync(~0u, word, lane); });
}

/*
 * Combines the values of lanes that are each other's peers into that of the first of them, the only
 * one that has one afterwards; lane by lane with the next, in five steps at most (Demouth, "Voting
 * and Shuffling to Optimize Atomic Operations", NVIDIA 2014).  The whole warp must come here.
 */
template <typename Op>
static __device__ __forceinline__ int
put_together(u32 peers, bool &has, typename Op::State &v)
{
	u32 lane = threadIdx.x % 32, rank = __popc(peers & ((1u << lane) - 1)),
		later = has ? peers & ~1u << lane : 0;
	int err = 0;

	has = has && rank == 0;
	while (__any_sync(~0u, later))
	{
		u32 odd = __ballot_sync(~0u, rank % 2);
		int next = later ? __ffs(later) - 1 : (int) lane;
		typename Op::State other = shuffle_state(v, next);

		if (later && rank % 2 == 0)
			err |= combine_into<Op>(v, other);
		/* a lane that was combined with the one before is done */
		later &= rank % 2 ? 0 : ~odd;
		rank /= 2;
	}
	return err;
}

/*
 * A row of each lane that has one, into its state.  Rows of one bin are put together first, so
 * that a hot key's state is changed once a warp.  The whole warp must come here.
 */
template <typename Op>
static __device__ int
change_together(const HistArgs &args, int s, u32 bin, bool has, u64 lo, u64 hi)
{
	typedef typename Op::State S;
	u32 peers = __match_any_sync(~0u, has ? bin : ~0u);
	int err;
	S v = has ? lift_row<Op>(lo, hi) : Op::identity();

	err = put_together<Op>(peers, has, v);
	if constexpr (uses_hot_entries(Op::id))
		err |= change_hot<Op>(args, s, bin, has, (peers & (peers - 1)) != 0, v);
	else if (has)
		err |= change_bin<Op>(args, s, bin, v);
	return err;
}

/* Which operators there may be. */
enum HistChange
{
	CHANGE_ANY,           /* but those that have a kernel of their own */
	CHANGE_OUT_OF_WINDOW, /* those that have out-of-window rows */
	CHANGE_SUMS           /* float sums without deviations, which need no entries */
};

static constexpr __host__ __device__ bool
changes(HistChange which, int op)
{
	if (which == CHANGE_ANY)
		return !is_argmax(op);
	return (which == CHANGE_OUT_OF_WINDOW && sums_floats(op)) || form_of(op) == HIST_FIX;
}

/* The same of any operator. */
template <HistChange WHICH>
static __device__ __noinline__ void
change_rows(const HistArgs &args, int s, u32 bin, bool has, u64 lo, u64 hi)
{
	const HistSlot &slot = args.slot[s];
	int err = 0;

	with_operator(slot.op,
				  [&](auto op)
				  {
					  typedef decltype(op) Op;

					  if constexpr (Op::reduces_rows && changes(WHICH, Op::id) &&
									mostly_reads(Op::id))
						  err = has ? change_bin<Op>(args, s, bin, lift_row<Op>(lo, hi)) : 0;
					  else if constexpr (Op::reduces_rows && changes(WHICH, Op::id))
						  err = change_together<Op>(args, s, bin, has, lo, hi);
				  });
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

#endif /* GPUAGG_HIST_CHANGE_CUH */
