/*
 * group.cu
 *	  Hash group-by: keys to dense bins.
 *
 * Open addressing with linear probing; the slot of a key is its hash scaled to
 * the number of slots, so keys that were partitioned by hash meet in one part of the table.
 * A slot's state is 0 (empty), 1 (claimed, the key is being written) or bin + 2.
 * A block claims slots for all new keys of a tile before it asks for bins with one
 * atomic addition, and never waits for another block in between; rows that met a
 * claimed slot come last, when waiting is safe.
 */
#include "partition.cuh"

#define THREADS 256
#define ITEMS 4
#define PARTITIONS 256

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
	u64			nslots;
	u64			capacity;
	void	   *keys;
	GpuaggGroupCounters *counters;
	const void *input;
	const uint8_t *validity;
	const uint8_t *filter;
	u32			nrows;
	bool		retry;
	int32_t    *bins;
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
read_slot(Slot<WORDS> *p)
{
	Slot<WORDS> s;

	if constexpr (WORDS == 1)
	{
		u64			hi;

		asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
					 : "=l"(s.key[0]), "=l"(hi) : "l"(p) : "memory");
		s.state = (u32) hi;
		return s;
	}
	s.state = *(volatile u32 *) &p->state;
	__threadfence();
	for (int i = 0; i < WORDS; i++)
		s.key[i] = *(volatile u64 *) &p->key[i];
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
		return;
	}
	for (int i = 0; i < WORDS; i++)
		*(volatile u64 *) &p->key[i] = k.w[i];
	__threadfence();
	*(volatile u32 *) &p->state = bin + SLOT_BIN;
}

static __device__ __forceinline__ u64
next_slot(u64 at, u64 nslots)
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
probe(const GroupArgs &args, const Key<WORDS> &k, u64 &at, int32_t &bin)
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
settle(const GroupArgs &args, const Key<WORDS> &k, u64 at)
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

/* Bins for the tile's claims, with one addition for the block. */
static __device__ __forceinline__ u64
reserve_bins(GpuaggGroupCounters *counters, u32 claims)
{
	__shared__ u32 warp_sum[THREADS / 32];
	__shared__ u64 base;
	u32			lane = threadIdx.x % 32,
				warp = threadIdx.x / 32,
				sum = claims;

	for (int d = 1; d < 32; d *= 2)
	{
		u32			t = __shfl_up_sync(~0u, sum, d);

		if (lane >= (u32) d)
			sum += t;
	}
	if (lane == 31)
		warp_sum[warp] = sum;
	__syncthreads();
	if (threadIdx.x == 0)
	{
		u32			total = 0;

		for (int w = 0; w < THREADS / 32; w++)
		{
			u32			t = warp_sum[w];

			warp_sum[w] = total;
			total += t;
		}
		base = atomicAdd(&counters->groups, (u64) total);
	}
	__syncthreads();
	return base + warp_sum[warp] + sum - claims;
}

/* A thread's rows of a tile, one bit an item each. */
struct TileRows
{
	u32			rows;			/* that take part */
	u32			nulls;
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
		u64			r = base + j * THREADS + threadIdx.x;

		if (r < args.nrows && !(args.retry && args.bins[r] != -1) && !(args.filter && !args.filter[r]))
		{
			t.rows |= 1u << j;
			if (args.validity && !bit_set(args.validity, (u32) r))
				t.nulls |= 1u << j;
			else
				key[j] = load_key<BYTES>(args.input, (u32) r);
		}
	}
}

/* Most rows find their key, without a claim or a wait. */
template <int WORDS> static __device__ __forceinline__ void
probe_rows(const GroupArgs &args, const Key<WORDS> (&key)[ITEMS], u64 (&at)[ITEMS], int32_t (&bin)[ITEMS],
		   TileRows &t)
{
	Slot<WORDS> *slots = (Slot<WORDS> *) args.slots;
	Slot<WORDS> seen[ITEMS];
	u32			open = t.rows & ~t.nulls;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		bin[j] = -1;
		if (open >> j & 1)
		{
			at[j] = __umul64hi(hash_key(key[j]), args.nslots);
			seen[j] = read_slot_cached(slots + at[j]);
		}
	}
	/* all items go to their next slots together, as far as the slots are full */
	for (u32 going = open; going;)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (going >> j & 1)
			{
				if (seen[j].state < SLOT_BIN)
					going &= ~(1u << j);
				else if (same_key(seen[j], key[j]))
				{
					bin[j] = (int32_t) (seen[j].state - SLOT_BIN);
					going &= ~(1u << j);
					open &= ~(1u << j);
				}
				else
				{
					at[j] = next_slot(at[j], args.nslots);
					seen[j] = read_slot_cached(slots + at[j]);
				}
			}
	__syncwarp();
	if (open)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (open >> j & 1)
			{
				Found		f = probe(args, key[j], at[j], bin[j]);

				t.claims |= (f == CLAIMED) << j;
				t.deferred |= (f == DEFERRED) << j;
			}
	__syncwarp();
}

/* Bins for the block's claims. */
template <int BYTES, int WORDS> static __device__ __forceinline__ void
fill_claims(const GroupArgs &args, const Key<WORDS> (&key)[ITEMS], const u64 (&at)[ITEMS],
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
}

template <int BYTES> static __global__ void __launch_bounds__(THREADS)
lookup_kernel(const __grid_constant__ GroupArgs args)
{
	constexpr int WORDS = BYTES == 16 ? 2 : 1;
	u32			pending = 0;

	for (u64 base = blockIdx.x * (u64) (THREADS * ITEMS); base < args.nrows;
		 base += gridDim.x * (u64) (THREADS * ITEMS))
	{
		Key<WORDS>	key[ITEMS];
		u64			at[ITEMS];
		int32_t		bin[ITEMS];
		TileRows	t;

		load_rows<BYTES, WORDS>(args, base, key, t);
		probe_rows<WORDS>(args, key, at, bin, t);
		if (__syncthreads_or(t.claims))
			fill_claims<BYTES, WORDS>(args, key, at, bin, t.claims);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			if (t.deferred >> j & 1)
				bin[j] = settle<BYTES, WORDS>(args, key[j], at[j]);
			if (t.nulls >> j & 1)
				bin[j] = settle_null<BYTES, WORDS>(args);
			if (t.rows >> j & 1)
			{
				args.bins[base + j * THREADS + threadIdx.x] = bin[j];
				pending += bin[j] < 0;
			}
			else if (!args.retry && base + j * THREADS + threadIdx.x < args.nrows)
				args.bins[base + j * THREADS + threadIdx.x] = GPUAGG_GROUP_FILTERED;
		}
		/* no warp may claim for the next tile while another still waits for a claim */
		__syncthreads();
	}
	if (pending)
		atomicAdd(&args.counters->pending, (u64) pending);
}

template <int BYTES> static __global__ void
grow_kernel(GpuaggGroupTable from, u64 from_slots, GpuaggGroupTable to, u64 to_slots)
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
		u64			at;

		if (s.state < SLOT_BIN)
			continue;
		for (int w = 0; w < WORDS; w++)
			k.w[w] = s.key[w];
		at = __umul64hi(hash_key(k), to_slots);
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

static u64
slots_of(int64_t capacity)
{
	/* half full at most: lanes of a warp wait for the longest search */
	return 2 * (u64) capacity + 64;
}

static bool
table_valid(const GpuaggGroupTable *t)
{
	return (t->key_bytes == 4 || t->key_bytes == 8 || t->key_bytes == 16) && t->capacity > 0 &&
		t->capacity < INT32_MAX - SLOT_BIN;
}

GPUAGG_API size_t
gpuagg_group_slot_bytes(int key_bytes, int64_t capacity)
{
	return slots_of(capacity) * (key_bytes == 16 ? sizeof(Slot<2>) : sizeof(Slot<1>));
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
	args.bins = bins;
	CUDA_TRY(cudaMemsetAsync(&table->counters->pending, 0, sizeof(table->counters->pending), stream));
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	if (table->key_bytes == 4)
		lookup_kernel<4><<<8 * facts->sms, THREADS, 0, stream>>>(args);
	else if (table->key_bytes == 8)
		lookup_kernel<8><<<8 * facts->sms, THREADS, 0, stream>>>(args);
	else
		lookup_kernel<16><<<8 * facts->sms, THREADS, 0, stream>>>(args);
	CUDA_TRY_LAUNCH("lookup_kernel");
	return GPUAGG_CUDA_OK;
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
	u64			from_slots,
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
	return (u32) (hash_key(k) >> 56);
}

template <int BYTES> static __global__ void __launch_bounds__(PART_THREADS, 2)
count_keys_kernel(const void *keys, u32 nrows, u32 *total)
{
	__shared__ u32 count[PARTITIONS];

	for (u32 p = threadIdx.x; p < PARTITIONS; p += PART_THREADS)
		count[p] = 0;
	__syncthreads();
#pragma unroll 8
	for (u64 r = blockIdx.x * (u64) PART_THREADS + threadIdx.x; r < nrows; r += gridDim.x * (u64) PART_THREADS)
		atomicAdd(&count[partition_of(load_key<BYTES>(keys, (u32) r))], 1u);
	__syncthreads();
	for (u32 p = threadIdx.x; p < PARTITIONS; p += PART_THREADS)
		if (count[p])
			atomicAdd(&total[p], count[p]);
}

template <int BYTES> static __global__ void __launch_bounds__(PART_THREADS, 2)
move_keys_kernel(const void *keys, const void *values, int value_bytes, u32 nrows, void *keys_out,
				 void *values_out, u32 *cursor)
{
	PartTile	t = {PARTITIONS, (u32) max(BYTES, value_bytes)};

	for (u64 base = blockIdx.x * (u64) PART_TILE; base < nrows; base += gridDim.x * (u64) PART_TILE)
	{
		Key<BYTES == 16 ? 2 : 1> key[PART_ITEMS];
		u32			part[PART_ITEMS],
					place[PART_ITEMS];
		u32			total;

#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			if (base + j * PART_THREADS + threadIdx.x < nrows)
				key[j] = load_key<BYTES>(keys, (u32) base + j * PART_THREADS + threadIdx.x);
		part_clear(t);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
		{
			place[j] = UNPLACED;
			part[j] = partition_of(key[j]);
			if (base + j * PART_THREADS + threadIdx.x < nrows)
				place[j] = atomicAdd(&t.count()[part[j]], 1u);
		}
		total = part_reserve(t, cursor);
#pragma unroll
		for (int j = 0; j < PART_ITEMS; j++)
			if (place[j] != UNPLACED)
			{
				place[j] += t.count()[part[j]];
				t.part()[place[j]] = (uint16_t) part[j];
			}
		part_move_column<BYTES>(t, total, place, keys, base, keys_out, BYTES);
		if (value_bytes == 4)
			part_move_column<4>(t, total, place, values, base, values_out, 4);
		else if (value_bytes == 8)
			part_move_column<8>(t, total, place, values, base, values_out, 8);
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

template <int BYTES> static GpuaggCudaStatus
partition_keys(const void *keys, const void *values, int value_bytes, u32 nrows, void *keys_out,
			   void *values_out, u32 *cursor, const DeviceFacts &facts, cudaStream_t stream)
{
	int			blocks = 2 * facts.sms;
	size_t		bytes = part_tile_bytes(BYTES > value_bytes ? BYTES : value_bytes, PARTITIONS);

	CUDA_TRY(allow_shared(move_keys_kernel<BYTES>, facts));
	CUDA_TRY(cudaMemsetAsync(cursor, 0, PARTITIONS * sizeof(u32), stream));
	count_keys_kernel<BYTES><<<blocks, PART_THREADS, 0, stream>>>(keys, nrows, cursor);
	first_rows_kernel<<<1, PARTITIONS, 0, stream>>>(cursor);
	move_keys_kernel<BYTES><<<blocks, PART_THREADS, bytes, stream>>>(keys, values, value_bytes, nrows, keys_out,
																	 values_out, cursor);
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
		value_bytes = 0;
	if (key_bytes == 4)
		return partition_keys<4>(keys, values, value_bytes, (u32) nrows, keys_out, values_out, cursor,
								 *facts, stream);
	if (key_bytes == 8)
		return partition_keys<8>(keys, values, value_bytes, (u32) nrows, keys_out, values_out, cursor,
								 *facts, stream);
	if (key_bytes == 16)
		return partition_keys<16>(keys, values, value_bytes, (u32) nrows, keys_out, values_out, cursor,
								  *facts, stream);
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
