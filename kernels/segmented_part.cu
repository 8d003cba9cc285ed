/*
 * segmented_part.cu
 *	  Instances of the segmented reduction.
 *
 * kernels.mk compiles this file SEGMENTED_PARTS times.  Each time it instantiates the kernels of
 * segmented.cuh for the operators that do not commute and whose place in the monoid list is
 * SEGMENTED_PART modulo SEGMENTED_PARTS.  Operators that commute have no instance: histograms and
 * runs reduce them.
 */
#include <atomic>

#include "segmented.cuh"

/*
 * Sets the shared memory of the chunk kernel on the current device, and returns in *blocks how many
 * of its blocks run concurrently on a multiprocessor.  The number is kept for each device.  Threads
 * may call it concurrently; they may compute it twice.
 */
template <class Op>
static GpuaggCudaStatus
instance_occupancy(int *blocks)
{
	static std::atomic<int> blocks_of_device[GPUAGG_MAX_DEVICES];
	constexpr int bytes = sizeof(SegShared<Op>) * SegShape<Op>::warps;
	int device;

	CUDA_TRY(cudaGetDevice(&device));
	if (device >= GPUAGG_MAX_DEVICES)
		return GPUAGG_CUDA_INVALID;
	*blocks = blocks_of_device[device];
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
	blocks_of_device[device] = *blocks;
	return GPUAGG_CUDA_OK;
}

/* Launches a kernel that begins with seg_launch_order(). */
template <class... Params, class... Args>
static GpuaggCudaStatus
launch_segmented(void (*kernel)(Params...), unsigned blocks, int threads, int shared,
				 cudaStream_t stream, Args... args)
{
	const DeviceFacts *facts;

	STATUS_TRY(gpuagg_device_facts(&facts));
	CUDA_TRY(launch_early(kernel, blocks, threads, shared, *facts, stream, args...));
	return GPUAGG_CUDA_OK;
}

/* Queues the chunk kernel, and the fix-up kernel if there are several blocks. */
template <class Op>
static GpuaggCudaStatus
launch_instance(const SegmentedArgs *args, cudaStream_t stream)
{
	constexpr int warps = SegShape<Op>::warps;

	STATUS_TRY(launch_segmented(segmented_tiles<Op>, args->blocks, warps * 32,
								(int) sizeof(SegShared<Op>) * warps, stream, *args));
	if (args->blocks > 1)
		STATUS_TRY(launch_segmented(segmented_fixup<Op>, 1, SegShape<Op>::fixup_threads, 0, stream,
									*args));
	return GPUAGG_CUDA_OK;
}

/* Appends the operator's instance to the table if it does not commute and belongs to this part. */
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
							 launch_instance<Op>};
}

/*
 * Returns the instances of this part, and their number in *count.  The table is filled at the first
 * call.
 */
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
