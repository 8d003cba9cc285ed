/*
 * partition.cuh
 *	  Moves a tile of rows to partitions by bin range (hist_partition.cu).
 *
 * A block takes these steps:
 * 1. It counts the tile's rows of each partition.  The count before each row is the row's rank.
 * 2. It reserves room in every partition that has rows, with one atomic addition each.
 * 3. It sorts the rows by partition in shared memory (the stages).
 * 4. It writes the stages, so that rows of one partition are written together.
 *
 * The keys (bins, which decide the partition) and the first column are written together, further
 * columns serially.  The column is loaded before the rows are counted, and the keys of the next
 * tile before this one is written, so that neither load is waited for.  The order of rows within a
 * partition is not fixed.
 */
#ifndef GPUAGG_PARTITION_CUH
#define GPUAGG_PARTITION_CUH

#include "hist.cuh"

/* Rows of a tile.  A larger tile has more rows for each partition, which are written together. */
#define PARTITION_TILE_ROWS (PARTITION_THREADS_PER_BLOCK * PARTITION_ROWS_PER_THREAD)

/* 16 bytes aligned to 8. */
struct Pair
{
	u64 lo, hi;
};

/*
 * The layout of a tile in shared memory.  Functions get addresses from it where they need them,
 * because the compiler knows then that the addresses are in shared memory.
 */
struct PartTile
{
	u32 parts;
	u32 key_bytes;                  /* bytes of a key, which decides the partition */
	u32 stage_bytes;                /* bytes of a value of the widest column */
	u32 rows = PARTITION_TILE_ROWS; /* rows of a tile */

	/* Returns the stage of the keys, which are in the order of partitions. */
	__device__ __forceinline__ char *
	keys() const
	{
		extern __shared__ __align__(16) char part_memory[];

		return part_memory;
	}
	/* Returns the stage of a column, in the same order. */
	__device__ __forceinline__ char *
	stage() const
	{
		return keys() + rows * key_bytes;
	}
	/*
	 * Returns the number of rows of each partition; after part_reserve, its first place in the
	 * stage.
	 */
	__device__ __forceinline__ u32 *
	count() const
	{
		return (u32 *) (stage() + rows * stage_bytes);
	}
	/*
	 * Returns deltas: the row in device memory is a place in the stage plus its partition's delta.
	 */
	__device__ __forceinline__ u32 *
	delta() const
	{
		return count() + parts;
	}
	/*
	 * Returns the first and last partition with a row, if there are more partitions than threads.
	 */
	__device__ __forceinline__ u32 *
	range() const
	{
		return delta() + parts;
	}
	/* Returns the partition of each place in the stage. */
	__device__ __forceinline__ uint16_t *
	part() const
	{
		return (uint16_t *) (range() + 2);
	}
};

/* Returns the bytes of shared memory of a tile. */
static inline __host__ __device__ size_t
part_tile_bytes(int key_bytes, int stage_bytes, size_t parts, size_t rows = PARTITION_TILE_ROWS)
{
	return rows * (key_bytes + stage_bytes + sizeof(uint16_t)) + 2 * (parts + 1) * sizeof(u32);
}

/*
 * Returns the inclusive prefix sum over the block, and sets *total to the sum.  `shared` has 32
 * words; the caller may change them only after another barrier.
 */
static __device__ __forceinline__ u32
block_scan(u32 v, u32 *shared, u32 *total)
{
	u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, sums;

	v = warp_scan(v);
	if (lane == 31)
		shared[warp] = v;
	__syncthreads();
	/* every warp adds up the sums of the warps, which saves a barrier */
	sums = warp_scan(lane < warps ? shared[lane] : 0);
	*total = __shfl_sync(~0u, sums, 31);
	sums = __shfl_sync(~0u, sums, warp ? warp - 1 : 0);
	return v + (warp ? sums : 0);
}

/* Clears the counts before a block's first tile; part_write clears them for the next one. */
static __device__ __forceinline__ void
part_clear(const PartTile &t)
{
	u32 *count = t.count();

	for (u32 p = threadIdx.x; p < t.parts; p += PARTITION_THREADS_PER_BLOCK)
		count[p] = 0;
	if (threadIdx.x == 0)
		t.range()[0] = ~0u, t.range()[1] = 0;
	__syncthreads();
}

/* The rows of a tile: `total` of them, in partitions from `from` up to, but not including, `to`. */
struct TilePartitions
{
	u32 total;
	u32 from, to;
};

/*
 * Reserves room in the partitions after all rows were counted.  Sets count() to the first places in
 * the stage, and delta().  Returns which partitions have rows. cursor: [partition] the row where
 * the next rows are appended. `least` and `most` are the first and last partition of this thread's
 * rows.
 */
static __device__ __forceinline__ TilePartitions
part_reserve(const PartTile &t, u32 *cursor, u32 least, u32 most)
{
	__shared__ u32 scan[32];
	u32 *count = t.count(), *delta = t.delta();
	TilePartitions used = {0, 0, t.parts};

	if (t.parts > PARTITION_THREADS_PER_BLOCK)
	{
		least = __reduce_min_sync(~0u, least);
		most = __reduce_max_sync(~0u, most);
		if (threadIdx.x % 32 == 0)
		{
			atomicMin(&t.range()[0], least);
			atomicMax(&t.range()[1], most);
		}
	}
	__syncthreads();
	if (t.parts > PARTITION_THREADS_PER_BLOCK)
	{
		used.from = min(t.range()[0], t.parts);
		used.to = t.range()[1] + 1;
	}

	u32 n = used.to > used.from ? used.to - used.from : 0,
		each = (n + PARTITION_THREADS_PER_BLOCK - 1) / PARTITION_THREADS_PER_BLOCK,
		from = used.from + min(threadIdx.x * each, n),
		to = used.from + min((threadIdx.x + 1) * each, n), sum = 0, before;

	for (u32 p = from; p < to; p++)
		sum += count[p];
	before = block_scan(sum, scan, &used.total) - sum;
	for (u32 p = from; p < to; p++)
	{
		u32 c = count[p];

		count[p] = before;
		if (c)
			delta[p] = atomicAdd(&cursor[p], c) - before;
		before += c;
	}
	__syncthreads();
	return used;
}

/*
 * Loads values of the column `from` for the thread's rows whose bits are set in `ok`. base: the
 * tile's first row.
 */
template <typename T, int ITEMS>
static __device__ __forceinline__ void
part_load(u32 ok, const void *from, u64 base, T (&v)[ITEMS])
{
	const T *in = (const T *) from + base + threadIdx.x;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (ok >> j & 1)
			v[j] = in[j * PARTITION_THREADS_PER_BLOCK];
}

/* Stores the thread's values in a stage, v[j] at place[j] for each bit j in `ok`. */
template <typename T, int ITEMS>
static __device__ __forceinline__ void
part_stage(char *stage, u32 ok, const u32 (&place)[ITEMS], const T (&v)[ITEMS])
{
	T *staged = (T *) stage;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (ok >> j & 1)
			staged[place[j]] = v[j];
}

/*
 * Writes the stages to device memory: keys by put(row, key), and the column to `out` unless that is
 * NULL.  Rows past `last` are written to `last`.  Clears the counts for the next tile.  part() and
 * delta() stay valid.
 */
template <typename K, typename T, int ITEMS = PARTITION_ROWS_PER_THREAD, typename Put>
static __device__ __forceinline__ void
part_write(const PartTile &t, const TilePartitions &used, const Put &put, T *out, u32 last = ~0u)
{
	/* rows whose loads are in flight together, as registers allow */
	constexpr int GROUP = sizeof(K) + sizeof(T) <= 8 ? 8 : sizeof(K) + sizeof(T) <= 12 ? 4 : 2;
	const K *keys = (const K *) t.keys();
	const T *staged = (const T *) t.stage();
	const uint16_t *part = t.part();
	const u32 *delta = t.delta();

	__syncthreads();
#pragma unroll
	for (int h = 0; h < ITEMS; h += GROUP)
	{
		K k[GROUP];
		T v[GROUP];
		u32 to[GROUP];

#pragma unroll
		for (int j = 0; j < GROUP; j++)
		{
			u32 i = (h + j) * PARTITION_THREADS_PER_BLOCK + threadIdx.x;

			if (i < used.total)
			{
				to[j] = min(delta[part[i]] + i, last);
				k[j] = keys[i];
				if (out)
					v[j] = staged[i];
			}
		}
#pragma unroll
		for (int j = 0; j < GROUP; j++)
			if ((h + j) * PARTITION_THREADS_PER_BLOCK + threadIdx.x < used.total)
			{
				put(to[j], k[j]);
				if (out)
					out[to[j]] = v[j];
			}
	}
	/* the first places are not read after the barrier */
	for (u32 p = used.from + threadIdx.x; p < used.to; p += PARTITION_THREADS_PER_BLOCK)
		t.count()[p] = 0;
	if (threadIdx.x == 0)
		t.range()[0] = ~0u, t.range()[1] = 0;
	__syncthreads();
}

/* Moves a further column from `from` to `to` through the stage, after part_write. */
template <typename T, int ITEMS>
static __device__ __forceinline__ void
part_move(const PartTile &t, u32 total, u32 ok, const u32 (&place)[ITEMS], const void *from,
		  u64 base, void *to)
{
	constexpr int GROUP = sizeof(T) <= 8 ? 8 : 4;
	const T *in = (const T *) from + base + threadIdx.x;
	T *staged = (T *) t.stage(), *out = (T *) to;

#pragma unroll
	for (int h = 0; h < ITEMS; h += GROUP)
	{
		T v[GROUP];

#pragma unroll
		for (int j = 0; j < GROUP; j++)
			if (ok >> (h + j) & 1)
				v[j] = in[(h + j) * PARTITION_THREADS_PER_BLOCK];
#pragma unroll
		for (int j = 0; j < GROUP; j++)
			if (ok >> (h + j) & 1)
				staged[place[h + j]] = v[j];
	}
	__syncthreads();
#pragma unroll
	for (int h = 0; h < ITEMS; h += GROUP)
	{
		T w[GROUP];
		u32 at[GROUP];

#pragma unroll
		for (int j = 0; j < GROUP; j++)
		{
			u32 i = (h + j) * PARTITION_THREADS_PER_BLOCK + threadIdx.x;

			if (i < total)
			{
				at[j] = t.delta()[t.part()[i]] + i;
				w[j] = staged[i];
			}
		}
#pragma unroll
		for (int j = 0; j < GROUP; j++)
			if ((h + j) * PARTITION_THREADS_PER_BLOCK + threadIdx.x < total)
				out[at[j]] = w[j];
	}
	__syncthreads();
}

/*
 * Moves a further column of values of `bytes` bytes.  BYTES is the width of all columns, or 0 if it
 * differs.  Code for all widths needs too many registers, so common widths have kernels of their
 * own.
 */
template <int BYTES, int ITEMS>
static __device__ __forceinline__ void
part_move_column(const PartTile &t, u32 total, u32 ok, const u32 (&place)[ITEMS], const void *from,
				 u64 base, void *out, int bytes)
{
	if constexpr (BYTES == 4)
		part_move<u32>(t, total, ok, place, from, base, out);
	else if constexpr (BYTES == 8)
		part_move<u64>(t, total, ok, place, from, base, out);
	else
		switch (bytes)
		{
			case 1:
				part_move<uint8_t>(t, total, ok, place, from, base, out);
				break;
			case 2:
				part_move<uint16_t>(t, total, ok, place, from, base, out);
				break;
			case 4:
				part_move<u32>(t, total, ok, place, from, base, out);
				break;
			case 8:
				part_move<u64>(t, total, ok, place, from, base, out);
				break;
			default:
				part_move<Pair>(t, total, ok, place, from, base, out);
		}
}

#endif /* GPUAGG_PARTITION_CUH */
