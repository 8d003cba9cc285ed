/*
 * fill.h
 *	  Reads ranges of one table into the column cache.
 */
#ifndef GPUAGG_UPKEEP_FILL_H
#define GPUAGG_UPKEEP_FILL_H

#include "postgres.h"

#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "cache/store.h"

typedef struct TableFill TableFill;

/* Why a table cannot be cached, in words; NULL: it can. */
extern const char *fill_unsupported_reason(Relation rel);

/*
 * Prepares to fill ranges of a table, which can be cached, with what the registered snapshot
 * sees.  Of a range that is not read anew, the columns asked for are built; of one that is, all
 * that it had as well, of those that the table still has.  Lives in the current memory context, in
 * which the table's handle was opened.
 */
extern TableFill *fill_begin(Relation rel, Snapshot snapshot, CacheTable *table, int nasked,
							 const CacheColumnKey *asked);
extern void fill_end(TableFill *fill);

/* Blocks of the table. */
extern BlockNumber fill_blocks(const TableFill *fill);

/* Was there no memory for a range? */
extern bool fill_is_full(const TableFill *fill);

/*
 * Fills one range; reads it anew if it is stale.  Looks for changed blocks first if `prove`, else
 * takes the word of the queries before.  Returns whether it replaced a stale range.
 */
extern bool fill_range(TableFill *fill, uint32 number, bool prove);

/* Of how many blocks of a range all columns asked for are there now; adds its rows. */
extern int fill_served(TableFill *fill, uint32 number, uint64 *rows);

#endif /* GPUAGG_UPKEEP_FILL_H */
