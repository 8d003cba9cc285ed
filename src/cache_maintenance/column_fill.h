/*
 * column_fill.h
 *
 * Reads ranges of one table into the column cache.
 */
#ifndef GPUAGG_COLUMN_FILL_H
#define GPUAGG_COLUMN_FILL_H

#include "postgres.h"

#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "cache/store.h"

typedef struct TableFill TableFill;

/* Returns why a table cannot be cached, in words; NULL if it can. */
extern const char *fill_unsupported_reason(Relation rel);

/*
 * Prepares to fill ranges of a table, which can be cached, with the rows that the registered
 * snapshot sees. A range that is up to date gets the `requested` columns. A stale range is read
 * again, with the requested columns and all that it had and the table still has. Lives in the
 * current memory context, in which the table's handle must have been opened.
 */
extern TableFill *fill_begin(Relation rel, Snapshot snapshot, CacheTable *table, int nrequested,
							 const CacheColumnKey *requested);
/* Ends the scan and releases its pins. The caller's memory context frees the rest. */
extern void fill_end(TableFill *fill);

/* Returns the table's number of blocks. */
extern BlockNumber fill_blocks(const TableFill *fill);

/* Returns whether the cache had no memory for a range. */
extern bool fill_is_full(const TableFill *fill);

/*
 * Fills one range; reads it again if it is stale. prove: check for changed blocks first; otherwise
 * only blocks that queries have found changed count. Returns whether it replaced a stale range.
 */
extern bool fill_range(TableFill *fill, uint32 number, bool prove);

/*
 * Returns for how many blocks of a range all requested columns are cached now; adds the range's
 * rows to *rows.
 */
extern int fill_served(TableFill *fill, uint32 number, uint64 *rows);

#endif /* GPUAGG_COLUMN_FILL_H */
