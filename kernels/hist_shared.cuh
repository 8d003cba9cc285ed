/*
 * hist_shared.cuh
 *	  Device functions that the kernels in shared memory have in common: inputs of a slot, addition
 *	  of a row to words, and the flush of words to limbs and states.
 *
 * `p` points to the words of a slot's first plane, or, in functions that add one row, to the row's
 * place in it; `plane` is the number of words in a plane. A bin's copies are at bin << lc, where lc
 * is log2 of M.
 */
#ifndef GPUAGG_HIST_SHARED_CUH
#define GPUAGG_HIST_SHARED_CUH

#include "hist_kernels.cuh"
#include "hist_moments.cuh"
#include "hist_state.cuh"

/* ---- rows of a slot --------------------------------------------------------- */

/*
 * Returns `ok` without the bits of rows that the slot's filter rejects, or that have a NULL in the
 * slot's inputs.
 */
template <int ITEMS>
static __device__ __forceinline__ u32
filter_slot_rows(const HistSlot &slot, const u32 (&row)[ITEMS], u32 ok)
{
	const uint8_t *bits[2] = {slot.x.validity, slot.y.validity};

	if (slot.filter)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if ((ok >> j & 1) && !slot.filter[row[j]])
				ok &= ~(1u << j);
	for (int k = 0; k < 2; k++)
		if (bits[k])
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if ((ok >> j & 1) && !is_bit_set(bits[k], row[j]))
					ok &= ~(1u << j);
	return ok;
}

/*
 * Loads the inputs of a slot's rows, in the two words that make_input reads: a 16-byte value, or x
 * and y.
 */
template <int ITEMS>
static __device__ __forceinline__ void
load_slot_values(const HistSlot &slot, const u32 (&row)[ITEMS], u32 ok, u64 (&lo)[ITEMS],
				 u64 (&hi)[ITEMS])
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		hi[j] = 0;
	if (slot.x.values)
		load_items<ITEMS>(slot.x, row, ok, lo, hi);
	if (slot.extend)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			hi[j] = (u64) ((int64_t) lo[j] >> 63);
	if (slot.y.values)
	{
		u64 unused[ITEMS];

		load_items<ITEMS>(slot.y, row, ok, hi, unused);
	}
}

/*
 * Runs body(has, bin, lo, hi) for the rows of the whole warp serially, one row of each lane at a
 * time. So the code of a long body exists only once. Eight copies for each operator of a call do
 * not fit the instruction cache, which made calls with several operators nine times slower. Rows
 * move up in the arrays, so that they stay in registers.
 */
template <int ITEMS, typename Body>
static __device__ __forceinline__ void
for_each_row_of_warp(u32 ok, const int32_t (&bins)[ITEMS], u64 (&lo)[ITEMS], u64 (&hi)[ITEMS],
					 const Body &body)
{
	int32_t bin[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		bin[j] = bins[j];
#pragma unroll 1
	for (; __any_sync(~0u, ok); ok >>= 1)
	{
		body(ok & 1, bin[0], lo[0], hi[0]);
#pragma unroll
		for (int j = 0; j + 1 < ITEMS; j++)
		{
			bin[j] = bin[j + 1];
			lo[j] = lo[j + 1];
			hi[j] = hi[j + 1];
		}
	}
}

/*
 * Adds the carry out of a bin's word in shared memory to sums[bin] in device memory. It is `unit`,
 * or -`unit` if `borrow`. Lanes with carries for the same bin are combined, because large numbers
 * of a hot key carry with every second row.
 */
static __device__ __forceinline__ void
add_carry_to_memory(u64 *sums, u32 bin, bool borrow, u64 unit)
{
	u32 active = __activemask(), peers = __match_any_sync(active, bin),
		borrows = __ballot_sync(active, borrow) & peers;

	if (threadIdx.x % 32 == (u32) __ffs(peers) - 1)
		atomicAdd(sums + bin, (u64) (int64_t) (__popc(peers) - 2 * __popc(borrows)) * unit);
}

/* ---- adding one row --------------------------------------------------------- */

/* Adds an integer, with the words lo and hi, to a sum in form INT. */
static __device__ __forceinline__ void
add_integer(const HistArgs &args, const HistSlot &slot, u32 *p, u32 plane, u32 bin, u64 lo, u64 hi)
{
	u32 fill = (slot.input_words == 4 ? (int64_t) hi : (int64_t) lo) < 0 ? ~0u : 0;
	int carry;

	if (slot.input_words == 1)
	{
		u32 a[1] = {(u32) lo};

		carry = add_words<1>(p, plane, slot.words, a, fill, 0);
		if (slot.spill && carry)
			atomicAdd(&args.limb[(slot.limb + slot.words) * (size_t) args.limb_bins + bin],
					  (u64) (int64_t) carry);
	}
	else if (slot.input_words == 2)
	{
		u32 a[2] = {(u32) lo, (u32) (lo >> 32)};

		add_words<2>(p, plane, slot.words, a, fill, 0);
	}
	else
	{
		u32 a[4] = {(u32) lo, (u32) (lo >> 32), (u32) hi, (u32) (hi >> 32)};

		add_words<4>(p, plane, slot.words, a, fill, 0);
	}
}

/* Adds the square of an integer v to a sum in form INTSQ. */
static __device__ __forceinline__ void
add_square(const HistSlot &slot, u32 *p, u32 plane, u64 v)
{
	u64 m = (int64_t) v < 0 ? -v : v;
	u64 lo = m * m, hi = __umul64hi(m, m);

	if (slot.input_words == 4)
	{
		u32 a[4] = {(u32) lo, (u32) (lo >> 32), (u32) hi, (u32) (hi >> 32)};

		add_words<4>(p, plane, slot.words, a, 0, 0);
	}
	else
	{
		u32 a[2] = {(u32) lo, (u32) (lo >> 32)};

		add_words<2>(p, plane, slot.words, a, 0, 0);
	}
}

/*
 * Adds a carry v to word w of the digits at shared[at]. If the word overflows, adds its carry to
 * the next word, and so on. This is rare. The function names shared memory and takes no pointer:
 * through a generic pointer an addition would be a compare-and-swap loop, which starves on the
 * words of a hot key.
 */
static __device__ __noinline__ void
add_carry_to_word(const HistArgs &args, const HistSlot &slot, u32 at, u32 plane, u32 bin, int w,
				  int v)
{
	extern __shared__ __align__(16) u32 shared[];

	/* word 0 may be zero now although there are rows, so the state must not stay -0 */
	if (w == 1)
		replace_negative_zero(slot, bin);
	for (; w < slot.words; w++)
	{
		u32 old = atomicAdd(&shared[at + w * plane], (u32) v);

		if (!fix_overflows(w, old, (u32) v, old + v))
			return;
		v = v < 0 ? -fix_carry_value(w) : fix_carry_value(w);
	}
	if (slot.spill)
		atomicAdd(&args.limb[(slot.limb + slot.words) * (size_t) args.limb_bins + bin],
				  (u64) (int64_t) v);
}

/*
 * Adds items to chains (hist.cuh), word by word for all items, so that their atomics overlap.
 * at[j]: shared_address() of the lowest word of item j's chain; plane: bytes of a plane; d[j]: the
 * item's words; in: a bit for each item that is to be added; low: some lowest word is not 0.
 */
template <int ITEMS>
static __device__ __forceinline__ void
add_to_chains(const u32 (&at)[ITEMS], u32 plane, const u32 (&d)[ITEMS][FIX_CHAIN_WORDS], u32 in,
			  bool low)
{
	u32 carry[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		carry[j] = 0;
	if (low)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if ((in >> j & 1) && d[j][0])
				carry[j] = shared_add(at[j], d[j][0]) + d[j][0] < d[j][0];
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32 v = d[j][1] + carry[j], sum = ~0u;
		bool wraps = v < carry[j];

		if (in >> j & 1)
			sum = shared_add(at[j] + plane, v) + v;
		if (sum == 0)
			shared_or(at[j] + 3 * plane, 1);
		carry[j] = sum < v || wraps;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32 v = d[j][2] + carry[j], sum = ~0u;
		bool wraps = v < carry[j];

		if (in >> j & 1)
			sum = shared_add(at[j] + 2 * plane, v) + v;
		carry[j] = sum < v || wraps;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32 v = d[j][3] + carry[j];

		if ((in >> j & 1) && v)
			shared_increase(at[j] + 3 * plane, 2 * v);
	}
}

/* Adds a double, given by its bits, to a FIX sum. Returns false if it is out of the window. */
static __device__ __forceinline__ bool
add_fix_digits(const HistArgs &args, const HistSlot &slot, int e0, u32 *p, u32 plane, u32 bin,
			   u64 bits)
{
	extern __shared__ __align__(16) u32 shared[];
	double v = __longlong_as_double(bits);
	u32 d[FIX_DIGITS];

	if (bits == 1ULL << 63) /* -0, the identity */
		return true;
	if (is_chain(slot))
	{
		const u32 at[1] = {shared_address(p)};
		u32 words[1][FIX_CHAIN_WORDS];
		bool fits = FixWindow<FIX_CHAIN_WORDS>(e0, slot.max_shift).cut(v, words[0]);

		add_to_chains<1>(at, plane * (u32) sizeof(u32), words, fits, true);
		return fits;
	}
	if (!FixWindow<FIX_DIGITS>(e0, slot.max_shift).cut(v, d))
		return false;
#pragma unroll
	for (int k = 0; k < FIX_DIGITS; k++)
	{
		u32 old = atomicAdd(p + (size_t) k * plane, d[k]);

		if (fix_overflows(k, old, d[k], old + d[k]))
			add_carry_to_word(args, slot, (u32) (p - shared), plane, bin, k + 1,
							  (int) d[k] < 0 ? -fix_carry_value(k) : fix_carry_value(k));
	}
	return true;
}

/* Adds a row to a FIX, ACCUM or REGR slot. Returns false if it is out of the window. */
static __device__ __forceinline__ bool
add_floats(const HistArgs &args, const HistSlot &slot, int s, u32 *p, u32 plane, u32 bin, u64 lo,
		   u64 hi)
{
	int w = slot.words, w2 = slot.words2;
	FixValue f, g;

	if (slot.form == HIST_FIX)
		return add_fix_digits(args, slot, args.window[2 * s], p, plane, bin, lo);
	if (!fix_from_double(lo, args.window[2 * s], slot.max_shift, f))
		return false;
	if (slot.form == HIST_ACCUM)
	{
		if (slot.digit_bits == 24)
			add_moments<24>(args, slot, bin, shared_address(p), plane * (u32) sizeof(u32), f);
		else
			add_moments<28>(args, slot, bin, shared_address(p), plane * (u32) sizeof(u32), f);
		return true;
	}
	if (!fix_from_double(hi, args.window[2 * s + 1], slot.max_shift, g))
		return false;
	atomicAdd(p, 1u);
	add_fix(p + plane, plane, w, f);
	add_fix(p + (size_t) (1 + w) * plane, plane, w, g);
	p += (size_t) (1 + 2 * w) * plane;
	add_product(p, plane, w2, f, f);
	add_product(p + (size_t) w2 * plane, plane, w2, g, g);
	add_product(p + (size_t) (2 * w2) * plane, plane, w2, f, g);
	return true;
}

/*
 * Combines x, a decimal whose code is 0, into the state of a minimum or maximum. Shared memory
 * cannot hold x, because code 0 stands for an empty bin there.
 */
static __device__ __noinline__ void
change_decimal_extreme(const HistArgs &args, int s, u32 bin, int64_t x)
{
	if (args.slot[s].op == MONOID_MIN_DEC)
		change_bin<Op_min_dec>(args, s, bin, min_dec_lift(x));
	else
		change_bin<Op_max_dec>(args, s, bin, max_dec_lift(x));
}

/* ---- flush ------------------------------------------------------------------ */

/* Returns the sum of a bin's copies of a word. */
static __device__ __forceinline__ u32
sum_of_copies(const u32 *p, u32 bin, int lc)
{
	u32 mask = (1u << lc) - 1, sum = 0;

#pragma unroll 8
	for (u32 m = 0; m <= mask; m++)
		sum += p[(bin << lc) | ((m + bin) & mask)];
	return sum;
}

/*
 * Returns i rotated within [0, n) by an offset of the block. Blocks flush in different orders, so
 * that they do not all add to the same limbs at the same time.
 */
static __device__ __forceinline__ u32
rotate_by_block(u32 i, u32 n)
{
	i += (u32) ((u64) n * blockIdx.x / gridDim.x);
	return i < n ? i : i - n;
}

/*
 * Returns limb k of a chain, combined from the words of all copies of the bin: the sum of word k,
 * or, as the last limb, how many copies have rows other than -0.
 */
static __device__ __forceinline__ u64
limb_from_chains(const u32 *p, u32 plane, int lc, u32 bin, int k)
{
	u32 mask = (1u << lc) - 1;
	u64 r = 0;

	p += (size_t) min(k, FIX_CHAIN_WORDS - 1) * plane;
	for (u32 m = 0; m <= mask; m++)
	{
		u32 v = p[(bin << lc) | ((m + bin) & mask)];

		r += k < FIX_CHAIN_WORDS - 1 ? (u64) v :
			k < FIX_CHAIN_WORDS      ? (u64) (int64_t) ((int32_t) v >> 1) :
									   (u64) (v & 1);
	}
	return r;
}

/*
 * Returns limb k of a bin, combined from the words of all its copies. The top word of a two's
 * complement sum is signed. So are the digits above the lowest, and all digits of ACCUM.
 */
static __device__ __forceinline__ u64
limb_from_words(const HistSlot &slot, const u32 *p, u32 plane, int lc, u32 bin, int k)
{
	u32 mask = (1u << lc) - 1;
	u64 r = 0;

	switch (slot.form)
	{
		case HIST_CAS: /* a single copy; flush_cas_bins handles several */
			return ((const u64 *) p)[bin];
		case HIST_MAX64:
			for (u32 m = 0; m <= mask; m++)
			{
				u64 v = ((const u64 *) p)[(bin << lc) | m];

				r = v > r ? v : r;
			}
			return r;
		case HIST_MAX32:
			for (u32 m = 0; m <= mask; m++)
			{
				u32 v = p[(bin << lc) | m];

				r = v > r ? v : r;
			}
			return r;
		case HIST_OR64:
		case HIST_XOR64:
			for (u32 m = 0; m <= mask; m++)
			{
				u32 at = (bin << lc) | m;
				u64 v = (u64) p[at + plane] << 32 | p[at];

				r = slot.form == HIST_OR64 ? r | v : r ^ v;
			}
			return r;
		default:
			break;
	}
	if (is_chain(slot))
		return limb_from_chains(p, plane, lc, bin, k);
	if (slot.spill && k == slot.words)
		return 0;
	for (u32 m = 0; m <= mask; m++)
	{
		u32 v = p[(size_t) k * plane + ((bin << lc) | ((m + bin) & mask))];
		bool top = slot.form == HIST_INT ? k == slot.words - 1 && !slot.spill :
			slot.form == HIST_FIX        ? k > 0 :
			slot.form == HIST_ACCUM      ? k > 0 :
										   slot.form == HIST_REGR && k > 0 &&
				(k <= 2 * slot.words ? k % slot.words == 0 :
									   (k - 2 * slot.words) % slot.words2 == 0);

		r += top ? (u64) (int64_t) (int32_t) v : (u64) v;
	}
	return r;
}

/* Combines v, a block's limb of a bin, into the limb of the bin in device memory. */
static __device__ __forceinline__ void
combine_into_limb(const HistSlot &slot, u64 *limb, u64 v)
{
	if (v == 0)
		return;
	switch (slot.form)
	{
		case HIST_MAX32:
		case HIST_MAX64:
			/* most blocks do not have the greatest value */
			if (__ldcg(limb) < v)
				atomicMax(limb, v);
			break;
		case HIST_OR64:
			atomicOr(limb, v);
			break;
		case HIST_XOR64:
			atomicXor(limb, v);
			break;
		default:
			atomicAdd(limb, v);
	}
}

/*
 * Combines the copies of each bin of a slot in form CAS, and combines the result into the bin's
 * limb by compare-and-swap. Returns error bits.
 */
template <typename Op>
static __device__ __forceinline__ int
flush_cas_bins(const u64 *p, int lc, u32 nbins, u64 *limb)
{
	u32 mask = (1u << lc) - 1;
	int err = 0;

	for (u32 i = threadIdx.x; i < nbins; i += blockDim.x)
	{
		u32 b = rotate_by_block(i, nbins);
		u64 old, any = 0;
		typename Op::State v = Op::identity();

		for (u32 m = 0; m <= mask; m++)
		{
			u64 bits = p[(b << lc) | ((m + b) & mask)];

			any |= bits;
			if (bits)
				err |= combine_into<Op>(v, cas_word_state<Op>(bits));
		}
		if (any == 0)
			continue;
		old = __ldcg(limb + b);
		while (!try_change<Op>(limb + b, old, identity_bits<Op>(), v, err))
			;
	}
	return err;
}

/*
 * Flushes nbins bins of all slots from shared memory to the limb planes at `limbs`. The first bin
 * has index `first` in the planes, which must be even.
 */
static __device__ __noinline__ void
flush_to_limbs(const HistArgs &args, const u32 *shared, int lc, u32 nbins, u64 *limbs, u32 first)
{
	u32 plane = args.pass_bins << lc;

	for (int s = 0; s < args.nslots; s++)
	{
		const HistSlot &slot = args.slot[s];
		const u32 *p = shared + (size_t) slot.word * plane;

		/*
		 * counts of a call are below 2^32, so a limb has two of them, which takes half the atomics
		 */
		if (slot.form == HIST_COUNT)
		{
			u64 *limb = limbs + (size_t) slot.limb * args.limb_bins + first / 2;
			u32 pairs = (nbins + 1) / 2;

			for (u32 i = threadIdx.x; i < pairs; i += blockDim.x)
			{
				u32 b = 2 * rotate_by_block(i, pairs);
				u64 v = sum_of_copies(p, b, lc);

				v |= (u64) sum_of_copies(p, b + 1, lc) << 32;
				if (v)
					atomicAdd(limb + b / 2, v);
			}
			continue;
		}
		if (slot.form == HIST_CAS)
		{
			int err = 0;

			with_operator(slot.op,
						  [&](auto op)
						  {
							  if constexpr (form_of(op.id) == HIST_CAS)
								  err = flush_cas_bins<decltype(op)>(
									  (const u64 *) p, lc, nbins,
									  limbs + (size_t) slot.limb * args.limb_bins + first);
						  });
			if (err)
				atomicOr(&args.status->errors[slot.number], (u32) err);
			continue;
		}
		for (int k = 0; k < slot.nlimbs; k++)
		{
			u64 *limb = limbs + (size_t) (slot.limb + k) * args.limb_bins + first;

			for (u32 i = threadIdx.x; i < nbins; i += blockDim.x)
			{
				u32 b = rotate_by_block(i, nbins);

				combine_into_limb(slot, limb + b, limb_from_words(slot, p, plane, lc, b, k));
			}
		}
	}
}

/*
 * Combines nbins bins of all slots with states, without limbs. The block must own the bins.
 * bin_of(place) is the number of the bin at a place of a plane. There are no copies.
 */
template <typename BinOf>
static __device__ __noinline__ void
flush_to_states(const HistArgs &args, const u32 *shared, u32 plane, u32 nbins, const BinOf &bin_of)
{
	for (int s = 0; s < args.nslots; s++)
	{
		const HistSlot &slot = args.slot[s];
		const u32 *p = shared + (size_t) slot.word * plane;

		for (u32 b = threadIdx.x; b < nbins; b += blockDim.x)
		{
			u64 limb[HIST_MAX_LIMBS];

			for (int k = 0; k < slot.nlimbs; k++)
				limb[k] = limb_from_words(slot, p, plane, 0, b, k);
			fold_limbs(args, s, bin_of(b), limb);
		}
	}
}

/* Returns limb k of a bin. A limb of COUNT has the counts of two bins. */
static __device__ __forceinline__ u64
read_limb(const HistArgs &args, const HistSlot &slot, const u64 *limbs, u32 bin, int k)
{
	if (slot.form == HIST_COUNT)
		return __ldcg((const u32 *) (limbs + (size_t) slot.limb * args.limb_bins) + bin);
	return __ldcg(limbs + (size_t) (slot.limb + k) * args.limb_bins + bin);
}

/*
 * Combines the limbs of bin bin0 + b with the bin's state of slot s. b is the index of the bin in
 * the limb planes. If rows are partitioned by key, bin0 + b is a group.
 */
static __device__ __noinline__ void
fold_bin_of_slot(const HistArgs &args, int s, const u64 *limbs, u32 bin0, u32 b)
{
	const HistSlot &slot = args.slot[s];
	u64 limb[HIST_MAX_LIMBS];

	for (int k = 0; k < slot.nlimbs; k++)
		limb[k] = read_limb(args, slot, limbs, b, k);
	fold_limbs(args, s, bin_of_group(args.part.bins, bin0 + b), limb);
}

/*
 * Flushes n bins to the limbs of a split partition. The block that finishes the last work item of
 * the partition combines the limbs with the states. last: a word of shared memory.
 */
static __device__ __noinline__ void
flush_split_partition(const HistArgs &args, const u32 *shared, u32 bin0, u32 n, int split,
					  u32 *last)
{
	u64 *limbs = args.limb + (size_t) split * args.limbs * args.limb_bins;

	flush_to_limbs(args, shared, 0, n, limbs, 0);
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		*last = atomicAdd(&args.part.split_done[split], 1) + 1 == args.part.split_items[split];
	__syncthreads();
	if (!*last)
		return;
	__threadfence();
	for (u32 i = threadIdx.x; i < n * args.nslots; i += blockDim.x)
		fold_bin_of_slot(args, i / n, limbs, bin0, i % n);
}

/* Clears words of shared memory. All threads of the block must call it. */
static __device__ __forceinline__ void
clear_shared(u32 *shared, size_t words)
{
	uint4 *vector = (uint4 *) shared;

	for (size_t i = threadIdx.x; i < words / 4; i += blockDim.x)
		vector[i] = make_uint4(0, 0, 0, 0);
	for (size_t i = (words & ~(size_t) 3) + threadIdx.x; i < words; i += blockDim.x)
		shared[i] = 0;
}

#endif /* GPUAGG_HIST_SHARED_CUH */
