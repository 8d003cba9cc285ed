/*
 * protocol.h
 *	  Messages between backends (the clients) and the GPU server, and the memory that they
 *	  share.
 *
 * Plain C without PostgreSQL: both sides include this file. They always run on one machine and come
 * from one installation. WireStatus.version in READY, and WireHello.version, detect a server of
 * another build. Change GPUAGG_PROTOCOL_VERSION with every change of a message.
 *
 * A connection is a UNIX stream socket. A message is a MessageHeader, followed by `length` bytes of
 * body. The messages of a connection, with their bodies, in order:
 *
 * 	message        body                 answer             body
 * 	HELLO          WireHello            WELCOME            WireWelcome, arena's descriptor
 * 	OPEN           WireQuery [1]        OPENED             none, or a descriptor after CLOSE
 * 	STORE          WireStore            STORED             WireStored
 * 	DICTIONARY     WireDictionary       ENTRIES            WireEntries
 * 	VALUES         WireValues           VALUED             WireValued
 * 	RESIDENT       WireResident [2]     RESIDED            WireResided
 * 	BATCH          WireBatch            DONE               WireDone
 * 	LEAVE          none                 LEFT               WireFinished
 * 	FINISH         WireFinish or none   FINISHED [GROUPS]  WireFinished [WireGroups]
 * 	FETCH          WireFetch            GROUPS             WireGroups
 * 	PICK           WirePick             PICKED             WirePicked
 * 	RESET          none                 OPENED             none
 * 	CLOSE          none                 no answer
 *
 * 	[1] followed by the thresholds, nthresholds doubles
 * 	[2] followed by nspans of WireSpan
 *
 * OPEN starts a query. STORE sends a column of a block range, which the server keeps on a device.
 * DICTIONARY asks for the values of a column that is kept as codes. RESIDENT reduces rows that the
 * devices have already; VALUES asks for the values of codes in its columns. BATCH reduces rows in
 * the arena. FINISH ends the rows: the server then knows all groups, and leaves out those beyond a
 * limit. FETCH returns groups, PICK returns values of sets. RESET restarts the same query for a
 * rescan. CLOSE ends the query, and keeps the connection for another OPEN.
 *
 * STORE, DICTIONARY, RESIDENT, VALUES and BATCH may repeat and may come in any order; so may FETCH
 * and PICK after FINISH. The client may send a message before earlier ones are answered. Answers
 * come in the order of the messages.
 *
 * STATUS is answered by STATUS_REPLY (WireStatus), and LIST (WireList) by LISTED (WireListed). Both
 * may come at any point, and before HELLO. FAILED (WireFailed) may answer any message: the query is
 * lost, and the server closes the connection. A client may close the socket at any point. The
 * server then frees what the connection had.
 *
 * Ownership of the arena: it is one mapping of arena_bytes, divided into `buffers` buffers of
 * buffer_bytes. The client owns all of it from WELCOME to CLOSE, with one exception: the server
 * owns a buffer from the message that names it (BATCH, STORE, DICTIONARY, RESIDENT, VALUES, FINISH
 * with groups, FETCH, PICK) until the answer that names it. If a DONE has taken = 0, the device had
 * no room for the batch's groups or rows: the batch is not reduced, and no later batch is. The
 * client keeps the rows of these batches, and the server keeps the groups of the batches before.
 * The server never reads a count, an offset or a type from the arena: these come in messages, and
 * are checked before use.
 *
 * After CLOSE the connection has neither an arena nor a device. The client must not touch its arena
 * until OPENED, because another connection may use it. If OPENED brings a descriptor, it is of
 * another arena that replaces the old one. If it brings none, the arena is the old one.
 *
 * Shared queries: each participant of a parallel scan has a connection, and all have one query.
 * They open it with the same `shared_id`, a random number of that scan. The server keeps the query
 * as long as one of them is connected. Each participant sends LEAVE after its last batch; the last
 * one sends FINISH and fetches the groups of all (exec/parallel.c). After FINISH the server accepts
 * no batches. It never accepts RESET for a shared query.
 */
#ifndef GPUAGG_PROTOCOL_H
#define GPUAGG_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "operators/hll.h"
#include "operators/monoid.h"
#include "operators/vector_program.h"

#define GPUAGG_PROTOCOL_MAGIC 0x47504741u
#define GPUAGG_PROTOCOL_VERSION 21

/*
 * Path of the socket, relative to the data directory, which is the working directory of both sides.
 * The socket is in pg_stat_tmp because pg_basebackup and pg_rewind skip that directory's content:
 * they cannot copy sockets. PostgreSQL leaves the directory to extensions.
 */
#define GPUAGG_SOCKET_NAME "pg_stat_tmp/gpuagg.socket"

#define WIRE_MAX_COLS 128
#define WIRE_MAX_KEYS 8
#define WIRE_MAX_SLOTS 128
#define WIRE_MAX_ORDER 8
#define WIRE_MAX_SETS 16
#define WIRE_MAX_THRESHOLDS 65536
#define WIRE_MAX_DEVICES 16
#define WIRE_MAX_BODY (1u << 20)

/* Most bytes of a packed group key: values of 8 bytes, and one byte for NULLs, in whole words. */
#define WIRE_MAX_KEY_BYTES (8 * WIRE_MAX_KEYS + 4)

/*
 * Number of an arena's buffers, and bytes of each. A buffer has room for a batch, or for at least
 * one group.
 */
#define WIRE_BUFFERS 3
#define WIRE_BUFFER_BYTES (8u << 20)

/* Alignment of every array in the arena, in bytes. */
#define WIRE_ALIGN 64

typedef enum MessageType
{
	/* from client to server */
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
	MESSAGE_VALUES,
	MESSAGE_CLOSE,

	/* from server to client */
	MESSAGE_WELCOME = 64,
	MESSAGE_OPENED,
	MESSAGE_DONE,
	MESSAGE_FINISHED,
	MESSAGE_GROUPS,
	MESSAGE_STATUS_REPLY,
	MESSAGE_FAILED,
	MESSAGE_LEFT, /* bytes and times of this connection alone */
	MESSAGE_STORED,
	MESSAGE_RESIDED,
	MESSAGE_ENTRIES,
	MESSAGE_LISTED,
	MESSAGE_PICKED,
	MESSAGE_VALUED,

	/* between the server and its supervisor, through the pipe that the supervisor made */
	MESSAGE_READY = 128, /* from the server: WireStatus. The socket accepts connections */
	MESSAGE_UNAVAILABLE, /* from the server: text. No device; another start will not help */
	MESSAGE_LOG,         /* from the server: text */
	MESSAGE_SETTINGS,    /* from the supervisor: WireSettings */
	MESSAGE_PING,        /* from the supervisor, every second */
	MESSAGE_PONG,        /* from the server: WirePong; sent at once, without a device call */
	MESSAGE_BUILD        /* from the server: text, describes the build; the first message */
} MessageType;

typedef struct MessageHeader
{
	uint32_t magic;
	uint32_t type;
	uint32_t length; /* of the body */
	uint32_t reserved;
} MessageHeader;

/* The server's answer is FAILED if the versions differ. */
typedef struct WireHello
{
	uint32_t version;
	int32_t pid;
} WireHello;

typedef struct WireWelcome
{
	uint32_t version;
	int32_t device; /* on which the server placed the connection */
	uint64_t arena_bytes;
	uint32_t buffer_bytes;
	uint32_t buffers;
	uint32_t ndevices;     /* devices that tables are distributed over (wire_place) */
	uint32_t place_ranges; /* argument of wire_place() */
	/* For how long the client may keep a connection after CLOSE without another query. */
	uint32_t keep_ms;
	uint32_t reserved;
	char device_name[128];
} WireWelcome;

/* Type in which a column's values are sent. It may differ between batches. */
typedef enum WireType
{
	WIRE_I8,
	WIRE_I16,
	WIRE_I32,
	WIRE_I64,
	WIRE_I128,
	WIRE_F32,
	WIRE_F64,
	WIRE_MAT2, /* 2 by 2 doubles, row by row; the next ones are 3 by 3 to 5 by 5 */
	WIRE_MAT3,
	WIRE_MAT4,
	WIRE_MAT5,
	WIRE_TYPES
} WireType;

/* Returns the bytes of a value of a WireType. */
static inline int
wire_width(int type)
{
	static const uint8_t width[WIRE_TYPES] = {1, 2, 4, 8, 16, 4, 8, 32, 72, 128, 200};

	return width[type];
}

/*
 * A column of the group key, and where its values are in the packed key.
 *
 * A packed key has key_bytes bytes (wire_key_bytes): the `width` low bytes of each key column at
 * its offset, then one byte for NULLs, unless no key column has `nullable`. Bit k of that byte is
 * set if key column k is NULL; its value bytes are then zero. All other bytes are zero. Groups are
 * returned with such keys. The server's own tables have shorter keys until the first NULL comes.
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
 * A sort key for the rows of each group, for operators that do not commute. Values are integers,
 * compared as signed numbers. Rows with equal keys stay in the order in which they came.
 */
typedef struct WireOrder
{
	int16_t col;
	uint8_t desc;
	uint8_t nulls_first;
} WireOrder;

/*
 * A set of values for each group, for DISTINCT and ordered-set aggregates: the values of a column
 * of integers up to 64 bits, of rows for which the filter is true, without NULLs. The server keeps
 * the values until the last row has come. It then sorts them by group and value, ascending.
 *
 * Each value may have one of another column of integers beside it, which may be NULL. Equal values
 * are then sorted by these: ascending with NULLs last, or descending with NULLs first.
 *
 * A counted set has each value of a group once, with its place, and no others beside it. The place
 * is that of its first row among the rows of all groups, so that the difference of two places in a
 * group is the number of rows from one value to the other.
 */
typedef struct WireSet
{
	int16_t col;
	int16_t filter; /* WIRE_I8 without NULLs, or -1 */
	int16_t beside; /* column of the values beside these, or -1 */
	uint8_t descending;
	uint8_t counted;
} WireSet;

/* Input of a slot. */
typedef enum WireSlotInput
{
	WIRE_ROWS,     /* all rows that pass the slot's filter */
	WIRE_DISTINCT, /* the distinct values of the set; col[0] is the set's column, or -1 */
	/*
	 * COUNT: position of the group's first value among all values of the set; 0 if the group has
	 * none.
	 */
	WIRE_FIRST,
	/*
	 * COUNT: the most frequent value, encoded as wire_mode_of(); the smallest one of several; 0 if
	 * there is no value. Not of a counted set.
	 */
	WIRE_MODE,
	WIRE_MODE_LAST, /* the same, but the greatest one of several */
	WIRE_SLOT_INPUTS
} WireSlotInput;

/* A slot: see SlotSpec in spec.h. NULLs of col[0] count for LONGEST_ASC, as in slot_takes_nulls. */
typedef struct WireSlot
{
	int32_t monoid;
	int16_t col[2];
	int16_t filter; /* WIRE_I8 without NULLs, or -1 */
	int16_t bin_kind;
	int32_t bin_n;
	int32_t width;       /* states per group */
	uint32_t thresholds; /* index of its first one in the doubles after WireQuery */
	double lo, hi;
	uint16_t input;   /* WireSlotInput; if not WIRE_ROWS, there are neither a filter nor bins */
	uint16_t set;     /* index of the set, if the input is not WIRE_ROWS */
	uint32_t formula; /* GpuaggBinFormula (operators/bins.h), for WIRE_BIN_UNIFORM */
} WireSlot;

/* Returns the bytes of a packed key whose values and NULL byte end at byte `end`. */
static inline int
wire_key_bytes(int end)
{
	return end <= 4 ? 4 : end <= 8 ? 8 : end <= 16 ? 16 : (end + 3) / 4 * 4;
}

/* Flags of a query. */
#define WIRE_ORDERED 1 /* some operator does not commute: rows are kept in order */
/*
 * Rows arrive grouped. The only key is a group number of type WIRE_I32: 0 in the first row, and in
 * every other row the same as in the row before, or one more. There is one batch between OPENED and
 * FINISH. Its groups are returned by number.
 */
#define WIRE_GROUPED 2
/*
 * OPENED may come before a device has the query. The server opens the query when a message needs
 * it, on the device that has the rows which that message names; that message fails if the query
 * cannot be opened. Not for shared queries.
 */
#define WIRE_LATE 4

/* The body of OPEN. */
typedef struct WireQuery
{
	uint64_t shared_id; /* the same in all connections that share the query; 0: not shared */
	double est_rows;
	double est_groups;
	uint32_t flags;
	uint32_t forced; /* GpuaggStrategy, from gpuagg.strategy */
	uint16_t ncols;
	uint16_t nkeys;
	uint16_t nslots;
	uint16_t key_bytes;   /* of a packed key; 0 without keys */
	uint32_t null_offset; /* offset of the NULL byte in the key; key_bytes: there is none */
	uint32_t nthresholds;
	uint32_t norder; /* 0: rows are ordered as they come */
	uint32_t nsets;
	uint32_t pad;
	WireOrder order[WIRE_MAX_ORDER];
	WireSet sets[WIRE_MAX_SETS];
	WireKey keys[WIRE_MAX_KEYS];
	WireSlot slots[WIRE_MAX_SLOTS];
} WireQuery;

/*
 * Returns whether the server keeps values of each row until the end. The groups' bins must not
 * change then.
 */
static inline int
wire_keeps_rows(const WireQuery *q)
{
	return (q->flags & WIRE_ORDERED) != 0 || q->nsets > 0;
}

#define WIRE_NO_ARRAY UINT32_MAX

/* A column of a batch. */
typedef struct WireColumn
{
	uint32_t type;     /* WireType */
	uint32_t values;   /* offset in the buffer; WIRE_NO_ARRAY: only NULLs matter (COUNT) */
	uint32_t validity; /* offset of LSB-first bits; WIRE_NO_ARRAY: there are no NULLs */
} WireColumn;

/* The body of BATCH: rows in a buffer of the arena, which the server owns until DONE. */
typedef struct WireBatch
{
	uint32_t buffer;
	uint32_t nrows;
	uint32_t bytes; /* all arrays lie before this offset */
	uint32_t ncols;
	/*
	 * Smallest and greatest values in the batch, for keys that are sent as integers; min > max:
	 * unknown.
	 */
	int64_t key_min[WIRE_MAX_KEYS];
	int64_t key_max[WIRE_MAX_KEYS];
	WireColumn cols[WIRE_MAX_COLS];
} WireBatch;

typedef struct WireDone
{
	uint32_t buffer;
	uint32_t taken; /* 0: there was no room, and the rows stay with the client */
} WireDone;

/*
 * ---- columns that are cached on the devices ----
 *
 * The server keeps copies of columns of the backends' column cache (src/cache/). A table's blocks
 * are divided into block ranges ("ranges"), and a copy has one column of one range. A stamp
 * identifies the content of a range; stamps are never reused. The table, the range's number and the
 * stamp together determine the rows, so a copy never becomes wrong. But a backend must prove that
 * the table still has these rows (cache/proof.c) before it names them in a message. All columns of
 * a range have the same rows in the same order. A range that comes with another stamp replaces the
 * old one.
 */
typedef struct WireTableKey
{
	uint64_t id; /* never reused */
} WireTableKey;

/*
 * Returns the device that stores a range. place_ranges consecutive ranges are on one device, and
 * the next ones on the next device. So a small table is on one device, and a large one on all.
 */
static inline uint32_t
wire_place(WireTableKey table, uint32_t range, uint32_t ndevices, uint32_t place_ranges)
{
	return (uint32_t) ((table.id + range / place_ranges) % ndevices);
}

/* Identifies a column of a table. Columns with equal keys have the same values. */
typedef struct WireColumnKey
{
	uint32_t typid;
	int32_t typmod;
	uint32_t missing; /* hash of the value in rows older than the column; 0: NULL */
	int16_t attno;
	int16_t scale;
	uint32_t type;  /* WireType of the values; WIRE_I64 for decimals */
	uint32_t coded; /* 1: values are codes in a dictionary (see below), and the type is WIRE_I32 */
} WireColumnKey;

/*
 * The body of STORE: a column of a range, in a buffer of the arena, which the server owns until
 * STORED.
 */
typedef struct WireStore
{
	WireTableKey table;
	uint64_t stamp;
	uint32_t range;
	uint32_t nrows; /* rows of the range, at least 1 */
	WireColumnKey column;
	uint32_t buffer;
	uint32_t values;   /* offset in the buffer */
	uint32_t validity; /* offset in the buffer; WIRE_NO_ARRAY: there are no NULLs */
	/*
	 * If the column is coded: offset, number and bytes of the message's own entries, in the layout
	 * of WireEntries. The values are indexes of these entries. If one message has no room for all
	 * entries, STORE is sent several times. All but the last one have only entries, and `more`; the
	 * others come `before` this message's. The indexes count from the first one of all.
	 */
	uint32_t entries;
	uint32_t nentries;
	uint32_t bytes;
	uint32_t before;
	uint32_t more; /* 1: values and validity are not used, and the same range's STORE follows */
	uint32_t pad;
} WireStore;

typedef struct WireStored
{
	uint32_t buffer;
	uint32_t kept; /* 0: there was no room for the column, or for these entries */
} WireStored;

/*
 * Dictionaries of coded columns.
 *
 * The server has a dictionary for each coded column. Its entries are distinct strings of bytes,
 * numbered from 0 as they come; a value's number is its code. STORE brings entries of its own, and
 * the server replaces their numbers by codes of its dictionary. A dictionary only grows, and is
 * freed with its column. Its id is never reused, also not by another server process. Codes are
 * below INT32_MAX. A column whose dictionary has no room in host memory is not kept.
 */

/* Most bytes of an entry. A buffer has room for one. */
#define WIRE_MAX_ENTRY_BYTES (4u << 20)

/*
 * The body of DICTIONARY: asks for at most `most` entries of a dictionary, from `nentries` on. The
 * client has those before. The answer has fewer where the buffer has no room.
 */
typedef struct WireDictionary
{
	WireTableKey table;
	WireColumnKey column;
	uint64_t id; /* of the dictionary that the client has a copy of; 0: none */
	uint32_t nentries;
	uint32_t buffer;
	uint32_t most;
	uint32_t pad;
} WireDictionary;

/*
 * The body of ENTRIES. The buffer has a uint32_t length for each of n entries from `first` on, and
 * then the entries' bytes without gaps.
 */
typedef struct WireEntries
{
	uint64_t id; /* 0: there is no dictionary */
	uint32_t buffer;
	uint32_t first; /* 0, or WireDictionary.nentries if the client's copy is of this dictionary */
	uint32_t n;
	uint32_t bytes;
	uint64_t all_bytes; /* of all entries of the dictionary */
	uint32_t nentries;  /* in the dictionary */
	uint32_t pad;
} WireEntries;

/*
 * The body of VALUES: asks for the values of n codes of a stored column of the last RESIDENT, whose
 * rows were taken. The buffer has the codes, uint32_t.
 */
typedef struct WireValues
{
	uint32_t stored;
	uint32_t n;
	uint32_t buffer;
	uint32_t pad;
} WireValues;

/*
 * The body of VALUED: the values of the first n codes, as many as have room. The buffer has them at
 * wire_align() of the codes' bytes, in the layout of ENTRIES. Codes without an entry have empty
 * ones.
 */
typedef struct WireValued
{
	uint32_t buffer;
	uint32_t n;
	uint32_t bytes;
	uint32_t pad;
} WireValued;

/* A dictionary as the client knows it. Rows are reduced only if it has still as many entries. */
typedef struct WireKnown
{
	uint64_t id;
	uint64_t nentries;
} WireKnown;

/* A range of rows: rows first .. first + nrows - 1 of the block range `range`. */
typedef struct WireRowRange
{
	uint64_t stamp;
	uint32_t range;
	uint32_t first;
	uint32_t nrows;
	uint32_t pad;
} WireRowRange;

/*
 * A span: a list of row ranges that has an id. The list covers the block ranges first .. first +
 * nranges - 1.
 *
 * When a span comes with its list, the server remembers the list by the id, which is never reused.
 * From then on the id alone stands for the list.
 */
typedef struct WireSpan
{
	uint64_t id;
	uint64_t nrows;
	uint32_t first;
	uint32_t nranges;
	uint32_t row_range;   /* index of the list's first row range in the message; WIRE_NO_ARRAY: the
							 list is not sent */
	uint32_t nrow_ranges; /* length of the list, if it is sent */
} WireSpan;

#define WIRE_MAX_SPANS 8192

#define WIRE_MAX_STORED_COLS 32   /* that one query reads */
#define WIRE_MAX_RESIDENT_COLS 48 /* of a query over stored columns */
#define WIRE_MAX_TABLES 32        /* lookup tables of a program, for VECTOR_LOOKUP */

/*
 * Flags in the first number of the list of lacking columns.
 *
 * A dictionary has another id, or more entries, than WireKnown says.
 */
#define WIRE_OUTDATED (UINT64_C(1) << 63)
/*
 * The query needs rows in the order of the row ranges, and the copies are stored in another order.
 */
#define WIRE_UNSORTED (UINT64_C(1) << 62)
/* The query keeps rows in order, and the rows are on several devices. */
#define WIRE_SPREAD (UINT64_C(1) << 61)

/*
 * The name of a lookup table's cells. The same name always stands for the same cells, also after a
 * restart: it is a hash of what decides them. All zeros: the cells have no name.
 */
typedef struct WireCellsName
{
	uint64_t part[2];
} WireCellsName;

static inline int
wire_is_named(const WireCellsName *name)
{
	return (name->part[0] | name->part[1]) != 0;
}

/*
 * The body of RESIDENT: reduces rows that the devices have, as if they had come in batches.
 *
 * The server runs a program for each row (operators/vector_program.h). Its inputs are columns of
 * the table; column c of the query is the program's operand cols[c]. The buffer has nrow_ranges of
 * WireRowRange, ordered by range and first row. nspans of WireSpan, ordered by range, follow this
 * struct in the message.
 *
 * If the program has lookup tables, the cells of those in `sent` follow in the buffer at
 * wire_cells_at(): cell_bytes bytes, see VectorTable. The server keeps cells that have a name on
 * the device if there is room, whether or not it takes the rows. From then on the name alone stands
 * for the cells: VectorTable.first of a table that is not in `sent` is not used.
 *
 * The rows are taken all or not at all. If they are not, something is lacking on the device, and
 * the buffer has, behind the row ranges at wire_align, a uint64_t for each row range and then one
 * for each span. Bit i is set if stored column i is lacking. All are 0 if only cells are lacking
 * (WireResided.lacking_cells), or if the device had no room to reduce the rows. A span whose list
 * is unknown to the server lacks all columns; a span that is sent with its list lacks none. The
 * first number may also have WIRE_OUTDATED, WIRE_UNSORTED or WIRE_SPREAD.
 *
 * RESIDED may come before the rows are reduced. Rows whose result the program cannot compute
 * (VECTOR_UNDETERMINED) are not counted; FINISHED says how many there were.
 */
typedef struct WireResident
{
	WireTableKey table;
	uint32_t buffer;
	uint32_t nrow_ranges;
	uint32_t nspans;
	uint32_t nstored;
	uint32_t ncols; /* as in WireQuery; at most WIRE_MAX_RESIDENT_COLS */
	uint32_t pad;
	int64_t key_min[WIRE_MAX_KEYS]; /* as in WireBatch, but never unknown */
	int64_t key_max[WIRE_MAX_KEYS];
	/*
	 * Bit c: column c may be NULL. In other columns a NULL makes the row undetermined, or counts as
	 * false in a filter.
	 */
	uint64_t nullable;
	uint32_t types[WIRE_MAX_RESIDENT_COLS]; /* WireType of column c, and of its register */
	uint16_t cols[WIRE_MAX_RESIDENT_COLS];  /* operand for column c; it may be a constant */
	WireColumnKey stored[WIRE_MAX_STORED_COLS];
	WireKnown known[WIRE_MAX_STORED_COLS]; /* dictionaries of coded columns */
	uint32_t ntables;
	uint32_t sent;       /* tables whose cells are in the buffer, a bit each */
	uint32_t cell_bytes; /* of all these tables: a multiple of 8 */
	uint32_t reserved;
	VectorTable tables[WIRE_MAX_TABLES];
	WireCellsName names[WIRE_MAX_TABLES]; /* of the tables' cells */
	VectorProgram program;
} WireResident;

/* Returns whether the cells of a table are in the buffer. */
static inline int
wire_is_sent(const WireResident *in, uint32_t table)
{
	return in->sent >> table & 1;
}

typedef struct WireResided
{
	uint32_t buffer;
	uint32_t taken;
	/*
	 * If the rows are not taken: tables whose cells a device has not kept, a bit each, whether or
	 * not they were sent.
	 */
	uint32_t lacking_cells;
	/* Bit i of a device's number: it lacks parts of stored column i, and has no room for them. */
	uint32_t refused[WIRE_MAX_DEVICES];
} WireResided;

/*
 * An integer for each group that compares like a value of the query: a key, a state or a mean.
 * Values of 128 bits are clamped to 64. Floats are replaced by gpuagg_f64_code() of the value, with
 * -0 as 0.
 */
typedef struct WireValue
{
	int16_t slot; /* one with wire_limit_takes() and one state per group; -1: the value is a key */
	int16_t key;  /* number of the key, if slot is -1; as it is sent, or by gpuagg_f64_code() */
	/* A COUNT slot: the value is NULL where the count is 0. -1: never NULL. Not for a key. */
	int16_t counted;
	uint16_t mean; /* 1: the value is the state, SUM_F64, divided by the count */
} WireValue;

/* Leaves out groups whose value is NULL or outside min .. max. */
typedef struct WireCondition
{
	WireValue value;
	int64_t min, max;
} WireCondition;

#define WIRE_MAX_CONDITIONS 4

/* A sort key of groups. */
typedef struct WireSort
{
	WireValue value;
	uint16_t descending;
	uint16_t nulls_first;
} WireSort;

#define WIRE_MAX_SORT 4

/*
 * Restricts the groups to those that meet all conditions, and of these to the first `count`,
 * ordered by by[0], then by[1] and so on. If groups are equal in all sort keys, any of them are
 * returned; with `ties`, all that are equal to the last one. The server may return more groups than
 * these, and returns them in any order.
 */
typedef struct WireLimit
{
	uint64_t count; /* 0: all that meet the conditions; there is at least one condition then */
	uint32_t nsort; /* at least 1, if there is a count */
	uint32_t ties;
	uint32_t nconditions;
	uint32_t pad;
	WireSort by[WIRE_MAX_SORT];
	WireCondition conditions[WIRE_MAX_CONDITIONS];
} WireLimit;

/*
 * The body of FINISH. An empty body means all zeros. With if_taken, FINISH may be sent directly
 * after RESIDENT, before its answer: the server ignores FINISH unless it took the rows of that
 * RESIDENT.
 */
typedef struct WireFinish
{
	WireLimit limit;
	uint32_t if_taken;
	uint32_t first; /* if there are groups, GROUPS follows at once, with at most this many; 0: no */
	uint32_t buffer; /* in which the groups are returned */
	uint32_t ranks;  /* as in WireFetch, for these groups */
} WireFinish;

/*
 * Returns whether groups can be ordered by states of the operator: whether a state has a number
 * that compares like its value.
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

/* The body of FINISHED, and of LEFT, where it has the bytes and times of one connection. */
typedef struct WireFinished
{
	uint64_t ngroups;   /* groups that can be fetched */
	uint64_t allgroups; /* groups before the limit and its conditions */
	uint64_t failed;    /* groups that did not meet the conditions */
	uint32_t errors;    /* MonoidError bits */
	uint32_t changes;   /* number of changes of the strategy */
	uint32_t retries;   /* times that a table was replaced by one with more room or longer keys */
	uint32_t devices;   /* number of devices that had rows */
	/*
	 * Rows of RESIDENT whose result the program could not compute. They may be counted in groups,
	 * or not.
	 */
	uint64_t undetermined;
	uint64_t bytes_in;
	uint64_t memory_peak; /* device memory of the query */
	double copy_ms;
	double kernel_ms; /* of all devices */
	double server_ms; /* time that the server spent with this connection's messages */
	char strategy[192];
} WireFinished;

/*
 * The body of FETCH: asks for groups first .. first + max - 1, or as many as the buffer has room
 * for.
 */
typedef struct WireFetch
{
	uint64_t first;
	uint32_t max;
	uint32_t buffer;
	uint32_t ranks; /* 1: the client combines no states, and slots with wire_has_ranks() come as
					   counts */
	uint32_t pad;
} WireFetch;

/*
 * The body of GROUPS: groups first .. first + n - 1. The buffer has n packed keys at `keys`, and
 * for each slot n times wire_slot_bytes() at its offset: states, or counts of ranks.
 */
typedef struct WireGroups
{
	uint64_t first;
	uint32_t n;
	uint32_t buffer;
	uint32_t ranks;                 /* as in WireFetch */
	uint32_t keys;                  /* offset in the buffer */
	uint32_t slots[WIRE_MAX_SLOTS]; /* offsets in the buffer */
} WireGroups;

/*
 * The body of PICK, after FINISH: asks for values of a set by their positions. The buffer has n
 * positions, int32_t from 0. After PICKED it also has n values, int64_t, at wire_picked_at(n). If
 * the set has values beside these, they follow, as wire_beside_code() of the value, and then an
 * int32_t for each, wire_beside_order(). If the set is counted, an int32_t for each follows, its
 * place.
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
	FAILURE_PROTOCOL,    /* an invalid message */
	FAILURE_UNSUPPORTED, /* there is no kernel for the query */
	FAILURE_MEMORY,      /* out of device memory, or the limit is reached */
	FAILURE_BUSY,        /* too many sessions */
	FAILURE_DEVICE       /* CUDA reported an error */
} WireFailure;

/* The body of FAILED. */
typedef struct WireFailed
{
	uint32_t failure;
	char text[252];
} WireFailed;

/* Returns the bytes of a bitmap for n rows: LSB-first bits in whole 64-bit words. */
static inline size_t
wire_bitmap_bytes(size_t n)
{
	return (n + 63) / 64 * 8;
}

/* Rounds up to WIRE_ALIGN. */
static inline size_t
wire_align(size_t n)
{
	return (n + WIRE_ALIGN - 1) / WIRE_ALIGN * WIRE_ALIGN;
}

/* Returns the offset of the lookup tables' cells in the buffer of RESIDENT. */
static inline size_t
wire_cells_at(const WireResident *in)
{
	return wire_align((size_t) in->nrow_ranges * sizeof(WireRowRange));
}

/* Returns the offset of the end of the cells. */
static inline size_t
wire_cells_end(const WireResident *in)
{
	return wire_cells_at(in) + in->cell_bytes;
}

/* Returns the spans, which follow the message's struct. */
static inline const WireSpan *
wire_spans(const WireResident *in)
{
	return (const WireSpan *) (in + 1);
}

/*
 * Encodes a candidate for the mode: n equal values, the first of which is at this position. The
 * greatest code is the mode.
 */
GPUAGG_HD int64_t
wire_mode_of(int64_t n, int64_t place, int last)
{
	return (int64_t) ((uint64_t) n << 31) | (last ? place : INT32_MAX - place);
}

/* Returns the position from such a code. The code must be above 0. */
GPUAGG_HD int64_t
wire_mode_place(int64_t mode, int last)
{
	return last ? mode & INT32_MAX : INT32_MAX - (mode & INT32_MAX);
}

/* Returns the offset of the values in the buffer of PICKED. */
static inline size_t
wire_picked_at(uint32_t n)
{
	return wire_align((size_t) n * sizeof(int32_t));
}

/* Returns the offset of the end of n picked values of a set, with all that follows them. */
static inline size_t
wire_picked_end(uint32_t n, const WireSet *set)
{
	size_t more = set->beside >= 0 ? sizeof(int64_t) + sizeof(int32_t) :
		set->counted               ? sizeof(int32_t) :
									 0;

	return wire_picked_at(n) + (size_t) n * (sizeof(int64_t) + more);
}

/*
 * Codes of a value beside another one. Pairs of order and code, both ascending, are sorted as
 * WireSet says.
 */
GPUAGG_HD int32_t
wire_beside_order(int isnull, int descending)
{
	return (isnull != 0) != (descending != 0);
}

/* The value of a NULL does not matter. */
GPUAGG_HD int64_t
wire_beside_code(int64_t value, int isnull, int descending)
{
	if (isnull)
		value = INT64_MAX;
	return descending ? ~value : value;
}

/*
 * Returns whether GROUPS has counts of ranks instead of the slot's states: an int32_t for each
 * rank, the number of the group's registers with that rank.
 */
static inline int
wire_has_ranks(const WireSlot *slot, uint32_t ranks)
{
	return ranks != 0 && slot->bin_kind == WIRE_BIN_HLL;
}

/* Returns the bytes that one group has of a slot in GROUPS. */
static inline size_t
wire_slot_bytes(const WireSlot *slot, uint32_t ranks)
{
	return wire_has_ranks(slot, ranks) ?
		GPUAGG_HLL_RANKS * sizeof(int32_t) :
		(size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
}

/* Returns the bytes of one group in GROUPS, without gaps for alignment. */
static inline size_t
wire_fetched_bytes(const WireQuery *q, uint32_t ranks)
{
	size_t bytes = q->key_bytes;

	for (int s = 0; s < q->nslots; s++)
		bytes += wire_slot_bytes(&q->slots[s], ranks);
	return bytes;
}

/* Returns the bytes of one group with the states of all slots. */
static inline size_t
wire_group_bytes(const WireQuery *q)
{
	return wire_fetched_bytes(q, 0);
}

/* Returns whether a buffer has room for one group, with the gaps that align the arrays. */
static inline int
wire_group_fits(const WireQuery *q)
{
	return wire_group_bytes(q) + (q->nslots + 1) * WIRE_ALIGN <= WIRE_BUFFER_BYTES;
}

#endif /* GPUAGG_PROTOCOL_H */
