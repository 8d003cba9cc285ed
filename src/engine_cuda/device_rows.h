/*
 * device_rows.h
 *	  Client side of RESIDENT: a query over rows whose columns are cached on the devices.
 *	  Internal to device_rows.c, device_keys.c, device_values.c, device_lookups.c, device_slots.c,
 *	  device_matches.c, device_cells.c and device_upload.c.
 *
 * The feed, the expression program, this engine and the server work together. In
 * EngineOps.take_resident, before the first batch:
 *
 * 1. The engine sends OPEN without waiting for the answer, and asks the feed for a table that has
 *   cached ranges (FeedOps.resident, feed/heap_resident.c).
 * 2. The engine translates conditions, keys and arguments to a program (expr/program.h). If that
 *   fails, program->unsupported_reason says why.
 * 3. The feed proves ranges of the column cache and collects their rows (feed_resident_collect),
 *   as row ranges and spans. For each range it calls accept_chunks() here, which accepts the range
 *   if the GPU can have its chunks, and keeps bounds of their values.
 * 4. The engine describes the query over these rows: it fetches the dictionaries of coded columns
 *   (DICTIONARY) that expressions need, fills lookup tables and names their cells, and completes
 *   the program with checks that the values' bounds make necessary.
 * 5. The engine sends RESIDENT. If the collected rows are all rows of the query, it sends FINISH
 *   together with it (WireFinish.if_taken).
 * 6. The server takes all rows, or none and says what is lacking (RESIDED).
 * 7. If nothing was taken: spans that the server does not know are replaced by their row ranges,
 *   and step 4 is repeated, with the cells of lookup tables that the server lacks. The first time
 *   that columns are lacking, they are uploaded (device_upload.c, STORE) and step 4 is repeated.
 *   Later, ranges that still lack columns are given back to the feed. There are at most ATTEMPTS
 *   rounds.
 * 8. The feed excludes the rows that were taken (feed_resident_taken), and returns all others as
 *   batches.
 * 9. If a row may have several matches in a join, steps 2 and 4 to 7 are repeated for each further
 *   match of the same rows.  If one of these passes cannot be made, the executor starts over.
 * 10. Steps 1 to 9 are repeated for the next table, below an Append.
 *
 * The FeedResident owns the list of rows, and which rows are given back. CudaEngine.not_resident
 * has the reason why no rows were taken, for EXPLAIN VERBOSE. Rows whose result the program cannot
 * compute are counted by the server; then finish fails, and the executor starts over with the CPU
 * engine. So all of this is done only where the executor can start over.
 */
#ifndef GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H
#define GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H

#include "engine_cuda/cuda_engine.h"
#include "expr/program.h"
#include "feed/heap_resident.h"

/* Bounds of a stored column's values in the collected rows. */
typedef struct ColumnBounds
{
	bool any; /* some row has a value; else the bounds are not valid */
	bool nulls;
	ExprInterval integers; /* as registers have them */
	double least, greatest;
} ColumnBounds;

/*
 * Which of the inner rows with equal keys a row is joined with.  If there are several of them, the
 * rows of the table are reduced in several passes, with another one each time.
 */
typedef struct ResidentMatch
{
	uint32 most;        /* most inner rows with equal keys */
	const uint32 *rank; /* [inner row] its number among those with equal keys; NULL: all are 0 */
	uint32 number;      /* in this pass */
} ResidentMatch;

/* The state of steps 2 to 8, for one table. */
typedef struct Resident
{
	CudaEngine *cuda;
	FeedResident *rows;
	ExprProgram *program;
	ExprProgram *translated; /* copy of the program after step 3 */
	bool outdated;           /* the copies of dictionaries must be refreshed */
	bool replaced;           /* the server replaced a dictionary while this round read its values */
	uint32 lacking_cells; /* tables whose cells are known to be lacking on a device, a bit each */
	uint32 sent_cells;    /* those whose cells have been sent, */
	uint32 unkept_cells;  /* and of these, those that the server has had no room to keep */
	/* [table] the table whose cells it has, plus 1; 0: it has cells of its own */
	uint8 shared_cells[WIRE_MAX_TABLES];
	ExprKeyPart **key_parts; /* [join] see ExprJoin.parts */
	ResidentMatch *matches;  /* [join] */
	uint64 npasses;
	uint64 pass;
	int chunk[WIRE_MAX_STORED_COLS]; /* index in a range's chunks, for each stored column */
	ColumnBounds bounds[WIRE_MAX_STORED_COLS];
	/* for each column of the query: operand with the batch's values */
	uint16 inputs[WIRE_MAX_RESIDENT_COLS];
	uint16 outputs
		[WIRE_MAX_RESIDENT_COLS]; /* the same, with values in the form of CudaColumn.travel */
	/*
	 * For each column of the query that is a key, or has distinct values, and just a stored column
	 * whose codes may be its values: the operand with the codes, and the stored column's number.
	 * VECTOR_NONE: it is not. For ranks of texts, too, `coded` is the stored column's number.
	 */
	uint16 codes[WIRE_MAX_RESIDENT_COLS];
	int coded[WIRE_MAX_RESIDENT_COLS];
	bool chosen[WIRE_MAX_RESIDENT_COLS];  /* a choice, with the codes of CudaColumn.chosen */
	bool by_column;                       /* these keys are the column's codes (column_keys.c) */
	const uint8 *cells[WIRE_MAX_TABLES];  /* cells of each lookup over a stored column */
	uint64 serial[WIRE_MAX_TABLES];       /* number of the kept result that has them; 0: none has */
	const uint32 *order[WIRE_MAX_TABLES]; /* [rank] code, for each lookup of ranks */
	uint32 refused[WIRE_MAX_DEVICES]; /* stored columns that had no room on a device, a bit each */
	WireResident wire;
} Resident;

/* Returns the table's attribute of a stored column. */
static inline Form_pg_attribute
resident_attribute(const Resident *r, int s)
{
	return TupleDescAttr(r->program->set->desc, r->program->stored[s].attno - 1);
}

/*
 * Uploads the columns that are lacking: a bit for each stored column, for each row range. Clears
 * keep[] of row ranges that still lack one. Returns false if the session is lost.
 */
extern bool resident_upload(Resident *r, const uint64 *lacking, bool *keep);

/* Expressions are computed for so many values of a column, however few rows the query reads. */
#define RESIDENT_LEAST_VALUES 65536

/* ---- device_keys.c ---- */

/*
 * Returns the operand for a key that is sent as codes. If it may be sent as codes of its column,
 * this is the operand with them for the time being; see resident_choose_codes().
 */
extern uint16 resident_key(Resident *r, int c, const ExprRoot *root);

/* Returns the operand for the ranks of a text. */
extern uint16 resident_ranks(Resident *r, int c, const ExprRoot *root);

/*
 * Returns whether the collected rows are all rows of the query, so that FINISH need not wait for
 * the answer.
 */
extern bool resident_has_all_rows(const Resident *r);

/*
 * Decides whether keys that may be sent as codes of their columns are. Then no other rows can be
 * reduced with them: batches go to the CPU fallback, which has no sets and no order, and rows of
 * other tables would have other codes. So if there may be batches, only keys with many values are,
 * and only if all keys that are equal look the same. Returns false if the session is lost.
 */
extern bool resident_choose_codes(Resident *r);
/* Gives NULL among the keys that are codes of their columns a code: the number of entries. */
extern void resident_use_codes(Resident *r);
/* Records what the codes of keys mean, after the server has taken the rows. */
extern void resident_note_codes(const Resident *r);

/* ---- device_choices.c ---- */

#define KEY_OF_SEVERAL "a key is computed from several columns, other than by CASE or COALESCE"

/*
 * If a key is a choice (CASE, COALESCE) between values of one column and constants, returns the
 * operand with the column's codes, and others below zero (CudaColumn.chosen). Returns VECTOR_NONE,
 * without rejecting the program, if it is anything else.
 */
extern uint16 resident_choice(Resident *r, int c, const ExprRoot *root);
/* Returns the operand with codes of the query's own dictionary, for a choice of any parts. */
extern uint16 resident_encoded_choice(Resident *r, int c, const ExprRoot *root);

/* ---- device_values.c ---- */

/*
 * Sets codes[] to the codes of n values in the query's own dictionary for column c. Rejects the
 * program if there is no room for them, or if equal values look different. states: [value]
 * VectorState
 */
extern void resident_encode(Resident *r, int c, const Datum *values, const uint8 *states, uint32 n,
							int64 *codes);

/*
 * Describes the dictionary of stored column s, and fills the lookups over it: their tables in
 * r->wire, and their cells. May reject the program. Returns false if the session is lost.
 */
extern bool resident_fill_coded(Resident *r, int s);

/*
 * Fills a lookup of a key with codes of the query's own dictionary.  nulls: see
 * expr_lookup_evaluate(); null: also for NULL
 */
extern void resident_fill_key_lookup(Resident *r, ExprLookup *lookup, const Datum *entries,
									 const bool *nulls, uint32 n, bool null);

/* ---- device_lookups.c ---- */

/*
 * Fills the program's lookup tables, and describes them in r->wire.  May reject the program.
 * Returns false if the session is lost.
 */
extern bool resident_fill_lookups(Resident *r);

/* Returns the column of the inner rows that a lookup of a join has. */
extern const LookupColumn *resident_inner_column(const Resident *r, const ExprLookup *lookup);
/*
 * Fills a lookup of a join: its entries are the inner rows, or the distinct values of a column by
 * reference, and then NULL.
 */
extern void resident_fill_column(Resident *r, ExprLookup *lookup);

/* ---- device_matches.c ---- */

/* Finds the joins that may have several matches, and sets the number of passes. */
extern void resident_find_matches(Resident *r);
/* Sets the matches of pass r->pass. */
extern void resident_set_matches(Resident *r);
/* Returns the type that a join has in this pass. */
extern JoinType resident_join_type(const Resident *r, int j);
/* Returns whether an inner row is one that rows are joined with in this pass. */
static inline bool
resident_is_match(const ResidentMatch *match, uint32 row)
{
	return match->rank == NULL || match->rank[row] == match->number;
}

/* ---- device_slots.c ---- */

/* Returns whether a hash table finds the inner rows of a join, instead of the key itself. */
extern bool resident_is_hashed(const Lookup *inner);
/*
 * Returns the parts of which the number of a join's keys is made, see ExprJoin.parts.  Sets
 * *possible to whether there is such a number.
 */
extern ExprKeyPart *resident_key_parts(const Lookup *inner, bool *possible);
/* Describes the hash table of a join.  Returns false if it is too large for a message. */
extern bool resident_describe_slots(const Lookup *inner, const ExprKeyPart *parts,
									VectorTable *table);
/* Writes the slots, which are zeros.  Returns false if too many of them are next to each other. */
extern bool resident_write_slots(const Lookup *inner, const ExprKeyPart *parts,
								 const ResidentMatch *match, const VectorTable *table, uint8 *to);

/* ---- device_cells.c ---- */

/*
 * Names the cells of the lookup tables, and chooses those that are sent: cells without a name, and
 * those that are lacking on a device, as many as have room.  May reject the program.
 */
extern void resident_choose_cells(Resident *r);
/*
 * Writes the cells that are sent to the message's buffer, behind the row ranges.  Returns false if
 * there is no room.
 */
extern bool resident_write_cells(Resident *r, char *buffer);
/* Counts the cells that the server had, after it has taken the rows. */
extern void resident_note_cells(const Resident *r);

#endif /* GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H */
