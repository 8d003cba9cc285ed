/*
 * hist_tiles_args.h
 *	  The three kernels of tiled histograms, and the operations and operators of each.
 *
 * A tiled histogram (GPUAGG_HIST_TILES) runs a vector program and adds its results to the bins of
 * all slots, in one pass over the rows.  See hist_tiles.cuh for the kernels, hist_tiles.cu for the
 * choice of one.
 */
#ifndef GPUAGG_HIST_TILES_ARGS_H
#define GPUAGG_HIST_TILES_ARGS_H

#include "hist_kernels.cuh"

/* The kernels.  One that supports fewer operations needs fewer registers, so more warps can run. */
enum TileKernel
{
	TILES_LIGHT,  /* only TILES_LIGHT_OPERATIONS and TILES_LIGHT_SLOTS */
	TILES_MIDDLE, /* every operation; every operator except sums of squares and deviations */
	TILES_FULL,   /* every operation and operator that tiles support */
	TILE_KERNELS
};

/* Consecutive rows of one thread in a tile. */
#define TILES_ROWS_PER_THREAD 4

/* Returns the number of threads in a block of a TileKernel. The kernel's registers limit it. */
static constexpr __host__ __device__ int
tile_threads(int kernel)
{
	return kernel == TILES_LIGHT ? TILES_LIGHT_THREADS_PER_BLOCK : TILES_THREADS_PER_BLOCK;
}

/*
 * One kernel and its layout of a block's dynamic shared memory; see hist_tiles_table.cuh for the
 * layout.
 */
struct TileInstance
{
	/* returns the bytes of the program area: the table and the temporaries */
	size_t (*program_bytes)(const HistArgs &args);
	/* returns the offset of the two stages, which hold columns of the current and the next tile */
	size_t (*stages_offset)(const HistArgs &args);
	/*
	 * Launches the kernel.  bytes: dynamic shared memory of a block, both stages included;
	 * stage_bytes: size of one stage, a multiple of 128, or 0.
	 */
	GpuaggCudaStatus (*launch)(const HistArgs &args, const DeviceFacts &facts, size_t bytes,
							   u32 stage_bytes, cudaStream_t stream);
};

/* The instances, numbered as in TileKernel. hist_tiles_part.cu defines them. */
extern const TileInstance hist_tiles_part0, hist_tiles_part1, hist_tiles_part2;

/*
 * Operations of the light kernel, LIGHT(OP) for each.  Comparisons of integers are not listed:
 * vector_simplify() replaces them by VECTOR_DEC_COMPARE.
 */
#define TILES_LIGHT_OPERATIONS \
	LIGHT(VECTOR_AND) \
	LIGHT(VECTOR_OR) \
	LIGHT(VECTOR_NOT) \
	LIGHT(VECTOR_ISNULL) \
	LIGHT(VECTOR_ISNOTNULL) \
	LIGHT(VECTOR_IS_TRUE) \
	LIGHT(VECTOR_DEC_COMPARE) \
	LIGHT(VECTOR_F_FLOAT8EQ) \
	LIGHT(VECTOR_F_FLOAT8NE) \
	LIGHT(VECTOR_F_FLOAT8LT) \
	LIGHT(VECTOR_F_FLOAT8LE) \
	LIGHT(VECTOR_F_FLOAT8GT) \
	LIGHT(VECTOR_F_FLOAT8GE) \
	LIGHT(VECTOR_BUCKET) \
	LIGHT(VECTOR_F64_BELOW) \
	LIGHT(VECTOR_F64_PART) \
	LIGHT(VECTOR_PRESENCE) \
	LIGHT(VECTOR_DETERMINED) \
	LIGHT(VECTOR_DEC_ADD) \
	LIGHT(VECTOR_DEC_SUB) \
	LIGHT(VECTOR_DEC_MUL) \
	LIGHT(VECTOR_F_INT4PL) \
	LIGHT(VECTOR_F_INT4MI) \
	LIGHT(VECTOR_F_INT4MUL)

/*
 * Operators of the light kernel, one bit for each HistTile.  Except for counts, their column must
 * not be float4: the other kernels convert float4 to double first.
 */
#define TILES_LIGHT_SLOTS \
	(1u << TILE_COUNT | 1u << TILE_INT_I32 | 1u << TILE_INT_I64 | 1u << TILE_MAX32)

#endif /* GPUAGG_HIST_TILES_ARGS_H */
