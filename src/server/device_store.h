/*
 * device_store.h
 *	  Store: the columns of tables that are cached on the devices. What is there, where it lies,
 *	  and what is evicted.
 *
 * This is the bookkeeping. The device layer provides the operations on memory (StoreOps).
 *
 * Each device has a store, with the block ranges that belong to the device (wire_place). The rows
 * of a table on a device have positions, which all of its columns share. A column has an array for
 * each segment of STORE_SEGMENT_ROWS positions. The rows of a range never cross the end of a
 * segment. Ranges that come in order lie one after the other.
 *
 * A query holds the columns that it reads until the device has finished with them. Held columns are
 * neither freed nor overwritten. An array that was replaced by a larger one is freed when no query
 * holds its column any more.
 *
 * Lists of row ranges that came with an id (WireSpan) are remembered with their table, together
 * with the positions of their rows. The positions are found again only after the table's ranges or
 * columns have changed.
 *
 * Eviction: when memory is short, the column is freed whose last but one use is the oldest (LRU-2).
 * A use is a query that names the column, also if the column was not there. A column that is being
 * filled takes memory only from columns whose last but one use is older than its own. Nothing is
 * evicted if the new data would not have room even then. If there are too many entries of tables or
 * columns, the one with the oldest last use is replaced.
 *
 * Cells of lookup tables that have a name (WireCellsName) are stored, too, and evicted as columns
 * are.  Cells whose last but one use is not known count as used twice when they come.
 *
 * A refused column had no room. It is tried again when there is memory.
 */
#ifndef GPUAGG_DEVICE_STORE_H
#define GPUAGG_DEVICE_STORE_H

#include "device_cuda/device.h"

struct Dictionary;

/* Tests make these constants, and those of resident_plan.h, smaller. */
#ifndef STORE_SEGMENT_ROWS
#define STORE_SEGMENT_ROWS ((int64_t) 1 << 25)
/* Least rows of a column's first array. */
#define STORE_LEAST_ROWS ((int64_t) 1 << 17)
/* Gaps of at most so many positions are ignored. */
#define STORE_LEAST_GAPS ((int64_t) 1 << 20)
#endif
/* Row ranges that the lists of a table may have, in addition to two for each of its ranges. */
#define STORE_LEAST_LISTED 1024
#define STORE_MAX_SEGMENTS 256
#define STORE_MAX_ROWS (STORE_SEGMENT_ROWS * STORE_MAX_SEGMENTS)

/*
 * Operations on a device's memory. They are called one at a time for each device, and are complete
 * when they return.
 */
typedef struct StoreOps
{
	/* Returns the lane's buffer in the arena. */
	char *(*buffer)(Lane *lane, int buffer);
	DeviceStatus (*allocate)(int device, size_t bytes, void **at, DeviceError *error);
	void (*release)(int device, void *at);
	/*
	 * Fills a larger array that replaces another one: copies its `used` bytes, and sets all bytes
	 * after them to `rest`.
	 */
	DeviceStatus (*enlarge)(int device, void *to, size_t bytes, const void *from, size_t used,
							int rest, DeviceError *error);
	/*
	 * Optional: allocates the memory that put_bits needs. Called without the store's lock, because
	 * the store may have to free memory for it.
	 */
	DeviceStatus (*ready)(Lane *lane, DeviceError *error);
	/*
	 * Copy from the lane's buffer, at offset `from`: values, or LSB-first bits. put_bits copies
	 * nrows bits, which become bits `first` and following of `bits`.
	 */
	DeviceStatus (*put)(Lane *lane, int buffer, uint32_t from, void *to, size_t bytes,
						DeviceError *error);
	DeviceStatus (*put_bits)(Lane *lane, int buffer, uint32_t from, void *bits, int64_t first,
							 int64_t nrows, DeviceError *error);
	/* Copies memory of the server. */
	DeviceStatus (*put_memory)(int device, const void *from, void *to, size_t bytes,
							   DeviceError *error);
} StoreOps;

/* A segment of a column, as a query reads it. */
typedef struct StoreSegment
{
	const char *values;
	const uint8_t *validity; /* LSB-first bits; NULL: no NULLs */
} StoreSegment;

/* A range of positions: first .. first + nrows - 1. */
typedef struct StoreSpan
{
	int64_t first;
	int64_t nrows;
} StoreSpan;

typedef struct StoreTable StoreTable;

/* The columns and rows that a query holds. */
typedef struct StoreHold
{
	struct StoreHold *next; /* free for the holder's use */
	int device;
	StoreTable *table; /* NULL: the query reads no column */
	uint64_t columns;  /* the table's columns that are held, a bit each */
	int64_t nrows;
	bool sorted; /* the positions of rows are in the order of the message's row ranges */
	int nspans;  /* ascending, with gaps between them; a span does not cross segments */
	StoreSpan *spans;
	int nsegments;
	StoreSegment *segments;               /* nsegments for each stored column of the query */
	uint8_t column[WIRE_MAX_STORED_COLS]; /* its number in the table, for each stored column */
	/* stored cells of the message's tables; NULL: the cells are in the message */
	struct StoreCells *cells[WIRE_MAX_TABLES];
} StoreHold;

extern void store_start(const StoreOps *ops, int ndevices);
/*
 * Limits the bytes of stored columns per device; UINT64_MAX: half of the device's memory. May be
 * called before store_start().
 */
extern void store_set_limit(uint64_t bytes);
/*
 * Number of devices that tables are distributed over, and consecutive ranges on one device
 * (wire_place). Tests make the number of ranges smaller.
 */
extern int store_devices(void);
extern uint32_t store_place_ranges;
/* Returns the device of a range. */
extern int store_place(WireTableKey table, uint32_t range);

/* Returns a new number that marks the uses of one query. */
extern uint64_t store_use(void);

/*
 * Stores a column of a range. *kept is false if there is no room for it. The values of a coded
 * column are codes of `dict` already. If more of its entries follow, only makes room for these.
 */
extern DeviceStatus store_put(int device, Lane *lane, const WireStore *in, struct Dictionary *dict,
							  uint64_t use, bool *kept, DeviceError *error);

/*
 * Holds the columns and the cells that the message names, and sets *hold, if all rows of its row
 * ranges and spans are stored, and all cells that are not sent. Else *hold is NULL, and lacking[i]
 * has a bit for each column that row range i lacks, or span i - in->nrow_ranges; or lacking[0] has
 * WIRE_OUTDATED. *lacking_cells has a bit for each table whose cells are not stored, sent or
 * not. Cells that were sent with a name are stored if there is room. row_ranges is followed by the
 * cells, as in the message, but in memory that the client cannot change.
 */
extern DeviceStatus store_hold(int device, const WireResident *in, const WireRowRange *row_ranges,
							   uint64_t use, uint64_t *lacking, uint32_t *lacking_cells,
							   StoreHold **hold, DeviceError *error);
extern void store_release(StoreHold *hold);
/* Returns the stored cells of a table in device memory; NULL: they are in the message. */
extern const void *store_held_cells(const StoreHold *hold, uint32_t table);
/*
 * Returns whether a stored column of the query is known to be neither ascending nor descending.
 * That is remembered as long as the column is stored.
 */
extern bool store_is_disordered(const StoreHold *hold, int stored);
extern void store_note_disorder(const StoreHold *hold, int stored);

/* Answers LIST. */
extern void store_list(const WireList *from, WireListed *out);

/*
 * Returns the message's columns, a bit each, that were refused on this device and would still have
 * no room.
 */
extern uint32_t store_refused(int device, const WireResident *in);

/*
 * Returns the bytes of host memory of a device's tables and dictionaries. A dictionary counts for
 * each device that uses it.
 */
extern uint64_t store_host_bytes(int device);
/*
 * Limits the host memory of all dictionaries; 0: an eighth of the limits of stored columns on all
 * devices. Retired ones, which queries still read, may have as much again.
 */
extern void store_set_host_limit(uint64_t bytes);

/*
 * Gives up to `bytes` back to the budget. If the evictable columns do not have as much as the
 * budget lacks, evicts nothing and returns false.
 */
extern bool store_yield(int device, uint64_t bytes);
/* Evicts columns beyond a limit that was lowered. */
extern void store_trim(void);
/* Removes everything that no query holds. */
extern void store_forget(int device);

#endif /* GPUAGG_DEVICE_STORE_H */
