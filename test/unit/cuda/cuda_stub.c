/*
 * cuda_stub.c
 *	  A CUDA run time that works in host memory; see cuda_stub.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
	int n; /* number of the call that fails; 0: no fault is set */
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

static _Thread_local struct
{
	bool on;
	StubCall call;
	cudaError_t err;
	void (*effect)(void);
} armed;

void
stub_arm(StubCall call, cudaError_t err, void (*effect)(void))
{
	armed.on = true;
	armed.call = call;
	armed.err = err;
	armed.effect = effect;
}

void
stub_disarm(void)
{
	armed.on = false;
}

/*
 * Returns the error armed for this thread, if it applies to such calls. Runs its effect the first
 * time.
 */
static cudaError_t
armed_error(StubCall call)
{
	void (*effect)(void) = armed.effect;

	if (!armed.on || (armed.call != call && armed.call != STUB_ANY))
		return cudaSuccess;
	armed.effect = NULL;
	if (effect)
		effect();
	return armed.err;
}

/* Counts a call of this kind, and returns the error that the call has to return. */
static cudaError_t
call_error(StubCall call)
{
	cudaError_t err, provoked = armed_error(call);

	pthread_mutex_lock(&lock);
	if (provoked == cudaErrorIllegalAddress && sticky == cudaSuccess)
		sticky = provoked;
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
	if (err == cudaSuccess)
		err = provoked;
	pthread_mutex_unlock(&lock);
	if (err != cudaSuccess)
		last = err;
	return err;
}

cudaError_t
stub_launch(bool update)
{
	cudaError_t err = update ? armed_error(STUB_UPDATE) : cudaSuccess;

	if (err != cudaSuccess)
		last = err;
	call_error(STUB_LAUNCH);
	/* like a real launch, it also returns the unread error of an earlier call */
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
	switch (err)
	{
		case cudaErrorMemoryAllocation:
			return "out of memory";
		case cudaErrorLaunchOutOfResources:
			return "too many resources requested for launch";
		case cudaErrorIllegalAddress:
			return "an illegal memory access was encountered";
		default:
			return "an error of the stub";
	}
}

cudaError_t
cudaGetLastError(void)
{
	cudaError_t err = last;

	last = sticky;
	return err;
}

/* ---- devices ---- */

/* Returns whether the list of UUIDs, or beginnings of them, begins with one of device d. */
static bool
names_device(const char *list, int d)
{
	char uuid[64];

	snprintf(uuid, sizeof(uuid), "GPU-%08x-0000-0000-0000-000000000000", d);
	return strncmp(list, uuid, strcspn(list, ",")) == 0;
}

/*
 * If CUDA_VISIBLE_DEVICES has UUIDs, CUDA finds the devices before the first UUID that is unknown.
 */
cudaError_t
cudaGetDeviceCount(int *count)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");

	*count = stub_devices;
	if (list == NULL || strncmp(list, "GPU-", 4) != 0)
		return cudaSuccess;
	for (*count = 0; *list != '\0'; (*count)++)
	{
		int d = 0;

		while (d < stub_devices && !names_device(list, d))
			d++;
		if (d == stub_devices)
			break;
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return cudaSuccess;
}

cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = 13000;
	return cudaSuccess;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	memset(prop, 0, sizeof(*prop));
	strcpy(prop->name, "stub");
	prop->totalGlobalMem = stub_memory_bytes;
	prop->sharedMemPerBlockOptin = 227 << 10;
	prop->major = stub_capability[device] / 10;
	prop->minor = stub_capability[device] % 10;
	prop->multiProcessorCount = 132;
	prop->maxThreadsPerMultiProcessor = 2048;
	prop->l2CacheSize = 50 << 20;
	return cudaSuccess;
}

static _Thread_local int current;

cudaError_t
cudaSetDevice(int device)
{
	current = device;
	return sticky;
}

cudaError_t
cudaSetDeviceFlags(unsigned flags)
{
	(void) flags;
	return sticky;
}

/* ---- memory pools: a pool is known by the device's entry in stub_memory ---- */

size_t stub_memory_bytes = (size_t) 1 << 30;
StubMemory stub_memory[STUB_MAX_DEVICES];

static StubSharer *sharers;
static StubSharer *own_sharer;

/* Returns whether a process with this id may exist; false for 0. */
static bool
is_alive(int32_t pid)
{
	return pid != 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

bool
stub_share(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);

	if (fd < 0)
		return false;
	if (ftruncate(fd, STUB_SHARERS * sizeof(StubSharer)) == 0)
		sharers = mmap(NULL, STUB_SHARERS * sizeof(StubSharer), PROT_READ | PROT_WRITE, MAP_SHARED,
					   fd, 0);
	close(fd);
	if (sharers == NULL || sharers == MAP_FAILED)
		return false;
	for (int i = 0; i < STUB_SHARERS && own_sharer == NULL; i++)
	{
		int32_t pid = sharers[i].pid;

		if (!is_alive(pid) &&
			atomic_compare_exchange_strong(&sharers[i].pid, &pid, (int32_t) getpid()))
			own_sharer = &sharers[i];
	}
	return own_sharer != NULL;
}

void
stub_share_budget(int device, uint64_t used, uint64_t limit)
{
	if (own_sharer == NULL)
		return;
	own_sharer->used[device] = used;
	own_sharer->limit[device] = limit;
}

/* Returns the bytes of the device that no process has. */
static size_t
free_memory(int device)
{
	size_t taken = stub_memory[device].others + stub_memory[device].reserved;

	for (int i = 0; i < STUB_SHARERS && sharers; i++)
		if (&sharers[i] != own_sharer && is_alive(sharers[i].pid))
			taken += sharers[i].reserved[device];
	/* a test may give another process more than there is: it takes all that becomes free */
	return taken < stub_memory_bytes ? stub_memory_bytes - taken : 0;
}

/* Sets the size of the device's pool. The caller holds the lock. */
static void
resize_pool(int device, size_t bytes)
{
	stub_memory[device].reserved = bytes;
	if (own_sharer)
		own_sharer->reserved[device] = bytes;
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	pthread_mutex_lock(&lock);
	*total = stub_memory_bytes;
	*free_bytes = free_memory(current);
	pthread_mutex_unlock(&lock);
	return sticky;
}

cudaError_t
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	*pool = (cudaMemPool_t) &stub_memory[device];
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
	StubMemory *memory = (StubMemory *) pool;

	pthread_mutex_lock(&lock);
	*(uint64_t *) value = attr == cudaMemPoolAttrUsedMemCurrent ? memory->used : memory->reserved;
	if (attr == cudaMemPoolAttrReservedMemCurrent)
		memory->reserved += memory->grows;
	pthread_mutex_unlock(&lock);
	return sticky;
}

cudaError_t
cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	StubMemory *memory = (StubMemory *) pool;

	pthread_mutex_lock(&lock);
	keep = keep > memory->used ? keep : memory->used;
	if (memory->reserved > keep)
		resize_pool((int) (memory - stub_memory), keep);
	pthread_mutex_unlock(&lock);
	return sticky;
}

cudaError_t
cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t n)
{
	(void) pool, (void) access, (void) n;
	return call_error(STUB_OTHER);
}

cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return sticky;
}

/* ---- memory that copies between devices may still read ---- */

typedef struct Reading
{
	const char *from;
	size_t bytes;
	cudaStream_t stream;
} Reading;

static Reading readings[256];
static int nreadings;

/* Records that a copy queued on the stream reads this memory; see stub_write(). */
static void
add_reading(const void *from, size_t bytes, cudaStream_t stream)
{
	pthread_mutex_lock(&lock);
	if (nreadings < (int) (sizeof(readings) / sizeof(readings[0])))
		readings[nreadings++] = (Reading){from, bytes, stream};
	pthread_mutex_unlock(&lock);
}

/* Forgets the memory that the stream reads, because all its work is complete. */
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
			fprintf(stderr, "memory changes while another device's stream may still read it\n");
			abort();
		}
	pthread_mutex_unlock(&lock);
}

/* ---- memory ---- */

cudaError_t
cudaFree(void *at)
{
	(void) at;
	return call_error(STUB_OTHER);
}

/* Precedes each allocation. Allocations are aligned to 256 bytes, as the real ones. */
typedef struct Header
{
	size_t bytes;
	int device;
} Header;

#define HEADER_BYTES 256

/* Memory is filled, so that code that takes unwritten memory for zeros fails. */
cudaError_t
cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream)
{
	cudaError_t err = call_error(STUB_ALLOC);
	StubMemory *memory = &stub_memory[current];
	bool fits;
	char *made;

	(void) stream;
	if (err != cudaSuccess)
		return err;
	pthread_mutex_lock(&lock);
	fits = memory->used + bytes <= memory->reserved + free_memory(current);
	if (fits)
	{
		memory->used += bytes;
		if (memory->used > memory->reserved)
			resize_pool(current, memory->used);
		live++;
	}
	pthread_mutex_unlock(&lock);
	if (!fits)
		return last = cudaErrorMemoryAllocation;
	made = aligned_alloc(256, HEADER_BYTES + (bytes + 255) / 256 * 256);
	*(Header *) made = (Header){bytes, current};
	*at = made + HEADER_BYTES;
	memset(*at, 0x5a, bytes < 65536 ? bytes : 65536);
	return cudaSuccess;
}

/* Also frees memory after the context was lost, so that tests see what the server fails to free. */
cudaError_t
cudaFreeAsync(void *at, cudaStream_t stream)
{
	Header *header = (Header *) ((char *) at - HEADER_BYTES);

	stub_write(at, header->bytes, stream);
	pthread_mutex_lock(&lock);
	stub_memory[header->device].used -= header->bytes;
	live--;
	pthread_mutex_unlock(&lock);
	free(header);
	return sticky;
}

cudaError_t
cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
	cudaError_t err = call_error(STUB_OTHER);

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
	return call_error(STUB_OTHER);
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
	cudaError_t err = call_error(STUB_COPY);

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
		add_reading(from, bytes, stream);
	return err;
}

cudaError_t
cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
	cudaError_t err = call_error(STUB_COPY);

	(void) stream;
	if (err == cudaSuccess && bytes > 0)
		memset(at, value, bytes);
	return err;
}

/*
 * ---- streams and events: each is an allocation, so that tools find leaks and uses after free ----
 */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	cudaError_t err = call_error(STUB_OTHER);

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

/* Returns cudaErrorNotReady every other time; the run time records it as an error. */
static cudaError_t
ready_later(void)
{
	static _Thread_local bool asked;
	cudaError_t err = call_error(STUB_OTHER);

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
	return call_error(STUB_OTHER);
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	(void) flags;
	*(volatile char *) stream = 0;
	*(volatile char *) event = 0;
	return call_error(STUB_OTHER);
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	cudaError_t err = call_error(STUB_OTHER);

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
	return call_error(STUB_OTHER);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	*(volatile char *) event = 0;
	return call_error(STUB_OTHER);
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t began, cudaEvent_t ended)
{
	*(volatile char *) began = 0;
	*(volatile char *) ended = 0;
	*ms = 1;
	return call_error(STUB_OTHER);
}

/* Replaces dlopen in the device layer (STUB_CFLAGS): the driver is always found. */
void *
stub_dlopen(const char *name, int flags)
{
	(void) name, (void) flags;
	return &stub_devices;
}
