/*
 * group.cu
 *	  Hash group-by: keys to dense bins.
 *
 * Open addressing with linear probing; the slot of a key is its hash scaled to
 * the number of slots, so keys that were partitioned by hash meet in one part of the table.
 * A slot's state is 0 (empty), 1 (claimed, the key is being written) or bin + 2.
 * A warp claims slots for all new keys of its rows before it asks for bins with one
 * atomic addition, and never waits for another warp in between; rows that met a
 * claimed slot come last, when waiting is safe.
 *
 * Small tables have a cache in shared memory, which every multiprocessor fills
 * from the rows that it sees: a lookup in device memory, even one that the L1
 * cache answers, takes a line for each lane.
 */
#include "partition.cuh"

#define THREADS 256
#define ITEMS 4
#define PARTITIONS 512

/* Threads of a block with a cache: one runs on a multiprocessor. */
#define CACHE_THREADS 1024
/* Buckets from its first where a key may lie. */
#define CACHE_STEPS 8
/* A cache is of use to tables of this many groups for each of its entries. */
#define CACHE_GROUPS 2

#define SLOT_EMPTY 0
#define SLOT_CLAIMED 1
#define SLOT_BIN 2

/* Keys of 4 and 8 bytes are one word, of 16 bytes two. */
template <int WORDS> struct Slot;
template <> struct __align__(16) Slot<1>
{
	u64			key[1];
	u32			state;
	u32			pad;
};
template <> struct __align__(32) Slot<2>
{
	u64			key[2];
	u32			state;
	u32			pad[3];
};

template <int WORDS> struct Key
{
	u64			w[WORDS];
};

struct GroupArgs
{
	void	   *slots;
	u32			nslots;
	u64			capacity;
	void	   *keys;
	GpuaggGroupCounters *counters;
	const void *input;
	const uint8_t *validity;
	const uint8_t *filter;
	u32			nrows;
	bool		retry;
	bool		plain;			/* neither a retry, nor NULLs, nor a filter */
	int32_t    *bins;
	u32			buckets;		/* of the cache, or 0 */
};

template <int BYTES> static __device__ __forceinline__ Key<BYTES == 16 ? 2 : 1>
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

template <int BYTES, int WORDS> static __device__ __forceinline__ void
store_key(void *keys, u64 at, const Key<WORDS> &k)
{
	if constexpr (BYTES == 4)
		((u32 *) keys)[at] = (u32) k.w[0];
	else
		for (int i = 0; i < WORDS; i++)
			((u64 *) keys)[WORDS * at + i] = k.w[i];
}

template <int WORDS> static __device__ __forceinline__ u64
hash_key(const Key<WORDS> &k)
{
	u64			h = mix64(k.w[0]);

	if constexpr (WORDS == 2)
		h = mix64(h + k.w[1] * 0x9E3779B97F4A7C15ULL);
	return h;
}

template <int WORDS> static __device__ __forceinline__ bool
same_key(const Slot<WORDS> &s, const Key<WORDS> &k)
{
	bool		same = s.key[0] == k.w[0];

	if constexpr (WORDS == 2)
		same = same && s.key[1] == k.w[1];
	return same;
}

/* A slot as this multiprocessor's cache has it: maybe stale, but once full for ever right. */
template <int WORDS> static __device__ __forceinline__ Slot<WORDS>
read_slot_cached(const Slot<WORDS> *p)
{
	Slot<WORDS> s;

	if constexpr (WORDS == 1)
	{
		uint4		a = *(const uint4 *) p;

		s.key[0] = (u64) a.y << 32 | a.x;
		s.state = a.z;
	}
	else
	{
		/* the state first: once it names a bin, the key stays */
		asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(s.state) : "l"(&p->state));
		asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];"
					 : "=l"(s.key[0]), "=l"(s.key[1]) : "l"(&p->key[0]));
	}
	return s;
}

/* The same as all see it; a slot of 16 bytes is read and written as one. */
template <int WORDS> static __device__ __forceinline__ Slot<WORDS>
read_slot(const Slot<WORDS> *p)
{
	Slot<WORDS> s;

	if constexpr (WORDS == 1)
	{
		u64			hi;

		asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
					 : "=l"(s.key[0]), "=l"(hi) : "l"(p) : "memory");
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

template <int BYTES, int WORDS> static __device__ __forceinline__ void
publish(const GroupArgs &args, Slot<WORDS> *p, const Key<WORDS> &k, u32 bin)
{
	store_key<BYTES, WORDS>(args.keys, bin, k);
	if constexpr (WORDS == 1)
	{
		asm volatile("{ .reg .b128 t; mov.b128 t, {%0, %1}; st.relaxed.gpu.global.b128 [%2], t; }"
					 : : "l"(k.w[0]), "l"((u64) bin + SLOT_BIN), "l"(p) : "memory");
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
	return __umulhi((u32) (hash >> 32), nslots);
}

static __device__ __forceinline__ u32
next_slot(u32 at, u32 nslots)
{
	return at + 1 < nslots ? at + 1 : 0;
}

enum Found
{
	FOUND,						/* its bin is known */
	CLAIMED,					/* this row claimed slot `at` for its key */
	DEFERRED,					/* met a claimed slot at `at` */
	NO_ROOM
};

/* Probes without waiting for anybody. */
template <int WORDS> static __device__ __forceinline__ Found
probe(const GroupArgs &args, const Key<WORDS> &k, u32 &at, int32_t &bin)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	Slot<WORDS> s = read_slot(slots + at);

	for (;;)
	{
		if (s.state < SLOT_BIN)
		{
			u32			seen;

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
}

/* One row to its end, waiting for claims of others. */
template <int BYTES, int WORDS> static __device__ __noinline__ int32_t
settle(const GroupArgs &args, const Key<WORDS> &k, u32 at)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	int32_t		bin = -1;

	for (;;)
	{
		Found		f = probe(args, k, at, bin);

		if (f == CLAIMED)
		{
			u64			id = atomicAdd(&args.counters->groups, 1ULL);

			if (id < args.capacity)
			{
				publish<BYTES, WORDS>(args, slots + at, k, (u32) id);
				return (int32_t) id;
			}
			atomicExch(&slots[at].state, SLOT_EMPTY);
			return -1;
		}
		if (f != DEFERRED)
			return f == FOUND ? bin : -1;
		while (*(volatile u32 *) &slots[at].state == SLOT_CLAIMED)
			__nanosleep(20);
	}
}

#define NULL_NONE (-1LL)
#define NULL_CLAIMED (-2LL)

template <int BYTES, int WORDS> static __device__ __noinline__ int32_t
settle_null(const GroupArgs &args)
{
	volatile long long *null_bin = &args.counters->null_bin;

	for (;;)
	{
		long long	seen = *null_bin;

		if (seen >= 0)
			return (int32_t) seen;
		if (seen == NULL_NONE)
		{
			u64			id;

			if (__ldcg(&args.counters->groups) >= args.capacity)
				return -1;
			if (atomicCAS((u64 *) null_bin, (u64) NULL_NONE, (u64) NULL_CLAIMED) != (u64) NULL_NONE)
				continue;
			id = atomicAdd(&args.counters->groups, 1ULL);
			if (id < args.capacity)
				store_key<BYTES, WORDS>(args.keys, id, Key<WORDS>());
			*null_bin = id < args.capacity ? (long long) id : NULL_NONE;
			return id < args.capacity ? (int32_t) id : -1;
		}
		__nanosleep(20);
	}
}

/* Bins for the warp's claims, with one addition. */
static __device__ __forceinline__ u64
reserve_bins(GpuaggGroupCounters *counters, u32 claims)
{
	u32			lane = threadIdx.x % 32,
				sum = claims;
	u64			base = 0;

#pragma unroll
	for (int d = 1; d < 32; d *= 2)
	{
		u32			t = __shfl_up_sync(~0u, sum, d);

		if (lane >= (u32) d)
			sum += t;
	}
	if (lane == 31)
		base = atomicAdd(&counters->groups, (u64) sum);
	return __shfl_sync(~0u, base, 31) + sum - claims;
}

/* ---- the cache --------------------------------------------------------------- */

#define ENTRY_EMPTY 0xffffu
#define ENTRY_CLAIMED 0xfffeu

/*
 * Entries of a key and its bin, two to a bucket.  A key lies in the first
 * bucket that had room for it, from that of its hash on, and stays.
 */
struct Cache
{
	u32			buckets;

	__device__ __forceinline__ u64 *
	keys() const
	{
		extern __shared__ __align__(16) char part_memory[];

		return (u64 *) part_memory;
	}
	__device__ __forceinline__ uint16_t *bins() const { return (uint16_t *) (keys() + 2 * buckets); }
	__device__ __forceinline__ u32 first(u64 hash) const { return __umulhi((u32) hash, buckets); }
	__device__ __forceinline__ u32 next(u32 b) const { return b + 1 < buckets ? b + 1 : 0; }
	__device__ __forceinline__ void
	clear() const
	{
		for (u32 i = threadIdx.x; i < buckets; i += blockDim.x)
			((u32 *) bins())[i] = ENTRY_EMPTY << 16 | ENTRY_EMPTY;
		__syncthreads();
	}
	/* Both entries of bucket b, if `on`; bins first: one that is there was written after its key. */
	__device__ __forceinline__ void
	read(u32 b, bool on, u32 &both, u64 (&k)[2]) const
	{
		asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0;\n"
					 "@p ld.volatile.shared.u32 %0, [%3];\n"
					 "@p ld.volatile.shared.v2.u64 {%1, %2}, [%4]; }"
					 : "+r"(both), "+l"(k[0]), "+l"(k[1])
					 : "r"((u32) __cvta_generic_to_shared(bins() + 2 * b)),
					 "r"((u32) __cvta_generic_to_shared(keys() + 2 * b)), "r"((u32) on));
	}
	/* If there is room, and nobody else is writing there. */
	__device__ __noinline__ void
	add(u64 key, int32_t bin) const
	{
		u32			b = first(hash_key(Key<1>{{key}}));

		for (int i = 0; i < 2 * CACHE_STEPS; i++)
		{
			uint16_t   *e = bins() + 2 * b + i % 2;
			u32			seen = *(volatile uint16_t *) e;

			if (seen == ENTRY_EMPTY)
				seen = atomicCAS(e, (uint16_t) ENTRY_EMPTY, (uint16_t) ENTRY_CLAIMED);
			if (seen == ENTRY_EMPTY)
			{
				atomicExch(keys() + 2 * b + i % 2, key);
				__threadfence_block();
				atomicCAS(e, (uint16_t) ENTRY_CLAIMED, (uint16_t) bin);
				return;
			}
			/* a claim may be this very key's */
			if (seen == ENTRY_CLAIMED || *(volatile u64 *) (keys() + 2 * b + i % 2) == key)
				return;
			if (i % 2)
				b = next(b);
		}
	}
};

/* ---- lookup ---------------------------------------------------------------- */

/* A thread's rows of a tile, one bit an item each. */
struct TileRows
{
	u32			rows;			/* that take part */
	u32			nulls;
	u32			open;			/* without a bin yet, nulls apart */
	u32			claims;			/* that claimed the slot where they stand */
	u32			deferred;		/* that met another's claim there */
};

template <int BYTES, int WORDS> static __device__ __forceinline__ void
load_rows(const GroupArgs &args, u64 base, Key<WORDS> (&key)[ITEMS], TileRows &t)
{
	t.rows = t.nulls = t.claims = t.deferred = 0;
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u64			r = base + j * blockDim.x + threadIdx.x;

		key[j] = Key<WORDS>();
		if (r < args.nrows && !(args.retry && args.bins[r] != -1) && !(args.filter && !args.filter[r]))
		{
			t.rows |= 1u << j;
			if (args.validity && !bit_set(args.validity, (u32) r))
				t.nulls |= 1u << j;
			else
				key[j] = load_key<BYTES>(args.input, (u32) r);
		}
	}
	t.open = t.rows & ~t.nulls;
}

/* Keys of a tile of which all rows take part; they are read once. */
template <int BYTES, int WORDS> static __device__ __forceinline__ void
load_tile(const GroupArgs &args, u64 base, Key<WORDS> (&key)[ITEMS])
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u64			r = base + j * blockDim.x + threadIdx.x;

		if constexpr (BYTES == 4)
			key[j].w[0] = __ldcs((const u32 *) args.input + r);
		else
			for (int i = 0; i < WORDS; i++)
				key[j].w[i] = __ldcs((const u64 *) args.input + WORDS * r + i);
	}
}

static __device__ __forceinline__ void
find_cached(const Cache &cache, const Key<1> (&key)[ITEMS], int32_t (&bin)[ITEMS], TileRows &t)
{
	u32			bucket[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		bucket[j] = cache.first(hash_key(key[j]));
	for (int step = 0; step < CACHE_STEPS && __any_sync(~0u, t.open); step++)
	{
		u32			both[ITEMS];
		u64			k[ITEMS][2];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			both[j] = ENTRY_EMPTY << 16 | ENTRY_EMPTY;
			k[j][0] = k[j][1] = 0;
			cache.read(bucket[j], t.open >> j & 1, both[j], k[j]);
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			b = k[j][0] == key[j].w[0] ? both[j] & 0xffff : ENTRY_EMPTY;

			if (b >= ENTRY_CLAIMED && k[j][1] == key[j].w[0])
				b = both[j] >> 16;
			if (b < ENTRY_CLAIMED)
			{
				bin[j] = (int32_t) b;
				t.open &= ~(1u << j);
			}
			bucket[j] = cache.next(bucket[j]);
		}
	}
}

/*
 * Most rows find their key, without a claim or a wait.  All items go to their
 * next slots together, as far as the slots are full, and no lane leaves before
 * the last: a loop that each item leaves by itself takes three times as long.
 * FRESH: past the multiprocessor's cache, where slots that were empty stay so.
 */
template <bool FRESH, int WORDS> static __device__ __forceinline__ void
find_rows(const GroupArgs &args, const Key<WORDS> (&key)[ITEMS], u32 (&at)[ITEMS], int32_t (&bin)[ITEMS],
		  TileRows &t)
{
	const Slot<WORDS> *slots = (const Slot<WORDS> *) args.slots;
	Slot<WORDS> seen[ITEMS];
	u32			going = t.open;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		seen[j] = Slot<WORDS>();
		if (going >> j & 1)
			seen[j] = FRESH ? read_slot(slots + at[j]) : read_slot_cached(slots + at[j]);
	}
	while (__any_sync(~0u, going))
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			bool		full = seen[j].state >= SLOT_BIN && (going >> j & 1),
						hit = full && same_key(seen[j], key[j]),
						on = full && !hit;

			bin[j] = hit ? (int32_t) (seen[j].state - SLOT_BIN) : bin[j];
			t.open &= ~((u32) hit << j);
			going &= ~((u32) !on << j);
			if (on)
			{
				at[j] = next_slot(at[j], args.nslots);
				seen[j] = FRESH ? read_slot(slots + at[j]) : read_slot_cached(slots + at[j]);
			}
		}
	}
}

/* Claims for rows that met an empty slot.  A table that was seen full takes none. */
template <int WORDS> static __device__ __forceinline__ void
claim_rows(const GroupArgs &args, const u32 (&at)[ITEMS], TileRows &t)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	u32			seen[ITEMS];
	u64			groups;

	/* from the cache: whether there is room is for reserve_bins to say */
	asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(groups) : "l"(&args.counters->groups));
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (t.open >> j & 1)
			seen[j] = groups < args.capacity ? atomicCAS(&slots[at[j]].state, SLOT_EMPTY, SLOT_CLAIMED)
				: SLOT_CLAIMED;
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (t.open >> j & 1)
		{
			if (seen[j] == SLOT_EMPTY)
				t.claims |= 1u << j;
			else
				t.deferred |= 1u << j;
		}
}

/* Bins for the warp's claims. */
template <int BYTES, int WORDS> static __device__ __forceinline__ void
fill_claims(const GroupArgs &args, const Key<WORDS> (&key)[ITEMS], const u32 (&at)[ITEMS],
			int32_t (&bin)[ITEMS], u32 claims)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	u64			id = reserve_bins(args.counters, __popc(claims));

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (claims >> j & 1)
		{
			if (id < args.capacity)
			{
				publish<BYTES, WORDS>(args, slots + at[j], key[j], (u32) id);
				bin[j] = (int32_t) id;
			}
			else
				atomicExch(&slots[at[j]].state, SLOT_EMPTY);
			id++;
		}
	__syncwarp();
}

/* The rows that the cache does not know.  Returns the warp's claims. */
template <int BYTES, int WORDS> static __device__ __forceinline__ u32
look_up(const GroupArgs &args, const Key<WORDS> (&key)[ITEMS], bool fresh, int32_t (&bin)[ITEMS], TileRows &t)
{
	u32			at[ITEMS];
	u32			claims;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		at[j] = slot_of(hash_key(key[j]), args.nslots);
	if (!fresh)
		find_rows<false, WORDS>(args, key, at, bin, t);
	find_rows<true, WORDS>(args, key, at, bin, t);
	if (!__any_sync(~0u, t.open))
		return 0;
	claim_rows<WORDS>(args, at, t);
	claims = __ballot_sync(~0u, t.claims != 0);
	if (claims)
		fill_claims<BYTES, WORDS>(args, key, at, bin, t.claims);
	if (t.deferred)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (t.deferred >> j & 1)
				bin[j] = settle<BYTES, WORDS>(args, key[j], at[j]);
	__syncwarp();
	return claims;
}

/* Bins of a tile to memory; returns how many rows got none. */
template <int BYTES, int WORDS> static __device__ __forceinline__ u32
store_bins(const GroupArgs &args, u64 base, int32_t (&bin)[ITEMS], const TileRows &t)
{
	u32			pending = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u64			r = base + j * blockDim.x + threadIdx.x;

		if (t.nulls >> j & 1)
			bin[j] = settle_null<BYTES, WORDS>(args);
		if (t.rows >> j & 1)
		{
			__stcs(&args.bins[r], bin[j]);
			pending += bin[j] < 0;
		}
		else if (!args.retry && r < args.nrows)
			args.bins[r] = GPUAGG_GROUP_FILTERED;
	}
	__syncwarp();
	return pending;
}

template <int BYTES, bool CACHED> static __global__ void __launch_bounds__(CACHED ? CACHE_THREADS : THREADS)
lookup_kernel(const __grid_constant__ GroupArgs args)
{
	constexpr int WORDS = BYTES == 16 ? 2 : 1;
	u64			tile = blockDim.x * ITEMS,
				base = blockIdx.x * tile;
	Cache		cache = {args.buckets};
	Key<WORDS>	next[ITEMS];
	u32			pending = 0,
				claims = 0;

	if (args.plain && base + tile <= args.nrows)
		load_tile<BYTES, WORDS>(args, base, next);
	if constexpr (CACHED)
		cache.clear();
	for (u64 ahead; base < args.nrows; base = ahead)
	{
		Key<WORDS>	key[ITEMS];
		int32_t		bin[ITEMS];
		TileRows	t = {(1u << ITEMS) - 1, 0, (1u << ITEMS) - 1, 0, 0};

		if (args.plain && base + tile <= args.nrows)
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				key[j] = next[j];
		else
			load_rows<BYTES, WORDS>(args, base, key, t);
		ahead = base + gridDim.x * tile;
		if (args.plain && ahead + tile <= args.nrows)
			load_tile<BYTES, WORDS>(args, ahead, next);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			bin[j] = -1;
		if constexpr (CACHED)
			find_cached(cache, key, bin, t);
		u32			missed = t.open;

		if (__any_sync(~0u, missed))
		{
			/* where many keys were new, many will be */
			claims = look_up<BYTES, WORDS>(args, key, !CACHED && __popc(claims) > 8, bin, t);
			if constexpr (CACHED)
#pragma unroll
				for (int j = 0; j < ITEMS; j++)
					if ((missed >> j & 1) && bin[j] >= 0)
						cache.add(key[j].w[0], bin[j]);
		}
		pending += store_bins<BYTES, WORDS>(args, base, bin, t);
	}
	if (pending)
		atomicAdd(&args.counters->pending, (u64) pending);
}

template <int BYTES> static __global__ void
grow_kernel(GpuaggGroupTable from, u32 from_slots, GpuaggGroupTable to, u32 to_slots)
{
	constexpr int WORDS = BYTES == 16 ? 2 : 1;
	const Slot<WORDS> *old = (const Slot<WORDS> *) from.slots;
	Slot<WORDS> *slots = (Slot<WORDS> *) to.slots;
	u64			groups = min(from.counters->groups, (u64) from.capacity);
	u64			stride = (u64) gridDim.x * blockDim.x,
				first = blockIdx.x * (u64) blockDim.x + threadIdx.x;

	for (u64 i = first; i < from_slots; i += stride)
	{
		Slot<WORDS> s = old[i];
		Key<WORDS>	k;
		u32			at;

		if (s.state < SLOT_BIN)
			continue;
		for (int w = 0; w < WORDS; w++)
			k.w[w] = s.key[w];
		at = slot_of(hash_key(k), to_slots);
		while (atomicCAS(&slots[at].state, SLOT_EMPTY, s.state) != SLOT_EMPTY)
			at = next_slot(at, to_slots);
		for (int w = 0; w < WORDS; w++)
			slots[at].key[w] = k.w[w];
	}
	for (u64 i = first; i < groups; i += stride)
		store_key<BYTES, WORDS>(to.keys, i, load_key<BYTES>(from.keys, (u32) i));
	if (first == 0)
	{
		to.counters->groups = groups;
		to.counters->pending = 0;
		to.counters->null_bin = from.counters->null_bin;
		to.counters->reserved = 0;
	}
}

/* ---- the table's interface --------------------------------------------------- */

static u32
slots_of(int64_t capacity)
{
	/* half full at most: lanes of a warp wait for the longest search */
	return 2 * (u32) capacity + 64;
}

static bool
table_valid(const GpuaggGroupTable *t)
{
	return (t->key_bytes == 4 || t->key_bytes == 8 || t->key_bytes == 16) && t->capacity > 0 &&
		t->capacity <= INT32_MAX - 64;
}

GPUAGG_API size_t
gpuagg_group_slot_bytes(int key_bytes, int64_t capacity)
{
	return (size_t) slots_of(capacity) * (key_bytes == 16 ? sizeof(Slot<2>) : sizeof(Slot<1>));
}

static __global__ void
init_counters_kernel(GpuaggGroupCounters *counters)
{
	counters->groups = counters->pending = counters->reserved = 0;
	counters->null_bin = NULL_NONE;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_init(const GpuaggGroupTable *table, gpuagg_stream stream)
{
	if (!table_valid(table))
		return GPUAGG_CUDA_INVALID;
	CUDA_TRY(cudaMemsetAsync(table->slots, 0, gpuagg_group_slot_bytes(table->key_bytes, table->capacity),
							 stream));
	init_counters_kernel<<<1, 1, 0, stream>>>(table->counters);
	CUDA_TRY_LAUNCH("init_counters_kernel");
	return GPUAGG_CUDA_OK;
}

static size_t
cache_bytes(u32 buckets)
{
	return buckets * 2 * (sizeof(u64) + sizeof(uint16_t));
}

/* As many as a block has room for, if that is of use to the table, or 0. */
static u32
cache_buckets(const GpuaggGroupTable &table, const DeviceFacts &facts)
{
	u32			buckets = (u32) ((facts.smem_per_block - 1024) / cache_bytes(1));

	return table.key_bytes <= 8 && table.capacity <= CACHE_GROUPS * 2 * (int64_t) buckets &&
		table.capacity <= ENTRY_CLAIMED ? buckets : 0;
}

/*
 * As many blocks as run at once: those that would come later would walk the
 * rows, and so the parts of the table, once more.
 */
template <int BYTES, bool CACHED> static GpuaggCudaStatus
launch_lookup(const GroupArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	int			threads = CACHED ? CACHE_THREADS : THREADS;
	size_t		bytes = CACHED ? cache_bytes(args.buckets) : 0;
	int			blocks;

	if (CACHED)
		CUDA_TRY(allow_shared(lookup_kernel<BYTES, CACHED>, facts));
	CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, lookup_kernel<BYTES, CACHED>, threads, bytes));
	lookup_kernel<BYTES, CACHED><<<blocks * facts.sms, threads, bytes, stream>>>(args);
	CUDA_TRY_LAUNCH("lookup_kernel");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_lookup(const GpuaggGroupTable *table, const void *keys, const uint8_t *validity,
					const uint8_t *filter, int64_t nrows, int retry, int32_t *bins,
					gpuagg_stream stream)
{
	const DeviceFacts *facts;
	GroupArgs	args = GroupArgs();

	if (!table_valid(table) || nrows < 0 || nrows > UINT32_MAX)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	args.slots = table->slots;
	args.nslots = slots_of(table->capacity);
	args.capacity = (u64) table->capacity;
	args.keys = table->keys;
	args.counters = table->counters;
	args.input = keys;
	args.validity = validity;
	args.filter = filter;
	args.nrows = (u32) nrows;
	args.retry = retry != 0;
	args.plain = !retry && !validity && !filter;
	args.bins = bins;
	CUDA_TRY(cudaMemsetAsync(&table->counters->pending, 0, sizeof(table->counters->pending), stream));
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	args.buckets = cache_buckets(*table, *facts);
	if (table->key_bytes == 16)
		return launch_lookup<16, false>(args, *facts, stream);
	if (table->key_bytes == 4)
		return args.buckets ? launch_lookup<4, true>(args, *facts, stream)
			: launch_lookup<4, false>(args, *facts, stream);
	return args.buckets ? launch_lookup<8, true>(args, *facts, stream)
		: launch_lookup<8, false>(args, *facts, stream);
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_status(const GpuaggGroupTable *table, int64_t *groups, int64_t *pending,
					int64_t *null_bin, gpuagg_stream stream)
{
	GpuaggGroupCounters c;

	CUDA_TRY(cudaMemcpyAsync(&c, table->counters, sizeof(c), cudaMemcpyDeviceToHost, stream));
	CUDA_TRY(cudaStreamSynchronize(stream));
	*groups = c.groups < (unsigned long long) table->capacity ? (int64_t) c.groups : table->capacity;
	*pending = (int64_t) c.pending;
	*null_bin = c.null_bin;
	return c.pending ? GPUAGG_CUDA_FULL : GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_grow(const GpuaggGroupTable *from, const GpuaggGroupTable *to, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	u32			from_slots,
				to_slots;

	if (!table_valid(from) || !table_valid(to) || from->key_bytes != to->key_bytes ||
		to->capacity < from->capacity)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	from_slots = slots_of(from->capacity);
	to_slots = slots_of(to->capacity);
	CUDA_TRY(cudaMemsetAsync(to->slots, 0, gpuagg_group_slot_bytes(to->key_bytes, to->capacity), stream));
	if (from->key_bytes == 4)
		grow_kernel<4><<<8 * facts->sms, 256, 0, stream>>>(*from, from_slots, *to, to_slots);
	else if (from->key_bytes == 8)
		grow_kernel<8><<<8 * facts->sms, 256, 0, stream>>>(*from, from_slots, *to, to_slots);
	else
		grow_kernel<16><<<8 * facts->sms, 256, 0, stream>>>(*from, from_slots, *to, to_slots);
	CUDA_TRY_LAUNCH("grow_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- partition by hash ----------------------------------------------------------- */

/* By the top of the hash, so that a partition's keys share a part of the table. */
template <int WORDS> static __device__ __forceinline__ u32
partition_of(const Key<WORDS> &k)
{
	return (u32) (hash_key(k) >> 32) / (u32) (0x100000000ULL / PARTITIONS);
}

/* What a row's key, or value, is moved as. */
template <int BYTES> struct Moved;
template <> struct Moved<4>
{
	typedef u32 type;
};
template <> struct Moved<8>
{
	typedef u64 type;
};
template <> struct Moved<16>
{
	typedef Pair type;
};

static __device__ __forceinline__ Key<1>
key_of(u64 k)
{
	return {{k}};
}
static __device__ __forceinline__ Key<2>
key_of(const Pair &k)
{
	return {{k.lo, k.hi}};
}

template <int BYTES> static __global__ void __launch_bounds__(PART_THREADS, 2)
count_keys_kernel(const void *keys, u32 nrows, u32 *total)
{
	typedef typename Moved<BYTES>::type K;
	__shared__ u32 count[PARTITIONS];
	u64			base = blockIdx.x * (u64) PART_TILE;

	for (u32 p = threadIdx.x; p < PARTITIONS; p += PART_THREADS)
		count[p] = 0;
	__syncthreads();
	/* as many at a time as hide the way to memory */
	for (; base + PART_TILE <= nrows; base += gridDim.x * (u64) PART_TILE)
	{
		K			key[PART_ITEMS];

		part_load<K>(~0u, keys, base, key);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			atomicAdd(&count[partition_of(key_of(key[j]))], 1u);
	}
	for (u64 r = base + threadIdx.x; r < nrows; r += PART_THREADS)
		atomicAdd(&count[partition_of(key_of(((const K *) keys)[r]))], 1u);
	__syncthreads();
	for (u32 p = threadIdx.x; p < PARTITIONS; p += PART_THREADS)
		if (count[p])
			atomicAdd(&total[p], count[p]);
}

template <typename K> struct PutKey
{
	K		   *out;

	__device__ __forceinline__ void operator()(u32 row, const K &key) const { out[row] = key; }
};

/* The tile's rows before the end, one bit an item. */
static __device__ __forceinline__ u32
rows_left(u64 base, u32 nrows)
{
	u32			ok = 0;

#pragma unroll
	for (int j = 0; j < PART_ITEMS; j++)
		if (base + j * PART_THREADS + threadIdx.x < nrows)
			ok |= 1u << j;
	return ok;
}

/* values_out may be NULL. */
template <int BYTES, int VALUE_BYTES> static __global__ void __launch_bounds__(PART_THREADS, 1)
move_keys_kernel(const void *keys, const void *values, u32 nrows, void *keys_out, void *values_out, u32 *cursor)
{
	typedef typename Moved<BYTES>::type K;
	typedef typename Moved<VALUE_BYTES>::type V;
	PartTile	t = {PARTITIONS, BYTES, VALUE_BYTES};
	PutKey<K>	put = {(K *) keys_out};
	u64			base = blockIdx.x * (u64) PART_TILE;
	u32			ok = rows_left(base, nrows);
	K			key[PART_ITEMS];

	part_clear(t);
	part_load<K>(ok, keys, base, key);
	while (base < nrows)
	{
		V			v[PART_ITEMS];
		u32			place[PART_ITEMS];	/* and the partition above it */
		PartRuns	runs;

		if (values_out)
			part_load<V>(ok, values, base, v);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			if (ok >> j & 1)
			{
				u32			p = partition_of(key_of(key[j]));

				place[j] = p << 16 | atomicAdd(&t.count()[p], 1u);
			}
		runs = part_reserve(t, cursor, 0, PARTITIONS - 1);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			if (ok >> j & 1)
			{
				u32			p = place[j] >> 16;

				place[j] = (place[j] & 0xffff) + t.count()[p];
				t.part()[place[j]] = (uint16_t) p;
			}
		part_stage<K>(t.keys(), ok, place, key);
		if (values_out)
			part_stage<V>(t.stage(), ok, place, v);
		base += gridDim.x * (u64) PART_TILE;
		ok = rows_left(base, nrows);
		part_load<K>(ok, keys, base, key);
		part_write<K, V>(t, runs, put, (V *) values_out);
	}
}

/* Counts to first rows. */
static __global__ void
first_rows_kernel(u32 *cursor)
{
	__shared__ u32 count[PARTITIONS];
	u32			sum = 0;

	count[threadIdx.x] = cursor[threadIdx.x];
	__syncthreads();
	for (u32 p = 0; p < threadIdx.x; p++)
		sum += count[p];
	cursor[threadIdx.x] = sum;
}

template <int BYTES, int VALUE_BYTES> static GpuaggCudaStatus
partition_keys(const void *keys, const void *values, u32 nrows, void *keys_out, void *values_out,
			   u32 *cursor, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = part_tile_bytes(BYTES, VALUE_BYTES, PARTITIONS);
	void	  (*move) (const void *, const void *, u32, void *, void *, u32 *) = move_keys_kernel<BYTES, VALUE_BYTES>;

	CUDA_TRY(allow_shared(move, facts));
	CUDA_TRY(cudaMemsetAsync(cursor, 0, PARTITIONS * sizeof(u32), stream));
	count_keys_kernel<BYTES><<<2 * facts.sms, PART_THREADS, 0, stream>>>(keys, nrows, cursor);
	first_rows_kernel<<<1, PARTITIONS, 0, stream>>>(cursor);
	move<<<facts.sms, PART_THREADS, bytes, stream>>>(keys, values, nrows, keys_out, values_out,
																   cursor);
	CUDA_TRY_LAUNCH("move_keys_kernel");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_partition(int key_bytes, const void *keys, int value_bytes, const void *values,
					   int64_t nrows, void *keys_out, void *values_out, void *workspace,
					   size_t *workspace_bytes, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	Workspace	ws(workspace);
	u32		   *cursor = ws.take<u32>(PARTITIONS);

	if (nrows < 0 || nrows > UINT32_MAX || (values && value_bytes != 4 && value_bytes != 8))
		return GPUAGG_CUDA_INVALID;
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	STATUS_TRY(gpuagg_device_facts(&facts));
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	if (values == nullptr)
		values_out = nullptr;
#define PARTITION(bytes) \
	if (key_bytes == bytes) \
		return values_out && value_bytes == 8 \
			? partition_keys<bytes, 8>(keys, values, (u32) nrows, keys_out, values_out, cursor, *facts, stream) \
			: partition_keys<bytes, 4>(keys, values, (u32) nrows, keys_out, values_out, cursor, *facts, stream)
	PARTITION(4);
	PARTITION(8);
	PARTITION(16);
#undef PARTITION
	return GPUAGG_CUDA_INVALID;
}

/* ---- estimate ------------------------------------------------------------------------ */

#define ESTIMATE_ROWS 65536

struct EstimateCounts
{
	u32			once;
	u32			twice;
};

template <int BYTES> static __global__ void
sample_keys_kernel(const void *keys, u32 nrows, u32 samples, void *out)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < samples; i += gridDim.x * blockDim.x)
	{
		u64			from = (u64) nrows * i / samples,
					to = (u64) nrows * (i + 1) / samples;
		u32			row = (u32) (from + mix64(i + 1) % (to - from));

		store_key<BYTES, BYTES == 16 ? 2 : 1>(out, i, load_key<BYTES>(keys, row));
	}
}

static __global__ void
count_bins_kernel(const int32_t *bins, u32 n, u32 *count)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&count[bins[i]], 1u);
}

static __global__ void
count_counts_kernel(const u32 *count, u32 n, EstimateCounts *out)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
	{
		if (count[i] == 1)
			atomicAdd(&out->once, 1u);
		if (count[i] == 2)
			atomicAdd(&out->twice, 1u);
	}
}

/*
 * Chao (1984), "Nonparametric Estimation of the Number of Classes in a
 * Population": the unseen from those seen once and twice.
 */
static int64_t
chao_estimate(int64_t seen, const EstimateCounts &c, int64_t samples, int64_t nrows)
{
	double		unseen = 0.5 * (double) c.once * ((double) c.once - 1) / ((double) c.twice + 1);
	double		total;

	if (samples >= nrows)
		return seen;
	/* distinct rows of a sample say no more than that most rows are distinct */
	total = c.once >= samples ? (double) nrows : (double) seen + (unseen > 0 ? unseen : 0);
	return total < (double) nrows ? (int64_t) total : nrows;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_estimate(int key_bytes, const void *keys, int64_t nrows, int64_t *distinct,
					  void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	Workspace	ws(workspace);
	u32			samples = (u32) (nrows < ESTIMATE_ROWS ? nrows : ESTIMATE_ROWS);
	GpuaggGroupTable table = GpuaggGroupTable();
	EstimateCounts counts,
			   *device_counts;
	char	   *sample;
	int32_t    *bins;
	u32		   *count;
	int64_t		seen,
				pending,
				null_bin;

	if (nrows < 0 || nrows > UINT32_MAX || (key_bytes != 4 && key_bytes != 8 && key_bytes != 16))
		return GPUAGG_CUDA_INVALID;
	table.key_bytes = key_bytes;
	table.capacity = ESTIMATE_ROWS;
	table.slots = ws.take<char>(gpuagg_group_slot_bytes(key_bytes, ESTIMATE_ROWS));
	table.keys = ws.take<char>((size_t) ESTIMATE_ROWS * key_bytes);
	table.counters = ws.take<GpuaggGroupCounters>(1);
	sample = ws.take<char>((size_t) ESTIMATE_ROWS * key_bytes);
	bins = ws.take<int32_t>(ESTIMATE_ROWS);
	count = ws.take<u32>(ESTIMATE_ROWS);
	device_counts = ws.take<EstimateCounts>(1);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	*distinct = 0;
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	STATUS_TRY(gpuagg_group_init(&table, stream));
	CUDA_TRY(cudaMemsetAsync(count, 0, ESTIMATE_ROWS * sizeof(u32), stream));
	CUDA_TRY(cudaMemsetAsync(device_counts, 0, sizeof(EstimateCounts), stream));
	if (key_bytes == 4)
		sample_keys_kernel<4><<<64, 256, 0, stream>>>(keys, (u32) nrows, samples, sample);
	else if (key_bytes == 8)
		sample_keys_kernel<8><<<64, 256, 0, stream>>>(keys, (u32) nrows, samples, sample);
	else
		sample_keys_kernel<16><<<64, 256, 0, stream>>>(keys, (u32) nrows, samples, sample);
	CUDA_TRY_LAUNCH("sample_keys_kernel");
	STATUS_TRY(gpuagg_group_lookup(&table, sample, nullptr, nullptr, samples, 0, bins, stream));
	count_bins_kernel<<<64, 256, 0, stream>>>(bins, samples, count);
	count_counts_kernel<<<64, 256, 0, stream>>>(count, ESTIMATE_ROWS, device_counts);
	CUDA_TRY_LAUNCH("count_counts_kernel");
	CUDA_TRY(cudaMemcpyAsync(&counts, device_counts, sizeof(counts), cudaMemcpyDeviceToHost, stream));
	STATUS_TRY(gpuagg_group_status(&table, &seen, &pending, &null_bin, stream));
	*distinct = chao_estimate(seen, counts, samples, nrows);
	return GPUAGG_CUDA_OK;
}
