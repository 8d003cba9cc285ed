/*
 * group_fused_move.cu
 *	  Rows to partitions of their keys' hashes, for group-by as one operation.
 *
 * sample (rows of each partition) → room (memory for them) → split → plan (first
 * rows of the second step, items) → split again, where there are many.  The
 * first step does not count all rows ahead: a sample says how much memory each
 * partition gets, with six standard deviations to spare.  Should that be too little
 * all the same, the plan sees it, the call leaves all rows pending, and the retry
 * counts them all.  Rows move as the hash of the key and 64 bits of value.
 */
#include "group_fused.cuh"
#include "partition.cuh"

#define ITEMS PART_ITEMS
#define THREADS PART_THREADS
#define PLAN_THREADS 1024

/* Whether there is anything to do for a kernel of the move. */
static __device__ __forceinline__ bool
to_move(const FusedArgs &f)
{
	return (!f.part.spare || f.head->over) && (!f.retry || f.head->misfit);
}

/* ---- memory for partitions --------------------------------------------------------- */

/* One row of each of equal parts of the rows, or all rows. */
static __global__ void __launch_bounds__(THREADS)
sample_kernel(const __grid_constant__ FusedArgs f)
{
	extern __shared__ __align__(16) char part_memory[];
	u32		   *count = (u32 *) part_memory;
	u32			samples;

	wait_for_predecessor();
	if (!to_move(f))
		return;
	samples = f.retry ? f.nrows : f.part.samples;
	for (u32 p = threadIdx.x; p < f.part.parts; p += THREADS)
		count[p] = 0;
	__syncthreads();
#pragma unroll 4
	for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < samples; i += gridDim.x * THREADS)
	{
		u64			from = (u64) f.nrows * i / samples,
					to = (u64) f.nrows * (i + 1) / samples,
					row = samples == f.nrows ? i : from + __umul64hi(gpuagg_mix64(i + 1), to - from);

		if (!f.filter || f.filter[row])
			atomicAdd(&count[partition_of_hash(hash_of_row(f, row), f.part.parts)], 1u);
	}
	__syncthreads();
	for (u32 p = threadIdx.x; p < f.part.parts; p += THREADS)
		if (count[p])
			atomicAdd(&f.part.sampled[p], count[p]);
}

/*
 * From the samples, the first row and the end of each part; f.part.room (group_fused.cu) is the
 * most that they take together.
 */
static __global__ void __launch_bounds__(THREADS)
room_kernel(const __grid_constant__ FusedArgs f)
{
	__shared__ u32 scan[32];
	u32			p = threadIdx.x,
				rows = 0,
				total;

	wait_for_predecessor();
	if (!to_move(f))
		return;
	if (p < f.part.parts)
	{
		double		c = f.part.sampled[p];

		rows = (u32) c;
		if (f.part.samples < f.nrows && !f.retry)
			rows = (u32) ((c + 6 * sqrt(c) + 24) * ((double) f.nrows / f.part.samples)) + 1;
		f.part.sampled[p] = 0;
	}

	u32			end = block_scan(rows, scan, &total);

	if (p < f.part.parts)
	{
		f.part.start[p] = f.part.cursor[p] = end - rows;
		f.part.limit[p] = end;
	}
}

/* ---- the first step --------------------------------------------------------------- */

template <bool VALUES> static __device__ __forceinline__ PartTile
tile_of(u32 parts)
{
	return {parts, 8, VALUES ? 8u : 0u};
}

template <bool VALUES> static size_t
tile_bytes(u32 parts)
{
	return part_tile_bytes(8, VALUES ? 8 : 0, parts);
}

template <bool VALUES> static __global__ void __launch_bounds__(THREADS, 1)
split_kernel(const __grid_constant__ FusedArgs f)
{
	PartTile	t = tile_of<VALUES>(f.part.parts);
	PutKey<u64> put = {f.part.hash[0]};
	u32			fine_parts = f.part.fine > 1 ? f.part.parts * f.part.fine : 0,
			   *fine = (u32 *) (t.part() + PART_TILE);
	u64			base = blockIdx.x * (u64) PART_TILE;
	bool		narrow_keys = f.key_bytes == 4,
				narrow_values = narrow_type(f.type);
	u32			ok;
	u64			key[ITEMS];

	wait_for_predecessor();
	if (!to_move(f))
		return;
	for (u32 p = threadIdx.x; p < fine_parts; p += THREADS)
		fine[p] = 0;
	part_clear(t);
	ok = rows_of<ITEMS, THREADS>(f.filter, base + threadIdx.x, f.nrows);
	load_column<ITEMS, THREADS>(narrow_keys, f.keys, base + threadIdx.x, ok, key);
	while (base < f.nrows)
	{
		u64			v[ITEMS];
		u32			place[ITEMS];	/* and the partition above it */
		PartRuns	runs;

		if (VALUES)
			load_column<ITEMS, THREADS>(narrow_values, f.values, base + threadIdx.x, ok, v);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
			{
				u32			p;

				key[j] = gpuagg_hash64(&f.table.hash, key[j]);
				p = partition_of_hash(key[j], f.part.parts);
				place[j] = p << 16 | atomicAdd(&t.count()[p], 1u);
				if (fine_parts)
					atomicAdd(&fine[partition_of_hash(key[j], fine_parts)], 1u);
			}
		runs = part_reserve(t, f.part.cursor, 0, f.part.parts - 1);
		part_places(t, ok, place);
		part_stage<u64>(t.keys(), ok, place, key);
		if (VALUES)
		{
			if (narrow_values)
#pragma unroll
				for (int j = 0; j < ITEMS; j++)
					v[j] = widen(f.type, v[j]);
			part_stage<u64>(t.stage(), ok, place, v);
		}
		base += gridDim.x * (u64) PART_TILE;
		ok = rows_of<ITEMS, THREADS>(f.filter, base + threadIdx.x, f.nrows);
		load_column<ITEMS, THREADS>(narrow_keys, f.keys, base + threadIdx.x, ok, key);
		part_write<u64, u64>(t, runs, put, VALUES ? f.part.value[0] : nullptr, f.part.room);
	}
	for (u32 p = threadIdx.x; p < fine_parts; p += THREADS)
		if (fine[p])
			atomicAdd(&f.part.fine_rows[p], fine[p]);
}

/* ---- the plan ------------------------------------------------------------------------ */

/* A partition's item, or its pieces. */
static __device__ __forceinline__ void
plan_item(const FusedArgs &f, u32 at, u32 row0, u32 rows)
{
	bool		cut = rows > f.part.most_rows;
	u32			parts = f.part.parts * f.part.fine,
				first = (u32) ((((u64) at << 32) + parts - 1) / parts);

	f.part.item[at] = {row0, row0 + rows, 0, rows && !cut ? 0 : FUSED_DONE, first};
	if (cut)
	{
		u32			n = (rows + f.part.piece_rows - 1) / f.part.piece_rows,
					to = atomicAdd(&f.head->pieces, n);

		f.part.split[atomicAdd(&f.head->splits, 1)] = {row0, row0 + rows, 0, 0, first};
		for (u32 i = 0; i < n; i++)
			f.part.piece[to + i] = {row0 + i * f.part.piece_rows, row0 + min(rows, (i + 1) * f.part.piece_rows), 0, 0, 0};
	}
}

/* Items, and first rows of the second step; one block. */
static __global__ void __launch_bounds__(PLAN_THREADS)
plan_kernel(const __grid_constant__ FusedArgs f)
{
	__shared__ u32 scan[32];
	u32			t = threadIdx.x,
				parts = f.part.parts * f.part.fine,
				each = (parts + 4 * PLAN_THREADS - 1) / (4 * PLAN_THREADS),
				total,
				sum = 0,
				rows = 0;
	bool		misfit = false;

	wait_for_predecessor();
	if (!to_move(f))
		return;
	if (t < f.part.parts)
	{
		rows = f.part.cursor[t] - f.part.start[t];
		misfit = f.part.cursor[t] > f.part.limit[t];
	}
	misfit = __syncthreads_or(misfit);
	if (t == 0)
	{
		f.head->misfit = misfit;
		f.head->items = misfit ? 0 : parts;
	}
	if (misfit)
	{
		/* so that the retry finds everything as at first */
		for (u32 p = t; p < parts; p += PLAN_THREADS)
			f.part.fine_rows[p] = 0;
		return;
	}
	if (f.part.fine == 1)
	{
		if (t < f.part.parts)
			plan_item(f, t, f.part.start[t], rows);
		return;
	}

	u32			tiles = (rows + PART_TILE - 1) / PART_TILE,
				end = block_scan(tiles, scan, &total);

	if (t < f.part.parts)
		f.part.first_tile[t] = end - tiles;
	if (t == 0)
		f.part.first_tile[f.part.parts] = total;
	__syncthreads();
	for (u32 i = 0; i < each; i++)
	{
		uint4		c = ((const uint4 *) f.part.fine_rows)[t * each + i];

		sum += c.x + c.y + c.z + c.w;
	}
	sum = block_scan(sum, scan, &total) - sum;
	for (u32 p = 4 * t * each; p < 4 * (t + 1) * each && p < parts; p++)
	{
		u32			n = f.part.fine_rows[p];

		plan_item(f, p, sum, n);
		f.part.fine_rows[p] = sum;
		sum += n;
	}
}

/* ---- the second step ------------------------------------------------------------------ */

/* The partition of a tile, by a search. */
static __device__ __forceinline__ u32
part_of_tile(const u32 *first_tile, u32 parts, u32 tile)
{
	u32			lo = 0,
				hi = parts;

	while (hi - lo > 1)
	{
		u32			mid = (lo + hi) / 2;

		if (first_tile[mid] <= tile)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

template <bool VALUES> static __global__ void __launch_bounds__(THREADS, 1)
split_again_kernel(const __grid_constant__ FusedArgs f)
{
	PartTile	t = tile_of<VALUES>(f.part.fine);
	PutKey<u64> put = {f.part.hash[1]};
	u32		   *first = (u32 *) (t.part() + PART_TILE),
				tile = blockIdx.x,
				fine_parts = f.part.parts * f.part.fine,
				tiles,
				q,
				ok = 0;
	u64			row = 0;
	u64			key[ITEMS];

	auto		enter = [&]() {
		if (tile >= tiles)
			return;
		q = part_of_tile(first, f.part.parts, tile);
		row = f.part.start[q] + (tile - first[q]) * (u64) PART_TILE + threadIdx.x;
		ok = rows_of<ITEMS, THREADS>(nullptr, row, f.part.cursor[q]);
		load_column<ITEMS, THREADS>(false, f.part.hash[0], row, ok, key);
	};

	wait_for_predecessor();
	if (!to_move(f) || f.head->misfit)
		return;
	for (u32 p = threadIdx.x; p <= f.part.parts; p += THREADS)
		first[p] = f.part.first_tile[p];
	part_clear(t);
	tiles = first[f.part.parts];
	q = 0;
	enter();
	while (tile < tiles)
	{
		u64			v[ITEMS];
		u32			place[ITEMS];
		PartRuns	runs;
		u32			first_fine = q * f.part.fine;

		if (VALUES)
			load_column<ITEMS, THREADS>(false, f.part.value[0], row, ok, v);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
			{
				u32			p = partition_of_hash(key[j], fine_parts) - first_fine;

				place[j] = p << 16 | atomicAdd(&t.count()[p], 1u);
			}
		runs = part_reserve(t, f.part.fine_rows + first_fine, 0, f.part.fine - 1);
		part_places(t, ok, place);
		part_stage<u64>(t.keys(), ok, place, key);
		if (VALUES)
			part_stage<u64>(t.stage(), ok, place, v);
		tile += gridDim.x;
		ok = 0;
		enter();
		part_write<u64, u64>(t, runs, put, VALUES ? f.part.value[1] : nullptr);
	}
}

/* ---- launches ---------------------------------------------------------------------------- */

u32
fused_most_fine(const DeviceFacts &facts, bool values)
{
	size_t		tile = 1024 + (values ? tile_bytes<true>(PART_MANY) : tile_bytes<false>(PART_MANY));

	return tile < facts.smem_per_block ? (u32) ((facts.smem_per_block - tile) / sizeof(u32)) : 0;
}

template <bool VALUES> static GpuaggCudaStatus
launch_move(const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		fine = f.part.fine > 1 ? (size_t) f.part.parts * f.part.fine * sizeof(u32) : 0;

	CUDA_TRY(allow_shared(split_kernel<VALUES>, facts));
	CUDA_TRY(allow_shared(split_again_kernel<VALUES>, facts));
	CUDA_TRY(launch_early(sample_kernel, 2 * facts.sms, THREADS, f.part.parts * sizeof(u32), facts, stream, f));
	CUDA_TRY(launch_early(room_kernel, 1, THREADS, 0, facts, stream, f));
	CUDA_TRY(launch_early(split_kernel<VALUES>, facts.sms, THREADS, tile_bytes<VALUES>(f.part.parts) + fine, facts, stream,
						  f));
	CUDA_TRY(launch_early(plan_kernel, 1, PLAN_THREADS, 0, facts, stream, f));
	if (f.part.fine > 1)
		CUDA_TRY(launch_early(split_again_kernel<VALUES>, facts.sms, THREADS,
							  tile_bytes<VALUES>(f.part.fine) + (f.part.parts + 1) * sizeof(u32), facts, stream, f));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
fused_launch_move(const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	return f.values ? launch_move<true>(f, facts, stream) : launch_move<false>(f, facts, stream);
}
