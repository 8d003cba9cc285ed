/*
 * hist_exchange.cuh
 *	  Owners of bins and the table of hot bins, for hist_exchange.cu and hist_exchange_sample.cu.
 *
 * An exchange gives each multiprocessor a share of the bins: it owns them.  An owner is the number
 * of a multiprocessor's block, from 0 to x.owners - 1; a bin has a number among its owner's bins,
 * `local`.
 *
 *	plane	one word for each bin of an owner in shared memory: first its own bins, in the order of
 *			local numbers, and then 1 << EXCHANGE_LOG2_HOT_COPIES copies of each hot bin
 *	place	an index in a plane
 *	hot bin	a bin with very many rows, as the sample says; every block adds its own rows of hot
 *			bins, so every block has places for them
 *
 * x.hot is a hash table of the hot bins with buckets of two; NO_BIN marks an empty entry.
 */
#ifndef GPUAGG_HIST_EXCHANGE_CUH
#define GPUAGG_HIST_EXCHANGE_CUH

#include "hist_fast.cuh"

/* Threads of the reserving warp. */
#define EXCHANGE_RESERVER_THREADS 32
/* Threads of a block: 28 warps, which leaves 72 registers a thread. */
#define EXCHANGE_THREADS_PER_BLOCK \
	(EXCHANGE_PRODUCER_THREADS + EXCHANGE_RESERVER_THREADS + \
	 EXCHANGE_CONSUMER_GROUPS * EXCHANGE_CONSUMER_THREADS)

/* Rows of a tile, and rows for which a queue has room. */
#define EXCHANGE_TILE_ROWS (EXCHANGE_PRODUCER_THREADS * EXCHANGE_ROWS_PER_PRODUCER)
#define EXCHANGE_QUEUE_ROWS (EXCHANGE_TILES_PER_QUEUE * EXCHANGE_TILE_ROWS)
/*
 * Greatest number of owners plus one, five for each lane of a warp.  The last entry of a table of
 * owners has no owner, so its first position in a tile is the end of the tile.
 */
#define MOST_OWNERS 160
#define OWNERS_A_LANE (MOST_OWNERS / 32)

/* Entries of the table of hot bins, and places of hot bins in a plane. */
#define HOT_BINS (2 << EXCHANGE_LOG2_HOT_BUCKETS)
#define HOT_ENTRIES (HOT_BINS << EXCHANGE_LOG2_HOT_COPIES)

/* ---- owners ---------------------------------------------------------------------- */

/* Returns n / x.owners.  n must be below 2^32 / x.owners. */
static __device__ __forceinline__ u32
divide_by_owners(const HistExchange &x, u32 n)
{
	return __umulhi(n, x.magic);
}

/*
 * Returns the owner of bin local * x.owners.  This bin and the x.owners - 1 bins after it have the
 * local number `local`, and each of them has a different owner.  So neighbouring bins, which sorted
 * keys have, are spread over the owners.  The first owner depends on `local`, so that bins that are
 * multiples of a number are spread, too.
 */
static __device__ __forceinline__ u32
first_owner(const HistExchange &x, u32 local)
{
	return local & x.mask;
}

/* The owner of a bin, and the bin's place there. */
struct OwnedBin
{
	u32 owner;
	u32 local; /* number of the bin among its owner's bins, which is its place in a plane */
};

/* Returns the owner of a bin and its local number. */
static __device__ __forceinline__ OwnedBin
owner_of(const HistExchange &x, u32 bin)
{
	u32 local = divide_by_owners(x, bin), owner = bin - local * x.owners + first_owner(x, local);

	return {owner < x.owners ? owner : owner - x.owners, local};
}

/* Returns the bin of an owner and a local number: the inverse of owner_of. */
static __device__ __forceinline__ u32
bin_of(const HistExchange &x, u32 owner, u32 local)
{
	u32 first = first_owner(x, local);

	return local * x.owners + owner - first + (owner < first ? x.owners : 0);
}

/* Returns the bucket of a bin in the table of hot bins. */
static __device__ __forceinline__ u32
hot_bucket(u32 bin)
{
	return bin * 0x9e3779b1u >> (32 - EXCHANGE_LOG2_HOT_BUCKETS);
}

/* Returns the entry of a bin in the table of hot bins, or HOT_BINS if the bin is not hot. */
static __device__ __forceinline__ u32
hot_entry(const u32 *hot, u32 bin)
{
	u32 bucket = hot_bucket(bin);
	uint2 two = ((const uint2 *) hot)[bucket];

	return two.x == bin ? 2 * bucket : two.y == bin ? 2 * bucket + 1 : HOT_BINS;
}

/* Returns the bin at a place of an owner's plane. */
static __device__ __forceinline__ u32
bin_of_place(const HistExchange &x, const u32 *hot, u32 owner, u32 at)
{
	return at < x.local ? bin_of(x, owner, at) : hot[(at - x.local) >> EXCHANGE_LOG2_HOT_COPIES];
}

/*
 * Queues the kernel that writes the table of hot bins to x.hot, and to *x.taken whether rows are
 * exchanged at all.  If they are not, the partition takes them.
 */
GpuaggCudaStatus hist_launch_exchange_sample(const HistArgs &args, const FastArgs &fast,
											 const HistExchange &x, const DeviceFacts &facts,
											 cudaStream_t stream);

#endif /* GPUAGG_HIST_EXCHANGE_CUH */
