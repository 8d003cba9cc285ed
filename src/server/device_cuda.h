/*
 * device_cuda.h
 *	  What the files of the CUDA device layer share.
 *
 *	device_cuda.c			device_ops: the start, pinned memory
 *	device_cuda_resident.c	rows of stored columns to slices, masks and programs
 *	device_cuda_tiles.c		the same in one pass, where bins fit shared memory
 *	device_cuda_query.c		a query: rows in
 *	device_cuda_absorb.c	groups of a query on another device
 *	device_cuda_results.c	a query: groups out
 *	device_cuda_groups.c	its groups: bins of rows, tables
 *	device_cuda_states.c	their states
 *	device_cuda_counts.c	slots whose states others tell
 *	device_cuda_runs.c		rows in the order of the keys
 *	device_cuda_ordered.c	rows that are kept, sorted and reduced in order
 *	device_cuda_sets.c		values that are kept and sorted by group: distinct ones, and those of a
 * place device_cuda_lanes.c		copies, and the buffers on the device device_cuda_store.c
 * the memory of stored columns
 *	device_cuda_streams.c	streams of queries, which are kept, and waiting for them
 *	device_cuda_common.c	errors, numbers of devices, memory of queries, columns
 *	device_kernels.cu		small kernels
 *	device_kernels_resident.cu	those for rows of stored columns
 *	device_kernels_sets.cu	those for values of sets
 *	device_kernels_sketches.cu	those for sketches
 *
 * Each calls those below it alone; groups, ordered and sets do not call each other, and none of
 * them calls lanes or the store. Plain C on the CUDA run-time.  Device memory is allocated in
 * stream order from the device's pool, after budget_take().
 */
#ifndef GPUAGG_DEVICE_CUDA_H
#define GPUAGG_DEVICE_CUDA_H

#include <cuda_runtime_api.h>

#include "server/device_kernels.h"
#include "gpuagg_cuda.h"
#include "server/resident_plan.h"
#include "server/server.h"
#include "server/store.h"
#include "strategy.h"

struct Lane
{
	int device;
	cudaStream_t stream; /* copies */
	char *arena;
	char *memory; /* on the device, as large as the arena; NULL: not yet */
	size_t buffer_bytes;
	int buffers;
	cudaEvent_t copy_began[ARENA_BUFFERS];
	cudaEvent_t copied[ARENA_BUFFERS];
	cudaEvent_t reduce_began[ARENA_BUFFERS];
	cudaEvent_t reduced[ARENA_BUFFERS]; /* the buffer may be overwritten */
	bool timing[ARENA_BUFFERS];         /* both are recorded and not yet added */
	double kernel_ms;
	Lane *next; /* of the idle ones */
};

/* ---- device_cuda_streams.c ---- */

/* A stream on which nothing is queued, with so many bytes of pinned memory, and back. */
#define STREAM_PAGE_BYTES 4096
extern cudaError_t stream_take(int device, cudaStream_t *stream, char **page);
extern void stream_give(int device, cudaStream_t stream, char *page);
/*
 * Wait, as all waits on the way to a query's answer do: the end of short kernels is seen sooner
 * than a thread that sleeps is woken up.  Not for copies of much.
 */
extern cudaError_t stream_wait(cudaStream_t stream);
extern cudaError_t event_wait(cudaEvent_t event);

/*
 * A piece of device memory and its bytes in the budget.  Only query_reserve, query_extend
 * and query_release change it, so that memory and budget agree whatever fails.
 */
typedef struct DeviceMemory
{
	void *at;
	size_t bytes;
} DeviceMemory;

/* Rows to be reduced, on the device: a batch, or a slice of stored and computed columns. */
typedef struct Rows
{
	int64_t nrows;          /* at most STORE_SEGMENT_ROWS */
	const int64_t *key_min, /* of WireBatch */
		*key_max;
	const uint8_t *filter; /* one byte a row, 0: the row is not there; or NULL */
	const uint32_t
		*heads; /* the runs that they are, in the order of the keys: FORM_RUNS; or NULL */
	const int32_t *before;
	DeviceColumn cols[WIRE_MAX_COLS];
} Rows;

/* How the groups of a query are stored. */
typedef enum GroupForm
{
	FORM_UNKNOWN, /* no batch yet */
	FORM_SINGLE,  /* one group */
	FORM_DIRECT,  /* bin = mixed-radix number of the keys */
	FORM_HASH,    /* bins in the order of a hash table */
	FORM_RUNS     /* a bin for each run of rows in the order of the keys */
} GroupForm;

/* The bins of FORM_DIRECT: key k is one of min .. max, or NULL once a batch had NULLs. */
typedef struct KeyRanges
{
	int64_t min[WIRE_MAX_KEYS];
	int64_t max[WIRE_MAX_KEYS];
	bool has_null[WIRE_MAX_KEYS];
	int64_t extent[WIRE_MAX_KEYS]; /* values, and if has_null the bin of NULLs behind them */
} KeyRanges;

/* The states of all groups, by bin. */
typedef struct GroupStates
{
	int64_t capacity; /* groups that there is room for */
	DeviceMemory slot[WIRE_MAX_SLOTS];
	DeviceMemory
		present; /* without a count_slot, of groups that may have no rows: int64 rows in each bin */
	DeviceMemory list; /* of such groups: room for those that have rows, and for what lists them */
	DeviceMemory keys; /* FORM_RUNS: packed, of key_bytes */
} GroupStates;

/* Of GroupStates.list, before what lists them. */
static inline size_t
groups_list_bytes(int64_t capacity)
{
	return (capacity * sizeof(int32_t) + 255) / 256 * 256;
}

/* FORM_HASH: a table, and the allocation that its arrays lie in. */
typedef struct HashTable
{
	GpuaggGroupTable table;
	DeviceMemory memory;
} HashTable;

/* Histogram calls take so many slots; more take several calls. */
#define CALL_SLOTS GPUAGG_MAX_SLOTS
#define MAX_CALLS (WIRE_MAX_SLOTS / CALL_SLOTS + WIRE_MAX_SLOTS + 2)
/* The last of them is that of sets. */
#define SET_CALL (MAX_CALLS - 1)

/* Calls of so many rows have few slots; tests make it smaller. */
#ifndef SPLIT_ROWS
#define SPLIT_ROWS (1 << 22)
#endif

typedef struct OrderedRows OrderedRows;

/*
 * Memory for rows that are kept is taken at once for so many as are estimated, but only for so many
 * times the first ones.
 */
#define ESTIMATE_PER_ROW 64

/* Values of a WireSet. */
typedef struct SetValues
{
	int64_t most; /* rows that came, of which some may have had no value */
	int64_t capacity;
	int64_t n;           /* values; known when they are sorted */
	DeviceMemory bins;   /* int32 of each value's group; and */
	DeviceMemory values; /* int64 */
	DeviceMemory counts; /* SetCounts */
} SetValues;

/* What kernels note, in device memory. */
typedef struct QueryStatus
{
	GpuaggHistStatus call[MAX_CALLS];
	unsigned long long undetermined;        /* rows whose outcome a program could not tell */
	unsigned long long undetermined_before; /* the last RESIDENT */
	uint32_t order;                         /* HEADS_* of the rows that were searched for runs */
	int32_t listed;                         /* groups that have rows, and are within the limit */
	TopCounts top;                          /* if there is a limit */
} QueryStatus;

_Static_assert(sizeof(QueryStatus) <= STREAM_PAGE_BYTES, "what kernels note is read at once");

struct Query
{
	int device;
	const WireQuery *q;
	int count_slot; /* of count(*), which shows the direct bins that have rows; or -1 */
	uint64_t seed;  /* of the hash of its keys */
	cudaStream_t stream;
	char *page;        /* pinned memory of the stream */
	cudaEvent_t began, /* of ordered_finish and sets_finish; NULL unless rows are kept */
		ended;
	double kernel_ms;
	uint64_t memory; /* taken from the budget */
	uint64_t memory_peak;
	int64_t rows;
	int changes;
	int retries;

	DeviceMemory thresholds;
	DeviceMemory status; /* QueryStatus */
	DeviceMemory workspace;
	DeviceMemory bins;      /* int32 of each row */
	int64_t zeros;          /* FORM_SINGLE: so many entries of bins are 0 */
	DeviceMemory slot_bins; /* the same for a slot with many bins a group */
	DeviceMemory keys;      /* packed, of each row */
	DeviceMemory staging;
	DeviceMemory filter;   /* a byte of each row of a slice */
	DeviceMemory computed; /* columns of a slice */
	DeviceMemory plan;     /* what kernels need to know of RESIDENT */
	DeviceMemory heads;    /* where runs begin */
	DeviceMemory before;
	DeviceMemory sorted; /* keys of rows that were sorted */
	DeviceMemory order;  /* and their numbers */
	GpuaggBins located;  /* where groups_locate found the rows' bins */
	GpuaggRuns runs;     /* or the runs that they are, if there are heads */
	bool sorts;          /* the last rows were sorted */

	StoreHold *holds; /* stored columns that it reads */
	int residents;    /* messages */

	/* change together, as the last step of a change */
	GroupForm form;
	GroupStates groups;
	KeyRanges ranges;          /* FORM_DIRECT */
	HashTable hash;            /* FORM_HASH */
	bool sparse;               /* FORM_RUNS: some may have no rows */
	int alias[WIRE_MAX_SLOTS]; /* the slot whose states tell this one's so far; ALIAS_* */
	int64_t found;             /* FORM_HASH: groups in the table */
	int64_t ngroups; /* FORM_HASH: groups of batches that were reduced; else set by groups_finish */

	GpuaggHistChoice choice;       /* of the last call, for EXPLAIN */
	OrderedRows *rows_kept;        /* for operators that do not commute, or NULL */
	SetValues sets[WIRE_MAX_SETS]; /* those of percentiles stay until the end */

	/* set by groups_finish */
	DeviceMemory top;      /* the list of groups within a limit */
	const int32_t *listed; /* bins of the groups that there are; NULL: all, in order */
};

/* Of a slot's alias: it has its own states; or they are `present`. */
#define ALIAS_NONE (-1)
#define ALIAS_PRESENT WIRE_MAX_SLOTS

/* ---- device_cuda_common.c: errors ---- */

/*
 * Turns the result of a CUDA call or of the kernel library into a DeviceStatus:
 * DEVICE_LOST only where the context is of no use any more.
 */
extern DeviceStatus cuda_status(cudaError_t err, const char *call, DeviceError *error);
extern DeviceStatus kernel_status(GpuaggCudaStatus status, const char *call, DeviceError *error);

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

/* ---- ... the numbers of devices ---- */

/* CUDA's number of each device of the server. */
extern int cuda_ordinals[WIRE_MAX_DEVICES];
/* Makes it the device of this thread's calls; threads come with any. */
extern cudaError_t cuda_select(int device);

/* ---- ... memory ---- */

/* Memory that is in the budget; stored columns that nobody reads make room for it. */
extern DeviceStatus device_allocate(int device, size_t bytes, cudaStream_t stream, void **at,
									DeviceError *error);

/* ... of a query: */

/* At least `bytes`; the content is lost when it grows, and if that fails. */
extern DeviceStatus query_reserve(Query *query, DeviceMemory *memory, size_t bytes,
								  DeviceError *error);
/* Grows memory whose first `used` bytes stay; if that fails, nothing has changed. */
extern DeviceStatus query_extend(Query *query, DeviceMemory *memory, size_t used, size_t bytes,
								 DeviceError *error);
extern void query_release(Query *query, DeviceMemory *memory);

/* ---- ... what it notes on the device (device_cuda_streams.c): at most STREAM_PAGE_BYTES */

/* Waits for all that is queued, and reads. */
extern DeviceStatus query_read(Query *query, void *to, const void *from, size_t bytes,
							   DeviceError *error);
/* The same in steps, for several pieces: they are at query->page + at after the wait. */
extern DeviceStatus query_copy_out(Query *query, const void *from, size_t bytes, size_t at,
								   DeviceError *error);
extern DeviceStatus query_wait(Query *query, DeviceError *error);

/* ---- ... columns and slots ---- */

/* The rows of a batch whose buffer starts at `base` on the device. */
extern void batch_rows(const char *base, const WireBatch *batch, Rows *rows);
extern GpuaggColumn kernel_column(const DeviceColumn *c);
extern bool may_have_nulls(const DeviceColumn *c);
/* Is it a sketch a group?  On a device its registers are bytes. */
extern bool slot_is_sketch(const WireQuery *q, int s);
/* Bytes of one group's states of slot s, on a device. */
extern size_t slot_state_bytes(const WireQuery *q, int s);
/* Is slot s reduced when all rows are there, as its operator does not commute? */
extern bool slot_is_ordered(const WireQuery *q, int s);
/* Is it reduced only then, for whatever reason? */
extern bool slot_is_late(const WireQuery *q, int s);

/* ---- device_cuda_lanes.c ---- */

extern DeviceStatus cuda_lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes,
								   int buffers, DeviceError *error);
extern void cuda_lane_close(Lane *lane);
extern DeviceStatus cuda_copy(Lane *lane, const WireBatch *batch, size_t *bytes,
							  DeviceError *error);
extern DeviceStatus cuda_copy_wait(Lane *lane, int buffer, double *ms, DeviceError *error);
extern DeviceStatus cuda_lane_settle(Lane *lane, double *kernel_ms, DeviceError *error);
/* Makes room for the arena's buffers on the device, which only batches and bitmaps need. */
extern DeviceStatus lane_reserve(Lane *lane, DeviceError *error);
/* Waits for the reduction of the batch that was last in this buffer, and adds its time. */
extern DeviceStatus lane_add_timing(Lane *lane, int buffer, DeviceError *error);

/* ---- device_cuda_states.c ---- */

/* The most bins of one histogram; tests may lower it. */
extern int64_t cuda_most_bins;
/* With so many groups at most, no slot has more bins. */
extern int64_t states_most_groups(const WireQuery *q);
/*
 * Allocates and initializes the states of `capacity` groups; if it fails, nothing stays allocated.
 */
extern DeviceStatus states_make(Query *query, GroupForm form, int64_t capacity, GroupStates *states,
								DeviceError *error);
/* The states of the query's groups from_bins[i] become those of groups to_bins[i] of *to. */
extern DeviceStatus states_move(Query *query, GroupStates *to, const int32_t *from_bins,
								const int32_t *to_bins, int64_t n, DeviceError *error);
extern void states_release(Query *query, GroupStates *states);

/* ---- device_cuda_groups.c ---- */

/*
 * Finds the bins of the rows: query->located says where; into query->bins if rows are kept
 * or, but for a single group, slots have bins; or as one or two int32 keys of ranges.  The states
 * have room for all of them.  If that fails, the groups and states of earlier rows are intact.
 */
extern DeviceStatus groups_locate(Query *query, const Rows *rows, DeviceError *error);
/* After that, of ranges: makes the bins, into query->bins. */
extern DeviceStatus groups_make_bins(Query *query, const Rows *rows, DeviceError *error);
/* After that, of groups that are no ranges: the bin of each row's group, or NULL: it is 0. */
extern const int32_t *groups_of_rows(const Query *query, const Rows *rows);
/* FORM_RUNS with n groups, of a query that has no rows yet; if that fails, nothing has changed. */
extern DeviceStatus groups_start_runs(Query *query, int64_t n, bool sparse, DeviceError *error);
/* The first part of that: the form, and room in it for the rows' keys. */
extern DeviceStatus groups_fit(Query *query, const Rows *rows, DeviceError *error);
/* The bins of FORM_DIRECT and FORM_SINGLE, by ranges. */
extern GpuaggBins groups_bins(const Query *query, const Rows *rows);
/* May some groups have no rows?  Then this says how many each has. */
extern const DeviceMemory *groups_row_counts(const Query *query);
/* The packed key of a direct bin; key_bytes may leave no byte for NULLs if no key is NULL. */
extern void groups_direct_key(const Query *query, int64_t bin, char *key, int key_bytes);
/* Back to FORM_UNKNOWN, with all memory released. */
extern void groups_forget(Query *query);
/*
 * n packed keys of `from` bytes each, without a NULL, at the start of memory that has
 * room for n of `to` bytes, become such.
 */
extern void lengthen_keys(char *keys, size_t n, int from, int to);

/* ---- device_cuda_counts.c ---- */

/* Before the first rows: slots whose states others tell become aliases of these. */
extern void counts_find(Query *query, const Rows *rows);
/*
 * A bit for each slot of greatest or smallest keys that will be, or stay, an alias with rows of
 * these columns.
 */
extern uint64_t counts_told(const Query *query, const Rows *rows);
/*
 * Before other rows: those with NULLs give slots of which it does not hold any more their own
 * states.
 */
extern DeviceStatus counts_check(Query *query, const Rows *rows, DeviceError *error);
/*
 * Gives all slots of counts their own states, and with `keys` all slots.  Counts of rows may go
 * with a form of the groups.
 */
extern DeviceStatus counts_settle(Query *query, bool keys, DeviceError *error);

/* ---- device_cuda_ordered.c ---- */

/* Makes room for the rows of a batch; if that fails, nothing has changed. */
extern DeviceStatus ordered_make_room(Query *query, int64_t nrows, DeviceError *error);
/*
 * Keeps rows, for which there is room, which have no filter, and whose bins are in
 * query->bins and do not change any more.
 */
extern DeviceStatus ordered_keep(Query *query, const Rows *in, DeviceError *error);
/* Reduces the rows kept, and forgets them. */
extern DeviceStatus ordered_finish(Query *query, DeviceError *error);
/* Releases the rows kept. */
extern void ordered_forget(Query *query);

/* ---- device_cuda_sets.c ---- */

/* Makes room for the values of these rows; if that fails, nothing has changed. */
extern DeviceStatus sets_make_room(Query *query, const Rows *rows, DeviceError *error);
/* Keeps their values, for which there is room, and whose bins are in query->bins. */
extern DeviceStatus sets_keep(Query *query, const Rows *rows, DeviceError *error);
/* Keeps n more values of a set, with the bins that they are in. */
extern DeviceStatus sets_add(Query *query, uint32_t number, const int32_t *bins,
							 const int64_t *values, int64_t n, DeviceError *error);
/* Sorts all values, and reduces the slots that are of them. */
extern DeviceStatus sets_finish(Query *query, DeviceError *error);
extern void sets_forget(Query *query);
/* A function of device_ops. */
extern DeviceStatus cuda_pick(Query *query, Lane *lane, const WirePick *in, const int32_t *places,
							  DeviceError *error);

/* ---- device_cuda_query.c: functions of device_ops ---- */

extern DeviceStatus cuda_query_open(Query **query, int device, const WireQuery *q,
									const double *thresholds, DeviceError *error);
extern void cuda_query_close(Query *query);
extern DeviceStatus cuda_reduce(Query *query, Lane *lane, const WireBatch *batch,
								DeviceError *error);
/*
 * The same for rows that lie on the device.  `applied` is set once states have changed: a failure
 * before leaves the groups as they were, DEVICE_NO_MEMORY and DEVICE_UNSUPPORTED that is.
 */
extern DeviceStatus query_reduce_rows(Query *query, const Rows *rows, bool *applied,
									  DeviceError *error);
/* A slot as kernels have it, or if s is -1 the rows that each group has. */
extern GpuaggSlot query_slot(const Query *query, const Rows *rows, int s);
/* Are its states computed from rows, one a group? */
extern bool query_has_slot(const Query *query, int s);
/* Frees memory whose content does not outlast rows. */
extern void query_release_scratch(Query *query);
extern void query_release_holds(Query *query);
extern DeviceStatus cuda_reset(Query *query, DeviceError *error);

/* ---- device_cuda_results.c: functions of device_ops ---- */

extern DeviceStatus cuda_finish(Query *query, const WireLimit *limit, bool part,
								WireFinished *result, DeviceError *error);
extern DeviceStatus cuda_fetch(Query *query, Lane *lane, const WireGroups *out, DeviceError *error);
extern GroupKeys group_keys(const Query *query);
/*
 * Groups of a list as the message lays them out, in query->staging; kept: with sketches as devices
 * have them. DEVICE_NO_MEMORY: there is no room for them.
 */
extern DeviceStatus results_stage(Query *query, const WireGroups *out, bool kept, size_t *bytes,
								  DeviceError *error);

/* ---- device_cuda_absorb.c ---- */

/* Readies the memory of so many devices for copies between them. */
extern DeviceStatus cuda_absorb_start(int ndevices, DeviceError *error);
extern DeviceStatus cuda_absorb(Query *query, Query *part, const int64_t *key_min,
								const int64_t *key_max, DeviceError *error);

/* ---- device_cuda_runs.c ---- */

/*
 * May runs be searched for: a query without rows so far, with operators and a strategy that allow
 * it?
 */
extern bool runs_wanted(const Query *query);
/*
 * Numbers the runs of `words` words of heads; *is: they are in order, and segments are the
 * strategy.  Waits.
 */
extern DeviceStatus runs_number(Query *query, int64_t words, double rows, int64_t *n,
								uint32_t *order, bool *is, DeviceError *error);
/*
 * Sorts rows of a hash table by key, if that is the strategy and there is memory: *nruns runs, in
 * query->sorted, order, heads and before; else 0.  Waits.
 */
extern DeviceStatus runs_sort(Query *query, const Rows *rows, const void *keys, int64_t *nruns,
							  DeviceError *error);

/* ---- device_cuda_tiles.c ---- */

/* A program in the order of a kernel that keeps results in registers. */
typedef struct TileProgram
{
	GpuaggProgram program; /* but for pointers, and columns of inputs */
	int temporaries;
	int input_bytes;                 /* of the columns of a row that it loads */
	uint16_t operand[WIRE_MAX_COLS]; /* of each column that it computes */
} TileProgram;

/* May the query's rows be reduced in tiles?  Then *out is set. */
extern bool tiles_wanted(const Query *query, const WireResident *in, const ResidentPlan *plan,
						 TileProgram *out);
/*
 * Reduces rows, of which some columns are computed by `tiles`, as the program in device memory, of
 * inputs from row `first` on.  *taken: they were; else nothing has changed.  *applied as in
 * query_reduce_rows.
 */
extern DeviceStatus tiles_reduce(Query *query, const Rows *rows, const TileProgram *tiles,
								 const GpuaggProgram *program, int64_t first, bool *taken,
								 bool *applied, DeviceError *error);

/* ---- device_cuda_resident.c ---- */

extern DeviceStatus cuda_resident(Query *query, Lane *lane, const WireResident *in,
								  const WireRowRange *runs, StoreHold *hold, DeviceError *error);

/* ---- device_cuda_store.c ---- */

/* Readies the store for so many devices. */
extern DeviceStatus cuda_store_start(int ndevices, DeviceError *error);

#endif /* GPUAGG_DEVICE_CUDA_H */
