/*
 * device_rows.h
 *	  Client side of RESIDENT: a query over rows whose columns are cached on the devices.
 *	  Internal to device_rows.c, device_lookups.c and device_upload.c.
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
 *   (DICTIONARY), fills lookup tables, and completes the program with checks that the values'
 *   bounds make necessary.
 * 5. The engine sends RESIDENT. If the collected rows are all rows of the query, it sends FINISH
 *   together with it (WireFinish.if_taken).
 * 6. The server takes all rows, or none and says what is lacking (RESIDED).
 * 7. If nothing was taken: spans that the server does not know are replaced by their row ranges,
 *   and step 4 is repeated. The first time that columns are lacking, they are uploaded
 *   (device_upload.c, STORE) and step 4 is repeated. Later, ranges that still lack columns are
 *   given back to the feed. There are at most ATTEMPTS rounds.
 * 8. The feed excludes the rows that were taken (feed_resident_taken), and returns all others as
 *   batches.
 * 9. Steps 1 to 8 are repeated for the next table, below an Append.
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

/* The state of steps 2 to 8, for one table. */
typedef struct Resident
{
	CudaEngine *cuda;
	FeedResident *rows;
	ExprProgram *program;
	ExprProgram *translated;         /* copy of the program after step 3 */
	bool outdated;                   /* the copies of dictionaries must be refreshed */
	int chunk[WIRE_MAX_STORED_COLS]; /* index in a range's chunks, for each stored column */
	ColumnBounds bounds[WIRE_MAX_STORED_COLS];
	/* for each column of the query: operand with the batch's values */
	uint16 inputs[WIRE_MAX_RESIDENT_COLS];
	uint16 outputs
		[WIRE_MAX_RESIDENT_COLS];     /* the same, with values in the form of CudaColumn.travel */
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

/* ---- device_lookups.c ---- */

/*
 * Fills the program's lookup tables, and describes them in r->wire.  May reject the program.
 * Returns false if the session is lost.
 */
extern bool resident_fill_lookups(Resident *r);

/*
 * Writes the cells of the lookup tables to the message's buffer, behind the row ranges.  Returns
 * false if there is no room.
 */
extern bool resident_write_cells(const Resident *r, char *buffer);

#endif /* GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H */
