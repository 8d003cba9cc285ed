/*
 * hist_narrow.cu
 *	  Counts, and sums of int32 columns, in shared memory and from there directly to states.
 *
 * Supported are a COUNT, a SUM_I64 of an int32 column, or both, with simple bins
 * (hist_bins_are_simple), without NULLs and filters. Blocks flush words to states by native
 * atomics. So there are no limbs to clear and to fold, and one launch is enough. Columns are read
 * in vectors of four rows. A thread has several of them in flight.
 *
 * The word of a sum is signed. When it overflows, the carry goes to the next word, or, with
 * `spill`, to the state.
 */
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* The arguments of the kernel, passed by value. */
struct NarrowArgs
{
	SimpleBins bins;
	const int32_t *value; /* [row] input of the sum */
	u32 nrows;
	int passes;
	u32 pass_bins; /* bins of a pass */
	u32 plane;     /* words in a plane: the bins of a pass, with all copies */
	int log2_copies;
	bool paired;    /* two blocks of a cluster combine their words before they flush */
	int words;      /* number of planes */
	int sum_word;   /* number of the first plane of the sum */
	int count_word; /* number of the plane of the COUNT */
	bool spill;     /* carries of the sum go to the state; the sum has one word */
	u64 *counts;    /* states of the COUNT; NULL: there is none */
	u64 *sums;      /* states of the sum; NULL: there is none */
	GpuaggHistStatus *status;
};

/* Returns how many vectors of each column a thread has in flight. */
template <bool SUM>
static constexpr __host__ __device__ int
vectors_ahead()
{
	return SUM ? Tuned::NARROW_SUM_VECTORS_PER_THREAD : Tuned::NARROW_COUNT_VECTORS_PER_THREAD;
}

/* What a thread needs for each row of a pass. */
struct NarrowPass
{
	u32 origin; /* value of the first bin of the pass */
	u32 nbins;  /* bins of the pass */
	u32 bin0;   /* first bin of the pass */
	/*
	 * Rows are outside if bin + bias > most. bias makes that a comparison of signed numbers if
	 * negative bins are skipped.
	 */
	u32 bias;
	u32 most;
	u32 watch; /* bins of the pass above this may be outside */
	/*
	 * Addresses in shared memory. The word of a row with bin value v is at count + v * scale, or
	 * sum + v * scale.
	 */
	u32 scale;
	u32 count;
	u32 sum;
	u32 outside; /* rows of this thread that are outside */
};

/* Adds the carries of the rows whose additions overflowed: those with the top bit set in over[]. */
static __device__ __forceinline__ void
add_carries_of_four(const NarrowArgs &args, const NarrowPass &place, const u32 (&v)[4],
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

/*
 * Adds four rows to the words of their bins, and counts those out of range. bins and values: the
 * rows' values of both columns.
 */
template <bool SUM, bool COUNT>
static __device__ __forceinline__ void
add_four_rows(const NarrowArgs &args, NarrowPass &place, const int4 &bins, const int4 &values)
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
			add_carries_of_four(args, place, v, w, over);
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
 * Two blocks of a cluster combine their sums of a bin before one of them changes the state. This
 * halves the atomics on states, which limit the flush of many bins.
 */

/* Returns the number of the block within its cluster. */
static __device__ __forceinline__ u32
cluster_rank()
{
	u32 rank = 0;

#if __CUDA_ARCH__ >= 900
	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
	return rank;
}

/* Waits for all threads of the cluster. */
static __device__ __forceinline__ void
cluster_sync()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" : : : "memory");
#endif
}

/* Returns a word in the shared memory of block `rank` of the cluster. */
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

/* Returns the value of a word: counts are unsigned, sums are signed. */
template <bool SUM>
static __device__ __forceinline__ u64
word_value(u32 v)
{
	return SUM ? (u64) (int64_t) (int32_t) v : v;
}

/* Adds `sum` to the state of a bin atomically, unless it is 0. */
static __device__ __forceinline__ void
add_to_state(u64 *states, u32 bin, u64 sum)
{
	if (sum != 0)
		atomicAdd(states + bin, sum);
}

/* Returns the sum or count of bin b of the pass, over all its copies and words in this block. */
template <bool SUM>
static __device__ __forceinline__ u64
sum_of_bin(const NarrowArgs &args, const u32 *words, u32 b)
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
 * Adds the sums (SUM) or counts of n bins to the states of bin0 and the bins after it. They are at
 * `words`, WORDS planes with one copy of each bin. BLOCKS: blocks of a cluster whose words are
 * combined. Clusters begin at different bins, so that they do not all change the same states at the
 * same time.
 */
template <bool SUM, int WORDS, int BLOCKS>
static __device__ __forceinline__ void
flush_bins_of_cluster(const u32 *words, u32 plane, u32 n, u64 *states, u32 bin0)
{
	/* bins of a thread whose words are loaded together */
	constexpr int MANY = Tuned::NARROW_FLUSH_WORDS_PER_THREAD / WORDS / BLOCKS;
	u32 at = shared_address(words), other = cluster_rank() ^ 1,
		first = (u32) ((u64) n * (blockIdx.x / BLOCKS) / (gridDim.x / BLOCKS));

	for (u32 base = threadIdx.x; base < n; base += MANY * NARROW_THREADS_PER_BLOCK)
	{
		u32 v[MANY][WORDS][BLOCKS];

#pragma unroll
		for (int j = 0; j < MANY; j++)
#pragma unroll
			for (int k = 0; k < WORDS; k++)
			{
				u32 b = base + j * NARROW_THREADS_PER_BLOCK + first;

				b = (b < n ? b : b - n) + k * plane;
				v[j][k][0] = base + j * NARROW_THREADS_PER_BLOCK < n ? words[b] : 0;
				if (BLOCKS == 2)
					v[j][k][BLOCKS - 1] = base + j * NARROW_THREADS_PER_BLOCK < n ?
						cluster_word(at + b * (u32) sizeof(u32), other) :
						0;
			}
#pragma unroll
		for (int j = 0; j < MANY; j++)
		{
			u32 b = base + j * NARROW_THREADS_PER_BLOCK + first;
			u64 sum = 0;

#pragma unroll
			for (int r = 0; r < BLOCKS; r++)
				sum +=
					word_value<SUM>(v[j][0][r]) + (WORDS == 2 ? (u64) v[j][WORDS - 1][r] << 32 : 0);
			add_to_state(states, bin0 + (b < n ? b : b - n), sum);
		}
	}
}

/* Adds the sums or counts of the n bins of a pass to states. The bins have no copies. */
template <bool SUM, int WORDS>
static __device__ __forceinline__ void
flush_bins_without_copies(const NarrowArgs &args, const u32 *words, u32 n, u64 *states, u32 bin0)
{
	if (!args.paired)
		flush_bins_of_cluster<SUM, WORDS, 1>(words, args.plane, n, states, bin0);
	else
	{
		/* each block flushes half of the bins for both */
		u32 half = min((n / 2 + 31) & ~31u, n), from = cluster_rank() ? half : 0;

		flush_bins_of_cluster<SUM, WORDS, 2>(words + from, args.plane, from ? n - half : half,
											 states, bin0 + from);
	}
}

/* Adds the sums (SUM) or counts of the n bins of a pass to states. `words` is their first plane. */
template <bool SUM>
static __device__ __forceinline__ void
flush_slot(const NarrowArgs &args, const u32 *words, u32 n, u64 *states, u32 bin0)
{
	u32 first = rotate_by_block(0, n);

	if (args.log2_copies > 0)
		for (u32 i = threadIdx.x; i < n; i += NARROW_THREADS_PER_BLOCK)
		{
			u32 b = i + first < n ? i + first : i + first - n;

			add_to_state(states, bin0 + b, sum_of_bin<SUM>(args, words, b));
		}
	else if (SUM && !args.spill)
		flush_bins_without_copies<SUM, 2>(args, words, n, states, bin0);
	else
		flush_bins_without_copies<SUM, 1>(args, words, n, states, bin0);
}

/* ---- rows ---------------------------------------------------------------------- */

/*
 * Clears shared memory and adds vectors [begin, end) of the columns. `lead` rows come before the
 * first vector. Vectors are loaded ahead.
 */
template <bool SUM, bool COUNT>
static __device__ __forceinline__ void
add_vectors(const NarrowArgs &args, NarrowPass &place, u32 *shared, u32 lead, u32 begin, u32 end)
{
	constexpr int AHEAD = vectors_ahead<SUM>();
	const int4 *bins = args.bins.column ? (const int4 *) (args.bins.column + lead) : nullptr,
			   *values = (const int4 *) (args.value + lead);
	int4 next[AHEAD], next_value[AHEAD];
	u32 at = begin + threadIdx.x;

#pragma unroll
	for (int k = 0; k < AHEAD; k++)
		if (at + k * NARROW_THREADS_PER_BLOCK < end)
		{
			next[k] =
				bins ? __ldcs(bins + at + k * NARROW_THREADS_PER_BLOCK) : make_int4(0, 0, 0, 0);
			if (SUM)
				next_value[k] = __ldcs(values + at + k * NARROW_THREADS_PER_BLOCK);
		}
	clear_shared(shared, (size_t) args.words * args.plane);
	__syncthreads();
	for (u32 base = begin; base < end; base += AHEAD * NARROW_THREADS_PER_BLOCK)
	{
		at = base + threadIdx.x;
#pragma unroll
		for (int k = 0; k < AHEAD; k++, at += NARROW_THREADS_PER_BLOCK)
		{
			int4 bin = next[k], value = SUM ? next_value[k] : next[k];

			if (at + AHEAD * NARROW_THREADS_PER_BLOCK < end)
			{
				next[k] = bins ? __ldcs(bins + at + AHEAD * NARROW_THREADS_PER_BLOCK) :
								 make_int4(0, 0, 0, 0);
				if (SUM)
					next_value[k] = __ldcs(values + at + AHEAD * NARROW_THREADS_PER_BLOCK);
			}
			if (at < end)
				add_four_rows<SUM, COUNT>(args, place, bin, value);
			/* without this, lanes that diverged would stay apart for the rest of the loop */
			__syncwarp();
		}
	}
}

/* Adds one row from either end of the columns, where no whole vector is left. */
template <bool SUM, bool COUNT>
static __device__ __forceinline__ void
add_edge_row(const NarrowArgs &args, NarrowPass &place, u32 row)
{
	/* a value without a bin in the pass, which is not counted as outside */
	int none = (int) (place.origin + place.nbins);
	NarrowPass alone = place;
	int4 bin = {args.bins.column ? args.bins.column[row] : 0, none, none, none},
		 value = {SUM ? args.value[row] : 0, 0, 0, 0};

	alone.outside = 0;
	add_four_rows<SUM, COUNT>(args, alone, bin, value);
	place.outside += (u32) bin.x - place.origin >= place.nbins &&
		(u32) bin.x - place.origin + place.bin0 + place.bias > place.most;
}

/* Adds all rows to shared memory and flushes them to states, in passes over the rows. */
template <bool SUM, bool COUNT>
static __global__ void
__launch_bounds__(NARROW_THREADS_PER_BLOCK, 1)
	accumulate_narrow_kernel(const __grid_constant__ NarrowArgs args)
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
		NarrowPass place = NarrowPass();

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
			add_edge_row<SUM, COUNT>(args, place,
									 threadIdx.x + (threadIdx.x < lead ? 0 : 4 * vectors));
		if (place.outside)
			atomicAdd(&args.status->outside, (u64) place.outside);
		__syncthreads();
		if (args.paired)
			cluster_sync();
		if (COUNT)
			flush_slot<false>(args, shared + args.count_word * args.plane, place.nbins, args.counts,
							  place.bin0);
		if (SUM)
			flush_slot<true>(args, shared + args.sum_word * args.plane, place.nbins, args.sums,
							 place.bin0);
		/* the other block of the cluster may still read the words of this one */
		if (args.paired)
			cluster_sync();
	}
}

/* ---- choice -------------------------------------------------------------------- */

/* Returns whether the kernel supports the call. If so, sets its arguments, except `paired`. */
static bool
narrow_match_shape(const HistArgs &args, NarrowArgs &narrow)
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
		/* vectors of both columns must start at the same rows */
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

	return narrow_match_shape(args, narrow);
}

/* Launches the kernel, with clusters of two blocks where that is faster. */
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
	/* only if the device runs all clusters concurrently */
	args.paired = args.bins.n >= NARROW_MIN_PAIRED_BINS && args.log2_copies == 0 &&
		facts.pairs >= facts.sms / 2;
	if (args.paired)
		blocks &= ~1;
	return launch_clusters(kernel, args.paired ? 2 : 1, blocks, NARROW_THREADS_PER_BLOCK, bytes,
						   facts, stream, args);
}

GpuaggCudaStatus
hist_launch_narrow(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	NarrowArgs narrow;

	narrow_match_shape(args, narrow);
	if (!narrow.sums)
		CUDA_TRY((launch_narrow<false, true>(narrow, facts, stream)));
	else
		CUDA_TRY((narrow.counts ? launch_narrow<true, true>(narrow, facts, stream) :
								  launch_narrow<true, false>(narrow, facts, stream)));
	return GPUAGG_CUDA_OK;
}
