/*
 * kernels.cu
 *	  The kernel benchmark's main program: measures the read bandwidth, runs the
 *	  parts and prints the table.  Exit status 1 if any result was wrong; an aim
 *	  that is missed is marked, and counted in the line at the end of its part.
 */
#include "kernels_bench.h"

#include <string.h>

#include <algorithm>
#include <thread>
#include <vector>

static BenchPart *parts;
static bool quick;
static int max_log2 = 28;
static int wrong_rows;

/* What the line at the end of a part says. */
struct Summary
{
	int rows = 0;
	int aimed = 0;        /* rows with an aim, */
	int missed = 0;       /* and with one they miss */
	double least = 1e300; /* of the roofline, where that is the aim */
	std::string least_row;
	double furthest = 1e300; /* share of an aim that is reached */
	std::string furthest_row;
};

static Summary summary;

BenchPart::BenchPart(char part, const char *part_title, BenchFunction function)
	: letter(part), title(part_title), run(function), next(nullptr)
{
	BenchPart **place = &parts;

	while (*place && (*place)->letter < part)
		place = &(*place)->next;
	next = *place;
	*place = this;
}

int
bench_max_log2()
{
	return max_log2;
}

bool
bench_quick()
{
	return quick;
}

size_t
bench_l2_bytes()
{
	int device, bytes;

	CUDA_MUST(cudaGetDevice(&device));
	CUDA_MUST(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device));
	return bytes;
}

int
bench_copies(size_t bytes)
{
	size_t copies = 3 * bench_l2_bytes() / std::max<size_t>(bytes, 1) + 1;

	return (int) std::min<size_t>(copies, 256);
}

double
bench_time(int copies, const std::function<void(int)> &f)
{
	std::vector<double> times;
	cudaEvent_t start, stop;
	int batch = 1;
	int copy = 0;
	int repeats = quick ? 5 : 11;

	CUDA_MUST(cudaEventCreate(&start));
	CUDA_MUST(cudaEventCreate(&stop));
	for (int r = -2; r < repeats; r++)
	{
		float ms;

		CUDA_MUST(cudaEventRecord(start));
		for (int b = 0; b < batch; b++)
			f(copy++ % copies);
		CUDA_MUST(cudaEventRecord(stop));
		CUDA_MUST(cudaEventSynchronize(stop));
		CUDA_MUST(cudaEventElapsedTime(&ms, start, stop));
		times.push_back(ms / batch);
		/* the first two runs warm up, and choose the batch and the repeats */
		if (r < 0)
			batch = ms / batch >= 0.2 ?
				1 :
				std::max(batch, (int) std::min(100.0, 0.5 * batch / ms + 1));
		if (r == -1)
		{
			if (times[1] > 50)
				repeats = 3;
			if (times[1] > 250)
				repeats = 1;
			else
				times.clear();
		}
	}
	CUDA_MUST(cudaEventDestroy(start));
	CUDA_MUST(cudaEventDestroy(stop));
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

static __global__ void
read_all(const uint4 *data, size_t n, uint32_t *out)
{
	uint32_t x = 0;
	size_t stride = (size_t) gridDim.x * blockDim.x;
	size_t i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

	for (; i + 3 * stride < n; i += 4 * stride)
	{
		uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride], d = data[i + 3 * stride];

		x ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
		x ^= c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
	}
	for (; i < n; i += stride)
		x ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
	if (x == 0x12345678) /* never, but the compiler cannot know */
		*out = x;
}

double
bench_read_bandwidth()
{
	static double bandwidth;

	if (bandwidth == 0)
	{
		size_t bytes = (size_t) 2 << 30;
		BenchMemory data(bytes);
		BenchMemory out(4);

		CUDA_MUST(cudaMemset(data.memory, 1, bytes));
		for (int blocks = 1024; blocks <= 16384; blocks *= 2)
		{
			double ms = bench_time(
				1,
				[&](int)
				{ read_all<<<blocks, 256>>>(data.as<uint4>(), bytes / 16, out.as<uint32_t>()); });

			bandwidth = std::max(bandwidth, bytes / (ms * 1e-3));
		}
	}
	return bandwidth;
}

static void
print_peer(const BenchRow &row, const char *name, double ms)
{
	if (name)
		printf(" | %s %.4f ms, x%.2f", name, ms, ms / row.ours_ms);
}

/* How much of the aim is reached: 1 or more if it is. */
static double
reached(const BenchRow &row, const BenchAim &aim, double roof_percent)
{
	switch (aim.of)
	{
		case BENCH_ROOFLINE:
			return roof_percent / aim.value;
		case BENCH_RATE:
			return row.rows / row.ours_ms * 1e-6 / aim.value;
		case BENCH_PEER1:
			return row.peer1_ms / row.ours_ms / aim.value;
		case BENCH_PEER2:
			return row.peer2_ms / row.ours_ms / aim.value;
		default:
			return aim.value / row.ours_ms;
	}
}

static void
print_aim(const BenchRow &row, const BenchAim &aim)
{
	switch (aim.of)
	{
		case BENCH_ROOFLINE:
			printf(" | aim %.0f%%", aim.value);
			break;
		case BENCH_RATE:
			printf(" | aim %.1f G rows/s", aim.value);
			break;
		case BENCH_PEER1:
			printf(" | aim x%g of %s", aim.value, row.peer1);
			break;
		case BENCH_PEER2:
			printf(" | aim x%g of %s", aim.value, row.peer2);
			break;
		default:
			printf(" | aim %.4f ms", aim.value);
	}
}

static void
print_aims(const BenchRow &row, double roof_percent)
{
	bool missed = false;

	summary.rows++;
	for (const BenchAim &aim : row.aims)
	{
		double share = reached(row, aim, roof_percent);

		print_aim(row, aim);
		if (!(share >= 1))
		{
			printf(" MISSED");
			missed = true;
		}
		if (share < summary.furthest)
		{
			summary.furthest = share;
			summary.furthest_row = row.problem;
		}
		if (aim.of == BENCH_ROOFLINE && roof_percent < summary.least)
		{
			summary.least = roof_percent;
			summary.least_row = row.problem;
		}
	}
	summary.aimed += !row.aims.empty();
	summary.missed += missed;
}

static void
print_summary(char letter)
{
	printf("(%c) in sum: %d rows, %d with aims, %d of them missed", letter, summary.rows,
		   summary.aimed, summary.missed);
	if (!summary.least_row.empty())
		printf(" | least of the roofline, where aimed at: %.1f%%, %s", summary.least,
			   summary.least_row.c_str());
	if (!summary.furthest_row.empty())
		printf(" | least share of an aim: %.2f, %s", summary.furthest,
			   summary.furthest_row.c_str());
	printf("\n");
}

void
bench_print(const BenchRow &row)
{
	double roof_percent = 100 * row.bytes / bench_read_bandwidth() * 1e3 / row.ours_ms;

	printf("%-46s %10.4f ms %6.1f G rows/s %7.0f GB/s %5.1f%%", row.problem.c_str(), row.ours_ms,
		   row.rows / row.ours_ms * 1e-6, row.bytes / row.ours_ms * 1e-6, roof_percent);
	print_peer(row, row.peer1, row.peer1_ms);
	print_peer(row, row.peer2, row.peer2_ms);
	print_peer(row, row.published, row.published_ms);
	print_aims(row, roof_percent);
	printf("%s\n", row.correct ? "" : " | WRONG");
	wrong_rows += !row.correct;
}

void
bench_parallel(int64_t n, const std::function<void(int64_t, int64_t)> &f)
{
	int64_t workers = std::max(1u, std::thread::hardware_concurrency());
	std::vector<std::thread> threads;

	for (int64_t w = 0; w < workers; w++)
		threads.emplace_back(f, n * w / workers, n * (w + 1) / workers);
	for (std::thread &t : threads)
		t.join();
}

void
BenchHost::reserve(size_t bytes)
{
	if (bytes <= size)
		return;
	free(memory);
	memory = (char *) malloc(bytes);
	if (memory == nullptr)
	{
		fprintf(stderr, "out of host memory: %zu bytes\n", bytes);
		exit(2);
	}
	size = bytes;
	bench_parallel((int64_t) bytes,
				   [&](int64_t begin, int64_t end) { memset(memory + begin, 0, end - begin); });
}

int
main(int argc, char **argv)
{
	int devices = 0;
	std::string letters;
	cudaDeviceProp prop;

	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--quick") == 0)
			quick = true;
		else if (strncmp(argv[i], "--max=", 6) == 0)
			max_log2 = atoi(argv[i] + 6);
		else
			letters += argv[i];
	}
	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
	{
		printf("no CUDA device: nothing measured\n");
		return 0;
	}
	setvbuf(stdout, nullptr, _IOLBF, 0);
	CUDA_MUST(cudaGetDeviceProperties(&prop, 0));
	printf("%s, %d multiprocessors, %.0f MB L2, read bandwidth %.0f GB/s\n", prop.name,
		   prop.multiProcessorCount, prop.l2CacheSize / 1048576.0, bench_read_bandwidth() * 1e-9);
	for (BenchPart *part = parts; part; part = part->next)
	{
		if (!letters.empty() && letters.find(part->letter) == std::string::npos)
			continue;
		printf("\n(%c) %s\n", part->letter, part->title);
		summary = Summary();
		part->run();
		print_summary(part->letter);
	}
	if (wrong_rows > 0)
		printf("\n%d wrong results\n", wrong_rows);
	return wrong_rows > 0;
}
