/*
 * partition.cuh
 *	  Moving a tile of rows to partitions: shared by the partition of rows by bin
 *	  range (hist_partition.cu) and that of keys by hash (group.cu).
 *
 * A block counts its tile's rows of each partition, which numbers them;
 * reserves a run in every partition with one atomic addition each; sorts the
 * rows by partition in shared memory; and writes the runs whole.  Columns go
 * one after the other through the same memory.  The order of rows inside a
 * partition is not fixed.
 */
#ifndef GPUAGG_PARTITION_CUH
#define GPUAGG_PARTITION_CUH

#include "hist.cuh"

/*
 * Two blocks run on a multiprocessor, so that one computes while the other
 * waits.  More rows of a thread would not stay in registers.
 */
#define PART_THREADS 512
#define PART_ITEMS 8
#define PART_TILE (PART_THREADS * PART_ITEMS)

/* No place in the tile: the row takes no part. */
#define UNPLACED 0xffffu

/* 16 bytes aligned to 8. */
struct Pair
{
	u64			lo,
				hi;
};

/*
 * A tile in shared memory.  A function asks it for addresses where it needs
 * them: functions that are not inlined would take addresses passed to them for
 * those of any memory.
 */
struct PartTile
{
	u32			parts;
	u32			stage_bytes;	/* of the widest column */

	/* a column in the order of partitions */
	__device__ __forceinline__ char *
	stage() const
	{
		extern __shared__ __align__(16) char part_memory[];

		return part_memory;
	}
	/* rows, then first place of a partition */
	__device__ __forceinline__ u32 *count() const { return (u32 *) (stage() + PART_TILE * stage_bytes); }
	/* from places to rows in device memory */
	__device__ __forceinline__ u32 *delta() const { return count() + parts; }
	/* the partition of each place */
	__device__ __forceinline__ uint16_t *part() const { return (uint16_t *) (delta() + parts); }
};

/* Shared memory of a tile whose columns have up to stage_bytes. */
static inline __host__ __device__ size_t
part_tile_bytes(int stage_bytes, size_t parts)
{
	return (size_t) PART_TILE * (stage_bytes + sizeof(uint16_t)) + 2 * parts * sizeof(u32);
}

/* Inclusive prefix sum over the block; the sum of all is left in shared[31]. */
static __device__ __forceinline__ u32
block_scan(u32 v, u32 *shared)
{
	u32			lane = threadIdx.x % 32,
				warp = threadIdx.x / 32;

	for (int d = 1; d < 32; d *= 2)
	{
		u32			t = __shfl_up_sync(~0u, v, d);

		if (lane >= (u32) d)
			v += t;
	}
	__syncthreads();
	if (lane == 31)
		shared[warp] = v;
	__syncthreads();
	if (warp == 0)
	{
		u32			t = lane < blockDim.x / 32 ? shared[lane] : 0;

		for (int d = 1; d < 32; d *= 2)
		{
			u32			u = __shfl_up_sync(~0u, t, d);

			if (lane >= (u32) d)
				t += u;
		}
		shared[lane] = t;
	}
	__syncthreads();
	return v + (warp ? shared[warp - 1] : 0);
}

static __device__ __forceinline__ void
part_clear(const PartTile &t)
{
	u32		   *count = t.count();

	for (u32 p = threadIdx.x; p < t.parts; p += PART_THREADS)
		count[p] = 0;
	__syncthreads();
}

/*
 * After every row of the tile was counted: first places of the partitions, and
 * their distance to rows in device memory.  Returns the rows that take part.
 */
static __device__ __forceinline__ u32
part_reserve(const PartTile &t, u32 *cursor)
{
	__shared__ u32 scan[32];
	u32		   *count = t.count(),
			   *delta = t.delta();
	u32			each = (t.parts + PART_THREADS - 1) / PART_THREADS,
				from = min(threadIdx.x * each, t.parts),
				to = min(from + each, t.parts),
				sum = 0,
				before,
				total;

	__syncthreads();
	for (u32 p = from; p < to; p++)
		sum += count[p];
	before = block_scan(sum, scan) - sum;
	total = scan[31];
	for (u32 p = from; p < to; p++)
	{
		u32			c = count[p];

		count[p] = before;
		if (c)
			delta[p] = atomicAdd(&cursor[p], c) - before;
		before += c;
	}
	__syncthreads();
	return total;
}

/* What lies in the stage, to device memory; leaves the stage free. */
template <typename T> static __device__ __forceinline__ void
part_write(const PartTile &t, u32 total, T *out)
{
	/* as many at a time as registers allow */
	constexpr int GROUP = sizeof(T) < 8 ? PART_ITEMS : PART_ITEMS / 2;
	const T    *staged = (const T *) t.stage();
	const uint16_t *part = t.part();
	const u32  *delta = t.delta();

	__syncthreads();
#pragma unroll
	for (int h = 0; h < PART_ITEMS; h += GROUP)
	{
		T			v[GROUP];
		u32			to[GROUP];

#pragma unroll
		for (int j = 0; j < GROUP; j++)
		{
			u32			i = (h + j) * PART_THREADS + threadIdx.x;

			if (i < total)
			{
				v[j] = staged[i];
				to[j] = delta[part[i]] + i;
			}
		}
#pragma unroll
		for (int j = 0; j < GROUP; j++)
			if ((h + j) * PART_THREADS + threadIdx.x < total)
				out[to[j]] = v[j];
	}
	__syncthreads();
}

/* A column through the stage. */
template <typename T> static __device__ __forceinline__ void
part_move(const PartTile &t, u32 total, const u32 (&place)[PART_ITEMS], const void *from, u64 base, void *out)
{
	const T    *in = (const T *) from + base + threadIdx.x;
	T		   *staged = (T *) t.stage();
	T			v[PART_ITEMS];

#pragma unroll
	for (int j = 0; j < PART_ITEMS; j++)
		if (place[j] != UNPLACED)
			v[j] = in[j * PART_THREADS];
#pragma unroll
	for (int j = 0; j < PART_ITEMS; j++)
		if (place[j] != UNPLACED)
			staged[place[j]] = v[j];
	part_write<T>(t, total, (T *) out);
}

/*
 * BYTES: the width of all columns, or 0 for any.  Code for every width at a
 * time has too few registers, so the widths that matter have their own.
 */
template <int BYTES> static __device__ __forceinline__ void
part_move_column(const PartTile &t, u32 total, const u32 (&place)[PART_ITEMS], const void *from, u64 base,
				 void *out, int bytes)
{
	if constexpr (BYTES == 4)
		part_move<u32>(t, total, place, from, base, out);
	else if constexpr (BYTES == 8)
		part_move<u64>(t, total, place, from, base, out);
	else if constexpr (BYTES == 16)
		part_move<Pair>(t, total, place, from, base, out);
	else
		switch (bytes)
		{
			case 1:
				part_move<uint8_t>(t, total, place, from, base, out);
				break;
			case 2:
				part_move<uint16_t>(t, total, place, from, base, out);
				break;
			case 4:
				part_move<u32>(t, total, place, from, base, out);
				break;
			case 8:
				part_move<u64>(t, total, place, from, base, out);
				break;
			default:
				part_move<Pair>(t, total, place, from, base, out);
		}
}

#endif							/* GPUAGG_PARTITION_CUH */
