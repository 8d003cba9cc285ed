/*
 * heap_memo.c
 *
 * Evaluates an expression over one cached column with few distinct values once for each value.
 *
 * In each range of the column cache, by-reference values are codes of a dictionary. A qual or an
 * output that reads only one such column is evaluated by core for the first row with each code,
 * and the result is used for the other rows of the range. So it raises an error where core would.
 *
 * A comparison of text with '' needs no values: the entries of a dictionary follow each other, so
 * their distance says which ones may be empty.
 *
 * Rows with the same code have the same value of such an output. The batch's column says so
 * (Column.codes). All NULLs have the code after the last one, as an output may map NULL to a
 * value.
 *
 * Memory: values of outputs last until the memo is prepared for another range, or the table is
 * left. The batch refers to them, and ends before that.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "analysis/analysis.h"
#include "cache/chunk.h"
#include "feed/heap.h"

enum
{
	MEMO_UNKNOWN = 0,
	MEMO_FAILED, /* output: NULL */
	MEMO_PASSED  /* output: a value */
};

/* What a qual asks of the length of its column. */
typedef enum LengthTest
{
	NO_LENGTH_TEST,
	IS_EMPTY,
	IS_NOT_EMPTY
} LengthTest;

/* A vector operation takes about as long for this many rows as core takes for one value. */
#define VECTOR_ROWS 16
/* A costly expression is evaluated for each value of a range only if values repeat this often. */
#define COSTLY_REPEATS 16

struct HeapMemo
{
	AttrNumber attno;
	bool costly;       /* the expression is; see expr_is_costly() */
	LengthTest test;   /* the expression is column = '' or column <> '' */
	uint64 dictionary; /* dictionary of the outcomes; 0: none */
	uint8 *outcome;    /* [code]; the last one is for NULL */
	MemoryContext cxt; /* outcomes and values of one range */

	/* Used for outputs only. */
	ExprRoot *root;
	int16 typlen;
	bool typbyval;
	Datum *values; /* [code] */
	size_t bytes;  /* bytes of values; see may_keep() */
};

/*
 * Returns the by-reference column that an expression reads, if it reads nothing else of the row;
 * otherwise 0.
 */
static AttrNumber
single_column(const HeapTable *table, Node *expr)
{
	TupleDesc desc = RelationGetDescr(table->scan->rel);
	Bitmapset *attnos = NULL;
	int attno;

	pull_varattnos(expr, ((Scan *) table->scan->node->ps.plan)->scanrelid, &attnos);
	if (!bms_get_singleton_member(attnos, &attno) || contain_subplans(expr))
		return 0;
	attno += FirstLowInvalidHeapAttributeNumber;
	return attno <= 0 || TupleDescAttr(desc, attno - 1)->attbyval ? 0 : attno;
}

/* Creates an empty memo for an expression over one column. */
static HeapMemo *
create_memo(AttrNumber attno, Expr *expr)
{
	HeapMemo *memo = palloc0(sizeof(HeapMemo));

	memo->attno = attno;
	memo->costly = expr_is_costly(expr);
	memo->cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg values of expressions",
									  ALLOCSET_START_SMALL_SIZES);
	return memo;
}

/* Returns whether a qual compares a column of text with ''. */
static LengthTest
length_test(const OpExpr *op)
{
	const Const *constant;
	const Node *column;

	if (!IsA(op, OpExpr) || (op->opfuncid != F_TEXTEQ && op->opfuncid != F_TEXTNE) ||
		!expr_collation_is_deterministic(op->inputcollid))
		return NO_LENGTH_TEST;
	column = linitial(op->args);
	/* a function, even an implicit cast, may return '' for other values: blanks of char(n) */
	while (IsA(column, RelabelType))
		column = (const Node *) ((const RelabelType *) column)->arg;
	constant = lsecond(op->args);
	if (!IsA(column, Var) || !IsA(constant, Const) || constant->constisnull ||
		toast_raw_datum_size(constant->constvalue) != VARHDRSZ)
		return NO_LENGTH_TEST;
	return op->opfuncid == F_TEXTEQ ? IS_EMPTY : IS_NOT_EMPTY;
}

HeapMemo *
heap_memo_create(const HeapTable *table, int q)
{
	Expr *expr = table->quals[q]->expr;
	AttrNumber attno = single_column(table, (Node *) expr);
	HeapMemo *memo;

	if (attno == 0 || !table->closed[q])
		return NULL;
	memo = create_memo(attno, expr);
	memo->test = length_test((OpExpr *) expr);
	return memo;
}

bool
heap_memo_serves(const HeapTable *table, Expr *expr)
{
	AttrNumber attno = single_column(table, (Node *) expr);

	/* the cache stores numerics as decimals where it can */
	return attno && cache_available() &&
		getBaseType(TupleDescAttr(RelationGetDescr(table->scan->rel), attno - 1)->atttypid) !=
		NUMERICOID;
}

HeapMemo *
heap_memo_create_output(const HeapTable *table, ExprRoot *root)
{
	HeapMemo *memo = create_memo(single_column(table, (Node *) root->expr), root->expr);

	memo->root = root;
	get_typlenbyval(exprType((Node *) root->expr), &memo->typlen, &memo->typbyval);
	return memo;
}

/* Frees the outcomes and values of a memo. */
static void
forget_values(HeapMemo *memo, HeapTable *table)
{
	MemoryContextReset(memo->cxt);
	table->memo_bytes -= memo->bytes;
	memo->bytes = 0;
	memo->dictionary = 0;
}

void
heap_memo_forget(HeapTable *table)
{
	for (int q = 0; q < table->nquals; q++)
		if (table->memos[q])
			forget_values(table->memos[q], table);
	for (int c = 0; c < table->noutputs; c++)
		if (table->outputs[c].memo)
			forget_values(table->outputs[c].memo, table);
}

/*
 * Empties the memo if it has outcomes of another range than the pinned one. Returns whether it has
 * none.
 */
static bool
renew_memo(HeapMemo *memo, HeapTable *table, const CacheChunk *chunk)
{
	uint64 dictionary = heap_cached_dictionary(table->cached);
	uint32 n = chunk->nentries + 1;

	if (memo->dictionary == dictionary)
		return false;
	forget_values(memo, table);
	memo->outcome = MemoryContextAllocZero(memo->cxt, n); /* MEMO_UNKNOWN */
	if (memo->root)
		memo->values = MemoryContextAlloc(memo->cxt, n * sizeof(Datum));
	memo->dictionary = dictionary;
	return true;
}

/* Prepares the memo for the pinned range. Returns false if the range's values repeat too little. */
static bool
prepare_memo(HeapMemo *memo, HeapTable *table, const CacheChunk *chunk)
{
	/* the results of a costly expression are kept across ranges, too (expr/memo.c) */
	if (!chunk_repeats(chunk) || (memo->costly && chunk->nentries > chunk->nrows / COSTLY_REPEATS))
		return false;
	renew_memo(memo, table, chunk);
	return true;
}

/*
 * Prepares the memo of a length test for the pinned range: has the outcomes of all values. Returns
 * false if all rows are NULL.
 */
static bool
prepare_lengths(HeapMemo *memo, HeapTable *table, const CacheChunk *chunk)
{
	if (chunk->nentries == 0)
		return false;
	if (!renew_memo(memo, table, chunk))
		return true;
	memset(memo->outcome, memo->test == IS_NOT_EMPTY ? MEMO_PASSED : MEMO_FAILED, chunk->nentries);
	for (uint32 code = 0; code < chunk->nentries; code++)
		if (chunk_entry_is_empty(chunk, code))
			memo->outcome[code] = memo->test == IS_EMPTY ? MEMO_PASSED : MEMO_FAILED;
	memo->outcome[chunk->nentries] = MEMO_FAILED;
	return true;
}

/*
 * Sets codes[i] to the code of the feed's row i, which is cached, in the chunk's dictionary.
 * NULLs have the code after the last one.
 */
static void
read_codes(const CacheChunk *chunk, const HeapFeed *feed, uint32 *codes)
{
	const HeapRows *rows = &feed->rows;
	const uint64 *validity = chunk_validity(chunk);
	uint32 from = feed->page.first_row + rows->tuple[0];
	int n = rows->tuple[rows->n - 1] - rows->tuple[0] + 1;

	if (heap_rows_are_dense(rows))
		chunk_codes(chunk, from, n, codes);
	else
	{
		uint32 range[EXPR_ROWS];

		chunk_codes(chunk, from, n, range);
		for (int i = 0; i < rows->n; i++)
			codes[i] = range[rows->tuple[i] - rows->tuple[0]];
	}
	if (validity == NULL)
		return;
	for (int i = 0; i < rows->n; i++)
		if (!bitmap_get(validity, feed->page.first_row + rows->tuple[i]))
			codes[i] = chunk->nentries;
}

int
heap_memo_select(HeapMemo *memo, HeapFeed *feed, HeapTable *table, int q, uint16 *sel)
{
	const CacheChunk *chunk = heap_cached_chunk(table->cached, memo->attno);
	uint32 codes[EXPR_ROWS];
	int n = 0;

	if (memo->test != NO_LENGTH_TEST)
	{
		if (!prepare_lengths(memo, table, chunk))
			return -1;
	}
	else if ((table->quals[q]->vec && chunk->nentries > chunk->nrows / VECTOR_ROWS) ||
			 !prepare_memo(memo, table, chunk))
		return -1;
	read_codes(chunk, feed, codes);
	for (int i = 0; i < feed->rows.n; i++)
	{
		uint8 *outcome = &memo->outcome[codes[i]];

		if (unlikely(*outcome == MEMO_UNKNOWN))
		{
			bool isnull;
			Datum value = expr_evaluate_scalar(table->set, table->quals[q], i, &isnull);

			*outcome = !isnull && DatumGetBool(value) ? MEMO_PASSED : MEMO_FAILED;
		}
		sel[n] = i;
		n += *outcome == MEMO_PASSED;
	}
	return n;
}

/* ---- outputs -------------------------------------------------------------------- */

bool
heap_memo_prepare(HeapTable *table)
{
	for (int c = 0; c < table->noutputs; c++)
	{
		HeapMemo *memo = table->outputs[c].memo;

		if (memo && !prepare_memo(memo, table, heap_cached_chunk(table->cached, memo->attno)))
			return false;
	}
	return true;
}

/* Returns whether the memo may keep one more value of `size` bytes. */
static bool
may_keep(const HeapMemo *memo, const HeapTable *table, Size size)
{
	return memo->bytes + size <= EXPR_PAGE_BYTES &&
		table->memo_bytes + size <= Max(EXPR_PAGE_BYTES, work_mem * (size_t) 1024);
}

/*
 * Returns the output's value for row i, whose code is k; evaluates it if no earlier row had
 * that code. *kept: the value lasts as long as the range.
 */
static Datum
get_value(HeapMemo *memo, HeapTable *table, int i, uint32 k, bool *isnull, bool *kept)
{
	Datum value;
	MemoryContext old;

	*kept = true;
	if (likely(memo->outcome[k] != MEMO_UNKNOWN))
	{
		*isnull = memo->outcome[k] == MEMO_FAILED;
		return *isnull ? (Datum) 0 : memo->values[k];
	}
	value = expr_evaluate_scalar(table->set, memo->root, i, isnull);
	if (*isnull)
	{
		memo->outcome[k] = MEMO_FAILED;
		return value;
	}
	if (!memo->typbyval)
	{
		Size size = datumGetSize(value, false, memo->typlen);

		*kept = may_keep(memo, table, size);
		if (!*kept)
			return value;
		memo->bytes += size;
		table->memo_bytes += size;
		old = MemoryContextSwitchTo(memo->cxt);
		value = datumCopy(value, false, memo->typlen);
		MemoryContextSwitchTo(old);
	}
	memo->values[k] = value;
	memo->outcome[k] = MEMO_PASSED;
	return value;
}

/*
 * Stores a value in a row of an output. borrow: the value lasts as long as the range, so it need
 * not be copied.
 */
static void
store_value(HeapFeed *feed, HeapOutput *output, int row, Datum value, bool isnull, bool borrow)
{
	ColumnWriter *writer = &output->writer;
	Column *col = writer->col;

	if (isnull)
		column_write_null(writer, row);
	else if (borrow && col->type == COLUMN_DATUM && !writer->typbyval &&
			 datum_bytes(value, writer->typlen) <= BATCH_BYTES / feed->batch.capacity)
	{
		((Datum *) col->values)[row] = value;
		feed->borrows = true;
	}
	else
		column_write(writer, row, value);
}

/*
 * Stores the codes of n rows of an output, from row `at` of the batch on. Codes are below
 * ncodes. If earlier rows have codes of another dictionary, the column gets none.
 */
static void
store_codes(HeapFeed *feed, HeapOutput *output, int at, int n, const uint32 *codes, uint32 ncodes)
{
	uint64 dictionary = heap_cached_dictionary(feed->table->cached);

	if (at > 0 && output->dictionary != dictionary)
	{
		output->dictionary = 0;
		return;
	}
	if (output->codes == NULL)
		output->codes = MemoryContextAlloc(feed->cxt, feed->batch.capacity * sizeof(uint32));
	output->dictionary = dictionary;
	output->ncodes = ncodes;
	memcpy(output->codes + at, codes, n * sizeof(uint32));
}

int
heap_memo_store(HeapFeed *feed, HeapTable *table, int c, int at, int n)
{
	HeapMemo *memo = table->outputs[c].memo;
	const CacheChunk *chunk = heap_cached_chunk(table->cached, memo->attno);
	uint32 codes[EXPR_ROWS];

	read_codes(chunk, feed, codes);
	for (int i = 0; i < n; i++)
	{
		bool isnull, kept;
		Datum value = get_value(memo, table, i, codes[i], &isnull, &kept);

		for (int o = c; o >= 0; o = table->outputs[o].next)
			store_value(feed, &feed->outputs[o], at + i, value, isnull, kept);
		if (unlikely(heap_batch_is_full(feed)))
			n = i + 1;
	}
	for (int o = c; o >= 0; o = table->outputs[o].next)
		if (feed->outputs[o].writer.col->type == COLUMN_DATUM && !feed->outputs[o].writer.typbyval)
			store_codes(feed, &feed->outputs[o], at, n, codes, chunk->nentries + 1);
	return n;
}
