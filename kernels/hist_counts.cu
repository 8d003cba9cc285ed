/*
 * hist_counts.cu
 *	  Counts of more bins than shared memory has words for: one byte a bin.
 *
 * Supported is a single COUNT of all rows with a simple column of bins. A block counts its rows in
 * bytes, four to a word of shared memory, and writes them to the workspace. A second kernel adds up
 * the bytes that the blocks have for each bin. With so many bins, few bins get 256 rows in one
 * block. If one does, these 256 rows go to the state at once.
 *
 * The four bytes of a word are changed as one number, so an addition to a full byte carries into
 * the next one. The thread whose atomic makes bytes carry adds 256 to the states of these bytes.
 * Then it takes the carries back out of the word by another atomic. That may carry or borrow in
 * turn, and so on. Every carry out of a byte is counted for its bin, and every carry into a byte is
 * taken back. So in the end a byte has the rows of its bin less 256 for each carry counted,
 * whatever the order of atomics.
 */
#include "hist_kernels.cuh"

/* The lowest bit of each byte except the first. A carry out of the previous byte changes it. */
#define EDGES 0x01010100u

/* The arguments of the kernels, passed by value. */
struct CountArgs
{
	SimpleBins bins;
	u32 nrows;
	u32 bin0;      /* first bin of the pass */
	u32 pass_bins; /* bins of a pass, a multiple of 16 */
	bool report;   /* count rows out of range */
	u64 *states;   /* [bin] */
	u32 *bytes;    /* [block] pass_bins bytes each */
	GpuaggHistStatus *status;
};

/*
 * Adds 256 to the states of the bytes of counts[word] that carried when d was added to `old`, and
 * takes the carries back out of the word.
 */
static __device__ __noinline__ void
move_carries_to_states(const CountArgs &args, u32 word, u32 old, u32 d)
{
	extern __shared__ __align__(16) u32 counts[];
	u64 *states = args.states + args.bin0 + 4 * word;
	u32 now = old + d, carries = (old ^ d ^ now) & EDGES;
	bool top = now < old, /* the carry of the last byte leaves the word */
		add = true;

	for (;;)
	{
		u64 rows = add ? 256 : -(u64) 256;

#pragma unroll
		for (int k = 0; k < 3; k++)
			if (carries >> (8 * k + 8) & 1)
				atomicAdd(states + k, rows);
		if (top)
			atomicAdd(states + 3, rows);
		if (carries == 0)
			return;
		d = carries;
		old = atomicAdd(&counts[word], add ? -d : d);
		now = add ? old - d : old + d;
		top = add ? old < d : now < old;
		carries = (old ^ d ^ now) & EDGES;
		add = !add;
	}
}

/* What a thread needs for each row of a pass. */
struct CountPass
{
	u32 origin; /* value of the first bin of the pass */
	u32 nbins;  /* bins of the pass */
	/*
	 * Rows are outside if bin + bias > most. bias makes that a comparison of signed numbers if
	 * negative bins are skipped.
	 */
	u32 bias;
	u32 most;
	u32 bytes; /* address of the bytes in shared memory */
};

/*
 * Counts N rows in the bytes of their bins. value: the bin column's values of the rows. there[i]:
 * whether rows 4 * i to 4 * i + 3 exist. Adds the number of rows out of range to `outside`.
 */
template <int N>
static __device__ __forceinline__ void
count_rows_in_bytes(const CountArgs &args, const CountPass &range, const int32_t (&value)[N],
					const bool (&there)[(N + 3) / 4], u32 &outside)
{
	u32 old[N], d[N];
	bool full = false;

#pragma unroll
	for (int j = 0; j < N; j++)
	{
		u32 b = (u32) value[j] - range.origin;

		d[j] = __funnelshift_l(0, 1, 8 * b);
		old[j] = 0;
		if (there[j / 4])
		{
			if (b < range.nbins)
				old[j] = shared_add(range.bytes + (b & ~3u), d[j]);
			else if (b + args.bin0 + range.bias > range.most)
				outside++;
		}
	}
#pragma unroll
	for (int j = 0; j < N; j++)
		full = full || (old[j] & 255 * d[j]) == 255 * d[j];
	if (full)
#pragma unroll
		for (int j = 0; j < N; j++)
			if ((old[j] & 255 * d[j]) == 255 * d[j])
				move_carries_to_states(args, ((u32) value[j] - range.origin) / 4, old[j], d[j]);
	/* without this, lanes that diverged would stay apart for the rest of the loop */
	__syncwarp();
}

/* Counts the rows of a pass in bytes. Each block stores its bytes in the workspace. */
static __global__ void
__launch_bounds__(COUNTS_THREADS_PER_BLOCK, 1)
	count_bytes_kernel(const __grid_constant__ CountArgs args)
{
	extern __shared__ __align__(16) u32 counts[];
	uint4 *words = (uint4 *) counts;
	uint4 *out = (uint4 *) (args.bytes + (size_t) blockIdx.x * (args.pass_bins / 4));
	u32 lead = min((u32) (-(uintptr_t) args.bins.column % 16 / 4), args.nrows),
		vectors = (args.nrows - lead) / 4, lines = (vectors + 31) / 32,
		begin = (u32) ((u64) lines * blockIdx.x / gridDim.x) * 32,
		end = min((u32) ((u64) lines * (blockIdx.x + 1) / gridDim.x) * 32, vectors);
	const int4 *vector = (const int4 *) (args.bins.column + lead);
	CountPass range = {args.bins.min + args.bin0, min(args.pass_bins, args.bins.n - args.bin0),
					   args.bins.skip_negative ? 0x80000000u : 0, ~0u, shared_address(counts)};
	u32 outside = 0;
	int4 next[Tuned::COUNTS_VECTORS_PER_THREAD];
	auto load = [&](u32 at)
	{
#pragma unroll
		for (int k = 0; k < Tuned::COUNTS_VECTORS_PER_THREAD; k++)
			if (at + k * COUNTS_THREADS_PER_BLOCK < end)
				next[k] = __ldcs(vector + at + k * COUNTS_THREADS_PER_BLOCK);
	};

	if (args.report)
		range.most = args.bins.n - 1 + range.bias;
	let_successor_start();
	wait_for_predecessor();
	load(begin + threadIdx.x);
	for (u32 i = threadIdx.x; i < args.pass_bins / 16; i += COUNTS_THREADS_PER_BLOCK)
		words[i] = make_uint4(0, 0, 0, 0);
	__syncthreads();
	for (u32 base = begin; base < end;
		 base += Tuned::COUNTS_VECTORS_PER_THREAD * COUNTS_THREADS_PER_BLOCK)
	{
		u32 at = base + threadIdx.x;
		int4 v[Tuned::COUNTS_VECTORS_PER_THREAD];

#pragma unroll
		for (int k = 0; k < Tuned::COUNTS_VECTORS_PER_THREAD; k++)
			v[k] = next[k];
		load(at + Tuned::COUNTS_VECTORS_PER_THREAD * COUNTS_THREADS_PER_BLOCK);
#pragma unroll
		for (int k = 0; k < Tuned::COUNTS_VECTORS_PER_THREAD; k += 2)
		{
			const int32_t value[8] = {v[k].x,     v[k].y,     v[k].z,     v[k].w,
									  v[k + 1].x, v[k + 1].y, v[k + 1].z, v[k + 1].w};
			const bool there[2] = {at + k * COUNTS_THREADS_PER_BLOCK < end,
								   at + (k + 1) * COUNTS_THREADS_PER_BLOCK < end};

			count_rows_in_bytes<8>(args, range, value, there, outside);
		}
	}
	/* rows at both ends of the column that are not in a whole vector */
	if (blockIdx.x == 0 && threadIdx.x < 32)
	{
		const bool there[1] = {threadIdx.x < args.nrows - 4 * vectors};
		const int32_t value[1] = {
			there[0] ? args.bins.column[threadIdx.x + (threadIdx.x < lead ? 0 : 4 * vectors)] : 0};

		count_rows_in_bytes<1>(args, range, value, there, outside);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
	__syncthreads();
	for (u32 i = threadIdx.x; i < args.pass_bins / 16; i += COUNTS_THREADS_PER_BLOCK)
		__stcg(out + i, words[i]);
}

/*
 * A block of 8 warps sums 512 bins. Each warp adds up the bytes of an eighth of the other kernel's
 * blocks.
 */
#define FOLD_THREADS 256
#define FOLD_BINS 512

/* Adds up the bytes that all blocks have for each bin of a pass, and adds the sums to states. */
static __global__ void
__launch_bounds__(FOLD_THREADS)
	fold_bytes_kernel(const __grid_constant__ CountArgs args, int blocks)
{
	/*
	 * [warp][word][lane] a lane has 16 bins, two to a word: those of even bytes, then of odd bytes
	 */
	__shared__ u32 sums[8][8][33];
	u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, vectors = args.pass_bins / 16,
		column = blockIdx.x * 32 + lane, sum[8] = {0};

	let_successor_start();
	wait_for_predecessor();
	if (column < vectors)
	{
		const uint4 *in = (const uint4 *) args.bytes + column;

#pragma unroll 8
		for (int b = warp; b < blocks; b += 8)
		{
			uint4 v = __ldcg(in + (size_t) b * vectors);
			const u32 word[4] = {v.x, v.y, v.z, v.w};

#pragma unroll
			for (int k = 0; k < 4; k++)
			{
				sum[2 * k] += word[k] & 0x00ff00ff;
				sum[2 * k + 1] += word[k] >> 8 & 0x00ff00ff;
			}
		}
	}
#pragma unroll
	for (int k = 0; k < 8; k++)
		sums[warp][k][lane] = sum[k];
	__syncthreads();
	for (u32 i = threadIdx.x; i < FOLD_BINS; i += FOLD_THREADS)
	{
		u32 bin = blockIdx.x * FOLD_BINS + i, place = i % 16 / 4 * 2 + i % 2,
			shift = i % 4 / 2 * 16;
		u64 rows = 0;

#pragma unroll
		for (int w = 0; w < 8; w++)
			rows += sums[w][place][i / 16] >> shift & 0xffff;
		if (rows && bin < args.pass_bins)
			args.states[args.bin0 + bin] += rows;
	}
}

/* Most blocks: a warp sums the bytes of an eighth of them in 16 bits. */
#define MOST_BLOCKS (8 * 256)

int
hist_byte_count_blocks(u32 nrows, const DeviceFacts &facts)
{
	return (int) min((u32) min(facts.sms, MOST_BLOCKS), nrows / COUNTS_MIN_ROWS_PER_BLOCK + 1);
}

GpuaggCudaStatus
hist_launch_byte_counts(const HistArgs &hist, u32 *bytes, const DeviceFacts &facts,
						cudaStream_t stream)
{
	CountArgs args = CountArgs();
	int blocks = hist_byte_count_blocks(hist.nrows, facts);

	args.bins = make_simple_bins(hist.bins);
	args.nrows = hist.nrows;
	args.pass_bins = hist.pass_bins;
	args.states = (u64 *) hist.slot[0].states;
	args.bytes = bytes;
	args.status = hist.status;
	CUDA_TRY(allow_shared(count_bytes_kernel, facts));
	for (int pass = 0; pass < hist.passes; pass++)
	{
		args.bin0 = pass * args.pass_bins;
		args.report = pass == 0;
		CUDA_TRY(launch_early(count_bytes_kernel, blocks, COUNTS_THREADS_PER_BLOCK, args.pass_bins,
							  facts, stream, args));
		CUDA_TRY(launch_early(fold_bytes_kernel,
							  (int) ((args.pass_bins + FOLD_BINS - 1) / FOLD_BINS), FOLD_THREADS, 0,
							  facts, stream, args, blocks));
	}
	return GPUAGG_CUDA_OK;
}
