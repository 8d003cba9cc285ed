/*
 * hist_narrow.cu
 *	  Counts, and sums of 32-bit integers, straight to their states.
 *
 * A simple column of bins (hist_bins_are_simple), one count, one sum or both, no
 * NULLs and no filter: words in shared memory, from there native atomics on
 * the states, so that there are no limbs to clear and to fold, and one launch
 * is all.  Columns are read by vectors of four rows, several of them on their
 * way for each thread.
 *
 * A sum's word is signed; when it overflows, the next word, or the state if
 * there is none, takes the carry.
 */
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

#define THREADS 1024

struct NarrowArgs
{
	SimpleBins bins;
	const int32_t *value;
	u32 nrows;
	int passes;
	u32 pass_bins;
	u32 plane; /* bins of all copies */
	int log2_copies;
	bool paired;  /* clusters of two blocks flush together */
	int words;    /* planes in all */
	int sum_word; /* first planes */
	int count_word;
	bool spill;  /* the state takes the sum's carries */
	u64 *counts; /* states */
	u64 *sums;
	GpuaggHistStatus *status;
};

/* Vectors of a thread that are on their way. */
template <bool SUM>
static constexpr __host__ __device__ int
vectors_ahead()
{
	return SUM ? 2 : 4;
}

/* What a block needs for every row. */
struct NarrowShared
{
	u32 origin; /* the value of the pass's first bin */
	u32 nbins;  /* of the pass */
	u32 bin0;
	/* outside: at or above the number of bins, as signed numbers where negative ones are skipped */
	u32 bias;
	u32 most;
	u32 watch; /* bins above this may be outside */
	/* addresses in shared memory: of value v's words, v times `scale` above these */
	u32 scale;
	u32 count;
	u32 sum;
	u32 outside;
};

/* Carries of the rows whose sums overflowed: those with the top bit in `over`. */
static __device__ __forceinline__ void
add_carries(const NarrowArgs &args, const NarrowShared &place, const u32 (&v)[4],
			const u32 (&addend)[4], const u32 (&over)[4])
{
	u32 next = place.sum + args.plane * (u32) sizeof(u32);

	if (args.spill)
	{
#pragma unroll
		for (int j = 0; j < 4; j++)
			if ((int) over[j] < 0)
				add_carry_to_memory((u64 *) args.sums, v[j] - args.bins.min, (int) addend[j] < 0,
									(u64) 1 << 32);
	}
	else
#pragma unroll
		for (int j = 0; j < 4; j++)
			if ((int) over[j] < 0)
				shared_add(next + v[j] * place.scale, (u32) ((int) addend[j] >> 31 | 1));
}

/* Four rows. */
template <bool SUM, bool COUNT>
static __device__ __forceinline__ void
add_four(const NarrowArgs &args, NarrowShared &place, const int4 &bins, const int4 &values)
{
	const u32 v[4] = {(u32) bins.x, (u32) bins.y, (u32) bins.z, (u32) bins.w};
	const u32 w[4] = {(u32) values.x, (u32) values.y, (u32) values.z, (u32) values.w};
	u32 old[4], over[4], most = 0;

#pragma unroll
	for (int j = 0; j < 4; j++)
	{
		u32 b = v[j] - place.origin;

		most = max(most, b);
		old[j] = 0;
		if (COUNT && b < place.nbins)
			shared_count(place.count + v[j] * place.scale);
		if (SUM && b < place.nbins)
			old[j] = shared_add(place.sum + v[j] * place.scale, w[j]);
	}
	if (SUM)
	{
#pragma unroll
		for (int j = 0; j < 4; j++)
		{
			u32 s = old[j] + w[j];

			over[j] = (old[j] ^ s) & (w[j] ^ s);
		}
		if ((int) (over[0] | over[1] | over[2] | over[3]) < 0)
			add_carries(args, place, v, w, over);
	}
	if (most > place.watch)
#pragma unroll
		for (int j = 0; j < 4; j++)
		{
			u32 b = v[j] - place.origin;

			place.outside += b >= place.nbins && b + place.bin0 + place.bias > place.most;
		}
}

/* ---- flush --------------------------------------------------------------------- */

/*
 * Two blocks of a cluster add up their sums of a bin before one of them changes
 * the state: of many bins, a multiprocessor's atomics take their time.
 */
#define LEAST_PAIRED_BINS 8192

static __device__ __forceinline__ u32
cluster_rank()
{
	u32 rank = 0;

#if __CUDA_ARCH__ >= 900
	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
	return rank;
}

static __device__ __forceinline__ void
cluster_sync()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" : : : "memory");
#endif
}

/* A word in the shared memory of a block of the cluster. */
static __device__ __forceinline__ u32
cluster_word(u32 at, u32 rank)
{
	u32 v = 0;

#if __CUDA_ARCH__ >= 900
	asm volatile("{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %1, %2;\n\t"
				 "ld.shared::cluster.u32 %0, [there];\n\t}"
				 : "=r"(v)
				 : "r"(at), "r"(rank)
				 : "memory");
#endif
	return v;
}

/* What a word is worth: counts are unsigned, sums signed. */
template <bool SUM>
static __device__ __forceinline__ u64
word_value(u32 v)
{
	return SUM ? (u64) (int64_t) (int32_t) v : v;
}

static __device__ __forceinline__ void
change_sum(u64 *states, u32 bin, u64 sum)
{
	if (sum != 0)
		atomicAdd(states + bin, sum);
}

/* A bin's sum in the block, of all its copies and words. */
template <bool SUM>
static __device__ __forceinline__ u64
block_sum(const NarrowArgs &args, const u32 *words, u32 b)
{
	u32 mask = (1u << args.log2_copies) - 1;
	u64 sum = 0;

	for (u32 m = 0; m <= mask; m++)
	{
		u32 at = (b << args.log2_copies) | ((m + b) & mask);

		sum += word_value<SUM>(words[at]);
		if (SUM && !args.spill)
			sum += (u64) words[args.plane + at] << 32;
	}
	return sum;
}

/*
 * Sums of n bins of the pass to their states, in a cluster of BLOCKS those of
 * all its blocks.  Blocks begin at different bins, lest all add to the same ones
 * at a time.
 */
template <bool SUM, int WORDS, int BLOCKS>
static __device__ __forceinline__ void
flush_words(const u32 *words, u32 plane, u32 n, u64 *states, u32 bin0)
{
	/* so many at a time of a thread */
	constexpr int MANY = 8 / WORDS / BLOCKS;
	u32 at = shared_address(words), other = cluster_rank() ^ 1,
		first = (u32) ((u64) n * (blockIdx.x / BLOCKS) / (gridDim.x / BLOCKS));

	for (u32 base = threadIdx.x; base < n; base += MANY * THREADS)
	{
		u32 v[MANY][WORDS][BLOCKS];

#pragma unroll
		for (int j = 0; j < MANY; j++)
#pragma unroll
			for (int k = 0; k < WORDS; k++)
			{
				u32 b = base + j * THREADS + first;

				b = (b < n ? b : b - n) + k * plane;
				v[j][k][0] = base + j * THREADS < n ? words[b] : 0;
				if (BLOCKS == 2)
					v[j][k][BLOCKS - 1] = base + j * THREADS < n ?
						cluster_word(at + b * (u32) sizeof(u32), other) :
						0;
			}
#pragma unroll
		for (int j = 0; j < MANY; j++)
		{
			u32 b = base + j * THREADS + first;
			u64 sum = 0;

#pragma unroll
			for (int r = 0; r < BLOCKS; r++)
				sum +=
					word_value<SUM>(v[j][0][r]) + (WORDS == 2 ? (u64) v[j][WORDS - 1][r] << 32 : 0);
			change_sum(states, bin0 + (b < n ? b : b - n), sum);
		}
	}
}

template <bool SUM, int WORDS>
static __device__ __forceinline__ void
flush_planes(const NarrowArgs &args, const u32 *words, u32 n, u64 *states, u32 bin0)
{
	if (!args.paired)
		flush_words<SUM, WORDS, 1>(words, args.plane, n, states, bin0);
	else
	{
		/* each block half of the bins */
		u32 half = min((n / 2 + 31) & ~31u, n), from = cluster_rank() ? half : 0;

		flush_words<SUM, WORDS, 2>(words + from, args.plane, from ? n - half : half, states,
								   bin0 + from);
	}
}

template <bool SUM>
static __device__ __forceinline__ void
flush_sums(const NarrowArgs &args, const u32 *words, u32 n, u64 *states, u32 bin0)
{
	u32 first = rotate_by_block(0, n);

	if (args.log2_copies > 0)
		for (u32 i = threadIdx.x; i < n; i += THREADS)
		{
			u32 b = i + first < n ? i + first : i + first - n;

			change_sum(states, bin0 + b, block_sum<SUM>(args, words, b));
		}
	else if (SUM && !args.spill)
		flush_planes<SUM, 2>(args, words, n, states, bin0);
	else
		flush_planes<SUM, 1>(args, words, n, states, bin0);
}

/* ---- rows ---------------------------------------------------------------------- */

/* The vectors of a block's share. */
template <bool SUM, bool COUNT>
static __device__ __forceinline__ void
add_vectors(const NarrowArgs &args, NarrowShared &place, u32 *shared, u32 lead, u32 begin, u32 end)
{
	constexpr int AHEAD = vectors_ahead<SUM>();
	const int4 *bins = args.bins.column ? (const int4 *) (args.bins.column + lead) : nullptr,
			   *values = (const int4 *) (args.value + lead);
	int4 next[AHEAD], next_value[AHEAD];
	u32 at = begin + threadIdx.x;

#pragma unroll
	for (int k = 0; k < AHEAD; k++)
		if (at + k * THREADS < end)
		{
			next[k] = bins ? __ldcs(bins + at + k * THREADS) : make_int4(0, 0, 0, 0);
			if (SUM)
				next_value[k] = __ldcs(values + at + k * THREADS);
		}
	clear_shared(shared, (size_t) args.words * args.plane);
	__syncthreads();
	for (u32 base = begin; base < end; base += AHEAD * THREADS)
	{
		at = base + threadIdx.x;
#pragma unroll
		for (int k = 0; k < AHEAD; k++, at += THREADS)
		{
			int4 bin = next[k], value = SUM ? next_value[k] : next[k];

			if (at + AHEAD * THREADS < end)
			{
				next[k] = bins ? __ldcs(bins + at + AHEAD * THREADS) : make_int4(0, 0, 0, 0);
				if (SUM)
					next_value[k] = __ldcs(values + at + AHEAD * THREADS);
			}
			if (at < end)
				add_four<SUM, COUNT>(args, place, bin, value);
			/* lanes that came apart there would stay so for the rest of the loop */
			__syncwarp();
		}
	}
}

/* A row left at either end of the columns, alone in its vector. */
template <bool SUM, bool COUNT>
static __device__ __forceinline__ void
add_end(const NarrowArgs &args, NarrowShared &place, u32 row)
{
	/* bins that are none, and are not reported */
	int none = (int) (place.origin + place.nbins);
	NarrowShared alone = place;
	int4 bin = {args.bins.column ? args.bins.column[row] : 0, none, none, none},
		 value = {SUM ? args.value[row] : 0, 0, 0, 0};

	alone.outside = 0;
	add_four<SUM, COUNT>(args, alone, bin, value);
	place.outside += (u32) bin.x - place.origin >= place.nbins &&
		(u32) bin.x - place.origin + place.bin0 + place.bias > place.most;
}

template <bool SUM, bool COUNT>
static __global__ void
__launch_bounds__(THREADS, 1) accumulate_narrow_kernel(const __grid_constant__ NarrowArgs args)
{
	extern __shared__ __align__(16) u32 shared[];
	u32 lead = min((u32) (-(uintptr_t) args.bins.column % 16 / 4), args.nrows),
		vectors = (args.nrows - lead) / 4, lines = (vectors + 7) / 8,
		begin = (u32) ((u64) lines * blockIdx.x / gridDim.x) * 8,
		end = min((u32) ((u64) lines * (blockIdx.x + 1) / gridDim.x) * 8, vectors);
	u32 copy = threadIdx.x & ((1u << args.log2_copies) - 1);

	let_successor_start();
	wait_for_predecessor();
	for (int pass = 0; pass < args.passes; pass++)
	{
		NarrowShared place = NarrowShared();

		place.bin0 = pass * args.pass_bins;
		place.origin = args.bins.min + place.bin0;
		place.nbins = min(args.pass_bins, args.bins.n - place.bin0);
		place.bias = args.bins.skip_negative ? 0x80000000u : 0;
		place.most = pass == 0 ? args.bins.n - 1 + place.bias : ~0u;
		place.watch = pass == 0 ? place.nbins - 1 : ~0u;
		place.scale = (u32) sizeof(u32) << args.log2_copies;
		place.count = shared_address(shared + args.count_word * args.plane + copy) -
			place.origin * place.scale;
		place.sum =
			shared_address(shared + args.sum_word * args.plane + copy) - place.origin * place.scale;
		if (pass > 0)
			__syncthreads();
		add_vectors<SUM, COUNT>(args, place, shared, lead, begin, end);
		if (blockIdx.x == 0 && threadIdx.x < args.nrows - 4 * vectors)
			add_end<SUM, COUNT>(args, place, threadIdx.x + (threadIdx.x < lead ? 0 : 4 * vectors));
		if (place.outside)
			atomicAdd(&args.status->outside, (u64) place.outside);
		__syncthreads();
		if (args.paired)
			cluster_sync();
		if (COUNT)
			flush_sums<false>(args, shared + args.count_word * args.plane, place.nbins, args.counts,
							  place.bin0);
		if (SUM)
			flush_sums<true>(args, shared + args.sum_word * args.plane, place.nbins, args.sums,
							 place.bin0);
		/* the other block may still read this one's words */
		if (args.paired)
			cluster_sync();
	}
}

/* ---- choice -------------------------------------------------------------------- */

/* The arguments; false: not a histogram for this file. */
static bool
narrow_shape(const HistArgs &args, NarrowArgs &narrow)
{
	const GpuaggBins &b = args.bins;

	if (args.nslots > 2 || !hist_bins_are_simple(b))
		return false;
	narrow = NarrowArgs();
	narrow.bins = make_simple_bins(b);
	for (int s = 0; s < args.nslots; s++)
	{
		const HistSlot &slot = args.slot[s];

		if (slot.filter || slot.x.validity || slot.y.validity)
			return false;
		if (slot.form == HIST_COUNT && !narrow.counts)
		{
			narrow.counts = (u64 *) slot.states;
			narrow.count_word = slot.word;
			continue;
		}
		if (narrow.sums || slot.op != MONOID_SUM_I64 || slot.x.type != GPUAGG_VALUE_I32)
			return false;
		narrow.sums = (u64 *) slot.states;
		narrow.sum_word = slot.word;
		narrow.spill = slot.spill;
		narrow.value = (const int32_t *) slot.x.values;
		/* vectors of both columns */
		if (((uintptr_t) narrow.value ^ (uintptr_t) narrow.bins.column) % 16)
			return false;
	}
	narrow.nrows = args.nrows;
	narrow.passes = args.passes;
	narrow.pass_bins = args.pass_bins;
	narrow.plane = args.pass_bins << args.log2_copies;
	narrow.log2_copies = args.log2_copies;
	narrow.words = args.words;
	narrow.status = args.status;
	return true;
}

bool
hist_narrow_supports(const HistArgs &args)
{
	NarrowArgs narrow;

	return narrow_shape(args, narrow);
}

/* Starts the kernel for these slots, with blocks in pairs where that is faster. */
template <bool SUM, bool COUNT>
static cudaError_t
launch_narrow(NarrowArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	void (*kernel)(NarrowArgs) = accumulate_narrow_kernel<SUM, COUNT>;
	size_t bytes = (size_t) args.words * args.plane * sizeof(u32);
	int blocks = facts.sms;
	cudaError_t err = allow_shared(kernel, facts);

	if (err != cudaSuccess)
		return err;
	/* only if the device runs all pairs at once */
	args.paired =
		args.bins.n >= LEAST_PAIRED_BINS && args.log2_copies == 0 && facts.pairs >= facts.sms / 2;
	if (args.paired)
		blocks &= ~1;
	return launch_clusters(kernel, args.paired ? 2 : 1, blocks, THREADS, bytes, facts, stream,
						   args);
}

GpuaggCudaStatus
hist_launch_narrow(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	NarrowArgs narrow;

	narrow_shape(args, narrow);
	if (!narrow.sums)
		CUDA_TRY((launch_narrow<false, true>(narrow, facts, stream)));
	else
		CUDA_TRY((narrow.counts ? launch_narrow<true, true>(narrow, facts, stream) :
								  launch_narrow<true, false>(narrow, facts, stream)));
	return GPUAGG_CUDA_OK;
}
