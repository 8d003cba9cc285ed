/*
 * hist_tiles.cuh
 *	  The kernels of tiled histograms (GPUAGG_HIST_TILES): a vector program and all operators of a
 *	  call in one pass over the rows.
 *
 * For each tile of rows, a block runs the program (vector_program.h), finds the bins of the rows
 * that pass its conditions, and adds the rows to the words of all slots in shared memory.  Results
 * of the program never go through device memory.  Words, limbs and states are those of the other
 * kernels in shared memory (hist.cuh): the kernel flushes words to limbs at its end, and a fold
 * kernel combines limbs with states.
 *
 * A thread handles TILES_ROWS_PER_THREAD consecutive rows, its items; a warp handles LINE_ROWS
 * consecutive rows, a line; the lines of a block's warps are a tile.  Warps need no barriers
 * between tiles, because a warp reads only what it copied to shared memory itself.  Each step of
 * the program, and each operator, is chosen once for all items of a thread.
 *
 * A result that only the next step reads stays in registers.  Other results are temporaries in
 * shared memory.  As far as a stage has room, columns of the next tile are copied to shared memory
 * (cp.async) while the current tile is computed.  See hist_tiles_table.cuh for the layout, and
 * hist_tiles_program.cuh for the program.
 *
 * Arguments: HistArgs with bins of kind RANGE, all of which fit shared memory, and slots whose
 * `tile` is not TILE_NONE.  The launch must follow hist_launch_prepare() on the stream, which
 * clears the limbs and places the windows of float sums.  Only hist_tiles_part.cu includes this
 * file.
 */
#ifndef GPUAGG_HIST_TILES_CUH
#define GPUAGG_HIST_TILES_CUH

/* first, since it defines how vector_run.h is compiled */
#include "hist_tiles_program.cuh"

#include "hist_add.cuh"

/* ---- bins and inputs ---------------------------------------------------------------- */

/*
 * Finds the bins of the items `ok` from keys with ranges, as find_bins() of hist.cuh does.  Returns
 * the items that have a bin.  Adds to `outside` the number of items with a key out of its range.
 */
template <int THREADS>
static __device__ __forceinline__ u32
find_tile_bins(const Tile<THREADS> &tile, int nkeys, const ItemValues &last, u32 ok,
			   int32_t (&bin)[TILES_ROWS_PER_THREAD], u32 &outside)
{
	u32 out = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		bin[j] = 0;
#pragma unroll 1
	for (int c = 0; c < nkeys; c++)
	{
		TileKey key = tile.table->key[c];
		u32 null_bin = key.operand >> 31, values = key.extent - null_bin, valid;
		ItemValues x;

		load_operand(tile, key.operand & ~NULL_HAS_BIN, last, x);
		valid = items_with_value(x.states);
		if (!null_bin)
			ok &= valid;
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		{
			u64 k = (u64) x.v[j] - (u64) key.min;
			bool is_value = valid >> j & 1;

			if (is_value && k >= values)
				out |= 1u << j;
			bin[j] = (int32_t) ((u32) bin[j] * key.extent + (is_value ? (u32) k : values));
		}
	}
	out &= ok;
	outside += __popc(out);
	return ok & ~out;
}

/* ---- operators ---------------------------------------------------------------------- */

/* Adds the items `in` to a minimum or maximum with 32-bit codes (HIST_MAX32). */
static __device__ __forceinline__ void
add_tile_maxima(int op, const FastShared &place, const u32 (&at)[TILES_ROWS_PER_THREAD],
				const u64 (&v)[TILES_ROWS_PER_THREAD], u32 in)
{
	u32 code[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		code[j] = (u32) max_code(op, v[j]);
	add_maxima(place, at, code, in);
}

/* Adds doubles to a float sum (HIST_FIX). e0: exponent of the window's lowest bit. */
template <int DIGITS>
static __device__ __forceinline__ void
add_tile_floats(const HistArgs &args, const FastArgs &fast, const FastShared &place, int e0,
				const u32 (&at)[TILES_ROWS_PER_THREAD], const u64 (&v)[TILES_ROWS_PER_THREAD],
				u32 in)
{
	FixWindow<DIGITS> window(e0, args.slot[fast.slot].max_shift);
	HotBin<DIGITS> none = {NO_BIN, 0, {}};
	double x[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		x[j] = __longlong_as_double(v[j]);
	if constexpr (DIGITS == FIX_CHAIN_WORDS)
		add_floats_to_chains<TILES_ROWS_PER_THREAD, false>(args, fast, place, window, at, x, in, 0,
														   none);
	else
		add_fixes<DIGITS, TILES_ROWS_PER_THREAD, false>(args, fast, place, window, at, x, in, 0,
														none);
}

/*
 * Adds the items to sums of squares (HIST_INTSQ) or deviations (HIST_ACCUM), one item after
 * another, since their code is long.  Values out of the window change the state.
 */
static __device__ __forceinline__ void
add_tile_squares(const HistArgs &args, int s, const FastShared &place, int e0,
				 const int32_t (&bin)[TILES_ROWS_PER_THREAD], const u64 (&v)[TILES_ROWS_PER_THREAD],
				 u32 in)
{
	const HistSlot &slot = args.slot[s];
	u64 lo[TILES_ROWS_PER_THREAD], hi[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		lo[j] = v[j];
		hi[j] = 0;
	}
	for_each_row_of_warp<TILES_ROWS_PER_THREAD>(
		in, bin, lo, hi,
		[&](bool has, int32_t b, u64 l, u64 h)
		{
			u32 at = ((u32) b << place.log2_copies) | place.copy;
			bool out_of_window = false;

			if (slot.form == HIST_INTSQ)
			{
				if (has)
					add_square(slot, place.words + at, place.plane, l);
			}
			else
			{
				FixValue f;
				bool fits = fix_from_double(l, e0, slot.max_shift, f);
				u32 address = place.words_at + at * (u32) sizeof(u32),
					plane = place.plane * (u32) sizeof(u32);

				if (has && fits && slot.digit_bits == 24)
					add_moments<24>(args, slot, (u32) b, address, plane, f);
				else if (has && fits)
					add_moments<28>(args, slot, (u32) b, address, plane, f);
				out_of_window = has && !fits;
				__syncwarp();
			}
			if (__any_sync(~0u, out_of_window))
				change_rows<CHANGE_OUT_OF_WINDOW>(args, s, bin_in_block_copy(args, s, b),
												  out_of_window, l, h);
		});
}

/*
 * Adds the items `in` to the words of slot s.  tile: HistTile; at: index of each item's word in a
 * plane; v: the inputs, as 64-bit words.
 */
template <int KERNEL>
static __device__ __forceinline__ void
add_tile_slot(const HistArgs &args, int s, int tile, const FastShared &place, int e0,
			  const u32 (&at)[TILES_ROWS_PER_THREAD], const int32_t (&bin)[TILES_ROWS_PER_THREAD],
			  const u64 (&v)[TILES_ROWS_PER_THREAD], u32 in)
{
	FastArgs fast = {{}, -1, -1, s};

	if (tile == TILE_COUNT)
	{
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			if (in >> j & 1)
				shared_count(place.words_at + at[j] * (u32) sizeof(u32));
	}
	else if (tile == TILE_INT_I32)
	{
		int32_t w[TILES_ROWS_PER_THREAD];

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			w[j] = (int32_t) v[j];
		add_integers(args, fast, place, at, w, in);
	}
	else if (tile == TILE_INT_I64)
		add_wide_integers(args, fast, place, at, v, in);
	else if (tile == TILE_MAX32)
		add_tile_maxima(args.slot[s].op, place, at, v, in);
	if constexpr (KERNEL != TILES_LIGHT)
		switch (tile)
		{
			case TILE_FIX3:
				add_tile_floats<3>(args, fast, place, e0, at, v, in);
				break;
			case TILE_CHAIN:
				add_tile_floats<FIX_CHAIN_WORDS>(args, fast, place, e0, at, v, in);
				break;
			case TILE_MAX64:
				add_extremes(args, s, place, at, v, in);
				break;
		}
	if constexpr (KERNEL == TILES_FULL)
		if (tile == TILE_SQUARES)
			add_tile_squares(args, s, place, e0, bin, v, in);
}

/*
 * Adds the items `ok`, whose bins are known, to all slots, after each slot's filter and NULLs.
 * window: two exponents for each slot (HistArgs.window), in shared memory; lc: log2 of the copies
 * of a bin.
 */
template <int KERNEL, int THREADS>
static __device__ __forceinline__ void
add_tile_slots(const HistArgs &args, const Tile<THREADS> &tile, u32 *shared, const int *window,
			   int lc, const ItemValues &last, const int32_t (&bin)[TILES_ROWS_PER_THREAD], u32 ok)
{
	u32 plane = args.pass_bins << lc, copy = tile.thread & ((1u << lc) - 1), valid = ALL_ITEMS;
	u32 at[TILES_ROWS_PER_THREAD];
	u64 v[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		at[j] = ((u32) bin[j] << lc) | copy;
		v[j] = 0;
	}
#pragma unroll 1
	for (int s = 0; s < args.nslots; s++)
	{
		TileSlot slot = tile.table->slot[s];
		u32 in = ok;
		FastShared place = {};

		if (slot.flags & SLOT_NO_VALUES)
			valid = slot.flags & SLOT_VALIDITY ? load_validity(tile, args.slot[s].x.validity) :
												 ALL_ITEMS;
		else if (!(slot.flags & SLOT_AGAIN))
		{
			ItemValues x;

			load_operand(tile, slot.operand, last, x);
			valid = items_with_value(x.states);
#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				v[j] = (u64) x.v[j];
			if (KERNEL != TILES_LIGHT && (slot.flags & SLOT_F32))
#pragma unroll
				for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
					v[j] = __double_as_longlong((double) __uint_as_float((u32) x.v[j]));
		}
		in &= valid;
		if (slot.flags & SLOT_FILTER)
			in &= load_filter(tile, args.slot[s].filter);
		else if (slot.filter != OPERAND_NONE)
		{
			ItemValues x;

			load_operand(tile, slot.filter, last, x);
			in &= nonzero_items(x.v) & items_with_value(x.states);
		}
		place.word = args.slot[s].word;
		place.words = (u32 *) ((char *) shared + slot.words_offset);
		place.words_at = shared_address(shared) + slot.words_offset;
		place.plane = plane;
		place.nbins = (u32) args.bins.nbins;
		place.log2_copies = lc;
		place.copy = copy;
		add_tile_slot<KERNEL>(args, s, (int) (slot.flags & 0xff), place, window[2 * s], at, bin, v,
							  in);
	}
}

/* hot_entries_flush(), not inlined: inlined, it would take registers from the loop before it. */
static __device__ __noinline__ void
flush_hot_entries(const HistArgs &args)
{
	hot_entries_flush(args);
}

/* ---- the kernel ---------------------------------------------------------------------- */

/*
 * One block for each multiprocessor.  Launched with dynamic shared memory of stages_offset() + 2 *
 * stage_bytes.  Adds to the limbs, to status->outside and to program->undetermined; out-of-window
 * rows change states.
 */
template <int KERNEL, int THREADS>
__global__ void
__launch_bounds__(THREADS, 1) tiles_kernel(const __grid_constant__ HistArgs args, u32 stage_bytes)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ int window[2 * GPUAGG_MAX_SLOTS];
	TileTable *table = (TileTable *) ((char *) shared + program_offset(args, THREADS));
	char *stages = (char *) shared + stages_offset(args, THREADS);
	u32 stage = 0;
	/* blocks have equal ranges of lines; the block's warps take its lines in turn */
	u32 lines = (u32) (((u64) args.nrows + LINE_ROWS - 1) / LINE_ROWS),
		line = (u32) ((u64) lines * blockIdx.x / gridDim.x) + threadIdx.x / 32,
		end = (u32) ((u64) lines * (blockIdx.x + 1) / gridDim.x);
	u32 outside = 0, undetermined = 0;
	int lc;
	Tile<THREADS> tile = Tile<THREADS>();

	let_successor_start();
	if (KERNEL != TILES_LIGHT)
		hot_entries_init(args);
	clear_shared(shared, (size_t) args.words * (args.pass_bins << args.log2_max_copies));
	wait_for_predecessor();
	if (threadIdx.x < 2 * args.nslots)
		window[threadIdx.x] = args.window[threadIdx.x];
	lc = log2_copies(args);
	make_tile_table(args, stage_bytes, lc, *table);
	/* kept in a register: the compiler reads threadIdx.x again wherever registers are scarce */
	asm volatile("mov.u32 %0, %%tid.x;" : "=r"(tile.thread));
	tile.program = args.program;
	tile.table = table;
	tile.temporary_values = (ulonglong2 *) (table + 1);
	tile.temporary_states =
		(uint8_t *) (tile.temporary_values + (size_t) args.temporaries * THREADS * 2);
	copy_line_async(tile, stages, line, end, args.nrows);
	for (; line < end; line += THREADS / 32)
	{
		ItemValues last = ItemValues();
		int32_t bin[TILES_ROWS_PER_THREAD];
		Conditions conditions;
		u32 ok;

		/* no block barrier: a warp reads only what it copied to a stage itself */
		tile.stage = stages + stage;
		stage ^= stage_bytes;
		__syncwarp();
		copy_line_async(tile, stages + stage, line + THREADS / 32, end, args.nrows);
		asm volatile("cp.async.wait_group 1;" : : : "memory");
		__syncwarp();
		tile.row = line * LINE_ROWS + tile.thread % 32 * TILES_ROWS_PER_THREAD;
		tile.present = tile.row >= args.nrows              ? 0 :
			args.nrows - tile.row >= TILES_ROWS_PER_THREAD ? ALL_ITEMS :
															 (1u << (args.nrows - tile.row)) - 1;
		tile.has_next = line + THREADS / 32 < end;
		ok = tile.present;
		if (args.bins.filter)
			ok &= load_filter(tile, args.bins.filter);
		conditions = {ok, 0};
		run_steps<KERNEL>(tile, last, conditions);
		ok = counted_items(tile, last, conditions, undetermined);
		if (!__any_sync(~0u, ok))
			continue;
		ok = find_tile_bins(tile, args.bins.ncolumns, last, ok, bin, outside);
		add_tile_slots<KERNEL>(args, tile, shared, window, lc, last, bin, ok);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
	if (undetermined)
		atomicAdd(args.program->undetermined, (unsigned long long) undetermined);
	__syncthreads();
	flush_to_limbs(args, shared, lc, (u32) args.bins.nbins, args.limb, 0);
	if (KERNEL != TILES_LIGHT)
		flush_hot_entries(args);
}

#endif /* GPUAGG_HIST_TILES_CUH */
