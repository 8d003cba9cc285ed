/*
 * store.h
 *	  Columns of tables that stay on the devices: which there are, where they lie, what goes.
 *
 * Device layers share this bookkeeping (store.c) and bring the operations on memory.
 *
 * A table's rows have positions that all of its columns share.  A column is an array for each
 * segment of STORE_SEGMENT_ROWS positions; a range of rows never crosses the end of a segment.
 * Ranges that come in order lie behind each other.  Each device has the ranges of which it is the
 * place; what is said here of a table is of those.
 *
 * A query holds the columns that it reads until the device has finished with them: what is
 * held is neither freed nor overwritten.  Arrays that had to be replaced by larger ones are freed
 * when nobody holds their column any more.
 *
 * Lists of row_ranges that came with an id (WireSpan) are remembered with their table, and where
 *their rows lie: that is found again only after a change of the table's ranges or columns.
 *
 * When memory is short, the column goes whose last but one use is the longest ago; a column
 * that is being filled takes only from those with an older one than its own.  A use is a query that
 * names the column, whether it was there or not.  Nothing is freed for what would not have room
 * then, either.  Entries of tables and columns are replaced, when there are too many, in the order
 * of their last use.
 *
 * A column that was refused is tried again when the reason is gone: when there is memory, or, where
 * its dictionary was full, when a quarter of the ranges that a query reads has changed.
 */
#ifndef GPUAGG_STORE_H
#define GPUAGG_STORE_H

#include "device_cuda/device.h"

/* Tests make these and those of resident.h smaller. */
#ifndef STORE_SEGMENT_ROWS
#define STORE_SEGMENT_ROWS ((int64_t) 1 << 25)
/* The first array of a column has room for at least so many rows. */
#define STORE_LEAST_ROWS ((int64_t) 1 << 17)
/* With fewer rows gaps do not matter. */
#define STORE_LEAST_GAPS ((int64_t) 1 << 20)
#endif
/* A table's lists may have so many row_ranges, and two more for each of its ranges. */
#define STORE_LEAST_LISTED 1024
#define STORE_MAX_SEGMENTS 256
#define STORE_MAX_ROWS (STORE_SEGMENT_ROWS * STORE_MAX_SEGMENTS)

/* Operations on a device's memory, one at a time; what they did is there when they return. */
typedef struct StoreOps
{
	/* The lane's buffer in the arena. */
	char *(*buffer)(Lane *lane, int buffer);
	DeviceStatus (*allocate)(int device, size_t bytes, void **at, DeviceError *error);
	void (*release)(int device, void *at);
	/* A larger array in place of another one; bytes behind `used` are set to `rest`. */
	DeviceStatus (*enlarge)(int device, void *to, size_t bytes, const void *from, size_t used,
							int rest, DeviceError *error);
	/*
	 * May be NULL: makes room that put_bits needs.  Called without a lock, as the store may have to
	 * give memory for it.
	 */
	DeviceStatus (*ready)(Lane *lane, DeviceError *error);
	/*
	 * Copies from the lane's buffer, at these offsets: values, and bits of rows `first` and on,
	 * from bit 0.
	 */
	DeviceStatus (*put)(Lane *lane, int buffer, uint32_t from, void *to, size_t bytes,
						DeviceError *error);
	DeviceStatus (*put_bits)(Lane *lane, int buffer, uint32_t from, void *bits, int64_t first,
							 int64_t nrows, DeviceError *error);
} StoreOps;

/* One segment of a column. */
typedef struct StoreSegment
{
	const char *values;
	const uint8_t *validity; /* NULL: no NULLs */
} StoreSegment;

/* Positions first .. first + nrows - 1. */
typedef struct StoreSpan
{
	int64_t first;
	int64_t nrows;
} StoreSpan;

typedef struct StoreTable StoreTable;

/* What a query reads. */
typedef struct StoreHold
{
	struct StoreHold *next; /* the holder's */
	int device;
	StoreTable *table; /* NULL: no column is read */
	uint64_t columns;  /* of the table, a bit each */
	int64_t nrows;
	bool sorted; /* the row_ranges' rows lie in the order of the row_ranges */
	int nspans;  /* ascending, with gaps between them, none across segments */
	StoreSpan *spans;
	int nsegments;
	StoreSegment *segments;               /* nsegments of each stored column of the query */
	uint8_t column[WIRE_MAX_STORED_COLS]; /* of the table */
} StoreHold;

extern void store_start(const StoreOps *ops, int ndevices);
/*
 * Bytes of stored columns a device; UINT64_MAX: half of the device's memory.  May be called before
 * store_start.
 */
extern void store_set_limit(uint64_t bytes);
/*
 * The devices, over which tables are spread (wire_place); tests make the number of ranges smaller.
 */
extern int store_devices(void);
extern uint32_t store_place_ranges;
extern int store_place(WireTableKey table, uint32_t range);

/* A number for the uses of one query. */
extern uint64_t store_use(void);

/* Keeps a column of a range, unless there is no room for it. */
extern DeviceStatus store_put(int device, Lane *lane, const WireStore *in, uint64_t use, bool *kept,
							  DeviceError *error);

/*
 * Holds the columns that the message names, if all rows of its row_ranges and spans are there: then
 * *hold is set.  Else it is NULL, and lacking[i] has a bit for each column that run i, or span i -
 * in->nrow_ranges, lacks, or lacking[0] WIRE_OUTDATED.
 */
extern DeviceStatus store_hold(int device, const WireResident *in, const WireRowRange *row_ranges,
							   uint64_t use, uint64_t *lacking, StoreHold **hold,
							   DeviceError *error);
extern void store_release(StoreHold *hold);
/*
 * Was a stored column of the query seen to be in no order?  As long as it stays, nobody needs to
 * look again.
 */
extern bool store_is_disordered(const StoreHold *hold, int stored);
extern void store_note_disorder(const StoreHold *hold, int stored);

/* Answers LIST. */
extern void store_list(const WireList *from, WireListed *out);

/*
 * The message's columns, a bit each, of which a part was not kept there, for which there is still
 * no room.
 */
extern uint32_t store_refused(int device, const WireResident *in);

/*
 * Bytes of host memory that a device's tables and dictionaries have; a dictionary counts at each
 * device that uses it.
 */
extern uint64_t store_host_bytes(int device);
/*
 * What dictionaries of all devices may have of the host's memory; 0: an eighth of what columns may
 * have on the devices.
 */
extern void store_set_host_limit(uint64_t bytes);

/*
 * Gives up to so many bytes back to the budget; false: columns that nobody holds do not have what
 * the budget lacks of them, and all stay.
 */
extern bool store_yield(int device, uint64_t bytes);
/* Frees what is beyond a limit that was lowered. */
extern void store_trim(void);
/* Forgets all tables that nobody holds. */
extern void store_forget(int device);

#endif /* GPUAGG_STORE_H */
