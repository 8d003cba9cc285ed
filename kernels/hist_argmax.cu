/*
 * hist_argmax.cu
 *	  Histograms of ARGMAX and ARGMIN, whose states are pairs of a key and a value (gpuagg_kv).
 *
 * Nearly all rows lose by their keys, so the path of a losing row is short: it reads the bin, the
 * key and the key of the best row so far.  Values are read only for rows that may win.
 *
 * Two kernels, each an instance for every key type:
 *	 - argmax_shared_kernel, if the bins fit shared memory: each block keeps the best pair of each
 *	   bin in shared memory ("entries"; SharedPairs).  They start from the states.  At its end the
 *	   block combines them with the states.  A winning row thus changes no memory of other blocks.
 *	 - argmax_global_kernel, otherwise: rows are compared with the states in device memory, read
 *	   through the L1 cache (DeviceStates).
 *
 * Both combine rows with the same bin within a thread, then within a warp, before they change a
 * pair: if keys ascend, as in order of time, every row wins.
 *
 * A block has an equal range of consecutive rows.  It begins with some tiles from the end of its
 * range, the last one first: if keys ascend, rows of these tiles win, and nearly all others lose to
 * them.  Then it goes on from its first tile, so that few rows win if keys descend, too.
 *
 * hist.cu calls hist_launch_argmax() for the slots with these operators: x is the key, y the value.
 * Either has integers or floats; floats stand for their gpuagg_f64_code().  Launches are queued on
 * the stream, one for each slot; nothing synchronizes.
 */
#include "hist_change.cuh"
#include "hist_kernels.cuh"
#include "hist_shared.cuh"

/* Rows of a thread in a tile: a vector load of bins. */
#define ARGMAX_ROWS_PER_THREAD 4

/* The key type of kernels that read any bins and columns, value by value. */
struct AnyKeys
{
};

/* Returns the number of threads in a block of a kernel for keys K. Its registers limit it. */
template <typename K>
static constexpr __host__ __device__ int
threads_for()
{
	return sizeof(K) < 4 ? ARGMAX_ANY_COLUMNS_THREADS_PER_BLOCK : ARGMAX_THREADS_PER_BLOCK;
}

static_assert(sizeof(gpuagg_kv) == HIST_ARGMAX_BYTES, "the model's entries");

struct ArgmaxArgs
{
	SimpleBins bins; /* only for kernels that load vectors */
	int slot;        /* number of the slot */
	int log2_copies; /* log2 of the entries of a bin; each is for some of the block's warps */
	u32 last_rows;   /* about how many rows a block takes from the end of its range first */
};

/* Returns whether a row with this key beats the best key, or ties, so that its value decides. */
template <typename Op>
static __device__ __forceinline__ bool
may_win(int64_t best, int64_t key)
{
	gpuagg_kv a = {best, 0}, b = {key, 0};

	return Op::combine(a, b).key == key;
}

/*
 * key_code() returns a key as an integer that has the keys' order; value_code() does so for a value
 * that load_items() made.  Floats have their gpuagg_f64_code(), a key of -0 that of 0.
 */
static __device__ __forceinline__ int64_t
key_code(int64_t key)
{
	return key;
}

static __device__ __forceinline__ int64_t
key_code(int32_t key)
{
	return key;
}

static __device__ __forceinline__ int64_t
key_code(double key)
{
	return gpuagg_f64_code(key + 0.0);
}

static __device__ __forceinline__ int64_t
key_code(float key)
{
	return key_code((double) key);
}

static __device__ __forceinline__ int64_t
value_code(GpuaggValueType type, u64 bits)
{
	return hist_is_float(type) ? gpuagg_f64_code(__longlong_as_double(bits)) : (int64_t) bits;
}

/* ---- the best pairs so far ------------------------------------------------------- */

/*
 * The best pair of each entry, in a block's shared memory: all keys, then all values, then locks.
 *
 * A pair is changed under a lock.  Pairs are read without locks: a reader reads the key before the
 * value, a writer writes the value before the key, and both have a fence between.  So if a reader
 * finds the key of its own row, the value that it reads next is at least as good as the one with
 * which that key was written, or it belongs to a better key that is about to be written.  In either
 * case a row whose value is not better cannot win.
 *
 * These races between readers and writers are intended.  Keys and values are 8-byte words that are
 * read and written in one access (volatile: relaxed accesses of the PTX memory model).
 * compute-sanitizer's racecheck reports all accesses without a barrier between them, so test/gpu.sh
 * excludes this kernel.
 */
struct SharedPairs
{
	volatile int64_t *keys, *values;
	u32 *locks;

	/* Divides the block's dynamic shared memory into the arrays of n entries. */
	__device__ __forceinline__
	SharedPairs(u32 n)
	{
		extern __shared__ __align__(16) u32 shared[];

		keys = (volatile int64_t *) shared;
		values = keys + n;
		locks = (u32 *) (keys + 2 * n);
	}

	/* Returns the key of an entry, which other threads may change at any time. */
	__device__ __forceinline__ int64_t
	key(u32 at) const
	{
		return keys[at];
	}

	/* Returns a pair, whose lock the caller holds, or which no thread changes. */
	__device__ __forceinline__ gpuagg_kv
	pair(u32 at) const
	{
		gpuagg_kv v;

		v.key = keys[at];
		v.value = values[at];
		return v;
	}

	/* Orders key() before pair_with_key(), and the accesses of change(). */
	static __device__ __forceinline__ void
	fence()
	{
		asm volatile("fence.acq_rel.cta;" : : : "memory");
	}

	/*
	 * Returns the pair whose key key() has returned; fence() must come between.  The value may be a
	 * better one, of a change that has not written its key yet.
	 */
	__device__ __forceinline__ gpuagg_kv
	pair_with_key(int64_t key, u32 at) const
	{
		gpuagg_kv v = {key, values[at]};

		return v;
	}

	/*
	 * Combines the pair v into entry `at` if the lane `has` one.  All lanes of the warp must call
	 * it.
	 */
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
 * The best pair of each bin is its state in device memory.  Reads may be stale but not torn:
 * without untorn 16-byte reads (compute capability below 9.0), only keys are read.
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

	/* Returns the key of a state, which may be stale. */
	__device__ __forceinline__ int64_t
	key(u32 at) const
	{
		return states[at].key;
	}

	/*
	 * Returns a pair that is not better than the state.  Below 9.0 it has INT64_MAX, the worst
	 * value, instead of the state's value.
	 */
	__device__ __forceinline__ gpuagg_kv
	pair(u32 at) const
	{
#if __CUDA_ARCH__ >= 900
		ulonglong2 bits = load_16_bytes(states + at);
		gpuagg_kv v = {(int64_t) bits.x, (int64_t) bits.y};
#else
		gpuagg_kv v = {key(at), INT64_MAX};
#endif
		return v;
	}

	/* Does nothing: pair_with_key() reads key and value in one access. */
	static __device__ __forceinline__ void
	fence()
	{
	}

	/* Returns pair(at): the key is read again, together with its value. */
	__device__ __forceinline__ gpuagg_kv
	pair_with_key(int64_t key, u32 at) const
	{
		return pair(at);
	}

	/*
	 * Returns a pair with which a block's entry can start: a state that was valid at some time,
	 * since blocks that end may change states, or else the identity.
	 */
	template <typename Op>
	__device__ __forceinline__ gpuagg_kv
	initial_pair(u32 at) const
	{
#if __CUDA_ARCH__ >= 900
		return pair(at);
#else
		return Op::identity();
#endif
	}

	/*
	 * Combines the pair v into state `at` if the lane `has` one.  All lanes of the warp must call
	 * it.
	 */
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
 * Combines the thread's rows whose bits are set in `in` with the best pairs. at: the entry of each
 * row; for rows that are not `in`, any entry that exists. key: codes of the keys.  All lanes of the
 * warp must call it.
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
	/* read the keys again: other rows may have changed them while the values were loaded */
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
			gpuagg_kv a = best.pair_with_key(found[j], at[j]);

			if (same_bits(a, Op::combine(a, v[j])))
				in &= ~(1u << j);
		}
		/* combine neighboring rows with the same bin */
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
		combine_peers<Op>(peers, has, one);
		best.template change<Op>(place, has, one);
	}
}

/*
 * Returns the number of the tile that a block processes as number t.  First come the last `last`
 * tiles of its range in reverse order, and then the others in their order.
 */
static __device__ __forceinline__ u32
tile_in_order(u32 t, u32 tiles, u32 last)
{
	return t < last ? tiles - 1 - t : t - last;
}

/*
 * Adds a block's rows, loading bins and keys as vectors of four rows: simple bins, and keys K that
 * start at a multiple of 16 bytes, without filter or NULLs.  copy: the warp's copy of the entries.
 */
template <typename Op, typename K, typename Best>
static __device__ __forceinline__ void
add_vector_rows(const HistArgs &args, const ArgmaxArgs &argmax, Best &best, u32 copy)
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
		u64 base = begin + (u64) tile_in_order(t, tiles, last) * threads_for<K>();
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
			key[j] = key_code(k[j]);
		}
		/* rare: some rows do not exist, or have no bin */
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

/* Adds a block's rows, for any bins and columns. copy: the warp's copy of the entries. */
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
		u64 base = begin + (u64) tile_in_order(t, tiles, last) * TILE;
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
			key[j] = hist_is_float(slot.x.type) ? key_code(__longlong_as_double(read[j])) :
												  key_code((int64_t) read[j]);
		}
		add_pairs<Op>(slot, best, row, at, key, in);
	}
}

/* ---- the kernels ----------------------------------------------------------------- */

/* Combines the block's range of rows with the best pairs. */
template <typename Op, typename K, typename Best>
static __device__ __forceinline__ void
add_block_rows(const HistArgs &args, const ArgmaxArgs &argmax, Best &best, u32 copy)
{
	if constexpr (sizeof(K) < 4)
		add_rows<Op>(args, argmax, best, copy);
	else
		add_vector_rows<Op, K>(args, argmax, best, copy);
}

/*
 * Finds the best rows of each block in shared memory, and combines them with the states.  There is
 * one block for each multiprocessor, with hist_argmax_shared_bytes() of dynamic shared memory.
 */
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
		gpuagg_kv v = states.template initial_pair<Op>(i >> argmax.log2_copies);

		entries.keys[i] = v.key;
		entries.values[i] = v.value;
	}
	for (u32 i = threadIdx.x; i < HIST_ARGMAX_LOCKS; i += threads_for<K>())
		entries.locks[i] = 0;
	__syncthreads();
	add_block_rows<Op, K>(args, argmax, entries, threadIdx.x / 32 & mask);
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

/*
 * Combines rows with the states directly.  There is one block for each multiprocessor, without
 * dynamic shared memory.
 */
template <typename Op, typename K>
static __global__ void
__launch_bounds__(threads_for<K>(), 1)
	argmax_global_kernel(const __grid_constant__ HistArgs args,
						 const __grid_constant__ ArgmaxArgs argmax)
{
	DeviceStates states(args, argmax.slot);

	wait_for_predecessor();
	let_successor_start();
	add_block_rows<Op, K>(args, argmax, states, 0);
}

/* ---- launches -------------------------------------------------------------------- */

/* Launches one of the two kernels for keys of type K, as the model chose. */
template <typename Op, typename K>
static cudaError_t
launch_argmax(const HistArgs &args, const HistModel &model, const ArgmaxArgs &argmax,
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

/* Returns whether bins and keys can be loaded as vectors of four rows; see add_vector_rows(). */
static bool
can_load_vectors(const HistArgs &args, const HistSlot &slot)
{
	return hist_bins_are_simple(args.bins) && !slot.filter && !slot.x.validity &&
		!slot.y.validity && (uintptr_t) args.bins.column[0].values % 16 == 0 &&
		(uintptr_t) slot.x.values % 16 == 0;
}

/* Launches the kernel whose key type is that of the slot's key column. */
template <typename Op>
static cudaError_t
launch_for_key_type(const HistArgs &args, const HistModel &model, const ArgmaxArgs &argmax,
					const DeviceFacts &facts, cudaStream_t stream)
{
	const HistSlot &slot = args.slot[argmax.slot];

	if (can_load_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_I32)
		return launch_argmax<Op, int32_t>(args, model, argmax, facts, stream);
	if (can_load_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_I64)
		return launch_argmax<Op, int64_t>(args, model, argmax, facts, stream);
	if (can_load_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_F32)
		return launch_argmax<Op, float>(args, model, argmax, facts, stream);
	if (can_load_vectors(args, slot) && slot.x.type == GPUAGG_VALUE_F64)
		return launch_argmax<Op, double>(args, model, argmax, facts, stream);
	return launch_argmax<Op, AnyKeys>(args, model, argmax, facts, stream);
}

GpuaggCudaStatus
hist_launch_argmax(const HistArgs &args, const HistModel &model, const DeviceFacts &facts,
				   cudaStream_t stream)
{
	HistArgs one = args;

	/* clears the locks, which states need where the device has no 16-byte atomics */
	if (!facts.built_for_90)
		STATUS_TRY(hist_launch_prepare(args, facts, stream));
	for (int s = 0; s < args.nslots; s++)
	{
		ArgmaxArgs argmax = {
			make_simple_bins(args.bins), s, model.log2_copies,
			(u32) min(HIST_ARGMAX_LAST_ROWS_PER_ENTRY * (args.bins.nbins << model.log2_copies),
					  (int64_t) args.nrows)};

		CUDA_TRY(args.slot[s].op == MONOID_ARGMAX ?
					 launch_for_key_type<Op_argmax>(one, model, argmax, facts, stream) :
					 launch_for_key_type<Op_argmin>(one, model, argmax, facts, stream));
		one.report = false; /* rows out of range are reported once */
	}
	return GPUAGG_CUDA_OK;
}
