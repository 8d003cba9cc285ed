/*
 * segmented_part.cu
 *	  The instances of the segmented reduction whose place in the monoid list is
 *	  SEGMENTED_PART modulo SEGMENTED_PARTS; kernels.mk compiles this once for each.
 */
#include <atomic>

#include "segmented.cuh"

/* Prepares the chunk kernel on the current device, once, and says how many blocks run at once. */
template <class Op, class InT>
static GpuaggCudaStatus
instance_occupancy(int *blocks)
{
	static std::atomic<int> known[GPUAGG_MAX_DEVICES];
	constexpr int bytes = sizeof(SegShared<Op, InT>) * SegShape<Op, InT>::warps;
	int			device;

	CUDA_TRY(cudaGetDevice(&device));
	if (device >= GPUAGG_MAX_DEVICES)
		return GPUAGG_CUDA_INVALID;
	*blocks = known[device];
	if (*blocks > 0)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(cudaFuncSetAttribute((segmented_tiles<Op, InT>), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
	CUDA_TRY(cudaFuncSetAttribute((segmented_tiles<Op, InT>), cudaFuncAttributePreferredSharedMemoryCarveout,
								  cudaSharedmemCarveoutMaxShared));
	CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (segmented_tiles<Op, InT>),
														   (SegShape<Op, InT>::warps * 32), bytes));
	*blocks = *blocks > 0 ? *blocks : 1;
	known[device] = *blocks;
	return GPUAGG_CUDA_OK;
}

/* Launches a kernel that begins with seg_launch_order(). */
template <class... Params, class... Args>
static GpuaggCudaStatus
launch(void (*kernel) (Params...), unsigned blocks, int threads, int shared, cudaStream_t stream, Args... args)
{
	const DeviceFacts *facts;

	STATUS_TRY(gpuagg_device_facts(&facts));
	CUDA_TRY(launch_early(kernel, blocks, threads, shared, *facts, stream, args...));
	return GPUAGG_CUDA_OK;
}

template <class Op, class InT>
static GpuaggCudaStatus
instance_run(const SegmentedArgs *args, cudaStream_t stream)
{
	constexpr int warps = SegShape<Op, InT>::warps;

	STATUS_TRY(launch(segmented_tiles<Op, InT>, args->blocks, warps * 32,
					  (int) sizeof(SegShared<Op, InT>) * warps, stream, *args));
	if (args->blocks > 1)
		STATUS_TRY(launch(segmented_fixup<Op>, 1, SegFixup<Op>::threads, 0, stream, *args));
	return GPUAGG_CUDA_OK;
}

/* Adds an instance if it is this part's. */
template <class Op, class InT>
static void
add_instance(SegmentedInstance *table, int *count, GpuaggValueType type)
{
	if constexpr (Op::id % SEGMENTED_PARTS == SEGMENTED_PART)
		table[(*count)++] = {Op::id, type, sizeof(typename Op::State), instance_occupancy<Op, InT>,
			SegShape<Op, InT>::warps, SegShape<Op, InT>::tile, SegShape<Op, InT>::weight,
			instance_run<Op, InT>};
}

static const SegmentedInstance *
part_table(int *count)
{
	static SegmentedInstance table[MONOID_COUNT_OF_IDS + 8];
	static const int filled = [] {
		int			n = 0;

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
		add_instance<Op_##name, input_t>(table, &n, GPUAGG_VALUE_NATIVE);
#include "operators/monoid_list.h"
#undef MONOID
		/* stored types narrower than the input, which are read as they are */
		add_instance<Op_sum_i64, int16_t>(table, &n, GPUAGG_VALUE_I16);
		add_instance<Op_sum_i64, int32_t>(table, &n, GPUAGG_VALUE_I32);
		add_instance<Op_sum_f64, float>(table, &n, GPUAGG_VALUE_F32);
		add_instance<Op_accum_f64, float>(table, &n, GPUAGG_VALUE_F32);
		return n;
	} ();

	*count = filled;
	return table;
}

#define SEGMENTED_PART_NAME2(n) segmented_part##n
#define SEGMENTED_PART_NAME(n) SEGMENTED_PART_NAME2(n)
extern const SegmentedPart SEGMENTED_PART_NAME(SEGMENTED_PART);
const SegmentedPart SEGMENTED_PART_NAME(SEGMENTED_PART) = part_table;
