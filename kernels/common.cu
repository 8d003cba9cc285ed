/*
 * common.cu
 *	  The last error of each thread, and the facts of each device.
 *
 * Thread-safe.  Facts are read once for each device and kept until the process ends.
 */
#include "common.cuh"

#include <stdio.h>

#include <mutex>

static thread_local char last_error[512] = "no error";
static thread_local cudaError_t last_code = cudaSuccess;

GPUAGG_API const char *
gpuagg_cuda_last_error(void)
{
	return last_error;
}

GPUAGG_API int
gpuagg_cuda_last_code(void)
{
	return last_code;
}

GpuaggCudaStatus
gpuagg_cuda_fail(cudaError_t err, const char *call, const char *file, int line)
{
	last_code = err;
	snprintf(last_error, sizeof(last_error), "%s (%s) in %s at %s:%d", cudaGetErrorString(err),
			 cudaGetErrorName(err), call, file, line);
	/* clears the error, so that the check after the next launch does not find it */
	cudaGetLastError();
	return GPUAGG_CUDA_ERROR;
}

/* An empty kernel. read_code_facts() reads its attributes and its occupancy. */
static __global__ void
pair_kernel()
{
}

/*
 * Sets f->built_for_90 and f->pairs.  The other members must be set before.  The PTX version of a
 * kernel is its __CUDA_ARCH__, also if the driver compiled the kernel from PTX.
 */
static GpuaggCudaStatus
read_code_facts(DeviceFacts *f)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};
	cudaFuncAttributes code;

	CUDA_TRY(cudaFuncGetAttributes(&code, pair_kernel));
	f->built_for_90 = f->major >= 9 && code.ptxVersion >= 90;
	f->pairs = 0;
	if (!f->built_for_90)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(cudaFuncSetAttribute(pair_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
								  (int) f->smem_per_block));
	config.gridDim = dim3(2);
	config.blockDim = dim3(1024);
	config.dynamicSmemBytes = f->smem_per_block;
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CUDA_TRY(cudaOccupancyMaxActiveClusters(&f->pairs, pair_kernel, &config));
	return GPUAGG_CUDA_OK;
}

/* Sets *f to the facts of `device`, which must be the current device. */
static GpuaggCudaStatus
read_facts(int device, DeviceFacts *f)
{
	int l2, smem_sm, smem_block;

	CUDA_TRY(cudaDeviceGetAttribute(&f->sms, cudaDevAttrMultiProcessorCount, device));
	CUDA_TRY(cudaDeviceGetAttribute(&f->major, cudaDevAttrComputeCapabilityMajor, device));
	CUDA_TRY(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
	CUDA_TRY(cudaDeviceGetAttribute(&smem_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
	CUDA_TRY(cudaDeviceGetAttribute(&smem_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
	CUDA_TRY(
		cudaDeviceGetAttribute(&f->threads_per_sm, cudaDevAttrMaxThreadsPerMultiProcessor, device));
	f->l2_bytes = l2;
	f->smem_per_sm = smem_sm;
	f->smem_per_block = smem_block;
	return read_code_facts(f);
}

GpuaggCudaStatus
gpuagg_device_facts(const DeviceFacts **facts)
{
	static std::mutex lock;
	static DeviceFacts known[GPUAGG_MAX_DEVICES];
	static bool have[GPUAGG_MAX_DEVICES];
	int device;

	CUDA_TRY(cudaGetDevice(&device));
	if (device >= GPUAGG_MAX_DEVICES)
		return GPUAGG_CUDA_INVALID;
	std::lock_guard<std::mutex> guard(lock);
	if (!have[device])
	{
		STATUS_TRY(read_facts(device, &known[device]));
		have[device] = true;
	}
	*facts = &known[device];
	return GPUAGG_CUDA_OK;
}
