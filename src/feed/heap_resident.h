/*
 * heap_resident.h
 *
 * Offers cached rows to an engine that has copies of their columns, as the GPU server has.
 *
 * The engine takes rows by reference: it gets their ranges and row numbers, not their values. It
 * translates the expressions, has the rows of acceptable ranges collected, gives back those that
 * it cannot take, and reports when it has taken the others. All of this happens before the first
 * batch.
 */
#ifndef GPUAGG_FEED_HEAP_RESIDENT_H
#define GPUAGG_FEED_HEAP_RESIDENT_H

#include "postgres.h"

#include "cache/chunk.h"
#include "cache/store.h"
#include "expr/expr.h"
#include "feed.h"
#include "feed/lookup.h"
#include "protocol.h"

/* A join of the table's rows.  A row finds at most one inner row, by integers. */
typedef struct ResidentJoin
{
	JoinType type; /* JOIN_INNER, JOIN_LEFT, JOIN_SEMI or JOIN_ANTI */
	const Lookup *lookup;
	ExprRoot *const *keys;
	double share;       /* estimated part of the rows that find an inner row */
	LookupCells *cells; /* the engine adds what it reads */
} ResidentJoin;

/* The offer of one table's rows; valid until the feed is rescanned or ends. */
typedef struct FeedResident
{
	Feed *feed;
	uint64 table;               /* cache_table_id() */
	const CacheColumnKey *cols; /* the columns that the query reads */
	const int *slots;           /* [attribute number - 1] index into cols, and chunks, or -1 */

	bool follows; /* rows of earlier tables come in batches, after these */
	bool alone;   /* the query reads no other table */
	ExprSet *set;
	int nquals;
	ExprRoot **quals;   /* WHERE, in the order of evaluation; NULL: a join */
	List *checks;       /* ExprRoots that core evaluates for rows that pass, for their errors */
	ExprRoot **outputs; /* [column of the batch]; NULL: a constant */
	Datum *constants;   /* [column of the batch] values of constants */
	bool *constant_nulls;

	/* The joins, whose columns follow the table's in the ExprSet; see feed/heap_joins.h. */
	int njoins;
	ResidentJoin *joins;
	const int *probed; /* [qual] the join, if it is one */
	int natts;         /* number of the table's columns */
	Index table_varno; /* numbers of the table and of all inner rows in Vars */
	Index inner_varno;
	int *inner_join;   /* [number of a column - natts - 1] its join */
	int *inner_column; /* [number of a column - natts - 1] index into Lookup.columns */

	/*
	 * The collected rows that have not been given back, as row ranges, ordered by range and row,
	 * and as spans, ordered by range. A span is a group of whole ranges (cache/span.h).
	 * WireSpan.row_range says where the span's row ranges are in the list, or, as WIRE_NO_ARRAY,
	 * that the span stands for them.
	 */
	uint32 nrow_ranges;
	WireRowRange *row_ranges;
	uint32 nspans;
	WireSpan *spans;
	uint64 *digests; /* of the spans' lists of stamps (cache_span_digest()) */
	uint64 nrows;
	/* Private to heap_resident.c. */
	uint32 row_ranges_room;
	uint32 spans_room;
	MemoryContext cxt;
} FeedResident;

/*
 * Returns whether the engine can take the rows of a range with these chunks. For a span, `chunks`
 * describe what all of its chunks have in common.
 */
typedef bool (*ResidentAccept)(void *arg, const CacheChunk *const *chunks);

/*
 * Collects the proved rows of all ranges that `accept` accepts. Rows of ranges that the quals
 * refute count as read.
 */
extern void feed_resident_collect(FeedResident *resident, ResidentAccept accept, void *arg);

/* Returns whether no row is left for batches. */
extern bool feed_resident_complete(const FeedResident *resident);

/*
 * Adds the row ranges of spans that stand for their rows, where expand[] is set. Rows of spans
 * whose ranges have been replaced meanwhile are given back.
 */
extern void feed_resident_expand(FeedResident *resident, const bool *expand);

/*
 * Drops row ranges that the quals refute, among those with lacking[] not 0, so that nothing is
 * uploaded for them. Does so only if most are refuted: otherwise later queries benefit from
 * uploading all. Adjusts lacking[] to the row ranges that remain. Spans whose row ranges were
 * listed become plain row ranges.
 */
extern void feed_resident_refute(FeedResident *resident, uint64 *lacking);

/*
 * Gives back all rows of each range of which a row range is not to be kept, and, unless `spans`,
 * the rows of spans that stand for their row ranges. Spans whose row ranges were listed become
 * plain row ranges.
 */
extern void feed_resident_keep(FeedResident *resident, const bool *keep, bool spans);

/* Counts the rows that the engine has taken. */
extern void feed_resident_taken(FeedResident *resident);

/* Frees the offer. The feed remembers the blocks that were taken. */
extern void feed_resident_free(FeedResident *resident);

/*
 * Pins the range of a row range with its columns. Returns NULL if it has been replaced since or
 * lacks a column.
 */
extern CachePin *feed_resident_pin(FeedResident *resident, const WireRowRange *row_range);

#endif /* GPUAGG_FEED_HEAP_RESIDENT_H */
