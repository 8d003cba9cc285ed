/*
 * runs.cu
 *	  Runs: numbers them, sorts rows so that equal keys are runs, and reduces columns by run.
 *
 * Rows are divided into as many chunks as warps run concurrently.  A warp walks its chunk in steps
 * of 256 rows, eight for each lane.  Each lane folds its rows, and a segmented scan combines the
 * runs that are open between lanes.  A second kernel combines the runs that cross chunks.  No
 * atomics change states, so the same rows give the same bits on every execution on the same device.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "common.cuh"
#include "tuning.h"

#define RUNS_WARPS_PER_BLOCK (RUNS_THREADS_PER_BLOCK / 32)
/* Rows of a lane, and of a warp, in one step.  The code depends on eight: masks, vector loads. */
#define RUNS_ROWS_PER_LANE 8
#define RUNS_ROWS_PER_STEP (32 * RUNS_ROWS_PER_LANE)

/* ---- numbers of runs ------------------------------------------------------------ */

/* Counts the runs that begin in each word of 32 rows; 0 for the word after the last. */
struct Heads
{
	const uint32_t *heads;
	int64_t words;

	__device__ __forceinline__ int32_t
	operator()(int64_t w) const
	{
		return w < words ? __popc(heads[w]) : 0;
	}
};

GPUAGG_API GpuaggCudaStatus
gpuagg_runs_number(const uint32_t *heads, int64_t words, int32_t *before, void *workspace,
				   size_t *workspace_bytes, gpuagg_stream stream)
{
	auto counts =
		thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), Heads{heads, words});
	Workspace ws(workspace);
	size_t bytes = 0;
	char *temp;

	if (words < 0 || words >= INT32_MAX)
		return GPUAGG_CUDA_INVALID;
	CUDA_TRY(
		cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts, before, (int) words + 1, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	CUDA_TRY(cub::DeviceScan::ExclusiveSum(temp, bytes, counts, before, (int) words + 1, stream));
	return GPUAGG_CUDA_OK;
}

/* ---- order ------------------------------------------------------------------------ */

/* Sets rows[i] to i for all n rows. */
static __global__ void
number_rows(int64_t n, uint32_t *rows)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		rows[i] = (uint32_t) i;
}

/* Sorts n keys by their lowest `bits` bits into `sorted`, and writes the row of each to `order`. */
template <typename T>
static GpuaggCudaStatus
sort_rows(const T *keys, int64_t n, int bits, T *sorted, uint32_t *order, void *workspace,
		  size_t *workspace_bytes, cudaStream_t stream)
{
	Workspace ws(workspace);
	size_t bytes = 0;
	uint32_t *rows = ws.take<uint32_t>(n);
	char *temp;

	CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted, rows, order, (int) n, 0,
											 bits, stream));
	temp = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	number_rows<<<RUNS_NUMBER_ROWS_BLOCKS, RUNS_THREADS_PER_BLOCK, 0, stream>>>(n, rows);
	CUDA_TRY_LAUNCH("number_rows");
	CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, bytes, keys, sorted, rows, order, (int) n, 0,
											 bits, stream));
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_runs_sort(int key_bytes, const void *keys, int64_t nrows, int bits, void *sorted,
				 uint32_t *order, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	if (nrows < 1 || nrows > INT32_MAX || bits < 1 || bits > 8 * key_bytes)
		return GPUAGG_CUDA_INVALID;
	if (key_bytes == 4)
		return sort_rows((const int32_t *) keys, nrows, bits, (int32_t *) sorted, order, workspace,
						 workspace_bytes, stream);
	if (key_bytes == 8)
		return sort_rows((const int64_t *) keys, nrows, bits, (int64_t *) sorted, order, workspace,
						 workspace_bytes, stream);
	return GPUAGG_CUDA_UNSUPPORTED;
}

/* ---- inputs ----------------------------------------------------------------------- */

/* Values of eight rows: integers sign-extended to 128 bits, floats as their bits. */
struct EightValues
{
	int64_t lo[RUNS_ROWS_PER_LANE];
	int64_t hi[RUNS_ROWS_PER_LANE];
};

/* Loads the values of eight rows that are next to each other, by vector loads. */
template <typename T>
static __device__ __forceinline__ void
load_together(const void *values, int64_t row, EightValues &e)
{
	union
	{
		T value[RUNS_ROWS_PER_LANE];
		uint2 piece[sizeof(T)];
	} u;

#pragma unroll
	for (unsigned i = 0; i < sizeof(T); i++)
		u.piece[i] = __ldcs((const uint2 *) ((const T *) values + row) + i);
#pragma unroll
	for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
	{
		e.lo[j] = (int64_t) u.value[j];
		e.hi[j] = (int64_t) u.value[j] >> 63;
	}
}

/* Returns the value of a row: an integer sign-extended, or the bits of a float zero-extended. */
static __device__ __forceinline__ int64_t
load_one(const GpuaggColumn &c, int64_t row)
{
	return c.type == GPUAGG_VALUE_F32 ?
		((const uint32_t *) c.values)[row] :
		load_integer(c.values, c.type == GPUAGG_VALUE_F64 ? GPUAGG_VALUE_I64 : c.type, row);
}

/* Loads the 128-bit values of the rows whose bits are set in `ok`. */
static __device__ __forceinline__ void
load_wide(const GpuaggColumn &c, const int64_t *row, uint32_t ok, EightValues &e)
{
#pragma unroll
	for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
		if (ok >> j & 1)
		{
			e.lo[j] = ((const int64_t *) c.values)[2 * row[j]];
			e.hi[j] = ((const int64_t *) c.values)[2 * row[j] + 1];
		}
}

/* Loads the values of the rows in `ok`.  together: these are row[0] and the seven rows after it. */
static __device__ __forceinline__ void
load_eight(const GpuaggColumn &c, const int64_t *row, uint32_t ok, bool together, EightValues &e)
{
	if (c.type == GPUAGG_VALUE_I128)
		load_wide(c, row, ok, e);
	else if (together)
		switch (c.type)
		{
			case GPUAGG_VALUE_I8:
				return load_together<int8_t>(c.values, row[0], e);
			case GPUAGG_VALUE_I16:
				return load_together<int16_t>(c.values, row[0], e);
			case GPUAGG_VALUE_I32:
				return load_together<int32_t>(c.values, row[0], e);
			case GPUAGG_VALUE_F32:
				return load_together<uint32_t>(c.values, row[0], e);
			default:
				return load_together<int64_t>(c.values, row[0], e);
		}
	else
#pragma unroll
		for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
			if (ok >> j & 1)
			{
				e.lo[j] = load_one(c, row[j]);
				e.hi[j] = e.lo[j] >> 63;
			}
}

static constexpr __host__ __device__ bool
is_float(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_F32 || type == GPUAGG_VALUE_F64;
}

/* Returns the value of a float column of this type as a double, given the bits of the value. */
static __device__ __forceinline__ double
as_double(GpuaggValueType type, int64_t bits)
{
	return type == GPUAGG_VALUE_F32 ? (double) __uint_as_float((uint32_t) bits) :
									  __longlong_as_double(bits);
}

/* The inputs of a row.  get() converts them to the input type of the operator. */
struct RowInput
{
	GpuaggValueType x, y; /* the types of the columns */
	int64_t lo, hi,       /* the first input */
		second;           /* the second input of pairs */

	__device__ __forceinline__ void
	get(int8_t &v) const
	{
		v = 1;
	}
	__device__ __forceinline__ void
	get(int32_t &v) const
	{
		v = (int32_t) lo;
	}
	__device__ __forceinline__ void
	get(int64_t &v) const
	{
		v = lo;
	}
	__device__ __forceinline__ void
	get(gpuagg_i128 &v) const
	{
		v = (gpuagg_i128) ((gpuagg_u128) (uint64_t) hi << 64 | (uint64_t) lo);
	}
	__device__ __forceinline__ void
	get(float &v) const
	{
		v = __uint_as_float((uint32_t) lo);
	}
	__device__ __forceinline__ void
	get(double &v) const
	{
		v = as_double(x, lo);
	}
	__device__ __forceinline__ void
	get(gpuagg_f64x2 &v) const
	{
		v.x = as_double(x, lo);
		v.y = as_double(y, second);
	}
	/* floats become codes in their order; a key of -0 has the code of 0 */
	__device__ __forceinline__ void
	get(gpuagg_kv &v) const
	{
		v.key = is_float(x) ? gpuagg_f64_code(as_double(x, lo) + 0.0) : lo;
		v.value = is_float(y) ? gpuagg_f64_code(as_double(y, second)) : second;
	}
};

/* ---- reduction -------------------------------------------------------------------- */

struct RunsArgs
{
	GpuaggRuns runs;
	GpuaggSlot slot;
	int64_t chunk_rows;
	int chunks;
	bool pairs; /* the operator has a second input, slot.y */
	uint32_t *errors;
	/* for each chunk: */
	void *head;        /* the chunk's rows of the run that is open at its start, reduced */
	void *tail;        /* the chunk's rows of the last run that begins in it, reduced */
	int32_t *head_run; /* the run that is open at its start */
	int32_t *tail_run; /* the last run that begins in it; -1: none does */
};

/* Returns bit i of a validity bitmap; true if there is no bitmap. */
static __device__ __forceinline__ bool
bit_at(const uint8_t *bits, int64_t i)
{
	return bits == nullptr || (bits[i >> 3] >> (i & 7) & 1);
}

/* Returns `ok` without the bits of rows that a filter rejects or that have a NULL in an input. */
static __device__ __forceinline__ uint32_t
rows_that_count(const RunsArgs &a, const int64_t *row, uint32_t ok)
{
	const uint8_t *filters[2] = {a.runs.filter, a.slot.filter};
	const uint8_t *bitmaps[2] = {a.slot.x.validity, a.slot.y.validity};

	for (int k = 0; k < 2; k++)
	{
		if (filters[k])
#pragma unroll
			for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
				if ((ok >> j & 1) && !filters[k][row[j]])
					ok &= ~(1u << j);
		if (bitmaps[k])
#pragma unroll
			for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
				if ((ok >> j & 1) && !bit_at(bitmaps[k], row[j]))
					ok &= ~(1u << j);
	}
	return ok;
}

/* Sets a to combine(a, b).  Returns error bits. */
template <class Op>
static __device__ __forceinline__ int
combine_into(typename Op::State &a, const typename Op::State &b)
{
	typename Op::State r = Op::combine(a, b);
	int error = Op::error(a, b, r);

	a = r;
	return error;
}

/*
 * Combines the reduced rows of a run with its state.  Returns error bits.  No other thread changes
 * the state.
 */
template <class Op>
static __device__ __forceinline__ int
add_to_state(const RunsArgs &a, int64_t run, const typename Op::State &part)
{
	typename Op::State *to =
		(typename Op::State *) a.slot.states + (a.runs.bins ? a.runs.bins[run] : run);
	typename Op::State state = *to;
	int error = combine_into<Op>(state, part);

	*to = state;
	return error;
}

/* Returns `value` of lane number `lane`.  All lanes of the warp must call it. */
template <class T>
static __device__ __forceinline__ T
from_lane(T value, int lane)
{
	return shuffle_words(value, [&](uint32_t w) { return __shfl_sync(~0u, w, lane); });
}

/* The reduced rows of a lane; runs that begin and end among its rows are in their states. */
template <class Op> struct Fold
{
	typename Op::State first; /* rows before the first head */
	typename Op::State open;  /* rows from the last head on; without a head, all rows */
	bool seen;                /* a run begins among the rows */
};

/* Reduces a lane's rows.  `run` is the run that is open before them.  Returns error bits. */
template <class Op>
static __device__ __forceinline__ int
fold_rows(const RunsArgs &a, const EightValues &x, const EightValues &y, uint32_t ok,
		  uint32_t heads, int64_t run, Fold<Op> &f)
{
	int error = 0;

	f.seen = false;
	f.first = f.open = Op::identity();
#pragma unroll
	for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
	{
		if (heads >> j & 1)
		{
			if (f.seen)
				error |= add_to_state<Op>(a, run, f.open);
			else
				f.first = f.open;
			f.seen = true;
			f.open = Op::identity();
			run++;
		}
		if (ok >> j & 1)
		{
			RowInput in = {a.slot.x.type, a.slot.y.type, x.lo[j], x.hi[j], y.lo[j]};
			typename Op::Input input;
			typename Op::State next;

			in.get(input);
			next = Op::step(f.open, input);
			error |= Op::error(f.open, Op::lift(input), next);
			f.open = next;
		}
	}
	return error;
}

/* The run that is open where a warp is in its chunk. */
template <class Op> struct OpenRun
{
	typename Op::State carry; /* its rows so far in the chunk, reduced */
	bool headed;              /* it began in the chunk */
};

/*
 * Combines the lanes' folds with each other and with the open run, and writes runs that end.  `run`
 * is the run that is open before the lane's rows.  Returns error bits.
 */
template <class Op>
static __device__ __forceinline__ int
combine_lanes(const RunsArgs &a, int chunk, int64_t run, const Fold<Op> &f, OpenRun<Op> &open_run)
{
	typedef typename Op::State State;
	int lane = threadIdx.x % 32;
	State open = f.open, incoming;
	uint32_t seen = __ballot_sync(~0u, f.seen);
	int error = 0;

	/* inclusive scan: a lane combines the lanes before it, back to the last head */
	for (int d = 1; d < 32; d *= 2)
	{
		State left = shuffle_words(open, [&](uint32_t w) { return __shfl_up_sync(~0u, w, d); });
		uint32_t between = lane >= d ? seen >> (lane - d + 1) & ((1u << d) - 1) : 1;

		if (between == 0)
		{
			error |= combine_into<Op>(left, open);
			open = left;
		}
	}
	incoming = shuffle_words(open, [&](uint32_t w) { return __shfl_up_sync(~0u, w, 1); });
	if (lane == 0)
		incoming = Op::identity();
	/* without a head in the lanes before, the run from the step before continues */
	if ((seen & ((1u << lane) - 1)) == 0)
	{
		State all = open_run.carry;

		error |= combine_into<Op>(all, incoming);
		incoming = all;
	}
	if (f.seen)
	{
		error |= combine_into<Op>(incoming, f.first);
		if (open_run.headed || (seen & ((1u << lane) - 1)) != 0)
			error |= add_to_state<Op>(a, run, incoming);
		else
			((State *) a.head)[chunk] = incoming;
	}
	open = from_lane(open, 31);
	if (seen == 0)
		error |= combine_into<Op>(open_run.carry, open);
	else
		open_run.carry = open;
	open_run.headed |= seen != 0;
	return error;
}

/* Reduces the runs of each chunk. */
template <class Op>
static __global__ void
__launch_bounds__(RUNS_THREADS_PER_BLOCK) runs_kernel(const __grid_constant__ RunsArgs a)
{
	const GpuaggRuns &g = a.runs;
	int lane = threadIdx.x % 32;
	int chunk = blockIdx.x * RUNS_WARPS_PER_BLOCK + threadIdx.x / 32;
	int64_t begin = chunk * a.chunk_rows;
	int64_t end = begin + a.chunk_rows < g.nrows ? begin + a.chunk_rows : g.nrows;
	OpenRun<Op> open_run = {Op::identity(), false};
	int error = 0;

	if (chunk >= a.chunks)
		return;
	for (int64_t base = begin; base < end; base += RUNS_ROWS_PER_STEP)
	{
		int64_t r0 = base + lane * RUNS_ROWS_PER_LANE;
		bool there = r0 < g.nrows;
		uint32_t word = there ? g.heads[r0 / 32] : 0;
		uint32_t low = word & ((1u << (r0 % 32)) - 1);
		int64_t run = there ? g.before[r0 / 32] + __popc(low) - 1 : 0;
		uint32_t heads = word >> (r0 % 32) & 0xff;
		uint32_t ok = !there                   ? 0 :
			g.nrows - r0 >= RUNS_ROWS_PER_LANE ? 0xff :
												 (1u << (g.nrows - r0)) - 1;
		int64_t row[RUNS_ROWS_PER_LANE];
		bool together = ok == 0xff && g.order == nullptr;
		EightValues x, y;
		Fold<Op> f;

		if (base == begin && lane == 0)
			a.head_run[chunk] = (int32_t) run;
#pragma unroll
		for (int j = 0; j < RUNS_ROWS_PER_LANE; j++)
			row[j] = g.order && (ok >> j & 1) ? g.order[r0 + j] : r0 + j;
		ok = rows_that_count(a, row, ok);
		if (Op::id != MONOID_COUNT && ok)
			load_eight(a.slot.x, row, ok, together, x);
		if (a.pairs && ok)
			load_eight(a.slot.y, row, ok, together, y);
		error |= fold_rows<Op>(a, x, y, ok, heads, run, f);
		error |= combine_lanes<Op>(a, chunk, run, f, open_run);
	}
	if (lane == 0)
	{
		int64_t word = (end - 1) / 32;

		((typename Op::State *) (open_run.headed ? a.tail : a.head))[chunk] = open_run.carry;
		a.tail_run[chunk] = open_run.headed ? g.before[word + 1] - 1 : -1;
	}
	if (error)
		atomicOr(a.errors, (uint32_t) error);
}

/*
 * Combines runs that cross chunks.  Each warp takes the last run that begins in one chunk, and
 * combines its rows in the chunks after that.  One more warp takes the run that is open before the
 * first chunk.
 */
template <class Op>
static __global__ void
__launch_bounds__(RUNS_THREADS_PER_BLOCK) combine_chunks_kernel(const __grid_constant__ RunsArgs a)
{
	typedef typename Op::State State;
	int lane = threadIdx.x % 32;
	int owner = (int) (blockIdx.x * RUNS_WARPS_PER_BLOCK + threadIdx.x / 32) - 1;
	State all = Op::identity();
	int32_t run;
	int error = 0;
	bool more = true;

	if (owner >= a.chunks)
		return;
	run = owner < 0 ? a.head_run[0] : a.tail_run[owner];
	if (run < 0)
		return;
	if (owner >= 0)
		all = ((const State *) a.tail)[owner];
	for (int c = owner + 1 + lane; more; c += 32)
	{
		bool mine = c < a.chunks && a.head_run[c] == run;
		uint32_t stops = __ballot_sync(~0u, !mine || a.tail_run[c] >= 0);
		int last = stops ? __ffs(stops) - 1 : 31;
		State part = mine && lane <= last ? ((const State *) a.head)[c] : Op::identity();

		for (int d = 1; d < 32; d *= 2)
		{
			State right =
				shuffle_words(part, [&](uint32_t w) { return __shfl_down_sync(~0u, w, d); });

			if (lane + d < 32)
				error |= combine_into<Op>(part, right);
		}
		error |= combine_into<Op>(all, from_lane(part, 0));
		more = stops == 0;
	}
	if (lane == 0)
		error |= add_to_state<Op>(a, run, all);
	if (error)
		atomicOr(a.errors, (uint32_t) error);
}

/* Queues the two kernels of an operator. */
template <class Op>
static GpuaggCudaStatus
launch_runs(const RunsArgs &a, cudaStream_t stream)
{
	runs_kernel<Op><<<(a.chunks + RUNS_WARPS_PER_BLOCK - 1) / RUNS_WARPS_PER_BLOCK,
					  RUNS_THREADS_PER_BLOCK, 0, stream>>>(a);
	CUDA_TRY_LAUNCH("runs_kernel");
	combine_chunks_kernel<Op><<<(a.chunks + RUNS_WARPS_PER_BLOCK) / RUNS_WARPS_PER_BLOCK,
								RUNS_THREADS_PER_BLOCK, 0, stream>>>(a);
	CUDA_TRY_LAUNCH("combine_chunks_kernel");
	return GPUAGG_CUDA_OK;
}

/*
 * Queues the kernels of an operator.  Returns UNSUPPORTED if they do not reduce it, for example
 * because it does not commute.
 */
template <class Op>
static GpuaggCudaStatus
launch_instance(const RunsArgs &a, cudaStream_t stream)
{
	if constexpr (Op::reduces_rows)
		return launch_runs<Op>(a, stream);
	else
		return GPUAGG_CUDA_UNSUPPORTED;
}

/* Returns whether an operator with this input reads columns of the type, as histograms do. */
template <class Input>
static bool
can_read_type(GpuaggValueType type)
{
	bool integer = type >= GPUAGG_VALUE_I8 && type <= GPUAGG_VALUE_I64;

	if (std::is_same<Input, float>::value)
		return type == GPUAGG_VALUE_F32;
	if (std::is_same<Input, double>::value || std::is_same<Input, gpuagg_f64x2>::value)
		return is_float(type);
	if (std::is_same<Input, gpuagg_kv>::value && is_float(type))
		return true;
	return integer || (std::is_same<Input, gpuagg_i128>::value && type == GPUAGG_VALUE_I128);
}

/* Returns whether the kernels support the slot's operator and can read its columns. */
static bool
can_read_slot(const GpuaggSlot &slot, bool pairs)
{
	switch (slot.op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	case MONOID_##NAME: \
		return Op_##name::reduces_rows && \
			(MONOID_##NAME == MONOID_COUNT || \
			 (slot.x.values && can_read_type<input_t>(slot.x.type) && \
			  (!pairs || (slot.y.values && can_read_type<input_t>(slot.y.type)))));
#include "operators/monoid_list.h"
#undef MONOID
		default:
			return false;
	}
}

GPUAGG_API GpuaggCudaStatus
gpuagg_runs_update(const GpuaggRuns *runs, const GpuaggSlot *slot, uint32_t *errors,
				   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	Workspace ws(workspace);
	RunsArgs a = {};
	size_t state_bytes;
	int64_t most;

	if ((unsigned) slot->op >= MONOID_COUNT_OF_IDS || runs->nrows < 0 || runs->nrows > INT32_MAX)
		return GPUAGG_CUDA_INVALID;
	a.pairs = slot->op == MONOID_REGR_F64 || slot->op == MONOID_ARGMAX || slot->op == MONOID_ARGMIN;
	if (!can_read_slot(*slot, a.pairs))
		return GPUAGG_CUDA_UNSUPPORTED;
	STATUS_TRY(gpuagg_device_facts(&facts));
	most = (int64_t) facts->sms * RUNS_BLOCKS_PER_SM * RUNS_WARPS_PER_BLOCK;
	a.runs = *runs;
	a.slot = *slot;
	a.errors = errors;
	a.chunk_rows = ((runs->nrows + most - 1) / most + RUNS_ROWS_PER_STEP - 1) / RUNS_ROWS_PER_STEP *
		RUNS_ROWS_PER_STEP;
	a.chunks = runs->nrows == 0 ? 0 : (int) ((runs->nrows + a.chunk_rows - 1) / a.chunk_rows);
	state_bytes = gpuagg_monoids[slot->op].state_size;
	a.head = ws.take<char>(a.chunks * state_bytes);
	a.tail = ws.take<char>(a.chunks * state_bytes);
	a.head_run = ws.take<int32_t>(a.chunks);
	a.tail_run = ws.take<int32_t>(a.chunks);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (a.chunks == 0)
		return GPUAGG_CUDA_OK;
	switch (slot->op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	case MONOID_##NAME: \
		return launch_instance<Op_##name>(a, stream);
#include "operators/monoid_list.h"
#undef MONOID
		default:
			return GPUAGG_CUDA_INVALID;
	}
}
