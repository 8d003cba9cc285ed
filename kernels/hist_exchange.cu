/*
 * hist_exchange.cu
 *	  Sums of 64-bit values in so many bins that only all multiprocessors together have room for
 *	  them: each owns a share of the bins in its shared memory for the whole call, and rows reach
 *	  it through queues in the L2 cache.  So rows are read from memory once, where a partition
 *	  reads or writes them four times.
 *
 * One block a multiprocessor, all at once (a cooperative launch), in rounds.  In a round a
 * block's producers sort a tile by owner and append the runs to the owners' queues; its consumers
 * add what its own queue got.  EXCHANGE_ROUNDS rounds are under way at a time: producers wait for
 * consumers of the round whose queues they use again, consumers for all producers of theirs.
 *
 * A sample finds hot bins first.  Their rows stay in the block, which has places for them, and a
 * last kernel adds up the blocks'.  If the sample says that rows crowd in few owners all the same
 * (neighbouring rows of few bins), or that floats are too far apart for a window, rows are
 * partitioned instead.  Rows for which a queue has no room though it said nothing of that kind, and
 * floats outside the window, are deferred: a kernel of its own changes their states one by one.
 */
#include "hist_exchange.cuh"

/* Of a bin among deferred rows: no count has it. */
#define UNCOUNTED 0x80000000u

/*
 * Named barriers; 0 is the block's.  What a thread did before it arrived at one, by bar.arrive as
 * by bar.sync, is done for all that take part when the barrier completes (PTX ISA, "bar").
 * compute-sanitizer's racecheck does not know that of bar.arrive, so test/gpu.sh has it leave the
 * kernel out.  For a round and the next of the same parity, whose parts of a tile are the same:
 *
 *	counts		added up before COUNTED, read and cleared before RESERVED; the next are added up
 *				after a later RESERVED
 *	base, delta	written before RESERVED, read after it and before WRITTEN, which the reserving warp
 *				waits for before it writes the next
 *	rows		written before SORTED, read after it and before the next RESERVED, which waits for
 *				all producers
 */
enum Barrier
{
	COUNTED = 1, /* a tile's rows; the reserving warp waits */
	RESERVED,    /* the producers do */
	SORTED,
	WRITTEN,   /* and the next, by turns, as producers do not wait */
	QUEUED = 6 /* and the next, one a group of consumers */
};

static __device__ __forceinline__ void
barrier_wait(int barrier, int threads)
{
	asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

static __device__ __forceinline__ void
barrier_arrive(int barrier, int threads)
{
	asm volatile("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

/*
 * After a barrier, by one thread: what all of them wrote is to be seen by threads that wait for the
 * count.
 */
static __device__ __forceinline__ void
announce(u32 *count)
{
	asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(count) : "memory");
}

/* By one thread, before a barrier. */
static __device__ __forceinline__ void
wait_for(const u32 *count, u32 least)
{
	u32 v;

	do
		asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(count) : "memory");
	while (v < least);
}

/* ---- shared memory --------------------------------------------------------------- */

/* A plane of a block's words: of its own bins, then of hot ones. */
struct ExchangeShared : FastShared
{
	const HistExchange *x;
	const u32 *hot;

	__device__ __forceinline__ u32
	bin_at(u32 at) const
	{
		return bin_of_place(*x, hot, blockIdx.x, at);
	}
};

/*
 * Behind the bins' words, for two tiles at a time where one is counted while the other is written.
 */
struct ExchangeTile
{
	u64 value[TILE];
	u32 count[2][MOST_OWNERS]; /* rows of each owner */
	u32 base[2][MOST_OWNERS];  /* their first place in the tile */
	u32 delta[2][MOST_OWNERS]; /* from there to the queue */
	u32 hot[HOT_BINS];
	uint16_t key[TILE]; /* where in the owner's plane */
	uint8_t owner[TILE];
};

static __host__ __device__ __forceinline__ size_t
words_bytes(const HistArgs &args, const HistExchange &x)
{
	return ((size_t) args.words * x.plane * sizeof(u32) + 15) & ~(size_t) 15;
}

static __device__ __forceinline__ ExchangeTile &
exchange_tile(const HistArgs &args, const HistExchange &x)
{
	extern __shared__ __align__(16) u32 shared[];

	return *(ExchangeTile *) ((char *) shared + words_bytes(args, x));
}

/* ---- producers -------------------------------------------------------------------- */

/*
 * Rows for the kernel that comes after: item(j) is the bin and the value of each that `mask` has a
 * bit for.  The whole warp must come here.
 */
template <typename Item>
static __device__ __forceinline__ void
defer(const HistExchange &x, u32 mask, u32 flags, const Item &item)
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

/* A thread's rows on their way: bins of a tile ahead of its values. */
struct Producer
{
	const HistArgs &args;
	const FastArgs &fast;
	const HistExchange &x;
	ExchangeTile &tile;
	const bool any_hot;
	u32 t = threadIdx.x;
	u32 outside = 0;
	u32 in = 0;  /* of bin[]: rows there are */
	u32 has = 0; /* of the others: rows that have a bin */
	u32 bin[ITEMS];
	u32 local[ITEMS];
	u32 place[ITEMS]; /* the owner above the rank among its rows */
	u64 value[ITEMS];

	__device__ __forceinline__
	Producer(const HistArgs &a, const FastArgs &f, const HistExchange &e, ExchangeTile &shared_tile,
			 bool hot)
		: args(a), fast(f), x(e), tile(shared_tile), any_hot(hot)
	{
	}

	/* The block's first row of a round. */
	__device__ __forceinline__ u64
	first(u32 round) const
	{
		return ((u64) round * x.owners + blockIdx.x) * TILE;
	}

	__device__ __forceinline__ u32
	rows(u32 round) const
	{
		u64 row = first(round);

		return row >= args.nrows ? 0 : (u32) min((u64) TILE, args.nrows - row);
	}
	/* load(j) for each of the thread's rows of a tile that there are; those as bits. */
	template <typename Load>
	__device__ __forceinline__ u32
	each_row(u32 round, const Load &load) const
	{
		u32 n = rows(round), there = (1u << ITEMS) - 1;

		if (n == TILE)
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				load(j);
		else
		{
			there = 0;
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (j * PRODUCERS + t < n)
				{
					load(j);
					there |= 1u << j;
				}
		}
		return there;
	}
	__device__ __forceinline__ void
	load_bins(u32 round)
	{
		const u32 *from = (const u32 *) fast.bins.column + first(round) + t;

		in = each_row(round, [&](int j) { bin[j] = __ldcs(from + j * PRODUCERS); });
	}
	__device__ __forceinline__ void
	load_values(u32 round)
	{
		const u64 *from = (const u64 *) args.slot[fast.slot].x.values + first(round) + t;

		each_row(round, [&](int j) { value[j] = __ldcs(from + j * PRODUCERS); });
	}
	/* Where the rows of bin[] go, and their number for each owner. */
	__device__ __forceinline__ void
	count(u32 round)
	{
		u32 *counts = tile.count[round % 2], bias = fast.bins.skip_negative ? 0x80000000u : 0,
			most = fast.bins.n - 1;

		has = 0;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32 b = bin[j] - fast.bins.min;

			if ((in >> j & 1) && b <= most)
			{
				Owned to = owner_of(x, b);

				if (any_hot)
				{
					u32 hot = hot_entry(tile.hot, b);

					if (hot < HOT_BINS)
						to = {blockIdx.x,
							  x.local + (hot << HOT_LOG2_COPIES | t % (1 << HOT_LOG2_COPIES))};
				}
				local[j] = to.local;
				place[j] = to.owner << 16 | atomicAdd(&counts[to.owner], 1u);
				has |= 1u << j;
			}
			else if ((in >> j & 1) && b + bias > most + bias)
				outside++;
		}
	}
	/* Into the tile, by owner. */
	__device__ __forceinline__ void
	sort(u32 round)
	{
		const u32 *base = tile.base[round % 2];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (has >> j & 1)
			{
				u32 owner = place[j] >> 16, at = base[owner] + (place[j] & 0xffff);

				tile.key[at] = (uint16_t) local[j];
				tile.owner[at] = (uint8_t) owner;
				tile.value[at] = value[j];
			}
	}
	/* From there to the queues. */
	__device__ __forceinline__ void
	write(u32 round, u32 total)
	{
		const u32 *delta = tile.delta[round % 2];
		u32 queues = round % EXCHANGE_ROUNDS * x.owners, over = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u32 i = j * PRODUCERS + t;

			if (i < total)
			{
				u32 owner = tile.owner[i], to = delta[owner] + i, at = (queues + owner) * ROOM + to;

				if (to < ROOM)
				{
					x.key[at] = tile.key[i];
					x.value[at] = tile.value[i];
				}
				else
					over |= 1u << j;
			}
		}
		if (__any_sync(~0u, over != 0))
			defer(x, over, UNCOUNTED,
				  [&](int j, u32 &bin, u64 &value)
				  {
					  u32 i = j * PRODUCERS + t;

					  bin = bin_of_place(x, tile.hot, tile.owner[i], tile.key[i]);
					  value = tile.value[i];
				  });
	}
};

static __device__ __forceinline__ void
produce(const HistArgs &args, const FastArgs &fast, const HistExchange &x, u32 rounds, bool any_hot)
{
	ExchangeTile &tile = exchange_tile(args, x);
	Producer p(args, fast, x, tile, any_hot);

	p.load_bins(0);
	p.load_values(0);
	p.count(0);
	p.load_bins(1);
	barrier_arrive(COUNTED, PRODUCERS + RESERVERS);
	for (u32 round = 0; round < rounds; round++)
	{
		barrier_wait(RESERVED, PRODUCERS + RESERVERS);
		p.sort(round);
		p.load_values(round + 1);
		barrier_wait(SORTED, PRODUCERS);
		p.count(round + 1);
		p.load_bins(round + 2);
		barrier_arrive(COUNTED, PRODUCERS + RESERVERS);
		p.write(round, tile.base[round % 2][MOST_OWNERS - 1]);
		barrier_arrive(WRITTEN + round % 2, PRODUCERS + RESERVERS);
	}
	/* the tile past the last is empty, but counted */
	if (p.outside)
		atomicAdd(&args.status->outside, (u64) p.outside);
}

/* ---- the reserving warp -------------------------------------------------------------- */

/* After a tile was counted: room for it in the queues, once those are free again. */
static __device__ __forceinline__ void
reserve_tile(const HistExchange &x, ExchangeTile &tile, u32 round)
{
	u32 lane = threadIdx.x % 32, queues = round % EXCHANGE_ROUNDS, *count = tile.count[round % 2],
		rows[OWNERS_A_LANE], got[OWNERS_A_LANE], sum = 0, before;

	barrier_wait(COUNTED, PRODUCERS + RESERVERS);
	if (lane == 0 && round >= EXCHANGE_ROUNDS)
		wait_for(x.consumed + queues, x.owners * (round / EXCHANGE_ROUNDS));
	__syncwarp();
#pragma unroll
	for (int k = 0; k < OWNERS_A_LANE; k++)
	{
		rows[k] = count[k * 32 + lane];
		sum += rows[k];
		count[k * 32 + lane] = 0;
	}
	/* a line of memory at a time, which is one transaction */
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
	barrier_arrive(RESERVED, PRODUCERS + RESERVERS);
}

static __device__ __forceinline__ void
reserve(const HistArgs &args, const HistExchange &x, u32 rounds)
{
	ExchangeTile &tile = exchange_tile(args, x);

	reserve_tile(x, tile, 0);
	for (u32 round = 0; round < rounds; round++)
	{
		if (round + 1 < rounds)
			reserve_tile(x, tile, round + 1);
		barrier_wait(WRITTEN + round % 2, PRODUCERS + RESERVERS);
		if (threadIdx.x % 32 == 0)
			announce(x.produced + round % EXCHANGE_ROUNDS);
	}
}

/* ---- consumers ------------------------------------------------------------------------- */

/* Four neighbouring rows of a queue; neighbours in it often have one bin. */
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
 * Carries of digits d that were added to old.  The word past the digits has room for any number
 * of rows of a call.  Returns whose lowest word overflowed, which is seldom.
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
			u32 carry = (u32) ((int) d[j][1] < 0 ? -fix_carry(DIGITS, 1) : fix_carry(DIGITS, 1)),
				was = atomicAdd(top - place.plane, carry);

			if (fix_overflows(2, was, carry, was + carry))
				atomicAdd(top,
						  (u32) ((int) carry < 0 ? -fix_carry(DIGITS, 2) : fix_carry(DIGITS, 2)));
		}
		if (fix_overflows(2, old[j][2], d[j][2], old[j][2] + d[j][2]))
			atomicAdd(top,
					  (u32) ((int) d[j][2] < 0 ? -fix_carry(DIGITS, 2) : fix_carry(DIGITS, 2)));
	}
	return lowest;
}

/*
 * Sums of doubles, as add_fixes in hist_fast.cuh, without any call, which would take registers:
 * carries are added here, and rows without a place in the window deferred.
 */
static __device__ __forceinline__ void
add_doubles(const HistArgs &args, const FastArgs &fast, const HistExchange &x,
			const ExchangeShared &place, const FixWindow<3> &window, const u32 (&at)[4],
			const double (&v)[4], u32 in)
{
	constexpr int DIGITS = digits_of(FAST_FIX3_F64);
	u32 d[4][DIGITS], old[4][DIGITS];
	u32 out_of_window = 0, lowest = 0;

#pragma unroll
	for (int j = 0; j < 4; j++)
	{
		if (!window.cut(v[j], d[j]) || (u32) __double2hiint(v[j]) == 0x80000000)
			out_of_window |= 1u << j;
		/* the identity */
		if (__double_as_longlong(v[j]) == (long long) (1ULL << 63))
			in &= ~(1u << j);
	}
	out_of_window &= in;
	/* rows of one bin, as of sorted keys, are one addition */
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
	if (digits_overflow(old, d))
		lowest = carry_doubles<DIGITS>(place, at, d, old);
#pragma unroll 1
	for (; lowest; lowest &= lowest - 1)
	{
		int j = __ffs(lowest) - 1;
		u32 a = j == 0 ? at[0] :
			j == 1     ? at[1] :
			j == 2     ? at[2] :
						 at[3],
			carry = (u32) fix_carry(DIGITS, 0), was;

		/* the word that says whether there are rows may be zero */
		leave_negative_zero(args.slot[fast.slot], place.bin_at(a));
		for (int w = 1; w <= DIGITS; w++)
		{
			was = atomicAdd(place.words + w * place.plane + a, carry);
			if (!fix_overflows(w, was, carry, was + carry))
				break;
			carry = (u32) ((int) carry < 0 ? -fix_carry(DIGITS, w) : fix_carry(DIGITS, w));
		}
	}
	if (__any_sync(~0u, out_of_window != 0))
		defer(x, out_of_window, 0,
			  [&](int j, u32 &bin, u64 &value)
			  {
				  bin = place.bin_at(j == 0 ? at[0] : j == 1 ? at[1] : j == 2 ? at[2] : at[3]);
				  value = (u64) __double_as_longlong(j == 0     ? v[0] :
														 j == 1 ? v[1] :
														 j == 2 ? v[2] :
																  v[3]);
			  });
}

template <int KIND>
static __device__ __forceinline__ void
consume(const HistArgs &args, const FastArgs &fast, const HistExchange &x, u32 rounds)
{
	extern __shared__ __align__(16) u32 shared[];
	constexpr int DIGITS = digits_of(KIND);
	static_assert(tile_items(KIND, false) == 4 && sizeof(typename FastInput<KIND>::type) == 8,
				  "rows of a queue");
	u32 thread = threadIdx.x - PRODUCERS - RESERVERS, group = thread / CONSUMERS,
		t = thread % CONSUMERS;
	ExchangeShared place;
	FixWindow<DIGITS> window(args, fast.slot);

	(FastShared &) place =
		place_of<KIND>(args, fast, fast.count >= 0, shared, HOT_LOG2_COPIES, 0, x.plane);
	place.x = &x;
	place.hot = exchange_tile(args, x).hot;
	for (u32 round = group; round < rounds; round += CONSUMER_GROUPS)
	{
		u32 queues = round % EXCHANGE_ROUNDS, n;
		size_t queue = ((size_t) queues * x.owners + blockIdx.x) * ROOM;

		if (t == 0)
			wait_for(x.produced + queues, x.owners * (round / EXCHANGE_ROUNDS + 1));
		barrier_wait(QUEUED + group, CONSUMERS);
		n = min(__ldcg(x.cursor + queues * MOST_OWNERS + blockIdx.x), (u32) ROOM);
		for (u32 base = 0; base < n; base += 4 * CONSUMERS)
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
		barrier_wait(QUEUED + group, CONSUMERS);
		if (t == 0)
		{
			x.cursor[queues * MOST_OWNERS + blockIdx.x] = 0;
			announce(x.consumed + queues);
		}
	}
}

/* ---- the kernels ------------------------------------------------------------------------ */

template <int KIND>
static __global__ void
__launch_bounds__(THREADS, 1)
	exchange_kernel(const __grid_constant__ HistArgs args, const __grid_constant__ FastArgs fast,
					const __grid_constant__ HistExchange x)
{
	extern __shared__ __align__(16) u32 shared[];
	ExchangeTile &tile = exchange_tile(args, x);
	u64 step = (u64) x.owners * TILE;
	u32 rounds = (u32) ((args.nrows + step - 1) / step);
	bool any_hot = false;

	if (!*x.taken)
		return;
	clear_shared(shared, (size_t) args.words * x.plane);
	for (u32 i = threadIdx.x; i < 2 * MOST_OWNERS; i += THREADS)
		tile.count[i / MOST_OWNERS][i % MOST_OWNERS] = 0;
	if (threadIdx.x < HOT_BINS)
	{
		tile.hot[threadIdx.x] = x.hot[threadIdx.x];
		any_hot = tile.hot[threadIdx.x] != NO_BIN;
	}
	any_hot = __syncthreads_or(any_hot);
	if (threadIdx.x < PRODUCERS)
		produce(args, fast, x, rounds, any_hot);
	else if (threadIdx.x < PRODUCERS + RESERVERS)
		reserve(args, x, rounds);
	else
		consume<KIND>(args, fast, x, rounds);
	__syncthreads();
	if (any_hot)
		flush_to_limbs(args, shared + x.local, HOT_LOG2_COPIES, HOT_BINS, x.limb, 0);
	flush_fast<KIND>(args, fast, shared, x.plane, x.local,
					 [&](u32 b) { return bin_of(x, blockIdx.x, b); });
}

/* Deferred rows, into states. */
static __global__ void __launch_bounds__(256)
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

/* What blocks have of hot bins, into states. */
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

/* With fewer rows to start with, a partition is as fast. */
#define LEAST_ROWS (1 << 23)

static bool
exchange_shape(const HistArgs &args, FastArgs &fast, int &kind)
{
	return args.nslots <= 2 && fast_shape(args, fast, kind) &&
		(kind == FAST_FIX3_F64 || kind == FAST_INT_I64);
}

static void
set_owners(const HistArgs &args, const DeviceFacts &facts, HistExchange &x)
{
	x.owners = facts.sms;
	x.magic = (u32) ((1ULL << 32) / x.owners + 1);
	for (x.mask = 0; 2 * x.mask + 1 < x.owners; x.mask = 2 * x.mask + 1)
		;
	x.local = (u32) ((args.bins.nbins + x.owners - 1) / x.owners + 3) & ~3u;
	x.plane = x.local + HOT_ENTRIES;
}

static size_t
exchange_bytes(const HistArgs &args, const HistExchange &x)
{
	return words_bytes(args, x) + sizeof(ExchangeTile);
}

bool
hist_can_exchange(const HistArgs &args, const DeviceFacts &facts, bool always)
{
	HistExchange x = HistExchange();
	FastArgs fast;
	int kind;

	if (!exchange_shape(args, fast, kind) || facts.sms < 2 || facts.sms >= MOST_OWNERS ||
		(!always && args.nrows < LEAST_ROWS))
		return false;
	/* without 128-bit compare-and-swap they would need locks */
	if (args.slot[fast.slot].wide_state && !facts.built_for_90)
		return false;
	if (args.bins.nbins > (int64_t) facts.sms << 16)
		return false;
	set_owners(args, facts, x);
	return x.plane <= 1 << 16 && exchange_bytes(args, x) + 1024 <= facts.smem_per_block;
}

/* What prepare_kernel clears, in words: limbs of hot bins, rows of queues, counts. */
#define QUEUE_WORDS (EXCHANGE_ROUNDS * MOST_OWNERS)
#define COUNT_WORDS (2 * EXCHANGE_ROUNDS + 1)

size_t
hist_exchange_zero_words(const HistArgs &args)
{
	return (size_t) args.limbs * HOT_BINS * 2 + QUEUE_WORDS + COUNT_WORDS;
}

void
hist_exchange_plan(const HistArgs &args, const DeviceFacts &facts, bool always, u32 *zeros,
				   const PartPlan &part, HistExchange &x, Workspace &ws)
{
	set_owners(args, facts, x);
	x.always = always;
	x.key = ws.take<uint16_t>((size_t) EXCHANGE_ROUNDS * x.owners * ROOM);
	x.value = ws.take<u64>((size_t) EXCHANGE_ROUNDS * x.owners * ROOM);
	x.hot = ws.take<u32>(HOT_BINS);
	x.taken = ws.take<u32>(1);
	/* a partition's columns, which are not used then */
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

template <int KIND>
static GpuaggCudaStatus
launch_exchange(const HistArgs &args, const FastArgs &fast, const HistExchange &x,
				const DeviceFacts &facts, cudaStream_t stream)
{
	CUDA_TRY(allow_shared(exchange_kernel<KIND>, facts));
	STATUS_TRY(hist_launch_exchange_sample(args, fast, x, facts, stream));
	CUDA_TRY(launch_together(exchange_kernel<KIND>, x.owners, THREADS, exchange_bytes(args, x),
							 stream, args, fast, x));
	CUDA_TRY(launch_early(deferred_kernel, 4 * facts.sms, 256, 0, facts, stream, args, fast, x));
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

	/* hot bins' planes have copies, and limbs */
	args.part.item = nullptr;
	args.pass_bins = x.plane >> HOT_LOG2_COPIES;
	args.limb = x.limb;
	args.limb_bins = HOT_BINS;
	if (!exchange_shape(args, fast, kind))
		return GPUAGG_CUDA_INVALID;
	return kind == FAST_FIX3_F64 ? launch_exchange<FAST_FIX3_F64>(args, fast, x, facts, stream) :
								   launch_exchange<FAST_INT_I64>(args, fast, x, facts, stream);
}
