/*
 * runtime_memory.cpp
 *	  Memory of the emulated devices: allocations, pools, copies, registered memory of the host.
 *
 * What is allocated is poisoned; allocations end where they end, for kernels and for copies.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <map>

#include "runtime.h"

#define ALIGNMENT 256
#define POOL_CHUNK ((size_t) 32 << 20)	/* by which pools grow */
#define POISON 0xA5

struct Allocation
{
	size_t		bytes;
	int			device;
	bool		pooled;
};

static std::map<uintptr_t, Allocation> &
allocations()
{
	static std::map<uintptr_t, Allocation> all;

	return all;
}

static std::map<uintptr_t, size_t> &
registered()
{
	static std::map<uintptr_t, size_t> all;

	return all;
}

/* ---- allocations ---- */

static size_t
rounded(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static size_t
device_free(const RuntimeDevice &device)
{
	return device.memory - device.taken - device.pool.reserved;
}

/* What is not used beyond `keep` goes back to the device. */
static void
pool_trim(CUmemPoolHandle_st &pool, size_t keep)
{
	size_t		least = rounded(pool.used > keep ? pool.used : keep, POOL_CHUNK);

	if (keep <= SIZE_MAX - POOL_CHUNK && pool.reserved > least)
		pool.reserved = least;
}

void
runtime_synchronized(RuntimeDevice &device)
{
	pool_trim(device.pool, device.pool.threshold);
}

static cudaError_t
pool_take(RuntimeDevice &device, size_t bytes)
{
	CUmemPoolHandle_st &pool = device.pool;
	size_t		needed = pool.used + bytes > pool.reserved ? rounded(pool.used + bytes - pool.reserved, POOL_CHUNK) : 0;

	if (needed > device_free(device))
		needed = pool.used + bytes - pool.reserved;	/* the last chunk of the device may be smaller */
	if (needed > device_free(device))
		return cudaErrorMemoryAllocation;
	pool.used += bytes;
	pool.reserved += needed;
	return cudaSuccess;
}

static cudaError_t
allocate(RuntimeDevice &device, void **at, size_t bytes, bool pooled)
{
	size_t		whole = rounded(bytes, ALIGNMENT);
	cudaError_t error = cudaSuccess;

	if (whole < bytes || whole > device.memory)
		return cudaErrorMemoryAllocation;
	if (pooled)
		error = pool_take(device, whole);
	else
	{
		if (whole > device_free(device))
			pool_trim(device.pool, 0);
		if (whole > device_free(device))
			error = cudaErrorMemoryAllocation;
		else
			device.taken += whole;
	}
	if (error != cudaSuccess)
		return error;
	*at = aligned_alloc(ALIGNMENT, whole);
	if (*at == nullptr)
	{
		(pooled ? device.pool.used : device.taken) -= whole;
		return cudaErrorMemoryAllocation;
	}
	memset(*at, POISON, whole);
	allocations()[(uintptr_t) *at] = {bytes, device.number, pooled};
	emu_memory_add(*at, bytes);
	return cudaSuccess;
}

static cudaError_t
release(void *at)
{
	auto		found = allocations().find((uintptr_t) at);

	if (at == nullptr)
		return cudaSuccess;
	if (found == allocations().end())
		return cudaErrorInvalidValue;

	RuntimeDevice &device = runtime_device(found->second.device);

	(found->second.pooled ? device.pool.used : device.taken) -= rounded(found->second.bytes, ALIGNMENT);
	emu_memory_remove(at);
	free(at);
	allocations().erase(found);
	return cudaSuccess;
}

cudaError_t
cudaMalloc(void **at, size_t bytes)
{
	return runtime_call([&](RuntimeDevice &device) {
		*at = nullptr;
		return bytes == 0 ? cudaSuccess : allocate(device, at, bytes, false);
	});
}

cudaError_t
cudaFree(void *at)
{
	return runtime_call([&](RuntimeDevice &device) {
		runtime_synchronized(device);
		return release(at);
	});
}

cudaError_t
cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &device) {
		return bytes == 0 ? cudaErrorInvalidValue : allocate(device, at, bytes, true);
	});
}

cudaError_t
cudaFreeAsync(void *at, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) { return release(at); });
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	return runtime_call([&](RuntimeDevice &device) {
		*free_bytes = device_free(device);
		*total = device.memory;
		return cudaSuccess;
	});
}

/* ---- pools ---- */

cudaError_t
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int number)
{
	return runtime_call([&](RuntimeDevice &) {
		if (number < 0 || number >= runtime_devices())
			return cudaErrorInvalidDevice;
		*pool = &runtime_device(number).pool;
		return cudaSuccess;
	});
}

cudaError_t
cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
	return runtime_call([&](RuntimeDevice &) {
		if (attribute != cudaMemPoolAttrReleaseThreshold)
			return cudaErrorNotSupported;
		pool->threshold = *(uint64_t *) value;
		return cudaSuccess;
	});
}

cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
	return runtime_call([&](RuntimeDevice &) {
		uint64_t   *result = (uint64_t *) value;

		if (attribute == cudaMemPoolAttrUsedMemCurrent)
			*result = pool->used;
		else if (attribute == cudaMemPoolAttrReservedMemCurrent)
			*result = pool->reserved;
		else if (attribute == cudaMemPoolAttrReleaseThreshold)
			*result = pool->threshold;
		else
			return cudaErrorNotSupported;
		return cudaSuccess;
	});
}

cudaError_t
cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	return runtime_call([&](RuntimeDevice &) {
		pool_trim(*pool, keep);
		return cudaSuccess;
	});
}

cudaError_t
cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc *access, size_t n)
{
	return runtime_call([&](RuntimeDevice &) {
		for (size_t i = 0; i < n; i++)
			if (access[i].location.type != cudaMemLocationTypeDevice || access[i].location.id < 0 ||
				access[i].location.id >= runtime_devices())
				return cudaErrorInvalidDevice;
		return cudaSuccess;
	});
}

cudaError_t
cudaDeviceCanAccessPeer(int *can, int number, int peer)
{
	return runtime_call([&](RuntimeDevice &) {
		if (number < 0 || peer < 0 || number >= runtime_devices() || peer >= runtime_devices())
			return cudaErrorInvalidDevice;
		*can = number != peer;
		return cudaSuccess;
	});
}

/* ---- copies ---- */

enum Place
{
	PLACE_DEVICE,				/* all of it in one allocation */
	PLACE_HOST,					/* none of it in any */
	PLACE_BOTH
};

static Place
place_of(const void *at, size_t bytes)
{
	uintptr_t	first = (uintptr_t) at;
	auto		after = allocations().lower_bound(first + bytes);

	if (after == allocations().begin())
		return PLACE_HOST;

	/* the last one that starts before the end */
	auto		before = std::prev(after);
	uintptr_t	end = before->first + before->second.bytes;

	if (end <= first)
		return PLACE_HOST;
	return before->first <= first && first + bytes <= end ? PLACE_DEVICE : PLACE_BOTH;
}

static cudaError_t
copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	if (bytes == 0)
		return cudaSuccess;

	Place		target = place_of(to, bytes),
				source = place_of(from, bytes);

	if (target == PLACE_BOTH || source == PLACE_BOTH || kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
		return cudaErrorInvalidValue;
	if (kind != cudaMemcpyDefault &&
		((target == PLACE_DEVICE) != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
		 (source == PLACE_DEVICE) != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)))
		return cudaErrorInvalidValue;
	/* CUDA leaves copies between parts that overlap undefined */
	if ((uintptr_t) to < (uintptr_t) from + bytes && (uintptr_t) from < (uintptr_t) to + bytes)
		return cudaErrorInvalidValue;
	memcpy(to, from, bytes);
	return cudaSuccess;
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	return runtime_call([&](RuntimeDevice &) { return copy(to, from, bytes, kind); });
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) { return copy(to, from, bytes, kind); });
}

cudaError_t
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
				  cudaMemcpyKind kind, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) {
		cudaError_t error = width > to_pitch || width > from_pitch ? cudaErrorInvalidValue : cudaSuccess;

		for (size_t y = 0; y < height && error == cudaSuccess; y++)
			error = copy((char *) to + y * to_pitch, (const char *) from + y * from_pitch, width, kind);
		return error;
	});
}

/* Whether memory of one allocation is this device's. */
static bool
lies_on(const void *at, int number)
{
	auto		after = allocations().upper_bound((uintptr_t) at);

	return after != allocations().begin() && std::prev(after)->second.device == number;
}

cudaError_t
cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) {
		if (bytes > 0 && (!lies_on(to, to_device) || !lies_on(from, from_device)))
			return cudaErrorInvalidValue;
		return copy(to, from, bytes, cudaMemcpyDeviceToDevice);
	});
}

static cudaError_t
set(void *at, int value, size_t bytes)
{
	if (bytes > 0 && place_of(at, bytes) != PLACE_DEVICE)
		return cudaErrorInvalidValue;
	if (bytes > 0)
		memset(at, value, bytes);
	return cudaSuccess;
}

cudaError_t
cudaMemset(void *at, int value, size_t bytes)
{
	return runtime_call([&](RuntimeDevice &) { return set(at, value, bytes); });
}

cudaError_t
cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
	return runtime_stream_call(stream, [&](RuntimeDevice &) { return set(at, value, bytes); });
}

/* ---- memory of the host ---- */

cudaError_t
cudaHostRegister(void *at, size_t bytes, unsigned)
{
	return runtime_call([&](RuntimeDevice &) {
		uintptr_t	first = (uintptr_t) at;

		if (at == nullptr || bytes == 0)
			return cudaErrorInvalidValue;

		auto		after = registered().lower_bound(first + bytes);

		if (after != registered().begin() && std::prev(after)->first + std::prev(after)->second > first)
			return cudaErrorHostMemoryAlreadyRegistered;
		registered()[first] = bytes;
		emu_memory_add(at, bytes);
		return cudaSuccess;
	});
}

cudaError_t
cudaHostUnregister(void *at)
{
	return runtime_call([&](RuntimeDevice &) {
		if (registered().erase((uintptr_t) at) == 0)
			return cudaErrorHostMemoryNotRegistered;
		emu_memory_remove(at);
		return cudaSuccess;
	});
}

/* ---- pinned memory of the runtime's ---- */

cudaError_t
cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
	*at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (*at == nullptr)
		return cudaErrorMemoryAllocation;
	memset(*at, 0xA5, bytes);
	return cudaHostRegister(*at, bytes, flags);
}

cudaError_t
cudaFreeHost(void *at)
{
	cudaError_t err = at ? cudaHostUnregister(at) : cudaSuccess;

	if (err == cudaSuccess)
		free(at);
	return err;
}
