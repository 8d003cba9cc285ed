/*
 * heap_join_table.c
 *	  The joins of one table: compiles probes and conditions, probes lookups, and fills columns of
 *	  lookups; see heap_joins.h.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "analysis/analysis.h"
#include "common/compat.h"
#include "feed/heap.h"
#include "feed/heap_joins_internal.h"
#include "feed/heap_resident.h"

/* The probe of one lookup. */
typedef struct Probe
{
	int nkeys;
	ExprRoot **keys;

	/* If there is one key whose values have numbers (Vec.codes): what has been found for each. */
	uint32 *rows;    /* [number] row of the lookup, LOOKUP_NONE or NOT_SEARCHED */
	uint32 nrows;    /* length of the array */
	uint64 searched; /* Lookup.builds when they were searched, */
	uint64 numbered; /* and ExprDictionary.id */
} Probe;

/* The number of the row for a value that has not been searched. */
#define NOT_SEARCHED (LOOKUP_NONE - 1)

struct HeapTableJoins
{
	int natts; /* number of the table's columns */
	int njoins;
	int *order;     /* [position] joins in the order of their probes */
	List *targets;  /* target list of the table's scan */
	Probe *probes;  /* [join] */
	int *probed;    /* [stage] join whose lookup the stage probes, or -1 */
	int *settled;   /* [stage] join that the stage settles, or -1 */
	Vec ***columns; /* [stage] columns of lookups that it is the first to read, up to a NULL */
	TupleTableSlot *slot; /* a joined row, for core's evaluator */
};

/* ---- compiling ---------------------------------------------------------------------- */

int
heap_joins_count_quals(const HeapJoins *joins)
{
	int n = 0;

	for (int j = 0; j < joins->n; j++)
		n += 1 + list_length(joins->joins[j].quals);
	return n;
}

TupleDesc
heap_joins_desc(const HeapJoins *joins, TupleDesc table)
{
	TupleDesc desc = CreateTemplateTupleDesc(table->natts + joins->ncolumns);

	for (int a = 1; a <= table->natts; a++)
		TupleDescCopyEntry(desc, a, table, a);
	for (int c = 0; c < joins->ncolumns; c++)
	{
		const HeapJoinColumn *column = &joins->columns[c];

		TupleDescInitEntry(desc, table->natts + c + 1, NULL, column->typid, column->typmod, 0);
		TupleDescInitEntryCollation(desc, table->natts + c + 1, column->collation);
	}
	compat_finalize_tuple_desc(desc);
	return desc;
}

/* What resolve_expr() needs. */
typedef struct ResolveContext
{
	const HeapJoins *joins;
	const HeapTableJoins *table;
} ResolveContext;

/*
 * Replaces targets of the scan by their expressions, and gives columns of lookups their numbers in
 * the ExprSet.
 */
static Node *
resolve_expr(Node *node, void *arg)
{
	const ResolveContext *context = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var *var = (Var *) node;

		if (var->varno == OUTER_VAR)
			return copyObject(
				(Node *) list_nth_node(TargetEntry, context->table->targets, var->varattno - 1)
					->expr);
		var = copyObject(var);
		var->varattno += context->table->natts;
		return (Node *) var;
	}
	return expression_tree_mutator(node, resolve_expr, arg);
}

/* Returns a merged expression of a join as one over columns of the ExprSet. */
static Expr *
resolve(const HeapFeed *feed, const HeapTable *table, Expr *expr)
{
	ResolveContext context = {feed->joins, table->joins};

	return (Expr *) resolve_expr((Node *) expr, &context);
}

void
heap_joins_add_quals(HeapFeed *feed, HeapTable *table, List *targets)
{
	HeapJoins *joins = feed->joins;
	HeapTableJoins *own = palloc0(sizeof(HeapTableJoins));
	int stage = table->nscan_quals;

	table->joins = own;
	own->natts = RelationGetDescr(table->scan->rel)->natts;
	own->targets = targets;
	own->njoins = joins->n;
	own->order = palloc(sizeof(int) * joins->n);
	memcpy(own->order, joins->order, sizeof(int) * joins->n);
	own->probes = palloc0(sizeof(Probe) * joins->n);
	own->probed = palloc(sizeof(int) * table->nstages);
	own->settled = palloc(sizeof(int) * table->nstages);
	for (int s = 0; s < table->nstages; s++)
		own->probed[s] = own->settled[s] = -1;
	own->slot = MakeSingleTupleTableSlot(table->set->desc, &TTSOpsVirtual);
	for (int i = 0; i < joins->n; i++)
	{
		int j = own->order[i];
		HeapJoin *join = &joins->joins[j];
		Probe *probe = &own->probes[j];
		int k = 0;
		ListCell *lc;

		probe->nkeys = join->lookup.nkeys;
		probe->keys = palloc(sizeof(ExprRoot *) * join->lookup.nkeys);
		own->probed[stage] = j;
		foreach (lc, join->keys)
			probe->keys[k++] = expr_add_root(table->set, resolve(feed, table, lfirst(lc)), stage);
		if (k == 1 && !lookup_has_integer_key(&join->lookup))
			expr_add_codes(table->set, probe->keys[0]);
		stage++;
		if (join->settles)
			own->settled[stage] = j;
		foreach (lc, join->quals)
		{
			table->quals[stage] =
				expr_add_root(table->set, resolve(feed, table, lfirst(lc)), stage);
			stage++;
		}
	}
}

Expr *
heap_joins_output(const HeapFeed *feed, const HeapTable *table, int resno)
{
	const HeapJoins *joins = feed->joins;

	return resolve(feed, table,
				   list_nth_node(TargetEntry, joins->joins[joins->n - 1].targets, resno - 1)->expr);
}

/* Returns whether an expression has a Var with this number. */
static bool
reads_walker(Node *node, void *varno)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varno == *(const int *) varno;
	return expression_tree_walker(node, reads_walker, varno);
}

bool
heap_joins_reads_lookups(const HeapFeed *feed, Node *expr)
{
	return feed->joins && reads_walker(expr, &feed->joins->varno);
}

void
heap_joins_end_table(HeapFeed *feed, HeapTable *table)
{
	HeapTableJoins *own = table->joins;

	own->columns = palloc(sizeof(Vec **) * table->nstages);
	for (int s = 0; s < table->nstages; s++)
	{
		int n = 0;

		for (Vec *vec = table->set->stages[s].vecs; vec; vec = vec->next_of_stage)
			n += vec->attno > own->natts;
		own->columns[s] = palloc0(sizeof(Vec *) * (n + 1));
		n = 0;
		for (Vec *vec = table->set->stages[s].vecs; vec; vec = vec->next_of_stage)
			if (vec->attno > own->natts)
				own->columns[s][n++] = vec;
	}
}

void
heap_joins_add_attnos(const HeapTable *table, Bitmapset **attnos)
{
	const HeapTableJoins *own = table->joins;
	Index varno = ((const Scan *) table->scan->node->ps.plan)->scanrelid;

	for (int j = 0; j < own->njoins; j++)
		for (int k = 0; k < own->probes[j].nkeys; k++)
			pull_varattnos((Node *) own->probes[j].keys[k]->expr, varno, attnos);
}

const int *
heap_joins_table_order(const HeapTable *table)
{
	return table->joins->order;
}

/* Returns the table's column that is a join's key, or the high half of it; 0 if there is none. */
static AttrNumber
key_column(const HeapTableJoins *own, int j)
{
	const Expr *expr = own->probes[j].keys[0]->expr;

	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Var) && ((const Var *) expr)->varattno <= own->natts ?
		Max(((const Var *) expr)->varattno, 0) :
		0;
}

/*
 * Rows that are skipped are not evaluated.  So no error may be raised for them before they would
 * have failed to find their partner.
 */
void
heap_joins_set_cached_probes(const HeapFeed *feed, HeapTable *table)
{
	const HeapTableJoins *own = table->joins;
	HeapCached *cached = table->cached;
	ParamListInfo params = feed->child->state->es_param_list_info;
	/* rows that are skipped would come to joins */
	bool quiet = !feed->joins->watched;

	cached->nprobes = 0;
	cached->probes = palloc(sizeof(HeapSkipProbe) * own->njoins);
	for (int q = 0; q < table->nscan_quals; q++)
		quiet = quiet && expr_evaluates_unnoticed((Node *) table->quals[q]->expr, params);
	for (int i = 0; i < own->njoins && quiet; i++)
	{
		const HeapJoin *join = &feed->joins->joins[own->order[i]];
		AttrNumber attno = key_column(own, own->order[i]);

		if (attno > 0 && heap_join_needs_match(join) &&
			(lookup_has_integer_key(&join->lookup) || lookup_has_text_key(&join->lookup)))
			cached->probes[cached->nprobes++] = (HeapSkipProbe){attno, &join->lookup};
		quiet = join->quiet;
	}
}

/* Returns why a join cannot be offered, or NULL. */
static const char *
unoffered_reason(const HeapJoin *join)
{
	if (join->lookup.form == LOOKUP_EMPTY && heap_join_needs_match(join))
		return "no row can find its partner in a join";
	if (join->watched)
		return "outer rows of a join decide when its inner side runs again";
	if (join->settles)
		return "a condition decides which rows of a join match";
	if (!lookup_has_integers(&join->lookup))
		return "the key of a join is not an integer";
	return NULL;
}

const char *
heap_joins_offer(const HeapFeed *feed, const HeapTable *table, FeedResident *resident)
{
	const HeapJoins *joins = feed->joins;
	const HeapTableJoins *own = table->joins;

	resident->njoins = joins->n;
	resident->joins = palloc(sizeof(ResidentJoin) * joins->n);
	for (int j = 0; j < joins->n; j++)
	{
		HeapJoin *join = &joins->joins[j];
		const Plan *plan = join->node->js.ps.plan;
		const char *why = unoffered_reason(join);

		if (why)
			return why;
		resident->joins[j] =
			(ResidentJoin){.type = join->type,
						   .lookup = &join->lookup,
						   .keys = own->probes[j].keys,
						   .share = plan->plan_rows / Max(outerPlan(plan)->plan_rows, 1),
						   .cells = &join->cells};
	}
	resident->probed = own->probed;
	resident->natts = own->natts;
	resident->table_varno = ((const Scan *) table->scan->node->ps.plan)->scanrelid;
	resident->inner_varno = joins->varno;
	resident->inner_join = palloc(sizeof(int) * (joins->ncolumns + 1));
	resident->inner_column = palloc(sizeof(int) * (joins->ncolumns + 1));
	for (int c = 0; c < joins->ncolumns; c++)
	{
		resident->inner_join[c] = joins->columns[c].join;
		resident->inner_column[c] = joins->columns[c].column;
	}
	return NULL;
}

/* ---- columns of lookups -------------------------------------------------------------- */

/* Fills the vector of a column for the rows at hand. */
static void
fill_column(const HeapJoins *joins, const HeapTableJoins *own, Vec *vec, int n)
{
	const HeapJoinColumn *entry = &joins->columns[vec->attno - own->natts - 1];
	const HeapJoin *join = &joins->joins[entry->join];
	const LookupColumn *column;
	bool all;
	Datum values[EXPR_ROWS];
	bool nulls[EXPR_ROWS];

	if (entry->column < 0)
	{
		for (int i = 0; i < n; i++)
			values[i] = BoolGetDatum(join->rows[i] != LOOKUP_NONE);
		heap_fill_datums(vec, n, values, NULL);
		return;
	}
	column = &join->lookup.columns[entry->column];
	all = column->nulls == NULL && join->type != JOIN_LEFT && join->type != JOIN_ANTI;
	for (int i = 0; i < n; i++)
	{
		uint32 row = join->rows[i];

		nulls[i] = !all && (row == LOOKUP_NONE || (column->nulls && column->nulls[row]));
		values[i] = 0;
		if (!nulls[i])
			values[i] = column->values[column->byval ? row : column->codes[row]];
	}
	heap_fill_datums(vec, n, values, all ? NULL : nulls);
}

void
heap_joins_fill(HeapFeed *feed, HeapTable *table, int stage)
{
	for (Vec **vec = table->joins->columns[stage]; *vec; vec++)
		fill_column(feed->joins, table->joins, *vec, feed->rows.n);
}

void
heap_joins_load_row(HeapFeed *feed, HeapTable *table, TupleTableSlot *from, int row)
{
	HeapJoins *joins = feed->joins;
	HeapTableJoins *own = table->joins;
	TupleTableSlot *slot = own->slot;

	/* conditions of the scan may read system columns and whole rows */
	if (joins->nprobed == 0)
		return;
	slot_getallattrs(from);
	ExecClearTuple(slot);
	memcpy(slot->tts_values, from->tts_values, own->natts * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, own->natts * sizeof(bool));
	for (int c = 0; c < joins->ncolumns; c++)
	{
		const HeapJoinColumn *entry = &joins->columns[c];
		const HeapJoin *join = &joins->joins[entry->join];
		const LookupColumn *column = &join->lookup.columns[Max(entry->column, 0)];
		uint32 at = join->probed_now ? join->rows[row] : LOOKUP_NONE;
		bool isnull;

		if (entry->column < 0)
		{
			slot->tts_isnull[own->natts + c] = false;
			slot->tts_values[own->natts + c] = BoolGetDatum(at != LOOKUP_NONE);
			continue;
		}
		isnull = at == LOOKUP_NONE || (column->nulls && column->nulls[at]);
		slot->tts_isnull[own->natts + c] = isnull;
		slot->tts_values[own->natts + c] =
			isnull ? (Datum) 0 : column->values[column->byval ? at : column->codes[at]];
	}
	ExecStoreVirtualTuple(slot);
	table->set->parent->ps_ExprContext->ecxt_scantuple = slot;
}

bool
heap_joins_is_column(const HeapTable *table, const Vec *vec)
{
	return table->joins && vec->attno > table->joins->natts;
}

bool
heap_joins_store_codes(HeapFeed *feed, int c, const Vec *vec, int at, int n)
{
	const HeapJoinColumn *entry = &feed->joins->columns[vec->attno - feed->table->joins->natts - 1];
	const HeapJoin *join = &feed->joins->joins[entry->join];
	const LookupColumn *column = &join->lookup.columns[entry->column];
	HeapOutput *output = &feed->outputs[c];

	if (column->longest > BATCH_BYTES / feed->batch.capacity)
		return false;
	if (at > 0 && output->dictionary != column->dictionary)
	{
		output->dictionary = 0;
		return true;
	}
	if (output->codes == NULL)
		output->codes = MemoryContextAlloc(feed->cxt, feed->batch.capacity * sizeof(uint32));
	output->dictionary = column->dictionary;
	output->ncodes = Max(column->ncodes, 1);
	for (int i = 0; i < n; i++)
		output->codes[at + i] = join->rows[i] == LOOKUP_NONE ? 0 : column->codes[join->rows[i]];
	return true;
}

/* ---- probing ------------------------------------------------------------------------- */

/* Returns the value of a key in a row. */
static Datum
key_value(HeapTable *table, ExprRoot *root, int row, bool *isnull)
{
	uint8 state = root->vec == NULL ? VEC_FALLBACK :
		root->vec->all_values       ? VEC_VALUE :
									  root->vec->state[row];

	*isnull = state == VEC_NULL;
	if (state == VEC_VALUE)
		return expr_datum(root->vec, row);
	return state == VEC_NULL ? (Datum) 0 : expr_evaluate_scalar(table->set, root, row, isnull);
}

/* Returns whether a key is an array of integers of 32 bits. */
static bool
is_array(const ExprRoot *root)
{
	return root->vec && root->vec->all_values && root->vec->type == COLUMN_I32;
}

/* Looks up an integer key for each row; returns their number as lookup_find_integers() does. */
static int
probe_integers(HeapTable *table, HeapJoin *join, ExprRoot **roots, int n, uint16 *sel)
{
	const Vec *vec = roots[0]->vec;
	int64 keys[EXPR_ROWS];
	bool nulls[EXPR_ROWS];
	int nkeys = join->lookup.nkeys;
	int found = 0;

	keys[0] = 0; /* for the compiler, which cannot see that there are rows */
	if (nkeys == 2 && is_array(roots[0]) && is_array(roots[1]))
	{
		const int32 *high = vec->values;
		const int32 *low = roots[1]->vec->values;

		for (int i = 0; i < n; i++)
			keys[i] = lookup_join_halves(high[i], low[i]);
		return lookup_find_integers(&join->lookup, n, LOOKUP_INT64, keys, join->rows, sel);
	}
	if (nkeys == 1 && is_array(roots[0]))
		return lookup_find_integers(&join->lookup, n, LOOKUP_INT32, vec->values, join->rows, sel);
	if (nkeys == 1 && vec && vec->all_values && vec->type == COLUMN_I64)
		return lookup_find_integers(&join->lookup, n, LOOKUP_INT64, vec->values, join->rows, sel);
	for (int i = 0; i < n; i++)
	{
		nulls[i] = false;
		for (int k = 0; k < nkeys && !nulls[i]; k++)
		{
			Datum value = key_value(table, roots[k], i, &nulls[i]);
			int64 integer = nulls[i] ? 0 : lookup_integer(value, join->lookup.keys[k].outer_width);

			keys[i] = k == 0 ? integer : lookup_join_halves(keys[i], integer);
		}
	}
	lookup_find_integers(&join->lookup, n, LOOKUP_INT64, keys, join->rows, sel);
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			join->rows[i] = LOOKUP_NONE;
		sel[found] = i;
		found += join->rows[i] != LOOKUP_NONE;
	}
	return found;
}

/* Looks up a key of any types for each row; returns their number as lookup_find_integers() does. */
static int
probe_values(HeapTable *table, HeapJoin *join, ExprRoot **roots, int n, uint16 *sel)
{
	Lookup *lookup = &join->lookup;
	Datum *key = palloc(sizeof(Datum) * lookup->nkeys);
	int found = 0;

	for (int i = 0; i < n; i++)
	{
		bool isnull = false;

		CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < lookup->nkeys && !isnull; k++)
		{
			key[k] = key_value(table, roots[k], i, &isnull);
			/* the next evaluation may free the value */
			if (!isnull && lookup->nkeys > 1 && roots[k]->vec == NULL)
			{
				int16 typlen;
				bool byval;

				get_typlenbyval(exprType((Node *) roots[k]->expr), &typlen, &byval);
				key[k] = datumCopy(key[k], byval, typlen);
			}
		}
		join->rows[i] = isnull ? LOOKUP_NONE : lookup_find_values(lookup, key);
		sel[found] = i;
		found += join->rows[i] != LOOKUP_NONE;
	}
	return found;
}

/*
 * Returns an array with an element for each number of the dictionary that the values of a key have.
 */
static uint32 *
rows_of_numbers(Probe *probe, const Lookup *lookup, const ExprDictionary *dict, MemoryContext cxt)
{
	if (probe->searched != lookup->builds || probe->numbered != dict->id)
		probe->nrows = 0;
	probe->searched = lookup->builds;
	probe->numbered = dict->id;
	if (probe->nrows < dict->n)
	{
		uint32 n = pg_nextpower2_32(Max(dict->n, 64));

		probe->rows = probe->rows ? repalloc_huge(probe->rows, n * sizeof(uint32)) :
									MemoryContextAllocHuge(cxt, n * sizeof(uint32));
		for (uint32 i = probe->nrows; i < n; i++)
			probe->rows[i] = NOT_SEARCHED;
		probe->nrows = n;
	}
	return probe->rows;
}

/*
 * Looks up a key whose values have numbers: once for each number.  Returns the number of rows as
 * lookup_find_integers() does.
 */
static int
probe_numbered(HeapTable *table, HeapJoin *join, Probe *probe, int n, uint16 *sel)
{
	ExprRoot *root = probe->keys[0];
	const Vec *codes = root->vec->codes;
	const int32 *numbers = codes->values;
	uint32 *rows = rows_of_numbers(probe, &join->lookup, root->vec->dictionary, table->set->cxt);
	int found = 0;

	for (int i = 0; i < n; i++)
	{
		bool numbered = codes->all_values || codes->state[i] == VEC_VALUE;
		uint32 row = numbered ? rows[numbers[i]] : NOT_SEARCHED;

		if (unlikely(row == NOT_SEARCHED))
		{
			bool isnull;
			Datum key = key_value(table, root, i, &isnull);

			CHECK_FOR_INTERRUPTS();
			row = isnull ? LOOKUP_NONE : lookup_find_values(&join->lookup, &key);
			if (numbered)
				rows[numbers[i]] = row;
		}
		join->rows[i] = row;
		sel[found] = i;
		found += row != LOOKUP_NONE;
	}
	return found;
}

/* Returns whether a row has a key without NULL.  Keys have been evaluated. */
static bool
has_key(HeapTable *table, const Probe *probe, int n)
{
	for (int i = 0; i < n; i++)
	{
		bool isnull = false;

		CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < probe->nkeys && !isnull; k++)
			key_value(table, probe->keys[k], i, &isnull);
		if (!isnull)
			return true;
	}
	return false;
}

int
heap_joins_probe(HeapFeed *feed, HeapTable *table, int stage, uint16 *sel)
{
	int j = table->joins->probed[stage];
	HeapJoin *join = &feed->joins->joins[j];
	Probe *probe = &table->joins->probes[j];
	ExprRoot **keys = probe->keys;
	int n = feed->rows.n;
	int kept = 0;
	MemoryContext old = MemoryContextSwitchTo(table->set->page_cxt);

	if (lookup_has_integer_key(&join->lookup))
	{
		kept = probe_integers(table, join, keys, n, sel);
		lookup_adapt_filter(&join->lookup, n, kept);
	}
	else if (probe->nkeys == 1 && keys[0]->vec && keys[0]->vec->codes)
		kept = probe_numbered(table, join, probe, n, sel);
	else
		kept = probe_values(table, join, keys, n, sel);
	if (join->watched && !join->outer_not_empty)
		join->outer_not_empty = kept > 0 || has_key(table, probe, n);
	MemoryContextSwitchTo(old);
	feed->joins->nprobed++;
	join->probed_now = true;
	join->reached += n;
	join->step.probed = n;
	join->step.found = kept;
	if (join->type == JOIN_LEFT || (join->settles && join->type == JOIN_ANTI))
		kept = n; /* sel is not needed */
	else if (join->type == JOIN_ANTI)
	{
		kept = 0;
		for (int i = 0; i < n; i++)
		{
			sel[kept] = i;
			kept += join->rows[i] == LOOKUP_NONE;
		}
	}
	return kept;
}

int
heap_joins_expand_stage(HeapFeed *feed, const HeapTable *table, int stage, uint16 *sel)
{
	int j = table->joins->probed[stage];
	int n = heap_joins_find_matches(feed, j, sel);

	if (n >= 0)
		heap_joins_expand(feed, j, sel, n);
	return n;
}

bool
heap_joins_stage_settles(const HeapFeed *feed, const HeapTable *table, int stage)
{
	return feed->joins && table->joins->settled[stage] >= 0;
}

int
heap_joins_settle_stage(HeapFeed *feed, const HeapTable *table, int stage, uint16 *sel, int npassed)
{
	int j = table->joins->settled[stage];
	HeapJoin *join = &feed->joins->joins[j];

	for (int i = 0; i < feed->rows.n; i++)
		join->step.removed += join->rows[i] != LOOKUP_NONE;
	join->step.removed -= npassed;
	return heap_joins_settle(feed, j, sel, npassed);
}

/* Counts rows that a condition of a join has removed. */
static void
count_removed(HeapJoin *join, const HeapTableJoins *own, int stage, int removed)
{
	int condition = 0; /* number of the condition, from 1 */

	while (own->probed[stage - condition] < 0)
		condition++;
	if (condition > join->nconditions)
		join->step.filtered += removed;
	else if (condition > 0 && own->settled[stage] < 0)
		join->step.removed += removed;
}

void
heap_joins_count_rows(HeapFeed *feed, const HeapTable *table, int stage, int removed)
{
	HeapJoins *joins = feed->joins;
	const HeapTableJoins *own = table->joins;
	int i = joins->nprobed - 1;
	HeapJoin *join;

	if (i < 0)
		return;
	join = &joins->joins[own->order[i]];
	if (removed > 0)
		count_removed(join, own, stage, removed);
	if (stage + 1 < table->nquals && own->probed[stage + 1] < 0)
		return;
	join->passed += feed->rows.n;
	/* nodes count the rows after as many joins as the plan has up to them, whatever their order */
	if (i < joins->n - 1)
		joins->joins[i].step.returned = feed->rows.n;
}

int
heap_joins_count_step(HeapFeed *feed, const HeapTable *table, int n)
{
	HeapJoins *joins = feed->joins;
	int nscanned = table->nscanned;
	int left = 0; /* rows that belong to the next step */

	for (int j = joins->n - 1; j >= 0; j--)
	{
		HeapJoin *join = &joins->joins[j];
		HeapJoinCounts *step = &join->step;

		step->returned = Max(step->returned - left, 0);
		if (joins->cut)
			left += join->left;
		step->probed = Max(step->probed - left, 0);
		join->probed += step->probed;
		join->found += Min(step->found, step->probed);
		InstrCountFiltered1(join->node, step->removed);
		InstrCountFiltered2(join->node, step->filtered);
		if (j < joins->n - 1)
			heap_joins_count(&join->node->js.ps, step->returned);
	}
	return Min(Max(nscanned - left, 0), n);
}

void
heap_joins_keep(HeapFeed *feed, const uint16 *sel, int n)
{
	HeapJoins *joins = feed->joins;

	for (int j = 0; j < joins->n; j++)
	{
		uint32 *rows = joins->joins[j].rows;

		if (joins->joins[j].probed_now && heap_join_keeps_rows(&joins->joins[j]))
			for (int i = 0; i < n; i++)
				rows[i] = rows[sel[i]];
	}
}
