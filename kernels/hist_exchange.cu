/*
 * hist_exchange.cu
 *	  Histograms by exchange: sums of 64-bit values in up to about a million bins.
 *
 * These bins do not fit the shared memory of one multiprocessor, but fit that of all
 * multiprocessors together.  Each multiprocessor owns a share of the bins for the whole call.  Rows
 * reach the owner of their bin through queues in device memory, which are used again so soon that
 * they stay in the L2 cache.  So each row is read from memory once, whereas a partition reads or
 * writes it four times.
 *
 * The exchange has two forms: sums of float8 by three digits, and sums of 64-bit integers.  Both
 * work with or without a count of the rows.  The bins are an int32 column, or keys with one range.
 *
 * hist_launch_exchange queues these kernels; nothing synchronizes, and the memory is the workspace:
 *
 *	sample_kernel		finds hot bins, decides whether to exchange rows (hist_exchange_sample.cu)
 *	exchange_kernel		the exchange; one block for each multiprocessor
 *	deferred_kernel		adds the rows that exchange_kernel deferred to their states, one by one
 *	fold_hot_kernel		adds up the hot bins of all blocks
 *
 * The sample rejects the exchange if rows crowd in the bins of few owners (neighbouring rows of few
 * bins), or if floats are too far apart for a window.  Then the other kernels do nothing, and the
 * partition's kernels, which are queued behind them, take all rows.
 *
 * exchange_kernel works in rounds.  Its warps have three roles:
 *
 *	producers		load a tile of rows, sort it by owner in shared memory, and append each owner's
 *					rows to the owner's queue
 *	reserving warp	reserves room in the queues for the producers' next tile
 *	consumers		add the rows of the block's own queue to the words of its bins
 *
 * Each owner has EXCHANGE_ROUNDS queues, which the rounds use in turn, so rounds overlap.
 * Producers wait until the consumers of all blocks are done with the round that used the queues
 * before.  Consumers wait for the producers of all blocks in their round.  Blocks that wait for
 * each other must run concurrently, so the launch is cooperative: all blocks run, or the launch
 * fails.
 *
 * Rows of hot bins do not go to a queue: every block has places for these bins and adds its own
 * rows.  A row is deferred if its queue has no room, or if it is a float outside the window.
 */
#include "hist_exchange.cuh"

/* A bit in the bin of a deferred row: the row is not counted yet, because it was in no queue. */
#define UNCOUNTED 0x80000000u

/*
 * Named barriers of the block.  Barrier 0 is that of __syncthreads.
 *
 * When a barrier completes, all threads of it see what the others wrote before they arrived, by
 * bar.arrive as well as by bar.sync (PTX ISA, "bar").  The racecheck tool of compute-sanitizer does
 * not know this of bar.arrive, so test/gpu.sh excludes the kernel from it.
 *
 * Even and odd rounds have counts, base and delta of their own.  All accesses to a tile in shared
 * memory are ordered:
 *
 *	counts		Producers add to them before COUNTED.  The reserving warp reads and clears them
 *				before RESERVED.  Producers add to the same set again after a later RESERVED.
 *	base, delta	The reserving warp writes them before RESERVED.  Producers read them after it and
 *				before WRITTEN.  The reserving warp waits for WRITTEN before it writes the same set.
 *	rows		Producers write them before SORTED, and read them after it and before the next
 *				RESERVED.  RESERVED waits for all producers.
 */
enum Barrier
{
	COUNTED = 1, /* producers have counted a tile; the reserving warp waits */
	RESERVED,    /* room in the queues is reserved; producers wait */
	SORTED,      /* producers have sorted a tile; producers wait */
	WRITTEN,     /* a tile is in the queues; the reserving warp waits; WRITTEN + 1 in odd rounds */
	QUEUED = 6   /* consumers of a group wait for each other; QUEUED + 1 for the second group */
};

/* Arrives at a named barrier of `threads` threads, and waits until it completes. */
static __device__ __forceinline__ void
barrier_wait(int barrier, int threads)
{
	asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

/* Arrives at a named barrier of `threads` threads without waiting. */
static __device__ __forceinline__ void
barrier_arrive(int barrier, int threads)
{
	asm volatile("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

/*
 * Increments a count in device memory.  One thread calls it after a barrier.  Threads that see the
 * new count in wait_for_count also see what all threads of that barrier wrote.
 */
static __device__ __forceinline__ void
increment_count(u32 *count)
{
	asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(count) : "memory");
}

/*
 * Polls a count in device memory until it is at least `least`.  One thread calls it before a
 * barrier.
 */
static __device__ __forceinline__ void
wait_for_count(const u32 *count, u32 least)
{
	u32 v;

	do
		asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(count) : "memory");
	while (v < least);
}

/* ---- shared memory --------------------------------------------------------------- */

/* The planes of a block's words.  Each has the block's own bins, and then the hot bins. */
struct ExchangeShared : FastShared
{
	const HistExchange *x;
	const u32 *hot;

	/* Returns the bin at place `at` of this block's planes. */
	__device__ __forceinline__ u32
	bin_at(u32 at) const
	{
		return bin_of_place(*x, hot, blockIdx.x, at);
	}
};

/*
 * Shared memory behind the bins' words: one tile of rows sorted by owner, and tables for two tiles,
 * because one tile is counted while the other is written.  A table has an entry for each owner.
 */
struct ExchangeTile
{
	u64 value[EXCHANGE_TILE_ROWS];     /* values of the rows */
	u32 count[2][MOST_OWNERS];         /* number of the tile's rows for each owner */
	u32 base[2][MOST_OWNERS];          /* position of the owner's first row in the sorted tile */
	u32 delta[2][MOST_OWNERS];         /* position in the owner's queue less position in the tile */
	u32 hot[HOT_BINS];                 /* the table of hot bins */
	uint16_t key[EXCHANGE_TILE_ROWS];  /* place in the owner's plane */
	uint8_t owner[EXCHANGE_TILE_ROWS]; /* owner of the row */
};

/* Returns the bytes of the bins' words, rounded up to the alignment of ExchangeTile. */
static __host__ __device__ __forceinline__ size_t
words_bytes(const HistArgs &args, const HistExchange &x)
{
	return ((size_t) args.words * x.plane * sizeof(u32) + 15) & ~(size_t) 15;
}

/* Returns the tile in the block's shared memory. */
static __device__ __forceinline__ ExchangeTile &
exchange_tile(const HistArgs &args, const HistExchange &x)
{
	extern __shared__ __align__(16) u32 shared[];

	return *(ExchangeTile *) ((char *) shared + words_bytes(args, x));
}

/* ---- producers -------------------------------------------------------------------- */

/*
 * Appends rows to the list for deferred_kernel.  For each bit j of `mask`, item(j, bin, value)
 * fills in one row; then `flags` are set in its bin.  All lanes of the warp must call it.  The list
 * has room for all rows of the call, and each row is deferred at most once.
 */
template <typename Item>
static __device__ __forceinline__ void
defer_rows(const HistExchange &x, u32 mask, u32 flags, const Item &item)
{
	u32 rows = __popc(mask), end = warp_scan(rows), first = 0;

	if (threadIdx.x % 32 == 31)
		first = atomicAdd(x.ndeferred, end);
	first = __shfl_sync(~0u, first, 31) + end - rows;
#pragma unroll 1
	for (; mask; mask &= mask - 1)
	{
		int j = __ffs(mask) - 1;

		item(j, x.deferred_bin[first], x.deferred_value[first]);
		x.deferred_bin[first++] |= flags;
	}
}

/* A producer thread with its rows.  Bins are loaded one tile ahead of values. */
struct Producer
{
	const HistArgs &args;
	const FastArgs &fast;
	const HistExchange &x;
	ExchangeTile &tile;
	const bool any_hot;
	u32 t = threadIdx.x; /* number of the producer */
	u32 outside = 0;     /* rows out of the range of bins */
	u32 loaded = 0;      /* bits: rows in bin[] */
	u32 counted = 0;     /* bits: rows with a bin, in place[], owner_rank[] and value[] */
	u32 bin[EXCHANGE_ROWS_PER_PRODUCER];
	u32 place[EXCHANGE_ROWS_PER_PRODUCER]; /* place in the owner's plane */
	u32 owner_rank
		[EXCHANGE_ROWS_PER_PRODUCER]; /* owner << 16 | rank among the tile's rows for that owner */
	u64 value[EXCHANGE_ROWS_PER_PRODUCER];

	__device__ __forceinline__
	Producer(const HistArgs &a, const FastArgs &f, const HistExchange &e, ExchangeTile &shared_tile,
			 bool hot)
		: args(a), fast(f), x(e), tile(shared_tile), any_hot(hot)
	{
	}

	/* Returns the block's first row of a round. */
	__device__ __forceinline__ u64
	first_row(u32 round) const
	{
		return ((u64) round * x.owners + blockIdx.x) * EXCHANGE_TILE_ROWS;
	}

	/* Returns the number of rows in the block's tile of a round. */
	__device__ __forceinline__ u32
	tile_rows(u32 round) const
	{
		u64 row = first_row(round);

		return row >= args.nrows ? 0 : (u32) min((u64) EXCHANGE_TILE_ROWS, args.nrows - row);
	}

	/*
	 * Calls load(j) for each of the thread's rows that the tile has.  Returns these rows as bits.
	 */
	template <typename Load>
	__device__ __forceinline__ u32
	each_row(u32 round, const Load &load) const
	{
		u32 n = tile_rows(round), present = (1u << EXCHANGE_ROWS_PER_PRODUCER) - 1;

		if (n == EXCHANGE_TILE_ROWS)
#pragma unroll
			for (int j = 0; j < EXCHANGE_ROWS_PER_PRODUCER; j++)
				load(j);
		else
		{
			present = 0;
#pragma unroll
			for (int j = 0; j < EXCHANGE_ROWS_PER_PRODUCER; j++)
				if (j * EXCHANGE_PRODUCER_THREADS + t < n)
				{
					load(j);
					present |= 1u << j;
				}
		}
		return present;
	}

	/* Loads the bins of the thread's rows. */
	__device__ __forceinline__ void
	load_bins(u32 round)
	{
		const u32 *from = (const u32 *) fast.bins.column + first_row(round) + t;

		loaded =
			each_row(round, [&](int j) { bin[j] = __ldcs(from + j * EXCHANGE_PRODUCER_THREADS); });
	}

	/* Loads the values of the thread's rows. */
	__device__ __forceinline__ void
	load_values(u32 round)
	{
		const u64 *from = (const u64 *) args.slot[fast.slot].x.values + first_row(round) + t;

		each_row(round, [&](int j) { value[j] = __ldcs(from + j * EXCHANGE_PRODUCER_THREADS); });
	}

	/* Finds the owner and the place of each row in bin[], and counts the rows for each owner. */
	__device__ __forceinline__ void
	count_owners(u32 round)
	{
		u32 *counts = tile.count[round % 2], bias = fast.bins.skip_negative ? 0x80000000u : 0,
			most = fast.bins.n - 1;

		counted = 0;
#pragma unroll
		for (int j = 0; j < EXCHANGE_ROWS_PER_PRODUCER; j++)
		{
			u32 b = bin[j] - fast.bins.min;

			if ((loaded >> j & 1) && b <= most)
			{
				OwnedBin to = owner_of(x, b);

				if (any_hot)
				{
					u32 hot = hot_entry(tile.hot, b);

					if (hot < HOT_BINS)
						to = {blockIdx.x,
							  x.local +
								  (hot << EXCHANGE_LOG2_HOT_COPIES |
								   t % (1 << EXCHANGE_LOG2_HOT_COPIES))};
				}
				place[j] = to.local;
				owner_rank[j] = to.owner << 16 | atomicAdd(&counts[to.owner], 1u);
				counted |= 1u << j;
			}
			else if ((loaded >> j & 1) && b + bias > most + bias)
				outside++;
		}
	}

	/* Writes the rows to the tile in shared memory, sorted by owner. */
	__device__ __forceinline__ void
	sort_by_owner(u32 round)
	{
		const u32 *base = tile.base[round % 2];

#pragma unroll
		for (int j = 0; j < EXCHANGE_ROWS_PER_PRODUCER; j++)
			if (counted >> j & 1)
			{
				u32 owner = owner_rank[j] >> 16, at = base[owner] + (owner_rank[j] & 0xffff);

				tile.key[at] = (uint16_t) place[j];
				tile.owner[at] = (uint8_t) owner;
				tile.value[at] = value[j];
			}
	}

	/*
	 * Copies the sorted tile of `total` rows to the queues.  Neighbouring threads write
	 * neighbouring rows of a queue.  Rows for which the queue has no room are deferred.
	 */
	__device__ __forceinline__ void
	write_queues(u32 round, u32 total)
	{
		const u32 *delta = tile.delta[round % 2];
		u32 queues = round % EXCHANGE_ROUNDS * x.owners, over = 0;

#pragma unroll
		for (int j = 0; j < EXCHANGE_ROWS_PER_PRODUCER; j++)
		{
			u32 i = j * EXCHANGE_PRODUCER_THREADS + t;

			if (i < total)
			{
				u32 owner = tile.owner[i], to = delta[owner] + i,
					at = (queues + owner) * EXCHANGE_QUEUE_ROWS + to;

				if (to < EXCHANGE_QUEUE_ROWS)
				{
					x.key[at] = tile.key[i];
					x.value[at] = tile.value[i];
				}
				else
					over |= 1u << j;
			}
		}
		if (__any_sync(~0u, over != 0))
			defer_rows(x, over, UNCOUNTED,
					   [&](int j, u32 &bin, u64 &value)
					   {
						   u32 i = j * EXCHANGE_PRODUCER_THREADS + t;

						   bin = bin_of_place(x, tile.hot, tile.owner[i], tile.key[i]);
						   value = tile.value[i];
					   });
	}
};

/* Moves the rows of all rounds from the columns to the queues.  Only producers call it. */
static __device__ __forceinline__ void
run_producers(const HistArgs &args, const FastArgs &fast, const HistExchange &x, u32 rounds,
			  bool any_hot)
{
	ExchangeTile &tile = exchange_tile(args, x);
	Producer p(args, fast, x, tile, any_hot);

	p.load_bins(0);
	p.load_values(0);
	p.count_owners(0);
	p.load_bins(1);
	barrier_arrive(COUNTED, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
	for (u32 round = 0; round < rounds; round++)
	{
		barrier_wait(RESERVED, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
		p.sort_by_owner(round);
		p.load_values(round + 1);
		barrier_wait(SORTED, EXCHANGE_PRODUCER_THREADS);
		p.count_owners(round + 1);
		p.load_bins(round + 2);
		barrier_arrive(COUNTED, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
		p.write_queues(round, tile.base[round % 2][MOST_OWNERS - 1]);
		barrier_arrive(WRITTEN + round % 2, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
	}

	/* the last iteration counted the tile past the last one, which is empty */
	if (p.outside)
		atomicAdd(&args.status->outside, (u64) p.outside);
}

/* ---- the reserving warp -------------------------------------------------------------- */

/*
 * Waits until a tile is counted and its queues are free again, and reserves room for the tile in
 * the queues.
 */
static __device__ __forceinline__ void
reserve_tile(const HistExchange &x, ExchangeTile &tile, u32 round)
{
	u32 lane = threadIdx.x % 32, queues = round % EXCHANGE_ROUNDS, *count = tile.count[round % 2],
		rows[OWNERS_A_LANE], got[OWNERS_A_LANE], sum = 0, before;

	barrier_wait(COUNTED, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
	if (lane == 0 && round >= EXCHANGE_ROUNDS)
		wait_for_count(x.consumed + queues, x.owners * (round / EXCHANGE_ROUNDS));
	__syncwarp();
#pragma unroll
	for (int k = 0; k < OWNERS_A_LANE; k++)
	{
		rows[k] = count[k * 32 + lane];
		sum += rows[k];
		count[k * 32 + lane] = 0;
	}
	/* one instruction changes 32 neighbouring cursors, which is one memory transaction */
#pragma unroll
	for (int k = 0; k < OWNERS_A_LANE; k++)
		got[k] = k * 32 + lane < x.owners ?
			atomicAdd(x.cursor + queues * MOST_OWNERS + k * 32 + lane, rows[k]) :
			0;
	before = warp_scan(sum) - sum;
#pragma unroll
	for (int k = 0; k < OWNERS_A_LANE; k++)
	{
		tile.base[round % 2][k * 32 + lane] = before;
		tile.delta[round % 2][k * 32 + lane] = got[k] - before;
		before += rows[k];
	}
	barrier_arrive(RESERVED, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
}

/* Reserves room in the queues for the tiles of all rounds.  Only the reserving warp calls it. */
static __device__ __forceinline__ void
run_reserving_warp(const HistArgs &args, const HistExchange &x, u32 rounds)
{
	ExchangeTile &tile = exchange_tile(args, x);

	reserve_tile(x, tile, 0);
	for (u32 round = 0; round < rounds; round++)
	{
		if (round + 1 < rounds)
			reserve_tile(x, tile, round + 1);
		barrier_wait(WRITTEN + round % 2, EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS);
		if (threadIdx.x % 32 == 0)
			increment_count(x.produced + round % EXCHANGE_ROUNDS);
	}
}

/* ---- consumers ------------------------------------------------------------------------- */

/*
 * Loads four neighbouring rows of a queue of n rows: places to at[], values to out[].  Neighbouring
 * rows of a queue often have the same bin.  Returns the rows that exist as bits.
 */
template <int KIND>
static __device__ __forceinline__ u32
load_queue(const uint16_t *key, const u64 *value, u32 row, u32 n, u32 (&at)[4],
		   typename FastInput<KIND>::type (&out)[4])
{
	u64 v[4];
	u32 in = 0;

	if (row + 4 <= n)
	{
		uint2 k = *(const uint2 *) (key + row);
		ulonglong2 a = *(const ulonglong2 *) (value + row),
				   b = *(const ulonglong2 *) (value + row + 2);

		at[0] = k.x & 0xffff, at[1] = k.x >> 16, at[2] = k.y & 0xffff, at[3] = k.y >> 16;
		v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
		in = 15;
	}
	else
#pragma unroll
		for (int j = 0; j < 4; j++)
		{
			at[j] = 0;
			v[j] = 0;
			if (row + j < n)
			{
				at[j] = key[row + j];
				v[j] = value[row + j];
				in |= 1u << j;
			}
		}
#pragma unroll
	for (int j = 0; j < 4; j++)
		memcpy(&out[j], &v[j], sizeof(u64));
	return in;
}

/*
 * Adds the carries of digits d, which were added to words with the values `old`.  The word past the
 * digits has room for any number of rows of a call.  Returns the rows whose lowest word overflowed,
 * as bits.  These are rare, and the caller adds their carries.
 */
template <int DIGITS>
static __device__ __forceinline__ u32
carry_doubles(const ExchangeShared &place, const u32 (&at)[4], const u32 (&d)[4][DIGITS],
			  const u32 (&old)[4][DIGITS])
{
	u32 lowest = 0;

#pragma unroll
	for (int j = 0; j < 4; j++)
	{
		u32 *top = place.words + DIGITS * place.plane + at[j];

		if (fix_overflows(0, old[j][0], d[j][0], old[j][0] + d[j][0]))
			lowest |= 1u << j;
		if (fix_overflows(1, old[j][1], d[j][1], old[j][1] + d[j][1]))
		{
			u32 carry = (u32) ((int) d[j][1] < 0 ? -fix_carry_value(1) : fix_carry_value(1)),
				was = atomicAdd(top - place.plane, carry);

			if (fix_overflows(2, was, carry, was + carry))
				atomicAdd(top, (u32) ((int) carry < 0 ? -fix_carry_value(2) : fix_carry_value(2)));
		}
		if (fix_overflows(2, old[j][2], d[j][2], old[j][2] + d[j][2]))
			atomicAdd(top, (u32) ((int) d[j][2] < 0 ? -fix_carry_value(2) : fix_carry_value(2)));
	}
	return lowest;
}

/*
 * Adds doubles to the sums of their bins, like add_fixes in hist_add.cuh, but without calls.  A
 * call in the loop costs registers in every iteration.  So carries are added inline, and rows
 * outside the window are deferred.
 */
static __device__ __forceinline__ void
add_doubles(const HistArgs &args, const FastArgs &fast, const HistExchange &x,
			const ExchangeShared &place, const FixWindow<3> &window, const u32 (&at)[4],
			const double (&v)[4], u32 in)
{
	constexpr int DIGITS = fast_digits(FAST_FIX3_F64);
	u32 d[4][DIGITS], old[4][DIGITS];
	u32 out_of_window = 0, lowest = 0;

#pragma unroll
	for (int j = 0; j < 4; j++)
	{
		if (!window.cut(v[j], d[j]) || (u32) __double2hiint(v[j]) == 0x80000000)
			out_of_window |= 1u << j;
		/* -0 is the identity of the sum */
		if (__double_as_longlong(v[j]) == (long long) (1ULL << 63))
			in &= ~(1u << j);
	}
	out_of_window &= in;
	/* four rows of one bin, which sorted keys cause, are added together */
	if (at[0] == at[1] && at[0] == at[2] && at[0] == at[3] && out_of_window == 0 && in == 15)
	{
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
			d[0][k] += d[1][k] + d[2][k] + d[3][k];
		in = 1;
	}
#pragma unroll
	for (int j = 0; j < 4; j++)
#pragma unroll
		for (int k = 0; k < DIGITS; k++)
		{
			old[j][k] = 0;
			if (in & ~out_of_window & 1u << j)
				old[j][k] = atomicAdd(place.words + k * place.plane + at[j], d[j][k]);
		}
	if (any_digit_overflows(old, d))
		lowest = carry_doubles<DIGITS>(place, at, d, old);
#pragma unroll 1
	for (; lowest; lowest &= lowest - 1)
	{
		int j = __ffs(lowest) - 1;
		u32 a = j == 0 ? at[0] :
			j == 1     ? at[1] :
			j == 2     ? at[2] :
						 at[3],
			carry = (u32) fix_carry_value(0), was;

		/* the lowest word marks the bin as used, but may be zero after the overflow */
		replace_negative_zero(args.slot[fast.slot], place.bin_at(a));
		for (int w = 1; w <= DIGITS; w++)
		{
			was = atomicAdd(place.words + w * place.plane + a, carry);
			if (!fix_overflows(w, was, carry, was + carry))
				break;
			carry = (u32) ((int) carry < 0 ? -fix_carry_value(w) : fix_carry_value(w));
		}
	}
	if (__any_sync(~0u, out_of_window != 0))
		defer_rows(x, out_of_window, 0,
				   [&](int j, u32 &bin, u64 &value)
				   {
					   bin = place.bin_at(j == 0 ? at[0] : j == 1 ? at[1] : j == 2 ? at[2] : at[3]);
					   value = (u64) __double_as_longlong(j == 0     ? v[0] :
															  j == 1 ? v[1] :
															  j == 2 ? v[2] :
																	   v[3]);
				   });
}

/*
 * Adds the rows of the block's queues to the words of its bins, in all rounds.  Only consumers call
 * it; their groups take the rounds in turn.
 */
template <int KIND>
static __device__ __forceinline__ void
run_consumers(const HistArgs &args, const FastArgs &fast, const HistExchange &x, u32 rounds)
{
	extern __shared__ __align__(16) u32 shared[];
	constexpr int DIGITS = fast_digits(KIND);
	static_assert(fast_tile_items(KIND, false) == 4 && sizeof(typename FastInput<KIND>::type) == 8,
				  "rows of a queue");
	u32 thread = threadIdx.x - EXCHANGE_PRODUCER_THREADS - EXCHANGE_RESERVER_THREADS,
		group = thread / EXCHANGE_CONSUMER_THREADS, t = thread % EXCHANGE_CONSUMER_THREADS;
	ExchangeShared place;
	FixWindow<DIGITS> window(args, fast.slot);

	(FastShared &) place = make_fast_shared<KIND>(args, fast, fast.count >= 0, shared,
												  EXCHANGE_LOG2_HOT_COPIES, 0, x.plane);
	place.x = &x;
	place.hot = exchange_tile(args, x).hot;
	for (u32 round = group; round < rounds; round += EXCHANGE_CONSUMER_GROUPS)
	{
		u32 queues = round % EXCHANGE_ROUNDS, n;
		size_t queue = ((size_t) queues * x.owners + blockIdx.x) * EXCHANGE_QUEUE_ROWS;

		if (t == 0)
			wait_for_count(x.produced + queues, x.owners * (round / EXCHANGE_ROUNDS + 1));
		barrier_wait(QUEUED + group, EXCHANGE_CONSUMER_THREADS);
		n = min(__ldcg(x.cursor + queues * MOST_OWNERS + blockIdx.x), (u32) EXCHANGE_QUEUE_ROWS);
		for (u32 base = 0; base < n; base += 4 * EXCHANGE_CONSUMER_THREADS)
		{
			typename FastInput<KIND>::type v[4];
			u32 at[4],
				in = load_queue<KIND>(x.key + queue, x.value + queue, base + 4 * t, n, at, v);

			if (fast.count >= 0)
#pragma unroll
				for (int j = 0; j < 4; j++)
					if (in >> j & 1)
						atomicAdd(place.count + at[j], 1u);
			if constexpr (DIGITS > 0)
				add_doubles(args, fast, x, place, window, at, v, in);
			else
				add_wide_integers<4>(args, fast, place, at, v, in);
		}
		barrier_wait(QUEUED + group, EXCHANGE_CONSUMER_THREADS);
		if (t == 0)
		{
			x.cursor[queues * MOST_OWNERS + blockIdx.x] = 0;
			increment_count(x.consumed + queues);
		}
	}
}

/* ---- the kernels ------------------------------------------------------------------------ */

/*
 * The exchange.  Block b is owner b.  At its end a block writes its own bins to states, and adds
 * its hot bins to limbs.  The launch is cooperative, so it starts when its predecessor has ended.
 */
template <int KIND>
static __global__ void
__launch_bounds__(EXCHANGE_THREADS_PER_BLOCK, 1)
	exchange_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast,
					const __grid_constant__ HistExchange x)
{
	extern __shared__ __align__(16) u32 shared[];
	ExchangeTile &tile = exchange_tile(args, x);
	u64 step = (u64) x.owners * EXCHANGE_TILE_ROWS;
	u32 rounds = (u32) ((args.nrows + step - 1) / step);
	bool any_hot = false;

	if (!*x.taken)
		return;
	clear_shared(shared, (size_t) args.words * x.plane);
	for (u32 i = threadIdx.x; i < 2 * MOST_OWNERS; i += EXCHANGE_THREADS_PER_BLOCK)
		tile.count[i / MOST_OWNERS][i % MOST_OWNERS] = 0;
	if (threadIdx.x < HOT_BINS)
	{
		tile.hot[threadIdx.x] = x.hot[threadIdx.x];
		any_hot = tile.hot[threadIdx.x] != NO_BIN;
	}
	any_hot = __syncthreads_or(any_hot);
	if (threadIdx.x < EXCHANGE_PRODUCER_THREADS)
		run_producers(args, fast, x, rounds, any_hot);
	else if (threadIdx.x < EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS)
		run_reserving_warp(args, x, rounds);
	else
		run_consumers<KIND>(args, fast, x, rounds);
	__syncthreads();
	if (any_hot)
		flush_to_limbs(args, shared + x.local, EXCHANGE_LOG2_HOT_COPIES, HOT_BINS, x.limb, 0);
	flush_fast_to_states<KIND>(args, fast, shared, x.plane, x.local,
							   [&](u32 b) { return bin_of(x, blockIdx.x, b); });
}

/* Combines the deferred rows with their states. */
static __global__ void
__launch_bounds__(EXCHANGE_DEFERRED_THREADS_PER_BLOCK)
	deferred_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast,
					const __grid_constant__ HistExchange x)
{
	u32 n;

	wait_for_predecessor();
	let_successor_start();
	n = *x.taken ? __ldcg(x.ndeferred) : 0;
	for (u64 base = blockIdx.x * (u64) blockDim.x; base < n; base += gridDim.x * (u64) blockDim.x)
	{
		bool has = base + threadIdx.x < n;
		u32 bin = has ? x.deferred_bin[base + threadIdx.x] : 0;
		u64 value = has ? x.deferred_value[base + threadIdx.x] : 0;

		if (fast.count >= 0)
			change_rows<CHANGE_ANY>(args, fast.count, bin & ~UNCOUNTED, bin & UNCOUNTED, 0, 0);
		change_rows<CHANGE_ANY>(args, fast.slot, bin & ~UNCOUNTED, has, value,
								(u64) ((int64_t) value >> 63));
	}
}

/* Combines the limbs of hot bins, to which all blocks added, with the states. */
static __global__ void __launch_bounds__(2 * HOT_BINS)
	fold_hot_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ HistExchange x)
{
	wait_for_predecessor();
	let_successor_start();
	if (!*x.taken)
		return;
	for (u32 i = threadIdx.x; i < HOT_BINS * args.nslots; i += blockDim.x)
	{
		const HistSlot &slot = args.slot[i / HOT_BINS];
		u32 place = i % HOT_BINS, bin = x.hot[place];
		u64 limb[HIST_MAX_LIMBS];

		if (bin == NO_BIN)
			continue;
		for (int k = 0; k < slot.nlimbs; k++)
			limb[k] = read_limb(args, slot, x.limb, place, k);
		fold_limbs(args, i / HOT_BINS, bin, limb);
	}
}

/* ---- choice and launch ------------------------------------------------------------------ */

/*
 * Returns whether the slots are a sum that an exchange supports, with or without a count.  If so,
 * sets `fast` and `kind` as fast_match_shape() does.
 */
static bool
is_exchange_shape(const HistArgs &args, FastArgs &fast, int &kind)
{
	return args.nslots <= 2 && fast_match_shape(args, fast, kind) &&
		(kind == FAST_FIX3_F64 || kind == FAST_INT_I64);
}

/* Sets the members of x that depend only on the number of bins and of multiprocessors. */
static void
set_exchange_sizes(const HistArgs &args, const DeviceFacts &facts, HistExchange &x)
{
	x.owners = facts.sms;
	x.magic = (u32) ((1ULL << 32) / x.owners + 1);
	for (x.mask = 0; 2 * x.mask + 1 < x.owners; x.mask = 2 * x.mask + 1)
		;
	x.local = (u32) ((args.bins.nbins + x.owners - 1) / x.owners + 3) & ~3u;
	x.plane = x.local + HOT_ENTRIES;
}

/* Returns the shared memory that a block of exchange_kernel needs. */
static size_t
exchange_bytes(const HistArgs &args, const HistExchange &x)
{
	return words_bytes(args, x) + sizeof(ExchangeTile);
}

bool
hist_exchange_supports(const HistArgs &args, const DeviceFacts &facts, bool always)
{
	HistExchange x = HistExchange();
	FastArgs fast;
	int kind;

	if (!is_exchange_shape(args, fast, kind) || facts.sms < 2 || facts.sms >= MOST_OWNERS ||
		(!always && args.nrows < EXCHANGE_MIN_ROWS))
		return false;
	/*
	 * deferred rows change 128-bit states; without 128-bit compare-and-swap they would need locks
	 */
	if (args.slot[fast.slot].wide_state && !facts.built_for_90)
		return false;
	if (args.bins.nbins > (int64_t) facts.sms << 16)
		return false;
	set_exchange_sizes(args, facts, x);
	return x.plane <= 1 << 16 && exchange_bytes(args, x) + 1024 <= facts.smem_per_block;
}

/*
 * Words of x.cursor, and words of x.produced, x.consumed and x.ndeferred together.
 * prepare_call_kernel clears them, in addition to the limbs of hot bins.
 */
#define QUEUE_WORDS (EXCHANGE_ROUNDS * MOST_OWNERS)
#define COUNT_WORDS (2 * EXCHANGE_ROUNDS + 1)

size_t
hist_exchange_zeroed_words(const HistArgs &args)
{
	return (size_t) args.limbs * HOT_BINS * 2 + QUEUE_WORDS + COUNT_WORDS;
}

void
hist_exchange_plan(const HistArgs &args, const DeviceFacts &facts, bool always, u32 *zeros,
				   const PartPlan &part, HistExchange &x, Workspace &ws)
{
	set_exchange_sizes(args, facts, x);
	x.always = always;
	x.key = ws.take<uint16_t>((size_t) EXCHANGE_ROUNDS * x.owners * EXCHANGE_QUEUE_ROWS);
	x.value = ws.take<u64>((size_t) EXCHANGE_ROUNDS * x.owners * EXCHANGE_QUEUE_ROWS);
	x.hot = ws.take<u32>(HOT_BINS);
	x.taken = ws.take<u32>(1);
	/*
	 * deferred rows take the memory of the partition's columns, which are not used if rows are
	 * exchanged
	 */
	x.deferred_bin = (u32 *) part.bin;
	x.deferred_value = (u64 *) part.columns.to[0];
	if (zeros == nullptr)
		return;
	x.limb = (u64 *) zeros;
	x.cursor = zeros + (size_t) args.limbs * HOT_BINS * 2;
	x.produced = x.cursor + QUEUE_WORDS;
	x.consumed = x.produced + EXCHANGE_ROUNDS;
	x.ndeferred = x.consumed + EXCHANGE_ROUNDS;
}

/* Queues the kernels of an exchange. */
template <int KIND>
static GpuaggCudaStatus
launch_exchange(const HistArgs &args, const FastArgs &fast, const HistExchange &x,
				const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(allow_shared(exchange_kernel<KIND>, facts));
	STATUS_TRY(hist_launch_exchange_sample(args, fast, x, facts, stream));
	CUDA_TRY(launch_together(exchange_kernel<KIND>, x.owners, EXCHANGE_THREADS_PER_BLOCK,
							 exchange_bytes(args, x), stream, args, fast, x));
	CUDA_TRY(launch_early(deferred_kernel, EXCHANGE_DEFERRED_BLOCKS_PER_SM * facts.sms,
						  EXCHANGE_DEFERRED_THREADS_PER_BLOCK, 0, facts, stream, args, fast, x));
	CUDA_TRY(launch_early(fold_hot_kernel, 1, 2 * HOT_BINS, 0, facts, stream, args, x));
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_launch_exchange(const HistArgs &partitioned, const HistExchange &x, const DeviceFacts &facts,
					 cudaStream_t stream)
{
	HistArgs args = partitioned;
	FastArgs fast;
	int kind;

	/*
	 * flush_to_limbs writes the hot bins only: pass_bins gives the length of a plane with their
	 * copies, and the limbs are those of hot bins
	 */
	args.part.item = nullptr;
	args.pass_bins = x.plane >> EXCHANGE_LOG2_HOT_COPIES;
	args.limb = x.limb;
	args.limb_bins = HOT_BINS;
	if (!is_exchange_shape(args, fast, kind))
		return GPUAGG_CUDA_INVALID;
	return kind == FAST_FIX3_F64 ? launch_exchange<FAST_FIX3_F64>(args, fast, x, facts, stream) :
								   launch_exchange<FAST_INT_I64>(args, fast, x, facts, stream);
}
