/*
 * group.cuh
 *	  Keys and the hash table of group-by, as kernels see them.
 *
 * Open addressing with linear probing; the slot of a key is its hash scaled to
 * the number of slots, so keys that were partitioned by hash meet in one part of the table.
 * A slot's state is 0 (empty), 1 (claimed, the key is being written) or bin + 2.
 * A warp claims slots for all new keys of its rows before it gets bins with one
 * atomic addition, and never waits for another warp in between; rows that met a
 * claimed slot come last, when waiting is safe.
 *
 * No search of gpuagg_group_lookup goes further than GROUP_MOST_PROBES slots.  Tables are half
 * full at most, so that a search of random hashes among 2^31 groups passes about a hundred at the
 * longest; where it is more, keys collide that were made to.  Such a row gets no bin and is
 * counted as lost, and the caller takes another seed.
 */
#ifndef GPUAGG_GROUP_CUH
#define GPUAGG_GROUP_CUH

#include "hist.cuh"

#define SLOT_EMPTY 0
#define SLOT_CLAIMED 1
#define SLOT_BIN 2

#define GROUP_MOST_PROBES 1024

/* Keys of 4 and 8 bytes are one word, of 16 bytes two. */
template <int WORDS> struct Slot;
template <> struct __align__(16) Slot<1>
{
	u64 key[1];
	u32 state;
	u32 pad;
};
template <> struct __align__(32) Slot<2>
{
	u64 key[2];
	u32 state;
	u32 pad[3];
};

template <int WORDS> struct Key
{
	u64 w[WORDS];
};

struct GroupArgs
{
	void *slots;
	u32 nslots;
	u64 capacity;
	GpuaggHashKey hash;
	int32_t most_probes; /* of one search */
	void *keys;
	GpuaggGroupCounters *counters;
	const void *input;
	const uint8_t *filter;
	u32 nrows;
	bool retry;
	bool plain; /* neither a retry nor a filter */
	int32_t *bins;
	u32 buckets; /* of the cache, or 0 */
};

template <int BYTES>
static __device__ __forceinline__ Key<BYTES == 16 ? 2 : 1>
load_key(const void *keys, u32 row)
{
	Key<BYTES == 16 ? 2 : 1> k;

	if constexpr (BYTES == 4)
		k.w[0] = ((const u32 *) keys)[row];
	else if constexpr (BYTES == 8)
		k.w[0] = ((const u64 *) keys)[row];
	else
	{
		k.w[0] = ((const u64 *) keys)[2 * (size_t) row];
		k.w[1] = ((const u64 *) keys)[2 * (size_t) row + 1];
	}
	return k;
}

template <int BYTES, int WORDS>
static __device__ __forceinline__ void
store_key(void *keys, u64 at, const Key<WORDS> &k)
{
	if constexpr (BYTES == 4)
		((u32 *) keys)[at] = (u32) k.w[0];
	else
		for (int i = 0; i < WORDS; i++)
			((u64 *) keys)[WORDS * at + i] = k.w[i];
}

template <int WORDS>
static __device__ __forceinline__ u64
hash_key(const GpuaggHashKey &hash, const Key<WORDS> &k)
{
	if constexpr (WORDS == 2)
		return gpuagg_hash128(&hash, k.w[0], k.w[1]);
	else
		return gpuagg_hash64(&hash, k.w[0]);
}

template <int WORDS>
static __device__ __forceinline__ bool
same_key(const Slot<WORDS> &s, const Key<WORDS> &k)
{
	bool same = s.key[0] == k.w[0];

	if constexpr (WORDS == 2)
		same = same && s.key[1] == k.w[1];
	return same;
}

/*
 * A slot as this multiprocessor's cache has it: maybe stale, but once full for
 * ever right, as it is written in one piece.  A slot of 32 bytes is not, and
 * the cache may show a new state beside an old key: it has to be read fresh.
 */
static __device__ __forceinline__ Slot<1>
read_slot_cached(const Slot<1> *p)
{
	u64 hi;
	Slot<1> s;

	/* one access of 16 bytes, of which the words of a vector need not be */
	asm("{ .reg .b128 t; ld.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
		: "=l"(s.key[0]), "=l"(hi)
		: "l"(p));
	s.state = (u32) hi;
	return s;
}

/* The same as all see it; a slot of 16 bytes is read and written as one. */
template <int WORDS>
static __device__ __forceinline__ Slot<WORDS>
read_slot(const Slot<WORDS> *p)
{
	Slot<WORDS> s;

	if constexpr (WORDS == 1)
	{
		u64 hi;

		asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
					 : "=l"(s.key[0]), "=l"(hi)
					 : "l"(p)
					 : "memory");
		s.state = (u32) hi;
	}
	else
	{
		s.state = *(const volatile u32 *) &p->state;
		__threadfence();
		for (int i = 0; i < WORDS; i++)
			s.key[i] = *(const volatile u64 *) &p->key[i];
	}
	return s;
}

template <bool FRESH, int WORDS>
static __device__ __forceinline__ Slot<WORDS>
see_slot(const Slot<WORDS> *slot)
{
	if constexpr (FRESH)
		return read_slot(slot);
	else
		return read_slot_cached(slot);
}

template <int BYTES, int WORDS>
static __device__ __forceinline__ void
publish(const GroupArgs &args, Slot<WORDS> *p, const Key<WORDS> &k, u32 bin)
{
	store_key<BYTES, WORDS>(args.keys, bin, k);
	if constexpr (WORDS == 1)
	{
		asm volatile("{ .reg .b128 t; mov.b128 t, {%0, %1}; st.relaxed.gpu.global.b128 [%2], t; }"
					 :
					 : "l"(k.w[0]), "l"((u64) bin + SLOT_BIN), "l"(p)
					 : "memory");
	}
	else
	{
		for (int i = 0; i < WORDS; i++)
			*(volatile u64 *) &p->key[i] = k.w[i];
		__threadfence();
		*(volatile u32 *) &p->state = bin + SLOT_BIN;
	}
}

/* The first slot of a hash. */
static __device__ __forceinline__ u32
slot_of(u64 hash, u32 nslots)
{
	return gpuagg_hash_slot(hash, nslots);
}

static __device__ __forceinline__ u32
next_slot(u32 at, u32 nslots)
{
	return at + 1 < nslots ? at + 1 : 0;
}

/* Rows, one bit each, whose searches have gone on for too long. */
static __device__ __forceinline__ void
lose_rows(GpuaggGroupCounters *counters, u32 rows)
{
	if (rows)
		atomicAdd(&counters->lost, (u64) __popc(rows));
}

/*
 * Most rows find their key, without a claim or a wait.  All items in `open` go to their
 * next slots together, from at[] on, as far as the slots are full, and no lane leaves before
 * the last: a loop that each item leaves by itself took half as long again.  Items whose bin
 * was found leave `open`; the others go on, or are lost, in settle, from where they stopped.
 * FRESH: past the multiprocessor's cache, where slots that were empty stay so.  MOST: slots that an
 * item passes at most, or 0: all that are full.
 */
template <bool FRESH, u32 MOST, int WORDS, int ITEMS>
static __device__ __forceinline__ void
find_known(const GroupArgs &args, const Key<WORDS> (&key)[ITEMS], u32 (&at)[ITEMS], u32 &open,
		   int32_t (&bin)[ITEMS])
{
	const Slot<WORDS> *slots = (const Slot<WORDS> *) args.slots;
	Slot<WORDS> seen[ITEMS];
	u32 going = open;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		seen[j] = Slot<WORDS>();
		if (going >> j & 1)
			seen[j] = see_slot<FRESH>(slots + at[j]);
	}
	for (u32 probes = 0; (MOST == 0 || probes < MOST) && __any_sync(~0u, going); probes++)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			bool full = seen[j].state >= SLOT_BIN && (going >> j & 1),
				 hit = full && same_key(seen[j], key[j]), on = full && !hit;

			bin[j] = hit ? (int32_t) (seen[j].state - SLOT_BIN) : bin[j];
			open &= ~((u32) hit << j);
			going &= ~((u32) !on << j);
			if (on)
			{
				at[j] = next_slot(at[j], args.nslots);
				seen[j] = see_slot<FRESH>(slots + at[j]);
			}
		}
	}
}

enum Found
{
	FOUND,    /* its bin is known */
	CLAIMED,  /* this row claimed slot `at` for its key */
	DEFERRED, /* met a claimed slot at `at` */
	NO_ROOM,
	LOST /* passed args.most_probes slots */
};

/*
 * Probes without waiting for other threads.  bin: -1 at first, and less by one with each slot
 * that is passed, which takes no register more; the bin if it is FOUND.
 */
template <int WORDS>
static __device__ __forceinline__ Found
probe(const GroupArgs &args, const Key<WORDS> &k, u32 &at, int32_t &bin)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	Slot<WORDS> s = read_slot(slots + at);

	for (; bin >= -args.most_probes; bin--)
	{
		if (s.state < SLOT_BIN)
		{
			u32 seen;

			/* a full table takes no claims; most readers do not come here */
			if (__ldcg(&args.counters->groups) >= args.capacity &&
				*(volatile u32 *) &slots[at].state == SLOT_EMPTY)
				return NO_ROOM;
			seen = atomicCAS(&slots[at].state, SLOT_EMPTY, SLOT_CLAIMED);
			if (seen == SLOT_EMPTY)
				return CLAIMED;
			if (seen == SLOT_CLAIMED)
				return DEFERRED;
			s = read_slot(slots + at);
		}
		if (same_key(s, k))
		{
			bin = (int32_t) (s.state - SLOT_BIN);
			return FOUND;
		}
		at = next_slot(at, args.nslots);
		s = read_slot(slots + at);
	}
	return LOST;
}

/*
 * One row to its end, waiting for claims of others; -1: it gets no bin.  The key by value: a
 * pointer would keep it in memory.
 */
template <int BYTES, int WORDS>
static __device__ __noinline__ int32_t
settle(const GroupArgs &args, Key<WORDS> k, u32 at)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	int32_t bin = -1;

	for (;;)
	{
		Found f = probe(args, k, at, bin);

		if (f == CLAIMED)
		{
			u64 id = atomicAdd(&args.counters->groups, 1ULL);

			if (id < args.capacity)
			{
				publish<BYTES, WORDS>(args, slots + at, k, (u32) id);
				return (int32_t) id;
			}
			atomicExch(&slots[at].state, SLOT_EMPTY);
			return -1;
		}
		if (f == LOST)
			lose_rows(args.counters, 1);
		if (f != DEFERRED)
			return f == FOUND ? bin : -1;
		while (*(volatile u32 *) &slots[at].state == SLOT_CLAIMED)
			__nanosleep(20);
	}
}

/* Bins for the warp's claims, with one addition. */
static __device__ __forceinline__ u64
reserve_bins(GpuaggGroupCounters *counters, u32 claims)
{
	u32 sum = warp_scan(claims);
	u64 base = 0;

	if (threadIdx.x % 32 == 31)
		base = atomicAdd(&counters->groups, (u64) sum);
	return __shfl_sync(~0u, base, 31) + sum - claims;
}

/* ---- tables, as the host sees them ---- */

static inline u32
slots_of(int64_t capacity)
{
	/* half full at most: lanes of a warp wait for the longest search */
	return 2 * (u32) capacity + 64;
}

static inline bool
table_valid(const GpuaggGroupTable *t)
{
	return (t->key_bytes == 4 || t->key_bytes == 8 || t->key_bytes == 16) && t->capacity > 0 &&
		t->capacity <= INT32_MAX - 64;
}

/* What kernels know of a table. */
static inline GroupArgs
group_args(const GpuaggGroupTable *t)
{
	GroupArgs args = GroupArgs();

	args.slots = t->slots;
	args.nslots = slots_of(t->capacity);
	args.capacity = (u64) t->capacity;
	args.hash = gpuagg_hash_key(t->seed);
	args.most_probes = INT32_MAX - 1;
	args.keys = t->keys;
	args.counters = t->counters;
	return args;
}

#endif /* GPUAGG_GROUP_CUH */
