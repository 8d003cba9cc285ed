/*
 * hist_fast.cu
 *	  Accumulating kernels for the common shapes: an int32 column of bins, or
 *	  of keys with one range, and one operator, with or without a count, over a
 *	  column without NULLs or filter.
 *
 * Everything else goes through the kernels of hist_kernels.cu.  Same layout of shared
 * memory, same limbs; what differs is that no choice is left to the inner
 * loop, so that it runs at memory bandwidth.
 */
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* What the second slot does; the first is a count, if there is one. */
enum FastKind
{
	FAST_NONE,
	FAST_FIX_F64,
	FAST_FIX_F32,
	FAST_INT_I32,
	FAST_INT_I64,
	FAST_UINT,
	FAST_MAX_I32,
	FAST_MAX_64,				/* 64-bit integers or float8 */
	FAST_ARG,
	FAST_KINDS
};

/*
 * Threads of a multiprocessor: float sums need 80 registers, or they spill.
 * Partitions run as two blocks, so that one flushes while the other reads.
 */
static constexpr __host__ __device__ int
sm_threads(int kind)
{
	return kind == FAST_FIX_F64 || kind == FAST_FIX_F32 ? 768 : 1024;
}

/* Rows of a thread in a tile; the next tile is loaded meanwhile. */
static constexpr __host__ __device__ int
tile_items(int kind)
{
	return kind == FAST_NONE || kind == FAST_INT_I32 || kind == FAST_UINT || kind == FAST_MAX_I32 ||
		kind == FAST_ARG ? 8 : 4;
}

template <int KIND> struct FastInput
{
	typedef int32_t type;
};
template <> struct FastInput<FAST_FIX_F64>
{
	typedef u64 type;
};
template <> struct FastInput<FAST_INT_I64>
{
	typedef u64 type;
};
template <> struct FastInput<FAST_MAX_64>
{
	typedef u64 type;
};
template <> struct FastInput<FAST_FIX_F32>
{
	typedef float type;
};

struct FastArgs
{
	const int32_t *bin;
	int32_t		min;
	bool		skip_negative;	/* INDEX: negative bins are no error */
	int			count;			/* slot numbers, or -1 */
	int			slot;
};

/* The seldom case of a carry past three words; v is what the next one gets. */
static __device__ __noinline__ void
carry_on(u32 *at, u32 plane, int rest, u32 v, u32 fill)
{
	for (; rest > 0 && v != 0; rest--)
	{
		u32			old = atomicAdd(at, v);

		/* v = ~0 is a borrow: it stops where the word was not zero */
		v = fill + ((u32) (old + v) < v);
		at += plane;
	}
}

/*
 * The tile's rows with a bin into the words at p.  All rows take a step before
 * any takes the next, so that their atomics overlap.  Only values with their
 * leading bit inside the window are taken; returns the others, zeros included.
 */
template <int KIND, int ITEMS> static __device__ __forceinline__ u32
add_fixes(const HistSlot &slot, u32 *(&p)[ITEMS], u32 plane, const u32 (&bin)[ITEMS],
		  const typename FastInput<KIND>::type (&v)[ITEMS], u32 ok, int e0)
{
	u32			a[ITEMS][3];
	u32			fill[ITEMS],
				carry[ITEMS];
	int			rest[ITEMS];
	u32			late = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u64			bits;
		u32			lo,
					hi,
					shift,
					s;

		if constexpr (KIND == FAST_FIX_F32)
			bits = __double_as_longlong((double) v[j]);
		else
			bits = v[j];
		lo = (u32) bits;
		hi = (u32) (bits >> 32);
		shift = (hi >> 20 & 0x7ff) - (u32) (1075 + e0);
		/* windows hold neither the exponent 0 nor 0x7ff */
		if (shift > (u32) slot.max_shift)
			late |= 1u << j;
		fill[j] = (u32) ((int32_t) hi >> 31);
		carry[j] = fill[j] & 1;
		if ((fill[j] & ok >> j & 1) && shift <= (u32) slot.max_shift)
			leave_negative_zero(slot, bin[j]);
		hi = (hi & 0xfffff) | 0x100000;
		s = shift & 31;
		a[j][0] = (lo << s) ^ fill[j];
		a[j][1] = __funnelshift_l(lo, hi, s) ^ fill[j];
		a[j][2] = __funnelshift_l(hi, 0, s) ^ fill[j];
		rest[j] = slot.words - 3 - (int) (shift >> 5);
		p[j] += (shift >> 5) * plane;
	}
	late &= ok;
	ok &= ~late;
#pragma unroll
	for (int k = 0; k < 3; k++)
	{
		u32			old[ITEMS];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			a[j][k] += carry[j];
			carry[j] = a[j][k] < carry[j];
			old[j] = ok >> j & 1 ? atomicAdd(p[j] + k * plane, a[j][k]) : 0;
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			carry[j] += (u32) (old[j] + a[j][k]) < a[j][k];
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if ((ok >> j & 1) && fill[j] + carry[j] != 0)
			carry_on(p[j] + 3 * plane, plane, rest[j], fill[j] + carry[j], fill[j]);
	return late;
}

/* The same for narrow integers: one word, and seldom a carry. */
template <int KIND, int ITEMS> static __device__ __forceinline__ void
add_integers(const HistArgs &args, const HistSlot &slot, u32 *const (&p)[ITEMS], u32 plane,
			 const u32 (&bin)[ITEMS], const int32_t (&v)[ITEMS], u32 ok)
{
	u32			w[ITEMS],
				old[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		w[j] = KIND == FAST_UINT && (u32) v[j] > GPUAGG_U24_MAX ? GPUAGG_U24_MAX : (u32) v[j];
		old[j] = ok >> j & 1 ? atomicAdd(p[j], w[j]) : 0;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32			rest = (KIND == FAST_INT_I32 ? (u32) (v[j] >> 31) : 0) + ((u32) (old[j] + w[j]) < w[j]);

		if (rest && (ok >> j & 1))
		{
			if (slot.spill)
				atomicAdd(&args.limb[(slot.limb + 1) * (size_t) args.limb_bins + bin[j]],
						  (u64) (int64_t) (int32_t) rest);
			else
				atomicAdd(p[j] + plane, rest);
		}
	}
}

/* One row of the other kinds. */
template <int KIND> static __device__ __forceinline__ void
add_one(const HistSlot &slot, u32 *p, u32 plane, u32 row, typename FastInput<KIND>::type v)
{
	if constexpr (KIND == FAST_INT_I64)
	{
		u32			a[2] = {(u32) v, (u32) (v >> 32)};

		add_words<2>(p, plane, slot.words, a, (int64_t) v < 0 ? ~0u : 0, 0);
	}
	else if constexpr (KIND == FAST_MAX_I32)
		max_u32(p, slot.op == MONOID_MIN_I32 ? ~((u32) v ^ 0x80000000u) : (u32) v ^ 0x80000000u);
	else if constexpr (KIND == FAST_MAX_64)
		max_u64((u64 *) p, max_code(slot.op, v));
	else if constexpr (KIND == FAST_ARG)
	{
		u32			key = (u32) v ^ 0x80000000u;

		if (slot.op == MONOID_ARGMIN)
			key = ~key;
		max_u64((u64 *) p, (u64) key << 32 | (u32) ~row);
	}
}

/*
 * Rows that the tile did not take, one bit an item: zeros, floats that may be
 * outside the window, and bins that may be out of range.
 */
template <int KIND> static __device__ __noinline__ void
late_rows(const HistArgs &args, const FastArgs &fast, u32 *words, u32 plane, u32 bin0, u32 nbins, u64 row,
		  u32 late, bool report)
{
	for (; late; late &= late - 1)
	{
		u64			r = row + (u64) (__ffs(late) - 1) * blockDim.x;
		u32			bin = (u32) fast.bin[r] - (u32) fast.min;

		if (bin - bin0 >= nbins)
		{
			if (report && bin >= (u32) args.bins.nbins && !(fast.skip_negative && (int32_t) bin < 0))
				atomicAdd(&args.status->outside, 1ULL);
		}
		else if (KIND == FAST_FIX_F64 || KIND == FAST_FIX_F32)
		{
			const HistSlot &slot = args.slot[fast.slot];
			u64			bits = KIND == FAST_FIX_F64 ? ((const u64 *) slot.x.values)[r]
				: (u64) __double_as_longlong((double) ((const float *) slot.x.values)[r]);
			u32			copy = threadIdx.x & ((1u << args.log2_copies) - 1);

			FixPart		f;

			if (!fix_split(bits, args.window[2 * fast.slot], slot.max_shift, f))
			{
				change_row(args, fast.slot, bin, bits, 0);
				continue;
			}
			if (f.negative != (f.m == 0))
				leave_negative_zero(slot, bin);
			add_fix(words + (((bin - bin0) << args.log2_copies) | copy), plane, slot.words, f);
		}
	}
}

/* A thread's rows of one tile, loaded ahead of their turn. */
template <int KIND> struct FastTile
{
	typedef typename FastInput<KIND>::type T;
	static constexpr int ITEMS = tile_items(KIND);
	u32			bin[ITEMS];
	T			v[ITEMS];
	u32			ok;				/* one bit an item */

	__device__ __forceinline__ void
	load(const int32_t *bins, const T *values, u64 base, u64 end, int threads)
	{
		bool		same = sizeof(T) == 4 && (const void *) values == (const void *) bins;
		u64			left = base < end ? end - base : 0;

		bins += base + threadIdx.x;
		values += base + threadIdx.x;
		ok = 0;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (j * threads + threadIdx.x < left)
			{
				ok |= 1u << j;
				bin[j] = (u32) __ldcs(bins + j * threads);
				if (KIND != FAST_NONE && !same)
					v[j] = __ldcs(values + j * threads);
			}
		if (KIND != FAST_NONE && same)
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				memcpy(&v[j], &bin[j], 4);
	}
};

/* Rows [begin, end) in steps of stride, into bins [bin0, bin0 + nbins). */
template <int KIND, int THREADS> static __device__ __forceinline__ void
add_range(const HistArgs &args, const FastArgs &fast, u32 *shared, u32 plane, u32 bin0, u32 nbins,
		  u64 begin, u64 end, u64 stride, bool report)
{
	typedef typename FastInput<KIND>::type T;
	constexpr int ITEMS = tile_items(KIND);
	constexpr bool wide = KIND == FAST_MAX_64 || KIND == FAST_ARG;
	int			e0 = KIND == FAST_FIX_F64 || KIND == FAST_FIX_F32 ? args.window[2 * fast.slot] : 0;
	const T    *values = KIND == FAST_NONE ? nullptr : (const T *) args.slot[fast.slot].x.values;
	u32			copy = threadIdx.x & ((1u << args.log2_copies) - 1);
	bool		counting = KIND == FAST_NONE || fast.count >= 0;
	u32		   *count = shared + (counting ? (size_t) args.slot[fast.count].word * plane : 0);
	u32		   *words = shared + (KIND != FAST_NONE ? (size_t) args.slot[fast.slot].word * plane : 0);
	FastTile<KIND> next;

	next.load(fast.bin, values, begin, end, THREADS);
	for (u64 base = begin; base < end; base += stride)
	{
		FastTile<KIND> tile = next;
		u32		   *p[ITEMS];
		u32			ok = 0,
					late = 0;

		next.load(fast.bin, values, base + stride, end, THREADS);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			b = tile.bin[j] - (u32) fast.min - bin0;
			u32			at = (b << args.log2_copies) | copy;

			if (b < nbins)
				ok |= 1u << j;
			if (counting && (tile.ok >> j & 1) && b < nbins)
				atomicAdd(count + at, 1u);
			p[j] = words + (wide ? 2 * at : at);
			tile.bin[j] = b + bin0;
		}
		if (report)
			late = tile.ok & ~ok;
		ok &= tile.ok;
		if constexpr (KIND == FAST_FIX_F64 || KIND == FAST_FIX_F32)
			late |= add_fixes<KIND, ITEMS>(args.slot[fast.slot], p, plane, tile.bin, tile.v, ok, e0);
		else if constexpr (KIND == FAST_INT_I32 || KIND == FAST_UINT)
			add_integers<KIND, ITEMS>(args, args.slot[fast.slot], p, plane, tile.bin, tile.v, ok);
		else if constexpr (KIND != FAST_NONE)
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (ok >> j & 1)
					add_one<KIND>(args.slot[fast.slot], p[j], plane,
								  (u32) base + j * THREADS + threadIdx.x, tile.v[j]);
		if (late)
			late_rows<KIND>(args, fast, words, plane, bin0, nbins, base + threadIdx.x, late, report);
	}
}

template <int KIND> static __global__ void __launch_bounds__(sm_threads(KIND), 1)
fast_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	const u64	tile = tile_items(KIND) * sm_threads(KIND);
	u32			plane = args.pass_bins << args.log2_copies;

	let_successor_start();
	clear_shared(shared, (size_t) args.words * plane);
	__syncthreads();
	/* windows are needed at once, cleared limbs at the end or for a spilled carry */
	if (KIND != FAST_NONE && KIND != FAST_MAX_I32)
		wait_for_predecessor();
	for (int pass = 0; pass < args.passes; pass++)
	{
		u32			bin0 = pass * args.pass_bins;
		u32			n = min(args.pass_bins, (u32) args.bins.nbins - bin0);

		add_range<KIND, sm_threads(KIND)>(args, fast, shared, plane, bin0, n, blockIdx.x * tile, args.nrows,
							   gridDim.x * tile, pass == 0);
		__syncthreads();
		wait_for_predecessor();
		flush_to_limbs(args, shared, plane, n, args.limb, bin0);
		if (pass + 1 < args.passes)
		{
			__syncthreads();
			clear_shared(shared, (size_t) args.words * plane);
			__syncthreads();
		}
	}
}

/* A block's own bins into states, without the detour over limbs in memory. */
template <int KIND> static __device__ void
flush_fast(const HistArgs &args, const FastArgs &fast, const u32 *shared, u32 plane, u32 bin0, u32 n)
{
	if constexpr (KIND == FAST_NONE || KIND == FAST_FIX_F64 || KIND == FAST_FIX_F32)
	{
		for (u32 b = threadIdx.x; b < n; b += blockDim.x)
		{
			if (fast.count >= 0)
			{
				u32			c = shared[(size_t) args.slot[fast.count].word * plane + b];

				if (c)
					((int64_t *) args.slot[fast.count].states)[bin0 + b] += c;
			}
			if (KIND != FAST_NONE)
			{
				const HistSlot &slot = args.slot[fast.slot];
				const u32  *p = shared + (size_t) slot.word * plane + b;
				gpuagg_u128 sum = 0;

				for (int w = 0; w < slot.words - 1; w++)
					sum |= (gpuagg_u128) p[(size_t) w * plane] << (32 * w);
				sum += (gpuagg_u128) (gpuagg_i128) (int32_t) p[(size_t) (slot.words - 1) * plane]
					<< (32 * (slot.words - 1));
				fold_fix(args, fast.slot, bin0 + b, (gpuagg_i128) sum);
			}
		}
	}
	else
		flush_to_states(args, shared, plane, bin0, n);
}

template <int KIND> static __global__ void __launch_bounds__(sm_threads(KIND) / 2, 2)
fast_partition_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ u32 next,
				last;
	constexpr int threads = sm_threads(KIND) / 2;
	u32			plane = args.pass_bins;
	u32			nitems = args.counter[HIST_NITEMS];

	for (;;)
	{
		__syncthreads();
		if (threadIdx.x == 0)
			next = atomicAdd(&args.counter[HIST_NEXT], 1);
		clear_shared(shared, (size_t) args.words * plane);
		__syncthreads();
		if (next >= nitems)
			return;

		HistItem	item = args.item[next];
		u32			bin0 = item.part * args.pass_bins;
		u32			n = min(args.pass_bins, (u32) args.bins.nbins - bin0);

		add_range<KIND, threads>(args, fast, shared, plane, bin0, n, item.row0, item.row1,
								 tile_items(KIND) * threads, false);
		__syncthreads();
		if (item.split < 0)
			flush_fast<KIND>(args, fast, shared, plane, bin0, n);
		else
			flush_split(args, shared, plane, bin0, n, item.split, &last);
	}
}

/* ---- choice -------------------------------------------------------------------- */

/* Which kernel takes this slot; FAST_KINDS: none. */
static int
fast_kind(const HistSlot &slot)
{
	GpuaggValueType t = slot.x.type;

	if (slot.filter || slot.x.validity || slot.y.validity || slot.y.values)
		return FAST_KINDS;
	switch (slot.form)
	{
		case HIST_FIX:
			return t == GPUAGG_VALUE_F64 ? FAST_FIX_F64 : FAST_FIX_F32;
		case HIST_INT:
			return t == GPUAGG_VALUE_I32 && slot.words <= 2 ? FAST_INT_I32
				: t == GPUAGG_VALUE_I64 ? FAST_INT_I64 : FAST_KINDS;
		case HIST_UINT:
			return t == GPUAGG_VALUE_I32 ? FAST_UINT : FAST_KINDS;
		case HIST_MAX32:
			return slot.op != MONOID_HLL_MAX && t == GPUAGG_VALUE_I32 ? FAST_MAX_I32 : FAST_KINDS;
		case HIST_MAX64:
			return t == GPUAGG_VALUE_I64 || t == GPUAGG_VALUE_F64 ? FAST_MAX_64 : FAST_KINDS;
		case HIST_ARG:
			return t == GPUAGG_VALUE_I32 ? FAST_ARG : FAST_KINDS;
		default:
			return FAST_KINDS;
	}
}

static bool
plain_count(const HistSlot &slot)
{
	return slot.form == HIST_COUNT && !slot.filter && !slot.x.validity;
}

/* Whether fast kernels take the histogram; fills in how. */
static bool
fast_shape(const HistArgs &args, FastArgs &fast, int &kind)
{
	const GpuaggBins &b = args.bins;
	bool		index = b.kind == GPUAGG_BIN_INDEX;

	if (args.nslots > 2 || args.part_row || (!args.item && !hist_simple_bins(b)))
		return false;
	fast.count = fast.slot = -1;
	for (int s = 0; s < args.nslots; s++)
	{
		if (plain_count(args.slot[s]) && fast.count < 0)
			fast.count = s;
		else if (fast.slot < 0)
			fast.slot = s;
		else
			return false;
	}
	kind = fast.slot < 0 ? FAST_NONE : fast_kind(args.slot[fast.slot]);
	fast.bin = args.item ? args.part_bin : (const int32_t *) b.column[0].values;
	fast.min = args.item || index ? 0 : (int32_t) b.min[0];
	fast.skip_negative = index;
	return kind != FAST_KINDS;
}

template <int KIND> static cudaError_t
launch_fast(const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts, cudaStream_t stream)
{
	void	  (*kernel) (HistArgs, FastArgs) = args.item ? fast_partition_kernel<KIND>
		: fast_kernel<KIND>;
	size_t		bytes = (size_t) args.words * (args.pass_bins << args.log2_copies) * sizeof(u32);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};
	cudaError_t err;

	err = allow_shared(kernel, facts);
	if (err != cudaSuccess)
		return err;
	config.gridDim = dim3(args.item ? 2 * facts.sms : facts.sms);
	config.blockDim = dim3(args.item ? sm_threads(KIND) / 2 : sm_threads(KIND));
	config.dynamicSmemBytes = bytes;
	config.stream = stream;
	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	config.attrs = &attribute;
	config.numAttrs = facts.major >= 9 && !args.item ? 1 : 0;
	return cudaLaunchKernelEx(&config, kernel, args, fast);
}

static cudaError_t
launch_kind(int kind, const HistArgs &args, const FastArgs &fast, const DeviceFacts &facts,
			cudaStream_t stream)
{
	switch (kind)
	{
#define CASE(k) case k: return launch_fast<k>(args, fast, facts, stream)
		CASE(FAST_FIX_F64);
		CASE(FAST_FIX_F32);
		CASE(FAST_INT_I32);
		CASE(FAST_INT_I64);
		CASE(FAST_UINT);
		CASE(FAST_MAX_I32);
		CASE(FAST_MAX_64);
		CASE(FAST_ARG);
#undef CASE
		default:
			return launch_fast<FAST_NONE>(args, fast, facts, stream);
	}
}

GpuaggCudaStatus
hist_launch_fast(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream, bool *taken)
{
	FastArgs	fast = FastArgs();
	int			kind;

	*taken = fast_shape(args, fast, kind);
	if (!*taken)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(launch_kind(kind, args, fast, facts, stream));
	return GPUAGG_CUDA_OK;
}
