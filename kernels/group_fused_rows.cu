/*
 * group_fused_rows.cu
 *	  Rows of keys that several blocks have: block-local aggregation, and the
 *	  table of the call in which blocks' parts meet.
 *
 * A block aggregates its rows in shared memory and adds what came out to limbs
 * of the call's own table, by native atomics, exactly; rows that found no entry are spilled
 * and added one by one.  A last kernel moves each group from there to the table
 * and the states, so that sums are rounded once.  If the call's table or the memory of
 * spilled rows is full, nothing of it counts (FusedHead.over), and all these rows
 * take another way.
 */
#include "group_fused_table.cuh"

#define ITEMS FUSED_ITEMS
#define THREADS FUSED_THREADS

/* Blocks for the spilled rows of one. */
#define SPILL_BLOCKS 2

/* ---- to the call's table ----------------------------------------------------------- */

template <int KIND> static __device__ __forceinline__ void
add_limbs(const FusedArgs &f, u32 id, const FusedSums<KIND> &sums)
{
	u64		   *p = f.local.limb + id;

	atomicAdd(p, sums.count);
	if (sums.wrapped)
		atomicOr(p, LIMB_WRAPPED);
#pragma unroll
	for (int w = 0; w < fused_words(KIND); w++)
		if (sums.limb[w])
			atomicAdd(p + (1 + w) * f.local.table.capacity, sums.limb[w]);
}

/* The groups of the call's table that have these hashes; -1: no room. */
static __device__ __forceinline__ void
find_ids(const FusedArgs &f, const u64 (&hash)[ITEMS], u32 open, int32_t (&id)[ITEMS])
{
	u64			search[ITEMS];
	Key<1>		key[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		search[j] = local_hash(hash[j]);
		key[j] = {{hash[j]}};
	}
	find_bins_of(f.local.table, 8, search, key, open, id);
}

/* All entries of the block's table; false: no room. */
template <int KIND> static __device__ __forceinline__ bool
flush_entries(const FusedArgs &f, const FusedTable &t)
{
	bool		failed = false;

	for (u32 from = 0; from <= t.entries(); from += THREADS * ITEMS)
	{
		FusedSums<KIND> sums;
		u64			hash[ITEMS];
		int32_t		id[ITEMS];
		u32			open = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			entry = from + j * THREADS + threadIdx.x;

			hash[j] = entry < t.entries() ? t.hashes()[entry] : 0;
			if (entry == t.entries())
				sums.read(t, entry);
			if (hash[j] != 0 || (entry == t.entries() && sums.count != 0))
				open |= 1u << j;
		}
		if (!__any_sync(~0u, open))
			continue;
		find_ids(f, hash, open, id);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (open >> j & 1)
			{
				failed = failed || id[j] < 0;
				sums.read(t, from + j * THREADS + threadIdx.x);
				if (id[j] >= 0)
					add_limbs<KIND>(f, (u32) id[j], sums);
			}
		__syncwarp();
	}
	return !failed;
}

/* One row as sums; false: it is outside the window. */
template <int KIND> static __device__ __forceinline__ bool
sums_of_row(const FusedWindow<KIND> &window, u64 v, FusedSums<KIND> &sums)
{
	sums.count = 1;
	sums.wrapped = false;
	if constexpr (KIND == FUSED_INT)
	{
		sums.limb[0] = (u32) v;
		sums.limb[1] = v >> 32;
	}
	else if constexpr (fused_digits(KIND) > 0)
	{
		u32			d[fused_digits(KIND) + 1];
		bool		fits = window.cut(__longlong_as_double(v), d);

#pragma unroll
		for (int w = 0; w < fused_words(KIND); w++)
			sums.limb[w] = 0;
		if (v == NEGATIVE_ZERO)
			return true;
		if (!fits)
			return false;
		sums.limb[0] = d[0];
#pragma unroll
		for (int w = 1; w < fused_digits(KIND); w++)
			sums.limb[w] = (u64) (int64_t) (int32_t) d[w];
	}
	return true;
}

/* ---- the rows of a block --------------------------------------------------------------- */

/* Where a block leaves rows that found no entry. */
struct FusedSpill
{
	u64			first;
	u32			room;
	u32		   *rows;			/* in shared memory; may end above room */
};

static __device__ __forceinline__ void
spill_rows(const FusedArgs &f, const FusedSpill &spill, const u64 (&hash)[ITEMS], const u64 (&v)[ITEMS], u32 open)
{
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (open >> j & 1)
		{
			u32			at = atomicAdd(spill.rows, 1u);

			if (at < spill.room)
			{
				f.part.hash[0][spill.first + at] = hash[j];
				if (f.values)
					f.part.value[0][spill.first + at] = v[j];
			}
		}
	__syncwarp();
}

/* Keys and values as they come, or hashes and values that were moved. */
template <int KIND, bool RAW> static __device__ __forceinline__ u32
load_tile(const FusedArgs &f, u64 row, u64 end, u64 (&key)[ITEMS], u64 (&v)[ITEMS])
{
	const int	from = f.part.fine > 1;
	u32			ok = rows_of<ITEMS, THREADS>(RAW ? f.filter : nullptr, row, end);

	load_column<ITEMS, THREADS>(RAW && f.key_bytes == 4, RAW ? f.keys : f.part.hash[from], row, ok, key);
	if (KIND != FUSED_COUNT)
		load_column<ITEMS, THREADS>(RAW && narrow_type(f.type), RAW ? f.values : f.part.value[from], row, ok, v);
	return ok;
}

/*
 * The hot key of a piece: its rows are summed up in registers, where they do
 * not queue for the same words.
 */
template <int KIND> struct FusedHot
{
	u64			hash;
	u64			count;
	u64			limb[fused_words(KIND) + 1];

	/* That of two of three rows; false: there is none. */
	__device__ __forceinline__ bool
	find(const u64 *hashes, const FusedItem &item)
	{
		u32			third = (item.row1 - item.row0) / 3;
		u64			a = hashes[item.row0],
					b = hashes[item.row0 + third],
					c = hashes[item.row0 + 2 * third];

		count = 0;
#pragma unroll
		for (int w = 0; w < fused_words(KIND); w++)
			limb[w] = 0;
		hash = a == b || a == c ? a : b;
		return hash == a || b == c;
	}
	__device__ __forceinline__ void
	add(const FusedWindow<KIND> &window, u64 v, u32 &out_of_window)
	{
		FusedSums<KIND> sums;

		if (!sums_of_row<KIND>(window, v, sums))
			out_of_window = 1;
		count++;
#pragma unroll
		for (int w = 0; w < fused_words(KIND); w++)
			limb[w] += sums.limb[w];
	}
	/* What a warp has, to the call's table. */
	__device__ __forceinline__ bool
	flush(const FusedArgs &f)
	{
		FusedSums<KIND> sums;
		u64			all[ITEMS];
		int32_t		id[ITEMS];

		for (int j = 0; j < ITEMS; j++)
			all[j] = hash;

		for (int d = 16; d > 0; d /= 2)
		{
			count += __shfl_xor_sync(~0u, count, d);
#pragma unroll
			for (int w = 0; w < fused_words(KIND); w++)
				limb[w] += __shfl_xor_sync(~0u, limb[w], d);
		}
		find_ids(f, all, threadIdx.x % 32 == 0 && count ? 1 : 0, id);
		if (threadIdx.x % 32 != 0 || count == 0)
			return true;
		sums.count = count;
		sums.wrapped = false;
#pragma unroll
		for (int w = 0; w < fused_words(KIND); w++)
			sums.limb[w] = limb[w];
		if (id[0] >= 0)
			add_limbs<KIND>(f, (u32) id[0], sums);
		return id[0] >= 0;
	}
};

/* Rows [begin, end) into the table, but for a hot key's.  Returns whether a value is outside the window. */
template <int KIND, bool RAW> static __device__ __forceinline__ u32
add_range(const FusedArgs &f, const FusedTable &t, const FusedWindow<KIND> &window, u64 begin, u64 end,
		  const FusedSpill &spill, FusedHot<KIND> *hot)
{
	u64			next[ITEMS],
				next_v[ITEMS];
	u32			out_of_window = 0,
				ok = load_tile<KIND, RAW>(f, begin + threadIdx.x, end, next, next_v),
				copy = threadIdx.x & ((1u << t.log2_copies) - 1);

	for (u64 base = begin; base < end; base += THREADS * ITEMS)
	{
		u64			hash[ITEMS],
					v[ITEMS];
		u32			at[ITEMS];
		u32			in = ok,
					none;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			hash[j] = next[j];
			if (KIND != FUSED_COUNT)
				v[j] = next_v[j];
		}
		ok = load_tile<KIND, RAW>(f, base + THREADS * ITEMS + threadIdx.x, end, next, next_v);
		if (RAW)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
			{
				hash[j] = gpuagg_hash64(&f.table.hash, hash[j]);
				if (KIND != FUSED_COUNT)
					v[j] = widen(f.type, v[j]);
			}
		}
		else if (hot)
		{
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if ((in >> j & 1) && hash[j] == hot->hash)
				{
					hot->add(window, v[j], out_of_window);
					in &= ~(1u << j);
				}
			__syncwarp();
		}
		none = find_entries(t, hash, in, at);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			at[j] = (at[j] << t.log2_copies) | copy;
		if (__any_sync(~0u, none))
			spill_rows(f, spill, hash, v, none);
		add_items<KIND>(t, window, at, v, in & ~none, out_of_window);
	}
	return out_of_window;
}

/* What the block has, to the call's table; sets what all have to know. */
template <int KIND> static __device__ __forceinline__ void
finish_block(const FusedArgs &f, const FusedTable &t, const FusedSpill &spill, u32 out_of_window)
{
	bool		good;

	__syncthreads();
	good = flush_entries<KIND>(f, t) && *spill.rows <= spill.room;
	if (!good)
		f.head->over = 1;
	if (out_of_window)
		f.head->out_of_window = 1;
}

/* Equal shares of all rows. */
template <int KIND> static __global__ void __launch_bounds__(THREADS, 1)
rows_kernel(const __grid_constant__ HistArgs hist, const __grid_constant__ FusedArgs f)
{
	__shared__ u32 spilled;
	FusedTable	t = fused_table(f);
	u64			lines = ((u64) f.nrows + 31) / 32,
				begin = lines * blockIdx.x / gridDim.x * 32,
				end = min(lines * (blockIdx.x + 1) / gridDim.x * 32, (u64) f.nrows);
	FusedSpill	spill = {(u64) blockIdx.x * f.local.spill_rows, f.local.spill_rows, &spilled};
	u32			out_of_window;

	clear_table<KIND>(t);
	if (threadIdx.x == 0)
		spilled = 0;
	wait_for_predecessor();

	FusedWindow<KIND> window(hist, f.slot);

	__syncthreads();
	out_of_window = add_range<KIND, true>(f, t, window, begin, end, spill, nullptr);
	finish_block<KIND>(f, t, spill, out_of_window);
	if (threadIdx.x == 0)
		f.local.spilled[blockIdx.x] = spilled;
}

/* Rows that were spilled, each to the limbs of its group. */
template <int KIND> static __global__ void __launch_bounds__(THREADS)
spill_kernel(const __grid_constant__ HistArgs hist, const __grid_constant__ FusedArgs f)
{
	wait_for_predecessor();
	if (f.head->over)
		return;

	FusedWindow<KIND> window(hist, f.slot);

	/* a few blocks for each that spilled */
	u32			b = blockIdx.x % f.local.spills,
				rows = f.local.spilled[b];

	for (u32 base = blockIdx.x / f.local.spills * THREADS * ITEMS; base < rows; base += SPILL_BLOCKS * THREADS * ITEMS)
	{
		u64			first = (u64) b * f.local.spill_rows + base + threadIdx.x,
					end = (u64) b * f.local.spill_rows + rows;
		u64			hash[ITEMS],
					v[ITEMS];
		int32_t		id[ITEMS];
		u32			ok = rows_of<ITEMS, THREADS>(nullptr, first, end);

		load_column<ITEMS, THREADS>(false, f.part.hash[0], first, ok, hash);
		if (KIND != FUSED_COUNT)
			load_column<ITEMS, THREADS>(false, f.part.value[0], first, ok, v);
		find_ids(f, hash, ok, id);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			FusedSums<KIND> sums;

			if (!(ok >> j & 1))
				continue;
			if (!sums_of_row<KIND>(window, v[j], sums))
				f.head->out_of_window = 1;
			if (id[j] >= 0)
				add_limbs<KIND>(f, (u32) id[j], sums);
			else
				f.head->over = 1;
		}
		__syncwarp();
	}
}

/* Pieces of partitions that have too many rows for one block. */
template <int KIND> static __global__ void __launch_bounds__(THREADS, 1)
pieces_kernel(const __grid_constant__ HistArgs hist, const __grid_constant__ FusedArgs f)
{
	__shared__ u32 next,
				spilled;
	FusedTable	t = fused_table(f);
	FusedSpill	spill = {0, 0, &spilled};

	wait_for_predecessor();
	/* a retry finds none left, unless the call before it could not plan any */
	if (f.head->misfit)
		return;

	FusedWindow<KIND> window(hist, f.slot);

	for (;;)
	{
		FusedHot<KIND> hot;
		FusedItem	item;
		u32			out_of_window;

		__syncthreads();
		if (threadIdx.x == 0)
		{
			next = atomicAdd(&f.head->next_piece, 1);
			spilled = 0;
		}
		clear_table<KIND>(t);
		__syncthreads();
		if (next >= f.head->pieces)
			return;
		item = f.part.piece[next];
		if (hot.find(f.part.hash[f.part.fine > 1], item))
		{
			out_of_window = add_range<KIND, false>(f, t, window, item.row0, item.row1, spill, &hot);
			if (!hot.flush(f))
				f.head->over = 1;
		}
		else
			out_of_window = add_range<KIND, false>(f, t, window, item.row0, item.row1, spill, nullptr);
		finish_block<KIND>(f, t, spill, out_of_window);
	}
}

/* ---- from the call's table to the states ------------------------------------------------ */

/* Groups whose count is zero were moved before. */
template <int KIND> static __global__ void __launch_bounds__(THREADS)
finish_kernel(const __grid_constant__ HistArgs hist, const __grid_constant__ FusedArgs f)
{
	u64			groups;
	u64			pending = 0;

	wait_for_predecessor();
	if (f.head->over || f.head->misfit)
		return;
	groups = min(f.local.table.counters->groups, f.local.table.capacity);
	for (u64 from = (u64) blockIdx.x * THREADS * ITEMS; from < groups; from += (u64) gridDim.x * THREADS * ITEMS)
	{
		u64			hash[ITEMS],
					count[ITEMS];
		Key<1>		key[ITEMS];
		int32_t		bin[ITEMS];
		u32			open = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			id = from + j * THREADS + threadIdx.x;

			count[j] = hash[j] = 0;
			if (id < groups)
			{
				count[j] = f.local.limb[id];
				hash[j] = ((const u64 *) f.local.table.keys)[id];
			}
			key[j] = key_of_hash(f, hash[j]);
			if (count[j])
				open |= 1u << j;
		}
		if (!__any_sync(~0u, open))
			continue;
		find_bins_of(f.table, f.key_bytes, hash, key, open, bin);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			id = from + j * THREADS + threadIdx.x;
			FusedSums<KIND> sums;

			if (!(open >> j & 1))
				continue;
			if (bin[j] < 0)
			{
				pending += count[j] & ~LIMB_WRAPPED;
				continue;
			}
			sums.count = count[j] & ~LIMB_WRAPPED;
			sums.wrapped = (count[j] & LIMB_WRAPPED) != 0;
#pragma unroll
			for (int w = 0; w < fused_words(KIND); w++)
				sums.limb[w] = f.local.limb[(1 + w) * f.local.table.capacity + id];
			sums.fold(hist, f, (u32) bin[j]);
			f.local.limb[id] = 0;
		}
		__syncwarp();
	}
	if (pending)
	{
		atomicAdd(&f.table.counters->pending, pending);
		f.head->unfolded = 1;
	}
}

/* Values outside the window, straight to the states of their keys, which exist by now. */
template <int KIND, bool RAW> static __global__ void __launch_bounds__(THREADS)
out_of_window_kernel(const __grid_constant__ HistArgs hist, const __grid_constant__ FusedArgs f)
{
	wait_for_predecessor();
	if (f.head->out_of_window != 1 || f.head->over || f.head->unfolded || f.head->misfit)
		return;
	if constexpr (fused_digits(KIND) > 0)
	{
		FusedWindow<KIND> window(hist, f.slot);
		u32			pieces = RAW ? 1 : f.head->pieces;
		const int	from = f.part.fine > 1;

		for (u32 p = 0; p < pieces; p++)
		{
			u64			begin = RAW ? 0 : f.part.piece[p].row0,
						end = RAW ? f.nrows : f.part.piece[p].row1;

			for (u64 r = begin + blockIdx.x * THREADS + threadIdx.x; r < end; r += gridDim.x * THREADS)
			{
				u32			d[fused_digits(KIND) + 1];
				u64			v,
							hash;

				if (RAW && f.filter && !f.filter[r])
					continue;
				v = !RAW ? f.part.value[from][r]
					: widen(f.type, narrow_type(f.type) ? ((const u32 *) f.values)[r] : ((const u64 *) f.values)[r]);
				if (v == NEGATIVE_ZERO || window.cut(__longlong_as_double(v), d))
					continue;
				hash = RAW ? hash_of_row(f, r) : f.part.hash[from][r];
				change_late(hist, f, hash, v);
			}
		}
	}
}

/* ---- launches ------------------------------------------------------------------------------ */

template <int KIND> static GpuaggCudaStatus
launch_rows(const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = fused_table_bytes(KIND, f.log2_entries, f.log2_copies);

	if (!f.retry)
	{
		CUDA_TRY(allow_shared(rows_kernel<KIND>, facts));
		CUDA_TRY(launch_early(rows_kernel<KIND>, f.local.spills, THREADS, bytes, facts, stream, hist, f));
		CUDA_TRY(launch_early(spill_kernel<KIND>, SPILL_BLOCKS * f.local.spills, THREADS, 0, facts, stream, hist, f));
	}
	CUDA_TRY(launch_early(finish_kernel<KIND>, facts.sms, THREADS, 0, facts, stream, hist, f));
	if (fused_digits(KIND) > 0)
		CUDA_TRY(launch_early(out_of_window_kernel<KIND, true>, 2 * facts.sms, THREADS, 0, facts, stream, hist, f));
	return GPUAGG_CUDA_OK;
}

template <int KIND> static GpuaggCudaStatus
launch_pieces(const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = fused_table_bytes(KIND, f.log2_entries, f.log2_copies);

	CUDA_TRY(allow_shared(pieces_kernel<KIND>, facts));
	CUDA_TRY(launch_early(pieces_kernel<KIND>, facts.sms, THREADS, bytes, facts, stream, hist, f));
	CUDA_TRY(launch_early(finish_kernel<KIND>, facts.sms, THREADS, 0, facts, stream, hist, f));
	if (fused_digits(KIND) > 0)
		CUDA_TRY(launch_early(out_of_window_kernel<KIND, false>, 2 * facts.sms, THREADS, 0, facts, stream, hist, f));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
fused_launch_rows(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	switch (kind)
	{
		case FUSED_COUNT:
			return launch_rows<FUSED_COUNT>(hist, f, facts, stream);
		case FUSED_INT:
			return launch_rows<FUSED_INT>(hist, f, facts, stream);
		case FUSED_FIX4:
			return launch_rows<FUSED_FIX4>(hist, f, facts, stream);
		default:
			return launch_rows<FUSED_FIX3>(hist, f, facts, stream);
	}
}

GpuaggCudaStatus
fused_launch_pieces(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	switch (kind)
	{
		case FUSED_COUNT:
			return launch_pieces<FUSED_COUNT>(hist, f, facts, stream);
		case FUSED_INT:
			return launch_pieces<FUSED_INT>(hist, f, facts, stream);
		default:
			return launch_pieces<FUSED_FIX3>(hist, f, facts, stream);
	}
}
