/*
 * heap_page.c
 *	  Heap pages, and the columns of their tuples.
 *
 * A scan is core's own: the SeqScan node of the child plan holds its scan
 * descriptor, begun here as SeqNext does or by the parallel executor, so that
 * block order, ring buffers, synchronized scans, predicate locks and sharing
 * between participants are what they are for core.  Only the loop over blocks
 * and tuples is ours.
 *
 * A page is read under pin and share lock: the line pointers are collected and
 * each tuple's visibility decided.  Then the lock goes and the pin stays:
 * tuples found visible neither move nor change (but for hint bits and xmax)
 * while the page is pinned.  The page after it is pinned as well, so that its
 * memory is on its way to the processor's cache before it is looked at.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "access/tupdesc_details.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "common/compat.h"
#include "operators/decode_numeric.h"
#include "feed/heap.h"

/* ---- the table's layout ------------------------------------------------------ */

/* The bytes of a value as a tuple would hold it. */
static const uint8 *
missing_value(TupleDesc desc, int a)
{
	Form_pg_attribute att = TupleDescAttr(desc, a);
	struct AttrMissing *missing = desc->constr ? desc->constr->missing : NULL;
	Datum	   *copy;

	if (!att->atthasmissing || missing == NULL || !missing[a].am_present)
		return NULL;
	if (!att->attbyval)
		return (const uint8 *) DatumGetPointer(missing[a].am_value);
	copy = palloc0(sizeof(Datum));
	store_att_byval(copy, missing[a].am_value, att->attlen);
	return (const uint8 *) copy;
}

static DecodeAttr *
decode_attrs(TupleDesc desc)
{
	DecodeAttr *attrs = palloc0(sizeof(DecodeAttr) * (desc->natts + 1));
	uint32		off = 0;
	int			anchor = 0;
	bool		fixed = true;

	for (int a = 0; a < desc->natts; a++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, a);

		attrs[a].len = att->attlen;
		attrs[a].align = att->attalign == TYPALIGN_CHAR ? 1 : att->attalign == TYPALIGN_SHORT ? 2 :
			att->attalign == TYPALIGN_INT ? 4 : 8;
		attrs[a].missing = missing_value(desc, a);
		attrs[a].offset = -1;
		/* a varlena that would need padding may lie unpadded */
		if (fixed && (att->attlen >= 0 || off == decode_align(off, attrs[a].align)))
		{
			off = decode_align(off, attrs[a].align);
			attrs[a].offset = off;
			anchor = a;
		}
		attrs[a].anchor = anchor;
		if (att->attlen < 0 || attrs[a].offset < 0)
			fixed = false;
		else
			off += att->attlen;
	}
	return attrs;
}

HeapScan *
heap_scan_create(SeqScanState *node)
{
	HeapScan   *scan = palloc0(sizeof(HeapScan));

	scan->node = node;
	scan->rel = node->ss.ss_currentRelation;
	scan->attrs = decode_attrs(RelationGetDescr(scan->rel));
	return scan;
}

/* ---- pages ------------------------------------------------------------------- */

BlockNumber
heap_scan_begin(HeapScan *scan)
{
	SeqScanState *node = scan->node;

	if (node->ss.ss_currentScanDesc == NULL)
	{
		EState	   *estate = node->ss.ps.state;
		MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

		node->ss.ss_currentScanDesc = table_beginscan(scan->rel, estate->es_snapshot, 0, NULL);
		MemoryContextSwitchTo(old);
	}
	scan->scan = (HeapScanDesc) node->ss.ss_currentScanDesc;
	return scan->scan->rs_nblocks;
}

void
heap_scan_restart(HeapScan *scan)
{
	heap_scan_stop(scan);
	scan->started = false;
	scan->blocks_done = 0;
}

static BlockNumber
next_block(HeapScan *scan)
{
	HeapScanDesc desc = scan->scan;
	BlockNumber block;

	if (desc->rs_base.rs_parallel != NULL)
	{
		ParallelBlockTableScanDesc shared =
			(ParallelBlockTableScanDesc) desc->rs_base.rs_parallel;

		if (!scan->started)
			table_block_parallelscan_startblock_init(scan->rel, desc->rs_parallelworkerdata,
													 shared);
		scan->started = true;
		return table_block_parallelscan_nextpage(scan->rel, desc->rs_parallelworkerdata, shared);
	}
	if (!scan->started)
	{
		scan->next_block = desc->rs_startblock;
		scan->blocks_left = desc->rs_nblocks;
		scan->started = true;
	}
	if (scan->blocks_left == 0)
		return InvalidBlockNumber;
	scan->blocks_left--;
	block = scan->next_block++;
	if (scan->next_block >= desc->rs_nblocks)
		scan->next_block = 0;
	if (desc->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->rel, block);
	return block;
}

/* ---- reading ahead ------------------------------------------------------------ */

/*
 * Pins a block.  Big tables, which do not stay in the cache by being scanned
 * (rs_strategy), are mostly found in the buffer after that of the block before:
 * a look at its tag is cheaper than the lookup.
 */
static Buffer
pin_block(HeapScan *scan, BlockNumber block)
{
	BufferAccessStrategy strategy = scan->scan->rs_strategy;
	Buffer		guess = scan->last + 1;

	if (strategy != NULL && scan->last > 0 && guess <= NBuffers &&
		compat_read_recent_buffer(scan->rel, block, guess))
		scan->last = guess;
	else
		scan->last = ReadBufferExtended(scan->rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	return scan->last;
}

/* Pins the block after the one at hand, if there is one. */
static void
open_ahead(HeapScan *scan)
{
	Assert(!BufferIsValid(scan->ahead));
	scan->ahead_block = next_block(scan);
	if (scan->ahead_block != InvalidBlockNumber)
		scan->ahead = pin_block(scan, scan->ahead_block);
}

void
heap_scan_stop(HeapScan *scan)
{
	if (BufferIsValid(scan->ahead))
		ReleaseBuffer(scan->ahead);
	scan->ahead = InvalidBuffer;
}

/* ---- the tuples of a page ------------------------------------------------------ */

/* Line pointers of a page on which all tuples are visible. */
static int
collect_all(HeapPage *page, int lines)
{
	const uint32 *items = (const uint32 *) PageGetItemId((Page) page->start, FirstOffsetNumber);
	uint32		unrepresentable = 0;
	int			n = 0;

	StaticAssertStmt(sizeof(ItemIdData) == sizeof(uint32), "a line pointer is one word");
	for (int i = 0; i < lines; i++)
	{
		page->lines[i] = FirstOffsetNumber + i;
		page->tuples[i] = items[i] & 0x7fff;
		unrepresentable |= ((items[i] >> 15) & 3) ^ LP_NORMAL;
	}
	if (unrepresentable == 0)
		return lines;
	for (int i = 0; i < lines; i++)
	{
		page->lines[n] = FirstOffsetNumber + i;
		page->tuples[n] = items[i] & 0x7fff;
		n += ((items[i] >> 15) & 3) == LP_NORMAL;
	}
	return n;
}

/* Tuples that the snapshot sees, one by one. */
static int
collect_visible(HeapScan *scan, HeapPage *page, int lines, bool all_visible, bool serializable)
{
	Snapshot	snapshot = scan->scan->rs_base.rs_snapshot;
	Page		p = (Page) page->start;
	int			n = 0;

	for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
	{
		ItemId		item = PageGetItemId(p, line);
		HeapTupleData tuple;
		bool		valid;

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_tableOid = RelationGetRelid(scan->rel);
		tuple.t_data = (HeapTupleHeader) PageGetItem(p, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, page->block, line);
		valid = all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, page->buffer);
		if (serializable)
			HeapCheckForSerializableConflictOut(valid, scan->rel, &tuple, page->buffer, snapshot);
		if (!valid)
			continue;
		page->lines[n] = line;
		page->tuples[n++] = ItemIdGetOffset(item);
	}
	return n;
}

/* The page's tuples that the snapshot sees; the page is share-locked. */
static void
collect_tuples(HeapScan *scan, HeapPage *page)
{
	Snapshot	snapshot = scan->scan->rs_base.rs_snapshot;
	int			lines = PageGetMaxOffsetNumber((Page) page->start);
	bool		all_visible = PageIsAllVisible((Page) page->start) && !snapshot->takenDuringRecovery;
	bool		serializable = CheckForSerializableConflictOutNeeded(scan->rel, snapshot);

	if (likely(all_visible && !serializable))
		page->ntuples = collect_all(page, lines);
	else
		page->ntuples = collect_visible(scan, page, lines, all_visible, serializable);
}

/* Wider tuples than this are rarely read as a whole. */
#define NARROW_TUPLE 256
#define FETCH_BYTES 64
/* Fetched with each column; the processor has so many fetches under way without waiting. */
#define COLUMN_FETCHES 20

/*
 * The page ahead is fetched into the cache bit by bit, while the page at hand
 * is read: hardware does not foresee the next page, and a burst would stall.
 */
static void
start_fetching(HeapScan *scan, const HeapPage *page)
{
	bool		all = BufferIsValid(scan->ahead) && page->ntuples >= BLCKSZ / NARROW_TUPLE;

	scan->fetch = BufferIsValid(scan->ahead) ? BufferGetPage(scan->ahead) : NULL;
	scan->fetch_end = all ? scan->fetch + BLCKSZ : scan->fetch;
}

static inline void
fetch_some(HeapScan *scan, int n)
{
	const char *end = scan->fetch + Min(scan->fetch_end - scan->fetch, n * FETCH_BYTES);

	for (; scan->fetch < end; scan->fetch += FETCH_BYTES)
		__builtin_prefetch(scan->fetch);
}

/*
 * Where attributes begin, how many there are, and whether any is NULL.  The
 * fields that say so are in the last 8 bytes of a fixed header: after a half of
 * t_ctid come t_infomask2, t_infomask, t_hoff and the first byte of the bitmap.
 */
#define HEADER_WORD (offsetof(HeapTupleHeaderData, t_infomask2) - 2)
#define WORD_NATTS ((uint64) HEAP_NATTS_MASK << 16)
#define WORD_HASNULL ((uint64) HEAP_HASNULL << 32)
#define WORD_HOFF (UINT64CONST(0xff) << 48)

static void
examine_headers(HeapScan *scan, HeapPage *page)
{
	const uint8 *words = page->start + HEADER_WORD;
	uint64		first = *(const uint64 *) (words + page->tuples[0]);
	uint64		differ = 0;
	int			natts = (first & WORD_NATTS) >> 16;
	int			hoff = (first & WORD_HOFF) >> 48;
	int			n = page->ntuples;
	int			here = BLCKSZ / FETCH_BYTES - scan->ncolumns * COLUMN_FETCHES;
	int			each = (here + n - 1) / n;

	start_fetching(scan, page);
	for (int i = 0; i < n; i++)
	{
		differ |= *(const uint64 *) (words + page->tuples[i]) ^ first;
		if (i < here)
			fetch_some(scan, each);
	}
	page->has_nulls = ((first | differ) & WORD_HASNULL) != 0;
	if (!(differ & (WORD_NATTS | WORD_HOFF)))
		for (int i = 0; i < n; i++)
			page->data[i] = page->tuples[i] + hoff;
	else
		for (int i = 0; i < n; i++)
		{
			HeapTupleHeader tuple = heap_page_tuple(page, i);

			natts = Min(natts, HeapTupleHeaderGetNatts(tuple));
			page->data[i] = page->tuples[i] + tuple->t_hoff;
		}
	page->min_natts = natts;
}

void
heap_page_release(HeapPage *page)
{
	if (BufferIsValid(page->buffer))
		ReleaseBuffer(page->buffer);
	page->buffer = InvalidBuffer;
	page->ntuples = 0;
}

bool
heap_scan_next_page(HeapScan *scan, HeapPage *page)
{
	heap_page_release(page);
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(scan->ahead))
			open_ahead(scan);
		if (!BufferIsValid(scan->ahead))
			return false;
		heap_page_release(page);
		page->buffer = scan->ahead;
		page->block = scan->ahead_block;
		page->start = (const uint8 *) BufferGetPage(page->buffer);
		scan->ahead = InvalidBuffer;
		open_ahead(scan);
		heap_page_prune_opt(scan->rel, page->buffer);
		LockBuffer(page->buffer, BUFFER_LOCK_SHARE);
		compat_test_old_snapshot(scan->scan->rs_base.rs_snapshot, scan->rel, (Page) page->start);
		collect_tuples(scan, page);
		LockBuffer(page->buffer, BUFFER_LOCK_UNLOCK);
		scan->blocks_done++;
	} while (page->ntuples == 0);
	examine_headers(scan, page);
	compat_count_tuples(scan->rel, page->ntuples);
	return true;
}

/* ---- columns ----------------------------------------------------------------- */

static int
compare_int16(const void *a, const void *b)
{
	return *(const int16 *) a - *(const int16 *) b;
}

void
heap_columns_init(HeapScan *scan, HeapColumns *columns, ExprSet *set, int stage)
{
	int			n = 0;

	for (Vec *vec = set->vecs; vec; vec = vec->next)
		n += (vec->attno != 0 && vec->stage == stage);
	columns->vecs = palloc(sizeof(Vec *) * (n + 1));
	columns->slot = palloc(sizeof(int) * (n + 1));
	columns->attrs = palloc(sizeof(int16) * (n + 1));
	columns->varying = palloc(sizeof(int16) * (n + 1));
	columns->varying_slot = palloc0(sizeof(int) * (n + 1));
	for (Vec *vec = set->vecs; vec; vec = vec->next)
	{
		if (vec->attno == 0 || vec->stage != stage)
			continue;
		scan->ncolumns += stage == 0;
		columns->vecs[columns->nvecs] = vec;
		columns->attrs[columns->nvecs++] = vec->attno - 1;
	}
	qsort(columns->attrs, n, sizeof(int16), compare_int16);
	for (int i = 0; i < n; i++)
		if (i == 0 || columns->attrs[i] != columns->attrs[i - 1])
			columns->attrs[columns->nattrs++] = columns->attrs[i];
	for (int k = 0; k < columns->nattrs; k++)
	{
		if (scan->attrs[columns->attrs[k]].offset < 0)
		{
			columns->varying_slot[columns->nvarying] = k;
			columns->varying[columns->nvarying++] = columns->attrs[k];
		}
		for (int i = 0; i < n; i++)
			if (columns->vecs[i]->attno - 1 == columns->attrs[k])
				columns->slot[i] = k;
	}
}

/*
 * A column's value in each row, from `ptr` (char *, NULL for NULL) or, where
 * all rows have it at a fixed offset, straight from there.
 */
#define FILL(type, fetch) \
	do { \
		type	   *restrict values = vec->values; \
		const uint8 *start = rows->start + offset; \
		if (located == NULL) \
		{ \
			for (int i = 0; i < n; i++) \
			{ \
				const uint8 *ptr = start + rows->data[i]; \
				values[i] = (fetch); \
			} \
		} \
		else \
		{ \
			for (int i = 0; i < n; i++) \
			{ \
				const uint8 *ptr = located[i]; \
				values[i] = ptr ? (fetch) : (type) 0; \
			} \
		} \
	} while (0)

static void
fill_decimals(Vec *vec, const HeapRows *rows, int32 offset, const uint8 **located)
{
	gpuagg_i128 *values = vec->values;

	for (int i = 0; i < rows->n; i++)
	{
		const uint8 *ptr = located ? located[i] : rows->start + rows->data[i] + offset;
		const uint8 *payload;
		int			len;

		values[i] = 0;
		if (ptr == NULL)
			continue;
		payload = decode_payload(ptr, &len);
		if (likely(payload && decode_numeric(payload, len, vec->scale, &values[i])))
			continue;
		if (vec->all_values)
		{
			memset(vec->state, VEC_VALUE, rows->n);
			vec->all_values = false;
		}
		vec->state[i] = VEC_FALLBACK;
	}
}

static void
fill_vec(Vec *vec, Form_pg_attribute att, const HeapRows *rows, int32 offset,
		 const uint8 **located)
{
	int			n = rows->n;

	vec->all_values = true;
	if (located)
		for (int i = 0; i < n; i++)
		{
			vec->state[i] = located[i] ? VEC_VALUE : VEC_NULL;
			vec->all_values &= located[i] != NULL;
		}
	switch (vec->type)
	{
#define X(NAME, value_t, bits_t, ...) \
		case COLUMN_##NAME: \
			FILL(bits_t, *(const bits_t *) ptr); \
			break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			fill_decimals(vec, rows, offset, located);
			break;
		case COLUMN_DATUM:
			if (att->attbyval)
				FILL(Datum, fetch_att(ptr, true, att->attlen));
			else
				FILL(Datum, PointerGetDatum(ptr));
			break;
	}
}

void
heap_columns_fill(HeapScan *scan, const HeapColumns *columns, const HeapPage *page,
				  const HeapRows *rows)
{
	TupleDesc	desc = RelationGetDescr(scan->rel);
	bool		plain;

	if (columns->nvecs == 0)
		return;
	plain = !page->has_nulls && page->min_natts > columns->attrs[columns->nattrs - 1];
	if (!plain || columns->nvarying > 0)
	{
		const int16 *wanted = plain ? columns->varying : columns->attrs;
		int			nwanted = plain ? columns->nvarying : columns->nattrs;

		for (int i = 0; i < rows->n; i++)
		{
			HeapTupleHeader tuple = heap_page_tuple(page, rows->tuple[i]);

			decode_locate(scan->attrs, wanted, nwanted,
						  (tuple->t_infomask & HEAP_HASNULL) ? tuple->t_bits : NULL,
						  rows->start + rows->data[i], HeapTupleHeaderGetNatts(tuple),
						  scan->located + i, EXPR_ROWS);
		}
	}
	for (int v = 0; v < columns->nvecs; v++)
	{
		Vec		   *vec = columns->vecs[v];
		int32		offset = scan->attrs[vec->attno - 1].offset;
		const uint8 **located = NULL;

		if (!plain)
			located = scan->located + (size_t) columns->slot[v] * EXPR_ROWS;
		else if (offset < 0)
			for (int k = 0; k < columns->nvarying; k++)
				if (columns->varying_slot[k] == columns->slot[v])
					located = scan->located + (size_t) k * EXPR_ROWS;
		fetch_some(scan, COLUMN_FETCHES);
		fill_vec(vec, TupleDescAttr(desc, vec->attno - 1), rows, offset, located);
	}
}
