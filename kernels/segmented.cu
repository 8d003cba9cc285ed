/*
 * segmented.cu
 *	  Host side of the segmented reduction: which instance, which form, how many
 *	  chunks.
 *
 * Forms: few elements of a commutative operator take one launch of
 * segmented_small, with a thread, part of a warp, a warp or a block for each
 * segment by the mean length.  Many elements of one take the even form if their
 * lengths turn out to be even (segmented_even.cuh).  All else takes the
 * load-balanced chunks of segmented_tiles and their fix-up.
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
		(g->nsegments > 0 || g->nvalues == 0);
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
	if (!gpuagg_monoids[op].commutative || g->nsegments_device != nullptr)
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

/* Four launches instead of two, and the wait for the sample, are not worth it below. */
int64_t		seg_even_least = (int64_t) 1 << 27;

/* Samples the lengths of evenly spaced stretches of segments, for the even form. */
static __global__ void __launch_bounds__(SEG_SAMPLE_THREADS)
segmented_sample(SegmentedArgs a)
{
	const SegEven &even = a.even;
	bool		found = false;

	/* in this order: segmented_even_blocks reads what was written before this */
	wait_for_predecessor();
	let_successor_start();
	for (int64_t s = (blockIdx.x * SEG_SAMPLE_THREADS + threadIdx.x) * even.stretch; s < a.nsegments;
		 s += SEG_SAMPLE_BLOCKS * SEG_SAMPLE_THREADS * even.stretch)
		found |= a.offsets[a.nsegments - s > even.stretch ? s + even.stretch : a.nsegments] - a.offsets[s] > even.most;
	found = __syncthreads_or(found);
	if (threadIdx.x < SEG_SEEN_COPIES)
	{
		even.seen[threadIdx.x * SEG_SEEN_STRIDE + blockIdx.x] = found;
		if (blockIdx.x == 0)
			even.seen[threadIdx.x * SEG_SEEN_STRIDE + SEG_SAMPLE_BLOCKS] = 0;
		if (blockIdx.x == 0 && threadIdx.x == 0)
			even.seen[SEG_TAKEN_AT] = 0;
	}
}

static GpuaggCudaStatus
sample_lengths(const SegmentedArgs *args, cudaStream_t stream)
{
	const DeviceFacts *facts;

	STATUS_TRY(gpuagg_device_facts(&facts));
	CUDA_TRY(launch_early(segmented_sample, SEG_SAMPLE_BLOCKS, SEG_SAMPLE_THREADS, 0, *facts, stream, *args));
	return GPUAGG_CUDA_OK;
}

/* Bytes of values: the least that a block takes, about those of a block's windows, of a warp's groups. */
static const int64_t even_piece_bytes = 16384;
static const int64_t even_block_bytes = 65536;
static const int64_t even_warp_bytes = 4096;

/*
 * About as many blocks as there may be, as those that leave at once cost one or
 * two nanoseconds each.
 */
static const int64_t even_blocks = 8192;

/* Even form, a block or several for each segment. */
static void
choose_even_blocks(const GpuaggSegments *g, int64_t bytes, SegEven *even)
{
	int64_t		most = bytes / even_piece_bytes;

	even->form = SEG_EVEN_BLOCKS;
	even->each = (int) (4096 / g->nsegments);
	even->each = (int) (even->each < most ? even->each : most);
	even->each = even->each > 1 ? even->each : 1;
	even->blocks = (unsigned) (g->nsegments * even->each);
}

/* A group of threads for each; as few as have most of their vectors under way at once. */
static void
choose_even_groups(const GpuaggSegments *g, int64_t mean, int64_t size, SegEven *even)
{
	int64_t		vectors = mean / SEG_EVEN_VECTOR(size);
	int64_t		lanes,
				rounds,
				least;

	even->form = SEG_EVEN_GROUPS;
	even->lanes_log2 = 2;
	while (even->lanes_log2 < 5 && vectors >= 8 << even->lanes_log2)
		even->lanes_log2++;
	lanes = (int64_t) 1 << even->lanes_log2;
	rounds = even_warp_bytes / (mean * size) * lanes / 32;
	least = g->nsegments * lanes / (even_blocks * SEG_EVEN_THREADS);
	rounds = rounds > least ? rounds : least;
	rounds = rounds < 1 ? 1 : rounds < lanes ? rounds : lanes;
	even->rounds = (int) rounds;
	even->blocks = (unsigned) ((g->nsegments * lanes + rounds * SEG_EVEN_THREADS - 1) / (rounds * SEG_EVEN_THREADS));
}

/* A lane for each, in shared memory, where there is room for a quarter more than the mean. */
static void
choose_even_windows(const GpuaggSegments *g, int64_t bytes, SegEven *even)
{
	int64_t		rounds = even_block_bytes / (bytes * SEG_EVEN_THREADS);
	int64_t		least = g->nsegments / (even_blocks * SEG_EVEN_THREADS);

	even->form = SEG_EVEN_WINDOWS;
	even->capacity = (int) ((bytes * 40 + 256) / 128 * 128);
	rounds = rounds > least ? rounds : least;
	rounds = rounds > 1 ? rounds : 1;
	even->rounds = (int) rounds;
	even->blocks = (unsigned) ((g->nsegments + rounds * SEG_EVEN_THREADS - 1) / (rounds * SEG_EVEN_THREADS));
}

/* A thread for each, in as many blocks as run at once. */
static void
choose_even_lone(const GpuaggSegments *g, int64_t bytes, int sms, SegEven *even)
{
	const int	warps = SEG_EVEN_THREADS / 32;
	int64_t		chunk = 32 * SEG_EVEN_SOME;
	int64_t		rounds = 16384 / (chunk * (bytes + 8));	/* with the offsets */
	int64_t		items = (g->nsegments + chunk * rounds - 1) / (chunk * rounds);

	even->form = SEG_EVEN_LONE;
	even->rounds = (int) rounds;
	even->items = (unsigned) items;
	even->blocks = (unsigned) (items < sms * 4 * warps ? (items + warps - 1) / warps : sms * 4);
}

/*
 * Whether the even form is tried, and how: threads for each segment by the mean
 * length.  Between the forms' lengths, irregular ones took it longer than the
 * chunks on an H100.
 */
static GpuaggCudaStatus
choose_even(const GpuaggSegments *g, const SegmentedInstance *instance, int64_t mean, SegEven *even, bool *found)
{
	const DeviceFacts *facts;
	int64_t		size = instance->even_size;
	int64_t		bytes = mean * size;
	int64_t		busy;

	STATUS_TRY(gpuagg_device_facts(&facts));
	*found = false;
	if (size == 0 || g->nsegments_device != nullptr || g->nvalues * size < seg_even_least)
		return GPUAGG_CUDA_OK;
	even->each = 1;
	if (bytes >= even_piece_bytes)
		choose_even_blocks(g, bytes, even);
	else if (mean >= 64)
		choose_even_groups(g, mean, size, even);
	else if (mean >= 16 && bytes <= 128 && size <= 8)
		choose_even_windows(g, bytes, even);
	else if (mean <= 4 && size <= 8)
		choose_even_lone(g, bytes, facts->sms, even);
	else
		return GPUAGG_CUDA_OK;
	even->early = (unsigned) facts->sms * 6;
	even->stretch = (g->nsegments + SEG_SAMPLE_MOST - 1) / SEG_SAMPLE_MOST;
	even->most = (g->nvalues / g->nsegments + 1) * even->stretch;
	even->most += even->most / 8 + 64;
	/* what does not keep a block, or a warp, busy for long */
	busy = g->nvalues / (even->form == SEG_EVEN_BLOCKS && g->nsegments >= 8192 ? 1024 : 4096);
	even->most = even->most > busy ? even->most : busy;
	*found = true;
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
	bool		small,
				even = false;

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
		STATUS_TRY(choose_chunks(g, instance, blocks, &args.chunks));
		args.blocks = (args.chunks + instance->warps - 1) / instance->warps;
		args.heads = ws.take<char>(args.blocks * instance->state_size);
		args.carries = ws.take<char>(args.blocks * instance->state_size);
		args.head_segments = ws.take<int64_t>(args.blocks);
		if (args.blocks > 1 && mean > 0)
			STATUS_TRY(choose_even(g, instance, mean, &args.even, &even));
		if (even)
		{
			args.even.seen = ws.take<uint32_t>(SEG_SEEN_ALL);
			if (args.even.each > 1)
				args.even.pieces = ws.take<char>(args.even.blocks * instance->state_size);
		}
	}
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (g->nsegments == 0)
		return GPUAGG_CUDA_OK;
	args.values = values;
	args.offsets = g->offsets;
	args.nsegments = g->nsegments;
	args.nsegments_device = g->nsegments_device;
	args.nvalues = g->nvalues;
	args.states = states;
	args.errors = errors;
	if (small)
		return instance->run_small(&args, small_lanes_log2(mean), stream);
	if (even)
		STATUS_TRY(sample_lengths(&args, stream));
	return instance->run(&args, stream);
}
