/*
 * device_internal.h
 *	  What the C files of the CUDA device layer share: the query on a device, and their functions.
 *
 * README.md has the order of the files, and says which thread and which stream does what.
 *
 * All device memory is allocated in stream order from the device's memory pool, after it was taken
 * from the server's budget.  Functions return a DeviceStatus; if it is not DEVICE_OK, *error has a
 * text.
 */
#ifndef GPUAGG_DEVICE_INTERNAL_H
#define GPUAGG_DEVICE_INTERNAL_H

#include <cuda_runtime_api.h>

#include "device_cuda/kernels.h"
#include "gpuagg_cuda.h"
#include "server/budget.h"
#include "server/resident_plan.h"
#include "server/spin.h"
#include "server/device_store.h"
#include "strategy.h"

/* A connection's copy stream, and its buffers on the device. */
struct Lane
{
	int device;
	cudaStream_t stream; /* copies */
	char *arena;         /* pinned host memory; the connection owns it */
	char *memory;        /* device memory, as large as the arena; NULL: not allocated yet */
	size_t buffer_bytes;
	int buffers;
	/* for each buffer: */
	cudaEvent_t copy_began[WIRE_BUFFERS];
	cudaEvent_t copied[WIRE_BUFFERS];
	cudaEvent_t reduce_began[WIRE_BUFFERS];
	cudaEvent_t reduced[WIRE_BUFFERS]; /* after it the buffer may be overwritten */
	bool timing[WIRE_BUFFERS];         /* the time between the last two is not in kernel_ms yet */
	double kernel_ms;                  /* time of reductions since the last lane_settle */
	Lane *next;                        /* in the list of idle lanes */
};

/* ---- streams.c: streams ---- */

/*
 * Takes a stream with nothing queued, and STREAM_PAGE_BYTES of pinned host memory, from the list of
 * idle streams, or makes them.  stream_give returns both.
 */
#define STREAM_PAGE_BYTES 12288
extern cudaError_t stream_take(int device, cudaStream_t *stream, char **page);
extern void stream_give(int device, cudaStream_t stream, char *page);
/*
 * Wait for a stream or an event.  They poll for a moment before they sleep, because waking a thread
 * takes longer than a short kernel.  Use them for all waits on the way to a query's answer, but not
 * for large copies.
 */
extern cudaError_t stream_wait(cudaStream_t stream);
extern cudaError_t event_wait(cudaEvent_t event);

/* ---- the query on a device ---- */

/*
 * An array in device memory, whose bytes were taken from the budget.  Only memory_reserve,
 * memory_grow and memory_release change it, so that memory and budget agree after any failure.
 */
typedef struct DeviceMemory
{
	void *at; /* NULL: nothing is allocated */
	size_t bytes;
} DeviceMemory;

/* Rows to be reduced, in device memory: a batch, or a slice of stored and computed columns. */
typedef struct Rows
{
	int64_t nrows;          /* at most STORE_SEGMENT_ROWS */
	const int64_t *key_min; /* for each key, as in WireBatch; host memory */
	const int64_t *key_max;
	const uint8_t *filter; /* one byte per row, 0: the row does not count; or NULL */
	/* FORM_RUNS: the runs of equal keys, as in GpuaggRuns; or NULL */
	const uint32_t *heads;
	const int32_t *before;
	DeviceColumn cols[WIRE_MAX_COLS];
} Rows;

/* How the groups of a query are stored.  A group's bin is its index in the arrays of states. */
typedef enum GroupForm
{
	FORM_UNKNOWN, /* no rows yet */
	FORM_SINGLE,  /* one group */
	FORM_DIRECT,  /* the bin is a mixed-radix number made of the keys */
	FORM_HASH,    /* a hash table numbers the keys in the order in which they are inserted */
	FORM_RUNS     /* one bin for each run of equal keys; the rows are in the order of the keys */
} GroupForm;

/* FORM_DIRECT: the keys that have bins.  Key k is in min[k] .. max[k], or NULL if has_null[k]. */
typedef struct KeyRanges
{
	int64_t min[WIRE_MAX_KEYS];
	int64_t max[WIRE_MAX_KEYS];
	bool has_null[WIRE_MAX_KEYS]; /* some batch had NULLs */
	int64_t
		extent[WIRE_MAX_KEYS]; /* number of values; with has_null one more, the last, for NULL */
} KeyRanges;

/* The states of all groups, by bin. */
typedef struct GroupStates
{
	int64_t capacity; /* number of groups that every array has room for */
	DeviceMemory slot[WIRE_MAX_SLOTS];
	/*
	 * int64 number of rows in each bin.  Only allocated if groups may have no rows, and no slot
	 * counts the rows (count_slot is -1).
	 */
	DeviceMemory row_counts;
	/*
	 * If groups may have no rows: room for the list of those with rows, and a workspace behind it.
	 */
	DeviceMemory list;
	/* packed keys of key_bytes each, for FORM_RUNS, and a hash table of shortened keys */
	DeviceMemory keys;
} GroupStates;

/* Returns the offset of the workspace in GroupStates.list. */
static inline size_t
groups_list_bytes(int64_t capacity)
{
	return (capacity * sizeof(int32_t) + 255) / 256 * 256;
}

/* FORM_HASH: a hash table, and the one allocation that contains its arrays. */
typedef struct HashTable
{
	GpuaggGroupTable table;
	DeviceMemory memory;
	bool shortened; /* its keys stand for ones of more than 16 bytes (packed_keys.c) */
	bool unfilled;  /* it has keys, but no slots yet: a lookup must fill them first */
} HashTable;

/* Most parts of a key that exceeds 16 bytes: a column each, and one for NULL bits. */
#define WIDE_MOST_PARTS (WIRE_MAX_KEYS + 1)

/*
 * The groups of a query.  group_tables.c changes all of this together, as the last step of a
 * change: if a change fails, the groups are as they were.
 */
typedef struct Groups
{
	GroupForm form;
	GroupStates states;
	KeyRanges ranges; /* FORM_DIRECT */
	HashTable hash;   /* FORM_HASH */
	/* the tables of all parts but the last, of keys of more than 16 bytes, whatever the form */
	HashTable parts[WIDE_MOST_PARTS - 1];
	bool runs_may_be_empty;     /* FORM_RUNS: a filter may leave no rows of some run */
	int source[WIRE_MAX_SLOTS]; /* a slot from whose states this slot's can be derived; SOURCE_* */
	int64_t ntable;             /* FORM_HASH: groups in the table */
	int64_t nstored;            /* shortened keys: the first so many groups have whole keys */
	bool lacks_keys;            /* the table may have further groups, whose keys are lost */
	int64_t n; /* FORM_HASH: groups of the rows reduced so far; else set by finish */
} Groups;

/* Values of Groups.source: */
#define SOURCE_NONE (-1)                 /* the slot has its own states */
#define SOURCE_ROW_COUNTS WIRE_MAX_SLOTS /* they equal GroupStates.row_counts */

/* Where groups_locate found the bins of the rows that are being reduced. */
typedef struct RowLocation
{
	GpuaggBins bins;
	GpuaggRuns runs; /* used instead, if it has heads: the runs of equal keys that the rows form */
	const GpuaggKeyParts *parts; /* not NULL: the rows were partitioned by key, and no row has a
									bin */
} RowLocation;

/* Device memory for the rows that are being reduced; its contents do not outlive them. */
typedef struct Scratch
{
	DeviceMemory workspace; /* of the kernel library */
	DeviceMemory bins;      /* int32 of each row */
	int64_t nzeros;         /* FORM_SINGLE: the first so many entries of bins are 0 */
	DeviceMemory slot_bins; /* int32 of each row, for a slot with several bins per group */
	DeviceMemory keys;      /* packed, of each row */
	DeviceMemory staging;   /* groups on their way to another array, device or the client */
	DeviceMemory filter;    /* one byte for each row of a slice */
	DeviceMemory computed;  /* computed columns of a slice */
	DeviceMemory plan;      /* what kernels read of a RESIDENT: ranges, programs, cells */
} Scratch;

/* Device memory for runs of equal keys: where they begin, and rows that were sorted by key. */
typedef struct RunScratch
{
	DeviceMemory heads;  /* uint32 words with a bit per row: the row begins a run */
	DeviceMemory before; /* int32 for each word, and one more: number of runs before it */
	DeviceMemory sorted_keys;
	DeviceMemory row_numbers; /* uint32 row number of each sorted key */
} RunScratch;

/* Columns that the query reads where they are stored. */
typedef struct StoredInput
{
	StoreHold *holds; /* list; the query releases them when the device has finished with them */
	int nmessages;    /* RESIDENT messages so far */
} StoredInput;

/* Rows that were partitioned by key (key_parts.c). */
typedef struct PartedRows
{
	GpuaggKeyParts parts;
	DeviceMemory memory; /* its arrays; their contents do not outlive the rows */
} PartedRows;

typedef struct OrderedRows OrderedRows;

/* The values of one WireSet. */
typedef struct SetValues
{
	int64_t nmax;        /* rows so far, which is the largest possible number of values */
	int64_t capacity;    /* number of values that the arrays have room for */
	int64_t n;           /* number of values; valid after they are sorted */
	DeviceMemory bins;   /* int32 bin of each value's group */
	DeviceMemory values; /* int64 */
	DeviceMemory beside; /* int64 wire_beside_code(); NULL if the set has no values beside others */
	DeviceMemory order;  /* int32 wire_beside_order(); of a counted set, places of firsts */
	DeviceMemory counts; /* SetCounts, which kernels update */
} SetValues;

/* Input that is kept until all rows are there, then sorted by group and reduced. */
typedef struct LateInput
{
	OrderedRows *ordered;          /* rows of operators that do not commute; NULL: none */
	SetValues sets[WIRE_MAX_SETS]; /* values of percentiles stay until query_close */
	cudaEvent_t began;             /* measure the sorting; NULL if the query keeps no rows */
	cudaEvent_t ended;
} LateInput;

/* The groups that finish found. */
typedef struct ResultList
{
	DeviceMemory top;      /* list of the groups within a limit */
	const int32_t *listed; /* bins of the groups, in `top` or states.list; NULL: bins 0 .. n - 1 */
} ResultList;

/* For WireFinished, and EXPLAIN. */
typedef struct QueryStats
{
	double kernel_ms;
	uint64_t memory_peak;
	int changes;             /* of the form */
	int retries;             /* hash tables that had to be replaced */
	GpuaggHistChoice choice; /* of the last histogram call */
	bool sorted;             /* the last rows were sorted by key */
} QueryStats;

/* One histogram call takes so many slots; more slots take several calls. */
#define CALL_SLOTS GPUAGG_MAX_SLOTS
#define MAX_CALLS (WIRE_MAX_SLOTS / CALL_SLOTS + WIRE_MAX_SLOTS + 2)
/* The last status is for the calls that reduce set values. */
#define SET_CALL (MAX_CALLS - 1)

/* With so many rows, calls have few slots each; tests make it smaller. */
#ifndef SPLIT_ROWS
#define SPLIT_ROWS (1 << 22)
#endif

/*
 * So many rows of at least so many groups are partitioned by key; tests make both smaller.  On an
 * H200, lookups of rows are faster for a million groups, and half as fast for ten million.
 */
#ifndef PARTED_ROWS
#define PARTED_ROWS SPLIT_ROWS
#endif
#ifndef PARTED_GROUPS
#define PARTED_GROUPS (1 << 21)
#endif

/* What kernels report, in device memory. */
typedef struct KernelStatus
{
	GpuaggHistStatus call[MAX_CALLS];
	unsigned long long undetermined;        /* rows whose outcome a program could not determine */
	unsigned long long undetermined_before; /* the same before the last RESIDENT */
	uint32_t order;                         /* HEADS_* bits of the rows searched for runs */
	int32_t listed;                         /* groups that have rows, and are within the limit */
	TopCounts top;                          /* only with a limit */
} KernelStatus;

_Static_assert(sizeof(KernelStatus) <= STREAM_PAGE_BYTES, "KernelStatus is read with one copy");

/* A query on one device.  The thread that has the server's lock of the query uses it. */
struct DeviceQuery
{
	int device;
	const WireQuery *q;  /* the caller keeps it until query_close */
	int count_slot;      /* a slot that counts all rows of a group (count(*)); -1: there is none */
	uint64_t seed;       /* of the hash of its keys */
	cudaStream_t stream; /* all work of the query, in order */
	char *page;          /* the stream's pinned memory, STREAM_PAGE_BYTES */
	uint64_t memory;     /* bytes taken from the budget */
	int64_t nrows;       /* rows reduced */

	DeviceMemory thresholds; /* double; bin boundaries of slots */
	DeviceMemory status;     /* KernelStatus */

	Groups groups;
	RowLocation location;
	Scratch scratch;
	RunScratch runs;
	PartedRows parted;
	StoredInput stored;
	LateInput late;
	ResultList result;
	QueryStats stats;
};

/* ---- device_common.c: errors ---- */

/*
 * Turn the result of a CUDA call, or of the kernel library, into a DeviceStatus with a text.  It is
 * DEVICE_LOST only if the context cannot be used any more.
 */
extern DeviceStatus cuda_status(cudaError_t err, const char *call, DeviceError *error);
extern DeviceStatus kernel_status(GpuaggCudaStatus status, const char *call, DeviceError *error);

/* Return from the calling function, with its `error` set, if the call fails. */
#define CUDA_CHECK(call) \
	do \
	{ \
		cudaError_t check_err = (call); \
		if (check_err != cudaSuccess) \
			return cuda_status(check_err, #call, error); \
	} while (0)

#define KERNEL_CHECK(call) \
	do \
	{ \
		GpuaggCudaStatus check_status = (call); \
		if (check_status != GPUAGG_CUDA_OK) \
			return kernel_status(check_status, #call, error); \
	} while (0)

#define DEVICE_CHECK(call) \
	do \
	{ \
		DeviceStatus check_status = (call); \
		if (check_status != DEVICE_OK) \
			return check_status; \
	} while (0)

/* ---- device_common.c: device numbers ---- */

/* CUDA's number of each device of the server. */
extern int cuda_ordinals[WIRE_MAX_DEVICES];
/*
 * Makes device `device` of the server the current one of this thread.  Every entry point
 * calls this, because a thread may have used another device before.
 */
extern cudaError_t cuda_select(int device);

/* ---- device_common.c: memory ---- */

/*
 * Allocates device memory in stream order and takes it from the budget.  If there is too little, it
 * frees stored columns that no query holds.
 */
extern DeviceStatus device_allocate(int device, size_t bytes, cudaStream_t stream, void **at,
									DeviceError *error);

/*
 * Makes the memory at least `bytes` large.  When it is replaced, its content is lost, also if the
 * allocation fails.
 */
extern DeviceStatus memory_reserve(DeviceQuery *query, DeviceMemory *memory, size_t bytes,
								   DeviceError *error);
/* The same, but keeps the first `used` bytes.  If it fails, nothing has changed. */
extern DeviceStatus memory_grow(DeviceQuery *query, DeviceMemory *memory, size_t used, size_t bytes,
								DeviceError *error);
extern void memory_release(DeviceQuery *query, DeviceMemory *memory);

/* ---- streams.c: reading small results, at most STREAM_PAGE_BYTES ---- */

/* Waits for all queued work, and copies `bytes` from device memory to `to`. */
extern DeviceStatus device_query_read(DeviceQuery *query, void *to, const void *from, size_t bytes,
									  DeviceError *error);
/*
 * The same in two steps, for several copies: queue copies to query->page + at, then wait for all of
 * them.
 */
extern DeviceStatus device_query_copy_out(DeviceQuery *query, const void *from, size_t bytes,
										  size_t at, DeviceError *error);
extern DeviceStatus device_query_wait(DeviceQuery *query, DeviceError *error);

/*
 * Rows and values that are kept until the end are stored in arrays of at least LATE_MIN and at most
 * LATE_MAX entries, as their places have 31 bits.
 */
#define LATE_MIN (1 << 16)
#define LATE_MAX (INT32_MAX - 1)

/*
 * Returns the capacity that such an array must have for n more entries than its `used` ones; above
 * LATE_MAX if there are too many.  capacity: what it has, 0 before the first allocation, which has
 * room for the estimated number of rows.
 */
extern int64_t late_capacity(int64_t capacity, int64_t used, int64_t n, double est_rows);

/* ---- device_common.c: columns and slots ---- */

/* Describes the rows of a batch whose buffer begins at `base` on the device. */
extern void batch_rows(const char *base, const WireBatch *batch, Rows *rows);
/* Returns the column as the kernel library takes it. */
extern GpuaggColumn kernel_column(const DeviceColumn *c);
/* Returns whether some value of the column may be NULL: it has a bitmap, or is nullable. */
extern bool may_have_nulls(const DeviceColumn *c);
/* Returns whether key k may be NULL in these rows.  Batches have a validity bitmap only then. */
extern bool key_has_nulls(const WireQuery *q, const Rows *rows, int k);
/* Returns whether slot s is a sketch per group, whose registers are bytes on a device. */
extern bool slot_is_sketch(const WireQuery *q, int s);
/* Returns the bytes of one group's states of slot s, on a device. */
extern size_t slot_state_bytes(const WireQuery *q, int s);
/* Returns whether the operator of slot s does not commute: its rows are kept, and sorted. */
extern bool slot_is_ordered(const WireQuery *q, int s);
/* Returns whether slot s is reduced only when all rows are there: ordered, or over a set. */
extern bool slot_is_late(const WireQuery *q, int s);
/* Returns slot s as the kernel library takes it; -1: the number of rows of each group. */
extern GpuaggSlot kernel_slot(const DeviceQuery *query, const Rows *rows, int s);
/* Returns whether histograms of the rows compute slot s, with one state per group. */
extern bool slot_is_computed(const DeviceQuery *query, int s);

/* ---- lanes.c: functions of device_ops ---- */

extern DeviceStatus cuda_lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes,
								   int buffers, DeviceError *error);
extern void cuda_lane_close(Lane *lane);
extern DeviceStatus cuda_copy(Lane *lane, const WireBatch *batch, size_t *bytes,
							  DeviceError *error);
extern DeviceStatus cuda_copy_wait(Lane *lane, int buffer, double *ms, DeviceError *error);
extern DeviceStatus cuda_lane_settle(Lane *lane, double *kernel_ms, DeviceError *error);
/* Allocates lane->memory, if it is not there.  Only batches and bitmaps need it. */
extern DeviceStatus lane_reserve(Lane *lane, DeviceError *error);
/* Waits for the reduction of the last batch in this buffer, and adds its time to kernel_ms. */
extern DeviceStatus lane_add_kernel_time(Lane *lane, int buffer, DeviceError *error);

/* ---- store_ops.c ---- */

/* Starts the store (server/device_store.h) with the memory operations of this layer. */
extern DeviceStatus cuda_store_start(int ndevices, DeviceError *error);

/* ---- group_states.c ---- */

/* The largest number of bins of one histogram; tests may lower it. */
extern int64_t cuda_max_bins;
/* Returns the largest number of groups for which no slot has more bins than that. */
extern int64_t states_max_groups(const WireQuery *q);
/*
 * Allocates and initializes the states of `capacity` groups; with `keys` also room for their packed
 * keys.  If it fails, nothing stays allocated.
 */
extern DeviceStatus states_make(DeviceQuery *query, GroupForm form, bool keys, int64_t capacity,
								GroupStates *states, DeviceError *error);
/* Copies the states of the query's groups from_bins[i] to groups to_bins[i] of *to. */
extern DeviceStatus states_move(DeviceQuery *query, GroupStates *to, const int32_t *from_bins,
								const int32_t *to_bins, int64_t n, DeviceError *error);
extern void states_release(DeviceQuery *query, GroupStates *states);

/* ---- derived_slots.c ---- */

/* Called before the first rows: finds slots whose states can be derived from another slot's. */
extern void derived_slots_find(DeviceQuery *query, const Rows *rows);
/*
 * Sets *derived to the slots of greatest or smallest keys that are, or will be, derived from the
 * states of ARGMAX or ARGMIN, if rows with these columns are reduced.  Returns whether there are
 * any.
 */
extern bool derived_slots_of_keys(const DeviceQuery *query, const Rows *rows, SlotSet *derived);
/* Called before further rows: slots that cannot be derived with them get their own states. */
extern DeviceStatus derived_slots_check(DeviceQuery *query, const Rows *rows, DeviceError *error);
/*
 * Gives all derived slots of counts their own states; with `keys` all derived slots.  Called before
 * row_counts may go with a change of the form.
 */
extern DeviceStatus derived_slots_store(DeviceQuery *query, bool keys, DeviceError *error);

/* ---- key_runs.c ---- */

/*
 * Returns whether the query may use FORM_RUNS: it has no rows so far, and its operators and its
 * strategy allow it.
 */
extern bool runs_are_allowed(const DeviceQuery *query);
/*
 * Numbers the runs in query->runs.heads, which has `words` words.  Sets *n to their number, *order
 * to the HEADS_* bits of the rows, and *segmented if the keys are in order, and strategy.c chooses
 * segments.  Waits.
 */
extern DeviceStatus runs_number(DeviceQuery *query, int64_t words, double rows, int64_t *n,
								uint32_t *order, bool *segmented, DeviceError *error);
/*
 * Sorts the rows by packed key, if the strategy asks for it and there is memory.  Then *nruns is
 * the number of runs, which are in query->runs; otherwise it is 0.  Waits.
 */
extern DeviceStatus runs_sort(DeviceQuery *query, const Rows *rows, const void *keys,
							  int64_t *nruns, DeviceError *error);

/* ---- hash_tables.c ---- */

/* Most bytes of a key in a hash table. */
#define HASH_MOST_KEY_BYTES 16
/* If memory is short, a table grows by at least so many keys. */
#define HASH_LEAST_GROWTH 4096

/*
 * Returns the capacity of a query's first table: for twice n keys, and for the estimated number of
 * groups.
 */
extern int64_t hash_first_capacity(const WireQuery *q, int64_t n);
/* Returns a capacity between `least` and `capacity`, to try if there is too little memory. */
extern int64_t hash_smaller_capacity(int64_t capacity, int64_t least);
/*
 * Allocates the arrays of a table, as one piece of memory.  hash->table.key_bytes is set; the
 * caller initializes the table.
 */
extern DeviceStatus hash_make(DeviceQuery *query, int64_t capacity, HashTable *hash,
							  DeviceError *error);
/* Frees the table's memory, and clears *hash. */
extern void hash_release(DeviceQuery *query, HashTable *hash);
/*
 * Looks up n keys, as gpuagg_group_lookup.  Sets *groups to the number of groups in the table.
 * *full: some keys have no bin, because the table must grow.  Waits.
 */
extern DeviceStatus hash_look_up(DeviceQuery *query, const GpuaggGroupTable *table,
								 const void *keys, const uint8_t *filter, int64_t n, int retry,
								 int32_t *bins, int64_t *groups, bool *full, DeviceError *error);

/* ---- packed_keys.c ---- */

/* Returns what the packed keys of rows with these columns are made of. */
extern PackKeys keys_of_columns(const WireQuery *q, const DeviceColumn *cols);
/*
 * Unpacks n packed keys of key_bytes each to columns in *memory, and sets the key columns in
 * `cols`.  Those with a bit in `nulls` may be NULL.
 */
extern DeviceStatus keys_to_columns(DeviceQuery *query, const void *keys, int64_t n, uint32_t nulls,
									DeviceMemory *memory, DeviceColumn *cols, DeviceError *error);
/*
 * Returns the bytes of a packed key as long as no key has been NULL.  Without the byte of NULL
 * bits, the keys may fit into 4, 8 or 16 bytes.
 */
extern int keys_narrow_bytes(const WireQuery *q);
/*
 * Lengthens n packed keys from `from` to `to` bytes each, in place.  No key is NULL.  The memory
 * has room for the result.
 */
extern void lengthen_keys(char *keys, size_t n, int from, int to);
/* Returns the bytes of a shortened key, for keys of more than 16 bytes. */
extern int keys_short_bytes(const WireQuery *q);
/*
 * Writes the shortened keys of n rows with these columns to scratch.keys.  Rows that the filter
 * leaves out have any.  `numbers` has room for n integers, which may be scratch.bins.  Waits.
 */
extern DeviceStatus keys_shorten(DeviceQuery *query, const DeviceColumn *cols,
								 const uint8_t *filter, int64_t n, int32_t *numbers,
								 DeviceError *error);
/*
 * After a lookup of shortened keys: stores the packed keys of the groups from groups.nstored to
 * groups.ntable, which these rows have.  `rows` has room for nrows integers.
 */
extern DeviceStatus keys_store(DeviceQuery *query, const DeviceColumn *cols, const int32_t *bins,
							   int64_t nrows, int32_t *rows, DeviceError *error);
/* Releases the tables of parts. */
extern void keys_release(DeviceQuery *query);

/* ---- group_tables.c ---- */

/*
 * Makes n runs the groups of a query that has no rows yet.  If it fails, nothing has changed.
 */
extern DeviceStatus groups_start_runs(DeviceQuery *query, int64_t n, bool may_be_empty,
									  DeviceError *error);
/*
 * The first part of groups_locate: chooses or changes the form, so that the rows' keys have bins.
 */
extern DeviceStatus groups_fit(DeviceQuery *query, const Rows *rows, DeviceError *error);
/*
 * Finds the bins of n keys as the table has them, packed or shortened, and inserts new keys.  cols:
 * the columns that shortened keys were made of.  The table grows as often as needed.  If it fails,
 * the table may have new keys, with bins from query->groups.n on, whose rows are not counted.
 */
extern DeviceStatus groups_look_up(DeviceQuery *query, const void *keys, const DeviceColumn *cols,
								   const uint8_t *filter, int64_t n, int32_t *bins,
								   DeviceError *error);
/*
 * Finds the bins of the n keys of parts, which are all different, as groups_look_up does; or makes
 * them the groups of an empty table.
 */
extern DeviceStatus groups_add_parts(DeviceQuery *query, GpuaggKeyParts *parts, int64_t n,
									 DeviceError *error);
/* Returns the bins of FORM_DIRECT and FORM_SINGLE, as ranges of the key columns. */
extern GpuaggBins groups_bins(const DeviceQuery *query, const Rows *rows);
/* If groups may have no rows: returns the memory with the number of rows of each. */
extern const DeviceMemory *groups_row_counts(const DeviceQuery *query);
/*
 * Writes the packed key of a bin of FORM_DIRECT.  If no key is NULL, key_bytes may leave no room
 * for the byte of NULL bits.
 */
extern void groups_direct_key(const DeviceQuery *query, int64_t bin, char *key, int key_bytes);
/* Releases all groups; the form is FORM_UNKNOWN again. */
extern void groups_release(DeviceQuery *query);

/* ---- key_parts.c ---- */

/*
 * FORM_HASH: partitions rows by their keys, which are as the table has them, and finds the bins of
 * their groups, if there are enough of both, the operators allow it and there is memory.  Sets
 * *taken to whether it did.  Waits.
 */
extern DeviceStatus parts_locate(DeviceQuery *query, const Rows *rows, const void *keys,
								 bool *taken, DeviceError *error);

/* ---- row_bins.c ---- */

/*
 * Finds the bins of the rows, and makes room for all of their groups.  query->location says where
 * the bins are: in scratch.bins, or for ranges possibly not made yet, but given by one or two int32
 * key columns.  scratch.bins is always filled if rows are kept, or if slots have several bins per
 * group, unless there is a single group.  If it fails, the groups and states of earlier rows are
 * intact.
 */
extern DeviceStatus groups_locate(DeviceQuery *query, const Rows *rows, DeviceError *error);
/* After groups_locate, if the location is a range of keys: makes the bins, in scratch.bins. */
extern DeviceStatus groups_make_bins(DeviceQuery *query, const Rows *rows, DeviceError *error);
/*
 * After groups_locate, if the location is not a range of keys: returns the bin of each row; NULL:
 * all are 0.
 */
extern const int32_t *groups_of_rows(const DeviceQuery *query, const Rows *rows);

/* ---- ordered_rows.c ---- */

/* Makes room for nrows more rows.  If it fails, nothing has changed. */
extern DeviceStatus ordered_reserve(DeviceQuery *query, int64_t nrows, DeviceError *error);
/*
 * Keeps the rows.  ordered_reserve made room for them; they have no filter, and their final bins
 * are in scratch.bins.
 */
extern DeviceStatus ordered_keep(DeviceQuery *query, const Rows *in, DeviceError *error);
/* Reduces the rows that were kept, and releases them. */
extern DeviceStatus ordered_finish(DeviceQuery *query, DeviceError *error);
extern void ordered_release(DeviceQuery *query);

/* ---- set_values.c ---- */

/* Makes room for the set values of these rows.  If it fails, nothing has changed. */
extern DeviceStatus sets_reserve(DeviceQuery *query, const Rows *rows, DeviceError *error);
/* Keeps the set values of the rows, whose bins are in scratch.bins. */
extern DeviceStatus sets_keep(DeviceQuery *query, const Rows *rows, DeviceError *error);
/* Adds n kept values to a set, with the bins of their groups; makes room for them. */
extern DeviceStatus sets_add(DeviceQuery *query, uint32_t number, const SetArrays *from, int64_t n,
							 DeviceError *error);
/* Sorts all values, and reduces the slots that are computed from them. */
extern DeviceStatus sets_finish(DeviceQuery *query, DeviceError *error);
extern void sets_release(DeviceQuery *query);
/* A function of device_ops. */
extern DeviceStatus cuda_pick(DeviceQuery *query, Lane *lane, const WirePick *in,
							  const int32_t *places, DeviceError *error);

/* ---- device_query.c ---- */

/* Functions of device_ops: */
extern DeviceStatus cuda_query_open(DeviceQuery **query, int device, const WireQuery *q,
									const double *thresholds, DeviceError *error);
extern void cuda_query_close(DeviceQuery *query);
extern DeviceStatus cuda_reduce(DeviceQuery *query, Lane *lane, const WireBatch *batch,
								DeviceError *error);
extern DeviceStatus cuda_reset(DeviceQuery *query, DeviceError *error);

/*
 * Reduces rows in device memory.  *applied is set as soon as states have changed.  If it fails
 * before that with DEVICE_NO_MEMORY or DEVICE_UNSUPPORTED, the groups are as they were.
 */
extern DeviceStatus device_query_reduce_rows(DeviceQuery *query, const Rows *rows, bool *applied,
											 DeviceError *error);
/* Releases `scratch`, `runs` and `parted`. */
extern void device_query_release_scratch(DeviceQuery *query);
/* Releases the stored columns; the device must have finished with them. */
extern void device_query_release_holds(DeviceQuery *query);

/* ---- tiles.c ---- */

/* A program in the order of a kernel that keeps results in registers. */
typedef struct TileProgram
{
	GpuaggProgram program; /* without its pointers and its input columns */
	int temporaries;       /* registers that the program needs */
	int input_bytes;       /* bytes per row of the columns that it loads */
	/* for each computed column: the operand that has its value */
	uint16_t operand[WIRE_MAX_RESIDENT_COLS];
} TileProgram;

/* Returns whether the rows may be reduced in tiles; then *out is set. */
extern bool tiles_are_allowed(const DeviceQuery *query, const WireResident *in,
							  const ResidentPlan *plan, TileProgram *out);
/*
 * Reduces rows some of whose columns `tiles` computes.  `program` is the same program in device
 * memory, whose inputs begin at row `first`.  *taken: the rows were reduced; if it is false,
 * nothing has changed.  *applied is set as by device_query_reduce_rows.
 */
extern DeviceStatus tiles_reduce(DeviceQuery *query, const Rows *rows, const TileProgram *tiles,
								 const GpuaggProgram *program, int64_t first, bool *taken,
								 bool *applied, DeviceError *error);

/* ---- stored_rows.c: a function of device_ops ---- */

extern DeviceStatus cuda_resident(DeviceQuery *query, Lane *lane, const WireResident *in,
								  const WireRowRange *row_ranges, StoreHold *hold,
								  DeviceError *error);

/* ---- results.c ---- */

/* Functions of device_ops: */
extern DeviceStatus cuda_finish(DeviceQuery *query, const WireLimit *limit, bool for_absorb,
								WireFinished *result, DeviceError *error);
extern DeviceStatus cuda_fetch(DeviceQuery *query, Lane *lane, const WireGroups *out,
							   DeviceError *error);

/* Says where kernels find the keys of the query's groups. */
extern GroupKeys group_keys(const DeviceQuery *query);
/*
 * Copies groups to scratch.staging, laid out as in *out; *bytes is their size.  on_device: sketches
 * keep the form that they have on devices.
 */
extern DeviceStatus results_stage(DeviceQuery *query, const WireGroups *out, bool on_device,
								  size_t *bytes, DeviceError *error);

/* ---- absorb.c ---- */

/* Lets the devices copy from each other's memory, where they can. */
extern DeviceStatus cuda_absorb_start(int ndevices, DeviceError *error);
/* A function of device_ops. */
extern DeviceStatus cuda_absorb(DeviceQuery *query, DeviceQuery *other, const int64_t *key_min,
								const int64_t *key_max, DeviceError *error);

#endif /* GPUAGG_DEVICE_INTERNAL_H */
