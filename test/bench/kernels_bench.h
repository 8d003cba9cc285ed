/*
 * kernels_bench.h
 *	  Harness of the kernel benchmark: parts, timing, the table.
 *
 * A file test/bench/kernels_*.cu defines a part with BENCH_PART(a, "title")
 * { ... }.  Each row of the table is one problem: our time, the roofline, the
 * peers' times and the aims set for it.  Check the result before you time it.
 * Arguments of the executable choose parts by letter; --quick lowers the
 * repeats, --max=N bounds the elements (2^N).
 */
#ifndef GPUAGG_KERNELS_BENCH_H
#define GPUAGG_KERNELS_BENCH_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <functional>
#include <string>
#include <vector>

#include "gpuagg_cuda.h"

typedef void (*BenchFunction)();

struct BenchPart
{
	char letter;
	const char *title;
	BenchFunction run;
	BenchPart *next;

	BenchPart(char part, const char *part_title, BenchFunction function);
};

#define BENCH_PART(part, part_title) \
	static void bench_part_##part(); \
	static BenchPart register_part_##part(#part[0], part_title, bench_part_##part); \
	static void bench_part_##part()

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

/* Read bandwidth of this device in bytes a second, measured once in this run. */
double bench_read_bandwidth();

/* Bytes of the L2 cache. */
size_t bench_l2_bytes();

/* The largest problem asked for, as log2 of the elements; 28 unless --max. */
int bench_max_log2();

/* Whether --quick was given: fewer repeats, fewer points. */
bool bench_quick();

/*
 * Median milliseconds of one call of f(copy), where copy runs through 0 to
 * copies - 1: give each copy its own input when one input fits in the L2
 * cache (bench_copies).  Short calls are timed in batches, so that gaps
 * between launches are not counted.  A call longer than 50 ms is repeated
 * three times only, and one longer than 250 ms needs no warm runs before.
 */
double bench_time(int copies, const std::function<void(int)> &f);

/* How many copies of `bytes` bytes it takes to leave the L2 cache; at most 256. */
int bench_copies(size_t bytes);

/* Device memory, freed at exit of the scope; exits when there is not enough. */
struct BenchMemory
{
	char *memory;

	explicit BenchMemory(size_t bytes)
	{
		CUDA_MUST(cudaMalloc((void **) &memory, bytes ? bytes : 1));
	}
	BenchMemory(const BenchMemory &) = delete;
	BenchMemory &operator=(const BenchMemory &) = delete;
	~BenchMemory()
	{
		cudaFree(memory);
	}
	template <typename T>
	T *
	as() const
	{
		return (T *) memory;
	}
};

/* Runs f(begin, end) over [0, n) in parallel on the host's cores, for checks. */
void bench_parallel(int64_t n, const std::function<void(int64_t, int64_t)> &f);

/*
 * Host memory that grows and stays, so that pages are touched once, and by all
 * cores.  Its content is lost when it grows.
 */
struct BenchHost
{
	char *memory = nullptr;
	size_t size = 0;

	BenchHost()
	{
	}
	BenchHost(const BenchHost &) = delete;
	BenchHost &operator=(const BenchHost &) = delete;
	~BenchHost()
	{
		free(memory);
	}
	void reserve(size_t bytes);

	template <typename T>
	T *
	room(int64_t n)
	{
		reserve(n * sizeof(T));
		return (T *) memory;
	}

	/* A copy of n elements of device memory. */
	template <typename T>
	const T *
	fetch(const void *device, int64_t n)
	{
		reserve(n * sizeof(T));
		CUDA_MUST(cudaMemcpy(memory, device, n * sizeof(T), cudaMemcpyDeviceToHost));
		return (const T *) memory;
	}
};

/* A bijection of 64 bits, for data that looks random (the finalizer of MurmurHash3). */
static __host__ __device__ inline uint64_t
bench_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

/* What a row is to reach: at least so much of the first three, at most so many ms. */
enum BenchAimOf
{
	BENCH_ROOFLINE, /* per cent of the roofline */
	BENCH_RATE,     /* G rows/s */
	BENCH_PEER1,    /* times as fast as the first peer, */
	BENCH_PEER2,    /* or as the second */
	BENCH_MS
};

struct BenchAim
{
	BenchAimOf of;
	double value;
};

/* One line of the table. */
struct BenchRow
{
	std::string problem; /* "sum int4, 2^28 in 2^10 segments" */
	double bytes;        /* that must move: inputs read, results written */
	double rows;         /* elements, for G rows/s */
	double ours_ms;
	const char *peer1 = nullptr; /* name and time of each peer; no time: 0 */
	double peer1_ms = 0;
	const char *peer2 = nullptr;
	double peer2_ms = 0;
	const char *published = nullptr; /* a time measured elsewhere, and where */
	double published_ms = 0;
	std::vector<BenchAim> aims;
	bool correct = true; /* our result equals the CPU monoids' */
};

void bench_print(const BenchRow &row);

#endif /* GPUAGG_KERNELS_BENCH_H */
