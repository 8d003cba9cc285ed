/*
 * gpu_test.h
 *	  The framework of the GPU unit tests, which are one program.
 *
 * A file gpu_*.cu defines tests with GPU_TEST(name) { ... }. They check with CHECK(condition,
 * format, ...): the first ten failures of a test print their message. Device memory comes from
 * DeviceArray, which poisons what it allocates and guards both ends.
 *
 * The program's arguments select tests by parts of their names; -l lists the names. --quick and
 * --unpoisoned are for compute-sanitizer (see below).
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

/* Counts a failure of the running test. The first ten are printed. */
void gpu_test_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(cond, ...) \
	do \
	{ \
		if (!(cond)) \
			gpu_test_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/*
 * CUDA_MUST and STATUS_MUST end the program if a call fails without which the test makes no sense.
 */
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

/* Returns whether the program runs with --quick, as under compute-sanitizer. */
bool gpu_test_quick();

/* Returns the number of rows, or rounds, of a test: the usual one or that for --quick. */
size_t gpu_test_rows(size_t usual, size_t when_quick);

/*
 * Returns whether the program runs with --unpoisoned, as under initcheck. That tool considers
 * memory initialized after a memset, and would find no reads of unwritten memory.
 */
bool gpu_test_unpoisoned();

/*
 * Skips the running test, for a reason. A test that also has failures counts as failed. The caller
 * returns from the test.
 */
void gpu_test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Returns whether the device has this number of bytes free, and some to spare. If not, skips the
 * test.
 */
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
	/* Returns a uniform number in [0, limit), or 0 if limit is 0. */
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
 * Device memory for `count` elements. They begin `shift` elements after a multiple of 256 bytes.
 * The memory is poisoned, and has guard bytes before and after the elements.
 *
 * With --quick there are no guard bytes, so that compute-sanitizer sees accesses outside of the
 * data. With --unpoisoned only the bytes before a shifted start are poisoned: kernels read whole
 * cache lines there, but use none of those bytes.
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
	 * Waits for the device, and returns copies of the first n elements. If only some elements were
	 * written, copy only these: initcheck reports copies of unwritten memory.
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
	/* Returns whether the bytes before and after the data are unchanged. */
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
