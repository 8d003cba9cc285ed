/*
 * hist_add.cuh
 *	  Adding a thread's rows of a tile to shared memory, operator by operator.
 */
#ifndef GPUAGG_HIST_ADD_CUH
#define GPUAGG_HIST_ADD_CUH

#include "hist_fast.cuh"

/* ---- adding a tile ------------------------------------------------------------- */

/*
 * All rows of a tile take a step before any takes the next, so that their
 * atomics overlap.  `in` has one bit an item, whether it has a bin here; at[]
 * is where in a plane.
 */

/*
 * The hot bin of a partition that had to be split: its rows are summed up in
 * registers, where they do not queue for the same words of memory.
 */
template <int DIGITS> struct HotBin
{
	u32 bin; /* or NO_BIN */
	u32 rows;
	int64_t digit[DIGITS + 1];
};

/* Carries of the digits that overflowed when d was added to old. */
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
			int carry =
				(int) d[j][k] < 0 ? -fix_carry_value(DIGITS, k) : fix_carry_value(DIGITS, k);
			int to = k + 1;

			if (!fix_overflows(k, old[j][k], d[j][k], old[j][k] + d[j][k]))
				continue;
			/* the usual case without a call: a middle digit, and its neighbor has room */
			if (k > 0 && to < DIGITS)
			{
				u32 was = atomicAdd(place.words + to * place.plane + at[j], (u32) carry);

				if (!fix_overflows(to, was, (u32) carry, was + carry))
					continue;
				carry = carry < 0 ? -fix_carry_value(DIGITS, to) : fix_carry_value(DIGITS, to);
				to++;
			}
			add_carry_to_word(args, slot, place.word * place.plane + at[j], place.plane,
							  place.bin_at(at[j]), to, carry);
		}
}

/* Floats that have no digits in the window, straight to their states; -0 is the identity. */
template <int ITEMS, typename T>
static __device__ __forceinline__ void
change_floats(const HistArgs &args, const FastArgs &fast, const FastShared &place,
			  const u32 (&at)[ITEMS], const T (&v)[ITEMS], u32 out_of_window)
{
	if (__any_sync(~0u, out_of_window))
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64 bits = __double_as_longlong((double) v[j]);

			change_rows<CHANGE_SUMS>(args, fast.slot, place.bin_at(at[j]),
									 (out_of_window >> j & 1) && bits != 1ULL << 63, bits, 0);
		}
}

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

		/* the identity, -0, is left out there */
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
		{
#pragma unroll
			for (int k = 0; k < DIGITS; k++)
				hot.digit[k] += k == 0 ? (int64_t) d[j][k] : (int64_t) (int32_t) d[j][k];
		}
	};

	/* partitions have their hot bin in registers, and are faster row by row */
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
		 * rows of one bin, as of sorted or hot keys, are one addition: four digits fit a word with
		 * ease
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
	change_floats(args, fast, place, at, v, out_of_window);
	/* lanes that came apart here would stay so for the rest of the loop */
	__syncwarp();
}

/* What leaves the first word of a sum. */
static __device__ __forceinline__ void
add_rest(const HistArgs &args, const HistSlot &slot, const FastShared &place, u32 at, u32 rest)
{
	if (rest && slot.spill)
		add_carry_to_memory(args.limb + (slot.limb + 1) * (size_t) args.limb_bins, place.bin_at(at),
							(int) rest < 0, 1);
	else if (rest)
		shared_add(place.words_at + (place.plane + at) * (u32) sizeof(u32), rest);
}

/* Narrow integers: one word, and seldom a carry. */
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
	/* the carry out of the unsigned sum, less one for a negative addend */
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

			add_rest(args, slot, place, at[j], (u32) ((int32_t) w[j] >> 31) + carry);
		}
	__syncwarp();
}

/*
 * Maxima of codes of 32 or 64 bits; most rows only read.  Shared memory has no native maximum of 64
 * bits.
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

/* Extremes of 64-bit integers, or of floats as they are. */
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

/* The same of 32-bit integers. */
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
