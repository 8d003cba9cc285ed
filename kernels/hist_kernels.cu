/*
 * hist_kernels.cu
 *	  The kernels of generalized histograms.
 *
 * An update is prepare (clear limbs, place the windows of floats) → accumulate
 * → fold.  On devices that can, each starts while its predecessor drains and waits where it needs
 * the predecessor's results.
 */
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

#define THREADS 512
#define ITEMS_GENERIC 8

/* ---- prepare ------------------------------------------------------------- */

/* Greatest exponent among sampled finite values of a column, as stored. */
static __device__ int
sample_exponent(const HistArgs &args, const GpuaggColumn &c)
{
	int			best = 0;
	u32			samples = args.nrows < HIST_SAMPLE ? args.nrows : HIST_SAMPLE;

	/* one of each 4096th part of the rows, or all */
#pragma unroll 8
	for (u32 i = threadIdx.x; i < samples; i += blockDim.x)
	{
		u64			from = (u64) args.nrows * i / HIST_SAMPLE,
					to = (u64) args.nrows * (i + 1) / HIST_SAMPLE;
		u32			row = samples < HIST_SAMPLE ? i : (u32) (from + __umul64hi(mix64(i), to - from));
		int			e;

		if (c.validity && !bit_set(c.validity, row))
			continue;
		e = (int) ((u64) __double_as_longlong(load_double(c, row)) >> 52) & 0x7ff;
		if (e != 0x7ff && e > best)
			best = e;
	}
	return best;
}

static __global__ void
prepare_kernel(const __grid_constant__ HistArgs args)
{
	size_t		total = args.item ? 0 : (size_t) args.limbs * args.limb_bins;

	wait_for_predecessor();
	let_successor_start();
	for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < total;
		 i += (size_t) gridDim.x * blockDim.x)
		args.limb[i] = 0;
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; args.locks && i < HIST_LOCKS; i += gridDim.x * blockDim.x)
		args.lock[i] = 0;
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < args.zeros; i += gridDim.x * blockDim.x)
		args.zero[i] = 0;
	for (int k = blockIdx.x; k < 2 * args.nslots; k += gridDim.x)
	{
		const HistSlot &slot = args.slot[k / 2];
		__shared__ int best;

		if (slot.form != HIST_FIX && slot.form != HIST_ACCUM && slot.form != HIST_REGR)
			continue;
		if (k % 2 == 1 && slot.form != HIST_REGR)
			continue;
		__syncthreads();
		if (threadIdx.x == 0)
			best = 0;
		__syncthreads();
		atomicMax(&best, sample_exponent(args, k % 2 ? slot.y : slot.x));
		__syncthreads();
		/* three bits above the sample's maximum, and all exponents those of numbers */
		if (threadIdx.x == 0)
		{
			int			least = (best ? best : 1023) + 3 - slot.max_shift;
			int			most = 2046 - slot.max_shift;

			/* so have the numbers that cut off digits */
			if (slot.form == HIST_FIX)
				most = min(most, 2045 - fix_weight(slot.digits, slot.digits - 1));
			args.window[k] = min(max(least, 1), most) - 1075;
		}
	}
}

/* ---- accumulate ------------------------------------------------------------ */

#define EACH_ROW(body) \
	_Pragma("unroll") for (int j = 0; j < ITEMS; j++) \
		if (ok >> j & 1) \
		{ \
			u32 at = ((u32) bin[j] << args.log2_copies) | copy; \
			body \
		} \
	break

/*
 * The same for longer bodies, through one copy of them: eight for each operator
 * of a call do not fit the instruction cache, which made calls with several nine
 * times slower.  Rows move up, so that they stay in registers.
 */
template <int ITEMS, typename Body> static __device__ __forceinline__ void
row_after_row(u32 ok, const u32 (&rows)[ITEMS], const int32_t (&bins)[ITEMS], u64 (&lo)[ITEMS],
			  u64 (&hi)[ITEMS], const Body &body)
{
	u32			row[ITEMS];
	int32_t		bin[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		row[j] = rows[j];
		bin[j] = bins[j];
	}
#pragma unroll 1
	for (; ok; ok >>= 1)
	{
		if (ok & 1)
			body(row[0], bin[0], lo[0], hi[0]);
#pragma unroll
		for (int j = 0; j + 1 < ITEMS; j++)
		{
			row[j] = row[j + 1];
			bin[j] = bin[j + 1];
			lo[j] = lo[j + 1];
			hi[j] = hi[j + 1];
		}
	}
}

#define ROW_AFTER_ROW(body) \
	row_after_row<ITEMS>(ok, row, bin, lo, hi, [&](u32 r, int32_t b, u64 l, u64 h) { \
		u32 at = ((u32) b << args.log2_copies) | copy; \
		body \
	}); \
	break

template <int ITEMS> static __device__ __forceinline__ u32
slot_rows(const HistSlot &slot, const u32 (&row)[ITEMS], u32 ok)
{
	const uint8_t *bits[2] = {slot.x.validity, slot.y.validity};

	if (slot.filter)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if ((ok >> j & 1) && !slot.filter[row[j]])
				ok &= ~(1u << j);
	for (int k = 0; k < 2; k++)
		if (bits[k])
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if ((ok >> j & 1) && !bit_set(bits[k], row[j]))
					ok &= ~(1u << j);
	return ok;
}

/* One slot's rows into shared memory; bins are relative to bin0. */
template <int ITEMS> static __device__ __forceinline__ void
add_slot(const HistArgs &args, int s, u32 *shared, u32 plane, u32 copy, u32 bin0,
		 const u32 (&row)[ITEMS], const int32_t (&bin)[ITEMS], u32 ok)
{
	const HistSlot &slot = args.slot[s];
	u32		   *p = shared + (size_t) slot.word * plane;
	u64			lo[ITEMS],
				hi[ITEMS];

	ok = slot_rows<ITEMS>(slot, row, ok);
	if (slot.form == HIST_COUNT)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				atomicAdd(&p[((u32) bin[j] << args.log2_copies) | copy], 1u);
		return;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		hi[j] = args.first_row + row[j];
	if (slot.x.values)
		load_items<ITEMS>(slot.x, row, ok, lo, hi);
	if (slot.extend)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			hi[j] = (u64) ((int64_t) lo[j] >> 63);
	if (slot.y.values)
	{
		u64			unused[ITEMS];

		load_items<ITEMS>(slot.y, row, ok, hi, unused);
	}
	switch (slot.form)
	{
		case HIST_INT:
			EACH_ROW(add_integer(args, slot, p + at, plane, bin0 + bin[j], lo[j], hi[j]););
		case HIST_UINT:
			EACH_ROW(add_integer(args, slot, p + at, plane, bin0 + bin[j],
								 (u32) lo[j] > GPUAGG_U24_MAX ? GPUAGG_U24_MAX : (u32) lo[j], 0););
		case HIST_INTSQ:
			ROW_AFTER_ROW(add_square(slot, p + at, plane, l););
		case HIST_FIX:
		case HIST_ACCUM:
		case HIST_REGR:
			ROW_AFTER_ROW(if (!add_floats(args, slot, s, p + at, plane, bin0 + b, l, h))
							  change_row(args, s, bin0 + b, l, h););
		case HIST_MAX32:
			EACH_ROW(max_u32(p + at, (u32) max_code(slot.op, lo[j])););
		case HIST_MAX64:
			ROW_AFTER_ROW(max_u64((u64 *) p + at, max_code(slot.op, l)););
		case HIST_ARG:
			ROW_AFTER_ROW(u32 key = (u32) l ^ 0x80000000u;
						  if (slot.op == MONOID_ARGMIN) key = ~key;
						  max_u64((u64 *) p + at, (u64) key << 32 | (u32) ~r););
		case HIST_OR64:
		case HIST_XOR64:
			ROW_AFTER_ROW(u64 v = slot.op == MONOID_BIT_AND ? ~l : l;
						  for (int k = 0; k < 2; k++)
						  {
							  u32 * q = p + at + k * plane;
							  u32 w = (u32) (v >> (32 * k));

							  if (slot.form == HIST_XOR64)
								  atomicXor(q, w);
							  else if (w & ~*(volatile u32 *) q)
								  atomicOr(q, w);
						  });
		default:
			row_after_row<ITEMS>(ok, row, bin, lo, hi, [&](u32, int32_t b, u64 l, u64 h) {
				change_row(args, s, bin0 + b, l, h);
			});
	}
}

/* Rows [begin, end) in steps of stride tiles, into bins [bin0, bin0 + nbins). */
template <int ITEMS> static __device__ void
add_rows(const HistArgs &args, u32 *shared, u32 plane, u32 bin0, u32 nbins, u64 begin, u64 end,
		 u64 stride)
{
	u32			copy = threadIdx.x & ((1u << args.log2_copies) - 1);

	for (u64 base = begin; base < end; base += stride)
	{
		u32			row[ITEMS];
		int32_t		bin[ITEMS];
		u32			ok = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			r = base + (u64) j * blockDim.x + threadIdx.x;

			row[j] = (u32) r;
			if (r < end)
				ok |= 1u << j;
		}
		if (args.item)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				bin[j] = !(ok >> j & 1) ? 0
					: args.part_narrow ? bin0 + ((const uint16_t *) args.part_bin)[row[j]]
					: ((const int32_t *) args.part_bin)[row[j]];
			if (args.part_row)
#pragma unroll
				for (int j = 0; j < ITEMS; j++)
					row[j] = (ok >> j & 1) ? args.part_row[row[j]] : 0;
		}
		else
			ok = find_bins<ITEMS>(args.bins, row, ok, bin, args.status);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			bin[j] -= bin0;
			if ((u32) bin[j] >= nbins)
				ok &= ~(1u << j);
		}
		for (int s = 0; s < args.nslots; s++)
			add_slot<ITEMS>(args, s, shared, plane, copy, bin0, row, bin, ok);
	}
}

/* ---- the kernels --------------------------------------------------------------- */

/* M sub-histograms, S passes over the rows. */
template <int ITEMS> static __global__ void __launch_bounds__(THREADS, 1)
shared_kernel(const __grid_constant__ HistArgs args)
{
	extern __shared__ __align__(16) u32 shared[];
	u32			nbins = (u32) args.bins.nbins;
	u64			tile = (u64) ITEMS * blockDim.x;
	u32			plane = args.pass_bins << args.log2_copies;
	/* an even share, in whole lines of a warp: small batches have fewer tiles than there are blocks */
	u64			lines = ((u64) args.nrows + 31) / 32,
				begin = lines * blockIdx.x / gridDim.x * 32,
				end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, (u64) args.nrows);

	let_successor_start();
	clear_shared(shared, (size_t) args.words * plane);
	__syncthreads();
	wait_for_predecessor();
	for (int pass = 0; pass < args.passes; pass++)
	{
		u32			bin0 = pass * args.pass_bins;
		u32			n = min(args.pass_bins, nbins - bin0);

		add_rows<ITEMS>(args, shared, plane, bin0, n, begin, end, tile);
		__syncthreads();
		flush_to_limbs(args, shared, plane, n, args.limb, bin0);
		if (pass + 1 < args.passes)
		{
			__syncthreads();
			clear_shared(shared, (size_t) args.words * plane);
			__syncthreads();
		}
	}
}

static __global__ void
fold_kernel(const __grid_constant__ HistArgs args)
{
	u64			work = (u64) args.bins.nbins * args.nslots;

	let_successor_start();
	wait_for_predecessor();
	for (u64 i = blockIdx.x * (u64) blockDim.x + threadIdx.x; i < work;
		 i += (u64) gridDim.x * blockDim.x)
		fold_bin(args, (int) (i / args.bins.nbins), args.limb, 0, (u32) (i % args.bins.nbins));
}

/* Work items, each a partition's rows or a part of them, taken in order. */
template <int ITEMS> static __global__ void __launch_bounds__(THREADS, 1)
partition_kernel(const __grid_constant__ HistArgs args)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ u32 next,
				last;
	u32			plane = args.pass_bins;
	u32			nitems;

	wait_for_predecessor();
	let_successor_start();
	nitems = args.counter[HIST_NITEMS];

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

		add_rows<ITEMS>(args, shared, plane, bin0, n, item.row0, item.row1, (u64) ITEMS * blockDim.x);
		__syncthreads();
		if (item.split < 0)
		{
			flush_to_states(args, shared, plane, bin0, n);
			continue;
		}

		flush_split(args, shared, plane, bin0, n, item.split, &last);
	}
}

/* Operators without a form alone, or too many bins for anything else. */
template <int ITEMS> static __global__ void __launch_bounds__(256)
global_kernel(const __grid_constant__ HistArgs args)
{
	u64			tile = (u64) ITEMS * blockDim.x;

	for (u64 base = blockIdx.x * tile; base < args.nrows; base += gridDim.x * tile)
	{
		u32			row[ITEMS];
		int32_t		bin[ITEMS];
		u32			ok = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			r = base + (u64) j * blockDim.x + threadIdx.x;

			row[j] = (u32) r;
			if (r < args.nrows)
				ok |= 1u << j;
		}
		ok = find_bins<ITEMS>(args.bins, row, ok, bin, args.status);
		for (int s = 0; s < args.nslots; s++)
			add_slot<ITEMS>(args, s, nullptr, 0, 0, 0, row, bin, ok);
	}
}

static __global__ void
bins_kernel(const __grid_constant__ GpuaggBins bins, u32 nrows, int32_t *out, GpuaggHistStatus *status)
{
	for (u64 r = blockIdx.x * (u64) blockDim.x + threadIdx.x; r < nrows; r += (u64) gridDim.x * blockDim.x)
	{
		u32			row[1] = {(u32) r};
		int32_t		bin[1];
		u32			ok = find_bins<1>(bins, row, 1, bin, status);

		out[r] = ok ? bin[0] : -1;
	}
}

/* ---- launches ------------------------------------------------------------------- */

GpuaggCudaStatus
hist_launch_prepare(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(launch_early(prepare_kernel, facts.sms, 512, 0, facts, stream, args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_fold(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	u64			work = (u64) args.bins.nbins * args.nslots;

	CUDA_TRY(launch_early(fold_kernel, (int) (work / 128 + 1 < 8192 ? work / 128 + 1 : 8192), 128, 0, facts, stream,
						  args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_shared(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = (size_t) args.words * (args.pass_bins << args.log2_copies) * sizeof(u32);
	bool		taken;

	STATUS_TRY(hist_launch_fast(args, facts, stream, &taken));
	if (!taken)
	{
		CUDA_TRY(allow_shared(shared_kernel<ITEMS_GENERIC>, facts));
		CUDA_TRY(launch_early(shared_kernel<ITEMS_GENERIC>, facts.sms, THREADS, bytes, facts, stream, args));
	}
	return hist_launch_fold(args, facts, stream);
}

GpuaggCudaStatus
hist_launch_partition(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = (size_t) args.words * args.pass_bins * sizeof(u32);
	bool		taken;

	STATUS_TRY(hist_launch_fast(args, facts, stream, &taken));
	if (taken)
		return GPUAGG_CUDA_OK;
	CUDA_TRY(allow_shared(partition_kernel<ITEMS_GENERIC>, facts));
	CUDA_TRY(launch_early(partition_kernel<ITEMS_GENERIC>, 2 * facts.sms, THREADS, bytes, facts, stream, args));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_global(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	global_kernel<4><<<8 * facts.sms, 256, 0, stream>>>(args);
	CUDA_TRY_LAUNCH("global_kernel");
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_bins(const GpuaggBins *bins, int64_t nrows, int32_t *out, GpuaggHistStatus *status,
				 gpuagg_stream stream)
{
	const DeviceFacts *facts;

	if (nrows < 0 || nrows > UINT32_MAX || bins->nbins >= INT32_MAX)
		return GPUAGG_CUDA_INVALID;
	if (nrows == 0)
		return GPUAGG_CUDA_OK;
	STATUS_TRY(gpuagg_device_facts(&facts));
	bins_kernel<<<8 * facts->sms, 256, 0, stream>>>(*bins, (u32) nrows, out, status);
	CUDA_TRY_LAUNCH("bins_kernel");
	return GPUAGG_CUDA_OK;
}

/* ---- states --------------------------------------------------------------------- */

template <typename Op> static __global__ void
init_kernel(typename Op::State *states, int64_t n)
{
	typename Op::State id = Op::identity();

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		states[i] = id;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_init(MonoidId op, void *states, int64_t nbins, gpuagg_stream stream)
{
	int			blocks = (int) (nbins / 256 + 1 < 4096 ? nbins / 256 + 1 : 4096);

	if (nbins < 0)
		return GPUAGG_CUDA_INVALID;
	switch (op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
		case MONOID_##NAME: \
			init_kernel<Op_##name><<<blocks, 256, 0, stream>>>((state_t *) states, nbins); \
			break;
#include "monoid_list.h"
#undef MONOID
		default:
			return GPUAGG_CUDA_INVALID;
	}
	CUDA_TRY_LAUNCH("init_kernel");
	return GPUAGG_CUDA_OK;
}

static __global__ void
range_init_kernel(int64_t *range)
{
	range[0] = INT64_MAX;
	range[1] = INT64_MIN;
}

static __global__ void __launch_bounds__(256)
range_kernel(GpuaggColumn column, u32 nrows, int64_t *range)
{
	int64_t		lo = INT64_MAX,
				hi = INT64_MIN;

	for (u64 r = blockIdx.x * (u64) blockDim.x + threadIdx.x; r < nrows; r += (u64) gridDim.x * blockDim.x)
	{
		int64_t		v;

		if (column.validity && !bit_set(column.validity, (u32) r))
			continue;
		v = load_int(column, (u32) r);
		lo = v < lo ? v : lo;
		hi = v > hi ? v : hi;
	}
	for (int d = 16; d > 0; d /= 2)
	{
		int64_t		l = __shfl_xor_sync(~0u, lo, d),
					h = __shfl_xor_sync(~0u, hi, d);

		lo = l < lo ? l : lo;
		hi = h > hi ? h : hi;
	}
	if (threadIdx.x % 32 == 0 && lo <= hi)
	{
		atomicMin((long long *) &range[0], (long long) lo);
		atomicMax((long long *) &range[1], (long long) hi);
	}
}

GPUAGG_API GpuaggCudaStatus
gpuagg_key_range(const GpuaggColumn *column, int64_t nrows, int64_t *range, gpuagg_stream stream)
{
	const DeviceFacts *facts;

	if (nrows < 0 || nrows > UINT32_MAX || column->type < GPUAGG_VALUE_I8 ||
		column->type > GPUAGG_VALUE_I64)
		return GPUAGG_CUDA_INVALID;
	STATUS_TRY(gpuagg_device_facts(&facts));
	range_init_kernel<<<1, 1, 0, stream>>>(range);
	range_kernel<<<8 * facts->sms, 256, 0, stream>>>(*column, (u32) nrows, range);
	CUDA_TRY_LAUNCH("range_kernel");
	return GPUAGG_CUDA_OK;
}
