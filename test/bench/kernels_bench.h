/*
 * kernels_bench.h
 *	  Harness of the kernel benchmark: parts, timing and the printed table.
 *
 * A file test/bench/kernels_*.cu defines a part with BENCH_PART(a, "title") { ... }.  Each row of
 * the table is one problem: our time, its share of the roofline, the times of peers (other programs
 * that solve the same problem) and the targets.  A part must check the result before it measures.
 *
 * Arguments of the executable: letters choose parts; --quick lowers the repeats; --max=N bounds the
 * number of elements to 2^N.
 */
#ifndef GPUAGG_KERNELS_BENCH_H
#define GPUAGG_KERNELS_BENCH_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpuagg_cuda.h"

typedef void (*BenchFunction)();

/* A part of the benchmark. The constructor adds it to the list of all parts, ordered by letter. */
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

/* Prints the error and exits with status 2 if the CUDA call fails. */
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

/* The same for a function of gpuagg_cuda.h. */
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

/* Returns the device's read bandwidth in bytes per second. The first call measures it. */
double bench_read_bandwidth();

/* Returns the size of the L2 cache in bytes. */
size_t bench_l2_bytes();

/* Returns log2 of the largest number of elements; 28 without --max. */
int bench_max_log2();

/* Returns whether --quick was given: fewer repeats, fewer problems. */
bool bench_quick();

/*
 * Returns the median time of one call of f(copy), in milliseconds.  Calls take the copies 0 to
 * copies - 1 in turn: give each copy its own input if one input fits the L2 cache (bench_copies).
 * Short calls are timed in batches, so that gaps between launches do not count.  There are 11
 * repeats, 5 with --quick; 3 of a call longer than 50 ms.  A call longer than 250 ms is repeated
 * only once, and its two warm-up calls count.
 */
double bench_time(int copies, const std::function<void(int)> &f);

/*
 * Returns how many copies of `bytes` bytes exceed the L2 cache, so that none stays in it; at most
 * 256.
 */
int bench_copies(size_t bytes);

/* Device memory that the destructor frees. The constructor exits if there is not enough memory. */
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

/* Runs f(begin, end) over ranges of [0, n) in parallel, one for each core of the host. */
void bench_parallel(int64_t n, const std::function<void(int64_t, int64_t)> &f);

/*
 * Host memory that is reused and only grows, so that its pages are touched only once, by all cores
 * in parallel.  Its content is lost when it grows.
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
	/* Makes the memory at least this large; exits if there is not enough. */
	void reserve(size_t bytes);

	/* Returns an array of n elements, of any content. */
	template <typename T>
	T *
	room(int64_t n)
	{
		reserve(n * sizeof(T));
		return (T *) memory;
	}

	/* Returns a copy of n elements of device memory. */
	template <typename T>
	const T *
	fetch(const void *device, int64_t n)
	{
		reserve(n * sizeof(T));
		CUDA_MUST(cudaMemcpy(memory, device, n * sizeof(T), cudaMemcpyDeviceToHost));
		return (const T *) memory;
	}
};

/* A call of gpuagg_hist_update() with its memory. */
struct HistUpdate
{
	GpuaggHist hist = GpuaggHist();
	std::unique_ptr<BenchMemory> workspace;
	BenchMemory status{sizeof(GpuaggHistStatus)};
	size_t bytes = 0;

	void
	prepare()
	{
		hist.status = status.as<GpuaggHistStatus>();
		CUDA_MUST(cudaMemset(hist.status, 0, sizeof(GpuaggHistStatus)));
		STATUS_MUST(gpuagg_hist_update(&hist, nullptr, &bytes, nullptr));
		workspace.reset(new BenchMemory(bytes));
	}
	void
	run()
	{
		STATUS_MUST(gpuagg_hist_update(&hist, workspace->memory, &bytes, nullptr));
	}
};

/* Returns a bijection of x, for data that looks random (the finalizer of MurmurHash3). */
static __host__ __device__ inline uint64_t
bench_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

/* The unit of a target. BENCH_MS is an upper limit, all others are lower limits. */
enum BenchTargetKind
{
	BENCH_ROOFLINE, /* percent of the roofline */
	BENCH_RATE,     /* 10^9 rows per second */
	BENCH_PEER1,    /* times as fast as the first peer */
	BENCH_PEER2,    /* times as fast as the second peer */
	BENCH_MS        /* milliseconds */
};

struct BenchTarget
{
	BenchTargetKind kind;
	double value;
};

/* One line of the table: a problem. */
struct BenchRow
{
	std::string problem; /* "sum int4, 2^28 in 2^10 segments" */
	double bytes;        /* bytes that must move: inputs read and results written */
	double rows;         /* number of elements */
	double ours_ms;
	const char *peer1 = nullptr; /* name of a peer, or NULL, and its time */
	double peer1_ms = 0;
	const char *peer2 = nullptr;
	double peer2_ms = 0;
	const char *published = nullptr; /* source of a published time, or NULL */
	double published_ms = 0;
	std::vector<BenchTarget> targets;
	bool correct = true; /* our result equals that of the CPU monoids */
};

/* Prints the line and counts it in the summary of its part. */
void bench_print(const BenchRow &row);

#endif /* GPUAGG_KERNELS_BENCH_H */
