/*
 * heap_memo.c
 *	  Conditions on one column of few distinct values, evaluated once for each value.
 *
 * The cache has by-reference values as numbers in a dictionary for each range of
 * blocks.  A condition that reads one such column is evaluated for the first row with
 * a number that comes to it, by core, and remembered for the others of the range; so
 * it raises an error where core would.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"

#include "cache/chunk.h"
#include "feed/heap.h"

enum
{
	MEMO_UNKNOWN = 0,
	MEMO_FAILED,
	MEMO_PASSED
};

struct HeapMemo
{
	AttrNumber	attno;
	uint64		dictionary;		/* that the outcomes are for; 0: none */
	uint8		of_null;		/* outcome for NULL */
	uint8	   *outcome;		/* [number] */
	uint32		size;
	MemoryContext cxt;
};

HeapMemo *
heap_memo_create(const HeapTable *table, int q)
{
	Node	   *expr = (Node *) table->quals[q]->expr;
	TupleDesc	desc = RelationGetDescr(table->scan->rel);
	Bitmapset  *attnos = NULL;
	HeapMemo   *memo;
	int			attno;

	pull_varattnos(expr, ((Scan *) table->scan->node->ss.ps.plan)->scanrelid, &attnos);
	if (!bms_get_singleton_member(attnos, &attno) || contain_subplans(expr) ||
		!table->closed[q])
		return NULL;
	attno += FirstLowInvalidHeapAttributeNumber;
	if (attno <= 0 || TupleDescAttr(desc, attno - 1)->attbyval)
		return NULL;
	memo = palloc0(sizeof(HeapMemo));
	memo->attno = attno;
	memo->cxt = CurrentMemoryContext;
	return memo;
}

/* Makes the memo that of the range at hand; false if its values repeat too little. */
static bool
prepare(HeapMemo *memo, const HeapTable *table, const CacheChunk *chunk)
{
	uint64		dictionary = heap_cached_dictionary(table->cached);

	if (!chunk_repeats(chunk))
		return false;
	if (memo->dictionary == dictionary)
		return true;
	if (memo->size < chunk->nentries)
	{
		if (memo->outcome)
			pfree(memo->outcome);
		memo->outcome = NULL;
		memo->outcome = MemoryContextAlloc(memo->cxt, chunk->nentries);
		memo->size = chunk->nentries;
	}
	memset(memo->outcome, MEMO_UNKNOWN, chunk->nentries);
	memo->of_null = MEMO_UNKNOWN;
	memo->dictionary = dictionary;
	return true;
}

int
heap_memo_select(HeapMemo *memo, HeapFeed *feed, HeapTable *table, int q, uint16 *sel)
{
	const HeapRows *rows = &feed->rows;
	const CacheChunk *chunk = heap_cached_chunk(table->cached, memo->attno);
	const uint64 *validity = chunk_validity(chunk);
	uint32		from = feed->page.first_row + rows->tuple[0];
	uint32		codes[EXPR_ROWS];
	int			n = 0;

	if (!prepare(memo, table, chunk))
		return -1;
	/* rows are some of a slice */
	chunk_codes(chunk, from, rows->tuple[rows->n - 1] - rows->tuple[0] + 1, codes);
	for (int i = 0; i < rows->n; i++)
	{
		int			offset = rows->tuple[i] - rows->tuple[0];
		uint8	   *outcome = validity && !bitmap_get(validity, from + offset) ? &memo->of_null :
			&memo->outcome[codes[offset]];

		if (unlikely(*outcome == MEMO_UNKNOWN))
		{
			bool		isnull;
			Datum		value = expr_evaluate_scalar(table->set, table->quals[q], i, &isnull);

			*outcome = !isnull && DatumGetBool(value) ? MEMO_PASSED : MEMO_FAILED;
		}
		sel[n] = i;
		n += *outcome == MEMO_PASSED;
	}
	return n;
}
