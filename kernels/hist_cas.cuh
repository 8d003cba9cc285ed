/*
 * hist_cas.cuh
 *	  Form CAS: words of shared memory that hold states, changed by compare-and-swap.
 *
 * For commutative operators whose state has at most 8 bytes and for which there are no native
 * atomics: products.  A word is the bits of the state, exclusive-or the bits of the identity, so
 * that a word of an empty bin is 0.
 *
 * Changes of one word are serialized.  So rows with the same bin are combined first, those of a
 * thread and then those of a warp, but only if neighboring lanes show that many rows have the same
 * bin.  Otherwise matching the bins of a warp takes longer than changing the words.
 */
#ifndef GPUAGG_HIST_CAS_CUH
#define GPUAGG_HIST_CAS_CUH

#include "hist_change.cuh"

/* Returns the bits of the operator's identity, with which words are exclusive-or'ed. */
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

/* Returns the state that a word holds. */
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
 * Combines v into the word *place of this lane, if the lane `has` a value; returns error bits.  If
 * its compare-and-swap fails, it tries again with the bits that it found. crowded: values of the
 * warp's lanes with one bin are combined before the first try.  All lanes of the warp must call it.
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
			err |= combine_peers<Op>(__match_any_sync(~0u, has ? bin : ~0u), has, v);
		if (has)
			has = !try_change<Op>(place, old, identity_bits<Op>(), v, err);
	}
	return err;
}

/*
 * Combines the rows of this thread whose bits are set in `ok` into the words of their bins; returns
 * error bits.  All threads of a warp do their first row, then their second row, and so on. p: the
 * slot's words.  A bin has 1 << lc copies of its word, and a thread changes one of them. lo and hi:
 * inputs, as make_input() takes them.  If more neighboring lanes have the same bin than copies keep
 * apart (sorted rows, a hot bin), a thread combines its later rows of that bin with the current
 * one.
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
		/* move the rows up: arrays with constant indexes stay in registers */
#pragma unroll
		for (int j = 0; j + 1 < ITEMS; j++)
		{
			bin[j] = bin[j + 1];
			v[j] = v[j + 1];
		}
	}
	return err;
}

/* Calls change_words() for the slot's operator.  Adds error bits to the call's status. */
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
