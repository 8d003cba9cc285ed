/*
 * heap_resident.h
 *	  Rows of the column cache that an engine takes by name, as a GPU has copies of their columns.
 *
 * The engine translates the expressions; has the rows collected of ranges whose chunks it accepts;
 * gives back those that it cannot take, and says when it has taken the others.  All of that comes
 * before the first batch.
 */
#ifndef GPUAGG_FEED_HEAP_RESIDENT_H
#define GPUAGG_FEED_HEAP_RESIDENT_H

#include "postgres.h"

#include "cache/chunk.h"
#include "cache/store.h"
#include "expr/expr.h"
#include "feed.h"
#include "protocol.h"

/* A query over one table, until the feed is rescanned or ends. */
typedef struct FeedResident
{
	Feed *feed;
	uint64 table;               /* cache_table_id() */
	const CacheColumnKey *cols; /* that the query reads */
	const int *slots;           /* [attribute number - 1] index into cols, and chunks, or -1 */

	bool follows; /* rows of tables before it come by the feed, behind these */
	bool alone;   /* there are no other tables */
	ExprSet *set;
	int nquals;
	ExprRoot **quals;   /* WHERE, in the order in which they are evaluated */
	List *checks;       /* ExprRoots that core evaluates for rows that pass, for their errors */
	ExprRoot **outputs; /* [column of the batch]; NULL: a constant */
	Datum *constants;   /* those */
	bool *constant_nulls;

	/*
	 * The rows that are collected and not given back: runs, by range and row, and spans of whole
	 * ranges, by range. The rows of a span are among the runs if it says where
	 * (WireSpan.row_range), else it stands for them.
	 */
	uint32 nruns;
	WireRowRange *runs;
	uint32 nspans;
	WireSpan *spans;
	uint64 *digests; /* of the spans' lists (cache_span_digest) */
	uint64 nrows;
	/* the feed's */
	uint32 runs_room;
	uint32 spans_room;
	MemoryContext cxt;
} FeedResident;

/*
 * Decides by the chunks of a range's columns, or by what is known of all in a span, whether the
 * engine could take its rows.
 */
typedef bool (*ResidentAccept)(void *arg, const CacheChunk *const *chunks);

/*
 * Collects the rows of all ranges that are accepted and proved; those of ranges that no row of
 * which can pass are done.
 */
extern void feed_resident_collect(FeedResident *resident, ResidentAccept accept, void *arg);

/* Will no row come by the feed? */
extern bool feed_resident_complete(const FeedResident *resident);

/*
 * Lists the runs of those spans that stand for theirs; rows of spans whose ranges have been
 * replaced meanwhile are given back.
 */
extern void feed_resident_expand(FeedResident *resident, const bool *expand);

/*
 * Of runs for which lacking[] is not 0, those of ranges that the conditions refute are done, so
 * that nothing has to be uploaded for them, if they are most: else later queries had better find
 * all of them.  lacking[] is that of the runs that are left.  Spans that were listed are runs like
 * others then.
 */
extern void feed_resident_refute(FeedResident *resident, uint64 *lacking);

/*
 * Gives back all rows of the ranges of runs that are not to be kept, and without `spans` those of
 * spans that stand for their runs.  Spans that were listed are runs like others then.
 */
extern void feed_resident_keep(FeedResident *resident, const bool *keep, bool spans);

/* The engine has taken the rows. */
extern void feed_resident_taken(FeedResident *resident);

/* Frees this; what was taken is remembered. */
extern void feed_resident_free(FeedResident *resident);

/*
 * The range of a run, pinned with its columns; NULL: it has been replaced since, or lacks a column.
 */
extern CachePin *feed_resident_pin(FeedResident *resident, const WireRowRange *run);

#endif /* GPUAGG_FEED_HEAP_RESIDENT_H */
