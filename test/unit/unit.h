/*
 * unit.h
 *	  The framework of the C unit tests. It prints TAP.
 *
 * A test is a function run by RUN(name, function). It calls CHECK(condition, format, ...) any
 * number of times. The first five failures of a test print their message. main ends with "return
 * unit_done();".
 *
 * A test program may have several source files. They share the counters and the random numbers.
 */
#ifndef GPUAGG_UNIT_H
#define GPUAGG_UNIT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weak symbols: all source files of a program share one definition. */
__attribute__((weak)) int unit_tests;
__attribute__((weak)) int unit_failed_tests;
__attribute__((weak)) int unit_failures; /* failed checks of the running test */

/* Counts a failed check of the running test, and prints the message of the first five. */
__attribute__((format(printf, 3, 4), unused)) static void
unit_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	if (unit_failures++ >= 5)
		return;
	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

#define CHECK(cond, ...) \
	do \
	{ \
		if (!(cond)) \
			unit_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* Runs a test and prints its result. */
__attribute__((unused)) static void
RUN(const char *name, void (*test)(void))
{
	unit_failures = 0;
	test();
	unit_tests++;
	if (unit_failures)
		unit_failed_tests++;
	printf("%sok %d - %s\n", unit_failures ? "not " : "", unit_tests, name);
	fflush(stdout);
}

/* Prints the number of tests. Returns the exit status of main: not 0 if a test failed. */
__attribute__((unused)) static int
unit_done(void)
{
	printf("1..%d\n", unit_tests);
	return unit_failed_tests != 0;
}

/* Reproducible random numbers: splitmix64 (Steele, Lea and Flood, 2014). */
__attribute__((weak)) uint64_t unit_random_state = 20240229;

/* Returns 64 random bits. */
__attribute__((unused)) static uint64_t
random_u64(void)
{
	uint64_t z = (unit_random_state += 0x9E3779B97F4A7C15u);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* Returns a uniform number in 0 .. limit - 1. */
__attribute__((unused)) static int64_t
random_below(int64_t limit)
{
	return (int64_t) (random_u64() % (uint64_t) limit);
}

/* Returns a uniform number in [0, 1). */
__attribute__((unused)) static double
random_unit(void)
{
	return (double) (random_u64() >> 11) * 0x1p-53;
}

#endif /* GPUAGG_UNIT_H */
