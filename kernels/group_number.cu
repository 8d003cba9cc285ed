/*
 * group_number.cu
 *	  Numbers the groups of rows that were partitioned by key (group_partition.cu).
 *
 *	clear_split_tables_kernel	clears the tables of split partitions
 *	number_groups_kernel	numbers the groups of each work item in shared memory
 *	gather_split_groups_kernel	copies the keys of split partitions
 *
 * The blocks of a split partition number the same groups.  So it has a small table in device memory
 * (group.cuh), in which a block looks up each group that is new to the block.
 */
#include "group_partition.cuh"

/* ---- numbers of groups ------------------------------------------------------------- */

/* Slots of the table in shared memory; a slot more is for the key that marks free slots. */
#define NUMBER_SLOTS (2 * KEY_PART_MOST_GROUPS)
/* A limit of searches, which random hashes do not reach; no tuning constant. */
#define NUMBER_MOST_PROBES 512
/* The key of a free slot. */
#define FREE_KEY (~0ULL)

/*
 * A block's table of the keys of a work item, in shared memory.  Keys of up to 8 bytes are claimed
 * by one compare-and-swap.  A slot of a longer key has the place of a row with that key, in device
 * memory, plus one.
 */
template <int BYTES> struct NumberTable
{
	typedef typename MovedKey<BYTES>::type K;
	typedef typename MovedValue<BYTES == 16 ? 4 : 8>::type Entry;

	const K *rows; /* keys of the work item */

	static __device__ __forceinline__ Entry *
	entries()
	{
		extern __shared__ __align__(16) char part_memory[];

		return (Entry *) part_memory;
	}
	/* Returns the number of each slot's group. */
	static __device__ __forceinline__ uint16_t *
	numbers()
	{
		return (uint16_t *) (entries() + NUMBER_SLOTS + 2);
	}
	static __host__ __device__ __forceinline__ size_t
	bytes()
	{
		return (NUMBER_SLOTS + 2) * (sizeof(Entry) + sizeof(uint16_t));
	}
	static __device__ __forceinline__ Entry
	free_entry()
	{
		return BYTES == 16 ? (Entry) 0 : (Entry) FREE_KEY;
	}
	/* Frees all slots. */
	static __device__ __forceinline__ void
	clear()
	{
		u64 both = BYTES == 16 ? 0 : FREE_KEY;
		ulonglong2 *vector = (ulonglong2 *) entries();
		constexpr u32 VECTORS = NUMBER_SLOTS * sizeof(Entry) / sizeof(ulonglong2);

		for (u32 i = threadIdx.x; i < VECTORS; i += blockDim.x)
			vector[i] = make_ulonglong2(both, both);
		if (threadIdx.x < 2)
			entries()[NUMBER_SLOTS + threadIdx.x] = free_entry();
	}
	/* Returns the slot where the search for a key begins. */
	static __device__ __forceinline__ u32
	start(const GpuaggHashKey &hash, const K &key)
	{
		return (u32) hash_key(hash, key_of(key)) >> (32 - __ffs(NUMBER_SLOTS) + 1);
	}
	/* Reads slot `at`, which other threads may claim. */
	static __device__ __forceinline__ Entry
	read(u32 at)
	{
		return *(volatile Entry *) (entries() + at);
	}
	/*
	 * Finds or inserts a key, the one of row `row` of the work item, from slot `at` on, which was
	 * read as `seen`.  Sets `at` to the key's slot.  Returns whether it was inserted.  `lost` is
	 * set if the search is too long.
	 */
	__device__ __forceinline__ bool
	find(const K &key, u32 row, Entry seen, u32 &at, bool &lost) const
	{
		if constexpr (BYTES == 8)
			if (key == FREE_KEY)
			{
				at = NUMBER_SLOTS;
				return atomicCAS(entries() + at, (Entry) FREE_KEY, (Entry) 0) == FREE_KEY;
			}
		for (int probes = 0; probes < NUMBER_MOST_PROBES; probes++, seen = read(at))
		{
			Entry *p = entries() + at;

			if (seen == free_entry())
			{
				Entry mine;

				if constexpr (BYTES == 16)
					mine = row + 1;
				else
					mine = key;
				seen = atomicCAS(p, free_entry(), mine);
				if (seen == free_entry())
					return true;
			}
			if (has_key(seen, key))
				return false;
			at = (at + 1) & (NUMBER_SLOTS - 1);
		}
		lost = true;
		return false;
	}
	/* Returns whether an entry that is not free has the key. */
	__device__ __forceinline__ bool
	has_key(Entry entry, const K &key) const
	{
		if constexpr (BYTES == 16)
		{
			const K *k = rows + (entry - 1);

			return k->lo == key.lo && k->hi == key.hi;
		}
		else
			return entry == (Entry) key;
	}
	/* Returns the key of slot `at`, which is not free. */
	__device__ __forceinline__ K
	key_at(u32 at) const
	{
		if constexpr (BYTES == 16)
			return rows[entries()[at] - 1];
		else
			return at == NUMBER_SLOTS ? (K) FREE_KEY : (K) entries()[at];
	}
};

/* Returns the table of a split partition. */
template <int BYTES>
static __device__ __forceinline__ GroupArgs
split_table(const NumberArgs &args, u32 split)
{
	GroupArgs table = GroupArgs();

	table.slots = args.split_slots + split * args.split_slot_bytes;
	table.nslots = 2 * KEY_PART_MOST_GROUPS + 64;
	table.capacity = KEY_PART_MOST_GROUPS;
	table.hash = args.hash;
	table.most_probes = GROUP_MOST_PROBES;
	table.keys = args.split_keys + (size_t) split * KEY_PART_MOST_GROUPS * BYTES;
	table.counters = args.split_counters + split;
	return table;
}

/* Clears the tables of split partitions. */
static __global__ void
clear_split_tables_kernel(const __grid_constant__ NumberArgs args)
{
	u32 nsplits;
	uint4 *vector = (uint4 *) args.split_slots;
	size_t vectors;

	wait_for_predecessor();
	let_successor_start();
	nsplits = args.counter[HIST_NSPLITS];
	vectors = nsplits * args.split_slot_bytes / sizeof(uint4);
	for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < vectors;
		 i += (size_t) gridDim.x * blockDim.x)
		vector[i] = make_uint4(0, 0, 0, 0);
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < nsplits; i += gridDim.x * blockDim.x)
		args.split_counters[i] = {0, 0, 0};
}

/* Looks up a key in the table of a split partition.  Returns its number, or -1 if it is full. */
template <int BYTES, typename K>
static __device__ __noinline__ int32_t
number_in_split(const NumberArgs &args, u32 split, K key)
{
	GroupArgs table = split_table<BYTES>(args, split);
	auto k = key_of(key);
	/* the top bits are equal for all keys of the partition */
	u64 hash = hash_key(args.hash, k) << args.log2_parts;

	return find_or_insert_waiting<BYTES>(table, k, slot_of(hash, table.nslots));
}

/* What the threads of a block share while they number groups. */
struct NumberBlock
{
	u32 next; /* number of the work item */
	HistItem item;
	u32 used;  /* groups of the item so far */
	u32 first; /* number of the partition's first group */
};

/*
 * Numbers the groups that the thread has claimed: claims has a bit for each key. Returns false if
 * there are too many groups.
 */
template <int BYTES, int ITEMS, typename K>
static __device__ __forceinline__ bool
number_claims(const NumberArgs &args, const HistItem &item, NumberBlock &block, u32 claims,
			  const K (&key)[ITEMS], const u32 (&at)[ITEMS])
{
	uint16_t *numbers = NumberTable<BYTES>::numbers();
	u32 sum, id = 0;
	bool room = true;

	if (item.split < 0)
	{
		sum = warp_scan(__popc(claims));
		if (threadIdx.x % 32 == 31 && sum)
			id = atomicAdd(&block.used, sum);
		id = __shfl_sync(~0u, id, 31) + sum;
		room = id <= KEY_PART_MOST_GROUPS;
		id -= __popc(claims);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (claims >> j & 1)
				numbers[at[j]] = (uint16_t) id++;
		return room;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (claims >> j & 1)
		{
			int32_t number = number_in_split<BYTES>(args, (u32) item.split, key[j]);

			numbers[at[j]] = (uint16_t) number;
			room = room && number >= 0;
		}
	__syncwarp();
	return room;
}

/*
 * Loads the keys of a tile of a work item, whose first row is base - threadIdx.x; 0 for rows past
 * the end.
 */
template <int ITEMS, typename K>
static __device__ __forceinline__ void
load_tile_keys(const K *rows, u64 base, u32 nrows, K (&key)[ITEMS])
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		key[j] = base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK < nrows ?
			load_moved(rows + base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK) :
			K();
}

/*
 * Finds the slots of a tile's keys, and inserts new ones.  Returns a bit for each that it inserted.
 * Most keys are in their first slot, so all of these are read first.
 */
template <int BYTES, int ITEMS, typename K>
static __device__ __forceinline__ u32
find_tile_keys(const NumberTable<BYTES> &table, const GpuaggHashKey &hash, u64 base, u32 nrows,
			   const K (&key)[ITEMS], u32 (&at)[ITEMS], bool &lost)
{
	typedef NumberTable<BYTES> Table;
	typename Table::Entry seen[ITEMS];
	u32 claims = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		at[j] = Table::start(hash, key[j]);
		seen[j] = Table::read(at[j]);
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u64 row = base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK;

		if (row < nrows && !(seen[j] != Table::free_entry() && table.has_key(seen[j], key[j])) &&
			table.find(key[j], (u32) row, seen[j], at[j], lost))
			claims |= 1u << j;
	}
	__syncwarp();
	return claims;
}

/* Gives the partition of a whole item its range of groups.  One thread calls it. */
static __device__ __forceinline__ void
take_groups(const NumberArgs &args, const HistItem &item, NumberBlock &block)
{
	block.first = (u32) atomicAdd(&args.counts->groups, (u64) block.used);
	args.first[item.part] = block.first;
	args.ngroups[item.part] = block.used;
}

/* Gives the partition of a whole item its range of groups, and writes their keys. */
template <int BYTES>
static __device__ __forceinline__ void
publish_groups(const NumberArgs &args, const HistItem &item, const NumberTable<BYTES> &table,
			   NumberBlock &block)
{
	typedef typename MovedKey<BYTES>::type K;
	K *out;

	__syncthreads();
	if (threadIdx.x == 0)
		take_groups(args, item, block);
	__syncthreads();
	out = (K *) args.groups + block.first;
	for (u32 i = threadIdx.x; i <= NUMBER_SLOTS; i += blockDim.x)
		if (table.entries()[i] != table.free_entry())
			out[table.numbers()[i]] = table.key_at(i);
}

/*
 * Numbers the groups of a work item, and publishes those of a whole item.  Returns false if there
 * are too many.
 */
template <int BYTES>
static __device__ __forceinline__ bool
number_item(const NumberArgs &args, const HistItem &item, const NumberTable<BYTES> &table,
			NumberBlock &block)
{
	typedef typename MovedKey<BYTES>::type K;
	constexpr int ITEMS = Tuned::KEY_PART_NUMBER_ROWS_PER_THREAD;
	constexpr u32 TILE = ITEMS * KEY_PART_NUMBER_THREADS_PER_BLOCK;
	u32 nrows = item.row1 - item.row0;
	uint16_t *out = args.number + item.row0;
	const uint16_t *numbers = NumberTable<BYTES>::numbers();
	/* threads still have the keys that they inserted, so the table need not be searched for them */
	bool one_tile = item.split < 0 && nrows > 0 && nrows <= TILE;
	K key[ITEMS];

	load_tile_keys<ITEMS>(table.rows, threadIdx.x, nrows, key);
	for (u64 base = threadIdx.x; base - threadIdx.x < nrows; base += TILE)
	{
		u32 at[ITEMS];
		bool lost = false, room;
		u32 claims = find_tile_keys<BYTES, ITEMS>(table, args.hash, base, nrows, key, at, lost);

		room = number_claims<BYTES, ITEMS>(args, item, block, claims, key, at);
		/* the keys of this tile are not needed any more */
		if (!one_tile)
			load_tile_keys<ITEMS>(table.rows, base + TILE, nrows, key);
		/* all numbers of the tile are there after the barrier; they never change */
		if (__syncthreads_or(lost || !room))
			return false;
		if (one_tile && threadIdx.x == 0)
			take_groups(args, item, block);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK < nrows)
				out[base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK] = numbers[at[j]];
		if (one_tile)
		{
			__syncthreads();
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (claims >> j & 1)
					((K *) args.groups)[block.first + numbers[at[j]]] = key[j];
		}
	}
	if (item.split < 0 && !one_tile)
		publish_groups<BYTES>(args, item, table, block);
	return true;
}

/* Numbers the groups of all partitions.  Blocks take work items in order. */
template <int BYTES>
static __global__ void
__launch_bounds__(KEY_PART_NUMBER_THREADS_PER_BLOCK, KEY_PART_NUMBER_BLOCKS_PER_SM)
	number_groups_kernel(const __grid_constant__ NumberArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	__shared__ NumberBlock block;
	u32 nitems, ahead = 0;

	wait_for_predecessor();
	let_successor_start();
	nitems = args.counter[HIST_NITEMS];
	if (threadIdx.x == 0)
		ahead = atomicAdd(&args.counter[HIST_NEXT], 1u);
	for (;;)
	{
		__syncthreads();
		if (threadIdx.x == 0)
		{
			block.next = ahead;
			block.used = 0;
			/* the next item is there when this one is finished */
			if (ahead < nitems)
			{
				block.item = args.item[ahead];
				ahead = atomicAdd(&args.counter[HIST_NEXT], 1u);
			}
		}
		NumberTable<BYTES>::clear();
		__syncthreads();
		if (block.next >= nitems)
			return;

		HistItem item = block.item;
		NumberTable<BYTES> table = {(const K *) args.keys + item.row0};

		if (!number_item<BYTES>(args, item, table, block))
		{
			if (threadIdx.x == 0)
				atomicAdd(&args.counts->overflows, 1ULL);
			return;
		}
	}
}

/* Gives each split partition its range of groups, and copies their keys.  A block takes one. */
template <int BYTES>
static __global__ void
gather_split_groups_kernel(const __grid_constant__ NumberArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	__shared__ u32 first;
	u32 nsplits;

	wait_for_predecessor();
	let_successor_start();
	nsplits = args.counter[HIST_NSPLITS];
	if (args.counts->overflows)
		return;
	for (u32 s = blockIdx.x; s < nsplits; s += gridDim.x)
	{
		GroupArgs table = split_table<BYTES>(args, s);
		u32 n = (u32) table.counters->groups;

		__syncthreads();
		if (threadIdx.x == 0)
		{
			first = (u32) atomicAdd(&args.counts->groups, (u64) n);
			args.first[args.split_part[s]] = first;
			args.ngroups[args.split_part[s]] = n;
		}
		__syncthreads();
		for (u32 i = threadIdx.x; i < n; i += blockDim.x)
			((K *) args.groups)[first + i] = ((const K *) table.keys)[i];
	}
}

/* ---- host -------------------------------------------------------------------------- */

/* Queues the kernels for keys of a width. */
template <int BYTES>
static GpuaggCudaStatus
launch_number(const NumberArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(launch_early(clear_split_tables_kernel, facts.sms, 512, 0, facts, stream, args));
	CUDA_TRY(allow_shared(number_groups_kernel<BYTES>, facts));
	CUDA_TRY(launch_early(number_groups_kernel<BYTES>, KEY_PART_NUMBER_BLOCKS_PER_SM * facts.sms,
						  KEY_PART_NUMBER_THREADS_PER_BLOCK, NumberTable<BYTES>::bytes(), facts,
						  stream, args));
	CUDA_TRY(
		launch_early(gather_split_groups_kernel<BYTES>, facts.sms, 512, 0, facts, stream, args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
group_launch_number(int key_bytes, const NumberArgs &args, const DeviceFacts &facts,
					cudaStream_t stream)
{
	return key_bytes == 4 ? launch_number<4>(args, facts, stream) :
		key_bytes == 8    ? launch_number<8>(args, facts, stream) :
							launch_number<16>(args, facts, stream);
}
