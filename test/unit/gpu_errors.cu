/*
 * gpu_errors.cu
 *	  What callers learn of a CUDA call that failed.
 */
#include "gpu_group_table.h"

/* The code and the text are kept, and the next call does not meet the error again. */
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
	/* memory that is nobody's: refused by the call itself, so that the device stays as it is */
	broken.slots = (void *) (uintptr_t) 4096;
	CHECK(gpuagg_group_init(&broken, nullptr) == GPUAGG_CUDA_ERROR,
		  "a table at no address was made");
	CHECK(gpuagg_cuda_last_code() == cudaErrorInvalidValue, "code %d: %s", gpuagg_cuda_last_code(),
		  gpuagg_cuda_last_error());
	CHECK(strstr(gpuagg_cuda_last_error(), "cudaErrorInvalidValue") != nullptr, "text: %s",
		  gpuagg_cuda_last_error());
	CHECK(cudaPeekAtLastError() == cudaSuccess, "the error is left to the next call");
	STATUS_MUST(gpuagg_group_init(&table.t, nullptr));
	CHECK(table.outcome(&groups) == GPUAGG_CUDA_OK && groups == 0,
		  "the next call failed, or found %ld groups", (long) groups);
}
