/*
 * gpu_main.cu
 *	  Runs the GPU unit tests. Prints a line with the time of each test, then a line of counts.
 *
 * Exit status: 0 if all tests passed or were skipped, 1 if a test failed, 2 if a call failed that
 * no test checks. Without a usable device every test is skipped by name.
 */
#include "gpu_test.h"

#include <malloc.h>
#include <stdarg.h>
#include <time.h>

static GpuTest *tests;
static int test_failures;
static bool test_skipped;
static char skip_reason[200];
static bool quick;
static bool unpoisoned;

GpuTest::GpuTest(const char *test_name, GpuTestFunction function)
	: name(test_name), run(function), next(nullptr)
{
	GpuTest **place = &tests;

	/* sorted by name, because the order of registration depends on the linker */
	while (*place && strcmp((*place)->name, test_name) < 0)
		place = &(*place)->next;
	next = *place;
	*place = this;
}

void
gpu_test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	if (test_failures++ >= 10)
		return;
	printf("    %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

bool
gpu_test_quick()
{
	return quick;
}

size_t
gpu_test_rows(size_t usual, size_t when_quick)
{
	return quick ? when_quick : usual;
}

bool
gpu_test_unpoisoned()
{
	return unpoisoned;
}

void
gpu_test_skip(const char *format, ...)
{
	va_list args;

	test_skipped = true;
	va_start(args, format);
	vsnprintf(skip_reason, sizeof(skip_reason), format, args);
	va_end(args);
}

bool
gpu_test_has_memory(size_t bytes)
{
	const size_t spare = (size_t) 1 << 28;
	size_t there, all;

	CUDA_MUST(cudaMemGetInfo(&there, &all));
	if (there >= bytes + spare)
		return true;
	gpu_test_skip("needs %zu MB of device memory, %zu MB are free", (bytes + spare) >> 20,
				  there >> 20);
	return false;
}

/* Returns the time of a clock that never goes back. */
static long
milliseconds()
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Runs one test, prints its outcome and counts it. */
static void
run_test(const GpuTest *test, int *passed, int *failed, int *skipped)
{
	long began = milliseconds();

	test_failures = 0;
	test_skipped = false;
	test->run();
	CUDA_MUST(cudaDeviceSynchronize());
	if (test_failures > 0)
	{
		printf("FAILED %s  %ld ms\n", test->name, milliseconds() - began);
		(*failed)++;
	}
	else if (test_skipped)
	{
		printf("skipped %s (%s)\n", test->name, skip_reason);
		(*skipped)++;
	}
	else
	{
		printf("ok %s  %ld ms\n", test->name, milliseconds() - began);
		(*passed)++;
	}
}

/*
 * Returns whether the arguments name the test or a part of its name. Without names, all are
 * selected.
 */
static bool
is_selected(const GpuTest *test, int argc, char **argv)
{
	bool any = false;

	for (int i = 1; i < argc; i++)
	{
		if (argv[i][0] == '-')
			continue;
		any = true;
		if (strstr(test->name, argv[i]))
			return true;
	}
	return !any;
}

int
main(int argc, char **argv)
{
	int devices = 0;
	int passed = 0, failed = 0, skipped = 0;
	bool list = false;
	bool usable = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;

	for (int i = 1; i < argc; i++)
	{
		quick = quick || strcmp(argv[i], "--quick") == 0;
		unpoisoned = unpoisoned || strcmp(argv[i], "--unpoisoned") == 0;
		list = list || strcmp(argv[i], "-l") == 0;
	}
	setvbuf(stdout, nullptr, _IOLBF, 0);
	/*
	 * Large columns are allocated and freed all the time. Keeping their memory in the process
	 * halves the time of some tests.
	 */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	for (GpuTest *test = tests; test; test = test->next)
	{
		if (!is_selected(test, argc, argv))
			continue;
		if (list)
		{
			printf("%s\n", test->name);
			continue;
		}
		if (!usable)
		{
			printf("skipped %s (no CUDA device)\n", test->name);
			skipped++;
			continue;
		}
		run_test(test, &passed, &failed, &skipped);
	}
	if (!list)
		printf("gpu tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed > 0;
}
