/*
 * hist_add.cuh
 *	  Adds the rows of a thread to a block's words in shared memory: one function for each kind of
 *	  operator, used by hist_fast.cu, hist_exchange.cu and hist_tiles.cuh.
 *
 * Arguments that the functions share:
 *	 - at[j]: index of item j (the thread's row j) in a plane of words: bin << log2_copies | copy;
 *	 - v[j]: the input of item j;
 *	 - in: one bit for each item: whether it has a bin and is to be added.  at[] and v[] of other
 *	   items may be anything;
 *	 - place: the block's planes (FastShared); fast.slot: the slot's number.
 *
 * All lanes of a warp must call a function together.  Each function does one step for all items
 * before the next step, so that their atomics overlap.  Sums stay exact: what does not fit the
 * words goes to the slot's limbs, or changes the state.
 */
#ifndef GPUAGG_HIST_ADD_CUH
#define GPUAGG_HIST_ADD_CUH

#include "hist_fast.cuh"

/*
 * A thread's sum for the hot bin of a split partition.  Rows of a hot bin are summed in registers,
 * so that they do not wait for the same words of shared memory.
 */
template <int DIGITS> struct HotBin
{
	u32 bin;  /* within the partition, or NO_BIN */
	u32 rows; /* number of rows */
	/* sums of the digits or words, the lowest first; the last one of a chain counts its rows */
	int64_t digit[DIGITS + 1];
};

/* ---- float sums ------------------------------------------------------------------ */

/*
 * Adds the carries of the words that overflowed when digits d were added to them. old: their values
 * before.
 */
template <int DIGITS, int ITEMS>
static __device__ __forceinline__ void
add_carries(const HistArgs &args, const HistSlot &slot, const FastShared &place,
			const u32 (&at)[ITEMS], const u32 (&d)[ITEMS][DIGITS], const u32 (&old)[ITEMS][DIGITS])
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
		{
			int carry = (int) d[j][k] < 0 ? -fix_carry_value(k) : fix_carry_value(k);
			int to = k + 1;

			if (!fix_overflows(k, old[j][k], d[j][k], old[j][k] + d[j][k]))
				continue;
			/* usual case, without a call: a middle digit whose next word does not overflow */
			if (k > 0 && to < DIGITS)
			{
				u32 was = atomicAdd(place.words + to * place.plane + at[j], (u32) carry);

				if (!fix_overflows(to, was, (u32) carry, was + carry))
					continue;
				carry = carry < 0 ? -fix_carry_value(to) : fix_carry_value(to);
				to++;
			}
			add_carry_to_word(args, slot, place.word * place.plane + at[j], place.plane,
							  place.bin_at(at[j]), to, carry);
		}
}

/* Adds floats outside the window directly to their states, except -0, which is the identity. */
template <int ITEMS, typename T>
static __device__ __forceinline__ void
change_out_of_window(const HistArgs &args, const FastArgs &fast, const FastShared &place,
					 const u32 (&at)[ITEMS], const T (&v)[ITEMS], u32 out_of_window)
{
	if (__any_sync(~0u, out_of_window))
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64 bits = __double_as_longlong((double) v[j]);

			bool has = (out_of_window >> j & 1) && bits != 1ULL << 63;

			/* the place of other items may be none */
			change_rows<CHANGE_SUMS>(args, fast.slot, has ? place.bin_at(at[j]) : 0, has, bits, 0);
		}
}

/* Adds the words of a chain to a sum of such words. */
static __device__ __forceinline__ void
sum_chain_words(u32 (&sum)[FIX_CHAIN_WORDS], const u32 (&d)[FIX_CHAIN_WORDS])
{
	u64 low = ((u64) sum[1] << 32 | sum[0]) + ((u64) d[1] << 32 | d[0]);
	u64 high = ((u64) sum[3] << 32 | sum[2]) + ((u64) d[3] << 32 | d[2]) +
		(low < ((u64) d[1] << 32 | d[0]));

	sum[0] = (u32) low;
	sum[1] = (u32) (low >> 32);
	sum[2] = (u32) high;
	sum[3] = (u32) (high >> 32);
}

/* Adds the digits or words d of a row to the hot bin. */
template <int DIGITS>
static __device__ __forceinline__ void
add_to_hot_bin(HotBin<DIGITS> &hot, const u32 (&d)[DIGITS])
{
	constexpr bool CHAIN = DIGITS == FIX_CHAIN_WORDS;

#pragma unroll
	for (int k = 0; k < DIGITS; k++)
		hot.digit[k] +=
			k == 0 || (CHAIN && k < DIGITS - 1) ? (int64_t) d[k] : (int64_t) (int32_t) d[k];
	if (CHAIN)
		hot.digit[DIGITS]++;
}

/*
 * Adds floats to a sum in form FIX, as DIGITS digits each.  PARTITIONED: rows come from a
 * partition, and those with a bit in `in_hot` are added to `hot` instead of shared memory.
 */
template <int DIGITS, int ITEMS, bool PARTITIONED, typename T>
static __device__ __forceinline__ void
add_fixes(const HistArgs &args, const FastArgs &fast, const FastShared &place,
		  const FixWindow<DIGITS> &window, const u32 (&at)[ITEMS], const T (&v)[ITEMS], u32 in,
		  u32 in_hot, HotBin<DIGITS> &hot)
{
	u32 d[ITEMS][DIGITS], old[ITEMS][DIGITS];
	u32 out_of_window = 0;
	bool same = true;
	auto cut = [&](int j)
	{
		bool fits = window.cut((double) v[j], d[j]);

		/* -0 is set here, too; change_out_of_window() leaves it out */
		if (((in | in_hot) >> j & 1) &&
			!(fits && (u32) __double2hiint((double) v[j]) != 0x80000000))
			out_of_window |= 1u << j;
	};
	auto add = [&](int j)
	{
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
			old[j][k] = 0;
		if (in & ~out_of_window & 1u << j)
		{
#pragma unroll
			for (int k = 0; k < DIGITS; k++)
				old[j][k] = atomicAdd(place.words + k * place.plane + at[j], d[j][k]);
		}
		else if (in_hot & ~out_of_window & 1u << j)
			add_to_hot_bin(hot, d[j]);
	};

	/* partitions need registers for their hot bin, and are faster row by row */
	if constexpr (PARTITIONED)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			cut(j);
			add(j);
		}
	}
	else
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			cut(j);
			same = same && at[j] == at[0];
		}
		/*
		 * If all items have the same bin (sorted rows, hot keys), add them in registers first.  A
		 * word has room for the sum of a thread's digits.
		 */
		if (same && out_of_window == 0 && in == (1u << ITEMS) - 1)
		{
#pragma unroll
			for (int j = 1; j < ITEMS; j++)
#pragma unroll
				for (int k = 0; k < DIGITS; k++)
					d[0][k] += d[j][k];
			in = 1;
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			add(j);
	}
	if (any_digit_overflows(old, d))
		add_carries<DIGITS, ITEMS>(args, args.slot[fast.slot], place, at, d, old);
	change_out_of_window(args, fast, place, at, v, out_of_window);
	/* converge the warp: lanes that diverged would stay so for the rest of the caller's loop */
	__syncwarp();
}

/*
 * Adds floats to a sum in chains, like add_fixes().  Nearly always all rows of the warp have a bin
 * here and are ordinary numbers of the window, so that nothing depends on the row.
 */
template <int ITEMS, bool PARTITIONED, typename T>
static __device__ __forceinline__ void
add_floats_to_chains(const HistArgs &args, const FastArgs &fast, const FastShared &place,
					 const FixWindow<FIX_CHAIN_WORDS> &window, const u32 (&at)[ITEMS],
					 const T (&v)[ITEMS], u32 in, u32 in_hot, HotBin<FIX_CHAIN_WORDS> &hot)
{
	constexpr u32 ALL = (1u << ITEMS) - 1;
	u32 d[ITEMS][FIX_CHAIN_WORDS], word[ITEMS], plane = place.plane * (u32) sizeof(u32);
	u32 out_of_window = 0;
	double rest[ITEMS];
	bool ordinary = in == ALL, low = false, same = true;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		rest[j] = window.cut_upper((double) v[j], d[j]);
		ordinary = ordinary && window.is_ordinary((double) v[j]);
		low = low || rest[j] != 0;
		same = same && at[j] == at[0];
		word[j] = place.words_at + at[j] * (u32) sizeof(u32);
	}
	if (low)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			rest[j] = window.cut_lowest(rest[j], d[j]);
			ordinary = ordinary && rest[j] == 0;
		}
	if (__all_sync(~0u, ordinary))
	{
		/* sorted rows and hot keys: add the rows of a thread in registers first */
		if (!PARTITIONED && same)
		{
			u32 sum[1][FIX_CHAIN_WORDS] = {{d[0][0], d[0][1], d[0][2], d[0][3]}};
			const u32 first[1] = {word[0]};

#pragma unroll
			for (int j = 1; j < ITEMS; j++)
				sum_chain_words(sum[0], d[j]);
			add_to_chains<1>(first, plane, sum, 1, low);
		}
		else
			add_to_chains<ITEMS>(word, plane, d, ALL, low);
		__syncwarp();
		return;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		/* -0 is set here, too; change_out_of_window() leaves it out */
		if (((in | in_hot) >> j & 1) && !(rest[j] == 0 && window.is_ordinary((double) v[j])))
			out_of_window |= 1u << j;
		if (PARTITIONED && (in_hot & ~out_of_window & 1u << j))
			add_to_hot_bin(hot, d[j]);
	}
	add_to_chains<ITEMS>(word, plane, d, in & ~out_of_window, low);
	change_out_of_window(args, fast, place, at, v, out_of_window);
	__syncwarp();
}

/* ---- integer sums ---------------------------------------------------------------- */

/*
 * Adds a carry out of the first word of a sum to the next word, or to the limb if the sum spills.
 * carry: 0, 1, or ~0 for a borrow.
 */
static __device__ __forceinline__ void
add_integer_carry(const HistArgs &args, const HistSlot &slot, const FastShared &place, u32 at,
				  u32 carry)
{
	if (carry && slot.spill)
		add_carry_to_memory(args.limb + (slot.limb + 1) * (size_t) args.limb_bins, place.bin_at(at),
							(int) carry < 0, 1);
	else if (carry)
		shared_add(place.words_at + (place.plane + at) * (u32) sizeof(u32), carry);
}

/* Adds integers of up to 32 bits to a sum in form INT: one word, and rarely a carry. */
template <int ITEMS>
static __device__ __forceinline__ void
add_integers(const HistArgs &args, const FastArgs &fast, const FastShared &place,
			 const u32 (&at)[ITEMS], const int32_t (&v)[ITEMS], u32 in)
{
	const HistSlot &slot = args.slot[fast.slot];
	u32 w[ITEMS], old[ITEMS];
	u32 over = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		w[j] = (u32) v[j];
		old[j] = 0;
		if (in >> j & 1)
			old[j] = shared_add(place.words_at + at[j] * (u32) sizeof(u32), w[j]);
		else
			w[j] = 0;
	}
	/*
	 * The carry is that of the unsigned sum, minus 1 for a negative addend.  The top bit of `over`
	 * is set if it is not 0 for some item.
	 */
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32 s = old[j] + w[j];

		over |= ((old[j] & w[j]) | ((old[j] | w[j]) & ~s)) ^ w[j];
	}
	if ((int) over < 0)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32 carry = (u32) (old[j] + w[j]) < w[j];

			add_integer_carry(args, slot, place, at[j], (u32) ((int32_t) w[j] >> 31) + carry);
		}
	__syncwarp();
}

/* ---- extremes -------------------------------------------------------------------- */

/*
 * Sets the word of each item to the maximum of the word and the item's code.  Most items only read.
 * Words of 64 bits need compare-and-swap: shared memory has no native 64-bit maximum.
 */
template <typename W, int ITEMS>
static __device__ __forceinline__ void
add_maxima(const FastShared &place, const u32 (&at)[ITEMS], const W (&code)[ITEMS], u32 in)
{
	W *p = (W *) place.words;
	W seen[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		seen[j] = ~(W) 0;
		if (in >> j & 1)
			seen[j] = *(volatile W *) (p + at[j]);
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if constexpr (sizeof(W) == sizeof(u32))
		{
			if (seen[j] < code[j])
				atomicMax(p + at[j], code[j]);
		}
		else
			while (seen[j] < code[j])
			{
				W now = atomicCAS(p + at[j], seen[j], code[j]);

				seen[j] = now == seen[j] ? code[j] : now;
			}
	__syncwarp();
}

/*
 * Adds 64-bit integers or doubles, whose bits are in v, to minima or maxima.  A decimal with code
 * 0, which stands for an empty bin, changes the state instead.
 */
template <int ITEMS>
static __device__ __forceinline__ void
add_extremes(const HistArgs &args, int s, const FastShared &place, const u32 (&at)[ITEMS],
			 const u64 (&v)[ITEMS], u32 in)
{
	const HistSlot &slot = args.slot[s];
	u64 code[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		code[j] = max_code(slot.op, v[j]);
	add_maxima(place, at, code, in);
	if (slot.wide_state)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if ((in >> j & 1) && code[j] == 0)
				change_decimal_extreme(args, s, place.bin_at(at[j]), (int64_t) v[j]);
		__syncwarp();
	}
}

/* Adds 32-bit integers to minima or maxima. */
template <int ITEMS>
static __device__ __forceinline__ void
add_extremes(const HistArgs &args, int s, const FastShared &place, const u32 (&at)[ITEMS],
			 const int32_t (&v)[ITEMS], u32 in)
{
	u32 flip = args.slot[s].op == MONOID_MIN_I32 ? 0x7fffffffu : 0x80000000u, code[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		code[j] = (u32) v[j] ^ flip;
	add_maxima(place, at, code, in);
}

#endif /* GPUAGG_HIST_ADD_CUH */
