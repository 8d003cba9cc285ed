/*
 * segmented_part.cu
 *	  The instances of the segmented reduction, of the operators that do not commute: those whose
 * place in the monoid list is SEGMENTED_PART modulo SEGMENTED_PARTS; kernels.mk compiles this once
 * for each.
 */
#include <atomic>

#include "segmented.cuh"

/* Prepares the chunk kernel on the current device, once, and says how many blocks run at once. */
template <class Op>
static GpuaggCudaStatus
instance_occupancy(int *blocks)
{
	static std::atomic<int> known[GPUAGG_MAX_DEVICES];
	constexpr int bytes = sizeof(SegShared<Op>) * SegShape<Op>::warps;
	int device;

	CUDA_TRY(cudaGetDevice(&device));
	if (device >= GPUAGG_MAX_DEVICES)
		return GPUAGG_CUDA_INVALID;
	*blocks = known[device];
	if (*blocks > 0)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(cudaFuncSetAttribute((segmented_tiles<Op>),
								  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
	CUDA_TRY(cudaFuncSetAttribute((segmented_tiles<Op>),
								  cudaFuncAttributePreferredSharedMemoryCarveout,
								  cudaSharedmemCarveoutMaxShared));
	CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (segmented_tiles<Op>),
														   (SegShape<Op>::warps * 32), bytes));
	*blocks = *blocks > 0 ? *blocks : 1;
	known[device] = *blocks;
	return GPUAGG_CUDA_OK;
}

/* Launches a kernel that begins with seg_launch_order(). */
template <class... Params, class... Args>
static GpuaggCudaStatus
launch(void (*kernel)(Params...), unsigned blocks, int threads, int shared, cudaStream_t stream,
	   Args... args)
{
	const DeviceFacts *facts;

	STATUS_TRY(gpuagg_device_facts(&facts));
	CUDA_TRY(launch_early(kernel, blocks, threads, shared, *facts, stream, args...));
	return GPUAGG_CUDA_OK;
}

template <class Op>
static GpuaggCudaStatus
instance_run(const SegmentedArgs *args, cudaStream_t stream)
{
	constexpr int warps = SegShape<Op>::warps;

	STATUS_TRY(launch(segmented_tiles<Op>, args->blocks, warps * 32,
					  (int) sizeof(SegShared<Op>) * warps, stream, *args));
	if (args->blocks > 1)
		STATUS_TRY(launch(segmented_fixup<Op>, 1, SegShape<Op>::fixup_threads, 0, stream, *args));
	return GPUAGG_CUDA_OK;
}

/*
 * Adds an instance if it is this part's; the others are reduced in any order, as histograms or
 * runs.
 */
template <class Op>
static void
add_instance(SegmentedInstance *table, int *count)
{
	if constexpr (!Op::commutative && Op::id % SEGMENTED_PARTS == SEGMENTED_PART)
		table[(*count)++] = {Op::id,
							 sizeof(typename Op::State),
							 instance_occupancy<Op>,
							 SegShape<Op>::warps,
							 SegShape<Op>::tile,
							 SegShape<Op>::weight,
							 instance_run<Op>};
}

static const SegmentedInstance *
part_table(int *count)
{
	static SegmentedInstance table[MONOID_COUNT_OF_IDS];
	static const int filled = []
	{
		int n = 0;

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) add_instance<Op_##name>(table, &n);
#include "operators/monoid_list.h"
#undef MONOID
		return n;
	}();

	*count = filled;
	return table;
}

#define SEGMENTED_PART_NAME2(n) segmented_part##n
#define SEGMENTED_PART_NAME(n) SEGMENTED_PART_NAME2(n)
extern const SegmentedPart SEGMENTED_PART_NAME(SEGMENTED_PART);
const SegmentedPart SEGMENTED_PART_NAME(SEGMENTED_PART) = part_table;
