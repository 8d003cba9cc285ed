/*
 * hist_cas.cuh
 *	  States themselves in shared memory, changed by compare-and-swap: what operators do
 *	  whose states have at most 8 bytes, and no form that native atomics change.
 *
 * Changes of one word come one after another, so rows of one bin are combined first, a
 * thread's and then the warp's, but only where neighbors say that they meet: where they do
 * not, matching bins within the warp takes longer than changing a word.
 */
#ifndef GPUAGG_HIST_CAS_CUH
#define GPUAGG_HIST_CAS_CUH

#include "hist_change.cuh"

/* What bits of a state are kept exclusive-or, so that none of them is set in an empty bin. */
template <typename Op>
static __device__ __forceinline__ u64
identity_bits()
{
	typename Op::State id = Op::identity();
	u64 bits = 0;

	static_assert(sizeof(id) <= sizeof(bits) && Op::commutative, "has no form CAS");
	memcpy(&bits, &id, sizeof(id));
	return bits;
}

template <typename Op>
static __device__ __forceinline__ typename Op::State
cas_word_state(u64 kept)
{
	typename Op::State v;

	kept ^= identity_bits<Op>();
	memcpy(&v, &kept, sizeof(v));
	return v;
}

/*
 * A value of each lane that has one into its word.  A lane that loses its turn tries again with
 * what it finds there; crowded: put together first.  The whole warp must come here.
 */
template <typename Op>
static __device__ __forceinline__ int
change_word(u64 *place, u32 bin, bool has, bool crowded, typename Op::State v)
{
	u64 old = has ? *(volatile u64 *) place : 0;
	int err = 0;

	for (int tries = crowded ? Tuned::HIST_CAS_TRIES : 0; __any_sync(~0u, has); tries++)
	{
		if (tries == Tuned::HIST_CAS_TRIES)
			err |= put_together<Op>(__match_any_sync(~0u, has ? bin : ~0u), has, v);
		if (has)
			has = !try_change<Op>(place, old, identity_bits<Op>(), v, err);
	}
	return err;
}

/*
 * Rows, one of each thread after another, into the thread's copy of 1 << lc.  If more neighbors
 * than copies keep apart have the same bin, as where rows are sorted or of a hot bin, a thread
 * takes its later rows of that bin along.
 */
template <typename Op, int ITEMS>
static __device__ __forceinline__ int
change_words(u64 *p, int lc, u32 ok, const int32_t (&bins)[ITEMS], const u64 (&lo)[ITEMS],
			 const u64 (&hi)[ITEMS])
{
	u32 copy = threadIdx.x & ((1u << lc) - 1), bin[ITEMS];
	typename Op::State v[ITEMS];
	int err = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		bin[j] = (u32) bins[j];
		v[j] = lift_row<Op>(lo[j], hi[j]);
	}
#pragma unroll 1
	for (; __any_sync(~0u, ok); ok >>= 1)
	{
		bool has = ok & 1;
		u32 neighbor = __shfl_xor_sync(~0u, has ? bin[0] : ~0u, 1);
		bool crowded = __popc(__ballot_sync(~0u, has && bin[0] == neighbor)) > 1 << lc >> 2;

		if (crowded && has)
#pragma unroll
			for (int j = 1; j < ITEMS; j++)
				if ((ok >> j & 1) && bin[j] == bin[0])
				{
					err |= combine_into<Op>(v[0], v[j]);
					ok &= ~(1u << j);
				}
		err |= change_word<Op>(p + ((bin[0] << lc) | copy), bin[0], has, crowded, v[0]);
		/* rows move up, so that they stay in registers */
#pragma unroll
		for (int j = 0; j + 1 < ITEMS; j++)
		{
			bin[j] = bin[j + 1];
			v[j] = v[j + 1];
		}
	}
	return err;
}

/* The same of a slot's operator. */
template <int ITEMS>
static __device__ __forceinline__ void
add_cas_rows(const HistArgs &args, const HistSlot &slot, u64 *p, int lc, u32 ok,
			 const int32_t (&bin)[ITEMS], const u64 (&lo)[ITEMS], const u64 (&hi)[ITEMS])
{
	int err = 0;

	with_operator(slot.op,
				  [&](auto op)
				  {
					  if constexpr (form_of(op.id) == HIST_CAS)
						  err = change_words<decltype(op), ITEMS>(p, lc, ok, bin, lo, hi);
				  });
	if (err)
		atomicOr(&args.status->errors[slot.number], (u32) err);
}

#endif /* GPUAGG_HIST_CAS_CUH */
