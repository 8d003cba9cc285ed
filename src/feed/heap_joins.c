/*
 * heap_joins.c
 *	  The joins of a feed: which ones can be lookups, merging of expressions, building; see
 *	  heap_joins.h.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "analysis/analysis.h"
#include "common/compat.h"
#include "feed/heap.h"
#include "feed/heap_joins_internal.h"
#include "feed/heap_shared.h"

PlanState *
heap_below_joins(PlanState *child)
{
	while (child && IsA(child, HashJoinState))
		child = outerPlanState(child);
	return child;
}

/* ---- which joins ------------------------------------------------------------------- */

/*
 * Returns whether a target below the topmost join can be merged into the expressions above: then it
 * may be evaluated more than once or not at all.
 */
static bool
can_be_merged(Expr *target, ParamListInfo params)
{
	if (IsA(target, Var))
		return ((Var *) target)->varattno > 0;
	return expr_evaluates_unnoticed((Node *) target, params);
}

/* Returns whether all targets of a node below the topmost join can be merged. */
static bool
targets_can_be_merged(const PlanState *node)
{
	ListCell *lc;

	foreach (lc, node->plan->targetlist)
		if (!can_be_merged(lfirst_node(TargetEntry, lc)->expr, node->state->es_param_list_info))
			return false;
	return true;
}

/* Returns why a join cannot be a lookup because of its keys; NULL if it can. */
static const char *
keys_unsupported_reason(const HashJoinState *node)
{
	const HashJoin *plan = (const HashJoin *) node->js.ps.plan;
	ListCell *operator, * collation, *key;

	forthree(operator, plan->hashoperators, collation, plan->hashcollations, key, plan->hashkeys)
	{
		Oid left, right;

		if (!op_strict(lfirst_oid(operator)) ||
			!get_op_hash_functions(lfirst_oid(operator), &left, &right))
			return "an operator of the join is not strict";
		/* core raises an error for the first outer row, although no inner row is compared */
		if (!OidIsValid(lfirst_oid(collation)) && type_is_collatable(exprType(lfirst(key))))
			return "the collation of a key is not known";
	}
	return expr_join_keys_unsupported_reason(plan->hashkeys, node->js.ps.state->es_param_list_info);
}

/* Returns why one join cannot be a lookup; NULL if it can. */
static const char *
join_unsupported_reason(const HashJoinState *node, bool volatile_query)
{
	const HashJoin *plan = (const HashJoin *) node->js.ps.plan;
	Node *exprs[] = {(Node *) plan->join.plan.targetlist, (Node *) plan->hashclauses,
					 (Node *) plan->join.plan.qual, (Node *) plan->join.joinqual};

	for (int i = 0; i < lengthof(exprs); i++)
	{
		if (contain_volatile_functions(exprs[i]))
			return "the input calls a volatile function";
		/* a cut repeats few conditions, which are the last two; others may be repeated often */
		if ((i < 2 || volatile_query) && contain_subplans(exprs[i]))
			return "an expression of the join has a subplan";
	}
	if (plan->join.plan.parallel_aware || innerPlanState(node)->plan->parallel_aware)
		return "the hash table of the join is shared";
	switch (plan->join.jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
			break;
		case JOIN_SEMI:
		case JOIN_ANTI:
			/* core evaluates it until one match passes */
			if (!expr_evaluates_unnoticed((Node *) plan->join.joinqual,
										  node->js.ps.state->es_param_list_info))
				return "a condition of a semi or anti join may raise an error";
			break;
		default:
			return "the join is a right or full join";
	}
	return keys_unsupported_reason(node);
}

/* Returns why a lookup must not run the inner plan of a join; NULL if it may. */
static const char *
inner_unsupported_reason(const HashJoinState *node, PlanState *scan)
{
	Notice notice = heap_join_inner_notice(node);

	if (notice == NOTICE_HOW_OFTEN)
		return "an inner side calls a volatile function or locks rows";
	if (notice == NOTICE_WHETHER && !heap_join_can_look_ahead(scan))
		return "an inner side may raise an error, and participants share the scan below the join";
	return NULL;
}

const char *
heap_joins_unsupported_reason(PlanState *child, bool volatile_query)
{
	PlanState *scan = heap_below_joins(child);

	for (PlanState *node = child; node && IsA(node, HashJoinState); node = outerPlanState(node))
	{
		const char *why = join_unsupported_reason((HashJoinState *) node, volatile_query);

		if (why == NULL)
			why = inner_unsupported_reason((HashJoinState *) node, scan);
		if (why)
			return why;
		if (!targets_can_be_merged(outerPlanState(node)))
			return "an expression below a join may raise an error, or reads whole rows";
		if (IsA(outerPlanState(node), AppendState))
		{
			AppendState *append = (AppendState *) outerPlanState(node);

			for (int i = 0; i < append->as_nplans; i++)
				if (!targets_can_be_merged(append->appendplans[i]))
					return "an expression below a join may raise an error, or reads whole rows";
		}
	}
	return NULL;
}

/* ---- merging expressions ------------------------------------------------------------ */

/* What merge_expr() needs. */
typedef struct MergeContext
{
	HeapJoins *joins;
	int join; /* the join whose expression is merged */
	bool on;  /* the expression is the ON clause of a join that settles */
} MergeContext;

/* Returns a new entry of HeapJoins.columns. */
static HeapJoinColumn *
add_entry(HeapJoins *joins, int join, int column, bool on)
{
	HeapJoinColumn *entry;

	joins->columns = joins->columns ?
		repalloc(joins->columns, sizeof(HeapJoinColumn) * (joins->ncolumns + 1)) :
		palloc(sizeof(HeapJoinColumn));
	entry = &joins->columns[joins->ncolumns++];
	entry->join = join;
	entry->column = column;
	entry->on = on;
	entry->typid = BOOLOID;
	entry->typmod = -1;
	entry->collation = InvalidOid;
	return entry;
}

/* Returns the index of a column of the inner plan in a lookup; it is added if it is new. */
static int
add_lookup_column(Lookup *lookup, const Var *var)
{
	LookupColumn *column;

	for (int c = 0; c < lookup->ncolumns; c++)
		if (lookup->columns[c].resno == var->varattno)
			return c;
	lookup->columns = lookup->columns ?
		repalloc(lookup->columns, sizeof(LookupColumn) * (lookup->ncolumns + 1)) :
		palloc(sizeof(LookupColumn));
	column = &lookup->columns[lookup->ncolumns];
	memset(column, 0, sizeof(LookupColumn));
	column->resno = var->varattno;
	get_typlenbyval(var->vartype, &column->typlen, &column->byval);
	return lookup->ncolumns++;
}

/*
 * Returns the number of a column of a lookup, which is added if it is new.  Columns of an ON clause
 * have numbers of their own: for later stages they are NULL where no match has passed.
 */
static int
add_column(HeapJoins *joins, int join, const Var *var, bool on)
{
	int column = add_lookup_column(&joins->joins[join].lookup, var);
	HeapJoinColumn *entry;

	for (int c = 0; c < joins->ncolumns; c++)
		if (joins->columns[c].join == join && joins->columns[c].column == column &&
			joins->columns[c].on == on)
			return c + 1;
	entry = add_entry(joins, join, column, on);
	entry->typid = var->vartype;
	entry->typmod = var->vartypmod;
	entry->collation = var->varcollid;
	return joins->ncolumns;
}

/*
 * Replaces columns of the outer side by the targets of the join below, and columns of the inner
 * side by columns of the lookup.
 */
static Node *
merge_expr(Node *node, void *arg)
{
	MergeContext *context = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var *var = (Var *) node;

		if (var->varno == INNER_VAR)
			return (Node *) makeVar(context->joins->varno,
									add_column(context->joins, context->join, var, context->on),
									var->vartype, var->vartypmod, var->varcollid, 0);
		if (context->join > 0)
			return copyObject((Node *) list_nth_node(
								  TargetEntry, context->joins->joins[context->join - 1].targets,
								  var->varattno - 1)
								  ->expr);
		return copyObject(node);
	}
	return expression_tree_mutator(node, merge_expr, arg);
}

/* Returns the bytes of an integer type whose equality is that of integers; 0 for other types. */
static int8
integer_width(Oid type)
{
	switch (type)
	{
		case INT2OID:
			return 2;
		case INT4OID:
		case DATEOID:
			return 4;
		case INT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return 8;
		default:
			return 0;
	}
}

/* Returns whether an operator's function compares integers of up to 64 bits. */
static bool
compares_integers(Oid function)
{
	switch (function)
	{
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_INT24EQ:
		case F_INT28EQ:
		case F_INT42EQ:
		case F_INT48EQ:
		case F_INT82EQ:
		case F_INT84EQ:
		case F_DATE_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
			return true;
		default:
			return false;
	}
}

/* Returns the column of the inner plan that is a key; 0 for other expressions. */
static AttrNumber
inner_key_column(const Expr *key)
{
	while (IsA(key, RelabelType))
		key = ((const RelabelType *) key)->arg;
	return IsA(key, Var) ? Max(((const Var *) key)->varattno, 0) : 0;
}

/* Sets up one column of a join's key. */
static void
init_key(HeapJoin *join, int k, Oid operator, Oid collation, Expr *inner, Node *clause)
{
	LookupKey *key = &join->lookup.keys[k];
	Oid left, right;
	Oid outer_hash, inner_hash;
	Oid function = get_opcode(operator);

	op_input_types(operator, & left, &right);
	if (!get_op_hash_functions(operator, & outer_hash, &inner_hash))
		elog(ERROR, "could not find hash function for hash operator %u", operator);
	fmgr_info(outer_hash, &key->outer_hash);
	fmgr_info(inner_hash, &key->inner_hash);
	fmgr_info(function, &key->equal);
	/* for functions with arguments of any type */
	fmgr_info_set_expr(clause, &key->equal);
	key->collation = collation;
	key->comparable = left == right;
	get_typlenbyval(exprType((Node *) inner), &key->inner_typlen, &key->inner_byval);
	if (compares_integers(function))
	{
		key->outer_width = integer_width(left);
		key->inner_width = integer_width(right);
	}
	key->attno = inner_key_column(inner);
	/* if the query is compiled (JIT), so is each ExprState, and again for each feed */
	if (key->attno == 0)
		key->inner = ExecInitExpr(inner, &join->hash->ps);
}

/* Sets up the lookup of a join. */
static void
init_lookup(HeapJoins *joins, int j)
{
	HeapJoin *join = &joins->joins[j];
	const HashJoin *plan = (const HashJoin *) join->node->js.ps.plan;
	const Hash *hash = (const Hash *) join->hash->ps.plan;
	Lookup *lookup = &join->lookup;
	int k = 0;
	ListCell *operator, * collation, *inner, *clause;

	lookup->inner = outerPlanState(join->hash);
	lookup->econtext = join->hash->ps.ps_ExprContext;
	lookup->parent = CurrentMemoryContext;
	lookup->nkeys = list_length(plan->hashoperators);
	lookup->keys = palloc0(sizeof(LookupKey) * lookup->nkeys);
	forfour(operator, plan->hashoperators, collation, plan->hashcollations, inner, hash->hashkeys,
			clause, plan->hashclauses)
		init_key(join, k++, lfirst_oid(operator), lfirst_oid(collation), lfirst(inner),
				 lfirst(clause));
}

/* Sets the conditions of a join. */
static void
init_quals(HeapJoins *joins, int j, const HashJoin *plan)
{
	HeapJoin *join = &joins->joins[j];
	List *on = plan->join.joinqual;
	MergeContext context = {joins, j};

	join->settles = join->type != JOIN_INNER && on != NIL;
	context.on = join->settles;
	on = (List *) merge_expr((Node *) on, &context);
	if (join->settles)
	{
		/* core evaluates it only for matches */
		add_entry(joins, j, -1, true);
		on = lcons(makeVar(joins->varno, joins->ncolumns, BOOLOID, -1, InvalidOid, 0), on);
		on = list_make1(make_andclause(on));
	}
	join->nconditions = list_length(on);
	context.on = false;
	join->quals = list_concat(on, (List *) merge_expr((Node *) plan->join.plan.qual, &context));
}

HeapJoins *
heap_joins_create(PlanState *child)
{
	HeapJoins *joins;
	int j;

	if (!IsA(child, HashJoinState))
		return NULL;
	joins = palloc0(sizeof(HeapJoins));
	joins->scan = heap_below_joins(child);
	/* no table of the query has this number */
	joins->varno = list_length(child->state->es_range_table) + 1;
	for (PlanState *node = child; node != joins->scan; node = outerPlanState(node))
		joins->n++;
	joins->joins = palloc0(sizeof(HeapJoin) * joins->n);
	j = joins->n;
	for (PlanState *node = child; node != joins->scan; node = outerPlanState(node))
		joins->joins[--j].node = (HashJoinState *) node;
	for (j = 0; j < joins->n; j++)
	{
		HeapJoin *join = &joins->joins[j];
		const HashJoin *plan = (const HashJoin *) join->node->js.ps.plan;
		MergeContext context = {joins, j};

		join->hash = castNode(HashState, innerPlanState(join->node));
		join->type = plan->join.jointype;
		/* an earlier feed over the same plan may have run it */
		join->executed = true;
		join->targets = (List *) merge_expr((Node *) plan->join.plan.targetlist, &context);
		join->keys = (List *) merge_expr((Node *) plan->hashkeys, &context);
		init_quals(joins, j, plan);
		init_lookup(joins, j);
	}
	for (j = 0; j < joins->n; j++)
		joins->joins[j].lookup.exists_only = !joins->joins[j].settles &&
			(joins->joins[j].type == JOIN_SEMI || joins->joins[j].type == JOIN_ANTI);
	return joins;
}

/* ---- feeds of inner sides ----------------------------------------------------------- */

bool
heap_joins_has_column_keys(const HashJoinState *node)
{
	ListCell *lc;

	foreach (lc, ((const Hash *) innerPlanState(node)->plan)->hashkeys)
		if (inner_key_column(lfirst(lc)) == 0)
			return false;
	return true;
}

PlanState *
heap_joins_inner_plan(const HeapJoins *joins, int j)
{
	return j < joins->n ? joins->joins[j].lookup.inner : NULL;
}

/* Adds a column of an inner plan to the spec of its feed; returns its number. */
static int
add_inner_column(AggSpec *spec, PlanState *inner, int resno)
{
	ColumnSpec col =
		spec_plain_column(resno - 1, TupleDescAttr(ExecGetResultType(inner), resno - 1));

	return spec_add_column(spec, &col);
}

AggSpec *
heap_joins_inner_spec(HeapJoins *joins, int j, int **resnos)
{
	HeapJoin *join = &joins->joins[j];
	Lookup *lookup = &join->lookup;
	TupleDesc desc = ExecGetResultType(lookup->inner);
	AggSpec *spec;
	int *scales;

	if (!heap_joins_has_column_keys(join->node))
		return NULL;
	spec = palloc0(sizeof(AggSpec));
	scales = palloc(sizeof(int) * (desc->natts + 1));
	*resnos = palloc(sizeof(int) * (desc->natts + 1));
	for (int a = 0; a < desc->natts; a++)
	{
		scales[a] = -1;
		(*resnos)[a] = a + 1;
	}
	spec->usual_scale = scales;
	spec->needs_rows = true;
	for (int k = 0; k < lookup->nkeys; k++)
		lookup->keys[k].batch_column = add_inner_column(spec, lookup->inner, lookup->keys[k].attno);
	for (int c = 0; c < lookup->ncolumns; c++)
		lookup->columns[c].batch_column =
			add_inner_column(spec, lookup->inner, lookup->columns[c].resno);
	return spec;
}

void
heap_joins_set_feed(HeapJoins *joins, int j, Feed *feed)
{
	joins->joins[j].lookup.feed = feed;
}

void
heap_joins_end(HeapJoins *joins)
{
	for (int j = 0; j < joins->n; j++)
	{
		Feed *feed = joins->joins[j].lookup.feed;

		if (feed)
			feed->ops->end(feed);
	}
}

/* ---- building ---------------------------------------------------------------------- */

void
heap_joins_count(PlanState *node, int rows)
{
	if (node->instrument == NULL)
		return;
	InstrStartNode(node->instrument);
	InstrStopNode(node->instrument, rows);
}

/*
 * Builds the lookup of a join; returns false if that is not possible.  awaited: others wait for it,
 * or NULL
 */
static bool
build_lookup(HeapJoin *join, SharedWork *awaited)
{
	CompatInstrumentation *instrument = join->hash->ps.instrument;
	LookupResult result;
	instr_time start, end;

	INSTR_TIME_SET_CURRENT(start);
	heap_join_rescan_inner(join);
	if (instrument)
		InstrStartNode(instrument);
	join->executed = true;
	join->lookup.awaited = awaited;
	join->lookup.most_kept = awaited ? lookup_most_kept() : 0;
	result = lookup_build(&join->lookup, get_hash_memory_limit());
	join->built = result == LOOKUP_BUILT;
	if (instrument)
		InstrStopNode(instrument, join->lookup.ninner);
	if (join->built)
		lookup_keep(&join->lookup, join->lookup.awaited != NULL);
	lookup_end_wait(&join->lookup);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(join->build_time, end, start);
	join->builds++;
	return join->built;
}

/*
 * Makes the lookup of join j valid.  Returns HEAP_JOINS_EXECUTE if that is not possible, and
 * HEAP_JOINS_EMPTY if it need not be.  work: its building, if participants of a parallel plan share
 * it; first: core runs the inner side before it fetches an outer row.  Sets *looked if an outer row
 * has been fetched
 */
static HeapJoinsResult
obtain_lookup(HeapJoins *joins, int j, SharedWork *work, bool first, bool *looked)
{
	HeapJoin *join = &joins->joins[j];
	const Plan *hash = join->hash->ps.plan;

	join->built = lookup_attach(&join->lookup, hash, false);
	if (join->built)
		return HEAP_JOINS_READY;
	*looked = join->noticed && !first;
	if (*looked && !heap_join_has_outer_row(joins, j))
		return HEAP_JOINS_EMPTY;
	if (!lookup_can_be_kept(&join->lookup))
		work = NULL;
	if (work && !shared_work_begin(work, PG_WAIT_EXTENSION))
	{
		work = NULL;
		join->built = lookup_attach(&join->lookup, hash, true);
	}
	if (!join->built)
		join->built = build_lookup(join, work);
	return join->built ? HEAP_JOINS_READY : HEAP_JOINS_EXECUTE;
}

/* Frees all lookups, and makes their plans ready to be executed by core's joins. */
static void
give_up(HeapJoins *joins)
{
	heap_joins_end(joins);
	for (int j = 0; j < joins->n; j++)
	{
		lookup_free(&joins->joins[j].lookup);
		joins->joins[j].lookup.feed = NULL;
		joins->joins[j].built = false;
		heap_join_repeat_inner(&joins->joins[j]);
	}
}

/*
 * Called if the inner side of join j, which needs a match, has no rows: does what core does before
 * it notices that.  kept: it has not changed since an earlier scan; looked: no outer row need be
 * fetched
 */
static HeapJoinsResult
end_without_inner_rows(HeapJoins *joins, int j, bool kept, bool looked)
{
	HeapJoin *join = &joins->joins[j];

	/* a rescan of core's hash join does not look */
	if (kept)
		return join->outer_noticed || !join->quiet ? HEAP_JOINS_READY : HEAP_JOINS_EMPTY;
	if (join->outer_noticed && !looked && heap_join_can_look_ahead(joins->scan))
		heap_join_has_outer_row(joins, j);
	return HEAP_JOINS_EMPTY;
}

/* Returns Feed.core_joins, or NIL if it is of another number of joins than the plan has. */
static const List *
core_joins(const HeapJoins *joins, const Feed *feed)
{
	const List *all = feed->core_joins;

	return all && list_length(list_nth(all, CORE_INNER_SIDES)) == joins->n ? all : NIL;
}

/* Prepares the feed of the inner side of join j.  feed: that of the joins */
static void
prepare_inner_feed(HeapJoins *joins, int j, const Feed *feed)
{
	Feed *inner = joins->joins[j].lookup.feed;
	const List *all = core_joins(joins, feed);

	if (inner == NULL)
		return;
	inner->guarded = feed->guarded;
	inner->subplans = feed->subplans;
	inner->core_joins = all ? list_nth(list_nth(all, CORE_INNER_SIDES), j) : NIL;
}

/* Makes join j ready.  first: see obtain_lookup() */
static HeapJoinsResult
begin_join(HeapJoins *joins, int j, const Feed *feed, bool first)
{
	HeapJoin *join = &joins->joins[j];
	bool kept = join->built && join->hash->ps.chgParam == NULL;
	bool looked = false;
	HeapJoinsResult result = HEAP_JOINS_READY;

	prepare_inner_feed(joins, j, feed);
	if (!kept)
		result = obtain_lookup(joins, j, heap_shared_lookup(feed->shared, j), first, &looked);
	if (result == HEAP_JOINS_READY && join->lookup.form == LOOKUP_EMPTY &&
		heap_join_needs_match(join))
		result = end_without_inner_rows(joins, j, kept, first || looked);
	if (result == HEAP_JOINS_READY)
		join->outer_not_empty = false;
	return result;
}

/* Makes all joins ready, in the order in which core would run their inner sides. */
static HeapJoinsResult
begin_all(HeapJoins *joins, const Feed *feed)
{
	HeapJoinsResult result = HEAP_JOINS_READY;
	const List *all = core_joins(joins, feed);
	const List *hashed = all ? list_nth(all, CORE_HASH_JOINS) : NIL;
	ListCell *lc;

	foreach (lc, hashed)
	{
		int j = lfirst_int(lc);

		if (heap_join_runs_inner_first(joins, j, all) &&
			(result = begin_join(joins, j, feed, true)) != HEAP_JOINS_READY)
			return result;
	}
	for (int j = 0; j < joins->n && result == HEAP_JOINS_READY; j++)
		result = begin_join(joins, j, feed, false);
	return result;
}

HeapJoinsResult
heap_joins_begin(HeapJoins *joins, const Feed *feed, const char **why)
{
	HeapJoinsResult result;

	for (int j = joins->n - 1; j >= 0; j--)
		if (joins->joins[j].node->js.ps.chgParam != NULL)
			ExecReScan(&joins->joins[j].node->js.ps);
	result = begin_all(joins, feed);
	if (result == HEAP_JOINS_EMPTY)
		return result;
	if (result == HEAP_JOINS_EXECUTE)
	{
		*why = "an inner side is too large for a lookup, or its keys cannot be compared";
		give_up(joins);
		return result;
	}
	if (!heap_joins_can_be_cut(joins))
	{
		*why = "rows find several partners above a join whose condition says which partners count";
		give_up(joins);
		return HEAP_JOINS_EXECUTE;
	}
	heap_joins_reset_cut(joins);
	if (joins->scan->chgParam != NULL)
		ExecReScan(joins->scan);
	return HEAP_JOINS_READY;
}
