/*
 * hist_change.cuh
 *	  Changes states in device memory by single rows: for operators without a form in shared memory,
 *	  and for floats outside the window of a sum ("out-of-window rows").
 *
 * A change is a native atomic, a compare-and-swap, or a read and write under a lock.  Changes of
 * one state are serialized and take about a microsecond each.  So a warp combines its rows of one
 * bin first, and hot bins have entries in shared memory that the block combines with the states at
 * its end.
 *
 * States belong to the caller of gpuagg_hist_update(); locks and copies of states are in its
 * workspace.  hist_launch_prepare() must have zeroed the locks (HistArgs.lock) before on the
 * stream.  Functions return the MonoidError bits of the operator, or add them to the call's status.
 * Locks are held for one change each, and their holder waits for nothing; lanes of a warp must be
 * able to progress independently (compute capability 7.0).
 */
#ifndef GPUAGG_HIST_CHANGE_CUH
#define GPUAGG_HIST_CHANGE_CUH

#include "hist.cuh"

/* ---- one state ------------------------------------------------------------ */

/* Makes an operator's input x from the two words that load_items() or load_slot_values() made. */
template <typename T>
static __device__ __forceinline__ void
make_input(u64 lo, u64 hi, T &x)
{
	x = (T) (int64_t) lo;
}
static __device__ __forceinline__ void
make_input(u64 lo, u64 hi, gpuagg_i128 &x)
{
	x = (gpuagg_i128) ((gpuagg_u128) hi << 64 | lo);
}
static __device__ __forceinline__ void
make_input(u64 lo, u64 hi, double &x)
{
	x = __longlong_as_double(lo);
}
static __device__ __forceinline__ void
make_input(u64 lo, u64 hi, float &x)
{
	x = (float) __longlong_as_double(lo);
}
static __device__ __forceinline__ void
make_input(u64 lo, u64 hi, gpuagg_f64x2 &x)
{
	x.x = __longlong_as_double(lo);
	x.y = __longlong_as_double(hi);
}
static __device__ __forceinline__ void
make_input(u64 lo, u64 hi, gpuagg_kv &x)
{
	x.key = lo;
	x.value = hi;
}

/* Returns whether two states have the same bits; their size is a multiple of 4 bytes. */
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

/* The word type of compare-and-swap, by its size in bytes. */
template <int BYTES> struct CasWord;
template <> struct CasWord<4>
{
	typedef unsigned int type;
};
template <> struct CasWord<8>
{
	typedef unsigned long long type;
};

/* Sets a to combine(a, b); returns error bits. */
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
 * Tries once to combine b into the state in *p by compare-and-swap.  *p has the state's bits
 * exclusive-or `empty`; `old` is what *p had when it was read.  Returns true on success, and adds
 * to err.  Returns false if *p has changed; `old` then has the new bits.
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

/*
 * Combines b into a state of 4 or 8 bytes by compare-and-swap; returns error bits.  The first read
 * may be stale, which only costs another try.
 */
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
 * Orders accesses to a lock and to what it guards.  Locks do not need the sequentially consistent
 * fence of __threadfence(), which is slower (PTX ISA, "membar, fence").
 */
static __device__ __forceinline__ void
fence_lock()
{
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

/*
 * Combines b into the state *p while it holds the lock; returns error bits.  The size of a state
 * must be a multiple of 8 bytes.
 */
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
 * Reads 16 bytes in one access, so that they are not torn; the two words of a vector load might be
 * of different times.  The L1 cache may answer, so the bytes may be stale.  Needs compute
 * capability 9.0.
 */
static __device__ __forceinline__ ulonglong2
load_16_bytes(const void *p)
{
	ulonglong2 v;

	asm volatile("{ .reg .b128 t; ld.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
				 : "=l"(v.x), "=l"(v.y)
				 : "l"(p)
				 : "memory");
	return v;
}

/*
 * Combines b into a 16-byte state; returns error bits.  Uses 128-bit compare-and-swap where the
 * device has it, else the lock.
 *
 * If b does not change the state that was read, nothing is written.  So that state must not be
 * torn, but it may be stale: the order of changes is free, and b changed nothing at the time of
 * that state.
 */
template <typename Op>
static __device__ int
change_wide(typename Op::State *p, const typename Op::State &b, u32 *lock)
{
#if __CUDA_ARCH__ >= 900
	typedef typename Op::State S;
	ulonglong2 old = load_16_bytes(p);

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

/*
 * Combines v, the state of one or more rows, into the state at p, in the way that suits the
 * operator and the size of its state; returns error bits. lock: the lock of the state (bin_lock).
 */
template <typename Op>
static __device__ int
change_state(typename Op::State *p, const typename Op::State &v, u32 *lock)
{
	typedef typename Op::State S;

	if constexpr (Op::id == MONOID_COUNT || Op::id == MONOID_SUM_I64)
		atomicAdd((u64 *) p, (u64) v);
	else if constexpr (Op::id == MONOID_SUM_F64)
	{
		/*
		 * most out-of-window values are too small to change the sum: no atomic is needed for them
		 */
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

/*
 * Returns the lock of a state, by its number (see bin_in_block_copy()).  The number is hashed, so
 * that copies of a state have different locks.
 */
static __device__ __forceinline__ u32 *
bin_lock(const HistArgs &args, u32 bin)
{
	return args.lock + (bin * 0x9e3779b1u >> (32 - HIST_LOG2_LOCKS));
}

/*
 * Returns the number of the state that this block changes for a bin of slot s.  States and their
 * copies are numbered copy * nbins + bin, where copy 0 is the caller's states.
 * hist_launch_prepare() must have ended, since it samples how many copies are used.
 */
static __device__ __forceinline__ u32
bin_in_block_copy(const HistArgs &args, int s, u32 bin)
{
	const HistCopies &extra = args.extra[s];

	return extra.states ? bin + (blockIdx.x & ((1u << *extra.log2) - 1)) * (u32) args.bins.nbins :
						  bin;
}

/* Returns the address of a state of slot s. bin: the state's number; see bin_in_block_copy(). */
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

/*
 * Combines v into a state of slot s; returns error bits. bin: the state's number; see
 * bin_in_block_copy().
 */
template <typename Op>
static __device__ __forceinline__ int
change_bin(const HistArgs &args, int s, u32 bin, const typename Op::State &v)
{
	return change_state<Op>(state_at<Op>(args, s, bin), v, bin_lock(args, bin));
}

/* ---- hot bins --------------------------------------------------------------- */

/* Returns the form of an operator in shared memory, a HistSlotForm; HIST_GENERIC: none. */
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

/* Returns whether the operator sums floats in a window, so that rows may be outside of it. */
static constexpr __host__ __device__ bool
sums_floats(int op)
{
	return form_of(op) == HIST_FIX || form_of(op) == HIST_ACCUM || form_of(op) == HIST_REGR;
}

/* Returns whether most rows only read the state of their bin, since they do not change it. */
static constexpr __host__ __device__ bool
mostly_reads(int op)
{
	return form_of(op) == HIST_MAX32 || form_of(op) == HIST_MAX64 || form_of(op) == HIST_OR64 ||
		op == MONOID_MIN_DEC || op == MONOID_MAX_DEC || is_argmax(op);
}

/*
 * Returns whether out-of-window rows change states under locks, so that states should have copies.
 */
static constexpr __host__ __device__ bool
locks_out_of_window(int op)
{
	return form_of(op) == HIST_ACCUM || form_of(op) == HIST_REGR;
}

/*
 * Returns whether hot bins need no entries, because states are changed by native additions.  Sums
 * of float4 are included: they change by compare-and-swap, but float4 is rarely out of the window.
 */
static constexpr __host__ __device__ bool
adds_natively(int op)
{
	return op == MONOID_COUNT || op == MONOID_SUM_I64 || op == MONOID_SUM_F64 ||
		op == MONOID_SUM_F32;
}

/* Returns whether hot bins of the operator have entries in shared memory (HotEntry). */
static constexpr __host__ __device__ bool
uses_hot_entries(int op)
{
	return !mostly_reads(op) && !adds_natively(op);
}

/*
 * Entries for hot bins: states in shared memory of bins that a warp has often.  The state of a hot
 * bin in device memory, where changes are serialized, is then changed once for each block.
 *
 * Each warp has args.hot_entries of its own, behind the words of the bins; a bin can have only one
 * of them (direct-mapped).  Any bin takes a free entry.  A bin that several rows of the warp have
 * replaces the bin in its entry; a bin of a single row tries to do so once in
 * Tuned::HIST_ROWS_PER_HOT_TRY times.  But each hit of an entry protects it from one replacement.
 */
struct HotEntry
{
	u32 bin;             /* number of the state; see bin_in_block_copy() */
	int slot;            /* number of the slot; -1: the entry is free */
	int hits;            /* hits minus replacements that failed, bounded by Tuned */
	ulonglong2 state[3]; /* has room for every state of a commutative operator: 48 bytes */
};

/* Returns the number of words of shared memory before the entries: a multiple of 4. */
static __host__ __device__ __forceinline__ u32
words_before_hot(const HistArgs &args)
{
	return (args.words * (args.pass_bins << args.log2_max_copies) + 3) & ~3u;
}

/* Returns the bytes of shared memory of a block: the bins' words and the entries of its warps. */
static inline size_t
bytes_with_hot(const HistArgs &args, int threads)
{
	return words_before_hot(args) * sizeof(u32) +
		(size_t) (threads / 32) * args.hot_entries * sizeof(HotEntry);
}

/* Returns the entries of a warp of this block. */
static __device__ __forceinline__ HotEntry *
hot_entries(const HistArgs &args, u32 warp)
{
	extern __shared__ __align__(16) u32 shared[];

	return (HotEntry *) (shared + words_before_hot(args)) + warp * args.hot_entries;
}

/* Frees the warp's entries. Called by all threads of a block before its first row. */
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

/* put_hot_state() for one operator; returns error bits. */
template <typename Op>
static __device__ __forceinline__ int
put_hot_state_of(const HistArgs &args, int s, u32 bin, const ulonglong2 (&kept)[3],
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

/*
 * Combines `kept`, the state of an entry for a bin of slot s, into another entry's state `into`,
 * or, if that is NULL, into the bin's state.  Adds error bits to the call's status.
 */
static __device__ __noinline__ void
put_hot_state(const HistArgs &args, int s, u32 bin, const ulonglong2 (&kept)[3],
			  ulonglong2 (*into)[3])
{
	const HistSlot &slot = args.slot[s];
	int err = 0;

	with_operator(slot.op,
				  [&](auto op) { err = put_hot_state_of<decltype(op)>(args, s, bin, kept, into); });
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

/*
 * Combines all entries of the block with the states of their bins, and frees them.  States of one
 * bin that several warps have in the same entry are combined first.  Called by all threads of a
 * block, after its last row, or before other threads fold these bins.  If there are entries, starts
 * and ends with a barrier.
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
				put_hot_state(args, one.slot, one.bin, one.state, &all.state);
			else
			{
				if (all.slot >= 0)
					put_hot_state(args, all.slot, all.bin, all.state, nullptr);
				all = one;
			}
		}
		if (all.slot >= 0)
			put_hot_state(args, all.slot, all.bin, all.state, nullptr);
	}
	__syncthreads();
}

/*
 * Combines the value v of this lane, if it `has` one, into the hot entry of its bin, or into the
 * bin's state if the bin has no entry; returns error bits. several: v is the result of several rows
 * of the warp.  If the bins of several lanes share an entry, one lane uses it and the others change
 * states.  All lanes of the warp must call it.
 */
template <typename Op>
static __device__ int
change_hot_entry(const HistArgs &args, int s, u32 bin, bool has, bool several,
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
					put_hot_state(args, entry->slot, entry->bin, entry->state, nullptr);
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

/* Returns the state of a single row. lo and hi: its input, as make_input() takes it. */
template <typename Op>
static __device__ __forceinline__ typename Op::State
lift_row(u64 lo, u64 hi)
{
	typename Op::Input x;

	make_input(lo, hi, x);
	return Op::lift(x);
}

/* Returns the state that lane number `lane` passes as v.  All lanes of the warp must call it. */
template <typename S>
static __device__ __forceinline__ S
shuffle_state(const S &v, int lane)
{
	return shuffle_words(v, [=](u32 word) { return __shfl_sync(~0u, word, lane); });
}

/*
 * Combines the values v of lanes with the same bin (peers) into the v of the lowest of these lanes;
 * returns error bits. peers: the lanes with the same bin as this lane, as bits.  Clears `has` in
 * all peers but the lowest.  Each step combines pairs of neighboring peers, so there are at most
 * five (Demouth, "Voting and Shuffling to Optimize Atomic Operations", NVIDIA 2014).  All lanes of
 * the warp must call it.
 */
template <typename Op>
static __device__ __forceinline__ int
combine_peers(u32 peers, bool &has, typename Op::State &v)
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
		/* lanes of odd rank were combined with the peer before them, and are done */
		later &= rank % 2 ? 0 : ~odd;
		rank /= 2;
	}
	return err;
}

/*
 * Combines the row of this lane, if it `has` one, into the state of its bin; returns error bits.
 * Rows of one bin are combined first, so that a warp changes the state of a hot bin only once.  All
 * lanes of the warp must call it.
 */
template <typename Op>
static __device__ int
change_by_warp(const HistArgs &args, int s, u32 bin, bool has, u64 lo, u64 hi)
{
	typedef typename Op::State S;
	u32 peers = __match_any_sync(~0u, has ? bin : ~0u);
	int err;
	S v = has ? lift_row<Op>(lo, hi) : Op::identity();

	err = combine_peers<Op>(peers, has, v);
	if constexpr (uses_hot_entries(Op::id))
		err |= change_hot_entry<Op>(args, s, bin, has, (peers & (peers - 1)) != 0, v);
	else if (has)
		err |= change_bin<Op>(args, s, bin, v);
	return err;
}

/* The operators that an instance of change_rows() has code for. */
enum HistChange
{
	CHANGE_ANY,           /* all except argmax and argmin, which have their own kernels */
	CHANGE_OUT_OF_WINDOW, /* operators with out-of-window rows */
	CHANGE_SUMS           /* float sums (HIST_FIX), which need no entries */
};

/* Returns whether an instance of change_rows() has code for the operator. */
static constexpr __host__ __device__ bool
includes_operator(HistChange which, int op)
{
	if (which == CHANGE_ANY)
		return !is_argmax(op);
	return (which == CHANGE_OUT_OF_WINDOW && sums_floats(op)) || form_of(op) == HIST_FIX;
}

/*
 * Combines the row of this lane, if it `has` one, into the state of its bin, by the operator of
 * slot s. bin: the state's number, see bin_in_block_copy(); lo and hi: the row's input, as
 * make_input() takes it.  Adds error bits to the call's status.  All lanes of the warp must call
 * it.
 */
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

					  if constexpr (Op::reduces_rows && includes_operator(WHICH, Op::id) &&
									mostly_reads(Op::id))
						  err = has ? change_bin<Op>(args, s, bin, lift_row<Op>(lo, hi)) : 0;
					  else if constexpr (Op::reduces_rows && includes_operator(WHICH, Op::id))
						  err = change_by_warp<Op>(args, s, bin, has, lo, hi);
				  });
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

#endif /* GPUAGG_HIST_CHANGE_CUH */
