/*
 * ptx_test.cpp
 *	  Tests of the PTX interpreter by itself: ptx_test FILE with what nvcc -ptx makes of ptx_test.cu.
 */
#include "ptx_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "emulator.h"

static EmuModule *module;
static int	failures;

#define CHECK(condition, ...) \
	do \
	{ \
		if (!(condition) && failures++ < 40) \
		{ \
			printf("line %d: ", __LINE__); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

/* Memory that kernels may touch. */
template <class T> class Array
{
public:
	explicit Array(size_t n): data((T *) aligned_alloc(256, (n * sizeof(T) + 255) / 256 * 256))
	{
		memset((void *) data, 0, n * sizeof(T));
		emu_memory_add(data, n * sizeof(T));
	}

	~Array()
	{
		emu_memory_remove(data);
		free(data);
	}

	T		   &operator[](size_t i) { return data[i]; }
	T		   *at() { return data; }

private:
	T		   *data;
};

struct Shape
{
	unsigned	blocks,
				threads,
				shared = 0,
				cluster = 1;
	bool		cooperative = false;
};

/* The error's text, "" without. */
template <class... Args> static std::string
launch(const char *name, Shape shape, EmuCounts *counts, Args... args)
{
	EmuError	error;
	EmuKernel  *kernel = emu_module_kernel(module, name, &error);
	void	   *params[] = {(void *) &args...};
	EmuLaunch	config = {{shape.blocks, 1, 1}, {shape.threads, 1, 1}, {shape.cluster, 1, 1}, shape.shared, shape.cooperative,
		params};

	if (kernel == NULL)
		return error.text;
	emu_launch(kernel, &config, counts, &error);
	return error.text;
}

#define RUN(...) \
	do \
	{ \
		std::string why = launch(__VA_ARGS__); \
		CHECK(why.empty(), "%s", why.c_str()); \
	} while (0)

static uint64_t
random_bits()
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static uint64_t
some_integer()
{
	static const uint64_t special[] = {0, 1, 2, 31, 32, 63, 64, 0xffffffff, 0x80000000, 0x7fffffff, UINT64_MAX,
		0x8000000000000000ull, 0x7fffffffffffffffull, 0xffffffff80000000ull};
	uint64_t	r = random_bits();

	return r % 4 == 0 ? special[(r >> 8) % 14] : random_bits() >> (r >> 8 & 63);
}

static double
some_double()
{
	static const double special[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, INFINITY, -INFINITY, NAN, 5e-324, 1e-310, 1e308,
		1e-40, 3e38, 16777217.0, 9007199254740993.0, 2147483647.5, -2147483648.5};
	uint64_t	r = random_bits();
	double		d;

	if (r % 3 == 0)
		return special[(r >> 8) % 20];
	r = random_bits();
	memcpy(&d, &r, 8);
	return r % 5 ? (double) (int64_t) random_bits() / (double) (1ull << (r >> 8 & 63)) : d;
}

static bool
same(double a, double b)
{
	return (a != a && b != b) || memcmp(&a, &b, 8) == 0;
}

static void
test_arithmetic()
{
	const int	n = 5000;
	Array<uint64_t> a(n), b(n), out(n * INTEGER_RESULTS);
	Array<double> x(n), y(n), floats(n * FLOAT_RESULTS);

	for (int k = 0; k < n; k++)
	{
		a[k] = some_integer();
		b[k] = some_integer();
		x[k] = some_double();
		y[k] = some_double();
	}
	RUN("integers", {(n + 127) / 128, 128}, NULL, a.at(), b.at(), out.at(), n);
	RUN("floats", {(n + 127) / 128, 128}, NULL, x.at(), y.at(), floats.at(), n);
	for (int k = 0; k < n; k++)
	{
		for (int op = 0; op < INTEGER_RESULTS; op++)
			CHECK(out[k * INTEGER_RESULTS + op] == integer_result(op, a[k], b[k]), "integers %d of %llx, %llx: %llx, not %llx", op,
				  (unsigned long long) a[k], (unsigned long long) b[k], (unsigned long long) out[k * INTEGER_RESULTS + op],
				  (unsigned long long) integer_result(op, a[k], b[k]));
		for (int op = 0; op < FLOAT_RESULTS; op++)
		{
			double		is = floats[k * FLOAT_RESULTS + op],
						want = float_result(op, x[k], y[k]);
			bool		zeros = (op == 5 || op == 6) && is == 0 && want == 0;

			CHECK(same(is, want) || zeros, "floats %d of %a, %a: %a, not %a", op, x[k], y[k], is, want);
		}
	}
}

template <class T> static int64_t
clamped(double x, int64_t nan)
{
	long double least = std::numeric_limits<T>::min(),
				most = std::numeric_limits<T>::max();

	return x != x ? nan : x <= least ? (int64_t) std::numeric_limits<T>::min() :
		x >= most ? (int64_t) std::numeric_limits<T>::max() : (int64_t) (T) x;
}

static void
test_conversions()
{
	static const double in[] = {0, -0.0, 1.5, -1.5, 2.5, -2.5, 0.5, 3.7, -3.7, 127.5, 128, -129, 255.5, 256, 65535.9, 65536, 2147483647.5,
		2147483648.5, -2147483649.0, 4294967295.5, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 1e300, -1e300, INFINITY, -INFINITY, NAN,
		-0.4, 1e-320, 12345678};
	Array<double> x(32);
	Array<int64_t> out(32 * 12);

	for (int k = 0; k < 32; k++)
		x[k] = in[k];
	RUN("conversions", {1, 32}, NULL, x.at(), out.at(), 32);
	for (int k = 0; k < 32; k++)
	{
		double		v = in[k],
					f = (float) v;
		int64_t		as32 = clamped<int32_t>(v, INT32_MIN),
					as64 = clamped<int64_t>(v, INT64_MIN);
		int64_t		want[12] = {as32, clamped<uint32_t>(v, 0x80000000), as64, (int64_t) clamped<uint64_t>(v, INT64_MIN),
			clamped<int32_t>(f, 0), clamped<int64_t>(f, INT64_MIN), clamped<int32_t>(rint(v), INT32_MIN),
			clamped<int32_t>(ceil(v), INT32_MIN), clamped<int8_t>(rint(v), -128), clamped<uint8_t>(f, 0),
			clamped<uint16_t>((double) as32, 0), as64 < -128 ? -128 : as64 > 127 ? 127 : as64};

		for (int n = 0; n < 12; n++)
			CHECK(out[k * 12 + n] == want[n], "conversion %d of %g: %lld, not %lld", n, v, (long long) out[k * 12 + n],
				  (long long) want[n]);
	}
}

static void
test_carries()
{
	Array<uint64_t> a(128), b(128), out(256);

	for (int k = 0; k < 128; k++)
	{
		a[k] = some_integer();
		b[k] = k % 3 ? some_integer() : ~a[k];
	}
	RUN("carries", {1, 32}, NULL, a.at(), b.at(), out.at());
	for (int k = 0; k < 128; k += 4)
	{
		unsigned __int128 carry = 0,
					lo = (unsigned __int128) a[k + 1] << 64 | a[k],
					subtracted = (unsigned __int128) b[k + 1] << 64 | b[k],
					product = (unsigned __int128) a[k] * b[k] + ((unsigned __int128) b[k + 1] << 64) + a[k + 1];

		for (int n = 0; n < 4; n++)
		{
			carry += (unsigned __int128) a[k + n] + b[k + n];
			CHECK(out[k + n] == (uint64_t) carry, "sum of 256 bits, word %d", n);
			carry >>= 64;
		}
		CHECK(out[128 + k] == (uint64_t) (lo - subtracted) && out[128 + k + 1] == (uint64_t) ((lo - subtracted) >> 64), "difference");
		CHECK(out[128 + k + 2] == (uint64_t) product && out[128 + k + 3] == (uint64_t) (product >> 64), "product");
	}
}

/* Bits by their definition; a of width bits. */
static uint64_t
extracted(uint64_t a, unsigned at, unsigned n, unsigned width, bool sign)
{
	uint64_t	r = 0;
	unsigned	top = at + n - 1 < width - 1 ? at + n - 1 : width - 1;
	bool		fill = sign && n && (a >> top & 1);

	for (unsigned k = 0; k < width; k++)
		r |= (uint64_t) (k < n && at + k < width ? a >> (at + k) & 1 : fill) << k;
	return r;
}

static uint64_t
inserted(uint64_t a, uint64_t b, unsigned at, unsigned n, unsigned width)
{
	for (unsigned k = 0; k < n && at + k < width; k++)
		b = (b & ~(1ull << (at + k))) | (a >> k & 1) << (at + k);
	return b;
}

static uint32_t
highest(uint64_t a)
{
	return a ? 63 - (uint32_t) __builtin_clzll(a) : UINT32_MAX;
}

/* Nearest values at most and at least exact, from the nearest one and the sign of its error. */
template <class T> static void
directed(T nearest, double error, double *to)
{
	T			down = error < 0 ? (T) nextafter(nearest, (T) -INFINITY) : nearest,
				up = error > 0 ? (T) nextafter(nearest, (T) INFINITY) : nearest;

	if (sizeof(T) == 4)
	{
		down = error < 0 ? (T) nextafterf((float) nearest, -INFINITY) : nearest;
		up = error > 0 ? (T) nextafterf((float) nearest, INFINITY) : nearest;
	}
	to[0] = nearest < 0 ? up : down;
	to[1] = down;
	to[2] = up;
}

static uint32_t
float_bits(float f)
{
	uint32_t	bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static void
odd_results(uint64_t a, uint64_t b, unsigned lane, uint64_t *to)
{
	uint32_t	a32 = (uint32_t) a,
				b32 = (uint32_t) b,
				c32 = (uint32_t) (a >> 32),
				at = b32 & 0x7f,
				n = b32 >> 8 & 0x7f;
	int32_t		sa = (int32_t) a32,
				sb = (int32_t) b32,
				divisor = (int32_t) (b32 % 3) - 1;
	int64_t		wide = (int64_t) a,
				wide_divisor = (int64_t) (b % 3) - 1;
	bool		r = c32 & 1;
	double		f[3];

	*to++ = extracted(a32, at, n, 32, false);
	*to++ = extracted(a32, at, n, 32, true);
	*to++ = extracted(a, at, n, 64, false);
	*to++ = extracted(a, at, n, 64, true);
	*to++ = (uint32_t) inserted(a32, c32, at, n, 32);
	*to++ = inserted(a, b, at, n, 64);
	*to++ = (a32 & b32) | (~a32 & c32);
	*to++ = (uint32_t) ((~a32 & ~b32 & ~c32) | (~a32 & b32 & ~c32) | (~a32 & b32 & c32) | (a32 & ~b32 & ~c32));
	*to++ = (uint32_t) (c32 + (sa < sb ? b32 - a32 : a32 - b32));
	*to++ = (int32_t) c32 >= 0 ? a32 : b32;
	*to++ = (sa < sb && r) + 2 * (!(sa < sb) && r) + 4 * !((a32 < b32) ^ !r);
	*to++ = highest(sa < 0 ? ~a32 : a32);
	*to++ = highest(a);
	*to++ = highest(wide < 0 ? ~a : a) == UINT32_MAX ? UINT32_MAX : 63 - highest(wide < 0 ? ~a : a);
	*to++ = (uint32_t) (n >= 32 ? UINT32_MAX << (at < 32 ? at : 0) : ((1ull << n) - 1) << (at < 32 ? at : 0)) * (at < 32);
	*to++ = divisor ? (uint32_t) ((int64_t) sa / divisor) : UINT32_MAX;
	*to++ = divisor ? 0 : a32;
	*to++ = b & 1 ? a : UINT64_MAX;
	*to++ = wide_divisor ? 0 : a;
	*to++ = (uint32_t) ((uint32_t) ((int64_t) sa * sb >> 32) + c32);
	*to++ = (uint64_t) ((int64_t) sa * sb) + b;
	*to++ = a << 32 | a >> 32;
	*to++ = at < 32 ? a32 << at : 0;
	*to++ = (uint32_t) (sa >> (at < 32 ? at : 31));
	*to++ = at < 64 ? a >> at : 0;
	*to++ = float_bits((float) wide);
	directed<float>((float) wide, (double) ((__int128) wide - (__int128) (float) wide), f);
	*to++ = float_bits((float) f[0]);
	*to++ = float_bits((float) f[1]);
	directed<float>((float) a, (double) ((__int128) a - (__int128) (float) a), f);
	*to++ = float_bits((float) f[2]);
	*to++ = 1;
	*to++ = lane ? 0 : 100;
}

static void
test_odds()
{
	Array<uint64_t> in(64), out(32 * ODD_RESULTS);
	Array<double> x(64), rounded(32 * ROUNDING_RESULTS);
	Array<int>	targets(32);

	for (int turn = 0; turn < 200; turn++)
	{
		for (int k = 0; k < 64; k++)
		{
			in[k] = some_integer();
			x[k] = ((double) (int64_t) random_bits()) / (double) (1ull << (random_bits() & 63));
		}
		RUN("odds", {1, 32}, NULL, in.at(), out.at());
		RUN("roundings", {1, 32}, NULL, x.at(), rounded.at());
		for (int k = 0; k < 32; k++)
		{
			uint64_t	want[ODD_RESULTS];
			double		r[ROUNDING_RESULTS],
						a = x[2 * k],
						b = x[2 * k + 1],
						sum = a + b,
						part = sum - a,
						root = sqrt(fabs(a));
			float		f = (float) a,
						g = (float) b;

			odd_results(in[2 * k], in[2 * k + 1], (unsigned) k, want);
			for (int n = 0; n < ODD_RESULTS; n++)
				CHECK(out[k * ODD_RESULTS + n] == want[n], "odd %d of %llx, %llx: %llx, not %llx", n, (unsigned long long) in[2 * k],
					  (unsigned long long) in[2 * k + 1], (unsigned long long) out[k * ODD_RESULTS + n], (unsigned long long) want[n]);
			directed(sum, (a - (sum - part)) + (b - part), r);
			directed(a * b, fma(a, b, -(a * b)), r + 3);
			directed(a / b, fma(-(a / b), b, a) * (b < 0 ? -1 : 1), r + 6);
			directed(root, fma(-root, root, fabs(a)), r + 9);
			directed<float>(f * g, (double) f * g - (double) (f * g), r + 12);
			directed<float>(f, a - (double) f, r + 15);
			r[18] = f + g > 0 ? f + g < 1 ? f + g : 1 : 0;
			r[19] = -0.0;
			r[20] = trunc(a);
			r[21] = a > 0 ? a < 1 ? a : 1 : 0;
			for (int n = 0; n < ROUNDING_RESULTS; n++)
				CHECK(same(rounded[k * ROUNDING_RESULTS + n], r[n]), "rounding %d of %a, %a: %a, not %a", n, a, b,
					  rounded[k * ROUNDING_RESULTS + n], r[n]);
		}
	}
	RUN("indexed", {1, 32}, NULL, targets.at());
	for (int k = 0; k < 32; k++)
		CHECK(targets[k] == (k % 4 + 1) * 10 + k + 23, "target of lane %d: %d", k, targets[k]);
}

static int
depth_of(int n)
{
	return n <= 0 ? n + 1 : depth_of(n - 1) + (n & 3) + 1;
}

static void
test_divergence()
{
	Array<int>	out(128), lock(2);
	int			sums[32],
				total = 0;

	RUN("divergence", {1, 32}, NULL, out.at());
	for (int lane = 0; lane < 32; lane++)
	{
		int			sum = lane & 1 ? (lane - 1) * 10 : lane + 1;

		for (int k = 0; k < lane * 3; k++)
			sum = (int) ((unsigned) sum * 3 + (unsigned) k);
		sums[lane] = sum;
	}
	for (int lane = 0; lane < 32; lane++)
		total = (int) ((unsigned) total + (unsigned) sums[lane]);
	for (int lane = 0; lane < 32; lane++)
		CHECK(out[lane] == total, "lane %d: %d, not %d", lane, out[lane], total);
	RUN("locks", {5, 80}, NULL, lock.at(), lock.at() + 1);
	CHECK(lock[1] == 400 && lock[0] == 0, "%d threads had the lock", lock[1]);
	RUN("calls", {1, 100}, NULL, out.at());
	for (int k = 0; k < 100; k++)
		CHECK(out[k] == depth_of(k % 7), "call %d: %d, not %d", k, out[k], depth_of(k % 7));
}

static void
test_lanes()
{
	Array<unsigned> in(32), out(32 * 16);

	for (int k = 0; k < 32; k++)
		in[k] = (unsigned) random_bits() % 50;
	RUN("lanes", {1, 32}, NULL, in.at(), out.at());
	for (unsigned lane = 0; lane < 32; lane++)
	{
		unsigned	first = lane & 16,
					want[16] = {},
					of_four = (lane & ~3u) | ((lane + 1) & 3),
					v = in[lane];

		want[3] = UINT32_MAX;
		want[6] = 1;
		for (unsigned k = first; k < first + 16; k++)
		{
			want[0] |= (unsigned) (in[k] % 3 == v % 3) << k;
			want[1] += in[k];
			want[2] = in[k] > want[2] ? in[k] : want[2];
			want[3] = in[k] < want[3] ? in[k] : want[3];
			want[4] |= (in[k] & 1) << k;
			want[5] |= in[k] == in[3];
			want[6] &= in[k] != in[3];
			want[12] ^= in[k];
		}
		want[7] = in[lane % 8 < 3 ? lane : lane - 3];
		want[8] = in[lane % 16 + 5 > 15 ? lane : lane + 5];
		want[9] = in[of_four];
		want[10] = (first ? 0xffff0000u : 0xffffu) + 1;
		want[11] = 32;
		for (unsigned k = 0; k < 32; k++)
			want[13] |= (unsigned) ((in[k] << 1 >> 4) == (v << 1 >> 4)) << k;
		for (unsigned k = 0; k < 5 && lane < 5; k++)
			want[14] |= (in[k] >> 1 & 1) << k;
		want[15] = 129;
		for (int n = 0; n < 16; n++)
			CHECK(out[lane * 16 + n] == want[n], "lane %u, operation %d: %u, not %u", lane, n, out[lane * 16 + n], want[n]);
	}
}

static void
test_barriers()
{
	Array<int>	out(256), sum(3), rounds(60), clusters(64);

	RUN("barriers", {1, 128}, NULL, out.at());
	for (int k = 0; k < 128; k++)
	{
		int			at = 127 - k;

		CHECK(out[k] == 43 + 1000 + 10000, "votes of thread %d: %d", k, out[k]);
		CHECK(out[128 + k] == (at < 64 ? at + 1 : (at - 63) * 2), "value of thread %d: %d", k, out[128 + k]);
	}
	RUN("grid_barrier", {20, 40, 0, 1, true}, NULL, sum.at(), rounds.at());
	for (int k = 0; k < 60; k++)
		CHECK(rounds[k] == 20 * (39 * 40 / 2) + 40 * (19 * 20 / 2), "round and block %d: %d", k, rounds[k]);
	RUN("cluster_sum", {8, 8, 0, 4}, NULL, clusters.at());
	for (int k = 0; k < 64; k++)
		CHECK(clusters[k] == (k < 32 ? 20 : 52), "thread %d of clusters: %d", k, clusters[k]);
}

static void
test_memory()
{
	Array<int>	in(64 * 4), out(128 * 4);
	Array<unsigned long long> words(18);
	size_t		bytes;
	int		   *counter;
	std::string why;

	for (int k = 0; k < 256; k++)
		in[k] = k + 1;
	RUN("copies", {1, 64, 64 * 32}, NULL, in.at(), out.at(), 0);
	for (int k = 0; k < 256; k++)
	{
		CHECK(out[k] == k + 1, "copy %d: %d", k, out[k]);
		CHECK(out[256 + k] == (k % 4 ? 0 : k + 1), "copy with zeros %d: %d", k, out[256 + k]);
	}
	why = launch("copies", {1, 64, 64 * 32}, NULL, in.at(), out.at(), 1);
	CHECK(why.find("cp.async") != std::string::npos, "without a wait: %s", why.c_str());

	words[3] = 3;
	RUN("atomics", {1, 96}, NULL, words.at());
	counter = (int *) emu_module_variable(module, "counter", &bytes);
	CHECK(words[0] == 95 * 96 / 2, "sum %llu", words[0]);
	CHECK(words[1] == 0xffffffff00000000ull, "xor %llx", words[1]);
	CHECK(words[2] == 96 % 10, "inc %llu", words[2]);
	CHECK(words[3] == 7, "dec %llu", words[3]);
	CHECK(*(double *) &words[4] == 48 && *(float *) &words[5] == 24, "sums of floats");
	CHECK(words[6] == 7 && words[7] == 190, "least %llu, most %llu", words[6], words[7]);
	CHECK(words[8] == 5 + 24 * 9 && counter && bytes == 4 && *counter == 5 + 24 * 9, "counter %llu", words[8]);
	CHECK(words[16] == 95 * 96 / 2 && words[17] == 96, "pair %llu, %llu", words[16], words[17]);
}

static void
test_wrong()
{
	static const char *const texts[WRONGS] = {"outside of allocations", "not aligned", "shared memory", "do not come", "different places",
		"nobody writes", "local memory", "do not come", "trap"};
	Array<char> memory(128);

	for (int kind = 0; kind < WRONGS; kind++)
	{
		std::string why = launch("wrong", {1, kind == WRONG_BARRIER ? 33u : 32u, 64}, NULL, memory.at(), kind, kind == WRONG_SHARED ? 40 : 128);

		CHECK(!why.empty() && why.find(texts[kind]) != std::string::npos, "error %d: \"%s\"", kind, why.c_str());
		if (kind == WRONG_BOUNDS)
			CHECK(why.find("thread (9, 0, 0)") != std::string::npos, "%s", why.c_str());
		if (getenv("VERBOSE"))
			printf("%s\n", why.c_str());
	}
}

static void
measure_speed()
{
	Array<uint64_t> out(256 * 16);
	EmuCounts	counts = {};
	clock_t		from = clock();
	double		seconds;

	RUN("speed", {16, 256}, &counts, out.at(), 100);
	CHECK(counts.shared_accesses > 16 * 8 * 100 && counts.global_sectors == 16 * 256 / 4 && counts.barriers == 16 * 8,
		  "counts: %llu, %llu, %llu", (unsigned long long) counts.shared_accesses, (unsigned long long) counts.global_sectors,
		  (unsigned long long) counts.barriers);
	from = clock();
	RUN("speed", {16, 256}, NULL, out.at(), 1000);
	seconds = (double) (clock() - from) / CLOCKS_PER_SEC;
	printf("speed: %.0f million lane instructions a second\n", (double) counts.lane_instructions * 10 / seconds / 1e6);
}

int
main(int argc, char **argv)
{
	EmuError	error;
	std::ifstream file(argc > 1 ? argv[1] : "");
	std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

	module = emu_module_load(text.c_str(), &error);
	if (module == NULL || text.empty())
	{
		printf("%s\n", text.empty() ? "usage: ptx_test FILE.ptx" : error.text.c_str());
		return 1;
	}
	test_arithmetic();
	test_conversions();
	test_carries();
	test_odds();
	test_divergence();
	test_lanes();
	test_barriers();
	test_memory();
	test_wrong();
	measure_speed();
	printf("%s\n", failures ? "failed" : "ok");
	return failures != 0;
}
