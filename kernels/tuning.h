/*
 * tuning.h
 *	  The tuning constants of all kernels, as data.
 *
 * A tuning constant is a number that a measurement chose: threads, rows of a thread, thresholds,
 * sizes of samples.  Changing one must not change any result.  Numbers that the code depends on
 * (masks, sentinels, layouts, limits of the API, rows of a vector load) stay next to that code.
 * TUNING.md says how to measure, and which alternatives were slower.  All values were chosen on an
 * H100 (compute capability 9.0) unless TUNING.md says otherwise.
 *
 * There are three sections:
 *
 * 1. The model of histograms (hist_model.h), which C code of the server reads, too: macros.
 * 2. Launch values, which host code reads to size grids and shared memory: constants.  Host code is
 *	  compiled once for all architectures, so each has one value for all of them.  Host and device
 *	  code therefore cannot disagree.
 * 3. Device values, which only device code reads: members of one struct for each compute
 *	  capability.  A later capability inherits the values of an earlier one.  Device code says
 *	  Tuned::NAME and gets the value of the capability that it is compiled for.
 *
 * To give a device value another value on a new capability, redefine the member in the struct of
 * that capability.  Host code must not read Tuned, and Tuned must not appear in the parameters or
 * template arguments of a kernel (__global__), as the host could pick another instance.
 *
 * To give a launch value another value by capability, make it a template argument of the kernel and
 * let the host choose the instance from DeviceFacts, as hist_tiles_part.cu does with the threads.
 */
#ifndef GPUAGG_TUNING_H
#define GPUAGG_TUNING_H

/* ---- 1. the model of histograms (hist_model.h) --------------------------------------------- */

/* log2 of the most copies of a bin in a block; more copies than lanes of a warp gain nothing. */
#define HIST_MAX_LOG2_COPIES 5
/* Copies are made until a block has this many bins; above, equal bins in a warp are rare. */
#define HIST_SPREAD_BINS 4096
/*
 * Least rows of a block for each word of its copies, which have to be cleared and flushed; and
 * words of copies that need no rows.
 */
#define HIST_ROWS_PER_COPIED_WORD 8
#define HIST_MIN_COPIED_WORDS 4096
/* log2 of the most copies of the states in the L2 cache. */
#define HIST_MAX_LOG2_GLOBAL 10
/* Least rows for each copied state, and least bytes of the L2 cache for each of its bytes. */
#define HIST_ROWS_PER_GLOBAL_STATE 8
#define HIST_L2_BYTES_PER_GLOBAL_BYTE 4
/* Threads in flight for each copy of a state in the L2 cache. */
#define HIST_THREADS_PER_GLOBAL_STATE 32
/* Rows inside the window that take as long as one change of a state under a lock. */
#define HIST_ROWS_PER_LOCKED_CHANGE 4
/* Most passes over the rows before they are partitioned: of counts, and of anything else. */
#define HIST_MAX_PASSES_OF_COUNTS 4
#define HIST_MAX_PASSES 3
/* Most partitions; with more bins, states are changed in the L2 cache. */
#define HIST_MAX_PARTITIONS 16384
/* Partitions aimed at: with fewer, multiprocessors idle at the end; with more, writes get short. */
#define HIST_GOOD_PARTITIONS 256
/* Locks of a block's entries of argmax and argmin. */
#define HIST_ARGMAX_LOCKS 1024
/* Most entries of a block that has copies of its bins; in more, new rows win too often. */
#define HIST_ARGMAX_MAX_COPIED_ENTRIES 1024
/* Rows for each entry that a block reads first, from the end of its range. */
#define HIST_ARGMAX_LAST_ROWS_PER_ENTRY 8
/* States that a block reads and writes in the time of one row. */
#define HIST_ARGMAX_STATES_PER_ROW 4

#ifdef __cplusplus

/* ---- 2. launch values: read by host and device code ----------------------------------------- */

/* Histograms in shared memory, general kernels (hist_kernels.cu, hist.cu). */

/* Threads of a block: one block on a multiprocessor. */
static constexpr int HIST_THREADS_PER_BLOCK = 512;
/* Blocks of a multiprocessor when rows were partitioned: one flushes while the other reads. */
static constexpr int HIST_PARTITION_BLOCKS_PER_SM = 2;
/* Warps of the preparing kernel, which takes the samples. */
static constexpr int HIST_PREPARE_WARPS = 16;
/* Threads of a block, and most blocks, of the kernel that folds limbs into states. */
static constexpr int HIST_FOLD_THREADS_PER_BLOCK = 128;
static constexpr int HIST_FOLD_MAX_BLOCKS = 8192;
/* The kernel that makes a column of bins: threads of a block, blocks of a multiprocessor. */
static constexpr int HIST_BINS_THREADS_PER_BLOCK = 256;
static constexpr int HIST_BINS_BLOCKS_PER_SM = 8;
/* The kernel that finds the range of a key: threads of a block, blocks of a multiprocessor. */
static constexpr int HIST_RANGE_THREADS_PER_BLOCK = 256;
static constexpr int HIST_RANGE_BLOCKS_PER_SM = 8;
/* log2 of the locks in device memory, which states share by a hash of their bin. */
static constexpr int HIST_LOG2_LOCKS = 14;
/* A warp's entries for hot bins: at least, at most, and where states are in the L2 cache. */
static constexpr int HIST_MIN_HOT_ENTRIES_PER_WARP = 4;
static constexpr int HIST_MAX_HOT_ENTRIES_PER_WARP = 64;
static constexpr int HIST_GLOBAL_HOT_ENTRIES_PER_WARP = 8;
/* Extremes of decimals are kept in shared memory if it has this many bytes for each bin. */
static constexpr int HIST_DECIMAL_EXTREME_BYTES_PER_BIN = 16;

/* States in the L2 cache (hist_global.cu). */

/* Threads of a block; blocks of a multiprocessor; most blocks that initialize or merge states. */
static constexpr int GLOBAL_THREADS_PER_BLOCK = 256;
static constexpr int GLOBAL_BLOCKS_PER_SM = 8;
static constexpr int GLOBAL_MAX_STATE_BLOCKS = 4096;

/* Common shapes (hist_fast.cu) and deviations (hist_deviations.cu). */

/* Threads of a multiprocessor.  Sums of floats need 128 registers, or they spill. */
static constexpr int FAST_THREADS_PER_SM = 1024;
static constexpr int FAST_FLOAT_SUM_THREADS_PER_SM = 512;
/* Threads of a block, one row each: 64 registers, as the loop has no calls. */
static constexpr int DEVIATIONS_THREADS_PER_BLOCK = 1024;

/* Sums of floats, with a count and a sum of int32 (hist_sums.cu). */

/* Threads of a block: one block on a multiprocessor. */
static constexpr int SUMS_THREADS_PER_BLOCK = 768;

/* Counts and sums of int32 straight to their states (hist_narrow.cu). */

/* Threads of a block: one block on a multiprocessor. */
static constexpr int NARROW_THREADS_PER_BLOCK = 1024;
/*
 * From this many bins on, two blocks of a cluster combine their sums before one of them changes the
 * states, because so many atomics on states take long.
 */
static constexpr int NARROW_MIN_PAIRED_BINS = 8192;

/* A lone count, a byte a bin (hist_counts.cu). */

/* Threads of a block: one block on a multiprocessor. */
static constexpr int COUNTS_THREADS_PER_BLOCK = 1024;
/* Small calls start one block for this many rows. */
static constexpr int COUNTS_MIN_ROWS_PER_BLOCK = 4096;

/* Partitions of rows by bin range (partition.cuh, hist_partition.cu, hist.cu). */

/* A tile, which one block sorts: threads, and rows of a thread.  Larger tiles write longer. */
static constexpr int PARTITION_THREADS_PER_BLOCK = 512;
static constexpr int PARTITION_ROWS_PER_THREAD = 16;
/* Blocks of a multiprocessor that count the rows of partitions. */
static constexpr int PARTITION_COUNT_BLOCKS_PER_SM = 2;
/* More partitions take two steps, the first to groups of partitions. */
static constexpr int PARTITION_MAX_IN_ONE_STEP = 512;
/*
 * A large partition is split into items, which blocks take.  All rows would be about this many
 * items for each multiprocessor; an item has at least this many rows; and a partition of up to this
 * many items is not split.
 */
static constexpr int PARTITION_SPLIT_ITEMS_PER_SM = 8;
static constexpr int PARTITION_MIN_SPLIT_ITEM_ROWS = 4096;
static constexpr int PARTITION_MAX_ITEM_SPLITS = 4;

/* Rows exchanged between multiprocessors (hist_exchange*.cu). */

/* Producers: threads of a block that sort rows by owner. */
static constexpr int EXCHANGE_PRODUCER_THREADS = 416;
/* Consumers: threads of each group that adds rows, and groups, which take rounds in turn. */
static constexpr int EXCHANGE_CONSUMER_THREADS = 224;
static constexpr int EXCHANGE_CONSUMER_GROUPS = 2;
/* Rows of a producer in a tile. */
static constexpr int EXCHANGE_ROWS_PER_PRODUCER = 8;
/* Room of a queue, in tiles. */
static constexpr int EXCHANGE_TILES_PER_QUEUE = 4;
/* Rounds in flight; each multiprocessor has as many queues. */
static constexpr int EXCHANGE_ROUNDS = 5;
/* Table of hot bins: log2 of its buckets of two bins, log2 of the copies of a bin's words. */
static constexpr int EXCHANGE_LOG2_HOT_BUCKETS = 6;
static constexpr int EXCHANGE_LOG2_HOT_COPIES = 2;
/* Calls of fewer rows are partitioned, which is as fast. */
static constexpr int EXCHANGE_MIN_ROWS = 1 << 23;
/* The kernel that adds deferred rows: threads of a block, blocks of a multiprocessor. */
static constexpr int EXCHANGE_DEFERRED_THREADS_PER_BLOCK = 256;
static constexpr int EXCHANGE_DEFERRED_BLOCKS_PER_SM = 4;
/* Threads of the one block that samples. */
static constexpr int EXCHANGE_SAMPLE_THREADS = 1024;

/* Tiles (hist_tiles*). */

/* Threads of a block: of the light kernel (64 registers), and of the others (128). */
static constexpr int TILES_LIGHT_THREADS_PER_BLOCK = 1024;
static constexpr int TILES_THREADS_PER_BLOCK = HIST_THREADS_PER_BLOCK;

/* Argmax and argmin (hist_argmax.cu). */

/* Threads of a block: of kernels that read vectors of rows, and of the one for any columns. */
static constexpr int ARGMAX_THREADS_PER_BLOCK = 1024;
static constexpr int ARGMAX_ANY_COLUMNS_THREADS_PER_BLOCK = 512;

/* Hash tables (group.cu). */

/* Threads of a block of a lookup: without a cache, and with one, one block on a multiprocessor. */
static constexpr int GROUP_THREADS_PER_BLOCK = 256;
static constexpr int GROUP_CACHED_THREADS_PER_BLOCK = 1024;
/* Tables of up to this many groups for each entry of the cache use it. */
static constexpr int GROUP_MAX_GROUPS_PER_CACHE_ENTRY = 2;
/* Growth of a table: threads of a block, blocks of a multiprocessor. */
static constexpr int GROUP_GROW_THREADS_PER_BLOCK = 256;
static constexpr int GROUP_GROW_BLOCKS_PER_SM = 8;

/* Rows partitioned by key (group_partition.cu). */

/* Most groups of a partition; the words of their bins must fit shared memory. A power of two. */
static constexpr int KEY_PART_MOST_GROUPS = 4096;
/* Groups of a partition that are aimed at: random hashes make few partitions much larger. */
static constexpr int KEY_PART_GOOD_GROUPS = 3072;
/* log2 of the partitions, at least and at most; of those that one step makes. */
static constexpr int KEY_PART_MIN_LOG2 = 8;
static constexpr int KEY_PART_MAX_LOG2 = 15;
static constexpr int KEY_PART_MAX_LOG2_IN_ONE_STEP = 9;
/* Rows of a thread in a tile of up to this many partitions; larger tiles for more. */
static constexpr int KEY_PART_ROWS_PER_THREAD = 8;
static constexpr int KEY_PART_MOST_IN_SMALL_TILE = 256;
/* The kernel that counts rows: threads of a block, one block on a multiprocessor. */
static constexpr int KEY_PART_COUNT_THREADS_PER_BLOCK = 1024;
/* The kernel that numbers groups: threads of a block, blocks of a multiprocessor. */
static constexpr int KEY_PART_NUMBER_THREADS_PER_BLOCK = 512;
static constexpr int KEY_PART_NUMBER_BLOCKS_PER_SM = 2;

/* Runs (runs.cu). */

/* Threads of a block; blocks of a multiprocessor, which set the number of chunks. */
static constexpr int RUNS_THREADS_PER_BLOCK = 256;
static constexpr int RUNS_BLOCKS_PER_SM = 4;
/* Blocks that number the rows before a sort. */
static constexpr int RUNS_NUMBER_ROWS_BLOCKS = 2048;

/* Order of rows for segments (segmented_keys.cu). */

/* Threads of a block, and most blocks. */
static constexpr int SORT_THREADS_PER_BLOCK = 256;
static constexpr int SORT_MAX_BLOCKS = 65536;

/* Segmented reductions (segmented*), by the bytes of an operator's input and of its state. */
template <int INPUT_SIZE, int STATE_SIZE> struct SegmentedTuning
{
	/* Warps of a block; each works alone, so a block needs few. */
	static constexpr int WARPS_PER_BLOCK = 2;
	/* Elements of a lane, next to each other: 256 bytes of small elements.  A power of two. */
	static constexpr int ELEMENTS_PER_LANE = INPUT_SIZE <= 8 ? 32 :
		INPUT_SIZE == 16                                     ? 8 :
		INPUT_SIZE <= 72                                     ? 4 :
		INPUT_SIZE <= 128                                    ? 2 :
															   1;
	/* Segments of up to this many elements are folded by one lane each; 0: none. */
	static constexpr int MAX_TINY_ELEMENTS = STATE_SIZE <= 48 ? 8 : 0;
	/* Limits of the segment ends of a tile. */
	static constexpr int MAX_ENDS_PER_TILE = STATE_SIZE <= 8 ? 256 : 128;
	static constexpr int MIN_ENDS_PER_TILE = STATE_SIZE <= 48 ? 64 : 16;
	/* Elements that take as long as the end of a segment. */
	static constexpr int ELEMENTS_PER_END = INPUT_SIZE <= 8 ? 16 : INPUT_SIZE == 16 ? 8 : 4;
	/* The fix-up, one block: threads, and blocks that a thread loads together. */
	static constexpr int FIXUP_THREADS = STATE_SIZE > 64 ? 128 : 512;
	static constexpr int FIXUP_BLOCKS_PER_LOAD = STATE_SIZE <= 16 ? 4 : 1;
};

/* ---- 3. device values: read by device code only --------------------------------------------- */

/* Compute capability 8.0 and later. */
struct TuningSm80
{
	/* Histograms in shared memory, general kernels (hist_kernels.cu, hist_change.cuh). */

	/* Rows of a thread in a tile. */
	static constexpr int HIST_ROWS_PER_THREAD = 8;
	/* Rows of a thread whose bins are found together. */
	static constexpr int HIST_BINS_ROWS_PER_THREAD = 8;
	/* Lines of 32 rows whose equal bins are counted, to choose the number of copies. */
	static constexpr int HIST_RACE_SAMPLE_LINES = 128;
	/* Rows of a float column that are sampled, to place its window. */
	static constexpr int HIST_WINDOW_SAMPLE_ROWS = 4096;
	/* Hits of a hot bin are counted up to here; each try of another bin to take its entry takes
	 * one off. */
	static constexpr int HIST_MAX_HOT_HITS = 64;
	/* A single row tries to take the entry of another bin once in this many times. */
	static constexpr int HIST_ROWS_PER_HOT_TRY = 16;
	/* Lost compare-and-swaps after which a warp combines its rows by bin (hist_cas.cuh). */
	static constexpr int HIST_CAS_TRIES = 3;

	/* States in the L2 cache (hist_global.cu). */

	/* Rows of a thread in a tile. */
	static constexpr int GLOBAL_ROWS_PER_THREAD = 4;

	/* Common shapes (hist_fast.cu). */

	/* Rows of a thread in a tile, as registers allow: counts, operators of int32, others. */
	static constexpr int FAST_COUNT_ROWS_PER_THREAD = 8;
	static constexpr int FAST_INT32_ROWS_PER_THREAD = 6;
	static constexpr int FAST_ROWS_PER_THREAD = 4;
	/* Extremes of up to this many bins have bounds, which most rows do not pass. */
	static constexpr int FAST_MAX_BOUNDED_BINS = 64;
	/* Tiles between two searches for better bounds, after the first ones. */
	static constexpr int FAST_TILES_PER_BOUND_SEARCH = 8;

	/* Sums of floats, with a count and a sum of int32 (hist_sums.cu). */

	/* Rows of a thread in a tile, as registers allow. */
	static constexpr int SUMS_ROWS_PER_THREAD = 4;

	/* Counts and sums of int32 (hist_narrow.cu). */

	/* Vectors of four rows that a thread has in flight: of counts, and where there is a sum. */
	static constexpr int NARROW_COUNT_VECTORS_PER_THREAD = 4;
	static constexpr int NARROW_SUM_VECTORS_PER_THREAD = 2;
	/* Words that a thread loads together when it flushes. */
	static constexpr int NARROW_FLUSH_WORDS_PER_THREAD = 8;

	/* A lone count in bytes (hist_counts.cu). */

	/* Vectors of four rows of a thread in a tile; the next tile is in flight. */
	static constexpr int COUNTS_VECTORS_PER_THREAD = 4;

	/* The sample of an exchange (hist_exchange_sample.cu). */

	/* Samples of a thread; windows that they are taken from. */
	static constexpr int EXCHANGE_SAMPLES_PER_THREAD = 8;
	static constexpr int EXCHANGE_SAMPLE_WINDOWS = 64;
	/* log2 of the cells that count samples by a hash of their bin. */
	static constexpr int EXCHANGE_SAMPLE_LOG2_CELLS = 12;
	/* Samples that make a bin hot, of all. */
	static constexpr int EXCHANGE_HOT_BIN_SAMPLES = 32;
	/* Samples of one window for one owner that send the call to a partition. */
	static constexpr int EXCHANGE_CROWD_SAMPLES = 16;
	/* Samples outside the window of a sum, of all, that send the call to a partition. */
	static constexpr int EXCHANGE_OUT_OF_WINDOW_SAMPLES = 128;

	/* Hash tables (group.cu). */

	/* Keys of a thread in a tile. */
	static constexpr int GROUP_KEYS_PER_THREAD = 4;
	/* Buckets of the cache in shared memory where a key may be, from its first. */
	static constexpr int GROUP_CACHE_BUCKETS_PER_KEY = 8;

	/* Rows partitioned by key (group_partition.cu). */

	/* Keys that a thread loads together to count rows, and to number groups. */
	static constexpr int KEY_PART_COUNT_ROWS_PER_THREAD = 8;
	static constexpr int KEY_PART_NUMBER_ROWS_PER_THREAD = 8;
};

/* Compute capability 9.0 and later: no value differs. */
struct TuningSm90 : TuningSm80
{
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
typedef TuningSm90 Tuned;
#else
typedef TuningSm80 Tuned;
#endif

#endif /* __cplusplus */

#endif /* GPUAGG_TUNING_H */
