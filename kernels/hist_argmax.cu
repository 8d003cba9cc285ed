/*
 * hist_argmax.cu
 *	  Histograms of ARGMAX and ARGMIN, whose states are pairs of a key and a value.
 *
 * Nearly all rows lose by their keys, so that path is short: the bin, the key, and the key of the
 * best row so far.  Values are read of rows that do not.  Where the bins fit shared memory, a block
 * has the best of its own rows there, and of those before the call ("entries": keys, then values),
 * so that a row that wins changes no memory that others see; after its last row the block combines
 * them with the states.  Else the states themselves are what rows are compared with, by way of the
 * L1 cache.  Either way rows of a thread, then of a warp, that have one bin are put together before
 * they change anything: in order of time, each row wins.
 *
 * A block has an equal share of neighbouring rows, and begins with some of the last of them, the
 * last first: where keys ascend, as in order of time, those win, and nearly all others lose to
 * them. Then it goes on from the first, so that few rows win where keys descend, too.
 */
#include "hist_change.cuh"
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* Rows of a thread in a tile: a vector load of bins. */
#define ARGMAX_ROWS_PER_THREAD 4

/* Keys of kernels without vectors. */
struct AnyKeys
{
};

/* Threads of a block, as registers allow. */
template <typename K>
static constexpr __host__ __device__ int
threads_for()
{
	return sizeof(K) < 4 ? ARGMAX_ANY_COLUMNS_THREADS_PER_BLOCK : ARGMAX_THREADS_PER_BLOCK;
}

static_assert(sizeof(gpuagg_kv) == HIST_ARGMAX_BYTES, "the model's entries");

struct ArgmaxArgs
{
	SimpleBins bins; /* of kernels with vectors */
	int slot;
	int log2_copies; /* of entries, each for some of the block's warps */
	u32 last_rows;   /* of a block's share, that are its first */
};

/* Whether a row of this key wins, or ties, so that its value decides. */
template <typename Op>
static __device__ __forceinline__ bool
may_win(int64_t best, int64_t key)
{
	gpuagg_kv a = {best, 0}, b = {key, 0};

	return Op::combine(a, b).key == key;
}

/* The code of a key, or of a value as load_items has it: floats have their order's. */
static __device__ __forceinline__ int64_t
code_of(int64_t key)
{
	return key;
}

static __device__ __forceinline__ int64_t
code_of(int32_t key)
{
	return key;
}

static __device__ __forceinline__ int64_t
code_of(double key)
{
	return gpuagg_f64_code(key + 0.0);
}

static __device__ __forceinline__ int64_t
code_of(float key)
{
	return code_of((double) key);
}

static __device__ __forceinline__ int64_t
value_code(GpuaggValueType type, u64 bits)
{
	return hist_is_float(type) ? gpuagg_f64_code(__longlong_as_double(bits)) : (int64_t) bits;
}

/* ---- where the best rows are ----------------------------------------------------- */

/*
 * The block's entries.  A lock guards changes; who reads without one reads the key before the
 * value, and who changes them writes the value before the key, each with a fence between.  So a
 * reader that finds a row's own key has a value that is at least as good as the one that was kept
 * with it, or the key is about to be beaten.
 *
 * Such reads race with changes, and are meant to: keys and values are words of 8 bytes that are
 * read and written whole (volatile: relaxed accesses, in the words of the PTX ISA's memory model).
 * compute-sanitizer's racecheck reports them, as it does all accesses without a barrier between, so
 * test/gpu.sh has it leave this kernel out.
 */
struct SharedPairs
{
	volatile int64_t *keys, *values;
	u32 *locks;

	__device__ __forceinline__
	SharedPairs(u32 n)
	{
		extern __shared__ __align__(16) u32 shared[];

		keys = (volatile int64_t *) shared;
		values = keys + n;
		locks = (u32 *) (keys + 2 * n);
	}

	__device__ __forceinline__ int64_t
	key(u32 at) const
	{
		return keys[at];
	}

	/* By the holder of its lock, or when nobody changes it. */
	__device__ __forceinline__ gpuagg_kv
	pair(u32 at) const
	{
		gpuagg_kv v;

		v.key = keys[at];
		v.value = values[at];
		return v;
	}

	/* Between key() and pair_of(). */
	static __device__ __forceinline__ void
	fence()
	{
		asm volatile("fence.acq_rel.cta;" : : : "memory");
	}

	/* That whose key key() found: no better than it, unless a better key is on its way. */
	__device__ __forceinline__ gpuagg_kv
	pair_of(int64_t key, u32 at) const
	{
		gpuagg_kv v = {key, values[at]};

		return v;
	}

	/* Of each lane that has one: a row into its entry. */
	template <typename Op>
	__device__ __forceinline__ void
	change(u32 at, bool has, const gpuagg_kv &v)
	{
		u32 *lock = locks + at % HIST_ARGMAX_LOCKS;

		while (has)
			if (atomicCAS(lock, 0, 1) == 0)
			{
				gpuagg_kv a, r;

				fence();
				a = pair(at);
				r = Op::combine(a, v);
				if (!same_bits(a, r))
				{
					values[at] = r.value;
					fence();
					keys[at] = r.key;
				}
				fence();
				atomicExch(lock, 0);
				has = false;
			}
		__syncwarp();
	}
};

/*
 * The states themselves, which are read as they were at some time: where the device has no accesses
 * of 16 bytes that cannot be torn, their keys alone.
 */
struct DeviceStates
{
	gpuagg_kv *states;
	const HistArgs &args;

	__device__ __forceinline__
	DeviceStates(const HistArgs &a, int s)
		: states((gpuagg_kv *) a.slot[s].states), args(a)
	{
	}

	__device__ __forceinline__ int64_t
	key(u32 at) const
	{
		return states[at].key;
	}

	/* No better than the state. */
	__device__ __forceinline__ gpuagg_kv
	pair(u32 at) const
	{
#if __CUDA_ARCH__ >= 900
		ulonglong2 bits = load_whole(states + at);
		gpuagg_kv v = {(int64_t) bits.x, (int64_t) bits.y};
#else
		gpuagg_kv v = {key(at), INT64_MAX};
#endif
		return v;
	}

	/* Both at once, so they need no order. */
	static __device__ __forceinline__ void
	fence()
	{
	}

	__device__ __forceinline__ gpuagg_kv
	pair_of(int64_t key, u32 at) const
	{
		return pair(at);
	}

	/* A state that was, to start from; other blocks may be at their end. */
	template <typename Op>
	__device__ __forceinline__ gpuagg_kv
	known(u32 at) const
	{
#if __CUDA_ARCH__ >= 900
		return pair(at);
#else
		return Op::identity();
#endif
	}

	template <typename Op>
	__device__ __forceinline__ void
	change(u32 at, bool has, const gpuagg_kv &v)
	{
		if (has)
			change_state<Op>(states + at, v, bin_lock(args, at));
		__syncwarp();
	}
};

/* ---- rows ------------------------------------------------------------------------ */

/*
 * A thread's rows of those `in`, whose keys and places are known, into the best ones; places of the
 * others are some that there are.  The whole warp must come here.
 */
template <typename Op, typename Best>
static __device__ __forceinline__ void
add_pairs(const HistSlot &slot, Best &best, const u32 (&row)[ARGMAX_ROWS_PER_THREAD],
		  const u32 (&at)[ARGMAX_ROWS_PER_THREAD], const int64_t (&key)[ARGMAX_ROWS_PER_THREAD],
		  u32 in)
{
	gpuagg_kv v[ARGMAX_ROWS_PER_THREAD];
	int64_t found[ARGMAX_ROWS_PER_THREAD];
	u64 value[ARGMAX_ROWS_PER_THREAD], unused[ARGMAX_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
		found[j] = best.key(at[j]);
#pragma unroll
	for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
		if (!may_win<Op>(found[j], key[j]))
			in &= ~(1u << j);
	if (!__any_sync(~0u, in))
		return;
	load_items<ARGMAX_ROWS_PER_THREAD>(slot.y, row, in, value, unused);
	/* better ones may have come meanwhile */
#pragma unroll
	for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
		found[j] = best.key(at[j]);
	best.fence();
#pragma unroll
	for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
	{
		v[j].key = key[j];
		v[j].value = value_code(slot.y.type, value[j]);
		if (in >> j & 1)
		{
			gpuagg_kv a = best.pair_of(found[j], at[j]);

			if (same_bits(a, Op::combine(a, v[j])))
				in &= ~(1u << j);
		}
		/* neighbours of one bin */
		if (j > 0 && (in >> (j - 1) & 3) == 3 && at[j - 1] == at[j])
		{
			v[j] = Op::combine(v[j - 1], v[j]);
			in &= ~(1u << (j - 1));
		}
	}
#pragma unroll 1
	while (__any_sync(~0u, in))
	{
		gpuagg_kv one = v[0];
		u32 place = at[0];
		bool has = in != 0;
		u32 peers;

#pragma unroll
		for (int j = ARGMAX_ROWS_PER_THREAD - 1; j >= 0; j--)
			if (in >> j & 1)
			{
				one = v[j];
				place = at[j];
			}
		in &= in - 1;
		peers = __match_any_sync(~0u, has ? place : ~0u);
		put_together<Op>(peers, has, one);
		best.template change<Op>(place, has, one);
	}
}

/* The place of a share's tile number t, of so many, of which `last` are taken from the end. */
static __device__ __forceinline__ u32
tile_place(u32 t, u32 tiles, u32 last)
{
	return t < last ? tiles - 1 - t : t - last;
}

/*
 * A block's rows, in vectors: simple bins and keys K, without filter or NULLs, from multiples of 16
 * bytes on.
 */
template <typename Op, typename K, typename Best>
static __device__ __forceinline__ void
add_vectors(const HistArgs &args, const ArgmaxArgs &argmax, Best &best, u32 copy)
{
	const HistSlot &slot = args.slot[argmax.slot];
	const int32_t *bins = argmax.bins.column;
	const K *keys = (const K *) slot.x.values;
	u32 bias = argmax.bins.skip_negative ? 0x80000000u : 0,
		most = args.report ? argmax.bins.n - 1 + bias : ~0u, outside = 0;
	u64 vectors = ((u64) args.nrows + ARGMAX_ROWS_PER_THREAD - 1) / ARGMAX_ROWS_PER_THREAD,
		lines = (vectors + 31) / 32, begin = lines * blockIdx.x / gridDim.x * 32,
		end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, vectors);
	u32 tiles = (u32) ((end - begin + threads_for<K>() - 1) / threads_for<K>()),
		last = min((tiles + 1) / 2,
				   argmax.last_rows / (ARGMAX_ROWS_PER_THREAD * threads_for<K>()) + 1);

	for (u32 t = 0; t < tiles; t++)
	{
		u64 base = begin + (u64) tile_place(t, tiles, last) * threads_for<K>();
		u32 first = (u32) (base + threadIdx.x) * ARGMAX_ROWS_PER_THREAD,
			n = base + threadIdx.x < end ? min(args.nrows - first, (u32) ARGMAX_ROWS_PER_THREAD) :
										   0,
			row[ARGMAX_ROWS_PER_THREAD], at[ARGMAX_ROWS_PER_THREAD],
			in = (1u << ARGMAX_ROWS_PER_THREAD) - 1, greatest = 0;
		int32_t bin[ARGMAX_ROWS_PER_THREAD] = {0};
		K k[ARGMAX_ROWS_PER_THREAD] = {0};
		int64_t key[ARGMAX_ROWS_PER_THREAD];

		if (n == ARGMAX_ROWS_PER_THREAD)
		{
			*(int4 *) bin = bins ? *(const int4 *) (bins + first) : make_int4(0, 0, 0, 0);
#pragma unroll
			for (int i = 0; i < (int) sizeof(k) / 16; i++)
				((int4 *) k)[i] = ((const int4 *) (keys + first))[i];
		}
		else
#pragma unroll
			for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
				if (j < (int) n)
				{
					bin[j] = bins ? bins[first + j] : 0;
					k[j] = keys[first + j];
				}
#pragma unroll
		for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
		{
			u32 b = (u32) bin[j] - argmax.bins.min;

			greatest = max(greatest, b);
			row[j] = first + j;
			at[j] = (b << argmax.log2_copies) | copy;
			key[j] = code_of(k[j]);
		}
		/* seldom: some are no rows, or have no bin */
		if (n < ARGMAX_ROWS_PER_THREAD || greatest >= argmax.bins.n)
#pragma unroll
			for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
			{
				u32 b = (u32) bin[j] - argmax.bins.min;

				if (j < (int) n && b < argmax.bins.n)
					continue;
				outside += j < (int) n && b + bias > most;
				in &= ~(1u << j);
				at[j] = 0;
			}
		add_pairs<Op>(slot, best, row, at, key, in);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
}

/* A block's rows of any bins and columns. */
template <typename Op, typename Best>
static __device__ __forceinline__ void
add_rows(const HistArgs &args, const ArgmaxArgs &argmax, Best &best, u32 copy)
{
	constexpr u32 TILE = ARGMAX_ROWS_PER_THREAD * threads_for<AnyKeys>();
	const HistSlot &slot = args.slot[argmax.slot];
	u64 lines = ((u64) args.nrows + 31) / 32, begin = lines * blockIdx.x / gridDim.x * 32,
		end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, (u64) args.nrows);
	u32 tiles = (u32) ((end - begin + TILE - 1) / TILE),
		last = min((tiles + 1) / 2, argmax.last_rows / TILE + 1);

	for (u32 t = 0; t < tiles; t++)
	{
		u64 base = begin + (u64) tile_place(t, tiles, last) * TILE;
		u32 row[ARGMAX_ROWS_PER_THREAD], at[ARGMAX_ROWS_PER_THREAD], in = 0;
		int32_t bin[ARGMAX_ROWS_PER_THREAD];
		int64_t key[ARGMAX_ROWS_PER_THREAD];
		u64 read[ARGMAX_ROWS_PER_THREAD], unused[ARGMAX_ROWS_PER_THREAD];

#pragma unroll
		for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
		{
			u64 r = base + (u64) j * threads_for<AnyKeys>() + threadIdx.x;

			row[j] = (u32) r;
			if (r < end)
				in |= 1u << j;
		}
		in = find_bins<ARGMAX_ROWS_PER_THREAD>(args.bins, row, in, bin,
											   args.report ? args.status : nullptr);
		in = filter_slot_rows<ARGMAX_ROWS_PER_THREAD>(slot, row, in);
		load_items<ARGMAX_ROWS_PER_THREAD>(slot.x, row, in, read, unused);
#pragma unroll
		for (int j = 0; j < ARGMAX_ROWS_PER_THREAD; j++)
		{
			at[j] = in >> j & 1 ? ((u32) bin[j] << argmax.log2_copies) | copy : 0;
			key[j] = hist_is_float(slot.x.type) ? code_of(__longlong_as_double(read[j])) :
												  code_of((int64_t) read[j]);
		}
		add_pairs<Op>(slot, best, row, at, key, in);
	}
}

/* ---- the kernels ----------------------------------------------------------------- */

template <typename Op, typename K, typename Best>
static __device__ __forceinline__ void
add_share(const HistArgs &args, const ArgmaxArgs &argmax, Best &best, u32 copy)
{
	if constexpr (sizeof(K) < 4)
		add_rows<Op>(args, argmax, best, copy);
	else
		add_vectors<Op, K>(args, argmax, best, copy);
}

template <typename Op, typename K>
static __global__ void
__launch_bounds__(threads_for<K>(), 1)
	argmax_shared_kernel(const __grid_constant__ HistArgs args,
						 const __grid_constant__ ArgmaxArgs argmax)
{
	u32 nbins = (u32) args.bins.nbins, n = nbins << argmax.log2_copies,
		mask = (1u << argmax.log2_copies) - 1;
	DeviceStates states(args, argmax.slot);
	SharedPairs entries(n);

	wait_for_predecessor();
	let_successor_start();
	for (u32 i = threadIdx.x; i < n; i += threads_for<K>())
	{
		gpuagg_kv v = states.template known<Op>(i >> argmax.log2_copies);

		entries.keys[i] = v.key;
		entries.values[i] = v.value;
	}
	for (u32 i = threadIdx.x; i < HIST_ARGMAX_LOCKS; i += threads_for<K>())
		entries.locks[i] = 0;
	__syncthreads();
	add_share<Op, K>(args, argmax, entries, threadIdx.x / 32 & mask);
	__syncthreads();
	for (u32 i = threadIdx.x; i < nbins; i += threads_for<K>())
	{
		u32 b = rotate_by_block(i, nbins);
		gpuagg_kv v = Op::identity();

		for (u32 m = 0; m <= mask; m++)
			v = Op::combine(v, entries.pair((b << argmax.log2_copies) | ((m + b) & mask)));
		change_state<Op>(states.states + b, v, bin_lock(args, b));
	}
}

template <typename Op, typename K>
static __global__ void
__launch_bounds__(threads_for<K>(), 1)
	argmax_global_kernel(const __grid_constant__ HistArgs args,
						 const __grid_constant__ ArgmaxArgs argmax)
{
	DeviceStates states(args, argmax.slot);

	wait_for_predecessor();
	let_successor_start();
	add_share<Op, K>(args, argmax, states, 0);
}

/* ---- launches -------------------------------------------------------------------- */

template <typename Op, typename K>
static cudaError_t
launch(const HistArgs &args, const HistModel &model, const ArgmaxArgs &argmax,
	   const DeviceFacts &facts, cudaStream_t stream)
{
	bool shared = model.form == HIST_FORM_SHARED;
	void (*kernel)(HistArgs, ArgmaxArgs) =
		shared ? argmax_shared_kernel<Op, K> : argmax_global_kernel<Op, K>;
	size_t bytes = shared ? hist_argmax_shared_bytes(args.bins.nbins << argmax.log2_copies) : 0;
	cudaError_t err = allow_shared(kernel, facts);

	if (err != cudaSuccess)
		return err;
	return launch_early(kernel, facts.sms, threads_for<K>(), bytes, facts, stream, args, argmax);
}

/* Whether vectors of four rows read the bins and the keys. */
static bool
takes_vectors(const HistArgs &args, const HistSlot &slot)
{
	return hist_bins_are_simple(args.bins) && !slot.filter && !slot.x.validity &&
		!slot.y.validity && (uintptr_t) args.bins.column[0].values % 16 == 0 &&
		(uintptr_t) slot.x.values % 16 == 0;
}

template <typename Op>
static cudaError_t
launch_keys(const HistArgs &args, const HistModel &model, const ArgmaxArgs &argmax,
			const DeviceFacts &facts, cudaStream_t stream)
{
	const HistSlot &slot = args.slot[argmax.slot];

	if (takes_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_I32)
		return launch<Op, int32_t>(args, model, argmax, facts, stream);
	if (takes_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_I64)
		return launch<Op, int64_t>(args, model, argmax, facts, stream);
	if (takes_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_F32)
		return launch<Op, float>(args, model, argmax, facts, stream);
	if (takes_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_F64)
		return launch<Op, double>(args, model, argmax, facts, stream);
	return launch<Op, AnyKeys>(args, model, argmax, facts, stream);
}

GpuaggCudaStatus
hist_launch_argmax(const HistArgs &args, const HistModel &model, const DeviceFacts &facts,
				   cudaStream_t stream)
{
	HistArgs one = args;

	/* locks of states, where the device has no atomics of 16 bytes */
	if (!facts.built_for_90)
		STATUS_TRY(hist_launch_prepare(args, facts, stream));
	for (int s = 0; s < args.nslots; s++)
	{
		ArgmaxArgs argmax = {
			make_simple_bins(args.bins), s, model.log2_copies,
			(u32) min(HIST_ARGMAX_LAST_ROWS_PER_ENTRY * (args.bins.nbins << model.log2_copies),
					  (int64_t) args.nrows)};

		CUDA_TRY(args.slot[s].op == MONOID_ARGMAX ?
					 launch_keys<Op_argmax>(one, model, argmax, facts, stream) :
					 launch_keys<Op_argmin>(one, model, argmax, facts, stream));
		one.report = false;
	}
	return GPUAGG_CUDA_OK;
}
