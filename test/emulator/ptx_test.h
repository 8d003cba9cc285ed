/*
 * ptx_test.h
 *	  What ptx_test.cu and ptx_test.cpp share: computations for both, and what can be wrong.
 */
#ifndef GPUAGG_PTX_TEST_H
#define GPUAGG_PTX_TEST_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif

#define INTEGER_RESULTS 28
#define FLOAT_RESULTS 18
#define ODD_RESULTS 31
#define ROUNDING_RESULTS 22

enum Wrong
{
	WRONG_BOUNDS,
	WRONG_ALIGNMENT,
	WRONG_SHARED,
	WRONG_BARRIER,
	WRONG_DIVERGENCE,
	WRONG_WARP,
	WRONG_LOCAL,
	WRONG_SHUFFLE,
	WRONG_TRAP,
	WRONGS
};

BOTH static inline uint64_t
integer_result(int op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t) a, sb = (int64_t) b;
	uint32_t a32 = (uint32_t) a, b32 = (uint32_t) b;
	int32_t sa32 = (int32_t) a32, sb32 = (int32_t) b32;

	switch (op)
	{
		case 0:
			return a + b;
		case 1:
			return a * b;
		case 2:
			return b ? a / b : 1;
		case 3:
			return b ? a % b : 2;
		case 4:
			return sb && !(sb == -1) ? (uint64_t) (sa / sb) : 3;
		case 5:
			return sb && !(sb == -1) ? (uint64_t) (sa % sb) : 4;
		case 6:
			return b32 ? a32 / b32 : 1;
		case 7:
			return sb32 && sb32 != -1 ? (uint64_t) (int64_t) (sa32 / sb32) : 1;
		case 8:
			return sb32 && sb32 != -1 ? (uint64_t) (int64_t) (sa32 % sb32) : 1;
		case 9:
			return a << (b & 63);
		case 10:
			return a >> (b & 63);
		case 11:
			return (uint64_t) (sa >> (b & 63));
		case 12:
			return a32 << (b & 31);
		case 13:
			return (uint64_t) (int64_t) (sa32 >> (b & 31));
		case 14:
			return sa < sb ? (uint64_t) sa : (uint64_t) sb;
		case 15:
			return a > b ? a : b;
		case 16:
			return (uint64_t) (int64_t) (int8_t) a + (uint64_t) (int64_t) (int16_t) b;
		case 17:
			return (uint8_t) a * (uint16_t) b;
#ifdef __CUDA_ARCH__
		case 18:
			return __umul64hi(a, b);
		case 19:
			return (uint64_t) __mul64hi(sa, sb);
		case 20:
			return (uint64_t) (__popcll(a) + 100 * __clzll(sa) + 10000 * __clz(sa32) +
							   1000000 * __ffs(sa32));
		case 21:
			return __brevll(a) ^ __brev(b32);
		case 22:
		{
			uint32_t r;

			asm("prmt.b32 %0, %1, %2, 0x7a21;" : "=r"(r) : "r"(a32), "r"(b32));
			return r;
		}
		case 23:
			return __funnelshift_l(a32, b32, b32 & 63);
		case 24:
			return __funnelshift_rc(a32, b32, b32 & 63);
		case 25:
			return __dp4a(a32, b32, 7u);
#else
		case 18:
			return (uint64_t) ((unsigned __int128) a * b >> 64);
		case 19:
			return (uint64_t) ((__int128) sa * sb >> 64);
		case 20:
			return (uint64_t) (__builtin_popcountll(a) + 100 * (a ? __builtin_clzll(a) : 64) +
							   10000 * (a32 ? __builtin_clz(a32) : 32) +
							   1000000 * __builtin_ffs(sa32));
		case 21:
		{
			uint64_t r = 0;

			for (int k = 0; k < 64; k++)
				r |= (a >> k & 1) << (63 - k);
			for (int k = 0; k < 32; k++)
				r ^= (uint64_t) (b32 >> k & 1) << (31 - k);
			return r;
		}
		case 22:
			return (a32 >> 8 & 0xff) | (a32 >> 16 & 0xff) << 8 |
				(a32 >> 16 & 0x80 ? 0xffu : 0) << 16 | (b32 >> 24) << 24;
		case 23:
			return b32 & 31 ? b32 << (b32 & 31) | a32 >> (32 - (b32 & 31)) : b32;
		case 24:
			return (b32 & 63) >= 32 ? b32 : (uint32_t) (((uint64_t) b32 << 32 | a32) >> (b32 & 63));
		case 25:
		{
			uint32_t sum = 7;

			for (int k = 0; k < 4; k++)
				sum += (a32 >> (8 * k) & 0xff) * (b32 >> (8 * k) & 0xff);
			return sum;
		}
#endif
		case 26:
			return (uint64_t) ((int64_t) sa32 * sb32) ^ ((uint64_t) a32 * b32 + 5);
		default:
			return (uint64_t) (sa < 0 ? -(a + 1) : a) + (a ? 0 : (uint64_t) ~b32);
	}
}

BOTH static inline double
float_result(int op, double a, double b)
{
	float fa = (float) a, fb = (float) b;

	switch (op)
	{
		case 0:
			return a + b;
		case 1:
			return a * b;
		case 2:
			return a / b;
		case 3:
			return sqrt(a);
		case 4:
			return fma(a, b, -a);
		case 5:
			return fmin(a, b);
		case 6:
			return fmax(a, b);
		case 7:
			return fa + fb;
		case 8:
			return fa * fb;
		case 9:
			return fa / fb;
		case 10:
			return sqrtf(fa);
		case 11:
			return fmaf(fa, fb, fa);
		case 12:
			return a < b ? 1 : a == b ? 2 : a > b ? 3 : 4;
		case 13:
			return !(fa < fb) ? 1 : 0;
		case 14:
			return floor(a) + ceil(b);
		case 15:
			return rint(a) - trunc(b);
		case 16:
			return (double) (float) (fabs(a) - b);
		default:
			return (double) (int64_t) (a == a && fabs(a) < 1e18 ? a : 0) +
				(float) (uint64_t) (b > 0 && b < 1e18 ? b : 0);
	}
}

#endif /* GPUAGG_PTX_TEST_H */
