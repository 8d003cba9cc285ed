/*
 * hist_tiles_args.h
 *	  The kernels of histograms by tiles, and what each of them knows.
 */
#ifndef GPUAGG_HIST_TILES_ARGS_H
#define GPUAGG_HIST_TILES_ARGS_H

#include "hist_kernels.cuh"

enum TileKernel
{
	TILES_LIGHT,  /* the operations and operators below */
	TILES_MIDDLE, /* all but squares and deviations */
	TILES_FULL,
	TILE_KERNELS
};

/* Rows of a thread in a tile. */
#define TILES_ROWS_PER_THREAD 4

/* Threads of a block, as registers allow. */
static constexpr __host__ __device__ int
tile_threads(int kernel)
{
	return kernel == TILES_LIGHT ? TILES_LIGHT_THREADS_PER_BLOCK : TILES_THREADS_PER_BLOCK;
}

/* A kernel. */
struct TileInstance
{
	size_t (*program_bytes)(
		const HistArgs &args); /* of a block, behind its bins and the entries of hot ones */
	size_t (*stages_at)(
		const HistArgs &args); /* behind these, where columns go ahead of their tile's turn */
	GpuaggCudaStatus (*launch)(const HistArgs &args, const DeviceFacts &facts, size_t bytes,
							   u32 stage_bytes, cudaStream_t stream);
};

extern const TileInstance hist_tiles_part0, hist_tiles_part1, hist_tiles_part2;

/*
 * What the light kernel knows.  LIGHT(OP) for each operation; vector_simplify() makes comparisons
 * of integers VECTOR_DEC_COMPARE.
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
	LIGHT(VECTOR_PRESENCE) \
	LIGHT(VECTOR_DETERMINED) \
	LIGHT(VECTOR_DEC_ADD) \
	LIGHT(VECTOR_DEC_SUB) \
	LIGHT(VECTOR_DEC_MUL)

/* Operators of columns that are no float4, which is made a double before. */
#define TILES_LIGHT_SLOTS \
	(1u << TILE_COUNT | 1u << TILE_INT_I32 | 1u << TILE_INT_I64 | 1u << TILE_MAX32)

#endif /* GPUAGG_HIST_TILES_ARGS_H */
