/*
 * memo.c
 *	  Keeps the results of expressions over columns with few values: each combination of values is
 *	  computed once.
 *
 * A memo keeps the results of an expression that calls functions row by row.  Its operations are:
 *
 *	1. A lookup finds the entry of each row by the values of the columns that the expression reads.
 *	   By-reference values count by their numbers in a dictionary (value_numbers.c), others by
 *	   their bits.
 *	   The result of date_trunc or extract can take the place of a column.  Rows without a
 *	   result are `missing`.
 *	2. The expression's own operations run for the missing rows alone, with `missing` as their
 *	   mask, so that errors are raised only for rows that core would evaluate.  They are skipped
 *	   if no row is missing.
 *	3. The last operation takes results from the entries, and keeps new ones.
 *
 * If most rows are missing because the columns have many values, lookups pause for a while.  Then
 * all rows that core would evaluate are missing, and the expression is computed as without a memo.
 * An expression inside that reads fewer columns has a memo of its own.
 *
 * Core evaluates an expression that cannot be compiled for the missing rows.
 *
 * Memory: entries live as long as the root that the memo was made for.  With stable functions they
 * live until the next scan, because settings may change between scans.  By-reference results are a
 * dictionary (Vec.dictionary).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "columns/column_value.h"
#include "common/compat.h"
#include "common/interruptible.h"
#include "expr/expr_internal.h"
#include "operators/cpu_hash.h"

#define MOST_ENTRIES 16384
#define FIRST_ENTRIES 256
/* Longer results (in bytes) are not kept. */
#define LONGEST_RESULT 256
/* Limits for costly expressions; memory ends the memo earlier. */
#define MOST_ENTRIES_COSTLY (16 * 1024 * 1024)
#define LONGEST_RESULT_COSTLY 2048
/* A function of this cost, in units of cpu_operator_cost, is costly. */
#define COSTLY 10
/* Maximum number of words of a key: two for a decimal, and one for NULLs. */
#define MOST_WORDS (2 * EXPR_MEMO_COLUMNS + 1)

#define NO_ENTRY (-1)

/* Outcome of an entry: a VecState, or */
enum
{
	MEMO_UNKNOWN = VEC_FALLBACK + 1,
	MEMO_PENDING /* being computed for a row of this page */
};

/*
 * The kept results of one expression. An entry is a key (a combination of column values) and its
 * result.
 */
typedef struct Memo
{
	ExprDictionary dictionary; /* its numbers are the entries */
	MemoryContext cxt;
	int ncols;
	Vec *cols[EXPR_MEMO_COLUMNS]; /* values, or numbers of by-reference values */
	bool by_number; /* there is one column, and entry = its number + 1; entry 0 is NULL */
	int nwords;
	uint64 *words; /* [entry][word] keys */
	HashSeed seed;
	uint32 mask;
	int32 *table; /* hash table: entry, or NO_ENTRY */
	uint32 capacity;
	uint8 *outcome; /* [entry] */
	char *values;   /* [entry] values of the result's type */
	bool nulls;     /* some results are NULL */
	bool complete;  /* no row of this page is missing */
	bool found;     /* each row of this page has an entry */
	bool costly;    /* calls a costly function */
	bool one_scan;  /* entries are valid for one scan only: stable functions may read settings */
	uint32 resets;  /* ExprSet.resets when the entries were made */
	int16 typlen;
	bool typbyval;
	Vec *inner; /* result of the expression's own operations */
	Vec *at;    /* entry of each row */
	Vec *missing;
	ExprRoot root; /* for rows that core evaluates */
	ExprWindow window;
} Memo;

/* ---- entries ------------------------------------------------------------------ */

/*
 * Enlarges the arrays of entries to `capacity`.  New entries are MEMO_UNKNOWN. width: bytes of a
 * result.
 */
static void
grow_entries(Memo *memo, uint32 capacity, int width)
{
	if (memo->capacity == 0)
	{
		memo->outcome = MemoryContextAllocHuge(memo->cxt, capacity);
		memo->values = MemoryContextAllocHuge(memo->cxt, (Size) capacity * width);
		memo->words =
			MemoryContextAllocHuge(memo->cxt, (Size) capacity * memo->nwords * sizeof(uint64) + 1);
	}
	else
	{
		memo->outcome = repalloc_huge(memo->outcome, capacity);
		memo->values = repalloc_huge(memo->values, (Size) capacity * width);
		memo->words =
			repalloc_huge(memo->words, (Size) capacity * memo->nwords * sizeof(uint64) + 1);
	}
	memset(memo->outcome + memo->capacity, MEMO_UNKNOWN, capacity - memo->capacity);
	memset(memo->values + (Size) memo->capacity * width, 0,
		   (Size) (capacity - memo->capacity) * width);
	memo->capacity = capacity;
	memo->dictionary.values = (Datum *) memo->values;
}

/* Returns the place in the hash table where the search for a key starts. */
static inline uint32
hash_position(const Memo *memo, const uint64 *words)
{
	uint64 h = hash_fold(memo->seed, words[0]);

	for (int w = 1; w < memo->nwords; w++)
		h = hash_fold(memo->seed, h ^ words[w]);
	return hash_finish(h) & memo->mask;
}

/* Replaces the hash table by one with `size` places, a power of two, and enters all entries. */
static void
rebuild_table(Memo *memo, uint32 size)
{
	if (memo->table)
		pfree(memo->table);
	memo->table = MemoryContextAllocHuge(memo->cxt, size * sizeof(int32));
	memset(memo->table, 0xff, size * sizeof(int32));
	memo->mask = size - 1;
	INTERRUPTIBLE_FOR (e, 0, memo->dictionary.n)
	{
		uint32 p = hash_position(memo, memo->words + (Size) e * memo->nwords);

		while (memo->table[p] != NO_ENTRY)
			p = (p + 1) & memo->mask;
		memo->table[p] = e;
	}
}

/*
 * Removes all entries and starts a new dictionary. resets: the current ExprSet.resets, for memos
 * that are valid for one scan only.
 */
static void
empty_memo(Memo *memo, uint32 resets)
{
	MemoryContextReset(memo->cxt);
	memo->table = NULL;
	memo->capacity = 0;
	memo->nulls = false;
	memo->resets = resets;
	memo->dictionary = (ExprDictionary){.id = expr_new_dictionary()};
	grow_entries(memo, FIRST_ENTRIES, column_width(memo->inner->type));
	if (!memo->by_number)
		rebuild_table(memo, 4 * FIRST_ENTRIES);
}

/* Returns whether another entry, or another result, may be kept. The first one always may. */
static bool
has_room(const Memo *memo)
{
	return memo->dictionary.n == 0 ||
		(memo->dictionary.n < (memo->costly ? MOST_ENTRIES_COSTLY : MOST_ENTRIES) &&
		 MemoryContextMemAllocated(memo->cxt, false) <= work_mem * (Size) 1024 / 4);
}

/*
 * Returns the entry of a key, which is added if it is new; NO_ENTRY: there is no room for it.
 * words: the key; width: bytes of a result.
 */
static inline int32
lookup_or_add_entry(Memo *memo, const uint64 *words, int width)
{
	uint32 p = hash_position(memo, words);
	int32 e;

	for (; (e = memo->table[p]) != NO_ENTRY; p = (p + 1) & memo->mask)
	{
		const uint64 *other = memo->words + (Size) e * memo->nwords;
		int w = 0;

		while (w < memo->nwords && other[w] == words[w])
			w++;
		if (w == memo->nwords)
			return e;
	}
	if (!has_room(memo))
		return NO_ENTRY;
	e = memo->dictionary.n;
	if (e == memo->capacity)
		grow_entries(memo, memo->capacity * 2, width);
	memcpy(memo->words + (Size) e * memo->nwords, words, memo->nwords * sizeof(uint64));
	memo->table[p] = e;
	memo->dictionary.n++;
	if (memo->dictionary.n * 2 > memo->mask)
		rebuild_table(memo, (memo->mask + 1) * 2);
	return e;
}

/*
 * Sets at[i] to the entry of row i, by the number that the only column has for it: number + 1, or
 * 0 for NULL.  NO_ENTRY: the value has no number.  Adds entries for new numbers.
 */
static void
find_entries_by_number(Memo *memo, int32 *at, int n, int width)
{
	const Vec *col = memo->cols[0];
	const int32 *numbers = col->values;
	int32 last = 0;

	if (col->all_values)
		for (int i = 0; i < n; i++)
			at[i] = numbers[i] + 1;
	else
		for (int i = 0; i < n; i++)
			at[i] = col->state[i] == VEC_VALUE ? numbers[i] + 1 :
				col->state[i] == VEC_NULL      ? 0 :
												 NO_ENTRY;
	for (int i = 0; i < n; i++)
		last = Max(last, at[i]);
	memo->dictionary.n = Max(memo->dictionary.n, last + 1);
	if (last >= memo->capacity)
		grow_entries(memo, Max(memo->capacity * 2, last + 1), width);
}

/*
 * Writes the bits of a column's values into the keys of n rows: one word, or two for decimals,
 * from word w on.  Returns the index of the word after them.
 */
static int
add_words(const Vec *col, uint64 (*keys)[MOST_WORDS], int w, int n)
{
#define BITS(type) \
	for (int i = 0; i < n; i++) \
	keys[i][w] = (uint64) ((const type *) col->values)[i]
	switch (column_width(col->type))
	{
		case 1:
			BITS(uint8);
			break;
		case 2:
			BITS(uint16);
			break;
		case 4:
			BITS(uint32);
			break;
		case 8:
			BITS(uint64);
			break;
		case 16:
			for (int i = 0; i < n; i++)
			{
				gpuagg_u128 value = ((const gpuagg_u128 *) col->values)[i];

				keys[i][w] = (uint64) value;
				keys[i][w + 1] = (uint64) (value >> 64);
			}
			return w + 2;
	}
#undef BITS
	return w + 1;
}

/*
 * Sets at[i] to the entry of row i, by the bits of its columns; adds new keys.  NO_ENTRY: the row
 * is outside of mask (NULL: all rows), a column is VEC_FALLBACK, or there is no room.  Word 0 of a
 * key has a bit for each column that is NULL.
 */
static void
find_entries_by_words(Memo *memo, const int8 *mask, int32 *at, int n, int width)
{
	uint64 keys[EXPR_ROWS][MOST_WORDS];
	uint8 none[EXPR_ROWS] = {0};
	int w = 1;

	for (int i = 0; i < n; i++)
		keys[i][0] = 0;
	for (int c = 0; c < memo->ncols; c++)
	{
		const Vec *col = memo->cols[c];
		int first = w;

		w = add_words(col, keys, first, n);
		if (col->all_values)
			continue;
		for (int i = 0; i < n; i++)
			if (col->state[i] != VEC_VALUE)
			{
				for (int v = first; v < w; v++)
					keys[i][v] = 0;
				keys[i][0] |= UINT64CONST(1) << c;
				none[i] |= col->state[i] == VEC_FALLBACK;
			}
	}
	for (int i = 0; i < n; i++)
		at[i] =
			none[i] || (mask && !mask[i]) ? NO_ENTRY : lookup_or_add_entry(memo, keys[i], width);
}

/*
 * First operation of a memo; data: Memo.  Sets memo->at to the entry of each row.  Sets r to true
 * for rows of mask c (NULL: all rows) that have no kept result and must be computed: the missing
 * rows.
 */
static void
run_lookup(const ExprOp *op, int n)
{
	Memo *memo = op->data;
	const int8 *mask = op->c ? op->c->values : NULL;
	int8 *missing = op->r->values;
	int32 *at = memo->at->values;
	int width = column_width(memo->inner->type);
	int nmissing = 0;
	int nfound = 0;

	op->r->all_values = true;
	memo->complete = memo->found = false;
	if (memo->one_scan && memo->resets != op->set->resets)
		empty_memo(memo, op->set->resets);
	if (!expr_window_open(&memo->window, n))
	{
		for (int i = 0; i < n; i++)
			at[i] = NO_ENTRY;
		for (int i = 0; i < n; i++)
			missing[i] = mask ? mask[i] : 1;
		return;
	}
	if (memo->by_number)
		find_entries_by_number(memo, at, n, width);
	else
		find_entries_by_words(memo, mask, at, n, width);
	for (int i = 0; i < n; i++)
	{
		uint8 *outcome = &memo->outcome[Max(at[i], 0)];

		if (mask && !mask[i])
			at[i] = NO_ENTRY;
		missing[i] = (mask == NULL || mask[i]) && (at[i] < 0 || *outcome == MEMO_UNKNOWN);
		if (missing[i] && at[i] >= 0)
			*outcome = MEMO_PENDING;
		nmissing += missing[i];
		nfound += at[i] >= 0;
	}
	memo->complete = nmissing == 0;
	memo->found = nfound == n;
	expr_window_note(&memo->window, n, nmissing);
}

/* ---- results ------------------------------------------------------------------ */

/*
 * Keeps a row's result, computed by memo->inner, in entry e.  If the result is VEC_FALLBACK or too
 * long, or there is no room, the entry becomes MEMO_UNKNOWN again.
 */
static void
keep_result(Memo *memo, int32 e, int row)
{
	const Vec *inner = memo->inner;
	int width = column_width(inner->type);
	uint8 state = expr_state(inner, row);
	char *to = memo->values + (Size) e * width;

	memo->outcome[e] = MEMO_UNKNOWN;
	if (state == VEC_FALLBACK)
		return;
	if (state == VEC_VALUE && !memo->typbyval && inner->type == COLUMN_DATUM)
	{
		Datum value = ((const Datum *) inner->values)[row];
		Size size = datumGetSize(value, false, memo->typlen);
		MemoryContext old;

		if (size > (memo->costly ? LONGEST_RESULT_COSTLY : LONGEST_RESULT) || !has_room(memo))
			return;
		memo->dictionary.longest = Max(memo->dictionary.longest, datum_bytes(value, memo->typlen));
		old = MemoryContextSwitchTo(memo->cxt);
		*(Datum *) to = datumCopy(value, false, memo->typlen);
		MemoryContextSwitchTo(old);
	}
	else if (state == VEC_VALUE)
		memcpy(to, (const char *) inner->values + (Size) row * width, width);
	memo->nulls |= state == VEC_NULL;
	memo->outcome[e] = state;
}

/*
 * Last operation of a memo; data: Memo.  Keeps the results of the missing rows, and sets r to the
 * results of all rows, from entries or from memo->inner.
 */
static void
run_result(const ExprOp *op, int n)
{
	Memo *memo = op->data;
	const int8 *missing = memo->missing->values;
	const int32 *at = memo->at->values;
	const Vec *inner = memo->inner;
	Vec *r = op->r;
	int width = column_width(r->type);

	if (!memo->complete)
		for (int i = 0; i < n; i++)
			if (missing[i] && at[i] >= 0)
				keep_result(memo, at[i], i);
	memo->at->all_values = memo->complete && memo->found;
	if (memo->complete && memo->found)
	{
#define GATHER(type) \
	for (int i = 0; i < n; i++) \
	((type *) r->values)[i] = ((const type *) memo->values)[at[i]]
		BY_WIDTH(r->type, GATHER);
#undef GATHER
		r->all_values = !memo->nulls;
		if (memo->nulls)
			for (int i = 0; i < n; i++)
				r->state[i] = memo->outcome[at[i]];
		return;
	}
	r->all_values = false;
	for (int i = 0; i < n; i++)
	{
		bool kept = at[i] >= 0 && memo->outcome[at[i]] <= VEC_NULL;

		memo->at->state[i] = kept ? VEC_VALUE : VEC_FALLBACK;
		r->state[i] = kept ? memo->outcome[at[i]] :
			missing[i]     ? expr_state(inner, i) :
							 VEC_FALLBACK;
		memcpy((char *) r->values + (Size) i * width,
			   kept ? memo->values + (Size) at[i] * width :
					  (const char *) inner->values + (Size) i * width,
			   width);
	}
}

/*
 * Sets r to core's results for the rows of mask a, by the scalar fallback.  All other rows become
 * VEC_FALLBACK. data: Memo
 */
static void
run_evaluate(const ExprOp *op, int n)
{
	Memo *memo = op->data;
	const int8 *mask = op->a->values;
	MemoryContext old;

	op->r->all_values = false;
	for (int i = 0; i < n; i++)
	{
		bool isnull;
		Datum value;

		op->r->state[i] = VEC_FALLBACK;
		if (!mask[i] || MemoryContextMemAllocated(op->set->page_cxt, false) > EXPR_PAGE_BYTES)
			continue;
		value = expr_evaluate_scalar(op->set, &memo->root, i, &isnull);
		old = MemoryContextSwitchTo(op->set->page_cxt);
		if (isnull)
			op->r->state[i] = VEC_NULL;
		else if (column_store(op->r->type, op->r->scale, op->r->values, i,
							  op->r->type == COLUMN_DATUM ?
								  datumCopy(value, memo->typbyval, memo->typlen) :
								  value))
			op->r->state[i] = VEC_VALUE;
		MemoryContextSwitchTo(old);
	}
}

/* ---- what results may be kept of --------------------------------------------- */

/*
 * Callback of check_functions_in_node: returns whether the function depends on more than its
 * arguments, or its calls are counted in pg_stat_user_functions.
 */
static bool
is_impure(Oid funcid, void *context)
{
	if (funcid >= FirstNormalObjectId)
		return func_volatile(funcid) != PROVOLATILE_IMMUTABLE ||
			pgstat_track_functions != TRACK_FUNC_OFF;
	/* these depend on how a value is stored */
	return funcid == F_PG_COLUMN_SIZE || funcid == F_PG_COLUMN_COMPRESSION ||
		func_volatile(funcid) == PROVOLATILE_VOLATILE;
}

/*
 * Returns whether the node, without its children, gives equal results for equal column values
 * within a query, so that results may be kept.  Nodes not listed are not pure.
 */
static bool
is_pure(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Var:
			return ((Var *) node)->varattno > 0;
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_EXTERN;
		case T_FuncExpr:
			return !((FuncExpr *) node)->funcretset &&
				!check_functions_in_node(node, is_impure, NULL);
		case T_OpExpr:
			return !((OpExpr *) node)->opretset && !check_functions_in_node(node, is_impure, NULL);
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_MinMaxExpr:
		case T_CoerceViaIO:
			return !check_functions_in_node(node, is_impure, NULL);
		case T_Const:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_ArrayExpr:
			return true;
		default:
			return false;
	}
}

/*
 * Callback of check_functions_in_node: returns whether the function has no vector operation, so
 * that it is called row by row.
 */
static bool
is_slow_function(Oid funcid, void *context)
{
	return expr_find_function(funcid) == NULL && !expr_is_text_equality(funcid) &&
		funcid != F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4 && !expr_is_time(funcid) &&
		!expr_is_interval(funcid) && !expr_is_decimal(funcid);
}

/* Returns whether the node itself, without its children, calls a function row by row. */
static bool
is_slow(Node *node)
{
	switch (nodeTag(node))
	{
		case T_CoerceViaIO:
			return true;
		case T_OpExpr:
			if (expr_is_like(((OpExpr *) node)->opfuncid))
				return !expr_is_simple_like(((OpExpr *) node)->args);
			/* decimal_ops.c does arithmetic, and its arguments have many values */
			if (exprType(node) == NUMERICOID)
				return false;
			return check_functions_in_node(node, is_slow_function, NULL);
		case T_FuncExpr:
			if (expr_is_rounding(((FuncExpr *) node)->funcid, ((FuncExpr *) node)->args))
				return false;
			compat_fallthrough;
		case T_ScalarArrayOpExpr:
			return check_functions_in_node(node, is_slow_function, NULL);
		default:
			return false;
	}
}

void
expr_memo_describe(Node *node, NodeFacts *facts)
{
	facts->pure = is_pure(node);
	facts->slow = is_slow(node);
	facts->narrows = IsA(node, FuncExpr) && expr_is_time(((FuncExpr *) node)->funcid);
}

/* Returns the cost of a call that CREATE FUNCTION declared. */
static float4
declared_cost(Oid funcid)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	float4 cost;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", funcid);
	cost = ((Form_pg_proc) GETSTRUCT(tuple))->procost;
	ReleaseSysCache(tuple);
	return cost;
}

/* Callback of check_functions_in_node: returns whether a call of the function is costly. */
static bool
is_costly_function(Oid funcid, void *context)
{
	switch (funcid)
	{
		case F_TEXTREGEXEQ:
		case F_TEXTREGEXNE:
		case F_TEXTICREGEXEQ:
		case F_TEXTICREGEXNE:
		case F_BPCHARREGEXEQ:
		case F_BPCHARREGEXNE:
		case F_BPCHARICREGEXEQ:
		case F_BPCHARICREGEXNE:
		case F_SUBSTRING_TEXT_TEXT:
		case F_REGEXP_REPLACE_TEXT_TEXT_TEXT:
		case F_REGEXP_REPLACE_TEXT_TEXT_TEXT_TEXT:
		case F_REGEXP_REPLACE_TEXT_TEXT_TEXT_INT4:
		case F_REGEXP_REPLACE_TEXT_TEXT_TEXT_INT4_INT4:
		case F_REGEXP_REPLACE_TEXT_TEXT_TEXT_INT4_INT4_TEXT:
		case F_REGEXP_MATCH_TEXT_TEXT:
		case F_REGEXP_MATCH_TEXT_TEXT_TEXT:
		case F_REGEXP_LIKE_TEXT_TEXT:
		case F_REGEXP_LIKE_TEXT_TEXT_TEXT:
		case F_REGEXP_COUNT_TEXT_TEXT:
		case F_REGEXP_INSTR_TEXT_TEXT:
		case F_REGEXP_SUBSTR_TEXT_TEXT:
		case F_REGEXP_SPLIT_TO_ARRAY_TEXT_TEXT:
			return true;
		default:
			return declared_cost(funcid) >= COSTLY;
	}
}

/* Walker that returns whether a node calls a costly function. */
static bool
costly_walker(Node *node, void *context)
{
	return node != NULL &&
		(check_functions_in_node(node, is_costly_function, NULL) ||
		 expression_tree_walker(node, costly_walker, context));
}

bool
expr_is_costly(Expr *expr)
{
	return costly_walker((Node *) expr, NULL);
}

/* ---- compiling ------------------------------------------------------------------ */

bool
expr_memo_pays(const ExprSet *set, const NodeFacts *facts)
{
	if (!facts->pure || !facts->has_slow || facts->nvars == 0 || facts->nvars > EXPR_MEMO_COLUMNS ||
		facts->nvars >= set->memo_columns || (facts->case_value && set->case_value))
		return false;
	/* if an expression combines several columns, its slow parts get memos instead */
	return facts->nvars == 1 || facts->slow;
}

/*
 * Sets memo->cols and the other members that describe the key, from the columns below the
 * expression (facts->vars).  Returns false if one of them has no vector, or no numbers.
 */
static bool
compile_key(ExprSet *set, Memo *memo, const NodeFacts *facts, int stage)
{
	memo->ncols = facts->nvars;
	for (int c = 0; c < memo->ncols; c++)
	{
		Vec *vec = expr_compile(set, facts->vars[c], stage);
		bool by_reference = vec && vec->type == COLUMN_DATUM && !get_typbyval(vec->typid);

		if (vec == NULL || (vec->attno == 0 && IsA(facts->vars[c], Var)))
			return false;
		memo->cols[c] = by_reference ? expr_codes_vec(set, vec, memo->costly, stage) : vec;
		if (memo->cols[c] == NULL)
			return false;
		memo->by_number = by_reference && memo->ncols == 1;
		memo->nwords += vec->type == COLUMN_DEC ? 2 : 1;
	}
	memo->nwords = memo->by_number ? 0 : memo->nwords + 1;
	return true;
}

/*
 * Returns the vector of the expression's own operations, which run for the rows of mask->vec only.
 * If they cannot be compiled, core evaluates the expression for these rows (run_evaluate).
 */
static Vec *
compile_inner(ExprSet *set, Memo *memo, Expr *expr, ExprMask *mask, int stage)
{
	ExprMask *outer = set->mask;
	int columns = set->memo_columns;
	Vec *before = set->vecs;
	ExprOp **tail = set->stages[stage].tail;
	Vec *inner;
	ColumnType type;
	int16 scale;

	set->mask = mask;
	set->memo_columns = memo->ncols;
	inner = expr_compile(set, expr, stage);
	set->memo_columns = columns;
	/* a memo keeps no display scales; core evaluates such an expression */
	if (inner == NULL || inner->scales)
	{
		set->failed = false;
		expr_share_undo(set, before);
		*tail = NULL;
		set->stages[stage].tail = tail;
		type = expr_value_type(expr, &scale);
		inner = expr_new_vec(set, type, scale, exprType((Node *) expr), NULL, stage);
		expr_emit(set, stage, run_evaluate, inner, memo->missing, NULL, NULL, memo);
	}
	set->mask = outer;
	/* vectors of these operations are not computed for all rows, so they cannot be shared */
	for (Vec *vec = set->vecs; vec != before; vec = vec->next)
		if (vec->attno == 0)
			vec->masked = true;
	return inner;
}

Vec *
expr_memo_inner(const ExprOp *op)
{
	return op->run == run_result ? ((const Memo *) op->data)->inner : NULL;
}

Vec *
expr_compile_memo(ExprSet *set, Expr *expr, const NodeFacts *facts, int stage)
{
	Memo *memo = palloc0(sizeof(Memo));
	Oid typid = exprType((Node *) expr);
	ExprMask *mask = palloc0(sizeof(ExprMask));
	ExprOp *lookup;
	Vec *r;

	memo->costly = memo->window.costly = expr_is_costly(expr);
	if (get_typtype(typid) == TYPTYPE_PSEUDO || !compile_key(set, memo, facts, stage))
		return NULL;
	get_typlenbyval(typid, &memo->typlen, &memo->typbyval);
	if (memo->typlen == -2)
		return NULL;
	memo->root.expr = expr;
	memo->cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg results of expressions",
									  ALLOCSET_DEFAULT_SIZES);
	memo->seed =
		hash_seed(pg_prng_uint64(&pg_global_prng_state), pg_prng_uint64(&pg_global_prng_state));
	memo->one_scan = contain_mutable_functions((Node *) expr);
	memo->at = expr_new_vec(set, COLUMN_I32, 0, InvalidOid, NULL, stage);
	memo->missing = expr_emit_bool(set, stage, run_lookup, NULL, NULL, NULL,
								   expr_mask_vec(set, set->mask, stage), memo);
	lookup = expr_last_op(set, stage);
	mask->outer = set->mask;
	mask->vec = memo->missing;
	memo->inner = compile_inner(set, memo, expr, mask, stage);
	lookup->skip = &memo->complete;
	lookup->last = expr_last_op(set, stage);
	empty_memo(memo, set->resets);
	r = expr_new_vec(set, memo->inner->type, memo->inner->scale, typid, expr, stage);
	r->masked = set->mask != NULL;
	if (r->type == COLUMN_DATUM && !memo->typbyval)
	{
		r->codes = memo->at;
		r->codes->codes_of = r;
		r->dictionary = &memo->dictionary;
	}
	expr_emit(set, stage, run_result, r, NULL, NULL, NULL, memo);
	return r;
}
