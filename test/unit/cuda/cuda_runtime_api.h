/*
 * cuda_runtime_api.h
 *	  The part of the CUDA run-time API that the server's device layer uses. It is declared here for
 *	  the stub (cuda_stub.c), so that tests need no CUDA.
 *
 * Names, values and meaning are those of the CUDA run-time API.
 */
#ifndef GPUAGG_STUB_CUDA_RUNTIME_API_H
#define GPUAGG_STUB_CUDA_RUNTIME_API_H

#define CUDART_VERSION 13000

#include <stddef.h>

typedef enum cudaError
{
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidKernelImage = 200,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorInvalidPtx = 218,
	cudaErrorJitCompilerNotFound = 221,
	cudaErrorUnsupportedPtxVersion = 222,
	cudaErrorJitCompilationDisabled = 223,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorLaunchOutOfResources = 701,
	cudaErrorCooperativeLaunchTooLarge = 720,
	cudaErrorNotSupported = 801
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUmemPool_st *cudaMemPool_t;

typedef enum cudaMemcpyKind
{
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice
} cudaMemcpyKind;

typedef enum cudaMemPoolAttr
{
	cudaMemPoolAttrReleaseThreshold = 4,
	cudaMemPoolAttrReservedMemCurrent = 5,
	cudaMemPoolAttrUsedMemCurrent = 7
} cudaMemPoolAttr;

typedef enum cudaMemLocationType
{
	cudaMemLocationTypeDevice = 1
} cudaMemLocationType;

typedef enum cudaMemAccessFlags
{
	cudaMemAccessFlagsProtReadWrite = 3
} cudaMemAccessFlags;

struct cudaMemAccessDesc
{
	struct
	{
		cudaMemLocationType type;
		int id;
	} location;
	cudaMemAccessFlags flags;
};

enum
{
	cudaStreamNonBlocking = 1,
	cudaEventDefault = 0,
	cudaEventBlockingSync = 1,
	cudaDeviceScheduleBlockingSync = 4,
	cudaHostRegisterPortable = 1,
	cudaHostAllocPortable = 1
};

struct cudaDeviceProp
{
	char name[256];
	size_t totalGlobalMem;
	size_t sharedMemPerBlockOptin;
	int major;
	int minor;
	int multiProcessorCount;
	int maxThreadsPerMultiProcessor;
	int l2CacheSize;
};

extern const char *cudaGetErrorName(cudaError_t err);
extern const char *cudaGetErrorString(cudaError_t err);
extern cudaError_t cudaGetLastError(void);

extern cudaError_t cudaGetDeviceCount(int *count);
extern cudaError_t cudaDriverGetVersion(int *version);
extern cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
extern cudaError_t cudaSetDevice(int device);
extern cudaError_t cudaSetDeviceFlags(unsigned flags);
extern cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
extern cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
extern cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
extern cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
extern cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);

extern cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access,
										size_t n);
extern cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);

extern cudaError_t cudaFree(void *at);
extern cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream);
extern cudaError_t cudaFreeAsync(void *at, cudaStream_t stream);
extern cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags);
extern cudaError_t cudaFreeHost(void *at);
extern cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags);
extern cudaError_t cudaHostUnregister(void *at);
extern cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
								   cudaStream_t stream);
extern cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
									   size_t bytes, cudaStream_t stream);
extern cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream);

extern cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
extern cudaError_t cudaStreamDestroy(cudaStream_t stream);
extern cudaError_t cudaStreamQuery(cudaStream_t stream);
extern cudaError_t cudaStreamSynchronize(cudaStream_t stream);
extern cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
extern cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
extern cudaError_t cudaEventDestroy(cudaEvent_t event);
extern cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
extern cudaError_t cudaEventQuery(cudaEvent_t event);
extern cudaError_t cudaEventSynchronize(cudaEvent_t event);
extern cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t began, cudaEvent_t ended);

#endif /* GPUAGG_STUB_CUDA_RUNTIME_API_H */
