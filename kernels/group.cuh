/*
 * group.cuh
 *	  The hash table of group-by in device memory: its slots, and the search for a key.
 *
 * The table uses open addressing with linear probing.  The first slot of a key is its hash, scaled
 * to the number of slots.  The state of a slot is SLOT_EMPTY, SLOT_CLAIMED (a thread is writing the
 * key), or SLOT_BIN + the bin of the key.
 *
 * A warp first claims slots for all new keys of its rows, then gets their bins with one atomic
 * addition, and then fills the slots.  It does not wait for another warp before that.  Rows that
 * met a slot claimed by another thread come last, when waiting cannot deadlock.
 *
 * A search of gpuagg_group_lookup passes at most GROUP_MOST_PROBES slots.  Tables are at most half
 * full, so that the longest search of random hashes among 2^31 groups passes about a hundred slots.
 * A longer search means that the keys were chosen to collide.  Its row gets no bin and is counted
 * as lost, and the caller changes the seed.
 */
#ifndef GPUAGG_GROUP_CUH
#define GPUAGG_GROUP_CUH

#include "hist.cuh"

/* States of a slot. */
#define SLOT_EMPTY 0
#define SLOT_CLAIMED 1
#define SLOT_BIN 2

/* A limit against chosen keys, no tuning constant. */
#define GROUP_MOST_PROBES 1024

/* A key of 4 or 8 bytes is one 64-bit word, a key of 16 bytes is two words. */
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

/* A key in registers; one of 4 bytes is zero-extended. */
template <int WORDS> struct Key
{
	u64 w[WORDS];
};

/* Arguments of the kernels: a table, and the batch of a lookup. */
struct GroupArgs
{
	void *slots; /* nslots of Slot<1> or Slot<2> */
	u32 nslots;
	u64 capacity; /* most groups */
	GpuaggHashKey hash;
	int32_t most_probes; /* slots that one search may pass */
	void *keys;          /* the key of each bin */
	GpuaggGroupCounters *counters;
	/* only in a lookup: */
	const void *input; /* keys of the batch */
	const uint8_t *filter;
	u32 nrows;
	bool retry;    /* only rows whose bin is -1 */
	bool plain;    /* all rows: neither a retry nor a filter */
	int32_t *bins; /* the result */
	u32 buckets;   /* buckets of the cache in shared memory; 0: no cache */
};

/* Loads the key of a row, of BYTES bytes. */
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

/* Stores a key of BYTES bytes as element `at` of an array of keys. */
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

/* Returns the hash of a key, seeded by `hash`. */
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
 * Loads a slot through the L1 cache.  It may be stale.  But a slot is written once, by one store of
 * 16 bytes, so that a slot that has a bin is right.  A slot of 32 bytes takes several stores, so
 * the cache could show a new state and an old key: such slots need read_slot().
 */
static __device__ __forceinline__ Slot<1>
read_slot_cached(const Slot<1> *p)
{
	u64 hi;
	Slot<1> s;

	/* one access of 16 bytes; a vector load may be split */
	asm("{ .reg .b128 t; ld.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
		: "=l"(s.key[0]), "=l"(hi)
		: "l"(p));
	s.state = (u32) hi;
	return s;
}

/*
 * Loads a slot from the L2 cache, as all multiprocessors see it.  A slot of 16 bytes is one access.
 * A slot of 32 bytes is read state first, because its state is written last.
 */
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

/* Loads a slot: from the L2 cache if FRESH, else through the L1 cache (only slots of 16 bytes). */
template <bool FRESH, int WORDS>
static __device__ __forceinline__ Slot<WORDS>
load_slot(const Slot<WORDS> *slot)
{
	if constexpr (FRESH)
		return read_slot(slot);
	else
		return read_slot_cached(slot);
}

/*
 * Writes the key of a new bin to the table's array of keys.  Then writes key and bin to the slot
 * *p, which this thread claimed, so that other threads find them.
 */
template <int BYTES, int WORDS>
static __device__ __forceinline__ void
publish_group(const GroupArgs &args, Slot<WORDS> *p, const Key<WORDS> &k, u32 bin)
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

/* Returns the slot where the search for a key with this hash begins. */
static __device__ __forceinline__ u32
slot_of(u64 hash, u32 nslots)
{
	return gpuagg_hash_slot(hash, nslots);
}

/* Returns the slot after `at`; the first slot comes after the last. */
static __device__ __forceinline__ u32
next_slot(u32 at, u32 nslots)
{
	return at + 1 < nslots ? at + 1 : 0;
}

/* Adds the number of bits in `rows`, the rows whose searches were too long, to counters->lost. */
static __device__ __forceinline__ void
count_lost_searches(GpuaggGroupCounters *counters, u32 rows)
{
	if (rows)
		atomicAdd(&counters->lost, (u64) __popc(rows));
}

/*
 * Finds the bins of keys that the table has, without claims or waits.  That is enough for most
 * rows.
 *
 * All keys in `open` step to their next slots together, from at[] on, until a slot is not full or
 * GROUP_MOST_PROBES were passed.  The warp leaves the loop when its last key stops; a loop that
 * each key leaves separately took 1.5 times as long.  Sets bin[] and clears the bit in `open` if
 * the key was found.  Otherwise at[] is the slot where the search stopped, and
 * find_or_insert_waiting continues there.  FRESH: reads past the L1 cache, which may still show
 * slots as empty.
 */
template <bool FRESH, int WORDS, int ITEMS>
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
			seen[j] = load_slot<FRESH>(slots + at[j]);
	}
	for (u32 probes = 0; probes < GROUP_MOST_PROBES && __any_sync(~0u, going); probes++)
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
				seen[j] = load_slot<FRESH>(slots + at[j]);
			}
		}
	}
}

enum ProbeResult
{
	FOUND,    /* the bin is known */
	CLAIMED,  /* this thread claimed slot `at` for the key */
	DEFERRED, /* slot `at` is claimed by another thread */
	NO_ROOM,  /* the key is new and the table is full */
	LOST      /* the search passed args.most_probes slots */
};

/*
 * Searches one key from slot `at` on, without waiting for other threads.  `bin` is -1 at first.  It
 * counts the slots that were passed, as -1 less their number, which saves a register.  If the
 * result is FOUND, it is the bin.
 */
template <int WORDS>
static __device__ __forceinline__ ProbeResult
probe_slots(const GroupArgs &args, const Key<WORDS> &k, u32 &at, int32_t &bin)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	Slot<WORDS> s = read_slot(slots + at);

	for (; bin >= -args.most_probes; bin--)
	{
		if (s.state < SLOT_BIN)
		{
			u32 seen;

			/* a full table takes no claims; few searches come here */
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
 * Finds or inserts one key from slot `at` on, and waits for claims of other threads.  Returns the
 * bin, or -1 if the table is full or the search too long.  The key is passed by value, as a pointer
 * to it would keep it in local memory.
 */
template <int BYTES, int WORDS>
static __device__ __noinline__ int32_t
find_or_insert_waiting(const GroupArgs &args, Key<WORDS> k, u32 at)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	int32_t bin = -1;

	for (;;)
	{
		ProbeResult f = probe_slots(args, k, at, bin);

		if (f == CLAIMED)
		{
			u64 id = atomicAdd(&args.counters->groups, 1ULL);

			if (id < args.capacity)
			{
				publish_group<BYTES, WORDS>(args, slots + at, k, (u32) id);
				return (int32_t) id;
			}
			atomicExch(&slots[at].state, SLOT_EMPTY);
			return -1;
		}
		if (f == LOST)
			count_lost_searches(args.counters, 1);
		if (f != DEFERRED)
			return f == FOUND ? bin : -1;
		while (*(volatile u32 *) &slots[at].state == SLOT_CLAIMED)
			__nanosleep(20);
	}
}

/*
 * Reserves bins for all claims of the warp with one atomic addition.  Returns the first bin of this
 * lane, which has `claims` of them.
 */
static __device__ __forceinline__ u64
reserve_bins(GpuaggGroupCounters *counters, u32 claims)
{
	u32 sum = warp_scan(claims);
	u64 base = 0;

	if (threadIdx.x % 32 == 31)
		base = atomicAdd(&counters->groups, (u64) sum);
	return __shfl_sync(~0u, base, 31) + sum - claims;
}

/* ---- host ---- */

/* Returns the number of slots of a table for up to `capacity` groups. */
static inline u32
slots_for_capacity(int64_t capacity)
{
	/* at most half full: lanes of a warp wait for the longest search */
	return 2 * (u32) capacity + 64;
}

/* Returns whether the size of keys and the capacity of a table are supported. */
static inline bool
is_table_valid(const GpuaggGroupTable *t)
{
	return (t->key_bytes == 4 || t->key_bytes == 8 || t->key_bytes == 16) && t->capacity > 0 &&
		t->capacity <= INT32_MAX - 64;
}

/* Returns kernel arguments for a table, without a batch. */
static inline GroupArgs
group_args(const GpuaggGroupTable *t)
{
	GroupArgs args = GroupArgs();

	args.slots = t->slots;
	args.nslots = slots_for_capacity(t->capacity);
	args.capacity = (u64) t->capacity;
	args.hash = gpuagg_hash_key(t->seed);
	args.most_probes = INT32_MAX - 1;
	args.keys = t->keys;
	args.counters = t->counters;
	return args;
}

#endif /* GPUAGG_GROUP_CUH */
