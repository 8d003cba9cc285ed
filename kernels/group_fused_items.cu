/*
 * group_fused_items.cu
 *	  Partitions of rows into the table of groups and their states.
 *
 * A block takes one partition, aggregates it in shared memory, looks its
 * keys up or inserts them, and changes states, which it alone does for
 * these keys.  A block that is not sure to find room for all its keys leaves the
 * partition for a second launch, the careful one: there all bins come before the
 * first change of a state.  If some key finds no room, nothing is changed and the
 * partition is left for a retry.  A partition with more keys than fit
 * shared memory is taken again in two parts by one more bit of their hashes, each of
 * which may be halved again.
 */
#include "group_fused_table.cuh"

#define ITEMS FUSED_ITEMS
#define THREADS FUSED_THREADS

/* The part of a partition that a block is at. */
struct ItemPart
{
	u32			value;
	u32			mask;

	__device__ __forceinline__ bool
	has(u64 hash) const
	{
		return ((u32) (hash >> FUSED_LOG2_ENTRIES) & mask) == value;
	}
};

/*
 * The rows of an item's part into the table.  Stops soon after *over is set, by
 * whichever thread found no entry.
 */
template <int KIND> static __device__ __forceinline__ u32
add_item(const FusedArgs &f, const FusedTable &t, const FusedWindow<KIND> &window, const FusedItem &item,
		 const ItemPart &part, volatile u32 *over)
{
	constexpr bool VALUES = KIND != FUSED_COUNT;
	const int	from = f.part.fine > 1;
	u64			hash[ITEMS],
				v[ITEMS];
	u32			out_of_window = 0,
				ok;

	ok = rows_of<ITEMS, THREADS>(nullptr, item.row0 + threadIdx.x, item.row1);
	load_column<ITEMS, THREADS>(false, f.part.hash[from], item.row0 + threadIdx.x, ok, hash);
	if (VALUES)
		load_column<ITEMS, THREADS>(false, f.part.value[from], item.row0 + threadIdx.x, ok, v);
	for (u64 base = item.row0; base < item.row1 && !__any_sync(~0u, *over); base += THREADS * ITEMS)
	{
		u64			h[ITEMS],
					x[ITEMS];
		u32			at[ITEMS];
		u32			in = 0;
		u64			row = base + THREADS * ITEMS + threadIdx.x;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			h[j] = hash[j];
			if (VALUES)
				x[j] = v[j];
			if ((ok >> j & 1) && part.has(h[j]))
				in |= 1u << j;
		}
		ok = rows_of<ITEMS, THREADS>(nullptr, row, item.row1);
		load_column<ITEMS, THREADS>(false, f.part.hash[from], row, ok, hash);
		if (VALUES)
			load_column<ITEMS, THREADS>(false, f.part.value[from], row, ok, v);
		if (find_entries(t, h, in, at))
			*over = 1;
		__syncwarp();
		add_items<KIND>(t, window, at, x, in, out_of_window);
	}
	return out_of_window;
}

/* Entries from `from` on: their keys; returns those that are taken. */
static __device__ __forceinline__ u32
keys_of(const FusedArgs &f, const FusedTable &t, u32 from, u64 (&hash)[ITEMS], Key<1> (&key)[ITEMS])
{
	u32			open = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		u32			entry = from + j * THREADS + threadIdx.x;

		hash[j] = entry < t.entries() ? t.hashes()[entry] : 0;
		key[j] = key_of_hash(f, hash[j]);
		if (hash[j] != 0 || (entry == t.entries() && t.counts()[entry] != 0))
			open |= 1u << j;
	}
	return open;
}

/*
 * A slot for each entry's key in an empty table: the first free one from its own on, by
 * bits for the partition's slots.  Neighbors may have gone beyond theirs, and beyond
 * the bits nothing is known, so a thread that takes the slot has to probe it.
 */
static __device__ __forceinline__ u32
free_slot(const FusedArgs &f, const FusedTable &t, u32 first_slot, u64 hash)
{
	u32		   *bits = (u32 *) t.scratch();
	u32			at = slot_of(hash, f.table.nslots) - first_slot;

	while (at < 8 * SCRATCH_BYTES)
	{
		u32			bit = 1u << at % 32;

		if (!(atomicOr(&bits[at / 32], bit) & bit))
			break;
		at++;
	}
	at += first_slot;
	return at < f.table.nslots ? at : at - f.table.nslots;
}

/*
 * All entries of the table to an empty table of groups, where there surely is
 * room: all keys are new, so bins follow each other, and no state need be read.
 */
template <int KIND> static __device__ __forceinline__ void
store_new_entries(const HistArgs &hist, const FusedArgs &f, const FusedTable &t, u32 first, u32 keys)
{
	__shared__ u32 bin0,
				next;
	Slot<1>    *slots = (Slot<1> *) f.table.slots;
	u32			first_slot = __umulhi(first, f.table.nslots);

	for (u32 i = threadIdx.x; i < SCRATCH_BYTES / 4; i += THREADS)
		((u32 *) t.scratch())[i] = 0;
	if (threadIdx.x == 0)
	{
		bin0 = (u32) atomicAdd(&f.table.counters->groups, (u64) keys);
		next = 0;
	}
	__syncthreads();
	for (u32 from = 0; from <= t.entries(); from += THREADS * ITEMS)
	{
		u64			hash[ITEMS];
		Key<1>		key[ITEMS];
		u32			slot[ITEMS],
					seen[ITEMS],
					taken[ITEMS],
					open = keys_of(f, t, from, hash, key),
					bin = 0,
					n = 0;

		if (!__any_sync(~0u, open))
			continue;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			taken[j] = __ballot_sync(~0u, open >> j & 1);
			n += __popc(taken[j]);
			if (open >> j & 1)
			{
				slot[j] = free_slot(f, t, first_slot, hash[j]);
				seen[j] = atomicCAS(&slots[slot[j]].state, SLOT_EMPTY, SLOT_CLAIMED);
			}
		}
		if (threadIdx.x % 32 == 0)
			bin = bin0 + atomicAdd(&next, n);
		bin = __shfl_sync(~0u, bin, 0);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			mine = bin + __popc(taken[j] & ((1u << threadIdx.x % 32) - 1));
			FusedSums<KIND> sums;

			bin += __popc(taken[j]);
			if (!(open >> j & 1))
				continue;
			while (seen[j] != SLOT_EMPTY)
			{
				slot[j] = next_slot(slot[j], f.table.nslots);
				seen[j] = atomicCAS(&slots[slot[j]].state, SLOT_EMPTY, SLOT_CLAIMED);
			}
			publish_key(f.table, f.key_bytes, slot[j], key[j], mine);
			sums.read(t, from + j * THREADS + threadIdx.x);
			sums.store(hist, f, mine);
		}
		__syncwarp();
	}
}

/* Whether the table surely has room for all keys of the block, even if they are new. */
static __device__ __forceinline__ bool
promise_room(const FusedArgs &f, const FusedTable &t, u32 *keys)
{
	u32			n = threadIdx.x == 0 && t.counts()[t.entries()] != 0;

	for (u32 entry = threadIdx.x; entry < t.entries(); entry += THREADS)
		n += t.hashes()[entry] != 0;
	n = __reduce_add_sync(~0u, n);
	if (threadIdx.x % 32 == 0)
		atomicAdd(keys, n);
	__syncthreads();

	bool		room = true;

	if (threadIdx.x == 0)
	{
		room = atomicAdd(&f.head->promised, (u64) *keys) + *keys <= f.table.capacity;
		/* an item with fewer may find room */
		if (!room)
		{
			atomicAdd(&f.head->promised, -(u64) *keys);
			f.head->careful = 1;
		}
	}
	return __syncthreads_and(room);
}

/* All entries of the table to the states, where there surely is room. */
template <int KIND> static __device__ __forceinline__ void
store_entries(const HistArgs &hist, const FusedArgs &f, const FusedTable &t)
{
	for (u32 from = 0; from <= t.entries(); from += THREADS * ITEMS)
	{
		u64			hash[ITEMS];
		Key<1>		key[ITEMS];
		int32_t		bin[ITEMS];
		u32			open = keys_of(f, t, from, hash, key),
					fresh;

		if (!__any_sync(~0u, open))
			continue;
		fresh = find_bins_of(f.table, f.key_bytes, hash, key, open, bin);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			/* without a bin: lost, which makes the call fail */
			if ((open >> j & 1) && bin[j] >= 0)
			{
				FusedSums<KIND> sums;

				sums.read(t, from + j * THREADS + threadIdx.x);
				if (fresh >> j & 1)
					sums.store(hist, f, (u32) bin[j]);
				else
					sums.fold(hist, f, (u32) bin[j]);
			}
		__syncwarp();
	}
}

/* Bins for all entries, instead of their hashes, plus one; false: no room. */
static __device__ __forceinline__ bool
look_up_entries(const FusedArgs &f, const FusedTable &t, u32 *bin_of_zero)
{
	bool		failed = false;

	for (u32 from = 0; from <= t.entries(); from += THREADS * ITEMS)
	{
		u64			hash[ITEMS];
		Key<1>		key[ITEMS];
		int32_t		bin[ITEMS];
		u32			open = keys_of(f, t, from, hash, key);

		if (!__any_sync(~0u, open))
			continue;
		find_bins_of(f.table, f.key_bytes, hash, key, open, bin);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32			entry = from + j * THREADS + threadIdx.x;

			if (!(open >> j & 1))
				continue;
			failed = failed || bin[j] < 0;
			if (entry < t.entries())
				t.hashes()[entry] = (u64) bin[j] + 1;
			else
				*bin_of_zero = (u32) bin[j] + 1;
		}
	}
	return !failed;
}

/* The states of all entries whose bins were looked up. */
template <int KIND> static __device__ __forceinline__ void
fold_entries(const HistArgs &hist, const FusedArgs &f, const FusedTable &t, u32 bin_of_zero)
{
	for (u32 entry = threadIdx.x; entry <= t.entries(); entry += THREADS)
	{
		u32			bin = entry < t.entries() ? (u32) t.hashes()[entry] : bin_of_zero;
		FusedSums<KIND> sums;

		if (bin == 0)
			continue;
		sums.read(t, entry);
		sums.fold(hist, f, bin - 1);
	}
}

/* Values outside the window, straight to the states of their keys, which exist. */
template <int KIND> static __device__ __noinline__ void
add_late(const HistArgs &hist, const FusedArgs &f, const FusedItem &item, const ItemPart &part)
{
	if constexpr (fused_digits(KIND) > 0)
	{
		FusedWindow<KIND> window(hist, f.slot);
		const int	from = f.part.fine > 1;

		for (u64 row = item.row0 + threadIdx.x; row < item.row1; row += THREADS)
		{
			u64			hash = f.part.hash[from][row],
						v = f.part.value[from][row];
			u32			d[fused_digits(KIND) + 1];

			if (part.has(hash) && v != NEGATIVE_ZERO && !window.cut(__longlong_as_double(v), d))
				change_late(hist, f, hash, v);
		}
	}
}

/* The next part of an item: a tree of halves, walked in order. */
static __device__ __forceinline__ void
next_part(u32 &value, u32 &depth)
{
	while (depth > 0 && value >> (depth - 1) & 1)
		value &= ~(1u << --depth);
	if (depth > 0)
		value |= 1u << (depth - 1);
	else
		depth = FUSED_DONE;
}

/* The slots of a partition in an empty table, on their way to the L2 cache while rows are added. */
static __device__ __forceinline__ void
fetch_slots(const FusedArgs &f, u32 first)
{
	u32			slot = __umulhi(first, f.table.nslots),
				n = min(f.table.nslots / (f.part.parts * f.part.fine) + 1, 8 * SCRATCH_BYTES);

	for (u32 i = 8 * threadIdx.x; i < n; i += 8 * THREADS)
		if (slot + i < f.table.nslots)
			asm volatile("prefetch.global.L2 [%0];" : : "l"((const Slot<1> *) f.table.slots + slot + i));
}

/* One partition; false: some of it is left. */
template <int KIND> static __device__ __forceinline__ bool
take_item(const HistArgs &hist, const FusedArgs &f, const FusedTable &t, const FusedWindow<KIND> &window,
		  FusedItem &item)
{
	__shared__ u32 over,
				bin_of_zero,
				keys;

	while (item.depth != FUSED_DONE)
	{
		ItemPart	part = {item.part, (1u << item.depth) - 1};
		u32			out_of_window;

		clear_table<KIND>(t);
		if (threadIdx.x == 0)
			over = bin_of_zero = keys = 0;
		__syncthreads();
		if (f.head->fresh && !f.careful)
			fetch_slots(f, item.first);
		out_of_window = add_item<KIND>(f, t, window, item, part, &over);
		out_of_window = __syncthreads_or(out_of_window);
		if (over)
		{
			if (item.depth >= FUSED_MOST_DEPTH)
			{
				/* nothing of the part was changed, but it never will fit */
				if (threadIdx.x == 0)
					lose_rows(f.table.counters, 1);
				return false;
			}
			item.depth++;
			__syncthreads();
			continue;
		}
		if (f.careful)
		{
			if (__syncthreads_or(!look_up_entries(f, t, &bin_of_zero)))
				return false;
			fold_entries<KIND>(hist, f, t, bin_of_zero);
		}
		else if (!promise_room(f, t, &keys))
			return false;
		else if (f.head->fresh)
			store_new_entries<KIND>(hist, f, t, item.first, keys);
		else
			store_entries<KIND>(hist, f, t);
		__syncthreads();
		if (out_of_window)
			add_late<KIND>(hist, f, item, part);
		next_part(item.part, item.depth);
	}
	return true;
}

template <int KIND> static __global__ void __launch_bounds__(THREADS, 1)
items_kernel(const __grid_constant__ HistArgs hist, const __grid_constant__ FusedArgs f)
{
	__shared__ u32 next;
	FusedTable	t = fused_table(f);

	wait_for_predecessor();
	if (((f.part.spare || f.whole) && !f.head->over) || (f.careful && !f.whole && !f.head->careful))
		return;
	if (f.head->misfit)
	{
		if (blockIdx.x == 0 && threadIdx.x == 0 && !f.careful)
			atomicAdd(&f.table.counters->pending, (u64) f.nrows);
		return;
	}

	FusedWindow<KIND> window(hist, f.slot);
	FusedItem  *items = f.whole ? f.part.split : f.part.item;
	u32			n = f.whole ? f.head->splits : f.head->items;

	for (;;)
	{
		__syncthreads();
		if (threadIdx.x == 0)
			next = atomicAdd(f.whole ? &f.head->next_split : f.careful ? &f.head->next_careful : &f.head->next, 1);
		__syncthreads();
		if (next >= n)
			return;

		FusedItem	item = items[next];

		if (item.depth == FUSED_DONE)
			continue;

		bool		done = take_item<KIND>(hist, f, t, window, item);

		if (threadIdx.x == 0)
		{
			items[next] = item;
			if (!done && f.careful)
				atomicAdd(&f.table.counters->pending, (u64) (item.row1 - item.row0));
		}
	}
}

template <int KIND> static GpuaggCudaStatus
launch_items(const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(allow_shared(items_kernel<KIND>, facts));
	CUDA_TRY(launch_early(items_kernel<KIND>, facts.sms, THREADS, fused_table_bytes(KIND, f.log2_entries, f.log2_copies),
						  facts, stream, hist, f));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
fused_launch_items(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	switch (kind)
	{
		case FUSED_COUNT:
			return launch_items<FUSED_COUNT>(hist, f, facts, stream);
		case FUSED_INT:
			return launch_items<FUSED_INT>(hist, f, facts, stream);
		case FUSED_FIX4:
			return launch_items<FUSED_FIX4>(hist, f, facts, stream);
		default:
			return launch_items<FUSED_FIX3>(hist, f, facts, stream);
	}
}
