/*
 * group_partition.cu
 *	  Group-by of very many groups: moves rows to partitions by the hash of their keys, and numbers
 *	  the groups of each partition.
 *
 * A lookup of each row in a table that is larger than the L2 cache costs a line of memory a row.
 * Here rows move to partitions first, which shared memory holds one by one.  The top bits of a hash
 * are the number of its partition.  Kernels:
 *
 *	count_keys_kernel	counts the rows of each partition
 *	plan_partition_items_kernel (hist_partition.cu)	first rows, and work items
 *	scatter_keys_kernel	moves keys and columns, or row numbers: once, or, if there are many
 *		partitions, first to groups of partitions and then to partitions
 *	clear_split_tables_kernel	clears the tables of split partitions
 *	number_groups_kernel	numbers the groups of each work item in shared memory
 *	gather_split_groups_kernel	copies the keys of split partitions
 *
 * A partition with very many rows is split into several work items, as those of hist_partition.cu
 * are.  Their blocks number the same groups, so the partition has a small table in device memory
 * (group.cuh), in which a block looks up each group that is new to the block.
 *
 * The result is the groups, in the order of partitions, and for each row the number of its group
 * within the partition.  hist.cu adds rows with these numbers as the bins of a partition.
 */
#include "group.cuh"
#include "hist_kernels.cuh"
#include "partition.cuh"

/* ---- keys ------------------------------------------------------------------------- */

/* The type that moves keys of a width. */
template <int BYTES> struct MovedKey
{
	typedef u64 type;
};
template <> struct MovedKey<4>
{
	typedef u32 type;
};
template <> struct MovedKey<16>
{
	typedef Pair type;
};

static __device__ __forceinline__ u32
load_moved(const u32 *p)
{
	return __ldcs(p);
}
static __device__ __forceinline__ u64
load_moved(const u64 *p)
{
	return __ldcs(p);
}
static __device__ __forceinline__ Pair
load_moved(const Pair *p)
{
	return {__ldcs(&p->lo), __ldcs(&p->hi)};
}

static __device__ __forceinline__ Key<1>
key_of(u32 k)
{
	return {{k}};
}
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

/* Returns the upper half of a key's hash, whose top bits are the number of its partition. */
template <typename K>
static __device__ __forceinline__ u32
upper_hash(const GpuaggHashKey &hash, const K &key)
{
	return (u32) (hash_key(hash, key_of(key)) >> 32);
}

/* ---- counts of rows --------------------------------------------------------------- */

/* Arguments of count_keys_kernel. */
struct CountKeysArgs
{
	const void *keys;
	const uint8_t *filter;
	u32 nrows;
	GpuaggHashKey hash;
	int shift; /* upper_hash() >> shift is the partition */
	u32 parts;
	u32 *count; /* [partition] cleared before */
};

/* Adds the rows of each partition to args.count. */
template <int BYTES>
static __global__ void
__launch_bounds__(KEY_PART_COUNT_THREADS_PER_BLOCK, 1)
	count_keys_kernel(const __grid_constant__ CountKeysArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	constexpr int ITEMS = Tuned::KEY_PART_COUNT_ROWS_PER_THREAD;
	constexpr u64 TILE = ITEMS * KEY_PART_COUNT_THREADS_PER_BLOCK;
	extern __shared__ __align__(16) char part_memory[];
	u32 *count = (u32 *) part_memory;
	const K *keys = (const K *) args.keys;

	wait_for_predecessor();
	let_successor_start();
	for (u32 p = threadIdx.x; p < args.parts; p += blockDim.x)
		count[p] = 0;
	__syncthreads();
	for (u64 base = blockIdx.x * TILE; base < args.nrows; base += gridDim.x * TILE)
	{
		K key[ITEMS];
		u32 ok = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64 r = base + j * KEY_PART_COUNT_THREADS_PER_BLOCK + threadIdx.x;

			if (r < args.nrows && !(args.filter && !args.filter[r]))
			{
				ok |= 1u << j;
				key[j] = load_moved(keys + r);
			}
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				atomicAdd(&count[upper_hash(args.hash, key[j]) >> args.shift], 1u);
	}
	__syncthreads();
	for (u32 p = threadIdx.x; p < args.parts; p += blockDim.x)
		if (count[p])
			atomicAdd(&args.count[p], count[p]);
}

/* ---- scatter ---------------------------------------------------------------------- */

/*
 * One step of the scatter.  The first step moves the caller's rows.  A second step moves the rows
 * of each group of partitions to the partitions of the group.
 */
struct ScatterKeysArgs
{
	const void *keys;
	void *to; /* keys */
	GpuaggHashKey hash;
	int shift;   /* upper_hash() >> shift is the partition, or in a first step of two the group */
	u32 parts;   /* partitions or groups that a tile may have, a power of two */
	u32 *cursor; /* [partition or group] where the next rows are appended */
	u32 *row;    /* first step: numbers of rows, or NULL */
	PartColumns columns;
	int stage_bytes;
	/* first step: */
	const uint8_t *filter;
	u32 nrows;
	/* second step: */
	u32 groups;
	const u32 *start; /* [partition] its first row */
	const u32 *rows;  /* number of rows of all partitions */
};

/* A tile: rows from `base` up to, but not including, `end`. */
struct KeyTile
{
	u32 base, end;
	u32 group;
};

/* Finds the tiles of a step.  A tile of a second step has rows of one group. */
template <bool SECOND> struct KeyTiles
{
	u32 total;

	/* Returns the number of the first tile of each group, in shared memory. */
	static __device__ __forceinline__ u32 *
	first()
	{
		__shared__ u32 tiles[1 << KEY_PART_MAX_LOG2_IN_ONE_STEP];

		return tiles;
	}
	/* Returns the first row of a group of partitions. */
	static __device__ __forceinline__ u32
	row_of(const ScatterKeysArgs &args, u32 group)
	{
		return group < args.groups ? args.start[group * args.parts] : *args.rows;
	}
	/* All threads of the block must call it. */
	__device__ __forceinline__ void
	init(const ScatterKeysArgs &args)
	{
		__shared__ u32 scan[32];

		if (SECOND)
		{
			u32 g = threadIdx.x,
				rows = g < args.groups ? row_of(args, g + 1) - row_of(args, g) : 0,
				n = (rows + PARTITION_TILE_ROWS - 1) / PARTITION_TILE_ROWS,
				upto = block_scan(n, scan, &total);

			if (g < args.groups)
				first()[g] = upto - n;
			__syncthreads();
		}
		else
			total = (u32) (((u64) args.nrows + PARTITION_TILE_ROWS - 1) / PARTITION_TILE_ROWS);
	}
	/* Returns tile t; without rows if there is none. */
	__device__ __forceinline__ KeyTile
	at(const ScatterKeysArgs &args, u64 t) const
	{
		u32 g = 0, base = 0, end = args.nrows;

		if (t >= total)
			return {0, 0, 0};
		if constexpr (SECOND)
		{
			/* the last group whose first tile is not after t */
			for (u32 step = args.groups / 2; step > 0; step /= 2)
				if (first()[g + step] <= t)
					g += step;
			base = row_of(args, g);
			end = row_of(args, g + 1);
			t -= first()[g];
		}
		base += (u32) t * PARTITION_TILE_ROWS;
		return {base, base + min((u32) PARTITION_TILE_ROWS, end - base), g};
	}
};

/* Loads the keys of a tile that exist.  Returns a bit for each. */
template <typename K>
static __device__ __forceinline__ u32
load_keys(const ScatterKeysArgs &args, const KeyTile &tile, K (&key)[PARTITION_ROWS_PER_THREAD])
{
	const K *in = (const K *) args.keys + tile.base + threadIdx.x;
	u32 rows = tile.end - tile.base, ok = 0;

#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
		if (j * PARTITION_THREADS_PER_BLOCK + threadIdx.x < rows)
		{
			ok |= 1u << j;
			key[j] = load_moved(in + j * PARTITION_THREADS_PER_BLOCK);
		}
	return ok;
}

/* Returns `ok` without the rows that the filter leaves out. */
static __device__ __forceinline__ u32
filter_keys(const ScatterKeysArgs &args, const KeyTile &tile, u32 ok)
{
	const uint8_t *filter = args.filter + tile.base + threadIdx.x;

#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
		if ((ok >> j & 1) && !filter[j * PARTITION_THREADS_PER_BLOCK])
			ok &= ~(1u << j);
	return ok;
}

/* Stores the key of a row. */
template <typename K> struct PutKey
{
	K *to;

	__device__ __forceinline__ void
	operator()(u32 row, const K &key) const
	{
		to[row] = key;
	}
};

/* The type that moves values of a width. */
template <int WIDTH> struct MovedValue
{
	typedef u32 type;
};
template <> struct MovedValue<8>
{
	typedef u64 type;
};

/*
 * Moves rows to partitions, as scatter_rows_kernel of hist_partition.cu does.  WIDTH: width of all
 * columns; 0: widths differ. MORE: there are further columns.
 */
template <int BYTES, int WIDTH, bool MORE, bool SECOND>
static __global__ void
__launch_bounds__(PARTITION_THREADS_PER_BLOCK, 1)
	scatter_keys_kernel(const __grid_constant__ ScatterKeysArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	typedef typename MovedValue<WIDTH>::type T;
	PartTile t = {args.parts, sizeof(K), (u32) args.stage_bytes};
	PutKey<K> put = {(K *) args.to};
	bool numbers = WIDTH == 4 && !SECOND && args.row,
		 column = WIDTH != 0 && !numbers && args.columns.n > 0;
	T *out = numbers ? (T *) args.row : column ? (T *) args.columns.to[0] : nullptr;
	KeyTiles<SECOND> tiles;
	KeyTile tile;
	K key[PARTITION_ROWS_PER_THREAD];
	u32 ok;

	wait_for_predecessor();
	let_successor_start();
	part_clear(t);
	tiles.init(args);
	tile = tiles.at(args, blockIdx.x);
	ok = load_keys(args, tile, key);
	for (u64 i = blockIdx.x; i < tiles.total; i += gridDim.x)
	{
		KeyTile next = tiles.at(args, i + gridDim.x);
		u32 place[PARTITION_ROWS_PER_THREAD]; /* the partition above 16 bits of the place */
		T v[PARTITION_ROWS_PER_THREAD];
		TilePartitions used;
		u32 moved = args.filter ? filter_keys(args, tile, ok) : ok;

		if (column)
			part_load<T>(moved, args.columns.from[0], tile.base, v);
		else if (numbers)
#pragma unroll
			for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
				v[j] = (T) (tile.base + j * PARTITION_THREADS_PER_BLOCK + threadIdx.x);
#pragma unroll
		for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
			if (moved >> j & 1)
			{
				u32 p = (upper_hash(args.hash, key[j]) >> args.shift) & (args.parts - 1);

				place[j] = p << 16 | atomicAdd(&t.count()[p], 1u);
			}
		used = part_reserve(t, args.cursor + tile.group * args.parts, 0, 0);
#pragma unroll
		for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
			if (moved >> j & 1)
			{
				u32 p = place[j] >> 16;

				place[j] = (place[j] & 0xffff) + t.count()[p];
				t.part()[place[j]] = (uint16_t) p;
			}
		part_stage<K>(t.keys(), moved, place, key);
		if (out)
			part_stage<T>(t.stage(), moved, place, v);
		/* further columns need the registers */
		if (!MORE)
			ok = load_keys(args, next, key);
		part_write<K, T>(t, used, put, out);
		for (int c = column; MORE && c < args.columns.n; c++)
			part_move_column<WIDTH>(t, used.total, moved, place, args.columns.from[c], tile.base,
									args.columns.to[c], args.columns.bytes[c]);
		if (MORE)
			ok = load_keys(args, next, key);
		tile = next;
	}
}

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
	/*
	 * Finds or inserts a key, the one of row `row` of the work item.  Sets `at` to its slot.
	 * Returns whether it was inserted.  `lost` is set if the search is too long.
	 */
	__device__ __forceinline__ bool
	find(const GpuaggHashKey &hash, const K &key, u32 row, u32 &at, bool &lost) const
	{
		at = (u32) hash_key(hash, key_of(key)) >> (32 - __ffs(NUMBER_SLOTS) + 1);
		if constexpr (BYTES == 8)
			if (key == FREE_KEY)
			{
				at = NUMBER_SLOTS;
				return atomicCAS(entries() + at, (Entry) FREE_KEY, (Entry) 0) == FREE_KEY;
			}
		for (int probes = 0; probes < NUMBER_MOST_PROBES; probes++)
		{
			Entry *p = entries() + at, seen = *(volatile Entry *) p;

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
			if (is_key(seen, key))
				return false;
			at = (at + 1) & (NUMBER_SLOTS - 1);
		}
		lost = true;
		return false;
	}
	/* Returns whether an entry that is not free has the key. */
	__device__ __forceinline__ bool
	is_key(Entry entry, const K &key) const
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

/* Arguments of the kernels that number groups. */
struct NumberArgs
{
	const void *keys; /* of moved rows */
	uint16_t *number;
	GpuaggHashKey hash;
	int log2_parts;
	const HistItem *item;
	u32 *counter;
	const u32 *split_part; /* [split partition] its number */
	u32 *first;
	u32 *ngroups;
	void *groups; /* keys of groups */
	GpuaggKeyCounts *counts;
	/* tables of split partitions, one after another: */
	char *split_slots;
	size_t split_slot_bytes;
	char *split_keys;
	GpuaggGroupCounters *split_counters;
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
	u32 next;  /* work item */
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

/* Numbers the groups of a work item.  Returns false if there are too many. */
template <int BYTES>
static __device__ __forceinline__ bool
number_item(const NumberArgs &args, const HistItem &item, const NumberTable<BYTES> &table,
			NumberBlock &block)
{
	typedef typename MovedKey<BYTES>::type K;
	constexpr int ITEMS = Tuned::KEY_PART_NUMBER_ROWS_PER_THREAD;
	constexpr u32 TILE = ITEMS * KEY_PART_NUMBER_THREADS_PER_BLOCK;
	u32 rows = item.row1 - item.row0;
	uint16_t *out = args.number + item.row0;

	for (u64 base = threadIdx.x; base - threadIdx.x < rows; base += TILE)
	{
		K key[ITEMS];
		u32 at[ITEMS], claims = 0;
		bool lost = false, room;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK < rows)
				key[j] = load_moved(table.rows + base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK < rows &&
				table.find(args.hash, key[j],
						   (u32) base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK, at[j], lost))
				claims |= 1u << j;
		__syncwarp();
		room = number_claims<BYTES, ITEMS>(args, item, block, claims, key, at);
		/* all numbers of the tile are there after the barrier; they never change */
		if (__syncthreads_or(lost || !room))
			return false;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK < rows)
				out[base + j * KEY_PART_NUMBER_THREADS_PER_BLOCK] =
					NumberTable<BYTES>::numbers()[at[j]];
	}
	return true;
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
	{
		block.first = (u32) atomicAdd(&args.counts->groups, (u64) block.used);
		args.first[item.part] = block.first;
		args.ngroups[item.part] = block.used;
	}
	__syncthreads();
	out = (K *) args.groups + block.first;
	for (u32 i = threadIdx.x; i <= NUMBER_SLOTS; i += blockDim.x)
		if (table.entries()[i] != table.free_entry())
			out[table.numbers()[i]] = table.key_at(i);
}

/* Numbers the groups of all partitions.  Blocks take work items in order. */
template <int BYTES>
static __global__ void
__launch_bounds__(KEY_PART_NUMBER_THREADS_PER_BLOCK, KEY_PART_NUMBER_BLOCKS_PER_SM)
	number_groups_kernel(const __grid_constant__ NumberArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	__shared__ NumberBlock block;
	u32 nitems;

	wait_for_predecessor();
	let_successor_start();
	nitems = args.counter[HIST_NITEMS];
	for (;;)
	{
		__syncthreads();
		if (threadIdx.x == 0)
		{
			block.next = atomicAdd(&args.counter[HIST_NEXT], 1u);
			block.used = 0;
		}
		NumberTable<BYTES>::clear();
		__syncthreads();
		if (block.next >= nitems)
			return;

		HistItem item = args.item[block.next];
		NumberTable<BYTES> table = {(const K *) args.keys + item.row0};

		if (!number_item<BYTES>(args, item, table, block))
		{
			if (threadIdx.x == 0)
				atomicAdd(&args.counts->overflows, 1ULL);
			return;
		}
		if (item.split < 0)
			publish_groups<BYTES>(args, item, table, block);
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

/* A call of gpuagg_group_partition. */
struct KeyPlan
{
	int key_bytes;
	int log2_parts;
	int log2_groups; /* of the first of two steps; 0: there is one step */
	PartPlan part;
	u32 *group_cursor;
	void *moved_keys; /* by partition */
	ScatterKeysArgs step[2];
	NumberArgs numbers;
};

/* Returns log2 of the partitions for so many groups, or -1 if they are too many. */
static int
choose_log2_parts(int64_t groups)
{
	int log2 = KEY_PART_MIN_LOG2;

	while (log2 <= KEY_PART_MAX_LOG2 && (int64_t) KEY_PART_GOOD_GROUPS << log2 < groups)
		log2++;
	return log2 <= KEY_PART_MAX_LOG2 ? log2 : -1;
}

/* Takes workspace for the columns of both steps. */
static void
plan_columns(GpuaggKeyParts *parts, KeyPlan &plan, Workspace &ws)
{
	PartColumns &last = plan.step[1].columns, &first = plan.step[0].columns;
	size_t n = parts->nrows;

	last = first = PartColumns();
	parts->row = nullptr;
	plan.step[0].stage_bytes = plan.step[1].stage_bytes = 4;
	for (int c = 0; c < parts->nmoved; c++)
	{
		int bytes = hist_type_bytes(parts->moved[c].type);

		parts->to[c] = ws.take<char>(n * bytes);
		first.bytes[c] = last.bytes[c] = bytes;
		first.from[c] = parts->moved[c].values;
		first.to[c] = last.to[c] = parts->to[c];
		if (plan.log2_groups > 0)
			last.from[c] = first.to[c] = ws.take<char>(n * bytes);
		plan.step[0].stage_bytes = plan.step[1].stage_bytes = max(plan.step[0].stage_bytes, bytes);
	}
	first.n = last.n = parts->nmoved;
	if (!parts->numbers)
		return;
	parts->row = plan.step[0].row = ws.take<u32>(n);
	if (plan.log2_groups > 0)
	{
		/* numbers of rows are the only column of the second step */
		plan.step[0].row = ws.take<u32>(n);
		last.n = 1;
		last.bytes[0] = sizeof(u32);
		last.from[0] = plan.step[0].row;
		last.to[0] = parts->row;
	}
}

/* Takes workspace for the tables of split partitions. */
static void
plan_split_tables(KeyPlan &plan, Workspace &ws)
{
	NumberArgs &numbers = plan.numbers;
	size_t slots = gpuagg_group_slot_bytes(plan.key_bytes, KEY_PART_MOST_GROUPS);

	numbers.split_slot_bytes = (slots + 255) / 256 * 256;
	numbers.split_slots = ws.take<char>(plan.part.max_splits * numbers.split_slot_bytes);
	numbers.split_keys =
		ws.take<char>((size_t) plan.part.max_splits * KEY_PART_MOST_GROUPS * plan.key_bytes);
	numbers.split_counters = ws.take<GpuaggGroupCounters>(plan.part.max_splits);
}

/* Sets the arguments of the steps, apart from columns. */
static void
plan_steps(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
		   const GpuaggKeyParts *parts, void *between, KeyPlan &plan)
{
	bool two = plan.log2_groups > 0;
	u32 parts_of_group = 1u << (plan.log2_parts - plan.log2_groups);

	for (ScatterKeysArgs &step : plan.step)
	{
		step.hash = gpuagg_hash_key(table->seed);
		step.nrows = (u32) parts->nrows;
		step.shift = 32 - plan.log2_parts;
		step.parts = plan.part.parts;
		step.cursor = plan.part.cursor;
		step.start = plan.part.start;
		step.rows = plan.part.counter + HIST_NROWS;
	}
	plan.step[0].keys = keys;
	plan.step[0].filter = filter;
	plan.step[0].to = two ? between : plan.moved_keys;
	if (!two)
		return;
	plan.step[0].shift = 32 - plan.log2_groups;
	plan.step[0].parts = 1u << plan.log2_groups;
	plan.step[0].cursor = plan.group_cursor;
	plan.step[1].keys = between;
	plan.step[1].to = plan.moved_keys;
	plan.step[1].parts = parts_of_group;
	plan.step[1].groups = 1u << plan.log2_groups;
}

/* Plans a call and divides its workspace. */
static void
plan_keys(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
		  GpuaggKeyParts *parts, const DeviceFacts &facts, KeyPlan &plan, Workspace &ws)
{
	size_t n = parts->nrows, key_bytes = table->key_bytes;
	void *between = nullptr;

	plan.key_bytes = table->key_bytes;
	plan.log2_groups =
		plan.log2_parts <= KEY_PART_MAX_LOG2_IN_ONE_STEP ? 0 : plan.log2_parts / 2;
	plan.part.parts = 1u << plan.log2_parts;
	plan.part.start = ws.take<u32>(plan.part.parts);
	hist_plan_items(parts->nrows, facts, plan.part, ws);
	plan.part.split_part = ws.take<u32>(plan.part.max_splits);
	plan.moved_keys = ws.take<char>(n * key_bytes);
	parts->keys = ws.take<char>(n * key_bytes);
	if (plan.log2_groups > 0)
	{
		plan.group_cursor = ws.take<u32>((size_t) 1 << plan.log2_groups);
		/* the keys between the steps are not needed when the groups are written */
		between = parts->keys;
	}
	plan_columns(parts, plan, ws);
	parts->counts = ws.take<GpuaggKeyCounts>(1);
	parts->bins = ws.take<int32_t>(n);
	parts->first = ws.take<u32>(plan.part.parts);
	parts->ngroups = ws.take<u32>(plan.part.parts);
	parts->number = ws.take<uint16_t>(n);
	plan_split_tables(plan, ws);
	plan_steps(table, keys, filter, parts, between, plan);
	parts->dense = 0;
	parts->nparts = (int) plan.part.parts;
	parts->most_groups = KEY_PART_MOST_GROUPS;
	parts->most_splits = (int) plan.part.max_splits;
	parts->items = plan.part.item;
	parts->item_counters = plan.part.counter;
	parts->split_done = plan.part.split_done;
	parts->split_items = plan.part.split_items;
	plan.numbers.keys = plan.moved_keys;
	plan.numbers.number = parts->number;
	plan.numbers.hash = gpuagg_hash_key(table->seed);
	plan.numbers.log2_parts = plan.log2_parts;
	plan.numbers.item = plan.part.item;
	plan.numbers.counter = plan.part.counter;
	plan.numbers.split_part = plan.part.split_part;
	plan.numbers.first = parts->first;
	plan.numbers.ngroups = parts->ngroups;
	plan.numbers.groups = parts->keys;
	plan.numbers.counts = parts->counts;
}

/* Counts the rows of each partition, and makes the work items. */
template <int BYTES>
static GpuaggCudaStatus
launch_count_keys(const KeyPlan &plan, const DeviceFacts &facts, cudaStream_t stream)
{
	const ScatterKeysArgs &step = plan.step[0];
	CountKeysArgs args = {step.keys,      step.filter,
						  step.nrows,     step.hash,
						  32 - plan.log2_parts, plan.part.parts,
						  plan.part.start};

	CUDA_TRY(cudaMemsetAsync(args.count, 0, args.parts * sizeof(u32), stream));
	CUDA_TRY(allow_shared(count_keys_kernel<BYTES>, facts));
	CUDA_TRY(launch_early(count_keys_kernel<BYTES>, facts.sms, KEY_PART_COUNT_THREADS_PER_BLOCK,
						  args.parts * sizeof(u32), facts, stream, args));
	return hist_launch_plan_items(plan.part, facts, stream);
}

/* Queues scatter_keys_kernel for one step, in the instance for the widths of its columns. */
template <int BYTES, bool SECOND>
static GpuaggCudaStatus
launch_scatter_keys(const ScatterKeysArgs &step, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t bytes = part_tile_bytes(BYTES, step.stage_bytes, step.parts);
	int width = step.columns.n ? step.columns.bytes[0] : 4;
	bool one = step.columns.n <= 1;
	void (*scatter)(ScatterKeysArgs);

	for (int c = 1; c < step.columns.n; c++)
		if (step.columns.bytes[c] != width)
			width = 0;
	scatter = width == 4 ? (one ? scatter_keys_kernel<BYTES, 4, false, SECOND> :
								  scatter_keys_kernel<BYTES, 4, true, SECOND>) :
		width == 8       ? (one ? scatter_keys_kernel<BYTES, 8, false, SECOND> :
								  scatter_keys_kernel<BYTES, 8, true, SECOND>) :
						   scatter_keys_kernel<BYTES, 0, true, SECOND>;
	CUDA_TRY(allow_shared(scatter, facts));
	CUDA_TRY(launch_early(scatter, facts.sms, PARTITION_THREADS_PER_BLOCK, bytes, facts, stream,
						  step));
	return GPUAGG_CUDA_OK;
}

/* Queues all kernels of a call. */
template <int BYTES>
static GpuaggCudaStatus
launch_partition_keys(const KeyPlan &plan, const DeviceFacts &facts, cudaStream_t stream)
{
	const NumberArgs &numbers = plan.numbers;
	int blocks = KEY_PART_NUMBER_BLOCKS_PER_SM * facts.sms;

	CUDA_TRY(cudaMemsetAsync(numbers.counts, 0, sizeof(*numbers.counts), stream));
	STATUS_TRY(launch_count_keys<BYTES>(plan, facts, stream));
	if (plan.log2_groups > 0)
		/* a group starts where its first partition does */
		CUDA_TRY(cudaMemcpy2DAsync(plan.group_cursor, sizeof(u32), plan.part.start,
								   sizeof(u32) << (plan.log2_parts - plan.log2_groups),
								   sizeof(u32), (size_t) 1 << plan.log2_groups,
								   cudaMemcpyDeviceToDevice, stream));
	STATUS_TRY((launch_scatter_keys<BYTES, false>(plan.step[0], facts, stream)));
	if (plan.log2_groups > 0)
		STATUS_TRY((launch_scatter_keys<BYTES, true>(plan.step[1], facts, stream)));
	CUDA_TRY(launch_early(clear_split_tables_kernel, facts.sms, 512, 0, facts, stream, numbers));
	CUDA_TRY(allow_shared(number_groups_kernel<BYTES>, facts));
	CUDA_TRY(launch_early(number_groups_kernel<BYTES>, blocks, KEY_PART_NUMBER_THREADS_PER_BLOCK,
						  NumberTable<BYTES>::bytes(), facts, stream, numbers));
	CUDA_TRY(launch_early(gather_split_groups_kernel<BYTES>, facts.sms, 512, 0, facts, stream,
						  numbers));
	return GPUAGG_CUDA_OK;
}

/* Returns INVALID or UNSUPPORTED for rows that cannot be partitioned. */
static GpuaggCudaStatus
check_key_parts(const GpuaggGroupTable *table, const GpuaggKeyParts *parts)
{
	if (table->key_bytes != 4 && table->key_bytes != 8 && table->key_bytes != 16)
		return GPUAGG_CUDA_INVALID;
	if (parts->nrows < 0 || parts->nrows > UINT32_MAX || parts->nmoved < 0 ||
		parts->nmoved > GPUAGG_MAX_MOVED || (parts->numbers && parts->nmoved > 0))
		return GPUAGG_CUDA_INVALID;
	for (int c = 0; c < parts->nmoved; c++)
		if (parts->moved[c].type == GPUAGG_VALUE_NATIVE || parts->moved[c].values == nullptr)
			return GPUAGG_CUDA_INVALID;
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_partition(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
					   GpuaggKeyParts *parts, void *workspace, size_t *workspace_bytes,
					   gpuagg_stream stream)
{
	const DeviceFacts *facts;
	KeyPlan plan = KeyPlan();
	Workspace ws(workspace);

	STATUS_TRY(check_key_parts(table, parts));
	STATUS_TRY(gpuagg_device_facts(&facts));
	plan.log2_parts = choose_log2_parts(min(parts->groups, parts->nrows));
	if (plan.log2_parts < 0)
		return GPUAGG_CUDA_UNSUPPORTED;
	plan_keys(table, keys, filter, parts, *facts, plan, ws);
	for (const ScatterKeysArgs &step : plan.step)
		if (part_tile_bytes(table->key_bytes, step.stage_bytes, step.parts) + SHARED_RESERVE * 4 >
			facts->smem_per_block)
			return GPUAGG_CUDA_UNSUPPORTED;
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (table->key_bytes == 4)
		return launch_partition_keys<4>(plan, *facts, stream);
	if (table->key_bytes == 8)
		return launch_partition_keys<8>(plan, *facts, stream);
	return launch_partition_keys<16>(plan, *facts, stream);
}

/* Sets the counters of a table. */
static __global__ void
set_groups_kernel(GpuaggGroupCounters *counters, u64 groups)
{
	*counters = {groups, 0, 0};
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_adopt(const GpuaggGroupTable *table, GpuaggKeyParts *parts, int64_t groups,
				   gpuagg_stream stream)
{
	if (!is_table_valid(table) || groups < 0 || groups > table->capacity)
		return GPUAGG_CUDA_INVALID;
	CUDA_TRY(cudaMemcpyAsync(table->keys, parts->keys, (size_t) groups * table->key_bytes,
							 cudaMemcpyDeviceToDevice, stream));
	set_groups_kernel<<<1, 1, 0, stream>>>(table->counters, (u64) groups);
	CUDA_TRY_LAUNCH("set_groups_kernel");
	parts->dense = 1;
	return GPUAGG_CUDA_OK;
}
