/*
 * kernels_main.cu
 *	  Main program of the kernel benchmark: measures the read bandwidth, runs the parts and prints
 *	  the table.
 *
 * Exit status: 1 if a result was wrong, 2 on errors, else 0, also without a device.  A missed
 * target is marked in the table and counted in the summary of its part.
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

/* The line at the end of a part. */
struct Summary
{
	int rows = 0;
	int with_targets = 0; /* rows with a target */
	int missed = 0;       /* rows that miss a target */
	double lowest_roofline =
		1e300; /* lowest percentage of the roofline of rows with such a target */
	std::string lowest_roofline_row;
	double lowest_share = 1e300; /* lowest share of a target that is reached */
	std::string lowest_share_row;
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
		/* the first two turns warm up and determine the batch size and the repeats */
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
	if (x == 0x12345678) /* never true, but keeps the compiler from removing the reads */
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

/* Prints a peer's time, and how many times longer than ours it is. */
static void
print_peer(const BenchRow &row, const char *name, double ms)
{
	if (name)
		printf(" | %s %.4f ms, x%.2f", name, ms, ms / row.ours_ms);
}

/* Returns the share of the target that is reached: at least 1 if the target is met. */
static double
reached_share(const BenchRow &row, const BenchTarget &target, double roof_percent)
{
	switch (target.kind)
	{
		case BENCH_ROOFLINE:
			return roof_percent / target.value;
		case BENCH_RATE:
			return row.rows / row.ours_ms * 1e-6 / target.value;
		case BENCH_PEER1:
			return row.peer1_ms / row.ours_ms / target.value;
		case BENCH_PEER2:
			return row.peer2_ms / row.ours_ms / target.value;
		default:
			return target.value / row.ours_ms;
	}
}

static void
print_target(const BenchRow &row, const BenchTarget &target)
{
	switch (target.kind)
	{
		case BENCH_ROOFLINE:
			printf(" | target %.0f%%", target.value);
			break;
		case BENCH_RATE:
			printf(" | target %.1f G rows/s", target.value);
			break;
		case BENCH_PEER1:
			printf(" | target x%g of %s", target.value, row.peer1);
			break;
		case BENCH_PEER2:
			printf(" | target x%g of %s", target.value, row.peer2);
			break;
		default:
			printf(" | target %.4f ms", target.value);
	}
}

/* Prints the row's targets, marks those missed, and counts them in the summary. */
static void
print_targets(const BenchRow &row, double roof_percent)
{
	bool missed = false;

	summary.rows++;
	for (const BenchTarget &target : row.targets)
	{
		double share = reached_share(row, target, roof_percent);

		print_target(row, target);
		if (!(share >= 1))
		{
			printf(" MISSED");
			missed = true;
		}
		if (share < summary.lowest_share)
		{
			summary.lowest_share = share;
			summary.lowest_share_row = row.problem;
		}
		if (target.kind == BENCH_ROOFLINE && roof_percent < summary.lowest_roofline)
		{
			summary.lowest_roofline = roof_percent;
			summary.lowest_roofline_row = row.problem;
		}
	}
	summary.with_targets += !row.targets.empty();
	summary.missed += missed;
}

static void
print_summary(char letter)
{
	printf("(%c) total: %d rows, %d with targets, %d of them missed", letter, summary.rows,
		   summary.with_targets, summary.missed);
	if (!summary.lowest_roofline_row.empty())
		printf(" | lowest of the roofline targets: %.1f%%, %s", summary.lowest_roofline,
			   summary.lowest_roofline_row.c_str());
	if (!summary.lowest_share_row.empty())
		printf(" | lowest share of a target: %.2f, %s", summary.lowest_share,
			   summary.lowest_share_row.c_str());
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
	print_targets(row, roof_percent);
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
