/*
 * protocol.h
 *	  Messages between backends and the GPU server, and the memory that they share.
 *
 * Plain C, no PostgreSQL: included by both sides, which always run on one
 * machine from one installation.  WireHello.version guards against a server
 * left over from another build.
 *
 * A connection is a UNIX stream socket.  A message is a MessageHeader and
 * `length` bytes of body.  The messages of a connection, in order:
 *
 *		HELLO -> WELCOME			with the arena's file descriptor (SCM_RIGHTS)
 *		OPEN -> OPENED				a query
 *		{ STORE -> STORED }			a column of a range of a table, to be kept on the device
 *		{ DICTIONARY -> ENTRIES }	the values of a column that is kept as numbers
 *		{ RESIDENT -> RESIDED }		rows that the device has
 *		{ BATCH ... -> DONE }		a DONE for each batch, in order
 *		LEAVE -> LEFT				of a shared query: this connection's batches are reduced
 *		FINISH -> FINISHED [ GROUPS ]	all groups are known; those beyond a limit are left out
 *		{ FETCH -> GROUPS }
 *		{ PICK -> PICKED }			values of sets, by their places
 *		RESET -> OPENED				the same query from its start, for rescans
 *		CLOSE						the query is over; the connection is kept for another OPEN
 *
 * Messages may be sent before earlier ones are answered; answers come in the order of the messages.
 * A connection that is kept holds neither an arena nor a place on a device: after CLOSE the client
 * does not touch its arena, which may be another connection's, until OPENED.  That brings the
 * descriptor of another arena in its place, or none: it is the same one.
 *
 * STATUS -> STATUS_REPLY and LIST -> LISTED may come at any point and need no HELLO.  FAILED may
 * answer any message: the query is of no use any more, and the server closes the connection.  A
 * client may close the socket at any point; the server then frees what the connection held.
 *
 * Ownership of the arena: it is one mapping of arena_bytes, cut into `buffers`
 * pieces of buffer_bytes.  All of it is the client's after WELCOME, until CLOSE.  A buffer is
 * the server's from the BATCH, FETCH or PICK that names it until the DONE, GROUPS or PICKED
 * that names it.  A batch whose groups or rows the device has no room for is not
 * taken, nor is any after it: the client keeps their rows, and the server the
 * groups of those before.  The server never reads a count, an offset or a type from the
 * arena: those come in messages, and are checked before use.
 *
 * The participants of a parallel scan have a connection each and one query: they
 * open it with the same `share`, a random number of that scan.  The server keeps the query
 * as long as one of them is connected.  Each sends LEAVE after its last batch; the last one
 * of them sends FINISH and fetches the groups of all (exec/parallel.c).  After FINISH the
 * server accepts neither batches nor, for a shared query, RESET.
 */
#ifndef GPUAGG_PROTOCOL_H
#define GPUAGG_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "operators/hll.h"
#include "operators/monoid.h"
#include "operators/vector_program.h"

#define GPUAGG_PROTOCOL_MAGIC 0x47504741u
#define GPUAGG_PROTOCOL_VERSION 13

/*
 * Relative to the data directory, which is the working directory of both sides.
 * In pg_stat_tmp, as pg_basebackup and pg_rewind, which cannot copy sockets, skip its
 * content; PostgreSQL leaves the directory to extensions.
 */
#define GPUAGG_SOCKET_NAME "pg_stat_tmp/gpuagg.socket"

#define WIRE_MAX_COLS 48
#define WIRE_MAX_KEYS 8
#define WIRE_MAX_SLOTS 48
#define WIRE_MAX_ORDER 8
#define WIRE_MAX_SETS 16
#define WIRE_MAX_THRESHOLDS 65536
#define WIRE_MAX_DEVICES 16
#define WIRE_MAX_BODY (1u << 20)

/* Bytes of a packed group key. */
#define WIRE_MAX_KEY_BYTES 16

/* Buffers of an arena, and their size: each holds a batch, or a chunk of at least one group. */
#define WIRE_BUFFERS 3
#define WIRE_BUFFER_BYTES (8u << 20)

/* Every array in the arena starts at a multiple of this. */
#define WIRE_ALIGN 64

typedef enum MessageType
{
	/* client to server */
	MESSAGE_HELLO = 1,
	MESSAGE_OPEN,
	MESSAGE_BATCH,
	MESSAGE_FINISH,
	MESSAGE_FETCH,
	MESSAGE_RESET,
	MESSAGE_STATUS,
	MESSAGE_LEAVE,
	MESSAGE_STORE,
	MESSAGE_RESIDENT,
	MESSAGE_DICTIONARY,
	MESSAGE_LIST,
	MESSAGE_PICK,
	MESSAGE_CLOSE, /* is not answered */

	/* server to client */
	MESSAGE_WELCOME = 64,
	MESSAGE_OPENED,
	MESSAGE_DONE,
	MESSAGE_FINISHED,
	MESSAGE_GROUPS,
	MESSAGE_STATUS_REPLY,
	MESSAGE_FAILED,
	MESSAGE_LEFT, /* WireFinished, but of this connection alone: bytes and times */
	MESSAGE_STORED,
	MESSAGE_RESIDED,
	MESSAGE_ENTRIES,
	MESSAGE_LISTED,
	MESSAGE_PICKED,

	/* between the server and its supervisor, over the pipe it was started with */
	MESSAGE_READY = 128, /* WireStatus: devices are open, the socket accepts connections */
	MESSAGE_UNAVAILABLE, /* text: no device; starting again will not help */
	MESSAGE_LOG,         /* text */
	MESSAGE_SETTINGS,    /* WireSettings, from the supervisor */
	MESSAGE_PING,        /* from the supervisor, every second */
	MESSAGE_PONG,        /* WirePong; sent at once, as it waits for no device */
	MESSAGE_BUILD        /* text: what the server was built with; the first message */
} MessageType;

typedef struct MessageHeader
{
	uint32_t magic;
	uint32_t type;
	uint32_t length; /* of the body */
	uint32_t reserved;
} MessageHeader;

typedef struct WireHello
{
	uint32_t version;
	int32_t pid;
} WireHello;

typedef struct WireWelcome
{
	uint32_t version;
	int32_t device;
	uint64_t arena_bytes;
	uint32_t buffer_bytes;
	uint32_t buffers;
	uint32_t ndevices; /* over which tables are spread (wire_place) */
	uint32_t place_ranges;
	uint32_t
		keep_ms; /* so long after CLOSE the client keeps the connection, if it has no other query */
	uint32_t reserved;
	char device_name[128];
} WireWelcome;

/* The form in which a column's values are sent; it may differ between batches. */
typedef enum WireType
{
	WIRE_I8,
	WIRE_I16,
	WIRE_I32,
	WIRE_I64,
	WIRE_I128,
	WIRE_F32,
	WIRE_F64,
	WIRE_MAT2, /* k by k doubles, row by row */
	WIRE_MAT3,
	WIRE_MAT4,
	WIRE_MAT5,
	WIRE_TYPES
} WireType;

static inline int
wire_width(int type)
{
	static const uint8_t width[WIRE_TYPES] = {1, 2, 4, 8, 16, 4, 8, 32, 72, 128, 200};

	return width[type];
}

/*
 * A group key is packed: each key's `width` low bytes at its offset, after them
 * one byte with bit k set where key k is NULL (its bytes are then zero) unless
 * no key has `nullable`.  The rest up to key_bytes (4, 8 or 16) is zero.  That is how
 * groups come back; the server's own tables have shorter keys until the first NULL.
 */
typedef struct WireKey
{
	int16_t col;
	uint8_t width;
	uint8_t nullable;
	uint8_t offset;
	uint8_t pad[3];
} WireKey;

typedef enum WireBinKind
{
	WIRE_BIN_NONE,
	WIRE_BIN_UNIFORM,
	WIRE_BIN_THRESHOLDS,
	WIRE_BIN_HLL,
	WIRE_BIN_KINDS
} WireBinKind;

/*
 * What the rows of a group are ordered by, for operators that do not commute:
 * integers compared as signed numbers.  Equal rows stay in the order in which
 * they came.
 */
typedef struct WireOrder
{
	int16_t col;
	uint8_t desc;
	uint8_t nulls_first;
} WireOrder;

/*
 * Values of a column, integers of up to 64 bits, of rows for which the filter is true, NULLs aside.
 * The server keeps them by group until the last row, and sorts them then: each group's lie
 * together, ascending.
 */
typedef struct WireSet
{
	int16_t col;
	int16_t filter; /* WIRE_I8 without NULLs, or -1 */
} WireSet;

/* Of which rows a slot is. */
typedef enum WireSlotInput
{
	WIRE_ROWS,
	WIRE_DISTINCT, /* the set's values, one of equal ones: col[0] is the set's column, or -1 */
	WIRE_FIRST, /* COUNT: where the group's values begin among those of the set; 0 if it has none */
	WIRE_MODE, /* COUNT: the most frequent value, as wire_mode_of has it, of several the smallest; 0
				  if there is none */
	WIRE_MODE_LAST, /* the same, of several the greatest */
	WIRE_SLOT_INPUTS
} WireSlotInput;

/*
 * SlotSpec of spec.h; thresholds are an offset into the doubles after WireQuery.
 * NULLs of col[0] count for LONGEST_ASC, as in slot_takes_nulls.
 */
typedef struct WireSlot
{
	int32_t monoid;
	int16_t col[2];
	int16_t filter; /* WIRE_I8 without NULLs, or -1 */
	int16_t bin_kind;
	int32_t bin_n;
	int32_t width; /* states a group */
	uint32_t thresholds;
	double lo, hi;
	uint16_t input;   /* WireSlotInput; others than WIRE_ROWS have neither filter nor bins */
	uint16_t set;     /* which, unless WIRE_ROWS */
	uint32_t formula; /* of WIRE_BIN_UNIFORM: GpuaggBinFormula (operators/bins.h) */
} WireSlot;

#define WIRE_ORDERED 1 /* some operator does not commute */
/*
 * Rows arrive grouped.  The only key is a number of WIRE_I32 that is 0 in the first row, and the
 * same as in the row before or one more in every other.  There is one batch between OPENED and
 * FINISH; its groups are returned by number.
 */
#define WIRE_GROUPED 2
/*
 * OPENED may come before a device has the query: the server opens it when a message needs one, on
 * the device that has the rows which that message names.  What cannot be opened fails then.  Not of
 * a shared query.
 */
#define WIRE_LATE 4

typedef struct WireQuery
{
	uint64_t share; /* of the connections that share the query; 0: of one alone */
	double est_rows;
	double est_groups;
	uint32_t flags;
	uint32_t forced; /* GpuaggStrategy of gpuagg.strategy */
	uint16_t ncols;
	uint16_t nkeys;
	uint16_t nslots;
	uint16_t key_bytes;   /* 0 without keys, else 4, 8 or 16 */
	uint32_t null_offset; /* of the NULL byte in the key; key_bytes if there is none */
	uint32_t nthresholds;
	uint32_t norder; /* 0: input order is the order */
	uint32_t nsets;
	uint32_t pad;
	WireOrder order[WIRE_MAX_ORDER];
	WireSet sets[WIRE_MAX_SETS];
	WireKey keys[WIRE_MAX_KEYS];
	WireSlot slots[WIRE_MAX_SLOTS];
} WireQuery;

/* Is something kept of each row until the end, so that the bins of groups must not change? */
static inline int
wire_keeps_rows(const WireQuery *q)
{
	return (q->flags & WIRE_ORDERED) != 0 || q->nsets > 0;
}

#define WIRE_NO_ARRAY UINT32_MAX

typedef struct WireColumn
{
	uint32_t type;     /* WireType */
	uint32_t values;   /* offset in the buffer, or WIRE_NO_ARRAY: only
						* validity matters (COUNT) */
	uint32_t validity; /* LSB-first bits, or WIRE_NO_ARRAY: no NULLs */
} WireColumn;

typedef struct WireBatch
{
	uint32_t buffer;
	uint32_t nrows;
	uint32_t bytes; /* all arrays lie before this offset */
	uint32_t ncols;
	/* of the keys that are sent as integers, over the batch; min > max: unknown */
	int64_t key_min[WIRE_MAX_KEYS];
	int64_t key_max[WIRE_MAX_KEYS];
	WireColumn cols[WIRE_MAX_COLS];
} WireBatch;

typedef struct WireDone
{
	uint32_t buffer;
	uint32_t taken; /* 0: there was no room; its rows stay with the client */
} WireDone;

/*
 * Columns that stay on the device.
 *
 * The server keeps copies of what the backends' column cache (src/cache/) has: columns of
 * ranges of a table's blocks.  A range's contents are known by a stamp, a number that is never
 * used again: for a table, a range number and a stamp the rows are the same for ever, so a copy
 * needs no proof of its own.  Whether the rows are still those of the table is the backend's
 * to prove (cache/proof.c), before it names them.  All columns of a range have the same rows
 * in the same order.  A range that comes with another stamp takes the place of the old one.
 */
typedef struct WireTableKey
{
	uint64_t id; /* never used again, either */
} WireTableKey;

/*
 * The device that has a range: so many ranges that follow each other are on the same one, the next
 * ones on the next device.  So a small table is on one device, and a larger one on all.
 */
static inline uint32_t
wire_place(WireTableKey table, uint32_t range, uint32_t ndevices, uint32_t place_ranges)
{
	return (uint32_t) ((table.id + range / place_ranges) % ndevices);
}

/* What the copy of a column holds; equal keys, the same values. */
typedef struct WireColumnKey
{
	uint32_t typid;
	int32_t typmod;
	uint32_t missing;
	int16_t attno;
	int16_t scale;
	uint32_t type;  /* WireType of the values; decimals: WIRE_I64 */
	uint32_t coded; /* 1: numbers in a dictionary, see below; type is WIRE_I32 */
} WireColumnKey;

/* A column of a range, in a buffer of the arena, which is the server's until STORED. */
typedef struct WireStore
{
	WireTableKey table;
	uint64_t stamp;
	uint32_t range;
	uint32_t nrows; /* of the range; above 0 */
	WireColumnKey column;
	uint32_t buffer;
	uint32_t values;   /* offsets in the buffer */
	uint32_t validity; /* or WIRE_NO_ARRAY: no NULLs */
	/* coded: values are numbers of the message's own entries, as WireEntries has them */
	uint32_t entries;
	uint32_t nentries;
	uint32_t bytes; /* of all entries */
	uint32_t pad;
} WireStore;

typedef struct WireStored
{
	uint32_t buffer;
	uint32_t kept; /* 0: there is no room for the column */
} WireStored;

/*
 * Columns that are kept as numbers: the server has a dictionary for each, of strings of bytes that
 * differ from each other, which are numbered from 0 as they come.  STORE brings entries of its own,
 * whose numbers the server replaces by those of its dictionary.  A dictionary only grows, and goes
 * with its column; its id is never used again, by a later server either.  There are bounds for its
 * size: what exceeds them is not kept.
 */
#define WIRE_MAX_ENTRIES 65536
#define WIRE_MAX_ENTRY_BYTES (4u << 20)

/* Asks for a dictionary, of which nentries are known already. */
typedef struct WireDictionary
{
	WireTableKey table;
	WireColumnKey column;
	uint64_t id; /* 0: none is known */
	uint32_t nentries;
	uint32_t buffer;
} WireDictionary;

/* In the buffer: a uint32_t length of each entry from `first` on, then their bytes without gaps. */
typedef struct WireEntries
{
	uint64_t id; /* 0: there is none */
	uint32_t buffer;
	uint32_t first;    /* 0, or as many as were known of this one */
	uint32_t nentries; /* of the dictionary */
	uint32_t bytes;
} WireEntries;

/* What of a dictionary a query knows; all of it, or the rows are not taken. */
typedef struct WireKnown
{
	uint64_t id;
	uint64_t nentries;
} WireKnown;

/* Rows first .. first + nrows - 1 of a range. */
typedef struct WireRowRange
{
	uint64_t stamp;
	uint32_t range;
	uint32_t first;
	uint32_t nrows;
	uint32_t pad;
} WireRowRange;

/*
 * Many runs at once.  Sent with its list of runs, which are those of ranges first .. first +
 * nranges - 1, the server remembers the list by its id, a number that is never used again.  Then
 * the id stands for it.
 */
typedef struct WireSpan
{
	uint64_t id;
	uint64_t nrows;
	uint32_t first;
	uint32_t nranges;
	uint32_t row_range; /* where its list begins among the message's runs; WIRE_NO_ARRAY: it is not
						   sent */
	uint32_t nrow_ranges; /* of the list that is sent */
} WireSpan;

#define WIRE_MAX_SPANS 8192

#define WIRE_MAX_STORED_COLS 32 /* that one query reads */
#define WIRE_MAX_TABLES 32      /* of a program, for VECTOR_LOOKUP */
/* In what is lacking: a dictionary has another id, or more entries, than the message says. */
#define WIRE_OUTDATED (UINT64_C(1) << 63)
/* Rows in order are asked for, and the copies of some ranges do not lie in that of the runs. */
#define WIRE_UNSORTED (UINT64_C(1) << 62)
/* Rows that the query keeps in order are on several devices. */
#define WIRE_SPREAD (UINT64_C(1) << 61)

/*
 * Reduces rows that the device has, as if they had come in batches.  Column c of the query is
 * a register of a program that is run for each row (operators/vector_program.h), whose inputs
 * are columns of the table.  In the buffer are nrow_ranges of WireRowRange, by range and first row,
 * and behind them, if there are tables, each at wire_align, the values of ncells cells, and the
 * states, a byte each; behind this message are nspans of WireSpan, by range.
 *
 * Answer: all of the rows were taken, or none of them, because something is not there: then the
 * buffer has, behind the runs at wire_align, a uint64_t for each run, and after them for each span,
 * in which bit i says that stored column i is lacking, all 0 if the device had no room to reduce
 * the rows.  All columns are lacking of a span whose list the server does not know, and none of
 * those that are sent with their lists.  The first of these numbers may have WIRE_OUTDATED,
 * WIRE_UNSORTED or WIRE_SPREAD as well.  RESIDED may come before the rows are reduced.  Rows whose
 * outcome the program cannot tell (VECTOR_UNDETERMINED) are not counted, but FINISHED says how many
 * there were.
 */
typedef struct WireResident
{
	WireTableKey table;
	uint32_t buffer;
	uint32_t nrow_ranges;
	uint32_t nspans;
	uint32_t nstored;
	uint32_t ncols; /* as in WireQuery */
	uint32_t pad;
	int64_t key_min[WIRE_MAX_KEYS]; /* as in WireBatch, never unknown */
	int64_t key_max[WIRE_MAX_KEYS];
	uint64_t nullable; /* bit c: column c may be NULL; of the others a NULL is undetermined, or
						  false in a filter */
	uint32_t types[WIRE_MAX_COLS]; /* WireType of column c; that of its register */
	uint16_t cols[WIRE_MAX_COLS];  /* its operand, which may be a constant's */
	WireColumnKey stored[WIRE_MAX_STORED_COLS];
	WireKnown known[WIRE_MAX_STORED_COLS]; /* of coded columns */
	uint32_t ntables;
	uint32_t ncells;
	VectorTable tables[WIRE_MAX_TABLES];
	VectorProgram program;
} WireResident;

typedef struct WireResided
{
	uint32_t buffer;
	uint32_t taken;
	uint32_t refused[WIRE_MAX_DEVICES]; /* bit i: there is no room for parts of stored column i that
										   are lacking there */
} WireResided;

/*
 * An integer for each group, which compares as a value of the query does: of a key, a state or a
 * mean.  Those of 128 bits are cut to 64, floats are gpuagg_f64_code() of the value without the
 * sign of a zero.
 */
typedef struct WireValue
{
	int16_t slot;    /* one that wire_limit_takes(), with one state a group; -1: a key */
	int16_t key;     /* then its number; keys that travel as they are, or by gpuagg_f64_code() */
	int16_t counted; /* COUNT: where that is 0, the value is NULL; -1: it never is.  Not of a key */
	uint16_t mean;   /* 1: the state, SUM_F64, divided by the count */
} WireValue;

/* Leaves out groups whose value is NULL, or not min .. max. */
typedef struct WireCondition
{
	WireValue value;
	int64_t min, max;
} WireCondition;

#define WIRE_MAX_CONDITIONS 4

/* What groups are ordered by. */
typedef struct WireSort
{
	WireValue value;
	uint16_t descending;
	uint16_t nulls_first;
} WireSort;

#define WIRE_MAX_SORT 4

/*
 * Of all groups only those are wanted that meet the conditions, and of these the first `count` in
 * the order of the values, by[0] before by[1] and so on; of groups that have all values alike, any,
 * or with `ties` all that are like the last of the first. The server may return more than these,
 * and in any order.
 */
typedef struct WireLimit
{
	uint64_t count; /* 0: all that meet the conditions, of which there are some */
	uint32_t nsort; /* at least 1, if there is a count */
	uint32_t ties;
	uint32_t nconditions;
	uint32_t pad;
	WireSort by[WIRE_MAX_SORT];
	WireCondition conditions[WIRE_MAX_CONDITIONS];
} WireLimit;

/*
 * The body of FINISH, or nothing, which is all zeros.  With if_taken it may be sent with RESIDENT,
 * whose answer need not have come, and is ignored unless those rows are taken.
 */
typedef struct WireFinish
{
	WireLimit limit;
	uint32_t if_taken;
	uint32_t first;  /* if there are groups, GROUPS follows at once, of at most so many; 0: none */
	uint32_t buffer; /* in which they are */
	uint32_t ranks;  /* as in WireFetch, of these */
} WireFinish;

/*
 * Can groups be ordered by states of the operator: is there one number, that compares as the value
 * does?
 */
static inline int
wire_limit_takes(int monoid)
{
	switch (monoid)
	{
		case MONOID_COUNT:
		case MONOID_SUM_I64:
		case MONOID_SUM_I128:
		case MONOID_SUM_DEC:
		case MONOID_SUM_F32:
		case MONOID_SUM_F64:
		case MONOID_MIN_I32:
		case MONOID_MAX_I32:
		case MONOID_MIN_I64:
		case MONOID_MAX_I64:
		case MONOID_MIN_DEC:
		case MONOID_MAX_DEC:
		case MONOID_MIN_F32:
		case MONOID_MAX_F32:
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
			return 1;
		default:
			return 0;
	}
}

typedef struct WireFinished
{
	uint64_t ngroups;   /* that can be fetched */
	uint64_t allgroups; /* also those that a limit or its conditions left out */
	uint64_t failed;    /* groups that conditions left out */
	uint32_t errors;    /* MonoidError bits */
	uint32_t changes;   /* of strategy */
	uint32_t retries; /* times that a table was replaced by one with room for more or longer keys */
	uint32_t devices; /* that had rows */
	uint64_t undetermined; /* rows of RESIDENT whose outcome the program could not tell: they may be
						in groups or not */
	uint64_t bytes_in;
	uint64_t memory_peak; /* device memory of the query */
	double copy_ms;
	double kernel_ms; /* of all devices */
	double server_ms; /* in which the server was busy with this connection's messages */
	char strategy[192];
} WireFinished;

typedef struct WireFetch
{
	uint64_t first;
	uint32_t max;
	uint32_t buffer;
	uint32_t ranks; /* 1: no states will be combined, and wire_has_ranks() slots come as counts */
	uint32_t pad;
} WireFetch;

/*
 * Groups first .. first + n - 1: n packed keys, then n times wire_slot_bytes() a slot, its states
 * or ranks.
 */
typedef struct WireGroups
{
	uint64_t first;
	uint32_t n;
	uint32_t buffer;
	uint32_t ranks; /* of WireFetch */
	uint32_t keys;  /* offset in the buffer */
	uint32_t slots[WIRE_MAX_SLOTS];
} WireGroups;

/*
 * Values of a set, after FINISH: in the buffer are n places, int32_t from 0, and behind them at
 * wire_align, after PICKED, n int64_t.
 */
typedef struct WirePick
{
	uint32_t set;
	uint32_t n;
	uint32_t buffer;
	uint32_t pad;
} WirePick;

typedef struct WirePicked
{
	uint32_t buffer;
	uint32_t n;
} WirePicked;

typedef enum WireFailure
{
	FAILURE_PROTOCOL,    /* a message made no sense */
	FAILURE_UNSUPPORTED, /* no kernel for it */
	FAILURE_MEMORY,      /* device memory, or its limit */
	FAILURE_BUSY,        /* too many sessions */
	FAILURE_DEVICE       /* CUDA said so */
} WireFailure;

typedef struct WireFailed
{
	uint32_t failure;
	char text[252];
} WireFailed;

typedef struct WireDevice
{
	int32_t ordinal;
	int32_t major, minor; /* compute capability */
	int32_t processors;
	int32_t threads; /* resident on the whole device */
	uint32_t sessions;
	uint64_t memory;
	uint64_t limit;  /* what queries may use */
	uint64_t used;   /* by queries and stored columns */
	uint64_t stored; /* by stored columns alone */
	uint64_t host;   /* host memory of their lists and dictionaries; in answers to STATUS */
	uint64_t peak;
	uint64_t l2_bytes;
	uint64_t shared_bytes;
	char name[128];
	char note[200]; /* why it is not used, or what could be better; may be empty */
} WireDevice;

typedef struct WireStatus
{
	int32_t pid;
	int32_t driver; /* 13000 is 13.0 */
	uint32_t ndevices;
	uint32_t sessions; /* connections past HELLO, but those that are kept after CLOSE */
	uint64_t queries;  /* opened since the start */
	uint64_t pinned;   /* bytes of all arenas; in answers to STATUS */
	uint64_t failures; /* of them */
	uint64_t memory_failures;
	char last_error[256];
	uint32_t nskipped;
	uint32_t pad;
	WireDevice devices[WIRE_MAX_DEVICES];
	WireDevice skipped[WIRE_MAX_DEVICES]; /* that cannot be used: no more than ordinal, name and
										   * memory is known, and the note */
} WireStatus;

/*
 * Asks for columns that are kept: those of tables behind the one of this number, on this device and
 * those behind.
 */
typedef struct WireList
{
	uint64_t after; /* at first 0 */
	uint64_t device;
} WireList;

typedef struct WireListedColumn
{
	WireTableKey table;
	WireColumnKey column;
	uint64_t rows;
	uint64_t ranges;
	uint64_t bytes; /* of device memory */
} WireListedColumn;

#define WIRE_MAX_LISTED 256

/* Some of them, whole tables; none: that was all.  `next` asks for more. */
typedef struct WireListed
{
	WireList next;
	uint64_t n;
	WireListedColumn columns[WIRE_MAX_LISTED];
} WireListed;

typedef struct WireSettings
{
	uint64_t memory_limit; /* bytes a device; 0: four fifths of what is free at start */
	uint64_t pinned_limit; /* bytes of all arenas */
	uint64_t
		cache_limit; /* bytes of stored columns a device; UINT64_MAX: half of the device's memory */
} WireSettings;

typedef struct WirePong
{
	uint64_t stalled_ms; /* the longest time that a device has had work and completed none */
} WirePong;

/* Bytes of LSB-first bits for n rows, in whole 64-bit words. */
static inline size_t
wire_bitmap_bytes(size_t n)
{
	return (n + 63) / 64 * 8;
}

static inline size_t
wire_align(size_t n)
{
	return (n + WIRE_ALIGN - 1) / WIRE_ALIGN * WIRE_ALIGN;
}

/* Where the cells of RESIDENT's tables are: their values, and their states. */
static inline size_t
wire_cells_at(const WireResident *in)
{
	return wire_align((size_t) in->nrow_ranges * sizeof(WireRowRange));
}

static inline size_t
wire_cell_states_at(const WireResident *in)
{
	return wire_align(wire_cells_at(in) + (size_t) in->ncells * sizeof(int64_t));
}

/* RESIDENT's spans, which are behind the message. */
static inline const WireSpan *
wire_spans(const WireResident *in)
{
	return (const WireSpan *) (in + 1);
}

/*
 * A number of equal values, the first of which has this place: the greater, the better as a mode.
 */
GPUAGG_HD int64_t
wire_mode_of(int64_t n, int64_t place, int last)
{
	return (int64_t) ((uint64_t) n << 31) | (last ? place : INT32_MAX - place);
}

/* The place in it, which is above 0. */
GPUAGG_HD int64_t
wire_mode_place(int64_t mode, int last)
{
	return last ? mode & INT32_MAX : INT32_MAX - (mode & INT32_MAX);
}

/* Where the values of PICKED are. */
static inline size_t
wire_picked_at(uint32_t n)
{
	return wire_align((size_t) n * sizeof(int32_t));
}

/*
 * Does GROUPS have, instead of the slot's states, an int32_t for each rank: how many registers of
 * the group have it?
 */
static inline int
wire_has_ranks(const WireSlot *slot, uint32_t ranks)
{
	return ranks != 0 && slot->bin_kind == WIRE_BIN_HLL;
}

/* Bytes of one group's part of a slot in GROUPS. */
static inline size_t
wire_slot_bytes(const WireSlot *slot, uint32_t ranks)
{
	return wire_has_ranks(slot, ranks) ?
		GPUAGG_HLL_RANKS * sizeof(int32_t) :
		(size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
}

/* Bytes of one group in a GROUPS buffer, alignment gaps aside. */
static inline size_t
wire_fetched_bytes(const WireQuery *q, uint32_t ranks)
{
	size_t bytes = q->key_bytes;

	for (int s = 0; s < q->nslots; s++)
		bytes += wire_slot_bytes(&q->slots[s], ranks);
	return bytes;
}

/* The same with all states. */
static inline size_t
wire_group_bytes(const WireQuery *q)
{
	return wire_fetched_bytes(q, 0);
}

/* Does a group fit a buffer, with the gaps that align its arrays? */
static inline int
wire_group_fits(const WireQuery *q)
{
	return wire_group_bytes(q) + (q->nslots + 1) * WIRE_ALIGN <= WIRE_BUFFER_BYTES;
}

#endif /* GPUAGG_PROTOCOL_H */
