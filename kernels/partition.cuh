/*
 * partition.cuh
 *	  Moving a tile of rows to partitions, by bin range (hist_partition.cu).
 *
 * A block counts its tile's rows of each partition, which numbers them;
 * reserves a run in every partition with one atomic addition each; sorts the
 * rows by partition in shared memory; and writes the runs whole.  What decides
 * the partition and the first column go together, further columns one after
 * the other.  A column's values are loaded before the rows are counted, and
 * the next tile's keys before this one's rows are written, so that neither is
 * waited for.  The order of rows inside a partition is not fixed.
 */
#ifndef GPUAGG_PARTITION_CUH
#define GPUAGG_PARTITION_CUH

#include "hist.cuh"

/*
 * The larger the tile, the longer the runs, and the fewer lines of memory are
 * written in two parts.
 */
#define PARTITION_TILE_ROWS (PARTITION_THREADS_PER_BLOCK * PARTITION_ROWS_PER_THREAD)

/* 16 bytes aligned to 8. */
struct Pair
{
	u64 lo, hi;
};

/*
 * A tile in shared memory.  A function takes addresses from it where it needs
 * them: functions that are not inlined would take addresses passed to them for
 * those of any memory.
 */
struct PartTile
{
	u32 parts;
	u32 key_bytes;   /* of what decides the partition */
	u32 stage_bytes; /* of the widest other column */

	/* the keys in the order of partitions */
	__device__ __forceinline__ char *
	keys() const
	{
		extern __shared__ __align__(16) char part_memory[];

		return part_memory;
	}
	/* another column in that order */
	__device__ __forceinline__ char *
	stage() const
	{
		return keys() + PARTITION_TILE_ROWS * key_bytes;
	}
	/* rows, then first place of a partition */
	__device__ __forceinline__ u32 *
	count() const
	{
		return (u32 *) (stage() + PARTITION_TILE_ROWS * stage_bytes);
	}
	/* from places to rows in device memory */
	__device__ __forceinline__ u32 *
	delta() const
	{
		return count() + parts;
	}
	/* first and last partition that got a row, where a walk over all would take long */
	__device__ __forceinline__ u32 *
	range() const
	{
		return delta() + parts;
	}
	/* the partition of each place */
	__device__ __forceinline__ uint16_t *
	part() const
	{
		return (uint16_t *) (range() + 2);
	}
};

/* Shared memory of a tile. */
static inline __host__ __device__ size_t
part_tile_bytes(int key_bytes, int stage_bytes, size_t parts)
{
	return (size_t) PARTITION_TILE_ROWS * (key_bytes + stage_bytes + sizeof(uint16_t)) +
		2 * (parts + 1) * sizeof(u32);
}

/*
 * Inclusive prefix sum over the block; the sum of all goes to *total.  A caller
 * uses `shared` again only past another barrier.
 */
static __device__ __forceinline__ u32
block_scan(u32 v, u32 *shared, u32 *total)
{
	u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, sums;

	v = warp_scan(v);
	if (lane == 31)
		shared[warp] = v;
	__syncthreads();
	/* every warp adds up the warps: one barrier less than one warp for all */
	sums = warp_scan(lane < warps ? shared[lane] : 0);
	*total = __shfl_sync(~0u, sums, 31);
	sums = __shfl_sync(~0u, sums, warp ? warp - 1 : 0);
	return v + (warp ? sums : 0);
}

/* Ahead of a block's first tile; part_write does it for the next one. */
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

/* What a tile's rows got: partitions [from, to) have some of `total` rows. */
struct PartRuns
{
	u32 total;
	u32 from, to;
};

/*
 * After every row of the tile was counted: first places of the partitions, and
 * their distance to rows in device memory.  least and most are of the thread's
 * own partitions.
 */
static __device__ __forceinline__ PartRuns
part_reserve(const PartTile &t, u32 *cursor, u32 least, u32 most)
{
	__shared__ u32 scan[32];
	u32 *count = t.count(), *delta = t.delta();
	PartRuns runs = {0, 0, t.parts};

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
		runs.from = min(t.range()[0], t.parts);
		runs.to = t.range()[1] + 1;
	}

	u32 n = runs.to > runs.from ? runs.to - runs.from : 0,
		each = (n + PARTITION_THREADS_PER_BLOCK - 1) / PARTITION_THREADS_PER_BLOCK,
		from = runs.from + min(threadIdx.x * each, n),
		to = runs.from + min((threadIdx.x + 1) * each, n), sum = 0, before;

	for (u32 p = from; p < to; p++)
		sum += count[p];
	before = block_scan(sum, scan, &runs.total) - sum;
	for (u32 p = from; p < to; p++)
	{
		u32 c = count[p];

		count[p] = before;
		if (c)
			delta[p] = atomicAdd(&cursor[p], c) - before;
		before += c;
	}
	__syncthreads();
	return runs;
}

/* Values of a column for the tile's rows that take part: a bit of `ok` an item. */
template <typename T>
static __device__ __forceinline__ void
part_load(u32 ok, const void *from, u64 base, T (&v)[PARTITION_ROWS_PER_THREAD])
{
	const T *in = (const T *) from + base + threadIdx.x;

#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
		if (ok >> j & 1)
			v[j] = in[j * PARTITION_THREADS_PER_BLOCK];
}

/* After part_reserve: ranks within their partition, which is above them, to places in the stage. */
static __device__ __forceinline__ void
part_places(const PartTile &t, u32 ok, u32 (&place)[PARTITION_ROWS_PER_THREAD])
{
#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
		if (ok >> j & 1)
		{
			u32 p = place[j] >> 16;

			place[j] = (place[j] & 0xffff) + t.count()[p];
			t.part()[place[j]] = (uint16_t) p;
		}
}

template <typename T>
static __device__ __forceinline__ void
part_stage(char *stage, u32 ok, const u32 (&place)[PARTITION_ROWS_PER_THREAD],
		   const T (&v)[PARTITION_ROWS_PER_THREAD])
{
	T *staged = (T *) stage;

#pragma unroll
	for (int j = 0; j < PARTITION_ROWS_PER_THREAD; j++)
		if (ok >> j & 1)
			staged[place[j]] = v[j];
}

/* A put for part_write: keys in a column of their own. */
template <typename K> struct PutKey
{
	K *out;

	__device__ __forceinline__ void
	operator()(u32 row, const K &key) const
	{
		out[row] = key;
	}
};

/*
 * What lies in the stages, to device memory: keys by put(row, key), and another
 * column, unless out is NULL.  Rows past `last` go there.  Leaves all but the
 * partitions of places free.
 */
template <typename K, typename T, typename Put>
static __device__ __forceinline__ void
part_write(const PartTile &t, const PartRuns &runs, const Put &put, T *out, u32 last = ~0u)
{
	/* as many at a time as registers allow */
	constexpr int GROUP = sizeof(K) + sizeof(T) <= 8 ? 8 : sizeof(K) + sizeof(T) <= 12 ? 4 : 2;
	const K *keys = (const K *) t.keys();
	const T *staged = (const T *) t.stage();
	const uint16_t *part = t.part();
	const u32 *delta = t.delta();

	__syncthreads();
#pragma unroll
	for (int h = 0; h < PARTITION_ROWS_PER_THREAD; h += GROUP)
	{
		K k[GROUP];
		T v[GROUP];
		u32 to[GROUP];

#pragma unroll
		for (int j = 0; j < GROUP; j++)
		{
			u32 i = (h + j) * PARTITION_THREADS_PER_BLOCK + threadIdx.x;

			if (i < runs.total)
			{
				to[j] = min(delta[part[i]] + i, last);
				k[j] = keys[i];
				if (out)
					v[j] = staged[i];
			}
		}
#pragma unroll
		for (int j = 0; j < GROUP; j++)
			if ((h + j) * PARTITION_THREADS_PER_BLOCK + threadIdx.x < runs.total)
			{
				put(to[j], k[j]);
				if (out)
					out[to[j]] = v[j];
			}
	}
	/* first places were read before the barrier */
	for (u32 p = runs.from + threadIdx.x; p < runs.to; p += PARTITION_THREADS_PER_BLOCK)
		t.count()[p] = 0;
	if (threadIdx.x == 0)
		t.range()[0] = ~0u, t.range()[1] = 0;
	__syncthreads();
}

/* A further column through the stage. */
template <typename T>
static __device__ __forceinline__ void
part_move(const PartTile &t, u32 total, u32 ok, const u32 (&place)[PARTITION_ROWS_PER_THREAD],
		  const void *from, u64 base, void *to)
{
	constexpr int GROUP = sizeof(T) <= 8 ? 8 : 4;
	const T *in = (const T *) from + base + threadIdx.x;
	T *staged = (T *) t.stage(), *out = (T *) to;

#pragma unroll
	for (int h = 0; h < PARTITION_ROWS_PER_THREAD; h += GROUP)
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
	for (int h = 0; h < PARTITION_ROWS_PER_THREAD; h += GROUP)
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
 * BYTES: the width of all columns, or 0 for any.  Code for every width at a
 * time has too few registers, so the widths that matter have their own.
 */
template <int BYTES>
static __device__ __forceinline__ void
part_move_column(const PartTile &t, u32 total, u32 ok,
				 const u32 (&place)[PARTITION_ROWS_PER_THREAD], const void *from, u64 base,
				 void *out, int bytes)
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
