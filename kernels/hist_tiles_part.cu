/*
 * hist_tiles_part.cu
 *	  Compiles one kernel of tiled histograms, with its launch function, as a TileInstance.
 *
 * TILES_PART is the TileKernel.  kernels.mk compiles this file once for each, so that make can
 * build the kernels in parallel.
 */
#include "hist_tiles.cuh"

static size_t
part_stages_offset(const HistArgs &args)
{
	return stages_offset(args, tile_threads(TILES_PART));
}

static size_t
part_program_bytes(const HistArgs &args)
{
	return program_bytes(args, tile_threads(TILES_PART));
}

static GpuaggCudaStatus
part_launch(const HistArgs &args, const DeviceFacts &facts, size_t bytes, u32 stage_bytes,
			cudaStream_t stream)
{
	constexpr int threads = tile_threads(TILES_PART);

	CUDA_TRY(allow_shared(tiles_kernel<TILES_PART, threads>, facts));
	CUDA_TRY(launch_early(tiles_kernel<TILES_PART, threads>, facts.sms, threads, bytes, facts,
						  stream, args, stage_bytes));
	return GPUAGG_CUDA_OK;
}

#define TILES_PART_NAME2(n) hist_tiles_part##n
#define TILES_PART_NAME(n) TILES_PART_NAME2(n)
const TileInstance TILES_PART_NAME(TILES_PART) = {part_program_bytes, part_stages_offset,
												  part_launch};
