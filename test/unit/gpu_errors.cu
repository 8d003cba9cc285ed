/*
 * gpu_errors.cu
 *	  Tests how the library reports a CUDA call that failed.
 */
#include "gpu_group_table.h"

/* Code and text of the error are kept, and the next call does not return it again. */
GPU_TEST(error_code)
{
	Table table(8, 100);
	GpuaggGroupTable broken = table.t;
	int64_t groups;

	if (gpu_test_quick())
	{
		gpu_test_skip("compute-sanitizer reports calls that fail");
		return;
	}
	/* Memory that does not exist: the call itself fails, so that the device is still usable. */
	broken.slots = (void *) (uintptr_t) 4096;
	CHECK(gpuagg_group_init(&broken, nullptr) == GPUAGG_CUDA_ERROR,
		  "a table at an invalid address was initialized");
	CHECK(gpuagg_cuda_last_code() == cudaErrorInvalidValue, "code %d: %s", gpuagg_cuda_last_code(),
		  gpuagg_cuda_last_error());
	CHECK(strstr(gpuagg_cuda_last_error(), "cudaErrorInvalidValue") != nullptr,
		  "the text of the error is \"%s\"", gpuagg_cuda_last_error());
	CHECK(cudaPeekAtLastError() == cudaSuccess, "the error is still there for the next call");
	STATUS_MUST(gpuagg_group_init(&table.t, nullptr));
	CHECK(table.outcome(&groups) == GPUAGG_CUDA_OK && groups == 0,
		  "the next call failed, or found %ld groups", (long) groups);
}
