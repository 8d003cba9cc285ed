/*
 * hist_exchange.cuh
 *	  Sizes of an exchange, owners of bins and the table of hot ones: what hist_exchange.cu shares
 *	  with its sample.
 */
#ifndef GPUAGG_HIST_EXCHANGE_CUH
#define GPUAGG_HIST_EXCHANGE_CUH

#include "hist_fast.cuh"

/* One warp reserves room in queues for a tile's rows, and announces tiles that were written. */
#define EXCHANGE_RESERVER_THREADS 32
/* Threads of a block: 28 warps, which leaves 72 registers a thread. */
#define EXCHANGE_THREADS_PER_BLOCK \
	(EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS + \
	 EXCHANGE_CONSUMER_GROUPS * EXCHANGE_CONSUMER_THREADS)

/* Rows of a tile, and rows that a queue has room for. */
#define EXCHANGE_TILE_ROWS (EXCHANGE_PRODUCER_THREADS * EXCHANGE_ROWS_PER_PRODUCER)
#define EXCHANGE_QUEUE_ROWS (EXCHANGE_TILES_PER_QUEUE * EXCHANGE_TILE_ROWS)
/* Five a lane of a warp; there are fewer, so that the last one's first place is the end. */
#define MOST_OWNERS 160
#define OWNERS_A_LANE (MOST_OWNERS / 32)

/* Hot bins: a table of buckets of two, and copies of their words. */
#define HOT_BINS (2 << EXCHANGE_LOG2_HOT_BUCKETS)
#define HOT_ENTRIES (HOT_BINS << EXCHANGE_LOG2_HOT_COPIES)

/* ---- owners ---------------------------------------------------------------------- */

/* n / owners, for n below 2^32 / owners. */
static __device__ __forceinline__ u32
by_owners(const HistExchange &x, u32 n)
{
	return __umulhi(n, x.magic);
}

/*
 * Neighbouring bins have different owners, as rows that are sorted come in runs; and so have
 * multiples of a number, as each row of bins begins elsewhere.
 */
static __device__ __forceinline__ u32
first_owner(const HistExchange &x, u32 local)
{
	return local & x.mask;
}

struct Owned
{
	u32 owner;
	u32 local; /* among its bins */
};

static __device__ __forceinline__ Owned
owner_of(const HistExchange &x, u32 bin)
{
	u32 local = by_owners(x, bin), owner = bin - local * x.owners + first_owner(x, local);

	return {owner < x.owners ? owner : owner - x.owners, local};
}

static __device__ __forceinline__ u32
bin_of(const HistExchange &x, u32 owner, u32 local)
{
	u32 first = first_owner(x, local);

	return local * x.owners + owner - first + (owner < first ? x.owners : 0);
}

static __device__ __forceinline__ u32
hot_bucket(u32 bin)
{
	return bin * 0x9e3779b1u >> (32 - EXCHANGE_LOG2_HOT_BUCKETS);
}

/* The place of a bin among the hot ones, or HOT_BINS. */
static __device__ __forceinline__ u32
hot_entry(const u32 *hot, u32 bin)
{
	u32 bucket = hot_bucket(bin);
	uint2 two = ((const uint2 *) hot)[bucket];

	return two.x == bin ? 2 * bucket : two.y == bin ? 2 * bucket + 1 : HOT_BINS;
}

static __device__ __forceinline__ u32
bin_of_place(const HistExchange &x, const u32 *hot, u32 owner, u32 at)
{
	return at < x.local ? bin_of(x, owner, at) : hot[(at - x.local) >> EXCHANGE_LOG2_HOT_COPIES];
}

/* Hot bins, and whether rows are exchanged at all. */
GpuaggCudaStatus hist_launch_exchange_sample(const HistArgs &args, const FastArgs &fast,
											 const HistExchange &x, const DeviceFacts &facts,
											 cudaStream_t stream);

#endif /* GPUAGG_HIST_EXCHANGE_CUH */
