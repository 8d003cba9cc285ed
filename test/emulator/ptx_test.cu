/*
 * ptx_test.cu
 *	  Small kernels for ptx_test.cpp, each for one family of instructions.  Functions of ptx_test.h
 * run on the host, too.
 */
#include <cooperative_groups.h>

#include "ptx_test.h"

namespace cg = cooperative_groups;

extern "C" __global__ void
integers(const uint64_t *a, const uint64_t *b, uint64_t *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		for (int op = 0; op < INTEGER_RESULTS; op++)
			out[(size_t) i * INTEGER_RESULTS + op] = integer_result(op, a[i], b[i]);
}

extern "C" __global__ void
floats(const double *a, const double *b, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		for (int op = 0; op < FLOAT_RESULTS; op++)
			out[(size_t) i * FLOAT_RESULTS + op] = float_result(op, a[i], b[i]);
}

/* Conversions: the expected results are in ptx_test.cpp. */
extern "C" __global__ void
conversions(const double *in, int64_t *out, int n)
{
	int i = threadIdx.x;
	double x = in[i];
	float f = (float) x;
	int64_t *to = out + i * 12;
	int w;
	unsigned u;
	unsigned short h;

	if (i >= n)
		return;
	to[0] = (int) x;
	to[1] = (unsigned) x;
	to[2] = (int64_t) x;
	to[3] = (int64_t) (uint64_t) x;
	to[4] = (int) f;
	to[5] = (int64_t) f;
	to[6] = __double2int_rn(x);
	to[7] = __double2int_ru(x);
	asm("cvt.rni.sat.s8.f64 %0, %1;" : "=r"(w) : "d"(x));
	to[8] = w;
	asm("cvt.rzi.u8.f32 %0, %1;" : "=r"(u) : "f"(f));
	to[9] = u;
	asm("cvt.sat.u16.s32 %0, %1;" : "=h"(h) : "r"((int) x));
	to[10] = h;
	asm("cvt.sat.s8.s64 %0, %1;" : "=r"(w) : "l"((int64_t) x));
	to[11] = w;
}

#define PTX32(text, ...) \
	do \
	{ \
		unsigned d_; \
		asm volatile(text : "=r"(d_) : __VA_ARGS__); \
		*to++ = d_; \
	} while (0)
#define PTX64(text, ...) \
	do \
	{ \
		uint64_t d_; \
		asm volatile(text : "=l"(d_) : __VA_ARGS__); \
		*to++ = d_; \
	} while (0)

/* What nvcc has no other way to; in the order of odd_results() in ptx_test.cpp. */
extern "C" __global__ void
odds(const uint64_t *in, uint64_t *out)
{
	uint64_t a = in[2 * threadIdx.x], b = in[2 * threadIdx.x + 1],
			 *to = out + threadIdx.x * ODD_RESULTS;
	unsigned a32 = (unsigned) a, b32 = (unsigned) b, c32 = (unsigned) (a >> 32), at = b32 & 0x7f,
			 n = b32 >> 8 & 0x7f;

	PTX32("bfe.u32 %0, %1, %2, %3;", "r"(a32), "r"(at), "r"(n));
	PTX32("bfe.s32 %0, %1, %2, %3;", "r"(a32), "r"(at), "r"(n));
	PTX64("bfe.u64 %0, %1, %2, %3;", "l"(a), "r"(at), "r"(n));
	PTX64("bfe.s64 %0, %1, %2, %3;", "l"(a), "r"(at), "r"(n));
	PTX32("bfi.b32 %0, %1, %2, %3, %4;", "r"(a32), "r"(c32), "r"(at), "r"(n));
	PTX64("bfi.b64 %0, %1, %2, %3, %4;", "l"(a), "l"(b), "r"(at), "r"(n));
	PTX32("lop3.b32 %0, %1, %2, %3, 0xca;", "r"(a32), "r"(b32), "r"(c32));
	PTX32("lop3.b32 %0, %1, %2, %3, 0x1d;", "r"(a32), "r"(b32), "r"(c32));
	PTX32("sad.s32 %0, %1, %2, %3;", "r"(a32), "r"(b32), "r"(c32));
	PTX32("slct.u32.s32 %0, %1, %2, %3;", "r"(a32), "r"(b32), "r"(c32));
	PTX32("{ .reg .pred p, q, r; setp.ne.u32 r, %3, 0; setp.lt.and.s32 p|q, %1, %2, r; selp.u32 "
		  "%0, 1, 0, p; @q add.u32 %0, %0, 2; "
		  "setp.lt.xor.u32 p, %1, %2, !r; @!p add.u32 %0, %0, 4; }",
		  "r"(a32), "r"(b32), "r"(c32 & 1));
	PTX32("bfind.s32 %0, %1;", "r"(a32));
	PTX32("bfind.u64 %0, %1;", "l"(a));
	PTX32("bfind.shiftamt.s64 %0, %1;", "l"(a));
	PTX32("bmsk.clamp.b32 %0, %1, %2;", "r"(at), "r"(n));
	PTX32("div.s32 %0, %1, %2;", "r"(a32), "r"((int) (b32 % 3) - 1));
	PTX32("rem.s32 %0, %1, %2;", "r"(a32), "r"((int) (b32 % 3) - 1));
	PTX64("div.u64 %0, %1, %2;", "l"(a), "l"(b & 1));
	PTX64("rem.s64 %0, %1, %2;", "l"(a), "l"((int64_t) (b % 3) - 1));
	PTX32("mad.hi.s32 %0, %1, %2, %3;", "r"(a32), "r"(b32), "r"(c32));
	PTX64("mad.wide.s32 %0, %1, %2, %3;", "r"(a32), "r"(b32), "l"(b));
	PTX64("{ .reg .b32 x, y; mov.b64 {x, y}, %1; mov.b64 %0, {y, x}; }", "l"(a));
	PTX32("shl.b32 %0, %1, %2;", "r"(a32), "r"(at));
	PTX32("shr.s32 %0, %1, %2;", "r"(a32), "r"(at));
	PTX64("shr.u64 %0, %1, %2;", "l"(a), "r"(at));
	PTX32("cvt.rn.f32.s64 %0, %1;", "l"(a));
	PTX32("cvt.rz.f32.s64 %0, %1;", "l"(a));
	PTX32("cvt.rm.f32.s64 %0, %1;", "l"(a));
	PTX32("cvt.rp.f32.u64 %0, %1;", "l"(a));
	PTX32("{ .reg .pred p; setp.lt.u32 p, %1, %2; vote.sync.uni.pred p, p, -1; selp.u32 %0, 1, 0, "
		  "p; }",
		  "r"(a32 & 1), "r"(2));
	PTX32("{ .reg .pred p; elect.sync %0|p, -1; @p add.u32 %0, %0, 100; }", "r"(a32));
}

/*
 * Rounding: add, mul, div, fma, sqrt of doubles, mul of floats, each by zero, down and up; then
 * saturation and flushing.
 */
extern "C" __global__ void
roundings(const double *in, double *out)
{
	double a = in[2 * threadIdx.x], b = in[2 * threadIdx.x + 1],
		   *to = out + threadIdx.x * ROUNDING_RESULTS;
	float f = (float) a, g = (float) b, r;

	*to++ = __dadd_rz(a, b), *to++ = __dadd_rd(a, b), *to++ = __dadd_ru(a, b);
	*to++ = __dmul_rz(a, b), *to++ = __dmul_rd(a, b), *to++ = __dmul_ru(a, b);
	*to++ = __ddiv_rz(a, b), *to++ = __ddiv_rd(a, b), *to++ = __ddiv_ru(a, b);
	*to++ = __dsqrt_rz(fabs(a)), *to++ = __dsqrt_rd(fabs(a)), *to++ = __dsqrt_ru(fabs(a));
	*to++ = __fmul_rz(f, g), *to++ = __fmul_rd(f, g), *to++ = __fmul_ru(f, g);
	*to++ = __double2float_rz(a), *to++ = __double2float_rd(a), *to++ = __double2float_ru(a);
	asm volatile("add.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(f), "f"(g));
	*to++ = r;
	asm volatile("mul.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(1e-30f), "f"(-1e-10f));
	*to++ = r;
	asm volatile("cvt.rzi.f64.f64 %0, %1;" : "=d"(*to) : "d"(a));
	to++;
	asm volatile("cvt.sat.f64.f64 %0, %1;" : "=d"(*to) : "d"(a));
}

/* A branch by index, by lanes that take each of the targets. */
extern "C" __global__ void
indexed(int *out)
{
	int r;

	asm volatile("{ .reg .u32 n; and.b32 n, %1, 3;\n"
				 "W: .branchtargets A, B, C, D;\n"
				 "brx.idx n, W;\n"
				 "A: mov.u32 %0, 10; bra E;\n"
				 "B: mov.u32 %0, 20; bra E;\n"
				 "C: mov.u32 %0, 30; bra E;\n"
				 "D: mov.u32 %0, 40;\n"
				 "E: add.u32 %0, %0, %1; }"
				 : "=&r"(r)
				 : "r"(threadIdx.x));
	out[threadIdx.x] = r + __popc(__ballot_sync(0xffffffff, r > 30));
}

/* a of 256 bits plus b, and a product of 128 bits. */
extern "C" __global__ void
carries(const uint64_t *a, const uint64_t *b, uint64_t *out)
{
	int i = threadIdx.x * 4;

	asm("add.cc.u64 %0, %4, %8; addc.cc.u64 %1, %5, %9; addc.cc.u64 %2, %6, %10; addc.u64 %3, %7, "
		"%11;"
		: "=&l"(out[i]), "=&l"(out[i + 1]), "=&l"(out[i + 2]), "=&l"(out[i + 3])
		: "l"(a[i]), "l"(a[i + 1]), "l"(a[i + 2]), "l"(a[i + 3]), "l"(b[i]), "l"(b[i + 1]),
		  "l"(b[i + 2]), "l"(b[i + 3]));
	asm("sub.cc.u64 %0, %2, %4; subc.u64 %1, %3, %5;"
		: "=&l"(out[128 + i]), "=&l"(out[128 + i + 1])
		: "l"(a[i]), "l"(a[i + 1]), "l"(b[i]), "l"(b[i + 1]));
	asm("mad.lo.cc.u64 %0, %2, %3, %4; madc.hi.u64 %1, %2, %3, %5;"
		: "=&l"(out[128 + i + 2]), "=&l"(out[128 + i + 3])
		: "l"(a[i]), "l"(b[i]), "l"(a[i + 1]), "l"(b[i + 1]));
}

/* Lanes take different ways and different numbers of turns, and meet in shuffles. */
extern "C" __global__ void
divergence(int *out)
{
	int lane = threadIdx.x & 31, sum = 0;

	__shared__ int seen[32];

	seen[lane] = 0;
	__syncwarp();
	if (lane & 1)
	{
		seen[lane] = lane;
		__syncwarp();
		sum = seen[lane - 1];
	}
	else
	{
		seen[lane] = lane * 10;
		__syncwarp();
		sum = seen[lane + 1];
	}
	for (int k = 0; k < lane * 3; k++)
		sum = sum * 3 + k;
	for (int offset = 16; offset; offset /= 2)
		sum += __shfl_xor_sync(0xffffffff, sum, offset);
	out[threadIdx.x] = sum;
}

/* Lanes of a warp, warps and blocks take a lock after one another. */
extern "C" __global__ void
locks(int *lock, int *count)
{
	while (atomicCAS(lock, 0, 1) != 0)
		;
	__threadfence();
	*(volatile int *) count = *(volatile int *) count + 1;
	__threadfence();
	atomicExch(lock, 0);
}

__device__ __noinline__ int
depth_of(int n)
{
	int seen[4] = {n, n + 1, n + 2, n + 3};

	if (n <= 0)
		return __shfl_sync(__activemask(), seen[0], threadIdx.x & 31) + 1;
	return depth_of(n - 1) + seen[n & 3] - seen[0] + 1;
}

extern "C" __global__ void
calls(int *out)
{
	out[threadIdx.x] = depth_of(threadIdx.x % 7);
}

extern "C" __global__ void
lanes(const unsigned *in, unsigned *out)
{
	unsigned lane = threadIdx.x, half = lane < 16 ? 0xffffu : 0xffff0000u, v = in[lane];
	int all;
	unsigned *to = out + lane * 16;

	to[0] = __match_any_sync(half, v % 3);
	to[1] = __reduce_add_sync(half, v);
	to[2] = __reduce_max_sync(half, v);
	to[3] = (unsigned) __reduce_min_sync(half, (int) v);
	to[4] = __ballot_sync(half, v & 1);
	to[5] = __any_sync(half, v == in[3]);
	to[6] = __all_sync(half, v != in[3]);
	to[7] = __shfl_up_sync(half, v, 3, 8);
	to[8] = __shfl_down_sync(half, v, 5, 16);
	to[9] = __shfl_sync(half, v, lane + 1, 4);
	to[10] = __match_all_sync(half, lane / 16, &all);
	to[10] += (unsigned) all;
	to[11] = __popc(__activemask());
	to[12] = __reduce_xor_sync(half, v);
	to[13] = (unsigned) __match_any_sync(0xffffffff, (unsigned long long) v << 33 >> 36);
	to[14] = lane < 5 ? __ballot_sync(0x1f, v & 2) : 0;
	to[15] = __reduce_or_sync(0xffffffff, lane == 7 ? 128 : 1);
}

/* Producers and consumers with barriers of their own, and a vote of all. */
extern "C" __global__ void
barriers(int *out)
{
	__shared__ int values[128];
	int warp = threadIdx.x / 32;

	values[threadIdx.x] = 0;
	__syncthreads();
	if (warp < 2)
	{
		values[threadIdx.x] = threadIdx.x + 1;
		asm volatile("bar.arrive 3, 128;" ::: "memory");
	}
	else
	{
		asm volatile("bar.sync 3, 128;" ::: "memory");
		values[threadIdx.x] = values[threadIdx.x - 64] * 2;
	}
	out[threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0) +
		__syncthreads_or(threadIdx.x == 77) * 1000 + __syncthreads_and(threadIdx.x < 128) * 10000;
	out[128 + threadIdx.x] = values[127 - threadIdx.x];
}

extern "C" __global__ void
grid_barrier(int *sum, int *out)
{
	for (int round = 0; round < 3; round++)
	{
		atomicAdd(&sum[round], blockIdx.x + threadIdx.x);
		cg::this_grid().sync();
		if (threadIdx.x == 0)
			out[round * gridDim.x + blockIdx.x] = *(volatile int *) &sum[round];
	}
}

extern "C" __global__ void
cluster_sum(int *out)
{
	__shared__ int mine;
	cg::cluster_group cluster = cg::this_cluster();
	int sum = 0;

	if (threadIdx.x == 0)
		mine = (int) blockIdx.x + 1;
	cluster.sync();
	for (unsigned k = 0; k < cluster.num_blocks(); k++)
	{
		unsigned at = (unsigned) __cvta_generic_to_shared(&mine), there;
		int value;

		asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(k));
		asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there));
		sum += value + *cluster.map_shared_rank(&mine, k);
	}
	cluster.sync();
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* mode 1: without a wait. */
extern "C" __global__ void
copies(const int4 *in, int4 *out, int mode)
{
	extern __shared__ int4 staged[];
	unsigned to = (unsigned) __cvta_generic_to_shared(&staged[threadIdx.x]);

	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(&in[threadIdx.x])
				 : "memory");
	asm volatile("cp.async.commit_group;" ::: "memory");
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + blockDim.x * 16),
				 "l"(&in[threadIdx.x]), "r"(4)
				 : "memory");
	asm volatile("cp.async.commit_group;" ::: "memory");
	asm volatile("cp.async.wait_group 1;" ::: "memory");
	out[threadIdx.x] = staged[threadIdx.x];
	if (mode == 0)
		asm volatile("cp.async.wait_all;" ::: "memory");
	out[blockDim.x + threadIdx.x] = staged[blockDim.x + threadIdx.x];
}

__constant__ int table[4] = {3, 1, 4, 1};
__device__ int counter = 5;
__device__ int *where = &counter;

/* Atomics of all kinds, a switch, 128 bits, variables. */
extern "C" __global__ void
atomics(unsigned long long *out)
{
	__shared__ unsigned least, most;
	unsigned t = threadIdx.x;
	ulonglong2 *pair = (ulonglong2 *) (out + 16);

	if (t == 0)
		least = 1000, most = 0;
	__syncthreads();
	atomicAdd(&out[0], (unsigned long long) t);
	atomicMin(&least, t + 7);
	atomicMax(&most, t * 2);
	atomicXor(&out[1], 1ull << (t % 64));
	atomicInc((unsigned *) &out[2], 9);
	atomicDec((unsigned *) &out[3], 9);
	atomicAdd((double *) &out[4], 0.5);
	atomicAdd((float *) &out[5], 0.25f);
	atomicAdd(where, table[t % 4]);
	for (bool done = false; !done;)
	{
		unsigned long long lo, hi, old_lo = pair->x, old_hi = pair->y;

		asm volatile("{ .reg .b128 d, b, c; mov.b128 b, {%3, %4}; mov.b128 c, {%5, %6};\n"
					 "atom.cas.b128 d, [%2], b, c; mov.b128 {%0, %1}, d; }"
					 : "=l"(lo), "=l"(hi)
					 : "l"(pair), "l"(old_lo), "l"(old_hi), "l"(old_lo + t), "l"(old_hi + 1)
					 : "memory");
		done = lo == old_lo && hi == old_hi;
	}
	__syncthreads();
	if (t == 0)
	{
		out[6] = least;
		out[7] = most;
		out[8] = (unsigned long long) counter;
	}
}

/* What must be reported. */
extern "C" __global__ void
wrong(char *memory, int kind, int n)
{
	extern __shared__ char few[];

	switch (kind)
	{
		case WRONG_BOUNDS:
			memory[threadIdx.x == 9 ? n : threadIdx.x] = 1;
			break;
		case WRONG_ALIGNMENT:
			*(int *) (memory + threadIdx.x * 3) = 1;
			break;
		case WRONG_SHARED:
			few[n + threadIdx.x] = 1;
			memory[0] = few[n];
			break;
		case WRONG_BARRIER:
			if (threadIdx.x < 32)
				asm volatile("bar.sync 1, 64;" ::: "memory");
			break;
		case WRONG_DIVERGENCE:
			if (threadIdx.x & 1)
				asm volatile("bar.sync 2; add.u32 %0, %0, 1;" : "+r"(n));
			else
				asm volatile("bar.sync 2; add.u32 %0, %0, 2;" : "+r"(n));
			memory[0] = (char) n;
			break;
		case WRONG_WARP:
			if (threadIdx.x == 3)
				while (*(volatile char *) memory == 0)
					;
			else
				__syncwarp();
			break;
		case WRONG_LOCAL:
		{
			char own[16];

			for (int k = 0; k < 16; k++)
				own[k] = (char) (memory[k] + k);
			memory[0] = own[n & 15] + *(volatile char *) (own + (threadIdx.x == 5 ? n : 3));
		}
		break;
		case WRONG_SHUFFLE:
			if (threadIdx.x < 16)
				memory[threadIdx.x] = (char) __shfl_sync(0xffffffff, n, 0);
			else
				asm volatile("bar.sync 0;" ::: "memory");
			break;
		case WRONG_TRAP:
			__trap();
	}
}

/* For speed: 64 bits mixed, and a table in shared memory. */
extern "C" __global__ void
speed(uint64_t *out, int turns)
{
	__shared__ unsigned table[1024];
	uint64_t x = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned sum = 0;

	for (int k = threadIdx.x; k < 1024; k += blockDim.x)
		table[k] = k;
	__syncthreads();
	for (int k = 0; k < turns; k++)
	{
		x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull + k;
		sum += table[x & 1023] + (unsigned) (x >> 40) % 7 * 3;
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = x + sum;
}
