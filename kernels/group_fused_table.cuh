/*
 * group_fused_table.cuh
 *	  The table in shared memory of group-by as one operation: finding entries,
 *	  adding, and from words to the table of groups and states.
 */
#ifndef GPUAGG_GROUP_FUSED_TABLE_CUH
#define GPUAGG_GROUP_FUSED_TABLE_CUH

#include "group_fused.cuh"
#include "hist_state.cuh"

#define ITEMS FUSED_ITEMS
#define THREADS FUSED_THREADS

/* What a warp's lanes search together: entries past the first two. */
#define SEARCH_LANES 16
#define SCRATCH_BYTES (THREADS / 32 * SEARCH_LANES * 8)

/* A count's top bit: the lowest digit has wrapped around. */
#define COUNT_WRAPPED 0x80000000u

/*
 * Entries are hashes, zero where free; the key with that hash has an entry of
 * its own past the end.  Words are planes of `plane` columns; an entry has
 * 1 << log2_copies columns, so that lanes with the same key need not wait.
 */
struct FusedTable
{
	int			log2_entries;
	int			log2_copies;
	u32			plane;
	u32			base;			/* address of hashes() within shared memory */

	__device__ __forceinline__ u64 *
	hashes() const
	{
		extern __shared__ __align__(16) char part_memory[];

		return (u64 *) (part_memory + SCRATCH_BYTES);
	}
	/* ahead of them: a few words of each warp, or a bit for each slot of a partition */
	__device__ __forceinline__ u64 *scratch() const { return hashes() - SCRATCH_BYTES / 8; }
	__device__ __forceinline__ u32 entries() const { return 1u << log2_entries; }
	__device__ __forceinline__ u32 *counts() const { return (u32 *) (hashes() + entries()); }
	/* addresses within shared memory, for what is done with every row */
	__device__ __forceinline__ u32 hash_at(u32 entry) const { return base + 8 * entry; }
	__device__ __forceinline__ u32 count_at(u32 column) const { return base + (8 << log2_entries) + 4 * column; }
};

static __device__ __forceinline__ u64
shared_read(u32 at)
{
	u64			v;

	asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(v) : "r"(at) : "memory");
	return v;
}

static __device__ __forceinline__ void
shared_write(u32 at, u64 v)
{
	asm volatile("st.volatile.shared.u64 [%0], %1;" : : "r"(at), "l"(v) : "memory");
}

/* An entry that was free is given to the hash; returns what was there. */
static __device__ __forceinline__ u64
shared_take(u32 at, u64 hash)
{
	u64			old;

	asm volatile("atom.shared.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "r"(at), "l"(0ULL), "l"(hash) : "memory");
	return old;
}

static __host__ __device__ __forceinline__ u32
fused_plane(int log2_entries, int log2_copies)
{
	return ((1u << log2_entries) + 1) << log2_copies;
}

static __host__ __device__ __forceinline__ size_t
fused_table_bytes(int kind, int log2_entries, int log2_copies)
{
	return SCRATCH_BYTES + ((size_t) 8 << log2_entries) +
		(size_t) 4 * (1 + fused_words(kind)) * fused_plane(log2_entries, log2_copies);
}

static __device__ __forceinline__ FusedTable
fused_table(const FusedArgs &f)
{
	FusedTable	t = {f.log2_entries, f.log2_copies, fused_plane(f.log2_entries, f.log2_copies), 0};

	t.base = shared_address(t.hashes());
	return t;
}

template <int KIND> static __device__ __forceinline__ void
clear_table(const FusedTable &t)
{
	u32		   *p = (u32 *) t.hashes();
	u32			n = 2 * t.entries() + (1 + fused_words(KIND)) * t.plane;

	for (u32 i = threadIdx.x; i < n / 4; i += THREADS)
		((uint4 *) p)[i] = make_uint4(0, 0, 0, 0);
	for (u32 i = (n & ~3u) + threadIdx.x; i < n; i += THREADS)
		p[i] = 0;
}

template <int KIND> using FusedWindow = FixWindow<fused_digits(KIND)>;

#define NEGATIVE_ZERO (1ULL << 63)

/* ---- entries ----------------------------------------------------------------------- */

/* One lane's search from the first entry of a hash on, to an entry that has it or takes it; ~0u: none. */
static __device__ __forceinline__ u32
search_entry(const FusedTable &t, u64 hash)
{
	u32			mask = t.entries() - 1,
				at = (u32) hash & mask & ~1u;

	if (hash == 0)
		return t.entries();
	for (int step = 0; step < FUSED_STEPS; step++)
	{
		u64			seen = shared_read(t.hash_at(at));

		if (seen == 0)
			seen = shared_take(t.hash_at(at), hash);
		if (seen == hash || seen == 0)
			return at;
		at = (at + 1) & mask;
	}
	return ~0u;
}

/*
 * The searches of a warp's items in `need`, some lanes' worth at a time: each
 * item by itself would keep the whole warp for as long as its longest search.
 */
static __device__ __forceinline__ u32
search_entries(const FusedTable &t, const u64 (&hash)[ITEMS], u32 need, u32 (&at)[ITEMS])
{
	u32			scratch = t.base - SCRATCH_BYTES + threadIdx.x / 32 * SEARCH_LANES * 8,
				lane = threadIdx.x % 32,
				none = 0;

	do
	{
		u32			rank[ITEMS],
					n = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			all = __ballot_sync(~0u, need >> j & 1);

			rank[j] = need >> j & 1 ? n + __popc(all & ((1u << lane) - 1)) : SEARCH_LANES;
			n += __popc(all);
			if (rank[j] < SEARCH_LANES)
				shared_write(scratch + 8 * rank[j], hash[j]);
		}
		__syncwarp();
		if (lane < min(n, SEARCH_LANES))
			shared_write(scratch + 8 * lane, search_entry(t, shared_read(scratch + 8 * lane)));
		__syncwarp();
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (rank[j] < SEARCH_LANES)
			{
				at[j] = (u32) shared_read(scratch + 8 * rank[j]);
				need &= ~(1u << j);
				if (at[j] == ~0u)
				{
					none |= 1u << j;
					at[j] = 0;
				}
			}
		__syncwarp();
	} while (__any_sync(~0u, need));
	return none;
}

/*
 * Entries for the hashes in `open`, taken where they have none; returns those
 * that found none.  Most are one of the two at the first entry.
 */
static __device__ __forceinline__ u32
find_entries(const FusedTable &t, const u64 (&hash)[ITEMS], u32 open, u32 (&at)[ITEMS])
{
	u32			mask = (t.entries() - 1) & ~1u,
				need = 0;
	ulonglong2	seen[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		at[j] = (u32) hash[j] & mask;
		asm volatile("ld.volatile.shared.v2.u64 {%0, %1}, [%2];"
					 : "=l"(seen[j].x), "=l"(seen[j].y) : "r"(t.hash_at(at[j])) : "memory");
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		bool		second = seen[j].y == hash[j];

		/* hash 0 is a free entry's, too */
		if ((seen[j].x != hash[j] && !second) || (u32) hash[j] == 0)
			need |= 1u << j;
		at[j] += second;
	}
	need &= open;
	return __any_sync(~0u, need) ? search_entries(t, hash, need, at) : 0;
}

/* ---- adding ----------------------------------------------------------------------- */

/* The seldom carries of a digit that overflowed, from word w on; `at` is the count's address. */
static __device__ __noinline__ void
carry_on(u32 at, u32 plane_bytes, int digits, int w, int v)
{
	if (w == 1)
		shared_or(at, COUNT_WRAPPED);
	for (; w <= digits; w++)
	{
		u32			old = shared_add(at + (1 + w) * plane_bytes, (u32) v);

		/* the word past the digits has room for carries of all rows */
		if (w == digits || !fix_overflows(w, old, (u32) v, old + v))
			return;
		v = v < 0 ? -fix_carry(digits, w) : fix_carry(digits, w);
	}
}

template <int KIND> static __device__ __forceinline__ void
add_floats(u32 plane_bytes, const FusedWindow<KIND> &window, const u32 (&at)[ITEMS],
		   const u64 (&v)[ITEMS], u32 in, u32 &out_of_window)
{
	constexpr int DIGITS = fused_digits(KIND);
	u32			d[ITEMS][DIGITS + 1],
				old[ITEMS][DIGITS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		bool		fits = window.cut(__longlong_as_double(v[j]), d[j]);

#pragma unroll
		for (int k = 0; k < DIGITS; k++)
			old[j][k] = 0;
		if ((in >> j & 1) && v[j] != NEGATIVE_ZERO)
		{
			if (fits)
			{
#pragma unroll
				for (int k = 0; k < DIGITS; k++)
					old[j][k] = shared_add(at[j] + (1 + k) * plane_bytes, d[j][k]);
			}
			else
				out_of_window = 1;
		}
	}
	if (digits_overflow(old, d))
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
#pragma unroll
			for (int k = 0; k < DIGITS; k++)
				if (fix_overflows(k, old[j][k], d[j][k], old[j][k] + d[j][k]))
					carry_on(at[j], plane_bytes, DIGITS, k + 1,
							 (int) d[j][k] < 0 ? -fix_carry(DIGITS, k) : fix_carry(DIGITS, k));
	__syncwarp();
}

static __device__ __forceinline__ void
add_integers(u32 plane_bytes, const u32 (&at)[ITEMS], const u64 (&v)[ITEMS], u32 in)
{
	u32			old[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (in >> j & 1)
			old[j] = shared_add(at[j] + plane_bytes, (u32) v[j]);
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32			hi = (u32) (v[j] >> 32);

		if (in >> j & 1)
		{
			hi += (u32) (old[j] + (u32) v[j]) < old[j];
			if (hi)
				shared_add(at[j] + 2 * plane_bytes, hi);
		}
	}
}

/* The items in `in` to their columns.  out_of_window: a value has no digits in the window, and was left out. */
template <int KIND> static __device__ __forceinline__ void
add_items(const FusedTable &t, const FusedWindow<KIND> &window, const u32 (&column)[ITEMS],
		  const u64 (&v)[ITEMS], u32 in, u32 &out_of_window)
{
	u32			at[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		at[j] = t.count_at(column[j]);
		if (in >> j & 1)
			shared_count(at[j]);
	}
	if constexpr (fused_digits(KIND) > 0)
		add_floats<KIND>(4 * t.plane, window, at, v, in, out_of_window);
	else if constexpr (KIND == FUSED_INT)
		add_integers(4 * t.plane, at, v, in);
}

/* ---- to groups and states ----------------------------------------------------------- */

/* What a group got. */
template <int KIND> struct FusedSums
{
	u64			count;
	bool		wrapped;
	u64			limb[fused_words(KIND) + 1];

	/* Of an entry, from all its columns. */
	__device__ __forceinline__ void
	read(const FusedTable &t, u32 entry)
	{
		const u32  *p = t.counts();

		count = 0;
		wrapped = false;
#pragma unroll
		for (int w = 0; w < fused_words(KIND); w++)
			limb[w] = 0;
		for (u32 m = 0; m < 1u << t.log2_copies; m++)
		{
			u32			at = (entry << t.log2_copies) | ((m + entry) & ((1u << t.log2_copies) - 1)),
						c = p[at];

			count += c & ~COUNT_WRAPPED;
			wrapped = wrapped || c & COUNT_WRAPPED;
#pragma unroll
			for (int w = 0; w < fused_words(KIND); w++)
			{
				u32			v = p[(1 + w) * t.plane + at];

				limb[w] += fused_digits(KIND) > 0 && w > 0 ? (u64) (int64_t) (int32_t) v : (u64) v;
			}
		}
	}
	/* A float sum, and whether any row was added at all. */
	__device__ __forceinline__ gpuagg_i128
	total(bool &touched) const
	{
		gpuagg_u128 sum = limb[0];

#pragma unroll
		for (int w = 1; w < fused_words(KIND); w++)
			sum += (gpuagg_u128) (gpuagg_i128) (int64_t) limb[w] << fix_weight(fused_digits(KIND), w);
		touched = limb[0] != 0 || wrapped || sum != 0;
		return (gpuagg_i128) sum;
	}
	/* Into the states of a new bin, which are identities: they need not be read. */
	__device__ __forceinline__ void
	store(const HistArgs &hist, const FusedArgs &f, u32 bin) const
	{
		if (f.count >= 0)
			__stcg((int64_t *) hist.slot[f.count].states + bin, (int64_t) count);
		if constexpr (KIND == FUSED_INT)
			__stcg((u64 *) hist.slot[f.slot].states + bin, limb[0] + (limb[1] << 32));
		else if constexpr (fused_digits(KIND) > 0)
		{
			const HistSlot &slot = hist.slot[f.slot];
			bool		touched;
			gpuagg_i128 t = total(touched);
			double		sum = i128_to_double(t, hist.window[2 * f.slot]);

			if (!touched)
				return;
			if (isinf((float) sum))	/* near an overflow */
				fold_fix(hist, f.slot, bin, t);
			else if (slot.op == MONOID_SUM_F32)
				__stcg((float *) slot.states + bin, t == 0 ? 0.0f : (float) sum);
			else
				__stcg((double *) slot.states + bin, t == 0 ? 0.0 : sum);
		}
	}
	/* Into the states of a bin that no other thread changes. */
	__device__ __forceinline__ void
	fold(const HistArgs &hist, const FusedArgs &f, u32 bin) const
	{
		if (f.count >= 0)
		{
			int64_t    *p = (int64_t *) hist.slot[f.count].states + bin;

			__stcg(p, __ldcg(p) + (int64_t) count);
		}
		if constexpr (KIND == FUSED_INT)
		{
			u64		   *p = (u64 *) hist.slot[f.slot].states + bin;

			__stcg(p, __ldcg(p) + limb[0] + (limb[1] << 32));
		}
		else if constexpr (fused_digits(KIND) > 0)
		{
			bool		touched;
			gpuagg_i128 t = total(touched);

			if (touched)
				fold_fix(hist, f.slot, bin, t);
		}
	}
};

/* One double straight to its state. */
static __device__ __noinline__ void
change_float(const HistArgs &hist, int s, int32_t bin, u64 v)
{
	const HistSlot &slot = hist.slot[s];
	double		x = __longlong_as_double(v);
	int			err = slot.op == MONOID_SUM_F32 ? change_cas<Op_sum_f32>((float *) slot.states + bin, (float) x)
		: change_cas<Op_sum_f64>((double *) slot.states + bin, x);

	if (err)
		atomicOr(&hist.status->errors[slot.number], (u32) err);
}

/* Where one thread sees a claimed slot: to its end. */
static __device__ __noinline__ int32_t
settle_key(const GroupArgs &table, int key_bytes, Key<1> key, u32 at)
{
	return key_bytes == 4 ? settle<4, 1>(table, key, at) : settle<8, 1>(table, key, at);
}

/* A value outside the window to the state of its key, which exists. */
static __device__ __forceinline__ void
change_late(const HistArgs &hist, const FusedArgs &f, u64 hash, u64 v)
{
	int32_t		bin = settle_key(f.table, f.key_bytes, key_of_hash(f, hash), slot_of(hash, f.table.nslots));

	/* -1: lost, which makes the call fail */
	if (bin >= 0)
		change_float(hist, f.slot, bin, v);
}

static __device__ __forceinline__ void
publish_key(const GroupArgs &table, int key_bytes, u32 at, Key<1> key, u32 bin)
{
	if (key_bytes == 4)
		publish<4, 1>(table, (Slot<1> *) table.slots + at, key, bin);
	else
		publish<8, 1>(table, (Slot<1> *) table.slots + at, key, bin);
}

/* Bins for the slots that the warp claimed: they follow each other item by item. */
static __device__ __forceinline__ void
fill_claimed(const GroupArgs &table, int key_bytes, const Key<1> (&key)[ITEMS], const u32 (&at)[ITEMS], u32 claims,
			 int32_t (&bin)[ITEMS])
{
	Slot<1>    *slots = (Slot<1> *) table.slots;
	u32			claimed[ITEMS],
				all = 0;
	u64			id = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		claimed[j] = __ballot_sync(~0u, claims >> j & 1);
		all += __popc(claimed[j]);
	}
	if (threadIdx.x % 32 == 0 && all)
		id = atomicAdd(&table.counters->groups, (u64) all);
	id = __shfl_sync(~0u, id, 0);
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u64			mine = id + __popc(claimed[j] & ((1u << threadIdx.x % 32) - 1));

		id += __popc(claimed[j]);
		if (!(claims >> j & 1))
			continue;
		if (mine < table.capacity)
		{
			publish_key(table, key_bytes, at[j], key[j], (u32) mine);
			bin[j] = (int32_t) mine;
		}
		else
			atomicExch(&slots[at[j]].state, SLOT_EMPTY);
	}
	__syncwarp();
}

/*
 * Bins of the keys in `open`, new ones where they have none; -1: no room, or lost.
 * Returns those that surely are new, so that their states are identities.  As
 * look_up of group.cu, for keys of which most are new.  All lanes of the warp
 * take part, and no one waits for a slot before all have filled those they claimed.
 */
static __device__ __forceinline__ u32
find_bins_of(const GroupArgs &table, int key_bytes, const u64 (&hash)[ITEMS], const Key<1> (&key)[ITEMS], u32 open,
			 int32_t (&bin)[ITEMS])
{
	Slot<1>    *slots = (Slot<1> *) table.slots;
	u32			at[ITEMS],
				claims = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		bin[j] = -1;
		at[j] = slot_of(hash[j], table.nslots);
	}
	find_known<true, 0>(table, key, at, open, bin);
	if (!__any_sync(~0u, open))
		return 0;

	bool		room = __ldcg(&table.counters->groups) < table.capacity;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if ((open >> j & 1) && room && atomicCAS(&slots[at[j]].state, SLOT_EMPTY, SLOT_CLAIMED) == SLOT_EMPTY)
			claims |= 1u << j;
	__syncwarp();
	fill_claimed(table, key_bytes, key, at, claims, bin);
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if ((open & ~claims) >> j & 1)
			bin[j] = settle_key(table, key_bytes, key[j], at[j]);
	__syncwarp();
	return claims;
}

#undef ITEMS
#undef THREADS

#endif							/* GPUAGG_GROUP_FUSED_TABLE_CUH */
