/*
 * group.cu
 *	  Hash group-by: lookups of keys, growth, and the interface of tables.
 *
 * A lookup of a small table uses a cache in shared memory.  Each block fills its cache with the
 * keys of its own rows.  Without it, each lane reads a line of memory for its key, even from the L1
 * cache.
 */
#include "group.cuh"
#include "tuning.h"

/* ---- the cache --------------------------------------------------------------- */

/* Values of an entry's bin that are no bins. */
#define ENTRY_EMPTY 0xffffu
#define ENTRY_CLAIMED 0xfffeu

/*
 * A block's cache of keys and their bins, in shared memory.  A bucket has two entries.  A key is in
 * the first bucket with room, from the bucket of its hash on, and stays there.
 */
struct KeyCache
{
	u32 buckets;

	/* Returns the keys, two for each bucket.  They are in the block's dynamic shared memory. */
	__device__ __forceinline__ u64 *
	keys() const
	{
		extern __shared__ __align__(16) char part_memory[];

		return (u64 *) part_memory;
	}
	/* Returns the bins of the keys: a bin, ENTRY_EMPTY or ENTRY_CLAIMED for each. */
	__device__ __forceinline__ uint16_t *
	bins() const
	{
		return (uint16_t *) (keys() + 2 * buckets);
	}
	/* Returns the bucket where the search for a key with this hash begins. */
	__device__ __forceinline__ u32
	first(u64 hash) const
	{
		return __umulhi((u32) hash, buckets);
	}
	/* Returns the bucket after b; the first bucket comes after the last. */
	__device__ __forceinline__ u32
	next(u32 b) const
	{
		return b + 1 < buckets ? b + 1 : 0;
	}
	/* Empties the cache.  All threads of the block must call it. */
	__device__ __forceinline__ void
	clear() const
	{
		for (u32 i = threadIdx.x; i < buckets; i += blockDim.x)
			((u32 *) bins())[i] = ENTRY_EMPTY << 16 | ENTRY_EMPTY;
		__syncthreads();
	}
	/*
	 * Reads both entries of bucket b if `on` is true, else changes nothing. `both` gets the two
	 * bins, the first one in the low half; k gets the keys.  Bins are read first: a bin is written
	 * after its key, so if a bin is there, its key is complete.
	 */
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
	/*
	 * Adds a key with its bin.  Does nothing if the key's buckets are full, if the key is there, or
	 * if another thread is writing to an entry on the way.
	 */
	__device__ __noinline__ void
	add(const GpuaggHashKey &hash, u64 key, int32_t bin) const
	{
		u32 b = first(gpuagg_hash64(&hash, key));

		for (int i = 0; i < 2 * Tuned::GROUP_CACHE_BUCKETS_PER_KEY; i++)
		{
			uint16_t *e = bins() + 2 * b + i % 2;
			u32 seen = *(volatile uint16_t *) e;

			if (seen == ENTRY_EMPTY)
				seen = atomicCAS(e, (uint16_t) ENTRY_EMPTY, (uint16_t) ENTRY_CLAIMED);
			if (seen == ENTRY_EMPTY)
			{
				atomicExch(keys() + 2 * b + i % 2, key);
				__threadfence_block();
				atomicCAS(e, (uint16_t) ENTRY_CLAIMED, (uint16_t) bin);
				return;
			}
			/* another thread may be adding the same key */
			if (seen == ENTRY_CLAIMED || *(volatile u64 *) (keys() + 2 * b + i % 2) == key)
				return;
			if (i % 2)
				b = next(b);
		}
	}
};

/* ---- lookup ---------------------------------------------------------------- */

/* Sets of a thread's rows in a tile; bit j is row j. */
struct TileRows
{
	u32 rows;     /* rows that are looked up */
	u32 open;     /* rows without a bin yet */
	u32 claims;   /* rows that claimed the slot at[j] */
	u32 deferred; /* rows whose slot at[j] another thread claimed */
};

/*
 * Sets t to the rows of a tile that a lookup needs, all of them open, and loads their keys. base:
 * the tile's first row.
 */
template <int BYTES, int WORDS>
static __device__ __forceinline__ void
load_rows(const GroupArgs &args, u64 base, Key<WORDS> (&key)[Tuned::GROUP_KEYS_PER_THREAD],
		  TileRows &t)
{
	t.rows = t.claims = t.deferred = 0;
#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
	{
		u64 r = base + j * blockDim.x + threadIdx.x;

		key[j] = Key<WORDS>();
		if (r < args.nrows && !(args.retry && args.bins[r] != -1) &&
			!(args.filter && !args.filter[r]))
		{
			t.rows |= 1u << j;
			key[j] = load_key<BYTES>(args.input, (u32) r);
		}
	}
	t.open = t.rows;
}

/* Loads all keys of a tile, none of which is left out. base: the tile's first row. */
template <int BYTES, int WORDS>
static __device__ __forceinline__ void
load_tile(const GroupArgs &args, u64 base, Key<WORDS> (&key)[Tuned::GROUP_KEYS_PER_THREAD])
{
#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
	{
		u64 r = base + j * blockDim.x + threadIdx.x;

		if constexpr (BYTES == 4)
			key[j].w[0] = __ldcs((const u32 *) args.input + r);
		else
			for (int i = 0; i < WORDS; i++)
				key[j].w[i] = __ldcs((const u64 *) args.input + WORDS * r + i);
	}
}

/* Finds bins in the cache.  Sets bin[], and clears the bit in t.open, if the key is there. */
static __device__ __forceinline__ void
find_cached(const KeyCache &cache, const GpuaggHashKey &hash,
			const Key<1> (&key)[Tuned::GROUP_KEYS_PER_THREAD],
			int32_t (&bin)[Tuned::GROUP_KEYS_PER_THREAD], TileRows &t)
{
	u32 bucket[Tuned::GROUP_KEYS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		bucket[j] = cache.first(hash_key(hash, key[j]));
	for (int step = 0; step < Tuned::GROUP_CACHE_BUCKETS_PER_KEY && __any_sync(~0u, t.open); step++)
	{
		u32 both[Tuned::GROUP_KEYS_PER_THREAD];
		u64 k[Tuned::GROUP_KEYS_PER_THREAD][2];

#pragma unroll
		for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		{
			both[j] = ENTRY_EMPTY << 16 | ENTRY_EMPTY;
			k[j][0] = k[j][1] = 0;
			cache.read(bucket[j], t.open >> j & 1, both[j], k[j]);
		}
#pragma unroll
		for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		{
			u32 b = k[j][0] == key[j].w[0] ? both[j] & 0xffff : ENTRY_EMPTY;

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
 * Tries to claim slot at[j] of the table for each row j in t.open.  Sets the row's bit in t.claims
 * if that succeeds, or in t.deferred if another thread has the slot or the table is full.
 */
template <int WORDS>
static __device__ __forceinline__ void
claim_rows(const GroupArgs &args, const u32 (&at)[Tuned::GROUP_KEYS_PER_THREAD], TileRows &t)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	u32 seen[Tuned::GROUP_KEYS_PER_THREAD];
	u64 groups;

	/* may be stale, from the L1 cache; reserve_bins decides whether there is room */
	asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(groups) : "l"(&args.counters->groups));
#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		if (t.open >> j & 1)
			seen[j] = groups < args.capacity ?
				atomicCAS(&slots[at[j]].state, SLOT_EMPTY, SLOT_CLAIMED) :
				SLOT_CLAIMED;
#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		if (t.open >> j & 1)
		{
			if (seen[j] == SLOT_EMPTY)
				t.claims |= 1u << j;
			else
				t.deferred |= 1u << j;
		}
}

/*
 * Gives a new bin to each row in `claims`, sets bin[], and writes key and bin to the row's slot.
 * If the table is full, frees the slot instead and leaves bin[] as it was.  All lanes of the warp
 * must call it.
 */
template <int BYTES, int WORDS>
static __device__ __forceinline__ void
fill_claims(const GroupArgs &args, const Key<WORDS> (&key)[Tuned::GROUP_KEYS_PER_THREAD],
			const u32 (&at)[Tuned::GROUP_KEYS_PER_THREAD],
			int32_t (&bin)[Tuned::GROUP_KEYS_PER_THREAD], u32 claims)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	u64 id = reserve_bins(args.counters, __popc(claims));

#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		if (claims >> j & 1)
		{
			if (id < args.capacity)
			{
				publish_group<BYTES, WORDS>(args, slots + at[j], key[j], (u32) id);
				bin[j] = (int32_t) id;
			}
			else
				atomicExch(&slots[at[j]].state, SLOT_EMPTY);
			id++;
		}
	__syncwarp();
}

/*
 * Looks up the rows in t.open in the table, inserts new keys, and sets bin[]. bin[j] stays -1 if
 * the table is full or the search of row j is too long.  Returns a bit for each lane of the warp
 * that claimed a slot. fresh: skips the search through the L1 cache.
 */
template <int BYTES, int WORDS>
static __device__ __forceinline__ u32
look_up_in_table(const GroupArgs &args, const Key<WORDS> (&key)[Tuned::GROUP_KEYS_PER_THREAD],
				 bool fresh, int32_t (&bin)[Tuned::GROUP_KEYS_PER_THREAD], TileRows &t)
{
	u32 at[Tuned::GROUP_KEYS_PER_THREAD];
	u32 claims;

#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
		at[j] = slot_of(hash_key(args.hash, key[j]), args.nslots);
	if constexpr (WORDS == 1)
		if (!fresh)
			find_known<false>(args, key, at, t.open, bin);
	find_known<true>(args, key, at, t.open, bin);
	if (!__any_sync(~0u, t.open))
		return 0;
	claim_rows<WORDS>(args, at, t);
	claims = __ballot_sync(~0u, t.claims != 0);
	if (claims)
		fill_claims<BYTES, WORDS>(args, key, at, bin, t.claims);
	if (t.deferred)
#pragma unroll
		for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
			if (t.deferred >> j & 1)
				bin[j] = find_or_insert_waiting<BYTES, WORDS>(args, key[j], at[j]);
	__syncwarp();
	return claims;
}

/* Stores the bins of a tile in args.bins.  Returns how many of the thread's rows got no bin. */
static __device__ __forceinline__ u32
store_bins(const GroupArgs &args, u64 base, const int32_t (&bin)[Tuned::GROUP_KEYS_PER_THREAD],
		   const TileRows &t)
{
	u32 pending = 0;

#pragma unroll
	for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
	{
		u64 r = base + j * blockDim.x + threadIdx.x;

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

/* Looks up all rows of a batch. */
template <int BYTES, bool CACHED>
static __global__ void
__launch_bounds__(CACHED ? GROUP_CACHED_THREADS_PER_BLOCK : GROUP_THREADS_PER_BLOCK, CACHED ? 1 : 0)
	lookup_kernel(const __grid_constant__ GroupArgs args)
{
	constexpr int WORDS = BYTES == 16 ? 2 : 1;
	u64 tile = blockDim.x * Tuned::GROUP_KEYS_PER_THREAD, base = blockIdx.x * tile;
	KeyCache cache = {args.buckets};
	Key<WORDS> next[Tuned::GROUP_KEYS_PER_THREAD];
	u32 pending = 0, claims = 0;

	if (args.plain && base + tile <= args.nrows)
		load_tile<BYTES, WORDS>(args, base, next);
	if constexpr (CACHED)
		cache.clear();
	for (u64 ahead; base < args.nrows; base = ahead)
	{
		Key<WORDS> key[Tuned::GROUP_KEYS_PER_THREAD];
		int32_t bin[Tuned::GROUP_KEYS_PER_THREAD];
		TileRows t = {(1u << Tuned::GROUP_KEYS_PER_THREAD) - 1,
					  (1u << Tuned::GROUP_KEYS_PER_THREAD) - 1, 0, 0};

		if (args.plain && base + tile <= args.nrows)
#pragma unroll
			for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
				key[j] = next[j];
		else
			load_rows<BYTES, WORDS>(args, base, key, t);
		ahead = base + gridDim.x * tile;
		if (args.plain && ahead + tile <= args.nrows)
			load_tile<BYTES, WORDS>(args, ahead, next);
#pragma unroll
		for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
			bin[j] = -1;
		if constexpr (CACHED)
			find_cached(cache, args.hash, key, bin, t);
		u32 missed = t.open;

		if (__any_sync(~0u, missed))
		{
			/* where many keys were new, many more probably are */
			claims =
				look_up_in_table<BYTES, WORDS>(args, key, !CACHED && __popc(claims) > 8, bin, t);
			if constexpr (CACHED)
#pragma unroll
				for (int j = 0; j < Tuned::GROUP_KEYS_PER_THREAD; j++)
					if ((missed >> j & 1) && bin[j] >= 0)
						cache.add(args.hash, key[j].w[0], bin[j]);
		}
		pending += store_bins(args, base, bin, t);
	}
	if (pending)
		atomicAdd(&args.counters->pending, (u64) pending);
}

/* Copies the groups of one table to another, whose slots are empty. */
template <int BYTES>
static __global__ void
grow_kernel(const __grid_constant__ GroupArgs from, const __grid_constant__ GroupArgs to)
{
	constexpr int WORDS = BYTES == 16 ? 2 : 1;
	const Slot<WORDS> *old = (const Slot<WORDS> *) from.slots;
	Slot<WORDS> *slots = (Slot<WORDS> *) to.slots;
	u64 groups = min(from.counters->groups, from.capacity);
	u64 stride = (u64) gridDim.x * blockDim.x, first = blockIdx.x * (u64) blockDim.x + threadIdx.x;

	for (u64 i = first; i < from.nslots; i += stride)
	{
		Slot<WORDS> s = old[i];
		Key<WORDS> k;
		u32 at;

		if (s.state < SLOT_BIN)
			continue;
		for (int w = 0; w < WORDS; w++)
			k.w[w] = s.key[w];
		at = slot_of(hash_key(to.hash, k), to.nslots);
		while (atomicCAS(&slots[at].state, SLOT_EMPTY, s.state) != SLOT_EMPTY)
			at = next_slot(at, to.nslots);
		for (int w = 0; w < WORDS; w++)
			slots[at].key[w] = k.w[w];
	}
	for (u64 i = first; i < groups; i += stride)
		store_key<BYTES, WORDS>(to.keys, i, load_key<BYTES>(from.keys, (u32) i));
	if (first == 0)
	{
		to.counters->groups = groups;
		to.counters->pending = 0;
		to.counters->lost = 0;
	}
}

/* Fills empty slots with the groups whose keys the table has. */
template <int BYTES>
static __global__ void
fill_kernel(const __grid_constant__ GroupArgs args)
{
	constexpr int WORDS = BYTES == 16 ? 2 : 1;
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	u64 groups = min(args.counters->groups, args.capacity);
	u64 stride = (u64) gridDim.x * blockDim.x;

	for (u64 i = blockIdx.x * (u64) blockDim.x + threadIdx.x; i < groups; i += stride)
	{
		Key<WORDS> k = load_key<BYTES>(args.keys, (u32) i);
		u32 at = slot_of(hash_key(args.hash, k), args.nslots);

		while (atomicCAS(&slots[at].state, SLOT_EMPTY, SLOT_BIN + (u32) i) != SLOT_EMPTY)
			at = next_slot(at, args.nslots);
		for (int w = 0; w < WORDS; w++)
			slots[at].key[w] = k.w[w];
	}
}

/* ---- the table's interface --------------------------------------------------- */

GPUAGG_API size_t
gpuagg_group_slot_bytes(int key_bytes, int64_t capacity)
{
	return (size_t) slots_for_capacity(capacity) *
		(key_bytes == 16 ? sizeof(Slot<2>) : sizeof(Slot<1>));
}

static __global__ void
init_counters_kernel(GpuaggGroupCounters *counters)
{
	counters->groups = counters->pending = counters->lost = 0;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_init(const GpuaggGroupTable *table, gpuagg_stream stream)
{
	if (!is_table_valid(table))
		return GPUAGG_CUDA_INVALID;
	CUDA_TRY(cudaMemsetAsync(table->slots, 0,
							 gpuagg_group_slot_bytes(table->key_bytes, table->capacity), stream));
	init_counters_kernel<<<1, 1, 0, stream>>>(table->counters);
	CUDA_TRY_LAUNCH("init_counters_kernel");
	return GPUAGG_CUDA_OK;
}

/* Returns the bytes of shared memory of a cache with this many buckets. */
static size_t
cache_bytes(u32 buckets)
{
	return buckets * 2 * (sizeof(u64) + sizeof(uint16_t));
}

/*
 * Returns the number of buckets of the cache: as many as fit, or 0 if the table is too large, or
 * its keys too long, for a cache.
 */
static u32
cache_buckets(const GpuaggGroupTable &table, const DeviceFacts &facts)
{
	u32 buckets = (u32) ((facts.smem_per_block - 1024) / cache_bytes(1));

	return table.key_bytes <= 8 &&
			table.capacity <= GROUP_MAX_GROUPS_PER_CACHE_ENTRY * 2 * (int64_t) buckets &&
			table.capacity <= ENTRY_CLAIMED ?
		buckets :
		0;
}

/*
 * Launches lookup_kernel with as many blocks as run concurrently.  They walk the rows together, and
 * so the same part of the table if keys were partitioned by hash.  Blocks that start later would
 * walk it again.
 */
template <int BYTES, bool CACHED>
static GpuaggCudaStatus
launch_lookup(const GroupArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	int threads = CACHED ? GROUP_CACHED_THREADS_PER_BLOCK : GROUP_THREADS_PER_BLOCK;
	size_t bytes = CACHED ? cache_bytes(args.buckets) : 0;
	int blocks;

	if (CACHED)
		CUDA_TRY(allow_shared(lookup_kernel<BYTES, CACHED>, facts));
	CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, lookup_kernel<BYTES, CACHED>,
														   threads, bytes));
	lookup_kernel<BYTES, CACHED><<<blocks * facts.sms, threads, bytes, stream>>>(args);
	CUDA_TRY_LAUNCH("lookup_kernel");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_lookup(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
					int64_t nrows, int retry, int32_t *bins, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	GroupArgs args = group_args(table);

	if (!is_table_valid(table) || nrows < 0 || nrows > UINT32_MAX)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	args.most_probes = GROUP_MOST_PROBES;
	args.input = keys;
	args.filter = filter;
	args.nrows = (u32) nrows;
	args.retry = retry != 0;
	args.plain = !args.retry && !filter;
	args.bins = bins;
	CUDA_TRY(
		cudaMemsetAsync(&table->counters->pending, 0, sizeof(table->counters->pending), stream));
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	args.buckets = cache_buckets(*table, *facts);
	if (table->key_bytes == 16)
		return launch_lookup<16, false>(args, *facts, stream);
	if (table->key_bytes == 4)
		return args.buckets ? launch_lookup<4, true>(args, *facts, stream) :
							  launch_lookup<4, false>(args, *facts, stream);
	return args.buckets ? launch_lookup<8, true>(args, *facts, stream) :
						  launch_lookup<8, false>(args, *facts, stream);
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_grow(const GpuaggGroupTable *from, const GpuaggGroupTable *to, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	GroupArgs old = group_args(from), made = group_args(to);

	if (!is_table_valid(from) || !is_table_valid(to) || from->key_bytes != to->key_bytes ||
		to->capacity < from->capacity)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	CUDA_TRY(cudaMemsetAsync(to->slots, 0, gpuagg_group_slot_bytes(to->key_bytes, to->capacity),
							 stream));
	if (from->key_bytes == 4)
		grow_kernel<4>
			<<<GROUP_GROW_BLOCKS_PER_SM * facts->sms, GROUP_GROW_THREADS_PER_BLOCK, 0, stream>>>(
				old, made);
	else if (from->key_bytes == 8)
		grow_kernel<8>
			<<<GROUP_GROW_BLOCKS_PER_SM * facts->sms, GROUP_GROW_THREADS_PER_BLOCK, 0, stream>>>(
				old, made);
	else
		grow_kernel<16>
			<<<GROUP_GROW_BLOCKS_PER_SM * facts->sms, GROUP_GROW_THREADS_PER_BLOCK, 0, stream>>>(
				old, made);
	CUDA_TRY_LAUNCH("grow_kernel");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_fill(const GpuaggGroupTable *table, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	GroupArgs args = group_args(table);
	void (*fill)(GroupArgs);

	if (!is_table_valid(table))
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	CUDA_TRY(cudaMemsetAsync(table->slots, 0,
							 gpuagg_group_slot_bytes(table->key_bytes, table->capacity), stream));
	fill = table->key_bytes == 4 ? fill_kernel<4> :
		table->key_bytes == 8    ? fill_kernel<8> :
								   fill_kernel<16>;
	fill<<<GROUP_GROW_BLOCKS_PER_SM * facts->sms, GROUP_GROW_THREADS_PER_BLOCK, 0, stream>>>(args);
	CUDA_TRY_LAUNCH("fill_kernel");
	return GPUAGG_CUDA_OK;
}
