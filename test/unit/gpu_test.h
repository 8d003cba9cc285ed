/*
 * gpu_test.h
 *	  Harness of the GPU unit tests: one executable, many tests.
 *
 * A file test/unit/gpu_*.cu defines tests with GPU_TEST(name) { ... } and
 * checks with CHECK(condition, format, ...).  Device memory comes from
 * DeviceArray, which poisons what it allocates and guards both ends.
 * Arguments of the executable select tests by substring; -l lists them. --quick
 * and --unpoisoned are for compute-sanitizer (see below).
 */
#ifndef GPUAGG_GPU_TEST_H
#define GPUAGG_GPU_TEST_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "gpuagg_cuda.h"

typedef void (*GpuTestFunction)();

struct GpuTest
{
	const char *name;
	GpuTestFunction run;
	GpuTest *next;

	GpuTest(const char *test_name, GpuTestFunction function);
};

#define GPU_TEST(name) \
	static void test_##name(); \
	static GpuTest register_##name(#name, test_##name); \
	static void test_##name()

/* Counts a failure of the running test; the first few are printed. */
void gpu_test_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(cond, ...) \
	do \
	{ \
		if (!(cond)) \
			gpu_test_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* A CUDA call that must succeed for the test to make sense. */
#define CUDA_MUST(call) \
	do \
	{ \
		cudaError_t must_err = (call); \
		if (must_err != cudaSuccess) \
		{ \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
					cudaGetErrorString(must_err)); \
			exit(2); \
		} \
	} while (0)

#define STATUS_MUST(call) \
	do \
	{ \
		GpuaggCudaStatus must_status = (call); \
		if (must_status != GPUAGG_CUDA_OK) \
		{ \
			fprintf(stderr, "%s:%d: %s: status %d (%s)\n", __FILE__, __LINE__, #call, \
					(int) must_status, gpuagg_cuda_last_error()); \
			exit(2); \
		} \
	} while (0)

/* True when run with --quick, as under compute-sanitizer. */
bool gpu_test_quick();

/* Returns the number of rows, or rounds, of a test: as usual or with --quick. */
size_t gpu_test_rows(size_t usual, size_t when_quick);

/*
 * True when run with --unpoisoned, as under initcheck, which takes a memset for
 * an initialization and then sees nothing.
 */
bool gpu_test_unpoisoned();

/*
 * Says why the running test is left out; it counts as skipped unless a check of it failed.  Return
 * after it.
 */
void gpu_test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether the device has so many bytes free, with some to spare; if not, the test is skipped. */
bool gpu_test_has_memory(size_t bytes);

/* Reproducible random numbers (splitmix64). */
struct Random
{
	uint64_t state;

	explicit Random(uint64_t seed) : state(seed)
	{
	}
	uint64_t
	next()
	{
		uint64_t z = (state += 0x9E3779B97F4A7C15ull);

		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
		return z ^ (z >> 31);
	}
	/* uniform in [0, limit) */
	uint64_t
	below(uint64_t limit)
	{
		return limit ? next() % limit : 0;
	}
	double
	uniform()
	{
		return (double) (next() >> 11) * 0x1p-53;
	}
};

/*
 * Device memory of `count` elements that starts `shift` elements after a
 * 256-byte boundary, poisoned, with guard bytes before and after; with --quick
 * without, so that compute-sanitizer sees what reads beyond the data.  With
 * --unpoisoned what lies before a shifted start is poisoned all the same: kernels
 * fetch whole lines of memory from before an unaligned start, and use none of it.
 */
template <typename T> class DeviceArray
{
	static const unsigned char poison = 0xA5;
	char *memory;
	size_t guard;
	size_t lead; /* bytes before the data */
	size_t total;

  public:
	size_t count;

	explicit DeviceArray(size_t n, size_t shift = 0)
		: guard(gpu_test_quick() || gpu_test_unpoisoned() ? 0 : 256),
		  lead(guard + shift * sizeof(T)), count(n)
	{
		total = lead + n * sizeof(T) + guard;
		CUDA_MUST(cudaMalloc((void **) &memory, total > 0 ? total : 1));
		CUDA_MUST(cudaMemset(memory, poison, gpu_test_unpoisoned() ? lead : total));
	}
	explicit DeviceArray(const std::vector<T> &host, size_t shift = 0)
		: DeviceArray(host.size(), shift)
	{
		put(host);
	}
	DeviceArray(const DeviceArray &) = delete;
	DeviceArray &operator=(const DeviceArray &) = delete;
	~DeviceArray()
	{
		cudaFree(memory);
	}

	T *
	get() const
	{
		return (T *) (memory + lead);
	}
	operator T *() const
	{
		return get();
	}

	void
	put(const std::vector<T> &host)
	{
		if (!host.empty())
			CUDA_MUST(
				cudaMemcpy(get(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	}
	/*
	 * Waits for the device, then copies back the first n elements.  Of an array
	 * that is filled in part, only that part should be asked for: initcheck reports
	 * copies of what nobody wrote.
	 */
	std::vector<T>
	take(size_t n) const
	{
		std::vector<T> host(n < count ? n : count);

		CUDA_MUST(cudaDeviceSynchronize());
		if (!host.empty())
			CUDA_MUST(
				cudaMemcpy(host.data(), get(), host.size() * sizeof(T), cudaMemcpyDeviceToHost));
		return host;
	}
	std::vector<T>
	take() const
	{
		return take(count);
	}
	/* Whether nothing was written before or after the data. */
	bool
	guards_intact() const
	{
		std::vector<unsigned char> edge(lead + guard);

		CUDA_MUST(cudaDeviceSynchronize());
		if (lead > 0)
			CUDA_MUST(cudaMemcpy(edge.data(), memory, lead, cudaMemcpyDeviceToHost));
		if (guard > 0)
			CUDA_MUST(cudaMemcpy(edge.data() + lead, memory + total - guard, guard,
								 cudaMemcpyDeviceToHost));
		for (unsigned char c : edge)
			if (c != poison)
				return false;
		return true;
	}
};

#endif /* GPUAGG_GPU_TEST_H */
