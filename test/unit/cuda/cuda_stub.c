/*
 * cuda_stub.c
 *	  A CUDA run time that works in host memory; see cuda_stub.h.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_stub.h"

int stub_devices = 1;
int stub_capability[STUB_MAX_DEVICES] = {90, 90, 90, 90};
int stub_binary = 90;
int stub_ptx = 90;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counts[STUB_CALLS];
static int live;
static cudaError_t sticky;
static struct
{
	StubCall call;
	int n; /* 0: none */
	bool on;
	cudaError_t err;
	bool happened;
} fault;

static _Thread_local cudaError_t last;

void
stub_fail(StubCall call, int n, bool on, cudaError_t err)
{
	pthread_mutex_lock(&lock);
	memset(counts, 0, sizeof(counts));
	sticky = cudaSuccess;
	fault.call = call;
	fault.n = n;
	fault.on = on;
	fault.err = err;
	fault.happened = false;
	pthread_mutex_unlock(&lock);
}

void
stub_mend(void)
{
	bool happened = fault.happened;

	stub_fail(STUB_ALLOC, 0, false, cudaSuccess);
	fault.happened = happened;
	last = cudaSuccess;
}

int
stub_count(StubCall call)
{
	return counts[call];
}

bool
stub_has_failed(void)
{
	return fault.happened;
}

int
stub_live(void)
{
	return live;
}

/* What a call of this kind returns, apart from what it does. */
static cudaError_t
happen(StubCall call)
{
	cudaError_t err;

	pthread_mutex_lock(&lock);
	err = sticky;
	counts[call]++;
	if (err == cudaSuccess && fault.n > 0 && call == fault.call &&
		(counts[call] == fault.n || (fault.on && counts[call] > fault.n)))
	{
		err = fault.err;
		fault.happened = true;
		if (err == cudaErrorIllegalAddress)
			sticky = err;
	}
	pthread_mutex_unlock(&lock);
	if (err != cudaSuccess)
		last = err;
	return err;
}

cudaError_t
stub_launch(void)
{
	/* like a real launch, also reports the error of an earlier call that was not read */
	happen(STUB_LAUNCH);
	return cudaGetLastError();
}

/* ---- errors ---- */

const char *
cudaGetErrorName(cudaError_t err)
{
	switch (err)
	{
		case cudaErrorMemoryAllocation:
			return "cudaErrorMemoryAllocation";
		case cudaErrorLaunchOutOfResources:
			return "cudaErrorLaunchOutOfResources";
		case cudaErrorIllegalAddress:
			return "cudaErrorIllegalAddress";
		default:
			return "cudaError";
	}
}

const char *
cudaGetErrorString(cudaError_t err)
{
	return err == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stub";
}

cudaError_t
cudaGetLastError(void)
{
	cudaError_t err = last;

	last = sticky;
	return err;
}

/* ---- devices ---- */

cudaError_t
cudaGetDeviceCount(int *count)
{
	*count = stub_devices;
	return cudaSuccess;
}

cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = 13000;
	return cudaSuccess;
}

size_t stub_others;
size_t stub_reserved;
size_t stub_used;
size_t stub_grows;

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	memset(prop, 0, sizeof(*prop));
	strcpy(prop->name, "stub");
	prop->totalGlobalMem = (size_t) 1 << 30;
	prop->sharedMemPerBlockOptin = 227 << 10;
	prop->major = stub_capability[device] / 10;
	prop->minor = stub_capability[device] % 10;
	prop->multiProcessorCount = 132;
	prop->maxThreadsPerMultiProcessor = 2048;
	prop->l2CacheSize = 50 << 20;
	return cudaSuccess;
}

cudaError_t
cudaSetDevice(int device)
{
	(void) device;
	return sticky;
}

cudaError_t
cudaSetDeviceFlags(unsigned flags)
{
	(void) flags;
	return sticky;
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	*total = (size_t) 1 << 30;
	*free_bytes = *total - stub_others - stub_reserved;
	return sticky;
}

cudaError_t
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	(void) device;
	*pool = NULL;
	return sticky;
}

cudaError_t
cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value)
{
	(void) pool, (void) attr, (void) value;
	return sticky;
}

cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value)
{
	(void) pool;
	*(uint64_t *) value = attr == cudaMemPoolAttrUsedMemCurrent ? stub_used : stub_reserved;
	if (attr == cudaMemPoolAttrReservedMemCurrent)
		stub_reserved += stub_grows;
	return sticky;
}

cudaError_t
cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	(void) pool;
	if (keep < stub_used)
		keep = stub_used;
	if (stub_reserved > keep)
		stub_reserved = keep;
	return sticky;
}

cudaError_t
cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t n)
{
	(void) pool, (void) access, (void) n;
	return happen(STUB_OTHER);
}

cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return sticky;
}

/* ---- memory that copies between devices may still be reading ---- */

typedef struct Reading
{
	const char *from;
	size_t bytes;
	cudaStream_t stream;
} Reading;

static Reading readings[256];
static int nreadings;

static void
note_reading(const void *from, size_t bytes, cudaStream_t stream)
{
	pthread_mutex_lock(&lock);
	if (nreadings < (int) (sizeof(readings) / sizeof(readings[0])))
		readings[nreadings++] = (Reading){from, bytes, stream};
	pthread_mutex_unlock(&lock);
}

/* All that was asked of the stream is done. */
static void
end_readings(cudaStream_t stream)
{
	int kept = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < nreadings; i++)
		if (readings[i].stream != stream)
			readings[kept++] = readings[i];
	nreadings = kept;
	pthread_mutex_unlock(&lock);
}

void
stub_write(const void *at, size_t bytes, cudaStream_t stream)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nreadings; i++)
		if (readings[i].stream != stream && readings[i].from < (const char *) at + bytes &&
			(const char *) at < readings[i].from + readings[i].bytes)
		{
			fprintf(stderr, "memory changes that another device's stream may still be reading\n");
			abort();
		}
	pthread_mutex_unlock(&lock);
}

/* ---- memory ---- */

cudaError_t
cudaFree(void *at)
{
	(void) at;
	return happen(STUB_OTHER);
}

/* What is there before it is written is no zero. */
cudaError_t
cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream)
{
	cudaError_t err = happen(STUB_ALLOC);

	(void) stream;
	if (err != cudaSuccess)
		return err;
	*at = aligned_alloc(256, (bytes + 255) / 256 * 256);
	memset(*at, 0x5a, bytes < 65536 ? bytes : 65536);
	__atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
	return cudaSuccess;
}

/* With the context lost as well, so that tests may see what the server would forget. */
cudaError_t
cudaFreeAsync(void *at, cudaStream_t stream)
{
	stub_write(at, malloc_usable_size(at), stream);
	free(at);
	__atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
	return sticky;
}

cudaError_t
cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
	cudaError_t err = happen(STUB_OTHER);

	(void) flags;
	if (err == cudaSuccess)
		*at = malloc(bytes);
	return err;
}

cudaError_t
cudaFreeHost(void *at)
{
	free(at);
	return sticky;
}

cudaError_t
cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
	(void) at, (void) bytes, (void) flags;
	return happen(STUB_OTHER);
}

cudaError_t
cudaHostUnregister(void *at)
{
	(void) at;
	return sticky;
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t err = happen(STUB_COPY);

	(void) kind, (void) stream;
	if (err == cudaSuccess && bytes > 0)
		memcpy(to, from, bytes);
	return err;
}

cudaError_t
cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
					cudaStream_t stream)
{
	cudaError_t err = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);

	(void) to_device, (void) from_device;
	if (err == cudaSuccess)
		note_reading(from, bytes, stream);
	return err;
}

cudaError_t
cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
	cudaError_t err = happen(STUB_COPY);

	(void) stream;
	if (err == cudaSuccess && bytes > 0)
		memset(at, value, bytes);
	return err;
}

/* ---- streams and events: memory of their own, so that leaks and use after the end show ---- */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	cudaError_t err = happen(STUB_OTHER);

	(void) flags;
	if (err == cudaSuccess)
		*stream = malloc(1);
	return err;
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	end_readings(stream);
	free(stream);
	return sticky;
}

/* What is asked for is not ready the first time; the run time takes that for an error. */
static cudaError_t
ready_later(void)
{
	static _Thread_local bool asked;
	cudaError_t err = happen(STUB_OTHER);

	asked = err == cudaSuccess && !asked;
	return asked ? (last = cudaErrorNotReady) : err;
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
	cudaError_t err;

	*(volatile char *) stream = 0;
	err = ready_later();
	if (err == cudaSuccess)
		end_readings(stream);
	return err;
}

cudaError_t
cudaEventQuery(cudaEvent_t event)
{
	*(volatile char *) event = 0;
	return ready_later();
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	*(volatile char *) stream = 0;
	end_readings(stream);
	return happen(STUB_OTHER);
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	(void) flags;
	*(volatile char *) stream = 0;
	*(volatile char *) event = 0;
	return happen(STUB_OTHER);
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	cudaError_t err = happen(STUB_OTHER);

	(void) flags;
	if (err == cudaSuccess)
		*event = malloc(1);
	return err;
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
	free(event);
	return sticky;
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	*(volatile char *) stream = 0;
	*(volatile char *) event = 0;
	return happen(STUB_OTHER);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	*(volatile char *) event = 0;
	return happen(STUB_OTHER);
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t began, cudaEvent_t ended)
{
	*(volatile char *) began = 0;
	*(volatile char *) ended = 0;
	*ms = 1;
	return happen(STUB_OTHER);
}

/* In place of dlopen (STUB_CFLAGS): the driver is there. */
void *
stub_dlopen(const char *name, int flags)
{
	(void) name, (void) flags;
	return &stub_devices;
}
