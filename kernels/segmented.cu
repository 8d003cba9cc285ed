/*
 * segmented.cu
 *	  Host side of the segmented reduction: gpuagg_cuda_segmented_reduce.
 *
 * It finds the operator's instance, chooses the number of chunks, divides the caller's workspace
 * and queues the kernels (segmented.cuh) on the caller's stream.  Nothing is allocated, and nothing
 * synchronizes.
 */
#include "segmented_args.h"

extern const SegmentedPart segmented_part0, segmented_part1, segmented_part2, segmented_part3,
	segmented_part4, segmented_part5;

/* Returns the instance of an operator, or NULL if it has none because it commutes. */
static const SegmentedInstance *
find_instance(MonoidId op)
{
	const SegmentedPart parts[SEGMENTED_PARTS] = {segmented_part0, segmented_part1,
												  segmented_part2, segmented_part3,
												  segmented_part4, segmented_part5};
	int count;
	const SegmentedInstance *table = parts[op % SEGMENTED_PARTS](&count);

	for (int i = 0; i < count; i++)
		if (table[i].id == op)
			return &table[i];
	return nullptr;
}

/* Checks what the host can see.  The offsets are in device memory and are not checked. */
static bool
are_segments_valid(const GpuaggSegments *g)
{
	return g->nvalues >= 0 && g->nsegments >= 0 && (g->nsegments == 0 || g->offsets != nullptr) &&
		(g->nsegments > 0 || g->nvalues == 0);
}

/*
 * Chooses the number of chunks: the number of warps that run concurrently on the device, but no
 * chunk is smaller than half a tile.  Two to four times as many chunks took 2 to 13 % longer at
 * 2^26 elements on an H100.
 */
static GpuaggCudaStatus
choose_chunks(const GpuaggSegments *g, const SegmentedInstance *instance, int blocks, int *chunks)
{
	const DeviceFacts *facts;
	int64_t work = g->nvalues + instance->weight * g->nsegments;
	int64_t limit = work / (instance->tile / 2) + 1;
	int64_t most;

	STATUS_TRY(gpuagg_device_facts(&facts));
	most = (int64_t) facts->sms * blocks * instance->warps;
	*chunks = (int) (limit < most ? limit : most);
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_segmented_reduce(const GpuaggSegments *g, MonoidId op, const void *values, void *states,
							 void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	const SegmentedInstance *instance;
	SegmentedArgs args = {};
	Workspace ws(workspace);
	int blocks;

	if ((unsigned) op >= MONOID_COUNT_OF_IDS || !are_segments_valid(g))
		return GPUAGG_CUDA_INVALID;
	instance = find_instance(op);
	if (instance == nullptr)
		return GPUAGG_CUDA_UNSUPPORTED;
	STATUS_TRY(instance->occupancy(&blocks));
	STATUS_TRY(choose_chunks(g, instance, blocks, &args.chunks));
	args.blocks = (args.chunks + instance->warps - 1) / instance->warps;
	args.heads = ws.take<char>(args.blocks * instance->state_size);
	args.carries = ws.take<char>(args.blocks * instance->state_size);
	args.head_segments = ws.take<int64_t>(args.blocks);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (g->nsegments == 0)
		return GPUAGG_CUDA_OK;
	args.values = values;
	args.offsets = g->offsets;
	args.nsegments = g->nsegments;
	args.nvalues = g->nvalues;
	args.states = states;
	return instance->launch(&args, stream);
}
