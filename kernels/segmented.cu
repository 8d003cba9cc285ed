/*
 * segmented.cu
 *	  Host side of the segmented reduction: which instance, which form, how many
 *	  chunks; plans and the combining of states.
 *
 * Forms: few elements of a commutative operator take one launch of
 * segmented_small, with a thread, part of a warp, a warp or a block for each
 * segment by the mean length; all else takes the load-balanced chunks of
 * segmented_tiles and their fix-up.
 */
#include "segmented_pieces.cuh"

extern const SegmentedPart segmented_part0, segmented_part1, segmented_part2, segmented_part3,
	segmented_part4, segmented_part5;

/*
 * A single small launch is worth it up to this many elements.  Where segments
 * are longer in the mean, too few blocks would be at work; where they are
 * shorter, one long segment among them costs too much, unless all is tiny.
 */
static const int64_t small_elements = 1 << 19;
static const int64_t small_mean_least = 8;
static const int64_t small_mean_most = 16384;
static const int64_t tiny_elements = 1 << 14;

static const SegmentedInstance *
find_instance(MonoidId op, GpuaggValueType type)
{
	const SegmentedPart parts[SEGMENTED_PARTS] = {segmented_part0, segmented_part1, segmented_part2,
	segmented_part3, segmented_part4, segmented_part5};
	int			count;
	const SegmentedInstance *table = parts[op % SEGMENTED_PARTS] (&count);

	for (int i = 0; i < count; i++)
		if (table[i].id == op && table[i].type == type)
			return &table[i];
	return nullptr;
}

static bool
segments_valid(const GpuaggSegments *g)
{
	return g->nvalues >= 0 && g->nsegments >= 0 && (g->nsegments == 0 || g->offsets != nullptr) &&
		(g->nsegments > 0 || g->nvalues == 0) && (g->starts == nullptr) == (g->chunks == 0);
}

/* Threads for each segment, as segmented_small wants them. */
static int
small_lanes_log2(int64_t mean)
{
	int			log2 = 0;

	if (mean >= 512)
		return 8;
	while (log2 < 5 && (int64_t) 4 << log2 < mean)
		log2++;
	return log2;
}

static bool
is_small(const GpuaggSegments *g, MonoidId op, int64_t mean)
{
	if (!gpuagg_monoids[op].commutative || g->nsegments_device != nullptr || g->starts != nullptr)
		return false;
	if (g->nvalues <= tiny_elements)
		return g->nsegments <= tiny_elements;
	return g->nvalues <= small_elements && mean >= small_mean_least && mean <= small_mean_most;
}

/*
 * As many chunks as warps run at once, but none smaller than half a tile.  Two
 * to four times as many took 2 to 13 % longer at 2^26 elements on an H100.
 */
static GpuaggCudaStatus
choose_chunks(const GpuaggSegments *g, const SegmentedInstance *instance, int blocks, int *chunks)
{
	const DeviceFacts *facts;
	int64_t		work = g->nvalues + instance->weight * g->nsegments;
	int64_t		least = work / (instance->tile / 2) + 1;
	int64_t		most;

	STATUS_TRY(gpuagg_device_facts(&facts));
	most = (int64_t) facts->sms * blocks * instance->warps;
	*chunks = (int) (least < most ? least : most);
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_segmented_reduce(const GpuaggSegments *g, MonoidId op, GpuaggValueType type,
							 const void *values, void *states, uint32_t *errors,
							 void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	const SegmentedInstance *instance;
	SegmentedArgs args = {};
	Workspace	ws(workspace);
	int64_t		mean;
	int			blocks;
	bool		small;

	if ((unsigned) op >= MONOID_COUNT_OF_IDS || !segments_valid(g))
		return GPUAGG_CUDA_INVALID;
	instance = find_instance(op, type);
	if (instance == nullptr)
		return GPUAGG_CUDA_UNSUPPORTED;
	mean = g->nsegments > 0 ? g->nvalues / g->nsegments : 0;
	small = is_small(g, op, mean);
	if (!small)
	{
		STATUS_TRY(instance->occupancy(&blocks));
		args.chunks = g->chunks;
		if (args.chunks == 0)
			STATUS_TRY(choose_chunks(g, instance, blocks, &args.chunks));
		args.blocks = (args.chunks + instance->warps - 1) / instance->warps;
		args.heads = ws.take<char>(args.blocks * instance->state_size);
		args.carries = ws.take<char>(args.blocks * instance->state_size);
		args.head_segments = ws.take<int64_t>(args.blocks);
	}
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (g->nsegments == 0)
		return GPUAGG_CUDA_OK;
	args.values = values;
	args.offsets = g->offsets;
	args.sources = g->sources;
	args.nsegments = g->nsegments;
	args.nsegments_device = g->nsegments_device;
	args.nvalues = g->nvalues;
	args.states = states;
	args.errors = errors;
	args.starts = g->starts;
	if (small)
		return instance->run_small(&args, small_lanes_log2(mean), stream);
	return instance->run(&args, stream);
}

/* A segment's weight in plans: the operators to come are not known, most have this one. */
static const int plan_weight = 16;

/* A warp for each chunk's start, and one for the end. */
static __global__ void
plan_chunks(SegmentedArgs a, int64_t *starts)
{
	int			chunk = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	int64_t		nsegments = a.nsegments_device ? *a.nsegments_device : a.nsegments;
	int64_t		cut[4];

	if (chunk > a.chunks)
		return;
	seg_cut_chunk(a, nsegments, plan_weight, chunk, cut);
	starts[2 * chunk] = cut[0];
	starts[2 * chunk + 1] = cut[1];
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_segments_plan(GpuaggSegments *g, void *workspace, size_t *workspace_bytes,
						  gpuagg_stream stream)
{
	const DeviceFacts *facts;
	Workspace	ws(workspace);
	SegmentedArgs args = {};
	int64_t    *starts;
	const int	warps_per_sm = 20;	/* about what the chunk kernels reach */
	int64_t		most = (g->nvalues + plan_weight * g->nsegments) / 512 + 1;

	if (!segments_valid(g))
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	args.chunks = (int) (most < facts->sms * warps_per_sm ? most : facts->sms * warps_per_sm);
	starts = ws.take<int64_t>(2 * (args.chunks + 1));
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (g->nsegments == 0)
		return GPUAGG_CUDA_OK;
	args.offsets = g->offsets;
	args.nsegments = g->nsegments;
	args.nsegments_device = g->nsegments_device;
	args.nvalues = g->nvalues;
	plan_chunks<<<args.chunks / 8 + 1, 256, 0, stream>>>(args, starts);
	CUDA_TRY_LAUNCH("plan_chunks");
	g->chunks = args.chunks;
	g->starts = starts;
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_cuda_combine(MonoidId op, int64_t n, const void *left, const void *right, void *out,
					uint32_t *errors, gpuagg_stream stream)
{
	if ((unsigned) op >= MONOID_COUNT_OF_IDS || n < 0)
		return GPUAGG_CUDA_INVALID;
	if (n == 0)
		return GPUAGG_CUDA_OK;
	return find_instance(op, GPUAGG_VALUE_NATIVE)->combine(n, left, right, out, errors, stream);
}
